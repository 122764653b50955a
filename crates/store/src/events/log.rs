//! Reading `events.jsonl`.

use std::path::Path;

use crate::StoreError;
use crate::events::event::Event;
use crate::events::line::{LINE_FORMAT, LineError, decode};
use crate::files::durable::read_file;

/// An event with its place and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Stamped {
    /// Its place in the file, from 1.
    pub seq: u64,
    /// When it was appended, in nanoseconds since 1970-01-01 UTC, by the machine's clock.
    pub t_ns: u64,
    /// What happened.
    pub event: Event,
}

/// All events of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventLog {
    /// In the order of the file.
    pub events: Vec<Stamped>,
    /// True when the file ends inside a line: its writer was killed, or is writing right now. That
    /// line is not among the events.
    pub is_torn: bool,
}

/// Reads an events file and believes nothing it does not have to: every line must carry its
/// checksum and follow the one before it.
pub fn read_events(path: impl AsRef<Path>) -> Result<EventLog, StoreError> {
    let path = path.as_ref();
    parse(
        path,
        &read_file(path).map_err(StoreError::io("read", path))?,
    )
}

/// Reads the events in `bytes`; `path` stands for the file in errors.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<EventLog, StoreError> {
    let mut log = EventLog::default();
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = index + 1;
        let Some(line) = line.strip_suffix(b"\n") else {
            log.is_torn = true;
            break;
        };
        let stamped = decode(line).map_err(|error| match error {
            LineError::Damaged(reason) => StoreError::corrupt(path, number, reason),
            LineError::Newer(found) => StoreError::Newer {
                path: path.to_owned(),
                found,
                known: LINE_FORMAT,
            },
            LineError::Unknown(reason) => StoreError::UnknownEvent {
                path: path.to_owned(),
                line: number,
                reason,
            },
        })?;
        if stamped.seq != number as u64 {
            let reason = format!(
                "it is event {}, but event {number} belongs here: lines were removed, added or \
                moved",
                stamped.seq
            );
            return Err(StoreError::corrupt(path, number, reason));
        }
        log.events.push(stamped);
    }
    Ok(log)
}

/// Bytes up to the end of the last whole line.
pub(crate) fn whole_lines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
