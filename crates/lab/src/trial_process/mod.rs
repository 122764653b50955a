//! A trial's process as its orchestrator sees it: started, watched, reaped, its folder closed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, IdleCpus};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::InstalledBuild;
use plimsoll_engine::process::{MARK, end_below};
use plimsoll_store::event::{Event, ServerCrashed, StepFailed, TrialFailed};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{CampaignDir, Design, EventWriter, read_events, seal};
use rustix::process::{Pid, Signal, kill_process};
use zeroize::Zeroizing;

use crate::error::LabError;
use crate::guard::{BY_SIGNAL, guarded};
use crate::leftovers::end_server;
use crate::message::{HUNG_EXIT, STOP, TrialMessage, TrialOrder};
use crate::observer::{Notice, Observer};
use crate::passwords::Passwords;
use crate::places::remove_data_dir;

/// A trial that was asked to stop has this long before it is ended.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// A guard that has nothing left to wait for ends at once; one that kills what the kernel holds has
/// this long.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(60);
const END_POLL: Duration = Duration::from_millis(5);
const POLL: Duration = Duration::from_millis(50);
const LOG_TAIL_BYTES: usize = 4000;
const LAST_SIGNAL: i32 = 64;

/// What the label of the A/A control has behind that of the base.
pub(crate) const CONTROL: &str = "#2";

/// What the trials of a campaign have in common.
pub(crate) struct Runner<'a> {
    pub campaign: &'a CampaignDir,
    pub passwords: &'a Passwords,
    pub program: &'a Path,
    /// The builds of the cells, or why they cannot be had.
    pub installed: &'a [Result<Option<InstalledBuild>, String>],
}

impl Runner<'_> {
    /// The folder of an attempt at a trial, made now.
    pub fn make_dir(&self, scheduled: &ScheduledTrial, attempt: u32) -> Result<PathBuf, LabError> {
        let cell = self.cell(scheduled.cell);
        let mut folder = format!("{}.{}.{}", cell.build, cell.config.label, cell.shape);
        if self.is_control(scheduled.cell) {
            folder.push_str(CONTROL);
        }
        let dir = self.campaign.trial_dir(scheduled.number, &folder, attempt);
        make_new_dir(&dir)?;
        Ok(dir)
    }

    /// A cell of the plan.
    pub fn cell(&self, cell: usize) -> &Cell {
        &self.campaign.header.plan.cells[cell]
    }

    fn is_control(&self, cell: usize) -> bool {
        self.campaign.header.is_control(&self.cell(cell).label)
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
        let cell = self.cell(scheduled.cell);
        let build = self.installed[scheduled.cell].clone()?;
        let confirm = header.confirm.as_ref();
        Ok(TrialOrder {
            trial: scheduled.number,
            attempt,
            block: scheduled.block,
            cell: cell.clone(),
            build,
            settings: header.cells[scheduled.cell].settings.clone(),
            campaign: header.id.clone(),
            password: cell
                .server
                .as_ref()
                .and_then(|server| self.passwords.get(server)),
            seed: header.seed,
            verify: header.plan.verify,
            watchdog_ns: header.plan.watchdog_ns,
            keeps_cpus_awake: header.plan.idle_cpus == Some(IdleCpus::Awake),
            before: confirm
                .and_then(|confirm| confirm.before.get(scheduled.cell))
                .cloned()
                .unwrap_or_default(),
            makes_state: false,
            placement: confirm.and_then(|confirm| confirm.placement.clone()),
            has_turns: confirm.is_some_and(|confirm| confirm.design == Design::Slices),
            has_canary: confirm.is_some_and(|confirm| confirm.design == Design::Blocks),
            profile_ns: None,
            dir: dir.to_owned(),
            data_dir: data_dir.to_owned(),
            parent_pid: std::process::id(),
        })
    }

    /// Runs a trial to its end, writes down how it ended where it could not itself, and seals its
    /// folder. The inner error says why it is not complete.
    pub fn run(
        &self,
        order: &TrialOrder,
        observer: &mut dyn Observer,
    ) -> Result<Result<(), String>, LabError> {
        let mut trial = self.start(order)?;
        let ended = trial.watch(observer);
        // Whatever went wrong here, the child must not outlive this function.
        if ended.is_err() {
            trial.kill();
        }
        let concluded = trial.conclude(observer.stop_requests().load(Ordering::SeqCst) > 0);
        ended.and(concluded)
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
        // A trial that died already is noticed by the end of its output.
        let _ = writeln!(input, "{}", *text);
        let (dir, data_dir) = (order.dir.clone(), order.data_dir.clone());
        Ok(TrialProcess {
            dir,
            data_dir,
            log,
            child,
            input,
            output: Some(output),
            is_reaped: false,
        })
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

/// A trial's process, under its guard. Dropped before it was reaped, it is killed.
pub(crate) struct TrialProcess {
    dir: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    /// The guard.
    child: Child,
    input: ChildStdin,
    output: Option<ChildStdout>,
    is_reaped: bool,
}

impl TrialProcess {
    /// Its output, to be read to the end.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.output.take()
    }

    /// Its process, or the outermost wrapper's.
    pub fn pid(&self) -> u32 {
        let guard = self.child.id();
        let children =
            fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap_or_default();
        children
            .split_ascii_whitespace()
            .next()
            .and_then(|pid| pid.parse().ok())
            .unwrap_or(guard)
    }

    /// Writes a line to it. One that died is noticed by the end of its output.
    pub fn say(&mut self, line: &str) {
        let _ = writeln!(self.input, "{line}");
    }

    /// Ends it at once, with all it has started.
    pub fn kill(&mut self) {
        // The number of a child that was not waited for cannot mean another process.
        if let (Ok(None), Some(guard)) =
            (self.child.try_wait(), Pid::from_raw(self.child.id() as i32))
        {
            let _ = kill_process(guard, Signal::TERM);
            // One that is stopped hears of nothing.
            let _ = kill_process(guard, Signal::CONT);
        }
    }

    /// Reaps the guard, which has ended, or ends as soon as it has ended the rest. One that was
    /// killed itself could not: then its work is done here.
    fn reap(&mut self) -> Result<ExitStatus, LabError> {
        let deadline = Instant::now() + END_LIMIT;
        let failed = |error| LabError::io("failed to wait for the trial", error);
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                break status;
            }
            if Instant::now() >= deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(END_POLL);
        };
        self.is_reaped = true;
        if status.signal().is_some() {
            end_below(&self.data_dir);
            end_server(&self.dir);
        }
        Ok(status)
    }

    /// Passes messages on until the trial's output ends.
    fn watch(&mut self, observer: &mut dyn Observer) -> Result<(), LabError> {
        let Some(output) = self.take_output() else {
            return Err(LabError::Io("the trial has no pipes".into()));
        };
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
                // What it left may hold its output open and not be killed: nothing is to be heard
                // any more.
                Err(RecvTimeoutError::Timeout) if matches!(self.child.try_wait(), Ok(Some(_))) => {
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let requests = observer.stop_requests().load(Ordering::SeqCst);
            if requests > handled {
                self.say(STOP);
                asked_at.get_or_insert_with(Instant::now);
                handled = requests;
            }
            if requests >= 2 || asked_at.is_some_and(|asked| asked.elapsed() > STOP_PATIENCE) {
                self.kill();
            }
        }
    }

    /// Reaps it, ends the server it may have left behind, and closes its folder. The inner error
    /// says why it is not complete.
    pub fn conclude(mut self, is_stopped: bool) -> Result<Result<(), String>, LabError> {
        let status = self.reap()?;
        let end = conclude(&self.dir, status, &self.log, is_stopped)?;
        seal(&self.dir)?;
        Ok(end)
    }
}

