//! Lines of `events.jsonl`: their checksums and numbers.

use std::path::Path;

use serde_json::Value;

use crate::Audit;

const CRC_START: &str = ",\"crc\":\"";

/// The events that are whole. A line without its end is one that a killed writer left, and may only
/// be the last.
pub(crate) fn events(audit: &mut Audit, file: &Path, bytes: &[u8]) -> Vec<Value> {
    let text = String::from_utf8_lossy(bytes);
    let mut events = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let Some(line) = line.strip_suffix('\n') else {
            break;
        };
        let number = index + 1;
        let event: Value = serde_json::from_str(line).unwrap_or_default();
        let is_whole = event["seq"] == number && stated_sum(line) == Some(sum(line));
        audit.check(2, file, is_whole, || {
            format!("line {number} is not what was written")
        });
        if is_whole {
            events.push(event);
        }
    }
    events
}

/// The checksum that a line states.
fn stated_sum(line: &str) -> Option<u32> {
    let (_, rest) = line.rsplit_once(CRC_START)?;
    u32::from_str_radix(rest.strip_suffix("\"}")?, 16).ok()
}

/// The checksum of a line as it would be without one.
fn sum(line: &str) -> u32 {
    let before = line
        .rsplit_once(CRC_START)
        .map_or(line, |(before, _)| before);
    crc32fast::hash(format!("{before}}}").as_bytes())
}
