//! Sources: the places they come from, their hashes, and the way into a workshop.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_core::engines::EngineName;
use plimsoll_engine::process::child_command;
use sha2::{Digest, Sha256};

use crate::builds::error::BuildError;
use crate::builds::fetch::child::Client;
use crate::builds::folder::{make, remove};
use crate::builds::inspect::server_file::{feed, hexadecimal};
use crate::builds::make::git::{commit_of, git, is_so, tree_of};
use crate::builds::make::run::count_objects;
use crate::builds::progress::Watch;

/// What the user gives as a source: `DIR`, `FILE.tar.gz`, `FILE.c`, `DIR@REVISION`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenSource {
    /// The files as they are, but for `.git`.
    Folder(PathBuf),
    /// Or a source that is one file of C.
    Tarball(PathBuf),
    /// A commit of a git checkout, whose own files do not matter.
    Commit {
        repository: PathBuf,
        revision: String,
    },
}

impl GivenSource {
    /// Reads `DIR[@REVISION]` or a tarball's path. A path that is there is taken as it is.
    ///
    /// # Errors
    /// When nothing of that name is there, or a revision is asked of what is not a checkout.
    pub fn parse(text: &str) -> Result<Self, BuildError> {
        let path = Path::new(text);
        if path.is_dir() {
            return Ok(Self::Folder(path.to_owned()));
        }
        if path.is_file() {
            return Ok(Self::Tarball(path.to_owned()));
        }
        let Some((repository, revision)) = text.rsplit_once('@') else {
            return Err(BuildError::Usage(format!(
                "there is no source {text}; give a folder, a tarball or CHECKOUT@REVISION"
            )));
        };
        if !Path::new(repository).join(".git").exists() {
            return Err(BuildError::Usage(format!(
                "{repository} is not a git checkout and has no revision {revision}; give a \
                folder with .git, or the folder alone"
            )));
        }
        if revision.is_empty() || revision.starts_with('-') {
            return Err(BuildError::Usage(format!(
                "\"{revision}\" is not a revision; write {repository}@TAG or {repository}@COMMIT"
            )));
        }
        Ok(Self::Commit {
            repository: PathBuf::from(repository),
            revision: revision.to_owned(),
        })
    }

    /// A word for names of builds: the revision, or the folder's or file's name.
    pub(crate) fn word(&self) -> String {
        let name = |path: &Path| {
            let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let name = real.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let word = match self {
            Self::Folder(path) => name(path),
            Self::Tarball(path) => {
                let name = name(path);
                let name = name.split(".tar").next().unwrap_or_default();
                name.strip_suffix(".c").unwrap_or(name).to_owned()
            }
            Self::Commit { revision, .. } => revision.clone(),
        };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        word.chars().map(plain).collect()
    }
}

/// A source whose files are known, and not yet in a workshop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// For people: the package, folder or commit.
    pub origin: String,
    /// The same for the same files: `sha256:...` of a tarball or of all files, `git:...` of a tree.
    pub hash: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Archives, unpacked over one another without their top folder. A file of C is copied.
    Tarballs(Vec<PathBuf>),
    Folder(PathBuf),
    Commit {
        repository: PathBuf,
        commit: String,
    },
}

impl Source {
    /// The tarballs of a package.
    pub fn of_package(
        origin: String,
        tarballs: Vec<PathBuf>,
        watch: &Watch<'_>,
    ) -> Result<Self, BuildError> {
        let sum = |tarball: &PathBuf| {
            let mut hash = Sha256::new();
            feed(tarball, &mut hash, &|| watch.check_cancelled())?;
            Ok(hexadecimal(hash))
        };
        let hash = match tarballs.as_slice() {
            [only] => sum(only)?,
            several => {
                let mut hash = Sha256::new();
                for tarball in several {
                    hash.update(sum(tarball)?);
                }
                hexadecimal(hash)
            }
        };
        Ok(Self {
            origin,
            hash: format!("sha256:{hash}"),
            place: Place::Tarballs(tarballs),
        })
    }

