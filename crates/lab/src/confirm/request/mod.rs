//! From a survey and what of it is to be confirmed to a confirm campaign. Nothing is written before
//! everything is checked.

mod candidates;
mod design;
mod placement;

use std::path::Path;

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::Division;
use plimsoll_core::plan::{
    Budget, Cell, FEWEST_BLOCKS, IdleCpus, Plan, Split, Step, Verdicts, Verify,
};
use plimsoll_core::schedule::{Blocks, schedule_with_control};
use plimsoll_core::units::SECOND_NS;
use plimsoll_stats::LOADS_AS_UNITS;
use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};
use plimsoll_store::{
    BisectionProbe, CampaignDir, ClientHostsHeader, Confirm, Design, Fleet, Placement, Store,
    utc_now,
};

pub use self::candidates::as_survey;
use self::candidates::{Candidates, candidates};
pub(super) use self::design::{CellWithSettings, slices_bytes};
use self::design::{Measured, divisions, measured};
use self::placement::{idle_cpus, placement};
use crate::campaign::{DataSize, check_free, check_is_ours, create_in_store};
use crate::error::LabError;
use crate::places::{DataTurn, check_data_root, prepare_data_root, take_data_root_once};
use crate::states::at_once;

const TURN_NS_READ: u64 = 5_000_000;
const TURN_NS_WRITE: u64 = 50_000_000;
/// A step in turns has this long over all starts.
const SLICES_TIME_NS: u64 = 60 * SECOND_NS;
/// How often the data of each cell is made by default, without a budget.
pub(crate) const LOADS: u32 = 2;
/// With a budget there are no more starts than this: a step that needs more is not worth them.
const MOST_STARTS: u32 = 64;
/// And no more loads, while it has time for them: with four and more an interval has what loads
/// differ by in it, whatever the test, and with each more it is narrower.
pub(crate) const LOADS_IN_BUDGET: u32 = 16;
/// With a budget a start has as many rounds of turns that write, and as much time of those that
/// read. Starts differ by more than such a start's error, so that another start is worth more than
/// a longer one.
const ROUNDS_OF_START: u64 = 8;
/// A step of a block that ends by time is no longer than this.
const BLOCKS_TIME_NS: u64 = 60 * SECOND_NS;
pub(super) const STARTS: u32 = 5;
/// Enough for a campaign of a dozen questions: a lone effect takes `log2(40 F)` blocks.
const BLOCKS: u32 = 12;
/// The equivalence margin.
const DELTA: f64 = 0.03;
const ALPHA: f64 = 0.05;

/// Blocks that a lone effect among so many questions needs to survive the correction for all of
/// them.
pub(super) fn blocks_to_decide(questions: usize) -> u32 {
    (plimsoll_stats::blocks_to_decide(questions, ALPHA) as u32).max(FEWEST_BLOCKS)
}

/// How often the data of each cell is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadsChoice {
    /// So often, the control's too; without a number as often as is right for the design.
    Own(Option<u32>),
    /// Once, and the control has the base's.
    Shared,
}

/// How candidates meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignChoice {
    /// By slices where that is possible, else by blocks.
    Auto,
    /// By slices; with turns of these lengths in nanoseconds, reads and writes.
    Slices(Option<(u64, u64)>),
    /// By this many blocks.
    Blocks(u32),
}

/// On which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementChoice {
    /// Disjoint sets where there are two CPUs or more and servers of their own; nothing is pinned
    /// in blocks.
    Auto,
    /// Wherever the kernel likes.
    Unpinned,
    /// These, one after the other; at least one.
    Given(Vec<Placement>),
}

/// What is requested of a confirm campaign.
#[derive(Clone, Debug)]
pub struct ConfirmChoice {
    pub steps: Vec<String>,
    /// Whether they are all there are: then those that cannot take turns are left out where the
    /// others do.
    pub is_all: bool,
    /// Labels of the cells; none means all. Without the plan's base among them, the first one is
    /// the base.
    pub cells: Vec<String>,
    /// How they meet.
    pub design: DesignChoice,
    /// Slices: the longest time of a step over all starts; blocks: the length of a step that ends
    /// by time. In nanoseconds.
    pub time_ns: Option<u64>,
    /// Slices: starts.
    pub starts: Option<u32>,
    /// Slices: when there are enough starts, unless their number or the time is given.
    pub budget: Option<Budget>,
    /// How often the data of each cell is made.
    pub loads: LoadsChoice,
    /// For how long a step that writes writes before anything counts, in nanoseconds.
    pub age_ns: Option<u64>,
    /// On which CPUs.
    pub placement: PlacementChoice,
    /// How long each server is profiled in each step afterwards, in nanoseconds; none for no
    /// profiles.
    pub profile_ns: Option<u64>,
}

