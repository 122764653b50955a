//! What a group of tests did from one release to another, and the sentence that says so.

use itertools::{Either, Itertools};
use plimsoll_stats::median;

use super::material::{Group, Subject};
use super::text::{change as signed, count, gain, list, ratio};
use super::thresholds::{Band, Class, is_stable, is_stable_test, rounded_percent, to_five};
use super::value::{Said, Sentence};

/// Up to so many tests a common direction has a magnitude.
const FEW_TESTS: usize = 5;
/// Extremes that differ by at most this much, in percent, are a range.
const NARROW: i64 = 5;

/// A group from one release to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Places of releases.
    pub from: usize,
    pub to: usize,
    pub kind: Kind,
    /// Test, new / old, and what that is called.
    pub members: Vec<(usize, f64, Class)>,
    /// The median of the ratios.
    pub median: f64,
    /// Tests of the group without a number in one of both.
    pub missing: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Stable,
    /// All tests lose.
    AllLose,
    /// All tests gain.
    AllGain,
    Counted,
}

/// What all members of one direction are: big, small, or some of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Big,
    Small,
    Mixed,
}

impl Size {
    fn word(self) -> &'static str {
        match self {
            Self::Big => "big ",
            Self::Small => "small ",
            Self::Mixed => "",
        }
    }
}

impl Change {
    /// `None` if no test has both.
    pub fn of(subject: &Subject, group: &Group, from: usize, to: usize) -> Option<Self> {
        let (missing, ratios): (Vec<usize>, Vec<(usize, f64)>) =
            group
                .tests
                .iter()
                .partition_map(|test| match subject.tests[*test].ratio(from, to) {
                    Some(ratio) => Either::Right((*test, ratio)),
                    None => Either::Left(*test),
                });
        Self::of_ratios(&ratios, subject.band, [from, to], missing)
    }

    /// Of tests, by any number of theirs, with new / old. `None` without a test.
    pub fn of_ratios(
        ratios: &[(usize, f64)],
        band: Band,
        [from, to]: [usize; 2],
        missing: Vec<usize>,
    ) -> Option<Self> {
        let class = |(test, ratio): &(usize, f64)| (*test, *ratio, band.class(*ratio));
        let members: Vec<(usize, f64, Class)> = ratios.iter().map(class).collect();
        let ratios: Vec<f64> = members.iter().map(|(_, ratio, _)| *ratio).collect();
        let kind = if is_stable(&ratios) {
            Kind::Stable
        } else if members.iter().all(|(.., class)| class.is_loss()) {
            Kind::AllLose
        } else if members.iter().all(|(.., class)| class.is_gain()) {
            Kind::AllGain
        } else {
            Kind::Counted
        };
        Some(Self {
            from,
            to,
            kind,
            median: median(&ratios)?,
            missing,
            members,
        })
    }

    /// Those of a direction: their ratios and their size.
    fn side(&self, is_it: fn(Class) -> bool) -> (Vec<f64>, Size) {
        let of: Vec<(f64, Class)> = self
            .members
            .iter()
            .filter(|(.., class)| is_it(*class))
            .map(|(_, ratio, class)| (*ratio, *class))
            .collect();
        let is_big = |class: Class| matches!(class, Class::BigLoss | Class::BigGain);
        let size = if of.iter().all(|(_, class)| is_big(*class)) {
            Size::Big
        } else if of.iter().all(|(_, class)| !is_big(*class)) {
            Size::Small
        } else {
            Size::Mixed
        };
        (of.into_iter().map(|(ratio, _)| ratio).collect(), size)
    }

    pub fn is_stable(&self) -> bool {
        self.kind == Kind::Stable
    }

    pub fn losers(&self) -> Vec<f64> {
        self.side(Class::is_loss).0
    }

    pub fn gainers(&self) -> Vec<f64> {
        self.side(Class::is_gain).0
    }

    pub fn big_losers(&self) -> usize {
        let is_big = |(.., class): &&(usize, f64, Class)| *class == Class::BigLoss;
        self.members.iter().filter(is_big).count()
    }

