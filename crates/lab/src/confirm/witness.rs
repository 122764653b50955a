//! Was the machine disturbed from outside? Told by witnesses alone, never by what a trial has
//! measured.

use std::path::Path;

use plimsoll_core::readings::{HostReading, Readings};
use plimsoll_core::witness::Limits;
use plimsoll_store::event::{Canary, Event, Suspect};
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{EventWriter, TrialRecord, read_events, seal};

use crate::error::LabError;

/// A canary so many median absolute deviations worse than the campaign's median.
const CANARY_MADS: f64 = 3.0;
/// Canaries scatter: what is within this share of the median is not a disturbance, however quiet
/// the others were. A loop that only counts is steady, memory is less so; a disk that is shared
/// answers half as fast for a while, and steps that wait for it have that in their spread.
const INTEGER_SHARE: f64 = 0.05;
const MEMORY_SHARE: f64 = 0.15;
const SYNC_SHARE: f64 = 1.0;
/// Fewer canaries say nothing about what is usual.
const FEWEST_CANARIES: usize = 5;

/// The canaries of a campaign so far.
pub(crate) struct Witness {
    canaries: Vec<Canary>,
    limits: Limits,
}

impl Witness {
    /// With the canaries of trials that are done.
    pub fn of(done: &[TrialRecord], limits: Limits) -> Self {
        let canaries = done
            .iter()
            .filter_map(|trial| canary(trial.events.iter().map(|stamped| &stamped.event)))
            .collect();
        Self { canaries, limits }
    }

    /// Looks at a trial that is complete. One that was disturbed is marked so in its folder; the
    /// reason is returned.
    pub fn suspect(&mut self, dir: &Path) -> Result<Option<String>, LabError> {
        let path = dir.join(EVENTS_FILE);
        let log = read_events(&path)?;
        let events = || log.events.iter().map(|stamped| &stamped.event);
        let canary = canary(events());
        let hosts = events().filter_map(|event| match event {
            Event::StepDone(done) => Some((done.step.as_str(), &done.host)),
            _ => None,
        });
        let steps = hosts.filter_map(|(step, host)| {
            Some(format!("{step}: {}", disturbance(host, &self.limits)?))
        });
        let reasons: Vec<String> = canary
            .iter()
            .filter_map(|canary| self.dead_canary(canary))
            .chain(steps)
            .collect();
        self.canaries.extend(canary);
        if reasons.is_empty() {
            return Ok(None);
        }
        let reason = reasons.join("; ");
        let mut writer = EventWriter::reopen(&path)?;
        writer.append(&Event::Suspect(Suspect {
            reason: reason.clone(),
        }))?;
        writer.sync()?;
        drop(writer);
        seal(dir)?;
        Ok(Some(reason))
    }

    fn dead_canary(&self, canary: &Canary) -> Option<String> {
        let of = |value: fn(&Canary) -> Option<f64>| -> Vec<f64> {
            self.canaries.iter().filter_map(value).collect()
        };
        let is_slow = |past: Vec<f64>, slowness: f64, share: f64| {
            is_outlier(
                past.into_iter().map(|value| value.recip()).collect(),
                slowness,
                share,
            )
        };
        let tests = [
            (
                "integer loop",
                is_slow(
                    of(|canary| Some(canary.integer_per_us)),
                    canary.integer_per_us.recip(),
                    INTEGER_SHARE,
                ),
            ),
            (
                "memory streaming",
                is_slow(
                    of(|canary| Some(canary.memory_bytes_per_s)),
                    canary.memory_bytes_per_s.recip(),
                    MEMORY_SHARE,
                ),
            ),
            (
                "fdatasync",
                canary
                    .sync_ns
                    .and_then(|ns| is_outlier(of(|canary| canary.sync_ns), ns, SYNC_SHARE)),
            ),
        ];
        let slow: Vec<String> = tests
            .into_iter()
            .filter_map(|(name, slower)| {
                Some(format!(
                    "{name} {:.0} % slower than usual before the trial",
                    slower? * 100.0
                ))
            })
            .collect();
        (!slow.is_empty()).then(|| slow.join(", "))
    }
}

fn canary<'a>(mut events: impl Iterator<Item = &'a Event>) -> Option<Canary> {
    events.find_map(|event| match event {
        Event::Canary(canary) => Some(canary.clone()),
        _ => None,
    })
}

