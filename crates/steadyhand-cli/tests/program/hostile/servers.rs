//! MCP servers that misbehave, on stdio and over HTTP: all faults of `steadyhand-mcp`'s hostile servers.

use serde_json::json;

use super::peers::Peers;
use super::world::{Cast, Fault, Kind};
use crate::mcp::hostile;
use crate::support::Workplace;

const HANG: &str = "timeout = \"400ms\"\nretry = { attempts = 1 }\n";

/// A server that does not answer in its time is asked for a sign of life, and started anew if it gives none: calls that come
/// in between have not reached it.
const STUCK: &str = "TIMEOUT unknown | NETWORK_ERROR none";

/// On a busy machine its end may be noticed before its last line is.
const LAST_WORDS: &str = "success | NETWORK_ERROR unknown";

/// Whose it is, is known after a second at the earliest: on a busy machine that may be before the call's time is up.
const MISDIRECTED: &str = "TIMEOUT unknown | TOOL_EXECUTION_ERROR unknown";

/// However often it dies, it is started again.
const LIVES: &str = "start.restarts = 1000000\nstart.within = \"1s\"\n";

/// Servers on stdio whose fault shows when `trouble` is called.
pub(super) fn in_a_call() -> Cast {
    let lost = "NETWORK_ERROR unknown";
    let rows = [
        ("plain_text", "plain text on stdout", "success", ""),
        ("ansi", "coloured log lines on stdout", "success", ""),
        (
            "invalid_utf8",
            "bytes on stdout that are no UTF-8",
            "success",
            "",
        ),
        ("blank_lines", "empty lines on stdout", "success", ""),
        (
            "json_not_rpc",
            "JSON on stdout that is no JSON-RPC",
            "success",
            "",
        ),
        ("batch_array", "answers in a batch", "success", ""),
        ("pretty_printed", "an answer over many lines", "success", ""),
        ("glued", "an answer glued to text", "success", ""),
        ("glued_messages", "two messages on one line", "success", ""),
        ("node_objects", "objects as Node prints them", "success", ""),
        ("line_20mb", "a line of 20 MB", "success", ""),
        (
            "log_storm",
            "20,000 log lines before stdin is read",
            "success",
            "",
        ),
        ("stderr_flood 4", "4 MB on stderr", "success", ""),
        ("string_id", "ids as strings", "success", ""),
        ("duplicate_response", "an answer sent twice", "success", ""),
        ("unknown_id", "an answer nobody asked for", "success", ""),
        ("two_results", "two results for one request", "success", ""),
        ("wrong_id", "an answer under another id", MISDIRECTED, HANG),
        ("no_response", "no answer", "TIMEOUT unknown", HANG),
        (
            // So late that a machine that stands still for seconds ends the call before it.
            "late_response 6",
            "an answer that comes too late",
            "TIMEOUT unknown",
            HANG,
        ),
        (
            "unknown_content",
            "content of an unknown type",
            "success",
            "",
        ),
        (
            "content_string",
            "a result of the wrong shape",
            "success",
            "",
        ),
        (
            "result_100mb",
            "a result of 100 MB",
            "TOOL_EXECUTION_ERROR done",
            "",
        ),
        (
            "broken_json",
            "an answer that is no JSON",
            "TOOL_EXECUTION_ERROR unknown",
            "",
        ),
        (
            "half_frame_eof",
            "half an answer, then the end",
            lost,
            LIVES,
        ),
        (
            "unended_answer",
            "an answer without a line's end, then the end",
            LAST_WORDS,
            LIVES,
        ),
        ("exit_mid_call", "exits with 3 during the call", lost, LIVES),
        ("sigkill", "killed during the call", lost, LIVES),
        ("sigstop", "stopped (SIGSTOP) during the call", STUCK, HANG),
        ("stdout_closed", "closes stdout and lives on", lost, LIVES),
        (
            "endless_pages",
            "a list of tools without end",
            "success",
            "",
        ),
        ("no_schema", "a tool without a schema", "success", ""),
        (
            "bad_schema",
            "tools with schemas that are none",
            "success",
            "",
        ),
        (
            "list_changed_storm 2000",
            "2,000 notices that the tools changed",
            "success",
            "",
        ),
        (
            "grandchild",
            "leaves a child with a session of its own",
            "success",
            "",
        ),
        (
            "exits_on_discover",
            "ends when it is asked for its era",
            "success",
            "",
        ),
        (
            "silent_on_discover",
            "silent when it is asked for its era",
            "success",
            "",
        ),
        ("slow_start 2", "needs two seconds to start", "success", ""),
    ];
    let mut cast = Cast::default();
    for (mode, words, promise, more) in rows {
        let name = mode.split(' ').next().unwrap_or(mode);
        let table = format!("{}{more}", hostile(name, mode));
        let fault = Fault::new(Kind::McpStdio, format!("{name}__trouble"), words, promise);
        let fault = match mode {
            "result_100mb" | "line_20mb" => fault.heavy(),
            _ => fault,
        };
        cast.add(fault, &table);
    }
    let table = format!("{}{HANG}", hostile("stdin_never_read", "stdin_never_read"));
    let fault = Fault::new(
        Kind::McpStdio,
        "stdin_never_read__note",
        "stops to read, and gets 500 kB",
        STUCK,
    );
    cast.add(fault.args(json!({"message": "x".repeat(500_000)})), &table);
    cast
}

