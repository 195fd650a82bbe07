//! Expressions as values: parse, compile, evaluate, parser.

use std::sync::Arc;

use crate::broadcast::each;
use crate::convert::{length, to_f64, wrong_type};
use crate::error::{MathError, Result};
use crate::format::write_value;
use crate::number::digits::{Notation, Style, write_javascript};
use crate::refusals::unsupported;
use crate::value::env::{Env, Variables};
use crate::value::function::Builtin;
use crate::value::node::Node;
use crate::value::unit::Unit;
use crate::value::{Object, ObjectKind, Value};

pub(crate) const TABLE: &[Builtin] = &[
    Builtin::new("parse", 1..=1, |env, args| each(env, &args[0], parse)),
    Builtin::new("compile", 1..=1, |env, args| each(env, &args[0], compile)),
    Builtin::new("evaluate", 1..=2, evaluate),
    Builtin::new("parser", 0..=0, parser),
];

fn read(env: &mut Env, function: &str, value: &Value) -> Result<Node> {
    match value {
        Value::Text(text) => env.parse(text),
        other => Err(wrong_type(function, other, 0)),
    }
}

fn parse(env: &mut Env, value: &Value) -> Result<Value> {
    Ok(Value::Node(Arc::new(read(env, "parse", value)?)))
}

fn compile(env: &mut Env, value: &Value) -> Result<Value> {
    let node = Arc::new(read(env, "compile", value)?);
    Ok(compiled(node))
}

fn compiled(node: Arc<Node>) -> Value {
    Value::object(Object {
        kind: ObjectKind::Compiled,
        ..Object::of([("node", Value::Node(node))])
    })
}

/// Runs with variables of its own, given as an object or left empty.
fn run_apart(env: &mut Env, node: &Node, scope: Option<&Value>) -> Result<Value> {
    let mut variables = Variables::default();
    match scope {
        None | Some(Value::Undefined | Value::Null) => {}
        Some(Value::Object(object)) => {
            env.purse.pay_cells(object.entries.len())?;
            variables.extend(
                object
                    .entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
        Some(other) => return Err(wrong_type("evaluate", other, 1)),
    }
    let (own, frame) = (
        std::mem::replace(&mut env.variables, variables),
        env.frame.take(),
    );
    let result = env.descend().and_then(|()| env.eval(node));
    env.variables = own;
    env.frame = frame;
    env.ascend();
    result
}

fn evaluate(env: &mut Env, args: &[Value]) -> Result<Value> {
    if let Value::Matrix(matrix) = &args[0] {
        // Several texts share their variables.
        let (own, frame) = (std::mem::take(&mut env.variables), env.frame.take());
        if let Some(Value::Object(object)) = args.get(1) {
            env.variables.extend(
                object
                    .entries
                    .iter()
                    .map(|(key, value)| (key.clone(), value.clone())),
            );
        }
        let result = each_text(env, matrix);
        env.variables = own;
        env.frame = frame;
        return result;
    }
    let node = read(env, "evaluate", &args[0])?;
    run_apart(env, &node, args.get(1))
}

fn each_text(env: &mut Env, matrix: &crate::value::matrix::Matrix) -> Result<Value> {
    let mut cells = Vec::with_capacity(matrix.cells.len());
    for text in &matrix.cells {
        let node = read(env, "evaluate", text)?;
        env.descend()?;
        cells.push(env.eval(&node)?);
        env.ascend();
    }
    Ok(crate::value::matrix::Matrix {
        cells,
        ..matrix.clone()
    }
    .into())
}

/// A parser in an expression shares the variables of the expression it is in.
fn parser(_: &mut Env, _: &[Value]) -> Result<Value> {
    Ok(Value::object(Object {
        kind: ObjectKind::Parser,
        ..Object::default()
    }))
}

/// `node.evaluate({x: 2})`, `parser.set("x", 3)`, …
pub(crate) fn method(env: &mut Env, object: &Value, name: &str, args: &[Value]) -> Result<Value> {
    match (object, name) {
        (Value::Node(node), "evaluate" | "eval") => run_apart(env, node, args.first()),
        (Value::Node(node), "compile") => Ok(compiled(node.clone())),
        (Value::Node(node), "toString") => {
            let text = crate::format::write_node(node)?;
            env.purse.pay_text(text.len())?;
            Ok(Value::text(&text))
        }
        (Value::Unit(unit), "toNumber" | "toNumeric") => {
            let number = match args {
                [] => unit.number(env)?,
                [Value::Text(target)] => {
                    let target = Unit::read(env, target)?;
                    unit.number_in(env, &target)?
                }
                [Value::Unit(target), ..] => unit.number_in(env, target)?,
                [other, ..] => return Err(wrong_type(name, other, 0)),
            };
            match name {
                "toNumber" => Ok(Value::Num(to_f64(&number))),
                _ => Ok(number),
            }
        }
        (Value::Num(x), "toFixed") if x.abs() >= 1e21 => Ok(Value::text(&write_javascript(*x))),
        (Value::Big(_), "toFixed") if args.is_empty() => Err(unsupported(
            "toFixed",
            "a big number without a number of digits",
        )),
        (Value::Num(_) | Value::Big(_), "toFixed") => {
            let precision = args.first().map_or(Ok(0), |digits| length(name, digits))?;
            if precision > 100 {
                return Err(MathError::value(
                    "toFixed() digits argument must be between 0 and 100",
                ));
            }
            let style = Style {
                notation: Notation::Fixed,
                precision: Some(precision),
                ..Style::EXACT
            };
            let text = write_value(env, object, &style)?;
            Ok(Value::text(&text))
        }
        (Value::Num(x), "toString") => Ok(Value::text(&write_javascript(*x))),
        (
            Value::Unit(_) | Value::Big(_) | Value::Complex(_) | Value::Frac(_) | Value::Int(_),
            "toString",
        ) => super::construction::string(env, object),
        (Value::Object(object), name) => match (object.kind, name, args) {
            (ObjectKind::Compiled, _, _) => match object.get("node") {
                Some(Value::Node(node)) => run_apart(env, node, args.first()),
                _ => Err(MathError::value("Nothing was compiled")),
            },
            (ObjectKind::Parser, "evaluate" | "eval", [Value::Matrix(matrix)]) => {
                each_text(env, matrix)
            }
            (ObjectKind::Parser, "evaluate" | "eval", [text]) => {
                let node = read(env, "evaluate", text)?;
                env.eval(&node)
            }
            (ObjectKind::Parser, "get", [Value::Text(name)]) => {
                Ok(env.variables.get(name).cloned().unwrap_or(Value::Undefined))
            }
            (ObjectKind::Parser, "set", [Value::Text(name), value]) => {
                env.store(name, value.clone())?;
                Ok(value.clone())
            }
            (ObjectKind::Parser, "remove", [Value::Text(name)]) => {
                env.variables.remove(name);
                Ok(Value::Undefined)
            }
            (ObjectKind::Parser, "clear", []) => {
                env.variables.clear();
                Ok(Value::Undefined)
            }
            _ => Err(MathError::arguments(format!(
                "Unexpected arguments in method {name}"
            ))),
        },
        _ => Err(MathError::arguments(format!(
            "No access to method \"{name}\""
        ))),
    }
}
