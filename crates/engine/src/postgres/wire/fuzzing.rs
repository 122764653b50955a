//! Any bytes as a server's answer, for the fuzz targets.

use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::{Config, NoTls, SimpleQueryMessage};

use super::connection::{Connection, HEADER_BYTES};
use super::fault::PROTOCOL_VIOLATION;
use super::login::Login;
use crate::postgres::failure::{CONNECTION_FAILURE, REFUSED_BY_CLIENT};
use crate::wire::Place;
use crate::wire::fuzzing::{answered, with_server};

/// The number of rows, or SQLSTATE of a server's error.
type Understood = Result<u64, String>;

/// Asks in the way that the first byte chooses, and takes the others as what the server says. Panics
/// if more rows are counted than messages can have come.
pub fn answer(bytes: &[u8]) {
    let Some((way, said)) = bytes.split_first() else {
        return;
    };
    let (mut socket, _peer) = answered(said);
    let _ = socket.wait_at_most(Duration::from_secs(2));
    let mut connection = Connection::on(socket);
    let most = (said.len() / HEADER_BYTES) as u64;
    let rows = match way % 6 {
        0 => {
            let counts = connection.query("select 1", Connection::skip);
            let understood = match &counts {
                Ok(counts) => Some(Ok(counts.rows)),
                Err(fault) => Some(Err(fault.sqlstate().to_owned())),
            };
            if let Some(understood) = understood.filter(is_the_servers) {
                assert_twin_agrees(said, &understood);
            }
            counts.map(|counts| counts.rows)
        }
        1 => connection
            .prepare("s0", "select $1")
            .and_then(|mut request| connection.count_rows(request.with(&[1])?)),
        2 => connection
            .prepare("s0", "delete $1")
            .and_then(|mut request| Ok(connection.execute(request.with(&[1])?)?.rows)),
        3 => connection.copy_in("copy t from stdin", b"1\n").map(|_| 0),
        4 => {
            let mut lines = 0;
            let copied = connection.copy_out("select 1", |_| lines += 1);
            // Several of them may share a message.
            let said = said.len();
            assert!(lines <= said, "{lines} lines in {said} bytes");
            copied.map(|()| 0)
        }
        _ => {
            let login = Login {
                place: Place::Unix(PathBuf::new()),
                user: "bench".to_owned(),
                database: "bench".to_owned(),
                password: None,
            };
            login
                .perform(&mut connection, Duration::from_secs(2))
                .map(|()| 0)
        }
    };
    if let Ok(rows) = rows {
        assert!(rows <= most, "{rows} rows in at most {most} messages");
    }
}

/// Whether it is not an error of our own.
fn is_the_servers(understood: &Understood) -> bool {
    !understood.as_ref().is_err_and(|sqlstate| {
        [PROTOCOL_VIOLATION, CONNECTION_FAILURE, REFUSED_BY_CLIENT].contains(&sqlstate.as_str())
    })
}

/// It trusts whoever connects, and waits for requests.
const LET_IN: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

/// The `postgres` crate takes the same bytes for as many rows, or for the same error. It may
/// refuse more for its form: it looks into rows, too.
fn assert_twin_agrees(said: &[u8], understood: &Understood) {
    if let Some(found) = with_server([b"", LET_IN, said], twin) {
        assert_eq!(&found, understood);
    }
}

fn twin(path: &Path) -> Option<Understood> {
    let mut config = Config::new();
    config
        .user("bench")
        .host_path(path.parent().expect("it is in a folder"));
    let mut session = config.connect(NoTls).expect("it is let in");
    match session.simple_query("select 1") {
        Ok(messages) => {
            let is_row =
                |message: &&SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
            Some(Ok(messages.iter().filter(is_row).count() as u64))
        }
        Err(error) => Some(Err(error.code()?.code().to_owned())),
    }
}
