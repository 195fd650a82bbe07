//! The client that the MCP conformance suite drives: it starts us with the address of its server as the last argument
//! and the scenario's name in `MCP_CONFORMANCE_SCENARIO`. Everything goes through the crate's public surface.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::Empty;
use hyper::header::LOCATION;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use steadyhand::{Call, ToolExecutor, ToolManager};
use steadyhand_mcp::oauth::{Account, Browser, OAuthSettings, TokenStore};
use steadyhand_mcp::wire::RpcError;
use steadyhand_mcp::{
    Counterpart, Elicitation, Listed, Login, Passage, Protocol, Question, Server, ServerSettings,
};
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(20);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let url = std::env::args().next_back().unwrap_or_default();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let context: Value =
        serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let mut settings = ServerSettings::http("suite", &url);
    settings.prefix = false;
    // The suite has a version in mind; without one, ours is found out as everywhere.
    settings.protocol = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
        "" => Protocol::Auto,
        version if version < "2026" => Protocol::Legacy,
        _ => Protocol::Modern,
    };
    settings.requests.elicitation = Elicitation::Accept(match scenario.as_str() {
        "sep-2322-client-request-state" => json!({"confirmed": true}),
        _ => json!({}),
    });
    if scenario.starts_with("auth/") {
        settings.as_http().login = Some(Login::new("suite", Arc::new(account(url, &context))));
        // A login that fails is not tried again and again.
        settings.start.waits = vec![Duration::ZERO];
    }
    let driver = Driver::connect(settings).await?;
    match scenario.as_str() {
        "tools_call" => driver.call("add_numbers", json!({"a": 5, "b": 3})).await?,
        "elicitation-sep1034-client-defaults" => {
            driver
                .call("test_client_elicitation_defaults", json!({}))
                .await?;
        }
        "sse-retry" => driver.call("test_reconnection", json!({})).await?,
        "sep-2322-client-request-state" => {
            // One between the rounds of another: neither may hold what belongs to the other.
            let (echo, other) = tokio::join!(
                driver.call("test_mrtr_echo_state", json!({})),
                driver.call("test_mrtr_unrelated", json!({})),
            );
            echo.and(other)?;
            driver.call("test_mrtr_no_state", json!({})).await?;
            driver.call("test_mrtr_no_result_type", json!({})).await?;
        }
        "http-standard-headers" => driver.ask_for_everything().await?,
        "http-custom-headers" => {
            for call in context["toolCalls"].as_array().into_iter().flatten() {
                let tool = call["name"].as_str().unwrap_or_default();
                let mut arguments = call["arguments"].clone();
                if let Some(arguments) = arguments.as_object_mut() {
                    // A null is no boolean, and would be refused by the tool's own schema: it is left out.
                    arguments.retain(|_, value| !value.is_null());
                }
                driver.call(tool, arguments).await?;
            }
        }
        "http-invalid-tool-headers" => {
            for tool in driver.tools.tools().list().iter() {
                driver
                    .call(tool.name(), json!({"region": "us-west1"}))
                    .await?;
            }
        }
        "json-schema-2020-12-preservation" => driver.echo_a_schema().await?,
        // Calling may take more rights than listing.
        login if login.starts_with("auth/") => driver.call_everything().await?,
        // To connect and to list is all there is to do.
        _ => {}
    }
    driver.server.stop().await;
    Ok(())
}

struct Driver {
    server: Server,
    tools: ToolExecutor,
}

