//! One trial, in a process of its own: one server start on one data state, all steps of a cell.
//!
//! It reads its order from standard input, tells its progress on standard output, and is the only
//! writer of its folder while it lives. When its orchestrator dies, it dies.

mod continuation;
mod db_bench;
mod lifeline;
mod measuring;
mod progress;
mod step;
mod turns;
mod watchdog;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Write, stdout};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::name::EngineName;
use plimsoll_core::plan::{Driver, Step, StepProcess};
use plimsoll_core::record::TableCheck;
use plimsoll_engine::{
    DrainAction, Engine, EngineError, External, Health, Settings, StartOptions, engine,
    external_engine,
};
use plimsoll_host::{
    AwakeCpus, Cpus, Fact, Proc, boot_id, capture_environment, pin_thread, process_start_ticks,
    run_canary,
};
use plimsoll_load::{Command, Control};
use plimsoll_store::event::{
    Canary, DrainDone, DrainStep, Event, ServerCrashed, ServerReady, StepFailed, TrialDone,
    TrialFailed, TrialStart,
};
use plimsoll_store::{EventWriter, write_json_atomically};
use plimsoll_workload::kv::step_settings;
use plimsoll_workload::{SharedServer, WorkloadRun};

use crate::error::LabError;
use crate::message::{TrialMessage, TrialOrder};
use crate::trial::continuation::Continuation;
use crate::trial::lifeline::{Input, Lifeline};
use crate::trial::watchdog::Watchdog;

/// An engine that is asked to stop has this long.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);
/// A drain may take longer than the plan's wait, but not for ever.
const DRAIN_LIMIT: Duration = Duration::from_secs(3600);

/// A server that dies closes its connections before the kernel says that it is dead: an error waits
/// this long for the reason.
const CRASH_PATIENCE: Duration = Duration::from_millis(500);
/// Connections beside the workers': one asks whether the server lives, one asks for its counters.
const OWN_CONNECTIONS: u32 = 2;
/// On an external server one more holds the lock on our tables.
const LOCK_CONNECTIONS: u32 = 1;
/// Connections that PostgreSQL keeps for others than the ordinary users that external servers are
/// used as.
const RESERVED_CONNECTIONS: [&str; 2] = ["superuser_reserved_connections", "reserved_connections"];

/// The server's state before the first step has this in its files' names, where that after a step
/// has the step's name.
const START: &str = "start";

const EVENTS_FILE: &str = "events.jsonl";

/// The folder in a trial's with what its server leaves behind.
pub(crate) const SERVER_FOLDER: &str = "server";

/// The fact about the machine that a trial itself decides.
const IDLE_CPUS: &str = "idle_cpus";

/// Why a trial ends before its last step.
enum Broken {
    /// The user or a signal asked for it.
    Interrupted,
    /// It cannot go on.
    Failed(String),
    /// It cannot go on, and an event says why.
    Told(String),
}

