//! What one step came to, over its blocks and beside the other cells.

pub(crate) mod charts;
pub(crate) mod classic_columns;
pub(crate) mod classic_table;
pub(crate) mod counters;
pub(crate) mod latency;
pub(crate) mod microbenchmarks;
pub(crate) mod outcome;
pub(crate) mod published;
pub(crate) mod shapes;
pub(crate) mod step_view;
pub(crate) mod summary;