    pub fn unchanged(&self) -> usize {
        self.members.len() - self.losers().len() - self.gainers().len()
    }

    /// The cells it rests on.
    pub fn said(&self, subject: &Subject) -> Vec<Said> {
        let said = |(test, ratio, _): &(usize, f64, Class)| Said {
            test: subject.tests[*test].name.clone(),
            metric: "throughput",
            from: subject.releases[self.from].name.clone(),
            to: subject.releases[self.to].name.clone(),
            ratio: *ratio,
        };
        self.members.iter().map(said).collect()
    }

    /// `from 5.7 to 8.0 there are big regressions for all 9 tests (median -20.8%)`.
    pub fn sentence(&self, subject: &Subject) -> Sentence {
        let span = subject.span(self.from, self.to);
        let without = self.without(subject);
        let span = match self.kind {
            Kind::Stable if self.is_run(subject) => {
                let (old, new) = (subject.name(self.from), subject.name(self.to));
                format!("from {old} through {new}")
            }
            _ => span,
        };
        let result = self.result(subject.noun(), || self.exceptions(subject));
        Sentence {
            text: format!("{span} {result}{without}"),
            cells: self.said(subject),
        }
    }

    /// `there are big regressions for all 9 tests (median -20.8%)`: the sentence without what it
    /// is from and to. `exceptions` is asked where the group is stable.
    pub fn result(&self, noun: &str, exceptions: impl Fn() -> String) -> String {
        match self.kind {
            Kind::Stable => format!(
                "throughput is stable (median {}){}",
                signed(self.median),
                exceptions()
            ),
            Kind::AllLose | Kind::AllGain => self.common(noun),
            Kind::Counted => format!("there are {}", self.counts(noun)),
        }
    }

    /// `; no number in both for insert`: what *all* and *stable* are not about.
    pub fn without(&self, subject: &Subject) -> String {
        let names: Vec<String> = self
            .missing
            .iter()
            .map(|test| subject.tests[*test].name.clone())
            .collect();
        match names.len() {
            0 => String::new(),
            few if few <= FEW_TESTS => format!("; no number in both for {}", list(&names)),
            all => format!("; no number in both for {}", count(all, subject.noun())),
        }
    }

    /// Whether series are between both ends.
    fn is_run(&self, subject: &Subject) -> bool {
        subject.is_series && self.inner(subject).next().is_some()
    }

    fn inner<'a>(&'a self, subject: &'a Subject) -> impl Iterator<Item = usize> + 'a {
        let speakers = subject.speakers.iter().copied();
        speakers.filter(|place| subject.is_series && (self.from + 1..self.to).contains(place))
    }

    /// Tests outside the limits of a stable group, at its end or on the way.
    pub fn exceptions(&self, subject: &Subject) -> String {
        let mark = |test: usize| match subject.is_two_state(test) {
            true => ", two states",
            false => "",
        };
        let mut named = Vec::new();
        for (test, at_end, _) in &self.members {
            let name = &subject.tests[*test].name;
            if !is_stable_test(*at_end) {
                named.push(format!("{name} ({}{})", ratio(*at_end), mark(*test)));
                continue;
            }
            let on_the_way = self.inner(subject).find_map(|place| {
                let at = subject.tests[*test].ratio(self.from, place)?;
                (!is_stable_test(at)).then_some((place, at))
            });
            if let Some((place, at)) = on_the_way {
                let of = subject.name(place);
                named.push(format!("{name} ({} in {of}{})", ratio(at), mark(*test)));
            }
        }
        match named.is_empty() {
            true => String::new(),
            false => format!(", except {}", list(&named)),
        }
    }

