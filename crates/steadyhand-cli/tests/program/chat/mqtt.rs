//! BackgroundTranscriber and a real broker: Mosquitto, from Debian.

use std::process::Stdio;
use std::time::Duration;

use rumqttc::{AsyncClient, Event, EventLoop, MqttOptions, Packet, QoS};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::{Instant, sleep, timeout};

use super::workplace;
use crate::support::{PATIENCE, Workplace};

/// A broker of our own on a free port. Stopped when this goes.
struct Broker {
    port: u16,
    folder: tempfile::TempDir,
    child: Option<Child>,
}

impl Broker {
    async fn start(more: &str) -> Broker {
        let folder = tempfile::tempdir().expect("a folder");
        // A port that was free a moment ago.
        let probe = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let port = probe.local_addr().expect("an address").port();
        drop(probe);
        // As root it would become another user, who cannot read what is in this folder.
        let settings = format!("listener {port} 127.0.0.1\nuser root\npersistence false\n{more}\n");
        std::fs::write(folder.path().join("mosquitto.conf"), settings).expect("written");
        let mut broker = Broker {
            port,
            folder,
            child: None,
        };
        broker.run().await;
        broker
    }

    async fn run(&mut self) {
        let program = ["/usr/sbin/mosquitto", "mosquitto"]
            .into_iter()
            .find(|path| !path.starts_with('/') || std::path::Path::new(path).exists())
            .expect("a name");
        let child = Command::new(program)
            .arg("-c")
            .arg(self.folder.path().join("mosquitto.conf"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("Debian's package mosquitto: ./test installs it");
        self.child = Some(child);
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            assert!(Instant::now() < until, "the broker does not listen");
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().await.expect("stopped");
        }
    }
}

/// Somebody else at the broker.
struct Peer {
    client: AsyncClient,
    connection: EventLoop,
}

impl Peer {
    async fn connect(port: u16, login: Option<(&str, &str)>) -> Peer {
        let mut options = MqttOptions::new(format!("peer-{port}"), "127.0.0.1", port);
        if let Some((name, password)) = login {
            options.set_credentials(name, password);
        }
        let (client, connection) = AsyncClient::new(options, 16);
        let mut peer = Peer { client, connection };
        let subscribe = peer.client.subscribe("voice/+/answer", QoS::AtLeastOnce);
        subscribe.await.expect("asked for");
        peer.until(|event| matches!(event, Event::Incoming(Packet::SubAck(_))).then_some(()))
            .await;
        peer
    }

    async fn until<T>(&mut self, wanted: impl Fn(&Event) -> Option<T>) -> T {
        let found = timeout(PATIENCE, async {
            loop {
                match self.connection.poll().await {
                    Ok(event) => {
                        if let Some(found) = wanted(&event) {
                            return found;
                        }
                    }
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            }
        });
        found.await.expect("in time")
    }

    async fn say(&self, topic: &str, text: &str) {
        let said = self.client.publish(topic, QoS::AtLeastOnce, false, text);
        said.await.expect("said");
    }

    /// The next answer, and the topic it came on.
    async fn answer(&mut self) -> (String, Value) {
        self.until(|event| match event {
            Event::Incoming(Packet::Publish(publish)) => {
                let answer = serde_json::from_slice(&publish.payload).expect("JSON");
                Some((publish.topic.clone(), answer))
            }
            _ => None,
        })
        .await
    }

    async fn answer_to(&mut self, topic: &str, text: &str) -> (String, Value) {
        self.say(topic, text).await;
        self.answer().await
    }
}

fn config(port: u16, more: &str) -> Workplace {
    workplace(&format!(
        r#"
[transcriber]
model = "demo"
barge_in = true

[transcriber.mqtt]
broker = "127.0.0.1:{port}"
said = "voice/+/said"
answer = "voice/{{speaker}}/answer"
{more}
"#
    ))
}

/// The program, and what it says on stderr.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Program {
    /// Starts it, and waits until it hears what the broker says.
    async fn start(workplace: &Workplace) -> Program {
        let mut child = Command::new(env!("CARGO_BIN_EXE_steadyhand"))
            .arg("transcriber")
            .current_dir(workplace.path())
            .env_clear()
            .envs(crate::support::measured())
            .env("PATH", std::env::var("PATH").unwrap_or_default())
            .env("HOME", workplace.path())
            .envs(
                workplace
                    .variables()
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program");
        let lines = BufReader::new(child.stderr.take().expect("stderr")).lines();
        let mut program = Program { child, lines };
        program.connected().await;
        program
    }

    async fn connected(&mut self) {
        let mut said = Vec::new();
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("not connected: {said:?}"));
            let line = line
                .expect("a line")
                .unwrap_or_else(|| panic!("it ended: {said:?}"));
            if line.starts_with("Connected to ") {
                return;
            }
            said.push(line);
        }
    }
}

#[tokio::test]
async fn v10_an_utterance_in_a_tool_run_an_answer_out() {
    let broker = Broker::start("allow_anonymous true").await;
    let workplace = config(broker.port, "");
    let _program = Program::start(&workplace).await;
    let mut peer = Peer::connect(broker.port, None).await;
    let (topic, answer) = peer
        .answer_to("voice/kitchen/said", "What is 12 * 34?")
        .await;
    assert_eq!(topic, "voice/kitchen/answer");
    assert_eq!(answer["text"], "math_eval says: 408.");
    assert_eq!(answer["speaker"], "kitchen");
    assert_eq!(answer["stop_reason"], "end_turn");
    assert_eq!(answer["calls"], 1);
}

