//! From the pairs of a step to one estimate with its interval.

use plimsoll_stats::{
    EXACT_PAIRS, Interval, RESAMPLES, bca, clustered, hodges_lehmann, paired_p, seed_of,
    signed_rank_interval,
};

use super::finding::{Basis, Estimate};
use super::pairs::Pairs;

/// The estimate of pairs with an interval of that level, where there are enough pairs for one.
pub(crate) fn estimate(basis: Basis, pairs: &Pairs, level: f64) -> Option<Estimate> {
    let as_ratios = |interval: Interval| (interval.low.exp(), interval.high.exp());
    let all = pairs.all();
    let centre = hodges_lehmann(&all)?;
    let plain = Estimate {
        ratio: centre.exp(),
        interval: None,
        level,
        starts: all.len(),
        pairs: all.len(),
        p: None,
    };
    Some(match basis {
        Basis::Screen => plain,
        Basis::Blocks => {
            let interval = if all.len() <= EXACT_PAIRS {
                signed_rank_interval(&all, level)
            } else {
                bca(
                    &all,
                    |sample| hodges_lehmann(sample).unwrap_or(centre),
                    level,
                    RESAMPLES,
                    seed_of(&all),
                )
            };
            Estimate {
                interval: interval.map(as_ratios),
                p: Some(paired_p(&all, seed_of(&all))),
                ..plain
            }
        }
        Basis::Slices => match clustered(&pairs.starts, level) {
            Some(found) => Estimate {
                ratio: found.estimate.exp(),
                interval: Some(as_ratios(found.interval)),
                level,
                starts: found.starts,
                pairs: found.pairs,
                p: Some(found.p),
            },
            None => Estimate {
                starts: pairs.starts.len(),
                ..plain
            },
        },
    })
}
