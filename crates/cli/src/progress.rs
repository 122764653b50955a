//! How a campaign goes, on standard error: the live view of a terminal, or a line for the running
//! step; plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use plimsoll_core::units::{count, format_count, format_duration_ns, format_grouped};
use plimsoll_lab::{
    Notice, Observer, StepProgress, StepTurns, TrialMessage, TurnsProgress, TurnsRatio,
};
use plimsoll_store::CampaignDir;
use plimsoll_store::header::CampaignHeader;
use rustix::termios::tcgetwinsize;
use signal_hook::consts::SIGQUIT;
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::live::Live;
use crate::signals::stop_signals;

/// Without a terminal a long step reports its progress this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Shows progress on standard error and counts requests to stop.
pub struct Console {
    stop_requests: Arc<AtomicUsize>,
    is_terminal: bool,
    /// Of a campaign in a terminal.
    view: Option<Live>,
    /// Of the column with the names of steps.
    name_width: usize,
    has_live_line: bool,
    last_plain: Instant,
    /// The host or the cell that what is shown now is about, with a colon.
    whom: String,
}

impl Console {
    pub fn new(campaign: &CampaignDir) -> Result<Self, Failure> {
        let mut console = Self::listening()?;
        console.begin(&campaign.header);
        if console.is_terminal {
            console.view = Live::of(campaign);
        }
        Ok(console)
    }

    /// Without a campaign yet.
    pub fn listening() -> Result<Self, Failure> {
        let stop_requests = Arc::new(AtomicUsize::new(0));
        let mut signals = Signals::new(stop_signals())
            .map_err(|error| Failure::bug(format!("failed to listen for signals: {error}")))?;
        let count = stop_requests.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let requests = if signal == SIGQUIT { 2 } else { 1 };
                count.fetch_add(requests, std::sync::atomic::Ordering::SeqCst);
            }
        });
        Ok(Self {
            stop_requests,
            is_terminal: stderr().is_terminal(),
            view: None,
            name_width: 0,
            has_live_line: false,
            last_plain: Instant::now(),
            whom: String::new(),
        })
    }

    pub fn begin(&mut self, header: &CampaignHeader) {
        self.line(&format!(
            "campaign {} (seed {}, {})",
            header.id,
            header.seed,
            count(header.schedule.len(), "trial")
        ));
        let steps = header
            .plan
            .cells
            .iter()
            .flat_map(|cell| cell.workload.steps());
        self.name_width = steps.map(|step| step.name.len()).max().unwrap_or(0).max(7);
    }

    /// Leaves the cursor on a line of its own.
    pub fn finish(&mut self) {
        self.view = None;
        self.clear();
    }

    fn clear(&mut self) {
        if self.has_live_line {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_live_line = false;
        }
    }

    /// A line of its own.
    pub fn line(&mut self, text: &str) {
        self.clear();
        let text = format!("{}{text}", self.whom);
        match &self.view {
            Some(view) => view.print(&text),
            None => tell!("{text}"),
        }
        self.last_plain = Instant::now();
    }

    fn live(&mut self, text: &str) {
        let with_whom = format!("{}{text}", self.whom);
        if let Some(view) = &mut self.view {
            view.running(&with_whom);
        } else if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{}", fit(&with_whom));
            let _ = stderr().flush();
            self.has_live_line = true;
        } else if self.last_plain.elapsed() >= PLAIN_INTERVAL {
            self.line(text);
        }
    }

    fn step_turns(&mut self, turns: &StepTurns) {
        let width = self.name_width;
        self.line(&format!(
            "  {:<width$} {:>7}  {}",
            turns.step,
            duration(turns.seconds),
            ratios(turns)
        ));
        for warning in &turns.warnings {
            self.line(&format!("\x1b[33m  {}: {warning}\x1b[0m", turns.step));
        }
    }

    fn said_of(&mut self, whom: &str, notice: &Notice<'_>) {
        self.whom = format!("{whom}: ");
        self.notice(notice.clone());
        self.whom.clear();
    }

    fn trial_message(&mut self, message: &TrialMessage) {
        let width = self.name_width;
        match message {
            TrialMessage::StepStart { step, index, steps } => {
                if self.is_terminal {
                    self.live(&format!("  {step:<width$} {index}/{steps}  starting"));
                }
            }
            TrialMessage::Progress(progress) => self.live(&progress_line(progress, width)),
            TrialMessage::StepDone {
                step,
                seconds,
                summary,
            } => self.line(&format!(
                "  {step:<width$} {:>7}  {summary}",
                duration(*seconds)
            )),
            TrialMessage::Draining { seconds } => self.live(&format!(
                "  {:<width$} the engine drains (flush and compaction backlog); at least {}",
                "drain",
                duration(*seconds)
            )),
            TrialMessage::Drained {
                drained_s,
                waited_s,
            } => self.line(&format!(
                "  {:<width$} {:>7}  the engine drained in {}",
                "drain",
                duration(drained_s + waited_s),
                duration(*drained_s)
            )),
            // `TrialBroken` reports it when the trial's process has ended, and `StepTurns`.
            TrialMessage::Failed { .. }
            | TrialMessage::Ready { .. }
            | TrialMessage::TurnDone(_)
            | TrialMessage::Beat => {}
        }
    }
}

