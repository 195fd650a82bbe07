//! We as an MCP server on stdio: all tools of a manager for one client. stdout carries messages and nothing else
//! (SPEC V11).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use steadyhand::{Call, Event, Outcome, Tool, ToolExecutor};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::wire::{Incoming, Line, Lines, Outgoing, RpcError};

/// The protocols we speak, the newest first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The longest message a client may send.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Messages that may wait to be written; then calls wait, which is what a slow reader asks for.
const QUEUE_MAX: usize = 1024;
/// How long the last calls of a client that asks no more may take.
const LAST_ANSWERS: Duration = Duration::from_secs(60);
/// Calls of one client at the same time.
const CALLS_MAX: usize = 1024;

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const OVERLOADED: i64 = -32000;

/// Serves one client until it closes its side.
pub async fn serve(
    executor: &ToolExecutor,
    mut input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send,
) -> std::io::Result<()> {
    let (out, outbox) = mpsc::channel(QUEUE_MAX);
    let client = Arc::new(Client {
        executor: executor.clone(),
        out,
        running: Mutex::default(),
        name: Mutex::default(),
        progress: Arc::default(),
    });
    let _watch = client.pass_on_progress();
    let reading = async {
        let mut calls = JoinSet::new();
        let mut lines = Lines::new(LINE_BYTES_MAX);
        loop {
            let buffer = lines.buffer();
            buffer.reserve(64 * 1024);
            if input.read_buf(buffer).await? == 0 {
                break;
            }
            while let Some(line) = lines.next_line() {
                client.take(line, &mut calls).await;
            }
            // Those that are over.
            while calls.try_join_next().is_some() {}
        }
        while let Some(line) = lines.last_line() {
            client.take(line, &mut calls).await;
        }
        // It asks no more; what it has asked is answered, if that can be done in time.
        let answered = async { while calls.join_next().await.is_some() {} };
        let _ = timeout(LAST_ANSWERS, answered).await;
        calls.shutdown().await;
        Ok(())
    };
    let changes = client.executor.tools().changes();
    let mut writing = pin!(write(outbox, output));
    let ended = tokio::select! {
        read = reading => read,
        written = &mut writing => written,
        () = tell_changes(&client, changes) => Ok(()),
    };
    drop(client);
    // What is left in the queue.
    let _ = timeout(Duration::from_secs(1), writing).await;
    match ended {
        // A client that has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        ended => ended,
    }
}

struct Client {
    executor: ToolExecutor,
    out: mpsc::Sender<Vec<u8>>,
    /// Calls that run, by the client's id of the request.
    running: Mutex<HashMap<String, CancellationToken>>,
    name: Mutex<Option<String>>,
    /// Progress tokens by call.
    progress: Arc<Mutex<HashMap<String, Value>>>,
}

#[derive(Deserialize)]
struct CallParams {
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default, rename = "_meta")]
    meta: Map<String, Value>,
}

impl Client {
    async fn take(self: &Arc<Self>, line: Line<'_>, calls: &mut JoinSet<()>) {
        match line {
            Line::Message(message) | Line::Salvaged { message, .. } => {
                self.message(message, calls).await;
            }
            Line::Batch(messages) => {
                for message in messages {
                    self.message(message, calls).await;
                }
            }
            Line::Noise(bytes) => {
                let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
                let error = match is_json {
                    true => RpcError::new(INVALID_REQUEST, "this is no JSON-RPC 2.0 message"),
                    false => RpcError::new(PARSE_ERROR, "this is no JSON"),
                };
                self.answer(RawValue::NULL, Err(&error)).await;
            }
            Line::TooLong { bytes, .. } => {
                let text = format!("a message of {bytes} bytes is too large");
                let error = RpcError::new(INVALID_REQUEST, text);
                self.answer(RawValue::NULL, Err(&error)).await;
            }
        }
    }

