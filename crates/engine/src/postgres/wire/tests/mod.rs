//! The thin client against servers that say what a test wants.

mod answers;
mod logins;
mod noise;
mod sessions;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{ExternalServer, PasswordSource, ServerPlace, TlsMode};
use tempfile::TempDir;

use super::Login;
use super::connection::Connection;
use crate::Password;
use crate::deadline::within;
use crate::postgres::link::Link;
use crate::wire::{Place, Socket};

/// In none of our messages but the one for it, and in no debug text.
const SECRET: &str = "geh3im!wort";

/// Nothing waits this long unless it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A message: its letter, its length, its body.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

/// A message of the server about authentication.
fn authentication(kind: u32, data: &[u8]) -> Vec<u8> {
    message(b'R', &[&kind.to_be_bytes()[..], data].concat())
}

fn error(severity: &str, sqlstate: &str, text: &str) -> Vec<u8> {
    message(
        b'E',
        format!("S{severity}\0V{severity}\0C{sqlstate}\0M{text}\0\0").as_bytes(),
    )
}

/// A row of one column in text.
fn row(text: &[u8]) -> Vec<u8> {
    message(
        b'D',
        &[&[0, 1][..], &(text.len() as u32).to_be_bytes(), text].concat(),
    )
}

fn complete(tag: &str) -> Vec<u8> {
    message(b'C', format!("{tag}\0").as_bytes())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn columns() -> Vec<u8> {
    message(
        b'T',
        b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0",
    )
}

/// A connection to a server that has said `bytes` and says nothing more, and the server's end.
fn answered(bytes: &[u8]) -> (Connection, UnixStream) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let socket = Socket::connect(&Place::Unix(path), LIMIT).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    // What does not fit into the socket is written while it is read.
    if bytes.len() < 32 << 10 {
        peer.write_all(bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
    } else {
        let (mut peer, bytes) = (peer.try_clone().unwrap(), bytes.to_vec());
        std::thread::spawn(move || {
            let _ = peer.write_all(&bytes);
            let _ = peer.shutdown(Shutdown::Write);
        });
    }
    (Connection::on(socket), peer)
}

/// What `work` returns. A hang is a failure.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    within(Instant::now() + LIMIT, work).expect("it panicked or did not end")
}

/// A server of one thread that plays a part for each connection, one after the other.
struct Stage {
    dir: TempDir,
    thread: std::thread::JoinHandle<()>,
    /// Connections that have ended.
    ended: Arc<AtomicUsize>,
}

/// What a server does with one connection.
type Part = Box<dyn FnOnce(&mut Actor) + Send>;

fn part(play: impl FnOnce(&mut Actor) + Send + 'static) -> Part {
    Box::new(play)
}

/// The port in the name of the socket.
const PORT: u16 = 5432;

impl Stage {
    fn new(parts: Vec<Part>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join(format!(".s.PGSQL.{PORT}"))).unwrap();
        let ended = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            for part in parts {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(LIMIT)).unwrap();
                part(&mut Actor { stream });
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { dir, thread, ended }
    }

    /// Waits until so many connections have ended.
    fn wait_for_ends(&self, ends: usize) {
        let deadline = Instant::now() + LIMIT;
        while self.ended.load(Ordering::SeqCst) < ends {
            assert!(Instant::now() < deadline, "the connection did not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn place(&self) -> Place {
        Place::Unix(self.dir.path().join(format!(".s.PGSQL.{PORT}")))
    }

    fn login(&self) -> Login {
        Login {
            place: self.place(),
            user: "bench".into(),
            database: "ib".into(),
            password: Some(Password::new(SECRET.into())),
        }
    }

    /// A link as to a server that is not ours.
    fn link(&self) -> Link {
        let place = ServerPlace::Socket {
            path: self.dir.path().to_str().unwrap().to_owned(),
            port: PORT,
        };
        let server = ExternalServer {
            label: "prod".to_owned(),
            engine: EngineName::Postgres,
            place,
            user: "bench".to_owned(),
            database: "ib".to_owned(),
            password: PasswordSource::None,
            tls: TlsMode::Off,
            tls_ca: None,
        };
        Link::external(&server, None).unwrap()
    }

    fn end(self) {
        self.thread.join().unwrap();
    }
}

/// The server's end of a connection.
struct Actor {
    stream: UnixStream,
}

impl Actor {
    fn say(&mut self, messages: &[Vec<u8>]) {
        // A client that has seen enough may be gone.
        let _ = self.stream.write_all(&messages.concat());
    }

    /// Reads the first message, which has no letter.
    fn startup(&mut self) -> Vec<u8> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).unwrap();
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        body
    }

    fn welcome(&mut self) {
        self.startup();
        self.say(&[
            authentication(0, b""),
            message(b'S', b"server_version\x0018.6\0"),
            message(b'K', &[0; 8]),
            ready(),
        ]);
    }

    /// Reads a message, and says its letter and body. `None` is the end.
    fn hear(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 5];
        self.stream.read_exact(&mut header).ok()?;
        let mut body =
            vec![0; u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        Some((header[0], body))
    }

    /// Reads messages to the end of a request or of the connection, and says their letters.
    fn request(&mut self) -> String {
        let mut letters = String::new();
        while !letters.ends_with(['Q', 'S', 'X', '.']) {
            letters.push(self.hear().map_or('.', |(kind, _)| char::from(kind)));
        }
        letters
    }
}
