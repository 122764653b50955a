//! What to do next if a confirm campaign has decided nothing.

use std::path::Path;

use itertools::Itertools;
use plimsoll_core::units::SECOND_NS;
use plimsoll_stats::{FEWEST_STARTS, Verdict};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{Fleet, in_commands, shell_word};

use crate::verdicts::{Basis, Call, Finding, Role, basis};
use crate::view::View;

/// The smallest number that is worth advising.
const ADVISED_STARTS: u32 = 5;
const ADVISED_BLOCKS: u32 = 12;

/// A sentence if no throughput of any candidate has a verdict; none if one has, and if the base is
/// the only candidate. `path` is the campaign's folder; the command has `view.options`, too.
pub fn undecided(view: &View, header: &CampaignHeader, path: &Path) -> Option<String> {
    let of_throughput = |finding: &&Finding| finding.role == Role::Throughput;
    let all: Vec<&Finding> = view.findings.all.iter().filter(of_throughput).collect();
    let confirm = header.confirm.as_ref()?;
    let is_candidate = |label: &String| ![&confirm.base, &confirm.control].contains(&label);
    let mut labels = header.plan.cells.iter().map(|cell| &cell.label);
    if !labels.any(is_candidate) {
        return None;
    }
    let is_decided = |finding: &&Finding| {
        let verdict = finding.verdict();
        verdict.is_some_and(|verdict| verdict != Verdict::Inconclusive)
    };
    if all.iter().any(is_decided) {
        return None;
    }
    let are_all = |call: Call| !all.is_empty() && all.iter().all(|of| of.call == call);
    let count = match all.len() {
        // A start may be so short that no round has an operation on all sides.
        0 => "no throughput could be compared".to_owned(),
        1 => "the one throughput has no verdict".to_owned(),
        count => format!("none of {count} throughputs has a verdict"),
    };
    let longest = view
        .campaigns
        .iter()
        .map(|campaign| campaign.longest_trial_ns);
    let least_ns = least_budget_ns(longest.max().unwrap_or(0));
    let next = if are_all(Call::Invalid) {
        "the reasons are above: mend what failed or was disturbed, and confirm again".to_owned()
    } else if are_all(Call::DependsOnTurns) {
        by_blocks(header, path, &view.options)
    } else {
        more(header, path, basis(header), least_ns, &view.options)
    };
    Some(format!("undecided: {count}; {next}"))
}

/// `plimsoll confirm CAMPAIGN --step STEPS HOW OPTIONS`, on the hosts of the campaign if it has some
/// and the options name none.
fn command(header: &CampaignHeader, path: &Path, how: &str, options: &str) -> String {
    let confirm = header.confirm.as_ref();
    let of = confirm.and_then(|confirm| confirm.of.as_deref());
    let of = of.map_or_else(|| path.to_owned(), |id| path.with_file_name(id));
    let mut steps = confirm.iter().flat_map(|confirm| &confirm.steps);
    let steps = steps.join(",");
    let hosts = match &header.fleet {
        Some(Fleet::Hosts { names, .. }) if !options.contains(" --hosts ") => {
            format!(" --hosts {}", names.join(","))
        }
        _ => String::new(),
    };
    format!(
        "plimsoll confirm {} --step {} {how}{hosts}{options}",
        in_commands(&of),
        shell_word(&steps)
    )
}

/// The command that measures one server at a time.
pub(super) fn by_blocks(header: &CampaignHeader, path: &Path, options: &str) -> String {
    let how = format!("--blocks {ADVISED_BLOCKS}");
    format!(
        "one server at a time: {}",
        command(header, path, &how, options)
    )
}

/// A budget in which as many starts fit as a verdict needs, if each takes as long as the longest
/// trial; and one more, because the loads of their data are not in it.
pub(super) fn least_budget_ns(longest_trial_ns: u64) -> u64 {
    longest_trial_ns.saturating_mul(FEWEST_STARTS as u64 + 1)
}

/// The command that measures more, with a budget of `least_ns` at least if there is one.
pub(super) fn more(
    header: &CampaignHeader,
    path: &Path,
    basis: Basis,
    least_ns: u64,
    options: &str,
) -> String {
    let Some(confirm) = &header.confirm else {
        return String::new();
    };
    let twice = |count: Option<u32>, least: u32| (2 * count.unwrap_or(0)).max(least);
    let how = match (basis, confirm.budget) {
        (_, Some(budget)) => {
            format!(
                "--budget {}m",
                budget
                    .time_ns
                    .saturating_mul(2)
                    .max(least_ns)
                    .div_ceil(60 * SECOND_NS)
            )
        }
        (Basis::Slices, None) => {
            let starts = twice(confirm.starts, ADVISED_STARTS.max(FEWEST_STARTS as u32));
            format!("--starts {starts}")
        }
        _ => format!("--blocks {}", twice(confirm.blocks, ADVISED_BLOCKS)),
    };
    format!(
        "for narrower intervals: {}",
        command(header, path, &how, options)
    )
}
