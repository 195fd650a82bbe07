//! What one server sends, or never stops sending, takes neither the time nor the memory of others.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::FailureCode::{NetworkError, Timeout, ToolExecutionError};
use steadyhand::{ByteBudget, Call, Effect};
use steadyhand_mcp::{Listed, NoNotice, Phase, Protocol, ServerSettings};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::bare::{Request, Wire};
use super::host::{answer_to, text_to};
use super::well_behaved;
use crate::relay::{Client, call as call_for, passage};
use crate::support::{Folder, Stage, failure, text, until};

const MB: usize = 1024 * 1024;

/// What the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    /// A stream of these before the answer, which never comes.
    Messages,
    Progress,
    Comments,
    /// `100 Continue`, again and again, in the place of an answer.
    Interim,
    /// Requests of this method, which a client has to answer.
    Questions(&'static str),
    /// The answer, after reports of progress of 1 MB each.
    LongProgress,
    /// 200 pages of 16 MB, of each list.
    Pages,
    /// A prompt of 4 MB, and another one, without an end.
    LongEntries,
    /// Entries that weigh nothing, by the million.
    ManyEntries,
    /// The cursors of a list go around.
    CursorsInACircle,
    /// 4,000 notifications that concern nobody, of 64 kB each; some have 4 MB.
    Notices,
    /// A result of four million numbers.
    Numbers,
    /// A result as a text of 6 MB.
    Text,
    /// An event without an end, which begins like an answer; one that does not.
    EndlessAnswer,
    EndlessEvent,
    /// A head of 2 MB.
    Head,
    /// An array of 100,000 messages.
    Batch,
    /// A result that is nested 200,000 levels deep.
    Depth,
    /// A million members in `_meta`.
    Meta,
    /// It says of itself more than anyone wants to know.
    LongGreeting,
    LongCapabilities,
}

/// A server on a thread of its own: nothing of it yields to those it attacks.
struct Attacker {
    address: SocketAddr,
    lists: Arc<AtomicUsize>,
    _stop: oneshot::Sender<()>,
}

impl Attacker {
    fn of(attack: Attack) -> Attacker {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        listener.set_nonblocking(true).expect("a socket's option");
        let address = listener.local_addr().expect("it is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let lists = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&lists);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let mut clients = JoinSet::new();
                let accepting = async {
                    while let Ok((stream, _)) = listener.accept().await {
                        clients.spawn(serve(stream, attack, Arc::clone(&counted)));
                    }
                };
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
        });
        Attacker {
            address,
            lists,
            _stop: stop,
        }
    }

    fn settings(&self, memory: &ByteBudget) -> ServerSettings {
        let mut settings = ServerSettings::http("remote", format!("http://{}/mcp", self.address));
        settings.prefix = false;
        settings.protocol = Protocol::Legacy;
        settings.start.waits = vec![Duration::ZERO];
        settings.memory = memory.clone();
        settings
    }

    async fn stage(self, memory: &ByteBudget) -> Attacked {
        let stage = Stage::with(Folder::new(), self.settings(memory)).await;
        let state = stage.server.state();
        let why = state.failure.map(|failure| failure.detail());
        assert_eq!(state.phase, Phase::Running, "{}", why.unwrap_or_default());
        Attacked {
            stage,
            attacker: self,
        }
    }
}

/// The stage on which its tools are called.
struct Attacked {
    stage: Stage,
    attacker: Attacker,
}

impl Attacked {
    async fn over(self) {
        self.stage.over().await;
    }
}

impl Deref for Attacked {
    type Target = Stage;

    fn deref(&self) -> &Stage {
        &self.stage
    }
}

async fn serve(stream: TcpStream, attack: Attack, lists: Arc<AtomicUsize>) {
    let mut wire = Wire::new(stream);
    while let Ok(Some(request)) = wire.request().await {
        if request.method().ends_with("/list") {
            lists.fetch_add(1, Ordering::Relaxed);
        }
        if answer(attack, &mut wire, &request).await.is_err() {
            return;
        }
    }
}