/// What a confirm campaign is made of.
pub struct ConfirmRequest<'a> {
    /// The campaign whose cells are candidates; without an id one that was never made.
    pub survey: &'a CampaignHeader,
    /// What is requested of it.
    pub choice: ConfirmChoice,
    /// The search that it is a probe of.
    pub bisection: Option<BisectionProbe>,
    /// Where data directories go.
    pub data_dir: &'a Path,
    /// This program's version.
    pub plimsoll_version: &'a str,
    /// The machines of its clients, if these are not next to the servers: by blocks alone.
    pub client_hosts: Option<ClientHostsHeader>,
}

/// Makes a confirm campaign in the store and takes its data folder. The sentences say what was
/// chosen, and why.
///
/// # Errors
/// When a requested cell or step is not there, cells cannot be confirmed together, or their data
/// does not fit on the disk.
pub fn create_confirm(
    store: &Store,
    request: &ConfirmRequest<'_>,
) -> Result<(CampaignDir, DataTurn, Vec<String>), LabError> {
    let (survey, choice) = (request.survey, &request.choice);
    if request.client_hosts.is_some() && !matches!(choice.design, DesignChoice::Blocks(_)) {
        return Err(no_turns_elsewhere());
    }
    let mut notes = Vec::new();
    let candidates = candidates(survey, &choice.cells)?;
    if candidates.cells.len() == 2 {
        notes.push("there is one cell: nothing but the A/A control is measured".to_owned());
    }
    let measured = measured(choice, &candidates.cells, &candidates.headers, &mut notes)?;
    let mut confirm = confirm(request, &candidates, &measured, &mut notes)?;
    check_data_root(request.data_dir)?;
    let design = measured.design;
    let links = candidates.fewest_links(design);
    // A budget takes as many loads as it has time for, and then few are nothing to report.
    let is_by_budget = confirm.budget.is_some() && choice.loads == LoadsChoice::Own(None);
    let enough = match (is_by_budget, links) {
        (true, None) => LOADS_AS_UNITS as u32,
        _ => u32::MAX,
    };
    let wanted = (confirm.loads, enough);
    confirm.loads = loads_that_fit(&candidates, design, wanted, request.data_dir, &mut notes);
    let bytes = disk_bytes(&candidates, design, confirm.loads);
    let turn = take_data_root_once(request.data_dir, || {
        check_free(bytes, "all candidates together", request.data_dir)
    })?;
    let idle_cpus = idle_cpus(survey.plan.idle_cpus, &mut notes);
    let plan = Plan {
        idle_cpus: Some(idle_cpus),
        ..plan(request, &candidates, &measured, &confirm)
    };
    let data_dir = prepare_data_root(request.data_dir)?;
    let header = header(survey, plan, candidates, confirm, &data_dir);
    let header = CampaignHeader {
        plimsoll_version: request.plimsoll_version.to_owned(),
        client_hosts: request.client_hosts.clone(),
        ..header
    };
    let name = header.plan.name.clone();
    Ok((create_in_store(store, header, &name)?, turn, notes))
}

/// Why candidates whose clients are on other machines do not meet by slices.
pub(crate) fn no_turns_elsewhere() -> LabError {
    LabError::Usage(
        "by slices servers and clients take turns of milliseconds on one machine: with client \
        hosts come to verdicts by blocks, with `[verdicts] blocks = 12` in the plan, or run the \
        plan with --screen"
            .into(),
    )
}

