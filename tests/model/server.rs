//! A server on loopback that treats each connection as it was told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use long_horizon::model::remote::REPLY_BYTES_MAX;
use serde_json::Value;

/// What stands for a reply without an end.
const ENDLESS_BYTES: usize = 16 * REPLY_BYTES_MAX;

/// What becomes of one connection.
#[derive(Debug, Clone)]
pub enum Act {
    /// These bytes, then the end of the connection.
    Send(Vec<u8>),
    /// These bytes, then nothing more; the connection stays open.
    Stall(Vec<u8>),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
    /// These bytes, then these others until nobody reads any more, or many times what anybody should read was sent.
    Repeat(Vec<u8>, Vec<u8>),
}

impl Act {
    /// A whole reply.
    pub fn reply(status: u16, headers: &str, body: &str) -> Self {
        Act::Send(
            format!(
                "HTTP/1.1 {status} Whatever\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .into_bytes(),
        )
    }

    /// A good one.
    pub fn json(body: &Value) -> Self {
        Self::reply(200, "Content-Type: application/json\r\n", &body.to_string())
    }

    /// A good status and a body that is longer than what is sent.
    pub fn cut() -> Self {
        Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":".to_vec())
    }

    /// The beginning of a good reply, then a reset.
    pub fn reset() -> Self {
        Act::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"half\":".to_vec())
    }

    /// Chunks without an end.
    pub fn endless() -> Self {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        Act::Repeat(head, [b"1000\r\n".as_slice(), &[b' '; 0x1000], b"\r\n"].concat())
    }
}

/// What a client sent.
#[derive(Debug, Clone)]
pub struct Received {
    /// Request line and headers, with names in lower case.
    pub head: String,
    pub body: String,
}

impl Received {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// The server. It takes as many connections as there are acts, and refuses others.
pub struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(acts: impl IntoIterator<Item = Act>) -> Self {
        let acts: Vec<Act> = acts.into_iter().collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (log, over) = (Arc::clone(&received), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut stalled = Vec::new();
            for act in acts {
                let (stream, _) = listener.accept().unwrap();
                if over.load(Ordering::SeqCst) {
                    return;
                }
                stalled.extend(perform(act, stream, &log));
            }
            drop(listener);
            // What stalls does so until the test is over.
            while !stalled.is_empty() && !over.load(Ordering::SeqCst) {
                std::thread::park();
            }
        });
        Server { address, received, is_over, thread: Some(thread) }
    }

    /// An address where nobody listens.
    pub fn nowhere() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The one request that there was.
    pub fn only(&self) -> Received {
        let mut received = self.received();
        assert_eq!(received.len(), 1, "{received:?}");
        received.remove(0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // Wakes it where it waits for a connection that did not come.
        let _refused = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let result = thread.join();
            if !std::thread::panicking() {
                result.unwrap();
            }
        }
    }
}

/// Gives the connection back where it must stay open.
fn perform(act: Act, stream: TcpStream, log: &Mutex<Vec<Received>>) -> Option<TcpStream> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader);
    let mut body = vec![0; content_length(&head)];
    reader.read_exact(&mut body).unwrap();
    log.lock().unwrap().push(Received { head, body: String::from_utf8(body).unwrap() });
    let mut stream = reader.into_inner();
    match act {
        Act::Send(bytes) => stream.write_all(&bytes).unwrap(),
        Act::Stall(bytes) => {
            stream.write_all(&bytes).unwrap();
            return Some(stream);
        }
        Act::Reset(bytes) => {
            stream.write_all(&bytes).unwrap();
            reset(&stream);
        }
        Act::Repeat(first, again) => {
            stream.write_all(&first).unwrap();
            let times = ENDLESS_BYTES / again.len();
            let _whether_it_left = (0..times).try_for_each(|_| stream.write_all(&again));
        }
    }
    None
}

/// Lets the closing of the connection be a reset.
fn reset(stream: &TcpStream) {
    let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    nix::sys::socket::setsockopt(stream, nix::sys::socket::sockopt::Linger, &linger).unwrap();
}

fn read_head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.split_once(": ") {
            Some((name, value)) => head += &format!("{}: {value}", name.to_lowercase()),
            None => head += &line,
        }
        if line.trim().is_empty() {
            return head;
        }
    }
}

fn content_length(head: &str) -> usize {
    head.lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap())
}