async fn answer(attack: Attack, wire: &mut Wire, request: &Request) -> io::Result<()> {
    let id = &request.body["id"];
    match (request.verb.as_str(), request.method()) {
        ("GET", _) if attack == Attack::Notices => notices(wire).await,
        ("POST", "initialize") => wire.json(&[], &answer_to(id, greeting(attack))).await,
        ("POST", "tools/list") => list(attack, wire, request, "tools").await,
        ("POST", "prompts/list") => list(attack, wire, request, "prompts").await,
        ("POST", "resources/list") => list(attack, wire, request, "resources").await,
        ("POST", "resources/templates/list") => {
            wire.json(&[], &answer_to(id, json!({"resourceTemplates": []})))
                .await
        }
        ("POST", "tools/call") => call(attack, wire, request).await,
        ("POST", "ping") => wire.json(&[], &answer_to(id, json!({}))).await,
        ("POST", _) => wire.respond("202 Accepted", &[], "").await,
        _ => wire.respond("405 Method Not Allowed", &[], "").await,
    }
}

fn greeting(attack: Attack) -> Value {
    let mut greeting = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
        "serverInfo": {"name": "attacker", "version": "1"},
    });
    if attack == Attack::LongGreeting {
        greeting["instructions"] = json!("Use it well. ".repeat(MB / 4));
        greeting["serverInfo"]["name"] = json!("attacker".repeat(MB / 4));
        greeting["serverInfo"]["icons"] = json!(vec![0; MB]);
    }
    if attack == Attack::LongCapabilities {
        greeting["capabilities"]["experimental"] = json!(vec![0; MB]);
    }
    greeting
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

async fn list(attack: Attack, wire: &mut Wire, request: &Request, member: &str) -> io::Result<()> {
    let id = &request.body["id"];
    let cursor = request.body["params"]["cursor"].as_str();
    let page: usize = cursor.and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let usual = match member {
        "tools" => json!([tool("trouble", "for tests"), tool("echo", "for tests")]),
        _ => json!([]),
    };
    let result = match attack {
        Attack::Pages if member == "tools" => {
            let long = "x".repeat(MB - 256);
            let entry = |place: usize| match page + place {
                0 => tool("trouble", "for tests"),
                number => tool(&format!("tool_{number}"), &long),
            };
            let entries: Vec<Value> = (0..15).map(entry).collect();
            json!({member: entries, "nextCursor": (page + 15).to_string()})
        }
        Attack::ManyEntries if member != "tools" => {
            let entries = "0,".repeat(MB);
            let body = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"{member}\":[{entries}0]}}}}"
            );
            return json_text(wire, &body).await;
        }
        Attack::LongEntries if member == "prompts" => {
            let entry =
                |number: usize| json!({"name": format!("p{number}"), "title": "x".repeat(4 * MB)});
            json!({member: [entry(0), entry(1), entry(2)], "nextCursor": "1"})
        }
        Attack::CursorsInACircle if member == "tools" => {
            let name = format!("tool_{page}");
            let tools = json!([tool(&name, "for tests")]);
            json!({member: tools, "nextCursor": ((page + 1) % 3).to_string()})
        }
        _ => json!({member: usual}),
    };
    wire.json(&[], &answer_to(id, result)).await
}

