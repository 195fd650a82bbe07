//! Puts a configuration together: the file, the one beside it, and what they take over from other programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::document::{Document, Place, SourceFile};
use super::flex_chat::{self, FlexChat, FlexRemark, FlexTool, Implementation, Shape};
use super::import::{Imported, ImportedServer, Importer};
use super::settings::{ImportSettings, PolicySettings};
use super::units::Span;
use super::{Extensions, Problem, Surroundings, ToolTable, demo, find, programs};

/// A configuration on its way.
pub(super) struct Loading<'a> {
    surroundings: &'a Surroundings,
    extensions: &'a Extensions,
    pub(super) folder: PathBuf,
    pub(super) document: Document,
    pub(super) tools: Vec<ToolTable>,
    pub(super) imported: Imported,
    pub(super) max_iterations: Option<u32>,
    pub(super) files: Vec<PathBuf>,
    pub(super) problems: Vec<Problem>,
    pub(super) is_blank: bool,
    /// Flex Chat's tools, until the ones of our own file are known: those win.
    flex_chats: Vec<(Arc<SourceFile>, FlexChat)>,
}

impl<'a> Loading<'a> {
    pub(super) fn new(
        path: Option<&Path>,
        surroundings: &'a Surroundings,
        extensions: &'a Extensions,
    ) -> Loading<'a> {
        let folder = path.and_then(Path::parent).unwrap_or(&surroundings.current);
        Loading {
            surroundings,
            extensions,
            folder: folder.to_owned(),
            document: Document::default(),
            tools: Vec::new(),
            imported: Imported::default(),
            max_iterations: None,
            files: Vec::new(),
            problems: Vec::new(),
            is_blank: false,
            flex_chats: Vec::new(),
        }
    }

    /// The file itself, and the one beside it that is not committed. A file of another program will do.
    pub(super) fn read_main(&mut self, path: &Path) {
        if path
            .extension()
            .is_some_and(|ending| ending == "json" || ending == "jsonc")
        {
            return self.read_foreign(path);
        }
        self.is_blank = self.read_toml(path);
        let local = path.with_file_name(find::LOCAL_FILE_NAME);
        if local.is_file() {
            self.read_toml(&local);
        }
    }

    /// The demo set, where there is no file.
    pub(super) fn read_demo(&mut self) {
        let file = SourceFile::embedded(demo::FILE_NAME, demo::TEXT);
        let (document, problems) = Document::from_toml(&file);
        self.document = document;
        self.problems.extend(problems);
        // Beside the demo set, what ships inside the program answers to its own names.
        for name in &self.extensions.builtin_names {
            let tools = &mut self.document.value["tools"];
            if tools.get(name).is_none() {
                tools[name] = json!({"kind": "builtin", "use": name});
            }
        }
        if let Some(program) = demo::own_program() {
            let command = &mut self.document.value["mcp"][demo::BROKEN_SERVER]["command"];
            *command = json!(program.display().to_string());
        }
    }

    /// Everything that `[import]` lists.
    pub(super) fn read_imports(&mut self, import: &ImportSettings) {
        for path in &import.flex_chat {
            let path = self.surroundings.path(path, &self.folder);
            if let Some(file) = self.source_file(&path) {
                let flex_chat = flex_chat::read(&file.text);
                self.flex_chats.push((file, flex_chat));
            }
        }
        if !import.mcp.is_empty() {
            let importer = Importer::new(self.surroundings.clone());
            let imported = importer
                .read_all(&import.mcp, &import.skip, &self.folder)
                .without_ourselves();
            self.take_servers(imported);
        }
        for (file, flex_chat) in std::mem::take(&mut self.flex_chats) {
            self.take_flex_chat(&file, flex_chat);
        }
    }

    /// Servers of other programs become servers of ours; one of our own file that has the name wins.
    pub(super) fn connect_imported(&mut self) {
        for server in &self.imported.servers {
            if !server.enabled {
                continue;
            }
            let imported = server_table(server, &self.imported, self.surroundings, self.extensions);
            let program = self.program_of(&imported);
            let is_it = |table: &&mut ToolTable| table.is_server() && table.name == server.name;
            if let Some(own) = self.tools.iter_mut().find(is_it) {
                if !own.says_how_to_reach_it() {
                    self.problems.extend(program);
                    add_to(own, imported);
                    continue;
                }
                let place = self.surroundings.shown(&server.origin.file);
                self.problems.push(Problem::warning(format!(
                    "{}:{}: {} is also defined in {}; that one is used",
                    place.display(),
                    server.origin.line,
                    server.name,
                    own.place.clone().unwrap_or_default()
                )));
                continue;
            }
            self.problems.extend(program);
            self.tools.push(imported);
        }
        for table in &self.tools {
            // One that is there and wrong has been told.
            let written = self.document.value.pointer(&table.pointer());
            let is_written = |key: &str| written.is_some_and(|table| table.get(key).is_some());
            let is_told = is_written("command") || is_written("url");
            if table.is_server() && !table.says_how_to_reach_it() && !is_told {
                let problem = self.unreachable(table);
                self.problems.push(problem);
            }
        }
    }

    /// What is wrong with the program of another program's server: a warning, for its file is not ours.
    fn program_of(&self, table: &ToolTable) -> Option<Problem> {
        let shown = table.shown.as_ref()?;
        // A program whose name holds a secret is not named.
        if shown.get("command") != table.own.get("command") {
            return None;
        }
        let problem = programs::look(&table.own, true, &self.folder, self.surroundings)?;
        let place = table.place.clone().unwrap_or_default();
        let message = format!("{place}: {}: {}", table.name, problem.message);
        Some(problem.saying(message).as_warning())
    }

    fn unreachable(&self, table: &ToolTable) -> Problem {
        let pointer = table.pointer();
        let problem = Problem::error(format!(
            "{} has neither command nor url, and no imported server has its name",
            super::words::dotted(&pointer)
        ))
        .help("Write command = \"…\" for a server on stdio, or import the file that has it: steadyhand mcp import");
        let origin = self.document.nearest_origin(&pointer);
        match origin.and_then(|origin| origin.key_place()) {
            Some(place) => problem.at(place.clone(), "what is it?"),
            None => problem,
        }
    }

    /// Whether there is nothing in it.
    fn read_toml(&mut self, path: &Path) -> bool {
        let Some(file) = self.source_file(path) else {
            return false;
        };
        let (over, problems) = Document::from_toml(&file);
        self.document.overlay(over);
        self.problems.extend(problems);
        file.text.trim().is_empty()
    }

    /// A JSON file in the place of ours: Flex Chat's tools, or MCP servers.
    fn read_foreign(&mut self, path: &Path) {
        let Some(file) = self.source_file(path) else {
            return;
        };
        match flex_chat::recognise(&file.text) {
            Some(Shape::FlexChat) => {
                let flex_chat = flex_chat::read(&file.text);
                self.flex_chats.push((file, flex_chat));
            }
            Some(Shape::Mcp) => {
                let imported = Importer::new(self.surroundings.clone()).read(path);
                self.take_servers(imported);
            }
            None if serde_json::from_str::<Value>(&file.text).is_err() => {
                // What is wrong with it, by the reader that knows places.
                let broken = flex_chat::read(&file.text).problems;
                let errors = broken.iter().map(|remark| warning(&file, remark).as_error());
                self.problems.extend(errors);
            }
            None => self.problems.push(
                Problem::error(format!(
                    "{} holds neither tools nor MCP servers",
                    file.path.display()
                ))
                .help("A JSON file has \"tools\": {\"registry\": […]}, or \"mcpServers\": {…}; our own format is TOML"),
            ),
        }
    }

    fn source_file(&mut self, path: &Path) -> Option<Arc<SourceFile>> {
        self.files.push(path.to_owned());
        match SourceFile::read(
            path,
            self.surroundings.shown(path),
            self.surroundings.trust(),
        ) {
            Ok(file) => Some(file),
            Err(problem) => {
                self.problems.push(problem);
                None
            }
        }
    }

    /// What is wrong with another program's file is no reason not to use ours.
    fn take_servers(&mut self, imported: Imported) {
        for problem in &imported.problems {
            let place = format!(
                "{}:{}:{}",
                self.surroundings.shown(&problem.file).display(),
                problem.line,
                problem.column
            );
            let told = Problem::warning(format!("{place}: {}", problem.message));
            let told = told.help(problem.help.clone());
            // One that somebody else could have written is no slip of another program.
            self.problems.push(match problem.is_about_trust {
                true => told.as_error().about_trust(),
                false => told,
            });
        }
        self.imported = imported;
    }

    fn take_flex_chat(&mut self, file: &Arc<SourceFile>, flex_chat: FlexChat) {
        for remark in flex_chat.problems.iter().chain(&flex_chat.notes) {
            self.problems.push(warning(file, remark));
        }
        self.max_iterations = self.max_iterations.or(flex_chat.max_iterations);
        let policy = PolicySettings {
            timeout: flex_chat.default_timeout.map(Span),
            ..PolicySettings::default()
        };
        for tool in flex_chat.tools {
            let table = table(tool, policy.clone(), file, self.extensions);
            match self.tools.iter_mut().find(|other| other.name == table.name) {
                None => self.tools.push(table),
                // The newer replaces the older (SPEC D3); the reader of the file has said so.
                Some(other) if other.is_imported => *other = table,
                Some(own) => {
                    let place = table.place.unwrap_or_default();
                    self.problems.push(Problem::warning(format!(
                        "{place}: {} is also defined in {}; that one is used",
                        own.name,
                        own.place.clone().unwrap_or_default()
                    )));
                }
            }
        }
    }
}

