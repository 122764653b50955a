//! A campaign's folder: what it was made from, and what is in it now.

pub(crate) mod clients;
pub(crate) mod confirm;
pub(crate) mod fleet;
pub(crate) mod folder;
mod format_1;
pub mod header;
pub mod imported;
