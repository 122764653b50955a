//! Any bytes as a server's answer, for the fuzz targets.

use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};

use super::error::WireError;
use super::handshake::shake_hands;
use super::link::Link;
use super::packets::{FULL, HEADER_BYTES, Packets};
use crate::wire::fuzzing::{answered, with_server};

/// A row, column by column. `None` is NULL.
type Row = Vec<Option<Vec<u8>>>;
/// Rows, or the number of a server's error.
type Understood = Result<Vec<Row>, u16>;

/// Asks in the way that the first byte chooses, and takes the others as what the server says. Panics
/// if more rows are counted than packets can have come.
pub fn answer(bytes: &[u8]) {
    let Some((way, said)) = bytes.split_first() else {
        return;
    };
    let (mut socket, _peer) = answered(said);
    let _ = socket.wait_at_most(Duration::from_secs(2));
    let mut packets = Packets::new(socket);
    let most = (said.len() / HEADER_BYTES) as u64;
    if way % 7 == 6 {
        let opts = OptsBuilder::new().user(Some("bench")).pass(Some("geheim"));
        drop(shake_hands(&mut packets, &opts.into()));
        return;
    }
    let mut link = Link::on(packets);
    let rows = match way % 7 {
        0 => link.write("delete").map(|_| 0),
        1 => link.count("select 1"),
        2 => {
            let rows = rows_of(&mut link);
            let understood = match &rows {
                Ok(rows) => Some(Ok(rows.clone())),
                Err(WireError::Server { code, .. }) => Some(Err(*code)),
                Err(_) => None,
            };
            let is_all =
                |link: &mut Link| matches!(link.integer("select 1"), Err(WireError::Io(_)));
            if let Some(understood) = understood.filter(|_| is_all(&mut link)) {
                assert_twin_agrees(said, &understood);
            }
            rows.map(|rows| rows.len() as u64)
        }
        3 => link.integer("select 1").map(|_| 0),
        4 => link
            .prepare("select ?")
            .and_then(|mut execute| link.count_prepared(&mut execute, &[1])),
        _ => link
            .prepare("delete ?")
            .and_then(|mut execute| link.write_prepared(&mut execute, &[1]))
            .map(|_| 0),
    };
    if let Ok(rows) = rows {
        assert!(rows <= most, "{rows} rows in at most {most} packets");
    }
}

fn rows_of(link: &mut Link) -> Result<Vec<Row>, WireError> {
    let mut rows = Vec::new();
    link.each_row("select 1", |columns| {
        let owned = columns.iter().map(|column| column.map(<[u8]>::to_vec));
        rows.push(owned.collect());
    })?;
    Ok(rows)
}

/// Greets, and lets in whoever answers.
fn greeting() -> Vec<u8> {
    let mut message = b"\x0a8.0.33\0\x01\0\0\0abcdefgh\0".to_vec();
    message.extend([0x00, 0x82, 45, 2, 0, 0x08, 0, 21]);
    message.extend([0; 10]);
    message.extend(b"ijklmnopqrst\0mysql_native_password\0");
    let mut packet = (message.len() as u32).to_le_bytes().to_vec();
    packet.extend(message);
    packet
}

const LET_IN: &[u8] = &[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0];

/// The `mysql` crate takes the same bytes for the same rows, or for the same error. It is asked only
/// about what was understood here, to its last byte: it takes some of the rest for granted, and
/// panics, as it does when it reads on behind a message that it refuses. It may refuse more for its
/// form: it looks at definitions of columns, too.
fn assert_twin_agrees(said: &[u8], understood: &Understood) {
    if let Some(found) = with_server([&greeting(), LET_IN, said], twin) {
        assert_eq!(&found, understood);
    }
}

fn twin(path: &Path) -> Option<Understood> {
    let opts = OptsBuilder::new()
        .user(Some("bench"))
        .pass(Some("geheim"))
        .socket(path.to_str())
        // It would ask for the name of the socket first.
        .prefer_socket(false)
        .max_allowed_packet(Some(FULL))
        .read_timeout(Some(Duration::from_secs(2)));
    let mut session = Conn::new(opts).expect("it is let in");
    let read = |session: &mut Conn| -> mysql::Result<Vec<Row>> {
        let mut first = None;
        let mut answers = session.query_iter("select 1")?;
        while let Some(answer) = answers.iter() {
            let rows = answer.map(|row| Ok(row?.unwrap().into_iter().map(text_of).collect()));
            let rows = rows.collect::<mysql::Result<Vec<Row>>>()?;
            first.get_or_insert(rows);
        }
        Ok(first.unwrap_or_default())
    };
    match read(&mut session) {
        Ok(rows) => Some(Ok(rows)),
        Err(mysql::Error::MySqlError(error)) => Some(Err(error.code)),
        Err(_) => None,
    }
}

fn text_of(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Bytes(bytes) => Some(bytes),
        Value::NULL => None,
        other => panic!("{other:?} in an answer of texts"),
    }
}
