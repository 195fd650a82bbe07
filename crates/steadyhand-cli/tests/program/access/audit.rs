//! The audit log through its surfaces: what is in it, and that nothing can be taken out of it unnoticed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::serve::{Served, until};
use crate::support::{Workplace, parts};

const CONFIG: &str = "[tools.unlock]\nkind = \"mock\"\ndescription = \"d\"\napproval = \"always\"\nanswers = [{ result = 1 }]\n\
    [audit]\nnode = \"attic\"\n";

fn folder(workplace: &Workplace, of: &str) -> PathBuf {
    workplace.file(".local/state/steadyhand").join(of)
}

/// The segments, the oldest first.
fn segments(workplace: &Workplace) -> Vec<PathBuf> {
    let log = fs::read_dir(folder(workplace, "audit")).expect("a log");
    let log = log
        .filter_map(Result::ok)
        .next()
        .expect("one configuration");
    let files = fs::read_dir(log.path()).expect("segments");
    let files = files.map(|file| file.expect("a file").path());
    let mut files: Vec<_> = files
        .filter(|file| file.extension().is_some_and(|end| end == "ndjson"))
        .collect();
    files.sort();
    files
}

fn head(workplace: &Workplace) -> PathBuf {
    let files = fs::read_dir(folder(workplace, "markers")).expect("a folder");
    let mut files = files.map(|file| file.expect("a file").path());
    files
        .find(|file| file.to_string_lossy().ends_with(".audit.json"))
        .expect("a signed length")
}

fn make_keys(workplace: &Workplace, count: usize) {
    for number in 0..count {
        let made = workplace.run(&format!("keys create k{number}"));
        assert_eq!(parts(&made).0, 0);
    }
}

fn records(workplace: &Workplace) -> Vec<Value> {
    let listed = workplace.json("audit list --limit 1000 --json");
    listed["records"].as_array().expect("a list").clone()
}

fn find<'a>(records: &'a [Value], action: &str, result: &str) -> &'a Value {
    records
        .iter()
        .find(|record| record["action"] == action && record["result"] == result)
        .unwrap_or_else(|| panic!("no {action} that is {result} in {records:#?}"))
}

#[tokio::test]
async fn s08_what_operators_do_is_written_down_with_who_when_from_where_before_and_after() {
    let served = Served::with_config(CONFIG).await;
    let call = served.post("/v1/calls", json!({"name": "unlock"}));
    let decide = async {
        let waiting = until("it waits", async || {
            let list = served.get("/v1/approvals").await.json();
            (list["waiting"] == 1).then(|| list["approvals"][0].clone())
        })
        .await;
        let id = waiting["id"].as_str().expect("an id");
        let said = served.workplace.run(&format!("approve {id}"));
        assert_eq!(parts(&said).0, 0);
        waiting["arguments_hash"].clone()
    };
    let (outcome, hash) = tokio::join!(call, decide);
    assert_eq!(outcome.json()["status"], "success");
    assert_eq!(
        served
            .post("/v1/tools/unlock/breaker/reset", json!({}))
            .await
            .status,
        200
    );
    assert_eq!(
        served.post("/v1/config/reload", json!({})).await.status,
        200
    );
    let config = CONFIG.replace("result = 1", "result = 2");
    served.workplace.write("steadyhand.toml", &config);
    assert_eq!(
        served.post("/v1/config/reload", json!({})).await.status,
        200
    );
    let all = until("the change is written down", async || {
        let list = served.get("/v1/audit?limit=1000").await.json();
        let all = list["records"].as_array()?.clone();
        let is_it = |it: &Value| it["after"]["changed"]["tools.unlock"].is_array();
        all.iter().any(is_it).then_some(all)
    })
    .await;
    let asked = find(&all, "approval.decide", "asked");
    let done = find(&all, "approval.decide", "done");
    let approved = find(&all, "approval.approved", "done");
    assert!(asked["n"].as_u64() < done["n"].as_u64());
    assert_eq!(asked["before"]["state"], "waiting", "{asked}");
    assert_eq!(done["after"]["state"], "approved", "{done}");
    assert_eq!(approved["after"]["arguments_hash"], hash);
    for record in &all {
        assert_eq!(record["node"], "attic");
        assert!(
            record["at_ms"].as_u64() > Some(1_700_000_000_000),
            "{record}"
        );
    }
    assert_eq!(done["from"]["way"], "command");
    let reset = find(&all, "breaker.reset", "done");
    assert_eq!(
        reset["from"],
        json!({"way": "rest", "address": "127.0.0.1"})
    );
    assert_eq!(done["who"]["role"], "admin", "{done}");
    find(&all, "server.start", "done");
    find(&all, "config.loaded", "done");
    let is_named = |it: &Value| it["after"]["changed"]["tools.unlock"] == json!(["answers"]);
    assert!(
        all.iter().any(is_named),
        "the name, not the value: {all:#?}"
    );
    served.signal(rustix::process::Signal::TERM);
    let workplace = served.stopped().await;
    assert_eq!(workplace.json("audit verify --json")["ok"], true);
    find(&records(&workplace), "server.stop", "done");
}

