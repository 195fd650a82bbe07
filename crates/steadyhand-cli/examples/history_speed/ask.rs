//! The questions a history is asked, and how long each takes: first thing in a fresh process, again and again in one, and
//! while calls are written as fast as they can be.

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use steadyhand_store::history::{Filter, History, Window};
use tokio::time::Instant;

use crate::calls::{self, Outcomes, WEEK_MS};
use crate::{open, say};

const PAGE: usize = 50;
/// Fresh processes for each question.
const FRESH: usize = 15;
/// Calls that may wait to be written, while others are asked for.
const QUEUED_MAX: u64 = 2000;

enum Ask {
    /// Words of a filter.
    Page(&'static str),
    /// The same, in the middle of the week.
    Deep(&'static str),
    /// One call in the middle of the week, by its id.
    One,
    Trend(Window, Option<&'static str>),
}

const QUESTIONS: [(&str, Ask); 24] = [
    ("the newest page", Ask::Page("")),
    ("a page half a million calls deep, by cursor", Ask::Deep("")),
    ("a tool", Ask::Page("tool:home_4")),
    ("a tool, deep", Ask::Deep("tool:home_4")),
    ("tools by pattern", Ask::Page("tool:home_*")),
    ("a server", Ask::Page("server:demo")),
    ("a state", Ask::Page("state:timeout")),
    ("failed", Ask::Page("state:failed")),
    ("failed, deep", Ask::Deep("state:failed")),
    ("an error", Ask::Page("error:timeout")),
    (
        "an error that none has",
        Ask::Page("error:rate_limit_error"),
    ),
    ("a caller", Ask::Page("caller:\"chat 77\"")),
    ("callers by pattern", Ask::Page("caller:chat*7")),
    ("slow", Ask::Page(">500ms")),
    ("so slow that there is none", Ask::Page(">1m")),
    ("slower than most", Ask::Page(">39ms")),
    ("the last hour", Ask::Page("since:1h state:failed")),
    (
        "several at once",
        Ask::Page("tool:home_* state:failed caller:chat* >20ms"),
    ),
    ("a text that many have", Ask::Page("kitchen")),
    ("a text that none has", Ask::Page("no-such-text")),
    ("one call by its id", Ask::One),
    ("trend of an hour", Ask::Trend(Window::Hour, None)),
    ("trend of a day", Ask::Trend(Window::Day, None)),
    (
        "trend of a week, one tool",
        Ask::Trend(Window::Week, Some("home_4")),
    ),
];

/// How long each answer took, and what it was.
type Answered = (Vec<f64>, String);

/// Asks everything, and prints the table.
pub(crate) fn measure(path: &Path, runs: usize) -> Result<(), Box<dyn Error>> {
    let fresh: Vec<Vec<f64>> = (0..QUESTIONS.len())
        .map(|question| (0..FRESH).map(|_| in_a_process(path, question)).collect())
        .collect::<Result<_, _>>()?;
    let history = open(path);
    history.flush(Duration::from_secs(60));
    let asked = |history: &History| -> Result<Vec<Answered>, Box<dyn Error>> {
        QUESTIONS
            .iter()
            .map(|(_, ask)| times(history, ask, runs))
            .collect()
    };
    let again = asked(&history)?;
    let (meanwhile, per_second) = while_written(&history, || asked(&history))?;
    say(&format!(
        "| median · worst, ms, of a page of {PAGE} | in a fresh process ({FRESH}) | again and again ({runs}) | while {per_second:.0} calls a second are written ({runs}) | |"
    ));
    say("| --- | ---: | ---: | ---: | --- |");
    for (number, (what, ask)) in QUESTIONS.iter().enumerate() {
        let words = match ask {
            Ask::Page(words) | Ask::Deep(words) if !words.is_empty() => format!(" `{words}`"),
            _ => String::new(),
        };
        let cells =
            [&fresh[number], &again[number].0, &meanwhile[number].0].map(|took| figures(took));
        say(&format!(
            "| {what}{words} | {} | {} |",
            cells.join(" | "),
            again[number].1
        ));
    }
    Ok(())
}

fn figures(took: &[f64]) -> String {
    let mut took = took.to_vec();
    took.sort_by(f64::total_cmp);
    format!("{:.1} · {:.1}", took[took.len() / 2], took[took.len() - 1])
}

/// Writes calls for as long as something else is done, as fast as they are taken. How many a second that were.
fn while_written<T>(
    history: &History,
    work: impl FnOnce() -> Result<T, Box<dyn Error>>,
) -> Result<(T, f64), Box<dyn Error>> {
    let outcomes = Outcomes::make()?;
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            let recorder = history.recorder();
            for number in 1 << 40.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                while history.health().queued > QUEUED_MAX {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                calls::tell(&recorder, &outcomes, number, steadyhand::clock::wall_ms());
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    });
    let per_second = written.into_inner() as f64 / began.elapsed().as_secs_f64();
    Ok((result?, per_second))
}

fn times(history: &History, ask: &Ask, runs: usize) -> Result<(Vec<f64>, String), Box<dyn Error>> {
    let mut found = String::new();
    let prepared = prepare(history, ask)?;
    let mut took = Vec::with_capacity(runs);
    for _ in 0..runs {
        let began = Instant::now();
        found = put(history, ask, &prepared)?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((took, found))
}

/// What a question needs to be asked: a place in the middle, an id.
fn prepare(history: &History, ask: &Ask) -> Result<Option<String>, Box<dyn Error>> {
    if let Ask::Page(_) | Ask::Trend(..) = ask {
        return Ok(None);
    }
    let middle = format!("until:{}", steadyhand::clock::wall_ms() - WEEK_MS / 2);
    let page = history.page(&Filter::parse(&middle, 0)?, None, 2)?;
    Ok(match ask {
        Ask::One => page.calls.first().map(|call| call.id.clone()),
        _ => page.next.map(|next| next.to_string()),
    })
}

fn put(history: &History, ask: &Ask, prepared: &Option<String>) -> Result<String, Box<dyn Error>> {
    let now_ms = steadyhand::clock::wall_ms();
    let (words, from) = match ask {
        Ask::Page(words) => (*words, None),
        Ask::Deep(words) => (*words, prepared.as_deref().map(str::parse).transpose()?),
        Ask::One => {
            let found = history.call(prepared.as_deref().unwrap_or_default())?;
            return Ok(if found.is_some() { "1" } else { "none" }.to_owned());
        }
        Ask::Trend(window, tool) => {
            let trends = history.trends(*tool, *window)?;
            return Ok(format!(
                "{} calls in {}",
                trends.total.calls,
                window.as_str()
            ));
        }
    };
    let page = history.page(&Filter::parse(words, now_ms)?, from, PAGE)?;
    let count = page.calls.len();
    Ok(match page.searched_to_ms {
        None => count.to_string(),
        Some(ms) => format!(
            "{count}, searched {:.1} days back",
            (now_ms - ms) as f64 / 86_400_000.0
        ),
    })
}

/// The time from opening the file to the answer, as a process measured it that did nothing else.
fn in_a_process(path: &Path, question: usize) -> Result<f64, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    let command = command.arg("--ask").arg(question.to_string()).arg(path);
    let history = open(path);
    history.flush(Duration::from_secs(60));
    let prepared = prepare(&history, &QUESTIONS[question].1)?;
    drop(history);
    let said = command.args(prepared).output()?;
    let text = String::from_utf8_lossy(&said.stdout);
    text.trim().parse().map_err(|_| {
        let said = String::from_utf8_lossy(&said.stderr);
        format!("the process that was to ask said: {text}{said}").into()
    })
}

/// The other side of it.
pub(crate) fn answer(words: &[String]) -> Result<(), Box<dyn Error>> {
    let [question, path, prepared @ ..] = words else {
        return Err("which question, and of which file?".into());
    };
    let (_, ask) = &QUESTIONS[question.parse::<usize>()?];
    let began = Instant::now();
    let history = open(Path::new(path));
    history.flush(Duration::from_secs(60));
    put(&history, ask, &prepared.first().cloned())?;
    say(&format!("{:.3}", began.elapsed().as_secs_f64() * 1e3));
    Ok(())
}
