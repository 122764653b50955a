//! Every reader of other tools' files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_import::host::{iostat, vmstat};
use plimsoll_import::insert_benchmark::{client, metrics_lines, step_result};
use plimsoll_import::other::{hdr_log, pgbench, pgbench_log, table};
use plimsoll_import::rocksdb::{self, log, rows};
use plimsoll_import::sysbench::perf_join::{self, JoinName};
use plimsoll_import::sysbench::{load, metrics, output, perf, published, rates_line, time};

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else {
        return;
    };
    match which % 21 {
        0 => drop(output::read(bytes)),
        1 => drop(metrics::read(bytes).map(|metrics| metrics.to_text())),
        2 => drop(perf::read(bytes)),
        3 => drop(time::read(bytes)),
        4 => drop(load::read(bytes)),
        5 => drop(rates_line::read(bytes)),
        6 => drop(published::read_rates(bytes)),
        7 => drop(published::read_costs(bytes)),
        8 => drop(vmstat::read(bytes).map(|vmstat| (vmstat.classic(), vmstat.clean()))),
        9 => drop(iostat::read(bytes)),
        10 => drop(client::read(bytes).map(|client| client.seconds_exact())),
        11 => drop(step_result::read(bytes)),
        12 => drop(metrics_lines::read(bytes)),
        13 => drop(rows::read(bytes)),
        14 => drop(log::read(bytes).map(|log| (log.rate(), log.stats.notes()))),
        15 => drop(pgbench::read(bytes)),
        16 => drop(pgbench_log::read(bytes)),
        17 => drop(hdr_log::read(bytes)),
        18 => drop(table::read(bytes)),
        19 => drop(rocksdb::table::read(bytes)),
        _ => {
            let join = JoinName::of("join1.abs.all.sb.perf.hw.scan.range100.pk1.1.sorted");
            drop(join.map(|join| perf_join::read(join, bytes)));
        }
    }
});
