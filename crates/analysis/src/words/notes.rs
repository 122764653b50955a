//! What a reader must know before the numbers.

use itertools::Itertools;
use plimsoll_core::suggest::first_few;
use plimsoll_core::toolchain::Caveat;

use crate::cells::cell_info::CellInfo;
use crate::metrics::MetricSet;
use crate::runs::status::Status;
use crate::steps::classic_columns::without_base;
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::verdicts::Basis;
use crate::view::View;
use crate::words::client_hosts::client_hosts;
use crate::words::rocksdb_notes::rocksdb_notes;
use crate::words::waiting_note::waiting_note;

/// So begins the origin of a cell whose server is not ours.
const GIVEN: &str = "external server ";

/// What a server's cell says of its sessions when they went through our own client.
const THIN_CLIENT: &str = "thin";

/// Said of a lone cell.
pub(crate) const ONE_CELL: &str = "There is one cell: nothing to compare it with.";

/// All of them, the most general first.
pub(crate) fn notes(view: &View) -> Vec<String> {
    let mut notes = of_campaigns(view);
    notes.push(of_blocks(view));
    notes.extend(of_hosts(view));
    notes.extend(of_parts(view));
    notes.extend(of_totals(view));
    if view.cells.len() < 2 {
        notes.push(ONE_CELL.to_owned());
    }
    notes.extend(closed_loops(view));
    notes.extend(waiting_note(view));
    notes.extend(external_servers(view));
    notes.extend(client_hosts(view));
    notes.extend(incomparable_builds(view));
    notes.extend(other_machines(view));
    notes.extend(other_shapes(view));
    notes.extend(without_ratios(view));
    notes.extend(settings_not_as_asked(view));
    notes.extend(custom_parameters(view));
    notes.extend(session_clients(view));
    if view.cells.iter().any(|cell| cell.is_embedded == Some(true)) {
        notes.push(
            "An embedded engine shares its process with the client: server and client CPU cannot \
            be told apart."
                .to_owned(),
        );
    }
    notes.extend(of_statuses(view));
    notes.extend(rocksdb_notes(view));
    notes.extend(allowed_failures(view));
    notes.extend(unsent(view));
    notes.extend(wrong_row_counts(view));
    notes
}

/// Shortened plans, campaigns that are not complete, and numbers that mean different things.
fn of_campaigns(view: &View) -> Vec<String> {
    let mut notes = Vec::new();
    if !view.is_comparable {
        notes.push(
            "This is a shortened plan: its numbers are not comparable with those of full runs."
                .to_owned(),
        );
    }
    notes.extend(view.campaigns.iter().filter_map(|campaign| {
        let (id, command) = (&campaign.id, &campaign.continuing);
        match campaign.state {
            "running" => Some(format!(
                "Campaign {id} is still running: cells without a number have not run yet."
            )),
            "decided" if campaign.has_budget => Some(format!(
                "Campaign {id} {}: all was decided, or no time was left for more.",
                campaign.progress
            )),
            "decided" => Some(format!(
                "Campaign {id} ended at a planned look, because all was decided; `{command}` runs \
                on to the next one."
            )),
            "broken" => Some(format!(
                "Campaign {id} is not finished: `{command}` runs what is missing."
            )),
            _ => None,
        }
    }));
    notes.extend(view.campaigns.iter().filter_map(|campaign| {
        let names = campaign.strangers.join(", ");
        (!names.is_empty()).then(|| {
            format!(
                "In trials/ of campaign {} there are folders that are not called like trials, and \
                were not read: {names}.",
                campaign.id
            )
        })
    }));
    let mut versions = view
        .campaigns
        .iter()
        .flat_map(|campaign| &campaign.methodology_versions);
    if !versions.all_equal() {
        notes.push(
            "Trials were measured by different methodology versions: see the changelog \
            before comparing them."
                .to_owned(),
        );
    }
    notes
}

/// On which machines blocks ran.
fn of_hosts(view: &View) -> Vec<String> {
    let campaigns = view
        .campaigns
        .iter()
        .filter(|campaign| !campaign.hosts.is_empty());
    campaigns
        .map(|campaign| {
            let each: Vec<String> = campaign
                .hosts
                .iter()
                .map(|(host, blocks)| format!("{host} {blocks}"))
                .collect();
            let (what, within) = match campaign.parts.is_empty() {
                true => ("Blocks", "a block"),
                false => ("Parts of blocks", "a part of a block"),
            };
            format!(
                "{what} of {} by host: {}. Ratios are made within {within}, so within a host.",
                campaign.id,
                each.join(", ")
            )
        })
        .collect()
}

