//! What a plan says in the words of its benchmark: `[sizes]`, `[shapes]` and `[step]`.
//!
//! Each benchmark has structs of its own for them. Serde refuses what they do not have, with its
//! place, so that no benchmark has to know the keys of the others.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Range;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use super::{PlanError, Step, Workload};
use crate::name::check_label;
use crate::source::{Source, explain_toml_error};
use crate::suggest;

/// The shape of a plan without shapes.
const DEFAULT_SHAPE: &str = "default";

/// A benchmark as plans configure it.
pub(super) trait Benchmark: Sized {
    /// `[sizes]`, and the same of a shape.
    type Sizes: DeserializeOwned + Default + Debug;
    /// `[step.NAME]`.
    type Change: DeserializeOwned + Debug;
    /// Who has no such size, in errors.
    const NAME: &'static str;
    /// Who has no such key, in errors.
    const STEP: &'static str;
}

/// The tables of a plan that its benchmark reads.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "B: Benchmark"))]
pub(super) struct Own<B: Benchmark> {
    #[serde(default)]
    pub sizes: B::Sizes,
    /// A shape has all sizes: its own, and those of `[sizes]` that it leaves as they are.
    #[serde(default)]
    pub shapes: BTreeMap<Spanned<String>, B::Sizes>,
    #[serde(default)]
    pub step: BTreeMap<Spanned<String>, B::Change>,
}

/// What each shape runs, by the shape's label.
pub(super) type Shapes = Vec<(String, Workload)>;

/// The value of a key, if it is written.
pub(super) fn value<T: Copy>(key: &Option<Spanned<T>>) -> Option<T> {
    key.as_ref().map(|value| *value.get_ref())
}

impl Source<'_> {
    fn own_tables<B: Benchmark>(&self) -> Result<Own<B>, toml::de::Error> {
        let mut plan = DeTable::parse(self.text())?;
        lay_shapes_over_sizes(plan.get_mut());
        Own::deserialize(Deserializer::from(plan))
    }

    /// The plan's own words for this benchmark.
    pub(super) fn own<B: Benchmark>(&self) -> Result<Own<B>, PlanError> {
        self.own_tables().map_err(|error| {
            let quoted: Vec<&str> = error.message().split('`').skip(1).step_by(2).collect();
            match quoted.as_slice() {
                // The line of a password is not shown, wherever it is written.
                ["password", ..] => explain_toml_error(self, &error, &[]),
                [unknown, known @ ..] if error.message().starts_with("unknown field") => {
                    // Every step may have a drain, and no benchmark has a size of that name.
                    let owner = if known.contains(&"drain") {
                        B::STEP
                    } else {
                        B::NAME
                    };
                    let way_out = match suggest::hint(unknown, known.iter().copied()) {
                        hint if hint.is_empty() => ": leave it out".to_owned(),
                        hint => hint,
                    };
                    let message = format!(
                        "{owner} has no \"{unknown}\"{way_out}; known here: {}",
                        known.join(", ")
                    );
                    self.error(error.span(), message)
                }
                _ => explain_toml_error(self, &error, &[]),
            }
        })
    }

    /// What each shape of the plan runs.
    pub(super) fn workloads<B, R>(&self, read: R) -> Result<Shapes, PlanError>
    where
        B: Benchmark,
        R: Fn(&Own<B>, &B::Sizes) -> Result<Workload, PlanError>,
    {
        let own: Own<B> = self.own()?;
        if own.shapes.is_empty() {
            return Ok(vec![(DEFAULT_SHAPE.to_owned(), read(&own, &own.sizes)?)]);
        }
        for label in own.shapes.keys() {
            check_label(label.get_ref(), "shape name")
                .map_err(|error| self.error(Some(label.span()), error.to_string()))?;
        }
        let shapes = own.shapes.iter();
        shapes
            .map(|(label, sizes)| Ok((label.get_ref().clone(), read(&own, sizes)?)))
            .collect()
    }

    /// Refuses the first of these keys that is written.
    pub(super) fn refuse(
        &self,
        keys: &[(&str, Option<Range<usize>>)],
        what: &str,
    ) -> Result<(), PlanError> {
        let written = keys
            .iter()
            .find_map(|(key, span)| span.clone().map(|span| (key, span)));
        match written {
            Some((key, span)) => {
                Err(self.error(Some(span), format!("{what} has no \"{key}\": leave it out")))
            }
            None => Ok(()),
        }
    }

    /// Refuses a list of steps or tests of a benchmark that names them in another one.
    pub(super) fn refuse_list(
        &self,
        list: &Option<Vec<Spanned<String>>>,
        message: &str,
    ) -> Result<(), PlanError> {
        match list.as_ref().and_then(|list| list.first()) {
            Some(first) => Err(self.error(Some(first.span()), message)),
            None => Ok(()),
        }
    }
}

/// Gives each shape the sizes that it does not write itself. A key keeps its place in the text, so
/// that an error points at `[sizes]` where the value comes from there.
fn lay_shapes_over_sizes(plan: &mut DeTable<'_>) {
    let Some(DeValue::Table(sizes)) = plan.get("sizes").map(Spanned::get_ref).cloned() else {
        return;
    };
    let Some(DeValue::Table(shapes)) = plan.get_mut("shapes").map(Spanned::get_mut) else {
        return;
    };
    for (_, shape) in shapes {
        let DeValue::Table(shape) = shape.get_mut() else {
            continue;
        };
        // A ramp's numbers are the clients; those of `[sizes]` are the other shapes'.
        let has_ramp = shape.contains_key("ramp");
        for (key, value) in &sizes {
            let is_written = shape.contains_key(key.get_ref().as_ref());
            let is_dropped = has_ramp && key.get_ref() == "clients";
            if !is_written && !is_dropped {
                shape.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Steps whose failures the plan allows: those that make data need every row.
pub(super) fn allow_failures(steps: &mut [Step], share: f64) {
    for step in steps.iter_mut().filter(|step| !step.makes_data()) {
        step.max_failed = step.max_failed.or(Some(share));
    }
}
