//! The catalogue's formulas: from what a finished step recorded to every metric's value.

use hdrhistogram::Histogram;
use plimsoll_core::metric::{self, CATALOGUE, Metric};
use plimsoll_core::plan::{ALL_EVENTS, MULTIGET_KEYS, STATEMENT_NOTES, VAIN_STATEMENTS_NOTE};
use plimsoll_core::readings::HostReading;
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord, Pacing, TurnSums};
use plimsoll_core::rocksdb_report;
use plimsoll_core::rocksdb_stats::PRINTED_STALL_PCT;
use plimsoll_store::event::StepDone;
use plimsoll_store::{OperationSecond, Turn};

use crate::metrics::value::{Answer, Measure, Value};
use crate::runs::events::together;
use crate::runs::histogram;

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
    /// The turns of a step by slices, those for warming up left out; empty for every other step.
    pub turns: &'a [Turn],
}

/// Every metric of the catalogue, in its order; of a sysbench test those of its own.
pub(crate) fn measure(facts: &Facts<'_>) -> Vec<Measure> {
    if let Some((done, series)) = together(facts.done, facts.series) {
        return measure_one(&Facts {
            done: &done,
            series: series.as_deref().map_err(String::as_str),
            turns: facts.turns,
        });
    }
    measure_one(facts)
}

fn measure_one(facts: &Facts<'_>) -> Vec<Measure> {
    let latencies = Latencies::decode(facts);
    let answer = |metric: &'static Metric| {
        let is_lower_bound = latencies.is_lower_bound(metric.name);
        Measure {
            metric,
            value: Value {
                is_lower_bound,
                ..facts.answer(metric, &latencies).into()
            },
            classic: None,
        }
    };
    match facts.statements() {
        None if facts.is_of_rocksdb() => metric::of_rocksdb().map(answer).collect(),
        None => CATALOGUE.iter().map(answer).collect(),
        Some(_) => metric::of_sysbench().map(answer).collect(),
    }
}

/// The metrics of these names, without those that need a histogram or a series: what is read from
/// every campaign of a store must be cheap.
pub(crate) fn measure_cheaply(done: &StepDone, names: &[&str]) -> Vec<Measure> {
    let unread = || Err("it was not read".to_owned());
    let latencies = Latencies {
        service: unread(),
        response: unread(),
        lag: unread(),
        unsent: None,
    };
    let facts = Facts {
        done,
        series: Err("it was not read"),
        turns: &[],
    };
    let find = |name: &&str| match facts.statements() {
        None if facts.is_of_rocksdb() => metric::find_of_rocksdb(name),
        None => metric::find(name),
        Some(_) => metric::find_of_sysbench(name),
    };
    let metrics = names.iter().filter_map(find);
    metrics
        .map(|metric| Measure {
            metric,
            value: facts.answer(metric, &latencies).into(),
            classic: None,
        })
        .collect()
}

/// Statements per second of a sysbench test as sysbench counts them, with those of tries that were
/// refused or failed; `rate` is without them.
pub(crate) fn classic_rate(done: &StepDone, rate: Option<f64>) -> Option<f64> {
    let facts = Facts {
        done,
        series: Err("it was not read"),
        turns: &[],
    };
    let statements = facts.statements().filter(|_| facts.scan_rows().is_err())?;
    let in_vain = done.notes.get(VAIN_STATEMENTS_NOTE).copied().unwrap_or(0.0);
    Some(rate? * ratio(statements + in_vain, statements, "no statement was done").ok()?)
}

/// The decoded histograms of the step's operation.
struct Latencies {
    service: Result<Histogram<u64>, String>,
    response: Result<Histogram<u64>, String>,
    lag: Result<Histogram<u64>, String>,
    /// Of the operations that were due and never sent; these are in response and lag.
    unsent: Option<Histogram<u64>>,
}

