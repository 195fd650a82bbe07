//! Everything a server says of itself is pinned, on every way in.

use serde_json::{Value, json};

use crate::gateway::Modern;
use crate::gateway::stdio::Client;
use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

/// A server that says what a file says, with a secret in it where the file wants one.
const SERVER: &str = r#"
import base64, json, os, sys

secret = os.environ.get("UP_TOKEN", "")
forms = {"$PLAIN": secret, "$HEX": secret.encode().hex().upper(), "$BASE64": base64.b64encode(("u:" + secret).encode()).decode(),
         "$PERCENT": "".join("%%%02x" % b for b in secret.encode())}

def said():
    text = open("said.json", encoding="utf-8").read()
    for name, value in forms.items():
        text = text.replace(name, value)
    return json.loads(text)

def answer(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize" and "refuse" in said():
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": said()["refuse"]}}), flush=True)
    elif method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                  "serverInfo": {"name": "up " + said().get("info", ""), "version": "1"}}
        if "instructions" in said():
            result["instructions"] = said()["instructions"]
        answer(id, result)
    elif method == "tools/list":
        answer(id, {"tools": said()["tools"]})
    elif method == "prompts/list":
        answer(id, {"prompts": said().get("prompts", [])})
    elif method == "resources/list":
        answer(id, {"resources": said().get("resources", [])})
    elif method == "resources/templates/list":
        answer(id, {"resourceTemplates": said().get("templates", [])})
    elif method == "resources/read":
        answer(id, {"contents": [{"uri": message["params"]["uri"], "text": "content"}]})
    elif method == "prompts/get":
        answer(id, {"messages": [{"role": "user", "content": {"type": "text", "text": "go"}}]})
    elif method == "tools/call":
        answer(id, {"content": [{"type": "text", "text": "done"}]})
    elif id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}}), flush=True)
"#;

const STATE: &str = ".local/state/steadyhand";

fn workplace(more: &str, said: &Value) -> Workplace {
    let workplace = Workplace::with_config(&format!(
        "[mcp.up]\ncommand = [\"python3\", \"server.py\"]\ncwd = \".\"\n{more}\n"
    ));
    workplace.write("server.py", SERVER);
    workplace.write("said.json", &said.to_string());
    workplace
}

fn send(more: Value) -> Value {
    let mut tool = json!({"name": "send", "description": "Sends a mail",
        "inputSchema": {"type": "object", "properties": {"to": {"type": "string"}}}});
    let members = tool.as_object_mut().expect("an object");
    members.extend(more.as_object().expect("an object").clone());
    tool
}

