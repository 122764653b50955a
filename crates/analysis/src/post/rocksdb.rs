//! RocksDB: the worst of the steps with writes, and dips inside the series.

use super::material::{Group, Subject};
use super::noise::Dip;
use super::text::ratio;
use super::thresholds::is_stable_test;
use super::value::{Said, Sentence};

/// `at most 3% less throughput in 8.8 than in 8.0 (worst: fillseq at 0.97)`.
pub(super) fn at_most(subject: &Subject, group: &Group) -> Option<Sentence> {
    let (base, newest) = (subject.base, subject.newest());
    if base == newest {
        return None;
    }
    let (test, worst) = group
        .tests
        .iter()
        .filter_map(|test| Some((*test, subject.tests[*test].ratio(base, newest)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = &subject.tests[test].name;
    let (old, new) = (subject.name(base), subject.name(newest));
    let percent = (100.0 * (1.0 - worst)).round();
    let text = if worst >= 1.0 {
        format!("no step has less throughput in {new} than in {old}")
    } else if percent < 1.0 {
        format!("no step has 1% less throughput in {new} than in {old} (worst: {name})")
    } else {
        format!(
            "at most {percent:.0}% less throughput in {new} than in {old} (worst: {name} at {})",
            ratio(worst)
        )
    };
    Some(Sentence {
        text,
        cells: vec![said(subject, test, [base, newest], worst)],
    })
}

/// A dip that a later release has no more.
pub(super) fn dip(subject: &Subject, dip: &Dip) -> Sentence {
    let [before, at, after] = dip.places;
    let of = &subject.tests[dip.test];
    let to_base = of.ratio(subject.base, at).unwrap_or(dip.ratio);
    let behind = of.ratio(before, after).unwrap_or(1.0);
    let is_back = behind >= 1.0 || is_stable_test(behind);
    let then = &subject.releases[after].name;
    let mut cells = vec![said(subject, dip.test, [subject.base, at], to_base)];
    let end = match is_back {
        true => format!("is back in {then}"),
        false => {
            cells.push(said(subject, dip.test, [before, after], behind));
            format!(
                "is at {} of {} in {then}",
                ratio(behind),
                subject.name(before)
            )
        }
    };
    Sentence {
        text: format!(
            "{} dips in {}: {} of {}, and {end}",
            of.name,
            subject.releases[at].name,
            ratio(to_base),
            subject.name(subject.base),
        ),
        cells,
    }
}

fn said(subject: &Subject, test: usize, [from, to]: [usize; 2], ratio: f64) -> Said {
    Said {
        test: subject.tests[test].name.clone(),
        metric: "throughput",
        from: subject.releases[from].name.clone(),
        to: subject.releases[to].name.clone(),
        ratio,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::subject;
    use super::super::noise::dips;
    use super::*;

    #[test]
    fn a_dip_is_back_only_where_the_loss_is_gone() {
        for (after, words) in [
            (99.0, "a dips in 8.4.7: 0.50 of 8.0, and is back in 9.5.0"),
            (
                60.0,
                "a dips in 8.4.7: 0.50 of 8.0, and is at 0.60 of 8.0 in 9.5.0",
            ),
        ] {
            let subject = subject(
                &["8.0.44", "8.4.7", "9.5.0"],
                &[("a", &[100.0, 50.0, after])],
            );
            let found = dips(&subject, &[0]);
            assert_eq!(dip(&subject, &found[0]).text, words);
        }
    }

    #[test]
    fn at_most_needs_two_versions_and_rounds_no_loss_away() {
        let one = subject(&["8.0.44"], &[("a", &[100.0])]);
        assert_eq!(at_most(&one, &one.groups[0]), None);
        for (rate, words) in [
            (
                99.6,
                "no step has 1% less throughput in 8.4 than in 8.0 (worst: a)",
            ),
            (100.1, "no step has less throughput in 8.4 than in 8.0"),
            (
                99.4,
                "at most 1% less throughput in 8.4 than in 8.0 (worst: a at 0.99)",
            ),
        ] {
            let two = subject(&["8.0.44", "8.4.7"], &[("a", &[100.0, rate])]);
            assert_eq!(at_most(&two, &two.groups[0]).unwrap().text, words);
        }
    }
}
