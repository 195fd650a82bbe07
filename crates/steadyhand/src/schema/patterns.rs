//! Regular expressions of a schema, tried on texts within a time that is known before they are tried.
//!
//! An engine cannot be interrupted. So what a match may cost at worst follows from the pattern and the length of the
//! text, and a match that may cost more than what is left of the check is not begun.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;

use super::counted::GivenUp;

/// The longest pattern of a schema, in bytes.
pub const PATTERN_BYTES_MAX: usize = 8 * 1024;
/// How many different patterns a schema may have.
pub const PATTERNS_MAX: usize = 500;
/// How many of them may count (`{2,64}`) or name a class of characters (`\p{L}`): those can become large.
pub const LARGE_PATTERNS_MAX: usize = 40;
/// `\d`, `\w`, `\s` and `\c` are each translated by reading the pattern again: so many bytes are read for one pattern.
pub const PATTERN_TRANSLATION_BYTES_MAX: usize = 300_000;
/// What one of them becomes.
const TRANSLATED_CLASS_BYTES: usize = 60;
/// How many places one pattern may have once what it counts is written out.
pub const PATTERN_POSITIONS_MAX: u64 = 20_000;
/// How large one compiled pattern may be.
pub(super) const REGEX_BYTES_MAX: usize = 1024 * 1024;

/// A pattern with look-around or back-references gives up after so many tries, the fewer the longer the text.
const BACKTRACKS: [usize; 4] = [50_000, 2_000, 100, 20];
/// The same for names of members, which are tried by the validator itself.
pub(super) const BACKTRACKS_OF_NAMES: usize = BACKTRACKS[1];
/// One match takes no longer than this.
const MATCH_MAX: Duration = Duration::from_millis(100);
/// With no more places than these an engine needs a table of moderate size, and reads a byte in no time.
const FEW_POSITIONS: u64 = 14;
const NANOS_PER_BYTE: u64 = 2;
/// Otherwise it may have to look at each place for each byte.
const NANOS_PER_POSITION: u64 = 8;

/// One pattern, compiled.
#[derive(Debug)]
pub(super) struct Pattern {
    engine: Engine,
    nanos_per_byte: u64,
}

#[derive(Debug)]
enum Engine {
    /// Its time is linear in the text.
    Linear(regex::Regex),
    /// It tries ways through the text, one engine for each of [`BACKTRACKS`].
    Backtracking {
        translated: String,
        engines: [OnceLock<Option<Box<fancy_regex::Regex>>>; BACKTRACKS.len()],
    },
}

impl Pattern {
    /// Compiles a pattern as JSON Schema writes them. `None` where it is none, or too large.
    fn compile(pattern: &str) -> Option<Pattern> {
        let translated = jsonschema_regex::to_rust_regex(pattern).ok()?;
        let positions = positions(&translated);
        let linear = regex::RegexBuilder::new(&translated)
            .size_limit(REGEX_BYTES_MAX)
            .build();
        let engine = match linear {
            Ok(regex) => Engine::Linear(regex),
            Err(regex::Error::CompiledTooBig(_)) => return None,
            Err(_) => {
                let engines: [OnceLock<_>; BACKTRACKS.len()] = Default::default();
                let _ = engines[0].set(Some(backtracking(&translated, BACKTRACKS[0])?));
                let translated = translated.into_owned();
                Engine::Backtracking {
                    translated,
                    engines,
                }
            }
        };
        Some(Pattern {
            engine,
            nanos_per_byte: nanos_per_byte(positions),
        })
    }

    /// Whether it matches somewhere in the text. `allow` says whether there is so much time left.
    pub(super) fn is_match(
        &self,
        text: &str,
        mut allow: impl FnMut(Duration) -> bool,
    ) -> Result<bool, GivenUp> {
        let nanos = self.nanos_per_byte.saturating_mul(text.len() as u64 + 1);
        match &self.engine {
            Engine::Linear(regex) => match allow(Duration::from_nanos(nanos)) {
                true => Ok(regex.is_match(text)),
                false => Err(GivenUp::Steps),
            },
            Engine::Backtracking {
                translated,
                engines,
            } => {
                let tries = BACKTRACKS.iter().zip(engines).find(|(backtracks, _)| {
                    let worst = Duration::from_nanos(nanos.saturating_mul(**backtracks as u64));
                    worst <= MATCH_MAX && allow(worst)
                });
                let (backtracks, engine) = tries.ok_or(GivenUp::Steps)?;
                let engine = engine.get_or_init(|| backtracking(translated, *backtracks));
                let engine = engine.as_ref().ok_or(GivenUp::Steps)?;
                // What it could not find out in its time is no answer.
                engine.is_match(text).map_err(|_| GivenUp::Steps)
            }
        }
    }
}

