//! Past calls: lists by filter and cursor, one in full, how tools fared over time, and running one again.

use std::cmp::Ordering;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use steadyhand::wildcard::wild;
use tokio_stream::wrappers::ReceiverStream;
use utoipa::{IntoParams, ToSchema};

use super::calls::View;
use super::status::{self, Refused, Why};
use super::tools::no_such_tool;
use super::who::CallerHeaders;
use super::{Account, App, Asked, Asking, Caller, Named, header_text, shapes};
use crate::views::{self, calls::NotAgain};
use steadyhand_runtime::access::Identity;
use steadyhand_runtime::admission::RunningCall;
use steadyhand_store::history::{
    CallDetails, CallRecord, CallState, CallSummary, Callers, Cursor, Filter, History,
    HistoryError, Page, StateWord, Trends, Window,
};

const LIMIT: usize = 50;
const LIMIT_MAX: usize = 1000;

/// Which calls. Documented here; read pair by pair, since a filter may say the same word twice.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "for the document")]
pub struct CallsAsked {
    /// Names of tools, separated by commas; * stands for anything
    tool: Option<String>,
    /// running, ok, error, timeout, cancelled, rejected, interrupted, failed, fallback
    state: Option<String>,
    /// Codes of failures, separated by commas
    error: Option<String>,
    /// Where the tool comes from
    server: Option<String>,
    /// Who asked
    caller: Option<String>,
    /// How long ago at most (1h), or a moment
    since: Option<String>,
    /// Before this moment
    until: Option<String>,
    /// Took longer than this (500ms)
    slower: Option<String>,
    /// A text that occurs in it
    text: Option<String>,
    /// All of this in the words people type: tool:home_* state:failed >500ms
    q: Option<String>,
    /// Where a page before said the next one begins
    cursor: Option<String>,
    /// 1 to 1000; 50 if not said
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// time, tool, state, took, tries or caller; with a minus before it, the largest first. The newest 1000 calls that fit
    /// are sorted; default: -time, over all of them
    #[param(example = "-took")]
    sort: Option<String>,
}

/// The same without pages.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "for the document")]
pub struct ExportAsked {
    /// Names of tools, separated by commas; * stands for anything
    tool: Option<String>,
    /// running, ok, error, timeout, cancelled, rejected, interrupted, failed, fallback
    state: Option<String>,
    /// Codes of failures, separated by commas
    error: Option<String>,
    /// Where the tool comes from
    server: Option<String>,
    /// Who asked
    caller: Option<String>,
    /// How long ago at most (1h), or a moment
    since: Option<String>,
    /// Before this moment
    until: Option<String>,
    /// Took longer than this (500ms)
    slower: Option<String>,
    /// A text that occurs in it
    text: Option<String>,
    /// All of this in the words people type: tool:home_* state:failed >500ms
    q: Option<String>,
}

/// A call in a list; one that runs says for how long.
#[derive(Serialize, ToSchema)]
#[schema(as = ListedCall)]
pub struct Listed {
    #[serde(flatten)]
    pub call: CallSummary,
    /// How long ago it came in, in milliseconds; its deadline does not count what it waited for an approval
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<f64>,
}

/// A page of calls, the newest first; those that run come before all others
#[derive(Serialize, ToSchema)]
#[schema(as = CallPage)]
pub struct Calls {
    pub calls: Vec<Listed>,
    /// Where the next page begins
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The search stopped here, to be quick: go on with next
    #[serde(skip_serializing_if = "Option::is_none")]
    pub searched_to_ms: Option<u64>,
    /// So many of the newest calls that fit were sorted; absent without a sort
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sorted_of: Option<usize>,
}

/// Calls, past and running
///
/// The newest first, by filter; pages by cursor.
#[utoipa::path(
    get,
    operation_id = "list_calls",
    path = "/v1/calls",
    tag = "calls",
    params(CallsAsked),
    responses(
        (status = 200, description = "A page of calls", body = Calls),
        shapes::Errors,
    )
)]
pub async fn list(
    State(app): State<Arc<App>>,
    Asked(pairs): Asked<Vec<(String, String)>>,
    Asking(identity): Asking,
) -> Result<Response, Refused> {
    Ok(status::answer(&calls(&app, &identity, &pairs).await?))
}

