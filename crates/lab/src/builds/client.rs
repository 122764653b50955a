//! Fetching a package with its ordinary client, which brings its own configuration: hosts, mirrors
//! and proxies are the user's business.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_engine::process::child_command;

use super::apt;
use super::child::Client;
use super::error::BuildError;
use super::lock::Lock;
use super::progress::Watch;
use super::recipe::Package;

/// Fetched by version, so that the same command does the same on every machine.
const MAVEN_GET: &str = "org.apache.maven.plugins:maven-dependency-plugin:2.8:get";

/// What a fetch leaves.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// Archives, or Debian packages.
    pub files: Vec<PathBuf>,
    /// The version of the main Debian package.
    pub package_version: Option<String>,
}

/// Fetches packages. Tests have their own.
pub(crate) trait Fetcher: Send + Sync {
    /// Downloads into `folder`, which is empty. `wanted` is the exact version or the series that a
    /// moving suite must still have.
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError>;
}

/// The clients of this machine.
pub(crate) struct Clients {
    /// Maven's own plugins and metadata stay here between fetches; what it downloads for us does
    /// not.
    pub maven_repository: PathBuf,
    /// Taken while Maven runs: its repository is for one process at a time.
    pub maven_lock: PathBuf,
}

impl Fetcher for Clients {
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        match package {
            Package::Mvn { artifact } => self.fetch_from_maven(artifact, folder, watch),
            Package::Npm { package } => fetch_from_npm(package, folder, watch),
            Package::Apt {
                suite,
                packages,
                also,
                has_security,
            } => {
                let request = apt::Request {
                    suite,
                    packages,
                    also,
                    has_security: *has_security,
                    main: package.main_package(),
                    wanted,
                };
                apt::fetch(&request, folder, watch)
            }
        }
    }
}

impl Clients {
    fn fetch_from_maven(
        &self,
        artifact: &str,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        let _lock = Lock::take(&self.maven_lock, watch)?;
        let parts: Vec<&str> = artifact.split(':').collect();
        let [group, name, version, ..] = parts[..] else {
            return Err(BuildError::Usage(format!(
                "{artifact} is not group:artifact:version; mend the recipe"
            )));
        };
        let artifact_folder = self
            .maven_repository
            .join(group.replace('.', "/"))
            .join(name)
            .join(version);
        let mut command = child_command("mvn");
        command.args(["-q", "-B", "-U", MAVEN_GET, "-Dtransitive=false"]);
        command.arg(format!("-Dartifact={artifact}"));
        command.arg(format!(
            "-Dmaven.repo.local={}",
            self.maven_repository.display()
        ));
        // Away from any pom.xml, which Maven would read.
        command.current_dir(folder);
        let client = Client {
            command,
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
        if let Err(refusal) = outcome? {
            let is_gone = ["Could not find artifact", "was not found in"]
                .iter()
                .any(|words| refusal.text.contains(words));
            return Err(refused(artifact, is_gone, &refusal.summary));
        }
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

fn fetch_from_npm(
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
    if let Err(refusal) = client.run(watch)? {
        let is_gone = ["E404", "ETARGET", "No matching version"]
            .iter()
            .any(|words| refusal.text.contains(words));
        return Err(refused(package, is_gone, &refusal.summary));
    }
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

/// A client said no: the package is gone, or something else is wrong.
pub(crate) fn refused(package: &str, is_gone: bool, summary: &str) -> BuildError {
    if is_gone {
        BuildError::Gone(format!("the registry has no {package} any more: {summary}"))
    } else {
        BuildError::Client(format!(
            "failed to fetch {package}: {summary}\n  check the network and the client's own \
            configuration"
        ))
    }
}
