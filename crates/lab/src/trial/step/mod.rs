//! One step: workers and collectors side by side, then the counts are checked and everything is
//! written down.
//!
//! A [`StepRun`] goes through it in four phases: `begin` opens what the step writes, `load` lets
//! the workers work, `finish` settles what came of it, `record` verifies the data and writes the
//! event.

mod counts;
mod summary;
mod watching;

use std::collections::BTreeMap;
use std::fs::{File, create_dir_all};
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Step, Verify};
use plimsoll_core::readings::HostReading;
use plimsoll_core::record::{ClientHostRecord, ClientRecord, OperationRecord, SLA_SHARE};
use plimsoll_core::rocksdb_stats;
use plimsoll_core::units::SECOND_NS;
use plimsoll_engine::DrainLimits;
use plimsoll_host::Looks;
use plimsoll_load::{
    Command, Control, Ended, MonotonicClock, Progress, SecondRow, StepError, StepOptions,
    StepOutcome, StepOutputs, run_step as run_workers,
};
use plimsoll_store::event::StepDone;
use plimsoll_store::layout::{SERVER_FOLDER, histogram_log_path, series_dir};
use plimsoll_store::series::{
    LevelSample, OperationsWriter, WaitProfile, host_path, levels_path, operations_path,
    turns_path, waits_path, write_levels, write_turns, write_waits,
};
use plimsoll_store::sync_folder;
use plimsoll_workload::{RunState, SharedServer, StepTasks, WorkloadRun};

use self::counts::{
    add_clients_here, difference, find_problem, hide_own_disk, operation_second,
    primary_operations, worst_share,
};
use self::watching::{Watched, Watching};
use super::early_end::EarlyEnd;
use super::measuring::{Measured, Measuring, MeasuringOptions};
use super::progress::ProgressMeter;
use super::turns::{TurnRunner, TurnsRecord, TurnsStopped};
use super::waits::WaitSampling;
use super::{DRAIN_LIMIT, Trial};
use crate::clients::{PartStep, Records};
use crate::leftovers::end_server;
use crate::message::TrialOrder;
use crate::perf::Recorder;

/// A step in turns may work this long, which is longer than anybody waits.
const TIMELESS_NS: u64 = 24 * 3600 * SECOND_NS;

/// What a step is run with.
pub(super) struct StepContext<'a> {
    pub step: &'a Step,
    pub workload: &'a mut WorkloadRun,
    pub server: &'a SharedServer,
    pub is_embedded: bool,
    /// No step comes after it.
    pub is_last: bool,
}

pub(super) fn run_step(trial: &mut Trial<'_>, context: StepContext<'_>) -> Result<(), EarlyEnd> {
    let (step, server) = (context.step, context.server);
    trial.begin_step(step)?;
    attempt_step(trial, context).map_err(|failure| {
        let end = trial.fail_step(step, server, failure.end, failure.operations);
        if failure.has_operations_under_way {
            // Nothing waits for the server any longer, although it may still answer.
            end_server(&trial.order.dir);
        }
        end
    })
}

fn attempt_step(trial: &mut Trial<'_>, context: StepContext<'_>) -> Result<(), StepFailure> {
    let mut run = StepRun::begin(trial, context)?;
    let loaded = run.load()?;
    let finished = run.finish(loaded)?;
    run.record(finished)
}

/// Why a step did not end as it should, and what it leaves behind.
struct StepFailure {
    end: EarlyEnd,
    /// What was counted.
    operations: Vec<OperationRecord>,
    /// Workers are still in the server.
    has_operations_under_way: bool,
}

impl StepFailure {
    fn with(end: EarlyEnd, operations: Vec<OperationRecord>) -> Self {
        Self {
            end,
            operations,
            has_operations_under_way: false,
        }
    }
}

impl<E: Into<EarlyEnd>> From<E> for StepFailure {
    fn from(end: E) -> Self {
        Self::with(end.into(), Vec::new())
    }
}

