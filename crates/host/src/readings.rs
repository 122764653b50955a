//! From two samples to the readings of a step.

use std::time::Instant;

use plimsoll_core::record::{Reading, Readings};

use crate::Answer;
use crate::parse::{DiskCounters, HostCpu};
use crate::process::tick_ns;
use crate::sampler::{OwnUsage, Sample};

/// A first look that is later than this share of the window says nothing about it.
const MOST_LATE: f64 = 0.25;
const NS_PER_S: f64 = 1e9;
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
        let late_s = |at: Instant, begin: Instant| {
            at.saturating_duration_since(begin).as_secs_f64()
                - begin.saturating_duration_since(at).as_secs_f64()
        };
        let share = |at: Instant| {
            let Some(begin) = begin else { return Ok(1.0) };
            let late_s = late_s(at, begin);
            if late_s.abs() > MOST_LATE * seconds {
                return Err(format!(
                    "the machine was too busy to be looked at when the step began, and was \
                    {late_s:.1} s later"
                ));
            }
            Ok(seconds / (seconds - late_s))
        };
        let (server, others) = (share(start.server_at), share(start.at));
        let mut readings = self.into_readings();
        for (name, reading) in &mut readings {
            let share = match name.as_str() {
                "cpus" => continue,
                "seconds" => Ok(seconds),
                "server_cpu_s" => server.clone(),
                _ => others.clone(),
            };
            *reading = match (std::mem::replace(reading, Reading::Ok(0.0)), share) {
                (Reading::Ok(_), Ok(seconds)) if name == "seconds" => Reading::Ok(seconds),
                (Reading::Ok(value), Ok(share)) => Reading::Ok(value * share),
                (Reading::Ok(_), Err(reason)) => Reading::Unavailable(reason),
                (unavailable, _) => unavailable,
            };
        }
        if let Some(begin) = begin {
            readings.insert(
                String::from("late_s"),
                Reading::Ok(late_s(start.server_at, begin)),
            );
        }
        readings
    }

    /// As readings under their public names.
    pub(crate) fn into_readings(self) -> Readings {
        let mut readings = Readings::new();
        let mut put = |name: &str, answer: Answer<f64>| {
            readings.insert(name.to_owned(), reading(answer));
        };
        put("seconds", Ok(self.seconds));

        let host = |count: fn(&HostCpu) -> u64| {
            self.host
                .as_ref()
                .map(|host| count(host) as f64)
                .map_err(String::clone)
        };
        let cpu_s = |count: fn(&HostCpu) -> u64| Ok(host(count)? * tick_ns() as f64 / NS_PER_S);
        put("cpus", host(|host| host.cpus));
        put("cpu_user_s", cpu_s(|host| host.user + host.nice));
        put(
            "cpu_system_s",
            cpu_s(|host| host.system + host.irq + host.softirq),
        );
        put("cpu_iowait_s", cpu_s(|host| host.iowait));
        put("cpu_steal_s", cpu_s(|host| host.steal));
        put("cpu_idle_s", cpu_s(|host| host.idle));
        put("cpu_total_s", cpu_s(HostCpu::total));
        put("context_switches", host(|host| host.context_switches));

        let disk = |count: fn(&DiskCounters) -> u64| {
            self.disk
                .as_ref()
                .map(|disk| count(disk) as f64)
                .map_err(String::clone)
        };
        put("disk_reads", disk(|disk| disk.reads));
        put("disk_read_bytes", disk(|disk| disk.read_bytes));
        put("disk_writes", disk(|disk| disk.writes));
        put("disk_write_bytes", disk(|disk| disk.write_bytes));

        put("psi_cpu_some_s", self.psi_cpu_s);
        put("psi_io_some_s", self.psi_io_s);
        put("psi_memory_some_s", self.psi_memory_s);

        match self.server_cpu_s {
            Some(server_cpu_s) => {
                put("client_cpu_s", self.own_cpu_s);
                put("server_cpu_s", server_cpu_s);
                put(
                    "process_cpu_s",
                    Err(String::from("the engine has processes of its own")),
                );
            }
            None => {
                let shared = || Err(String::from("shares the process with the engine"));
                put("client_cpu_s", shared());
                put("server_cpu_s", shared());
                put("process_cpu_s", self.own_cpu_s);
            }
        }

        let usage = |count: fn(&OwnUsage) -> u64| {
            self.own_usage
                .as_ref()
                .map(|usage| count(usage) as f64)
                .map_err(String::clone)
        };
        put(
            "voluntary_switches",
            usage(|usage| usage.voluntary_switches),
        );
        put(
            "involuntary_switches",
            usage(|usage| usage.involuntary_switches),
        );
        put("client_major_faults", usage(|usage| usage.major_faults));
        put(
            "own_user_s",
            usage(|usage| usage.user_us).map(|us| us / US_PER_S),
        );
        put(
            "own_system_s",
            usage(|usage| usage.system_us).map(|us| us / US_PER_S),
        );
        readings
    }
}

