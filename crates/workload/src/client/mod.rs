//! A client: one event after the other, drawn off the clock and performed on it. What events are is
//! a [`Program`], of sysbench or of a workload file.

mod program;
mod tally;
mod values;
mod worker;

pub(crate) use program::{Event, Growth, Part, Place, Program, Sequence, Source, Statement};
pub(crate) use tally::{Statements, Tally};
pub(crate) use worker::{Client, Seat};
