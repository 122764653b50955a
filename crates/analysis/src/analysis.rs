//! From campaigns to the view.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use plimsoll_core::metric::{self, Metric};
use plimsoll_core::name::EngineName;
use plimsoll_core::plan::{
    ALL_EVENTS, Cell, Definition, Distribution, FileWorkload, InsertBenchmark, LoadMode, MixStep,
    QueryKind, Step, StepEnd, StepKind, Sysbench, TablePlacement, Test, TestKind, TestName,
    TestRate, Verify, Workload, WriteArrival, presets, published_position,
};
use plimsoll_core::suggest::first_few;
use plimsoll_core::toolchain;
use plimsoll_core::units::{format_count, format_duration_ns};
use plimsoll_store::event::Event;
use plimsoll_store::{CampaignRecord, CampaignState, Confirm, Design};

use crate::AnalysisError;
use crate::cells::differences::{compare, flatten};
use crate::cells::machines;
use crate::cells::selection::{Candidate, choose, find as find_cells};
use crate::cells::settings::{self, CellSettings};
use crate::cells::version_groups::{Version, grouped, published_groups, set_bases, version_groups};
use crate::imported::imported_view;
use crate::metrics::formulas::classic_rate;
use crate::metrics::value::{Measure, Value, median_over_blocks};
use crate::profiles::profiled;
use crate::runs::attempts::{Run, drain_after, runs_of_cell, server_ready};
use crate::runs::events::{event_row, event_rows};
use crate::steps::charts::charts;
use crate::steps::counters::counters;
use crate::steps::latency::{latency_tables, response_tables};
use crate::steps::shapes::shapes;
use crate::steps::summary::summarise;
use crate::verdicts::{Basis, Findings, Setting, Spreads, basis, find};
use crate::view::{
    CampaignInfo, CellInfo, Crash, Drain, OperationCount, Outcome, Status, StepResult, StepView,
    TestPlace, View,
};
use crate::words::notes::notes;
use crate::words::reasons::reasons;
use crate::words::rocksdb_description::{describe_kv, describe_rocksdb};
use crate::words::settling::unsettled_steps;
use crate::words::starved::starved_clients;

/// What to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The cell to divide by instead of the plan's base.
    pub base: Option<String>,
    /// Cells to show, each an exact cell, else an exact build, else the text of builds before the
    /// first `_`. Empty shows all.
    pub builds: Vec<String>,
}

/// One cell with all its runs.
pub(crate) struct CellRuns<'a> {
    pub campaign: &'a CampaignRecord,
    pub cell: &'a Cell,
    pub runs: Vec<Run<'a>>,
}

impl<'a> CellRuns<'a> {
    /// The used runs of a step, by block.
    pub fn used(&self, step: &str) -> impl Iterator<Item = &Run<'a>> {
        self.runs
            .iter()
            .filter(move |run| run.is_used && run.step.name == step)
    }

    /// The runs whose values stand for the step: the finished ones, without the suspect ones where
    /// there are others.
    pub fn valued(&self, step: &str) -> Vec<&Run<'a>> {
        let finished: Vec<&Run<'a>> = self
            .used(step)
            .filter(|run| run.status.is_finished())
            .collect();
        let trusted: Vec<&Run<'a>> = finished
            .iter()
            .copied()
            .filter(|run| run.status != Status::Suspect)
            .collect();
        if trusted.is_empty() {
            finished
        } else {
            trusted
        }
    }

    /// Whether it is the second instance of a confirm's base, and no candidate.
    pub fn is_control(&self) -> bool {
        self.campaign.header.is_control(&self.cell.label)
    }

    /// The plan's definition of a step.
    pub fn step(&self, name: &str) -> Option<&'a Step> {
        self.cell
            .workload
            .steps()
            .iter()
            .find(|step| step.name == name)
    }
}

/// [`analyse_among`] the campaigns themselves.
pub fn analyse(campaigns: &[CampaignRecord], options: &Options) -> Result<View, AnalysisError> {
    analyse_among(campaigns, options, campaigns)
}

