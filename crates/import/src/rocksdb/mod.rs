//! `db_bench`: its logs, and the tables that the scripts make of them.

pub mod log;
pub mod rows;
pub mod table;