/// Which tests share a load, and where they ran.
fn of_parts(view: &View) -> Vec<String> {
    let campaigns = view.campaigns.iter().filter(|of| !of.parts.is_empty());
    campaigns
        .map(|campaign| {
            let parts = (1..).zip(&campaign.parts).map(|(number, part): (u32, _)| {
                let hosts = match part.hosts.is_empty() {
                    true => String::new(),
                    false => format!(", on {}", part.hosts.join(", ")),
                };
                format!("part {number} has {}{hosts}", first_and_last(&part.tests))
            });
            format!(
                "The tests of {} ran in {} parts, each on a {}: {}. Later tests find the tables as \
                earlier ones of their part leave them: compare with the same parts alone.",
                campaign.id,
                campaign.parts.len(),
                match campaign.copies_data {
                    true => "copy of a load",
                    false => "load of its own",
                },
                parts.collect::<Vec<_>>().join("; ")
            )
        })
        .collect()
}

/// `12 tests, point-query to insert`.
fn first_and_last(tests: &[String]) -> String {
    match tests {
        [] => "no test".to_owned(),
        [only] => only.clone(),
        [first, .., last] => format!("{} tests, {first} to {last}", tests.len()),
    }
}

/// What the numbers are values of.
fn of_blocks(view: &View) -> String {
    let most = |count: fn(&Outcome) -> u32| {
        view.steps
            .iter()
            .flat_map(|step| &step.outcomes)
            .filter(|outcome| outcome.blocks_planned > 0)
            .map(count)
            .max()
            .unwrap_or(0)
    };
    if most(|outcome| outcome.blocks_planned) <= 1 {
        return "Each cell ran once: a difference here is something to look at, not a verdict. One \
               run cannot tell a regression from noise."
            .to_owned();
    }
    let is_by_slices = is_by_slices(view);
    let noun = if is_by_slices { "start" } else { "block" };
    let outcomes = || view.steps.iter().flat_map(|step| &step.outcomes);
    let is_paired = !is_by_slices && outcomes().any(|outcome| outcome.paired_ratio.is_some());
    format!(
        "Values are medians over up to {} {noun}s{}; charts, counters, drains and row checks show \
        each cell's first finished {noun}.",
        most(|outcome| outcome.blocks_used).max(1),
        match is_paired {
            true => "; ratios are those of pairs within a block, not of these medians",
            false => "",
        }
    )
}

fn of_totals(view: &View) -> Option<String> {
    is_by_slices(view).then(|| {
        "The tables have totals over all turns, their ratios and the verdicts the typical round: a \
        stall of few turns moves the first alone."
            .to_owned()
    })
}

fn is_by_slices(view: &View) -> bool {
    let mut findings = view.findings.all.iter();
    findings.any(|finding| finding.basis == Basis::Slices)
}

/// What is not known of operations that nobody scheduled.
fn closed_loops(view: &View) -> Option<String> {
    let mut tables = view.steps.iter().flat_map(|step| &step.latencies);
    if !tables.any(|table| !table.is_open_loop) {
        return None;
    }
    let has = |set: MetricSet| view.steps.iter().any(|step| step.set == set);
    let note = if has(MetricSet::Statements) {
        "Closed loops have no schedule and so no response time: their service time does not show \
        what waiting callers would have seen."
    } else if has(MetricSet::Keys) {
        "Closed loops have no schedule and so no response time: their service time does not show \
        what waiting callers would have seen. The background writes follow a schedule and show \
        both."
    } else {
        "Closed loops (the l steps, and the queries of the q steps) have no schedule and so no \
        response time: their service time does not show what waiting callers would have seen. \
        Background writers follow a schedule and show both."
    };
    Some(note.to_owned())
}

/// How many steps of cells did not simply finish.
fn of_statuses(view: &View) -> impl Iterator<Item = String> {
    const WORDS: [(Status, &str); 6] = [
        (
            Status::SlaMissed,
            "missed their SLA, 95 % of the rate that was due: their numbers do not count as a \
            comparison",
        ),
        (
            Status::Suspect,
            "ran while other guests or other processes took CPU: treat their numbers as suspect",
        ),
        (Status::Failed, "failed"),
        (Status::Crashed, "crashed"),
        (Status::Hung, "hung"),
        (
            Status::Damaged,
            "are damaged: their files were edited, or are not what was written to them",
        ),
    ];
    let all = view.steps.len() * view.cells.len();
    let count = |status| {
        view.steps
            .iter()
            .flat_map(|step| &step.outcomes)
            .filter(|outcome| outcome.status == status)
            .count()
    };
    WORDS
        .into_iter()
        .map(move |(status, what)| (count(status), what))
        .filter(|(cells, _)| *cells > 0)
        .map(move |(cells, what)| format!("{cells} of {all} cell-steps {what}."))
}

