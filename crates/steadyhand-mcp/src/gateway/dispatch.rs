//! All clients' one server: what they may ask, and who answers. It knows no transport.

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, Guard};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use steadyhand::{ByteBudget, Permit};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::answer;
use super::client::Client;
use super::era::{Era, MODERN_VERSIONS};
use super::errors;
use super::exchange::Who;
use super::headers::Headers;
use super::host::Host;
use super::inquiry::{Answer, Inquiry, Sink, ToldMemory};
use super::list_refresher;
use super::listing::{List, Listing, cursor, definition};
use super::news::{Mailbox, Versions};
use super::operation::{Following, Operation};
use super::request::{Meta, Params, Request};
use super::sessions::Sessions;
use super::subscriptions::Subscriptions;
use super::suspended::{Caller, Subject, SuspendedRequests};
use super::work::Work;

/// What a client of the newer protocol may ask.
const MODERN_METHODS: [&str; 10] = [
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
    "subscriptions/listen",
];

/// One MCP server for any number of clients, of both eras, over any transport. Cheap to clone: clones are the same.
#[derive(Clone)]
pub struct Gateway {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) host: Arc<dyn Host>,
    listing: ArcSwap<Listing>,
    tools_version: watch::Receiver<u64>,
    /// One at a time makes it anew.
    renewing: Mutex<()>,
    pub(super) versions: watch::Sender<Versions>,
    pub(super) suspended: Arc<SuspendedRequests>,
    pub(super) subscriptions: Subscriptions,
    pub(super) log_readers: Mutex<Vec<(Weak<Client>, Weak<Mailbox>)>>,
    /// The level that servers were last told, as a place among the levels.
    pub(super) told_level: AtomicU8,
    pub(super) sessions: Sessions,
    pub(super) closing: CancellationToken,
}

/// Where a request comes from.
pub(super) struct Origin<'a> {
    pub(super) client: Arc<Client>,
    pub(super) sink: Sink,
    /// Who asks, where the transport knows it.
    pub(super) caller: Option<Arc<str>>,
    /// Who it is, where the transport has found it out.
    pub(super) who: Option<Who>,
    /// What belongs together, as far as that can be told.
    pub(super) conversation: Option<Arc<str>>,
    pub(super) traceparent: Option<&'a str>,
    /// Where news go, for a client that has a connection or a session.
    pub(super) mailbox: Option<&'a Arc<Mailbox>>,
    pub(super) headers: Option<&'a dyn Headers>,
    /// What it is counted as, once that is known.
    pub(super) operation: Option<Arc<Operation>>,
}

impl Origin<'_> {
    /// The memory that its answer may take.
    pub(super) fn memory(&self) -> ByteBudget {
        let own = self.who.as_ref().map(|who| who.memory.clone());
        own.unwrap_or_else(|| ByteBudget::process().clone())
    }
}

/// What becomes of a request.
pub(super) enum Handled {
    /// The answer.
    Now(Answer),
    /// A page of a list is the answer.
    Page(Bytes),
    /// It takes its time.
    Work(Box<Work>),
}

impl Gateway {
    /// A gateway to everything that stands behind it. Needs a tokio runtime.
    pub fn new(host: Arc<dyn Host>) -> Gateway {
        let tools_version = host.tools().changes();
        let listing = Listing::of(&*host);
        let inner = Arc::new(Inner {
            listing: ArcSwap::from_pointee(listing),
            tools_version,
            renewing: Mutex::default(),
            versions: watch::Sender::new(Versions::default()),
            suspended: SuspendedRequests::new(),
            subscriptions: Subscriptions::default(),
            log_readers: Mutex::default(),
            told_level: AtomicU8::new(u8::MAX),
            sessions: Sessions::default(),
            closing: CancellationToken::new(),
            host,
        });
        tokio::spawn(list_refresher::keep(
            Arc::downgrade(&inner),
            list_refresher::Signs::of(&inner),
        ));
        Gateway { inner }
    }

    /// Ends what would go on for ever: streams of news, and requests whose clients would have to come back. What else
    /// is being worked on goes on.
    pub fn close(&self) {
        self.inner.closing.cancel();
        self.inner.suspended.clear();
    }

