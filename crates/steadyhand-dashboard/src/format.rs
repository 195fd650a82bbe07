//! Times, numbers and foreign texts as people read them.

use maud::{Markup, html};
use serde_json::Value;

/// `8 ms`, `1.2 s`, `3 min 20 s`.
pub(super) fn span(ms: f64) -> String {
    let ms = ms.max(0.0);
    match ms {
        _ if ms < 0.05 => "0 ms".to_owned(),
        _ if ms < 0.95 => format!("{ms:.1} ms"),
        _ if ms < 999.5 => format!("{ms:.0} ms"),
        _ if ms < 9_950.0 => format!("{:.1} s", ms / 1e3),
        _ if ms < 59_500.0 => format!("{:.0} s", ms / 1e3),
        _ if ms < 3_570_000.0 => {
            let seconds = (ms / 1e3).round() as u64;
            match seconds % 60 {
                0 => format!("{} min", seconds / 60),
                rest => format!("{} min {rest} s", seconds / 60),
            }
        }
        _ => {
            let minutes = (ms / 60e3).round() as u64;
            match (minutes / 60, minutes % 60) {
                (hours, _) if hours >= 48 => format!("{} days", hours / 24),
                (hours, 0) => format!("{hours} h"),
                (hours, rest) => format!("{hours} h {rest} min"),
            }
        }
    }
}

/// A span where there may be none.
pub(super) fn some_span(ms: Option<f64>) -> String {
    ms.map_or("–".to_owned(), span)
}

/// `31,204`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `12.2 %`.
pub(super) fn share(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 9.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

pub(super) fn some_share(share_of: Option<f64>) -> String {
    share_of.map_or("–".to_owned(), share)
}

pub(super) fn bytes(count: u64) -> String {
    bytesize::ByteSize(count).display().iec().to_string()
}

/// The thing and how many: `1 call`, `3 calls`.
pub(super) fn counted(number: u64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        _ if thing.ends_with('x') => format!("{} {thing}es", count(number)),
        _ => match thing.strip_suffix("ry") {
            Some(stem) => format!("{} {stem}ries", count(number)),
            None => format!("{} {thing}s", count(number)),
        },
    }
}

/// The time of day; a script shows it in the reader's own zone.
pub(super) fn clock(ms: u64) -> Markup {
    stamp(ms, "%H:%M:%S", "time")
}

/// The time of day without seconds.
pub(super) fn minute(ms: u64) -> Markup {
    stamp(ms, "%H:%M", "minute")
}

/// The time of day, with the day where it was another.
pub(super) fn when(ms: u64) -> Markup {
    const MOST_OF_A_DAY_MS: u64 = 20 * 60 * 60 * 1000;
    match steadyhand::clock::wall_ms().saturating_sub(ms) > MOST_OF_A_DAY_MS {
        true => moment(ms),
        false => clock(ms),
    }
}

/// The same with the day.
pub(super) fn moment(ms: u64) -> Markup {
    stamp(ms, "%b %-d, %H:%M", "day")
}

fn stamp(ms: u64, pattern: &str, kind: &str) -> Markup {
    let at = jiff::Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(0)).unwrap_or_default();
    let zone = jiff::tz::TimeZone::system();
    html! { time datetime=(at.to_string()) data-show=(kind) { (at.to_zoned(zone).strftime(pattern).to_string()) } }
}

/// Time that runs since a moment, counted on by a script: `4.2 s of 10 s`.
pub(super) fn running(since_ms: u64, limit_ms: Option<f64>) -> Markup {
    let elapsed_ms = steadyhand::clock::wall_ms().saturating_sub(since_ms) as f64;
    html! {
        span.tick data-since=(since_ms) {
            (span(elapsed_ms))
        }
        @if let Some(limit_ms) = limit_ms { " of " (span(limit_ms)) }
    }
}

/// Time until a moment, counted down by a script: `in 18 s`.
pub(super) fn until(at_ms: u64) -> Markup {
    // To the second: what is computed from two clocks differs by a little each time.
    let at_ms = (at_ms + 500) / 1000 * 1000;
    let left_ms = at_ms.saturating_sub(steadyhand::clock::wall_ms()) as f64;
    html! {
        span.tick data-until=(at_ms) {
            @if left_ms > 0.0 { "in " (whole_seconds(left_ms)) } @else { "now" }
        }
    }
}

