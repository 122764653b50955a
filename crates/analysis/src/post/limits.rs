//! What the numbers cannot say.

use super::insert_benchmark::named_rate;
use super::material::{Kind, Subject};
use super::text::{change, count, list};
use super::value::Sentence;
use crate::metrics;
use crate::runs::status::Status;
use crate::view::View;

/// More results than this are counted and not named.
const FEW: usize = 6;

/// `twins differ by up to 3.9%: ...`, one per pair of twins.
pub(crate) fn noise(subject: &Subject) -> Vec<Sentence> {
    let percent = |share: f64| change(1.0 + share).trim_start_matches('+').to_owned();
    let twins = subject.noise.twins.iter().map(|of| {
        let [a, b] = of.places.map(|place| subject.releases[place].name.clone());
        Sentence::plain(format!(
            "twins {a} and {b}: 95% of {} differ by at most {}, the median by {}, the farthest by \
             {}",
            count(of.tests, subject.noun()),
            percent(of.p95),
            percent(of.median),
            percent(of.most)
        ))
    });
    let names: Vec<String> = subject
        .noise
        .two_state
        .iter()
        .map(|test| subject.tests[*test].name.clone())
        .collect();
    let states = (!names.is_empty()).then(|| {
        Sentence::plain(format!(
            "two states: twins differ by more than 10% in {}; it stays in tables and counts, and \
             no headline rests on it",
            list(&names)
        ))
    });
    twins.chain(states).collect()
}

/// The limit that matters most, for the tl;dr.
pub(crate) fn limit(subjects: &[Subject]) -> Sentence {
    let p95 = subjects
        .iter()
        .filter_map(|subject| subject.noise.p95())
        .max_by(f64::total_cmp);
    let missed: usize = subjects.iter().map(|subject| missed(subject).len()).sum();
    let missed = match missed {
        0 => String::new(),
        cells => format!(
            "; in no ratio: {} that missed the SLA",
            count(cells, "result")
        ),
    };
    let most = subjects.iter().max_by_key(|subject| subject.runs);
    let runs = most.map_or_else(
        || "one run per version".to_owned(),
        Subject::runs_per_version,
    );
    Sentence::plain(match p95 {
        Some(p95) => format!(
            "{runs}: in 95 of 100 comparisons twins (nearly the same code) differ by up to {}, and \
             no sentence is about less{missed}",
            change(1.0 + p95).trim_start_matches('+')
        ),
        None => format!(
            "{runs} and no twins in it: how far two runs of one build differ is not known{missed}"
        ),
    })
}

/// Tests and releases whose background writers missed their rate.
fn missed(subject: &Subject) -> Vec<(String, String)> {
    subject
        .tests
        .iter()
        .flat_map(|test| {
            let of = test.statuses.iter().zip(&subject.releases);
            of.filter(|(status, _)| **status == Status::SlaMissed)
                .map(|(_, release)| (test.name.clone(), release.name.clone()))
        })
        .collect()
}

/// One sentence on the background rates, always, where steps have one.
pub(crate) fn sla(view: &View, subject: &Subject) -> Option<Sentence> {
    if subject.kind != Kind::InsertBenchmark {
        return None;
    }
    let share = |test: &super::material::Test, cell: usize| {
        let step = &view.steps[test.step];
        let outcome = &step.outcomes[cell];
        let target = outcome.target_per_s.or_else(|| named_rate(step));
        Some(outcome.number(metrics::IPS)? / target.filter(|rate| *rate > 0.0)?)
    };
    let cells = || subject.releases.iter().map(|release| release.cell);
    let least = subject
        .tests
        .iter()
        .flat_map(|test| cells().filter_map(|cell| share(test, cell)))
        .min_by(f64::total_cmp)?;
    let missed: Vec<String> = missed(subject)
        .into_iter()
        .map(|(test, release)| format!("{test} of {release}"))
        .collect();
    let text = match missed.is_empty() {
        true => format!(
            "SLA: background writers sustained {:.1}% of their rate and more in every step",
            100.0 * least
        ),
        false => format!(
            "SLA: background writers missed 95% of their rate in {}; these are in no ratio, count \
             or chart",
            list(&missed)
        ),
    };
    Some(Sentence::plain(text))
}

/// What failed, was disturbed, or runs with other compilers or on another machine.
///
/// `disturbed` is what a disturbance means for the post's numbers.
pub(crate) fn marks(view: &View, subject: &Subject, disturbed: &str) -> Vec<Sentence> {
    let mut all = Vec::new();
    let with = |is_it: fn(Status) -> bool| -> Vec<String> {
        let tests = subject.tests.iter().flat_map(|test| {
            let of = test.statuses.iter().zip(&subject.releases);
            of.filter(move |(status, _)| is_it(**status))
                .map(|(_, release)| format!("{} of {}", test.name, release.name))
        });
        tests.collect()
    };
    let failed = with(|status| {
        matches!(
            status,
            Status::Failed | Status::Crashed | Status::Hung | Status::Damaged
        )
    });
    if !failed.is_empty() {
        all.push(Sentence::plain(format!(
            "no number (failed): {}",
            list(&failed)
        )));
    }
    let suspect = with(|status| status == Status::Suspect);
    if !suspect.is_empty() {
        let which = match suspect.len() {
            few if few <= FEW => list(&suspect),
            all => count(all, "result"),
        };
        all.push(Sentence::plain(format!("{disturbed}: {which}")));
    }
    for release in &subject.releases {
        let info = &view.cells[release.cell];
        let caveat = info
            .caveat
            .as_ref()
            .map(|caveat| format!("† {}: {caveat}", release.name));
        let machine = info.other_machine.as_ref();
        let machine = machine.map(|by| format!("‡ {} ran on another machine: {by}", release.name));
        all.extend(caveat.into_iter().chain(machine).map(Sentence::plain));
    }
    all
}
