//! What an operation costs, in the test that tells most of a group, and what that explains.

use super::changes::Change;
use super::material::{Group, Kind, Subject};
use super::text::{count, ratio, whole_change, whole_percent};
use super::thresholds::is_stable_cost;
use super::value::{Said, Sentence};
use crate::metrics::Metric;
use crate::runs::status::Status;
use crate::view::View;

/// Context switches grew if they did by more than this.
const SWITCHES_GREW: f64 = 1.03;
/// Below this many context switches per operation they say nothing.
const FEW_SWITCHES: f64 = 1.0;
/// Throughput x CPU per operation within this share of 1: CPU explains the throughput.
const EXPLAINED: f64 = 0.05;
/// Changes of throughput up to this share need no explanation.
const LARGE: f64 = 0.05;
/// More is written per operation from this share on.
const WRITTEN: f64 = 0.05;
/// More reads than this per operation are reads from storage.
const READS: f64 = 0.01;
/// Less than this many KiB per operation says nothing.
const LEAST_KIB: f64 = 0.1;

/// A cost per operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    Cpu,
    Switches,
    Written,
    Reads,
}

impl Cost {
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Switches, Self::Written, Self::Reads];

    /// The metrics that may hold it, the best first.
    fn metrics(self) -> &'static [&'static str] {
        match self {
            Self::Cpu => &[
                "server_cpu_us_per_op",
                "process_cpu_us_per_op",
                "cpupo",
                "cpupq",
            ],
            Self::Switches => &["server_cspq", "cspq"],
            Self::Written => &["wkbpq", "wkbpi"],
            Self::Reads => &["rpq"],
        }
    }

    /// Below this much per operation it says nothing, in the metric's unit.
    pub fn least(self) -> f64 {
        match self {
            Self::Cpu | Self::Switches => 0.0,
            Self::Written => LEAST_KIB,
            Self::Reads => READS,
        }
    }

    /// What sentences and panels call it: the field's short name in brackets.
    pub fn words(self, metric: &Metric) -> String {
        let short = match (self, metric.name) {
            (Self::Cpu, "cpupo") => "cpu/o",
            (Self::Switches, _) if metric.name == "cspq" => "cs/o",
            (Self::Written, "wkbpq") => "wKB/o",
            (Self::Reads, _) => "r/o",
            (_, name) => name,
        };
        let what = match (self, metric.name) {
            (Self::Cpu, "server_cpu_us_per_op") => "server CPU per operation",
            (Self::Cpu, _) => "CPU per operation",
            (Self::Switches, _) => "context switches per operation",
            (Self::Written, _) => "KB written per operation",
            (Self::Reads, _) => "reads from storage per operation",
        };
        format!("{what} ({short})")
    }
}

/// A cost of a test in each release of a subject.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    pub cost: Cost,
    pub metric: &'static Metric,
    /// By place of release, in the metric's unit.
    pub values: Vec<Option<f64>>,
    /// The most that twins of the test differ by, as an absolute logarithm; 0 without twins.
    noise: f64,
}

impl Costs {
    /// The first metric that every release with a rate has. Costs of several machines are not set
    /// side by side, and there are none.
    pub fn of(view: &View, subject: &Subject, test: usize, cost: Cost) -> Option<Self> {
        let machines = || {
            let cells = subject
                .releases
                .iter()
                .map(|of| &view.cells[of.cell].machine);
            cells.filter(|machine| !machine.is_empty())
        };
        if machines()
            .next()
            .is_some_and(|first| machines().any(|other| other != first))
        {
            return None;
        }
        let of = &subject.tests[test];
        let step = &view.steps[of.step];
        cost.metrics().iter().find_map(|name| {
            let measure = |place: usize| {
                let outcome = &step.outcomes[subject.releases[place].cell];
                let is_ok = of.statuses[place] == Status::Ok;
                let measure = outcome.measure_of(name).filter(|_| is_ok)?;
                Some((measure.metric, measure.value.value?))
            };
            let all: Vec<_> = (0..subject.releases.len()).map(measure).collect();
            let is_whole = all
                .iter()
                .zip(&of.rates)
                .all(|(measure, rate)| measure.is_some() || rate.is_none());
            let metric = all.iter().flatten().next()?.0;
            is_whole.then(|| {
                let values = all.iter().map(|of| of.map(|(_, value)| value)).collect();
                Self {
                    cost,
                    metric,
                    values,
                    noise: 0.0,
                }
                .with_noise(subject)
            })
        })
    }

