//! What RocksDB and db_bench print, and the columns of the tables that are made of it.

pub mod db_bench;
pub mod report;
pub mod stats;
