//! One request from its beginning to its end: its parameters out, its `_meta` put together, its answer back.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::{Duration, timeout};

use crate::connection::Connection;
use crate::relay::Passage;
use crate::slot::{Answer, Heard, Progress, Whose};
use crate::wire::Members;

/// While a person thinks, those who wait are told so at least this often.
const THINKING_TICK: Duration = Duration::from_millis(200);

/// What is asked of a server, and for whom.
pub(crate) struct Errand<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: Params<'a>,
    pub(crate) passage: Option<&'a Passage>,
    pub(crate) traceparent: Option<&'a str>,
}

/// The parameters of a request, without `_meta`.
pub(crate) enum Params<'a> {
    /// Of a tool.
    Call {
        name: &'a str,
        arguments: Arguments<'a>,
    },
    /// As someone else wrote them; a `_meta` among them is not used.
    Raw(Option<&'a RawValue>),
}

pub(crate) enum Arguments<'a> {
    Checked(&'a Value),
    AsWritten(&'a RawValue),
}

/// What an errand is told on its way.
pub(crate) trait Along {
    /// The server says how far it is.
    fn progress(&self, progress: Progress);
    /// Someone thinks about a question of the server.
    fn thinking(&self);
}

impl Errand<'_> {
    /// Sends it and waits for the end.
    pub(crate) async fn run(&self, connection: &Connection, along: &impl Along) -> Answer {
        let whose = match self.passage {
            Some(passage) => Whose::Clients(passage.client().clone()),
            None => Whose::Nobodys,
        };
        let raw = match &self.params {
            Params::Raw(Some(raw)) => Members::of(raw).unwrap_or_default().without("_meta"),
            Params::Raw(None) | Params::Call { .. } => Members::default(),
        };
        let mut reply = connection.request(self.method, whose, |id| Composed {
            errand: self,
            raw: &raw,
            progress_token: id,
        });
        loop {
            let heard = match reply.is_asked() {
                false => reply.heard().await,
                true => match timeout(THINKING_TICK, reply.heard()).await {
                    Ok(heard) => heard,
                    Err(_) => {
                        along.thinking();
                        continue;
                    }
                },
            };
            match heard {
                Heard::Answer(answer) => return answer,
                Heard::Progress(progress) => along.progress(progress),
                Heard::Asked => along.thinking(),
            }
        }
    }
}

/// The parameters as they are sent.
struct Composed<'a> {
    errand: &'a Errand<'a>,
    raw: &'a Members<'a>,
    progress_token: u64,
}

impl Serialize for Composed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.errand.params {
            Params::Call { name, arguments } => {
                map.serialize_entry("name", name)?;
                match arguments {
                    Arguments::Checked(value) => map.serialize_entry("arguments", value)?,
                    Arguments::AsWritten(raw) => map.serialize_entry("arguments", raw)?,
                }
            }
            Params::Raw(_) => {
                for (name, value) in &self.raw.0 {
                    map.serialize_entry(name, value)?;
                }
            }
        }
        map.serialize_entry("_meta", &Meta(self))?;
        map.end()
    }
}

struct Meta<'a>(&'a Composed<'a>);

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let errand = self.0.errand;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("progressToken", &self.0.progress_token)?;
        if let Some(traceparent) = errand.traceparent {
            map.serialize_entry("traceparent", traceparent)?;
        }
        let given = errand.passage.map(Passage::meta);
        for (name, value) in given.into_iter().flatten() {
            let is_ours =
                name == "progressToken" || (name == "traceparent" && errand.traceparent.is_some());
            if !is_ours {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}