impl Driver {
    async fn connect(settings: ServerSettings) -> Result<Driver> {
        let server = Server::new(settings, None);
        server.start();
        if !server.settled(LIMIT).await {
            let failure = server.state().failure;
            let why = failure.map(|failure| failure.detail());
            return Err(why.unwrap_or_else(|| "it is not up".to_owned()).into());
        }
        let tools = ToolExecutor::new(ToolManager::new());
        tools.tools().replace_source(server.name(), server.tools());
        Ok(Driver { server, tools })
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<()> {
        let outcome = self.tools.execute(Call::new(tool, arguments)).await;
        match &outcome.result {
            Ok(_) => Ok(()),
            Err(failure) => Err(format!("{tool}: {failure}").into()),
        }
    }

    async fn call_everything(&self) -> Result<()> {
        for tool in self.tools.tools().list().iter() {
            self.call(tool.name(), json!({})).await?;
        }
        Ok(())
    }

    /// One of each kind of request that has a name in its headers.
    async fn ask_for_everything(&self) -> Result<()> {
        self.call_everything().await?;
        for (kind, method, member) in [
            (Listed::Resources, "resources/read", "uri"),
            (Listed::Prompts, "prompts/get", "name"),
        ] {
            for entry in self.server.listed(kind).iter() {
                let entry: Value = serde_json::from_str(entry.get())?;
                let mut params = Map::new();
                params.insert(member.to_owned(), entry[member].clone());
                self.ask(method, Value::Object(params)).await?;
            }
        }
        Ok(())
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Box<RawValue>> {
        let nobody = Arc::new(Nobody(json!({})));
        let passage = Arc::new(Passage::new(nobody, Vec::new(), None));
        let params = to_raw_value(&params)?;
        let until = Instant::now() + LIMIT;
        let asked = self.server.ask(method, Some(&params), &passage, until);
        asked.await.map_err(|error| error.message.into())
    }

    /// Gives back a schema as it was received.
    async fn echo_a_schema(&self) -> Result<()> {
        for tool in self.tools.tools().list().iter() {
            if tool.name() == "json_schema_echo" {
                continue;
            }
            let definition = self.server.definition(tool.name());
            let definition = definition.ok_or("no definition")?;
            let definition: Value = serde_json::from_str(definition.get())?;
            let schema = definition["inputSchema"].clone();
            self.call("json_schema_echo", json!({ "schema": schema }))
                .await?;
        }
        Ok(())
    }
}

/// Our account there: the client that the suite has registered, or one that is registered as it goes.
fn account(url: String, context: &Value) -> Account {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let settings = OAuthSettings {
        client_id: text("client_id"),
        client_secret: text("client_secret"),
        client_metadata: Some("https://conformance-test.local/client-metadata.json".to_owned()),
        scopes: Vec::new(),
    };
    let account = Account::new(url, settings, Arc::new(InMemory::default()), "log in");
    account.asking(Arc::new(Headless))
}

#[derive(Default)]
struct InMemory(Mutex<Option<String>>);

impl TokenStore for InMemory {
    fn load(&self) -> std::result::Result<Option<String>, String> {
        Ok(self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone())
    }

    fn save(&self, text: &str) -> std::result::Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
        Ok(())
    }

    fn clear(&self) -> std::result::Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(())
    }

    fn lock(&self) -> std::result::Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
}

/// A person who says yes at once: the suite's server redirects without a question.
struct Headless;

impl Browser for Headless {
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:3000/callback".to_owned()
    }

    fn visit<'a>(&'a self, address: &'a str) -> BoxFuture<'a, std::result::Result<String, String>> {
        Box::pin(async move {
            let client: Client<HttpConnector, Empty<Bytes>> =
                Client::builder(TokioExecutor::new()).build_http();
            let address = address.parse().map_err(|_| "no address".to_owned())?;
            let answer = client.get(address).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let to = answer.headers().get(LOCATION);
            let to = to.and_then(|to| to.to_str().ok()).map(str::to_owned);
            to.ok_or_else(|| format!("not sent back: {}", answer.status()))
        })
    }
}

/// Nobody who could be asked.
struct Nobody(Value);

impl Counterpart for Nobody {
    fn capabilities(&self) -> &Value {
        &self.0
    }

    fn ask(
        self: Arc<Self>,
        questions: Vec<Question>,
    ) -> BoxFuture<'static, Vec<std::result::Result<Box<RawValue>, RpcError>>> {
        let no = || Err(RpcError::new(-32601, "nobody is here"));
        Box::pin(async move { questions.iter().map(|_| no()).collect() })
    }

    fn tell(&self, _: &str, _: Option<&RawValue>) {}

    fn log_level(&self) -> Option<&str> {
        None
    }
}
