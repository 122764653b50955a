//! What differs between cells besides what the plan says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Named facts that each cell has: those that differ, and those that do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// Name and one value per cell of the view.
    pub differing: Vec<(String, Vec<Option<String>>)>,
    /// Name and the value of every cell.
    pub equal: Vec<(String, String)>,
}

impl Differences {
    /// Name and value of what is known of one cell.
    pub(crate) fn of_cell(&self, cell: usize) -> impl Iterator<Item = (&str, &str)> {
        let own = self
            .differing
            .iter()
            .filter_map(move |(name, values)| Some((name.as_str(), values.get(cell)?.as_deref()?)));
        let common = self.equal.iter();
        own.chain(common.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Puts these in front.
    pub(crate) fn behind(self, mut first: Self) -> Self {
        first.differing.extend(self.differing);
        first.equal.extend(self.equal);
        first
    }
}

/// Facts that begin with this are of one moment: they differ between any two trials.
const MOMENTARY: &str = "now_";

/// Compares named facts, one map per cell. A cell without any facts is not a difference.
pub(crate) fn compare(cells: &[Option<BTreeMap<String, String>>]) -> Differences {
    let mut differences = Differences::default();
    let names: BTreeSet<&String> = cells.iter().flatten().flat_map(BTreeMap::keys).collect();
    for name in names {
        let values: Vec<Option<String>> = cells
            .iter()
            .map(|cell| cell.as_ref().and_then(|facts| facts.get(name).cloned()))
            .collect();
        let mut known = cells.iter().flatten().map(|facts| facts.get(name));
        let first = known.next().flatten();
        if first.is_some() && known.all(|value| value == first) {
            differences
                .equal
                .push((name.clone(), first.cloned().unwrap_or_default()));
        } else {
            differences.differing.push((name.clone(), values));
        }
    }
    differences
}

/// An environment as named facts: nested names are joined by dots, `{"known": x}` is x.
pub(crate) fn flatten(environment: &Value) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    add(&mut facts, String::new(), environment);
    facts
}

fn add(facts: &mut BTreeMap<String, String>, name: String, value: &Value) {
    match value {
        Value::Object(members) => {
            if let Some((kind, value)) = members.iter().next().filter(|_| members.len() == 1) {
                match kind.as_str() {
                    "known" => return add(facts, name, value),
                    "unavailable" => {
                        return add(
                            facts,
                            name,
                            &Value::String(format!("unavailable ({})", scalar(value))),
                        );
                    }
                    _ => {}
                }
            }
            for (member, value) in members {
                if !member.starts_with(MOMENTARY) {
                    add(
                        facts,
                        if name.is_empty() {
                            member.clone()
                        } else {
                            format!("{name}.{member}")
                        },
                        value,
                    );
                }
            }
        }
        Value::Array(items) => {
            facts.insert(
                name,
                items.iter().map(scalar).collect::<Vec<_>>().join(", "),
            );
        }
        _ => {
            facts.insert(name, scalar(value));
        }
    }
}

fn scalar(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differing_and_equal_facts() {
        let facts = |governor: &str| {
            flatten(&json!({
                "cpu_model": {"known": "X"}, "cpu_governor": {"known": governor}, "smt": {"unavailable": "no such file"},
                "now_load_average": {"known": governor}, "program": {"flags": ["a", "b"], "threads": 2},
            }))
        };
        let differences = compare(&[Some(facts("performance")), None, Some(facts("powersave"))]);
        let governors = vec![
            Some("performance".to_owned()),
            None,
            Some("powersave".to_owned()),
        ];
        assert_eq!(
            differences.differing,
            [("cpu_governor".to_owned(), governors)]
        );
        let equal: Vec<(&str, &str)> = differences
            .equal
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let expected = [
            ("cpu_model", "X"),
            ("program.flags", "a, b"),
            ("program.threads", "2"),
            ("smt", "unavailable (no such file)"),
        ];
        assert_eq!(equal, expected);
    }

    #[test]
    fn a_fact_that_one_cell_lacks_is_a_difference() {
        let with = BTreeMap::from([("cache".to_owned(), "1".to_owned())]);
        let differences = compare(&[Some(BTreeMap::new()), Some(with)]);
        assert_eq!(
            differences.differing,
            [("cache".to_owned(), vec![None, Some("1".to_owned())])]
        );
        assert!(differences.equal.is_empty());
    }
}
