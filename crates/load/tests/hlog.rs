//! The histogram log as the Java HdrHistogram reader sees it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_load::{
    Arrival, Control, Next, Outcome, Progress, StepOptions, StepOutputs, Stop, Task, Worker,
    no_series, run_step,
};
use plimsoll_testkit::{ClockPerThread, FakeClock};

const MS: u64 = 1_000_000;
const JAVA_IS_MISSING: i32 = 77;

/// Two kinds in turn, with service times from 100 ns to 4 ms: shorter than the distance of 5 ms
/// between them.
struct TwoKinds {
    clock: Arc<FakeClock>,
    operations: u64,
}

impl Worker for TwoKinds {
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        self.operations += 1;
        Ok(Next::Operation((self.operations % 2) as usize))
    }

    fn execute(&mut self) -> Outcome {
        let spread = self.operations.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42;
        self.clock.advance(100 + spread);
        Outcome::Done { rows: 1 }
    }
}

/// Per tag: count, p50, p99 and max in ns.
type Summary = BTreeMap<String, (u64, u64, u64, u64)>;

fn summary_of(histograms: &BTreeMap<String, Histogram<u64>>) -> Summary {
    let line = |h: &Histogram<u64>| {
        (
            h.len(),
            h.value_at_quantile(0.5),
            h.value_at_quantile(0.99),
            h.max(),
        )
    };
    histograms
        .iter()
        .map(|(tag, histogram)| (tag.clone(), line(histogram)))
        .collect()
}

fn read_with_rust(log: &[u8]) -> Summary {
    let mut histograms: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(log) {
        let LogEntry::Interval(interval) = entry.unwrap() else {
            continue;
        };
        use base64::Engine;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .unwrap();
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        let tag = interval
            .tag()
            .expect("every interval has a tag")
            .as_str()
            .to_owned();
        let total = histograms
            .entry(tag)
            .or_insert_with(|| Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap());
        total.add(&histogram).unwrap();
    }
    summary_of(&histograms)
}

/// `None` when Java or Maven is not here.
fn run_java(arguments: &[&str]) -> Option<Summary> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hlog-java/run.sh");
    let output = Command::new("sh")
        .arg(script)
        .args(arguments)
        .output()
        .unwrap();
    if output.status.code() == Some(JAVA_IS_MISSING) {
        return None;
    }
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let table = String::from_utf8(output.stdout).unwrap();
    let fields = table
        .lines()
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let number = |text: &str| text.parse::<u64>().unwrap();
    Some(
        fields
            .map(|f| {
                (
                    f[0].to_owned(),
                    (number(f[1]), number(f[2]), number(f[3]), number(f[4])),
                )
            })
            .collect(),
    )
}

fn skip(test: &str) {
    plimsoll_testkit::skip(test, "java, javac or mvn is not installed: run `make deps`");
}

#[test]
fn java_reads_what_we_write() {
    let clock = Arc::new(FakeClock::default());
    let worker = TwoKinds {
        clock: clock.clone(),
        operations: 0,
    };
    let arrival = Arrival::Even {
        operations: 200,
        period_ns: 1000 * MS,
        phase_ns: 0,
    };
    let task = Task {
        client: 1,
        kinds: vec![0, 1],
        arrival,
        stop: Stop::Operations(5000),
        worker: Box::new(worker),
    };
    let mut log = Vec::new();
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &clock,
        &["query", "insert"],
        vec![task],
        &control,
        &StepOptions::default(),
        StepOutputs {
            log: &mut log,
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )
    .unwrap();

    // What the events hold, what our reader finds in the log and what Java finds there are one and
    // the same.
    let mut recorded = BTreeMap::new();
    for operation in &outcome.operations {
        assert_eq!(operation.attempts, 2500);
        recorded.insert(
            format!("{}.service", operation.kind),
            operation.service.decode().unwrap(),
        );
        recorded.insert(
            format!("{}.response", operation.kind),
            operation.response.as_ref().unwrap().decode().unwrap(),
        );
    }
    let recorded = summary_of(&recorded);
    assert_eq!(recorded.len(), 4, "two tags for each kind");
    assert_eq!(read_with_rust(&log), recorded);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("step.hlog");
    std::fs::write(&path, &log).unwrap();
    let path = path.to_str().unwrap();
    let Some(found) = run_java(&["read", path]) else {
        return skip("load::java_reads_what_we_write");
    };
    assert_eq!(found, recorded);
    // 25 seconds of 200 operations; the filter takes the intervals that start in it: 1 s to 4 s.
    let filtered = run_java(&["read", path, "relative", "0.5", "4.5"]).unwrap();
    assert_eq!(
        filtered
            .values()
            .map(|(count, ..)| *count)
            .collect::<Vec<_>>(),
        [400; 4]
    );
}

#[test]
fn we_read_what_java_writes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("java.hlog");
    let Some(written) = run_java(&["write", path.to_str().unwrap()]) else {
        return skip("load::we_read_what_java_writes");
    };
    assert!(!written.is_empty());
    assert_eq!(read_with_rust(&std::fs::read(&path).unwrap()), written);
}

/// Many workers hand over once in ten seconds, and the log says where and for how long.
#[test]
fn intervals_of_many_workers_are_where_they_were() {
    struct ASecond(Arc<ClockPerThread>);
    impl Worker for ASecond {
        fn open(&mut self) -> Result<(), String> {
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            Ok(Next::Operation(0))
        }
        fn execute(&mut self) -> Outcome {
            self.0.advance(1000 * MS);
            Outcome::Done { rows: 1 }
        }
    }
    let clock = Arc::new(ClockPerThread::default());
    let task = |client| Task {
        client,
        kinds: vec![0],
        arrival: Arrival::Closed,
        stop: Stop::Time(12_000 * MS),
        worker: Box::new(ASecond(clock.clone())),
    };
    let mut log = Vec::new();
    run_step(
        &clock,
        &["op"],
        (1..=65).map(task).collect(),
        &Arc::new(Control::default()),
        &StepOptions::default(),
        StepOutputs {
            log: &mut log,
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )
    .unwrap();
    let log = String::from_utf8(log).unwrap();
    let place = |line: &str| -> (f64, f64) {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[1].parse().unwrap(), cells[2].parse().unwrap())
    };
    let places: Vec<(f64, f64)> = log
        .lines()
        .filter(|line| line.starts_with("Tag=op.service,"))
        .map(place)
        .collect();
    assert_eq!(places, [(0.0, 10.0), (10.0, 2.0)], "{log}");
}
