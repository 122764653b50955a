//! Appending to `events.jsonl`.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_core::buggify::{self, Point};
use plimsoll_core::planted::{self, Bug};

use crate::StoreError;
use crate::events::event::Event;
use crate::events::line::{decode, encode};
use crate::events::log::{Stamped, parse, whole_lines};
use crate::files::durable::{create_folders, folder_of, read_file, sync_folder};
use crate::files::lock::{kernel_holder, try_lock};

/// The only writer of an events file, until it is dropped.
///
/// An event is one line in one write. When a write fails, what it left of the line is cut off
/// before the next one, so that half a line can only be the last.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    log: LineLog<File>,
}

impl EventWriter {
    /// Starts a new file, and its folder where that is missing. Refuses a file that is there:
    /// [`EventWriter::reopen`] continues one.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        create_folders(folder_of(path))?;
        let file = match OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
        {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                own(&open(path)?, path)?;
                return Err(StoreError::Exists {
                    path: path.to_owned(),
                });
            }
            opened => opened.map_err(StoreError::io("create", path))?,
        };
        own(&file, path)?;
        sync_folder(folder_of(path))?;
        Ok(Self {
            path: path.to_owned(),
            log: LineLog::new(file, 0, 1),
        })
    }

    /// Continues a file after its last whole event and cuts off a torn line. Refuses a file that
    /// [`crate::read_events`] refuses, and one that another process writes.
    pub fn reopen(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref();
        let file = open(path)?;
        own(&file, path)?;
        let bytes = read_file(path).map_err(StoreError::io("read", path))?;
        let events = parse(path, &bytes)?.events;
        let good_bytes = whole_lines(&bytes) as u64;
        if good_bytes < bytes.len() as u64 && !planted::is(Bug::TornLineKept) {
            file.set_len(good_bytes)
                .and_then(|()| file.sync_all())
                .map_err(StoreError::io("cut the torn line of", path))?;
        }
        Ok(Self {
            path: path.to_owned(),
            log: LineLog::new(file, good_bytes, events.len() as u64 + 1),
        })
    }

    /// Appends one event, stamped with the machine's clock. It survives the end of this process;
    /// [`EventWriter::sync`] makes it survive a power cut. After an error the event is not in the
    /// file.
    pub fn append(&mut self, event: &Event) -> Result<(), StoreError> {
        let t_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let stamped = Stamped {
            seq: self.log.next_seq,
            t_ns,
            event: event.clone(),
        };
        let unwritable = |reason: String| StoreError::Unwritable {
            path: self.path.clone(),
            reason,
        };
        let line = encode(&stamped).map_err(|error| unwritable(error.to_string()))?;
        // JSON has no NaN and no infinity, and would hold null instead: what cannot be read back
        // equal is not written.
        if decode(line.trim_end().as_bytes()).as_ref() != Ok(&stamped) {
            return Err(unwritable(format!(
                "the event would not be read back as it is, a number in it may not be finite: \
                {event:?}"
            )));
        }
        self.log
            .append(line.as_bytes())
            .map_err(|failure| self.explain("write", failure))
    }

    /// Waits until everything appended is on the disk. After an error nothing more can be written:
    /// the kernel may have dropped what it could not write, and would not say so twice.
    pub fn sync(&mut self) -> Result<(), StoreError> {
        self.log
            .sync()
            .map_err(|failure| self.explain("sync", failure))
    }

    fn explain(&self, action: &'static str, failure: Failure) -> StoreError {
        match failure {
            Failure::Io(error) => StoreError::io(action, &self.path)(error),
            Failure::Unsynced => StoreError::Unsynced {
                path: self.path.clone(),
            },
        }
    }
}

fn open(path: &Path) -> Result<File, StoreError> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .open(path)
        .map_err(StoreError::io("open", path))
}

fn own(file: &File, path: &Path) -> Result<(), StoreError> {
    if try_lock(file, path)? {
        Ok(())
    } else {
        Err(StoreError::Writing {
            path: path.to_owned(),
            pid: kernel_holder(file),
        })
    }
}

/// What a log needs of its file; a test has one that fails.
trait LogFile: Write {
    /// Cuts the file to this length.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;
    /// Waits until the content is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl LogFile for File {
    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        if planted::is(Bug::EventsNotSynced) {
            return Ok(());
        }
        self.sync_data()
    }
}

#[derive(Debug)]
enum Failure {
    Io(io::Error),
    Unsynced,
}

/// Whole lines at the end of a medium that appends.
#[derive(Debug)]
struct LineLog<M> {
    medium: M,
    /// Up to here every line is whole.
    good_bytes: u64,
    next_seq: u64,
    /// A write failed: something may be behind `good_bytes`.
    is_dirty: bool,
    has_failed_sync: bool,
}

impl<M: LogFile> LineLog<M> {
    fn new(medium: M, good_bytes: u64, next_seq: u64) -> Self {
        Self {
            medium,
            good_bytes,
            next_seq,
            is_dirty: false,
            has_failed_sync: false,
        }
    }

    fn append(&mut self, line: &[u8]) -> Result<(), Failure> {
        self.refuse_after_failed_sync()?;
        self.cut_half_line()?;
        self.is_dirty = true;
        let rest = self.write_first_part(line).map_err(Failure::Io)?;
        self.medium.write_all(rest).map_err(Failure::Io)?;
        self.is_dirty = false;
        self.good_bytes += line.len() as u64;
        self.next_seq += 1;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Failure> {
        self.refuse_after_failed_sync()?;
        buggify::pause(Point::LateSync, Duration::from_millis(2));
        self.medium.sync().map_err(|error| {
            self.has_failed_sync = true;
            Failure::Io(error)
        })
    }

    /// A kernel may take a part of a write, and a reader may come then. Returns what is left.
    fn write_first_part<'a>(&mut self, line: &'a [u8]) -> io::Result<&'a [u8]> {
        if !buggify::happens(Point::WriteInParts) {
            return Ok(line);
        }
        let (first, rest) = line.split_at(line.len() / 2);
        self.medium.write_all(first)?;
        std::thread::sleep(Duration::from_millis(1));
        Ok(rest)
    }

    fn cut_half_line(&mut self) -> Result<(), Failure> {
        if self.is_dirty {
            self.medium.truncate(self.good_bytes).map_err(Failure::Io)?;
            self.is_dirty = false;
        }
        Ok(())
    }

    fn refuse_after_failed_sync(&self) -> Result<(), Failure> {
        if self.has_failed_sync {
            Err(Failure::Unsynced)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests;
