//! The page: one file, no request leaves it.

mod appendix;
mod data;
mod figures;
mod numbers;
mod page;
mod step;
mod summary;
mod tables;

pub use page::to_html;
