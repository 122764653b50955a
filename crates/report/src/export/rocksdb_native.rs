//! What the scripts around db_bench would have left of a native run: `report.tsv` of each build,
//! `summary.tsv`, tables over versions.

use plimsoll_analysis::metrics::{MetricSet, rocksdb};
use plimsoll_core::rocksdb_report::{
    DRIVEN, DRIVEN_BY_DB_BENCH, FACTS, METRICS, MIXED, NATIVE, is_in_tables,
};
use plimsoll_core::rocksdb_stats::{N_STALL_CLASSIC, PRINTED_STALL_PCT, W_AMP_CLASSIC};

use super::ExportFile;
use plimsoll_analysis::classic::relative;
use plimsoll_analysis::view::{Outcome, StepView, VersionGroup, View};

/// Lines before the header: what the columns are.
const LEGEND: [&str; 7] = [
    "ops_sec operations/s; mb_sec MiB/s of keys and values; usec_op thread time per operation",
    "lsm_sz, blob_sz sizes of tree and blob files; c_wgb GiB written by flushes and compactions; \
    c_mbps the same per second",
    "w_amp (c_wgb + flushes) / ingest: flushes are in it twice, as in the original",
    "c_wsecs, c_csecs wall and CPU seconds of compaction; b_rgb, b_wgb GiB read from and written \
    to blobs: by the names of columns",
    "p50 to pmax microseconds; uptime seconds the database was open; stall% share of it that \
    writes were stalled",
    "Nstall write stalls, empty since RocksDB 8.1 as in the original",
    "u_cpu, s_cpu 1000 seconds of the step's process; rss GiB; date that of the campaign",
];

pub(super) fn files(view: &View) -> Vec<ExportFile> {
    // Every step of the originals has a row, also those that are not reported.
    let steps: Vec<&StepView> = view
        .steps
        .iter()
        .filter(|step| step.set == MetricSet::Keys)
        .collect();
    let has_groups = view.version_groups.len() > 1;
    let mut files = Vec::new();
    for group in &view.version_groups {
        // A set's folder is called so in the originals.
        let folder = if has_groups {
            format!("bm.{}/", group.title.replace(", ", "."))
        } else {
            String::new()
        };
        let who = who(&steps, group);
        let legend: String = [who]
            .iter()
            .chain(&LEGEND)
            .map(|line| format!("# {line}\n"))
            .collect();
        let header = METRICS
            .iter()
            .map(|(column, _)| *column)
            .chain(FACTS)
            .collect::<Vec<_>>()
            .join("\t");
        let row = |step: &StepView, cell: usize| row(view, step, cell);
        for cell in &group.cells {
            let rows: String = steps.iter().filter_map(|step| row(step, *cell)).collect();
            let path = format!("{folder}{}/report.tsv", view.cells[*cell].build);
            files.push(ExportFile {
                path,
                text: format!("{legend}{header}\n{rows}"),
            });
        }
        let paths: String = group
            .cells
            .iter()
            .map(|cell| format!("{}/report.tsv\n", view.cells[*cell].build))
            .collect();
        let blocks: String = steps
            .iter()
            .map(|step| {
                // Rows belong to versions by their place: a version without a result has one that
                // says so.
                let rows: String = group
                    .cells
                    .iter()
                    .map(|cell| row(step, *cell).unwrap_or_else(|| failed(view, step, *cell)))
                    .collect();
                format!("\n{header}\n{rows}")
            })
            .collect();
        files.push(ExportFile {
            path: format!("{folder}summary.tsv"),
            text: format!("# {who}\n{paths}{blocks}"),
        });
        let (absolute, relative) = tables(group, &steps);
        let set = group.title.replace(", ", ".");
        files.push(ExportFile {
            path: format!("{folder}abs.{set}.tsv"),
            text: absolute,
        });
        if group.cells.len() > 1 {
            files.push(ExportFile {
                path: format!("{folder}rel2.{set}.csv"),
                text: relative,
            });
        }
    }
    files
}

fn who(steps: &[&StepView], group: &VersionGroup) -> &'static str {
    let outcomes = || {
        steps
            .iter()
            .flat_map(|step| group.cells.iter().map(|cell| &step.outcomes[*cell]))
            .filter(|outcome| !outcome.measures.is_empty())
    };
    let is_driven = |outcome: &Outcome| outcome.notes.contains_key(DRIVEN_BY_DB_BENCH);
    match (outcomes().any(is_driven), outcomes().all(is_driven)) {
        (false, _) => NATIVE,
        (true, true) => DRIVEN,
        (true, false) => MIXED,
    }
}

