//! A yes or no for continuous integration, or why there is neither.
//!
//! ```text
//! request    candidates, steps, thresholds, metric
//! asked      each candidate's finding in each step
//! floor      how small a difference can be shown here
//! answer     a finding, a threshold and a p -> what the gate says
//! ```

mod answer;
mod asked;
mod floor;
mod request;

use std::collections::BTreeSet;

use plimsoll_stats::holm;
use plimsoll_store::{CampaignRecord, CampaignState, Fleet, continuing, in_commands};

use self::answer::{p_of_larger_loss, row};
use self::asked::Asked;
use self::floor::{MOST_PERCENT, is_floor};
use super::undecided::{by_blocks, least_budget_ns, more};
use crate::AnalysisError;
use crate::cells::campaigns::{longest_trial_ns, progress};
use crate::stored::Stored;
use crate::verdicts::{Basis, Call, Estimate, basis, control_line, percent};

pub use self::floor::AaHistory;
pub use self::request::{Accepted, GateMetric, GateRequest, Judged, KnownSteps, StepThreshold};

/// What a gate says of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Shown to lose less than the threshold.
    Pass,
    /// Shown to lose more.
    Regression,
    /// Neither was shown.
    Inconclusive,
    /// Neither was shown, and noise alone reaches the threshold.
    Refused,
    /// The same, and it did so in the campaigns before: this step needs another threshold.
    Unfit,
    /// Nothing can be said.
    Invalid,
}

