//! One trial, in a process of its own: one server start on one data state, all steps of a cell.
//!
//! It reads its order from standard input, reports its progress on standard output, and is the only
//! writer of its folder while it lives. When its orchestrator dies, it dies.

mod continuation;
mod db_bench;
mod drain;
mod early_end;
mod lifeline;
mod measuring;
mod progress;
mod session;
mod start;
mod step;
mod turns;
mod waits;
mod watchdog;

use std::io::{Write, stdout};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::{Driver, Step, StepProcess};
use plimsoll_core::record::TableCheck;
use plimsoll_host::{
    AwakeCpus, Fact, Proc, boot_id, capture_environment, machine_id, process_start_ticks,
    run_canary,
};
use plimsoll_load::{Command, Control};
use plimsoll_store::event::{
    Canary, Event, StepDone, StepStart, TrialDone, TrialFailed, TrialStart,
};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{EventWriter, write_json_atomically};
use plimsoll_workload::kv::step_settings;
use plimsoll_workload::{SharedServer, WorkloadRun};

use self::continuation::Continuation;
use self::early_end::EarlyEnd;
use self::lifeline::Lifeline;
use self::start::{StartedServer, create_data_dir};
use self::step::StepContext;
use self::watchdog::{Deadline, Watchdog};
use crate::clients::Party;
use crate::error::LabError;
use crate::input::Input;
use crate::message::{BEAT, TrialMessage, TrialOrder};

/// An engine that is asked to stop has this long.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);
/// A server that has just started may take this long for a first answer, whatever `watchdog` says.
const LEAST_ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// A drain may take longer than the plan's wait, but not for ever.
const DRAIN_LIMIT: Duration = Duration::from_secs(3600);

/// The server's state before the first step has this in its files' names, where that after a step
/// has the step's name.
const START: &str = "start";

/// The fact about the machine that a trial itself decides.
const IDLE_CPUS: &str = "idle_cpus";
/// The fact that only a campaign on several machines has: the name it calls this one by.
const HOST: &str = "host";

/// The body of the internal `trial` verb. `continued` is where an earlier image of this process has
/// left what it was to do. Returns when the trial has ended and all it has to say is on disk.
pub fn main(continued: Option<u32>) -> Result<(), LabError> {
    let (order, input, next_step, seconds) = match continued {
        None => {
            let mut input = Input::default();
            let order = input
                .next_line()
                .ok()
                .and_then(|line| serde_json::from_slice::<TrialOrder>(&line).ok());
            let order = order.ok_or_else(|| {
                LabError::Usage("`trial` is internal: `plimsoll run` starts it".into())
            })?;
            (order, input, 0, 0.0)
        }
        Some(fd) => {
            let Continuation {
                order,
                next_step,
                seconds,
                input,
            } = Continuation::read(fd)?;
            (order, Input::behind(input), next_step, seconds)
        }
    };
    let started = Started {
        at: Instant::now(),
        earlier: Duration::from_secs_f64(seconds),
        continued,
    };
    let control = Arc::new(Control::default());
    let patience = Duration::from_nanos(order.patience_ns);
    let lifeline = Lifeline::tie_to_parent(patience, control.clone(), input)?;
    // In turns whoever is silent is waited for by name.
    if !order.has_turns {
        beat()?;
    }
    run(&order, &control, &lifeline, next_step, started)
}

/// Says now and then that this process lives, until it ends.
fn beat() -> Result<(), LabError> {
    let beats = || {
        loop {
            send(&TrialMessage::Beat);
            thread::sleep(BEAT);
        }
    };
    spawn_vital("beat", beats)
        .map(drop)
        .map_err(|error| LabError::io("failed to start a thread", error))
}

/// The exit code of a program that panics.
const PANIC_EXIT: i32 = 101;

/// Starts a thread without which a trial must not go on. If it panics the process ends, and the last
/// lines of its log say why: silence would be taken for something else.
fn spawn_vital(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(|| {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            std::process::exit(PANIC_EXIT);
        }
    })
}

