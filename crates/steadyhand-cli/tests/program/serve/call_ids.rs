//! Calls by less than their whole id: `last`, and the beginning of an id.

use serde_json::json;

use super::{Served, runs};
use crate::support::{Workplace, parts};

async fn commands(workplace: &Workplace, check: impl FnOnce(&Workplace) + Send + 'static) {
    let workplace = workplace.shared();
    let checked = tokio::task::spawn_blocking(move || check(&workplace));
    checked.await.expect("all went well");
}

#[tokio::test]
async fn a_call_is_shown_run_again_and_ended_by_the_beginning_of_its_id_or_as_the_last() {
    let served = Served::start().await;
    let call = async |id: &str, city: &str| {
        let call = json!({"name": "weather", "id": id, "args": {"city": city}});
        assert_eq!(served.post("/v1/calls", call).await.status, 200);
    };
    call("alpha-1", "Oslo").await;
    call("alpha-22", "Bergen").await;
    call("beta", "Oslo").await;
    let own = served.call("weather", json!({"city": "Tromsø"})).await;
    let own = own["callId"].as_str().expect("an id").to_owned();
    let slow = served.call("slow", json!({}));
    let looking = async {
        let id = runs(&served, "slow").await;
        let (own, slow_id) = (own.clone(), id.clone());
        commands(&served.workplace, move |workplace| {
            let shown =
                |word: &str| workplace.json(&format!("calls show {word} --json"))["id"].clone();
            assert_eq!(shown("alpha-2"), "alpha-22");
            // An id is itself, also where others begin like it.
            assert_eq!(shown("alpha-1"), "alpha-1");
            assert_eq!(shown("b"), "beta");
            assert_eq!(shown(&own[..own.len() - 1]), own);
            assert_eq!(shown("last"), slow_id);
            let (code, _, stderr) = parts(&workplace.run("calls show alpha"));
            assert_eq!(code, 2, "{stderr}");
            assert!(stderr.contains("alpha-1, alpha-22"), "{stderr}");
            let (code, _, stderr) = parts(&workplace.run("calls show gamma"));
            assert_eq!(code, 5, "{stderr}");
            let (code, stdout, stderr) = parts(&workplace.run("calls replay alpha-2"));
            assert_eq!(code, 0, "{stdout}{stderr}");
            assert_eq!(
                workplace.json("calls show last --json")["replay_of"],
                "alpha-22"
            );
            let (code, _, stderr) = parts(&workplace.run("calls replay alpha"));
            assert_eq!(code, 2, "{stderr}");
            let beginning = &slow_id[..slow_id.len() - 1];
            let (code, stdout, stderr) =
                parts(&workplace.run(&format!("calls cancel {beginning}")));
            assert_eq!(code, 0, "{stderr}");
            assert!(stdout.contains(&slow_id), "{stdout}");
        })
        .await;
        assert_eq!(served.get("/v1/calls/bet").await.json()["id"], "beta");
        assert_eq!(served.get("/calls/last").await.status, 200);
    };
    let (ended, ()) = tokio::join!(slow, looking);
    assert_eq!(ended["error"]["code"], "CANCELLED");
    // The same without a server.
    served.signal(rustix::process::Signal::TERM);
    let workplace = served.stopped().await;
    commands(&workplace, move |workplace| {
        let shown = |word: &str| workplace.json(&format!("calls show {word} --json"))["id"].clone();
        assert_eq!(shown("alpha-2"), "alpha-22");
        assert_eq!(shown(&own[..own.len() - 2]), own);
        workplace
            .run("call weather city=Oslo --id gamma-1 --local")
            .code(0);
        assert_eq!(shown("last"), "gamma-1");
        let (code, _, stderr) = parts(&workplace.run("calls replay alpha"));
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("beginning of several"), "{stderr}");
    })
    .await;
}

#[tokio::test]
async fn the_beginning_of_an_id_and_last_lead_to_nobody_elses_call() {
    let workplace = Workplace::with_config(super::TOOLS);
    let key = |name: &str, role: &str| {
        let made = workplace.json(&format!("keys create {name} --role {role} --json"));
        format!("Bearer {}", made["key"].as_str().expect("a key"))
    };
    let (one, other) = (key("one", "caller"), key("other", "caller"));
    let served = Served::in_place(workplace).await;
    let send = async |key: &str, method: &str, path: &str, body: &str| {
        let headers = [("authorization", key)];
        served.send(method, path, &headers, body).await
    };
    for (key, id) in [(&one, "mine-1"), (&other, "theirs-1")] {
        let call = json!({"name": "echo", "id": id}).to_string();
        assert_eq!(send(key, "POST", "/v1/calls", &call).await.status, 200);
    }
    assert_eq!(
        send(&one, "GET", "/v1/calls/last", "").await.json()["id"],
        "mine-1"
    );
    assert_eq!(
        send(&one, "GET", "/v1/calls/mine", "").await.json()["id"],
        "mine-1"
    );
    assert_eq!(send(&one, "GET", "/v1/calls/theirs", "").await.status, 404);
}
