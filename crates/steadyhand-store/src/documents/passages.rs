//! Cuts a text into passages: at headings first, then at paragraphs, lines, words.

/// Where a passage is full.
const TARGET_CHARS: usize = 1_000;
/// No passage is longer.
const LIMIT_CHARS: usize = 1_200;
/// Parts of a heading path; deeper ones do not exist in Markdown and HTML.
const LEVELS: usize = 6;
/// Longer headings and titles are cut: they are repeated in each passage.
const HEADING_CHARS_MAX: usize = 200;

/// A piece of a document, small enough for a model to read and large enough to make sense.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The headings above it: `Install > Linux`.
    pub(super) heading: String,
    /// Its first line in the file, from 1.
    pub(super) line: u64,
    pub(super) text: String,
}

/// Title and passages of a Markdown text. The markup stays: models read it well.
pub(super) fn of_markdown(text: &str) -> (Option<String>, Vec<Passage>) {
    let lines: Vec<&str> = text.lines().collect();
    let (mut title, start) = front_matter(&lines);
    let titled_by_front_matter = title.is_some();
    let mut cutter = Cutter::default();
    let mut fence: Option<&str> = None;
    let mut at = start;
    while at < lines.len() {
        let line = lines[at];
        let number = at as u64 + 1;
        at += 1;
        if let Some(open) = fence {
            cutter.line(line, number);
            if line.trim().starts_with(open) && line.trim().chars().all(|c| open.starts_with(c)) {
                fence = None;
            }
            continue;
        }
        fence = ["```", "~~~"]
            .into_iter()
            .find(|fence| line.trim_start().starts_with(fence));
        if fence.is_some() {
            cutter.line(line, number);
            continue;
        }
        let underlined = lines.get(at).and_then(|next| underline_level(line, next));
        let heading = match underlined {
            Some(level) => Some((level, line.trim())),
            None => atx_heading(line),
        };
        let Some((level, heading)) = heading else {
            cutter.line(line, number);
            continue;
        };
        at += usize::from(underlined.is_some());
        if title.is_none() && level == 1 {
            title = Some(shortened(heading)).filter(|title| !title.is_empty());
            cutter.heading(1, "", number);
        } else if titled_by_front_matter && title.as_deref() == Some(heading) {
            cutter.heading(level, "", number);
        } else {
            cutter.heading(level, heading, number);
        }
    }
    (title, cutter.finish())
}

/// Passages of a plain text: paragraphs, put together.
pub(super) fn of_text(text: &str) -> Vec<Passage> {
    let mut cutter = Cutter::default();
    for (index, line) in text.lines().enumerate() {
        cutter.line(line, index as u64 + 1);
    }
    cutter.finish()
}

/// A heading or title of bearable length, in one line.
pub(super) fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(HEADING_CHARS_MAX).collect()
}

/// Takes lines and headings one by one and puts passages together from them.
#[derive(Default)]
pub(super) struct Cutter {
    path: [String; LEVELS],
    /// Level and line of a heading that nothing stands under yet.
    bare: Option<(usize, u64)>,
    /// The paragraph that is being read.
    block: Text,
    /// The passage that is being put together.
    passage: Text,
    done: Vec<Passage>,
}

#[derive(Default)]
struct Text {
    text: String,
    chars: usize,
    line: u64,
}

impl Text {
    fn add(&mut self, piece: &str, line: u64, between: &str) {
        if self.text.is_empty() {
            self.line = line;
        } else {
            self.text.push_str(between);
            self.chars += between.len();
        }
        self.text.push_str(piece);
        self.chars += piece.chars().count();
    }
}

impl Cutter {
    /// A heading ends the passage before it; what follows stands under it.
    pub(super) fn heading(&mut self, level: usize, text: &str, line: u64) {
        let level = level.clamp(1, LEVELS);
        self.end_passage();
        self.end_section(level);
        self.path[level - 1] = shortened(text);
        for deeper in &mut self.path[level..] {
            deeper.clear();
        }
        self.bare = (!text.is_empty()).then_some((level, line));
    }

