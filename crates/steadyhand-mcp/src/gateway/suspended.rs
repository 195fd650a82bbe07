//! Requests that wait for their client to come back with answers: bounded in number and in time, found by a state
//! that nobody else can make.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use parking_lot::{Mutex, MutexGuard};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use steadyhand::{ByteBudget, ReservedBytes};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::answer;
use super::dispatch::Origin;
use super::errors;
use super::exchange::Who;
use super::inquiry::{Answer, Given};
use super::shares::{CallerShares, SUSPENDED_REQUESTS_MAX, SharedLimit, TakenShare};
use super::work::{AbortOnDrop, Work};
use crate::client::relay::Question;
use crate::wire::RpcError;

/// How long a client may think. The call's own deadline may end it sooner.
const THINKING_MAX: Duration = Duration::from_secs(600);
const ID_BYTES: usize = 16;

/// Where they wait.
pub(super) struct SuspendedRequests {
    /// Of this process alone: what another one has promised is not known here.
    key: [u8; 32],
    parked: Mutex<HashMap<Uuid, Parked>>,
}

/// One that waits.
struct Parked {
    work: Work,
    /// What it takes of its caller's share.
    _share: Option<TakenShare>,
    /// The memory of what it was asked with.
    _held: Option<ReservedBytes>,
    _gives_up: AbortOnDrop,
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
        let (share, held) = match self.room_for(&work.subject) {
            Ok(room) => room,
            Err(full) => {
                let text = format!(
                    "{full}; answer the requests that wait, or try again later. The client was not asked"
                );
                work.inquiry.refuse_questions(&errors::busy(text));
                return Err(work);
            }
        };
        work.set_apart();
        let id = Uuid::new_v4();
        let state = self.state(id, work.subject.about());
        work.subject.arguments = None;
        let parked = Parked {
            work,
            _share: share,
            _held: held,
            _gives_up: self.give_up_after(id),
        };
        self.parked().insert(id, parked);
        Ok(input_required(&questions, state))
    }

    /// What one more takes, or whose limit is reached.
    fn room_for(
        &self,
        subject: &Subject,
    ) -> Result<(Option<TakenShare>, Option<ReservedBytes>), String> {
        if self.parked().len() >= SUSPENDED_REQUESTS_MAX {
            return Err(format!(
                "{SUSPENDED_REQUESTS_MAX} requests wait for their clients' answers, which is as many as all clients together may have"
            ));
        }
        let Caller { shares, memory, .. } = &*subject.caller;
        let share = shares.as_ref();
        let share = share.map(|shares| shares.take(SharedLimit::SuspendedRequests));
        let bytes = subject.arguments.as_ref().map_or(0, |raw| raw.get().len());
        let held = memory.as_ref().map(|memory| memory.reserve(bytes));
        let held = held.transpose().map_err(|full| full.to_string());
        Ok((share.transpose()?, held?))
    }

    /// The request that a client has come back for.
    pub(super) fn take(&self, state: &str, subject: &Subject) -> Result<Work, RpcError> {
        let foreign =
            || errors::invalid("requestState is not one of this server, or not of this request");
        let bytes = URL_SAFE_NO_PAD.decode(state).map_err(|_| foreign())?;
        let (id, mac) = bytes.split_at_checked(ID_BYTES).ok_or_else(foreign)?;
        let mut expected = self.mac();
        expected.update(id);
        expected.update(subject.about());
        expected.verify_slice(mac).map_err(|_| foreign())?;
        let id = Uuid::from_slice(id).map_err(|_| foreign())?;
        let parked = self.parked().remove(&id);
        parked.map(|parked| parked.work).ok_or_else(|| {
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

    /// Ends it when its time is up. Dropped with it: whoever comes back and is suspended again all the time leaves nothing
    /// behind.
    fn give_up_after(self: &Arc<Self>, id: Uuid) -> AbortOnDrop {
        let (suspended, until) = (Arc::downgrade(self), Instant::now() + THINKING_MAX);
        let task = tokio::spawn(async move {
            sleep_until(until).await;
            if let Some(suspended) = suspended.upgrade() {
                // Dropping it ends the work.
                let given_up = suspended.parked().remove(&id);
                drop(given_up);
            }
        });
        AbortOnDrop(task.abort_handle())
    }

    fn parked(&self) -> MutexGuard<'_, HashMap<Uuid, Parked>> {
        self.parked.lock()
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
    /// A digest of all that, once it was needed: the arguments need not be kept for it.
    about: OnceCell<Box<About>>,
}

/// Who asks.
pub(super) struct Caller {
    /// The name that nobody else has, where the transport knows one.
    pub(super) name: Option<Arc<str>>,
    /// What they call themselves.
    pub(super) said: Arc<str>,
    /// Their shares of what all callers share.
    shares: Option<Arc<dyn CallerShares>>,
    /// The memory that their answer may take.
    memory: Option<ByteBudget>,
}

impl Caller {
    pub(super) fn of(origin: &Origin<'_>) -> Box<Caller> {
        let who: Option<&Who> = origin.who.as_ref();
        Box::new(Caller {
            name: who.and_then(|who| who.name.clone()),
            said: Arc::clone(origin.caller.as_ref().unwrap_or(&origin.client.name)),
            shares: who.and_then(|who| who.shares.clone()),
            memory: who.map(|who| who.memory.clone()),
        })
    }
}

type About = [u8; 32];

impl Subject {
    pub(super) fn new(
        caller: Box<Caller>,
        method: &'static str,
        name: impl Into<String>,
        arguments: Option<Box<RawValue>>,
    ) -> Subject {
        Subject {
            caller,
            method,
            name: name.into(),
            arguments,
            about: OnceCell::new(),
        }
    }

    fn about(&self) -> &About {
        self.about.get_or_init(|| Box::new(self.digest()))
    }

    /// Arguments count by what they say, not by how they are written.
    fn digest(&self) -> About {
        let mut hash = Sha256::new();
        let Caller { name, said, .. } = &*self.caller;
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use serde_json::json;

    use super::super::caller_budgets::CallerBudgets;
    use super::super::client::Client;
    use super::super::era::Era;
    use super::super::inquiry::{Inquiry, Next, Sink, ToldMemory};
    use super::super::shares::testing::FewOfEach;
    use super::*;
    use crate::client::relay::Counterpart;

    /// A request that cannot go on before its client has answered a question.
    async fn asking(shares: &Arc<FewOfEach>, memory: &ByteBudget, arguments: &Value) -> Work {
        let client = Client::new(Era::Modern, None, json!({"elicitation": {}}));
        let told = ToldMemory {
            budgets: CallerBudgets::new("a test", 1_000_000),
            account: "".into(),
        };
        let inquiry = Inquiry::new(Arc::new(client), Sink::Own, None, Given::new(), told);
        let asked = Arc::clone(&inquiry);
        let question = Question {
            key: "name".to_owned(),
            method: "elicitation/create".to_owned(),
            params: None,
        };
        let work = async move {
            let said = asked.ask(vec![question]).await;
            answer::of(&json!({"answered": said[0].is_ok()}))
        };
        let caller = Caller {
            name: Some("@greedy".into()),
            said: "test".into(),
            shares: Some(Arc::clone(shares) as Arc<dyn CallerShares>),
            memory: Some(memory.clone()),
        };
        let arguments = serde_json::value::to_raw_value(arguments).ok();
        let subject = Subject::new(Box::new(caller), "tools/call", "ask", arguments);
        let mut work = Work::new(inquiry, subject, work.boxed());
        assert!(matches!(work.next().await, Next::Ask));
        work
    }

    fn state(parked: Result<Answer, Work>) -> String {
        let answer = parked.ok().expect("it is parked").expect("an answer");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        answer["requestState"].as_str().expect("a state").to_owned()
    }

    #[tokio::test]
    async fn s02_requests_of_one_caller_that_wait_leave_room_for_others() {
        let suspended = SuspendedRequests::new();
        let memory = ByteBudget::new("a caller", 1_000);
        let (greedy, other) = (FewOfEach::of("greedy", 3), FewOfEach::of("other", 3));
        let (greedy, other) = (Arc::new(greedy), Arc::new(other));
        let mut states = Vec::new();
        for number in 0..3 {
            let work = asking(&greedy, &memory, &json!({"n": number})).await;
            states.push(state(suspended.park(work)));
        }
        let mut refused = match suspended.park(asking(&greedy, &memory, &json!({})).await) {
            Ok(_) => panic!("its share is taken"),
            Err(goes_on) => goes_on,
        };
        // Its question is refused, and it goes on without the answer.
        let Next::Answer(Ok(answer)) = refused.next().await else {
            panic!("it ends");
        };
        assert_eq!(&answer[..], br#"{"answered":false}"#);
        state(suspended.park(asking(&other, &memory, &json!({})).await));

        // Whoever comes back has room for another one.
        let subject = asking(&greedy, &memory, &json!({"n": 1})).await.subject;
        let work = suspended.take(&states[1], &subject).expect("its own");
        assert_eq!(greedy.taken(), 2);
        let again = state(suspended.park(work));
        assert_eq!(greedy.taken(), 3);
        suspended.take(&again, &subject).expect("the same request");
        suspended.clear();
        assert_eq!((greedy.taken(), other.taken(), memory.used()), (0, 0, 0));
    }

    #[tokio::test]
    async fn s02_arguments_of_requests_that_wait_are_in_their_callers_memory() {
        let suspended = SuspendedRequests::new();
        let memory = ByteBudget::new("a caller", 1_000);
        let shares = Arc::new(FewOfEach::of("greedy", 100));
        let large = json!({"text": "x".repeat(600)});
        let first = state(suspended.park(asking(&shares, &memory, &large).await));
        assert!(memory.used() > 600, "{}", memory.used());
        let second = suspended.park(asking(&shares, &memory, &large).await);
        assert!(second.is_err(), "there is no memory for it");
        assert_eq!(shares.taken(), 1, "its share is given back");
        let subject = asking(&shares, &memory, &large).await.subject;
        suspended.take(&first, &subject).expect("its own");
        assert_eq!(memory.used(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn s02_requests_that_came_back_leave_nothing_behind() {
        let suspended = SuspendedRequests::new();
        let memory = ByteBudget::new("a caller", 1_000);
        let shares = Arc::new(FewOfEach::of("caller", 1));
        let tasks = || {
            tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks()
        };
        let before = tasks();
        for _ in 0..100 {
            let work = asking(&shares, &memory, &json!({})).await;
            let subject = asking(&shares, &memory, &json!({})).await.subject;
            let state = state(suspended.park(work));
            drop(suspended.take(&state, &subject).expect("its own"));
            tokio::task::yield_now().await;
        }
        assert!(tasks() < before + 10, "{} tasks", tasks());
        // One that never comes back ends by itself.
        state(suspended.park(asking(&shares, &memory, &json!({})).await));
        tokio::time::sleep(2 * THINKING_MAX).await;
        assert_eq!(shares.taken(), 0);
    }
}
