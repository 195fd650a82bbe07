//! The codes that a call can end with (SPEC R07).

use super::Seen::{Call, Command};
use super::{Page, page};
use crate::error::Exit;

pub(super) const PAGES: &[Page] = &[
    page(
        "NETWORK_ERROR",
        &[Call],
        "The tool could not be reached, or the connection to it broke. The effect says whether it can have run: `none` when nothing was sent, `unknown` when the connection broke in the middle.",
        &[
            "Read `message`: it has the address and what the network said.",
            "For a tool of an MCP server: `steadyhand mcp list` says whether it is up, `steadyhand mcp test NAME` why it does not start.",
            "For an address of your own network: it must stand in your file, not come from an argument or a redirect.",
            "Give the tool a `fallback`, if an old or a plain answer is better than none.",
        ],
    ),
    page(
        "TIMEOUT",
        &[Call],
        "An attempt or the whole call ran out of time and was stopped. It may have run: the effect is `unknown` unless it had not begun.",
        &[
            "Check whether it happened before you call again, unless running twice does no harm.",
            "`steadyhand calls show ID` says where the time went: waiting for a place, attempts, waits between them.",
            "Raise `timeout` (one attempt) or `deadline` (the whole call) of the tool; `steadyhand call NAME --deadline 30s` is the latter for one call.",
            "If it is safe to run twice, say `idempotent = true`: then a timeout is tried again.",
        ],
    ),
    page(
        "RATE_LIMIT_ERROR",
        &[Call],
        "The tool asked to be called less often. `retryAfterMs` is when it wants to be asked again, if it said so.",
        &[
            "Wait for `retryAfterMs`.",
            "Set `limits = { rate = \"10/s\" }` for the tool: then calls are spread out here instead of refused there.",
        ],
    ),
    page(
        "TOOL_EXECUTION_ERROR",
        &[Call],
        "The tool failed. `message` has its own words; a panic of a function says `the tool panicked`. The effect says whether it ran to its end (`done`), may have run (`unknown`), or was not run (`none`).",
        &[
            "Read `message`: it is what the tool said, secrets removed.",
            "For a program: its exit code and the end of its stderr are there. For an MCP server: `steadyhand mcp logs NAME` has what it printed.",
            "Run the same call again with what it had: `steadyhand calls replay ID`.",
        ],
    ),
    page(
        "AUTHENTICATION_ERROR",
        &[Call],
        "The tool does not accept the credentials, or the caller may not use this tool. The tool was not run, unless the effect says otherwise: a tool that only says so in its own words has run.",
        &[
            "If `message` names a variable or a file: set it; `steadyhand config check` lists every secret that is missing.",
            "For an MCP server with accounts: `steadyhand mcp login NAME`.",
            "If your key may not use the tool: `steadyhand keys list` shows what it may.",
        ],
    ),
    page(
        "VALIDATION_ERROR",
        &[Call],
        "The arguments do not fit the tool's schema: the tool was not run. Or the tool itself did not accept them: then the effect is `done`.",
        &[
            "`problems` names each place, what was expected there and what was given; `example` would have passed.",
            "`steadyhand tools show NAME` prints the schema.",
            "A model that sends \"5\" for 5 is helped by `coerce = true` of the tool.",
        ],
    ),
    page(
        "CIRCUIT_OPEN",
        &[Call],
        "The tool failed so often in a row that its breaker is open: it is not called at all until a trial works. Nothing was done.",
        &[
            "`steadyhand tools show NAME` says when the next trial is (`retryAfterMs` has it for programs), `steadyhand calls list tool:NAME state:failed` what failed.",
            "Mend the tool. One call that works closes the breaker by itself.",
            "`steadyhand tools reset NAME` closes it now, as do `POST /v1/tools/NAME/breaker/reset` and the button on the tool's page in the dashboard.",
            "Give the tool a `fallback`, so that callers get an answer meanwhile.",
        ],
    ),
    page(
        "TOOL_NOT_FOUND",
        &[Call, Command(Exit::ToolError)],
        "No tool has this name. `suggestions` has the ones that look like it.",
        &[
            "`steadyhand tools list` shows all of them. Tools of MCP servers carry the server's name: `files__read_file`.",
            "If its server is down, its tools are those it had before: `steadyhand mcp list`.",
        ],
    ),
    page(
        "CANCELLED",
        &[Call],
        "The caller withdrew the call, went away, or pressed Ctrl-C. The effect says whether it can have run.",
        &[
            "If nobody meant to: `steadyhand calls show ID` says who withdrew it and after how long; a client's own time limit may be shorter than the tool's.",
        ],
    ),
    page(
        "OVERLOADED",
        &[Call],
        "All places of the tool are taken and its queue is full, or a budget is used up. Nothing was done.",
        &[
            "Call less at once, or raise `limits = { concurrency = 8, queue = 64 }` of the tool.",
            "If `message` speaks of a budget: `budget` under `[server]` is what a conversation may use.",
            "If `message` speaks of an idempotency key: it could not be kept, and why. A caller that has its share of kept keys waits until its oldest are forgotten, 24 hours after they were used.",
            "`steadyhand calls list state:running` shows what holds the places.",
        ],
    ),
    page(
        "APPROVAL_DENIED",
        &[Call],
        "A person said no, or nobody was there to be asked. The tool was not run.",
        &[
            "`message` has the reason, if one was given; a model is told it, too.",
            "A command without a server has nobody to ask: `--approve NAME` is the yes.",
        ],
    ),
    page(
        "APPROVAL_EXPIRED",
        &[Call],
        "Nobody answered in time. The tool was not run.",
        &[
            "`steadyhand approvals` lists what waits; an alert (`approval_waiting > 30s`) can tell somebody.",
            "Raise `approval_wait` under `[server]`.",
        ],
    ),
    page(
        "IDEMPOTENCY_CONFLICT",
        &[Call],
        "The idempotency key was used before, with another tool or other arguments. Nothing was done.",
        &[
            "Take a new key for a new call; the same key only for the very same call.",
            "`steadyhand calls list` finds the call that has it.",
        ],
    ),
];
