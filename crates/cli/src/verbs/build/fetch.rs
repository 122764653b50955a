//! Fetches builds, one after the other, and shows how far it is.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::name::BuildName;
use plimsoll_core::units::format_bytes;
use plimsoll_lab::builds::{BuildCache, FetchProgress, InstalledBuild, Stage};

use crate::failure::{Failure, INTERRUPTED};
use crate::signals::stop_signals;

/// Without a terminal a long fetch reports its progress this often.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// Fetches what a plan needs and is not here; returns what could not be fetched. Results have
/// standard output to themselves: this says on standard error what it brought.
pub fn fetch(
    cache: &BuildCache,
    names: &[BuildName],
    is_offline: bool,
) -> Result<Vec<(BuildName, Failure)>, Failure> {
    let mut missing = Vec::new();
    for name in names {
        if !missing.contains(name) && cache.get(name)?.is_none() {
            missing.push(name.clone());
        }
    }
    bring(cache, &missing, is_offline, &mut |build| {
        tell!("fetched {} from {}", build.name, build.origin)
    })
}

/// Fails as a whole only when it is stopped, or when a name means nothing.
pub(super) fn bring(
    cache: &BuildCache,
    names: &[BuildName],
    is_offline: bool,
    report: &mut dyn FnMut(&InstalledBuild),
) -> Result<Vec<(BuildName, Failure)>, Failure> {
    // Typing mistakes are reported before the first download.
    for name in names {
        cache.resolve(name)?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::bug(format!("failed to listen for signals: {error}")))?;
    }
    let mut failed = Vec::new();
    for name in names {
        let mut line = ProgressLine::new();
        let added = cache.add(
            name,
            is_offline,
            &mut |progress| line.show(progress),
            &|| stop.load(Ordering::SeqCst),
        );
        line.clear();
        match added {
            Ok(build) => report(&build),
            Err(error) => {
                let failure = Failure::from(error);
                if failure.exit_code() == INTERRUPTED {
                    return Err(failure);
                }
                tell!("plimsoll: {name}: {failure}");
                failed.push((name.clone(), failure));
            }
        }
    }
    Ok(failed)
}

/// How a fetch goes, on standard error: one moving line on a terminal, plain lines elsewhere.
struct ProgressLine {
    is_terminal: bool,
    has_line: bool,
    reported: Option<(Stage, Instant)>,
}

impl ProgressLine {
    fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            has_line: false,
            reported: None,
        }
    }

    fn show(&mut self, progress: &FetchProgress) {
        let what = match progress.stage {
            Stage::Waiting => "waiting for another process that fetches",
            Stage::Fetching => "fetching",
            Stage::Unpacking => "unpacking",
            Stage::Checking => "checking",
        };
        let bytes = if progress.bytes > 0 {
            format!("  {}", format_bytes(progress.bytes))
        } else {
            String::new()
        };
        let text = format!(
            "{}  {what}{bytes}  {} s",
            progress.name,
            progress.elapsed.as_secs()
        );
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{text}");
            let _ = stderr().flush();
            self.has_line = true;
        } else if self
            .reported
            .is_none_or(|(stage, at)| stage != progress.stage || at.elapsed() >= PLAIN_INTERVAL)
        {
            tell!("{text}");
            self.reported = Some((progress.stage, Instant::now()));
        }
    }

    fn clear(&mut self) {
        if self.has_line {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_line = false;
        }
    }
}
