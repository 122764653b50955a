//! The words of a post for other reports: classes of tests and the sentence of a group.
//!
//! Thresholds stay in `thresholds` and sentences in `changes`; nobody else has any.

use super::changes::Change;
use super::material::{Kind, Subject, has_writes, subjects};
use super::text::{list, ratio};
use super::thresholds::{Band, is_stable_test};
use super::{engines, has_verdicts, single};
use crate::view::View;
use plimsoll_stats::median;

/// What ends the name of a group whose rows are a test with several numbers of users.
pub(crate) const OVER_USERS: &str = " over users";

/// What two cells' single runs are called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PairWords {
    /// What the words mean: the limits of a regression and of an improvement.
    pub meaning: String,
    /// By row: `big regression`, `no change`; `None` for a row without a ratio that counts.
    pub classes: Vec<Option<&'static str>>,
    /// Group and sentence: `there are big regressions for all 9 tests (median -20.5%); the common
    /// result is ~20% less throughput (...)`.
    pub groups: Vec<(String, String)>,
}

/// A row of a comparison.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowRatio<'a> {
    pub group: &'a str,
    pub step: &'a str,
    /// b / a in full precision; `None` where it does not count.
    pub ratio: Option<f64>,
}

/// The words of a comparison of two cells. The band is as wide as the noisier side's twins make
/// it. Groups are in the order of their first row. Two products are described as engines are in a
/// post, and have no classes: neither is a regression of the other.
pub(crate) fn of_pair(a: (&View, usize), b: (&View, usize), rows: &[RowRatio<'_>]) -> PairWords {
    let sides = [a, b].map(Side::of);
    if let [Some(of_a), Some(of_b)] = &sides
        && ![of_a, of_b]
            .iter()
            .any(|side| side.subject.product.is_empty())
        && of_a.subject.product != of_b.subject.product
    {
        let names = [of_a, of_b].map(|side| side.name());
        return of_engines(&names, rows);
    }
    // What two neighbours differ by is the result, and no control of itself.
    let compared = match &sides {
        [Some(of_a), Some(of_b)] if std::ptr::eq(a.0, b.0) => {
            let (one, other) = (of_a.place, of_b.place);
            Some([one.min(other), one.max(other)])
        }
        _ => None,
    };
    let sides = || sides.iter().flatten();
    let noise = sides().filter_map(|side| side.subject.noise.p95_beside(compared));
    let band = Band::new(noise.max_by(f64::total_cmp));
    let is_claimed = |row: &&RowRatio<'_>| !sides().any(|side| side.is_unclaimed(row.step));
    let claimed: Vec<RowRatio<'_>> = rows
        .iter()
        .map(|row| RowRatio {
            ratio: row.ratio.filter(|_| is_claimed(&row)),
            ..*row
        })
        .collect();
    let is_two_state = |step: &str| sides().any(|side| side.is_two_state(step));
    of_rows(band, &claimed, is_two_state)
}

/// Whether a cell is one of RocksDB, whose steps are grouped by what they write.
pub(crate) fn is_rocksdb(of: (&View, usize)) -> bool {
    Side::of(of).is_some_and(|side| side.subject.kind == Kind::Rocksdb)
}

/// A cell in the subject that it is a release of.
struct Side {
    subject: Subject,
    place: usize,
}

impl Side {
    fn of((view, cell): (&View, usize)) -> Option<Self> {
        let place = |of: &Subject| of.releases.iter().position(|of| of.cell == cell);
        let mut all = subjects(view, &[]).into_iter();
        all.find_map(|subject| {
            let place = place(&subject)?;
            Some(Self { subject, place })
        })
    }

    /// `PostgreSQL 18.1`.
    fn name(&self) -> String {
        let release = &self.subject.releases[self.place];
        format!("{} {}", self.subject.title(), release.name)
    }

    fn test(&self, step: &str) -> Option<usize> {
        let mut tests = self.subject.tests.iter();
        tests.position(|test| test.name == step)
    }

    /// Whether a post says nothing of the step: it is in a group that is only shown, or would be if
    /// it were in the tables.
    fn is_unclaimed(&self, step: &str) -> bool {
        if self.subject.kind == Kind::Rocksdb {
            return !has_writes(step);
        }
        let test = self.test(step);
        let mut groups = self.subject.groups.iter().filter(|group| !group.is_claimed);
        test.is_some_and(|test| groups.any(|group| group.tests.contains(&test)))
    }

    fn is_two_state(&self, step: &str) -> bool {
        let test = self.test(step);
        test.is_some_and(|test| self.subject.is_two_state(test))
    }
}

/// Rows by group, each with its place among all and its ratio.
type Grouped<'a> = Vec<(&'a str, Vec<(usize, f64)>)>;

fn grouped<'a>(rows: &[RowRatio<'a>]) -> Grouped<'a> {
    let mut groups: Grouped<'a> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        let Some(ratio) = row.ratio else { continue };
        match groups.iter_mut().find(|(name, _)| *name == row.group) {
            Some((_, members)) => members.push((place, ratio)),
            None => groups.push((row.group, vec![(place, ratio)])),
        }
    }
    groups
}

/// What a group's rows are.
fn noun_of(group: &str) -> &'static str {
    match group {
        group if group.ends_with(OVER_USERS) => "level",
        group if group.ends_with("steps") => "step",
        _ => "test",
    }
}

