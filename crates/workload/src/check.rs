//! Counting rows outside the measured window.

use plimsoll_core::record::TableCheck;
use plimsoll_engine::{EngineError, SqlSession};
use sha2::{Digest, Sha256};

/// Counts a table's rows and, when asked, hashes all of them in the order of their ids.
pub(crate) fn check_table(
    session: &mut dyn SqlSession,
    table: &str,
    count: &str,
    all_rows: &str,
    expected_rows: u64,
    with_checksum: bool,
) -> Result<TableCheck, EngineError> {
    let found_rows = session.query_integer(count)?.unwrap_or(0) as u64;
    let checksum = if with_checksum {
        Some(checksum(session, all_rows)?)
    } else {
        None
    };
    Ok(TableCheck {
        table: table.to_owned(),
        expected_rows,
        found_rows,
        checksum,
    })
}

/// The first 16 hexadecimal digits of the SHA-256 of all rows, columns separated by tabs and rows
/// by newlines.
fn checksum(session: &mut dyn SqlSession, sql: &str) -> Result<String, EngineError> {
    let mut hash = Sha256::new();
    session.for_each_row(sql, &mut |columns| {
        for column in columns {
            hash.update(column.as_bytes());
            hash.update(b"\t");
        }
        hash.update(b"\n");
    })?;
    Ok(short_hash(hash))
}

/// The first 16 hexadecimal digits.
pub(crate) fn short_hash(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
