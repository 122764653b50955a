//! What the campaign says about what a number claims.

use plimsoll_stats::median;

use super::super::changes::Change;
use super::super::costs::{Cost, Costs};
use super::super::material::Subject;
use super::super::text::{change as signed, whole_change};
use super::super::thresholds::{is_stable, rounded_percent, to_five};
use super::context::Clause;
use super::tokens::{Claim, Counted, Token};
use crate::view::View;

/// What came of the search for a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Yes,
    /// Rounded values, or another patch release, give it; with what the data give.
    Otherwise(String),
    /// With what the campaign says instead.
    No(String),
    /// Nothing in the campaign is about it; with why.
    Nothing(String),
}

impl Found {
    fn nothing(why: impl Into<String>) -> Self {
        Self::Nothing(why.into())
    }
}

/// Nothing says what a number is about.
const NO_TEST: &str = "neither its line nor a heading above it names a test";
const NO_GROUP: &str = "no heading above it names a group of the campaign";

/// The claims of one clause.
pub(super) struct Claims<'a> {
    pub view: &'a View,
    pub clause: &'a Clause<'a>,
}

impl Claims<'_> {
    pub fn of(&self, token: &Token) -> Found {
        let Some(subject) = self.clause.subject else {
            return Found::nothing("the campaign has no results");
        };
        let Some(pair) = self.clause.pair else {
            return Found::nothing("its line names the base alone, or more than two versions");
        };
        match (token.claim, self.clause.cost, self.clause.test) {
            (Claim::Count(number), None, _) => self.count(subject, pair, token, Some(number)),
            (Claim::All, None, _) => self.count(subject, pair, token, None),
            (Claim::Stable, cost, test) => self.stable(subject, pair, cost, test),
            (Claim::Percent(value, decimals), Some(cost), Some(test)) => {
                self.of_cost(subject, pair, (test, cost), (value, decimals))
            }
            (Claim::Percent(value, decimals), None, Some(test)) if self.is_about_test() => {
                self.of_test(subject, pair, test, (value, decimals))
            }
            (Claim::Percent(value, decimals), None, _) => {
                self.of_group(subject, pair, value, decimals)
            }
            (Claim::Factor(value, decimals) | Claim::Plain(value, decimals), None, Some(test)) => {
                let Some(ratio) = subject.tests[test].ratio(pair[0], pair[1]) else {
                    return self.no_number(subject, pair);
                };
                match is_rounded(value, decimals, ratio) {
                    true => Found::Yes,
                    false => Found::No(format!("{ratio:.2}")),
                }
            }
            (Claim::Count(_) | Claim::All, Some(_), _) => {
                Found::nothing("its line is about a cost, and tests are counted by throughput")
            }
            (Claim::Factor(..) | Claim::Plain(..), Some(_), Some(_)) => {
                Found::nothing("costs are compared in percent")
            }
            (_, _, None) => Found::nothing(NO_TEST),
        }
    }

    /// The group from one release to the other, or why there is none.
    fn change(&self, subject: &Subject, pair: [usize; 2]) -> Result<Change, Found> {
        let Some(group) = self.clause.group else {
            return Err(Found::nothing(NO_GROUP));
        };
        Change::of(subject, group, pair[0], pair[1]).ok_or_else(|| self.no_number(subject, pair))
    }

    fn no_number(&self, subject: &Subject, [from, to]: [usize; 2]) -> Found {
        Found::nothing(format!(
            "the campaign has no throughput of it in both {} and {}",
            subject.name(from),
            subject.name(to)
        ))
    }

    /// A number of tests of a class; `None` claims all of them.
    fn count(
        &self,
        subject: &Subject,
        pair: [usize; 2],
        token: &Token,
        number: Option<usize>,
    ) -> Found {
        let change = match self.change(subject, pair) {
            Ok(change) => change,
            Err(nothing) => return nothing,
        };
        let all = change.members.len();
        let (found, word) = match token.class {
            Some(Counted::Better) => (change.gainers().len(), "faster"),
            Some(Counted::Same) => (change.unchanged(), "similar"),
            Some(Counted::Worse) => (change.losers().len(), "slower"),
            None => (all, "tests"),
        };
        match number.unwrap_or(all) == found {
            true => Found::Yes,
            false => Found::No(format!("{found} of {all}: {word}")),
        }
    }

    fn stable(
        &self,
        subject: &Subject,
        pair: [usize; 2],
        cost: Option<Cost>,
        test: Option<usize>,
    ) -> Found {
        let Some(cost) = cost else {
            let change = match self.change(subject, pair) {
                Ok(change) => change,
                Err(nothing) => return nothing,
            };
            let ratios: Vec<f64> = change.members.iter().map(|(_, ratio, _)| *ratio).collect();
            return match is_stable(&ratios) {
                true => Found::Yes,
                false => Found::No(format!("median {}", signed(change.median))),
            };
        };
        let Some(test) = test else {
            return Found::nothing(NO_TEST);
        };
        let costs = Costs::of(self.view, subject, test, cost);
        let ratio = costs.and_then(|costs| {
            let ratio = costs.ratio(pair[0], pair[1])?;
            Some((ratio, costs.is_stable(ratio)))
        });
        match ratio {
            None => no_cost(subject, test),
            Some((_, true)) => Found::Yes,
            Some((ratio, _)) => Found::No(whole_change(ratio)),
        }
    }

    /// Whether a percentage of throughput is of the test that its line names, and not of a group of
    /// which the line names an exception.
    fn is_about_test(&self) -> bool {
        const OF_GROUPS: [&str; 5] = ["median", "except", "common", "tests", "steps"];
        let text = self.clause.text.to_lowercase();
        self.clause.is_named && !OF_GROUPS.iter().any(|word| text.contains(word))
    }

    /// A percentage of one test's throughput.
    fn of_test(
        &self,
        subject: &Subject,
        pair: [usize; 2],
        test: usize,
        (value, decimals): (f64, usize),
    ) -> Found {
        let Some(ratio) = subject.tests[test].ratio(pair[0], pair[1]) else {
            return self.no_number(subject, pair);
        };
        let percent = 100.0 * (ratio - 1.0).abs();
        let is_rounded = is_rounded(value, decimals, percent)
            || decimals == 0 && to_five(percent) == value as i64;
        let is_up = direction(&self.clause.text);
        match is_rounded && is_up.is_none_or(|is_up| is_up == (ratio >= 1.0)) {
            true => Found::Yes,
            false => Found::No(signed(ratio)),
        }
    }

    /// A percentage of a group: a median, an extreme, or as posts round them.
    fn of_group(&self, subject: &Subject, pair: [usize; 2], value: f64, decimals: usize) -> Found {
        let change = match self.change(subject, pair) {
            Ok(change) => change,
            Err(nothing) => return nothing,
        };
        let ratios: Vec<f64> = change.members.iter().map(|(_, ratio, _)| *ratio).collect();
        let extremes = [
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(0.0, f64::max),
        ];
        let middles = [
            median(&change.losers()),
            median(&change.gainers()),
            Some(change.median),
        ];
        let known: Vec<f64> = middles.into_iter().flatten().chain(extremes).collect();
        let percent = |ratio: &f64| 100.0 * (ratio - 1.0).abs();
        let is_up = direction(&self.clause.text);
        let same = |ratio: &&f64| is_up.is_none_or(|is_up| is_up == (**ratio >= 1.0));
        let is_it = known.iter().filter(same).map(percent).any(|known| {
            is_rounded(value, decimals, known)
                || decimals == 0
                    && [to_five(known), rounded_percent(known)].contains(&(value as i64))
        });
        match is_it {
            true => Found::Yes,
            false => Found::No(format!("median {}", signed(known[0]))),
        }
    }

    /// A percentage of a cost of one test.
    fn of_cost(
        &self,
        subject: &Subject,
        pair: [usize; 2],
        (test, cost): (usize, Cost),
        (value, decimals): (f64, usize),
    ) -> Found {
        let Some(costs) = Costs::of(self.view, subject, test, cost) else {
            return no_cost(subject, test);
        };
        let Some(exact) = costs.ratio(pair[0], pair[1]) else {
            return no_cost(subject, test);
        };
        let is_up = direction(&self.clause.text);
        let is_it = |ratio: f64| {
            is_up.is_none_or(|is_up| is_up == (ratio >= 1.0))
                && is_rounded(value, decimals, 100.0 * (ratio - 1.0).abs())
        };
        if is_it(exact) {
            return Found::Yes;
        }
        let [olds, news] = pair.map(|place| twins(subject, place));
        for old in &olds {
            for new in &news {
                let names = [old, new].map(|place| subject.releases[*place].name.as_str());
                if costs.ratio(*old, *new).is_some_and(is_it) {
                    return Found::Otherwise(format!(
                        "{}; {} and {} give it",
                        whole_change(exact),
                        names[0],
                        names[1]
                    ));
                }
                if let Some((a, b)) = rounded_rows(subject, &costs, *old, *new)
                    && is_it(b / a)
                {
                    return Found::Otherwise(format!(
                        "{}; {b:.2}/{a:.2} of the rounded rows of {} and {} give it",
                        whole_change(exact),
                        names[1],
                        names[0]
                    ));
                }
            }
        }
        Found::No(whole_change(exact))
    }
}

