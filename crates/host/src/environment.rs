//! What the machine is: the facts that must be alike before two results may be compared.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::Filesystem;
use crate::machine_id;
use crate::memory::Memory;
use crate::parse::text_field;
use crate::sys::{Sys, chosen, is_virtual};
use crate::{Answer, Proc};

/// One fact as text, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The value; bytes and counts as plain numbers.
    Known(String),
    /// The reason there is none.
    Unavailable(String),
}

/// The machine under a trial. No host name, user name, path or serial number is in it. A campaign on
/// several machines adds `host`: the name that its user calls the machine by.
///
/// - The processors: `cpu_model`, `cpus_online`, `cpus_allowed` (the list of those this process may
///   use), `smt`, `numa_nodes`; how their clock is set: `cpu_governor` (several are joined by
///   commas), `cpu_boost`.
/// - Memory: `memory_bytes`, `swap_bytes`, `transparent_huge_pages`, `swappiness`; when the kernel
///   writes back: `dirty_ratio`, `dirty_background_ratio`, `dirty_bytes`, `dirty_background_bytes`
///   (of each pair the one that is not 0 counts).
/// - The system: `kernel`, `os`, `hypervisor` (`yes` or `no`), `clocksource`, `aslr`,
///   `perf_event_paranoid`; `machine_id`, a hash: see [`crate::machine_id()`].
/// - What the data directory is on: `data_filesystem`, `data_mount_options`, `data_device`,
///   `data_scheduler`, `data_rotational`.
/// - How it was at the capture: `now_load_average`, `now_memory_available_bytes`, `now_uptime_s`.
///   Names that begin with `now_` differ between any two captures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment {
    /// All facts by name.
    pub facts: BTreeMap<String, Fact>,
}

impl Environment {
    /// All facts as text, for tables and differences; an unknown one reads `unavailable (reason)`.
    pub fn facts(&self) -> BTreeMap<String, String> {
        let text = |fact: &Fact| match fact {
            Fact::Known(value) => value.clone(),
            Fact::Unavailable(reason) => format!("unavailable ({reason})"),
        };
        self.facts
            .iter()
            .map(|(name, fact)| (name.clone(), text(fact)))
            .collect()
    }
}

/// Reads all facts. `data_dir` need not exist yet: its nearest ancestor counts.
pub fn capture_environment(proc_: impl Borrow<Proc>, data_dir: &Path) -> Environment {
    capture(
        &Machine {
            proc: proc_.borrow(),
            sys: Sys(Path::new("/sys")),
            etc: Path::new("/etc"),
        },
        data_dir,
    )
}

struct Machine<'a> {
    proc: &'a Proc,
    sys: Sys<'a>,
    etc: &'a Path,
}

