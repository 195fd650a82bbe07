//! `tools/call`: from a client's request to a call, and from its outcome to the answer.

use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;
use serde_json::value::RawValue;
use steadyhand::{Arguments, Call, InexactInteger, RepeatedName};

use super::answer;
use super::dispatch::{Handled, Inner, Origin};
use super::errors;
use super::headers;
use super::inquiry::Inquiry;
use super::message::held_bytes;
use super::request::{Meta, Params, text};
use super::suspended::{self, Caller, Subject};
use super::work::Work;
use crate::client::relay::Passage;
use crate::wire::RpcError;

impl Inner {
    pub(super) fn call(
        self: &Arc<Self>,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: Origin<'_>,
    ) -> Result<Handled, RpcError> {
        let Some(name) = params.name() else {
            return Err(errors::invalid("tools/call needs the name of a tool"));
        };
        let arguments: Value = match params.arguments {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| {
                let fault = steadyhand::plain_words::json(&error);
                errors::invalid(format!("arguments cannot be read: {fault}"))
            })?,
            None => Value::Null,
        };
        let written = params.arguments.map(RawValue::get);
        let can_be_read_in_two_ways =
            written.is_some_and(|text| RepeatedName::first_in(text).is_some());
        let permit = origin.who.as_ref().and_then(|who| who.permit.clone());
        let may_use = permit.as_ref().is_none_or(|permit| permit.allows(&name));
        if let Some(headers) = origin.headers
            // What a tool wants is nobody's business who may not use it.
            && may_use
            && let Some(wanted) = self.listing().headers.get(&*name)
        {
            headers::check_params(headers, wanted, &arguments)?;
        }
        let subject = Subject::new(
            Caller::of(&origin),
            "tools/call",
            name.into_owned(),
            params.arguments.map(RawValue::to_owned),
        );
        if !can_be_read_in_two_ways
            && let Some(resumed) = self.resumed(params, meta, &origin, &subject)?
        {
            return Ok(Handled::Work(Box::new(resumed)));
        }
        let given = suspended::given(params.input_responses)?;
        let memory = origin.memory();
        let told = self.told_memory(&origin);
        let client = origin.client;
        let inquiry = Inquiry::new(
            Arc::clone(&client),
            origin.sink,
            meta.progress_token,
            given,
            told,
        );
        let said = origin.caller.unwrap_or_else(|| Arc::clone(&client.name));
        let name = origin.who.as_ref().and_then(|who| who.name.as_ref());
        let caller: Arc<str> = match name {
            Some(name) => format!("{name}/{said}").into(),
            None => said,
        };
        let tool = self.host.tools().find(&subject.name);
        // One that nobody knows may be a server's that is on its way.
        let is_passed_on = tool.as_ref().is_none_or(|tool| tool.kind() == "mcp");
        // A server gets them as they are written, any other tool as a value.
        let arguments = match written {
            Some(raw)
                if can_be_read_in_two_ways
                    || (!is_passed_on && InexactInteger::first_in(raw).is_some()) =>
            {
                Arguments::Text(raw.to_owned())
            }
            _ => Arguments::Json(arguments),
        };
        let mut call = Call::new(&subject.name, arguments).caller(&*caller);
        if let Some(permit) = permit {
            call = call.permit(permit);
        }
        if let Some(conversation) = &origin.conversation {
            call = call.conversation(&**conversation);
        }
        let operation = origin.operation;
        let ours = operation.as_ref().and_then(|it| it.traceparent());
        let theirs = meta.traceparent.as_deref().or(origin.traceparent);
        if let Some(traceparent) = ours.as_deref().or(theirs) {
            call = call.traceparent(traceparent);
        }
        let may_wait = tool.is_some_and(|tool| tool.is_gated());
        let passage = (is_passed_on || may_wait).then(|| {
            let counterpart = Arc::clone(&inquiry);
            let arguments = subject.arguments.clone();
            let passage = Passage::new(counterpart, meta.passed_on(), arguments);
            let may_decide = origin.who.as_ref().is_none_or(|who| who.may_decide);
            let passage = passage.deciding(may_decide);
            Arc::new(passage.with_members(params.passed_on()))
        });
        if let Some(passage) = &passage {
            call = call.luggage(Arc::clone(passage));
        }
        if !is_passed_on && meta.progress_token.is_some() {
            let inquiry = Arc::clone(&inquiry);
            call = call.on_progress(move |done, total, message| {
                inquiry.tell_progress(done, total, message);
            });
        }
        let inner = Arc::clone(self);
        let work = async move {
            let outcome = inner
                .host
                .execute(call, &caller)
                .await
                .map_err(errors::busy)?;
            if let (Some(operation), Some(failure)) = (&operation, outcome.failure()) {
                operation.tool_failed(failure.code.as_str());
            }
            let (era, tools) = (client.era, inner.host.tools());
            let answer = answer::of_call(&outcome, passage.as_deref(), &client, tools)?;
            held_bytes(answer, &memory).or_else(|full| {
                let outcome = outcome.without_result(&full.to_string());
                answer::of(&answer::of_outcome(&outcome, era))
            })
        };
        Ok(Handled::Work(Box::new(Work::new(
            inquiry,
            subject,
            work.boxed(),
        ))))
    }

    /// The request that a client comes back for, with answers to what was asked.
    pub(super) fn resumed(
        &self,
        params: &Params<'_>,
        meta: &Meta<'_>,
        origin: &Origin<'_>,
        subject: &Subject,
    ) -> Result<Option<Work>, RpcError> {
        let Some(state) = params
            .request_state
            .filter(|_| origin.client.era.is_modern())
        else {
            return Ok(None);
        };
        let state = text(state).ok_or_else(|| errors::invalid("requestState is no text"))?;
        let given = suspended::given(params.input_responses)?;
        let work = self.suspended.take(&state, subject)?;
        work.inquiry.go_on(given, meta.progress_token);
        Ok(Some(work))
    }
}
