//! `/proc/PID/stat`: parent, start time and CPU of one process.

use crate::Answer;

/// One process. Times in clock ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// The command's name, up to 15 bytes.
    pub command: String,
    pub parent: u32,
    /// False for a zombie: all its threads have ended, and its parent has not waited for it.
    pub is_running: bool,
    /// User and system time of all its threads.
    pub own_ticks: u64,
    /// The same of its ended children and their ended children, as far as their parents waited for
    /// them.
    pub reaped_ticks: u64,
    /// Since boot.
    pub start_ticks: u64,
}

/// Reads the line. The command may hold blanks and parentheses: its end is the last one.
pub fn parse_process_stat(text: &str) -> Answer<ProcessStat> {
    parse(text).ok_or_else(|| String::from("/proc/PID/stat is not as the kernel writes it"))
}

fn parse(text: &str) -> Option<ProcessStat> {
    let (before, after) = text.rsplit_once(')')?;
    let (_, command) = before.split_once('(')?;
    // proc(5) numbers the fields from 1: the state, first after the command, is field 3.
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    // Times of reaped children are signed in the kernel's format and never negative in fact.
    Some(ProcessStat {
        command: command.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        // The state is that of the first thread, which may end before the others: those are counted
        // in field 20.
        is_running: !matches!(*fields.first()?, "Z" | "X") || number(20)? > 1,
        own_ticks: number(14)?.checked_add(number(15)?)?,
        reaped_ticks: number(16)?.checked_add(number(17)?)?,
        start_ticks: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_may_hold_anything() {
        let rest =
            "S 7 1 1 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 987654 1000 10 18446744073709551615";
        for command in ["sh", "a) b (c", "", "((", "tmux: server"] {
            let stat = parse_process_stat(&format!("12 ({command}) {rest}\n")).unwrap();
            let expected = ProcessStat {
                command: command.into(),
                parent: 7,
                is_running: true,
                own_ticks: 120,
                reaped_ticks: 7,
                start_ticks: 987_654,
            };
            assert_eq!(stat, expected);
        }
    }

    #[test]
    fn a_zombie_has_no_thread_left() {
        for (state, threads, is_running) in [
            ("S", 1, true),
            ("R", 8, true),
            ("Z", 1, false),
            ("Z", 3, true),
            ("X", 1, false),
        ] {
            let stat = parse_process_stat(&format!(
                "12 (db) {state} 7 1 1 0 -1 0 1 2 3 4 5 6 7 8 20 0 {threads} 0 9 0 0\n"
            ))
            .unwrap();
            assert_eq!(stat.is_running, is_running, "{state} {threads}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for text in [
            "",
            "12 sh S 1",
            "12 (sh) S 1 2",
            "12 (sh) S x 1 1 0 -1 4194304 1 2 3 4 100 20 3 4 20 0 1 0 9",
        ] {
            assert!(parse_process_stat(text).is_err(), "{text:?}");
        }
    }
}
