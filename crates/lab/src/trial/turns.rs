//! A step in turns, as its trial does it: the orchestrator says when the workers may work, and hears what they did.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;
use plimsoll_core::record::{Reading, Readings};
use plimsoll_host::{CpuClocks, Pausable, Proc, busy_ns, speed_witness, tree_pids};
use plimsoll_load::{Board, Command, Control, MonotonicClock, Tally, TurnClock};
use plimsoll_store::Turn;
use plimsoll_workload::SharedServer;

use super::watchdog::Watchdog;
use super::{Broken, say};
use crate::message::{Direction, TrialMessage, TurnDone, TurnOrder};

/// What of a turn is discarded: its first tenth.
const DISCARDED: u64 = 10;
const LOOK: Duration = Duration::from_millis(50);

/// What the turns of a step leave.
pub(super) struct Taken {
    pub turns: Vec<Turn>,
    /// The server's counters before the first.
    pub counters: BTreeMap<String, i64>,
    /// CPU over all turns, those for warming up and the discarded tenths included, as operations are.
    pub host: Readings,
}

/// Why there were no more turns.
pub(super) enum Cut {
    Interrupted,
    Failed(String),
}

/// Hands the orchestrator's turns to the workers of one step.
pub(super) struct Director<'a> {
    directions: &'a Mutex<Receiver<Direction>>,
    control: &'a Arc<Control>,
    step: String,
    /// A worker that does not come back from an operation for so long hangs.
    limit: Duration,
    watchdog: &'a Watchdog,
    roots: Vec<u32>,
    counters: BTreeMap<String, i64>,
    clock: Arc<TurnClock>,
    board: Arc<Board>,
    has_ended: AtomicBool,
}

