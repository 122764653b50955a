//! Logging in: what is sent when, and what a server that does not play by the rules gets.

use super::super::connection::Connection;
use super::super::fault::Fault;
use super::*;

/// Logs in at a server that plays `play`, and leaves.
fn log_in(
    change: impl FnOnce(&mut Login),
    play: impl FnOnce(&mut Actor) + Send + 'static,
) -> Result<(), Fault> {
    let stage = Stage::new(vec![part(play)]);
    let mut login = stage.login();
    change(&mut login);
    let end = in_time(move || Connection::open(&login, LIMIT).map(drop));
    stage.end();
    end
}

fn unchanged(_: &mut Login) {}

#[test]
fn whoever_is_trusted_gets_in() {
    let done = log_in(unchanged, |actor| {
        let startup = actor.startup();
        let wanted = b"\0\x03\0\0client_encoding\0UTF8\0user\0bench\0database\0ib\0application_n\
            ame\0plimsoll\0\0";
        assert_eq!(startup, wanted, "{}", String::from_utf8_lossy(&startup));
        let notice = message(b'N', b"SNOTICE\0C00000\0Mhm\0\0");
        let news = message(b'v', b"\0\x03\0\0\0\0\0\0");
        actor.say(&[
            notice.clone(),
            news,
            authentication(0, b""),
            notice,
            message(b'S', b"a\0b\0"),
            message(b'K', &[0; 36]),
            ready(),
        ]);
        assert_eq!(actor.hear(), Some((b'X', Vec::new())));
    });
    done.unwrap();
}

#[test]
fn passwords_go_as_the_server_asks() {
    for (ask, reply) in [
        (authentication(3, b""), format!("{SECRET}\0")),
        // md5 of md5 of password and user, and the salt; as the server's own function computes it.
        (
            authentication(5, b"salt"),
            format!(
                "{}\0",
                postgres_protocol::authentication::md5_hash(b"bench", SECRET.as_bytes(), *b"salt")
            ),
        ),
    ] {
        let wanted = reply.clone();
        let done = log_in(unchanged, move |actor| {
            actor.startup();
            actor.say(&[ask]);
            assert_eq!(actor.hear(), Some((b'p', wanted.into_bytes())));
            actor.say(&[authentication(0, b""), ready()]);
        });
        done.unwrap();
    }
}

/// Nothing that looks like a password goes to where others can listen, and none goes without being
/// asked for.
#[test]
fn a_password_in_clear_stays_on_the_machine() {
    for (host, is_sent) in [
        ("127.0.0.1", true),
        ("localhost", true),
        ("::1", true),
        ("db.example.org", false),
        ("10.0.0.7", false),
    ] {
        let place = Place::Tcp(host.to_owned(), 5432);
        let login = Login {
            place,
            user: "bench".into(),
            database: "ib".into(),
            password: Some(Password::new(SECRET.into())),
        };
        let (mut connection, mut peer) =
            answered(&[authentication(3, b""), authentication(0, b""), ready()].concat());
        let end = in_time(move || login.perform(&mut connection, LIMIT));
        let mut heard = Vec::new();
        peer.read_to_end(&mut heard).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&heard).contains(SECRET),
            is_sent,
            "{host}"
        );
        match end {
            Ok(()) => assert!(is_sent),
            Err(fault) => assert!(
                !is_sent && fault.message().contains("in clear text over a network"),
                "{}",
                fault.message()
            ),
        }
    }
}

#[test]
fn what_is_not_spoken_is_named() {
    for (ask, wanted) in [
        (
            authentication(2, b""),
            "authentication by krb5, which this program does not speak; let it ask for \
            scram-sha-256",
        ),
        (authentication(6, b""), "authentication by scm credentials"),
        (authentication(7, b""), "authentication by gss"),
        (authentication(9, b""), "authentication by sspi"),
        (
            authentication(10, b"OAUTHBEARER\0\0"),
            "authentication by sasl (OAUTHBEARER)",
        ),
        (
            authentication(10, b"SCRAM-SHA-256-PLUS\0X\0\0"),
            "authentication by sasl (SCRAM-SHA-256-PLUS, X)",
        ),
        (
            authentication(13, b""),
            "protocol (a message 'R' of 4 bytes out of turn)",
        ),
        (authentication(12, b"v=eA=="), "out of turn"),
        (authentication(11, b"r=x,s=eA==,i=1"), "out of turn"),
        (authentication(5, b"salty"), "out of turn"),
        (message(b'R', b"\0\0"), "out of turn"),
        (message(b'R', &vec![0; 100_000]), "out of turn"),
        (ready(), "out of turn"),
        (
            b"HTTP/1.1 400 Bad Request".to_vec(),
            "check what listens there",
        ),
        (
            error("FATAL", "53300", "too many"),
            "too many, SQLSTATE 53300; raise max_connections in the config",
        ),
        (
            error("FATAL", "28P01", "password authentication failed"),
            "password authentication failed, SQLSTATE 28P01",
        ),
        (
            error(
                "FATAL",
                "28000",
                "no pg_hba.conf entry for host \"::1\", user \"bench\", database \"ib\", no \
                encryption",
            ),
            "set tls = \"verify-full\" in the plan's table of the server",
        ),
        (
            error(
                "FATAL",
                "28000",
                "no pg_hba.conf entry for host \"::1\", user \"bench\", database \"ib\", SSL off",
            ),
            "set tls = ",
        ),
        (Vec::new(), "connection closed, SQLSTATE 08006"),
    ] {
        let end = log_in(unchanged, move |actor| {
            actor.startup();
            actor.say(&[ask]);
        });
        let error = end.unwrap_err().engine_error("connect to postgres").message;
        assert!(
            error.starts_with("connect to postgres: ") && error.contains(wanted),
            "wanted {wanted}: {error}"
        );
        assert!(!error.contains(SECRET), "{error}");
    }
}