fn backtracking(translated: &str, backtracks: usize) -> Option<Box<fancy_regex::Regex>> {
    let regex = fancy_regex::RegexBuilder::new(translated)
        .backtrack_limit(backtracks)
        .delegate_size_limit(REGEX_BYTES_MAX)
        .build();
    regex.ok().map(Box::new)
}

/// The patterns of one schema, each compiled once.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    compiled: Mutex<HashMap<String, Arc<Pattern>>>,
}

impl Patterns {
    pub(super) fn get(&self, pattern: &str) -> Option<Arc<Pattern>> {
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(pattern) {
            return Some(Arc::clone(known));
        }
        let new = Arc::new(Pattern::compile(pattern)?);
        compiled.insert(pattern.to_owned(), Arc::clone(&new));
        Some(new)
    }
}

/// What the patterns for names of members may cost together, for each byte of a name.
pub(super) fn nanos_per_byte_of_names(schema: &Value) -> u64 {
    let mut patterns = Found::default();
    patterns.collect(schema);
    let names = patterns.names.iter().map(|pattern| {
        let is_linear = is_plain(pattern);
        let backtracks = if is_linear { 1 } else { BACKTRACKS_OF_NAMES };
        nanos_per_byte(positions(pattern)).saturating_mul(backtracks as u64)
    });
    names.fold(0, u64::saturating_add)
}

fn nanos_per_byte(positions: u64) -> u64 {
    match positions <= FEW_POSITIONS {
        true => NANOS_PER_BYTE,
        false => positions.saturating_mul(NANOS_PER_POSITION),
    }
}

/// Refuses a schema whose patterns take more time or memory than there is, before any of them is compiled.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut found = Found::default();
    found.collect(schema);
    let patterns: std::collections::HashSet<&str> =
        found.values.iter().chain(&found.names).copied().collect();
    let all = patterns.len();
    if all > PATTERNS_MAX {
        return Err(format!(
            "its schema has {all} different patterns; {PATTERNS_MAX} are allowed"
        ));
    }
    let large = patterns.iter().filter(|one| one.contains('{')).count();
    if large > LARGE_PATTERNS_MAX {
        return Err(format!(
            "its schema has {large} different patterns that count repetitions or name classes of characters; {LARGE_PATTERNS_MAX} are allowed"
        ));
    }
    for pattern in patterns {
        let bytes = pattern.len();
        if bytes > PATTERN_BYTES_MAX {
            return Err(format!(
                "its schema has a pattern of {bytes} bytes; {PATTERN_BYTES_MAX} are allowed"
            ));
        }
        let classes = classes(pattern);
        if classes * (bytes + classes * TRANSLATED_CLASS_BYTES) > PATTERN_TRANSLATION_BYTES_MAX {
            return Err(format!(
                "its schema has a pattern of {bytes} bytes that names \\d, \\w, \\s or \\c {classes} times, which takes too long to read"
            ));
        }
        if positions(pattern) > PATTERN_POSITIONS_MAX {
            return Err(format!(
                "its schema has a pattern that counts too far: more than {PATTERN_POSITIONS_MAX} places"
            ));
        }
    }
    Ok(())
}

fn classes(pattern: &str) -> usize {
    let classes = pattern.as_bytes().windows(2);
    classes
        .filter(|pair| pair[0] == b'\\' && b"dDwWsSc".contains(&pair[1]))
        .count()
}

/// Whatever stands where a pattern may stand counts, in whichever part of the schema: a reference may lead there.
#[derive(Default)]
struct Found<'a> {
    values: Vec<&'a str>,
    names: Vec<&'a str>,
}

impl<'a> Found<'a> {
    fn collect(&mut self, schema: &'a Value) {
        match schema {
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            Value::Object(members) => {
                self.values
                    .extend(members.get("pattern").and_then(Value::as_str));
                let by_name = members.get("patternProperties").and_then(Value::as_object);
                let names = by_name.into_iter().flat_map(|patterns| patterns.keys());
                self.names.extend(names.map(String::as_str));
                members.values().for_each(|value| self.collect(value));
            }
            _ => {}
        }
    }
}