    /// What the user gave. Reads a tarball, or all files of a folder.
    ///
    /// # Errors
    /// When it cannot be read, or the user asks to stop.
    pub fn of_given(given: &GivenSource, watch: &Watch<'_>) -> Result<Self, BuildError> {
        let real = |path: &PathBuf| path.canonicalize().map_err(BuildError::io("read", path));
        match given {
            GivenSource::Tarball(path) => {
                let path = real(path)?;
                Self::of_package(path.display().to_string(), vec![path], watch)
            }
            GivenSource::Folder(path) => {
                let path = real(path)?;
                Ok(Self {
                    origin: path.display().to_string(),
                    hash: hash_of(&path, watch)?,
                    place: Place::Folder(path),
                })
            }
            GivenSource::Commit {
                repository,
                revision,
            } => {
                let repository = real(repository)?;
                let commit = commit_of(&repository, revision)?;
                let tree = tree_of(&repository, &commit)?;
                Ok(Self {
                    origin: format!("{} at {commit}", repository.display()),
                    hash: format!("git:{tree}"),
                    place: Place::Commit { repository, commit },
                })
            }
        }
    }

    /// Whether a workshop goes on with the next commit's files where it ended with the last one's.
    pub fn is_incremental(&self) -> bool {
        matches!(self.place, Place::Commit { .. })
    }

    /// What all sources that may share a workshop have in common.
    pub fn family(&self) -> &str {
        match &self.place {
            Place::Commit { repository, .. } => repository.to_str().unwrap_or_default(),
            _ => &self.hash,
        }
    }

    /// The workshop of a build of this name: commits of one checkout share one.
    pub fn workshop(&self, name: &str, engine: EngineName, flags: &str) -> String {
        match &self.place {
            Place::Commit { repository, .. } => {
                let path = repository.as_os_str().as_bytes();
                let sum = hexadecimal(Sha256::new_with_prefix(path));
                format!("{engine}-git-{}-{flags}", &sum[..12])
            }
            _ => name.to_owned(),
        }
    }

    /// Checks what was put into `folder`: `make` would take what is compiled already, whatever its
    /// flags, and files that changed since they were read are another source.
    pub fn check_put(&self, folder: &Path, watch: &Watch<'_>) -> Result<(), BuildError> {
        if self.is_incremental() {
            return Ok(());
        }
        let objects = count_objects(folder);
        if objects > 0 {
            return Err(BuildError::Usage(format!(
                "{} is compiled already, with {objects} object files; give a source without \
                them: run `make distclean` there, or give CHECKOUT@REVISION",
                self.origin
            )));
        }
        if let Place::Folder(from) = &self.place
            && hash_of(folder, watch)? != self.hash
        {
            return Err(BuildError::Unfit(format!(
                "{} changed while it was copied; try again when nobody writes there",
                from.display()
            )));
        }
        Ok(())
    }

    /// Removes what an earlier try put into `folder`.
    pub fn take_out(&self, folder: &Path) -> Result<(), BuildError> {
        remove(&git_folder(folder))?;
        remove(folder)
    }

    /// Puts the files into `folder`, which may hold an earlier commit's.
    pub fn put(&self, folder: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        make(folder)?;
        match &self.place {
            Place::Tarballs(tarballs) => tarballs
                .iter()
                .try_for_each(|tarball| put_file(tarball, folder, watch)),
            Place::Folder(from) => {
                let mut command = child_command("cp");
                command.args(["--archive", "--no-preserve=ownership", "--"]);
                for entry in fs::read_dir(from).map_err(BuildError::io("read", from))? {
                    let entry = entry.map_err(BuildError::io("read", from))?;
                    if entry.file_name() != ".git" {
                        command.arg(entry.path());
                    }
                }
                command.arg(folder);
                put_by(command, "coreutils", folder, watch)
            }
            Place::Commit { repository, commit } => put_commit(repository, commit, folder, watch),
        }
    }
}

/// What an archive holds, without its top folder; or the file itself, if it is one of C.
fn put_file(file: &Path, folder: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
    if file.extension().is_some_and(|ending| ending == "c") {
        let to = folder.join(file.file_name().unwrap_or_default());
        return fs::copy(file, &to)
            .map(drop)
            .map_err(BuildError::io("copy", file));
    }
    let mut command = child_command("tar");
    command
        .args([
            "--extract",
            "--strip-components=1",
            "--no-same-owner",
            "--file",
        ])
        .arg(file)
        .arg("--directory")
        .arg(folder);
    put_by(command, "tar, bzip2 and xz-utils", folder, watch)
}

