//! `kind = "http"`: one endpoint as one tool. Arguments go into its URL, headers and body.

mod check;
mod plan;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use steadyhand::{Handler, Invocation, Output, Tool, ToolError};

use self::plan::Plan;
use super::{Context, Fault, Fixed, Settings, Source};
use crate::net::{Client, Limits, RESPONSE_BYTES_MAX, Reach};
use steadyhand_config::SecretText;

/// One endpoint. `{name}` in its texts stands for the argument of that name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpSettings {
    /// What models are told about it
    pub description: Option<String>,
    /// GET when absent. GET, HEAD, PUT, DELETE and OPTIONS may be repeated after a failure, others only
    /// when it is certain that the request never arrived. POST and PATCH carry an Idempotency-Key that
    /// stays the same for all attempts of a call.
    pub method: Option<String>,
    /// Where the request goes; {name} may stand in the path and in values of the query. The host written
    /// here may be a private one
    pub url: SecretText,
    /// Headers; one whose argument is absent is left out
    #[serde(default)]
    pub headers: BTreeMap<String, SecretText>,
    /// Query parameters besides those in the URL; one whose argument is absent is left out, a list is
    /// sent as one pair for each item
    #[serde(default)]
    pub query: BTreeMap<String, SecretText>,
    /// The body: any value, sent as JSON, or as a form when the Content-Type header says
    /// application/x-www-form-urlencoded. "{name}" alone keeps the argument's type; what has an absent
    /// argument is left out
    pub body: Option<SecretJson>,
    /// JSON Pointer to the part of a JSON answer that is the result, such as /data/items/0
    pub select: Option<String>,
    /// The JSON Schema of its arguments, or the path of a JSON file that holds it. When absent, each
    /// place stands for a text, and those in the URL's path are required
    #[serde(default)]
    #[schemars(schema_with = "super::input_schema")]
    pub input: Option<Value>,
}

/// A JSON value of the configuration that may hold a secret.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct SecretJson(Value);

impl fmt::Debug for SecretJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl JsonSchema for SecretJson {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Body".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

impl Settings for HttpSettings {
    const KIND: &'static str = "http";
    const TEMPLATES: &'static [&'static str] = &["url", "headers", "query", "body"];

    fn check(&self) -> Vec<Fault> {
        check::faults(self)
    }

    fn build(self, name: &str, context: &Context) -> Result<Arc<dyn Source>, Fault> {
        let (plan, mut faults) = Plan::read(&self);
        let Some(plan) = plan else {
            return Err(faults.swap_remove(0));
        };
        let schema = match &self.input {
            Some(schema) => schema.clone(),
            None => check::schema_from_places(&plan),
        };
        if let Some(fault) = check::undeclared_places(&plan, &schema).into_iter().next() {
            return Err(fault);
        }
        let description = self.description.unwrap_or_else(|| {
            format!(
                "Sends {} to {}",
                plan.method,
                plan.url.base().host_str().unwrap_or(name)
            )
        });
        let safe = plan.is_safe_to_repeat();
        let used: Vec<String> = plan.places.iter().map(|place| place.name.clone()).collect();
        let handler = Endpoint {
            reach: Reach::public_only().and(plan.url.base()),
            plan,
            schema: schema.clone(),
            http: context.http.clone(),
        };
        let tool = Tool::new(name, description, schema, Arc::new(handler))
            .of_kind("http")
            .uses_only(used);
        let tool = match safe {
            true => tool,
            false => tool.not_safe_to_repeat(),
        };
        Ok(Arc::new(Fixed::new(name, vec![tool])))
    }
}

/// Runs the tool: one request per attempt.
struct Endpoint {
    plan: Plan,
    schema: Value,
    http: Client,
    reach: Reach,
}

impl Handler for Endpoint {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation<'a>,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let request = self.plan.request(invocation, &self.schema)?;
            let limits = Limits {
                until: invocation.until,
                response_bytes_max: RESPONSE_BYTES_MAX,
            };
            let response = self
                .http
                .send_for(invocation, request, limits, &self.reach)
                .await?
                .success()?;
            match &self.plan.select {
                Some(pointer) => plan::select(&response, pointer),
                None => response.into_output(),
            }
        })
    }
}
