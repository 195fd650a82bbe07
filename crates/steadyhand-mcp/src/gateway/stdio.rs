//! One client on stdin and stdout. stdout carries messages and nothing else (SPEC V11).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::answer::list_start;
use super::client::Client;
use super::dispatch::{Gateway, Handled, Inner, Origin};
use super::era::{Era, LEGACY_VERSIONS, MODERN_VERSIONS};
use super::errors;
use super::events::message;
use super::inquiry::{Answer, Inquiry, Next, Sink};
use super::listen::Wish;
use super::message::Message;
use super::news::{Ear, Mailbox, News, Wanted};
use super::operation;
use super::reading::{cancelled, greeted, modern_client, unambiguous};
use super::request::{Meta, Params, Request};
use super::work::Work;
use crate::wire::{Incoming, Line, Lines, RpcError};

/// The longest message a client may send.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Messages that may wait to be written; then calls wait, which is what a slow reader asks for.
const QUEUE_MAX: usize = 1024;
/// How long the last calls of a client that asks no more may take.
const LAST_ANSWERS: Duration = Duration::from_secs(60);
/// Requests of one client at the same time.
const REQUESTS_MAX: usize = 1024;

impl Gateway {
    /// Serves one client until it closes its side.
    pub async fn serve(
        &self,
        mut input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin + Send,
    ) -> std::io::Result<()> {
        let began = Instant::now();
        let (out, outbox) = mpsc::channel(QUEUE_MAX);
        let link = Arc::new(Link::new(&self.inner, out));
        let reading = async {
            let mut tasks = JoinSet::new();
            let mut lines = Lines::new(LINE_BYTES_MAX);
            loop {
                let buffer = lines.buffer();
                buffer.reserve(64 * 1024);
                if input.read_buf(buffer).await? == 0 {
                    break;
                }
                while let Some(line) = lines.next_line() {
                    link.take(line, &mut tasks).await;
                }
                // Those that are over.
                while tasks.try_join_next().is_some() {}
            }
            while let Some(line) = lines.last_line() {
                link.take(line, &mut tasks).await;
            }
            link.stop_listening();
            // It asks no more; what it has asked is answered, if that can be done in time.
            let answered = async { while tasks.join_next().await.is_some() {} };
            let _ = timeout(LAST_ANSWERS, answered).await;
            tasks.shutdown().await;
            Ok(())
        };
        let mut writing = pin!(write(outbox, output));
        let ended = tokio::select! {
            read = reading => read,
            written = &mut writing => written,
            () = link.tell_news() => Ok(()),
        };
        if link.is_legacy.load(Ordering::Acquire) {
            let version = link.client.load().era.version();
            operation::session_ended(version, true, began.elapsed());
        }
        drop(link);
        // What is left in the queue.
        let _ = timeout(Duration::from_secs(1), writing).await;
        match ended {
            // A client that has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            ended => ended,
        }
    }
}

/// The connection to the client.
struct Link {
    inner: Arc<Inner>,
    out: mpsc::Sender<Message>,
    /// As it greeted us, if it speaks one of the older protocols.
    client: ArcSwap<Client>,
    mailbox: Arc<Mailbox>,
    /// Requests that are being worked on, by the client's id of the request.
    running: Mutex<HashMap<String, Arc<Inquiry>>>,
    /// Subscriptions, by the same.
    listening: Mutex<HashMap<String, tokio::task::AbortHandle>>,
    /// It speaks one of the older protocols, which tell news unasked.
    is_legacy: AtomicBool,
    became_legacy: Notify,
}

impl Link {
    fn new(inner: &Arc<Inner>, out: mpsc::Sender<Message>) -> Link {
        let stranger = Client::new(Era::Legacy(LEGACY_VERSIONS[0]), None, Value::Null);
        Link {
            inner: Arc::clone(inner),
            out,
            client: ArcSwap::from_pointee(stranger),
            mailbox: Arc::new(Mailbox::new(inner.sessions.told.of(""))),
            running: Mutex::default(),
            listening: Mutex::default(),
            is_legacy: AtomicBool::new(false),
            became_legacy: Notify::new(),
        }
    }