/// The page of calls that a query asks for, as far as this one may see them.
pub async fn calls(
    app: &App,
    identity: &Identity,
    pairs: &[(String, String)],
) -> Result<Calls, Refused> {
    let asked = Question::read(pairs, identity)?;
    let running = match asked.cursor {
        None => running_rows(app, &asked.filter),
        Some(_) => Vec::new(),
    };
    // What runs is known even when the database is not.
    if asked.filter.state == [StateWord::Running] {
        return Ok(Calls {
            calls: running,
            next: None,
            searched_to_ms: None,
            sorted_of: None,
        });
    }
    let (filter, cursor) = (asked.filter, asked.cursor);
    let sort = asked.sort.filter(|sort| !sort.is_default());
    let fetched = if sort.is_some() {
        LIMIT_MAX
    } else {
        asked.limit
    };
    let page = look(&app.history, move |history| {
        history.page(&filter, cursor, fetched)
    })
    .await?;
    let mut calls = together(running, page);
    if let Some(sort) = sort {
        calls.sorted_of = Some(calls.calls.len());
        calls.calls.sort_by(|a, b| sort.compare(a, b));
        calls.calls.truncate(asked.limit);
        calls.next = None;
    }
    Ok(calls)
}

/// What a list is sorted by.
#[derive(Debug, Clone, Copy)]
struct CallSort {
    key: CallKey,
    is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallKey {
    Time,
    Tool,
    State,
    Took,
    Tries,
    Caller,
}

impl CallSort {
    fn read(text: &str) -> Option<CallSort> {
        let key = match text.trim_start_matches('-') {
            "time" => CallKey::Time,
            "tool" => CallKey::Tool,
            "state" => CallKey::State,
            "took" => CallKey::Took,
            "tries" => CallKey::Tries,
            "caller" => CallKey::Caller,
            _ => return None,
        };
        Some(CallSort {
            key,
            is_descending: text.starts_with('-'),
        })
    }

    /// The order that lists have anyway.
    fn is_default(&self) -> bool {
        self.key == CallKey::Time && self.is_descending
    }

