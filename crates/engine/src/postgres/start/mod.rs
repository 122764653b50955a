//! Making a data directory, as an account that may, and the process of the server that runs on it.

pub(super) mod account;
pub(super) mod check;
pub(super) mod init;
pub(super) mod process;
