//! Everything on disk that is a database: past calls, idempotency keys, the index of documents. The only crate that names SQLite.

#![allow(
    missing_docs,
    reason = "a part of the program, not a library for others: names say what things are"
)]

pub mod documents;
pub mod history;