async fn call(attack: Attack, wire: &mut Wire, request: &Request) -> io::Result<()> {
    let (id, params) = (&request.body["id"], &request.body["params"]);
    if params["name"] == "echo" {
        return wire.json(&[], &text_to(id, "still there")).await;
    }
    let token = &params["_meta"]["progressToken"];
    let flood = match attack {
        Attack::Messages => event(&json!({
            "jsonrpc": "2.0", "method": "notifications/message",
            "params": {"level": "info", "data": "again"},
        })),
        Attack::Progress => progress(token, "again"),
        Attack::Comments => ": again\n\n".to_owned(),
        Attack::Questions(method) => event(&json!({
            "jsonrpc": "2.0", "id": 7, "method": method,
            "params": {"message": "x".repeat(200), "requestedSchema": {"type": "object"}},
        })),
        Attack::LongProgress => {
            wire.begin_events().await?;
            for _ in 0..40 {
                wire.chunk(&progress(token, &"x".repeat(MB))).await?;
            }
            wire.event(&text_to(id, "after all that")).await?;
            return wire.end_events().await;
        }
        Attack::Numbers => {
            let numbers = "0,".repeat(4 * MB);
            let body = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{numbers}0]}}}}"
            );
            return json_text(wire, &body).await;
        }
        Attack::Depth => {
            let (open, close) = ("[".repeat(200_000), "]".repeat(200_000));
            let body = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":{open}{close}}}}}"
            );
            return json_text(wire, &body).await;
        }
        Attack::Meta => {
            let meta: Vec<String> = (0..1_000_000).map(|key| format!("\"{key}\":0")).collect();
            let body = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"_meta\":{{{}}}}}}}",
                meta.join(",")
            );
            return json_text(wire, &body).await;
        }
        Attack::Batch => {
            let one = json!({"jsonrpc": "2.0", "method": "ping", "id": 7}).to_string();
            let body = format!("[{}]", vec![one; 100_000].join(","));
            return json_text(wire, &body).await;
        }
        Attack::Text => return wire.json(&[], &text_to(id, &"x".repeat(6 * MB))).await,
        Attack::EndlessAnswer => endless(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")),
        Attack::EndlessEvent => {
            endless("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",")
        }
        Attack::Interim => {
            let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(2 * 1024);
            loop {
                wire.write(many.as_bytes()).await?;
            }
        }
        Attack::Head => {
            let head = format!("HTTP/1.1 200 OK\r\nx-long: {}\r\n", "x".repeat(2 * MB));
            wire.write(head.as_bytes()).await?;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        _ => return wire.json(&[], &text_to(id, "no trouble")).await,
    };
    wire.begin_events().await?;
    let (first, many) = match flood.split_once('\u{0}') {
        Some((first, more)) => (first.to_owned(), more.to_owned()),
        None => (String::new(), flood.repeat(64 * 1024 / flood.len() + 1)),
    };
    if !first.is_empty() {
        wire.chunk(&first).await?;
    }
    // Whoever closes the connection ends it.
    loop {
        wire.chunk(&many).await?;
    }
}

fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

fn progress(token: &Value, message: &str) -> String {
    event(&json!({
        "jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "message": message},
    }))
}

/// The beginning of an event, and what follows again and again.
fn endless(start: &str) -> String {
    format!("data: {start}\u{0}{}", " ".repeat(64 * 1024))
}

async fn json_text(wire: &mut Wire, body: &str) -> io::Result<()> {
    let json = [("content-type", "application/json")];
    wire.respond("200 OK", &json, body).await
}

async fn notices(wire: &mut Wire) -> io::Result<()> {
    wire.begin_events().await?;
    for number in 0..4_000 {
        let length = if number % 100 == 0 { 4 * MB } else { 64 * 1024 };
        let text = "x".repeat(length);
        let params = json!({"level": "info", "data": {"number": number, "text": text}});
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
        wire.event(&message).await?;
    }
    let params = json!({"level": "info", "data": "the last one"});
    wire.event(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}))
        .await?;
    std::future::pending().await
}

fn budget(mb: usize) -> ByteBudget {
    ByteBudget::new("the test", mb * MB)
}

fn trouble() -> Call {
    Call::new("trouble", json!({}))
}

/// What this process takes now, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0) * 4096
}

