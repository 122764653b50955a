//! Runs a campaign's trials one after the other, each in a child process, and watches.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plimsoll_core::name::BuildName;
use plimsoll_core::plan::Cell;
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::InstalledBuild;
use plimsoll_store::event::{Event, ServerCrashed, StepFailed, TrialFailed};
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, EventWriter, TrialRecord, read_events, seal};
use zeroize::Zeroizing;

use crate::builds::BuildCache;
use crate::campaign::take_builds_that_came;
use crate::error::LabError;
use crate::leftovers::{end_leftovers, end_server};
use crate::message::{HUNG_EXIT, STOP, TrialMessage, TrialOrder};
use crate::passwords::Passwords;
use crate::places::{DataTurn, remove_data_dir, take_data_root};

/// A trial that was asked to stop has this long before it is ended.
const STOP_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const LOG_TAIL_BYTES: usize = 4000;

/// What the campaign tells whoever watches it.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A trial starts.
    TrialStart {
        /// The trial.
        trial: &'a ScheduledTrial,
        /// Its attempt, from 1.
        attempt: u32,
        /// Trials of the schedule.
        trials: usize,
        /// Its cell.
        cell: &'a Cell,
    },
    /// A trial says something.
    Trial(&'a TrialMessage),
    /// A trial ended without being complete.
    TrialBroken {
        /// Its cell.
        cell: &'a Cell,
        /// Why.
        reason: &'a str,
    },
    /// Something went wrong that ends nothing.
    Warning(&'a str),
}

/// Hears how the campaign goes, and may end it.
pub trait Observer {
    /// Something happened.
    fn notice(&mut self, notice: Notice<'_>);

    /// How often the user has asked to stop: once ends the step in flight cleanly, twice ends the trial's process.
    fn stop_requests(&self) -> &AtomicUsize;
}

/// How a campaign's run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CampaignEnd {
    /// Every trial is complete.
    Complete,
    /// All trials were tried; some are not complete.
    Incomplete {
        /// Trials without a complete attempt.
        broken: usize,
    },
    /// The user stopped it.
    Interrupted,
}

/// Runs what is not complete yet: the whole schedule of a new campaign, or the broken trials of an old one.
///
/// `turn` is that of a campaign just made; without it the data folder is taken here. `program` is this program's binary: trials run
/// as `program trial`.
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
    let campaign = &*campaign;
    let installed: Vec<Result<Option<InstalledBuild>, String>> =
        campaign.header.cells.iter().map(|cell| installed_build(builds, cell).map_err(|error| error.to_string())).collect();
    let done = campaign.trials()?;
    end_leftovers(&done);
    let data_root = PathBuf::from(&campaign.header.data_dir);
    let _turn = turn.map_or_else(|| take_data_root(&data_root), Ok)?;
    let campaign_data = data_root.join(&campaign.header.id);
    // Data of broken attempts: ours, by the marked folder and the campaign's id.
    remove_data_dir(&campaign_data)?;
    let mut broken = 0;
    for scheduled in &campaign.header.schedule {
        let attempts: Vec<&TrialRecord> = done.iter().filter(|trial| trial.number == scheduled.number).collect();
        if attempts.iter().any(|attempt| attempt.is_complete()) {
            continue;
        }
        let attempt = attempts.iter().map(|attempt| attempt.attempt).max().unwrap_or(0) + 1;
        let data_dir = campaign_data.join(format!("{}-a{attempt}", scheduled.number));
        let runner = TrialRunner { campaign, passwords: &passwords, program, scheduled, attempt, data_dir };
        match runner.run(installed[scheduled.cell].as_ref(), observer)? {
            TrialEnd::Complete => {}
            TrialEnd::Broken => broken += 1,
            TrialEnd::Interrupted => return Ok(CampaignEnd::Interrupted),
        }
    }
    remove_data(&campaign_data, observer);
    Ok(if broken == 0 { CampaignEnd::Complete } else { CampaignEnd::Incomplete { broken } })
}

/// The build of a cell, unchanged since the campaign was made; none for engines inside this program.
fn installed_build(builds: &BuildCache, cell: &CellHeader) -> Result<Option<InstalledBuild>, LabError> {
    if let Some(reason) = &cell.missing_build {
        return Err(LabError::Usage(format!("the build could not be fetched: {reason}")));
    }
    let Some(build) = &cell.build else { return Ok(None) };
    let name: BuildName = build.name.parse().map_err(|error| LabError::Usage(format!("{error}")))?;
    let installed = builds
        .get(&name)?
        .ok_or_else(|| LabError::Usage(format!("the build {name} is no longer here; fetch it again with `plimsoll build add {name}`")))?;
    if installed.server_sha256 != build.server_sha256 {
        return Err(LabError::Usage(format!(
            "the build {name} is not the one the campaign began with (its server has another checksum); run the plan anew"
        )));
    }
    Ok(Some(installed))
}

