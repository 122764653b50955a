//! Filling tables: their rows, the same for a seed however and by however many they are loaded, and
//! the connections that load them.

mod loader;
mod rows;
mod table;

pub(crate) use loader::loading_tasks;
pub(crate) use table::{ColumnFill, Finish, TableFill};