/// `2 s`, where `span` would say `2.0 s`: a countdown steps by seconds.
fn whole_seconds(ms: f64) -> String {
    let seconds = (ms / 1e3).ceil();
    match seconds < 60.0 {
        true => format!("{seconds:.0} s"),
        false => span(seconds * 1e3),
    }
}

/// A text of somebody else's with everything in it to be seen: characters that control, hide or turn around others
/// are written as their numbers.
pub(super) fn visible(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    steadyhand::visible::text(&text).into_owned()
}

/// A text in one line of a bounded length.
pub(super) fn line(text: &str, chars_max: usize) -> String {
    let one = text
        .split_whitespace()
        .take(chars_max)
        .collect::<Vec<_>>()
        .join(" ");
    let mut shown: String = visible(&one).chars().take(chars_max + 1).collect();
    if shown.chars().count() > chars_max {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// The text of a failure in one line: what it did out there stands at its end, and is never cut off.
pub(super) fn failure_line(text: &str, chars_max: usize) -> String {
    const EFFECT_CHARS_MAX: usize = 100;
    let whole = line(text, chars_max + EFFECT_CHARS_MAX);
    if whole.chars().count() <= chars_max {
        return whole;
    }
    let end = text.rfind(". It ").map(|at| &text[at + 2..]);
    match end.filter(|end| end.chars().count() <= EFFECT_CHARS_MAX) {
        Some(effect) => {
            let before = &text[..text.len() - effect.len()];
            format!(
                "{} {}",
                line(before, chars_max),
                line(effect, EFFECT_CHARS_MAX)
            )
        }
        None => line(text, chars_max),
    }
}

/// A long text, cut so that the page stays small whatever it holds: by what it takes in HTML.
pub(super) fn cut(text: &str, bytes_max: usize) -> (String, usize) {
    let shown = visible(text);
    let mut taken = 0;
    for (at, c) in shown.char_indices() {
        taken += in_html(c);
        if taken > bytes_max {
            return (shown[..at].to_owned(), shown.len() - at);
        }
    }
    (shown, 0)
}

/// What a text takes in a page.
pub(super) fn html_bytes(text: &str) -> usize {
    text.chars().map(in_html).sum()
}

fn in_html(c: char) -> usize {
    match c {
        '"' => 6,
        '&' => 5,
        '<' | '>' => 4,
        c => c.len_utf8(),
    }
}

/// JSON for people: texts as they are, everything else indented.
pub(super) fn json(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_well_at_every_size() {
        let cases = [
            (0.04, "0 ms"),
            (0.3, "0.3 ms"),
            (8.2, "8 ms"),
            (999.0, "999 ms"),
            (999.9, "1.0 s"),
            (9_949.0, "9.9 s"),
            (59_400.0, "59 s"),
            (60_000.0, "1 min"),
            (200_000.0, "3 min 20 s"),
            (3_600_000.0, "1 h"),
            (5_400_000.0, "1 h 30 min"),
            (604_800_000.0, "7 days"),
        ];
        for (ms, wanted) in cases {
            assert_eq!(span(ms), wanted);
        }
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(
            (share(0.122), share(0.004), share(0.0)),
            ("12 %".into(), "0.4 %".into(), "0 %".into())
        );
    }

    #[test]
    fn what_hides_or_turns_text_around_is_seen() {
        let hostile = "a\u{202e}b\u{0}c\u{200b}d\u{1b}[31m\u{e0041}\r\n\té日";
        assert_eq!(
            visible(hostile),
            "a\\u{202e}b\\u{0}c\\u{200b}d\\u{1b}[31m\\u{e0041}\n\té日"
        );
        assert_eq!(line("one\n two   three", 100), "one two three");
        assert_eq!(line("abcdef", 3), "abc…");
        let failure = format!("{}. It was not run.", "x".repeat(50));
        assert_eq!(failure_line(&failure, 5), "xxxxx… It was not run.");
        assert_eq!(
            failure_line("short. It was not run.", 100),
            "short. It was not run."
        );
        let (shown, rest) = cut(&"\"".repeat(1000), 600);
        assert_eq!((shown.len(), rest), (100, 900));
    }
}
