//! Runs a campaign's trials one after the other, each in a child process, and watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use plimsoll_core::name::BuildName;
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::InstalledBuild;
use plimsoll_store::event::Event;
use plimsoll_store::header::{BuildHeader, CellHeader};
use plimsoll_store::{
    CampaignDir, CampaignLock, Design, PROFILES_FOLDER, TRIALS_FOLDER, TrialRecord,
};

use crate::builds::BuildCache;
use crate::campaign::take_builds_that_came;
use crate::campaign_run::CampaignRun;
use crate::clients::ClientHosts;
use crate::confirm::{PlannedLooks, StopRule, Witness, is_profiled, run_profiles, run_starts};
use crate::error::LabError;
use crate::leftovers::{end_servers, refuse_busy};
use crate::observer::{CampaignEnd, Notice, Observer};
use crate::passwords::Passwords;
use crate::places::{DataTurn, remove_data_dir, take_data_root};
use crate::states::{STATES_FOLDER, States};
use crate::trial_process::{Runner, remove_data_after};

/// A trial that was disturbed from outside is repeated this often.
const MOST_REPEATS: u32 = 2;
/// None is repeated if so large a share of them was disturbed: it would be again.
const BUSY_SHARE: f64 = 0.5;
/// So many disturbed trials are reported one by one.
const MOST_LINES: u32 = 3;

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
    let mut looks = PlannedLooks::new(observer);
    run_campaign_until(campaign, turn, builds, program, &mut looks)
}

/// The same with the clients of its steps on the hosts that the campaign names.
pub fn run_campaign_with_clients(
    campaign: &mut CampaignDir,
    turn: Option<DataTurn>,
    builds: &BuildCache,
    program: &Path,
    clients: &ClientHosts,
    observer: &mut dyn Observer,
) -> Result<CampaignEnd, LabError> {
    let mut looks = PlannedLooks::new(observer);
    run_whole(campaign, turn, builds, (program, Some(clients)), &mut looks)
}

/// The same, ended early where `observer` has its own rule for when a confirm campaign has enough.
pub fn run_campaign_until(
    campaign: &mut CampaignDir,
    turn: Option<DataTurn>,
    builds: &BuildCache,
    program: &Path,
    observer: &mut dyn StopRule,
) -> Result<CampaignEnd, LabError> {
    run_whole(campaign, turn, builds, (program, None), observer)
}

fn run_whole(
    campaign: &mut CampaignDir,
    turn: Option<DataTurn>,
    builds: &BuildCache,
    (program, clients): (&Path, Option<&ClientHosts>),
    observer: &mut dyn StopRule,
) -> Result<CampaignEnd, LabError> {
    let wanted = campaign.header.client_hosts.as_ref();
    if wanted != clients.map(ClientHosts::header).as_ref() {
        let names = wanted.map_or_else(String::new, |hosts| hosts.names.join(","));
        return Err(LabError::Usage(format!(
            "campaign {} has its clients on other hosts ({names}): its runs would not be alike",
            campaign.header.id
        )));
    }
    let passwords = Passwords::of_plan(&campaign.header.plan)?;
    let lock = campaign.lock()?;
    take_builds_that_came(campaign, &lock, builds)?;
    campaign.reopen(&lock)?;
    let campaign = &*campaign;
    let done = campaign.trials()?;
    tell_what_is_left(campaign, &done, observer);
    let setting = Setting {
        campaign,
        passwords: &passwords,
        builds,
        program,
        host: None,
        clients,
    };
    setting.run(turn, observer, |run| run_designed(run, &lock, &done))
}

/// What trials of a campaign run with on this machine. The campaign's lock is held.
pub(crate) struct Setting<'a> {
    pub campaign: &'a CampaignDir,
    pub passwords: &'a Passwords,
    pub builds: &'a BuildCache,
    pub program: &'a Path,
    /// The name of this machine, where the campaign runs on several.
    pub host: Option<&'a str>,
    /// Where the clients are; none for beside the server.
    pub clients: Option<&'a ClientHosts>,
}

