//! Finds a member name that an object of a JSON text has twice. Two readers may read such an object in two ways: what a
//! person approves could be something else than what a tool gets.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;

/// Deeper texts are refused: the search keeps what it knows of every open object.
const LEVELS_MAX: usize = 512;
/// Names of open objects that are kept at the same time; more are refused.
const NAMES_MAX: usize = 200_000;
/// So many names of one object are compared one by one; more are looked up.
const COMPARED_MAX: usize = 12;
/// A pointer longer than this is cut: it is shown in errors.
const POINTER_BYTES_MAX: usize = 512;

/// Why a JSON text is refused: it can be read in two ways, or nobody can say whether it can.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepeatedName {
    /// An object has a name twice. `"\u0070ath"` is the same name as `"path"`.
    At {
        /// JSON Pointer to the second member of the name.
        pointer: String,
    },
    /// The text is nested too deep to look at.
    TooDeep,
    /// Its objects have too many names to look at.
    TooMany,
}

/// The name of a member, as [`member_names`] comes by it.
#[derive(Debug)]
pub struct MemberName<'a> {
    /// The name without its escapes.
    pub name: &'a [u8],
    /// Where it stands in the text, without its quotes.
    pub place: Range<usize>,
    /// The name of the member whose value is the object that this one is in.
    pub parent: Option<&'a [u8]>,
}

impl RepeatedName {
    /// The first in a JSON text. A text that is no JSON may have none: whoever reads it finds out.
    pub fn first_in(text: &str) -> Option<RepeatedName> {
        RepeatedName::first_in_bytes(text.as_bytes())
    }

    /// The same for bytes.
    pub fn first_in_bytes(text: &[u8]) -> Option<RepeatedName> {
        member_names(text, &mut |_| {})
    }

    /// JSON Pointer to it; empty where there is no place to name.
    pub fn pointer(&self) -> &str {
        match self {
            RepeatedName::At { pointer } => pointer,
            RepeatedName::TooDeep | RepeatedName::TooMany => "",
        }
    }

    /// What is wrong, and what to do.
    pub fn message(&self) -> String {
        match self {
            RepeatedName::At { pointer } => {
                format!("the name at {pointer} is there twice in its object; send each name once")
            }
            RepeatedName::TooDeep => {
                format!("it is nested deeper than {LEVELS_MAX} levels; send something flatter")
            }
            RepeatedName::TooMany => {
                format!("its objects have more than {NAMES_MAX} names; send smaller ones")
            }
        }
    }
}

/// An object or a list that is open.
struct Level<'a> {
    is_object: bool,
    /// What comes next in an object is a name.
    wants_name: bool,
    /// The place among the items of a list.
    index: usize,
    /// Where the names of this object begin among all that are kept.
    first_name: usize,
    /// The same names, once there are many.
    many: Option<HashSet<Cow<'a, [u8]>>>,
}