/// One step on its way.
struct StepRun<'r, 't> {
    trial: &'r mut Trial<'t>,
    workload: &'r mut WorkloadRun,
    server: &'r SharedServer,
    is_embedded: bool,
    is_last: bool,
    has_turns: bool,
    /// As its workers have it: in turns without an end of its own.
    step: Step,
    tasks: StepTasks,
    /// Histograms of finished seconds.
    log: BufWriter<File>,
    /// What each client did in each second; none once it is finished.
    series: Option<OperationsWriter>,
    /// The hosts that its clients were on.
    client_hosts: Vec<ClientHostRecord>,
}

/// What the workers leave when they have ended.
struct Loaded {
    outcome: Result<StepOutcome, StepError>,
    /// Of a step in turns.
    turns: Option<Result<TurnsRecord, TurnsStopped>>,
    watched: Watched,
    waits: Option<WaitSampling>,
    /// Of its client hosts; nothing where its clients were beside the server.
    records: Option<Records>,
}

/// A step that has done all of its work; nothing of it is verified yet.
struct Finished {
    outcome: StepOutcome,
    measured: Measured,
    levels: Vec<LevelSample>,
    notes: BTreeMap<String, f64>,
}

impl<'r, 't> StepRun<'r, 't> {
    /// Makes the workers' tasks and opens what they write.
    fn begin(trial: &'r mut Trial<'t>, context: StepContext<'r>) -> Result<Self, StepFailure> {
        let order = trial.order;
        let mut step = context.step.clone();
        let has_turns = order.has_turns && step.can_take_turns();
        if has_turns {
            // The orchestrator says when it ends.
            step.set_duration(TIMELESS_NS, Some(0));
        }
        let mut tasks = context.workload.tasks(&step)?;
        // Steps of few long operations have none: there the server's answer decides.
        tasks.options.watchdog = tasks
            .options
            .watchdog
            .map(|_| Duration::from_nanos(order.watchdog_ns));
        let log = File::create(histogram_log_path(&order.dir, &step.name))
            .map_err(|error| not_written("the histogram log", &step, &error))?;
        create_dir_all(series_dir(&order.dir))
            .map_err(|error| not_written("the series", &step, &error))?;
        let series = OperationsWriter::create(operations_path(&order.dir, &step.name))?;
        Ok(Self {
            workload: context.workload,
            server: context.server,
            is_embedded: context.is_embedded,
            is_last: context.is_last,
            trial,
            has_turns,
            step,
            tasks,
            log: BufWriter::new(log),
            series: Some(series),
            client_hosts: Vec::new(),
        })
    }

    /// Lets the workers work, all at once or in turns, and watches them.
    fn load(&mut self) -> Result<Loaded, StepFailure> {
        let measuring = self.measuring();
        let must_rest = self.must_rest();
        let waits = self.waits();
        let Trial {
            order,
            control,
            lifeline,
            events,
            watchdog,
            next_step,
            party,
            ..
        } = &mut *self.trial;
        let (control, watchdog, step) = (*control, &*watchdog, &self.step);
        let mut watching = Watching {
            events,
            control,
            watchdog,
            waits: waits.as_ref().filter(|_| !self.has_turns),
            server: self.server,
            step: &step.name,
            meter: ProgressMeter::new(step, *next_step, order.cell.workload.steps().len()),
            watched: Watched {
                measuring,
                ..Watched::default()
            },
            operations: 0,
            next_levels_s: 0,
        };
        let mut observe = |progress: &Progress| watching.observe(progress);
        // The workers are used up by the step; what they count is asked for after it.
        let tasks = std::mem::take(&mut self.tasks.tasks);
        let (kinds, options, log) = (&self.tasks.kinds, &self.tasks.options, &mut self.log);
        let mut write_second = second_writer(&mut self.series, kinds);
        let outputs = StepOutputs {
            log,
            progress: &mut observe,
            seconds: &mut write_second,
        };
        let party = party.as_ref().filter(|_| WorkloadRun::is_divisible(step));
        let (outcome, turns, records) = if self.has_turns {
            let runner = TurnRunner::new(
                &lifeline.commands,
                control,
                &step.name,
                Duration::from_nanos(order.watchdog_ns),
                watchdog,
                (self.server, &order.data_dir),
            )?
            .with_open_limit(options.open_timeout)
            .after_writing(must_rest)
            .with_waits(waits.as_ref());
            let (outcome, turns) = runner.run(|clock, progress| {
                let options = StepOptions {
                    turn_progress: Some(progress.clone()),
                    ..options.clone()
                };
                run_workers(clock, kinds, tasks, control, &options, outputs)
            });
            (outcome, Some(turns), None)
        } else if let Some(party) = party {
            self.server.give_tables_to_guests()?;
            let state = self.workload.state();
            let of = part_step(order, (step, state), &self.tasks, self.server, control);
            let (outcome, of_hosts) = party.run(&of, tasks, outputs);
            (outcome, None, Some(of_hosts))
        } else {
            let clock = Arc::new(MonotonicClock);
            let outcome = run_workers(&clock, kinds, tasks, control, options, outputs);
            (outcome, None, None)
        };
        Ok(Loaded {
            outcome,
            turns,
            watched: watching.watched,
            waits,
            records,
        })
    }

