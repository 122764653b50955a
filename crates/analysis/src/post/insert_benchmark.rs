//! The Insert Benchmark: tuples over steps, and what differs in each step.

use plimsoll_core::record::SLA_SHARE;

use super::material::{Group, Subject};
use super::text::{change, list, ratio, whole_change};
use super::value::{Part, Said, Sentence};
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
    (SLA_SHARE * rate..=ONE_CLIENT * rate)
        .contains(&most)
        .then_some(rate)
}

/// Whether the background writers of an outcome missed the rate in the name of its step.
pub(crate) fn missed_named_rate(step: &StepView, outcome: &Outcome) -> bool {
    let rate = named_rate(step).filter(|_| outcome.target_per_s.is_none());
    rate.zip(outcome.number(metrics::IPS))
        .is_some_and(|(rate, ips)| ips < SLA_SHARE * rate)
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

/// A metric of a step in two releases.
struct Pair {
    metric: &'static Metric,
    old: f64,
    new: f64,
}

impl Pair {
    fn of(view: &View, over: &Over<'_>, test: usize, name: &str) -> Option<Self> {
        let subject = over.subject;
        let step = &view.steps[subject.tests[test].step];
        let measure = |place: usize| {
            let outcome = &step.outcomes[subject.releases[place].cell];
            let measure = outcome
                .measure_of(name)
                .filter(|_| subject.tests[test].statuses[place] == Status::Ok)?;
            Some((measure.metric, measure.value.value?))
        };
        let ((metric, old), (_, new)) = (measure(over.from)?, measure(over.to)?);
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

/// Two releases of a subject.
struct Over<'a> {
    subject: &'a Subject,
    /// Places: the older, or the base, and the other.
    from: usize,
    to: usize,
}

impl Over<'_> {
    /// `13 vs 11`.
    fn names(&self) -> String {
        let [from, to] = [self.from, self.to].map(|place| self.subject.name(place));
        format!("{to} vs {from}")
    }

    fn said(&self, pair: &Pair, test: usize) -> Said {
        let [from, to] = [self.from, self.to];
        Said {
            test: self.subject.tests[test].name.clone(),
            metric: pair.metric.name,
            from: self.subject.releases[from].name.clone(),
            to: self.subject.releases[to].name.clone(),
            ratio: pair.ratio(),
        }
    }
}

/// A list for the newest version, of configs for each, against the base. It has a sentence per
/// step, or one on all steps of a large group: throughput, what differs and what is similar.
pub(super) fn steps(view: &View, subject: &Subject, group: &Group) -> Vec<Part> {
    let pairs = match subject.is_series {
        true => vec![[subject.base, subject.newest()]],
        false => subject.pairs(),
    };
    let list = |[from, to]: [usize; 2]| {
        let over = Over { subject, from, to };
        let tests = group.tests.iter();
        let sentences: Vec<Sentence> = if from == to {
            Vec::new()
        } else if group.tests.len() > FEW_STEPS {
            together(view, &over, group).into_iter().collect()
        } else {
            tests.filter_map(|test| step(view, &over, *test)).collect()
        };
        let heading = format!("By step, {}", over.names());
        (!sentences.is_empty()).then(|| Part::bullets(&heading, sentences))
    };
    pairs.into_iter().filter_map(list).collect()
}

/// What a metric did over all steps of a group: from the least to the largest change, and in how
/// many steps it differs.
fn together(view: &View, over: &Over<'_>, group: &Group) -> Option<Sentence> {
    let pairs = |name: &str| -> Vec<f64> {
        let of = group
            .tests
            .iter()
            .filter_map(|test| Pair::of(view, over, *test, name));
        of.filter(|pair| pair.is_worth_telling(name))
            .map(|pair| pair.ratio())
            .collect()
    };
    let span = |ratios: &[f64]| {
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        (least, most)
    };
    let names = || COSTS.into_iter().chain(EXTREMES.map(|(name, _)| name));
    let cells = group.tests.iter().flat_map(|test| {
        let of = names().filter_map(|name| Some((name, Pair::of(view, over, *test, name)?)));
        of.filter(|(name, pair)| pair.is_worth_telling(name))
            .map(|(_, pair)| over.said(&pair, *test))
            .collect::<Vec<_>>()
    });
    let (mut parts, mut similar) = (Vec::new(), Vec::new());
    for name in COSTS {
        let ratios = pairs(name);
        if ratios.is_empty() {
            continue;
        }
        let (least, most) = span(&ratios);
        let told = format!("{name} {}", between(least, most));
        match differs(least) || differs(most) {
            true => parts.push(told),
            false => similar.push(told),
        }
    }
    for (name, words) in EXTREMES {
        let far: Vec<f64> = pairs(name)
            .into_iter()
            .filter(|ratio| is_far(*ratio))
            .collect();
        if !far.is_empty() {
            let (least, most) = span(&far);
            let factors = match [least, most].map(|of| format!("{of:.1}X")) {
                [least, most] if least == most => least,
                [least, most] => format!("{least} to {most}"),
            };
            parts.push(format!(
                "{words} {factors} in {} of {} steps",
                far.len(),
                group.tests.len()
            ));
        }
    }
    (!parts.is_empty() || !similar.is_empty()).then(|| Sentence {
        text: format!("all steps: {}", with_similar(&parts, &similar)),
        cells: cells.collect(),
    })
}

/// `cpupq +6%; similar: cspq +0%`, and where nothing differs `metrics are similar: cspq +0%`.
fn with_similar(differing: &[String], similar: &[String]) -> String {
    let differing = differing.join(", ");
    match (differing.is_empty(), similar.is_empty()) {
        (_, true) => differing,
        (false, false) => format!("{differing}; similar: {}", list(similar)),
        (true, false) => format!("metrics are similar: {}", list(similar)),
    }
}

fn differs(ratio: f64) -> bool {
    (ratio - 1.0).abs() > DIFFERS
}

/// From the least to the largest change, both in one unit: `-6% to -4%`, `0.6X to 9.8X`, `+1%`.
fn between(least: f64, most: f64) -> String {
    let text = |ratio: f64| match most >= AS_FACTOR {
        true => format!("{ratio:.1}X"),
        false => whole_change(ratio),
    };
    match (text(least), text(most)) {
        (least, most) if least == most => least,
        (least, most) => format!("{least} to {most}"),
    }
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

fn step(view: &View, over: &Over<'_>, test: usize) -> Option<Sentence> {
    let of = &over.subject.tests[test];
    let rate = of.ratio(over.from, over.to)?;
    let costs: Vec<(&str, Pair)> = COSTS
        .iter()
        .filter_map(|name| Some((*name, Pair::of(view, over, test, name)?)))
        .filter(|(name, pair)| pair.is_worth_telling(name))
        .collect();
    let (differing, similar): (Vec<_>, Vec<_>) =
        costs.iter().partition(|(_, pair)| differs(pair.ratio()));
    let mut parts: Vec<String> = differing
        .iter()
        .map(|(name, pair)| format!("{name} {}", moved(pair.ratio())))
        .collect();
    for (name, words) in EXTREMES {
        let pair = Pair::of(view, over, test, name);
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
    let what = match parts.is_empty() && costs.is_empty() {
        true => "its costs are not known".to_owned(),
        false => with_similar(&parts, &similar),
    };
    let said = costs.iter().map(|(_, pair)| over.said(pair, test));
    Some(Sentence {
        text: format!("{}: throughput {}; {what}", of.name, throughput(rate)),
        cells: said.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_one_unit_and_no_two_equal_ends() {
        assert_eq!(between(0.58, 9.78), "0.6X to 9.8X");
        assert_eq!(between(0.94, 1.06), "-6% to +6%");
        assert_eq!(between(1.001, 1.004), "+0%");
    }

    #[test]
    fn similar_metrics_are_said_once() {
        let texts =
            |all: &[&str]| -> Vec<String> { all.iter().map(|of| (*of).to_owned()).collect() };
        let similar = texts(&["cspq +0%", "wkbpi +3%"]);
        assert_eq!(
            with_similar(&[], &similar),
            "metrics are similar: cspq +0% and wkbpi +3%"
        );
        assert_eq!(
            with_similar(&texts(&["cpupq +6%"]), &similar),
            "cpupq +6%; similar: cspq +0% and wkbpi +3%"
        );
    }

    #[test]
    fn no_gain_is_a_percentage_above_one_hundred() {
        assert_eq!(moved(9.78), "9.8X");
        assert_eq!(moved(1.79), "+79%");
        assert_eq!(throughput(2.432), "2.4X");
        assert_eq!(throughput(1.417), "+41.7%");
    }
}