    fn with_noise(mut self, subject: &Subject) -> Self {
        let twins = subject.noise.twins.iter();
        let differences = twins.filter_map(|of| {
            let ratio = self.ratio(of.places[0], of.places[1])?;
            Some(ratio.ln().abs()).filter(|by| by.is_finite())
        });
        self.noise = differences.fold(0.0, f64::max);
        self
    }

    /// Whether a change is within what is called stable, or less in whole percent than what twins
    /// of the test differ by.
    pub fn is_stable(&self, ratio: f64) -> bool {
        is_stable_cost(ratio, self.noise)
    }

    pub fn ratio(&self, from: usize, to: usize) -> Option<f64> {
        let (old, new) = (self.values[from]?, self.values[to]?);
        (old > 0.0).then(|| new / old)
    }

    fn words(&self) -> String {
        self.cost.words(self.metric)
    }

    fn said(&self, subject: &Subject, test: usize, from: usize, to: usize) -> Vec<Said> {
        let ratio = self.ratio(from, to).into_iter();
        ratio
            .map(|ratio| Said {
                test: subject.tests[test].name.clone(),
                metric: self.metric.name,
                from: subject.releases[from].name.clone(),
                to: subject.releases[to].name.clone(),
                ratio,
            })
            .collect()
    }
}

/// The test of a group whose costs sentences are about, and why it is that one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Telling {
    pub test: usize,
    pub why: String,
}

/// Among single statements the test whose context switches grew most since the base, if any grew
/// by more than 3 %, else the one whose CPU per operation moved most over the series. `asked` is
/// the name of a test. A test with two states is never it.
pub(crate) fn telling(
    view: &View,
    subject: &Subject,
    group: &Group,
    asked: Option<&str>,
) -> Option<Telling> {
    let is_asked = |test: &&usize| asked == Some(subject.tests[**test].name.as_str());
    if let Some(test) = group.tests.iter().find(is_asked) {
        return Some(Telling {
            test: *test,
            why: "it was asked for".to_owned(),
        });
    }
    let (candidates, what) = candidates(subject, group);
    let most = candidates
        .iter()
        .filter_map(|test| grown(view, subject, *test))
        .max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    if let Some(of) = most.filter(|of| of.ratio > SWITCHES_GREW) {
        let since = match subject.is_series {
            true => format!("since {}", subject.name(subject.base)),
            false => subject.span(subject.base, of.to),
        };
        let why = format!(
            "of the group's {what}, its {} grew most: {} {since}",
            Cost::Switches.words(of.metric),
            whole_change(of.ratio),
        );
        return Some(Telling { test: of.test, why });
    }
    let moved = candidates.iter().filter_map(|test| {
        let costs = Costs::of(view, subject, *test, Cost::Cpu)?;
        let pairs = subject.pairs().into_iter();
        let logs = pairs.filter_map(|[from, to]| Some(costs.ratio(from, to)?.ln().abs()));
        // What a column of zeros ends in is not a change.
        let sum = Some(logs.sum::<f64>()).filter(|sum| sum.is_finite())?;
        Some((*test, sum, costs.metric))
    });
    let (test, _, metric) = moved.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let over = match subject.is_series {
        true => "over the series",
        false => "against the base",
    };
    let why = format!(
        "of the group's {what}, its {} moved most {over}",
        Cost::Cpu.words(metric)
    );
    Some(Telling { test, why })
}

/// The tests that may be it, and what they are: single statements where there are others.
fn candidates(subject: &Subject, group: &Group) -> (Vec<usize>, &'static str) {
    let claimable = group.tests.iter().copied();
    let has_ratio = |test: usize| {
        let mut pairs = subject.pairs().into_iter();
        pairs.any(|[from, to]| subject.tests[test].ratio(from, to).is_some())
    };
    let claimable = claimable.filter(|test| !subject.is_two_state(*test) && has_ratio(*test));
    let (mixed, single): (Vec<usize>, Vec<usize>) =
        claimable.partition(|test| subject.tests[*test].is_mixed());
    match (mixed.is_empty(), single.is_empty()) {
        (true, _) => (single, "tests"),
        (false, true) => (mixed, "tests"),
        (false, false) => (single, "single statements"),
    }
}