    /// The next line; an empty one ends a paragraph.
    pub(super) fn line(&mut self, line: &str, number: u64) {
        let line = line.trim_end();
        if line.is_empty() {
            return self.end_block();
        }
        for piece in pieces(line) {
            if self.block.chars + piece.chars().count() >= LIMIT_CHARS {
                self.end_block();
            }
            self.block.add(piece, number, "\n");
        }
    }

    /// All passages.
    pub(super) fn finish(mut self) -> Vec<Passage> {
        self.end_passage();
        self.end_section(1);
        self.done
    }

    /// A heading with nothing under it, not even deeper headings, is a passage by itself.
    fn end_section(&mut self, next_level: usize) {
        if let Some((level, line)) = self.bare.take()
            && next_level <= level
        {
            let heading = self.path[level - 1].clone();
            self.passage.add(&heading, line, "");
            self.push_passage();
        }
    }

    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.text.trim().is_empty() {
            return;
        }
        if self.passage.chars + 2 + block.chars > LIMIT_CHARS {
            self.push_passage();
        }
        self.passage.add(&block.text, block.line, "\n\n");
        if self.passage.chars >= TARGET_CHARS {
            self.push_passage();
        }
    }

    fn end_passage(&mut self) {
        self.end_block();
        self.push_passage();
    }

    fn push_passage(&mut self) {
        let passage = std::mem::take(&mut self.passage);
        if passage.text.is_empty() {
            return;
        }
        self.bare = None;
        let parts: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        self.done.push(Passage {
            heading: parts.join(" > "),
            line: passage.line,
            text: passage.text,
        });
    }
}

/// A line in pieces of at most the target length, cut after a sentence or else between words.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((limit, _)) = rest.char_indices().nth(TARGET_CHARS) {
        let window = &rest[..limit];
        let sentence = window.rfind(". ").map(|at| at + 2);
        let word = window.rfind(char::is_whitespace).map(|at| at + 1);
        let cut = [sentence, word]
            .into_iter()
            .flatten()
            .find(|at| *at > limit / 2 && rest.is_char_boundary(*at))
            .unwrap_or(limit);
        pieces.push(rest[..cut].trim_end());
        rest = &rest[cut..];
    }
    pieces.push(rest);
    pieces
}

/// The title in a front matter (`---` YAML or `+++` TOML), and the line after it.
fn front_matter(lines: &[&str]) -> (Option<String>, usize) {
    let mark = match lines.first().map(|line| line.trim_end()) {
        Some(mark @ ("---" | "+++")) => mark,
        _ => return (None, 0),
    };
    let is_end =
        |line: &&str| line.trim_end() == mark || (mark == "---" && line.trim_end() == "...");
    let Some(length) = lines[1..].iter().position(is_end) else {
        return (None, 0);
    };
    let inside = &lines[1..=length];
    let title = inside.iter().find_map(|line| {
        let (key, value) = line.split_once([':', '='])?;
        let is_title = key.trim().eq_ignore_ascii_case("title") && !key.starts_with(' ');
        let value = value.trim();
        let quoted = ['"', '\'']
            .into_iter()
            .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        let value = shortened(quoted.unwrap_or(value));
        (is_title && !value.is_empty()).then_some(value)
    });
    (title, length + 2)
}

/// `## Heading ##` and its level.
fn atx_heading(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let line = line.trim();
    let level = line.len() - line.trim_start_matches('#').len();
    let text = &line[level..];
    if !(1..=LEVELS).contains(&level) || indent > 3 || !text.starts_with([' ', '\t']) {
        return None;
    }
    let text = text.trim();
    let without_tail = text.trim_end_matches('#');
    match without_tail.ends_with(' ') || without_tail.is_empty() {
        true => Some((level, without_tail.trim())),
        false => Some((level, text)),
    }
}

/// The level of a heading that is underlined by the next line.
fn underline_level(line: &str, next: &str) -> Option<usize> {
    let next = next.trim_end();
    let starts_like_text = line
        .trim_start()
        .starts_with(|c: char| c.is_alphanumeric() || matches!(c, '`' | '*' | '_' | '[' | '"'));
    if !starts_like_text || line.starts_with("    ") || next.len() < 3 {
        return None;
    }
    match next {
        _ if next.chars().all(|c| c == '=') => Some(1),
        _ if next.chars().all(|c| c == '-') => Some(2),
        _ => None,
    }
}
