//! From a number to a status, a finding and an advice. Pure.

use super::measure::{Foreign, RoundTrip};
use super::{Check, Status, Supply};
use crate::Answer;
use plimsoll_core::units::GIB;

/// The one shape of all decisions: an unavailable number, a good one, or a bad one with advice.
fn judge<T>(
    name: &'static str,
    answer: Answer<T>,
    decide: impl FnOnce(T) -> (Status, String, &'static str),
) -> Check {
    match answer.map(decide) {
        Err(reason) => Check {
            name,
            status: Status::Unavailable,
            finding: reason,
            advice: None,
        },
        Ok((status @ (Status::Ok | Status::Unavailable), finding, _)) => Check {
            name,
            status,
            finding,
            advice: None,
        },
        Ok((status, finding, advice)) => Check {
            name,
            status,
            finding,
            advice: Some(advice.to_owned()),
        },
    }
}

fn warn_if(is_bad: bool) -> Status {
    if is_bad { Status::Warn } else { Status::Ok }
}

fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / GIB as f64)
}

/// A run needs a fifth more than its data: sorts, logs and old versions of rows come on top.
pub(super) fn free_disk(
    free_bytes: Answer<u64>,
    need_bytes: Option<u64>,
    filesystem: Answer<String>,
) -> Check {
    judge("free_disk", free_bytes, |free| {
        let is_memory = filesystem.is_ok_and(|name| name == "tmpfs" || name == "ramfs");
        let (is_short, need) = match need_bytes {
            Some(need) => (
                u128::from(free) * 5 < u128::from(need) * 6,
                format!(", the plan needs {} and a fifth more", gib(need)),
            ),
            None => (false, String::new()),
        };
        match (is_short, is_memory) {
            (true, _) => (
                Status::Fail,
                format!("{} free{need}", gib(free)),
                "choose another folder with --data, or fewer rows",
            ),
            (false, true) => (
                Status::Warn,
                format!("{} free{need}; the data directory is in memory", gib(free)),
                "choose a folder on a disk with --data, unless storage is not what you measure",
            ),
            (false, false) => (Status::Ok, format!("{} free{need}", gib(free)), ""),
        }
    })
}

/// Available and total bytes.
pub(super) fn memory_available(memory: Answer<(u64, u64)>) -> Check {
    judge("memory_available", memory, |(available, total)| {
        let finding = format!("{} of {} available", gib(available), gib(total));
        (
            warn_if(available < total / 2),
            finding,
            "end other programs: what they hold is lost to the engine's caches and to the page \
            cache",
        )
    })
}

/// Total and free bytes.
pub(super) fn swap(swap: Answer<(u64, u64)>) -> Check {
    judge("swap", swap, |(total, free)| match total {
        0 => (Status::Ok, String::from("no swap"), ""),
        _ => {
            let used = total.saturating_sub(free);
            (
                warn_if(used > 0),
                format!("{} of {} in use", gib(used), gib(total)),
                "empty it with `swapoff -a && swapon -a` as root, when memory allows",
            )
        }
    })
}

/// The setting, and the bytes of swap there are.
pub(super) fn swappiness(setting: Answer<(u64, u64)>) -> Check {
    judge(
        "swappiness",
        setting,
        |(swappiness, swap_bytes)| match swap_bytes {
            0 => (
                Status::Ok,
                format!("vm.swappiness is {swappiness}, and there is no swap"),
                "",
            ),
            _ => (
                warn_if(swappiness > 10),
                format!("vm.swappiness is {swappiness}"),
                "set it to 1 as root: `sysctl vm.swappiness=1`",
            ),
        },
    )
}

pub(super) fn transparent_huge_pages(setting: Answer<String>) -> Check {
    judge("transparent_huge_pages", setting, |setting| {
        let advice = "set `madvise` in /sys/kernel/mm/transparent_hugepage/enabled as root: \
                     background compaction makes latency uneven";
        (warn_if(setting == "always"), setting, advice)
    })
}

pub(super) fn cpu_governor(governors: Answer<Vec<String>>) -> Check {
    judge("cpu_governor", governors, |governors| {
        let is_bad = governors.iter().any(|governor| governor != "performance");
        (
            warn_if(is_bad),
            governors.join(", "),
            "set it to performance as root: `cpupower frequency-set -g performance`",
        )
    })
}

pub(super) fn cpu_boost(is_on: Answer<bool>) -> Check {
    judge("cpu_boost", is_on, |is_on| {
        let advice = "turn it off in the firmware, or as root in intel_pstate/no_turbo or \
                     cpufreq/boost: the clock then depends on heat and on idle cores";
        (
            warn_if(is_on),
            String::from(if is_on { "on" } else { "off" }),
            advice,
        )
    })
}