/// Data that stays behind takes space and spoils nothing.
fn remove_data(dir: &Path, observer: &mut dyn Observer) {
    if let Err(error) = remove_data_dir(dir) {
        observer.notice(Notice::Warning(&format!("{error}; remove it by hand")));
    }
}

enum TrialEnd {
    Complete,
    Broken,
    Interrupted,
}

struct TrialRunner<'a> {
    campaign: &'a CampaignDir,
    passwords: &'a Passwords,
    program: &'a Path,
    scheduled: &'a ScheduledTrial,
    attempt: u32,
    data_dir: PathBuf,
}

impl TrialRunner<'_> {
    /// Runs the trial with its build, or records why the build cannot be had.
    fn run(&self, build: Result<&Option<InstalledBuild>, &String>, observer: &mut dyn Observer) -> Result<TrialEnd, LabError> {
        let header = &self.campaign.header;
        let cell = &header.plan.cells[self.scheduled.cell];
        let trials = header.schedule.len();
        observer.notice(Notice::TrialStart { trial: self.scheduled, attempt: self.attempt, trials, cell });
        let folder = format!("{}.{}.{}", cell.build, cell.config.label, cell.shape);
        let dir = self.campaign.trial_dir(self.scheduled.number, &folder, self.attempt);
        fs::create_dir_all(&dir).map_err(|error| LabError::io(format!("failed to make {}", dir.display()), error))?;
        let build = match build {
            Ok(build) => build.clone(),
            Err(reason) => {
                write_trial_failed(&dir, reason, false)?;
                observer.notice(Notice::TrialBroken { cell, reason });
                seal(&dir)?;
                return Ok(TrialEnd::Broken);
            }
        };
        let is_server = build.is_some();
        let order = TrialOrder {
            trial: self.scheduled.number,
            attempt: self.attempt,
            block: self.scheduled.block,
            cell: cell.clone(),
            build,
            settings: header.cells[self.scheduled.cell].settings.clone(),
            campaign: header.id.clone(),
            password: cell.server.as_ref().and_then(|server| self.passwords.get(server)),
            seed: header.seed,
            verify: header.plan.verify,
            watchdog_ns: header.plan.watchdog_ns,
            dir: dir.clone(),
            data_dir: self.data_dir.clone(),
            parent_pid: std::process::id(),
        };
        let log = dir.join("trial.log");
        let mut child = self.spawn(cell, is_server, &log)?;
        let ended = self.watch(&mut child, &order, observer);
        // Whatever went wrong here, the child must not outlive this function.
        if ended.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| LabError::io("failed to wait for the trial", error))?;
        end_server(&dir);
        ended?;
        let end = conclude(&dir, status, &log, observer.stop_requests().load(Ordering::SeqCst) > 0)?;
        if let Err(reason) = &end {
            observer.notice(Notice::TrialBroken { cell, reason });
        }
        seal(&dir)?;
        remove_data(&self.data_dir, observer);
        Ok(match end {
            Ok(()) => TrialEnd::Complete,
            Err(_) if observer.stop_requests().load(Ordering::SeqCst) > 0 => TrialEnd::Interrupted,
            Err(_) => TrialEnd::Broken,
        })
    }

    fn spawn(&self, cell: &Cell, is_server: bool, log: &Path) -> Result<Child, LabError> {
        // A server runs under the config's prefix and environment itself; an embedded engine only with all of its process.
        let (prefix, env) = if is_server { (&[][..], None) } else { (&cell.config.prefix[..], Some(&cell.config.env)) };
        let mut command = match prefix.split_first() {
            Some((prefix, arguments)) => {
                let mut command = Command::new(prefix);
                command.args(arguments).arg(self.program);
                command
            }
            None => Command::new(self.program),
        };
        let stderr = File::create(log).map_err(|error| LabError::io(format!("failed to write {}", log.display()), error))?;
        command.arg("trial").envs(env.into_iter().flatten()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
        for name in self.passwords.variables() {
            command.env_remove(name);
        }
        // Ctrl-C reaches the orchestrator alone; it tells the trial.
        command.process_group(0);
        command.spawn().map_err(|error| {
            LabError::Usage(format!(
                "cell {}: failed to start {:?}: {error}; check [config.{}] prefix",
                cell.label,
                command.get_program(),
                cell.config.label
            ))
        })
    }

    /// Passes messages on until the trial's output ends.
    fn watch(&self, child: &mut Child, order: &TrialOrder, observer: &mut dyn Observer) -> Result<(), LabError> {
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(LabError::Io("the trial has no pipes".into()));
        };
        let order = serde_json::to_string(order).map_err(|error| LabError::io("failed to write the trial's order", error))?;
        // It may hold a password.
        let order = Zeroizing::new(order);
        // A trial that died already is noticed below by the end of its output.
        let _ = writeln!(input, "{}", *order);
        let messages = read_lines(output);
        let mut asked_at: Option<Instant> = None;
        let mut handled = 0;
        loop {
            match messages.recv_timeout(POLL) {
                Ok(line) => {
                    if let Ok(message) = serde_json::from_str::<TrialMessage>(&line) {
                        observer.notice(Notice::Trial(&message));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let requests = observer.stop_requests().load(Ordering::SeqCst);
            if requests > handled {
                let _ = writeln!(input, "{STOP}");
                asked_at.get_or_insert_with(Instant::now);
                handled = requests;
            }
            if requests >= 2 || asked_at.is_some_and(|asked| asked.elapsed() > STOP_PATIENCE) {
                let _ = child.kill();
            }
        }
    }
}

fn read_lines(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// After the child is reaped, the folder is ours: if the trial did not write its own end, its death is written for it.
fn conclude(dir: &Path, status: ExitStatus, log: &Path, is_stopped: bool) -> Result<Result<(), String>, LabError> {
    let path = dir.join("events.jsonl");
    let log_tail = tail(log);
    let last_words = || log_tail.lines().last().map_or(String::new(), |line| format!(": {line}"));
    if !path.exists() {
        let reason = format!("the trial did not start ({}){}", describe(status), last_words());
        write_trial_failed(dir, &reason, is_stopped)?;
        return Ok(Err(reason));
    }
    let events = read_events(&path)?.events;
    match events.last().map(|stamped| &stamped.event) {
        Some(Event::TrialDone(_)) => return Ok(Ok(())),
        Some(Event::TrialFailed(failed)) => return Ok(Err(failed.reason.clone())),
        _ => {}
    }
    let step = events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::StepDone(_) | Event::StepFailed(_) | Event::DrainDone(_) => Some(None),
        Event::StepStart(start) => Some(Some(start.step.clone())),
        _ => None,
    });
    let step = step.flatten();
    let is_hung = status.code() == Some(HUNG_EXIT);
    let status = describe(status);
    let (event, reason) = if is_stopped {
        let reason = "interrupted before the step could end".to_owned();
        (Event::TrialFailed(TrialFailed { reason: reason.clone(), interrupted: true }), reason)
    } else if is_hung {
        let reason = log_tail.lines().last().unwrap_or_default().to_owned();
        let event = match step {
            Some(step) => Event::StepFailed(StepFailed { step, reason: reason.clone(), operations: Vec::new() }),
            None => Event::TrialFailed(TrialFailed { reason: reason.clone(), interrupted: false }),
        };
        (event, reason)
    } else {
        let during = step.as_ref().map_or(String::new(), |step| format!(" during {step}"));
        let reason = format!("the trial's process died{during} ({status}){}", last_words());
        (Event::ServerCrashed(ServerCrashed { step, status, log_tail }), reason)
    };
    let mut writer = EventWriter::reopen(&path)?;
    writer.append(&event)?;
    writer.sync()?;
    Ok(Err(reason))
}

/// The only event of a trial that did not start.
fn write_trial_failed(dir: &Path, reason: &str, interrupted: bool) -> Result<(), LabError> {
    let mut writer = EventWriter::create(dir.join("events.jsonl"))?;
    writer.append(&Event::TrialFailed(TrialFailed { reason: reason.to_owned(), interrupted }))?;
    Ok(writer.sync()?)
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(signal)) => format!("signal {signal}{}", if signal == 9 { ", SIGKILL: killed, perhaps for want of memory" } else { "" }),
        (Some(code), _) => format!("exit status {code}"),
        _ => "unknown status".to_owned(),
    }
}

fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..]).trim().to_owned()
}
