//! Trials as they are read back, for tests.

use plimsoll_store::event::{Event, TrialDone, TrialFailed, TrialStart};
use plimsoll_store::{Stamped, TrialRecord};

/// How a trial ends that went through.
pub(crate) const DONE: Event = Event::TrialDone(TrialDone {
    seconds: 1.0,
    stop_problem: None,
});

/// The end of one that the user stopped.
pub(crate) fn stopped() -> Event {
    Event::TrialFailed(TrialFailed {
        reason: "interrupted".to_owned(),
        interrupted: true,
    })
}

/// An attempt that began with a load, was to run `point-query`, and what came behind it.
pub(crate) fn started(number: u32, attempt: u32, load: Option<u32>, then: &[Event]) -> TrialRecord {
    let start = Event::TrialStart(TrialStart {
        trial: number,
        attempt,
        cell: "a".to_owned(),
        block: 1,
        part: None,
        campaign: None,
        seed: 1,
        methodology_version: 1,
        pid: 1,
        pid_start_ticks: 1,
        boot_id: "b".to_owned(),
        load,
        host: None,
        link: None,
        steps: vec!["point-query".to_owned()],
        machine_id: None,
    });
    let stamped = |event: &Event| Stamped {
        seq: 1,
        t_ns: 0,
        event: event.clone(),
    };
    TrialRecord {
        number,
        attempt,
        dir: "d".into(),
        events: [&start].into_iter().chain(then).map(stamped).collect(),
        is_torn: false,
        environment: None,
        damage: None,
    }
}