/// By which share a time is above the median of the past ones, when it is far above.
fn is_outlier(mut past: Vec<f64>, time: f64, share: f64) -> Option<f64> {
    if past.len() < FEWEST_CANARIES {
        return None;
    }
    let median = median(&mut past);
    let mad = median_of_distances(&past, median);
    (time - median > (CANARY_MADS * mad).max(share * median)).then(|| time / median - 1.0)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn median_of_distances(values: &[f64], from: f64) -> f64 {
    median(
        &mut values
            .iter()
            .map(|value| (value - from).abs())
            .collect::<Vec<_>>(),
    )
}

fn disturbance(host: &Readings, limits: &Limits) -> Option<String> {
    let limits = limits.on(host.value(HostReading::Cpus));
    let seconds = host.value(HostReading::Seconds)?;
    let total = host.value(HostReading::CpuTotal)?;
    let stolen = host.value(HostReading::CpuSteal)?;
    let steal = stolen / total.max(1e-9);
    if limits.is_stolen(steal, total) {
        return Some(format!(
            "other guests took {:.1} % of all CPU time (steal), more than {} %",
            steal * 100.0,
            limits.steal_percent()
        ));
    }
    let idle = host.value(HostReading::CpuIdle)? + host.value(HostReading::CpuIowait)?;
    let busy = total - idle - stolen;
    let ours = host.cpu().ok()?.total();
    let foreign = (busy - ours) / seconds.max(1e-9);
    let limit = limits.foreign_cores;
    let is_foreign = limits.is_foreign(foreign, seconds);
    is_foreign.then(|| format!("other processes used {foreign:.2} cores, more than {limit}"))
}

#[cfg(test)]
mod tests {
    use plimsoll_store::event::{StepDone, TrialDone};

    use super::*;

    fn quiet() -> Canary {
        Canary {
            integer_per_us: 700.0,
            memory_bytes_per_s: 8e9,
            sync_ns: Some(1e6),
        }
    }

    fn host(busy_s: f64, steal_s: f64) -> Readings {
        let values = [
            (HostReading::Seconds, 10.0),
            (HostReading::CpuTotal, 20.0),
            (HostReading::CpuIdle, 20.0 - busy_s - steal_s),
            (HostReading::CpuIowait, 0.0),
            (HostReading::CpuSteal, steal_s),
            (HostReading::ClientCpu, 2.0),
            (HostReading::ServerCpu, 6.0),
        ];
        values
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect()
    }

    #[test]
    fn only_witnesses_make_a_suspect() {
        let mut witness = Witness {
            limits: Limits::default(),
            canaries: (0..6).map(|_| quiet()).collect(),
        };
        for (canary, host, expected) in [
            (quiet(), host(8.5, 0.0), None),
            (
                quiet(),
                host(12.0, 0.0),
                Some("qr100: other processes used 0.40 cores"),
            ),
            (
                quiet(),
                host(8.5, 1.0),
                Some("qr100: other guests took 5.0 %"),
            ),
            (
                Canary {
                    integer_per_us: 500.0,
                    ..quiet()
                },
                host(8.5, 0.0),
                Some("integer loop 40 % slower"),
            ),
            (
                Canary {
                    integer_per_us: 690.0,
                    ..quiet()
                },
                host(8.5, 0.0),
                None,
            ),
            (
                Canary {
                    integer_per_us: 900.0,
                    ..quiet()
                },
                host(8.5, 0.0),
                None,
            ),
            (
                Canary {
                    sync_ns: Some(9e6),
                    ..quiet()
                },
                host(8.5, 0.0),
                Some("fdatasync 800 % slower"),
            ),
            (
                Canary {
                    sync_ns: None,
                    ..quiet()
                },
                Readings::default(),
                None,
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut writer = EventWriter::create(dir.path().join(EVENTS_FILE)).unwrap();
            writer.append(&Event::Canary(canary.clone())).unwrap();
            writer
                .append(&Event::StepDone(Box::new(StepDone {
                    step: "qr100".into(),
                    host,
                    ..StepDone::default()
                })))
                .unwrap();
            writer
                .append(&Event::TrialDone(TrialDone {
                    seconds: 1.0,
                    stop_problem: None,
                }))
                .unwrap();
            writer.sync().unwrap();
            drop(writer);
            let reason = witness.suspect(dir.path()).unwrap();
            assert_eq!(
                reason.is_some(),
                expected.is_some(),
                "{canary:?} {reason:?}"
            );
            assert!(
                expected.is_none_or(|expected| reason.as_ref().unwrap().contains(expected)),
                "{reason:?}"
            );
            let last = read_events(dir.path().join(EVENTS_FILE))
                .unwrap()
                .events
                .pop()
                .unwrap()
                .event;
            assert_eq!(matches!(last, Event::Suspect(_)), expected.is_some());
        }
    }

    #[test]
    fn the_first_canaries_are_believed() {
        let witness = Witness {
            limits: Limits::default(),
            canaries: vec![quiet(); FEWEST_CANARIES - 1],
        };
        assert_eq!(
            witness.dead_canary(&Canary {
                integer_per_us: 1.0,
                ..quiet()
            }),
            None
        );
    }
}
