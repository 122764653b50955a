//! A tree of foreign files: found, grouped into campaigns, hashed and recognised.

pub(crate) mod contents;
pub(crate) mod unit;
pub(crate) mod walk;
