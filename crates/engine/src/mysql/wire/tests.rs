//! The thin client against servers that follow a script: right, wrong, cut off, and arbitrary.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mysql::{Opts, OptsBuilder};
use proptest::prelude::*;
use tempfile::TempDir;

use super::error::WireError;
use super::packets::FULL;
use super::session::open;
use crate::deadline::within;
use crate::{ErrorClass, SqlError, SqlSession};

/// Nothing waits this long unless it fails.
const LIMIT: Duration = Duration::from_secs(60);

const SECURE_41: u32 = 0x0000_8200;
const PLUGIN_AUTH: u32 = 0x0008_0000;
const TLS: u32 = 0x0000_0800;
const DONE: &[u8] = &[0, 0, 0, 2, 0, 0, 0];
const MORE: &[u8] = &[0, 3, 0, 10, 0, 0, 0];
const END: &[u8] = &[0xfe, 0, 0, 2, 0];
const BUSY: &[u8] = b"\xff\xb5\x04#HY000Lock wait timeout exceeded";
const IDLE: &[u8] =
    b"\xff\xbf\x0f#HY000The client was disconnected by the server because of inactivity";
const DEFINITION: &[u8] = b"\x03def\0\0\0\x01a\0\x0c\x08\0\x14\0\0\0\x08\0\0\0\0\0";
const PREPARED: &[u8] = &[0, 9, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0];
const BINARY_ROW: &[u8] = &[0, 0, 5, 0, 0, 0, 0, 0, 0, 0];

fn packet(number: usize, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes().to_vec();
    packet[3] = number as u8;
    packet.extend(payload);
    packet
}

/// Packets numbered from 1, as an answer has them.
fn answer(payloads: &[&[u8]]) -> Vec<u8> {
    payloads
        .iter()
        .enumerate()
        .flat_map(|(at, payload)| packet(at + 1, payload))
        .collect()
}

/// One column, and these rows.
fn result_set(rows: &[&[u8]]) -> Vec<u8> {
    answer(&[&[&[1][..], DEFINITION, END][..], rows, &[END]].concat())
}

fn prepared() -> Vec<u8> {
    answer(&[PREPARED, DEFINITION, END, DEFINITION, END])
}

fn greeting(flags: u32, plugin: &[u8]) -> Vec<u8> {
    let flags = (flags | SECURE_41).to_le_bytes();
    let mut message = b"\x0a8.0.33\0\x01\0\0\0abcdefgh\0".to_vec();
    message.extend([flags[0], flags[1], 45, 2, 0, flags[2], flags[3], 21]);
    message.extend([0; 10]);
    message.extend(b"ijklmnopqrst\0");
    message.extend(plugin);
    message.push(0);
    packet(0, &message)
}

/// The payload of one packet, or the end.
fn receive(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

/// A server for one connection: it says the first of `lines`, and each other one after it was told
/// something. Then it says no more.
struct Server {
    opts: Opts,
    told: JoinHandle<Vec<Vec<u8>>>,
    _dir: TempDir,
}

impl Server {
    fn new(lines: Vec<Vec<u8>>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let told = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            drop(listener);
            let mut told = Vec::new();
            for (at, line) in lines.iter().enumerate() {
                if at > 0 {
                    told.extend(receive(&mut stream));
                }
                // A client that has found an error hangs up.
                if stream.write_all(line).is_err() {
                    break;
                }
            }
            let _ = stream.shutdown(Shutdown::Write);
            while let Some(last) = receive(&mut stream) {
                told.push(last);
            }
            told
        });
        let opts = OptsBuilder::new()
            .user(Some("bench"))
            .pass(Some("geheim"))
            .socket(path.to_str());
        Self {
            opts: opts.into(),
            told,
            _dir: dir,
        }
    }

    /// Lets a session in, and gives these answers to what it says then.
    fn after_login(answers: &[Vec<u8>]) -> Self {
        let login = [
            greeting(PLUGIN_AUTH, b"mysql_native_password"),
            packet(2, DONE),
            result_set(&[b"\x0867108864"]),
        ];
        Self::new(login.into_iter().chain(answers.iter().cloned()).collect())
    }

    /// What happens to a client, within the limit.
    fn run<T: Send + 'static>(
        self,
        client: impl FnOnce(Opts) -> T + Send + 'static,
    ) -> (T, Vec<Vec<u8>>) {
        let opts = self.opts.clone();
        let outcome = within(Instant::now() + LIMIT, move || client(opts))
            .expect("the client hangs, or has panicked");
        (outcome, self.told.join().unwrap())
    }
}

