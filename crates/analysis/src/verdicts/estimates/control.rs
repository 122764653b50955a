//! The A/A control: the base against itself, and what it says of all errors.

use std::collections::BTreeMap;

use plimsoll_core::planted::{self, Bug};
use plimsoll_stats::{StartsPrior, error_scales, score};

use super::estimate::{Levels, estimate};
use super::priors::Class;
use crate::runs::cell_runs::CellRuns;
use crate::steps::step_view::StepView;
use crate::verdicts::finding::{Basis, Control, Estimate};
use crate::verdicts::measured::Judged;
use crate::verdicts::pairs::Pairs;

/// The level of the control's interval: it raises an alarm by chance in one of a hundred.
pub const CONTROL_LEVEL: f64 = 0.99;

/// That of the noise floor, which is the control's, too.
const FLOOR_LEVEL: f64 = 0.05;

pub(crate) fn control(
    basis: Basis,
    (base, again): (&CellRuns<'_>, &CellRuns<'_>),
    step: &StepView,
    judged: &Judged,
    pairs: &Pairs,
    prior: Option<StartsPrior>,
) -> Control {
    let levels = Levels {
        shown: CONTROL_LEVEL,
        look: FLOOR_LEVEL,
    };
    let estimate: Option<Estimate> = estimate(basis, pairs, prior, levels);
    let interval = estimate.as_ref().and_then(Estimate::log_interval);
    Control {
        step: step.name.clone(),
        base: base.cell.label.clone(),
        cell: again.cell.label.clone(),
        metric: judged.metric,
        role: judged.role,
        basis,
        left_out: pairs.left_out,
        seconds: pairs.seconds,
        is_sound: interval.map(|interval| interval.holds(0.0)),
        estimate,
    }
}

/// By how much the errors of a campaign's ratios have to be multiplied, because the base differs
/// from itself by more than its errors allow.
#[derive(Debug, Default)]
pub(crate) struct Scales(BTreeMap<(String, &'static str), f64>);

impl Scales {
    /// From all controls, a class at a time.
    pub fn new<'a>(controls: impl IntoIterator<Item = (Class, &'a Control)>) -> Self {
        let mut classes: BTreeMap<Class, Vec<(&Control, f64)>> = BTreeMap::new();
        for (class, control) in controls {
            let score = control
                .estimate
                .and_then(|estimate| Some(score(estimate.ratio.ln(), estimate.p?)));
            classes
                .entry(class)
                .or_default()
                .extend(score.map(|score| (control, score)));
        }
        let mut scales = BTreeMap::new();
        for of_class in classes.into_values() {
            let scores: Vec<f64> = of_class.iter().map(|(_, score)| *score).collect();
            for ((control, _), scale) in of_class.iter().zip(error_scales(&scores)) {
                scales.insert((control.step.clone(), control.metric.name), scale);
            }
        }
        Self(scales)
    }

    /// Of a step and metric; 1 where errors are as large as they say.
    pub fn of(&self, step: &str, metric: &'static str) -> f64 {
        if planted::is(Bug::ControlNotHeeded) {
            return 1.0;
        }
        self.0
            .get(&(step.to_owned(), metric))
            .copied()
            .unwrap_or(1.0)
    }
}