/// Servers on stdio that do not start, so many times. Their tools are known once they have.
pub(super) fn at_start(workplace: &Workplace, times: &str) -> Cast {
    let rows = [
        ("exit0_before_init", "exits with 0 before it reads"),
        ("exit1_before_init", "exits with 1 before it reads"),
        ("exit0_during_init", "exits with 0 in the handshake"),
        ("exit1_during_init", "exits with 1 in the handshake"),
        ("traceback", "a traceback instead of a server"),
        ("silent_init", "silent in the handshake"),
        ("stdout_talker", "talks instead of a handshake"),
        ("list_fails", "its list of tools is an error"),
    ];
    let mut cast = Cast::default();
    for (mode, words) in rows {
        let shown = workplace.file(&format!("shown-{mode}"));
        let mut table = hostile(mode, mode);
        if times != "0" {
            // It will not come up: no need to be patient.
            table = table.replace("start.timeout = \"10s\"", "start.timeout = \"300ms\"");
        }
        let table =
            format!("{table}env.HOSTILE_STATE = {shown:?}\nenv.HOSTILE_TIMES = \"{times}\"\n");
        let promise = match mode {
            // It would answer calls, and does in the moment before its list is found to be none.
            "list_fails" => "NETWORK_ERROR none | success",
            _ => "NETWORK_ERROR none",
        };
        let fault = Fault::new(Kind::McpStdio, format!("{mode}__echo"), words, promise);
        cast.add(fault.args(json!({"message": "hi"})), &table);
    }
    cast
}

/// Servers over HTTP.
pub(super) fn over_http(peers: &Peers) -> Cast {
    let mut cast = Cast::default();
    for (name, _, words, promise, host) in &peers.hosts {
        let more = match *promise {
            "TIMEOUT unknown" => HANG,
            // Its Retry-After is longer than the call may take.
            "RATE_LIMIT_ERROR none" => "deadline = \"3s\"\n",
            _ => "",
        };
        let table = format!(
            "[mcp.{name}]\nurl = {:?}\nstart.waits = [\"0s\", \"20ms\", \"20ms\"]\n{more}",
            host.url()
        );
        let fault = Fault::new(Kind::McpHttp, format!("{name}__trouble"), words, promise);
        let is_heavy = name.contains("large") || name.contains("flood");
        let fault = if is_heavy { fault.heavy() } else { fault };
        cast.add(fault, &table);
    }
    cast
}
