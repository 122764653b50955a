//! What comes first: the counts over all tests, and the tl;dr.

use itertools::Itertools;

use super::changes::{Change, Kind, runs};
use super::costs::Explained;
use super::material::{Group, Kind as SubjectKind, Subject};
use super::noise::dips;
use super::text::{change as signed, count, list, ratio};
use super::value::{Bullet, List, Said, Sentence};
use super::{ramps, rocksdb};
use crate::view::View;

/// Of configs with more results by group than this each has one over all groups.
const MOST_LINES: usize = 8;
/// A test against the trend of its group is worth a bullet from this factor on.
const AGAINST_TREND: f64 = 1.3;

/// The newest patch of the series from which on most groups are stable: the second base. `None` if
/// it is the base, or the newest.
pub(crate) fn second_base(subject: &Subject) -> Option<usize> {
    let claimed = claimed(subject).count();
    let ends = claimed_runs(subject).filter_map(|runs| {
        let last = runs.last()?;
        (last.kind == Kind::Stable && last.to == subject.newest()).then_some(last.from)
    });
    let (place, groups) = ends
        .counts()
        .into_iter()
        .max_by_key(|(place, groups)| (*groups, *place))?;
    let is_other = place != subject.base && place != subject.newest();
    (is_other && 2 * groups >= claimed).then_some(place)
}

fn claimed(subject: &Subject) -> impl Iterator<Item = &Group> {
    subject.groups.iter().filter(|group| group.is_claimed)
}

fn claimed_runs(subject: &Subject) -> impl Iterator<Item = Vec<Change>> {
    claimed(subject).map(move |group| runs(subject, group))
}

/// All claimed tests from one release to another, group by group.
struct Over<'a> {
    noun: &'static str,
    groups: Vec<(&'a Group, Change)>,
}

impl<'a> Over<'a> {
    fn of(subject: &'a Subject, from: usize, to: usize) -> Self {
        let changes = claimed(subject)
            .filter_map(|group| Some((group, Change::of(subject, group, from, to)?)));
        Self {
            noun: subject.noun(),
            groups: changes.collect(),
        }
    }

    fn sum(&self, of: impl Fn(&Change) -> usize) -> usize {
        self.groups.iter().map(|(_, change)| of(change)).sum()
    }

    fn said(&self, subject: &Subject) -> Vec<Said> {
        let changes = self.groups.iter();
        changes
            .flat_map(|(_, change)| change.said(subject))
            .collect()
    }

    /// `12 of 32 tests are slower (7 by 12% or more), 8 of those are writes`.
    fn slower(&self) -> String {
        let (slower, all) = (
            self.sum(|of| of.losers().len()),
            self.sum(|of| of.members.len()),
        );
        let big = self.sum(Change::big_losers);
        let of_group = self
            .groups
            .iter()
            .map(|(group, of)| (group, of.losers().len()));
        let most = of_group.max_by_key(|(_, losers)| *losers);
        let big = match big {
            0 => String::new(),
            _ => format!(" ({big} by 12% or more)"),
        };
        let mainly = match most {
            Some((group, losers))
                if self.groups.len() > 1 && slower > 1 && 3 * losers >= 2 * slower =>
            {
                let those = match losers {
                    2 if slower == 2 => "both".to_owned(),
                    all if all == slower => "all".to_owned(),
                    some => format!("{some} of those"),
                };
                format!(", {those} in {}", group.title)
            }
            _ => String::new(),
        };
        match slower {
            _ if all == 1 => String::new(),
            0 => format!("none of {} is slower", count(all, self.noun)),
            1 => format!("1 of {} is slower{big}", count(all, self.noun)),
            _ => format!(
                "{slower} of {} are slower{big}{mainly}",
                count(all, self.noun)
            ),
        }
    }

    fn faster(&self) -> String {
        let gains = self.sum(|of| of.gainers().len());
        if self.sum(|of| of.members.len()) == 1 {
            let word = match (gains, self.sum(|of| of.losers().len())) {
                (1, _) => "faster",
                (_, 1) => "slower",
                _ => "as fast",
            };
            return format!("the only {} is {word}", self.noun);
        }
        match gains {
            0 => String::new(),
            1 => ", 1 is faster".to_owned(),
            faster => format!(", {faster} are faster"),
        }
    }
}

