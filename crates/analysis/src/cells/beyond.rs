//! What differs between cells beyond their builds. It stands first wherever cells are compared: a
//! ratio compares all of it.

use std::collections::BTreeMap;

use crate::cells::cell_info::CellInfo;
use crate::cells::setting_value::is_same;
use crate::cells::settings::plain_name;
use crate::view::View;

/// The names of the session's facts begin with this among those of the environment.
pub(crate) const SESSION: &str = "session.";

/// Where a fact is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FactKind {
    /// Read back on a session that was opened as the workers' are.
    Session,
    /// Of the machine and of this program.
    Environment,
    /// A setting that a config asks for; of one build, any setting.
    Setting,
}

impl FactKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Environment => "environment",
            Self::Setting => "setting",
        }
    }
}

/// A fact that is known of at least two of the cells, and not the same in all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondBuild {
    pub kind: FactKind,
    pub name: String,
    /// One per cell; `None` where it is not known.
    pub values: Vec<Option<String>>,
}

impl BeyondBuild {
    /// `session isolation: repeatable read (a), read committed (b)`. `labels` are those of the
    /// cells.
    pub fn line(&self, labels: &[&str]) -> String {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for (value, label) in self.values.iter().zip(labels) {
            let Some(value) = value.as_deref() else {
                continue;
            };
            match groups.iter_mut().find(|(known, _)| is_same(known, value)) {
                Some((_, of)) => of.push(label),
                None => groups.push((value, vec![label])),
            }
        }
        let groups: Vec<String> = groups
            .iter()
            .map(|(value, labels)| format!("{value} ({})", labels.join(", ")))
            .collect();
        format!("{} {}: {}", self.kind.name(), self.name, groups.join("; "))
    }
}

/// The facts of one cell by kind and name.
type Facts = BTreeMap<(FactKind, String), String>;

/// What differs between the cells of a view.
pub(crate) fn within(view: &View) -> Vec<BeyondBuild> {
    let sides: Vec<(&View, usize)> = (0..view.cells.len()).map(|cell| (view, cell)).collect();
    between(&sides)
}

/// What differs between cells, which may be of several views.
pub fn between(sides: &[(&View, usize)]) -> Vec<BeyondBuild> {
    let infos: Vec<&CellInfo> = sides
        .iter()
        .map(|(view, cell)| &view.cells[*cell])
        .collect();
    let facts: Vec<Facts> = sides.iter().map(|side| facts(side, &infos)).collect();
    let mut names: Vec<&(FactKind, String)> = facts.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    let beyond = |name: &&(FactKind, String)| {
        let values: Vec<Option<String>> = facts.iter().map(|of| of.get(*name).cloned()).collect();
        let mut known = values.iter().flatten();
        let first = known.next()?;
        let is_different = known.any(|value| !is_same(first, value));
        is_different.then(|| BeyondBuild {
            kind: name.0,
            name: name.1.clone(),
            values: values.clone(),
        })
    };
    names.iter().filter_map(beyond).collect()
}

fn facts((view, cell): &(&View, usize), infos: &[&CellInfo]) -> Facts {
    let info = &view.cells[*cell];
    let session = info
        .session
        .iter()
        .map(|(name, value)| ((FactKind::Session, name.clone()), value.clone()));
    let environment = view
        .environment
        .of_cell(*cell)
        .filter(|(name, _)| !name.starts_with(SESSION))
        .map(|(name, value)| ((FactKind::Environment, name.to_owned()), value.to_owned()));
    let is_one_build = infos.iter().all(|other| other.build == info.build);
    let is_asked = |name: &str| {
        let mut asked = infos.iter().flat_map(|info| info.config_settings.keys());
        asked.any(|option| plain_name(option) == name)
    };
    let settings = view
        .settings
        .of_cell(*cell)
        .filter(|(name, _)| is_one_build || is_asked(name))
        .map(|(name, value)| ((FactKind::Setting, name.to_owned()), value.to_owned()));
    session.chain(environment).chain(settings).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_groups_the_cells_of_a_value() {
        let value = |text: &str| Some(text.to_owned());
        let beyond = BeyondBuild {
            kind: FactKind::Setting,
            name: "cache".to_owned(),
            values: vec![value("1G"), value("2G"), None, value("1073741824")],
        };
        assert_eq!(
            beyond.line(&["a", "b", "c", "d"]),
            "setting cache: 1G (a, d); 2G (b)"
        );
    }
}