/// Facts by name, each known or with the reason why not.
type Facts<const N: usize> = [(&'static str, Answer<String>); N];

fn capture(machine: &Machine, data_dir: &Path) -> Environment {
    let fact = |answer: Answer<String>| match answer {
        Ok(value) if value.is_empty() => Fact::Unavailable(String::from("empty")),
        Ok(value) => Fact::Known(value),
        Err(reason) => Fact::Unavailable(reason),
    };
    let facts = machine
        .processors()
        .into_iter()
        .chain(machine.memory())
        .chain(machine.system())
        .chain(machine.data(data_dir))
        .chain(machine.now())
        .map(|(name, answer)| (name.to_owned(), fact(answer)));
    Environment {
        facts: facts.collect(),
    }
}

impl Machine<'_> {
    fn processors(&self) -> Facts<7> {
        let (proc, sys) = (self.proc, self.sys);
        let cpuinfo = proc.read("cpuinfo");
        let online = |what: &str| {
            let list = sys.read(&format!("devices/system/{what}/online"))?;
            Ok(count_in_list(&list)?.to_string())
        };
        let allowed = proc
            .read("self/status")
            .and_then(|text| Ok(text_field(&text, "Cpus_allowed_list")?.to_owned()));
        let boost = sys.is_boost_on().map(|is_on| match is_on {
            true => String::from("on"),
            false => String::from("off"),
        });
        [
            ("cpu_model", cpuinfo.and_then(|text| cpu_model(&text))),
            ("cpus_online", online("cpu")),
            ("cpus_allowed", allowed),
            ("smt", sys.read("devices/system/cpu/smt/control")),
            ("numa_nodes", online("node")),
            ("cpu_governor", sys.governors().map(|all| all.join(","))),
            ("cpu_boost", boost),
        ]
    }

    fn memory(&self) -> Facts<8> {
        let memory = Memory::read(self.proc);
        let text = |bytes: Answer<u64>| bytes.map(|bytes| bytes.to_string());
        [
            ("memory_bytes", text(memory.total)),
            ("swap_bytes", text(memory.swap_total)),
            ("transparent_huge_pages", self.sys.transparent_huge_pages()),
            ("swappiness", self.setting("vm/swappiness")),
            ("dirty_ratio", self.setting("vm/dirty_ratio")),
            (
                "dirty_background_ratio",
                self.setting("vm/dirty_background_ratio"),
            ),
            ("dirty_bytes", self.setting("vm/dirty_bytes")),
            (
                "dirty_background_bytes",
                self.setting("vm/dirty_background_bytes"),
            ),
        ]
    }

    fn system(&self) -> Facts<7> {
        let hypervisor = is_virtual(&self.proc.read("cpuinfo"), &self.sys);
        let hypervisor = hypervisor.map(|is_virtual| match is_virtual {
            true => String::from("yes"),
            false => String::from("no"),
        });
        [
            ("kernel", self.setting("kernel/osrelease")),
            ("os", os_name(self.etc)),
            ("hypervisor", hypervisor),
            ("clocksource", self.sys.clocksource()),
            ("aslr", self.setting("kernel/randomize_va_space")),
            (
                "perf_event_paranoid",
                self.setting("kernel/perf_event_paranoid"),
            ),
            ("machine_id", machine_id::of_etc(self.etc)),
        ]
    }

    /// What the data directory is on.
    fn data(&self, data_dir: &Path) -> Facts<5> {
        let Filesystem { mount, device } = Filesystem::of(self.proc, data_dir);
        let queue = |name| {
            self.sys
                .queue(device.as_ref().map_err(String::clone)?.0, name)
        };
        let mount = mount.as_ref().map_err(String::clone);
        [
            (
                "data_filesystem",
                mount.clone().map(|mount| mount.filesystem.clone()),
            ),
            (
                "data_mount_options",
                mount.map(|mount| harmless_options(&mount.options)),
            ),
            (
                "data_scheduler",
                queue("scheduler").map(|text| chosen(&text)),
            ),
            ("data_rotational", queue("rotational")),
            ("data_device", device.map(|(_, name)| name)),
        ]
    }

    /// What differs between any two captures.
    fn now(&self) -> Facts<3> {
        let available = Memory::read(self.proc).available;
        [
            ("now_load_average", self.first_word("loadavg")),
            (
                "now_memory_available_bytes",
                available.map(|bytes| bytes.to_string()),
            ),
            ("now_uptime_s", self.first_word("uptime")),
        ]
    }

    /// Below `/proc/sys`.
    fn setting(&self, name: &str) -> Answer<String> {
        Ok(self.proc.read(&format!("sys/{name}"))?.trim().to_owned())
    }

    fn first_word(&self, name: &str) -> Answer<String> {
        let text = self.proc.read(name)?;
        let mut words = text.split_ascii_whitespace();
        Ok(words.next().unwrap_or_default().to_owned())
    }
}

/// How many numbers are in a list like `0-3,8`.
fn count_in_list(list: &str) -> Answer<u64> {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        last.parse::<u64>()
            .ok()?
            .checked_sub(first.parse().ok()?)?
            .checked_add(1)
    };
    let counts: Option<Vec<u64>> = list.trim().split(',').map(count).collect();
    counts
        .map(|counts| {
            counts
                .iter()
                .fold(0, |sum: u64, count| sum.saturating_add(*count))
        })
        .ok_or_else(|| String::from("not a list of numbers"))
}

/// x86 and others call it by different names.
fn cpu_model(cpuinfo: &str) -> Answer<String> {
    let names = ["model name", "cpu model", "cpu", "uarch", "CPU part"];
    let model = names
        .into_iter()
        .find_map(|name| text_field(cpuinfo, name).ok());
    model
        .map(str::to_owned)
        .ok_or_else(|| String::from("/proc/cpuinfo does not name the CPU"))
}

fn os_name(etc: &Path) -> Answer<String> {
    let text = std::fs::read_to_string(etc.join("os-release"))
        .map_err(|error| format!("cannot read /etc/os-release: {error}"))?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    Ok(name
        .ok_or("/etc/os-release has no PRETTY_NAME")?
        .trim_matches(['"', '\''])
        .to_owned())
}

