//! What mends a check, and what it does to results where nothing can.

use serde::Serialize;

use super::{Check, Status};
use crate::sys::Sys;

/// What can be done about a check that is not ok.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// Commands for a shell that mend it, until the next boot.
    pub commands: Vec<String>,
    /// What verdicts suffer from it as long as it is so.
    pub effect: &'static str,
}

/// The remedy of a check; none for one that is ok or that is not known here.
pub fn remedy(check: &Check, sys_root: &std::path::Path) -> Option<Remedy> {
    if !matches!(check.status, Status::Warn | Status::Fail) {
        return None;
    }
    let sys = Sys(sys_root);
    let one = |command: &str| vec![command.to_owned()];
    let write = |value: &str, file: &str| vec![format!("echo {value} | sudo tee /sys/{file}")];
    let who = || one("ps -eo pid,user,pcpu,rss,comm --sort=-pcpu | head");
    let (commands, effect) = match check.name {
        "free_disk" => (
            one("df -h    # then choose another folder: --data DIR"),
            "a run ends when the disk is nearly full; in memory nothing waits for storage",
        ),
        "memory_available" => (
            one("ps -eo pid,user,rss,comm --sort=-rss | head    # end what is not needed"),
            "fewer builds fit at once: verdicts then come from blocks, which take longer to be as \
             sure as slices",
        ),
        "swap" => (
            one("sudo swapoff -a && sudo swapon -a"),
            "a page that comes back from swap looks like a statement that is slow",
        ),
        "swappiness" => (
            one("sudo sysctl vm.swappiness=1"),
            "caches of servers that are idle for a moment are written to swap",
        ),
        "transparent_huge_pages" => (
            write("madvise", "kernel/mm/transparent_hugepage/enabled"),
            "compaction stalls single statements: p99 and max are the kernel's, not the engine's",
        ),
        "cpu_governor" => (
            match sys.read("devices/system/cpu/cpu0/cpufreq/scaling_governor") {
                Ok(_) => one("echo performance | sudo tee \
                     /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"),
                Err(_) => one("sudo cpupower frequency-set -g performance"),
            },
            "the clock follows the load: a build that waits more is slowed down once more",
        ),
        "cpu_boost" => (
            match sys.read("devices/system/cpu/intel_pstate/no_turbo") {
                Ok(_) => write("1", "devices/system/cpu/intel_pstate/no_turbo"),
                Err(_) => write("0", "devices/system/cpu/cpufreq/boost"),
            },
            "the clock depends on heat and on idle cores: starts differ more",
        ),
        "smt" => (
            write("off", "devices/system/cpu/smt/control"),
            "client and server slow each other down on the threads of one core",
        ),
        "clocksource" => (
            one("sudo dmesg | grep -i -e clocksource -e tsc"),
            "each timestamp is a system call: the fastest statements look slower, in all builds \
             alike",
        ),
        "power" => (
            Vec::new(),
            "the clock is held down, and changes with the charge",
        ),
        "load_average" | "foreign_cpu" | "pressure" => (
            who(),
            "what others take makes intervals wider: it takes longer, or less is decided",
        ),
        "virtual_machine" => (
            Vec::new(),
            "single runs mislead here: take verdicts, whose builds share what neighbours do",
        ),
        "steal" => (
            Vec::new(),
            "what other guests take is in the intervals, which get wider; it never makes a verdict \
             of its own",
        ),
        "timer" => (
            who(),
            "steps at a rate send late by as much, and response times have it",
        ),
        "idle_cpus" => (
            Vec::new(),
            "with few clients a survey measures how CPUs wake up; verdicts are made with CPUs \
             awake where that is allowed",
        ),
        "perf_counters" => (
            one("sudo sysctl kernel.perf_event_paranoid=1"),
            "explanations are without instructions and cache misses; no number is worse",
        ),
        _ => return None,
    };
    Some(Remedy { commands, effect })
}
