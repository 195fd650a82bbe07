//! What serde and serde_json say about a text, in words for people: no names of types, no words of a parser.

use std::fmt::Display;

/// What is wrong with a text that is no JSON, without the place.
pub fn json_fault(error: &serde_json::Error) -> String {
    match error.is_data() {
        true => misfit(error),
        false => {
            let said = error.to_string();
            syntax(said.split(" at line ").next().unwrap_or_default()).to_owned()
        }
    }
}

/// What is wrong with a text that is no JSON, or not the JSON that was expected, and where:
/// `a comma or } is missing, at line 3, column 7`.
pub fn json(error: &serde_json::Error) -> String {
    let fault = json_fault(error);
    match (error.line(), error.column()) {
        _ if error.is_data() => fault,
        (0, _) => fault,
        (line, column) => format!("{fault}, at line {line}, column {column}"),
    }
}

fn syntax(said: &str) -> &'static str {
    match said {
        "EOF while parsing a list" => "it ends inside a list",
        "EOF while parsing an object" => "it ends inside an object",
        "EOF while parsing a string" => "it ends inside a string",
        "EOF while parsing a value" => "it ends where a value should be",
        "expected `:`" => "a colon (:) is missing",
        "expected `,` or `]`" => "a comma or ] is missing",
        "expected `,` or `}`" => "a comma or } is missing",
        "expected ident" => "this is no value; a text must be in quotes",
        "expected value" => "this is where a value should be",
        "expected `\"`" => "a quotation mark is missing",
        "invalid escape" => "a backslash stands before a character that needs none",
        "invalid number" => "this is no number",
        "number out of range" => "a number is too large",
        "invalid unicode code point" => "something in a string is no character",
        "control character (\\u0000-\\u001F) found while parsing a string" => {
            "a line break or another control character stands in a string; write it as an escape such as \\n"
        }
        "key must be a string" => "the name of a member must be in double quotes",
        "lone leading surrogate in hex escape" => "an escape stands for half a character",
        "unexpected end of hex escape" => "an escape such as \\u00e9 is cut short",
        "trailing comma" => "there is a comma behind the last part",
        "trailing characters" => "something follows behind the value",
        "recursion limit exceeded" => "it is nested more than 128 levels deep",
        _ => "it cannot be read",
    }
}

/// What does not fit about a value that was read into a type.
pub fn misfit(error: &impl Display) -> String {
    let said = error.to_string();
    let said = said.split(" at line ").next().unwrap_or_default();
    let quoted = |rest: &str| rest.split('`').nth(1).unwrap_or_default().to_owned();
    let choices = |rest: &str| -> Vec<String> {
        let names = rest.split('`').skip(3).step_by(2);
        names.map(str::to_owned).collect()
    };
    let with_choices = |words: String, names: Vec<String>| match names.is_empty() {
        true => words,
        false => format!("{words} (known: {})", names.join(", ")),
    };
    if let Some(rest) = said.strip_prefix("missing field ") {
        return format!("{} is missing", quoted(rest));
    }
    if let Some(rest) = said.strip_prefix("duplicate field ") {
        return format!("the field \"{}\" is there twice", quoted(rest));
    }
    if let Some(rest) = said.strip_prefix("unknown field ") {
        let words = format!("there is no field \"{}\"", quoted(rest));
        return with_choices(words, choices(rest));
    }
    if let Some(rest) = said.strip_prefix("unknown variant ") {
        let words = format!("\"{}\" is none of its values", quoted(rest));
        return with_choices(words, choices(rest));
    }
    let wrong = said
        .strip_prefix("invalid type: ")
        .or_else(|| said.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|rest| rest.split_once(", expected ")) {
        return match kind_expected(expected) {
            Some(expected) => format!("it is {}, and must be {expected}", kind_found(found)),
            None => format!("it is {}, which does not fit", kind_found(found)),
        };
    }
    if said.starts_with("invalid length") {
        return "it has too many or too few parts".to_owned();
    }
    match said.starts_with("data did not match any variant") {
        true => "it fits none of the shapes it may have".to_owned(),
        // Our own words: whoever reads a type says what it wants.
        false => said.to_owned(),
    }
}

/// A value in a text is shown up to this length.
const SHOWN_BYTES_MAX: usize = 80;

fn kind_found(said: &str) -> String {
    if let Some(text) = said.strip_prefix("string ") {
        return crate::cut::text(text, SHOWN_BYTES_MAX);
    }
    let kind = match said.split(' ').next().unwrap_or_default() {
        "map" => "an object",
        "sequence" => "a list",
        "integer" => "a whole number",
        "floating" => "a number",
        "boolean" => "true or false",
        "null" | "unit" | "Option" => "null",
        "character" => "a text",
        "byte" => "a list of bytes",
        _ => "something else",
    };
    // What stands in backticks is the value itself.
    let value = said.split('`').nth(1);
    match value {
        Some(value) if kind != "true or false" => format!("{kind} ({value})"),
        Some(value) => value.to_owned(),
        None => kind.to_owned(),
    }
}