    /// All tests in one direction.
    fn common(&self, noun: &str) -> String {
        let is_loss = self.kind == Kind::AllLose;
        let (ratios, size) = match is_loss {
            true => self.side(Class::is_loss),
            false => self.side(Class::is_gain),
        };
        let word = if is_loss {
            "regressions"
        } else {
            "improvements"
        };
        let median = signed(self.median);
        let all = match ratios.len() {
            1 => {
                let word = word.trim_end_matches('s');
                let size = size.word();
                return format!("there is a {size}{word} of the only {noun} ({median})");
            }
            2 => format!("both {noun}s"),
            all => format!("all {all} {noun}s"),
        };
        if size == Size::Mixed && ratios.len() <= FEW_TESTS {
            return format!(
                "throughput {} (median {median})",
                magnitude(&ratios, is_loss)
            );
        }
        format!(
            "there are {}{word} for {all} (median {median})",
            size.word()
        )
    }

    /// `big improvements for 5 tests, no changes for 2 tests and small regressions for 2 tests`.
    fn counts(&self, noun: &str) -> String {
        let (gainers, of_gains) = self.side(Class::is_gain);
        let (losers, of_losses) = self.side(Class::is_loss);
        let classes = [
            (gainers.len(), of_gains.word(), "improvements"),
            (self.unchanged(), "", "no changes"),
            (losers.len(), of_losses.word(), "regressions"),
        ];
        let parts: Vec<String> = classes
            .iter()
            .filter(|(number, ..)| *number > 0)
            .map(|(number, size, word)| format!("{size}{word} for {}", count(*number, noun)))
            .collect();
        list(&parts)
    }

    /// What the newest release is against the base: the common result, else counts.
    pub fn overall(&self, subject: &Subject) -> Sentence {
        let (base, newest) = (subject.name(self.from), subject.name(self.to));
        let text = match self.common_result(subject.noun()) {
            _ if self.kind == Kind::Stable => format!(
                "for {newest} vs {base} throughput is stable (median {}){}",
                signed(self.median),
                self.exceptions(subject)
            ),
            Some(common) => format!("for {newest} the common result is {common} vs {base}"),
            None => format!("for {newest} vs {base}: {}", self.tally()),
        };
        Sentence {
            text: format!("{text}{}", self.without(subject)),
            cells: self.said(subject),
        }
    }

    /// The ratios of the direction that more than half of the tests have, and whether it is down.
    fn common_side(&self) -> Option<(Vec<f64>, bool)> {
        let (losers, gainers) = (self.losers(), self.gainers());
        let all = self.members.len();
        if 2 * losers.len() > all {
            Some((losers, true))
        } else if 2 * gainers.len() > all {
            Some((gainers, false))
        } else {
            None
        }
    }

    /// How many tests a common result is about; `None` if there is none.
    pub fn in_common(&self) -> Option<usize> {
        Some(self.common_side()?.0.len())
    }

    /// `~20% less throughput (6 of 9 tests, median of those -20.4%)`, if more than half of the
    /// tests have one direction.
    pub fn common_result(&self, noun: &str) -> Option<String> {
        let all = self.members.len();
        let (of, is_loss) = self.common_side()?;
        let middle = median(&of)?;
        let much = match is_loss {
            true => format!("~{}% less", rounded_percent(100.0 * (1.0 - middle))),
            false if middle < 1.3 => {
                format!("~{}% more", rounded_percent(100.0 * (middle - 1.0)))
            }
            false => format!("~{} the", gain(middle)),
        };
        Some(format!(
            "{much} throughput ({} of {}, median of those {})",
            of.len(),
            count(all, noun),
            signed(middle)
        ))
    }

    /// `5 are slower, 3 are similar, 2 are faster`.
    pub fn tally(&self) -> String {
        let classes = [
            (self.losers().len(), "slower"),
            (self.unchanged(), "similar"),
            (self.gainers().len(), "faster"),
        ];
        let parts: Vec<String> = classes
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| match number {
                1 => format!("1 is {word}"),
                _ => format!("{number} are {word}"),
            })
            .collect();
        parts.join(", ")
    }
}