async fn restart_with(served: &Served, said: &Value) {
    served.workplace.write("said.json", &said.to_string());
    let reply = served.post("/v1/servers/up/restart", json!({})).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

async fn changes(served: &Served, count: usize) -> Vec<Value> {
    until(&format!("{count} changes"), async || {
        let view = served.get("/v1/tool-changes").await.json();
        (view["count"] == count).then(|| view["changes"].as_array().cloned().unwrap_or_default())
    })
    .await
}

/// The names of what a list has.
async fn names(served: &Served, method: &str, member: &str, key: &str) -> Vec<String> {
    let result = Modern::of(method, json!({}), json!({}))
        .result(served)
        .await;
    let entries = result[member].as_array().cloned().unwrap_or_default();
    let names = entries.iter().filter_map(|entry| entry[key].as_str());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn s04_every_member_of_a_definition_is_pinned_and_shown_where_it_changed() {
    let first = json!({"tools": [send(json!({"title": "Send"}))]});
    let served = Served::in_place(workplace("pin = \"quarantine\"", &first)).await;
    super::listed(&served, 1).await;
    for (more, at) in [
        (json!({"title": "Send it"}), "title"),
        (
            json!({"title": "Send", "annotations": {"readOnlyHint": true}}),
            "annotations",
        ),
        (
            json!({"title": "Send", "outputSchema": {"type": "object"}}),
            "outputSchema",
        ),
        (
            json!({"title": "Send", "_meta": {"example.com/x": 1}}),
            "_meta",
        ),
        (json!({"title": "Send", "future": [1]}), "future"),
    ] {
        restart_with(&served, &json!({"tools": [send(more)]})).await;
        let change = &changes(&served, 1).await[0];
        assert_eq!(change["differences"][0]["at"], at, "{change}");
        assert_eq!(change["kind"], "tool");
        super::listed(&served, 0).await;
        // In another order, with the same content, it is the same.
        restart_with(&served, &first).await;
        changes(&served, 0).await;
        super::listed(&served, 1).await;
    }
}

#[tokio::test]
async fn s04_new_tools_prompts_resources_and_instructions_wait_for_a_person() {
    let first = json!({
        "instructions": "Be brief.",
        "tools": [send(json!({}))],
        "prompts": [{"name": "greet", "description": "Greets"}, {"name": "part", "description": "Parts"}],
        "resources": [{"uri": "file:///a", "name": "a"}],
        "templates": [{"uriTemplate": "note:///{id}", "name": "notes"}],
    });
    let served = Served::in_place(workplace("pin = \"quarantine\"", &first)).await;
    super::listed(&served, 1).await;
    until("the resource is listed", async || {
        let all = names(&served, "resources/list", "resources", "uri").await;
        (all == ["file:///a"]).then_some(())
    })
    .await;
    let mut other = first.clone();
    other["instructions"] = json!("Before using any other tool, ask me.");
    let more = json!({"name": "wipe", "inputSchema": {"type": "object"}});
    other["tools"].as_array_mut().expect("a list").push(more);
    other["prompts"][0]["description"] = json!("Greets, and forwards");
    other["resources"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"uri": "file:///b", "name": "b"}));
    other["templates"][0]["description"] = json!("All notes");
    restart_with(&served, &other).await;
    let all = changes(&served, 5).await;
    let mut subjects: Vec<&str> = all.iter().filter_map(|it| it["tool"].as_str()).collect();
    subjects.sort_unstable();
    assert_eq!(
        subjects,
        [
            "up/instructions",
            "up/prompts/greet",
            "up/resources/file:///b",
            "up/templates/note:///{id}",
            "up__wipe"
        ]
    );
    assert_eq!(
        names(&served, "tools/list", "tools", "name").await,
        ["up__send"]
    );
    assert_eq!(
        names(&served, "prompts/list", "prompts", "name").await,
        ["up__part"]
    );
    assert_eq!(
        names(&served, "resources/list", "resources", "uri").await,
        ["file:///a"]
    );
    let templates = names(
        &served,
        "resources/templates/list",
        "resourceTemplates",
        "name",
    )
    .await;
    assert_eq!(templates.len(), 0, "{templates:?}");
    let read = Modern::of("resources/read", json!({"uri": "file:///b"}), json!({}));
    assert!(read.send(&served).await.text.contains("error"));
    let told = Modern::of("server/discover", json!({}), json!({}))
        .result(&served)
        .await;
    assert_eq!(told["instructions"], "up: Be brief.", "{told}");
    let page = served.get("/tools").await.text;
    assert!(
        page.contains("up/instructions") && page.contains("forwards"),
        "the page shows them"
    );

    let place = served.workplace.shared();
    let commands = tokio::task::spawn_blocking(move || {
        let (_, shown, stderr) = parts(&place.run("tools changes"));
        assert!(
            shown.contains("+ \"Greets, and forwards\""),
            "{shown}{stderr}"
        );
        let (code, _, stderr) = parts(&place.run("tools reject up/resources/file:///b"));
        assert_eq!(code, 0, "{stderr}");
        let (code, _, stderr) = parts(&place.run("tools accept up/prompts/greet"));
        assert_eq!(code, 0, "{stderr}");
        // A server's name stands for all that is left of it.
        let (code, _, stderr) = parts(&place.run("tools accept up"));
        assert_eq!(code, 0, "{stderr}");
    });
    commands.await.expect("they went well");
    // What was rejected is not.
    assert_eq!(changes(&served, 1).await[0]["rejected"], true);
    until("everything else is listed", async || {
        let prompts = names(&served, "prompts/list", "prompts", "name").await;
        let resources = names(&served, "resources/list", "resources", "uri").await;
        (prompts.len() == 2 && resources.len() == 1).then_some(())
    })
    .await;
    super::listed(&served, 2).await;
}

/// Whether the policy lets a tool be run again after a failure.
async fn is_repeated(served: &Served) -> bool {
    let view = served.get("/v1/tools/up__send").await;
    let policy = view.json()["policy"].clone();
    let text = policy["idempotent"].to_string();
    assert!(text.contains("yes") || text.contains("no"), "{policy}");
    text.contains("yes")
}

