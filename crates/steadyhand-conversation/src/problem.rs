//! What was found and what was changed: problems for `validate`, fixes for `repair`.

use std::fmt;

use serde::Serialize;

use steadyhand::cut;

/// The longest text about a problem: ids and names in it are as long as somebody made them.
const TEXT_BYTES_MAX: usize = 4 * 1024;

/// One thing a provider would refuse, or misread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Where, as a JSON Pointer into what was given.
    pub at: String,
    /// What kind of fault it is, for programs.
    pub code: Code,
    /// What is wrong, for people.
    pub message: String,
    /// What the provider itself would answer. None where it says nothing and the model is misled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_text: Option<String>,
}

/// One change that a repair made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// Where, as a JSON Pointer into what was given.
    pub at: String,
    /// The fault that was mended.
    pub code: Code,
    /// What was wrong, and what was done about it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.code.as_str(), self.message)
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.at, self.code.as_str(), self.message)
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// The kinds of faults.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl Code {
            /// All of them, for documentation and tests.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The code as it appears in JSON.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$variant => $name,)*
                }
            }
        }
    };
}

codes! {
    /// A call has no result.
    MissingResult = "missing_result",
    /// A result does not directly follow its call.
    MisplacedResult = "misplaced_result",
    /// A result stands behind the result of a later call.
    ResultOrder = "result_order",
    /// A result answers no call that could still be answered.
    OrphanResult = "orphan_result",
    /// A call has more than one result.
    DuplicateResult = "duplicate_result",
    /// A result has no content where one is needed.
    EmptyResult = "empty_result",
    /// Two calls of one turn have the same id.
    DuplicateCallId = "duplicate_call_id",
    /// An id has characters or a length the provider refuses, or is missing.
    BadCallId = "bad_call_id",
    /// A result says another id or name than the call it answers.
    BadResultId = "bad_result_id",
    /// A call has no name, or one the provider refuses.
    BadCallName = "bad_call_name",
    /// The arguments of a call are not what the provider takes: an object, or its text.
    BadArguments = "bad_arguments",
    /// The arguments of a call break off.
    UnfinishedArguments = "unfinished_arguments",
    /// Something stands in a role that cannot have it.
    WrongRole = "wrong_role",
    /// A message or block has no content.
    EmptyContent = "empty_content",
    /// A content has a shape the provider does not read.
    BadContent = "bad_content",
    /// A content of a kind the provider does not take.
    UnsupportedContent = "unsupported_content",
    /// A cache mark stands where none may, or there are too many.
    CacheControl = "cache_control",
    /// The history calls tools and the request defines none.
    MissingTools = "missing_tools",
    /// Thinking is on and the last turn with calls has lost its thinking.
    ThinkingLost = "thinking_lost",
    /// Thinking is on and a tool is forced.
    ThinkingForced = "thinking_forced",
    /// A call has lost its signature.
    MissingSignature = "missing_signature",
    /// Reasoning stands without what followed it.
    DanglingReasoning = "dangling_reasoning",
    /// Two items have the same id.
    DuplicateItem = "duplicate_item",
    /// The conversation ends with the model's words and this model does not go on from there.
    TrailingAssistant = "trailing_assistant",
    /// Two messages of one role follow each other where the roles must alternate.
    ConsecutiveRoles = "consecutive_roles",
    /// The conversation begins with a call.
    StartsWithCall = "starts_with_call",
    /// There are no messages.
    NoMessages = "no_messages",
    /// A field is missing.
    MissingField = "missing_field",
    /// A field is not what it should be.
    BadField = "bad_field",
    /// A tool's name is missing, taken or refused.
    BadToolName = "bad_tool_name",
    /// A tool's schema is refused.
    BadToolSchema = "bad_tool_schema",
    /// A tool is written in another shape than the provider's.
    BadToolShape = "bad_tool_shape",
    /// A tool does not say what it does: the provider takes it, and the model cannot know when to use it.
    MissingDescription = "missing_description",
    /// There are more tools than the provider takes.
    TooManyTools = "too_many_tools",
    /// The answer was cut off inside a call.
    TruncatedCall = "truncated_call",
    /// The answer is an error.
    ErrorResponse = "error_response",
}

