//! CPU of everybody else on the machine, by each process's own clock.

use std::collections::{BTreeMap, BTreeSet};

use super::process::process_cpu_ns;
use crate::Proc;

/// Processes that are not ours. Their clocks count nanoseconds: the kernel's ticks of 10 ms say
/// nothing about a turn of 20.
///
/// Kernel threads count, but for those that do the storage's work: a server that writes more has
/// more of it done. A process that is born and ends between two looks is not seen.
#[derive(Debug)]
pub struct OtherProcesses {
    proc: Proc,
    ours: BTreeSet<u32>,
    /// Those of the last list that are not to be counted, each looked at once.
    storage: BTreeSet<u32>,
    clocks: BTreeMap<u32, u64>,
}

/// The first letters of kernel threads that write back, log, and free what files had.
const STORAGE: [&str; 9] = [
    "kworker/",
    "jbd2/",
    "xfs",
    "btrfs",
    "dm",
    "md",
    "loop",
    "kswapd",
    "ksoftirqd/",
];

impl OtherProcesses {
    /// Nobody is ours yet.
    pub fn of(proc_: &Proc) -> Self {
        Self {
            proc: proc_.clone(),
            ours: BTreeSet::new(),
            storage: BTreeSet::new(),
            clocks: BTreeMap::new(),
        }
    }

    /// These are ours.
    pub fn leave_out(&mut self, ours: impl IntoIterator<Item = u32>) {
        self.ours = ours.into_iter().collect();
    }

    /// Lists all processes and reads their clocks: [`Self::used_ns`] counts from here.
    pub fn begin(&mut self) {
        let pids = self.proc.pids().unwrap_or_default();
        self.storage.retain(|pid| pids.contains(pid));
        let mut clocks = BTreeMap::new();
        for pid in pids {
            if self.ours.contains(&pid) || self.storage.contains(&pid) {
                continue;
            }
            if !self.clocks.contains_key(&pid) && self.is_storage(pid) {
                self.storage.insert(pid);
                continue;
            }
            if let Ok(ns) = process_cpu_ns(pid) {
                clocks.insert(pid, ns);
            }
        }
        self.clocks = clocks;
    }

    /// CPU that they have used since; none if there is nobody, which cannot be.
    pub fn used_ns(&self) -> Option<u64> {
        let used = |(pid, then): (&u32, &u64)| {
            process_cpu_ns(*pid).map_or(0, |now| now.saturating_sub(*then))
        };
        (!self.clocks.is_empty()).then(|| self.clocks.iter().map(used).sum())
    }

    fn is_storage(&self, pid: u32) -> bool {
        let name = self.proc.read(&format!("{pid}/comm")).unwrap_or_default();
        let is_kernel = self
            .proc
            .read(&format!("{pid}/cmdline"))
            .is_ok_and(|text| text.is_empty());
        is_kernel && STORAGE.iter().any(|first| name.starts_with(first))
    }
}
