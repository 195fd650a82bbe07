//! From a JSON Schema to a form, and from what was filled in to arguments. Pure: what a form cannot show is a field for
//! JSON.

use maud::{Markup, html};
use serde_json::{Map, Value};
use steadyhand::cut::json_bytes;
use steadyhand::{Problem, RepeatedName};

use super::Request;
use super::format::{json, line, visible};
use steadyhand_server::http::history::whole;
use steadyhand_server::http::status::Refused;
use steadyhand_server::overview;

/// What is deeper, or more, is edited as JSON.
const DEPTH_MAX: usize = 3;
const FIELDS_MAX: usize = 60;
const CHOICES_MAX: usize = 200;
/// All choices of a field together, as JSON; and an example in an empty field.
const CHOICES_BYTES_MAX: usize = 16 * 1024;
const EXAMPLE_BYTES_MAX: usize = 300;
/// All fields of a form, in all groups: a group that is meant by many names is shown for each of them.
pub(crate) const FORM_FIELDS_MAX: usize = 600;
/// What a field is called: this, then the JSON Pointer of its value.
const PREFIX: &str = "arg:";

/// What a form holds already.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) arguments: Value,
    /// As it was typed, where that is no JSON.
    pub(super) text: Option<String>,
    pub(super) problems: Vec<Problem>,
    /// How the last attempt went.
    pub(super) message: Option<(&'static str, String)>,
    /// The call that is to be run again.
    pub(super) replay_of: Option<String>,
}

impl Filled {
    /// With the arguments of a call, to edit and run them again.
    pub(super) async fn of_call(request: &Request, id: &str) -> Result<Filled, Refused> {
        let whole = whole(&request.app, &request.identity, id).await?;
        Ok(Filled {
            arguments: whole.details.arguments.unwrap_or_default(),
            replay_of: Some(whole.row.call.id),
            ..Filled::default()
        })
    }
}

/// What kind of field shows a value.
enum Kind<'a> {
    Text,
    Number { is_whole: bool },
    Boolean,
    Choice(&'a [Value]),
    Group(&'a Map<String, Value>),
    Json,
}

/// The schema behind a reference, and what of several it is when only one is not null.
fn resolved<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..8 {
        if let Some(place) = schema["$ref"]
            .as_str()
            .and_then(|place| place.strip_prefix('#'))
        {
            match root.pointer(place) {
                Some(found) => schema = found,
                None => return schema,
            }
            continue;
        }
        let several = schema["anyOf"].as_array().or(schema["oneOf"].as_array());
        let mut real = several
            .into_iter()
            .flatten()
            .filter(|one| one["type"] != "null");
        match (real.next(), real.next()) {
            (Some(only), None) => schema = only,
            _ => return schema,
        }
    }
    schema
}

fn kind<'a>(schema: &'a Value, depth: usize) -> Kind<'a> {
    if let Some(choices) = schema["enum"]
        .as_array()
        .filter(|list| list.len() <= CHOICES_MAX)
        .filter(|_| json_bytes(&schema["enum"], CHOICES_BYTES_MAX) <= CHOICES_BYTES_MAX)
    {
        return Kind::Choice(choices);
    }
    let word = match &schema["type"] {
        Value::String(word) => word.as_str(),
        Value::Array(words) => {
            let mut real = words
                .iter()
                .filter_map(Value::as_str)
                .filter(|word| *word != "null");
            match (real.next(), real.next()) {
                (Some(only), None) => only,
                _ => "",
            }
        }
        _ => "",
    };
    match word {
        "string" => Kind::Text,
        "integer" => Kind::Number { is_whole: true },
        "number" => Kind::Number { is_whole: false },
        "boolean" => Kind::Boolean,
        "object" if depth < DEPTH_MAX => match schema["properties"].as_object() {
            Some(properties) if (1..=FIELDS_MAX).contains(&properties.len()) => {
                Kind::Group(properties)
            }
            _ => Kind::Json,
        },
        _ => Kind::Json,
    }
}

