//! The one catalogue of metrics: what each number is called, means and is computed from.
//!
//! Collectors, tables, tooltips, documentation and tests all read this table.

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// More is better (throughput).
    Higher,
    /// Less is better (latency, CPU per operation).
    Lower,
    /// Neither: it explains, it does not judge.
    Neutral,
}

/// One catalogue entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// The column's name.
    pub name: &'static str,
    /// The unit of `value`.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
    /// Decimals in tables.
    pub decimals: usize,
    /// How it is computed from what was measured.
    pub formula: &'static str,
    /// Where the raw numbers come from.
    pub source: &'static str,
    /// One line for people.
    pub meaning: &'static str,
}

use Direction::{Higher, Lower, Neutral};

macro_rules! metrics {
    ($($name:literal, $unit:literal, $direction:ident, $decimals:literal, $formula:literal, $source:literal, $meaning:literal;)*) => {
        &[$(Metric { name: $name, unit: $unit, direction: $direction, decimals: $decimals, formula: $formula, source: $source, meaning: $meaning }),*]
    };
}

pub(crate) use metrics;

/// Every metric, in the order of the tables: first the columns of the Insert Benchmark report, then
/// ours.
///
/// "op" is the step's operation: an inserted row in `l.i0`, `l.i1`, `l.i2`; an indexed row in
/// `l.x`; a query in `q` steps.
pub const CATALOGUE: &[Metric] = metrics![
    "ips", "rows/s", Higher, 0, "sum over clients of rows inserted / that client's active seconds; \
                                l.x: rows indexed / seconds of index creation", "load loop", "insert rate (l.x: indexed rows per second, each row counted once)";
    "qps", "queries/s", Higher, 0, "sum over clients of queries / that client's active seconds", "load loop", "query rate";
    "rps", "reads/s", Neutral, 0, "reads completed / seconds", "/proc/diskstats of the data \
                                                               directory's device", "storage reads \
                                                                   per second, all processes";
    "rmbps", "MiB/s", Neutral, 1, "bytes read / seconds / 2^20", "/proc/diskstats", "storage read \
        throughput";
    "wps", "writes/s", Neutral, 1, "writes completed / seconds", "/proc/diskstats", "storage \
        writes per second, all processes";
    "wmbps", "MiB/s", Neutral, 1, "bytes written / seconds / 2^20", "/proc/diskstats", "storage \
        write throughput";
    "rpq", "reads/op", Lower, 3, "rps / op rate", "/proc/diskstats", "storage reads per operation";
    "rkbpq", "KiB/op", Lower, 3, "KiB read per second / op rate", "/proc/diskstats", "KiB read \
        from storage per operation";
    "wpi", "writes/insert", Lower, 3, "wps / ips, also in q steps", "/proc/diskstats", "storage \
        writes per inserted row";
    "wkbpi", "KiB/insert", Lower, 3, "KiB written per second / ips, also in q steps", "/proc/diskstats", "KiB written to storage per inserted row: write amplification shows here";
    "csps", "switches/s", Neutral, 0, "context switches / seconds", "/proc/stat ctxt", "context \
        switches per second, whole host";
    "cpups", "% of all CPUs", Neutral, 1, "(user + nice + system + irq + softirq) / (seconds x \
                                          CPUs) x 100", "/proc/stat", "CPU used by the whole host, \
                                              client included";
    "cspq", "switches/op", Lower, 3, "csps / op rate", "/proc/stat", "context switches per \
                                                                     operation: grows with mutex \
                                                                     contention";
    "cpupq", "us/op", Lower, 0, "cpups / 100 x CPUs x 10^6 / op rate", "/proc/stat", "host CPU per \
        operation; l.i1 and l.i2 include the paired delete";
    "dbgb1", "GiB", Lower, 1, "bytes of the database / 2^30", "engine", "size of tables and \
        indexes at the end of the step";
    "dbgb2", "GiB", Lower, 1, "bytes of the data directory / 2^30", "data directory", "size of \
        everything in the data directory at the end of the step";
    "rss", "GiB", Lower, 1, "largest resident memory during the step / 2^30, shared memory and \
                            files once", "/proc/PID/status", "resident memory of the engine; an \
                                                             embedded engine shares it with the \
                                                             client";
    "maxop", "s", Lower, 3, "largest service time of an insert in l steps, of a query in q steps", "load loop", "worst operation; index creation is not one";
    "p50_rate", "ops/s", Neutral, 0, "median of the per-second op rates of all clients together", "1-s series", "half of the seconds were at least this fast (a rate, not a latency)";
    "p99_rate", "ops/s", Neutral, 0, "per-second op rate that 99 % of the seconds reached", "1-s \
        series", "nearly the worst second (a rate, not a latency)";
    "index_s", "s", Lower, 2, "end of the last index creation - start of the first one", "load loop", "time to create the indexes of all tables";
    "dps", "rows/s", Neutral, 0, "sum over clients of rows deleted / that client's active seconds", "load loop", "delete rate; equals the insert rate when the delete keeps up";
    "server_cpu_us_per_op", "us/op", Lower, 2, "CPU of the server's process tree / ops", "process \
        CPU clock", "server CPU per operation";
    "client_cpu_us_per_op", "us/op", Neutral, 2, "CPU of the trial process / ops", "process CPU \
        clock", "CPU our own client takes per operation";
    "process_cpu_us_per_op", "us/op", Lower, 2, "CPU of the trial process / ops", "process CPU \
        clock", "embedded engine and client together, per operation";
    "p50_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "median service \
        time of the step's operation";
    "p90_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "90th percentile of \
        service time";
    "p99_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "99th percentile of \
        service time";
    "p999_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "99.9th percentile \
        of service time";
    "max_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "longest service \
        time";
    "p50_response_us", "us", Lower, 0, "histogram of done - due; open loop only", "load loop", "median response time from the planned instant: no coordinated omission";
    "p90_response_us", "us", Lower, 0, "histogram of done - due; open loop only", "load loop", "90th percentile of response time";
    "p99_response_us", "us", Lower, 0, "histogram of done - due; open loop only", "load loop", "99th percentile of response time";
    "p999_response_us", "us", Lower, 0, "histogram of done - due; open loop only", "load loop", "99.9th percentile of response time";
    "max_response_us", "us", Lower, 0, "histogram of done - due; open loop only", "load loop", "longest response time";
    "p50_lag_us", "us", Lower, 0, "histogram of sent - due; open loop only", "load loop", "median \
        lateness of the client's sends";
    "p99_lag_us", "us", Lower, 0, "histogram of sent - due; open loop only", "load loop", "99th \
        percentile of lateness: how long operations queued in the client";
    "rate_share", "share", Higher, 4, "achieved background rate / target, over each client's \
                                      active window", "load loop", "1.0 is the target; under 0.95 \
                                                                   the step has missed its SLA";
    "seconds_under_rate", "share", Lower, 3, "seconds with less than 95 % of the rows due in them \
                                             / seconds", "1-s series", "how much of the step the \
                                                 background writers were behind";
    "backlog", "ops", Lower, 0, "operations due before the schedule's end and not done within a \
                                second after it", "load loop", "what was still owed when the \
                                                               schedule ended";
    "wait_share", "share", Lower, 3, "time in tries that met a lock and their pauses / time of all \
                                     workers of the role", "load loop", "share of the writers' \
                                         time spent waiting for the write lock";
    "excluded_wait_s", "s", Lower, 2, "time in tries that were given up and tried again, and in \
                                      the pauses after them, all clients", "load loop", "waiting \
                                          that no service time has: refused tries, locks, lost \
                                          connections";
    "steal_share", "share", Neutral, 4, "steal / all CPU time", "/proc/stat", "CPU the hypervisor \
        gave to others: a witness of outside disturbance";
    "foreign_cpu_cores", "cores", Neutral, 2, "(CPU of the whole host - CPU of client and server) \
                                              / seconds", "/proc/stat, process CPU clocks", "CPU \
                                                  that other processes and the kernel's own \
                                                  threads used: a witness of outside disturbance";
    "psi_cpu_share", "share", Neutral, 3, "growth of 'some' stall time / seconds", "/proc/pressure/cpu", "share of time in which some task waited for a CPU";
    "psi_io_share", "share", Neutral, 3, "growth of 'some' stall time / seconds", "/proc/pressure/io", "share of time in which some task waited for storage";
    "psi_memory_share", "share", Neutral, 3, "growth of 'some' stall time / seconds", "/proc/pressure/memory", "share of time in which some task waited for memory";
];