fn wrong_row_counts(view: &View) -> impl Iterator<Item = String> {
    let outcomes = view
        .steps
        .iter()
        .flat_map(|step| step.outcomes.iter().map(move |outcome| (step, outcome)));
    let is_wrong = |outcome: &Outcome| {
        let mut checks = outcome.checks.iter();
        checks.any(|check| check.expected_rows != check.found_rows)
    };
    outcomes
        .filter(move |(_, outcome)| is_wrong(outcome))
        .map(|(step, _)| {
            format!(
                "A table does not hold the rows it should after {}.",
                step.name
            )
        })
}

fn labels(view: &View, cells: &[usize]) -> String {
    cells
        .iter()
        .map(|cell| view.cells[*cell].label.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// `a, b and c`.
fn and(parts: &[&str]) -> String {
    match parts.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => parts.concat(),
    }
}

/// Operations that failed in steps that are good nevertheless.
fn allowed_failures(view: &View) -> Option<String> {
    let outcomes = view.steps.iter().flat_map(|step| {
        step.outcomes
            .iter()
            .enumerate()
            .map(move |(cell, outcome)| (step, cell, outcome))
    });
    let describe = |(step, cell, outcome): (&StepView, usize, &Outcome)| {
        let failed: u64 = outcome
            .operations
            .iter()
            .map(|operation| operation.failed)
            .sum();
        let ended: u64 = outcome
            .operations
            .iter()
            .map(|operation| operation.ok + operation.failed)
            .sum();
        let share = 100.0 * failed as f64 / ended as f64;
        (outcome.status.is_finished() && failed > 0).then(|| {
            format!(
                "{} of {}: {failed} of {ended} ({share:.3} %)",
                step.name, view.cells[cell].label
            )
        })
    };
    let found: Vec<String> = outcomes.filter_map(describe).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Operations failed, and the plan allows so many: {}.",
            found.join("; ")
        )
    })
}

/// What open loops still owed at their end.
fn unsent(view: &View) -> Option<String> {
    let outcomes = view.steps.iter().flat_map(|step| {
        step.outcomes
            .iter()
            .enumerate()
            .map(move |(cell, outcome)| (step, cell, outcome))
    });
    let describe = |(step, cell, outcome): (&StepView, usize, &Outcome)| {
        let unsent: u64 = outcome
            .operations
            .iter()
            .map(|operation| operation.unsent)
            .sum();
        (unsent > 0).then(|| format!("{} of {}: {unsent}", step.name, view.cells[cell].label))
    };
    let found: Vec<String> = outcomes.filter_map(describe).collect();
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Operations were due before the end and never sent ({}): their response times are at \
            least what they had waited, and percentiles for which that is only a lower bound are \
            shown after >=.",
            first_few(&found)
        )
    })
}

/// The config's name of a cell on an external server is a name and nothing more.
pub(crate) fn external_servers(view: &View) -> Option<String> {
    let given = |cell: &&CellInfo| cell.origin.starts_with(GIVEN);
    let labels: Vec<&str> = view
        .cells
        .iter()
        .filter(given)
        .map(|cell| cell.label.as_str())
        .collect();
    (!labels.is_empty()).then(|| {
        format!(
            "{}: on an external server, with that server's own settings; nothing of a config was \
            applied there.",
            labels.join(", ")
        )
    })
}

/// A sentence for each way in which builds differ from the base's.
fn incomparable_builds(view: &View) -> Vec<String> {
    let mut groups: Vec<(&Caveat, Vec<usize>)> = Vec::new();
    for (i, cell) in view.cells.iter().enumerate() {
        let Some(caveat) = &cell.caveat else { continue };
        match groups.iter_mut().find(|(known, _)| *known == caveat) {
            Some((_, cells)) => cells.push(i),
            None => groups.push((caveat, vec![i])),
        }
    }
    let sentence = |(caveat, cells): (&Caveat, Vec<usize>)| {
        let verb = match (caveat.is_known, caveat.to_string().contains("unknown")) {
            (true, false) => "differ",
            (true, true) => "differ or are unknown",
            (false, _) => "are unknown",
        };
        format!(
            "† The base {} against {}: {caveat}. Their {} {verb}, so a ratio may show that and not \
            the engine.",
            view.cells[0].label,
            labels(view, &cells),
            and(&caveat.parts)
        )
    };
    groups.into_iter().map(sentence).collect()
}

