//! Which cells a report shows, and which of them is the base.

use plimsoll_core::suggest;

use crate::AnalysisError;
use crate::cells::cell_info::CellInfo;

/// What can be chosen: a cell's label and its build.
pub struct Candidate {
    pub label: String,
    pub build: String,
}

/// The cells of a view.
pub(crate) fn of_cells(cells: &[CellInfo]) -> Vec<Candidate> {
    let candidate = |cell: &CellInfo| Candidate {
        label: cell.label.clone(),
        build: cell.build.clone(),
    };
    cells.iter().map(candidate).collect()
}

/// Indices of the cells a name stands for: an exact cell, else an exact build, else the builds
/// whose text before the first `_` it is.
pub fn find(name: &str, candidates: &[Candidate]) -> Result<Vec<usize>, AnalysisError> {
    let rules: [fn(&Candidate, &str) -> bool; 3] = [
        |candidate, name| candidate.label == name,
        |candidate, name| candidate.build == name,
        |candidate, name| {
            candidate
                .build
                .split_once('_')
                .is_some_and(|(stem, _)| stem == name)
        },
    ];
    let matches = |rule: fn(&Candidate, &str) -> bool| -> Vec<usize> {
        candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| rule(candidate, name))
            .map(|(i, _)| i)
            .collect()
    };
    rules
        .into_iter()
        .map(matches)
        .find(|found| !found.is_empty())
        .ok_or_else(|| {
            let labels: Vec<&str> = candidates
                .iter()
                .map(|candidate| candidate.label.as_str())
                .collect();
            AnalysisError::UnknownCell {
                name: name.to_owned(),
                hint: suggest::hint(name, labels.iter().copied()),
                known: labels.join(", "),
            }
        })
}

/// The one cell that a base's name stands for. In a campaign with verdicts `postgres@16` stands for
/// a cell and for its A/A control, `postgres@16.cx10b#2`: the cell is meant.
///
/// # Errors
///
/// If the name stands for no cell, or for several that are not a cell and its controls.
pub(crate) fn find_base(name: &str, candidates: &[Candidate]) -> Result<usize, AnalysisError> {
    let found = find(name, candidates)?;
    let label = |cell: usize| candidates[cell].label.as_str();
    let has_all = |cell: usize| {
        let control = format!("{}#", label(cell));
        let mut others = found.iter().filter(|other| **other != cell);
        others.all(|other| label(*other).starts_with(&control))
    };
    let meant = found.iter().copied().find(|cell| has_all(*cell));
    meant.ok_or_else(|| {
        let cells: Vec<&str> = found.iter().map(|cell| label(*cell)).collect();
        AnalysisError::AmbiguousBase {
            name: name.to_owned(),
            cells: cells.join(", "),
        }
    })
}

/// The cells to show, base first. Without `builds` all are shown in their order; a base that
/// `builds` leaves out is shown all the same when it was asked for by name, else the first cell
/// shown stands in for it.
pub fn choose(
    candidates: &[Candidate],
    base: Option<&str>,
    builds: &[String],
    plan_base: usize,
) -> Result<Vec<usize>, AnalysisError> {
    let mut chosen: Vec<usize> = Vec::new();
    for name in builds {
        for cell in find(name, candidates)? {
            if !chosen.contains(&cell) {
                chosen.push(cell);
            }
        }
    }
    if builds.is_empty() {
        chosen = (0..candidates.len()).collect();
    }
    let base = match base {
        Some(name) => find_base(name, candidates)?,
        None if chosen.contains(&plan_base) => plan_base,
        None => chosen[0],
    };
    chosen.retain(|cell| *cell != base);
    chosen.insert(0, base);
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate> {
        let cells = [
            ("my8406_rel.z10a", "my8406_rel"),
            ("my8406v2_rel.z10a", "my8406v2_rel"),
            ("my8406_rel.z11a", "my8406_rel"),
        ];
        cells
            .map(|(label, build)| Candidate {
                label: label.to_owned(),
                build: build.to_owned(),
            })
            .into()
    }

    #[test]
    fn names_match_cells_then_builds_then_stems() {
        let cases: [(&str, &[usize]); 4] = [
            ("my8406_rel.z11a", &[2]),
            ("my8406_rel", &[0, 2]),
            ("my8406", &[0, 2]),
            ("my8406v2", &[1]),
        ];
        for (name, found) in cases {
            assert_eq!(find(name, &candidates()).unwrap(), found, "{name}");
        }
        let error = find("my840", &candidates()).unwrap_err().to_string();
        assert!(
            error.contains("my8406_rel.z10a, my8406v2_rel.z10a"),
            "{error}"
        );
    }

    #[test]
    fn the_base_comes_first() {
        let choose = |base, builds: &[&str]| {
            let builds: Vec<String> = builds.iter().map(|b| (*b).to_owned()).collect();
            choose(&candidates(), base, &builds, 1)
        };
        assert_eq!(choose(None, &[]).unwrap(), [1, 0, 2]);
        assert_eq!(choose(Some("my8406_rel.z11a"), &[]).unwrap(), [2, 0, 1]);
        assert_eq!(choose(None, &["my8406"]).unwrap(), [0, 2]);
        assert_eq!(choose(Some("my8406v2"), &["my8406"]).unwrap(), [1, 0, 2]);
        let error = choose(Some("my8406"), &[]).unwrap_err().to_string();
        assert!(
            error.contains("my8406_rel.z10a, my8406_rel.z11a"),
            "{error}"
        );
    }

    /// `explain STEP postgres@16` was refused in every campaign with verdicts, where the base has a
    /// control of the same build.
    #[test]
    fn a_base_is_not_mistaken_for_its_control() {
        let cells = |labels: &[&str]| -> Vec<Candidate> {
            let build = |label: &str| label.split('.').next().unwrap().to_owned();
            let candidate = |label: &&str| Candidate {
                label: (*label).to_owned(),
                build: build(label),
            };
            labels.iter().map(candidate).collect()
        };
        let all = cells(&["pg16.c#2", "pg16.c", "pg18.c"]);
        assert_eq!(choose(&all, Some("pg16"), &[], 0).unwrap(), [1, 0, 2]);
        assert_eq!(choose(&all, Some("pg16.c#2"), &[], 0).unwrap(), [0, 1, 2]);
        let two = cells(&["pg16.c", "pg16.c#2", "pg16.d"]);
        let error = choose(&two, Some("pg16"), &[], 0).unwrap_err().to_string();
        assert!(error.contains("pg16.c, pg16.c#2, pg16.d"), "{error}");
    }
}
