//! The client that the MCP conformance suite drives: it starts us with the address of its server as the last argument
//! and the scenario's name in `MCP_CONFORMANCE_SCENARIO`. Everything goes through the crate's public surface.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};
use steadyhand::{Call, ToolExecutor, ToolManager};
use steadyhand_mcp::wire::RpcError;
use steadyhand_mcp::{
    Counterpart, Elicitation, Listed, Passage, Protocol, Question, Server, ServerSettings,
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
    let mut settings = ServerSettings::http("suite", url);
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

    /// One of each kind of request that has a name in its headers.
    async fn ask_for_everything(&self) -> Result<()> {
        for tool in self.tools.tools().list().iter() {
            self.call(tool.name(), json!({})).await?;
        }
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
        let passage = Arc::new(Passage::new(nobody, Map::new(), None));
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
