//! Runs of a cell and the base in one block or start, and the pairs of a metric that they make.

use std::collections::BTreeMap;

use itertools::Itertools;
use plimsoll_core::units::NS_PER_S;
use plimsoll_stats::mean;
use plimsoll_store::{TrialRecord, Turn};

use super::stalls::Stalls;
use super::starts::{Form, StartPairs, by_form, start_pairs};
use super::{Pairs, can_meet, counting};
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::verdicts::finding::Basis;
use crate::verdicts::measured::{Judged, Source};

/// The runs of a step that count, of a cell and of the base, by block or start.
pub(crate) struct Meetings<'b, 'a> {
    basis: Basis,
    is_writing: bool,
    all: Vec<Meeting<'b, 'a>>,
    /// Of those that count.
    seconds: f64,
    /// How many a witness left out.
    left_out: usize,
}

struct Meeting<'b, 'a> {
    block: u32,
    other: &'b Run<'a>,
    /// The base, and its second instance where that is asked for and ran.
    bases: Vec<&'b Run<'a>>,
    /// By slices, as `other` and `bases`.
    turns: Vec<Turn>,
    base_turns: Vec<Vec<Turn>>,
}

/// How many candidates have a turn in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shapes {
    pub fewest: u64,
    pub most: u64,
}

impl<'b, 'a> Meetings<'b, 'a> {
    /// A cell is compared with the mean of the base's instances: with two of them a ratio varies by
    /// 1.5 times the variance of one candidate, not twice.
    pub fn of(
        basis: Basis,
        bases: &[&'b CellRuns<'a>],
        other: &'b CellRuns<'a>,
        step: &str,
    ) -> Self {
        let mut meetings = Self {
            basis,
            is_writing: other.campaign.header.plan.is_writing(step),
            all: Vec::new(),
            seconds: 0.0,
            left_out: 0,
        };
        let Some((base, again)) = bases.split_first() else {
            return meetings;
        };
        let (counting, left_out) = counting(basis, base, other, step);
        meetings.left_out = left_out;
        for (of_base, of_other) in counting {
            let mut of_bases = vec![of_base];
            of_bases.extend(again.iter().filter_map(|again| {
                let is_beside = |run: &&Run<'_>| {
                    let is_sound = run.status.is_finished() && !run.is_void;
                    let is_sound = is_sound && can_meet(basis, run, of_base);
                    run.unit == of_base.unit && is_sound
                };
                again.used(step).find(is_beside)
            }));
            meetings.add(of_bases, of_other, step);
        }
        meetings
    }

    fn add(&mut self, bases: Vec<&'b Run<'a>>, other: &'b Run<'a>, step: &str) {
        let turns_of = |run: &Run<'_>| match self.basis {
            Basis::Slices => run
                .record
                .and_then(|record| record.turns(step).ok())
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        let meeting = Meeting {
            block: other.unit.block,
            turns: turns_of(other),
            base_turns: bases.iter().map(|run| turns_of(run)).collect(),
            other,
            bases,
        };
        self.seconds += meeting.seconds(self.basis);
        self.all.push(meeting);
    }

    /// The pairs of a metric.
    pub fn pairs(&self, judged: &Judged) -> Pairs {
        let mut pairs = Pairs {
            left_out: self.left_out,
            done: self.done(),
            seconds: self.seconds,
            ..Pairs::default()
        };
        let is_worth_it = |meeting: &Meeting<'_, '_>| {
            let mut runs = meeting.bases.iter().chain([&meeting.other]);
            runs.any(|run| judged.is_above_least(run))
        };
        if judged.source == Source::Step && !self.all.iter().any(is_worth_it) {
            return pairs;
        }
        let mut of_blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let mut of_hosts: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
        for meeting in &self.all {
            if self.basis == Basis::Slices {
                pairs.starts.extend(self.start(meeting, judged));
            } else {
                let Some(ratio) = meeting.of_step(judged) else {
                    continue;
                };
                of_blocks.entry(meeting.block).or_default().push(ratio);
                let host = meeting.other.record.and_then(|record| record.place().host);
                if let Some(host) = host {
                    let of_host = of_hosts.entry((meeting.block, host)).or_default();
                    of_host.push(ratio);
                }
            }
        }
        // What runs in every part of a block, such as the load, counts once per block, and once per
        // block on each host.
        pairs.blocks = of_blocks.values().map(|ratios| mean(ratios)).collect();
        let of_hosts = of_hosts.iter();
        pairs.of_hosts = of_hosts
            .map(|((_, host), ratios)| ((*host).to_owned(), mean(ratios)))
            .collect();
        pairs
    }

    /// What a start says.
    fn start(&self, meeting: &Meeting<'_, '_>, judged: &Judged) -> Option<StartPairs> {
        let of_turns = |is_rate: bool| {
            let limit = meeting.most_taken(is_rate, self.is_writing);
            let (bases, other) = (&meeting.base_turns, &meeting.turns);
            start_pairs(meeting.block, bases, other, is_rate, limit)
        };
        let pairs = match judged.source {
            Source::Rate => of_turns(true)?,
            Source::Cpu => of_turns(false)?,
            Source::Stalls => of_turns(true)?.stalls()?,
            Source::Step => StartPairs::plain(meeting.block, meeting.of_step(judged)?),
        };
        let of_trial = meeting.other.record.and_then(TrialRecord::start);
        Some(StartPairs {
            load: of_trial.and_then(|of| of.load).unwrap_or(1),
            link: of_trial.and_then(|of| of.link),
            ..pairs
        })
    }

    /// Blocks or starts that have run on both sides, those left out included.
    pub fn done(&self) -> usize {
        let blocks = self.all.iter().map(|meeting| meeting.block);
        self.left_out + blocks.unique().count()
    }

    /// The log ratios of each start that has rounds of a form, of throughput (`is_rate`) or of CPU
    /// per operation: over its plain rounds, and over those.
    pub fn by_form(&self, form: Form, is_rate: bool) -> Vec<(u32, f64, f64)> {
        let of_start = |meeting: &Meeting<'_, '_>| {
            let limit = meeting.most_taken(is_rate, self.is_writing);
            let (bases, other) = (&meeting.base_turns, &meeting.turns);
            let (plain, of_form) = by_form(bases, other, form, is_rate, limit)?;
            Some((meeting.block, plain, of_form))
        };
        self.all.iter().filter_map(of_start).collect()
    }

    /// How many candidates have turns in a round.
    pub fn shapes(&self) -> Shapes {
        let turns = || self.all.iter().flat_map(|meeting| &meeting.turns);
        let candidates = || turns().filter_map(|turn| turn.candidates);
        Shapes {
            fewest: candidates().min().unwrap_or(0),
            most: candidates().max().unwrap_or(0),
        }
    }

    /// Turns without a single operation, of all turns of the cell and the base, as a share.
    pub fn empty_turns(&self) -> f64 {
        let turns = || {
            let of_meeting = |meeting: &'_ Meeting<'_, '_>| {
                let sides = meeting
                    .base_turns
                    .first()
                    .into_iter()
                    .chain([&meeting.turns]);
                sides
                    .map(|turns| {
                        let is_empty = |turn: &&Turn| turn.operations == 0;
                        (turns.iter().filter(is_empty).count(), turns.len())
                    })
                    .fold((0, 0), |sum, side| (sum.0 + side.0, sum.1 + side.1))
            };
            self.all.iter().map(of_meeting)
        };
        let (empty, all) = turns().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        match all {
            0 => 0.0,
            all => empty as f64 / all as f64,
        }
    }

    /// The stalls of the base and of the cell over all starts.
    pub fn stalls(&self) -> (Stalls, Stalls) {
        let (mut base, mut other) = (Stalls::default(), Stalls::default());
        for meeting in &self.all {
            meeting.base_turns.iter().for_each(|turns| base.add(turns));
            other.add(&meeting.turns);
        }
        (base, other)
    }

    /// The share of the machine that others took while the runs went on, the root of the sum of
    /// both sides' squares: how far it may have moved a ratio. Of a screen.
    pub fn taken(&self) -> f64 {
        let squares = self.all.iter().map(|meeting| {
            let sides = [meeting.other, meeting.bases[0]];
            sides.map(|run| run.taken.powi(2)).iter().sum::<f64>()
        });
        squares.fold(0.0, f64::max).sqrt()
    }
}

