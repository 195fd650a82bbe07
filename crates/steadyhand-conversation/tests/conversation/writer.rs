//! Writes conversations nobody would write: each provider's own messages with anything in any field, in any order.

use fastrand::Rng;
use serde_json::{Map, Value, json};
use steadyhand_conversation::Provider;

/// Writes conversations: mostly right, in places as wrong as JSON can be.
pub(super) struct Writer {
    provider: Provider,
    dice: Rng,
    words: usize,
    /// How many of a hundred fields are spoilt.
    spoilt: u8,
}

impl Writer {
    pub(super) fn new(provider: Provider, seed: u64) -> Writer {
        let mut dice = Rng::with_seed(seed);
        // A part of the conversations has no odd fields: there only the order is wrong.
        let spoilt = [0, 0, 3, 10][dice.usize(..4)];
        Writer {
            provider,
            dice,
            words: 0,
            spoilt,
        }
    }

    pub(super) fn messages(mut self) -> Vec<Value> {
        let count = self.dice.usize(1..9);
        (0..count).flat_map(|_| self.message()).collect()
    }

    fn word(&mut self, letter: char) -> String {
        self.words += 1;
        format!("{letter}{}x", self.words)
    }

    /// From a small stock, so that ids are there twice, in one turn and in several.
    fn id(&mut self) -> String {
        let stock = [
            "callaaaa1",
            "callaaaa2",
            "callaaaa3",
            "calling:4",
            "callaaaa5",
        ];
        stock[self.dice.usize(..stock.len())].to_owned()
    }

    fn name(&mut self) -> String {
        let stock = ["look", "look", "find", "ask", "two words"];
        // LangChain passes names on as they are.
        let count = match self.provider {
            Provider::LangChain => stock.len() - 1,
            _ => stock.len(),
        };
        stock[self.dice.usize(..count)].to_owned()
    }

    fn message(&mut self) -> Vec<Value> {
        let mut messages = match self.dice.u8(..10) {
            0..3 => vec![self.user()],
            3..6 => self.model(),
            6..9 => self.results(),
            _ => vec![self.other()],
        };
        for message in &mut messages {
            self.spoil(message, 0);
        }
        messages
    }

    fn user(&mut self) -> Value {
        let word = self.word('u');
        let parts = self.dice.bool();
        match self.provider {
            Provider::Gemini => json!({"role": "user", "parts": [{"text": word}]}),
            Provider::LangChain => json!({"type": "human", "content": word}),
            Provider::BedrockConverse if parts => {
                json!({"role": "user", "content": [{"text": word}]})
            }
            Provider::OpenAiResponses if parts => {
                json!({"role": "user", "content": [{"type": "input_text", "text": word}]})
            }
            Provider::Anthropic | Provider::OpenAi | Provider::Mistral if parts => {
                json!({"role": "user", "content": [{"type": "text", "text": word}]})
            }
            _ => json!({"role": "user", "content": word}),
        }
    }

    fn model(&mut self) -> Vec<Value> {
        let count = [0, 1, 1, 2, 3][self.dice.usize(..5)];
        let calls: Vec<Value> = (0..count).map(|_| self.call()).collect();
        let word = self.word('a');
        let speaks = count == 0 || self.dice.bool();
        match self.provider {
            Provider::Anthropic => {
                let mut blocks = Vec::new();
                if self.dice.bool() {
                    blocks.push(json!({"type": "thinking", "thinking": "hm", "signature": "sig"}));
                }
                if speaks {
                    blocks.push(json!({"type": "text", "text": word}));
                }
                blocks.extend(calls);
                vec![json!({"role": "assistant", "content": blocks})]
            }
            Provider::BedrockConverse => {
                let mut blocks = Vec::new();
                if speaks {
                    blocks.push(json!({ "text": word }));
                }
                blocks.extend(calls);
                vec![json!({"role": "assistant", "content": blocks})]
            }
            Provider::Gemini => {
                let mut parts = calls;
                if speaks {
                    parts.insert(0, json!({"text": word, "thoughtSignature": "sig"}));
                }
                vec![json!({"role": "model", "parts": parts})]
            }
            Provider::OpenAiResponses => {
                let mut items = calls;
                if speaks {
                    items.insert(0, json!({"role": "assistant", "content": word}));
                }
                if self.dice.bool() {
                    let number = word.trim_end_matches('x').to_owned();
                    if self.dice.bool()
                        && let Some(first) = items.first_mut()
                    {
                        first["id"] = json!(format!("item_{number}"));
                    }
                    let id = format!("rs_{number}");
                    items.insert(0, json!({"type": "reasoning", "id": id, "summary": []}));
                }
                items
            }
            Provider::LangChain => {
                vec![json!({"type": "ai", "content": word, "tool_calls": calls})]
            }
            _ if calls.is_empty() => vec![json!({"role": "assistant", "content": word})],
            _ => {
                let content = if speaks { json!(word) } else { Value::Null };
                vec![json!({"role": "assistant", "content": content, "tool_calls": calls})]
            }
        }
    }

