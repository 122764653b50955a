//! From the pairs of a step to one estimate with its interval.

use plimsoll_core::planted::{self, Bug};
use plimsoll_stats::{
    EXACT_PAIRS, FEWEST_BLOCKS, Interval, RANKED_BLOCKS, RESAMPLES, StartsPrior, bca,
    hodges_lehmann, over_starts, paired_p, seed_of, signed_rank_interval,
};

use crate::verdicts::finding::{Basis, Estimate};
use crate::verdicts::pairs::{Pairs, StartPairs};

/// The levels that an estimate is made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Levels {
    /// The confidence of the interval that is shown, e.g. 0.95.
    pub shown: f64,
    /// The level of the look, e.g. 0.05; 0 calls nothing.
    pub look: f64,
}

/// The estimate of pairs with its intervals, if there are enough pairs for one. `prior` is what the
/// class of comparisons knows of how far starts lie apart.
pub(crate) fn estimate(
    basis: Basis,
    pairs: &Pairs,
    prior: Option<StartsPrior>,
    levels: Levels,
) -> Option<Estimate> {
    match basis {
        Basis::Slices => of_units(pairs, prior, levels),
        Basis::Screen => plain(&pairs.blocks, levels),
        Basis::Blocks => match pairs.blocks.len() {
            ..FEWEST_BLOCKS => plain(&pairs.blocks, levels),
            FEWEST_BLOCKS..RANKED_BLOCKS => of_units(pairs, prior, levels),
            RANKED_BLOCKS.. => of_ranks(&pairs.blocks, levels),
        },
    }
}

fn as_ratios(interval: Interval) -> (f64, f64) {
    (interval.low.exp(), interval.high.exp())
}

fn plain(blocks: &[f64], levels: Levels) -> Option<Estimate> {
    Some(Estimate {
        ratio: hodges_lehmann(blocks)?.exp(),
        interval: None,
        level: levels.shown,
        at_look: None,
        starts: blocks.len(),
        pairs: blocks.len(),
        p: None,
        error: None,
        typical: None,
        scale: 1.0,
    })
}

fn of_ranks(blocks: &[f64], levels: Levels) -> Option<Estimate> {
    let interval = |level: f64| {
        if blocks.len() <= EXACT_PAIRS {
            return signed_rank_interval(blocks, level);
        }
        let seed = seed_of(blocks);
        bca(
            blocks,
            |sample| hodges_lehmann(sample).unwrap_or(f64::NAN),
            level,
            RESAMPLES,
            seed,
        )
    };
    Some(Estimate {
        interval: interval(levels.shown).map(as_ratios),
        at_look: match levels.look > 0.0 {
            true => interval(1.0 - levels.look).map(as_ratios),
            false => None,
        },
        p: Some(paired_p(blocks, seed_of(blocks))),
        ..plain(blocks, levels)?
    })
}

/// Over starts, or over few blocks.
fn of_units(pairs: &Pairs, prior: Option<StartsPrior>, levels: Levels) -> Option<Estimate> {
    let starts = pairs.units();
    let rounds = |start: &StartPairs| start.rounds.len().max(1);
    let plain = Estimate {
        ratio: starts.first()?.ratio.exp(),
        interval: None,
        level: levels.shown,
        at_look: None,
        starts: starts.len(),
        pairs: pairs.blocks.len() + pairs.starts.iter().map(rounds).sum::<usize>(),
        p: None,
        error: None,
        typical: pairs.typical().map(f64::exp),
        scale: 1.0,
    };
    let mut found = over_starts(&starts, prior);
    if let Some(found) = found.as_mut().filter(|_| planted::is(Bug::DegreesIgnored)) {
        found.degrees = 1e6;
    }
    Some(match found {
        None => plain,
        Some(found) => Estimate {
            ratio: found.estimate.exp(),
            interval: Some(as_ratios(found.interval(levels.shown))),
            at_look: match levels.look > 0.0 {
                true => Some(as_ratios(found.interval(1.0 - levels.look))),
                false => None,
            },
            p: Some(found.p),
            error: Some((found.error, found.degrees)),
            ..plain
        },
    })
}
