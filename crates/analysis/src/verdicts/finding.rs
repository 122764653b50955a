//! What is concluded about one cell, step and metric against the base.

use super::hosts::OfHost;
use super::measured::Role;
use crate::metrics::Metric;
use plimsoll_stats::{Interval, KnownVariance, Screen, Spread, Verdict, scaled_p};

/// How runs were set beside each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// One run of each.
    Screen,
    /// Blocks: every cell once, one after the other.
    Blocks,
    /// Turns of some milliseconds, all servers up.
    Slices,
}

impl Basis {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Screen => "screen",
            Self::Blocks => "blocks",
            Self::Slices => "slices",
        }
    }
}

/// A ratio to the base with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// New / base.
    pub ratio: f64,
    /// The interval's ends, as ratios; `None` where so few pairs have none.
    pub interval: Option<(f64, f64)>,
    /// Its confidence level.
    pub level: f64,
    /// Starts of the servers behind it.
    pub starts: usize,
    /// Pairs behind it: blocks, or rounds over all starts.
    pub pairs: usize,
    /// The two-sided p of "there is no difference"; `None` for a screen.
    pub p: Option<f64>,
    /// The interval of the look's own confidence, as ratios: what equivalence is judged by.
    pub at_look: Option<(f64, f64)>,
    /// The standard error of the log ratio and its degrees of freedom, of starts and of few
    /// blocks; `None` where ranks are judged.
    pub error: Option<(f64, f64)>,
    /// New / base of a typical round, of starts alone: what is left of the ratio when stalls do not
    /// count.
    pub typical: Option<f64>,
    /// How many times as large as the pairs say errors are, because the base differs from itself by
    /// more. Intervals and p have it.
    pub scale: f64,
}

impl Estimate {
    pub(crate) fn log_interval(&self) -> Option<Interval> {
        self.interval.map(|ends| as_logs(ends, self.level))
    }

    /// The interval that equivalence is judged by.
    pub(crate) fn log_interval_at_look(&self) -> Option<Interval> {
        self.at_look.map(|ends| as_logs(ends, self.level))
    }

    /// The estimate with intervals so many times as wide, because machines disagree. `scale`, which
    /// says how far the base differs from itself, stays.
    pub(crate) fn widened_by(self, widening: f64) -> Self {
        Self {
            scale: self.scale,
            ..self.with_errors_times(widening)
        }
    }

    /// The estimate with errors that are `scale` times as large.
    pub(crate) fn with_errors_times(self, scale: f64) -> Self {
        let centre = self.ratio.ln();
        let widened = |ends: (f64, f64)| {
            let interval = as_logs(ends, self.level).widened(centre, scale);
            (interval.low.exp(), interval.high.exp())
        };
        match scale > 1.0 {
            false => self,
            true => Self {
                interval: self.interval.map(widened),
                at_look: self.at_look.map(widened),
                p: self.p.map(|p| scaled_p(p, scale)),
                error: self.error.map(|(error, degrees)| (scale * error, degrees)),
                scale,
                ..self
            },
        }
    }

    /// Half of the interval's width, in percent of the ratio.
    pub fn half_width_percent(&self) -> Option<f64> {
        self.log_interval()
            .map(|interval| 100.0 * interval.half_width())
    }
}

fn as_logs((low, high): (f64, f64), level: f64) -> Interval {
    Interval {
        low: low.ln(),
        high: high.ln(),
        level,
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Call {
    /// Of a campaign with pairs.
    Verdict(Verdict),
    /// Nothing can be said: [`Finding::reason`] has why.
    Invalid,
    /// By slices: the ratio is another one in longer turns, or with fewer candidates.
    /// [`Finding::reason`] has what it is in either.
    DependsOnTurns,
    /// Of one run of each, set against how far starts of this machine lie apart.
    Screen(Screen, Spread),
}

impl Call {
    /// The word: `regression`, `improvement`, `equivalent`, `inconclusive`, `invalid`, `depends on
    /// turns`, `unusual` or `usual`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Verdict(verdict) => verdict.name(),
            Self::Invalid => "invalid",
            Self::DependsOnTurns => "depends on turns",
            Self::Screen(screen, _) if screen.is_unusual() => "unusual",
            Self::Screen(..) => "usual",
        }
    }

    /// Whether there is an answer, if only that it is open.
    pub fn is_judged(&self) -> bool {
        !matches!(self, Self::Invalid | Self::DependsOnTurns)
    }
}