fn warning(file: &Arc<SourceFile>, remark: &FlexRemark) -> Problem {
    let place = Place::at(file, remark.place.line, remark.place.column);
    let mut warning = Problem::warning(remark.message.clone()).at(place, "here");
    warning.help.clone_from(&remark.help);
    warning
}

/// A tool of Flex Chat as a table of ours.
fn table(
    tool: FlexTool,
    policy: PolicySettings,
    file: &Arc<SourceFile>,
    extensions: &Extensions,
) -> ToolTable {
    let mut own = Map::new();
    let kind_name = match tool.implementation {
        Implementation::Mock(response) => {
            own.insert("mock_response".to_owned(), response);
            "mock"
        }
        Implementation::Builtin(handler) => {
            own.insert("use".to_owned(), json!(handler));
            "builtin"
        }
        Implementation::Internal(handler) => {
            own.insert("handler".to_owned(), json!(handler));
            "internal"
        }
    };
    own.extend(
        tool.description
            .map(|text| ("description".to_owned(), json!(text))),
    );
    own.extend(
        tool.schema
            .map(|schema: Value| ("input".to_owned(), schema)),
    );
    let place = Place::at(file, tool.place.line, tool.place.column);
    ToolTable {
        section: "tools",
        name: tool.name,
        kind: extensions.known_kind(kind_name),
        own,
        policy,
        each: Vec::new(),
        alias: tool.alias,
        is_imported: true,
        place: Some(place.short()),
        shown: None,
        secrets: Vec::new(),
        unusable: None,
        imported_keys: Vec::new(),
    }
}