/// What the tests of sysbench have in place of entries of [`CATALOGUE`], and beside them.
///
/// "op" is there a statement, `BEGIN` and `COMMIT` included; in `scan` it is a thousand rows looked
/// at.
pub const OF_SYSBENCH: &[Metric] = metrics![
    "qps", "queries/s", Higher, 0, "tps x statements / transactions", "load loop, notes", "statements of all clients per second, BEGIN and COMMIT included, as sysbench counts them; scan: scans";
    "tps", "transactions/s", Higher, 1, "sum over clients of transactions / that client's active \
                                        seconds", "load loop", "events per second: what sysbench \
                                                               calls transactions";
    "krps", "1000 rows/s", Higher, 0, "rows of a table / mean service time in milliseconds", "load \
        loop", "scan: thousands of rows per second of one client, as published";
    "hit_ratio", "share", Neutral, 3, "rows deleted / deletes", "load loop, notes", "delete: share \
        of the deletes that found a row; the others cost less";
    "wpq", "writes/op", Lower, 3, "wps / op rate", "/proc/diskstats", "storage writes per operation";
    "wkbpq", "KiB/op", Lower, 3, "KiB written per second / op rate", "/proc/diskstats", "KiB \
        written to storage per operation";
    "mean_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "mean service time \
        of a transaction";
    "p95_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "95th percentile of \
        service time, the one that sysbench tells";
];

