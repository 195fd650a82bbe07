//! What a server of the newer era wants to know before it goes on: asked of whoever can tell, and the request sent
//! again with the answers.

use std::sync::Arc;

use serde::Deserialize;
use serde::ser::SerializeMap;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use crate::client::calls::server_request::{ProgressListener, THINKING_TICK};
use crate::client::connection::Connection;
use crate::client::connection::questions::no_answer;
use crate::client::relay::{Counterpart, Question};
use crate::client::requests::{RequestPolicy, unable};
use crate::wire::{Members, RpcError};

/// A server may want to know so many things at once.
const WANTED_MAX: usize = 64;

/// What a result says that is none yet.
pub(crate) struct Wanted {
    questions: Vec<Question>,
    /// To be given back as it is.
    state: Option<Box<RawValue>>,
}

/// What a request says more when it is sent again.
pub(crate) struct Further {
    responses: Vec<(String, Box<RawValue>)>,
    state: Option<Box<RawValue>>,
}

/// What is wanted, if this is no result yet.
pub(crate) fn wanted(connection: &Connection, result: &RawValue) -> Option<Wanted> {
    const SIGN: &str = "input_required";
    // Mostly it is a result, and a search is cheaper than a look at its members.
    let may_be = connection.is_modern()
        && memchr::memmem::find(result.get().as_bytes(), SIGN.as_bytes()).is_some();
    if !may_be {
        return None;
    }
    let members = Members::of(result)?;
    if members.text("resultType")? != SIGN {
        return None;
    }
    let asked = members.get("inputRequests").and_then(Members::of);
    let asked = asked.unwrap_or_default().0.into_iter();
    let question = |(key, raw): (std::borrow::Cow<'_, str>, &RawValue)| {
        #[derive(Deserialize)]
        struct Request<'a> {
            #[serde(borrow)]
            method: std::borrow::Cow<'a, str>,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        // One that cannot be read is asked for nothing, and nobody can answer it.
        let read = steadyhand::typed_json::from_str::<Request<'_>>(raw.get()).ok();
        Question {
            key: key.into_owned(),
            method: read
                .as_ref()
                .map(|read| read.method.to_string())
                .unwrap_or_default(),
            params: read.and_then(|read| read.params).map(RawValue::to_owned),
        }
    };
    Some(Wanted {
        questions: asked.map(question).collect(),
        state: members.get("requestState").map(RawValue::to_owned),
    })
}

impl Wanted {
    /// Lets it be answered: by what is configured, else by the client. An error says why it cannot be.
    pub(crate) async fn give(
        self,
        policy: &RequestPolicy,
        client: Option<&Arc<dyn Counterpart>>,
        listener: &impl ProgressListener,
    ) -> Result<Further, String> {
        if self.questions.len() > WANTED_MAX {
            return Err(format!("it asks {} things at once", self.questions.len()));
        }
        if self.questions.is_empty() && self.state.is_none() {
            return Err("it does not say what it wants to know".to_owned());
        }
        let nobody = |question: &Question, why: &RpcError| {
            format!("{} ({}): {}", question.key, question.method, why.message)
        };
        let mut responses: Vec<Option<Box<RawValue>>> = Vec::new();
        let mut open = Vec::new();
        for question in &self.questions {
            let configured = policy.answer(&question.method, question.params.as_deref());
            let answer = match configured {
                None => None,
                Some(Ok(value)) => to_raw_value(&value).ok(),
                Some(Err(error)) => return Err(nobody(question, &error)),
            };
            if answer.is_none() {
                open.push(question.clone());
            }
            responses.push(answer);
        }
        if !open.is_empty() {
            let client = client.ok_or_else(|| {
                let wanted: Vec<&str> = open.iter().map(|it| it.method.as_str()).collect();
                format!("nobody here can be asked ({})", wanted.join(", "))
            })?;
            for question in &open {
                if let Some(error) = unable(&**client, &question.method, question.params.as_deref())
                {
                    return Err(nobody(question, &error));
                }
            }
            let mut answers = ask(client, open, listener).await.into_iter();
            for (response, question) in responses.iter_mut().zip(&self.questions) {
                if response.is_none() {
                    let answer = answers.next().unwrap_or_else(|| Err(no_answer()));
                    *response = Some(answer.map_err(|error| nobody(question, &error))?);
                }
            }
        }
        let keys = self.questions.into_iter().map(|question| question.key);
        Ok(Further {
            responses: keys.zip(responses.into_iter().flatten()).collect(),
            state: self.state,
        })
    }
}

async fn ask(
    client: &Arc<dyn Counterpart>,
    questions: Vec<Question>,
    listener: &impl ProgressListener,
) -> Vec<Result<Box<RawValue>, RpcError>> {
    let mut asking = Arc::clone(client).ask(questions);
    loop {
        listener.thinking();
        if let Ok(answers) = timeout(THINKING_TICK, &mut asking).await {
            return answers;
        }
    }
}

impl Further {
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if !self.responses.is_empty() {
            let members = self.responses.iter();
            let members = members.map(|(key, value)| (key.as_str().into(), &**value));
            map.serialize_entry("inputResponses", &Members(members.collect()))?;
        }
        if let Some(state) = &self.state {
            map.serialize_entry("requestState", state)?;
        }
        Ok(())
    }
}
