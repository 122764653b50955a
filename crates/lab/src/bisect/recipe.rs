//! Commits of a git checkout, each compiled by a recipe when it is probed.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::BuildName;

use super::candidates::Commit;
use crate::builds::make::git::{commit_of, is_so, lines};
use crate::builds::{BuildCache, GivenSource, MakeRequest};
use crate::error::LabError;

/// Digits of a commit's hash in names: enough for any history.
const HASH_DIGITS: usize = 12;

/// Compiles commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitRecipe {
    pub engine: EngineName,
    /// The git checkout.
    pub repository: PathBuf,
    /// The flag set's name, or the recipe's usual one.
    pub flags: Option<String>,
}

impl CommitRecipe {
    /// The commits from `good` to `bad`, both included, oldest first: those that `bad` has and
    /// `good` has not, a merge being one.
    ///
    /// # Errors
    /// When the checkout lacks one of them, or `bad` does not come after `good`.
    pub fn commits(&self, good: &str, bad: &str) -> Result<Vec<Commit>, LabError> {
        let repository = self.repository.as_path();
        let (first, last) = (commit_of(repository, good)?, commit_of(repository, bad)?);
        let is_before = is_so(repository, &["merge-base", "--is-ancestor", &first, &last])?;
        if !is_before || first == last {
            return Err(LabError::Usage(format!(
                "{good} does not come before {bad} in {}; swap them, or name commits of one branch",
                repository.display()
            )));
        }
        let range = format!("{first}..{last}");
        let log = ["log", "--no-show-signature", "--format=%H %s"];
        let mut all = lines(repository, &[&log[..], &["--no-walk", &first]].concat())?;
        let later = ["--reverse", "--first-parent", &range];
        all.extend(lines(repository, &[&log[..], &later].concat())?);
        let short = |line: String| {
            let commit = Commit::from_line(&line);
            Commit {
                name: commit.name.chars().take(HASH_DIGITS).collect(),
                ..commit
            }
        };
        Ok(all.into_iter().map(short).collect())
    }

    /// Makes the build of a commit, unless the cache has it. The inner error says why the commit
    /// has none. The outer one would meet every commit: a full disk, a missing program.
    pub(super) fn make(
        &self,
        commit: &str,
        builds: &BuildCache,
        stop_requests: &AtomicUsize,
    ) -> Result<Result<BuildName, String>, LabError> {
        let request = MakeRequest {
            engine: self.engine,
            version: None,
            flags: self.flags.clone(),
            source: Some(GivenSource::Commit {
                repository: self.repository.clone(),
                revision: commit.to_owned(),
            }),
            label: None,
        };
        let is_stopped = || stop_requests.load(Ordering::SeqCst) > 0;
        let made = builds.make(&request, &mut |_| {}, &is_stopped);
        Ok(match made {
            Ok(made) => made.build.name.parse().map_err(|error| format!("{error}")),
            // No other commit would be built here either.
            Err(error) if error.is_of_the_machine() => return Err(error.into()),
            Err(error) => Err(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::builds::BuildError;
    use crate::builds::make::git::git;

    #[test]
    fn commits_are_listed_from_good_to_bad() {
        let dir = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let mut command = git(dir.path());
            command.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]);
            assert!(command.args(arguments).status().unwrap().success());
        };
        run(&["init", "--quiet"]);
        for name in ["one", "two", "three"] {
            run(&["commit", "--quiet", "--allow-empty", "-m", name]);
            run(&["tag", name]);
        }
        let recipe = CommitRecipe {
            engine: EngineName::Postgres,
            repository: dir.path().to_owned(),
            flags: None,
        };
        let all = recipe.commits("one", "three").unwrap();
        assert_eq!(all.len(), 3);
        assert!(
            all.iter().all(|commit| commit.name.len() == HASH_DIGITS),
            "{all:?}"
        );
        let subjects: Vec<&str> = all.iter().map(|commit| commit.subject.as_str()).collect();
        assert_eq!(subjects, ["one", "two", "three"]);
        assert_eq!(recipe.commits("two", "HEAD").unwrap(), all[1..]);
        for (good, bad, wanted) in [
            ("three", "one", "three does not come before one"),
            ("one", "one", "one does not come before one"),
            ("one", "four", "has no revision four"),
        ] {
            let error = recipe.commits(good, bad).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_commit_is_skipped_for_its_own_fault_alone() {
        let failed = |line: &str| BuildError::Failed {
            step: "compile".to_owned(),
            line: line.to_owned(),
            log: "x.log".into(),
        };
        assert!(!failed("a.c:1:1: error: x").is_of_the_machine());
        assert!(!BuildError::Unfit("it states -O1".to_owned()).is_of_the_machine());
        let full = failed("/tmp/x.s: No space left on device");
        assert!(full.is_disk_full() && full.is_of_the_machine());
        assert!(matches!(LabError::from(full), LabError::Machine(_)));
        assert!(BuildError::Client("this machine lacks bison".to_owned()).is_of_the_machine());

        // A flag set that is unknown is so for all commits.
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(".git")).unwrap();
        let recipe = CommitRecipe {
            engine: EngineName::Postgres,
            repository: dir.path().to_owned(),
            flags: Some("o9".to_owned()),
        };
        let cache = BuildCache::new(dir.path().join("cache"));
        let error = recipe
            .make("one", &cache, &AtomicUsize::new(0))
            .unwrap_err();
        assert!(error.to_string().contains("no flag set \"o9\""), "{error}");
    }
}
