//! Which per-operation numbers moved with a difference, and what that usually means.

use std::collections::BTreeMap;

use plimsoll_core::engines::is_level;
use plimsoll_stats::{PRIOR_SPREAD, hodges_lehmann, variance};
use plimsoll_store::CampaignRecord;

use super::finding::{Basis, Finding};
use super::measured::headline;
use super::pairs::{basis, by_block, is_suspect, value};
use super::{change_with_interval, finding_line, percent};
use crate::cells::campaigns::base_label;
use crate::cells::settings::Setting;
use crate::metrics::{self, Metric, sysbench};
use crate::runs::attempts::{Run, runs_of_cell};
use crate::runs::cell_runs::CellRuns;
use crate::steps::counters::{LEAST_COUNT, LEAST_PER_OPERATION, operations};
use crate::stored::Stored;
use crate::{AnalysisError, Options, View, analyse_among};

/// The metrics that explain: what one operation costs.
const PER_OPERATION: [&Metric; 12] = [
    metrics::SERVER_CPU_US_PER_OP,
    metrics::PROCESS_CPU_US_PER_OP,
    metrics::CLIENT_CPU_US_PER_OP,
    metrics::CPUPQ,
    metrics::CSPQ,
    metrics::RPQ,
    metrics::RKBPQ,
    metrics::WPI,
    metrics::WKBPI,
    sysbench::WPQ,
    sysbench::WKBPQ,
    metrics::WAIT_SHARE,
];

/// The least standard deviation that a change is divided by: a counter that is always the same
/// would else outrank everything.
const LEAST_DEVIATION: f64 = 0.005;

/// Changes below this share are reported as flat.
const FLAT: f64 = 0.05;
/// With less than this share of the base's CPU in use, CPU is not all that operations took longer
/// for.
const LEAST_IN_USE: f64 = 0.8;
/// Context switches, reads and writes per operation vary more.
const FLAT_EVENTS: f64 = 0.1;

/// How one number per operation changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The metric of the catalogue, or the engine's counter.
    pub name: String,
    /// Whether it is a counter of the engine, per operation.
    pub is_counter: bool,
    /// New / base: the Hodges-Lehmann estimate over blocks.
    pub ratio: f64,
    /// The change of the logarithm in standard deviations of a pair, at least 0.5 %; of a single
    /// pair, in those of two starts that differ by the prior of 3 %.
    pub standardised: f64,
    /// Blocks or starts behind it.
    pub pairs: usize,
}

/// Every per-operation number of a step that both cells have, by standardised change, largest
/// first.
pub(crate) fn changes(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str) -> Vec<Change> {
    let mut both = by_block(base, other, step);
    // As verdicts do; where all are, there is nothing better.
    if !both.iter().all(is_suspect) {
        both.retain(|pair| !is_suspect(pair));
    }
    let mut ratios: BTreeMap<(bool, String), Vec<f64>> = BTreeMap::new();
    for (of_base, of_other) in &both {
        for Metric { name, .. } in PER_OPERATION {
            if let (Some(base), Some(other)) = (value(of_base, name), value(of_other, name)) {
                ratios
                    .entry((false, (*name).to_owned()))
                    .or_default()
                    .push((other / base).ln());
            }
        }
        let (of_base, of_other) = (counters(of_base), counters(of_other));
        for (name, (growth, base)) in of_base {
            if let Some((grown, other)) = of_other.get(name)
                && growth.max(*grown) >= LEAST_COUNT
                && base.max(*other) >= LEAST_PER_OPERATION
            {
                ratios
                    .entry((true, name.to_owned()))
                    .or_default()
                    .push((other / base).ln());
            }
        }
    }
    let mut changes: Vec<Change> = ratios
        .into_iter()
        // What only some of the pairs have says nothing about all of them.
        .filter(|(_, logs)| 2 * logs.len() > both.len())
        .filter_map(|((is_counter, name), logs)| {
            let centre = hodges_lehmann(&logs)?;
            let deviation = match logs.len() {
                1 => PRIOR_SPREAD * std::f64::consts::SQRT_2,
                _ => variance(&logs).sqrt(),
            };
            Some(Change {
                name,
                is_counter,
                ratio: centre.exp(),
                standardised: centre / deviation.max(LEAST_DEVIATION),
                pairs: logs.len(),
            })
        })
        .collect();
    changes.sort_by(|a, b| b.standardised.abs().total_cmp(&a.standardised.abs()));
    changes
}