impl<'a> Director<'a> {
    pub fn new(
        directions: &'a Mutex<Receiver<Direction>>,
        control: &'a Arc<Control>,
        step: &str,
        limit: Duration,
        watchdog: &'a Watchdog,
        server: &SharedServer,
    ) -> Result<Self, Broken> {
        Ok(Self {
            directions,
            control,
            step: step.to_owned(),
            limit,
            watchdog,
            roots: server.processes(),
            counters: server.counters()?,
            clock: Arc::new(TurnClock::new(control.clone())),
            board: Arc::new(Board::default()),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Runs the workers with `work` while turns are handed out, and gives what both leave.
    pub fn direct<T>(mut self, work: impl FnOnce(&Arc<TurnClock>, &Arc<Board>) -> T) -> (T, Result<Taken, Cut>) {
        self.control.give(Command::Park);
        let counters = std::mem::take(&mut self.counters);
        let (worked, taken) = thread::scope(|scope| {
            let directing = scope.spawn(|| {
                let taken = self.hand_out();
                if taken.is_err() {
                    self.control.give(Command::Stop);
                }
                taken
            });
            let worked = work(&self.clock, &self.board);
            self.has_ended.store(true, Ordering::SeqCst);
            let taken = directing.join().unwrap_or_else(|_| Err(Cut::Failed("the turns' thread panicked: see the trial's log".into())));
            (worked, taken)
        });
        // What comes next is no turn.
        self.control.give(Command::Run);
        (worked, taken.map(|(turns, host)| Taken { turns, counters, host }))
    }

    fn hand_out(&self) -> Result<(Vec<Turn>, Readings), Cut> {
        MonotonicClock::set_finest_slack();
        while self.board.tallies().is_empty() {
            self.check()?;
            thread::sleep(Duration::from_millis(1));
        }
        self.settle()?;
        let servers = if self.roots.is_empty() {
            Vec::new()
        } else {
            // Connected workers have their processes by now.
            tree_pids(&Proc::new(), &self.roots).map_err(Cut::Failed)?
        };
        let mut meter = Meter::new(&servers);
        let pausable = Pausable::new(&servers).map_err(Cut::Failed)?;
        // An embedded engine works here, and may go on in the turns of others: it is told like a server.
        let servers = if servers.is_empty() { vec![std::process::id()] } else { servers };
        // What a server has left to do it does in its own turns. A given one has no processes here.
        pausable.pause();
        say(&TrialMessage::Ready { step: self.step.clone(), servers });
        let begin = Instant::now();
        let mut turns = Vec::new();
        loop {
            match self.next()? {
                Direction::Peers { servers, others } => meter.set_peers(servers, others),
                Direction::Turn(order) => {
                    pausable.go_on();
                    let turn = self.take(order, begin, &mut meter)?;
                    pausable.pause();
                    say(&TrialMessage::TurnDone(TurnDone {
                        round: order.round,
                        operations: turn.operations,
                        active_ns: turn.active_ns,
                        server_cpu_ns: turn.server_cpu_ns,
                        other_servers_cpu_ns: turn.other_servers_cpu_ns,
                        left_cpu_ns: turn.left_cpu_ns,
                    }));
                    if order.round > 0 {
                        turns.push(turn);
                    }
                }
                Direction::Finish => {
                    self.clock.resume();
                    self.control.give(Command::Finish);
                    return Ok((turns, meter.into_readings()));
                }
            }
        }
    }

    /// The next direction. The orchestrator's patience is the deadline; its end is the trial's.
    fn next(&self) -> Result<Direction, Cut> {
        loop {
            let received = self.directions.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(LOOK);
            match received {
                Ok(direction) => return Ok(direction),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => return Err(Cut::Interrupted),
            }
        }
    }

    fn check(&self) -> Result<(), Cut> {
        let is_over = self.has_ended.load(Ordering::SeqCst) || self.control.command() == Command::Stop;
        if is_over { Err(Cut::Interrupted) } else { Ok(()) }
    }

    /// Parks the workers, and stops their clock when all of them are.
    fn settle(&self) -> Result<(), Cut> {
        self.control.give(Command::Park);
        if !self.control.wait_until_parked(self.limit) {
            self.check()?;
            let reason = format!("hung: a worker is still in an operation {} s after its turn", self.limit.as_secs());
            self.watchdog.end_hung_server(&reason);
            return Err(Cut::Failed(reason));
        }
        self.clock.pause();
        Ok(())
    }

    fn take(&self, order: TurnOrder, begin: Instant, meter: &mut Meter) -> Result<Turn, Cut> {
        let speed = speed_witness();
        let first = self.look(|| meter.read());
        let begin_ns = begin.elapsed().as_nanos() as u64;
        let (start_ns, from_ns) = (self.clock.now_ns(), MonotonicClock.now_ns());
        self.clock.resume();
        self.control.give(Command::Run);
        MonotonicClock.sleep_until_ns(from_ns + order.length_ns / DISCARDED);
        let second = self.look(|| meter.read_ours());
        MonotonicClock.sleep_until_ns(from_ns + order.length_ns);
        self.settle()?;
        let last = self.look(|| meter.read());
        let whole = last.cpu.since(&first.cpu);
        let length_ns = self.clock.now_ns() - start_ns;
        meter.add(&whole, length_ns);
        // Whose first operation takes longer than the discarded tenth keeps all of it.
        let is_slow = second.tallies.iter().any(|tally| tally.last_done_ns <= start_ns);
        let from = if is_slow { &first } else { &second };
        let (operations, active_ns) = done_between(from, &last, start_ns, is_slow);
        let cpu = last.cpu.since(&from.cpu);
        let is_embedded = self.roots.is_empty();
        let of_engine = |cpu: &Cpu| if is_embedded { cpu.client_ns } else { cpu.server_ns };
        let left = meter.rest_since_turn(&first.cpu, &last.cpu);
        let counted = active_ns as f64 / length_ns.max(1) as f64;
        Ok(Turn {
            round: order.round,
            position: order.position,
            begin_ns,
            active_ns,
            operations,
            errors: last.unsuccessful - from.unsuccessful,
            server_cpu_ns: of_engine(&cpu),
            client_cpu_ns: cpu.client_ns.filter(|_| !is_embedded),
            speed: Some(speed),
            foreign_cpu_ns: whole.foreign_ns(),
            other_servers_cpu_ns: cpu.other_servers_ns,
            left_cpu_ns: left.as_ref().and_then(of_engine).map(|ns| (ns as f64 * counted) as u64),
        })
    }

    fn look(&self, cpu: impl FnOnce() -> Cpu) -> Look {
        Look { tallies: self.board.tallies(), unsuccessful: self.board.unsuccessful(), cpu: cpu() }
    }
}

/// One look at everything that a turn is measured by.
struct Look {
    tallies: Vec<Tally>,
    unsuccessful: u64,
    cpu: Cpu,
}

/// Operations from one look to the next, and the time they took: from the end of the last operation before to the end of the last one, the
/// mean over the workers that did any. So no operation counts that was not measured whole.
fn done_between(from: &Look, to: &Look, start_ns: u64, is_from_start: bool) -> (u64, u64) {
    let workers = from.tallies.iter().zip(&to.tallies).filter(|(from, to)| to.ok > from.ok);
    let (mut operations, mut active_ns, mut count) = (0, 0, 0);
    for (from, to) in workers {
        operations += to.ok - from.ok;
        active_ns += to.last_done_ns - if is_from_start { start_ns } else { from.last_done_ns };
        count += 1;
    }
    (operations, active_ns / count.max(1))
}

/// CPU used since some instant long ago, or between two looks.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    server_ns: Option<u64>,
    client_ns: Option<u64>,
    other_servers_ns: Option<u64>,
    /// Of the campaign's other processes.
    others_ns: Option<u64>,
    busy_ns: Option<u64>,
}

impl Cpu {
    fn since(&self, earlier: &Self) -> Self {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            server_ns: grown(self.server_ns, earlier.server_ns),
            client_ns: grown(self.client_ns, earlier.client_ns),
            other_servers_ns: grown(self.other_servers_ns, earlier.other_servers_ns),
            others_ns: grown(self.others_ns, earlier.others_ns),
            busy_ns: grown(self.busy_ns, earlier.busy_ns),
        }
    }

    /// Below zero where the kernel's ticks missed what ours used.
    fn foreign_ns(&self) -> Option<i64> {
        let ours: u64 = [self.server_ns, self.client_ns, self.other_servers_ns, self.others_ns].into_iter().flatten().sum();
        i64::try_from(i128::from(self.busy_ns?) - i128::from(ours)).ok()
    }
}

/// The clocks that a turn is measured by.
struct Meter {
    proc: Proc,
    server: CpuClocks,
    client: CpuClocks,
    other_servers: CpuClocks,
    others: CpuClocks,
    /// At the end of the turn before.
    last: Option<Cpu>,
    total: Cpu,
    active_ns: u64,
}

impl Meter {
    fn new(servers: &[u32]) -> Self {
        Self {
            proc: Proc::new(),
            server: CpuClocks::new(servers.iter().copied()),
            client: CpuClocks::new([std::process::id()]),
            other_servers: CpuClocks::default(),
            others: CpuClocks::default(),
            last: None,
            total: Cpu::default(),
            active_ns: 0,
        }
    }

