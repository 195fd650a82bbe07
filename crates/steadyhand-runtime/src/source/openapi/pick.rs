//! Which operations a pattern means: `POST /pets`, `GET /pets/*`, an operation's id, or a tool's name.

use steadyhand::wildcard::wild;

/// Whether a pattern means this operation. `*` stands for any run of characters, also across `/`; the
/// method may be written in any case; a pattern that begins with `/` means all methods of a path.
pub fn matches(
    pattern: &str,
    method: &str,
    path: &str,
    operation_id: Option<&str>,
    tool_name: &str,
) -> bool {
    if let Some((wanted, rest)) = pattern.split_once(char::is_whitespace)
        && rest.trim_start().starts_with(['/', '*'])
    {
        return wild(&wanted.to_ascii_uppercase(), method) && wild(rest.trim(), path);
    }
    if pattern.starts_with('/') && wild(pattern, path) {
        return true;
    }
    wild(pattern, tool_name) || operation_id.is_some_and(|id| wild(pattern, id))
}
