//! The metrics of the Insert Benchmark, which other workloads share: first the columns of the
//! original's report, then ours.
//!
//! "op" is the step's operation: an inserted row in `l.i0`, `l.i1`, `l.i2`; an indexed row in
//! `l.x`; a query in `q` steps.

use plimsoll_core::plan::Operation;
use plimsoll_core::readings::HostReading;
use plimsoll_core::units::{BYTES_PER_GIB, BYTES_PER_MIB};

use super::metric::Formula::{Computed, Quantile};
use super::metric::{Metric, metric_set};
use crate::latencies::Clock::{Lag, Response, Service};

metric_set! {
    set CATALOGUE;

    IPS = "ips", "rows/s", Higher, 0,
        "sum over clients of rows inserted / that client's active seconds; l.x: rows indexed / \
         seconds of index creation",
        "load loop",
        "insert rate (l.x: indexed rows per second, each row counted once)",
        Computed(|facts| facts.inserted_or_indexed_per_s());
    QPS = "qps", "queries/s", Higher, 0,
        "sum over clients of queries / that client's active seconds",
        "load loop",
        "query rate",
        Computed(|facts| facts.queries_per_s());
    RPS = "rps", "reads/s", Neutral, 0,
        "reads completed / seconds",
        "/proc/diskstats of the data directory's device",
        "storage reads per second, all processes",
        Computed(|facts| facts.per_second(HostReading::DiskReads));
    RMBPS = "rmbps", "MiB/s", Neutral, 1,
        "bytes read / seconds / 2^20",
        "/proc/diskstats",
        "storage read throughput",
        Computed(|facts| Ok(facts.per_second(HostReading::DiskReadBytes)? / BYTES_PER_MIB));
    WPS = "wps", "writes/s", Neutral, 1,
        "writes completed / seconds",
        "/proc/diskstats",
        "storage writes per second, all processes",
        Computed(|facts| facts.per_second(HostReading::DiskWrites));
    WMBPS = "wmbps", "MiB/s", Neutral, 1,
        "bytes written / seconds / 2^20",
        "/proc/diskstats",
        "storage write throughput",
        Computed(|facts| Ok(facts.per_second(HostReading::DiskWriteBytes)? / BYTES_PER_MIB));
    RPQ = "rpq", "reads/op", Lower, 3,
        "rps / op rate",
        "/proc/diskstats",
        "storage reads per operation",
        Computed(|facts| facts.per_operation(facts.per_second(HostReading::DiskReads)?));
    RKBPQ = "rkbpq", "KiB/op", Lower, 3,
        "KiB read per second / op rate",
        "/proc/diskstats",
        "KiB read from storage per operation",
        Computed(|facts| facts.per_operation(facts.kib_per_s(HostReading::DiskReadBytes)?));
    WPI = "wpi", "writes/insert", Lower, 3,
        "wps / ips, also in q steps",
        "/proc/diskstats",
        "storage writes per inserted row",
        Computed(|facts| facts.per_insert(facts.per_second(HostReading::DiskWrites)?));
    WKBPI = "wkbpi", "KiB/insert", Lower, 3,
        "KiB written per second / ips, also in q steps",
        "/proc/diskstats",
        "KiB written to storage per inserted row: write amplification shows here",
        Computed(|facts| facts.per_insert(facts.kib_per_s(HostReading::DiskWriteBytes)?));
    CSPS = "csps", "switches/s", Neutral, 0,
        "context switches / seconds",
        "/proc/stat ctxt",
        "context switches per second, whole host",
        Computed(|facts| facts.per_second(HostReading::ContextSwitches));
    CPUPS = "cpups", "% of all CPUs", Neutral, 1,
        "(user + nice + system + irq + softirq) / (seconds x CPUs) x 100",
        "/proc/stat",
        "CPU used by the whole host, client included",
        Computed(|facts| Ok(facts.busy_cpus()? / facts.reading(HostReading::Cpus)? * 100.0));
    CSPQ = "cspq", "switches/op", Lower, 3,
        "csps / op rate",
        "/proc/stat",
        "context switches per operation: grows with mutex contention",
        Computed(|facts| facts.per_operation(facts.per_second(HostReading::ContextSwitches)?));
    CPUPQ = "cpupq", "us/op", Lower, 0,
        "cpups / 100 x CPUs x 10^6 / op rate",
        "/proc/stat",
        "host CPU per operation; l.i1 and l.i2 include the paired delete",
        Computed(|facts| facts.per_operation(facts.busy_cpus()? * 1e6));
    DBGB1 = "dbgb1", "GiB", Lower, 1,
        "bytes of the database / 2^30",
        "engine",
        "size of tables and indexes at the end of the step",
        Computed(|facts| Ok(facts.reading(HostReading::Database)? / BYTES_PER_GIB));
    DBGB2 = "dbgb2", "GiB", Lower, 1,
        "bytes of the data directory / 2^30",
        "data directory",
        "size of everything in the data directory at the end of the step",
        Computed(|facts| Ok(facts.reading(HostReading::DataDir)? / BYTES_PER_GIB));
    RSS = "rss", "GiB", Lower, 1,
        "largest resident memory during the step / 2^30, shared memory and files once",
        "/proc/PID/status",
        "resident memory of the engine; an embedded engine shares it with the client",
        Computed(|facts| Ok(facts.reading(HostReading::RssMax)? / BYTES_PER_GIB));
    MAXOP = "maxop", "s", Lower, 3,
        "largest service time of an insert in l steps, of a query in q steps",
        "load loop",
        "worst operation; index creation is not one",
        Computed(|facts| facts.longest_operation_s());
    P50_RATE = "p50_rate", "ops/s", Neutral, 0,
        "median of the per-second op rates of all clients together",
        "1-s series",
        "half of the seconds were at least this fast (a rate, not a latency)",
        Computed(|facts| facts.rate_percentile(50));
    P99_RATE = "p99_rate", "ops/s", Neutral, 0,
        "per-second op rate that 99 % of the seconds reached",
        "1-s series",
        "nearly the worst second (a rate, not a latency)",
        Computed(|facts| facts.rate_percentile(99));
    SUSTAINED_RATE = "sustained_rate", "ops/s", Higher, 0,
        "mean of the per-second op rates over the last half of the seconds",
        "1-s series",
        "the op rate once the engine has been at it for half of the step",
        Computed(|facts| facts.sustained_rate());
    SUSTAINED_SLOPE = "sustained_slope", "ratio", Higher, 3,
        "op rate of the last quarter of the seconds / op rate of the quarter before it",
        "1-s series",
        "where the op rate is going: below 1 it falls",
        Computed(|facts| facts.sustained_slope());
    INDEX_S = "index_s", "s", Lower, 2,
        "end of the last index creation - start of the first one",
        "load loop",
        "time to create the indexes of all tables",
        Computed(|facts| facts.index_creation_s());
    DPS = "dps", "rows/s", Neutral, 0,
        "sum over clients of rows deleted / that client's active seconds",
        "load loop",
        "delete rate; equals the insert rate when the delete keeps up",
        Computed(|facts| facts.rate(Operation::Delete, |client| client.rows));
    SERVER_CPU_US_PER_OP = "server_cpu_us_per_op", "us/op", Lower, 2,
        "CPU of the server's process tree / ops",
        "process CPU clock",
        "server CPU per operation",
        Computed(|facts| facts.cpu_us_per_operation(HostReading::ServerCpu));
    SERVER_CSPQ = "server_cspq", "switches/op", Lower, 3,
        "context switches of the server's threads / ops",
        "/proc/PID/task/TID/status",
        "context switches of the server alone per operation: waits for locks, storage and the \
         client",
        Computed(|facts| facts.server_per_operation(&[
            HostReading::ServerVoluntarySwitches,
            HostReading::ServerInvoluntarySwitches,
        ]));
    SERVER_RPQ = "server_rpq", "calls/op", Lower, 3,
        "system calls of the server that read / ops",
        "/proc/PID/io",
        "reading system calls of the server per operation, of files in the page cache and of some \
         sockets, too",
        Computed(|facts| facts.server_per_operation(&[HostReading::ServerReadCalls]));
    SERVER_RKBPQ = "server_rkbpq", "KiB/op", Lower, 3,
        "bytes that the server had fetched from storage / 2^10 / ops",
        "/proc/PID/io",
        "KiB that the server read from storage per operation, what was in the page cache left out",
        Computed(|facts| facts.server_kib_per_operation(HostReading::ServerReadBytes));
    SERVER_WPQ = "server_wpq", "calls/op", Lower, 3,
        "system calls of the server that write / ops",
        "/proc/PID/io",
        "writing system calls of the server per operation, of files and of some sockets",
        Computed(|facts| facts.server_per_operation(&[HostReading::ServerWriteCalls]));
    SERVER_WKBPQ = "server_wkbpq", "KiB/op", Lower, 3,
        "bytes that the server sent to storage or the page cache / 2^10 / ops",
        "/proc/PID/io",
        "KiB that the server wrote per operation, each time that a page in the page cache becomes \
         dirty",
        Computed(|facts| facts.server_kib_per_operation(HostReading::ServerWriteBytes));
    CLIENT_CPU_US_PER_OP = "client_cpu_us_per_op", "us/op", Neutral, 2,
        "CPU of the trial process / ops",
        "process CPU clock",
        "CPU our own client takes per operation",
        Computed(|facts| facts.cpu_us_per_operation(HostReading::ClientCpu));
    PROCESS_CPU_US_PER_OP = "process_cpu_us_per_op", "us/op", Lower, 2,
        "CPU of the trial process / ops",
        "process CPU clock",
        "embedded engine and client together, per operation",
        Computed(|facts| facts.cpu_us_per_operation(HostReading::ProcessCpu));
    P50_SERVICE_US = "p50_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "median service time of the step's operation",
        Quantile(Service, 0.5);
    P90_SERVICE_US = "p90_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "90th percentile of service time",
        Quantile(Service, 0.9);
    P99_SERVICE_US = "p99_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "99th percentile of service time",
        Quantile(Service, 0.99);
    P999_SERVICE_US = "p999_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "99.9th percentile of service time",
        Quantile(Service, 0.999);
    MAX_SERVICE_US = "max_service_us", "us", Lower, 0,
        "histogram of done - sent",
        "load loop",
        "longest service time",
        Quantile(Service, 1.0);
    P50_RESPONSE_US = "p50_response_us", "us", Lower, 0,
        "histogram of done - due; open loop only",
        "load loop",
        "median response time from the planned instant: no coordinated omission",
        Quantile(Response, 0.5);
    P90_RESPONSE_US = "p90_response_us", "us", Lower, 0,
        "histogram of done - due; open loop only",
        "load loop",
        "90th percentile of response time",
        Quantile(Response, 0.9);
    P99_RESPONSE_US = "p99_response_us", "us", Lower, 0,
        "histogram of done - due; open loop only",
        "load loop",
        "99th percentile of response time",
        Quantile(Response, 0.99);
    P999_RESPONSE_US = "p999_response_us", "us", Lower, 0,
        "histogram of done - due; open loop only",
        "load loop",
        "99.9th percentile of response time",
        Quantile(Response, 0.999);
    MAX_RESPONSE_US = "max_response_us", "us", Lower, 0,
        "histogram of done - due; open loop only",
        "load loop",
        "longest response time",
        Quantile(Response, 1.0);
    P50_LAG_US = "p50_lag_us", "us", Lower, 0,
        "histogram of sent - due; open loop only",
        "load loop",
        "median lateness of the client's sends",
        Quantile(Lag, 0.5);
    P99_LAG_US = "p99_lag_us", "us", Lower, 0,
        "histogram of sent - due; open loop only",
        "load loop",
        "99th percentile of lateness: how long operations queued in the client",
        Quantile(Lag, 0.99);
    RATE_SHARE = "rate_share", "share", Higher, 4,
        "achieved background rate / target, over each client's active window",
        "load loop",
        "1.0 is the target; under 0.95 the step has missed its SLA",
        Computed(|facts| facts.rate_share());
    SECONDS_UNDER_RATE = "seconds_under_rate", "share", Lower, 3,
        "seconds with less than 95 % of the rows due in them / seconds",
        "1-s series",
        "how much of the step the background writers were behind",
        Computed(|facts| facts.seconds_under_rate());
    BACKLOG = "backlog", "ops", Lower, 0,
        "operations due before the schedule's end and not done within a second after it",
        "load loop",
        "what was still owed when the schedule ended",
        Computed(|facts| facts.backlog());
    WAIT_SHARE = "wait_share", "share", Lower, 3,
        "time in tries that met a lock and their pauses / time of all workers of the role",
        "load loop",
        "share of the writers' time spent waiting for the write lock",
        Computed(|facts| facts.wait_share());
    EXCLUDED_WAIT_S = "excluded_wait_s", "s", Lower, 2,
        "time in tries that were given up and tried again, and in the pauses after them, all \
         clients",
        "load loop",
        "waiting that no service time has: refused tries, locks, lost connections",
        Computed(|facts| facts.excluded_wait_s());
    STEAL_SHARE = "steal_share", "share", Neutral, 4,
        "steal / all CPU time",
        "/proc/stat",
        "CPU the hypervisor gave to others: a witness of outside disturbance",
        Computed(|facts| facts.steal_share());
    FOREIGN_CPU_CORES = "foreign_cpu_cores", "cores", Neutral, 2,
        "(CPU of the whole host - CPU of client and server) / seconds",
        "/proc/stat, process CPU clocks",
        "CPU that other processes and the kernel's own threads used: a witness of outside \
         disturbance",
        Computed(|facts| facts.foreign_cpu_cores());
    PSI_CPU_SHARE = "psi_cpu_share", "share", Neutral, 3,
        "growth of 'some' stall time / seconds",
        "/proc/pressure/cpu",
        "share of time in which some task waited for a CPU",
        Computed(|facts| facts.per_second(HostReading::PsiCpuSome));
    PSI_IO_SHARE = "psi_io_share", "share", Neutral, 3,
        "growth of 'some' stall time / seconds",
        "/proc/pressure/io",
        "share of time in which some task waited for storage",
        Computed(|facts| facts.per_second(HostReading::PsiIoSome));
    PSI_MEMORY_SHARE = "psi_memory_share", "share", Neutral, 3,
        "growth of 'some' stall time / seconds",
        "/proc/pressure/memory",
        "share of time in which some task waited for memory",
        Computed(|facts| facts.per_second(HostReading::PsiMemorySome));
}

/// The 20 columns of the Insert Benchmark's metrics line before its tag, in its order.
pub const CLASSIC_COLUMNS: [&Metric; 20] = [
    IPS, QPS, RPS, RMBPS, WPS, WMBPS, RPQ, RKBPQ, WPI, WKBPI, CSPS, CPUPS, CSPQ, CPUPQ, DBGB1,
    DBGB2, RSS, MAXOP, P50_RATE, P99_RATE,
];
