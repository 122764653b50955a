//! The catalogue's formulas: from what a finished step recorded to every metric's value.

use hdrhistogram::Histogram;
use plimsoll_core::metric::{CATALOGUE, Metric};
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord, Pacing, Reading};
use plimsoll_store::OperationSecond;
use plimsoll_store::event::StepDone;

use crate::histogram;
use crate::value::{Answer, Measure};

const GIB: f64 = (1u64 << 30) as f64;
const MIB: f64 = (1u64 << 20) as f64;
const KIB: f64 = 1024.0;
const NS_PER_S: f64 = 1e9;

/// Fewer seconds than this give no percentile of per-second rates.
const LEAST_SECONDS: usize = 10;

/// One finished step of one trial.
pub(crate) struct Facts<'a> {
    pub done: &'a StepDone,
    /// The operations per second, client and kind, or why they cannot be read.
    pub series: Result<&'a [OperationSecond], &'a str>,
}

/// Every metric of the catalogue, in its order.
pub(crate) fn measure(facts: &Facts<'_>) -> Vec<Measure> {
    let latencies = Latencies::decode(facts);
    CATALOGUE.iter().map(|metric| Measure { metric, value: facts.answer(metric, &latencies).into() }).collect()
}

/// The decoded histograms of the step's operation.
struct Latencies {
    service: Result<Histogram<u64>, String>,
    response: Result<Histogram<u64>, String>,
    lag: Result<Histogram<u64>, String>,
}

impl Latencies {
    fn decode(facts: &Facts<'_>) -> Self {
        let read = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| {
            let encoded = pick(facts.primary()?).ok_or("closed loop: no response time")?;
            let histogram = histogram::decode(encoded)?;
            if histogram.is_empty() { Err("no operation was done".to_owned()) } else { Ok(histogram) }
        };
        Self {
            service: read(|operation| Some(&operation.service)),
            response: read(|operation| operation.response.as_ref()),
            lag: read(|operation| operation.lag.as_ref()),
        }
    }
}

fn quantile_us(histogram: &Result<Histogram<u64>, String>, quantile: f64) -> Answer {
    histogram.as_ref().map(|histogram| histogram.value_at_quantile(quantile) as f64 / 1e3).map_err(Clone::clone)
}

fn max_ns(histogram: &Result<Histogram<u64>, String>) -> Answer {
    histogram.as_ref().map(|histogram| histogram.max() as f64).map_err(Clone::clone)
}

fn ratio(value: f64, by: f64, nothing: &str) -> Answer {
    if by > 0.0 { Ok(value / by) } else { Err(nothing.to_owned()) }
}

/// Whether one operation of this kind counts as the rows it touched, and not as one.
pub(crate) fn counts_rows(kind: &str) -> bool {
    matches!(kind, "insert" | "delete" | "index")
}

