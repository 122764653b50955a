//! The sections of the page other than those of steps, from the top to the end.

pub(crate) mod appendix;
pub(crate) mod beyond;
mod groups;
mod microbenchmarks;
mod ran;
mod settings;
pub(crate) mod summary;
pub(crate) mod verdicts;
