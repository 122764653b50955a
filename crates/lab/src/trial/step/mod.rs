//! One step: workers and collectors side by side, then the counts are checked and everything is
//! written down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{ALL_EVENTS, KvWork, STATEMENT_NOTES, Step, StepKind, Verify};
use plimsoll_core::record::{ClientRecord, OperationRecord, Reading, TableCheck};
use plimsoll_core::rocksdb_stats;
use plimsoll_core::units::format_grouped;
use plimsoll_engine::Health;
use plimsoll_load::{
    Command, Ended, MonotonicClock, Phase, Progress, StepError, StepOptions, StepOutcome,
    run_step as run_workers,
};
use plimsoll_store::event::{Event, StepDone, StepStart};
use plimsoll_store::series::{
    LevelSample, OperationSecond, levels_path, turns_path, write_levels, write_operations,
    write_turns,
};
use plimsoll_workload::{SharedServer, WorkloadRun};

use super::measuring::{Beside, Measuring};
use super::progress::Meter;
use super::turns::{Cut, Director};
use super::{Broken, DRAIN_LIMIT, SERVER_FOLDER, Trial, record_crash, say};
use crate::leftovers::end_server;
use crate::message::TrialMessage;

/// So long a step in turns may work: longer than anybody waits.
const TIMELESS_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A background rate below this share of its target misses the SLA, the rule of the original
/// report.
const SLA_SHARE: f64 = 0.95;

pub(super) fn run_step(
    trial: &mut Trial<'_>,
    step: &Step,
    run: &mut WorkloadRun,
    server: &SharedServer,
    is_embedded: bool,
    is_last: bool,
) -> Result<(), Broken> {
    let steps = trial.order.cell.workload.steps().len();
    say(&TrialMessage::StepStart {
        step: step.name.clone(),
        index: trial.next_step + 1,
        steps,
    });
    trial.events.append(&Event::StepStart(StepStart {
        step: step.name.clone(),
    }))?;
    let mut left = Left::default();
    attempt_step(trial, step, run, server, is_embedded, is_last, &mut left).map_err(|broken| {
        let broken = trial.fail_step(step, server, broken, left.operations);
        if left.has_operations_under_way {
            // Nothing waits for the server any longer, although it may still answer.
            end_server(&trial.order.dir);
        }
        broken
    })
}

/// What a step that fails leaves.
#[derive(Default)]
struct Left {
    /// What was counted.
    operations: Vec<OperationRecord>,
    /// Workers are still in the server.
    has_operations_under_way: bool,
}

