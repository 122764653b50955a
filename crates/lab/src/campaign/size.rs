//! What a cell's data takes on the disk, and whether that is there.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::plan::{Cell, Plan, Workload};
use plimsoll_core::units::format_bytes;
use plimsoll_engine::bytes_at_start;
use plimsoll_store::header::CellHeader;
use plimsoll_workload::kv::is_universal;

use crate::error::LabError;

/// Free space must exceed the estimate by this factor.
const DISK_MARGIN: f64 = 1.2;

/// A cautious estimate of the bytes on disk per row of sysbench's tables, and of those that users
/// describe, on any engine: some 230 of the row and its two indexes, as much again for what updates
/// leave behind, and logs.
const SYSBENCH_ROW_BYTES: u64 = 600;

/// Rows a cell's tables hold at their largest.
fn peak_rows(cell: &Cell) -> u64 {
    let mut rows = 0u64;
    let mut peak = 0;
    for step in cell.workload.steps() {
        let inserted = step.all_inserted_rows();
        peak = peak.max(rows.saturating_add(inserted));
        if !step.deletes {
            rows = rows.saturating_add(inserted);
        } else {
            // Deleted space is reused, with some lag.
            peak = peak.max(rows.saturating_add(rows / 10));
        }
    }
    // With deletes the table never holds more than what was loaded and a little.
    let deletes = cell
        .workload
        .steps()
        .iter()
        .any(|step| step.deletes && step.makes_data());
    if deletes {
        rows.saturating_add(rows / 10)
    } else {
        peak
    }
}

/// An estimate of the bytes that a cell's tables and indexes take at their largest.
pub(crate) fn peak_table_bytes(cell: &Cell, settings: &BTreeMap<String, String>) -> u64 {
    let engine = cell.build.engine;
    let row_bytes = match cell.workload {
        Workload::InsertBenchmark(_) => engine.facts().bytes_per_row,
        // Universal compaction may hold all of it twice, and write it a third time.
        Workload::Rocksdb(_) if is_universal(settings) => engine.facts().bytes_per_row * 2,
        Workload::Rocksdb(_) => engine.facts().bytes_per_row,
        Workload::Sysbench(_) | Workload::File(_) => SYSBENCH_ROW_BYTES,
    };
    peak_rows(cell).saturating_mul(row_bytes)
}

/// Rows a cell's tables hold at their largest, and an estimate of the bytes that its data directory
/// takes then, logs that are made in advance included.
pub(crate) fn peak_size(cell: &Cell, settings: &BTreeMap<String, String>) -> (u64, u64) {
    // An external server has its own disk, which we know nothing of.
    let of_ours =
        || peak_table_bytes(cell, settings).saturating_add(bytes_at_start(&cell.build, settings));
    (
        peak_rows(cell),
        if cell.server.is_some() { 0 } else { of_ours() },
    )
}

/// A server's own tables, and what else it has at least.
const OWN_BYTES: u64 = 256 << 20;

/// An estimate of the bytes that a cell's data takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataSize {
    /// At their largest, see [`peak_size`].
    pub peak: u64,
    /// Once it is made and sparse: logs that are made in advance have zeros in them, but for what
    /// the load wrote.
    pub kept: u64,
}

impl DataSize {
    pub fn of(cell: &Cell, settings: &BTreeMap<String, String>) -> Self {
        let (_, peak) = peak_size(cell, settings);
        let tables = peak_table_bytes(cell, settings);
        let kept = peak.min(tables.saturating_mul(3).saturating_add(OWN_BYTES));
        Self { peak, kept }
    }

    /// What the data of several cells takes besides what is kept of it, while so many of them are
    /// made side by side.
    pub fn more_while_made(of: &[Self], at_once: usize) -> u64 {
        let mut more: Vec<u64> = of.iter().map(|size| size.peak - size.kept).collect();
        more.sort_unstable_by(|a, b| b.cmp(a));
        more.iter().take(at_once).sum()
    }
}

/// Trials run one after the other and remove their data, so the largest cell decides.
pub(crate) fn check_disk(
    plan: &Plan,
    headers: &[CellHeader],
    data_dir: &Path,
) -> Result<(), LabError> {
    let sizes = plan
        .cells
        .iter()
        .zip(headers)
        .map(|(cell, header)| (peak_size(cell, &header.settings).1, cell.label.as_str()));
    let (bytes, cell) = sizes.max().unwrap_or_default();
    check_free(bytes, &format!("cell {cell}"), data_dir)
}

/// Refuses a disk without room for so many bytes and a margin.
pub(crate) fn check_free(bytes: u64, what: &str, data_dir: &Path) -> Result<(), LabError> {
    let free = plimsoll_host::free_bytes(data_dir).map_err(|error| {
        LabError::io(
            format!("failed to read the free space of {}", data_dir.display()),
            error,
        )
    })?;
    if (free as f64) < bytes as f64 * DISK_MARGIN {
        return Err(LabError::Machine(format!(
            "the disk is too small: {what} needs about {} in {} and {} are free; lower rows, or \
            choose a larger disk with --data DIR",
            format_bytes((bytes as f64 * DISK_MARGIN) as u64),
            data_dir.display(),
            format_bytes(free)
        )));
    }
    Ok(())
}
