//! A trial whose load db_bench makes: a process of it for each step, and results from what it
//! prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_core::db_bench::{Output, WARNING, parse};
use plimsoll_core::plan::{
    Ends, KEY_BYTES, KvStep, KvWork, MULTIGET_KEYS, Operation, RANGE_KEYS, Step, VALUE_BYTES, Work,
};
use plimsoll_core::readings::{CpuShare, HostReading, Reading, Readings};
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord};
use plimsoll_core::rocksdb_report::{DRIVEN_BY_DB_BENCH, LOGICAL_BYTES, PRINTED};
use plimsoll_core::units::{NS_PER_S, format_grouped};
use plimsoll_engine::DrainAction;
use plimsoll_engine::rocksdb::db_bench::{DbBench, DbBenchProcess, Job, Progress};
use plimsoll_host::{ChildUsage, Collector, EngineUnderLoad, Looks, Proc, child_usage};
use plimsoll_load::Command;
use plimsoll_store::event::{Event, ServerReady, StepDone};
use plimsoll_store::layout::series_dir;
use plimsoll_store::series::{OperationSecond, host_path, operations_path, write_operations};
use plimsoll_workload::kv::{Maintenance, is_universal, step_settings};

use super::drain::wait_out;
use super::early_end::EarlyEnd;
use super::start::create_data_dir;
use super::{DRAIN_LIMIT, Trial, send};
use crate::message::{StepProgress, TrialMessage};

/// Between two looks at a process: so late its end and a wish to stop are noticed.
const LOOK: Duration = Duration::from_millis(20);
/// A step with a length may take so much longer, as the scripts around db_bench allow.
const OVERTIME: Duration = Duration::from_secs(600);

/// db_bench of a trial's build.
struct Driver {
    program: DbBench,
    /// Where its outputs are kept.
    logs: PathBuf,
}

/// Runs all steps.
pub(super) fn run(trial: &mut Trial<'_>) -> Result<Option<String>, EarlyEnd> {
    let order = trial.order;
    if order.has_turns {
        return Err(EarlyEnd::Failed(
            "db_bench cannot be time-sliced; use --blocks, or leave out driver = \"db_bench\""
                .into(),
        ));
    }
    let driver = prepare(trial)?;
    let steps = order.cell.workload.steps();
    for (index, step) in steps.iter().enumerate() {
        trial.next_step = index;
        trial.begin_step(step)?;
        match run_step(trial, &driver, step) {
            Ok(done) => {
                let summary = done
                    .notes
                    .get(&format!("{PRINTED}qps"))
                    .map_or_else(String::new, |rate| {
                        format!("{} operations/s", format_grouped(rate.round() as u64))
                    });
                trial.end_step(done, summary)?;
            }
            Err(end) => {
                let end = trial
                    .watchdog
                    .verdict()
                    .map_or(end, |reason| EarlyEnd::Failed(reason.to_owned()));
                return Err(trial.record_failed_step(step, end, Vec::new()));
            }
        }
        trial.events.sync()?;
        if step.drain_after && (index + 1 < steps.len() || order.makes_state) {
            drain(trial, &driver, step)?;
        }
    }
    Ok(None)
}

/// Has db_bench open an empty database, and writes down what it runs with.
fn prepare(trial: &mut Trial<'_>) -> Result<Driver, EarlyEnd> {
    let order = trial.order;
    let started = Instant::now();
    let build = order.build.as_ref().ok_or_else(|| {
        EarlyEnd::Failed("the cell has no build; run `plimsoll build add`".into())
    })?;
    let program = DbBench::new(build, &order.cell.config.prefix, &order.cell.config.env)?;
    if order.before.is_empty() {
        create_data_dir(&order.data_dir)?;
    }
    let logs = trial.make_server_dir()?;
    let series = series_dir(&order.dir);
    fs::create_dir_all(&series).map_err(|error| {
        EarlyEnd::Failed(format!("failed to make {}: {error}", series.display()))
    })?;
    let (settings, printed) = program.look(
        &order.settings,
        &order.data_dir.join("look"),
        &logs.join("look.log"),
    )?;
    let warnings = parse(&printed)
        .map(|output| output.warnings)
        .unwrap_or_default();
    let toolchain = build
        .toolchain
        .iter()
        .map(|(name, value)| format!("{name}: {value}"));
    trial.events.append(&Event::ServerReady(ServerReady {
        version: settings
            .get("rocksdb_version")
            .cloned()
            .unwrap_or_else(|| build.version.clone()),
        build_options: toolchain
            .chain(warnings.iter().map(|warning| format!("{WARNING}{warning}")))
            .collect(),
        embedded: true,
        effective_settings: settings,
        session: None,
        held: None,
        seconds: started.elapsed().as_secs_f64(),
    }))?;
    Ok(Driver { program, logs })
}

