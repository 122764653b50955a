//! What a gate is asked: candidates, steps, thresholds and the metric.

use std::fmt;
use std::str::FromStr;

use glob::Pattern;
use itertools::Itertools;

use crate::AnalysisError;
use crate::metrics::{self, Direction, Metric};
use crate::verdicts::{Finding, Role, companions};

/// What a gate decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRequest {
    /// A cell or a build; else the campaign's base.
    pub base: Option<String>,
    /// Cells or builds that must not be worse than the base. Together they are one family.
    pub candidates: Vec<String>,
    /// What a candidate may lose of the metric in any step, as a share: 0.05 is 5 %.
    pub max_regression: f64,
    /// What it may lose in some steps instead; the last that fits counts.
    pub thresholds: Vec<StepThreshold>,
    /// Names of steps with `*`, `?` and `[abc]`; empty means all.
    pub steps: Vec<String>,
    /// Steps that are left out, in the same way.
    pub exclude: Vec<String>,
    /// What is judged.
    pub metric: GateMetric,
    /// Whether a step that is unfit for its threshold takes the decision away.
    pub is_strict: bool,
}

impl GateRequest {
    /// Throughput in all steps.
    pub fn new(candidates: &[&str], max_regression: f64) -> Self {
        Self {
            base: None,
            candidates: candidates.iter().map(|name| (*name).to_owned()).collect(),
            max_regression,
            thresholds: Vec::new(),
            steps: Vec::new(),
            exclude: Vec::new(),
            metric: GateMetric::THROUGHPUT,
            is_strict: false,
        }
    }

    /// The steps of `known` that are judged, each with its threshold. `full_name` is the name of a
    /// step that a user may write shorter.
    ///
    /// # Errors
    /// When a pattern is none, or fits no step.
    pub fn steps_of(
        &self,
        known: &[String],
        full_name: &dyn Fn(&str) -> String,
    ) -> Result<Vec<(String, f64)>, AnalysisError> {
        let fitting = |patterns: &[String]| Patterns::new(patterns, known, full_name);
        let (wanted, excluded) = (fitting(&self.steps)?, fitting(&self.exclude)?);
        let thresholds: Vec<(Patterns, f64)> = self
            .thresholds
            .iter()
            .map(|of| Ok((fitting(std::slice::from_ref(&of.steps))?, of.max_regression)))
            .collect::<Result<_, AnalysisError>>()?;
        let threshold = |step: &str| {
            let own = thresholds.iter().rfind(|(steps, _)| steps.fit(step));
            own.map_or(self.max_regression, |(_, threshold)| *threshold)
        };
        Ok(known
            .iter()
            .filter(|step| self.steps.is_empty() || wanted.fit(step))
            .filter(|step| !excluded.fit(step))
            .map(|step| (step.clone(), threshold(step)))
            .collect())
    }
}

/// Names of steps with wildcards.
struct Patterns(Vec<Pattern>);

impl Patterns {
    fn new(
        texts: &[String],
        known: &[String],
        full_name: &dyn Fn(&str) -> String,
    ) -> Result<Self, AnalysisError> {
        let pattern = |text: &String| {
            let name = full_name(text);
            let pattern = Pattern::new(&name).map_err(|error| AnalysisError::StepPattern {
                pattern: text.clone(),
                reason: error.msg.to_owned(),
            })?;
            match known.iter().any(|step| pattern.matches(step)) {
                true => Ok(pattern),
                false => {
                    let known = known.iter().map(String::as_str);
                    Err(AnalysisError::unknown_step(text, known))
                }
            }
        };
        texts
            .iter()
            .map(pattern)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn fit(&self, step: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(step))
    }
}

/// A threshold of its own for some steps.
#[derive(Clone, Debug, PartialEq)]
pub struct StepThreshold {
    /// A name of steps with wildcards.
    pub steps: String,
    /// What a candidate may lose there, as a share.
    pub max_regression: f64,
}

