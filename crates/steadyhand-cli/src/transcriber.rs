//! `steadyhand transcriber`: what is said goes in, what is answered comes out, until a signal ends it.

use std::convert::Infallible;
use std::net::SocketAddr;

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use futures_util::FutureExt;
use futures_util::future::ready;
use serde_json::Value;
use steadyhand_models::{Agent, AgentSettings};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::error::{Exit, Failed};
use super::{Interrupts, Session, complete, starting, value, written};
use steadyhand_config::listen::{listen_address, listen_option};
use steadyhand_config::transcriber::TranscriberSettings;
use steadyhand_config::words::dotted;
use steadyhand_config::{Configuration, Resolver};
use steadyhand_runtime::access::budget_permit;
use steadyhand_runtime::models;
use steadyhand_runtime::runtime::Runtime;
use steadyhand_runtime::source::command;
use steadyhand_voice::mqtt;
use steadyhand_voice::mqtt::News;
use steadyhand_voice::{Answer, BackgroundTranscriber, UTTERANCE_BYTES_MAX, Utterance};

/// Answers that wait to be printed.
const PRINTED_MAX: usize = 64;

#[derive(Args)]
pub(super) struct TranscriberArgs {
    /// The model that answers: a name of [models], provider/model, or demo
    #[arg(long, value_name = "NAME", add = ArgValueCandidates::new(complete::model_names))]
    model: Option<String>,
    /// Take utterances from stdin, one a line, even if [transcriber] names a broker or an address
    #[arg(long)]
    stdin: bool,
    /// Take utterances at this address, or at this port of this machine: POST /utterances
    #[arg(long, value_name = "ADDR", value_parser = listen_option)]
    listen: Option<SocketAddr>,
    /// Let every answer be finished, whatever is said meanwhile
    #[arg(long)]
    no_barge_in: bool,
    /// Allow a tool that needs approval: a name, or a pattern
    #[arg(long, value_name = "NAME")]
    approve: Vec<String>,
}

pub(super) async fn run(session: &Session<'_>, args: &TranscriberArgs) -> Result<(), Failed> {
    let mut interrupts = Interrupts::listen();
    command::adopt_orphans();
    let configuration = session.configuration()?;
    session.log_as(&configuration);
    let settings = settings(session, &configuration, args)?;
    let name = args.model.as_deref().or(settings.model.as_deref());
    let chosen = models::choose(&configuration, &session.surroundings, name)?;
    let listener = listen(&settings).await?;
    let max_iterations = chosen.max_iterations.or(configuration.max_iterations);
    let runtime = session.runtime_of(configuration, |options| {
        options.approved.clone_from(&args.approve);
    });
    let runtime = tokio::select! {
        runtime = runtime => runtime?,
        code = interrupts.next() => return Err(Failed::interrupted(code)),
    };
    // Nothing waits for MCP servers but what needs their tools: the first answers, and calls (SPEC V16).
    let first_tools = tokio::spawn(runtime.first_tools().unwrap_or_else(|| ready(()).boxed()));
    let first_tools = first_tools.map(|_| ()).boxed();
    let history = session.remember(&runtime);
    let mut agent = AgentSettings::default();
    agent.caller = Some("transcriber".to_owned());
    agent.permit = budget_permit(&runtime.generation().configuration, "the transcriber");
    agent.recover_calls = chosen.recover_calls;
    agent.max_iterations = max_iterations.unwrap_or(agent.max_iterations);
    let note = chosen.model.note().map(|note| format!(" ({note})"));
    let said = format!(
        "{}{}, {}{}",
        chosen.model.name(),
        note.unwrap_or_default(),
        value::counted(runtime.manager().len(), "tool"),
        starting::in_words(&runtime)
    );
    let agent = Agent::new(chosen.model, runtime.executor().clone()).with(agent);
    let transcriber = BackgroundTranscriber::after(first_tools, agent, chosen.system, &settings);
    session.tell_problems(&runtime);
    let service = Service {
        transcriber,
        settings,
        listener,
        by_lines: args.stdin,
    };
    let ended = tokio::select! {
        ended = service.run(session, &said, &mut interrupts) => ended,
        never = starting::told(session, &runtime) => never_ends(never),
    };
    stop(session, &runtime, &mut interrupts).await;
    written(session, history).await;
    ended
}

async fn stop(session: &Session<'_>, runtime: &Runtime, interrupts: &mut Interrupts) {
    session.stop(runtime, interrupts).await;
}

/// What is served, and where.
struct Service {
    transcriber: BackgroundTranscriber,
    settings: TranscriberSettings,
    listener: Option<(TcpListener, SocketAddr)>,
    by_lines: bool,
}