/// The depth that the fields of a form begin with, so that there are not more of them than may be.
fn first_depth(properties: &Map<String, Value>, root: &Value) -> usize {
    let fits = |depth: &usize| count(properties, root, *depth, &mut { FORM_FIELDS_MAX }).is_some();
    (1..DEPTH_MAX).find(fits).unwrap_or(DEPTH_MAX)
}

/// Takes the fields off what is left; `None` when nothing is.
fn count(
    properties: &Map<String, Value>,
    root: &Value,
    depth: usize,
    left: &mut usize,
) -> Option<()> {
    for schema in properties.values() {
        *left = left.checked_sub(1)?;
        if let Kind::Group(inner) = kind(resolved(schema, root), depth) {
            count(inner, root, depth + 1, left)?;
        }
    }
    Some(())
}

/// The form of a tool.
pub(super) fn form(tool: &str, schema: &Value, filled: &Filled, is_safe: bool) -> Markup {
    let root = resolved(schema, schema);
    let properties = root["properties"].as_object();
    let properties = properties.filter(|all| all.len() <= FIELDS_MAX);
    let whole = filled
        .text
        .clone()
        .unwrap_or_else(|| match &filled.arguments {
            Value::Null => String::new(),
            arguments if properties.is_none_or(Map::is_empty) => json(arguments),
            _ => String::new(),
        });
    let is_free = properties.is_none_or(Map::is_empty) || filled.text.is_some();
    html! {
        form.try id="try" method="post" action=(format!("{}/run", overview::page("tools", tool))) data-keep data-testid="try" {
            @if let Some((tone, message)) = &filled.message { p.(tone) role="alert" { (line(message, 400)) } }
            @if let Some(of) = &filled.replay_of { input type="hidden" name="replay_of" value=(of); }
            @if let Some(properties) = properties {
                (fields(properties, root, schema, "", &filled.arguments, &filled.problems, first_depth(properties, schema)))
                @if properties.is_empty() { p.mute { "It takes no arguments." } }
            }
            (elsewhere(&filled.problems, properties))
            details open[is_free] {
                summary { "Edit as JSON" }
                label.hidden for="json" { "Arguments as JSON" }
                textarea id="json" name="json" rows="5" spellcheck="false" placeholder="{}" { (whole) }
                p.note { "What stands here is used instead of the fields." }
            }
            div.actions {
                button.primary type="submit" name="do" value="run" { "Run" }
                button type="submit" name="do" value="validate" { "Validate only" }
                @if !is_safe { span.note { "Runs for real, and is not known to be safe to repeat." } }
            }
        }
    }
}

/// Problems that no field shows.
fn elsewhere(problems: &[Problem], properties: Option<&Map<String, Value>>) -> Markup {
    let has_field = |problem: &&Problem| {
        let first = problem.at.split('/').nth(1).unwrap_or_default();
        !properties.is_some_and(|all| all.contains_key(&unescaped(first)))
    };
    html! { @for problem in problems.iter().filter(has_field) { p.bad { (line(&problem.message, 300)) } } }
}

fn fields(
    properties: &Map<String, Value>,
    group: &Value,
    root: &Value,
    pointer: &str,
    values: &Value,
    problems: &[Problem],
    depth: usize,
) -> Markup {
    let is_required = |name: &str| {
        let names = group["required"].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).any(|one| one == name)
    };
    html! {
        @for (name, schema) in properties {
            @let place = format!("{pointer}/{}", escaped(name));
            @let schema = resolved(schema, root);
            (field(name, schema, root, &place, &values[name.as_str()], problems, is_required(name), depth))
        }
    }
}

