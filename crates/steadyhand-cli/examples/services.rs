//! An application lends its own services to a model, by name (kind `internal`): the conversation so
//! far, who is speaking, and a search in a folder of documents (`rag_query`).
//!
//! Run: `cargo run -p steadyhand-server --example services`

use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::{Value, json};
use steadyhand::source::definition;
use steadyhand::source::internal::InternalHandlers;
use steadyhand::{Call, CallContext, ToolError, ToolExecutor, ToolManager};
use steadyhand_config::documents::DocumentsSettings;
use steadyhand_config::progress::Progress;
use steadyhand_store::documents;

/// What the application keeps anyway: here in memory, in yours perhaps in a database.
#[derive(Default)]
struct Conversation {
    messages: Mutex<Vec<String>>,
}

#[derive(Deserialize)]
struct HistoryArgs {
    #[serde(default = "five")]
    last: usize,
}

fn five() -> usize {
    5
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    write_documents(&home.path().join("docs"))?;

    // 1. The services, each under the name that definitions use. A service is an async function;
    //    what it needs of the application it captures.
    let services = InternalHandlers::new();

    let conversation = Arc::new(Conversation::default());
    let remembered = Arc::clone(&conversation);
    services.register("conversation_history", move |args: HistoryArgs| {
        let remembered = Arc::clone(&remembered);
        async move {
            let messages = remembered
                .messages
                .lock()
                .map_err(|_| ToolError::new("the history is lost"))?;
            let from = messages.len().saturating_sub(args.last);
            Ok::<_, ToolError>(json!({ "messages": &messages[from..] }))
        }
    });

    // One that asks for the call's context: its id, its deadline, a token that ends with it.
    services.register("user_context", |call: CallContext, _: Value| async move {
        let user = json!({"name": "Kari", "language": "nb", "rooms": ["kitchen", "bath"]});
        Ok::<_, ToolError>(json!({"user": user, "asked_in": call.call_id()}))
    });

    // `rag_query` comes with the program: the same as `[documents] folders = ["docs"]` in a file.
    documents::register(
        &services,
        Some(DocumentsSettings::of(["docs"])),
        home.path(),
        &home.path().join("state"),
        &Progress::silent(),
    );

    // 2. The tools a model sees: JSON definitions that name a service. They may come from a file,
    //    and may be loaded before their service is registered: it is looked up at each call.
    let tools = ToolManager::new();
    for tool in definitions() {
        tools.add(definition::tool(&tool, &services)?)?;
    }
    let executor = ToolExecutor::new(tools);

    // 3. Calls, as a model would make them. There is always an outcome.
    if let Ok(mut messages) = conversation.messages.lock() {
        messages.extend(["Good morning".to_owned(), "The heating is cold".to_owned()]);
    }
    let calls = [
        Call::new("recall", json!({"last": 1})),
        Call::new("who_is_speaking", json!({})).id("call_2"),
        Call::new(
            "search_documents",
            json!({"query": "How do I reset the thermostat?"}),
        ),
        Call::new("search_documents", json!({})),
        Call::new("send_invoice", json!({})),
    ];
    for outcome in executor.execute_batch(calls.to_vec()).await {
        print(&outcome.tool_name, &serde_json::to_value(outcome.flat())?);
    }

    // 4. A service may be replaced while the application runs, and added when it is ready.
    services.register("invoices", |_: Value| async { Ok::<_, ToolError>("sent") });
    let outcome = executor.execute(Call::new("send_invoice", json!({}))).await;
    print(
        "send_invoice, once there is such a service",
        &serde_json::to_value(outcome.flat())?,
    );
    Ok(())
}

fn definitions() -> [Value; 4] {
    let internal = |handler: &str| json!({"type": "internal", "handler": handler});
    [
        json!({
            "name": "recall",
            "description": "The last messages of this conversation",
            "parameters": {"type": "object", "properties": {"last": {"type": "integer", "minimum": 1}}},
            "implementation": internal("conversation_history")
        }),
        json!({
            "name": "who_is_speaking",
            "description": "Name, language and rooms of the person in front of the microphone",
            "parameters": {"type": "object"},
            "implementation": internal("user_context")
        }),
        json!({
            "name": "search_documents",
            "description": "Searches the manuals of this house",
            "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            "implementation": internal("rag_query")
        }),
        json!({
            "name": "send_invoice",
            "description": "Sends the invoice",
            "parameters": {"type": "object"},
            "implementation": internal("invoices")
        }),
    ]
}

fn write_documents(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::write(
        folder.join("thermostat.md"),
        "# Thermostat\n\n## Reset\n\nHold the button for ten seconds. The thermostat then asks for the time.\n\n\
         ## Schedule\n\nWarm from six to nine.\n",
    )?;
    std::fs::write(
        folder.join("lamps.html"),
        "<title>Lamps</title><h2>Kitchen</h2><p>The switch is behind the door.</p>",
    )?;
    std::fs::write(
        folder.join("notes.txt"),
        "The key of the cellar hangs in the hall.\n",
    )
}

#[allow(clippy::print_stdout, reason = "this is what the example is for")]
fn print(what: &str, view: &Value) {
    println!("== {what}\n{view:#}\n");
}
