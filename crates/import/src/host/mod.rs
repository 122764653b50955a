//! Text of vmstat and iostat, and what the scripts make of it.

pub mod iostat;
pub mod normalized;
pub mod vmstat;
