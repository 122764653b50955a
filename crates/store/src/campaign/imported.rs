//! Results that another tool measured, kept beside native campaigns.
//!
//! A campaign with an `imported.json` is imported: its plan has no cells, its schedule no trials,
//! and everything it knows is in that file. Each value is from one run and runs are not
//! paired, so no verdict can come from it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::error::IMPORT_AGAIN;
use crate::files::durable::read_file;

pub(crate) const IMPORTED_FILE: &str = "imported.json";

/// The version of `imported.json`. A reader refuses a newer one.
pub const IMPORTED_FORMAT: u32 = 1;

/// Which benchmark the results are of, as far as tables and exports differ by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Sysbench, its microbenchmarks or any other script.
    Sysbench,
    InsertBenchmark,
    /// `db_bench`.
    Rocksdb,
    /// pgbench, latency logs, tables of anything.
    Other,
}

impl Family {
    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sysbench => "sysbench",
            Self::InsertBenchmark => "Insert Benchmark",
            Self::Rocksdb => "RocksDB db_bench",
            Self::Other => "imported results",
        }
    }
}

/// `imported.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// [`IMPORTED_FORMAT`].
    pub format: u32,
    /// The last parts of the folder's path.
    pub source: String,
    /// sha256 over paths and contents of the files that were read: the same tree gives the same
    /// one.
    pub fingerprint: String,
    /// Version of the readers and what the command line said: when they differ, the same tree is
    /// read again.
    pub made_with: String,
    /// The benchmark.
    pub family: Family,
    /// Index into `cells` of the one that relative tables divide by.
    pub base: usize,
    /// Builds with their configs, in the order of versions.
    pub cells: Vec<ImportedCell>,
    /// Steps or tests, in the order of reports.
    pub steps: Vec<ImportedStep>,
    /// At most one per cell and step, in the order of cells and steps.
    pub results: Vec<ImportedResult>,
    /// Files that were read.
    pub files_read: u64,
    /// Files known by their name to hold no results: states of servers, listings.
    pub files_passed_over: u64,
    /// Passwords that stood on recorded command lines; none of them is kept.
    pub passwords_stripped: u64,
    /// What could not be read, and why.
    pub left_out: Vec<LeftOut>,
    /// What a reader must know: assumptions about eras, values that disagree.
    pub notes: Vec<String>,
}

/// A build with its config.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedCell {
    /// `build.config`, what commands and tables call it.
    pub label: String,
    /// The folder's or tag's name in the originals' files: `x.my9500_rel_o2nofp.z12a_c8r32.pk1`.
    pub original: String,
    /// `my9500_rel_o2nofp`.
    pub build: String,
    /// `z12a_c8r32`; empty where the name does not tell.
    pub config: String,
    /// `MySQL 9.5.0`, if the name has it.
    pub version: String,
    /// Clients, tables, rows: what the results say of the load. Empty where they do not.
    pub shape: String,
}

/// A step or test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedStep {
    /// Unique in the campaign: `l.i0`, `hot-points_range=100`.
    pub name: String,
    /// The name without its range, as files carry it.
    pub test: String,
    /// Its range, for sysbench.
    pub range: Option<u32>,
    /// The section of published tables; empty without sections.
    pub group: String,
    /// One line for people.
    pub description: String,
    /// The operation: `query`, `insert`, `index`.
    pub operation: String,
    /// The metric of the tables.
    pub rate: String,
}

/// What one cell came to in one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedResult {
    /// Index into `cells`.
    pub cell: usize,
    /// Index into `steps`.
    pub step: usize,
    /// Which generation of the tool or scripts wrote it.
    pub era: String,
    /// Why it has no values, when the test failed.
    pub failed: Option<String>,
    /// By the names of the metric catalogue and of imported metrics.
    pub values: BTreeMap<String, ImportedValue>,
    /// Facts that exports need and tables do not: numbers of samples, names of original files.
    pub facts: BTreeMap<String, String>,
    /// Hardware counters of the server in a window of ten seconds, means over samples; names as
    /// perf has them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, f64>,
    /// Response times by kind of operation, in the Insert Benchmark's ten buckets.
    pub responses: Vec<ImportedResponses>,
    /// What changed from second to second.
    pub series: Vec<ImportedSeries>,
}

/// A value in both ways of computing it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ImportedValue {
    /// The clean number in the metric's unit.
    pub value: Option<f64>,
    /// As the originals print it, digit for digit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic: Option<String>,
    /// Why there is no clean number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// A response time histogram.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedResponses {
    /// `insert`, `delete` or `query`.
    pub kind: String,
    /// Operations by bucket.
    pub counts: [u64; 10],
    /// The longest, in seconds.
    pub max_s: f64,
}

/// A quantity over the seconds of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImportedSeries {
    /// `query rate`.
    pub title: String,
    pub unit: String,
    /// Seconds between points.
    pub seconds_per_point: u32,
    /// The values; `None` where nothing was printed.
    pub points: Vec<Option<f64>>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOut {
    /// Below the folder that was imported.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Imported {
    /// The result of a cell in a step.
    pub fn result(&self, cell: usize, step: usize) -> Option<&ImportedResult> {
        let place = self
            .results
            .binary_search_by_key(&(cell, step), |result| (result.cell, result.step))
            .ok()?;
        self.results.get(place)
    }

    /// Whether everything that indices point at is there.
    fn is_consistent(&self) -> bool {
        let is_inside = |result: &ImportedResult| {
            result.cell < self.cells.len() && result.step < self.steps.len()
        };
        let is_ordered = self
            .results
            .is_sorted_by(|a, b| (a.cell, a.step) < (b.cell, b.step));
        (self.base < self.cells.len() || self.cells.is_empty())
            && self.results.iter().all(is_inside)
            && is_ordered
    }
}

/// `imported.json` of a campaign's folder; `None` for a native campaign.
pub(crate) fn read_imported(folder: &Path) -> Result<Option<Imported>, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let path = folder.join(IMPORTED_FILE);
    let text = match read_file(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(StoreError::io("read", &path))?,
    };
    let corrupt = |line: usize, reason: String| StoreError::Corrupt {
        path: path.clone(),
        line,
        reason,
        remedy: IMPORT_AGAIN,
    };
    let damaged = |error: serde_json::Error| corrupt(error.line(), error.to_string());
    let Version { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > IMPORTED_FORMAT {
        return Err(StoreError::Newer {
            path: path.clone(),
            found: format,
            known: IMPORTED_FORMAT,
        });
    }
    let imported: Imported = serde_json::from_slice(&text).map_err(damaged)?;
    if !imported.is_consistent() {
        return Err(corrupt(
            1,
            "its results are not in their order, or point at a cell or step that is not there"
                .to_owned(),
        ));
    }
    Ok(Some(imported))
}
