//! What commands say to do next is true, and works where it is done.

use serde_json::json;

use crate::mcp::{Bench, hostile};
use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

#[test]
fn the_builtins_answer_to_their_own_names_without_a_configuration() {
    let workplace = Workplace::new();
    let (code, stdout, stderr) =
        parts(&workplace.run_words(&["call", "math_eval", "expression=2+2"]));
    assert_eq!((code, stdout.as_str()), (0, "result\t4\n"), "{stderr}");
    let (code, _, stderr) = parts(&workplace.run("call echo a=b"));
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, _) = parts(&workplace.run("tools list"));
    assert_eq!(code, 0);
    for name in [
        "weather",
        "calculator",
        "math_eval",
        "echo",
        "search",
        "volume",
    ] {
        assert!(
            stdout
                .lines()
                .any(|line| line.starts_with(&format!("{name}\t"))),
            "{name}: {stdout}"
        );
    }
}

#[tokio::test]
async fn the_builtins_answer_over_a_server_without_a_configuration() {
    let served = Served::in_place(Workplace::new()).await;
    let outcome = served.call("math_eval", json!({"expression": "2+2"})).await;
    assert_eq!(outcome["output"], json!({"result": 4}), "{outcome}");
    let outcome = served.call("weather", json!({"city": "Oslo"})).await;
    assert_eq!(outcome["status"], "success", "{outcome}");
}

#[tokio::test]
async fn f11_math_eval_keeps_every_digit_and_tells_the_kind_json_has_no_name_for() {
    let served = Served::in_place(Workplace::new()).await;
    for (expression, expected) in [
        (
            "bignumber(2)^100",
            json!({"result": "1.267650600228229401496703205376e+30", "type": "BigNumber"}),
        ),
        (
            "bigint(2)^bigint(70)",
            json!({"result": "1180591620717411303424", "type": "bigint"}),
        ),
        (
            "[1/3]",
            json!({"result": "[0.3333333333333333]", "type": "DenseMatrix"}),
        ),
        ("1/0", json!({"result": "Infinity", "type": "number"})),
        ("\"Infinity\"", json!({"result": "Infinity"})),
    ] {
        let outcome = served
            .call("math_eval", json!({"expression": expression}))
            .await;
        assert_eq!(outcome["output"], expected, "{expression}: {outcome}");
    }
}

#[tokio::test]
async fn a_server_listens_where_people_say_in_their_own_words() {
    let workplace = Workplace::with_config("[server]\nlisten = \"localhost:0\"\n");
    let served = Served::in_place(workplace).await;
    assert!(served.address.ip().is_loopback());
    for address in ["localhost:0", "0"] {
        let served = Served::listening(Workplace::with_config("# nothing\n"), address).await;
        assert!(served.address.ip().is_loopback(), "{address}");
        assert_eq!(served.get("/health/live").await.status, 200);
    }
    let (code, _, stderr) = parts(&Workplace::new().run("serve --listen :7400"));
    assert_eq!(code, 2);
    assert!(
        stderr.contains("127.0.0.1:7400") && stderr.contains("0.0.0.0:7400"),
        "{stderr}"
    );
}

#[test]
fn t04_a_timeout_names_the_table_where_the_tool_is_configured() {
    let config = hostile("calendar", "well")
        + "[tools.slow]\nkind = \"mock\"\nanswers = [{ result = 1, delay = \"40s\" }]\n";
    let bench = Bench::with(&config);
    let (code, _, stderr) = parts(&bench.run("call slow --deadline 50ms"));
    assert_eq!(code, 6, "{stderr}");
    assert!(stderr.contains("(the call) under [tools.slow]"), "{stderr}");
    let listed = bench.json("tools list --json");
    let tools = listed["tools"].as_array().expect("tools");
    let of_server = tools.iter().find(|tool| tool["source"] == "calendar");
    let name = of_server
        .and_then(|tool| tool["name"].as_str())
        .expect("a tool");
    // What the text says to write is right.
    let there = format!("under [mcp.calendar], as each.{name} = {{ … }}");
    let setting = format!("{config}\n[mcp.calendar.each]\n{name} = {{ approval = \"always\" }}\n");
    bench.write("steadyhand.toml", &setting);
    let (code, _, stderr) = parts(&bench.run(&format!("call {name} message=hello")));
    assert_eq!(code, 7, "{stderr}");
    assert!(stderr.contains(&there), "{there}: {stderr}");
    let (code, _, stderr) = parts(&bench.run("config check"));
    assert_eq!(code, 0, "{stderr}");
    bench.assert_nobody_left();
}

#[tokio::test]
async fn t04_a_conversation_that_is_too_large_names_the_setting_of_its_proxy() {
    let served =
        Served::with_config("[proxy.openai]\nupstream = \"http://127.0.0.1:9\"\nbody = \"1KiB\"\n")
            .await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(2000)}]});
    let reply = served.post("/proxy/openai/v1/chat/completions", body).await;
    assert_eq!(reply.status, 413, "{}", reply.text);
    assert!(reply.text.contains("[proxy.openai]"), "{}", reply.text);
    assert!(!reply.text.contains("[server]"), "{}", reply.text);
}

#[test]
fn a_tool_of_a_server_is_found_by_its_bare_name() {
    let bench = Bench::with(&hostile("files", "well"));
    let listed = bench.json("tools list --json");
    let name = listed["tools"][0]["name"]
        .as_str()
        .expect("a tool")
        .to_owned();
    let bare = name.strip_prefix("files__").expect("its server's name");
    let (code, _, stderr) = parts(&bench.run(&format!("call {bare}")));
    assert_eq!(code, 5, "{stderr}");
    assert!(
        stderr.contains(&format!("Did you mean {name}?")),
        "{stderr}"
    );
    let (_, _, stderr) = parts(&bench.run(&format!("tools show {bare}")));
    assert!(
        stderr.contains(&format!("Did you mean {name}?")),
        "{stderr}"
    );
    bench.assert_nobody_left();
}

