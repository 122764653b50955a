//! The folder of a host in which a campaign's trials are, until the desk has them.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_host::free_bytes;
use plimsoll_store::event::Event;
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{CampaignDir, Store, TRIALS_FOLDER, read_events, seal};

use crate::error::LabError;
use crate::trial_process::write_trial_failed;

/// Less than this is free: no trial begins. What a trial writes here is series and logs.
const LEAST_FREE: u64 = 64 << 20;

/// The campaign's folder in the spool: made now, or the one that an earlier connection has left.
///
/// # Errors
/// When there is one with this id that is another campaign.
pub(super) fn open(
    spool: &Path,
    mut header: CampaignHeader,
    data: &Path,
) -> Result<CampaignDir, LabError> {
    header.data_dir = data.display().to_string();
    let path = spool.join(&header.id);
    if !path.exists() {
        return Ok(Store::new(spool).create(&header)?);
    }
    let known = CampaignDir::open(&path)?;
    let (a, b) = (&known.header, &header);
    if (a.seed, &a.schedule, &a.plan, &a.cells) != (b.seed, &b.schedule, &b.plan, &b.cells) {
        return Err(LabError::Usage(format!(
            "{} is another campaign of the same name: look at it, then remove it",
            path.display()
        )));
    }
    Ok(known)
}

/// Trials that lie in the spool, sealed, by the names of their folders. Those of an earlier `work`
/// that was killed are closed first; nothing of it runs any more.
///
/// # Errors
/// When the folder cannot be read or written.
pub(super) fn sealed_trials(campaign: &CampaignDir) -> Result<Vec<PathBuf>, LabError> {
    let trials = campaign.path.join(TRIALS_FOLDER);
    let failed = |error| LabError::io(format!("failed to read {}", trials.display()), error);
    let mut folders = Vec::new();
    for entry in fs::read_dir(&trials).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && !entry.file_name().to_string_lossy().starts_with('.') {
            folders.push(entry.path());
        }
    }
    folders.sort();
    for folder in &folders {
        if !folder.join("seal.json").exists() {
            close(folder)?;
        }
    }
    Ok(folders)
}

/// Writes down that a trial was cut off, unless it had written its own end, and seals it.
fn close(folder: &Path) -> Result<(), LabError> {
    let events = folder.join(EVENTS_FILE);
    let log = events.exists().then(|| read_events(&events)).transpose();
    // Damaged events are shown as such wherever they are read.
    if let Ok(log) = log {
        let last = log.as_ref().and_then(|log| log.events.last());
        let has_ended = last.is_some_and(|stamped| {
            matches!(
                stamped.event,
                Event::TrialDone(_)
                    | Event::TrialFailed(_)
                    | Event::StepFailed(_)
                    | Event::ServerCrashed(_)
                    | Event::Suspect(_)
            )
        });
        if !has_ended {
            write_trial_failed(folder, "`plimsoll work` was killed while it ran", true)?;
        }
    }
    Ok(seal(folder)?)
}

/// Whether the spool has room for another trial.
///
/// # Errors
/// Says how little there is.
pub(super) fn check_room(spool: &Path) -> Result<(), String> {
    match free_bytes(spool) {
        Ok(free) if free < LEAST_FREE => Err(format!(
            "{} has {} MiB free, and a trial needs {}: free space there, or `plimsoll host clean` \
            the host",
            spool.display(),
            free >> 20,
            LEAST_FREE >> 20
        )),
        _ => Ok(()),
    }
}

/// Removes the campaign's folder if the desk has all of its trials.
pub(super) fn remove_if_empty(campaign: &CampaignDir) {
    let trials = campaign.path.join(TRIALS_FOLDER);
    let is_empty = fs::read_dir(&trials).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty {
        let _ = fs::remove_dir_all(&campaign.path);
    }
}

/// Ids of campaigns that have trials in the spool.
pub(super) fn spooled(spool: &Path) -> Vec<String> {
    let entries = fs::read_dir(spool).into_iter().flatten().flatten();
    let has_trials = |id: &String| {
        fs::read_dir(spool.join(id).join(TRIALS_FOLDER))
            .is_ok_and(|mut entries| entries.next().is_some())
    };
    let mut ids: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(has_trials)
        .collect();
    ids.sort();
    ids
}
