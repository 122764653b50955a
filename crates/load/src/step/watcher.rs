//! The thread that called [`run_step`](super::run_step) watches: it writes the log, reports
//! progress, and gives up on workers that hang.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use plimsoll_core::clock::Clock;
use plimsoll_core::units::SECOND_NS;

use super::log::Log;
use super::outcome::{OutcomeBuilder, TaskEnd, TaskInfo, unsent};
use super::workers::{Message, StepWorkers};
use super::{Ended, Phase, Progress, SecondRow, StepError, StepOptions, StepOutcome, StepOutputs};
use crate::control::Command;
use crate::intervals::WorkerSecond;
use crate::patience::Patience;
use crate::recorder::KindRecord;
use crate::worker::Failure;

/// Between two looks at the workers.
const INTERVAL: Duration = Duration::from_millis(100);

pub(super) struct Watcher<'a, C> {
    pub workers: &'a StepWorkers<C>,
    pub kinds: &'a [&'a str],
    pub infos: &'a [TaskInfo],
    pub options: &'a StepOptions,
}

/// What a worker had not handed over when it ended.
fn last_seconds(worker: usize, end: &TaskEnd) -> Vec<WorkerSecond> {
    let of_kind = |record: &KindRecord| {
        let kind = record.kind;
        let seconds = (record.first_second..).zip(record.seconds.clone());
        seconds.map(move |(second, counts)| WorkerSecond {
            worker,
            kind,
            second,
            counts,
        })
    };
    end.kinds.iter().flat_map(of_kind).collect()
}

/// Where the seconds of the workers go, and what is kept of them.
struct Series<'a> {
    infos: &'a [TaskInfo],
    write: &'a mut dyn FnMut(&SecondRow) -> Result<(), String>,
    /// Operations done in each second, by the kind that paces them.
    done: BTreeMap<usize, Vec<u64>>,
}

impl Series<'_> {
    fn write(&mut self, seconds: Vec<WorkerSecond>) -> Result<(), StepError> {
        for of in seconds {
            let info = &self.infos[of.worker];
            let done = self.done.entry(info.paced_kind(of.kind)).or_default();
            let at = of.second as usize;
            done.resize(done.len().max(at + 1), 0);
            done[at] += of.counts.ok;
            let row = SecondRow {
                second: of.second,
                client: info.client,
                kind: of.kind,
                counts: of.counts,
            };
            (self.write)(&row).map_err(StepError::Series)?;
        }
        Ok(())
    }
}

/// When the workers last did something.
struct Activity {
    count: u64,
    /// Renewed by each operation. Without a watchdog it is never asked.
    patience: Patience,
    stop_asked: Option<Instant>,
}