impl Setting<'_> {
    /// Takes the data folder, ends and removes what earlier runs have left in it, and removes what
    /// is left when `body` is over.
    pub fn run<T>(
        &self,
        turn: Option<DataTurn>,
        observer: &mut dyn StopRule,
        body: impl FnOnce(&mut CampaignRun<'_, '_>) -> Result<T, LabError>,
    ) -> Result<T, LabError> {
        let campaign = self.campaign;
        let installed = installed_builds(self.builds, &campaign.header.cells);
        let data_root = PathBuf::from(&campaign.header.data_dir);
        // Whatever earlier runs have left there is gone then, but for servers whose environment we
        // may not read.
        let _turn = turn.map_or_else(|| take_data_root(&data_root), Ok)?;
        let data_dir = clear_data_dir(campaign, &data_root)?;
        let runner = Runner {
            campaign,
            passwords: self.passwords,
            program: self.program,
            host: self.host,
            clients: self.clients,
            installed: &installed,
        };
        let mut run = CampaignRun {
            runner: &runner,
            states: States::new(&runner, &data_dir),
            data_dir: &data_dir,
            observer,
        };
        let end = body(&mut run);
        // Of one that was interrupted, too: resuming it makes all data again. And of one that
        // failed, because the data may be what filled the disk.
        remove_data_after(&end, &data_dir, run.observer);
        end
    }
}

/// All trials, as the campaign's design has them.
fn run_designed(
    run: &mut CampaignRun<'_, '_>,
    lock: &CampaignLock,
    done: &[TrialRecord],
) -> Result<CampaignEnd, LabError> {
    let campaign = run.runner.campaign;
    let confirm = campaign.header.confirm.as_ref();
    let end = match confirm.map(|confirm| confirm.design) {
        Some(Design::Slices) => run_starts(run, done)?,
        design => run_trials(run, done, design == Some(Design::Blocks))?,
    };
    if let CampaignEnd::Decided { block, .. } = end {
        campaign.end_decided(lock, block)?;
    }
    if end != CampaignEnd::Interrupted && run_profiles(run)? {
        return Ok(CampaignEnd::Interrupted);
    }
    Ok(end)
}

/// The folder of a campaign's data directories, after what an earlier run of it has left there was
/// ended and removed.
fn clear_data_dir(campaign: &CampaignDir, data_root: &Path) -> Result<PathBuf, LabError> {
    // There may be a link on the way by now. Processes are known by the folder's own path.
    let data_root = data_root
        .canonicalize()
        .map_err(|error| LabError::io(data_root.display(), error))?;
    let data_dir = data_root.join(&campaign.header.id);
    for trials in [TRIALS_FOLDER, STATES_FOLDER, PROFILES_FOLDER] {
        let left = end_servers(&campaign.path.join(trials), &data_dir);
        refuse_busy(&data_dir, &left)?;
    }
    remove_data_dir(&data_dir)?;
    Ok(data_dir)
}

/// One trial after the other, as scheduled.
fn run_trials(
    run: &mut CampaignRun<'_, '_>,
    done: &[TrialRecord],
    is_confirming: bool,
) -> Result<CampaignEnd, LabError> {
    let campaign = run.runner.campaign;
    run.states.go_on_with_blocks(done);
    let mut queue = not_complete(&campaign.header.schedule, done);
    let mut disturbances = Disturbances::of(campaign, done);
    let mut broken = 0;
    while let Some((scheduled, attempt)) = queue.pop_front() {
        if disturbances.repeats.are_hopeless(scheduled) {
            break;
        }
        match run_attempt(run, scheduled, attempt, &mut disturbances)?.end {
            AttemptEnd::Complete { is_again } if is_again => {
                queue.push_back((scheduled, attempt + 1));
            }
            AttemptEnd::Complete { .. } => {}
            AttemptEnd::Broken if run.is_stopped() => return Ok(CampaignEnd::Interrupted),
            AttemptEnd::Broken => broken += 1,
        }
        // Only whole blocks are looked at: a candidate that is ahead of the others is not a pair.
        let block = scheduled.block;
        let is_last_of_block = queue.front().is_some_and(|(next, _)| next.block > block);
        if is_confirming && is_last_of_block && run.observer.is_enough(campaign, block) {
            return Ok(CampaignEnd::Decided {
                block,
                broken,
                has_time: true,
            });
        }
    }
    if let Some(words) = disturbances.repeats.in_words() {
        run.observer.notice(Notice::Warning(&words));
    }
    Ok(CampaignEnd::of_broken(broken))
}

