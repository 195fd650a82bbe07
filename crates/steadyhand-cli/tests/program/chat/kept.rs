//! Conversations are kept as they go, one message a line, and gone on with after anything.

use std::path::PathBuf;

use serde_json::{Value, json};
use steadyhand_models::Dialect;
use steadyhand_models::testing::{Line, StrictProvider};

use super::{strict, workplace};
use crate::support::{Workplace, parts};

fn file_of(workplace: &Workplace, id: &str) -> PathBuf {
    let folder = workplace.file(".local/state/steadyhand/conversations");
    folder.join(format!("{id}.jsonl"))
}

fn id_of(stdout: &str) -> String {
    let value: Value = serde_json::from_str(stdout).expect("JSON");
    value["conversation"].as_str().expect("an id").to_owned()
}

fn kinds(workplace: &Workplace, id: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file_of(workplace, id)).expect("the conversation");
    let kind = |line: &str| {
        let message: Value = serde_json::from_str(line).expect("one message a line");
        message["type"].as_str().expect("a type").to_owned()
    };
    text.lines().map(kind).collect()
}

#[test]
fn a_conversation_is_a_file_that_only_its_owner_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let workplace = workplace("");
    let (_, stdout, _) = parts(&workplace.run_words(&["chat", "--json", "What is 2 * 3?"]));
    let id = id_of(&stdout);
    assert_eq!(kinds(&workplace, &id), ["human", "ai", "tool", "ai"]);
    let file = std::fs::metadata(file_of(&workplace, &id)).expect("the file");
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
}

#[test]
fn with_no_save_nothing_is_kept() {
    let workplace = workplace("");
    let run = workplace.run_words(&["chat", "--json", "--no-save", "What is 2 * 3?"]);
    let (_, stdout, _) = parts(&run);
    let value: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(value["conversation"], json!(null));
    assert!(
        !workplace
            .file(".local/state/steadyhand/conversations")
            .exists()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l02_the_next_turn_gets_the_whole_history() {
    let lines = [
        Line::calls("math_eval", json!({"expression": "2 * 3"})),
        Line::says("Six."),
        Line::says("It was six."),
    ];
    let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
    let workplace = workplace(&strict("anthropic", &provider.url()));
    let first = workplace.run_words(&["chat", "--json", "--system", "Be brief.", "What is 2 * 3?"]);
    let id = id_of(&parts(&first).1);
    let (code, stdout, stderr) = parts(&workplace.run_words(&["chat", "--resume", "And again?"]));
    assert_eq!((code, stdout.as_str()), (0, "It was six.\n"), "{stderr}");
    assert!(
        stderr.contains(&format!("Conversation {id}, 5 messages so far.")),
        "{stderr}"
    );
    assert_eq!(provider.refused(), Vec::<String>::new());
    let last = &provider.requests()[2];
    assert!(last["system"].to_string().contains("Be brief."), "{last:#}");
    let roles: Vec<&str> = last["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(
        kinds(&workplace, &id),
        ["system", "human", "ai", "tool", "ai", "human", "ai"]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l05_a_conversation_that_a_crash_cut_off_anywhere_is_gone_on_with() {
    let call = json!({"type": "ai", "content": "", "tool_calls": [{"type": "tool_call", "id": "c1", "name": "math_eval", "args": {"expression": "1 + 1"}}]});
    let human = json!({"type": "human", "content": "What is 1 + 1?"});
    let result = json!({"type": "tool", "content": "2", "tool_call_id": "c1", "name": "math_eval", "status": "success"});
    let whole = format!("{human}\n{call}\n{result}\n");
    let provider = StrictProvider::start(Dialect::OpenAi, []).await;
    let workplace = workplace(&strict("openai", &provider.url()));
    // After each line, and in the middle of each.
    let second = human.to_string().len() + 1 + call.to_string().len() + 1;
    for (number, end) in [
        human.to_string().len() + 1,
        human.to_string().len() + 20,
        second,
        second + 30,
        whole.len() - 1,
        whole.len(),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("20260101-00000{number}-abcdef");
        let path = file_of(&workplace, &id);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, &whole[..end]).expect("written");
        provider.then(Line::says("Fine."));
        let run = workplace.run_words(&["chat", &format!("--resume={id}"), "Go on"]);
        let (code, stdout, stderr) = parts(&run);
        assert_eq!((code, stdout.as_str()), (0, "Fine.\n"), "{end}: {stderr}");
        assert_eq!(provider.refused(), Vec::<String>::new(), "{end}");
    }
}

#[test]
fn a_conversation_that_is_none_is_said_to_be_none() {
    let workplace = Workplace::new();
    for (flag, words) in [
        ("--resume", "there is no conversation yet"),
        (
            "--resume=20260101-000000-abcdef",
            "there is no conversation \"20260101-000000-abcdef\"",
        ),
        (
            "--resume=../../etc/passwd",
            "there is no conversation \"../../etc/passwd\"",
        ),
    ] {
        let (code, _, stderr) = parts(&workplace.run_words(&["chat", flag, "hi"]));
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[test]
fn a_state_folder_that_cannot_be_written_does_not_stop_the_chat() {
    let workplace = workplace("");
    workplace.write("state", "a file where a folder should be");
    let run = workplace.run_words(&["chat", "--state", "state", "What is 2 * 3?"]);
    let (code, stdout, stderr) = parts(&run);
    assert!(stderr.contains("This conversation is not kept"), "{stderr}");
    assert!(stdout.contains("math_eval"), "{code} {stdout} {stderr}");
}