    /// What is measured beside the workers. Turns have measurements of their own.
    fn measuring(&self) -> Option<Measuring> {
        let has_warm_up = self.tasks.options.warm_up_ns > 0;
        (!self.has_turns).then(|| Measuring::new(self.measuring_options(), has_warm_up))
    }

    /// Begins to look at what sessions wait for, if the plan says so and the trial measures.
    fn waits(&self) -> Option<WaitSampling> {
        let order = self.trial.order;
        let hz = order.cell.config.waits_hz?;
        let is_measured = !order.makes_state && order.profile_ns.is_none();
        let has_warm_up = self.tasks.options.warm_up_ns > 0;
        is_measured.then(|| WaitSampling::start(self.server, hz, has_warm_up))
    }

    fn measuring_options(&self) -> MeasuringOptions {
        let order = self.trial.order;
        MeasuringOptions {
            server: self.server.clone(),
            data_dir: order.data_dir.clone(),
            is_embedded: self.is_embedded,
            // All trials would look in the same turns, those of any of them.
            looks: match order.has_turns {
                true => Looks::AtEnds,
                false => Looks::Series(host_path(&order.dir, &self.step.name)),
            },
            profile: order
                .profile_ns
                .map(|_| (order.dir.join(SERVER_FOLDER), self.step.name.clone())),
            has_wait: self.step.waits(),
        }
    }

    /// The step before wrote: what it left to do is not work of this one's turns.
    fn must_rest(&self) -> bool {
        self.trial.order.cell.workload.steps()[..self.trial.next_step]
            .last()
            .is_some_and(Step::changes_data)
    }

