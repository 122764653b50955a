//! The metrics of a test of sysbench, those of its own and those it shares.
//!
//! "op" is a statement, `BEGIN` and `COMMIT` included; in `scan` it is a thousand rows looked at.

use plimsoll_core::readings::HostReading;

use super::catalogue::*;
use super::metric::Formula::{Computed, Quantile};
use super::metric::{Metric, metric_set};
use crate::latencies::Clock::Service;

metric_set! {
    set METRICS, own OWN;

    QPS = "qps", "queries/s", Higher, 0,
        "tps x statements / transactions",
        "load loop, notes",
        "statements of all clients per second, BEGIN and COMMIT included, as sysbench counts them; \
         scan: scans",
        Computed(|facts| facts.statements_per_s());
    TPS = "tps", "transactions/s", Higher, 1,
        "sum over clients of transactions / that client's active seconds",
        "load loop",
        "events per second: what sysbench calls transactions",
        Computed(|facts| facts.operations_per_s());
    KRPS = "krps", "1000 rows/s", Higher, 0,
        "rows of a table / mean service time in milliseconds",
        "load loop",
        "scan: thousands of rows per second of one client, as published",
        Computed(|facts| Ok(facts.scan_rows()? / (facts.mean_service_ns()? / 1e6)));
    HIT_RATIO = "hit_ratio", "share", Neutral, 3,
        "rows deleted / deletes",
        "load loop, notes",
        "delete: share of the deletes that found a row; the others cost less",
        Computed(|facts| facts.note("delete_hit_ratio", "it is not a test of deletes"));
    RPS;
    RMBPS;
    WPS;
    WMBPS;
    RPQ;
    RKBPQ;
    WPQ = "wpq", "writes/op", Lower, 3,
        "wps / op rate",
        "/proc/diskstats",
        "storage writes per operation",
        Computed(|facts| facts.per_operation(facts.per_second(HostReading::DiskWrites)?));
    WKBPQ = "wkbpq", "KiB/op", Lower, 3,
        "KiB written per second / op rate",
        "/proc/diskstats",
        "KiB written to storage per operation",
        Computed(|facts| facts.per_operation(facts.kib_per_s(HostReading::DiskWriteBytes)?));
    CSPS;
    CPUPS;
    CSPQ;
    CPUPQ;
    SERVER_CPU_US_PER_OP;
    SERVER_CSPQ;
    SERVER_RPQ;
    SERVER_RKBPQ;
    SERVER_WPQ;
    SERVER_WKBPQ;
    CLIENT_CPU_US_PER_OP;
    PROCESS_CPU_US_PER_OP;
    DBGB1;
    DBGB2;
    RSS;
    MAXOP;
    P50_RATE;
    P99_RATE;
    SUSTAINED_RATE;
    SUSTAINED_SLOPE;
    MEAN_SERVICE_US = "mean_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "mean service time of a transaction",
        Computed(|facts| Ok(facts.mean_service_ns()? / 1e3));
    P50_SERVICE_US;
    P90_SERVICE_US;
    P95_SERVICE_US = "p95_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "95th percentile of service time, the one that sysbench reports",
        Quantile(Service, 0.95);
    P99_SERVICE_US;
    P999_SERVICE_US;
    MAX_SERVICE_US;
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
    EXCLUDED_WAIT_S;
    STEAL_SHARE;
    FOREIGN_CPU_CORES;
    PSI_CPU_SHARE;
    PSI_IO_SHARE;
    PSI_MEMORY_SHARE;
}

/// Columns of a test's table, those of them that any cell has.
pub const COLUMNS: [&Metric; 27] = [
    KRPS,
    QPS,
    TPS,
    HIT_RATIO,
    CPUPQ,
    SERVER_CPU_US_PER_OP,
    CLIENT_CPU_US_PER_OP,
    PROCESS_CPU_US_PER_OP,
    CSPQ,
    RPQ,
    RKBPQ,
    WPQ,
    WKBPQ,
    SERVER_CSPQ,
    SERVER_RPQ,
    SERVER_RKBPQ,
    SERVER_WPQ,
    SERVER_WKBPQ,
    MEAN_SERVICE_US,
    P95_SERVICE_US,
    P99_SERVICE_US,
    P99_RESPONSE_US,
    CSPS,
    CPUPS,
    DBGB1,
    DBGB2,
    RSS,
];
