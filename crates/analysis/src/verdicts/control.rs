//! The A/A control: the base against itself.

use plimsoll_stats::Interval;

use super::estimate::estimate;
use super::finding::{Basis, Control, Estimate};
use super::pairs::pairs;
use crate::metrics::Metric;
use crate::runs::cell_runs::CellRuns;

/// The level of the control's interval: it raises an alarm by chance in one of a hundred.
pub const CONTROL_LEVEL: f64 = 0.99;

pub(crate) fn control(
    basis: Basis,
    base: &CellRuns<'_>,
    again: &CellRuns<'_>,
    step: &str,
    metric: &'static Metric,
    is_rate: bool,
) -> Control {
    let pairs = pairs(basis, base, again, step, metric.name, is_rate);
    let estimate: Option<Estimate> = estimate(basis, &pairs, CONTROL_LEVEL);
    let interval: Option<Interval> = estimate.as_ref().and_then(Estimate::log_interval);
    Control {
        step: step.to_owned(),
        base: base.cell.label.clone(),
        cell: again.cell.label.clone(),
        metric,
        is_throughput: is_rate,
        basis,
        left_out: pairs.left_out,
        seconds: pairs.seconds,
        is_sound: interval.is_none_or(|interval| interval.holds(0.0)),
        estimate,
    }
}
