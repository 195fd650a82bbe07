//! Looks for everything that is wrong with a document, so that all of it is told at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use steadyhand::typed_json::Typed;

use super::document::{Document, escaped};
use super::extensions::{Extensions, Fault, SourceKind};
use super::listen::{DEFAULT_LISTEN, listen_address};
use super::problem::Problem;
use super::schema::{POLICY, ROOT, split};
use super::settings::{PolicySettings, Root};
use super::template::JsonTemplate;
use super::words::{dotted, nearest};
use super::{Surroundings, ToolTable, repair};

/// One caller may take half of the memory, and must be able to send a body and have it read.
const MEMORY_FOR_BODIES: u64 = 4;

/// How often a table is looked at again without what was wrong with it.
const ROUNDS_MAX: usize = 64;

/// What was found, and the document without what is wrong with it.
pub struct Checked {
    pub root: Root,
    pub tools: Vec<ToolTable>,
    pub problems: Vec<Problem>,
    /// Files with argument schemas that were read.
    pub files: Vec<PathBuf>,
    /// The values without those that are wrong.
    pub repaired: Value,
    /// JSON Pointers to tables of tools and servers that have errors.
    pub faulty_tables: Vec<String>,
    /// JSON Pointers to tables whose fallback leads nowhere.
    pub faulty_fallbacks: Vec<String>,
}

/// Checks a whole document: shape first, then what only makes sense together. What is wrong is told and then left out, so
/// that it hides nothing else: one pass finds every problem.
pub fn check(
    document: &Document,
    folder: &Path,
    surroundings: &Surroundings,
    extensions: &Extensions,
) -> Checked {
    let mut checker = Checker {
        document,
        folder,
        surroundings,
        extensions,
        problems: Vec::new(),
        left_out: Vec::new(),
        files: Vec::new(),
        faulty_tables: Vec::new(),
        faulty_fallbacks: Vec::new(),
    };
    let mut repaired = document.value.clone();
    // Without a file there is nothing to look at, and many a program starts without one.
    if document
        .value
        .as_object()
        .is_none_or(|fields| !fields.is_empty())
    {
        checker.shape(&ROOT, &mut repaired, "");
    }
    let mut tools = checker.tools(&repaired);
    tools.extend(checker.servers(&repaired));
    let root: Root = checker.read(&mut repaired, "");
    checker.policy_makes_sense(&root.defaults, "/defaults");
    checker.documents(&root);
    checker.sections(&root);
    checker.fallbacks(&tools);
    checker.literal_keys(&document.value, "");
    checker.shell_variables(&document.value, "");
    for pointer in &checker.left_out {
        if repaired.pointer(pointer).is_some() {
            repair::leave_out(&mut repaired, &ROOT, pointer);
        }
    }
    Checked {
        root,
        tools,
        problems: checker.problems,
        files: checker.files,
        repaired,
        faulty_tables: checker.faulty_tables,
        faulty_fallbacks: checker.faulty_fallbacks,
    }
}

/// Collects problems while it looks.
pub(super) struct Checker<'a> {
    document: &'a Document,
    folder: &'a Path,
    surroundings: &'a Surroundings,
    pub(super) extensions: &'a Extensions,
    problems: Vec<Problem>,
    /// JSON Pointers to what is wrong and was left out or replaced: nothing more is said about it.
    left_out: Vec<String>,
    files: Vec<PathBuf>,
    faulty_tables: Vec<String>,
    faulty_fallbacks: Vec<String>,
}

