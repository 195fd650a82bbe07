//! A problem with the lines around it, ready to be drawn. Long lines and long stretches are cut here, for every
//! message that quotes a file: whoever draws them counts columns in 16 bits and panics beyond that.

use std::fmt;
use std::ops::Range;

use miette::{Diagnostic, LabeledSpan, MietteError, MietteSpanContents, Severity, SourceCode};

use super::document::Place;
use super::problem::Problem;

/// A line with more characters is shown as an excerpt.
const LINE_CHARS_MAX: usize = 160;
/// How much of a long line is shown before the fault, of the fault itself, and behind it.
const CHARS_BEFORE_MAX: usize = 50;
const FAULT_CHARS_MAX: usize = 40;
const CHARS_AFTER_MAX: usize = 30;
/// A fault that takes more lines is marked in its first line only.
const FAULT_LINES_MAX: usize = 12;
/// Lines around the fault: one is drawn, the other tells the drawer that the text goes on.
const CONTEXT_LINES: usize = 2;
/// Nobody reads more of a message.
const MESSAGE_BYTES_MAX: usize = 4_000;

/// A problem as it is drawn.
#[derive(Debug)]
pub struct DrawnProblem<'a> {
    problem: &'a Problem,
    message: String,
    help: Option<String>,
    excerpt: Option<Excerpt>,
}

/// The lines around a fault.
#[derive(Debug)]
struct Excerpt {
    file_name: String,
    text: String,
    /// The fault, in bytes of the text.
    span: Range<usize>,
    label: String,
    /// The number of the text's first line, counted from 0.
    first_line: usize,
    /// The fault's column in its whole line, counted from 1 in characters.
    column: usize,
}