    fn set_peers(&mut self, servers: Vec<u32>, others: Vec<u32>) {
        (self.other_servers, self.others) = (CpuClocks::new(servers), CpuClocks::new(others));
    }

    fn read(&mut self) -> Cpu {
        Cpu { busy_ns: busy_ns(&self.proc).ok(), ..self.read_ours() }
    }

    /// Without the CPU of the whole machine, which takes longer to read than may be spent while workers are at work.
    fn read_ours(&mut self) -> Cpu {
        Cpu {
            server_ns: self.server.read_ns(),
            client_ns: self.client.read_ns(),
            other_servers_ns: self.other_servers.read_ns(),
            others_ns: self.others.read_ns(),
            busy_ns: None,
        }
    }

    /// CPU from the end of the turn before, if there was one, to the first look at this one; `last` is the end of this one.
    fn rest_since_turn(&mut self, first: &Cpu, last: &Cpu) -> Option<Cpu> {
        self.last.replace(*last).map(|before| first.since(&before))
    }

    fn add(&mut self, cpu: &Cpu, active_ns: u64) {
        let sum = |total: Option<u64>, more: Option<u64>| more.map(|more| total.unwrap_or(0) + more);
        self.total.server_ns = sum(self.total.server_ns, cpu.server_ns);
        self.total.client_ns = sum(self.total.client_ns, cpu.client_ns);
        self.active_ns += active_ns;
    }

