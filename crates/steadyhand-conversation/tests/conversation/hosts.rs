//! Who serves a provider's API: each host's own rules, and nobody else's.

use serde_json::{Value, json};
use steadyhand_conversation::{
    Code, Host, Options, Provider, What, repair, repair_with, validate_with,
};

use super::render::{calls, message, render, result, says, user};

fn at(host: Host, provider: Provider, request: &Value) -> (Value, Vec<Code>) {
    let (repaired, fixes) = repair_with(provider, &Options::new().host(host), request.clone());
    let (again, more) = repair_with(provider, &Options::new().host(host), repaired.clone());
    assert_eq!((again, more), (repaired.clone(), vec![]), "{host}");
    (repaired, fixes.into_iter().map(|fix| fix.code).collect())
}

#[test]
fn t06_what_only_openai_refuses_passes_everywhere_else() {
    let id = "call_".repeat(20);
    let call = json!({"id": id, "function": {"name": "files.read", "arguments": {"at": "a1x"}}});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let messages = json!([
        {"role": "developer", "content": "u1x"},
        {"role": "user", "content": "u2x", "tool_calls": null},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": [image]},
        {"role": "assistant", "content": "a1x", "tool_calls": null, "refusal": null},
        {"role": "assistant", "content": null, "tool_calls": []},
        {"role": "user", "content": "u3x"},
    ]);
    let request = json!({"model": "openrouter/auto", "messages": messages});
    let (same, codes) = at(Host::Compatible, Provider::OpenAi, &request);
    assert_eq!((same, codes), (request.clone(), vec![]));
    let options = Options::new().host(Host::Compatible);
    let found = validate_with(Provider::OpenAi, &options, What::Request, &request);
    assert_eq!(found, []);
    let (repaired, codes) = at(Host::Original, Provider::OpenAi, &request);
    assert!(codes.contains(&Code::BadCallId), "{codes:?}");
    assert!(codes.contains(&Code::UnsupportedContent), "{codes:?}");
    assert_eq!(repaired["messages"][1].get("tool_calls"), None);
}

#[test]
fn r03_a_call_without_its_result_is_mended_at_every_host() {
    let steps = [user("u1x"), calls(&["a"]), user("u2x")];
    for provider in [
        Provider::OpenAi,
        Provider::OpenAiResponses,
        Provider::Anthropic,
    ] {
        for host in Host::ALL {
            let (_, codes) = at(host, provider, &render(provider, &steps));
            assert!(
                codes.contains(&Code::MissingResult),
                "{provider} {host} {codes:?}"
            );
        }
    }
}

#[test]
fn r01_azure_names_the_model_in_its_address() {
    let request = json!({"messages": [{"role": "user", "content": "u1x"}]});
    for (host, count) in [(Host::Azure, 0), (Host::Original, 1)] {
        let options = Options::new().host(host);
        let found = validate_with(Provider::OpenAi, &options, What::Request, &request);
        assert_eq!(found.len(), count, "{host} {found:?}");
    }
}

#[test]
fn r03_anthropics_body_is_what_bedrock_and_vertex_take() {
    let mut request = render(
        Provider::Anthropic,
        &[user("u1x"), calls(&["a"]), user("u2x")],
    );
    request["stream"] = json!(true);
    for (host, version) in [
        (Host::Bedrock, "bedrock-2023-05-31"),
        (Host::Vertex, "vertex-2023-10-16"),
    ] {
        let (repaired, codes) = at(host, Provider::Anthropic, &request);
        assert_eq!(repaired["anthropic_version"], version);
        assert_eq!(repaired.get("model"), None);
        // Vertex wants it said in the body.
        assert_eq!(repaired.get("stream").is_some(), host == Host::Vertex);
        assert!(codes.contains(&Code::MissingResult), "{codes:?}");
        assert!(codes.contains(&Code::MissingField), "{codes:?}");
        let options = Options::new().host(host).model("claude-sonnet-4-5");
        let found = validate_with(Provider::Anthropic, &options, What::Request, &repaired);
        assert_eq!(found, [], "{host}");
    }
    // The model of the address decides what is taken at the end.
    let trailing = json!({"anthropic_version": "vertex-2023-10-16", "max_tokens": 9, "messages": [
        {"role": "user", "content": "u1x"}, {"role": "assistant", "content": "a1x"}]});
    let options = Options::new()
        .host(Host::Vertex)
        .model("claude-opus-4-6@default");
    let (_, fixes) = repair_with(Provider::Anthropic, &options, trailing);
    assert_eq!(fixes[0].code, Code::TrailingAssistant);
}

