//! What the machine is: the facts that must be alike before two results may be compared.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::disk::Filesystem;
use crate::parse::{kib_field, text_field};
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

/// The machine under a trial. No host name, user name, path or serial number is in it.
///
/// | facts | meaning |
/// |---|---|
/// | `cpu_model` `cpus_online` `cpus_allowed` `smt` `numa_nodes` | the processors, and the list of those this process may use |
/// | `cpu_governor` `cpu_boost` | how their clock is ruled; several governors are joined by commas |
/// | `memory_bytes` `swap_bytes` `transparent_huge_pages` `swappiness` | memory |
/// | `dirty_ratio` `dirty_background_ratio` `dirty_bytes` `dirty_background_bytes` | when the kernel writes back; of each pair the one that is not 0 rules |
/// | `kernel` `os` `hypervisor` `clocksource` `aslr` `perf_event_paranoid` | the system; `hypervisor` is `yes` or `no` |
/// | `data_filesystem` `data_mount_options` `data_device` `data_scheduler` `data_rotational` | what the data directory is on |
/// | `now_load_average` `now_memory_available_bytes` `now_uptime_s` | how it was at the capture: names that begin with `now_` differ between any two captures |
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

fn capture(machine: &Machine, data_dir: &Path) -> Environment {
    let Machine { proc, sys, etc } = machine;
    let cpuinfo = proc.read("cpuinfo");
    let meminfo = proc.read("meminfo");
    let memory =
        |name: &str| Ok(kib_field(meminfo.as_ref().map_err(String::clone)?, name)?.to_string());
    let setting = |name: &str| Ok(proc.read(&format!("sys/{name}"))?.trim().to_owned());
    let first_word = |name: &str| {
        Ok(proc
            .read(name)?
            .split_ascii_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned())
    };
    let filesystem = Filesystem::of(proc, data_dir);
    let queue = |name: &str| sys.queue(filesystem.device.as_ref().map_err(String::clone)?.0, name);
    let mount = filesystem.mount.as_ref().map_err(String::clone);

    let facts: [(&str, Answer<String>); 29] = [
        (
            "cpu_model",
            cpuinfo.clone().and_then(|text| cpu_model(&text)),
        ),
        (
            "cpus_online",
            sys.read("devices/system/cpu/online")
                .and_then(|list| Ok(count_in_list(&list)?.to_string())),
        ),
        (
            "cpus_allowed",
            proc.read("self/status")
                .and_then(|text| Ok(text_field(&text, "Cpus_allowed_list")?.to_owned())),
        ),
        ("smt", sys.read("devices/system/cpu/smt/control")),
        (
            "numa_nodes",
            sys.read("devices/system/node/online")
                .and_then(|list| Ok(count_in_list(&list)?.to_string())),
        ),
        (
            "cpu_governor",
            sys.governors().map(|governors| governors.join(",")),
        ),
        (
            "cpu_boost",
            sys.is_boost_on()
                .map(|is_on| String::from(if is_on { "on" } else { "off" })),
        ),
        ("memory_bytes", memory("MemTotal")),
        ("swap_bytes", memory("SwapTotal")),
        ("transparent_huge_pages", sys.transparent_huge_pages()),
        ("swappiness", setting("vm/swappiness")),
        ("dirty_ratio", setting("vm/dirty_ratio")),
        (
            "dirty_background_ratio",
            setting("vm/dirty_background_ratio"),
        ),
        ("dirty_bytes", setting("vm/dirty_bytes")),
        (
            "dirty_background_bytes",
            setting("vm/dirty_background_bytes"),
        ),
        ("kernel", setting("kernel/osrelease")),
        ("os", os_name(etc)),
        (
            "hypervisor",
            is_virtual(&cpuinfo, sys)
                .map(|is_virtual| String::from(if is_virtual { "yes" } else { "no" })),
        ),
        ("clocksource", sys.clocksource()),
        ("aslr", setting("kernel/randomize_va_space")),
        ("perf_event_paranoid", setting("kernel/perf_event_paranoid")),
        (
            "data_filesystem",
            mount.clone().map(|mount| mount.filesystem.clone()),
        ),
        (
            "data_mount_options",
            mount.map(|mount| harmless_options(&mount.options)),
        ),
        (
            "data_device",
            filesystem.device.clone().map(|(_, name)| name),
        ),
        (
            "data_scheduler",
            queue("scheduler").map(|text| chosen(&text)),
        ),
        ("data_rotational", queue("rotational")),
        ("now_load_average", first_word("loadavg")),
        ("now_memory_available_bytes", memory("MemAvailable")),
        ("now_uptime_s", first_word("uptime")),
    ];
    let fact = |answer: Answer<String>| match answer {
        Ok(value) if value.is_empty() => Fact::Unavailable(String::from("empty")),
        Ok(value) => Fact::Known(value),
        Err(reason) => Fact::Unavailable(reason),
    };
    Environment {
        facts: facts
            .into_iter()
            .map(|(name, answer)| (name.to_owned(), fact(answer)))
            .collect(),
    }
}

