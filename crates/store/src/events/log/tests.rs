use proptest::prelude::*;

use super::*;
use crate::events::line::encode;
use crate::events::samples::{any_event, one_of_each};

const PLACE: &str = "runs/x/events.jsonl";

fn stamp(events: Vec<Event>) -> Vec<Stamped> {
    events
        .into_iter()
        .zip(1..)
        .map(|(event, seq)| Stamped {
            seq,
            t_ns: 1_800_000_000_000_000_000 + seq,
            event,
        })
        .collect()
}

fn lines(events: &[Stamped]) -> Vec<String> {
    events
        .iter()
        .map(|stamped| encode(stamped).unwrap())
        .collect()
}

fn read(bytes: impl AsRef<[u8]>) -> Result<EventLog, StoreError> {
    parse(Path::new(PLACE), bytes.as_ref())
}

/// A line with a right checksum around any members.
fn framed(members: &str) -> String {
    let content = format!("{{{members}");
    format!(
        "{content},\"crc\":\"{:08x}\"}}\n",
        crc32fast::hash(format!("{content}}}").as_bytes())
    )
}

proptest! {
    #[test]
    fn every_event_is_read_back_as_it_was_written(events in proptest::collection::vec(any_event(), 0..4)) {
        let events = stamp(events);
        prop_assert_eq!(read(lines(&events).concat()).unwrap(), EventLog { events, is_torn: false });
    }
}

#[test]
fn a_line_is_as_documented() {
    let event = stamp(one_of_each()).swap_remove(2);
    let content = r#"{"v":1,"seq":3,"t_ns":1800000000000000003,"event":"step_start","step":"l.i0""#;
    let crc = crc32fast::hash(format!("{content}}}").as_bytes());
    assert_eq!(
        encode(&event).unwrap(),
        format!("{content},\"crc\":\"{crc:08x}\"}}\n")
    );
}

#[test]
fn every_kind_of_event_is_in_the_samples() {
    let names: Vec<String> = one_of_each()
        .iter()
        .map(|event| {
            serde_json::to_value(event).unwrap()["event"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let error = serde_json::from_str::<Event>(r#"{"event":"?"}"#)
        .unwrap_err()
        .to_string();
    let known: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert_eq!(known.len(), names.len(), "{error}");
    assert!(
        known
            .iter()
            .all(|name| names.iter().any(|sample| sample == name)),
        "{known:?} {names:?}"
    );
}

/// Whatever one byte becomes: an error that names the place, or, where the last newline is lost, a
/// torn line and everything before it.
fn assert_change_is_noticed(events: &[Stamped], text: &[u8], at: usize, to: u8) {
    let mut changed = text.to_vec();
    changed[at] = to;
    match read(&changed) {
        Ok(log) => {
            assert_eq!(at, text.len() - 1, "byte {at} as {to:#04x} was not noticed");
            assert_eq!(
                log,
                EventLog {
                    events: events[..events.len() - 1].to_vec(),
                    is_torn: true
                }
            );
        }
        Err(error @ StoreError::Corrupt { line, .. }) => {
            let expected = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            assert_eq!(line, expected, "byte {at} as {to:#04x}: {error}");
        }
        Err(error) => panic!("byte {at} as {to:#04x}: {error}"),
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let events = stamp(one_of_each());
    let text = lines(&events).concat().into_bytes();
    for at in 0..text.len() {
        for bit in 0..8 {
            assert_change_is_noticed(&events, &text, at, text[at] ^ (1 << bit));
        }
        if text[at] != b'\n' {
            assert_change_is_noticed(&events, &text, at, b'\n');
        }
    }
}

#[test]
fn every_other_byte_is_noticed() {
    let events = stamp(one_of_each().split_off(7));
    let text = lines(&events).concat().into_bytes();
    for at in 0..text.len() {
        for to in (0..=u8::MAX).filter(|to| *to != text[at]) {
            assert_change_is_noticed(&events, &text, at, to);
        }
    }
}

#[test]
fn a_cut_anywhere_leaves_the_whole_lines_before_it() {
    let events = stamp(one_of_each());
    let text = lines(&events).concat().into_bytes();
    for cut in 0..=text.len() {
        let rest = &text[..cut];
        let whole = rest.iter().filter(|byte| **byte == b'\n').count();
        let is_torn = !matches!(rest.last(), None | Some(b'\n'));
        assert_eq!(
            read(rest).unwrap(),
            EventLog {
                events: events[..whole].to_vec(),
                is_torn
            },
            "{cut}"
        );
        assert_eq!(whole_lines(rest), lines(&events[..whole]).concat().len());
    }
}

#[test]
fn removed_doubled_and_swapped_lines_are_noticed() {
    let events = stamp(one_of_each());
    let lines = lines(&events);
    // Without a seal, lines missing at the end cannot be told from events that did not happen.
    for at in 0..lines.len() - 1 {
        let (mut removed, mut doubled, mut swapped, mut blank) =
            (lines.clone(), lines.clone(), lines.clone(), lines.clone());
        removed.remove(at);
        doubled.insert(at, lines[at].clone());
        swapped.swap(at, at + 1);
        blank.insert(at, "\n".to_owned());
        for (what, changed, expected) in [
            ("removed", removed, at + 1),
            ("doubled", doubled, at + 2),
            ("swapped", swapped, at + 1),
            ("blank", blank, at + 1),
        ] {
            match read(changed.concat()) {
                Err(error @ StoreError::Corrupt { line, .. }) => {
                    assert_eq!(line, expected, "{what} {at}: {error}")
                }
                other => panic!("{what} {at}: {other:?}"),
            }
        }
    }
}

#[test]
fn zeros_after_a_power_cut_are_a_torn_line() {
    let events = stamp(one_of_each());
    let text = lines(&events).concat() + &"\0".repeat(4096);
    assert_eq!(
        read(text).unwrap(),
        EventLog {
            events,
            is_torn: true
        }
    );
}

#[test]
fn what_a_newer_version_wrote_is_refused_as_such() {
    let known = framed(r#""v":1,"seq":1,"t_ns":5,"event":"step_start","step":"l.i0""#);
    assert_eq!(read(&known).unwrap().events[0].t_ns, 5);
    for (line, expected) in [
        (
            framed(r#""v":2,"seq":1,"t_ns":5,"event":"step_start","step":"l.i0""#),
            "it is of format 2, and this version knows formats up to 1",
        ),
        (
            framed(r#""v":1,"seq":1,"t_ns":5,"event":"levitated","height":3"#),
            "line 1: unknown variant `levitated`",
        ),
        (
            framed(r#""v":1,"seq":1,"t_ns":5,"event":"step_start""#),
            "line 1: missing field `step`",
        ),
        (framed(r#""seq":1"#), "line 1: missing field `v`"),
    ] {
        let error = read(&line).unwrap_err().to_string();
        assert!(
            error.contains(PLACE)
                && error.contains(expected)
                && error.ends_with("use the plimsoll that wrote it, or a newer one"),
            "{error}"
        );
    }
}

#[test]
fn damage_names_the_place_and_the_way_out() {
    let text = lines(&stamp(one_of_each()))
        .concat()
        .replace("\"l.i0\"", "\"l.i1\"");
    let error = read(text).unwrap_err().to_string();
    assert!(
        error.starts_with("read runs/x/events.jsonl, line 3: its checksum is "),
        "{error}"
    );
    assert!(
        error.ends_with("remove that trial's folder, and `plimsoll resume` runs the trial again"),
        "{error}"
    );
}
