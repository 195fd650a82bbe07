//! Between a client of ours and a server behind us: nothing is changed in passing, nobody else is asked.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use steadyhand::FailureCode::Timeout;
use steadyhand::{Call, Outcome};
use steadyhand_mcp::wire::RpcError;
use steadyhand_mcp::{Counterpart, Listed, Passage, Phase, Question};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{Folder, PATIENCE, Stage, failure, set, text, until};

/// Beyond what 64 bits hold.
const BIG: &str = "123456789012345678901234567890";

/// A client that answers as it is told, and keeps what it hears.
pub(crate) struct Client {
    capabilities: Value,
    /// None: it thinks for ever.
    answer: Option<Value>,
    thinks: Duration,
    pub(crate) asked: Mutex<Vec<Question>>,
    pub(crate) heard: Mutex<Vec<(String, Value)>>,
}

impl Client {
    pub(crate) fn who(answer: Option<Value>, thinks: Duration) -> Arc<Client> {
        Arc::new(Client {
            capabilities: json!({"elicitation": {}, "sampling": {}, "roots": {}}),
            answer,
            thinks,
            asked: Mutex::default(),
            heard: Mutex::default(),
        })
    }

    pub(crate) fn named(name: &str) -> Arc<Client> {
        let answer = json!({"action": "accept", "content": {"name": name}});
        Client::who(Some(answer), Duration::ZERO)
    }

    pub(crate) fn asked(&self) -> usize {
        lock(&self.asked).len()
    }

    fn heard(&self) -> Vec<(String, Value)> {
        lock(&self.heard).clone()
    }
}

impl Counterpart for Client {
    fn capabilities(&self) -> &Value {
        &self.capabilities
    }

    fn ask(
        self: Arc<Self>,
        questions: Vec<Question>,
    ) -> BoxFuture<'static, Vec<Result<Box<RawValue>, RpcError>>> {
        async move {
            let count = questions.len();
            lock(&self.asked).extend(questions);
            sleep(self.thinks).await;
            let Some(answer) = &self.answer else {
                return std::future::pending().await;
            };
            let answer = || Ok(to_raw_value(answer).expect("JSON"));
            (0..count).map(|_| answer()).collect()
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: Option<&RawValue>) {
        let params = params.map(|params| serde_json::from_str(params.get()).expect("JSON"));
        lock(&self.heard).push((method.to_owned(), params.unwrap_or_default()));
    }

