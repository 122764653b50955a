//! From two samples to the readings of a step.

use std::time::Instant;

use plimsoll_core::readings::{CpuShare, HostReading, Reading, Readings};
use plimsoll_core::units::NS_PER_S;

use super::sampler::{OwnUsage, Sample};
use crate::Answer;
use crate::parse::{DiskCounters, HostCpu};
use crate::processes::tick_ns;

/// A first look that is later than this share of the window says nothing about it.
const MOST_LATE: f64 = 0.25;
const US_PER_S: f64 = 1e6;

/// What went on between two samples.
#[derive(Debug)]
pub(crate) struct Difference {
    pub seconds: f64,
    pub host: Answer<HostCpu>,
    pub disk: Answer<DiskCounters>,
    pub psi_cpu_s: Answer<f64>,
    pub psi_io_s: Answer<f64>,
    pub psi_memory_s: Answer<f64>,
    pub own_cpu_s: Answer<f64>,
    pub own_usage: Answer<OwnUsage>,
    /// `None` for an embedded engine.
    pub server_cpu_s: Option<Answer<f64>>,
}

impl Difference {
    /// From `start` to `stop`.
    pub(crate) fn between(start: &Sample, stop: &Sample) -> Self {
        Self {
            seconds: stop.at.duration_since(start.at).as_secs_f64(),
            host: both(&start.host, &stop.host).and_then(|(start, stop)| stop.since(start)),
            disk: both(&start.disk, &stop.disk).and_then(|(start, stop)| stop.since(start)),
            psi_cpu_s: grown(&start.psi_cpu_us, &stop.psi_cpu_us, US_PER_S),
            psi_io_s: grown(&start.psi_io_us, &stop.psi_io_us, US_PER_S),
            psi_memory_s: grown(&start.psi_memory_us, &stop.psi_memory_us, US_PER_S),
            own_cpu_s: grown(&start.own_cpu_ns, &stop.own_cpu_ns, NS_PER_S),
            own_usage: both(&start.own_usage, &stop.own_usage)
                .map(|(start, stop)| stop.since(start)),
            server_cpu_s: start
                .server_cpu_ns
                .as_ref()
                .zip(stop.server_cpu_ns.as_ref())
                .map(|(start, stop)| grown(start, stop, NS_PER_S)),
        }
    }

    /// As readings of a window of so many seconds from `begin` to `stop`, which is behind its end
    /// when nothing works any more. `begin` is known where `start` was read under load: then it was
    /// a little off, and what was counted is taken in proportion. Where nothing worked yet there is
    /// nothing to take off.
    pub(crate) fn into_readings_of(
        self,
        start: &Sample,
        begin: Option<Instant>,
        seconds: f64,
    ) -> Readings {
        let share = |at: Instant| share_of_window(at, begin, seconds);
        let (server, others) = (share(start.server_at), share(start.at));
        let mut readings = self.into_readings();
        for name in HostReading::ALL {
            let Some(reading) = readings.get_mut(*name) else {
                continue;
            };
            let share = match name {
                HostReading::Cpus | HostReading::Seconds => continue,
                HostReading::ServerCpu => &server,
                _ => &others,
            };
            if let Reading::Ok(value) = *reading {
                *reading = share.clone().map(|share| value * share).into();
            }
        }
        readings.put(HostReading::Seconds, seconds);
        if let Some(begin) = begin {
            readings.put(HostReading::Late, late_s(start.server_at, begin));
        }
        readings
    }

    /// As readings under their public names.
    pub(crate) fn into_readings(self) -> Readings {
        let mut readings = Readings::default();
        readings.put(HostReading::Seconds, self.seconds);
        self.put_host_cpu(&mut readings);
        self.put_disk(&mut readings);
        self.put_own_usage(&mut readings);
        readings.put(HostReading::PsiCpuSome, self.psi_cpu_s);
        readings.put(HostReading::PsiIoSome, self.psi_io_s);
        readings.put(HostReading::PsiMemorySome, self.psi_memory_s);
        readings.put_cpu(match self.server_cpu_s {
            Some(server) => CpuShare::Server {
                client: self.own_cpu_s,
                server,
            },
            None => CpuShare::Embedded {
                process: self.own_cpu_s,
            },
        });
        readings
    }

