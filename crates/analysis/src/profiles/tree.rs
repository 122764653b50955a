//! Stacks of two profiles as one tree.

use std::collections::BTreeMap;

use plimsoll_store::Profile;

use super::us_per_sample;

/// A function called from those above it, with all that it calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameNode {
    /// CPU time per operation in the base, in microseconds.
    pub base_us: f64,
    /// In the cell.
    pub cell_us: f64,
    /// What it calls, by name.
    pub calls: BTreeMap<String, FlameNode>,
}

impl FlameNode {
    /// Microseconds per operation that the cell spends more than the base.
    pub fn difference_us(&self) -> f64 {
        self.cell_us - self.base_us
    }

    /// The change as a share of the larger side: 1 is new in the cell, -1 is gone from it.
    pub fn change(&self) -> f64 {
        let larger = self.base_us.max(self.cell_us);
        if larger > 0.0 {
            self.difference_us() / larger
        } else {
            0.0
        }
    }

    fn add(&mut self, stack: &str, base_us: f64, cell_us: f64) {
        let mut node = self;
        node.base_us += base_us;
        node.cell_us += cell_us;
        for function in stack.split(';') {
            node = node.calls.entry(function.to_owned()).or_default();
            node.base_us += base_us;
            node.cell_us += cell_us;
        }
    }
}

/// The tree of all stacks of both.
pub(super) fn tree(base: &Profile, cell: &Profile) -> FlameNode {
    let mut root = FlameNode::default();
    base.stacks
        .iter()
        .for_each(|(stack, samples)| root.add(stack, *samples as f64 * us_per_sample(base), 0.0));
    cell.stacks
        .iter()
        .for_each(|(stack, samples)| root.add(stack, 0.0, *samples as f64 * us_per_sample(cell)));
    root
}

#[cfg(test)]
mod tests {
    use plimsoll_store::ProfileAbout;

    use super::*;

    #[test]
    fn a_node_has_the_time_of_all_below_it() {
        let profile = |us: f64, stacks: &[(&str, u64)]| Profile {
            about: ProfileAbout {
                samples: stacks.iter().map(|(_, samples)| samples).sum(),
                server_cpu_us_per_op: Some(us),
                ..ProfileAbout::default()
            },
            pass: 1,
            stacks: stacks
                .iter()
                .map(|(stack, samples)| ((*stack).to_owned(), *samples))
                .collect(),
        };
        let root = tree(
            &profile(10.0, &[("main;a", 3), ("main;b", 7)]),
            &profile(20.0, &[("main;a", 6), ("main;a;c", 4)]),
        );
        assert_eq!((root.base_us, root.cell_us), (10.0, 20.0));
        let main = &root.calls["main"];
        assert_eq!(
            (main.calls["a"].base_us, main.calls["a"].cell_us),
            (3.0, 20.0)
        );
        assert_eq!(main.calls["a"].calls["c"].change(), 1.0);
        assert_eq!(main.calls["b"].change(), -1.0);
        assert_eq!(main.change(), 0.5);
    }
}
