//! What people ask about the tools in force: where a policy comes from, what is missing, what does not fit.

use std::collections::HashMap;

use steadyhand::{BreakerState, Tool};
use steadyhand_mcp::Phase;

use super::loaded::{Loaded, Shadowed};
use super::{Runtime, SourceProblem};
use crate::source::LeftOut;
use steadyhand_config::PolicySettings;
use steadyhand_config::document::escaped;

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
    pub fn only_reads(&self, tool: &Tool) -> bool {
        let policy = self.manager().policy(tool.name());
        if !policy.is_some_and(|policy| policy.safe_to_repeat) {
            return false;
        }
        let generation = self.generation();
        let mut sources = generation.sources.iter();
        let source = sources.find(|source| source.brings(tool.name()));
        source.is_some_and(|source| source.only_reads(tool))
    }

    /// How a tool fares, in a word: ready, breaker open, breaker half-open, starting, not running, disabled.
    pub fn state_of(&self, tool: &str) -> &'static str {
        let generation = self.generation();
        let source = generation.sources.iter().find(|source| source.brings(tool));
        let server = source.and_then(Loaded::server);
        match server.map(|server| server.state().phase) {
            Some(Phase::Running | Phase::Idle) => {}
            Some(phase) => return phase.word(),
            None if source.is_some_and(|source| source.unavailable().is_some()) => {
                return "disabled";
            }
            None => {}
        }
        let breaker = self.manager().breaker(tool);
        match breaker.map(|breaker| breaker.state) {
            Some(BreakerState::Open) => "breaker open",
            Some(BreakerState::HalfOpen) => "breaker half-open",
            Some(BreakerState::Closed) | None => "ready",
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

/// Decides which source offers a tool that several bring. What is written under `[tools]` comes before what a server
/// brings: that would be a way to slip one in from outside. Between servers, the one later in the file replaces the
/// earlier (SPEC D3); what a server adds after its start replaces nothing. `before` are the sources so far.
pub(super) fn settle_clashes(sources: &mut [Loaded], before: &[Loaded]) {
    let mut own: HashMap<String, String> = HashMap::new();
    let mut brought: HashMap<String, Vec<Claim>> = HashMap::new();
    for (place, source) in sources.iter().enumerate() {
        for tool in &source.tools {
            let name = tool.name().to_owned();
            match source.server() {
                None => drop(own.insert(name, source.name.clone())),
                Some(server) => brought.entry(name).or_default().push(Claim {
                    place,
                    is_added_later: server.is_added_later(tool.name()),
                }),
            }
        }
    }
    let mut shadowed: Vec<Vec<Shadowed>> = vec![Vec::new(); sources.len()];
    for (tool, claims) in brought {
        let of_file = own.get(&tool).cloned();
        let used = match &of_file {
            Some(_) => None,
            None => winner(&tool, &claims, sources, before),
        };
        for claim in claims.iter().filter(|claim| Some(claim.place) != used) {
            let other = used.map(|place| sources[place].name.clone());
            shadowed[claim.place].push(Shadowed {
                tool: tool.clone(),
                by: other.or_else(|| of_file.clone()).unwrap_or_default(),
                by_server: used.is_some(),
            });
        }
    }
    for (source, mut shadowed) in sources.iter_mut().zip(shadowed) {
        shadowed.sort_by(|one, other| one.tool.cmp(&other.tool));
        for it in shadowed.iter().filter(|it| !source.shadowed.contains(it)) {
            tracing::warn!("{}", it.in_words(&source.name));
        }
        source.shadowed = shadowed;
    }
}

/// A server that brings a tool of a name.
struct Claim {
    place: usize,
    is_added_later: bool,
}

/// The place of the server whose tool is used.
fn winner(tool: &str, claims: &[Claim], sources: &[Loaded], before: &[Loaded]) -> Option<usize> {
    let at_start = claims.iter().rev().find(|claim| !claim.is_added_later);
    let held = || {
        let holder = before.iter().find(|source| {
            source.server().is_some() && source.offered().any(|own| own.name() == tool)
        })?;
        let mut claims = claims.iter();
        claims.find(|claim| sources[claim.place].name == holder.name)
    };
    let used = at_start.or_else(held).or(claims.first());
    used.map(|claim| claim.place)
}

/// Tools that several servers bring, or a server and the file: which one is used.
pub(super) fn clashes_of_servers(sources: &[Loaded]) -> Vec<SourceProblem> {
    let of = |source: &Loaded| {
        let name = source.name.clone();
        let shadowed = source.shadowed.clone().into_iter();
        shadowed.map(move |it| SourceProblem {
            reason: it.in_words(&name),
            name: it.tool,
            place: None,
        })
    };
    sources.iter().flat_map(of).collect()
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
