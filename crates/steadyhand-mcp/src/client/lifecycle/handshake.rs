//! The beginning with a server: which era it speaks, and what it says about itself.
//!
//! The older servers do not expect to be asked `server/discover`: most answer with an error, some say nothing, some
//! end. Each of these means "older", and none of it uses up an attempt to connect. What was found out is remembered;
//! if that turns out wrong, it is found out anew.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::calls::server_request::{OURSELVES, write_modern};
use crate::client::catalogue::Greeting;
use crate::client::connection::mux::Desk;
use crate::client::connection::slot::{Answer, Whose};
use crate::client::connection::{
    Connection, Reply, Topic, head_of, no_memory, too_large, unreadable,
};
use crate::client::http::{self, Kind, Link, Remote, TransportError};
use crate::client::lifecycle::era::{Discovered, Era, Protocol, discovered, not_discovered};
use crate::client::lifecycle::failure::{Step, What};
use crate::client::lifecycle::session::{End, Flavour, Host, Session, Stuck, refused};
use crate::client::requests::{Capabilities, RequestPolicy};
use crate::client::settings::{ServerSettings, Transport};
use crate::wire::meta::{INSTANCE, LEGACY_VERSION, META_INSTANCE};

/// A program that says nothing to `server/discover` for so long is asked in the old way, too; the first answer counts.
const PROGRAM_PATIENCE: Duration = Duration::from_secs(2);
/// The same over HTTP, where the old way is taken instead.
const REMOTE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may take to open the stream of what it says by itself; some do not before they have something to say.
const STREAM_LIMIT: Duration = Duration::from_millis(250);

/// A server that has introduced itself.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) greeting: Greeting,
    pub(crate) era: Era,
}

/// Why it has not.
#[derive(Debug)]
pub(crate) enum NotGreeted {
    Stuck(Stuck),
    /// The program ended of being asked which era it speaks: to be started once more, and asked in the old way.
    DiedOfTheQuestion(End),
}

/// What we say at the handshake of the older era.
pub(crate) fn hello(settings: &ServerSettings) -> Value {
    json!({
        "protocolVersion": LEGACY_VERSION,
        "capabilities": settings.requests.capabilities(),
        "clientInfo": OURSELVES,
        "_meta": {META_INSTANCE: *INSTANCE},
    })
}

/// Everything a beginning needs to know.
pub(crate) struct Beginning<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) desk: &'a Arc<Desk>,
    pub(crate) remote: Option<&'a Remote>,
    pub(crate) remembered: Option<Era>,
    pub(crate) until: Instant,
}

