//! The columns of db_bench's `report.tsv`, which reader and writer share.

/// The columns that are numbers, in their order: their names in the file, and the metrics that hold
/// them.
pub const METRICS: [(&str, &str); 23] = [
    ("ops_sec", "qps"),
    ("mb_sec", "mb_sec"),
    ("lsm_sz", "lsm_gb"),
    ("blob_sz", "blob_gb"),
    ("c_wgb", "c_wgb"),
    ("w_amp", "w_amp"),
    ("c_mbps", "c_mbps"),
    ("c_wsecs", "c_wsecs"),
    ("c_csecs", "c_csecs"),
    ("b_rgb", "b_rgb"),
    ("b_wgb", "b_wgb"),
    ("usec_op", "usec_op"),
    ("p50", "p50_service_us"),
    ("p99", "p99_service_us"),
    ("p99.9", "p999_service_us"),
    ("p99.99", "p9999_service_us"),
    ("pmax", "max_service_us"),
    ("uptime", "uptime_s"),
    ("stall%", "stall_pct"),
    ("Nstall", "n_stall"),
    ("u_cpu", "u_cpu_ks"),
    ("s_cpu", "s_cpu_ks"),
    ("rss", "rss"),
];

/// What the operations of its benchmark are called in results.
pub const OPERATIONS: [&str; 4] = ["put", "get", "multiget", "range"];

/// Before the name of a metric: a note of what db_bench printed for it.
pub const PRINTED: &str = "printed.";

/// The note that a step's load was made by db_bench.
pub const DRIVEN_BY_DB_BENCH: &str = "driven_by_db_bench";

/// Whether a step is in the tables over versions: some only drain, or only make versions of keys.
pub fn is_in_tables(step: &str) -> bool {
    !step.contains("revrange.t") && !step.contains("overwritesome")
}

/// The note of a step's logical size in bytes: keys x bytes of a key and its value.
pub const LOGICAL_BYTES: &str = "logical_bytes";

/// Who made the load of what we export: the first line of every file that may have one, behind
/// `# `.
pub const NATIVE: &str = "native: measured by plimsoll's own threads, not by db_bench; compare \
                         such rows with each other";
/// The same where db_bench made it.
pub const DRIVEN: &str =
    "driven by plimsoll, measured by db_bench: its rates, latencies and statistics";
/// The same where some rows are of the one and some of the other.
pub const MIXED: &str = "native rows and rows of db_bench: do not compare the ones with the others";

/// The columns behind them.
pub const FACTS: [&str; 5] = ["test", "date", "version", "job_id", "githash"];
