//! What must be watched for a moment rather than read.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::parse::{HostCpu, parse_process_stat, parse_stat};
use crate::processes::{process_cpu_ns, tick_ns};
use crate::{Answer, AwakeCpus, Cpus, Proc, pin_thread};

/// What other processes took, in cores.
#[derive(Debug)]
pub(super) struct Foreign {
    pub cores: f64,
    /// The command that took most, and what it took.
    pub first: Option<(String, f64)>,
}

/// What went on while this process did nothing.
#[derive(Debug)]
pub(super) struct IdleMoment {
    pub foreign: Answer<Foreign>,
    /// Of all CPU time in the moment.
    pub steal_share: Answer<f64>,
    /// Of all CPU time since boot.
    pub steal_share_since_boot: Answer<f64>,
}

const MOMENT: Duration = Duration::from_millis(300);

/// Watches all other processes, kernel threads too, for a moment.
pub(super) fn watch_others(proc: &Proc) -> IdleMoment {
    let host = || proc.read("stat").and_then(|text| parse_stat(&text));
    let (start, host_before, before) = (Instant::now(), host(), all_cpu_ns(proc));
    // Nothing to watch: do not wait for it either.
    if before.is_ok() || host_before.is_ok() {
        std::thread::sleep(MOMENT);
    }
    let (host_after, after) = (host(), all_cpu_ns(proc));
    let seconds = start.elapsed().as_secs_f64();

    let named = |(cores, first): CpuUse| Foreign {
        cores,
        first: first.map(|(pid, cores)| (command(proc, pid), cores)),
    };
    IdleMoment {
        foreign: before.and_then(|before| Ok(named(foreign(&before, &after?, seconds)))),
        steal_share: host_before
            .and_then(|before| steal_share(&host_after.clone()?.since(&before)?)),
        steal_share_since_boot: host_after.and_then(|host| steal_share(&host)),
    }
}

fn steal_share(host: &HostCpu) -> Answer<f64> {
    if host.total() == 0 {
        Err(String::from("/proc/stat did not move"))
    } else {
        Ok(host.steal as f64 / host.total() as f64)
    }
}

/// CPU of every process but this one. Clock ticks are far too coarse for a short moment: one is 3 %
/// of 300 ms.
fn all_cpu_ns(proc: &Proc) -> Answer<HashMap<u32, u64>> {
    let own = std::process::id();
    let cpu_ns = |pid: u32| {
        if proc.has_clocks() {
            return process_cpu_ns(pid).ok();
        }
        let stat = parse_process_stat(&proc.read(&format!("{pid}/stat")).ok()?).ok()?;
        stat.own_ticks.checked_mul(tick_ns())
    };
    let all: HashMap<u32, u64> = proc
        .pids()?
        .into_iter()
        .filter(|pid| *pid != own)
        .filter_map(|pid| Some((pid, cpu_ns(pid)?)))
        .collect();
    if all.is_empty() {
        Err(String::from("no other process can be seen"))
    } else {
        Ok(all)
    }
}

/// Cores in all, and the process that took most with its part.
type CpuUse = (f64, Option<(u32, f64)>);

/// Growth of each process's CPU; one that is new counts whole, one that ended not at all.
fn foreign(before: &HashMap<u32, u64>, after: &HashMap<u32, u64>, seconds: f64) -> CpuUse {
    let used = after.iter().map(|(pid, now_ns)| {
        (
            *pid,
            now_ns.saturating_sub(before.get(pid).copied().unwrap_or(0)),
        )
    });
    let used: Vec<(u32, u64)> = used.filter(|(_, ns)| *ns > 0).collect();
    let cores = |ns: u64| ns as f64 / 1e9 / seconds;
    let first = used
        .iter()
        .max_by_key(|(_, ns)| *ns)
        .map(|(pid, ns)| (*pid, cores(*ns)));
    (cores(used.iter().map(|(_, ns)| ns).sum()), first)
}

fn command(proc: &Proc, pid: u32) -> String {
    let stat = proc
        .read(&format!("{pid}/stat"))
        .and_then(|text| parse_process_stat(&text));
    stat.map_or_else(
        |_| String::from("a process that ended"),
        |stat| stat.command,
    )
}

