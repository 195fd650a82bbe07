//! Algebra that needs no symbols; what does need them is left out and says so.

use std::sync::Arc;

use crate::convert::{simple, to_complex, wrong_type};
use crate::error::{MathError, Result};
use crate::number::complex::Complex;
use crate::ops::compare::nearly_equal;
use crate::value::env::Env;
use crate::value::function::{ANY_NUMBER, Builtin};
use crate::value::matrix::Matrix;
use crate::value::node::{Call, Node, Range};
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("leafCount", 1..=1, leaf_count),
    Builtin::new("resolve", 1..=2, resolve),
    Builtin::new("polynomialRoot", 2..=ANY_NUMBER, polynomial_root),
    Builtin::new("simplify", 0..=ANY_NUMBER, |_, _| left_out("simplify")),
    Builtin::new("simplifyCore", 0..=ANY_NUMBER, |_, _| {
        left_out("simplifyCore")
    }),
    Builtin::new("simplifyConstant", 0..=ANY_NUMBER, |_, _| {
        left_out("simplifyConstant")
    }),
    Builtin::new("derivative", 0..=ANY_NUMBER, |_, _| left_out("derivative")),
    Builtin::new("rationalize", 0..=ANY_NUMBER, |_, _| {
        left_out("rationalize")
    }),
    Builtin::new("symbolicEqual", 0..=ANY_NUMBER, |_, _| {
        left_out("symbolicEqual")
    }),
];

fn left_out(name: &str) -> Result<Value> {
    Err(MathError::unsupported(format!(
        "Function {name} is left out here: symbolic algebra is not supported, only numbers are computed"
    )))
}

fn node(env: &mut Env, name: &str, value: &Value) -> Result<Arc<Node>> {
    match value {
        Value::Node(node) => Ok(node.clone()),
        Value::Text(text) => Ok(Arc::new(env.parse(text)?)),
        other => Err(wrong_type(name, other, 0)),
    }
}

fn leaf_count(env: &mut Env, args: &[Value]) -> Result<Value> {
    let node = node(env, "leafCount", &args[0])?;
    let mut leaves = 0;
    let mut open: Vec<&Node> = vec![&node];
    while let Some(node) = open.pop() {
        env.purse.pay(1)?;
        let before = open.len();
        node.children(&mut open);
        if open.len() == before {
            leaves += 1;
        }
    }
    Ok(Value::Num(f64::from(leaves)))
}

/// Puts values and expressions in place of names.
fn resolve(env: &mut Env, args: &[Value]) -> Result<Value> {
    let node = node(env, "resolve", &args[0])?;
    let deep = || MathError::limit("Expression too deep for function resolve");
    if !node.is_shallow() {
        return Err(deep());
    }
    let empty = Object::default();
    let scope = match args.get(1) {
        None => &empty,
        Some(Value::Object(scope)) => scope,
        Some(other) => return Err(wrong_type("resolve", other, 1)),
    };
    let replaced = replace(env, &node, scope)?;
    if !replaced.is_shallow() {
        return Err(deep());
    }
    Ok(Value::Node(Arc::new(replaced)))
}

fn replace(env: &mut Env, node: &Node, scope: &Object) -> Result<Node> {
    env.descend()?;
    // A node is larger than a number.
    env.purse.pay(8)?;
    let replaced = replace_here(env, node, scope)?;
    env.ascend();
    Ok(replaced)
}

fn replace_here(env: &mut Env, node: &Node, scope: &Object) -> Result<Node> {
    let pair = |env: &mut Env, pair: &(Node, Node)| -> Result<Box<(Node, Node)>> {
        Ok(Box::new((
            replace(env, &pair.0, scope)?,
            replace(env, &pair.1, scope)?,
        )))
    };
    let all = |env: &mut Env, nodes: &[Node]| -> Result<Vec<Node>> {
        nodes.iter().map(|node| replace(env, node, scope)).collect()
    };
    Ok(match node {
        Node::Symbol(name) => match scope.get(name) {
            // What was put in may hold names itself.
            Some(Value::Node(inner)) => replace(env, inner, scope)?,
            Some(value) => written_out(env, value)?,
            None => node.clone(),
        },
        Node::Paren(inner) => Node::Paren(Box::new(replace(env, inner, scope)?)),
        Node::Unary(op, inner) => Node::Unary(*op, Box::new(replace(env, inner, scope)?)),
        Node::Binary(op, operands) => Node::Binary(*op, pair(env, operands)?),
        Node::Implicit(operands) => Node::Implicit(pair(env, operands)?),
        Node::Percentage(op, operands) => Node::Percentage(*op, pair(env, operands)?),
        Node::Relational(chain) => {
            Node::Relational(Box::new((chain.0.clone(), all(env, &chain.1)?)))
        }
        Node::Conditional(parts) => Node::Conditional(Box::new((
            replace(env, &parts.0, scope)?,
            replace(env, &parts.1, scope)?,
            replace(env, &parts.2, scope)?,
        ))),
        Node::Array(items) => Node::Array(all(env, items)?),
        Node::Range(range) => Node::Range(Box::new(Range {
            start: replace(env, &range.start, scope)?,
            step: range
                .step
                .as_ref()
                .map(|step| replace(env, step, scope))
                .transpose()?,
            end: replace(env, &range.end, scope)?,
        })),
        Node::Call(call) => Node::Call(Box::new(Call {
            function: call.function.clone(),
            arguments: all(env, &call.arguments)?,
            optional: call.optional,
        })),
        other => other.clone(),
    })
}

