//! Three tools in an application: one that works, one that fails and has a fallback, one that
//! panics. Prints the three views of each outcome. Run: `cargo run --release --example embed`

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use steadyhand::{
    Call, CallContext, Category, Outcome, State, ToolError, ToolExecutor, ToolManager, tool,
};

#[derive(Clone)]
struct Thermometer {
    celsius: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Room {
    /// Which room, such as kitchen
    room: String,
}

/// Tells the temperature of a room.
#[tool]
async fn temperature(
    State(thermometer): State<Thermometer>,
    cx: CallContext,
    args: Room,
) -> Result<serde_json::Value, ToolError> {
    let (room, celsius, attempt) = (args.room, thermometer.celsius, cx.attempt());
    Ok(json!({"room": room, "celsius": celsius, "attempt": attempt}))
}

/// Switches the lights of a room on.
#[tool]
async fn lights(_: Room) -> Result<String, ToolError> {
    Err(ToolError::of(Category::Network, "no route to the lamp"))
}

/// Opens the blinds of a room.
#[tool]
async fn blinds(args: Room) -> Result<String, ToolError> {
    let rooms = ["kitchen", "bath"];
    let window = rooms.iter().position(|room| *room == args.room).unwrap() + 1;
    Ok(format!("window {} is clear", ["one", "two"][window]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tools = ToolManager::new().with_state(Thermometer { celsius: 21.5 });
    tools.add(temperature::tool())?;
    tools.add(lights::tool().fallback_value(json!("The evening scene is on instead")))?;
    tools.add(blinds::tool().no_retry())?;

    let executor = ToolExecutor::new(tools);
    let calls = ["temperature", "lights", "blinds"]
        .map(|name| Call::new(name, json!({"room": "bath"})).id(format!("call_{name}")));
    for outcome in executor.execute_batch(calls.to_vec()).await {
        print(&outcome)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "this is what the example is for")]
fn print(outcome: &Outcome) -> serde_json::Result<()> {
    println!("\n== {}", outcome.tool_name);
    println!(
        "structured  {}",
        serde_json::to_string(&outcome.structured())?
    );
    println!("flat        {}", serde_json::to_string(&outcome.flat())?);
    println!("message     {}", serde_json::to_string(&outcome.message())?);
    Ok(())
}
