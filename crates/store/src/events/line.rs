//! One line of `events.jsonl`: an object that starts with `v`, `seq` and `t_ns` and ends with the
//! checksum of everything before it.
//!
//! Later formats keep the frame (`{"v":N,` ... `,"crc":"xxxxxxxx"}`), so that damage is told from
//! novelty.

use plimsoll_core::planted::{self, Bug};
use serde::Deserialize;

use crate::events::event::Event;
use crate::events::log::Stamped;

/// The version of the line format. A reader refuses a newer one.
pub(crate) const LINE_FORMAT: u32 = 1;

const CRC_START: &str = ",\"crc\":\"";
const CRC_END: &str = "\"}";
const CRC_DIGITS: usize = 8;
const TAIL_BYTES: usize = CRC_START.len() + CRC_DIGITS + CRC_END.len();

/// Why a line is not an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    /// It is not what was written.
    Damaged(String),
    /// It is intact and of a later format.
    Newer(u32),
    /// It is intact and means nothing to this version.
    Unknown(String),
}

#[derive(Deserialize)]
struct Frame {
    v: u32,
    seq: u64,
    t_ns: u64,
}

/// The line, with its newline.
pub(crate) fn encode(stamped: &Stamped) -> Result<String, serde_json::Error> {
    let Stamped { seq, t_ns, event } = stamped;
    let event = serde_json::to_string(event)?;
    // The event is an object whose first member is its tag; the frame's members go before it.
    let mut line = format!(
        "{{\"v\":{LINE_FORMAT},\"seq\":{seq},\"t_ns\":{t_ns},{}",
        &event[1..]
    );
    let crc = crc32fast::hash(line.as_bytes());
    line.pop();
    line.push_str(&format!("{CRC_START}{crc:08x}{CRC_END}\n"));
    Ok(line)
}

/// The event of a line without its newline.
pub(crate) fn decode(line: &[u8]) -> Result<Stamped, LineError> {
    let damaged = |reason: &str| LineError::Damaged(reason.to_owned());
    let (content, tail) = line
        .len()
        .checked_sub(TAIL_BYTES)
        .map(|at| line.split_at(at))
        .ok_or_else(|| damaged("the line is cut short"))?;
    let stated = tail
        .strip_prefix(CRC_START.as_bytes())
        .and_then(|rest| rest.strip_suffix(CRC_END.as_bytes()))
        .ok_or_else(|| damaged("the line does not end with its checksum"))?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(content);
    hasher.update(b"}");
    let found = format!("{:08x}", hasher.finalize());
    if found.as_bytes() != stated && !planted::is(Bug::ChecksumIgnored) {
        return Err(LineError::Damaged(format!(
            "its checksum is {found}, the line states {}",
            String::from_utf8_lossy(stated)
        )));
    }
    let frame: Frame =
        serde_json::from_slice(line).map_err(|error| LineError::Unknown(explain(&error)))?;
    if frame.v > LINE_FORMAT {
        return Err(LineError::Newer(frame.v));
    }
    let event: Event =
        serde_json::from_slice(line).map_err(|error| LineError::Unknown(explain(&error)))?;
    Ok(Stamped {
        seq: frame.seq,
        t_ns: frame.t_ns,
        event,
    })
}

/// The library's reason without its place, which counts lines inside this one line.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ")
        .map_or(text.clone(), |at| text[..at].to_owned())
}
