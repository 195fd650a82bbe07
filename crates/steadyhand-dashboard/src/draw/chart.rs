//! Figures over time: columns or lines on one axis, with marks where something changed.

use maud::{Markup, html};

use super::super::format;
use steadyhand_store::history::{Mark, MarkKind, Trends};

const HEIGHT: f64 = 100.0;

/// How one line or set of columns is drawn.
pub(in super::super) struct Series<'a> {
    pub(in super::super) name: &'a str,
    pub(in super::super) tone: &'a str,
    pub(in super::super) shape: Shape,
    pub(in super::super) values: Vec<Option<f64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Shape {
    Columns,
    Line,
}

/// One picture: its title, what it shows, and how its numbers read.
pub(in super::super) struct Chart<'a> {
    pub(in super::super) id: &'a str,
    pub(in super::super) title: &'a str,
    pub(in super::super) summary: String,
    pub(in super::super) series: Vec<Series<'a>>,
    pub(in super::super) unit: fn(f64) -> String,
    /// The axis reaches at least this far.
    pub(in super::super) least: f64,
}

impl Chart<'_> {
    pub(in super::super) fn draw(&self, trends: &Trends) -> Markup {
        let highest = self.highest();
        let count = trends.buckets.len().max(1);
        let label = format!("{}: {}", self.title, self.summary);
        html! {
            figure.chart id=(self.id) {
                figcaption {
                    strong { (self.title) } " "
                    span.mute { (self.summary) }
                    @if self.series.len() > 1 {
                        span.legend { @for one in &self.series { span { span.swatch.(one.tone) {} (one.name) } } }
                    }
                }
                div.plot id=(format!("{}-plot", self.id)) tabindex="0" role="group" aria-label=(format!("{}, arrow keys read its values", self.title))
                    data-start=(trends.buckets.first().map_or(0, |bucket| bucket.start_ms)) data-step=(trends.bucket_ms) data-tool=[trends.tool.as_deref()]
                    data-names=(self.names()) data-values=(self.values()) {
                    span.high { ((self.unit)(highest)) }
                    svg viewBox=(format!("0 0 {count} {HEIGHT}")) preserveAspectRatio="none" role="img" aria-label=(label) {
                        path.grid d=(format!("M0 {HEIGHT}H{count}M0 {}H{count}M0 0H{count}", HEIGHT / 2.0)) vector-effect="non-scaling-stroke" {}
                        @for one in &self.series {
                            @match one.shape {
                                Shape::Columns => { path.col.(one.tone) d=(columns(&one.values, highest)) {} }
                                Shape::Line => { path.line.(one.tone) d=(line(&one.values, highest)) vector-effect="non-scaling-stroke" {} }
                            }
                        }
                        @for (kind, at) in marks(trends) {
                            path.mark.(kind.as_str()) d=(format!("M{at} 0V{HEIGHT}")) vector-effect="non-scaling-stroke" {}
                        }
                    }
                    span.cursor hidden {}
                    output.readout {}
                    (axis(trends))
                }
            }
        }
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|one| one.name).collect();
        names.join("|")
    }

    /// Every value as people read it, for the script that shows the one under the pointer.
    fn values(&self) -> String {
        let shown = |value: &Option<f64>| value.map_or("–".to_owned(), self.unit);
        let series = self.series.iter();
        let series = series.map(|one| one.values.iter().map(shown).collect::<Vec<_>>().join("|"));
        series.collect::<Vec<_>>().join(";")
    }

    /// The top of the axis: a number that reads well.
    fn highest(&self) -> f64 {
        let values = self
            .series
            .iter()
            .flat_map(|one| one.values.iter().flatten());
        let highest = values.copied().fold(self.least, f64::max);
        let power = 10f64.powf(highest.max(1e-9).log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0];
        steps
            .into_iter()
            .map(|step| step * power)
            .find(|top| *top >= highest)
            .unwrap_or(highest)
    }
}

fn axis(trends: &Trends) -> Markup {
    let starts: Vec<u64> = trends
        .buckets
        .iter()
        .map(|bucket| bucket.start_ms)
        .collect();
    let picks = [0, starts.len() / 4, starts.len() / 2, 3 * starts.len() / 4];
    let is_day = trends.bucket_ms >= 60 * 60_000;
    html! {
        span.ticks aria-hidden="true" {
            @for pick in picks {
                @if let Some(start_ms) = starts.get(pick) {
                    span { @if is_day { (format::moment(*start_ms)) } @else { (format::minute(*start_ms)) } }
                }
            }
            span { "now" }
        }
    }
}

/// Where something changed: one line for a kind in a bucket, however often that was.
fn marks(trends: &Trends) -> Vec<(MarkKind, String)> {
    let mut shown: Vec<(MarkKind, u64)> = Vec::new();
    let mut lines = Vec::new();
    for mark in &trends.marks {
        let at = place(mark, trends);
        let drawn = (mark.kind, at as u64);
        if !shown.contains(&drawn) {
            shown.push(drawn);
            lines.push((mark.kind, super::short(at)));
        }
    }
    lines
}

/// Where a mark stands, in buckets.
fn place(mark: &Mark, trends: &Trends) -> f64 {
    let first = trends.buckets.first().map_or(0, |bucket| bucket.start_ms);
    mark.at_ms.saturating_sub(first) as f64 / trends.bucket_ms.max(1) as f64
}

fn columns(values: &[Option<f64>], highest: f64) -> String {
    let mut path = String::new();
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|value| *value > 0.0) else {
            continue;
        };
        let height = (HEIGHT * value / highest).max(1.0);
        path.push_str(&format!(
            "M{at}.1 {HEIGHT}h.8v-{h}h-.8z",
            h = super::short(height)
        ));
    }
    path
}

/// A line with gaps where there is nothing; a single value is a short dash.
fn line(values: &[Option<f64>], highest: f64) -> String {
    let mut path = String::new();
    let mut is_down = false;
    for (at, value) in values.iter().enumerate() {
        let Some(value) = value else {
            is_down = false;
            continue;
        };
        let y = super::short(HEIGHT - HEIGHT * value / highest);
        match is_down {
            true => path.push_str(&format!("L{at}.5 {y}")),
            false => path.push_str(&format!("M{at}.2 {y}L{at}.5 {y}")),
        }
        is_down = true;
        if values.get(at + 1).copied().flatten().is_none() {
            path.push_str(&format!("L{at}.8 {y}"));
        }
    }
    path
}
