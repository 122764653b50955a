use std::collections::VecDeque;
use std::fs;

use proptest::prelude::*;

use super::*;
use crate::events::event::{StepStart, TrialDone};
use crate::events::log::read_events;
use crate::events::samples::one_of_each;

/// What the next call meets.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// The call takes this many bytes and says so.
    Short(usize),
    /// This many bytes fit, and the next call finds the disk full.
    Full(usize),
    Interrupted,
    /// Cutting fails, writing works.
    NoCut,
}

/// A file in memory, on a disk that has its days.
#[derive(Default)]
struct Disk {
    content: Vec<u8>,
    writes: u32,
    faults: VecDeque<Fault>,
    is_full: bool,
    fails_sync: bool,
}

impl Disk {
    fn take(&mut self, bytes: &[u8]) -> usize {
        self.content.extend_from_slice(bytes);
        bytes.len()
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        if std::mem::take(&mut self.is_full) {
            return Err(ErrorKind::StorageFull.into());
        }
        match self.faults.pop_front().unwrap_or(Fault::None) {
            Fault::Short(most) => Ok(self.take(&bytes[..most.clamp(1, bytes.len())])),
            Fault::Full(most) if most < bytes.len() => {
                self.is_full = most > 0;
                if most == 0 {
                    Err(ErrorKind::StorageFull.into())
                } else {
                    Ok(self.take(&bytes[..most]))
                }
            }
            Fault::Interrupted => Err(ErrorKind::Interrupted.into()),
            Fault::None | Fault::Full(_) | Fault::NoCut => Ok(self.take(bytes)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for Disk {
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        if matches!(self.faults.front(), Some(Fault::NoCut)) {
            self.faults.pop_front();
            return Err(io::Error::other("no cut"));
        }
        self.content.truncate(bytes as usize);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.fails_sync) {
            Err(io::Error::other("no sync"))
        } else {
            Ok(())
        }
    }
}

fn faults() -> impl Strategy<Value = Vec<Fault>> {
    let fault = prop_oneof![
        2 => Just(Fault::None),
        1 => (0usize..80).prop_map(Fault::Short),
        2 => (0usize..80).prop_map(Fault::Full),
        1 => Just(Fault::Interrupted),
        1 => Just(Fault::NoCut),
    ];
    proptest::collection::vec(fault, 0..40)
}

proptest! {
    #[test]
    fn no_fault_buries_half_a_line_or_loses_a_whole_one(faults in faults()) {
        let mut log = LineLog::new(Disk { faults: faults.into(), ..Disk::default() }, 0, 1);
        let mut accepted = Vec::new();
        for step in 0..30 {
            if step == 29 {
                log.medium.faults.clear();
            }
            let event = Event::StepStart(StepStart { step: format!("l.i{step}") });
            let stamped = Stamped { seq: log.next_seq, t_ns: step, event };
            if log.append(encode(&stamped).unwrap().as_bytes()).is_ok() {
                accepted.push(stamped);
            }
            let read = parse(Path::new("x"), &log.medium.content).unwrap();
            prop_assert_eq!(&read.events, &accepted);
            prop_assert_eq!(read.is_torn, log.medium.content.len() as u64 > log.good_bytes);
        }
        prop_assert!(accepted.last().is_some_and(|last| last.t_ns == 29) && !log.is_dirty);
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_next_event_follows_the_last_whole_one() {
    let mut log = LineLog::new(
        Disk {
            faults: [Fault::None, Fault::Full(10)].into(),
            ..Disk::default()
        },
        0,
        1,
    );
    // A seed that writes the first line in parts would fill the disk under it.
    buggify::never(|| log.append(b"first\n")).unwrap();
    assert!(
        matches!(buggify::never(|| log.append(b"second, long\n")), Err(Failure::Io(error)) if error.kind() == ErrorKind::StorageFull)
    );
    assert_eq!(
        (log.medium.content.as_slice(), log.next_seq),
        (b"first\nsecond, lo".as_slice(), 2)
    );
    log.append(b"third\n").unwrap();
    assert_eq!(
        (log.medium.content.as_slice(), log.next_seq),
        (b"first\nthird\n".as_slice(), 3)
    );
}

#[test]
fn after_a_failed_sync_nothing_is_promised_any_more() {
    let mut log = LineLog::new(
        Disk {
            fails_sync: true,
            ..Disk::default()
        },
        0,
        1,
    );
    log.append(b"first\n").unwrap();
    assert!(matches!(log.sync(), Err(Failure::Io(_))));
    assert!(matches!(log.sync(), Err(Failure::Unsynced)));
    assert!(matches!(log.append(b"second\n"), Err(Failure::Unsynced)));
    assert_eq!(log.medium.content, b"first\n");
}

#[test]
fn a_reopened_file_goes_on_after_its_last_whole_event() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trials/1/events.jsonl");
    let mut writer = EventWriter::create(&path).unwrap();
    let events = one_of_each();
    events
        .iter()
        .for_each(|event| writer.append(event).unwrap());
    writer.sync().unwrap();
    drop(writer);
    let whole = fs::read(&path).unwrap();
    let last_line = whole[..whole.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .unwrap()
        + 1;
    for cut in last_line..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut writer = EventWriter::reopen(&path).unwrap();
        let is_whole = cut == whole.len();
        assert_eq!(
            fs::read(&path).unwrap(),
            if is_whole {
                &whole
            } else {
                &whole[..last_line]
            }
        );
        writer.append(&events[0]).unwrap();
        let log = read_events(&path).unwrap();
        let kept = events.len() - usize::from(!is_whole);
        assert_eq!((log.events.len(), log.is_torn), (kept + 1, false));
        assert!(
            log.events
                .iter()
                .map(|stamped| &stamped.event)
                .eq(events[..kept].iter().chain([&events[0]]))
        );
    }
}

#[test]
fn a_file_that_is_there_missing_or_damaged_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    assert!(matches!(
        EventWriter::reopen(&path),
        Err(StoreError::Io { .. })
    ));
    let mut writer = EventWriter::create(&path).unwrap();
    writer.append(&one_of_each()[0]).unwrap();
    drop(writer);
    assert!(matches!(
        EventWriter::create(&path),
        Err(StoreError::Exists { .. })
    ));
    let damaged = fs::read_to_string(&path)
        .unwrap()
        .replace("sqlite", "mysql!")
        + "half a line";
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(
        EventWriter::reopen(&path),
        Err(StoreError::Corrupt { line: 1, .. })
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
}

#[test]
fn a_number_that_json_cannot_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    let mut writer = EventWriter::create(&path).unwrap();
    for seconds in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = writer
            .append(&Event::TrialDone(TrialDone {
                seconds,
                stop_problem: None,
            }))
            .unwrap_err();
        assert!(matches!(error, StoreError::Unwritable { .. }), "{error}");
    }
    writer
        .append(&Event::TrialDone(TrialDone {
            seconds: 1.0,
            stop_problem: None,
        }))
        .unwrap();
    assert_eq!(read_events(&path).unwrap().events.len(), 1);
}

#[test]
fn stamps_are_the_time_of_day() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    EventWriter::create(&path)
        .unwrap()
        .append(&one_of_each()[0])
        .unwrap();
    let t_ns = read_events(&path).unwrap().events[0].t_ns;
    let year_ns = 31_556_952 * 1_000_000_000;
    assert!(
        (2024 - 1970..2200 - 1970).contains(&(t_ns / year_ns)),
        "{t_ns}"
    );
}