    fn call(&mut self) -> Value {
        let (id, name) = (self.id(), self.name());
        let args = json!({"at": self.word('a')});
        match self.provider {
            Provider::Anthropic => {
                json!({"type": "tool_use", "id": id, "name": name, "input": args})
            }
            Provider::Gemini if self.dice.bool() => {
                json!({"functionCall": {"name": name, "args": args}})
            }
            Provider::Gemini => json!({"functionCall": {"id": id, "name": name, "args": args}}),
            Provider::BedrockConverse => {
                json!({"toolUse": {"toolUseId": id, "name": name, "input": args}})
            }
            Provider::LangChain => {
                json!({"name": name, "args": args, "id": id, "type": "tool_call"})
            }
            Provider::Ollama if self.dice.bool() => {
                json!({"function": {"name": name, "arguments": args}})
            }
            Provider::Ollama => json!({"id": id, "function": {"name": name, "arguments": args}}),
            Provider::OpenAiResponses => {
                json!({"type": "function_call", "call_id": id, "name": name, "arguments": args.to_string()})
            }
            Provider::OpenAi if self.dice.u8(..8) == 0 => {
                json!({"id": id, "type": "custom", "custom": {"name": name, "input": "a0x"}})
            }
            Provider::OpenAi | Provider::Mistral => {
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": args.to_string()}})
            }
        }
    }

    fn results(&mut self) -> Vec<Value> {
        let count = self.dice.usize(1..4);
        let results: Vec<Value> = (0..count).map(|_| self.result()).collect();
        let says = self.dice.u8(..4) == 0;
        let word = self.word('u');
        let last = self.dice.bool();
        let together = |key: &str, text: Value| {
            let mut parts = results.clone();
            if says && last {
                parts.push(text);
            } else if says {
                parts.insert(0, text);
            }
            let mut message = json!({"role": "user"});
            message[key] = Value::Array(parts);
            vec![message]
        };
        match self.provider {
            Provider::Anthropic => together("content", json!({"type": "text", "text": word})),
            Provider::Gemini => together("parts", json!({ "text": word })),
            Provider::BedrockConverse => together("content", json!({ "text": word })),
            _ => results,
        }
    }

    fn result(&mut self) -> Value {
        let (id, name, word) = (self.id(), self.name(), self.word('r'));
        match self.provider {
            Provider::Anthropic if self.dice.bool() => {
                json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": word}], "is_error": true})
            }
            Provider::Anthropic => {
                json!({"type": "tool_result", "tool_use_id": id, "content": word})
            }
            Provider::Gemini if self.dice.bool() => {
                json!({"functionResponse": {"name": name, "response": {"output": word}}})
            }
            Provider::Gemini => {
                json!({"functionResponse": {"id": id, "name": name, "response": {"output": word}}})
            }
            Provider::OpenAiResponses => {
                json!({"type": "function_call_output", "call_id": id, "output": word})
            }
            Provider::BedrockConverse => {
                json!({"toolResult": {"toolUseId": id, "content": [{"text": word}]}})
            }
            Provider::LangChain => {
                json!({"type": "tool", "content": word, "tool_call_id": id, "status": "success"})
            }
            Provider::Ollama if self.dice.bool() => {
                json!({"role": "tool", "tool_name": name, "content": word})
            }
            Provider::Ollama => {
                json!({"role": "tool", "tool_call_id": id, "tool_name": name, "content": word})
            }
            Provider::OpenAi | Provider::Mistral => {
                json!({"role": "tool", "tool_call_id": id, "content": word})
            }
        }
    }