impl<C: Clock> Watcher<'_, C> {
    /// Watches until all workers have ended.
    pub fn run(
        &self,
        receiver: &Receiver<Message>,
        (start_ns, start_time): (u64, SystemTime),
        outputs: &mut StepOutputs<'_>,
    ) -> Result<StepOutcome, StepError> {
        let mut serializer = V2DeflateSerializer::new();
        // Java's filters work only when both times are absolute and intervals are relative to them.
        let writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("Values are nanoseconds; the Interval_Max column is in milliseconds.")
            .with_start_time(start_time)
            .with_base_time(start_time)
            .with_max_value_divisor(1e6)
            .begin_log_with(&mut outputs.log, &mut serializer)
            .map_err(|error| StepError::Log(error.to_string()))?;
        let mut log = Log {
            writer,
            kinds: self.kinds,
            totals: BTreeMap::new(),
            restarts: 0,
        };
        let mut series = Series {
            infos: self.infos,
            write: &mut *outputs.seconds,
            done: BTreeMap::new(),
        };
        let mut latest = Progress::default();
        self.update(&mut latest, start_ns);
        let mut ends: Vec<Option<TaskEnd>> = self.infos.iter().map(|_| None).collect();
        let patience = Patience::new(self.options.watchdog.unwrap_or_default());
        let mut activity = Activity {
            count: 0,
            patience,
            stop_asked: None,
        };
        while ends.iter().any(Option::is_none) {
            match receiver.recv_timeout(self.next_look(&latest, start_ns)) {
                Ok(Message::Ended(index, end)) => {
                    ends[index] = Some(*end);
                    activity.patience.renew();
                    continue;
                }
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StepError::Hung(
                        "a worker's thread died: see the trial's log".into(),
                    ));
                }
            }
            self.write_complete(&mut log, None, &mut latest)?;
            series.write(self.workers.intervals.take_seconds())?;
            self.update(&mut latest, start_ns);
            (outputs.progress)(&latest);
            self.check(&mut activity, &latest)?;
        }
        let ends: Vec<TaskEnd> = ends.into_iter().flatten().collect();
        self.update(&mut latest, start_ns);
        latest.phase = Phase::Ended;
        (outputs.progress)(&latest);
        series.write(self.workers.intervals.take_seconds())?;
        for (worker, end) in ends.iter().enumerate() {
            series.write(last_seconds(worker, end))?;
        }
        self.conclude(&mut log, &mut latest, start_ns, &ends, &series.done)
    }

    /// The end of the warm-up is reported at once.
    fn next_look(&self, latest: &Progress, start_ns: u64) -> Duration {
        if latest.is_warming() {
            let left_ns = start_ns.saturating_sub(self.workers.clock.now_ns());
            INTERVAL.min(Duration::from_nanos(left_ns))
        } else {
            INTERVAL
        }
    }

    /// Writes the intervals to which nobody adds any more. The last one ends with the step.
    fn write_complete(
        &self,
        log: &mut Log<'_, '_, impl Write>,
        elapsed_ns: Option<u64>,
        latest: &mut Progress,
    ) -> Result<(), StepError> {
        let whole = Duration::from_secs(self.workers.intervals.interval_s());
        loop {
            let complete = self.workers.intervals.next_complete();
            log.restart(complete.restarts);
            let Some((interval, pairs)) = complete.interval else {
                return Ok(());
            };
            let at = Duration::from_secs(interval * self.workers.intervals.interval_s());
            let length = elapsed_ns.map_or(whole, |elapsed_ns| {
                whole.min(Duration::from_nanos(elapsed_ns).saturating_sub(at))
            });
            log.add(at, length, &pairs)?;
            if let Some(pair) = pairs.get(&0) {
                latest.p99_ns = Some(pair.service.value_at_quantile(0.99));
            }
        }
    }

    /// Whether the step goes on.
    fn check(&self, activity: &mut Activity, latest: &Progress) -> Result<(), StepError> {
        let live = self.workers.live.iter();
        let count: u64 = live
            .map(|live| live.ok.load(Ordering::Relaxed) + live.unsuccessful.load(Ordering::Relaxed))
            .sum();
        let command = self.workers.control.command();
        if count != activity.count || latest.is_warming() || command == Command::Park {
            activity.count = count;
            activity.patience.renew();
        }
        let is_stopping =
            command == Command::Stop || self.workers.is_aborted.load(Ordering::Relaxed);
        if is_stopping
            && activity
                .stop_asked
                .get_or_insert_with(Instant::now)
                .elapsed()
                > self.options.stop_timeout
        {
            return Err(StepError::Hung(self.hung(&format!(
                "{} s after the step was asked to stop",
                self.options.stop_timeout.as_secs()
            ))));
        }
        let is_silent = activity.patience.is_over() && !is_stopping;
        match self.options.watchdog.filter(|_| is_silent) {
            Some(watchdog) => Err(StepError::Hung(self.hung(&format!(
                "and none has been done for {} s",
                watchdog.as_secs()
            )))),
            None => Ok(()),
        }
    }

    fn hung(&self, what: &str) -> String {
        let running = self
            .workers
            .live
            .iter()
            .filter(|live| live.has_ended.load(Ordering::Relaxed) == 0)
            .count();
        format!(
            "{running} of {} workers are still in an operation, {what}",
            self.infos.len()
        )
    }

    fn update(&self, progress: &mut Progress, start_ns: u64) {
        let now_ns = self.workers.clock.now_ns();
        let is_warming = self.options.warm_up_ns > 0 && now_ns < start_ns;
        progress.phase = if is_warming {
            Phase::WarmingUp {
                left: Duration::from_nanos(start_ns - now_ns),
            }
        } else {
            Phase::Measuring
        };
        progress.elapsed_s = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        progress.kinds = vec![(0, 0); self.kinds.len()];
        progress.unsuccessful = 0;
        for (info, live) in self.infos.iter().zip(&*self.workers.live) {
            // A worker's live counters are not split by kind: those of several kinds count for the
            // last.
            if let Some((ok, rows)) = info.kinds.last().map(|&kind| &mut progress.kinds[kind]) {
                *ok += live.ok.load(Ordering::Relaxed);
                *rows += live.rows.load(Ordering::Relaxed);
            }
            progress.unsuccessful += live.unsuccessful.load(Ordering::Relaxed);
        }
    }

    /// Why a step whose operations may fail has failed: more of them did than may.
    fn too_many_failures(&self, ends: &[TaskEnd]) -> Option<Failure> {
        let allowed = self.options.max_failed?;
        let records = || ends.iter().flat_map(|end| &end.kinds);
        let failed: u64 = records().map(|record| record.failed).sum();
        let operations = failed + records().map(|record| record.ok).sum::<u64>();
        if failed as f64 <= operations as f64 * allowed {
            return None;
        }
        let classes = || records().flat_map(|record| &record.errors);
        let class = classes()
            .max_by_key(|(_, count)| **count)
            .map_or("failed", |(class, _)| class);
        let first = ends
            .iter()
            .find_map(|end| end.first_failure.as_ref())
            .map_or(String::new(), |failure| {
                format!("; the first: {}", failure.message)
            });
        let share = failed as f64 / operations as f64 * 100.0;
        let message = format!(
            "{failed} of {operations} operations failed, {share:.3} %, and {} % may{first}",
            (allowed * 1e5).round() / 1e3
        );
        Some(Failure { class, message })
    }

    /// What is left goes to the log, with what open loops still owe.
    fn conclude(
        &self,
        log: &mut Log<'_, '_, impl Write>,
        latest: &mut Progress,
        start_ns: u64,
        ends: &[TaskEnd],
        done: &BTreeMap<usize, Vec<u64>>,
    ) -> Result<StepOutcome, StepError> {
        let elapsed_ns = ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
        self.write_complete(log, Some(elapsed_ns), latest)?;
        let finished_ns = Some(self.workers.finished_ns.load(Ordering::Relaxed))
            .filter(|&finished_ns| finished_ns != u64::MAX);
        let finished_ns = finished_ns.map(|finished_ns| finished_ns.saturating_sub(start_ns));
        let unsent = unsent(self.infos, ends, finished_ns);
        let interval_ns = self.workers.intervals.interval_s() * SECOND_NS;
        let at_ns = elapsed_ns.saturating_sub(1) / interval_ns * interval_ns;
        log.add_unsent(
            Duration::from_nanos(at_ns),
            Duration::from_nanos(elapsed_ns - at_ns),
            &unsent,
        )?;
        let failure = ends
            .iter()
            .find_map(|end| end.result.as_ref().err().cloned())
            .or_else(|| self.too_many_failures(ends));
        let ended = match failure {
            Some(failure) => Ended::Failed(failure),
            None if self.workers.control.command() == Command::Stop => Ended::Stopped,
            None => Ended::Finished,
        };
        let builder = OutcomeBuilder {
            kinds: self.kinds,
            infos: self.infos,
            ends,
            totals: &log.totals,
            unsent: &unsent,
            finished_ns,
            done,
        };
        Ok(builder.outcome(ended))
    }
}

impl Progress {
    fn is_warming(&self) -> bool {
        matches!(self.phase, Phase::WarmingUp { .. })
    }
}
