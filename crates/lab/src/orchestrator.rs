//! Runs a campaign's trials one after the other, each in a child process, and watches.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use plimsoll_core::name::BuildName;
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::InstalledBuild;
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, Design, PROFILES_FOLDER, TRIALS_FOLDER, TrialRecord, seal};

use crate::builds::BuildCache;
use crate::campaign::take_builds_that_came;
use crate::confirm::{STATES_FOLDER, States, Witness, run_profiles, run_starts};
use crate::error::LabError;
use crate::leftovers::end_servers;
use crate::observer::{CampaignEnd, Notice, Observer};
use crate::passwords::Passwords;
use crate::places::{DataTurn, remove_data_dir, take_data_root};
use crate::trial_process::{Runner, remove_data, write_trial_failed};

/// A trial that was disturbed from outside is repeated so often.
const MOST_REPEATS: u32 = 2;

/// Runs what is not complete yet: the whole schedule of a new campaign, or the broken trials of an
/// old one.
///
/// `turn` is that of a campaign just made; without it the data folder is taken here. `program` is
/// this program's binary: trials run as `program trial`.
pub fn run_campaign(
    campaign: &mut CampaignDir,
    turn: Option<DataTurn>,
    builds: &BuildCache,
    program: &Path,
    observer: &mut dyn Observer,
) -> Result<CampaignEnd, LabError> {
    let passwords = Passwords::of_plan(&campaign.header.plan)?;
    let lock = campaign.lock()?;
    take_builds_that_came(campaign, &lock, builds)?;
    campaign.reopen(&lock)?;
    let campaign = &*campaign;
    let installed: Vec<Result<Option<InstalledBuild>, String>> = campaign
        .header
        .cells
        .iter()
        .map(|cell| installed_build(builds, cell).map_err(|error| error.to_string()))
        .collect();
    let done = campaign.trials()?;
    let data_root = PathBuf::from(&campaign.header.data_dir);
    // Whatever earlier runs have left there is gone then, but for servers whose environment we may
    // not read.
    let _turn = turn.map_or_else(|| take_data_root(&data_root), Ok)?;
    // There may be a link on the way by now. Processes are known by the folder's own path.
    let data_root = data_root
        .canonicalize()
        .map_err(|error| LabError::io(data_root.display(), error))?;
    let campaign_data = data_root.join(&campaign.header.id);
    for trials in [TRIALS_FOLDER, STATES_FOLDER, PROFILES_FOLDER] {
        end_servers(&campaign.path.join(trials), &campaign_data);
    }
    remove_data_dir(&campaign_data)?;
    let runner = Runner {
        campaign,
        passwords: &passwords,
        program,
        installed: &installed,
    };
    let mut states = States::new(&runner, &campaign_data);
    let mut end = match campaign
        .header
        .confirm
        .as_ref()
        .map(|confirm| confirm.design)
    {
        Some(Design::Slices) => run_starts(&runner, &done, &mut states, &campaign_data, observer)?,
        design => run_trials(
            &runner,
            &done,
            &mut states,
            &campaign_data,
            design == Some(Design::Blocks),
            observer,
        )?,
    };
    if let CampaignEnd::Decided { block } = end {
        campaign.end_decided(&lock, block)?;
    }
    if end != CampaignEnd::Interrupted
        && run_profiles(&runner, &mut states, &campaign_data, observer)?
    {
        end = CampaignEnd::Interrupted;
    }
    // Of one that was interrupted, too: resuming it makes all data anew.
    remove_data(&campaign_data, observer);
    Ok(end)
}

