//! The vocabulary every other crate speaks: names, units, readings, plans, schedules and the clock.
//!
//! Nothing here touches a file, a socket or the time of day: a plan is parsed from text, a schedule
//! follows from a plan and a seed, and whoever needs the time is handed a [`clock::Clock`].

pub mod buggify;
pub mod clock;
pub mod distribution;
pub mod engines;
pub mod histogram;
pub mod name;
pub mod plan;
pub mod planted;
pub mod readings;
pub mod record;
pub mod rocksdb;
pub mod schedule;
pub mod seed;
mod source;
pub mod suggest;
pub mod toolchain;
pub mod units;
pub mod witness;
pub mod workload_file;
mod written;

pub use rocksdb::{db_bench, report as rocksdb_report, stats as rocksdb_stats};

/// Stamped on every result. It grows whenever a change can move a number (see CHANGELOG,
/// `Results`).
pub const METHODOLOGY_VERSION: u32 = 27;
