//! Metrics that only imported results have. Some have the name of a native metric of one workload,
//! with the decimals and sources of the files that they are read from.

use super::metric::Formula::ImportedOnly;
use super::metric::metric_set;

metric_set! {
    set METRICS;

    OP_RATE = "op_rate", "ops/s", Higher, 2,
        "operations / second that costs are divided by; sysbench scans: thousands of rows / second \
         of one thread",
        "sb.o, sb.met",
        "the operation rate as the metrics file prints it",
        ImportedOnly;
    REL_RATE = "rel_rate", "of the base's", Higher, 2,
        "the printed ratio; the base is 1.00",
        "qps.rel, fmt, sum.abs",
        "throughput relative to the base, where only that was published",
        ImportedOnly;
    TPS = "tps", "transactions/s", Higher, 2,
        "transactions / time elapsed",
        "sysbench, pgbench",
        "transactions per second",
        ImportedOnly;
    KRPS = "krps", "1000 rows/s", Higher, 0,
        "rows of a table / mean latency in milliseconds",
        "sysbench",
        "scan: thousands of rows per second of one thread, as published",
        ImportedOnly;
    WKBPQ = "wkbpq", "KiB/op", Lower, 3,
        "KiB written per second / op rate",
        "iostat",
        "KiB written to storage per operation",
        ImportedOnly;
    CPUPO = "cpupo", "% of all CPUs x s/op", Lower, 6,
        "cpups / op rate",
        "vmstat",
        "CPU of the whole host per operation, as a share of the machine",
        ImportedOnly;
    MIN_SERVICE_US = "min_service_us", "us", Lower, 0,
        "least latency of an event",
        "sysbench",
        "shortest service time",
        ImportedOnly;
    MEAN_SERVICE_US = "mean_service_us", "us", Lower, 0,
        "sum of latencies / events",
        "sysbench, pgbench, latency logs",
        "mean service time",
        ImportedOnly;
    P95_SERVICE_US = "p95_service_us", "us", Lower, 0,
        "sysbench: a bucket 1.8 % wide",
        "sysbench, pgbench log, latency logs",
        "95th percentile of service time",
        ImportedOnly;
    IGNORED_ERRORS = "ignored_errors", "errors", Lower, 0,
        "statements that sysbench gave up and tried again",
        "sysbench",
        "deadlocks, lock timeouts and the like",
        ImportedOnly;
    MB_SEC = "mb_sec", "MiB/s", Higher, 1,
        "bytes read or written by the clients / 2^20 / seconds",
        "db_bench",
        "throughput in bytes",
        ImportedOnly;
    LSM_GB = "lsm_gb", "GiB", Lower, 0,
        "Sum line of the last compaction statistics",
        "rocksdb.stats",
        "size of the tree",
        ImportedOnly;
    BLOB_GB = "blob_gb", "GiB", Lower, 0,
        "total size of blob files",
        "rocksdb.stats",
        "size of blob files",
        ImportedOnly;
    C_WGB = "c_wgb", "GiB", Lower, 1,
        "cumulative compaction, written; flushes included",
        "rocksdb.stats",
        "bytes written by flushes and compactions",
        ImportedOnly;
    W_AMP = "w_amp", "bytes/byte", Lower, 1,
        "c_wgb / ingest (classic: flushes counted twice)",
        "rocksdb.stats",
        "write amplification",
        ImportedOnly;
    C_MBPS = "c_mbps", "MiB/s", Neutral, 1,
        "c_wgb / uptime",
        "rocksdb.stats",
        "write rate of flushes and compactions",
        ImportedOnly;
    C_WSECS = "c_wsecs", "s", Lower, 0,
        "Comp(sec) of the Sum line",
        "rocksdb.stats",
        "wall seconds of all flush and compaction threads",
        ImportedOnly;
    C_CSECS = "c_csecs", "s", Lower, 0,
        "CompMergeCPU(sec) of the Sum line",
        "rocksdb.stats",
        "CPU seconds of compaction",
        ImportedOnly;
    B_RGB = "b_rgb", "GiB", Neutral, 0,
        "Rblob(GB) of the Sum line",
        "rocksdb.stats",
        "blob bytes read by compaction",
        ImportedOnly;
    B_WGB = "b_wgb", "GiB", Neutral, 0,
        "Wblob(GB) of the Sum line",
        "rocksdb.stats",
        "blob bytes written by compaction",
        ImportedOnly;
    USEC_OP = "usec_op", "us", Lower, 1,
        "sum over threads of thread seconds x 10^6 / operations",
        "db_bench",
        "thread time per operation, not 1/rate",
        ImportedOnly;
    P9999_SERVICE_US = "p9999_service_us", "us", Lower, 0,
        "db_bench histogram, interpolated",
        "db_bench",
        "99.99th percentile of latency",
        ImportedOnly;
    UPTIME_S = "uptime_s", "s", Neutral, 0,
        "Uptime(secs) total",
        "rocksdb.stats",
        "seconds the database was open",
        ImportedOnly;
    STALL_PCT = "stall_pct", "%", Lower, 1,
        "stalled time / uptime x 100",
        "rocksdb.stats",
        "share of time writes were stalled",
        ImportedOnly;
    N_STALL = "n_stall", "stalls", Lower, 0,
        "sum of the stall counts",
        "rocksdb.stats",
        "write stalls",
        ImportedOnly;
    U_CPU_KS = "u_cpu_ks", "1000 s", Lower, 1,
        "user CPU of the process tree / 1000",
        "time",
        "user CPU",
        ImportedOnly;
    S_CPU_KS = "s_cpu_ks", "1000 s", Lower, 1,
        "system CPU of the process tree / 1000",
        "time",
        "system CPU",
        ImportedOnly;
}
