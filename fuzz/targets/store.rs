//! A trial's folder in the hands of writers that are killed, power cuts and damage, beside a model
//! of what must be in it: two bytes a step, one for what happens and one for how much of it.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use plimsoll_store::event::{Event, StepStart, TrialFailed};
use plimsoll_store::{Change, EventWriter, check_seal, read_events, seal};

/// What is known of the folder.
struct Model {
    file: PathBuf,
    writer: Option<EventWriter>,
    /// What was appended, each with the length of the file behind it.
    events: Vec<(Event, u64)>,
    /// So many of them were synced.
    synced: usize,
    is_sealed: bool,
}

impl Model {
    fn dir(&self) -> &Path {
        self.file.parent().expect("it is in a folder")
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.file).expect("it is there").len()
    }

    fn append(&mut self, kind: u8, amount: u8) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let words = "\u{0}\"\\\n\u{1F6A2}".repeat(usize::from(amount % 7));
        let event = match kind % 2 {
            0 => Event::StepStart(StepStart { step: words }),
            _ => Event::TrialFailed(TrialFailed {
                reason: words,
                interrupted: amount % 2 == 0,
            }),
        };
        writer.append(&event).expect("there is room");
        let length = self.length();
        self.events.push((event, length));
    }

    fn sync(&mut self) {
        if let Some(writer) = &mut self.writer {
            writer.sync().expect("it can be synced");
            self.synced = self.events.len();
        }
    }

    /// The writer is killed, and so much of what was not synced is lost.
    fn cut(&mut self, amount: u8) {
        self.writer = None;
        let safe = self.synced.checked_sub(1).map_or(0, |at| self.events[at].1);
        let length = self.length();
        let kept = length - (length - safe) * u64::from(amount) / 255;
        let file = fs::File::options().write(true).open(&self.file);
        let cut = file.and_then(|file| file.set_len(kept));
        cut.expect("it can be cut");
        self.events.retain(|(_, end)| *end <= kept);
        let whole = self.events.last().map_or(0, |(_, end)| *end);
        let log = read_events(&self.file).expect("a cut is forgiven");
        assert_eq!(log.is_torn, kept > whole);
        self.check();
    }

    fn reopen(&mut self) {
        self.writer = None;
        self.writer = Some(EventWriter::reopen(&self.file).expect("it is whole but for its end"));
        let whole = self.events.last().map_or(0, |(_, end)| *end);
        assert_eq!(self.length(), whole, "the torn line is gone");
    }

    fn check(&self) {
        let log = read_events(&self.file).expect("it is whole");
        let read = log.events.iter().map(|stamped| &stamped.event);
        assert!(read.eq(self.events.iter().map(|(event, _)| event)));
    }

    /// A byte of the whole lines becomes another: no reader and no writer takes that.
    fn damage(&mut self, amount: u8) {
        let whole = self.events.last().map_or(0, |(_, end)| *end);
        if whole == 0 {
            return;
        }
        let mut bytes = fs::read(&self.file).expect("it is there");
        let at = (whole - 1) as usize * usize::from(amount) / 255;
        bytes[at] ^= 1;
        self.writer = None;
        fs::write(&self.file, &bytes).expect("there is room");
        // What is behind a newline that is gone may be the torn end.
        let read = read_events(&self.file).is_ok_and(|log| log.events.len() == self.events.len());
        assert!(!read, "byte {at} is another");
        if self.is_sealed {
            let found = check_seal(self.dir()).expect("it can be read").expect("it is there");
            assert!(found.iter().any(|file| file.change == Change::Changed));
        }
        bytes[at] ^= 1;
        fs::write(&self.file, &bytes).expect("there is room");
        self.check();
    }

    fn seal(&mut self) {
        seal(self.dir()).expect("there is room");
        self.is_sealed = true;
        assert_eq!(check_seal(self.dir()).expect("it was written by us"), Some(Vec::new()));
    }
}

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let file = dir.path().join("events.jsonl");
    let writer = EventWriter::create(&file).expect("there is room");
    let mut model = Model {
        file,
        writer: Some(writer),
        events: Vec::new(),
        synced: 0,
        is_sealed: false,
    };
    for step in bytes.chunks_exact(2).take(40) {
        let (what, amount) = (step[0] % 16, step[1]);
        match what {
            0..=5 => model.append(what, amount),
            6 | 7 => model.sync(),
            8 | 9 => model.cut(amount),
            10..=12 => model.reopen(),
            13 => model.damage(amount),
            14 => model.check(),
            _ => model.seal(),
        }
        if what < 13 && what != 6 && what != 7 {
            model.is_sealed = false;
        }
    }
    model.cut(0);
    model.reopen();
    model.check();
});
