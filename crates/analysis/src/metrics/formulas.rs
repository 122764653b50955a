//! The formulas that take more than a line; the catalogue names them.

use plimsoll_core::plan::Operation;
use plimsoll_core::readings::HostReading;
use plimsoll_core::record::Pacing;
use plimsoll_core::rocksdb_report;
use plimsoll_core::rocksdb_stats::PRINTED_STALL_PCT;
use plimsoll_core::units::{BYTES_PER_KIB, BYTES_PER_MIB, NS_PER_S};
use plimsoll_store::Turn;

use super::facts::{Facts, LONGEST_STEP_S, counts_rows, ratio};
use super::value::Answer;
use crate::latencies::{Clock, Latencies};

/// Fewer seconds than this give no percentile of per-second rates.
const LEAST_SECONDS: usize = 10;

fn mean_rate(seconds: &[u64]) -> f64 {
    seconds.iter().sum::<u64>() as f64 / seconds.len().max(1) as f64
}

impl Facts<'_> {
    /// Scans of a scan step, queries of every other.
    pub(super) fn queries_per_s(&self) -> Answer {
        let kind = match self.done.primary {
            Operation::Scan => Operation::Scan,
            _ => Operation::Query,
        };
        self.rate(kind, |client| client.ok)
    }

    pub(super) fn operations_per_s(&self) -> Answer {
        self.rate(self.done.primary, |client| client.ok)
    }

    pub(super) fn reads_per_s(&self) -> Answer {
        if self.done.primary == Operation::Put {
            return Err("the step reads nothing".to_owned());
        }
        self.operation_rate()
    }

    pub(super) fn writes_per_s(&self) -> Answer {
        if self.operation(Operation::Put).is_some() {
            return self.rate(Operation::Put, |client| client.ok);
        }
        Err(if self.is_of_db_bench() {
            "db_bench does not report the writes that run during reads".to_owned()
        } else {
            "the step writes nothing".to_owned()
        })
    }

    pub(super) fn thread_us_per_operation(&self) -> Answer {
        let worker_us = self.primary()?.worker_ns as f64 / 1e3;
        ratio(worker_us, self.operations()?, "no operation was done")
    }

    pub(super) fn mean_service_ns(&self) -> Answer {
        self.latencies.mean_service_ns()
    }

    pub(super) fn excluded_wait_s(&self) -> Answer {
        if self.is_of_db_bench() {
            return Err("db_bench does not report it".to_owned());
        }
        Ok(self.primary()?.wait_ns as f64 / NS_PER_S)
    }

    pub(super) fn steal_share(&self) -> Answer {
        ratio(
            self.reading(HostReading::CpuSteal)?,
            self.reading(HostReading::CpuTotal)?,
            "no CPU time was counted",
        )
    }

    /// In the index step the original looks at the inserts before it.
    pub(super) fn longest_operation_s(&self) -> Answer {
        if self.done.primary != Operation::Index {
            return longest_s(&self.latencies);
        }
        let inserts = self
            .operation(Operation::Insert)
            .ok_or("the step recorded no insert")?;
        longest_s(&Latencies::of(std::iter::once(inserts)))
    }

    /// Bytes of keys and values that the step's own operations wrote or found.
    pub(super) fn mib_per_s(&self) -> Answer {
        let nothing = "the step did not note the bytes of its operations";
        let bytes = self.note("operation_bytes", nothing)?;
        let per_operation = ratio(bytes, self.primary()?.ok as f64, "no operation was done")?;
        Ok(self.operations_per_s()? * per_operation / BYTES_PER_MIB)
    }

    pub(super) fn found_ratio(&self) -> Answer {
        let nothing = if self.done.primary == Operation::Put {
            "the step reads nothing"
        } else {
            "the step did not note what it found"
        };
        self.note("found_ratio", nothing)
    }

    pub(super) fn space_amplification(&self) -> Answer {
        let nothing = "the step did not note its logical size";
        let logical = self.note(rocksdb_report::LOGICAL_BYTES, nothing)?;
        ratio(
            self.reading(HostReading::Database)?,
            logical,
            "the step holds no keys",
        )
    }

    /// What RocksDB's statistics said at the end of the step.
    pub(super) fn statistic(&self, name: &str) -> Answer {
        self.note(name, "the statistics of RocksDB did not say it")
    }

    pub(super) fn stall_pct(&self) -> Answer {
        self.statistic("stall_pct")
            .map_err(|reason| match self.done.notes.get(PRINTED_STALL_PCT) {
                Some(printed) => format!("RocksDB said {printed} %, which cannot be"),
                None => reason,
            })
    }

    /// CPUs kept busy by the whole host, on average.
    pub(super) fn busy_cpus(&self) -> Answer {
        Ok(self.per_second(HostReading::CpuUser)? + self.per_second(HostReading::CpuSystem)?)
    }

    /// CPUs kept busy by others than the client and the engine. Ticks and process clocks differ by
    /// a little, so the difference can fall below 0.
    pub(super) fn foreign_cpu_cores(&self) -> Answer {
        Ok((self.busy_cpus()?
            - ratio(
                self.done.host.cpu()?.total(),
                self.reading(HostReading::Seconds)?,
                "the step took no time",
            )?)
        .max(0.0))
    }

    pub(super) fn inserted_or_indexed_per_s(&self) -> Answer {
        if self.done.primary != Operation::Index {
            return self.rate(Operation::Insert, |client| client.rows);
        }
        // Index creation is one statement per table: rows by the time from the first one's start to
        // the last one's end.
        ratio(
            self.primary()?.rows as f64,
            self.index_creation_s()?,
            "index creation took no measurable time",
        )
    }

    pub(super) fn index_creation_s(&self) -> Answer {
        if self.done.primary != Operation::Index {
            return Err("the step creates no index".to_owned());
        }
        let from_ns = self
            .clients(Operation::Index)
            .map(|client| client.from_ns)
            .min();
        let to_ns = self
            .clients(Operation::Index)
            .map(|client| client.to_ns)
            .max();
        let creation_ns = match (from_ns, to_ns) {
            (Some(from_ns), Some(to_ns)) => to_ns.saturating_sub(from_ns),
            _ => self.done.elapsed_ns,
        };
        Ok(creation_ns as f64 / NS_PER_S)
    }

    pub(super) fn statements_per_s(&self) -> Answer {
        let transactions = self.primary()?.ok as f64;
        let statements = self.counted_statements()?;
        Ok(self.rate(self.done.primary, |client| client.ok)?
            * ratio(statements, transactions, "no operation was done")?)
    }

    /// Clients on other hosts took their CPU time there: what the server's machine read is that of
    /// whoever watched them.
    pub(super) fn cpu_us_per_operation(&self, reading: HostReading) -> Answer {
        let operations = self.operations()?;
        let hosts = &self.done.client_hosts;
        let cpu_s = match reading {
            HostReading::ClientCpu if !hosts.is_empty() => {
                hosts.iter().map(|host| host.cpu_s).sum()
            }
            _ => self.reading(reading)?,
        };
        let whole = ratio(cpu_s * 1e6, operations, "no operation was done")?;
        let of_turn = if reading == HostReading::ClientCpu {
            |turn: &Turn| turn.client_cpu_ns
        } else {
            |turn: &Turn| turn.server_cpu_ns
        };
        let Some(cpu_ns) = self.known_sum_of_turns(of_turn) else {
            return Ok(whole);
        };
        let done = self.sum_of_turns(|turn| turn.operations) * self.per_turn_operation()?;
        ratio(cpu_ns / 1e3, done, "no operation was done")
    }

    /// An operation of a turn may count as several, or as a share of one.
    fn per_turn_operation(&self) -> Answer {
        ratio(
            self.operations()?,
            self.primary()?.ok as f64,
            "no operation was done",
        )
    }

    /// Counters of the server's processes, added up. By slices they cover the recorded turns from
    /// the first to the last, discarded parts included.
    pub(super) fn server_per_operation(&self, counters: &[HostReading]) -> Answer {
        let counted = counters
            .iter()
            .map(|counter| self.reading(*counter))
            .sum::<Result<f64, String>>()?;
        let done = if self.has_turns() {
            let of_turns = self
                .known_sum_of_turns(|turn| turn.all_operations)
                .ok_or("the operations of its turns were not read")?;
            of_turns * self.per_turn_operation()?
        } else {
            self.operations()?
        };
        ratio(counted, done, "no operation was done")
    }

    pub(super) fn server_kib_per_operation(&self, bytes: HostReading) -> Answer {
        Ok(self.server_per_operation(&[bytes])? / BYTES_PER_KIB)
    }

    /// Percentile of the per-second rates, by the original's rule: in descending order, the
    /// round(n/100 x seconds)-th.
    pub(super) fn rate_percentile(&self, percent: usize) -> Answer {
        let mut rates = self.rates_of_seconds()?;
        rates.sort_unstable_by(|a, b| b.cmp(a));
        let position = ((percent * rates.len()) as f64 / 100.0).round().max(1.0) as usize;
        Ok(rates[position - 1] as f64)
    }

    /// The mean rate of the last half of the seconds.
    pub(super) fn sustained_rate(&self) -> Answer {
        let rates = self.rates_of_seconds()?;
        Ok(mean_rate(&rates[rates.len() / 2..]))
    }

    /// The rate of the last quarter of the seconds by that of the quarter before it.
    pub(super) fn sustained_slope(&self) -> Answer {
        let rates = self.rates_of_seconds()?;
        let quarter = rates.len() / 4;
        let (before, last) = rates[rates.len() - 2 * quarter..].split_at(quarter);
        let nothing = "nothing was done in the third quarter";
        ratio(mean_rate(last), mean_rate(before), nothing)
    }

    /// What all clients did in each second. Only whole seconds: the last, partial one is left out. A
    /// second in which nothing was done counts as zero.
    fn rates_of_seconds(&self) -> Result<Vec<u64>, String> {
        let kind = self.done.primary;
        if matches!(kind, Operation::Index | Operation::Scan) {
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
        let seconds = (from_ns / 1_000_000_000)..(to_ns / 1_000_000_000);
        let length = seconds.end.saturating_sub(seconds.start);
        if length > LONGEST_STEP_S {
            return Err(format!("a step of {length} s is not read second by second"));
        }
        let mut rates = vec![0u64; length as usize];
        for row in series
            .iter()
            .filter(|row| row.kind == kind && seconds.contains(&u64::from(row.second)))
        {
            rates[(u64::from(row.second) - seconds.start) as usize] += if counts_rows(kind.as_str())
            {
                row.rows
            } else {
                row.ok
            };
        }
        match rates.len() {
            few if few < LEAST_SECONDS => Err(format!(
                "{few} whole seconds are too few: it takes {LEAST_SECONDS}"
            )),
            _ => Ok(rates),
        }
    }

    /// The writers that had a rate to keep.
    pub(super) fn pacings(&self) -> Result<Vec<&Pacing>, String> {
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

    pub(super) fn rate_share(&self) -> Answer {
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

    pub(super) fn seconds_under_rate(&self) -> Answer {
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

    pub(super) fn backlog(&self) -> Answer {
        Ok(self
            .pacings()?
            .into_iter()
            .map(|pacing| pacing.backlog)
            .sum::<u64>() as f64)
    }

    pub(super) fn wait_share(&self) -> Answer {
        let writers = || {
            self.done.operations.iter().filter(|record| {
                record.kind == Operation::Insert || record.kind == Operation::Delete
            })
        };
        let wait_ns: u64 = writers().map(|writer| writer.wait_ns).sum();
        let worker_ns: u64 = writers().map(|writer| writer.worker_ns).sum();
        ratio(wait_ns as f64, worker_ns as f64, "the step has no writers")
    }
}

fn longest_s(latencies: &Latencies) -> Answer {
    let (longest_ns, _) = latencies.at_ns(Clock::Service, 1.0)?;
    Ok(longest_ns as f64 / NS_PER_S)
}
