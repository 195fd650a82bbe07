//! Chat at a terminal: tool lines, Ctrl-C in every state, commands.

use serde_json::json;
use steadyhand_models::Dialect;
use steadyhand_models::testing::{Line, Said, StrictProvider};

use super::pty::Terminal;
use super::{strict, workplace};
use crate::serve::until;
use crate::support::Workplace;

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn the_top_says_which_model_and_how_many_tools_and_a_call_is_one_line() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("demo (demo model, a fixed script, not an AI), 4 tools. /help");
    terminal.wait_for("> ");
    terminal.line("What is 12 * 34?");
    terminal.wait_for("● math_eval expression=\"12 * 34\"");
    terminal.wait_for(" ms");
    terminal.wait_for("math_eval says: 408");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    terminal.wait_for("--resume=");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn a_tool_that_hangs_is_cancelled_by_ctrl_c_and_the_conversation_goes_on() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("> ");
    terminal.line("home_lights {\"area\": \"kitchen\", \"state\": \"on\"} and notes_find {\"q\": \"meeting\"}");
    terminal.wait_for("● home_lights area=kitchen state=on");
    // It shows that it runs, for how long it may, and how it is stopped.
    terminal.wait_for("◌ notes_find q=meeting");
    terminal.wait_for("of 20m, Ctrl-C stops");
    terminal.press(CTRL_C);
    terminal.wait_for("■ notes_find cancelled");
    terminal.wait_for("Stopped. Done: home_lights area=kitchen state=on. Cancelled: notes_find q=meeting; the model is told so.");
    terminal.wait_for("> ");
    terminal.line("What is 1 + 1?");
    terminal.wait_for("math_eval says: 2");
    terminal.wait_for("> ");
    terminal.line("/quit");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn esc_stops_a_tool_and_what_was_typed_meanwhile_begins_the_next_line() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("> ");
    terminal.line("notes_find {\"q\": \"meeting\"}");
    terminal.wait_for("◌ notes_find q=meeting");
    // An arrow begins with the same byte, and stops nothing.
    terminal.press("\u{1b}[AWhat is 6 *");
    terminal.wait_for("Ctrl-C stops");
    terminal.press("\u{1b}");
    terminal.wait_for("■ notes_find cancelled");
    terminal.wait_for("Stopped.");
    terminal.wait_for("> What is 6 *");
    terminal.line(" 9?");
    terminal.wait_for("math_eval says: 54");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_after_ctrl_c_the_next_request_is_valid_for_every_provider() {
    for (dialect, name) in [
        (Dialect::Anthropic, "anthropic"),
        (Dialect::Ollama, "ollama"),
        (Dialect::OpenAi, "openai"),
        (Dialect::OpenAiResponses, "openai-responses"),
    ] {
        let calls = Said::text("One moment.")
            .call("home_lights", json!({"area": "kitchen", "state": "on"}))
            .call("notes_find", json!({"q": "meeting"}));
        let lines = [Line::Says(calls), Line::says("The light is on.")];
        let provider = StrictProvider::start(dialect, lines).await;
        let workplace = workplace(&strict(name, &provider.url()));
        tokio::task::block_in_place(|| {
            let mut terminal = Terminal::start(&workplace, &["chat"]);
            terminal.wait_for("> ");
            terminal.line("Light, and my notes");
            terminal.wait_for("● home_lights");
            terminal.wait_for("◌ notes_find");
            terminal.press(CTRL_C);
            terminal.wait_for("Stopped.");
            terminal.wait_for("> ");
            terminal.line("What do you know so far?");
            terminal.wait_for("The light is on.");
            terminal.wait_for("> ");
            terminal.press(CTRL_D);
            let (code, shown) = terminal.ended();
            assert_eq!(code, Some(0), "{name}: {shown}");
        });
        assert_eq!(provider.refused(), Vec::<String>::new(), "{name}");
        let requests = provider.requests();
        assert_eq!(requests.len(), 2, "{name}");
        let told = requests[1].to_string();
        assert!(told.contains("cancelled by the user"), "{name}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_stalls_is_stopped_and_what_was_said_is_kept() {
    let stalls = Line::Hangs(
        Said::text("Once upon a time there was a very long story"),
        600,
    );
    let lines = [stalls, Line::says("Short, then.")];
    let provider = StrictProvider::start(Dialect::OpenAi, lines).await;
    let workplace = workplace(&strict("openai", &provider.url()));
    tokio::task::block_in_place(|| {
        let mut terminal = Terminal::start(&workplace, &["chat"]);
        terminal.wait_for("> ");
        terminal.line("Tell me a story");
        terminal.wait_for("Once");
        terminal.press(CTRL_C);
        terminal.wait_for("Stopped.");
        terminal.wait_for("> ");
        terminal.line("Shorter");
        terminal.wait_for("Short, then.");
        terminal.wait_for("> ");
        terminal.press(CTRL_D);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(0), "{shown}");
    });
    assert_eq!(provider.refused(), Vec::<String>::new());
    assert!(provider.requests()[1].to_string().contains("Once"));
}

#[test]
fn ctrl_c_clears_a_line_and_twice_on_an_empty_one_leaves_with_130() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("> ");
    terminal.press("What is 5 * 5");
    terminal.wait_for("5 * 5");
    terminal.press(CTRL_C);
    terminal.line("What is 3 * 3?");
    // Had it not been cleared, the sum would be another.
    terminal.wait_for("math_eval says: 9");
    terminal.wait_for("> ");
    terminal.press(CTRL_C);
    terminal.wait_for("Ctrl-C again or Ctrl-D to leave");
    terminal.press(CTRL_C);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(130), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_ctrl_c_soon_after_the_one_that_stopped_an_answer_leaves_with_130() {
    let stalls = Line::Hangs(Said::text("Once upon a time there was a story"), 600);
    let provider = StrictProvider::start(Dialect::OpenAi, [stalls]).await;
    let workplace = workplace(&strict("openai", &provider.url()));
    tokio::task::block_in_place(|| {
        let mut terminal = Terminal::start(&workplace, &["chat"]);
        terminal.wait_for("> ");
        terminal.line("Tell me a story");
        terminal.wait_for("Once");
        terminal.press(CTRL_C);
        terminal.wait_for("Stopped.");
        terminal.press(CTRL_C);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(130), "{shown}");
    });
}

