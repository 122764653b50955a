//! The figure of response times: what throughput alone does not show.

use super::material::{Group, Subject};
use super::tables::file_name;
use super::text::count;
use super::value::{Chart, Figure, Form, Line};
use crate::metrics::Measure;
use crate::runs::status::Status;
use crate::view::View;

/// Metrics that may be drawn, the best first, with their words. Response times have the time in
/// which an operation was due and not sent; service times do not.
const TIMES: [(&str, &str); 3] = [
    ("p99_response_us", "99th percentile of response time"),
    ("p99_service_us", "99th percentile of service time"),
    ("p95_service_us", "95th percentile of service time"),
];

/// Times of a group's tests relative to the base, a dot per release that speaks; below 1 is
/// faster. `None` where no two releases have one. Times of which only a lower bound is known are
/// left out.
pub(crate) fn of_group(view: &View, subject: &Subject, group: &Group) -> Option<Figure> {
    let base = subject.base;
    let shown: Vec<usize> = subject
        .speakers
        .iter()
        .copied()
        .filter(|place| *place != base)
        .collect();
    let lines_of = |metric: &str| -> Vec<Line> {
        let line = |place: &usize| Line {
            name: subject.releases[*place].name.clone(),
            values: group
                .tests
                .iter()
                .map(|test| ratio(view, subject, metric, *test, [base, *place]))
                .collect(),
            intervals: vec![None; group.tests.len()],
        };
        shown.iter().map(line).collect()
    };
    let (words, series) = TIMES.iter().find_map(|(metric, words)| {
        let series = lines_of(metric);
        let has_any = series
            .iter()
            .flat_map(|line| &line.values)
            .any(Option::is_some);
        has_any.then_some((*words, series))
    })?;
    let name = &subject.releases[base].name;
    Some(Figure {
        name: file_name(&[&subject.title(), "latency", &group.title, name]),
        title: format!(
            "{}: latency relative to {name}, shorter is better",
            group.title
        ),
        caption: format!(
            "{}: {words}; base {name}; {}; below 1.0 is faster.",
            subject.captioned(&group.title),
            subject.runs_of_each()
        ),
        alt: alt(
            words,
            name,
            &series,
            &count(group.tests.len(), subject.noun()),
        ),
        form: Form::Dots {
            chart: Chart {
                base: name.clone(),
                unit: words.to_owned(),
                tests: group
                    .tests
                    .iter()
                    .map(|test| subject.tests[*test].name.clone())
                    .collect(),
                series,
            },
            twins: None,
        },
    })
}

/// New / old of a time.
fn ratio(
    view: &View,
    subject: &Subject,
    metric: &str,
    test: usize,
    places: [usize; 2],
) -> Option<f64> {
    let of = &subject.tests[test];
    let known = |measure: &&Measure| !measure.value.is_lower_bound;
    let time = |place: usize| {
        let outcome = &view.steps[of.step].outcomes[subject.releases[place].cell];
        let measure = outcome.measure_of(metric).filter(known)?;
        let is_counted = of.statuses[place] == Status::Ok;
        measure.value.value.filter(|us| is_counted && *us > 0.0)
    };
    let [old, new] = places.map(time);
    Some(new? / old?)
}

/// The range of the newest release, for who cannot see the figure.
fn alt(words: &str, base: &str, series: &[Line], tests: &str) -> String {
    let newest = series.last();
    let values = || {
        newest
            .into_iter()
            .flat_map(|line| line.values.iter().flatten())
    };
    let least = values().copied().fold(f64::INFINITY, f64::min);
    let most = values().copied().fold(0.0, f64::max);
    match newest {
        Some(line) if most > 0.0 => {
            let (least, most) = (format!("{least:.2}"), format!("{most:.2}"));
            let range = match least == most {
                true => most,
                false => format!("{least} to {most}"),
            };
            format!(
                "The {words} of {} is {range} of {base} in {} of {tests}",
                line.name,
                values().count()
            )
        }
        _ => format!("The {words} relative to {base}, a row per test"),
    }
}