#[allow(
    clippy::too_many_arguments,
    reason = "one value and everything about it"
)]
fn field(
    name: &str,
    schema: &Value,
    root: &Value,
    place: &str,
    value: &Value,
    problems: &[Problem],
    is_required: bool,
    depth: usize,
) -> Markup {
    let id = format!("{PREFIX}{place}");
    let problem = problems.iter().find(|problem| problem.at == place);
    let about = format!("{id}-about");
    let described = schema["description"]
        .as_str()
        .filter(|text| !text.is_empty());
    let describes = (problem.is_some() || described.is_some()).then_some(about.as_str());
    let invalid = problem.map(|_| "true");
    let label = html! { (visible(name)) @if is_required { span.mute { " required" } } };
    if let Kind::Group(properties) = kind(schema, depth) {
        return html! {
            fieldset { legend { (label) }
                @if let Some(text) = described { p.note { (line(text, 200)) } }
                (fields(properties, schema, root, place, value, problems, depth + 1)) }
        };
    }
    html! {
        div.field {
            label for=(id) { (label) }
            @match kind(schema, depth) {
                Kind::Text => { input id=(id) name=(id) type="text" value=[value.as_str()] placeholder=[example(schema)] maxlength=[schema["maxLength"].as_u64()]
                    aria-invalid=[invalid] aria-describedby=[describes] autocomplete="off"; }
                Kind::Number { is_whole } => { input id=(id) name=(id) type="text" inputmode=(if is_whole { "numeric" } else { "decimal" }) value=[text_of(value)]
                    placeholder=[range(schema)] aria-invalid=[invalid] aria-describedby=[describes] autocomplete="off"; }
                Kind::Boolean => { select id=(id) name=(id) aria-invalid=[invalid] aria-describedby=[describes] {
                    option value="" { "not set" }
                    @for word in [true, false] { option value=(word) selected[value == &Value::Bool(word)] { (word) } }
                } }
                Kind::Choice(choices) => { select id=(id) name=(id) aria-invalid=[invalid] aria-describedby=[describes] {
                    option value="" { @if is_required { "choose" } @else { "not set" } }
                    @for choice in choices { option value=(choice) selected[choice == value] { (line(&json(choice), 80)) } }
                } }
                Kind::Group(_) | Kind::Json => { textarea id=(id) name=(id) rows="2" spellcheck="false" placeholder="JSON" aria-invalid=[invalid] aria-describedby=[describes] {
                    @if !value.is_null() { (serde_json::to_string(value).unwrap_or_default()) }
                } }
            }
            @if describes.is_some() {
                p.note id=(about) {
                    @if let Some(problem) = problem { strong.bad { (line(&problem.message, 300)) } " " }
                    @if let Some(text) = described { (line(text, 200)) }
                }
            }
        }
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

fn example(schema: &Value) -> Option<String> {
    let first = schema["examples"].as_array().and_then(|all| all.first());
    let default = Some(&schema["default"]).filter(|value| !value.is_null());
    let example = first.or(default)?;
    let is_short = json_bytes(example, EXAMPLE_BYTES_MAX) <= EXAMPLE_BYTES_MAX;
    is_short.then(|| text_of(example))?
}

/// `1 to 100`.
fn range(schema: &Value) -> Option<String> {
    match (text_of(&schema["minimum"]), text_of(&schema["maximum"])) {
        (Some(low), Some(high)) => Some(format!("{low} to {high}")),
        (Some(low), None) => Some(format!("at least {low}")),
        (None, Some(high)) => Some(format!("at most {high}")),
        (None, None) => example(schema),
    }
}

/// The arguments that were filled in. The error is the text that is no JSON, and what is wrong with it.
pub(super) fn arguments(
    schema: &Value,
    sent: &[(String, String)],
) -> Result<Value, (String, String)> {
    let whole = sent
        .iter()
        .find(|(name, value)| name == "json" && !value.trim().is_empty());
    if let Some((_, text)) = whole {
        if let Some(repeated) = RepeatedName::first_in(text) {
            return Err((text.clone(), repeated.message()));
        }
        return serde_json::from_str(text).map_err(|error| {
            (
                text.clone(),
                format!("This is no JSON: {}", steadyhand::plain_words::json(&error)),
            )
        });
    }
    let root = resolved(schema, schema);
    let mut arguments = Map::new();
    if let Some(properties) = root["properties"].as_object() {
        let depth = first_depth(properties, schema);
        read(properties, schema, "", sent, depth, &mut arguments);
    }
    Ok(Value::Object(arguments))
}

fn read(
    properties: &Map<String, Value>,
    root: &Value,
    pointer: &str,
    sent: &[(String, String)],
    depth: usize,
    into: &mut Map<String, Value>,
) {
    for (name, schema) in properties {
        let place = format!("{pointer}/{}", escaped(name));
        let schema = resolved(schema, root);
        let kind = kind(schema, depth);
        if let Kind::Group(properties) = kind {
            let mut inside = Map::new();
            read(properties, root, &place, sent, depth + 1, &mut inside);
            if !inside.is_empty() {
                into.insert(name.clone(), Value::Object(inside));
            }
            continue;
        }
        let found = sent
            .iter()
            .find(|(key, value)| key.strip_prefix(PREFIX) == Some(&place) && !value.is_empty());
        let Some((_, text)) = found else { continue };
        // What is not what it should be goes on as a text: the check says what is wrong with it, in its own words.
        let value = match kind {
            Kind::Text => Value::String(text.clone()),
            _ if RepeatedName::first_in(text).is_some() => Value::String(text.clone()),
            Kind::Number { .. } | Kind::Boolean | Kind::Choice(_) | Kind::Json | Kind::Group(_) => {
                serde_json::from_str(text.trim()).unwrap_or_else(|_| Value::String(text.clone()))
            }
        };
        into.insert(name.clone(), value);
    }
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sent(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_is_filled_in_becomes_arguments_of_the_schemas_types() {
        let schema = json!({"type": "object", "required": ["area"], "properties": {
            "area": {"type": "string"}, "zip": {"type": "string"}, "level": {"type": "integer"},
            "state": {"enum": ["on", "off", 3]}, "deep": {"$ref": "#/$defs/deep"},
            "soft": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}, "list": {"type": "array"}, "a/b": {"type": "number"},
        }, "$defs": {"deep": {"type": "object", "properties": {"seconds": {"type": "number"}}}}});
        let filled = sent(&[
            ("arg:/area", "kitchen"),
            ("arg:/zip", "012"),
            ("arg:/level", "40"),
            ("arg:/state", "3"),
            ("arg:/deep/seconds", "1.5"),
            ("arg:/soft", "false"),
            ("arg:/list", "[1, 2]"),
            ("arg:/a~1b", "2"),
            ("json", " "),
        ]);
        let wanted = json!({"area": "kitchen", "zip": "012", "level": 40, "state": 3, "deep": {"seconds": 1.5},
            "soft": false, "list": [1, 2], "a/b": 2});
        assert_eq!(arguments(&schema, &filled), Ok(wanted));
        let wrong = sent(&[("arg:/level", "many")]);
        assert_eq!(arguments(&schema, &wrong), Ok(json!({"level": "many"})));
        assert_eq!(
            arguments(&schema, &sent(&[("json", "{\"x\": 1}")])),
            Ok(json!({"x": 1}))
        );
        assert!(arguments(&schema, &sent(&[("json", "{")])).is_err());
    }

    #[test]
    fn a_schema_that_refers_to_itself_makes_a_form_with_an_end() {
        let schema = json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "x": {"type": "string"}}},
            "round": {"$ref": "#/$defs/round"}}});
        let html = form("t", &schema, &Filled::default(), true).into_string();
        assert!(
            html.contains("arg:/next/next/next") && html.len() < 10_000,
            "{html}"
        );
        let round = json!({"$ref": "#/$defs/round", "$defs": {"round": {"$ref": "#/$defs/round"}}});
        form("t", &round, &Filled::default(), true);
    }
}