impl Observer for Console {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::TrialStart {
                trial,
                attempt,
                trials,
                cell,
            } => {
                // Hosts are at different places of the schedule.
                if let Some(view) = self.view.as_mut().filter(|_| self.whom.is_empty()) {
                    view.begins("trial", trial.number, trials as u32);
                }
                self.line(&format!(
                    "\x1b[1m{}\x1b[0m (trial {} of {trials}{})",
                    cell.label,
                    trial.number,
                    attempt_note(attempt)
                ));
            }
            Notice::StateStart { cell, load } => {
                let again = if load > 1 { ", once more" } else { "" };
                self.line(&format!(
                    "\x1b[1m{}\x1b[0m: making the data that trials begin with{again}",
                    cell.label
                ));
            }
            Notice::ProfileStart { cell } => self.line(&format!(
                "\x1b[1m{}\x1b[0m: profiling its server",
                cell.label
            )),
            Notice::StartBegins {
                start,
                starts,
                cells,
                attempt,
            } => {
                if let Some(view) = &mut self.view {
                    view.begins("start", start, starts);
                }
                let labels: Vec<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
                self.line(&format!(
                    "\x1b[1mstart {start} of {starts}{}\x1b[0m: {}",
                    attempt_note(attempt),
                    labels.join(", ")
                ));
            }
            Notice::Awaited {
                labels,
                what,
                seconds,
                limit_s,
            } => self.live(&format!(
                "  waiting for {} to {what}: {}, at most {}",
                labels.join(", "),
                duration(seconds as f64),
                duration(limit_s as f64)
            )),
            Notice::Turns(turns) => self.live(&turns_line(turns, self.name_width)),
            Notice::StepTurns(turns) => self.step_turns(turns),
            Notice::TrialBroken { cell, reason } => self.line(&format!(
                "\x1b[31m{}: not complete: {reason}\x1b[0m",
                cell.label
            )),
            Notice::OnHost { host, notice } => self.said_of(host, notice),
            Notice::OfCell { cell, notice } => self.said_of(&cell.label, notice),
            Notice::Remark(text) => self.line(text),
            Notice::Warning(text) => self.line(&format!("\x1b[33m{text}\x1b[0m")),
            Notice::Trial(message) => self.trial_message(message),
        }
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.stop_requests
    }
}

/// Of a trial or start that is tried again.
fn attempt_note(attempt: u32) -> String {
    if attempt > 1 {
        format!(", attempt {attempt}")
    } else {
        String::new()
    }
}

/// The beginning of a line that fits the terminal: a line that wraps cannot be taken back.
fn fit(text: &str) -> &str {
    let columns = tcgetwinsize(stderr()).map_or(80, |size| usize::from(size.ws_col).max(20));
    text.char_indices()
        .nth(columns - 1)
        .map_or(text, |(end, _)| &text[..end])
}

fn duration(seconds: f64) -> String {
    format_duration_ns((seconds * 1e9) as u64)
}

/// Nothing once there is no time left that can be named.
fn eta(seconds: Option<f64>) -> String {
    seconds
        .filter(|seconds| *seconds > 0.0)
        .map_or_else(String::new, |seconds| {
            format!("  ETA {}", duration(seconds.ceil()))
        })
}

fn progress_line(progress: &StepProgress, width: usize) -> String {
    let amount = if progress.measure == "s" {
        format!("{:.0}/{:.0} s", progress.done, progress.total)
    } else if progress.total > 0.0 {
        format!("{}/{} rows", short(progress.done), short(progress.total))
    } else {
        // One long operation: the server says nothing about how far it is.
        return format!(
            "  {:<width$} {}/{}  running for {:.0} s",
            progress.step, progress.index, progress.steps, progress.elapsed_s
        );
    };
    let p99 = progress.p99_ns.map_or(String::new(), |ns| {
        format!("  p99 {}", format_duration_ns(ns))
    });
    let eta = eta(progress.eta_s);
    let trouble = if progress.unsuccessful > 0 {
        format!("  {} retries", format_grouped(progress.unsuccessful))
    } else {
        String::new()
    };
    format!(
        "  {:<width$} {}/{}  {amount}  now {} {unit}  mean {} {unit}{p99}{trouble}{eta}",
        progress.step,
        progress.index,
        progress.steps,
        format_grouped(progress.rate_now.round() as u64),
        format_grouped(progress.rate_mean.round() as u64),
        unit = progress.rate_unit,
    )
}

fn turns_line(turns: &TurnsProgress, width: usize) -> String {
    let half_width = turns.half_width.map_or(String::new(), |share| {
        format!("  within +-{:.1} %", share * 100.0)
    });
    format!(
        "  {:<width$} {}/{}  start {}/{}  {:.0}/{:.0} s  {}{half_width}{}",
        turns.step,
        turns.index,
        turns.steps,
        turns.start,
        turns.starts,
        turns.elapsed_s,
        turns.limit_s,
        count(turns.rounds as usize, "round"),
        eta(Some(turns.eta_s)),
    )
}

/// What a start says of a step: ratios to the base, within this start.
fn ratios(turns: &StepTurns) -> String {
    let ratio = |(label, ratio): &(String, Option<TurnsRatio>)| match ratio {
        Some(ratio) => format!(
            "{label} {:.3} +-{:.1} %",
            ratio.ratio,
            ratio.half_width * 100.0
        ),
        None => format!("{label} -"),
    };
    format!(
        "{}: {}",
        count(turns.rounds as usize, "round"),
        turns
            .ratios
            .iter()
            .map(ratio)
            .collect::<Vec<_>>()
            .join(", ")
    )
}

/// Three digits are enough for a moving number.
fn short(count: f64) -> String {
    let count = count as u64;
    let step = 10u64.pow(count.max(1).ilog10().saturating_sub(2));
    format_count(count / step * step)
}
