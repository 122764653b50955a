//! Each candidate's finding in each step that a gate judges.

use itertools::Itertools;
use plimsoll_store::CampaignRecord;

use super::floor::Width;
use super::request::{GateMetric, GateRequest, KnownSteps};
use crate::cells::campaigns::base_label;
use crate::cells::selection::{find, of_cells};
use crate::stored::Stored;
use crate::verdicts::{Finding, Findings, Role};
use crate::view::View;
use crate::{AnalysisError, Options, analyse_among};

/// One candidate in one step.
pub(super) struct Asked<'v> {
    pub candidate: &'v str,
    pub base: &'v str,
    pub step: String,
    /// The threshold as a share.
    pub threshold: f64,
    /// Why it is as large as it is, if somebody accepts the loss.
    pub accepted: Option<String>,
    pub metric: GateMetric,
    /// `None` where the metric has no number there.
    pub finding: Option<&'v Finding>,
    /// The finding of its throughput, which has the reason where there is no other.
    throughput: Option<&'v Finding>,
    pub floor: Option<Width>,
}

impl Asked<'_> {
    /// Why there is nothing to judge.
    pub fn missing(&self) -> String {
        let reason = self.throughput.map_or("", |finding| &finding.reason);
        match (reason.is_empty(), self.throughput) {
            (false, _) => reason.to_owned(),
            (true, Some(_)) => format!("it has no interval for {} in this step", self.metric),
            (true, None) => "no start or block has come to this step on both sides".to_owned(),
        }
    }
}

/// The cells that a gate judges, in the views that compare them with their bases.
pub(super) struct Among {
    views: Vec<View>,
    /// Indices of a view and of a cell in it.
    cells: Vec<(usize, usize)>,
}

impl Among {
    /// A confirm campaign is judged as a whole, because its comparisons learn from each other. In
    /// any other campaign each candidate has a base of its own.
    pub fn new(
        campaign: &CampaignRecord,
        stored: &Stored<'_>,
        request: &GateRequest,
    ) -> Result<Self, AnalysisError> {
        let campaigns = std::slice::from_ref(campaign);
        let base = |candidate: &str| {
            let base = request.base.as_deref();
            base.or(base_label(campaign, Some(candidate)))
                .map(str::to_owned)
        };
        let mut among = Self {
            views: Vec::new(),
            cells: Vec::new(),
        };
        let is_one = campaign.header.confirm.is_some();
        for candidate in &request.candidates {
            if among.views.is_empty() || !is_one {
                let options = Options {
                    base: base(candidate),
                    builds: match is_one {
                        true => Vec::new(),
                        false => vec![candidate.clone()],
                    },
                };
                among
                    .views
                    .push(analyse_among(campaigns, &options, stored)?);
            }
            let last = among.views.len() - 1;
            let place = (last, one_cell(&among.views[last], candidate)?);
            if !among.cells.contains(&place) {
                among.cells.push(place);
            }
        }
        Ok(among)
    }

    /// Of the first candidate.
    pub fn first(&self) -> &Findings {
        &self.views[0].findings
    }

    /// The candidates with their bases.
    pub fn names(&self) -> Vec<(String, String)> {
        let label = |view: &View, cell: usize| view.cells[cell].label.clone();
        self.cells
            .iter()
            .map(|(view, cell)| (&self.views[*view], *cell))
            .map(|(view, cell)| (label(view, cell), label(view, base_of(view, cell))))
            .collect()
    }

    /// Every candidate in every step that is requested.
    pub fn asked<'v>(
        &'v self,
        campaign: &CampaignRecord,
        request: &GateRequest,
    ) -> Result<Vec<Asked<'v>>, AnalysisError> {
        let known = self.steps(campaign);
        if known.is_empty() {
            return Ok(Vec::new());
        }
        let plan = &campaign.header.plan;
        let steps = request.steps_of(&KnownSteps {
            names: &known,
            full_name: &|text| plan.step_name(text),
            is_writing: &|step| plan.is_writing(step),
        })?;
        if steps.is_empty() {
            return Err(AnalysisError::NoStepLeft);
        }
        let mut all = Vec::new();
        for (view, cell) in &self.cells {
            let (view, cell) = (&self.views[*view], *cell);
            for judged in &steps {
                let step = &judged.step;
                let of_step = |finding: &&Finding| finding.cell == cell && finding.step == *step;
                let found = || view.findings.all.iter().filter(of_step);
                let finding = found().find(|finding| request.metric.is_of(finding));
                all.push(Asked {
                    candidate: &view.cells[cell].label,
                    base: &view.cells[base_of(view, cell)].label,
                    step: step.clone(),
                    threshold: judged.max_regression,
                    accepted: judged.accepted.clone(),
                    metric: request.metric,
                    finding,
                    throughput: found().find(|finding| finding.role == Role::Throughput),
                    floor: finding.and_then(|finding| Width::of(&view.findings, finding)),
                });
            }
        }
        Ok(all)
    }

    /// The steps that are confirmed, or those with numbers.
    fn steps(&self, campaign: &CampaignRecord) -> Vec<String> {
        let of_views = self.views.iter().flat_map(|view| &view.findings.all);
        let found: Vec<String> = of_views
            .map(|finding| finding.step.clone())
            .unique()
            .collect();
        match &campaign.header.confirm {
            Some(confirm) if !found.is_empty() => confirm.steps.clone(),
            _ => found,
        }
    }
}

/// What a cell is held against.
fn base_of(view: &View, cell: usize) -> usize {
    let mut findings = view.findings.all.iter();
    findings
        .find(|finding| finding.cell == cell)
        .map_or(0, |finding| finding.base)
}

/// The one cell besides the base that a name stands for.
fn one_cell(view: &View, name: &str) -> Result<usize, AnalysisError> {
    let mut cells = find(name, &of_cells(&view.cells))?;
    cells.retain(|cell| *cell != 0 && !view.findings.control_cells.contains(cell));
    match cells[..] {
        [cell] => Ok(cell),
        [] => Err(AnalysisError::CandidateIsBase {
            name: name.to_owned(),
            base: view.cells[0].label.clone(),
        }),
        _ => Err(AnalysisError::AmbiguousCandidate {
            name: name.to_owned(),
            cells: cells.iter().map(|cell| &view.cells[*cell].label).join(", "),
        }),
    }
}
