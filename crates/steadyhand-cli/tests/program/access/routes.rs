//! Every route × every role, as a table: the one in `docs/access.md`, and the one the server holds to.

use std::collections::BTreeSet;

use super::{TOOLS, key, with_key};
use crate::serve::Served;
use crate::support::Workplace;

const PAGE: &str = include_str!("../../../../../docs/access.md");
/// The pages of the dashboard, as they are routed.
const DASHBOARD: &str = include_str!("../../../../steadyhand-dashboard/src/lib.rs");
const ROLES: [&str; 4] = ["viewer", "caller", "operator", "admin"];
/// Asked for by anybody, with credentials or without.
const FREE: [&str; 4] = [
    "/health/live",
    "/health/ready",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
];

/// A row of a table: the method, the path, and who may; free is what anybody may.
type Row = (&'static str, &'static str, Vec<bool>, bool);

fn rows(table: &str) -> Vec<Row> {
    let (_, table) = PAGE.split_once(table).expect("the table");
    let lines = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let (method, path) = cells[0].trim_matches('`').split_once(' ').expect("a route");
            let may = cells[1..].iter().map(|cell| *cell != "–").collect();
            (method, path, may, cells[1] == "all")
        })
        .collect()
}

#[tokio::test]
async fn every_route_lets_in_the_roles_of_the_table_and_no_others() {
    let workplace = Workplace::with_config(TOOLS);
    let keys: Vec<String> = ROLES
        .iter()
        .map(|role| key(&workplace, role, &["--role", role]))
        .collect();
    let served = Served::in_place(workplace).await;
    let rows = rows("| route |");
    for (method, path, may, _) in &rows {
        // Nothing of these names is there.
        let asked = path
            .replace("{id}", "none")
            .replace("{name}", "none")
            .replace("{tool}", "none")
            .replace("{provider}", "none")
            .replace("{path}", "v1/messages");
        // Nothing that would do something: who may is found out before what is asked is looked at.
        let body = if *method == "POST" { "{" } else { "" };
        let is_free = FREE.contains(path);
        let without = served.send(method, &asked, &[], body).await;
        assert_eq!(
            without.status == 401,
            !is_free,
            "{method} {path}: {}",
            without.text
        );
        for ((role, key), may) in ROLES.iter().zip(&keys).zip(may) {
            let shown = format!("Bearer {key}");
            let headers = [("authorization", shown.as_str())];
            let status = match *path {
                // Its answer has no end.
                "/v1/events" => first_status(&served, &asked, &shown).await,
                _ => served.send(method, &asked, &headers, body).await.status,
            };
            assert_eq!(status != 403, *may, "{method} {path} as {role}: {status}");
            assert_ne!(status, 401, "{method} {path} as {role}");
        }
    }
    let told: BTreeSet<(String, String)> = rows
        .iter()
        .map(|(method, path, ..)| (method.to_lowercase(), (*path).to_owned()))
        .collect();
    let document = with_key(&served, &keys[3], "GET", "/openapi.json", "")
        .await
        .json();
    let mut there = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for method in methods.as_object().expect("methods").keys() {
            there.insert((method.clone(), path.clone()));
        }
    }
    let missing: Vec<_> = there.difference(&told).collect();
    assert!(missing.is_empty(), "not in docs/access.md: {missing:?}");
}

/// What operators may do on a server that asks for nothing, and what only this machine's commands ask.
const OPEN_CHANGES: [&str; 10] = [
    "/v1/tools/{name}/breaker/reset",
    "/v1/tools/{name}/breaker/trial",
    "/v1/servers/{name}/restart",
    "/v1/config/reload",
    "/v1/keys",
    "/v1/approvals",
    "/tools/{name}/reset",
    "/tools/{name}/trial",
    "/servers/{name}/restart",
    "/config/reload",
];

