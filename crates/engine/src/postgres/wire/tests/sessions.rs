//! Sessions: what they make of the end of a connection.

use super::super::open;
use super::*;
use crate::{ErrorClass, SqlSession};

fn session(stage: &Stage) -> Box<dyn SqlSession> {
    let (link, login) = (stage.link(), stage.login());
    in_time(move || open(link, login).map_err(|error| error.message)).unwrap()
}

/// Answers a statement that is prepared: one int, no rows.
fn take_statement(actor: &mut Actor) {
    assert_eq!(actor.request(), "PDS");
    actor.say(&[
        message(b'1', b""),
        message(b't', b"\0\x01\0\0\0\x17"),
        message(b'n', b""),
        ready(),
    ]);
}

#[test]
fn a_lost_connection_is_told_once_and_made_again() {
    let stage = Stage::new(vec![
        part(|actor| {
            actor.welcome();
            take_statement(actor);
            assert_eq!(actor.request(), "BES");
            // It dies in the middle of a message.
            actor.say(&[message(b'2', b""), row(b"1"), row(b"22")[..9].to_vec()]);
        }),
        part(|actor| {
            actor.welcome();
            take_statement(actor);
            assert_eq!(actor.request(), "BES");
            actor.say(&[message(b'2', b""), complete("DELETE 3"), ready()]);
            assert_eq!(actor.request(), "Q");
            // It says why it ends, and stays.
            actor.say(&[
                columns(),
                row(b"1"),
                error("FATAL", "57P01", "terminating connection"),
            ]);
            assert_eq!(actor.request(), "X");
        }),
        part(|actor| {
            actor.welcome();
            take_statement(actor);
            assert_eq!(actor.request(), "Q");
            actor.say(&[columns(), row(b"42"), complete("SELECT 1"), ready()]);
        }),
    ]);
    let mut session = session(&stage);
    in_time(move || {
        let delete = session.prepare("delete from t where n = ?").unwrap();
        let error = session.write_prepared(delete, &[7], 1).unwrap_err();
        assert_eq!(
            (error.class, error.statement.as_str()),
            (ErrorClass::Lost, "delete from t where n = ?"),
            "{error}"
        );
        assert!(error.message.ends_with("SQLSTATE 08006"), "{error}");
        assert_eq!(session.write_prepared(delete, &[7], 1).unwrap(), 3);
        let error = session.query("select n from t").unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ErrorClass::Unsent, "terminating connection, SQLSTATE 57P01")
        );
        assert_eq!(session.query_integer("select n from t").unwrap(), Some(42));
    });
    stage.end();
}

#[test]
fn what_was_not_sent_is_told_as_such() {
    let stage = Stage::new(vec![
        part(|actor| {
            actor.welcome();
            actor.say(&[error("FATAL", "57P02", "another one crashed")]);
        }),
        part(|actor| actor.welcome()),
        part(|actor| {
            actor.welcome();
            assert_eq!(actor.request(), "Q");
            actor.say(&[complete("INSERT 0 1"), ready()]);
        }),
    ]);
    let mut session = session(&stage);
    let (stage, mut session) = in_time(move || {
        // By itself that code leaves open what has taken place; here it was never sent.
        stage.wait_for_ends(1);
        let error = session.write("insert", 1).unwrap_err();
        assert_eq!(error.class, ErrorClass::Unsent, "{error}");
        assert_eq!(error.message, "another one crashed, SQLSTATE 57P02");
        // And one that ends without a word.
        let error = session.write("insert", 1).unwrap_err();
        assert!(error.class.is_disconnected(), "{error}");
        (stage, session)
    });
    in_time(move || assert_eq!(session.write("insert", 1).unwrap(), 1));
    stage.end();
}

#[test]
fn a_server_that_does_not_come_back_is_given_up() {
    let stage = Stage::new(vec![part(|actor| {
        actor.welcome();
        take_statement(actor);
        actor.request();
    })]);
    let mut session = session(&stage);
    in_time(move || {
        let statement = session.prepare("select ?").unwrap();
        assert_eq!(
            session.query("select 1").unwrap_err().class,
            ErrorClass::Lost
        );
        stage.end();
        let error = session.query_prepared(statement, &[1]).unwrap_err();
        assert_eq!(
            (error.class, error.statement.as_str()),
            (ErrorClass::Unsent, "select ?"),
            "{error}"
        );
        assert!(
            error
                .message
                .starts_with("no connection until the deadline: "),
            "{error}"
        );
    });
}