impl Meeting<'_, '_> {
    /// Seconds of measuring: by slices from the first turn to the last, which all candidates share.
    fn seconds(&self, basis: Basis) -> f64 {
        let ns = if basis == Basis::Slices {
            let turns = &self.base_turns[0];
            let ends = turns.first().zip(turns.last());
            ends.map_or(0, |(first, last)| {
                last.begin_ns.saturating_sub(first.begin_ns)
            })
        } else {
            let elapsed_ns = |run: &Run<'_>| run.done.map_or(0, |done| done.elapsed_ns);
            elapsed_ns(self.bases[0]) + elapsed_ns(self.other)
        };
        ns as f64 / NS_PER_S
    }

    /// What others may take of a turn, in cores, before its round is left out. Turns that read are
    /// more alike than what others take leaves them. Turns that write vary more by themselves, and
    /// CPU per operation hardly moves: there leaving a round out costs more than it gains.
    fn most_taken(&self, is_rate: bool, is_writing: bool) -> f64 {
        match is_rate && !is_writing {
            true => self.other.limits.turn_cores,
            false => f64::INFINITY,
        }
    }

    /// The log ratio of the whole step's number with the mean of the bases.
    fn of_step(&self, judged: &Judged) -> Option<f64> {
        let bases = self.bases.iter();
        let bases: Option<Vec<f64>> = bases.map(|run| judged.log_value(run)).collect();
        Some(judged.log_value(self.other)? - mean(&bases?))
    }
}
