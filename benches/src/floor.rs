//! The least an executor of JSON calls can do: look up, parse, validate, call, serialise.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;

use jsonschema::Validator;
use serde::Deserialize;
use serde_json::Value;

use crate::{Sum, sum};

type Work = Pin<Box<dyn Future<Output = Value> + Send>>;

/// Tools by name, with no guard at all.
pub struct Floor {
    tools: HashMap<String, FloorTool>,
}

struct FloorTool {
    validator: Validator,
    run: Box<dyn Fn(Value) -> Work + Send + Sync>,
}

impl Floor {
    /// The one tool.
    pub fn new() -> Floor {
        let schema = serde_json::to_value(schemars::schema_for!(Sum)).expect("a schema is JSON");
        let tool = FloorTool {
            validator: jsonschema::validator_for(&schema).expect("the schema is sound"),
            run: Box::new(|args| {
                Box::pin(async move {
                    let args = Sum::deserialize(args).expect("validated");
                    Value::from(sum(args).await.expect("it adds"))
                })
            }),
        };
        Floor {
            tools: HashMap::from([("sum".to_owned(), tool)]),
        }
    }

    /// JSON text in, JSON text out.
    pub async fn call(&self, name: &str, text: &str) -> String {
        let tool = self.tools.get(name).expect("the tool exists");
        let args: Value = serde_json::from_str(text).expect("the arguments are JSON");
        assert!(tool.validator.is_valid(&args));
        let value = (tool.run)(args).await;
        serde_json::to_string(&value).expect("a value is JSON")
    }
}

impl Default for Floor {
    fn default() -> Floor {
        Floor::new()
    }
}
