//! The thin client: what a worker's operation costs is one `sendmsg`, one wait, one `recv`, and a
//! walk over the headers of the answer.
//!
//! Requests of prepared statements are encoded once and patched in place; statements in text are
//! sent from where they are. Rows are counted and not looked at unless somebody asks for them.
//! Setup and administration stay with the `postgres` crate, and so do sessions over TLS.

mod answer;
mod connection;
mod fault;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod login;
mod request;
mod session;
mod typed;
mod whole;

#[cfg(test)]
mod tests;

pub(super) use login::{Login, TLS_ADVICE, wants_tls};
pub(super) use session::open;
