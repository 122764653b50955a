//! What a gate is asked: candidates, steps, thresholds and the metric.

use std::fmt;
use std::str::FromStr;

use glob::Pattern;
use itertools::Itertools;

use crate::AnalysisError;
use crate::metrics::{self, Metric};
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
    /// Losses that somebody accepts, with the reason; they count after the thresholds.
    pub accepted: Vec<Accepted>,
    /// Names of steps with `*`, `?` and `[abc]`, or `reads` or `writes`; empty means all.
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
            accepted: Vec::new(),
            steps: Vec::new(),
            exclude: Vec::new(),
            metric: GateMetric::THROUGHPUT,
            is_strict: false,
        }
    }

    /// The steps of `known` that are judged, each with what it may lose.
    ///
    /// # Errors
    /// When a pattern is none, or fits no step.
    pub fn steps_of(&self, known: &KnownSteps<'_>) -> Result<Vec<Judged>, AnalysisError> {
        let fitting = |patterns: &[String]| Patterns::new(patterns, known);
        let (wanted, excluded) = (fitting(&self.steps)?, fitting(&self.exclude)?);
        let thresholds: Vec<(Patterns, f64)> = self
            .thresholds
            .iter()
            .map(|of| Ok((fitting(std::slice::from_ref(&of.steps))?, of.max_regression)))
            .collect::<Result<_, AnalysisError>>()?;
        // What is accepted stays in a file when its step has left the plan.
        let accepted: Vec<(Patterns, &Accepted)> = self
            .accepted
            .iter()
            .filter_map(|of| Some((fitting(std::slice::from_ref(&of.steps)).ok()?, of)))
            .collect();
        let judged = |step: &String| {
            let own = thresholds.iter().rfind(|(steps, _)| steps.fit(step));
            let max_regression = own.map_or(self.max_regression, |(_, threshold)| *threshold);
            let accepted = accepted.iter().rfind(|(steps, _)| steps.fit(step));
            let accepted = accepted.map(|(_, accepted)| *accepted);
            let accepted = accepted.filter(|of| of.max_regression > max_regression);
            Judged {
                step: step.clone(),
                max_regression: accepted.map_or(max_regression, |of| of.max_regression),
                accepted: accepted.map(|of| of.reason.clone()),
            }
        };
        Ok(known
            .names
            .iter()
            .filter(|step| self.steps.is_empty() || wanted.fit(step))
            .filter(|step| !excluded.fit(step))
            .map(judged)
            .collect())
    }
}

/// The steps that there are.
pub struct KnownSteps<'k> {
    pub names: &'k [String],
    /// The name of a step that a user may write shorter.
    pub full_name: &'k dyn Fn(&str) -> String,
    /// Whether the step of this name writes.
    pub is_writing: &'k dyn Fn(&str) -> bool,
}

/// A step that a gate judges.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    pub step: String,
    /// What it may lose, as a share.
    pub max_regression: f64,
    /// Why that is more than the threshold.
    pub accepted: Option<String>,
}

/// Names of steps, with wildcards or by what they do.
struct Patterns<'k> {
    all: Vec<Fits>,
    known: &'k KnownSteps<'k>,
}

enum Fits {
    Named(Pattern),
    Reads,
    Writes,
}

impl<'k> Patterns<'k> {
    fn new(texts: &[String], known: &'k KnownSteps<'k>) -> Result<Self, AnalysisError> {
        let fits = |text: &String| {
            let name = (known.full_name)(text);
            let pattern = Pattern::new(&name).map_err(|error| AnalysisError::StepPattern {
                pattern: text.clone(),
                reason: error.msg.to_owned(),
            })?;
            let is_there = known.names.iter().any(|step| pattern.matches(step));
            match text.as_str() {
                _ if is_there => Ok(Fits::Named(pattern)),
                "reads" => Ok(Fits::Reads),
                "writes" => Ok(Fits::Writes),
                _ => {
                    let known = known.names.iter().map(String::as_str);
                    Err(AnalysisError::unknown_step(text, known))
                }
            }
        };
        Ok(Self {
            all: texts.iter().map(fits).collect::<Result<_, _>>()?,
            known,
        })
    }

