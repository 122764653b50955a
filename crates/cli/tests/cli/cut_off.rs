//! Connections to a server that break off, or fall silent, in the middle of a message: what is
//! counted as done was done, and what is not known is not counted.

use std::fmt;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use plimsoll_audit::Facts;
use plimsoll_core::seed::Draw;

use crate::drawn::{self, Harm, assert_sound, fail};
use crate::external::{SECRET, Somebody};
use crate::support::{Place, text, wait};

/// So many faults in the short form.
const FEW: u64 = 4;

/// One connection after the other passes so many bytes, and no more.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The first connection that breaks, from 1.
    connection: u32,
    /// How many break.
    count: u32,
    bytes: u64,
    /// In the server's answers, not in what is asked.
    is_of_server: bool,
    /// The connection stays, and nothing comes any more.
    is_silent: bool,
}

impl Cut {
    fn draw(draw: &mut Draw) -> Self {
        // As likely in the handshake as far behind it.
        let order = 4 + draw.below(15);
        Self {
            connection: 2 + draw.below(9) as u32,
            count: 1 + draw.below(3) as u32,
            bytes: 1 + draw.below(1 << order),
            is_of_server: draw.below(2) == 0,
            is_silent: draw.below(3) == 0,
        }
    }

    /// The bytes that a connection's side passes.
    fn limit(&self, connection: u32, is_of_server: bool) -> u64 {
        let is_cut = (self.connection..self.connection + self.count).contains(&connection);
        match is_cut && is_of_server == self.is_of_server {
            true => self.bytes,
            false => u64::MAX,
        }
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connection,
            count,
            bytes,
            is_of_server,
            is_silent,
        } = self;
        let side = if *is_of_server { "server" } else { "client" };
        let end = if *is_silent { "silence" } else { "its end" };
        write!(
            f,
            "{count} connections from the {connection}. on: {end} after {bytes} bytes of the {side}"
        )
    }
}

/// Passes on what comes from clients and from a server, up to a cut. It ends with the test.
struct Proxy {
    port: u16,
    /// Connections that were cut.
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    fn start(server: u16, cut: Cut) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&cuts);
        thread::spawn(move || {
            for (connection, client) in (1..).zip(listener.incoming().flatten()) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else {
                    continue;
                };
                for is_of_server in [false, true] {
                    let (from, to) = match is_of_server {
                        true => (server.try_clone(), client.try_clone()),
                        false => (client.try_clone(), server.try_clone()),
                    };
                    let (from, to) = (from.unwrap(), to.unwrap());
                    let cuts = Arc::clone(&counter);
                    let limit = cut.limit(connection, is_of_server);
                    thread::spawn(move || {
                        if pass(&from, &to, limit) {
                            cuts.fetch_add(1, Ordering::SeqCst);
                            if cut.is_silent {
                                // Whoever waits goes first.
                                let _ = std::io::copy(&mut &from, &mut std::io::sink());
                            }
                        }
                        let _ = from.shutdown(Shutdown::Both);
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { port, cuts }
    }
}

/// Passes on up to `limit` bytes; whether that was the end.
fn pass(mut from: &TcpStream, mut to: &TcpStream, limit: u64) -> bool {
    let mut rest = limit;
    let mut buffer = [0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let passed = rest.min(count as u64) as usize;
        if to.write_all(&buffer[..passed]).is_err() {
            return false;
        }
        rest -= passed as u64;
        if rest == 0 {
            return true;
        }
    }
    false
}

/// Two clients insert, look up and delete; all rows are counted at each step's end.
fn plan(port: u16, password: &str) -> String {
    format!(
        "name = \"t\"\nworkload = \"insert-benchmark\"\ncells = [\"mysql@prod.as_is\"]\n\
         wait = \"100ms\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\nverify = \
         \"full\"\nwatchdog = \"3s\"\n[sizes]\nclients = 2\nrows = \"4K\"\nwrite_rows = \
         \"1K\"\nduration = \"1s\"\n\
         [server.prod]\ndsn = \"mysql://bench@127.0.0.1:{port}/given\"\n\
         password_file = \"{password}\"\n"
    )
}

/// Returns how many finished steps were there after the cut.
fn inject(cut: Cut, somebody: &Somebody) -> u64 {
    let place = Place::new();
    let password = place.path("password");
    fs::write(&password, format!("{SECRET}\n")).unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let proxy = Proxy::start(somebody.port, cut);
    let write = |port| {
        let text = plan(port, password.to_str().unwrap());
        fs::write(place.path("plan.toml"), text).unwrap();
    };
    write(proxy.port);
    println!("{cut}");
    let output = wait(place.spawn(&["run", "plan.toml", "--seed", "3"]));
    let (code, words) = (output.status.code(), text(&output.stderr));
    let cuts = proxy.cuts.load(Ordering::SeqCst);
    println!("  {cuts} were cut, it ended with {code:?}");
    assert!(!words.contains("panicked"), "{cut}: {words}");
    assert!(
        code == Some(0) || code == Some(3) && cuts > 0 && words.contains("failed"),
        "{cut}: {words}"
    );
    // Tells, too, if rows are in the tables that were not counted.
    let (store, data) = (place.path("plimsoll-runs"), place.path("data"));
    assert_sound(&store, &data, &Facts::default(), &cut);
    let seen = drawn::finished_steps(&store);

    // The next one takes away what is left in the database.
    write(somebody.port);
    let output = place.run(&["--store", "next", "run", "plan.toml"]);
    let words = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{cut}: {words}");
    assert_sound(&store, &data, &seen, &cut);
    for (database, wanted, harm) in [
        ("given", &[][..], Harm::Left),
        ("busy", &["precious.frm"][..], Harm::Stranger),
    ] {
        let found = somebody.tables(database);
        if found != wanted {
            fail(harm, &format!("{cut}: {database} has {found:?}"));
        }
    }
    drawn::count_of(&seen)
}

#[test]
fn connections_that_break_off_cost_a_result_and_never_truth() {
    let test = "cli::cut_off::connections_that_break_off_cost_a_result_and_never_truth";
    let Some(somebody) = Somebody::new(test) else {
        return;
    };
    let (count, mut draw, mut tally) = drawn::faults("connections", FEW);
    for _ in 0..count {
        let cut = Cut::draw(&mut draw);
        tally.count(&cut, || inject(cut, &somebody));
    }
    tally.conclude();
}
