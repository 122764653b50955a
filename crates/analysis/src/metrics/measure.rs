//! All metrics of a finished step.

use plimsoll_core::plan::{Family, VAIN_STATEMENTS_NOTE};
use plimsoll_store::event::StepDone;
use plimsoll_store::{OperationSecond, Turn};

use super::facts::{Facts, ratio};
use super::metric::{Formula, Metric};
use super::together::together;
use super::value::{Value, at_least};
use crate::latencies::Latencies;

/// A value beside its catalogue entry, which names its unit, direction and meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    pub metric: &'static Metric,
    pub value: Value,
    /// As the originals print it, digit for digit; only imported results have it.
    pub classic: Option<String>,
}

impl Measure {
    /// The number with the catalogue's decimals.
    pub fn text(&self) -> Option<String> {
        let at_least = at_least(self.value.is_lower_bound);
        self.value
            .value
            .map(|value| format!("{at_least}{value:.*}", self.metric.decimals))
    }
}

/// Every metric of a finished step, in the order of its set. `turns` are those of a step by slices.
pub(crate) fn measure(
    family: Family,
    done: &StepDone,
    series: Result<&[OperationSecond], &str>,
    turns: &[Turn],
) -> Vec<Measure> {
    let facts = Facts {
        series,
        turns,
        ..Facts::of_events(family, done)
    };
    // Drawn events count together.
    if let Some((all, series)) = together(done, series) {
        return measure_all(&Facts {
            done: &all,
            series: series.as_deref().map_err(String::as_str),
            latencies: Latencies::of(done.operations.iter()),
            ..facts
        });
    }
    let latencies = match facts.primary() {
        Ok(primary) => Latencies::of(std::iter::once(primary)),
        Err(reason) => Latencies::missing(&reason),
    };
    measure_all(&Facts { latencies, ..facts })
}

fn measure_all(facts: &Facts<'_>) -> Vec<Measure> {
    let metrics = facts.set.metrics().iter();
    metrics.map(|metric| measure_one(facts, metric)).collect()
}

/// The metrics of these names, without those that need a histogram or a series: what is read from
/// every campaign of a store must be cheap.
pub(crate) fn measure_cheaply(family: Family, done: &StepDone, names: &[&Metric]) -> Vec<Measure> {
    let facts = Facts::of_events(family, done);
    let metrics = facts.set.metrics().iter();
    let named = metrics.filter(|metric| names.iter().any(|name| name.name == metric.name));
    named.map(|metric| measure_one(&facts, metric)).collect()
}

/// Statements per second of a sysbench test as sysbench counts them, with those of tries that were
/// refused or failed; `rate` is without them.
pub(crate) fn classic_rate(family: Family, done: &StepDone, rate: Option<f64>) -> Option<f64> {
    let facts = Facts::of_events(family, done);
    let statements = facts.statements().filter(|_| facts.scan_rows().is_err())?;
    let in_vain = done.notes.get(VAIN_STATEMENTS_NOTE).copied().unwrap_or(0.0);
    Some(rate? * ratio(statements + in_vain, statements, "no statement was done").ok()?)
}