    fn fit(&self, step: &str) -> bool {
        let is_writing = || (self.known.is_writing)(step);
        self.all.iter().any(|fits| match fits {
            Fits::Named(pattern) => pattern.matches(step),
            Fits::Reads => !is_writing(),
            Fits::Writes => is_writing(),
        })
    }
}

/// A loss that somebody accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// A name of steps with wildcards, `reads` or `writes`.
    pub steps: String,
    /// Up to what share.
    pub max_regression: f64,
    pub reason: String,
}

impl Accepted {
    /// Reads a file of them: `STEPS SHARE REASON` on each line, as in `update-* 8% a new checksum`;
    /// lines that begin with `#` are for people.
    ///
    /// # Errors
    /// A sentence with the line's number.
    pub fn read(text: &str) -> Result<Vec<Self>, String> {
        let line = |(number, line): (usize, &str)| {
            let mut words = line.split_whitespace();
            let (steps, share) = (words.next()?, words.next());
            let reason = words.join(" ");
            let percent = share.and_then(|share| share.strip_suffix('%')?.parse::<f64>().ok());
            let is_share = |percent: &f64| *percent > 0.0 && *percent < 100.0;
            Some(match percent.filter(is_share) {
                Some(percent) if !reason.is_empty() => Ok(Self {
                    steps: steps.to_owned(),
                    max_regression: percent / 100.0,
                    reason,
                }),
                _ => Err(format!(
                    "line {number}: write steps, what they may lose and why, as in \
                    `update-* 8% a new checksum`"
                )),
            })
        };
        (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, line)| !line.starts_with('#'))
            .filter_map(line)
            .collect()
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
            Judges::Metric(metric) => metric.direction.is_cost(),
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
        with_accepted(steps, exclude, thresholds, "")
    }

    fn with_accepted(
        steps: &[&str],
        exclude: &[&str],
        thresholds: &[(&str, f64)],
        accepted: &str,
    ) -> String {
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
            accepted: Accepted::read(accepted).unwrap(),
            ..GateRequest::new(&["c"], 0.05)
        };
        let names = ["point-query", "update-index", "update-nonindex", "scan.t24"];
        let full_name = |text: &str| match text {
            "scan" => "scan.t24".to_owned(),
            text => text.to_owned(),
        };
        let known = KnownSteps {
            names: &names.map(str::to_owned),
            full_name: &full_name,
            is_writing: &|step| step.starts_with("update"),
        };
        match request.steps_of(&known) {
            Ok(steps) => steps
                .iter()
                .map(|of| {
                    let why = of.accepted.as_ref().map(|why| format!(" ({why})"));
                    format!(
                        "{} {}{}",
                        of.step,
                        of.max_regression,
                        why.unwrap_or_default()
                    )
                })
                .join(", "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn steps_are_chosen_by_pattern_and_the_last_threshold_that_fits_counts() {
        let all = "point-query 0.05, update-index 0.05, update-nonindex 0.05, scan.t24 0.05";
        type Texts = &'static [&'static str];
        type Own = &'static [(&'static str, f64)];
        let cases: [(Texts, Texts, Own, &str); 9] = [
            (&["reads"], &[], &[], "point-query 0.05, scan.t24 0.05"),
            (
                &[],
                &["reads"],
                &[("writes", 0.08), ("*-index", 0.1)],
                "update-index 0.1, update-nonindex 0.08",
            ),
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
    fn an_accepted_loss_widens_the_threshold_and_has_a_reason() {
        let file =
            "# checked in June\n\nupdate-* 8% a new checksum\npoint-query 2% narrower\nold 9% gone";
        assert_eq!(
            with_accepted(&["*que*", "update-index"], &[], &[], file),
            "point-query 0.05, update-index 0.08 (a new checksum)"
        );
        for bad in [
            "update-*",
            "update-* 8%",
            "update-* 8 why",
            "update-* 0% why",
        ] {
            let error = Accepted::read(&format!("\n{bad}")).unwrap_err();
            assert!(error.starts_with("line 2: "), "{error}");
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