/// Whether it has nothing that only a backtracking engine understands. A doubt means that it has.
fn is_plain(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let pairs = bytes.windows(2);
    let has_reference = pairs
        .clone()
        .any(|pair| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k'));
    let has_possessive = pairs
        .clone()
        .any(|pair| b"*+?}".contains(&pair[0]) && pair[1] == b'+');
    let has_look_around = pattern
        .match_indices("(?")
        .any(|(at, _)| bytes.get(at + 2) != Some(&b':'));
    !has_reference && !has_possessive && !has_look_around
}

/// How many places a pattern has in which a match of it can be at the same time, at most: its characters, with what
/// is counted written out.
fn positions(pattern: &str) -> u64 {
    // Of each open group: the places before it, and of its last part.
    let mut open: Vec<u64> = Vec::new();
    let (mut sum, mut last) = (0_u64, 0_u64);
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let mut used = first.len_utf8();
        match first {
            '\\' => {
                used += escaped_len(&rest[1..]);
                (sum, last) = (sum.saturating_add(last), 1);
            }
            '[' => {
                used = class_len(rest);
                (sum, last) = (sum.saturating_add(last), 1);
            }
            '(' => {
                open.push(sum.saturating_add(last));
                (sum, last) = (0, 0);
            }
            ')' => {
                let inside = sum.saturating_add(last);
                (sum, last) = (open.pop().unwrap_or(0), inside);
            }
            '{' if let Some((bytes, times)) = counted(rest) => {
                used = bytes;
                last = last.saturating_mul(times.max(1));
            }
            '*' | '+' | '?' | '|' | '^' | '$' => {}
            _ => (sum, last) = (sum.saturating_add(last), 1),
        }
        rest = &rest[used..];
    }
    let outer = open.into_iter().fold(0, u64::saturating_add);
    sum.saturating_add(last).saturating_add(outer)
}

/// The bytes of an escape after its backslash: `\p{Letter}` and `\u{1F600}` are one place.
fn escaped_len(rest: &str) -> usize {
    let Some(kind) = rest.chars().next() else {
        return 0;
    };
    let after = &rest[kind.len_utf8()..];
    match (kind, after.find('}')) {
        ('p' | 'P' | 'u' | 'x', Some(end)) if after.starts_with('{') => kind.len_utf8() + end + 1,
        _ => kind.len_utf8(),
    }
}

/// The bytes of a class of characters, brackets included. It ends at the first bracket that closes: a class inside a
/// class is counted as more places than it has, never as fewer.
fn class_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b']' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `{2}`, `{2,}` or `{2,5}`: its bytes, and how often at most what stands before it is written out.
fn counted(rest: &str) -> Option<(usize, u64)> {
    let end = rest.find('}')?;
    let (low, high) = match rest[1..end].split_once(',') {
        Some((low, high)) => (low, high),
        None => (&rest[1..end], &rest[1..end]),
    };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true if text.is_empty() => Some(0),
        // More digits than fit are more than anybody can count.
        true => Some(text.parse().unwrap_or(u64::MAX)),
        false => None,
    };
    let (low, high) = (number(low)?, number(high)?);
    Some((end + 1, low.saturating_add(1).max(high)))
}

#[cfg(test)]
mod tests {
    use super::{is_plain, positions};

    #[test]
    fn what_a_pattern_counts_is_written_out() {
        for (pattern, places) in [
            ("", 0),
            ("abc", 3),
            (r"^[a-z0-9]{1,63}$", 63),
            (r"(ab|c){10}", 30),
            (r"(a{10}b){10}", 110),
            (r"\p{Letter}+\d", 2),
            (r"[[{]{3}x", 4),
            (r"(a{1000}){1000}", 1_000_000),
            (r"a{2,}", 3),
            ("{", 1),
        ] {
            // `{3}` alone is a minimum and a maximum.
            let found = positions(pattern);
            assert!(
                found >= places && found <= places * 2 + 1,
                "{pattern}: {found}"
            );
        }
    }

    #[test]
    fn what_needs_more_than_a_linear_engine_is_known() {
        assert!(is_plain(r"^(?:a|b)+[c-d]{2}$"));
        for hard in [r"(?=a)", r"(?<!a)b", r"(a)\1", r"\k<n>", "a++", "(?>a)"] {
            assert!(!is_plain(hard), "{hard}");
        }
    }
}
