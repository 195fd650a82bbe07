//! Utterances from an MQTT broker, answers to it. The connection comes back by itself; what was said meanwhile is
//! not answered late.

use std::convert::Infallible;
use std::time::Duration;

use rumqttc::{AsyncClient, ConnectReturnCode, ConnectionError, Event, EventLoop, MqttOptions};
use rumqttc::{Packet, Publish, QoS};
use tokio::task::JoinSet;

use super::{Answer, BackgroundTranscriber, UTTERANCE_BYTES_MAX, Utterance};
use steadyhand_config::extensions::Fault;
use steadyhand_config::transcriber::MqttSettings;

/// What stands for the speaker in the topic of answers.
const SPEAKER: &str = "{speaker}";
const SAID: &str = "steadyhand/+/said";
const ANSWER: &str = "steadyhand/{speaker}/answer";
const PORT: u16 = 1883;
/// Requests to the broker that wait to be sent.
const REQUESTS_MAX: usize = 64;
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Between two attempts to connect: the first, and the longest.
const WAIT: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(15);
/// What is answered later than that, nobody waits for.
const PUBLISHING_MAX: Duration = Duration::from_secs(30);
const PACKET_BYTES_MAX: usize = 2 * UTTERANCE_BYTES_MAX;

/// What becomes of the connection, for those who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// The broker listens to us, and we to it.
    Connected,
    /// It does not, for this reason; the next attempt is on its way.
    Lost(String),
}

/// Everything that is wrong with these settings. What a reference stands for is not known before it is replaced.
pub fn check(settings: &MqttSettings) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |key: &str, message: String| {
        faults.push(Fault {
            at: format!("/{key}"),
            message,
            help: None,
        });
    };
    if !settings.broker.contains("${") {
        match address(&settings.broker) {
            Err(message) => fault("broker", message),
            Ok((host, _)) if host.is_empty() => fault(
                "broker",
                "it has no host; write one such as \"127.0.0.1:1883\"".to_owned(),
            ),
            Ok(_) => {}
        }
    }
    let said = settings.said.as_deref().unwrap_or(SAID);
    let answer = settings.answer.as_deref().unwrap_or(ANSWER);
    let has_references = said.contains("${") || answer.contains("${");
    let answers = answer.replace(SPEAKER, "x");
    let (is_filter, is_topic) = (rumqttc::valid_filter(said), rumqttc::valid_topic(&answers));
    if has_references {
        return faults;
    }
    if !is_filter {
        fault(
            "said",
            format!("\"{said}\" is no topic; write one such as \"{SAID}\""),
        );
    }
    if !is_topic {
        fault(
            "answer",
            format!("\"{answer}\" is no topic to publish to; write one such as \"{ANSWER}\""),
        );
    }
    if is_filter && is_topic && rumqttc::matches(&answers, said) {
        fault(
            "answer",
            format!("\"{answer}\" is heard as something said, and would be answered for ever"),
        );
    }
    faults
}

/// Serves utterances of a broker, for ever. `tell` hears what becomes of the connection.
pub async fn serve(
    transcriber: BackgroundTranscriber,
    settings: &MqttSettings,
    mut tell: impl FnMut(News),
) -> Infallible {
    let topics = Topics::of(settings);
    let (client, mut connection) = connect(settings);
    // Those that are not done when this goes, go with it.
    let mut answers: JoinSet<()> = JoinSet::new();
    let mut wait = WAIT;
    loop {
        while answers.try_join_next().is_some() {}
        match connection.poll().await {
            Ok(Event::Incoming(Packet::ConnAck(accepted)))
                if accepted.code == ConnectReturnCode::Success =>
            {
                wait = WAIT;
                // A broker forgets us with the connection.
                if client
                    .try_subscribe(&topics.said, QoS::AtLeastOnce)
                    .is_err()
                {
                    tell(News::Lost(
                        "too many answers wait to be published".to_owned(),
                    ));
                }
            }
            Ok(Event::Incoming(Packet::SubAck(_))) => tell(News::Connected),
            Ok(Event::Incoming(Packet::Publish(publish))) => {
                if let Some(utterance) = heard(&topics, &publish) {
                    let client = client.clone();
                    let topic = topics.answer_to(&utterance.speaker);
                    let admitted = transcriber.admit(utterance);
                    answers.spawn(async move {
                        let answer = admitted.answer().await;
                        self::publish(&client, topic, &answer).await;
                    });
                }
            }
            Ok(_) => {}
            Err(error) => {
                tell(News::Lost(why(&error, settings)));
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
            }
        }
    }
}