    async fn message(self: &Arc<Self>, message: Incoming<'_>, calls: &mut JoinSet<()>) {
        match message {
            Incoming::Request { id, method, params } => match method {
                "tools/call" => self.call(id, params, calls).await,
                _ => {
                    let answer = self.immediate(method, params);
                    self.answer(id, answer.as_ref()).await;
                }
            },
            Incoming::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    self.cancel(params);
                }
            }
            // We ask nothing, so nothing can be answered.
            Incoming::Response { .. } => {}
        }
    }

    /// What can be answered at once.
    fn immediate(&self, method: &str, params: Option<&RawValue>) -> Result<Value, RpcError> {
        match method {
            "initialize" => Ok(self.greet(params)),
            "ping" => Ok(json!({})),
            "tools/list" => {
                let tools = self.executor.tools().list();
                let tools: Vec<Value> = tools.iter().map(|tool| described(tool)).collect();
                Ok(json!({ "tools": tools }))
            }
            _ => Err(RpcError::new(
                METHOD_NOT_FOUND,
                format!("there is no method {method}"),
            )),
        }
    }

    fn greet(&self, params: Option<&RawValue>) -> Value {
        let params: Value = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let name = params.pointer("/clientInfo/name").and_then(Value::as_str);
        *lock(&self.name) = name.map(str::to_owned);
        let wanted = params["protocolVersion"].as_str().unwrap_or_default();
        let version = VERSIONS.iter().find(|version| **version == wanted);
        json!({
            "protocolVersion": version.unwrap_or(&VERSIONS[0]),
            "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "steadyhand", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    async fn call(
        self: &Arc<Self>,
        id: &RawValue,
        params: Option<&RawValue>,
        calls: &mut JoinSet<()>,
    ) {
        let params = params.map_or("null", RawValue::get);
        let params: CallParams = match serde_json::from_str(params) {
            Ok(params) => params,
            Err(error) => {
                let text = format!("tools/call needs a name and arguments: {error}");
                return self
                    .answer(id, Err(&RpcError::new(INVALID_PARAMS, text)))
                    .await;
            }
        };
        if calls.len() >= CALLS_MAX {
            let text = format!("more than {CALLS_MAX} calls at the same time; call again later");
            return self.answer(id, Err(&RpcError::new(OVERLOADED, text))).await;
        }
        let token = CancellationToken::new();
        let mut call = Call::new(&params.name, params.arguments).cancellation(token.clone());
        let name = lock(&self.name).clone();
        call = call.caller(name.map_or("mcp".to_owned(), |name| format!("mcp {name}")));
        if let Some(Value::String(traceparent)) = params.meta.get("traceparent") {
            call = call.traceparent(traceparent);
        }
        if let Some(progress) = params.meta.get("progressToken") {
            lock(&self.progress).insert(call.id.clone(), progress.clone());
        }
        let key = id.get().to_owned();
        lock(&self.running).insert(key.clone(), token.clone());
        let (client, id) = (Arc::clone(self), id.to_owned());
        calls.spawn(async move {
            let (call_id, tool) = (call.id.clone(), call.name.clone());
            let outcome = client.executor.execute(call).await;
            lock(&client.running).remove(&key);
            lock(&client.progress).remove(&call_id);
            // Whoever has cancelled a request wants no answer to it.
            if !token.is_cancelled() {
                let is_mcp = client.is_of_a_server(&tool);
                let answer = result_of(&outcome, is_mcp);
                client.answer(&id, answer.as_ref()).await;
            }
        });
    }

    fn is_of_a_server(&self, tool: &str) -> bool {
        let tool = self.executor.tools().find(tool);
        tool.is_some_and(|tool| tool.kind() == "mcp")
    }

    fn cancel(&self, params: Option<&RawValue>) {
        #[derive(Deserialize)]
        struct Cancelled<'a> {
            #[serde(rename = "requestId", borrow)]
            id: &'a RawValue,
        }
        let params = params.map_or("null", RawValue::get);
        if let Ok(cancelled) = serde_json::from_str::<Cancelled<'_>>(params)
            && let Some(token) = lock(&self.running).remove(cancelled.id.get())
        {
            token.cancel();
        }
    }

    async fn answer(&self, id: &RawValue, answer: Result<&Value, &RpcError>) {
        let line = Outgoing::<Value>::response(id, answer).line();
        // A client that is gone needs no answer.
        let _ = self.out.send(line).await;
    }

    /// Progress of calls that asked for it. A client that reads slowly misses some.
    fn pass_on_progress(self: &Arc<Self>) -> Option<steadyhand::Watch> {
        let (tokens, out) = (Arc::clone(&self.progress), self.out.downgrade());
        let observer = move |event: &Event| {
            let Event::Progress {
                call_id,
                done,
                total,
                message,
                ..
            } = event
            else {
                return;
            };
            let Some(token) = lock(&tokens).get(call_id).cloned() else {
                return;
            };
            let mut params = json!({"progressToken": token, "progress": done});
            if let Some(total) = total {
                params["total"] = json!(total);
            }
            if !message.is_empty() {
                params["message"] = json!(message);
            }
            let line = Outgoing::notification("notifications/progress", Some(&params)).line();
            if let Some(out) = out.upgrade() {
                let _ = out.try_send(line);
            }
        };
        self.executor.observe(observer).ok()
    }
}

