//! `/sys`: how the machine runs.

use std::path::{Path, PathBuf};

use crate::Answer;
use crate::parse::text_field;

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

    /// What the queue of a block device says.
    pub(crate) fn queue(&self, device: (u32, u32), name: &str) -> Answer<String> {
        self.read(&format!("{}/queue/{name}", disk_folder(self.0, device)))
    }

    /// The folder of a block device; of a partition that of its disk.
    pub(crate) fn disk(&self, device: (u32, u32)) -> PathBuf {
        self.0.join(disk_folder(self.0, device))
    }
}

/// Below `/sys`.
fn disk_folder(sys: &Path, device: (u32, u32)) -> String {
    let folder = format!("dev/block/{}:{}", device.0, device.1);
    // A partition's disk is the folder above it.
    if sys.join(&folder).join("partition").exists() {
        folder + "/.."
    } else {
        folder
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
pub(crate) fn chosen(text: &str) -> String {
    let inside = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(choice, _)| choice).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_in_brackets() {
        for (text, choice) in [
            ("always [madvise] never", "madvise"),
            ("none", "none"),
            ("[none] mq-deadline", "none"),
            ("] [", "] ["),
        ] {
            assert_eq!(chosen(text), choice);
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
}
