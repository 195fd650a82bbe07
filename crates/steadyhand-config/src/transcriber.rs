//! `[transcriber]`: what is said at home, and who answers it where.

use schemars::JsonSchema;
use serde::Deserialize;

use super::text::SecretText;
use super::units::{Span, TIME_LIMIT};

/// A service that answers what is said: lines, an MQTT topic, or HTTP.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TranscriberSettings {
    /// The model that answers; models.default if not said
    pub model: Option<String>,
    /// What it is told before everything else
    pub system: Option<String>,
    /// Whether what a speaker says ends the answer to what they said before; true if not said
    pub barge_in: Option<bool>,
    /// Utterances that are answered at the same time; 2 if not said
    #[schemars(range(min = 1, max = 1000))]
    pub turns: Option<u32>,
    /// Utterances that may wait or be answered; one more is refused. 16 if not said
    #[schemars(range(min = 1, max = 100000))]
    pub queue: Option<u32>,
    /// Conversations that are kept; 64 if not said
    #[schemars(range(min = 1, max = 100000))]
    pub speakers: Option<u32>,
    /// How long a conversation is kept after its last word; 10m if not said
    #[schemars(extend("format" = TIME_LIMIT))]
    pub remember: Option<Span>,
    /// A broker that utterances come from and answers go to
    pub mqtt: Option<MqttSettings>,
    /// An address for POST /utterances, such as 127.0.0.1:7410
    pub listen: Option<String>,
    /// The token that those who post must show; empty on loopback means none
    pub token: Option<SecretText>,
}

/// A broker, and the topics.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttSettings {
    /// Its host and port, such as 127.0.0.1:1883
    pub broker: String,
    /// How we log in
    pub username: Option<String>,
    /// With which password
    pub password: Option<SecretText>,
    /// Where utterances come from; + stands for the speaker. steadyhand/+/said if not said
    pub said: Option<String>,
    /// Where answers go; {speaker} stands for the speaker. steadyhand/{speaker}/answer if not said
    pub answer: Option<String>,
}
