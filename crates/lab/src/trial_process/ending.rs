//! How a trial's process ended, written into its folder where the trial could not do it itself.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use plimsoll_engine::process::{describe_status, log_tail};
use plimsoll_host::disk_space;
use plimsoll_store::event::{Event, ServerCrashed, StepFailed, TrialFailed};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{EventWriter, Stamped, StoreError, give_up_reserve, read_events};
use rustix::process::Signal;

use crate::error::LabError;
use crate::guard::BY_SIGNAL;
use crate::message::{HUNG, HUNG_EXIT};

const LAST_SIGNAL: i32 = 64;

/// After the child is reaped, the folder is ours: if the trial did not write its own end, its death
/// is written for it, on a full disk into the room that was kept for it. `given_up` is why it was
/// ended from here. The inner error says why the trial is not complete.
pub(super) fn conclude(
    dir: &Path,
    status: ExitStatus,
    log: &Path,
    is_stopped: bool,
    given_up: Option<&str>,
) -> Result<Result<(), String>, LabError> {
    let mut log_tail = log_tail(log).trim().to_owned();
    // On a full disk a trial cannot say why it ended, not even into its log.
    let has_no_room = || disk_space(dir).is_ok_and(|space| space.free_bytes < FULL);
    if log_tail.is_empty() && !status.success() && has_no_room() {
        log_tail = format!(
            "the disk of {} is full: free space there, then `plimsoll resume` runs the trial again",
            dir.display()
        );
    }
    with_reserve(dir, || {
        write_end(dir, status, &log_tail, is_stopped, given_up)
    })
}

/// Less than this is free on a disk that is full.
const FULL: u64 = 1 << 20;

/// Does it again in the room that was kept, if the disk is full.
fn with_reserve<T>(dir: &Path, write: impl Fn() -> Result<T, LabError>) -> Result<T, LabError> {
    match write() {
        Err(LabError::Store(error)) if error.is_full() && give_up_reserve(dir) => write(),
        written => written,
    }
}

fn write_end(
    dir: &Path,
    status: ExitStatus,
    log_tail: &str,
    is_stopped: bool,
    given_up: Option<&str>,
) -> Result<Result<(), String>, LabError> {
    let path = dir.join(EVENTS_FILE);
    if !path.exists() {
        let reason = format!(
            "the trial did not start ({}){}",
            describe(status),
            last_words(log_tail)
        );
        write_trial_failed(dir, &reason, is_stopped)?;
        return Ok(Err(reason));
    }
    let events = match read_events(&path) {
        Ok(log) => log.events,
        // It costs this trial, as it does whoever reads it later.
        Err(error) => {
            return match error.damage() {
                Some(damage) => Ok(Err(format!("its events are damaged: {damage}"))),
                None => Err(error.into()),
            };
        }
    };
    match events.last().map(|stamped| &stamped.event) {
        Some(Event::TrialDone(_)) => return Ok(Ok(())),
        Some(Event::TrialFailed(failed)) => return Ok(Err(failed.reason.clone())),
        _ => {}
    }
    let step = step_under_way(&events);
    let (event, reason) = if is_stopped {
        failed(None, "interrupted before the step could end", true)
    } else if let Some(reason) = given_up.or(hung(status, log_tail)) {
        failed(step, reason, false)
    } else {
        died(step, status, log_tail.to_owned())
    };
    let mut writer = EventWriter::reopen(&path)?;
    writer.append(&event)?;
    writer.sync()?;
    Ok(Err(reason))
}

/// What hangs, if the trial ended itself for that: the last thing it does is to say so.
fn hung(status: ExitStatus, log_tail: &str) -> Option<&str> {
    let last = log_tail.lines().last().unwrap_or_default();
    let is_killed = signal(status) == Some(Signal::KILL.as_raw()) && last.starts_with(HUNG);
    (is_killed || status.code() == Some(HUNG_EXIT)).then_some(last)
}

/// The step that was begun and did not end.
fn step_under_way(events: &[Stamped]) -> Option<String> {
    let last = events
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            Event::StepDone(_) | Event::StepFailed(_) | Event::DrainDone(_) => Some(None),
            Event::StepStart(start) => Some(Some(start.step.clone())),
            _ => None,
        });
    last.flatten()
}

