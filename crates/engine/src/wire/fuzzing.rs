//! A server that has said something and hangs up, for the fuzz targets.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use super::{Place, Socket};

/// So much fits into the socket before anybody reads.
const MOST: usize = 32 << 10;

static LISTENER: LazyLock<(UnixListener, PathBuf)> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("plimsoll-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket can be made");
    (listener, path)
});

/// A connection on which these bytes wait, and then the end; and the server's side of it.
pub(crate) fn answered(bytes: &[u8]) -> (Socket, UnixStream) {
    let (listener, path) = &*LISTENER;
    let place = Place::Unix(path.clone());
    let socket = Socket::connect(&place, Duration::from_secs(2)).expect("it listens");
    let (mut peer, _) = listener.accept().expect("it was connected to");
    let bytes = &bytes[..bytes.len().min(MOST)];
    peer.write_all(bytes).expect("it fits");
    peer.shutdown(Shutdown::Write).expect("it is open");
    (socket, peer)
}
