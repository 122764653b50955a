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

#[cfg(test)]
mod tests {
    use super::*;

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
