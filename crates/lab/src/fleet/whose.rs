//! Whether a sealed trial is one of this campaign, and of the host that sends it: an intact seal
//! says only that nothing has changed since it was made.

use std::path::Path;

use plimsoll_core::schedule::{ScheduledTrial, Unit};
use plimsoll_store::event::{Event, TrialStart};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{CampaignDir, EventLog, StoreError, read_events};

use crate::trial_process::attempt_dir;

/// The trial of the schedule, and the attempt at it, whose folder is called so.
pub(super) fn trial_of<'c>(
    campaign: &'c CampaignDir,
    folder: &str,
) -> Option<(&'c ScheduledTrial, u32)> {
    let number: u32 = folder.split_once('-')?.0.parse().ok()?;
    let attempt: u32 = folder.rsplit_once("-a")?.1.parse().ok()?;
    let mut schedule = campaign.header.schedule.iter();
    let trial = schedule.find(|trial| trial.number == number)?;
    let wanted = attempt_dir(campaign, trial, attempt);
    (attempt > 0 && wanted.file_name()? == folder).then_some((trial, attempt))
}

/// Checks that what `dir` holds is the attempt that `folder` names, of this campaign, made by the
/// host `from`. A trial that ended before it wrote who it is must have no results.
///
/// # Errors
/// Says whose it is, or why that is not known.
pub(super) fn check_whose(
    campaign: &CampaignDir,
    folder: &str,
    dir: &Path,
    from: &str,
) -> Result<(), String> {
    let Some((trial, attempt)) = trial_of(campaign, folder) else {
        return Err("no trial of this campaign is called so".to_owned());
    };
    let events = match read_events(dir.join(EVENTS_FILE)) {
        Ok(EventLog { events, .. }) => events,
        Err(StoreError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Vec::new()
        }
        // Readers of the campaign pass over what is damaged, and say so.
        Err(error) if error.damage().is_some() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    let mut starts = events.iter().filter_map(|stamped| match &stamped.event {
        Event::TrialStart(start) => Some(start),
        _ => None,
    });
    let Some(start) = starts.next() else {
        let is_end = |event: &Event| matches!(event, Event::TrialFailed(_));
        return match events.iter().all(|stamped| is_end(&stamped.event)) {
            true => Ok(()),
            false => Err("it has events, and none that says whose they are".to_owned()),
        };
    };
    check_trial(campaign, (trial, attempt), start)?;
    match start.host.as_deref() {
        Some(host) if host == from => Ok(()),
        host => Err(format!(
            "it ran on {}: give the host the name in hosts.toml that it had then, and resume",
            host.unwrap_or("no host")
        )),
    }
}

/// Checks that events begin as those of an attempt at a trial of this campaign do.
fn check_trial(
    campaign: &CampaignDir,
    (trial, attempt): (&ScheduledTrial, u32),
    start: &TrialStart,
) -> Result<(), String> {
    let header = &campaign.header;
    if start.seed != header.seed {
        return Err(format!(
            "it is of another campaign: its seed is {}, and this one's {}",
            start.seed, header.seed
        ));
    }
    // Trials of earlier versions do not say it.
    if let Some(id) = start.campaign.as_ref().filter(|id| **id != header.id) {
        return Err(format!(
            "it is of campaign {id}, which has the same seed: `plimsoll resume {id}` fetches it"
        ));
    }
    let label = &header.plan.cells[trial.cell].label;
    let unit = Unit {
        block: start.block,
        part: start.part,
    };
    let is_of_trial = (start.trial, start.attempt, unit, &start.cell)
        == (trial.number, attempt, trial.unit(), label);
    match is_of_trial {
        true => Ok(()),
        false => Err(format!(
            "it is trial {}, attempt {}, of {} in {unit}",
            start.trial, start.attempt, start.cell
        )),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use plimsoll_core::plan::Plan;
    use plimsoll_core::schedule::schedule;
    use plimsoll_store::event::{TrialDone, TrialFailed};
    use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};
    use plimsoll_store::{EventWriter, Store};

    use super::*;

    const PLAN: &str = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\n\
                        configs = [\"wal_full\", \"wal_off\"]\nblocks = 2\n[sizes]\nrows = 1000\n\
                        write_rows = 1000\nduration = \"2s\"\n";

    /// A campaign of two cells and two blocks, below a folder.
    pub(crate) fn campaign(below: &Path) -> CampaignDir {
        let plan = Plan::parse("t.toml", PLAN).unwrap();
        let cells = plan.cells.iter().map(|cell| CellHeader {
            label: cell.label.clone(),
            version: "3".to_owned(),
            origin: "inside".to_owned(),
            build: None,
            missing_build: None,
            config_source: "shipped".to_owned(),
            settings: BTreeMap::new(),
        });
        let header = CampaignHeader {
            format: FORMAT,
            id: "20260101T000000Z-t".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            methodology_version: 1,
            seed: 7,
            plan_text: PLAN.to_owned(),
            cells: cells.collect(),
            schedule: schedule(2, 2, 7),
            plan,
            data_dir: String::new(),
            confirm: None,
            fleet: None,
            client_hosts: None,
        };
        Store::new(below).create(&header).unwrap()
    }

    /// What a host writes of the first trial of a campaign.
    pub(crate) fn start_of(campaign: &CampaignDir, host: &str) -> (String, TrialStart) {
        let trial = &campaign.header.schedule[0];
        let label = &campaign.header.plan.cells[trial.cell].label;
        let dir = attempt_dir(campaign, trial, 1);
        let start = TrialStart {
            trial: trial.number,
            attempt: 1,
            cell: label.clone(),
            block: trial.block,
            part: trial.part,
            campaign: Some(campaign.header.id.clone()),
            seed: campaign.header.seed,
            methodology_version: 1,
            pid: 1,
            pid_start_ticks: 1,
            boot_id: "b".into(),
            load: None,
            host: Some(host.into()),
            link: None,
            steps: Vec::new(),
            machine_id: None,
        };
        let folder = dir.file_name().unwrap().to_string_lossy().into_owned();
        (folder, start)
    }

    /// A trial's folder with these events.
    pub(crate) fn written(dir: &Path, events: &[Event]) {
        fs::create_dir_all(dir).unwrap();
        let mut writer = EventWriter::create(dir.join(EVENTS_FILE)).unwrap();
        events.iter().for_each(|event| {
            writer.append(event).unwrap();
        });
        writer.sync().unwrap();
    }

    #[test]
    fn a_trial_is_taken_by_its_own_campaign_from_its_own_host_alone() {
        let place = tempfile::tempdir().unwrap();
        let campaign = campaign(place.path());
        let (folder, start) = start_of(&campaign, "h1");
        let done = Event::TrialDone(TrialDone {
            seconds: 1.0,
            stop_problem: None,
        });
        let check = |number: usize, folder: &str, events: &[Event]| {
            let dir = place.path().join(number.to_string());
            written(&dir, events);
            check_whose(&campaign, folder, &dir, "h1")
        };
        let change = |change: &dyn Fn(&mut TrialStart)| {
            let mut start = start.clone();
            change(&mut start);
            vec![Event::TrialStart(start), done.clone()]
        };
        let whole = change(&|_| {});
        check(0, &folder, &whole).unwrap();
        check(19, &folder, &change(&|start| start.campaign = None)).unwrap();
        let twin = "20260101T000000Z-t-2";
        let cases: [(Vec<Event>, &str); 9] = [
            (change(&|start| start.seed = 8), "of another campaign"),
            (
                change(&|start| start.campaign = Some(twin.into())),
                "it is of campaign 20260101T000000Z-t-2, which has the same seed",
            ),
            (change(&|start| start.part = Some(1)), "part 1 of block 1"),
            (change(&|start| start.block = 2), "in block 2"),
            (change(&|start| start.trial = 2), "it is trial 2"),
            (change(&|start| start.attempt = 2), "attempt 2"),
            (change(&|start| start.cell = "x".into()), "of x in block"),
            (
                change(&|start| start.host = Some("h2".into())),
                "it ran on h2",
            ),
            (vec![done.clone()], "none that says whose"),
        ];
        for (number, (events, wanted)) in cases.iter().enumerate() {
            let error = check(number + 1, &folder, events).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        // It ended before it wrote anything.
        let failed = Event::TrialFailed(TrialFailed {
            reason: "no".into(),
            interrupted: false,
        });
        check(20, &folder, &[failed]).unwrap();
        for (number, strange) in [
            format!("9{folder}"),
            folder.replace("-a1", "-a0"),
            format!("0{folder}"),
            "1-other-a1".to_owned(),
            "x".to_owned(),
        ]
        .iter()
        .enumerate()
        {
            let error = check(30 + number, strange, &whole).unwrap_err();
            assert!(error.contains("is called so"), "{strange}: {error}");
        }
    }
}