/// Growth and growth per operation of the engine's counters that grew; what only goes up and down
/// is no cost of an operation.
fn counters<'a>(run: &'a Run<'_>) -> BTreeMap<&'a str, (i64, f64)> {
    let Some(done) = run.done else {
        return BTreeMap::new();
    };
    let Some(operations) = operations(done) else {
        return BTreeMap::new();
    };
    let grew = done
        .engine_counters
        .iter()
        .filter(|(name, growth)| **growth > 0 && !is_level(name));
    grew.map(|(name, growth)| (name.as_str(), (*growth, *growth as f64 / operations)))
        .collect()
}

/// What the per-operation numbers of a step say of a gain (a log ratio of which more is better), in
/// a few words.
pub(crate) fn why(
    base: &CellRuns<'_>,
    other: &CellRuns<'_>,
    step: &str,
    gain: Option<f64>,
) -> String {
    sentence(&changes(base, other, step), gain)
}

/// The rule table. Each rule looks at CPU, context switches and bytes per operation, and says what
/// such a pattern usually is. What would make a cell faster does not explain that it is slower, and
/// the other way round. `gain` is a log ratio of which more is better: of throughput, or of CPU per
/// operation turned round.
pub(crate) fn sentence(changes: &[Change], gain: Option<f64>) -> String {
    let (may_cost, may_save) = (
        gain.is_none_or(|gain| gain <= 0.0),
        gain.is_none_or(|gain| gain >= 0.0),
    );
    let of = |metrics: &[&Metric]| {
        metrics.iter().find_map(|metric| {
            changes
                .iter()
                .find(|change| !change.is_counter && change.name == metric.name)
        })
    };
    let cpu = of(&[
        metrics::SERVER_CPU_US_PER_OP,
        metrics::PROCESS_CPU_US_PER_OP,
    ]);
    let client = of(&[metrics::CLIENT_CPU_US_PER_OP]);
    let switches = of(&[metrics::CSPQ]);
    let written = of(&[metrics::WKBPI, sysbench::WKBPQ]);
    let read = of(&[metrics::RKBPQ]);
    let is_up = |change: Option<&Change>, least: f64| {
        change.is_some_and(|change| change.ratio > 1.0 + least)
    };
    let is_down = |change: Option<&Change>, least: f64| {
        change.is_some_and(|change| change.ratio < 1.0 / (1.0 + least))
    };
    let is_flat = |change: Option<&Change>, least: f64| {
        change.is_some() && !is_up(change, least) && !is_down(change, least)
    };
    let tell = |change: Option<&Change>, least: f64| {
        change.map(|change| match is_flat(Some(change), least) {
            true => format!("{} flat", headline(&change.name)),
            false => format!("{} {}", headline(&change.name), percent(change.ratio)),
        })
    };
    // CPU per operation x operations per second is CPU in use: where it fell, operations wait for
    // something else.
    let in_use = cpu.zip(gain).map(|(cpu, gain)| cpu.ratio * gain.exp());
    let waiting = in_use
        .filter(|in_use| *in_use < LEAST_IN_USE)
        .map(|in_use| format!("CPU in use {}", percent(in_use)));
    let rules: [(bool, &[Option<String>], &str); 11] = [
        (
            may_cost && is_up(cpu, FLAT) && waiting.is_some(),
            &[tell(cpu, FLAT), waiting],
            "more CPU per statement, and more waiting: for storage, or for locks",
        ),
        (
            may_cost && is_up(switches, FLAT_EVENTS) && is_up(cpu, FLAT),
            &[tell(cpu, FLAT), tell(switches, FLAT_EVENTS)],
            "more contention between threads, and CPU spent on it",
        ),
        (
            may_cost && is_up(switches, FLAT_EVENTS),
            &[tell(switches, FLAT_EVENTS), tell(cpu, FLAT)],
            "more waiting between threads: mutex contention",
        ),
        (
            may_cost && is_up(cpu, FLAT) && is_flat(switches, FLAT_EVENTS),
            &[tell(cpu, FLAT), tell(switches, FLAT_EVENTS)],
            "more code per statement",
        ),
        (
            may_cost && is_up(written, FLAT_EVENTS),
            &[tell(written, FLAT_EVENTS), tell(cpu, FLAT)],
            "write amplification",
        ),
        (
            may_cost && is_up(read, FLAT_EVENTS),
            &[tell(read, FLAT_EVENTS), tell(cpu, FLAT)],
            "more is read from storage: less of it is cached",
        ),
        (
            may_cost && is_up(cpu, FLAT),
            &[tell(cpu, FLAT), tell(switches, FLAT_EVENTS)],
            "more CPU per statement",
        ),
        (
            may_save && is_down(cpu, FLAT) && switches.is_some() && !is_down(switches, FLAT_EVENTS),
            &[tell(cpu, FLAT), tell(switches, FLAT_EVENTS)],
            "less code per statement",
        ),
        (
            may_save && is_down(cpu, FLAT) && switches.is_none(),
            &[tell(cpu, FLAT)],
            "less CPU per statement",
        ),
        (
            may_save && is_down(switches, FLAT_EVENTS),
            &[tell(switches, FLAT_EVENTS), tell(cpu, FLAT)],
            "less waiting, for other threads or for storage",
        ),
        (
            may_cost && is_up(client, FLAT) && is_flat(cpu, FLAT),
            &[tell(client, FLAT), tell(cpu, FLAT)],
            "the client works more for an answer",
        ),
    ];
    let rule = rules.iter().find(|(applies, ..)| *applies);
    rule.map_or_else(String::new, |(_, parts, meaning)| {
        format!(
            "{}: {meaning}",
            parts
                .iter()
                .flatten()
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        )
    })
}

