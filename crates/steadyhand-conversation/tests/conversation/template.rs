//! What a Qwen model sees: our tools and conversations through Qwen3's own chat template.
//!
//! minijinja stands for the servers that render templates without Python; Python's jinja2, set up as Hugging
//! Face's transformers do, is the reference.

use std::fs;
use std::io;

use minijinja::Environment;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value as Printed};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use serde_json::{Value, json};
use steadyhand::Arguments;
use steadyhand_conversation::{Provider, convert_tools, recover_calls, repair};

use super::peers::{ask, installed};
use super::render::{Step, calls, render, result, says, user};
use super::tools::definitions;

/// As Qwen's own documentation and transformers' `get_json_schema` write the tool that Qwen's examples have.
const DOCUMENTED: &str = r#"{"type": "function", "function": {"name": "get_current_temperature", "description": "Get current temperature at a location.", "parameters": {"type": "object", "properties": {"location": {"type": "string", "description": "The location to get the temperature for, in the format \"City, State, Country\"."}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "The unit to return the temperature in."}}, "required": ["location"]}}}"#;

/// The same tool as LangChain has it.
fn temperature() -> Value {
    json!({
        "name": "Temperature",
        "lc_name": "get_current_temperature",
        "description": "Get current temperature at a location.",
        "schema": {"type": "object", "properties": {
            "location": {"type": "string", "description": "The location to get the temperature for, in the format \"City, State, Country\"."},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "The unit to return the temperature in."},
        }, "required": ["location"]},
        "invoke": "gone", "lc_kwargs": {"verbose": true},
    })
}

#[test]
fn v21_qwen3_is_shown_our_tools_in_its_own_format() {
    let converted = convert_tools(Provider::Ollama, [&temperature()]);
    let shown =
        prompt(&json!({"messages": [{"role": "user", "content": "u"}], "tools": converted.tools}));
    assert_eq!(shown_tools(&shown), [DOCUMENTED]);
    // The rest of the prompt is the template's, and nothing of the definition is in it.
    let without = shown.replace(DOCUMENTED, "");
    assert!(without.ends_with("<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n"));
    assert!(
        !without.contains("Temperature") && !without.contains("invoke"),
        "{without}"
    );
}

#[test]
fn v21_every_tool_reaches_the_model_whole_and_on_a_line_of_its_own() {
    let converted = convert_tools(Provider::Ollama, &definitions());
    let shown =
        prompt(&json!({"messages": [{"role": "user", "content": "u"}], "tools": converted.tools}));
    let lines = shown_tools(&shown);
    assert_eq!(lines.len(), definitions().len());
    for (line, (tool, definition)) in lines.iter().zip(converted.tools.iter().zip(definitions())) {
        let read: Value = serde_json::from_str(line).expect("a line is JSON");
        assert_eq!(&read, tool);
        let keys: Vec<&String> = read.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["type", "function"]);
        let named = definition["schema"]["properties"].as_object();
        for name in named.into_iter().flat_map(|properties| properties.keys()) {
            let shown = &read["function"]["parameters"]["properties"];
            assert!(shown.get(name).is_some(), "{name} is not in {line}");
        }
    }
}

#[test]
fn v21_tools_and_conversations_render_as_the_reference_renders_them() {
    let mut conversations = Vec::new();
    for (tools, messages) in conversations_of_all_kinds() {
        let tools = convert_tools(Provider::Ollama, &tools).tools;
        let (repaired, _) = repair(
            Provider::Ollama,
            json!({"model": "m", "messages": messages}),
        );
        let messages = as_ollama_reads(&repaired["messages"]);
        conversations.push(json!({"messages": messages, "tools": tools}));
    }
    let given = json!({"template": template(), "conversations": conversations});
    let theirs = ask("jinja2", "chat_template.py", given);
    for (conversation, theirs) in conversations
        .iter()
        .zip(theirs.as_array().expect("prompts"))
    {
        assert_eq!(Some(prompt(conversation).as_str()), theirs.as_str());
    }
}

#[test]
fn v21_the_model_sees_what_langchain_ollama_would_have_shown_it() {
    // The definitions without anything that Ollama drops.
    let definitions = json!([
        {"name": "get_current_temperature", "description": temperature()["description"], "schema": temperature()["schema"]},
        {"name": "list_files", "description": "Lists files", "schema": {"type": "object", "properties": {"folder": {"type": "string"}, "deep": {"type": "boolean"}}, "required": ["folder"]}},
    ]);
    let theirs = ask(
        "langchain-ollama",
        "langchain_ollama_tools.py",
        definitions.clone(),
    );
    let ours = convert_tools(Provider::Ollama, definitions.as_array().expect("a list")).tools;
    let shown = |tools: &Value| {
        let prompt =
            prompt(&json!({"messages": [{"role": "user", "content": "u"}], "tools": tools}));
        let lines: Vec<Value> = shown_tools(&prompt)
            .iter()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        // Their client sorts the fields otherwise; the rest of the prompt is the same to the letter.
        (lines, prompt.split("<tools>").next().map(str::to_owned))
    };
    assert_eq!(shown(&json!(ours)), shown(&theirs));
}

