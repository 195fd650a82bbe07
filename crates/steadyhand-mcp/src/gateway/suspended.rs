//! Requests that wait for their client to come back with answers: bounded in number and in time, found by a state
//! that nobody else can make.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::answer;
use super::dispatch::Origin;
use super::errors;
use super::inquiry::{Answer, Given};
use super::work::Work;
use crate::client::relay::Question;
use crate::wire::RpcError;

/// So many may wait at the same time.
const PARKED_MAX: usize = 1024;
/// How long a client may think. The call's own deadline may end it sooner.
const THINKING_MAX: Duration = Duration::from_secs(600);
const ID_BYTES: usize = 16;

/// Where they wait.
pub(super) struct SuspendedRequests {
    /// Of this process alone: what another one has promised is not known here.
    key: [u8; 32],
    parked: Mutex<HashMap<Uuid, Work>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired<'a> {
    result_type: &'static str,
    input_requests: Requests<'a>,
    request_state: String,
    #[serde(rename = "_meta")]
    meta: &'a RawValue,
}

/// By the server's names for them, in its order.
struct Requests<'a>(&'a [Question]);

impl Serialize for Requests<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|question| {
            let request = InputRequest {
                method: &question.method,
                params: question.params.as_deref(),
            };
            (question.key.as_str(), request)
        }))
    }
}

#[derive(Serialize)]
struct InputRequest<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

impl SuspendedRequests {
    pub(super) fn new() -> Arc<SuspendedRequests> {
        let mut key = [0; 32];
        key[..16].copy_from_slice(Uuid::new_v4().as_bytes());
        key[16..].copy_from_slice(Uuid::new_v4().as_bytes());
        Arc::new(SuspendedRequests {
            key,
            parked: Mutex::default(),
        })
    }

    /// Puts a request aside that cannot go on without its client. Gives back what the client is told now; or the
    /// request, if it can go on after all.
    pub(super) fn park(self: &Arc<Self>, mut work: Work) -> Result<Answer, Work> {
        let Some(questions) = work.inquiry.questions() else {
            return Err(work);
        };
        if self.parked().len() >= PARKED_MAX {
            let text = format!("{PARKED_MAX} requests wait for their clients' answers already");
            work.inquiry.refuse_questions(&errors::busy(text));
            return Err(work);
        }
        work.set_apart();
        let id = Uuid::new_v4();
        let state = self.state(id, &work.subject.about());
        self.parked().insert(id, work);
        self.give_up_after(id);
        Ok(input_required(&questions, state))
    }

    /// The request that a client has come back for.
    pub(super) fn take(&self, state: &str, subject: &Subject) -> Result<Work, RpcError> {
        let foreign =
            || errors::invalid("requestState is not one of this server, or not of this request");
        let bytes = URL_SAFE_NO_PAD.decode(state).map_err(|_| foreign())?;
        let (id, mac) = bytes.split_at_checked(ID_BYTES).ok_or_else(foreign)?;
        let mut expected = self.mac();
        expected.update(id);
        expected.update(&subject.about());
        expected.verify_slice(mac).map_err(|_| foreign())?;
        let id = Uuid::from_slice(id).map_err(|_| foreign())?;
        let work = self.parked().remove(&id);
        work.ok_or_else(|| {
            errors::invalid("requestState was used before, or its time is up: send the request anew, without it")
        })
    }

    /// Ends all of them.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.parked());
        drop(all);
    }

    fn state(&self, id: Uuid, about: &About) -> String {
        let mut mac = self.mac();
        mac.update(id.as_bytes());
        mac.update(about);
        let mac = mac.finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([id.as_bytes(), mac.as_slice()].concat())
    }

    fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.key).expect("any length will do")
    }

    fn give_up_after(self: &Arc<Self>, id: Uuid) {
        let (suspended, until) = (Arc::downgrade(self), Instant::now() + THINKING_MAX);
        tokio::spawn(async move {
            sleep_until(until).await;
            if let Some(suspended) = suspended.upgrade() {
                // Dropping it ends the work.
                let given_up = suspended.parked().remove(&id);
                drop(given_up);
            }
        });
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<Uuid, Work>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn input_required(questions: &[Question], request_state: String) -> Answer {
    answer::of(&InputRequired {
        result_type: "input_required",
        input_requests: Requests(questions),
        request_state,
        meta: answer::server_meta(),
    })
}

/// What a request is about: a client that comes back with answers must come back with the same request.
pub(super) struct Subject {
    /// Who asks: nobody else may come back with answers.
    pub(super) caller: Box<Caller>,
    pub(super) method: &'static str,
    /// Of the tool or prompt, or the address of the resource.
    pub(super) name: String,
    pub(super) arguments: Option<Box<RawValue>>,
}

/// Who asks.
pub(super) struct Caller {
    /// The name that nobody else has, where the transport knows one.
    pub(super) name: Option<Arc<str>>,
    /// What they call themselves.
    pub(super) said: Arc<str>,
}

impl Caller {
    pub(super) fn of(origin: &Origin<'_>) -> Box<Caller> {
        Box::new(Caller {
            name: origin.who.as_ref().and_then(|who| who.name.clone()),
            said: Arc::clone(origin.caller.as_ref().unwrap_or(&origin.client.name)),
        })
    }
}

type About = [u8; 32];

impl Subject {
    /// Arguments count by what they say, not by how they are written.
    fn about(&self) -> About {
        let mut hash = Sha256::new();
        let Caller { name, said } = &*self.caller;
        // No name is another one than an empty one.
        hash.update([u8::from(name.is_some())]);
        let name = name.as_deref().unwrap_or_default();
        for part in [name, said, self.method, &self.name] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let arguments = self.arguments.as_ref();
        let arguments = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok());
        hash_value(&arguments.unwrap_or_default(), &mut hash);
        hash.finalize().into()
    }
}

fn hash_value(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            hash.update(b"{");
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            for (name, value) in sorted {
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name);
                hash_value(value, hash);
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| hash_value(item, hash));
            hash.update(b"]");
        }
        Value::String(text) => {
            hash.update(b"\"");
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        other => {
            let text = other.to_string();
            hash.update(b"#");
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
}

/// The answers a client sends along: each an object, under the server's name for its question.
pub(super) fn given(raw: Option<&RawValue>) -> Result<Given, RpcError> {
    let Some(raw) = raw else {
        return Ok(Given::new());
    };
    let wrong = |text: &str| errors::invalid(format!("inputResponses {text}"));
    let given: Given =
        steadyhand::typed_json::from_str(raw.get()).map_err(|_| wrong("is no object"))?;
    match given
        .iter()
        .find(|(_, answer)| !answer.get().starts_with('{'))
    {
        Some((key, _)) => Err(wrong(&format!("has no object for {key:?}"))),
        None => Ok(given),
    }
}