/// The metric that a gate judges. Its text is what `--metric` takes: `throughput`, `cpu`, `p99`,
/// `max`, `stalls`, or the name of another companion in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateMetric {
    name: &'static str,
    of: Judges,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Judges {
    Role(Role),
    Metric(&'static Metric),
}

impl GateMetric {
    /// Of each step, in its own operations.
    pub const THROUGHPUT: Self = Self {
        name: "throughput",
        of: Judges::Role(Role::Throughput),
    };

    /// All that there are, by name.
    fn all() -> impl Iterator<Item = Self> {
        let cpu = Self {
            name: "cpu",
            of: Judges::Role(Role::Cpu),
        };
        let companion = |metric: &'static Metric| Self {
            name: match metric {
                _ if metric == metrics::P99_SERVICE_US => "p99",
                _ if metric == metrics::MAX_SERVICE_US => "max",
                _ if metric.name == "whole_to_typical" => "stalls",
                _ => metric.name,
            },
            of: Judges::Metric(metric),
        };
        let companions = companions().map(companion);
        [Self::THROUGHPUT, cpu].into_iter().chain(companions)
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a finding is about it.
    pub(super) fn is_of(&self, finding: &Finding) -> bool {
        self.is_judged_by(finding.role, finding.metric)
    }

    pub(super) fn is_judged_by(&self, role: Role, metric: &Metric) -> bool {
        match self.of {
            Judges::Role(of) => of == role,
            Judges::Metric(of) => of.name == metric.name,
        }
    }

    /// Whether less of it is better.
    fn is_cost(&self) -> bool {
        match self.of {
            Judges::Role(role) => role == Role::Cpu,
            Judges::Metric(metric) => metric.direction == Direction::Lower,
        }
    }

    /// `5.0 % less throughput`, `5.0 % more p99`.
    pub fn loss(&self, share: f64) -> String {
        let worse = if self.is_cost() { "more" } else { "less" };
        format!("{} {worse} {}", in_percent(100.0 * share), self.name)
    }

    /// The log ratio, seen so that more is better, of a candidate that loses exactly this share.
    pub(super) fn limit(&self, share: f64) -> f64 {
        match self.is_cost() {
            true => -share.ln_1p(),
            false => (-share).ln_1p(),
        }
    }
}

impl FromStr for GateMetric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::all();
        all.find(|metric| metric.name == text).ok_or_else(|| {
            format!(
                "a gate does not judge it; take one of {}",
                Self::all().map(|metric| metric.name).join(", ")
            )
        })
    }
}

impl fmt::Display for GateMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// `5.0 %`, `0.05 %`.
pub(super) fn in_percent(percent: f64) -> String {
    let decimals = if percent < 0.1 { 2 } else { 1 };
    format!("{percent:.decimals$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(steps: &[&str], exclude: &[&str], thresholds: &[(&str, f64)]) -> String {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let request = GateRequest {
            steps: owned(steps),
            exclude: owned(exclude),
            thresholds: thresholds
                .iter()
                .map(|(steps, max_regression)| StepThreshold {
                    steps: (*steps).to_owned(),
                    max_regression: *max_regression,
                })
                .collect(),
            ..GateRequest::new(&["c"], 0.05)
        };
        let known = ["point-query", "update-index", "update-nonindex", "scan.t24"];
        let full_name = |text: &str| match text {
            "scan" => "scan.t24".to_owned(),
            text => text.to_owned(),
        };
        match request.steps_of(&known.map(str::to_owned), &full_name) {
            Ok(steps) => steps
                .iter()
                .map(|(step, share)| format!("{step} {share}"))
                .join(", "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn steps_are_chosen_by_pattern_and_the_last_threshold_that_fits_counts() {
        let all = "point-query 0.05, update-index 0.05, update-nonindex 0.05, scan.t24 0.05";
        type Texts = &'static [&'static str];
        type Own = &'static [(&'static str, f64)];
        let cases: [(Texts, Texts, Own, &str); 7] = [
            (&[], &[], &[], all),
            (&["point*"], &[], &[], "point-query 0.05"),
            (&["scan"], &[], &[], "scan.t24 0.05"),
            (
                &[],
                &["update-*", "scan"],
                &[("point-query", 0.02)],
                "point-query 0.02",
            ),
            (
                &["update-*"],
                &[],
                &[("update-*", 0.08), ("*-nonindex", 0.1)],
                "update-index 0.08, update-nonindex 0.1",
            ),
            (&["updat"], &[], &[], "find step \"updat\": the campaign"),
            (&[], &["[u"], &[], "choose steps by \"[u\": "),
        ];
        for (steps, exclude, thresholds, expected) in cases {
            let found = chosen(steps, exclude, thresholds);
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn metrics_have_names_and_a_worse_side() {
        for (name, words, limit) in [
            ("throughput", "5.0 % less throughput", 0.95f64.ln()),
            ("cpu", "5.0 % more cpu", -(1.05f64.ln())),
            ("p99", "5.0 % more p99", -(1.05f64.ln())),
            ("stalls", "5.0 % less stalls", 0.95f64.ln()),
            ("server_rpq", "5.0 % more server_rpq", -(1.05f64.ln())),
        ] {
            let metric: GateMetric = name.parse().unwrap();
            assert_eq!((metric.loss(0.05).as_str(), metric.name()), (words, name));
            assert!((metric.limit(0.05) - limit).abs() < 1e-12);
        }
        let error = "qps".parse::<GateMetric>().unwrap_err();
        assert!(
            error.contains("throughput, cpu, stalls, p99, max"),
            "{error}"
        );
    }
}