/// Runs calls on a session that gets these answers.
fn session<T: Send + 'static>(
    answers: &[Vec<u8>],
    calls: impl FnOnce(&mut dyn SqlSession) -> T + Send + 'static,
) -> T {
    Server::after_login(answers)
        .run(|opts| calls(&mut *open(opts, LIMIT).unwrap()))
        .0
}

/// A count, or code and class of an error.
type Counted = Result<u64, (i64, ErrorClass)>;

fn code(outcome: Result<u64, SqlError>) -> Counted {
    outcome.map_err(|error| (error.code, error.class))
}

/// What is read of the first row, and how many there are.
fn read_rows(session: &mut dyn SqlSession) -> Result<u64, SqlError> {
    let mut rows = 0;
    session.for_each_row("select a", &mut |_| rows += 1)?;
    Ok(rows)
}

const MALFORMED: Counted = Err((2027, ErrorClass::Lost));
const LOST: Counted = Err((2013, ErrorClass::Lost));

/// What the server sends, and what it is.
type Answer = (&'static str, Vec<u8>, Counted);

const ROW: &[u8] = b"\x01x";

fn answers_of_the_protocol() -> Vec<Answer> {
    let row = ROW;
    let many = vec![row; 700];
    let busy = Err((1205, ErrorClass::Busy));
    vec![
        ("no rows", result_set(&[]), Ok(0)),
        ("rows", result_set(&[row, b"\xfb", b"\0"]), Ok(3)),
        ("numbers that wrap", result_set(&many), Ok(700)),
        ("no result set", answer(&[DONE]), Ok(0)),
        (
            "more results",
            answer(&[MORE, &[1], DEFINITION, END, row, &[0xfe, 0, 0, 10, 0], DONE]),
            Ok(0),
        ),
        ("an error", answer(&[BUSY]), busy),
        (
            "an error in definitions",
            answer(&[&[2], DEFINITION, BUSY]),
            busy,
        ),
        (
            "an error for the end of definitions",
            answer(&[&[1], DEFINITION, BUSY]),
            busy,
        ),
        (
            "an error in rows",
            answer(&[&[1], DEFINITION, END, row, BUSY]),
            busy,
        ),
        ("an error in later results", answer(&[MORE, BUSY]), busy),
        (
            "an error without a state",
            answer(&[b"\xff\x10\x04Too many connections"]),
            Err((1040, ErrorClass::Unsent)),
        ),
        (
            "the server's goodbye",
            packet(0, IDLE),
            Err((4031, ErrorClass::Unsent)),
        ),
    ]
}

fn answers_out_of_step() -> Vec<Answer> {
    let row = ROW;
    vec![
        ("half an error", answer(&[b"\xff\x10"]), MALFORMED),
        ("an endless error", answer(&[&[0xff; 70_000]]), MALFORMED),
        ("an error of no place", packet(0, BUSY), MALFORMED),
        ("another number", packet(2, DONE), MALFORMED),
        (
            "another number in rows",
            [answer(&[&[1], DEFINITION, END]), packet(9, row)].concat(),
            MALFORMED,
        ),
        ("another number and nothing", packet(2, b""), MALFORMED),
        ("nothing", answer(&[b""]), MALFORMED),
        ("a row of nothing", result_set(&[row, b""]), MALFORMED),
        ("half a success", answer(&[&[0, 0, 0, 2]]), MALFORMED),
        (
            "a success without a number",
            answer(&[&[0, 0xfb, 0, 2, 0, 0, 0]]),
            MALFORMED,
        ),
        ("a local file", answer(&[b"\xfb/etc/passwd"]), MALFORMED),
        ("an end", answer(&[END]), MALFORMED),
        ("no columns", answer(&[&[0xfc, 0, 0]]), MALFORMED),
        ("too many columns", answer(&[&[0xfd, 0, 0, 1]]), MALFORMED),
        ("columns and more", answer(&[&[1, 1]]), MALFORMED),
        (
            "too few definitions",
            answer(&[&[2], DEFINITION, END, row]),
            MALFORMED,
        ),
        (
            "too many definitions",
            answer(&[&[1], DEFINITION, DEFINITION, END]),
            MALFORMED,
        ),
        (
            "a long end",
            answer(&[&[1], DEFINITION, END, &[0xfe, 0, 0, 2, 0, 0]]),
            MALFORMED,
        ),
        (
            "a short end",
            answer(&[&[1], DEFINITION, END, &[0xfe]]),
            MALFORMED,
        ),
        ("the server's end", Vec::new(), LOST),
        (
            "its end in a long row",
            answer(&[&[1], DEFINITION, END, &[b'x'; 100_000]])[..90_000].to_vec(),
            LOST,
        ),
        (
            "its end between the parts of a row",
            answer(&[&[1], DEFINITION, END, &vec![b'x'; FULL]]),
            LOST,
        ),
    ]
}

#[test]
fn every_answer_is_a_count_or_the_right_error() {
    let answers = answers_of_the_protocol().into_iter();
    for (name, bytes, expected) in answers.chain(answers_out_of_step()) {
        let is_kept = !matches!(expected, Err((_, class)) if class.is_disconnected());
        let mut answers = vec![bytes];
        if is_kept {
            answers.push(answer(&[&[0, 7, 0, 2, 0, 0, 0]]));
        }
        let (found, next) = session(&answers, |session| {
            (
                code(session.query("select a")),
                code(session.write("delete", 0)),
            )
        });
        assert_eq!(found, expected, "{name}");
        // What is in step goes on; the rest is given up, and here nobody takes another connection.
        let next_expected = if is_kept {
            Ok(7)
        } else {
            Err((2002, ErrorClass::Unsent))
        };
        assert_eq!(next, next_expected, "after {name}");
    }
}

#[test]
fn rows_are_read_as_announced() {
    let two = |row: &[u8]| answer(&[&[2], DEFINITION, DEFINITION, END, row, END]);
    let texts = session(
        &[two(b"\x02\xffx\xfb"), two(b"\x01a"), result_set(&[])],
        |session| {
            let mut texts = Vec::new();
            let mut read =
                || session.for_each_row("select a, b", &mut |row| texts.push(row.join("|")));
            (read().map(|()| 0), read().map(|()| 0), texts)
        },
    );
    assert_eq!(
        (code(texts.0), code(texts.1), &*texts.2),
        (Ok(0), MALFORMED, &["\u{fffd}x|\\N".to_owned()][..])
    );
    for row in [
        &b"\x05ab"[..],
        b"\x01a\x01b\x01c",
        b"\x01a\xff",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        assert_eq!(code(session(&[two(row)], read_rows)), MALFORMED, "{row:?}");
    }

    let integers = session(
        &[
            result_set(&[b"\x0242", b"\x017"]),
            result_set(&[b"\xfb"]),
            result_set(&[]),
            result_set(&[b"\x031.5"]),
            result_set(&[b"\x02-1"]),
        ],
        |session| {
            (0..5)
                .map(|_| {
                    session
                        .query_integer("select a")
                        .map_err(|error| error.class)
                })
                .collect::<Vec<_>>()
        },
    );
    assert_eq!(
        integers,
        [
            Ok(Some(42)),
            Ok(None),
            Ok(None),
            Err(ErrorClass::Statement),
            Ok(Some(-1))
        ]
    );
}

#[test]
fn a_row_may_be_longer_than_a_packet() {
    // The first column's length, in the nine bytes that the greatest need, and its text; then rows
    // that end with their packet.
    let text = vec![b'x'; FULL + 1000];
    let long = [&[0xfe][..], &(text.len() as u64).to_le_bytes(), &text].concat();
    let exact = [
        &[0xfe][..],
        &((FULL - 9) as u64).to_le_bytes(),
        &text[..FULL - 9],
    ]
    .concat();
    let payloads: [&[u8]; 9] = [
        &[1],
        DEFINITION,
        END,
        &long[..FULL],
        &long[FULL..],
        b"\x01y",
        &exact,
        b"",
        END,
    ];
    let answers = [answer(&payloads), answer(&payloads), answer(&[DONE])];
    let (count, lengths, next) = session(&answers, |session| {
        let mut lengths = Vec::new();
        let count = session.query("select a").unwrap();
        session
            .for_each_row("select a", &mut |row| lengths.push(row[0].len()))
            .unwrap();
        (count, lengths, session.write("delete", 0).unwrap())
    });
    assert_eq!(
        (count, &*lengths, next),
        (3, &[FULL + 1000, 1, FULL - 9][..], 0)
    );
}

#[test]
fn an_answer_cut_off_anywhere_is_a_lost_connection() {
    let whole = result_set(&[b"\x01x", b"\xfb"]);
    for cut in 0..whole.len() {
        assert_eq!(
            code(session(&[whole[..cut].to_vec()], |session| session
                .query("select a"))),
            LOST,
            "{cut}"
        );
    }
    let whole = answer(&[&[1], DEFINITION, END, BINARY_ROW, END]);
    for cut in 0..whole.len() {
        let answers = [prepared(), whole[..cut].to_vec()];
        let found = session(&answers, |session| {
            let statement = session.prepare("select a from t where b = ?").unwrap();
            session.query_prepared(statement, &[5])
        });
        assert_eq!(code(found), LOST, "{cut}");
    }
    let whole = prepared();
    for cut in 0..whole.len() {
        assert_eq!(
            code(session(&[whole[..cut].to_vec()], |session| session
                .prepare("select ?")
                .map(|_| 0))),
            LOST,
            "{cut}"
        );
    }
}

#[test]
fn what_nobody_asked_for_is_no_answer() {
    for (extra, expected) in [
        (answer(&[&[0, 9, 0, 2, 0, 0, 0]]), 2006),
        (packet(0, b""), 2006),
        (vec![1], 2006),
        (packet(0, BUSY), 2006),
        (packet(0, &IDLE[..2]), 2006),
        (packet(0, IDLE), 4031),
    ] {
        let answers = [
            [answer(&[DONE]), extra.clone()].concat(),
            answer(&[&[0, 1, 0, 2, 0, 0, 0]]),
        ];
        let (first, second) = session(&answers, |session| {
            (
                code(session.write("delete", 0)),
                code(session.write("delete", 0)),
            )
        });
        assert_eq!(
            (first, second),
            (Ok(0), Err((expected, ErrorClass::Unsent))),
            "{extra:?}"
        );
    }
}

#[test]
fn prepared_statements_send_types_once_and_check_their_rows() {
    let rows = |row: &[u8]| answer(&[&[1], DEFINITION, END, row, row, END]);
    let answers = [
        prepared(),
        answer(&[BUSY]),
        rows(BINARY_ROW),
        answer(&[&[0, 3, 0, 2, 0, 0, 0]]),
        rows(b"\x01x"),
    ];
    let (outcomes, told) = Server::after_login(&answers).run(|opts| {
        let mut session = open(opts, LIMIT).unwrap();
        let statement = session.prepare("select a from t where b = ?").unwrap();
        let too_many = session.query_prepared(statement, &[1, 2]);
        let busy = session.query_prepared(statement, &[1]);
        let rows = session.query_prepared(statement, &[2]);
        let affected = session.write_prepared(statement, &[3], 3);
        [
            code(too_many),
            code(busy),
            code(rows),
            code(affected),
            code(session.query_prepared(statement, &[4])),
        ]
    });
    let expected = [
        Err((2000, ErrorClass::Statement)),
        Err((1205, ErrorClass::Busy)),
        Ok(2),
        Ok(3),
        MALFORMED,
    ];
    assert_eq!(outcomes, expected);
    // Response to the greeting, question, prepare; an execution that failed may not have bound the
    // types.
    let lengths: Vec<usize> = told[3..].iter().map(Vec::len).collect();
    assert_eq!(lengths, [22, 22, 20, 20]);
    assert_eq!(
        &told[5],
        b"\x17\x09\0\0\0\0\x01\0\0\0\0\0\x03\0\0\0\0\0\0\0"
    );
    for (name, bytes) in [
        ("half of it", answer(&[&PREPARED[..8]])),
        ("no success", answer(&[&[1, 9, 0, 0, 0, 1, 0, 1, 0]])),
        ("no definitions", answer(&[PREPARED, END])),
        (
            "a row for their end",
            answer(&[PREPARED, DEFINITION, BINARY_ROW]),
        ),
    ] {
        assert_eq!(
            code(session(&[bytes], |session| session
                .prepare("select ?")
                .map(|_| 0))),
            MALFORMED,
            "{name}"
        );
    }
}

#[test]
fn an_execution_that_the_server_does_not_take_is_not_sent() {
    let small = result_set(&[b"\x0221"]);
    let lines = vec![
        greeting(PLUGIN_AUTH, b"mysql_native_password"),
        packet(2, DONE),
        small,
        prepared(),
        answer(&[DONE]),
    ];
    let outcomes = Server::new(lines).run(|opts| {
        let mut session = open(opts, LIMIT).unwrap();
        let statement = session.prepare("select ?").unwrap();
        (
            code(session.query_prepared(statement, &[1])),
            code(session.query("select 1")),
        )
    });
    assert_eq!(outcomes.0, (Err((2020, ErrorClass::Statement)), Ok(0)));
}

#[test]
fn a_long_statement_goes_in_packets() {
    for length in [FULL - 2, FULL - 1, FULL, 2 * FULL - 1, 2 * FULL] {
        let sql = "x".repeat(length);
        let packets = (length + 1) / FULL + 1;
        // It answers when it has it all.
        let mut answers = vec![Vec::new(); packets - 1];
        answers.push(packet(packets, DONE));
        let (outcome, told) = Server::after_login(&answers).run(move |opts| {
            let mut session = open(opts, LIMIT).unwrap();
            code(session.write(&sql, 0))
        });
        assert_eq!(outcome, Ok(0), "{length}");
        let sizes: Vec<usize> = told[2..2 + packets].iter().map(Vec::len).collect();
        assert_eq!(
            (sizes.iter().sum::<usize>(), sizes[packets - 1]),
            (length + 1, (length + 1) % FULL),
            "{length}"
        );
        assert_eq!(told[2][..2], *b"\x03x");
    }
    let too_long = "x".repeat(67_108_864);
    let outcome = session(&[answer(&[DONE])], move |session| {
        (
            code(session.write(&too_long, 0)),
            code(session.write("x", 0)),
        )
    });
    assert_eq!(outcome, (Err((2020, ErrorClass::Statement)), Ok(0)));
}

/// What becomes of a login, and what the server received.
fn login(lines: Vec<Vec<u8>>) -> (Option<WireError>, Vec<Vec<u8>>) {
    Server::new(lines).run(|opts| open(opts, LIMIT).err())
}

fn native() -> Vec<u8> {
    greeting(PLUGIN_AUTH, b"mysql_native_password")
}

fn sha2() -> Vec<u8> {
    greeting(PLUGIN_AUTH, b"caching_sha2_password")
}

/// The server wants another plugin than its greeting said.
fn switch(number: usize, plugin: &str) -> Vec<u8> {
    packet(
        number,
        &[&[0xfe][..], plugin.as_bytes(), b"\0tsrqponmlkjihgfedcba\0"].concat(),
    )
}

fn done(number: usize) -> Vec<u8> {
    packet(number, DONE)
}

#[test]
fn logins_end_well() {
    let longest = || result_set(&[b"\x0867108864"]);
    let (error, told) = login(vec![native(), done(2), longest()]);
    assert!(
        error.is_none() && told[0].windows(5).any(|part| part == b"bench"),
        "{error:?}"
    );
    assert_eq!(told.last().unwrap(), b"\x01", "the session's end is sent");
    assert!(
        login(vec![
            sha2(),
            [packet(2, &[1, 3]), done(3)].concat(),
            longest()
        ])
        .0
        .is_none()
    );
    // The password itself, as nobody can listen.
    let (error, told) = login(vec![sha2(), packet(2, &[1, 4]), done(4), longest()]);
    assert!(error.is_none() && told[1] == b"geheim\0", "{error:?}");
    let (error, told) = login(vec![
        sha2(),
        switch(2, "mysql_native_password"),
        done(4),
        longest(),
    ]);
    assert!(error.is_none() && told[1].len() == 20, "{error:?}");
    let (error, told) = login(vec![
        native(),
        switch(2, "caching_sha2_password"),
        [packet(4, &[1, 3]), done(5)].concat(),
        longest(),
    ]);
    assert!(error.is_none() && told[1].len() == 32, "{error:?}");
}

#[test]
fn logins_that_fail_say_why() {
    let endless = || {
        vec![
            sha2(),
            (2..100)
                .flat_map(|number| packet(number, &[1, 3]))
                .collect(),
        ]
    };
    let table = [
        (
            vec![packet(0, b"\xff\x10\x04Too many connections")],
            "1040 Too many connections",
        ),
        (
            vec![native(), packet(2, b"\xff\x57\x0c#HY000insecure")],
            "3159 insecure; set tls = \"verify-full\" for the server",
        ),
        (
            vec![greeting(TLS, b""), packet(2, b"\xff\x15\x04#28000no")],
            "then set tls = \"verify-full\"",
        ),
        (
            vec![native(), packet(2, b"\xff\x15\x04#28000no")],
            "1045 no",
        ),
        (
            vec![native(), switch(2, "client_ed25519")],
            "authenticated with client_ed25519, which",
        ),
        (
            vec![native(), switch(2, "mysql_clear_password")],
            "authenticated with mysql_clear_password, which",
        ),
        (
            vec![native(), packet(2, &[0xfe])],
            "authenticated with mysql_old_password, which",
        ),
        (vec![native(), packet(2, b"\xfex")], "half a change"),
        (vec![native(), packet(2, &[1, 4])], "unknown step"),
        (vec![native(), done(3)], "out of order"),
        (
            vec![native(), done(2), result_set(&[b"\xfb"])],
            "no max_allowed_packet",
        ),
        (
            vec![native(), done(2), result_set(&[b"\x010"])],
            "no max_allowed_packet",
        ),
        (
            vec![native(), done(2), answer(&[DONE])],
            "no max_allowed_packet",
        ),
        (vec![packet(0, b"\x0a8.0.33\0\x01\0")], "half a greeting"),
        (vec![packet(1, b"\x0a")], "out of order"),
        (vec![packet(0, &[b'x'; 70_000])], "a long message"),
        (endless(), "without end"),
        (vec![Vec::new()], "Io"),
    ];
    for (lines, wanted) in table {
        let error = match login(lines)
            .0
            .unwrap_or_else(|| panic!("{wanted}: it works"))
        {
            WireError::Server { code, message } => format!("{code} {message}"),
            error => format!("{error:?}"),
        };
        assert!(
            error.contains(wanted) || error.replace("\\\"", "\"").contains(wanted),
            "wanted {wanted}: {error}"
        );
    }
}

#[test]
fn a_login_has_a_limit_whatever_the_server_says() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let (done, is_done) = mpsc::channel::<()>();
    let talker = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A greeting of 25,600 bytes, which come one by one.
        stream.write_all(&[0, 100, 0, 0]).unwrap();
        while is_done.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout)
            && stream.write_all(&[10]).is_ok()
        {}
    });
    let opts: Opts = OptsBuilder::new().socket(path.to_str()).into();
    let error = open(opts, Duration::from_millis(200)).err().unwrap();
    assert!(
        matches!(&error, WireError::Unreachable(error) if error.kind() == ErrorKind::TimedOut),
        "{error:?}"
    );
    drop(done);
    talker.join().unwrap();
}

