//! What a tool says when it fails, and how that becomes a failure: by type first, by words last.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use regex::RegexSet;

use crate::failure::{Effect, Failure, FailureCode, Problem, ToldAgain};
use crate::output::Output;

/// The error of a tool. `?` turns any [`std::error::Error`] into one; its type decides the
/// category (an `io::Error` of a refused connection is a network failure that never started).
///
/// ```
/// use steadyhand::ToolError;
///
/// async fn read_sensor() -> Result<f64, ToolError> {
///     let text = "21.5 C";
///     let number = text.split(' ').next().ok_or(ToolError::new("empty reading"))?;
///     Ok(number.parse()?)
/// }
/// ```
pub struct ToolError(Box<Details>);

#[derive(Clone)]
struct Details {
    category: Category,
    message: String,
    user_message: Option<String>,
    effect: Option<Effect>,
    result_lost: bool,
    retry_after: Option<Duration>,
    declared_final: bool,
    /// Someone who knows has chosen the category; the words are not asked.
    classified: bool,
    problems: Vec<Problem>,
    /// The failure is known already, all of it.
    told_again: Option<Box<Failure>>,
}

/// The categories a tool can choose from; the other failure codes are the engine's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Unreachable, or the connection broke.
    Network,
    /// Too slow.
    Timeout,
    /// Called too often.
    RateLimit,
    /// The credentials are not accepted.
    Authentication,
    /// The arguments are not acceptable to the tool.
    Validation,
    /// The tool's own capacity is used up; it was not started.
    Overloaded,
    /// Someone, or a rule, did not allow it to run.
    Denied,
    /// Nobody said yes or no in time.
    Expired,
    /// Anything else.
    Unknown,
}

impl ToolError {
    /// A failure of no special category: retried where the tool is safe to repeat.
    pub fn new(message: impl Into<String>) -> ToolError {
        ToolError::of(Category::Unknown, message)
    }

    /// A failure of a known category.
    pub fn of(category: Category, message: impl Into<String>) -> ToolError {
        ToolError(Box::new(Details {
            category,
            message: message.into(),
            user_message: None,
            effect: None,
            result_lost: false,
            retry_after: None,
            declared_final: false,
            classified: false,
            problems: Vec::new(),
            told_again: None,
        }))
    }

    /// A failure that was told before, as it was, with what a fallback gave then: for whoever answers from a recording.
    /// It is not repeated, asks no fallback, and says nothing about the health of a tool.
    pub fn told_again(mut failure: Failure, fallback: Option<Output>) -> ToolError {
        let mut error = ToolError::new(failure.message.clone()).declared_final();
        failure.neutral = true;
        failure.told_again = Some(Box::new(ToldAgain { fallback }));
        error.0.told_again = Some(Box::new(failure));
        error
    }

    /// The tool's own well-formed "no": an answer. Not retried, and no sign of illness (SPEC D8).
    pub fn answer(message: impl Into<String>) -> ToolError {
        ToolError::new(message).declared_final()
    }

    /// An HTTP status that is no success.
    pub fn from_http_status(status: u16, message: impl Into<String>) -> ToolError {
        match status {
            401 | 403 | 407 => ToolError::of(Category::Authentication, message),
            408 | 504 => ToolError::of(Category::Timeout, message),
            425 | 429 => ToolError::of(Category::RateLimit, message),
            // Also 400 and 422: the service has read the request and says no (SPEC D8).
            400..=499 => ToolError::answer(message),
            502 | 503 => ToolError::of(Category::Network, message),
            // The status has spoken; the words of its page are not asked (SPEC R07). The service broke somewhere on
            // the way: nobody knows where.
            _ => ToolError::new(message)
                .reclassified(Category::Unknown)
                .effect(Effect::Unknown),
        }
    }

    /// A JSON-RPC error object's code, as MCP servers use them.
    pub fn from_json_rpc(code: i64, message: impl Into<String>) -> ToolError {
        match code {
            -32602 => ToolError::of(Category::Validation, message),
            // The TypeScript SDK's "request timed out".
            -32001 => ToolError::of(Category::Timeout, message),
            -32700 | -32601 | -32600 => ToolError::answer(message).never_started(),
            // It can mean anything, also that the server broke on the way.
            _ => ToolError::new(message).effect(Effect::Unknown),
        }
    }

    /// The friendly text for the person in front of the application.
    pub fn user_message(mut self, text: impl Into<String>) -> ToolError {
        self.0.user_message = Some(text.into());
        self
    }

