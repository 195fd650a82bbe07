//! What a server may ask of us, and what it is told: by what is configured, or by the client whose request it is.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::client::login_address::login_address;
use crate::client::relay::Counterpart;
use crate::wire::RpcError;

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// How requests of a server are answered. What is not configured here goes to the client whose request it belongs to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestPolicy {
    /// Folders a server may work in (`file://…`), if it asks.
    pub roots: Option<Vec<String>>,
    /// What is said when it wants to ask a person something.
    pub elicitation: Elicitation,
    /// There may be clients behind us who can be asked. A server of the older protocol hears at the handshake what it
    /// may ask, and cannot be told later: so it hears that it may ask everything.
    pub relay: bool,
}

/// What a server hears that wants to ask a person something.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Elicitation {
    /// What the client says whose call it is; without one that can be asked, that we cannot do that.
    #[default]
    Relay,
    /// That we cannot do that.
    Refuse,
    /// That the person said no.
    Decline,
    /// That the person went away.
    Cancel,
    /// These values, as if the person had given them; defaults of the form stand where there is none. A page to be
    /// visited is declined: nobody has visited it.
    Accept(Value),
}

impl RequestPolicy {
    /// What a server is told that it may ask, whoever calls.
    pub(crate) fn capabilities(&self) -> Value {
        let mut capabilities = Map::new();
        let elicitation = match &self.elicitation {
            Elicitation::Relay if self.relay => Some(json!({"form": {}, "url": {}})),
            Elicitation::Relay | Elicitation::Refuse => None,
            Elicitation::Decline | Elicitation::Cancel | Elicitation::Accept(_) => Some(json!({})),
        };
        let sampling = self.relay.then(|| json!({"context": {}, "tools": {}}));
        let roots = (self.relay || self.roots.is_some()).then(|| json!({}));
        let all = [
            ("roots", roots),
            ("sampling", sampling),
            ("elicitation", elicitation),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                capabilities.insert(name.to_owned(), value);
            }
        }
        Value::Object(capabilities)
    }

    /// What is configured to be said; none if a client is to be asked.
    pub(crate) fn answer(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Option<Result<Value, RpcError>> {
        let no = || json!({"action": "decline"});
        let said = match (method, &self.elicitation, &self.roots) {
            ("ping", _, _) => json!({}),
            ("roots/list", _, Some(roots)) => {
                let roots: Vec<Value> = roots.iter().map(|uri| json!({ "uri": uri })).collect();
                json!({ "roots": roots })
            }
            ("elicitation/create", Elicitation::Decline, _) => no(),
            ("elicitation/create", Elicitation::Cancel, _) => json!({"action": "cancel"}),
            ("elicitation/create", Elicitation::Accept(_), _) if is_url(params) => no(),
            ("elicitation/create", Elicitation::Accept(values), _) => {
                json!({"action": "accept", "content": with_defaults(values, params)})
            }
            ("elicitation/create", Elicitation::Relay, _)
            | ("roots/list", _, None)
            | ("sampling/createMessage", _, _) => return None,
            _ => return Some(Err(not_served(method))),
        };
        Some(Ok(said))
    }
}

/// What a server of the newer era is told with each request that it may ask: what is configured, and what the client
/// can be asked whose request it is.
pub(crate) struct Capabilities<'a> {
    pub(crate) policy: &'a RequestPolicy,
    pub(crate) client: Option<&'a dyn Counterpart>,
}

impl Serialize for Capabilities<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = json!({});
        let of_client = |name: &str| {
            self.client
                .and_then(|client| client.capabilities().get(name))
        };
        let elicitation = match &self.policy.elicitation {
            Elicitation::Relay => of_client("elicitation"),
            Elicitation::Refuse => None,
            Elicitation::Decline | Elicitation::Cancel | Elicitation::Accept(_) => Some(&nothing),
        };
        let roots = match &self.policy.roots {
            Some(_) => Some(&nothing),
            None => of_client("roots"),
        };
        let mut map = serializer.serialize_map(None)?;
        let all = [
            ("roots", roots),
            ("sampling", of_client("sampling")),
            ("elicitation", elicitation),
        ];
        for (name, value) in all {
            if let Some(value) = value {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

/// Why a client cannot be asked this, if it cannot.
pub(crate) fn unable(
    client: &dyn Counterpart,
    method: &str,
    params: Option<&RawValue>,
) -> Option<RpcError> {
    // A person is sent there: `javascript:`, files and the schemes of programs are no pages.
    if method == "elicitation/create"
        && let Err(why) = leads_to_a_page(params)
    {
        return Some(RpcError::new(INVALID_PARAMS, why));
    }
    let capabilities = client.capabilities();
    let can = match method {
        "elicitation/create" if is_url(params) => capabilities.pointer("/elicitation/url"),
        "elicitation/create" => capabilities.get("elicitation"),
        "sampling/createMessage" => capabilities.get("sampling"),
        _ => capabilities.get("roots"),
    };
    can.is_none().then(|| {
        let text = format!("the client of this request does not answer {method}");
        RpcError::new(METHOD_NOT_FOUND, text)
    })
}

pub(crate) fn not_served(method: &str) -> RpcError {
    let method: String = method.chars().take(METHOD_CHARS_SHOWN_MAX).collect();
    tracing::debug!(method, "a request we do not serve");
    RpcError::new(
        METHOD_NOT_FOUND,
        format!("this client does not answer {method}"),
    )
}

/// The longest schema of a form whose defaults are looked at.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;
/// What is shown of a method that nobody serves.
const METHOD_CHARS_SHOWN_MAX: usize = 60;

#[derive(Deserialize, Default)]
struct Form<'a> {
    #[serde(borrow, default)]
    mode: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "requestedSchema")]
    schema: Option<&'a RawValue>,
}

/// What cannot be read, and what says twice where it leads, could be read in another way by the client.
fn leads_to_a_page(params: Option<&RawValue>) -> Result<(), String> {
    let Some(params) = params else {
        return Ok(());
    };
    let form: Form<'_> = steadyhand::typed_json::from_str(params.get())
        .map_err(|_| "the question to a person cannot be read".to_owned())?;
    match form.mode.as_deref() {
        Some("url") => login_address(form.url.as_deref().unwrap_or_default()).map(drop),
        _ => Ok(()),
    }
}

fn form(params: Option<&RawValue>) -> Form<'_> {
    let read = params.and_then(|params| steadyhand::typed_json::from_str(params.get()).ok());
    read.unwrap_or_default()
}

fn is_url(params: Option<&RawValue>) -> bool {
    form(params).mode.as_deref() == Some("url")
}

/// What the form says about fields that nothing was given for.
fn with_defaults(values: &Value, params: Option<&RawValue>) -> Value {
    let schema = form(params).schema.map(RawValue::get);
    let schema = schema.filter(|schema| schema.len() <= SCHEMA_BYTES_MAX);
    let schema: Value = schema
        .and_then(|schema| serde_json::from_str(schema).ok())
        .unwrap_or_default();
    let mut values = values.clone();
    if let (Value::Object(values), Some(Value::Object(fields))) =
        (&mut values, schema.get("properties"))
    {
        for (name, field) in fields {
            if let (false, Some(default)) = (values.contains_key(name), field.get("default")) {
                values.insert(name.clone(), default.clone());
            }
        }
    }
    values
}
