//! A connected socket that waits as cheaply as the kernel allows.

use std::io::{self, IoSlice};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_socket_keepalive, set_tcp_keepidle, set_tcp_keepintvl, set_tcp_user_timeout,
};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};

use crate::external::{NETWORK_LIMIT, PROBE_AFTER, PROBE_INTERVAL};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A unix socket's file.
    Unix(PathBuf),
    /// A host, by name or address, and a port.
    Tcp(String, u16),
}

/// A connection to a server. Reads and writes block; an interrupted call is made again.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Stream,
    /// How long one wait for input may take.
    patience: Option<Timespec>,
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    /// Connects, with a limit for each wait from then on; see [`Socket::wait_for_ever`]. Over a
    /// network the connection is probed, so that a server whose machine is gone is noticed.
    pub fn connect(place: &Place, patience: Duration) -> io::Result<Self> {
        let stream = match place {
            Place::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Place::Tcp(host, port) => Stream::Tcp(connect_tcp(host, *port, patience)?),
        };
        let mut socket = Self {
            stream,
            patience: None,
        };
        socket.wait_at_most(patience)?;
        Ok(socket)
    }

    /// Each wait from now on takes at most `patience`.
    pub fn wait_at_most(&mut self, patience: Duration) -> io::Result<()> {
        self.patience = Some(Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: i64::from(patience.subsec_nanos()),
        });
        self.stream.limit(Some(patience))
    }

    /// A running statement has no deadline.
    pub fn wait_for_ever(&mut self) -> io::Result<()> {
        self.patience = None;
        self.stream.limit(None)
    }

    /// Whether nobody but the server can read what is sent.
    pub fn is_private(&self) -> bool {
        matches!(self.stream, Stream::Unix(_))
    }

    /// Sends all of `parts`, in one call where the kernel takes them at once.
    pub fn send(&mut self, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        while !parts.is_empty() {
            let socket = self.stream.as_fd();
            let sent = match &*parts {
                [part] => send(socket, part, SendFlags::NOSIGNAL),
                parts => sendmsg(
                    socket,
                    parts,
                    &mut SendAncillaryBuffer::default(),
                    SendFlags::NOSIGNAL,
                ),
            };
            match sent {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(sent) => IoSlice::advance_slices(&mut parts, sent),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for bytes and reads what is there; 0 means that the other side has closed.
    ///
    /// On a unix socket a thread that sleeps in `recv` is woken a second time, when the server
    /// takes the request out of the socket's queue: two context switches for one answer. One that
    /// sleeps in `poll` for input is not. TCP has no such wake-up.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let socket = self.stream.as_fd();
            let ready = match self.stream {
                Stream::Unix(_) => poll(
                    &mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)],
                    self.patience.as_ref(),
                ),
                Stream::Tcp(_) => Ok(1),
            };
            match ready.and_then(|ready| {
                if ready == 0 {
                    Err(Errno::TIMEDOUT)
                } else {
                    recv(socket, &mut *buffer, RecvFlags::empty())
                }
            }) {
                Ok((received, _)) => return Ok(received),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Stream {
    fn limit(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_write_timeout(patience),
            Self::Tcp(stream) => stream
                .set_read_timeout(patience)
                .and_then(|()| stream.set_write_timeout(patience)),
        }
    }
}

fn connect_tcp(host: &str, port: u16, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + patience;
    let mut last = io::Error::new(
        io::ErrorKind::NotFound,
        format!("the name {host} has no address"),
    );
    for address in (host, port).to_socket_addrs()? {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return probed(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn probed(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    if !stream.peer_addr()?.ip().is_loopback() {
        set_socket_keepalive(&stream, true)?;
        set_tcp_keepidle(&stream, PROBE_AFTER)?;
        set_tcp_keepintvl(&stream, PROBE_INTERVAL)?;
        set_tcp_user_timeout(&stream, NETWORK_LIMIT.as_millis() as u32)?;
    }
    Ok(stream)
}
