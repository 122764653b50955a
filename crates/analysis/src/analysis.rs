//! From campaigns to the view.

use std::collections::BTreeMap;

use plimsoll_store::{CampaignDir, CampaignRecord};

use crate::AnalysisError;
use crate::cells::beyond::{self, SESSION};
use crate::cells::campaigns::{campaign_info, plan_base, title};
use crate::cells::cell_info::{CellInfo, candidate, cell_info, mark_incomparable};
use crate::cells::differences::{Differences, compare, flatten};
use crate::cells::machines;
use crate::cells::selection::{Candidate, choose};
use crate::cells::settings::{self, CellSettings, Settings};
use crate::cells::version_groups::{published_groups, set_bases, version_groups};
use crate::groups::{groups, row_costs};
use crate::imported::imported_view;
use crate::metrics::MetricSet;
use crate::profiles::profiled;
use crate::runs::attempts::{limits_of, runs_of_cell, server_ready};
use crate::runs::cell_runs::{CellRuns, experiment_control, first_record, step_names};
use crate::runs::results::{StepResult, step_result};
use crate::steps::step_view::{StepView, step_view};
use crate::steps::summary::summarise;
use crate::stored::Stored;
use crate::verdicts::pairs::by_block;
use crate::verdicts::{Basis, Experiment, Finding, Findings, Role, Spreads, basis, find};
use crate::view::{Books, View};
use crate::waits::waited;
use crate::words::books;
use crate::words::cell_notes::{cells_notes, stop_problem};
use crate::words::notes::notes;
use crate::words::reasons::reasons;
use crate::words::settling::unsettled_steps;
use crate::words::starved::starved_clients;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The cell to divide by instead of the plan's base.
    pub base: Option<String>,
    /// Cells to show, each an exact cell, else an exact build, else the text of builds before the
    /// first `_`. Empty shows all.
    pub builds: Vec<String>,
}

/// [`analyse_among`] the campaigns themselves.
pub fn analyse(campaigns: &[CampaignRecord], options: &Options) -> Result<View, AnalysisError> {
    analyse_among(campaigns, options, &Stored::of(campaigns))
}

/// A campaign as its page has it.
pub fn default_view(campaign: &CampaignDir) -> Result<View, AnalysisError> {
    let record = campaign
        .load()
        .map_err(|error| AnalysisError::Store(error.to_string()))?;
    let stored = Stored::beside(campaign);
    analyse_among(&[record], &Options::default(), &stored)
}

/// Computes everything a report shows. Reads the 1-s series of the campaigns' trials; one that
/// cannot be read is a gap with a reason.
///
/// `stored` are the campaigns that show how far starts of this machine lie apart; those of other
/// machines are passed over.
pub fn analyse_among(
    campaigns: &[CampaignRecord],
    options: &Options,
    stored: &Stored<'_>,
) -> Result<View, AnalysisError> {
    let first = campaigns.first().ok_or(AnalysisError::NoCampaign)?;
    let imported = campaigns
        .iter()
        .filter(|campaign| campaign.imported.is_some())
        .count();
    match imported {
        0 => {}
        imported if imported == campaigns.len() => return imported_view(campaigns, options),
        _ => return Err(AnalysisError::Mixed),
    }
    let (cells, mut infos) = chosen_cells(campaigns, options)?;
    let mut steps: Vec<StepView> = step_names(cells.iter().map(|cell| cell.cell))
        .into_iter()
        .map(|name| step_view(&name, &cells))
        .collect();
    let environment = environments(&cells, &mut infos);
    mark_incomparable(&mut infos);
    let settings = settings_of(&cells, &infos);
    let candidates: Vec<usize> = (0..cells.len())
        .filter(|cell| !cells[*cell].is_control())
        .collect();
    let version_groups = version_groups(&infos, &candidates, &reported(&cells, &steps));
    // A confirm compares every candidate with one base.
    if first.header.confirm.is_none() {
        set_bases(&mut infos, &version_groups);
    }
    let basis = basis(&first.header);
    let spreads = if basis == Basis::Screen {
        Spreads::of_machine(first, stored)
    } else {
        Spreads::default()
    };
    let control = experiment_control(first);
    let findings = find(&Experiment {
        infos: &infos,
        cells: &cells,
        control: control.as_ref(),
        steps: &steps,
        spreads: &spreads,
    });
    let again = control.as_ref().map(|(_, again)| again);
    set_paired_ratios(&mut steps, &findings);
    mark_apart(&mut steps, &infos, &cells);
    // Once more: the steps have changed.
    let reported = reported(&cells, &steps);
    let of_plan = steps_left_out(&steps, &reported);
    let mut view = View {
        groups: groups(&findings, &steps, &cells),
        row_costs: row_costs(&findings, &steps, &cells, again),
        findings,
        profiles: profiled(&cells),
        waits: waited(&cells),
        options: String::new(),
        title: title(campaigns),
        is_comparable: campaigns
            .iter()
            .all(|campaign| campaign.header.plan.comparable),
        campaigns: campaigns.iter().map(campaign_info).collect(),
        results: results(&cells),
        summary: summarise(&infos, &reported),
        published: published_groups(&version_groups, &infos, &reported),
        reasons: reasons(&infos, &steps, &limits_of(first), basis == Basis::Slices),
        steps,
        version_groups,
        environment,
        beyond_build: Vec::new(),
        settings,
        notes: Vec::new(),
        books: Books::default(),
        cells: infos,
    };
    // What follows looks at the finished view.
    view.beyond_build = beyond::within(&view);
    let labels = view.cells.iter().map(|info| info.label.as_str());
    let (books, unequal) = books::audit(labels.zip(&cells));
    view.books = books;
    let of_cells = notes_of_cells(&view, &cells, basis);
    view.notes = notes(&view);
    view.notes
        .extend(of_plan.into_iter().chain(unequal).chain(of_cells));
    Ok(view)
}

