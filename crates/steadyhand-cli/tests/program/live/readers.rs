//! Many readers, slow readers, readers that want only some of it.

use serde_json::json;
use steadyhand::Call;
use steadyhand::testing::script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::Place;
use super::reader::Reader;
use crate::support::PATIENCE;

#[tokio::test]
async fn a_reader_that_does_not_read_is_told_what_it_missed_and_holds_up_nobody() {
    const ROUNDS: usize = 40;
    const EACH: usize = 1000;
    let place = Place::with([]).await;
    // Small, so that what it does not read is soon ours to keep or to drop.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = socket.connect(place.address).await.unwrap();
    slow.write_all(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut quick = Reader::open(place.address, "", None).await;
    quick.expect("snapshot").await;
    for round in 0..ROUNDS {
        let numbers = round * EACH..(round + 1) * EACH;
        place.publish(numbers.clone());
        let last = format!("server-{}", numbers.end - 1);
        let told = quick
            .until(|told| told.data["server"] == last.as_str())
            .await;
        assert_eq!(told.len(), EACH, "nothing is missing for one who reads");
    }
    // Now it reads: what still lay in the buffers, how much is missing, then the newest.
    let last = format!("server-{}", ROUNDS * EACH - 1);
    let mut text = String::new();
    let mut piece = vec![0; 64 * 1024];
    while !text[text.len().saturating_sub(128 * 1024)..].contains(&last) {
        let read = timeout(PATIENCE, slow.read(&mut piece)).await;
        let read = read.expect("it goes on").unwrap();
        assert!(read > 0, "the stream is still open");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    let got = text.matches("event: server_changed").count();
    let missed: usize = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: {\"count\":"))
        .map(|count| count.trim_end_matches('}').parse::<usize>().unwrap())
        .sum();
    assert!(missed > 0, "it was told that it missed something");
    assert_eq!(got + missed, ROUNDS * EACH, "{got} got, {missed} missed");
    assert!(text.len() < 20 * 1024 * 1024);
}

#[tokio::test]
async fn a_reader_gets_the_tools_and_types_it_asks_for() {
    let place = Place::with(
        ["home_lights", "home_door", "search"].map(|name| script(name).answers(1).tool()),
    )
    .await;
    let mut home = Reader::open(place.address, "?tool=home_*&type=call_finished", None).await;
    home.expect("snapshot").await;
    let mut some = Reader::open(place.address, "?tool=search,home_door", None).await;
    some.expect("snapshot").await;
    let mut servers = Reader::open(place.address, "?type=server_changed", None).await;
    servers.expect("snapshot").await;
    for tool in ["search", "home_door", "home_lights"] {
        place.executor.execute(Call::new(tool, json!({}))).await;
    }
    place.publish(0..1);
    let finished = [
        home.expect("call_finished").await.data["tool"].clone(),
        home.expect("call_finished").await.data["tool"].clone(),
    ];
    assert_eq!(finished, ["home_door", "home_lights"]);
    let told = some
        .until(|told| told.kind == "call_finished" && told.data["tool"] == "home_door")
        .await;
    assert!(told.iter().all(|told| told.data["tool"] != "home_lights"));
    servers.expect("server_changed").await;

    let refused = Reader::ask(place.address, "?type=call_ended", None).await;
    assert_eq!(refused.status(), 400);
    let text = refused.text().await.unwrap();
    assert!(
        text.contains("'call_ended'") && text.contains("call_finished"),
        "{text}"
    );
}

#[tokio::test]
async fn there_are_only_so_many_readers_and_each_gives_its_place_back() {
    let place = Place::with([]).await;
    let mut readers = Vec::new();
    for _ in 0..256 {
        let mut reader = Reader::open(place.address, "", None).await;
        reader.expect("snapshot").await;
        readers.push(reader);
    }
    assert_eq!(place.live.readers(), 256);
    let refused = Reader::ask(place.address, "", None).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.text().await.unwrap().contains("256 readers"));
    drop(readers);
    let until = Instant::now() + PATIENCE;
    while place.live.readers() > 0 {
        assert!(
            Instant::now() < until,
            "{} readers stay",
            place.live.readers()
        );
        // A closed connection is noticed when something is written to it.
        place.publish(0..1);
        sleep(std::time::Duration::from_millis(10)).await;
    }
    Reader::open(place.address, "", None)
        .await
        .expect("snapshot")
        .await;
}

#[tokio::test]
async fn streams_end_when_the_server_does() {
    let place = Place::with([]).await;
    let mut reader = Reader::open(place.address, "", None).await;
    reader.expect("snapshot").await;
    place.live.close();
    assert_eq!(reader.next().await, None);
    assert_eq!(Reader::ask(place.address, "", None).await.status(), 503);
}