/// A program that will not end when it is asked to, and says who it is.
const STUBBORN: &str = r#"
[tools.stubborn]
kind = "command"
description = "Does not want to end"
command = ["sh", "-c", "trap '' TERM INT; echo $$ > stubborn.pid; while :; do sleep 0.1; done"]
input = { type = "object" }
timeout = "10m"
deadline = "10m"
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_ctrl_c_kills_a_tool_that_does_not_want_to_end_and_leaves_with_130() {
    let workplace = Workplace::with_config(STUBBORN);
    let mut terminal = tokio::task::block_in_place(|| {
        let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
        terminal.wait_for("> ");
        terminal.line("stubborn {}");
        terminal.wait_for("◌ stubborn");
        terminal
    });
    let pid = until("the program runs", async || {
        let pid = std::fs::read_to_string(workplace.file("stubborn.pid")).ok()?;
        rustix::process::Pid::from_raw(pid.trim().parse().ok()?)
    })
    .await;
    tokio::task::block_in_place(|| {
        terminal.press(CTRL_C);
        terminal.wait_for("■ stubborn cancelled");
        terminal.wait_for("Stopped.");
        terminal.press(CTRL_C);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(130), "{shown}");
    });
    until("the program is gone", async || {
        rustix::process::test_kill_process(pid).err()
    })
    .await;
}

#[test]
fn ctrl_c_at_one_question_cancels_its_tools_and_ends_with_130() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo", "notes_find {}"]);
    terminal.wait_for("◌ notes_find");
    terminal.press(CTRL_C);
    terminal.wait_for("■ notes_find cancelled");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(130), "{shown}");
}

