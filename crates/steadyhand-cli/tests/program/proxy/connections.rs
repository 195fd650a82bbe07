//! Connections to a provider are kept and used again, and that costs nobody an answer: not where the provider closes
//! them after an answer or after a pause, and nothing is processed twice.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::{ok, proxy, valid};
use crate::serve::{Served, until};
use crate::support::{PATIENCE, client};

/// What a provider does with its connections. No answer says anything about it.
#[derive(Clone, Copy)]
enum Habit {
    /// Closes each one after its first answer, so much later at most.
    ClosesAfterAnAnswer(Duration),
    /// Closes those that are not used for so long.
    ClosesAfterAPause(Duration),
    Keeps,
    /// Reads a second request, and closes without an answer.
    SwallowsTheSecond,
}

/// What a provider has seen.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

async fn provider(habit: Habit) -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let seen = Arc::new(Seen::default());
    let all = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            all.connections.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(serve_one(stream, habit, Arc::clone(&all)));
        }
    });
    (address, seen)
}

async fn serve_one(mut stream: TcpStream, habit: Habit, seen: Arc<Seen>) {
    stream.set_nodelay(true).expect("a socket");
    let body = ok().to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for number in 1.. {
        let pause = match habit {
            Habit::ClosesAfterAPause(pause) if number > 1 => pause,
            _ => PATIENCE * 10,
        };
        let Ok(true) = timeout(pause, read_request(&mut stream)).await else {
            return;
        };
        let total = seen.requests.fetch_add(1, Ordering::SeqCst);
        if number == 2 && matches!(habit, Habit::SwallowsTheSecond) {
            return;
        }
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        if let Habit::ClosesAfterAnAnswer(most) = habit {
            sleep(most * (total % 7) as u32 / 6).await;
            return;
        }
    }
}

/// One request, to its end.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    loop {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return false;
        }
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            return true;
        }
    }
}

/// Asks so often, with pauses of every length up to the longest; gives back what was no answer.
async fn failures(served: &Served, count: u64, longest_pause: Duration) -> Vec<String> {
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    let client = client();
    let mut failures = Vec::new();
    for number in 0..count {
        let sent = client.post(&url).body(valid().to_string()).send().await;
        let answer = sent.expect("the proxy answers");
        if answer.status() != 200 {
            failures.push(answer.text().await.expect("words"));
        }
        sleep(longest_pause * (number * 37 % 100) as u32 / 100).await;
    }
    failures
}

#[tokio::test(flavor = "multi_thread")]
async fn none_of_300_requests_fails_at_a_provider_that_closes_after_its_answers() {
    for latest in [Duration::ZERO, Duration::from_millis(2)] {
        let (address, seen) = provider(Habit::ClosesAfterAnAnswer(latest)).await;
        let served = proxy("anthropic", format!("http://{address}")).await;
        let failed = failures(&served, 150, Duration::from_millis(4)).await;
        assert_eq!(failed, Vec::<String>::new());
        assert_eq!(seen.requests.load(Ordering::SeqCst), 150, "each once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn none_of_300_requests_fails_at_a_provider_that_closes_after_a_pause() {
    let pause = Duration::from_millis(10);
    let (address, seen) = provider(Habit::ClosesAfterAPause(pause)).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    let failed = failures(&served, 300, pause * 2).await;
    assert_eq!(failed, Vec::<String>::new());
    assert_eq!(seen.requests.load(Ordering::SeqCst), 300, "each once");
}

/// Asks until a connection is used a second time; gives back the status of that request.
async fn until_used_again(served: &Served, seen: &Seen, method: reqwest::Method) -> u16 {
    let url = format!("http://{}/proxy/anthropic/v1/messages", served.address);
    until("a connection is used again", async || {
        let before = seen.connections.load(Ordering::SeqCst);
        let asked = client().request(method.clone(), &url);
        let asked = match method == reqwest::Method::POST {
            true => asked.body(valid().to_string()),
            false => asked,
        };
        let status = asked.send().await.expect("an answer").status().as_u16();
        let requests = seen.requests.load(Ordering::SeqCst);
        let connections = seen.connections.load(Ordering::SeqCst);
        // A second request on a connection that was there before.
        (requests > connections || status != 200 || connections == before).then_some(status)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_a_provider_that_keeps_them_are_used_again() {
    let (address, seen) = provider(Habit::Keeps).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    // More than are kept.
    assert!(failures(&served, 300, Duration::ZERO).await.is_empty());
    assert_eq!(
        until_used_again(&served, &seen, reqwest::Method::POST).await,
        200
    );
    let before = seen.connections.load(Ordering::SeqCst);
    assert!(failures(&served, 50, Duration::ZERO).await.is_empty());
    assert_eq!(seen.connections.load(Ordering::SeqCst), before);
}

/// RFC 9110, 9.2.2: what was read, and may have been processed, is not sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_provider_read_and_did_not_answer_is_sent_once() {
    let (address, seen) = provider(Habit::SwallowsTheSecond).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    assert_eq!(
        until_used_again(&served, &seen, reqwest::Method::POST).await,
        502
    );
    let requests = seen.requests.load(Ordering::SeqCst);
    let connections = seen.connections.load(Ordering::SeqCst);
    assert_eq!(requests, connections + 1, "no request was sent twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_changes_nothing_is_asked_again_on_a_new_connection() {
    let (address, seen) = provider(Habit::SwallowsTheSecond).await;
    let served = proxy("anthropic", format!("http://{address}")).await;
    assert_eq!(
        until_used_again(&served, &seen, reqwest::Method::GET).await,
        200
    );
    let requests = seen.requests.load(Ordering::SeqCst);
    let connections = seen.connections.load(Ordering::SeqCst);
    assert_eq!(requests, connections + 1, "one was sent again");
}