/// A value as the expression that gives it.
fn written_out(env: &mut Env, value: &Value) -> Result<Node> {
    env.purse.pay(8)?;
    match value {
        Value::Matrix(matrix) => {
            env.descend()?;
            let items: Result<Vec<Node>> = matrix
                .items()
                .iter()
                .map(|item| written_out(env, item))
                .collect();
            env.ascend();
            Ok(Node::Array(items?))
        }
        Value::Unit(_) | Value::Object(_) | Value::Function(_) | Value::Results(_) => {
            Err(MathError::unsupported(format!(
                "A {} cannot be put into an expression by function resolve",
                value.type_name()
            )))
        }
        other => Ok(Node::Constant(other.clone())),
    }
}

/// The roots of c₀ + c₁x + c₂x² + c₃x³.
fn polynomial_root(env: &mut Env, args: &[Value]) -> Result<Value> {
    let coefficients: Result<Vec<Complex>> = args
        .iter()
        .map(|arg| simple("polynomialRoot", arg, 0).map(|arg| to_complex(&arg)))
        .collect();
    let mut coefficients = coefficients?;
    let is_real = coefficients.iter().all(|c| c.im == 0.0);
    while coefficients.last().is_some_and(|last| last.is_zero()) {
        coefficients.pop();
    }
    env.purse.pay(64)?;
    let same = |a: Complex, b: Complex| {
        nearly_equal(a.re, b.re, 1e-12, 1e-15) && nearly_equal(a.im, b.im, 1e-12, 1e-15)
    };
    let roots = match coefficients.as_slice() {
        [] | [_] => {
            return Err(MathError::value(
                "Polynomial must have a non-zero non-constant coefficient",
            ));
        }
        [b, a] => vec![-*b / *a],
        [c, b, a] => {
            let (square, product) = (*b * *b, (*a * *c).scale(4.0));
            if same(square, product) {
                vec![-*b / a.scale(2.0)]
            } else {
                let root = (square - product).sqrt();
                vec![(root - *b) / a.scale(2.0), (-root - *b) / a.scale(2.0)]
            }
        }
        [d, c, b, a] => cubic_roots(*a, *b, *c, *d, same),
        _ => {
            let degree = coefficients.len() - 1;
            return Err(MathError::value(format!(
                "only implemented for cubic or lower-order polynomials, not {degree}"
            )));
        }
    };
    let scale = roots
        .iter()
        .fold(0.0f64, |scale, root| scale.max(root.abs()));
    let cells = roots.into_iter().map(|root| {
        if is_real && root.im.abs() <= 1e-12 * scale {
            Value::Num(root.re)
        } else {
            root.into()
        }
    });
    Ok(Matrix::array(cells.collect()).into())
}

fn cubic_roots(
    a: Complex,
    b: Complex,
    c: Complex,
    d: Complex,
    same: impl Fn(Complex, Complex) -> bool,
) -> Vec<Complex> {
    let third = -a.scale(3.0);
    let (square, product) = (b * b, (a * c).scale(3.0));
    let (cube, mixed) = (
        (b * b * b).scale(2.0) + (a * a * d).scale(27.0),
        (a * b * c).scale(9.0),
    );
    if same(square, product) && same(cube, mixed) {
        return vec![b / third];
    }
    let (delta0, delta1) = (square - product, cube - mixed);
    let plus = (b * b * c * c) + (a * b * c * d).scale(18.0);
    let minus =
        (b * b * b * d).scale(4.0) + (a * c * c * c).scale(4.0) + (a * a * d * d).scale(27.0);
    if same(plus, minus) {
        // A root counts twice.
        let single = ((a * b * c).scale(4.0) - (a * a * d).scale(9.0) - b * b * b) / (a * delta0);
        let double = ((a * d).scale(9.0) - b * c) / delta0.scale(2.0);
        return vec![single, double];
    }
    let inner = if same(square, product) {
        delta1
    } else {
        (delta1 + (delta1 * delta1 - (delta0 * delta0 * delta0).scale(4.0)).sqrt()).scale(0.5)
    };
    inner
        .roots(3)
        .into_iter()
        .map(|root| (b + root + delta0 / root) / third)
        .collect()
}
