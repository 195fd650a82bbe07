//! `subscriptions/listen`: what a client of the newer protocol is told as long as it listens.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::timeout;

use super::answer;
use super::dispatch::Inner;
use super::errors;
use super::exchange::Who;
use super::message::Message;
use super::news::{Ear, Mailbox, Wanted, tagged};
use super::passing::{CannotWatch, check_uri};
use super::request::Request;
use crate::wire::{Members, RpcError};

/// Resources that one subscription may name.
const RESOURCES_MAX: usize = 1_000;
/// How long servers may take to say whether they tell of a resource.
const ASKED_MAX: Duration = Duration::from_secs(10);

/// What a client asks to be told of.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default, skip_serializing_if = "is_false")]
    tools_list_changed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    prompts_list_changed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    resources_list_changed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// One who listens.
pub(super) struct Listening {
    inner: Arc<Inner>,
    /// The request, which is also the subscription's id.
    id: Box<RawValue>,
    first: Option<Message>,
    ear: Ear,
    is_over: bool,
}

impl Inner {
    pub(super) async fn listen(
        self: &Arc<Self>,
        id: Box<RawValue>,
        filter: Result<Wish, RpcError>,
        who: Option<&Who>,
    ) -> Result<Listening, RpcError> {
        let mut filter = filter?.0;
        let shares = who.and_then(|who| who.shares.as_deref());
        let account = who.map(|who| &*who.account).unwrap_or_default();
        let mailbox = Arc::new(Mailbox::new(self.sessions.told.of(account)));
        // Before anything else: what changes from here on is told.
        let (now, told) = (self.versions.subscribe(), *self.versions.borrow());
        let uris = std::mem::take(&mut filter.resource_subscriptions);
        let watched = uris
            .iter()
            .map(|uri| timeout(ASKED_MAX, self.watch(uri, &mailbox, shares)));
        let watched = join_all(watched).await;
        // Whoever is told of a part only would wait for the rest.
        for refused in watched.iter().flatten() {
            if let Err(full @ CannotWatch::NoRoom(_)) = refused {
                return Err(full.clone().into());
            }
        }
        filter.resource_subscriptions = uris
            .iter()
            .zip(watched)
            .filter(|(_, watched)| matches!(watched, Ok(Ok(()))))
            .map(|(uri, _)| uri.clone())
            .collect();
        let wanted = Wanted {
            tools: filter.tools_list_changed,
            prompts: filter.prompts_list_changed,
            resources: filter.resources_list_changed,
        };
        let accepted = to_raw_value(&json!({ "notifications": filter })).ok();
        let accepted = tagged(accepted.as_deref(), &id);
        let method = "notifications/subscriptions/acknowledged";
        Ok(Listening {
            inner: Arc::clone(self),
            id,
            first: Some(Message::notification(method, Some(&accepted))),
            ear: Ear::new(now, told, wanted, mailbox),
            is_over: false,
        })
    }
}

/// What a request wants to be told of, read.
pub(super) struct Wish(Filter);

impl Wish {
    pub(super) fn read(request: &Request<'_>) -> Result<Wish, RpcError> {
        let members = request.params.and_then(Members::of).unwrap_or_default();
        let filter = members.get("notifications");
        let filter =
            filter.and_then(|raw| steadyhand::typed_json::from_str::<Filter>(raw.get()).ok());
        let filter = filter.ok_or_else(|| {
            errors::invalid("subscriptions/listen needs notifications: an object that says which")
        })?;
        if filter.resource_subscriptions.len() > RESOURCES_MAX {
            let text = format!("a subscription may name {RESOURCES_MAX} resources");
            return Err(errors::invalid(text));
        }
        for uri in &filter.resource_subscriptions {
            check_uri(uri)?;
        }
        Ok(Wish(filter))
    }
}

impl Listening {
    /// The next message; none after the last. May be dropped and asked again.
    pub(super) async fn next(&mut self) -> Option<Message> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.is_over {
            return None;
        }
        let news = tokio::select! {
            news = self.ear.next() => news,
            () = self.inner.closing.cancelled() => None,
        };
        match news {
            Some(news) => Some(news.message(Some(&self.id))),
            None => {
                self.is_over = true;
                Some(self.last())
            }
        }
    }

    /// The answer to the request that it is.
    fn last(&self) -> Message {
        let result = to_raw_value(&json!({"resultType": "complete"})).ok();
        let result = tagged(result.as_deref(), &self.id);
        let message = answer::of(&result).map(|result| Message::result(&self.id, result));
        message.unwrap_or_else(|error| Message::error(&self.id, &error))
    }
}
