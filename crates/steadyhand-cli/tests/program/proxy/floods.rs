//! A provider that never stops answering: the exchange ends in time, memory stays bounded, and others are served meanwhile.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use super::{proxy_with, valid};
use crate::flooding::{ALL, Flood, MB, flooding, packed};
use crate::gateway::memory;
use crate::serve::Served;
use crate::support::PATIENCE;

/// Sends a request, and reads what comes until it ends: how much that was.
async fn exchange(served: &Served) -> usize {
    let mut stream = TcpStream::connect(served.address).await.expect("a port");
    let mut body = valid();
    body["stream"] = true.into();
    let body = body.to_string();
    let request = format!(
        "POST /proxy/anthropic/v1/messages HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(request.as_bytes())
        .await
        .expect("a reader");
    let (mut buffer, mut bytes) = (vec![0; 256 * 1024], 0);
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return bytes,
            Ok(more) => bytes += more,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s01_a_provider_that_never_stops_ends_in_time_and_others_are_served() {
    packed();
    for flood in ALL {
        for kind in ["text/event-stream", "application/json"] {
            let provider = flooding(flood, kind);
            let served = proxy_with("anthropic", provider, "timeout = \"1s\"\n").await;
            let before = memory(&served);
            let began = Instant::now();
            let attacked = async {
                let bytes = timeout(PATIENCE, exchange(&served)).await;
                (bytes.expect("it ends"), began.elapsed())
            };
            let others = async {
                for _ in 0..10 {
                    assert_eq!(served.get("/health/live").await.status, 200);
                }
                began.elapsed()
            };
            let ((bytes, took), others) = tokio::join!(attacked, others);
            let what = format!("{flood:?} {kind}: {bytes} bytes in {took:?}");
            assert!(took < Duration::from_secs(10), "{what}");
            assert!(others < Duration::from_secs(10), "{what}: {others:?}");
            let more = memory(&served).saturating_sub(before);
            assert!(more < 128 * MB, "{what}: {} MB more", more / MB);
            if matches!(flood, Flood::Header | Flood::Headers | Flood::Interim) {
                assert!(bytes < 64 * 1024, "{what}");
            }
        }
    }
}
