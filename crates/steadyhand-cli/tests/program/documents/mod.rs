//! `rag_query` and the kind `internal`: real files in real folders, asked through the executor.

mod answers;
mod broken;
mod files;
mod fresh;
mod hostile;
mod internal;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use steadyhand::{Call, Outcome, ToolExecutor, ToolManager};
use steadyhand_config::documents::DocumentsSettings;
use steadyhand_config::progress::Progress;
use steadyhand_runtime::source::internal::InternalSettings;
use steadyhand_runtime::source::{Context, Settings};
use steadyhand_store::documents::{self, Documents};
use tempfile::TempDir;

use crate::support::context;

/// How long anything here may take before it counts as hanging.
const LONG: Duration = Duration::from_secs(60);

/// A folder `docs` with files, a folder for state, and a tool `search` over them.
struct Library {
    home: TempDir,
    executor: ToolExecutor,
    documents: Documents,
}

impl Library {
    /// Over these files, with the settings of a `[documents]` section as JSON.
    async fn new(files: &[(&str, &str)], settings: Value) -> Library {
        let home = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(home.path().join("docs")).expect("the folder of documents");
        for (name, text) in files {
            write(&home.path().join("docs").join(name), text);
        }
        let (executor, documents) = open(home.path(), Some(settings), Progress::silent()).await;
        Library {
            home,
            executor,
            documents,
        }
    }

    /// Over these files, all else by default.
    async fn of(files: &[(&str, &str)]) -> Library {
        Library::new(files, json!({"folders": ["docs"]})).await
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("docs").join(name)
    }

    /// The only index there is.
    fn index(&self) -> PathBuf {
        let files = std::fs::read_dir(self.home.path().join("state/documents"));
        files
            .expect("the folder of indexes")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.extension().is_some_and(|ending| ending == "db"))
            .expect("an index")
    }

    async fn call(&self, args: Value) -> Outcome {
        let call = Call::new("search", args).timeout(LONG).deadline(LONG);
        self.executor.execute(call).await
    }

    async fn ask(&self, args: Value) -> Value {
        answer(self.call(args).await)
    }

    async fn search(&self, query: &str) -> Value {
        self.ask(json!({ "query": query })).await
    }

    async fn sources(&self, query: &str) -> Vec<String> {
        sources(&self.search(query).await)
    }

    /// Asks again and again until the answer is as it should be.
    async fn until(&self, query: &str, is_right: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let asking = async {
            loop {
                last = self.search(query).await;
                if is_right(&last) {
                    return last.clone();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let found = tokio::time::timeout(LONG, asking).await;
        found.unwrap_or_else(|_| panic!("never the right answer to '{query}'"))
    }
}

/// The executor of a process that has this `[documents]` section and one tool `search`.
async fn open(
    home: &Path,
    settings: Option<Value>,
    progress: Progress,
) -> (ToolExecutor, Documents) {
    let context = context(home);
    let settings = settings.map(|settings| {
        let settings: DocumentsSettings = serde_json::from_value(settings).expect("settings");
        assert_eq!(settings.check(), []);
        settings
    });
    let documents = documents::register(
        &context.internal,
        settings,
        &context.folder,
        &context.state,
        &progress,
    );
    let executor = tools(json!({"handler": "rag_query"}), "search", &context).await;
    (executor, documents)
}

/// The tools of one source of kind `internal`.
async fn tools(settings: Value, name: &str, context: &Context) -> ToolExecutor {
    let settings: InternalSettings = serde_json::from_value(settings).expect("settings");
    assert_eq!(settings.check(), []);
    let source = settings.build(name, context).expect("a source");
    let manager = ToolManager::new();
    let refused = manager.add_all(source.tools().await.expect("tools"));
    assert!(refused.is_empty(), "{refused:?}");
    ToolExecutor::new(manager)
}

fn write(path: &Path, text: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("its folder");
    std::fs::write(path, text).expect("a file is written");
}

fn answer(outcome: Outcome) -> Value {
    assert!(outcome.is_success(), "{:?}", outcome.failure());
    outcome.output().expect("an output").value().clone()
}

fn error(outcome: &Outcome) -> String {
    outcome.failure().expect("a failure").message.clone()
}

fn sources(answer: &Value) -> Vec<String> {
    let results = answer["results"].as_array().expect("results");
    let source = |result: &Value| result["source"].as_str().expect("a source").to_owned();
    results.iter().map(source).collect()
}

/// Remembers what was told of progress.
#[derive(Default)]
struct Told(std::sync::Mutex<Vec<(String, u64, u64)>>);

impl Told {
    fn progress(self: &Arc<Told>) -> Progress {
        Progress::to(Arc::clone(self) as Arc<dyn steadyhand_config::progress::Watcher>)
    }

    fn all(&self) -> Vec<(String, u64, u64)> {
        self.0.lock().expect("no panic").clone()
    }
}

impl steadyhand_config::progress::Watcher for Told {
    fn step(&self, what: &str, done: u64, total: u64) {
        self.0
            .lock()
            .expect("no panic")
            .push((what.to_owned(), done, total));
    }

    fn finished(&self, what: &str) {
        self.0
            .lock()
            .expect("no panic")
            .push((format!("{what} finished"), 0, 0));
    }
}