/// Computes everything a report shows. Reads the 1-s series of the campaigns' trials; one that
/// cannot be read is a gap with a reason.
///
/// `stored` are the campaigns that tell how far starts of this machine lie apart; those of other
/// machines are passed over.
pub fn analyse_among(
    campaigns: &[CampaignRecord],
    options: &Options,
    stored: &[CampaignRecord],
) -> Result<View, AnalysisError> {
    let first = campaigns.first().ok_or(AnalysisError::NoCampaign)?;
    match campaigns
        .iter()
        .filter(|campaign| campaign.imported.is_some())
        .count()
    {
        0 => {}
        imported if imported == campaigns.len() => return imported_view(campaigns, options),
        _ => return Err(AnalysisError::Mixed),
    }
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
        plan_base(first),
    )?;

    let cells: Vec<CellRuns<'_>> = chosen
        .iter()
        .map(|index| {
            let (campaign, cell) = all[*index];
            let record = &campaigns[campaign];
            CellRuns {
                campaign: record,
                cell: &record.header.plan.cells[cell],
                runs: runs_of_cell(record, cell),
            }
        })
        .collect();
    let mut infos: Vec<CellInfo> = chosen
        .iter()
        .zip(&cells)
        .map(|(index, cell)| cell_info(cell, &candidates[*index].label, all[*index].0))
        .collect();
    let mut steps: Vec<StepView> = step_names(cells.iter().map(|cell| cell.cell))
        .into_iter()
        .map(|name| step_view(&name, &cells))
        .collect();

    let environments: Vec<_> = cells
        .iter()
        .map(|cell| first_record(cell, |record| record.environment.as_ref()).map(flatten))
        .collect();
    for (info, facts) in infos.iter_mut().zip(&environments) {
        info.machine = facts.as_ref().map(machines::identity).unwrap_or_default();
    }
    mark_incomparable(&mut infos);
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
    let settings = settings::compare(&settings);
    let candidates: Vec<usize> = (0..cells.len())
        .filter(|cell| !cells[*cell].is_control())
        .collect();
    let version_groups = version_groups(&infos, &candidates, &reported(&cells, &steps));
    // A confirm holds every candidate against one base.
    if first.header.confirm.is_none() {
        set_bases(&mut infos, &version_groups);
    }
    let spreads = if basis(first) == Basis::Screen {
        Spreads::of_machine(first, stored)
    } else {
        Spreads::default()
    };
    let findings = find(&Setting {
        infos: &infos,
        cells: &cells,
        control: experiment_control(first),
        steps: &steps,
        spreads: &spreads,
    });
    set_paired_ratios(&mut steps, &findings);
    let reported = reported(&cells, &steps);
    let is_of_tests = steps.iter().any(|step| step.test.is_some());
    let of_plan = (reported.len() < steps.len() && !is_of_tests).then(|| {
        let names: Vec<&str> = reported.iter().map(|step| step.name.as_str()).collect();
        format!(
            "The plan is about {}: the tables show no other step. All of them are in the details.",
            names.join(", ")
        )
    });
    let mut view = View {
        findings,
        profiles: profiled(&cells),
        title: title(campaigns),
        is_comparable: campaigns
            .iter()
            .all(|campaign| campaign.header.plan.comparable),
        campaigns: campaigns.iter().map(campaign_info).collect(),
        results: cells
            .iter()
            .enumerate()
            .flat_map(|(index, cell)| cell.runs.iter().map(move |run| step_result(index, run)))
            .collect(),
        summary: summarise(&infos, &reported),
        published: published_groups(&version_groups, &infos, &reported),
        reasons: reasons(&infos, &steps, basis(first) == Basis::Slices),
        steps,
        version_groups,
        environment: compare(&environments),
        settings,
        notes: Vec::new(),
        cells: infos,
    };
    view.notes = notes(&view);
    view.notes.extend(of_plan);
    view.notes.extend(cells_notes(&cells));
    view.notes.extend(
        view.cells
            .iter()
            .zip(&cells)
            .filter_map(|(info, cell)| stop_problem(&info.label, cell)),
    );
    view.notes.extend(
        view.cells
            .iter()
            .zip(&cells)
            .filter_map(|(info, cell)| starved_clients(&info.label, cell)),
    );
    if basis(first) != Basis::Slices {
        view.notes.extend(
            view.cells
                .iter()
                .zip(&cells)
                .filter_map(|(info, cell)| unsettled_steps(&info.label, cell)),
        );
    }
    Ok(view)
}

/// Tables of ratios and verdicts of one campaign must not differ: the ratio of two medians is
/// another number than the estimate over pairs.
fn set_paired_ratios(steps: &mut [StepView], findings: &Findings) {
    for finding in findings
        .all
        .iter()
        .filter(|finding| finding.is_throughput && finding.basis != Basis::Screen)
    {
        let outcome = steps
            .iter_mut()
            .find(|step| step.name == finding.step)
            .map(|step| &mut step.outcomes[finding.cell]);
        if let (Some(outcome), Some(estimate)) = (outcome, finding.estimate) {
            outcome.paired_ratio = Some(estimate.ratio);
        }
    }
}