#[test]
fn a_suggested_call_has_no_argument_that_the_tool_does_not_know() {
    let workplace = Workplace::new();
    let (code, _, stderr) = parts(&workplace.run("call weather cty=Rome"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("steadyhand call weather city=Rome\n"),
        "{stderr}"
    );
    let (_, _, stderr) = parts(&workplace.run("call weather planet=Mars"));
    assert!(
        stderr.contains("steadyhand call weather city=Oslo\n"),
        "{stderr}"
    );
    assert!(!stderr.contains("call weather planet"), "{stderr}");
}

#[tokio::test]
async fn the_figures_of_one_tool_are_in_words() {
    let served = Served::start().await;
    for city in ["Oslo", "Rome"] {
        served.call("weather", json!({ "city": city })).await;
    }
    let _ = served
        .post("/v1/calls", json!({"name": "ill", "args": {}}))
        .await;
    let (code, stdout, stderr) = parts(&served.workplace.run("metrics weather"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("Calls that ran\t2: 2 succeeded, 0 failed, 0 timed out (0.0 % failed)\n"),
        "{stdout}"
    );
    assert!(stdout.contains("Breaker\tclosed"), "{stdout}");
    assert!(!stdout.contains("avgExecutionTime"), "{stdout}");
    let (_, stdout, _) = parts(&served.workplace.run("metrics ill"));
    assert!(stdout.contains("Failures\tNETWORK_ERROR 1\n"), "{stdout}");
}

#[tokio::test]
async fn an_accepted_reload_says_so_in_the_log_and_by_the_command() {
    let one = "[tools.a]\nkind = \"mock\"\nmock_response = 1\n";
    let served = Served::with_config(one).await;
    let two = format!("{one}[tools.b]\nkind = \"mock\"\nmock_response = 1\n");
    served.workplace.write("steadyhand.toml", &two);
    let (code, stdout, stderr) = parts(&served.workplace.run("config reload"));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.starts_with("Reloaded: steadyhand.toml is in force at 127.0.0.1:"),
        "{stdout}"
    );
    assert!(stdout.ends_with(", 2 tools\n"), "{stdout}");
    until("the log says so", async || {
        let stderr = served.stderr();
        stderr
            .contains("the configuration is reloaded")
            .then_some(())
    })
    .await;
    served
        .workplace
        .write("steadyhand.toml", "[tools.a]\nkind = \"nothing\"\n");
    let (code, _, stderr) = parts(&served.workplace.run("config reload"));
    assert_eq!(code, 8, "{stderr}");
    let (code, _, stderr) = parts(&Workplace::with_config(one).run("config reload"));
    assert_eq!(code, 4, "{stderr}");
}

#[test]
fn doctor_reads_the_port_and_the_history_of_a_file_with_mistakes() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    let port = taken.local_addr().expect("bound").port();
    let workplace = Workplace::with_config(&format!(
        "[server]\nlisten = \"127.0.0.1:{port}\"\nlistne = 1\nhistory = {{ path = \"my/calls.db\", keep = 5 }}\n[tools.x]\nkind = \"nonsense\"\n"
    ));
    workplace.write(
        "my/calls.db",
        "this is no database, and long enough to be one",
    );
    let report = workplace.json("doctor --json");
    let text = report.to_string();
    assert!(text.contains(&format!("port {port}")), "{report:#}");
    assert!(!text.contains("port 7400"), "{report:#}");
    assert!(text.contains("my/calls.db"), "{report:#}");
}

#[test]
fn mcp_add_takes_a_program_without_dashes_and_says_what_to_type_otherwise() {
    let bench = Bench::empty();
    let (code, _, stderr) = parts(&bench.run("mcp add clock python3 clock.py"));
    assert_eq!(code, 0, "{stderr}");
    let written = "[mcp.clock]\ncommand = \"python3\"\nargs = [\"clock.py\"]\n";
    assert_eq!(bench.text("steadyhand.toml"), written);
    let (code, _, stderr) = parts(&bench.run("mcp add other npx -y some-server"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("steadyhand mcp add NAME -- PROGRAM"),
        "{stderr}"
    );
    let (code, _, stderr) = parts(&bench.run("mcp add web 127.0.0.1:8000/mcp"));
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("mcp add web http://127.0.0.1:8000/mcp"),
        "{stderr}"
    );
    let (code, _, stderr) = parts(&bench.run("mcp add web http://127.0.0.1:8000/mcp"));
    assert_eq!(code, 0, "{stderr}");
    assert!(bench.text("steadyhand.toml").starts_with(written));
}

#[test]
fn a_server_may_be_a_list_of_its_program_and_arguments() {
    let config = hostile("calendar", "well");
    let as_text = Bench::with(&config);
    let named = |bench: &Bench| bench.json("tools list --json")["tools"].to_string();
    let expected = named(&as_text);
    let table: toml::Table = config.parse().expect("TOML");
    let server = &table["mcp"]["calendar"];
    let mut words = vec![server["command"].clone()];
    words.extend(
        server["args"]
            .as_array()
            .expect("arguments")
            .iter()
            .cloned(),
    );
    let as_list = Bench::with(&format!(
        "[mcp.calendar]\ncommand = {}\n",
        toml::Value::from(words)
    ));
    assert_eq!(named(&as_list), expected);
    as_list.assert_nobody_left();
}
