//! How deep values may contain each other.

use crate::error::{MathError, Result};
use crate::value::Value;
use crate::value::env::Env;
use crate::value::function::Function;
use crate::value::node::Node;

/// How many levels of objects, matrices and functions a value may contain.
const NESTING_MAX: usize = 64;

/// Values that are kept must not nest without end: dropping them walks down every level.
pub(crate) fn check_nesting(env: &mut Env, value: &Value) -> Result<()> {
    match value {
        Value::Matrix(_)
        | Value::Object(_)
        | Value::Function(_)
        | Value::Results(_)
        | Value::Node(_) => {}
        _ => return Ok(()),
    }
    if is_nested_within(env, value, NESTING_MAX)? {
        return Ok(());
    }
    Err(MathError::limit(format!(
        "Value nested too deeply: at most {NESTING_MAX} levels are allowed"
    )))
}

fn is_nested_within(env: &mut Env, value: &Value, levels: usize) -> Result<bool> {
    // Shared parts are visited again for every path to them: whoever shares a lot pays a lot.
    env.purse.pay(1)?;
    let mut all = |values: &mut dyn Iterator<Item = &Value>| -> Result<bool> {
        for value in values {
            if levels == 0 || !is_nested_within(env, value, levels - 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    match value {
        Value::Matrix(matrix) => {
            let mut nested = matrix.cells.iter().filter(|cell| {
                matches!(
                    cell,
                    Value::Matrix(_) | Value::Object(_) | Value::Function(_) | Value::Results(_)
                )
            });
            all(&mut nested)
        }
        Value::Object(object) => all(&mut object.entries.values()),
        Value::Results(results) => all(&mut results.iter()),
        Value::Function(Function::User(user)) => {
            let mut frame = user.captured.as_deref();
            let mut frames = 0;
            while let Some(current) = frame {
                frames += 1;
                if frames > levels || !all(&mut current.values.iter().map(|(_, value)| value))? {
                    return Ok(false);
                }
                frame = current.outer.as_deref();
            }
            Ok(true)
        }
        Value::Function(Function::Typed(object)) => all(&mut object.entries.values()),
        Value::Function(Function::Method(method)) => all(&mut std::iter::once(&method.0)),
        Value::Node(node) => Ok(!matches!(**node, Node::Constant(Value::Node(_))) || levels > 0),
        _ => Ok(true),
    }
}
