//! What the numbers cannot say.

use super::insert_benchmark::named_rate;
use super::material::{Kind, Subject};
use super::text::{change, count, list};
use super::value::Sentence;
use crate::metrics;
use crate::runs::status::Status;
use crate::view::View;
use crate::words::client_hosts::client_hosts;
use crate::words::notes;

/// More results than this are counted and not named.
const FEW: usize = 6;

/// `twins differ by up to 3.9%: ...`, one per pair of twins.
pub(crate) fn noise(subject: &Subject) -> Vec<Sentence> {
    let twins = match subject.noise.twins.len() {
        few if few <= FEW => twins_by_pair(subject),
        _ => twins_together(subject).into_iter().collect(),
    };
    let shifts = subject.noise.shifts.iter().map(|of| {
        let [a, b] = of.places.map(|place| &subject.releases[place].name);
        let noun = subject.noun();
        let word = if of.median < 1.0 { "slower" } else { "faster" };
        Sentence::plain(format!(
            "{a} and {b} do not count as twins in {}: all {} {noun}s are {word} in {b} (median {})",
            of.group,
            of.tests,
            change(of.median)
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
            "two states: twins differ by more than 10% in {}; {} in tables and counts, and no \
             headline rests on {}",
            list(&names),
            if names.len() == 1 {
                "it stays"
            } else {
                "they stay"
            },
            if names.len() == 1 { "it" } else { "them" }
        ))
    });
    twins.into_iter().chain(shifts).chain(states).collect()
}

/// A share in percent: `3.9%`.
fn percent(share: f64) -> String {
    change(1.0 + share).trim_start_matches('+').to_owned()
}

/// One sentence on all pairs of twins, where they are many.
fn twins_together(subject: &Subject) -> Option<Sentence> {
    let twins = &subject.noise.twins;
    let farthest = twins.iter().max_by(|a, b| a.most.total_cmp(&b.most))?;
    let [a, b] = farthest.places.map(|place| &subject.releases[place].name);
    Some(Sentence::plain(format!(
        "{} pairs of twins: 95% of {}s differ by at most {} in each pair, the farthest by {} in \
         {a} and {b}",
        twins.len(),
        subject.noun(),
        percent(subject.noise.p95()?),
        percent(farthest.most)
    )))
}

fn twins_by_pair(subject: &Subject) -> Vec<Sentence> {
    let twins = subject.noise.twins.iter().map(|of| {
        let [a, b] = of.places.map(|place| subject.releases[place].name.clone());
        let noun = subject.noun();
        Sentence::plain(match of.tests {
            1 => format!(
                "twins {a} and {b}: the only {noun} differs by {}",
                percent(of.most)
            ),
            all => format!(
                "twins {a} and {b}: 95% of {all} {noun}s differ by at most {}, the median by {}, \
                 the farthest by {}",
                percent(of.p95),
                percent(of.median),
                percent(of.most)
            ),
        })
    });
    twins.collect()
}

/// The limit that matters most, for the tl;dr.
pub(crate) fn limit(view: &View, subjects: &[Subject]) -> Sentence {
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
    let is_suspect = |status: &&Status| **status == Status::Suspect;
    let tests = subjects.iter().flat_map(|subject| &subject.tests);
    let disturbed = tests
        .flat_map(|test| &test.statuses)
        .filter(is_suspect)
        .count();
    let missed = match disturbed {
        0 => missed,
        all => format!(
            "{missed}; the machine was disturbed in {}, which no sentence is about",
            count(all, "result")
        ),
    };
    let Some(most) = subjects.iter().max_by_key(|subject| subject.runs) else {
        return Sentence::default();
    };
    let runs = most.runs_of_each();
    let marked = not_alike(view, subjects);
    let marked = marked.map(|which| format!("; not strictly comparable with the base: {which}"));
    let marked = marked.unwrap_or_default();
    Sentence::plain(match p95 {
        Some(p95) => format!(
            "{runs}: in 95 of 100 comparisons twins (nearly the same code) differ by up to {}; a \
             change that is less in whole percent counts as none{missed}{marked}",
            change(1.0 + p95).trim_start_matches('+')
        ),
        None => format!(
            "{runs} and no twins in it: how far two runs of one build differ is not known{missed}\
             {marked}"
        ),
    })
}

/// `5.6.51 †`: builds of which a ratio may show the compiler, or the machine, in place of the code.
pub(crate) fn not_alike(view: &View, subjects: &[Subject]) -> Option<String> {
    let releases = subjects.iter().flat_map(|subject| &subject.releases);
    let marked = releases.filter_map(|of| {
        let mark = view.cells[of.cell].mark();
        (!mark.is_empty()).then(|| format!("{}{mark}", of.name))
    });
    let marked: Vec<String> = marked.collect();
    match marked.len() {
        0 => None,
        few if few <= FEW => Some(list(&marked)),
        all => Some(count(all, "build")),
    }
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
            "SLA: background writers sustained {:.1}% of their rate and more in every step that has \
             one",
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

/// What is true of the whole campaign: it was shortened, holds ratios alone, or servers or clients
/// were elsewhere.
pub(crate) fn of_campaign(view: &View) -> Vec<Sentence> {
    let shortened = (!view.is_comparable && view.campaigns.iter().any(|of| of.state != "imported"))
        .then(|| {
            "the plan is shortened: its numbers are not comparable with those of full runs"
                .to_owned()
        });
    let ratios = has_ratios_alone(view).then(|| {
        "only ratios were published, with two decimals: changes of 1% may be rounding".to_owned()
    });
    let notes = [
        notes::external_servers(view),
        notes::settings_not_as_asked(view),
    ];
    let all = [shortened, ratios].into_iter().chain(notes).flatten();
    let all = all.chain(client_hosts(view));
    all.map(|note| Sentence::plain(as_bullet(&note))).collect()
}

/// A note of a report as a bullet: small at its start, without a stop.
fn as_bullet(note: &str) -> String {
    let mut letters = note.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

/// Whether what stands for throughput is relative to a base already.
pub(crate) fn has_ratios_alone(view: &View) -> bool {
    view.steps
        .iter()
        .any(|step| step.rate.name == metrics::imported::REL_RATE.name)
}

/// Versions that no sentence is about, because nothing of them counts.
pub(crate) fn silent(subject: &Subject) -> Option<Sentence> {
    let silent: Vec<String> = (0..subject.releases.len())
        .filter(|place| {
            subject
                .tests
                .iter()
                .all(|test| test.rates[*place].is_none())
        })
        .map(|place| subject.releases[place].name.clone())
        .collect();
    (!silent.is_empty() && !subject.tests.is_empty()).then(|| {
        Sentence::plain(format!(
            "without a number that counts, and in no sentence: {}",
            list(&silent)
        ))
    })
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
    let mut marked: Vec<(String, Vec<String>)> = Vec::new();
    for release in &subject.releases {
        let info = &view.cells[release.cell];
        let caveat = info.caveat.as_ref().map(|of| format!("† {{}}: {of}"));
        let machine = info.other_machine.as_ref();
        let machine = machine.map(|by| format!("‡ {{}} ran on another machine: {by}"));
        for form in caveat.into_iter().chain(machine) {
            match marked.iter_mut().find(|(known, _)| *known == form) {
                Some((_, names)) => names.push(release.name.clone()),
                None => marked.push((form, vec![release.name.clone()])),
            }
        }
    }
    // The first place is the names'.
    let told = marked
        .iter()
        .map(|(form, names)| form.replacen("{}", &list(names), 1));
    all.extend(told.map(Sentence::plain));
    all
}
