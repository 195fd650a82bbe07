//! Odd but legal messages, to the letter: members nobody knows wherever the protocol allows them, numbers nobody can hold,
//! content of kinds nobody has heard of. Whatever era the server is of and the client, they come out as they went in.

use serde_json::json;

use super::{Events, Modern, Session, gateway, up};
use crate::serve::{Served, until};
use crate::support::Workplace;

/// As the server writes it wherever it can, and as the client does.
const ODD: &str =
    r#"{"big":12345678901234567890123,"exact":1.50,"zero":-0.0,"escaped":"\u00e9\/","none":null}"#;
/// An id is the client's own.
const ID: &str = "12345678901234567890123";

/// A client of one era.
enum Client {
    Legacy(Session),
    Modern,
}

impl Client {
    async fn of(served: &Served, is_modern: bool) -> Client {
        if is_modern {
            return Client::Modern;
        }
        let session = Session::of(served, "2025-11-25", json!({"elicitation": {}})).await;
        let level = json!({"level": "debug"});
        session.ask(served, "logging/setLevel", level).await;
        Client::Legacy(session)
    }

    /// The headers of a request, and its body: these members, and odd ones.
    fn request(&self, method: &str, params: &str) -> (Vec<(String, String)>, String) {
        let known: serde_json::Value =
            serde_json::from_str(&format!("{{{params}}}")).expect("JSON");
        let mut meta = format!(r#""vendor/asked":{ODD},"progressToken":"mine""#);
        let headers = match self {
            Client::Legacy(session) => {
                let headers = session.headers();
                headers.map(|(name, value)| (name.to_owned(), value.to_owned()))[..].to_vec()
            }
            Client::Modern => {
                let own = super::meta(json!({"elicitation": {}})).to_string();
                let members = &own[1..own.len() - 1];
                let level = r#""io.modelcontextprotocol/logLevel":"debug""#;
                meta.push_str(&format!(",{level},{members}"));
                Modern::new(method, known).headers
            }
        };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{ID},"method":"{method}","params":{{{params},"x-asked":{ODD},"_meta":{{{meta}}}}}}}"#
        );
        (headers, body)
    }

    /// Everything that is answered, as text.
    async fn ask(&self, served: &Served, method: &str, params: &str) -> String {
        let (headers, body) = self.request(method, params);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let reply = served.send("POST", "/mcp", &headers, &body).await;
        assert_eq!(reply.status, 200, "{method}: {}", reply.text);
        assert!(
            reply.text.contains(&format!("\"id\":{ID}")),
            "{method}: the id is another one: {}",
            reply.text
        );
        reply.text
    }
}

