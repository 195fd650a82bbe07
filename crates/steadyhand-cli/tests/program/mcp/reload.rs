//! The file changes while servers run: only what changed is started anew, and what is removed goes with all it started.

use serde_json::json;
use steadyhand::Call;
use steadyhand_mcp::Phase;
use steadyhand_runtime::runtime::Runtime;

use super::{Bench, hostile, lives, started, until};
use crate::support::PATIENCE;

/// The processes of two servers that are up.
async fn pids(runtime: &Runtime) -> [u32; 2] {
    runtime.servers_settled(PATIENCE).await;
    ["one", "two"].map(|name| {
        let state = runtime.server(name).expect("it is configured").state();
        state
            .pid
            .unwrap_or_else(|| panic!("{name} is not up: {:?}", state.failure))
    })
}

async fn reloaded(bench: &Bench, runtime: &Runtime, config: &str) {
    bench.write("steadyhand.toml", config);
    runtime.reload().await.expect("a right file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_policy_restarts_no_server() {
    let config = hostile("one", "well") + &hostile("two", "well");
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let before = pids(&runtime).await;
    let changed = "[defaults]\ntimeout = \"9s\"\n".to_owned()
        + &config.replace(
            "[mcp.two]",
            "[mcp.two]\ntimeout = \"5s\"\neach.echo = { timeout = \"3s\" }",
        );
    reloaded(&bench, &runtime, &changed).await;
    assert_eq!(pids(&runtime).await, before);
    let limit = |tool: &str| {
        runtime
            .manager()
            .policy(tool)
            .expect("a tool")
            .timeout
            .as_secs()
    };
    assert_eq!(
        [limit("one__echo"), limit("two__note"), limit("two__echo")],
        [9, 5, 3]
    );
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_variable_restarts_only_the_server_that_has_it() {
    let config = hostile("one", "env") + &hostile("two", "env") + "env.COLOUR = \"red\"\n";
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let before = pids(&runtime).await;
    reloaded(&bench, &runtime, &config.replace("red", "blue")).await;
    until("the old one is gone", async || !lives(before[1])).await;
    let after = pids(&runtime).await;
    assert_eq!(after[0], before[0]);
    assert_ne!(after[1], before[1]);
    let call = Call::new("two__environment", json!({}));
    let outcome = runtime.executor().execute(call).await;
    let said = outcome.output().expect("variables").text().to_string();
    assert!(said.contains("blue"), "{said}");
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_server_is_stopped_with_its_processes_and_its_tools_go() {
    let config = hostile("one", "well") + &hostile("two", "grandchild");
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let [one, two] = pids(&runtime).await;
    // It leaves a child behind; the call itself never ends.
    let executor = runtime.executor().clone();
    let call =
        tokio::spawn(async move { executor.execute(Call::new("two__trouble", json!({}))).await });
    until("it has a child", async || {
        !bench.text("pids-two").is_empty()
    })
    .await;
    call.abort();
    reloaded(&bench, &runtime, &hostile("one", "well")).await;
    assert!(runtime.manager().find("two__echo").is_none());
    assert!(runtime.server("two").is_none());
    until("the server is gone", async || !lives(two)).await;
    for pid in bench.text("pids-two").lines() {
        let pid: u32 = pid.parse().expect("a pid");
        until("its child is gone", async || !lives(pid)).await;
    }
    assert!(lives(one));
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_switched_off_is_stopped_and_listed_as_that() {
    let config = hostile("one", "well") + &hostile("two", "well");
    let bench = Bench::with(&config);
    let runtime = started(&bench).await;
    let [_, two] = pids(&runtime).await;
    reloaded(&bench, &runtime, &(config + "disabled = true\n")).await;
    until("it is gone", async || !lives(two)).await;
    let unused = runtime.servers_not_used();
    assert_eq!((unused.len(), unused[0].name.as_str()), (1, "two"));
    assert_eq!(unused[0].reason, "switched off: disabled = true");
    assert_eq!(runtime.servers().len(), 1);
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_added_starts_and_brings_its_tools() {
    let bench = Bench::with("[tools.local]\nkind = \"mock\"\nmock_response = 1\n");
    let runtime = started(&bench).await;
    reloaded(&bench, &runtime, &hostile("new", "well")).await;
    let call = Call::new("new__echo", json!({"message": "hi"}));
    let outcome = runtime.executor().execute(call).await;
    assert_eq!(outcome.output().expect("it waited for it").value(), "hi");
    let state = runtime.server("new").expect("it is configured").state();
    assert_eq!(state.phase, Phase::Running);
    runtime.stop_servers().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_starts_nothing() {
    let config = hostile("one", "well");
    let bench = Bench::with(&config);
    let run = bench.run("config check");
    let (code, stdout, stderr) = crate::support::parts(&run);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains("0 tools, 1 MCP server, 0 warnings"),
        "{stdout}"
    );
    let state = bench.file(".local/state/steadyhand/mcp");
    assert!(!state.exists(), "a server was started");
}
