//! From a campaign's header of format 1 to today's: there a workload had no name around it, and a
//! step held what it does instead of its facts.

use plimsoll_core::plan::format_1::OldStep;
use plimsoll_core::plan::{Family, Step};
use serde_json::{Value, from_value, json, to_value};

use crate::campaign::header::FORMAT;

/// The header as this version writes it.
pub(crate) fn upgraded(mut header: Value) -> serde_json::Result<Value> {
    for cell in list(header.pointer_mut("/plan/cells")) {
        let Some(workload) = cell.get_mut("workload") else {
            continue;
        };
        upgrade_steps(workload.get_mut("steps"))?;
        if let Value::String(name) = to_value(family(workload))? {
            *workload = json!({ name: workload.take() });
        }
    }
    for steps in list(header.pointer_mut("/confirm/before")) {
        upgrade_steps(Some(steps))?;
    }
    // A header that is not an object is refused by whoever reads it.
    if let Some(format) = header.get_mut("format") {
        *format = FORMAT.into();
    }
    Ok(header)
}

fn upgrade_steps(steps: Option<&mut Value>) -> serde_json::Result<()> {
    for step in list(steps) {
        let old: OldStep = from_value(step.take())?;
        *step = to_value(Step::from(old))?;
    }
    Ok(())
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Each benchmark's sizes have a key that the others lack.
fn family(workload: &Value) -> Family {
    let has = |key: &str| workload.get(key).is_some();
    if has("sysbench") {
        Family::Sysbench
    } else if has("workload_file") {
        Family::File
    } else if has("keys") {
        Family::Rocksdb
    } else {
        Family::InsertBenchmark
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use plimsoll_core::plan::{Effect, Plan, Work};

    use super::*;

    /// Steps of a workload file that read were steps that write, and their campaigns ran so.
    fn as_it_was(mut plan: Plan) -> Plan {
        for cell in &mut plan.cells {
            let steps = cell.workload.steps().iter().cloned();
            let as_it_was = |step: Step| match (&step.work, step.effect) {
                (Work::File(_), Effect::Reads) => Step {
                    effect: Effect::Writes,
                    ..step
                },
                _ => step,
            };
            cell.workload = cell.workload.with_steps(steps.map(as_it_was).collect());
        }
        plan
    }

    /// Plans of each benchmark beside what format 1 made of them.
    #[test]
    fn plans_of_format_1_are_what_their_text_is_today() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1-plans");
        let text = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        for name in [
            "insert-benchmark",
            "insert-benchmark-2023-05",
            "insert-benchmark-2017",
            "sysbench",
            "rocksdb",
            "file",
        ] {
            let plan: Value = serde_json::from_str(&text(&format!("{name}.json"))).unwrap();
            let before = json!([plan["cells"][0]["workload"]["steps"]]);
            let old = json!({ "format": 1, "plan": plan, "confirm": { "before": before } });
            let header = upgraded(old).unwrap();
            let today = Plan::parse_with("t.toml", &text(&format!("{name}.toml")), &|file| {
                Ok(text(file))
            });
            let today = as_it_was(today.unwrap());
            let before: Vec<Vec<Step>> = from_value(header["confirm"]["before"].clone()).unwrap();
            assert_eq!(before, [today.cells[0].workload.steps()], "{name}");
            let plan: Plan = from_value(header["plan"].clone()).unwrap();
            assert_eq!(plan, today, "{name}");
            assert_eq!(header["format"], FORMAT);
        }
    }

    #[test]
    fn a_header_without_a_step_that_is_known_is_an_error() {
        let step = json!({ "name": "x", "kind": "fly", "clients": 1 });
        let cell = json!({ "workload": { "era": "current", "steps": [step] } });
        let header = json!({ "format": 1, "plan": { "cells": [cell] } });
        assert!(upgraded(header).is_err());
    }
}
