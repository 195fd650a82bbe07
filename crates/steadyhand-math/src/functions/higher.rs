//! Functions that take functions: map, filter, forEach.

use std::sync::Arc;

use crate::convert::wrong_type;
use crate::error::{MathError, Result};
use crate::functions::{self};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::{Builtin, Function, UserFunction};
use crate::value::matrix::{Matrix, broadcast_index, broadcast_size, cell_count};
use crate::value::node::{Definition, Index, Node};

pub(crate) const TABLE: &[Builtin] = &[];

/// The function an argument is: a name, a definition, or an expression with one free name.
fn callback(env: &mut Env, node: &Node) -> Result<Function> {
    let inline = match node {
        Node::Symbol(_) | Node::Define(_) | Node::Assign(_) => None,
        other if other.is_shallow() => free_name(env, other),
        _ => None,
    };
    if let Some(parameter) = inline {
        let definition = Definition {
            name: "anonymous".into(),
            parameters: vec![parameter],
            body: node.clone(),
        };
        return Ok(Function::User(Arc::new(UserFunction {
            definition: Arc::new(definition),
            captured: env.frame.clone(),
        })));
    }
    match env.eval(node)? {
        Value::Function(function) => Ok(function),
        other => Err(wrong_type("map", &other, 1)),
    }
}

/// The first name in an expression that means nothing yet: the parameter of an inline function.
fn free_name(env: &Env, node: &Node) -> Option<Arc<str>> {
    match node {
        Node::Symbol(name) => {
            let is_known = env.variable(name).is_some() || functions::is_defined(name);
            (!is_known).then(|| name.clone())
        }
        Node::Paren(inner) | Node::Unary(_, inner) => free_name(env, inner),
        Node::Binary(_, pair) | Node::Implicit(pair) | Node::Percentage(_, pair) => {
            free_name(env, &pair.0).or_else(|| free_name(env, &pair.1))
        }
        Node::Relational(chain) => chain.1.iter().find_map(|node| free_name(env, node)),
        Node::Conditional(parts) => free_name(env, &parts.0)
            .or_else(|| free_name(env, &parts.1))
            .or_else(|| free_name(env, &parts.2)),
        Node::Array(items) => items.iter().find_map(|node| free_name(env, node)),
        Node::Object(entries) => entries.iter().find_map(|(_, node)| free_name(env, node)),
        Node::Call(call) => call.arguments.iter().find_map(|node| free_name(env, node)),
        Node::Access(access) => free_name(env, &access.object).or_else(|| match &access.index {
            Index::Subset(parts) => parts.iter().find_map(|node| free_name(env, node)),
            Index::Property(_) => None,
        }),
        Node::Constant(_)
        | Node::Range(_)
        | Node::Assign(_)
        | Node::AssignInto(_)
        | Node::Define(_)
        | Node::Block(_) => None,
    }
}

/// How many arguments a function wants of value, index, array.
fn arity(function: &Function) -> usize {
    match function {
        Function::User(user) => user.definition.parameters.len(),
        Function::Typed(object) => object
            .entries
            .keys()
            .next()
            .map_or(1, |signature| signature.split(',').count()),
        Function::Builtin(_) | Function::Method(_) => 1,
    }
}

/// Where a cell stands, counted from one.
fn position(at: usize, size: &[usize]) -> Value {
    let mut rest = at;
    let mut index = vec![Value::Num(0.0); size.len()];
    for (slot, length) in index.iter_mut().zip(size).rev() {
        *slot = Value::Num((rest % length + 1) as f64);
        rest /= length;
    }
    Matrix::array(index).into()
}

fn call_on_cell(
    env: &mut Env,
    function: &Function,
    cells: &[Value],
    at: usize,
    size: &[usize],
    whole: &Value,
) -> Result<Value> {
    env.purse.pay(1)?;
    let mut arguments = cells.to_vec();
    let wanted = arity(function);
    if wanted > arguments.len() {
        arguments.push(position(at, size));
    }
    if wanted > arguments.len() {
        arguments.push(whole.clone());
    }
    env.call_function(function, &arguments)
}

pub(crate) fn map(env: &mut Env, args: &[Node]) -> Result<Value> {
    let [lists @ .., function] = args else {
        return Err(too_few("map"));
    };
    if lists.is_empty() {
        return Err(too_few("map"));
    }
    let values: Result<Vec<Value>> = lists.iter().map(|list| env.eval(list)).collect();
    let values = values?;
    let function = callback(env, function)?;
    map_values(env, &values, &function)
}

pub(crate) fn map_values(env: &mut Env, values: &[Value], function: &Function) -> Result<Value> {
    let mut matrices = Vec::new();
    for value in values {
        match value {
            Value::Matrix(matrix) => matrices.push(matrix.clone()),
            other => return Err(wrong_type("map", other, 0)),
        }
    }
    let mut size = matrices[0].size.clone();
    for matrix in &matrices[1..] {
        size = broadcast_size(&size, &matrix.size)?;
    }
    let count = cell_count(&size);
    env.purse.pay_cells(count)?;
    let mut cells = Vec::with_capacity(count);
    for at in 0..count {
        let arguments: Vec<Value> = matrices
            .iter()
            .map(|matrix| matrix.cells[broadcast_index(at, &size, &matrix.size)].clone())
            .collect();
        cells.push(call_on_cell(
            env, function, &arguments, at, &size, &values[0],
        )?);
    }
    if cells.iter().any(|cell| matches!(cell, Value::Matrix(_))) && size.len() == 1 {
        return Ok(Matrix::stack(env, matrices[0].kind, cells)?.into());
    }
    Ok(Matrix {
        kind: matrices[0].kind,
        size,
        cells,
    }
    .into())
}

pub(crate) fn filter(env: &mut Env, args: &[Node]) -> Result<Value> {
    let [list, function] = args else {
        return Err(too_few("filter"));
    };
    let list = env.eval(list)?;
    let Value::Matrix(matrix) = &list else {
        return Err(wrong_type("filter", &list, 0));
    };
    if matrix.size.len() > 1 {
        return Err(MathError::dimensions(
            "Only one dimensional matrices supported",
        ));
    }
    let function = callback(env, function)?;
    let mut cells = Vec::new();
    for (at, cell) in matrix.cells.iter().enumerate() {
        let keep = call_on_cell(
            env,
            &function,
            std::slice::from_ref(cell),
            at,
            &matrix.size,
            &list,
        )?;
        if env.condition(&keep)? {
            cells.push(cell.clone());
        }
    }
    Ok(Matrix::vector(cells).of_kind(matrix.kind).into())
}

pub(crate) fn for_each(env: &mut Env, args: &[Node]) -> Result<Value> {
    let [list, function] = args else {
        return Err(too_few("forEach"));
    };
    let list = env.eval(list)?;
    let Value::Matrix(matrix) = &list else {
        return Err(wrong_type("forEach", &list, 0));
    };
    let function = callback(env, function)?;
    for (at, cell) in matrix.cells.iter().enumerate() {
        call_on_cell(
            env,
            &function,
            std::slice::from_ref(cell),
            at,
            &matrix.size,
            &list,
        )?;
    }
    Ok(Value::Undefined)
}

fn too_few(name: &str) -> MathError {
    MathError::arguments(format!(
        "Too few arguments in function {name} (expected: 2)"
    ))
}