/// A table of ours that only adds to an imported server: what it says itself stands.
fn add_to(own: &mut ToolTable, imported: ToolTable) {
    let mut shown = imported.shown.unwrap_or_default();
    shown.extend(own.own.clone());
    own.shown = Some(shown);
    for (key, value) in imported.own {
        if !own.own.contains_key(&key) {
            own.imported_keys.push(key.clone());
            own.own.insert(key, value);
        }
    }
    own.policy.timeout = own.policy.timeout.or(imported.policy.timeout);
    own.place = imported.place;
    own.secrets.extend(imported.secrets);
    own.unusable = imported.unusable;
}

/// A server of another program as a table of ours.
pub fn server_table(
    server: &ImportedServer,
    imported: &Imported,
    surroundings: &Surroundings,
    extensions: &Extensions,
) -> ToolTable {
    let (own, shown) = server.table();
    let file = surroundings.shown(&server.origin.file);
    let place = format!("{}:{}", file.display(), server.origin.line);
    let unusable = server.unresolved.first().map(|(field, unresolved)| {
        format!(
            "'{}' is disabled: {} in its {field} ({place}): {}; {}",
            server.name, unresolved.reference, unresolved.reason, unresolved.help
        )
    });
    ToolTable {
        section: "mcp",
        name: server.name.clone(),
        kind: extensions.server,
        own,
        policy: PolicySettings {
            timeout: server.timeouts.call.map(Span),
            ..PolicySettings::default()
        },
        each: Vec::new(),
        alias: None,
        is_imported: true,
        place: Some(place),
        shown: Some(shown),
        secrets: imported.secrets.clone(),
        unusable,
        imported_keys: Vec::new(),
    }
}
