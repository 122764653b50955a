//! How far starts of one build lie apart on this machine, from what the store holds.

use std::collections::BTreeMap;

use plimsoll_core::engines::EngineName;
use plimsoll_stats::Spread;
use plimsoll_store::event::StepDone;
use plimsoll_store::{CampaignRecord, Confirm, Design, TrialRecord};
use serde_json::Value;

use crate::cells::differences::flatten;
use crate::metrics::measure::measure_cheaply;
use crate::metrics::{self, Metric};
use crate::runs::attempts::{judge, limits_of};
use crate::runs::status::Status;
use crate::stored::Stored;

/// The facts that make a machine: stable ones only. `bogomips`, say, may differ from boot to boot.
const MACHINE: [&str; 4] = ["cpu_model", "cpus_online", "memory_bytes", "hypervisor"];

/// What names a machine.
pub(crate) type MachineFacts = Vec<Option<String>>;

/// What names the machine of a campaign's trials; `None` when no trial recorded its environment, and
/// when they ran on machines of several types.
pub(crate) fn machine(campaign: &CampaignRecord) -> Option<MachineFacts> {
    let environments = campaign
        .trials
        .iter()
        .filter_map(|trial| trial.environment.as_ref());
    let mut machines = environments.map(facts);
    let first = machines.next()?;
    machines.all(|other| other == first).then_some(first)
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
const JUDGED: [&Metric; 4] = [
    metrics::IPS,
    metrics::QPS,
    metrics::SERVER_CPU_US_PER_OP,
    metrics::PROCESS_CPU_US_PER_OP,
];
/// What tells that a run was disturbed.
const WITNESSES: [&Metric; 2] = [metrics::STEAL_SHARE, metrics::FOREIGN_CPU_CORES];

/// Engine, step and metric.
type Group = (EngineName, String, &'static str);
/// The plan's text, whether it was confirmed, the cell, and the host where there are several: runs of
/// it are starts of one thing.
type Experiment = (String, bool, String, Option<String>);

/// ln(value) of each start. A cell of a plan is the same experiment in whichever campaign it ran.
type Starts = BTreeMap<(Group, Experiment), Vec<f64>>;

/// Adds what each complete trial of a campaign measured undisturbed.
fn add_starts(starts: &mut Starts, campaign: &CampaignRecord) {
    let metrics = [&JUDGED[..], &WITNESSES[..]].concat();
    let header = &campaign.header;
    let limits = limits_of(campaign);
    for scheduled in &header.schedule {
        let cell = &header.plan.cells[scheduled.cell];
        let label = cell.label.trim_end_matches("#2").to_owned();
        let attempts = campaign.trials.iter();
        let complete =
            attempts.filter(|trial| trial.number == scheduled.number && trial.is_complete());
        let host = complete.clone().next_back();
        let host = host.and_then(|trial| trial.place().host.map(str::to_owned));
        let experiment = (
            header.plan_text.clone(),
            header.confirm.is_some(),
            label,
            host,
        );
        // Of a step that ran again the last.
        let steps = complete.flat_map(TrialRecord::steps_done);
        let steps: BTreeMap<&str, &StepDone> =
            steps.map(|done| (done.step.as_str(), done)).collect();
        for done in steps.into_values() {
            let measures = measure_cheaply(cell.workload.family(), done, &metrics);
            if judge(done, &measures, &[], &limits).0 != Status::Ok {
                continue;
            }
            for measure in &measures {
                let name = measure.metric.name;
                let value = measure.value.value.filter(|value| *value > 0.0);
                if let Some(value) =
                    value.filter(|_| JUDGED.iter().any(|judged| judged.name == name))
                {
                    let group = (cell.build.engine, done.step.clone(), name);
                    let key = (group, experiment.clone());
                    starts.entry(key).or_default().push(value.ln());
                }
            }
        }
    }
}

/// Spreads between starts by engine, step and metric.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Spreads {
    /// Groups of ln(value): repeated starts of one cell of one plan.
    groups: BTreeMap<Group, Vec<Vec<f64>>>,
}

impl Spreads {
    /// From every campaign of `stored` that ran on the machine of `of`.
    pub fn of_machine(of: &CampaignRecord, stored: &Stored<'_>) -> Self {
        Self::of_facts(machine(of), stored)
    }

    /// From every campaign of `stored` that ran on this machine. Runs that a witness saw disturbed
    /// are left out. Slices are: their numbers are not those of whole steps.
    pub fn of_facts(here: Option<MachineFacts>, stored: &Stored<'_>) -> Self {
        let Some(here) = here else {
            return Self::default();
        };
        let is_in_turns = |confirm: &Confirm| confirm.design == Design::Slices;
        let campaigns = stored.load(|header| !header.confirm.as_ref().is_some_and(is_in_turns));
        let mut starts = Starts::new();
        for campaign in campaigns
            .filter(|campaign| campaign.imported.is_none())
            .filter(|campaign| machine(campaign).as_ref() == Some(&here))
        {
            add_starts(&mut starts, campaign);
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
