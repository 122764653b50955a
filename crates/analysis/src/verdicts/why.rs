//! Which per-operation numbers moved with a difference, and what that usually means.

use plimsoll_store::CampaignRecord;

use super::changes::{Change, changes};
use super::finding::{Basis, Call, Finding};
use super::measured::{Role, headline};
use super::pairs::basis;
use super::rules::sentence;
use super::{change_with_interval, finding_line};
use crate::cells::campaigns::base_label;
use crate::cells::settings::Setting;
use crate::groups::{RowCost, test_of};
use crate::runs::attempts::runs_of_cell;
use crate::runs::cell_runs::CellRuns;
use crate::stored::Stored;
use crate::{AnalysisError, Options, View, analyse_among};

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

/// A setting that two cells run with other values of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingChange {
    pub name: String,
    /// What the base runs with, for people; `None` where it has no such setting.
    pub base: Option<String>,
    /// What the cell runs with.
    pub cell: Option<String>,
}

/// Why a cell differs from the base in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    pub campaign: String,
    pub step: String,
    pub base: String,
    pub cell: String,
    /// What is concluded about the cell's throughput.
    pub finding: Option<Finding>,
    /// What is concluded about its CPU per operation, where that differs or depends on turns,
    /// and throughput does not differ.
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
    /// What statements and rows of the step's test cost, if it has several sizes.
    pub row_costs: Vec<RowCost>,
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
    let mut known = view.steps.iter().map(|known| known.name.as_str());
    if !known.clone().any(|known| known == step) {
        return Err(AnalysisError::unknown_step(step, &mut known));
    }
    if campaign.imported.is_some() {
        return Err(AnalysisError::ExplainOfImport {
            step: step.to_owned(),
            campaign: campaign.header.id.clone(),
        });
    }
    // A base that was named is the base of one group.
    let is_asked = |finding: &&Finding| finding.step == step && (a.is_none() || finding.base == 0);
    let of_step: Vec<&Finding> = view.findings.all.iter().filter(is_asked).collect();
    let of_throughput = of_step
        .iter()
        .copied()
        .filter(|finding| finding.role == Role::Throughput);
    let largest = of_throughput.max_by(|a, b| {
        a.gain()
            .unwrap_or(0.0)
            .abs()
            .total_cmp(&b.gain().unwrap_or(0.0).abs())
    });
    // The view was made against the campaign's base. A cell of another group has a base of its own,
    // and only a view against that one has its numbers.
    if let Some(of_group) = largest.filter(|finding| finding.base != 0) {
        let [base, cell] =
            [of_group.base, of_group.cell].map(|cell| Some(view.cells[cell].label.as_str()));
        return explain(campaign, stored, step, base, cell);
    }
    // Without findings, such as in a step that failed everywhere, the first cell next to the base.
    let cell = largest.map_or(1, |finding| finding.cell);
    let cost = of_step
        .iter()
        .copied()
        .find(|finding| finding.cell == cell && finding.role == Role::Cpu && is_told(finding));
    // A throughput that differs is the news; what it costs is then part of its explanation.
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
        row_costs: costs_of(&view, cell, step),
        is_screen: basis(&campaign.header) == Basis::Screen,
        is_one_build,
        settings: settings(&view, cell, is_one_build),
    })
}

fn costs_of(view: &View, cell: usize, step: &str) -> Vec<RowCost> {
    let of_step = |cost: &&RowCost| {
        let is_of_test = test_of(step).is_some_and(|(test, _)| test == cost.test);
        cost.cell == cell && is_of_test
    };
    view.row_costs.iter().filter(of_step).cloned().collect()
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

/// Whether CPU per operation is worth a line: it differs, or is another one in other turns.
fn is_told(cost: &Finding) -> bool {
    is_shown(cost) || cost.call == Call::DependsOnTurns
}

impl Explanation {
    /// The one sentence on what the numbers per operation usually mean.
    pub fn likely(&self) -> String {
        let is_shown = self.cost.iter().chain(&self.finding).any(is_shown);
        match self.sentence.as_str() {
            "" => "No rule fits what the per-operation numbers did.".to_owned(),
            sentence if is_shown => format!("Likely: {sentence}."),
            sentence => format!("No difference is shown. If there is one, likely: {sentence}."),
        }
    }

    /// Where CPU per operation differs or depends on turns, and throughput does not differ.
    pub fn cost_line(&self) -> Option<String> {
        let cost = self.cost.as_ref()?;
        let said = match cost.call {
            Call::DependsOnTurns => cost.reason.clone(),
            _ => change_with_interval(&cost.estimate?),
        };
        Some(format!(
            "Throughput: no difference is shown. {}: {} {said}.",
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