/// Counts over all tests: from series to series up to where most is stable, and from there to the
/// newest.
pub(crate) fn overview(subject: &Subject) -> Option<List> {
    let steady = second_base(subject);
    let mut pairs: Vec<[usize; 2]> = subject
        .pairs()
        .into_iter()
        .filter(|pair| steady.is_none_or(|steady| pair[1] <= steady))
        .collect();
    pairs.extend(steady.map(|steady| [steady, subject.newest()]));
    let sentence = |[from, to]: [usize; 2]| {
        let over = Over::of(subject, from, to);
        (!over.groups.is_empty()).then(|| Sentence {
            text: format!(
                "{}: {}{}",
                subject.span(from, to),
                over.slower(),
                over.faster()
            ),
            cells: over.said(subject),
        })
    };
    let told: Vec<Sentence> = pairs.into_iter().filter_map(sentence).collect();
    (claimed(subject).count() > 1 && !told.is_empty()).then(|| List {
        heading: "Summary over all groups".to_owned(),
        bullets: told.into_iter().map(Bullet::from).collect(),
    })
}

/// At most five bullets; those that have nothing to say are left out.
pub(crate) fn tldr(view: &View, subjects: &[Subject], limit: Sentence) -> Vec<Bullet> {
    let over_users = ramps::headlines(view, subjects);
    // Five bullets at most: peaks matter more than one test of many.
    let exception = match over_users {
        Some(_) => None,
        None => exception(subjects),
    };
    let bullets = [
        news(subjects),
        results(subjects),
        over_users,
        cause(view, subjects),
        exception,
        Some(limit)
            .filter(|limit| !limit.text.is_empty())
            .map(Bullet::from),
    ];
    bullets.into_iter().flatten().collect()
}

/// `MySQL cx6d: ` where there are several subjects.
fn prefix(subjects: &[Subject], subject: &Subject) -> String {
    match subjects.len() {
        1 => String::new(),
        _ => format!("{}: ", subject.title()),
    }
}

/// What the newest series changed.
fn news(subjects: &[Subject]) -> Option<Bullet> {
    let told: Vec<Sentence> = subjects
        .iter()
        .filter_map(|subject| {
            let [.., _, before, newest] = subject.speakers[..] else {
                return None;
            };
            if !subject.is_series {
                return None;
            }
            let over = Over::of(subject, before, newest);
            if over.groups.is_empty() {
                return None;
            }
            let moved = over.sum(|of| of.losers().len() + of.gainers().len());
            let what = if moved == 0 { "nothing new" } else { "new" };
            Some(Sentence {
                text: format!(
                    "{}{what} in {} vs {}: {}{}",
                    prefix(subjects, subject),
                    subject.name(newest),
                    subject.name(before),
                    over.slower(),
                    over.faster()
                ),
                cells: over.said(subject),
            })
        })
        .collect();
    nest("what is new in the newest series", told)
}

/// The newest release against the base, by group; groups with equal results have one sentence.
fn results(subjects: &[Subject]) -> Option<Bullet> {
    let mut told = Vec::new();
    let pairs_of = |subject: &Subject| match subject.is_series {
        true => vec![[subject.base, subject.newest()]],
        false => subject.pairs(),
    };
    // An archive of many configs or numbers of clients would fill a page.
    let groups: usize = subjects.iter().map(|of| claimed(of).count()).sum();
    let are_many = subjects.len() > 1 && groups > MOST_LINES;
    for subject in subjects {
        let pairs = pairs_of(subject);
        let prefix = prefix(subjects, subject);
        let by_group: Vec<Sentence> = pairs
            .iter()
            .flat_map(|pair| against(subject, *pair, &prefix))
            .collect();
        match are_many || (by_group.len() > MOST_LINES && !subject.is_series) {
            false => told.extend(by_group),
            true => told.extend(
                pairs
                    .iter()
                    .filter_map(|pair| over_all(subject, *pair, &prefix)),
            ),
        }
        if subject.kind == SubjectKind::Rocksdb {
            let worst = claimed(subject).filter_map(|group| rocksdb::at_most(subject, group));
            told.extend(worst.map(|of| Sentence {
                text: format!("{prefix}{}", of.text),
                ..of
            }));
        }
    }
    nest("against the base", told)
}

