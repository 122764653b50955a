//! What one start says of a cell and the base, from their turns.

use std::collections::BTreeMap;

use plimsoll_core::witness::{ForeignCpu, is_turn_disturbed};
use plimsoll_stats::{KnownVariance, StartRatio, hodges_lehmann, mean, median, of_batches};
use plimsoll_store::Turn;

/// If witnesses saw more of a start's rounds disturbed than this share, all of them stay: the start
/// then shows a disturbed machine, and its interval has the width that it earns.
const MOST_DISTURBED: f64 = 0.5;
/// A usual turn counts at least so much of its planned length. If most of them had next to nothing to
/// do, the others would outweigh them all.
const LEAST_COUNTED: f64 = 0.25;

/// What one start says of a cell and the base.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StartPairs {
    /// The start's number, from 1.
    pub start: u32,
    /// Which load of the data it began with; 1 if there is one only.
    pub load: u32,
    /// Which link of its build the cell ran; none if that was linked once.
    pub link: Option<u32>,
    /// The log ratio over the whole start: of sums over all rounds that both sides have. Stalls
    /// count in it as much as in the time of their round. Rounds of longer turns weigh as much as
    /// plain ones: the machine makes pairs of turns differ by as much however long they are.
    pub whole: f64,
    /// The squared error of `whole`, from batches of consecutive rounds; none where there are few
    /// rounds.
    pub within: Option<KnownVariance>,
    /// The log ratio of each round in which both sides did something.
    pub rounds: Vec<f64>,
    /// Rounds left out because a witness saw the machine disturbed in one of their turns.
    pub disturbed: usize,
}

impl StartPairs {
    /// A start that says one number, without rounds.
    pub fn plain(start: u32, whole: f64) -> Self {
        Self {
            start,
            load: 1,
            link: None,
            whole,
            within: None,
            rounds: Vec::new(),
            disturbed: 0,
        }
    }

    /// The log ratio of a typical round: its Hodges-Lehmann estimate.
    pub fn typical(&self) -> Option<f64> {
        hodges_lehmann(&self.rounds)
    }

    /// What is in the whole ratio and not in that of a typical round: stalls.
    pub fn stalls(&self) -> Option<Self> {
        let plain = Self::plain(self.start, self.whole - self.typical()?);
        Some(Self {
            load: self.load,
            link: self.link,
            ..plain
        })
    }

    /// The whole ratio with its error.
    pub fn ratio(&self) -> StartRatio {
        StartRatio {
            ratio: self.whole,
            within: self.within,
            load: self.load,
        }
    }
}

/// The start's pairs from the turns of the base's instances and of the cell. A round counts if all
/// of them have a turn in it with a reading, however little was done in it, and others took no more
/// than `limit` cores from any; `None` without one.
pub(crate) fn start_pairs(
    start: u32,
    bases: &[Vec<Turn>],
    other: &[Turn],
    is_rate: bool,
    limit: f64,
) -> Option<StartPairs> {
    let (mut rounds, disturbed) = undisturbed(rounds(bases, other, is_rate, limit));
    weigh_alike(&mut rounds);
    Some(StartPairs {
        start,
        load: 1,
        link: None,
        whole: whole(&rounds)?,
        within: of_batches(&rounds, whole).map(|all| KnownVariance::of_mean(&all)),
        rounds: rounds
            .iter()
            .filter_map(|round| whole(std::slice::from_ref(round)))
            .collect(),
        disturbed,
    })
}

/// The log ratio of throughput, or of CPU per operation, over a start's plain rounds and that over
/// its rounds of a form; `None` where the start has none of these, or none of those.
pub(crate) fn by_form(
    bases: &[Vec<Turn>],
    other: &[Turn],
    form: Form,
    is_rate: bool,
    limit: f64,
) -> Option<(f64, f64)> {
    let (rounds, _) = undisturbed(rounds(bases, other, is_rate, limit));
    let shortest_ns = rounds.iter().map(|round| round.planned_ns).min()?;
    let most = rounds.iter().map(|round| round.candidates).max()?;
    let among = |form: Option<Form>| -> Vec<Round> {
        let is_of = |round: &&Round| {
            let is_longer = round.planned_ns > shortest_ns;
            let is_alone = round.candidates < most;
            match form {
                None => !is_longer && !is_alone,
                Some(Form::Longer) => is_longer && !is_alone,
                Some(Form::Alone) => is_alone && !is_longer,
            }
        };
        rounds.iter().filter(is_of).cloned().collect()
    };
    Some((whole(&among(None))?, whole(&among(Some(form)))?))
}

/// What a round can be besides plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Its turns are longer.
    Longer,
    /// Nobody but the cell and the base's instances has a turn in it.
    Alone,
}