/// When the trial began, and how its process came to this image.
struct Started {
    at: Instant,
    /// Spent in earlier images.
    earlier: Duration,
    /// Where the image before has left what it was to do.
    continued: Option<u32>,
}

impl Started {
    fn elapsed_s(&self) -> f64 {
        (self.earlier + self.at.elapsed()).as_secs_f64()
    }
}

fn run(
    order: &TrialOrder,
    control: &Arc<Control>,
    lifeline: &Lifeline,
    next_step: usize,
    started: Started,
) -> Result<(), LabError> {
    // Held until the trial ends.
    let awake = order.keeps_cpus_awake.then(AwakeCpus::keep);
    let events = if started.continued.is_some() {
        EventWriter::reopen(order.dir.join(EVENTS_FILE))?
    } else {
        begin(order, awake.as_ref())?
    };
    let limit = Duration::from_nanos(order.watchdog_ns);
    let watchdog = Watchdog::start(limit, &order.dir, &order.data_dir, control.clone())
        .map_err(|error| LabError::io("failed to start a thread", error))?;
    let mut trial = Trial {
        order,
        control,
        lifeline,
        started,
        events,
        watchdog,
        next_step,
        party: None,
    };
    match trial.run() {
        Ok(stop_problem) => {
            let seconds = trial.started.elapsed_s();
            trial.events.append(&Event::TrialDone(TrialDone {
                seconds,
                stop_problem,
            }))?;
        }
        Err(end) => {
            let (reason, interrupted) = match end {
                EarlyEnd::Interrupted => ("interrupted".to_owned(), true),
                EarlyEnd::Failed(reason) | EarlyEnd::Recorded(reason) => (reason, false),
            };
            send(&TrialMessage::Failed {
                reason: reason.clone(),
            });
            trial.events.append(&Event::TrialFailed(TrialFailed {
                reason,
                interrupted,
            }))?;
        }
    }
    Ok(trial.events.sync()?)
}

/// The steps of a trial by slices; empty in others, which run all of the plan's.
fn steps_in_turns(order: &TrialOrder) -> Vec<String> {
    let steps = order.cell.workload.steps().iter();
    let in_turns = steps.filter(|_| order.has_turns);
    in_turns.map(|step| step.name.clone()).collect()
}

/// The first events: who runs what, where, on a machine in which state.
fn begin(
    order: &TrialOrder,
    awake: Option<&Result<AwakeCpus, String>>,
) -> Result<EventWriter, LabError> {
    let mut events = EventWriter::create(order.dir.join(EVENTS_FILE))?;
    let pid = std::process::id();
    events.append(&Event::TrialStart(TrialStart {
        trial: order.trial,
        attempt: order.attempt,
        cell: order.cell.label.clone(),
        block: order.block,
        part: order.part,
        campaign: Some(order.campaign.clone()),
        seed: order.seed,
        methodology_version: METHODOLOGY_VERSION,
        pid,
        pid_start_ticks: process_start_ticks(pid).unwrap_or(0),
        boot_id: boot_id().unwrap_or_default(),
        load: order.load,
        link: order.link(),
        steps: steps_in_turns(order),
        host: order.host.clone(),
        machine_id: machine_id().ok(),
    }))?;
    events.sync()?;
    let mut environment = capture_environment(Proc::new(), &order.data_dir);
    environment
        .facts
        .insert(IDLE_CPUS.to_owned(), idle_cpus(awake));
    if let Some(host) = &order.host {
        environment
            .facts
            .insert(HOST.to_owned(), Fact::Known(host.clone()));
    }
    write_json_atomically(order.dir.join("env.json"), &environment)?;
    if order.has_canary {
        let canary = run_canary(order.data_dir.parent().unwrap_or(&order.data_dir));
        let (integer_per_us, memory_bytes_per_s, sync_ns) = (
            canary.integer_per_us,
            canary.memory_bytes_per_s,
            canary.sync_ns,
        );
        events.append(&Event::Canary(Canary {
            integer_per_us,
            memory_bytes_per_s,
            sync_ns,
        }))?;
    }
    Ok(events)
}

