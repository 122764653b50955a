//! CPU of the server's process trees, ended children included.
//!
//! A process clock covers all threads of one process but none of its children, and it is gone with
//! its process. What an ended child used is then in the `cutime` and `cstime` of the parent that
//! waited for it, and in those of the parent's parent when that ends in turn. So at any moment
//!
//! ```text
//! CPU of a tree = sum over its living members of (own clock + cutime + cstime)
//!                 + what no member waited for
//! ```
//!
//! is complete, but for two gaps: a child that nobody in the tree waited for (its parent ended
//! first, or ignores `SIGCHLD`) counts up to the last time it was seen, and not at all when it came
//! and went between two looks; and `cutime` and `cstime` are whole clock ticks (10 ms), so the tree
//! can be short by two ticks for each living parent.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use super::process::{process_cpu_ns, tick_ns};
use crate::parse::{ProcessStat, kib_field, parse_process_stat};
use crate::{Answer, Proc};

/// The server's processes and all their descendants.
#[derive(Debug)]
pub(crate) struct ProcessTrees {
    proc: Proc,
    roots: Vec<u32>,
    /// Start ticks by pid. Once a member, a member until it ends: an orphan is given another
    /// parent.
    members: BTreeMap<u32, u64>,
    /// Processes that are not of the tree and never will be, so that each is looked at once.
    /// Forgotten when their pid leaves `/proc`: pids are handed out in turn, so one does not come
    /// back for another process between two looks.
    strangers: HashSet<u32>,
    account: CpuAccount,
    looked_at: Option<Instant>,
}

impl ProcessTrees {
    /// The trees below `roots`.
    pub(crate) fn of(proc: &Proc, roots: &[u32]) -> Self {
        Self {
            proc: proc.clone(),
            roots: roots.to_vec(),
            members: BTreeMap::new(),
            strangers: HashSet::new(),
            account: CpuAccount::default(),
            looked_at: None,
        }
    }

    /// CPU in nanoseconds of all members since they started. Only differences mean something: what
    /// ended before the first call and was not waited for is not in it.
    pub(crate) fn cpu_ns(&mut self) -> Answer<u64> {
        if self.roots.is_empty() {
            return Err(String::from("no server process is known"));
        }
        self.find_members()?;
        let seen = self.look();
        let total_ns = self.account.settle(seen);
        match self
            .roots
            .iter()
            .find(|root| !self.members.contains_key(root))
        {
            Some(root) => Err(format!(
                "server process {root} has ended, or its /proc files cannot be read"
            )),
            None => Ok(total_ns),
        }
    }

    /// The same from the clocks of those that are known, a system call for each and no file: quick
    /// enough on a machine that is full of their work. Children that ended since the last look are
    /// not waited for yet, and those that were born are met at the next.
    pub(crate) fn cpu_ns_quickly(&mut self) -> Answer<u64> {
        let begin = Instant::now();
        let clock = |(process, seen): (&(u32, u64), &CpuSeen)| {
            Some((
                *process,
                CpuSeen {
                    own_ns: process_cpu_ns(process.0).ok()?,
                    ..*seen
                },
            ))
        };
        let seen: Option<Seen> = self.account.last.iter().map(clock).collect();
        match seen.filter(|seen| self.proc.has_clocks() && !seen.is_empty()) {
            Some(seen) => {
                self.looked_at = Some(begin + begin.elapsed() / 2);
                Ok(self.account.settle(seen))
            }
            // One has ended, or there are no clocks here.
            None => self.cpu_ns(),
        }
    }

    /// The middle of the last look at the clocks.
    pub(crate) fn looked_at(&self) -> Option<Instant> {
        self.looked_at
    }

    /// The processes that are members now.
    pub(crate) fn pids(&mut self) -> Answer<Vec<u32>> {
        self.find_members()?;
        Ok(self.members.keys().copied().collect())
    }

    /// The members seen last.
    pub(crate) fn members(&self) -> Vec<u32> {
        self.members.keys().copied().collect()
    }

    /// This one has ended: whoever has its number by now is checked again.
    pub(crate) fn forget(&mut self, pid: u32) {
        self.members.remove(&pid);
    }

    /// Resident memory of all members seen last: what is each one's own (`RssAnon`), and of what
    /// they share (`RssShmem`, such as shared buffers, and `RssFile`, the program) as much as the
    /// one has that maps the most.
    pub(crate) fn rss_bytes(&self) -> Answer<u64> {
        let (mut own, mut shared, mut files) = (0, 0, 0);
        let mut is_known = false;
        // One that has just ended has no memory any more.
        for status in self
            .members
            .keys()
            .filter_map(|pid| self.proc.read(&format!("{pid}/status")).ok())
        {
            let Ok(anonymous) = kib_field(&status, "RssAnon") else {
                continue;
            };
            is_known = true;
            own += anonymous;
            shared = shared.max(kib_field(&status, "RssShmem")?);
            files = files.max(kib_field(&status, "RssFile")?);
        }
        if is_known {
            Ok(own + shared + files)
        } else {
            Err(String::from("no server process shows its memory"))
        }
    }

