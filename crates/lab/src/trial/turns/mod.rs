//! A step in turns, as its trial does it: the orchestrator says when the workers may work, and
//! is sent what they did.

mod meter;
mod window;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;
use plimsoll_core::planted::{self, Bug};
use plimsoll_core::readings::Readings;
use plimsoll_core::record::TurnSums;
use plimsoll_host::{Proc, ServerProcesses, speed_witness};
use plimsoll_load::{
    Command, Control, MonotonicClock, Patience, TurnClock, TurnProgress, WorkerProgress,
};
use plimsoll_store::Turn;
use plimsoll_workload::SharedServer;

use self::meter::{Cpu, TurnMeter};
use self::window::{Part, counted_share, parts};
use super::early_end::EarlyEnd;
use super::send;
use super::waits::WaitSampling;
use super::watchdog::Watchdog;
use crate::message::{TrialMessage, TurnCommand, TurnDone, TurnOrder};

const LOOK: Duration = Duration::from_millis(50);
/// An engine rests when it uses no more than this, in cores, for this long: longer than the second
/// after which many of them look for work.
const REST_CORES: f64 = 0.03;
const REST_LOOK: Duration = Duration::from_millis(1200);
/// One that does not come to rest is not waited for any longer.
const REST_LIMIT: Duration = Duration::from_secs(15);

/// What the turns of a step leave.
pub(super) struct TurnsRecord {
    pub turns: Vec<Turn>,
    /// The server's counters before the first.
    pub counters: BTreeMap<String, i64>,
    /// CPU over all turns, those for warming up and the discarded parts included, as the step's
    /// operations are. Switches and I/O of the server over all recorded turns, discarded parts
    /// included, as `all_operations` of the turns are.
    pub host: Readings,
    /// By client: what its worker did, those for warming up and the discarded parts left out.
    pub sums: BTreeMap<u32, TurnSums>,
}

/// Why there were no more turns.
pub(super) enum TurnsStopped {
    Interrupted,
    Failed(String),
}

/// Hands the orchestrator's turns to the workers of one step.
pub(super) struct TurnRunner<'a> {
    commands: &'a Mutex<Receiver<TurnCommand>>,
    control: &'a Arc<Control>,
    step: String,
    /// A worker that does not come back from an operation for this long hangs.
    limit: Duration,
    /// All workers are connected by then, or the step itself gives up.
    open_limit: Duration,
    watchdog: &'a Watchdog,
    roots: Vec<u32>,
    data_dir: &'a Path,
    counters: BTreeMap<String, i64>,
    /// Whether the step before wrote: what it left to do is done before the first turn.
    must_rest: bool,
    waits: Option<&'a WaitSampling>,
    clock: Arc<TurnClock>,
    progress: Arc<TurnProgress>,
    has_ended: AtomicBool,
}

