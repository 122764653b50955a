//! A trial's process as its orchestrator sees it: started, watched, reaped, its folder closed.

mod ending;
mod process;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_core::plan::{Cell, IdleCpus};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::InstalledBuild;
use plimsoll_engine::process::{MARK, working_below};
use plimsoll_store::{CampaignDir, Design, create_new_folder};
use rustix::pipe::fcntl_setpipe_size;
use zeroize::Zeroizing;

pub(crate) use self::ending::write_trial_failed;
use self::process::Listening;
pub(crate) use self::process::{END_LIMIT, STOP_PATIENCE, TrialProcess};
use crate::clients::ClientHosts;
use crate::error::LabError;
use crate::guard::guarded;
use crate::leftovers::of_processes;
use crate::message::{SILENCE_LIMIT, TrialOrder};
use crate::observer::{Notice, Observer};
use crate::passwords::Passwords;
use crate::places::remove_data_dir;

/// No order is longer; what an ordinary user may ask a pipe to hold.
const ORDER_BYTES: usize = 1 << 20;

/// How often a trial that says nothing is looked at.
const POLL: Duration = Duration::from_millis(50);

/// What the label of the A/A control has behind that of the base.
pub(crate) const CONTROL: &str = "#2";

/// The folder of an attempt at a trial of a campaign.
pub(crate) fn attempt_dir(
    campaign: &CampaignDir,
    scheduled: &ScheduledTrial,
    attempt: u32,
) -> PathBuf {
    let header = &campaign.header;
    let cell = &header.plan.cells[scheduled.cell];
    let mut folder = format!("{}.{}.{}", cell.build, cell.config.label, cell.shape);
    if header.is_control(&cell.label) {
        folder.push_str(CONTROL);
    }
    campaign.trial_dir(scheduled.number, &folder, attempt)
}

/// What the trials of a campaign have in common.
pub(crate) struct Runner<'a> {
    pub campaign: &'a CampaignDir,
    pub passwords: &'a Passwords,
    pub program: &'a Path,
    /// The name of this machine, where a campaign runs on several.
    pub host: Option<&'a str>,
    /// Where the clients are; none for beside the server.
    pub clients: Option<&'a ClientHosts>,
    /// The builds of the cells, or why they cannot be had.
    pub installed: &'a [Result<Option<InstalledBuild>, String>],
}

impl Runner<'_> {
    /// The folder of an attempt at a trial, made now.
    pub fn make_dir(&self, scheduled: &ScheduledTrial, attempt: u32) -> Result<PathBuf, LabError> {
        let dir = attempt_dir(self.campaign, scheduled, attempt);
        create_new_folder(&dir)?;
        Ok(dir)
    }

    /// A cell of the plan.
    pub fn cell(&self, cell: usize) -> &Cell {
        &self.campaign.header.plan.cells[cell]
    }

    /// The order for an attempt at a trial, or why its build cannot be had.
    pub fn order(
        &self,
        scheduled: &ScheduledTrial,
        attempt: u32,
        dir: &Path,
        data_dir: &Path,
    ) -> Result<TrialOrder, String> {
        let header = &self.campaign.header;
        let mut cell = self.cell(scheduled.cell).clone();
        if scheduled.part.is_some() {
            let steps = header.plan.steps_of(scheduled.cell, scheduled.part);
            let steps = steps.into_iter().cloned().collect();
            cell.workload = cell.workload.with_steps(steps);
        }
        let build = self.installed[scheduled.cell].clone()?;
        let confirm = header.confirm.as_ref();
        Ok(TrialOrder {
            trial: scheduled.number,
            attempt,
            block: scheduled.block,
            part: scheduled.part,
            build,
            settings: header.cells[scheduled.cell].settings.clone(),
            campaign: header.id.clone(),
            password: cell
                .server
                .as_ref()
                .and_then(|server| self.passwords.get(server)),
            cell,
            seed: header.seed,
            verify: header.plan.verify,
            watchdog_ns: header.plan.watchdog_ns,
            keeps_cpus_awake: header.plan.idle_cpus == Some(IdleCpus::Awake),
            before: confirm
                .and_then(|confirm| confirm.before.get(scheduled.cell))
                .cloned()
                .unwrap_or_default(),
            makes_state: false,
            placement: confirm.and_then(|confirm| confirm.placement_of(scheduled.block).cloned()),
            has_turns: confirm.is_some_and(|confirm| confirm.design == Design::Slices),
            has_canary: confirm.is_some_and(|confirm| confirm.design == Design::Blocks),
            profile_ns: None,
            load: None,
            dir: absolute(dir)?,
            data_dir: absolute(data_dir)?,
            host: self.host.map(str::to_owned),
            clients: self.clients.cloned(),
            patience_ns: SILENCE_LIMIT.as_nanos() as u64,
        })
    }

    /// Runs a trial to its end, writes down how it ended where it could not itself, and seals its
    /// folder. The inner error says why it is not complete.
    pub fn run(&self, order: &TrialOrder, observer: &mut dyn Observer) -> Ended {
        let mut trial = Running::start(self, order)?;
        while trial.pass_on(POLL, observer) {}
        trial.conclude(observer)
    }

    /// The same for several trials, `at_once` of them at a time; the notices of each have its cell.
    /// `on_end` gets how each ended, with its position, as soon as it has.
    pub fn run_all(
        &self,
        orders: &[TrialOrder],
        at_once: usize,
        observer: &mut dyn Observer,
        mut on_end: impl FnMut(usize, Ended, &mut dyn Observer),
    ) {
        let mut waiting = 0..orders.len();
        let mut running: Vec<(usize, Running)> = Vec::new();
        loop {
            while running.len() < at_once.max(1)
                && let Some(next) = waiting.next()
            {
                if is_stopped(observer) {
                    on_end(next, Ok(Err("interrupted".to_owned())), observer);
                    continue;
                }
                match Running::start(self, &orders[next]) {
                    Ok(trial) => running.push((next, trial)),
                    Err(error) => on_end(next, Err(error), observer),
                }
            }
            if running.is_empty() {
                return;
            }
            let wait = POLL / running.len() as u32;
            let mut go_on = Vec::new();
            for (place, mut trial) in running {
                let mut of_cell = OfCell {
                    cell: &orders[place].cell,
                    observer: &mut *observer,
                };
                if trial.pass_on(wait, &mut of_cell) {
                    go_on.push((place, trial));
                } else {
                    let end = trial.conclude(&mut of_cell);
                    on_end(place, end, observer);
                }
            }
            running = go_on;
        }
    }

    /// Starts a trial's process and gives it its order.
    pub fn start(&self, order: &TrialOrder) -> Result<TrialProcess, LabError> {
        let log = order.dir.join("trial.log");
        let mut child = self.spawn(order, &log)?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LabError::Io("the trial has no pipes".into()));
        };
        let text = serde_json::to_string(order)
            .map_err(|error| LabError::io("failed to write the trial's order", error))?;
        // It may hold a password.
        let text = Zeroizing::new(text);
        // A prefix that does not read must not keep us from obeying Ctrl-C: there is room for all of
        // the order, unless the kernel refuses.
        let _ = fcntl_setpipe_size(&input, ORDER_BYTES);
        // A trial that died already is noticed by the end of its output.
        let _ = writeln!(input, "{}", *text);
        Ok(TrialProcess::new(order, log, child, (input, output)))
    }

    fn spawn(&self, order: &TrialOrder, log: &Path) -> Result<Child, LabError> {
        let cell = &order.cell;
        // A server runs under the config's prefix and environment itself; an embedded engine only
        // with all of its process.
        let is_embedded = cell.build.engine.is_embedded();
        let (prefix, env) = if is_embedded {
            (&cell.config.prefix[..], Some(&cell.config.env))
        } else {
            (&[][..], None)
        };
        let trial = prefix
            .iter()
            .map(OsString::from)
            .chain([self.program.into(), "trial".into()]);
        let mut command = guarded(self.program, &trial.collect::<Vec<_>>());
        let stderr = File::create(log)
            .map_err(|error| LabError::io(format!("failed to write {}", log.display()), error))?;
        command
            .envs(env.into_iter().flatten())
            .env(MARK, &order.data_dir);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(stderr);
        command.spawn().map_err(|error| {
            LabError::io(
                format!(
                    "cell {}: failed to start {:?}",
                    cell.label,
                    command.get_program()
                ),
                error,
            )
        })
    }
}