    /// Ends the measurements and settles whether the step is good so far. The series are written
    /// for a step that failed, too: they show how far it came.
    fn finish(&mut self, loaded: Loaded) -> Result<Finished, StepFailure> {
        let Loaded {
            outcome,
            turns,
            watched,
            waits,
            records,
        } = loaded;
        // Its connection is closed before anything else is asked.
        let waits = waits.map(WaitSampling::end);
        let control = self.trial.control;
        let is_stopped = || control.command() == Command::Stop;
        // What the workload does behind its operations, such as a wait for compaction, is still
        // measured.
        let is_finished = matches!(&outcome, Ok(outcome) if outcome.ended == Ended::Finished);
        let own_notes = if is_finished {
            let limit = Instant::now() + DRAIN_LIMIT;
            let limits = DrainLimits::new(limit, limit, &is_stopped);
            self.workload.finish(&self.step, &limits)
        } else {
            Ok(BTreeMap::new())
        };
        let elapsed = outcome
            .as_ref()
            .ok()
            .map(|outcome| Duration::from_nanos(outcome.elapsed_ns));
        let measured = watched
            .measuring
            .map_or(Ok(None), |measuring| measuring.finish(elapsed));
        // A crash explains every other error.
        if let Some(crashed) = watched.crashed {
            return Err(crashed.into());
        }
        let mut outcome = outcome.map_err(|error| self.explain_no_outcome(error))?;
        self.add_statements(&mut outcome);
        let mut measured = measured?.unwrap_or_default();
        let operations = match turns {
            Some(turns) => self.add_turns(turns, &mut outcome, &mut measured)?,
            None => primary_operations(self.step.operation, &outcome.operations),
        };
        if let Some(waits) = waits {
            let path = waits_path(&self.trial.order.dir, &self.step.name);
            write_waits(
                path,
                &WaitProfile {
                    operations,
                    ..waits
                },
            )?;
        }
        if self.trial.order.cell.server.is_some() {
            hide_own_disk(&mut measured.host);
        }
        self.finish_series()?;
        match &outcome.ended {
            Ended::Finished => {}
            Ended::Stopped => {
                return Err(StepFailure::with(EarlyEnd::Interrupted, outcome.operations));
            }
            Ended::Failed(failure) => {
                let reason = format!("{} ({})", failure.message, failure.class);
                return Err(StepFailure::with(
                    EarlyEnd::Failed(reason),
                    outcome.operations,
                ));
            }
        }
        if let Some(records) = records {
            self.client_hosts = records.map_err(|reason| {
                StepFailure::with(EarlyEnd::Failed(reason), outcome.operations.clone())
            })?;
            add_clients_here(&mut measured.host, &self.client_hosts);
        }
        let facts = &self.tasks.counts;
        self.workload.book(&self.step, facts, &outcome);
        let mut notes = self.workload.notes(&self.step, facts, &outcome);
        notes.extend(own_notes?);
        if is_stopped() {
            return Err(StepFailure::with(EarlyEnd::Interrupted, outcome.operations));
        }
        Ok(Finished {
            outcome,
            measured,
            levels: watched.levels,
            notes,
        })
    }

    /// Why the workers left nothing to count.
    fn explain_no_outcome(&self, error: StepError) -> StepFailure {
        let StepError::Hung(what) = error else {
            return EarlyEnd::Failed(error.to_string()).into();
        };
        let end = if self.trial.control.command() == Command::Stop {
            // It was asked to stop: an operation goes on and on, and nothing hung.
            EarlyEnd::Interrupted
        } else {
            let reason = format!("hung: {what}");
            // Noted before the server is killed: it did not crash.
            self.trial.watchdog.end_hung_server(&reason);
            EarlyEnd::Failed(reason)
        };
        StepFailure {
            has_operations_under_way: true,
            ..end.into()
        }
    }

    /// How many statements each kind of operation consisted of.
    fn add_statements(&self, outcome: &mut StepOutcome) {
        let statements = self.workload.statements(&self.tasks.counts);
        for (kind, statements) in self.tasks.kinds.iter().zip(statements) {
            if let Some(operation) = outcome
                .operations
                .iter_mut()
                .find(|operation| operation.kind == *kind)
            {
                operation.statements = Some(statements);
            }
        }
    }

    /// Writes the turns down. Their counters and readings stand for the step's. Returns the
    /// operations that count.
    fn add_turns(
        &self,
        turns: Result<TurnsRecord, TurnsStopped>,
        outcome: &mut StepOutcome,
        measured: &mut Measured,
    ) -> Result<u64, StepFailure> {
        let record = match turns {
            Ok(record) => record,
            // A failure of the workers themselves says more than that there were no more turns.
            Err(TurnsStopped::Failed(reason)) if outcome.ended == Ended::Stopped => {
                return Err(EarlyEnd::Failed(reason).into());
            }
            Err(_) => return Ok(0),
        };
        let path = turns_path(&self.trial.order.dir, &self.step.name);
        write_turns(path, &record.turns)?;
        (measured.counters, measured.host) = (record.counters, record.host);
        let primary = self.step.operation;
        let is_primary = |client: &&mut ClientRecord| primary.counts(&client.kind);
        for client in outcome.clients.iter_mut().filter(is_primary) {
            client.turns = record.sums.get(&client.client).copied();
        }
        Ok(record.turns.iter().map(|turn| turn.operations).sum())
    }

