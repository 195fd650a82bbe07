//! How OpenAI's Chat Completions speak over HTTP.

use serde_json::Value;

use super::{OpenAiFormat, sound};
use crate::providers::format::{self, ProviderFormat, SoundRequest};

impl ProviderFormat for OpenAiFormat {
    fn let_answer(&self, request: &mut Value) {
        format::let_answer(request);
    }

    fn sound_request(&self, request: &[u8]) -> Option<SoundRequest> {
        sound::request(request)
    }
}