/// Divides what the rounds of each length add to the sums of a start by the time of a usual turn among
/// them. What is discarded is as long in turns of either length, and a long operation makes both as
/// long, so it is not how long they were planned. It is the median over all sides: a stall on one of
/// them must not change what it weighs.
fn weigh_alike(rounds: &mut [Round]) {
    let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for round in rounds.iter() {
        let of_length = times.entry(round.planned_ns).or_default();
        of_length.extend(&round.active_ns);
    }
    if times.len() < 2 {
        return;
    }
    let weight = |(planned_ns, times): (u64, Vec<f64>)| {
        let least_ns = LEAST_COUNTED * planned_ns as f64;
        let usual_ns = median(&times).unwrap_or(0.0).max(least_ns).max(1.0);
        (planned_ns, 1.0 / usual_ns)
    };
    let weights: BTreeMap<u64, f64> = times.into_iter().map(weight).collect();
    for round in rounds {
        let weight = weights[&round.planned_ns];
        for part in round.bases.iter_mut().chain([&mut round.other]) {
            *part = Part {
                above: weight * part.above,
                below: weight * part.below,
            };
        }
    }
}

/// The rounds in which all sides have a turn with a reading.
fn rounds(bases: &[Vec<Turn>], other: &[Turn], is_rate: bool, limit: f64) -> Vec<Round> {
    let by_round = |turns| -> BTreeMap<u32, &Turn> { by_round(turns).collect() };
    let of_bases: Vec<BTreeMap<u32, &Turn>> = bases.iter().map(|turns| by_round(turns)).collect();
    let part = |turn: &Turn| Part::of(turn, is_rate);
    by_round(other)
        .into_iter()
        .filter_map(|(round, turn)| {
            let turns: Option<Vec<&Turn>> = of_bases
                .iter()
                .map(|turns| turns.get(&round).copied())
                .collect();
            let turns = turns?;
            let bases: Option<Vec<Part>> = turns.iter().map(|turn| part(turn)).collect();
            let active_ns = turns
                .iter()
                .chain([&turn])
                .map(|turn| turn.active_ns as f64);
            let active_ns = active_ns.collect();
            let mut all = turns.into_iter().chain([turn]);
            Some(Round {
                other: part(turn)?,
                bases: bases?,
                is_disturbed: all.any(|turn| is_disturbed(turn, limit)),
                planned_ns: turn.planned_ns.unwrap_or(0),
                active_ns,
                candidates: turn.candidates.unwrap_or(0),
            })
        })
        .collect()
}

fn by_round(turns: &[Turn]) -> impl Iterator<Item = (u32, &Turn)> {
    turns.iter().map(|turn| (turn.round, turn))
}

fn is_disturbed(turn: &Turn, limit: f64) -> bool {
    let length_ns = turn.length_ns.unwrap_or(turn.active_ns);
    // Turns that have a planned length have exact clocks.
    let foreign = turn.foreign_cpu_ns.map(|ns| match turn.planned_ns {
        Some(_) => ForeignCpu::Exact(ns),
        None => ForeignCpu::InTicks(ns),
    });
    is_turn_disturbed(limit, length_ns, foreign, turn.stolen_ns)
}

/// The rounds that no witness saw disturbed, and how many it did; all of them if those are most.
fn undisturbed(rounds: Vec<Round>) -> (Vec<Round>, usize) {
    let disturbed = rounds.iter().filter(|round| round.is_disturbed).count();
    if disturbed as f64 > MOST_DISTURBED * rounds.len() as f64 {
        return (rounds, 0);
    }
    let kept = rounds.into_iter().filter(|round| !round.is_disturbed);
    (kept.collect(), disturbed)
}

/// What one turn adds to the sums of a start: operations and time, or CPU and operations.
#[derive(Clone, Copy, Debug)]
struct Part {
    above: f64,
    below: f64,
}

impl Part {
    fn of(turn: &Turn, is_rate: bool) -> Option<Self> {
        let operations = turn.operations as f64;
        Some(if is_rate {
            Self {
                above: operations,
                below: turn.active_ns as f64,
            }
        } else {
            Self {
                above: turn.server_cpu_ns? as f64,
                below: operations,
            }
        })
    }
}

/// A round of the base's instances and of a cell.
#[derive(Clone)]
struct Round {
    other: Part,
    bases: Vec<Part>,
    is_disturbed: bool,
    planned_ns: u64,
    /// The time that counts of each of its turns.
    active_ns: Vec<f64>,
    candidates: u64,
}

