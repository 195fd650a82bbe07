//! The codes of commands that fail.

use super::Seen::{Command, Rest};
use super::{Page, page};
use crate::error::Exit;

pub(super) const PAGES: &[Page] = &[
    page(
        "usage",
        &[Command(Exit::Usage)],
        "The command cannot be understood as it was typed, or a file it names cannot be read.",
        &["Add `--help` to the command."],
    ),
    page(
        "no_such_code",
        &[Command(Exit::Usage)],
        "No error has this code.",
        &["`steadyhand explain` lists all of them."],
    ),
    page(
        "config_invalid",
        &[Command(Exit::Config), Rest(422)],
        "The configuration has mistakes. All of them are told at once, with line and column; nothing was changed by it, and a server that runs keeps the one it has.",
        &[
            "`steadyhand config check` tells them again, without doing anything.",
            "`steadyhand config schema` prints the schema for your editor, which then tells them as you type.",
        ],
    ),
    page(
        "config_untrusted",
        &[Command(Exit::Config)],
        "Somebody else could have written the configuration, or a file it names: it belongs to another user, others may write it, or others may replace it in its folder. Nothing in it was used, for it could start programs as you and read your keys.",
        &[
            "Look at what is in it. The error names the file, its owner and its mode, and the command that makes it yours.",
            "`--trust` uses it all the same, for this run, as it is when it is read first. At a terminal you are asked.",
        ],
    ),
    page(
        "config_file",
        &[Command(Exit::Config)],
        "The configuration file could not be read or written.",
        &[
            "`steadyhand config path` says which file applies and where others would be.",
            "Check its permissions. A file that was edited meanwhile is not overwritten.",
        ],
    ),
    page(
        "config_exists",
        &[Command(Exit::Usage)],
        "There is a configuration here already, and it was not changed.",
        &[
            "`steadyhand init --force` replaces it and keeps the old one beside it.",
            "`steadyhand mcp import` takes servers over into the one that is there.",
        ],
    ),
    page(
        "input_needed",
        &[Command(Exit::Usage)],
        "Something has to be asked, and nobody is there to answer (a pipe, `--no-input`, `--json`).",
        &["The help of the error names the flag that would have answered."],
    ),
    page(
        "client_file",
        &[Command(Exit::Config)],
        "The file of another program could not be read or written. It is as it was.",
        &[
            "Mend it first, or name another with `--file`.",
            "Without `--install` the command prints the lines, to be put in by hand.",
        ],
    ),
    page(
        "no_key_store",
        &[Command(Exit::SignIn)],
        "The system's keyring cannot be used: there is none, or it is locked.",
        &[
            "Unlock it, or start one; a server without a desktop has none.",
            "Use a variable or a file instead: `${env:NAME}`, `${file:PATH}`.",
        ],
    ),
    page(
        "state_folder_unknown",
        &[Command(Exit::Config)],
        "The command keeps something, and nobody says where: the user has no home folder, and neither `HOME` nor `XDG_STATE_HOME` names an absolute one.",
        &[
            "Name a folder that belongs to this user: `--state DIR`.",
            "Or set `XDG_STATE_HOME` or `HOME`, in a service's unit or a container's environment, say.",
        ],
    ),
    page(
        "cassette_unusable",
        &[Command(Exit::Usage)],
        "The file of recorded calls cannot be read or written.",
        &["The message names the file and the line. A cassette is one JSON value a line."],
    ),
    page(
        "chaos_plan_invalid",
        &[Command(Exit::Usage)],
        "The plan of faults to inject has mistakes.",
        &["The message has the place and what is expected there."],
    ),
    page(
        "not_safe",
        &[Command(Exit::ToolError)],
        "Some tools did not pass what `steadyhand verify` tries with them.",
        &["Each line marked as failed says what to mend; then run it again."],
    ),
    page(
        "settings",
        &[Command(Exit::Config)],
        "Settings of an MCP server are wrong.",
        &["`steadyhand config check` says where."],
    ),
    page(
        "server_settings",
        &[Command(Exit::Config), Command(Exit::Usage)],
        "The server cannot be started as it is configured: an address that is not loopback without a token, certificates that do not fit.",
        &["The message names the setting under `[server]`; `docs/access.md` has what each means."],
    ),
    page(
        "transcriber_settings",
        &[Command(Exit::Config)],
        "The settings under `[transcriber]` are wrong.",
        &["`steadyhand config check` says where."],
    ),
    page(
        "secret_missing",
        &[Command(Exit::SignIn)],
        "A `${env:…}`, `${file:…}` or `${keyring:…}` that is needed here is not set.",
        &["Set it as the message says. `steadyhand config check` lists every one that is missing."],
    ),
    page(
        "address_unavailable",
        &[Command(Exit::NotReachable)],
        "The address to listen on is taken, or not one of this machine's.",
        &[
            "Perhaps a server runs already: `steadyhand tools list` says which one it uses.",
            "Take another port: `steadyhand serve --listen 127.0.0.1:0` takes a free one.",
        ],
    ),
    page(
        "no_server",
        &[Command(Exit::NotReachable)],
        "No server of this configuration runs, and what was asked for only a server has.",
        &["`steadyhand serve` starts one; commands find it by the configuration they share."],
    ),
    page(
        "server_unreachable",
        &[Command(Exit::NotReachable)],
        "The server of this configuration is there, but did not answer.",
        &[
            "Ask again; look at what it prints.",
            "`--local` runs the command without it.",
        ],
    ),
    page(
        "refused_by_server",
        &[
            Command(Exit::Usage),
            Command(Exit::SignIn),
            Command(Exit::NotReachable),
            Command(Exit::ToolError),
            Command(Exit::TimedOut),
            Command(Exit::Refused),
            Command(Exit::Config),
            Command(Exit::Unexpected),
        ],
        "The running server refused the request. `server_code` has its own code, the exit code is the one that fits it.",
        &["`steadyhand explain CODE` with the server's code (`--json` shows it)."],
    ),
    page(
        "mcp_start_failed",
        &[Command(Exit::NotReachable)],
        "An MCP server did not start. The error has the step it failed at, its exit code, its last words, the likely cause and what to try.",
        &[
            "`steadyhand mcp test NAME` starts it once and shows each step.",
            "`steadyhand mcp logs NAME` has what it printed before.",
            "Run the command of the error in a terminal: what it misses there, it misses here.",
        ],
    ),
    page(
        "starts_itself",
        &[Command(Exit::Config)],
        "Steadyhand was started as an MCP server of Steadyhand, which was started by Steadyhand, and so on: its configuration starts it again.",
        &[
            "`steadyhand mcp list` names the server that runs `steadyhand mcp-stdio`: take it out with `steadyhand mcp remove NAME`.",
            "A second Steadyhand behind the first one needs a configuration of its own: `steadyhand -c FILE mcp-stdio`.",
        ],
    ),
    page(
        "server_disabled",
        &[Command(Exit::NotReachable), Command(Exit::SignIn)],
        "The MCP server is switched off by its configuration, or something it needs is not set.",
        &["The message has the reason; `steadyhand config check` has all of them."],
    ),
    page(
        "server_exists",
        &[Command(Exit::Usage)],
        "An MCP server of this name is configured already.",
        &["Take another name, or remove the old one: `steadyhand mcp remove NAME`."],
    ),
    page(
        "no_such_server",
        &[
            Command(Exit::ToolError),
            Command(Exit::Usage),
            Command(Exit::NotReachable),
            Rest(404),
        ],
        "No MCP server has this name.",
        &["`steadyhand mcp list` shows those there are."],
    ),
    page(
        "no_such_source",
        &[Command(Exit::Usage)],
        "No program whose MCP servers can be imported has this name.",
        &[
            "`steadyhand mcp import --help` names those that are known; a path to a file works, too.",
        ],
    ),
    page(
        "nothing_to_import",
        &[Command(Exit::Usage)],
        "No configuration with MCP servers was found.",
        &["Name the file: `steadyhand mcp import .mcp.json`."],
    ),
    page(
        "not_our_file",
        &[Command(Exit::Usage)],
        "The file belongs to another program. It is read, and never written.",
        &["Name a file of ours: `--config steadyhand.toml`."],
    ),
    page(
        "not_over_http",
        &[Command(Exit::Usage)],
        "This MCP server runs on stdio: there is no account to log in to.",
        &["A program on this machine gets its secrets by `env`."],
    ),
    page(
        "login_failed",
        &[Command(Exit::SignIn)],
        "The login at an MCP server did not work out.",
        &[
            "The message has the step: finding the issuer, the browser, the token.",
            "Begin again with `steadyhand mcp login NAME`.",
        ],
    ),
    page(
        "log_unreadable",
        &[Command(Exit::NotReachable)],
        "What an MCP server printed cannot be read.",
        &["It is in the state folder; check its permissions, or name another with `--state`."],
    ),
    page(
        "no_such_call",
        &[Command(Exit::ToolError), Rest(404)],
        "No call has this id, or it is too old to be kept, or it is somebody else's.",
        &[
            "`steadyhand calls list` shows those there are; the beginning of an id is enough if it is the only one.",
            "`history = { keep = \"7d\" }` under `[server]` says how long they are kept.",
        ],
    ),
    page(
        "no_such_approval",
        &[Command(Exit::Usage), Rest(404)],
        "Nothing with this id waits for a yes: it is decided, expired, or was withdrawn.",
        &["`steadyhand approvals` shows what waits."],
    ),
    page(
        "no_such_key",
        &[Command(Exit::Usage), Rest(404)],
        "No key has this name or id.",
        &["`steadyhand keys list` shows them, revoked ones too."],
    ),
    page(
        "key_refused",
        &[Command(Exit::Usage)],
        "A key cannot be made like this: its name is taken, or a setting of it is wrong.",
        &["`steadyhand keys create --help`."],
    ),
    page(
        "keys_unavailable",
        &[Command(Exit::Unexpected), Rest(503)],
        "The file of keys cannot be read or written. Nobody is let in by a key meanwhile.",
        &["Check the file the message names, and its permissions."],
    ),
    page(
        "audit_broken",
        &[Command(Exit::Refused)],
        "The audit log is not whole: a record was changed, moved or removed, or the end was cut off. The message names the first record that is wrong.",
        &[
            "Keep a copy of the state folder before anything else is done.",
            "Compare it with an earlier `steadyhand audit export`, and find out who had access.",
            "`steadyhand audit verify --from N` looks only at what follows.",
        ],
    ),
    page(
        "audit_unavailable",
        &[Command(Exit::Unexpected), Rest(503)],
        "The audit log cannot be read or written. With `[audit] required = true` nothing is done that belongs into it.",
        &["Check the state folder the message names, its permissions and the room on the disk."],
    ),
    page(
        "history_unavailable",
        &[
            Command(Exit::NotReachable),
            Command(Exit::Unexpected),
            Rest(503),
        ],
        "The history of calls cannot be read now.",
        &[
            "`steadyhand serve` keeps one; `history = { path = \"…\" }` under `[server]` says where.",
            "If the disk is full or the file is damaged, calls go on without it; the log says since when.",
        ],
    ),
    page(
        "not_safe_to_repeat",
        &[Command(Exit::Refused), Rest(409)],
        "The call may have run, and running it again could do it twice.",
        &[
            "Look whether it happened. Then repeat it with `--force`, if it did not.",
            "Say `idempotent = true` for a tool that may run twice.",
        ],
    ),
    page(
        "invalid_conversation",
        &[Command(Exit::ToolError)],
        "The provider would refuse this conversation; each reason was printed with its place.",
        &["`steadyhand repair FILE --provider NAME` prints it as it is accepted."],
    ),
    page(
        "no_conversation",
        &[Command(Exit::Usage)],
        "There is no conversation to go on with.",
        &["`steadyhand chat` begins one."],
    ),
    page(
        "timed_out",
        &[Command(Exit::TimedOut)],
        "The command did not end within `--timeout`.",
        &["Give it longer, or find out what is slow with `-v`."],
    ),
    page(
        "interrupted",
        &[Command(Exit::Signal(130)), Command(Exit::Signal(143))],
        "A signal (Ctrl-C) ended the command. Calls that ran were withdrawn.",
        &["`steadyhand calls list` shows what became of calls that a server ran."],
    ),
    page(
        "output_failed",
        &[Command(Exit::Unexpected), Command(Exit::Usage)],
        "The answer could not be written: the disk is full, or what stdout leads to is gone.",
        &["Write it somewhere else."],
    ),
    page(
        "unexpected",
        &[Command(Exit::Unexpected), Rest(500)],
        "Something happened that should not be possible: a bug.",
        &[
            "Please report it with the output of the same command and `-vv`; secrets are removed from it.",
        ],
    ),
];
