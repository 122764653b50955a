//! Readers of the kernel's text formats. Pure: text in, value or reason out; no input makes them
//! panic.

mod diskstats;
mod mountinfo;
mod pressure;
mod process_io;
mod process_stat;
mod stat;
mod status;

pub use diskstats::{DiskCounters, parse_diskstats};
pub use mountinfo::{Mount, parse_mountinfo};
pub use pressure::parse_pressure;
pub use process_io::{ProcessIo, parse_process_io};
pub use process_stat::{ProcessStat, parse_process_stat};
pub use stat::{HostCpu, parse_stat};
pub use status::{Switches, kib_field, parse_switches, text_field};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_make_a_parser_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            exercise(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_nearly_right_text_makes_a_parser_panic(text in "(cpu|cpu0|ctxt|some|total=|VmRSS:|syscr:|voluntary_ctxt_switches:|kB|[0-9]{1,22}|-|\\(|\\)|:|/|\\\\[0-7]{1,4}|é| |\t|\n){0,60}") {
            exercise(&text);
        }
    }

    fn exercise(text: &str) {
        let _ = parse_stat(text);
        let _ = parse_diskstats(text);
        let _ = parse_mountinfo(text);
        let _ = parse_pressure(text);
        let _ = parse_process_stat(text);
        let _ = parse_process_io(text);
        let _ = parse_switches(text);
        let _ = kib_field(text, "VmRSS");
        let _ = text_field(text, "VmRSS");
    }
}
