//! The parts of one entry of the registry.

use serde_json::Value;

use super::{BY_NAME, Fault, Implementation};
use crate::foreign::Node;

pub(super) fn implementation(node: &Node) -> Result<Implementation, Fault> {
    const TYPES: [&str; 3] = ["mock", "builtin", "internal"];
    let kind = node.get("type").and_then(Node::text).unwrap_or_default();
    let handler = || match node.get("handler").and_then(Node::text) {
        Some(handler) if !handler.is_empty() => Ok(handler.to_owned()),
        _ => Err((
            node.at,
            format!("its implementation '{kind}' names no handler"),
            "add \"handler\": \"…\"".to_owned(),
        )),
    };
    match kind {
        "mock" => match node.get("mock_response") {
            Some(answer) => Ok(Implementation::Mock(answer.value())),
            None => Err((
                node.at,
                "its implementation 'mock' has no answer".to_owned(),
                "add \"mock_response\": …".to_owned(),
            )),
        },
        "builtin" => Ok(Implementation::Builtin(handler()?)),
        "internal" => Ok(Implementation::Internal(handler()?)),
        _ => {
            let at = node.get("type").map_or(node.at, |kind| kind.at);
            let message = match kind {
                "" => "its implementation has no type".to_owned(),
                _ => format!("there is no implementation of type '{}'", short(kind)),
            };
            let help = format!("there are {}{}", TYPES.join(", "), near(kind, TYPES));
            Err((at, message, help))
        }
    }
}

pub(super) fn by_name(name: &str, entry: &Node) -> Result<Implementation, Fault> {
    let builtin = BY_NAME.iter().find(|(known, _)| *known == name);
    if let Some((_, handler)) = builtin {
        return Ok(Implementation::Builtin((*handler).to_owned()));
    }
    let names = BY_NAME.map(|(known, _)| known);
    Err((
        entry.at,
        "it has no implementation, and is none of the tools that need only a name".to_owned(),
        format!(
            "those are {}{}; any other needs \"implementation\": {{\"type\": \"mock\", \"builtin\" or \"internal\", …}}",
            names.join(", "),
            near(name, names),
        ),
    ))
}

pub(super) fn schema(entry: &Node) -> Result<Option<Value>, Fault> {
    let node = entry.get("parameters").or_else(|| entry.get("schema"));
    match node {
        None => Ok(None),
        Some(node) if node.fields().is_some() => Ok(Some(node.value())),
        Some(node) => Err((
            node.at,
            format!("'parameters' must be a JSON Schema, not {}", node.kind()),
            "write {\"type\": \"object\", \"properties\": {…}}".to_owned(),
        )),
    }
}

pub(super) fn label(index: usize, entry: &Node) -> String {
    match entry.get("name").and_then(Node::text) {
        Some(name) if !name.is_empty() => format!("registry[{index}] '{}'", short(name)),
        _ => format!("registry[{index}]"),
    }
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

fn near<const N: usize>(written: &str, known: [&str; N]) -> String {
    let written = short(written);
    let best = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&written, name), name))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match best {
        Some((_, name)) => format!(" (did you mean '{name}'?)"),
        None => String::new(),
    }
}