/// The names of a sysbench test's metrics, in the order of the tables.
const SYSBENCH_NAMES: [&str; 48] = [
    "qps",
    "tps",
    "krps",
    "hit_ratio",
    "rps",
    "rmbps",
    "wps",
    "wmbps",
    "rpq",
    "rkbpq",
    "wpq",
    "wkbpq",
    "csps",
    "cpups",
    "cspq",
    "cpupq",
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "process_cpu_us_per_op",
    "dbgb1",
    "dbgb2",
    "rss",
    "maxop",
    "p50_rate",
    "p99_rate",
    "mean_service_us",
    "p50_service_us",
    "p90_service_us",
    "p95_service_us",
    "p99_service_us",
    "p999_service_us",
    "max_service_us",
    "p50_response_us",
    "p90_response_us",
    "p99_response_us",
    "p999_response_us",
    "max_response_us",
    "p50_lag_us",
    "p99_lag_us",
    "rate_share",
    "seconds_under_rate",
    "backlog",
    "excluded_wait_s",
    "steal_share",
    "foreign_cpu_cores",
    "psi_cpu_share",
    "psi_io_share",
    "psi_memory_share",
];

/// The metrics of a sysbench test.
pub fn of_sysbench() -> impl Iterator<Item = &'static Metric> {
    SYSBENCH_NAMES
        .iter()
        .map(|name| find_of_sysbench(name).expect("every name has its entry"))
}

/// The entry of a metric of a sysbench test.
pub fn find_of_sysbench(name: &str) -> Option<&'static Metric> {
    OF_SYSBENCH
        .iter()
        .find(|metric| metric.name == name)
        .or_else(|| find(name))
}

/// What the steps of RocksDB have in place of entries of [`CATALOGUE`], and beside them. Totals are
/// those since the database was opened for the step, the wait at its end included.
pub const OF_ROCKSDB: &[Metric] = metrics![
    "qps", "ops/s", Higher, 0, "sum over clients of operations / that client's active seconds; a \
                               MultiGet counts its keys", "load loop", "operations of the step per \
                                   second; background writes are not counted";
    "reads_per_s", "reads/s", Higher, 0, "qps of a step that reads", "load loop", "reads per \
        second of all clients; a range is one";
    "writes_per_s", "writes/s", Neutral, 0, "sum over writers of puts / that writer's active \
                                            seconds", "load loop", "writes per second, background \
                                                                   writes included";
    "mb_sec", "MiB/s", Higher, 1, "bytes of the keys and values that were written or found / 2^20 \
                                  / seconds", "load loop", "throughput in bytes";
    "usec_op", "us", Lower, 1, "time of all clients / operations", "load loop", "thread time per \
        operation, not 1/rate";
    "found_ratio", "share", Neutral, 4, "keys found / keys that must be there; of ranges values \
                                        read", "load loop", "reads that found what the load wrote: \
                                                            less than 1 is a broken load, or the \
                                                            end of the keys";
    "mean_service_us", "us", Lower, 1, "histogram of done - sent", "load loop", "mean service \
        time; of a MultiGet the time of one call";
    "p9999_service_us", "us", Lower, 0, "histogram of done - sent", "load loop", "99.99th \
        percentile of service time";
    "user_cpu_s", "s", Neutral, 1, "user CPU of the step's process", "getrusage", "user CPU; the \
        classic column u_cpu is a thousandth of it";
    "system_cpu_s", "s", Neutral, 1, "system CPU of the step's process", "getrusage", "system CPU; \
        the classic column s_cpu is a thousandth of it";
    "lsm_gb", "GiB", Lower, 2, "Sum line of the compaction statistics", "rocksdb.stats", "size of \
        the tree at the end of the step";
    "blob_gb", "GiB", Lower, 2, "total size of blob files", "rocksdb.stats", "size of blob files";
    "space_amp", "bytes/byte", Lower, 2, "bytes of the database / (keys x bytes of key and value)", "files of the database, plan", "space amplification";
    "c_wgb", "GiB", Lower, 2, "cumulative compaction, written; flushes included", "rocksdb.stats", "bytes written by flushes and compactions";
    "w_amp", "bytes/byte", Lower, 2, "c_wgb / ingest, or their rates where little was ingested", "rocksdb.stats", "write amplification";
    "w_amp_sum", "bytes/byte", Lower, 1, "W-Amp of the Sum line: bytes written / bytes flushed", "rocksdb.stats", "write amplification as RocksDB counts it";
    "c_mbps", "MiB/s", Neutral, 1, "c_wgb / uptime", "rocksdb.stats", "write rate of flushes and \
        compactions";
    "c_wsecs", "s", Lower, 2, "Comp(sec) of the Sum line", "rocksdb.stats", "wall seconds of all \
        flush and compaction threads";
    "c_csecs", "s", Lower, 2, "CompMergeCPU(sec) of the Sum line", "rocksdb.stats", "CPU seconds \
        of compaction";
    "b_rgb", "GiB", Neutral, 1, "Rblob(GB) of the Sum line", "rocksdb.stats", "blob bytes read by \
        compaction";
    "b_wgb", "GiB", Neutral, 1, "Wblob(GB) of the Sum line", "rocksdb.stats", "blob bytes written \
        by compaction";
    "uptime_s", "s", Neutral, 1, "Uptime(secs) total", "rocksdb.stats", "seconds the database was \
        open, with what came after the step's operations";
    "stall_pct", "%", Lower, 1, "stalled time / uptime x 100", "rocksdb.stats", "share of time \
        writes were stalled";
    "n_stall", "stalls", Lower, 0, "sum of the stall counts, slowed and stopped, in either form of \
                                   the line", "rocksdb.stats", "write stalls";
];