/// The cells that `options` ask for, the base first, with all their runs.
fn chosen_cells<'a>(
    campaigns: &'a [CampaignRecord],
    options: &Options,
) -> Result<(Vec<CellRuns<'a>>, Vec<CellInfo>), AnalysisError> {
    let all: Vec<(usize, usize)> = campaigns
        .iter()
        .enumerate()
        .flat_map(|(campaign, record)| {
            (0..record.header.plan.cells.len()).map(move |cell| (campaign, cell))
        })
        .collect();
    let candidates: Vec<Candidate> = all
        .iter()
        .map(|place| candidate(campaigns, &all, *place))
        .collect();
    let chosen = choose(
        &candidates,
        options.base.as_deref(),
        &options.builds,
        campaigns.first().map_or(0, plan_base),
    )?;
    Ok(chosen
        .into_iter()
        .map(|index| {
            let (campaign, cell) = all[index];
            let record = &campaigns[campaign];
            let runs = CellRuns {
                campaign: record,
                cell: &record.header.plan.cells[cell],
                runs: runs_of_cell(record, cell),
            };
            let info = cell_info(&runs, &candidates[index].label, campaign);
            (runs, info)
        })
        .unzip())
}

/// What differs between the environments of the cells. Sets each cell's machine.
fn environments(cells: &[CellRuns<'_>], infos: &mut [CellInfo]) -> Differences {
    let environments: Vec<_> = cells
        .iter()
        .map(|cell| first_record(cell, |record| record.environment.as_ref()).map(flatten))
        .collect();
    for ((info, facts), cell) in infos.iter_mut().zip(&environments).zip(cells) {
        let clients = cell.campaign.header.client_hosts.as_ref();
        let identity = facts
            .as_ref()
            .map(|facts| machines::identity(facts, clients));
        info.machine = identity.unwrap_or_default();
    }
    compare(&environments).behind(compare(&sessions(infos)))
}

/// The facts of the cells' sessions. Nothing is known of those of earlier versions.
fn sessions(infos: &[CellInfo]) -> Vec<Option<BTreeMap<String, String>>> {
    let named = |info: &CellInfo| {
        let facts = info.session.iter();
        facts
            .map(|(name, value)| (format!("{SESSION}{name}"), value.clone()))
            .collect()
    };
    let facts = infos.iter();
    facts
        .map(|info| (!info.session.is_empty()).then(|| named(info)))
        .collect()
}

/// The settings that the engines ran with, next to those that the configs ask for.
fn settings_of(cells: &[CellRuns<'_>], infos: &[CellInfo]) -> Settings {
    let effective = |cell: &CellRuns<'_>| {
        first_record(cell, |record| server_ready(record))
            .map(|ready| ready.effective_settings.clone())
    };
    let effective: Vec<_> = cells.iter().map(effective).collect();
    let settings: Vec<CellSettings<'_>> = infos
        .iter()
        .zip(&effective)
        .map(|(info, effective)| CellSettings {
            asked: &info.config_settings,
            effective: effective.as_ref(),
        })
        .collect();
    settings::compare(&settings)
}

fn results(cells: &[CellRuns<'_>]) -> Vec<StepResult> {
    cells
        .iter()
        .enumerate()
        .flat_map(|(index, cell)| cell.runs.iter().map(move |run| step_result(index, run)))
        .collect()
}

/// Says which steps the tables show where the plan names them.
fn steps_left_out(steps: &[StepView], reported: &[&StepView]) -> Option<String> {
    let is_of_tests = steps.iter().any(|step| step.set == MetricSet::Statements);
    (reported.len() < steps.len() && !is_of_tests).then(|| {
        let names: Vec<&str> = reported.iter().map(|step| step.name.as_str()).collect();
        format!(
            "The plan is about {}: the tables show no other step. All of them are in the details.",
            names.join(", ")
        )
    })
}

/// What a reader must know of single cells.
fn notes_of_cells(view: &View, cells: &[CellRuns<'_>], basis: Basis) -> Vec<String> {
    let each = |note: fn(&str, &CellRuns<'_>) -> Option<String>| {
        let cells = view.cells.iter().zip(cells);
        cells.filter_map(move |(info, cell)| note(&info.label, cell))
    };
    let mut notes = cells_notes(cells);
    notes.extend(each(stop_problem));
    notes.extend(each(starved_clients));
    // By slices a server rests between its turns: what settles does so there.
    if basis != Basis::Slices {
        notes.extend(each(unsettled_steps));
    }
    notes
}

/// Tables of ratios and verdicts of one campaign must not differ: the ratio of two medians is
/// another number than the estimate over pairs. What ran once on both sides is one pair.
fn set_paired_ratios(steps: &mut [StepView], findings: &Findings) {
    let of_throughput = |finding: &&Finding| finding.role == Role::Throughput;
    for finding in findings.all.iter().filter(of_throughput) {
        let Some(step) = steps.iter_mut().find(|step| step.name == finding.step) else {
            continue;
        };
        // The load of a screen runs in every part of its block.
        let has_several = |cell: usize| step.outcomes[cell].rate_of_blocks.len() > 1;
        let is_once = !has_several(finding.cell) && !has_several(finding.base);
        if finding.basis == Basis::Screen && is_once {
            continue;
        }
        if let Some(estimate) = finding.estimate {
            step.outcomes[finding.cell].paired_ratio = Some(estimate.ratio);
        }
    }
}

/// Marks what has numbers of other machines than its base's alone, in campaigns over hosts.
fn mark_apart(steps: &mut [StepView], infos: &[CellInfo], cells: &[CellRuns<'_>]) {
    for step in steps {
        for (index, cell) in cells.iter().enumerate() {
            let base = &cells[infos[index].base];
            let is_over_hosts = cell.campaign.header.fleet.is_some()
                && cell.campaign.header.id == base.campaign.header.id;
            let has_number = |cell: &CellRuns<'_>| !cell.valued(&step.name).is_empty();
            let has_both = infos[index].base != index && has_number(cell) && has_number(base);
            if is_over_hosts && has_both {
                step.outcomes[index].is_apart = by_block(base, cell, &step.name).is_empty();
            }
        }
    }
}

/// The steps that the plans are about: what `report` names, and where nothing is named, every step.
fn reported<'a>(cells: &[CellRuns<'_>], steps: &'a [StepView]) -> Vec<&'a StepView> {
    let is_wanted = |step: &&StepView| {
        cells.iter().any(|cell| {
            let report = &cell.campaign.header.plan.report;
            report.is_empty() || report.contains(&step.name)
        })
    };
    steps.iter().filter(is_wanted).collect()
}
