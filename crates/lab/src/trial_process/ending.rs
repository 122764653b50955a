//! How a trial's process ended, written into its folder where the trial could not do it itself.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use plimsoll_engine::process::{describe_status, log_tail};
use plimsoll_store::event::{Event, ServerCrashed, StepFailed, TrialFailed};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{EventWriter, Stamped, read_events};

use crate::error::LabError;
use crate::guard::BY_SIGNAL;
use crate::message::HUNG_EXIT;

const LAST_SIGNAL: i32 = 64;

/// After the child is reaped, the folder is ours: if the trial did not write its own end, its death
/// is written for it. The inner error says why the trial is not complete.
pub(super) fn conclude(
    dir: &Path,
    status: ExitStatus,
    log: &Path,
    is_stopped: bool,
) -> Result<Result<(), String>, LabError> {
    let path = dir.join(EVENTS_FILE);
    let log_tail = log_tail(log).trim().to_owned();
    if !path.exists() {
        let reason = format!(
            "the trial did not start ({}){}",
            describe(status),
            last_words(&log_tail)
        );
        write_trial_failed(dir, &reason, is_stopped)?;
        return Ok(Err(reason));
    }
    let events = read_events(&path)?.events;
    match events.last().map(|stamped| &stamped.event) {
        Some(Event::TrialDone(_)) => return Ok(Ok(())),
        Some(Event::TrialFailed(failed)) => return Ok(Err(failed.reason.clone())),
        _ => {}
    }
    let step = step_under_way(&events);
    let (event, reason) = if is_stopped {
        failed(None, "interrupted before the step could end", true)
    } else if status.code() == Some(HUNG_EXIT) {
        // The last thing such a trial does is to say what hangs.
        failed(step, log_tail.lines().last().unwrap_or_default(), false)
    } else {
        died(step, status, log_tail)
    };
    let mut writer = EventWriter::reopen(&path)?;
    writer.append(&event)?;
    writer.sync()?;
    Ok(Err(reason))
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
    let mut writer = EventWriter::create(dir.join(EVENTS_FILE))?;
    writer.append(&Event::TrialFailed(TrialFailed {
        reason: reason.to_owned(),
        interrupted,
    }))?;
    Ok(writer.sync()?)
}

/// The status of a trial's process, as its guard or a shell passes it on.
fn describe(status: ExitStatus) -> String {
    let passed_on = status
        .code()
        .map(|code| code - BY_SIGNAL)
        .filter(|signal| (1..=LAST_SIGNAL).contains(signal));
    let text = describe_status(passed_on.map_or(status, ExitStatus::from_raw));
    if passed_on.or(status.signal()) == Some(9) {
        format!("{text}: killed, possibly out of memory")
    } else {
        text
    }
}