/// The test, the attacked server's reader and a well-behaved server share one thread.
#[tokio::test]
async fn s01_a_flood_of_events_breaks_no_deadline_and_holds_up_no_other_call() {
    let good = well_behaved().await;
    for attack in [
        Attack::Messages,
        Attack::Progress,
        Attack::Comments,
        Attack::Interim,
    ] {
        let stage = Attacker::of(attack).stage(&budget(256)).await;
        let began = Instant::now();
        let flooded = async {
            let call = trouble()
                .timeout(Duration::from_millis(700))
                .deadline(Duration::from_millis(700));
            let outcome = stage.run(call).await;
            let (is, did, said) = failure(&outcome);
            assert_eq!((is, did), (Timeout, Effect::Unknown), "{attack:?}: {said}");
            began.elapsed()
        };
        let others = async {
            for _ in 0..20 {
                good.assert_next_call_works().await;
            }
            began.elapsed()
        };
        let (flooded, others) = tokio::join!(flooded, others);
        assert!(flooded < Duration::from_secs(5), "{attack:?}: {flooded:?}");
        // Each turn of those takes longer than one of events.
        let has_long_turns = attack == Attack::Interim;
        assert!(
            others < flooded || has_long_turns && others < Duration::from_secs(5),
            "{attack:?}: others waited for {others:?}"
        );
        stage.assert_next_call_works().await;
        stage.over().await;
    }
    good.over().await;
}

#[tokio::test]
async fn s01_a_storm_of_questions_on_a_stream_is_bounded_and_holds_up_no_other_call() {
    let good = well_behaved().await;
    for method in [
        "roots/list",
        "elicitation/create",
        "sampling/createMessage",
        "ping",
    ] {
        let memory = budget(64);
        let stage = Attacker::of(Attack::Questions(method)).stage(&memory).await;
        // It never answers.
        let client = Client::who(None, Duration::ZERO);
        let began = Instant::now();
        let flooded = async {
            let call = call_for("trouble", &passage(&client, "{}"))
                .timeout(Duration::from_millis(700))
                .deadline(Duration::from_millis(700));
            let outcome = stage.run(call).await;
            let (is, did, said) = failure(&outcome);
            assert_eq!((is, did), (Timeout, Effect::Unknown), "{method}: {said}");
            began.elapsed()
        };
        let others = async {
            for _ in 0..20 {
                good.assert_next_call_works().await;
            }
            began.elapsed()
        };
        let (flooded, others) = tokio::join!(flooded, others);
        assert!(flooded < Duration::from_secs(5), "{method}: {flooded:?}");
        assert!(others < flooded, "{method}: others waited for {others:?}");
        let expected = if method == "ping" { 0 } else { 64 };
        assert_eq!(client.asked(), expected, "{method}");
        assert!(memory.peak() < 8 * MB, "{method}: {}", memory.peak());
        stage.assert_next_call_works().await;
        until("all is given back", || memory.used() == 0).await;
        stage.over().await;
    }
    good.over().await;
}

#[tokio::test]
async fn s01_lists_of_200_pages_of_16_mb_are_cut_by_what_they_take_and_the_server_says_so() {
    let (memory, before) = (budget(256), resident());
    let stage = Attacker::of(Attack::Pages).stage(&memory).await;
    let state = stage.server.state();
    let notes = state.notes.join("\n");
    assert!(
        notes.contains("its list of tools takes more than 64.0 MiB of memory; the first"),
        "{notes}"
    );
    assert!((50..=64).contains(&state.tools), "{} tools", state.tools);
    let lists = stage.attacker.lists.load(Ordering::Relaxed);
    assert!(lists < 12, "{lists} pages were read");
    assert!(memory.peak() <= 192 * MB, "{}", memory.peak());
    let more = resident().saturating_sub(before);
    assert!(more < 900 * MB, "{} MB more", more / MB);
    // What fits can be used.
    for _ in 0..200 {
        assert_eq!(text(&stage.run(trouble()).await), "no trouble");
    }
    stage.over().await;
}

