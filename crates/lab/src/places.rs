//! Where data directories are, and the mark that says a folder is ours.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_core::planted::{self, Bug};
use plimsoll_engine::postgres::release_shared_memory;
use plimsoll_engine::process::{ProcessIdentity, end_below, working_below};
use rustix::process::geteuid;

use crate::error::LabError;
use crate::leftovers::refuse_busy;

/// The file that marks a data folder as ours.
const MARKER: &str = ".plimsoll-data";
const MARKER_TEXT: &str = "This folder belongs to Plimsoll. It makes and removes data directories \
                          here; do not keep anything of your own in it.\n";

/// root's home keeps everybody else out, and PostgreSQL's servers do not run as root: its caches
/// are where the system's are.
const ROOT_CACHE: &str = "/var/cache";

/// A campaign that has just ended, or one that could not begin, holds a data folder for an instant;
/// this outlasts it.
const TURN_PATIENCE: Duration = Duration::from_secs(1);
/// Processes of a server that was killed have this long to be gone.
const REMOVE_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// The data folder when none is given: `plimsoll/data` in the cache folder.
pub fn default_data_dir() -> Result<PathBuf, LabError> {
    cache_dir("data").ok_or_else(|| {
        LabError::Usage(
            "neither XDG_CACHE_HOME nor HOME is set: say where data directories go with --data DIR"
                .into(),
        )
    })
}

/// The variable that names a folder in place of `plimsoll` in the cache folder, for builds.
const CACHE_VARIABLE: &str = "PLIMSOLL_CACHE";

/// The folder of builds when none is given: `builds` in what `PLIMSOLL_CACHE` names, else
/// `plimsoll/builds` in the cache folder.
pub fn default_cache_dir() -> Result<PathBuf, LabError> {
    if let Some(cache) = std::env::var_os(CACHE_VARIABLE).filter(|cache| !cache.is_empty()) {
        let cache = PathBuf::from(cache);
        return match cache.is_absolute() {
            true => Ok(cache.join("builds")),
            false => Err(LabError::Usage(format!(
                "{CACHE_VARIABLE} is {}: it must be an absolute path, or use --cache DIR",
                cache.display()
            ))),
        };
    }
    cache_dir("builds").ok_or_else(|| {
        LabError::Usage(
            "neither XDG_CACHE_HOME nor HOME is set: say where builds go with --cache DIR".into(),
        )
    })
}

fn cache_dir(name: &str) -> Option<PathBuf> {
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    Some(
        cache_home(xdg, geteuid().is_root(), std::env::home_dir())?
            .join("plimsoll")
            .join(name),
    )
}

/// Where caches are: as the user says, else at the system's place for root and below the home of
/// everybody else. Paths that are not absolute do not count, as the XDG base directory
/// specification wants it.
fn cache_home(xdg: Option<PathBuf>, is_root: bool, home: Option<PathBuf>) -> Option<PathBuf> {
    let is_usable = |path: &PathBuf| path.is_absolute();
    let default = || {
        if is_root {
            Some(PathBuf::from(ROOT_CACHE))
        } else {
            home.filter(is_usable).map(|home| home.join(".cache"))
        }
    };
    xdg.filter(is_usable).or_else(default)
}

/// Makes a folder ours, or refuses one that holds somebody else's files.
pub fn prepare_data_root(dir: &Path) -> Result<PathBuf, LabError> {
    check_data_root(dir)?;
    fs::create_dir_all(dir).map_err(|error| {
        LabError::Usage(format!(
            "the data folder {} cannot be made: {error}; choose another with --data DIR",
            dir.display()
        ))
    })?;
    let marker = dir.join(MARKER);
    if !marker.exists() {
        fs::write(&marker, MARKER_TEXT).map_err(|error| {
            LabError::Usage(format!(
                "the data folder {} cannot be written: {error}; choose another with --data DIR",
                dir.display()
            ))
        })?;
    }
    dir.canonicalize()
        .map_err(|error| LabError::io(dir.display(), error))
}

/// Before the pid of the process that has a folder, in a line of its own below the text.
const HELD_BY: &str = "Process: ";

/// The right to use a data folder, for one campaign; given back when dropped, or when the process
/// ends.
#[derive(Debug)]
pub struct DataTurn {
    _lock: File,
}

