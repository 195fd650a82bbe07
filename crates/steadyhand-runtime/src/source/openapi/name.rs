//! Names that model providers accept, for tools and for their arguments; the same document gives the same names.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// What the narrowest provider accepts.
pub(super) const NAME_LENGTH_MAX: usize = 64;

/// One operation that needs a name.
pub(super) struct Nameless<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub id: Option<&'a str>,
}

/// A name for each operation: its id where that is valid and free, else made from id, method and path.
/// Ids that are valid as they are get their name first: an odd one must not take it from them.
pub(super) fn tool_names(prefix: &str, operations: &[Nameless<'_>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::new();
    let mut names: Vec<Option<String>> = operations
        .iter()
        .map(|operation| {
            let id = operation.id?;
            let name = format!("{prefix}{id}");
            (is_tool_name(&name) && taken.insert(name.clone())).then_some(name)
        })
        .collect();
    for (operation, name) in operations.iter().zip(&mut names) {
        if name.is_none() {
            *name = Some(made_name(prefix, operation, &mut taken));
        }
    }
    names.into_iter().flatten().collect()
}

/// Whether every model provider takes it as a tool's name.
pub(super) fn is_tool_name(name: &str) -> bool {
    name.len() <= NAME_LENGTH_MAX
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(is_name_byte)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn made_name(prefix: &str, operation: &Nameless<'_>, taken: &mut HashSet<String>) -> String {
    let way = format!("{} {}", operation.method, operation.path);
    let by_way = plain(&format!(
        "{} {}",
        operation.method.to_ascii_lowercase(),
        operation.path
    ));
    // A second operation of the same id is called by what it does.
    for stem in operation.id.map(plain).into_iter().chain([by_way.clone()]) {
        if stem.is_empty() {
            continue;
        }
        let name = shortened(&started(format!("{prefix}{stem}")), &way);
        if taken.insert(name.clone()) {
            return name;
        }
    }
    let mut count = 2;
    loop {
        let name = shortened(&started(format!("{prefix}{by_way}_{count}")), &way);
        if taken.insert(name.clone()) {
            return name;
        }
        count += 1;
    }
}

/// Runs of characters that no name has become one `_`.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match u8::try_from(c).is_ok_and(is_name_byte) {
            true => plain.push(c),
            false if plain.ends_with('_') => {}
            false => plain.push('_'),
        }
    }
    plain.trim_matches('_').to_owned()
}

/// Some providers want a letter first.
fn started(name: String) -> String {
    match name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        true => name,
        false => format!("_{name}"),
    }
}

/// A long name keeps its beginning; the mark at its end depends on the operation alone.
fn shortened(name: &str, way: &str) -> String {
    const MARK: usize = 8;
    if name.len() <= NAME_LENGTH_MAX {
        return name.to_owned();
    }
    let digest = Sha256::digest(format!("{way} {name}"));
    let mark: String = digest
        .iter()
        .take(MARK / 2)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    // Only ASCII is left here, so every place is the edge of a character.
    let kept = name[..NAME_LENGTH_MAX - MARK - 1].trim_end_matches(['_', '-']);
    format!("{kept}_{mark}")
}

/// A name for an argument: letters, digits, `_`, `.` and `-`, not more than 64.
pub(super) fn argument_name(wire: &str) -> String {
    let mut name = String::with_capacity(wire.len());
    for c in wire.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | '-' => name.push(c),
            // `StartTime<` and `StartTime>` are two arguments.
            '<' => name.push_str("_lt"),
            '>' => name.push_str("_gt"),
            ']' => {}
            _ if name.is_empty() || name.ends_with('_') => {}
            _ => name.push('_'),
        }
    }
    let name = name.trim_end_matches('_');
    let name = if name.is_empty() { "value" } else { name };
    // A trailing `_` of the wire's own is part of its name.
    match wire.len() <= NAME_LENGTH_MAX
        && wire.bytes().all(|b| is_name_byte(b) || b == b'.')
        && !wire.is_empty()
    {
        true => wire.to_owned(),
        false => shortened(name, wire),
    }
}
