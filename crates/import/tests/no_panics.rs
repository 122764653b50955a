//! No reader panics or takes memory out of proportion, whatever bytes it is given: random ones, and
//! real ones that were cut, repeated or changed.

use peak_alloc::PeakAlloc;
use plimsoll_import::host::{iostat, vmstat};
use plimsoll_import::insert_benchmark::{client, metrics_lines, step_result};
use plimsoll_import::names::folder::CellName;
use plimsoll_import::names::test_file::TestFile;
use plimsoll_import::names::version::{Version, compare_builds};
use plimsoll_import::other::{hdr_log, pgbench, pgbench_log, table};
use plimsoll_import::rocksdb::{self, log, rows};
use plimsoll_import::sysbench::perf_join::{self, JoinName};
use plimsoll_import::sysbench::{load, metrics, output, perf, published, rates_line, time};
use proptest::prelude::*;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What all readers may take at once for so many bytes, other tests of this program included: one
/// histogram of many digits has 27 MB.
fn most_bytes(input: usize) -> usize {
    64 * input + (128 << 20)
}

/// Every reader on the same bytes, within bounds.
fn read_all(bytes: &[u8]) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    read(bytes);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    assert!(
        taken < most_bytes(bytes.len()),
        "{taken} bytes for {}",
        bytes.len()
    );
}

/// Every reader on the same bytes, and what is done with what it read.
fn read(bytes: &[u8]) {
    if let Ok(output) = output::read(bytes) {
        let _ = (
            output.scan_krows_per_thread(),
            output.scan_krows_of_all_threads(),
            output.queries_per_s(),
            output.script(),
        );
    }
    let _ = metrics::read(bytes).map(|metrics| metrics.to_text());
    let _ = (perf::read(bytes), time::read(bytes));
    let _ = (
        load::read(bytes),
        rates_line::read(bytes),
        published::read_rates(bytes),
        published::read_costs(bytes),
    );
    let _ = vmstat::read(bytes).map(|vmstat| (vmstat.classic(), vmstat.clean()));
    let _ = iostat::read(bytes).map(|iostat| (iostat.matching("sd"), iostat.of("sda")));
    let _ = client::read(bytes).map(|client| {
        (
            client.nth_rate(99.0, |second| second.i_qps),
            client.seconds_exact(),
            client.queries(),
        )
    });
    let _ = (
        step_result::read(bytes),
        metrics_lines::read(bytes).map(|lines| lines.is_relative()),
    );
    let _ = (rows::read(bytes), rocksdb::table::read(bytes));
    let join = JoinName::of(JOIN).expect("it is the name of such a file");
    let _ = perf_join::read(join, bytes);
    let _ = log::read(bytes).map(|log| (log.rate(), log.stats.notes()));
    let _ = (
        pgbench::read(bytes),
        pgbench_log::read(bytes),
        hdr_log::read(bytes),
        table::read(bytes),
    );
    let text = String::from_utf8_lossy(bytes);
    let _ = (
        output::is_output(&text, &text),
        iostat::is_iostat(&text),
        rows::is_rows(&text),
        log::is_log(&text),
        table::is_table(&text),
        rocksdb::table::is_table(&text),
    );
    let _ = (
        client::is_client(&text),
        pgbench_log::is_pgbench_log(&text),
        output::strip_passwords(&text),
    );
}

const JOIN: &str = "join1.abs.all.sb.perf.hw.scan.range100.pk1.1.sorted";

/// Samples of every format, of our own making.
const SAMPLES: [&str; 15] = [
    include_str!("samples/sysbench-1.0.txt"),
    include_str!("samples/o.res.txt"),
    include_str!("samples/db_bench.log"),
    "iostat, vmstat normalized by operation \
    rate\nsamp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\n6\t1\t0\t3\t0\t0\t0\t0\t9\n\nsamp\tcs/s\tcpu/s\tcs/o\tcpu/o\n6\t5\t1\t4\t0.01\n",
    "col-1 : x.a.b.pk1\n\ncol-1\n1\tscan_range=100\n",
    "x\n--- absolute\ncpu/o\t\tcs/o\n1\t2\t3\t4\t5\t6\tx.a.b.pk1\n--- relative to first result\n",
    "procs ---\n r b swpd free buff cache si so bi bo in cs us sy\n 1 0 0 0 0 0 0 0 0 0 0 9 1 1\n",
    "Device r/s rkB/s w/s wkB/s\nsda 1 2 3 4\n",
    "iibench \
    --a=b\ni_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\n1\t1\t1\t1\t1\t1\t1\t1\t1\t1\nInsert rt: 0 0 0 0 0 0 0 0 0 0 0.1\nTotals: 1.0 secs, 1.0 rows/sec, 1 rows\nDone\n",
    "number of transactions actually processed: 5\nlatency average = 1 ms\ntps = 5.0 (x)\n",
    "0 1 1000 0 1700000000 5\n0 2 1000 0 1700000001 5\n",
    "build,step,metric,value\na,b,qps,1\n",
    "9.8.4\t10.2.1\ttest\n1.00\t1.07\tfillseq\n",
    "cycles 10 20\nbus-cycles -1 -1\n",
    "Relative to: my1_rel.z\ncol-1 : my2_rel.z\n\n- writes\ncol-1\n1.50\tdelete\n",
];

