//! Debian packages: resolved by apt against a private, empty record of what is installed, so that
//! the C library comes along. Nothing is installed, and any suite can be fetched on any Debian.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_engine::process::child_command;

use crate::builds::error::BuildError;
use crate::builds::fetch::child::{Client, Refusal};
use crate::builds::fetch::debian_sources::{Archive, archives};
use crate::builds::fetch::fetcher::Fetched;
use crate::builds::progress::Watch;
use crate::builds::recipes::resolve::is_patch_of;

/// What to fetch.
pub(crate) struct Request<'a> {
    pub suite: &'a str,
    /// With all they depend on.
    pub packages: &'a [String],
    /// Alone.
    pub also: &'a [String],
    pub has_security: bool,
    /// The package whose version is the build's.
    pub main: Option<&'a str>,
    /// The upstream version or series that it must have.
    pub wanted: Option<&'a str>,
}

/// apt with private folders.
struct Apt<'a> {
    root: PathBuf,
    suite: &'a str,
    /// Whether the suite itself is preferred: it is not the default, and its packages would lose
    /// against another's.
    has_target: bool,
}

impl Request<'_> {
    /// The packages, for people.
    fn describe(&self) -> String {
        let packages: Vec<&str> = self
            .packages
            .iter()
            .chain(self.also)
            .map(String::as_str)
            .collect();
        format!("{} of Debian {}", packages.join(" "), self.suite)
    }

    fn refused(&self, refusal: &Refusal) -> BuildError {
        let is_gone = refusal.has_any(&["Unable to locate package"]);
        refusal.explain(&self.describe(), is_gone)
    }
}

/// Downloads the packages and says which version the main one has.
pub(crate) fn fetch(
    request: &Request<'_>,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Fetched, BuildError> {
    let sources = sources("deb", request.suite, request.has_security)?;
    let apt = Apt::begin(folder, request.suite, &sources, watch)?;
    let package_version = match request.main {
        Some(main) => Some(apt.main_version(main, request, watch)?),
        None => None,
    };
    apt.download(request, watch)?;
    Ok(Fetched {
        files: debs(&apt.archives())?,
        package_version,
    })
}

/// A source package to fetch.
pub(crate) struct SourceRequest<'a> {
    pub suite: &'a str,
    pub name: &'a str,
    pub has_security: bool,
    /// The upstream version or series that it must have.
    pub wanted: Option<&'a str>,
}

/// Downloads the tarballs of a source package as its authors released them: Debian's patches are
/// in another file, which is left.
pub(crate) fn fetch_source(
    request: &SourceRequest<'_>,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<Fetched, BuildError> {
    let sources = sources("deb-src", request.suite, request.has_security)?;
    let apt = Apt::begin(folder, request.suite, &sources, watch)?;
    let archives = apt.archives();
    // The tarball alone: Debian's patches and rules are in other files.
    let options = ["source", "--download-only", "--only-source", "--tar-only"];
    let arguments = [&options[..], &[request.name]].concat();
    apt.run("apt-get", false, &arguments, &archives, watch)?
        .map_err(|refusal| {
            let is_gone = refusal.has_any(&["Unable to find a source package", "404  Not Found"]);
            let what = format!("source {} of Debian {}", request.name, request.suite);
            refusal.explain(&what, is_gone)
        })?;
    let mut files: Vec<PathBuf> = fs::read_dir(&archives)
        .map_err(BuildError::io("read", &archives))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| tarball_version(path).is_some())
        .collect();
    files.sort();
    let version = files.first().and_then(|file| tarball_version(file));
    let version = version.ok_or_else(|| {
        BuildError::Client(format!(
            "apt-get ended well and left no tarball of {}; try it by hand",
            request.name
        ))
    })?;
    let upstream = upstream_version(version);
    if let Some(wanted) = request
        .wanted
        .filter(|wanted| !is_patch_of(&upstream, wanted))
    {
        return Err(BuildError::Gone(format!(
            "Debian {} has {} {upstream} now, not {wanted}",
            request.suite, request.name
        )));
    }
    Ok(Fetched {
        package_version: Some(version.to_owned()),
        files,
    })
}