impl Latencies {
    /// Whether a metric of response times or lag is the least that it may be.
    fn is_lower_bound(&self, name: &str) -> bool {
        let of = |histogram: &Result<Histogram<u64>, String>, quantile| {
            histogram.as_ref().is_ok_and(|histogram| {
                histogram::is_lower_bound(histogram, self.unsent.as_ref(), quantile)
            })
        };
        match name {
            "p50_response_us" => of(&self.response, 0.5),
            "p90_response_us" => of(&self.response, 0.9),
            "p99_response_us" => of(&self.response, 0.99),
            "p999_response_us" => of(&self.response, 0.999),
            "max_response_us" => of(&self.response, 1.0),
            "p50_lag_us" => of(&self.lag, 0.5),
            "p99_lag_us" => of(&self.lag, 0.99),
            _ => false,
        }
    }

    fn decode(facts: &Facts<'_>) -> Self {
        let read = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| {
            let encoded = pick(facts.primary()?).ok_or("closed loop: no response time")?;
            let histogram = histogram::decode(encoded)?;
            if histogram.is_empty() {
                Err("no operation was done".to_owned())
            } else {
                Ok(histogram)
            }
        };
        Self {
            service: read(|operation| Some(&operation.service)),
            response: read(|operation| operation.response.as_ref()),
            lag: read(|operation| operation.lag.as_ref()),
            unsent: read(|operation| operation.unsent_response.as_ref()).ok(),
        }
    }
}

fn quantile_us(histogram: &Result<Histogram<u64>, String>, quantile: f64) -> Answer {
    histogram
        .as_ref()
        .map(|histogram| histogram.value_at_quantile(quantile) as f64 / 1e3)
        .map_err(Clone::clone)
}

fn max_ns(histogram: &Result<Histogram<u64>, String>) -> Answer {
    histogram
        .as_ref()
        .map(|histogram| histogram.max() as f64)
        .map_err(Clone::clone)
}

fn mean_ns(histogram: &Result<Histogram<u64>, String>) -> Answer {
    histogram
        .as_ref()
        .map(Histogram::mean)
        .map_err(Clone::clone)
}

fn ratio(value: f64, by: f64, nothing: &str) -> Answer {
    if by > 0.0 {
        Ok(value / by)
    } else {
        Err(nothing.to_owned())
    }
}

/// Whether one operation of this kind counts as the rows it touched, and not as one.
pub(crate) fn counts_rows(kind: &str) -> bool {
    matches!(kind, "insert" | "delete" | "index")
}

