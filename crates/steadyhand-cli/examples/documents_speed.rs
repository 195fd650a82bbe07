//! How fast `rag_query` is: indexes 1,000 generated documents of about 4 KB and asks 2,000 questions.
//!
//! Run: `cargo run --release -p steadyhand-server --example documents_speed [DOCUMENTS] [QUERIES]`

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{Call, ToolExecutor, ToolManager};
use steadyhand_config::documents::DocumentsSettings;
use steadyhand_config::progress::Progress;
use steadyhand_store::documents;
use tokio::time::Instant;

const DOCUMENT_BYTES: usize = 4_096;
const VOCABULARY: usize = 5_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let documents = numbers.next().transpose()?.unwrap_or(1_000);
    let queries = numbers.next().transpose()?.unwrap_or(2_000);

    let home = tempfile::tempdir()?;
    let mut random = Random(42);
    write_documents(&home.path().join("docs"), documents, &mut random)?;

    let (executor, _) = open(home.path())?;
    let began = Instant::now();
    let first = ask(&executor, "marker7").await?;
    let indexed = began.elapsed();
    say(&format!(
        "{} documents indexed in {indexed:.2?}, the first answer included",
        first["indexed"]
    ));
    if first["results"][0]["source"] != "page-7.md" {
        return Err(format!("the wrong document came first: {first:#}").into());
    }

    // Each second one of these also looks through the folder for changes, as in real use.
    let mut took = Vec::with_capacity(queries);
    for n in 0..queries {
        let words: Vec<String> = (0..2 + n % 5).map(|_| random.word()).collect();
        let query = format!(
            "how is {} marker{}?",
            words.join(" "),
            random.below(documents)
        );
        let began = Instant::now();
        ask(&executor, &query).await?;
        took.push(began.elapsed());
    }
    took.sort();
    say(&format!(
        "{queries} queries, one after the other: {}",
        percentiles(&took)
    ));

    let mut took = Vec::with_capacity(50);
    for n in 0..50 {
        // Opened anew, as `steadyhand call` does each time.
        let (executor, _) = open(home.path())?;
        let began = Instant::now();
        ask(&executor, &format!("marker{n}")).await?;
        took.push(began.elapsed());
    }
    took.sort();
    say(&format!(
        "first query after opening anew, index there: {}",
        percentiles(&took)
    ));

    let began = Instant::now();
    std::fs::write(
        home.path().join("docs/page-3.md"),
        "# Changed\n\nfreshlychanged\n",
    )?;
    while ask(&executor, "freshlychanged").await?["total"] != 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    say(&format!(
        "a changed file was found after {:.2?}",
        began.elapsed()
    ));
    Ok(())
}

fn open(home: &Path) -> Result<(ToolExecutor, documents::Documents), Box<dyn Error>> {
    let services = InternalHandlers::new();
    let settings = DocumentsSettings::of(["docs"]);
    let state = home.join("state");
    let documents =
        documents::register(&services, Some(settings), home, &state, &Progress::silent());
    let tools = ToolManager::new();
    tools.add(services.tool(
        "search",
        steadyhand_config::documents::DESCRIPTION,
        steadyhand_config::documents::schema(),
        steadyhand_config::documents::RAG_QUERY,
    ))?;
    Ok((ToolExecutor::new(tools), documents))
}

async fn ask(executor: &ToolExecutor, query: &str) -> Result<Value, Box<dyn Error>> {
    let long = Duration::from_secs(600);
    let call = Call::new("search", json!({ "query": query }))
        .timeout(long)
        .deadline(long);
    let outcome = executor.execute(call).await;
    match outcome.output() {
        Some(output) => Ok(output.value().clone()),
        None => Err(format!("{:?}", outcome.failure()).into()),
    }
}

fn write_documents(folder: &Path, documents: usize, random: &mut Random) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for n in 0..documents {
        let mut text = format!("# Page {n}\n\nThe marker{n} stands here.\n");
        while text.len() < DOCUMENT_BYTES {
            text.push_str(&format!("\n## {} {}\n\n", random.word(), random.word()));
            for _ in 0..60 {
                text.push_str(&random.word());
                text.push_str(if random.below(12) == 0 { ". " } else { " " });
            }
            text.push('\n');
        }
        std::fs::write(folder.join(format!("page-{n}.md")), text)?;
    }
    Ok(())
}

/// The same documents each time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit.max(1)
    }

    /// Some words are much more common than others, as in any language.
    fn word(&mut self) -> String {
        let (a, b) = (self.below(VOCABULARY), self.below(VOCABULARY));
        let syllables = ["ka", "ro", "mi", "te", "lu", "sa", "ne", "vo", "di", "pa"];
        let digits = format!("{:04}", a * b / VOCABULARY);
        digits
            .bytes()
            .map(|digit| syllables[usize::from(digit - b'0')])
            .collect()
    }
}

fn percentiles(sorted: &[Duration]) -> String {
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize];
    format!(
        "p50 {:.2?}, p99 {:.2?}, slowest {:.2?}",
        at(0.5),
        at(0.99),
        at(1.0)
    )
}

#[allow(clippy::print_stdout, reason = "this is what the example is for")]
fn say(line: &str) {
    println!("{line}");
}