    fn put_host_cpu(&self, readings: &mut Readings) {
        let count = |pick: fn(&HostCpu) -> u64| picked(&self.host, pick);
        let seconds = |pick| Ok(count(pick)? * tick_ns() as f64 / NS_PER_S);
        readings.put(HostReading::Cpus, count(|host| host.cpus));
        readings.put(HostReading::CpuUser, seconds(|host| host.user + host.nice));
        readings.put(
            HostReading::CpuSystem,
            seconds(|host| host.system + host.irq + host.softirq),
        );
        readings.put(HostReading::CpuIowait, seconds(|host| host.iowait));
        readings.put(HostReading::CpuSteal, seconds(|host| host.steal));
        readings.put(HostReading::CpuIdle, seconds(|host| host.idle));
        readings.put(HostReading::CpuTotal, seconds(HostCpu::total));
        readings.put(
            HostReading::ContextSwitches,
            count(|host| host.context_switches),
        );
    }

    fn put_disk(&self, readings: &mut Readings) {
        let count = |pick: fn(&DiskCounters) -> u64| picked(&self.disk, pick);
        readings.put(HostReading::DiskReads, count(|disk| disk.reads));
        readings.put(HostReading::DiskReadBytes, count(|disk| disk.read_bytes));
        readings.put(HostReading::DiskWrites, count(|disk| disk.writes));
        readings.put(HostReading::DiskWriteBytes, count(|disk| disk.write_bytes));
    }

    fn put_own_usage(&self, readings: &mut Readings) {
        let count = |pick: fn(&OwnUsage) -> u64| picked(&self.own_usage, pick);
        let seconds = |pick| Ok(count(pick)? / US_PER_S);
        readings.put(
            HostReading::VoluntarySwitches,
            count(|usage| usage.voluntary_switches),
        );
        readings.put(
            HostReading::InvoluntarySwitches,
            count(|usage| usage.involuntary_switches),
        );
        readings.put(
            HostReading::ClientMajorFaults,
            count(|usage| usage.major_faults),
        );
        readings.put(HostReading::OwnUser, seconds(|usage| usage.user_us));
        readings.put(HostReading::OwnSystem, seconds(|usage| usage.system_us));
    }
}

/// What counters are to be multiplied by that were first read at this instant, of a window of so
/// many seconds from `begin`.
pub(crate) fn share_of_window(at: Instant, begin: Option<Instant>, seconds: f64) -> Answer<f64> {
    let Some(begin) = begin else { return Ok(1.0) };
    let late_s = late_s(at, begin);
    if late_s.abs() > MOST_LATE * seconds {
        return Err(format!(
            "the machine was too busy to be looked at when the step began, and was {late_s:.1} s \
             later"
        ));
    }
    Ok(seconds / (seconds - late_s))
}

fn late_s(at: Instant, begin: Instant) -> f64 {
    at.saturating_duration_since(begin).as_secs_f64()
        - begin.saturating_duration_since(at).as_secs_f64()
}

fn picked<T>(counters: &Answer<T>, pick: fn(&T) -> u64) -> Answer<f64> {
    match counters {
        Ok(counters) => Ok(pick(counters) as f64),
        Err(reason) => Err(reason.clone()),
    }
}

fn both<'a, T>(start: &'a Answer<T>, stop: &'a Answer<T>) -> Answer<(&'a T, &'a T)> {
    match (start, stop) {
        (Ok(start), Ok(stop)) => Ok((start, stop)),
        (_, Err(reason)) | (Err(reason), _) => Err(reason.clone()),
    }
}