/// One cell, step and metric against the base.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Index into the view's cells; never a base.
    pub cell: usize,
    /// Index into the view's cells of what it is held against.
    pub base: usize,
    pub step: String,
    pub metric: &'static Metric,
    /// What the metric is to the step.
    pub role: Role,
    /// How runs were set beside each other.
    pub basis: Basis,
    /// The ratio; `None` where there is no pair.
    pub estimate: Option<Estimate>,
    /// The level of the look that the campaign has reached.
    pub(crate) look_level: f64,
    /// The p after correction over cells and steps; `None` for a screen, for what depends on turns and
    /// where nothing was tested.
    pub p_adjusted: Option<f64>,
    pub call: Call,
    /// Blocks or starts before which nothing is called; `None` if there are as many.
    pub(crate) needed: Option<usize>,
    /// Why nothing more can be said, or what would let it be said; empty for a verdict that stands
    /// by itself.
    pub reason: String,
    /// Pairs left out because a witness saw the machine disturbed.
    pub left_out: usize,
    /// If it is invalid because too little of what was measured says something: blocks or starts that
    /// have run. More of them may mend it; what crashed stays invalid.
    pub(crate) too_little_of: Option<usize>,
    /// Seconds of measuring behind the ratio: by slices from the first turn of a step to the last
    /// over all starts, which all candidates share, else the runs of both sides.
    pub seconds: f64,
    /// Single ratios for a plot: blocks, or rounds, at most a hundred, evenly taken.
    pub dots: Vec<f64>,
    /// By slices, what each start says.
    pub by_start: Vec<OfStart>,
    /// By blocks on several machines, what each says.
    pub by_host: Vec<OfHost>,
    /// On how many of them it holds, and who disagrees; empty with one.
    pub hosts: String,
    /// The two groups that starts fall into, if they do.
    pub modes: Option<Modes>,
    /// If it depends on turns, the log ratios of its starts in plain turns and in those of each other
    /// form.
    pub forms: Vec<Vec<f64>>,
    /// How much of the interval's half-width is layout, as a log ratio: where the functions of the
    /// builds lie. `None` where nothing is known of it.
    pub layout: Option<f64>,
    /// What it is in each placement; empty with one.
    pub placements: String,
    /// What typical turns and stalls have to do with a throughput that differs; empty where they
    /// say nothing.
    pub turns: String,
    /// What the per-operation metrics say, in a few words; empty where they say nothing.
    pub why: String,
}

impl Finding {
    /// What it is corrected with: insert and query rates are one family.
    pub(crate) fn family(&self) -> &'static str {
        match self.role {
            Role::Throughput => "throughput",
            Role::Cpu => "CPU",
            Role::Companion => self.metric.name,
        }
    }

    /// The log ratio seen so that more is better.
    pub fn gain(&self) -> Option<f64> {
        Some(self.metric.direction.gain(self.estimate?.ratio.ln()))
    }

    /// The verdict, where there is one.
    pub fn verdict(&self) -> Option<Verdict> {
        match self.call {
            Call::Verdict(verdict) => Some(verdict),
            _ => None,
        }
    }

    /// Whether a throughput is worth a confirm: unusual in a screen, or called a difference.
    pub fn is_worth_confirming(&self) -> bool {
        let is_called = matches!(
            self.verdict(),
            Some(Verdict::Regression | Verdict::Improvement)
        );
        self.role == Role::Throughput && (self.is_unusual() || is_called)
    }

    /// Whether two equal builds would rarely differ so much in one run.
    pub fn is_unusual(&self) -> bool {
        self.call.word() == "unusual"
    }
}

/// What one start says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OfStart {
    /// Its number, from 1.
    pub start: u32,
    /// Which load of the data it began with; 1 if there is one only.
    pub load: u32,
    /// Which link of its build the cell ran, from 1; none if that was linked once.
    pub link: Option<u32>,
    /// Which of the campaign's placements it had, from 1.
    pub placement: u32,
    /// New / base over the whole start.
    pub ratio: f64,
    /// The squared standard error of its logarithm, from within the start.
    pub within: Option<KnownVariance>,
    /// New / base of a typical round.
    pub typical: Option<f64>,
    /// Rounds that count.
    pub rounds: usize,
    /// Rounds left out because a witness saw the machine disturbed in one of their turns: of the
    /// throughput of steps that read, whose rounds alone are.
    pub disturbed: usize,
}