#[tokio::test]
async fn s01_prompts_are_cut_by_what_they_take_and_the_server_says_so() {
    let memory = budget(256);
    let stage = Attacker::of(Attack::LongEntries).stage(&memory).await;
    let notes = stage.server.state().notes.join("\n");
    assert!(
        notes.contains("its list of prompts takes more than 10.0 MiB of memory; the first 2"),
        "{notes}"
    );
    assert_eq!(stage.server.listed(Listed::Prompts).len(), 2);
    stage.assert_others_are_served().await;
    stage.over().await;
}

#[tokio::test]
async fn s01_a_page_of_millions_of_entries_is_not_kept() {
    let memory = budget(256);
    let stage = Attacker::of(Attack::ManyEntries).stage(&memory).await;
    assert_eq!(stage.server.listed(Listed::Prompts).len(), 10_000);
    assert_eq!(stage.server.listed(Listed::Resources).len(), 10_000);
    stage.assert_others_are_served().await;
    stage.over().await;
}

#[tokio::test]
async fn s01_cursors_that_go_around_end_the_list() {
    let attacker = Attacker::of(Attack::CursorsInACircle);
    let stage = Stage::with(Folder::new(), attacker.settings(&budget(64))).await;
    let state = stage.server.state();
    let notes = state.notes.join("\n");
    assert!(notes.contains("did not end after 4 pages"), "{notes}");
    assert_eq!(state.tools, 3);
    stage.over().await;
}

#[tokio::test]
async fn s01_a_process_without_memory_left_still_lists_small_servers_and_answers_small_calls() {
    let process = budget(8);
    let taken = process.reserve(8 * MB).expect("all of it");
    let stage = Attacker::of(Attack::LongProgress).stage(&process).await;
    assert_eq!(stage.server.state().tools, 2);
    stage.assert_others_are_served().await;
    drop(taken);
    stage.over().await;
}

