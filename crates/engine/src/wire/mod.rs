//! What the thin clients of MySQL and PostgreSQL share: a blocking socket, and a buffer that
//! answers are walked in.
//!
//! One operation costs one `sendmsg`, one `poll` where it helps, and one `recv`; nothing is
//! allocated, and what is skipped is never copied out of the buffer.

#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod inbox;
mod socket;

pub(crate) use inbox::Inbox;
pub(crate) use socket::{Place, Socket};
