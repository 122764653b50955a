//! sysbench in words.

use super::{Distribution, LoadMode, Sysbench, SysbenchWork, Test, TestKind};
use crate::plan::words::form_of_statements;
use crate::plan::{Step, Work};
use crate::units::{count, format_count};

impl Sysbench {
    pub(in crate::plan) fn description(&self) -> String {
        let load = self.steps.iter().find_map(|step| match step.work {
            Work::Sysbench(SysbenchWork::Prepare { load, .. }) => Some(load),
            _ => None,
        });
        let load = match load {
            Some(LoadMode::Classic) => "loaded as sysbench does",
            Some(LoadMode::Fast) => "loaded fast",
            None => "loaded before what is measured",
        };
        let levels = || self.steps.iter().filter_map(Step::ramp_level);
        let clients = match (levels().min(), levels().max()) {
            (Some(least), Some(most)) => format!("{least} to {most} clients"),
            _ => count(self.clients, "client"),
        };
        format!(
            "{clients}, {} of {} rows, {load}, {}",
            count(self.tables, "table"),
            format_count(self.rows),
            form_of_statements(self.prepared)
        )
    }
}

impl SysbenchWork {
    pub(in crate::plan) fn description(&self, step: &Step) -> String {
        match self {
            Self::Prepare { tables, rows, load } => {
                let how = match load {
                    LoadMode::Fast => "in the engine's fastest way",
                    LoadMode::Classic => "as sysbench does",
                };
                format!(
                    "{} of {} rows created, loaded {how}, and indexed",
                    count(*tables, "table"),
                    format_count(*rows)
                )
            }
            Self::Test(test) => test.description(step),
        }
    }

    /// What `workload show` has for it.
    pub(in crate::plan) fn summary(&self, step: &Step) -> String {
        match self {
            Self::Prepare { .. } => "create, load and index the tables".to_owned(),
            Self::Test(_) if !step.is_reported => "not reported".to_owned(),
            Self::Test(test) => test.kind.group().title().to_owned(),
        }
    }
}

impl Test {
    fn description(&self, step: &Step) -> String {
        let mix = self.kind.statements();
        let event = match self.kind {
            TestKind::Scan => "scans of a table that match no row, in text".to_owned(),
            kind if kind.is_transaction() => format!(
                "transactions of {} statements ({} read, {} write)",
                mix.all(),
                mix.reads,
                mix.writes
            ),
            _ => "single statements, each committed by itself".to_owned(),
        };
        let range = if self.kind.has_range() {
            format!(" with a range of {}", self.range)
        } else {
            String::new()
        };
        let distribution = match self.distribution {
            Distribution::Uniform => "uniform ids".to_owned(),
            Distribution::Zipfian { exponent } => format!("zipfian ids (exponent {exponent})"),
            Distribution::Pareto { h } => format!("pareto ids (h {h})"),
            Distribution::Gaussian => "gaussian ids".to_owned(),
            Distribution::Special => "ids of sysbench's special distribution".to_owned(),
        };
        format!(
            "{event}{range}, {distribution}, {}",
            step.timing("transactions")
        )
    }
}
