//! Pictures, drawn as SVG: shapes stretch to the width there is, words stand beside them in HTML.

pub(super) mod breaker;
pub(super) mod chart;
pub(super) mod histogram;
pub(super) mod lanes;
pub(super) mod waterfall;

use maud::{Markup, html};

/// A small line without axes: how often something was called lately.
pub(super) fn spark(values: &[u64]) -> Markup {
    const HEIGHT: f64 = 16.0;
    // Two minutes a step: finer is not to be seen at this size.
    let steps: Vec<u64> = values.chunks(2).map(|two| two.iter().sum()).collect();
    let highest = steps.iter().copied().max().unwrap_or(0);
    if highest == 0 {
        return html! { span.mute { "–" } };
    }
    let mut path = String::new();
    for (at, value) in steps.iter().enumerate() {
        let y = HEIGHT - 1.0 - (HEIGHT - 2.0) * *value as f64 / highest as f64;
        let word = if at == 0 { "M" } else { "L" };
        path.push_str(&format!("{word}{at} {}", short(y)));
    }
    let width = steps.len().saturating_sub(1).max(1);
    let label = format!("The last hour: at most {highest} calls in two minutes");
    html! {
        svg.spark viewBox=(format!("0 0 {width} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
            title { (label) }
            path d=(path) vector-effect="non-scaling-stroke" {}
        }
    }
}

/// A number with as many digits as a picture needs.
fn short(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