/// The plan's base, or that of the experiment where the campaign confirms another.
fn plan_base(campaign: &CampaignRecord) -> usize {
    let plan = &campaign.header.plan;
    let of_experiment = campaign.header.confirm.as_ref().and_then(|confirm| {
        plan.cells
            .iter()
            .position(|cell| cell.label == confirm.base)
    });
    of_experiment.unwrap_or(plan.base)
}

/// The label of the cell that a campaign's ratios divide by where nobody asks for another; that of
/// `cell`, a name, where it has its own.
pub(crate) fn base_label<'a>(campaign: &'a CampaignRecord, cell: Option<&str>) -> Option<&'a str> {
    let base = cell
        .and_then(|name| base_of_versions(campaign, name))
        .unwrap_or_else(|| plan_base(campaign));
    Some(&campaign.header.plan.cells.get(base)?.label)
}

/// What the versions are divided by among which the one cell of this name stands.
fn base_of_versions(campaign: &CampaignRecord, name: &str) -> Option<usize> {
    let cells = &campaign.header.plan.cells;
    if campaign.header.confirm.is_some()
        || cells
            .iter()
            .any(|cell| cell.build.engine != EngineName::Rocksdb)
    {
        return None;
    }
    let candidates: Vec<Candidate> = cells
        .iter()
        .map(|cell| Candidate {
            label: cell.label.clone(),
            build: cell.build.to_string(),
        })
        .collect();
    let [wanted] = find_cells(name, &candidates).ok()?[..] else {
        return None;
    };
    let version = |cell: &Cell| Version {
        group: (cell.config.label.clone(), cell.shape.clone(), 0),
        build: cell.build.to_string(),
    };
    let versions: Vec<(usize, Version)> = cells.iter().map(version).enumerate().collect();
    let groups = grouped(&versions, &candidates.get(plan_base(campaign))?.build);
    let group = groups
        .into_iter()
        .find(|members| members.contains(&wanted))?;
    group.first().copied().filter(|base| *base != wanted)
}

/// The base of the experiment and its second instance, whichever cells are shown.
fn experiment_control(campaign: &CampaignRecord) -> Option<(CellRuns<'_>, CellRuns<'_>)> {
    let confirm = campaign.header.confirm.as_ref()?;
    let cells = &campaign.header.plan.cells;
    let runs = |label: &str| {
        let index = cells.iter().position(|cell| cell.label == label)?;
        Some(CellRuns {
            campaign,
            cell: &cells[index],
            runs: runs_of_cell(campaign, index),
        })
    };
    Some((runs(&confirm.base)?, runs(&confirm.control)?))
}

/// A server that did not stop as it should is news of its build, although every step was done and
/// verified before.
fn stop_problem(label: &str, cell: &CellRuns<'_>) -> Option<String> {
    let problem = first_record(cell, |record| {
        match record.events.last().map(|stamped| &stamped.event) {
            Some(Event::TrialDone(done)) => done.stop_problem.as_ref(),
            _ => None,
        }
    })?;
    Some(format!(
        "{label}: after the last step the server did not stop as it should: {problem}. No number \
        depends on it."
    ))
}

/// A label says its campaign only where another campaign has the same cell.
fn candidate(
    campaigns: &[CampaignRecord],
    all: &[(usize, usize)],
    (campaign, cell): (usize, usize),
) -> Candidate {
    let plan_cell = |(campaign, cell): (usize, usize)| -> &Cell {
        &campaigns[campaign].header.plan.cells[cell]
    };
    let this = plan_cell((campaign, cell));
    let is_shared = all
        .iter()
        .any(|other| other.0 != campaign && plan_cell(*other).label == this.label);
    let label = if is_shared {
        format!("{} in {}", this.label, campaigns[campaign].header.id)
    } else {
        this.label.clone()
    };
    Candidate {
        label,
        build: this.build.to_string(),
    }
}

fn title(campaigns: &[CampaignRecord]) -> String {
    let plans: BTreeSet<&str> = campaigns
        .iter()
        .map(|campaign| campaign.header.plan.name.as_str())
        .collect();
    let workloads: BTreeSet<&str> = campaigns
        .iter()
        .flat_map(|campaign| &campaign.header.plan.cells)
        .map(|cell| cell.workload.title())
        .collect();
    format!(
        "{}: {}",
        workloads.into_iter().collect::<Vec<_>>().join(" and "),
        plans.into_iter().collect::<Vec<_>>().join(", ")
    )
}

