//! What threads meet at. `plimsoll-load-models` compiles this crate's modules with those of a
//! scheduler that chooses who goes on at each of them.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