/// The same for blocks that run on other machines, whose folders and disks are looked at there.
///
/// # Errors
/// As [`create_confirm`], and when it is by slices, whose servers are all on one machine, or takes
/// profiles.
pub fn create_fleet_confirm(
    store: &Store,
    request: &ConfirmRequest<'_>,
    fleet: Fleet,
) -> Result<(CampaignDir, Vec<String>), LabError> {
    let (survey, choice) = (request.survey, &request.choice);
    check_is_ours(&survey.plan)?;
    let DesignChoice::Blocks(_) = choice.design else {
        return Err(LabError::Usage(
            "by slices all servers are on one machine: over hosts confirm by blocks, with --blocks \
            12 or `[verdicts] blocks = 12` in the plan, or run the plan with --screen"
                .into(),
        ));
    };
    if choice.profile_ns.is_some() {
        return Err(LabError::Usage(
            "profiles are taken on this machine: leave out --perf, or --hosts".into(),
        ));
    }
    let mut notes = Vec::new();
    let candidates = candidates(survey, &choice.cells)?;
    let measured = measured(choice, &candidates.cells, &candidates.headers, &mut notes)?;
    let confirm = confirm(request, &candidates, &measured, &mut notes)?;
    let plan = Plan {
        // Each host says in env.json whether it could.
        idle_cpus: Some(survey.plan.idle_cpus.unwrap_or(IdleCpus::Awake)),
        ..plan(request, &candidates, &measured, &confirm)
    };
    let header = CampaignHeader {
        plimsoll_version: request.plimsoll_version.to_owned(),
        fleet: Some(fleet),
        ..header(survey, plan, candidates, confirm, Path::new(""))
    };
    let name = header.plan.name.clone();
    Ok((create_in_store(store, header, &name)?, notes))
}

fn header(
    survey: &CampaignHeader,
    plan: Plan,
    candidates: Candidates,
    confirm: Confirm,
    data_dir: &Path,
) -> CampaignHeader {
    CampaignHeader {
        format: FORMAT,
        id: String::new(),
        created: utc_now(),
        plimsoll_version: String::new(),
        methodology_version: METHODOLOGY_VERSION,
        seed: survey.seed,
        plan_text: survey.plan_text.clone(),
        schedule: schedule_with_control(plan.cells.len(), plan.all_blocks(), survey.seed),
        cells: candidates.headers,
        plan,
        data_dir: data_dir.display().to_string(),
        confirm: Some(confirm),
        fleet: None,
        client_hosts: None,
    }
}

impl Candidates {
    /// How many links of a build run one after the other. By blocks one link runs alone.
    fn fewest_links(&self, design: Design) -> Option<u32> {
        fewest_links(&self.headers).filter(|_| design == Design::Slices)
    }
}

/// The number of links of the build that has the fewest, of those that have several: each goes with
/// a load, so that both count once.
pub(super) fn fewest_links<'a>(headers: impl IntoIterator<Item = &'a CellHeader>) -> Option<u32> {
    let builds = headers.into_iter().filter_map(|of| of.build.as_ref());
    let links = builds.map(|build| build.links.len() as u32);
    links.filter(|links| *links > 0).min()
}

/// How many loads of the data there are. `links` is how many links run one after the other, the
/// fewest of any build that has several.
fn loads(
    choice: LoadsChoice,
    links: Option<u32>,
    has_budget: bool,
) -> Result<Option<u32>, LabError> {
    Ok(match (choice, links) {
        (LoadsChoice::Shared, _) => None,
        // Each load counts once: two loads of one link would count what layout moves twice.
        (LoadsChoice::Own(Some(loads)), Some(links)) if loads > links => {
            return Err(LabError::Usage(format!(
                "--loads {loads} is more than the {links} links of a build, and each load has a \
                link of its own: give at most {links}, or choose a flag set with more links"
            )));
        }
        (LoadsChoice::Own(Some(loads)), _) => Some(loads),
        (LoadsChoice::Own(None), Some(links)) => Some(links),
        (LoadsChoice::Own(None), None) if has_budget => Some(LOADS_IN_BUDGET),
        (LoadsChoice::Own(None), None) => Some(LOADS),
    })
}