    /// What is rare: the system's words, roles nobody has, contents of kinds nobody knows.
    fn other(&mut self) -> Value {
        let word = self.word('u');
        let stock = [
            json!({"role": "system", "content": word, "type": "system"}),
            json!({"role": "bogus", "content": word, "type": "human"}),
            json!({"content": word, "type": "human", "parts": [{"text": word}]}),
            json!({"role": "user", "content": [{"type": "hologram", "data": word}], "type": "human", "parts": [{"hologram": word}]}),
            json!({"role": "user", "content": "", "type": "human", "parts": []}),
            json!({"role": "user", "content": [], "type": "human", "parts": [{"text": ""}]}),
            json!(word),
            json!({}),
        ];
        let mut message = stock[self.dice.usize(..stock.len())].clone();
        if self.knows_all_there_is() && message.to_string().contains("hologram") {
            return json!(word);
        }
        if let Some(fields) = message.as_object_mut() {
            let foreign = match self.provider {
                Provider::LangChain => "role",
                _ => "type",
            };
            fields.shift_remove(foreign);
            if self.provider == Provider::Gemini && fields.contains_key("parts") {
                fields.shift_remove("content");
            } else {
                fields.shift_remove("parts");
            }
        }
        message
    }

    /// Puts anything anywhere, but never over a word that must not get lost.
    fn spoil(&mut self, value: &mut Value, depth: usize) {
        match value {
            Value::Object(fields) => {
                if self.hits() && !self.knows_all_there_is() {
                    fields.insert("cache_control".to_owned(), json!({"type": "ephemeral"}));
                }
                let keys: Vec<String> = fields.keys().cloned().collect();
                for key in keys {
                    self.spoil_field(fields, &key, depth);
                }
            }
            Value::Array(items) => {
                for item in items.iter_mut() {
                    self.spoil(item, depth + 1);
                }
                if self.hits() {
                    let at = self.dice.usize(..=items.len());
                    let odd = self.odd("");
                    items.insert(at, odd);
                }
            }
            _ => {}
        }
    }

    fn spoil_field(&mut self, fields: &mut Map<String, Value>, key: &str, depth: usize) {
        // A role of another kind changes who said it, which is tried by `other`.
        if self.hits() && key != "role" && !(depth == 0 && key == "type") {
            if self.dice.bool() {
                fields.shift_remove(key);
            } else {
                let odd = self.odd(key);
                fields.insert(key.to_owned(), odd);
            }
        } else if let Some(inner) = fields.get_mut(key) {
            self.spoil(inner, depth + 1);
        }
    }

    /// Mistral refuses every field and every kind of content that it does not know; we let them pass.
    fn knows_all_there_is(&self) -> bool {
        self.provider == Provider::Mistral
    }

    fn hits(&mut self) -> bool {
        self.dice.u8(..100) < self.spoilt
    }

    /// Words that must not get lost are only where somebody says something.
    fn odd(&mut self, key: &str) -> Value {
        let word = match key {
            "content" | "text" | "parts" | "output" => self.word('u'),
            _ => "odd".to_owned(),
        };
        let stock = [
            json!(null),
            json!(0),
            json!(-1.5e300),
            json!(true),
            json!(""),
            json!(" \n"),
            json!([]),
            json!({}),
            json!([null]),
            json!([[[[{}]]]]),
            json!("{\"at\": \"cut"),
            json!("\u{0}\u{202e}"),
            json!(word),
            json!([word]),
            json!({ "text": word }),
            json!([{"type": "text", "text": word}]),
        ];
        stock[self.dice.usize(..stock.len())].clone()
    }
}