impl From<LabError> for Broken {
    fn from(error: LabError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<EngineError> for Broken {
    fn from(error: EngineError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<plimsoll_store::StoreError> for Broken {
    fn from(error: plimsoll_store::StoreError) -> Self {
        Self::Failed(error.to_string())
    }
}

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
            } = Continuation::take(fd)?;
            (order, Input::behind(input), next_step, seconds)
        }
    };
    let started = Started {
        at: Instant::now(),
        earlier: Duration::from_secs_f64(seconds),
        continued,
    };
    let control = Arc::new(Control::default());
    let lifeline = Lifeline::tie_to_parent(order.parent_pid, control.clone(), input)?;
    run(&order, &control, &lifeline, next_step, started)
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
    };
    match trial.run() {
        Ok(stop_problem) => {
            let seconds = trial.started.elapsed_s();
            trial.events.append(&Event::TrialDone(TrialDone {
                seconds,
                stop_problem,
            }))?;
        }
        Err(broken) => {
            let (reason, interrupted) = match broken {
                Broken::Interrupted => ("interrupted".to_owned(), true),
                Broken::Failed(reason) | Broken::Told(reason) => (reason, false),
            };
            say(&TrialMessage::Failed {
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
        seed: order.seed,
        methodology_version: METHODOLOGY_VERSION,
        pid,
        pid_start_ticks: process_start_ticks(pid).unwrap_or(0),
        boot_id: boot_id().unwrap_or_default(),
    }))?;
    events.sync()?;
    let mut environment = capture_environment(Proc::new(), &order.data_dir);
    environment
        .facts
        .insert(IDLE_CPUS.to_owned(), idle_cpus(awake));
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
fn say(message: &TrialMessage) {
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
}

impl Trial<'_> {
    /// Runs all steps that are left. What goes wrong after them, when the server is stopped, is
    /// returned.
    fn run(&mut self) -> Result<Option<String>, Broken> {
        if self.order.cell.config.driver == Driver::DbBench {
            return db_bench::run(self);
        }
        let engine = self.engine()?;
        if self.order.before.is_empty() && self.next_step == 0 {
            create_data_dir(&self.order.data_dir)?;
        }
        let log_dir = self.order.dir.join(SERVER_FOLDER);
        fs::create_dir_all(&log_dir).map_err(|error| {
            Broken::Failed(format!("failed to make {}: {error}", log_dir.display()))
        })?;
        let workload = &self.order.cell.workload;
        loop {
            let sitting = self.sitting();
            let is_last = sitting.end == workload.steps().len();
            let (server, settings) =
                self.start(&*engine, &workload.steps()[sitting.start], &log_dir)?;
            if !engine.is_embedded() {
                self.check_connections(&settings)?;
                self.watchdog
                    .ask(server.connect()?)
                    .map_err(|error| LabError::io("failed to start a thread", error))?;
            }
            self.run_steps(
                sitting.clone(),
                &server,
                &settings,
                engine.is_embedded(),
                &log_dir,
            )
            .map_err(|broken| self.explain(&server, None, broken))?;
            self.watchdog.stop_asking();
            // Every worker has closed its session and dropped its share of the server by now.
            let Ok(server) = Arc::try_unwrap(server) else {
                return Err(Broken::Failed(
                    "a worker still holds a connection after its step".into(),
                ));
            };
            let stopped = server.stop(STOP_TIMEOUT);
            match stopped {
                Err(error) if self.order.makes_state || !is_last => {
                    return Err(Broken::Failed(format!(
                        "the server did not stop cleanly: {error}"
                    )));
                }
                // All steps are done and verified, and the data is thrown away: whatever comes now
                // is told and changes no result.
                stopped if is_last => return Ok(stopped.err().map(|error| error.to_string())),
                _ => self.next_step = sitting.end,
            }
            if self.has_process_per_step() {
                return Err(self.go_on());
            }
        }
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
    fn sitting(&self) -> Range<usize> {
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

    /// Starts the engine for a step and those that share its start, and reads back what it runs
    /// with.
    fn start(
        &mut self,
        engine: &dyn Engine,
        step: &Step,
        log_dir: &Path,
    ) -> Result<(SharedServer, Settings), Broken> {
        let started = Instant::now();
        let config = &self.order.cell.config;
        let options = StartOptions {
            log_dir: log_dir.to_owned(),
            // An embedded engine's process, this one, already runs under them.
            prefix: if engine.is_embedded() {
                Vec::new()
            } else {
                config.prefix.clone()
            },
            env: if engine.is_embedded() {
                BTreeMap::new()
            } else {
                config.env.clone()
            },
            transport: config.transport,
            client: config.client,
            ..StartOptions::new(
                &self.order.data_dir,
                step_settings(step, &self.order.settings),
            )
        };
        // What a thread begins runs where the thread may: the server on its CPUs, the workers on
        // theirs. An embedded engine is its worker.
        let placement = self.order.placement.as_ref();
        if let Some(placement) = placement {
            pin(if engine.is_embedded() {
                &placement.client_cpus
            } else {
                &placement.server_cpus
            })?;
        }
        let server: SharedServer = Arc::new(engine.start(&options)?);
        if let Some(placement) = placement {
            pin(&placement.client_cpus)?;
        }
        let settings = server.effective_settings()?;
        let build = engine.build();
        self.events.append(&Event::ServerReady(ServerReady {
            version: build.version,
            build_options: build.options,
            embedded: engine.is_embedded(),
            effective_settings: settings.clone(),
            seconds: started.elapsed().as_secs_f64(),
        }))?;
        Ok((server, settings))
    }

    /// Goes on with the next step in a new image of this process. Returns only when it does not.
    fn go_on(&self) -> Broken {
        let input = self.lifeline.hold();
        if self.control.command() == Command::Stop {
            return Broken::Interrupted;
        }
        let (order, next_step, seconds) =
            (self.order.clone(), self.next_step, self.started.elapsed_s());
        let continuation = Continuation {
            order,
            next_step,
            seconds,
            input: input.pending().to_vec(),
        };
        continuation.go_on(self.started.continued).into()
    }

    /// The engine of the cell's build, or of the server that the plan gives in its place.
    fn engine(&self) -> Result<Box<dyn Engine>, EngineError> {
        let order = self.order;
        match &order.cell.server {
            None => engine(&order.cell.build, order.build.as_ref()),
            Some(server) => external_engine(External {
                server: server.clone(),
                password: order.password.clone(),
                campaign: order.campaign.clone(),
                settings: order.settings.clone(),
            }),
        }
    }

    /// A server with too few connections would refuse a step after hours of loading.
    fn check_connections(&self, settings: &BTreeMap<String, String>) -> Result<(), Broken> {
        let number = |name: &str| {
            settings
                .get(name)
                .and_then(|value| value.parse::<u32>().ok())
        };
        let clients = self.order.cell.workload.connections();
        let (own, reserved, place) = match &self.order.cell.server {
            None => (
                OWN_CONNECTIONS,
                0,
                format!("in [config.{}]", self.order.cell.config.label),
            ),
            Some(_) => {
                let reserved = RESERVED_CONNECTIONS.into_iter().filter_map(number).sum();
                (
                    OWN_CONNECTIONS + LOCK_CONNECTIONS,
                    reserved,
                    "of the server".to_owned(),
                )
            }
        };
        let needed = clients + own + reserved;
        match number("max_connections") {
            Some(limit) if limit < needed => {
                let reserved = if reserved > 0 {
                    format!(", and {reserved} are reserved")
                } else {
                    String::new()
                };
                Err(Broken::Failed(format!(
                    "the server takes {limit} connections (max_connections), and the plan needs \
                    {needed}: {clients} for its workers and {own} to watch the server{reserved}; \
                    raise max_connections {place} or lower clients"
                )))
            }
            _ => Ok(()),
        }
    }

    fn run_steps(
        &mut self,
        sitting: Range<usize>,
        server: &SharedServer,
        settings: &Settings,
        is_embedded: bool,
        log_dir: &Path,
    ) -> Result<(), Broken> {
        let workload = &self.order.cell.workload;
        let mut run = WorkloadRun::new(workload, server.clone(), self.order.seed)?;
        run.check_statements(settings)?;
        let steps = workload.steps();
        self.order
            .before
            .iter()
            .chain(&steps[..sitting.start])
            .for_each(|step| run.assume(step));
        if !self.order.before.is_empty() {
            self.check_and_warm(&run, server, sitting.start == 0)?;
        }
        if sitting.start == 0 {
            server.save_state(log_dir, START)?;
        }
        let is_warmed = workload
            .rocksdb()
            .is_some_and(|workload| workload.warm_cache);
        for index in sitting {
            let step = &steps[index];
            if self.control.command() == Command::Stop {
                return Err(Broken::Interrupted);
            }
            self.next_step = index;
            server.reset_between_steps()?;
            if is_warmed {
                run.read_all(server)?;
            }
            let is_last = index + 1 == steps.len();
            step::run_step(self, step, &mut run, server, is_embedded, is_last)?;
            self.events.sync()?;
            server.save_state(log_dir, &step.name)?;
            server.reset_between_steps()?;
            if step.drain_after && (!is_last || self.order.makes_state) {
                self.drain(step, &run, server)?;
            }
        }
        Ok(())
    }

    /// Copied data must be what was copied, which is looked at once. Then every table is read, so
    /// that all candidates begin with what their caches can hold.
    fn check_and_warm(
        &self,
        run: &WorkloadRun,
        server: &SharedServer,
        is_first: bool,
    ) -> Result<(), Broken> {
        if self.order.cell.build.engine == EngineName::Null {
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
            return Err(Broken::Failed(format!(
                "the copied data is not what was copied: {table} holds {found_rows} rows and \
                should hold {expected_rows}; resume the campaign, which makes the data anew"
            )));
        }
        Ok(run.read_all(server)?)
    }

    /// Works off the engine's debt, then waits until the plan's wait is over.
    fn drain(
        &mut self,
        step: &Step,
        run: &WorkloadRun,
        server: &SharedServer,
    ) -> Result<(), Broken> {
        let wait = Duration::from_nanos(self.order.cell.workload.wait_ns(step));
        say(&TrialMessage::Draining {
            seconds: wait.as_secs_f64(),
        });
        let started = Instant::now();
        // Looked at often: a crash is noticed within a second, here as in a step.
        let is_stopped =
            || self.control.command() == Command::Stop || server.health() != Health::Running;
        let limit = started + wait.max(DRAIN_LIMIT);
        let actions = run.drain(
            step,
            server,
            self.order.makes_state,
            started + wait,
            limit,
            &is_stopped,
        )?;
        let waited_s = wait_out(started, wait, &is_stopped)?;
        self.record_drain(
            step,
            actions,
            started.elapsed().as_secs_f64() - waited_s,
            waited_s,
        )
    }

    fn record_drain(
        &mut self,
        step: &Step,
        actions: Vec<DrainAction>,
        drained_s: f64,
        waited_s: f64,
    ) -> Result<(), Broken> {
        say(&TrialMessage::Drained {
            drained_s,
            waited_s,
        });
        self.events.append(&Event::DrainDone(DrainDone {
            step: step.name.clone(),
            actions: actions
                .into_iter()
                .map(|a| DrainStep {
                    action: a.action,
                    seconds: a.seconds,
                    result: a.result,
                })
                .collect(),
            drained_s,
            waited_s,
        }))?;
        Ok(self.events.sync()?)
    }

    /// The cause behind what went wrong: a server that hangs or a disk that is nearly full, a
    /// server that is gone, or what it seemed to be.
    fn explain(&mut self, server: &SharedServer, step: Option<&str>, broken: Broken) -> Broken {
        if let Broken::Told(_) = broken {
            return broken;
        }
        if let Some(reason) = self.watchdog.verdict() {
            return Broken::Failed(reason.to_owned());
        }
        let is_owned = !server.processes().is_empty();
        let deadline = Instant::now() + CRASH_PATIENCE;
        while is_owned
            && matches!(broken, Broken::Failed(_))
            && server.health() == Health::Running
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        // The watchdog may have ended it meanwhile.
        match self.watchdog.verdict() {
            Some(reason) => Broken::Failed(reason.to_owned()),
            None => record_crash(&mut self.events, server, step).unwrap_or(broken),
        }
    }

    /// Records that a step did not end as it should.
    fn fail_step(
        &mut self,
        step: &Step,
        server: &SharedServer,
        broken: Broken,
        operations: Vec<plimsoll_core::record::OperationRecord>,
    ) -> Broken {
        let broken = self.explain(server, Some(&step.name), broken);
        self.record_failed_step(step, broken, operations)
    }

    /// Writes down why a step did not end as it should, where no event says it yet.
    fn record_failed_step(
        &mut self,
        step: &Step,
        broken: Broken,
        operations: Vec<plimsoll_core::record::OperationRecord>,
    ) -> Broken {
        let reason = match &broken {
            Broken::Interrupted => "interrupted".to_owned(),
            Broken::Failed(reason) => reason.clone(),
            Broken::Told(_) => return broken,
        };
        let event = Event::StepFailed(StepFailed {
            step: step.name.clone(),
            reason,
            operations,
        });
        match self.events.append(&event) {
            Ok(()) => match broken {
                Broken::Failed(reason) => Broken::Told(format!("{}: {reason}", step.name)),
                other => other,
            },
            Err(error) => error.into(),
        }
    }
}

/// Waits until the plan's wait is over that began at `started`, and says for how many seconds that
/// was.
fn wait_out(
    started: Instant,
    wait: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<f64, Broken> {
    let drained = Instant::now();
    while started.elapsed() < wait {
        if is_stopped() {
            return Err(Broken::Interrupted);
        }
        std::thread::sleep(Duration::from_millis(50).min(wait.saturating_sub(started.elapsed())));
    }
    Ok(drained.elapsed().as_secs_f64())
}

/// Records that a server is gone, if it is: then everything else that went wrong follows from that.
fn record_crash(
    events: &mut EventWriter,
    server: &SharedServer,
    step: Option<&str>,
) -> Option<Broken> {
    let Health::Crashed { status, log_tail } = server.health() else {
        return None;
    };
    let during = step.map_or(String::new(), |step| format!(" during {step}"));
    let reason = format!("the server crashed{during} ({status})");
    let event = Event::ServerCrashed(ServerCrashed {
        step: step.map(str::to_owned),
        status,
        log_tail,
    });
    Some(
        events
            .append(&event)
            .and_then(|()| events.sync())
            .map_or_else(Broken::from, |()| Broken::Told(reason)),
    )
}

fn pin(cpus: &str) -> Result<(), Broken> {
    let cpus = Cpus::parse(cpus).ok_or_else(|| {
        Broken::Failed(format!("{cpus} is no set of CPUs; write one like 0 or 1-3"))
    })?;
    pin_thread(&cpus).map_err(|error| {
        Broken::Failed(format!(
            "the CPUs {cpus} cannot be had: {error}; choose others with --placement"
        ))
    })
}

fn create_data_dir(dir: &Path) -> Result<(), Broken> {
    fs::create_dir_all(dir).map_err(|error| {
        Broken::Failed(format!(
            "failed to make the data directory {}: {error}",
            dir.display()
        ))
    })?;
    let mut entries = fs::read_dir(dir)
        .map_err(|error| Broken::Failed(format!("failed to read {}: {error}", dir.display())))?;
    if entries.next().is_some() {
        return Err(Broken::Failed(format!(
            "the data directory {} is not empty",
            dir.display()
        )));
    }
    Ok(())
}
