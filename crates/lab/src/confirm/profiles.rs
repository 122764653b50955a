//! Profiles of the candidates' servers, each alone, in a pass of its own: what is profiled is not
//! measured, and the other way round.

use std::path::Path;
use std::sync::atomic::Ordering;

use plimsoll_core::plan::Verify;
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::event::Event;
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{PROFILES_FOLDER, Stamped, read_events, read_profiles};

use super::states::States;
use crate::error::LabError;
use crate::observer::{Notice, Observer};
use crate::trial_process::{Runner, make_new_dir, remove_data};

const WARM_UP_NS: u64 = 500_000_000;

/// Profiles every cell but the control that has no profile yet, where profiles are wanted. True
/// when the user has stopped it. A profile that cannot be had is told, and is no failure of the
/// campaign.
pub(crate) fn run_profiles(
    runner: &Runner<'_>,
    states: &mut States<'_>,
    campaign_data: &Path,
    observer: &mut dyn Observer,
) -> Result<bool, LabError> {
    let header = &runner.campaign.header;
    let Some((confirm, profile_ns)) = header
        .confirm
        .as_ref()
        .and_then(|confirm| Some((confirm, confirm.profile_ns?)))
    else {
        return Ok(false);
    };
    let folder = runner.campaign.path.join(PROFILES_FOLDER);
    for (index, cell) in header
        .plan
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.label != confirm.control)
    {
        if cell.build.engine.is_embedded() {
            let reason = format!(
                "no profile of {}: an embedded engine has no server of its own",
                cell.label
            );
            observer.notice(Notice::Warning(&reason));
            continue;
        }
        let attempts = (1..).map(|attempt| (attempt, folder.join(format!("{index}-a{attempt}"))));
        let taken: Vec<_> = attempts.take_while(|(_, dir)| dir.exists()).collect();
        if taken.iter().any(|(_, dir)| {
            read_events(dir.join(EVENTS_FILE)).is_ok_and(|log| is_complete(&log.events))
        }) {
            continue;
        }
        observer.notice(Notice::ProfileStart { cell });
        let attempt = taken.len() as u32 + 1;
        let dir = folder.join(format!("{index}-a{attempt}"));
        let data_dir = campaign_data.join(format!("profile-{index}-a{attempt}"));
        make_new_dir(&dir)?;
        let scheduled = ScheduledTrial {
            number: 0,
            block: 0,
            cell: index,
        };
        let restored = states.restore(index, &data_dir, observer)?;
        let ended = match restored.and_then(|()| runner.order(&scheduled, attempt, &dir, &data_dir))
        {
            Err(reason) => Err(reason),
            Ok(mut order) => {
                let mut steps = order.cell.workload.steps().to_vec();
                steps
                    .iter_mut()
                    .for_each(|step| step.set_duration(profile_ns, Some(WARM_UP_NS)));
                order.cell.workload = order.cell.workload.with_steps(steps);
                (order.has_turns, order.has_canary, order.verify) =
                    (false, false, Verify::Counters);
                order.profile_ns = Some(profile_ns);
                runner.run(&order, observer)?
            }
        };
        remove_data(&data_dir, observer);
        if observer.stop_requests().load(Ordering::SeqCst) > 0 {
            return Ok(true);
        }
        if let Err(reason) = ended {
            observer.notice(Notice::Warning(&format!(
                "no profile of {}: {reason}",
                cell.label
            )));
        } else if let Some(reason) = unavailable(&runner.campaign.path, &cell.label) {
            observer.notice(Notice::Warning(&format!(
                "no profile of {}: {reason}",
                cell.label
            )));
        }
    }
    Ok(false)
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
