//! What threads meet at: the standard library's, or, in models, those of a scheduler that chooses
//! who goes on at each of them.
//!
//! The feature `models` is for `make models` alone: outside of a model these do not work.

#[cfg(not(feature = "models"))]
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64};
#[cfg(not(feature = "models"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

#[cfg(feature = "models")]
pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU64};
#[cfg(feature = "models")]
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