    /// What the failed run did out there, where the tool knows better than its category.
    pub fn effect(mut self, effect: Effect) -> ToolError {
        self.0.effect = Some(effect);
        self
    }

    /// It is certain that nothing ran.
    pub fn never_started(self) -> ToolError {
        self.effect(Effect::None)
    }

    /// The tool ran to its end, and only its result cannot be used: too large, unreadable, not as declared.
    pub fn result_lost(mut self) -> ToolError {
        self.0.effect = Some(Effect::Done);
        self.0.result_lost = true;
        // These words are about a result: "invalid" in them is no fault of the arguments.
        self.0.classified = true;
        self
    }

    /// When trying again makes sense. Zero means "not said".
    pub fn retry_after(mut self, wait: Duration) -> ToolError {
        self.0.retry_after = (!wait.is_zero()).then_some(wait);
        self
    }

    /// Trying again will not help, and the tool is not ill.
    pub fn declared_final(mut self) -> ToolError {
        self.0.declared_final = true;
        self
    }

    /// Faults in the arguments that the tool itself found.
    pub fn problems(mut self, problems: Vec<Problem>) -> ToolError {
        self.0.problems = problems;
        self
    }

    /// The same error with other words: for those who must take something out of them.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(String) -> String) -> ToolError {
        let details = &mut *self.0;
        details.message = change(std::mem::take(&mut details.message));
        details.user_message = details.user_message.take().map(&change);
        for problem in &mut details.problems {
            problem.message = change(std::mem::take(&mut problem.message));
            problem.got = problem.got.take().map(&change);
        }
        self
    }

    /// The tool's own words.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The category, as far as types say.
    pub fn category(&self) -> Category {
        self.0.category
    }

    /// The failure this error is for a call of `tool`.
    pub(crate) fn into_failure(self, tool: &str) -> Failure {
        let mut details = *self.0;
        if let Some(known) = details.told_again {
            return *known;
        }
        let undecided = !details.classified && !details.declared_final;
        if details.category == Category::Unknown && undecided {
            details.category = category_by_words(&details.message);
            // Words cannot prove that nothing ran: the tool came to its end, and these are its words.
            let effect = match details.category {
                Category::Network | Category::Timeout => Effect::Unknown,
                _ => Effect::Done,
            };
            details.effect = details.effect.or(Some(effect));
        }
        let code = details.category.code();
        let effect = details.effect.unwrap_or(details.category.usual_effect());
        let mut failure = Failure::new(code, effect, details.message);
        failure.user_message = details
            .user_message
            .unwrap_or_else(|| friendly_text(code, tool));
        failure.result_lost = details.result_lost;
        failure.retryable &= !details.declared_final;
        failure.neutral = details.declared_final;
        failure.retry_after = details.retry_after;
        failure.problems = details.problems;
        failure
    }

    /// The same error once more, for scripts that repeat it.
    #[cfg(feature = "testing")]
    pub(crate) fn duplicate(&self) -> ToolError {
        ToolError(self.0.clone())
    }

    /// The same error in another category: what a tool's own classifier found.
    pub(crate) fn reclassified(mut self, category: Category) -> ToolError {
        self.0.category = category;
        self.0.classified = true;
        self
    }
}

impl Category {
    fn code(self) -> FailureCode {
        match self {
            Category::Network => FailureCode::NetworkError,
            Category::Timeout => FailureCode::Timeout,
            Category::RateLimit => FailureCode::RateLimitError,
            Category::Authentication => FailureCode::AuthenticationError,
            Category::Validation => FailureCode::ValidationError,
            Category::Overloaded => FailureCode::Overloaded,
            Category::Denied => FailureCode::ApprovalDenied,
            Category::Expired => FailureCode::ApprovalExpired,
            Category::Unknown => FailureCode::ToolExecutionError,
        }
    }

    fn usual_effect(self) -> Effect {
        match self {
            Category::Network | Category::Timeout => Effect::Unknown,
            // The tool itself says how it ended.
            Category::Unknown => Effect::Done,
            Category::RateLimit
            | Category::Authentication
            | Category::Validation
            | Category::Overloaded
            | Category::Denied
            | Category::Expired => Effect::None,
        }
    }
}

