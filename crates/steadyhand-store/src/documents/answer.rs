//! The answer to a query, put together from what the collections answer.

use serde_json::{Map, Value, json};

use super::query::Found;
use super::shelf::Shelf;

/// What one collection answers.
pub(super) struct Searched {
    pub(super) found: Found,
    pub(super) notes: Vec<String>,
}

/// The answers of all collections, as one.
#[derive(Default)]
pub(super) struct Answer {
    pub(super) collections: usize,
    /// Score, and the result with the name of its collection.
    results: Vec<(f64, String, Map<String, Value>)>,
    total: u64,
    files: u64,
    has_all_words: bool,
    skipped: Map<String, Value>,
    pub(super) notes: Vec<String>,
}

impl Answer {
    /// Adds what a collection answers.
    pub(super) fn add(&mut self, shelf: &Shelf, searched: Searched) {
        let Searched { found, notes } = searched;
        self.collections += 1;
        self.total += found.total;
        self.files += found.files;
        self.has_all_words |= found.has_all_words;
        self.notes.extend(notes);
        for (reason, files) in found.skipped {
            let before = self.skipped.get(&reason).and_then(Value::as_u64);
            self.skipped
                .insert(reason, json!(files + before.unwrap_or(0)));
        }
        for hit in found.hits {
            let mut result = Map::new();
            let source = shelf.source(hit.root, &hit.relative);
            result.insert("text".to_owned(), json!(hit.text));
            result.insert("source".to_owned(), json!(source));
            result.insert("title".to_owned(), json!(hit.title));
            result.insert("heading".to_owned(), json!(hit.heading));
            result.insert("line".to_owned(), json!(hit.line));
            result.insert("score".to_owned(), json!(six_digits(hit.score)));
            self.results.push((hit.score, shelf.name.clone(), result));
        }
    }

    /// As JSON, the best results only.
    pub(super) fn json(mut self, limit: usize, several: bool) -> Value {
        // Scores of different indexes are alike enough to be put in one order, not equal in scale.
        self.results.sort_by(|a, b| b.0.total_cmp(&a.0));
        let with_collection = |(_, name, mut result): (f64, String, Map<String, Value>)| {
            if several {
                result.insert("collection".to_owned(), json!(name));
            }
            Value::Object(result)
        };
        let results = self.results.into_iter().take(limit).map(with_collection);
        let results: Vec<Value> = results.collect();
        let mut answer = json!({
            "results": results,
            "total": self.total,
            "has_all_words": self.has_all_words,
            "indexed": self.files,
        });
        if !self.skipped.is_empty() {
            answer["skipped"] = Value::Object(self.skipped);
        }
        if !self.notes.is_empty() {
            answer["notes"] = json!(self.notes);
        }
        answer
    }
}

/// A score as short as it can be and still tell hits apart.
fn six_digits(score: f64) -> f64 {
    format!("{score:.5e}").parse().unwrap_or(score)
}