/// The text of `smt/control`.
pub(super) fn smt(control: Answer<String>) -> Check {
    judge("smt", control, |control| {
        let advice = "turn it off as root: `echo off > /sys/devices/system/cpu/smt/control`; two \
                     threads of one core slow each other down";
        (warn_if(control == "on"), control, advice)
    })
}

/// Those that a program reads without a system call.
const QUICK_CLOCKS: [&str; 6] = [
    "tsc",
    "arch_sys_counter",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "riscv_clocksource",
    "timebase",
];

pub(super) fn clocksource(source: Answer<String>) -> Check {
    judge("clocksource", source, |source| {
        let advice = "find out with `dmesg | grep -i clocksource` why the kernel does not trust \
                     the CPU's counter: each timestamp costs a system call now";
        (
            warn_if(!QUICK_CLOCKS.contains(&source.as_str())),
            source,
            advice,
        )
    })
}

pub(super) fn virtual_machine(is_virtual: Answer<bool>) -> Check {
    judge(
        "virtual_machine",
        is_virtual,
        |is_virtual| match is_virtual {
            true => (
                Status::Warn,
                String::from("yes"),
                "compare only what ran in the same campaign, in many interleaved blocks: \
                neighbours come and go",
            ),
            false => (Status::Ok, String::from("no"), ""),
        },
    )
}

pub(super) fn power(supplies: &[Supply]) -> Check {
    let is_on_battery = supplies.iter().any(|supply| supply.is_discharging)
        || (supplies.iter().any(|supply| supply.kind == "Mains")
            && supplies
                .iter()
                .all(|supply| supply.kind != "Mains" || supply.is_online == Some(false)));
    let finding = match (supplies.is_empty(), is_on_battery) {
        (true, _) => "no battery",
        (false, true) => "on battery",
        (false, false) => "on mains",
    };
    judge("power", Ok(()), |()| {
        (
            warn_if(is_on_battery),
            String::from(finding),
            "plug it in: on battery the clock is held down",
        )
    })
}

/// Of the last minute, and the CPUs online.
pub(super) fn load_average(load: Answer<(f64, u64)>) -> Check {
    judge("load_average", load, |(load, cpus)| {
        let is_bad = load > 0.25 * cpus as f64;
        (
            warn_if(is_bad),
            format!("{load:.2} over the last minute, {cpus} CPUs"),
            "wait until it falls, or end what runs",
        )
    })
}

/// The limit of the method: 2 % of one core.
pub(super) fn foreign_cpu(foreign: Answer<Foreign>) -> Check {
    judge("foreign_cpu", foreign, |foreign| {
        let most = foreign.first.map_or(String::new(), |(command, cores)| {
            format!(", most by {command} ({:.1} %)", 100.0 * cores)
        });
        let finding = format!(
            "other processes use {:.1} % of a core{most}",
            100.0 * foreign.cores
        );
        (
            warn_if(foreign.cores > 0.02),
            finding,
            "end them or wait: steps in which they take more than an eighth of all CPUs are suspect",
        )
    })
}

/// The limit of the method: 1 % of the CPU time.
pub(super) fn steal(now: Answer<f64>, since_boot: Answer<f64>) -> Check {
    let shares = now.and_then(|now| Ok((now, since_boot?)));
    judge("steal", shares, |(now, since_boot)| {
        let finding = format!(
            "{:.2} % of CPU time now, {:.2} % since boot",
            100.0 * now,
            100.0 * since_boot
        );
        let advice = "the hypervisor gives this machine's CPUs to others: use dedicated CPUs, or \
                     many interleaved blocks";
        (warn_if(now > 0.01 || since_boot > 0.01), finding, advice)
    })
}

/// `some` averages over ten seconds, in percent.
pub(super) fn pressure(cpu: Answer<f64>, io: Answer<f64>, memory: Answer<f64>) -> Check {
    let averages = cpu.and_then(|cpu| Ok([cpu, io?, memory?]));
    judge("pressure", averages, |averages| {
        let [cpu, io, memory] = averages;
        let finding = format!(
            "tasks waited {cpu:.1} % of the last 10 s for CPU, {io:.1} % for storage, {memory:.1} \
            % for memory"
        );
        (
            warn_if(averages.iter().any(|share| *share > 5.0)),
            finding,
            "wait until what runs now is done",
        )
    })
}

