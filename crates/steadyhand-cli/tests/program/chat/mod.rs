//! Models, `steadyhand chat` and `steadyhand transcriber`, as people and programs use them.

mod executor;
mod kept;
mod markdown;
mod models;
mod mqtt;
mod once;
pub(crate) mod pty;
mod terminal;
mod transcriber;

use crate::support::Workplace;

/// Two tools that answer, one that hangs, one that fails.
pub(crate) const TOOLS: &str = r#"
[tools.math_eval]
kind = "builtin"
use = "math_eval"

[tools.home_lights]
kind = "mock"
description = "Turns the lights of a room on or off"
input = { type = "object", required = ["area", "state"], properties = { area = { type = "string", examples = ["kitchen"] }, state = { type = "string", enum = ["on", "off"] } } }
answers = [{ result = { applied = true } }]

[tools.notes_find]
kind = "mock"
description = "Searches the notes"
input = { type = "object", properties = { q = { type = "string" } } }
answers = [{ result = "none", delay = "10m" }]
timeout = "20m"
deadline = "20m"

[tools.door_open]
kind = "mock"
description = "Opens the door"
input = { type = "object" }
answers = [{ fail = "network" }]
retry = { attempts = 1 }
"#;

/// A folder with these tools and these lines before them.
pub(crate) fn workplace(before: &str) -> Workplace {
    Workplace::with_config(&format!("{before}\n{TOOLS}"))
}

/// The lines that make a provider the model `strict`.
pub(crate) fn strict(provider: &str, url: &str) -> String {
    format!(
        "[models.strict]\nprovider = \"{provider}\"\nmodel = \"strict-1\"\nurl = \"{url}\"\nkey = \"test-key\"\nattempts = 1\n"
    )
}
