//! The official JSON-Schema-Test-Suite, through calls: a tool with the case's schema takes the case's value, or refuses
//! it. `scripts/json-schema-suite` prints the figures of docs/standards.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use steadyhand::testing::script;
use steadyhand::{FailureCode, ToolExecutor, ToolManager};

use crate::support::call;

/// The folder of a draft, and how a schema names it.
const DRAFTS: [(&str, &str); 5] = [
    (
        "draft2020-12",
        "https://json-schema.org/draft/2020-12/schema",
    ),
    (
        "draft2019-09",
        "https://json-schema.org/draft/2019-09/schema",
    ),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft4", "http://json-schema.org/draft-04/schema#"),
];

/// A schema that names another document; the suite has them in a folder of its own.
const REMOTE: &str = "other documents are not fetched: a schema must hold what it refers to";

/// Where we differ from the suite otherwise: how the case's name begins, and why.
const EXCEPTIONS: [(&str, &str); 3] = [
    (
        "draft2020-12/format: ",
        "formats are checked, although a 2020-12 schema cannot demand it (the suite expects annotations only)",
    ),
    (
        "draft2020-12/vocabulary: schema that uses custom metaschema with with no validation vocabulary: no validation",
        "a meta-schema of one's own is not fetched, so all keywords are checked",
    ),
    (
        "draft2019-09/vocabulary: schema that uses custom metaschema with with no validation vocabulary: no validation",
        "a meta-schema of one's own is not fetched, so all keywords are checked",
    ),
];

/// The address that a case gets which has none, so that `#` in it means itself.
const CASE: &str = "https://example.com/case";

#[derive(Default)]
struct Figures {
    cases: usize,
    agree: usize,
    exceptions: BTreeMap<&'static str, usize>,
    /// What nobody explained.
    others: Vec<String>,
}

#[tokio::test]
async fn f07_the_official_suite_of_json_schema_agrees_with_what_calls_are_taken() {
    let suite = suite();
    let mut report =
        String::from("| draft | cases | agree | exceptions | others |\n|---|---|---|---|---|\n");
    let mut others = Vec::new();
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    for (draft, meta_schema) in DRAFTS {
        let mut figures = Figures::default();
        for file in files(&suite.join("tests").join(draft)) {
            run_file(&suite, &file, meta_schema, &mut figures).await;
        }
        let excepted: usize = figures.exceptions.values().sum();
        report.push_str(&format!(
            "| {draft} | {} | {} | {excepted} | {} |\n",
            figures.cases,
            figures.agree,
            figures.others.len()
        ));
        for (reason, count) in figures.exceptions {
            *reasons.entry(reason).or_default() += count;
        }
        others.extend(figures.others);
    }
    for (reason, count) in &reasons {
        report.push_str(&format!("{count} cases: {reason}\n"));
    }
    #[allow(clippy::print_stdout, reason = "scripts/json-schema-suite shows it")]
    {
        println!("{report}");
    }
    let shown: Vec<&String> = others.iter().take(400).collect();
    assert!(others.is_empty(), "{} unexpected: {shown:#?}", others.len());
}

async fn run_file(suite: &Path, file: &Path, meta_schema: &str, figures: &mut Figures) {
    let text = std::fs::read_to_string(file).expect("a file of the suite");
    let groups: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let name = file
        .strip_prefix(suite.join("tests"))
        .expect("in the suite");
    let name = name.with_extension("");
    for group in &groups {
        for test in group["tests"].as_array().expect("tests") {
            let case = format!("{}: {}: {}", name.display(), text_of(group), text_of(test));
            let expected = test["valid"].as_bool().expect("a verdict");
            let mut taken = Ok(expected);
            for (schema, arguments) in as_tools(&group["schema"], &test["data"], meta_schema) {
                if taken == Ok(expected) {
                    taken = is_taken(schema, arguments).await;
                }
            }
            figures.cases += 1;
            if taken == Ok(expected) {
                figures.agree += 1;
                continue;
            }
            let is_remote = |fault: &String| fault.contains("leads outside the schema");
            let reason = match &taken {
                Err(fault) if is_remote(fault) => Some(REMOTE),
                _ => reason_for(&case),
            };
            match reason {
                Some(reason) => *figures.exceptions.entry(reason).or_default() += 1,
                None => {
                    let other = format!("{case}: expected {expected}, {taken:?}");
                    figures.others.push(other);
                }
            }
        }
    }
}

fn reason_for(case: &str) -> Option<&'static str> {
    let found = EXCEPTIONS
        .iter()
        .find(|(beginning, _)| case.starts_with(beginning));
    found.map(|(_, reason)| *reason)
}

fn text_of(value: &Value) -> &str {
    value["description"].as_str().unwrap_or_default()
}

/// Whether a tool of this schema takes these arguments; an error says why there is no such tool.
async fn is_taken(schema: Value, arguments: Value) -> Result<bool, String> {
    let tool = script("t").schema(schema);
    let tools = ToolManager::new();
    tools
        .add(tool.tool().strict())
        .map_err(|refused| refused.to_string())?;
    let outcome = ToolExecutor::new(tools).execute(call("t", arguments)).await;
    match outcome.failure() {
        None => Ok(true),
        Some(failure) if failure.code == FailureCode::ValidationError => Ok(false),
        Some(failure) => Err(failure.to_string()),
    }
}

/// The schema and the value of a case as a tool's: inside another schema, as the argument `value`; and where it
/// describes objects, as the schema of the arguments themselves.
fn as_tools(schema: &Value, data: &Value, meta_schema: &str) -> Vec<(Value, Value)> {
    let mut forms = vec![wrapped(schema, data, meta_schema)];
    let is_for_objects = |schema: &Map<String, Value>| {
        let named = schema.get("$schema");
        schema.get("type").is_none_or(|kind| kind == "object")
            && named.is_none_or(|named| named == meta_schema)
    };
    if let Some(own) = schema.as_object()
        && data.is_object()
        && is_for_objects(own)
    {
        let mut own = own.clone();
        own.insert("$schema".to_owned(), json!(meta_schema));
        forms.push((Value::Object(own), data.clone()));
    }
    forms
}

fn wrapped(schema: &Value, data: &Value, meta_schema: &str) -> (Value, Value) {
    let id_key = if meta_schema.contains("draft-04") {
        "id"
    } else {
        "$id"
    };
    let definitions = if meta_schema.contains("draft/20") {
        "$defs"
    } else {
        "definitions"
    };
    let mut root = json!({
        "$schema": meta_schema,
        "type": "object",
        "required": ["value"],
    });
    match schema {
        // Before 2019, what stands beside a $ref does not count: neither would an address.
        Value::Object(own) if own.contains_key("$ref") && definitions == "definitions" => {
            for (name, part) in own {
                if name != "$ref" {
                    root[name.as_str()] = part.clone();
                }
            }
            root["properties"] = json!({"value": {"$ref": own["$ref"]}});
        }
        Value::Object(own) => {
            let mut own = own.clone();
            let id = own.get(id_key).cloned().unwrap_or(json!(CASE));
            own.insert(id_key.to_owned(), id.clone());
            root["properties"] = json!({"value": {"$ref": id}});
            root[definitions] = json!({ "case": own });
        }
        truth => root["properties"] = json!({ "value": truth }),
    }
    (root, json!({ "value": data }))
}

/// All files of a folder and those below it, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder of the suite") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn suite() -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("target/peers/json-schema-suite"))
        .find(|candidate| candidate.exists());
    found.expect("run ./test once: it installs the suite")
}
