//! Collects cells, steps and results, and puts them in order.

use std::collections::BTreeMap;

use plimsoll_analysis::metrics::Metric;
use plimsoll_core::name::natural_cmp;
use plimsoll_store::imported::{
    Family, Imported, ImportedCell, ImportedResult, ImportedStep, ImportedValue, LeftOut,
};

use crate::names::folder::CellName;
use crate::names::version::{Version, compare_builds};

/// Values of a result, put and found by metric.
pub(super) type Values = BTreeMap<String, ImportedValue>;

pub(super) trait ByMetric {
    fn put(&mut self, metric: &Metric, value: ImportedValue);

    /// Only if there is none yet.
    fn put_if_missing(&mut self, metric: &Metric, value: ImportedValue);

    fn of(&self, metric: &Metric) -> Option<&ImportedValue>;
}

impl ByMetric for Values {
    fn put(&mut self, metric: &Metric, value: ImportedValue) {
        self.insert(metric.name.to_owned(), value);
    }

    fn put_if_missing(&mut self, metric: &Metric, value: ImportedValue) {
        self.entry(metric.name.to_owned()).or_insert(value);
    }

    fn of(&self, metric: &Metric) -> Option<&ImportedValue> {
        self.get(metric.name)
    }
}

/// A step that is not a test of a published table.
pub(super) fn plain_step(
    name: &str,
    description: &str,
    operation: &str,
    rate: &str,
) -> ImportedStep {
    ImportedStep {
        name: name.to_owned(),
        test: name.to_owned(),
        range: None,
        group: String::new(),
        description: description.to_owned(),
        operation: operation.to_owned(),
        rate: rate.to_owned(),
    }
}

/// A campaign that is being built.
pub(super) struct Builder {
    pub family: Family,
    cells: Vec<ImportedCell>,
    steps: Vec<ImportedStep>,
    results: BTreeMap<(usize, usize), ImportedResult>,
    /// What relative tables divide by, if nothing else is asked for: else the first in order.
    pub base: Option<usize>,
    pub left_out: Vec<LeftOut>,
    pub notes: Vec<String>,
    pub passwords: u64,
}

impl Builder {
    pub fn new(family: Family) -> Self {
        Self {
            family,
            cells: Vec::new(),
            steps: Vec::new(),
            results: BTreeMap::new(),
            base: None,
            left_out: Vec::new(),
            notes: Vec::new(),
            passwords: 0,
        }
    }

    /// The cell of this name, made when it is new. `shape` goes into the label when it is not
    /// empty.
    pub fn cell(&mut self, name: &CellName, shape_label: &str) -> usize {
        let label = if shape_label.is_empty() {
            name.label()
        } else {
            format!("{}.{shape_label}", name.label())
        };
        if let Some(index) = self.cells.iter().position(|cell| cell.label == label) {
            return index;
        }
        let version = Version::of(&name.build)
            .map(|version| version.text())
            .unwrap_or_default();
        self.cells.push(ImportedCell {
            label,
            original: name.original.clone(),
            build: name.build.clone(),
            config: name.config.clone(),
            version,
            shape: String::new(),
        });
        self.cells.len() - 1
    }

    pub fn cell_mut(&mut self, index: usize) -> &mut ImportedCell {
        &mut self.cells[index]
    }

    pub fn find_original(&self, original: &str) -> Option<usize> {
        self.cells.iter().position(|cell| cell.original == original)
    }

    /// The cell of this name, if there is one.
    pub fn find_cell(&self, name: &CellName) -> Option<usize> {
        let by_label = || {
            let label = name.label();
            self.cells.iter().position(|cell| cell.label == label)
        };
        self.find_original(&name.original).or_else(by_label)
    }

    /// What is known of a cell in the step of this name.
    pub fn find_result(&self, cell: usize, step: &str) -> Option<&ImportedResult> {
        let step = self.steps.iter().position(|known| known.name == step)?;
        self.results.get(&(cell, step))
    }

