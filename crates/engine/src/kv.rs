//! What an engine without SQL is: keys and values.

use crate::{DrainLimits, EngineError, SqlError};

/// How a session's writes are made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteMode {
    /// Whether writes go to the write-ahead log.
    pub has_wal: bool,
    /// Whether each write waits until the log is on the disk.
    pub syncs: bool,
}

/// Which way an iterator goes from the key it was placed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// What a read found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Keys that were there.
    pub keys: u64,
    /// Bytes of these keys and their values.
    pub bytes: u64,
}

/// One worker's access to a store. Not shared between threads. Its calls allocate nothing that
/// grows with the data.
pub trait KvSession: Send {
    /// Sets the value of a key, in a batch of its own.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), SqlError>;

    /// Looks a key up and reads its value.
    fn get(&mut self, key: &[u8]) -> Result<Found, SqlError>;

    /// Looks up keys of `key_bytes` bytes each, one behind the other in `keys`, in one call of the
    /// engine.
    fn get_many(&mut self, keys: &[u8], key_bytes: usize) -> Result<Found, SqlError>;

    /// Makes an iterator, places it at `from` or the next key that is there, then reads up to
    /// `most` values and goes on after each.
    fn range(&mut self, from: &[u8], most: u32, direction: Direction) -> Result<Found, SqlError>;
}

/// One level of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// 0 is where memtables are flushed to.
    pub level: u32,
    pub files: u64,
    pub bytes: u64,
}

/// An open store, beside what [`Server`](crate::Server) has. Waits end at the limit with an error
/// that says what was still going on, and soon after a stop without one.
pub trait KvStore: Send + Sync {
    /// Access for one worker.
    fn session(&self, writes: WriteMode) -> Result<Box<dyn KvSession>, EngineError>;

    /// Writes the memtable to level 0 and waits until it is there.
    fn flush(&self) -> Result<(), EngineError>;

    /// Waits until no flush and no compaction is running or due.
    fn wait_for_compaction(&self, limits: &DrainLimits<'_>) -> Result<(), EngineError>;

    /// Moves all files out of level 0 into the levels below it. Nothing to do where there is none.
    fn empty_level0(&self, limits: &DrainLimits<'_>) -> Result<(), EngineError>;

    /// The levels that have files, in their order.
    fn levels(&self) -> Result<Vec<Level>, EngineError>;

    /// The engine's own statistics, as `rocksdb.stats` prints them.
    fn stats_text(&self) -> Result<String, EngineError>;

    /// Counts all keys by reading them, in order, and hands each with its value to `row`.
    fn for_each(&self, row: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64, EngineError>;
}