/// `17.11` of `.../postgresql-17_17.11.orig.tar.bz2`; `None` of other files.
fn tarball_version(path: &Path) -> Option<&str> {
    let (stem, ending) = path.file_name()?.to_str()?.split_once(".orig.tar.")?;
    let (_, version) = stem.split_once('_')?;
    (!ending.contains('.')).then_some(version)
}

/// Stable suites are preferred through their security updates; naming them as the target would
/// prefer the older package.
fn has_target(suite: &str) -> bool {
    !matches!(suite, "bookworm" | "trixie" | "experimental")
}

/// The private sources list.
fn sources(kind: &str, suite: &str, has_security: bool) -> Result<String, BuildError> {
    let archives = archives(Path::new("/etc/apt"))?;
    let line = |archive: &Archive, suite: &str| {
        format!(
            "{kind} [signed-by={}] {} {suite} main\n",
            archive.keyring, archive.uri
        )
    };
    let mut text = line(&archives.main, suite);
    if has_security {
        let security = archives.security.as_ref().ok_or_else(|| {
            BuildError::Usage(
                "apt's sources on this machine name no Debian security archive; add one, as \
                Debian's installer does"
                    .into(),
            )
        })?;
        text += &line(security, &format!("{suite}-security"));
    }
    // experimental only has what differs from sid.
    if suite == "experimental" && kind == "deb" {
        text += &line(&archives.main, "sid");
    }
    Ok(text)
}