    fn compare(&self, a: &Listed, b: &Listed) -> Ordering {
        let took = |listed: &Listed| listed.call.took_ms.or(listed.elapsed_ms).unwrap_or(0.0);
        let (one, other) = (&a.call, &b.call);
        let order = match self.key {
            CallKey::Time => one.started_ms.cmp(&other.started_ms),
            CallKey::Tool => one.tool.cmp(&other.tool),
            CallKey::State => one.state.as_str().cmp(other.state.as_str()),
            CallKey::Took => took(a).total_cmp(&took(b)),
            CallKey::Tries => one.attempts.cmp(&other.attempts),
            CallKey::Caller => one.caller.cmp(&other.caller),
        };
        if self.is_descending {
            order.reverse()
        } else {
            order
        }
    }
}

/// One list: what runs is told by those who run it, not by what was written of it a moment ago.
fn together(running: Vec<Listed>, page: Page) -> Calls {
    let runs = |id: &str| running.iter().any(|listed| listed.call.id == id);
    let past: Vec<Listed> = page
        .calls
        .into_iter()
        .filter(|call| call.state != CallState::Running || !runs(&call.id))
        .map(|call| Listed {
            call,
            elapsed_ms: None,
        })
        .collect();
    let mut calls = running;
    calls.extend(past);
    Calls {
        calls,
        next: page.next.map(|cursor| cursor.to_string()),
        searched_to_ms: page.searched_to_ms,
        sorted_of: None,
    }
}

struct Question {
    filter: Filter,
    cursor: Option<Cursor>,
    limit: usize,
    sort: Option<CallSort>,
}

impl Question {
    fn read(pairs: &[(String, String)], identity: &Identity) -> Result<Question, Refused> {
        let wrong = |message: String| {
            let help = "The words are those of `steadyhand calls list`; GET /openapi.json has them";
            Refused::new(Why::BadRequest, message, help)
        };
        let mut filter = Vec::new();
        let (mut cursor, mut limit, mut sort) = (None, LIMIT, None);
        for (name, value) in pairs {
            match name.as_str() {
                "cursor" => {
                    let place = value
                        .parse()
                        .map_err(|error: HistoryError| wrong(error.to_string()))?;
                    cursor = Some(place);
                }
                "limit" => {
                    let count = value
                        .parse()
                        .ok()
                        .filter(|count| (1..=LIMIT_MAX).contains(count));
                    limit = count.ok_or_else(|| {
                        wrong(format!("limit is {value:?}, and must be 1 to {LIMIT_MAX}"))
                    })?;
                }
                "sort" => {
                    let read = CallSort::read(value).ok_or_else(|| {
                        let words = "time, tool, state, took, tries or caller";
                        wrong(format!(
                            "sort is {value:?}, and must be {words}; -took is the slowest first"
                        ))
                    });
                    sort = Some(read?);
                }
                _ => filter.push((name.as_str(), value.as_str())),
            }
        }
        let mut filter =
            Filter::from_pairs(filter, now_ms()).map_err(|error| wrong(error.to_string()))?;
        filter.owner = identity.sees_only().map(|own| own.to_string());
        Ok(Question {
            filter,
            cursor,
            limit,
            sort,
        })
    }
}

fn running_rows(app: &App, filter: &Filter) -> Vec<Listed> {
    let meant = |state: &StateWord| *state == StateWord::Running;
    if !filter.error.is_empty() || !(filter.state.is_empty() || filter.state.iter().any(meant)) {
        return Vec::new();
    }
    let mut rows: Vec<Listed> = app
        .admission
        .running
        .list()
        .iter()
        .map(|call| listed(app, call))
        .filter(|row| is_meant(row, filter))
        .collect();
    rows.reverse();
    rows.truncate(LIMIT_MAX);
    rows
}

fn is_meant(row: &Listed, filter: &Filter) -> bool {
    let call = &row.call;
    let like = |pattern: &Option<String>, text: &Option<String>| {
        pattern
            .as_ref()
            .is_none_or(|pattern| text.as_ref().is_some_and(|text| wild(pattern, text)))
    };
    (filter.tool.is_empty() || filter.tool.iter().any(|tool| wild(tool, &call.tool)))
        && like(&filter.caller, &call.caller)
        && filter.is_by_owner(call.caller.as_deref())
        && like(&filter.server, &call.source)
        && filter.since_ms.is_none_or(|since| call.started_ms >= since)
        && filter.until_ms.is_none_or(|until| call.started_ms < until)
        && filter
            .slower_ms
            .is_none_or(|slower| row.elapsed_ms > Some(slower))
        && filter
            .text
            .iter()
            .all(|text| call.id.contains(text) || call.tool.contains(text))
}

fn listed(app: &App, call: &RunningCall) -> Listed {
    let elapsed = call.since.elapsed();
    let tool = app.runtime.manager().find(&call.tool);
    Listed {
        call: CallSummary {
            key: format!("running-{}", call.number),
            id: call.id.clone(),
            tool: call.tool.clone(),
            source: tool.and_then(|tool| tool.source().map(str::to_owned)),
            caller: Some(call.caller.to_string()),
            started_ms: call.started_ms,
            state: CallState::Running,
            took_ms: None,
            approval_ms: Some(call.approval_time().as_secs_f64() * 1e3).filter(|ms| *ms > 0.0),
            waiting_for_approval: call.waits_for_approval(),
            deadline_ms: Some(app.deadline_of(call).as_secs_f64() * 1e3),
            attempts: call.attempts(),
            code: None,
            effect: None,
            message: None,
            fallback_used: false,
            replayed: false,
            replay_of: call.replay_of.clone(),
        },
        elapsed_ms: Some(elapsed.as_secs_f64() * 1e3),
    }
}

/// One call in full
///
/// Arguments, result, every attempt and where the time went. By its id, by the beginning of an id that no other call
/// has, by the key of its record, or `last` for the newest.
#[utoipa::path(
    get,
    operation_id = "get_call",
    path = "/v1/calls/{id}",
    tag = "calls",
    params(("id" = String, Path, description = "The call's id, the beginning of one, the key of its record, or last")),
    responses(
        (status = 200, description = "The call", body = shapes::CallRecord),
        shapes::NamedErrors,
    )
)]
pub async fn one(
    State(app): State<Arc<App>>,
    Named(id): Named,
    Asking(identity): Asking,
) -> Result<Response, Refused> {
    Ok(status::answer(&whole(&app, &identity, &id).await?))
}

