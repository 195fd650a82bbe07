//! `steadyhand demo-mcp --crash`: an MCP server that ends before it has said a word, and says why on stderr.

/// What it says before it ends. The likely cause of its failure is found in here like in any other server's words.
const LAST_WORDS: &str = "calendar server 0.4.1, of Steadyhand's demo set: broken on purpose
reading its settings
error: the environment variable CALENDAR_TOKEN is not set";

/// Says why, on stderr.
#[allow(clippy::print_stderr, reason = "that is where servers say such things")]
pub(crate) fn crash() {
    eprintln!("{LAST_WORDS}");
}
