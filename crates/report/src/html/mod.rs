//! The page: one file, no request leaves it.
//!
//! `page` puts `sections` and `step` together; both draw with `figures` and `tables`.

mod data;
pub(crate) mod figures;
pub(crate) mod numbers;
mod page;
mod sections;
mod step;
pub(crate) mod tables;

pub use page::to_html;
