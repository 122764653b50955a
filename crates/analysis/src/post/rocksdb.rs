//! RocksDB: the worst of the steps with writes, and dips inside the series.

use super::material::{Group, Subject};
use super::noise::Dip;
use super::text::ratio;
use super::value::{Said, Sentence};

/// `at most 3% less throughput in 8.8 than in 8.0 (worst: fillseq at 0.97)`.
pub(super) fn at_most(subject: &Subject, group: &Group) -> Option<Sentence> {
    let (base, newest) = (subject.base, subject.newest());
    let (test, worst) = group
        .tests
        .iter()
        .filter_map(|test| Some((*test, subject.tests[*test].ratio(base, newest)?)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let name = &subject.tests[test].name;
    let (old, new) = (subject.name(base), subject.name(newest));
    let percent = (100.0 * (1.0 - worst)).round();
    let text = match percent > 0.0 {
        true => format!(
            "at most {percent:.0}% less throughput in {new} than in {old} (worst: {name} at {})",
            ratio(worst)
        ),
        false => format!("no step has less throughput in {new} than in {old}"),
    };
    Some(Sentence {
        text,
        cells: vec![said(subject, test, [base, newest], worst)],
    })
}

/// A dip that a later release has no more.
pub(super) fn dip(subject: &Subject, dip: &Dip) -> Sentence {
    let [_, at, after] = dip.places;
    let of = &subject.tests[dip.test];
    let to_base = of.ratio(subject.base, at).unwrap_or(dip.ratio);
    Sentence {
        text: format!(
            "{} dips in {}: {} of {}, and is back in {}",
            of.name,
            subject.releases[at].name,
            ratio(to_base),
            subject.name(subject.base),
            subject.releases[after].name
        ),
        cells: vec![said(subject, dip.test, [subject.base, at], to_base)],
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
