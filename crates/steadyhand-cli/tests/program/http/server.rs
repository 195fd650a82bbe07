//! A raw TCP server on loopback: each request gets the next act of its script, the last one for ever.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What the server does once it has read a request.
#[derive(Clone)]
pub(crate) enum Act {
    /// Sends these bytes and waits for the next request.
    Send(Vec<u8>),
    /// Sends these bytes, which may be none, and closes.
    Close(Vec<u8>),
    /// Sends these bytes and resets the connection.
    Reset(Vec<u8>),
    /// Sends these bytes, then nothing, until the client goes away.
    Stall(Vec<u8>),
    /// Sends these bytes, then more of the last one every few milliseconds, for ever.
    Drip(Vec<u8>),
    /// Sends the first bytes, then the second over and over as fast as it can.
    Flood(Vec<u8>, Vec<u8>),
}

/// A request as it came over the wire.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    log: Arc<Log>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Log {
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    departures: AtomicUsize,
}

impl Server {
    pub(crate) async fn start(acts: Vec<Act>) -> Server {
        Server::start_with(|_| acts).await
    }

    /// The script may speak of the server's own address.
    pub(crate) async fn start_with(acts: impl FnOnce(SocketAddr) -> Vec<Act>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("it is bound");
        let acts = Arc::new(acts(address));
        let log = Arc::new(Log::default());
        let for_task = Arc::clone(&log);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                for_task.connections.fetch_add(1, Ordering::SeqCst);
                let (acts, log) = (Arc::clone(&acts), Arc::clone(&for_task));
                tokio::spawn(async move { serve(stream, &acts, &log).await });
            }
        });
        Server { address, log, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.seen.lock().expect("no test panics here").clone()
    }

    /// Connections that were opened.
    pub(crate) fn connections(&self) -> usize {
        self.log.connections.load(Ordering::SeqCst)
    }

    /// Clients that went away while the server still had something to say.
    pub(crate) fn departures(&self) -> usize {
        self.log.departures.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, acts: &[Act], log: &Log) {
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut seen = log.seen.lock().expect("no test panics here");
            seen.push(request);
            seen.len() - 1
        };
        let act = acts.get(number).or(acts.last()).expect("a script has acts");
        match act {
            Act::Send(bytes) => {
                if stream.write_all(bytes).await.is_err() {
                    return;
                }
            }
            Act::Close(bytes) => {
                let _ = stream.write_all(bytes).await;
                return;
            }
            Act::Reset(bytes) => {
                let _ = stream.write_all(bytes).await;
                let _ = stream.flush().await;
                let _ = stream.set_zero_linger();
                return;
            }
            Act::Stall(bytes) => {
                let _ = stream.write_all(bytes).await;
                let mut rest = [0; 64];
                while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
                log.departures.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Act::Drip(bytes) => {
                let _ = stream.write_all(bytes).await;
                let drop = [*bytes.last().expect("something to drip")];
                while stream.write_all(&drop).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                log.departures.fetch_add(1, Ordering::SeqCst);
                return;
            }
            Act::Flood(first, again) => {
                let _ = stream.write_all(first).await;
                while stream.write_all(again).await.is_ok() {}
                log.departures.fetch_add(1, Ordering::SeqCst);
                return;
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut seen = Seen {
        head: String::from_utf8_lossy(&bytes[..head_end]).into_owned(),
        body: String::new(),
    };
    let length = seen
        .header("content-length")
        .and_then(|text| text.parse().ok());
    let end = head_end + length.unwrap_or(0);
    while bytes.len() < end {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = String::from_utf8_lossy(&bytes[head_end..end]).into_owned();
    Some(seen)
}

/// A whole answer that keeps the connection open.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = head(status, headers);
    let blank = bytes.len() - 2;
    bytes.truncate(blank);
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}

/// The head of an answer alone.
pub(crate) fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

pub(crate) fn json_answer(body: &str) -> Act {
    Act::Send(answer(200, &[("content-type", "application/json")], body))
}

pub(crate) fn redirect(status: u16, location: &str) -> Act {
    Act::Send(answer(status, &[("location", location)], ""))
}

/// A port whose queue is full: who comes is neither let in nor sent away.
pub(crate) struct BlackHole {
    pub(crate) url: String,
    _listener: TcpListener,
    _crowd: Vec<TcpStream>,
}

impl BlackHole {
    pub(crate) async fn dig() -> BlackHole {
        let socket = TcpSocket::new_v4().expect("a socket");
        let address = "127.0.0.1:0".parse().expect("an address");
        socket.bind(address).expect("loopback");
        let listener = socket.listen(0).expect("it can listen");
        let address = listener.local_addr().expect("it is bound");
        let mut crowd = Vec::new();
        let brief = Duration::from_millis(200);
        while let Ok(Ok(stream)) = timeout(brief, TcpStream::connect(address)).await {
            crowd.push(stream);
            assert!(crowd.len() < 64, "its queue is never full");
        }
        BlackHole {
            url: format!("http://{address}/"),
            _listener: listener,
            _crowd: crowd,
        }
    }
}
