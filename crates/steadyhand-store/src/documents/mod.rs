//! Document search: folders of Markdown, text and HTML, found by words, offered as `rag_query`.

mod answer;
mod fresh;
mod html;
mod index;
mod passages;
mod query;
mod read;
mod scan;
mod shelf;
mod watch;
mod words;

pub use words::Words;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{CallContext, Category, ToolError};

use answer::{Answer, Searched};
use fresh::{Freshness, Keeper};
use index::Trouble;
use query::Readers;
use shelf::{Shelf, shelves};
use steadyhand_config::Configuration;
use steadyhand_config::documents::{DocumentsSettings, LIMIT_DEFAULT, LIMIT_MAX, RAG_QUERY};
use steadyhand_config::progress::Progress;
use steadyhand_config::services::Services;

/// Offers `rag_query` to the tools of kind `internal`. Nothing is read before the first query, or
/// before [`Documents::start`]. Relative folders start at `folder`; indexes are kept in `state`.
pub fn register(
    handlers: &InternalHandlers,
    settings: Option<DocumentsSettings>,
    folder: &Path,
    state: &Path,
    progress: &Progress,
) -> Documents {
    let documents = Documents::new(settings.as_ref(), folder, state, progress);
    let search = documents.clone();
    handlers.register(RAG_QUERY, move |call: CallContext, args: Value| {
        let search = search.clone();
        async move { search.query(&call, &args).await }
    });
    documents
}

/// Document search as a service that the configuration sets up.
#[derive(Default)]
pub struct DocumentSearch {
    /// What is offered, and the settings it was made from.
    current: Mutex<Option<(Value, Documents)>>,
}

impl Services for DocumentSearch {
    fn offer(
        &self,
        configuration: &Configuration,
        handlers: &InternalHandlers,
        state: &Path,
        progress: &Progress,
    ) {
        let settings = configuration.document.value.get("documents");
        let settings = settings.cloned().unwrap_or_default();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = current.as_ref().map(|(before, _)| before);
        if before == Some(&settings) {
            return;
        }
        let is_configured = configuration.root.documents.is_some();
        // A service of the application's own is not replaced by one that nobody has configured.
        if !is_configured && handlers.has(RAG_QUERY) && before.is_none() {
            return;
        }
        let wanted = configuration.root.documents.clone();
        let documents = register(handlers, wanted, &configuration.folder, state, progress);
        *current = Some((settings, documents));
    }
}

/// All collections of documents. Cheap to clone; the last clone ends what runs in the background.
#[derive(Clone)]
pub struct Documents {
    collections: Arc<Result<Vec<Collection>, String>>,
}

impl Documents {
    /// The collections of these settings.
    pub fn new(
        settings: Option<&DocumentsSettings>,
        folder: &Path,
        state: &Path,
        progress: &Progress,
    ) -> Documents {
        let shelves = match settings {
            Some(settings) => shelves(settings, folder),
            None => Ok(Vec::new()),
        };
        let collections = shelves.map(|shelves| {
            let collection = |shelf| Collection::new(shelf, state, progress);
            shelves.into_iter().map(collection).collect()
        });
        Documents {
            collections: Arc::new(collections),
        }
    }

    /// Begins to index in the background, so that the first query need not wait for it. Must be
    /// called on a runtime.
    pub fn start(&self) {
        for collection in self.collections.iter().flatten() {
            collection.keeper.start();
        }
    }

    /// The answer to `{query, limit?, collection?}`.
    pub async fn query(&self, call: &CallContext, args: &Value) -> Result<Value, ToolError> {
        let asked = Asked::read(args)?;
        let collections = self.chosen(asked.collection.as_deref())?;
        if asked.words.is_empty() {
            let note = "the query has no words or numbers to search for";
            return Ok(json!({"results": [], "total": 0, "notes": [note]}));
        }
        let searches = collections
            .iter()
            .map(|collection| collection.search(call, &asked));
        let mut answer = Answer::default();
        let mut failed = None;
        for (collection, answered) in collections.iter().zip(join_all(searches).await) {
            match answered {
                Ok(searched) => answer.add(&collection.shelf, searched),
                Err(error) if collections.len() == 1 => return Err(error),
                Err(error) => {
                    answer
                        .notes
                        .push(format!("{}: {error}", collection.shelf.name));
                    failed.get_or_insert(error);
                }
            }
        }
        match failed {
            Some(error) if answer.collections == 0 => Err(error),
            _ => Ok(answer.json(asked.limit, collections.len() > 1)),
        }
    }

    fn chosen(&self, name: Option<&str>) -> Result<Vec<&Collection>, ToolError> {
        let all = match &*self.collections {
            Ok(all) => all,
            Err(reason) => {
                let text = format!("the section [documents] of the configuration: {reason}");
                return Err(ToolError::answer(text).never_started());
            }
        };
        if all.is_empty() {
            let text = "no documents are configured; add these lines to the configuration:\n\n\
                        [documents]\nfolders = [\"docs\"]\n";
            return Err(ToolError::answer(text)
                .user_message("There are no documents to search yet.")
                .never_started());
        }
        let Some(name) = name else {
            return Ok(all.iter().collect());
        };
        let chosen = all.iter().find(|collection| collection.shelf.name == name);
        chosen.map(|collection| vec![collection]).ok_or_else(|| {
            let names: Vec<&str> = all.iter().map(|one| one.shelf.name.as_str()).collect();
            let names = names.join("', '");
            invalid(format!(
                "there is no collection '{name}'; there is '{names}'"
            ))
        })
    }
}