impl<'a> DrawnProblem<'a> {
    /// `ellipsis` stands where something was left out.
    pub fn new(problem: &'a Problem, ellipsis: &str) -> DrawnProblem<'a> {
        DrawnProblem {
            problem,
            message: steadyhand::cut::text(&problem.message, MESSAGE_BYTES_MAX),
            help: problem
                .help
                .as_ref()
                .map(|help| steadyhand::cut::text(help, MESSAGE_BYTES_MAX)),
            excerpt: problem
                .labelled_place()
                .map(|(place, label)| Excerpt::new(place, label, ellipsis)),
        }
    }
}

impl fmt::Display for DrawnProblem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DrawnProblem<'_> {}

impl Diagnostic for DrawnProblem<'_> {
    fn severity(&self) -> Option<Severity> {
        Some(match self.problem.is_warning {
            true => Severity::Warning,
            false => Severity::Error,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        let help = self.help.as_ref()?;
        Some(Box::new(help))
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let label = Some(excerpt.label.clone());
        let span = LabeledSpan::new_with_span(label, excerpt.span.clone());
        Some(Box::new(std::iter::once(span)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt
            .as_ref()
            .map(|excerpt| excerpt as &dyn SourceCode)
    }
}

impl SourceCode for Excerpt {
    fn read_span<'b>(
        &'b self,
        span: &miette::SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn miette::SpanContents<'b> + 'b>, MietteError> {
        let contents = self.text.read_span(span, lines_before, lines_after)?;
        // Without lines around it, the fault itself is asked for: its column is told in the headline.
        let column = match lines_before {
            0 => self.column - 1,
            _ => contents.column(),
        };
        Ok(Box::new(MietteSpanContents::new_named(
            self.file_name.clone(),
            contents.data(),
            *contents.span(),
            self.first_line + contents.line(),
            column,
            contents.line_count(),
        )))
    }
}

impl Excerpt {
    fn new(place: &Place, label: &str, ellipsis: &str) -> Excerpt {
        let text = place.file.masked();
        let start = text.floor_char_boundary(place.span.start);
        let end = text.floor_char_boundary(place.span.end).max(start);
        let (line, column) = place.line_and_column();
        let from = line_start_before(text, start, CONTEXT_LINES);
        let until = line_end_after(text, end, CONTEXT_LINES);
        let first_line = line - 1 - text[from..start].matches('\n').count();
        let file_name = place.file.path.display().to_string();
        let is_short = text[from..until].split('\n').all(is_short_line)
            && text[start..end].matches('\n').count() < FAULT_LINES_MAX;
        if is_short {
            return Excerpt {
                file_name,
                text: text[from..until].to_owned(),
                span: start - from..end - from,
                label: label.to_owned(),
                first_line,
                column,
            };
        }
        let mut excerpt = Excerpt {
            file_name,
            text: String::new(),
            span: 0..0,
            label: format!("{label} (line {line}, column {column})"),
            first_line,
            column,
        };
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        for context in text[from..line_start].lines() {
            excerpt.push_beginning(context, ellipsis);
            excerpt.text.push('\n');
        }
        let before = &text[line_start..start];
        let fault = &text[start..end.min(line_end)];
        let after = text[end.min(line_end)..line_end].trim_end_matches('\r');
        excerpt.push_faulty_line(before, fault, after, ellipsis);
        let next = &text[line_end..];
        for context in next.split('\n').skip(1).take(1) {
            excerpt.text.push('\n');
            excerpt.push_beginning(context.trim_end_matches('\r'), ellipsis);
        }
        excerpt
    }

    /// The beginning of a line that stands before or behind the fault's.
    fn push_beginning(&mut self, line: &str, ellipsis: &str) {
        let shown = first_chars(line, LINE_CHARS_MAX);
        self.push_visible(shown);
        if shown.len() < line.len() {
            self.text.push_str(ellipsis);
        }
    }

    fn push_faulty_line(&mut self, before: &str, fault: &str, after: &str, ellipsis: &str) {
        let shown_before = last_chars(before, CHARS_BEFORE_MAX);
        if shown_before.len() < before.len() {
            self.text.push_str(ellipsis);
        }
        self.push_visible(shown_before);
        let start = self.text.len();
        let shown_fault = first_chars(fault, FAULT_CHARS_MAX);
        self.push_visible(shown_fault);
        self.span = start..self.text.len();
        if shown_fault.len() < fault.len() {
            self.text.push_str(ellipsis);
            return;
        }
        let shown_after = first_chars(after, CHARS_AFTER_MAX);
        self.push_visible(shown_after);
        if shown_after.len() < after.len() {
            self.text.push_str(ellipsis);
        }
    }

    /// What would steer a terminal is not passed on.
    fn push_visible(&mut self, text: &str) {
        let visible = text.chars().map(|c| match is_unseen(c) {
            true => char::REPLACEMENT_CHARACTER,
            false => c,
        });
        self.text.extend(visible);
    }
}

fn is_short_line(line: &str) -> bool {
    first_chars(line, LINE_CHARS_MAX).len() == line.len()
        && !line.chars().any(|c| c != '\r' && is_unseen(c))
}

/// Controls, hides or joins: one column each, so that what is drawn below a line stands below the right place.
fn is_unseen(c: char) -> bool {
    let joins = matches!(c, '\u{200c}' | '\u{200d}');
    c != '\t' && (c.is_control() || joins || steadyhand::visible::hides_alone(c))
}

/// The start of the line that stands `lines` lines before the one that holds `at`.
fn line_start_before(text: &str, at: usize, lines: usize) -> usize {
    let mut breaks = text[..at].rmatch_indices('\n').skip(lines);
    breaks.next().map_or(0, |(at, _)| at + 1)
}

/// The end of the line that stands `lines` lines behind the one that holds `at`.
fn line_end_after(text: &str, at: usize, lines: usize) -> usize {
    let mut breaks = text[at..].match_indices('\n').skip(lines);
    breaks
        .next()
        .map_or(text.len(), |(behind, _)| at + behind + 1)
}

fn first_chars(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

fn last_chars(text: &str, count: usize) -> &str {
    match count {
        0 => "",
        _ => {
            let start = text.char_indices().rev().nth(count - 1);
            &text[start.map_or(0, |(at, _)| at)..]
        }
    }
}