/// How far the context switches of a test grew.
struct Grown {
    test: usize,
    /// The place of the release that they grew in.
    to: usize,
    ratio: f64,
    metric: &'static Metric,
}

/// From the base to the newest version; of configs the one in which they grew most.
fn grown(view: &View, subject: &Subject, test: usize) -> Option<Grown> {
    let costs = Costs::of(view, subject, test, Cost::Switches)?;
    let others = match subject.is_series {
        true => vec![subject.newest()],
        false => subject.speakers.clone(),
    };
    let ratios = others
        .into_iter()
        .filter_map(|to| Some((to, costs.ratio(subject.base, to)?)));
    let (to, ratio) = ratios.max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Grown {
        test,
        to,
        ratio,
        metric: costs.metric,
    })
}

/// Sentences on the costs of one test.
pub(crate) fn sentences(view: &View, subject: &Subject, test: usize) -> Vec<Sentence> {
    let of = |cost| Costs::of(view, subject, test, cost);
    let mut all = Vec::new();
    let switches = of(Cost::Switches);
    let steady = switches
        .as_ref()
        .and_then(|costs| steady_switches(subject, test, costs));
    let together = switches.filter(|_| steady.is_none());
    all.extend(steady);
    match of(Cost::Cpu) {
        Some(cpu) => all.extend(over_series(subject, test, &cpu, together.as_ref())),
        None => all.extend(
            together
                .iter()
                .flat_map(|costs| over_series(subject, test, costs, None)),
        ),
    }
    all.extend(
        of(Cost::Written)
            .iter()
            .flat_map(|costs| written(subject, test, costs)),
    );
    all.extend(of(Cost::Reads).and_then(|costs| reads(subject, test, &costs)));
    all
}

/// One sentence on context switches that are low everywhere, or stable over all series.
fn steady_switches(subject: &Subject, test: usize, costs: &Costs) -> Option<Sentence> {
    let known: Vec<f64> = costs.values.iter().copied().flatten().collect();
    let least = known.iter().copied().fold(f64::INFINITY, f64::min);
    let most = known.iter().copied().fold(0.0, f64::max);
    let range = format!("{} to {}", ratio(least), ratio(most));
    let (first, last) = (*subject.speakers.first()?, subject.newest());
    let text = if known.is_empty() {
        return None;
    } else if most < FEW_SWITCHES {
        format!("{} are low and can be ignored ({range})", costs.words())
    } else if is_steady(subject, costs, first, last) {
        format!(
            "{} are stable ({range}): no sign of more mutex contention, of which they are a proxy",
            costs.words()
        )
    } else {
        return None;
    };
    Some(Sentence {
        text,
        cells: costs.said(subject, test, first, last),
    })
}

/// Whether a cost is stable between neighbours from one place to another, and over all of it.
fn is_steady(subject: &Subject, costs: &Costs, from: usize, to: usize) -> bool {
    let inside = |place: &&usize| (from..=to).contains(*place);
    let places: Vec<usize> = subject.speakers.iter().filter(inside).copied().collect();
    let is_stable = |from, to| {
        let ratio = costs.ratio(from, to);
        ratio.is_some_and(|ratio| costs.is_stable(ratio))
    };
    is_stable(from, to) && places.windows(2).all(|pair| is_stable(pair[0], pair[1]))
}

/// A sentence per pair of series on `main`, with what `beside` did if there is one; stable
/// neighbours are merged.
fn over_series(
    subject: &Subject,
    test: usize,
    main: &Costs,
    beside: Option<&Costs>,
) -> Vec<Sentence> {
    let mut runs: Vec<(usize, usize, bool)> = Vec::new();
    let is_steady = |from, to| {
        is_steady(subject, main, from, to)
            && beside.is_none_or(|costs| is_steady(subject, costs, from, to))
    };
    for pair in subject.pairs() {
        if main.ratio(pair[0], pair[1]).is_none() {
            continue;
        }
        let stays = is_steady(pair[0], pair[1]);
        match runs.last_mut() {
            Some((from, to, true)) if stays && *to == pair[0] && is_steady(*from, pair[1]) => {
                *to = pair[1];
            }
            _ => runs.push((pair[0], pair[1], stays)),
        }
    }
    let sentence = |(from, to, is_stable): (usize, usize, bool)| {
        let both = [Some(main), beside];
        let cells = both.iter().flatten();
        Sentence {
            text: match is_stable {
                true => stable_text(subject, from, to, main, beside),
                false => moved_text(subject, from, to, main, beside),
            },
            cells: cells
                .flat_map(|costs| costs.said(subject, test, from, to))
                .collect(),
        }
    };
    runs.into_iter().map(sentence).collect()
}

