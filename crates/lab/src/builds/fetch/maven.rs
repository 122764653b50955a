//! Artifacts of Maven repositories, through `mvn`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_engine::process::child_command;

use crate::builds::error::BuildError;
use crate::builds::fetch::child::Client;
use crate::builds::fetch::fetcher::Fetched;
use crate::builds::lock::Lock;
use crate::builds::progress::Watch;

/// Fetched by version, so that the same command does the same on every machine.
const MAVEN_GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get";

/// Maven, with a repository of our own: its plugins and metadata stay there between fetches, what
/// it downloads for us does not.
pub(crate) struct Maven {
    pub repository: PathBuf,
    /// Held while Maven runs: its repository is for one process at a time.
    pub lock: PathBuf,
}

impl Maven {
    pub fn fetch(
        &self,
        artifact: &str,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        let _lock = Lock::take(&self.lock, watch)?;
        let artifact_folder = self.folder_of(artifact)?;
        let client = Client {
            command: self.command(artifact, folder),
            needs: "Maven and a Java runtime",
            grows: &artifact_folder,
            log: folder.join("mvn.log"),
        };
        let outcome = client.run(watch);
        let taken = match &outcome {
            Ok(Ok(())) => take_artifacts(&artifact_folder, folder),
            _ => Ok(Vec::new()),
        };
        // Archives reach half a gigabyte, and what was interrupted must not be taken for whole:
        // nothing stays in the repository.
        let _ = fs::remove_dir_all(&artifact_folder);
        outcome?.map_err(|refusal| {
            let is_gone = refusal.has_any(&["Could not find artifact", "was not found in"]);
            refusal.explain(artifact, is_gone)
        })?;
        let files = taken?;
        if files.is_empty() {
            return Err(BuildError::Client(format!(
                "mvn ended well and left no file of {artifact}; try it by hand"
            )));
        }
        Ok(Fetched {
            files,
            package_version: None,
        })
    }

    /// Where Maven puts an artifact in its repository.
    fn folder_of(&self, artifact: &str) -> Result<PathBuf, BuildError> {
        let parts: Vec<&str> = artifact.split(':').collect();
        let [group, name, version, ..] = parts[..] else {
            return Err(BuildError::Usage(format!(
                "{artifact} is not group:artifact:version; mend the recipe"
            )));
        };
        let group = group.replace('.', "/");
        Ok(self.repository.join(group).join(name).join(version))
    }

    fn command(&self, artifact: &str, folder: &Path) -> Command {
        let mut command = child_command("mvn");
        command
            .args(["-q", "-B", "-C", "-U", MAVEN_GET, "-Dtransitive=false"])
            .arg(format!("-Dartifact={artifact}"))
            .arg(format!("-Dmaven.repo.local={}", self.repository.display()))
            // Away from any pom.xml, which Maven would read.
            .current_dir(folder);
        command
    }
}

/// Moves the archives out of Maven's repository.
fn take_artifacts(artifact_folder: &Path, folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(artifact_folder).map_err(BuildError::io("read", artifact_folder))? {
        let path = entry
            .map_err(BuildError::io("read", artifact_folder))?
            .path();
        let is_archive = path
            .extension()
            .is_some_and(|extension| extension == "jar" || extension == "zip");
        if let (true, Some(name)) = (is_archive, path.file_name()) {
            let target = folder.join(name);
            fs::rename(&path, &target).map_err(BuildError::io("move", &path))?;
            files.push(target);
        }
    }
    Ok(files)
}