/// What a call asks for.
struct Asked {
    words: Words,
    limit: usize,
    collection: Option<String>,
}

impl Asked {
    // By hand: the tool's schema may state no more than `query`, so nothing else is checked yet.
    fn read(args: &Value) -> Result<Asked, ToolError> {
        let query = match args.get("query") {
            Some(Value::String(query)) => query,
            None | Some(Value::Null) => return Err(invalid("missing 'query'".to_owned())),
            Some(other) => return Err(invalid(format!("'query' is text, not {other}"))),
        };
        let limit = match args.get("limit") {
            None | Some(Value::Null) => LIMIT_DEFAULT,
            Some(limit) => whole_number(limit)
                .filter(|limit| (1..=LIMIT_MAX).contains(limit))
                .ok_or_else(|| {
                    invalid(format!(
                        "'limit' is a number from 1 to {LIMIT_MAX}, not {limit}"
                    ))
                })?,
        };
        let collection = match args.get("collection") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(other) => return Err(invalid(format!("'collection' is a name, not {other}"))),
        };
        Ok(Asked {
            words: Words::of(query),
            limit: limit as usize,
            collection,
        })
    }
}

fn whole_number(value: &Value) -> Option<u64> {
    let fraction_free = || value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0);
    value.as_u64().or_else(|| fraction_free().map(|n| n as u64))
}

fn invalid(fault: String) -> ToolError {
    let text: String = fault.chars().take(500).collect();
    ToolError::of(Category::Validation, format!("Invalid parameters: {text}"))
}

/// One collection: its index, who keeps it fresh, and who reads it.
struct Collection {
    shelf: Arc<Shelf>,
    keeper: Keeper,
    readers: Readers,
}

impl Collection {
    fn new(shelf: Shelf, state: &Path, progress: &Progress) -> Collection {
        let index = index_path(&shelf, state);
        let shelf = Arc::new(shelf);
        let generation = Arc::new(AtomicU64::new(0));
        Collection {
            keeper: Keeper::new(
                Arc::clone(&shelf),
                index.clone(),
                Arc::clone(&generation),
                progress.clone(),
            ),
            readers: Readers::new(index, generation),
            shelf,
        }
    }

    async fn search(&self, call: &CallContext, asked: &Asked) -> Result<Searched, ToolError> {
        let mut attempts_left = 2;
        loop {
            let notes = self.refresh(call).await?;
            match self.readers.search(&asked.words, asked.limit).await {
                Ok(found) => return Ok(Searched { found, notes }),
                // Somebody has damaged or removed it since: made anew, once.
                Err(Trouble::Broken(reason)) if attempts_left > 1 => {
                    attempts_left -= 1;
                    tracing::warn!(
                        collection = self.shelf.name,
                        reason,
                        "the index of documents is broken"
                    );
                    self.keeper.doubt();
                }
                Err(Trouble::Broken(reason) | Trouble::Failed(reason)) => {
                    return Err(ToolError::new(reason));
                }
                Err(Trouble::Stopped) => return Err(ToolError::new("the search was interrupted")),
            }
        }
    }

    async fn refresh(&self, call: &CallContext) -> Result<Vec<String>, ToolError> {
        let name = &self.shelf.name;
        let tell = |done: u64, total: u64| {
            call.progress(done as f64, Some(total as f64), format!("indexing {name}"));
        };
        let (status, behind) = match self.keeper.fresh(call.until(), tell).await {
            Freshness::Fresh(status) => (status, None),
            Freshness::Behind(status) => {
                let note = match status.progress {
                    Some((done, total)) => {
                        format!("{done} of {total} changed files are indexed so far")
                    }
                    None => "the latest changes are not indexed yet".to_owned(),
                };
                (status, Some(note))
            }
            Freshness::NotReady(status) => {
                let how_far = match status.progress {
                    Some((done, total)) => format!("{done} of {total} files are indexed so far"),
                    None => "its files are still being counted".to_owned(),
                };
                let text = format!(
                    "{name} is being indexed for the first time: {how_far}; it goes on in the background, ask again soon"
                );
                return Err(ToolError::of(Category::Timeout, text)
                    .user_message(
                        "The documents are still being read. Please ask again in a moment.",
                    )
                    .never_started());
            }
        };
        if let Some(reason) = status.failed {
            return Err(ToolError::answer(reason).never_started());
        }
        Ok(status.notes.into_iter().chain(behind).collect())
    }
}

/// One file per set of folders and what is taken of them, whoever asks.
fn index_path(shelf: &Shelf, state: &Path) -> PathBuf {
    let hash = Sha256::digest(shelf.fingerprint());
    let hash: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let name = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = shelf.name.chars().take(40).map(name).collect();
    let format = index::FORMAT;
    state
        .join("documents")
        .join(format!("{name}-{hash}.v{format}.db"))
}
