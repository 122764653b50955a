//! The client of one worker, thin enough to be left out of what is measured.
//!
//! An operation is one send, one wait and one receive; nothing is allocated, formatted or locked
//! for it, and rows are passed over and counted. TLS is not spoken here: such sessions stay with
//! the full client library.

mod error;
mod execute;
mod fields;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod handshake;
mod key;
mod link;
mod packets;
mod session;
#[cfg(test)]
mod tests;
mod whole;

pub(super) use error::WireError;
pub(super) use session::open;
