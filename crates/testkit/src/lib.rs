//! Fakes for tests: a clock that jumps, a worker that stalls and fails on command, and the way tests are skipped.

mod clock;
mod histogram;
mod skip;
mod worker;

pub use clock::FakeClock;
pub use histogram::histogram_count;
pub use skip::skip;
pub use worker::ScriptedWorker;
