//! Plans, workload files and configs that travel inside the binary, so that it works in any folder.
//! The folders themselves are the lists: a file that is put there is shipped.

use include_dir::{Dir, File, include_dir};
use plimsoll_core::engines::EngineName;

static PLANS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../plans");
static CONFIGS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../configs");

/// The plan that runs when none is named.
pub(crate) const DEFAULT_PLAN: &str = "quick";

/// The folder of workload files, as plans name it.
const WORKLOADS: &str = "workloads";

/// The text of a shipped file; a test reads all of them.
pub(crate) fn text_of(file: &'static File<'static>) -> &'static str {
    file.contents_utf8().unwrap_or_default()
}

/// The name of a file without its folder and ending.
pub(crate) fn stem_of(file: &'static File<'static>) -> &'static str {
    let stem = file.path().file_stem().and_then(|stem| stem.to_str());
    stem.unwrap_or_default()
}

/// Name and text of every shipped plan.
pub fn shipped_plans() -> impl Iterator<Item = (&'static str, &'static str)> {
    PLANS.files().map(|file| (stem_of(file), text_of(file)))
}

/// Path, as shipped plans name it, and text of every shipped workload file.
pub fn shipped_workloads() -> impl Iterator<Item = (&'static str, &'static str)> {
    let files = PLANS.get_dir(WORKLOADS).into_iter().flat_map(Dir::files);
    files.filter_map(|file| Some((file.path().to_str()?, text_of(file))))
}

/// The text of a shipped plan.
pub fn shipped_plan(name: &str) -> Option<&'static str> {
    let mut plans = shipped_plans();
    plans
        .find(|(known, _)| *known == name)
        .map(|(_, text)| text)
}

/// The text of a shipped workload file.
pub fn shipped_workload(path: &str) -> Option<&'static str> {
    let mut workloads = shipped_workloads();
    workloads
        .find(|(known, _)| *known == path)
        .map(|(_, text)| text)
}

/// The text of a shipped config.
pub(crate) fn shipped_config(engine: EngineName, label: &str) -> Option<&'static str> {
    configs(engine)
        .find(|file| stem_of(file) == label)
        .map(text_of)
}

/// The labels of an engine's shipped configs.
pub(crate) fn shipped_config_labels(engine: EngineName) -> Vec<&'static str> {
    configs(engine).map(stem_of).collect()
}

fn configs(engine: EngineName) -> impl Iterator<Item = &'static File<'static>> {
    let folder = CONFIGS.get_dir(engine.as_str());
    folder.into_iter().flat_map(Dir::files)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use plimsoll_core::plan::Plan;

    #[test]
    fn every_shipped_file_is_text_and_every_folder_is_an_engine() {
        let workloads = PLANS.get_dir(WORKLOADS).unwrap();
        let of_engines = CONFIGS.dirs().flat_map(Dir::files);
        for file in PLANS.files().chain(workloads.files()).chain(of_engines) {
            assert!(!text_of(file).is_empty(), "{}", file.path().display());
        }
        let folders: BTreeSet<_> = CONFIGS
            .dirs()
            .filter_map(|dir| dir.path().to_str())
            .collect();
        let engines: BTreeSet<_> = EngineName::ALL.map(EngineName::as_str).into();
        assert_eq!(folders, engines);
        assert!(shipped_plan(DEFAULT_PLAN).is_some());
    }

    #[test]
    fn every_shipped_plan_is_valid_and_finds_its_configs() {
        for (name, text) in shipped_plans() {
            let plan = Plan::parse_with(name, text, &|file| {
                Ok(shipped_workload(file).unwrap().to_owned())
            })
            .unwrap();
            assert_eq!(plan.name, name);
            for cell in &plan.cells {
                let config = cell.config.from.as_ref().unwrap_or(&cell.config.label);
                assert!(
                    shipped_config(cell.build.engine, config).is_some(),
                    "{}",
                    cell.label
                );
            }
        }
    }
}
