//! The source itself: loads the document, keeps the report, and runs the tools.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;
use steadyhand::{Handler, Invocation, Output, SourceError, Tool, ToolError, ToolSource};
use tokio::time::timeout;
use url::Url;

use super::auth::Sent;
use super::document::Document;
use super::load::{self, Copy, LOAD_TIMEOUT, Spec};
use super::operation::{Operation, Skipped};
use super::read::{self, Choice, Prepared, Reading};
use crate::net::{Client, Limits, RESPONSE_BYTES_MAX, Reach};
use crate::source::{Context, LeftOut, Source};
use steadyhand_config::Trust;
use steadyhand_config::progress::Progress;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The tools of one document. Cheap to clone; clones are the same source.
#[derive(Clone)]
pub struct OpenapiSource(Arc<Inner>);

struct Inner {
    name: String,
    spec: Spec,
    choice: Choice,
    folder: PathBuf,
    trust: Trust,
    state: PathBuf,
    progress: Progress,
    service: Arc<Service>,
    report: Mutex<Option<Arc<Report>>>,
}

/// What became of a document the last time it was loaded.
#[derive(Debug, Clone)]
pub struct Report {
    /// The operations that became tools, in the document's order.
    pub operations: Vec<Arc<Operation>>,
    /// Those that did not, with the reason.
    pub skipped: Vec<Skipped>,
    /// How many `include` and `exclude` leave out.
    pub left_out: usize,
    /// What is not quite as the document or the configuration says.
    pub notes: Vec<String>,
    /// Set when a kept copy had to serve: why, and from when it is.
    pub cached: Option<String>,
}

impl OpenapiSource {
    pub(super) fn new(
        name: &str,
        spec: Spec,
        choice: Choice,
        reach: Reach,
        sent: Sent,
        context: &Context,
    ) -> OpenapiSource {
        OpenapiSource(Arc::new(Inner {
            name: name.to_owned(),
            spec,
            choice,
            folder: context.folder.clone(),
            trust: context.trust.clone(),
            state: context.state.clone(),
            progress: context.progress.clone(),
            service: Arc::new(Service {
                http: context.http.clone(),
                reach,
                sent,
            }),
            report: Mutex::new(None),
        }))
    }

    /// What became of the document; none before it was loaded.
    pub fn report(&self) -> Option<Arc<Report>> {
        let report = self.0.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.clone()
    }

    /// The tools that a pattern of `each` means, by name: `POST /pets`, an operationId or a tool's name,
    /// `*` for anything. Empty before the document was loaded.
    pub fn tools_meant_by(&self, pattern: &str) -> Vec<String> {
        let report = self.report();
        let operations = report.iter().flat_map(|report| &report.operations);
        let meant = operations.filter(|operation| operation.is_meant_by(pattern));
        meant.map(|operation| operation.tool_name.clone()).collect()
    }

    async fn load(&self) -> Result<Vec<Tool>, String> {
        let inner = &*self.0;
        let (reading, cached) = match &inner.spec {
            Spec::File(path) => {
                let (path, folder) = (path.clone(), inner.folder.clone());
                let trust = inner.trust.clone();
                (
                    self.convert(move || load::from_file(&path, &folder, &trust))
                        .await?,
                    None,
                )
            }
            Spec::Url(url) => self.load_url(url).await?,
        };
        let tools: Vec<Tool> = reading
            .tools
            .iter()
            .map(|it| inner.service.tool(it))
            .collect();
        let (operations, listed) = (reading.operations(), reading.skipped.len());
        let report = Report {
            operations: reading.tools.into_iter().map(|it| it.operation).collect(),
            skipped: reading.skipped,
            left_out: reading.left_out,
            notes: reading.notes,
            cached,
        };
        inner.tell(&report);
        let nothing = tools.is_empty().then(|| match report.skipped.first() {
            Some(first) if report.left_out == 0 => format!(
                "none of its {operations} operations can be a tool; {}: {}",
                first.operation, first.reason
            ),
            _ if operations == 0 => "it has no operations: `paths` is missing or empty".to_owned(),
            _ => format!(
                "`include` and `exclude` leave nothing of its {operations} operations{}",
                report
                    .notes
                    .first()
                    .map(|note| format!("; {note}"))
                    .unwrap_or_default()
            ),
        });
        tracing::info!(
            source = inner.name,
            operations,
            tools = tools.len(),
            skipped = listed,
            left_out = report.left_out,
            "OpenAPI document loaded"
        );
        *inner.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(report));
        match nothing {
            Some(reason) => Err(reason),
            None => Ok(tools),
        }
    }

    async fn load_url(&self, url: &Url) -> Result<(Reading, Option<String>), String> {
        let inner = &*self.0;
        let copy = Copy::of(url, &inner.state);
        let http = &inner.service.http;
        let mut fetched = load::from_url(url, &copy, http, &inner.service.reach).await?;
        let mut base = url.clone();
        base.set_query(None);
        base.set_fragment(None);
        let text = fetched.text.clone();
        let read = {
            let base = base.clone();
            self.convert(move || Document::read(&text, Some(base)))
                .await
        };
        let reading = match read {
            Ok(reading) => {
                if fetched.cached.is_none()
                    && let Err(error) = copy.keep(&fetched)
                {
                    tracing::warn!(source = inner.name, %error, "no copy of the document could be kept");
                }
                reading
            }
            Err(fault) => {
                // The last one that could be read is better than none.
                let why = format!("the document cannot be read now ({fault})");
                let kept = copy
                    .instead(&why)
                    .filter(|kept| kept.text != fetched.text)
                    .ok_or(fault)?;
                let text = kept.text.clone();
                fetched = kept;
                self.convert(move || Document::read(&text, Some(base)))
                    .await?
            }
        };
        Ok((reading, fetched.cached))
    }

    /// Parses and converts away from the threads that serve calls.
    async fn convert(
        &self,
        document: impl FnOnce() -> Result<Document, String> + Send + 'static,
    ) -> Result<Reading, String> {
        let inner = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || {
            let what = format!("loading {}", inner.name);
            inner.progress.step(&what, 0, 0);
            let read = document().map(|document| {
                let mut told = |done: u64, total: u64| {
                    if done.is_multiple_of(32) || done == total {
                        inner.progress.step(&what, done, total);
                    }
                };
                read::read(&document, &inner.choice, &mut told)
            });
            inner.progress.finished(&what);
            read
        });
        match timeout(LOAD_TIMEOUT, work).await {
            Ok(Ok(read)) => read,
            Ok(Err(_)) => {
                Err("reading it ended with a panic; please report this document".to_owned())
            }
            Err(_) => Err(format!(
                "reading it takes longer than {} s",
                LOAD_TIMEOUT.as_secs()
            )),
        }
    }
}

