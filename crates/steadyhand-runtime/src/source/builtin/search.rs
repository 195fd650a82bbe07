//! `use = "search"`: web search through SearXNG, Brave or Google Custom Search, one shape of result.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::header::{ACCEPT, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::{Handler, Invocation, Output, Tool, ToolError};

use crate::net::{Client, Limits, Method, Reach, Request, Url};
use crate::source::Context;
use steadyhand_config::SecretText;
use steadyhand_config::extensions::Fault;

const RESULTS_DEFAULT: u64 = 5;
/// What all three can give in one request.
const RESULTS_MAX: u64 = 10;
const QUERY_CHARS_MAX: usize = 400;
const SNIPPET_CHARS_MAX: usize = 500;
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Which search service is asked, and how.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchSettings {
    /// The service: searxng, brave or google
    pub engine: SearchEngine,
    /// Where it is; needed for searxng (its JSON format must be switched on there), known for the others
    pub url: Option<SecretText>,
    /// The key for it; needed for brave and google
    pub key: Option<SecretText>,
    /// The id of the search engine; needed for google
    pub cx: Option<SecretText>,
    /// The language of the results, such as en or de
    pub language: Option<String>,
}

/// A kind of search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SearchEngine {
    /// A SearXNG instance.
    Searxng,
    /// Brave Search.
    Brave,
    /// Google Custom Search.
    Google,
}

impl SearchEngine {
    fn name(self) -> &'static str {
        match self {
            SearchEngine::Searxng => "searxng",
            SearchEngine::Brave => "brave",
            SearchEngine::Google => "google",
        }
    }

    fn usual_url(self) -> Option<&'static str> {
        match self {
            SearchEngine::Searxng => None,
            SearchEngine::Brave => Some("https://api.search.brave.com/res/v1/web/search"),
            SearchEngine::Google => Some("https://www.googleapis.com/customsearch/v1"),
        }
    }
}

/// What is wrong with the settings, without reaching for anything outside.
pub fn check(settings: &SearchSettings) -> Vec<Fault> {
    let mut faults = Vec::new();
    let engine = settings.engine.name();
    let mut missing = |key: &str, help: String| {
        faults.push(Fault {
            at: format!("/{key}"),
            message: format!("{engine} needs {key}"),
            help: Some(help),
        });
    };
    let has_key = settings
        .key
        .as_ref()
        .is_some_and(|key| !key.expose().is_empty());
    match settings.engine {
        SearchEngine::Searxng => {
            if settings.url.is_none() {
                missing(
                    "url",
                    "Add url = \"http://localhost:8080\", where your instance is".to_owned(),
                );
            }
        }
        SearchEngine::Brave => {
            if !has_key {
                missing("key", "Add key = \"${env:BRAVE_API_KEY}\"".to_owned());
            }
        }
        SearchEngine::Google => {
            if !has_key {
                missing("key", "Add key = \"${env:GOOGLE_API_KEY}\"".to_owned());
            }
            if settings.cx.is_none() {
                missing(
                    "cx",
                    "Add cx = \"…\", the id of your Programmable Search Engine".to_owned(),
                );
            }
        }
    }
    if settings.url.is_some()
        && let Err(fault) = endpoint(settings)
    {
        faults.push(fault);
    }
    faults
}

/// The tool `search`.
pub fn tool(settings: &SearchSettings, context: &Context) -> Result<Tool, Fault> {
    if let Some(fault) = check(settings).into_iter().next() {
        return Err(fault);
    }
    let url = endpoint(settings)?;
    let handler = Search {
        reach: Reach::public_only().and(&url),
        url,
        settings: settings.clone(),
        http: context.http.clone(),
    };
    Ok(defined(Arc::new(handler)))
}

/// The tool as it is when nobody has said which service it asks: it says what is missing.
pub fn unconfigured() -> Tool {
    let refusal = "search has no service to ask; add to the configuration: [tools.search] kind = \"builtin\", use = \"search\", search = { engine = \"searxng\", url = \"http://localhost:8080\" }";
    defined(Arc::new(super::Refuses(refusal.to_owned())))
}

fn defined(handler: Arc<dyn Handler>) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to search for",
                "minLength": 1,
                "maxLength": QUERY_CHARS_MAX,
            },
            "count": {
                "type": "integer",
                "description": "How many results",
                "minimum": 1,
                "maximum": RESULTS_MAX,
                "default": RESULTS_DEFAULT,
            },
        },
        "required": ["query"],
    });
    let description = "Searches the web and gives titles, addresses and short extracts";
    Tool::new("search", description, schema, handler).of_kind("builtin")
}

