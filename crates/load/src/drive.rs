//! The one load loop: a thread that does what the state of its loop says.

use std::time::Duration;

use plimsoll_core::buggify::{self, Point};
use plimsoll_core::clock::Clock;

use crate::loop_state::{Act, LoopState};
use crate::worker::{Next, Worker};

/// Drives a worker until its stop rule, a command or a failure ends it.
///
/// A function of its own in the binary: what is counted inside it is what an operation costs.
#[inline(never)]
pub(crate) fn drive<C: Clock>(clock: &C, worker: &mut dyn Worker, state: &mut LoopState<'_>) {
    let mut now_ns = clock.now_ns();
    loop {
        match state.next(now_ns) {
            Act::Prepare => {
                let next = worker.prepare();
                // The operation is sent by this clock: what prepared it is not timed.
                now_ns = clock.now_ns();
                match next {
                    Ok(Next::Operation(kind)) => state.prepared(kind),
                    other => state.not_prepared(other, now_ns),
                }
            }
            Act::Send => {
                let outcome = worker.execute();
                now_ns = clock.now_ns();
                state.executed(outcome, now_ns);
            }
            Act::BeginMeasuring => {
                worker.begin_measuring();
                now_ns = clock.now_ns();
            }
            Act::SleepUntil(until_ns) => {
                clock.sleep_until_ns(until_ns);
                now_ns = clock.now_ns();
            }
            Act::Park => {
                state.shared().control.wait_while_parked();
                buggify::pause(Point::LateTurn, Duration::from_micros(200));
                state.unparked();
                now_ns = clock.now_ns();
            }
            Act::End => break,
        }
    }
    if state.end_warm_up() {
        worker.begin_measuring();
    }
    state.note_end(clock.now_ns());
}