/// A statement that cannot be prepared again was not sent, and the next call tries again.
#[test]
fn statements_are_prepared_again_before_anything_else() {
    let stage = Stage::new(vec![
        part(|actor| {
            actor.welcome();
            take_statement(actor);
            actor.request();
        }),
        part(|actor| {
            actor.welcome();
            assert_eq!(actor.request(), "PDS");
        }),
        part(|actor| {
            actor.welcome();
            assert_eq!(actor.request(), "PDS");
            actor.say(&[error("ERROR", "42P01", "the table is gone"), ready()]);
            assert_eq!(actor.request(), "X");
        }),
        part(|actor| {
            actor.welcome();
            take_statement(actor);
            assert_eq!(actor.request(), "BES");
            actor.say(&[message(b'2', b""), row(b"1"), complete("SELECT 1"), ready()]);
        }),
    ]);
    let mut session = session(&stage);
    in_time(move || {
        let statement = session.prepare("select n from t where n = ?").unwrap();
        assert_eq!(
            session.query_prepared(statement, &[1]).unwrap_err().class,
            ErrorClass::Lost
        );
        let error = session.query("select 2").unwrap_err();
        assert_eq!(
            (error.class, error.statement.as_str()),
            (ErrorClass::Unsent, "select n from t where n = ?"),
            "{error}"
        );
        let error = session.query_prepared(statement, &[1]).unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ErrorClass::Statement, "the table is gone, SQLSTATE 42P01")
        );
        assert_eq!(session.query_prepared(statement, &[1]).unwrap(), 1);
    });
    stage.end();
}

#[test]
fn integers_are_read_from_the_first_row() {
    let null = message(b'D', b"\0\x01\xff\xff\xff\xff");
    let shown = |rows: &[Vec<u8>]| {
        let end = [complete(&format!("SELECT {}", rows.len())), ready()];
        [&[columns()][..], rows, &end].concat()
    };
    let broken = vec![
        columns(),
        row(b"1"),
        error("ERROR", "22012", "division by zero"),
        ready(),
    ];
    type Row = (Vec<Vec<u8>>, Result<Option<i64>, &'static str>);
    let answers: Vec<Row> = vec![
        (shown(&[row(b"-42")]), Ok(Some(-42))),
        (shown(&[row(b"1"), row(b"x")]), Ok(Some(1))),
        (shown(&[]), Ok(None)),
        (shown(&[null, row(b"1")]), Ok(None)),
        (shown(&[message(b'D', b"\0\0")]), Ok(None)),
        (shown(&[row(b"9223372036854775807")]), Ok(Some(i64::MAX))),
        (
            shown(&[row(b"9223372036854775808")]),
            Err("\"9223372036854775808\" is not a whole number"),
        ),
        (
            shown(&[row(b"1.5")]),
            Err("\"1.5\" is not a whole number; ask for one"),
        ),
        (
            shown(&[row(&[b'7'; 9000])]),
            Err("7\" is not a whole number"),
        ),
        (broken, Err("division by zero")),
    ];
    let (said, expected): (Vec<_>, Vec<_>) = answers.into_iter().unzip();
    let stage = Stage::new(vec![part(move |actor| {
        actor.welcome();
        for answer in said {
            assert_eq!(actor.request(), "Q");
            actor.say(&answer);
        }
    })]);
    let mut session = session(&stage);
    in_time(move || {
        for expected in expected {
            match (session.query_integer("select n"), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(wanted)) => {
                    assert!(error.message.contains(wanted), "wanted {wanted}: {error}")
                }
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    });
    stage.end();
}

#[test]
fn what_cannot_be_sent_is_refused_before() {
    let stage = Stage::new(vec![part(|actor| {
        actor.welcome();
        take_statement(actor);
        assert_eq!(actor.request(), "X");
    })]);
    let mut session = session(&stage);
    in_time(move || {
        let statement = session.prepare("select ?").unwrap();
        for arguments in [&[][..], &[1, 2], &[1 << 31]] {
            let error = session.query_prepared(statement, arguments).unwrap_err();
            assert_eq!(
                (error.class, error.statement.as_str()),
                (ErrorClass::Statement, "select ?"),
                "{error}"
            );
        }
        assert!(
            session
                .query_prepared(crate::Prepared(1), &[])
                .unwrap_err()
                .message
                .contains("did not prepare the statement")
        );
        for error in [
            session.write("select '\0'", 0).map(drop),
            session.define("\0"),
            session.prepare("\0").map(drop),
        ] {
            assert_eq!(error.unwrap_err().class, ErrorClass::Statement);
        }
        let novel = String::from_utf8(vec![0; 1 << 30]).unwrap();
        assert!(
            session
                .write(&novel, 0)
                .unwrap_err()
                .message
                .contains("more than any server takes")
        );
    });
    stage.end();
}
