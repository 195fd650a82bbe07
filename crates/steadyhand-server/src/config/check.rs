//! Looks for everything that is wrong with a document, so that all of it is told at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::ToolTable;
use super::document::{Document, escaped};
use super::problem::Problem;
use super::schema::{ROOT, TABLES, split};
use super::settings::{PolicySettings, Root};
use super::words::{dotted, nearest};
use crate::net::fill::JsonTemplate;
use crate::source::mcp::SERVER;
use crate::source::{KINDS, Kind};

/// What was found, and the parts that could be read.
pub(crate) struct Checked {
    pub(crate) root: Root,
    pub(crate) tools: Vec<ToolTable>,
    pub(crate) problems: Vec<Problem>,
    /// Files with argument schemas that were read.
    pub(crate) files: Vec<PathBuf>,
}

/// Checks a whole document: shape first, then what only makes sense together.
pub(crate) fn check(document: &Document, folder: &Path) -> Checked {
    let mut checker = Checker {
        document,
        folder,
        problems: Vec::new(),
        pointers: Vec::new(),
        files: Vec::new(),
    };
    // Without a file there is nothing to look at, and many a program starts without one.
    if document
        .value
        .as_object()
        .is_none_or(|fields| !fields.is_empty())
    {
        checker.shape(&ROOT, &document.value, "");
    }
    let root_is_sound = checker.problems.is_empty();
    let mut tools = checker.tools();
    tools.extend(checker.servers());
    let root = match root_is_sound {
        true => checker.root(),
        false => Root::default(),
    };
    checker.documents(&root);
    checker.sections(&root);
    checker.fallbacks(&tools);
    checker.literal_keys(&document.value, "");
    Checked {
        root,
        tools,
        problems: checker.problems,
        files: checker.files,
    }
}

/// Collects problems while it looks.
pub(super) struct Checker<'a> {
    document: &'a Document,
    folder: &'a Path,
    problems: Vec<Problem>,
    /// The pointer of each problem.
    pointers: Vec<String>,
    files: Vec<PathBuf>,
}

