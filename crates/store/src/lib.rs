//! Campaign and trial folders: the truth on disk, from which everything else is derived.

pub mod event;
pub mod header;
