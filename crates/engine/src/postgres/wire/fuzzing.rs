//! Any bytes as a server's answer, for the fuzz targets.

use std::path::PathBuf;
use std::time::Duration;

use super::connection::{Connection, HEADER_BYTES};
use super::login::Login;
use crate::wire::Place;
use crate::wire::fuzzing::answered;

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
        0 => connection
            .query("select 1", Connection::skip)
            .map(|counts| counts.rows),
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