#[tokio::test]
async fn s03_on_a_server_that_asks_for_nothing_every_change_of_an_operator_takes_a_credential_but_for_those_named()
 {
    let served = Served::with_config(TOOLS).await;
    let own = format!("http://{}", served.address);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let mut asked_for = 0;
    for table in ["| route |", "| page |"] {
        for (method, path, may, _) in rows(table) {
            // Callers may not, nor viewers.
            if method == "GET" || may[0] || may[1] {
                continue;
            }
            let asked = path.replace("{id}", "none").replace("{name}", "none");
            let headers = [form, ("origin", own.as_str())];
            let headers = if table == "| page |" {
                &headers[..]
            } else {
                &[]
            };
            let reply = served.send(method, &asked, headers, "").await;
            let is_open = method == "POST" && OPEN_CHANGES.contains(&path);
            assert_eq!(
                reply.status != 401,
                is_open,
                "{method} {path}: {}",
                reply.text
            );
            asked_for += usize::from(!is_open);
        }
    }
    assert!(asked_for >= 14, "{asked_for}");
}

#[tokio::test]
async fn every_page_and_button_lets_in_the_roles_of_the_table_and_no_others() {
    let workplace = Workplace::with_config(TOOLS);
    let keys: Vec<String> = ROLES
        .iter()
        .map(|role| key(&workplace, role, &["--role", role]))
        .collect();
    let served = Served::in_place(workplace).await;
    let own = format!("http://{}", served.address);
    let form = ("content-type", "application/x-www-form-urlencoded");
    let rows = rows("| page |");
    for (method, path, may, is_free) in &rows {
        let asked = path.replace("{id}", "none").replace("{name}", "none");
        let headers = [form, ("origin", own.as_str())];
        let without = served.send(method, &asked, &headers, "").await.status;
        // A wrong token at the login is refused, too.
        if *path != "/login" {
            assert_eq!(without == 401, !is_free, "{method} {path}: {without}");
        }
        // Who comes from a page of somebody else's presses nothing, whoever it is.
        if *method == "POST" {
            let shown = format!("Bearer {}", keys[3]);
            let foreign = [
                form,
                ("origin", "http://evil.example"),
                ("authorization", &shown),
            ];
            let status = served.send(method, &asked, &foreign, "").await.status;
            assert_eq!(status, 403, "{method} {path} from elsewhere");
        }
        for ((role, key), may) in ROLES.iter().zip(&keys).zip(may) {
            let shown = format!("Bearer {key}");
            let headers = [headers[0], headers[1], ("authorization", shown.as_str())];
            let status = served.send(method, &asked, &headers, "").await.status;
            assert_eq!(status != 403, *may, "{method} {path} as {role}: {status}");
        }
    }
    // Every one that is routed is in the table.
    let told: BTreeSet<(String, &str)> = rows
        .iter()
        .map(|(method, path, ..)| (method.to_lowercase(), *path))
        .collect();
    let mut there = 0;
    for route in DASHBOARD.split(".route(\"").skip(1) {
        let (path, methods) = route.split_once("\", ").expect("a route");
        for method in ["get", "post"] {
            let methods = methods.lines().next().unwrap_or_default();
            if methods.starts_with(&format!("{method}("))
                || methods.contains(&format!(".{method}("))
            {
                assert!(
                    told.contains(&(method.to_owned(), path)),
                    "{method} {path} is not in docs/access.md"
                );
                there += 1;
            }
        }
    }
    assert_eq!(there, told.len());
}

async fn first_status(served: &Served, path: &str, shown: &str) -> u16 {
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    let headers = [("authorization", shown)];
    let request = crate::serve::request(served.address, "GET", path, &headers, "");
    let mut stream = served.connect().await;
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut line = String::new();
    let mut reader = BufReader::new(stream);
    let read = reader.read_line(&mut line);
    let read = tokio::time::timeout(crate::support::PATIENCE, read).await;
    read.expect("in time").expect("a line");
    line.split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .expect("a status")
}
