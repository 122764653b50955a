//! Throughput over rising numbers of users: the peak, and the gain while CPU is not saturated.

use super::value::{Bullet, Figure, Form, Line, List, Part, Section, Sentence};
use crate::view::{Ramp, RampCell, View};

/// CPU is far from saturated where every version has at most this share of its peak.
const UNSATURATED: f64 = 0.5;
/// From here on a gain is a factor.
const FACTOR: f64 = 1.3;

/// A section per test that was run over several numbers of users.
pub(super) fn sections(view: &View) -> Vec<Section> {
    view.summary
        .ramps
        .iter()
        .map(|ramp| section(view, ramp))
        .collect()
}

fn section(view: &View, ramp: &Ramp) -> Section {
    let cells: Vec<(usize, &RampCell)> = ramp
        .cells
        .iter()
        .enumerate()
        .filter(|(cell, of)| of.peak.is_some() && !view.cells[*cell].label.contains('#'))
        .collect();
    let mut sentences: Vec<Sentence> = Vec::new();
    sentences.extend(unsaturated(view, ramp, &cells));
    sentences.extend(cells.iter().map(|(cell, of)| peak(view, ramp, *cell, of)));
    let bullets: Vec<Bullet> = sentences.into_iter().map(Bullet::from).collect();
    let alt = bullets.last().map(|bullet| bullet.sentence.text.clone());
    Section {
        title: format!("Results: {} over users", ramp.test),
        parts: vec![
            Part::List(List {
                heading: "Summary".to_owned(),
                bullets,
            }),
            Part::Figure(Figure {
                name: super::tables::file_name(&["users", &ramp.test]),
                title: format!("{}: throughput over users", ramp.test),
                caption: format!(
                    "{}, {} over users; median of the runs per version.",
                    ramp.test, ramp.rate.unit
                ),
                alt: alt.unwrap_or_else(|| ramp.test.clone()),
                form: Form::Lines {
                    x_label: "users".to_owned(),
                    y_label: ramp.rate.unit.to_owned(),
                    x: ramp.users.iter().map(|users| f64::from(*users)).collect(),
                    series: cells
                        .iter()
                        .map(|(cell, of)| line(view, *cell, of))
                        .collect(),
                },
            }),
        ],
    }
}

fn line(view: &View, cell: usize, of: &RampCell) -> Line {
    Line {
        name: view.cells[cell].label.clone(),
        values: of.levels.iter().map(|level| level.rate).collect(),
        intervals: vec![None; of.levels.len()],
    }
}

/// A rate of at least so much, in two digits: 1837000 is `over 1.8M`.
fn over(rate: f64) -> String {
    let (scaled, unit) = match rate {
        _ if rate >= 1e6 => (rate / 1e6, "M"),
        _ if rate >= 1e3 => (rate / 1e3, "K"),
        _ => (rate, ""),
    };
    // Two digits, cut and not rounded: a hair below a step is that step.
    let step = 10f64.powi(scaled.log10().floor() as i32 - 1);
    let cut = (scaled / step + 1e-9).floor() * step;
    let digits = usize::from(cut < 10.0);
    format!("over {cut:.digits$}{unit}")
}

fn peak(view: &View, ramp: &Ramp, cell: usize, of: &RampCell) -> Sentence {
    let rate = |of: &RampCell| of.levels[of.peak?].rate;
    let (at, own) = (of.peak.unwrap_or(0), rate(of).unwrap_or(0.0));
    let base = rate(&ramp.cells[0]).filter(|base| cell != 0 && *base > 0.0);
    let against = match base {
        Some(base) if own / base >= FACTOR => {
            format!(": {:.1}X the peak of {}", own / base, name(view, 0))
        }
        Some(base) if own >= base => format!(
            ": {:.0}% more than {}",
            100.0 * (own / base - 1.0),
            name(view, 0)
        ),
        Some(base) => format!(
            ": {:.0}% less than {}",
            100.0 * (1.0 - own / base),
            name(view, 0)
        ),
        None => String::new(),
    };
    Sentence::plain(format!(
        "{} peaks at {} {} with {} users{against}",
        name(view, cell),
        over(own),
        ramp.rate.unit,
        ramp.users[at]
    ))
}

fn name(view: &View, cell: usize) -> &str {
    &view.cells[cell].label
}

/// The gains where CPU is not saturated, which are those of response time.
fn unsaturated(view: &View, ramp: &Ramp, cells: &[(usize, &RampCell)]) -> Option<Sentence> {
    let share =
        |of: &RampCell, level: usize| Some(of.levels[level].rate? / of.levels[of.peak?].rate?);
    let is_low = |level: &usize| {
        let mut shares = cells.iter().map(|(_, of)| share(of, *level));
        shares.all(|share| share.is_some_and(|share| share <= UNSATURATED))
    };
    let level = (0..ramp.users.len()).rev().find(is_low)?;
    let base = ramp.cells[0].levels[level]
        .rate
        .filter(|rate| *rate > 0.0)?;
    let gains: Vec<String> = cells
        .iter()
        .filter(|(cell, _)| *cell != 0)
        .filter_map(|(cell, of)| {
            let ratio = of.levels[level].rate? / base;
            Some(format!(
                "{} at {ratio:.2} of {}",
                name(view, *cell),
                name(view, 0)
            ))
        })
        .collect();
    (!gains.is_empty()).then(|| {
        Sentence::plain(format!(
            "at {} users, where CPU is not saturated and throughput follows response time: {}",
            ramp.users[level],
            gains.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_are_cut_to_two_digits() {
        for (rate, words) in [
            (1_837_000.0, "over 1.8M"),
            (1_800_000.0, "over 1.8M"),
            (12_990.0, "over 12K"),
            (987.0, "over 980"),
            (1_000.0, "over 1.0K"),
        ] {
            assert_eq!(over(rate), words);
        }
    }
}
