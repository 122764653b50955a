//! Where in a series something changed: releases, commits, the seconds of a step.

pub(crate) mod bisection;
pub(crate) mod segments;
pub(crate) mod step_function;
pub(crate) mod warm_up;
pub(crate) mod words;

pub use bisection::{Bisection, Evidence, Level, Measured, Step};
pub use segments::{Segment, penalty_from_blocks, penalty_from_spread, segment};
pub use warm_up::warm_up;
pub use words::describe;