fn endpoint(settings: &SearchSettings) -> Result<Url, Fault> {
    let given = settings.url.as_ref().map(SecretText::expose);
    let text = given.or(settings.engine.usual_url()).unwrap_or_default();
    let fault = |message: String| Fault {
        at: "/url".to_owned(),
        message,
        help: Some("Write one such as \"http://localhost:8080\"".to_owned()),
    };
    let mut url = Url::parse(text).map_err(|error| fault(format!("it is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault("it must start with http:// or https://".to_owned()));
    }
    // Where an instance is, is what people know; where its search is, we know.
    if settings.engine == SearchEngine::Searxng && !url.path().ends_with("/search") {
        let path = format!("{}/search", url.path().trim_end_matches('/'));
        url.set_path(&path);
    }
    Ok(url)
}

struct Search {
    settings: SearchSettings,
    url: Url,
    http: Client,
    reach: Reach,
}

impl Handler for Search {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let query = invocation.args["query"].as_str().unwrap_or_default();
            let asked = invocation.args["count"].as_u64().unwrap_or(RESULTS_DEFAULT);
            let count = asked.clamp(1, RESULTS_MAX) as usize;
            let limits = Limits {
                until: invocation.until,
                response_bytes_max: ANSWER_BYTES_MAX,
            };
            let request = self.request(query, count)?;
            let response = self
                .http
                .send(request, limits, &self.reach)
                .await?
                .success()?;
            let answer = response.json()?;
            let results = results(self.settings.engine, &answer, count).ok_or_else(|| {
                ToolError::answer(format!(
                    "{} answered with something that is no list of {} results; check engine and url",
                    response.site,
                    self.settings.engine.name()
                ))
                .result_lost()
            })?;
            Ok(Output::json(json!({
                "results": results,
                "engine": self.settings.engine.name(),
            })))
        })
    }
}

impl Search {
    fn request(&self, query: &str, count: usize) -> Result<Request, ToolError> {
        let settings = &self.settings;
        let count = count.to_string();
        let secret = |text: &Option<SecretText>| {
            text.as_ref()
                .map_or(String::new(), |text| text.expose().trim().to_owned())
        };
        let mut pairs = vec![("q", query.to_owned())];
        let mut request = Request::new(Method::GET, self.url.clone());
        request
            .headers
            .insert(ACCEPT, HeaderValue::from_static("application/json"));
        match settings.engine {
            SearchEngine::Searxng => {
                pairs.push(("format", "json".to_owned()));
                pairs.extend(
                    settings
                        .language
                        .clone()
                        .map(|language| ("language", language)),
                );
            }
            SearchEngine::Brave => {
                pairs.push(("count", count));
                pairs.extend(
                    settings
                        .language
                        .clone()
                        .map(|language| ("search_lang", language)),
                );
            }
            SearchEngine::Google => {
                pairs.push(("num", count));
                pairs.push(("key", secret(&settings.key)));
                pairs.push(("cx", secret(&settings.cx)));
                pairs.extend(settings.language.clone().map(|language| ("hl", language)));
            }
        }
        request.url.query_pairs_mut().extend_pairs(pairs);
        // SearXNG knows no keys itself, but often stands behind a proxy that does.
        let (name, value) = match settings.engine {
            SearchEngine::Brave => ("x-subscription-token", secret(&settings.key)),
            SearchEngine::Searxng if settings.key.is_some() => {
                ("authorization", format!("Bearer {}", secret(&settings.key)))
            }
            SearchEngine::Searxng | SearchEngine::Google => return Ok(request),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            ToolError::answer(
                "the key of search cannot stand in a header: it holds other than printable ASCII",
            )
            .never_started()
        })?;
        value.set_sensitive(true);
        request.headers.insert(HeaderName::from_static(name), value);
        Ok(request)
    }
}

/// The results of a service's answer in our one shape; `None` when it is no such answer.
fn results(engine: SearchEngine, answer: &Value, count: usize) -> Option<Vec<Value>> {
    let (list, url, snippet) = match engine {
        SearchEngine::Searxng => (answer.get("results"), "url", "content"),
        SearchEngine::Brave => (answer.pointer("/web/results"), "url", "description"),
        SearchEngine::Google => (answer.get("items"), "link", "snippet"),
    };
    // Brave and Google leave the list out when they find nothing; their answers then still say what they are.
    let nothing_found = match engine {
        SearchEngine::Searxng => false,
        SearchEngine::Brave => answer.get("type").is_some() && answer.get("web").is_none(),
        SearchEngine::Google => {
            answer.get("searchInformation").is_some() || answer.get("kind").is_some()
        }
    };
    let list = match list {
        Some(list) => list.as_array()?,
        None if nothing_found => return Some(Vec::new()),
        None => return None,
    };
    let text = |item: &Value, key: &str| plain(item[key].as_str().unwrap_or_default());
    let shown = list.iter().filter(|item| item[url].is_string()).take(count);
    Some(
        shown
            .map(|item| {
                json!({
                    "title": text(item, "title"),
                    "url": item[url],
                    "snippet": text(item, snippet),
                })
            })
            .collect(),
    )
}

/// Without the marks some services put around the words they found, and bounded.
fn plain(text: &str) -> String {
    let text = text.replace("<strong>", "").replace("</strong>", "");
    let text = text.replace("<b>", "").replace("</b>", "");
    match text.char_indices().nth(SNIPPET_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