/// A commit's files. What git keeps is beside them: the commands of a build may write in `folder`,
/// and git runs what its settings say.
fn put_commit(
    repository: &Path,
    commit: &str,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<(), BuildError> {
    let kept = git_folder(folder);
    // A shallow checkout is copied, and the copy has no later commits.
    if kept.exists() && !is_so(&kept, &["cat-file", "-e", commit])? {
        remove(&kept)?;
    }
    if !kept.exists() {
        let mut clone = git(folder);
        clone
            .args(["clone", "--quiet", "--shared", "--bare"])
            .args([repository, &kept]);
        put_by(clone, "git", folder, watch)?;
    }
    // Of a git that was killed: nobody else is here.
    for lock in ["index.lock", "HEAD.lock"].map(|name| kept.join(name)) {
        match fs::remove_file(&lock) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(BuildError::io("remove", &lock)(error));
            }
            _ => {}
        }
    }
    let mut checkout = git(folder);
    // Files that were handed to another user are the same files: only what the commit changes is
    // written, so that nothing else is compiled again.
    checkout
        .args([
            "-c",
            "core.checkStat=minimal",
            "-c",
            "core.trustctime=false",
            "-c",
            "core.bare=false",
        ])
        .arg("--git-dir")
        .arg(&kept)
        .arg("--work-tree")
        .arg(folder)
        .args(["checkout", "--quiet", "--force", "--detach", commit]);
    put_by(checkout, "git", folder, watch)
}

/// Where git keeps what it knows of the files in `folder`.
fn git_folder(folder: &Path) -> PathBuf {
    folder.with_file_name("git")
}

fn put_by(
    command: Command,
    needs: &str,
    folder: &Path,
    watch: &mut Watch<'_>,
) -> Result<(), BuildError> {
    let client = Client {
        command,
        needs,
        grows: folder,
        log: folder.with_extension("put.log"),
    };
    client.run(watch)?.map_err(|refusal| {
        BuildError::Unfit(format!(
            "failed to put the source into {}: {}; check the source",
            folder.display(),
            refusal.summary
        ))
    })
}

/// The hash of a folder's files.
fn hash_of(folder: &Path, watch: &Watch<'_>) -> Result<String, BuildError> {
    let mut hash = Sha256::new();
    hash_folder(folder, Path::new(""), &mut hash, watch)?;
    Ok(format!("sha256:{}", hexadecimal(hash)))
}

