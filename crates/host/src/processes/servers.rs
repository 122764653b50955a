//! The processes of a server that is stopped between its turns: which there are, what CPU they use,
//! and the stop itself.

use std::collections::BTreeMap;

use plimsoll_core::planted::{self, Bug};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::process::{process_cpu_ns, process_reaped_ns, tick_ns};
use super::tree::ProcessTrees;
use crate::{Answer, Proc};

/// Looks for children of what was just stopped: whoever was between a fork and its stop is found by
/// the second.
const STOP_LOOKS: usize = 5;
/// A reading is taken again where a child's CPU moved to its parent meanwhile.
const READ_TRIES: usize = 3;

/// The process trees of a server. They go on when this is dropped, whatever happened.
///
/// Each process is held by its file descriptor, so a number that has been given to another process
/// stops no stranger. Servers start processes all the while, autovacuum and parallel workers for
/// example: [`refresh`](Self::refresh) finds them, and they are stopped and counted like the
/// others.
pub struct ServerProcesses {
    roots: Vec<u32>,
    trees: ProcessTrees,
    held: BTreeMap<u32, OwnedFd>,
    cpu: Cpu,
}

impl ServerProcesses {
    /// The processes of these trees as they are now.
    ///
    /// # Errors
    /// When `/proc` cannot be listed, or the kernel holds no process for us (before Linux 5.3).
    pub fn find(proc_: &Proc, roots: &[u32]) -> Answer<Self> {
        let trees = ProcessTrees::of(proc_, roots);
        let mut found = Self {
            roots: roots.to_vec(),
            trees,
            held: BTreeMap::new(),
            cpu: Cpu::default(),
        };
        found.refresh()?;
        Ok(found)
    }

    /// Finds the processes that were born since the last look; true when there are any.
    ///
    /// # Errors
    /// See [`find`](Self::find).
    pub fn refresh(&mut self) -> Answer<bool> {
        let pids = self.trees.pids()?;
        let mut has_new = false;
        for pid in pids {
            if self.held.contains_key(&pid) {
                continue;
            }
            let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
                continue;
            };
            match pidfd_open(number, PidfdFlags::empty()) {
                Ok(process) => {
                    self.held.insert(pid, process);
                    has_new = true;
                }
                Err(Errno::SRCH) => {}
                Err(error) => {
                    return Err(format!(
                        "open process {pid} to stop it between its turns: {error}; this needs \
                        Linux 5.3"
                    ));
                }
            }
        }
        Ok(has_new)
    }

    /// Their numbers.
    pub fn pids(&self) -> Vec<u32> {
        self.held.keys().copied().collect()
    }

    /// Stops them (SIGSTOP), and what they start until they stand. True when there are processes
    /// that were not known before.
    ///
    /// # Errors
    /// See [`find`](Self::find).
    pub fn pause(&mut self) -> Answer<bool> {
        let mut has_new = false;
        for _ in 0..STOP_LOOKS {
            self.signal(Signal::STOP);
            if !self.refresh()? {
                break;
            }
            has_new = true;
        }
        Ok(has_new)
    }

    /// Lets them go on (SIGCONT).
    pub fn go_on(&mut self) {
        self.signal(Signal::CONT);
    }

    /// CPU that they, and the children they waited for, have used since their start, in
    /// nanoseconds. Only differences mean something. What ended children used comes in ticks of 10
    /// ms, which do not add up: no reading is further off than two of them.
    pub fn cpu_ns(&mut self) -> u64 {
        let mut reaped_ns = self.reaped_ns();
        for _ in 0..READ_TRIES {
            let alive: BTreeMap<u32, u64> = self
                .held
                .keys()
                .filter_map(|&pid| Some((pid, process_cpu_ns(pid).ok()?)))
                .collect();
            let after_ns = self.reaped_ns();
            if std::mem::replace(&mut reaped_ns, after_ns) == after_ns {
                return self.cpu.settle(alive, after_ns, self.roots.len());
            }
        }
        self.cpu.total_ns
    }

    fn reaped_ns(&self) -> u64 {
        self.roots
            .iter()
            .filter_map(|&root| process_reaped_ns(root).ok())
            .sum()
    }

    /// Who has ended is forgotten: its number may come back, and mean a stranger.
    fn signal(&mut self, signal: Signal) {
        let Self { held, trees, .. } = self;
        held.retain(|&pid, process| {
            let is_there = pidfd_send_signal(process, signal) != Err(Errno::SRCH);
            if !is_there {
                trees.forget(pid);
            }
            is_there
        });
    }
}