/// Median lateness, and the slack the kernel may use to wake several threads at once.
pub(super) fn timer(late_ns: u64, slack_ns: Option<u64>) -> Check {
    judge("timer", Ok(()), |()| {
        let slack = slack_ns.map_or(String::new(), |ns| {
            format!(" (timer slack {} us)", ns / 1000)
        });
        let finding = format!("a sleep of 1 ms ends {} us late{slack}", late_ns / 1000);
        (
            warn_if(late_ns > 200_000),
            finding,
            "open-loop steps send late by as much: end what runs, and look for deep idle states \
            and power saving",
        )
    })
}

/// What it costs to wake a CPU that has nothing to do.
pub(super) fn idle_cpus(trip: Answer<RoundTrip>) -> Check {
    judge(
        "idle_cpus",
        trip,
        |RoundTrip {
             asleep_ns,
             awake_ns,
         }| {
            let us = |ns: u64| format!("{:.0} us", ns as f64 / 1000.0);
            let asleep = format!("another CPU answers after {}", us(asleep_ns));
            match awake_ns {
                Ok(awake_ns) => (
                    warn_if(asleep_ns > 2 * awake_ns && asleep_ns > 20_000),
                    format!(
                        "{asleep}, and after {} when idle CPUs are kept awake",
                        us(awake_ns)
                    ),
                    "`plimsoll confirm` keeps them awake; `idle_cpus = \"awake\"` in a plan does \
                    it for `run`, whose rates of few clients are else those of waking up",
                ),
                Err(reason) => (
                    warn_if(asleep_ns > 40_000),
                    format!("{asleep}; keeping idle CPUs awake is not allowed ({reason})"),
                    "waking a CPU costs more than most statements here, and varies: run as root, \
                    or with `idle=poll` on the kernel's command line",
                ),
            }
        },
    )
}

