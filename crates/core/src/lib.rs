//! The vocabulary every other crate speaks: names, units, metrics, plans, schedules and the clock.
//!
//! Nothing here touches a file, a socket or the time of day: a plan is parsed from text, a schedule
//! follows from a plan and a seed, and whoever needs the time is handed a [`clock::Clock`].

pub mod clock;
pub mod db_bench;
pub mod engines;
pub mod name;
pub mod plan;
pub mod readings;
pub mod record;
pub mod rocksdb_report;
pub mod rocksdb_stats;
pub mod schedule;
pub mod seed;
pub mod suggest;
pub mod toolchain;
pub mod units;
pub mod witness;
pub mod workload_file;

/// Stamped on every result. It grows whenever a change can move a number (see CHANGELOG,
/// `Results`).
pub const METHODOLOGY_VERSION: u32 = 8;
