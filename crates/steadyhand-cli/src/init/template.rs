//! The `steadyhand.toml` that `init` writes. What is only an example stands behind `#`, without a blank: take the
//! sign away, and it is right.

use toml_edit::{Array, Value};

/// What was decided.
pub(super) struct Chosen {
    /// Files and programs whose servers are taken over.
    pub(super) read: Vec<String>,
    /// Servers of those to leave out.
    pub(super) skip: Vec<String>,
    /// Models whose key is there.
    pub(super) models: Vec<&'static Key>,
}

/// A key that may be in the environment, and the model it is for.
pub(super) struct Key {
    pub(super) variable: &'static str,
    name: &'static str,
    table: &'static str,
}

pub(super) const KEYS: [Key; 2] = [
    Key {
        variable: "ANTHROPIC_API_KEY",
        name: "claude",
        table: r#"claude  = { provider = "anthropic", model = "claude-sonnet-4-5", key = "${env:ANTHROPIC_API_KEY}" }"#,
    },
    Key {
        variable: "OPENAI_API_KEY",
        name: "gpt",
        table: r#"gpt     = { provider = "openai", model = "gpt-5.4-mini", key = "${env:OPENAI_API_KEY}" }"#,
    },
];

const TOP: &str = r#"# The configuration of Steadyhand. `steadyhand config check` says whether it is right, `steadyhand config show` what it
# means; a server that runs takes changes over. Lines behind # are examples: take the sign away to use them.
version = 1

[server]
listen = "127.0.0.1:7400"               # the dashboard /, MCP /mcp, REST /v1; any other address needs a token
#token = "${env:STEADYHAND_TOKEN:-}"    # secrets stand here by reference only: ${env:…}, ${file:…}, ${keyring:…}
"#;

const TOOLS: &str = r#"
# What every tool starts from. These are the values without this table.
#[defaults]
#timeout  = "30s"                       # one attempt
#deadline = "60s"                       # the whole call, waits and retries included
#retry    = { attempts = 4, backoff = "100ms" }
#breaker  = { failures = 5, cooldown = "60s" }

# A tool that ships inside the program.
[tools.calculator]
kind = "builtin"
use  = "math_eval"

# One HTTP endpoint, with a policy of its own.
#[tools.home_lights]
#kind        = "http"
#description = "Turn the lights of a room on or off"
#method      = "POST"
#url         = "http://127.0.0.1:8123/api/services/light/turn_{state}"
#body        = { area_id = "{area}" }
#input       = { type = "object", required = ["area", "state"], properties = { area = { type = "string" }, state = { type = "string", enum = ["on", "off"] } } }
#timeout     = "1s"
#idempotent  = true                     # twice is as good as once, so it may be tried again
#fallback    = { result = { state = "unknown" } }

# A program of this machine. No shell; stopped with everything it started.
#[tools.list_files]
#kind     = "command"
#command  = ["ls", "-1", "--", "{folder}"]
#input    = { type = "object", required = ["folder"], properties = { folder = { type = "string" } } }
#approval = "always"                    # a person says yes first: dashboard, or steadyhand approve ID

# An MCP server. Its tools are called time__…; a url in the place of command is one over HTTP.
#[mcp.time]
#command = "uvx"
#args    = ["mcp-server-time"]
#each.get_current_time = { timeout = "5s" }
"#;

/// The whole file.
pub(super) fn text(chosen: &Chosen) -> String {
    let mut text = TOP.to_owned();
    text.push_str(&import(chosen));
    text.push_str(&models(chosen));
    text.push_str(TOOLS);
    text
}

fn import(chosen: &Chosen) -> String {
    let about = "\n# MCP servers of other programs: read from their files, which are never changed. A table [mcp.NAME] adds a policy to one.\n";
    match chosen.read.is_empty() {
        true => format!("{about}#[import]\n#mcp = [\".mcp.json\", \"claude-desktop\"]\n"),
        false => format!(
            "{about}[import]\nmcp  = {}\nskip = {}\n",
            list(&chosen.read),
            list(&chosen.skip)
        ),
    }
}

fn list(names: &[String]) -> String {
    let names: Array = names.iter().map(String::as_str).collect();
    Value::from(names).to_string().trim().to_owned()
}

/// Those whose key is there are used, the first of them where nobody says which.
fn models(chosen: &Chosen) -> String {
    let mut text =
        "\n# Models for `steadyhand chat`. Without one it is the demo, a fixed script and not an AI.\n[models]\n"
            .to_owned();
    let default = chosen.models.first().map_or("demo", |first| first.name);
    text.push_str(&format!("default = \"{default}\"\n"));
    for key in &KEYS {
        let is_chosen = chosen.models.iter().any(|one| one.name == key.name);
        let sign = if is_chosen { "" } else { "#" };
        text.push_str(&format!("{sign}{}\n", key.table));
    }
    text.push_str("#local   = { provider = \"ollama\", model = \"qwen3:8b\" }\n");
    text
}