/// Starts that fall into two groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modes {
    /// New / base in the lower and in the upper group.
    pub ratios: (f64, f64),
    /// Starts in each.
    pub starts: (usize, usize),
}

/// The base against its second instance in one step and metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    pub step: String,
    /// The label of the experiment's base, which a view may hold against another.
    pub base: String,
    /// The label of its second instance.
    pub cell: String,
    pub metric: &'static Metric,
    /// What the metric is to the step.
    pub role: Role,
    /// How runs were set beside each other.
    pub basis: Basis,
    /// Pairs left out because a witness saw the machine disturbed.
    pub left_out: usize,
    /// Seconds of measuring behind it: see [`Finding::seconds`].
    pub seconds: f64,
    /// The ratio with its 99 % interval; `None` where there is no pair.
    pub estimate: Option<Estimate>,
    /// Whether its interval holds 1; `None` without an interval.
    pub is_sound: Option<bool>,
}

/// Everything that is concluded about a view's cells against their bases.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// By cell, step and metric.
    pub all: Vec<Finding>,
    /// The A/A control; empty without one.
    pub control: Vec<Control>,
    /// The equivalence margin as a share: 0.03 is within 3 %.
    pub margin: f64,
    /// The level of the tests.
    pub alpha: f64,
    /// The cells that are not candidates: the base's second instance. Indices into the view's
    /// cells.
    pub control_cells: Vec<usize>,
    /// Under what conditions ratios hold: clients, CPUs, turns; empty for a survey.
    pub conditions: String,
    /// The mean share of the machine's CPU that others took while what counts was measured; `None`
    /// where nothing ran.
    pub taken: Option<f64>,
}

impl Findings {
    /// Where nothing can be said: imported results, a single cell.
    pub(crate) fn none() -> Self {
        Self {
            all: Vec::new(),
            control: Vec::new(),
            margin: MARGIN,
            alpha: ALPHA,
            control_cells: Vec::new(),
            conditions: String::new(),
            taken: None,
        }
    }

    /// Whether nothing was compared: neither with another cell nor the base with itself.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty() && self.control.is_empty()
    }

    /// Whether all of it rests on one run of each cell.
    pub fn is_screen(&self) -> bool {
        let mut bases = self
            .all
            .iter()
            .map(|finding| finding.basis)
            .chain(self.control.iter().map(|control| control.basis));
        bases.all(|basis| basis == Basis::Screen)
    }

    /// The bases that cells are held against, each once: more than one where a screen has groups of
    /// versions.
    pub fn bases(&self) -> Vec<usize> {
        let mut bases: Vec<usize> = self.all.iter().map(|finding| finding.base).collect();
        bases.sort_unstable();
        bases.dedup();
        bases
    }

    /// The finding on a cell's throughput in a step.
    pub fn of_throughput(&self, cell: usize, step: &str) -> Option<&Finding> {
        self.all
            .iter()
            .find(|of| of.cell == cell && of.step == step && of.role == Role::Throughput)
    }

    /// The noise floor in a role, in percent: the half-width of the control's 95 % interval, in one
    /// step or the median over all; without a control that of the findings.
    pub fn noise_floor_percent(&self, role: Role, step: Option<&str>) -> Option<f64> {
        let is_asked = |of: Role, at: &str| of == role && step.is_none_or(|step| step == at);
        let of_control = self
            .control
            .iter()
            .filter(|control| is_asked(control.role, &control.step));
        let half_width = |interval: Interval| 100.0 * interval.half_width();
        let mut widths: Vec<f64> = of_control
            .filter_map(|control| Some(half_width(control.estimate?.log_interval_at_look()?)))
            .collect();
        if widths.is_empty() {
            let all = self
                .all
                .iter()
                .filter(|finding| is_asked(finding.role, &finding.step));
            widths = all
                .filter_map(|finding| finding.estimate?.half_width_percent())
                .collect();
        }
        plimsoll_stats::median(&widths)
    }
}

/// The equivalence margin where a campaign has none of its own.
pub(crate) const MARGIN: f64 = 0.03;
/// The level of the tests where a campaign has none of its own.
pub(crate) const ALPHA: f64 = 0.05;
/// The smallest difference that is called, as a share.
pub(crate) const LEAST: f64 = 0.005;