fn attempt_step(
    trial: &mut Trial<'_>,
    step: &Step,
    run: &mut WorkloadRun,
    server: &SharedServer,
    is_embedded: bool,
    is_last: bool,
    left: &mut Left,
) -> Result<(), Broken> {
    let order = trial.order;
    let steps = order.cell.workload.steps().len();
    let has_turns = order.has_turns && step.can_take_turns();
    let mut timeless = step.clone();
    if has_turns {
        // Its end is told.
        timeless.set_duration(TIMELESS_NS, Some(0));
    }
    let step = &timeless;
    let tasks = run.tasks(step)?;
    // Steps of few long operations have none: there the server's answer decides.
    let watchdog = tasks
        .options
        .watchdog
        .map(|_| Duration::from_nanos(order.watchdog_ns));
    let options = StepOptions {
        watchdog,
        ..tasks.options.clone()
    };
    let facts = tasks.facts.clone();
    let path = order.dir.join(format!("{}.hlog", step.name));
    let io = |what: &str, error: std::io::Error| {
        Broken::Failed(format!("failed to write {what} of {}: {error}", step.name))
    };
    let mut log =
        BufWriter::new(File::create(&path).map_err(|error| io("the histogram log", error))?);
    let series = order.dir.join("series");
    std::fs::create_dir_all(&series).map_err(|error| io("the series", error))?;
    let mut meter = Meter::new(step, trial.next_step, steps);
    let beside = Beside {
        server: server.clone(),
        data_dir: order.data_dir.clone(),
        is_embedded,
        series: series.join(format!("{}.host.tsv", step.name)),
        profile: order
            .profile_ns
            .map(|_| (order.dir.join(SERVER_FOLDER), step.name.clone())),
        has_wait: matches!(step.kind, StepKind::Kv(kv) if kv.waits),
    };
    // Turns have a meter of their own.
    let mut measuring = (!has_turns).then(|| Measuring::new(beside, options.warm_up_ns > 0));
    let mut crashed = None;
    let mut done = 0;
    let mut levels: Vec<LevelSample> = Vec::new();
    let mut next_level_look_s = 0;
    let mut watch = |progress: &Progress| {
        if let Some(measuring) = &mut measuring {
            measuring.observe(progress.phase);
        }
        // A look between the turns would fall into somebody else's.
        let has_levels = progress.phase == Phase::Measuring
            && !has_turns
            && progress.elapsed_s as u32 >= next_level_look_s;
        if let Some(store) = server.kv().filter(|_| has_levels) {
            let second = progress.elapsed_s as u32;
            next_level_look_s = second + 1;
            levels.extend(store.levels().unwrap_or_default().into_iter().map(|level| {
                LevelSample {
                    second,
                    level: level.level,
                    files: level.files,
                    bytes: level.bytes,
                }
            }));
        }
        let now = progress
            .kinds
            .iter()
            .map(|(operations, _)| operations)
            .sum();
        if now != std::mem::replace(&mut done, now) {
            trial.watchdog.note_life();
        }
        if let Some(progress) = meter.update(progress).filter(|_| !has_turns) {
            say(&TrialMessage::Progress(progress));
        }
        // Recorded at once: the workers of a server that is gone may take a while to notice. One
        // that hung was killed, and did not crash.
        if crashed.is_none()
            && server.health() != Health::Running
            && trial.watchdog.verdict().is_none()
        {
            crashed = record_crash(&mut trial.events, server, Some(&step.name));
            if crashed.is_some() {
                trial.control.give(Command::Stop);
            }
        }
    };
    let mut taken = None;
    let outcome = if has_turns {
        let limit = Duration::from_nanos(order.watchdog_ns);
        let director = Director::new(
            &trial.lifeline.directions,
            trial.control,
            &step.name,
            limit,
            &trial.watchdog,
            server,
        )?;
        let director = director.with_open_limit(options.open_timeout);
        let director = director.after_writing(
            order.cell.workload.steps()[..trial.next_step]
                .last()
                .is_some_and(Step::is_writing),
        );
        let (outcome, turns) = director.direct(|clock, board| {
            let options = StepOptions {
                board: Some(board.clone()),
                ..options.clone()
            };
            run_workers(
                clock,
                &tasks.kinds,
                tasks.tasks,
                trial.control,
                &options,
                &mut log,
                &mut watch,
            )
        });
        taken = Some(turns);
        outcome
    } else {
        run_workers(
            &Arc::new(MonotonicClock),
            &tasks.kinds,
            tasks.tasks,
            trial.control,
            &options,
            &mut log,
            &mut watch,
        )
    };
    let is_finished = matches!(&outcome, Ok(outcome) if outcome.ended == Ended::Finished);
    let is_stopped = || trial.control.command() == Command::Stop;
    let finished = if is_finished {
        run.finish(step, Instant::now() + DRAIN_LIMIT, &is_stopped)
    } else {
        Ok(BTreeMap::new())
    };
    let elapsed = outcome
        .as_ref()
        .ok()
        .map(|outcome| Duration::from_nanos(outcome.elapsed_ns));
    let measured = measuring.map_or(Ok(None), |measuring| measuring.finish(elapsed));
    if let Some(crashed) = crashed {
        return Err(crashed);
    }
    let mut outcome = match outcome {
        Ok(outcome) => outcome,
        Err(StepError::Hung(what)) => {
            left.has_operations_under_way = true;
            // Where it was asked to stop, an operation goes on and on, and nothing hung.
            let is_stopped = trial.control.command() == Command::Stop;
            if is_stopped {
                return Err(Broken::Interrupted);
            }
            // Said before the server is killed: it did not crash.
            let reason = format!("hung: {what}");
            trial.watchdog.end_hung_server(&reason);
            return Err(Broken::Failed(reason));
        }
        Err(error) => return Err(Broken::Failed(error.to_string())),
    };
    for (kind, statements) in tasks.kinds.iter().zip(run.statements(&facts)) {
        if let Some(operation) = outcome
            .operations
            .iter_mut()
            .find(|operation| operation.kind == *kind)
        {
            operation.statements = Some(statements);
        }
    }
    let (mut counters, mut host, recorder) = measured?.map_or_else(Default::default, |measured| {
        (measured.counters, measured.host, measured.recorder)
    });
    match taken {
        None => {}
        Some(Ok(taken)) => {
            write_turns(turns_path(&order.dir, &step.name), &taken.turns)?;
            (counters, host) = (taken.counters, taken.host);
            let is_primary = |client: &&mut ClientRecord| {
                [client.kind.as_str(), ALL_EVENTS].contains(&step.primary_operation())
            };
            for client in outcome.clients.iter_mut().filter(is_primary) {
                client.turns = taken.sums.get(&client.client).copied();
            }
        }
        // A failure of the workers' own tells more than that there were no turns any more.
        Some(Err(Cut::Failed(reason))) if outcome.ended == Ended::Stopped => {
            return Err(Broken::Failed(reason));
        }
        Some(Err(_)) => {}
    }
    if order.cell.server.is_some() {
        hide_own_disk(&mut host);
    }
    log.flush()
        .map_err(|error| io("the histogram log", error))?;
    write_operations(
        series.join(format!("{}.operations.tsv", step.name)),
        seconds(&outcome, &tasks.kinds),
    )?;
    match &outcome.ended {
        Ended::Finished => {}
        Ended::Stopped => {
            left.operations = outcome.operations;
            return Err(Broken::Interrupted);
        }
        Ended::Failed(failure) => {
            let reason = format!("{} ({})", failure.message, failure.class);
            left.operations = outcome.operations;
            return Err(Broken::Failed(reason));
        }
    }
    run.book(step, &facts, &outcome);
    let mut notes = run.notes(step, &facts, &outcome);
    notes.extend(finished?);
    if is_finished && is_stopped() {
        left.operations = outcome.operations;
        return Err(Broken::Interrupted);
    }
    if let Some(store) = server.kv() {
        write_levels(levels_path(&order.dir, &step.name), &levels)?;
        notes.extend(rocksdb_stats::parse(&store.stats_text()?).notes());
        notes.insert(
            "has_own_process".to_owned(),
            f64::from(u8::from(trial.has_process_per_step())),
        );
    }
    let after = server.counters()?;
    let database_bytes = server.database_bytes().map_or_else(
        |e| Reading::Unavailable(e.to_string()),
        |bytes| Reading::Ok(bytes as f64),
    );
    host.insert("database_bytes".to_owned(), database_bytes);
    let tables = match order.verify {
        Verify::Full => run.verify(is_last)?,
        Verify::End if is_last => run.verify(false)?,
        Verify::End | Verify::Counters => Vec::new(),
    };
    if let Some(problem) = find_problem(step, &outcome, &tables) {
        left.operations = outcome.operations;
        return Err(Broken::Failed(problem));
    }
    let done = StepDone {
        step: step.name.clone(),
        primary: step.primary_operation().to_owned(),
        elapsed_ns: outcome.elapsed_ns,
        sla_missed: worst_share(&outcome).filter(|&share| share < SLA_SHARE),
        notes,
        operations: outcome.operations,
        clients: outcome.clients,
        host,
        engine_counters: difference(&counters, &after),
        tables,
    };
    if let Some(recorder) = recorder {
        let operations = primary_operations(&done.primary, &done.operations);
        let server_cpu_s = done.host.get("server_cpu_s").and_then(Reading::value);
        let us_per_op = server_cpu_s
            .filter(|_| operations > 0)
            .map(|seconds| seconds * 1e6 / operations as f64);
        recorder
            .finish(&order.cell.label, operations, us_per_op)
            .write(&order.dir.join(SERVER_FOLDER))?;
    }
    say(&TrialMessage::StepDone {
        step: step.name.clone(),
        seconds: done.elapsed_ns as f64 / 1e9,
        summary: summary(step, &done),
    });
    Ok(trial.events.append(&Event::StepDone(Box::new(done)))?)
}