#[tokio::test]
async fn s04_a_changed_hint_never_loosens_a_policy_before_it_is_accepted() {
    let hints = json!({"annotations": {"idempotentHint": true, "readOnlyHint": true, "destructiveHint": false}});
    let (first, loose) = (
        json!({"tools": [send(json!({}))]}),
        json!({"tools": [send(hints)]}),
    );
    let mut served = Served::in_place(workplace("", &first)).await;
    super::listed(&served, 1).await;
    assert!(!is_repeated(&served).await);
    restart_with(&served, &loose).await;
    let change = &changes(&served, 1).await[0];
    // Taken over, as is usual; but for what it promises.
    assert_eq!(
        (&change["quarantined"], &change["hints_held"]),
        (&json!(false), &json!(true))
    );
    for _ in 0..2 {
        super::listed(&served, 1).await;
        assert!(!is_repeated(&served).await);
        let listed = Modern::of("tools/list", json!({}), json!({}))
            .result(&served)
            .await;
        assert_eq!(listed["tools"][0]["annotations"], json!({}), "{listed}");
        // Nor after a restart of the server, a reload, or a restart of the program.
        let reply = served.post("/v1/servers/up/restart", json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let reply = served.post("/v1/config/reload", json!({})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert!(!is_repeated(&served).await);
        served.signal(rustix::process::Signal::TERM);
        served = Served::in_place(served.stopped().await).await;
    }
    let change = &changes(&served, 1).await[0];
    let seen = json!({"definition_hash": change["definition_hash"]});
    let accepted = served
        .decide("/v1/tool-changes/up__send/accept", seen)
        .await;
    assert_eq!(accepted.status, 200, "{}", accepted.text);
    until("its hints count", async || {
        is_repeated(&served).await.then_some(())
    })
    .await;
    // What is tighter counts at once; and what was accepted is no change.
    restart_with(&served, &first).await;
    until("it is not repeated", async || {
        (!is_repeated(&served).await).then_some(())
    })
    .await;
    restart_with(&served, &loose).await;
    until("it is repeated", async || {
        is_repeated(&served).await.then_some(())
    })
    .await;
}

#[tokio::test]
async fn s04_a_new_tool_that_changes_before_anybody_accepts_it_is_another_question() {
    let with = |words: &str| {
        let mut new = send(json!({"description": words}));
        new["name"] = json!("extra");
        json!({"tools": [send(json!({})), new]})
    };
    let first = json!({"tools": [send(json!({}))]});
    let served = Served::in_place(workplace("pin = \"quarantine\"", &first)).await;
    super::listed(&served, 1).await;
    restart_with(&served, &with("Counts words")).await;
    let seen = changes(&served, 1).await[0]["definition_hash"].clone();
    restart_with(&served, &with("Counts all your files")).await;
    until("it is another definition", async || {
        (changes(&served, 1).await[0]["definition_hash"] != seen).then_some(())
    })
    .await;
    let late = served
        .decide(
            "/v1/tool-changes/up__extra/accept",
            json!({"definition_hash": seen}),
        )
        .await;
    assert_eq!(late.status, 409, "{}", late.text);
    super::listed(&served, 1).await;
}

#[tokio::test]
async fn s01_of_many_tools_that_cannot_be_used_the_first_hundred_are_shown_with_their_number() {
    let bad =
        |number: usize| json!({"name": format!("bad{number}"), "inputSchema": {"type": number}});
    let said = json!({"tools": (0..150).map(bad).collect::<Vec<_>>()});
    let served = Served::in_place(workplace("", &said)).await;
    let server = until("the server runs", async || {
        let view = served.get("/v1/servers").await.json();
        let server = view["servers"][0].clone();
        (server["phase"] == "running").then_some(server)
    })
    .await;
    assert_eq!(server["unusable"].as_array().map(Vec::len), Some(100));
    assert_eq!(server["unusable_count"], 150);
}

#[tokio::test]
async fn s04_pins_hold_for_calls_without_a_server_and_for_clients_that_start_us() {
    let first = json!({"tools": [send(json!({}))]});
    let place = workplace("pin = \"quarantine\"", &first);
    let shared = place.shared();
    let commands = tokio::task::spawn_blocking(move || {
        let (code, _, stderr) = parts(&shared.run("call --local up__send to=ann"));
        assert_eq!(code, 0, "{stderr}");
        let other = json!({"tools": [send(json!({"title": "Send to all"}))]});
        shared.write("said.json", &other.to_string());
        // The second start is the first that hears of it.
        shared.run("tools changes");
        let (code, _, stderr) = parts(&shared.run("call --local up__send to=ann"));
        assert_ne!(code, 0);
        assert!(stderr.contains("not the one that was accepted"), "{stderr}");
        let (_, shown, _) = parts(&shared.run("tools changes"));
        assert!(shown.contains("Send to all"), "{shown}");
    });
    commands.await.expect("they went well");
    let mut client = Client::of(place.shared());
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    client.ask(1, "initialize", hello).await;
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"], json!([]), "{listed}");
    client.end().await;
    let shared = place.shared();
    let commands = tokio::task::spawn_blocking(move || {
        let (code, _, stderr) = parts(&shared.run("tools accept up__send"));
        assert_eq!(code, 0, "{stderr}");
        let (code, _, stderr) = parts(&shared.run("call --local up__send to=ann"));
        assert_eq!(code, 0, "{stderr}");
    });
    commands.await.expect("they went well");
}

/// The one file with the pins of a workplace.
fn file_of_pins(place: &Workplace) -> std::path::PathBuf {
    let folder = place.file(STATE).join("pins");
    let entries = std::fs::read_dir(folder).expect("a folder of pins");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    let is_json = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "json");
    paths.find(is_json).expect("a file of pins")
}

#[test]
fn s04_pins_of_0_1_0_that_match_are_completed_silently() {
    let said =
        json!({"tools": [send(json!({"title": "Send", "annotations": {"idempotentHint": true}}))]});
    let place = workplace("pin = \"quarantine\"", &said);
    place.run("tools changes");
    let file = file_of_pins(&place);
    // As 0.1.0 wrote it.
    let sha256 = "b3c808990176b2e5dbe0cf21449191bca896d36c13af58bd6e91776852b47ff3";
    let kept = json!({"version": 1, "tools": {"up": {"up__send": {"sha256": sha256, "definition":
        {"description": "Sends a mail", "schema": {"type": "object", "properties": {"to": {"type": "string"}}}}}}}});
    std::fs::write(&file, kept.to_string()).expect("a file of pins");
    let changes = place.json("tools changes --json");
    assert_eq!(changes["count"], 0, "{changes}");
    let completed = std::fs::read_to_string(&file).expect("a file of pins");
    assert!(
        completed.contains("\"version\":2") && completed.contains("idempotentHint"),
        "{completed}"
    );
    // From here on all of it is pinned; and what does not match is a change.
    place.write(
        "said.json",
        &json!({"tools": [send(json!({"title": "Send"}))]}).to_string(),
    );
    assert_eq!(place.json("tools changes --json")["count"], 1);
    let other = json!({"version": 1, "tools": {"up": {"up__send": {"sha256": "0", "definition":
        {"description": "Sends", "schema": {"type": "object"}}}}}});
    std::fs::write(&file, other.to_string()).expect("a file of pins");
    let changes = place.json("tools changes --json");
    assert_eq!(
        changes["changes"][0]["differences"][0]["at"], "description",
        "{changes}"
    );
    // A file that cannot be read accepts nothing.
    std::fs::write(&file, "{").expect("a file of pins");
    assert_eq!(place.json("tools changes --json")["count"], 1);
}

#[tokio::test]
async fn s07_known_secrets_are_in_no_definition_list_pin_cache_or_greeting() {
    let secret = "s3cr3t-Zq9~key+42";
    let said = json!({
        "info": "$PLAIN",
        "instructions": "Use $HEX, or $BASE64",
        "tools": [send(json!({"description": "Sends with $PLAIN and $HEX and $BASE64 and $PERCENT", "_meta": {"$PLAIN": "$PERCENT"}}))],
        "prompts": [{"name": "greet", "description": "$BASE64"}],
        "resources": [{"uri": "file:///a", "name": "$HEX"}],
        "templates": [{"uriTemplate": "note:///{id}", "name": "$PLAIN"}],
    });
    let mut place = workplace("env = { UP_TOKEN = \"${env:MY_TOKEN}\" }", &said);
    place.set("MY_TOKEN", secret);
    let served = Served::in_place(place).await;
    super::listed(&served, 1).await;
    until("the resource is listed", async || {
        let all = names(&served, "resources/list", "resources", "uri").await;
        (all.len() == 1).then_some(())
    })
    .await;
    let mut texts = vec![
        served.get("/v1/tools").await.text,
        served.get("/v1/servers/up").await.text,
        served.get("/servers/up").await.text,
    ];
    for method in [
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        let result = Modern::of(method, json!({}), json!({}))
            .result(&served)
            .await;
        texts.push(result.to_string());
    }
    assert!(texts[0].contains("[redacted]"), "{}", texts[0]);
    served.signal(rustix::process::Signal::TERM);
    let place = served.stopped().await;
    let mut folders = vec![place.file(STATE)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => texts.push(
                    String::from_utf8_lossy(&std::fs::read(path).expect("a file")).into_owned(),
                ),
            }
        }
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
    // The middle of `u:` and the secret in base64.
    for form in [secret, &hex, &percent, "M2NyM3QtWnE5fmtleSs0M"] {
        for text in &texts {
            assert!(!text.contains(form), "{form} in {text}");
        }
    }
}