fn measure_one(facts: &Facts<'_>, metric: &'static Metric) -> Measure {
    // What db_bench printed stands as printed.
    let value = match (facts.printed(metric.name), metric.of) {
        (Some(printed), _) => Ok(printed).into(),
        (None, Formula::Computed(of)) => of(facts).into(),
        (None, Formula::Quantile(clock, quantile)) => facts.quantile_us(clock, quantile),
        (None, Formula::ImportedOnly) => {
            Value::from(Err(format!("only imported results have {}", metric.name)))
        }
    };
    Measure {
        metric,
        value,
        classic: None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_core::histogram;
    use plimsoll_core::plan::{Operation, STATEMENT_NOTES};
    use plimsoll_core::readings::{HostReading, Reading, Readings};
    use plimsoll_core::record::{
        ClientHostRecord, ClientRecord, EncodedHistogram, OperationRecord, Pacing, TurnSums,
    };

    use super::*;
    use crate::metrics::CATALOGUE;

    fn encoded(values_ns: &[(u64, u64)]) -> EncodedHistogram {
        let mut histogram = histogram::empty::<u64>();
        for (value, count) in values_ns {
            histogram.record_n(*value, *count).unwrap();
        }
        EncodedHistogram::of(&histogram)
    }

    fn client(client: u32, kind: &str, ok: u64, rows: u64, from_s: f64, to_s: f64) -> ClientRecord {
        let ns = |seconds: f64| (seconds * 1e9) as u64;
        ClientRecord {
            client,
            kind: kind.to_owned(),
            ok,
            rows,
            from_ns: ns(from_s),
            to_ns: ns(to_s),
            turns: None,
        }
    }

    fn readings(values: &[(HostReading, f64)]) -> Readings {
        values
            .iter()
            .map(|(name, value)| (*name, Reading::Ok(*value)))
            .collect()
    }

    /// Two clients, 20 s, queries over a background of 100 rows/s that one client falls short of.
    fn read_write_step() -> StepDone {
        let pacing = |achieved_per_s, seconds_under, backlog| Pacing {
            target_per_s: 4.0,
            achieved_per_s,
            seconds: 20,
            seconds_under,
            backlog,
        };
        let writer = |kind: &str, pacing| OperationRecord {
            kind: kind.to_owned(),
            attempts: 82,
            ok: 80,
            retried: 2,
            rows: 4000,
            wait_ns: 1_000_000_000,
            worker_ns: 40_000_000_000,
            service: encoded(&[(2_000_000, 80)]),
            response: Some(encoded(&[(3_000_000, 80)])),
            pacing: Some(pacing),
            ..Default::default()
        };
        let query = OperationRecord {
            kind: "query".to_owned(),
            wait_ns: 30_000_000_000,
            attempts: 60_000,
            ok: 60_000,
            rows: 600_000,
            worker_ns: 40_000_000_000,
            service: encoded(&[
                (100_000, 54_000),
                (200_000, 5_400),
                (5_000_000, 599),
                (400_000_000, 1),
            ]),
            ..Default::default()
        };
        StepDone {
            step: "qr100".to_owned(),
            primary: Operation::Query,
            elapsed_ns: 20_500_000_000,
            operations: vec![
                query,
                writer("insert", pacing(3.9, 1, 1)),
                writer("delete", pacing(3.6, 3, 4)),
            ],
            clients: vec![
                client(1, "query", 20_000, 200_000, 0.0, 20.0),
                client(2, "query", 40_000, 400_000, 0.5, 20.5),
                client(1, "insert", 40, 2000, 0.0, 20.0),
                client(2, "insert", 40, 2000, 0.0, 25.0),
                client(1, "delete", 40, 2000, 0.0, 20.0),
                client(2, "delete", 40, 1500, 0.0, 20.0),
            ],
            host: readings(&[
                (HostReading::Seconds, 20.0),
                (HostReading::Cpus, 8.0),
                (HostReading::CpuUser, 60.0),
                (HostReading::CpuSystem, 20.0),
                (HostReading::CpuSteal, 1.6),
                (HostReading::CpuTotal, 160.0),
                (HostReading::ContextSwitches, 1_200_000.0),
                (HostReading::DiskReads, 6000.0),
                (HostReading::DiskReadBytes, 6000.0 * 4096.0),
                (HostReading::DiskWrites, 900.0),
                (HostReading::DiskWriteBytes, 20.0 * 1024.0 * 1024.0),
                (HostReading::ServerCpu, 30.0),
                (HostReading::ClientCpu, 6.0),
                (HostReading::ProcessCpu, 36.0),
                (HostReading::RssMax, 3.0 * 1_073_741_824.0),
                (HostReading::DataDir, 1.5 * 1_073_741_824.0),
                (HostReading::Database, 1_073_741_824.0),
                (HostReading::PsiCpuSome, 2.0),
                (HostReading::PsiIoSome, 5.0),
                (HostReading::PsiMemorySome, 0.0),
            ]),
            ..Default::default()
        }
    }

    /// 100, 101, ... queries in the seconds 0 to 19 from one client and 1000 from the other, and
    /// half a second after them.
    fn series() -> Vec<OperationSecond> {
        let row = |second, client, ok| OperationSecond {
            second,
            client,
            kind: "query".to_owned(),
            ok,
            rows: ok * 10,
            ..Default::default()
        };
        (0..20)
            .map(|second| row(second, 1, 100 + u64::from(second)))
            .chain((0..=20).map(|second| row(second, 2, 1000)))
            .collect()
    }

    fn values(
        done: &StepDone,
        series: Result<&[OperationSecond], &str>,
    ) -> BTreeMap<&'static str, Value> {
        measure(Family::InsertBenchmark, done, series, &[])
            .into_iter()
            .map(|measure| (measure.metric.name, measure.value))
            .collect()
    }

    #[test]
    fn every_metric_of_a_read_write_step_by_hand() {
        let (done, series) = (read_write_step(), series());
        let values = values(&done, Ok(&series));
        let expected = [
            ("ips", 2000.0 / 20.0 + 2000.0 / 25.0),
            ("qps", 3000.0),
            ("dps", 175.0),
            ("rps", 300.0),
            ("rmbps", 300.0 * 4096.0 / 1_048_576.0),
            ("wps", 45.0),
            ("wmbps", 1.0),
            ("rpq", 0.1),
            ("rkbpq", 0.4),
            ("wpi", 0.25),
            ("wkbpi", 1024.0 / 180.0),
            ("csps", 60_000.0),
            ("cpups", 50.0),
            ("cspq", 20.0),
            ("cpupq", 4.0 * 1e6 / 3000.0),
            ("dbgb1", 1.0),
            ("dbgb2", 1.5),
            ("rss", 3.0),
            // Twenty rates from 1119 down to 1100: the 10th and the 20th.
            ("p50_rate", 1110.0),
            ("p99_rate", 1100.0),
            // They rise: the last ten, and the last five by the five before them.
            ("sustained_rate", 1114.5),
            ("sustained_slope", 1117.0 / 1112.0),
            ("server_cpu_us_per_op", 500.0),
            ("client_cpu_us_per_op", 100.0),
            ("process_cpu_us_per_op", 600.0),
            // The worst writer.
            ("rate_share", 0.9),
            ("seconds_under_rate", 0.15),
            ("backlog", 5.0),
            ("wait_share", 0.025),
            // Of the queries, not of the writers.
            ("excluded_wait_s", 30.0),
            ("steal_share", 0.01),
            ("foreign_cpu_cores", 2.2),
            ("psi_cpu_share", 0.1),
            ("psi_io_share", 0.25),
            ("psi_memory_share", 0.0),
        ];
        for (name, number) in expected {
            let value = values[name]
                .value
                .unwrap_or_else(|| panic!("{name}: {:?}", values[name].unavailable));
            assert!(
                (value - number).abs() <= number.abs() * 1e-9,
                "{name}: {value}, not {number}"
            );
        }
        // Histograms keep three digits.
        let quantiles = [
            ("p50_service_us", 100.0),
            ("p90_service_us", 100.0),
            ("p99_service_us", 200.0),
            ("p999_service_us", 5000.0),
            ("max_service_us", 400_000.0),
            ("maxop", 0.4),
        ];
        for (name, number) in quantiles {
            let value = values[name].value.unwrap();
            assert!(
                (value - number).abs() <= number * 1e-3,
                "{name}: {value}, not {number}"
            );
        }
        let without: Vec<_> = values
            .iter()
            .filter(|(_, value)| value.value.is_none())
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(
            without.len() + expected.len() + quantiles.len(),
            CATALOGUE.len(),
            "{without:?}"
        );
        for name in without {
            let reason = match name {
                "index_s" => "the step creates no index",
                _ if OF_SERVER_PROCESSES
                    .iter()
                    .any(|(metric, _)| *metric == name) =>
                {
                    continue;
                }
                _ => "closed loop: no response time",
            };
            assert_eq!(values[name].unavailable.as_deref(), Some(reason), "{name}");
        }
    }

    /// By slices the classic rate was that of the whole step, turns for warming up included.
    #[test]
    fn by_slices_the_classic_rate_is_of_the_turns_too() {
        let transaction = OperationRecord {
            kind: "transaction".to_owned(),
            ok: 1_000,
            service: encoded(&[(1_000_000, 1_000)]),
            ..Default::default()
        };
        let notes = STATEMENT_NOTES
            .iter()
            .map(|name| ((*name).to_owned(), 2_000.0))
            .collect();
        let done = StepDone {
            primary: Operation::Transaction,
            elapsed_ns: 10_000_000_000,
            operations: vec![transaction],
            clients: vec![client(1, "transaction", 1_000, 1_000, 0.0, 10.0)],
            notes,
            ..Default::default()
        };
        // 200 a second in turns, and 100 over the whole.
        let turns = [Turn {
            operations: 800,
            active_ns: 4_000_000_000,
            ..Turn::default()
        }];
        let of_turns = measure(Family::Sysbench, &done, Ok(&[]), &turns);
        let qps = of_turns
            .iter()
            .find(|measure| measure.metric.name == "qps")
            .unwrap()
            .value
            .value
            .unwrap();
        assert_eq!(qps, 200.0 * 2.0 * STATEMENT_NOTES.len() as f64);
        assert_eq!(
            classic_rate(Family::Sysbench, &done, Some(qps)),
            Some(qps),
            "nothing was in vain"
        );
    }

    /// Of 60,000 queries.
    const OF_SERVER_PROCESSES: [(&str, f64); 5] = [
        ("server_cspq", 3.0),
        ("server_rpq", 0.25),
        ("server_rkbpq", 0.5),
        ("server_wpq", 0.05),
        ("server_wkbpq", 2.0),
    ];

    #[test]
    fn counters_of_the_server_are_divided_by_operations() {
        let mut done = read_write_step();
        for (name, value) in values(&done, Ok(&[])) {
            if name.starts_with("server_") && name.ends_with('q') {
                let reason = value.unavailable.unwrap();
                assert!(reason.ends_with("was not recorded"), "{name}: {reason}");
            }
        }
        for (name, value) in [
            (HostReading::ServerVoluntarySwitches, 150_000.0),
            (HostReading::ServerInvoluntarySwitches, 30_000.0),
            (HostReading::ServerReadCalls, 15_000.0),
            (HostReading::ServerWriteCalls, 3_000.0),
            (HostReading::ServerReadBytes, 60_000.0 * 512.0),
            (HostReading::ServerWriteBytes, 60_000.0 * 2048.0),
        ] {
            done.host.put(name, value);
        }
        let values = values(&done, Ok(&[]));
        for (name, expected) in OF_SERVER_PROCESSES {
            assert_eq!(values[name].value, Some(expected), "{name}");
        }
    }

    /// What was counted once for all turns is divided by all of their operations, and by none of
    /// those before them.
    #[test]
    fn by_slices_counters_of_the_server_are_of_the_recorded_turns() {
        let mut worker = client(1, "query", 1_000, 1_000, 0.0, 10.0);
        worker.turns = Some(TurnSums {
            operations: 700,
            active_ns: 4_000_000_000,
        });
        let done = StepDone {
            primary: Operation::Query,
            operations: vec![OperationRecord {
                kind: "query".to_owned(),
                ok: 1_000,
                service: encoded(&[(1_000_000, 1_000)]),
                ..Default::default()
            }],
            clients: vec![worker],
            host: readings(&[
                (HostReading::ServerVoluntarySwitches, 1_500.0),
                (HostReading::ServerInvoluntarySwitches, 100.0),
                (HostReading::ServerWriteBytes, 800.0 * 4096.0),
            ]),
            ..Default::default()
        };
        let of = |turns: &[Turn], name: &str| {
            let measures = measure(Family::InsertBenchmark, &done, Ok(&[]), turns);
            let measure = measures
                .into_iter()
                .find(|measure| measure.metric.name == name);
            let value = measure.unwrap().value;
            value.value.ok_or_else(|| value.unavailable.unwrap())
        };
        let turn = |all_operations| Turn {
            operations: 350,
            active_ns: 2_000_000_000,
            all_operations,
            ..Turn::default()
        };
        let turns = [turn(Some(390)), turn(Some(410))];
        assert_eq!(of(&turns, "server_cspq"), Ok(2.0));
        assert_eq!(of(&turns, "server_wkbpq"), Ok(4.0));
        assert_eq!(
            of(&turns, "server_rpq"),
            Err("server_read_calls was not recorded".to_owned())
        );
        for turns in [&[turn(None), turn(Some(410))][..], &[]] {
            assert_eq!(
                of(turns, "server_cspq"),
                Err("the operations of its turns were not read".to_owned())
            );
        }
    }

    #[test]
    fn load_steps_count_rows_and_index_creation_counts_each_once() {
        let insert = OperationRecord {
            kind: "insert".to_owned(),
            ok: 20,
            rows: 2000,
            service: encoded(&[(1_000_000, 20)]),
            ..Default::default()
        };
        let load = StepDone {
            primary: Operation::Insert,
            elapsed_ns: 4_000_000_000,
            operations: vec![insert.clone()],
            clients: vec![
                client(1, "insert", 10, 1000, 0.0, 4.0),
                client(2, "insert", 10, 1000, 1.0, 3.0),
            ],
            host: readings(&[
                (HostReading::Seconds, 4.0),
                (HostReading::Cpus, 2.0),
                (HostReading::CpuUser, 3.0),
                (HostReading::CpuSystem, 1.0),
                (HostReading::ServerCpu, 0.5),
            ]),
            ..Default::default()
        };
        let loaded = values(&load, Ok(&[]));
        assert_eq!(loaded["ips"].value, Some(750.0));
        assert_eq!(
            (loaded["qps"].value, loaded["dps"].value),
            (Some(0.0), Some(0.0))
        );
        assert_eq!(loaded["cpupq"].value, Some(1e6 / 750.0));
        assert_eq!(loaded["server_cpu_us_per_op"].value, Some(250.0));
        assert_eq!(
            loaded["p50_rate"].unavailable.as_deref(),
            Some("4 whole seconds are too few: it takes 10")
        );
        assert_eq!(
            loaded["rate_share"].unavailable.as_deref(),
            Some("closed loop: there is no rate to keep")
        );

        let index = OperationRecord {
            kind: "index".to_owned(),
            ok: 2,
            rows: 90_000,
            service: encoded(&[(900_000_000, 2)]),
            ..Default::default()
        };
        let indexed = StepDone {
            primary: Operation::Index,
            operations: vec![insert, index],
            clients: vec![
                client(1, "insert", 1, 100, 0.0, 0.1),
                client(1, "index", 1, 45_000, 0.1, 2.1),
                client(2, "index", 1, 45_000, 0.6, 3.1),
            ],
            ..load
        };
        let indexed = values(&indexed, Ok(&[]));
        // From the first start to the last end: 3 s.
        assert!((indexed["ips"].value.unwrap() - 30_000.0).abs() < 1e-6);
        assert!((indexed["index_s"].value.unwrap() - 3.0).abs() < 1e-9);
        assert!(
            (indexed["maxop"].value.unwrap() - 0.001).abs() < 1e-6,
            "the longest insert, not the index creation"
        );
        assert!(
            indexed["p50_rate"]
                .unavailable
                .as_deref()
                .unwrap()
                .contains("no per-second rate")
        );
    }

    #[test]
    fn cpu_of_others_is_what_client_and_engine_did_not_use() {
        let answer = |readings: &[(HostReading, Result<f64, &str>)]| {
            let mut done = read_write_step();
            for (name, reading) in readings {
                done.host.put(*name, reading.map_err(str::to_owned));
            }
            let value = values(&done, Ok(&[])).remove("foreign_cpu_cores").unwrap();
            value.value.ok_or_else(|| value.unavailable.unwrap())
        };
        // 80 CPU seconds of the host in 20 s.
        let server = (HostReading::ProcessCpu, Err("processes of its own"));
        assert_eq!(answer(&[(HostReading::ProcessCpu, Ok(70.0))]), Ok(0.5));
        assert_eq!(
            answer(&[
                server,
                (HostReading::ClientCpu, Ok(10.0)),
                (HostReading::ServerCpu, Ok(40.0))
            ]),
            Ok(1.5)
        );
        assert_eq!(
            answer(&[server, (HostReading::ServerCpu, Err("it was restarted"))]),
            Err("it was restarted".to_owned())
        );
        assert_eq!(
            answer(&[(HostReading::ProcessCpu, Ok(80.1))]),
            Ok(0.0),
            "clocks differ by a little"
        );
        let embedded = [
            (HostReading::ProcessCpu, Err("no clock")),
            (HostReading::ClientCpu, Err("shared")),
            (HostReading::ServerCpu, Err("shared")),
        ];
        assert_eq!(answer(&embedded), Err("no clock".to_owned()));
        assert_eq!(
            answer(&[(HostReading::CpuSystem, Err("no /proc/stat"))]),
            Err("no /proc/stat".to_owned())
        );
    }

    /// Their CPU time stood for that of this machine, and as much of strangers went unseen.
    #[test]
    fn clients_elsewhere_hide_no_cpu_of_strangers_here() {
        let mut done = read_write_step();
        let server = Err("processes of its own".to_owned());
        done.host.put(HostReading::ProcessCpu, server);
        // Whoever watches the clients took 1 s here, and the clients 6 s and 3 s elsewhere.
        done.host.put(HostReading::ClientCpu, Ok(1.0));
        let host = |cpu_s| ClientHostRecord {
            cpu_s,
            ..ClientHostRecord::default()
        };
        done.client_hosts = vec![host(6.0), host(3.0)];
        let mut values = values(&done, Ok(&[]));
        let mut value = |name| values.remove(name).unwrap().value.unwrap();
        // 80 CPU seconds of the machine in 20 s, 30 of them the server's.
        assert!((value("foreign_cpu_cores") - 49.0 / 20.0).abs() < 1e-9);
        assert!((value("client_cpu_us_per_op") - 9.0e6 / 60_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_stalled_second_counts_as_zero() {
        let (done, series) = (read_write_step(), series());
        let stalled: Vec<OperationSecond> =
            series.into_iter().filter(|row| row.second != 7).collect();
        assert_eq!(values(&done, Ok(&stalled))["p99_rate"].value, Some(0.0));
    }

    #[test]
    fn a_step_without_any_operation_has_reasons_everywhere() {
        let empty = StepDone {
            primary: Operation::Query,
            ..Default::default()
        };
        for (name, value) in values(&empty, Err("no series")) {
            assert!(
                value.value.is_some() != value.unavailable.is_some(),
                "{name}"
            );
            assert!(
                value.value.is_none_or(|value| value == 0.0),
                "{name}: {value:?}"
            );
        }
    }

    #[test]
    fn reasons_travel_through_what_is_computed_from_them() {
        let mut done = read_write_step();
        done.host.put(
            HostReading::ContextSwitches,
            Reading::Unavailable("no /proc/stat".to_owned()),
        );
        let values = values(&done, Err("it has no 1-s series"));
        for name in ["csps", "cspq"] {
            assert_eq!(values[name].unavailable.as_deref(), Some("no /proc/stat"));
        }
        assert_eq!(
            values["p50_rate"].unavailable.as_deref(),
            Some("it has no 1-s series")
        );
    }
}