/// Takes a data folder for one campaign: two at a time on one machine would measure each other. So
/// whatever of another campaign is still there, processes and data, was left behind, and is ended
/// and removed: no campaign goes on with data of an earlier run.
pub(crate) fn take_data_root(dir: &Path) -> Result<DataTurn, LabError> {
    let dir = &prepare_data_root(dir)?;
    let turn = lock_data_root(dir)?;
    check_own_processes()?;
    refuse_busy(dir, &end_below(dir))?;
    remove_campaigns_data(dir)?;
    Ok(turn)
}

/// If `/proc` is another namespace's, its numbers mean other processes to us than to it.
fn check_own_processes() -> Result<(), LabError> {
    match ProcessIdentity::of(std::process::id()) {
        Some(_) => Ok(()),
        None => Err(LabError::Machine(
            "/proc does not show this process: it belongs to another process namespace, and what \
             was left behind cannot be found; mount one for this namespace, as \
             `unshare --mount-proc` does"
                .into(),
        )),
    }
}

/// Takes a data folder once its disk is found large enough. One that is there is taken before: then
/// what an earlier campaign left in it is gone, and its room is free. One that is not is only made
/// after.
pub(crate) fn take_data_root_once(
    dir: &Path,
    is_large_enough: impl FnOnce() -> Result<(), LabError>,
) -> Result<DataTurn, LabError> {
    let turn = dir
        .join(MARKER)
        .is_file()
        .then(|| take_data_root(dir))
        .transpose()?;
    is_large_enough()?;
    turn.map_or_else(|| take_data_root(dir), Ok)
}

/// Removes data directories of campaigns: folders with the names of Plimsoll campaigns.
fn remove_campaigns_data(dir: &Path) -> Result<(), LabError> {
    let unreadable = |error| LabError::io(dir.display(), error);
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // Of a link the type is that of the link.
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if planted::is(Bug::DataLeft) {
            continue;
        }
        if is_folder && entry.file_name().to_str().is_some_and(is_stamped) {
            refuse_busy(&entry.path(), &working_below(&entry.path()))?;
            remove_data_dir(&entry.path())?;
        }
    }
    Ok(())
}

/// `20261123T051426Z-name`, as ids of campaigns begin.
fn is_stamped(name: &str) -> bool {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    name.split_once('-')
        .is_some_and(|(stamp, _)| stamp.chars().map(shape).eq("00000000T000000Z".chars()))
}

