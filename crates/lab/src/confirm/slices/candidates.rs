//! The trials of a start as they are spoken with: what they say, who is waited for, who is out.

use std::io::{BufRead, BufReader};
use std::ops::Index;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use plimsoll_core::plan::Cell;
use plimsoll_core::units::format_duration_ns;
use plimsoll_load::Patience;

use super::start::KeptData;
use crate::error::LabError;
use crate::message::{STOP, TrialMessage, TurnCommand, TurnDone, TurnOrder};
use crate::observer::{Notice, Observer};
use crate::trial_process::{END_LIMIT, STOP_PATIENCE, TrialProcess, remove_data};

/// A candidate that is waited for is named after this long, and again after as long.
const AWAITED: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// One candidate of a start.
pub(super) struct Candidate<'a> {
    pub cell: &'a Cell,
    pub data_dir: PathBuf,
    /// None for one that could not start.
    pub process: Option<TrialProcess>,
    /// The step it is ready for.
    ready: Option<String>,
    /// Its server's processes.
    servers: Vec<u32>,
    /// Its output has ended: it is out, or done.
    pub is_out: bool,
    /// Why it is out, as far as it is known here.
    reason: Option<String>,
}

impl<'a> Candidate<'a> {
    /// With a reason, one that is out from the beginning.
    pub fn new(cell: &'a Cell, data_dir: PathBuf, reason: Option<String>) -> Self {
        Self {
            cell,
            data_dir,
            process: None,
            ready: None,
            servers: Vec::new(),
            is_out: reason.is_some(),
            reason,
        }
    }

    /// It is out before it has begun.
    pub fn leave_out(&mut self, reason: String) {
        self.is_out = true;
        self.reason = Some(reason);
    }
}

/// Which candidate a message is from, and the message; nothing at the end of its output.
pub(super) type Received = (usize, Option<TrialMessage>);

/// All candidates of a start.
pub(super) struct Candidates<'a, 'o> {
    all: Vec<Candidate<'a>>,
    inbox: Receiver<Received>,
    pub observer: &'o mut dyn Observer,
    /// How long a candidate may take to be ready or to end.
    ready_limit: Duration,
    /// When the trials were asked to stop.
    asked_at: Option<Instant>,
}

impl<'a> Index<usize> for Candidates<'a, '_> {
    type Output = Candidate<'a>;

    fn index(&self, index: usize) -> &Candidate<'a> {
        &self.all[index]
    }
}