    /// The same, to add to it.
    pub fn find_result_mut(&mut self, cell: usize, step: &str) -> Option<&mut ImportedResult> {
        let step = self.steps.iter().position(|known| known.name == step)?;
        self.results.get_mut(&(cell, step))
    }

    /// Whether there is no result yet.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// The step of this name, made when it is new.
    pub fn step(&mut self, step: ImportedStep) -> usize {
        self.steps
            .iter()
            .position(|known| known.name == step.name)
            .unwrap_or_else(|| {
                self.steps.push(step);
                self.steps.len() - 1
            })
    }

    /// The result of a cell in a step, made when it is new.
    pub fn result(&mut self, cell: usize, step: usize) -> &mut ImportedResult {
        self.results
            .entry((cell, step))
            .or_insert_with(|| ImportedResult {
                cell,
                step,
                era: String::new(),
                failed: None,
                values: BTreeMap::new(),
                facts: BTreeMap::new(),
                counters: BTreeMap::new(),
                responses: Vec::new(),
                series: Vec::new(),
            })
    }

    pub fn leave_out(&mut self, path: &str, reason: impl ToString) {
        self.left_out.push(LeftOut {
            path: path.to_owned(),
            reason: reason.to_string(),
        });
    }

    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Everything in its order: cells by version and config, steps by `compare`. `None` when there
    /// is no result.
    pub fn finish(
        self,
        compare: impl Fn(&ImportedStep, &ImportedStep) -> std::cmp::Ordering,
    ) -> Option<Imported> {
        if self.results.is_empty() {
            return None;
        }
        let mut cell_order: Vec<usize> = (0..self.cells.len()).collect();
        cell_order.sort_by(|a, b| {
            let (a, b) = (&self.cells[*a], &self.cells[*b]);
            compare_builds(&a.build, &b.build)
                .then_with(|| natural_cmp(&a.config, &b.config))
                .then_with(|| natural_cmp(&a.label, &b.label))
        });
        let mut step_order: Vec<usize> = (0..self.steps.len()).collect();
        step_order.sort_by(|a, b| compare(&self.steps[*a], &self.steps[*b]));
        let place = |order: &[usize]| {
            let mut places = vec![0; order.len()];
            order
                .iter()
                .enumerate()
                .for_each(|(place, index)| places[*index] = place);
            places
        };
        let (cell_places, step_places) = (place(&cell_order), place(&step_order));
        let mut results: Vec<ImportedResult> = self
            .results
            .into_values()
            .map(|result| ImportedResult {
                cell: cell_places[result.cell],
                step: step_places[result.step],
                ..result
            })
            .collect();
        results.sort_by_key(|result| (result.cell, result.step));
        Some(Imported {
            format: plimsoll_store::imported::IMPORTED_FORMAT,
            source: String::new(),
            fingerprint: String::new(),
            made_with: String::new(),
            family: self.family,
            base: self.base.map_or(0, |base| cell_places[base]),
            cells: cell_order
                .iter()
                .map(|index| self.cells[*index].clone())
                .collect(),
            steps: step_order
                .iter()
                .map(|index| self.steps[*index].clone())
                .collect(),
            results,
            files_read: 0,
            files_passed_over: 0,
            passwords_stripped: self.passwords,
            left_out: self.left_out,
            notes: self.notes,
        })
    }
}

/// A clean number beside the printed one.
pub(super) fn both(value: f64, classic: impl Into<String>) -> ImportedValue {
    ImportedValue {
        value: Some(value).filter(|value| value.is_finite()),
        classic: Some(classic.into()),
        unavailable: None,
    }
}

/// A number that was printed, and nothing better is known.
pub(super) fn printed(text: &str) -> ImportedValue {
    ImportedValue {
        value: text.parse().ok().filter(|value: &f64| value.is_finite()),
        classic: Some(text.to_owned()),
        unavailable: None,
    }
}

/// A clean number that the originals do not print.
pub(super) fn clean(value: f64) -> ImportedValue {
    ImportedValue {
        value: Some(value).filter(|value| value.is_finite()),
        classic: None,
        unavailable: None,
    }
}
