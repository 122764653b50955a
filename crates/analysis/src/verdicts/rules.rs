//! What a pattern of per-operation numbers usually means: one rule per pattern, the first that
//! applies is reported.

use super::changes::Change;
use super::measured::headline;
use super::percent;
use crate::metrics::{self, Metric, sysbench};

/// Changes below this share are reported as flat.
const FLAT: f64 = 0.05;
/// Context switches, reads and writes per operation vary more.
const FLAT_EVENTS: f64 = 0.1;
/// With less than this share of the base's CPU in use, CPU is not all that operations took longer
/// for.
const LEAST_IN_USE: f64 = 0.8;

/// How a number per operation moved, if both cells have it.
struct Move<'a> {
    change: Option<&'a Change>,
    flat: f64,
}

impl<'a> Move<'a> {
    /// Of the first of the metrics that changes have. Within `flat` it counts as unchanged.
    fn of(changes: &'a [Change], metrics: &[&Metric], flat: f64) -> Self {
        let find = |metric: &&Metric| {
            let mut changes = changes.iter();
            changes.find(|change| !change.is_counter && change.name == metric.name)
        };
        Self {
            change: metrics.iter().find_map(find),
            flat,
        }
    }

    fn is_known(&self) -> bool {
        self.change.is_some()
    }

    fn is_up(&self) -> bool {
        self.change
            .is_some_and(|change| change.ratio > 1.0 + self.flat)
    }

    fn is_down(&self) -> bool {
        self.change
            .is_some_and(|change| change.ratio < 1.0 / (1.0 + self.flat))
    }

    fn is_flat(&self) -> bool {
        self.is_known() && !self.is_up() && !self.is_down()
    }

    /// `server CPU/op +12.3 %`, `server CPU/op flat`.
    fn text(&self) -> Option<String> {
        let change = self.change?;
        let name = headline(&change.name);
        Some(if self.is_flat() {
            format!("{name} flat")
        } else {
            format!("{name} {}", percent(change.ratio))
        })
    }
}

/// What the rules look at.
struct Pattern<'a> {
    may_cost: bool,
    may_save: bool,
    cpu: Move<'a>,
    client: Move<'a>,
    switches: Move<'a>,
    written: Move<'a>,
    read: Move<'a>,
    /// CPU in use, if it fell by much.
    waiting: Option<String>,
}

impl<'a> Pattern<'a> {
    fn of(changes: &'a [Change], gain: Option<f64>) -> Self {
        let of = |metrics: &[&Metric], flat| Move::of(changes, metrics, flat);
        let cpu = [
            metrics::SERVER_CPU_US_PER_OP,
            metrics::PROCESS_CPU_US_PER_OP,
        ];
        let cpu = of(&cpu, FLAT);
        // CPU per operation x operations per second is CPU in use: where it fell, operations wait
        // for something else.
        let in_use = cpu
            .change
            .zip(gain)
            .map(|(cpu, gain)| cpu.ratio * gain.exp());
        Self {
            may_cost: gain.is_none_or(|gain| gain <= 0.0),
            may_save: gain.is_none_or(|gain| gain >= 0.0),
            client: of(&[metrics::CLIENT_CPU_US_PER_OP], FLAT),
            switches: of(&[metrics::CSPQ], FLAT_EVENTS),
            written: of(&[metrics::WKBPI, sysbench::WKBPQ], FLAT_EVENTS),
            read: of(&[metrics::RKBPQ], FLAT_EVENTS),
            waiting: in_use
                .filter(|in_use| *in_use < LEAST_IN_USE)
                .map(|in_use| format!("CPU in use {}", percent(in_use))),
            cpu,
        }
    }
}