impl<'a, 'o> Candidates<'a, 'o> {
    pub fn new(
        all: Vec<Candidate<'a>>,
        inbox: Receiver<Received>,
        observer: &'o mut dyn Observer,
        ready_limit: Duration,
    ) -> Self {
        Self {
            all,
            inbox,
            observer,
            ready_limit,
            asked_at: None,
        }
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether they were asked to stop.
    pub fn are_stopped(&self) -> bool {
        self.asked_at.is_some()
    }

    fn is_stop_requested(&self) -> bool {
        self.observer.stop_requests().load(Ordering::SeqCst) > 0
    }

    /// False when the user stops it.
    pub fn wait_until_ready(&mut self, step: &str) -> bool {
        let what = format!("be ready for {step}");
        self.wait(&what, |candidate| {
            candidate.is_out || candidate.ready.as_deref() == Some(step)
        })
    }

    /// The step is over: nobody is ready for the next one.
    pub fn forget_ready(&mut self) {
        for candidate in &mut self.all {
            candidate.ready = None;
        }
    }

    /// Sends everybody the processes of the others.
    pub fn send_peers(&mut self) {
        let present: Vec<usize> = (0..self.len())
            .filter(|&index| !self.all[index].is_out)
            .collect();
        for &index in &present {
            let others = || {
                present
                    .iter()
                    .filter(move |&&other| other != index)
                    .map(|&other| &self.all[other])
            };
            let servers: Vec<u32> = others()
                .flat_map(|other| other.servers.iter().copied())
                .collect();
            // An embedded engine is in its trial's process, which is a server then.
            let clients = others()
                .filter_map(|other| other.process.as_ref().map(TrialProcess::pid))
                .filter(|pid| !servers.contains(pid));
            let others = clients.chain([std::process::id()]).collect();
            self.send(index, &TurnCommand::Peers { servers, others });
        }
    }

    fn send(&mut self, candidate: usize, command: &TurnCommand) {
        let line = serde_json::to_string(command).unwrap_or_default();
        if let Some(process) = &mut self.all[candidate].process {
            process.send_line(&line);
        }
    }

    pub fn send_all(&mut self, command: &TurnCommand) {
        (0..self.len()).for_each(|candidate| self.send(candidate, command));
    }

    /// One turn; none from a candidate that is out, or goes out now. A report later than
    /// `patience` ends the candidate.
    pub fn take_turn(
        &mut self,
        candidate: usize,
        order: TurnOrder,
        patience: Duration,
    ) -> Option<TurnDone> {
        if self.all[candidate].is_out || self.are_stopped() {
            return None;
        }
        self.send(candidate, &TurnCommand::Turn(order));
        let mut patience = Patience::new(patience);
        while !self.all[candidate].is_out && !self.are_stopped() {
            if let Some((from, TrialMessage::TurnDone(done))) = self.next_message()
                && from == candidate
                && done.round == order.round
            {
                if let Some(servers) = &done.new_servers {
                    self.all[candidate].servers.clone_from(servers);
                    self.send_peers();
                }
                return Some(done);
            }
            if patience.is_over() {
                self.end(candidate, "its turn did not end");
            }
        }
        None
    }

    /// Asks all trials to stop, unless the user has stopped them, for this reason.
    pub fn stop_because(&mut self, reason: &str) {
        if !self.is_stop_requested() {
            for candidate in self.all.iter_mut().filter(|candidate| !candidate.is_out) {
                candidate.reason = Some(reason.to_owned());
            }
        }
        self.stop();
    }

    fn stop(&mut self) {
        if self.asked_at.is_none() {
            self.asked_at = Some(Instant::now());
            self.processes().for_each(|process| process.send_line(STOP));
        }
    }

    fn processes(&mut self) -> impl Iterator<Item = &mut TrialProcess> {
        self.all
            .iter_mut()
            .filter_map(|candidate| candidate.process.as_mut())
    }

    /// Ends a trial that cannot be waited for.
    fn end(&mut self, candidate: usize, why: &str) {
        let candidate = &mut self.all[candidate];
        candidate.reason.get_or_insert_with(|| why.to_owned());
        if let Some(process) = &mut candidate.process {
            process.kill();
        }
    }

    /// Passes the user's requests to stop on: one asks the trials, a second kills them, as does a
    /// trial that takes too long to stop.
    fn obey_stop_requests(&mut self) {
        let requests = self.observer.stop_requests().load(Ordering::SeqCst);
        if requests > 0 {
            self.stop();
        }
        let is_too_late = self
            .asked_at
            .is_some_and(|asked| asked.elapsed() > STOP_PATIENCE);
        if requests >= 2 || is_too_late {
            self.processes().for_each(TrialProcess::kill);
        }
    }

    /// The next message, if there is one soon. What it says about its candidate is noted.
    fn next_message(&mut self) -> Option<(usize, TrialMessage)> {
        self.obey_stop_requests();
        let (from, message) = match self.inbox.recv_timeout(POLL) {
            Ok(received) => received,
            Err(RecvTimeoutError::Timeout) => return None,
            // Nobody is left to say anything.
            Err(RecvTimeoutError::Disconnected) => {
                for candidate in &mut self.all {
                    candidate.is_out = true;
                }
                return None;
            }
        };
        let candidate = &mut self.all[from];
        let Some(message) = message else {
            candidate.is_out = true;
            return None;
        };
        match &message {
            TrialMessage::Ready { step, servers } => {
                candidate.ready = Some(step.clone());
                candidate.servers.clone_from(servers);
            }
            TrialMessage::Failed { reason } => {
                candidate.reason.get_or_insert_with(|| reason.clone());
            }
            _ => {}
        }
        Some((from, message))
    }

    /// Waits until `is_so` holds for all candidates. Those that are waited for are named from time
    /// to time, and ended after the limit. False when the user stops it.
    pub fn wait(&mut self, what: &str, is_so: impl Fn(&Candidate<'_>) -> bool) -> bool {
        let limit = self.ready_limit;
        let mut patience = Patience::new(limit);
        let mut next_notice = AWAITED;
        loop {
            let awaited: Vec<usize> = (0..self.len())
                .filter(|&index| !is_so(&self.all[index]))
                .collect();
            if awaited.is_empty() {
                return !self.are_stopped();
            }
            if patience.is_over() {
                let limit_text = format_duration_ns(limit.as_nanos() as u64);
                let why = format!("it did not {what} within {limit_text}");
                for &candidate in &awaited {
                    self.end(candidate, &why);
                    // Something that the kernel holds may keep the output open: no message is to
                    // be expected any more.
                    self.all[candidate].is_out |= patience.spent() > limit + END_LIMIT;
                }
            } else if patience.spent() >= next_notice {
                next_notice += AWAITED;
                let labels = awaited
                    .iter()
                    .map(|&candidate| self.all[candidate].cell.label.as_str())
                    .collect();
                self.observer.notice(Notice::Awaited {
                    labels,
                    what,
                    seconds: patience.spent().as_secs(),
                    limit_s: limit.as_secs(),
                });
            }
            self.next_message();
        }
    }

    /// Closes all trials, keeps the data of complete ones, and removes that of others. How many are
    /// not complete. `as_it_was` is the load that data is of, if nobody wrote to it.
    ///
    /// # Errors
    /// The first, once all are closed.
    pub fn close(
        self,
        kept: &mut KeptData,
        as_it_was: Option<Option<u32>>,
    ) -> Result<usize, LabError> {
        let is_stopped = self.is_stop_requested();
        let (mut broken, mut failed) = (0, None);
        for candidate in self.all {
            let end = match candidate.process {
                Some(process) => {
                    let ended = process.conclude(is_stopped, &mut *self.observer);
                    match LabError::costs_one_trial(ended) {
                        Ok(end) => end,
                        // Its data may be in use.
                        Err(error) => {
                            failed.get_or_insert(error);
                            continue;
                        }
                    }
                }
                None => Err(candidate.reason.clone().unwrap_or_default()),
            };
            if let Err(reason) = &end {
                broken += 1;
                // One that was only asked to stop because the others are gone has that as its
                // reason here.
                let reason = candidate.reason.as_ref().unwrap_or(reason);
                self.observer.notice(Notice::TrialBroken {
                    cell: candidate.cell,
                    reason,
                });
            }
            match end {
                Ok(()) => kept.keep(&candidate.cell.label, as_it_was, candidate.data_dir),
                Err(_) => remove_data(&candidate.data_dir, self.observer),
            }
        }
        failed.map_or(Ok(broken), Err)
    }
}

/// Passes on what a trial says.
pub(super) fn listen(index: usize, process: &mut TrialProcess, sender: Sender<Received>) {
    let Some(output) = process.take_output() else {
        return;
    };
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(message) = serde_json::from_str(&line)
                && sender.send((index, Some(message))).is_err()
            {
                return;
            }
        }
        let _ = sender.send((index, None));
    });
}
