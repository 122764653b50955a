//! The clocks that a turn is measured by, and the counters that are read once for all turns of a
//! step.

use std::path::Path;

use plimsoll_core::planted::{self, Bug};
use plimsoll_core::readings::{CpuShare, HostReading, Reading, Readings};
use plimsoll_host::{
    Activity, CpuClocks, InFlight, MachineClocks, OtherProcesses, Proc, ServerProcesses,
};

/// CPU used since some instant long ago, or between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// Of the server; of an embedded engine, that of the trial's process, which is both.
    pub engine_ns: Option<u64>,
    /// Of the trial's process; none where the engine is in it.
    pub client_ns: Option<u64>,
    pub other_servers_ns: Option<u64>,
    /// Of the whole machine, by the hypervisor.
    pub stolen_ns: Option<u64>,
}

impl Cpu {
    pub fn since(&self, earlier: &Self) -> Self {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            engine_ns: grown(self.engine_ns, earlier.engine_ns),
            client_ns: grown(self.client_ns, earlier.client_ns),
            other_servers_ns: grown(self.other_servers_ns, earlier.other_servers_ns),
            stolen_ns: grown(self.stolen_ns, earlier.stolen_ns),
        }
    }
}

pub(super) struct TurnMeter {
    proc: Proc,
    machine: MachineClocks,
    /// The device of the data directory.
    in_flight: InFlight,
    /// None of an embedded engine.
    pub servers: Option<ServerProcesses>,
    client: CpuClocks,
    other_servers: CpuClocks,
    /// Of the campaign's other processes.
    peers: Vec<u32>,
    strangers: OtherProcesses,
    /// The engine's, when its turn before was over and it was stopped.
    at_rest_ns: Option<u64>,
    total: Cpu,
    active_ns: u64,
    /// What the engine's processes had done before the first recorded turn.
    before: Option<Activity>,
}

impl TurnMeter {
    pub fn new(servers: Option<ServerProcesses>, data_dir: &Path) -> Self {
        let proc = Proc::new();
        Self {
            machine: MachineClocks::of(&proc),
            in_flight: InFlight::under(&proc, data_dir),
            strangers: OtherProcesses::of(&proc),
            proc,
            servers,
            client: CpuClocks::new([std::process::id()]),
            other_servers: CpuClocks::default(),
            peers: Vec::new(),
            at_rest_ns: None,
            total: Cpu::default(),
            active_ns: 0,
            before: None,
        }
    }

    /// Before a recorded turn, the server still stopped; true before the first of them. What the
    /// server did until then has no part in the step's counters. A server that stands between its turns does nothing of which
    /// they would know, so one look before the first turn and one behind the last are enough; an
    /// embedded engine's process also has what it does meanwhile.
    pub fn begin_recording(&mut self) -> bool {
        let is_first = self.before.is_none();
        if is_first {
            self.before = Some(self.activity());
            // Since its turns that warm up the others had theirs, which were longer.
            self.at_rest_ns = None;
        }
        is_first
    }

    fn activity(&self) -> Activity {
        match &self.servers {
            Some(servers) => Activity::of_processes(&self.proc, &servers.pids()),
            None => Activity::of_this_process(&self.proc),
        }
    }

    /// Requests that the device is at work on.
    pub fn in_flight(&mut self) -> Option<u64> {
        self.in_flight.read().ok()
    }

    /// The engine's processes, as the others know them. An embedded engine works in this
    /// one, and may go on in the turns of others.
    pub fn pids(&self) -> Vec<u32> {
        self.servers
            .as_ref()
            .map_or_else(|| vec![std::process::id()], ServerProcesses::pids)
    }

    pub fn set_peers(&mut self, servers: Vec<u32>, others: Vec<u32>) {
        self.peers = others.into_iter().chain(servers.iter().copied()).collect();
        self.other_servers = CpuClocks::new(servers);
    }

    /// Before a turn, the server still stopped: who is not of the campaign counts from here.
    pub fn begin_strangers(&mut self) {
        let ours = self.pids().into_iter().chain(self.peers.iter().copied());
        let ours: Vec<u32> = ours.chain([std::process::id()]).collect();
        self.strangers.leave_out(ours);
        self.strangers.begin();
    }

    /// What they have used since.
    pub fn strangers_ns(&self) -> Option<i64> {
        i64::try_from(self.strangers.used_ns()?).ok()
    }

    pub fn read(&mut self) -> Cpu {
        let machine = self.machine.read();
        Cpu {
            stolen_ns: machine.stolen_ns.ok(),
            ..self.read_ours()
        }
    }

    /// Without the CPU of the whole machine, which takes longer to read than workers should stand
    /// within a turn.
    pub fn read_ours(&mut self) -> Cpu {
        let client_ns = self.client.read_ns();
        let (engine_ns, client_ns) = match &mut self.servers {
            Some(servers) => (Some(servers.cpu_ns()), client_ns),
            None => (client_ns, None),
        };
        let other_servers_ns = self.other_servers.read_ns();
        let has_others = planted::is(Bug::OthersCpuCounted);
        let others_ns = other_servers_ns.filter(|_| has_others).unwrap_or(0);
        Cpu {
            engine_ns: engine_ns.map(|ns| ns + others_ns),
            client_ns,
            other_servers_ns,
            stolen_ns: None,
        }
    }

    /// When a turn is over and the server is stopped: what the engine uses from here until
    /// [`TurnMeter::left_ns`] it uses in the turns of others.
    pub fn end_turn(&mut self) {
        self.at_rest_ns = self.read_ours().engine_ns;
    }