/// One trial after the other, as scheduled.
fn run_trials(
    runner: &Runner<'_>,
    done: &[TrialRecord],
    states: &mut States<'_>,
    campaign_data: &Path,
    is_confirming: bool,
    observer: &mut dyn Observer,
) -> Result<CampaignEnd, LabError> {
    let schedule = &runner.campaign.header.schedule;
    let attempts = |number: u32| done.iter().filter(move |trial| trial.number == number);
    let mut queue: VecDeque<(&ScheduledTrial, u32)> = schedule
        .iter()
        .filter(|scheduled| !attempts(scheduled.number).any(TrialRecord::is_complete))
        .map(|scheduled| {
            (
                scheduled,
                attempts(scheduled.number)
                    .map(|trial| trial.attempt)
                    .max()
                    .unwrap_or(0)
                    + 1,
            )
        })
        .collect();
    let mut witness = Witness::of(done);
    let mut broken = 0;
    while let Some((scheduled, attempt)) = queue.pop_front() {
        let cell = runner.cell(scheduled.cell);
        observer.notice(Notice::TrialStart {
            trial: scheduled,
            attempt,
            trials: schedule.len(),
            cell,
        });
        let dir = runner.make_dir(scheduled, attempt)?;
        let data_dir = campaign_data.join(format!("{}-a{attempt}", scheduled.number));
        let order = match states.restore(scheduled.cell, &data_dir, observer)? {
            Ok(()) => runner.order(scheduled, attempt, &dir, &data_dir),
            Err(reason) => Err(reason),
        };
        let is_stopped = || observer.stop_requests().load(Ordering::SeqCst) > 0;
        let end = match order {
            Ok(order) => runner.run(&order, observer)?,
            Err(reason) => {
                write_trial_failed(&dir, &reason, is_stopped())?;
                seal(&dir)?;
                Err(reason)
            }
        };
        remove_data(&data_dir, observer);
        match end {
            Ok(()) if is_confirming => {
                if let Some(reason) = witness.suspect(&dir)? {
                    let is_again = attempt <= MOST_REPEATS;
                    let then = if is_again {
                        "it runs again at the end, unless all is decided before"
                    } else {
                        "it has run often enough"
                    };
                    observer.notice(Notice::Warning(&format!(
                        "{}: suspect: {reason}; {then}",
                        cell.label
                    )));
                    if is_again {
                        queue.push_back((scheduled, attempt + 1));
                    }
                }
            }
            Ok(()) => {}
            Err(reason) => {
                observer.notice(Notice::TrialBroken {
                    cell,
                    reason: &reason,
                });
                if observer.stop_requests().load(Ordering::SeqCst) > 0 {
                    return Ok(CampaignEnd::Interrupted);
                }
                broken += 1;
            }
        }
        let is_last_of_block = queue
            .front()
            .is_some_and(|(next, _)| next.block > scheduled.block);
        if is_confirming && is_last_of_block && observer.is_enough(runner.campaign, scheduled.block)
        {
            return Ok(CampaignEnd::Decided {
                block: scheduled.block,
            });
        }
    }
    Ok(if broken == 0 {
        CampaignEnd::Complete
    } else {
        CampaignEnd::Incomplete { broken }
    })
}

/// The build of a cell, unchanged since the campaign was made; none for engines inside this
/// program.
fn installed_build(
    builds: &BuildCache,
    cell: &CellHeader,
) -> Result<Option<InstalledBuild>, LabError> {
    if let Some(reason) = &cell.missing_build {
        return Err(LabError::Usage(format!(
            "the build could not be fetched: {reason}"
        )));
    }
    let Some(build) = &cell.build else {
        return Ok(None);
    };
    let name: BuildName = build
        .name
        .parse()
        .map_err(|error| LabError::Usage(format!("{error}")))?;
    let installed = builds.get(&name)?.ok_or_else(|| {
        LabError::Usage(format!(
            "the build {name} is no longer here; fetch it again with `plimsoll build add {name}`"
        ))
    })?;
    if installed.server_sha256 != build.server_sha256 {
        return Err(LabError::Usage(format!(
            "the build {name} is not the one the campaign began with (its server has another \
            checksum); run the plan anew"
        )));
    }
    Ok(Some(installed))
}
