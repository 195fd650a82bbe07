//! Guessing credentials: an address that is often wrong has to wait, and nobody else does.

use std::net::{IpAddr, Ipv4Addr};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use super::{TOOLS, key, with_key};
use crate::serve::{Reply, Served, reply, request};
use crate::support::Workplace;

const TOKEN: &str = "sesame-open-now";

/// More than anybody mistypes.
const GUESSES_MAX: usize = 300;

async fn locked() -> Served {
    Served::with_config(&format!("{TOOLS}\n[server]\ntoken = \"{TOKEN}\"\n")).await
}

async fn from(
    address: [u8; 4],
    served: &Served,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Reply {
    let socket = TcpSocket::new_v4().expect("a socket");
    let address = IpAddr::V4(Ipv4Addr::from(address));
    socket
        .bind((address, 0).into())
        .expect("an address of loopback");
    let mut stream = socket.connect(served.address).await.expect("it listens");
    let request = request(served.address, method, path, headers, body);
    stream.write_all(request.as_bytes()).await.expect("sent");
    reply(&mut stream).await
}

/// Tries until it is told to wait.
async fn until_told_to_wait(mut attempt: impl AsyncFnMut(usize) -> Reply) -> Reply {
    for number in 0..GUESSES_MAX {
        let reply = attempt(number).await;
        match reply.status {
            401 => {}
            429 => return reply,
            other => panic!("{other}: {}", reply.text),
        }
    }
    panic!("{GUESSES_MAX} guesses, and no end");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_a_token_waits_and_others_get_in() {
    let served = locked().await;
    let stranger = [127, 0, 0, 2];
    let told = until_told_to_wait(async |number| {
        let shown = format!("Bearer guess-{number}");
        let shown = [("authorization", shown.as_str())];
        from(stranger, &served, "GET", "/v1/tools", &shown, "").await
    })
    .await;
    let wait: u64 = told
        .header("retry-after")
        .and_then(|wait| wait.parse().ok())
        .expect("how long");
    assert!((1..=60).contains(&wait), "{wait}");
    let (_, code, message) = told.refusal();
    assert_eq!(code, "rate_limited");
    assert!(message.contains("nothing was run"), "{message}");
    // Not even the right one is looked at: it would be a guess like any other.
    let right = format!("Bearer {TOKEN}");
    let right = [("authorization", right.as_str())];
    for path in ["/v1/tools", "/", "/proxy/openai/v1/models"] {
        let reply = from(stranger, &served, "GET", path, &right, "").await;
        assert_eq!(reply.status, 429, "{path}: {}", reply.text);
        assert!(
            reply.header("retry-after").is_some(),
            "{path}: {}",
            reply.head
        );
    }
    // Nor does anything else say whether a guess is right.
    let ready = from(stranger, &served, "GET", "/health/ready", &right, "").await;
    assert_eq!(
        ready.json()["servers"],
        serde_json::json!([]),
        "{}",
        ready.text
    );
    let form = format!("token={TOKEN}");
    let origin = format!("http://{}", served.address);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", origin.as_str()),
    ];
    let login = from(stranger, &served, "POST", "/login", &headers, &form).await;
    assert_eq!(login.status, 429, "{}", login.text);
    assert!(login.header("retry-after").is_some(), "{}", login.head);
    assert!(login.header("set-cookie").is_none(), "{}", login.head);
    // Others, operators on this machine among them, notice nothing.
    let reply = with_key(&served, TOKEN, "GET", "/v1/tools", "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    served.workplace.run("tools list").code(0);
    // What was right once is known, also where the guesses come from.
    let reply = from(stranger, &served, "GET", "/v1/tools", &right, "").await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    // Who shows nothing guesses nothing.
    let reply = from(stranger, &served, "GET", "/v1/tools", &[], "").await;
    assert_eq!(reply.status, 401, "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_a_key_or_by_the_form_or_the_proxy_waits_too() {
    let workplace = Workplace::with_config(TOOLS);
    let good = key(&workplace, "ci", &["--role", "admin"]);
    let served = Served::in_place(workplace).await;
    let (known, _) = good.rsplit_once('_').expect("an id and a secret");
    let mut count = 0;
    until_told_to_wait(async |number| {
        count += 1;
        with_key(
            &served,
            &format!("{known}_guess-{number}"),
            "GET",
            "/v1/tools",
            "",
        )
        .await
    })
    .await;
    assert!(count < 100, "{count} guesses at one key");
    let reply = with_key(&served, &good, "GET", "/v1/tools", "").await;
    assert_eq!(reply.status, 200, "whoever has the key: {}", reply.text);

    let served = locked().await;
    let origin = format!("http://{}", served.address);
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("origin", origin.as_str()),
    ];
    until_told_to_wait(async |number| {
        served
            .send("POST", "/login", &headers, &format!("token=guess-{number}"))
            .await
    })
    .await;

    let served = locked().await;
    until_told_to_wait(async |number| {
        let shown = format!("Bearer guess-{number}");
        let shown = [("authorization", shown.as_str())];
        served
            .send("GET", "/proxy/openai/v1/models", &shown, "")
            .await
    })
    .await;
}