/// Counts over all groups, in place of a line for each of many.
fn over_all(subject: &Subject, [from, to]: [usize; 2], prefix: &str) -> Option<Sentence> {
    let over = Over::of(subject, from, to);
    (from != to && !over.groups.is_empty()).then(|| Sentence {
        text: format!(
            "{prefix}{} vs {}: {}{}",
            subject.name(to),
            subject.name(from),
            over.slower(),
            over.faster()
        ),
        cells: over.said(subject),
    })
}

/// The results of all groups from one release to another.
fn against(subject: &Subject, [from, to]: [usize; 2], prefix: &str) -> Vec<Sentence> {
    let changes: Vec<(&Group, Change)> = claimed(subject)
        .filter_map(|group| Some((group, Change::of(subject, group, from, to)?)))
        .collect();
    let short = |change: &Change| match change.common_result(subject.noun()) {
        _ if change.kind == Kind::Stable => {
            format!(
                "stable{}{}",
                change.exceptions(subject),
                change.without(subject)
            )
        }
        Some(common) => common.split(" (").next().unwrap_or_default().to_owned(),
        None => change.tally(),
    };
    let mut by_result: Vec<Told> = Vec::new();
    for (group, change) in &changes {
        let result = short(change);
        let place = by_result.iter().position(|told| told.result == result);
        let place = place.unwrap_or_else(|| {
            by_result.push(Told {
                result,
                ..Told::default()
            });
            by_result.len() - 1
        });
        by_result[place].add(subject, group, change);
    }
    if from == to {
        return Vec::new();
    }
    let pair = format!("{} vs {}", subject.name(to), subject.name(from));
    by_result
        .into_iter()
        .map(|told| Sentence {
            text: format!(
                "{prefix}{pair}, {}: {}{}",
                list(&told.groups),
                told.result,
                told.which(subject.noun())
            ),
            cells: told.cells,
        })
        .collect()
}

/// A result that one or several groups have.
#[derive(Default)]
struct Told {
    result: String,
    groups: Vec<String>,
    cells: Vec<Said>,
    /// Of a common result: how many tests it is about, of how many.
    common: usize,
    all: usize,
}

impl Told {
    fn add(&mut self, subject: &Subject, group: &Group, change: &Change) {
        self.groups.push(group.title.clone());
        self.cells.extend(change.said(subject));
        if let Some(common) = change.in_common().filter(|_| !change.is_stable()) {
            self.common += common;
            self.all += change.members.len();
        }
    }

    /// ` (6 of 9 tests)`: a common result is none of the others.
    fn which(&self, noun: &str) -> String {
        match self.common == self.all {
            true => String::new(),
            false => format!(" ({} of {})", self.common, count(self.all, noun)),
        }
    }
}

/// One sentence stands alone, several below a line.
pub(super) fn nest(heading: &str, mut told: Vec<Sentence>) -> Option<Bullet> {
    match told.len() {
        0 => None,
        1 => told.pop().map(Bullet::from),
        _ => Some(Bullet {
            sentence: Sentence::plain(format!("{heading}:")),
            nested: told,
        }),
    }
}