impl Drop for TrialProcess {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.kill();
            let _ = self.reap();
        }
    }
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), LabError> {
    fs::create_dir_all(dir)
        .map_err(|error| LabError::io(format!("failed to make {}", dir.display()), error))
}

/// Makes the folder of an attempt. Nothing may be there under its name, and least of all a link to
/// somewhere else.
pub(crate) fn make_new_dir(dir: &Path) -> Result<(), LabError> {
    make_dir(dir.parent().unwrap_or(dir))?;
    fs::create_dir(dir)
        .map_err(|error| LabError::io(format!("failed to make {}", dir.display()), error))
}

/// Data that stays behind takes space and spoils nothing.
pub(crate) fn remove_data(dir: &Path, observer: &mut dyn Observer) {
    if let Err(error) = remove_data_dir(dir) {
        observer.notice(Notice::Warning(&format!("{error}; remove it by hand")));
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

/// After the child is reaped, the folder is ours: if the trial did not write its own end, its death
/// is written for it.
fn conclude(
    dir: &Path,
    status: ExitStatus,
    log: &Path,
    is_stopped: bool,
) -> Result<Result<(), String>, LabError> {
    let path = dir.join(EVENTS_FILE);
    let log_tail = tail(log);
    let last_words = || {
        log_tail
            .lines()
            .last()
            .map_or(String::new(), |line| format!(": {line}"))
    };
    if !path.exists() {
        let reason = format!(
            "the trial did not start ({}){}",
            describe(status),
            last_words()
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
    let step = events
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            Event::StepDone(_) | Event::StepFailed(_) | Event::DrainDone(_) => Some(None),
            Event::StepStart(start) => Some(Some(start.step.clone())),
            _ => None,
        });
    let step = step.flatten();
    let is_hung = status.code() == Some(HUNG_EXIT);
    let status = describe(status);
    let (event, reason) = if is_stopped {
        let reason = "interrupted before the step could end".to_owned();
        (
            Event::TrialFailed(TrialFailed {
                reason: reason.clone(),
                interrupted: true,
            }),
            reason,
        )
    } else if is_hung {
        let reason = log_tail.lines().last().unwrap_or_default().to_owned();
        let event = match step {
            Some(step) => Event::StepFailed(StepFailed {
                step,
                reason: reason.clone(),
                operations: Vec::new(),
            }),
            None => Event::TrialFailed(TrialFailed {
                reason: reason.clone(),
                interrupted: false,
            }),
        };
        (event, reason)
    } else {
        let during = step
            .as_ref()
            .map_or(String::new(), |step| format!(" during {step}"));
        let reason = format!(
            "the trial's process died{during} ({status}){}",
            last_words()
        );
        (
            Event::ServerCrashed(ServerCrashed {
                step,
                status,
                log_tail,
            }),
            reason,
        )
    };
    let mut writer = EventWriter::reopen(&path)?;
    writer.append(&event)?;
    writer.sync()?;
    Ok(Err(reason))
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

fn describe(status: ExitStatus) -> String {
    // The guard's, or a shell's, word for it.
    let told = status
        .code()
        .map(|code| code - BY_SIGNAL)
        .filter(|signal| (1..=LAST_SIGNAL).contains(signal));
    match (status.code(), status.signal().or(told)) {
        (_, Some(signal)) => format!(
            "signal {signal}{}",
            if signal == 9 {
                ", SIGKILL: killed, perhaps for want of memory"
            } else {
                ""
            }
        ),
        (Some(code), _) => format!("exit status {code}"),
        _ => "unknown status".to_owned(),
    }
}

fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_TAIL_BYTES)..])
        .trim()
        .to_owned()
}