/// Ratios between machines compare more than builds.
fn other_machines(view: &View) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (i, cell) in view.cells.iter().enumerate() {
        let Some(difference) = cell.other_machine.as_deref() else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == difference) {
            Some((_, cells)) => cells.push(i),
            None => groups.push((difference, vec![i])),
        }
    }
    let base = &view.cells[0].label;
    let sentence = |(difference, cells): (&str, Vec<usize>)| {
        format!(
            "‡ The base {base} and {} ran on different machines ({difference}): a ratio compares \
            the machines too.",
            labels(view, &cells)
        )
    };
    groups.into_iter().map(sentence).collect()
}

/// Ratios between shapes compare more than builds.
fn other_shapes(view: &View) -> Option<String> {
    let base = &view.cells[0];
    let shape = |cell: &CellInfo| format!("{} ({})", cell.shape, cell.workload);
    let others = view
        .cells
        .iter()
        .filter(|cell| cell.workload != base.workload)
        .map(shape)
        .unique()
        .join("; ");
    (!others.is_empty()).then(|| {
        format!(
            "Shapes differ: the base is {}, others are {others}. Ratios between shapes compare the \
            shapes too.",
            shape(base)
        )
    })
}

/// Steps without ratios, because the base has no number there and another cell has one.
fn without_ratios(view: &View) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for step in &view.steps {
        let has = |cell: usize| step.outcomes[cell].number(step.rate).is_some();
        let mut bases: Vec<usize> = (0..view.cells.len())
            .filter(|cell| has(*cell))
            .map(|cell| view.cells[cell].base)
            .collect();
        bases.dedup();
        for base in bases.into_iter().filter(|base| !has(*base)) {
            let reason = without_base(&step.outcomes[base]);
            match groups.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, steps)) if steps.contains(&step.name.as_str()) => {}
                Some((_, steps)) => steps.push(&step.name),
                None => groups.push((reason, vec![&step.name])),
            }
        }
    }
    let sentence = |(reason, steps): (String, Vec<&str>)| {
        format!(
            "There are no ratios in {}: {reason}. `--base CELL` divides by another cell.",
            steps.join(", ")
        )
    };
    groups.into_iter().map(sentence).collect()
}

/// What runs otherwise than a config asks, with its cells where it is not so in all of them.
pub(crate) fn settings_not_as_asked(view: &View) -> Option<String> {
    let others: Vec<String> = view
        .settings
        .not_as_asked
        .iter()
        .filter_map(|setting| {
            let found = setting.found.as_ref().ok()?;
            let of = if setting.cells.len() == view.cells.len() {
                String::new()
            } else {
                format!(" ({})", labels(view, &setting.cells))
            };
            Some(format!(
                "{} asked {}, runs with {found}{of}",
                setting.name, setting.asked
            ))
        })
        .collect();
    (!others.is_empty()).then(|| format!("Settings that engines adjusted: {}.", others.join("; ")))
}

/// A name that is misspelt behind its dot is legal too.
fn custom_parameters(view: &View) -> Option<String> {
    match view.settings.custom.as_slice() {
        [] => None,
        [one] => Some(format!(
            "{one} is a custom parameter: no module of the server defines it."
        )),
        several => Some(format!(
            "{} are custom parameters: no module of the server defines them.",
            several.join(", ")
        )),
    }
}

/// Which client each cell's sessions went through, when not all went through the same, or none
/// through our own.
fn session_clients(view: &View) -> Option<String> {
    let clients = &view.settings.session_clients;
    let first = clients.iter().flatten().next()?;
    if clients.iter().flatten().all(|client| client == first) {
        return (first != THIN_CLIENT).then(|| {
            format!(
                "The sessions went through the {first}, which costs more CPU than the thin client."
            )
        });
    }
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (cell, client) in clients
        .iter()
        .enumerate()
        .filter_map(|(cell, client)| Some((cell, client.as_deref()?)))
    {
        match groups.iter_mut().find(|(known, _)| *known == client) {
            Some((_, cells)) => cells.push(cell),
            None => groups.push((client, vec![cell])),
        }
    }
    let groups: Vec<String> = groups
        .iter()
        .map(|(client, cells)| format!("{client}: {}", labels(view, cells)))
        .collect();
    Some(format!(
        "The sessions of these cells went through different clients, which cost different CPU; a \
        ratio may show that and not the engine: {}.",
        groups.join("; ")
    ))
}
