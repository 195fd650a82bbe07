//! A valid conversation of about 50 KB: twenty turns of a coding agent, two calls in each.

use serde_json::{Value, json};

const BYTES: usize = 50_000;

/// The request, as an SDK of Anthropic's writes it.
pub fn request(streams: bool) -> String {
    let tools: Vec<Value> = ["read_file", "run_command", "search"]
        .iter()
        .map(|name| {
            json!({"name": name, "description": "A tool of an agent, described as such tools are described: what it does, when to use it, what it gives back.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string", "description": "A path below the project"}}, "required": ["path"]}})
        })
        .collect();
    let mut messages = vec![json!({"role": "user", "content": "Find out why the build fails, and mend it."})];
    for turn in 0.. {
        let ids = [format!("toolu_01A{turn:021}"), format!("toolu_01B{turn:021}")];
        let call = |id: &String, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {"path": format!("src/module_{turn}/lib.rs")}});
        messages.push(json!({"role": "assistant", "content": [
            {"type": "text", "text": "I look at the file and run the build once more to see what it says."},
            call(&ids[0], "read_file"), call(&ids[1], "run_command")]}));
        let result = |id: &String| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text(turn)}]});
        messages.push(json!({"role": "user", "content": [result(&ids[0]), result(&ids[1])]}));
        let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 4096, "stream": streams, "system": "You are a careful engineer.", "tools": tools, "messages": messages});
        let body = body.to_string();
        if body.len() >= BYTES {
            return body;
        }
    }
    unreachable!("it grows with every turn")
}

/// Lines of code, with the quotes and line breaks that code has.
fn text(turn: usize) -> String {
    (0..12)
        .map(|line| format!("    let value_{line} = table.get(\"key {turn}\").map(|it| it + {line});\n"))
        .collect()
}
