//! Conversations that a provider would refuse are mended on the way, and everybody can see what was done.

use serde_json::{Value, json};

use super::{Provider, broken, newest_exchange, ok, proxy, proxy_with, valid};
use crate::serve::until;

#[tokio::test(flavor = "multi_thread")]
async fn r03_a_broken_conversation_is_mended_listed_counted_and_kept_in_history() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let reply = served.post("/proxy/anthropic/v1/messages", broken()).await;
    assert_eq!((reply.status, reply.json()), (200, ok()));
    assert_eq!(
        reply.header("steadyhand-fixes"),
        Some("missing_result;at=\"/messages/1/content/0\"")
    );
    let sent = provider.last().json();
    let result = &sent["messages"][2]["content"][0];
    assert_eq!(result["type"], "tool_result");
    assert_eq!(result["tool_use_id"], "t1");
    assert_eq!(result["is_error"], true);
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["provider"], "anthropic");
    assert_eq!(exchange["path"], "/v1/messages");
    assert_eq!(exchange["model"], "m");
    assert_eq!(exchange["status"], 200);
    assert_eq!(exchange["fix_count"], 1);
    assert_eq!(exchange["fixes"][0]["code"], "missing_result");
    assert_eq!(exchange["fixes"][0]["at"], "/messages/1/content/0");
    assert!(
        !exchange.to_string().contains("Rome"),
        "what was said is not kept"
    );
    let figures = served.get("/metrics").await.text;
    for row in [
        "steadyhand_conversation_fixes_total{provider=\"anthropic\",code=\"missing_result\"} 1",
        "steadyhand_proxy_exchanges_total{provider=\"anthropic\",result=\"answered\"} 1",
        "steadyhand_proxy_open{} 0.0",
    ] {
        assert!(figures.contains(row), "{row} is not in {figures}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_results_in_another_order_than_their_calls_pass_as_they_are() {
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let found = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let called = |name: &str| json!({"functionCall": {"name": name, "args": {}}});
    let answered =
        |name: &str| json!({"functionResponse": {"name": name, "response": {"output": "r"}}});
    let item = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r"});
    let rows = [
        (
            "openai",
            "/v1/chat/completions",
            json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": null, "tool_calls": [call("aa"), call("bb")]},
                {"role": "tool", "tool_call_id": "bb", "content": "r"}, {"role": "tool", "tool_call_id": "aa", "content": "r"}]}),
        ),
        (
            "openai",
            "/v1/responses",
            json!({"model": "m", "input": [{"role": "user", "content": "Hi"}, item("aa"), item("bb"), output("bb"), output("aa")]}),
        ),
        (
            "anthropic",
            "/v1/messages",
            json!({"model": "m", "max_tokens": 10, "tools": [{"name": "look", "description": "d", "input_schema": {"type": "object"}}],
                "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [used("aa"), used("bb")]}, {"role": "user", "content": [found("bb"), found("aa")]}]}),
        ),
        (
            "gemini",
            "/v1beta/models/g:generateContent",
            json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [called("aa"), called("bb")]},
                {"role": "user", "parts": [answered("bb"), answered("aa")]}]}),
        ),
    ];
    for (site, path, request) in rows {
        let provider = Provider::json(ok()).await;
        let served = proxy(site, provider.url()).await;
        served
            .post(&format!("/proxy/{site}{path}"), request.clone())
            .await;
        assert_eq!(provider.last().body, request.to_string(), "{site}{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_a_valid_conversation_keeps_its_bytes_and_leaves_no_trace() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let odd = "{ \"model\":\"m\",\"max_tokens\" : 10,\"big\":123456789012345678901234567890 ,\n\t\"messages\":[{\"role\":\"user\",\"content\":\"\\u00e9\\/\"}]}";
    let reply = served
        .send("POST", "/proxy/anthropic/v1/messages", &[], odd)
        .await;
    assert_eq!(reply.status, 200);
    assert_eq!(provider.last().body, odd);
    assert_eq!(reply.header("steadyhand-fixes"), None);
    let listed = served.get("/v1/exchanges").await.json();
    assert_eq!(listed, json!({"exchanges": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn r03_what_is_not_mended_keeps_its_bytes_beside_what_is() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let sent = r#"{"model":"m","max_tokens":10,"seed":123456789012345678901234567890,"temperature":1.0,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"w","input":{"x":1.50}}]},{"role":"user","content":"Hello?"}],"tools":[{"name":"w","input_schema":{"type":"object"}}]}"#;
    served
        .send("POST", "/proxy/anthropic/v1/messages", &[], sent)
        .await;
    let got = String::from_utf8(provider.last().body.to_vec()).expect("text");
    for kept in [
        "\"seed\":123456789012345678901234567890",
        "\"temperature\":1.0",
        "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"w\",\"input\":{\"x\":1.50}}",
    ] {
        assert!(got.contains(kept), "{kept} is not in {got}");
    }
    assert!(got.contains("tool_result"), "{got}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_providers_conversations_are_known_by_their_paths() {
    let provider = Provider::json(json!({})).await;
    let upstream = provider.url();
    let sites = ["anthropic", "openai", "ollama", "gemini", "mistral"];
    let config = sites.map(|site| format!("[proxy.{site}]\nupstream = \"{upstream}\"\n"));
    let served = crate::serve::Served::with_config(&config.join("\n")).await;
    let chat = json!({"model": "m", "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "abcdefghi", "type": "function", "function": {"name": "w", "arguments": "{}"}}]},
        {"role": "user", "content": "Hello?"}]});
    let items = json!({"model": "m", "input": [
        {"role": "user", "content": "?"},
        {"type": "function_call", "call_id": "c1", "name": "w", "arguments": "{}"}]});
    let ollama = json!({"model": "m", "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "w", "arguments": {}}}]},
        {"role": "user", "content": "Hello?"}]});
    let gemini = json!({"contents": [
        {"role": "user", "parts": [{"text": "?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "w", "args": {}}, "thoughtSignature": "s"}]},
        {"role": "user", "parts": [{"text": "Hello?"}]}]});
    let mended: [(&str, &Value); 12] = [
        ("anthropic/v1/messages", &broken()),
        ("anthropic/v1/messages?beta=true", &broken()),
        ("openai/v1/chat/completions", &chat),
        ("openai/v1/responses", &items),
        ("ollama/api/chat", &ollama),
        ("ollama/v1/chat/completions", &chat),
        ("ollama/v1/messages", &broken()),
        (
            "gemini/v1beta/models/gemini-2.5-pro:generateContent",
            &gemini,
        ),
        (
            "gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
            &gemini,
        ),
        ("gemini/v1beta/openai/chat/completions", &chat),
        ("mistral/v1/chat/completions", &chat),
        ("openai/openai/v1/chat/completions", &chat),
    ];
    for (path, body) in mended {
        let reply = served
            .post(&format!("/proxy/{path}"), (*body).clone())
            .await;
        let fixes = reply.header("steadyhand-fixes").unwrap_or_default();
        assert!(fixes.contains("missing_result"), "{path}: {fixes}");
        assert_ne!(provider.last().json(), *body, "{path}");
    }
    let untouched: [(&str, &Value); 6] = [
        ("anthropic/v1/messages/batches", &broken()),
        ("openai/v1/threads/t/messages", &broken()),
        ("openai/v1/embeddings", &chat),
        ("ollama/api/generate", &ollama),
        ("gemini/v1beta/models/g:countTokens", &gemini),
        ("mistral/v1/fim/completions", &chat),
    ];
    for (path, body) in untouched {
        let reply = served
            .post(&format!("/proxy/{path}"), (*body).clone())
            .await;
        assert_eq!(reply.header("steadyhand-fixes"), None, "{path}");
        assert_eq!(provider.last().body, body.to_string(), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_conversation_is_mended_as_well() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let mut body = broken();
    body["messages"][0]["content"] = json!("x".repeat(3 * 1024 * 1024));
    let reply = served.post("/proxy/anthropic/v1/messages", body).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("steadyhand-fixes").is_some());
    let sent = provider.last().json();
    assert_eq!(sent["messages"][2]["content"][0]["type"], "tool_result");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_fixes_fit_into_the_header() {
    let provider = Provider::json(ok()).await;
    let served = proxy("anthropic", provider.url()).await;
    let mut body = broken();
    let call = |index: usize| json!({"type": "tool_use", "id": format!("t{index}"), "name": "weather", "input": {}});
    body["messages"][1]["content"] = (0..500).map(call).collect();
    let reply = served.post("/proxy/anthropic/v1/messages", body).await;
    let fixes = reply.header("steadyhand-fixes").expect("fixes");
    assert!(fixes.ends_with("more;count=468"), "{fixes}");
    assert!(fixes.len() < 8 * 1024);
    let exchange = newest_exchange(&served).await;
    assert_eq!(exchange["fix_count"], 500);
    assert_eq!(exchange["fixes"].as_array().map(Vec::len), Some(50));
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_can_be_switched_off_and_on_again_while_it_runs() {
    let provider = Provider::json(ok()).await;
    let served = proxy_with("anthropic", provider.url(), "repair = false").await;
    let reply = served.post("/proxy/anthropic/v1/messages", broken()).await;
    assert_eq!(reply.header("steadyhand-fixes"), None);
    assert_eq!(provider.last().json(), broken());
    let config = format!("[proxy.anthropic]\nupstream = \"{}\"\n", provider.url());
    served.workplace.write("steadyhand.toml", &config);
    assert_eq!(
        served.post("/v1/config/reload", json!({})).await.status,
        200
    );
    until("the new settings are in force", async || {
        let reply = served.post("/proxy/anthropic/v1/messages", broken()).await;
        reply.header("steadyhand-fixes").map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conversations_are_kept_only_where_that_is_configured_and_without_secrets() {
    let provider = Provider::json(ok()).await;
    let off = proxy("anthropic", provider.url()).await;
    off.post("/proxy/anthropic/v1/messages", broken()).await;
    let folder = ".local/state/steadyhand/proxy-conversations";
    let served = proxy_with("anthropic", provider.url(), "keep_conversations = true").await;
    let mut body = broken();
    body["messages"][2]["content"] =
        json!("my password: hunter2hunter2, and sk-abcdefghijklmnop1234");
    served
        .post("/proxy/anthropic/v1/messages", body.clone())
        .await;
    let read = async || {
        let entries = std::fs::read_dir(served.workplace.file(folder)).ok()?;
        let paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        let whole = paths
            .iter()
            .all(|path| path.extension().is_some_and(|it| it == "jsonl"));
        (paths.len() == 1 && whole).then(|| std::fs::read_to_string(&paths[0]).expect("text"))
    };
    let text = until("it is kept", read).await;
    let lines = text.lines().map(serde_json::from_str);
    let kept: Vec<Value> = lines.collect::<Result<_, _>>().expect("JSON");
    let (head, said) = kept.split_first().expect("a first line");
    assert_eq!(said[0]["content"], "What is the weather in Rome?");
    assert_eq!(said.len(), 5, "as it was sent, and the answer");
    assert_eq!(said[4]["content"][0]["text"], "ok");
    assert_eq!(head["fixes"][0]["code"], "missing_result");
    assert!(
        !text.contains("hunter2") && !text.contains("sk-abc"),
        "{text}"
    );
    // The next turn takes the place of this one.
    body["messages"].as_array_mut().expect("a list").extend([
        json!({"role": "assistant", "content": "ok"}),
        json!({"role": "user", "content": "And in Oslo?"}),
    ]);
    served.post("/proxy/anthropic/v1/messages", body).await;
    until("the next turn is kept", async || {
        read().await.filter(|text| text.contains("And in Oslo?"))
    })
    .await;
    assert!(!off.workplace.file(folder).exists());
    served.post("/proxy/anthropic/v1/messages", valid()).await;
    until("another conversation is another file", async || {
        let entries = std::fs::read_dir(served.workplace.file(folder)).ok()?;
        (entries.count() == 2).then_some(())
    })
    .await;
}