/// What the campaign's header says of the confirmation.
fn confirm(
    request: &ConfirmRequest<'_>,
    candidates: &Candidates,
    measured: &Measured,
    notes: &mut Vec<String>,
) -> Result<Confirm, LabError> {
    let choice = &request.choice;
    let Measured {
        design,
        requested,
        divisions,
    } = measured;
    let cells = &candidates.cells;
    let mut placements = placement(choice, *design, cells, notes)?.into_iter();
    let is_slices = *design == Design::Slices;
    let blocks = match choice.design {
        DesignChoice::Blocks(0) => {
            return Err(LabError::Usage(
                "--blocks must be at least 1; 6 blocks can decide one question, 12 about a dozen"
                    .into(),
            ));
        }
        DesignChoice::Blocks(blocks) => blocks,
        _ => BLOCKS,
    };
    // A search has as many probes as it takes.
    if !is_slices && blocks < FEWEST_BLOCKS && request.bisection.is_none() {
        notes.push(format!(
            "{blocks} blocks cannot decide anything at the level of {ALPHA}: {FEWEST_BLOCKS} are \
            the fewest that can"
        ));
    }
    let (turn_ns_read, turn_ns_write) = match choice.design {
        DesignChoice::Slices(Some(turns)) => turns,
        _ => (TURN_NS_READ, TURN_NS_WRITE),
    };
    let is_open = choice.time_ns.is_none() && choice.starts.is_none();
    let budget = choice.budget.filter(|_| is_slices && is_open);
    let default_starts = if budget.is_some() {
        MOST_STARTS
    } else {
        STARTS
    };
    let starts = choice.starts.unwrap_or(default_starts);
    let time_ns = choice.time_ns.unwrap_or(match (is_slices, budget) {
        (true, None) => SLICES_TIME_NS,
        (true, Some(_)) => {
            let round_ns = turn_ns_write.max(turn_ns_read) * cells.len() as u64;
            u64::from(starts) * ROUNDS_OF_START * round_ns
        }
        (false, _) => BLOCKS_TIME_NS,
    });
    let links = candidates.fewest_links(*design);
    let steps = divisions[0].steps.iter().map(|step| step.name.clone());
    let has_budget = budget.is_some();
    Ok(Confirm {
        of: Some(request.survey.id.clone()).filter(|id| !id.is_empty()),
        design: *design,
        steps: steps.filter(|step| requested.contains(step)).collect(),
        base: cells[candidates.base].label.clone(),
        control: cells[cells.len() - 1].label.clone(),
        starts: is_slices.then_some(starts),
        budget,
        blocks: (!is_slices).then_some(blocks),
        turn_ns_read,
        turn_ns_write,
        time_ns,
        before: divisions
            .iter()
            .map(|division| division.before.clone())
            .collect(),
        loads: loads(choice.loads, links, has_budget)?,
        age_ns: choice.age_ns,
        placement: placements.next(),
        more_placements: placements.collect(),
        delta: DELTA,
        alpha: ALPHA,
        profile_ns: choice.profile_ns,
        bisection: request.bisection.clone(),
    })
}

/// The survey's plan with the candidates as its cells, and their trials' steps.
fn plan(
    request: &ConfirmRequest<'_>,
    candidates: &Candidates,
    measured: &Measured,
    confirm: &Confirm,
) -> Plan {
    let of = &request.survey.plan;
    let name = match (&request.bisection, request.survey.id.as_str()) {
        (Some(_), _) => format!("{}-bisect", of.name),
        // The plan itself ran.
        (None, "") => of.name.clone(),
        (None, _) => format!("{}-confirm", of.name),
    };
    let with_divisions = candidates.cells.iter().zip(&measured.divisions);
    let cells: Vec<Cell> = with_divisions
        .map(|(cell, division)| short(cell.clone(), division, &request.choice, confirm))
        .collect();
    Plan {
        name,
        comparable: false,
        split: split(of, &cells, measured.design),
        cells,
        base: candidates.base,
        blocks: confirm.starts.or(confirm.blocks).unwrap_or(BLOCKS),
        // Counting rows after every step would be a visit to the caches.
        verify: if of.verify == Verify::Full {
            Verify::End
        } else {
            of.verify
        },
        report: Vec::new(),
        verdicts: None,
        ..of.clone()
    }
}

