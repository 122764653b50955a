//! Short self-tests of the machine: what it can do just now, told by work that is always the same.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Iterations of the integer loop of a turn's witness: a fraction of a millisecond.
const WITNESS_ITERATIONS: u64 = 200_000;
const CANARY_ITERATIONS: u64 = 100_000_000;
/// Larger than the caches of most machines.
const MEMORY_BYTES: usize = 64 << 20;
const MEMORY_PASSES: usize = 8;
const SYNC_BYTES: usize = 4096;
const MOST_SYNCS: usize = 200;
/// Storage may be slow; the canary must not be.
const SYNC_LIMIT: Duration = Duration::from_secs(1);

/// What the machine could do before a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canary {
    /// Iterations per microsecond of a fixed integer loop on one CPU.
    pub integer_per_us: f64,
    /// Bytes per second of summing memory that no cache holds.
    pub memory_bytes_per_s: f64,
    /// Median time in nanoseconds of a write of 4 KiB with `fdatasync`; none where the folder takes
    /// no file.
    pub sync_ns: Option<f64>,
}

/// Runs all three tests; `dir` is where data directories are. A second or two.
pub fn run_canary(dir: &Path) -> Canary {
    Canary {
        integer_per_us: integers_per_us(CANARY_ITERATIONS),
        memory_bytes_per_s: stream_memory(),
        sync_ns: time_syncs(dir).ok(),
    }
}

/// Iterations per microsecond of a fixed integer loop: how fast this CPU is just now.
pub fn speed_witness() -> f64 {
    integers_per_us(WITNESS_ITERATIONS)
}

/// Knuth's MMIX generator: each iteration needs the one before, so that nothing but the clock speed
/// matters. The compiler may not look at the value between two iterations: it would do several in
/// one.
fn integers_per_us(iterations: u64) -> f64 {
    let start = Instant::now();
    let mut x = black_box(1u64);
    for _ in 0..iterations {
        x = black_box(
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407),
        );
    }
    black_box(x);
    iterations as f64 / (start.elapsed().as_secs_f64() * 1e6).max(1e-9)
}

fn stream_memory() -> f64 {
    let memory = vec![1u64; MEMORY_BYTES / size_of::<u64>()];
    let start = Instant::now();
    for _ in 0..MEMORY_PASSES {
        black_box(
            black_box(&memory)
                .iter()
                .fold(0u64, |sum, value| sum.wrapping_add(*value)),
        );
    }
    (MEMORY_BYTES * MEMORY_PASSES) as f64 / start.elapsed().as_secs_f64().max(1e-9)
}

fn time_syncs(dir: &Path) -> std::io::Result<f64> {
    let path = dir.join(format!(".canary-{}", std::process::id()));
    let times = File::create(&path).and_then(|mut file| {
        let page = [0x5au8; SYNC_BYTES];
        let (start, mut times) = (Instant::now(), Vec::new());
        while times.len() < MOST_SYNCS && (times.is_empty() || start.elapsed() < SYNC_LIMIT) {
            let begin = Instant::now();
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&page)?;
            file.sync_data()?;
            times.push(begin.elapsed().as_nanos() as f64);
        }
        Ok(times)
    });
    let removed = fs::remove_file(&path);
    let mut times = times?;
    removed?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_tells_three_things_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let canary = Canary {
            integer_per_us: speed_witness(),
            memory_bytes_per_s: stream_memory(),
            sync_ns: time_syncs(dir.path()).ok(),
        };
        assert!(
            canary.integer_per_us > 1.0 && canary.memory_bytes_per_s > 1e6,
            "{canary:?}"
        );
        assert!(canary.sync_ns.is_some_and(|ns| ns > 0.0), "{canary:?}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(time_syncs(&dir.path().join("missing")).is_err());
    }
}