#[tokio::test]
async fn v10_who_speaks_again_ends_the_answer_that_runs() {
    let broker = Broker::start("allow_anonymous true").await;
    let workplace = config(broker.port, "");
    let _program = Program::start(&workplace).await;
    let mut peer = Peer::connect(broker.port, None).await;
    peer.answer_to("voice/hall/said", "What is 1 + 1?").await;
    // This would take ten minutes.
    peer.say("voice/kitchen/said", "notes_find {\"q\": \"x\"}")
        .await;
    // Another speaker does not disturb it.
    let other = peer.answer_to("voice/bath/said", "What is 2 + 2?").await;
    assert_eq!(other.1["text"], "math_eval says: 4.");
    peer.say("voice/kitchen/said", "What is 3 + 3?").await;
    let mut reasons = Vec::new();
    let mut texts = String::new();
    for _ in 0..2 {
        let (topic, answer) = peer.answer().await;
        assert_eq!(topic, "voice/kitchen/answer");
        reasons.push(answer["stop_reason"].as_str().expect("a reason").to_owned());
        texts.push_str(answer["text"].as_str().expect("a text"));
    }
    reasons.sort_unstable();
    assert_eq!(reasons, ["cancelled", "end_turn"]);
    assert_eq!(texts, "math_eval says: 6.");
}

#[tokio::test]
async fn a_broker_that_goes_and_comes_back_is_found_again() {
    let mut broker = Broker::start("allow_anonymous true").await;
    let workplace = config(broker.port, "");
    let mut program = Program::start(&workplace).await;
    let mut peer = Peer::connect(broker.port, None).await;
    peer.answer_to("voice/hall/said", "What is 1 + 1?").await;
    drop(peer);
    broker.stop().await;
    broker.run().await;
    program.connected().await;
    let mut peer = Peer::connect(broker.port, None).await;
    let (_, answer) = peer.answer_to("voice/hall/said", "What is 5 + 5?").await;
    assert_eq!(answer["text"], "math_eval says: 10.");
    assert!(
        program.child.try_wait().expect("its state").is_none(),
        "it still runs"
    );
}

#[tokio::test]
async fn a_password_is_a_reference_and_an_old_message_is_not_answered() {
    let folder = tempfile::tempdir().expect("a folder");
    let passwords = folder.path().join("passwords");
    let made = Command::new("mosquitto_passwd")
        .args(["-b", "-c"])
        .arg(&passwords)
        .args(["voice", "very-secret-1"])
        .status()
        .await
        .expect("mosquitto_passwd");
    assert!(made.success());
    let more = format!(
        "allow_anonymous false\npassword_file {}",
        passwords.display()
    );
    let broker = Broker::start(&more).await;
    let mut peer = Peer::connect(broker.port, Some(("voice", "very-secret-1"))).await;
    let old = "What is 9 + 9?";
    let kept = peer
        .client
        .publish("voice/old/said", QoS::AtLeastOnce, true, old);
    kept.await.expect("said");
    peer.until(|event| matches!(event, Event::Incoming(Packet::PubAck(_))).then_some(()))
        .await;
    let mut workplace = config(
        broker.port,
        "username = \"voice\"\npassword = \"${env:MQTT_PASSWORD}\"",
    );
    workplace.set("MQTT_PASSWORD", "very-secret-1");
    let _program = Program::start(&workplace).await;
    let (topic, answer) = peer.answer_to("voice/new/said", "What is 4 + 4?").await;
    assert_eq!(topic, "voice/new/answer", "{answer}");
    assert_eq!(answer["text"], json!("math_eval says: 8."));
}

#[tokio::test]
async fn v16_the_broker_is_heard_and_answered_while_an_mcp_server_hangs() {
    let broker = Broker::start("allow_anonymous true").await;
    let hanging = crate::mcp::hostile("hanging", "silent_init").replace("10s", "10m");
    let more = format!("\n[server]\nfirst_list_wait = \"100ms\"\n{hanging}");
    let workplace = config(broker.port, &more);
    let mut peer = Peer::connect(broker.port, None).await;
    let mut program = Program::start(&workplace).await;
    let (topic, answer) = peer
        .answer_to("voice/kitchen/said", "What is 12 * 34?")
        .await;
    assert_eq!(topic, "voice/kitchen/answer");
    assert!(answer.to_string().contains("408"), "{answer}");
    program.child.kill().await.expect("it ran");
}

#[tokio::test]
async fn v16_the_first_answer_has_the_tools_of_a_server_that_was_starting() {
    let broker = Broker::start("allow_anonymous true").await;
    let workplace = config(broker.port, &crate::mcp::named("slow", "1", "search"));
    let mut peer = Peer::connect(broker.port, None).await;
    let mut program = Program::start(&workplace).await;
    let (_, answer) = peer.answer_to("voice/kitchen/said", "search {}").await;
    assert!(answer["text"].to_string().contains("slow"), "{answer}");
    program.child.kill().await.expect("it ran");
}
