//! What a caller may know that the conversation does not say.

use std::collections::HashMap;

use crate::host::Host;

/// What became of a call that has no result in the conversation. A placeholder says it in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fate {
    /// It was never run: it did nothing.
    NeverRan,
    /// It was started, and how it ended is not known.
    MayHaveRun,
    /// The user or the application withdrew it.
    Cancelled,
    /// Nothing is known but that the result is not here.
    #[default]
    Lost,
}

/// What `validate_with` and `repair_with` are told beside the conversation.
#[derive(Debug, Clone, Default)]
pub struct Options {
    fates: HashMap<String, Fate>,
    model: Option<String>,
    host: Host,
}

impl Options {
    /// Nothing known.
    pub fn new() -> Options {
        Options::default()
    }

    /// What became of the call with this id.
    #[must_use]
    pub fn fate(mut self, call_id: impl Into<String>, fate: Fate) -> Options {
        self.fates.insert(call_id.into(), fate);
        self
    }

    /// The model, where the request does not name it: Gemini's is in the address.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Options {
        self.model = Some(model.into());
        self
    }

    /// Who serves the provider's API, where it is not the provider itself.
    #[must_use]
    pub fn host(mut self, host: Host) -> Options {
        self.host = host;
        self
    }

    pub(super) fn served_by(&self) -> Host {
        self.host
    }

    pub(super) fn fate_of(&self, call_id: &str) -> Fate {
        self.fates.get(call_id).copied().unwrap_or_default()
    }

    pub(super) fn model_or<'a>(&'a self, of_request: Option<&'a str>) -> Option<&'a str> {
        of_request.or(self.model.as_deref())
    }
}
