//! Packages of the npm registry, through `npm pack`.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_engine::process::child_command;

use crate::builds::error::BuildError;
use crate::builds::fetch::child::Client;
use crate::builds::fetch::fetcher::Fetched;
use crate::builds::progress::Watch;

/// Downloads one package of the registry.
pub(crate) fn fetch(
    package: &str,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Fetched, BuildError> {
    let mut command = child_command("npm");
    // A cache of its own: the package would stay in the user's a second time. Not `--silent`: it
    // hides why npm failed.
    command
        .args(["pack", "--loglevel=error", "--ignore-scripts", "--cache"])
        .arg(folder.join("npm-cache"))
        .arg(package)
        .current_dir(folder);
    let client = Client {
        command,
        needs: "npm",
        grows: folder,
        log: folder.join("npm.log"),
    };
    client.run(watch)?.map_err(|refusal| {
        let is_gone = refusal.has_any(&["E404", "ETARGET", "No matching version"]);
        refusal.explain(package, is_gone)
    })?;
    let files: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(BuildError::io("read", folder))?
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "tgz"))
        .collect();
    if files.is_empty() {
        return Err(BuildError::Client(format!(
            "npm ended well and left no file of {package}; try it by hand"
        )));
    }
    Ok(Fetched {
        files,
        package_version: None,
    })
}