impl Checker<'_> {
    /// Each tool's table by its kind. The ones that can be read are given back.
    fn tools(&mut self) -> Vec<ToolTable> {
        let tables = self.document.value.get("tools").and_then(Value::as_object);
        let mut tools = Vec::new();
        for (name, table) in tables.into_iter().flatten() {
            let Some(table) = table.as_object() else {
                continue;
            };
            tools.extend(self.tool(name, table));
        }
        tools
    }

    fn tool(&mut self, name: &str, table: &Map<String, Value>) -> Option<ToolTable> {
        let at = format!("/tools/{}", escaped(name));
        self.tool_name(name, &at);
        let before = self.problems.len();
        let kinds = || KINDS.iter().map(|kind| kind.name);
        let Some(kind) = table.get("kind") else {
            let problem = Problem::error(format!("{} has no kind", dotted(&at))).help(format!(
                "Add kind = \"…\"; there are: {}",
                kinds().collect::<Vec<_>>().join(", ")
            ));
            self.put_at_key(problem, &at, "kind is missing");
            return None;
        };
        let Some(row) = KINDS.iter().find(|row| Some(row.name) == kind.as_str()) else {
            let kinds: Vec<String> = kinds().map(str::to_owned).collect();
            self.not_a_choice(&format!("{at}/kind"), kind, &kinds);
            return None;
        };
        self.table("tools", name, table, row, before)
    }

    /// Each MCP server's table. The ones that can be read are given back.
    fn servers(&mut self) -> Vec<ToolTable> {
        let tables = self.document.value.get("mcp").and_then(Value::as_object);
        let mut servers = Vec::new();
        for (name, table) in tables.into_iter().flatten() {
            let Some(table) = table.as_object() else {
                continue;
            };
            let before = self.problems.len();
            self.tool_name(name, &format!("/mcp/{}", escaped(name)));
            servers.extend(self.table("mcp", name, table, &SERVER, before));
        }
        servers
    }

    fn table(
        &mut self,
        section: &'static str,
        name: &str,
        table: &Map<String, Value>,
        row: &'static Kind,
        before: usize,
    ) -> Option<ToolTable> {
        let at = format!("/{section}/{}", escaped(name));
        let shape = &TABLES[row.name];
        self.shape(shape, &Value::Object(table.clone()), &at);
        let faulty = self.faulty_keys(&at, before);
        let is_sound = self.problems.len() == before;
        let mut parts = split(row.name, table);
        parts.own.retain(|key, _| !faulty.contains(key));
        self.description(&parts.own, &at);
        self.input(&mut parts.own, &format!("{at}/input"));
        parts.policy.retain(|key, _| !faulty.contains(key));
        let policy = self.policy(Value::Object(parts.policy), &at);
        let mut each = Vec::new();
        for (pattern, value) in parts.each {
            let at = format!("{at}/each/{}", escaped(&pattern));
            each.push((pattern, self.policy(value, &at)));
        }
        let own = Value::Object(parts.own.clone());
        for fault in (row.check)(&own) {
            // What was left out because it is wrong already is not missing.
            if !is_sound && own.pointer(&fault.at).is_none_or(|_| fault.at.is_empty()) {
                continue;
            }
            // What a reference stands for is not known here: it is checked when the tool is built.
            if own.pointer(&fault.at).is_some_and(has_reference) {
                continue;
            }
            let pointer = format!("{at}{}", fault.at);
            let mut problem = Problem::error(format!("{}: {}", dotted(&pointer), fault.message));
            problem.help = fault.help;
            self.put_at_value(problem, &pointer, "here");
        }
        is_sound.then(|| ToolTable {
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
        })
    }

    /// The keys of a tool's table that the shape's problems are about.
    fn faulty_keys(&self, at: &str, before: usize) -> Vec<String> {
        let within = |pointer: &String| {
            let below = pointer.strip_prefix(at)?.strip_prefix('/')?;
            let key = below.split('/').next().unwrap_or_default();
            Some(key.replace("~1", "/").replace("~0", "~"))
        };
        self.pointers[before..].iter().filter_map(within).collect()
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
            let read = super::document::SourceFile::read(&path, written.clone()).and_then(|file| {
                serde_json::from_str::<Value>(&file.text).map_err(|error| {
                    Problem::error(format!("{} is no JSON: {error}", written.display()))
                })
            });
            match read {
                Ok(schema) => *input = schema,
                Err(problem) => {
                    let problem = problem
                        .help("input is a JSON Schema, or the path of a JSON file that holds one");
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
        let fits = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if !fits {
            let problem = Problem::error(format!("\"{name}\" cannot be the name of a tool"))
                .help("Model providers accept 1 to 64 of A–Z, a–z, 0–9, _ and -");
            self.put_at_key(problem, at, "not accepted by model providers");
        }
    }

    fn policy(&mut self, value: Value, at: &str) -> PolicySettings {
        let policy: PolicySettings = match serde_json::from_value(value) {
            Ok(policy) => policy,
            Err(error) => {
                self.put_at_key(
                    Problem::error(format!("{}: {error}", dotted(at))),
                    at,
                    "here",
                );
                return PolicySettings::default();
            }
        };
        self.policy_makes_sense(&policy, at);
        policy
    }

    fn policy_makes_sense(&mut self, policy: &PolicySettings, at: &str) {
        let name = dotted(at);
        if let Some(breaker) = &policy.breaker
            && breaker.window.is_some() != breaker.rate.is_some()
        {
            let problem = Problem::error(format!("{name}.breaker: window and rate go together"))
                .help("Write both, such as window = 20, rate = \"50%\", or neither");
            self.put_at_value(problem, &format!("{at}/breaker"), "one without the other");
        }
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
        if let Some(fallback) = &policy.fallback
            && fallback.tool.is_some() == fallback.result.is_some()
        {
            let problem = Problem::error(format!("{name}.fallback needs one of tool and result"))
                .help("Write fallback = { tool = \"name\" } or fallback = { result = … }");
            self.put_at_value(problem, &format!("{at}/fallback"), "here");
        }
    }

    /// The typed sections. The schema has been checked, so what fails here fails by its words only.
    fn root(&mut self) -> Root {
        match serde_path_to_error::deserialize::<_, Root>(&self.document.value) {
            Ok(root) => {
                self.policy_makes_sense(&root.defaults, "/defaults");
                root
            }
            Err(error) => {
                let pointer: String = error.path().iter().map(|part| format!("/{part}")).collect();
                let problem = Problem::error(format!("{}: {}", dotted(&pointer), error.inner()));
                self.put_at_value(problem, &pointer, "here");
                Root::default()
            }
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
            && listen.parse::<std::net::SocketAddr>().is_err()
        {
            let problem = Problem::error(format!(
                "server.listen: \"{listen}\" is no address and port"
            ))
            .help("Write one such as \"127.0.0.1:7400\"");
            self.put_at_value(problem, "/server/listen", "here");
        }
        for (number, alert) in root.alerts.iter().enumerate() {
            if let Err(wrong) = crate::alerts::Rule::of_settings(alert) {
                let problem = Problem::error(format!("alerts[{number}].when: {wrong}"));
                self.put_at_value(problem, &format!("/alerts/{number}/when"), "here");
            }
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
                self.put_at_value(problem, &format!("/alerts/{number}/notify/webhook"), "here");
            }
        }
        if let Err(wrong) = crate::telemetry::otlp::check(&root.telemetry) {
            let problem = Problem::error(wrong);
            self.put_at_value(problem, "/telemetry", "here");
        }
    }

    fn documents(&mut self, root: &Root) {
        for fault in root
            .documents
            .iter()
            .flat_map(|documents| documents.check())
        {
            let pointer = format!("/documents{}", fault.at);
            let mut problem = Problem::error(format!("{}: {}", dotted(&pointer), fault.message));
            problem.help = fault.help;
            self.put_at_value(problem, &pointer, "here");
        }
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
        let all_known = !tools.iter().any(|tool| tool.kind.brings_many)
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
        let problem = match (place, self.document.nearest_origin(pointer)) {
            (Some(place), _) => problem.at(place, label),
            (None, Some(super::document::Origin::Variable(name))) => {
                let message = format!("{} (set by the variable {name})", problem.message);
                problem.saying(message)
            }
            (None, _) => problem,
        };
        self.problems.push(problem);
        self.pointers.push(pointer.to_owned());
    }
}

fn has_reference(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${"))
}