fn of_engines(names: &[String; 2], rows: &[RowRatio<'_>]) -> PairWords {
    let sentence = |(name, members): &(&str, Vec<(usize, f64)>)| {
        let ratios: Vec<f64> = members.iter().map(|(_, ratio)| *ratio).collect();
        let middle = median(&ratios)?;
        let words = engines::words(names, &ratios, middle, noun_of(name));
        Some(((*name).to_owned(), words))
    };
    PairWords {
        meaning: engines::MEANING.to_owned(),
        classes: vec![None; rows.len()],
        groups: grouped(rows).iter().filter_map(sentence).collect(),
    }
}

fn of_rows(band: Band, rows: &[RowRatio<'_>], is_two_state: impl Fn(&str) -> bool) -> PairWords {
    let sentence = |(name, members): &(&str, Vec<(usize, f64)>)| {
        let change = Change::of_ratios(members, band, [0, 1], Vec::new())?;
        let outside = || {
            let outside = members.iter().filter(|(_, at)| !is_stable_test(*at));
            let named: Vec<String> = outside
                .map(|(place, at)| {
                    let step = rows[*place].step;
                    let mark = if is_two_state(step) {
                        ", two states"
                    } else {
                        ""
                    };
                    format!("{step} ({}{mark})", ratio(*at))
                })
                .collect();
            match named.is_empty() {
                true => String::new(),
                false => format!(", except {}", list(&named)),
            }
        };
        let noun = noun_of(name);
        let text = change.result(noun, outside);
        let common = change
            .common_result(noun)
            .filter(|_| !change.is_stable() && change.members.len() > 1);
        let common = common.map(|common| format!("; the common result is {common}"));
        Some((
            (*name).to_owned(),
            format!("{text}{}", common.unwrap_or_default()),
        ))
    };
    PairWords {
        meaning: band.words(),
        classes: rows
            .iter()
            .map(|row| row.ratio.map(|ratio| band.class(ratio).words()))
            .collect(),
        groups: grouped(rows).iter().filter_map(sentence).collect(),
    }
}

/// A group of a report in a post's sentences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupWords {
    /// With the product where the view has several: `MySQL cx6d, writes`.
    pub title: String,
    /// From series to series, then the newest version against the base.
    pub sentences: Vec<String>,
}

/// What a view's single runs show, with what the words mean before each product's groups. Empty for
/// a view with verdicts, whose words are theirs, and for one version alone.
pub fn in_words(view: &View) -> Vec<GroupWords> {
    if has_verdicts(view) {
        return Vec::new();
    }
    // The base of the report's tables is the first cell.
    let subjects = subjects(view, &[0]);
    let mut all = Vec::new();
    for subject in subjects.iter().filter(|of| of.releases.len() > 1) {
        let prefix = match subjects.len() {
            1 => String::new(),
            _ => format!("{}, ", subject.title()),
        };
        let groups = subject.groups.iter().map(|group| GroupWords {
            title: format!("{prefix}{}", group.title),
            sentences: single::summary_of(view, subject, group)
                .into_iter()
                .map(|sentence| sentence.text)
                .collect(),
        });
        let groups: Vec<GroupWords> = groups.filter(|of| !of.sentences.is_empty()).collect();
        if !groups.is_empty() {
            all.push(GroupWords {
                title: format!("{prefix}what the words mean"),
                sentences: vec![format!(
                    "{}; all of it in {}, so it is not a verdict",
                    subject.band.words(),
                    subject.runs_of_each()
                )],
            });
        }
        all.extend(groups);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ratios: &[(&'static str, &'static str, Option<f64>)]) -> Vec<RowRatio<'static>> {
        let row = |of: &(&'static str, &'static str, Option<f64>)| RowRatio {
            group: of.0,
            step: of.1,
            ratio: of.2,
        };
        ratios.iter().map(row).collect()
    }

    #[test]
    fn two_cells_have_the_words_of_a_post() {
        let rows = rows(&[
            ("point queries", "a", Some(0.80)),
            ("point queries", "b", Some(0.84)),
            ("writes", "c", Some(1.01)),
            ("point queries", "d", None),
            ("writes", "e", Some(0.98)),
            ("writes", "f", Some(1.02)),
            ("writes", "g", Some(0.91)),
        ]);
        let words = of_rows(Band::new(None), &rows, |_| false);
        assert_eq!(
            words.classes,
            [
                Some("big regression"),
                Some("big regression"),
                Some("no change"),
                None,
                Some("no change"),
                Some("no change"),
                Some("small regression"),
            ]
        );
        let groups: Vec<String> = words
            .groups
            .iter()
            .map(|(group, text)| format!("{group}: {text}"))
            .collect();
        assert_eq!(
            groups,
            [
                "point queries: there are big regressions for both tests (median -18.0%); the \
                 common result is ~20% less throughput (2 of 2 tests, median of those -18.0%)",
                "writes: throughput is stable (median -0.5%), except g (0.91)",
            ]
        );
        // Twins that differ by more make it less of a regression.
        let noisy = of_rows(Band::new(Some(0.1)), &rows, |step| step == "g");
        assert_eq!(noisy.classes[6], Some("no change"));
    }
}
