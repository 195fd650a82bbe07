//! What counts as the same answer, whatever order of rounding errors led to it.

use serde_json::Value;
use steadyhand_math::{Answer, MathError, evaluate};

/// How our answer to one expression stands to that of mathjs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Agree,
    BothRefuse,
    /// Another value, given in silence.
    ValueDiffers,
    FailsOnlyHere,
    AnsweredWhereRefused,
    /// Symbolic algebra and mathjs's own help texts, which are left out and say so.
    LeftOut,
}

impl Verdict {
    pub(crate) const ALL: [(Self, &str); 6] = [
        (Self::Agree, "agree"),
        (Self::BothRefuse, "refused by both"),
        (Self::ValueDiffers, "another value"),
        (Self::FailsOnlyHere, "refused only here"),
        (Self::AnsweredWhereRefused, "answered where mathjs refuses"),
        (Self::LeftOut, "left out (symbolic algebra, help texts)"),
    ];
}

/// Compares our answer with one of mathjs: `{type, number | text | full}` or `{error}`; and says what ours was.
pub(crate) fn judge(expression: &str, theirs: &Value) -> (Verdict, String) {
    let ours = evaluate(expression);
    let own = describe(&ours);
    let verdict = match (&ours, theirs.get("error")) {
        (Err(error), _) if error.kind() == steadyhand_math::ErrorKind::Unsupported => {
            if theirs.get("error").is_some() {
                Verdict::BothRefuse
            } else {
                Verdict::LeftOut
            }
        }
        (Err(_), Some(_)) => Verdict::BothRefuse,
        (Ok(_), Some(_)) => Verdict::AnsweredWhereRefused,
        (Err(_), None) => Verdict::FailsOnlyHere,
        (Ok(answer), None) if same_answer(expression, theirs, answer) => Verdict::Agree,
        (Ok(_), None) => Verdict::ValueDiffers,
    };
    (verdict, own)
}

pub(crate) fn describe(ours: &Result<Answer, MathError>) -> String {
    match ours {
        Ok(answer) => format!("{answer} ({})", answer.type_name()),
        Err(error) => format!("error: {error}"),
    }
}

pub(crate) fn same_answer(expression: &str, theirs: &Value, ours: &Answer) -> bool {
    let kind = theirs["type"].as_str().unwrap_or_default();
    let own_kind = ours.type_name();
    let both_matrices = is_matrix(kind) && is_matrix(own_kind);
    if kind != own_kind && !both_matrices {
        return false;
    }
    if let (Some(number), Some(own)) = (theirs["number"].as_f64(), ours.as_number()) {
        return same_number(own, number) || (is_random(expression) && own.is_finite());
    }
    let text = theirs["text"]
        .as_str()
        .or_else(|| theirs["full"].as_str())
        .unwrap_or_default();
    let own = ours.to_string();
    // How an index is written, and which cells a sparse matrix stores, is presentation.
    let is_presentation = kind == "Index" || text.contains("Sparse") != own.contains("Sparse");
    is_presentation || own == text || same_text(&own, text) || {
        is_random(expression) && shape(&own) == shape(text)
    }
}

fn is_matrix(kind: &str) -> bool {
    matches!(kind, "DenseMatrix" | "SparseMatrix" | "Array")
}

pub(crate) fn same_number(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 1e-12 * a.abs().max(b.abs())
}

/// The words of two texts must be the same, their numbers only nearly: within 1e-12, or 1e-14 of the largest beside them.
pub(crate) fn same_text(a: &str, b: &str) -> bool {
    let ((words, numbers), (other_words, other_numbers)) =
        (without_residue(split(a)), without_residue(split(b)));
    if words != other_words || numbers.len() != other_numbers.len() {
        return false;
    }
    let value = |text: &str| text.parse::<f64>().unwrap_or(f64::NAN);
    let largest = largest(&numbers).max(largest(&other_numbers));
    numbers.iter().zip(&other_numbers).all(|(a, b)| {
        if a == b {
            return true;
        }
        // Digits beyond those of a float are compared one by one, but for the last few.
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
        if digits(a) > 20 || digits(b) > 20 {
            return a.get(..58).is_some() && a.get(..58) == b.get(..58);
        }
        let (a, b) = (value(a), value(b));
        same_number(a, b) || (a - b).abs() <= 1e-14 * largest
    })
}

fn largest(numbers: &[String]) -> f64 {
    numbers
        .iter()
        .filter_map(|text| text.parse::<f64>().ok())
        .filter(|x| x.is_finite())
        .fold(0.0, |largest, x| largest.max(x.abs()))
}

type Parts = (Vec<String>, Vec<String>);

/// Drops a real or imaginary part that is only a rounding error beside the other numbers.
fn without_residue((mut words, mut numbers): Parts) -> Parts {
    let smallest = 1e-14 * largest(&numbers);
    let mut at = 0;
    while at < numbers.len() {
        let is_residue = numbers[at].parse::<f64>().is_ok_and(|x| x < smallest);
        let is_imaginary = words[at + 1].starts_with('i') && words[at].ends_with(['+', '-']);
        let is_real = matches!(words[at + 1].as_str(), "+" | "-")
            && words.get(at + 2).is_some_and(|word| word.starts_with('i'));
        if is_residue && (is_imaginary || is_real) {
            let behind = words.remove(at + 1);
            let before = words[at].trim_end_matches(['+', '-']).to_string();
            let behind = if is_real {
                behind.trim_start_matches('+').to_string()
            } else {
                behind[1..].to_string()
            };
            words[at] = before + &behind;
            numbers.remove(at);
        } else {
            at += 1;
        }
    }
    (words, numbers)
}

/// A text as words and the numbers between them.
fn split(text: &str) -> Parts {
    let bytes = text.as_bytes();
    let (mut words, mut numbers) = (vec![String::new()], Vec::new());
    let mut at = 0;
    let mut after_letter = false;
    while at < bytes.len() {
        let end = number_end(bytes, at);
        if end > at && !after_letter {
            numbers.push(text[at..end].to_string());
            words.push(String::new());
            (at, after_letter) = (end, false);
            continue;
        }
        let c = text[at..].chars().next().unwrap_or(' ');
        if let (false, Some(word)) = (c.is_whitespace(), words.last_mut()) {
            word.push(c);
        }
        after_letter = c.is_alphanumeric() || c == '_';
        at += c.len_utf8();
    }
    (words, numbers)
}

fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > end + 1 {
        end = digits(end + 1);
    }
    if end == start {
        return start;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            end = after;
        }
    }
    end
}

/// Chance decides the numbers; only their kind and arrangement can be compared.
fn is_random(expression: &str) -> bool {
    expression.to_lowercase().contains("random") || expression.contains("distribution")
}

fn shape(text: &str) -> String {
    let mut shape = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() || matches!(c, '.' | 'e' | '-' | '+') {
            '0'
        } else {
            c
        };
        if c != '0' || !shape.ends_with('0') {
            shape.push(c);
        }
    }
    shape
}

#[test]
fn f11_answers_are_compared_by_value_and_kind() {
    assert!(same_text("[1, 0.30000000000000004]", "[1, 0.3]"));
    assert!(same_text("2 + 3i", "2 + 3i"));
    assert!(!same_text("2 + 3i", "2 - 3i"));
    assert!(!same_text("[1, 2]", "[1, 2.001]"));
    assert!(!same_text("5 m", "5 km"));
    assert!(same_text("[6 - 6.4e-17i, 1.2e-16 - 2i]", "[6, -2i]"));
    assert!(!same_text(
        "1267650600228229401496703205376",
        "1267650600228229401496703205377"
    ));
}
