//! A server that has said something and hangs up, for the fuzz targets.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use super::{Place, Socket};

/// So much fits into the socket before anybody reads.
const MOST: usize = 32 << 10;
/// Nobody waits longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The name is what clients of PostgreSQL expect in a folder of sockets.
static LISTENER: LazyLock<(UnixListener, PathBuf)> = LazyLock::new(|| {
    let dir = std::env::temp_dir().join(format!("plimsoll-fuzz-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir(&dir).expect("a folder can be made");
    let path = dir.join(".s.PGSQL.5432");
    let listener = UnixListener::bind(&path).expect("a socket can be made");
    (listener, path)
});

/// A connection on which these bytes wait, and then the end; and the server's side of it.
pub(crate) fn answered(bytes: &[u8]) -> (Socket, UnixStream) {
    let (listener, path) = &*LISTENER;
    let place = Place::Unix(path.clone());
    let socket = Socket::connect(&place, PATIENCE).expect("it listens");
    let (mut peer, _) = listener.accept().expect("it was connected to");
    let bytes = &bytes[..bytes.len().min(MOST)];
    peer.write_all(bytes).expect("it fits");
    peer.shutdown(Shutdown::Write).expect("it is open");
    (socket, peer)
}

/// A server for one client that connects by itself to the socket at the path: it says the first of
/// `lines`, and each other one after the client has spoken. Then it says no more, so that nobody
/// waits for the rest of an answer, and listens until the client leaves.
pub(crate) fn with_server<T>(lines: [&[u8]; 3], client: impl FnOnce(&Path) -> T) -> T {
    let (listener, path) = &*LISTENER;
    let serve = || -> std::io::Result<()> {
        let (mut peer, _) = listener.accept()?;
        peer.set_read_timeout(Some(PATIENCE))?;
        for (at, line) in lines.into_iter().enumerate() {
            if at > 0 {
                let _ = peer.read(&mut [0; 4096])?;
            }
            peer.write_all(&line[..line.len().min(MOST)])?;
        }
        peer.shutdown(Shutdown::Write)?;
        std::io::copy(&mut peer, &mut std::io::sink()).map(drop)
    };
    std::thread::scope(|scope| {
        scope.spawn(serve);
        client(path)
    })
}
