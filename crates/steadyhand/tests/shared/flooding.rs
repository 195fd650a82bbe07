//! A peer over HTTP that never stops sending, on threads of its own: nothing of it yields to those it attacks.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

pub(crate) const MB: usize = 1024 * 1024;

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Events that say nothing, or lines that do.
    Events,
    Comments,
    /// One line, and one body, without an end.
    Spaces,
    /// A header without an end, and headers.
    Header,
    Headers,
    /// `100 Continue`, again and again.
    Interim,
    /// A byte now and then.
    Trickle,
    /// A little that unpacks to a lot, a thousand times.
    Packed,
    /// The same as the words of a refusal.
    Refusal,
}

pub(crate) const ALL: [Flood; 9] = [
    Flood::Events,
    Flood::Comments,
    Flood::Spaces,
    Flood::Header,
    Flood::Headers,
    Flood::Interim,
    Flood::Trickle,
    Flood::Packed,
    Flood::Refusal,
];

/// Floods whoever comes with answers of this content type, until that one leaves.
pub(crate) fn flooding(flood: Flood, kind: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten().take(20) {
            thread::spawn(move || attack(stream, flood, kind));
        }
    });
    format!("http://{address}")
}

fn attack(mut stream: TcpStream, flood: Flood, kind: &str) -> std::io::Result<()> {
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    let mut request = [0; 64 * 1024];
    if stream.read(&mut request)? == 0 {
        return Ok(());
    }
    let ok = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n");
    let chunk = |text: &[u8]| {
        let mut chunk = format!("{:x}\r\n", text.len()).into_bytes();
        chunk.extend_from_slice(text);
        chunk.extend_from_slice(b"\r\n");
        chunk
    };
    let many = |text: &str| chunk(text.repeat(64 * 1024 / text.len()).as_bytes());
    let (head, again, pause) = match flood {
        Flood::Events => (format!("{ok}\r\n"), many("data:{}\n\n"), 0),
        Flood::Comments => (format!("{ok}\r\n"), many(": again\n\n"), 0),
        Flood::Spaces => (format!("{ok}\r\n"), many(" "), 0),
        Flood::Header => (format!("{ok}x-long: "), vec![b'x'; 64 * 1024], 0),
        Flood::Headers => (ok, b"x-more: again\r\n".repeat(4 * 1024), 0),
        Flood::Interim => (
            String::new(),
            b"HTTP/1.1 100 Continue\r\n\r\n".repeat(2 * 1024),
            0,
        ),
        Flood::Trickle => (format!("{ok}\r\n"), chunk(b"\n"), 20),
        Flood::Packed => (
            format!("{ok}content-encoding: gzip\r\n\r\n"),
            chunk(&packed()),
            0,
        ),
        Flood::Refusal => {
            let refused = ok.replace("200 OK", "400 Bad Request");
            (
                format!("{refused}content-encoding: gzip\r\n\r\n"),
                chunk(&packed()),
                0,
            )
        }
    };
    stream.write_all(head.as_bytes())?;
    loop {
        stream.write_all(&again)?;
        if pause > 0 {
            // A thread of this test's own, which stands for another machine.
            stream.set_read_timeout(Some(Duration::from_millis(pause)))?;
            if matches!(stream.read(&mut request), Ok(0)) {
                return Ok(());
            }
        }
    }
}

/// A member of a gzip file that holds 32 MB of line feeds; many of them are one file.
pub(crate) fn packed() -> Vec<u8> {
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    PACKED
        .get_or_init(|| {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            let lines = vec![b'\n'; MB];
            for _ in 0..32 {
                encoder.write_all(&lines).expect("memory");
            }
            encoder.finish().expect("memory")
        })
        .clone()
}

/// What this process takes now, in bytes.
pub(crate) fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = status.split(' ').nth(1);
    pages
        .and_then(|pages| pages.parse::<usize>().ok())
        .unwrap_or(0)
        * 4096
}
