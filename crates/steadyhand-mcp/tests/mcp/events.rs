//! Server-sent events, however they are written and cut.

use std::time::Duration;

use steadyhand_mcp::wire::{Event, Events, TooLarge};

fn read(chunks: &[&[u8]]) -> Result<Vec<Event>, TooLarge> {
    let mut events = Events::new(1000);
    let mut all = Vec::new();
    for chunk in chunks {
        events.feed(chunk);
        while let Some(event) = events.next_event()? {
            all.push(event);
        }
    }
    Ok(all)
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let events = read(&[bytes]).expect("small");
    let text = |event: &Event| String::from_utf8_lossy(&event.data).into_owned();
    events.iter().map(text).collect()
}

#[test]
fn v12_events_are_read_as_the_standard_says() {
    assert_eq!(texts(b"data: a\ndata:  b\n\ndata:c\n\n"), ["a\n b", "c"]);
    assert_eq!(
        texts(b"data: a\r\rdata: b\r\n\r\ndata: c\n\n"),
        ["a", "b", "c"]
    );
    assert_eq!(
        texts("\u{feff}data: a\n\n: comment\n\nother: x\n\n".as_bytes()),
        ["a"]
    );
    assert_eq!(texts(b"data\n\ndata: cut"), [""]);
    let primed = read(&[b"id: 7\nretry: 500\ndata: \n\n"]).expect("small");
    assert_eq!(primed[0].id.as_deref(), Some("7"));
    assert_eq!(primed[0].retry, Some(Duration::from_millis(500)));
    assert!(!primed[0].is_message());
}

#[test]
fn v12_an_event_without_end_is_not_read_without_end() {
    assert_eq!(read(&[&[b'x'; 600], &[b'x'; 600]]), Err(TooLarge(1200)));
    let line = [b"data: ".as_slice(), &[b'x'; 400], b"\n"].concat();
    assert!(matches!(read(&[&line, &line, &line]), Err(TooLarge(_))));
}

proptest::proptest! {
    #[test]
    fn v12_however_events_are_cut_the_same_is_read(cuts in proptest::collection::vec(0usize..60, 0..6)) {
        let bytes = b"id: 1\r\ndata: {\"a\":1}\r\n\r\n: keep\n\nevent: endpoint\ndata: /x\rdata: y\r\r";
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        proptest::prop_assert_eq!(read(&chunks), read(&[bytes]));
    }
}