    fn stat(&self, pid: u32) -> Option<ProcessStat> {
        parse_process_stat(&self.proc.read(&format!("{pid}/stat")).ok()?).ok()
    }

    /// Adds the processes that were born since the last look.
    fn find_members(&mut self) -> Answer<()> {
        let pids: HashSet<u32> = self.proc.pids()?.into_iter().collect();
        self.strangers.retain(|pid| pids.contains(pid));
        self.members.retain(|pid, _| pids.contains(pid));
        let unknown = pids
            .into_iter()
            .filter(|pid| !self.members.contains_key(pid) && !self.strangers.contains(pid));
        let mut new: Vec<(u32, ProcessStat)> = unknown
            .filter_map(|pid| Some((pid, self.stat(pid)?)))
            .collect();
        loop {
            let (found, others): (Vec<_>, Vec<_>) = new.into_iter().partition(|(pid, stat)| {
                self.roots.contains(pid) || self.members.contains_key(&stat.parent)
            });
            new = others;
            if found.is_empty() {
                break;
            }
            self.members
                .extend(found.into_iter().map(|(pid, stat)| (pid, stat.start_ticks)));
        }
        self.strangers.extend(new.into_iter().map(|(pid, _)| pid));
        Ok(())
    }

    /// Reads all members. A child that is waited for between the reading of its own clock and that
    /// of its parent's would be counted twice or not at all, so a look in which any parent's
    /// account moved is repeated.
    fn look(&mut self) -> Seen {
        const TRIES: usize = 3;
        let mut seen = self.look_once();
        for _ in 1..TRIES {
            let again = self.look_once();
            let is_quiet = seen.len() == again.len()
                && seen
                    .iter()
                    .zip(&again)
                    .all(|((a, before), (b, after))| a == b && before.reaped_ns == after.reaped_ns);
            seen = again;
            if is_quiet {
                break;
            }
        }
        seen
    }

    fn look_once(&mut self) -> Seen {
        let begin = Instant::now();
        let mut seen = Seen::new();
        for (pid, start_ticks) in std::mem::take(&mut self.members) {
            let Some(stat) = self
                .stat(pid)
                .filter(|stat| stat.start_ticks == start_ticks)
            else {
                continue;
            };
            let ticks_ns = stat.own_ticks.saturating_mul(tick_ns());
            let own_ns = if self.proc.has_clocks() {
                process_cpu_ns(pid).unwrap_or(ticks_ns)
            } else {
                ticks_ns
            };
            let reaped_ns = stat.reaped_ticks.saturating_mul(tick_ns());
            seen.insert((pid, start_ticks), CpuSeen { own_ns, reaped_ns });
            self.members.insert(pid, start_ticks);
        }
        self.looked_at = Some(begin + begin.elapsed() / 2);
        seen
    }
}

/// What each living member showed, by pid and start ticks.
type Seen = BTreeMap<(u32, u64), CpuSeen>;

#[derive(Clone, Copy, Debug)]
struct CpuSeen {
    /// Of the process itself.
    own_ns: u64,
    /// Of the children it waited for.
    reaped_ns: u64,
}

impl CpuSeen {
    fn total_ns(self) -> u64 {
        self.own_ns.saturating_add(self.reaped_ns)
    }
}

/// Keeps the sum whole while members come and go.
#[derive(Debug, Default)]
struct CpuAccount {
    last: Seen,
    /// Of ended members whom no living member waited for.
    unclaimed_ns: u64,
    total_ns: u64,
}