impl Inner {
    fn tell(&self, report: &Report) {
        if let Some(why) = &report.cached {
            tracing::warn!(source = self.name, "{why}");
        }
        for Skipped { operation, reason } in &report.skipped {
            tracing::warn!(
                source = self.name,
                operation,
                reason,
                "this operation is no tool"
            );
        }
        for note in &report.notes {
            tracing::info!(source = self.name, "{note}");
        }
    }
}

impl ToolSource for OpenapiSource {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<Tool>, SourceError>> {
        Box::pin(async move {
            self.load().await.map_err(|reason| SourceError {
                source_name: self.0.name.clone(),
                reason: format!("{}: {reason}", self.0.spec),
            })
        })
    }
}

/// What all tools of a document share.
struct Service {
    http: Client,
    reach: Reach,
    sent: Sent,
}

impl Service {
    fn tool(self: &Arc<Self>, prepared: &Prepared) -> Tool {
        let operation = Arc::clone(&prepared.operation);
        let safe = operation.is_safe_to_repeat();
        let name = operation.tool_name.clone();
        let own_names = operation.own_names();
        let handler = Call {
            service: Arc::clone(self),
            operation,
        };
        let schema = prepared.schema.clone();
        let mut tool =
            Tool::new(name, &prepared.description, schema, Arc::new(handler)).of_kind("openapi");
        if !own_names.is_empty() {
            tool = tool.prepared_by(move |args| take_own_names(args, &own_names));
        }
        match safe {
            true => tool,
            false => tool.not_safe_to_repeat(),
        }
    }
}

/// An argument under the API's own name (`ids[]`) is taken for the one that models know (`ids`).
fn take_own_names(args: &mut Value, own_names: &[(String, String)]) {
    let Some(members) = args.as_object_mut() else {
        return;
    };
    for (own, argument) in own_names {
        if !members.contains_key(argument)
            && let Some(value) = members.shift_remove(own)
        {
            members.insert(argument.clone(), value);
        }
    }
}

/// Runs one tool: one request per attempt.
struct Call {
    service: Arc<Service>,
    operation: Arc<Operation>,
}

impl Handler for Call {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let mut request = self.operation.request(invocation.args)?;
            self.service.sent.put_into(&mut request)?;
            // The same for all attempts: a service that knows it does nothing twice.
            if !self.operation.is_safe_to_repeat()
                && !request.headers.contains_key(&IDEMPOTENCY_KEY)
                && let Ok(key) = HeaderValue::from_str(invocation.idempotency_key())
            {
                request.headers.insert(IDEMPOTENCY_KEY, key);
            }
            request.carry_trace(invocation.traceparent());
            let limits = Limits {
                until: invocation.until,
                response_bytes_max: RESPONSE_BYTES_MAX,
            };
            let Service { http, reach, .. } = &*self.service;
            http.send_for(invocation, request, limits, reach)
                .await?
                .success()?
                .into_output()
        })
    }
}

impl Source for OpenapiSource {
    fn means(&self, pattern: &str, tool: &str) -> bool {
        self.tools_meant_by(pattern)
            .iter()
            .any(|meant| meant == tool)
    }

    fn left_out(&self) -> Vec<LeftOut> {
        let skipped = |skipped: &Skipped| LeftOut {
            name: skipped.operation.clone(),
            reason: skipped.reason.clone(),
        };
        let report = self.report();
        report
            .iter()
            .flat_map(|report| report.skipped.iter().map(skipped))
            .collect()
    }
}
