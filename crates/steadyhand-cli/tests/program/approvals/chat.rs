//! Calls of a chat that wait: for the person at its terminal, or for somebody at a server of the same configuration.

use super::TOOLS;
use crate::chat::pty::Terminal;
use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

fn chat(workplace: &Workplace) -> Terminal {
    let mut terminal = Terminal::start(workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("> ");
    terminal
}

fn leave(mut terminal: Terminal) {
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn the_person_at_the_terminal_says_yes_no_or_no_with_a_reason() {
    let workplace = Workplace::with_config(TOOLS);
    let mut terminal = chat(&workplace);
    terminal.line("unlock {\"door\": \"front\", \"password\": \"hunter22222\"}");
    let shown = terminal.wait_for("Allow?  [y] yes   [n] no   [r] no, with a reason   (waits 5m)");
    assert!(shown.contains("unlock wants to run"), "{shown}");
    assert!(shown.contains("door     front"), "{shown}");
    assert!(shown.contains("asks every time"), "{shown}");
    let (_, shown) = shown.split_once("wants to run").expect("the question");
    assert!(!shown.contains("hunter"), "{shown}");
    // What is no answer is asked again.
    terminal.line("perhaps");
    terminal.wait_for("[y] yes   [n] no");
    // A yes to what is not shown takes a word of its own.
    assert!(
        shown.contains("not shown: /password: a secret, 13 bytes"),
        "{shown}"
    );
    terminal.line("y");
    terminal.wait_for("Allow them unseen?  [unseen] yes");
    terminal.line("unseen");
    terminal.wait_for("● unlock door=front");
    terminal.wait_for("> ");

    terminal.line("unlock {\"door\": \"back\"}");
    terminal.wait_for("Allow?");
    terminal.line("r");
    terminal.wait_for("Reason: ");
    terminal.line("not while nobody is home");
    terminal.wait_for("✗ unlock door=back");
    let denied = "was denied by the person at the terminal: not while nobody is home";
    terminal.wait_for(denied);
    terminal.wait_for("> ");

    terminal.line("unlock {\"door\": \"side\"}");
    terminal.wait_for("Allow?");
    terminal.line("n");
    terminal.wait_for("✗ unlock door=side");
    leave(terminal);
}

#[test]
fn ctrl_c_denies_the_one_call_and_the_others_go_on() {
    let workplace = Workplace::with_config(TOOLS);
    let mut terminal = chat(&workplace);
    terminal.line("unlock {\"door\": \"front\"} and weather {}");
    terminal.wait_for("Allow?");
    terminal.press(CTRL_C);
    terminal.wait_for("✗ unlock door=front");
    terminal.wait_for("● weather");
    leave(terminal);
}

#[test]
fn two_calls_are_asked_about_one_after_the_other_and_a_yes_counts_for_the_conversation() {
    let workplace = Workplace::with_config(TOOLS);
    let mut terminal = chat(&workplace);
    terminal.line("shutters {\"to\": 1} and unlock {\"door\": \"front\"}");
    let mut questions = String::new();
    for _ in 0..2 {
        questions.push_str(&terminal.wait_for("Allow?"));
        terminal.line("y");
    }
    assert!(questions.contains("a yes counts for the same arguments in this conversation"));
    assert!(
        questions.contains("shutters wants to run") && questions.contains("unlock wants to run")
    );
    // The first goes on while the second is asked about.
    questions.push_str(&terminal.wait_for("● unlock door=front"));
    assert!(questions.contains("● shutters to=1"), "{questions}");
    terminal.wait_for("> ");
    // The same again is not asked; other arguments are, and what asks every time.
    terminal.line("shutters {\"to\": 1}");
    let shown = terminal.wait_for("● shutters to=1");
    assert!(!shown.contains("wants to run"), "{shown}");
    for (line, shown) in [
        ("shutters {\"to\": 2}", "✗ shutters to=2"),
        ("unlock {\"door\": \"front\"}", "✗ unlock door=front"),
    ] {
        terminal.wait_for("> ");
        terminal.line(line);
        terminal.wait_for("Allow?");
        terminal.line("n");
        terminal.wait_for(shown);
    }
    leave(terminal);
}

#[test]
fn where_nobody_can_be_asked_the_call_is_denied_with_what_to_do() {
    let workplace = Workplace::with_config(TOOLS);
    let (_, _, stderr) =
        parts(&workplace.run_words(&["chat", "--model", "demo", "unlock {\"door\": \"front\"}"]));
    assert!(stderr.contains("approval_denied"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_chat_is_decided_by_command_at_the_server_while_the_chat_waits() {
    let served = Served::with_config(TOOLS).await;
    let workplace = served.workplace.shared();
    let mut terminal = tokio::task::block_in_place(|| {
        let mut terminal = chat(&workplace);
        terminal.line("unlock {\"door\": \"front\"}");
        terminal.wait_for("Allow?");
        terminal
    });
    let id = listed(&served, "chat").await;
    let (code, stdout, stderr) = tokio::task::block_in_place(|| {
        let (code, listed, stderr) = parts(&workplace.run("approvals"));
        assert_eq!(code, 0, "{stderr}");
        assert!(
            listed.contains("unlock") && listed.contains("chat"),
            "{listed}"
        );
        parts(&workplace.run(&format!("approve {id}")))
    });
    assert_eq!(code, 0, "{stdout}{stderr}");
    tokio::task::block_in_place(|| {
        terminal.wait_for("Allowed by cli.");
        terminal.wait_for("● unlock door=front");
        terminal.wait_for("> ");
        // The line that nobody reads any more is not lost: it is the next question.
        terminal.line("unlock {\"door\": \"back\"}");
        terminal.wait_for("Allow?");
    });
    // Decided at the terminal, it is no longer waited for at the server.
    let id = listed(&served, "chat").await;
    tokio::task::block_in_place(|| {
        terminal.line("n");
        terminal.wait_for("✗ unlock door=back");
        leave(terminal);
    });
    until("it is withdrawn", async || {
        let view = served.get("/v1/approvals").await.json();
        let mut all = view["approvals"].as_array()?.iter();
        let one = all.find(|one| one["id"] == id.as_str())?;
        (one["state"] == "withdrawn").then_some(())
    })
    .await;
    // Nobody but a command on this machine puts calls of its own there.
    let reply = served.post("/v1/approvals", serde_json::json!({})).await;
    assert_eq!(
        (reply.status, reply.refusal().1.as_str()),
        (403, "not_allowed")
    );
}

async fn listed(served: &Served, caller: &str) -> String {
    let waiting = super::waiting(served, 1).await;
    assert_eq!(waiting[0]["caller"], caller, "{}", waiting[0]);
    assert_eq!(waiting[0]["tool"], "unlock");
    waiting[0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_call_at_a_terminal_asks_the_person_there() {
    let workplace = Workplace::with_config(TOOLS);
    let mut terminal = Terminal::start(&workplace, &["call", "unlock", "door=front"]);
    let shown = terminal.wait_for("Allow?  [y] yes   [n] no");
    assert!(shown.contains("unlock wants to run"), "{shown}");
    assert!(shown.contains("this command, asks every time"), "{shown}");
    terminal.line("y");
    terminal.wait_for("unlocked");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");

    let mut terminal = Terminal::start(&workplace, &["call", "unlock", "door=front"]);
    terminal.wait_for("Allow?");
    terminal.press(CTRL_C);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(7), "{shown}");
    assert!(shown.contains("It was not run."), "{shown}");

    // Nobody to ask: the same as before.
    let (code, _, stderr) = parts(&workplace.run("call unlock door=front"));
    assert_eq!(code, 7, "{stderr}");
    assert!(stderr.contains("--approve unlock"), "{stderr}");
}

#[tokio::test]
async fn a_call_of_a_server_asks_at_the_terminal_that_made_it() {
    let served = Served::with_config(TOOLS).await;
    let place = served.workplace.shared();
    let asking = tokio::task::spawn_blocking(move || {
        let mut terminal = Terminal::start(&place, &["call", "unlock", "door=front"]);
        terminal.wait_for("Allow?  [y] yes   [n] no");
        terminal.line("y");
        let answered = terminal.ended();
        let mut terminal = Terminal::start(&place, &["call", "unlock", "door=back"]);
        terminal.wait_for("Allow?");
        terminal.line("r");
        terminal.wait_for("Reason: ");
        terminal.line("at night");
        (answered, terminal.ended())
    });
    let (yes, no) = asking.await.expect("no panic");
    assert_eq!(yes.0, Some(0), "{}", yes.1);
    assert!(yes.1.contains("unlocked"), "{}", yes.1);
    assert_eq!(no.0, Some(7), "{}", no.1);
    assert!(no.1.contains("at night"), "{}", no.1);
}