/// `drops by 10% to 15%`, `drops by about 15%`; gains from 1.3 on as factors.
fn magnitude(ratios: &[f64], is_loss: bool) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let verb = if is_loss { "drops" } else { "grows" };
    if !is_loss && most >= 1.3 {
        return format!("grows to between {least:.1}X and {most:.1}X");
    }
    let percent = |ratio: f64| to_five(100.0 * (ratio - 1.0).abs());
    let (mut low, mut high) = (percent(least), percent(most));
    if low > high {
        (low, high) = (high, low);
    }
    let middle = median(ratios).map_or(0, percent);
    match high - low {
        0 => format!("{verb} by about {low}%"),
        apart if apart <= NARROW => format!("{verb} by {low}% to {high}%"),
        _ => format!("{verb} by about {middle}%"),
    }
}

/// Every pair of neighbouring series, or of a config and the base. Neighbouring stable pairs are
/// one while the whole run is stable.
pub(crate) fn runs(subject: &Subject, group: &Group) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::new();
    for [from, to] in subject.pairs() {
        let Some(next) = Change::of(subject, group, from, to) else {
            continue;
        };
        let merged = all
            .last()
            .filter(|last| [last.kind, next.kind] == [Kind::Stable; 2] && last.to == next.from)
            .and_then(|last| Change::of(subject, group, last.from, next.to))
            .filter(|merged| merged.kind == Kind::Stable);
        match merged {
            Some(merged) => *all.last_mut().expect("it was merged with") = merged,
            None => all.push(next),
        }
    }
    all
}

/// The newest release that speaks against the base; `None` if they are one, and of configs.
pub(crate) fn overall(subject: &Subject, group: &Group) -> Option<Change> {
    let newest = subject.newest();
    let is_other = subject.is_series && newest != subject.base;
    is_other
        .then(|| Change::of(subject, group, subject.base, newest))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::subject;
    use super::*;

    #[test]
    fn a_test_without_a_number_is_named_beside_all_and_stable() {
        for (old, words) in [
            (
                100.0,
                "from 8.0 to 8.4 there are big regressions for both tests (median -20.0%); no \
                 number in both for lost",
            ),
            (
                80.0,
                "from 8.0 to 8.4 throughput is stable (median +0.0%); no number in both for lost",
            ),
        ] {
            let subject = subject(
                &["8.0.44", "8.4.7"],
                &[
                    ("a", &[old, 80.0]),
                    ("b", &[old, 80.0]),
                    ("lost", &[100.0, f64::NAN]),
                ],
            );
            let change = Change::of(&subject, &subject.groups[0], 0, 1).unwrap();
            assert_eq!(change.sentence(&subject).text, words);
        }
    }

    #[test]
    fn a_stable_group_has_no_common_loss_beside_it() {
        let subject = subject(
            &["5.7.44", "8.0.44", "8.4.7"],
            &[
                ("a", &[100.0, 80.0, 96.0]),
                ("b", &[100.0, 80.0, 96.0]),
                ("c", &[100.0, 80.0, 96.0]),
                ("d", &[100.0, 80.0, 92.0]),
            ],
        );
        let change = overall(&subject, &subject.groups[0]).unwrap();
        assert_eq!(
            change.overall(&subject).text,
            "for 8.4 vs 5.7 throughput is stable (median -4.0%), except a (0.80 in 8.0), b (0.80 \
             in 8.0), c (0.80 in 8.0) and d (0.92)"
        );
    }

    #[test]
    fn magnitudes_of_few_tests() {
        for (ratios, is_loss, words) in [
            (&[0.856, 0.866, 0.902][..], true, "drops by 10% to 15%"),
            (&[0.812, 0.867, 0.898], true, "drops by about 15%"),
            (&[0.85, 0.86], true, "drops by about 15%"),
            (&[1.08, 1.13], false, "grows by 10% to 15%"),
            (&[1.08, 1.42], false, "grows to between 1.1X and 1.4X"),
        ] {
            assert_eq!(magnitude(ratios, is_loss), words);
        }
    }
}
