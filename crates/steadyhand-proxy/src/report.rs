//! What is told of an exchange when it has ended: counted always; logged, kept in history and told live where something
//! was mended, refused, broken or missing; and alerts hear of what was mended or broken.

use std::sync::Arc;

use steadyhand::clock;
use steadyhand::redact;
use steadyhand_conversation::{Fix, Problem};
use tokio::time::Instant;

use super::ProxyState;
use super::figures::{Ended, UnderWay};
use super::headers::Fixes;
use super::keep::Keeping;
use super::site::Site;
use super::tap::Seen;
use super::trouble::{Trouble, UNFINISHED};
use super::upstream::Upstream;
use steadyhand_server::live::{ExchangeTold, LiveEvent};
use steadyhand_store::history::{Exchange, ExchangeFailure, Finding, LISTED_MAX, Refusal};

const PATH_CHARS_MAX: usize = 200;
const MODEL_CHARS_MAX: usize = 100;
const MESSAGE_BYTES_MAX: usize = 300;

/// Follows one exchange. When it goes, what is known is told; an end that nobody saw is the client's going away.
pub(super) struct Report {
    state: ProxyState,
    site: Site,
    upstream: Option<Arc<Upstream>>,
    exchange: Exchange,
    begun: Instant,
    fixes: Vec<Fix>,
    /// What was mended in the answer.
    answer_fixes: Vec<Fix>,
    /// What was not mended, because the request is signed.
    unmended: Vec<Fix>,
    problems: Vec<Problem>,
    failure: Option<&'static str>,
    ended: Option<Ended>,
    keeping: Option<Keeping>,
    _under_way: UnderWay,
}

impl Report {
    /// A request has come in, at a path of the provider's own, without a query: that may hold a key.
    pub(super) fn begin(state: &ProxyState, site: Site, path: &str, caller: &str) -> Report {
        Report {
            site,
            upstream: None,
            exchange: Exchange {
                at_ms: clock::wall_ms(),
                provider: site.as_str().to_owned(),
                path: path.chars().take(PATH_CHARS_MAX).collect(),
                caller: Some(caller.to_owned()),
                ..Exchange::default()
            },
            begun: Instant::now(),
            fixes: Vec::new(),
            answer_fixes: Vec::new(),
            unmended: Vec::new(),
            problems: Vec::new(),
            failure: None,
            ended: None,
            keeping: None,
            _under_way: state.proxy.counts.begin(),
            state: state.clone(),
        }
    }

    pub(super) fn goes_to(&mut self, upstream: &Arc<Upstream>) {
        self.upstream = Some(Arc::clone(upstream));
    }

    pub(super) fn asked(&mut self, model: Option<&str>, fixes: Vec<Fix>) {
        let model = model.map(|model| model.chars().take(MODEL_CHARS_MAX).collect());
        self.exchange.model = model;
        self.fixes = fixes;
    }

    pub(super) fn fixes(&self) -> &[Fix] {
        &self.fixes
    }

    /// The request is signed by its client, and we have no keys to sign it anew: it passes as it is.
    pub(super) fn left_unmended(&mut self, fixes: Vec<Fix>) {
        for fix in fixes.iter().take(LISTED_MAX) {
            tracing::warn!(provider = self.site.as_str(), at = %fix.at, code = fix.code.as_str(), "not mended, because the request is signed: {}", fix.message);
        }
        self.unmended = fixes;
    }

    /// The answer was changed on its way to the client.
    pub(super) fn mended_answer(&mut self, fixes: Vec<Fix>) {
        self.answer_fixes = fixes;
    }

