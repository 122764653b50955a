//! Clients on other machines: a trial stays with its server, and the workers of its steps run on
//! hosts that are reached by ssh.
//!
//! A due instant never leaves its client: every time is a difference of two stamps of one clock.
//! Clocks of two hosts meet at the common start and in the second a row belongs to, nowhere else.
//!
//! ```text
//! choice   which hosts, and which campaigns can have them
//! share    which clients are whose; pure
//! clock    how far two clocks are apart; pure
//! wire     the lines between a trial and `plimsoll client`
//! link     the trial's end of them, over ssh
//! party    all hosts of a trial: connected, let in by the server, run in a step
//! away     a host as a step sees it
//! guest    the host's end: runs the workers of its clients
//! ```

mod away;
mod choice;
mod clock;
mod guest;
mod link;
mod party;
mod share;
mod wire;

pub use choice::{ClientHosts, check_plan};
pub use guest::client;
pub(crate) use party::{PartStep, Party, Records};
