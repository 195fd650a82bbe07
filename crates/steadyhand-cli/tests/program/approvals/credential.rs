//! Who may decide on a server that asks nobody for credentials: a program that it started itself may not.

use serde_json::{Value, json};

use super::{TOOLS, decide, waiting};
use crate::serve::Served;
use crate::support::parts;

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

#[tokio::test]
async fn s03_a_decision_takes_a_credential_even_on_an_open_server() {
    let served = Served::with_config(TOOLS).await;
    let calling = served.call("unlock", json!({"door": "front"}));
    let saying = async {
        let approval = waiting(&served, 1).await.remove(0);
        let id = approval["id"].as_str().expect("an id");
        let hash = &approval["arguments_hash"];
        let yes = json!({"decision": "approve", "arguments_hash": hash});
        let own = format!("http://{}", served.address);
        let path = format!("/v1/approvals/{id}");
        let forged = ("authorization", "Bearer something");
        for headers in [&[][..], &[forged][..], &[("origin", own.as_str())][..]] {
            let reply = served.send("POST", &path, headers, &yes.to_string()).await;
            assert_eq!(reply.status, 401, "{}", reply.text);
            assert!(reply.text.contains("steadyhand approve"), "{}", reply.text);
        }
        // The same by the dashboard's button, and a page that does not offer it.
        let hash = hash.as_str().expect("a hash").replace(':', "%3A");
        let form = format!("decision=approve&arguments_hash={hash}&sure=yes");
        let headers = [FORM, ("origin", own.as_str())];
        let path = format!("/approvals/{id}");
        assert_eq!(
            served.send("POST", &path, &headers, &form).await.status,
            401
        );
        let page = served.get("/approvals").await.text;
        assert!(
            page.contains("To decide,") && !page.contains("value=\"approve\""),
            "{page}"
        );
        // Neither can a key be had like that.
        let wanted = json!({"name": "mine", "role": "operator"});
        assert_eq!(served.post("/v1/keys", wanted).await.status, 403);
        assert_eq!(waiting(&served, 1).await[0]["id"], approval["id"]);
        // Our own command shows what it has read from the private file.
        let (code, _, stderr) = parts(&served.workplace.run(&format!("approve {id}")));
        assert_eq!(code, 0, "{stderr}");
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["status"], "success", "{outcome}");
}

#[tokio::test]
async fn s03_a_link_logs_a_browser_in_once_and_lets_it_decide() {
    let served = Served::with_config(TOOLS).await;
    let path = served.login_path();
    let reply = served.get(&path).await;
    assert_eq!((reply.status, reply.header("location")), (303, Some("/")));
    let cookie = reply.header("set-cookie").expect("a login").to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().expect("its value").to_owned();
    let again = served.get(&path).await;
    assert_eq!((again.status, again.header("set-cookie")), (200, None));
    assert!(again.text.contains("was used before"), "{}", again.text);

    let calling = served.call(
        "unlock",
        json!({"door": "front", "password": "hunter22222"}),
    );
    let saying = async {
        let approval = waiting(&served, 1).await.remove(0);
        let id = approval["id"].as_str().expect("an id");
        let own = format!("http://{}", served.address);
        let headers = [FORM, ("origin", own.as_str()), ("cookie", cookie.as_str())];
        let hash = approval["arguments_hash"].as_str().expect("a hash");
        let form = format!(
            "decision=approve&arguments_hash={}",
            hash.replace(':', "%3A")
        );
        let path = format!("/approvals/{id}");
        // The first step asks about what is not shown, with its size and its hash.
        let question = served.send("POST", &path, &headers, &form).await;
        assert_eq!(question.status, 200);
        let hidden = &approval["hidden"][0];
        let hash_of_it = hidden["hash"].as_str().expect("a hash");
        for part in [
            "Approve what is not shown?",
            "/password",
            "13 bytes",
            hash_of_it,
            hash,
        ] {
            assert!(question.text.contains(part), "{part} in {}", question.text);
        }
        assert!(!question.text.contains("hunter"), "{}", question.text);
        let sure = format!("{form}&sure=yes");
        assert_eq!(
            served.send("POST", &path, &headers, &sure).await.status,
            303
        );
    };
    let (outcome, ()) = tokio::join!(calling, saying);
    assert_eq!(outcome["status"], "success", "{outcome}");
}

#[tokio::test]
async fn s03_a_yes_to_what_is_not_shown_takes_a_second_step() {
    let served = Served::with_config(TOOLS).await;
    let secret = json!({"door": "front", "password": "hunter22222"});
    let large = json!({"door": "x".repeat(40_000)});
    for (args, at, why, bytes) in [
        (secret, "/password", "secret", 13),
        (large, "/door", "cut", 40_002),
    ] {
        let calling = served.call("unlock", args);
        let saying = async {
            let approval: Value = waiting(&served, 1).await.remove(0);
            let hidden = &approval["hidden"][0];
            assert_eq!(
                (&hidden["at"], &hidden["why"], &hidden["bytes"]),
                (&json!(at), &json!(why), &json!(bytes)),
                "{hidden}"
            );
            let refused = decide(&served, &approval, "approve").await;
            let (status, code, message) = refused.refusal();
            assert_eq!((status, code.as_str()), (409, "cannot_decide"));
            assert!(
                message.contains(at) && message.contains("not shown"),
                "{message}"
            );
            assert_eq!(refused.json()["error"]["hidden"][0]["hash"], hidden["hash"]);
            let id = approval["id"].as_str().expect("an id");
            let (code, _, stderr) = parts(&served.workplace.run(&format!("approve {id}")));
            assert_eq!(code, 7, "{stderr}");
            assert!(stderr.contains("--unseen"), "{stderr}");
            let listed = parts(&served.workplace.run("approvals")).1;
            assert!(
                listed.contains(&format!("not shown: {at}")),
                "{listed:.300}"
            );
            let (code, _, stderr) = parts(&served.workplace.run(&format!("approve {id} --unseen")));
            assert_eq!(code, 0, "{stderr}");
        };
        let (outcome, ()) = tokio::join!(calling, saying);
        assert_eq!(outcome["status"], "success", "{outcome:.300}");
    }
}
