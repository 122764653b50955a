//! Questions to git about a checkout, which may be another user's.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use plimsoll_engine::process::{child_command, output_within};

use crate::builds::error::BuildError;

/// A large history on a cold disk needs some of this.
const LIMIT: Duration = Duration::from_secs(120);

/// git in a folder. Hooks and `git rebase --exec` name their repository in the environment, which
/// is not the one that is meant here.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = child_command("git");
    let of_git = std::env::vars_os().map(|(name, _)| name);
    for name in of_git.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command
        .args([
            "-c",
            "safe.directory=*",
            "-c",
            "advice.detachedHead=false",
            "-c",
            "core.hooksPath=/dev/null",
            "-C",
        ])
        .arg(folder)
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// The full hash of the commit that a revision means.
pub(crate) fn commit_of(repository: &Path, revision: &str) -> Result<String, BuildError> {
    object_of(repository, revision, "commit")
}

/// The hash of a commit's files.
pub(crate) fn tree_of(repository: &Path, commit: &str) -> Result<String, BuildError> {
    object_of(repository, commit, "tree")
}

fn object_of(repository: &Path, revision: &str, kind: &str) -> Result<String, BuildError> {
    let mut command = git(repository);
    command
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{revision}^{{{kind}}}"));
    let output = output(&mut command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    if !repository.is_dir() {
        return Err(BuildError::Usage(format!(
            "there is no folder {}; give a git checkout",
            repository.display()
        )));
    }
    Err(BuildError::Usage(format!(
        "{} has no revision {revision}; look with `git log`, or fetch it first",
        repository.display()
    )))
}

/// Whether a question has a yes for an answer.
pub(crate) fn is_so(repository: &Path, arguments: &[&str]) -> Result<bool, BuildError> {
    Ok(output(git(repository).args(arguments))?.status.success())
}

/// The lines that git prints.
pub(crate) fn lines(repository: &Path, arguments: &[&str]) -> Result<Vec<String>, BuildError> {
    let output = output(git(repository).args(arguments))?;
    if !output.status.success() {
        return Err(BuildError::Usage(format!(
            "failed to ask git about {}: {}; give a git checkout",
            repository.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().map(str::to_owned).collect())
}

fn output(command: &mut Command) -> Result<Output, BuildError> {
    output_within(command, LIMIT)
        .map_err(|error| BuildError::Client(format!("failed to run git: {error}; install git")))
}