/// How often all cells of a plan run, and in how many parts: with verdicts about some of its tests
/// these may be fewer than the plan says.
pub fn blocks_of_run(plan: &Plan) -> Blocks {
    let by_blocks = run_by_blocks(plan);
    Blocks {
        count: match plan.verdicts {
            Some(Verdicts::Blocks(count)) => count,
            _ => plan.blocks,
        },
        parts: by_blocks.as_ref().map_or(plan, |run| &run.plan).parts(),
    }
}

/// What of the plan's tests is confirmed, in as many parts as the plan has or as there are tests
/// for. Slices have none.
fn split(of: &Plan, cells: &[Cell], design: Design) -> Option<Split> {
    let parts = of.parts().filter(|_| design == Design::Blocks)?;
    let mut fewer = (2..=parts as usize).rev();
    fewer.find_map(|parts| Split::of(cells, parts))
}

/// What the data of these candidates takes.
fn disk_bytes(candidates: &Candidates, design: Design, loads: Option<u32>) -> u64 {
    let cells = candidates.cells.iter().zip(&candidates.headers);
    let sizes = cells.map(|(cell, header)| DataSize::of(cell, &header.settings));
    bytes_of_all(&sizes.collect::<Vec<_>>(), design, loads, at_once())
}

/// By slices all states and all copies at once, and what the states that are made side by side take
/// before they are sparse: copies of the start before are there meanwhile. By blocks all states and
/// the largest copy.
fn bytes_of_all(sizes: &[DataSize], design: Design, loads: Option<u32>, at_once: usize) -> u64 {
    let made = match loads {
        Some(_) => sizes,
        // The control has the base's state.
        None => &sizes[..sizes.len() - 1],
    };
    let kept: u64 = made.iter().map(|size| size.kept).sum();
    let states = kept * u64::from(loads.unwrap_or(1));
    let peaks = sizes.iter().map(|size| size.peak);
    states
        + match design {
            Design::Slices => peaks.sum::<u64>() + DataSize::more_while_made(made, at_once),
            Design::Blocks => peaks.max().unwrap_or(0),
        }
}

/// As many loads as were asked for, or fewer if the disk is too small for them; that is reported if
/// they are not enough.
fn loads_that_fit(
    candidates: &Candidates,
    design: Design,
    (asked, enough): (Option<u32>, u32),
    data_dir: &Path,
    notes: &mut Vec<String>,
) -> Option<u32> {
    let what = "all candidates together";
    let fits = |loads: Option<u32>| {
        check_free(disk_bytes(candidates, design, loads), what, data_dir).is_ok()
    };
    let asked = asked?;
    let found = (1..=asked)
        .rev()
        .map(Some)
        .chain([None])
        .find(|loads| fits(*loads));
    // Where nothing fits the check that follows says so.
    let loads = found.unwrap_or(None);
    notes.extend(found.and_then(|loads| too_few_loads(loads, asked, enough)));
    loads
}

/// Says how many of the loads there will be, if these are not enough.
fn too_few_loads(loads: Option<u32>, asked: u32, enough: u32) -> Option<String> {
    match loads {
        Some(loads) if loads >= asked.min(enough) => None,
        Some(loads) => Some(format!(
            "the disk has room for {loads} of {asked} loads of the data"
        )),
        None => Some(
            "the disk has no room for another load: the control has the base's data, and how far \
            loads differ is not in the intervals"
                .to_owned(),
        ),
    }
}

/// The cell with the steps of its trials.
fn short(cell: Cell, division: &Division, choice: &ConfirmChoice, confirm: &Confirm) -> Cell {
    let change = |step: &mut Step| {
        if confirm.design == Design::Blocks {
            let age = confirm.age_ns.filter(|_| step.is_writing());
            shorten(step, (choice.time_ns, confirm.time_ns), age);
        }
    };
    with_steps(cell, division, change)
}

/// Gives a step of a block that ends by time the length that was asked for; where none was, its own
/// but at most `most_ns`.
fn shorten(step: &mut Step, (asked_ns, most_ns): (Option<u64>, u64), age_ns: Option<u64>) {
    if let Some(planned_ns) = step.duration_ns() {
        let time_ns = asked_ns.map_or(planned_ns.min(most_ns), |_| most_ns);
        step.set_duration(time_ns, age_ns);
    }
}