    /// Ends all sessions, with what is still being worked on in them.
    pub fn end_sessions(&self) {
        self.inner.sessions.end_all();
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> usize {
        self.inner.sessions.count()
    }
}

impl Inner {
    /// Whether there is such a method in the newer protocol.
    pub(super) fn is_modern_method(method: &str) -> bool {
        MODERN_METHODS.contains(&method)
    }

    /// Begins to answer a request, and counts it. What opens a session or a stream is up to the transport.
    pub(super) fn handle(
        self: &Arc<Self>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        mut origin: Origin<'_>,
    ) -> Handled {
        let operation = Arc::new(Operation::begin(self, request, params, meta, &origin));
        origin.operation = Some(Arc::clone(&operation));
        let following = Following::new(operation);
        match self.begin(request, params, meta, origin) {
            Handled::Work(work) => Handled::Work(Box::new(work.followed(following))),
            Handled::Now(answer) => {
                following.end(&answer);
                Handled::Now(answer)
            }
            Handled::Page(page) => {
                following.end_well();
                Handled::Page(page)
            }
        }
    }

    fn begin(
        self: &Arc<Self>,
        request: &Request<'_>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Handled {
        let who = origin.who.as_ref().filter(|who| who.is_limited);
        let permit = who.and_then(|who| who.permit.clone());
        if request.method == "tools/list"
            && params.cursor.is_none()
            && origin.client.lists_first()
            && let Some(missing) = self.host.first_tools()
        {
            return self.list_after(missing, permit, origin);
        }
        if request.method.ends_with("/list") {
            origin
                .client
                .gets_list(request.method, self.renewed_versions());
        }
        if let Some(permit) = permit
            && let Some(handled) = self.limited(request.method, params.cursor, &*permit)
        {
            return handled.unwrap_or_else(|error| Handled::Now(Err(error)));
        }
        let handled = match (request.method, origin.client.era) {
            ("tools/call", _) => self.call(params, meta, origin),
            ("tools/list", _) => self.page(params.cursor, |listing| &listing.tools),
            ("prompts/list", _) => self.page(params.cursor, |listing| &listing.prompts),
            ("resources/list", _) => self.page(params.cursor, |listing| &listing.resources),
            ("resources/templates/list", _) => {
                self.page(params.cursor, |listing| &listing.templates)
            }
            ("prompts/get", _) => self.get_prompt(request, params, meta, origin),
            ("resources/read", _) => self.read_resource(request, params, meta, origin),
            ("completion/complete", _) => self.complete(request, meta, origin),
            ("server/discover", Era::Modern) => Ok(Handled::Now(self.discovered())),
            ("ping", era @ Era::Legacy(_)) => Ok(Handled::Now(answer::done(era))),
            ("logging/setLevel", Era::Legacy(_)) => self.set_level(request, &origin),
            ("resources/subscribe", Era::Legacy(_)) => self.subscribe(params, origin),
            ("resources/unsubscribe", Era::Legacy(_)) => self.unsubscribe(params, origin),
            (method, _) => Err(errors::no_such_method(method)),
        };
        handled.unwrap_or_else(|error| Handled::Now(Err(error)))
    }

    /// What somebody hears who may not use all tools: those they may, and nothing of what else servers have. None
    /// where it makes no difference.
    fn limited(
        &self,
        method: &str,
        page: Option<&RawValue>,
        permit: &dyn Permit,
    ) -> Option<Result<Handled, crate::wire::RpcError>> {
        let list = match method {
            "tools/list" => {
                let tools = self.host.tools().list();
                let allowed = tools.iter().filter(|tool| permit.allows(tool.name()));
                let servers = self.host.servers();
                List::of(
                    "tools",
                    allowed.map(|tool| definition(tool, &servers, &*self.host)),
                )
            }
            "prompts/list" => List::none("prompts"),
            "resources/list" => List::none("resources"),
            "resources/templates/list" => List::none("resourceTemplates"),
            "prompts/get" | "resources/read" | "completion/complete" | "resources/subscribe" => {
                let text = "these credentials are for some tools only, and for nothing else";
                return Some(Err(errors::invalid(text)));
            }
            _ => return None,
        };
        let page = cursor(page).and_then(|cursor| list.page(cursor.as_deref()));
        Some(page.map(Handled::Page))
    }

