//! A yes or no for continuous integration, or why there is neither.

use plimsoll_stats::{SignedRank, holm, student_quantile, student_two_sided};
use plimsoll_store::{CampaignRecord, CampaignState};

use crate::cells::campaigns::base_label;
use crate::stored::Stored;
use crate::verdicts::{
    Basis, Call, Estimate, Finding, Findings, Role, control_line, floor_line, percent,
};
use crate::{AnalysisError, Options, analyse_among};

/// What a gate says of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Shown to lose less than the threshold.
    Pass,
    /// Shown to lose more.
    Regression,
    /// Neither was shown.
    Inconclusive,
    /// Nothing can be said.
    Invalid,
}

impl Answer {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Regression => "regression",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct GateRow {
    pub step: String,
    /// What the gate says.
    pub answer: Answer,
    /// Throughput / base.
    pub estimate: Option<Estimate>,
    /// Why there is no yes or no; empty where there is one.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    pub campaign: String,
    pub base: String,
    pub candidate: String,
    /// The threshold as a share: 0.05 lets throughput fall by less than 5 %.
    pub max_regression: f64,
    pub rows: Vec<GateRow>,
    /// Why the gate refuses to answer at all.
    pub refusal: Option<String>,
    /// What the A/A control and the noise floor are.
    pub about: Vec<String>,
}

/// Decides on a campaign with pairs.
///
/// A step fails when its loss is shown to be larger than the threshold: a one-sided test against it
/// (exact signed-rank over blocks, Student's t over starts), corrected by Holm over all steps, at
/// the campaign's alpha. It passes when its interval lies above the threshold. Else it is
/// inconclusive. A threshold below the noise floor is refused: noise alone would decide.
pub fn gate(
    campaign: &CampaignRecord,
    stored: &Stored<'_>,
    base: Option<&str>,
    candidate: &str,
    max_regression: f64,
) -> Result<Gate, AnalysisError> {
    let base = base.or(base_label(campaign, Some(candidate)));
    let options = Options {
        base: base.map(str::to_owned),
        builds: vec![candidate.to_owned()],
    };
    let view = analyse_among(std::slice::from_ref(campaign), &options, stored)?;
    let findings = &view.findings;
    let candidates: Vec<usize> = (1..view.cells.len())
        .filter(|cell| !findings.control_cells.contains(cell))
        .collect();
    if candidates.is_empty() {
        return Err(AnalysisError::CandidateIsBase {
            name: candidate.to_owned(),
            base: view.cells[0].label.clone(),
        });
    }
    let [cell] = candidates[..] else {
        let known: Vec<&str> = candidates
            .iter()
            .map(|cell| view.cells[*cell].label.as_str())
            .collect();
        return Err(AnalysisError::AmbiguousCandidate {
            name: candidate.to_owned(),
            cells: known.join(", "),
        });
    };
    let of_cell: Vec<&Finding> = findings
        .all
        .iter()
        .filter(|finding| finding.cell == cell && finding.role == Role::Throughput)
        .collect();
    let refusal = refusal(campaign, findings, &of_cell, max_regression);
    let adjusted = holm(
        &of_cell
            .iter()
            .map(|finding| p_of_larger_loss(finding, max_regression))
            .collect::<Vec<_>>(),
    );
    let rows = of_cell
        .iter()
        .zip(adjusted)
        .map(|(finding, p)| row(finding, p, findings.alpha, max_regression))
        .collect();
    Ok(Gate {
        campaign: campaign.header.id.clone(),
        base: view.cells[0].label.clone(),
        candidate: view.cells[cell].label.clone(),
        max_regression,
        rows,
        refusal,
        about: control_line(findings)
            .into_iter()
            .chain(floor_line(findings))
            .collect(),
    })
}

fn refusal(
    campaign: &CampaignRecord,
    findings: &Findings,
    of_cell: &[&Finding],
    threshold: f64,
) -> Option<String> {
    if of_cell.is_empty() {
        let next = match campaign.state {
            CampaignState::Complete => String::new(),
            _ => format!(
                "; the campaign is not finished: `plimsoll resume {}` runs what is missing",
                campaign.header.id
            ),
        };
        return Some(format!(
            "there is nothing to decide on: no step has a number on both sides{next}"
        ));
    }
    if of_cell.iter().all(|finding| finding.basis == Basis::Screen) {
        return Some(
            "one run of each decides nothing: `plimsoll confirm` collects what does".to_owned(),
        );
    }
    let floor = findings.noise_floor_percent(Role::Throughput, None)?;
    let ours = 100.0 * threshold;
    let of_control = findings
        .control
        .iter()
        .filter(|control| control.role == Role::Throughput)
        .filter_map(|control| control.estimate);
    let mut estimates = of_control.chain(of_cell.iter().filter_map(|finding| finding.estimate));
    let estimate = estimates.find(|estimate| estimate.interval.is_some())?;
    let what = if of_cell[0].basis == Basis::Slices {
        "starts"
    } else {
        "blocks"
    };
    (ours < floor).then(|| {
        let advice = advice(ours, floor, estimate.starts, estimate.level, what);
        format!(
            "a threshold of {} is below the noise floor of {floor:.1} %: {advice}",
            in_percent(ours)
        )
    })
}

/// More starts or blocks than this are not useful advice.
const MOST_REPEATS: usize = 100;
/// With this many the gate names a threshold that would do.
const MORE_REPEATS: usize = 20;

/// What would make a threshold detectable: more starts or blocks, or a larger threshold. All in
/// percent.
///
/// The floor is half of an interval, `t(n - 1) s / sqrt(n)`. Both `t` and the root fall with `n`,
/// and with few starts `t` falls the faster.
fn advice(threshold: f64, floor: f64, repeats: usize, level: f64, what: &str) -> String {
    if repeats < 2 {
        return format!("at least 2 {what} are needed, better 5");
    }
    let reach = |n: usize| student_quantile(0.5 + level / 2.0, n as f64 - 1.0) / (n as f64).sqrt();
    let floor_of = |n: usize| floor * reach(n) / reach(repeats);
    // Rounded up, so that the printed threshold would pass.
    let up = |percent: f64| format!("{:.1} %", (percent * 10.0).ceil() / 10.0);
    match (repeats..=MOST_REPEATS).find(|n| floor_of(*n) < threshold) {
        Some(needed) => {
            format!(
                "about {needed} undisturbed {what} would be needed where there are {repeats}, or a \
                threshold of at least {}",
                up(floor)
            )
        }
        None => {
            let more = MORE_REPEATS.max(repeats);
            format!(
                "this machine cannot tell so small a difference; with {more} {what} a threshold of \
                {} would do",
                up(floor_of(more))
            )
        }
    }
}

/// `5.0 %`, `0.05 %`.
fn in_percent(percent: f64) -> String {
    let decimals = if percent < 0.1 { 2 } else { 1 };
    format!("{percent:.decimals$} %")
}

/// The one-sided p of "the loss is no larger than the threshold": small when it is shown to be
/// larger.
fn p_of_larger_loss(finding: &Finding, threshold: f64) -> f64 {
    let limit = (1.0 - threshold).ln();
    let (Some(estimate), Call::Verdict(_)) = (finding.estimate, finding.call) else {
        return 1.0;
    };
    match (finding.basis, estimate.log_interval()) {
        (Basis::Slices, Some(interval)) if estimate.starts > 1 => {
            let degrees = estimate.error.map_or(1.0, |(_, degrees)| degrees);
            let error =
                interval.half_width() / student_quantile(0.5 + interval.level / 2.0, degrees);
            let distance = estimate.ratio.ln() - limit;
            let two_sided = student_two_sided(distance / error, degrees);
            if distance < 0.0 {
                two_sided / 2.0
            } else {
                1.0 - two_sided / 2.0
            }
        }
        (Basis::Blocks, _) => {
            SignedRank::of(
                &finding
                    .dots
                    .iter()
                    .map(|ratio| ratio.ln() - limit)
                    .collect::<Vec<_>>(),
            )
            .p_less
        }
        _ => 1.0,
    }
}

fn row(finding: &Finding, p: f64, alpha: f64, threshold: f64) -> GateRow {
    let is_above = finding
        .estimate
        .and_then(|estimate| estimate.interval)
        .is_some_and(|(low, _)| low > 1.0 - threshold);
    let is_decided = finding.basis == Basis::Blocks
        || finding.estimate.is_some_and(|estimate| estimate.starts > 1);
    let (answer, reason) = match finding.call {
        Call::Invalid => (Answer::Invalid, finding.reason.clone()),
        Call::Verdict(_) if p <= alpha => (Answer::Regression, String::new()),
        Call::Verdict(_) if is_above && is_decided => (Answer::Pass, String::new()),
        Call::Verdict(_) if finding.reason.is_empty() => (
            Answer::Inconclusive,
            format!(
                "the interval holds {:.1} %: more blocks or starts narrow it",
                -100.0 * threshold
            ),
        ),
        _ => (Answer::Inconclusive, finding.reason.clone()),
    };
    GateRow {
        step: finding.step.clone(),
        answer,
        estimate: finding.estimate,
        reason,
    }
}

impl Gate {
    /// 0 when every step passes, 1 when one is shown to lose more than the threshold, 4 when there
    /// is no decision.
    pub fn exit_code(&self) -> u8 {
        let has = |answer: Answer| self.rows.iter().any(|row| row.answer == answer);
        match () {
            () if self.refusal.is_some() => 4,
            () if has(Answer::Regression) => 1,
            () if has(Answer::Inconclusive) || has(Answer::Invalid) => 4,
            () => 0,
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
}

impl GateRow {
    /// What was found: the estimate, and why there is no yes or no.
    pub fn summary(&self) -> String {
        format!("{} {}", estimate_text(self.estimate), self.reason)
            .trim()
            .to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_follows_student_and_not_the_root_alone() {
        // Three starts: t(2) = 4.30. A floor of 6 % is one of 2 % with 9 starts, where the root
        // alone would say 27.
        assert_eq!(
            advice(2.0, 6.0, 3, 0.95, "starts"),
            "about 9 undisturbed starts would be needed where there are 3, or a threshold of at \
            least 6.0 %"
        );
        assert_eq!(
            advice(0.1, 6.0, 3, 0.95, "starts"),
            "this machine cannot tell so small a difference; with 20 starts a threshold of 1.2 % \
            would do"
        );
        assert_eq!(
            advice(1.0, 6.0, 1, 0.95, "starts"),
            "at least 2 starts are needed, better 5"
        );
        let many = advice(0.01, 0.45, 30, 0.95, "blocks");
        assert!(
            many.ends_with("with 30 blocks a threshold of 0.5 % would do"),
            "{many}"
        );
    }
}