async fn publish(client: &AsyncClient, topic: String, answer: &Answer) {
    let payload = serde_json::to_vec(answer).unwrap_or_default();
    let publishing = client.publish(topic, QoS::AtLeastOnce, false, payload);
    match tokio::time::timeout(PUBLISHING_MAX, publishing).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) | Err(_) => tracing::error!(
            speaker = answer.speaker,
            "an answer was not published: the broker does not take it"
        ),
    }
}

/// What was said, unless the broker repeats something old to a newcomer.
fn heard(topics: &Topics, publish: &Publish) -> Option<Utterance> {
    if publish.retain || publish.payload.len() > UTTERANCE_BYTES_MAX {
        tracing::warn!(
            topic = publish.topic,
            "not answered: it is an old message that the broker kept, or too long"
        );
        return None;
    }
    let speaker = topics.speaker_of(&publish.topic);
    Utterance::read(&publish.payload, speaker)
}

fn connect(settings: &MqttSettings) -> (AsyncClient, EventLoop) {
    let (host, port) = address(&settings.broker).unwrap_or((settings.broker.clone(), PORT));
    // Two of the same name throw each other out.
    let id = format!(
        "steadyhand-{}",
        &uuid::Uuid::new_v4().simple().to_string()[..8]
    );
    let mut options = MqttOptions::new(id, host, port);
    options.set_keep_alive(KEEP_ALIVE);
    options.set_max_packet_size(PACKET_BYTES_MAX, PACKET_BYTES_MAX);
    options.set_clean_session(true);
    if let Some(username) = &settings.username {
        let password = settings.password.as_ref().map(|password| password.expose());
        options.set_credentials(username, password.unwrap_or_default());
    }
    AsyncClient::new(options, REQUESTS_MAX)
}

/// Host and port of `127.0.0.1:1883`, `mqtt://host`, `[::1]:1883`.
fn address(broker: &str) -> Result<(String, u16), String> {
    let wrong =
        || format!("\"{broker}\" is no host and port; write one such as \"127.0.0.1:1883\"");
    if broker.starts_with("mqtts://") {
        return Err(
            "TLS (mqtts://) is not supported; use a broker on this machine, which may itself be a bridge to another"
                .to_owned(),
        );
    }
    let address = broker.strip_prefix("mqtt://").unwrap_or(broker);
    let address = address.trim_end_matches('/');
    let url = url::Url::parse(&format!("mqtt://{address}")).map_err(|_| wrong())?;
    let has_more = !url.username().is_empty() || url.password().is_some() || url.query().is_some();
    if has_more || !matches!(url.path(), "" | "/") {
        return Err(wrong());
    }
    let host = url.host_str().ok_or_else(wrong)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), url.port().unwrap_or(PORT)))
}

fn why(error: &ConnectionError, settings: &MqttSettings) -> String {
    let broker = &settings.broker;
    match error {
        ConnectionError::Io(error) => format!(
            "the broker at {broker} does not answer: {}",
            steadyhand_config::document::plain(error)
        ),
        ConnectionError::ConnectionRefused(ConnectReturnCode::BadUserNamePassword)
        | ConnectionError::ConnectionRefused(ConnectReturnCode::NotAuthorized) => {
            format!(
                "the broker at {broker} does not let us in: look at username and password under [transcriber.mqtt]"
            )
        }
        other => format!("the connection to the broker at {broker} broke: {other}"),
    }
}

struct Topics {
    said: String,
    answer: String,
    /// Which level of a topic names the speaker.
    level: Option<usize>,
}

impl Topics {
    fn of(settings: &MqttSettings) -> Topics {
        let said = settings.said.clone().unwrap_or_else(|| SAID.to_owned());
        let answer = settings.answer.clone().unwrap_or_else(|| ANSWER.to_owned());
        let level = said.split('/').position(|level| level == "+");
        Topics {
            said,
            answer,
            level,
        }
    }

    fn speaker_of<'t>(&self, topic: &'t str) -> &'t str {
        match self.level {
            Some(level) => topic.split('/').nth(level).unwrap_or(topic),
            None => topic,
        }
    }

    /// A speaker's name is one level of it, whatever characters it has.
    fn answer_to(&self, speaker: &str) -> String {
        let safe = |letter: char| match letter {
            '/' | '+' | '#' | '\0' => '_',
            other => other,
        };
        let speaker: String = speaker.chars().map(safe).collect();
        self.answer.replace(SPEAKER, &speaker)
    }
}