    /// Before a turn, the server still stopped: the engine's CPU since the turn before, if there was
    /// one. What it takes to stop and to go on again is in nobody's turn, and not in it.
    pub fn left_ns(&mut self) -> Option<u64> {
        let before = self.at_rest_ns?;
        self.read_ours()
            .engine_ns
            .map(|now| now.saturating_sub(before))
    }

    pub fn add(&mut self, cpu: &Cpu, active_ns: u64) {
        let sum =
            |total: Option<u64>, more: Option<u64>| more.map(|more| total.unwrap_or(0) + more);
        self.total.engine_ns = sum(self.total.engine_ns, cpu.engine_ns);
        self.total.client_ns = sum(self.total.client_ns, cpu.client_ns);
        self.active_ns += active_ns;
    }

    /// Of the readings of a step those that mean something when others have their turns meanwhile.
    /// For when the last turn is over and the server is still stopped.
    pub fn into_readings(self) -> Readings {
        const NO_TURN: &str = "the step had no turn";
        let seconds = |ns: u64| ns as f64 / 1e9;
        let cpu = |ns: Option<u64>| ns.map(seconds).ok_or(NO_TURN.to_owned());
        let mut readings = Readings::default();
        match &self.before {
            Some(before) => self.activity().put_since(before, &Ok(1.0), &mut readings),
            None => {
                for name in HostReading::OF_SERVER_PROCESSES {
                    readings.put(name, Reading::Unavailable(NO_TURN.to_owned()));
                }
            }
        }
        readings.put(HostReading::Seconds, seconds(self.active_ns));
        readings.put_cpu(match &self.servers {
            None => CpuShare::Embedded {
                process: cpu(self.total.engine_ns),
            },
            Some(_) => CpuShare::Server {
                client: cpu(self.total.client_ns),
                server: cpu(self.total.engine_ns),
            },
        });
        readings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_counted_to_the_nanosecond() {
        let dir = tempfile::tempdir().unwrap();
        let mut meter = TurnMeter::new(None, dir.path());
        let burn = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 60";
        let mut busy = std::process::Command::new("sh")
            .args(["-c", burn])
            .spawn()
            .unwrap();
        let used = || plimsoll_host::process_cpu_ns(busy.id());
        meter.begin_strangers();
        let begin = used().unwrap_or(0);
        while used().unwrap_or(0) < begin + 5_000_000 {
            std::thread::yield_now();
        }
        assert!(meter.strangers_ns().unwrap() >= 5_000_000);
        // One of the campaign's does not count.
        meter.set_peers(Vec::new(), vec![busy.id()]);
        meter.begin_strangers();
        assert!(meter.peers.contains(&busy.id()));
        busy.kill().unwrap();
        busy.wait().unwrap();
    }
    /// A process that uses CPU from when it is told to until it is killed, or for some seconds.
    fn worker() -> std::process::Child {
        let burn = "read line; i=0; while [ $i -lt 9000000 ]; do i=$((i + 1)); done";
        std::process::Command::new("sh")
            .args(["-c", burn])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Whoever works in a turn, the CPU is written to whose it is: no more than the process's own
    /// clock says, and no less.
    #[test]
    fn each_process_has_its_own_cpu_and_no_others() {
        const LEAST_NS: u64 = 20_000_000;
        let dir = tempfile::tempdir().unwrap();
        for works in 0..2 {
            let mut both = [worker(), worker()];
            let [server, other] = [both[0].id(), both[1].id()];
            let servers = ServerProcesses::find(&Proc::new(), &[server]).unwrap();
            let mut meter = TurnMeter::new(Some(servers), dir.path());
            meter.set_peers(vec![other], Vec::new());
            let clocks = || [server, other].map(|pid| plimsoll_host::process_cpu_ns(pid).unwrap());
            let before = clocks();
            let first = meter.read();
            let begun = clocks();
            drop(both[works].stdin.take());
            while clocks()[works] < begun[works] + LEAST_NS {
                std::thread::yield_now();
            }
            let ending = clocks();
            let found = meter.read().since(&first);
            let ended = clocks();
            for process in &mut both {
                process.kill().unwrap();
                process.wait().unwrap();
            }
            for (at, found) in [found.engine_ns, found.other_servers_ns]
                .into_iter()
                .enumerate()
            {
                let truth = ending[at] - begun[at]..=ended[at] - before[at];
                assert!(
                    truth.contains(&found.unwrap()),
                    "{works}: {found:?} of {truth:?}"
                );
            }
        }
    }

    /// PostgreSQL's processes take 0.2 ms to go on. With turns of 2 ms that was more than what a
    /// server may leave to others, and every start was left out for it.
    #[test]
    fn what_a_server_uses_before_it_stops_is_not_left_to_others() {
        const LEAST_NS: u64 = 20_000_000;
        let dir = tempfile::tempdir().unwrap();
        let mut process = worker();
        let pid = process.id();
        let servers = ServerProcesses::find(&Proc::new(), &[pid]).unwrap();
        let mut meter = TurnMeter::new(Some(servers), dir.path());
        assert_eq!(meter.left_ns(), None, "there was no turn before");
        let work = |ns: u64| {
            let used_ns = || plimsoll_host::process_cpu_ns(pid).unwrap();
            let until_ns = used_ns() + ns;
            while used_ns() < until_ns {
                std::thread::yield_now();
            }
        };
        meter.end_turn();
        drop(process.stdin.take());
        work(LEAST_NS);
        assert!(
            meter.left_ns().unwrap() >= LEAST_NS,
            "it was not stopped, and worked on"
        );
        work(LEAST_NS);
        meter.servers.as_mut().unwrap().pause().unwrap();
        meter.end_turn();
        assert_eq!(meter.left_ns(), Some(0));
        process.kill().unwrap();
        process.wait().unwrap();
    }
}
