//! Columns of classic tables: rates as the field prints them, and their ratios to the base.

use crate::classic::throughput::{self, Rate};
use crate::classic::{Class, relative};
use crate::metrics::Metric;
use crate::metrics::ratio::divide;
use crate::runs::status::Status;
use crate::steps::classic_table::ClassicCell;
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::words::brief::brief;

/// Why there is no ratio of what ran on other machines than the base.
const APART: &str = "no ratio: in no block did it and the base run on one machine";

pub(crate) fn cell(outcome: &Outcome, number: Option<String>, class: Class) -> ClassicCell {
    ClassicCell {
        number,
        class,
        status: outcome.status,
        reason: outcome.reason.clone(),
    }
}

/// Whole numbers, as the field prints rates; small ones keep three digits.
pub(crate) fn format_rate(per_s: f64) -> String {
    if per_s < 9.995 && per_s > 0.0 {
        format!("{per_s:.2}")
    } else {
        format!("{per_s:.0}")
    }
}

fn rates(outcomes: &[&Outcome], rate: &Metric) -> Vec<Option<f64>> {
    outcomes
        .iter()
        .map(|outcome| outcome.number(rate))
        .collect()
}

pub(crate) fn absolute_column(step: &StepView) -> Vec<ClassicCell> {
    absolute_cells(&step.outcomes.iter().collect::<Vec<_>>(), step.rate)
}

/// Rates as they are printed, coloured among each other.
pub(crate) fn absolute_cells(outcomes: &[&Outcome], rate: &Metric) -> Vec<ClassicCell> {
    let rates = rates(outcomes, rate);
    let rounded: Vec<Option<Rate>> = rates
        .iter()
        .zip(outcomes)
        .map(|(rate, outcome)| {
            Some(Rate {
                per_s: rate.as_ref()?.round() as u64,
                is_sla_met: outcome.status != Status::SlaMissed,
            })
        })
        .collect();
    let classes = throughput::classify(&rounded);
    let cells = outcomes.iter().zip(rates).zip(classes);
    cells
        .map(|((outcome, rate), class)| cell(outcome, rate.map(format_rate), class))
        .collect()
}

pub(crate) fn relative_column(step: &StepView) -> Vec<ClassicCell> {
    relative_cells(&step.outcomes.iter().collect::<Vec<_>>(), step.rate)
}

/// Rates divided by the first one.
pub(crate) fn relative_cells(outcomes: &[&Outcome], rate: &Metric) -> Vec<ClassicCell> {
    let rates = rates(outcomes, rate);
    let base = rates[0];
    let is_base_missed = outcomes[0].status == Status::SlaMissed;
    let ratio = |(i, outcome): (usize, &&Outcome)| match (
        divide(paired(outcome, rates[i], base), base),
        rates[i],
        base,
    ) {
        (Ok(text), Some(rate), Some(base)) => {
            let rate = outcome.paired_ratio.map_or(rate, |ratio| ratio * base);
            // Who spared the background work has an advantage: such a ratio neither wins nor loses.
            let is_missed = is_base_missed || outcome.status == Status::SlaMissed;
            let class = if is_missed || i == 0 {
                Class::Plain
            } else {
                relative::classify(rate, base)
            };
            let ratio = cell(outcome, Some(text), class);
            if is_base_missed && outcome.status.is_finished() {
                with_missed_base(ratio)
            } else {
                ratio
            }
        }
        (Err(_), Some(_), None) => ClassicCell {
            reason: Some(format!("no ratio: {}", without_base(outcomes[0]))),
            ..cell(outcome, None, Class::Plain)
        },
        (Err(reason), Some(_), _) => ClassicCell {
            reason: Some(reason.to_owned()),
            ..cell(outcome, None, Class::Plain)
        },
        _ => cell(outcome, None, Class::Plain),
    };
    let ratio = |(i, outcome): (usize, &&Outcome)| match outcome.is_apart {
        true => ClassicCell {
            reason: Some(APART.to_owned()),
            ..cell(outcome, None, Class::Plain)
        },
        false => ratio((i, outcome)),
    };
    outcomes.iter().enumerate().map(ratio).collect()
}

/// The rate that has the ratio of the pairs to the base, where there are pairs.
fn paired(outcome: &Outcome, rate: Option<f64>, base: Option<f64>) -> Option<f64> {
    outcome
        .paired_ratio
        .zip(base)
        .map(|(ratio, base)| ratio * base)
        .or(rate)
}

/// Why the base has no number.
pub(crate) fn without_base(base: &Outcome) -> String {
    let what = match base.status {
        Status::Failed | Status::Crashed | Status::Hung => {
            format!("the base {}", base.status.name())
        }
        Status::Damaged => "the base is damaged".to_owned(),
        _ => "the base has no result".to_owned(),
    };
    base.reason.as_ref().map_or(what.clone(), |reason| {
        format!("{what}: {}", brief(reason).0)
    })
}

/// A ratio to a base that missed its SLA, marked as if its own step had.
fn with_missed_base(ratio: ClassicCell) -> ClassicCell {
    if ratio.status == Status::SlaMissed {
        return ratio;
    }
    let why = "the base missed its SLA";
    let reason = ratio
        .reason
        .map_or_else(|| why.to_owned(), |own| format!("{why}; {own}"));
    ClassicCell {
        status: Status::SlaMissed,
        reason: Some(reason),
        ..ratio
    }
}
