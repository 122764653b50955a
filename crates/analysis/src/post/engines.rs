//! Different engines side by side: the newest version of each, group by group.

use plimsoll_stats::median;

use super::material::{Group, Subject};
use super::text::{count, ratio};
use super::value::{Bullet, List, Part, Said, Section, Sentence};

/// Medians in this range are about as fast: engines differ by more than versions do.
const ABOUT_AS_FAST: std::ops::RangeInclusive<f64> = 0.87..=1.15;

/// What the words mean, for readers.
pub(super) const MEANING: &str = "two engines: about as fast if the median is 0.87 to 1.15, faster \
                                  or slower if the median and two thirds are on one side";

/// A section if there are several products: each against the first. What is of no known product is
/// not compared.
pub(super) fn section(subjects: &[Subject]) -> Option<Section> {
    let is_known = |subject: &&Subject| !subject.product.is_empty();
    let first = subjects.iter().find(is_known)?;
    let others = subjects.iter().filter(is_known);
    let mut sentences = Vec::new();
    for other in others.filter(|other| other.product != first.product) {
        for group in first.groups.iter().filter(|group| group.is_claimed) {
            sentences.extend(sentence(first, other, group));
        }
    }
    (!sentences.is_empty()).then(|| Section {
        title: "Results: engines side by side".to_owned(),
        parts: vec![Part::List(List {
            heading: "One version of each, as named; configs differ as well".to_owned(),
            bullets: sentences.into_iter().map(Bullet::from).collect(),
        })],
    })
}

fn sentence(a: &Subject, b: &Subject, group: &Group) -> Option<Sentence> {
    let (of_a, of_b) = (a.newest(), b.newest());
    let rate_of_b = |name: &str| {
        let test = b.tests.iter().find(|test| test.name == name)?;
        test.rates[of_b].filter(|rate| *rate > 0.0)
    };
    let ratios: Vec<(&str, f64)> = group
        .tests
        .iter()
        .filter_map(|test| {
            let of = &a.tests[*test];
            let rate = of.rates[of_a].filter(|rate| *rate > 0.0)?;
            Some((of.name.as_str(), rate_of_b(&of.name)? / rate))
        })
        .collect();
    let values: Vec<f64> = ratios.iter().map(|(_, ratio)| *ratio).collect();
    let middle = median(&values)?;
    let names = [
        format!("{} {}", a.title(), a.releases[of_a].name),
        format!("{} {}", b.title(), b.releases[of_b].name),
    ];
    let cells = ratios.iter().map(|(name, ratio)| Said {
        test: (*name).to_owned(),
        metric: "throughput",
        from: names[0].clone(),
        to: names[1].clone(),
        ratio: *ratio,
    });
    Some(Sentence {
        text: format!(
            "{}: {}",
            group.title,
            words(&names, &values, middle, a.noun())
        ),
        cells: cells.collect(),
    })
}

/// `b is faster than a in 9 of 12 steps (median 1.21)`, `b is about as fast as a (median 1.02)`.
pub(super) fn words([a, b]: &[String; 2], ratios: &[f64], middle: f64, noun: &str) -> String {
    let all = ratios.len();
    let faster = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    let told = |faster: usize| {
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        format!(
            "in {faster} of {} (median {}, {} to {})",
            count(all, noun),
            ratio(middle),
            ratio(least),
            ratio(most)
        )
    };
    if ABOUT_AS_FAST.contains(&middle) {
        format!("{b} is about as fast as {a}: faster {}", told(faster))
    } else if middle > 1.0 && 3 * faster >= 2 * all {
        format!("{b} is faster than {a} {}", told(faster))
    } else if middle < 1.0 && 3 * (all - faster) >= 2 * all {
        format!("{b} is slower than {a} {}", told(all - faster))
    } else {
        format!("{b} and {a} are each faster in some: {b} {}", told(faster))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thirds_and_the_median_decide() {
        let names = ["A".to_owned(), "B".to_owned()];
        for (ratios, middle, said) in [
            (
                &[2.0, 1.5, 0.9][..],
                1.5,
                "B is faster than A in 2 of 3 tests (median 1.50",
            ),
            (
                &[0.5, 0.6, 1.2],
                0.6,
                "B is slower than A in 2 of 3 tests (median 0.60",
            ),
            (
                &[0.9, 1.1, 1.15],
                1.1,
                "B is about as fast as A: faster in 2 of 3 tests",
            ),
            (
                &[0.5, 3.0],
                1.75,
                "B and A are each faster in some: B in 1 of 2 tests",
            ),
        ] {
            let text = words(&names, ratios, middle, "test");
            assert!(text.starts_with(said), "{text}");
        }
    }
}