/// Bytes that look a little like packets, and any others.
fn nonsense() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just(0x00),
        Just(0x01),
        Just(0xfb),
        Just(0xfe),
        Just(0xff),
        any::<u8>()
    ];
    let payload = (kind, prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(kind, rest)| [vec![kind], rest].concat());
    let packets = prop::collection::vec((payload, 0..20_usize), 0..8).prop_map(|packets| {
        let numbered = packets
            .iter()
            .enumerate()
            .map(|(at, (payload, luck))| packet(if *luck == 0 { 0 } else { at + 1 }, payload));
        numbered.collect::<Vec<_>>().concat()
    });
    let spoilt = |bytes: Vec<u8>| {
        (
            Just(bytes),
            any::<prop::sample::Index>(),
            any::<u8>(),
            any::<prop::sample::Index>(),
        )
            .prop_map(|(mut bytes, at, byte, end)| {
                let at = at.index(bytes.len());
                bytes[at] = byte;
                bytes.truncate(end.index(bytes.len()) + 1);
                bytes
            })
    };
    prop_oneof![
        packets,
        prop::collection::vec(any::<u8>(), 0..200),
        spoilt(result_set(&[b"\x01x", b"\xfb", b"\x0212"])),
        spoilt(answer(&[
            &[1],
            DEFINITION,
            END,
            BINARY_ROW,
            BINARY_ROW,
            END
        ])),
        spoilt(answer(&[MORE, &[1], DEFINITION, END, b"\x01x", END])),
        spoilt(prepared()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Any answer ends in a count or an error: the limit of [`Server::run`] is not reached, and
    /// nothing panics.
    #[test]
    fn any_answer_has_an_end(bytes in nonsense(), call in 0..6) {
        let is_prepared = call >= 4;
        let answers = if is_prepared { vec![prepared(), bytes] } else { vec![bytes] };
        let _ = session(&answers, move |session| match call {
            0 => session.query("select a").map(drop),
            1 => session.write("delete", 0).map(drop),
            2 => read_rows(session).map(drop),
            3 => session.prepare("select ?").map(drop),
            _ => {
                let statement = session.prepare("select ?").unwrap();
                if call == 4 {
                    session.query_prepared(statement, &[1]).map(drop)
                } else {
                    session.write_prepared(statement, &[1], 1).map(drop)
                }
            }
        });
    }

    /// So does any login.
    #[test]
    fn any_login_has_an_end(
        first in nonsense(),
        second in nonsense(),
        is_greeted: bool,
        flags: u32,
        plugin in 0..3_usize,
    ) {
        let plugin = [&b"mysql_native_password"[..], b"caching_sha2_password", b"x"][plugin];
        let first = if is_greeted { greeting(flags, plugin) } else { first };
        // All at once: who waits for what the other does not say would wait for ever.
        login(vec![[first, second].concat()]);
    }
}