#[test]
fn the_commands_show_tools_model_last_result_and_save() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    for (line, shown) in [
        (
            "/tools",
            "home_lights  Turns the lights of a room on or off",
        ),
        ("/model", "There are: demo"),
        ("/model nobody", "there is no model \"nobody\""),
        ("/last", "No tool was called yet."),
        ("/retry", "Nothing was asked yet."),
        ("/nonsense", "There is no command /nonsense."),
        ("/help", "/save [FILE]"),
        ("What is 7 * 6?", "math_eval says: 42"),
        ("/last", "\n{\"result\":42}\n"),
        ("/retry", "math_eval says: 42"),
        ("/save", "Kept in "),
        ("/save talk.jsonl", "4 messages written to"),
    ] {
        terminal.wait_for("> ");
        terminal.line(line);
        terminal.wait_for(shown);
    }
    terminal.wait_for("> ");
    terminal.line("/quit");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    let saved = std::fs::read_to_string(workplace.file("talk.jsonl")).expect("the copy");
    assert_eq!(saved.lines().count(), 4, "{saved}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l07_at_the_limit_of_rounds_a_person_is_asked_what_to_do() {
    let call = |state: &str| Line::calls("home_lights", json!({"area": "hall", "state": state}));
    let lines = [
        call("on"),
        call("off"),
        call("on"),
        Line::says("It blinks."),
        call("on"),
    ];
    let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
    let workplace = workplace(&strict("anthropic", &provider.url()));
    tokio::task::block_in_place(|| {
        let mut terminal = Terminal::start(&workplace, &["chat", "--max-iterations", "1"]);
        terminal.wait_for("> ");
        terminal.line("Blink");
        terminal.wait_for("1 round of tools this turn. Continue, answer now, or stop?");
        terminal.wait_for("[c/a/s]");
        terminal.line("c");
        terminal.wait_for("[c/a/s]");
        terminal.line("c");
        terminal.wait_for("[c/a/s]");
        terminal.line("a");
        terminal.wait_for("It blinks.");
        terminal.wait_for("> ");
        // Whoever stops is asked for the next line; nothing more is sent.
        terminal.line("Blink again");
        terminal.wait_for("[c/a/s]");
        terminal.line("s");
        terminal.wait_for("> ");
        terminal.press(CTRL_D);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(0), "{shown}");
    });
    assert_eq!(provider.refused(), Vec::<String>::new());
    assert_eq!(provider.requests().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn l02_a_question_that_a_crash_left_without_an_answer_is_gone_on_with() {
    let lines = [
        Line::calls("notes_find", json!({"q": "x"})),
        Line::says("I could not look."),
    ];
    let provider = StrictProvider::start(Dialect::Anthropic, lines).await;
    let workplace = workplace(&strict("anthropic", &provider.url()));
    tokio::task::block_in_place(|| {
        let mut terminal = Terminal::start(&workplace, &["chat"]);
        terminal.wait_for("> ");
        terminal.line("Look for x");
        terminal.wait_for("◌ notes_find");
        terminal.kill();
        // Whether the call had begun by then is not known; if it had not, it is run now.
        let config = std::fs::read_to_string(workplace.file("steadyhand.toml")).expect("it");
        workplace.write("steadyhand.toml", &config.replace("10m", "1ms"));
        let mut terminal = Terminal::start(&workplace, &["chat", "--resume"]);
        terminal.wait_for("2 messages so far.");
        terminal.wait_for("The last question has no answer yet; going on with it.");
        terminal.wait_for("I could not look.");
        terminal.wait_for("> ");
        terminal.press(CTRL_D);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(0), "{shown}");
    });
    assert_eq!(provider.refused(), Vec::<String>::new());
    let told = provider.requests()[1].to_string();
    assert!(told.contains("tool_result"), "{told}");
}

#[test]
fn what_failed_to_start_is_said_at_the_top() {
    let workplace = Workplace::with_config(
        "[mcp.calendar]\ncommand = \"no-such-program-anywhere\"\nstart = { waits = [\"0s\"] }\n",
    );
    let mut terminal = Terminal::start(&workplace, &["chat", "--model", "demo"]);
    terminal.wait_for("calendar is not running");
    terminal.wait_for("0 tools (calendar not running). /help");
    terminal.wait_for("> ");
    terminal.press(CTRL_D);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
}

#[test]
fn with_plain_there_are_lines_for_logs_and_no_marks() {
    let workplace = workplace("");
    let mut terminal = Terminal::start(
        &workplace,
        &["chat", "--plain", "--model", "demo", "What is 12 * 34?"],
    );
    terminal.wait_for("tool ok math_eval ");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains('●'), "{shown}");
}