#[test]
fn t06_unsigned_thinking_passes_at_services_in_anthropics_language() {
    let request = json!({"model": "glm-5", "max_tokens": 9, "messages": [
        {"role": "user", "content": "u1x"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a1x"}]},
        {"role": "user", "content": "u2x"},
    ]});
    let (same, _) = at(Host::Compatible, Provider::Anthropic, &request);
    assert_eq!(same, request);
}

#[test]
fn r03_deepseek_gets_results_directly_behind_their_calls() {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
    let output = |id: &str, said: &str| json!({"type": "function_call_output", "call_id": id, "output": said});
    let words = |role: &str, said: &str| json!({"role": role, "content": said});
    let input = json!([
        words("user", "u1x"),
        call("call_a"),
        words("assistant", "a1x"),
        call("call_b"),
        words("developer", "u2x"),
        output("call_a", "r1x"),
        output("call_b", "r2x"),
        words("user", "u3x"),
    ]);
    let request = json!({"model": "deepseek-chat", "input": input});
    let (repaired, codes) = at(Host::DeepSeek, Provider::OpenAiResponses, &request);
    assert_eq!(
        repaired["input"],
        json!([
            words("user", "u1x"),
            words("assistant", "a1x"),
            call("call_a"),
            call("call_b"),
            output("call_a", "r1x"),
            output("call_b", "r2x"),
            words("developer", "u2x"),
            words("user", "u3x"),
        ])
    );
    assert_eq!(codes, [Code::MisplacedResult, Code::MisplacedResult]);
    let options = Options::new().host(Host::DeepSeek);
    let found = validate_with(Provider::OpenAiResponses, &options, What::Request, &request);
    assert_eq!(found[0].at, "/input/2");
    assert_eq!(found[1].at, "/input/4");
    let words_of_it = "No tool output found for tool call call_a.";
    assert!(
        found
            .iter()
            .all(|one| one.provider_text.as_deref() == Some(words_of_it))
    );
    // OpenAI itself finds them.
    assert_eq!(
        repair(Provider::OpenAiResponses, request.clone()),
        (request, vec![])
    );
    // In chat completions, two messages with calls before their results.
    let steps = [
        user("u1x"),
        calls(&["a"]),
        calls(&["b"]),
        result("a", "r1x"),
        result("b", "r2x"),
        says("a1x"),
        user("u2x"),
    ];
    let request = render(Provider::OpenAi, &steps);
    let (repaired, _) = at(Host::DeepSeek, Provider::OpenAi, &request);
    let roles: Vec<&str> = repaired["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["role"].as_str())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool",
            "assistant",
            "user"
        ]
    );
    let developer =
        json!({"model": "m", "messages": [words("developer", "u1x"), words("user", "u2x")]});
    let (repaired, _) = at(Host::DeepSeek, Provider::OpenAi, &developer);
    assert_eq!(repaired["messages"][0]["role"], "system");
}

#[test]
fn t06_a_host_is_known_by_its_address() {
    let table = [
        ("api.openai.com", Host::Original),
        ("api.anthropic.com", Host::Original),
        ("my-company.openai.azure.com", Host::Azure),
        ("bedrock-runtime.eu-central-1.amazonaws.com", Host::Bedrock),
        ("europe-west1-aiplatform.googleapis.com", Host::Vertex),
        ("api.deepseek.com", Host::DeepSeek),
        ("openrouter.ai", Host::Compatible),
        ("notapi.openai.com.example.org", Host::Compatible),
        ("127.0.0.1", Host::Compatible),
    ];
    for (domain, host) in table {
        assert_eq!(Host::of_domain(domain), host, "{domain}");
    }
    for host in Host::ALL {
        assert_eq!(host.as_str().parse(), Ok(host));
    }
}

#[test]
fn t06_makers_serve_each_others_apis_as_any_service_does() {
    let table = [
        ("api.openai.com", Provider::OpenAi, Host::Original),
        ("api.openai.com", Provider::OpenAiResponses, Host::Original),
        ("api.anthropic.com", Provider::Anthropic, Host::Original),
        ("api.anthropic.com", Provider::OpenAi, Host::Compatible),
        (
            "generativelanguage.googleapis.com",
            Provider::Gemini,
            Host::Original,
        ),
        (
            "generativelanguage.googleapis.com",
            Provider::OpenAi,
            Host::Compatible,
        ),
        ("aiplatform.googleapis.com", Provider::Gemini, Host::Vertex),
        (
            "aiplatform.googleapis.com",
            Provider::OpenAi,
            Host::Compatible,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            Provider::OpenAi,
            Host::Compatible,
        ),
        (
            "bedrock-runtime.us-east-1.amazonaws.com",
            Provider::BedrockConverse,
            Host::Bedrock,
        ),
        ("my.openai.azure.com", Provider::OpenAi, Host::Azure),
        ("api.mistral.ai", Provider::Mistral, Host::Original),
        ("api.deepseek.com", Provider::Anthropic, Host::DeepSeek),
        ("127.0.0.1", Provider::Anthropic, Host::Compatible),
    ];
    for (domain, provider, host) in table {
        assert_eq!(
            Host::of_api_at(domain, provider),
            host,
            "{domain} {provider}"
        );
    }
}

