//! One worker's reads and writes.

use std::hint::black_box;
use std::sync::Arc;

use super::library::{Database, ManyKeys, ReadOptions, WriteOptions};
use crate::{Direction, Found, KvSession, SqlError, WriteMode};

/// So much of a value is copied where a range is read: what a reader of db_bench does with it.
const COPIED_BYTES: usize = 256;

/// Access to an open database.
pub(super) struct RocksdbSession {
    database: Arc<Database>,
    reads: ReadOptions,
    writes: WriteOptions,
    many: ManyKeys,
    copied: [u8; COPIED_BYTES],
}

impl RocksdbSession {
    /// A session of the calling thread that writes in this mode.
    pub(super) fn new(
        database: Arc<Database>,
        writes: WriteMode,
        verifies_checksums: bool,
    ) -> Self {
        let library = database.library();
        database.count_nothing_in_this_thread();
        Self {
            reads: ReadOptions::new(library, verifies_checksums, true),
            writes: WriteOptions::new(library, writes.has_wal, writes.syncs),
            many: ManyKeys::default(),
            copied: [0; COPIED_BYTES],
            database,
        }
    }
}

impl KvSession for RocksdbSession {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), SqlError> {
        self.database
            .put(&self.writes, key, value)
            .map_err(|status| status.of_operation("put"))
    }

    fn get(&mut self, key: &[u8]) -> Result<Found, SqlError> {
        let value_bytes = self
            .database
            .value_bytes(&self.reads, key)
            .map_err(|status| status.of_operation("get"))?;
        Ok(value_bytes.map_or(Found::default(), |bytes| Found {
            keys: 1,
            bytes: (key.len() + bytes) as u64,
        }))
    }

    fn get_many(&mut self, keys: &[u8], key_bytes: usize) -> Result<Found, SqlError> {
        let mut found = Found::default();
        let count = |value_bytes: usize| {
            found.keys += 1;
            found.bytes += (key_bytes + value_bytes) as u64;
        };
        self.database
            .get_many(&self.reads, keys, key_bytes, &mut self.many, count)
            .map_err(|status| status.of_operation("multiget"))?;
        Ok(found)
    }

    fn range(&mut self, from: &[u8], most: u32, direction: Direction) -> Result<Found, SqlError> {
        let mut found = Found::default();
        let mut cursor = self.database.iterator(&self.reads);
        cursor.seek(from);
        for _ in 0..most {
            let Some((key, value)) = cursor.row() else {
                break;
            };
            let copied = value.len().min(COPIED_BYTES);
            self.copied[..copied].copy_from_slice(&value[..copied]);
            black_box(&self.copied);
            found.keys += 1;
            found.bytes += (key.len() + value.len()) as u64;
            match direction {
                Direction::Forward => cursor.next(),
                Direction::Backward => cursor.previous(),
            }
        }
        cursor
            .status()
            .map_err(|status| status.of_operation("range"))?;
        Ok(found)
    }
}