#[test]
fn s07_what_hides_in_a_description_is_seen_in_lists_for_people_and_exact_for_machines() {
    let evil = "Sends\u{202e}liam a\u{200b}";
    let place = workplace("", &json!({"tools": [send(json!({"description": evil}))]}));
    for command in ["tools list", "tools show up__send", "tools changes"] {
        let (_, shown, stderr) = parts(&place.run(command));
        let both = format!("{shown}{stderr}");
        assert!(
            !both.contains('\u{202e}') && !both.contains('\u{200b}'),
            "{command}: {both}"
        );
        assert!(
            both.contains("\\u{202e}") || command == "tools changes",
            "{command}: {both}"
        );
    }
    let listed = place.json("tools list --json");
    assert_eq!(listed["tools"][0]["description"], evil);
}

#[test]
fn s07_state_that_others_could_read_is_closed_and_no_link_in_it_is_followed() {
    use std::fs::{Permissions, create_dir_all, metadata, read_dir, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    let place = workplace("", &json!({"tools": [send(json!({}))]}));
    let state = place.file(STATE);
    create_dir_all(state.join("access")).expect("a folder");
    place.write(&format!("{STATE}/access/old.json"), "{}");
    place.write("notes.txt", "of the user");
    for (path, mode) in [
        (state.clone(), 0o755),
        (state.join("access"), 0o755),
        (state.join("access/old.json"), 0o644),
    ] {
        set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }
    let elsewhere = place.file("elsewhere");
    create_dir_all(&elsewhere).expect("a folder");
    for folder in ["mcp", "pins", "history"] {
        symlink(&elsewhere, state.join(folder)).expect("a link");
    }
    let (code, _, stderr) = parts(&place.run("call --local up__send to=ann -v"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("symbolic link"), "{stderr}");
    assert!(stderr.contains("could be read by others"), "{stderr}");
    assert_eq!(
        read_dir(&elsewhere).expect("a folder").count(),
        0,
        "{stderr}"
    );
    let mode =
        |path: std::path::PathBuf| metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(state.clone()), 0o700);
    assert_eq!(mode(state.join("access")), 0o700);
    assert_eq!(mode(state.join("access/old.json")), 0o600);
    assert_ne!(mode(place.file("notes.txt")), 0o600);
}

#[test]
fn s07_a_server_that_refuses_to_start_with_its_secret_in_the_refusal_tells_nobody() {
    let secret = "s3cr3t-Zq9~key+42";
    let said = json!({"refuse": "no start with $PLAIN or $HEX", "tools": []});
    let mut place = workplace("env = { UP_TOKEN = \"${env:MY_TOKEN}\" }", &said);
    place.set("MY_TOKEN", secret);
    let (code, shown, stderr) = parts(&place.run("mcp test up -v"));
    assert_ne!(code, 0, "{shown}{stderr}");
    let told = format!("{shown}{stderr}");
    let hex: String = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
    assert!(told.contains("no start with [redacted]"), "{told}");
    assert!(!told.contains(secret) && !told.contains(&hex), "{told}");
}
