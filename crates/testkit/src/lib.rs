//! Fakes for tests: a clock that jumps, a worker that stalls and fails on command; builds of real
//! servers, archives of published results; scripts; a thread with fewer rights; the way tests are
//! skipped.

mod archives;
mod builds;
mod capabilities;
mod clock;
mod histogram;
mod own_mounts;
mod script;
mod skip;
mod worker;

pub use archives::{archive, published_post};
pub use builds::{CachedBuild, build_record, builds_dir, cached_build, is_root};
pub use capabilities::{CapabilitySet, without_capabilities};
pub use clock::{ClockPerThread, FakeClock};
pub use histogram::histogram_count;
pub use own_mounts::start_in_own_mounts;
pub use script::write_script;
pub use skip::skip;
pub use worker::ScriptedWorker;
