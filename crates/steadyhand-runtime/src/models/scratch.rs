//! The tools of the check: small, without I/O, and with an answer that a model cannot know by itself.

use serde_json::{Value, json};
use steadyhand::{Tool, ToolError, ToolExecutor, ToolManager};

/// A tool that answers from its arguments.
pub(super) struct Scratch {
    name: &'static str,
    description: &'static str,
    schema: Value,
    answer: fn(&Value) -> Result<Value, ToolError>,
}

/// An executor with these tools and no others.
pub(super) fn executor(tools: Vec<Scratch>) -> ToolExecutor {
    let manager = ToolManager::new();
    for tool in tools {
        let answer = tool.answer;
        let run = move |args: Value| async move { answer(&args) };
        let tool = Tool::with_schema(tool.name, tool.description, tool.schema, run);
        manager.add(tool).expect("a tool of our own");
    }
    ToolExecutor::new(manager)
}

pub(super) fn weather() -> Scratch {
    Scratch {
        name: "get_weather",
        description: "Current weather in a city",
        schema: object(json!({"city": text("The city's name")}), &["city"]),
        answer: |args| {
            Ok(match args["city"].as_str().unwrap_or_default() {
                city if city.to_lowercase().contains("oslo") => {
                    json!({"city": "Oslo", "temperature_c": -7, "sky": "snow"})
                }
                city => json!({"city": city, "temperature_c": 31, "sky": "clear"}),
            })
        },
    }
}

pub(super) fn light() -> Scratch {
    Scratch {
        name: "set_light",
        description: "Sets the brightness of the light in a room",
        schema: object(
            json!({
                "room": {"type": "string", "enum": ["kitchen", "bedroom", "hall"]},
                "brightness": {"type": "integer", "minimum": 0, "maximum": 100, "description": "In percent"},
            }),
            &["room", "brightness"],
        ),
        answer: |_| Ok(json!({"done": true})),
    }
}

pub(super) fn time() -> Scratch {
    Scratch {
        name: "get_time",
        description: "The time in a city now",
        schema: object(json!({"city": text("The city's name")}), &["city"]),
        answer: |_| Ok(json!({"time": "05:17"})),
    }
}

pub(super) fn news() -> Scratch {
    Scratch {
        name: "search_news",
        description: "Searches the news of today",
        schema: object(json!({"query": text("What to look for")}), &["query"]),
        answer: |_| Ok(json!([])),
    }
}

pub(super) fn translate() -> Scratch {
    Scratch {
        name: "translate",
        description: "Translates a text into another language",
        schema: object(
            json!({"text": text("The text"), "language": text("The language to translate into")}),
            &["text", "language"],
        ),
        answer: |args| Ok(args["text"].clone()),
    }
}

pub(super) fn timer() -> Scratch {
    Scratch {
        name: "set_timer",
        description: "Rings after some minutes",
        schema: object(json!({"minutes": {"type": "number"}}), &["minutes"]),
        answer: |_| Ok(json!({"set": true})),
    }
}

pub(super) fn contacts() -> Scratch {
    Scratch {
        name: "find_contact",
        description: "Finds the phone number of a person by name",
        schema: object(json!({"name": text("The person's name")}), &["name"]),
        answer: |args| Ok(json!({"name": args["name"], "number": "5550137"})),
    }
}

pub(super) fn message() -> Scratch {
    Scratch {
        name: "send_message",
        description: "Sends a text message to a phone number",
        schema: object(
            json!({"number": text("The phone number, digits only"), "text": text("What to say")}),
            &["number", "text"],
        ),
        answer: |_| Ok(json!({"sent": true})),
    }
}

/// Fails until it is called as its error says.
pub(super) fn note() -> Scratch {
    Scratch {
        name: "read_note",
        description: "Reads a note by its title",
        schema: object(
            json!({
                "title": text("The note's title"),
                "force": {"type": "boolean", "description": "Read it even if it is locked"},
            }),
            &["title"],
        ),
        answer: |args| match args["force"].as_bool() {
            Some(true) => Ok(json!({"text": "milk, bread, 9 eggs"})),
            Some(false) | None => Err(ToolError::answer(
                "the note is locked; call read_note again with force set to true",
            )),
        },
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}
