//! Answers as they should be, as they may be, and as they must not be.

use super::super::connection::Connection;
use super::super::fault::Fault;
use super::*;
use crate::Counts;

/// What a request ends in: its counts, or the SQLSTATE and whether the connection is over.
type End = Result<(u64, u64), (&'static str, bool)>;

const GARBAGE: End = Err(("08P01", true));
const CLOSED: End = Err(("08006", true));

fn text(connection: &mut Connection) -> Result<Counts, Fault> {
    connection.query("select 1", Connection::skip)
}

fn prepared(connection: &mut Connection) -> Result<Counts, Fault> {
    connection.execute(b"B\0\0\0\x04E\0\0\0\x04S\0\0\0\x04")
}

fn compare(name: &str, found: &Result<Counts, Fault>, expected: End) {
    let found = found
        .as_ref()
        .map(|counts| (counts.rows, counts.affected))
        .map_err(|fault| (fault.sqlstate(), fault.is_over()));
    assert_eq!(found, expected, "{name}");
}

/// A name, the messages, and what becomes of the request.
type Case = (&'static str, Vec<Vec<u8>>, End);

/// Answers to statements in text that are counted.
fn good_answers() -> Vec<Case> {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhm\0\0");
    let status = message(b'S', b"TimeZone\0UTC\0");
    let notification = message(b'A', b"\0\0\0\x01c\0p\0");
    vec![
        (
            "an insert",
            vec![complete("INSERT 0 3"), ready()],
            Ok((0, 3)),
        ),
        (
            "a select",
            vec![
                columns(),
                row(b"1"),
                row(b"2"),
                complete("SELECT 2"),
                ready(),
            ],
            Ok((2, 2)),
        ),
        (
            "no rows",
            vec![columns(), complete("SELECT 0"), ready()],
            Ok((0, 0)),
        ),
        ("nothing", vec![message(b'I', b""), ready()], Ok((0, 0))),
        (
            "several",
            vec![
                complete("BEGIN"),
                complete("INSERT 0 1"),
                columns(),
                row(b"1"),
                complete("SELECT 1"),
                complete("UPDATE 5"),
                ready(),
            ],
            Ok((1, 7)),
        ),
        (
            "asides",
            vec![
                notice.clone(),
                status.clone(),
                columns(),
                notification.clone(),
                row(b"1"),
                notice.clone(),
                complete("SELECT 1"),
                status.clone(),
                ready(),
            ],
            Ok((1, 1)),
        ),
    ]
}

/// Errors of the server, and what may come with them.
fn errors() -> Vec<Case> {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhm\0\0");
    let status = message(b'S', b"TimeZone\0UTC\0");
    let wrong = error("ERROR", "42P01", "no such table");
    let fatal = error("FATAL", "57P01", "go");
    vec![
        (
            "an error",
            vec![wrong.clone(), ready()],
            Err(("42P01", false)),
        ),
        (
            "an error among rows",
            vec![
                columns(),
                row(b"1"),
                notice.clone(),
                wrong.clone(),
                status.clone(),
                ready(),
            ],
            Err(("42P01", false)),
        ),
        (
            "an error after the end",
            vec![complete("INSERT 0 1"), wrong.clone(), ready()],
            Err(("42P01", false)),
        ),
        (
            "two errors",
            vec![wrong.clone(), error("ERROR", "40001", "later"), ready()],
            Err(("42P01", false)),
        ),
        (
            "an error and no end",
            vec![columns(), row(b"1"), wrong.clone()],
            Err(("42P01", true)),
        ),
        (
            "an error and garbage",
            vec![wrong.clone(), vec![7; 20]],
            Err(("42P01", true)),
        ),
        (
            "an error and rows",
            vec![columns(), wrong.clone(), row(b"1"), ready()],
            Err(("42P01", true)),
        ),
        (
            "an error and a dismissal",
            vec![wrong.clone(), fatal.clone()],
            Err(("42P01", true)),
        ),
        (
            "a dismissal",
            vec![
                columns(),
                row(b"1"),
                fatal.clone(),
                row(b"1"),
                complete("SELECT 2"),
                ready(),
            ],
            Err(("57P01", true)),
        ),
        (
            "a crash",
            vec![
                columns(),
                row(b"1"),
                message(b'N', b"SWARNING\0C57P02\0Mcrash\0\0"),
            ],
            CLOSED,
        ),
    ]
}

/// Errors and answers that are cut off or lack something.
fn damaged_answers() -> Vec<Case> {
    let notice = message(b'N', b"SNOTICE\0C00000\0Mhm\0\0");
    vec![
        (
            "an error without words",
            vec![message(b'E', b"SERROR\0C42P01\0\0"), ready()],
            GARBAGE,
        ),
        (
            "an error without a code",
            vec![message(b'E', b"SERROR\0Mhm\0\0"), ready()],
            GARBAGE,
        ),
        (
            "a long code",
            vec![error("ERROR", "42P012", "hm"), ready()],
            GARBAGE,
        ),
        ("an empty error", vec![message(b'E', b""), ready()], GARBAGE),
        ("nothing at all", vec![], CLOSED),
        ("only asides", vec![notice.clone(), notice.clone()], CLOSED),
        ("rows and an end", vec![columns(), row(b"1")], CLOSED),
        ("half a header", vec![columns(), b"D\0\0".to_vec()], CLOSED),
        (
            "half a row",
            vec![columns(), row(b"123")[..8].to_vec()],
            CLOSED,
        ),
        ("no commands", vec![ready()], GARBAGE),
    ]
}

/// Messages that no answer consists of.
fn nonsense() -> Vec<Case> {
    vec![
        (
            "no completion",
            vec![columns(), row(b"1"), ready()],
            GARBAGE,
        ),
        (
            "no columns",
            vec![row(b"1"), complete("SELECT 1"), ready()],
            GARBAGE,
        ),
        (
            "rows after the end",
            vec![columns(), complete("SELECT 1"), row(b"1"), ready()],
            GARBAGE,
        ),
        (
            "columns twice",
            vec![columns(), columns(), complete("SELECT 0"), ready()],
            GARBAGE,
        ),
        (
            "another answer",
            vec![message(b'2', b""), complete("SELECT 0"), ready()],
            GARBAGE,
        ),
        (
            "a letter of nobody",
            vec![message(b'?', b"abc"), ready()],
            GARBAGE,
        ),
        (
            "a negative length",
            vec![b"D\xff\xff\xff\xff".to_vec(), ready()],
            GARBAGE,
        ),
        (
            "a length too small",
            vec![b"C\0\0\0\x03".to_vec(), ready()],
            GARBAGE,
        ),
        (
            "a length of 1.5 GiB",
            vec![columns(), b"D\x60\0\0\0".to_vec()],
            GARBAGE,
        ),
        (
            "a tag without its end",
            vec![message(b'C', b"INSERT 0 1"), ready()],
            GARBAGE,
        ),
        (
            "a tag of a novel",
            vec![complete(&"x".repeat(300)), ready()],
            GARBAGE,
        ),
        (
            "ready for more",
            vec![complete("INSERT 0 1"), message(b'Z', b"II")],
            GARBAGE,
        ),
        (
            "an http server",
            vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()],
            GARBAGE,
        ),
    ]
}

#[test]
fn answers_in_text_are_counted_or_refused() {
    let table = [good_answers(), errors(), damaged_answers(), nonsense()].concat();
    for (name, answer, expected) in table {
        let (mut connection, _peer) = answered(&answer.concat());
        let found = in_time(move || text(&mut connection));
        compare(name, &found, expected);
        if let Err(fault) = found {
            assert!(!fault.sql_error("select 1").message.is_empty());
        }
    }
}

/// Answers to prepared statements that are counted.
fn good_prepared_answers() -> Vec<Case> {
    let bound = || message(b'2', b"");
    vec![
        (
            "a select",
            vec![bound(), row(b"1"), row(b"2"), complete("SELECT 2"), ready()],
            Ok((2, 2)),
        ),
        (
            "a delete",
            vec![bound(), complete("DELETE 50"), ready()],
            Ok((0, 50)),
        ),
        (
            "nothing",
            vec![bound(), message(b'I', b""), ready()],
            Ok((0, 0)),
        ),
        (
            "asides",
            vec![
                message(b'N', b"\0"),
                bound(),
                message(b'S', b""),
                complete("DELETE 1"),
                message(b'A', b""),
                ready(),
            ],
            Ok((0, 1)),
        ),
    ]
}

/// Errors of the server in place of an answer or within it.
fn prepared_errors() -> Vec<Case> {
    let bound = || message(b'2', b"");
    let wrong = error("ERROR", "22003", "out of range");
    vec![
        (
            "an argument that is wrong",
            vec![wrong.clone(), ready()],
            Err(("22003", false)),
        ),
        (
            "an error among rows",
            vec![bound(), row(b"1"), wrong.clone(), ready()],
            Err(("22003", false)),
        ),
        (
            "an error at the commit",
            vec![
                bound(),
                complete("DELETE 1"),
                error("ERROR", "40001", "later"),
                ready(),
            ],
            Err(("40001", false)),
        ),
        (
            "an error and an end",
            vec![wrong.clone()],
            Err(("22003", true)),
        ),
        (
            "an error and garbage",
            vec![wrong.clone(), row(b"1"), ready()],
            Err(("22003", true)),
        ),
        (
            "an error and another",
            vec![wrong.clone(), error("FATAL", "57P01", "go")],
            Err(("22003", true)),
        ),
        (
            "a dismissal",
            vec![error("FATAL", "57P01", "go"), ready()],
            Err(("57P01", true)),
        ),
    ]
}

/// Messages out of order, and too few of them.
fn prepared_nonsense() -> Vec<Case> {
    let bound = || message(b'2', b"");
    vec![
        (
            "rows before the arguments",
            vec![row(b"1"), bound(), complete("SELECT 1"), ready()],
            GARBAGE,
        ),
        (
            "arguments twice",
            vec![bound(), bound(), complete("SELECT 1"), ready()],
            GARBAGE,
        ),
        (
            "columns",
            vec![bound(), columns(), complete("SELECT 1"), ready()],
            GARBAGE,
        ),
        ("no completion", vec![bound(), row(b"1"), ready()], GARBAGE),
        (
            "completion twice",
            vec![bound(), complete("DELETE 1"), row(b"1"), ready()],
            GARBAGE,
        ),
        (
            "a text's answer",
            vec![complete("SELECT 1"), ready()],
            GARBAGE,
        ),
        ("ready at once", vec![ready()], GARBAGE),
        ("half an answer", vec![bound(), row(b"1")], CLOSED),
        ("nothing at all", vec![], CLOSED),
    ]
}

#[test]
fn answers_to_prepared_statements_are_counted_or_refused() {
    let table = [
        good_prepared_answers(),
        prepared_errors(),
        prepared_nonsense(),
    ]
    .concat();
    for (name, answer, expected) in table {
        let (mut connection, _peer) = answered(&answer.concat());
        compare(name, &in_time(move || prepared(&mut connection)), expected);
    }
}

/// Wherever an answer is cut off, what it counts is not reported.
#[test]
fn a_server_that_dies_in_the_middle_of_a_message_is_lost() {
    let in_text = [
        columns(),
        row(b"1"),
        message(b'N', b"SNOTICE\0\0"),
        row(b"22"),
        complete("SELECT 2"),
        ready(),
    ]
    .concat();
    let of_prepared = [
        message(b'2', b""),
        row(b"1"),
        row(b"22"),
        complete("SELECT 2"),
        ready(),
    ]
    .concat();
    for (answer, ask) in [
        (in_text, text as fn(&mut Connection) -> _),
        (of_prepared, prepared),
    ] {
        for length in 0..answer.len() {
            let (mut connection, _peer) = answered(&answer[..length]);
            compare(
                &format!("{length} bytes"),
                &in_time(move || ask(&mut connection)),
                CLOSED,
            );
        }
        let (mut connection, _peer) = answered(&answer);
        compare(
            "all of it",
            &in_time(move || ask(&mut connection)),
            Ok((2, 2)),
        );
    }
}

#[test]
fn a_row_may_be_longer_than_any_buffer() {
    let long = vec![b'x'; 20 << 20];
    let answer = [
        columns(),
        row(&long),
        row(b"1"),
        complete("SELECT 2"),
        ready(),
    ]
    .concat();
    let (mut connection, _peer) = answered(&answer);
    compare(
        "counted",
        &in_time(move || text(&mut connection)),
        Ok((2, 2)),
    );
    let (mut connection, _peer) = answered(&answer[..10 << 20]);
    compare("cut off", &in_time(move || text(&mut connection)), CLOSED);

    let line = [&long[..], b"\n"].concat();
    let copied = [
        message(b'H', b"\0\0\0"),
        message(b'd', &line),
        message(b'd', b"1\n"),
        message(b'c', b""),
        complete("COPY 2"),
        ready(),
    ];
    let (mut connection, _peer) = answered(&copied.concat());
    let lengths = in_time(move || {
        let mut lengths = Vec::new();
        connection
            .copy_out("select", |line| lengths.push(line.len()))
            .unwrap();
        lengths
    });
    assert_eq!(lengths, [20 << 20, 1]);
}

#[test]
fn a_long_error_is_told_by_its_beginning() {
    let long = error("ERROR", "42601", &"x".repeat(1 << 20));
    let (mut connection, _peer) = answered(&[long, ready()].concat());
    in_time(move || {
        let fault = text(&mut connection).unwrap_err();
        assert_eq!((fault.sqlstate(), fault.is_over()), ("42601", false));
        assert!(fault.message().starts_with("xxxx") && fault.message().len() < 40 << 10);
        // All of it was taken off the connection.
        compare("the rest", &text(&mut connection), CLOSED);
    });
}

#[test]
fn what_is_unasked_between_answers_is_taken_in() {
    let first = [complete("INSERT 0 1"), ready()].concat();
    let done = || [complete("INSERT 0 2"), ready()].concat();
    for (name, between, expected) in [
        (
            "a notice",
            message(b'N', b"SNOTICE\0\0"),
            Err(("08006", true)),
        ),
        (
            "the beginning of a notice",
            message(b'N', b"SNOTICE\0\0")[..7].to_vec(),
            Err(("08006", true)),
        ),
        (
            "a dismissal",
            error("FATAL", "57P05", "idle"),
            Err(("57P05", true)),
        ),
        (
            "an error",
            error("ERROR", "42P01", "whose"),
            Err(("42P01", true)),
        ),
        (
            "the beginning of a dismissal",
            error("FATAL", "57P05", "idle")[..12].to_vec(),
            Err(("08006", true)),
        ),
        ("a second answer", done(), GARBAGE),
        ("a second end", ready(), GARBAGE),
        ("a negative length", b"N\xff\xff\xff\xff".to_vec(), GARBAGE),
    ] {
        let (mut connection, mut peer) = answered(&[&first[..], &between].concat());
        let found = in_time(move || {
            compare(name, &text(&mut connection), Ok((0, 1)));
            text(&mut connection)
        });
        compare(name, &found, expected);
        let mut sent = Vec::new();
        peer.read_to_end(&mut sent).unwrap();
        let is_sent = sent.iter().filter(|byte| **byte == b'Q').count() == 2;
        let error = found.unwrap_err().sql_error("");
        assert_eq!(
            is_sent,
            !expected.is_err_and(|(code, _)| code != "08006"),
            "{name}"
        );
        // What was not sent did not take place.
        assert!(
            is_sent || error.class != crate::ErrorClass::Lost,
            "{name}: {error}"
        );
    }
}

#[test]
fn copies_that_nobody_takes_are_declined() {
    let failed = error("ERROR", "57014", "COPY from stdin failed");
    for (ask, answer, sent) in [
        (
            text as fn(&mut Connection) -> _,
            vec![message(b'G', b"\0\0\0")],
            &b"f\0\0\0\x16nobody sends rows\0"[..],
        ),
        (
            prepared,
            vec![message(b'2', b""), message(b'G', b"\0\0\0")],
            b"f\0\0\0\x16nobody sends rows\0S\0\0\0\x04",
        ),
    ] {
        let (mut connection, mut peer) =
            answered(&[answer.concat(), failed.clone(), ready()].concat());
        let found = in_time(move || ask(&mut connection));
        compare("into", &found, Err(("57014", false)));
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert!(heard.ends_with(sent), "{}", String::from_utf8_lossy(&heard));
    }
    let copy = [
        message(b'H', b"\0\0\0"),
        message(b'd', b"1\n"),
        message(b'c', b""),
        complete("COPY 1"),
    ]
    .concat();
    let (mut connection, _peer) = answered(&[&copy[..], &ready()].concat());
    compare(
        "out of",
        &in_time(move || text(&mut connection)),
        Err(("22023", false)),
    );
    let (mut connection, _peer) = answered(&[&message(b'2', b"")[..], &copy, &ready()].concat());
    compare(
        "out of",
        &in_time(move || prepared(&mut connection)),
        Err(("22023", false)),
    );
}

#[test]
fn rows_that_are_copied_come_whole_or_not_at_all() {
    let lines = |answer: &[Vec<u8>]| {
        let (mut connection, _peer) = answered(&answer.concat());
        in_time(move || {
            let mut lines = Vec::new();
            let end = connection.copy_out("select 1", |line| {
                lines.push(String::from_utf8_lossy(line).into_owned())
            });
            (
                end.map_err(|fault| (fault.sqlstate().to_owned(), fault.is_over())),
                lines.join("|"),
            )
        })
    };
    let begin = || message(b'H', b"\0\0\x01\0\0");
    let data = |text: &[u8]| message(b'd', text);
    let end = || [message(b'c', b""), complete("COPY 2"), ready()].concat();
    let garbage = || Err(("08P01".to_owned(), true));
    for (answer, expected, copied) in [
        (
            vec![begin(), data(b"1\ta\n"), data(b"2\tb\n"), end()],
            Ok(()),
            "1\ta|2\tb",
        ),
        (
            vec![
                begin(),
                data(b"1\ta"),
                message(b'N', b"\0"),
                data(b"b\n2\n3"),
                data(b"\n"),
                end(),
            ],
            Ok(()),
            "1\tab|2|3",
        ),
        (vec![begin(), end()], Ok(()), ""),
        (
            vec![
                begin(),
                data(b"1\n"),
                error("ERROR", "22012", "zero"),
                ready(),
            ],
            Err(("22012".to_owned(), false)),
            "1",
        ),
        (
            vec![error("ERROR", "42601", "syntax"), ready()],
            Err(("42601".to_owned(), false)),
            "",
        ),
        (vec![begin(), data(b"1\n2"), end()], garbage(), "1"),
        (
            vec![begin(), data(b"1\n"), complete("COPY 1"), ready()],
            garbage(),
            "1",
        ),
        (vec![begin(), data(b"1\n"), ready()], garbage(), "1"),
        (vec![data(b"1\n"), end()], garbage(), ""),
        (
            vec![columns(), row(b"1"), complete("SELECT 1"), ready()],
            garbage(),
            "",
        ),
        (
            vec![begin(), data(b"1\n"), data(b"2\n3\n")[..8].to_vec()],
            Err(("08006".to_owned(), true)),
            "1",
        ),
    ] {
        assert_eq!(lines(&answer), (expected, copied.to_owned()));
    }
}

/// Values that a prepared statement can be sent with, or the SQLSTATE of why it is not prepared.
type Encoded = Result<&'static [i64], &'static str>;

fn prepare(answers: Vec<Vec<u8>>, expected: Encoded) {
    let stage = Stage::new(vec![part(move |actor| {
        actor.welcome();
        for (answer, asked) in answers.into_iter().zip(["PDS", "CPDS"]) {
            assert_eq!(actor.request(), asked);
            actor.say(&[answer]);
        }
    })]);
    let login = stage.login();
    match (
        in_time(move || Connection::open(&login, LIMIT)?.prepare("s0", "select $1")),
        expected,
    ) {
        (Ok(mut request), Ok(values)) => assert!(request.with(values).is_ok()),
        (Err(fault), Err(sqlstate)) => {
            assert_eq!(fault.sqlstate(), sqlstate, "{}", fault.message())
        }
        (found, expected) => panic!("{found:?} {expected:?}"),
    }
    stage.end();
}

#[test]
fn statements_are_prepared_as_the_server_says() {
    let parsed = || message(b'1', b"");
    let nothing = || message(b'n', b"");
    let types = |oids: &[u32]| {
        let oids: Vec<u8> = oids.iter().flat_map(|oid| oid.to_be_bytes()).collect();
        message(
            b't',
            &[&((oids.len() / 4) as u16).to_be_bytes()[..], &oids].concat(),
        )
    };
    let replaced = || message(b'3', b"");
    let end = |messages: &[Vec<u8>]| [&messages.concat()[..], &ready()].concat();
    let table: Vec<(Vec<Vec<u8>>, Encoded)> = vec![
        (vec![end(&[parsed(), types(&[]), nothing()])], Ok(&[])),
        (
            vec![end(&[parsed(), types(&[23, 20]), columns()])],
            Ok(&[7, i64::MAX]),
        ),
        // A float becomes a bigint, and the int stays one.
        (
            vec![
                end(&[parsed(), types(&[701, 23]), columns()]),
                end(&[replaced(), parsed(), types(&[20, 23]), columns()]),
            ],
            Ok(&[1 << 40, 7]),
        ),
        (
            vec![
                end(&[parsed(), types(&[25]), columns()]),
                end(&[replaced(), error("ERROR", "42883", "text = bigint")]),
            ],
            Err("42883"),
        ),
        (
            vec![end(&[error("ERROR", "42601", "syntax")])],
            Err("42601"),
        ),
        (
            vec![[parsed(), types(&[23]), columns()].concat()],
            Err("08006"),
        ),
        (vec![end(&[parsed(), types(&[23])])], Err("08P01")),
        (
            vec![end(&[types(&[23]), parsed(), nothing()])],
            Err("08P01"),
        ),
        (
            vec![end(&[
                parsed(),
                message(b't', b"\0\x02\0\0\0\x17"),
                nothing(),
            ])],
            Err("08P01"),
        ),
        (
            vec![end(&[parsed(), message(b't', b""), nothing()])],
            Err("08P01"),
        ),
        (
            vec![end(&[parsed(), message(b't', &[0; 300_000]), nothing()])],
            Err("08P01"),
        ),
        (
            vec![
                end(&[parsed(), types(&[701]), columns()]),
                end(&[parsed(), types(&[20]), columns()]),
            ],
            Err("08P01"),
        ),
        (vec![ready()], Err("08P01")),
    ];
    for (answers, expected) in table {
        prepare(answers, expected);
    }
}
