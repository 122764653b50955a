//! Results that follow no benchmark's naming: pgbench, latency logs, tables of anything.

pub mod hdr_log;
pub mod pgbench;
pub mod pgbench_log;
pub mod table;