#[test]
fn t06_what_only_openais_own_responses_refuse_passes_everywhere_else() {
    let id = "call_".repeat(20);
    let request = json!({"model": "vendor/model", "input": [
        {"role": "user", "content": [{"type": "text", "text": "u1x"}], "name": "Ann"},
        {"type": "function_call", "call_id": id, "name": "files.read", "arguments": {"at": "a1x"}},
        {"type": "function_call_output", "call_id": id, "output": "r1x"},
        {"role": "assistant", "content": "a2x", "tool_calls": null, "refusal": null},
        {"role": "user", "content": "u2x"},
    ]});
    let (same, codes) = at(Host::Compatible, Provider::OpenAiResponses, &request);
    assert_eq!((same, codes), (request.clone(), vec![]));
    let (_, codes) = at(Host::DeepSeek, Provider::OpenAiResponses, &request);
    assert_eq!(codes, [Code::BadContent], "the part of chat completions");
    let (_, codes) = at(Host::Original, Provider::OpenAiResponses, &request);
    for code in [
        Code::BadCallId,
        Code::BadCallName,
        Code::BadContent,
        Code::BadField,
    ] {
        assert!(codes.contains(&code), "{code:?} {codes:?}");
    }
}

#[test]
fn t06_rules_for_anthropics_models_hold_for_no_others() {
    let tool = json!({"name": "look", "description": "Looks", "input_schema": {"type": "object"}});
    let mark = json!({"type": "ephemeral"});
    let block = json!({"type": "text", "text": "u1x", "cache_control": mark});
    let blocks = vec![block; 5];
    let request = json!({"model": "glm-5", "max_tokens": 9, "tools": [tool],
        "system": [{"type": "text", "text": ""}],
        "thinking": {"type": "enabled", "budget_tokens": 5}, "tool_choice": {"type": "any"},
        "messages": [{"role": "user", "content": blocks}]});
    let (same, codes) = at(Host::Compatible, Provider::Anthropic, &request);
    assert_eq!((same, codes), (request.clone(), vec![]));
    let mut claude = request;
    claude["model"] = json!("anthropic/claude-sonnet-4-5");
    let (_, codes) = at(Host::Compatible, Provider::Anthropic, &claude);
    for code in [Code::EmptyContent, Code::ThinkingForced, Code::CacheControl] {
        assert!(codes.contains(&code), "{code:?} {codes:?}");
    }
}

#[test]
fn r03_bedrocks_converse_needs_tools_where_the_history_has_some() {
    let steps = [user("u1x"), calls(&["a"]), result("a", "r1x"), user("u2x")];
    let mut request = render(Provider::BedrockConverse, &steps);
    request["toolConfig"] = json!(null);
    let (repaired, fixes) = repair(Provider::BedrockConverse, request);
    assert_eq!(fixes.len(), 1);
    assert_eq!(fixes[0].code, Code::MissingTools);
    let tools = &repaired["toolConfig"]["tools"];
    assert_eq!(tools[0]["toolSpec"]["name"], "look");
    // Two messages of one role are one.
    let spoken = [user("u1x"), user("u2x")];
    let apart: Vec<Value> = spoken
        .iter()
        .flat_map(|step| message(Provider::BedrockConverse, step, &[]))
        .collect();
    let (repaired, fixes) = repair(Provider::BedrockConverse, json!(apart));
    assert_eq!(
        repaired,
        json!([{"role": "user", "content": [{"text": "u1x"}, {"text": "u2x"}]}])
    );
    assert_eq!(fixes[0].code, Code::ConsecutiveRoles);
}

#[test]
fn r03_a_stray_result_between_calls_and_results_is_mended_once_at_deepseek() {
    let options = Options::new().host(Host::DeepSeek);
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"});
    let result = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "r1x"});
    let broken = json!([
        {"role": "user", "content": "u1x"},
        call("call_a"), call("call_b"), call("call_c"),
        result("call_gone"),
        {"type": "function_call_output", "call_id": {}, "output": "r2x"},
        result("call_c"),
        {"role": "user", "content": "u2x"},
    ]);
    let (once, _) = repair_with(Provider::OpenAiResponses, &options, broken);
    let again = repair_with(Provider::OpenAiResponses, &options, once.clone());
    assert_eq!(again, (once, Vec::new()));
}
