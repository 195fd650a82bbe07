//! L01, L02, L03, L05: a conversation's calls have ids, grow it turn by turn, and all get a result.

use std::collections::HashMap;
use std::collections::HashSet;
use std::sync::Mutex;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use steadyhand::AiMessage;
use steadyhand::Call;
use steadyhand::Content;
use steadyhand::Message;
use steadyhand::Output;
use steadyhand::Placeholder;
use steadyhand::Tool;
use steadyhand::ToolCall;
use steadyhand::ToolError;
use steadyhand::ToolExecutor;
use steadyhand::ToolManager;
use steadyhand::ToolMessage;
use steadyhand::answer_open_calls;
use steadyhand::turn;

const MISSING: &str = "Error: the result of this call is missing from the conversation; the tool may or may not have run";

#[tokio::test(start_paused = true)]
async fn l03_a_result_goes_back_as_text() {
    let artifacts = || Output::text_with_artifact("two rooms", json!([{"type": "image"}]));
    let mcp = || Output::json_with_text(json!({"content": [{"type": "text", "text": "hi"}]}), "hi");
    let cases: Vec<(Result<Output, ToolError>, &str)> = vec![
        (Ok(artifacts()), "two rooms"),
        (Ok(mcp()), "hi"),
        (
            Ok(Output::json(json!({"b": 1, "a": [2]}))),
            r#"{"b":1,"a":[2]}"#,
        ),
        // A list of a text and a list is JSON like any other, unless its tool says what it is.
        (Ok(Output::json(json!(["a", ["b"]]))), r#"["a",["b"]]"#),
        (Ok(Output::json("as it is")), "as it is"),
        (
            Err(ToolError::answer("no such room")),
            "Error: no such room\nIt ran, and failed.",
        ),
    ];
    for (result, content) in cases {
        let result = Mutex::new(Some(result));
        let tool = Tool::with_schema("t", "Answers", json!({}), move |_: Value| {
            let result = result.lock().unwrap().take().unwrap();
            async move { result }
        });
        let tools = ToolManager::new();
        tools.add(tool).unwrap();
        let call = Call::with_id("c1", "t", json!({}));
        let message = ToolExecutor::new(tools).execute(call).await.message();
        assert_eq!(message.content, Content::Text(content.to_owned()));
        assert_eq!(message.tool_call_id, "c1");
        let has_artifact = content == "two rooms";
        assert_eq!(message.artifact.is_some(), has_artifact);
    }
}

#[test]
fn l01_a_call_without_an_id_gets_one_of_its_own() {
    let ids: HashSet<String> = (0..1000)
        .map(|_| ToolCall::new("f", Map::new()).id)
        .collect();
    assert_eq!(ids.len(), 1000);
}

#[test]
fn l01_a_made_id_is_one_that_providers_accept() {
    let id = ToolCall::new("f", Map::new()).id;
    assert!((1..=40).contains(&id.len()), "{id}");
    assert!(
        id.chars()
            .all(|char| char.is_ascii_alphanumeric() || char == '_'),
        "{id}"
    );
}

#[test]
fn l01_a_call_read_without_an_id_gets_one_of_its_own() {
    let calls = json!([{"name": "f", "args": {}, "id": null}, {"name": "f", "args": {}}]);
    let message = Message::from_json(json!({"type": "ai", "content": "", "tool_calls": calls}));
    let Ok(Message::Ai(ai)) = message else {
        panic!("not an AI message: {message:?}")
    };
    assert_ne!(ai.tool_calls[0].id, ai.tool_calls[1].id);
    assert!(
        ai.tool_calls
            .iter()
            .all(|call| call.id.starts_with("call_"))
    );
}

#[test]
fn l01_a_call_is_written_with_its_id_name_and_arguments() {
    let Value::Object(args) = json!({"to": "Oslo", "at": 3}) else {
        unreachable!()
    };
    let ai = AiMessage::calling("", vec![ToolCall::with_id("a", "weather", args)]);
    let written = serde_json::to_string(&ai).unwrap();
    let call = r#"{"name":"weather","args":{"to":"Oslo","at":3},"id":"a","type":"tool_call"}"#;
    assert_eq!(
        written,
        format!(r#"{{"type":"ai","content":"","tool_calls":[{call}]}}"#)
    );
}

#[test]
fn l02_a_turn_is_the_ai_message_and_its_results_in_the_order_of_the_calls() {
    let messages = turn(
        calling(&["a", "b", "c"]),
        vec![result("c"), result("a"), result("b")],
    );
    assert_eq!(outline(&messages), "ai(a b c) a b c");
}

#[test]
fn l02_results_of_one_id_keep_their_order() {
    let said = |id: &str, text: &str| ToolMessage::new(id, text.into());
    let results = vec![said("a", "first"), said("a", "second"), said("b", "other")];
    let messages = turn(calling(&["a", "b", "a"]), results);
    let texts: Vec<_> = messages[1..].iter().map(text_of).collect();
    assert_eq!(texts, ["first", "other", "second"]);
}

#[test]
fn l02_a_result_that_answers_no_call_is_kept() {
    let messages = turn(calling(&["a"]), vec![result("z"), result("a")]);
    assert_eq!(outline(&messages), "ai(a) a z");
}

#[test]
fn l02_the_text_of_blocks_is_what_a_person_reads() {
    let blocks = vec![
        json!({"type": "thinking", "thinking": "hm", "signature": "x"}),
        json!({"type": "text", "text": "It is "}),
        json!({"type": "image_url", "image_url": {"url": "data:"}}),
        json!("warm."),
    ];
    assert_eq!(Content::Blocks(blocks).text(), "It is warm.");
    assert_eq!(Content::from("as it is").text(), "as it is");
}

#[test]
fn l05_open_calls_are_answered_where_their_results_belong() {
    let table = [
        ("human ai(a b) a b human", "human ai(a b) a b human"),
        ("human ai(a) human", "human ai(a) !a human"),
        ("ai(a b c) b", "ai(a b c) !a b !c"),
        ("ai(a b c) c human", "ai(a b c) !a !b c human"),
        ("ai(a) ai(b) b", "ai(a) !a ai(b) b"),
        // A result after the turn does not count; moving it is the work of the full repair.
        ("ai(a) human a", "ai(a) !a human a"),
        // One id, several calls: as many results as calls.
        ("ai(a a a) a", "ai(a a a) a !a !a"),
        ("ai(a) human ai(a) a", "ai(a) !a human ai(a) a"),
        // Neither ends a turn; results behind it still count.
        ("ai(a b) system a", "ai(a b) system a !b"),
        ("ai(a b) a system human", "ai(a b) a !b system human"),
        // Surplus and orphaned results are left alone.
        ("z ai(a) a a z ai()", "z ai(a) a a z ai()"),
        ("ai(a) z", "ai(a) z !a"),
        ("", ""),
    ];
    for (given, expected) in table {
        let (answered, _) = answer_open_calls(history(given));
        assert_eq!(outline(&answered), expected, "given {given:?}");
    }
}

#[test]
fn l05_a_placeholder_says_what_is_known_and_nothing_more() {
    let (answered, _) = answer_open_calls(history("ai(a)"));
    let expected = json!({"type": "tool", "content": MISSING, "tool_call_id": "a", "name": "tool_a", "status": "error"});
    assert_eq!(serde_json::to_value(&answered[1]).unwrap(), expected);
}

#[test]
fn l05_the_report_names_each_missing_result() {
    let (_, placeholders) = answer_open_calls(history("human ai(a b) b human ai(c)"));
    let missing = |ai_index, id: &str| Placeholder {
        ai_index,
        tool_call_id: id.to_owned(),
        name: format!("tool_{id}"),
    };
    assert_eq!(placeholders, [missing(1, "a"), missing(4, "c")]);
}

#[test]
fn l05_answering_twice_changes_nothing_more_whatever_the_history() {
    for seed in 0..500 {
        let given = random_history(seed);
        let (once, placeholders) = answer_open_calls(given.clone());
        let (twice, none) = answer_open_calls(once.clone());
        assert_eq!(twice, once, "seed {seed}");
        assert_eq!(none, [], "seed {seed}");

        let mut without = once.clone();
        without.retain(|message| text_of(message) != MISSING);
        assert_eq!(
            without, given,
            "seed {seed}: something else was moved or dropped"
        );
        assert_eq!(once.len(), given.len() + placeholders.len(), "seed {seed}");
        assert_every_call_has_a_result(&once, seed);
    }
}

fn assert_every_call_has_a_result(messages: &[Message], seed: u64) {
    let mut open: HashMap<&str, i32> = HashMap::new();
    let ends = [Message::human("the end")];
    for message in messages.iter().chain(&ends) {
        if let Message::Tool(result) = message {
            *open.entry(&result.tool_call_id).or_default() -= 1;
        }
        if matches!(message, Message::Ai(_) | Message::Human(_)) {
            assert!(
                open.values().all(|&left| left <= 0),
                "seed {seed}: {open:?}"
            );
            open.clear();
        }
        if let Message::Ai(ai) = message {
            ai.tool_calls
                .iter()
                .for_each(|call| *open.entry(&call.id).or_default() += 1);
        }
    }
}

/// A history as [`outline`] writes it: `ai(a b)` calls twice, `a` is a result, `human` and `system` speak.
fn history(outline: &str) -> Vec<Message> {
    let spaced = outline.replace(')', " )").replace('(', " ( ");
    let mut words = spaced.split_whitespace().peekable();
    let mut messages = Vec::new();
    while let Some(word) = words.next() {
        messages.push(match word {
            "human" => Message::human("go on"),
            "system" => Message::system("be kind"),
            "ai" => {
                let ids: Vec<&str> = words.by_ref().skip(1).take_while(|&id| id != ")").collect();
                calling(&ids).into()
            }
            id => result(id).into(),
        });
    }
    messages
}

/// A history in one line; `!a` is a placeholder for the result of `a`.
fn outline(messages: &[Message]) -> String {
    let word = |message: &Message| match message {
        Message::System(_) => "system".to_owned(),
        Message::Human(_) => "human".to_owned(),
        Message::Ai(ai) => {
            let ids: Vec<&str> = ai.tool_calls.iter().map(|call| call.id.as_str()).collect();
            format!("ai({})", ids.join(" "))
        }
        Message::Tool(result) if result.is_error => format!("!{}", result.tool_call_id),
        Message::Tool(result) => result.tool_call_id.clone(),
        Message::Other(other) => other.kind.clone(),
    };
    messages.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Few ids and many messages, so that ids repeat, results go astray and turns are cut short.
fn random_history(seed: u64) -> Vec<Message> {
    let mut random = fastrand::Rng::with_seed(seed);
    let ids = ["a", "b", "c"];
    let length = random.usize(..24);
    let mut messages = Vec::with_capacity(length);
    for _ in 0..length {
        messages.push(match random.usize(..10) {
            0 => Message::human("go on"),
            1 => Message::system("be kind"),
            2..5 => {
                let count = random.usize(..5);
                let called: Vec<&str> =
                    (0..count).map(|_| ids[random.usize(..ids.len())]).collect();
                calling(&called).into()
            }
            _ => result(ids[random.usize(..ids.len())]).into(),
        });
    }
    messages
}

fn calling(ids: &[&str]) -> AiMessage {
    let call = |id: &&str| ToolCall::with_id(*id, format!("tool_{id}"), Map::new());
    AiMessage::calling("", ids.iter().map(call).collect())
}

fn result(id: &str) -> ToolMessage {
    ToolMessage::new(id, "42".into())
}

fn text_of(message: &Message) -> String {
    match message {
        Message::System(message) | Message::Human(message) => message.content.text().into_owned(),
        Message::Ai(message) => message.content.text().into_owned(),
        Message::Tool(message) => message.content.text().into_owned(),
        Message::Other(message) => message.kind.clone(),
    }
}