pub(crate) fn campaign_info(campaign: &CampaignRecord) -> CampaignInfo {
    let header = &campaign.header;
    CampaignInfo {
        id: header.id.clone(),
        plan: header.plan.name.clone(),
        description: header.plan.description.clone(),
        plan_text: header.plan_text.clone(),
        seed: header.seed,
        created: header.created.clone(),
        state: match campaign.state {
            CampaignState::Running => "running",
            CampaignState::Complete => "complete",
            CampaignState::Decided => "decided",
            CampaignState::Broken => "broken",
        },
        methodology_version: header.methodology_version,
        plimsoll_version: header.plimsoll_version.clone(),
        blocks: header.plan.blocks,
        verify: match header.plan.verify {
            Verify::Full => "full",
            Verify::End => "end",
            Verify::Counters => "counters",
        },
    }
}

/// The first used attempt of a cell that has what is asked for.
fn first_record<'a, T>(
    cell: &CellRuns<'a>,
    pick: impl Fn(&'a plimsoll_store::TrialRecord) -> Option<&'a T>,
) -> Option<&'a T> {
    cell.runs
        .iter()
        .filter(|run| run.is_used)
        .find_map(|run| pick(run.record?))
}

fn cell_info(cell: &CellRuns<'_>, label: &str, campaign: usize) -> CellInfo {
    let header = cell
        .campaign
        .header
        .cells
        .iter()
        .find(|header| header.label == cell.cell.label);
    let ready = first_record(cell, |record| server_ready(record));
    let text = |pick: fn(&plimsoll_store::header::CellHeader) -> &String| {
        header.map(pick).cloned().unwrap_or_default()
    };
    let build = header.and_then(|header| header.build.as_ref());
    // A path of this machine says nothing to the reader of a report.
    let config_source = text(|header| &header.config_source);
    let config_source = config_source
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    CellInfo {
        label: label.to_owned(),
        campaign,
        build: cell.cell.build.to_string(),
        version: ready.map_or_else(
            || text(|header| &header.version),
            |ready| ready.version.clone(),
        ),
        origin: text(|header| &header.origin),
        config: cell.cell.config.label.clone(),
        config_source,
        config_settings: header
            .map(|header| header.settings.clone())
            .unwrap_or_default(),
        shape: cell.cell.shape.clone(),
        workload: describe_workload(&cell.cell.workload),
        is_embedded: ready.map(|ready| ready.embedded),
        build_options: ready
            .map(|ready| ready.build_options.clone())
            .unwrap_or_default(),
        server_sha256: build.map(|build| build.server_sha256.clone()),
        toolchain: build
            .map(|build| build.toolchain.clone())
            .unwrap_or_default(),
        caveat: None,
        machine: BTreeMap::new(),
        other_machine: None,
        base: 0,
    }
}

/// Builds are compared with the base's. Cells of one build differ in nothing; an engine inside this
/// program was compiled with it.
fn mark_incomparable(infos: &mut [CellInfo]) {
    let Some((base, others)) = infos.split_first_mut() else {
        return;
    };
    for info in others {
        let is_same = match (&info.server_sha256, &base.server_sha256) {
            (None, None) => {
                info.build == base.build
                    || [&*info, &*base]
                        .iter()
                        .all(|info| info.is_embedded != Some(false))
            }
            (own, of_base) => own == of_base,
        };
        info.other_machine = machines::difference(base, info);
        info.caveat = if is_same {
            None
        } else {
            toolchain::caveat(&base.toolchain, &info.toolchain)
        };
    }
}