/// A pattern, the numbers that show it, and what it usually is.
struct Rule {
    applies: fn(&Pattern<'_>) -> bool,
    numbers: fn(&Pattern<'_>) -> [Option<String>; 2],
    meaning: &'static str,
}

/// What would make a cell faster does not explain that it is slower, and the other way round.
const RULES: [Rule; 11] = [
    Rule {
        applies: |of| of.may_cost && of.cpu.is_up() && of.waiting.is_some(),
        numbers: |of| [of.cpu.text(), of.waiting.clone()],
        meaning: "more CPU per statement, and more waiting: for storage, or for locks",
    },
    Rule {
        applies: |of| of.may_cost && of.switches.is_up() && of.cpu.is_up(),
        numbers: |of| [of.cpu.text(), of.switches.text()],
        meaning: "more contention between threads, and CPU spent on it",
    },
    Rule {
        applies: |of| of.may_cost && of.switches.is_up(),
        numbers: |of| [of.switches.text(), of.cpu.text()],
        meaning: "more waiting between threads: mutex contention",
    },
    Rule {
        applies: |of| of.may_cost && of.cpu.is_up() && of.switches.is_flat(),
        numbers: |of| [of.cpu.text(), of.switches.text()],
        meaning: "more code per statement",
    },
    Rule {
        applies: |of| of.may_cost && of.written.is_up(),
        numbers: |of| [of.written.text(), of.cpu.text()],
        meaning: "write amplification",
    },
    Rule {
        applies: |of| of.may_cost && of.read.is_up(),
        numbers: |of| [of.read.text(), of.cpu.text()],
        meaning: "more is read from storage: less of it is cached",
    },
    Rule {
        applies: |of| of.may_cost && of.cpu.is_up(),
        numbers: |of| [of.cpu.text(), of.switches.text()],
        meaning: "more CPU per statement",
    },
    Rule {
        applies: |of| {
            of.may_save && of.cpu.is_down() && of.switches.is_known() && !of.switches.is_down()
        },
        numbers: |of| [of.cpu.text(), of.switches.text()],
        meaning: "less code per statement",
    },
    Rule {
        applies: |of| of.may_save && of.cpu.is_down() && !of.switches.is_known(),
        numbers: |of| [of.cpu.text(), None],
        meaning: "less CPU per statement",
    },
    Rule {
        applies: |of| of.may_save && of.switches.is_down(),
        numbers: |of| [of.switches.text(), of.cpu.text()],
        meaning: "less waiting, for other threads or for storage",
    },
    Rule {
        applies: |of| of.may_cost && of.client.is_up() && of.cpu.is_flat(),
        numbers: |of| [of.client.text(), of.cpu.text()],
        meaning: "the client works more for an answer",
    },
];

/// What the per-operation numbers say of a gain, in a few words; empty where no rule applies.
/// `gain` is a log ratio of which more is better: of throughput, or of CPU per operation turned
/// round.
pub(crate) fn sentence(changes: &[Change], gain: Option<f64>) -> String {
    let pattern = Pattern::of(changes, gain);
    let rule = RULES.iter().find(|rule| (rule.applies)(&pattern));
    rule.map_or_else(String::new, |rule| {
        let numbers: Vec<String> = (rule.numbers)(&pattern).into_iter().flatten().collect();
        format!("{}: {}", numbers.join(", "), rule.meaning)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, ratio: f64) -> Change {
        Change {
            name: name.to_owned(),
            is_counter: false,
            ratio,
            standardised: ratio.ln() / 0.01,
            pairs: 12,
        }
    }

    #[test]
    fn rules_in_words() {
        let cases: [(&[(&str, f64)], &str); 10] = [
            (
                &[("process_cpu_us_per_op", 0.66), ("cspq", 0.37)],
                "cs/op -63.0 %, process CPU/op -34.0 %: less waiting, for other threads or for \
                storage",
            ),
            (
                &[("server_cpu_us_per_op", 1.49), ("cspq", 1.01)],
                "server CPU/op +49.0 %, cs/op flat: more code per statement",
            ),
            (
                &[("server_cpu_us_per_op", 1.2), ("cspq", 2.0)],
                "server CPU/op +20.0 %, cs/op +100.0 %: more contention between threads, and CPU \
                spent on it",
            ),
            (
                &[("server_cpu_us_per_op", 1.0), ("cspq", 1.5)],
                "cs/op +50.0 %, server CPU/op flat: more waiting between threads: mutex contention",
            ),
            (
                &[("wkbpi", 1.8), ("server_cpu_us_per_op", 1.02)],
                "KiB written/insert +80.0 %, server CPU/op flat: write amplification",
            ),
            (
                &[("rkbpq", 3.0)],
                "KiB read/op +200.0 %: more is read from storage: less of it is cached",
            ),
            (
                &[("process_cpu_us_per_op", 0.8), ("cspq", 1.0)],
                "process CPU/op -20.0 %, cs/op flat: less code per statement",
            ),
            (
                &[("server_cpu_us_per_op", 1.0), ("client_cpu_us_per_op", 1.3)],
                "client CPU/op +30.0 %, server CPU/op flat: the client works more for an answer",
            ),
            (&[("server_cpu_us_per_op", 1.01), ("cspq", 1.0)], ""),
            (&[], ""),
        ];
        for (changes, expected) in cases {
            let changes: Vec<Change> = changes
                .iter()
                .map(|(name, ratio)| change(name, *ratio))
                .collect();
            assert_eq!(sentence(&changes, None), expected);
        }
        assert_eq!(
            sentence(&[change("process_cpu_us_per_op", 0.8)], None),
            "process CPU/op -20.0 %: less CPU per statement"
        );
        assert_eq!(
            sentence(
                &[change("process_cpu_us_per_op", 36.0), change("cspq", 1.0)],
                Some(-4.4)
            ),
            "process CPU/op +3500.0 %, CPU in use -55.8 %: more CPU per statement, and more \
            waiting: for storage, or for locks"
        );
        assert!(
            sentence(
                &[change("process_cpu_us_per_op", 1.4), change("cspq", 1.0)],
                Some(-0.3)
            )
            .ends_with("more code per statement")
        );
        let counter = Change {
            is_counter: true,
            ..change("cspq", 9.0)
        };
        assert_eq!(
            sentence(&[change("server_cpu_us_per_op", 0.9)], Some(-0.1)),
            "",
            "less CPU does not make it slower"
        );
        assert_ne!(
            sentence(&[change("server_cpu_us_per_op", 0.9)], Some(0.1)),
            ""
        );
        assert_eq!(
            sentence(&[counter], None),
            "",
            "an engine's counter of that name is another thing"
        );
    }
}
