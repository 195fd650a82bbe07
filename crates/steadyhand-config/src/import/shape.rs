//! Where in a file the servers stand: every program has a place of its own.

use super::client::{Client, Scope};
use crate::foreign::Node;
use crate::surroundings::Surroundings;

/// A table of servers, by name.
pub(super) struct ServerTable<'n> {
    pub(super) table: &'n Node,
    /// Whose habits apply: the place may tell what the file's name does not.
    pub(super) client: Client,
    /// `inputs` beside it.
    pub(super) inputs: Option<&'n Node>,
    /// Names that other settings of the file switch off.
    pub(super) switched_off: Vec<String>,
    /// Names that other settings of the file leave on, if they say so.
    pub(super) left_on: Option<Vec<String>>,
}

/// What servers stand under, for people to read.
pub(super) const PLACES: &str =
    "\"mcpServers\", \"servers\", \"mcp_servers\", \"mcp\" or \"extensions\"";

impl<'n> ServerTable<'n> {
    fn new(table: &'n Node, client: Client) -> ServerTable<'n> {
        ServerTable {
            table,
            client,
            inputs: None,
            switched_off: Vec::new(),
            left_on: None,
        }
    }
}

/// All tables of servers, the one that wins a clash of names first.
pub(super) fn tables<'n>(
    root: &'n Node,
    client: Client,
    scope: Scope,
    surroundings: &Surroundings,
) -> Vec<ServerTable<'n>> {
    let mut found = Vec::new();
    if scope != Scope::User {
        found.extend(of_project(root, client, surroundings));
    }
    if scope == Scope::Project {
        return found;
    }
    let whose = |otherwise: Client| match client {
        Client::Other => otherwise,
        known => known,
    };
    if let Some(table) = root.get("mcpServers") {
        let mut servers = ServerTable::new(table, client);
        servers.inputs = root.get("inputs");
        if let Some(settings) = root.get("mcp").filter(|_| client == Client::Gemini) {
            servers.switched_off = settings.get("excluded").map(names).unwrap_or_default();
            servers.left_on = settings.get("allowed").map(names);
        }
        found.push(servers);
    }
    if let Some(table) = root.get("servers") {
        let mut servers = ServerTable::new(table, whose(Client::VsCode));
        servers.inputs = root.get("inputs");
        found.push(servers);
    }
    if let Some(table) = root.get("mcp_servers") {
        found.push(ServerTable::new(table, whose(Client::Codex)));
    }
    if let Some(settings) = root.get("mcp").filter(|_| client != Client::Gemini) {
        match settings.get("servers") {
            // VS Code's settings.json, before it had a file for them.
            Some(table) if !is_server(table) => {
                let mut servers = ServerTable::new(table, whose(Client::VsCode));
                servers.inputs = settings.get("inputs");
                found.push(servers);
            }
            _ => found.push(ServerTable::new(settings, whose(Client::Crush))),
        }
    }
    if let Some(table) = root.get("extensions")
        && matches!(client, Client::Goose | Client::Other)
    {
        found.push(ServerTable::new(table, Client::Goose));
    }
    if found.is_empty() && is_bare_table(root) {
        found.push(ServerTable::new(root, client));
    }
    found
}

/// Whether a JSON file holds servers at all.
pub fn holds_servers(root: &Node) -> bool {
    let places = ["mcpServers", "servers", "mcp_servers", "mcp"];
    let found = |place: &&str| {
        root.get(place)
            .is_some_and(|table| table.fields().is_some())
    };
    places.iter().any(found) || is_bare_table(root)
}

/// `projects` of `~/.claude.json`: the servers for the folder we are in.
fn of_project<'n>(
    root: &'n Node,
    client: Client,
    surroundings: &Surroundings,
) -> Option<ServerTable<'n>> {
    let current = surroundings.current.to_string_lossy();
    let project = root.get("projects")?.get(&current)?;
    let mut servers = ServerTable::new(project.get("mcpServers")?, client);
    servers.switched_off = project
        .get("disabledMcpServers")
        .map(names)
        .unwrap_or_default();
    Some(servers)
}

/// A file that is nothing but servers by name.
fn is_bare_table(root: &Node) -> bool {
    let fields = root.fields().unwrap_or_default();
    !fields.is_empty() && fields.iter().all(|field| is_server(&field.node))
}

fn is_server(node: &Node) -> bool {
    let keys = ["command", "cmd", "url", "httpUrl", "serverUrl", "uri"];
    keys.iter()
        .any(|key| node.get(key).is_some_and(|value| value.fields().is_none()))
}

fn names(list: &Node) -> Vec<String> {
    let items = list.items().unwrap_or_default().iter();
    items
        .filter_map(|item| Some(item.text()?.to_owned()))
        .collect()
}