/// An attempt at a trial that is over.
pub(crate) struct Attempt {
    /// Its folder, sealed; none where the disk did not take one.
    pub dir: Option<PathBuf>,
    pub end: AttemptEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptEnd {
    Complete {
        /// It was disturbed, and is to run again after the others.
        is_again: bool,
    },
    Broken,
}

/// Runs an attempt at a trial. One that is complete is looked at by the witness, in campaigns of
/// blocks that confirm.
pub(crate) fn run_attempt(
    run: &mut CampaignRun<'_, '_>,
    scheduled: &ScheduledTrial,
    attempt: u32,
    disturbances: &mut Disturbances,
) -> Result<Attempt, LabError> {
    let cell = run.runner.cell(scheduled.cell);
    run.observer.notice(Notice::TrialStart {
        trial: scheduled,
        attempt,
        trials: run.runner.campaign.header.schedule.len(),
        cell,
    });
    let made = run.runner.make_dir(scheduled, attempt).map(Ok);
    let (dir, ended) = match LabError::costs_one_trial(made)? {
        Ok(dir) => {
            let ended = run.run_trial(scheduled, attempt, &dir)?;
            (Some(dir), ended)
        }
        Err(reason) => (None, Err(reason)),
    };
    let end = match (ended, &dir) {
        (Ok(()), Some(dir)) => AttemptEnd::Complete {
            is_again: disturbances.look(run, scheduled, attempt, dir)?,
        },
        (Ok(()), None) => AttemptEnd::Broken,
        (Err(reason), _) => {
            let reason = &reason;
            run.observer.notice(Notice::TrialBroken { cell, reason });
            AttemptEnd::Broken
        }
    };
    Ok(Attempt { dir, end })
}

/// What witnesses have seen of the trials of a campaign of blocks on this machine.
pub(crate) struct Disturbances {
    /// None in campaigns that confirm nothing.
    witness: Option<Witness>,
    pub repeats: Repeats,
}

impl Disturbances {
    pub fn of(campaign: &CampaignDir, done: &[TrialRecord]) -> Self {
        let confirm = campaign.header.confirm.as_ref();
        let limits = campaign.header.plan.limits;
        Self {
            witness: confirm.map(|_| Witness::of(done, limits)),
            // A plan that ran with verdicts takes as long as was forecast.
            repeats: Repeats {
                may_repeat: confirm.is_some_and(|confirm| confirm.of.is_some()),
                earlier: Repeats::earlier(done),
                ..Repeats::default()
            },
        }
    }