impl Service {
    async fn run(
        self,
        session: &Session<'_>,
        said: &str,
        interrupts: &mut Interrupts,
    ) -> Result<(), Failed> {
        let by_lines = self.by_lines || (self.settings.mqtt.is_none() && self.listener.is_none());
        let mut from = Vec::new();
        if by_lines {
            from.push("lines on stdin".to_owned());
        }
        if let Some((_, address)) = &self.listener {
            from.push(format!("http://{address}/utterances"));
        }
        if let Some(mqtt) = &self.settings.mqtt {
            from.push(format!("MQTT at {}", mqtt.broker));
        }
        let from = from.join(", ");
        session.screen.note(&format!("{said}. Hears {from}."));
        let transcriber = self.transcriber;
        let broker = async {
            match &self.settings.mqtt {
                Some(mqtt) => {
                    let tell = |news: News| tell_of_the_broker(session, &mqtt.broker, &news);
                    mqtt::serve(transcriber.clone(), mqtt, tell).await
                }
                None => std::future::pending().await,
            }
        };
        let address = async {
            match self.listener {
                Some((listener, address)) => {
                    let token = self.settings.token.as_ref();
                    super::transcriber_http::serve(transcriber.clone(), listener, address, token)
                        .await
                }
                None => std::future::pending().await,
            }
        };
        let lines = async {
            match by_lines {
                true => lines(session, &transcriber).await,
                false => std::future::pending().await,
            }
        };
        let ended: Result<(), u8> = tokio::select! {
            never = broker => never_ends(never),
            never = address => never_ends(never),
            () = lines => Ok(()),
            code = interrupts.next() => Err(code),
        };
        match ended {
            Ok(()) => Ok(()),
            Err(code) => {
                session.screen.note("Stopped.");
                Err(Failed::silent(Exit::Signal(code)))
            }
        }
    }
}

fn never_ends<T>(never: Infallible) -> T {
    match never {}
}

fn tell_of_the_broker(session: &Session<'_>, broker: &str, news: &News) {
    match news {
        News::Connected => session.screen.note(&format!("Connected to {broker}.")),
        News::Lost(why) => session.screen.note(&format!("{why}; trying again")),
    }
}

/// One utterance a line, one answer a line. Ends with stdin, when all is answered.
async fn lines(session: &Session<'_>, transcriber: &BackgroundTranscriber) {
    let (print, mut printed) = mpsc::channel::<Answer>(PRINTED_MAX);
    let transcriber = transcriber.clone();
    // In a task of its own: what is half read must not be lost when an answer comes.
    let reading = tokio::spawn(async move {
        let mut stdin = BufReader::new(tokio::io::stdin());
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = (&mut stdin).take(UTTERANCE_BYTES_MAX as u64);
            match limited.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let Some(utterance) = Utterance::read(&line, "stdin") else {
                continue;
            };
            let (admitted, print) = (transcriber.admit(utterance), print.clone());
            tokio::spawn(async move {
                let _ = print.send(admitted.answer().await).await;
            });
        }
    });
    while let Some(answer) = printed.recv().await {
        show(session, &answer);
    }
    reading.abort();
}

fn show(session: &Session<'_>, answer: &Answer) {
    if session.screen.json {
        let line = serde_json::to_string(answer).unwrap_or_default();
        session.screen.exact(&line);
        return;
    }
    if let Some(error) = &answer.error {
        session.screen.note(error);
    }
    if !answer.text.is_empty() {
        session.screen.exact(&session.screen.content(&answer.text));
    }
}

async fn listen(
    settings: &TranscriberSettings,
) -> Result<Option<(TcpListener, SocketAddr)>, Failed> {
    let Some(listen) = settings.listen.as_deref().filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    let wrong = |message: String, help: &str| {
        Failed::new(Exit::Config, "transcriber_settings", message).help(help)
    };
    let address = listen_address(listen, None).map_err(|why| {
        let message = format!("transcriber.listen: {why}");
        wrong(message, "Write one such as \"127.0.0.1:7410\"")
    })?;
    let has_token = settings
        .token
        .as_ref()
        .is_some_and(|token| !token.expose().is_empty());
    if !address.ip().is_loopback() && !has_token {
        let message = format!(
            "{address} can be reached from other machines, and no token is set: whoever reaches it could have every tool run"
        );
        let help =
            "Set token = \"${env:TRANSCRIBER_TOKEN}\" under [transcriber], or listen on 127.0.0.1";
        return Err(wrong(message, help));
    }
    let cannot = |error: std::io::Error| {
        let reason = steadyhand_config::document::plain(&error);
        let message = format!("cannot listen on {address}: {reason}");
        Failed::new(Exit::NotReachable, "address_unavailable", message)
            .help("Take another port with --listen; port 0 takes a free one")
    };
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    Ok(Some((listener, address)))
}

/// `[transcriber]` with its references replaced and the flags laid over it.
fn settings(
    session: &Session<'_>,
    configuration: &Configuration,
    args: &TranscriberArgs,
) -> Result<TranscriberSettings, Failed> {
    let section = configuration.document.value.get("transcriber").cloned();
    let mut value = section.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    let resolver = Resolver::new(session.surroundings.clone(), configuration.folder.clone());
    let resolution = resolver.resolve_tree(&mut value);
    if let Some((pointer, it)) = resolution.unresolved.into_iter().next() {
        let setting = dotted(&format!("/transcriber{pointer}"));
        let message = format!("{} in {setting}: {}", it.reference, it.reason);
        return Err(Failed::new(Exit::SignIn, "secret_missing", message).help(it.help));
    }
    let mut settings: TranscriberSettings = serde_json::from_value(value).map_err(|error| {
        let message = format!("transcriber: {}", steadyhand::plain_words::json(&error));
        Failed::new(Exit::Config, "transcriber_settings", message)
            .help("steadyhand config check says where")
    })?;
    if let Some(fault) = settings.mqtt.iter().flat_map(mqtt::check).next() {
        let message = format!(
            "{}: {}",
            dotted(&format!("/transcriber/mqtt{}", fault.at)),
            fault.message
        );
        return Err(Failed::new(Exit::Config, "transcriber_settings", message));
    }
    if let Some(listen) = args.listen {
        settings.listen = Some(listen.to_string());
    }
    if args.no_barge_in {
        settings.barge_in = Some(false);
    }
    Ok(settings)
}
