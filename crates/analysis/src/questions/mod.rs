//! Questions that are asked of finished campaigns: compare, gate, history.

pub mod bisection;
pub mod compare;
pub mod gate;
pub mod history;
pub(crate) mod undecided;
pub(crate) mod unusual;
