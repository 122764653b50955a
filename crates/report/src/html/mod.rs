//! The page: one file, no request leaves it.

mod appendix;
mod counters;
mod data;
mod drain;
mod figures;
mod flames;
mod numbers;
mod page;
mod ran;
mod ratio_plot;
mod settings;
mod shapes;
mod step;
mod summary;
mod tables;
mod tests;
mod verdicts;
mod versions;

pub use page::to_html;
