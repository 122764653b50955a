//! Files of `Name: value` lines: `/proc/PID/status`, `/proc/meminfo`, `/proc/cpuinfo`.

use crate::Answer;

/// The text after the first `name:`.
pub fn text_field<'a>(text: &'a str, name: &str) -> Answer<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim_end() == name)
        .map(|(_, value)| value.trim())
        .ok_or_else(|| format!("no line {name}"))
}

/// The bytes of a line `name: 123 kB`.
pub fn kib_field(text: &str, name: &str) -> Answer<u64> {
    let value = text_field(text, name)?;
    value
        .strip_suffix("kB")
        .and_then(|number| number.trim_end().parse::<u64>().ok()?.checked_mul(1024))
        .ok_or_else(|| format!("line {name} is not a number of kB"))
}

/// The number of a line `name: 123`.
pub fn count_field(text: &str, name: &str) -> Answer<u64> {
    text_field(text, name)?
        .parse()
        .map_err(|_| format!("line {name} is not a whole number"))
}

/// How often a thread gave up its CPU, since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// To wait for something.
    pub voluntary: u64,
    /// Because another was to run.
    pub involuntary: u64,
}

/// Reads those of a thread, or of a process's first one, from its `status`.
pub fn parse_switches(status: &str) -> Answer<Switches> {
    Ok(Switches {
        voluntary: count_field(status, "voluntary_ctxt_switches")?,
        involuntary: count_field(status, "nonvoluntary_ctxt_switches")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of `/proc/PID/task/TID/status` as Linux 6.18 showed them of a thread of mysqld.
    const RECORDED: &str = "Name:\tconnection\nState:\tT (stopped)\nTgid:\t9411\nPid:\t9985\n\
                            Threads:\t83\nCpus_allowed_list:\t1\nMems_allowed_list:\t0\n\
                            voluntary_ctxt_switches:\t1611\n\
                            nonvoluntary_ctxt_switches:\t131\n";

    #[test]
    fn reads_the_switches_of_a_thread() {
        assert_eq!(
            parse_switches(RECORDED),
            Ok(Switches {
                voluntary: 1611,
                involuntary: 131
            })
        );
        // An ended thread has no such lines.
        let ended = RECORDED.split("voluntary").next().unwrap();
        assert_eq!(
            parse_switches(ended).unwrap_err(),
            "no line voluntary_ctxt_switches"
        );
        let damaged = RECORDED.replace("131", "1.1");
        assert_eq!(
            parse_switches(&damaged).unwrap_err(),
            "line nonvoluntary_ctxt_switches is not a whole number"
        );
    }

    #[test]
    fn finds_fields_by_their_whole_name() {
        let text = "Name:\tx\nVmRSS:\t    1672 kB\nRssAnon: 5 kB\nmodel name\t: AMD \
                   EPYC\nHugePages_Total:       3\n";
        assert_eq!(kib_field(text, "VmRSS").unwrap(), 1672 * 1024);
        assert_eq!(text_field(text, "model name").unwrap(), "AMD EPYC");
        assert!(text_field(text, "model").is_err() && kib_field(text, "RSS").is_err());
        assert!(
            kib_field(text, "HugePages_Total")
                .unwrap_err()
                .contains("number of kB")
        );
        assert!(kib_field("VmRSS: 99999999999999999999 kB", "VmRSS").is_err());
    }
}
