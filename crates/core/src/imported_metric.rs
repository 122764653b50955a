//! Metrics that only imported results have, beside those of [`crate::metric::CATALOGUE`].

use crate::metric::Direction::{Higher, Lower, Neutral};
use crate::metric::{self, Metric, metrics};

/// What foreign results tell and native runs do not measure in this form.
pub const IMPORTED: &[Metric] = metrics![
    "op_rate", "ops/s", Higher, 2, "operations / second that costs are divided by; sysbench scans: \
                                   thousands of rows / second of one thread", "sb.o, sb.met", "the \
                                       operation rate as the metrics file prints it";
    "tps", "transactions/s", Higher, 2, "transactions / time elapsed", "sysbench, pgbench", "transactions per second";
    "krps", "1000 rows/s", Higher, 0, "rows of a table / mean latency in milliseconds", "sysbench", "scan: thousands of rows per second of one thread, as published";
    "wkbpq", "KiB/op", Lower, 3, "KiB written per second / op rate", "iostat", "KiB written to \
        storage per operation";
    "cpupo", "% of all CPUs x s/op", Lower, 6, "cpups / op rate", "vmstat", "CPU of the whole host \
        per operation, as a share of the machine";
    "min_service_us", "us", Lower, 0, "least latency of an event", "sysbench", "shortest service \
        time";
    "mean_service_us", "us", Lower, 0, "sum of latencies / events", "sysbench, pgbench, latency \
                                                                    logs", "mean service time";
    "p95_service_us", "us", Lower, 0, "sysbench: a bucket 1.8 % wide", "sysbench, pgbench log, \
        latency logs", "95th percentile of service time";
    "ignored_errors", "errors", Lower, 0, "statements that sysbench gave up and tried again", "sysbench", "deadlocks, lock timeouts and the like";
    "mb_sec", "MiB/s", Higher, 1, "bytes read or written by the clients / 2^20 / seconds", "db_bench", "throughput in bytes";
    "lsm_gb", "GiB", Lower, 0, "Sum line of the last compaction statistics", "rocksdb.stats", "size of the tree";
    "blob_gb", "GiB", Lower, 0, "total size of blob files", "rocksdb.stats", "size of blob files";
    "c_wgb", "GiB", Lower, 1, "cumulative compaction, written; flushes included", "rocksdb.stats", "bytes written by flushes and compactions";
    "w_amp", "bytes/byte", Lower, 1, "c_wgb / ingest (classic: flushes counted twice)", "rocksdb.stats", "write amplification";
    "c_mbps", "MiB/s", Neutral, 1, "c_wgb / uptime", "rocksdb.stats", "write rate of flushes and \
        compactions";
    "c_wsecs", "s", Lower, 0, "Comp(sec) of the Sum line", "rocksdb.stats", "wall seconds of all \
        flush and compaction threads";
    "c_csecs", "s", Lower, 0, "CompMergeCPU(sec) of the Sum line", "rocksdb.stats", "CPU seconds \
        of compaction";
    "b_rgb", "GiB", Neutral, 0, "Rblob(GB) of the Sum line", "rocksdb.stats", "blob bytes read by \
        compaction";
    "b_wgb", "GiB", Neutral, 0, "Wblob(GB) of the Sum line", "rocksdb.stats", "blob bytes written \
        by compaction";
    "usec_op", "us", Lower, 1, "sum over threads of thread seconds x 10^6 / operations", "db_bench", "thread time per operation, not 1/rate";
    "p9999_service_us", "us", Lower, 0, "db_bench histogram, interpolated", "db_bench", "99.99th \
        percentile of latency";
    "uptime_s", "s", Neutral, 0, "Uptime(secs) total", "rocksdb.stats", "seconds the database was \
        open";
    "stall_pct", "%", Lower, 1, "stalled time / uptime x 100", "rocksdb.stats", "share of time \
        writes were stalled";
    "n_stall", "stalls", Lower, 0, "sum of the stall counts", "rocksdb.stats", "write stalls";
    "u_cpu_ks", "1000 s", Lower, 1, "user CPU of the process tree / 1000", "time", "user CPU";
    "s_cpu_ks", "1000 s", Lower, 1, "system CPU of the process tree / 1000", "time", "system CPU";
];

/// The entry of a metric of native or imported results.
pub fn find(name: &str) -> Option<&'static Metric> {
    metric::find(name).or_else(|| IMPORTED.iter().find(|metric| metric.name == name))
}

/// The place of a metric in tables: the catalogue's order, then [`IMPORTED`]'s.
pub fn place(name: &str) -> usize {
    let all = metric::CATALOGUE.iter().chain(IMPORTED);
    all.into_iter()
        .position(|metric| metric.name == name)
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_beside_the_catalogue() {
        for (i, imported) in IMPORTED.iter().enumerate() {
            assert!(
                metric::find(imported.name).is_none(),
                "{} is in the catalogue",
                imported.name
            );
            assert!(
                IMPORTED[..i]
                    .iter()
                    .all(|other| other.name != imported.name),
                "{} twice",
                imported.name
            );
            assert_eq!(place(imported.name), metric::CATALOGUE.len() + i);
        }
        assert_eq!(find("qps").unwrap().name, "qps");
        assert!(find("nothing").is_none());
    }
}