impl Beginning<'_> {
    /// Lets the server introduce itself. Another session may stand in the place of the given one afterwards.
    pub(crate) async fn greet(&self, session: &mut Session) -> Result<Greeted, NotGreeted> {
        let greeted = match (&self.settings.transport, self.remote) {
            (Transport::Http(_), Some(remote)) => {
                let greeted = self.greet_remote(session, remote).await;
                greeted.map_err(NotGreeted::Stuck)?
            }
            _ => self.greet_program(session).await?,
        };
        let version = &greeted.greeting.protocol_version;
        session.connection.settle(greeted.era, version);
        if let (Host::Remote { link, tasks }, Era::Legacy) = (&mut session.host, greeted.era) {
            // Before it is asked for anything: a stream that is opened beside a call can be taken for that call's own,
            // taken up again, and what a server says by itself meanwhile would be lost.
            let (opened, is_open) = oneshot::channel();
            tasks.spawn(http::keep_stream(Arc::clone(link), opened));
            let _ = timeout(STREAM_LIMIT, is_open).await;
        }
        Ok(greeted)
    }

    async fn greet_program(&self, session: &mut Session) -> Result<Greeted, NotGreeted> {
        let stuck = |what| {
            NotGreeted::Stuck(Stuck {
                step: Step::Initialize,
                what,
            })
        };
        match (self.settings.protocol, self.remembered) {
            (Protocol::Legacy, _) => self.initialize(session).await.map_err(stuck),
            (Protocol::Modern, _) => match self.discover_program(session).await.map_err(stuck)? {
                Ok(greeted) => Ok(greeted),
                Err(what) => Err(stuck(what)),
            },
            (Protocol::Auto, Some(Era::Legacy | Era::Sse)) => {
                let first = match self.initialize(session).await {
                    Err(what @ What::Refused { .. }) => what,
                    greeted => return greeted.map_err(stuck),
                };
                match self.discover_program(session).await {
                    Ok(Ok(greeted)) => Ok(greeted),
                    Ok(Err(_)) | Err(_) => Err(stuck(first)),
                }
            }
            (Protocol::Auto, Some(Era::Modern) | None) => self.find_out(session).await,
        }
    }

    /// Asks a program which era it speaks.
    async fn find_out(&self, session: &mut Session) -> Result<Greeted, NotGreeted> {
        let stuck = |what| {
            NotGreeted::Stuck(Stuck {
                step: Step::Initialize,
                what,
            })
        };
        let connection = session.connection.clone();
        let mut asked = Box::pin(discover(&connection).answer());
        let soon = self.until.min(Instant::now() + PROGRAM_PATIENCE);
        let answered = tokio::select! {
            answer = timeout_at(soon, &mut asked) => answer,
            end = session.broken() => {
                // It may have been among its last words.
                return match timeout(Duration::ZERO, &mut asked).await {
                    Ok(Answer::Result(_) | Answer::Error(_)) => Err(stuck(end.into())),
                    _ if connection.was_read() => Err(NotGreeted::DiedOfTheQuestion(end)),
                    _ => Err(stuck(end.into())),
                };
            }
        };
        match answered.ok().map(|answer| read_discovered(&answer)) {
            Some(Discovered::Modern(greeting)) => return Ok(modern(*greeting)),
            Some(Discovered::TryAgain) => {
                if let Ok(Ok(greeted)) = self.discover_program(session).await {
                    return Ok(greeted);
                }
            }
            Some(Discovered::Legacy) => {}
            None => return self.find_out_both_ways(session, asked).await,
        }
        self.initialize(session).await.map_err(stuck)
    }

    /// It has not said anything yet: it starts slowly, or does not answer what it does not know.
    async fn find_out_both_ways(
        &self,
        session: &mut Session,
        mut asked: std::pin::Pin<Box<impl Future<Output = Answer>>>,
    ) -> Result<Greeted, NotGreeted> {
        let connection = session.connection.clone();
        let greeting = hello(self.settings);
        let topic = Topic::of("initialize");
        let mut greeted = Box::pin(
            connection
                .request(topic, Whose::Ours, |_| &greeting)
                .answer(),
        );
        let stuck = |what| {
            NotGreeted::Stuck(Stuck {
                step: Step::Initialize,
                what,
            })
        };
        let mut is_legacy = false;
        loop {
            tokio::select! {
                answer = &mut asked, if !is_legacy => match read_discovered(&answer) {
                    Discovered::Modern(greeting) => return Ok(modern(*greeting)),
                    Discovered::TryAgain | Discovered::Legacy => is_legacy = true,
                },
                answer = &mut greeted => return self.initialized(&connection, answer).map_err(stuck),
                end = session.broken() => return Err(match connection.was_read() {
                    true => NotGreeted::DiedOfTheQuestion(end),
                    false => stuck(end.into()),
                }),
                () = tokio::time::sleep_until(self.until) => return Err(stuck(self.silent(session))),
            }
        }
    }

    /// `server/discover`, once more where the server says that it would understand. The inner error says what came
    /// instead.
    async fn discover_program(&self, session: &mut Session) -> Result<Result<Greeted, What>, What> {
        let mut last = What::Malformed("it does not speak the protocol of 2026".to_owned());
        for _ in 0..2 {
            let reply = discover(&session.connection);
            let answer = self.answer_of(session, reply).await?;
            match read_discovered(&answer) {
                Discovered::Modern(greeting) => return Ok(Ok(modern(*greeting))),
                Discovered::TryAgain => {}
                Discovered::Legacy => {
                    last = what_of(answer).err().unwrap_or(last);
                    break;
                }
            }
        }
        Ok(Err(last))
    }

    /// The handshake of the older era.
    async fn initialize(&self, session: &mut Session) -> Result<Greeted, What> {
        let connection = session.connection.clone();
        let greeting = hello(self.settings);
        let topic = Topic::of("initialize");
        let reply = connection.request(topic, Whose::Ours, |_| &greeting);
        let answer = self.answer_of(session, reply).await?;
        self.initialized(&connection, answer)
    }

    fn initialized(&self, connection: &Connection, answer: Answer) -> Result<Greeted, What> {
        let greeting = Greeting::read(&what_of(answer)?)?;
        connection.notify::<Value>("notifications/initialized", None);
        Ok(Greeted {
            greeting,
            era: Era::Legacy,
        })
    }

    /// Waits for an answer as long as there is time, and as long as there is anyone to give it.
    async fn answer_of(&self, session: &mut Session, reply: Reply) -> Result<Answer, What> {
        let mut answer = Box::pin(reply.answer());
        tokio::select! {
            answered = timeout_at(self.until, &mut answer) => {
                answered.map_err(|_| self.silent(session))
            }
            end = session.broken() => match timeout(Duration::ZERO, &mut answer).await {
                // It may have been among its last words.
                Ok(Answer::Lost(_)) | Err(_) => Err(end.into()),
                Ok(answer) => Ok(answer),
            },
        }
    }

    fn silent(&self, session: &Session) -> What {
        What::Silent {
            limit: self.settings.start.limit,
            pid: session.pid(),
        }
    }

    async fn greet_remote(&self, session: &mut Session, remote: &Remote) -> Result<Greeted, Stuck> {
        let wants_sse = matches!(&self.settings.transport, Transport::Http(http) if http.sse);
        let old_first = matches!(self.remembered, Some(Era::Legacy | Era::Sse)) || wants_sse;
        match self.settings.protocol {
            Protocol::Modern => {
                let found = self.discover_remote(session).await;
                found.and_then(|found| found.map_err(|answer| self.stuck(session, answer)))
            }
            Protocol::Legacy => self.old_way(session, remote).await,
            Protocol::Auto if old_first => match self.old_way(session, remote).await {
                Ok(greeted) => Ok(greeted),
                // It is there, and does not do what it did.
                Err(stuck) if stuck.step == Step::Initialize => {
                    *session = self.anew(remote, Flavour::Streamable);
                    match self.discover_remote(session).await {
                        Ok(Ok(greeted)) => Ok(greeted),
                        Ok(Err(_)) | Err(_) => Err(stuck),
                    }
                }
                Err(stuck) => Err(stuck),
            },
            Protocol::Auto => match self.discover_remote(session).await? {
                Ok(greeted) => Ok(greeted),
                Err(_) => self.old_way(session, remote).await,
            },
        }
    }

    /// `server/discover` over HTTP. The inner error is an answer that leaves the older era open; the outer one would
    /// be the same there.
    async fn discover_remote(
        &self,
        session: &Session,
    ) -> Result<Result<Greeted, Option<Answer>>, Stuck> {
        for _ in 0..2 {
            let soon = match self.settings.protocol {
                Protocol::Modern => self.until,
                Protocol::Auto | Protocol::Legacy => {
                    self.until.min(Instant::now() + REMOTE_PATIENCE)
                }
            };
            let reply = discover(&session.connection);
            let Ok(answer) = timeout_at(soon, reply.answer()).await else {
                session.connection.trust();
                return Ok(Err(None));
            };
            match read_discovered(&answer) {
                Discovered::Modern(greeting) => return Ok(Ok(modern(*greeting))),
                Discovered::TryAgain => {}
                Discovered::Legacy if is_final(&answer) => {
                    return Err(self.stuck(session, Some(answer)));
                }
                Discovered::Legacy => return Ok(Err(Some(answer))),
            }
        }
        Ok(Err(None))
    }

    /// `initialize`; if there is nobody to take it, the way of 2024.
    async fn old_way(&self, session: &mut Session, remote: &Remote) -> Result<Greeted, Stuck> {
        let sse_first = match &self.settings.transport {
            Transport::Http(http) => http.sse || self.remembered == Some(Era::Sse),
            Transport::Stdio(_) => false,
        };
        if sse_first {
            *session = self.anew(remote, Flavour::Sse);
            match self.greet_sse(session).await {
                Ok(greeted) => return Ok(greeted),
                Err(stuck) if stuck.step == Step::Connect => return Err(stuck),
                Err(_) => *session = self.anew(remote, Flavour::Streamable),
            }
        }
        let link = Arc::clone(link_of(session));
        let answer = timeout_at(self.until, link.hello()).await.ok();
        if let Some(Answer::Result(result)) = &answer {
            let greeting = Greeting::read(result).map_err(at_initialize)?;
            let _ = timeout_at(self.until, link.greeted(&greeting)).await;
            return Ok(Greeted {
                greeting,
                era: Era::Legacy,
            });
        }
        let stuck = self.stuck(session, answer.or(None));
        if sse_first || !may_be_sse(&stuck) {
            return Err(stuck);
        }
        let mut older = self.anew(remote, Flavour::Sse);
        match self.greet_sse(&mut older).await {
            Ok(greeted) => {
                *session = older;
                Ok(greeted)
            }
            Err(_) => Err(stuck),
        }
    }

    async fn greet_sse(&self, session: &mut Session) -> Result<Greeted, Stuck> {
        let link = Arc::clone(link_of(session));
        let opened = timeout_at(self.until, http::open_sse(&link)).await;
        let opened = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(trouble)) => {
                return Err(self.stuck(session, Some(Answer::TransportError(trouble))));
            }
            Err(_) => return Err(self.stuck(session, None)),
        };
        if let Host::Remote { tasks, link } = &mut session.host {
            tasks.spawn(http::keep_sse(Arc::clone(link), opened));
        }
        let greeted = self.initialize(session).await.map_err(at_initialize)?;
        Ok(Greeted {
            era: Era::Sse,
            ..greeted
        })
    }

    fn anew(&self, remote: &Remote, flavour: Flavour) -> Session {
        Session::over(remote, self.settings, self.desk, flavour)
    }

    /// None: nothing came in time.
    fn stuck(&self, session: &Session, answer: Option<Answer>) -> Stuck {
        let Some(answer) = answer else {
            return at_initialize(self.silent(session));
        };
        let step = match &answer {
            Answer::TransportError(trouble) if trouble.kind == Kind::Unreachable => Step::Connect,
            _ => Step::Initialize,
        };
        let what = match what_of(answer) {
            Ok(_) => What::Malformed("it does not speak the protocol of 2026".to_owned()),
            Err(what) => what,
        };
        Stuck { step, what }
    }
}

