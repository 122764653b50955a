//! Why cells are not ok, with what has one cause told once.

use std::collections::BTreeMap;

use plimsoll_core::witness::LimitsHere;

use crate::cells::cell_info::CellInfo;
use crate::metrics::{self, Metric};
use crate::runs::status::Status;
use crate::steps::step_view::StepView;
use crate::words::brief::brief;

/// Why steps of a cell are not ok.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Index into the view's cells.
    pub cell: usize,
    pub steps: Vec<String>,
    pub status: Status,
    /// Why, in one line.
    pub text: String,
    /// What else was reported: the rest of a long message, the end of the server's log.
    pub more: Option<String>,
}

/// From so many disturbed steps of a cell on, they are reported together.
const MANY: usize = 2;

/// What a reason begins with if others had the CPU; the cores follow.
pub(crate) const FOREIGN: &str = "other processes used ";

/// By cell, then in the order of the steps; consecutive steps with one reason are reported
/// together. In turns what a witness saw of a whole step is not what disturbed a cell: then every
/// disturbed step keeps its own reason, but for what others used of the CPU.
pub(crate) fn reasons(
    cells: &[CellInfo],
    steps: &[StepView],
    limits: &LimitsHere,
    is_in_turns: bool,
) -> Vec<Reason> {
    (0..cells.len())
        .flat_map(|cell| reasons_of_cell(cell, steps, limits, is_in_turns))
        .collect()
}

fn reasons_of_cell(
    cell: usize,
    steps: &[StepView],
    limits: &LimitsHere,
    is_in_turns: bool,
) -> Vec<Reason> {
    let suspects: Vec<&StepView> = steps
        .iter()
        .filter(|step| step.outcomes[cell].status == Status::Suspect)
        .collect();
    let is_merged = suspects.len() >= MANY && !is_in_turns;
    let mut reasons: Vec<Reason> = Vec::new();
    for step in steps {
        let outcome = &step.outcomes[cell];
        let Some(text) = outcome.reason.as_ref().filter(|_| {
            outcome.status != Status::Ok && !(is_merged && outcome.status == Status::Suspect)
        }) else {
            continue;
        };
        let (text, more) = brief(text);
        let more = outcome
            .crash
            .as_ref()
            .map(|crash| crash.log_tail.clone())
            .or(more);
        match reasons.last_mut() {
            Some(last) if last.status == outcome.status && last.text == text => {
                last.steps.push(step.name.clone())
            }
            _ => reasons.push(Reason {
                cell,
                steps: vec![step.name.clone()],
                status: outcome.status,
                text,
                more,
            }),
        }
    }
    if is_merged {
        reasons.push(disturbed(cell, &suspects, limits));
    }
    with_one_range(reasons)
}

/// Reasons of several steps that differ in how much CPU others used become one, with the range.
fn with_one_range(reasons: Vec<Reason>) -> Vec<Reason> {
    let mut all: Vec<Reason> = Vec::new();
    // By what follows the number: where the reason is, the least and the most.
    let mut ranges: BTreeMap<String, (usize, f64, f64)> = BTreeMap::new();
    for reason in reasons {
        let Some((cores, rest)) = foreign_cores(&reason.text) else {
            all.push(reason);
            continue;
        };
        let place = all.len();
        let (at, low, high) = ranges
            .entry(rest.to_owned())
            .or_insert((place, cores, cores));
        if *at == place {
            all.push(reason);
            continue;
        }
        (*low, *high) = (low.min(cores), high.max(cores));
        all[*at].steps.extend(reason.steps);
        all[*at].text = format!("{FOREIGN}{low:.2} to {high:.2}{rest}");
    }
    all
}

/// The number of such a reason, and what follows it.
fn foreign_cores(text: &str) -> Option<(f64, &str)> {
    let text = text.strip_prefix(FOREIGN)?;
    let end = text.find(' ')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The range of what the witnesses saw.
fn disturbed(cell: usize, suspects: &[&StepView], limits: &LimitsHere) -> Reason {
    let range = |metric: &Metric, limit: f64| {
        let values = || {
            suspects
                .iter()
                .filter_map(|step| step.outcomes[cell].number(metric))
        };
        Some((
            values().reduce(f64::min)?,
            values().reduce(f64::max).filter(|high| *high > limit)?,
        ))
    };
    let cores = range(metrics::FOREIGN_CPU_CORES, limits.foreign_cores)
        .map(|(low, high)| format!("{FOREIGN}{low:.2} to {high:.2} cores"));
    let steal = range(metrics::STEAL_SHARE, limits.steal).map(|(low, high)| {
        format!(
            "other guests took {:.1} to {:.1} % of all CPU time (steal)",
            low * 100.0,
            high * 100.0
        )
    });
    let text = [cores, steal]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("; ");
    Reason {
        cell,
        steps: suspects.iter().map(|step| step.name.clone()).collect(),
        status: Status::Suspect,
        text,
        more: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A campaign of 18 tests had 18 reasons that were alike but for a number.
    #[test]
    fn what_others_used_of_several_steps_is_one_range() {
        let reason = |step: &str, text: &str| Reason {
            cell: 0,
            steps: vec![step.to_owned()],
            status: Status::Suspect,
            text: text.to_owned(),
            more: None,
        };
        let all = with_one_range(vec![
            reason("a", "other processes used 0.31 cores, more than 0.25"),
            reason("b", "its turns leak; use blocks"),
            reason("c", "other processes used 0.52 cores, more than 0.25"),
            reason("d", "other processes used 0.40 cores, more than 0.25"),
            reason(
                "e",
                "other processes used 0.40 cores, more than 0.25; its turns leak",
            ),
        ]);
        let told: Vec<(Vec<String>, String)> =
            all.into_iter().map(|of| (of.steps, of.text)).collect();
        let steps =
            |names: &[&str]| -> Vec<String> { names.iter().map(|&name| name.to_owned()).collect() };
        assert_eq!(
            told,
            [
                (
                    steps(&["a", "c", "d"]),
                    "other processes used 0.31 to 0.52 cores, more than 0.25".to_owned()
                ),
                (steps(&["b"]), "its turns leak; use blocks".to_owned()),
                (
                    steps(&["e"]),
                    "other processes used 0.40 cores, more than 0.25; its turns leak".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn long_messages_are_cut_to_what_tells() {
        let log =
            "2026 [Note] starting\n2026 [ERROR] Can't create file\n2026 [Note] shutting down\n";
        let (text, more) = brief(&format!(
            "the server ended before it was ready; its log ends with:\n{log}"
        ));
        assert_eq!(
            text,
            "the server ended before it was ready; its log ends with: 2026 [ERROR] Can't create \
            file"
        );
        assert_eq!(more.as_deref(), Some(log.trim_end()));
        assert_eq!(brief("one line\n"), ("one line".to_owned(), None));
    }
}
