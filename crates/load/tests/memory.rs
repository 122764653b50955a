//! What a step holds does not grow with its length: 1,024 workers, and as many seconds of their own
//! clocks as are asked for. They go on when what they did before is written, so that how fast this
//! machine is changes nothing.
//!
//! `PLIMSOLL_MEMORY_S=14400` makes it four hours, and prints what `docs/reliability-counts.md` has.

use std::io::sink;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use peak_alloc::PeakAlloc;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::{
    Arrival, Control, Ended, Next, Outcome, StepOptions, StepOutputs, Stop, Task, Worker, run_step,
};
use plimsoll_testkit::ClockPerThread;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const WORKERS: u32 = 1024;
/// So far may a worker be ahead of the series. Many workers hand over once in ten seconds.
const MOST_AHEAD_S: u64 = 20;
/// The parts of the step that are compared.
const PARTS: u64 = 6;
/// What is kept of each second, and what a list that grows has to spare.
const MOST_BYTES_PER_SECOND: u64 = 64;
/// Neither is due to the step's length: buffers, and what waits between two looks.
const SLACK_BYTES: u64 = 8 << 20;

/// The second that the series has reached, for workers who wait for it.
#[derive(Default)]
struct Written {
    rows: AtomicU64,
    second: Mutex<u64>,
    grown: Condvar,
}

impl Written {
    fn add_row(&self) {
        let rows = self.rows.fetch_add(1, Ordering::Relaxed) + 1;
        if rows.is_multiple_of(u64::from(WORKERS)) {
            *self.second.lock().unwrap() = rows / u64::from(WORKERS);
            self.grown.notify_all();
        }
    }

    fn wait_for(&self, second: u64) {
        let reached = self.second.lock().unwrap();
        drop(self.grown.wait_while(reached, |reached| *reached < second));
    }
}

/// An operation a second.
struct Ticking {
    clock: Arc<ClockPerThread>,
    written: Arc<Written>,
    second: u64,
}

impl Worker for Ticking {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.written
            .wait_for(self.second.saturating_sub(MOST_AHEAD_S));
        Ok(Next::Operation(0))
    }

    fn execute(&mut self) -> Outcome {
        self.second += 1;
        self.clock.advance(SECOND_NS);
        Outcome::Done { rows: 1 }
    }
}

fn seconds() -> u64 {
    let asked = std::env::var("PLIMSOLL_MEMORY_S").ok();
    asked.map_or(120, |asked| asked.parse().expect("a number of seconds"))
}

#[test]
fn what_a_step_holds_does_not_grow_with_its_length() {
    let seconds = seconds();
    let clock = Arc::new(ClockPerThread::default());
    let written = Arc::new(Written::default());
    let task = |client| Task {
        client,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(seconds * SECOND_NS),
        worker: Box::new(Ticking {
            clock: clock.clone(),
            written: written.clone(),
            second: 0,
        }),
    };
    let mut most = [0; PARTS as usize];
    let mut rows = 0;
    let outcome = run_step(
        &clock,
        &["op"],
        (1..=WORKERS).map(task).collect(),
        &Arc::new(Control::default()),
        &StepOptions::default(),
        StepOutputs {
            log: &mut sink(),
            progress: &mut |_| {},
            seconds: &mut |row| {
                let part = (row.second * PARTS / seconds) as usize;
                let part = &mut most[part.min(PARTS as usize - 1)];
                *part = MEMORY.current_usage().max(*part);
                rows += row.counts.ok;
                written.add_row();
                Ok(())
            },
        },
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished);
    assert_eq!(rows, outcome.operations[0].ok, "the series has them all");
    assert_eq!(rows, seconds * u64::from(WORKERS));
    println!(
        "{WORKERS} workers, {seconds} s: {:.1} MB in the second of {PARTS} parts, {:.1} MB in the \
         last, {:.1} MB at most",
        most[1] as f64 / 1e6,
        most[PARTS as usize - 1] as f64 / 1e6,
        MEMORY.peak_usage() as f64 / 1e6,
    );
    let allowed = most[1] as u64 + seconds * MOST_BYTES_PER_SECOND + SLACK_BYTES;
    for (part, bytes) in most.into_iter().enumerate().skip(2) {
        assert!(
            bytes as u64 <= allowed,
            "part {part}: {bytes} bytes of {allowed}"
        );
    }
    // The end of the step copies nothing that is as long as it was.
    assert!(
        MEMORY.peak_usage() as u64 <= allowed,
        "at most {}",
        MEMORY.peak_usage()
    );
}
