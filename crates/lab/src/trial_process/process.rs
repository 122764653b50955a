//! One trial's process: its pipes, its messages, its end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use plimsoll_engine::process::end_below;
use plimsoll_load::Patience;
use plimsoll_store::seal;
use rustix::process::{Pid, Signal, kill_process};

use super::ending::conclude;
use crate::error::LabError;
use crate::leftovers::{end_server, refuse_busy};
use crate::message::{BEAT, HUNG, LIVES, SILENCE_LIMIT, STOP, TrialMessage, TrialOrder};
use crate::observer::{Notice, Observer};

/// A trial that was asked to stop has this long before it is ended.
pub(crate) const STOP_PATIENCE: Duration = Duration::from_secs(60);
/// A guard that has nothing left to wait for ends at once; one that kills what the kernel holds has
/// this long.
pub(crate) const END_LIMIT: Duration = Duration::from_secs(60);
const END_POLL: Duration = Duration::from_millis(5);

/// A trial's process, under its guard. Dropped before it was reaped, it is killed.
pub(crate) struct TrialProcess {
    dir: PathBuf,
    data_dir: PathBuf,
    log: PathBuf,
    /// The guard.
    child: Child,
    /// Shared with the thread that says that this process lives.
    input: Arc<Mutex<ChildStdin>>,
    output: Option<ChildStdout>,
    is_reaped: bool,
    /// Why it was ended, if that was not the user's wish.
    given_up: Option<String>,
}

/// What is heard of a trial's process, and since when it is to stop.
pub(super) struct Listening {
    messages: Receiver<String>,
    asked_at: Option<Instant>,
    /// How many requests to stop were passed on.
    handled: usize,
    patience: Patience,
}

impl TrialProcess {
    /// A trial's process that was started just now, with its pipes.
    pub(super) fn new(
        order: &TrialOrder,
        log: PathBuf,
        child: Child,
        (input, output): (ChildStdin, ChildStdout),
    ) -> Self {
        let input = Arc::new(Mutex::new(input));
        let of_trial = Arc::downgrade(&input);
        std::thread::spawn(move || say_alive(&of_trial));
        Self {
            dir: order.dir.clone(),
            data_dir: order.data_dir.clone(),
            log,
            child,
            input,
            output: Some(output),
            is_reaped: false,
            given_up: None,
        }
    }

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
    pub fn send_line(&mut self, line: &str) {
        write_line(&self.input, line);
    }

    /// Ends it at once, with all it has started.
    pub fn kill(&mut self) {
        // The number of a child that was not waited for cannot mean another process.
        if let (Ok(None), Some(guard)) =
            (self.child.try_wait(), Pid::from_raw(self.child.id() as i32))
        {
            let _ = kill_process(guard, Signal::TERM);
            // One that is stopped does not act on a signal.
            let _ = kill_process(guard, Signal::CONT);
        }
    }

    /// Reaps the guard, which has ended, or ends as soon as it has ended the rest. One that was
    /// killed itself could not, and one may have given up: then its work is done here. Returns the
    /// numbers of the processes that run on, too.
    fn reap(&mut self) -> Result<(ExitStatus, Vec<u32>), LabError> {
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
        let mut left = end_below(&self.data_dir);
        // One whose environment may not be read is known by its identity alone.
        let server = end_server(&self.dir).filter(|server| !left.contains(server));
        left.extend(server);
        Ok((status, left))
    }

    /// Begins to listen to it.
    pub(super) fn listen(&mut self) -> Result<Listening, LabError> {
        let output = self.take_output();
        let output = output.ok_or_else(|| LabError::Io("the trial has no pipes".into()))?;
        Ok(Listening {
            messages: read_lines(output),
            asked_at: None,
            handled: 0,
            patience: Patience::new(SILENCE_LIMIT),
        })
    }

    /// Passes on what it says, for as long as `wait` at most, and the user's wish to stop. False
    /// once nothing more is to be expected.
    pub(super) fn pass_on(
        &mut self,
        listening: &mut Listening,
        wait: Duration,
        observer: &mut dyn Observer,
    ) -> bool {
        match listening.messages.recv_timeout(wait) {
            Ok(line) => {
                listening.patience.renew();
                if let Ok(message) = serde_json::from_str::<TrialMessage>(&line) {
                    observer.notice(Notice::Trial(&message));
                }
            }
            // What it left may hold its output open and not be killed: no message is to be expected
            // any more.
            Err(RecvTimeoutError::Timeout) if matches!(self.child.try_wait(), Ok(Some(_))) => {
                return false;
            }
            Err(RecvTimeoutError::Timeout) if listening.patience.is_over() => {
                let seconds = SILENCE_LIMIT.as_secs();
                let reason = format!("{HUNG}: the trial's process said nothing for {seconds} s");
                self.given_up = Some(reason);
                self.kill();
                listening.patience.renew();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        let requests = observer.stop_requests().load(Ordering::SeqCst);
        if requests > listening.handled {
            self.send_line(STOP);
            listening.asked_at.get_or_insert_with(Instant::now);
            listening.handled = requests;
        }
        let asked_at = listening.asked_at;
        if requests >= 2 || asked_at.is_some_and(|asked| asked.elapsed() > STOP_PATIENCE) {
            self.kill();
        }
        true
    }

    /// Reaps it, ends the server it may have left behind, and closes its folder. The inner error
    /// says why it is not complete.
    ///
    /// # Errors
    /// When a process of it runs on, too: nothing is to be measured next to that.
    pub fn conclude(
        mut self,
        is_stopped: bool,
        observer: &mut dyn Observer,
    ) -> Result<Result<(), String>, LabError> {
        let (status, left) = self.reap()?;
        let given_up = self.given_up.as_deref();
        let end = conclude(&self.dir, status, &self.log, is_stopped, given_up);
        // A server that runs on writes its log there.
        refuse_busy(&self.data_dir, &left)?;
        let end = end?;
        // What happened is written down. Without checksums a later change of it is not noticed.
        if let Err(error) = seal(&self.dir) {
            observer.notice(Notice::Warning(&format!(
                "{} has no checksums: failed to {error}",
                self.dir.display()
            )));
        }
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

/// Tells a trial that its orchestrator lives, as long as somebody has the pipe.
fn say_alive(input: &Weak<Mutex<ChildStdin>>) {
    loop {
        std::thread::sleep(BEAT);
        match input.upgrade() {
            Some(input) => write_line(&input, LIVES),
            None => return,
        }
    }
}

fn write_line(input: &Mutex<ChildStdin>, line: &str) {
    let mut input = input.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = writeln!(input, "{line}");
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