/// Operations that count for the step: those of the primary kind, or of all kinds where its events
/// are drawn.
fn primary_operations(primary: &str, operations: &[OperationRecord]) -> u64 {
    let is_primary =
        |operation: &&OperationRecord| primary == ALL_EVENTS || operation.kind == primary;
    operations
        .iter()
        .filter(is_primary)
        .map(|operation| operation.ok)
        .sum()
}

/// An external server has its data elsewhere: what happened on the disk under our empty folder says
/// nothing of it.
fn hide_own_disk(host: &mut BTreeMap<String, Reading>) {
    for (name, reading) in host
        .iter_mut()
        .filter(|(name, _)| name.starts_with("disk_") || *name == "data_dir_bytes")
    {
        *reading = Reading::Unavailable(format!(
            "{name} of an external server is not known here: its data is elsewhere"
        ));
    }
}

/// A lost or surplus row, or work that the plan wanted and the counters do not show.
fn find_problem(step: &Step, outcome: &StepOutcome, tables: &[TableCheck]) -> Option<String> {
    if let Some(table) = tables
        .iter()
        .find(|table| table.found_rows != table.expected_rows)
    {
        return Some(format!(
            "{} holds {} rows and should hold {}: rows were lost or came from elsewhere",
            table.table,
            format_grouped(table.found_rows),
            format_grouped(table.expected_rows)
        ));
    }
    let rows = |kind: &str| -> u64 {
        outcome
            .clients
            .iter()
            .filter(|client| client.kind == kind)
            .map(|client| client.rows)
            .sum()
    };
    let (inserted, deleted) = (rows("insert"), rows("delete"));
    let has_deletes = matches!(
        step.kind,
        StepKind::Write { deletes: true, .. } | StepKind::ReadWrite { deletes: true, .. }
    );
    (has_deletes && inserted != deleted).then(|| {
        format!(
            "{} rows were inserted and {} deleted",
            format_grouped(inserted),
            format_grouped(deleted)
        )
    })
}