/// Mount options without those that could name a host, a user or a folder: values of letters and
/// digits stay.
fn harmless_options(options: &str) -> String {
    let is_harmless = |option: &&str| {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        let is_plain = |text: &str| {
            text.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        let is_telling = ["user", "name", "pass", "domain", "addr", "host", "cred"]
            .iter()
            .any(|word| key.contains(word));
        is_plain(key) && is_plain(value) && !is_telling && !option.is_empty()
    };
    let mut kept: Vec<&str> = Vec::new();
    for option in options.split(',').filter(is_harmless) {
        // The mount and its filesystem often say the same.
        if !kept.contains(&option) {
            kept.push(option);
        }
    }
    kept.join(",")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn small_readers() {
        for (list, count) in [
            ("0", Ok(1)),
            ("0-3", Ok(4)),
            ("0-3,8,10-11\n", Ok(7)),
            ("", Err(())),
            ("3-1", Err(())),
            ("a", Err(())),
        ] {
            assert_eq!(count_in_list(list).map_err(|_| ()), count, "{list:?}");
        }
        for (options, kept) in [
            (
                "rw,relatime,rw,errors=remount-ro,commit=30",
                "rw,relatime,errors=remount-ro,commit=30",
            ),
            (
                "rw,addr=10.0.0.1,username=bob,vers=3,lowerdir=/home/bob/x,clientaddr=a,source=bob@box",
                "rw,vers=3",
            ),
            ("", ""),
        ] {
            assert_eq!(harmless_options(options), kept);
        }
    }

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn facts_of_a_made_machine() {
        let (proc, sys, etc, data) = (
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
            tempfile::tempdir().unwrap(),
        );
        let device = data.path().metadata().unwrap().dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let (disks, mounts) = (
            format!("{major} {minor} sdz3 1 0 0 0 1 0 0 0\n"),
            format!(
                "1 0 {major}:{minor} / / rw,noatime - xfs /dev/sdz3 rw,logbsize=256k,user=bob\n"
            ),
        );
        write(
            proc.path(),
            &[
                (
                    "cpuinfo",
                    "processor : 0\nmodel name : Fast 9000\nflags : fpu\n",
                ),
                (
                    "meminfo",
                    "MemTotal: 8 kB\nMemAvailable: 4 kB\nSwapTotal: 0 kB\n",
                ),
                ("self/status", "Cpus_allowed_list:\t0-1\n"),
                ("self/mountinfo", &mounts),
                ("diskstats", &disks),
                ("sys/vm/swappiness", "60\n"),
                ("sys/kernel/osrelease", "6.1.0\n"),
                ("loadavg", "0.50 0.1 0.1 1/10 99\n"),
            ],
        );
        write(
            sys.path(),
            &[
                ("devices/system/cpu/online", "0-3\n"),
                (
                    "devices/system/cpu/cpufreq/policy0/scaling_governor",
                    "powersave\n",
                ),
                (
                    "devices/system/cpu/cpufreq/policy1/scaling_governor",
                    "performance\n",
                ),
                ("devices/system/cpu/cpufreq/boost", "1\n"),
                ("devices/sdz/queue/scheduler", "none [mq-deadline]\n"),
                ("devices/sdz/queue/rotational", "0\n"),
                ("devices/sdz/sdz3/partition", "3\n"),
                ("dev/block/x", ""),
            ],
        );
        std::os::unix::fs::symlink(
            "../../devices/sdz/sdz3",
            sys.path().join(format!("dev/block/{major}:{minor}")),
        )
        .unwrap();
        write(
            etc.path(),
            &[("os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n")],
        );

        let machine = Machine {
            proc: &Proc::at(proc.path()),
            sys: Sys(sys.path()),
            etc: etc.path(),
        };
        let environment = capture(&machine, &data.path().join("not yet"));
        let facts = environment.facts();
        for (name, value) in [
            ("cpu_model", "Fast 9000"),
            ("cpus_online", "4"),
            ("cpus_allowed", "0-1"),
            ("cpu_governor", "performance,powersave"),
            ("cpu_boost", "on"),
            ("memory_bytes", "8192"),
            ("swap_bytes", "0"),
            ("swappiness", "60"),
            ("kernel", "6.1.0"),
            ("os", "Some Linux 1"),
            ("hypervisor", "no"),
            ("data_filesystem", "xfs"),
            ("data_mount_options", "rw,noatime,logbsize=256k"),
            ("data_device", "sdz3"),
            ("data_scheduler", "mq-deadline"),
            ("data_rotational", "0"),
            ("now_load_average", "0.50"),
        ] {
            assert_eq!(facts[name], value, "{name}");
        }
        assert!(
            facts["aslr"]
                .starts_with("unavailable (cannot read /proc/sys/kernel/randomize_va_space: ")
        );

        let json = serde_json::to_string(&environment).unwrap();
        assert_eq!(
            serde_json::from_str::<Environment>(&json).unwrap(),
            environment
        );
        for private in [proc.path(), sys.path(), data.path()] {
            assert!(!json.contains(private.to_str().unwrap()), "{json}");
        }
        assert!(!json.contains("bob"), "{json}");
    }

    #[test]
    fn facts_of_this_machine() {
        let environment = capture_environment(Proc::new(), Path::new("."));
        let known = |name: &str| matches!(&environment.facts[name], Fact::Known(value) if !value.is_empty());
        for name in [
            "cpus_allowed",
            "memory_bytes",
            "kernel",
            "now_uptime_s",
            "data_filesystem",
        ] {
            assert!(known(name), "{name}: {:?}", environment.facts[name]);
        }
    }
}