async fn tell_changes(client: &Client, mut changes: watch::Receiver<u64>) {
    while changes.changed().await.is_ok() {
        let line = Outgoing::<Value>::notification("notifications/tools/list_changed", None).line();
        if client.out.send(line).await.is_err() {
            return;
        }
    }
}

async fn write(
    mut outbox: mpsc::Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(mut line) = outbox.recv().await {
        // One write for all that is there.
        while line.len() < 64 * 1024
            && let Ok(more) = outbox.try_recv()
        {
            line.extend_from_slice(&more);
        }
        output.write_all(&line).await?;
        output.flush().await?;
    }
    Ok(())
}

fn described(tool: &Tool) -> Value {
    let mut schema = tool.schema().clone();
    // The protocol demands what JSON Schema leaves open.
    if let Some(fields) = schema.as_object_mut()
        && !fields.contains_key("type")
    {
        fields.insert("type".to_owned(), json!("object"));
    }
    json!({
        "name": tool.name(),
        "description": tool.description(),
        "inputSchema": schema,
    })
}

/// An outcome as the result of tools/call. A failure is a result, too: the model is to read it.
fn result_of(outcome: &Outcome, is_mcp: bool) -> Result<Value, RpcError> {
    if let Some(failure) = outcome.failure()
        && failure.code == steadyhand::FailureCode::ToolNotFound
    {
        let text = format!("Unknown tool: {}", outcome.tool_name);
        return Err(RpcError::new(INVALID_PARAMS, text));
    }
    let message = outcome.message();
    let text = match &message.content {
        steadyhand::Content::Text(text) => text.clone(),
        _ => String::new(),
    };
    let mut result = json!({"content": [{"type": "text", "text": text}]});
    let value = outcome.output().map(|output| output.value());
    match value {
        Some(Value::Object(_)) if outcome.is_success() => {
            result["structuredContent"] = value.cloned().unwrap_or_default();
        }
        // Pictures and the like of a server behind us go on as they are.
        Some(Value::Array(parts))
            if is_mcp
                && outcome.is_success()
                && parts.iter().all(|part| part["type"].is_string()) =>
        {
            result["content"] = Value::Array(parts.clone());
        }
        _ => {}
    }
    if !outcome.is_success() {
        result["isError"] = json!(true);
    }
    result["_meta"] = json!({"io.steadyhand/callId": outcome.call_id});
    if let Some(failure) = outcome.failure() {
        result["_meta"]["io.steadyhand/error"] = json!(failure);
    }
    Ok(result)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
