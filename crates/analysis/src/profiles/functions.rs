//! The functions whose own CPU time per operation moved most.

use std::collections::BTreeMap;

use plimsoll_store::Profile;

use super::{Profiled, us_per_sample};

#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    pub name: String,
    /// Its own CPU time per operation in the base, without what it calls, in microseconds.
    pub base_us: f64,
    /// The same in the cell.
    pub cell_us: f64,
}

impl FunctionChange {
    /// How much more the cell uses, in microseconds per operation.
    pub fn difference_us(&self) -> f64 {
        self.cell_us - self.base_us
    }
}

/// The functions that moved most, most first.
pub(crate) fn moved(base: &Profile, cell: &Profile, most: usize) -> Vec<FunctionChange> {
    let mut functions: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (stack, samples) in &base.stacks {
        functions.entry(own(stack)).or_default().0 += *samples as f64 * us_per_sample(base);
    }
    for (stack, samples) in &cell.stacks {
        functions.entry(own(stack)).or_default().1 += *samples as f64 * us_per_sample(cell);
    }
    let mut moved: Vec<FunctionChange> = functions
        .into_iter()
        .map(|(name, (base_us, cell_us))| FunctionChange {
            name: name.to_owned(),
            base_us,
            cell_us,
        })
        .collect();
    moved.sort_by(|a, b| b.difference_us().abs().total_cmp(&a.difference_us().abs()));
    moved.truncate(most);
    moved
}

/// The function that was running.
fn own(stack: &str) -> &str {
    stack.rsplit(';').next().unwrap_or(stack)
}

/// Functions that a sentence names.
const TOLD: usize = 5;
/// Below this share of the base's CPU per operation there is no change to tell about.
const LEAST_CHANGE: f64 = 0.02;

impl Profiled {
    /// How the server's CPU per operation changed, and which functions' own time went the same way
    /// most; `None` where it hardly changed.
    pub fn where_it_went(&self) -> Option<String> {
        let change = self.tree.cell_us - self.tree.base_us;
        if self.reason.is_some() || change.abs() < LEAST_CHANGE * self.tree.base_us {
            return None;
        }
        let told: Vec<&FunctionChange> = self
            .functions
            .iter()
            .filter(|function| function.difference_us() * change > 0.0)
            .take(TOLD)
            .collect();
        let sum: f64 = told.iter().map(|function| function.difference_us()).sum();
        let names: Vec<String> = told
            .iter()
            .map(|function| format!("{} {:+.1}", function.name, function.difference_us()))
            .collect();
        Some(format!(
            "Server CPU {change:+.1} us/op ({:.1} to {:.1}); functions whose own time moved most \
            that way: {} (together {sum:+.1}).",
            self.tree.base_us,
            self.tree.cell_us,
            names.join(", ")
        ))
    }
}
