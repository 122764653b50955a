//! Making a data directory, starting a server on it, and what it says when it does not start.

pub(super) mod init;
pub(super) mod launch;
pub(super) mod log;