fn at_initialize(what: What) -> Stuck {
    Stuck {
        step: Step::Initialize,
        what,
    }
}

fn link_of(session: &Session) -> &Arc<Link> {
    match &session.host {
        Host::Remote { link, .. } => link,
        Host::Program(_) => unreachable!("a session over HTTP"),
    }
}

/// There is no older era where this could be better.
fn is_final(answer: &Answer) -> bool {
    let Answer::TransportError(TransportError { kind, .. }) = answer else {
        return false;
    };
    match kind {
        Kind::Unreachable | Kind::Redirected(_) => true,
        Kind::Status { code, .. } => matches!(code, 401 | 403 | 407 | 429),
        Kind::Broken | Kind::NotMcp => false,
    }
}

/// The streamable way is refused in a way that the older one may not be.
fn may_be_sse(stuck: &Stuck) -> bool {
    match stuck.what {
        What::Status { code, .. } => matches!(code, 400 | 404 | 405 | 406 | 415),
        What::NotMcp(_) | What::Refused { .. } => true,
        _ => false,
    }
}

fn modern(greeting: Greeting) -> Greeted {
    Greeted {
        greeting,
        era: Era::Modern,
    }
}

/// Sends `server/discover`.
pub(crate) fn discover(connection: &Connection) -> Reply {
    struct Params<'a>(&'a RequestPolicy);
    struct Meta<'a>(&'a RequestPolicy);
    impl Serialize for Params<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry("_meta", &Meta(self.0))?;
            map.end()
        }
    }
    impl Serialize for Meta<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            let (policy, client) = (self.0, None);
            write_modern(&mut map, Capabilities { policy, client })?;
            map.serialize_entry(META_INSTANCE, &*INSTANCE)?;
            map.end()
        }
    }
    let mut topic = Topic::of("server/discover");
    topic.head = head_of(topic.method, None);
    connection.request(topic, Whose::Ours, |_| Params(&connection.desk().policy))
}

fn read_discovered(answer: &Answer) -> Discovered {
    match answer {
        Answer::Result(result) => discovered(result),
        Answer::Error(error) => not_discovered(error),
        _ => Discovered::Legacy,
    }
}

fn what_of(answer: Answer) -> Result<Box<RawValue>, What> {
    match answer {
        Answer::Result(result) => Ok(result.into_json()),
        Answer::Error(error) => Err(refused(&error)),
        Answer::TooLarge(bytes) => Err(What::TooMany(too_large(bytes))),
        Answer::NoMemory(exceeded) => Err(What::TooMany(no_memory(&exceeded))),
        Answer::Unreadable(why) => Err(What::Malformed(unreadable(&why))),
        Answer::Lost(lost) => Err(What::Malformed(lost.reason)),
        Answer::TransportError(trouble) => Err(trouble.to_what()),
        Answer::Unanswered(why) => Err(What::Malformed(why)),
    }
}
