//! What processes did besides using the CPU: context switches and I/O, from the kernel's own
//! counters of each.
//!
//! The I/O of a process has all its threads, ended ones too, and the children that it waited for.
//! So the sum over a tree stays whole while its members come and go; what is missing is what a
//! child did that nobody in the tree waited for.
//!
//! Switches are shown of living threads alone. A thread that was born between two looks counts
//! whole. One that ended between them counts with nothing: what it did since the first look is
//! missing, and what it did before is in neither.

use std::collections::BTreeMap;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use plimsoll_core::readings::{HostReading, Readings};

use crate::parse::{ProcessIo, Switches, parse_process_io, parse_switches};
use crate::{Answer, Proc};

/// One look at the counters of some processes.
#[derive(Clone, Debug)]
pub struct Activity {
    at: Instant,
    /// By process and thread.
    switches: Answer<BTreeMap<(u32, u32), Switches>>,
    io: Answer<ProcessIo>,
}

impl Activity {
    /// Of these processes: a file for each, and one for each of their threads. What has ended is
    /// left out.
    pub fn of_processes(proc_: &Proc, pids: &[u32]) -> Self {
        let begin = Instant::now();
        let (io, switches) = if pids.is_empty() {
            let reason = || "no server process is known".to_owned();
            (Err(reason()), Err(reason()))
        } else {
            (io_of(proc_, pids), switches_of(proc_, pids))
        };
        Self {
            at: begin + begin.elapsed() / 2,
            switches,
            io,
        }
    }

    /// Of this process, threads that ended included.
    pub fn of_this_process(proc_: &Proc) -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|error| format!("getrusage does not answer: {error}"));
        let count = |number: i64| u64::try_from(number).unwrap_or(0);
        let whole = |switches| BTreeMap::from([((std::process::id(), 0), switches)]);
        Self {
            at: Instant::now(),
            switches: usage.map(|usage| {
                whole(Switches {
                    voluntary: count(usage.voluntary_context_switches()),
                    involuntary: count(usage.involuntary_context_switches()),
                })
            }),
            io: proc_
                .read("self/io")
                .and_then(|text| parse_process_io(&text)),
        }
    }

    /// The middle of the look.
    pub(crate) fn at(&self) -> Instant {
        self.at
    }

    /// Puts what was added since `earlier`, times `share`.
    pub fn put_since(&self, earlier: &Self, share: &Result<f64, String>, readings: &mut Readings) {
        let switches = both(&earlier.switches, &self.switches)
            .map(|(before, after)| switches_since(before, after));
        let io = both(&earlier.io, &self.io).and_then(|(before, after)| io_since(before, after));
        let counts = [
            (
                HostReading::ServerVoluntarySwitches,
                switches.clone().map(|switches| switches.voluntary),
            ),
            (
                HostReading::ServerInvoluntarySwitches,
                switches.map(|switches| switches.involuntary),
            ),
            (
                HostReading::ServerReadCalls,
                io.clone().map(|io| io.read_calls),
            ),
            (
                HostReading::ServerWriteCalls,
                io.clone().map(|io| io.write_calls),
            ),
            (
                HostReading::ServerReadBytes,
                io.clone().map(|io| io.read_bytes),
            ),
            (HostReading::ServerWriteBytes, io.map(|io| io.write_bytes)),
        ];
        for (name, count) in counts {
            let scaled = count.and_then(|count| Ok(count as f64 * share.clone()?));
            readings.put(name, scaled);
        }
    }
}

fn both<'a, T>(before: &'a Answer<T>, after: &'a Answer<T>) -> Answer<(&'a T, &'a T)> {
    match (before, after) {
        (Ok(before), Ok(after)) => Ok((before, after)),
        (_, Err(reason)) | (Err(reason), _) => Err(reason.clone()),
    }
}

