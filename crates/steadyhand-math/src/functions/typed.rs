//! Functions chosen by the types of their arguments: `typed({"number": f, "string": g})`

use std::sync::Arc;

use crate::convert::wrong_type;
use crate::error::{MathError, Result};
use crate::value::env::Env;
use crate::value::function::{Builtin, Function};
use crate::value::{Object, Value};

pub(crate) const TABLE: &[Builtin] = &[Builtin::new("typed", 1..=2, typed)];

fn typed(_: &mut Env, args: &[Value]) -> Result<Value> {
    match args {
        [Value::Object(signatures)] | [Value::Text(_), Value::Object(signatures)] => {
            for value in signatures.entries.values() {
                if !matches!(value, Value::Function(_)) {
                    return Err(wrong_type("typed", value, 0));
                }
            }
            Ok(Value::Function(Function::Typed(signatures.clone())))
        }
        _ => Err(wrong_type("typed", &args[0], 0)),
    }
}

pub(crate) fn dispatch(
    env: &mut Env,
    signatures: &Arc<Object>,
    arguments: &[Value],
) -> Result<Value> {
    let accepts = |signature: &str| {
        let parameters: Vec<&str> = signature.split(',').map(str::trim).collect();
        parameters.len() == arguments.len()
            && parameters
                .iter()
                .zip(arguments)
                .all(|(parameter, argument)| {
                    parameter
                        .split('|')
                        .map(str::trim)
                        .any(|kind| kind == "any" || kind == argument.type_name())
                })
    };
    for (signature, function) in &signatures.entries {
        if accepts(signature)
            && let Value::Function(function) = function
        {
            return env.call_function(function, arguments);
        }
    }
    let kinds: Vec<&str> = arguments.iter().map(Value::type_name).collect();
    Err(MathError::arguments(format!(
        "No signature of this typed function takes ({})",
        kinds.join(", ")
    )))
}