/// The names of a RocksDB step's metrics, in the order of the tables.
const ROCKSDB_NAMES: [&str; 61] = [
    "qps",
    "reads_per_s",
    "writes_per_s",
    "mb_sec",
    "usec_op",
    "process_cpu_us_per_op",
    "user_cpu_s",
    "system_cpu_s",
    "rss",
    "lsm_gb",
    "blob_gb",
    "space_amp",
    "c_wgb",
    "w_amp",
    "w_amp_sum",
    "c_mbps",
    "c_wsecs",
    "c_csecs",
    "b_rgb",
    "b_wgb",
    "uptime_s",
    "stall_pct",
    "n_stall",
    "found_ratio",
    "mean_service_us",
    "p50_service_us",
    "p90_service_us",
    "p99_service_us",
    "p999_service_us",
    "p9999_service_us",
    "max_service_us",
    "excluded_wait_s",
    "p50_response_us",
    "p90_response_us",
    "p99_response_us",
    "p999_response_us",
    "max_response_us",
    "p50_lag_us",
    "p99_lag_us",
    "rate_share",
    "seconds_under_rate",
    "backlog",
    "rps",
    "rmbps",
    "wps",
    "wmbps",
    "rpq",
    "rkbpq",
    "csps",
    "cpups",
    "cspq",
    "cpupq",
    "dbgb1",
    "dbgb2",
    "p50_rate",
    "p99_rate",
    "steal_share",
    "foreign_cpu_cores",
    "psi_cpu_share",
    "psi_io_share",
    "psi_memory_share",
];

/// The metrics of a step of RocksDB.
pub fn of_rocksdb() -> impl Iterator<Item = &'static Metric> {
    ROCKSDB_NAMES
        .iter()
        .map(|name| find_of_rocksdb(name).expect("every name has its entry"))
}

/// The entry of a metric of a step of RocksDB.
pub fn find_of_rocksdb(name: &str) -> Option<&'static Metric> {
    OF_ROCKSDB
        .iter()
        .find(|metric| metric.name == name)
        .or_else(|| find(name))
}

/// The 20 columns of the Insert Benchmark's metrics line before its tag, in its order.
pub const CLASSIC_COLUMNS: [&str; 20] = [
    "ips", "qps", "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wpi", "wkbpi", "csps", "cpups",
    "cspq", "cpupq", "dbgb1", "dbgb2", "rss", "maxop", "p50_rate", "p99_rate",
];

/// The entry of a metric.
pub fn find(name: &str) -> Option<&'static Metric> {
    CATALOGUE.iter().find(|metric| metric.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_classic_columns_exist() {
        for (i, metric) in CATALOGUE.iter().enumerate() {
            assert!(
                CATALOGUE[..i].iter().all(|other| other.name != metric.name),
                "{} twice",
                metric.name
            );
            assert!(
                !metric.meaning.is_empty()
                    && !metric.formula.is_empty()
                    && !metric.source.is_empty()
            );
        }
        assert_eq!(of_sysbench().count(), SYSBENCH_NAMES.len());
        assert_eq!(of_rocksdb().count(), ROCKSDB_NAMES.len());
        for name in CLASSIC_COLUMNS {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
