//! The Insert Benchmark: tuples over steps, and what differs in each step.

use super::material::{Group, Subject};
use super::text::{change, list, ratio, whole_change};
use super::value::{Said, Sentence};
use crate::metrics::{self, Metric};
use crate::runs::status::Status;
use crate::view::{Outcome, StepView, View};

/// Costs of a step; they differ from a change of 5 % on.
const COSTS: [&str; 6] = [
    "server_cpu_us_per_op",
    "cpupq",
    "cspq",
    "rpq",
    "rkbpq",
    "wkbpi",
];
/// From this change on a cost is not similar.
const DIFFERS: f64 = 0.05;
/// The longest response time and the 99th percentile of the rates of seconds, which scatter: told
/// from this factor on.
const EXTREMES: [(&str, &str); 2] = [
    ("maxop", "the longest operation (max_op)"),
    ("p99_rate", "the slowest seconds (p99 rate)"),
];
const FACTOR: f64 = 2.0;
/// Changes are factors from here on.
const AS_FACTOR: f64 = 1.8;
/// Reads per operation, and KiB read, below which nothing is reported.
const LEAST: [(&str, f64); 2] = [("rpq", 0.01), ("rkbpq", 0.1)];

/// Writers have to reach this share of their rate.
const SLA: f64 = 0.95;
/// More than this of the rate in a step's name means that several clients have it each.
const ONE_CLIENT: f64 = 1.05;

/// Rows per second that a step's name asks for (`q100.1`, `qr500.L3`), if no version inserted more:
/// files of one client that do not tell their target.
pub(super) fn named_rate(step: &StepView) -> Option<f64> {
    let name = step.name.strip_prefix('q')?;
    let name = name.trim_start_matches(['r', 'p']);
    let digits = name.split('.').next()?;
    let rate: f64 = digits.parse().ok().filter(|rate| *rate > 0.0)?;
    let reached = step
        .outcomes
        .iter()
        .filter_map(|outcome| outcome.number(metrics::IPS));
    let most = reached.fold(0.0, f64::max);
    (SLA * rate..=ONE_CLIENT * rate)
        .contains(&most)
        .then_some(rate)
}

/// Whether the background writers of an outcome missed the rate in the name of its step.
pub(super) fn missed_named_rate(step: &StepView, outcome: &Outcome) -> bool {
    let rate = named_rate(step).filter(|_| outcome.target_per_s.is_none());
    rate.zip(outcome.number(metrics::IPS))
        .is_some_and(|(rate, ips)| ips < SLA * rate)
}

/// `(l.i0, l.x, l.i1) relative to 11: (0.99, 1.00, 0.97) for 12 and (1.03, 1.00, 0.96) for 13`.
pub(super) fn tuples(subject: &Subject, group: &Group) -> Option<Sentence> {
    let names: Vec<&str> = group
        .tests
        .iter()
        .map(|test| subject.tests[*test].name.as_str())
        .collect();
    let others = subject
        .speakers
        .iter()
        .filter(|place| **place != subject.base);
    let tuple = |place: &usize| {
        let ratios = group.tests.iter().map(|test| {
            let ratio_of = subject.tests[*test].ratio(subject.base, *place);
            ratio_of.map_or_else(|| "-".to_owned(), ratio)
        });
        let ratios: Vec<String> = ratios.collect();
        format!("({}) for {}", ratios.join(", "), subject.name(*place))
    };
    let tuples: Vec<String> = others.clone().map(tuple).collect();
    let said = others.flat_map(|place| {
        group.tests.iter().filter_map(|test| {
            Some(Said {
                test: subject.tests[*test].name.clone(),
                metric: "throughput",
                from: subject.base().name.clone(),
                to: subject.releases[*place].name.clone(),
                ratio: subject.tests[*test].ratio(subject.base, *place)?,
            })
        })
    });
    (!tuples.is_empty() && !names.is_empty()).then(|| Sentence {
        text: format!(
            "({}) relative to {}: {}",
            names.join(", "),
            subject.name(subject.base),
            list(&tuples)
        ),
        cells: said.collect(),
    })
}

/// A metric of a step in the base and in the newest release.
struct Pair {
    metric: &'static Metric,
    old: f64,
    new: f64,
}

impl Pair {
    fn of(view: &View, subject: &Subject, test: usize, name: &str) -> Option<Self> {
        let step = &view.steps[subject.tests[test].step];
        let measure = |place: usize| {
            let outcome = &step.outcomes[subject.releases[place].cell];
            let measure = outcome
                .measure_of(name)
                .filter(|_| subject.tests[test].statuses[place] == Status::Ok)?;
            Some((measure.metric, measure.value.value?))
        };
        let ((metric, old), (_, new)) = (measure(subject.base)?, measure(subject.newest())?);
        (old > 0.0).then_some(Self { metric, old, new })
    }

    fn ratio(&self) -> f64 {
        self.new / self.old
    }

    fn is_worth_telling(&self, name: &str) -> bool {
        let least = LEAST.iter().find(|(of, _)| *of == name);
        least.is_none_or(|(_, least)| self.old.max(self.new) >= *least)
    }
}

/// More steps than this have one sentence together.
const FEW_STEPS: usize = 4;

