//! On which CPUs threads run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A set of CPUs as the kernel writes it: `0`, `1-3`, `0,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

impl Cpus {
    /// The CPUs this process may run on.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn allowed() -> std::io::Result<Self> {
        let set = sched_getaffinity(None)?;
        Ok(Self(
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect(),
        ))
    }

    /// Reads a list of numbers and ranges.
    pub fn parse(text: &str) -> Option<Self> {
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| {
                text.trim()
                    .parse::<usize>()
                    .ok()
                    .filter(|&cpu| cpu < CpuSet::MAX_CPU)
            };
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            cpus.extend(first..=last);
        }
        cpus.sort_unstable();
        cpus.dedup();
        Some(Self(cpus))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The first `count` of them, and the others.
    pub fn split(&self, count: usize) -> (Self, Self) {
        let (first, rest) = self.0.split_at(count.min(self.0.len()));
        (Self(first.to_vec()), Self(rest.to_vec()))
    }

    /// Whether all of them are in `other`.
    pub fn are_among(&self, other: &Self) -> bool {
        self.0.iter().all(|cpu| other.0.contains(cpu))
    }

    /// Whether one of them is in `other`.
    pub fn meet(&self, other: &Self) -> bool {
        self.0.iter().any(|cpu| other.0.contains(cpu))
    }
}

impl std::fmt::Display for Cpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut rest = &self.0[..];
        let mut is_first = true;
        while let Some(&first) = rest.first() {
            let length = rest
                .iter()
                .enumerate()
                .take_while(|(index, cpu)| **cpu == first + index)
                .count();
            let comma = if is_first { "" } else { "," };
            match length {
                1 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{}", first + length - 1)?,
            }
            is_first = false;
            rest = &rest[length..];
        }
        Ok(())
    }
}

/// Lets the calling thread, and the threads and processes it begins from now on, run on these CPUs
/// only.
///
/// # Errors
/// When the process may not run on any of them.
pub fn pin_thread(cpus: &Cpus) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.0.iter().for_each(|&cpu| set.set(cpu));
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for (text, written, count) in [
            ("0", "0", 1),
            ("1-3", "1-3", 3),
            ("2,0", "0,2", 2),
            ("0,1,2,5-6", "0-2,5-6", 5),
        ] {
            let cpus = Cpus::parse(text).unwrap();
            assert_eq!(
                (cpus.to_string().as_str(), cpus.count()),
                (written, count),
                "{text}"
            );
        }
        for bad in ["", "x", "3-1", "1,", "99999", "-1"] {
            assert_eq!(Cpus::parse(bad), None, "{bad}");
        }
        let (first, rest) = Cpus::parse("0-3").unwrap().split(1);
        assert_eq!(
            (first.to_string(), rest.to_string()),
            ("0".to_owned(), "1-3".to_owned())
        );
        assert!(
            !first.meet(&rest)
                && first.are_among(&Cpus::parse("0-3").unwrap())
                && !rest.are_among(&first)
        );
    }

    #[test]
    fn a_pinned_thread_and_its_children_stay_where_they_are() {
        std::thread::spawn(|| {
            let all = Cpus::allowed().unwrap();
            let (one, _) = all.split(1);
            pin_thread(&one).unwrap();
            assert_eq!(Cpus::allowed().unwrap(), one);
            let output = std::process::Command::new("grep")
                .args(["Cpus_allowed_list", "/proc/self/status"])
                .output()
                .unwrap();
            assert!(
                String::from_utf8_lossy(&output.stdout)
                    .trim()
                    .ends_with(&format!("\t{one}")),
                "{output:?}"
            );
            assert!(pin_thread(&Cpus(Vec::new())).is_err());
        })
        .join()
        .unwrap();
    }
}
