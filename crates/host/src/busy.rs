//! CPU that all tasks of the machine have used, in nanoseconds.

use crate::parse::parse_stat;
use crate::processes::tick_ns;
use crate::{Answer, Proc};

/// The run time of all tasks on all CPUs since boot, in nanoseconds: from `/proc/schedstat`, or,
/// where the kernel keeps none, in ticks of 10 ms from `/proc/stat`. Ticks say nothing about a
/// single turn, and much about a hundred of them.
///
/// # Errors
/// Where neither can be read.
pub fn busy_ns(proc_: &Proc) -> Answer<u64> {
    match proc_.read("schedstat") {
        Ok(text) => parse(&text),
        Err(_) => Ok(parse_stat(&proc_.read("stat")?)?.busy() * tick_ns()),
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
        std::fs::write(
            dir.path().join("stat"),
            "cpu  100 10 50 900 40 3 2 7 0 0\ncpu0 100 10 50 900 40 3 2 7 0 0\nctxt 5\n",
        )
        .unwrap();
        assert_eq!(busy_ns(&Proc::at(dir.path())), Ok(165 * tick_ns()));
        std::fs::write(
            dir.path().join("schedstat"),
            "version 15\ncpu0 0 0 0 0 0 0 1000 20 3\n",
        )
        .unwrap();
        assert_eq!(busy_ns(&Proc::at(dir.path())), Ok(1000));
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