#[test]
fn v21_calls_in_a_history_read_as_the_calls_they_were() {
    let args = json!({"location": "Zürich <b>\"&'</b>", "unit": "celsius"});
    let messages = json!([
        {"role": "user", "content": "How warm is it?"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "call_1", "function": {"name": "get_current_temperature", "arguments": args}}]},
        {"role": "tool", "tool_name": "get_current_temperature", "content": "18 °C"},
    ]);
    let shown = prompt(&json!({"messages": messages, "tools": []}));
    let said = between(&shown, "<|im_start|>assistant\n", "<|im_end|>");
    let (calls, rest) = recover_calls(said, &[temperature()]);
    assert_eq!((calls.len(), rest.as_str()), (1, ""), "{said}");
    assert_eq!(calls[0].name, "get_current_temperature");
    assert_eq!(calls[0].args, Arguments::Json(args));
    assert_eq!(
        between(&shown, "<tool_response>\n", "\n</tool_response>"),
        "18 °C"
    );
}

#[test]
fn v21_a_repaired_history_looks_like_one_that_never_broke() {
    let whole = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        result("b", "r2x"),
        user("u2x"),
    ];
    let order = |order: [usize; 5]| order.map(|index| whole[index].clone());
    let broken: [Vec<Step>; 4] = [
        order([0, 1, 3, 2, 4]).to_vec(),
        order([0, 1, 4, 2, 3]).to_vec(),
        order([0, 1, 2, 4, 3]).to_vec(),
        [&whole[..4], &whole[2..3], &whole[4..]].concat(),
    ];
    let seen = |steps: &[Step]| {
        let (repaired, _) = repair(Provider::Ollama, render(Provider::Ollama, steps));
        prompt(&repaired)
    };
    for broken in broken {
        assert_eq!(seen(&broken), seen(&whole));
    }
    // A result that is missing is answered where it belongs, in words the model can use.
    let shown = seen(&[user("u1x"), calls(&["a"]), user("u2x")]);
    let answer = between(&shown, "<tool_response>\n", "\n</tool_response>");
    assert!(
        answer.starts_with("Error: the result of this call is missing"),
        "{answer}"
    );
}

/// Tools and messages, the messages as clients really send them.
fn conversations_of_all_kinds() -> Vec<(Vec<Value>, Value)> {
    let steps = [
        user("u1x"),
        calls(&["a", "b"]),
        result("a", "r1x"),
        says("a1x"),
        user("u2x"),
        calls(&["c"]),
        result("z", "r3x"),
    ];
    let odd = "Grüße, 日本 \u{1f600} <b> & ' \" \\ \n\t{{ no }} {% no %}";
    vec![
        (
            vec![temperature()],
            json!([{"role": "user", "content": odd}]),
        ),
        (
            definitions(),
            json!([{"role": "system", "content": odd}, {"role": "user", "content": "u"}]),
        ),
        (
            Vec::new(),
            json!([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]),
        ),
        (
            vec![temperature()],
            render(Provider::Ollama, &steps)["messages"].clone(),
        ),
        (
            vec![temperature()],
            json!([
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": "<think>\nhm\n</think>\n\nI look.", "tool_calls": [{"function": {"name": "look", "arguments": {"at": odd, "n": 1.5, "deep": [{"a": null}]}}}]},
                {"role": "tool", "tool_name": "look", "content": odd},
                {"role": "assistant", "content": "done"},
                {"role": "user", "content": "<tool_response>\nmine\n</tool_response>"},
                {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
            ]),
        ),
    ]
}

/// Ollama reads a content that is not there as an empty text.
fn as_ollama_reads(messages: &Value) -> Value {
    let mut messages = messages.clone();
    for message in messages.as_array_mut().expect("a list") {
        if message["content"].is_null() {
            message["content"] = json!("");
        }
    }
    messages
}

fn template() -> String {
    let path = installed("qwen3", "tokenizer_config.json");
    let text = fs::read_to_string(path).expect("it can be read");
    let config: Value = serde_json::from_str(&text).expect("it is JSON");
    config["chat_template"]
        .as_str()
        .expect("a template")
        .to_owned()
}

/// The whole prompt that a model gets for a conversation.
fn prompt(conversation: &Value) -> String {
    let mut environment = Environment::new();
    let mut syntax = SyntaxConfig::builder();
    let syntax = syntax.trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("it is Jinja's"));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", |value: Printed| as_python_writes(&value));
    let mut given = json!({"messages": conversation["messages"], "add_generation_prompt": true});
    given["tools"] = conversation["tools"].clone();
    let shown = environment.render_str(&template(), Printed::from(Serde(given)));
    shown.unwrap_or_else(|error| panic!("{error:#}"))
}

/// The lines between the tags.
fn shown_tools(prompt: &str) -> Vec<&str> {
    between(prompt, "XML tags:\n<tools>\n", "\n</tools>")
        .lines()
        .collect()
}

fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text
        .split_once(start)
        .unwrap_or_else(|| panic!("{start} is not in {text}"));
    let (inside, _) = rest
        .split_once(end)
        .unwrap_or_else(|| panic!("{end} is not in {text}"));
    inside
}

/// JSON with the spaces of Python's `json.dumps`.
fn as_python_writes(value: &Printed) -> String {
    struct Spaced;

    impl Formatter for Spaced {
        fn begin_array_value<W: ?Sized + io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> io::Result<()> {
            if first {
                Ok(())
            } else {
                writer.write_all(b", ")
            }
        }

        fn begin_object_key<W: ?Sized + io::Write>(
            &mut self,
            writer: &mut W,
            first: bool,
        ) -> io::Result<()> {
            if first {
                Ok(())
            } else {
                writer.write_all(b", ")
            }
        }

        fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
            writer.write_all(b": ")
        }
    }

    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, Spaced);
    value.serialize(&mut serializer).expect("it is JSON");
    String::from_utf8(text).expect("JSON is UTF-8")
}