/// A sentence per step, or on all steps of a large group: throughput, what differs and what is
/// similar, newest against base.
pub(super) fn steps(view: &View, subject: &Subject, group: &Group) -> Vec<Sentence> {
    if subject.newest() == subject.base {
        return Vec::new();
    }
    if group.tests.len() > FEW_STEPS {
        return together(view, subject, group).into_iter().collect();
    }
    let sentences = group
        .tests
        .iter()
        .filter_map(|test| step(view, subject, *test));
    sentences.collect()
}

/// What a metric did over all steps of a group: from the least to the largest change, and in how
/// many steps it differs.
fn together(view: &View, subject: &Subject, group: &Group) -> Option<Sentence> {
    let pairs = |name: &str| -> Vec<f64> {
        let of = group
            .tests
            .iter()
            .filter_map(|test| Pair::of(view, subject, *test, name));
        of.filter(|pair| pair.is_worth_telling(name))
            .map(|pair| pair.ratio())
            .collect()
    };
    let span = |ratios: &[f64]| {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        (least, most)
    };
    let said = |pair: &Pair, test: usize| Said {
        test: subject.tests[test].name.clone(),
        metric: pair.metric.name,
        from: subject.base().name.clone(),
        to: subject.releases[subject.newest()].name.clone(),
        ratio: pair.ratio(),
    };
    let names = || COSTS.into_iter().chain(EXTREMES.map(|(name, _)| name));
    let cells = group.tests.iter().flat_map(|test| {
        let of = names().filter_map(|name| Some((name, Pair::of(view, subject, *test, name)?)));
        of.filter(|(name, pair)| pair.is_worth_telling(name))
            .map(|(_, pair)| said(&pair, *test))
            .collect::<Vec<_>>()
    });
    let mut parts = Vec::new();
    for name in COSTS {
        let ratios = pairs(name);
        if ratios.is_empty() {
            continue;
        }
        let (least, most) = span(&ratios);
        parts.push(format!("{name} {} to {}", moved(least), moved(most)));
    }
    for (name, words) in EXTREMES {
        let far: Vec<f64> = pairs(name)
            .into_iter()
            .filter(|ratio| is_far(*ratio))
            .collect();
        if !far.is_empty() {
            let (least, most) = span(&far);
            parts.push(format!(
                "{words} {least:.1}X to {most:.1}X in {} of {} steps",
                far.len(),
                group.tests.len()
            ));
        }
    }
    (!parts.is_empty()).then(|| Sentence {
        text: format!(
            "all steps, {} vs {}: {}",
            subject.name(subject.newest()),
            subject.name(subject.base),
            parts.join(", ")
        ),
        cells: cells.collect(),
    })
}

/// A change in whole percent, from a factor of 1.8 on as that.
fn moved(ratio: f64) -> String {
    match ratio >= AS_FACTOR {
        true => format!("{ratio:.1}X"),
        false => whole_change(ratio),
    }
}

/// The same with one decimal.
fn throughput(ratio: f64) -> String {
    match ratio >= AS_FACTOR {
        true => format!("{ratio:.1}X"),
        false => change(ratio),
    }
}

/// Whether a value that scatters moved by a factor of 2.
fn is_far(ratio: f64) -> bool {
    !(1.0 / FACTOR..FACTOR).contains(&ratio)
}

fn step(view: &View, subject: &Subject, test: usize) -> Option<Sentence> {
    let of = &subject.tests[test];
    let rate = of.ratio(subject.base, subject.newest())?;
    let costs: Vec<(&str, Pair)> = COSTS
        .iter()
        .filter_map(|name| Some((*name, Pair::of(view, subject, test, name)?)))
        .filter(|(name, pair)| pair.is_worth_telling(name))
        .collect();
    let (differs, similar): (Vec<_>, Vec<_>) = costs
        .iter()
        .partition(|(_, pair)| (pair.ratio() - 1.0).abs() > DIFFERS);
    let mut parts: Vec<String> = differs
        .iter()
        .map(|(name, pair)| format!("{name} {}", moved(pair.ratio())))
        .collect();
    for (name, words) in EXTREMES {
        let pair = Pair::of(view, subject, test, name);
        let pair = pair.filter(|pair| is_far(pair.ratio()));
        parts.extend(pair.map(|pair| {
            let digits = pair.metric.decimals;
            format!(
                "{words} {:.1}X, from {:.digits$} to {:.digits$} {}",
                pair.ratio(),
                pair.old,
                pair.new,
                pair.metric.unit
            )
        }));
    }
    let similar: Vec<String> = similar
        .iter()
        .map(|(name, pair)| format!("{name} {}", whole_change(pair.ratio())))
        .collect();
    let similar = match similar.is_empty() {
        true => String::new(),
        false => format!("; similar: {}", list(&similar)),
    };
    let what = match parts.is_empty() {
        true => "metrics are similar".to_owned(),
        false => parts.join(", "),
    };
    let said = costs.iter().map(|(_, pair)| Said {
        test: of.name.clone(),
        metric: pair.metric.name,
        from: subject.base().name.clone(),
        to: subject.releases[subject.newest()].name.clone(),
        ratio: pair.ratio(),
    });
    Some(Sentence {
        text: format!(
            "{}: throughput {}; {what}{similar}",
            of.name,
            throughput(rate)
        ),
        cells: said.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_gain_is_a_percentage_above_one_hundred() {
        assert_eq!(moved(9.78), "9.8X");
        assert_eq!(moved(1.79), "+79%");
        assert_eq!(throughput(2.432), "2.4X");
        assert_eq!(throughput(1.417), "+41.7%");
    }
}