/// The event of a trial that failed, in a step or outside of any.
fn failed(step: Option<String>, reason: &str, interrupted: bool) -> (Event, String) {
    let reason = reason.to_owned();
    let event = match step {
        Some(step) => Event::StepFailed(StepFailed {
            step,
            reason: reason.clone(),
            operations: Vec::new(),
        }),
        None => Event::TrialFailed(TrialFailed {
            reason: reason.clone(),
            interrupted,
        }),
    };
    (event, reason)
}

/// The event of a trial whose process died: with it died its server.
fn died(step: Option<String>, status: ExitStatus, log_tail: String) -> (Event, String) {
    let status = describe(status);
    let during = step
        .as_ref()
        .map_or(String::new(), |step| format!(" during {step}"));
    let reason = format!(
        "the trial's process died{during} ({status}){}",
        last_words(&log_tail)
    );
    let event = Event::ServerCrashed(ServerCrashed {
        step,
        status,
        log_tail,
    });
    (event, reason)
}

fn last_words(log_tail: &str) -> String {
    log_tail
        .lines()
        .last()
        .map_or(String::new(), |line| format!(": {line}"))
}

/// The only event of a trial that did not start.
pub(crate) fn write_trial_failed(
    dir: &Path,
    reason: &str,
    interrupted: bool,
) -> Result<(), LabError> {
    let failed = Event::TrialFailed(TrialFailed {
        reason: reason.to_owned(),
        interrupted,
    });
    with_reserve(dir, || {
        let file = dir.join(EVENTS_FILE);
        let mut writer = match EventWriter::create(&file) {
            Err(StoreError::Exists { .. }) => EventWriter::reopen(&file)?,
            created => created?,
        };
        writer.append(&failed)?;
        Ok(writer.sync()?)
    })
}

/// The signal that ended a trial, as its guard or a shell passes it on.
fn signal(status: ExitStatus) -> Option<i32> {
    let passed_on = status.code().map(|code| code - BY_SIGNAL);
    let passed_on = passed_on.filter(|signal| (1..=LAST_SIGNAL).contains(signal));
    passed_on.or(status.signal())
}

/// The status of a trial's process.
fn describe(status: ExitStatus) -> String {
    let text = describe_status(signal(status).map_or(status, ExitStatus::from_raw));
    if signal(status) == Some(Signal::KILL.as_raw()) {
        format!("{text}: killed, possibly out of memory")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_that_ended_itself_says_what_hangs() {
        let of_signal = ExitStatus::from_raw(9);
        let passed_on = ExitStatus::from_raw((128 + 9) << 8);
        let by_code = ExitStatus::from_raw(HUNG_EXIT << 8);
        let log = "note\nhung: the engine has not closed for 300 s";
        for (status, log, wanted) in [
            (
                of_signal,
                log,
                Some("hung: the engine has not closed for 300 s"),
            ),
            (
                passed_on,
                log,
                Some("hung: the engine has not closed for 300 s"),
            ),
            (of_signal, "note", None),
            (ExitStatus::from_raw(1 << 8), log, None),
            (by_code, "hung: it", Some("hung: it")),
        ] {
            assert_eq!(hung(status, log), wanted, "{status:?} {log}");
        }
    }

    /// docs/reliability.md: "`events.jsonl` of a trial is damaged | that attempt". One that is read
    /// damaged when its trial ends costs the campaign's other trials.
    #[test]
    fn events_that_are_damaged_when_a_trial_ends_cost_that_trial() {
        let campaign = tempfile::tempdir().unwrap();
        let dir = campaign.path().join("trials/1-x-a1");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(EVENTS_FILE), "a sector of another file\n").unwrap();
        let log = dir.join("trial.log");
        let ended = conclude(&dir, ExitStatus::from_raw(9), &log, false, None);
        let of_trial = LabError::costs_one_trial(ended);
        assert!(
            matches!(of_trial, Ok(Err(_))),
            "the campaign ends: {}",
            of_trial.unwrap_err()
        );
    }
}