/// The friendly texts (SPEC V09, R07), one per code. The effect is added when it is known: `Failure::complete`.
pub(crate) fn friendly_text(code: FailureCode, tool: &str) -> String {
    match code {
        FailureCode::NetworkError => {
            format!("The service behind {tool} is unavailable right now.")
        }
        FailureCode::Timeout => format!("{tool} took too long and timed out."),
        FailureCode::RateLimitError => {
            format!("{tool} is being used too often right now.")
        }
        FailureCode::ToolExecutionError => format!("{tool} ran into a problem and gave no result."),
        FailureCode::AuthenticationError => {
            format!("{tool} did not accept the credentials. Please check its key or sign in again.")
        }
        FailureCode::ValidationError => {
            format!("{tool} could not be used with these values.")
        }
        FailureCode::CircuitOpen => {
            format!("{tool} has failed several times in a row and is paused.")
        }
        FailureCode::ToolNotFound => format!("There is no tool called {tool}."),
        FailureCode::Cancelled => format!("{tool} was cancelled."),
        FailureCode::Overloaded => format!("{tool} is busy right now."),
        FailureCode::ApprovalDenied => format!("{tool} was not allowed to run."),
        FailureCode::ApprovalExpired => format!("Nobody allowed {tool} to run in time."),
        FailureCode::IdempotencyConflict => {
            format!("{tool} was already asked to do something else under the same key.")
        }
    }
}

/// The last resort: what an unknown error's text says. Only phrases that mean one thing: "Request timeout" is one,
/// "the timeout parameter is unknown" is not. Of several, the first in this list decides.
fn category_by_words(message: &str) -> Category {
    const PATTERNS: [(&str, Category); 6] = [
        (
            r"(?i)\brate.?limit(ed|ing|s)?(\s+(exceeded|reached|hit|error)\b|\s*[:.,;!(]|\s*$)|\brate.?limited\b|\btoo many requests\b",
            Category::RateLimit,
        ),
        (
            r"(?i)\b(unauthori[sz]ed|unauthenticated|not authori[sz]ed|invalid (api.?key|credentials|token)|authentication (is )?(failed|required|error))\b",
            Category::Authentication,
        ),
        (
            r"(?i)\btimed[ -]out\b|\btime-?out\s*(error|exceeded|expired|occurred|reached|waiting|while|after|of \d)|\btime-?out\s*([:.,;!(]|$)|\b(request|response|connect|connection|read|gateway|socket|operation|query)[ -]time-?out\b|\bTimeoutError\b|\b(deadline exceeded|ETIMEDOUT|ESOCKETTIMEDOUT)\b",
            Category::Timeout,
        ),
        (
            r"(?i)\b(ECONNREFUSED|ECONNRESET|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|connection (refused|reset|closed|aborted|lost)|no route to host|dns error|socket hang up|broken pipe|fetch failed)\b",
            Category::Network,
        ),
        (
            r"(?i)\bnetwork (is )?(error|failure|problem|issue|down|unreachable|unavailable|request failed)\b|^\s*network[.!]?\s*$",
            Category::Network,
        ),
        (
            r"(?i)^\s*(\w*error:\s*)?invalid\b|\binvalid (inputs?|parameters?|params?|arguments?|values?|requests?|fields?|formats?|types?|options?)\b|\b(is|are) required\b|^\s*required\b|\bmissing required\b|\brequired (inputs?|parameters?|arguments?|fields?|propert(y|ies)|values?)\b|\bvalidation (failed|error)\b",
            Category::Validation,
        ),
    ];
    static SET: LazyLock<RegexSet> = LazyLock::new(|| {
        RegexSet::new(PATTERNS.iter().map(|(pattern, _)| pattern)).expect("fixed patterns")
    });
    // A long text is a report, not a phrase; its first lines say what happened.
    let mut end = message.len().min(1_000);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    let first = SET.matches(&message[..end]).iter().next();
    first.map_or(Category::Unknown, |index| PATTERNS[index].1)
}

/// Any error becomes a tool's error, its category taken from the types in its chain of causes.
impl<E: Error + 'static> From<E> for ToolError {
    fn from(error: E) -> ToolError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        let mut depth = 0;
        while let Some(current) = cause
            && depth < 32
        {
            if let Some(io_error) = current.downcast_ref::<io::Error>() {
                return from_io_kind(io_error.kind(), error.to_string());
            }
            if current.is::<tokio::time::error::Elapsed>() {
                return ToolError::of(Category::Timeout, error.to_string());
            }
            cause = current.source();
            depth += 1;
        }
        ToolError::new(error.to_string())
    }
}

fn from_io_kind(kind: io::ErrorKind, message: String) -> ToolError {
    match kind {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable => {
            ToolError::of(Category::Network, message).never_started()
        }
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::NotConnected
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::UnexpectedEof => ToolError::of(Category::Network, message),
        io::ErrorKind::TimedOut => ToolError::of(Category::Timeout, message),
        _ => ToolError::new(message),
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolError({:?}: {})", self.0.category, self.0.message)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}