    fn finish_series(&mut self) -> Result<(), StepFailure> {
        // On the disk before the step is said to be done.
        self.log
            .flush()
            .and_then(|()| self.log.get_ref().sync_data())
            .map_err(|error| not_written("the histogram log", &self.step, &error))?;
        if let Some(series) = self.series.take() {
            series.finish()?;
        }
        // The names of the log and of the folder of series, too.
        Ok(sync_folder(&self.trial.order.dir)?)
    }

    /// Verifies the data, and writes down that the step is done.
    fn record(mut self, finished: Finished) -> Result<(), StepFailure> {
        let Finished {
            outcome,
            mut measured,
            levels,
            mut notes,
        } = finished;
        let (order, server) = (self.trial.order, self.server);
        if let Ok(store) = server.kv() {
            write_levels(levels_path(&order.dir, &self.step.name), &levels)?;
            notes.extend(rocksdb_stats::parse(&store.stats_text()?).notes());
            notes.insert(
                "has_own_process".to_owned(),
                f64::from(u8::from(self.trial.has_process_per_step())),
            );
        }
        // Read before the rows are counted, which would be in it.
        let after = server.counters()?;
        let database_bytes = server.database_bytes();
        measured.host.put(
            HostReading::Database,
            database_bytes
                .map(|bytes| bytes as f64)
                .map_err(|error| error.to_string()),
        );
        let tables = match order.verify {
            Verify::Full => self.workload.verify(self.is_last)?,
            Verify::End if self.is_last => self.workload.verify(false)?,
            Verify::End | Verify::Counters => Vec::new(),
        };
        if let Some(problem) = find_problem(&self.step, &outcome, &tables) {
            return Err(StepFailure::with(
                EarlyEnd::Failed(problem),
                outcome.operations,
            ));
        }
        let done = StepDone {
            step: self.step.name.clone(),
            primary: self.step.operation,
            elapsed_ns: outcome.elapsed_ns,
            sla_missed: worst_share(&outcome).filter(|&share| share < SLA_SHARE),
            notes,
            operations: outcome.operations,
            clients: outcome.clients,
            host: measured.host,
            engine_counters: difference(&measured.counters, &after),
            tables,
            client_hosts: std::mem::take(&mut self.client_hosts),
        };
        if let Some(recorder) = measured.recorder {
            self.write_profile(recorder, &done)?;
        }
        let summary = summary::summary(&self.step, &done);
        Ok(self.trial.end_step(done, summary)?)
    }

    /// With the server's CPU per operation, that profiles of two builds can be compared.
    fn write_profile(&self, recorder: Recorder, done: &StepDone) -> Result<(), StepFailure> {
        let order = self.trial.order;
        let operations = primary_operations(self.step.operation, &done.operations);
        let server_cpu_s = done.host.value(HostReading::ServerCpu);
        let us_per_op = server_cpu_s
            .filter(|_| operations > 0)
            .map(|seconds| seconds * 1e6 / operations as f64);
        recorder
            .finish(&order.cell.label, operations, us_per_op)
            .write(&order.dir.join(SERVER_FOLDER))?;
        Ok(())
    }
}

/// Writes down finished seconds while there is a series.
fn second_writer(
    series: &mut Option<OperationsWriter>,
    kinds: &[String],
) -> impl FnMut(&SecondRow) -> Result<(), String> {
    move |row| match series {
        Some(series) => series
            .append(&operation_second(row, kinds))
            .map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// What client hosts need of a step.
fn part_step<'a>(
    order: &'a TrialOrder,
    (step, state): (&'a Step, RunState),
    tasks: &'a StepTasks,
    server: &'a SharedServer,
    control: &'a Arc<Control>,
) -> PartStep<'a> {
    PartStep {
        cell: &order.cell,
        seed: order.seed,
        step,
        state,
        settings: &order.settings,
        counts: &tasks.counts,
        options: &tasks.options,
        kinds: &tasks.kinds,
        server,
        control,
    }
}

fn not_written(what: &str, step: &Step, error: &std::io::Error) -> EarlyEnd {
    EarlyEnd::Failed(format!("failed to write {what} of {}: {error}", step.name))
}