/// What explains the largest change of a group between neighbouring series.
fn cause(view: &View, subjects: &[Subject]) -> Option<Bullet> {
    let changes = subjects.iter().flat_map(|subject| {
        let of_group = move |group| {
            let pairs = subject.pairs().into_iter();
            pairs.filter_map(move |[from, to]| {
                let change = Change::of(subject, group, from, to)?;
                Some((subject, group, change))
            })
        };
        claimed(subject).flat_map(of_group)
    });
    let (subject, group, change) = changes
        .filter(|(.., change)| change.losers().len() * 2 > change.members.len())
        .min_by(|a, b| a.2.median.total_cmp(&b.2.median))?;
    // What a gain is explained by is not new overhead, and no headline rests on two states.
    let is_loss = |test, ratio| ratio < 1.0 && !subject.is_two_state(test);
    let pair = [change.from, change.to];
    let of = Explained::between(view, subject, group, &[pair], is_loss);
    if of.by_cpu == 0 {
        return None;
    }
    Some(
        Sentence {
            text: format!(
                "{}the largest loss between {}s is {} in {} (median {}): new CPU overhead \
                 explains {} of {} by more than 5%",
                prefix(subjects, subject),
                subject.each,
                subject.span(change.from, change.to),
                group.title,
                signed(change.median),
                of.by_cpu,
                count(of.all, "drop")
            ),
            cells: [change.said(subject), of.cells].concat(),
        }
        .into(),
    )
}

/// The test that is farthest from the trend of its group, newest against base, or the deepest dip
/// on the way.
fn exception(subjects: &[Subject]) -> Option<Bullet> {
    let all = subjects.iter().flat_map(|subject| {
        let prefix = prefix(subjects, subject);
        let of_groups = claimed(subject).filter_map(|group| against_trend(subject, group));
        let dips = claimed(subject).flat_map(|group| dips(subject, &group.tests));
        let dips = dips.map(|dip| (dip.ratio.ln().abs(), rocksdb::dip(subject, &dip)));
        let all: Vec<(f64, Sentence)> = of_groups.chain(dips).collect();
        all.into_iter().map(move |(distance, sentence)| {
            let text = format!("{prefix}the exception: {}", sentence.text);
            (distance, Sentence { text, ..sentence })
        })
    });
    let (distance, sentence) = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (distance >= AGAINST_TREND.ln()).then(|| sentence.into())
}

/// How far the farthest test is from the median of its group, as a logarithm, and its sentence.
fn against_trend(subject: &Subject, group: &Group) -> Option<(f64, Sentence)> {
    let (base, newest) = (subject.base, subject.newest());
    let change = Change::of(subject, group, base, newest).filter(|_| base != newest)?;
    let distance = |ratio: f64| (ratio / change.median).ln().abs();
    let (test, at, _) = change
        .members
        .iter()
        .filter(|(test, ..)| !subject.is_two_state(*test))
        .max_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))?;
    let name = &subject.tests[*test].name;
    let text = format!(
        "{name} has {}X the throughput of {} in {}; the median of {} is {}",
        ratio(*at),
        subject.name(base),
        subject.name(newest),
        group.title,
        ratio(change.median)
    );
    let mut cells = change.said(subject);
    cells.retain(|said| said.test == *name);
    Some((distance(*at), Sentence { text, cells }))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::subject;
    use super::*;

    fn news_of(newest: f64) -> Option<String> {
        let subject = subject(
            &["5.7.44", "8.0.44", "8.4.7"],
            &[("a", &[100.0, 80.0, newest]), ("b", &[100.0, 80.0, newest])],
        );
        Some(news(&[subject])?.sentence.text)
    }

    #[test]
    fn news_are_gains_too_and_nothing_is_none() {
        assert_eq!(
            news_of(100.0).unwrap(),
            "new in 8.4 vs 8.0: none of 2 tests is slower, 2 are faster"
        );
        assert_eq!(
            news_of(80.0).unwrap(),
            "nothing new in 8.4 vs 8.0: none of 2 tests is slower"
        );
        assert_eq!(news_of(f64::NAN), None);
    }

    #[test]
    fn the_tldr_calls_stable_what_its_group_does() {
        let subject = subject(
            &["8.0.44", "8.4.7"],
            &[
                ("a", &[100.0, 96.0]),
                ("b", &[100.0, 96.0]),
                ("c", &[100.0, 96.0]),
                ("d", &[100.0, 92.0]),
            ],
        );
        let told = against(&subject, [0, 1], "");
        assert_eq!(told[0].text, "8.4 vs 8.0, writes: stable, except d (0.92)");
    }
}
