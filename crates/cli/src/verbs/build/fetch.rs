//! Fetches builds, one after the other, and shows how far it is.

use std::io::{IsTerminal, Write, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::name::BuildName;
use plimsoll_core::units::format_bytes;
use plimsoll_lab::builds::{BuildCache, FetchProgress, InstalledBuild, MakeProgress, Stage};

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
    let stop = stop_flag()?;
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

/// Becomes true when the user asks to stop.
pub(super) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::bug(format!("failed to listen for signals: {error}")))?;
    }
    Ok(stop)
}

/// How a fetch goes, on standard error: one moving line on a terminal, plain lines elsewhere.
pub(super) struct ProgressLine {
    is_terminal: bool,
    has_line: bool,
    reported: Option<(String, Instant)>,
}

impl ProgressLine {
    pub fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            has_line: false,
            reported: None,
        }
    }

    pub fn show(&mut self, progress: &FetchProgress) {
        let what = match progress.stage {
            Stage::Waiting => "waiting for another process that fetches",
            Stage::Fetching => "fetching",
            Stage::Unpacking => "unpacking",
            Stage::Checking => "checking",
            Stage::Making => "making",
        };
        let what = progress.make.as_ref().map_or(what.to_owned(), step_text);
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
        let step = progress.make.as_ref().map(|make| make.step.as_str());
        let stage = format!("{:?} {}", progress.stage, step.unwrap_or_default());
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{text}");
            let _ = stderr().flush();
            self.has_line = true;
        } else if self
            .reported
            .as_ref()
            .is_none_or(|(known, at)| *known != stage || at.elapsed() >= PLAIN_INTERVAL)
        {
            tell!("{text}");
            self.reported = Some((stage, Instant::now()));
        }
    }

    pub fn clear(&mut self) {
        if self.has_line {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_line = false;
        }
    }
}

/// `compile  62 % of about 1000 objects, 1 min 20 s to go`; `compile` where all is one object.
fn step_text(make: &MakeProgress) -> String {
    if make.wanted <= 1 {
        return make.step.clone();
    }
    let share = 100 * make.done / make.wanted;
    let left = make.left.map(|left| {
        let seconds = left.as_secs();
        match seconds / 60 {
            0 => format!(", {seconds} s to go"),
            minutes => format!(", {minutes} min {} s to go", seconds % 60),
        }
    });
    let objects = format!("{share} % of about {} objects", make.wanted);
    format!("{}  {objects}{}", make.step, left.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_tells_what_is_left() {
        let make = |done, left| MakeProgress {
            step: "compile".to_owned(),
            done,
            wanted: 1000,
            left,
        };
        for (make, text) in [
            (make(0, None), "compile  0 % of about 1000 objects"),
            (
                make(620, Some(Duration::from_secs(80))),
                "compile  62 % of about 1000 objects, 1 min 20 s to go",
            ),
            (
                make(990, Some(Duration::from_secs(3))),
                "compile  99 % of about 1000 objects, 3 s to go",
            ),
        ] {
            assert_eq!(step_text(&make), text);
        }
        let one = MakeProgress {
            wanted: 1,
            ..make(0, None)
        };
        assert_eq!(step_text(&one), "compile");
    }
}