/// A setting that two cells run with other values of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    /// Its name.
    pub name: String,
    /// What the base runs with, for people; `None` where it has no such setting.
    pub base: Option<String>,
    /// What the cell runs with.
    pub cell: Option<String>,
}

/// Why a cell differs from the base in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The campaign's id.
    pub campaign: String,
    /// The step.
    pub step: String,
    /// The base's label.
    pub base: String,
    /// The cell's label.
    pub cell: String,
    /// What is concluded about the cell's throughput.
    pub finding: Option<Finding>,
    /// What is concluded about its CPU per operation, where that differs and throughput does not.
    pub cost: Option<Finding>,
    /// The finding in a line, as tables of verdicts have it.
    pub line: String,
    /// What the per-operation numbers say.
    pub sentence: String,
    /// Per-operation numbers, what changed most first.
    pub changes: Vec<Change>,
    /// Whether both cells run one build, so that nothing but their settings differs.
    pub is_one_build: bool,
    /// Settings of the configs that the cells run with other values of; of one build all settings
    /// that differ.
    pub settings: Vec<SettingChange>,
    /// Whether the campaign is a screen: then nothing here is confirmed.
    pub is_screen: bool,
}

/// Settings that text names.
const SETTINGS_SHOWN: usize = 5;

/// Explains a step of a campaign. `b` is the cell, by default the one that differs most from its
/// base; `a` the base, by default the campaign's or that of the cell's group.
pub fn explain(
    campaign: &CampaignRecord,
    stored: &Stored<'_>,
    step: &str,
    a: Option<&str>,
    b: Option<&str>,
) -> Result<Explanation, AnalysisError> {
    let builds = b.map(|b| vec![b.to_owned()]).unwrap_or_default();
    let base = a.or(base_label(campaign, b)).map(str::to_owned);
    let view: View = analyse_among(
        std::slice::from_ref(campaign),
        &Options { base, builds },
        stored,
    )?;
    if !view.steps.iter().any(|known| known.name == step) {
        return Err(AnalysisError::unknown_step(
            step,
            view.steps.iter().map(|step| step.name.as_str()),
        ));
    }
    // A base that was named is the base of one group.
    let is_asked = |finding: &&Finding| finding.step == step && (a.is_none() || finding.base == 0);
    let of_step: Vec<&Finding> = view.findings.all.iter().filter(is_asked).collect();
    let of_throughput = of_step
        .iter()
        .copied()
        .filter(|finding| finding.is_throughput);
    let largest = of_throughput.max_by(|a, b| {
        a.gain()
            .unwrap_or(0.0)
            .abs()
            .total_cmp(&b.gain().unwrap_or(0.0).abs())
    });
    if let Some(of_group) = largest.filter(|finding| finding.base != 0) {
        let [base, cell] =
            [of_group.base, of_group.cell].map(|cell| Some(view.cells[cell].label.as_str()));
        return explain(campaign, stored, step, base, cell);
    }
    let cell = largest.map_or(1, |finding| finding.cell);
    let cost = of_step
        .iter()
        .copied()
        .find(|finding| finding.cell == cell && !finding.is_throughput && is_shown(finding));
    let cost = cost.filter(|_| !largest.is_some_and(is_shown)).cloned();
    let (Some(of_base), Some(of_cell)) = (
        runs(campaign, &view.cells[0].label),
        view.cells
            .get(cell)
            .and_then(|cell| runs(campaign, &cell.label)),
    ) else {
        return Err(AnalysisError::NothingToExplain {
            step: step.to_owned(),
        });
    };
    let changes = changes(&of_base, &of_cell, step);
    let is_one_build = of_base.cell.build == of_cell.cell.build;
    let finding = largest.cloned();
    let gain = cost.as_ref().or(finding.as_ref()).and_then(Finding::gain);
    let line = finding
        .as_ref()
        .map_or_else(String::new, |finding| finding_line(&view, finding));
    Ok(Explanation {
        campaign: campaign.header.id.clone(),
        step: step.to_owned(),
        base: view.cells[0].label.clone(),
        cell: view.cells[cell].label.clone(),
        finding,
        cost,
        line,
        sentence: sentence(&changes, gain),
        changes,
        is_screen: basis(&campaign.header) == Basis::Screen,
        is_one_build,
        settings: settings(&view, cell, is_one_build),
    })
}