fn idle_cpus(awake: Option<&Result<AwakeCpus, String>>) -> Fact {
    match awake {
        None => Fact::Known("as the machine has it".to_owned()),
        Some(Ok(_)) => Fact::Known("kept awake".to_owned()),
        Some(Err(reason)) => Fact::Unavailable(format!("not kept awake: {reason}")),
    }
}

/// Progress is for people; a reader that is gone must not stop the trial. That the orchestrator is
/// gone shows on standard input.
fn send(message: &TrialMessage) {
    if let Ok(line) = serde_json::to_string(message) {
        let _ = writeln!(stdout(), "{line}");
    }
}

struct Trial<'a> {
    order: &'a TrialOrder,
    control: &'a Arc<Control>,
    lifeline: &'a Lifeline,
    started: Started,
    events: EventWriter,
    watchdog: Watchdog,
    next_step: usize,
    /// The client hosts; none where the clients are beside the server.
    party: Option<Party>,
}

impl Trial<'_> {
    /// Runs all steps that are left. What goes wrong after them, when the server is stopped, is
    /// returned.
    fn run(&mut self) -> Result<Option<String>, EarlyEnd> {
        if self.order.cell.config.driver == Driver::DbBench {
            return db_bench::run(self);
        }
        let engine = self.engine()?;
        if self.order.before.is_empty() && self.next_step == 0 {
            create_data_dir(&self.order.data_dir)?;
        }
        let log_dir = self.make_server_dir()?;
        if let Some(hosts) = &self.order.clients {
            self.party = Some(Party::connect(hosts).map_err(EarlyEnd::Failed)?);
        }
        let steps = self.order.cell.workload.steps();
        loop {
            let of_start = self.steps_of_next_start();
            let is_last = of_start.end == steps.len();
            // Dropped behind the server, which closes when it is dropped.
            let closing = Deadline::default();
            let started = self.start(&*engine, &steps[of_start.start], &log_dir)?;
            if !started.is_embedded {
                self.check_connections(&started.settings)?;
                let _answers = self.limit_of_answers();
                self.watchdog
                    .ask(started.server.connect()?)
                    .map_err(|error| LabError::io("failed to start a thread", error))?;
            }
            let ran = self
                .run_steps(of_start.clone(), &started, &log_dir)
                .map_err(|end| self.explain(&started.server, None, end));
            if started.is_embedded {
                closing.limit(STOP_TIMEOUT, "the engine has not closed");
            }
            ran?;
            self.watchdog.stop_asking();
            // Every worker has closed its session and dropped its share of the server by now.
            let Ok(server) = Arc::try_unwrap(started.server) else {
                return Err(EarlyEnd::Failed(
                    "a worker still holds a connection after its step".into(),
                ));
            };
            let stopped = server.stop(STOP_TIMEOUT);
            match stopped {
                Err(error) if self.order.makes_state || !is_last => {
                    return Err(EarlyEnd::Failed(format!(
                        "the server did not stop cleanly: {error}"
                    )));
                }
                // All steps are done and verified, and the data is thrown away: a problem now is
                // reported and changes no result.
                stopped if is_last => return Ok(stopped.err().map(|error| error.to_string())),
                _ => self.next_step = of_start.end,
            }
            if self.has_process_per_step() {
                return Err(self.continue_in_new_image());
            }
        }
    }

    /// For what is asked of a server before the watchdog asks it, by connections that wait as long
    /// as a statement takes.
    fn limit_of_answers(&self) -> Deadline {
        let deadline = Deadline::default();
        let limit = Duration::from_nanos(self.order.watchdog_ns).max(LEAST_ANSWER_LIMIT);
        deadline.limit(limit, "the server has not answered its first questions");
        deadline
    }

    fn has_process_per_step(&self) -> bool {
        self.order
            .cell
            .workload
            .rocksdb()
            .is_some_and(|workload| workload.process == StepProcess::Step)
    }

    /// The steps that come next and share a start of the engine: all of them, but where single ones
    /// are opened otherwise, or have a process of their own.
    fn steps_of_next_start(&self) -> Range<usize> {
        let steps = &self.order.cell.workload.steps()[self.next_step..];
        let own = |step: &Step| step_settings(step, &self.order.settings);
        let alike = if self.has_process_per_step() {
            1
        } else {
            steps
                .iter()
                .take_while(|step| own(step) == own(&steps[0]))
                .count()
        };
        self.next_step..self.next_step + alike
    }

    /// Continues with the next step in a new image of this process. Returns only if it cannot.
    fn continue_in_new_image(&self) -> EarlyEnd {
        let input = self.lifeline.hold();
        if self.control.command() == Command::Stop {
            return EarlyEnd::Interrupted;
        }
        let (order, next_step, seconds) =
            (self.order.clone(), self.next_step, self.started.elapsed_s());
        let continuation = Continuation {
            order,
            next_step,
            seconds,
            input: input.pending().to_vec(),
        };
        continuation.exec(self.started.continued).into()
    }

    fn run_steps(
        &mut self,
        of_start: Range<usize>,
        started: &StartedServer,
        log_dir: &Path,
    ) -> Result<(), EarlyEnd> {
        let server = &started.server;
        let workload = &self.order.cell.workload;
        let mut run = WorkloadRun::new(workload, server.clone(), self.order.seed)?;
        run.check_statements(&started.settings)?;
        let steps = workload.steps();
        self.order
            .before
            .iter()
            .chain(&steps[..of_start.start])
            .for_each(|step| run.assume(step));
        if !self.order.before.is_empty() {
            self.check_and_warm(&run, server, of_start.start == 0)?;
        }
        if of_start.start == 0 {
            server.save_state(log_dir, START)?;
        }
        let is_warmed = workload
            .rocksdb()
            .is_some_and(|workload| workload.warm_cache);
        for index in of_start {
            let step = &steps[index];
            if self.control.command() == Command::Stop {
                return Err(EarlyEnd::Interrupted);
            }
            self.next_step = index;
            server.reset_between_steps()?;
            if is_warmed {
                run.read_all(server)?;
            }
            let is_last = index + 1 == steps.len();
            let context = StepContext {
                step,
                workload: &mut run,
                server,
                is_embedded: started.is_embedded,
                is_last,
            };
            step::run_step(self, context)?;
            self.events.sync()?;
            server.save_state(log_dir, &step.name)?;
            server.reset_between_steps()?;
            if step.drain_after && (!is_last || self.order.makes_state) {
                self.drain(step, &run, server)?;
            }
        }
        Ok(())
    }

    /// Announces a step and writes down that it starts.
    fn begin_step(&mut self, step: &Step) -> Result<(), EarlyEnd> {
        send(&TrialMessage::StepStart {
            step: step.name.clone(),
            index: self.next_step + 1,
            steps: self.order.cell.workload.steps().len(),
        });
        let step = step.name.clone();
        Ok(self.events.append(&Event::StepStart(StepStart { step }))?)
    }

    /// Writes down that a step is done.
    fn end_step(&mut self, done: StepDone, summary: String) -> Result<(), EarlyEnd> {
        send(&TrialMessage::StepDone {
            step: done.step.clone(),
            seconds: done.elapsed_ns as f64 / 1e9,
            summary,
        });
        Ok(self.events.append(&Event::StepDone(Box::new(done)))?)
    }

    /// Copied data must be what was copied, which is looked at once. Then every table is read, so
    /// that all candidates begin with what their caches can hold.
    fn check_and_warm(
        &self,
        run: &WorkloadRun,
        server: &SharedServer,
        is_first: bool,
    ) -> Result<(), EarlyEnd> {
        if !self.order.cell.build.engine.facts().keeps_rows {
            return Ok(());
        }
        let checks = if is_first {
            run.verify(false)?
        } else {
            Vec::new()
        };
        if let Some(check) = checks
            .iter()
            .find(|check| check.found_rows != check.expected_rows)
        {
            let TableCheck {
                table,
                found_rows,
                expected_rows,
                ..
            } = check;
            return Err(EarlyEnd::Failed(format!(
                "the copied data is not what was copied: {table} holds {found_rows} rows and \
                should hold {expected_rows}; resume the campaign, which makes the data again"
            )));
        }
        Ok(run.read_all(server)?)
    }
}