#[test]
fn s08_keys_are_in_it_with_their_ids_and_without_their_secrets() {
    let workplace = Workplace::with_config(CONFIG);
    let made = workplace.json("keys create ci --role operator --json");
    let (id, secret) = (&made["id"], made["key"].as_str().expect("the key"));
    assert_eq!(parts(&workplace.run("keys revoke ci")).0, 0);
    let all = records(&workplace);
    let created = find(&all, "key.create", "done");
    assert_eq!(
        (&created["after"]["id"], &created["after"]["role"]),
        (id, &json!("operator"))
    );
    assert_eq!(created["from"]["way"], "command");
    let revoked = find(&all, "key.revoke", "done");
    assert_eq!(revoked["before"]["state"], "in use", "{revoked}");
    assert_eq!(revoked["after"]["state"], "revoked", "{revoked}");
    let (_, exported, _) = parts(&workplace.run("audit export"));
    assert!(
        exported.lines().count() >= 4 && !exported.contains(secret),
        "{exported}"
    );
    for file in [segments(&workplace).remove(0), head(&workplace)] {
        assert_only_ours(&file);
    }
}

#[cfg(unix)]
fn assert_only_ours(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(file), 0o600, "{}", file.display());
    let folder = file.parent().expect("a folder");
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
}

#[cfg(not(unix))]
fn assert_only_ours(_file: &Path) {}

/// What `audit verify` says after this was done to a log of eight records: the exit code and the record.
fn after(what: &str, damage: impl FnOnce(&Workplace)) -> u64 {
    let workplace = Workplace::with_config(CONFIG);
    make_keys(&workplace, 4);
    assert_eq!(workplace.json("audit verify --json")["log"]["records"], 8);
    damage(&workplace);
    let (code, _, error) = parts(&workplace.run("audit verify --json"));
    assert_eq!(code, 7, "{what}: {error}");
    let error: Value =
        serde_json::from_str(error.trim()).unwrap_or_else(|_| panic!("{what}: {error}"));
    assert_eq!(error["error"]["code"], "audit_broken", "{what}: {error}");
    // What comes later does not heal it.
    make_keys_named(&workplace, "later");
    assert_eq!(
        parts(&workplace.run("audit verify")).0,
        7,
        "{what}, and one more record"
    );
    error["error"]["record"]
        .as_u64()
        .unwrap_or_else(|| panic!("{what}: {error}"))
}

fn make_keys_named(workplace: &Workplace, name: &str) {
    assert_eq!(parts(&workplace.run(&format!("keys create {name}"))).0, 0);
}

fn change_lines(workplace: &Workplace, change: impl FnOnce(&mut Vec<String>)) {
    let file = segments(workplace).remove(0);
    let text = fs::read_to_string(&file).expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&file, text).expect("written");
}

#[test]
fn s08_whatever_is_changed_moved_or_cut_off_is_noticed_by_its_first_record() {
    let lines = |change: fn(&mut Vec<String>)| move |it: &Workplace| change_lines(it, change);
    let changed = after(
        "a changed record",
        lines(|all| all[2] = all[2].replace("attic", "cellar")),
    );
    assert_eq!(changed, 3);
    assert_eq!(
        after("a removed record", lines(|all| drop(all.remove(4)))),
        5
    );
    assert_eq!(
        after("two records exchanged", lines(|all| all.swap(1, 2))),
        2
    );
    assert_eq!(after("a cut tail", lines(|all| all.truncate(6))), 7);
    assert_eq!(
        after("a record twice", lines(|all| all.insert(3, all[2].clone()))),
        3
    );
    let deleted = after("no segment", |it| {
        fs::remove_file(segments(it).remove(0)).expect("removed");
    });
    assert_eq!(deleted, 1);
    after("no signed length", |it| {
        fs::remove_file(head(it)).expect("removed");
    });
    // Cut together with its signed length, which is not ours to sign.
    after("a forged length", |it| {
        change_lines(it, |all| all.truncate(6));
        let signed = fs::read_to_string(head(it)).expect("text");
        fs::write(head(it), signed.replace("\"records\":8", "\"records\":6")).expect("written");
    });
}