    /// What was mended, there and back.
    pub(super) fn all_fixes(&self) -> Fixes<'_> {
        Fixes {
            of_request: &self.fixes,
            of_answer: &self.answer_fixes,
            left_out: &self.unmended,
        }
    }

    /// The conversation is to be kept.
    pub(super) fn keep(&mut self, keeping: Keeping) {
        self.keeping = Some(keeping);
    }

    pub(super) fn keeps(&self) -> bool {
        self.keeping.is_some()
    }

    /// The head of the answer has come.
    pub(super) fn status(&mut self, status: u16, streamed: bool) {
        self.exchange.status = status;
        self.exchange.streamed = streamed;
    }

    /// What was found in the answer.
    pub(super) fn saw(&mut self, seen: Seen) {
        // Where tools are run inside, an answer has several rounds.
        self.problems.extend(seen.problems);
        if let (Some(keeping), Some(answer)) = (&mut self.keeping, seen.answer) {
            keeping.answered(answer);
        }
    }

    /// The provider refused the conversation.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        self.exchange.refusal = Some(refusal);
    }

    /// All of the answer has passed.
    pub(super) fn answered(&mut self) {
        self.ended = Some(match self.exchange.status {
            0..=399 => Ended::Answered,
            _ => Ended::Refused,
        });
    }

    /// There is no answer, or no whole one. Gives back what to tell the client.
    pub(super) fn failed(&mut self, trouble: &Trouble) -> String {
        let words = trouble.words(self.upstream.as_deref());
        self.failure = Some(trouble.code());
        self.exchange.failure = Some(ExchangeFailure {
            code: trouble.code().to_owned(),
            message: words.clone(),
        });
        self.ended = Some(Ended::Failed);
        words
    }

    fn is_worth_telling(&self) -> bool {
        !self.fixes.is_empty()
            || !self.problems.is_empty()
            || self.exchange.failure.is_some()
            || self.exchange.refusal.is_some()
    }

    fn log(&self) {
        let provider = self.site.as_str();
        for problem in self.problems.iter().take(LISTED_MAX) {
            let message = redact::text(&problem.message);
            tracing::warn!(provider, at = %problem.at, code = problem.code.as_str(), "a call in the answer is broken: {message}");
        }
        if let Some(failure) = &self.exchange.failure {
            tracing::warn!(provider, code = failure.code, "{}", failure.message);
        }
        if let Some(refusal) = &self.exchange.refusal {
            let at = refusal.at.as_deref().unwrap_or("?");
            match refusal.is_known {
                true => tracing::info!(
                    provider,
                    at,
                    "the provider refused a conversation: {}",
                    refusal.message
                ),
                false => tracing::warn!(
                    provider,
                    at,
                    case = refusal.case.as_deref(),
                    "the provider refused a conversation by a rule that is not known here: {}",
                    refusal.message
                ),
            }
        }
    }

    fn tell(&mut self) {
        let codes = self
            .fixes
            .iter()
            .chain(&self.answer_fixes)
            .map(|fix| fix.code.as_str())
            .chain(self.problems.iter().map(|problem| problem.code.as_str()));
        let mut codes: Vec<&'static str> = codes.collect();
        codes.sort_unstable();
        codes.dedup();
        let refusal = self.exchange.refusal.as_ref();
        self.state
            .server
            .live
            .publish(LiveEvent::Exchange(ExchangeTold {
                provider: self.exchange.provider.clone(),
                model: self.exchange.model.clone(),
                at_ms: clock::wall_ms(),
                status: self.exchange.status,
                fixes: self.fixes.len() + self.answer_fixes.len(),
                problems: self.problems.len(),
                codes,
                failure: self.failure,
                unknown_rule: refusal.is_some_and(|refusal| !refusal.is_known),
            }));
        let mut exchange = std::mem::take(&mut self.exchange);
        exchange.took_ms = self.begun.elapsed().as_secs_f64() * 1e3;
        exchange.fix_count = self.fixes.len() + self.answer_fixes.len();
        let fixes = self.fixes.iter();
        let of_request = fixes.map(|fix| finding(&fix.at, fix.code.as_str(), &fix.message));
        let of_answer = self.answer_fixes.iter().map(|fix| {
            let message = format!("in the response: {}", fix.message);
            finding(&fix.at, fix.code.as_str(), &message)
        });
        exchange.fixes = of_request.chain(of_answer).take(LISTED_MAX).collect();
        let problems = self.problems.iter();
        exchange.problems = problems
            .take(LISTED_MAX)
            .map(|problem| finding(&problem.at, problem.code.as_str(), &problem.message))
            .collect();
        self.state.server.history.note(&exchange);
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let ended = self.ended.unwrap_or(Ended::Left);
        self.state.proxy.counts.end(self.site, ended);
        let provider = self.site.as_str();
        if !self.problems.is_empty() || self.failure == Some(UNFINISHED) {
            self.state.proxy.counts.broken(self.site);
            self.state.server.alerts.response_invalid(provider);
        }
        if !self.fixes.is_empty() {
            self.state.server.alerts.conversation_mended(provider);
        }
        if let Some(keeping) = self.keeping.take() {
            keeping.put(&self.state.proxy.kept, &self.exchange, &self.fixes);
        }
        if self.is_worth_telling() {
            self.log();
            self.tell();
        }
    }
}

pub(super) fn finding(at: &str, code: &str, message: &str) -> Finding {
    Finding {
        at: steadyhand::cut::text(at, MESSAGE_BYTES_MAX),
        code: code.to_owned(),
        message: steadyhand::cut::text(&redact::text(message), MESSAGE_BYTES_MAX),
    }
}