/// None where the step never ran: then the originals have no row either.
fn row(view: &View, step: &StepView, cell: usize) -> Option<String> {
    let outcome = &step.outcomes[cell];
    if outcome.measures.is_empty() {
        return (outcome.status != plimsoll_analysis::view::Status::Missing)
            .then(|| failed(view, step, cell));
    }
    let cells: Vec<String> = METRICS
        .iter()
        .map(|(column, metric)| text(outcome, column, metric))
        .collect();
    Some(format!(
        "{}\t{}\n",
        cells.join("\t"),
        facts(view, step, cell)
    ))
}

fn failed(view: &View, step: &StepView, cell: usize) -> String {
    format!(
        "failed{}{}\n",
        "\t".repeat(METRICS.len()),
        facts(view, step, cell)
    )
}

/// Test, date, version, and the two that a native run does not have.
fn facts(view: &View, step: &StepView, cell: usize) -> String {
    let info = &view.cells[cell];
    let version = info.version.trim_start_matches("RocksDB ");
    format!(
        "{}\t{}\t{version}\t\t",
        step.name,
        date(&view.campaigns[info.campaign].created)
    )
}

/// `2023-11-09T16:54:47Z` as the originals write it: without a zero before the day, and without a
/// zone.
fn date(created: &str) -> String {
    let mut parts = created.trim_end_matches('Z').splitn(3, '-');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(year), Some(month), Some(rest)) => {
            format!("{year}-{month}-{}", rest.trim_start_matches('0'))
        }
        _ => created.to_owned(),
    }
}

/// A number in the form of its column.
fn text(outcome: &Outcome, column: &str, metric: &str) -> String {
    let note = |name: &str| outcome.notes.get(name).copied();
    let of_metric = || outcome.measure_of(metric)?.value.value;
    let (number, decimals, without) = match column {
        "ops_sec" => {
            return outcome
                .number(rocksdb::QPS)
                .map_or_else(|| "NA".to_owned(), |rate| format!("{}", rate as u64));
        }
        "lsm_sz" | "blob_sz" => return of_metric().map_or_else(String::new, size),
        "w_amp" => (note(W_AMP_CLASSIC), 1, "NA"),
        "stall%" => (note(PRINTED_STALL_PCT), 1, ""),
        "Nstall" => (note(N_STALL_CLASSIC), 0, ""),
        "u_cpu" => (
            outcome.number(rocksdb::USER_CPU_S).map(|s| s / 1e3),
            1,
            "NA",
        ),
        "s_cpu" => (
            outcome.number(rocksdb::SYSTEM_CPU_S).map(|s| s / 1e3),
            1,
            "NA",
        ),
        "mb_sec" | "rss" => (of_metric(), 1, "NA"),
        "c_wgb" | "c_mbps" | "usec_op" | "p50" => (of_metric(), 1, ""),
        _ => (of_metric(), 0, ""),
    };
    number.map_or_else(
        || without.to_owned(),
        |number| format!("{number:.decimals$}"),
    )
}

/// `16GB`, as RocksDB chooses its units.
fn size(gib: f64) -> String {
    match gib {
        gib if gib >= 10_240.0 => format!("{:.0}TB", gib / 1024.0),
        gib if gib >= 10.0 || gib == 0.0 => format!("{gib:.0}GB"),
        gib => format!("{:.0}MB", gib * 1024.0),
    }
}

fn tables(group: &VersionGroup, steps: &[&StepView]) -> (String, String) {
    let (mut absolute, mut relative) = (String::new(), String::new());
    for step in steps.iter().filter(|step| is_in_tables(&step.name)) {
        let texts: Vec<String> = group
            .cells
            .iter()
            .map(|cell| text(&step.outcomes[*cell], "ops_sec", "qps"))
            .collect();
        absolute.push_str(&format!("{}\t{}\n", texts.join("\t"), step.name));
        let ratio = |text: &String| match (text.parse(), texts[0].parse()) {
            (Ok(value), Ok(base)) => relative::format(value, base),
            _ => "NA".to_owned(),
        };
        let ratios: Vec<String> = texts[1..].iter().map(ratio).collect();
        relative.push_str(&format!("{},{}\n", step.name, ratios.join(",")));
    }
    (absolute, relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_sizes_as_the_originals_write_them() {
        assert_eq!(date("2023-11-09T16:54:47Z"), "2023-11-9T16:54:47");
        assert_eq!(date("2023-11-19T06:54:47Z"), "2023-11-19T06:54:47");
        for (gib, text) in [
            (0.0, "0GB"),
            (0.033, "34MB"),
            (9.99, "10230MB"),
            (15.6, "16GB"),
            (20_480.0, "20TB"),
        ] {
            assert_eq!(size(gib), text);
        }
    }
}