/// What a plan of microbenchmarks leaves out, once for each way of leaving out.
fn cells_notes(cells: &[CellRuns<'_>]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for sysbench in cells
        .iter()
        .filter_map(|cell| cell.cell.workload.sysbench())
    {
        let warming: Vec<&str> = sysbench
            .steps
            .iter()
            .filter(|step| matches!(step.kind, StepKind::Test(test) if !test.is_reported))
            .map(|step| step.name.as_str())
            .collect();
        let sentences = [
            (warming, "Tests that warm up are in the details only: "),
            (
                sysbench.left_out.iter().map(String::as_str).collect(),
                "The plan leaves tests out, and later tests find other tables than they would \
                behind them: ",
            ),
        ];
        for (names, what) in sentences {
            let note = format!("{what}{}{}.", first_few(&names), all_of(sysbench, &names));
            if !names.is_empty() && !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// Where the rest of a long list stands.
fn all_of(sysbench: &Sysbench, names: &[&str]) -> String {
    let is_whole = first_few(names) == names.join(", ");
    let preset = presets()
        .iter()
        .find(|preset| preset.definition == Definition::Sysbench(sysbench.sysbench));
    match preset.filter(|_| !is_whole) {
        Some(preset) => format!(
            " (`plimsoll workload show {}` lists all tests)",
            preset.name
        ),
        None => String::new(),
    }
}

fn describe_workload(workload: &Workload) -> String {
    match workload {
        Workload::InsertBenchmark(workload) => describe_insert_benchmark(workload),
        Workload::Sysbench(workload) => describe_sysbench(workload),
        Workload::File(workload) => describe_file(workload),
        Workload::Rocksdb(workload) => describe_rocksdb(workload),
    }
}

fn describe_sysbench(workload: &Sysbench) -> String {
    let load = workload.steps.iter().find_map(|step| match step.kind {
        StepKind::Prepare {
            load: LoadMode::Classic,
            ..
        } => Some("loaded as sysbench does"),
        StepKind::Prepare {
            load: LoadMode::Fast,
            ..
        } => Some("loaded fast"),
        _ => None,
    });
    let levels: Vec<u32> = workload
        .steps
        .iter()
        .filter_map(|step| level(&step.name))
        .collect();
    let clients = match (levels.iter().min(), levels.iter().max()) {
        (Some(least), Some(most)) => format!("{least} to {most} clients"),
        _ => count(workload.clients, "client"),
    };
    format!(
        "{clients}, {} of {} rows, {}, {}",
        count(workload.tables, "table"),
        format_count(workload.rows),
        load.unwrap_or("not loaded"),
        if workload.prepared {
            "prepared statements"
        } else {
            "statements in text"
        }
    )
}

fn describe_file(workload: &FileWorkload) -> String {
    format!(
        "{}, {} with {} rows in all, {}",
        count(workload.clients, "client"),
        count(workload.tables, "table"),
        format_count(workload.rows),
        if workload.prepared {
            "prepared statements"
        } else {
            "statements in text"
        }
    )
}

pub(crate) fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The clients of a step that is a level of a ramp, as its name says.
fn level(step: &str) -> Option<u32> {
    step.split_once('@')?.1.parse().ok()
}

fn test_place(step: &Step) -> Option<TestPlace> {
    let test = match &step.kind {
        StepKind::Test(test) => test,
        // The order of the plan: rows that are equal stay as they are.
        StepKind::Mix(_) => {
            return Some(TestPlace {
                group: None,
                position: (0, 0, Reverse(0)),
                level: level(&step.name),
            });
        }
        _ => return None,
    };
    let name = step.name.split('@').next().and_then(TestName::parse)?;
    Some(TestPlace {
        group: Some(test.kind.group()),
        position: published_position(name),
        level: level(&step.name),
    })
}

/// What comes behind the kind of a timed step: clients, pace, time.
fn describe_timing(
    step: &Step,
    rate: Option<TestRate>,
    what: &str,
    duration_ns: u64,
    warm_up_ns: u64,
) -> String {
    let duration = |ns: u64| {
        format_duration_ns(ns)
            .replace(".0s", "s")
            .replace("m00s", "m")
    };
    let pace = match rate {
        None => "flat out (closed loop)".to_owned(),
        Some(rate) => {
            let gaps = if rate.is_poisson {
                "with exponential gaps"
            } else {
                "evenly spaced"
            };
            format!("{} {what}/s {gaps} (open loop)", rate.per_s)
        }
    };
    let warm_up = if warm_up_ns > 0 {
        format!(" after {} of warm-up", duration(warm_up_ns))
    } else {
        String::new()
    };
    let failures = match step.max_failed {
        Some(share) => format!("; up to {} % of them may fail", share * 100.0),
        None => String::new(),
    };
    format!(
        "{}, {pace} for {}{warm_up}{failures}",
        count(step.clients, "client"),
        duration(duration_ns)
    )
}

fn describe_mix(step: &Step, mix: &MixStep) -> String {
    let sum: f64 = mix
        .events
        .iter()
        .map(|(_, weight)| f64::from(*weight))
        .sum();
    let parts: Vec<String> = match mix.events.as_slice() {
        [(only, _)] => vec![only.clone()],
        events => events
            .iter()
            .map(|(name, weight)| {
                format!("{name} {:.3} %", 100.0 * f64::from(*weight) / sum).replace(".000", "")
            })
            .collect(),
    };
    format!(
        "events: {}; {}",
        parts.join(", "),
        describe_timing(step, mix.rate, "events", mix.duration_ns, mix.warm_up_ns)
    )
}

fn describe_test(step: &Step, test: &Test) -> String {
    let mix = test.kind.statements();
    let event = match test.kind {
        TestKind::Scan => "scans of a table that match no row, in text".to_owned(),
        kind if kind.is_transaction() => {
            format!(
                "transactions of {} statements ({} read, {} write)",
                mix.all(),
                mix.reads,
                mix.writes
            )
        }
        _ => "single statements, each committed by itself".to_owned(),
    };
    let range = if test.kind.has_range() {
        format!(" with a range of {}", test.range)
    } else {
        String::new()
    };
    let distribution = match test.distribution {
        Distribution::Uniform => "uniform ids".to_owned(),
        Distribution::Zipfian { exponent } => format!("zipfian ids (exponent {exponent})"),
        Distribution::Pareto { h } => format!("pareto ids (h {h})"),
        Distribution::Gaussian => "gaussian ids".to_owned(),
        Distribution::Special => "ids of sysbench's special distribution".to_owned(),
    };
    let timing = describe_timing(
        step,
        test.rate,
        "transactions",
        test.duration_ns,
        test.warm_up_ns,
    );
    format!("{event}{range}, {distribution}, {timing}")
}

fn describe_insert_benchmark(workload: &InsertBenchmark) -> String {
    let clients = match workload.clients {
        1 => "1 client".to_owned(),
        clients => format!("{clients} clients"),
    };
    let tables = match (workload.tables, workload.clients) {
        (_, 1) => "1 table",
        (TablePlacement::PerClient, _) => "a table each",
        (TablePlacement::Shared, _) => "1 table for all",
    };
    let arrival = match workload.arrival {
        WriteArrival::Even => "evenly spaced",
        WriteArrival::ClassicBurst => "in one burst a second",
        WriteArrival::Poisson => "with exponential gaps",
    };
    format!(
        "{clients}, {tables}, {} rows loaded per client, background writes {arrival}",
        format_count(workload.rows)
    )
}

fn describe_step(step: &Step) -> String {
    let deletes = |deletes: bool| if deletes { " and as many deleted" } else { "" };
    let batch = step.batch;
    match &step.kind {
        StepKind::Load {
            rows,
            indexes_first,
        } => {
            let first = if *indexes_first {
                "secondary indexes in place, then "
            } else {
                ""
            };
            format!(
                "{first}{} rows per client inserted in primary key order, {batch} per transaction",
                format_count(*rows)
            )
        }
        StepKind::CreateIndexes { rows } => {
            format!(
                "the secondary indexes created, after {} rows per client inserted",
                format_count(*rows)
            )
        }
        StepKind::Write {
            rows,
            deletes: with,
        } => {
            format!(
                "{} rows per client inserted{} flat out, {batch} per transaction",
                format_count(*rows),
                deletes(*with)
            )
        }
        StepKind::ReadWrite {
            query,
            rate,
            duration_ns,
            end,
            deletes: with,
        } => {
            let query = match query {
                QueryKind::Range => "range queries",
                QueryKind::Point => "queries of ten primary keys",
            };
            let duration = format_duration_ns(*duration_ns)
                .replace(".0s", "s")
                .replace("m00s", "m")
                .replace("h00m", "h");
            let end = match end {
                StepEnd::Rows => format!("until the rows of {duration} are inserted"),
                StepEnd::Time => format!("for {duration}"),
            };
            let writes = format!(
                "{rate} rows/s per client inserted{}, {batch} per transaction",
                deletes(*with)
            );
            format!(
                "{query} flat out (closed loop) with {writes}, in the background (open loop), {end}"
            )
        }
        StepKind::Scan => "five scans of every table".to_owned(),
        StepKind::Prepare { tables, rows, load } => {
            let how = match load {
                LoadMode::Fast => "in the engine's fastest way",
                LoadMode::Classic => "as sysbench does",
            };
            format!(
                "{} of {} rows created, loaded {how}, and indexed",
                count(*tables, "table"),
                format_count(*rows)
            )
        }
        StepKind::Fill { tables, rows, load } => {
            let how = match load {
                LoadMode::Fast => "in the engine's fastest way",
                LoadMode::Classic => "by one connection",
            };
            format!(
                "{} with {} rows in all created, loaded {how}, and indexed",
                count(*tables, "table"),
                format_count(*rows)
            )
        }
        StepKind::Mix(mix) => describe_mix(step, mix),
        StepKind::Test(test) => describe_test(step, test),
        StepKind::Kv(kv) => describe_kv(step, kv),
    }
}

/// By slices a step has another length than the plan gives it.
fn in_turns(campaign: &CampaignRecord, step: &Step) -> String {
    let of_step =
        |confirm: &&Confirm| confirm.design == Design::Slices && confirm.steps.contains(&step.name);
    campaign
        .header
        .confirm
        .as_ref()
        .filter(of_step)
        .map_or_else(String::new, |confirm| {
            let turn_ns = if step.is_writing() {
                confirm.turn_ns_write
            } else {
                confirm.turn_ns_read
            };
            format!(
                "; here in turns of {}, {} at the most over {}, whatever the plan's length",
                format_duration_ns(turn_ns),
                format_duration_ns(confirm.time_ns),
                count(confirm.starts.unwrap_or(1), "start")
            )
        })
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

/// Every step of these cells, in the order of the plans.
pub(crate) fn step_names<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
    cells
        .into_iter()
        .flat_map(|cell| cell.workload.steps())
        .map(|step| step.name.clone())
        .unique()
        .collect()
}

fn step_view(name: &str, cells: &[CellRuns<'_>]) -> StepView {
    let valued: Vec<Vec<&Run<'_>>> = cells.iter().map(|cell| cell.valued(name)).collect();
    let representative: Vec<Option<&Run<'_>>> =
        valued.iter().map(|runs| runs.first().copied()).collect();
    let step = cells
        .iter()
        .find_map(|cell| cell.step(name))
        .expect("a step's name comes from a cell");
    let rate = match (step.primary_operation(), &step.kind) {
        ("insert" | "index", _) => metric::find("ips"),
        ("scan", StepKind::Test(_)) => metric::find_of_sysbench("krps"),
        (_, StepKind::Test(_) | StepKind::Mix(_)) => metric::find_of_sysbench("qps"),
        (_, StepKind::Kv(_)) => metric::find_of_rocksdb("qps"),
        _ => metric::find("qps"),
    };
    let rate = rate.expect("all are in the catalogue");
    StepView {
        clients: step.clients,
        test: test_place(step),
        name: name.to_owned(),
        description: describe_step(step) + &in_turns(cells[0].campaign, step),
        rate,
        operation: match step.primary_operation() {
            "insert" => "inserted row",
            "index" => "indexed row",
            "scan" if matches!(step.kind, StepKind::Test(_)) => "thousand rows",
            "transaction" | ALL_EVENTS => "statement",
            other => other,
        },
        outcomes: cells
            .iter()
            .zip(&valued)
            .map(|(cell, valued)| outcome(name, rate, cell, valued))
            .collect(),
        responses: response_tables(&valued),
        latencies: latency_tables(&valued),
        events: event_rows(step, &valued),
        charts: charts(&representative),
        shapes: shapes(&representative),
        counters: counters(&representative),
    }
}

fn outcome(name: &str, rate: &Metric, cell: &CellRuns<'_>, valued: &[&Run<'_>]) -> Outcome {
    let used: Vec<&Run<'_>> = cell.used(name).collect();
    let (status, reason) = overall(&used);
    let measures = match valued {
        [] => Vec::new(),
        [one] => one.measures.clone(),
        [first, ..] => (0..first.measures.len())
            .map(|i| {
                let values: Vec<_> = valued.iter().map(|run| &run.measures[i].value).collect();
                Measure {
                    metric: first.measures[i].metric,
                    value: median_over_blocks(&values),
                    classic: None,
                }
            })
            .collect(),
    };
    let crash = used.iter().find_map(|run| run.crash);
    let first = valued.first().and_then(|run| run.done);
    let drain = valued
        .first()
        .and_then(|run| drain_after(run.record?, name))
        .map(|drain| Drain {
            actions: drain
                .actions
                .iter()
                .map(|step| (step.action.clone(), step.seconds, step.result.clone()))
                .collect(),
            drained_s: drain.drained_s,
            waited_s: drain.waited_s,
        });
    let step = cell.step(name);
    let classic_rates = valued
        .iter()
        .filter_map(|run| classic_rate(run.done?, run.number(rate.name)));
    let classic_rates: Vec<Value> = classic_rates.map(|rate| Value::from(Ok(rate))).collect();
    let mut operations = sum_operations(valued);
    operations.sort_by_key(|operation| {
        step.is_none_or(|step| step.primary_operation() != operation.kind)
    });
    Outcome {
        status,
        reason,
        blocks_used: valued.len() as u32,
        blocks_planned: used.len() as u32,
        target_per_s: step.and_then(background_target_per_s),
        measures,
        rate_of_blocks: valued
            .iter()
            .filter_map(|run| run.number(rate.name))
            .collect(),
        classic_rate: median_over_blocks(&classic_rates.iter().collect::<Vec<_>>()).value,
        paired_ratio: None,
        operations,
        elapsed_s: first.map(|done| done.elapsed_ns as f64 / 1e9),
        crash: crash.map(|crash| Crash {
            status: crash.status.clone(),
            log_tail: crash.log_tail.clone(),
        }),
        drain,
        checks: first.map(|done| done.tables.clone()).unwrap_or_default(),
        notes: first.map(|done| done.notes.clone()).unwrap_or_default(),
    }
}

/// What the writers beside the step's own operations should do together.
fn background_target_per_s(step: &Step) -> Option<f64> {
    match &step.kind {
        StepKind::Kv(kv) => kv
            .background_writes()
            .map(|(writes, ns)| writes as f64 * 1e9 / ns as f64),
        _ => Some(step.background_rate()? as f64 * f64::from(step.clients)),
    }
}

/// The worst of the blocks that came to something; with several blocks the reason says which, and
/// how many are alike.
fn overall(used: &[&Run<'_>]) -> (Status, Option<String>) {
    let badness = |status: Status| match status {
        Status::Missing => 0,
        Status::Ok => 1,
        Status::Suspect => 2,
        Status::SlaMissed => 3,
        Status::Failed => 4,
        Status::Hung => 5,
        Status::Crashed => 6,
    };
    let Some(worst) = used
        .iter()
        .max_by_key(|run| (badness(run.status), Reverse(run.block)))
    else {
        return (
            Status::Missing,
            Some("the step is not in this cell's plan".to_owned()),
        );
    };
    let alike = used.iter().filter(|run| run.status == worst.status).count();
    let others = if alike > 1 {
        format!(" (and {} more of {} blocks)", alike - 1, used.len())
    } else {
        String::new()
    };
    let with_block = |reason: &String| {
        if used.len() > 1 {
            format!("block {}{others}: {reason}", worst.block)
        } else {
            reason.clone()
        }
    };
    (worst.status, worst.reason.as_ref().map(with_block))
}

fn operation_counts(run: &Run<'_>) -> impl Iterator<Item = OperationCount> {
    run.operations.iter().map(|operation| OperationCount {
        kind: operation.kind.clone(),
        attempts: operation.attempts,
        ok: operation.ok,
        retried: operation.retried,
        failed: operation.failed,
        unsent: operation.unsent,
        rows: operation.rows,
        errors: operation.errors.clone(),
        statements: operation.statements,
        wait_s: operation.wait_ns as f64 / 1e9,
    })
}

fn sum_operations(runs: &[&Run<'_>]) -> Vec<OperationCount> {
    let mut sums: Vec<OperationCount> = Vec::new();
    for count in runs.iter().flat_map(|run| operation_counts(run)) {
        let Some(sum) = sums.iter_mut().find(|sum| sum.kind == count.kind) else {
            sums.push(count);
            continue;
        };
        sum.attempts += count.attempts;
        sum.ok += count.ok;
        sum.retried += count.retried;
        sum.failed += count.failed;
        sum.unsent += count.unsent;
        sum.rows += count.rows;
        sum.wait_s += count.wait_s;
        sum.statements = sum
            .statements
            .zip(count.statements)
            .map(|(sum, of_run)| sum + of_run);
        for (class, errors) in count.errors {
            *sum.errors.entry(class).or_default() += errors;
        }
    }
    sums
}

fn step_result(cell: usize, run: &Run<'_>) -> StepResult {
    StepResult {
        cell,
        step: run.step.name.clone(),
        block: run.block,
        trial: run.trial,
        attempt: run.attempt,
        is_used: run.is_used,
        status: run.status,
        reason: run.reason.clone(),
        operations: operation_counts(run).collect(),
        events: match &run.step.kind {
            StepKind::Mix(mix) => mix
                .events
                .iter()
                .filter_map(|(kind, _)| event_row(kind, cell, &[run]))
                .collect(),
            _ => Vec::new(),
        },
        measures: run.measures.clone(),
    }
}
