//! Any bytes as a server's answer, for the fuzz targets.

use std::time::Duration;

use mysql::OptsBuilder;

use super::handshake::shake_hands;
use super::link::Link;
use super::packets::{HEADER_BYTES, Packets};
use crate::wire::fuzzing::answered;

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
            let mut rows = 0;
            link.each_row("select 1", |_| rows += 1).map(|()| rows)
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