/// Its header claims 4 GiB of counts.
#[test]
fn a_histogram_that_claims_much_takes_little() {
    let log = "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"x\"\n\
        0.0,1.0,1.0,HISTFAAAACF42pNpmSz8HwgYIIAZSjMCmW4GOxYw2H+ACDABAN/4CEk=\n";
    read_all(log.as_bytes());
    assert!(hdr_log::read(log.as_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        read_all(&bytes);
    }

    #[test]
    fn words_of_the_formats(words in proptest::collection::vec(
        prop_oneof![
            Just("SQL statistics:\n"), Just("queries:"), Just("(1.0 per sec.)"), Just("time \
                elapsed:"), Just("1e308"), Just("-1"), Just("NaN"), Just("inf"),
            Just("18446744073709551615"), Just("99999999999999999999"), Just("\n"), Just("\t"), Just(" "), Just("samp\t"), Just("Sum"), Just("Level"),
            Just("Comp(sec)"), Just("Size"), Just("GB"), Just("i_sec\tt_sec"), Just("Insert rt:"), Just("#[Histogram log format version 1.3]\n"), Just(","),
            Just("Tag=a"), Just("HISTFAAAAC14nJNpmSzMwMDAxAABzFCaEUoz2X+AMIKZAEARAtM="), Just("ops_sec\tmb_sec\t"), Just("failed"), Just("1700000000"),
            Just("Device"), Just(" r/s"), Just(" w/s"), Just("rkB/s"), Just("wkB/s"), Just("procs "), Just("swpd"), Just("cs"), Just("us"), Just("sy"),
            Just("th, "), Just(" = "), Just("\u{2028}"), Just("€"), Just("--x-password"), Just("=")
        ],
        0..60,
    )) {
        read_all(words.concat().as_bytes());
    }

    #[test]
    fn real_files_cut_and_changed(sample in 0..SAMPLES.len(), cut in 0.0..1.0f64, place in 0.0..1.0f64, replacement in proptest::collection::vec(any::<u8>(), 0..6)) {
        let bytes = SAMPLES[sample].as_bytes();
        read_all(&bytes[..(cut * bytes.len() as f64) as usize]);
        let at = (place * (bytes.len() - 1) as f64) as usize;
        let changed = [&bytes[..at], &replacement, &bytes[at + 1..]].concat();
        read_all(&changed);
    }

    #[test]
    fn names(name in "[a-z0-9._€-]{0,40}", other in "[a-z0-9._]{0,20}") {
        let _ = (CellName::of_sysbench(&name), CellName::of_insert_benchmark(&name), TestFile::of(&name), Version::of(&name));
        let _ = (CellName::of_published(&name), JoinName::of(&name), JoinName::of(&format!("join1.abs.{name}.sb.perf.hw.{other}.sorted")));
        let _ = (TestFile::of(&format!("sb.{name}")), CellName::of_sysbench(&format!("x.{name}.pk1")), Version::of(&format!("pg{other}")));
        // An order, whatever the names.
        prop_assert_eq!(compare_builds(&name, &other), compare_builds(&other, &name).reverse());
    }
}

#[test]
fn samples_are_read_by_their_own_readers() {
    let is_read = [
        output::read(SAMPLES[0].as_bytes()).is_ok(),
        step_result::read(SAMPLES[1].as_bytes()).is_ok(),
        log::read(SAMPLES[2].as_bytes()).is_ok(),
        metrics::read(SAMPLES[3].as_bytes()).is_ok(),
        published::read_rates(SAMPLES[4].as_bytes()).is_ok(),
        published::read_costs(SAMPLES[5].as_bytes()).is_ok(),
        vmstat::read(SAMPLES[6].as_bytes()).is_ok(),
        iostat::read(SAMPLES[7].as_bytes()).is_ok(),
        client::read(SAMPLES[8].as_bytes()).is_ok(),
        pgbench::read(SAMPLES[9].as_bytes()).is_ok(),
        pgbench_log::read(SAMPLES[10].as_bytes()).is_ok(),
        table::read(SAMPLES[11].as_bytes()).is_ok(),
        rocksdb::table::read(SAMPLES[12].as_bytes()).is_ok(),
        perf_join::read(JoinName::of(JOIN).unwrap(), SAMPLES[13].as_bytes()).is_ok(),
        published::read_rates(SAMPLES[14].as_bytes()).is_ok(),
    ];
    assert_eq!(is_read, [true; 15]);
}