#[test]
fn a_login_that_lacks_something_says_what() {
    for ask in [
        authentication(3, b""),
        authentication(5, b"salt"),
        authentication(10, b"SCRAM-SHA-256\0\0"),
    ] {
        let end = log_in(
            |login| login.password = None,
            move |actor| {
                actor.startup();
                actor.say(&[ask]);
            },
        );
        let fault = end.unwrap_err();
        assert!(
            fault
                .message()
                .ends_with("there is none; name a password_file or a password_env"),
            "{}",
            fault.message()
        );
    }
    let (mut connection, _peer) = answered(b"");
    let fault = Login {
        user: "a\0b".into(),
        ..Stage::new(vec![]).login()
    }
    .perform(&mut connection, LIMIT)
    .unwrap_err();
    assert!(
        fault
            .message()
            .contains("the name or password cannot be sent"),
        "{}",
        fault.message()
    );
}

/// A server that does not know the password either must not be believed.
#[test]
fn scram_is_mutual() {
    let challenge = |actor: &mut Actor| {
        actor.startup();
        actor.say(&[authentication(10, b"SCRAM-SHA-256\0\0")]);
        let (_, body) = actor.hear().unwrap();
        let text = String::from_utf8(body).unwrap();
        let (mechanism, first) = text.split_at(14);
        assert_eq!(mechanism, "SCRAM-SHA-256\0");
        first[4..]
            .strip_prefix("n,,n=,r=")
            .unwrap_or_else(|| panic!("{first:?}"))
            .to_owned()
    };
    type Replies = fn(&str) -> Vec<Vec<u8>>;
    let table: [(Replies, &str); 7] = [
        // The right form, and not the proof.
        (
            |nonce| {
                vec![
                    authentication(11, format!("r={nonce}abc,s=c2FsdA==,i=4096").as_bytes()),
                    authentication(12, b"v=AAAA"),
                ]
            },
            "proof",
        ),
        // It wants to let us in without it.
        (
            |nonce| {
                vec![
                    authentication(11, format!("r={nonce}abc,s=c2FsdA==,i=4096").as_bytes()),
                    authentication(0, b""),
                    ready(),
                ]
            },
            "turn",
        ),
        (|_| vec![authentication(0, b""), ready()], "turn"),
        (|_| vec![authentication(12, b"v=AAAA")], "turn"),
        (
            |_| vec![authentication(11, b"r=another,s=c2FsdA==,i=4096")],
            "challenge",
        ),
        // A server that wants us to compute for a year.
        (
            |nonce| {
                vec![authentication(
                    11,
                    format!("r={nonce}abc,s=c2FsdA==,i=4000000000").as_bytes(),
                )]
            },
            "challenge",
        ),
        (|_| vec![authentication(11, b"\xff\xfe")], "challenge"),
    ];
    for (replies, wanted) in table {
        let end = log_in(unchanged, move |actor| {
            let nonce = challenge(actor);
            actor.say(&replies(&nonce));
            while actor.hear().is_some() {}
        });
        let fault = end.unwrap_err();
        assert!(
            fault.message().contains(wanted),
            "wanted {wanted}: {}",
            fault.message()
        );
    }
}

#[test]
fn a_server_that_says_nothing_is_late() {
    let stage = Stage::new(vec![part(|actor| {
        actor.startup();
        actor.hear();
    })]);
    let login = stage.login();
    let fault = in_time(move || Connection::open(&login, Duration::from_millis(50))).unwrap_err();
    assert!(fault.message().contains("answer"), "{}", fault.message());
    stage.end();

    // One that says a lot, and nothing that matters.
    let stage = Stage::new(vec![part(|actor| {
        actor.startup();
        while actor
            .stream
            .write_all(&message(b'N', b"SNOTICE\0\0"))
            .is_ok()
        {}
    })]);
    let login = stage.login();
    let fault = in_time(move || Connection::open(&login, Duration::from_millis(50))).unwrap_err();
    assert!(fault.message().contains("answer"), "{}", fault.message());
    stage.end();

    let nowhere = Login {
        place: Place::Unix("/does/not/exist".into()),
        ..Stage::new(vec![]).login()
    };
    let fault = Connection::open(&nowhere, LIMIT).unwrap_err();
    assert!(
        fault
            .message()
            .starts_with("error connecting to server: No such file"),
        "{}",
        fault.message()
    );
}

#[test]
fn nobody_sees_the_password() {
    let login = Stage::new(vec![]).login();
    assert!(!format!("{login:?}").contains(SECRET));
}