#[tokio::test]
async fn s08_old_segments_go_as_a_whole_and_the_chain_goes_on() {
    let config = CONFIG.to_owned() + "max_size = \"64KiB\"\n";
    let served = Served::with_config(&config).await;
    // Some 400 bytes a record, two records each.
    for _ in 0..150 {
        served
            .post("/v1/tools/unlock/breaker/reset", json!({}))
            .await;
    }
    served.signal(rustix::process::Signal::TERM);
    let workplace = served.stopped().await;
    let log = workplace.json("audit verify --json")["log"].clone();
    assert!(
        log["first"].as_u64() > Some(1) && log["segments"].as_u64() > Some(1),
        "{log}"
    );
    find(&records(&workplace), "audit.dropped", "done");
    fs::remove_file(segments(&workplace).remove(0)).expect("removed");
    assert_eq!(
        parts(&workplace.run("audit verify")).0,
        7,
        "that one nobody dropped"
    );
}

#[tokio::test]
async fn s08_nobody_without_credentials_pushes_records_out_of_the_log() {
    let served = Served::with_config(CONFIG).await;
    let path = "/v1/tools/unlock/breaker/reset";
    for _ in 0..200 {
        assert_eq!(served.post(path, json!({})).await.status, 200);
    }
    let refused = served.post(path, json!({})).await;
    assert_eq!(refused.status, 429, "{}", refused.text);
    assert!(refused.text.contains("audit log"), "{}", refused.text);
    let own = format!("http://{}", served.address);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", own.as_str()),
    ];
    let login = served.send("POST", "/login", &headers, "token=guess").await;
    assert_eq!(login.status, 401, "{}", login.text);
    assert_eq!(served.decide(path, json!({})).await.status, 200);
    let view = served.get("/v1/audit?limit=10").await.json();
    let all = view["records"].as_array().expect("a list");
    assert_eq!(all[0]["who"]["by"], "local", "{view}");
    assert!(
        all.iter().all(|it| it["action"] == "breaker.reset"),
        "{view}"
    );
}

#[tokio::test]
async fn s08_a_kill_at_any_moment_leaves_a_log_that_is_whole() {
    let mut workplace = Workplace::with_config(CONFIG);
    for round in 0..4 {
        let served = Served::in_place(workplace).await;
        let resets = async {
            loop {
                let path = "/v1/tools/unlock/breaker/reset";
                served.post(path, json!({})).await;
            }
        };
        let later = std::time::Duration::from_millis(40 + 17 * round);
        let _ = tokio::time::timeout(later, resets).await;
        workplace = served.killed().await;
        let verified = workplace.json("audit verify --json");
        assert_eq!(verified["ok"], true, "round {round}: {verified}");
    }
    let all = records(&workplace);
    let starts = all.iter().filter(|it| it["action"] == "server.start");
    assert_eq!(starts.count(), 4);
}

#[tokio::test]
async fn s08_a_log_that_cannot_be_written_is_told_and_with_required_nothing_is_done() {
    for required in [false, true] {
        let config = format!("{CONFIG}required = {required}\n");
        let workplace = Workplace::with_config(&config);
        // A file where the folder should be.
        let place = folder(&workplace, "audit");
        fs::create_dir_all(place.parent().expect("a folder")).expect("made");
        fs::write(&place, "").expect("written");
        let served = Served::in_place(workplace).await;
        let reset = served
            .post("/v1/tools/unlock/breaker/reset", json!({}))
            .await;
        let expected = if required { 503 } else { 200 };
        assert_eq!(reset.status, expected, "{}", reset.json());
        let health = served.get("/health/ready").await.json();
        assert_eq!(health["audit"]["written"], false, "{health}");
        let problems = served.get("/v1/overview").await.json()["problems"].to_string();
        assert!(problems.contains("Audit log"), "{problems}");
        let doctor = served.workplace.json("doctor --json").to_string();
        assert!(doctor.contains("state.audit"), "{doctor}");
    }
}