fn io_of(proc_: &Proc, pids: &[u32]) -> Answer<ProcessIo> {
    let mut sum: Option<ProcessIo> = None;
    for pid in pids {
        let Some(text) = proc_.read_if_there(&format!("{pid}/io"))? else {
            continue;
        };
        sum = Some(sum.unwrap_or_default().plus(&parse_process_io(&text)?));
    }
    sum.ok_or_else(|| "no server process shows its I/O".to_owned())
}

fn switches_of(proc_: &Proc, pids: &[u32]) -> Answer<BTreeMap<(u32, u32), Switches>> {
    let mut seen = BTreeMap::new();
    for pid in pids {
        for tid in proc_.threads(*pid)? {
            let Some(status) = proc_.read_if_there(&format!("{pid}/task/{tid}/status"))? else {
                continue;
            };
            // One that is just ending may show less.
            if let Ok(switches) = parse_switches(&status) {
                seen.insert((*pid, tid), switches);
            }
        }
    }
    if seen.is_empty() {
        Err("no server process shows its context switches".to_owned())
    } else {
        Ok(seen)
    }
}

/// The sum over the threads of `after`. One whose count fell is another thread that was given the
/// number of one that ended.
fn switches_since(
    before: &BTreeMap<(u32, u32), Switches>,
    after: &BTreeMap<(u32, u32), Switches>,
) -> Switches {
    let mut sum = Switches::default();
    for (thread, now) in after {
        let then = before
            .get(thread)
            .filter(|then| then.voluntary <= now.voluntary && then.involuntary <= now.involuntary)
            .copied()
            .unwrap_or_default();
        sum.voluntary += now.voluntary - then.voluntary;
        sum.involuntary += now.involuntary - then.involuntary;
    }
    sum
}