#[tokio::test]
async fn s01_notifications_that_nobody_reads_take_a_megabyte_and_the_oldest_are_dropped() {
    let memory = budget(256);
    let attacker = Attacker::of(Attack::Notices);
    let server = steadyhand_mcp::Server::new(attacker.settings(&memory), None);
    let mut notices = server.notices();
    server.start();
    assert!(server.settled(Duration::from_secs(60)).await);
    let is_last = |text: &str| text.contains("the last one");
    // The last one arrives, whatever came before it.
    let mut missed = 0;
    let mut told = 0;
    tokio::time::sleep(Duration::from_millis(200)).await;
    loop {
        match notices.recv().await {
            Ok(notice) => {
                told += 1;
                let text = notice.params.expect("they have some").get().to_owned();
                assert!(text.len() < 128 * 1024);
                if is_last(&text) {
                    break;
                }
                // One that reads slowly.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(NoNotice::Missed(count)) => missed += count,
            Err(NoNotice::Closed) => panic!("the server is there"),
        }
    }
    assert!(missed > 0 && told > 0, "{missed} missed, {told} told");
    // At most one megabyte waits; an event of 4 MB is read meanwhile.
    assert!(memory.peak() < 12 * MB, "{}", memory.peak());
    server.stop().await;
}

#[tokio::test]
async fn s01_progress_that_is_too_long_is_dropped_and_the_answer_comes() {
    let memory = budget(64);
    let stage = Attacker::of(Attack::LongProgress).stage(&memory).await;
    let outcome = stage.run(trouble()).await;
    assert_eq!(text(&outcome), "after all that");
    assert!(memory.peak() < 4 * MB, "{}", memory.peak());
    until("all is given back", || memory.used() == 0).await;
    stage.over().await;
}

#[tokio::test]
async fn s01_a_result_there_is_no_memory_for_is_lost_and_the_call_says_that_it_ran() {
    for attack in [Attack::Numbers, Attack::Meta] {
        let (memory, before) = (budget(128), resident());
        let stage = Attacker::of(attack).stage(&memory).await;
        let outcome = stage.run(trouble()).await;
        let (is, did, said) = failure(&outcome);
        assert_eq!(
            (is, did),
            (ToolExecutionError, Effect::Done),
            "{attack:?}: {said}"
        );
        let words = match attack {
            Attack::Meta => "cannot be read",
            _ => "no room for",
        };
        assert!(said.contains(words), "{attack:?}: {said}");
        let more = resident().saturating_sub(before);
        assert!(more < 500 * MB, "{} MB more", more / MB);
        stage.assert_others_are_served().await;
        until("all is given back", || memory.used() == 0).await;
        stage.over().await;
    }
}

#[tokio::test]
async fn s01_large_answers_at_the_same_time_share_the_memory_of_their_server() {
    let memory = budget(24);
    let stage = Arc::new(Attacker::of(Attack::Text).stage(&memory).await);
    let mut calls = JoinSet::new();
    for _ in 0..12 {
        let stage = Arc::clone(&stage);
        calls.spawn(async move { stage.run(trouble()).await });
    }
    let outcomes = calls.join_all().await;
    for outcome in &outcomes {
        if outcome.result.is_err() {
            let (is, did, said) = failure(outcome);
            assert_eq!((is, did), (ToolExecutionError, Effect::Done), "{said}");
            assert!(said.contains("no room for"), "{said}");
        }
    }
    assert!(memory.peak() <= 24 * MB);
    stage.assert_others_are_served().await;
    until("all is given back", || memory.used() == 0).await;
}

#[tokio::test]
async fn s01_an_event_without_an_end_is_an_answer_only_if_it_begins_like_one() {
    let memory = budget(64);
    let stage = Attacker::of(Attack::EndlessAnswer).stage(&memory).await;
    let outcome = stage.run(trouble()).await;
    let (is, did, said) = failure(&outcome);
    assert_eq!((is, did), (ToolExecutionError, Effect::Done), "{said}");
    assert!(said.contains("too large"), "{said}");
    stage.over().await;
    let stage = Attacker::of(Attack::EndlessEvent).stage(&memory).await;
    let outcome = stage.run(trouble()).await;
    let (is, did, said) = failure(&outcome);
    assert_eq!((is, did), (NetworkError, Effect::Unknown), "{said}");
    assert!(said.contains("before the answer"), "{said}");
    stage.assert_others_are_served().await;
    assert!(memory.peak() < 20 * MB, "{}", memory.peak());
    stage.over().await;
}

#[tokio::test]
async fn s01_long_heads_batches_and_deep_results_fail_by_name_and_the_next_call_works() {
    for (attack, effect, words) in [
        (Attack::Head, Effect::Unknown, ""),
        (Attack::Batch, Effect::Unknown, "no message"),
        (Attack::Depth, Effect::Done, "cannot be read"),
    ] {
        let memory = budget(64);
        let stage = Attacker::of(attack).stage(&memory).await;
        let outcome = stage.run(trouble()).await;
        let (_, did, said) = failure(&outcome);
        assert_eq!(did, effect, "{attack:?}: {said}");
        assert!(said.contains(words), "{attack:?}: {said}");
        stage.assert_others_are_served().await;
        stage.over().await;
    }
}

#[tokio::test]
async fn s01_what_a_server_says_of_itself_is_cut() {
    let stage = Attacker::of(Attack::LongGreeting).stage(&budget(64)).await;
    let greeting = stage.server.greeting().expect("it has introduced itself");
    let instructions = greeting.instructions.expect("there are some");
    assert!(instructions.len() <= 64 * 1024 && instructions.contains("[cut: the first"));
    let info = greeting.server_info.to_string();
    assert!(
        info.len() < 1024 && info.contains("\"version\":\"1\""),
        "{info}"
    );
    stage.over().await;
    let attacker = Attacker::of(Attack::LongCapabilities);
    let stage = Stage::with(Folder::new(), attacker.settings(&budget(64))).await;
    let failure = stage.server.state().failure.expect("it does not start");
    let detail = failure.detail();
    assert!(detail.contains("its capabilities have 20"), "{detail}");
    stage.over().await;
}
