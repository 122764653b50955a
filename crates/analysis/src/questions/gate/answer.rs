//! From a finding and a threshold to what a gate says of it.

use plimsoll_stats::{FEWEST_STARTS, SignedRank, mean, scaled_p, student_two_sided, variance};
use plimsoll_store::CampaignRecord;

use super::asked::Asked;
use super::floor::{AaHistory, advice, is_floor, not_yet};
use super::request::in_percent;
use super::{Answer, GateRow};
use crate::verdicts::{Basis, Call, Estimate, Finding};

/// The finding that may decide, and its estimate: one with an interval at its look.
fn decidable<'v>(asked: &Asked<'v>) -> Option<(&'v Finding, Estimate)> {
    let finding = asked.finding?;
    let estimate = finding.estimate?;
    let has_repeats = match finding.basis {
        Basis::Screen => false,
        Basis::Blocks => true,
        Basis::Slices => estimate.starts >= FEWEST_STARTS,
    };
    let is_judged = match finding.call {
        Call::Verdict(_) => true,
        Call::DependsOnTurns => {
            loses_in_each_form(asked, finding) || passes_in_each_form(asked, finding)
        }
        _ => false,
    } && estimate.at_look.is_some();
    (has_repeats && is_judged && finding.look_level > 0.0).then_some((finding, estimate))
}

/// Whether what depends on turns is shown to lose more than the threshold in each form of them: how
/// large the loss is depends on them, and that it is too large does not.
fn loses_in_each_form(asked: &Asked<'_>, finding: &Finding) -> bool {
    is_shown_in_each_form(asked, finding, |distance| distance < 0.0)
}

/// Whether it is shown to lose less than the threshold in each form.
fn passes_in_each_form(asked: &Asked<'_>, finding: &Finding) -> bool {
    is_shown_in_each_form(asked, finding, |distance| distance > 0.0)
}

/// Whether the distance of each form's mean from the threshold, a log ratio that is negative beyond
/// it, is shown to be so.
fn is_shown_in_each_form(
    asked: &Asked<'_>,
    finding: &Finding,
    is_so: impl Fn(f64) -> bool,
) -> bool {
    let limit = asked.metric.limit(asked.threshold);
    let direction = finding.metric.direction;
    let is_shown = |ratios: &Vec<f64>| {
        let error = (variance(ratios) / ratios.len() as f64).sqrt();
        let distance = direction.gain(mean(ratios)) - limit;
        let p = || student_two_sided(distance / error, ratios.len() as f64 - 1.0);
        ratios.len() >= FEWEST_STARTS && one_sided(p(), is_so(distance)) <= finding.look_level
    };
    !finding.forms.is_empty() && finding.forms.iter().all(is_shown)
}

/// The one-sided p of "the loss is no larger than the threshold": small when it is shown to be
/// larger.
pub(super) fn p_of_larger_loss(asked: &Asked<'_>) -> f64 {
    let limit = asked.metric.limit(asked.threshold);
    let Some((finding, estimate)) = decidable(asked) else {
        return 1.0;
    };
    let direction = finding.metric.direction;
    match (finding.basis, estimate.error) {
        (Basis::Slices | Basis::Blocks, Some((error, degrees))) => {
            let distance = direction.gain(estimate.ratio.ln()) - limit;
            one_sided(student_two_sided(distance / error, degrees), distance < 0.0)
        }
        (Basis::Blocks, None) => {
            let beyond: Vec<f64> = finding
                .dots
                .iter()
                .map(|ratio| direction.gain(ratio.ln()) - limit)
                .collect();
            let p = SignedRank::of(&beyond).p_less;
            match estimate.scale > 1.0 {
                false => p,
                true => one_sided(scaled_p(2.0 * p.min(1.0 - p), estimate.scale), p < 0.5),
            }
        }
        _ => 1.0,
    }
}

fn one_sided(two_sided: f64, is_beyond: bool) -> f64 {
    match is_beyond {
        true => two_sided / 2.0,
        false => 1.0 - two_sided / 2.0,
    }
}

/// `p` is corrected.
pub(super) fn row(
    asked: &Asked<'_>,
    p: f64,
    campaign: &CampaignRecord,
    history: &AaHistory<'_>,
) -> GateRow {
    let decidable = decidable(asked);
    let (answer, reason) = match (asked.finding, decidable) {
        (None, _) => (Answer::Invalid, asked.missing()),
        (Some(finding), _) if finding.call == Call::Invalid => {
            (Answer::Invalid, finding.reason.clone())
        }
        (Some(finding), None) => (Answer::Inconclusive, finding.reason.clone()),
        (Some(_), Some((finding, _))) if p <= finding.look_level => {
            let reason = match finding.call {
                Call::DependsOnTurns => finding.reason.clone(),
                _ => String::new(),
            };
            (Answer::Regression, reason)
        }
        (Some(finding), Some(_))
            if finding.call == Call::DependsOnTurns && !passes_in_each_form(asked, finding) =>
        {
            (Answer::Inconclusive, finding.reason.clone())
        }
        (Some(_), Some((finding, estimate))) => match is_above(asked, finding, estimate) {
            true => (Answer::Pass, String::new()),
            false => undecided(asked, finding, campaign, history),
        },
    };
    GateRow {
        candidate: asked.candidate.to_owned(),
        base: asked.base.to_owned(),
        step: asked.step.clone(),
        max_regression: asked.threshold,
        accepted: asked.accepted.clone(),
        answer,
        estimate: asked.finding.and_then(|finding| finding.estimate),
        p: decidable.map(|_| p),
        floor_percent: asked.floor.map(|floor| floor.percent),
        seconds: asked.finding.map_or(0.0, |finding| finding.seconds),
        reason,
    }
}

/// Whether all of the interval of the look's confidence loses less than the threshold.
fn is_above(asked: &Asked<'_>, finding: &Finding, estimate: Estimate) -> bool {
    let limit = asked.metric.limit(asked.threshold);
    estimate.at_look.is_some_and(|(low, high)| {
        let direction = finding.metric.direction;
        let worst = direction.gain(if direction.is_cost() { high } else { low }.ln());
        worst > limit
    })
}

/// The answer where nothing was shown.
fn undecided(
    asked: &Asked<'_>,
    finding: &Finding,
    campaign: &CampaignRecord,
    history: &AaHistory<'_>,
) -> (Answer, String) {
    let threshold = 100.0 * asked.threshold;
    if let Some(floor) = asked.floor.filter(|floor| floor.percent > threshold) {
        let of = (asked.step.as_str(), &asked.metric);
        return match history.why_unfit(campaign, of, threshold, floor) {
            Some(reason) => (Answer::Unfit, reason),
            None if !is_floor(floor.percent) => (Answer::Refused, not_yet(floor, finding.basis)),
            None => (
                Answer::Refused,
                format!(
                    "a threshold of {} is below the noise floor of {:.1} %: {}",
                    in_percent(threshold),
                    floor.percent,
                    advice(threshold, floor, finding.basis)
                ),
            ),
        };
    }
    let modes = finding
        .modes
        .filter(|modes| modes.ratios.0 < 1.0 && modes.ratios.1 > 1.0);
    let limit = finding.metric.direction.gain(-threshold);
    let reason = match modes {
        Some(_) => finding.reason.clone(),
        None => format!(
            "the interval of {:.1} % at this look holds {limit:+.1} %: more blocks or starts \
            narrow it",
            100.0 * (1.0 - finding.look_level)
        ),
    };
    (Answer::Inconclusive, reason)
}