/// How a trial ended; the inner error says why it is not complete.
pub(crate) type Ended = Result<Result<(), String>, LabError>;

/// A trial that runs and is listened to. Dropped before its end, it is killed.
struct Running {
    process: TrialProcess,
    listening: Listening,
}

impl Running {
    fn start(runner: &Runner<'_>, order: &TrialOrder) -> Result<Self, LabError> {
        let mut process = runner.start(order)?;
        let listening = process.listen()?;
        Ok(Self { process, listening })
    }

    fn pass_on(&mut self, wait: Duration, observer: &mut dyn Observer) -> bool {
        self.process.pass_on(&mut self.listening, wait, observer)
    }

    fn conclude(self, observer: &mut dyn Observer) -> Ended {
        self.process.conclude(is_stopped(observer), observer)
    }
}

fn is_stopped(observer: &dyn Observer) -> bool {
    observer.stop_requests().load(Ordering::SeqCst) > 0
}

/// Says of what it passes on which cell it is about.
struct OfCell<'a> {
    cell: &'a Cell,
    observer: &'a mut dyn Observer,
}

impl Observer for OfCell<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        self.observer.notice(Notice::OfCell {
            cell: self.cell,
            notice: &notice,
        });
    }

    fn stop_requests(&self) -> &AtomicUsize {
        self.observer.stop_requests()
    }
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), LabError> {
    fs::create_dir_all(dir)
        .map_err(|error| LabError::io(format!("failed to make {}", dir.display()), error))
}

/// [`remove_data`] of what ended so. Below a process that runs on it stays: a server whose
/// environment may not be read is known by its identity alone, which is not looked for again.
pub(crate) fn remove_data_after<T>(
    end: &Result<T, LabError>,
    dir: &Path,
    observer: &mut dyn Observer,
) {
    if !matches!(end, Err(LabError::Processes(_))) {
        remove_data(dir, observer);
    }
}

/// Data that stays behind takes space and spoils nothing. That of a process that runs on stays.
pub(crate) fn remove_data(dir: &Path, observer: &mut dyn Observer) {
    let working = working_below(dir);
    if !working.is_empty() {
        return observer.notice(Notice::Warning(&format!(
            "{} is kept: {} works in it; end that, and the next campaign removes it",
            dir.display(),
            of_processes(&working)
        )));
    }
    if let Err(error) = remove_data_dir(dir) {
        observer.notice(Notice::Warning(&format!("{error}; remove it by hand")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leftovers::refuse_busy;
    use crate::observer::Heard;

    #[test]
    fn data_stays_below_a_process_that_runs_on_and_not_on_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let stays_after = |end: Result<(), LabError>| {
            fs::create_dir_all(&data).unwrap();
            remove_data_after(&end, &data, &mut Heard::default());
            data.exists()
        };
        assert!(stays_after(refuse_busy("/data".as_ref(), &[7])));
        assert!(!stays_after(Err(LabError::Machine(
            "the disk is full".into()
        ))));
        assert!(!stays_after(Ok(())));
    }
}