impl Drop for ServerProcesses {
    fn drop(&mut self) {
        if !planted::is(Bug::StoppedServerLeftStopped) {
            self.go_on();
        }
    }
}

/// Keeps the sum whole while processes end and their parents inherit what they used.
#[derive(Debug, Default)]
struct Cpu {
    alive: BTreeMap<u32, u64>,
    reaped_ns: u64,
    /// Of ended ones whom no root waited for.
    unclaimed_ns: u64,
    total_ns: u64,
}

impl Cpu {
    fn settle(&mut self, alive: BTreeMap<u32, u64>, reaped_ns: u64, roots: usize) -> u64 {
        let ended_ns: u64 = self
            .alive
            .iter()
            .filter(|(pid, _)| !alive.contains_key(pid))
            .map(|(_, ns)| ns)
            .sum();
        let claimed_ns = reaped_ns.saturating_sub(self.reaped_ns);
        // User and system ticks are each rounded down.
        if ended_ns > claimed_ns + 2 * tick_ns() * roots as u64 {
            self.unclaimed_ns += ended_ns - claimed_ns;
        }
        // Rounding must not make CPU time run backwards.
        self.total_ns = self
            .total_ns
            .max(alive.values().sum::<u64>() + reaped_ns + self.unclaimed_ns);
        (self.alive, self.reaped_ns) = (alive, reaped_ns);
        self.total_ns
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, ChildStdin, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    const MS: u64 = 1_000_000;

    /// The letter that `/proc` has for what the process is doing.
    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn wait_for(pid: u32, wanted: impl Fn(char) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !wanted(state(pid)) {
            assert!(Instant::now() < deadline, "still {}", state(pid));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A shell that starts what it is given, as a server starts its workers.
    struct Server {
        shell: Child,
        orders: ChildStdin,
        answers: BufReader<std::process::ChildStdout>,
    }

    impl Server {
        fn start() -> Self {
            let mut shell = Command::new("sh")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (orders, answers) = (
                shell.stdin.take().unwrap(),
                BufReader::new(shell.stdout.take().unwrap()),
            );
            Self {
                shell,
                orders,
                answers,
            }
        }

        fn order(&mut self, line: &str) -> String {
            writeln!(self.orders, "{line}").unwrap();
            let mut answer = String::new();
            self.answers.read_line(&mut answer).unwrap();
            answer.trim().to_owned()
        }

        fn start_worker(&mut self, command: &str) -> u32 {
            self.order(&format!("{command} & echo $!")).parse().unwrap()
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.shell.kill();
            let _ = self.shell.wait();
        }
    }

    fn kill(pid: u32) {
        rustix::process::kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    }

    #[test]
    fn processes_stop_go_on_and_are_never_left_stopped() {
        let server = Server::start();
        let pid = server.shell.id();
        let mut processes = ServerProcesses::find(&Proc::new(), &[pid]).unwrap();
        for _ in 0..3 {
            assert!(!processes.pause().unwrap());
            wait_for(pid, |state| state == 'T');
            processes.go_on();
            wait_for(pid, |state| state != 'T');
        }
        processes.pause().unwrap();
        wait_for(pid, |state| state == 'T');
        drop(processes);
        wait_for(pid, |state| state != 'T');
        drop(server);
        // One that is gone is not an error.
        let mut processes = ServerProcesses::find(&Proc::new(), &[pid]).unwrap();
        assert!(!processes.pause().unwrap() && processes.pids().is_empty());
    }

    /// An autovacuum worker went on through the turns of others.
    #[test]
    fn a_process_that_was_started_later_is_stopped_and_counted() {
        let mut server = Server::start();
        let mut processes = ServerProcesses::find(&Proc::new(), &[server.shell.id()]).unwrap();
        let before_ns = processes.cpu_ns();
        let worker = server.start_worker("sh -c 'while :; do :; done'");
        wait_for_cpu(worker, 30 * MS);
        assert!(processes.pause().unwrap(), "there is a new one");
        assert_eq!(processes.pids(), [server.shell.id(), worker]);
        wait_for(worker, |state| state == 'T');
        let after_ns = processes.cpu_ns();
        assert!(
            after_ns - before_ns >= 30 * MS,
            "since its birth: {before_ns} {after_ns}"
        );
        assert_eq!(
            process_cpu_ns(worker).unwrap(),
            process_cpu_ns(worker).unwrap(),
            "it stands"
        );
        assert!(!processes.pause().unwrap(), "it is known now");
        processes.go_on();
        wait_for(worker, |state| state != 'T');
        kill(worker);
    }

    /// Its number was still taken for the worker's, and whoever had it next was stopped.
    #[test]
    fn the_number_of_a_worker_that_ended_may_come_back_to_a_stranger() {
        let dir = tempfile::tempdir().unwrap();
        let show = |pid: u32, parent: u32, start: u32| {
            std::fs::create_dir_all(dir.path().join(pid.to_string())).unwrap();
            let line =
                format!("{pid} (db) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n");
            std::fs::write(dir.path().join(format!("{pid}/stat")), line).unwrap();
        };
        let server = Server::start();
        let mut worker = Command::new("sleep").arg("60").spawn().unwrap();
        show(server.shell.id(), 1, 50);
        show(worker.id(), server.shell.id(), 60);
        let mut processes =
            ServerProcesses::find(&Proc::at(dir.path()), &[server.shell.id()]).unwrap();
        assert_eq!(processes.pids().len(), 2);
        worker.kill().unwrap();
        worker.wait().unwrap();
        show(worker.id(), 1, 95);
        processes.pause().unwrap();
        assert_eq!(processes.pids(), [server.shell.id()]);
        assert_eq!(
            processes.trees.pids().unwrap(),
            [server.shell.id()],
            "whom the next look would hold and stop"
        );
    }

    fn wait_for_cpu(pid: u32, ns: u64) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while process_cpu_ns(pid).unwrap() < ns {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A parallel worker is born and ends within one turn: its clock is gone when anybody looks.
    #[test]
    fn what_a_worker_used_that_nobody_saw_is_counted() {
        let mut server = Server::start();
        let mut processes = ServerProcesses::find(&Proc::new(), &[server.shell.id()]).unwrap();
        let before_ns = processes.cpu_ns();
        assert_eq!(
            server.order("(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done); echo done"),
            "done"
        );
        let used_ns = processes.cpu_ns() - before_ns;
        let reaped_ns = process_reaped_ns(server.shell.id()).unwrap();
        assert!(
            reaped_ns >= 20 * MS && used_ns >= reaped_ns,
            "{used_ns} of {reaped_ns}"
        );
    }

    #[test]
    fn the_sum_neither_falls_nor_counts_twice_when_a_worker_ends() {
        let ns = |ms: u64| ms * MS;
        let alive =
            |pids: &[(u32, u64)]| pids.iter().map(|&(pid, at_ms)| (pid, ns(at_ms))).collect();
        let mut cpu = Cpu::default();
        assert_eq!(cpu.settle(alive(&[(1, 100), (2, 50)]), 0, 1), ns(150));
        assert_eq!(
            cpu.settle(alive(&[(1, 110)]), ns(60), 1),
            ns(170),
            "2 ended at 60 ms, and its parent waited for it"
        );
        assert_eq!(cpu.settle(alive(&[(1, 110), (3, 200)]), ns(60), 1), ns(370));
        assert_eq!(
            cpu.settle(alive(&[(1, 110)]), ns(60), 1),
            ns(370),
            "3 ended, and nobody waited for it"
        );
        assert_eq!(cpu.settle(alive(&[(1, 120)]), ns(60), 1), ns(380));
    }
}