fn stable_text(
    subject: &Subject,
    from: usize,
    to: usize,
    main: &Costs,
    beside: Option<&Costs>,
) -> String {
    let mut inner = subject.speakers.iter();
    let is_run = subject.is_series && inner.any(|place| (from + 1..to).contains(place));
    let change = |costs: &Costs| costs.ratio(from, to).map(whole_change).unwrap_or_default();
    let span = match is_run {
        true => format!("from {} through {}", subject.name(from), subject.name(to)),
        false => subject.span(from, to),
    };
    match beside {
        None => format!("{} is stable {span} ({})", main.words(), change(main)),
        Some(costs) => format!(
            "{span} {} ({}) and {} ({}) are stable",
            main.words(),
            change(main),
            costs.words(),
            change(costs)
        ),
    }
}

fn moved_text(
    subject: &Subject,
    from: usize,
    to: usize,
    main: &Costs,
    beside: Option<&Costs>,
) -> String {
    let span = subject.span(from, to);
    let Some(costs) = beside else {
        return format!("{} {} {span}", main.words(), verb(main, from, to, false));
    };
    format!(
        "{span} {} {} while {} {}",
        main.words(),
        verb(main, from, to, false),
        costs.words(),
        verb(costs, from, to, true)
    )
}

/// `drops by 35%`, `grow by 22%`, `is stable (+3%)`.
fn verb(costs: &Costs, from: usize, to: usize, is_plural: bool) -> String {
    let Some(ratio) = costs.ratio(from, to) else {
        return if is_plural {
            "are not known"
        } else {
            "is not known"
        }
        .to_owned();
    };
    let by = whole_percent(ratio).abs();
    let s = if is_plural { "" } else { "s" };
    if costs.is_stable(ratio) && is_plural {
        // The other half moved: this half has its number, too.

        format!("are stable ({})", whole_change(ratio))
    } else if costs.is_stable(ratio) {
        format!("is stable ({})", whole_change(ratio))
    } else if ratio < 1.0 {
        format!("drop{s} by {by}%")
    } else {
        format!("grow{s} by {by}%")
    }
}

/// Where more or less is written per operation.
fn written(subject: &Subject, test: usize, costs: &Costs) -> Vec<Sentence> {
    let least = Cost::Written.least();
    let is_much = |place: usize| costs.values[place].is_some_and(|kib| kib >= least);
    let sentence = |pair: [usize; 2]| {
        let ratio = costs.ratio(pair[0], pair[1])?;
        let is_moved = (ratio - 1.0).abs() > WRITTEN && !costs.is_stable(ratio);
        let is_moved = is_moved && is_much(pair[0]);
        is_moved.then(|| Sentence {
            text: format!(
                "{} {} {}",
                costs.words(),
                verb(costs, pair[0], pair[1], false),
                subject.span(pair[0], pair[1])
            ),
            cells: costs.said(subject, test, pair[0], pair[1]),
        })
    };
    subject.pairs().into_iter().filter_map(sentence).collect()
}

/// The releases that read from storage.
fn reads(subject: &Subject, test: usize, costs: &Costs) -> Option<Sentence> {
    let reading: Vec<usize> = subject
        .speakers
        .iter()
        .copied()
        .filter(|place| costs.values[*place].is_some_and(|reads| reads > Cost::Reads.least()))
        .collect();
    if reading.is_empty() {
        return None;
    }
    let said = |place: &usize| {
        let value = costs.values[*place].unwrap_or(0.0);
        format!("{} ({value:.2})", subject.name(*place))
    };
    let named: Vec<String> = reading.iter().map(said).collect();
    Some(Sentence {
        text: format!(
            "not all of it is cached, {} are above 0: {}",
            costs.words(),
            super::text::list(&named)
        ),
        cells: reading
            .iter()
            .filter(|place| **place != subject.base)
            .flat_map(|place| costs.said(subject, test, subject.base, *place))
            .collect(),
    })
}