/// Goes through all member names of a JSON text, in one pass and without recursion. Ends at the first repeated one.
pub fn member_names<'a>(
    text: &'a [u8],
    told: &mut dyn FnMut(MemberName<'_>),
) -> Option<RepeatedName> {
    let mut levels: Vec<Level<'a>> = Vec::new();
    let mut names: Vec<Cow<'a, [u8]>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let place = at + 1..end_of_string(text, at + 1);
                at = place.end;
                if let Some(level) = levels.last_mut().filter(|level| level.wants_name) {
                    level.wants_name = false;
                    let name = unescaped(&text[place.clone()]);
                    let parent = level.first_name.checked_sub(1);
                    told(MemberName {
                        name: &name,
                        place,
                        parent: parent.and_then(|parent| names.get(parent)).map(|it| &**it),
                    });
                    if names.len() == NAMES_MAX {
                        return Some(RepeatedName::TooMany);
                    }
                    let is_repeated = level.has(&names, name.clone());
                    names.push(name);
                    if is_repeated {
                        let pointer = pointer(&levels, &names);
                        return Some(RepeatedName::At { pointer });
                    }
                }
            }
            b'{' | b'[' => {
                if levels.len() == LEVELS_MAX {
                    return Some(RepeatedName::TooDeep);
                }
                let is_object = *byte == b'{';
                levels.push(Level {
                    is_object,
                    wants_name: is_object,
                    index: 0,
                    first_name: names.len(),
                    many: None,
                });
            }
            b'}' | b']' => {
                if let Some(level) = levels.pop() {
                    names.truncate(level.first_name);
                }
            }
            b',' => {
                if let Some(level) = levels.last_mut() {
                    level.wants_name = level.is_object;
                    level.index += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

impl<'a> Level<'a> {
    /// Whether the object has this name already. `names` are all that are kept; its own are the last of them.
    fn has(&mut self, names: &[Cow<'a, [u8]>], name: Cow<'a, [u8]>) -> bool {
        let own = names.get(self.first_name..).unwrap_or_default();
        if own.len() <= COMPARED_MAX {
            return own.contains(&name);
        }
        let many = self
            .many
            .get_or_insert_with(|| own.iter().cloned().collect());
        !many.insert(name)
    }
}

/// The closing quote of a string, or the end of a text that is cut in it.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// A name without its escapes. Half a character, which is no text, counts as the mark that some readers put there.
fn unescaped(written: &[u8]) -> Cow<'_, [u8]> {
    if !written.contains(&b'\\') {
        return Cow::Borrowed(written);
    }
    let mut name = Vec::with_capacity(written.len());
    let mut at = 0;
    while let Some(byte) = written.get(at) {
        at += 1;
        if *byte != b'\\' {
            name.push(*byte);
            continue;
        }
        let escape = written.get(at).copied().unwrap_or(b'\\');
        at += 1;
        let plain = match escape {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let first = unit(written, at);
                at += 4;
                let second =
                    || (written.get(at..at + 2) == Some(b"\\u")).then(|| unit(written, at + 2));
                let units = match first {
                    0xd800..=0xdbff => second().filter(|unit| (0xdc00..=0xdfff).contains(unit)),
                    _ => None,
                };
                at += if units.is_some() { 6 } else { 0 };
                let units = std::iter::once(first).chain(units);
                for c in char::decode_utf16(units) {
                    let c = c.unwrap_or(char::REPLACEMENT_CHARACTER);
                    name.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                continue;
            }
            other => other,
        };
        name.push(plain);
    }
    Cow::Owned(name)
}

/// The four hexadecimal digits of an escape.
fn unit(written: &[u8], at: usize) -> u16 {
    let digits = written.get(at..at + 4).unwrap_or_default();
    let digits = std::str::from_utf8(digits).ok();
    let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
    unit.unwrap_or(0xfffd)
}

/// To the member whose name was read last.
fn pointer(levels: &[Level<'_>], names: &[Cow<'_, [u8]>]) -> String {
    let mut pointer = String::new();
    for (depth, level) in levels.iter().enumerate() {
        if !level.is_object {
            // Writing to a text cannot fail.
            let _ = write!(pointer, "/{}", level.index);
            continue;
        }
        let end = levels
            .get(depth + 1)
            .map_or(names.len(), |inner| inner.first_name);
        let name = end.checked_sub(1).and_then(|last| names.get(last));
        let name = String::from_utf8_lossy(name.map_or(&[], |name| name));
        pointer.push('/');
        pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
    }
    crate::cut::text(&pointer, POINTER_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        RepeatedName::first_in(text).map(|found| found.pointer().to_owned())
    }

    #[test]
    fn s03_a_repeated_name_is_found_at_any_depth_and_however_it_is_written() {
        for (text, pointer) in [
            (r#"{"path":"/etc/shadow","path":"/tmp/harmless"}"#, "/path"),
            (r#"{"path":1,"\u0070ath":2}"#, "/path"),
            (r#"{"a\/b":1,"a/b":2}"#, "/a~1b"),
            (r#"{"\ud83d\ude00":1,"😀":2}"#, "/😀"),
            (r#"{"\ud83d":1,"\udfff":2}"#, "/\u{fffd}"),
            (r#"{"":1,"":2}"#, "/"),
            (
                r#"[1,[{"x":{"y":[{"a":1},{"b":{}, "b":[]}]}}]]"#,
                "/1/0/x/y/1/b",
            ),
            (r#"{"a":{"b":1},"c":[{"b":2}],"a":3}"#, "/a"),
            ("{\"a\" : 1 ,\n\t\"a\" : 2}", "/a"),
        ] {
            assert_eq!(found(text).as_deref(), Some(pointer), "{text}");
        }
        for text in [
            r#"{"a":{"a":{"a":["a","a"]}},"b":"a"}"#,
            r#"{"a":"\",\"a\":","b":"{\"a\":1,\"a\":2}"}"#,
            r#"{"é":1,"e\u0301":2,"A":1,"a":2}"#,
            "[\"a\",\"a\"]",
            "\"a\"",
            "",
            "{\"a",
            "}]}],,",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn s03_many_names_and_deep_texts_are_looked_at_within_bounds() {
        let names: Vec<String> = (0..50_000)
            .map(|number| format!("\"n{number}\":0"))
            .collect();
        let names = names.join(",");
        assert_eq!(found(&format!("{{{names}}}")), None);
        assert_eq!(
            found(&format!("{{{names},\"n7\":1}}")).as_deref(),
            Some("/n7")
        );
        let too_many: Vec<String> = (0..=NAMES_MAX)
            .map(|number| format!("\"{number}\":0"))
            .collect();
        let too_many = RepeatedName::first_in(&format!("{{{}}}", too_many.join(",")));
        assert_eq!(too_many, Some(RepeatedName::TooMany));
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(found(&deep(LEVELS_MAX)), None);
        let too_deep = RepeatedName::first_in(&deep(LEVELS_MAX + 1));
        assert_eq!(too_deep, Some(RepeatedName::TooDeep));
    }
}