fn lock_data_root(dir: &Path) -> Result<DataTurn, LabError> {
    let marker = dir.join(MARKER);
    // NFS gives a lock for oneself only to whoever may write.
    let file = File::options()
        .read(true)
        .write(true)
        .open(&marker)
        .or_else(|_| File::open(&marker))
        .map_err(|error| LabError::io(marker.display(), error))?;
    let deadline = Instant::now() + TURN_PATIENCE;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if planted::is(Bug::DataNotLocked) => {
                return Ok(DataTurn { _lock: file });
            }
            Ok(()) => {
                // The pid is for the message of a process that finds the folder taken: a marker
                // that cannot be written is as good a lock.
                let _ = fs::write(
                    &marker,
                    format!("{MARKER_TEXT}{HELD_BY}{}\n", std::process::id()),
                );
                return Ok(DataTurn { _lock: file });
            }
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => std::thread::sleep(POLL),
            Err(TryLockError::WouldBlock) => {
                let text = fs::read_to_string(&marker).unwrap_or_default();
                let pid = text
                    .lines()
                    .find_map(|line| line.strip_prefix(HELD_BY))
                    .map(|pid| format!(" (process {pid})"));
                return Err(LabError::Machine(format!(
                    "another campaign is running with its data in {}{}; two at a time would \
                    disturb each other: wait until it is done, or give this one another folder \
                    with --data DIR where that does not matter",
                    dir.display(),
                    pid.unwrap_or_default()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(LabError::io(marker.display(), error)),
        }
    }
}

/// Refuses a folder that holds somebody else's files; changes nothing.
pub(crate) fn check_data_root(dir: &Path) -> Result<(), LabError> {
    let foreign = |problem: &str| {
        LabError::Usage(format!(
            "the data folder {} {problem}; choose an empty or new folder with --data DIR",
            dir.display()
        ))
    };
    if let Ok(about) = fs::metadata(dir)
        && geteuid().is_root()
        && let Some(problem) = others_may_write(about.uid(), about.mode())
    {
        return Err(foreign(&problem));
    }
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(is_empty) if is_empty || dir.join(MARKER).is_file() => Ok(()),
        Ok(_) => Err(foreign(
            "is not empty and is not ours (no .plimsoll-data in it)",
        )),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(foreign(&format!("cannot be read: {error}"))),
    }
}

/// Why root must not work in a folder of this owner and mode: whoever may write to it can put links
/// where root writes and removes.
fn others_may_write(owner: u32, mode: u32) -> Option<String> {
    if owner != 0 {
        return Some(format!("belongs to user {owner}, and you are root"));
    }
    let is_open = mode & 0o022 != 0;
    is_open.then(|| {
        format!(
            "may be written by others (mode {:o}), and you are root",
            mode & 0o7777
        )
    })
}

/// Removes a data directory below one of our data folders. A killed server's processes may still
/// write into it for a moment.
pub(crate) fn remove_data_dir(dir: &Path) -> Result<(), LabError> {
    release_shared_memory(dir);
    let deadline = Instant::now() + REMOVE_PATIENCE;
    loop {
        match fs::remove_dir_all(dir) {
            Err(error)
                if error.kind() == std::io::ErrorKind::DirectoryNotEmpty
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(POLL)
            }
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(LabError::io(
                    format!("failed to remove {}", dir.display()),
                    error,
                ));
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_folder_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "precious").unwrap();
        let error = prepare_data_root(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty and is not ours"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn root_works_where_nobody_else_may_write() {
        for (owner, mode, problem) in [
            (0, 0o40755, None),
            (0, 0o40700, None),
            (1000, 0o40755, Some("belongs to user 1000")),
            (0, 0o41777, Some("may be written by others (mode 1777)")),
            (0, 0o40775, Some("may be written by others (mode 775)")),
        ] {
            let found = others_may_write(owner, mode);
            assert_eq!(
                found
                    .as_deref()
                    .map(|found| problem.is_some_and(|of| found.starts_with(of))),
                problem.map(|_| true),
                "{owner} {mode:o} {found:?}"
            );
        }
    }

    #[test]
    fn caches_are_where_the_user_says_or_where_servers_may_go() {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        for (xdg, is_root, home, wanted) in [
            ("", false, "/home/ada", "/home/ada/.cache"),
            ("", true, "/root", "/var/cache"),
            ("", true, "", "/var/cache"),
            ("/fast", false, "/home/ada", "/fast"),
            ("/fast", true, "/root", "/fast"),
            ("fast", false, "/home/ada", "/home/ada/.cache"),
            ("", false, "", ""),
            ("", false, "ada", ""),
        ] {
            assert_eq!(
                cache_home(path(xdg), is_root, path(home)),
                path(wanted),
                "{xdg} {is_root} {home}"
            );
        }
        assert!(default_data_dir().unwrap().ends_with("plimsoll/data"));
        assert_eq!(
            default_cache_dir().unwrap(),
            default_data_dir().unwrap().with_file_name("builds")
        );
    }

    #[test]
    fn a_folder_is_used_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let turn = take_data_root(&data).unwrap();
        let error = take_data_root(&data).unwrap_err().to_string();
        let place = format!(
            "another campaign is running with its data in {} (process {});",
            data.display(),
            std::process::id()
        );
        assert!(
            error.starts_with(&place) && error.contains("--data DIR"),
            "{error}"
        );
        // Whoever holds it for an instant only is waited for.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| take_data_root(&data).map(drop));
            std::thread::sleep(POLL);
            drop(turn);
            waiting.join().unwrap().unwrap();
        });
    }

    /// It would be measured beside, and its data removed below it.
    #[test]
    fn what_runs_on_in_a_folder_is_named_and_its_data_left_alone() {
        use std::os::unix::process::CommandExt;

        use plimsoll_engine::process::IDENTITY_FILE;
        use plimsoll_store::layout::SERVER_FOLDER;
        use plimsoll_testkit::{CapabilitySet, without_capabilities};

        use crate::leftovers::end_servers;

        let test = "lab::what_runs_on_in_a_folder_is_named_and_its_data_left_alone";
        if !geteuid().is_root() {
            return plimsoll_testkit::skip(test, "only root starts what runs as another user");
        }
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        drop(take_data_root(&data).unwrap());
        let trial = data.join("20261123T051426Z-t/1-a1");
        fs::create_dir_all(&trial).unwrap();
        let mut other = std::process::Command::new("sleep")
            .arg("60")
            .uid(65534)
            .env(plimsoll_engine::process::MARK, &trial)
            .spawn()
            .unwrap();
        // `resume` knows it by a file of the campaign's, too.
        let server = dir.path().join("trials/1-a1").join(SERVER_FOLDER);
        fs::create_dir_all(&server).unwrap();
        let identity = serde_json::to_string(&ProcessIdentity::of(other.id())).unwrap();
        fs::write(server.join(IDENTITY_FILE), identity).unwrap();
        let (refused, left) = without_capabilities(CapabilitySet::KILL, || {
            let refused = take_data_root(&data).unwrap_err().to_string();
            (refused, end_servers(&dir.path().join("trials"), &data))
        });
        assert_eq!(left, [other.id()]);
        assert!(
            refused.contains(&format!("in use: process {} works in ", other.id())),
            "{refused}"
        );
        assert!(trial.is_dir());
        drop(take_data_root(&data).unwrap());
        assert!(!trial.exists() && other.try_wait().unwrap().is_some());
    }

    /// NFS locks for oneself only what may be written.
    #[test]
    fn the_lock_is_one_that_nfs_gives() {
        use rustix::fs::{OFlags, fcntl_getfl};

        let dir = tempfile::tempdir().unwrap();
        let turn = take_data_root(&dir.path().join("data")).unwrap();
        assert!(fcntl_getfl(&turn._lock).unwrap().contains(OFlags::RDWR));
    }

    /// With an environment of its own, and no mark in it: nothing proves it ours.
    #[test]
    fn data_of_a_server_that_nobody_knows_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        drop(take_data_root(&data).unwrap());
        let work = data.join("20261123T051426Z-t/1-a1/pgdata");
        fs::create_dir_all(&work).unwrap();
        let program = dir.path().join("postgres");
        let copied = std::process::Command::new("cp")
            .arg("/bin/sleep")
            .arg(&program)
            .status();
        assert!(copied.unwrap().success());
        let mut server = std::process::Command::new(&program)
            .arg("60")
            .env("LANG", "C")
            .current_dir(&work)
            .spawn()
            .unwrap();
        let refused = take_data_root(&data).unwrap_err().to_string();
        let is_there = server.try_wait().unwrap().is_none();
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(is_there && work.is_dir());
        let named = format!("in use: process {} works in ", server.id());
        assert!(refused.contains(&named), "{refused}");
        drop(take_data_root(&data).unwrap());
        assert!(!work.exists());
    }

    #[test]
    fn what_earlier_campaigns_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        drop(take_data_root(&data).unwrap());
        for folder in [
            "20261123T051426Z-t-confirm/1-a1/pgdata",
            "20261123T051426Z-quick-2/s0-1",
            "photos",
            "20261123-x",
            "20261123T05142Z-x",
        ] {
            fs::create_dir_all(data.join(folder)).unwrap();
        }
        fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(
            dir.path().join("elsewhere"),
            data.join("20261123T051426Z-link"),
        )
        .unwrap();
        let turn = take_data_root(&data).unwrap();
        let mut left: Vec<_> = fs::read_dir(&data)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                ".plimsoll-data",
                "20261123-x",
                "20261123T051426Z-link",
                "20261123T05142Z-x",
                "photos"
            ]
        );

        // As long as a campaign has its turn, its data is its own.
        fs::create_dir_all(data.join("20261123T051426Z-t/1-a1")).unwrap();
        take_data_root(&data).unwrap_err();
        assert!(data.join("20261123T051426Z-t/1-a1").is_dir());
        drop(turn);
    }

    #[test]
    fn an_empty_or_new_folder_becomes_ours_and_stays_it() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        prepare_data_root(&new).unwrap();
        fs::write(new.join("x"), "").unwrap();
        prepare_data_root(&new).unwrap();
    }
}
