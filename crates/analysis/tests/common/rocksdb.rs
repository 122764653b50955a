//! A campaign of RocksDB: two versions with leveled and with universal compaction.

use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_core::rocksdb_report::LOGICAL_BYTES;
use plimsoll_core::rocksdb_stats;
use plimsoll_store::series::{LevelSample, levels_path, write_levels};

use super::{Campaign, Made, Speed, step};

pub const PLAN: &str = "name = \"rocks\"\nworkload = \"rocksdb\"\nbuilds = [\"rocksdb@8.0.0\", \
                       \"rocksdb@10.10.1\"]\nconfigs = [\"lc\", \"uc\"]\n\
                    [sizes]\nrows = \"400K\"\nclients = 2\nduration = \"12s\"\n";

/// What RocksDB says at the end of a step.
fn stats(version: &str) -> &'static str {
    match version {
        "8.0.0" => include_str!("../../../core/tests/samples/rocksdb.stats.8.0.0.txt"),
        _ => include_str!("../../../core/tests/samples/rocksdb.stats.10.10.1.txt"),
    }
}

/// The newer version is slower at writes and ignores an option; its last step failed with universal
/// compaction.
pub fn sample() -> Campaign {
    let campaign = Campaign::new("20261122T080000Z-rocks", PLAN);
    fill(&campaign, &|_, _| {});
    campaign
}

/// The same with one build, so that each config has one cell.
pub fn of_one_build() -> Campaign {
    let campaign = Campaign::new(
        "20261122T080000Z-rocks",
        &PLAN.replace(", \"rocksdb@10.10.1\"", ""),
    );
    fill(&campaign, &|_, _| {});
    campaign
}

/// Writes a trial for each cell; `edit` may make steps of a cell different.
pub fn fill(campaign: &Campaign, edit: &dyn Fn(&str, &mut Made)) {
    let cells: Vec<String> = campaign
        .folder
        .header
        .plan
        .cells
        .iter()
        .map(|cell| cell.label.clone())
        .collect();
    for (number, label) in (1..).zip(&cells) {
        let is_new = label.contains("10.10.1");
        let version = if is_new { "10.10.1" } else { "8.0.0" };
        let mut settings = vec![
            ("rocksdb_version", version),
            ("compression", "kNoCompression"),
        ];
        if is_new {
            settings.push((
                "not applied: block_cache_low_pri_pool_ratio",
                "this version has no such option",
            ));
        }
        let mut trial = campaign.attempt(number, 1, &settings);
        let speed = Speed {
            writes: if is_new { 0.8 } else { 1.0 },
            queries: if label.ends_with(".uc") { 0.7 } else { 1.0 },
            ..Speed::default()
        };
        let steps = campaign.steps();
        for plan in steps {
            if is_new && label.ends_with(".uc") && plan.name.starts_with("overwriteandwait") {
                let reason = "put: Corruption: block checksum mismatch".to_owned();
                let event = plimsoll_store::event::StepFailed {
                    step: plan.name.clone(),
                    reason,
                    operations: Vec::new(),
                };
                trial.event(plimsoll_store::event::Event::StepFailed(event));
                break;
            }
            let mut made = step(plan, speed);
            made.done.notes = rocksdb_stats::parse(stats(version)).notes();
            let ok = made.done.operations[0].ok;
            made.done
                .notes
                .insert(LOGICAL_BYTES.to_owned(), 400_000.0 * 420.0);
            made.done.notes.insert(
                "operation_bytes".to_owned(),
                (ok * u64::from(plan.operation.keys())) as f64 * 420.0,
            );
            if !plan.is_writing() {
                made.done.notes.insert("found_ratio".to_owned(), 1.0);
            }
            made.done.host.put(HostReading::OwnUser, Reading::Ok(16.0));
            made.done.host.put(HostReading::OwnSystem, Reading::Ok(5.6));
            let levels: Vec<LevelSample> = (0..12)
                .flat_map(|second| {
                    let level = move |level, files: u64| LevelSample {
                        second,
                        level,
                        files,
                        bytes: files << 20,
                    };
                    [
                        level(0, u64::from(second % 4)),
                        level(6, 8 + u64::from(second)),
                        level(7, 120),
                    ]
                })
                .filter(|sample| sample.files > 0)
                .collect();
            write_levels(levels_path(&trial.dir, &plan.name), &levels).unwrap();
            edit(label, &mut made);
            trial.step(made);
        }
        if !(is_new && label.ends_with(".uc")) {
            trial.complete();
        }
    }
}
