//! What people ask about the tools in force: where a policy comes from, what is missing, what does not fit.

use std::collections::HashMap;

use steadyhand::Tool;
use steadyhand_mcp::Phase;

use super::loaded::Loaded;
use super::{Runtime, SourceProblem};
use crate::config::PolicySettings;
use crate::config::document::escaped;
use crate::source::LeftOut;

impl Runtime {
    /// Where a tool's policy has a value from: `steadyhand.toml:62`, a variable, or the built-in default.
    pub fn origin_of_policy(&self, tool: &str, pointer: &str) -> String {
        let generation = self.generation();
        let document = &generation.configuration.document;
        let source = generation.sources.iter().find(|source| source.brings(tool));
        let mut places = Vec::new();
        if let Some(source) = source {
            let at = &source.pointer;
            let each = source
                .each
                .iter()
                .rev()
                .filter(|(pattern, _)| source.means(pattern, tool));
            places.extend(
                each.map(|(pattern, _)| format!("{at}/each/{}/{pointer}", escaped(pattern))),
            );
            places.push(format!("{at}/{pointer}"));
        }
        places.push(format!("/defaults/{pointer}"));
        let origin = places.iter().find_map(|place| document.origin(place));
        origin.map_or("default".to_owned(), |origin| origin.short())
    }

    /// Tools that are listed but cannot be called, each with the reason.
    pub fn disabled(&self) -> Vec<(String, String)> {
        let generation = self.generation();
        let of = |source: &Loaded| {
            let reason = source.unavailable().filter(|_| !source.is_off)?;
            Some((source.name.clone(), reason))
        };
        generation.sources.iter().filter_map(of).collect()
    }

    /// Why a tool is listed but cannot be called.
    pub fn unavailable(&self, tool: &str) -> Option<String> {
        let generation = self.generation();
        let source = generation
            .sources
            .iter()
            .find(|source| source.brings(tool))?;
        source.unavailable()
    }

    /// Whether a tool is known to change nothing.
    pub(crate) fn only_reads(&self, tool: &Tool) -> bool {
        let policy = self.manager().policy(tool.name());
        if !policy.is_some_and(|policy| policy.safe_to_repeat) {
            return false;
        }
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        let source = sources.find(|source| source.brings(tool.name()));
        source.is_some_and(|source| source.only_reads(tool))
    }

    /// How a tool fares, in a word: ready, starting, not running, disabled.
    pub fn state_of(&self, tool: &str) -> &'static str {
        let generation = self.generation();
        let source = generation.sources.iter().find(|source| source.brings(tool));
        let server = source.and_then(Loaded::server);
        match server.map(|server| server.state().phase) {
            Some(Phase::Running | Phase::Idle) => "ready",
            Some(phase) => phase.word(),
            None if source.is_some_and(|source| source.unavailable().is_some()) => "disabled",
            None => "ready",
        }
    }

    /// What the sources found and cannot offer, by source.
    pub fn left_out(&self) -> Vec<(String, LeftOut)> {
        let generation = self.generation();
        let of = |source: &Loaded| {
            let name = source.name.clone();
            source
                .left_out()
                .into_iter()
                .map(move |left_out| (name.clone(), left_out))
        };
        generation.sources.iter().flat_map(of).collect()
    }

    /// The settings that apply to a tool, the weakest first.
    pub fn settings_of(&self, tool: &str) -> Vec<PolicySettings> {
        let generation = self.generation();
        let source = generation.sources.iter().find(|source| source.brings(tool));
        source.map_or_else(Vec::new, |source| source.settings_of(tool))
    }

    /// What a look at all tools together finds: fallbacks that lead nowhere, retries that cannot apply.
    pub fn remarks(&self) -> Vec<SourceProblem> {
        let mut remarks = Vec::new();
        for tool in self.manager().list() {
            let Some(policy) = self.manager().policy(tool.name()) else {
                continue;
            };
            let mut remark = |pointer: &str, reason: String| {
                remarks.push(SourceProblem {
                    name: tool.name().to_owned(),
                    reason,
                    place: Some(self.origin_of_policy(tool.name(), pointer)),
                });
            };
            let fallback = policy
                .fallback
                .as_ref()
                .and_then(|fallback| fallback.tool_name());
            if let Some(target) = fallback
                && self.manager().find(target).is_none()
            {
                remark(
                    "fallback/tool",
                    format!("its fallback {target} does not exist"),
                );
            }
            let settings = self.settings_of(tool.name());
            let mut own = settings
                .iter()
                .skip(1)
                .filter_map(|settings| settings.retry.as_ref()?.attempts);
            // Where the file itself says so, the check of the file has told it.
            let is_said = settings
                .iter()
                .any(|settings| settings.idempotent == Some(false));
            if !policy.safe_to_repeat
                && !is_said
                && own.next_back().is_some_and(|attempts| attempts > 1)
            {
                let reason = "it is not known to be safe to repeat, so its retry only applies to failures that prove it never started; idempotent = true says it is";
                remark("retry/attempts", reason.to_owned());
            }
        }
        remarks
    }
}

/// A tool of a server does not take the place of another source's: that would be a way to slip one in from outside.
pub(super) fn settle_clashes(sources: &mut [Loaded]) {
    let mut seen: HashMap<String, String> = HashMap::new();
    // What is written down comes first, wherever a server stands in the file.
    let (own, servers): (Vec<usize>, Vec<usize>) =
        (0..sources.len()).partition(|place| sources[*place].server().is_none());
    for place in own.into_iter().chain(servers) {
        let source = &mut sources[place];
        let is_server = source.server().is_some();
        let mut shadowed = Vec::new();
        for tool in &source.tools {
            match seen.get(tool.name()) {
                Some(other) if is_server => shadowed.push((tool.name().to_owned(), other.clone())),
                _ => drop(seen.insert(tool.name().to_owned(), source.name.clone())),
            }
        }
        for (tool, other) in &shadowed {
            if !source.shadowed.iter().any(|(name, _)| name == tool) {
                tracing::error!(
                    server = source.name,
                    tool,
                    other,
                    "its tool is left out: the name is taken"
                );
            }
        }
        source.shadowed = shadowed;
    }
}

/// Tools of the same name: the newer replaces the older (SPEC D3), and it is said.
pub(super) fn clashes(sources: &[Loaded]) -> Vec<SourceProblem> {
    let mut seen: HashMap<&str, &str> = HashMap::new();
    let mut clashes = Vec::new();
    for source in sources {
        for tool in source.offered() {
            if let Some(other) = seen.insert(tool.name(), &source.name) {
                clashes.push(SourceProblem {
                    name: tool.name().to_owned(),
                    reason: format!(
                        "{other} and {} both bring a tool of this name; the one of {} is used",
                        source.name, source.name
                    ),
                    place: None,
                });
            }
        }
    }
    clashes
}
