//! What the comparisons of a campaign have in common: how far starts of one build lie apart.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use plimsoll_stats::{StartsPrior, StartsVariance};

use crate::verdicts::finding::Basis;
use crate::verdicts::pairs::Pairs;

/// Comparisons that are alike: whether their step writes, and the metric.
pub(crate) type Class = (bool, &'static str);

/// What is compared in one step: its class, the step's name, and the pairs.
pub(crate) type InStep<'a> = (Class, &'a str, &'a Pairs);

/// The variance of one candidate against the mean of two, over that of one against one.
pub(super) const AGAINST_TWO: f64 = 0.75;

/// What each class knows of the variance between starts or blocks, for a cell against its base.
#[derive(Debug)]
pub(crate) struct Priors {
    /// Cells of builds that were linked several times apart from others: these have no layout of
    /// their own.
    classes: BTreeMap<(Class, bool), OfClass<String>>,
    /// If the base was linked several times: of the control alone, in which there is no layout.
    of_controls: Option<BTreeMap<(Class, bool), OfClass<String>>>,
    /// The variance of a cell against its base, over that of the control.
    to_control: f64,
}

impl Priors {
    /// From the pairs of all cells, and of the control, whose ratio is one against one. By slices a
    /// cell is held against the mean of two instances of the base.
    pub fn new<'a>(
        basis: Basis,
        cells: impl IntoIterator<Item = InStep<'a>>,
        controls: impl IntoIterator<Item = InStep<'a>>,
    ) -> Self {
        let to_control = match basis {
            Basis::Slices => AGAINST_TWO,
            Basis::Blocks | Basis::Screen => 1.0,
        };
        let controls: Vec<InStep<'_>> = controls.into_iter().collect();
        let has_links = controls.iter().any(|(_, _, pairs)| pairs.has_links());
        let controls = controls
            .into_iter()
            .map(|(class, step, pairs)| ((class, false), step, pairs, to_control));
        let cells = cells
            .into_iter()
            .map(|(class, step, pairs)| ((class, pairs.has_links()), step, pairs, 1.0));
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

    /// For these pairs of a cell and its base in a step.
    pub fn of_cell(&self, (class, step, pairs): InStep<'_>) -> Option<StartsPrior> {
        let of_class = self.classes.get(&(class, pairs.has_links()))?;
        Some(of_class.of_step(step))
    }

    /// For the base against its second instance.
    pub fn of_control(&self, class: Class, step: &str) -> Option<StartsPrior> {
        let classes = self.of_controls.as_ref().unwrap_or(&self.classes);
        let prior = classes.get(&(class, false))?.of_step(step);
        Some(prior.with_common_times(1.0 / self.to_control))
    }
}

/// What a class knows, and what that is for each of its steps, or groups of steps.
#[derive(Debug)]
pub(crate) struct OfClass<S> {
    prior: StartsPrior,
    steps: BTreeMap<S, StartsPrior>,
}

/// Of pairs with the factor that their variance is brought to a cell's by.
fn by_class<'a>(
    all: impl Iterator<Item = ((Class, bool), &'a str, &'a Pairs, f64)>,
) -> BTreeMap<(Class, bool), OfClass<String>> {
    let mut classes: BTreeMap<(Class, bool), Vec<(String, StartsVariance)>> = BTreeMap::new();
    for (class, step, pairs, scale) in all {
        let of = StartsVariance::of(&pairs.units());
        let known = of.map(|of| (step.to_owned(), of.times(scale)));
        classes.entry(class).or_default().extend(known);
    }
    let known = classes
        .into_iter()
        .filter_map(|(class, known)| Some((class, OfClass::new(&known)?)));
    known.collect()
}

impl<S: Ord + Clone> OfClass<S> {
    /// From its comparisons. `None` without any.
    pub fn new(known: &[(S, StartsVariance)]) -> Option<Self> {
        let all: Vec<StartsVariance> = known.iter().map(|(_, of)| *of).collect();
        let prior = StartsPrior::of_class(&all)?;
        let mut by_step: BTreeMap<&S, Vec<StartsVariance>> = BTreeMap::new();
        for (step, of) in known {
            by_step.entry(step).or_default().push(*of);
        }
        let steps = by_step.iter().map(|(step, own)| {
            let others = by_step.iter().filter(|(other, _)| *other != step);
            let others: Vec<Vec<StartsVariance>> = others.map(|(_, of)| of.clone()).collect();
            ((*step).clone(), prior.with_loads(own, &others))
        });
        Some(Self {
            prior,
            steps: steps.collect(),
        })
    }

    pub fn of_step<Q: Ord + ?Sized>(&self, step: &Q) -> StartsPrior
    where
        S: Borrow<Q>,
    {
        self.steps.get(step).copied().unwrap_or(self.prior)
    }
}
