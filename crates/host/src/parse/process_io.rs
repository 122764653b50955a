//! `/proc/PID/io`: what a process read and wrote.

use super::status::count_field;
use crate::Answer;

/// Counters since the process started: of all its threads, ended ones too, and of the ended
/// children that it waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessIo {
    /// System calls that read (`syscr`).
    pub read_calls: u64,
    /// System calls that write (`syscw`).
    pub write_calls: u64,
    /// Bytes that were fetched from storage.
    pub read_bytes: u64,
    /// Bytes that were sent to the page cache or to storage. Those of files that were cut before
    /// they were written are not taken off.
    pub write_bytes: u64,
}

impl ProcessIo {
    /// The counts of two processes.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            read_calls: self.read_calls.saturating_add(other.read_calls),
            write_calls: self.write_calls.saturating_add(other.write_calls),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            write_bytes: self.write_bytes.saturating_add(other.write_bytes),
        }
    }
}

/// Reads the file.
pub fn parse_process_io(text: &str) -> Answer<ProcessIo> {
    Ok(ProcessIo {
        read_calls: count_field(text, "syscr")?,
        write_calls: count_field(text, "syscw")?,
        read_bytes: count_field(text, "read_bytes")?,
        write_bytes: count_field(text, "write_bytes")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 showed a mysqld.
    const RECORDED: &str = "rchar: 32470282\nwchar: 77471363\nsyscr: 1085\nsyscw: 24909\n\
                            read_bytes: 159744\nwrite_bytes: 144621568\n\
                            cancelled_write_bytes: 16384\n";

    #[test]
    fn reads_what_the_kernel_writes() {
        let expected = ProcessIo {
            read_calls: 1085,
            write_calls: 24_909,
            read_bytes: 159_744,
            write_bytes: 144_621_568,
        };
        assert_eq!(parse_process_io(RECORDED), Ok(expected));
        assert_eq!(expected.plus(&expected).write_calls, 49_818);
    }

    #[test]
    fn names_what_is_missing() {
        for (text, reason) in [
            ("", "no line syscr"),
            (
                &*RECORDED.replace("\nwrite_bytes: 144621568", ""),
                "no line write_bytes",
            ),
            (
                &*RECORDED.replace("159744", "-1"),
                "line read_bytes is not a whole number",
            ),
        ] {
            assert_eq!(parse_process_io(text).unwrap_err(), reason);
        }
    }
}