fn io_since(before: &ProcessIo, after: &ProcessIo) -> Answer<ProcessIo> {
    let added = |count: fn(&ProcessIo) -> u64| {
        count(after).checked_sub(count(before)).ok_or_else(|| {
            "a server process ended for which none of the others waited: what it did is lost"
                .to_owned()
        })
    };
    Ok(ProcessIo {
        read_calls: added(|io| io.read_calls)?,
        write_calls: added(|io| io.write_calls)?,
        read_bytes: added(|io| io.read_bytes)?,
        write_bytes: added(|io| io.write_bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    const NAMES: [HostReading; 6] = HostReading::OF_SERVER_PROCESSES;

    fn write_thread(root: &Path, (pid, tid): (u32, u32), voluntary: u64, involuntary: u64) {
        let dir = root.join(format!("{pid}/task/{tid}"));
        std::fs::create_dir_all(&dir).unwrap();
        let text = format!(
            "Name:\tdb\nvoluntary_ctxt_switches:\t{voluntary}\n\
             nonvoluntary_ctxt_switches:\t{involuntary}\n"
        );
        std::fs::write(dir.join("status"), text).unwrap();
    }

    fn write_io(root: &Path, pid: u32, counts: [u64; 4]) {
        let [read_calls, write_calls, read_bytes, write_bytes] = counts;
        let text = format!(
            "rchar: 1\nwchar: 2\nsyscr: {read_calls}\nsyscw: {write_calls}\n\
             read_bytes: {read_bytes}\nwrite_bytes: {write_bytes}\ncancelled_write_bytes: 0\n"
        );
        std::fs::write(root.join(format!("{pid}/io")), text).unwrap();
    }

    fn since(before: &Activity, after: &Activity) -> Vec<Result<f64, String>> {
        let mut readings = Readings::default();
        after.put_since(before, &Ok(1.0), &mut readings);
        NAMES.map(|name| readings.answer(name)).to_vec()
    }

    #[test]
    fn counts_of_all_threads_and_processes_add_up() {
        let dir = tempfile::tempdir().unwrap();
        let (root, proc) = (dir.path(), Proc::at(dir.path()));
        write_thread(root, (10, 10), 5, 1);
        write_thread(root, (10, 11), 100, 10);
        write_thread(root, (10, 12), 1_000, 900);
        write_thread(root, (20, 20), 7, 7);
        write_io(root, 10, [10, 20, 4096, 8192]);
        write_io(root, 20, [1, 2, 0, 512]);
        let before = Activity::of_processes(&proc, &[10, 20]);
        // One works on, one is born, one ends, one's number is another's by now.
        write_thread(root, (10, 10), 8, 2);
        write_thread(root, (10, 13), 40, 4);
        std::fs::remove_dir_all(root.join("10/task/11")).unwrap();
        write_thread(root, (10, 12), 30, 3);
        write_io(root, 10, [15, 26, 8192, 16_384]);
        write_io(root, 20, [1, 2, 0, 512]);
        let after = Activity::of_processes(&proc, &[10, 20, 30]);
        let expected = [3.0 + 40.0 + 30.0, 1.0 + 4.0 + 3.0, 5.0, 6.0, 4096.0, 8192.0];
        assert_eq!(since(&before, &after), expected.map(Ok));
        // The share of a first look that was late.
        let mut readings = Readings::default();
        after.put_since(&before, &Ok(2.0), &mut readings);
        assert_eq!(readings.value(HostReading::ServerReadCalls), Some(10.0));
        after.put_since(&before, &Err("too late".to_owned()), &mut readings);
        assert_eq!(
            readings.answer(HostReading::ServerReadCalls),
            Err("too late".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_read_has_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let proc = Proc::at(dir.path());
        let none = Activity::of_processes(&proc, &[]);
        assert_eq!(
            since(&none, &none),
            vec![Err("no server process is known".to_owned()); 6]
        );
        // A kernel without counters of I/O.
        write_thread(dir.path(), (10, 10), 5, 1);
        let without = Activity::of_processes(&proc, &[10]);
        let answers = since(&without, &without);
        assert_eq!(answers[..2], [Ok(0.0), Ok(0.0)]);
        assert_eq!(
            answers[2..],
            vec![Err("no server process shows its I/O".to_owned()); 4]
        );
        write_io(dir.path(), 10, [9, 9, 9, 9]);
        let before = Activity::of_processes(&proc, &[10]);
        write_io(dir.path(), 10, [9, 8, 9, 9]);
        let lost = since(&before, &Activity::of_processes(&proc, &[10]));
        assert!(
            lost[3].as_ref().unwrap_err().contains("is lost"),
            "{lost:?}"
        );
        let ended = Activity::of_processes(&proc, &[77]);
        assert!(since(&before, &ended).iter().all(Result::is_err));
    }

    /// A parallel worker is born and ends between two looks.
    #[test]
    fn what_a_child_wrote_that_nobody_saw_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh")
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let before = Activity::of_processes(&Proc::new(), &[shell.id()]);
        let mut orders = shell.stdin.take().unwrap();
        let mut answers = BufReader::new(shell.stdout.take().unwrap());
        writeln!(
            orders,
            "dd if=/dev/zero of=file bs=4096 count=100 2> /dev/null; echo done"
        )
        .unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
        let after = Activity::of_processes(&Proc::new(), &[shell.id()]);
        let counts = since(&before, &after);
        drop(orders);
        shell.wait().unwrap();
        let [voluntary, _, read_calls, write_calls, ..] = &counts[..] else {
            panic!("{counts:?}")
        };
        assert!(*voluntary.as_ref().unwrap() >= 1.0, "it waited: {counts:?}");
        for calls in [read_calls, write_calls] {
            assert!(*calls.as_ref().unwrap() >= 100.0, "{counts:?}");
        }
    }

    #[test]
    fn this_process_counts_threads_that_ended() {
        let proc = Proc::new();
        let before = Activity::of_this_process(&proc);
        let naps = std::thread::spawn(|| {
            for _ in 0..20 {
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            std::fs::read("/proc/self/io").unwrap();
        });
        naps.join().unwrap();
        let counts = since(&before, &Activity::of_this_process(&proc));
        assert!(*counts[0].as_ref().unwrap() >= 20.0, "{counts:?}");
        assert!(*counts[2].as_ref().unwrap() >= 1.0, "{counts:?}");
    }
}
