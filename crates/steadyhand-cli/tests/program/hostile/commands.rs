//! Programs that misbehave: they end badly, hang, flood, and leave others behind.

use super::world::{Cast, Fault, Kind};

/// Scripts of the world's folder: name and text.
pub(super) const SCRIPTS: &[(&str, &str)] = &[
    // Its own session, deaf to polite requests: only a tree that is really ended ends it.
    (
        "deaf.sh",
        "trap '' TERM HUP\nsetsid sh -c \"trap '' TERM HUP; sleep 300\" &\nsleep 300\n",
    ),
    ("half.sh", "printf '{\"half\": '\n"),
    ("no-program", "this is no program\n"),
];

const HANG: &str = "timeout = \"300ms\"\nretry = { attempts = 1 }";

pub(super) fn cast() -> Cast {
    let mut cast = Cast::default();
    let mut program = |tool: &str, words, promise, command: &[&str], more: &str| {
        let table = format!("[tools.{tool}]\nkind = \"command\"\ncommand = {command:?}\n{more}\n");
        cast.add(Fault::new(Kind::Command, tool, words, promise), &table);
    };
    let mut shell = |tool: &str, words, promise, script: &str, more: &str| {
        program(tool, words, promise, &["sh", "-c", script], more);
    };
    let failed = "TOOL_EXECUTION_ERROR done";
    let killed = "TOOL_EXECUTION_ERROR unknown";
    shell(
        "exits_0",
        "exits with 0 and says nothing",
        "success",
        "exit 0",
        "",
    );
    shell(
        "exits_1",
        "exits with 1, its reason on stderr",
        failed,
        "echo 'cannot open the door' >&2; exit 1",
        "",
    );
    shell(
        "kills_itself",
        "killed by a signal",
        killed,
        "kill -9 $$",
        "",
    );
    shell(
        "stops_itself",
        "stopped by a signal (SIGSTOP)",
        "TIMEOUT unknown",
        "kill -STOP $$",
        HANG,
    );
    shell(
        "sleeps",
        "hangs for ever",
        "TIMEOUT unknown",
        "sleep 300",
        HANG,
    );
    shell(
        "spins",
        "burns the processor and never yields",
        "TIMEOUT unknown",
        "while :; do :; done",
        HANG,
    );
    shell(
        "drips",
        "slow drip of output",
        "TIMEOUT unknown",
        "while :; do echo drop; sleep 0.05; done",
        HANG,
    );
    shell(
        "floods",
        "output without end",
        "TIMEOUT unknown | TOOL_EXECUTION_ERROR unknown | TOOL_EXECUTION_ERROR done | success",
        "yes",
        HANG,
    );
    shell(
        "deaf",
        "a grandchild with its own session, deaf to SIGTERM",
        "TIMEOUT unknown",
        "exec sh deaf.sh",
        HANG,
    );
    shell(
        "leaves",
        "ends well and leaves a child behind",
        "success",
        "sleep 300 & echo started",
        "",
    );
    shell(
        "bytes",
        "bytes that are no UTF-8",
        "success",
        r"printf 'caf\351 \377\376'",
        "",
    );
    shell(
        "half_json",
        "half a JSON value, then the end",
        failed,
        "exec sh half.sh",
        "output = \"json\"",
    );
    shell(
        "full_disk",
        "no space left on the device",
        failed,
        "echo something > /dev/full",
        "",
    );
    shell(
        "few_files",
        "no files left to open",
        failed,
        "ulimit -n 3; exec cat /etc/passwd /etc/hostname < /dev/null",
        "",
    );
    shell(
        "acts_then_fails",
        "side effect, then error",
        failed,
        "echo done >> acted; exit 3",
        "",
    );
    shell(
        "acts_then_hangs",
        "side effect, then hangs",
        "TIMEOUT unknown",
        "echo done >> acted; sleep 300",
        HANG,
    );
    program(
        "missing",
        "a program that is not installed",
        "TOOL_EXECUTION_ERROR none | NETWORK_ERROR none",
        &["no-such-program-anywhere"],
        "",
    );
    program(
        "no_program",
        "a file that is no program",
        "TOOL_EXECUTION_ERROR none | TOOL_EXECUTION_ERROR done",
        &["./no-program"],
        "",
    );
    cast
}