/// Everything about one call.
pub async fn whole(app: &App, identity: &Identity, id: &str) -> Result<Whole, Refused> {
    let is_meant = |call: &RunningCall| identity.sees(Some(&call.caller));
    let known = app.admission.running.find(id, is_meant);
    let written = find(app, identity, id).await;
    let meant = || match &written {
        // By the beginning of its id, or as the last.
        Ok(record) if record.call.state == CallState::Running => {
            app.admission.running.find(&record.call.id, is_meant)
        }
        _ => None,
    };
    if let Some(running) = known.or_else(meant) {
        let row = listed(app, &running);
        // What is known of it besides, if the database knows it already.
        let details = match written {
            Ok(record) if record.call.state == CallState::Running => record.details,
            _ => CallDetails::default(),
        };
        return Ok(Whole { row, details });
    }
    let record = written?;
    let row = Listed {
        call: record.call,
        elapsed_ms: None,
    };
    Ok(Whole {
        row,
        details: record.details,
    })
}

/// One call in full.
#[derive(Serialize)]
pub struct Whole {
    #[serde(flatten)]
    pub row: Listed,
    #[serde(flatten)]
    pub details: CallDetails,
}

/// Whether a tool that is not safe to repeat is run all the same, and how the outcome is wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ReplayAsked {
    /// Run it even if its tool is not known to be safe to repeat
    #[serde(default)]
    #[param(required = false)]
    force: bool,
    /// structured if not said
    #[serde(default)]
    #[param(required = false)]
    view: View,
}

/// Run a call again
///
/// A new call with the same tool and arguments, linked to the old one. Refused without force for a tool that is not
/// known to be safe to repeat.
#[utoipa::path(
    post,
    operation_id = "replay_call",
    path = "/v1/calls/{id}/replay",
    tag = "calls",
    params(("id" = String, Path, description = "The call's id, the beginning of one, the key of its record, or last"), ReplayAsked, CallerHeaders),
    responses(
        (status = 200, description = "How the new call ended", body = shapes::AnyOutcome,
         headers(
             ("steadyhand-outcome" = shapes::OutcomeStatus, description = "How the call ended"),
             ("steadyhand-code" = shapes::FailureCode, description = "Why it failed; absent if it did not"),
             ("steadyhand-fallback" = String, description = "`used` where a fallback answered; absent otherwise"),
             ("steadyhand-call-id" = String, description = "The call; absent where its id is not ASCII"),
         )),
        shapes::RunErrors,
    )
)]
pub async fn replay(
    State(app): State<Arc<App>>,
    Named(id): Named,
    Asked(asked): Asked<ReplayAsked>,
    caller: Caller,
) -> Result<Response, Refused> {
    let record = find(&app, &caller.identity, &id).await?;
    let call = match views::calls::again(&app.runtime, record, asked.force) {
        Ok(call) => call,
        Err(NotAgain::NoSuchTool(tool)) => return Err(no_such_tool(&app, &tool)),
        Err(NotAgain::NotSafe { message, help }) => {
            return Err(Refused::new(Why::NotSafeToRepeat, message, help));
        }
    };
    let outcome = app.execute(caller.of(call), &caller).await?;
    let (outcome, text) = caller.answer(outcome, asked.view);
    Ok(status::outcome(&outcome, text))
}

/// Calls, a line of JSON each
///
/// Every call that the filter means, in full, the newest first. As text/plain where the accept header asks for that.
#[utoipa::path(
    get,
    operation_id = "export_calls",
    path = "/v1/calls.ndjson",
    tag = "calls",
    params(ExportAsked),
    responses(
        (status = 200, description = "The calls", content(
            (String = "application/x-ndjson"),
            (String = "text/plain"),
        )),
        shapes::Errors,
    )
)]
pub async fn export(
    State(app): State<Arc<App>>,
    Asked(pairs): Asked<Vec<(String, String)>>,
    Asking(identity): Asking,
    Account(account): Account,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let filter = Question::read(&pairs, &identity)?.filter;
    let accept = header_text(&headers, "accept").unwrap_or_default();
    let is_text = accept.contains("text/plain") && !accept.contains("x-ndjson");
    let slot = app.admission.exports.take(&account).map_err(|full| {
        Refused::new(
            Why::Busy,
            format!("{full}; nothing was exported"),
            "Read one of them to its end, or give it up, then try again",
        )
    })?;
    let (lines, body) = tokio::sync::mpsc::channel(4);
    let history = app.history.clone();
    // A reader that goes away closes the channel, and the export stops.
    tokio::task::spawn_blocking(move || {
        let _slot = slot;
        let mut writer = std::io::BufWriter::with_capacity(64 * 1024, Lines(lines));
        if let Err(error) = history.export(&filter, &mut writer) {
            tracing::warn!(%error, "an export of calls ended early");
            // An end that is none: the reader must not take it for the whole.
            let broken = std::io::Error::other(error.to_string());
            let _ = writer.get_mut().0.blocking_send(Err(broken));
            return;
        }
        let _ = std::io::Write::flush(&mut writer);
    });
    Ok(status::lines(ReceiverStream::new(body), is_text))
}

