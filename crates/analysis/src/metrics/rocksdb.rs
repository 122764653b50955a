//! The metrics of a step of RocksDB, those of its own and those it shares.
//!
//! Totals are those since the database was opened for the step, the wait at its end included.

use plimsoll_core::readings::HostReading;

use super::catalogue::*;
use super::metric::Formula::{Computed, Quantile};
use super::metric::{Metric, metric_set};
use crate::latencies::Clock::Service;

metric_set! {
    set METRICS, own OWN;

    QPS = "qps", "ops/s", Higher, 0,
        "sum over clients of operations / that client's active seconds; a MultiGet counts its keys",
        "load loop",
        "operations of the step per second; background writes are not counted",
        Computed(|facts| facts.operation_rate());
    READS_PER_S = "reads_per_s", "reads/s", Higher, 0,
        "qps of a step that reads",
        "load loop",
        "reads per second of all clients; a range is one",
        Computed(|facts| facts.reads_per_s());
    WRITES_PER_S = "writes_per_s", "writes/s", Neutral, 0,
        "sum over writers of puts / that writer's active seconds",
        "load loop",
        "writes per second, background writes included",
        Computed(|facts| facts.writes_per_s());
    MB_SEC = "mb_sec", "MiB/s", Higher, 1,
        "bytes of the keys and values that were written or found / 2^20 / seconds",
        "load loop",
        "throughput in bytes",
        Computed(|facts| facts.mib_per_s());
    USEC_OP = "usec_op", "us", Lower, 1,
        "time of all clients / operations",
        "load loop",
        "thread time per operation, not 1/rate",
        Computed(|facts| facts.thread_us_per_operation());
    PROCESS_CPU_US_PER_OP;
    SERVER_CSPQ;
    SERVER_RPQ;
    SERVER_RKBPQ;
    SERVER_WPQ;
    SERVER_WKBPQ;
    USER_CPU_S = "user_cpu_s", "s", Neutral, 1,
        "user CPU of the step's process",
        "getrusage",
        "user CPU; the classic column u_cpu is a thousandth of it",
        Computed(|facts| facts.reading(HostReading::OwnUser));
    SYSTEM_CPU_S = "system_cpu_s", "s", Neutral, 1,
        "system CPU of the step's process",
        "getrusage",
        "system CPU; the classic column s_cpu is a thousandth of it",
        Computed(|facts| facts.reading(HostReading::OwnSystem));
    RSS;
    LSM_GB = "lsm_gb", "GiB", Lower, 2,
        "Sum line of the compaction statistics",
        "rocksdb.stats",
        "size of the tree at the end of the step",
        Computed(|facts| facts.statistic("lsm_gb"));
    BLOB_GB = "blob_gb", "GiB", Lower, 2,
        "total size of blob files",
        "rocksdb.stats",
        "size of blob files",
        Computed(|facts| facts.statistic("blob_gb"));
    SPACE_AMP = "space_amp", "bytes/byte", Lower, 2,
        "bytes of the database / (keys x bytes of key and value)",
        "files of the database, plan",
        "space amplification",
        Computed(|facts| facts.space_amplification());
    C_WGB = "c_wgb", "GiB", Lower, 2,
        "cumulative compaction, written; flushes included",
        "rocksdb.stats",
        "bytes written by flushes and compactions",
        Computed(|facts| facts.statistic("c_wgb"));
    W_AMP = "w_amp", "bytes/byte", Lower, 2,
        "c_wgb / ingest, or their rates where little was ingested",
        "rocksdb.stats",
        "write amplification",
        Computed(|facts| facts.statistic("w_amp"));
    W_AMP_SUM = "w_amp_sum", "bytes/byte", Lower, 1,
        "W-Amp of the Sum line: bytes written / bytes flushed",
        "rocksdb.stats",
        "write amplification as RocksDB counts it",
        Computed(|facts| facts.statistic("w_amp_sum"));
    C_MBPS = "c_mbps", "MiB/s", Neutral, 1,
        "c_wgb / uptime",
        "rocksdb.stats",
        "write rate of flushes and compactions",
        Computed(|facts| facts.statistic("c_mbps"));
    C_WSECS = "c_wsecs", "s", Lower, 2,
        "Comp(sec) of the Sum line",
        "rocksdb.stats",
        "wall seconds of all flush and compaction threads",
        Computed(|facts| facts.statistic("c_wsecs"));
    C_CSECS = "c_csecs", "s", Lower, 2,
        "CompMergeCPU(sec) of the Sum line",
        "rocksdb.stats",
        "CPU seconds of compaction",
        Computed(|facts| facts.statistic("c_csecs"));
    B_RGB = "b_rgb", "GiB", Neutral, 1,
        "Rblob(GB) of the Sum line",
        "rocksdb.stats",
        "blob bytes read by compaction",
        Computed(|facts| facts.statistic("b_rgb"));
    B_WGB = "b_wgb", "GiB", Neutral, 1,
        "Wblob(GB) of the Sum line",
        "rocksdb.stats",
        "blob bytes written by compaction",
        Computed(|facts| facts.statistic("b_wgb"));
    UPTIME_S = "uptime_s", "s", Neutral, 1,
        "Uptime(secs) total",
        "rocksdb.stats",
        "seconds the database was open, with what came after the step's operations",
        Computed(|facts| facts.statistic("uptime_s"));
    STALL_PCT = "stall_pct", "%", Lower, 1,
        "stalled time / uptime x 100",
        "rocksdb.stats",
        "share of time writes were stalled",
        Computed(|facts| facts.stall_pct());
    N_STALL = "n_stall", "stalls", Lower, 0,
        "sum of the stall counts, slowed and stopped, in either form of the line",
        "rocksdb.stats",
        "write stalls",
        Computed(|facts| facts.statistic("n_stall"));
    FOUND_RATIO = "found_ratio", "share", Neutral, 4,
        "keys found / keys that must be there; of ranges values read",
        "load loop",
        "reads that found what the load wrote: less than 1 is a broken load, or the end of the \
         keys",
        Computed(|facts| facts.found_ratio());
    MEAN_SERVICE_US = "mean_service_us", "us", Lower, 1,
        "histogram of done - sent",
        "load loop",
        "mean service time; of a MultiGet the time of one call",
        Computed(|facts| Ok(facts.mean_service_ns()? / 1e3));
    P50_SERVICE_US;
    P90_SERVICE_US;
    P99_SERVICE_US;
    P999_SERVICE_US;
    P9999_SERVICE_US = "p9999_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "99.99th percentile of service time",
        Quantile(Service, 0.9999);
    MAX_SERVICE_US;
    EXCLUDED_WAIT_S;
    P50_RESPONSE_US;
    P90_RESPONSE_US;
    P99_RESPONSE_US;
    P999_RESPONSE_US;
    MAX_RESPONSE_US;
    P50_LAG_US;
    P99_LAG_US;
    RATE_SHARE;
    SECONDS_UNDER_RATE;
    BACKLOG;
    RPS;
    RMBPS;
    WPS;
    WMBPS;
    RPQ;
    RKBPQ;
    CSPS;
    CPUPS;
    CSPQ;
    CPUPQ;
    DBGB1;
    DBGB2;
    P50_RATE;
    P99_RATE;
    SUSTAINED_RATE;
    SUSTAINED_SLOPE;
    STEAL_SHARE;
    FOREIGN_CPU_CORES;
    PSI_CPU_SHARE;
    PSI_IO_SHARE;
    PSI_MEMORY_SHARE;
}

/// Columns of a step's table, those of them that any cell has: the original's in its order, each
/// with what corrects it.
pub const COLUMNS: [&Metric; 39] = [
    QPS,
    READS_PER_S,
    WRITES_PER_S,
    RATE_SHARE,
    MB_SEC,
    LSM_GB,
    BLOB_GB,
    SPACE_AMP,
    C_WGB,
    W_AMP,
    W_AMP_SUM,
    C_MBPS,
    C_WSECS,
    C_CSECS,
    B_RGB,
    B_WGB,
    USEC_OP,
    PROCESS_CPU_US_PER_OP,
    P50_SERVICE_US,
    P99_SERVICE_US,
    P999_SERVICE_US,
    P9999_SERVICE_US,
    MAX_SERVICE_US,
    UPTIME_S,
    STALL_PCT,
    N_STALL,
    USER_CPU_S,
    SYSTEM_CPU_S,
    RSS,
    FOUND_RATIO,
    RKBPQ,
    WMBPS,
    CSPQ,
    SERVER_CSPQ,
    SERVER_RPQ,
    SERVER_RKBPQ,
    SERVER_WPQ,
    SERVER_WKBPQ,
    CPUPS,
];