fn with_steps(mut cell: Cell, division: &Division, change: impl Fn(&mut Step)) -> Cell {
    let mut steps = division.steps.clone();
    steps.iter_mut().for_each(change);
    cell.workload = cell.workload.with_steps(steps);
    cell
}

/// A plan with verdicts by blocks as its trials run it.
pub(crate) struct RunByBlocks {
    /// The plan with the steps of trials, as long as they are there, and divided as they are.
    pub plan: Plan,
    /// By cell: the steps that make the data that trials begin with a copy of. None where trials
    /// make it.
    pub before: Vec<Vec<Step>>,
}

/// What trials of a plan with verdicts by blocks run; `None` of another plan, and of one whose
/// cells cannot be compared so, which `run` says.
pub(crate) fn run_by_blocks(plan: &Plan) -> Option<RunByBlocks> {
    let Some(Verdicts::Blocks(_)) = plan.verdicts else {
        return None;
    };
    let divisions = divisions(&plan.cells, &plan.judged_steps()).ok()?;
    let of_trials = plan.cells.iter().zip(&divisions);
    let cells: Vec<Cell> = of_trials
        .map(|(cell, division)| {
            let change = |step: &mut Step| shorten(step, (None, BLOCKS_TIME_NS), None);
            with_steps(cell.clone(), division, change)
        })
        .collect();
    Some(RunByBlocks {
        plan: Plan {
            split: split(plan, &cells, Design::Blocks),
            cells,
            ..plan.clone()
        },
        before: divisions.into_iter().map(|of| of.before).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `--loads 16` was taken for the default of a budget, and fewer were made without a word.
    #[test]
    fn fewer_loads_than_were_asked_for_are_reported() {
        for (loads, asked, enough, is_told) in [
            (Some(16), 16, u32::MAX, false),
            (Some(15), 16, u32::MAX, true),
            (Some(4), LOADS_IN_BUDGET, LOADS_AS_UNITS as u32, false),
            (Some(3), LOADS_IN_BUDGET, LOADS_AS_UNITS as u32, true),
            (None, LOADS_IN_BUDGET, LOADS_AS_UNITS as u32, true),
            (Some(2), LOADS, LOADS_AS_UNITS as u32, false),
        ] {
            let told = too_few_loads(loads, asked, enough);
            assert_eq!(told.is_some(), is_told, "{loads:?} of {asked}: {told:?}");
        }
    }

    /// Of simulated campaigns with eight loads of four links 31 in 100 called what is not there.
    #[test]
    fn there_are_no_more_loads_than_links() {
        let own = |asked| LoadsChoice::Own(asked);
        assert_eq!(loads(own(None), Some(4), true).unwrap(), Some(4));
        assert_eq!(loads(own(Some(2)), Some(4), false).unwrap(), Some(2));
        assert_eq!(loads(own(Some(4)), Some(4), false).unwrap(), Some(4));
        assert_eq!(loads(own(Some(8)), None, false).unwrap(), Some(8));
        let error = loads(own(Some(8)), Some(4), false).unwrap_err();
        assert!(error.to_string().contains("at most 4"), "{error}");
    }

    /// Loads that are made side by side take what one of them takes before it is sparse, each: the
    /// estimate had it for none.
    #[test]
    fn loads_take_their_peak_while_they_are_made() {
        let large = DataSize {
            peak: 1000,
            kept: 300,
        };
        let small = DataSize {
            peak: 100,
            kept: 100,
        };
        let sizes = [large, small, large];
        for (design, loads, at_once, bytes) in [
            (Design::Slices, Some(2), 1, 2 * 700 + 2100 + 700),
            (Design::Slices, Some(2), 4, 2 * 700 + 2100 + 1400),
            (Design::Slices, None, 4, 400 + 2100 + 700),
            (Design::Blocks, Some(2), 4, 2 * 700 + 1000),
        ] {
            let found = bytes_of_all(&sizes, design, loads, at_once);
            assert_eq!(found, bytes, "{design:?} {loads:?} {at_once}");
        }
    }

    #[test]
    fn more_questions_need_more_blocks() {
        for (questions, blocks) in [(0, 6), (1, 6), (10, 9), (32, 11), (100, 12), (300, 14)] {
            assert_eq!(blocks_to_decide(questions), blocks, "{questions}");
        }
    }
}