    fn log_level(&self) -> Option<&str> {
        None
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn passage(client: &Arc<Client>, arguments: &str) -> Arc<Passage> {
    let meta = vec![("vendor/key".to_owned(), raw(r#"{"kept":true}"#))];
    let arguments = RawValue::from_string(arguments.to_owned()).expect("JSON");
    Arc::new(Passage::new(
        Arc::clone(client) as Arc<dyn Counterpart>,
        meta,
        Some(arguments),
    ))
}

pub(crate) fn call(tool: &str, passage: &Arc<Passage>) -> Call {
    let arguments = passage.arguments().expect("arguments").get();
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    Call::new(tool, arguments).luggage(Arc::clone(passage))
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// What the mode `asks_a_person` heard.
fn said(outcome: &Outcome) -> Value {
    serde_json::from_str(&text(outcome)).expect("JSON")
}

#[tokio::test]
async fn v13_what_passes_through_a_call_comes_out_as_it_went_in() {
    let stage = Stage::of(&["offers_all"]).await;
    let client = Client::named("Ada");
    let arguments = format!(r#"{{"big":{BIG},"exact":1.0,"odd":{{"x":[]}}}}"#);
    let passage = passage(&client, &arguments);
    stage.run(call("mirror", &passage)).await;
    let result = passage.take_result().expect("the server's own result");
    let result = result.get();
    assert!(result.contains(&format!(r#""depth":{BIG}"#)), "{result}");
    assert!(result.contains(r#""vendor":[1.0,1]"#), "{result}");
    assert!(
        result.contains(&format!(r#""arguments":{arguments}"#)),
        "{result}"
    );
    assert!(result.contains(r#""vendor/key":{"kept":true}"#), "{result}");
    assert!(result.contains(r#""progressToken":"#), "{result}");
    stage.over().await;
}

#[tokio::test]
async fn v13_arguments_that_had_to_be_changed_are_sent_changed() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["offers_all"]);
    let mapping = [("device_name".to_owned(), "deviceName".to_owned())].into();
    settings.params.insert("mirror".to_owned(), mapping);
    let stage = Stage::with(folder, settings).await;
    let passage = passage(&Client::named("Ada"), r#"{"device_name": "Switch One"}"#);
    stage.run(call("mirror", &passage)).await;
    let result = passage.take_result().expect("the server's own result");
    assert!(
        result
            .get()
            .contains(r#""arguments":{"deviceName":"Switch One"}"#),
        "{result}"
    );
    stage.over().await;
}

#[tokio::test]
async fn v05_prompts_and_resources_are_known_raw_kept_on_disk_and_refreshed() {
    let stage = Stage::of(&["offers_all"]).await;
    let prompts = stage.server.listed(Listed::Prompts);
    assert_eq!(prompts.len(), 2, "both pages");
    assert!(prompts[0].get().contains(BIG), "{}", prompts[0]);
    let resources = stage.server.listed(Listed::Resources);
    assert!(resources[0].get().contains("12345678901234567890"));
    assert!(stage.server.listed(Listed::ResourceTemplates).is_empty());
    let greeting = stage.server.greeting().expect("a greeting");
    assert_eq!(greeting.instructions.as_deref(), Some("Greet first."));
    assert_eq!(greeting.capabilities["vendor/thing"]["kept"], true);

    let before = stage.server.state();
    stage.text("trouble", json!({})).await;
    let mut changes = stage.server.changes();
    let changed = changes.wait_for(|state| state.prompts_version > before.prompts_version);
    timeout(PATIENCE, changed)
        .await
        .expect("it is told")
        .expect("a server");
    assert_eq!(stage.server.listed(Listed::Prompts).len(), 3);
    assert_eq!(
        stage.server.state().resources_version,
        before.resources_version
    );

    let definition = stage.server.definition("mirror").expect("a definition");
    let definition = definition.get();
    assert!(
        definition.starts_with(r#"{"name":"mirror","#),
        "{definition}"
    );

    // What is written down is written after it is told.
    let kept = || {
        let server = steadyhand_mcp::Server::new(
            stage.folder.hostile(&["offers_all"]),
            Some(stage.folder.path("state")),
        );
        (
            server.state().phase,
            server.listed(Listed::Prompts).len(),
            server.greeting(),
        )
    };
    until("the new list is on disk", || kept().1 == 3).await;
    assert_eq!(kept().0, Phase::Idle);
    assert_eq!(
        kept().2.expect("a greeting").instructions.as_deref(),
        Some("Greet first.")
    );
    stage.over().await;
}

#[tokio::test]
async fn v05_a_definition_is_the_servers_own_but_for_its_name() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["bad_schema"]);
    settings.prefix = true;
    let stage = Stage::with(folder, settings).await;
    let definition = stage
        .server
        .definition("hostile__note")
        .expect("a definition");
    let expected = r#"{"name":"hostile__note","description":"note, for tests","inputSchema":{"type":"object","properties":{"message":{"type":"string"},"delay_ms":{"type":"integer"}},"required":["message"]}}"#;
    assert_eq!(definition.get(), expected);
    assert!(stage.server.definition("note").is_none());
    stage.over().await;
}

#[tokio::test]
async fn v13_any_other_request_is_passed_on_raw_and_its_progress_is_told_without_our_token() {
    let stage = Stage::of(&["offers_all"]).await;
    let client = Client::named("Ada");
    let passage = passage(&client, "{}");
    let params = raw(&format!(
        r#"{{"name":"greet","arguments":{{"who":{BIG}}},"_meta":{{"progressToken":"theirs","x":1}}}}"#
    ));
    let ask = |method: &'static str, params: Option<Box<RawValue>>| {
        let (server, passage) = (stage.server.clone(), Arc::clone(&passage));
        async move {
            let asked = server.ask(method, params.as_deref(), &passage, soon());
            timeout(PATIENCE, asked).await.expect("no hang")
        }
    };
    let result = ask("prompts/get", Some(params)).await.expect("a result");
    let result = result.get();
    assert!(result.contains(&format!(r#""vendor":{BIG}"#)), "{result}");
    assert!(result.contains(&format!(r#""who":{BIG}"#)), "{result}");
    assert!(result.contains(r#""vendor/key":{"kept":true}"#), "{result}");
    assert!(!result.contains("theirs"), "its token is its own: {result}");
    let progress = (
        "notifications/progress".to_owned(),
        json!({"progress": 1, "total": 2, "vendor": 1}),
    );
    assert_eq!(client.heard(), [progress]);

    let error = ask("resources/read", None).await.expect_err("an error");
    assert_eq!(
        (error.code, error.message.as_str()),
        (-32002, "no such resource")
    );
    let error = ask("no/such", None).await.expect_err("an error");
    assert_eq!(error.code, -32601);
    stage.over().await;
}

#[tokio::test]
async fn v07_a_request_that_is_not_answered_ends_at_its_limit_and_is_cancelled() {
    let stage = Stage::of(&["offers_all"]).await;
    let passage = passage(&Client::named("Ada"), "{}");
    let limit = Instant::now() + Duration::from_millis(200);
    let asked = stage.server.ask("slow/thing", None, &passage, limit);
    let error = timeout(PATIENCE, asked)
        .await
        .expect("no hang")
        .expect_err("time is up");
    assert_eq!(error.code, -32001);
    assert!(error.message.contains("slow/thing"), "{}", error.message);
    let heard = stage.json("heard", json!({})).await;
    assert!(
        heard.to_string().contains("notifications/cancelled"),
        "{heard}"
    );
    stage.over().await;
}

#[tokio::test]
async fn d17_a_request_to_a_server_that_is_down_fails_at_once_and_says_why() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["exit1_before_init"]);
    set(&mut settings, "HOSTILE_TIMES", "1000");
    let stage = Stage::with(folder, settings).await;
    assert_eq!(stage.server.state().phase, Phase::Down);
    let passage = passage(&Client::named("Ada"), "{}");
    let asked = stage.server.ask("prompts/get", None, &passage, soon());
    let error = timeout(PATIENCE, asked)
        .await
        .expect("no hang")
        .expect_err("it is down");
    assert_eq!(error.code, -32000);
    assert!(
        error
            .message
            .contains("MCP server 'hostile' is not running"),
        "{}",
        error.message
    );
    stage.over().await;
}

#[tokio::test]
async fn v13_a_server_hears_that_it_may_ask_what_can_be_passed_on() {
    let folder = Folder::new();
    let mut settings = folder.hostile(&["offers_all"]);
    settings.requests.relay = true;
    let stage = Stage::with(folder, settings).await;
    let declared = stage.json("declared", json!({})).await;
    for name in ["roots", "sampling", "elicitation"] {
        assert!(declared[name].is_object(), "{declared}");
    }
    assert!(declared["elicitation"]["url"].is_object(), "{declared}");
    stage.over().await;

    let stage = Stage::of(&["offers_all"]).await;
    assert_eq!(stage.json("declared", json!({})).await, json!({}));
    stage.over().await;
}

#[tokio::test]
async fn v13_a_question_goes_to_the_client_whose_call_it_is() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let client = Client::named("Ada");
    let passage = passage(&client, r#"{"message": "Your name?"}"#);
    // Two calls of the same client: it is still clear who is meant.
    let other = stage.run(call("trouble", &passage));
    let (first, second) = tokio::join!(stage.run(call("trouble", &passage)), other);
    for outcome in [first, second] {
        assert_eq!(said(&outcome)["result"]["content"]["name"], "Ada");
    }
    assert_eq!(client.asked(), 2);
    let question = lock(&client.asked)[0].clone();
    assert_eq!(question.method, "elicitation/create");
    let params = question.params.expect("params");
    assert!(params.get().contains("Your name?"), "{params}");
    stage.over().await;
}

#[tokio::test]
async fn v13_nobody_is_asked_when_it_could_be_the_wrong_one() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let (ada, bob) = (Client::named("Ada"), Client::named("Bob"));
    let others = passage(&bob, r#"{"delay_ms": 60000}"#);
    let running = tokio::spawn({
        let (executor, call) = (stage.executor.clone(), call("told", &others));
        async move { executor.execute(call).await }
    });
    until("the other's call is at the server", || {
        !bob.heard().is_empty()
    })
    .await;
    let mine = passage(&ada, r#"{"message": "Your name?"}"#);
    let said = said(&stage.run(call("trouble", &mine)).await);
    assert_eq!(said["error"]["code"], -32600, "{said}");
    let words = said["error"]["message"].as_str().expect("words");
    assert!(words.contains("several clients"), "{words}");
    assert_eq!((ada.asked(), bob.asked()), (0, 0));
    running.abort();
    stage.over().await;
}

#[tokio::test]
async fn v13_a_client_that_cannot_be_asked_is_not() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let mut client = Client::named("Ada");
    Arc::get_mut(&mut client).expect("ours").capabilities = json!({"roots": {}});
    let passage = passage(&client, "{}");
    let said = said(&stage.run(call("trouble", &passage)).await);
    assert_eq!(said["error"]["code"], -32601, "{said}");
    assert_eq!(client.asked(), 0);
    stage.over().await;
}

#[tokio::test]
async fn v07_a_person_may_think_for_longer_than_the_time_limit() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let answer = json!({"action": "decline"});
    let client = Client::who(Some(answer), Duration::from_secs(3));
    let passage = passage(&client, "{}");
    let outcome = stage
        .run(call("trouble", &passage).timeout(Duration::from_secs(1)))
        .await;
    assert_eq!(said(&outcome)["result"]["action"], "decline");
    stage.over().await;
}

#[tokio::test]
async fn v07_a_person_who_never_answers_ends_with_the_deadline_and_the_server_is_told() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let client = Client::who(None, Duration::ZERO);
    let passage = passage(&client, "{}");
    let call = call("trouble", &passage)
        .timeout(Duration::from_millis(500))
        .deadline(Duration::from_secs(2));
    assert_eq!(failure(&stage.run(call).await).0, Timeout);
    assert_eq!(client.asked(), 1);
    let mut heard = Value::Null;
    while !heard.to_string().contains("response") {
        heard = stage.json("heard", json!({})).await;
    }
    stage.over().await;
}

#[tokio::test]
async fn v13_messages_go_to_the_only_client_there_is_and_what_concerns_nobody_to_whoever_listens() {
    let stage = Stage::of(&["asks_a_person"]).await;
    let mut notices = stage.server.notices();
    let client = Client::named("Ada");
    stage.run(call("told", &passage(&client, "{}"))).await;
    let heard = client.heard();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert_eq!(heard[0].0, "notifications/message");
    let notice = timeout(PATIENCE, notices.recv())
        .await
        .expect("told")
        .expect("a notice");
    assert_eq!(&*notice.method, "notifications/resources/updated");
    assert_eq!(&*notice.server, "hostile");
    assert_eq!(
        notice.params.expect("params").get(),
        r#"{"uri":"test://one"}"#
    );

    // Nobody's call: the message is for whoever listens.
    stage.text("told", json!({})).await;
    let notice = timeout(PATIENCE, notices.recv())
        .await
        .expect("told")
        .expect("a notice");
    assert_eq!(&*notice.method, "notifications/message");
    assert!(notice.params.expect("params").get().contains(BIG));
    stage.over().await;
}
