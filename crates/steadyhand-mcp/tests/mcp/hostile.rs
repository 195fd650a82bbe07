//! The hostile server: for each of its faults what the caller gets, within which bound, and that the next call
//! works. `scripts/hostile-table` prints these tests as a table.

use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::FailureCode::{NetworkError, Timeout, ToolExecutionError};
use steadyhand::{Call, Effect, FailureCode, Outcome};
use tokio::time::Instant;

use crate::support::{SILENCE, Stage, is_silent, set};

/// One fault, and what it is to the caller.
struct Row {
    /// The mode, and its number if it has one.
    mode: &'static [&'static str],
    shown: Shown,
    call: Call,
    gets: Gets,
    /// A bound that only a hang exceeds.
    within: Duration,
}

/// When the fault shows.
enum Shown {
    /// While the server is up. The very next call works.
    InACall,
    /// At so many starts. Calls work again when the server is back.
    AtStarts(&'static str),
}

enum Gets {
    Text(&'static str),
    Value(Value),
    Failure(FailureCode, Effect, &'static [&'static str]),
}

fn in_a_call(mode: &'static [&'static str]) -> Row {
    Row {
        mode,
        shown: Shown::InACall,
        call: Call::new("trouble", json!({})),
        gets: Gets::Text("no trouble"),
        within: Duration::from_secs(20),
    }
}

/// All three attempts of a start fail, and the first one after them does not. The server's tools are known.
fn at_start(mode: &'static [&'static str]) -> Row {
    Row {
        shown: Shown::AtStarts("3"),
        call: Call::new("echo", json!({"message": "hi"})),
        ..in_a_call(mode)
    }
}

impl Row {
    fn call(self, change: impl FnOnce(Call) -> Call) -> Row {
        let call = change(self.call);
        Row { call, ..self }
    }

    fn shown(self, shown: Shown) -> Row {
        Row { shown, ..self }
    }

    fn timeout_ms(self, ms: u64) -> Row {
        self.call(|call| call.timeout(Duration::from_millis(ms)))
    }

    fn gives(self, text: &'static str) -> Row {
        let gets = Gets::Text(text);
        Row { gets, ..self }
    }

    fn gives_value(self, value: Value) -> Row {
        let gets = Gets::Value(value);
        Row { gets, ..self }
    }

    /// The words are parts of the failure's message.
    fn fails(self, code: FailureCode, effect: Effect, words: &'static [&'static str]) -> Row {
        let gets = Gets::Failure(code, effect, words);
        Row { gets, ..self }
    }

    async fn stage(&self) -> Stage {
        match self.shown {
            Shown::InACall => Stage::of(self.mode).await,
            Shown::AtStarts(times) => {
                Stage::remembered(self.mode, |settings| {
                    set(settings, "HOSTILE_TIMES", times);
                    if is_silent(self.mode[0]) {
                        settings.start.limit = SILENCE;
                    }
                })
                .await
            }
        }
    }

    /// Shows the fault once. Gives the stage back for what else is to be seen.
    async fn play(self) -> Stage {
        let stage = self.stage().await;
        let began = Instant::now();
        let outcome = stage.run(self.call.clone()).await;
        let took = began.elapsed();
        self.gets.assert(&outcome);
        assert!(took < self.within, "{took:?}");
        let next = Instant::now();
        match self.shown {
            Shown::InACall => stage.assert_next_call_works().await,
            Shown::AtStarts(_) => stage.assert_comes_back().await,
        }
        print(self.mode[0], &outcome, took, next.elapsed());
        stage
    }
}

impl Gets {
    fn assert(&self, outcome: &Outcome) {
        match (self, &outcome.result) {
            (Gets::Text(text), Ok(output)) => assert_eq!(output.value(), text),
            (Gets::Value(value), Ok(output)) => assert_eq!(output.value(), value),
            (Gets::Failure(code, effect, words), Err(failure)) => {
                assert_eq!(
                    (failure.code, failure.effect),
                    (*code, *effect),
                    "{failure}"
                );
                for part in *words {
                    assert!(failure.message.contains(part), "{part:?} in {failure}");
                }
            }
            (_, Ok(output)) => panic!("succeeded: {}", output.value()),
            (_, Err(failure)) => panic!("failed: {failure}"),
        }
    }
}

