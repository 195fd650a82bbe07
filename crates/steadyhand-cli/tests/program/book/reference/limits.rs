//! docs/reference/limits.md: what is bounded, and where the bound is. The values are read from the constants themselves.

use super::{Made, cell, read};

/// What is limited, the file, and the constant in it.
type LimitRow = (&'static str, &'static str, &'static str);

/// Sections of the page. One row is all that a new limit needs.
const LIMITS: &[(&str, &[LimitRow])] = &[
    (
        "Schemas and arguments",
        &[
            (
                "Bytes of a tool's schema",
                "steadyhand/src/schema/mod.rs",
                "SCHEMA_BYTES_MAX",
            ),
            (
                "Depth of a schema and of arguments",
                "steadyhand/src/schema/mod.rs",
                "DEPTH_MAX",
            ),
            (
                "Steps of compiling or checking",
                "steadyhand/src/schema/mod.rs",
                "STEPS_MAX",
            ),
            (
                "Processor time of compiling or checking",
                "steadyhand/src/schema/counted.rs",
                "PROCESSOR_TIME_MAX",
            ),
            (
                "Patterns of a schema",
                "steadyhand/src/schema/patterns.rs",
                "PATTERNS_MAX",
            ),
            (
                "Bytes of a pattern",
                "steadyhand/src/schema/patterns.rs",
                "PATTERN_BYTES_MAX",
            ),
            (
                "Bytes of an example",
                "steadyhand/src/schema/example.rs",
                "EXAMPLE_BYTES_MAX",
            ),
        ],
    ),
    (
        "Requests to this server",
        &[
            (
                "Bytes that are held for callers, if not set",
                "steadyhand-runtime/src/admission/limits.rs",
                "MEMORY_BYTES",
            ),
            (
                "Bytes of a body, if not set",
                "steadyhand-runtime/src/admission/limits.rs",
                "BODY_BYTES",
            ),
            (
                "Connections, if not set",
                "steadyhand-runtime/src/admission/limits.rs",
                "CONNECTIONS",
            ),
            (
                "Running calls, if not set",
                "steadyhand-runtime/src/admission/limits.rs",
                "CALLS",
            ),
            (
                "Headers of a request",
                "steadyhand-server/src/serve/connection.rs",
                "HEADERS_MAX",
            ),
            (
                "Bytes of a request's head",
                "steadyhand-server/src/serve/connection.rs",
                "BUFFER_BYTES_MAX",
            ),
            (
                "Values in the JSON of a body",
                "steadyhand-server/src/http/limits.rs",
                "VALUES_MAX",
            ),
            (
                "Draining at the end",
                "steadyhand-server/src/serve/mod.rs",
                "DRAIN_MAX",
            ),
        ],
    ),
    (
        "What others may hold",
        &[
            (
                "Bytes that one MCP server may make us hold",
                "steadyhand-mcp/src/client/memory.rs",
                "SERVER_BYTES_MAX",
            ),
            (
                "Bytes of one answer of an MCP server",
                "steadyhand-mcp/src/client/http/mod.rs",
                "ANSWER_BYTES_MAX",
            ),
            (
                "Bytes of an MCP server's list of tools",
                "steadyhand-mcp/src/client/catalogue/lists.rs",
                "TOOLS_BYTES_MAX",
            ),
            (
                "Readers of events",
                "steadyhand-runtime/src/admission/mod.rs",
                "EVENT_READERS_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "EVENT_READERS_PER_CALLER_MAX",
            ),
            (
                "Open pages of the dashboard",
                "steadyhand-runtime/src/admission/mod.rs",
                "PAGES_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "PAGES_PER_CALLER_MAX",
            ),
            (
                "Streams of MCP clients",
                "steadyhand-runtime/src/admission/mod.rs",
                "MCP_STREAMS_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "MCP_STREAMS_PER_CALLER_MAX",
            ),
            (
                "Sessions of MCP clients",
                "steadyhand-mcp/src/gateway/sessions.rs",
                "SESSIONS_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-mcp/src/gateway/sessions.rs",
                "SESSIONS_PER_CALLER_MAX",
            ),
            (
                "Requests of MCP clients that wait for the client's answers",
                "steadyhand-mcp/src/gateway/shares.rs",
                "SUSPENDED_REQUESTS_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "SUSPENDED_REQUESTS_PER_CALLER_MAX",
            ),
            (
                "Resources that MCP clients watch",
                "steadyhand-mcp/src/gateway/shares.rs",
                "WATCHED_RESOURCES_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "WATCHED_RESOURCES_PER_CALLER_MAX",
            ),
            (
                "Bytes of messages that wait for MCP clients",
                "steadyhand-mcp/src/gateway/news.rs",
                "TOLD_BYTES_MAX",
            ),
            (
                "Bytes that MCP sessions keep of streams",
                "steadyhand-mcp/src/gateway/stream.rs",
                "KEPT_BYTES_OF_ALL_MAX",
            ),
            (
                "Questions of one MCP server to clients",
                "steadyhand-mcp/src/client/connection/questions.rs",
                "OPEN_MAX",
            ),
            (
                "Of them, for the clients of one caller",
                "steadyhand-mcp/src/client/connection/questions.rs",
                "OPEN_PER_CALLER_MAX",
            ),
            (
                "Calls that wait for a yes",
                "steadyhand-runtime/src/approvals/desk.rs",
                "WAITING_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/approvals/desk.rs",
                "WAITING_PER_CALLER_MAX",
            ),
            (
                "Conversations with a budget",
                "steadyhand-runtime/src/access/budget.rs",
                "FOLLOWED_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/access/budget.rs",
                "FOLLOWED_PER_CALLER_MAX",
            ),
            (
                "Exports of calls at the same time",
                "steadyhand-runtime/src/admission/mod.rs",
                "EXPORTS_MAX",
            ),
            (
                "Of them, for one caller",
                "steadyhand-runtime/src/admission/mod.rs",
                "EXPORTS_PER_CALLER_MAX",
            ),
            (
                "Large conversations that are looked at at the same time",
                "steadyhand-runtime/src/admission/mod.rs",
                "LARGE_CONVERSATIONS_MAX",
            ),
            (
                "Checks of arguments that take long, at the same time",
                "steadyhand/src/case.rs",
                "LONG_CHECKS_AT_ONCE",
            ),
            (
                "Idempotency keys that are kept",
                "steadyhand-store/src/history/keys/shares.rs",
                "KEYS_MAX",
            ),
            (
                "Of them, one caller may have one part in so many of what the others leave",
                "steadyhand-store/src/history/keys/shares.rs",
                "KEYS_PER_CALLER_PART",
            ),
            (
                "Of them, one part in so many is for operators",
                "steadyhand-store/src/history/keys/shares.rs",
                "KEYS_OPERATOR_PART",
            ),
            (
                "Bytes of outcomes that are kept for calls with a key",
                "steadyhand-store/src/history/keys/shares.rs",
                "OUTCOMES_BYTES_MAX",
            ),
            (
                "The same in memory",
                "steadyhand/src/kept_outcomes.rs",
                "KEPT_BYTES_MAX",
            ),
            (
                "Connections to the transcriber",
                "steadyhand-cli/src/transcriber_http.rs",
                "CONNECTIONS_MAX",
            ),
            (
                "Of them, for one address",
                "steadyhand-cli/src/transcriber_http.rs",
                "CONNECTIONS_PER_ADDRESS_MAX",
            ),
            (
                "Callers whose memory is counted apart",
                "steadyhand-runtime/src/admission/memory.rs",
                "CALLERS_FOLLOWED",
            ),
        ],
    ),
    (
        "Who asks",
        &[
            (
                "Wrong credentials from one address (one network of IPv6) before it waits",
                "steadyhand-runtime/src/access/throttle.rs",
                "WRONG_PER_ADDRESS_MAX",
            ),
            (
                "One more of them after",
                "steadyhand-runtime/src/access/throttle.rs",
                "WRONG_PER_ADDRESS_EVERY",
            ),
            (
                "Wrong secrets for one key before whoever tries waits",
                "steadyhand-runtime/src/access/throttle.rs",
                "WRONG_PER_KEY_MAX",
            ),
            (
                "One more of them after",
                "steadyhand-runtime/src/access/throttle.rs",
                "WRONG_PER_KEY_EVERY",
            ),
            (
                "Addresses, and keys, whose mistakes are remembered",
                "steadyhand-runtime/src/access/throttle.rs",
                "FOLLOWED_MAX",
            ),
            (
                "Bytes of a token of an issuer",
                "steadyhand-runtime/src/access/jwt/mod.rs",
                "TOKEN_BYTES_MAX",
            ),
            ("Keys", "steadyhand-runtime/src/access/keys.rs", "KEYS_MAX"),
            (
                "Logins of browsers",
                "steadyhand-server/src/http/browser_login.rs",
                "SESSIONS_MAX",
            ),
            (
                "Of them, with the same credentials",
                "steadyhand-server/src/http/browser_login.rs",
                "SESSIONS_PER_CREDENTIAL_MAX",
            ),
            (
                "A login of a browser lasts",
                "steadyhand-server/src/http/browser_login.rs",
                "LASTS",
            ),
        ],
    ),
    (
        "Logins at MCP servers",
        &[
            (
                "A person may take",
                "steadyhand-cli/src/mcp/login.rs",
                "PATIENCE",
            ),
            (
                "Connections to the address that a browser comes back to",
                "steadyhand-cli/src/mcp/login.rs",
                "CONNECTIONS_MAX",
            ),
            (
                "Bytes of an answer of an authorization server",
                "steadyhand-runtime/src/logins.rs",
                "ANSWER_BYTES_MAX",
            ),
            (
                "An answer of an authorization server may take",
                "steadyhand-runtime/src/logins.rs",
                "ANSWER_PATIENCE",
            ),
        ],
    ),
    (
        "Requests of this server",
        &[
            (
                "Bytes of an answer",
                "steadyhand-runtime/src/net/mod.rs",
                "RESPONSE_BYTES_MAX",
            ),
            (
                "Redirects",
                "steadyhand-runtime/src/net/redirect.rs",
                "REDIRECTS_MAX",
            ),
            (
                "A connection may take",
                "steadyhand-runtime/src/net/client.rs",
                "CONNECT_TIMEOUT",
            ),
        ],
    ),
    (
        "Files",
        &[
            (
                "Bytes of a configuration",
                "steadyhand-config/src/document.rs",
                "BYTES_MAX",
            ),
            (
                "Bytes of a file of a secret",
                "steadyhand-config/src/reference.rs",
                "FILE_BYTES_MAX",
            ),
            (
                "Bytes of another program's file",
                "steadyhand-config/src/import/read.rs",
                "FILE_BYTES_MAX",
            ),
            (
                "MCP servers of another program's file",
                "steadyhand-config/src/import/read.rs",
                "SERVERS_MAX",
            ),
        ],
    ),
];

const ABOUT: &str = "What is not in this table is bounded, too: every queue, body, output and text has a limit, in a constant beside the code that it is \
    about. Limits that you can set are in [Configuration](configuration.md). What they are for: [Security](../security.md).";

pub(super) fn page() -> Made {
    let mut text = String::new();
    for (group, rows) in LIMITS {
        text.push_str(&format!("## {group}\n\n| what | limit |\n|---|---|\n"));
        for (what, file, name) in *rows {
            text.push_str(&format!("| {} | {} |\n", cell(what), value_of(file, name)));
        }
        text.push('\n');
    }
    text.push_str(ABOUT);
    Made::new("docs/reference/limits.md", "Limits", &text)
}

/// The value of a constant, in words.
fn value_of(file: &str, name: &str) -> String {
    let text = read(&format!("crates/{file}"));
    let mark = format!("const {name}:");
    let (_, rest) = text.split_once(&mark).unwrap_or_else(|| {
        panic!(
            "crates/{file} has no constant {name}: say in {} where it is",
            file!()
        )
    });
    let (_, rest) = rest.split_once('=').expect("a value");
    let (value, _) = rest.split_once(';').expect("its end");
    in_words(name, value.trim())
}

fn in_words(name: &str, value: &str) -> String {
    let inner = |function: &str| value.strip_prefix(function)?.strip_suffix(')');
    if let Some(seconds) = inner("Duration::from_secs(").and_then(number) {
        return in_seconds(seconds);
    }
    if let Some(millis) = inner("Duration::from_millis(").and_then(number) {
        return format!("{millis} ms");
    }
    let plain = inner("Steps::new(").unwrap_or(value);
    match number(plain) {
        Some(bytes) if name.contains("BYTES") => in_bytes(bytes),
        Some(number) => grouped(number),
        None => format!("`{value}`"),
    }
}

/// Products and shifts of plain numbers.
fn number(text: &str) -> Option<u64> {
    if let Some((number, by)) = text.split_once("<<") {
        return Some(self::number(number)? << self::number(by)?);
    }
    let factors = text.split('*').map(|factor| {
        let factor = factor.trim().replace('_', "");
        factor.parse::<u64>().ok()
    });
    factors.product()
}

fn in_seconds(seconds: u64) -> String {
    match seconds {
        day if day >= 86_400 && day.is_multiple_of(86_400) => format!("{} days", day / 86_400),
        minute if minute >= 120 && minute.is_multiple_of(60) => format!("{} min", minute / 60),
        seconds => format!("{seconds} s"),
    }
}

fn in_bytes(bytes: u64) -> String {
    match bytes {
        large if large >= 1 << 20 && large.is_multiple_of(1 << 20) => {
            format!("{} MiB", large >> 20)
        }
        middle if middle >= 1 << 10 && middle.is_multiple_of(1 << 10) => {
            format!("{} KiB", middle >> 10)
        }
        small => format!("{} bytes", grouped(small)),
    }
}

fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[test]
fn values_of_constants_are_told_in_words() {
    for (name, value, words) in [
        ("A_BYTES_MAX", "8 * 1024 * 1024", "8 MiB"),
        ("A_BYTES_MAX", "1 << 14", "16 KiB"),
        ("A_BYTES_MAX", "80", "80 bytes"),
        ("A_MAX", "50_000", "50,000"),
        ("A_MAX", "Steps::new(8_000_000)", "8,000,000"),
        ("A", "Duration::from_secs(7 * 24 * 60 * 60)", "7 days"),
        ("A", "Duration::from_secs(5 * 60)", "5 min"),
        ("A", "Duration::from_millis(150)", "150 ms"),
        ("A", "other()", "`other()`"),
    ] {
        assert_eq!(in_words(name, value), words, "{value}");
    }
}
