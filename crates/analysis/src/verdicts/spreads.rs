//! How far starts of one build lie apart on this machine, from what the store holds.

use std::collections::BTreeMap;

use plimsoll_core::name::EngineName;
use plimsoll_stats::Spread;
use plimsoll_store::{CampaignRecord, Design, TrialRecord};
use serde_json::Value;

use crate::cells::differences::flatten;
use crate::metrics::formulas::measure_cheaply;
use crate::runs::attempts::judge;
use crate::runs::status::Status;

/// The facts that make a machine: stable ones only. `bogomips`, say, may differ from boot to boot.
const MACHINE: [&str; 4] = ["cpu_model", "cpus_online", "memory_bytes", "hypervisor"];

/// What names a machine.
pub(crate) type MachineFacts = Vec<Option<String>>;

/// What names a machine in a campaign's first trial; `None` when no trial recorded its environment.
pub(crate) fn machine(campaign: &CampaignRecord) -> Option<MachineFacts> {
    campaign
        .trials
        .iter()
        .find_map(|trial| trial.environment.as_ref())
        .map(facts)
}

/// What names a machine in an environment.
pub(crate) fn facts(environment: &Value) -> MachineFacts {
    let facts = flatten(environment);
    // Memory differs by some pages from boot to boot: a tenth of a GiB is close enough.
    let rounded = |name: &str, value: &String| match (name, value.parse::<f64>()) {
        ("memory_bytes", Ok(bytes)) => format!("{:.1}", bytes / 1_073_741_824.0),
        _ => value.clone(),
    };
    MACHINE
        .map(|name| facts.get(name).map(|value| rounded(name, value)))
        .to_vec()
}

/// The metrics whose spread is looked at.
const JUDGED: [&str; 4] = [
    "ips",
    "qps",
    "server_cpu_us_per_op",
    "process_cpu_us_per_op",
];
/// What tells that a run was disturbed.
const WITNESSES: [&str; 2] = ["steal_share", "foreign_cpu_cores"];

/// Engine, step and metric.
type Group = (EngineName, String, &'static str);
/// The plan's text, whether it was confirmed, and the cell: runs of it are starts of one thing.
type Experiment = (String, bool, String);

/// Spreads between starts by engine, step and metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spreads {
    /// Groups of ln(value): repeated starts of one cell of one plan.
    groups: BTreeMap<Group, Vec<Vec<f64>>>,
}

impl Spreads {
    /// From every campaign of `stored` that ran on the machine of `of`.
    pub fn of_machine(of: &CampaignRecord, stored: &[CampaignRecord]) -> Self {
        Self::of_facts(machine(of), stored)
    }

    /// From every campaign of `stored` that ran on this machine. Runs that a witness saw disturbed
    /// are left out. Slices are: their numbers are not those of whole steps.
    pub fn of_facts(here: Option<MachineFacts>, stored: &[CampaignRecord]) -> Self {
        let on_this = stored.iter().filter(|campaign| {
            campaign.imported.is_none() && here.is_some() && machine(campaign) == here
        });
        // A cell of a plan is the same experiment in whichever campaign it ran.
        let mut starts: BTreeMap<(Group, Experiment), Vec<f64>> = BTreeMap::new();
        for campaign in on_this {
            let header = &campaign.header;
            if header
                .confirm
                .as_ref()
                .is_some_and(|confirm| confirm.design == Design::Slices)
            {
                continue;
            }
            for scheduled in &header.schedule {
                let cell = &header.plan.cells[scheduled.cell];
                let label = cell.label.trim_end_matches("#2").to_owned();
                let experiment = (header.plan_text.clone(), header.confirm.is_some(), label);
                let attempts = campaign
                    .trials
                    .iter()
                    .filter(|trial| trial.number == scheduled.number && trial.is_complete());
                for done in attempts.rev().take(1).flat_map(TrialRecord::steps_done) {
                    let measures = measure_cheaply(done, &[&JUDGED[..], &WITNESSES[..]].concat());
                    if judge(done, &measures, &[]).0 != Status::Ok {
                        continue;
                    }
                    for measure in measures
                        .iter()
                        .filter(|measure| JUDGED.contains(&measure.metric.name))
                    {
                        if let Some(value) = measure.value.value.filter(|value| *value > 0.0) {
                            let key = (
                                (cell.build.engine, done.step.clone(), measure.metric.name),
                                experiment.clone(),
                            );
                            starts.entry(key).or_default().push(value.ln());
                        }
                    }
                }
            }
        }
        let mut spreads = Self::default();
        for ((group, _), values) in starts {
            if values.len() > 1 {
                spreads.groups.entry(group).or_default().push(values);
            }
        }
        spreads
    }

    /// The spread of an engine's step: its own, shrunk towards that of the engine over all steps,
    /// which is shrunk towards the prior of 3 %.
    pub fn of(&self, engine: EngineName, step: &str, metric: &str) -> Spread {
        let starts = |is_wanted: &dyn Fn(&str) -> bool| -> Vec<Vec<f64>> {
            let groups = self
                .groups
                .iter()
                .filter(|((of, at, name), _)| *of == engine && *name == metric && is_wanted(at));
            groups
                .flat_map(|(_, groups)| groups.iter().cloned())
                .collect()
        };
        let general = Spread::of_groups(&starts(&|_| true));
        let own = starts(&|at| at == step);
        if own.is_empty() {
            general
        } else {
            Spread::shrunk(&own, general.sd)
        }
    }
}