/// One line of the table.
#[allow(clippy::print_stdout)]
fn print(mode: &str, outcome: &Outcome, took: Duration, next: Duration) {
    let words = match &outcome.result {
        Ok(output) => output.text(),
        Err(failure) => {
            let effect = format!("{:?}", failure.effect).to_lowercase();
            format!("{}, effect {effect}: {}", failure.code, failure.message)
        }
    };
    let words: String = words.chars().take(110).collect();
    let words = words.replace(char::is_control, " ");
    let [took, next] = [took, next].map(|time| time.as_secs_f64());
    println!("hostile-row|{mode}|{took:.3} s|{next:.3} s|{words}");
}

/// Each mode is a test of its own: `name: row`.
macro_rules! faults {
    ($($name:ident: $row:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            $row.play().await.over().await;
        })*
    };
}

const SAYS_NOTHING_MORE: &[&str] = &[];

// stdout carries more than messages: the answer comes all the same.
faults! {
    v12_plain_text_on_stdout: in_a_call(&["plain_text"]).gives("after the noise");
    v12_colours_on_stdout: in_a_call(&["ansi"]).gives("after the noise");
    v12_bytes_that_are_no_utf8: in_a_call(&["invalid_utf8"]).gives("after the noise");
    v12_blank_lines: in_a_call(&["blank_lines"]).gives("after the noise");
    v12_json_that_is_no_json_rpc: in_a_call(&["json_not_rpc"]).gives("after the noise");
    v12_answers_in_a_batch_array: in_a_call(&["batch_array"]).gives("from a batch");
    v12_a_pretty_printed_answer: in_a_call(&["pretty_printed"]).gives("pretty");
    v12_an_answer_glued_to_text: in_a_call(&["glued"]).gives("salvaged");
    v12_an_answer_glued_to_text_as_typescript_writes_it: in_a_call(&["glued_typescript"]).gives("salvaged");
    v12_two_messages_on_one_line: in_a_call(&["glued_messages"]).gives("second");
    v12_objects_as_node_prints_them: in_a_call(&["node_objects"]).gives("after the noise");
    v12_an_answer_whose_line_does_not_end: in_a_call(&["unended_answer"]).gives("the last words");
    v12_a_line_of_20_mb: in_a_call(&["line_20mb"]).gives("after the long line");
    v12_20000_log_lines_before_it_reads: in_a_call(&["log_storm"]);
    v12_a_flood_on_stderr: in_a_call(&["stderr_flood"]).gives("after the flood");
}

// Answers that are not quite right: routed by id, the first one counts, nobody is mixed up.
faults! {
    d7_ids_as_strings: in_a_call(&["string_id"]);
    d7_an_answer_that_comes_twice: in_a_call(&["duplicate_response"]).gives("twice");
    d7_an_answer_nobody_asked_for: in_a_call(&["unknown_id"]).gives("the right one");
    d7_two_results_for_one_call: in_a_call(&["two_results"]).gives("first");
    d7_an_answer_under_a_wrong_id: in_a_call(&["wrong_id"])
        .fails(ToolExecutionError, Effect::Unknown, &["MCP server 'hostile' sent an answer with the id ", "which no request has", "misdirected"]);
    v07_a_call_that_is_never_answered: in_a_call(&["no_response"]).timeout_ms(700)
        .fails(Timeout, Effect::Unknown, SAYS_NOTHING_MORE);
    v07_an_answer_that_comes_too_late: in_a_call(&["late_response", "1"]).timeout_ms(400)
        .fails(Timeout, Effect::Unknown, SAYS_NOTHING_MORE);
    v12_an_answer_that_is_no_json: in_a_call(&["broken_json"])
        .fails(ToolExecutionError, Effect::Unknown, &["MCP server 'hostile' sent an answer that is not valid JSON", "{\"value\":NaN}"]);
    v12_an_answer_as_python_prints_it: in_a_call(&["python_object"])
        .fails(ToolExecutionError, Effect::Unknown, &["MCP server 'hostile' sent an answer that is not valid JSON", "'text': 'nearly'"]);
    d7_content_of_an_unknown_type: in_a_call(&["unknown_content"]).gives_value(
        json!([{"type": "hologram", "depth": 3}, {"type": "text", "text": "beside it"}]));
    d7_content_that_is_a_string: in_a_call(&["content_string"]).gives("just a string");
    d7_a_result_of_100_mb: in_a_call(&["result_100mb"])
        .fails(ToolExecutionError, Effect::Done, &["MCP server 'hostile' sent an answer of ", "too large; at most 16777216 bytes"]);
    d7_a_result_of_100_mb_whose_id_comes_last: in_a_call(&["result_100mb_typescript"])
        .fails(ToolExecutionError, Effect::Done, &["MCP server 'hostile' sent an answer of ", "too large; at most 16777216 bytes"]);
}

