//! One look at everything a step's readings are computed from.

use std::path::Path;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::disk::Disk;
use crate::parse::{DiskCounters, HostCpu, kib_field, parse_pressure, parse_stat};
use crate::proc::KeptFile;
use crate::processes::{Activity, ProcessTrees, process_cpu_ns};
use crate::{Answer, Proc};

/// All counters at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// When all but the server's CPU was read.
    pub at: Instant,
    /// When the server's CPU was read: the middle of the look at its processes.
    pub server_at: Instant,
    pub own_cpu_ns: Answer<u64>,
    pub own_usage: Answer<OwnUsage>,
    pub host: Answer<HostCpu>,
    pub disk: Answer<DiskCounters>,
    pub psi_cpu_us: Answer<u64>,
    pub psi_io_us: Answer<u64>,
    pub psi_memory_us: Answer<u64>,
    /// `None` for an embedded engine.
    pub server_cpu_ns: Option<Answer<u64>>,
    pub rss_bytes: Answer<u64>,
}

/// What this process did since it started, all threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnUsage {
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub major_faults: u64,
    pub user_us: u64,
    pub system_us: u64,
}

impl OwnUsage {
    /// What was added since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
        }
    }
}

/// Takes samples; keeps the files open that stay the same.
#[derive(Debug)]
pub(crate) struct Sampler {
    proc: Proc,
    stat: KeptFile,
    disk: Disk,
    psi_cpu: KeptFile,
    psi_io: KeptFile,
    psi_memory: KeptFile,
    own_status: KeptFile,
    /// `None` for an embedded engine.
    server: Option<ProcessTrees>,
}

impl Sampler {
    /// For the device under `data_dir` and the server's processes; `None` for an embedded engine.
    pub(crate) fn new(proc: &Proc, data_dir: &Path, server_pids: Option<Vec<u32>>) -> Self {
        Self {
            proc: proc.clone(),
            stat: proc.keep("stat"),
            disk: Disk::under(proc, data_dir),
            psi_cpu: proc.keep("pressure/cpu"),
            psi_io: proc.keep("pressure/io"),
            psi_memory: proc.keep("pressure/memory"),
            own_status: proc.keep("self/status"),
            server: server_pids.map(|pids| ProcessTrees::of(proc, &pids)),
        }
    }

    /// Looks at everything. What takes long and cannot wait, the clocks of the server's processes,
    /// comes first, and their memory last.
    pub(crate) fn sample(&mut self) -> Sample {
        let server_cpu_ns = self.server.as_mut().map(ProcessTrees::cpu_ns);
        let sample = self.sample_with(server_cpu_ns);
        // After the look at the server's clocks, which finds its processes.
        let rss_bytes = match &self.server {
            None => self
                .own_status
                .read()
                .and_then(|status| kib_field(&status, "VmRSS")),
            Some(server) => server.rss_bytes(),
        };
        Sample {
            rss_bytes,
            ..sample
        }
    }

    /// The same in about a millisecond, for an instant that counts: of the processes that an
    /// earlier sample has met, and without their memory.
    pub(crate) fn sample_quickly(&mut self) -> Sample {
        let server_cpu_ns = self.server.as_mut().map(ProcessTrees::cpu_ns_quickly);
        self.sample_with(server_cpu_ns)
    }

    /// What the processes did that the last sample met: two files for each, and one for each
    /// further thread. For the ends of a step alone.
    pub(crate) fn activity(&self) -> Activity {
        match &self.server {
            None => Activity::of_this_process(&self.proc),
            Some(server) => Activity::of_processes(&self.proc, &server.members()),
        }
    }

    fn sample_with(&mut self, server_cpu_ns: Option<Answer<u64>>) -> Sample {
        let at = Instant::now();
        Sample {
            at,
            server_at: self
                .server
                .as_ref()
                .and_then(ProcessTrees::looked_at)
                .unwrap_or(at),
            own_cpu_ns: process_cpu_ns(std::process::id())
                .map_err(|error| format!("no clock for this process: {error}")),
            own_usage: own_usage(),
            host: self.stat.read().and_then(|text| parse_stat(&text)),
            disk: self.disk.read(),
            psi_cpu_us: total_us(&mut self.psi_cpu),
            psi_io_us: total_us(&mut self.psi_io),
            psi_memory_us: total_us(&mut self.psi_memory),
            server_cpu_ns,
            rss_bytes: Err(String::from("it was not sampled")),
        }
    }
}

fn total_us(pressure: &mut KeptFile) -> Answer<u64> {
    Ok(parse_pressure(&pressure.read()?)?.total_us)
}

fn own_usage() -> Answer<OwnUsage> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)
        .map_err(|error| format!("getrusage does not answer: {error}"))?;
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Ok(OwnUsage {
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        major_faults: count(usage.major_page_faults()),
        user_us: count(usage.user_time().num_microseconds()),
        system_us: count(usage.system_time().num_microseconds()),
    })
}

/// What the children of this process used that it has waited for, theirs included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChildUsage {
    /// CPU seconds in user mode.
    pub user_s: f64,
    /// CPU seconds in the kernel.
    pub system_s: f64,
}

/// The total of all children so far: the difference of two is exact for what ended between them.
///
/// # Errors
/// When the kernel does not answer.
pub fn child_usage() -> Answer<ChildUsage> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_err(|error| format!("getrusage does not answer: {error}"))?;
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 / 1e6;
    Ok(ChildUsage {
        user_s: seconds(usage.user_time()),
        system_s: seconds(usage.system_time()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::thread_cpu_ns;

    #[test]
    fn a_sample_costs_little() {
        let dir = tempfile::tempdir().unwrap();
        let mut sampler = Sampler::new(&Proc::new(), dir.path(), Some(vec![std::process::id()]));
        sampler.sample();
        let start_ns = thread_cpu_ns();
        const SAMPLES: u64 = 200;
        for _ in 0..SAMPLES {
            std::hint::black_box(sampler.sample());
        }
        let each_ns = (thread_cpu_ns() - start_ns) / SAMPLES;
        // 1 % of a core at one sample a second is 10 ms.
        assert!(each_ns < 2_000_000, "{each_ns} ns of CPU per sample");
    }

    #[test]
    fn counters_of_this_machine_do_not_run_backwards() {
        let dir = tempfile::tempdir().unwrap();
        let mut sampler = Sampler::new(&Proc::new(), dir.path(), None);
        let before = sampler.sample();
        crate::processes::burn_cpu(30_000_000);
        let after = sampler.sample();
        let (first, second) = (before.host.unwrap(), after.host.unwrap());
        assert!(
            second.busy() >= first.busy()
                && second.context_switches >= first.context_switches
                && second.cpus > 0
        );
        assert!(after.own_cpu_ns.unwrap() >= before.own_cpu_ns.unwrap() + 30_000_000);
        assert!(after.rss_bytes.unwrap() > 0);
        assert!(
            after.own_usage.unwrap().voluntary_switches
                >= before.own_usage.unwrap().voluntary_switches
        );
    }
}