impl<'a> TurnRunner<'a> {
    pub fn new(
        commands: &'a Mutex<Receiver<TurnCommand>>,
        control: &'a Arc<Control>,
        step: &str,
        limit: Duration,
        watchdog: &'a Watchdog,
        (server, data_dir): (&SharedServer, &'a Path),
    ) -> Result<Self, EarlyEnd> {
        Ok(Self {
            commands,
            control,
            step: step.to_owned(),
            limit,
            open_limit: limit,
            watchdog,
            roots: server.processes(),
            data_dir,
            counters: server.counters()?,
            must_rest: false,
            waits: None,
            clock: Arc::new(TurnClock::new(control.clone())),
            progress: Arc::new(TurnProgress::default()),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Workers may take this long to connect, which is not an operation.
    pub fn with_open_limit(self, open_limit: Duration) -> Self {
        Self { open_limit, ..self }
    }

    /// Lets the engine rest before the first turn.
    pub fn after_writing(self, must_rest: bool) -> Self {
        Self { must_rest, ..self }
    }

    /// Looks at what sessions wait for, within turns alone.
    pub fn with_waits(self, waits: Option<&'a WaitSampling>) -> Self {
        Self { waits, ..self }
    }

    /// Runs the workers with `work` while turns are handed out, and gives what both leave.
    pub fn run<T>(
        self,
        work: impl FnOnce(&Arc<TurnClock>, &Arc<TurnProgress>) -> T,
    ) -> (T, Result<TurnsRecord, TurnsStopped>) {
        self.control.give(Command::Park);
        let (worked, taken) = thread::scope(|scope| {
            let directing = scope.spawn(|| {
                let taken = self.hand_out();
                // The servers go on by now.
                self.watchdog.go_on();
                if taken.is_err() {
                    self.control.give(Command::Stop);
                }
                taken
            });
            let worked = work(&self.clock, &self.progress);
            self.has_ended.store(true, Ordering::SeqCst);
            let taken = directing.join().unwrap_or_else(|_| {
                Err(TurnsStopped::Failed(
                    "the turns' thread panicked: see the trial's log".into(),
                ))
            });
            (worked, taken)
        });
        // What comes next is not a turn.
        self.control.give(Command::Run);
        (worked, taken)
    }

    fn hand_out(&self) -> Result<TurnsRecord, TurnsStopped> {
        MonotonicClock::set_finest_slack();
        while !self.progress.has_workers() {
            self.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        self.settle(self.limit + self.open_limit)?;
        // Connected workers have their processes by now.
        let servers = if self.roots.is_empty() {
            None
        } else {
            Some(find(&self.roots)?)
        };
        let mut meter = TurnMeter::new(servers, self.data_dir);
        if self.must_rest {
            self.rest(&mut meter)?;
        }
        // What a server has left to do it does in its own turns. An external one has no processes
        // here.
        self.pause(&mut meter)?;
        send(&TrialMessage::Ready {
            step: self.step.clone(),
            servers: meter.pids(),
        });
        let begin = Instant::now();
        let mut turns = Vec::new();
        let mut sums: BTreeMap<u32, TurnSums> = BTreeMap::new();
        loop {
            match self.next()? {
                TurnCommand::Peers { servers, others } => meter.set_peers(servers, others),
                TurnCommand::Turn(order) => {
                    let received = Instant::now();
                    if order.round > 0 && meter.begin_recording() {
                        self.progress.leave_out_times();
                    }
                    let left_ns = meter.left_ns();
                    let inflight = meter.in_flight();
                    meter.begin_strangers();
                    self.go_on(&mut meter);
                    let (turn, parts, has_new) = self.take(order, begin, &mut meter)?;
                    let has_new = self.pause(&mut meter)? || has_new;
                    let turn = Turn {
                        inflight,
                        left_cpu_ns: left_ns.map(|ns| share_of(ns, &turn, received.elapsed())),
                        foreign_cpu_ns: meter.strangers_ns(),
                        ..turn
                    };
                    meter.end_turn();
                    send(&TrialMessage::TurnDone(TurnDone {
                        round: order.round,
                        operations: turn.operations,
                        active_ns: turn.active_ns,
                        operation_ns: length_of_operations(&parts),
                        server_cpu_ns: turn.server_cpu_ns,
                        other_servers_cpu_ns: turn.other_servers_cpu_ns,
                        left_cpu_ns: turn.left_cpu_ns,
                        new_servers: has_new.then(|| meter.pids()),
                    }));
                    // Round 0 warms up: the orchestrator learns of it, and nothing is recorded.
                    if order.round > 0 {
                        turns.push(turn);
                        for part in parts {
                            let sum = sums.entry(part.client).or_default();
                            sum.operations += part.operations;
                            sum.active_ns += part.active_ns;
                        }
                    }
                }
                TurnCommand::Finish => {
                    let host = meter.into_readings();
                    self.clock.resume();
                    self.control.give(Command::Finish);
                    return Ok(TurnsRecord {
                        turns,
                        counters: self.counters.clone(),
                        host,
                        sums,
                    });
                }
            }
        }
    }

    /// Stops the server until its next turn. Nobody asks meanwhile whether it answers. True when it
    /// has processes that it did not have before.
    fn pause(&self, meter: &mut TurnMeter) -> Result<bool, TurnsStopped> {
        let Some(servers) = &mut meter.servers else {
            return Ok(false);
        };
        self.watchdog.pause();
        servers.pause().map_err(TurnsStopped::Failed)
    }

    fn go_on(&self, meter: &mut TurnMeter) {
        if let Some(servers) = &mut meter.servers {
            servers.go_on();
            self.watchdog.go_on();
        }
    }

    /// Waits until the engine has done what the step before left, or for as long as [`REST_LIMIT`].
    /// It runs meanwhile, workers parked: otherwise it would do that in the first turns of this
    /// step, and a build that leaves more would look slower in a step that is not the one that left
    /// it.
    fn rest(&self, meter: &mut TurnMeter) -> Result<(), TurnsStopped> {
        let mut patience = Patience::new(REST_LIMIT);
        while !patience.is_over() {
            let (before, from) = (meter.read_ours(), Instant::now());
            while from.elapsed() < REST_LOOK {
                self.check()?;
                thread::sleep(LOOK);
            }
            if let Some(servers) = &mut meter.servers {
                servers.refresh().map_err(TurnsStopped::Failed)?;
            }
            let used_ns = meter.read_ours().since(&before).engine_ns.unwrap_or(0);
            if used_ns as f64 <= REST_CORES * from.elapsed().as_nanos() as f64 {
                break;
            }
        }
        Ok(())
    }

    /// The next direction. The orchestrator's patience is the deadline; its end is the trial's.
    fn next(&self) -> Result<TurnCommand, TurnsStopped> {
        loop {
            let received = self
                .commands
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv_timeout(LOOK);
            match received {
                Ok(command) => return Ok(command),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(TurnsStopped::Interrupted),
            }
        }
    }

    fn check(&self) -> Result<(), TurnsStopped> {
        let is_over =
            self.has_ended.load(Ordering::SeqCst) || self.control.command() == Command::Stop;
        if is_over {
            Err(TurnsStopped::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Parks the workers, and stops their clock when all of them are.
    fn settle(&self, limit: Duration) -> Result<(), TurnsStopped> {
        self.control.give(Command::Park);
        if !self.control.wait_until_parked(limit) {
            self.check()?;
            let reason = format!(
                "hung: a worker is still in an operation {} s after its turn",
                limit.as_secs()
            );
            self.watchdog.end_hung_server(&reason);
            return Err(TurnsStopped::Failed(reason));
        }
        self.clock.pause();
        Ok(())
    }

    /// One turn: what is recorded of it, what each worker did, and whether the server has new
    /// processes.
    fn take(
        &self,
        order: TurnOrder,
        begin: Instant,
        meter: &mut TurnMeter,
    ) -> Result<(Turn, Vec<Part>, bool), TurnsStopped> {
        // Before the turn begins: it uses the CPU itself.
        let speed = speed_witness();
        let first = self.look(|| meter.read());
        let begin_ns = begin.elapsed().as_nanos() as u64;
        // What is discarded ends as the turn does, with all workers parked: what counts begins and
        // ends between operations, and so does its CPU.
        let second = match order.discarded_ns {
            0 => None,
            discarded_ns => {
                self.progress.discard_times(true);
                self.work_for(discarded_ns)?;
                self.progress.discard_times(false);
                Some(self.look(|| meter.read_ours()))
            }
        };
        let from = second
            .as_ref()
            .filter(|_| !planted::is(Bug::DiscardedPartCounted))
            .unwrap_or(&first);
        self.progress.begin_turn(from.at_ns);
        // The turns for warming up count nowhere.
        if let Some(waits) = self.waits.filter(|_| order.round > 0) {
            waits.begin_at(Instant::now());
        }
        self.work_for(order.length_ns.saturating_sub(order.discarded_ns))?;
        if let Some(waits) = self.waits {
            waits.pause();
        }
        let mut last = self.look(|| meter.read());
        // What was born in this turn has worked in it.
        let has_new = meter
            .servers
            .as_mut()
            .map_or(Ok(false), ServerProcesses::refresh)
            .map_err(TurnsStopped::Failed)?;
        if has_new {
            last.cpu = meter.read();
        }
        let whole = last.cpu.since(&first.cpu);
        let length_ns = last.at_ns - first.at_ns;
        meter.add(&whole, length_ns);
        let bounds = (from.at_ns, last.at_ns);
        let parts = parts(bounds, second.is_some(), &from.of_workers, &last.of_workers);
        let since = operations_between(&from.of_workers, &last.of_workers);
        let share = counted_share(&parts, since);
        let counted = |ns: u64| (ns as f64 * share).round() as u64;
        let active_ns =
            parts.iter().map(|part| part.active_ns).sum::<u64>() / (parts.len() as u64).max(1);
        let cpu = last.cpu.since(&from.cpu);
        let turn = Turn {
            round: order.round,
            position: order.position,
            begin_ns,
            active_ns,
            operations: parts.iter().map(|part| part.operations).sum(),
            errors: last.unsuccessful - from.unsuccessful,
            server_cpu_ns: cpu.engine_ns.map(counted),
            client_cpu_ns: cpu.client_ns.map(counted),
            speed: Some(speed),
            foreign_cpu_ns: None,
            other_servers_cpu_ns: cpu.other_servers_ns.map(counted),
            left_cpu_ns: None,
            length_ns: Some(length_ns),
            all_operations: Some(operations_between(&first.of_workers, &last.of_workers)),
            stolen_ns: whole.stolen_ns,
            inflight: None,
            planned_ns: Some(order.length_ns),
            candidates: Some(u64::from(order.candidates)),
        };
        Ok((turn, parts, has_new))
    }

    /// Lets the workers work for `ns`, and parks them.
    fn work_for(&self, ns: u64) -> Result<(), TurnsStopped> {
        let from_ns = MonotonicClock.now_ns();
        self.clock.resume();
        self.control.give(Command::Run);
        MonotonicClock.sleep_until_ns(from_ns + ns);
        self.settle(self.limit)
    }

    fn look(&self, cpu: impl FnOnce() -> Cpu) -> Snapshot {
        let at_ns = self.clock.now_ns();
        Snapshot {
            at_ns,
            of_workers: self.progress.of_workers(),
            unsuccessful: self.progress.unsuccessful(),
            cpu: cpu(),
        }
    }
}

/// Those of all workers, whether they count in the turn or not.
fn operations_between(from: &[WorkerProgress], to: &[WorkerProgress]) -> u64 {
    from.iter()
        .zip(to)
        .map(|(from, to)| to.ok.saturating_sub(from.ok))
        .sum()
}

/// Of what was used between two turns, as much as goes with the turns of the others, which have as
/// much between them as this one: of all the time that this turn took, the part that counts.
fn share_of(ns: u64, turn: &Turn, all: Duration) -> u64 {
    (ns as f64 * turn.active_ns as f64 / (all.as_nanos() as f64).max(1.0)) as u64
}

/// The mean time of one operation of a worker; none without one.
fn length_of_operations(parts: &[Part]) -> Option<u64> {
    let operations: u64 = parts.iter().map(|part| part.operations).sum();
    parts
        .iter()
        .map(|part| part.active_ns)
        .sum::<u64>()
        .checked_div(operations)
}

fn find(roots: &[u32]) -> Result<ServerProcesses, TurnsStopped> {
    ServerProcesses::find(&Proc::new(), roots).map_err(TurnsStopped::Failed)
}

/// One look at everything that a turn is measured by.
struct Snapshot {
    /// On the step's clock.
    at_ns: u64,
    of_workers: Vec<WorkerProgress>,
    unsuccessful: u64,
    cpu: Cpu,
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use plimsoll_load::{
        Arrival, Next, Outcome, Progress, StepOptions, StepOutputs, Stop, Task, Worker, no_series,
        run_step,
    };

    use super::*;

    /// Connects slowly, as one of a thousand does, or works slowly.
    struct Slow {
        opens: Duration,
        works: Duration,
    }

    impl Worker for Slow {
        fn open(&mut self) -> Result<(), String> {
            thread::sleep(self.opens);
            Ok(())
        }

        fn prepare(&mut self) -> Result<Next, String> {
            Ok(Next::Operation(0))
        }

        fn execute(&mut self) -> Outcome {
            thread::sleep(self.works);
            Outcome::Done { rows: 1 }
        }
    }

    #[test]
    fn what_is_discarded_counts_nowhere() {
        let order = TurnOrder {
            round: 1,
            position: 1,
            length_ns: 60_000_000,
            discarded_ns: 40_000_000,
            candidates: 1,
        };
        let whole = TurnOrder {
            discarded_ns: 0,
            ..order
        };
        let worker = Box::new(Slow {
            opens: Duration::ZERO,
            works: Duration::from_millis(2),
        });
        let commands = [order, whole].map(TurnCommand::Turn).into_iter();
        let (taken, _) = taken(commands, worker, Duration::from_secs(60));
        let Ok(TurnsRecord { turns, .. }) = taken else {
            panic!("there are no turns")
        };
        let [cut, whole] = &turns[..] else {
            panic!("{turns:?}")
        };
        assert_eq!(Some(whole.operations), whole.all_operations);
        assert!(
            cut.operations > 0 && cut.operations < cut.all_operations.unwrap(),
            "{cut:?}"
        );
        assert!(
            cut.active_ns <= cut.length_ns.unwrap() - order.discarded_ns,
            "{cut:?}"
        );
        assert!(
            cut.active_ns >= 2_000_000 * cut.operations,
            "no operation is cut: {cut:?}"
        );
    }

    /// What it did between turns counted as left, and was suffered by nobody: with turns of 5 ms an
    /// engine that compacts with a tenth of a core was left out.
    #[test]
    fn an_engine_that_works_all_the_time_leaves_as_much_as_it_suffers() {
        const CORES: f64 = 0.5;
        let (active, all, others) = (Duration::from_millis(3), Duration::from_millis(6), 3);
        let ns = |time: Duration| (CORES * (others * time).as_nanos() as f64) as u64;
        let turn = Turn {
            active_ns: active.as_nanos() as u64,
            ..Turn::default()
        };
        assert_eq!(share_of(ns(all), &turn, all), ns(active));
    }

    /// What a step with one worker leaves that is given these commands and then told to finish, and
    /// what the watchdog says.
    fn taken(
        commands: impl Iterator<Item = TurnCommand>,
        worker: Box<dyn Worker>,
        limit: Duration,
    ) -> (Result<TurnsRecord, TurnsStopped>, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let control = Arc::new(Control::default());
        let watchdog = Watchdog::start(limit, dir.path(), dir.path(), control.clone()).unwrap();
        let (sender, receiver) = channel();
        for command in commands.chain([TurnCommand::Finish]) {
            sender.send(command).unwrap();
        }
        let commands = Mutex::new(receiver);
        let turns = TurnRunner {
            commands: &commands,
            control: &control,
            step: "one".to_owned(),
            limit,
            open_limit: StepOptions::default().open_timeout,
            watchdog: &watchdog,
            roots: Vec::new(),
            data_dir: dir.path(),
            counters: BTreeMap::new(),
            must_rest: false,
            waits: None,
            clock: Arc::new(TurnClock::new(control.clone())),
            progress: Arc::default(),
            has_ended: AtomicBool::new(false),
        };
        let task = Task {
            client: 1,
            kinds: vec![0],
            arrival: Arrival::Closed,
            stop: Stop::Time(u64::MAX >> 8),
            worker,
        };
        let (worked, taken) = turns.run(|clock, progress| {
            let options = StepOptions {
                turn_progress: Some(progress.clone()),
                ..StepOptions::default()
            };
            run_step(
                clock,
                &["op"],
                vec![task],
                &control,
                &options,
                StepOutputs {
                    log: &mut std::io::sink(),
                    progress: &mut |_: &Progress| {},
                    seconds: &mut no_series,
                },
            )
        });
        assert!(worked.is_ok());
        (taken, watchdog.verdict().map(str::to_owned))
    }

    /// With `watchdog = "1s"` a server that took two seconds for a thousand connections was hung.
    #[test]
    fn workers_that_connect_for_longer_than_the_watchdog_waits_do_not_hang() {
        let limit = Duration::from_millis(100);
        let worker = Box::new(Slow {
            opens: 10 * limit,
            works: Duration::ZERO,
        });
        let (taken, verdict) = taken(std::iter::empty(), worker, limit);
        assert_eq!(verdict, None);
        assert!(taken.is_ok());
    }
}