fn grown(start: &Answer<u64>, stop: &Answer<u64>, units_per_s: f64) -> Answer<f64> {
    let (start, stop) = both(start, stop)?;
    let added = stop
        .checked_sub(*start)
        .ok_or("the counter ran backwards")?;
    Ok(added as f64 / units_per_s)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn no<T>(reason: &str) -> Answer<T> {
        Err(String::from(reason))
    }

    fn samples() -> (Sample, Sample) {
        let usage = |count: u64| OwnUsage {
            voluntary_switches: 2 * count,
            involuntary_switches: count,
            major_faults: 3 * count,
            user_us: 700_000 * count,
            system_us: 50_000 * count,
        };
        let host = |count: u64| HostCpu {
            user: 100 * count,
            nice: 10 * count,
            system: 20 * count,
            idle: 300 * count,
            iowait: 40 * count,
            irq: count,
            softirq: 2 * count,
            steal: 7 * count,
            cpus: 4,
            context_switches: 9 * count,
        };
        let disk = |count: u64| DiskCounters {
            reads: count,
            read_bytes: 2 * count,
            writes: 3 * count,
            write_bytes: 4 * count,
        };
        let at = Instant::now();
        let sample = |count: u64| Sample {
            at: at + Duration::from_millis(1500 * count),
            server_at: at + Duration::from_millis(1500 * count),
            own_cpu_ns: Ok(250_000_000 * count),
            own_usage: Ok(usage(count)),
            host: Ok(host(count)),
            disk: Ok(disk(count)),
            psi_cpu_us: Ok(10_000 * count),
            psi_io_us: Ok(20_000 * count),
            psi_memory_us: no("no pressure here"),
            server_cpu_ns: Some(Ok(500_000_000 * count)),
            rss_bytes: Ok(1),
        };
        (sample(1), sample(3))
    }

    #[test]
    fn readings_are_differences_in_their_units() {
        let (start, stop) = samples();
        let readings = Difference::between(&start, &stop).into_readings();
        let tick_s = tick_ns() as f64 / 1e9;
        for (name, expected) in [
            (HostReading::Seconds, 3.0),
            (HostReading::Cpus, 4.0),
            (HostReading::CpuUser, 220.0 * tick_s),
            (HostReading::CpuSystem, 46.0 * tick_s),
            (HostReading::CpuIowait, 80.0 * tick_s),
            (HostReading::CpuSteal, 14.0 * tick_s),
            (HostReading::CpuIdle, 600.0 * tick_s),
            (HostReading::CpuTotal, 960.0 * tick_s),
            (HostReading::ContextSwitches, 18.0),
            (HostReading::DiskReads, 2.0),
            (HostReading::DiskReadBytes, 4.0),
            (HostReading::DiskWrites, 6.0),
            (HostReading::DiskWriteBytes, 8.0),
            (HostReading::PsiCpuSome, 0.02),
            (HostReading::PsiIoSome, 0.04),
            (HostReading::ClientCpu, 0.5),
            (HostReading::ServerCpu, 1.0),
            (HostReading::VoluntarySwitches, 4.0),
            (HostReading::InvoluntarySwitches, 2.0),
            (HostReading::ClientMajorFaults, 6.0),
            (HostReading::OwnUser, 1.4),
            (HostReading::OwnSystem, 0.1),
        ] {
            let value = readings[name].value().unwrap();
            assert!(
                (value - expected).abs() < 1e-9,
                "{name:?}: {value} instead of {expected}"
            );
        }
        assert_eq!(
            readings[HostReading::PsiMemorySome],
            Reading::Unavailable(String::from("no pressure here"))
        );
        assert!(
            matches!(&readings[HostReading::ProcessCpu], Reading::Unavailable(reason) if reason.contains("processes of its own"))
        );
    }

    /// Three seconds of counting; the window is what it should have been.
    #[test]
    fn a_first_look_that_is_late_is_made_good_in_proportion() {
        let of = |late_ms: i64, server_late_ms: i64, seconds: f64| {
            let (start, stop) = samples();
            let moved = |at: Instant, ms: i64| {
                at - Duration::from_millis(ms.max(0) as u64)
                    + Duration::from_millis((-ms).max(0) as u64)
            };
            let begin = moved(start.at, late_ms);
            let start = Sample {
                server_at: moved(begin, -server_late_ms),
                ..start
            };
            Difference::between(&start, &stop).into_readings_of(&start, Some(begin), seconds)
        };
        let whole = Difference::between(&samples().0, &samples().1).into_readings();
        for (late_ms, server_late_ms, seconds, others, server) in [
            (0, 0, 3.0, 1.0, 1.0),
            (1000, 500, 4.0, 4.0 / 3.0, 4.0 / 3.5),
            (-500, 0, 2.5, 2.5 / 3.0, 1.0),
        ] {
            let readings = of(late_ms, server_late_ms, seconds);
            for (name, factor) in [
                (HostReading::CpuUser, others),
                (HostReading::ContextSwitches, others),
                (HostReading::ClientCpu, others),
                (HostReading::ServerCpu, server),
            ] {
                let (value, expected) = (
                    readings[name].value().unwrap(),
                    whole[name].value().unwrap() * factor,
                );
                assert!(
                    (value - expected).abs() < 1e-9,
                    "{name:?} of {late_ms}: {value} instead of {expected}"
                );
            }
            assert_eq!(
                (
                    readings[HostReading::Seconds].value(),
                    &readings[HostReading::Cpus]
                ),
                (Some(seconds), &whole[HostReading::Cpus])
            );
            assert!(
                (readings[HostReading::Late].value().unwrap() - server_late_ms as f64 / 1e3).abs()
                    < 1e-9
            );
        }
        let late = of(1100, 0, 4.0);
        let reason =
            "the machine was too busy to be looked at when the step began, and was 1.1 s later";
        assert_eq!(
            late[HostReading::CpuUser],
            Reading::Unavailable(reason.to_owned())
        );
        assert!(
            late[HostReading::ServerCpu].value().is_some()
                && late[HostReading::PsiMemorySome] == whole[HostReading::PsiMemorySome]
        );
        // Nobody worked before the first look or behind the last one: nothing is taken off.
        let (start, stop) = samples();
        let idle = Difference::between(&start, &stop).into_readings_of(&start, None, 2.0);
        assert_eq!(
            (
                idle[HostReading::ServerCpu].value(),
                idle[HostReading::Seconds].value()
            ),
            (whole[HostReading::ServerCpu].value(), Some(2.0))
        );
    }

    #[test]
    fn an_embedded_engine_has_one_cpu_for_both() {
        let (mut start, mut stop) = samples();
        (start.server_cpu_ns, stop.server_cpu_ns) = (None, None);
        let readings = Difference::between(&start, &stop).into_readings();
        assert_eq!(readings[HostReading::ProcessCpu], Reading::Ok(0.5));
        for name in [HostReading::ClientCpu, HostReading::ServerCpu] {
            assert_eq!(
                readings[name],
                Reading::Unavailable(String::from("shares the process with the engine"))
            );
        }
    }

    #[test]
    fn one_missing_end_is_a_missing_difference() {
        let (mut start, mut stop) = samples();
        start.host = no("not at the start");
        stop.disk = no("not at the stop");
        stop.psi_cpu_us = Ok(0);
        let readings = Difference::between(&start, &stop).into_readings();
        for (name, reason) in [
            (HostReading::CpuUser, "not at the start"),
            (HostReading::Cpus, "not at the start"),
            (HostReading::DiskReads, "not at the stop"),
            (HostReading::PsiCpuSome, "the counter ran backwards"),
        ] {
            assert_eq!(
                readings[name],
                Reading::Unavailable(String::from(reason)),
                "{name:?}"
            );
        }
    }
}