/// `kernel.perf_event_paranoid`, and whether the kernel knows hardware counters. Nothing needs
/// them: they explain, they do not measure.
pub(super) fn perf_counters(paranoid: Answer<i64>, has_counters: bool) -> Check {
    judge("perf_counters", paranoid, |paranoid| {
        match (has_counters, paranoid) {
            (false, _) => (
                Status::Unavailable,
                format!(
                    "the kernel knows no hardware counters here (perf_event_paranoid is {paranoid})"
                ),
                "",
            ),
            (true, ..=2) => (Status::Ok, format!("perf_event_paranoid is {paranoid}"), ""),
            (true, _) => (
                Status::Warn,
                format!("perf_event_paranoid is {paranoid}: ordinary users may not count"),
                "set it to 1 as root, `sysctl kernel.perf_event_paranoid=1`, if explanations shall \
                have instructions and cache misses",
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no<T>() -> Answer<T> {
        Err(String::from("not here"))
    }

    fn text(text: &str) -> Answer<String> {
        Ok(String::from(text))
    }

    fn supply(kind: &str, is_online: Option<bool>, is_discharging: bool) -> Supply {
        Supply {
            kind: kind.into(),
            is_online,
            is_discharging,
        }
    }

    #[test]
    fn decisions() {
        use Status::{Fail, Ok as Good, Unavailable, Warn};
        let trip = |asleep_ns, awake_ns| {
            Ok(RoundTrip {
                asleep_ns,
                awake_ns,
            })
        };
        let foreign = |cores: f64| {
            Ok(Foreign {
                cores,
                first: Some((String::from("cc1"), cores)),
            })
        };
        for (check, status, finding) in [
            (
                free_disk(Ok(12 * GIB), Some(10 * GIB), text("ext4")),
                Good,
                "12.0 GiB free, the plan needs 10.0 GiB",
            ),
            (
                free_disk(Ok(12 * GIB - 1), Some(10 * GIB), text("ext4")),
                Fail,
                "12.0 GiB free",
            ),
            (
                free_disk(Ok(12 * GIB), Some(10 * GIB), text("tmpfs")),
                Warn,
                "in memory",
            ),
            (
                free_disk(Ok(1), Some(10 * GIB), text("tmpfs")),
                Fail,
                "0.0 GiB free",
            ),
            (free_disk(Ok(u64::MAX), Some(u64::MAX), no()), Fail, "free"),
            (free_disk(Ok(GIB), None, no()), Good, "1.0 GiB free"),
            (
                free_disk(no(), Some(1), text("ext4")),
                Unavailable,
                "not here",
            ),
            (
                memory_available(Ok((GIB, 2 * GIB))),
                Good,
                "1.0 GiB of 2.0 GiB",
            ),
            (
                memory_available(Ok((GIB - 1, 2 * GIB))),
                Warn,
                "1.0 GiB of 2.0 GiB",
            ),
            (swap(Ok((0, 0))), Good, "no swap"),
            (swap(Ok((GIB, GIB))), Good, "0.0 GiB of 1.0 GiB"),
            (swap(Ok((4 * GIB, GIB))), Warn, "3.0 GiB of 4.0 GiB in use"),
            (swappiness(Ok((60, 0))), Good, "60, and there is no swap"),
            (swappiness(Ok((60, GIB))), Warn, "60"),
            (swappiness(Ok((10, GIB))), Good, "10"),
            (transparent_huge_pages(text("always")), Warn, "always"),
            (transparent_huge_pages(text("madvise")), Good, "madvise"),
            (
                cpu_governor(Ok(vec![String::from("performance")])),
                Good,
                "performance",
            ),
            (
                cpu_governor(Ok(vec![
                    String::from("performance"),
                    String::from("powersave"),
                ])),
                Warn,
                "performance, powersave",
            ),
            (cpu_governor(no()), Unavailable, "not here"),
            (cpu_boost(Ok(true)), Warn, "on"),
            (cpu_boost(Ok(false)), Good, "off"),
            (smt(text("on")), Warn, "on"),
            (smt(text("notsupported")), Good, "notsupported"),
            (clocksource(text("tsc")), Good, "tsc"),
            (clocksource(text("hpet")), Warn, "hpet"),
            (virtual_machine(Ok(true)), Warn, "yes"),
            (virtual_machine(Ok(false)), Good, "no"),
            (power(&[]), Good, "no battery"),
            (
                power(&[
                    supply("Mains", Some(true), false),
                    supply("Battery", None, false),
                ]),
                Good,
                "on mains",
            ),
            (
                power(&[
                    supply("Mains", Some(false), false),
                    supply("Battery", None, true),
                ]),
                Warn,
                "on battery",
            ),
            (
                power(&[supply("Mains", Some(false), false)]),
                Warn,
                "on battery",
            ),
            (
                power(&[
                    supply("Mains", Some(false), false),
                    supply("Mains", Some(true), false),
                ]),
                Good,
                "on mains",
            ),
            (load_average(Ok((0.5, 2))), Good, "0.50"),
            (
                load_average(Ok((0.51, 2))),
                Warn,
                "0.51 over the last minute, 2 CPUs",
            ),
            (foreign_cpu(foreign(0.02)), Good, "2.0 % of a core"),
            (
                foreign_cpu(foreign(0.5)),
                Warn,
                "50.0 % of a core, most by cc1 (50.0 %)",
            ),
            (steal(Ok(0.01), Ok(0.0)), Good, "1.00 % of CPU time now"),
            (steal(Ok(0.02), Ok(0.0)), Warn, "2.00 %"),
            (steal(Ok(0.0), Ok(0.02)), Warn, "2.00 % since boot"),
            (steal(Ok(0.0), no()), Unavailable, "not here"),
            (
                pressure(Ok(5.0), Ok(0.0), Ok(0.0)),
                Good,
                "5.0 % of the last 10 s for CPU",
            ),
            (
                pressure(Ok(0.0), Ok(5.5), Ok(0.0)),
                Warn,
                "5.5 % for storage",
            ),
            (pressure(Ok(0.0), Ok(0.0), no()), Unavailable, "not here"),
            (
                timer(58_000, Some(50_000)),
                Good,
                "58 us late (timer slack 50 us)",
            ),
            (timer(200_001, None), Warn, "200 us late"),
            (
                idle_cpus(trip(190_000, Ok(30_000))),
                Warn,
                "after 190 us, and after 30 us when idle",
            ),
            (idle_cpus(trip(19_000, Ok(5_000))), Good, "after 19 us"),
            (idle_cpus(trip(50_000, Ok(30_000))), Good, "after 50 us"),
            (
                idle_cpus(trip(50_000, Err("no right".to_owned()))),
                Warn,
                "not allowed (no right)",
            ),
            (
                idle_cpus(Err("there is one CPU".to_owned())),
                Unavailable,
                "there is one CPU",
            ),
            (perf_counters(Ok(2), true), Good, "is 2"),
            (perf_counters(Ok(-1), true), Good, "is -1"),
            (perf_counters(Ok(4), true), Warn, "may not count"),
            (
                perf_counters(Ok(2), false),
                Unavailable,
                "no hardware counters",
            ),
        ] {
            assert_eq!(check.status, status, "{check:?}");
            assert!(check.finding.contains(finding), "{check:?}");
            assert_eq!(
                check.advice.is_some_and(|advice| !advice.is_empty()),
                matches!(status, Warn | Fail)
            );
        }
    }
}