/// Achieved share of the target of the background role that is furthest behind.
fn worst_share(outcome: &StepOutcome) -> Option<f64> {
    let pacings = outcome
        .operations
        .iter()
        .filter_map(|operation| operation.pacing.as_ref());
    pacings
        .filter(|pacing| pacing.target_per_s > 0.0)
        .map(|pacing| pacing.achieved_per_s / pacing.target_per_s)
        .reduce(f64::min)
}

fn seconds(outcome: &StepOutcome, kinds: &[String]) -> Vec<OperationSecond> {
    let row = |row: &plimsoll_load::SecondRow| OperationSecond {
        second: row.second as u32,
        client: row.client,
        kind: kinds[row.kind].to_owned(),
        ok: row.counts.ok,
        unsuccessful: row.counts.unsuccessful,
        rows: row.counts.rows,
        service_sum_ns: row.counts.service_sum_ns,
        service_max_ns: row.counts.service_max_ns,
        response_max_ns: row.counts.response_max_ns,
    };
    outcome.seconds.iter().map(row).collect()
}

fn difference(
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    after
        .iter()
        .map(|(name, value)| (name.clone(), value - before.get(name).copied().unwrap_or(0)))
        .collect()
}

fn summary(step: &Step, done: &StepDone) -> String {
    let rate = |kind: &str, of_rows: bool| -> f64 {
        let clients = done
            .clients
            .iter()
            .filter(|client| client.kind == kind && client.to_ns > client.from_ns);
        clients
            .map(
                |c| if of_rows { c.rows } else { c.ok } as f64 * 1e9 / (c.to_ns - c.from_ns) as f64,
            )
            .sum()
    };
    let text = |rate: f64| format_grouped(rate.round() as u64);
    match step.kind {
        StepKind::Test(_) | StepKind::Mix(_) => {
            let all = STATEMENT_NOTES
                .iter()
                .filter_map(|note| done.notes.get(*note))
                .sum::<f64>();
            let events = done
                .operations
                .iter()
                .map(|operation| operation.ok)
                .sum::<u64>() as f64;
            let kinds = || {
                done.operations
                    .iter()
                    .map(|operation| operation.kind.as_str())
            };
            let per_s = kinds().map(|kind| rate(kind, false)).sum::<f64>();
            match done.notes.get("rows_per_scan") {
                Some(rows) => format!("{} rows/s", text(per_s * rows)),
                None => format!(
                    "{} queries/s, {} {}s/s",
                    text(per_s * all / events.max(1.0)),
                    text(per_s),
                    done.primary
                ),
            }
        }
        StepKind::Kv(kv) => {
            let missed = done.sla_missed.map_or(String::new(), |share| {
                format!(", only {:.1} % of the rate", share * 100.0)
            });
            let keys = rate(&done.primary, false) * f64::from(kv.work.keys());
            let beside = kv.background_bytes_per_s.map_or(String::new(), |_| {
                format!(" beside {} puts/s", text(rate("put", false)))
            });
            let what = match kv.work {
                KvWork::Fill | KvWork::Overwrite => "puts",
                KvWork::Get | KvWork::MultiGet => "keys",
                KvWork::Range { .. } => "ranges",
            };
            format!("{} {what}/s{beside}{missed}", text(keys))
        }
        StepKind::ReadWrite { .. } => {
            let missed = done.sla_missed.map_or(String::new(), |share| {
                format!(", SLA missed: {:.1} % of the rate", share * 100.0)
            });
            format!(
                "{} queries/s beside {} inserts/s{missed}",
                text(rate("query", false)),
                text(rate("insert", true))
            )
        }
        StepKind::CreateIndexes { .. } => {
            let clients = || done.clients.iter().filter(|client| client.kind == "index");
            let from_ns = clients().map(|client| client.from_ns).min().unwrap_or(0);
            let seconds = clients()
                .map(|client| client.to_ns - from_ns)
                .max()
                .unwrap_or(0) as f64
                / 1e9;
            format!(
                "{} indexed rows/s",
                text(clients().map(|client| client.rows).sum::<u64>() as f64 / seconds.max(1e-9))
            )
        }
        StepKind::Scan => format!("{} rows/s", text(rate("scan", true))),
        StepKind::Load { .. } | StepKind::Write { .. } => {
            format!("{} inserts/s", text(rate("insert", true)))
        }
        StepKind::Prepare { .. } | StepKind::Fill { .. } => {
            let has_indexes = done
                .operations
                .iter()
                .any(|operation| operation.kind == "index" && operation.ok > 0);
            let indexes = if has_indexes {
                " (the time has the indexes, too)"
            } else {
                ""
            };
            format!("{} inserts/s{indexes}", text(rate("insert", true)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_counts_the_events_of_a_workload_file() {
        let operation = |kind: &str, ok| OperationRecord {
            kind: kind.to_owned(),
            ok,
            ..OperationRecord::default()
        };
        let events = [operation("look", 40), operation("buy", 2)];
        assert_eq!(primary_operations(ALL_EVENTS, &events), 42);
        let kinds = [operation("query", 40), operation("insert", 2)];
        assert_eq!(primary_operations("query", &kinds), 40);
    }
}
