//! Numbers in words: the notes and reasons that accompany them.

pub(crate) mod books;
pub mod brief;
pub(crate) mod cell_notes;
pub mod changed_files;
pub(crate) mod client_hosts;
pub(crate) mod describe;
pub(crate) mod notes;
pub mod reasons;
pub(crate) mod rocksdb_notes;
pub(crate) mod settling;
pub(crate) mod starved;
pub mod waiting;
mod waiting_note;