/// The line that the server got, as it tells us in a text.
fn sent(method: &str, reply: &str) -> String {
    let at = reply.find(r#"{\"jsonrpc\""#);
    let at = at.unwrap_or_else(|| panic!("{method}: no line in {reply}"));
    let mut texts = serde_json::Deserializer::from_str(&reply[at - 1..]).into_iter::<String>();
    texts.next().expect("a text").expect("JSON")
}

/// The answer, be it plain JSON or the last event.
fn last_message(reply: &str) -> serde_json::Value {
    let line = reply.lines().rfind(|line| line.contains("\"jsonrpc\""));
    let line = line.expect("a message");
    let line = line.strip_prefix("data: ").unwrap_or(line);
    serde_json::from_str(line).expect("JSON")
}

/// What is asked, what must be in the answer, and whether the server tells what it got; `ODD` stands for itself.
const TABLE: [(&str, &str, &[&str], bool); 9] = [
    (
        "tools/list",
        r#""x-any":1"#,
        &[
            r#""inputSchema":{"type":"object","properties":{"any":{"x-vendor":ODD}}}"#,
            r#""x-vendor":ODD,"title":"Odd","execution":{"taskSupport":"optional","x-vendor":ODD}"#,
            r#""icons":[{"src":"https://example.com/i.png","sizes":"48x48","x-vendor":ODD}]"#,
            r#""annotations":{"readOnlyHint":false,"x-vendor":ODD},"securitySchemes":[{"type":"noauth"}]"#,
            r#""_meta":{"vendor/key":ODD}"#,
        ],
        false,
    ),
    (
        "tools/call",
        r#""name":"odd_say","arguments":{"any":ODD}"#,
        &[
            r#""annotations":{"priority":0.5,"x-vendor":ODD},"x-vendor":ODD}"#,
            r#"{"type":"hologram","beams":ODD}"#,
            r#"{"type":"resource_link","uri":"test://odd","x-vendor":ODD}"#,
            r#""structuredContent":ODD,"x-vendor":ODD"#,
            r#""vendor/key":ODD"#,
            r#""progress":1,"message":"one","x-vendor":ODD"#,
            r#""progressToken":"mine""#,
            r#""level":"error","data":ODD,"x-vendor":ODD"#,
        ],
        true,
    ),
    (
        "prompts/list",
        r#""x-any":1"#,
        &[r#"{"name":"test_odd","icons":[{"x-vendor":ODD}],"x-vendor":ODD}"#],
        false,
    ),
    (
        "prompts/get",
        r#""name":"test_odd","arguments":{"a":"b"}"#,
        &[
            r#"{"type":"hologram","text":"#,
            r#""x-vendor":ODD},"x-vendor":ODD}],"x-vendor":ODD"#,
        ],
        true,
    ),
    (
        "resources/list",
        r#""x-any":1"#,
        &[r#"{"uri":"test://odd","name":"test odd","size":ODD,"x-vendor":ODD}"#],
        false,
    ),
    (
        "resources/templates/list",
        r#""x-any":1"#,
        &[r#"{"uriTemplate":"test://odd/{id}","name":"test odds","x-vendor":ODD}"#],
        false,
    ),
    (
        "resources/read",
        r#""uri":"test://odd""#,
        &[r#""annotations":{"x-vendor":ODD},"x-vendor":ODD}],"x-vendor":ODD"#],
        true,
    ),
    (
        "resources/read",
        r#""uri":"test://odd/1%20x""#,
        &[
            r#""uri":"test://odd/1%20x""#,
            r#""annotations":{"x-vendor":ODD},"x-vendor":ODD}],"x-vendor":ODD"#,
        ],
        true,
    ),
    (
        "completion/complete",
        r#""ref":{"type":"ref/prompt","name":"test_odd"},"argument":{"name":"a","value":"b"}"#,
        &[r#""total":1,"x-vendor":ODD},"x-vendor":ODD"#],
        true,
    ),
];

async fn passes(served: &Served, is_modern: bool) {
    let client = Client::of(served, is_modern).await;
    // The gateway has nothing more to ask by itself: what a server on stdio logs then belongs to the one call that runs.
    until("the last list is read", async || {
        let listed = client.ask(served, "resources/templates/list", r#""x-any":1"#);
        listed.await.contains("test odds").then_some(())
    })
    .await;
    for (method, params, pieces, tells) in TABLE {
        let params = params.replace("ODD", ODD);
        let reply = client.ask(served, method, &params).await;
        for piece in pieces {
            let piece = piece.replace("ODD", ODD);
            assert!(reply.contains(&piece), "{method}: no {piece} in {reply}");
        }
        if !tells {
            continue;
        }
        let line = sent(method, &reply);
        let all = [
            params,
            format!(r#""x-asked":{ODD}"#),
            format!(r#""vendor/asked":{ODD}"#),
        ];
        for piece in all {
            assert!(line.contains(&piece), "{method}: no {piece} in {line}");
        }
    }
    is_asked(served, &client).await;
}

/// A question on its way to the client, and the answer on its way back.
async fn is_asked(served: &Served, client: &Client) {
    let answer =
        format!(r#"{{"action":"accept","content":{{"name":"x","more":{ODD}}},"x-vendor":{ODD}}}"#);
    let question = [
        r#""message":"Odd?""#.to_owned(),
        format!(r#"{{"name":{{"type":"string","x-vendor":{ODD}}}}}"#),
        format!(r#""x-vendor":{ODD}}}"#),
    ];
    let reply = match client {
        Client::Legacy(session) => {
            let (headers, body) = client.request("tools/call", r#""name":"odd_ask""#);
            let headers: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let mut stream = Events::open(served, "POST", &headers, &body).await;
            let asked = loop {
                let event = stream.next().await.expect("a question");
                if event.message["method"] == "elicitation/create" {
                    break event;
                }
            };
            for piece in &question {
                assert!(asked.text.contains(piece), "no {piece} in {}", asked.text);
            }
            let id = &asked.message["id"];
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{answer}}}"#);
            let taken = served.send("POST", "/mcp", &session.headers(), &body).await;
            assert_eq!(taken.status, 202, "{}", taken.text);
            stream.next().await.expect("the answer").text
        }
        Client::Modern => {
            let asked = client
                .ask(served, "tools/call", r#""name":"odd_ask""#)
                .await;
            for piece in &question {
                assert!(asked.contains(piece), "no {piece} in {asked}");
            }
            let message = last_message(&asked);
            let (key, _) = message["result"]["inputRequests"]
                .as_object()
                .and_then(|all| all.iter().next())
                .expect("a question");
            let state = match &message["result"]["requestState"] {
                serde_json::Value::Null => String::new(),
                state => format!(r#","requestState":{state}"#),
            };
            let params =
                format!(r#""name":"odd_ask","inputResponses":{{"{key}":{answer}}}{state}"#);
            client.ask(served, "tools/call", &params).await
        }
    };
    let line = sent("odd_ask", &reply);
    assert!(line.contains(&answer), "no {answer} in {line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_odd_messages_pass_from_a_server_of_the_newer_era_to_clients_of_both() {
    let served = gateway("# odd").await;
    passes(&served, true).await;
    passes(&served, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_odd_messages_pass_from_a_server_of_the_older_era_to_clients_of_both() {
    let served = gateway("protocol = \"legacy\" # odd").await;
    passes(&served, false).await;
    passes(&served, true).await;
}

/// Over HTTP between two of us, in either era there, and on both sides.
#[tokio::test(flavor = "multi_thread")]
async fn v05_odd_messages_pass_over_http_too() {
    let inner = gateway("# odd").await;
    for era in ["legacy", "modern"] {
        let outer = up(Workplace::with_config(&format!(
            "[mcp.inner]\nurl = \"http://{}/mcp\"\nprefix = false\nprotocol = \"{era}\"\n",
            inner.address
        )))
        .await;
        passes(&outer, false).await;
        passes(&outer, true).await;
    }
}