/// The log ratio over rounds: that of the cell's sums, less the mean of the bases'. `None` where a
/// sum is zero.
fn whole(rounds: &[Round]) -> Option<f64> {
    let instances = rounds.first()?.bases.len();
    let log = |part: &dyn Fn(&Round) -> Part| {
        let sums = rounds
            .iter()
            .map(part)
            .fold((0.0, 0.0), |(above, below), part| {
                (above + part.above, below + part.below)
            });
        let value = sums.0 / sums.1;
        (value.is_finite() && value > 0.0).then(|| value.ln())
    };
    let bases: Option<Vec<f64>> = (0..instances)
        .map(|instance| log(&|round| round.bases[instance]))
        .collect();
    Some(log(&|round| round.other)? - mean(&bases?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(round: u32, planned_ms: u64, operations: u64, active_ms: u64) -> Turn {
        Turn {
            round,
            planned_ns: Some(1_000_000 * planned_ms),
            length_ns: Some(1_000_000 * planned_ms),
            active_ns: 1_000_000 * active_ms,
            operations,
            ..Turn::default()
        }
    }

    /// A round of longer turns weighed nearly three times as much as a plain one, and said no more.
    #[test]
    fn a_round_of_longer_turns_weighs_as_a_plain_one() {
        let base = vec![turn(1, 5, 300, 3), turn(2, 10, 800, 8)];
        let of = |long: Turn| {
            let other = [turn(1, 5, 300, 3), long];
            let of_start = start_pairs(1, std::slice::from_ref(&base), &other, true, 9.0).unwrap();
            (of_start.whole.exp(), of_start.rounds[1].exp())
        };
        let near = |found: (f64, f64), wanted: (f64, f64)| {
            let are_near = [(found.0, wanted.0), (found.1, wanted.1)]
                .map(|(found, wanted)| (found / wanted - 1.0).abs() < 1e-9);
            assert_eq!(are_near, [true, true], "{found:?} {wanted:?}");
        };
        // As fast in one round, and half as fast in the other.
        near(of(turn(2, 10, 400, 8)), (0.75, 0.5));
        // One operation of 100 ms in each turn, however long it was planned, and one of 200.
        let scan = |round, ms, took_ms| turn(round, ms, 1, took_ms);
        let scans = vec![scan(1, 20, 100), scan(2, 40, 100), scan(3, 40, 100)];
        let slow = [scan(1, 20, 100), scan(2, 40, 100), scan(3, 40, 200)];
        let of_scans = start_pairs(1, &[scans], &slow, true, 9.0).unwrap();
        assert!((of_scans.whole.exp() - 3.0 / 4.0).abs() < 1e-9);
        // Turns of campaigns without a planned length are all alike.
        let old = |round| Turn {
            planned_ns: None,
            ..turn(round, 5, 300, 3)
        };
        let olds = [old(1), old(2)];
        let of_old = start_pairs(1, &[olds.to_vec()], &olds, true, 9.0).unwrap();
        assert_eq!(of_old.whole, 0.0);
    }

    fn whole_of(base: &[Turn], other: &[Turn]) -> f64 {
        let pairs = start_pairs(1, &[base.to_vec()], other, true, 9.0).unwrap();
        pairs.whole
    }

    /// By the base's time alone its stalls weighed less than those of the cell, and equal builds that
    /// stall were not equal.
    #[test]
    fn a_stall_weighs_as_much_on_either_side() {
        let plain = [turn(1, 5, 300, 3), turn(2, 5, 300, 3), turn(3, 10, 800, 8)];
        let even = [&plain[..], &[turn(4, 10, 800, 8)]].concat();
        let stalled = [&plain[..], &[turn(4, 10, 800, 88)]].concat();
        // Of 1 + 1 + 1 + 1 turns, and of 1 + 1 + 1 + 11.
        let slow = whole_of(&even, &stalled);
        assert!((slow.exp() - 4.0 / 14.0).abs() < 1e-9, "{slow}");
        assert!((slow + whole_of(&stalled, &even)).abs() < 1e-9);
    }

    /// Of several clients each counts behind its first operation, and in a stall none has another.
    #[test]
    fn a_round_in_which_next_to_nothing_was_done_is_not_all_of_a_start() {
        let short = Turn {
            active_ns: 50_000,
            ..turn(10, 10, 5, 0)
        };
        for long in [turn(10, 10, 0, 0), short] {
            let plain = || (1..=9).map(|round| turn(round, 5, 300, 3));
            let base: Vec<Turn> = plain().chain([long]).collect();
            let other: Vec<Turn> = plain().chain([turn(10, 10, 400, 8)]).collect();
            let whole = whole_of(&base, &other).exp();
            assert!((0.9..=1.0).contains(&whole), "{whole}");
        }
    }
}
