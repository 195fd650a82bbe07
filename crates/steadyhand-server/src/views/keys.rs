//! API keys, without what it takes to use them.

use serde_json::{Value, json};

use steadyhand_runtime::access::Key;

/// All of them, in their order.
pub fn list(keys: &[Key], now_ms: u64) -> Value {
    let keys: Vec<Value> = keys.iter().map(|key| one(key, now_ms)).collect();
    json!({"count": keys.len(), "keys": keys})
}

/// One.
pub fn one(key: &Key, now_ms: u64) -> Value {
    let mut view = json!(key);
    view["tools"] = json!({"allow": key.tools.allow, "deny": key.tools.deny});
    view["state"] = json!(key.state(now_ms));
    view
}
