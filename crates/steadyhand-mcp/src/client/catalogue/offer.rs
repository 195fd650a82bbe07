//! The tools a server offers through us: picked, named, and the same objects as long as they stay the same.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use steadyhand::Tool;

use crate::client::calls::handler::{McpTool, tell_renamed};
use crate::client::calls::parameters::ParameterNames;
use crate::client::catalogue::Catalogue;
use crate::client::catalogue::definition::{Definition, Unusable};
use crate::client::catalogue::names;
use crate::client::http::headers::ParamHeaders;
use crate::client::server::{Inner, Server};
use crate::client::settings::{ServerSettings, Treatment};

/// What is offered.
#[derive(Default)]
pub(crate) struct Offer {
    catalogue: Catalogue,
    /// The server's names of the tools it had when it was started for the first time, or in an earlier run.
    at_start: HashSet<String>,
    /// Our name and the server's name of each tool that is offered, in the server's order.
    offered: Vec<(String, usize)>,
    /// The same by our name.
    places: HashMap<String, usize>,
    /// Tools that have been handed out, by our name: a breaker lives as long as its tool does.
    made: HashMap<String, (MadeOf, Tool)>,
}

/// A tool, and what its server says of it at the same moment.
#[derive(Clone)]
pub struct OfferedTool {
    /// The tool.
    pub tool: Tool,
    /// Its definition as the server wrote it.
    pub own: Box<RawValue>,
    /// The same under our name.
    pub definition: Box<RawValue>,
}

/// What a tool was made of: as long as this stays the same, so does the tool.
#[derive(PartialEq)]
struct MadeOf {
    raw: Map<String, Value>,
    treatment: Treatment,
}

impl Offer {
    /// Takes over what the server says now, be it while it starts for the first time. Whether anything is different.
    pub(crate) fn renew(
        &mut self,
        catalogue: Catalogue,
        settings: &ServerSettings,
        is_first_start: bool,
    ) -> bool {
        if is_first_start {
            let names = catalogue.definitions.iter();
            self.at_start.extend(names.map(|tool| tool.name.clone()));
        }
        let changed = !self.catalogue.is_like(&catalogue);
        self.catalogue = catalogue;
        if changed {
            self.pick(settings);
        }
        changed
    }

    /// Chooses and names the tools as the settings say.
    pub(crate) fn pick(&mut self, settings: &ServerSettings) {
        let definitions = self.catalogue.definitions.iter().enumerate();
        let picked: Vec<(usize, &Definition)> = definitions
            .filter(|(_, definition)| settings.tools.takes(&definition.name))
            .collect();
        let own: Vec<&str> = picked.iter().map(|(_, tool)| tool.name.as_str()).collect();
        let names = names::assign(&settings.name, settings.prefix, &own);
        self.offered = picked
            .iter()
            .zip(names)
            .map(|((place, definition), name)| {
                let renamed = settings.rename.get(&definition.name).cloned();
                (renamed.unwrap_or(name), *place)
            })
            .collect();
        self.places = self.offered.iter().cloned().collect();
    }

    pub(crate) fn len(&self) -> usize {
        self.offered.len()
    }

    /// The server's own name of a tool.
    pub(crate) fn own_name(&self, tool: &str) -> Option<&str> {
        let place = self.places.get(tool)?;
        Some(&self.catalogue.definitions[*place].name)
    }

    /// Whether the server has added a tool after its start.
    pub(crate) fn is_added_later(&self, tool: &str) -> bool {
        self.own_name(tool)
            .is_some_and(|own| !self.at_start.contains(own))
    }

    /// A tool's own definition, under our name.
    pub(crate) fn definition(&self, tool: &str) -> Option<Box<RawValue>> {
        self.catalogue.renamed(*self.places.get(tool)?, tool)
    }

    /// The tools that cannot be offered and would have been picked, under the names they would have.
    pub(crate) fn unusable(&self, settings: &ServerSettings) -> Vec<Unusable> {
        let named = self.unusable_by_our_names(settings);
        named
            .map(|(name, tool)| Unusable {
                name,
                ..tool.clone()
            })
            .collect()
    }

    /// Why the tool that would have this name cannot be offered.
    pub(crate) fn why_unusable(&self, settings: &ServerSettings, name: &str) -> Option<String> {
        let mut named = self.unusable_by_our_names(settings);
        let (_, found) = named.find(|(ours, _)| ours == name)?;
        Some(found.reason.clone())
    }

    fn unusable_by_our_names<'a>(
        &'a self,
        settings: &'a ServerSettings,
    ) -> impl Iterator<Item = (String, &'a Unusable)> {
        let all = self.catalogue.unusable.iter();
        let picked = all.filter(|tool| !tool.is_named || settings.tools.takes(&tool.name));
        picked.map(|tool| {
            let renamed = settings.rename.get(&tool.name).cloned();
            let assigned = || names::assign(&settings.name, settings.prefix, &[&tool.name]).pop();
            let ours = renamed.or_else(assigned).filter(|_| tool.is_named);
            (ours.unwrap_or_else(|| tool.name.clone()), tool)
        })
    }

    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// The tools with their definitions.
    pub(crate) fn offered(&mut self, server: &Server) -> Vec<OfferedTool> {
        let tools = self.tools(server).into_iter();
        let with_definitions = tools
            .zip(&self.offered)
            .filter_map(|(tool, (name, place))| {
                Some(OfferedTool {
                    tool,
                    own: self.catalogue.own(*place)?.to_owned(),
                    definition: self.catalogue.renamed(*place, name)?,
                })
            });
        with_definitions.collect()
    }

    pub(crate) fn tools(&mut self, server: &Server) -> Vec<Tool> {
        let settings = server.settings();
        let mut made = HashMap::with_capacity(self.offered.len());
        let mut tools = Vec::with_capacity(self.offered.len());
        for (name, place) in &self.offered {
            let definition = &self.catalogue.definitions[*place];
            let made_of = MadeOf {
                raw: definition.raw.clone(),
                treatment: settings.treatment(&definition.name),
            };
            let tool = match self.made.remove(name) {
                Some((before, tool)) if before == made_of => tool,
                _ => make(name, definition, &made_of.treatment, server),
            };
            tools.push(tool.clone());
            made.insert(name.clone(), (made_of, tool));
        }
        self.made = made;
        tools
    }
}

fn make(name: &str, definition: &Definition, treatment: &Treatment, server: &Server) -> Tool {
    let own = &definition.name;
    let names = Arc::new(ParameterNames::new(
        &definition.schema,
        &treatment.params,
        treatment.camel_case,
    ));
    // The server's handle stays with whoever configured it: tools alone do not keep a server running.
    let inner: Weak<Inner> = Arc::downgrade(&server.inner);
    let headers = ParamHeaders::of(&definition.schema).unwrap_or_default();
    let handler = McpTool::new(
        own,
        inner,
        Arc::clone(&names),
        headers,
        treatment.progress_extends,
    );
    let before_check = {
        let own = own.clone();
        move |args: &mut Value| {
            let renamed = names.before_check(args);
            tell_renamed(&own, &renamed);
        }
    };
    let is_safe = definition.safe_to_repeat();
    let tool = Tool::new(
        name,
        &definition.description,
        definition.schema.clone(),
        Arc::new(handler),
    )
    .of_kind("mcp")
    .from_source(server.name())
    .prepared_by(before_check)
    // SPEC D7: safe only if the server says so.
    .adjusted(move |policy| policy.safe_to_repeat = is_safe);
    match &treatment.alias {
        Some(alias) => tool.alias(alias),
        None => tool,
    }
}
