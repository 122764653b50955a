//! Which steps of a survey are worth a confirm.

use plimsoll_core::plan::{Plan, Step};
use plimsoll_stats::Verdict;

use crate::verdicts::{Finding, Role, finding_line};
use crate::view::View;

/// What is worth a confirm, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unusual {
    /// The steps to confirm. None where nothing is unusual, or nothing could be judged.
    pub steps: Vec<String>,
    /// A line per finding that was looked at, and what follows where there are no steps.
    pub lines: Vec<String>,
}

/// The steps of a campaign that a confirm should measure: those whose throughput is unusual, or
/// open where `has_verdicts`. Steps that make the data of others are named, and left out. `cells`
/// are labels; without any, all cells count.
pub fn unusual(view: &View, plan: &Plan, cells: &[String], has_verdicts: bool) -> Unusual {
    let of_throughput = || {
        view.findings
            .all
            .iter()
            .filter(|of| of.role == Role::Throughput)
    };
    let mut found = Unusual::default();
    for finding in of_throughput().filter(|finding| !finding.call.is_judged()) {
        found.lines.push(format!(
            "{}: left out for {}: {}",
            finding.step, view.cells[finding.cell].label, finding.reason
        ));
    }
    let is_chosen =
        |finding: &&Finding| cells.is_empty() || cells.contains(&view.cells[finding.cell].label);
    let mut has_loads = false;
    let is_wanted = |finding: &&Finding| match has_verdicts {
        true => finding.verdict() == Some(Verdict::Inconclusive),
        false => finding.is_worth_confirming(),
    };
    for finding in of_throughput().filter(is_wanted).filter(is_chosen) {
        found.lines.push(finding_line(view, finding));
        if makes_data(plan, &finding.step) {
            has_loads = true;
            found.lines.push(format!(
                "{0}: it makes the data of the other steps: --step {0} confirms it",
                finding.step
            ));
        } else if !found.steps.contains(&finding.step) {
            found.steps.push(finding.step.clone());
        }
    }
    if found.steps.is_empty() {
        let results: Vec<&Finding> = of_throughput()
            .filter(|finding| !makes_data(plan, &finding.step))
            .collect();
        found.lines.push(match has_verdicts {
            true => nothing_open(view),
            false => nothing(view, &results, has_loads),
        });
    }
    found
}

fn makes_data(plan: &Plan, name: &str) -> bool {
    let mut steps = plan.cells.iter().flat_map(|cell| cell.workload.steps());
    steps.any(|step: &Step| step.name == name && step.makes_data())
}

fn id(view: &View) -> &str {
    view.campaigns.first().map_or("", |campaign| &campaign.id)
}

fn nothing_open(view: &View) -> String {
    format!(
        "nothing in {} is open: --all, or --step NAME, measures what is decided once more",
        id(view)
    )
}

/// Why there is no step to confirm.
fn nothing(view: &View, results: &[&Finding], has_loads: bool) -> String {
    let id = id(view);
    let is_judged = |finding: &&Finding| finding.call.is_judged();
    if !results.is_empty() && !results.iter().any(is_judged) {
        let disturbed = results
            .iter()
            .filter(|finding| finding.left_out > 0)
            .count();
        return nothing_judged(id, results.len(), disturbed);
    }
    let else_ = if has_loads { "else " } else { "" };
    format!(
        "nothing {else_}in {id} is unusual: every difference that can be judged is within normal \
        restart-to-restart variation; --all confirms everything"
    )
}

/// Of a screen without a result that counts.
fn nothing_judged(id: &str, results: usize, disturbed: usize) -> String {
    let all = if results == 1 {
        "its one result is".to_owned()
    } else {
        format!("all {results} results are")
    };
    match disturbed {
        0 => format!("nothing in {id} could be judged: {all} left out; --all confirms everything"),
        _ => format!(
            "nothing in {id} could be judged: {all} left out, {disturbed} because the machine was \
            disturbed; run it again on a quieter machine, or confirm with --step or --all"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::nothing_judged;

    #[test]
    fn a_screen_that_was_disturbed_all_the_time_is_told_with_its_count() {
        assert_eq!(
            nothing_judged("c", 1, 0),
            "nothing in c could be judged: its one result is left out; --all confirms everything"
        );
        let disturbed = nothing_judged("c", 14, 12);
        assert!(
            disturbed.contains("all 14 results are left out, 12 because the machine was disturbed"),
            "{disturbed}"
        );
        assert!(
            disturbed.contains("on a quieter machine") && disturbed.contains("--all"),
            "{disturbed}"
        );
    }
}