    /// Looks at a trial that is complete: whether it is to run again.
    fn look(
        &mut self,
        run: &mut CampaignRun<'_, '_>,
        scheduled: &ScheduledTrial,
        attempt: u32,
        dir: &Path,
    ) -> Result<bool, LabError> {
        let Some(witness) = &mut self.witness else {
            return Ok(false);
        };
        let label = &run.runner.cell(scheduled.cell).label;
        let written = witness.suspect(dir).map(Ok);
        let reason = LabError::costs_one_trial(written)?.unwrap_or_else(|reason| {
            let text = format!("{label}: whether it was disturbed is not kept: {reason}");
            run.observer.notice(Notice::Warning(&text));
            None
        });
        let is_again = self.repeats.look(scheduled, attempt, reason.is_some());
        if let Some(reason) = reason.filter(|_| self.repeats.is_worth_a_line()) {
            let rest = match is_again {
                true => "; it runs again at the end",
                false => "",
            };
            let text = format!("{label}: suspect: {reason}{rest}");
            run.observer.notice(Notice::Warning(&text));
        }
        Ok(is_again)
    }
}

/// Trials that were disturbed from outside, and which of them run again.
#[derive(Default)]
pub(crate) struct Repeats {
    may_repeat: bool,
    looked_at: u32,
    disturbed: u32,
    /// The same two of the trials that were complete before, which are in the tables, too.
    earlier: (u32, u32),
    /// Their numbers.
    again: BTreeSet<u32>,
    /// Whether they were given up.
    is_given_up: bool,
}

impl Repeats {
    fn earlier(done: &[TrialRecord]) -> (u32, u32) {
        let is_suspect = |trial: &&TrialRecord| {
            let mut events = trial.events.iter();
            events.any(|stamped| matches!(stamped.event, Event::Suspect(_)))
        };
        let complete = done.iter().filter(|trial| trial.is_complete());
        let disturbed = complete.clone().filter(is_suspect).count();
        (complete.count() as u32, disturbed as u32)
    }

    /// Counts a trial that is complete. True if it is to run again.
    fn look(&mut self, trial: &ScheduledTrial, attempt: u32, is_disturbed: bool) -> bool {
        self.looked_at += 1;
        self.disturbed += u32::from(is_disturbed);
        let is_again = is_disturbed && self.may_repeat && attempt <= MOST_REPEATS;
        if is_again {
            self.again.insert(trial.number);
        }
        is_again
    }

    /// Alike lines are not repeated for each trial.
    fn is_worth_a_line(&self) -> bool {
        self.disturbed <= MOST_LINES
    }

    /// Whether this is a repeat on a machine that has not become quieter.
    pub fn are_hopeless(&mut self, trial: &ScheduledTrial) -> bool {
        let is_busy = f64::from(self.disturbed) >= BUSY_SHARE * f64::from(self.looked_at);
        self.is_given_up = self.again.contains(&trial.number) && is_busy;
        self.is_given_up
    }

    /// A sentence about them for the end, if there were more than a few.
    pub fn in_words(&self) -> Option<String> {
        let counted = format!(
            "{} of {} trials were disturbed",
            self.earlier.1 + self.disturbed,
            self.earlier.0 + self.looked_at
        );
        match (self.is_given_up, self.is_worth_a_line()) {
            (true, _) => Some(format!(
                "{counted}: none runs again, because the machine has not become quieter; what \
                others took is in the intervals"
            )),
            (false, false) => Some(format!("{counted}; what others took is in the intervals")),
            (false, true) => None,
        }
    }
}

/// The trials without a complete attempt, each with the number of its next one.
fn not_complete<'a>(
    schedule: &'a [ScheduledTrial],
    done: &[TrialRecord],
) -> VecDeque<(&'a ScheduledTrial, u32)> {
    let attempts = |number: u32| done.iter().filter(move |trial| trial.number == number);
    schedule
        .iter()
        .filter(|scheduled| !attempts(scheduled.number).any(TrialRecord::is_complete))
        .map(|scheduled| {
            let last = attempts(scheduled.number).map(|trial| trial.attempt).max();
            (scheduled, last.unwrap_or(0) + 1)
        })
        .collect()
}

/// Says which trials run again because their files are damaged, or that none is left to run.
fn tell_what_is_left(campaign: &CampaignDir, done: &[TrialRecord], observer: &mut dyn Observer) {
    let header = &campaign.header;
    let left = not_complete(&header.schedule, done);
    if left.is_empty() {
        let rest = match is_profiled(campaign) {
            true => "nothing is left to run",
            false => "its profiles are left",
        };
        let text = format!("campaign {} is complete: {rest}", header.id);
        observer.notice(Notice::Remark(&text));
    }
    for (scheduled, _) in left {
        let of_number = done.iter().filter(|of| of.number == scheduled.number);
        for (trial, damage) in of_number.filter_map(|of| Some((of, of.damage.as_ref()?))) {
            let text = format!(
                "trial {} runs again, because attempt {} is damaged: {damage}",
                trial.number, trial.attempt
            );
            observer.notice(Notice::Warning(&text));
        }
    }
}

