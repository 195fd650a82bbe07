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
    /// Another value, where that of mathjs is wrong or less exact.
    DiffersOnPurpose,
    FailsOnlyHere,
    AnsweredWhereRefused,
    /// Symbolic algebra and mathjs's own help texts, which are left out and say so.
    LeftOut,
}

impl Verdict {
    pub(crate) const ALL: [(Self, &str); 7] = [
        (Self::Agree, "agree"),
        (Self::BothRefuse, "refused by both"),
        (Self::ValueDiffers, "another value"),
        (
            Self::DiffersOnPurpose,
            "another value on purpose (see the end of this page)",
        ),
        (Self::FailsOnlyHere, "refused only here"),
        (Self::AnsweredWhereRefused, "answered where mathjs refuses"),
        (Self::LeftOut, "left out (symbolic algebra, help texts)"),
    ];
}

/// How the expressions start where mathjs is not followed: docs/math-parity.md says why.
const ON_PURPOSE: &[&str] = &[
    // mathjs has fewer digits, or loses them far out, near zero and at infinity.
    "zeta(",
    "csch((-1e-22))",
    "acoth(1e21)",
    "acsch(1e21)",
    "coth(1e21)",
    "coth(Infinity)",
    "hypot(",
    "fft([1,2;3,4;5,6])",
    "ifft([1,2;3,4;5,6])",
    "mod(bignumber(-1.5), bigint(\"123456789012345678901\"))",
    "(bignumber(-1.5)) mod (bigint(\"123456789012345678901\"))",
    "(bignumber(-1.5)) % (bigint(\"123456789012345678901\"))",
    // It forgets the sign of zero.
    "acsch(-0)",
    "asech(-0)",
    "coth(-0)",
    "csch(-0)",
    // What is no number becomes one, or a prime; 3.5 is one, too.
    "gamma(bignumber(NaN))",
    "isPrime(",
    "(bignumber(NaN)) ? ",
    // 4·1 + (-3)·2 is not 1, and the empty set has a subset.
    "xgcd(bignumber(4), -3)",
    "setPowerset([])",
    // A number beside a cell that is not stored stays as it is, with its sign and all its bits.
    "gcd(sparse([[1,2],[0,4]]), -3)",
    "gcd(-3, sparse([[1,2],[0,4]]))",
    "rightLogShift(-3, sparse([[1,2],[0,4]]))",
    "(-3) >>> (sparse([[1,2],[0,4]]))",
    // The same answer as another kind of value, or written in another way.
    "and([",
    "([1,2]) and ",
    "([[1,2],[3,4]]) and ",
    "([4,5,6]) and ",
    "([[2],[3]]) and ",
    "diag(sparse([[1,2],[0,4]]), 2)",
    "stirlingS2(bignumber(4), bignumber(4))",
    "string({a:1})",
    "f(x)=x*2;g(x)=x*3",
];

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
        (Ok(_), None) if ON_PURPOSE.iter().any(|start| expression.starts_with(start)) => {
            Verdict::DiffersOnPurpose
        }
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
    let (text, own) = (without_stored_zeros(text), ours.to_string());
    let (text, own) = (text.as_str(), without_stored_zeros(&own));
    // How an index is written, and whether a matrix is stored dense or sparse, is presentation; its cells are not.
    let is_presentation = kind == "Index" || {
        text.starts_with("Sparse") != own.starts_with("Sparse")
            && same_text(&cells(text), &cells(&own))
    };
    // The length and sign of an eigenvector are chance in mathjs; a test of our own proves ours.
    let has_same_eigenvalues = expression.starts_with("eigs(") && {
        let values = |text: &str| text.split("\"eigenvectors\"").next().map(String::from);
        let (own, text) = (values(&own), values(text));
        same_text(&own.unwrap_or_default(), &text.unwrap_or_default())
    };
    is_presentation || has_same_eigenvalues || own == text || same_text(&own, text) || {
        is_random(expression) && shape(&own) == shape(text)
    }
}

/// A sparse matrix may store some of its zeros, which changes its density.
fn without_stored_zeros(text: &str) -> String {
    if !text.starts_with("Sparse Matrix") {
        return text.to_string();
    }
    let is_stored_zero = |line: &&str| line.ends_with("==> 0");
    let lines = text.lines().filter(|line| !is_stored_zero(line));
    let lines = lines.map(|line| line.split(" density").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

fn numbers(text: &str, between: &str) -> Vec<usize> {
    let parts = text.split(between);
    parts.filter_map(|part| part.parse().ok()).collect()
}

/// All cells of a matrix, row by row; what a sparse one does not store is zero.
fn cells(text: &str) -> String {
    // mathjs puts a scalar that meets a cell which is not stored there as it is: true, or a text.
    let zero = |text: &str| {
        let text = text.replace("false", "0").replace("true", "1");
        text.replace("0/1", "0").replace('"', "")
    };
    let Some(rest) = text.strip_prefix("Sparse Matrix [") else {
        return zero(&text.replace(['[', ']'], ""));
    };
    let size = rest.split(']').next().unwrap_or_default();
    let size = numbers(size, " x ");
    let [rows, columns] = size[..] else {
        return text.to_string();
    };
    let mut cells = vec!["0".to_string(); rows * columns];
    for line in rest.lines() {
        let stored = line
            .trim()
            .strip_prefix('(')
            .and_then(|line| line.split_once(") ==> "));
        let Some((place, value)) = stored else {
            continue;
        };
        let place = numbers(place, ", ");
        cells[place[0] * columns + place[1]] = zero(value);
    }
    cells.join(", ")
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
    assert_eq!(
        cells("Sparse Matrix [2 x 2] density: 0.5\n\n    (0, 0) ==> 2\n    (0, 1) ==> 3 + i"),
        cells("[[2, 3 + i], [0, 0]]")
    );
    assert!(same_text("[6 - 6.4e-17i, 1.2e-16 - 2i]", "[6, -2i]"));
    assert!(!same_text(
        "1267650600228229401496703205376",
        "1267650600228229401496703205377"
    ));
}