/// How much later than asked this thread wakes up from sleeps of 1 ms: the median of 50.
pub(super) fn wake_up_lateness_ns() -> u64 {
    const SLEEPS: usize = 50;
    const LENGTH: Duration = Duration::from_millis(1);
    let mut lateness_ns = [0u64; SLEEPS];
    for late_ns in &mut lateness_ns {
        let start = Instant::now();
        std::thread::sleep(LENGTH);
        *late_ns =
            u64::try_from(start.elapsed().saturating_sub(LENGTH).as_nanos()).unwrap_or(u64::MAX);
    }
    lateness_ns.sort_unstable();
    lateness_ns[SLEEPS / 2]
}

/// How long a question takes to another CPU and back when both sleep in between, as client and
/// server of a closed loop do: the median of some.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// With CPUs that sleep as the machine has it.
    pub asleep_ns: u64,
    /// With CPUs that are kept awake, where that is possible.
    pub awake_ns: Answer<u64>,
}

pub(super) fn round_trip() -> Answer<RoundTrip> {
    let cpus =
        Cpus::allowed().map_err(|error| format!("cannot read which CPUs may be used: {error}"))?;
    if cpus.count() < 2 {
        return Err(String::from("there is one CPU"));
    }
    let asleep_ns = round_trip_ns(&cpus)?;
    let awake_ns = AwakeCpus::keep().and_then(|_awake| round_trip_ns(&cpus));
    Ok(RoundTrip {
        asleep_ns,
        awake_ns,
    })
}

fn round_trip_ns(cpus: &Cpus) -> Answer<u64> {
    const TRIPS: usize = 201;
    let (one, rest) = cpus.split(1);
    let (other, _) = rest.split(1);
    let failed = |error: std::io::Error| format!("cannot send a byte to another CPU: {error}");
    let (mut near, mut far) = UnixStream::pair().map_err(failed)?;
    let answering = std::thread::spawn(move || -> std::io::Result<()> {
        pin_thread(&other)?;
        let mut byte = [0];
        while far.read(&mut byte)? > 0 {
            far.write_all(&byte)?;
        }
        Ok(())
    });
    let asking = std::thread::spawn(move || -> std::io::Result<u64> {
        pin_thread(&one)?;
        let mut trips_ns = [0; TRIPS];
        for trip_ns in &mut trips_ns {
            let start = Instant::now();
            near.write_all(&[1])?;
            near.read_exact(&mut [0])?;
            *trip_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        }
        trips_ns.sort_unstable();
        Ok(trips_ns[TRIPS / 2])
    });
    let ended = || String::from("a thread that asks another CPU panicked");
    let trip_ns = asking.join().map_err(|_| ended())?.map_err(failed)?;
    answering.join().map_err(|_| ended())?.map_err(failed)?;
    Ok(trip_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_counted_per_process() {
        let before = [(1, 100), (2, 5_000_000_000), (3, 70)].into();
        let after = [(1, 100), (2, 5_030_000_000), (4, 60_000_000)].into();
        let (all, first) = foreign(&before, &after, 0.3);
        assert!((all - 0.3).abs() < 1e-9, "{all}");
        let (pid, cores) = first.unwrap();
        assert!(pid == 4 && (cores - 0.2).abs() < 1e-9);
        assert_eq!(foreign(&before, &before, 0.3), (0.0, None));
    }

    #[test]
    fn another_cpu_answers() {
        match round_trip() {
            // No byte comes back from another CPU in less than the time of four system calls.
            Ok(RoundTrip {
                asleep_ns,
                awake_ns,
            }) => {
                assert!(asleep_ns > 200, "{asleep_ns}");
                assert!(
                    awake_ns
                        .as_ref()
                        .map_or_else(|reason| reason.contains("cpu_dma_latency"), |&ns| ns > 200),
                    "{awake_ns:?}"
                );
            }
            Err(reason) => assert_eq!(reason, "there is one CPU"),
        }
    }

    #[test]
    fn a_busy_neighbour_is_seen_and_named() {
        let mut neighbour = std::process::Command::new("sh")
            .args(["-c", "while true; do true; done"])
            .spawn()
            .unwrap();
        let quiet = watch_others(&Proc::new());
        neighbour.kill().unwrap();
        neighbour.wait().unwrap();
        let foreign = quiet.foreign.unwrap();
        assert!(foreign.cores > 0.0 && !foreign.first.unwrap().0.is_empty());
        assert!((0.0..=1.0).contains(&quiet.steal_share_since_boot.unwrap()));
    }
}
