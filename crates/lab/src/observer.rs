//! Whoever watches a campaign: the console, or a test.

use std::sync::atomic::AtomicUsize;

use plimsoll_core::plan::Cell;
use plimsoll_core::schedule::ScheduledTrial;

use crate::message::TrialMessage;

/// What happens in a campaign.
#[derive(Clone, Debug)]
pub enum Notice<'a> {
    TrialStart {
        trial: &'a ScheduledTrial,
        /// Its attempt, from 1.
        attempt: u32,
        /// Trials of the schedule.
        trials: usize,
        cell: &'a Cell,
    },
    /// A trial says something.
    Trial(&'a TrialMessage),
    /// A trial ended without being complete.
    TrialBroken {
        cell: &'a Cell,
        /// Why.
        reason: &'a str,
    },
    /// Data is made that trials begin with.
    StateStart { cell: &'a Cell, load: u32 },
    /// A candidate's server is profiled.
    ProfileStart { cell: &'a Cell },
    /// All servers of a start are about to come up.
    StartBegins {
        /// The start, from 1.
        start: u32,
        /// Starts in all.
        starts: u32,
        /// The candidates.
        cells: &'a [&'a Cell],
        /// Its attempt, from 1.
        attempt: u32,
    },
    /// Candidates of a start are waited for.
    Awaited {
        /// Who.
        labels: Vec<&'a str>,
        /// For what, after "to".
        what: &'a str,
        /// How long so far.
        seconds: u64,
        /// How long at most.
        limit_s: u64,
    },
    /// A step in turns goes on.
    Turns(&'a TurnsProgress),
    /// A step in turns is over in this start.
    StepTurns(&'a StepTurns),
    /// Something happens in one of several trials that run side by side.
    OfCell {
        cell: &'a Cell,
        notice: &'a Notice<'a>,
    },
    /// Something happens on another machine.
    OnHost {
        /// What the user calls it.
        host: &'a str,
        notice: &'a Notice<'a>,
    },
    /// Good to know: how far a campaign with a budget has come, that nothing is left to run.
    Remark(&'a str),
    /// Something went wrong that ends nothing.
    Warning(&'a str),
}

/// Watches how a campaign goes.
pub trait Observer {
    fn notice(&mut self, notice: Notice<'_>);

    /// How often the user has asked to stop: once ends the step in flight cleanly, twice ends the
    /// trial's process.
    fn stop_requests(&self) -> &AtomicUsize;
}

/// How a campaign's run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CampaignEnd {
    /// Every trial is complete.
    Complete,
    /// All trials were tried; some are not complete.
    Incomplete {
        /// Trials without a complete attempt.
        broken: usize,
    },
    /// What there was after this block was enough.
    Decided {
        /// Of the schedule.
        block: u32,
        /// Trials until then without a complete attempt.
        broken: usize,
        /// Whether there is time to go on, by `resume`.
        has_time: bool,
    },
    /// The user stopped it.
    Interrupted,
}

impl CampaignEnd {
    /// All trials were tried, and so many are not complete.
    pub(crate) fn of_broken(broken: usize) -> Self {
        if broken == 0 {
            Self::Complete
        } else {
            Self::Incomplete { broken }
        }
    }
}

/// How a step in turns goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnsProgress {
    pub step: String,
    /// Its position, from 1.
    pub index: usize,
    /// Steps of the start.
    pub steps: usize,
    /// The start, from 1.
    pub start: u32,
    /// Starts in all.
    pub starts: u32,
    /// Rounds so far.
    pub rounds: u32,
    /// Seconds of turns so far, and the maximum.
    pub elapsed_s: f64,
    /// See `elapsed_s`.
    pub limit_s: f64,
    /// Half of the widest interval so far, as a share; none before there are intervals.
    pub half_width: Option<f64>,
    /// Seconds until the campaign is over at the latest, without the time between steps.
    pub eta_s: f64,
}

/// A throughput relative to the base's within one start. What starts differ by is not in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnsRatio {
    /// The Hodges-Lehmann estimate over rounds.
    pub ratio: f64,
    /// Half of the interval of 95 %, as a share of the ratio.
    pub half_width: f64,
}

/// A step in turns that is over in one start.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTurns {
    pub step: String,
    /// The start, from 1.
    pub start: u32,
    /// Starts in all.
    pub starts: u32,
    pub rounds: u32,
    /// Seconds they took.
    pub seconds: f64,
    /// Labels of the candidates but the base, and their throughput's ratio to it within this start
    /// at 95 %.
    pub ratios: Vec<(String, Option<TurnsRatio>)>,
    /// What speaks against the numbers.
    pub warnings: Vec<String>,
}

/// Keeps the remarks and warnings of a test.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Heard(pub Vec<String>, AtomicUsize);

#[cfg(test)]
impl Observer for Heard {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Remark(text) | Notice::Warning(text) => self.0.push(text.to_owned()),
            _ => {}
        }
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.1
    }
}