/// The build of each cell, or why it has none. Cells with other configs have the same build, whose
/// files are read once.
fn installed_builds(
    builds: &BuildCache,
    cells: &[CellHeader],
) -> Vec<Result<Option<InstalledBuild>, String>> {
    let mut known = BTreeMap::new();
    let installed = |cell: &CellHeader| match (&cell.missing_build, &cell.build) {
        (Some(reason), _) => Err(format!("the build could not be fetched: {reason}")),
        (None, None) => Ok(None),
        (None, Some(build)) => known
            .entry((build.name.clone(), build.server_sha256.clone()))
            .or_insert_with(|| installed_build(builds, build).map_err(|error| error.to_string()))
            .clone()
            .map(Some),
    };
    cells.iter().map(installed).collect()
}

/// A build, unchanged since the campaign was made.
fn installed_build(builds: &BuildCache, build: &BuildHeader) -> Result<InstalledBuild, LabError> {
    let name: BuildName = build
        .name
        .parse()
        .map_err(|error| LabError::Usage(format!("{error}")))?;
    let installed = builds.get_whole(&name)?.ok_or_else(|| {
        LabError::Usage(format!(
            "the build {name} is no longer here; fetch it again with `plimsoll build add {name}`"
        ))
    })?;
    let links = installed.links.iter().map(|link| &link.sha256);
    if installed.server_sha256 != build.server_sha256 || !links.eq(&build.links) {
        return Err(LabError::Usage(format!(
            "the build {name} is not the one the campaign began with (its server has another \
            checksum); run the plan again"
        )));
    }
    Ok(installed)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::plan::Plan;
    use plimsoll_store::Store;
    use plimsoll_store::header::{CampaignHeader, FORMAT};

    use super::*;
    use crate::observer::Heard;

    const PLAN: &str = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"postgres@18\"]\n\
                        configs = [\"cx10b\", \"cx10a\"]\n[sizes]\nrows = 1000\n\
                        write_rows = 1000\nduration = \"2s\"\n";

    /// `run --profile` was stopped while its profiles were taken: all trials are complete, and
    /// `resume` takes the profiles.
    #[test]
    fn nothing_is_left_is_not_said_while_profiles_are() {
        let folder = tempfile::tempdir().unwrap();
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
        let confirm = serde_json::json!({
            "of": null, "design": "blocks", "steps": ["l.i0"], "base": plan.cells[0].label,
            "control": "x", "turn_ns_read": 1, "turn_ns_write": 1, "time_ns": 1, "placement": null,
            "delta": 0.03, "alpha": 0.05, "profile_ns": 1_000_000_000,
        });
        let header = CampaignHeader {
            format: FORMAT,
            id: "20260101T000000Z-t".to_owned(),
            created: "2026-01-01T00:00:00Z".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            methodology_version: 1,
            seed: 1,
            plan_text: PLAN.to_owned(),
            cells: cells.collect(),
            // Stands for a schedule whose trials are all complete.
            schedule: Vec::new(),
            plan,
            data_dir: "/nowhere".to_owned(),
            confirm: Some(serde_json::from_value(confirm).unwrap()),
            fleet: None,
            client_hosts: None,
        };
        let campaign = Store::new(folder.path()).create(&header).unwrap();
        let mut heard = Heard::default();
        tell_what_is_left(&campaign, &[], &mut heard);
        // `run_designed` calls `run_profiles` behind it, which takes three profiles of each cell.
        assert!(!campaign.path.join(PROFILES_FOLDER).exists());
        assert!(
            !heard.0.concat().contains("nothing is left to run"),
            "{:?}",
            heard.0
        );
    }
}
