//! What `perf stat -x,` prints, as events per operation.

use std::collections::BTreeMap;

use plimsoll_core::readings::Reading;

/// What is counted. The first two make instructions per cycle.
pub(super) const EVENTS: [&str; 6] = [
    "instructions",
    "cycles",
    "cache-misses",
    "dTLB-load-misses",
    "iTLB-load-misses",
    "branch-misses",
];

/// Counts by event; of those that were not counted, why.
pub(super) fn read(text: &str) -> BTreeMap<String, Result<f64, String>> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split(',');
        let (Some(count), Some(_unit), Some(event)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // `cycles:u` where only the user's own part may be counted.
        let Some(name) = EVENTS
            .iter()
            .find(|name| event.split(':').next() == Some(**name))
        else {
            continue;
        };
        let value = match count {
            "<not supported>" => Err("this machine does not count it".to_owned()),
            "<not counted>" => {
                Err("it was not counted: the processor had no counter free".to_owned())
            }
            count => count
                .parse::<f64>()
                .map_err(|_| format!("perf printed \"{count}\"")),
        };
        counts.insert((*name).to_owned(), value);
    }
    counts
}

/// Events per operation, and instructions per cycle.
pub(super) fn per_operation(
    counts: &BTreeMap<String, Result<f64, String>>,
    operations: u64,
) -> BTreeMap<String, Reading> {
    let count = |event: &str| {
        counts
            .get(event)
            .cloned()
            .unwrap_or_else(|| Err("perf did not count it".to_owned()))
    };
    let reading = |value: Result<f64, String>| value.map_or_else(Reading::Unavailable, Reading::Ok);
    let per_op = |value: f64| {
        if operations > 0 {
            Ok(value / operations as f64)
        } else {
            Err("the step did nothing".to_owned())
        }
    };
    let ipc =
        count("instructions").and_then(|instructions| Ok(instructions / count("cycles")?.max(1.0)));
    let events = EVENTS.iter().map(|event| {
        (
            format!("{}_per_op", event.replace('-', "_")),
            reading(count(event).and_then(per_op)),
        )
    });
    events.chain([("ipc".to_owned(), reading(ipc))]).collect()
}

/// The same, where nothing can be counted.
pub(super) fn unavailable(reason: &str) -> BTreeMap<String, Reading> {
    per_operation(
        &EVENTS
            .iter()
            .map(|event| ((*event).to_owned(), Err(reason.to_owned())))
            .collect(),
        1,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = "\
# started on Sat Nov 21 2026

4000000,,instructions:u,5002011,100.00,1.25,insn per cycle
3200000,,cycles:u,5002011,100.00,,
1000,,cache-misses,5002011,62.00,,
<not supported>,,dTLB-load-misses,0,100.00,,
<not counted>,,branch-misses,0,0.00,,
";

    #[test]
    fn events_are_per_operation_or_have_a_reason() {
        let readings = per_operation(&read(RECORDED), 1000);
        assert_eq!(readings["ipc"], Reading::Ok(1.25));
        assert_eq!(readings["instructions_per_op"], Reading::Ok(4000.0));
        assert_eq!(readings["cache_misses_per_op"], Reading::Ok(1.0));
        for (name, expected) in [
            ("dTLB_load_misses_per_op", "does not count it"),
            ("branch_misses_per_op", "no counter free"),
            ("iTLB_load_misses_per_op", "did not count"),
        ] {
            assert!(
                matches!(&readings[name], Reading::Unavailable(reason) if reason.contains(expected)),
                "{name}: {:?}",
                readings[name]
            );
        }
        assert!(
            per_operation(&read(RECORDED), 0)["cycles_per_op"]
                .value()
                .is_none()
        );
        assert!(
            unavailable("no counters")
                .values()
                .all(|reading| *reading == Reading::Unavailable("no counters".to_owned()))
        );
    }
}