impl Answer {
    /// Whether more measuring may change it.
    fn is_open(self) -> bool {
        matches!(self, Self::Inconclusive | Self::Refused)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::Refused => "refused",
            Self::Unfit => "unfit",
            Self::Invalid => "invalid",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    /// The cell that is judged.
    pub candidate: String,
    /// What it is held against.
    pub base: String,
    pub step: String,
    /// The step's threshold as a share.
    pub max_regression: f64,
    /// Why it is as large as it is, if somebody accepts the loss.
    pub accepted: Option<String>,
    /// What the gate says.
    pub answer: Answer,
    /// The metric / that of the base.
    pub estimate: Option<Estimate>,
    /// The one-sided p of "the loss is no larger than the threshold", by Holm over all rows.
    pub p: Option<f64>,
    /// Half of the interval of the base against itself, 95 %, in percent; without a control that of
    /// the candidate.
    pub floor_percent: Option<f64>,
    /// Seconds of measuring behind it.
    pub seconds: f64,
    /// Why there is no yes or no; empty where there is one.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub campaign: String,
    /// What is judged.
    pub metric: GateMetric,
    /// The threshold as a share: 0.05 lets throughput fall by less than 5 %.
    pub max_regression: f64,
    /// By candidate and step.
    pub rows: Vec<GateRow>,
    /// The cells that are judged, each with its base.
    pub candidates: Vec<(String, String)>,
    /// Why the gate refuses to answer at all.
    pub refusal: Option<String>,
    /// The command that goes on, if there is no decision and more measuring could bring one.
    pub next: Option<String>,
    /// What the A/A control says.
    pub about: Vec<String>,
    /// Whether a step that is unfit takes the decision away.
    pub is_strict: bool,
}

/// [`gate_among`] the campaigns of a store.
pub fn gate(
    campaign: &CampaignRecord,
    stored: &Stored<'_>,
    request: &GateRequest,
) -> Result<Gate, AnalysisError> {
    gate_among(campaign, &AaHistory::new(stored), request)
}

/// Decides on a campaign with pairs.
///
/// A step fails when its loss is shown to be larger than the threshold: a one-sided test against it
/// (exact signed-rank over blocks, Student's t over starts), corrected by Holm over all candidates
/// and steps, at the level of the look that the campaign has reached. It passes when the interval of
/// the look's confidence lies above the threshold. If neither is shown, it is refused where noise
/// reaches the threshold: unfit if it always did, see [`AaHistory`].
///
/// The levels of looks are meant for two-sided tests that spend 5 % in all; one-sided tests at them
/// spend 4.7 to 5.0 %, for 5 to 20 starts and for 12 to 24 blocks.
pub fn gate_among(
    campaign: &CampaignRecord,
    history: &AaHistory<'_>,
    request: &GateRequest,
) -> Result<Gate, AnalysisError> {
    if campaign.imported.is_some() {
        return Err(AnalysisError::GateOfImport {
            campaign: campaign.header.id.clone(),
        });
    }
    let among = asked::Among::new(campaign, history.stored(), request)?;
    let asked = among.asked(campaign, request)?;
    let adjusted = holm(&asked.iter().map(p_of_larger_loss).collect::<Vec<_>>());
    let rows = asked
        .iter()
        .zip(adjusted)
        .map(|(asked, p)| row(asked, p, campaign, history))
        .collect();
    let mut gate = Gate {
        campaign: campaign.header.id.clone(),
        metric: request.metric,
        max_regression: request.max_regression,
        rows,
        candidates: among.names(),
        refusal: refusal(&asked),
        next: None,
        about: control_line(among.first()).into_iter().collect(),
        is_strict: request.is_strict,
    };
    gate.next = next(&gate, campaign, &asked);
    Ok(gate)
}

/// What goes on where there is no decision.
fn next(gate: &Gate, campaign: &CampaignRecord, asked: &[Asked<'_>]) -> Option<String> {
    if gate.exit_code() != 4 {
        return None;
    }
    let header = &campaign.header;
    let is_survey = header.confirm.is_none() && header.plan.blocks <= 1;
    if gate.refusal.is_some() && is_survey {
        let hosts = match &header.fleet {
            Some(Fleet::Hosts { names, .. }) => format!(" --blocks 12 --hosts {}", names.join(",")),
            _ => String::new(),
        };
        return Some(format!(
            "plimsoll confirm {} --all{hosts}, then the gate of its campaign",
            in_commands(&campaign.path)
        ));
    }
    let resume = continuing(header.fleet.as_ref(), &campaign.path);
    match campaign.state {
        CampaignState::Running => Some("the campaign is still running: gate it again".to_owned()),
        CampaignState::Broken => Some(format!(
            "{resume}   (the campaign is not finished: {}), then the gate again",
            progress(campaign)
        )),
        CampaignState::Decided => Some(format!("{resume}   (it goes on), then the gate again")),
        CampaignState::Complete if all_open_depend_on_turns(gate, asked) => {
            Some(by_blocks(header, &campaign.path, ""))
        }
        CampaignState::Complete if gate.is_open() => header.confirm.as_ref().map(|_| {
            let least_ns = least_budget_ns(longest_trial_ns(campaign));
            more(header, &campaign.path, basis(header), least_ns, "")
        }),
        CampaignState::Complete => None,
    }
}

/// Whether more of the same turns would decide nothing that is open. Rows are those of `asked`.
fn all_open_depend_on_turns(gate: &Gate, asked: &[Asked<'_>]) -> bool {
    let rows = asked.iter().zip(&gate.rows);
    let open = rows.filter(|(_, row)| row.answer.is_open());
    let mut findings = open.filter_map(|(asked, _)| asked.finding).peekable();
    findings.peek().is_some() && findings.all(|finding| finding.call == Call::DependsOnTurns)
}

/// Why there is no answer on any step.
fn refusal(asked: &[Asked<'_>]) -> Option<String> {
    let mut findings = asked.iter().filter_map(|asked| asked.finding).peekable();
    if findings.peek().is_none() {
        return Some(
            "there is nothing to decide on: no step has a number on both sides".to_owned(),
        );
    }
    let is_screen = findings.all(|finding| finding.basis == Basis::Screen);
    is_screen.then(|| {
        "one run of each decides nothing: `plimsoll confirm` collects what does, and so does \
        `plimsoll gate PLAN`"
            .to_owned()
    })
}

impl Gate {
    /// 1 when a step is shown to lose more than the threshold; else 4 when one has no decision, and
    /// 0 when all pass. Steps that are unfit count only if the gate is strict, and if there are no
    /// others.
    pub fn exit_code(&self) -> u8 {
        let has = |answer: Answer| self.rows.iter().any(|row| row.answer == answer);
        let is_open = has(Answer::Inconclusive) || has(Answer::Invalid) || has(Answer::Refused);
        let is_unfit = has(Answer::Unfit) && (self.is_strict || !has(Answer::Pass));
        if self.refusal.is_some() {
            4
        } else if has(Answer::Regression) {
            1
        } else if is_open || is_unfit {
            4
        } else {
            0
        }
    }

    /// The exit code in a word.
    pub fn word(&self) -> &'static str {
        match self.exit_code() {
            0 => "pass",
            1 => "regression",
            _ => "no decision",
        }
    }

    /// Whether more starts or blocks could decide something.
    pub fn is_open(&self) -> bool {
        self.refusal.is_some() || self.rows.iter().any(|row| row.answer.is_open())
    }

    /// The steps in which more starts would change nothing: every candidate passes or fails, or the
    /// step is unfit.
    pub fn settled(&self) -> BTreeSet<&str> {
        let is_settled = |row: &GateRow| {
            matches!(
                row.answer,
                Answer::Pass | Answer::Regression | Answer::Unfit
            )
        };
        let open = self.rows.iter().filter(|row| !is_settled(row));
        let open: BTreeSet<&str> = open.map(|row| row.step.as_str()).collect();
        let all = self.rows.iter().map(|row| row.step.as_str());
        all.filter(|step| !open.contains(step)).collect()
    }

    /// What the candidates may lose, in words.
    pub fn limit(&self) -> String {
        self.metric.loss(self.max_regression)
    }
}

impl GateRow {
    /// The noise floor in words, after the sign for both sides: see [`GateRow::floor_percent`]. One
    /// that is too wide to say how small a difference can be shown is named as that.
    pub fn floor(&self, both_sides: &str) -> Option<String> {
        self.floor_percent.map(|percent| match is_floor(percent) {
            true => format!("{both_sides}{percent:.1} %"),
            false => format!("above {both_sides}{MOST_PERCENT:.0} %"),
        })
    }

    /// What was found: the estimate, and why there is no yes or no.
    pub fn summary(&self) -> String {
        match (self.estimate, self.reason.is_empty()) {
            (None, false) => self.reason.clone(),
            (estimate, true) => estimate_text(estimate),
            (estimate, false) => format!("{} {}", estimate_text(estimate), self.reason),
        }
    }
}

/// Ratio and interval in percent.
pub fn estimate_text(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else {
        return "-".to_owned();
    };
    let interval = estimate
        .interval
        .map(|(low, high)| format!(" [{}, {}]", percent(low), percent(high)));
    format!(
        "{}{}",
        percent(estimate.ratio),
        interval.unwrap_or_default()
    )
}
