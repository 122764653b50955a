//! What an earlier run left running, found by what nobody but us gives to a process.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::ProcessIdentity;
use super::identity::{Stat, end_all};
use crate::build::is_server_or_link;

/// The environment variable of a trial's processes, servers and all: the trial's data directory,
/// absolute and free of symbolic links.
pub const MARK: &str = "PLIMSOLL_TRIAL";

/// PostgreSQL's sessions write their title over their environment.
const TITLED: &str = "postgres";
/// No mark is longer, and no command line of a server.
const MOST_BYTES: u64 = 4 << 20;

/// Ends every process of the trials of `dir`, and all that these have started: it is a data folder,
/// a campaign's data in one, or a trial's. Waits for their end, within reason, and returns whether
/// none runs any more. Only for whoever knows that no trial there is wanted: the holder of the data
/// folder's lock, or a trial's own parent.
///
/// They are known by [`MARK`]; this process and those that have started it are never meant. A
/// PostgreSQL's session whose server is gone has lost it, and is known by its program and its
/// working directory. A process that has another root, in a container or a chroot, is meant where
/// the folder is the same one, and not where it has the same path.
pub fn end_below(dir: &Path) -> bool {
    end_all(|stat| {
        let is_ours =
            mark(stat.pid).is_some_and(|mark| is_trial_of(&mark, dir)) || is_session(stat.pid, dir);
        is_ours && has_same(dir, stat.pid) == Some(true)
    })
}

/// Whether a path means the same file to a process as to this one, which may have other roots or
/// other mounts. Of a path that is not there it is asked of what is there of it. `None` where the
/// process may not be looked at, as root in a container may not look at another user's.
fn has_same(path: &Path, pid: u32) -> Option<bool> {
    let number = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino()));
    let found = path
        .ancestors()
        .find_map(|above| Some((above, number(above).ok()?)));
    let Some((above, here)) = found else {
        return Some(false);
    };
    let below_its_root = above.strip_prefix("/").unwrap_or(above);
    match number(&Path::new(&format!("/proc/{pid}/root")).join(below_its_root)) {
        Ok(there) => Some(there == here),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
        Err(_) => Some(false),
    }
}

/// Whether a trial's data is in `dir`: `dir/CAMPAIGN/TRIAL`, and no deeper, where another data
/// folder may be.
fn is_trial_of(data: &Path, dir: &Path) -> bool {
    data.ancestors().take(3).any(|above| above == dir)
}

impl ProcessIdentity {
    /// Ends this process and what it has started, where it works below `dir`: with a mark, a
    /// working directory or an argument there. What a file says that somebody else may have written
    /// proves nothing by itself. Of a process that may not be looked at the argument is enough: its
    /// number and start are those of the file.
    pub fn end_if_below(&self, dir: &Path) -> bool {
        let is_ours = |stat: &Stat| {
            let works_there = || {
                let pid = stat.pid;
                let has_mark = mark(pid).is_some_and(|mark| mark.starts_with(dir));
                has_mark
                    || working_dir(pid).is_some_and(|at| at.starts_with(dir))
                    || has_argument(pid, dir)
            };
            self.is(stat)
                && self.is_there()
                && works_there()
                && has_same(dir, stat.pid) != Some(false)
        };
        end_all(is_ours)
    }
}

fn read(pid: u32, file: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(format!("/proc/{pid}/{file}"))
        .ok()?
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(bytes)
}

fn mark(pid: u32) -> Option<PathBuf> {
    let environment = read(pid, "environ")?;
    let mark = environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(Path::new(std::ffi::OsStr::from_bytes(mark)).to_owned())
}

fn working_dir(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

fn is_session(pid: u32, dir: &Path) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    let name = program
        .as_ref()
        .and_then(|program| program.file_name()?.to_str());
    // A program that was replaced meanwhile is called `postgres (deleted)`.
    let name = name.and_then(|name| name.split(' ').next());
    let is_server = name.is_some_and(|name| is_server_or_link(name, TITLED));
    // It works in `TRIAL/pgdata`.
    is_server
        && working_dir(pid).is_some_and(|at| at.parent().is_some_and(|data| is_trial_of(data, dir)))
}