/// An answer in the form the store keeps.
pub(crate) fn reading(answer: Answer<f64>) -> Reading {
    match answer {
        Ok(value) => Reading::Ok(value),
        Err(reason) => Reading::Unavailable(reason),
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
            ("seconds", 3.0),
            ("cpus", 4.0),
            ("cpu_user_s", 220.0 * tick_s),
            ("cpu_system_s", 46.0 * tick_s),
            ("cpu_iowait_s", 80.0 * tick_s),
            ("cpu_steal_s", 14.0 * tick_s),
            ("cpu_idle_s", 600.0 * tick_s),
            ("cpu_total_s", 960.0 * tick_s),
            ("context_switches", 18.0),
            ("disk_reads", 2.0),
            ("disk_read_bytes", 4.0),
            ("disk_writes", 6.0),
            ("disk_write_bytes", 8.0),
            ("psi_cpu_some_s", 0.02),
            ("psi_io_some_s", 0.04),
            ("client_cpu_s", 0.5),
            ("server_cpu_s", 1.0),
            ("voluntary_switches", 4.0),
            ("involuntary_switches", 2.0),
            ("client_major_faults", 6.0),
            ("own_user_s", 1.4),
            ("own_system_s", 0.1),
        ] {
            let value = readings[name].value().unwrap();
            assert!(
                (value - expected).abs() < 1e-9,
                "{name}: {value} instead of {expected}"
            );
        }
        assert_eq!(
            readings["psi_memory_some_s"],
            Reading::Unavailable(String::from("no pressure here"))
        );
        assert!(
            matches!(&readings["process_cpu_s"], Reading::Unavailable(reason) if reason.contains("processes of its own"))
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
                ("cpu_user_s", others),
                ("context_switches", others),
                ("client_cpu_s", others),
                ("server_cpu_s", server),
            ] {
                let (value, expected) = (
                    readings[name].value().unwrap(),
                    whole[name].value().unwrap() * factor,
                );
                assert!(
                    (value - expected).abs() < 1e-9,
                    "{name} of {late_ms}: {value} instead of {expected}"
                );
            }
            assert_eq!(
                (readings["seconds"].value(), &readings["cpus"]),
                (Some(seconds), &whole["cpus"])
            );
            assert!(
                (readings["late_s"].value().unwrap() - server_late_ms as f64 / 1e3).abs() < 1e-9
            );
        }
        let late = of(1100, 0, 4.0);
        let reason =
            "the machine was too busy to be looked at when the step began, and was 1.1 s later";
        assert_eq!(late["cpu_user_s"], Reading::Unavailable(reason.to_owned()));
        assert!(
            late["server_cpu_s"].value().is_some()
                && late["psi_memory_some_s"] == whole["psi_memory_some_s"]
        );
        // Nobody worked before the first look or behind the last one: nothing is taken off.
        let (start, stop) = samples();
        let idle = Difference::between(&start, &stop).into_readings_of(&start, None, 2.0);
        assert_eq!(
            (idle["server_cpu_s"].value(), idle["seconds"].value()),
            (whole["server_cpu_s"].value(), Some(2.0))
        );
    }

    #[test]
    fn an_embedded_engine_has_one_cpu_for_both() {
        let (mut start, mut stop) = samples();
        (start.server_cpu_ns, stop.server_cpu_ns) = (None, None);
        let readings = Difference::between(&start, &stop).into_readings();
        assert_eq!(readings["process_cpu_s"], Reading::Ok(0.5));
        for name in ["client_cpu_s", "server_cpu_s"] {
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
            ("cpu_user_s", "not at the start"),
            ("cpus", "not at the start"),
            ("disk_reads", "not at the stop"),
            ("psi_cpu_some_s", "the counter ran backwards"),
        ] {
            assert_eq!(
                readings[name],
                Reading::Unavailable(String::from(reason)),
                "{name}"
            );
        }
    }
}
