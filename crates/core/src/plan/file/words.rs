//! A workload file in words.

use super::{FileWork, FileWorkload};
use crate::plan::words::form_of_statements;
use crate::plan::{LoadMode, Step};
use crate::units::{count, format_count};

impl FileWorkload {
    pub(in crate::plan) fn description(&self) -> String {
        format!(
            "{}, {} with {} rows in all, {}",
            count(self.clients, "client"),
            count(self.tables, "table"),
            format_count(self.rows),
            form_of_statements(self.prepared)
        )
    }
}

impl FileWork {
    pub(in crate::plan) fn description(&self, step: &Step) -> String {
        match self {
            Self::Fill { tables, rows, load } => {
                let how = match load {
                    LoadMode::Fast => "in the engine's fastest way",
                    LoadMode::Classic => "by one connection",
                };
                format!(
                    "{} with {} rows in all created, loaded {how}, and indexed",
                    count(*tables, "table"),
                    format_count(*rows)
                )
            }
            Self::Mix { events } => {
                format!("events: {}; {}", weights(events), step.timing("events"))
            }
        }
    }
}

fn weights(events: &[(String, u32)]) -> String {
    if let [(only, _)] = events {
        return only.clone();
    }
    let sum: f64 = events.iter().map(|(_, weight)| f64::from(*weight)).sum();
    let parts: Vec<String> = events
        .iter()
        .map(|(name, weight)| {
            let percent = 100.0 * f64::from(*weight) / sum;
            format!("{name} {percent:.3} %").replace(".000", "")
        })
        .collect();
    parts.join(", ")
}
