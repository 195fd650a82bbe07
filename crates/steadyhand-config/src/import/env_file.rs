//! `envFile`: lines of `NAME=value`, read the way VS Code reads them.

/// The variables of a file, in order. Lines that are none are passed over, as VS Code does.
pub(super) fn parse(content: &str) -> Vec<(String, String)> {
    content.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if name.is_empty() || !name.chars().all(valid) {
        return None;
    }
    Some((name.to_owned(), unquoted(value.trim())))
}

fn unquoted(value: &str) -> String {
    let inside = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(value) = inside('"') {
        return value.replace("\\n", "\n");
    }
    match inside('\'') {
        Some(value) => value.to_owned(),
        None => value.to_owned(),
    }
}
