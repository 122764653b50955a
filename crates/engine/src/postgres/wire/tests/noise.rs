//! Any bytes at all as a server's answers: an error or a right count, never a hang or a panic.

use std::io::IoSlice;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::connection::Connection;
use super::super::fault::Fault;
use super::*;
use crate::Counts;

/// A message that a server may send somewhere, now and then damaged.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let body = vec(any::<u8>(), 0..20);
    prop_oneof![
        8 => Just(row(b"1")),
        4 => Just(complete("INSERT 0 3")),
        4 => Just(complete("SELECT 1")),
        3 => Just(columns()),
        3 => Just(ready()),
        3 => Just(message(b'2', b"")),
        2 => Just(message(b'1', b"")),
        2 => Just(message(b't', b"\0\x01\0\0\0\x17")),
        2 => Just(message(b't', b"\0\x01\0\0\x02\xbd")),
        1 => Just(message(b'n', b"")),
        1 => Just(message(b'3', b"")),
        1 => Just(message(b'I', b"")),
        1 => Just(message(b'N', b"SNOTICE\0\0")),
        1 => Just(message(b'H', b"\0\0\0")),
        1 => Just(message(b'd', b"1\t2\n")),
        1 => Just(message(b'c', b"")),
        1 => Just(message(b'G', b"\0\0\0")),
        1 => Just(error("ERROR", "42601", "no")),
        1 => Just(error("FATAL", "57P01", "no")),
        1 => (any::<u8>(), body.clone()).prop_map(|(kind, body)| message(kind, &body)),
        1 => (prop::sample::select(&b"RKSZCDETtdHG"[..]), body.clone())
            .prop_map(|(kind, body)| message(kind, &body)),
        1 => (0_u32..14, body.clone()).prop_map(|(kind, data)| authentication(kind, &data)),
        1 => body,
    ]
}

/// Whole answers of all kinds of requests, so that what follows the first is seen too.
fn any_answers() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let whole = prop_oneof![
        Just(vec![columns(), row(b"1"), complete("SELECT 1"), ready()]),
        Just(vec![
            message(b'2', b""),
            row(b"1"),
            complete("SELECT 1"),
            ready()
        ]),
        Just(vec![
            message(b'1', b""),
            message(b't', b"\0\x01\0\0\0\x17"),
            columns(),
            ready()
        ]),
        Just(vec![
            message(b'H', b"\0\0\0"),
            message(b'd', b"1\n"),
            message(b'c', b""),
            complete("COPY 1"),
            ready()
        ]),
        Just(vec![authentication(0, b""), ready()]),
        vec(any_message(), 0..6),
    ];
    vec(whole, 1..4).prop_map(|answers| answers.concat())
}

/// What is asked for, in a way or another.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Text,
    Prepared,
    Preparation,
    Copy,
    Login,
}

fn ask(connection: &mut Connection, ask: Ask) -> Result<Option<Counts>, Fault> {
    match ask {
        Ask::Text => connection.query("select 1", Connection::skip).map(Some),
        Ask::Prepared => connection.execute(b"S\0\0\0\x04").map(Some),
        Ask::Preparation => connection.prepare("s0", "select $1").map(|_| None),
        Ask::Copy => connection.copy_out("select 1", |_| ()).map(|()| None),
        Ask::Login => {
            let place = Place::Unix("/nowhere".into());
            let login = Login {
                place,
                user: "u".into(),
                database: "d".into(),
                password: Some(Password::new("p".into())),
            };
            login.perform(connection, LIMIT).map(|()| None)
        }
    }
}

/// The rows and affected rows of the messages before the first that ends an answer.
fn counted(messages: &[Vec<u8>]) -> Counts {
    let answer = messages
        .split(|message| message.len() == 6 && message[0] == b'Z')
        .next()
        .unwrap_or_default();
    let rows = answer
        .iter()
        .filter(|message| message.first() == Some(&b'D'))
        .count() as u64;
    let inserted = answer
        .iter()
        .filter(|message| **message == complete("INSERT 0 3"))
        .count() as u64;
    let selected = answer
        .iter()
        .filter(|message| **message == complete("SELECT 1"))
        .count() as u64;
    Counts {
        rows,
        affected: 3 * inserted + selected,
    }
}

proptest! {
    #[test]
    fn messages_in_any_order_are_counted_right_or_refused(
        messages in any_answers(),
        cut in 0_usize..40,
        asks in vec(
            prop_oneof![
                Just(Ask::Text),
                Just(Ask::Prepared),
                Just(Ask::Preparation),
                Just(Ask::Copy),
                Just(Ask::Login),
            ],
            1..4,
        ),
    ) {
        let bytes = messages.concat();
        let is_whole = cut >= 20;
        let said = if is_whole { bytes.len() } else { bytes.len() * cut / 20 };
        let (mut connection, _peer) = answered(&bytes[..said]);
        let first = in_time(move || {
            let mut ends = asks
                .into_iter()
                .map(|one| ask(&mut connection, one).map_err(|fault| fault.is_over()));
            let first = ends.next();
            // What comes after that has to end too.
            let _ = ends.find(|end| *end == Err(true));
            first
        });
        if let Some(Ok(Some(counts))) = first {
            prop_assert_eq!(counts, counted(&messages));
        }
    }

    #[test]
    fn bytes_of_no_protocol_are_refused(bytes in vec(any::<u8>(), 0..300)) {
        for one in [Ask::Text, Ask::Prepared, Ask::Preparation, Ask::Copy, Ask::Login] {
            let (mut connection, _peer) = answered(&bytes);
            let end = in_time(move || {
                ask(&mut connection, one).map_err(|fault| fault.sql_error("select 1").message)
            });
            prop_assert!(end.is_err());
        }
    }

    #[test]
    fn any_error_is_reported(
        fields in vec((any::<u8>(), "[ -~]{0,9}"), 0..9),
        tail in vec(any::<u8>(), 0..9),
    ) {
        let mut body: Vec<u8> = fields
            .iter()
            .flat_map(|(field, text)| [&[*field], text.as_bytes(), b"\0"].concat())
            .collect();
        body.extend_from_slice(&tail);
        let fault = Fault::said(&body);
        prop_assert_eq!(fault.sqlstate().len(), 5);
        prop_assert!(!fault.sql_error("select 1").message.is_empty());
    }
}

/// A request that is as large as the socket's buffer takes, at a server that does not read and goes
/// away.
#[test]
fn a_server_that_stops_listening_is_noticed() {
    let (mut connection, peer) = answered(&error("FATAL", "53200", "out of memory"));
    let closer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(peer);
    });
    let fault = in_time(move || {
        let statement = vec![b'x'; 8 << 20];
        connection
            .send(&mut [IoSlice::new(&statement)])
            .unwrap_err()
    });
    assert_eq!((fault.sqlstate(), fault.is_over()), ("53200", true));
    // It has said why, and the statement never got there.
    assert!(fault.message().starts_with("out of memory"));
    closer.join().unwrap();
}
