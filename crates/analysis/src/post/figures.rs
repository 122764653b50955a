//! The figures beside the text, described; `report` draws them.

use plimsoll_stats::median;

use super::costs::{Cost, Costs};
use super::material::{Group, Subject};
use super::noise::arrival;
use super::tables::file_name;
use super::value::{Chart, Figure, Form, Line, OverSeconds};
use crate::view::{Chart as Seconds, View};

/// From so many releases on a group has a figure over all of them.
const MANY_RELEASES: usize = 7;

/// Relative throughput of a group over the releases that speak, as bars, and as dots with the noise
/// of twins. `alt` is the first sentence of the section.
pub(crate) fn of_group(subject: &Subject, group: &Group, base: usize, alt: &str) -> Vec<Figure> {
    // A later base has the versions behind it.
    let is_shown = |place: &usize| match base == subject.base || !subject.is_series {
        true => *place != base,
        false => *place > base,
    };
    let shown: Vec<usize> = subject.speakers.iter().copied().filter(is_shown).collect();
    if shown.is_empty() {
        return Vec::new();
    }
    let name = &subject.releases[base].name;
    let line = |place: &usize| Line {
        name: subject.releases[*place].name.clone(),
        values: group
            .tests
            .iter()
            .map(|test| subject.tests[*test].ratio(base, *place))
            .collect(),
        intervals: vec![None; group.tests.len()],
    };
    let series: Vec<Line> = shown.iter().map(line).collect();
    // Nothing to divide: a picture would be empty.
    if !series
        .iter()
        .flat_map(|line| &line.values)
        .any(Option::is_some)
    {
        return Vec::new();
    }
    let chart = Chart {
        base: name.clone(),
        unit: "throughput".to_owned(),
        tests: group
            .tests
            .iter()
            .map(|test| subject.tests[*test].name.clone())
            .collect(),
        series,
    };
    let figure = |kind: &str, form| Figure {
        name: file_name(&[&subject.title(), kind, &group.title, name]),
        title: format!("{}: throughput relative to {name}", group.title),
        caption: format!(
            "{}; base {name}; {}.",
            subject.captioned(&group.title),
            subject.runs_of_each()
        ),
        alt: alt.to_owned(),
        form,
    };
    let mut figures = vec![figure("bars", Form::Bars(chart.clone()))];
    let twins = subject.noise.p95();
    if base != subject.base {
        return figures;
    }
    figures.push(figure("dots", Form::Dots { chart, twins }));
    if subject.releases.len() >= MANY_RELEASES {
        figures.push(figure("releases", over_releases(subject, group)));
    }
    figures
}

fn over_releases(subject: &Subject, group: &Group) -> Form {
    let places = || 0..subject.releases.len();
    let ratio = |test: usize, place: usize| subject.tests[test].ratio(subject.base, place);
    let of_all = |place: usize| -> Vec<f64> {
        let tests = group.tests.iter();
        tests.filter_map(|test| ratio(*test, place)).collect()
    };
    let medians: Vec<Option<f64>> = places().map(|place| median(&of_all(place))).collect();
    let line = |test: &usize| Line {
        name: subject.tests[*test].name.clone(),
        values: places().map(|place| ratio(*test, place)).collect(),
        intervals: Vec::new(),
    };
    Form::OverReleases {
        releases: subject.releases.iter().map(|of| of.name.clone()).collect(),
        tests: group.tests.iter().map(line).collect(),
        arrived_in: arrival(&medians).map(|arrival| arrival.place),
        median: medians,
    }
}

/// Costs of the telling test over releases relative to the base. What is next to
/// nothing in the base has no panel and is named in the caption.
pub(crate) fn of_costs(view: &View, subject: &Subject, test: usize) -> Option<Figure> {
    let all: Vec<Costs> = Cost::ALL
        .iter()
        .filter_map(|cost| Costs::of(view, subject, test, *cost))
        .collect();
    let base = subject.base;
    let is_other = |(place, value): (usize, &Option<f64>)| place != base && value.is_some();
    if !all
        .iter()
        .any(|of| of.values.iter().enumerate().any(is_other))
    {
        return None;
    }
    let has_base = |of: &&Costs| of.values[base].is_some_and(|value| value > of.cost.least());
    let (shown, zero): (Vec<&Costs>, Vec<&Costs>) = all.iter().partition(has_base);
    if shown.is_empty() {
        return None;
    }
    let name = &subject.tests[test].name;
    let words = |of: &&Costs| of.cost.words(of.metric);
    let left_out = match zero.is_empty() {
        true => String::new(),
        false => {
            let names: Vec<String> = zero.iter().map(words).collect();
            format!(
                "; next to nothing in the base and not drawn: {}",
                names.join(", ")
            )
        }
    };
    let panel = |of: &&Costs| {
        let places = 0..subject.releases.len();
        (
            words(of),
            places.map(|place| of.ratio(base, place)).collect(),
        )
    };
    let base = &subject.base().name;
    Some(Figure {
        name: file_name(&[&subject.title(), "costs", name]),
        title: format!("{name}: costs per operation relative to {base}"),
        caption: format!("{name}, base {base}; {}{left_out}.", subject.runs_of_each()),
        alt: format!("Costs per operation of {name} over releases, relative to {base}"),
        form: Form::PerOperation {
            releases: subject.releases.iter().map(|of| of.name.clone()).collect(),
            panels: shown.iter().map(panel).collect(),
        },
    })
}

/// Throughput and longest response over the seconds of a step, for the releases that speak. `None`
/// without seconds.
pub(crate) fn of_seconds(view: &View, subject: &Subject, test: usize) -> Option<Figure> {
    let step = &view.steps[subject.tests[test].step];
    let rate = step
        .charts
        .iter()
        .find(|chart| chart.title.ends_with(" rate"))?;
    let longest = |time: &str| {
        let mut charts = step.charts.iter();
        charts.find(|of| of.title.starts_with("longest ") && of.title.ends_with(time))
    };
    let response = longest("response time").or_else(|| longest("service time"));
    let response = response.filter(|of| of.seconds_per_point == rate.seconds_per_point);
    let points = |chart: Option<&Seconds>, cell: usize| {
        let line = chart.and_then(|chart| chart.lines.iter().find(|line| line.cell == cell));
        line.map(|line| line.points.clone()).unwrap_or_default()
    };
    let build = |place: &usize| {
        let release = &subject.releases[*place];
        OverSeconds {
            name: release.name.clone(),
            rates: points(Some(rate), release.cell),
            responses: points(response, release.cell),
        }
    };
    let builds: Vec<OverSeconds> = subject.speakers.iter().map(build).collect();
    let unit = |chart: &Seconds| format!("{}, {}", chart.title, chart.unit);
    let name = &step.name;
    builds
        .iter()
        .any(|of| of.rates.iter().any(Option::is_some))
        .then(|| Figure {
            name: file_name(&[&subject.title(), "seconds", name]),
            title: format!("{name}: throughput over its seconds"),
            caption: format!(
                "{}, second by second; one run each.",
                subject.captioned(name)
            ),
            alt: format!(
                "Throughput of {name} over its seconds, a row per {}",
                subject.each
            ),
            form: Form::Seconds {
                rate_unit: unit(rate),
                response_unit: response.map(unit).unwrap_or_default(),
                seconds_per_point: f64::from(rate.seconds_per_point),
                builds,
            },
        })
}