/// `/sys`, as far as it says how the machine runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sys<'a>(pub(crate) &'a Path);

impl Sys<'_> {
    /// A file's text without blanks around it.
    pub(crate) fn read(&self, name: &str) -> Answer<String> {
        match std::fs::read(self.0.join(name)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => Err(format!("cannot read /sys/{name}: {error}")),
        }
    }

    /// Names in a folder, sorted; none when it is not there.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.0.join(name)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort_unstable();
        names
    }

    /// The different frequency governors, sorted.
    pub(crate) fn governors(&self) -> Answer<Vec<String>> {
        const POLICIES: &str = "devices/system/cpu/cpufreq";
        let policies = self
            .list(POLICIES)
            .into_iter()
            .filter(|name| name.starts_with("policy"));
        let mut governors: Vec<String> = policies
            .filter_map(|policy| {
                self.read(&format!("{POLICIES}/{policy}/scaling_governor"))
                    .ok()
            })
            .collect();
        governors.sort_unstable();
        governors.dedup();
        if governors.is_empty() {
            Err(String::from("the kernel does not rule the CPU clock here"))
        } else {
            Ok(governors)
        }
    }

    /// Whether the CPU may go over its nominal clock.
    pub(crate) fn is_boost_on(&self) -> Answer<bool> {
        let intel = self
            .read("devices/system/cpu/intel_pstate/no_turbo")
            .map(|text| text == "0");
        intel
            .or_else(|_| {
                self.read("devices/system/cpu/cpufreq/boost")
                    .map(|text| text == "1")
            })
            .map_err(|_| String::from("the kernel does not show whether the CPU boosts its clock"))
    }

    /// The clock behind timestamps.
    pub(crate) fn clocksource(&self) -> Answer<String> {
        self.read("devices/system/clocksource/clocksource0/current_clocksource")
    }

    /// `always`, `madvise` or `never`.
    pub(crate) fn transparent_huge_pages(&self) -> Answer<String> {
        Ok(chosen(
            &self.read("kernel/mm/transparent_hugepage/enabled")?,
        ))
    }

    fn queue(&self, device: (u32, u32), name: &str) -> Answer<String> {
        let device = format!("dev/block/{}:{}", device.0, device.1);
        // A partition has the queue of its disk, the folder above it.
        let parent = if self.0.join(&device).join("partition").exists() {
            "/.."
        } else {
            ""
        };
        self.read(&format!("{device}{parent}/queue/{name}"))
    }
}

/// True on a virtual machine. x86 shows it in the CPU's flags, Xen and s390 in `/sys/hypervisor`;
/// elsewhere silence proves nothing.
pub(crate) fn is_virtual(cpuinfo: &Answer<String>, sys: &Sys) -> Answer<bool> {
    if sys.read("hypervisor/type").is_ok() {
        return Ok(true);
    }
    let flags = text_field(cpuinfo.as_ref().map_err(String::clone)?, "flags")
        .map_err(|_| "this kind of CPU does not tell")?;
    Ok(flags
        .split_ascii_whitespace()
        .any(|flag| flag == "hypervisor"))
}

/// The choice in brackets of `always [madvise] never`; the whole text when there is none.
fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(choice, _)| choice).to_owned()
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
        for (text, choice) in [
            ("always [madvise] never", "madvise"),
            ("none", "none"),
            ("[none] mq-deadline", "none"),
            ("] [", "] ["),
        ] {
            assert_eq!(chosen(text), choice);
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

    #[test]
    fn a_virtual_machine_is_told_from_silence() {
        let dir = tempfile::tempdir().unwrap();
        let sys = Sys(dir.path());
        let cpuinfo = |text: &str| Ok(String::from(text));
        assert_eq!(
            is_virtual(&cpuinfo("flags : fpu hypervisor sse\n"), &sys),
            Ok(true)
        );
        assert_eq!(is_virtual(&cpuinfo("flags : fpu sse\n"), &sys), Ok(false));
        assert!(is_virtual(&cpuinfo("Features : fp asimd\n"), &sys).is_err());
        assert!(is_virtual(&Err(String::from("no file")), &sys).is_err());
        std::fs::create_dir(dir.path().join("hypervisor")).unwrap();
        std::fs::write(dir.path().join("hypervisor/type"), "xen\n").unwrap();
        assert_eq!(is_virtual(&cpuinfo("flags : fpu\n"), &sys), Ok(true));
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