/// Collects what is found. Each finding says what is wrong; most also say what is done about it.
#[derive(Default)]
pub(super) struct Log {
    findings: Vec<Finding>,
}

pub(super) struct Finding {
    at: String,
    code: Code,
    problem: String,
    provider_text: Option<String>,
    fix: Option<String>,
}

impl Log {
    /// Something is wrong; what is returned takes the rest.
    pub(super) fn found(
        &mut self,
        at: impl Into<String>,
        code: Code,
        problem: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            at: at.into(),
            code,
            problem: bounded(problem.into()),
            provider_text: None,
            fix: None,
        });
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    pub(super) fn len(&self) -> usize {
        self.findings.len()
    }

    /// Moves the places of the findings from `first` on from under one pointer to another.
    pub(super) fn rebase(&mut self, first: usize, from: &str, to: &str) {
        for finding in &mut self.findings[first..] {
            if let Some(rest) = finding.at.strip_prefix(from) {
                finding.at = format!("{to}{rest}");
            }
        }
    }

    /// Moves the places of the findings from `first` on from messages to those that they were made of: `given` says
    /// which one that is, and whether it is the very same.
    pub(super) fn follow(
        &mut self,
        first: usize,
        base: &str,
        given: impl Fn(usize) -> Option<(usize, bool)>,
    ) {
        for finding in &mut self.findings[first..] {
            let Some(rest) = finding.at.strip_prefix(base) else {
                continue;
            };
            let Some(rest) = rest.strip_prefix('/') else {
                continue;
            };
            let (index, inside) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let Some((index, is_same)) = index.parse().ok().and_then(&given) else {
                continue;
            };
            finding.at = match is_same {
                true => format!("{base}/{index}{inside}"),
                false => format!("{base}/{index}"),
            };
        }
    }

    /// Leaves out the findings of one kind, from `first` on.
    pub(super) fn forget(&mut self, first: usize, code: Code) {
        let mut index = 0;
        self.findings.retain(|finding| {
            index += 1;
            index <= first || finding.code != code
        });
    }

    /// Turns the findings of one kind into another, from `first` on.
    pub(super) fn rename(&mut self, first: usize, from: Code, to: Code) {
        for finding in &mut self.findings[first..] {
            if finding.code == from {
                finding.code = to;
            }
        }
    }

    pub(super) fn problems(self) -> Vec<Problem> {
        let problem = |finding: Finding| Problem {
            at: finding.at,
            code: finding.code,
            message: finding.problem,
            provider_text: finding.provider_text,
        };
        self.findings.into_iter().map(problem).collect()
    }

    /// Only what was mended; what could not be is for `validate` to say.
    pub(super) fn fixes(self) -> Vec<Fix> {
        let fix = |finding: Finding| {
            let done = finding.fix?;
            Some(Fix {
                at: finding.at,
                code: finding.code,
                message: format!("{}; {done}", finding.problem),
            })
        };
        self.findings.into_iter().filter_map(fix).collect()
    }
}

impl Finding {
    /// What the provider answers to it.
    pub(super) fn says(&mut self, text: impl Into<Option<String>>) -> &mut Finding {
        self.provider_text = text.into().map(bounded);
        self
    }

    /// What is done about it.
    pub(super) fn fixed(&mut self, fix: impl Into<String>) -> &mut Finding {
        self.fix = Some(bounded(fix.into()));
        self
    }
}

fn bounded(text: String) -> String {
    match text.len() > TEXT_BYTES_MAX {
        true => cut::text(&text, TEXT_BYTES_MAX),
        false => text,
    }
}