fn settings(view: &View, cell: usize, is_one_build: bool) -> Vec<SettingChange> {
    let differing = view
        .settings
        .differing
        .iter()
        .filter(|setting| setting.is_other[cell] && (setting.is_asked || is_one_build));
    let change = |setting: &Setting| SettingChange {
        name: setting.name.clone(),
        base: setting.shown[0].clone(),
        cell: setting.shown[cell].clone(),
    };
    differing.map(change).collect()
}

fn runs<'a>(campaign: &'a CampaignRecord, label: &str) -> Option<CellRuns<'a>> {
    let cell = campaign
        .header
        .plan
        .cells
        .iter()
        .position(|cell| cell.label == label)?;
    Some(CellRuns {
        campaign,
        cell: &campaign.header.plan.cells[cell],
        runs: runs_of_cell(campaign, cell),
    })
}

/// Whether there is a difference to explain, as far as is known.
fn is_shown(finding: &Finding) -> bool {
    ["regression", "improvement", "unusual"].contains(&finding.call.word())
}

impl Explanation {
    /// The one sentence on what the numbers per operation usually mean.
    pub fn likely(&self) -> String {
        let is_shown = self.cost.is_some() || self.finding.as_ref().is_some_and(is_shown);
        match self.sentence.as_str() {
            "" => "No rule fits what the per-operation numbers did.".to_owned(),
            sentence if is_shown => format!("Likely: {sentence}."),
            sentence => format!("No difference is shown. If there is one, likely: {sentence}."),
        }
    }

    /// Where CPU per operation differs and throughput does not.
    pub fn cost_line(&self) -> Option<String> {
        let cost = self.cost.as_ref()?;
        let change = change_with_interval(&cost.estimate?);
        Some(format!(
            "Throughput: no difference is shown. {}: {} {change}.",
            headline(cost.metric.name),
            cost.call.word()
        ))
    }