impl CpuAccount {
    fn settle(&mut self, now: Seen) -> u64 {
        let ended_ns: u64 = self
            .last
            .iter()
            .filter(|(process, _)| !now.contains_key(process))
            .map(|(_, cpu)| cpu.total_ns())
            .sum();
        let survivors = self
            .last
            .iter()
            .filter_map(|(process, before)| Some((before, now.get(process)?)));
        let (mut claimed_ns, mut rounding_ns) = (0u64, 2 * tick_ns());
        for (before, after) in survivors {
            claimed_ns =
                claimed_ns.saturating_add(after.reaped_ns.saturating_sub(before.reaped_ns));
            // User and system ticks are each rounded down.
            rounding_ns += 2 * tick_ns();
        }
        if ended_ns > claimed_ns.saturating_add(rounding_ns) {
            self.unclaimed_ns = self.unclaimed_ns.saturating_add(ended_ns - claimed_ns);
        }
        let living_ns = now
            .values()
            .fold(0u64, |sum, cpu| sum.saturating_add(cpu.total_ns()));
        self.last = now;
        // Rounding must not make CPU time run backwards.
        self.total_ns = self
            .total_ns
            .max(living_ns.saturating_add(self.unclaimed_ns));
        self.total_ns
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use plimsoll_core::units::SECOND_NS;

    use super::*;

    /// Members by pid, with own and reaped seconds.
    fn seen(members: &[(u32, u64, u64)]) -> Seen {
        let cpu = |own: u64, reaped: u64| CpuSeen {
            own_ns: own * SECOND_NS,
            reaped_ns: reaped * SECOND_NS,
        };
        members
            .iter()
            .map(|&(pid, own, reaped)| ((pid, 1), cpu(own, reaped)))
            .collect()
    }

    #[test]
    fn the_sum_stays_whole_while_members_come_and_go() {
        for (story, looks, expected_s) in [
            (
                "a child works on",
                vec![seen(&[(1, 1, 0), (2, 3, 0)]), seen(&[(1, 1, 0), (2, 9, 0)])],
                10,
            ),
            (
                "a child ends and is waited for",
                vec![seen(&[(1, 1, 0), (2, 3, 0)]), seen(&[(1, 1, 5)])],
                6,
            ),
            (
                "a child comes and goes unseen",
                vec![seen(&[(1, 1, 0)]), seen(&[(1, 1, 4)])],
                5,
            ),
            (
                "a child ends and nobody waits",
                vec![seen(&[(1, 1, 0), (2, 3, 0)]), seen(&[(1, 2, 0)])],
                5,
            ),
            (
                "child and grandchild end in turn",
                vec![seen(&[(1, 1, 0), (2, 3, 2), (3, 4, 0)]), seen(&[(1, 1, 9)])],
                10,
            ),
            (
                "one is waited for, one is not",
                vec![seen(&[(1, 0, 0), (2, 3, 0), (3, 4, 0)]), seen(&[(1, 0, 3)])],
                7,
            ),
            (
                "unclaimed once, not twice",
                vec![
                    seen(&[(1, 1, 0), (2, 3, 0)]),
                    seen(&[(1, 1, 0)]),
                    seen(&[(1, 1, 0)]),
                ],
                4,
            ),
        ] {
            let mut account = CpuAccount::default();
            let total_ns = looks
                .into_iter()
                .map(|look| account.settle(look))
                .last()
                .unwrap();
            assert_eq!(total_ns, expected_s * SECOND_NS, "{story}");
        }
    }

    #[test]
    fn rounding_never_makes_it_run_backwards() {
        let mut account = CpuAccount::default();
        let own_ns = 15_999_999;
        let look: Seen = [
            (
                (1, 1),
                CpuSeen {
                    own_ns: 0,
                    reaped_ns: 0,
                },
            ),
            (
                (2, 1),
                CpuSeen {
                    own_ns,
                    reaped_ns: 0,
                },
            ),
        ]
        .into();
        assert_eq!(account.settle(look), own_ns);
        assert_eq!(
            account.settle(
                [(
                    (1, 1),
                    CpuSeen {
                        own_ns: 0,
                        reaped_ns: 10_000_000
                    }
                )]
                .into()
            ),
            own_ns
        );
    }

    fn write_stat(
        root: &Path,
        pid: u32,
        parent: u32,
        own_ticks: u64,
        reaped_ticks: u64,
        start: u64,
    ) {
        std::fs::create_dir_all(root.join(pid.to_string())).unwrap();
        let line = format!(
            "{pid} (db) S {parent} 1 1 0 -1 0 0 0 0 0 {own_ticks} 0 {reaped_ticks} 0 20 0 1 0 \
            {start} 0 0\n"
        );
        std::fs::write(root.join(format!("{pid}/stat")), line).unwrap();
    }

    #[test]
    fn only_descendants_count() {
        let dir = tempfile::tempdir().unwrap();
        write_stat(dir.path(), 1, 0, 1_000, 5_000, 1);
        write_stat(dir.path(), 100, 1, 10, 0, 50);
        // Pids may have wrapped: a child's can be smaller than its parent's.
        write_stat(dir.path(), 90, 100, 5, 0, 60);
        write_stat(dir.path(), 80, 90, 2, 1, 70);
        write_stat(dir.path(), 200, 1, 777, 0, 60);
        let mut trees = ProcessTrees::of(&Proc::at(dir.path()), &[100]);
        assert_eq!(trees.cpu_ns().unwrap(), 18 * tick_ns());
        // A late child; an orphan stays; the stranger's new child stays out.
        write_stat(dir.path(), 300, 80, 4, 0, 90);
        write_stat(dir.path(), 301, 200, 400, 0, 90);
        write_stat(dir.path(), 80, 1, 3, 1, 70);
        assert_eq!(trees.cpu_ns().unwrap(), 23 * tick_ns());
        // A pid that now names another process has no part in it, but what its last owner used
        // stays.
        write_stat(dir.path(), 300, 1, 9_999, 0, 95);
        write_stat(dir.path(), 90, 100, 5, 4, 60);
        assert_eq!(trees.cpu_ns().unwrap(), 23 * tick_ns());
    }

    #[test]
    fn an_ended_server_is_unavailable() {
        let dir = tempfile::tempdir().unwrap();
        write_stat(dir.path(), 100, 1, 10, 0, 50);
        let mut trees = ProcessTrees::of(&Proc::at(dir.path()), &[100]);
        assert!(trees.cpu_ns().is_ok());
        std::fs::remove_dir_all(dir.path().join("100")).unwrap();
        assert!(
            trees
                .cpu_ns()
                .unwrap_err()
                .contains("server process 100 has ended")
        );
        assert!(
            ProcessTrees::of(&Proc::at(dir.path()), &[])
                .cpu_ns()
                .unwrap_err()
                .contains("no server process")
        );
        assert!(
            ProcessTrees::of(&Proc::at(dir.path().join("none")), &[100])
                .cpu_ns()
                .is_err()
        );
    }

    #[test]
    fn memory_of_a_tree_counts_what_is_shared_once() {
        let dir = tempfile::tempdir().unwrap();
        let write_memory = |pid: u32, anonymous: u64, file: u64, shared: u64| {
            let text =
                format!("RssAnon: {anonymous} kB\nRssFile: {file} kB\nRssShmem: {shared} kB\n");
            std::fs::write(dir.path().join(format!("{pid}/status")), text).unwrap();
        };
        write_stat(dir.path(), 100, 1, 10, 0, 50);
        write_stat(dir.path(), 101, 100, 10, 0, 60);
        write_stat(dir.path(), 200, 1, 10, 0, 60);
        write_memory(100, 10, 500, 1000);
        write_memory(101, 20, 400, 3000);
        write_memory(200, 9000, 9000, 9000);
        let mut trees = ProcessTrees::of(&Proc::at(dir.path()), &[100]);
        assert!(trees.rss_bytes().is_err());
        trees.cpu_ns().unwrap();
        assert_eq!(trees.rss_bytes().unwrap(), (10 + 20 + 500 + 3000) * 1024);
    }

    /// A shell that runs `script` and then waits for its standard input to close.
    struct Shell(Child);

    impl Shell {
        fn run(script: &str) -> Self {
            let script = format!("{script}\necho ready\nread line");
            let mut command = Command::new("sh");
            Self(
                command
                    .arg("-c")
                    .arg(script)
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap(),
            )
        }

        fn wait_until_ready(&mut self) {
            let mut line = String::new();
            BufReader::new(self.0.stdout.as_mut().unwrap())
                .read_line(&mut line)
                .unwrap();
            assert_eq!(line, "ready\n");
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.stdin.take().map(|mut input| input.write_all(b"\n"));
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn ended_grandchildren_count_and_a_decoy_does_not() {
        let burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        // The subshells are the child and the grandchild; the trailing commands keep the shell from
        // replacing itself.
        let mut server = Shell::run(&format!("( ( {burn}; true ); true ); true"));
        let mut trees = ProcessTrees::of(&Proc::new(), &[server.0.id()]);
        let before_ns = trees.cpu_ns().unwrap();
        let mut decoy = Shell::run(burn);
        decoy.wait_until_ready();
        server.wait_until_ready();
        let deadline = Instant::now() + Duration::from_secs(20);
        while process_cpu_ns(decoy.0.id()).unwrap() < SECOND_NS / 20 {
            assert!(Instant::now() < deadline, "the decoy used no CPU");
        }
        let after_ns = trees.cpu_ns().unwrap();

        let stat = trees.stat(server.0.id()).unwrap();
        assert!(stat.reaped_ticks > 0, "the shell waited for its children");
        let whole_ns = process_cpu_ns(server.0.id()).unwrap() + stat.reaped_ticks * tick_ns();
        assert!(after_ns >= stat.reaped_ticks * tick_ns(), "{after_ns}");
        // All of the server's CPU and nothing else, up to what a shell needs to start and to sit in
        // `read`.
        assert!(
            after_ns <= whole_ns && after_ns + 4 * tick_ns() >= whole_ns,
            "{after_ns} of {whole_ns}"
        );
        assert!(before_ns <= after_ns);
    }
}
