//! The tables beside the text.

use super::costs::{Cost, Costs};
use super::material::{Group, Subject};
use super::noise::{Arrival, arrival};
use super::text::ratio as printed;
use super::value::{Standing, Table, TableCell, TableGroup, TableRow};
use crate::runs::status::Status;
use crate::view::View;

/// A name that files may have: letters, digits, dots and dashes.
pub(crate) fn file_name(words: &[&str]) -> String {
    let clean = |word: &&str| -> String {
        let letters = word.chars().map(|c| match c {
            c if c.is_ascii_alphanumeric() || c == '.' || c == '-' => c,
            _ => '-',
        });
        letters.collect()
    };
    let words: Vec<String> = words
        .iter()
        .filter(|word| !word.is_empty())
        .map(clean)
        .collect();
    words.join(".")
}

/// Throughput of all releases but the base relative to it, with where changes arrived.
pub(crate) fn relative(view: &View, subject: &Subject, base: usize) -> Table {
    // A later base has the versions behind it.
    let is_shown = |at: &usize| match base == subject.base {
        true => *at != base,
        false => *at > base || (!subject.is_series && *at != base),
    };
    let places: Vec<usize> = (0..subject.releases.len()).filter(is_shown).collect();
    let cell = |test: usize, place: usize| {
        let of = &subject.tests[test];
        let mark = match of.statuses[base] {
            Status::Ok => of.statuses[place].mark(),
            other => other.mark(),
        };
        match of.ratio(base, place) {
            Some(ratio) => TableCell {
                text: printed(ratio),
                mark,
                standing: standing(subject, ratio),
            },
            None => nothing(mark),
        }
    };
    let note = |test: usize| match base == subject.base {
        true => note(subject, test),
        false => String::new(),
    };
    let name = &subject.releases[base].name;
    Table {
        name: file_name(&[&subject.title(), "relative", name]),
        title: format!("Relative throughput, base {name}"),
        caption: format!(
            "(throughput for a {}) / (throughput for {name})",
            subject.each
        ),
        base: Some(format!("{name} ({})", subject.releases[base].label)),
        columns: columns(view, subject, &places),
        groups: groups(subject, |test| TableRow {
            label: subject.tests[test].name.clone(),
            cells: places.iter().map(|place| cell(test, *place)).collect(),
            note: note(test),
        }),
    }
}

/// Throughput of all releases in the units of the steps.
pub(crate) fn absolute(view: &View, subject: &Subject) -> Table {
    let places: Vec<usize> = (0..subject.releases.len()).collect();
    let cell = |test: usize, place: usize| {
        let of = &subject.tests[test];
        let step = &view.steps[of.step];
        let outcome = &step.outcomes[subject.releases[place].cell];
        match outcome
            .measure(step.rate)
            .and_then(|measure| measure.text())
        {
            Some(text) => TableCell {
                text,
                mark: of.statuses[place].mark(),
                standing: Standing::Plain,
            },
            None => nothing(of.statuses[place].mark()),
        }
    };
    let units: Vec<&str> = subject
        .tests
        .iter()
        .map(|test| view.steps[test.step].rate.unit)
        .collect();
    let mut distinct = units.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let is_one = distinct.len() == 1;
    Table {
        name: file_name(&[&subject.title(), "absolute"]),
        title: "Absolute throughput".to_owned(),
        caption: match is_one {
            true => distinct[0].to_owned(),
            false => "in the unit behind the test".to_owned(),
        },
        base: None,
        columns: columns(view, subject, &places),
        groups: groups(subject, |test| TableRow {
            label: subject.tests[test].name.clone(),
            cells: places.iter().map(|place| cell(test, *place)).collect(),
            note: if is_one { "" } else { units[test] }.to_owned(),
        }),
    }
}

