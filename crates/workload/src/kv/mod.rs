//! RocksDB's benchmark: keys, values and operations of db_bench's sequence, on an engine of keys
//! and values.

mod keys;
mod maintenance;
mod settings;
mod steps;
mod values;
mod worker;

pub use maintenance::Maintenance;
pub use settings::{is_universal, step_settings};
pub use steps::KvRun;
pub(crate) use worker::SharedKvTotals;