fn no_cost(subject: &Subject, test: usize) -> Found {
    let name = &subject.tests[test].name;
    Found::nothing(format!(
        "the campaign does not have this cost of {name} in both versions"
    ))
}

/// Whether the words of a clause say more (or less); `None` without a word, or with both.
pub(super) fn direction(text: &str) -> Option<bool> {
    const UP: [&str; 8] = [
        "more", "faster", "grow", "gain", "improve", "increase", "better", "higher",
    ];
    const DOWN: [&str; 10] = [
        "less", "slower", "drop", "lose", "lost", "regress", "decrease", "reduce", "worse", "lower",
    ];
    let text = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match (has(&UP), has(&DOWN)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// A release and its neighbours in patch level.
fn twins(subject: &Subject, place: usize) -> Vec<usize> {
    let release = &subject.releases[place];
    let others = (0..subject.releases.len())
        .filter(|other| *other != place && subject.releases[*other].is_twin_of(release));
    std::iter::once(place).chain(others).collect()
}

/// Both values relative to the base as tables print them, with two decimals.
fn rounded_rows(subject: &Subject, costs: &Costs, old: usize, new: usize) -> Option<(f64, f64)> {
    let rounded = |place: usize| {
        let ratio = costs.ratio(subject.base, place)?;
        Some((100.0 * ratio).round() / 100.0)
    };
    let (old, new) = (rounded(old)?, rounded(new)?);
    (old > 0.0).then_some((old, new))
}

/// Whether a printed number is what rounding makes of an exact one.
pub(super) fn is_rounded(printed: f64, decimals: usize, exact: f64) -> bool {
    let scale = 10f64.powi(decimals as i32);
    ((exact * scale).round() / scale - printed).abs() < 1e-9
}
