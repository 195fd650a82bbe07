//! Tools in the program itself that fail: canned failures, expressions, handlers that are not there, guards that say no.

use serde_json::json;

use super::world::{Cast, Fault, Kind};

/// A tool that nobody has.
pub(super) const NOT_THERE: &str = "not_there";

pub(super) fn cast() -> Cast {
    let mut cast = Cast::default();
    let mut canned = |tool: &str, words, promise, answer: &str, more: &str| {
        let table = format!(
            "[tools.{tool}]\nkind = \"mock\"\ninput = {{ type = \"object\" }}\nanswers = [{answer}]\n{more}\n"
        );
        cast.add(Fault::new(Kind::Function, tool, words, promise), &table);
    };
    canned(
        "fails_network",
        "instant error: network",
        "NETWORK_ERROR none | NETWORK_ERROR unknown",
        "{ fail = \"network\" }",
        "",
    );
    canned(
        "fails_timeout",
        "instant error: timeout",
        "TIMEOUT unknown",
        "{ fail = \"timeout\" }",
        "",
    );
    canned(
        "fails_rate",
        "instant error: rate limit",
        "RATE_LIMIT_ERROR none",
        "{ fail = \"rate_limit\" }",
        "",
    );
    canned(
        "fails_login",
        "instant error: authentication",
        "AUTHENTICATION_ERROR none",
        "{ fail = \"authentication\" }",
        "",
    );
    canned(
        "fails_no",
        "the tool's own no",
        "TOOL_EXECUTION_ERROR none | TOOL_EXECUTION_ERROR unknown | TOOL_EXECUTION_ERROR done",
        "{ fail = \"refusal\" }",
        "",
    );
    canned(
        "fails_unknown",
        "unknown error",
        "TOOL_EXECUTION_ERROR done",
        "{ fail = \"unknown\" }",
        "",
    );
    canned(
        "late",
        "success after the deadline",
        "TIMEOUT unknown",
        "{ result = \"late\", delay = \"5s\" }",
        "timeout = \"200ms\"\nretry = { attempts = 1 }",
    );
    canned(
        "hangs",
        "hangs for ever",
        "TIMEOUT unknown",
        "{ fail = \"hang\" }",
        "timeout = \"200ms\"\nretry = { attempts = 1 }",
    );
    canned(
        "falls_back",
        "fails, and its fallback answers",
        "NETWORK_ERROR none | NETWORK_ERROR unknown",
        "{ fail = \"network\" }",
        "fallback = { result = \"instead\" }",
    );
    canned(
        "falls_twice",
        "fails, and its fallback fails too",
        "NETWORK_ERROR none | NETWORK_ERROR unknown",
        "{ fail = \"network\" }",
        "fallback = { tool = \"spare\" }",
    );
    canned(
        "narrow",
        "one at a time, nobody may wait",
        "success | OVERLOADED none",
        "{ result = \"done\", delay = \"20ms\" }",
        "limits = { concurrency = 1, queue = 0 }",
    );
    canned(
        "asks_first",
        "nobody says yes",
        "APPROVAL_EXPIRED none | APPROVAL_DENIED none",
        "{ result = \"opened\" }",
        "approval = \"always\"",
    );
    canned(
        "numbers",
        "numbers that no double holds",
        "success",
        "{ result = { huge = 1e308, tiny = 5e-324, long = 9007199254740993 } }",
        "",
    );
    // Only ever asked instead of another: its calls are nobody's.
    cast.config
        .push_str("[tools.spare]\nkind = \"mock\"\nanswers = [{ fail = \"refusal\" }]\n");
    let strict = Fault::new(
        Kind::Function,
        "strict",
        "arguments that do not fit",
        "VALIDATION_ERROR none",
    );
    cast.add(
        strict.args(json!({"count": "many"})),
        "[tools.strict]\nkind = \"mock\"\nmock_response = 1\n\
         input = { type = \"object\", required = [\"city\"], properties = { count = { type = \"integer\" } } }",
    );
    cast.add(
        Fault::new(
            Kind::Function,
            NOT_THERE,
            "a tool that is not there",
            "TOOL_NOT_FOUND none",
        ),
        "",
    );
    let sums = "[tools.sums]\nkind = \"builtin\"\nuse = \"math_eval\"";
    let no = "TOOL_EXECUTION_ERROR done";
    for (words, promise, expression, table) in [
        (
            "an expression that is none",
            "TOOL_EXECUTION_ERROR none",
            "2 +",
            sums,
        ),
        (
            "a number that would never end",
            "success",
            "factorial(1e9)",
            "",
        ),
        (
            "a matrix that would fill the memory",
            no,
            "zeros(1e6, 1e6)",
            "",
        ),
    ] {
        let fault = Fault::new(Kind::Function, "sums", words, promise);
        cast.add(fault.args(json!({"expression": expression})), table);
    }
    cast.add(
        Fault::new(
            Kind::Function,
            "nobody_home",
            "a handler that is not there",
            "TOOL_EXECUTION_ERROR none",
        ),
        "[tools.nobody_home]\nkind = \"internal\"\nhandler = \"nobody_registered_this\"\n\
         description = \"Has no handler\"\ninput = { type = \"object\" }",
    );
    cast
}
