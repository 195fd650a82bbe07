//! Columns that sort a table: their heads are links, so they work without a script, and the address keeps the filter.

use std::cmp::Ordering;

use maud::{Markup, html};

use super::pages::calls::text;

/// How a table is sorted, by what the address says: `sort=calls`, `sort=-calls` for the largest first.
pub(super) struct Sort<'a> {
    path: &'a str,
    query: &'a [(String, String)],
    key: &'a str,
    is_descending: bool,
}

/// Which end comes first when a column is pressed for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Smallest,
    Largest,
}

impl<'a> Sort<'a> {
    /// What the query of a page says; without a word, the order of `default`.
    pub(super) fn of(path: &'a str, query: &'a [(String, String)], default: &'a str) -> Sort<'a> {
        let said = query
            .iter()
            .find(|(name, value)| name == "sort" && !value.is_empty());
        let said = said.map_or(default, |(_, value)| value.as_str());
        Sort {
            path,
            query,
            key: said.trim_start_matches('-'),
            is_descending: said.starts_with('-'),
        }
    }

    pub(super) fn key(&self) -> &str {
        self.key
    }

    /// The head of a column that sorts.
    pub(super) fn head(&self, key: &str, label: &str, class: &str, first: First) -> Markup {
        let is_here = self.key == key;
        let order = is_here.then_some(match self.is_descending {
            true => "descending",
            false => "ascending",
        });
        let is_descending = match is_here {
            true => !self.is_descending,
            false => first == First::Largest,
        };
        let kept = |name: &str| !matches!(name, "sort" | "cursor");
        let pairs = self
            .query
            .iter()
            .filter(|(name, value)| kept(name) && !value.is_empty());
        let mut pairs: Vec<(String, String)> = pairs.cloned().collect();
        let sign = if is_descending { "-" } else { "" };
        pairs.push(("sort".to_owned(), format!("{sign}{key}")));
        let class = Some(class).filter(|class| !class.is_empty());
        html! {
            th class=[class] scope="col" aria-sort=[order] { a.sort href=(format!("{}{}", self.path, text(&pairs))) { (label) } }
        }
    }

    /// In the order that was asked for; what has no value comes last either way.
    pub(super) fn by<T: PartialOrd>(&self, a: Option<T>, b: Option<T>) -> Ordering {
        match (a, b) {
            (Some(a), Some(b)) => {
                let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
                if self.is_descending {
                    order.reverse()
                } else {
                    order
                }
            }
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        }
    }
}
