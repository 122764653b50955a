//! The load's own modules, compiled with what they take from `load/src/sync.rs` as locks and shared
//! numbers of a scheduler, which chooses who goes on at each of them, and models of how threads
//! meet. What modules take from the standard library the scheduler does not see. For tests alone.
//!
//! The modules' own unit tests run in the load, and not under a scheduler: `cargo test --lib` finds
//! nothing here.

#![cfg(not(test))]
#![allow(dead_code, reason = "models need a part of what the modules have")]

#[path = "../../load/src/arrival.rs"]
mod arrival;
#[path = "../../load/src/clock.rs"]
mod clock;
#[path = "../../load/src/control.rs"]
mod control;
#[path = "../../load/src/drive.rs"]
mod drive;
#[path = "../../load/src/intervals.rs"]
mod intervals;
#[path = "../../load/src/loop_state/mod.rs"]
mod loop_state;
pub mod models;
#[path = "../../load/src/patience.rs"]
mod patience;
#[path = "../../load/src/recorder.rs"]
mod recorder;
#[path = "../../load/src/retry.rs"]
mod retry;
#[path = "../../load/src/turns.rs"]
mod turns;
#[path = "../../load/src/worker.rs"]
mod worker;

/// What `load/src/sync.rs` takes from the standard library. Outside of a model these do not work.
mod sync {
    pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU64};
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
}

pub use arrival::Arrival;
pub use retry::RetryPolicy;