impl<'a> Apt<'a> {
    /// Private folders below `folder`, and the lists of what the sources have.
    fn begin(
        folder: &Path,
        suite: &'a str,
        sources: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Self, BuildError> {
        let apt = Self {
            root: folder.join("apt"),
            suite,
            has_target: has_target(suite),
        };
        apt.prepare(sources)?;
        apt.update(watch)?;
        Ok(apt)
    }

    fn archives(&self) -> PathBuf {
        self.root.join("cache/archives")
    }

    fn update(&self, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        self.run("apt-get", false, &["update"], &self.root, watch)?
            .map_err(|refusal| {
                let is_gone = refusal.has_any(&["does not have a Release file"]);
                refusal.explain(&format!("the suite {}", self.suite), is_gone)
            })
    }

    fn prepare(&self, sources: &str) -> Result<(), BuildError> {
        for folder in ["lists/partial", "cache/archives/partial"] {
            let folder = self.root.join(folder);
            fs::create_dir_all(&folder).map_err(BuildError::io("make", &folder))?;
        }
        for (name, text) in [("sources.list", sources), ("status", "")] {
            let path = self.root.join(name);
            fs::write(&path, text).map_err(BuildError::io("write", &path))?;
        }
        Ok(())
    }

    /// The version of the main package, which must still be the one that is requested.
    fn main_version(
        &self,
        main: &str,
        request: &Request<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<String, BuildError> {
        let gone = |what: String| {
            let security = if request.has_security {
                " with security updates"
            } else {
                ""
            };
            BuildError::Gone(format!("Debian {}{security} has {what}", request.suite))
        };
        let version = self
            .candidate(main, watch)?
            .ok_or_else(|| gone(format!("no {main} any more")))?;
        let upstream = upstream_version(&version);
        match request.wanted {
            Some(wanted) if !is_patch_of(&upstream, wanted) => {
                Err(gone(format!("{main} {upstream} now, not {wanted}")))
            }
            _ => Ok(version),
        }
    }

    /// Downloads the request's packages into [`Apt::archives`].
    fn download(&self, request: &Request<'_>, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let archives = self.archives();
        if !request.packages.is_empty() {
            let mut arguments = vec!["-y", "-d", "install"];
            arguments.extend(request.packages.iter().map(String::as_str));
            self.run("apt-get", self.has_target, &arguments, &archives, watch)?
                .map_err(|refusal| request.refused(&refusal))?;
        }
        for package in request.also {
            // Another suite's package of that name may have come along as a dependency.
            for other in debs(&archives)?
                .iter()
                .filter(|deb| package_name(deb) == Some(package))
            {
                fs::remove_file(other).map_err(BuildError::io("remove", other))?;
            }
            let exactly = format!("{package}/{}", request.suite);
            self.run("apt-get", false, &["download", &exactly], &archives, watch)?
                .map_err(|refusal| request.refused(&refusal))?;
        }
        Ok(())
    }

    fn run(
        &self,
        program: &str,
        has_target: bool,
        arguments: &[&str],
        grows: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Result<(), Refusal>, BuildError> {
        let log = self.root.join("apt.log");
        let client = Client {
            command: self.command(program, has_target, arguments),
            needs: "apt (on Debian)",
            grows,
            log,
        };
        client.run(watch)
    }

    fn command(&self, program: &str, has_target: bool, arguments: &[&str]) -> Command {
        let root = self.root.display();
        let mut command = child_command(program);
        command
            .current_dir(self.archives())
            .env("DEBIAN_FRONTEND", "noninteractive")
            .arg("-qq");
        for option in [
            format!("Dir::Etc::sourcelist={root}/sources.list"),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "Dir::Etc::preferences=/dev/null".to_owned(),
            "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            format!("Dir::State::Lists={root}/lists"),
            format!("Dir::State::status={root}/status"),
            format!("Dir::State::extended_states={root}/extended_states"),
            format!("Dir::Cache={root}/cache"),
            "APT::Install-Recommends=false".to_owned(),
            // As root, apt would download as a user that cannot enter our folder.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        if has_target {
            command.args(["-t", self.suite]);
        }
        command.args(arguments);
        command
    }

    /// The version that would be fetched.
    fn candidate(
        &self,
        package: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Option<String>, BuildError> {
        let log = self.root.join("apt.log");
        let command = self.command("apt-cache", self.has_target, &["policy", package]);
        let client = Client {
            command,
            needs: "apt (on Debian)",
            grows: &self.root,
            log: log.clone(),
        };
        client
            .run(watch)?
            .map_err(|refusal| refusal.explain(package, false))?;
        let text = fs::read_to_string(&log).map_err(BuildError::io("read", &log))?;
        Ok(parse_candidate(&text).map(str::to_owned))
    }
}

fn parse_candidate(policy: &str) -> Option<&str> {
    let version = policy
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate:"))?
        .trim();
    (version != "(none)").then_some(version)
}

/// The upstream part of a Debian version, as servers state it: no epoch, no revision, `rc1` without
/// its tilde.
pub(crate) fn upstream_version(debian: &str) -> String {
    let version = debian
        .split_once(':')
        .map_or(debian, |(_, version)| version);
    let version = version
        .rsplit_once('-')
        .map_or(version, |(version, _)| version);
    version
        .split('+')
        .next()
        .unwrap_or(version)
        .replace('~', "")
}

/// The downloaded packages, in the order of their names.
fn debs(archives: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(archives).map_err(BuildError::io("read", archives))? {
        let path = entry.map_err(BuildError::io("read", archives))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `libaio1` of `.../libaio1_0.3.113-4_amd64.deb`.
pub(crate) fn package_name(deb: &Path) -> Option<&str> {
    deb.file_name()?.to_str()?.split('_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_versions() {
        for (debian, upstream) in [
            ("1:10.11.19-0+deb12u1", "10.11.19"),
            ("15.20-0+deb12u1", "15.20"),
            ("9.7.4-2", "9.7.4"),
            ("19~rc1-1", "19rc1"),
            ("1:11.8.6+dfsg-1", "11.8.6"),
            ("2:1.2", "1.2"),
        ] {
            assert_eq!(upstream_version(debian), upstream);
        }
    }

    #[test]
    fn versions_of_tarballs() {
        for (name, version) in [
            ("postgresql-17_17.11.orig.tar.bz2", Some("17.11")),
            ("postgresql-19_19~rc1.orig.tar.bz2", Some("19~rc1")),
            ("mariadb_11.8.6.orig.tar.xz.asc", None),
            ("postgresql-17_17.11-1.dsc", None),
        ] {
            assert_eq!(tarball_version(Path::new(name)), version);
        }
    }

    #[test]
    fn candidates_are_read() {
        let policy = "mariadb-server-core:\n  Installed: (none)\n  Candidate: \
                     1:10.11.19-0+deb12u1\n  Version table:\n";
        assert_eq!(parse_candidate(policy), Some("1:10.11.19-0+deb12u1"));
        assert_eq!(parse_candidate("x:\n  Candidate: (none)\n"), None);
        assert_eq!(parse_candidate(""), None);
    }

    #[test]
    fn names_of_packages() {
        assert_eq!(
            package_name(Path::new("/a/libaio1_0.3.113-4_amd64.deb")),
            Some("libaio1")
        );
    }
}