impl Checker<'_> {
    /// Each tool's table by its kind. The ones that can be read are given back.
    fn tools(&mut self, repaired: &Value) -> Vec<ToolTable> {
        let tables = repaired.get("tools").and_then(Value::as_object);
        let mut tools = Vec::new();
        for (name, table) in tables.into_iter().flatten() {
            if let Some(table) = table.as_object() {
                tools.extend(self.tool(name, table.clone()));
            }
        }
        tools
    }

    fn tool(&mut self, name: &str, mut table: Map<String, Value>) -> Option<ToolTable> {
        let at = format!("/tools/{}", escaped(name));
        let before = self.problems.len();
        self.tool_name(name, &at);
        let row = self.kind_of(&table, &at);
        let Some(row) = row else {
            self.faulty_tables.push(at.clone());
            self.table_of_unknown_kind(table, &at);
            return None;
        };
        table.insert("kind".to_owned(), row.name.into());
        Some(self.table("tools", name, table, row, before))
    }

    /// The kind that a table names, or the one it most likely means: the rest of the table is checked by that.
    fn kind_of(&mut self, table: &Map<String, Value>, at: &str) -> Option<&'static SourceKind> {
        let written = table.get("kind");
        let extensions = self.extensions;
        let named = |name: &str| extensions.kind(name);
        if let Some(row) = written.and_then(Value::as_str).and_then(named) {
            return Some(row);
        }
        let kinds: Vec<String> = extensions
            .kinds
            .iter()
            .map(|kind| kind.name.to_owned())
            .collect();
        let by_keys = extensions.kind_by_keys(table);
        let Some(kind) = written else {
            let help = match by_keys {
                Some(likely) => format!("Add kind = \"{}\"", likely.name),
                None => format!("Add kind = \"…\"; there are: {}", kinds.join(", ")),
            };
            let problem = Problem::error(format!("{} has no kind", dotted(at))).help(help);
            self.put_at_key(problem, at, "kind is missing");
            return by_keys;
        };
        self.not_a_choice(&format!("{at}/kind"), kind, &kinds);
        let text = kind.as_str().unwrap_or_default();
        let near = nearest(text, kinds.iter().map(String::as_str));
        near.and_then(named).or(by_keys)
    }

    /// What can be said about a table whose kind nobody can guess: its policy, and keys that no kind has.
    fn table_of_unknown_kind(&mut self, mut table: Map<String, Value>, at: &str) {
        self.description(&table, at);
        if table
            .get("input")
            .is_some_and(|input| input.is_object() || input.is_string())
        {
            self.input(&mut table, &format!("{at}/input"));
        }
        let mut policy = Map::new();
        for (key, value) in table {
            let is_policy = POLICY.keys_at("").contains(&key);
            if !is_policy && !self.extensions.knows_key(&key) {
                self.unknown_key(at, &key, &POLICY.keys_at(""));
            } else if is_policy && key != "limits" {
                policy.insert(key, value);
            }
        }
        let mut policy = Value::Object(policy);
        self.shape(&POLICY, &mut policy, at);
        self.policy(policy, at);
    }

    /// Each MCP server's table. The ones that can be read are given back.
    fn servers(&mut self, repaired: &Value) -> Vec<ToolTable> {
        let tables = repaired.get("mcp").and_then(Value::as_object);
        let mut servers = Vec::new();
        for (name, table) in tables.into_iter().flatten() {
            if let Some(table) = table.as_object() {
                let before = self.problems.len();
                self.tool_name(name, &format!("/mcp/{}", escaped(name)));
                servers.push(self.table(
                    "mcp",
                    name,
                    table.clone(),
                    self.extensions.server,
                    before,
                ));
            }
        }
        servers
    }

    fn table(
        &mut self,
        section: &'static str,
        name: &str,
        table: Map<String, Value>,
        row: &'static SourceKind,
        before: usize,
    ) -> ToolTable {
        let at = format!("/{section}/{}", escaped(name));
        let kind = self.extensions.schemas.kind(row.name);
        let shape = kind.table();
        let mut table = Value::Object(table);
        self.shape(shape, &mut table, &at);
        let table = table.as_object().cloned().unwrap_or_default();
        let mut parts = split(kind.own_keys(), &table);
        self.description(&parts.own, &at);
        self.input(&mut parts.own, &format!("{at}/input"));
        let policy = self.policy(Value::Object(parts.policy), &at);
        let mut each = Vec::new();
        for (pattern, value) in parts.each {
            let at = format!("{at}/each/{}", escaped(&pattern));
            each.push((pattern, self.policy(value, &at)));
        }
        let is_server = section == "mcp";
        if is_server {
            self.arguments_beside_a_list(&mut parts.own, &at);
            super::programs::list_to_text(&mut parts.own);
        }
        let program = super::programs::look(&parts.own, is_server, self.folder, self.surroundings);
        if let Some(problem) = program {
            let pointer = format!("{at}/command");
            let is_warning = problem.is_warning;
            let message = format!("{}: {}", dotted(&pointer), problem.message);
            self.put_at_value(problem.saying(message), &pointer, "here");
            if !is_warning {
                self.leave_out(pointer);
            }
        }
        self.check_by_kind(row, &parts.own, &at);
        if self.problems[before..]
            .iter()
            .any(|problem| !problem.is_warning)
        {
            self.faulty_tables.push(at.clone());
        }
        ToolTable {
            section,
            name: name.to_owned(),
            kind: row,
            own: parts.own,
            policy,
            each,
            alias: None,
            is_imported: false,
            place: self
                .document
                .origin(&at)
                .and_then(|origin| origin.key_place())
                .map(|place| place.short()),
            shown: None,
            secrets: Vec::new(),
            unusable: None,
            imported_keys: Vec::new(),
        }
    }

    /// What its kind says about a table. A kind may stop at the first fault it finds: it is asked again without that one.
    fn check_by_kind(&mut self, row: &SourceKind, own: &Map<String, Value>, at: &str) {
        let mut without_faults = Value::Object(own.clone());
        for _ in 0..ROUNDS_MAX {
            let faults = (row.check)(&without_faults);
            let mut is_changed = false;
            let (known, unknown): (Vec<_>, Vec<_>) = faults.into_iter().partition(|fault| {
                // What a reference stands for is not known here: it is checked when the tool is built.
                !without_faults.pointer(&fault.at).is_some_and(has_reference)
            });
            self.section_faults(at, known.iter().cloned());
            let kind = self.extensions.schemas.kind(row.name);
            let shape = kind.table();
            for fault in &known {
                is_changed |= repair::leave_out(&mut without_faults, shape, &fault.at);
            }
            for fault in &unknown {
                is_changed |= repair::put_stand_in(&mut without_faults, shape, &fault.at);
            }
            for fault in known.iter().chain(&unknown) {
                self.leave_out(format!("{at}{}", fault.at));
            }
            if !is_changed {
                break;
            }
        }
    }

    /// A list holds the arguments itself.
    fn arguments_beside_a_list(&mut self, own: &mut Map<String, Value>, at: &str) {
        if own.get("command").is_some_and(Value::is_array) && own.contains_key("args") {
            let pointer = format!("{at}/args");
            let problem = Problem::error(format!(
                "{}: command is a list, which holds the arguments already",
                dotted(&pointer)
            ))
            .help("Put them at the end of command, or write command as a text");
            self.put_at_value(problem, &pointer, "a second list of arguments");
            own.remove("args");
        }
    }

    /// Reads typed settings. A value that cannot be read is told and left out.
    fn read<T: serde::de::DeserializeOwned + Default>(&mut self, value: &mut Value, at: &str) -> T {
        for _ in 0..ROUNDS_MAX {
            let error = match serde_path_to_error::deserialize::<_, T>(Typed(&*value)) {
                Ok(read) => return read,
                Err(error) => error,
            };
            let step = |part: &Segment| match part {
                Segment::Seq { index } => format!("/{index}"),
                Segment::Map { key } => format!("/{}", escaped(key)),
                Segment::Enum { variant } => format!("/{}", escaped(variant)),
                Segment::Unknown => String::new(),
            };
            let within: String = error.path().iter().map(step).collect();
            let pointer = format!("{at}{within}");
            let problem = Problem::error(format!(
                "{}: {}",
                dotted(&pointer),
                steadyhand::plain_words::misfit(error.inner())
            ));
            self.put_at_value(problem, &pointer, "here");
            self.leave_out(pointer);
            if !repair::remove(value, &within) {
                break;
            }
        }
        T::default()
    }

    /// Models choose a tool by its description: one of its own is better than the one we make (SPEC D14).
    fn description(&mut self, own: &Map<String, Value>, at: &str) {
        let is_blank = |text: &Value| text.as_str().is_some_and(|text| text.trim().is_empty());
        if own.get("description").is_some_and(is_blank) {
            let problem = Problem::error(format!("{}.description is empty", dotted(at)))
                .help("Say what the tool does: models choose a tool by its description");
            self.put_at_value(problem, &format!("{at}/description"), "nothing is said");
        }
    }

    /// The schema of the arguments: read from its file if it names one, and itself checked.
    fn input(&mut self, own: &mut Map<String, Value>, at: &str) {
        let Some(input) = own.get_mut("input") else {
            return;
        };
        if let Value::String(path) = input {
            let written = PathBuf::from(&*path);
            let path = self.folder.join(&written);
            self.files.push(path.clone());
            let read = super::document::SourceFile::read(
                &path,
                written.clone(),
                self.surroundings.trust(),
            );
            let read = read.and_then(|file| {
                serde_json::from_str::<Value>(&file.text).map_err(|error| {
                    let fault = steadyhand::plain_words::json(&error);
                    Problem::error(format!("{} is no JSON: {fault}", written.display()))
                })
            });
            match read {
                Ok(schema) => *input = schema,
                Err(problem) => {
                    let problem = match problem.is_about_trust() {
                        true => problem,
                        false => problem.help(
                            "input is a JSON Schema, or the path of a JSON file that holds one",
                        ),
                    };
                    return self.put_at_value(problem, at, "this file");
                }
            }
        }
        if let Err(fault) = steadyhand::check_schema(input) {
            let problem = Problem::error(format!("{}: {fault}", dotted(at)));
            self.put_at_value(problem, at, "no schema for arguments");
        }
    }

    fn tool_name(&mut self, name: &str, at: &str) {
        if !is_tool_name(name) {
            let problem = Problem::error(format!("\"{name}\" cannot be the name of a tool"))
                .help("Model providers accept 1 to 64 of A–Z, a–z, 0–9, _ and -");
            self.put_at_key(problem, at, "not accepted by model providers");
        }
    }

    fn policy(&mut self, mut value: Value, at: &str) -> PolicySettings {
        let policy: PolicySettings = self.read(&mut value, at);
        self.policy_makes_sense(&policy, at);
        policy
    }

    fn policy_makes_sense(&mut self, policy: &PolicySettings, at: &str) {
        let name = dotted(at);
        let attempts = policy.retry.as_ref().and_then(|retry| retry.attempts);
        if policy.idempotent == Some(false) && attempts.is_some_and(|attempts| attempts > 1) {
            let problem = Problem::warning(format!(
                "{name} is not idempotent, so its retry only applies to failures that prove it never started"
            ))
            .help("That is usually what you want; say idempotent = true if repeating it is harmless");
            self.put_at_value(problem, &format!("{at}/retry"), "rarely applies");
        }
        if let (Some(timeout), Some(deadline)) = (policy.timeout, policy.deadline)
            && timeout.0 > deadline.0
            && !self.is_left_out(&format!("{at}/deadline"))
        {
            let problem = Problem::warning(format!(
                "{name}.timeout is longer than its deadline, so the deadline always comes first"
            ))
            .help("timeout is for one attempt, deadline for the whole call with its retries");
            self.put_at_value(problem, &format!("{at}/timeout"), "never reached");
        }
        let args = policy
            .fallback
            .as_ref()
            .and_then(|fallback| fallback.args.as_ref());
        if let Some(Err((place, why))) =
            args.map(|args| JsonTemplate::parse(&Value::Object(args.clone())))
        {
            let pointer = format!("{at}/fallback/args{place}");
            self.put_at_value(
                Problem::error(format!("{}: {why}", dotted(&pointer))),
                &pointer,
                "here",
            );
        }
        let written = |key: &str| {
            let pointer = format!("{at}/fallback/{key}");
            self.document.value.pointer(&pointer).is_some()
        };
        if policy.fallback.is_some() && written("tool") == written("result") {
            let problem = Problem::error(format!("{name}.fallback needs one of tool and result"))
                .help("Write fallback = { tool = \"name\" } or fallback = { result = … }");
            self.put_at_value(problem, &format!("{at}/fallback"), "here");
        }
    }

    /// Names and addresses that must mean something.
    fn sections(&mut self, root: &Root) {
        self.models(root);
        self.transcriber(root);
        self.proxies(root);
        if let Some(listen) = &root.server.listen
            && !listen.is_empty()
            && !listen.contains("${")
            && let Err(wrong) = listen_address(listen, Some(DEFAULT_LISTEN.port()))
        {
            let problem = Problem::error(format!("server.listen: {wrong}"))
                .help("Write one such as \"127.0.0.1:7400\"");
            self.put_at_value(problem, "/server/listen", "here");
        }
        if let (Some(memory), Some(body)) = (root.server.limits.memory, root.server.limits.body)
            && memory.0 < MEMORY_FOR_BODIES * body.0
        {
            let problem = Problem::error(format!(
                "server.limits.memory: {} are too little for bodies of {} (server.limits.body)",
                bytesize::ByteSize(memory.0).display().iec(),
                bytesize::ByteSize(body.0).display().iec(),
            ))
            .help(format!(
                "Set memory to at least {MEMORY_FOR_BODIES} times body, or body to less"
            ));
            self.put_at_value(problem, "/server/limits/memory", "here");
        }
        let jwt = root.server.jwt.iter().flat_map(self.extensions.checks.jwt);
        self.section_faults("/server/jwt", jwt);
        for (number, alert) in root.alerts.iter().enumerate() {
            let at = format!("/alerts/{number}");
            self.section_faults(&at, (self.extensions.checks.alert)(alert));
            let webhook = alert.notify.webhook.as_ref().map(|url| url.expose());
            let webhook = webhook.filter(|url| !url.contains("${"));
            let is_address = |url: &str| {
                let url = url::Url::parse(url);
                url.is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
            };
            if webhook.is_some_and(|url| !is_address(url)) {
                let problem =
                    Problem::error(format!("alerts[{number}].notify.webhook is no web address"))
                        .help("Write one such as https://example.org/hook");
                self.put_at_value(problem, &format!("{at}/notify/webhook"), "here");
            }
        }
        let telemetry = (self.extensions.checks.telemetry)(&root.telemetry);
        self.section_faults("/telemetry", telemetry);
    }

    pub(super) fn section_faults(&mut self, at: &str, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            let pointer = format!("{at}{}", fault.at);
            let mut problem = Problem::error(format!("{}: {}", dotted(&pointer), fault.message));
            problem.help = fault.help;
            self.put_at_value(problem, &pointer, "here");
        }
    }

    fn documents(&mut self, root: &Root) {
        let documents = root.documents.iter();
        self.section_faults(
            "/documents",
            documents.flat_map(|documents| documents.check()),
        );
    }

    /// Fallbacks lead to tools that exist, and never in a circle.
    fn fallbacks(&mut self, tools: &[ToolTable]) {
        let named = self.document.value.get("tools").and_then(Value::as_object);
        let names: HashSet<&str> = named
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        // Sources with many tools, and MCP servers, bring names that are not known before they are loaded.
        let kinds_known = names.len() == tools.iter().filter(|tool| !tool.is_server()).count();
        let all_known = kinds_known
            && !tools.iter().any(|tool| tool.kind.brings_many)
            && self.document.value.get("mcp").is_none()
            && self.document.value.get("import").is_none();
        let next = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name)?;
            tool.policy.fallback.as_ref()?.tool.as_deref()
        };
        for tool in tools {
            let Some(target) = next(&tool.name) else {
                continue;
            };
            let at = format!("{}/fallback/tool", tool.pointer());
            if !names.contains(target) && all_known {
                let problem = Problem::error(format!(
                    "tools.{}.fallback names a tool that does not exist",
                    tool.name
                ));
                let help = match nearest(target, names.iter().copied()) {
                    Some(near) => format!("Did you mean {near}?"),
                    None => format!("Define [tools.{target}], or name another tool"),
                };
                self.put_at_value(problem.help(help), &at, "no such tool");
                self.faulty_fallbacks.push(tool.pointer());
                continue;
            }
            let mut circle = vec![tool.name.as_str()];
            let mut here = target;
            while let Some(following) = (!circle.contains(&here)).then(|| next(here)).flatten() {
                circle.push(here);
                here = following;
            }
            // Told once, by the first of them.
            if here == tool.name && circle.iter().all(|other| *other >= tool.name.as_str()) {
                circle.push(here);
                let problem =
                    Problem::error(format!("fallbacks go in a circle: {}", circle.join(" → ")))
                        .help("End it with fallback = { result = … }");
                self.put_at_value(problem, &at, "leads back here");
            }
        }
    }

    /// A literal that looks like a key does not belong into a file that is committed.
    fn literal_keys(&mut self, value: &Value, pointer: &str) {
        match value {
            Value::String(text) if super::secret::looks_like_a_key(text) => {
                let problem = Problem::warning(format!("{} looks like a secret written out", dotted(pointer)))
                    .help("Keep it elsewhere and write ${env:NAME}, ${file:/path} or ${keyring:service/user}");
                self.put_at_value(problem, pointer, "a key?");
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.literal_keys(field, &format!("{pointer}/{}", escaped(key)));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.literal_keys(item, &format!("{pointer}/{index}"));
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// `$NAME` is a shell's way to name a variable: here it is sent as it is written.
    fn shell_variables(&mut self, value: &Value, pointer: &str) {
        match value {
            Value::String(text) => {
                if let Some(name) = super::reference::shell_variable(text) {
                    let message = format!(
                        "{}: ${name} is not replaced; it is used as it is written",
                        dotted(pointer)
                    );
                    let help = format!("Write ${{env:{name}}} for the value of the variable");
                    let problem = Problem::warning(message).help(help);
                    self.put_at_value(problem, pointer, "a variable?");
                }
            }
            Value::Object(fields) => {
                let are_names = ["/tools", "/mcp", "/models", "/proxy"].contains(&pointer);
                for (key, field) in fields {
                    let is_free = FREE_TEXTS.contains(&key.as_str()) && !are_names;
                    if !is_free && !is_shell(field) {
                        self.shell_variables(field, &format!("{pointer}/{}", escaped(key)));
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.shell_variables(item, &format!("{pointer}/{index}"));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Nothing more is said about this value, or anything in it.
    pub(super) fn leave_out(&mut self, pointer: String) {
        self.left_out.push(pointer);
    }

    pub(super) fn is_left_out(&self, pointer: &str) -> bool {
        let is_within = |above: &String| {
            let rest = pointer.strip_prefix(above.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.left_out.iter().any(is_within)
    }

    pub(super) fn put_at_key(&mut self, problem: Problem, pointer: &str, label: &str) {
        let place = self
            .document
            .nearest_origin(pointer)
            .and_then(|origin| origin.key_place());
        self.put(problem, place.cloned(), pointer, label);
    }

    pub(super) fn put_at_value(&mut self, problem: Problem, pointer: &str, label: &str) {
        let place = self
            .document
            .nearest_origin(pointer)
            .and_then(|origin| origin.value_place());
        self.put(problem, place.cloned(), pointer, label);
    }

    fn put(
        &mut self,
        problem: Problem,
        place: Option<super::document::Place>,
        pointer: &str,
        label: &str,
    ) {
        if self.is_left_out(pointer) {
            return;
        }
        let problem = match (place, self.document.nearest_origin(pointer)) {
            (Some(place), _) => problem.at(place, label),
            (None, Some(super::document::Origin::Variable(name))) => {
                let message = format!("{} (set by the variable {name})", problem.message);
                problem.saying(message)
            }
            (None, _) => problem,
        };
        self.problems.push(problem);
    }
}

/// What model providers accept as the name of a tool.
pub(super) fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits)
}

/// Settings whose texts are for models and services, and may say anything.
const FREE_TEXTS: [&str; 12] = [
    "description",
    "input",
    "answers",
    "mock_response",
    "result",
    "examples",
    "system",
    "stdin",
    "body",
    "when",
    "check",
    "elicitation",
];

/// A command that is run by a shell, which replaces its variables itself.
fn is_shell(command: &Value) -> bool {
    const SHELLS: [&str; 6] = ["sh", "bash", "zsh", "dash", "ksh", "fish"];
    let program = match command {
        Value::Array(parts) => parts.first().and_then(Value::as_str),
        Value::Object(table) => match table.get("command") {
            Some(Value::String(text)) => Some(text.as_str()),
            Some(Value::Array(parts)) => parts.first().and_then(Value::as_str),
            _ => None,
        },
        _ => None,
    };
    let name = program.and_then(|program| program.rsplit('/').next());
    name.is_some_and(|name| SHELLS.contains(&name))
}

fn has_reference(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}
