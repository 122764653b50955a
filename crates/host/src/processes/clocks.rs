//! The CPU of a known set of processes, read fast enough for turns of milliseconds.

use std::collections::BTreeMap;

use super::process::process_cpu_ns;
use super::tree::ProcessTrees;
use crate::{Answer, Proc};

/// The processes of these trees as they are now: the roots and all their descendants.
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn tree_pids(proc_: &Proc, roots: &[u32]) -> Answer<Vec<u32>> {
    ProcessTrees::of(proc_, roots).pids()
}

/// The process clocks of a set of processes.
///
/// One that has ended stays at what it was last seen with. One that is born later is not in the
/// set: [`ServerProcesses`](crate::ServerProcesses) finds those of your own server.
#[derive(Clone, Debug, Default)]
pub struct CpuClocks {
    last_ns: BTreeMap<u32, u64>,
}

impl CpuClocks {
    /// The clocks of these processes.
    pub fn new(pids: impl IntoIterator<Item = u32>) -> Self {
        Self {
            last_ns: pids.into_iter().map(|pid| (pid, 0)).collect(),
        }
    }

    /// The sum of all CPU they have used, in nanoseconds. None without processes.
    pub fn read_ns(&mut self) -> Option<u64> {
        for (pid, last_ns) in &mut self.last_ns {
            // A pid that another process has taken over would seem to go back.
            *last_ns = process_cpu_ns(*pid).map_or(*last_ns, |now_ns| now_ns.max(*last_ns));
        }
        (!self.last_ns.is_empty()).then(|| self.last_ns.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::burn_cpu;

    #[test]
    fn a_set_of_processes_has_the_sum_of_its_clocks() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .unwrap();
        let own = std::process::id();
        let mut clocks = CpuClocks::new([own, child.id()]);
        let before = clocks.read_ns().unwrap();
        burn_cpu(5_000_000);
        let after = clocks.read_ns().unwrap();
        assert!(after >= before + 5_000_000, "{before} {after}");
        // The shell's own child is found, and whoever is gone keeps what it had.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let pids = loop {
            let pids = tree_pids(&Proc::new(), &[child.id()]).unwrap();
            if pids.len() == 2 || std::time::Instant::now() > deadline {
                break pids;
            }
        };
        assert_eq!(pids.len(), 2, "{pids:?}");
        let sleep = pids
            .iter()
            .find(|pid| **pid != child.id())
            .copied()
            .unwrap();
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(sleep as i32).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        child.wait().unwrap();
        assert!(clocks.read_ns().unwrap() >= after);
        assert_eq!(CpuClocks::new([]).read_ns(), None);
    }
}