    /// Of the readings of a step those that mean something when others have their turns meanwhile.
    fn into_readings(self) -> Readings {
        let seconds = |ns: u64| Reading::Ok(ns as f64 / 1e9);
        let cpu = |ns: Option<u64>| ns.map_or_else(|| Reading::Unavailable("the step had no turn".to_owned()), seconds);
        let shared = || Reading::Unavailable("shares the process with the engine".to_owned());
        let not_here = || Reading::Unavailable("the engine is a server".to_owned());
        let is_embedded = self.total.server_ns.is_none();
        let [server, client, process] = match is_embedded {
            true => [shared(), shared(), cpu(self.total.client_ns)],
            false => [cpu(self.total.server_ns), cpu(self.total.client_ns), not_here()],
        };
        Readings::from([
            ("seconds".to_owned(), seconds(self.active_ns)),
            ("server_cpu_s".to_owned(), server),
            ("client_cpu_s".to_owned(), client),
            ("process_cpu_s".to_owned(), process),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(tallies: &[(u64, u64)]) -> Look {
        let tallies = tallies.iter().map(|&(ok, last_done_ns)| Tally { ok, last_done_ns }).collect();
        Look { tallies, unsuccessful: 0, cpu: Cpu::default() }
    }

    #[test]
    fn operations_are_counted_whole() {
        for (from, to, is_from_start, expected) in [
            // From the end of the last operation in the discarded tenth to the end of the last one.
            (&[(3, 1_150)][..], &[(13, 2_150)][..], false, (10, 1_000)),
            // The first operation took longer than the tenth: it counts from the turn's beginning.
            (&[(3, 900)], &[(4, 1_800)], true, (1, 800)),
            // The mean over workers; one that did nothing more says nothing about time.
            (&[(3, 1_100), (5, 1_200)], &[(13, 2_100), (7, 2_000)], false, (12, 900)),
            (&[(3, 1_100), (5, 1_200)], &[(13, 2_100), (5, 1_200)], false, (10, 1_000)),
            (&[(3, 1_100)], &[(3, 1_100)], false, (0, 0)),
        ] {
            assert_eq!(done_between(&look(from), &look(to), 1_000, is_from_start), expected, "{from:?} {to:?}");
        }
    }

    #[test]
    fn foreign_cpu_is_what_no_process_of_ours_used() {
        let cpu = Cpu { server_ns: Some(5), client_ns: Some(3), other_servers_ns: Some(1), others_ns: None, busy_ns: Some(20) };
        assert_eq!(cpu.foreign_ns(), Some(11));
        assert_eq!(Cpu { busy_ns: Some(0), ..cpu }.foreign_ns(), Some(-9), "no tick fell into the turn");
        assert_eq!(Cpu { busy_ns: None, ..cpu }.foreign_ns(), None);
        let later = Cpu { server_ns: Some(9), busy_ns: None, ..cpu };
        assert_eq!((later.since(&cpu).server_ns, later.since(&cpu).busy_ns), (Some(4), None));
    }
}