/// How many of the changes of throughput by more than 5 % CPU per operation explains: of throughput
/// x CPU nothing is left.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Explained {
    pub by_cpu: usize,
    pub all: usize,
    /// Throughput and CPU per operation of each of them.
    pub cells: Vec<Said>,
}

impl Explained {
    /// Of the tests of a group from one release to another. `None` for a test whose costs are not
    /// known.
    ///
    /// `is_counted` chooses among tests and their ratios.
    pub fn between(
        view: &View,
        subject: &Subject,
        group: &Group,
        pairs: &[[usize; 2]],
        is_counted: impl Fn(usize, f64) -> bool,
    ) -> Self {
        let mut explained = Self::default();
        for test in &group.tests {
            let Some(cpu) = Costs::of(view, subject, *test, Cost::Cpu) else {
                continue;
            };
            for [from, to] in pairs {
                let ratio = subject.tests[*test].ratio(*from, *to);
                let (Some(rate), Some(cost)) = (ratio, cpu.ratio(*from, *to)) else {
                    continue;
                };
                if (rate - 1.0).abs() > LARGE && is_counted(*test, rate) {
                    explained.all += 1;
                    explained.by_cpu += usize::from((rate * cost - 1.0).abs() <= EXPLAINED);
                    let of_cpu = cpu.said(subject, *test, *from, *to);
                    let throughput = of_cpu.iter().map(|of| Said {
                        metric: "throughput",
                        ratio: rate,
                        ..of.clone()
                    });
                    explained.cells.extend(throughput);
                    explained.cells.extend(of_cpu.iter().cloned());
                }
            }
        }
        explained
    }
}

/// What explains the group's changes between neighbouring series.
pub(crate) fn cause(view: &View, subject: &Subject, group: &Group) -> Option<Sentence> {
    let of = Explained::between(view, subject, group, &subject.pairs(), |_, _| true);
    if of.all == 0 {
        return None;
    }
    let changes = count(of.all, "change");
    let between = if subject.is_series {
        " between series"
    } else {
        ""
    };
    let text = match of.by_cpu {
        0 => format!(
            "{changes} of throughput by more than 5%{between}: CPU per operation explains none of \
             them"
        ),
        by if by == of.all => format!(
            "{changes} of throughput by more than 5%{between}: CPU per operation explains all of \
             them"
        ),
        by => format!(
            "{changes} of throughput by more than 5%{between}: CPU per operation explains {by} of \
             them, the others need another reason"
        ),
    };
    Some(Sentence {
        text,
        cells: of.cells,
    })
}

/// What the telling test's costs allow to say about a change of its throughput.
pub(crate) fn hedged(
    view: &View,
    subject: &Subject,
    test: usize,
    change: &Change,
) -> Option<String> {
    let (from, to) = (change.from, change.to);
    let rate = subject.tests[test].ratio(from, to)?;
    let cost = |cost| Costs::of(view, subject, test, cost);
    let cpu = cost(Cost::Cpu)?.ratio(from, to)?;
    if (rate - 1.0).abs() <= LARGE {
        return None;
    }
    if (rate * cpu - 1.0).abs() <= EXPLAINED {
        let what = match rate < 1.0 {
            true => "new CPU overhead",
            false => "less CPU per operation",
        };
        return Some(format!("{what} explains it"));
    }
    let switches = cost(Cost::Switches)?;
    let grew = switches.ratio(from, to)?;
    let is_many = switches.values[to]? >= FEW_SWITCHES;
    (is_many && rate < 1.0 && grew > SWITCHES_GREW).then(|| {
        "CPU per operation does not explain it; perhaps there is more mutex contention".to_owned()
    })
}

/// Whether a subject's steps have costs of this kind at all.
pub(crate) fn has_costs(view: &View, subject: &Subject) -> bool {
    let has_change = |test: usize| {
        let costs = Costs::of(view, subject, test, Cost::Cpu);
        costs.is_some_and(|costs| {
            let mut pairs = subject.pairs().into_iter();
            pairs.any(|[from, to]| costs.ratio(from, to).is_some())
        })
    };
    subject.kind != Kind::Rocksdb && (0..subject.tests.len()).any(has_change)
}
