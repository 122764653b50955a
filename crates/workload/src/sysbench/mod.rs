//! The sysbench microbenchmarks: tables of one shape, and some forty tests of one kind of statement
//! or transaction each.
//!
//! The definition is that of Mark Callaghan's scripts (github.com/mdcallag/mytools,
//! `bench/sysbench.lua`) over sysbench 1.1; `docs/workloads/sysbench.md` lists where this
//! implementation differs and why.

mod event;
mod statements;
mod steps;

#[cfg(test)]
pub(crate) use statements::table_fill;
pub use steps::SysbenchRun;