    /// The first page of the tools, once those that are on their way are there, or known not to come.
    fn list_after(
        self: &Arc<Self>,
        missing: BoxFuture<'static, ()>,
        permit: Option<Arc<dyn Permit>>,
        origin: Origin<'_>,
    ) -> Handled {
        let (inner, era) = (Arc::clone(self), origin.client.era);
        let client = Arc::clone(&origin.client);
        let subject = Subject::new(Caller::of(&origin), "tools/list", String::new(), None);
        let told = self.told_memory(&origin);
        let inquiry = Inquiry::new(origin.client, origin.sink, None, Default::default(), told);
        let work = async move {
            missing.await;
            client.gets_list("tools/list", inner.renewed_versions());
            let limited = permit.and_then(|permit| inner.limited("tools/list", None, &*permit));
            let listed = limited.unwrap_or_else(|| inner.page(None, |listing| &listing.tools))?;
            match listed {
                Handled::Page(page) => Ok(answer::of_list(era, &page)),
                Handled::Now(answer) => answer,
                Handled::Work(_) => Err(errors::unanswered("the list of tools cannot be made")),
            }
        };
        Handled::Work(Box::new(Work::new(inquiry, subject, work.boxed())))
    }

    /// Where what a request's client is told before its answer is counted.
    pub(super) fn told_memory(&self, origin: &Origin<'_>) -> ToldMemory {
        let account = origin.who.as_ref().map(|who| Arc::clone(&who.account));
        ToldMemory {
            budgets: Arc::clone(&self.sessions.told),
            account: account.unwrap_or_default(),
        }
    }

    /// The versions of the lists as they are now. Read before a list is made: a change in between is told once too
    /// often, and never missed.
    fn renewed_versions(&self) -> Versions {
        drop(self.listing());
        *self.versions.borrow()
    }

    fn page(
        &self,
        page: Option<&RawValue>,
        list: impl Fn(&Listing) -> &List,
    ) -> Result<Handled, crate::wire::RpcError> {
        let cursor = cursor(page)?;
        let page = list(&self.listing()).page(cursor.as_deref())?;
        Ok(Handled::Page(page))
    }

    /// What a handshake is answered with.
    pub(super) fn greeting(&self, version: &str) -> Answer {
        let mut greeting = json!({
            "protocolVersion": version,
            "capabilities": capabilities(),
            "serverInfo": answer::server_info(),
        });
        if let Some(instructions) = &self.listing().instructions {
            greeting["instructions"] = json!(instructions);
        }
        answer::of(&greeting)
    }

    fn discovered(&self) -> Answer {
        let mut discovered = json!({
            "resultType": "complete",
            "supportedVersions": MODERN_VERSIONS,
            "capabilities": capabilities(),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": answer::server_meta(),
        });
        if let Some(instructions) = &self.listing().instructions {
            discovered["instructions"] = json!(instructions);
        }
        answer::of(&discovered)
    }

    /// Everything that is listed, as it is now.
    pub(super) fn listing(&self) -> Guard<Arc<Listing>> {
        let listing = self.listing.load();
        if listing.tools_version == *self.tools_version.borrow() {
            return listing;
        }
        drop(listing);
        self.renew();
        self.listing.load()
    }

    /// Makes the lists anew, and tells if they are others now.
    pub(super) fn renew(&self) {
        let _renewing = self.renewing.lock();
        let new = Listing::of(&*self.host);
        let old = self.listing.load_full();
        let (tools, prompts) = (new.tools != old.tools, new.prompts != old.prompts);
        let resources = new.resources != old.resources || new.templates != old.templates;
        self.listing.store(Arc::new(new));
        self.versions.send_if_modified(|versions| {
            versions.tools += u64::from(tools);
            versions.prompts += u64::from(prompts);
            versions.resources += u64::from(resources);
            tools || prompts || resources
        });
    }
}

/// What we can do. Servers that bring prompts and resources may come later: so clients may always ask.
fn capabilities() -> Value {
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"listChanged": true, "subscribe": true},
        "completions": {},
        "logging": {},
    })
}