/// `-D DIR/...`, `--datadir=DIR/...`.
fn has_argument(pid: u32, dir: &Path) -> bool {
    let line = read(pid, "cmdline").unwrap_or_default();
    line.split(|&byte| byte == 0).any(|argument| {
        let value = argument
            .iter()
            .position(|&byte| byte == b'=')
            .map_or(argument, |at| &argument[at + 1..]);
        Path::new(std::ffi::OsStr::from_bytes(value)).starts_with(dir)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

    use super::*;

    /// A script that says `up` when it is.
    fn start(script: &str, change: impl Fn(&mut Command)) -> Child {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("echo up; {script}")])
            .stdout(Stdio::piped())
            .process_group(0);
        change(&mut command);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "up\n");
        child
    }

    #[test]
    fn what_is_marked_is_ended_with_all_it_has_started_and_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("campaign/1-a1");
        let mut ours = start("setsid env -i /bin/sleep 60 & wait", |command| {
            command.env(MARK, &data);
        });
        // Beside it, with the folder's name as a beginning, in a data folder of its own within this
        // one, somewhere else, and with nothing but its working directory there.
        let elsewhere = [
            Some(root.join("campaign/1-a10")),
            Some(root.join("own/campaign/1-a1")),
            Some("/somewhere/campaign/1-a1".into()),
            None,
        ];
        let mut others = elsewhere.map(|mark| {
            start("exec sleep 60", |command| {
                command
                    .current_dir(&root)
                    .envs(mark.iter().map(|mark| (MARK, mark)));
            })
        });
        assert!(end_below(&data));
        assert!(!ProcessIdentity::of(ours.id()).unwrap().is_running());
        ours.wait().unwrap();
        for other in &mut others {
            assert_eq!(other.try_wait().unwrap(), None);
        }
        assert!(end_below(&root));
        assert!(
            others[0].try_wait().unwrap().is_some(),
            "it is below the folder"
        );
        for other in &mut others[1..] {
            assert_eq!(other.try_wait().unwrap(), None);
            other.kill().unwrap();
            other.wait().unwrap();
        }
    }

    /// Between its turns a server is stopped.
    #[test]
    fn what_is_stopped_is_ended_too() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().canonicalize().unwrap().join("campaign/1-a1");
        let mut stopped = start("kill -STOP $$; sleep 60", |command| {
            command.env(MARK, &data);
        });
        let deadline = Instant::now() + Duration::from_secs(10);
        let state = || fs::read_to_string(format!("/proc/{}/stat", stopped.id())).unwrap();
        while !state().contains(") T ") && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(end_below(&data));
        let has_ended = state().contains(") Z ");
        stopped.kill().unwrap();
        stopped.wait().unwrap();
        assert!(has_ended, "it is still there");
    }

    #[test]
    fn an_identity_that_a_file_names_must_work_below_the_data() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("campaign");
        fs::create_dir(&data).unwrap();
        let mut stranger = start("exec sleep 60", |_| ());
        let identity = ProcessIdentity::of(stranger.id()).unwrap();
        assert!(identity.end_if_below(&data));
        assert_eq!(stranger.try_wait().unwrap(), None, "a stranger was killed");

        let in_argument = format!("--datadir={}/1-a1", data.display());
        let mut with_argument = start("read line", |command| {
            command.stdin(Stdio::piped()).args(["server", &in_argument]);
        });
        let mut in_folder = start("exec sleep 60", |command| {
            command.current_dir(&data);
        });
        for child in [&mut with_argument, &mut in_folder] {
            let identity = ProcessIdentity::of(child.id()).unwrap();
            let other = ProcessIdentity {
                start_ticks: identity.start_ticks - 1,
                ..identity.clone()
            };
            assert!(other.end_if_below(&data) && identity.is_running());
            assert!(identity.end_if_below(&root.join("other")) && identity.is_running());
            // The group of the file is not believed.
            let forged = ProcessIdentity {
                group: ProcessIdentity::of(stranger.id()).unwrap().group,
                ..identity.clone()
            };
            assert!(forged.end_if_below(&data) && !identity.is_running());
            child.wait().unwrap();
        }
        assert_eq!(stranger.try_wait().unwrap(), None, "a stranger was killed");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    /// A campaign in a chroot took its data folder, which had the path of a folder outside, and
    /// killed the trial that had its data there.
    #[test]
    fn the_same_path_in_another_root_is_another_folder() {
        let test = "engine::the_same_path_in_another_root_is_another_folder";
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("campaign/1-a1");
        fs::create_dir_all(&data).unwrap();
        let apart = |mounts: &str| {
            let script = format!(
                "{mounts} && echo up && cd {} && exec sleep 60",
                data.display()
            );
            let mut child = Command::new("unshare")
                .args(["--map-root-user", "--mount", "sh", "-c", &script])
                .env(MARK, &data)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let output = child.stdout.take().unwrap();
            BufReader::new(output).read_line(&mut line).unwrap();
            (child, line == "up\n")
        };
        let hidden = format!(
            "mount -t tmpfs none {} && mkdir -p {}",
            root.display(),
            data.display()
        );
        let (mut other, can) = apart(&hidden);
        if !can {
            other.wait().unwrap();
            return plimsoll_testkit::skip(test, "nothing may be mounted here");
        }
        let (mut same, _) = apart("true");
        let other_identity = ProcessIdentity::of(other.id()).unwrap();
        for folder in [&data, &root.join("campaign"), &root] {
            assert!(end_below(folder) && other_identity.end_if_below(folder));
        }
        assert_eq!(other.try_wait().unwrap(), None, "a stranger was killed");
        assert!(same.try_wait().unwrap().is_some(), "it has the same folder");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// Root in a container may not look at what runs as another user: it has not every capability.
    #[test]
    fn a_server_that_may_not_be_looked_at_is_known_by_its_argument() {
        let test = "engine::a_server_that_may_not_be_looked_at_is_known_by_its_argument";
        if !rustix::process::geteuid().is_root() {
            return plimsoll_testkit::skip(test, "only root starts what runs as another user");
        }
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let in_argument = format!("--datadir={}/campaign/1-a1", root.display());
        let as_nobody = |argument: &str| {
            start("read line", |command| {
                command
                    .uid(65534)
                    .stdin(Stdio::piped())
                    .args(["server", argument])
                    .env(MARK, root.join("campaign/1-a1"));
            })
        };
        let mut server = as_nobody(&in_argument);
        let mut stranger = as_nobody("");
        // Capabilities are a thread's own.
        let without_looking = || {
            let mut mine = capabilities(None).unwrap();
            // The last two read environments, as profilers do.
            let looking =
                CapabilitySet::SYS_PTRACE | CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
            mine.effective.remove(looking);
            set_capabilities(None, mine).unwrap();
            for child in [&server, &stranger] {
                assert_eq!(has_same(&root, child.id()), None, "it can be looked at");
            }
            let identity = |child: &Child| ProcessIdentity::of(child.id()).unwrap();
            assert!(identity(&server).end_if_below(&root));
            assert!(identity(&stranger).end_if_below(&root));
            assert!(end_below(&root));
        };
        std::thread::scope(|scope| scope.spawn(without_looking).join().unwrap());
        assert!(server.try_wait().unwrap().is_some(), "it is still there");
        assert_eq!(stranger.try_wait().unwrap(), None, "nothing proves it ours");
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    /// Sessions of a build's second link are called after that.
    #[test]
    fn sessions_of_other_links_are_known_without_their_mark() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("campaign/1-a1/pgdata");
        fs::create_dir_all(&work).unwrap();
        for (name, is_ours) in [
            ("postgres", true),
            ("link2-postgres", true),
            ("link64-postgres", true),
            ("link-postgres", false),
            ("my-postgres", false),
        ] {
            let program = root.join(name);
            // Not by ourselves: a child of another test would hold the file open for writing.
            let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
            assert!(copied.unwrap().success());
            let mut session = Command::new(&program)
                .arg("60")
                .env_clear()
                .current_dir(&work)
                .process_group(0)
                .spawn()
                .unwrap();
            end_below(&root.join("campaign"));
            if !is_ours {
                assert!(session.try_wait().unwrap().is_none(), "{name}");
                session.kill().unwrap();
            }
            // Otherwise it sleeps for a minute and ends well.
            let end = session.wait().unwrap();
            assert_eq!(end.signal(), Some(9), "{name}");
        }
    }
}
