//! A conversation that grows inside the proxy: messages behind those of a request.

use serde_json::{Value, json};
use steadyhand_conversation::{Provider, messages_key};

/// Puts messages behind those of a request.
pub(super) fn append(provider: Provider, request: &mut Value, more: Vec<Value>) {
    let key = messages_key(provider);
    if let Some(words) = request[key].as_str() {
        // A question alone stands for a message.
        request[key] = json!([{"role": "user", "content": words}]);
    }
    if let Some(Value::Array(messages)) = request.get_mut(key) {
        messages.extend(more);
    }
}