/// What may happen to a write in tests is what happens to it on a disk that has its days.
#[test]
fn a_line_that_is_written_in_parts_is_whole_in_the_end_or_cut_off() {
    let mut log = LineLog::new(Disk::default(), 0, 1);
    buggify::always(|| log.append(b"first\n")).unwrap();
    assert_eq!(
        (log.medium.writes, log.medium.content.as_slice()),
        (2, &b"first\n"[..])
    );
    log.medium.faults = [Fault::None, Fault::Full(0)].into();
    assert!(buggify::always(|| log.append(b"second\n")).is_err());
    assert_eq!(log.medium.content, b"first\nsec");
    log.append(b"third\n").unwrap();
    assert_eq!(log.medium.content, b"first\nthird\n");
}

/// A pipe cannot be synced. That the kernel says so shows that it was asked.
#[test]
fn a_sync_that_the_kernel_refuses_is_an_error() {
    let (_reader, end) = rustix::pipe::pipe().unwrap();
    let mut writer = EventWriter {
        path: "events.jsonl".into(),
        log: LineLog::new(File::from(end), 0, 1),
    };
    assert!(matches!(
        writer.sync(),
        Err(StoreError::Io { action: "sync", .. })
    ));
    assert!(matches!(writer.sync(), Err(StoreError::Unsynced { .. })));
}