/// Paths, whether they are programs, and contents, in the order of the paths; without `.git`. Asks
/// before each of them whether to go on, and while it reads a large one: a checkout has tens of
/// thousands.
fn hash_folder(
    root: &Path,
    below: &Path,
    hash: &mut Sha256,
    watch: &Watch<'_>,
) -> Result<(), BuildError> {
    let dir = root.join(below);
    let entries = fs::read_dir(&dir).map_err(BuildError::io("read", &dir))?;
    let mut names = entries
        .map(|entry| Ok(entry?.file_name()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(BuildError::io("read", &dir))?;
    names.sort();
    for name in names.iter().filter(|name| *name != ".git") {
        watch.check_cancelled()?;
        let (path, below) = (dir.join(name), below.join(name));
        let metadata = path
            .symlink_metadata()
            .map_err(BuildError::io("read", &path))?;
        let begin = |hash: &mut Sha256, kind: &str, length: u64| {
            for part in [kind.as_bytes(), below.as_os_str().as_bytes()] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
            hash.update(length.to_le_bytes());
        };
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(BuildError::io("read", &path))?;
            let target = target.as_os_str().as_bytes();
            begin(hash, "link", target.len() as u64);
            hash.update(target);
        } else if metadata.is_dir() {
            hash_folder(root, &below, hash, watch)?;
        } else if metadata.is_file() {
            let is_program = metadata.permissions().mode() & 0o100 != 0;
            let kind = if is_program { "program" } else { "file" };
            begin(hash, kind, metadata.len());
            feed(&path, hash, &|| watch.check_cancelled())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Instant;

    use super::*;
    use crate::builds::progress::Stage;

    fn watched<T>(is_cancelled: &dyn Fn() -> bool, run: impl FnOnce(&Watch<'_>) -> T) -> T {
        run(&Watch {
            progress: &mut |_| {},
            is_cancelled,
            name: "postgres+mine".into(),
            stage: Stage::Checking,
            started: Instant::now(),
        })
    }

    #[test]
    fn a_folder_is_no_longer_read_once_the_user_asks_to_stop() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        for folder in [&from, &to] {
            fs::create_dir_all(folder.join("src")).unwrap();
            for file in 0..9 {
                fs::write(folder.join("src").join(format!("{file}.c")), "int x;").unwrap();
            }
        }
        let given = GivenSource::Folder(from);
        let asked = Cell::new(0);
        let at_the_third = || {
            asked.set(asked.get() + 1);
            asked.get() >= 3
        };
        let stopped = watched(&at_the_third, |watch| Source::of_given(&given, watch));
        assert!(
            matches!(stopped, Err(BuildError::Cancelled { .. })),
            "{stopped:?}"
        );
        assert_eq!(asked.get(), 3);

        let source = watched(&|| false, |watch| Source::of_given(&given, watch)).unwrap();
        watched(&|| false, |watch| source.check_put(&to, watch)).unwrap();
        asked.set(0);
        let stopped = watched(&at_the_third, |watch| source.check_put(&to, watch));
        assert!(
            matches!(stopped, Err(BuildError::Cancelled { .. })),
            "{stopped:?}"
        );
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn a_large_file_is_no_longer_read_once_the_user_asks_to_stop() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, tarball) = (dir.path().join("pg"), dir.path().join("pg.tar"));
        fs::create_dir(&folder).unwrap();
        for file in [&folder.join("one.c"), &tarball] {
            fs::write(file, vec![b'x'; 5 << 20]).unwrap();
        }
        let asked = Cell::new(0);
        let at_the_third = || {
            asked.set(asked.get() + 1);
            asked.get() >= 3
        };
        for given in [GivenSource::Folder(folder), GivenSource::Tarball(tarball)] {
            asked.set(0);
            let stopped = watched(&at_the_third, |watch| Source::of_given(&given, watch));
            assert!(
                matches!(stopped, Err(BuildError::Cancelled { .. })),
                "{stopped:?}"
            );
            assert_eq!(asked.get(), 3, "{given:?}");
        }
    }

    #[test]
    fn a_folders_hash_is_what_it_was() {
        // Another sum would make all builds again.
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.c"), "int x;").unwrap();
        std::os::unix::fs::symlink("a.c", dir.path().join("b.c")).unwrap();
        let given = GivenSource::Folder(dir.path().to_owned());
        let source = watched(&|| false, |watch| Source::of_given(&given, watch)).unwrap();
        let mut wanted = Sha256::new();
        for part in ["file", "a.c", "int x;", "link", "b.c", "a.c"] {
            wanted.update((part.len() as u64).to_le_bytes());
            wanted.update(part);
        }
        assert_eq!(source.hash, format!("sha256:{}", hexadecimal(wanted)));
    }

    #[test]
    fn sources_are_recognised_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, tarball) = (dir.path().join("pg-17"), dir.path().join("x-1.2.tar.xz"));
        fs::create_dir_all(folder.join(".git")).unwrap();
        fs::write(&tarball, "").unwrap();
        let parse = |path: &Path, rest: &str| {
            GivenSource::parse(&format!("{}{rest}", path.display())).map_err(|e| e.to_string())
        };
        assert_eq!(parse(&folder, "").unwrap().word(), "pg_17");
        assert_eq!(parse(&tarball, "").unwrap().word(), "x_1_2");
        assert_eq!(parse(&folder, "@REL_17_2").unwrap().word(), "REL_17_2");
        for (path, rest, wanted) in [
            (&folder, "x", "there is no source"),
            (&folder, "@", "is not a revision"),
            (&folder, "@--help", "is not a revision"),
            (&tarball, "@v1", "is not a git checkout"),
        ] {
            let error = parse(path, rest).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn a_folders_hash_is_that_of_names_rights_and_contents_but_not_of_git() {
        let dir = tempfile::tempdir().unwrap();
        let (a, git) = (dir.path().join("a.c"), dir.path().join(".git"));
        fs::write(&a, "int x;").unwrap();
        let given = GivenSource::Folder(dir.path().to_owned());
        let hash = || {
            watched(&|| false, |watch| {
                Source::of_given(&given, watch).unwrap().hash
            })
        };
        let before = hash();
        fs::create_dir(&git).unwrap();
        fs::write(git.join("HEAD"), "ref").unwrap();
        assert_eq!(hash(), before);
        fs::set_permissions(&a, fs::Permissions::from_mode(0o755)).unwrap();
        let program = hash();
        fs::rename(&a, dir.path().join("b.c")).unwrap();
        let renamed = hash();
        fs::write(dir.path().join("b.c"), "int y;").unwrap();
        let hashes = [before, program, renamed, hash()];
        for (index, one) in hashes.iter().enumerate() {
            assert!(!hashes[index + 1..].contains(one), "{index}");
        }
    }
}
