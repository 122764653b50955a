//! What the comparisons of a campaign have in common: how far starts of one build lie apart.

use std::collections::BTreeMap;

use plimsoll_stats::{StartsPrior, StartsVariance};

use crate::verdicts::finding::Basis;
use crate::verdicts::pairs::Pairs;

/// Comparisons that are alike: whether their step writes, and the metric.
pub(crate) type Class = (bool, &'static str);

/// The variance of one candidate against the mean of two, over that of one against one.
pub(super) const AGAINST_TWO: f64 = 0.75;

/// What each class knows of the variance between starts or blocks, for a cell against its base.
#[derive(Debug)]
pub(crate) struct Priors {
    /// Cells of builds that were linked several times apart from others: these have no layout of
    /// their own.
    classes: BTreeMap<(Class, bool), StartsPrior>,
    /// If the base was linked several times: of the control alone, in which there is no layout.
    of_controls: Option<BTreeMap<(Class, bool), StartsPrior>>,
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
        let controls: Vec<(Class, &Pairs)> = controls.into_iter().collect();
        let has_links = controls.iter().any(|(_, pairs)| pairs.has_links());
        let controls = controls
            .into_iter()
            .map(|(class, pairs)| (((class, false), pairs), to_control));
        let cells = cells
            .into_iter()
            .map(|(class, pairs)| (((class, pairs.has_links()), pairs), 1.0));
        let (classes, of_controls) = match has_links {
            true => (by_class(cells), Some(by_class(controls))),
            false => (by_class(cells.chain(controls)), None),
        };
        Self {
            classes,
            of_controls,
            to_control,
        }
    }

    /// For these pairs of a cell and its base.
    pub fn of_cell(&self, class: Class, pairs: &Pairs) -> Option<StartsPrior> {
        self.classes.get(&(class, pairs.has_links())).copied()
    }

    /// For the base against its second instance.
    pub fn of_control(&self, class: Class) -> Option<StartsPrior> {
        let classes = self.of_controls.as_ref().unwrap_or(&self.classes);
        let prior = classes.get(&(class, false)).copied();
        prior.map(|prior| prior.with_common_times(1.0 / self.to_control))
    }
}

/// What each class knows, of pairs with the factor that their variance is brought to a cell's by.
fn by_class<'a>(
    all: impl Iterator<Item = (((Class, bool), &'a Pairs), f64)>,
) -> BTreeMap<(Class, bool), StartsPrior> {
    let mut classes: BTreeMap<(Class, bool), Vec<StartsVariance>> = BTreeMap::new();
    for ((class, pairs), scale) in all {
        let known = StartsVariance::of(&pairs.units()).map(|of| of.times(scale));
        classes.entry(class).or_default().extend(known);
    }
    let known = classes
        .into_iter()
        .filter_map(|(class, known)| Some((class, StartsPrior::of_class(&known)?)));
    known.collect()
}
