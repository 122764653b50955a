//! Results of other tools into the store.
//!
//! ```text
//! files -> recognised by content -> readers -> campaigns of the store
//! ```
//! A reader is a pure function from bytes to typed values; what it cannot read it says with its
//! line. Numbers are kept in two ways: clean, and classic, which is what the original scripts
//! print, digit for digit.

mod campaign;
pub mod host;
pub mod insert_benchmark;
pub mod names;
pub mod other;
pub mod rocksdb;
pub mod sysbench;
mod text;
mod tree;

pub use campaign::{ImportError, ImportedUnit, Options, Summary, import};
pub use text::{Read, ReadError};
