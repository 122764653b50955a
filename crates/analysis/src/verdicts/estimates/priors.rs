//! What the comparisons of a campaign have in common: how far starts of one build lie apart.

use std::collections::BTreeMap;

use plimsoll_stats::{StartsPrior, StartsVariance};

use crate::verdicts::finding::Basis;
use crate::verdicts::pairs::Pairs;

/// Comparisons that are alike: whether their step writes, and the metric.
pub(crate) type Class = (bool, &'static str);

/// The variance of one candidate against the mean of two, over that of one against one.
const AGAINST_TWO: f64 = 0.75;

/// What each class knows of the variance between starts or blocks, for a cell against its base.
#[derive(Debug)]
pub(crate) struct Priors {
    classes: BTreeMap<Class, StartsPrior>,
    /// The variance of a cell against its base, over that of the control.
    to_control: f64,
}

impl Priors {
    /// From the pairs of all cells, and of the control, whose ratio is one against one. By slices a
    /// cell is held against the mean of two instances of the base.
    pub fn new<'a>(
        basis: Basis,
        cells: impl IntoIterator<Item = (Class, &'a Pairs)>,
        controls: impl IntoIterator<Item = (Class, &'a Pairs)>,
    ) -> Self {
        let to_control = match basis {
            Basis::Slices => AGAINST_TWO,
            Basis::Blocks | Basis::Screen => 1.0,
        };
        let mut classes: BTreeMap<Class, Vec<StartsVariance>> = BTreeMap::new();
        let cells = cells.into_iter().map(|of| (of, 1.0));
        let controls = controls.into_iter().map(|of| (of, to_control));
        for ((class, pairs), scale) in cells.chain(controls) {
            let known = StartsVariance::of(&pairs.units()).map(|of| of.times(scale));
            classes.entry(class).or_default().extend(known);
        }
        let known = classes
            .into_iter()
            .filter_map(|(class, known)| Some((class, StartsPrior::of_class(&known)?)));
        Self {
            classes: known.collect(),
            to_control,
        }
    }

    /// For a cell against its base.
    pub fn of_cell(&self, class: Class) -> Option<StartsPrior> {
        self.classes.get(&class).copied()
    }

    /// For the base against its second instance.
    pub fn of_control(&self, class: Class) -> Option<StartsPrior> {
        self.of_cell(class)
            .map(|prior| prior.with_common_times(1.0 / self.to_control))
    }
}
