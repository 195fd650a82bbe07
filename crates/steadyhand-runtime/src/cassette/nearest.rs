//! Which recorded arguments are most like others that were not recorded.

/// Recorded arguments that are compared: a cassette may hold very many.
const COMPARED_MAX: usize = 1_000;
/// What of them is compared, and shown.
const COMPARED_CHARS: usize = 300;
const SHOWN_CHARS: usize = 120;
const SHOWN_MAX: usize = 3;

/// The nearest first, cut to what fits a message.
pub(super) fn nearest(wanted: &str, recorded: &[&str]) -> Vec<String> {
    let beginning = |text: &str| text.chars().take(COMPARED_CHARS).collect::<String>();
    let wanted = beginning(wanted);
    let mut ranked: Vec<(f64, &str)> = recorded
        .iter()
        .take(COMPARED_MAX)
        .map(|text| {
            (
                strsim::normalized_levenshtein(&wanted, &beginning(text)),
                *text,
            )
        })
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let nearest = ranked.into_iter().take(SHOWN_MAX);
    nearest.map(|(_, text)| shown(text)).collect()
}

pub(super) fn shown(text: &str) -> String {
    let mut chars = text.chars();
    let mut shown: String = chars.by_ref().take(SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