/// What a step is to db_bench.
fn job(trial: &Trial<'_>, step: &Step, kv: &KvStep, report: PathBuf) -> Job {
    let order = trial.order;
    let is_beside_writes = kv.background_bytes_per_s.is_some();
    let mut flags: Vec<(&'static str, String)> = Vec::new();
    let benchmark = match (kv.work, is_beside_writes) {
        (KvWork::Fill, _) => {
            flags.push(("disable_wal", "1".to_owned()));
            "fillseq"
        }
        (KvWork::Overwrite, _) => "overwrite",
        (KvWork::Get, true) => "readwhilewriting",
        (KvWork::Get, false) => "readrandom",
        (KvWork::MultiGet, _) => {
            flags.extend([
                ("batch_size", MULTIGET_KEYS.to_string()),
                ("multiread_batched", "true".to_owned()),
            ]);
            "multireadrandom"
        }
        (KvWork::Range { is_backward }, is_beside_writes) => {
            flags.extend([
                ("seek_nexts", RANGE_KEYS.to_string()),
                ("reverse_iterator", is_backward.to_string()),
            ]);
            if is_beside_writes {
                "seekrandomwhilewriting"
            } else {
                "seekrandom"
            }
        }
    };
    if is_beside_writes || kv.work == KvWork::Overwrite {
        flags.push(("merge_operator", "put".to_owned()));
    }
    Job {
        benchmarks: if kv.waits {
            vec![benchmark, "waitforcompaction", "stats"]
        } else {
            vec![benchmark, "stats"]
        },
        keys: order.cell.workload.loaded_rows(),
        threads: step.clients,
        seconds: step.duration_ns().map(|ns| ns.div_ceil(NS_PER_S as u64)),
        operations: match step.ends {
            // The load puts every key once, and does not know how many that are.
            Ends::Operations { per_client } if kv.work != KvWork::Fill => Some(per_client),
            _ => None,
        },
        background_bytes_per_s: kv.background_bytes_per_s,
        flags,
        is_existing: kv.work != KvWork::Fill,
        seed: seed(order.seed, trial.next_step),
        report: Some(report),
    }
}

/// db_bench takes 0 for none, and signed numbers.
fn seed(seed: u64, step: usize) -> u64 {
    (seed % (1 << 31)) + step as u64 + 1
}

/// What a step's process leaves.
struct StepOutput {
    output: Output,
    host: Readings,
    /// By second, from its own report.
    seconds: Vec<OperationSecond>,
    /// It came to its own end.
    is_complete: bool,
}

fn run_step(trial: &mut Trial<'_>, driver: &Driver, step: &Step) -> Result<StepDone, EarlyEnd> {
    let Work::Rocksdb(kv) = step.work else {
        return Err(EarlyEnd::Failed(format!(
            "{} is not a step of RocksDB's benchmark; use another workload for it",
            step.name
        )));
    };
    let StepOutput {
        output,
        mut host,
        seconds,
        is_complete,
    } = run_process(trial, driver, step, &kv)?;
    let order = trial.order;
    host.put(HostReading::Database, database_bytes(&order.data_dir));
    write_operations(operations_path(&order.dir, &step.name), &seconds)?;
    let mut notes = output.stats.notes();
    notes.extend(facts(&output));
    notes.insert(
        LOGICAL_BYTES.to_owned(),
        order.cell.workload.loaded_rows() as f64 * f64::from(KEY_BYTES + VALUE_BYTES),
    );
    if kv.waits {
        notes.insert(
            "wait_is_complete".to_owned(),
            f64::from(u8::from(is_complete)),
        );
    }
    let elapsed_ns = elapsed_ns(&output);
    let operation = operation(&output, step.operation, elapsed_ns);
    let client = ClientRecord {
        client: 1,
        kind: operation.kind.clone(),
        ok: operation.ok,
        rows: operation.rows,
        from_ns: 0,
        to_ns: elapsed_ns,
        turns: None,
    };
    Ok(StepDone {
        client_hosts: Vec::new(),
        step: step.name.clone(),
        primary: step.operation,
        elapsed_ns,
        operations: vec![operation],
        clients: vec![client],
        host,
        notes,
        ..StepDone::default()
    })
}

/// Runs the step's process to its end and reads what it printed.
fn run_process(
    trial: &Trial<'_>,
    driver: &Driver,
    step: &Step,
    kv: &KvStep,
) -> Result<StepOutput, EarlyEnd> {
    let (order, program) = (trial.order, &driver.program);
    let report = driver.logs.join(format!("{}.r.csv", step.name));
    let job = job(trial, step, kv, report.clone());
    let arguments =
        program.arguments(&step_settings(step, &order.settings), &job, &order.data_dir)?;
    let log = driver.logs.join(format!("benchmark_{}.log", step.name));
    let limit = job
        .seconds
        .map(|seconds| Duration::from_secs(seconds) + OVERTIME);
    let before = child_usage();
    let started = Instant::now();
    let process = program.start(&arguments, &log)?;
    let watch = EngineUnderLoad {
        data_dir: &order.data_dir,
        server_pids: vec![process.pid()],
        is_embedded: false,
    };
    let series = Looks::Series(host_path(&order.dir, &step.name));
    let collector = Collector::start(Proc::new(), watch, series);
    let ended = wait_for(trial, &process, limit, |elapsed| {
        send_progress(trial, step, &report, elapsed);
    });
    let mut host = collector.stop();
    // It is reaped here: only then does the kernel say what CPU it used.
    drop(process);
    let text = fs::read(&log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let is_complete = match ended? {
        ProcessEnd::Done => true,
        // The benchmark itself may be done when its wait is not: its result stands, as it does for
        // the scripts around db_bench.
        ProcessEnd::Late if kv.waits && parse(&text).is_some() => false,
        ProcessEnd::Late => {
            let seconds = started.elapsed().as_secs();
            return Err(EarlyEnd::Failed(format!(
                "db_bench was not done after {seconds} s and was killed; see {}",
                log.display()
            )));
        }
        ProcessEnd::Failed(reason) => return Err(EarlyEnd::Failed(reason)),
    };
    let output = parse(&text).ok_or_else(|| {
        EarlyEnd::Failed(format!("db_bench printed no result; see {}", log.display()))
    })?;
    take_usage(&mut host, before, child_usage());
    let seconds = fs::read_to_string(&report)
        .map(|text| seconds(&text, step.operation))
        .unwrap_or_default();
    Ok(StepOutput {
        output,
        host,
        seconds,
        is_complete,
    })
}

/// How a process came to its end.
enum ProcessEnd {
    Done,
    Late,
    Failed(String),
}

/// Waits for the end of a process, and kills it when somebody wants the trial's end or time is
/// over.
fn wait_for(
    trial: &Trial<'_>,
    process: &DbBenchProcess,
    limit: Option<Duration>,
    mut at_look: impl FnMut(Duration),
) -> Result<ProcessEnd, EarlyEnd> {
    let started = Instant::now();
    loop {
        match process.progress() {
            Progress::Done => return Ok(ProcessEnd::Done),
            Progress::Failed(status, tail) => {
                return Ok(ProcessEnd::Failed(format!(
                    "db_bench ended with {status}; its output ends with:\n{tail}"
                )));
            }
            Progress::Running => {}
        }
        let elapsed = started.elapsed();
        if trial.control.command() == Command::Stop {
            return Err(EarlyEnd::Interrupted);
        }
        if limit.is_some_and(|limit| elapsed > limit) {
            return Ok(ProcessEnd::Late);
        }
        at_look(elapsed);
        std::thread::sleep(LOOK);
    }
}

/// About once a second, what the report says by then.
fn send_progress(trial: &Trial<'_>, step: &Step, report: &Path, elapsed: Duration) {
    if elapsed.as_millis() % 1000 >= LOOK.as_millis() {
        return;
    }
    let rows = fs::read_to_string(report)
        .map(|text| seconds(&text, step.operation))
        .unwrap_or_default();
    let keys = f64::from(step.operation.keys());
    let done: u64 = rows.iter().map(|row| row.ok).sum();
    let elapsed_s = elapsed.as_secs_f64();
    let total = step.duration_ns().map_or(0.0, |ns| ns as f64 / NS_PER_S);
    send(&TrialMessage::Progress(StepProgress {
        step: step.name.clone(),
        index: trial.next_step + 1,
        steps: trial.order.cell.workload.steps().len(),
        elapsed_s,
        done: elapsed_s.min(total),
        total,
        measure: "s".into(),
        rate_now: rows.last().map_or(0.0, |row| row.ok as f64 * keys),
        rate_mean: if rows.is_empty() {
            0.0
        } else {
            done as f64 * keys / rows.len() as f64
        },
        rate_unit: "operations/s".into(),
        eta_s: (total > 0.0).then(|| (total - elapsed_s).max(0.0)),
        ..StepProgress::default()
    }));
}

/// What the scripts around db_bench do between steps: they let the load's compaction come to its
/// end, and put a leveled tree into the same shape in every run.
fn drain(trial: &mut Trial<'_>, driver: &Driver, step: &Step) -> Result<(), EarlyEnd> {
    let (order, program) = (trial.order, &driver.program);
    let benchmarks =
        match Maintenance::after(step, is_universal(&order.settings), order.makes_state) {
            None => return Ok(()),
            Some(Maintenance::EmptyLevel0) => vec![
                "flush",
                "waitforcompaction",
                "compact0",
                "waitforcompaction",
                "stats",
            ],
            Some(Maintenance::Wait) => vec!["waitforcompaction", "stats"],
        };
    let action = benchmarks[..benchmarks.len() - 1].join(", ");
    let started = Instant::now();
    let wait = Duration::from_nanos(order.cell.workload.wait_ns(step));
    send(&TrialMessage::Draining {
        seconds: wait.as_secs_f64(),
    });
    let job = Job {
        benchmarks,
        keys: order.cell.workload.loaded_rows(),
        threads: 1,
        seconds: None,
        operations: None,
        background_bytes_per_s: None,
        flags: Vec::new(),
        is_existing: true,
        seed: seed(order.seed, trial.next_step),
        report: None,
    };
    let arguments = program.arguments(&order.settings, &job, &order.data_dir)?;
    let process = program.start(
        &arguments,
        &driver.logs.join(format!("drain_{}.log", step.name)),
    )?;
    let result = match wait_for(trial, &process, Some(DRAIN_LIMIT), |_| ())? {
        ProcessEnd::Done => String::new(),
        ProcessEnd::Late => "left: time was over".to_owned(),
        ProcessEnd::Failed(reason) => return Err(EarlyEnd::Failed(reason)),
    };
    drop(process);
    let seconds = started.elapsed().as_secs_f64();
    let waited_s = wait_out(started, wait, &|| trial.control.command() == Command::Stop)?;
    trial.record_drain(
        step,
        vec![DrainAction {
            action: format!("db_bench {action}"),
            seconds,
            result,
        }],
        seconds,
        waited_s,
    )
}

/// The CPU of the process, which the kernel reports when it has ended: the embedded engine and its
/// client are one.
fn take_usage(
    host: &mut Readings,
    before: Result<ChildUsage, String>,
    after: Result<ChildUsage, String>,
) {
    let used = |pick: fn(&ChildUsage) -> f64| match (&before, &after) {
        (Ok(before), Ok(after)) => Ok((pick(after) - pick(before)).max(0.0)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    };
    host.put(HostReading::OwnUser, used(|usage| usage.user_s));
    host.put(HostReading::OwnSystem, used(|usage| usage.system_s));
    host.put_cpu(CpuShare::Embedded {
        process: used(|usage| usage.user_s + usage.system_s),
    });
}

/// Table and blob files.
fn database_bytes(dir: &Path) -> Reading {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) => {
            return Reading::Unavailable(format!("the data directory cannot be read: {error}"));
        }
    };
    let is_data = |path: &Path| {
        path.extension()
            .is_some_and(|end| end == "sst" || end == "blob")
    };
    let sizes = entries
        .flatten()
        .filter(|entry| is_data(&entry.path()))
        .filter_map(|entry| entry.metadata().ok());
    Reading::Ok(sizes.map(|data| data.len()).sum::<u64>() as f64)
}

/// Of the old line, which has no seconds, from rate and count.
fn elapsed_ns(output: &Output) -> u64 {
    let of_rate = || {
        let rate = output.rate().filter(|rate| *rate > 0.0)?;
        Some(operations(output) as f64 / rate)
    };
    let seconds = output
        .operations
        .map(|(seconds, _)| seconds)
        .or_else(of_rate)
        .unwrap_or(0.0);
    (seconds * NS_PER_S) as u64
}

/// Operations as db_bench counts them: keys of a `MultiGet`, whose calls have one latency each.
fn operations(output: &Output) -> u64 {
    let keys = if output.benchmark == "multireadrandom" {
        u64::from(MULTIGET_KEYS)
    } else {
        1
    };
    output.operations.map_or_else(
        || output.latencies.map_or(0, |(count, _)| count * keys),
        |(_, count)| count,
    )
}

fn operation(output: &Output, kind: Operation, elapsed_ns: u64) -> OperationRecord {
    let keys = u64::from(kind.keys());
    let ok = operations(output) / keys;
    let usec_op: f64 = output.usec_op.parse().unwrap_or(0.0);
    let ranges: Vec<(u64, u64, u64)> = output
        .buckets
        .iter()
        .map(|(above_us, up_to_us, count)| (above_us * 1000, up_to_us * 1000, *count))
        .collect();
    OperationRecord {
        kind: kind.into(),
        attempts: ok,
        ok,
        rows: ok
            * if kind == Operation::Range {
                u64::from(RANGE_KEYS)
            } else {
                keys
            },
        worker_ns: if usec_op > 0.0 {
            (usec_op * (ok * keys) as f64 * 1000.0) as u64
        } else {
            elapsed_ns
        },
        service: EncodedHistogram::of_ranges(
            &ranges,
            output.max_us.map_or(0, |us| (us * 1000.0) as u64),
        ),
        ..OperationRecord::default()
    }
}

/// What it printed stands as printed.
fn facts(output: &Output) -> BTreeMap<String, f64> {
    let number = |text: &str| text.parse::<f64>().ok();
    let percentile = |at: usize| output.percentiles[at];
    let mut facts: BTreeMap<String, f64> = [
        ("qps", number(&output.ops_sec)),
        ("usec_op", number(&output.usec_op)),
        ("mb_sec", output.mb_sec.as_deref().and_then(number)),
        ("mean_service_us", output.latencies.map(|(_, mean)| mean)),
        ("p50_service_us", percentile(0)),
        ("p99_service_us", percentile(1)),
        ("p999_service_us", percentile(2)),
        ("p9999_service_us", percentile(3)),
        ("max_service_us", output.max_us),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((format!("{PRINTED}{name}"), value?)))
    .collect();
    if let Some((found, asked)) = output.found.filter(|(_, asked)| *asked > 0) {
        facts.insert("found_ratio".to_owned(), found as f64 / asked as f64);
    }
    facts.insert(DRIVEN_BY_DB_BENCH.to_owned(), 1.0);
    facts
}

/// `secs_elapsed,interval_qps`: a line that comes late stands for the seconds since the one before.
fn seconds(report: &str, kind: Operation) -> Vec<OperationSecond> {
    let mut rows = Vec::new();
    let mut last = 0;
    for line in report.lines().skip(1) {
        let Some((second, rate)) = line.split_once(',') else {
            continue;
        };
        let (Ok(second), Ok(rate)) = (second.trim().parse::<u32>(), rate.trim().parse::<u64>())
        else {
            continue;
        };
        for at in last..second {
            let ok = rate / u64::from(kind.keys());
            rows.push(OperationSecond {
                second: at,
                client: 1,
                kind: kind.into(),
                ok,
                rows: rate,
                ..OperationSecond::default()
            });
        }
        last = last.max(second);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_line_of_the_report_stands_for_the_seconds_before_it() {
        let rows = seconds(
            "secs_elapsed,interval_qps\n1,500\n2,0\n5,100\nx,y\n6",
            Operation::Get,
        );
        let of: Vec<(u32, u64)> = rows.iter().map(|row| (row.second, row.ok)).collect();
        assert_eq!(of, [(0, 500), (1, 0), (2, 100), (3, 100), (4, 100)]);
        let rows = seconds("secs_elapsed,interval_qps\n1,500\n", Operation::MultiGet);
        assert_eq!(
            (rows[0].ok, rows[0].rows, rows[0].kind.as_str()),
            (50, 500, "multiget")
        );
    }

    #[test]
    fn both_result_lines_become_operations() {
        let v2 = parse(
            "multireadrandom :  6.5 micros/op 300000 ops/sec 10.000 seconds 3000000 operations; (9 \
            of 10 found)\n",
        )
        .unwrap();
        let operation = operation(&v2, Operation::MultiGet, elapsed_ns(&v2));
        assert_eq!(
            (elapsed_ns(&v2), operation.ok, operation.rows),
            (10_000_000_000, 300_000, 3_000_000)
        );
        assert_eq!(operation.worker_ns, 19_500_000_000);
        assert_eq!(facts(&v2)["found_ratio"], 0.9);
        let v1 = parse(
            "readrandom : 10.0 micros/op 200000 ops/sec; 80.0 MB/s (5 of 5 found)\nCount: 1000000 \
            Average: 9.9  StdDev: 1\n",
        )
        .unwrap();
        assert_eq!(
            (elapsed_ns(&v1), operations(&v1)),
            (5_000_000_000, 1_000_000)
        );
        assert_eq!(facts(&v1)[&format!("{PRINTED}mb_sec")], 80.0);
    }
}
