//! How much of an interval is layout: where the functions of a build lie in memory.
//!
//! Builds that were linked several times run another link with each load of their data. The base's
//! two instances run the same link, so that what they differ by from load to load is all but
//! layout; a cell and the base differ by the layout of both, too. The rest is layout.

use std::collections::BTreeMap;

use plimsoll_stats::{StartRatio, mean, variance};

use super::Class;
use super::priors::AGAINST_TWO;
use crate::verdicts::pairs::Pairs;

/// A share is told from so many degrees of freedom on: four comparisons of four links.
const FEWEST_DEGREES: f64 = 12.0;

/// By cell and class, the share of the variance between loads that is layout.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    shares: BTreeMap<(usize, Class), f64>,
}

/// The variances between the means of loads of some comparisons, and their degrees of freedom.
#[derive(Default)]
struct Between {
    variances: Vec<f64>,
    degrees: f64,
}

impl Layout {
    /// From the pairs of each cell, and those of the base with itself. Of `v_c`, the mean variance
    /// between the means of loads of a cell, and `v_0`, the same of the control, which is one
    /// instance against one: `max(0, v_c - 3/4 v_0) / v_c`.
    pub fn of<'a>(
        cells: impl IntoIterator<Item = ((usize, Class), &'a Pairs)>,
        control: impl IntoIterator<Item = (Class, &'a Pairs)>,
    ) -> Self {
        let mut of_control: BTreeMap<Class, Between> = BTreeMap::new();
        let mut is_base_linked = false;
        for (of, pairs) in control {
            is_base_linked |= pairs.has_links();
            of_control.entry(of).or_default().add(pairs);
        }
        let mut of_cells: BTreeMap<(usize, Class), Between> = BTreeMap::new();
        let is_linked = |pairs: &Pairs| is_base_linked || pairs.has_links();
        for (of, pairs) in cells.into_iter().filter(|(_, pairs)| is_linked(pairs)) {
            of_cells.entry(of).or_default().add(pairs);
        }
        let share = |(of, between): ((usize, Class), Between)| {
            let control = of_control.get(&of.1)?;
            let (all, rest) = (between.known()?, control.known()?);
            let layout = (all - AGAINST_TWO * rest).max(0.0);
            (all > 0.0).then(|| (of, layout / all))
        };
        Self {
            shares: of_cells.into_iter().filter_map(share).collect(),
        }
    }

    /// Which part of an interval's half-width is layout: variances add, widths do not.
    pub fn share_of_width(&self, cell: usize, class: Class) -> Option<f64> {
        self.shares.get(&(cell, class)).map(|share| share.sqrt())
    }
}

impl Between {
    fn add(&mut self, pairs: &Pairs) {
        let mut loads: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for StartRatio { ratio, load, .. } in pairs.start_ratios() {
            loads.entry(load).or_default().push(ratio);
        }
        if loads.len() < 2 {
            return;
        }
        let means: Vec<f64> = loads.values().map(|ratios| mean(ratios)).collect();
        self.variances.push(variance(&means));
        self.degrees += means.len() as f64 - 1.0;
    }

    fn known(&self) -> Option<f64> {
        (self.degrees >= FEWEST_DEGREES).then(|| mean(&self.variances))
    }
}
