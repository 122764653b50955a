//! Profiles of the candidates' servers, each alone, in a pass of its own: what is profiled is not
//! measured, and the other way round.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::plan::{Cell, Verify, order_in_turns};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::event::Event;
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{
    CampaignDir, Design, PROFILES_FOLDER, Stamped, create_new_folder, profile_folder, read_events,
    read_profiles,
};

use crate::campaign_run::CampaignRun;
use crate::error::LabError;
use crate::observer::Notice;
use crate::trial_process::remove_data_after;

const WARM_UP_NS: u64 = 500_000_000;
/// Each server is started and profiled so many times: one start cannot show which functions' time
/// differs by more than starts do.
const PASSES: u32 = 3;
/// A cell that could not be profiled so often is not tried again.
const MOST_FAILED: u32 = 2;

/// Profiles every cell but the control, pass by pass, where it has no profile yet and profiles are
/// requested. True when the user has stopped it. A profile that cannot be taken is reported, and is not a failure
/// of the campaign.
pub(crate) fn run_profiles(run: &mut CampaignRun<'_, '_>) -> Result<bool, LabError> {
    let campaign = run.runner.campaign;
    let requested = campaign
        .header
        .confirm
        .as_ref()
        .and_then(|confirm| Some((confirm, confirm.profile_ns?)));
    let Some((confirm, profile_ns)) = requested else {
        return Ok(false);
    };
    let cells: Vec<(usize, &Cell)> = campaign
        .header
        .plan
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.label != confirm.control)
        .collect();
    let mut failed: BTreeMap<usize, u32> = BTreeMap::new();
    for pass in 1..=PASSES {
        for (index, cell) in &cells {
            if failed.get(index).is_some_and(|times| *times >= MOST_FAILED) {
                continue;
            }
            let problem = match pass_of(run, *index, pass, profile_ns)? {
                Ended::Stopped => return Ok(true),
                Ended::Done(problem) => problem,
            };
            if let Some(reason) = problem {
                *failed.entry(*index).or_default() += 1;
                warn(run, cell, &reason);
            }
        }
    }
    Ok(false)
}

/// Whether no profile is left to be taken: none is requested, or each cell that can have them has
/// one of each pass.
pub(crate) fn is_profiled(campaign: &CampaignDir) -> bool {
    let requested = campaign.header.confirm.as_ref();
    let Some(confirm) = requested.filter(|confirm| confirm.profile_ns.is_some()) else {
        return true;
    };
    let folder = campaign.path.join(PROFILES_FOLDER);
    let mut cells = campaign.header.plan.cells.iter().enumerate();
    cells.all(|(index, cell)| {
        let cannot = cell.label == confirm.control || cell.build.engine.is_embedded();
        cannot || (1..=PASSES).all(|pass| next_attempt(&folder, index, pass).is_none())
    })
}

/// How one pass of one cell ended.
enum Ended {
    /// By the user.
    Stopped,
    /// With a profile, or why there is none.
    Done(Option<String>),
}

/// Takes a cell's profile in a pass, if it is not there.
fn pass_of(
    run: &mut CampaignRun<'_, '_>,
    index: usize,
    pass: u32,
    profile_ns: u64,
) -> Result<Ended, LabError> {
    let campaign = run.runner.campaign;
    let cell = &campaign.header.plan.cells[index];
    if cell.build.engine.is_embedded() {
        if pass > 1 {
            return Ok(Ended::Done(None));
        }
        let reason = "an embedded engine has no server of its own";
        return Ok(Ended::Done(Some(reason.to_owned())));
    }
    let folder = campaign.path.join(PROFILES_FOLDER);
    let Some(attempt) = next_attempt(&folder, index, pass) else {
        return Ok(Ended::Done(None));
    };
    run.observer.notice(Notice::ProfileStart { cell });
    let name = profile_folder(index, pass, attempt);
    let ended = profile(run, index, (attempt, &name), profile_ns)?;
    if run.is_stopped() {
        return Ok(Ended::Stopped);
    }
    let unavailable = || unavailable(&campaign.path, &cell.label);
    Ok(Ended::Done(ended.err().or_else(unavailable)))
}

fn warn(run: &mut CampaignRun<'_, '_>, cell: &Cell, reason: &str) {
    let text = format!("no profile of {}: {reason}", cell.label);
    run.observer.notice(Notice::Warning(&text));
}

/// The number of the next attempt at a cell's profile in a pass; none when it has one.
fn next_attempt(folder: &Path, cell: usize, pass: u32) -> Option<u32> {
    let attempts = (1..).map(|attempt| folder.join(profile_folder(cell, pass, attempt)));
    let made: Vec<_> = attempts.take_while(|dir| dir.exists()).collect();
    let is_profiled = made
        .iter()
        .any(|dir| read_events(dir.join(EVENTS_FILE)).is_ok_and(|log| is_complete(&log.events)));
    (!is_profiled).then(|| made.len() as u32 + 1)
}

/// Runs the cell's steps as profiles want them: each for this long, and nothing else measured. The
/// inner error says why there is no profile.
fn profile(
    run: &mut CampaignRun<'_, '_>,
    cell: usize,
    (attempt, name): (u32, &str),
    profile_ns: u64,
) -> Result<Result<(), String>, LabError> {
    let runner = run.runner;
    let dir = runner.campaign.path.join(PROFILES_FOLDER).join(name);
    let data_dir = run.data_dir.join(format!("profile-{name}"));
    let confirm = runner.campaign.header.confirm.as_ref();
    let is_by_slices = confirm.is_some_and(|confirm| confirm.design == Design::Slices);
    let mut profiled = || {
        create_new_folder(&dir)?;
        let scheduled = ScheduledTrial {
            number: 0,
            block: 0,
            part: None,
            cell,
        };
        let restored = run.states.restore(cell, None, &data_dir, run.observer)?;
        match restored.and_then(|()| runner.order(&scheduled, attempt, &dir, &data_dir)) {
            Err(reason) => Ok(Err(reason)),
            Ok(mut order) => {
                let mut steps = order.cell.workload.steps().to_vec();
                // In the order in which they were measured.
                if is_by_slices {
                    steps = order_in_turns(steps);
                }
                for step in &mut steps {
                    step.set_duration(profile_ns, Some(WARM_UP_NS));
                }
                order.cell.workload = order.cell.workload.with_steps(steps);
                (order.has_turns, order.has_canary) = (false, false);
                order.verify = Verify::Counters;
                order.profile_ns = Some(profile_ns);
                runner.run(&order, run.observer)
            }
        }
    };
    let ended = profiled();
    remove_data_after(&ended, &data_dir, run.observer);
    LabError::costs_one_trial(ended)
}

fn is_complete(events: &[Stamped]) -> bool {
    events
        .iter()
        .any(|stamped| matches!(stamped.event, Event::TrialDone(_)))
}

/// What perf said no with, if it did in every step.
fn unavailable(campaign: &Path, cell: &str) -> Option<String> {
    let profiles = read_profiles(campaign).unwrap_or_default();
    let mut of_cell = profiles
        .iter()
        .filter(|profile| profile.about.cell == cell)
        .map(|profile| profile.about.unavailable.clone());
    let first = of_cell.next()??;
    of_cell.all(|reason| reason.is_some()).then_some(first)
}
