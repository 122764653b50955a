//! `/proc/stat`: CPU time and context switches of the whole host.

use crate::Answer;

/// Counters since boot. Times in clock ticks, summed over all CPUs. Guest time is not listed: the
/// kernel counts it in `user` and `nice` already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCpu {
    pub user: u64,
    pub nice: u64,
    pub system: u64,
    pub idle: u64,
    pub iowait: u64,
    pub irq: u64,
    pub softirq: u64,
    pub steal: u64,
    /// CPUs online.
    pub cpus: u64,
    pub context_switches: u64,
}

impl HostCpu {
    /// Ticks in which a CPU worked for someone here.
    pub fn busy(&self) -> u64 {
        [self.nice, self.system, self.irq, self.softirq]
            .iter()
            .fold(self.user, |sum, ticks| sum.saturating_add(*ticks))
    }

    /// All ticks.
    pub fn total(&self) -> u64 {
        [self.idle, self.iowait, self.steal]
            .iter()
            .fold(self.busy(), |sum, ticks| sum.saturating_add(*ticks))
    }

    /// What was added since `before`; `cpus` are those of now.
    pub fn since(&self, before: &Self) -> Answer<Self> {
        let added = |count: fn(&Self) -> u64| {
            count(self)
                .checked_sub(count(before))
                .ok_or_else(|| String::from("a counter of /proc/stat ran backwards"))
        };
        Ok(Self {
            user: added(|host| host.user)?,
            nice: added(|host| host.nice)?,
            system: added(|host| host.system)?,
            // The kernel lets these two step back a little (proc(5)); that spoils nothing else.
            idle: self.idle.saturating_sub(before.idle),
            iowait: self.iowait.saturating_sub(before.iowait),
            irq: added(|host| host.irq)?,
            softirq: added(|host| host.softirq)?,
            steal: added(|host| host.steal)?,
            cpus: self.cpus,
            context_switches: added(|host| host.context_switches)?,
        })
    }
}

/// Reads the `cpu`, `cpuN` and `ctxt` lines.
pub fn parse_stat(text: &str) -> Answer<HostCpu> {
    let mut host = HostCpu::default();
    let mut has_cpu = false;
    let mut has_switches = false;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("cpu") => {
                let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
                // Steal, the eighth, exists since Linux 2.6.11.
                let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = ticks[..] else {
                    return Err(String::from(
                        "the cpu line of /proc/stat has fewer than 8 numbers",
                    ));
                };
                host = HostCpu {
                    user,
                    nice,
                    system,
                    idle,
                    iowait,
                    irq,
                    softirq,
                    steal,
                    ..host
                };
                has_cpu = true;
            }
            Some("ctxt") => {
                host.context_switches = words
                    .next()
                    .and_then(|word| word.parse().ok())
                    .ok_or("the ctxt line of /proc/stat has no number")?;
                has_switches = true;
            }
            Some(word)
                if word
                    .strip_prefix("cpu")
                    .is_some_and(|number| number.parse::<u32>().is_ok()) =>
            {
                host.cpus += 1
            }
            _ => {}
        }
    }
    match (has_cpu && host.cpus > 0, has_switches) {
        (true, true) => Ok(host),
        (false, _) => Err(String::from("/proc/stat has no cpu lines")),
        (true, false) => Err(String::from("/proc/stat has no ctxt line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_writes() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1 1 1\ncpu11 0 0 0 0 0 0 0 0 0 \
                   0\nintr 99 1 2\nctxt 77\nbtime 1\n";
        let host = parse_stat(text).unwrap();
        assert_eq!(
            host,
            HostCpu {
                user: 1,
                nice: 2,
                system: 3,
                idle: 4,
                iowait: 5,
                irq: 6,
                softirq: 7,
                steal: 8,
                cpus: 2,
                context_switches: 77
            }
        );
        assert_eq!((host.busy(), host.total()), (1 + 2 + 3 + 6 + 7, 36));
    }

    #[test]
    fn differences_forgive_idle_and_nothing_else() {
        let before = HostCpu {
            user: 10,
            idle: 50,
            iowait: 9,
            steal: 3,
            cpus: 4,
            context_switches: 100,
            ..HostCpu::default()
        };
        let after = HostCpu {
            user: 17,
            idle: 60,
            iowait: 8,
            steal: 3,
            cpus: 2,
            context_switches: 150,
            ..HostCpu::default()
        };
        let expected = HostCpu {
            user: 7,
            idle: 10,
            cpus: 2,
            context_switches: 50,
            ..HostCpu::default()
        };
        assert_eq!(after.since(&before).unwrap(), expected);
        assert!(before.since(&after).unwrap_err().contains("ran backwards"));
    }

    #[test]
    fn says_what_is_missing() {
        for (text, reason) in [
            ("", "no cpu lines"),
            ("ctxt 5\n", "no cpu lines"),
            ("cpu 1 2 3\ncpu0 1\nctxt 5\n", "fewer than 8 numbers"),
            (
                "cpu 1 2 3 4 x 6 7 8\ncpu0 1\nctxt 5\n",
                "fewer than 8 numbers",
            ),
            ("cpu 1 2 3 4 5 6 7 8\ncpu0 1\n", "no ctxt line"),
            (
                "cpu 1 2 3 4 5 6 7 8\ncpu0 1\nctxt many\n",
                "ctxt line of /proc/stat has no number",
            ),
        ] {
            let found = parse_stat(text).unwrap_err();
            assert!(found.contains(reason), "{text:?}: {found}");
        }
    }
}