    pub fn settings_line(&self) -> Option<String> {
        if self.settings.is_empty() {
            return None;
        }
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        let told = self.settings.iter().take(SETTINGS_SHOWN);
        let told: Vec<String> = told
            .map(|setting| {
                format!(
                    "{} {} (base: {})",
                    setting.name,
                    value(&setting.cell),
                    value(&setting.base)
                )
            })
            .collect();
        let more = match self.settings.len().saturating_sub(SETTINGS_SHOWN) {
            0 => String::new(),
            more => format!(", and {more} more in the report"),
        };
        let of = if self.is_one_build {
            "One build, with other settings"
        } else {
            "Settings of the configs that differ, too"
        };
        Some(format!("{of}: {}{more}.", told.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, ratio: f64) -> Change {
        Change {
            name: name.to_owned(),
            is_counter: false,
            ratio,
            standardised: ratio.ln() / 0.01,
            pairs: 12,
        }
    }

    #[test]
    fn counters_of_a_workload_files_step_are_divided_by_its_events() {
        use plimsoll_core::record::OperationRecord;
        use plimsoll_store::event::StepDone;
        let kind = |kind: &str, ok| OperationRecord {
            kind: kind.to_owned(),
            ok,
            ..OperationRecord::default()
        };
        let done = StepDone {
            primary: "event".to_owned(),
            operations: vec![kind("look", 30), kind("buy", 10)],
            ..StepDone::default()
        };
        assert_eq!(operations(&done), Some(40.0));
        assert_eq!(
            operations(&StepDone {
                primary: "buy".to_owned(),
                ..done
            }),
            Some(10.0)
        );
    }

    #[test]
    fn rules_in_words() {
        let cases: [(&[(&str, f64)], &str); 10] = [
            (
                &[("process_cpu_us_per_op", 0.66), ("cspq", 0.37)],
                "cs/op -63.0 %, process CPU/op -34.0 %: less waiting, for other threads or for \
                storage",
            ),
            (
                &[("server_cpu_us_per_op", 1.49), ("cspq", 1.01)],
                "server CPU/op +49.0 %, cs/op flat: more code per statement",
            ),
            (
                &[("server_cpu_us_per_op", 1.2), ("cspq", 2.0)],
                "server CPU/op +20.0 %, cs/op +100.0 %: more contention between threads, and CPU \
                spent on it",
            ),
            (
                &[("server_cpu_us_per_op", 1.0), ("cspq", 1.5)],
                "cs/op +50.0 %, server CPU/op flat: more waiting between threads: mutex contention",
            ),
            (
                &[("wkbpi", 1.8), ("server_cpu_us_per_op", 1.02)],
                "KiB written/insert +80.0 %, server CPU/op flat: write amplification",
            ),
            (
                &[("rkbpq", 3.0)],
                "KiB read/op +200.0 %: more is read from storage: less of it is cached",
            ),
            (
                &[("process_cpu_us_per_op", 0.8), ("cspq", 1.0)],
                "process CPU/op -20.0 %, cs/op flat: less code per statement",
            ),
            (
                &[("server_cpu_us_per_op", 1.0), ("client_cpu_us_per_op", 1.3)],
                "client CPU/op +30.0 %, server CPU/op flat: the client works more for an answer",
            ),
            (&[("server_cpu_us_per_op", 1.01), ("cspq", 1.0)], ""),
            (&[], ""),
        ];
        for (changes, expected) in cases {
            let changes: Vec<Change> = changes
                .iter()
                .map(|(name, ratio)| change(name, *ratio))
                .collect();
            assert_eq!(sentence(&changes, None), expected);
        }
        assert_eq!(
            sentence(&[change("process_cpu_us_per_op", 0.8)], None),
            "process CPU/op -20.0 %: less CPU per statement"
        );
        assert_eq!(
            sentence(
                &[change("process_cpu_us_per_op", 36.0), change("cspq", 1.0)],
                Some(-4.4)
            ),
            "process CPU/op +3500.0 %, CPU in use -55.8 %: more CPU per statement, and more \
            waiting: for storage, or for locks"
        );
        assert!(
            sentence(
                &[change("process_cpu_us_per_op", 1.4), change("cspq", 1.0)],
                Some(-0.3)
            )
            .ends_with("more code per statement")
        );
        let counter = Change {
            is_counter: true,
            ..change("cspq", 9.0)
        };
        assert_eq!(
            sentence(&[change("server_cpu_us_per_op", 0.9)], Some(-0.1)),
            "",
            "less CPU does not make it slower"
        );
        assert_ne!(
            sentence(&[change("server_cpu_us_per_op", 0.9)], Some(0.1)),
            ""
        );
        assert_eq!(
            sentence(&[counter], None),
            "",
            "an engine's counter of that name is another thing"
        );
    }
}