    async fn take(self: &Arc<Self>, line: Line<'_>, tasks: &mut JoinSet<()>) {
        let error = match line {
            Line::Message(message) | Line::Salvaged { message, .. } => {
                return self.message(message, tasks).await;
            }
            Line::Batch(messages) => {
                for message in messages {
                    self.message(message, tasks).await;
                }
                return;
            }
            Line::Noise(bytes) => match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
                Ok(_) => errors::no_message(),
                Err(_) => errors::not_json(),
            },
            Line::TooLong { bytes, .. } => errors::too_large(bytes),
        };
        self.answer(RawValue::NULL, Err(error)).await;
    }

    async fn message(self: &Arc<Self>, incoming: Incoming<'_>, tasks: &mut JoinSet<()>) {
        match incoming {
            Incoming::Request { id, method, params } => {
                let request = Request { id, method, params };
                if let Err(error) = self.request(&request, tasks).await {
                    self.answer(id, Err(error)).await;
                }
            }
            Incoming::Response { id, result } => {
                let result = unambiguous(result);
                self.client.load().questions.answer(id, result);
            }
            Incoming::Notification { method, params } => {
                if method == "notifications/cancelled"
                    && let Some(id) = cancelled(params)
                {
                    self.cancel(id);
                }
            }
        }
    }

    async fn request(
        self: &Arc<Self>,
        request: &Request<'_>,
        tasks: &mut JoinSet<()>,
    ) -> Result<(), RpcError> {
        request.check_names()?;
        let params = Params::read(request.params);
        let params = params.ok_or_else(|| errors::invalid("params is no object"))?;
        let meta = Meta::read(params.meta);
        let is_modern = meta.version.is_some() || request.method == "server/discover";
        let client = match is_modern {
            true => Arc::new(modern(request, &meta)?),
            false => self.legacy(request).await,
        };
        if !is_modern && request.method == "initialize" {
            return Ok(());
        }
        if tasks.len() >= REQUESTS_MAX {
            let text =
                format!("more than {REQUESTS_MAX} requests at the same time; ask again later");
            return Err(errors::busy(text));
        }
        if is_modern && request.method == "subscriptions/listen" {
            self.listen(request, tasks);
            return Ok(());
        }
        let era = client.era;
        let origin = Origin {
            client,
            sink: Sink::Out(self.out.clone()),
            caller: None,
            who: None,
            // One client, one conversation.
            conversation: Some("stdio".into()),
            traceparent: None,
            mailbox: Some(&self.mailbox),
            headers: None,
            operation: None,
        };
        match self.inner.handle(request, &params, &meta, origin) {
            Handled::Now(answer) => self.answer(request.id, answer).await,
            Handled::Page(page) => {
                self.send(Message::list(request.id, list_start(era), page))
                    .await;
            }
            Handled::Work(work) => self.spawn(request.id, *work, tasks),
        }
        Ok(())
    }

    /// The client as it greeted us, or greets us now.
    async fn legacy(&self, request: &Request<'_>) -> Arc<Client> {
        if request.method == "initialize" {
            let began = Instant::now();
            let (client, version) = greeted(request);
            let client = Arc::new(client);
            self.mailbox.belong_to(&client);
            self.client.store(client);
            let greeting = self.inner.greeting(version);
            operation::greeted(version, true, began.elapsed());
            self.answer(request.id, greeting).await;
        }
        if !self.is_legacy.swap(true, Ordering::AcqRel) {
            self.became_legacy.notify_one();
        }
        self.client.load_full()
    }

    fn spawn(self: &Arc<Self>, id: &RawValue, mut work: Work, tasks: &mut JoinSet<()>) {
        let key = id.get().to_owned();
        let inquiry = Arc::clone(&work.inquiry);
        self.running
            .lock()
            .insert(key.clone(), Arc::clone(&inquiry));
        let (link, id) = (Arc::clone(self), id.to_owned());
        tasks.spawn(async move {
            let answer = loop {
                match work.next().await {
                    Next::Answer(answer) => break Some(answer),
                    Next::Say(said) => link.send(said).await,
                    Next::Ask => match link.inner.suspended.park(work) {
                        Ok(answer) => break Some(answer),
                        Err(goes_on) => work = goes_on,
                    },
                    // Whoever has cancelled a request wants no answer to it.
                    Next::Cancel => break None,
                }
            };
            {
                let mut running = link.running.lock();
                let own = running.get(&key);
                if own.is_some_and(|own| Arc::ptr_eq(own, &inquiry)) {
                    running.remove(&key);
                }
            }
            if let Some(answer) = answer {
                if let Some((loss, _)) = inquiry.take_loss() {
                    link.send(loss).await;
                }
                link.answer(&id, answer).await;
            }
        });
    }

    /// Whether the client has to hear of it. A message that it does not need can hurt: some clients fail when one
    /// arrives while they end, as LangChain's do right after their first list.
    fn is_news(&self, news: &News) -> bool {
        let (now, listed) = (*self.inner.versions.borrow(), self.client.load().listed());
        match news {
            News::Tools => listed.tools != Some(now.tools),
            News::Prompts => listed.prompts.is_some_and(|it| it != now.prompts),
            News::Resources => listed.resources.is_some_and(|it| it != now.resources),
            News::Letter(_) => true,
        }
    }

    fn listen(self: &Arc<Self>, request: &Request<'_>, tasks: &mut JoinSet<()>) {
        let (link, id, wish) = (Arc::clone(self), request.id.to_owned(), Wish::read(request));
        let key = request.id.get().to_owned();
        let task = tasks.spawn(async move {
            match link.inner.listen(id.clone(), wish, None).await {
                Ok(mut listening) => {
                    while let Some(message) = listening.next().await {
                        link.send(message).await;
                    }
                }
                Err(error) => link.answer(&id, Err(error)).await,
            }
        });
        self.listening.lock().insert(key, task);
    }

    fn cancel(&self, id: &RawValue) {
        let inquiry = self.running.lock().remove(id.get());
        if let Some(inquiry) = inquiry {
            inquiry.cancel();
        }
        let listening = self.listening.lock().remove(id.get());
        if let Some(listening) = listening {
            listening.abort();
        }
    }

    fn stop_listening(&self) {
        let all = std::mem::take(&mut *self.listening.lock());
        all.values().for_each(tokio::task::AbortHandle::abort);
    }

    /// Tells what is new, to a client of the older protocols. For ever.
    async fn tell_news(&self) {
        let now = self.inner.versions.subscribe();
        let told = *now.borrow();
        self.became_legacy.notified().await;
        let mut ear = Ear::new(now, told, Wanted::ALL, Arc::clone(&self.mailbox));
        while let Some(news) = ear.next().await {
            if self.is_news(&news) {
                self.send(news.message(None)).await;
            }
        }
        std::future::pending::<()>().await;
    }

    async fn answer(&self, id: &RawValue, answer: Answer) {
        self.send(message(id, answer)).await;
    }

    async fn send(&self, message: Message) {
        // A client that is gone needs no answer.
        let _ = self.out.send(message).await;
    }
}

/// The client of a request of the newer protocol, if the request is what that wants.
fn modern(request: &Request<'_>, meta: &Meta<'_>) -> Result<Client, RpcError> {
    let client = modern_client(meta)?;
    let version = meta.version.as_deref().unwrap_or_default();
    if !MODERN_VERSIONS.contains(&version) {
        return Err(errors::unsupported_version(version));
    }
    if !Inner::is_modern_method(request.method) {
        return Err(errors::no_such_method(request.method));
    }
    Ok(client)
}

async fn write(
    mut outbox: mpsc::Receiver<Message>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    let mut together: Vec<u8> = Vec::new();
    while let Some(message) = outbox.recv().await {
        put(&message, &mut together);
        // One write for all that is there.
        while together.len() < 64 * 1024
            && let Ok(more) = outbox.try_recv()
        {
            put(&more, &mut together);
        }
        output.write_all(&together).await?;
        output.flush().await?;
        together.clear();
        together.shrink_to(64 * 1024);
    }
    Ok(())
}

fn put(message: &Message, line: &mut Vec<u8>) {
    message
        .pieces()
        .for_each(|piece| line.extend_from_slice(piece));
    line.push(b'\n');
}
