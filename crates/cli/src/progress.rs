//! The live line: one for the running step on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use plimsoll_core::units::{format_count, format_duration_ns, format_grouped};
use plimsoll_lab::{Notice, Observer, StepProgress, TrialMessage};
use plimsoll_store::header::CampaignHeader;
use rustix::termios::tcgetwinsize;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::Failure;
use crate::plan::count;

/// Without a terminal a long step says this often how it goes.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Shows progress on standard error and counts requests to stop.
pub struct Console {
    stop_requests: Arc<AtomicUsize>,
    is_terminal: bool,
    has_live_line: bool,
    last_plain: Instant,
}

impl Console {
    pub fn new(header: &CampaignHeader) -> Result<Self, Failure> {
        let stop_requests = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM] {
            let count = stop_requests.clone();
            signal_hook::iterator::Signals::new([signal])
                .map(|mut signals| {
                    std::thread::spawn(move || {
                        for _ in signals.forever() {
                            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        }
                    });
                })
                .map_err(|error| Failure::bug(format!("failed to listen for signals: {error}")))?;
        }
        anstream::eprintln!("campaign {} (seed {}, {})", header.id, header.seed, count(header.schedule.len(), "trial"));
        Ok(Self { stop_requests, is_terminal: stderr().is_terminal(), has_live_line: false, last_plain: Instant::now() })
    }

    /// Leaves the cursor on a line of its own.
    pub fn finish(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        if self.has_live_line {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_live_line = false;
        }
    }

    fn line(&mut self, text: &str) {
        self.clear();
        anstream::eprintln!("{text}");
        self.last_plain = Instant::now();
    }

    fn live(&mut self, text: &str) {
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{}", fit(text));
            let _ = stderr().flush();
            self.has_live_line = true;
        } else if self.last_plain.elapsed() >= PLAIN_INTERVAL {
            self.line(text);
        }
    }
}

impl Observer for Console {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::TrialStart { trial, attempt, trials, cell } => {
                let attempt = if attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                self.line(&format!("\x1b[1m{}\x1b[0m (trial {} of {trials}{attempt})", cell.label, trial.number));
            }
            Notice::TrialBroken { cell, reason } => self.line(&format!("\x1b[31m{}: not complete: {reason}\x1b[0m", cell.label)),
            Notice::Warning(text) => self.line(&format!("\x1b[33m{text}\x1b[0m")),
            Notice::Trial(message) => match message {
                TrialMessage::StepStart { step, index, steps } => {
                    if self.is_terminal {
                        self.live(&format!("  {step:<7} {index}/{steps}  starting"));
                    }
                }
                TrialMessage::Progress(progress) => self.live(&progress_line(progress)),
                TrialMessage::StepDone { step, seconds, summary } => {
                    self.line(&format!("  {step:<7} {:>7}  {summary}", duration(*seconds)));
                }
                TrialMessage::Draining { seconds } => {
                    self.live(&format!("  drain   the engine works off its debt; at least {}", duration(*seconds)));
                }
                TrialMessage::Drained { drained_s, waited_s } => {
                    let total = duration(drained_s + waited_s);
                    self.line(&format!("  drain   {total:>7}  the engine worked off its debt in {}", duration(*drained_s)));
                }
                // Told by `TrialBroken`, when the trial's process has ended.
                TrialMessage::Failed { .. } => {}
            },
        }
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.stop_requests
    }
}

/// The beginning of a line that fits the terminal: a line that wraps cannot be taken back.
fn fit(text: &str) -> &str {
    let columns = tcgetwinsize(stderr()).map_or(80, |size| usize::from(size.ws_col).max(20));
    text.char_indices().nth(columns - 1).map_or(text, |(end, _)| &text[..end])
}

fn duration(seconds: f64) -> String {
    format_duration_ns((seconds * 1e9) as u64)
}

fn progress_line(progress: &StepProgress) -> String {
    let amount = if progress.measure == "s" {
        format!("{:.0}/{:.0} s", progress.done, progress.total)
    } else if progress.total > 0.0 {
        format!("{}/{} rows", short(progress.done), short(progress.total))
    } else {
        // One long operation: the server tells nothing of how far it is.
        return format!("  {:<7} {}/{}  running for {:.0} s", progress.step, progress.index, progress.steps, progress.elapsed_s);
    };
    let p99 = progress.p99_ns.map_or(String::new(), |ns| format!("  p99 {}", format_duration_ns(ns)));
    let eta = progress.eta_s.filter(|s| *s > 0.0).map_or(String::new(), |s| format!("  ETA {}", duration(s.ceil())));
    let trouble = if progress.unsuccessful > 0 { format!("  {} retries", format_grouped(progress.unsuccessful)) } else { String::new() };
    format!(
        "  {:<7} {}/{}  {amount}  now {} {unit}  mean {} {unit}{p99}{trouble}{eta}",
        progress.step,
        progress.index,
        progress.steps,
        format_grouped(progress.rate_now.round() as u64),
        format_grouped(progress.rate_mean.round() as u64),
        unit = progress.rate_unit,
    )
}

/// Three digits are enough for a moving number.
fn short(count: f64) -> String {
    let count = count as u64;
    let step = 10u64.pow(count.max(1).ilog10().saturating_sub(2));
    format_count(count / step * step)
}