fn kind_expected(said: &str) -> Option<&str> {
    Some(match said {
        "a string" | "string" | "a borrowed string" | "a character" => "a text",
        "a map" | "map" => "an object",
        "a sequence" | "sequence" | "a tuple" => "a list",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number, zero or more",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "unit" => "null",
        _ if said.starts_with("a nonzero ") => "a whole number, not zero",
        _ if said.starts_with("struct ") => "an object",
        _ if said.starts_with("tuple ") || said.starts_with("an array") => "a list",
        _ if said.starts_with("internally tagged")
            || said.starts_with("adjacently tagged")
            || said.starts_with("variant")
            || said.starts_with("enum ")
            || said.starts_with("any value")
            || said.starts_with("unit ") =>
        {
            return None;
        }
        // Our own words.
        own => own,
    })
}

/// Why a connection or an answer broke, in plain words: what the operating system says stays, without its number.
pub fn connection(said: &str) -> String {
    let said = said.split(" (os error ").next().unwrap_or_default();
    let known = match said {
        "connection closed before message completed" => {
            "it was closed before the answer was complete"
        }
        "end of file before message length reached" | "unexpected end of file" => {
            "it ended before it was complete"
        }
        "invalid HTTP version parsed" => "this is no HTTP/1.1",
        "invalid HTTP status-code parsed" => "its status cannot be read",
        "invalid HTTP header parsed" => "a header of it cannot be read",
        "message head is too large" => "its headers are too large",
        "operation timed out" | "deadline has elapsed" => "it took too long",
        "invalid peer certificate: UnknownIssuer" => {
            "its certificate is of an issuer that this machine does not know"
        }
        "invalid peer certificate: Expired" => "its certificate has expired",
        _ if said.starts_with("unexpected EOF during chunk") => "it ended before it was complete",
        _ if said.starts_with("Invalid chunk") => "a piece of it cannot be read",
        _ if said.starts_with("invalid peer certificate: NotValidForName") => {
            "its certificate is for another name"
        }
        _ if said.starts_with("error decoding") => "it cannot be read",
        other => other,
    };
    known.to_owned()
}

/// Why a text is no URL, in plain words.
pub fn address(error: &impl Display) -> &'static str {
    match error.to_string().as_str() {
        "relative URL without a base" | "relative URL with a cannot-be-a-base base" => {
            "it must begin with a scheme such as https://"
        }
        "empty host" => "it names no host",
        "invalid port number" => "its port is no number from 0 to 65535",
        "invalid IPv4 address" | "invalid IPv6 address" => "its host is no address of a machine",
        "invalid international domain name" => "its host is no domain name",
        "invalid domain character" => "its host has a character that no host has",
        "URLs more than 4 GB are not supported" => "it is too long",
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::Value;

    use super::{json, misfit};

    #[test]
    fn a_text_that_is_no_json_is_explained_without_words_of_a_parser() {
        let broken = [
            "",
            "{",
            "[",
            "\"a",
            "{\"a\"",
            "{\"a\" 1}",
            "[1 2]",
            "{\"a\":1 \"b\":2}",
            "nul",
            "xyz",
            "{a:1}",
            "\"\\q\"",
            "01",
            "1e999",
            "\"\\ud800\"",
            "\"\\u12\"",
            "\"a\nb\"",
            "[1,]",
            "{\"a\":1,}",
            "1 2",
            "-",
            "'a'",
        ];
        for text in broken {
            let error = serde_json::from_str::<Value>(text).expect_err("no JSON");
            let told = json(&error);
            for word in [
                "EOF",
                "expected",
                "trailing",
                "ident",
                "key must",
                "surrogate",
                "invalid",
            ] {
                assert!(!told.contains(word), "{text:?}: {told}");
            }
            assert!(!told.starts_with("it cannot be read"), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_is_explained_without_names_of_types() {
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "only read")]
        struct Settings {
            count: u32,
            #[serde(default)]
            kind: Option<Kind>,
            #[serde(default)]
            name: String,
        }
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            Small,
            Large,
        }
        let check = |text: &str, told: &str| {
            let error = serde_json::from_str::<Settings>(text).expect_err("does not fit");
            assert_eq!(misfit(&error), told);
        };
        check("7", "it is a whole number (7), and must be an object");
        check("{}", "count is missing");
        check(
            r#"{"count":1,"count":2}"#,
            "the field \"count\" is there twice",
        );
        check(
            r#"{"cuont":1}"#,
            "there is no field \"cuont\" (known: count, kind, name)",
        );
        check(
            r#"{"count":-1}"#,
            "it is a whole number (-1), and must be a whole number, zero or more",
        );
        check(
            r#"{"count":"x"}"#,
            "it is \"x\", and must be a whole number, zero or more",
        );
        check(
            r#"{"count":1,"kind":"big"}"#,
            "\"big\" is none of its values (known: small, large)",
        );
        check(
            r#"{"count":1,"name":[]}"#,
            "it is a list, and must be a text",
        );
    }
}
