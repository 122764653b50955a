//! The sysbench microbenchmarks: tables of one shape, and some forty tests of one kind of statement or transaction each.
//!
//! The definition is that of Mark Callaghan's scripts (github.com/mdcallag/mytools, `bench/sysbench.lua`) over sysbench 1.1;
//! `docs/manual/sysbench.md` lists where this implementation differs and why.

mod client;
mod event;
mod load;
mod random;
mod rows;
mod statements;
mod steps;
mod tally;
mod text;

pub use steps::SysbenchRun;
pub(crate) use tally::Tally;
