//! Is this machine fit to measure on? Each question gives one [`Check`].

mod decide;
mod measure;
mod remedies;

use std::borrow::Borrow;
use std::path::Path;
use std::str::FromStr;

use serde::Serialize;

use crate::disk::Filesystem;
use crate::memory::Memory;
use crate::parse::{parse_pressure, parse_stat};
use crate::space::free_bytes;
use crate::sys::{Sys, is_virtual};
use crate::{Answer, Proc};

pub use remedies::{Remedy, remedy};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing to do.
    Ok,
    /// Results may be noisier than they need be, or mean something else than expected.
    Warn,
    /// A run would fail.
    Fail,
    /// It is not known here; the finding is the reason.
    Unavailable,
}

/// One answer about the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it came out.
    pub status: Status,
    /// What was found, with the number.
    pub finding: String,
    /// What to do about it.
    pub advice: Option<String>,
}

/// Answers all questions, in a fixed order. Takes about half a second, most of it to watch what
/// other processes do.
///
/// `sys_root` is `/sys`; `data_dir` need not exist yet; `need_bytes` is what the plan is expected
/// to write.
pub fn check_machine(
    proc_: impl Borrow<Proc>,
    sys_root: &Path,
    data_dir: &Path,
    need_bytes: Option<u64>,
) -> Vec<Check> {
    let (proc, sys) = (proc_.borrow(), Sys(sys_root));
    let memory = Memory::read(proc);
    let cpus = proc
        .read("stat")
        .and_then(|text| Ok(parse_stat(&text)?.cpus));
    let quiet = measure::watch_others(proc);
    let filesystem = Filesystem::of(proc, data_dir)
        .mount
        .map(|mount| mount.filesystem);
    let free = free_bytes(data_dir)
        .map_err(|error| format!("cannot ask the data directory's filesystem: {error}"));
    let pressure =
        |name: &str| Ok(parse_pressure(&proc.read(&format!("pressure/{name}"))?)?.avg10_pct);

    vec![
        decide::free_disk(free, need_bytes, filesystem),
        decide::memory_available(both(memory.available, memory.total)),
        decide::swap(both(memory.swap_total.clone(), memory.swap_free)),
        decide::swappiness(both(
            first_number(proc, "sys/vm/swappiness"),
            memory.swap_total,
        )),
        decide::transparent_huge_pages(sys.transparent_huge_pages()),
        decide::cpu_governor(sys.governors()),
        decide::cpu_boost(sys.is_boost_on()),
        decide::smt(sys.read("devices/system/cpu/smt/control")),
        decide::clocksource(sys.clocksource()),
        decide::virtual_machine(is_virtual(&proc.read("cpuinfo"), &sys)),
        decide::power(&supplies(&sys)),
        decide::load_average(both(first_number(proc, "loadavg"), cpus)),
        decide::foreign_cpu(quiet.foreign),
        decide::steal(quiet.steal_share, quiet.steal_share_since_boot),
        decide::pressure(pressure("cpu"), pressure("io"), pressure("memory")),
        decide::timer(
            measure::wake_up_lateness_ns(),
            proc.read("self/timerslack_ns")
                .ok()
                .and_then(|text| text.trim().parse().ok()),
        ),
        decide::idle_cpus(measure::round_trip()),
        decide::perf_counters(
            first_number(proc, "sys/kernel/perf_event_paranoid"),
            has_counters(&sys),
        ),
    ]
}

fn both<A, B>(first: Answer<A>, second: Answer<B>) -> Answer<(A, B)> {
    Ok((first?, second?))
}

fn first_number<T: FromStr>(proc: &Proc, name: &str) -> Answer<T> {
    let text = proc.read(name)?;
    text.split_ascii_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| format!("/proc/{name} does not begin with a number"))
}

/// One power supply: its type (`Mains`, `Battery`, ...), and `online` or `status` as it has them.
#[derive(Clone, Debug, Default)]
struct Supply {
    kind: String,
    is_online: Option<bool>,
    is_discharging: bool,
}

fn supplies(sys: &Sys) -> Vec<Supply> {
    const FOLDER: &str = "class/power_supply";
    let supply = |name: String| {
        let read = |file: &str| sys.read(&format!("{FOLDER}/{name}/{file}"));
        // A mouse's battery says nothing about the machine.
        if read("scope").is_ok_and(|scope| scope == "Device") {
            return None;
        }
        let is_online = read("online").ok().map(|text| text == "1");
        Some(Supply {
            kind: read("type").ok()?,
            is_online,
            is_discharging: read("status").is_ok_and(|status| status == "Discharging"),
        })
    };
    sys.list(FOLDER).into_iter().filter_map(supply).collect()
}

/// The kernel lists a source of events for the hardware counters of each kind of core.
fn has_counters(sys: &Sys) -> bool {
    sys.list("bus/event_source/devices")
        .iter()
        .any(|name| name.starts_with("cpu") || name.starts_with("arm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpus;

    #[test]
    fn this_machine_is_judged_whole() {
        let checks = check_machine(Proc::new(), Path::new("/sys"), Path::new("."), Some(1));
        let mut names: Vec<&str> = checks.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len());
        for check in &checks {
            assert!(!check.finding.is_empty(), "{check:?}");
            assert_eq!(
                check.advice.is_some(),
                matches!(check.status, Status::Warn | Status::Fail),
                "{check:?}"
            );
        }
        let timer = checks.iter().find(|check| check.name == "timer").unwrap();
        assert_ne!(timer.status, Status::Unavailable);
        let json = serde_json::to_value(timer).unwrap();
        assert!(json["status"] == "ok" || json["status"] == "warn", "{json}");
    }

    #[test]
    fn a_machine_that_tells_nothing_is_unavailable_not_unfit() {
        let dir = tempfile::tempdir().unwrap();
        let proc = Proc::at(dir.path());
        let checks = check_machine(&proc, &dir.path().join("sys"), dir.path(), Some(u64::MAX));
        for check in &checks {
            let expected = match check.name {
                "free_disk" => vec![Status::Fail],
                // Measured or counted on the real machine.
                "timer" => vec![Status::Ok, Status::Warn],
                "idle_cpus" if Cpus::allowed().unwrap().count() > 1 => {
                    vec![Status::Ok, Status::Warn]
                }
                "power" => vec![Status::Ok],
                _ => vec![Status::Unavailable],
            };
            assert!(expected.contains(&check.status), "{check:?}");
            assert!(
                !check.finding.contains(dir.path().to_str().unwrap()),
                "{check:?}"
            );
        }
    }

    #[test]
    fn a_mouse_is_no_power_supply() {
        let dir = tempfile::tempdir().unwrap();
        for (name, files) in [
            ("AC", vec![("type", "Mains\n"), ("online", "1\n")]),
            (
                "BAT0",
                vec![("type", "Battery\n"), ("status", "Discharging\n")],
            ),
            (
                "mouse",
                vec![
                    ("type", "Battery\n"),
                    ("status", "Discharging\n"),
                    ("scope", "Device\n"),
                ],
            ),
        ] {
            let folder = dir.path().join("class/power_supply").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for (file, text) in files {
                std::fs::write(folder.join(file), text).unwrap();
            }
        }
        let supplies = supplies(&Sys(dir.path()));
        assert_eq!(supplies.len(), 2);
        assert_eq!(
            (supplies[0].kind.as_str(), supplies[0].is_online),
            ("Mains", Some(true))
        );
        assert!(supplies[1].is_discharging);
    }
}