// A server that ends or hangs in the middle: the call ends at once, or with its time; the server is started again.
faults! {
    d7_half_an_answer_then_the_end: in_a_call(&["half_frame_eof"])
        .fails(NetworkError, Effect::Unknown, &["MCP server 'hostile' went away during the call", "exited with code 0"]);
    d7_an_exit_during_a_call: in_a_call(&["exit_mid_call"])
        .fails(NetworkError, Effect::Unknown, &["exited with code 3", "fatal: out of cheese"]);
    d7_a_kill_during_a_call: in_a_call(&["sigkill"])
        .fails(NetworkError, Effect::Unknown, &["was killed by signal 9 (SIGKILL)"]);
    d7_stdout_closed_by_a_server_that_lives: in_a_call(&["stdout_closed"])
        .fails(NetworkError, Effect::Unknown, &["closed its stdout"]);
    v07_a_server_that_is_stopped: in_a_call(&["sigstop"]).timeout_ms(700)
        .fails(Timeout, Effect::Unknown, SAYS_NOTHING_MORE);
    v07_stdin_that_is_never_read: in_a_call(&["stdin_never_read"])
        .call(|_| Call::new("note", json!({"message": "x".repeat(500_000)}))).timeout_ms(700)
        .fails(Timeout, Effect::Unknown, SAYS_NOTHING_MORE);
}

// A server that does not come up: calls of its tools wait for its three attempts, then fail and have done nothing.
faults! {
    v15_exit_0_before_initialize: at_start(&["exit0_before_init"])
        .fails(NetworkError, Effect::None, &["MCP server 'hostile' is not running: exited with code 0 at initialize"]);
    v15_exit_1_before_initialize: at_start(&["exit1_before_init"])
        .fails(NetworkError, Effect::None, &["exited with code 1 at initialize"]);
    v15_exit_0_during_initialize: at_start(&["exit0_during_init"])
        .fails(NetworkError, Effect::None, &["exited with code 0 at initialize"]);
    v15_exit_1_during_initialize: at_start(&["exit1_during_init"])
        .fails(NetworkError, Effect::None, &["exited with code 1 at initialize"]);
    v15_a_traceback: at_start(&["traceback"])
        .fails(NetworkError, Effect::None, &["exited with code 1 at initialize"]);
    v15_silence_at_initialize: at_start(&["silent_init"])
        .fails(NetworkError, Effect::None, &["no answer to initialize within 2 s"]);
    v15_talk_instead_of_initialize: at_start(&["stdout_talker"])
        .fails(NetworkError, Effect::None, &["no answer to initialize within 2 s"]);
    v15_a_list_of_tools_that_fails: at_start(&["list_fails"])
        .fails(NetworkError, Effect::None, &["refused tools/list: the database of tools is locked"]);
    v14_two_failed_starts_are_no_failure: at_start(&["flaky_start", "2"]).shown(Shown::AtStarts("2")).gives("hi");
    v16_a_slow_start_is_waited_for: at_start(&["slow_start", "11"]).gives("hi");
}

// Odd lists of tools, things left behind, things beside the call.
faults! {
    v05_pages_without_end: in_a_call(&["endless_pages"]);
    v05_a_tool_without_schema: in_a_call(&["no_schema"]);
    v05_tools_with_bad_schemas: in_a_call(&["bad_schema"]);
    v05_a_storm_of_changed_tools: in_a_call(&["list_changed_storm"]).gives("after the storm");
    v07_a_grandchild_that_survives: in_a_call(&["grandchild"]);
    v07_a_server_that_is_slow_to_answer_ping: in_a_call(&["sign_of_life"]).timeout_ms(400)
        .fails(Timeout, Effect::Unknown, SAYS_NOTHING_MORE);
}
