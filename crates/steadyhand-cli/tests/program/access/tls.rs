//! TLS where a certificate is configured: clients that trust it, those that speak none, commands of the same machine.

use std::time::Duration;

use super::TOOLS;
use crate::serve::{Served, program, until};
use crate::support::{Workplace, parts};

const CERTIFICATE: &str = include_str!("fixtures/cert.pem");
const KEY: &str = include_str!("fixtures/key.pem");
const OTHER_CERTIFICATE: &str = include_str!("fixtures/other-cert.pem");
const OTHER_KEY: &str = include_str!("fixtures/other-key.pem");

fn workplace() -> Workplace {
    let config =
        format!("{TOOLS}\n[server]\ntls = {{ certificate = \"cert.pem\", key = \"key.pem\" }}\n");
    let workplace = Workplace::with_config(&config);
    workplace.write("cert.pem", CERTIFICATE);
    workplace.write("key.pem", KEY);
    workplace
}

fn trusting(certificate: &str) -> reqwest::Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificate =
        reqwest::Certificate::from_pem(certificate.as_bytes()).expect("a certificate");
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([certificate]);
    client
        .timeout(crate::support::PATIENCE)
        .build()
        .expect("a client")
}

#[tokio::test]
async fn with_a_certificate_connections_are_tls_and_commands_know_the_server_by_it() {
    let served = Served::in_place(workplace()).await;
    let url = format!("https://{}/v1/tools", served.address);
    let reply = trusting(CERTIFICATE)
        .get(&url)
        .send()
        .await
        .expect("an answer");
    assert_eq!(reply.status(), 200);
    // Who does not trust it, and who speaks no TLS, is not served; the server goes on.
    assert!(trusting(OTHER_CERTIFICATE).get(&url).send().await.is_err());
    let mut stream = served.connect().await;
    let request = crate::serve::request(served.address, "GET", "/v1/tools", &[], "");
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .expect("sent");
    let answer = crate::serve::whole_reply(&mut stream);
    let answer = tokio::time::timeout(crate::support::PATIENCE, answer)
        .await
        .expect("it ends");
    assert!(answer.is_none_or(|answer| answer.status != 200));
    let workplace = served.workplace.shared();
    let (code, listed, stderr) =
        tokio::task::spawn_blocking(move || parts(&workplace.run("tools list")))
            .await
            .expect("ran");
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("Using the server") && listed.contains("weather"),
        "{stderr}"
    );
    assert_eq!(
        trusting(CERTIFICATE)
            .get(&url)
            .send()
            .await
            .expect("an answer")
            .status(),
        200
    );
}

#[tokio::test]
async fn another_certificate_is_taken_over_with_the_configuration_and_a_broken_one_is_not() {
    let served = Served::in_place(workplace()).await;
    let url = format!("https://{}/v1/tools", served.address);
    served.workplace.write("cert.pem", OTHER_CERTIFICATE);
    served.workplace.write("key.pem", OTHER_KEY);
    let reload = format!("https://{}/v1/config/reload", served.address);
    trusting(CERTIFICATE)
        .post(&reload)
        .send()
        .await
        .expect("an answer");
    until("the new certificate is shown", async || {
        trusting(OTHER_CERTIFICATE).get(&url).send().await.ok()
    })
    .await;
    let workplace = served.workplace.shared();
    let (_, _, stderr) = tokio::task::spawn_blocking(move || parts(&workplace.run("tools list")))
        .await
        .expect("ran");
    assert!(stderr.contains("Using the server"), "{stderr}");
    served.workplace.write("key.pem", KEY);
    trusting(OTHER_CERTIFICATE)
        .post(&reload)
        .send()
        .await
        .expect("an answer");
    until("it is told", async || {
        served
            .stderr()
            .contains("goes on with the certificate it had")
            .then_some(())
    })
    .await;
    assert_eq!(
        trusting(OTHER_CERTIFICATE)
            .get(&url)
            .send()
            .await
            .expect("an answer")
            .status(),
        200
    );
}

#[cfg(unix)]
fn mode(workplace: &Workplace, name: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(workplace.file(name), mode).expect("a mode");
}

#[cfg(unix)]
#[tokio::test]
async fn s06_a_certificate_or_key_that_somebody_else_could_have_written_is_not_served() {
    for name in ["cert.pem", "key.pem"] {
        let workplace = workplace();
        mode(&workplace, name, 0o666);
        let refused = program(&workplace, &["serve", "--listen", "127.0.0.1:0"]).output();
        let refused = tokio::time::timeout(Duration::from_secs(60), refused)
            .await
            .expect("it ends")
            .expect("it ran");
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success(), "{stderr}");
        for part in [name, "everybody can write it", "--trust"] {
            assert!(stderr.contains(part), "{part} in {stderr}");
        }
        let (_, shown, _) = parts(&workplace.run("doctor --json"));
        assert!(shown.contains("everybody can write it"), "{shown}");
        let served = Served::told(workplace, "127.0.0.1:0", &["--trust"]).await;
        drop(served);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn s06_a_private_key_that_others_can_read_is_told_by_the_server_and_by_doctor() {
    let workplace = workplace();
    mode(&workplace, "key.pem", 0o600);
    let doctor = |workplace: &Workplace| parts(&workplace.run("doctor --json")).1;
    assert!(!doctor(&workplace).contains("machine.tls_key"));
    mode(&workplace, "key.pem", 0o644);
    let said = doctor(&workplace);
    assert!(
        said.contains("machine.tls_key") && said.contains("chmod 600"),
        "{said}"
    );
    let served = Served::in_place(workplace).await;
    until("it is told", async || {
        served
            .stderr()
            .contains("everybody can read it")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_certificate_that_is_missing_or_not_one_keeps_the_server_from_starting() {
    for (name, text, why) in [
        ("cert.pem", "nothing", "has no certificate in it"),
        ("key.pem", "nothing", "server.tls.key"),
        ("key.pem", OTHER_KEY, "do not fit"),
    ] {
        let workplace = workplace();
        workplace.write(name, text);
        let refused = program(&workplace, &["serve", "--listen", "127.0.0.1:0"]).output();
        let refused = tokio::time::timeout(Duration::from_secs(60), refused)
            .await
            .expect("it ends")
            .expect("it ran");
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && stderr.contains(why),
            "{stderr}"
        );
    }
}