/// Hands pieces on to whoever reads the answer, as fast as they are taken.
struct Lines(tokio::sync::mpsc::Sender<std::io::Result<Bytes>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let gone = |_| std::io::Error::new(std::io::ErrorKind::BrokenPipe, "nobody reads it");
        self.0.blocking_send(Ok(piece)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// How far back, and which tool.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct TrendsAsked {
    /// All tools together if not said
    tool: Option<String>,
    /// 1h if not said
    #[serde(default)]
    #[param(required = false)]
    window: Window,
}

/// How tools fared over time
///
/// Pre-aggregated: calls, errors, p50, p95, retries, trips.
#[utoipa::path(
    get,
    operation_id = "get_trends",
    path = "/v1/trends",
    tag = "metrics",
    params(TrendsAsked),
    responses(
        (status = 200, description = "Buckets of time", body = Trends),
        shapes::Errors,
    )
)]
pub async fn trends(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<TrendsAsked>,
) -> Result<Response, Refused> {
    Ok(status::answer(
        &trends_of(&app, asked.tool, asked.window).await?,
    ))
}

/// Totals per caller
///
/// Who called how often in a window, and how that went.
#[utoipa::path(
    get,
    operation_id = "list_callers",
    path = "/v1/callers",
    tag = "metrics",
    params(TrendsAsked),
    responses(
        (status = 200, description = "The callers, those with the most calls first", body = Callers),
        shapes::Errors,
    )
)]
pub async fn callers(
    State(app): State<Arc<App>>,
    Asked(asked): Asked<TrendsAsked>,
) -> Result<Response, Refused> {
    Ok(status::answer(
        &callers_of(&app, asked.tool, asked.window).await?,
    ))
}

/// Who called a tool, or all of them.
pub async fn callers_of(
    app: &App,
    tool: Option<String>,
    window: Window,
) -> Result<Callers, Refused> {
    look(&app.history, move |history| {
        history.callers(tool.as_deref(), window)
    })
    .await
}

/// How a tool, or all of them, fared.
pub async fn trends_of(app: &App, tool: Option<String>, window: Window) -> Result<Trends, Refused> {
    look(&app.history, move |history| {
        history.trends(tool.as_deref(), window)
    })
    .await
}

/// A call that this one may see: one of somebody else's is as good as none.
pub async fn find(app: &App, identity: &Identity, id: &str) -> Result<CallRecord, Refused> {
    let (wanted, owner) = (id.to_owned(), identity.sees_only().cloned());
    let found = look(&app.history, move |history| {
        history.find(&wanted, owner.as_deref())
    })
    .await?;
    found.ok_or_else(|| {
        Refused::new(
            Why::NoSuchCall,
            format!("there is no call {id:?}"),
            "GET /v1/calls lists those that are kept; old ones are forgotten",
        )
    })
}

/// Databases are asked where waiting is no harm.
async fn look<T: Send + 'static>(
    history: &History,
    ask: impl Fn(&History) -> Result<T, HistoryError> + Send + Sync + 'static,
) -> Result<T, Refused> {
    let asked = views::calls::ask(history, ask).await;
    let help = "Calls go on; GET /health/ready says what is the matter with the history";
    asked.map_err(|error| match error {
        HistoryError::Cursor(_) => Refused::new(
            Why::BadRequest,
            error.to_string(),
            "Take the cursor from the field next of a page",
        ),
        HistoryError::Ambiguous { .. } => {
            Refused::new(Why::BadRequest, error.to_string(), "Give more of the id")
        }
        HistoryError::Unavailable(_) | HistoryError::Export(_) => {
            Refused::new(Why::NoHistory, error.to_string(), help)
        }
    })
}

fn now_ms() -> u64 {
    jiff::Timestamp::now().as_millisecond().max(0) as u64
}