impl Facts<'_> {
    fn answer(&self, metric: &Metric, latencies: &Latencies) -> Answer {
        // What db_bench printed stands as printed.
        if let Some(printed) = self.printed(metric.name) {
            return Ok(printed);
        }
        match metric.name {
            "ips" => self.inserted_or_indexed_per_s(),
            "qps" if self.statements().is_some() => self.statements_per_s(),
            "qps" if self.is_of_rocksdb() => self.operation_rate(),
            "reads_per_s" if self.done.primary == "put" => Err("the step reads nothing".to_owned()),
            "reads_per_s" => self.operation_rate(),
            "writes_per_s" if self.is_of_db_bench() && self.operation("put").is_none() => {
                Err("db_bench does not report the writes that run during reads".to_owned())
            }
            "writes_per_s" if self.operation("put").is_none() => {
                Err("the step writes nothing".to_owned())
            }
            "writes_per_s" => self.rate("put", |client| client.ok),
            "mb_sec" => self.mib_per_s(),
            "usec_op" => ratio(
                self.primary()?.worker_ns as f64 / 1e3,
                self.operations()?,
                "no operation was done",
            ),
            "found_ratio" => self.found_ratio(),
            "user_cpu_s" => self.reading(HostReading::OwnUser),
            "system_cpu_s" => self.reading(HostReading::OwnSystem),
            "space_amp" => self.space_amplification(),
            "stall_pct" => self.stall_pct(),
            "lsm_gb" | "blob_gb" | "c_wgb" | "w_amp" | "w_amp_sum" | "c_mbps" | "c_wsecs"
            | "c_csecs" | "b_rgb" | "b_wgb" | "uptime_s" | "n_stall" => self.statistic(metric.name),
            "p9999_service_us" => quantile_us(&latencies.service, 0.9999),
            "tps" => self.rate(&self.done.primary, |client| client.ok),
            "krps" => Ok(self.scan_rows()? / (mean_ns(&latencies.service)? / 1e6)),
            "hit_ratio" => self
                .done
                .notes
                .get("delete_hit_ratio")
                .copied()
                .ok_or_else(|| "it is not a test of deletes".to_owned()),
            "wpq" => self.per_operation(self.per_second(HostReading::DiskWrites)?),
            "wkbpq" => self.per_operation(self.per_second(HostReading::DiskWriteBytes)? / KIB),
            "mean_service_us" => Ok(mean_ns(&latencies.service)? / 1e3),
            "p95_service_us" => quantile_us(&latencies.service, 0.95),
            "qps" => self.rate(
                if self.done.primary == "scan" {
                    "scan"
                } else {
                    "query"
                },
                |client| client.ok,
            ),
            "dps" => self.rate("delete", |client| client.rows),
            "rps" => self.per_second(HostReading::DiskReads),
            "rmbps" => Ok(self.per_second(HostReading::DiskReadBytes)? / MIB),
            "wps" => self.per_second(HostReading::DiskWrites),
            "wmbps" => Ok(self.per_second(HostReading::DiskWriteBytes)? / MIB),
            "rpq" => self.per_operation(self.per_second(HostReading::DiskReads)?),
            "rkbpq" => self.per_operation(self.per_second(HostReading::DiskReadBytes)? / KIB),
            "wpi" => self.per_insert(self.per_second(HostReading::DiskWrites)?),
            "wkbpi" => self.per_insert(self.per_second(HostReading::DiskWriteBytes)? / KIB),
            "csps" => self.per_second(HostReading::ContextSwitches),
            "cpups" => Ok(self.busy_cpus()? / self.reading(HostReading::Cpus)? * 100.0),
            "cspq" => self.per_operation(self.per_second(HostReading::ContextSwitches)?),
            "cpupq" => self.per_operation(self.busy_cpus()? * 1e6),
            "dbgb1" => Ok(self.reading(HostReading::Database)? / GIB),
            "dbgb2" => Ok(self.reading(HostReading::DataDir)? / GIB),
            "rss" => Ok(self.reading(HostReading::RssMax)? / GIB),
            "maxop" => self.longest_operation_s(latencies),
            "index_s" => self.index_creation_s(),
            "p50_rate" => self.rate_percentile(50),
            "p99_rate" => self.rate_percentile(99),
            "server_cpu_us_per_op" => self.cpu_us_per_operation(HostReading::ServerCpu),
            "client_cpu_us_per_op" => self.cpu_us_per_operation(HostReading::ClientCpu),
            "process_cpu_us_per_op" => self.cpu_us_per_operation(HostReading::ProcessCpu),
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
            "excluded_wait_s" if self.is_of_db_bench() => {
                Err("db_bench does not report it".to_owned())
            }
            "excluded_wait_s" => Ok(self.primary()?.wait_ns as f64 / NS_PER_S),
            "steal_share" => ratio(
                self.reading(HostReading::CpuSteal)?,
                self.reading(HostReading::CpuTotal)?,
                "no CPU time was counted",
            ),
            "foreign_cpu_cores" => self.foreign_cpu_cores(),
            "psi_cpu_share" => self.per_second(HostReading::PsiCpuSome),
            "psi_io_share" => self.per_second(HostReading::PsiIoSome),
            "psi_memory_share" => self.per_second(HostReading::PsiMemorySome),
            other => Err(format!("this version does not compute {other}")),
        }
    }

    /// In the index step the original looks at the inserts before it.
    fn longest_operation_s(&self, latencies: &Latencies) -> Answer {
        if self.done.primary != "index" {
            return Ok(max_ns(&latencies.service)? / NS_PER_S);
        }
        let inserts = self
            .operation("insert")
            .ok_or("the step recorded no insert")?;
        Ok(histogram::decode(&inserts.service)?.max() as f64 / NS_PER_S)
    }

    fn operation(&self, kind: &str) -> Option<&OperationRecord> {
        self.done
            .operations
            .iter()
            .find(|operation| operation.kind == kind)
    }

    fn primary(&self) -> Result<&OperationRecord, String> {
        self.operation(&self.done.primary)
            .ok_or_else(|| format!("the step recorded no {}", self.done.primary))
    }

    fn reading(&self, name: HostReading) -> Answer {
        self.done.host.answer(name)
    }

    fn per_second(&self, name: HostReading) -> Answer {
        ratio(
            self.reading(name)?,
            self.reading(HostReading::Seconds)?,
            "the step took no time",
        )
    }

    /// CPUs kept busy by the whole host, on average.
    fn busy_cpus(&self) -> Answer {
        Ok(self.per_second(HostReading::CpuUser)? + self.per_second(HostReading::CpuSystem)?)
    }

    /// CPUs kept busy by others than the client and the engine. Ticks and process clocks differ by
    /// a little, so the difference can fall below 0.
    fn foreign_cpu_cores(&self) -> Answer {
        Ok((self.busy_cpus()?
            - ratio(
                self.done.host.cpu()?.total(),
                self.reading(HostReading::Seconds)?,
                "the step took no time",
            )?)
        .max(0.0))
    }

    fn clients(&self, kind: &str) -> impl Iterator<Item = &ClientRecord> {
        self.done
            .clients
            .iter()
            .filter(move |client| client.kind == kind)
    }

    /// The sum over clients of what each did by its own active time. Zero where the step has no
    /// such operation. By slices the step's own operation has the rate of the turns, as verdicts
    /// have: the clients' time has turns for warming up in it.
    fn rate(&self, kind: &str, done: fn(&ClientRecord) -> u64) -> Answer {
        let whole = self.rate_of_clients(kind, done)?;
        if kind != self.done.primary || self.turns.is_empty() {
            return Ok(whole);
        }
        let of_turns = self.rate_of_turns(kind)?;
        Ok(whole
            * ratio(
                of_turns,
                self.rate_of_clients(kind, |client| client.ok)?,
                "no operation was done",
            )?)
    }

    /// Operations per second over all turns: of each worker the ratio of its sums, and the sum of
    /// these.
    fn rate_of_turns(&self, kind: &str) -> Answer {
        let by_worker: Vec<TurnSums> = self
            .clients(kind)
            .filter_map(|client| client.turns)
            .collect();
        if by_worker.is_empty() {
            // A campaign before methodology version 8.
            let active_s = self.sum_of_turns(|turn| turn.active_ns) / NS_PER_S;
            return ratio(
                self.sum_of_turns(|turn| turn.operations),
                active_s,
                "no turn took any time",
            );
        }
        let rate = |sums: &TurnSums| sums.operations as f64 * NS_PER_S / sums.active_ns as f64;
        let total: f64 = by_worker
            .iter()
            .filter(|sums| sums.active_ns > 0)
            .map(rate)
            .sum();
        if total > 0.0 {
            Ok(total)
        } else {
            Err("no turn took any time".to_owned())
        }
    }

    fn sum_of_turns(&self, of: fn(&Turn) -> u64) -> f64 {
        self.turns.iter().map(of).sum::<u64>() as f64
    }

    fn rate_of_clients(&self, kind: &str, done: fn(&ClientRecord) -> u64) -> Answer {
        if self.clients(kind).next().is_none()
            && self
                .operation(kind)
                .is_some_and(|operation| operation.ok > 0)
        {
            return Err(format!("no client's active time was recorded for {kind}"));
        }
        self.clients(kind)
            .filter(|client| done(client) > 0)
            .try_fold(0.0, |sum, client| {
                let active_s = client.to_ns.saturating_sub(client.from_ns) as f64 / NS_PER_S;
                let rate = ratio(
                    done(client) as f64,
                    active_s,
                    "a client was active for no measurable time",
                )?;
                Ok(sum + rate)
            })
    }

    fn inserted_or_indexed_per_s(&self) -> Answer {
        if self.done.primary != "index" {
            return self.rate("insert", |client| client.rows);
        }
        // Index creation is one statement per table: rows by the time from the first one's start to
        // the last one's end.
        ratio(
            self.primary()?.rows as f64,
            self.index_creation_s()?,
            "index creation took no measurable time",
        )
    }

    fn index_creation_s(&self) -> Answer {
        if self.done.primary != "index" {
            return Err("the step creates no index".to_owned());
        }
        let from_ns = self.clients("index").map(|client| client.from_ns).min();
        let to_ns = self.clients("index").map(|client| client.to_ns).max();
        let creation_ns = match (from_ns, to_ns) {
            (Some(from_ns), Some(to_ns)) => to_ns.saturating_sub(from_ns),
            _ => self.done.elapsed_ns,
        };
        Ok(creation_ns as f64 / NS_PER_S)
    }

    fn is_of_rocksdb(&self) -> bool {
        rocksdb_report::OPERATIONS.contains(&self.done.primary.as_str())
    }

    fn is_of_db_bench(&self) -> bool {
        self.done
            .notes
            .contains_key(rocksdb_report::DRIVEN_BY_DB_BENCH)
    }

    fn printed(&self, name: &str) -> Option<f64> {
        if !self.is_of_db_bench() {
            return None;
        }
        self.done
            .notes
            .get(&format!("{}{name}", rocksdb_report::PRINTED))
            .copied()
    }

    /// Keys that an operation asks for or writes; of a range only the one that it begins at.
    fn keys_per_operation(&self) -> f64 {
        if self.done.primary == "multiget" {
            f64::from(MULTIGET_KEYS)
        } else {
            1.0
        }
    }

    /// Bytes of keys and values that the step's own operations wrote or found.
    fn mib_per_s(&self) -> Answer {
        let bytes = self
            .done
            .notes
            .get("operation_bytes")
            .copied()
            .ok_or("the step did not note the bytes of its operations")?;
        let per_operation = ratio(bytes, self.primary()?.ok as f64, "no operation was done")?;
        Ok(self.rate(&self.done.primary, |client| client.ok)? * per_operation / MIB)
    }

    fn found_ratio(&self) -> Answer {
        let nothing = if self.done.primary == "put" {
            "the step reads nothing"
        } else {
            "the step did not note what it found"
        };
        self.done
            .notes
            .get("found_ratio")
            .copied()
            .ok_or_else(|| nothing.to_owned())
    }

    fn space_amplification(&self) -> Answer {
        let logical = self
            .done
            .notes
            .get(rocksdb_report::LOGICAL_BYTES)
            .copied()
            .ok_or("the step did not note its logical size")?;
        ratio(
            self.reading(HostReading::Database)?,
            logical,
            "the step holds no keys",
        )
    }

    /// What RocksDB's statistics said at the end of the step.
    fn statistic(&self, name: &str) -> Answer {
        self.done
            .notes
            .get(name)
            .copied()
            .ok_or_else(|| "the statistics of RocksDB did not say it".to_owned())
    }

    fn stall_pct(&self) -> Answer {
        self.statistic("stall_pct")
            .map_err(|reason| match self.done.notes.get(PRINTED_STALL_PCT) {
                Some(printed) => format!("RocksDB said {printed} %, which cannot be"),
                None => reason,
            })
    }

    /// Statements of a sysbench test, as sysbench counts them.
    fn statements(&self) -> Option<f64> {
        STATEMENT_NOTES
            .iter()
            .map(|name| self.done.notes.get(*name).copied())
            .sum()
    }

    fn statements_per_s(&self) -> Answer {
        let transactions = self.primary()?.ok as f64;
        let statements = self.statements().ok_or("the step counted no statements")?;
        Ok(self.rate(&self.done.primary, |client| client.ok)?
            * ratio(statements, transactions, "no operation was done")?)
    }

    /// Rows that one scan looks at.
    fn scan_rows(&self) -> Answer {
        self.done
            .notes
            .get("rows_per_scan")
            .copied()
            .ok_or_else(|| "the step scans no table".to_owned())
    }

    /// Operations of the step, as metrics per operation count them.
    fn operations(&self) -> Answer {
        let primary = self.primary()?;
        Ok(match (self.statements(), self.scan_rows()) {
            (Some(_), Ok(rows)) => primary.ok as f64 * rows / 1e3,
            (Some(statements), Err(_)) => statements,
            (None, _) if self.is_of_rocksdb() => primary.ok as f64 * self.keys_per_operation(),
            (None, _) if counts_rows(&primary.kind) => primary.rows as f64,
            (None, _) => primary.ok as f64,
        })
    }

    /// The rate of the step's operation.
    fn operation_rate(&self) -> Answer {
        match self.done.primary.as_str() {
            primary @ ("transaction" | "scan" | ALL_EVENTS) if self.statements().is_some() => {
                let done = self.primary()?.ok as f64;
                Ok(self.rate(primary, |client| client.ok)?
                    * ratio(self.operations()?, done, "no operation was done")?)
            }
            "insert" | "index" => self.inserted_or_indexed_per_s(),
            "query" | "scan" => self.rate(&self.done.primary, |client| client.ok),
            primary if self.is_of_rocksdb() => {
                Ok(self.rate(primary, |client| client.ok)? * self.keys_per_operation())
            }
            other => Err(format!("the rate of {other} is not defined")),
        }
    }

    fn per_operation(&self, per_s: f64) -> Answer {
        ratio(per_s, self.operation_rate()?, "no operation was done")
    }

    fn per_insert(&self, per_s: f64) -> Answer {
        ratio(
            per_s,
            self.inserted_or_indexed_per_s()?,
            "the step inserts nothing",
        )
    }

    fn cpu_us_per_operation(&self, reading: HostReading) -> Answer {
        let operations = self.operations()?;
        let whole = ratio(
            self.reading(reading)? * 1e6,
            operations,
            "no operation was done",
        )?;
        let of_turn = if reading == HostReading::ClientCpu {
            |turn: &Turn| turn.client_cpu_ns
        } else {
            |turn: &Turn| turn.server_cpu_ns
        };
        let Some(cpu_ns) = self
            .turns
            .iter()
            .map(of_turn)
            .sum::<Option<u64>>()
            .filter(|_| !self.turns.is_empty())
        else {
            return Ok(whole);
        };
        // An operation of a turn may count as several, or as a share of one.
        let per_turn_operation = ratio(
            operations,
            self.primary()?.ok as f64,
            "no operation was done",
        )?;
        let done = self.sum_of_turns(|turn| turn.operations) * per_turn_operation;
        ratio(cpu_ns as f64 / 1e3, done, "no operation was done")
    }

    /// Percentile of the per-second rates, by the original's rule: in descending order, the
    /// round(n/100 x seconds)-th.
    fn rate_percentile(&self, percent: usize) -> Answer {
        let kind = self.done.primary.as_str();
        if matches!(kind, "index" | "scan") {
            return Err(format!(
                "one {kind} takes many seconds: it has no per-second rate"
            ));
        }
        let series = self.series.map_err(str::to_owned)?;
        let from_ns = self
            .clients(kind)
            .map(|client| client.from_ns)
            .min()
            .unwrap_or(0);
        let to_ns = self
            .clients(kind)
            .map(|client| client.to_ns)
            .max()
            .unwrap_or(self.done.elapsed_ns);
        // Only whole seconds: the last, partial one is left out. A second in which nothing was done
        // counts as zero.
        let seconds = (from_ns / 1_000_000_000)..(to_ns / 1_000_000_000);
        let mut rates = vec![0u64; (seconds.end.saturating_sub(seconds.start)) as usize];
        for row in series
            .iter()
            .filter(|row| row.kind == kind && seconds.contains(&u64::from(row.second)))
        {
            rates[(u64::from(row.second) - seconds.start) as usize] +=
                if counts_rows(kind) { row.rows } else { row.ok };
        }
        if rates.len() < LEAST_SECONDS {
            return Err(format!(
                "{} whole seconds are too few: it takes {LEAST_SECONDS}",
                rates.len()
            ));
        }
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let position = ((percent * rates.len()) as f64 / 100.0).round().max(1.0) as usize;
        Ok(rates[position - 1] as f64)
    }

    /// The writers that had a rate to keep.
    fn pacings(&self) -> Result<Vec<&Pacing>, String> {
        let pacings: Vec<&Pacing> = self
            .done
            .operations
            .iter()
            .filter_map(|operation| operation.pacing.as_ref())
            .collect();
        if pacings.is_empty() {
            Err("closed loop: there is no rate to keep".to_owned())
        } else {
            Ok(pacings)
        }
    }

    fn rate_share(&self) -> Answer {
        let shares = self.pacings()?.into_iter().map(|pacing| {
            ratio(
                pacing.achieved_per_s,
                pacing.target_per_s,
                "the target is zero",
            )
        });
        shares
            .reduce(|a, b| Ok(a?.min(b?)))
            .unwrap_or_else(|| Err("there is no rate to keep".to_owned()))
    }

    fn seconds_under_rate(&self) -> Answer {
        let shares = self.pacings()?.into_iter().map(|pacing| {
            ratio(
                pacing.seconds_under as f64,
                pacing.seconds as f64,
                "the schedule was shorter than a second",
            )
        });
        shares
            .reduce(|a, b| Ok(a?.max(b?)))
            .unwrap_or_else(|| Err("there is no rate to keep".to_owned()))
    }

    fn backlog(&self) -> Answer {
        Ok(self
            .pacings()?
            .into_iter()
            .map(|pacing| pacing.backlog)
            .sum::<u64>() as f64)
    }

    fn wait_share(&self) -> Answer {
        let writers = || {
            self.done
                .operations
                .iter()
                .filter(|operation| matches!(operation.kind.as_str(), "insert" | "delete"))
        };
        let wait_ns: u64 = writers().map(|writer| writer.wait_ns).sum();
        let worker_ns: u64 = writers().map(|writer| writer.worker_ns).sum();
        ratio(wait_ns as f64, worker_ns as f64, "the step has no writers")
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::readings::{Reading, Readings};

    use super::*;
    use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
    use std::collections::BTreeMap;

    fn encoded(values_ns: &[(u64, u64)]) -> EncodedHistogram {
        use base64::Engine as _;
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for (value, count) in values_ns {
            histogram.record_n(*value, *count).unwrap();
        }
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&histogram, &mut bytes)
            .unwrap();
        EncodedHistogram(base64::engine::general_purpose::STANDARD.encode(bytes))
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
            primary: "query".to_owned(),
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
        measure(&Facts {
            done,
            series,
            turns: &[],
        })
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
            let reason = if name == "index_s" {
                "the step creates no index"
            } else {
                "closed loop: no response time"
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
            primary: "transaction".to_owned(),
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
        let of_turns = measure(&Facts {
            done: &done,
            series: Ok(&[]),
            turns: &turns,
        });
        let qps = of_turns
            .iter()
            .find(|measure| measure.metric.name == "qps")
            .unwrap()
            .value
            .value
            .unwrap();
        assert_eq!(qps, 200.0 * 2.0 * STATEMENT_NOTES.len() as f64);
        assert_eq!(
            classic_rate(&done, Some(qps)),
            Some(qps),
            "nothing was in vain"
        );
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
            primary: "insert".to_owned(),
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
            primary: "index".to_owned(),
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
            primary: "query".to_owned(),
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
    fn every_metric_of_the_catalogue_has_its_formula() {
        let done = read_write_step();
        for (name, value) in values(&done, Ok(&[])) {
            assert!(
                !value
                    .unavailable
                    .unwrap_or_default()
                    .contains("does not compute"),
                "{name}"
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