impl Facts<'_> {
    fn answer(&self, metric: &Metric, latencies: &Latencies) -> Answer {
        match metric.name {
            "ips" => self.inserted_or_indexed_per_s(),
            "qps" => self.rate(if self.done.primary == "scan" { "scan" } else { "query" }, |client| client.ok),
            "dps" => self.rate("delete", |client| client.rows),
            "rps" => self.per_second("disk_reads"),
            "rmbps" => Ok(self.per_second("disk_read_bytes")? / MIB),
            "wps" => self.per_second("disk_writes"),
            "wmbps" => Ok(self.per_second("disk_write_bytes")? / MIB),
            "rpq" => self.per_operation(self.per_second("disk_reads")?),
            "rkbpq" => self.per_operation(self.per_second("disk_read_bytes")? / KIB),
            "wpi" => self.per_insert(self.per_second("disk_writes")?),
            "wkbpi" => self.per_insert(self.per_second("disk_write_bytes")? / KIB),
            "csps" => self.per_second("context_switches"),
            "cpups" => Ok(self.busy_cpus()? / self.reading("cpus")? * 100.0),
            "cspq" => self.per_operation(self.per_second("context_switches")?),
            "cpupq" => self.per_operation(self.busy_cpus()? * 1e6),
            "dbgb1" => Ok(self.reading("database_bytes")? / GIB),
            "dbgb2" => Ok(self.reading("data_dir_bytes")? / GIB),
            "rss" => Ok(self.reading("rss_max_bytes")? / GIB),
            "maxop" => Ok(max_ns(&latencies.service)? / NS_PER_S),
            "p50_rate" => self.rate_percentile(50),
            "p99_rate" => self.rate_percentile(99),
            "server_cpu_us_per_op" => self.cpu_us_per_operation("server_cpu_s"),
            "client_cpu_us_per_op" => self.cpu_us_per_operation("client_cpu_s"),
            "process_cpu_us_per_op" => self.cpu_us_per_operation("process_cpu_s"),
            "p50_service_us" => quantile_us(&latencies.service, 0.5),
            "p90_service_us" => quantile_us(&latencies.service, 0.9),
            "p99_service_us" => quantile_us(&latencies.service, 0.99),
            "p999_service_us" => quantile_us(&latencies.service, 0.999),
            "max_service_us" => Ok(max_ns(&latencies.service)? / 1e3),
            "p50_response_us" => quantile_us(&latencies.response, 0.5),
            "p90_response_us" => quantile_us(&latencies.response, 0.9),
            "p99_response_us" => quantile_us(&latencies.response, 0.99),
            "p999_response_us" => quantile_us(&latencies.response, 0.999),
            "max_response_us" => Ok(max_ns(&latencies.response)? / 1e3),
            "p50_lag_us" => quantile_us(&latencies.lag, 0.5),
            "p99_lag_us" => quantile_us(&latencies.lag, 0.99),
            "rate_share" => self.rate_share(),
            "seconds_under_rate" => self.seconds_under_rate(),
            "backlog" => self.backlog(),
            "wait_share" => self.wait_share(),
            "steal_share" => ratio(self.reading("cpu_steal_s")?, self.reading("cpu_total_s")?, "no CPU time was counted"),
            "psi_cpu_share" => self.per_second("psi_cpu_some_s"),
            "psi_io_share" => self.per_second("psi_io_some_s"),
            "psi_memory_share" => self.per_second("psi_memory_some_s"),
            other => Err(format!("this version does not compute {other}")),
        }
    }

    fn operation(&self, kind: &str) -> Option<&OperationRecord> {
        self.done.operations.iter().find(|operation| operation.kind == kind)
    }

    fn primary(&self) -> Result<&OperationRecord, String> {
        self.operation(&self.done.primary).ok_or_else(|| format!("the step recorded no {}", self.done.primary))
    }

    fn reading(&self, name: &str) -> Answer {
        match self.done.host.get(name) {
            Some(Reading::Ok(value)) => Ok(*value),
            Some(Reading::Unavailable(reason)) => Err(reason.clone()),
            None => Err(format!("{name} was not recorded")),
        }
    }

    fn per_second(&self, name: &str) -> Answer {
        ratio(self.reading(name)?, self.reading("seconds")?, "the step took no time")
    }

    /// CPUs kept busy by the whole host, on average.
    fn busy_cpus(&self) -> Answer {
        Ok(self.per_second("cpu_user_s")? + self.per_second("cpu_system_s")?)
    }

    fn clients(&self, kind: &str) -> impl Iterator<Item = &ClientRecord> {
        self.done.clients.iter().filter(move |client| client.kind == kind)
    }

    /// The sum over clients of what each did by its own active time. Zero where the step has no such operation.
    fn rate(&self, kind: &str, done: fn(&ClientRecord) -> u64) -> Answer {
        if self.clients(kind).next().is_none() && self.operation(kind).is_some_and(|operation| operation.ok > 0) {
            return Err(format!("no client's active time was recorded for {kind}"));
        }
        self.clients(kind).filter(|client| done(client) > 0).try_fold(0.0, |sum, client| {
            let active_s = client.to_ns.saturating_sub(client.from_ns) as f64 / NS_PER_S;
            let rate = ratio(done(client) as f64, active_s, "a client was active for no measurable time")?;
            Ok(sum + rate)
        })
    }

    fn inserted_or_indexed_per_s(&self) -> Answer {
        if self.done.primary != "index" {
            return self.rate("insert", |client| client.rows);
        }
        // Index creation is one statement per table: rows by the time from the first one's start to the last one's end.
        let rows = self.primary()?.rows as f64;
        let from_ns = self.clients("index").map(|client| client.from_ns).min();
        let to_ns = self.clients("index").map(|client| client.to_ns).max();
        let creation_ns = match (from_ns, to_ns) {
            (Some(from_ns), Some(to_ns)) => to_ns.saturating_sub(from_ns),
            _ => self.done.elapsed_ns,
        };
        ratio(rows, creation_ns as f64 / NS_PER_S, "index creation took no measurable time")
    }

    /// The rate of the step's operation.
    fn operation_rate(&self) -> Answer {
        match self.done.primary.as_str() {
            "insert" | "index" => self.inserted_or_indexed_per_s(),
            "query" | "scan" => self.rate(&self.done.primary, |client| client.ok),
            other => Err(format!("the rate of {other} is not defined")),
        }
    }

    fn per_operation(&self, per_s: f64) -> Answer {
        ratio(per_s, self.operation_rate()?, "no operation was done")
    }

    fn per_insert(&self, per_s: f64) -> Answer {
        ratio(per_s, self.inserted_or_indexed_per_s()?, "the step inserts nothing")
    }

    fn cpu_us_per_operation(&self, reading: &str) -> Answer {
        let primary = self.primary()?;
        let operations = if counts_rows(&primary.kind) { primary.rows } else { primary.ok };
        ratio(self.reading(reading)? * 1e6, operations as f64, "no operation was done")
    }

    /// Percentile of the per-second rates, by the original's rule: in descending order, the round(n/100 x seconds)-th.
    fn rate_percentile(&self, percent: usize) -> Answer {
        let kind = self.done.primary.as_str();
        if matches!(kind, "index" | "scan") {
            return Err(format!("one {kind} takes many seconds: it has no per-second rate"));
        }
        let series = self.series.map_err(str::to_owned)?;
        let from_ns = self.clients(kind).map(|client| client.from_ns).min().unwrap_or(0);
        let to_ns = self.clients(kind).map(|client| client.to_ns).max().unwrap_or(self.done.elapsed_ns);
        // Only whole seconds: the last, partial one is left out. A second in which nothing was done counts as zero.
        let seconds = (from_ns / 1_000_000_000)..(to_ns / 1_000_000_000);
        let mut rates = vec![0u64; (seconds.end.saturating_sub(seconds.start)) as usize];
        for row in series.iter().filter(|row| row.kind == kind && seconds.contains(&u64::from(row.second))) {
            rates[(u64::from(row.second) - seconds.start) as usize] += if counts_rows(kind) { row.rows } else { row.ok };
        }
        if rates.len() < LEAST_SECONDS {
            return Err(format!("{} whole seconds are too few: it takes {LEAST_SECONDS}", rates.len()));
        }
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let position = ((percent * rates.len()) as f64 / 100.0).round().max(1.0) as usize;
        Ok(rates[position - 1] as f64)
    }

    /// The writers that had a rate to keep.
    fn pacings(&self) -> Result<Vec<&Pacing>, String> {
        let pacings: Vec<&Pacing> = self.done.operations.iter().filter_map(|operation| operation.pacing.as_ref()).collect();
        if pacings.is_empty() { Err("closed loop: there is no rate to keep".to_owned()) } else { Ok(pacings) }
    }

    fn rate_share(&self) -> Answer {
        let shares = self.pacings()?.into_iter().map(|pacing| ratio(pacing.achieved_per_s, pacing.target_per_s, "the target is zero"));
        shares.reduce(|a, b| Ok(a?.min(b?))).unwrap_or_else(|| Err("there is no rate to keep".to_owned()))
    }

    fn seconds_under_rate(&self) -> Answer {
        let shares = self.pacings()?.into_iter().map(|pacing| {
            ratio(pacing.seconds_under as f64, pacing.seconds as f64, "the schedule was shorter than a second")
        });
        shares.reduce(|a, b| Ok(a?.max(b?))).unwrap_or_else(|| Err("there is no rate to keep".to_owned()))
    }

    fn backlog(&self) -> Answer {
        Ok(self.pacings()?.into_iter().map(|pacing| pacing.backlog).sum::<u64>() as f64)
    }

    fn wait_share(&self) -> Answer {
        let writers = || self.done.operations.iter().filter(|operation| matches!(operation.kind.as_str(), "insert" | "delete"));
        let wait_ns: u64 = writers().map(|writer| writer.wait_ns).sum();
        let worker_ns: u64 = writers().map(|writer| writer.worker_ns).sum();
        ratio(wait_ns as f64, worker_ns as f64, "the step has no writers")
    }
}
