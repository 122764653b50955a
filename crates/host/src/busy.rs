//! CPU of the whole machine: what its tasks have used, and what was stolen from it.

use crate::parse::{HostCpu, parse_stat};
use crate::proc::KeptFile;
use crate::processes::tick_ns;
use crate::{Answer, Proc};

/// Reads the machine's CPU again and again, from files that stay open.
#[derive(Debug)]
pub struct MachineClocks {
    schedstat: KeptFile,
    stat: KeptFile,
}

/// CPU of the whole machine since boot, in nanoseconds, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCpu {
    /// The run time of all tasks on all CPUs.
    pub busy_ns: Result<u64, String>,
    /// What the hypervisor gave to other guests, over all CPUs: in ticks of 10 ms.
    pub stolen_ns: Result<u64, String>,
}

impl MachineClocks {
    /// Those of this tree.
    pub fn of(proc_: &Proc) -> Self {
        Self {
            schedstat: proc_.keep("schedstat"),
            stat: proc_.keep("stat"),
        }
    }

    /// Both as they are now. Run times are from `/proc/schedstat`, or, where the kernel keeps none,
    /// in ticks of 10 ms from `/proc/stat`, which is read once for both. Ticks say nothing about a
    /// single turn, and much about a hundred of them.
    pub fn read(&mut self) -> MachineCpu {
        let ticks = self.stat.read().and_then(|text| parse_stat(&text));
        let in_ns = |ticks: u64| ticks.saturating_mul(tick_ns());
        let busy_ns = match self.schedstat.read() {
            Ok(text) => parse(&text),
            Err(_) => ticks
                .as_ref()
                .map(HostCpu::busy)
                .map(in_ns)
                .map_err(String::clone),
        };
        MachineCpu {
            busy_ns,
            stolen_ns: ticks.map(|ticks| in_ns(ticks.steal)),
        }
    }
}

/// The seventh number behind a CPU's name is its run time.
fn parse(text: &str) -> Answer<u64> {
    let cpus = text.lines().filter(|line| line.starts_with("cpu"));
    let times: Option<Vec<u64>> = cpus
        .map(|line| line.split_ascii_whitespace().nth(7)?.parse().ok())
        .collect();
    let times = times
        .filter(|times| !times.is_empty())
        .ok_or("the layout of /proc/schedstat is not known here")?;
    Ok(times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_run_times_ticks_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let stat = "cpu  100 10 50 900 40 3 2 7 0 0\ncpu0 100 10 50 900 40 3 2 7 0 0\nctxt 5\n";
        std::fs::write(dir.path().join("stat"), stat).unwrap();
        let proc = Proc::at(dir.path());
        let mut clocks = MachineClocks::of(&proc);
        let stolen_ns = Ok(7 * tick_ns());
        assert_eq!(
            clocks.read(),
            MachineCpu {
                busy_ns: Ok(165 * tick_ns()),
                stolen_ns: stolen_ns.clone()
            }
        );
        std::fs::write(
            dir.path().join("schedstat"),
            "version 15\ncpu0 0 0 0 0 0 0 1000 20 3\n",
        )
        .unwrap();
        let mut clocks = MachineClocks::of(&proc);
        assert_eq!(
            clocks.read(),
            MachineCpu {
                busy_ns: Ok(1000),
                stolen_ns
            }
        );
        // Read afresh each time.
        std::fs::write(dir.path().join("stat"), stat.replace(" 7 ", " 9 ")).unwrap();
        assert_eq!(clocks.read().stolen_ns, Ok(9 * tick_ns()));
    }

    #[test]
    fn a_machine_that_shows_nothing_has_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let cpu = MachineClocks::of(&Proc::at(dir.path())).read();
        for answer in [cpu.busy_ns, cpu.stolen_ns] {
            assert!(answer.unwrap_err().contains("/proc/stat"));
        }
    }

    #[test]
    fn run_times_are_summed_over_cpus() {
        let text = "version 15\ntimestamp 4295\ncpu0 0 0 0 0 0 0 1000 20 3\ndomain0 3 0 0\ncpu1 0 \
                   0 0 0 0 0 500 20 3\n";
        assert_eq!(parse(text), Ok(1500));
        for bad in [
            "",
            "version 15\n",
            "cpu0 0 0 0\n",
            "cpu0 0 0 0 0 0 0 x 1 1\n",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