/// What an operation of a test costs in each release, absolute and relative to the base.
pub(crate) fn costs(view: &View, subject: &Subject, test: usize) -> Option<Table> {
    let all: Vec<Costs> = Cost::ALL
        .iter()
        .filter_map(|cost| Costs::of(view, subject, test, *cost))
        .collect();
    if all.is_empty() {
        return None;
    }
    let places: Vec<usize> = (0..subject.releases.len()).collect();
    let row = |of: &Costs, text: &dyn Fn(&Costs, usize) -> Option<String>| TableRow {
        label: of.cost.words(of.metric),
        cells: places
            .iter()
            .map(|place| match text(of, *place) {
                Some(text) => TableCell {
                    text,
                    mark: "",
                    standing: Standing::Plain,
                },
                None => nothing(""),
            })
            .collect(),
        note: String::new(),
    };
    let absolute =
        |of: &Costs, place: usize| Some(format!("{:.*}", of.metric.decimals, of.values[place]?));
    let relative = |of: &Costs, place: usize| of.ratio(subject.base, place).map(printed);
    let group = |title: String, text: &dyn Fn(&Costs, usize) -> Option<String>| TableGroup {
        title,
        rows: all.iter().map(|of| row(of, text)).collect(),
    };
    let name = &subject.tests[test].name;
    Some(Table {
        name: file_name(&[&subject.title(), "costs", name]),
        title: format!("Costs per operation of {name}"),
        caption: all
            .iter()
            .map(|of| format!("{}: {}", of.cost.words(of.metric), of.metric.unit))
            .collect::<Vec<_>>()
            .join("; "),
        base: Some(subject.base().name.clone()),
        columns: columns(view, subject, &places),
        groups: vec![
            group("absolute".to_owned(), &absolute),
            group(format!("relative to {}", subject.base().name), &relative),
        ],
    })
}

/// Names and labels; what is not strictly comparable with the base has its mark.
fn columns(view: &View, subject: &Subject, places: &[usize]) -> Vec<(String, String)> {
    let column = |place: &usize| {
        let release = &subject.releases[*place];
        let mark = view.cells[release.cell].mark();
        (format!("{}{mark}", release.name), release.label.clone())
    };
    places.iter().map(column).collect()
}

fn groups(subject: &Subject, row: impl Fn(usize) -> TableRow) -> Vec<TableGroup> {
    let group = |group: &Group| TableGroup {
        title: group.title.clone(),
        rows: group.tests.iter().map(|test| row(*test)).collect(),
    };
    subject.groups.iter().map(group).collect()
}

fn standing(subject: &Subject, ratio: f64) -> Standing {
    let class = subject.band.class(ratio);
    if class.is_loss() {
        Standing::Worse
    } else if class.is_gain() {
        Standing::Better
    } else {
        Standing::Plain
    }
}

fn nothing(mark: &'static str) -> TableCell {
    TableCell {
        text: "-".to_owned(),
        mark,
        standing: Standing::Plain,
    }
}

/// Where a test's change arrived, if sentences may be about the test.
fn claimed_arrival(subject: &Subject, test: usize) -> Option<Arrival> {
    let is_in = |group: &&Group| group.is_claimed && group.tests.contains(&test);
    let is_claimed = subject.groups.iter().any(|group| is_in(&group));
    let may_have = is_claimed && subject.is_series && !subject.is_two_state(test);
    may_have
        .then(|| arrival(&subject.tests[test].rates))
        .flatten()
}

/// Whether a note of the tables says where a change arrived.
pub(super) fn has_arrivals(subject: &Subject) -> bool {
    (0..subject.tests.len()).any(|test| claimed_arrival(subject, test).is_some())
}

/// Where a test's change arrived, or that it has two states.
fn note(subject: &Subject, test: usize) -> String {
    if subject.is_two_state(test) {
        return "two states: runs of nearly the same code differ by more than 10%".to_owned();
    }
    let Some(arrival) = claimed_arrival(subject, test) else {
        return String::new();
    };
    let at = &subject.releases[arrival.place].name;
    let by = printed(arrival.ratio);
    match arrival.is_clear {
        true => format!("-> {by} arrives in {at} and remains"),
        false => format!("-> {by} arrives in {at}, hard to classify"),
    }
}
