//! A client: one event after the other, drawn off the clock and performed on it. What events are is
//! a [`Program`], of sysbench or of a workload file.

mod program;
mod totals;
mod values;
mod worker;

pub(crate) use program::{
    Event, EventStatement, Growth, Place, Program, Sequence, Source, Statement,
};
pub(crate) use totals::{Statements, StepTotals};
pub(crate) use worker::{Client, ClientIdentity};
