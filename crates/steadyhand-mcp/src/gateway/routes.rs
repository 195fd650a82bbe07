//! Which server a prompt or a resource belongs to.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::listing::{member, renamed};
use crate::client::catalogue::lists::Listed;
use crate::client::catalogue::names;
use crate::client::server::Server;

/// Servers that are asked one after the other for a resource that none of them lists.
const CANDIDATES_MAX: usize = 8;

/// Who has what.
#[derive(Default)]
pub(super) struct Routes {
    /// By our name: the server, and its own name.
    prompts: HashMap<String, (Server, String)>,
    resources: HashMap<String, Server>,
    /// Resources that a server lists and that are kept away.
    withheld: HashSet<String>,
    templates: Vec<(Template, Server)>,
    /// All that have resources.
    with_resources: Vec<Server>,
}

impl Routes {
    /// The server of a prompt, and its own name for it.
    pub(super) fn prompt(&self, name: &str) -> Option<&(Server, String)> {
        self.prompts.get(name)
    }

    /// The servers that may have a resource, the likeliest first: the one that lists it, the one whose template fits
    /// best; else all that have resources, those of the same scheme first.
    pub(super) fn resource(&self, uri: &str) -> Vec<Server> {
        if let Some(server) = self.resources.get(uri) {
            return vec![server.clone()];
        }
        if self.withheld.contains(uri) {
            return Vec::new();
        }
        let fitting = self.templates.iter().filter_map(|(template, server)| {
            let fit = template.fit(uri)?;
            Some((fit, server))
        });
        if let Some((_, server)) = fitting.max_by_key(|(fit, _)| *fit) {
            return vec![server.clone()];
        }
        // Results of tools name resources that nobody lists.
        let scheme = scheme(uri);
        let has_scheme = |server: &Server| {
            let listed = self.resources.iter().filter(|(_, own)| own.is(server));
            let mut schemes = listed.map(|(uri, _)| self::scheme(uri));
            schemes.any(|own| own == scheme)
        };
        let mut servers = self.with_resources.clone();
        servers.sort_by_key(|server| !has_scheme(server));
        servers.truncate(CANDIDATES_MAX);
        servers
    }

    /// The server of a template, by the template itself.
    pub(super) fn template(&self, template: &str) -> Option<&Server> {
        let found = self.templates.iter().find(|(own, _)| own.text == template);
        found.map(|(_, server)| server)
    }

    /// Prompts are named as tools are. A name that another server has is not taken from it.
    pub(super) fn add_prompts(
        &mut self,
        server: &Server,
        entries: &[Box<RawValue>],
    ) -> Vec<Box<RawValue>> {
        let named = entries
            .iter()
            .filter_map(|entry| Some((entry, member(entry, "name")?)));
        let named: Vec<(&Box<RawValue>, String)> = named.collect();
        let own: Vec<&str> = named.iter().map(|(_, name)| name.as_str()).collect();
        let names = names::assign(server.name(), server.settings().prefix, &own);
        let mut listed = Vec::with_capacity(named.len());
        for ((entry, own), name) in named.into_iter().zip(names) {
            let name = match self.prompts.contains_key(&name) {
                false => name,
                true => names::assign(server.name(), true, &[&own]).swap_remove(0),
            };
            if self.prompts.contains_key(&name) {
                tracing::warn!(
                    server = server.name(),
                    prompt = own,
                    "another prompt has its name"
                );
                continue;
            }
            let entry = match name == own {
                true => Some(entry.clone()),
                false => renamed(entry, &name),
            };
            listed.extend(entry);
            self.prompts.insert(name, (server.clone(), own));
        }
        listed
    }

    /// A resource that two servers list is the first one's.
    pub(super) fn add_resources(
        &mut self,
        server: &Server,
        entries: &[Box<RawValue>],
    ) -> Vec<Box<RawValue>> {
        let greeting = server.greeting();
        let capability = Listed::Resources.capability();
        let has = greeting.is_some_and(|greeting| greeting.capabilities.get(capability).is_some());
        if has || !entries.is_empty() {
            self.with_resources.push(server.clone());
        }
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(uri) = member(entry, "uri") else {
                continue;
            };
            if self.resources.contains_key(&uri) {
                tracing::debug!(server = server.name(), uri, "another server lists it, too");
                continue;
            }
            self.resources.insert(uri, server.clone());
            listed.push(entry.clone());
        }
        let all = server.listed(Listed::Resources);
        if all.len() > entries.len() {
            let uris = all.iter().filter_map(|entry| member(entry, "uri"));
            let withheld = uris.filter(|uri| !self.resources.contains_key(uri));
            self.withheld.extend(withheld);
        }
        listed
    }

    pub(super) fn add_templates(
        &mut self,
        server: &Server,
        entries: &[Box<RawValue>],
    ) -> Vec<Box<RawValue>> {
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(text) = member(entry, "uriTemplate") else {
                continue;
            };
            if self.template(&text).is_none() {
                self.templates.push((Template::new(text), server.clone()));
                listed.push(entry.clone());
            }
        }
        listed
    }
}

fn scheme(uri: &str) -> &str {
    uri.split_once(':').map_or("", |(scheme, _)| scheme)
}

/// A URI template (RFC 6570), as far as it is needed to see whether a URI may be one of it.
struct Template {
    text: String,
    /// What stands between its expressions, the ends included.
    literals: Vec<String>,
}

impl Template {
    fn new(text: String) -> Template {
        let mut literals = vec![String::new()];
        let mut is_expression = false;
        for letter in text.chars() {
            match (letter, is_expression) {
                ('{', false) => is_expression = true,
                ('}', true) => {
                    is_expression = false;
                    literals.push(String::new());
                }
                (_, true) => {}
                (letter, false) => {
                    if let Some(last) = literals.last_mut() {
                        last.push(letter);
                    }
                }
            }
        }
        Template { text, literals }
    }

    /// How many bytes of the URI are the template's own; none if the URI cannot be one of it.
    fn fit(&self, uri: &str) -> Option<usize> {
        let [first, rest @ ..] = &self.literals[..] else {
            return None;
        };
        let mut left = uri.strip_prefix(first.as_str())?;
        let Some((last, between)) = rest.split_last() else {
            return left.is_empty().then_some(first.len());
        };
        for literal in between {
            let at = left.find(literal.as_str())?;
            left = &left[at + literal.len()..];
        }
        left.ends_with(last.as_str())
            .then(|| self.literals.iter().map(String::len).sum())
    }
}
