//! What an earlier run left running, found by what nobody but us gives to a process.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, Gid, Uid, geteuid, set_dumpable_behavior};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

use super::ProcessIdentity;
use super::identity::{Stat, end_all, find_all};
use crate::build::is_server_or_link;

/// The environment variable of a trial's processes, servers and all: the trial's data directory,
/// absolute and free of symbolic links.
pub const MARK: &str = "PLIMSOLL_TRIAL";

/// PostgreSQL's sessions write their title over their environment.
const TITLED: &str = "postgres";
/// No mark is longer, and no command line of a server.
const MOST_BYTES: u64 = 4 << 20;
/// A file system answers at once, or not at all.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// What the kernel does at the beginning of a program takes some microseconds of CPU, and on a busy
/// machine that may be late.
const BEGIN_LIMIT: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Ends every process of the trials of `dir`, and all that these have started: it is a data folder,
/// a campaign's data in one, or a trial's. Waits for their end, within reason, and returns the
/// numbers of those that run on. Only for whoever knows that no trial there is wanted: the holder of
/// the data folder's lock, or a trial's own parent.
///
/// They are known by [`MARK`]; this process and those that have started it are never meant. A
/// PostgreSQL's session whose server is gone has lost it, and is known by its program and its
/// working directory.
pub fn end_below(dir: &Path) -> Vec<u32> {
    end_all(|stat| {
        mark(stat.pid).is_some_and(|mark| is_trial_of(&mark, stat.pid, dir))
            || is_session(stat, dir)
    })
}

/// Ends every process whose [`MARK`] is this text, no folder's, and all that these have started.
/// Waits for their end, within reason, and returns the numbers of those that run on.
pub fn end_marked(text: &Path) -> Vec<u32> {
    end_all(|stat| mark(stat.pid).is_some_and(|mark| mark == text))
}

/// Whether a process's path is that of a trial in `dir`: `dir/CAMPAIGN/TRIAL`, and no deeper, where
/// another data folder may be. It is the folder that counts, and not its name: a process in a
/// container or a chroot may have another folder of that name, or the same one under another.
fn is_trial_of(path: &Path, pid: u32, dir: &Path) -> bool {
    let mut above = path.ancestors().take(3);
    // It may see nothing of the folder but its trial.
    let is_named_so = above.clone().any(|above| above == dir);
    above.any(|above| is_same(above, pid, dir)) || is_named_so && is_same(path, pid, path)
}

/// Whether `path` is to a process what `here` is to this one. If neither is there, what is above them
/// decides. Of a process that may not be looked at nothing is known.
fn is_same(path: &Path, pid: u32, here: &Path) -> bool {
    let file_systems = file_system(pid, path).zip(file_system(std::process::id(), here));
    if file_systems.is_some_and(|(there, here)| there != here) {
        return false;
    }
    let below_its_root = path.strip_prefix("/").unwrap_or(path);
    let there = PathBuf::from(format!("/proc/{pid}/root")).join(below_its_root);
    match (
        number(here),
        in_time(move || as_owner(pid, || number(&there))),
    ) {
        (Ok(here), Ok(there)) => here == there,
        (Err(_), Err(error)) if error.kind() == ErrorKind::NotFound => {
            path.file_name() == here.file_name()
                && path
                    .parent()
                    .zip(here.parent())
                    .is_some_and(|(path, here)| is_same(path, pid, here))
        }
        _ => false,
    }
}

fn number(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// The file system that a process has at a path, by its table of mounts, which asks none of them:
/// one that does not answer is told from ours without waiting. `None` where the table does not say,
/// as in a chroot.
fn file_system(pid: u32, path: &Path) -> Option<Vec<u8>> {
    let table = read(pid, "mountinfo")?;
    device_at(&table, path).map(<[u8]>::to_vec)
}

/// The device of what is mounted at a path, by a table as the kernel writes it.
fn device_at<'t>(table: &'t [u8], path: &Path) -> Option<&'t [u8]> {
    struct Mount<'t> {
        id: &'t [u8],
        parent: &'t [u8],
        device: &'t [u8],
        depth: usize,
    }
    // 36 35 98:0 /root/in/it /mnt/a\040b rw,noatime ...
    let on_the_way = |line: &'t [u8]| {
        let mut fields = line.split(|&byte| byte == b' ');
        let (id, parent, device) = (fields.next()?, fields.next()?, fields.next()?);
        let at = without_escapes(fields.nth(1)?);
        let at = Path::new(OsStr::from_bytes(&at));
        path.starts_with(at).then(|| Mount {
            id,
            parent,
            device,
            depth: at.components().count(),
        })
    };
    let mounts: Vec<Mount> = table
        .split(|&byte| byte == b'\n')
        .filter_map(on_the_way)
        .collect();
    let is_below = |mount: &Mount, other: &Mount| mount.parent == other.id && mount.id != other.id;
    let has_parent = |mount: &&Mount| mounts.iter().any(|other| is_below(mount, other));
    let root = mounts
        .iter()
        .find(|mount| mount.depth == 1 && !has_parent(mount));
    // From the root down, as the kernel walks: what is mounted on a folder covers all mounts that
    // were below that folder. A process begins in its root, and not in what was mounted over that.
    let next = |here: &&Mount| {
        mounts
            .iter()
            .filter(|mount| is_below(mount, here) && mount.depth > 1)
            .min_by_key(|mount| mount.depth)
    };
    std::iter::successors(root, next)
        .take(mounts.len())
        .last()
        .map(|mount| mount.device)
}

/// The kernel writes blanks, line ends and backslashes as `\` and three octal digits.
fn without_escapes(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let code = digits
            .and_then(|digits| str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// A process names what it likes as its folder, and a file system that somebody else serves need not
/// answer.
fn in_time<T: Send + 'static>(
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (tell, told) = mpsc::channel();
    thread::Builder::new().spawn(move || tell.send(ask()))?;
    told.recv_timeout(ANSWER_LIMIT)
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Asks again as the process's user what root may not know: in a container it has not every
/// capability, and may not look at another user's process. That user may.
fn as_owner<T: Send>(pid: u32, ask: impl Fn() -> io::Result<T> + Sync) -> io::Result<T> {
    let answer = ask();
    let is_denied = |error: &io::Error| error.kind() == ErrorKind::PermissionDenied;
    if !answer.as_ref().is_err_and(is_denied) || !geteuid().is_root() {
        return answer;
    }
    let owner = fs::metadata(format!("/proc/{pid}"))?;
    // By a thread's effective ids files are looked at. What others may do to us goes by its real
    // and saved ones, which stay.
    let ask_as_owner = || {
        let changed = set_thread_res_gid(None, Gid::from_raw(owner.gid()), None)
            .and_then(|()| set_thread_res_uid(None, Uid::from_raw(owner.uid()), None));
        // The kernel hides processes that change their user or group.
        set_dumpable_behavior(DumpableBehavior::Dumpable)?;
        changed?;
        ask()
    };
    thread::scope(|scope| {
        let asking = thread::Builder::new().spawn_scoped(scope, ask_as_owner)?;
        asking
            .join()
            .unwrap_or_else(|_| Err(ErrorKind::Other.into()))
    })
}

impl ProcessIdentity {
    /// Ends this process and what it has started, where it works below `dir`: with a mark, a
    /// working directory or an argument there. What a file says that somebody else may have written
    /// proves nothing by itself.
    pub fn end_if_below(&self, dir: &Path) -> Vec<u32> {
        let is_ours = |stat: &Stat| {
            let works_there = || {
                let pid = stat.pid;
                let has_mark = mark(pid).is_some_and(|mark| mark.starts_with(dir));
                has_mark
                    || working_dir(pid).is_some_and(|at| at.starts_with(dir))
                    || has_argument(pid, dir)
            };
            self.is(stat) && self.is_there() && works_there() && is_same(dir, stat.pid, dir)
        };
        end_all(is_ours)
    }
}

fn read(pid: u32, file: &str) -> Option<Vec<u8>> {
    as_owner(pid, || contents(pid, file)).ok()
}

fn contents(pid: u32, file: &str) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = fs::File::open(format!("/proc/{pid}/{file}"))?;
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn read_link(pid: u32, link: &str) -> Option<PathBuf> {
    as_owner(pid, || fs::read_link(format!("/proc/{pid}/{link}"))).ok()
}

/// A process's environment. For a moment after a process has begun a program it has none yet, and who
/// reads it meanwhile gets a part of the one before: then it is read again.
fn environment(pid: u32) -> Option<Vec<u8>> {
    let deadline = Instant::now() + BEGIN_LIMIT;
    loop {
        let (environment, stat) = environment_and_stat(pid)?;
        let is_whole = environment_size(&stat) == Some(environment.len() as u64);
        if is_whole || Instant::now() >= deadline {
            return Some(environment);
        }
        // The kernel's own threads have no program.
        read_link(pid, "exe")?;
        thread::sleep(LOOK_AGAIN);
    }
}

/// Both as the same user: to another the kernel does not say where the environment is.
fn environment_and_stat(pid: u32) -> Option<(Vec<u8>, Vec<u8>)> {
    let both = || Ok((contents(pid, "environ")?, contents(pid, "stat")?));
    as_owner(pid, both).ok()
}

/// How many bytes a process's environment has by its `stat`, at most [`MOST_BYTES`]; `None` until its
/// program has begun. By where in its memory the code begins (field 26), which the kernel says last,
/// and where the environment begins and ends (50 and 51).
fn environment_size(stat: &[u8]) -> Option<u64> {
    let stat = String::from_utf8_lossy(stat);
    // The second, its name, may have blanks in it.
    let from_third: Vec<&str> = stat.rsplit(") ").next()?.split(' ').collect();
    let field = |number: usize| from_third.get(number - 3)?.parse::<u64>().ok();
    let size = field(51)?.checked_sub(field(50)?)?;
    (field(26)? > 0).then_some(size.min(MOST_BYTES))
}

fn mark(pid: u32) -> Option<PathBuf> {
    let environment = environment(pid)?;
    let mark = environment
        .split(|&byte| byte == 0)
        .find_map(|variable| variable.strip_prefix(MARK.as_bytes())?.strip_prefix(b"="))?;
    Some(Path::new(OsStr::from_bytes(mark)).to_owned())
}

fn working_dir(pid: u32) -> Option<PathBuf> {
    read_link(pid, "cwd")
}

/// Whether it is a session of a PostgreSQL that is gone. One that has its server, and whose
/// environment has no mark, is somebody else's.
fn is_session(stat: &Stat, dir: &Path) -> bool {
    let pid = stat.pid;
    // Whoever takes in orphans may be a PostgreSQL, too, elsewhere.
    let has_server =
        || is_postgres(stat.parent) && working_dir(stat.parent) == working_dir(stat.pid);
    is_postgres(pid) && has_title(pid) && works_in_trial(pid, dir) && !has_server()
}

/// The numbers of the processes that work for the trials of `dir`, as [`end_below`] knows them, and
/// of each PostgreSQL there, whoever has started it. Their data must stay.
pub fn working_below(dir: &Path) -> Vec<u32> {
    let works = |stat: &Stat| {
        mark(stat.pid).is_some_and(|mark| is_trial_of(&mark, stat.pid, dir))
            || is_postgres(stat.pid) && works_in_trial(stat.pid, dir)
    };
    find_all(works).iter().map(|stat| stat.pid).collect()
}

/// Whether it works in `TRIAL/pgdata`.
fn works_in_trial(pid: u32, dir: &Path) -> bool {
    let at = working_dir(pid);
    at.is_some_and(|at| at.parent().is_some_and(|data| is_trial_of(data, pid, dir)))
}

fn is_postgres(pid: u32) -> bool {
    let program = read_link(pid, "exe");
    let name = program
        .as_ref()
        .and_then(|program| program.file_name()?.to_str());
    // A program that was replaced meanwhile is called `postgres (deleted)`.
    let name = name.and_then(|name| name.split(' ').next());
    name.is_some_and(|name| is_server_or_link(name, TITLED))
}

/// Whether a process has no environment any more, but what it wrote in its place.
fn has_title(pid: u32) -> bool {
    has_begun(pid) && environment(pid).is_some_and(|text| !text.contains(&b'='))
}

/// Whether a process has arguments. One whose program has just begun has none yet, nor an
/// environment.
fn has_begun(pid: u32) -> bool {
    read(pid, "cmdline").is_some_and(|arguments| !arguments.is_empty())
}

/// `-D DIR/...`, `--datadir=DIR/...`.
fn has_argument(pid: u32, dir: &Path) -> bool {
    let line = read(pid, "cmdline").unwrap_or_default();
    line.split(|&byte| byte == 0).any(|argument| {
        let value = argument
            .iter()
            .position(|&byte| byte == b'=')
            .map_or(argument, |at| &argument[at + 1..]);
        Path::new(OsStr::from_bytes(value)).starts_with(dir)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    use plimsoll_testkit::{CapabilitySet, start_in_own_mounts, without_capabilities};

    use super::*;

    /// Waits until the program of a child has its arguments and environment.
    fn wait_until_begun(child: &Child) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while read(child.id(), "cmdline").is_none_or(|line| line.is_empty()) {
            assert!(Instant::now() < deadline, "it does not begin");
            thread::sleep(Duration::from_millis(1));
        }
    }

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
        assert!(end_below(&data).is_empty());
        assert!(!ProcessIdentity::of(ours.id()).unwrap().is_running());
        ours.wait().unwrap();
        for other in &mut others {
            assert_eq!(other.try_wait().unwrap(), None);
        }
        assert!(end_below(&root).is_empty());
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
            thread::sleep(Duration::from_millis(1));
        }
        assert!(end_below(&data).is_empty());
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
        assert!(identity.end_if_below(&data).is_empty());
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
            assert!(other.end_if_below(&data).is_empty() && identity.is_running());
            assert!(identity.end_if_below(&root.join("other")).is_empty() && identity.is_running());
            // The group of the file is not believed.
            let forged = ProcessIdentity {
                group: ProcessIdentity::of(stranger.id()).unwrap().group,
                ..identity.clone()
            };
            assert!(forged.end_if_below(&data).is_empty() && !identity.is_running());
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
        let elsewhere = tempfile::tempdir().unwrap();
        let alias = elsewhere.path().canonicalize().unwrap();
        let apart = |mark: &Path, mounts: &str| {
            let script = format!("{mounts} && cd {}", mark.display());
            start_in_own_mounts(&["--map-root-user"], mark, &script)
        };
        let [at, trial, other_name] = [&root, &data, &alias].map(|path| path.display());
        let hidden = format!("mount -t tmpfs none {at} && mkdir -p {trial}");
        let Some(mut other) = apart(&data, &hidden) else {
            return plimsoll_testkit::skip(test, "nothing may be mounted here");
        };
        let nothing_but_the_trial = format!(
            "mount --bind {trial} {other_name} && {hidden} && mount --bind {other_name} {trial}"
        );
        let by_another_name = format!("mount --bind {at} {other_name}");
        let ours = [
            ("the same folder", data.clone(), "true"),
            (
                "nothing but the trial",
                data.clone(),
                &nothing_but_the_trial,
            ),
            (
                "another name",
                alias.join("campaign/1-a1"),
                &by_another_name,
            ),
        ]
        .map(|(what, mark, mounts)| (what, apart(&mark, mounts).expect(what)));
        let other_identity = ProcessIdentity::of(other.id()).unwrap();
        for folder in [&root, &root.join("campaign"), &data] {
            assert!(end_below(folder).is_empty());
            assert!(other_identity.end_if_below(folder).is_empty());
        }
        assert_eq!(other.try_wait().unwrap(), None, "a stranger was killed");
        for (what, mut child) in ours {
            assert!(child.try_wait().unwrap().is_some(), "{what}: it runs on");
        }
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// As user nobody, marked as a trial of `root`, with one more argument. None if we are not root.
    fn as_nobody(test: &str, root: &Path, argument: &str) -> Option<Child> {
        if !geteuid().is_root() {
            plimsoll_testkit::skip(test, "only root starts what runs as another user");
            return None;
        }
        Some(start("read line", |command| {
            command
                .uid(65534)
                .stdin(Stdio::piped())
                .args(["server", argument])
                .env(MARK, root.join("campaign/1-a1"));
        }))
    }

    /// Root in a container may not look at what runs as another user: it has not every capability.
    /// Servers that it had started as nobody ran on beside the next campaign, and whoever had a folder
    /// of that name in a container of his own was taken for one.
    #[test]
    fn what_runs_as_another_user_is_told_apart_in_a_container_too() {
        let test = "engine::what_runs_as_another_user_is_told_apart_in_a_container_too";
        let dir = tempfile::tempdir().unwrap();
        // A server's user gets to its data.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let root = dir.path().canonicalize().unwrap();
        let trial = root.join("campaign/1-a1");
        let work = trial.join("pgdata");
        fs::create_dir_all(&work).unwrap();
        let Some(server) = as_nobody(test, &root, "") else {
            return;
        };
        let as_nobody = "setpriv --reuid 65534 --regid 65534 --clear-groups";
        let hidden = format!(
            "mount -t tmpfs none {at} && mkdir -p {} && chmod 755 {at} && \
             exec {as_nobody} sh -c 'echo up; exec sleep 60'",
            trial.display(),
            at = root.display()
        );
        let Some(mut elsewhere) = start_in_own_mounts(&[], &trial, &hidden) else {
            return plimsoll_testkit::skip(test, "nothing may be mounted here");
        };
        let program = root.join("postgres");
        let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
        assert!(copied.unwrap().success());
        let session = Command::new(&program)
            .arg("60")
            .env_clear()
            .uid(65534)
            .gid(65534)
            .current_dir(&work)
            .spawn()
            .unwrap();
        wait_until_begun(&session);
        let mut ours = [server, session];
        let looking = CapabilitySet::SYS_PTRACE | CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
        without_capabilities(looking, || {
            for child in ours.iter().chain([&elsewhere]) {
                let at = fs::read_link(format!("/proc/{}/root", child.id()));
                assert!(at.is_err(), "it can be looked at");
            }
        });
        // Nothing proves them ours to whoever cannot ask as another user, or start one.
        without_capabilities(looking | CapabilitySet::SETUID, || {
            assert!(end_below(&root).is_empty());
            assert!(identity(&elsewhere).end_if_below(&root).is_empty());
        });
        let is_dumpable = || rustix::process::dumpable_behavior();
        assert_eq!(is_dumpable().unwrap(), DumpableBehavior::Dumpable);
        for child in &mut ours {
            assert_eq!(child.try_wait().unwrap(), None);
        }
        without_capabilities(looking, || assert!(end_below(&root).is_empty()));
        for child in &mut ours {
            assert!(child.try_wait().unwrap().is_some(), "it runs on");
        }
        assert_eq!(elsewhere.try_wait().unwrap(), None, "a stranger was killed");
        elsewhere.kill().unwrap();
        elsewhere.wait().unwrap();
        assert_eq!(is_dumpable().unwrap(), DumpableBehavior::Dumpable);
    }

    fn identity(child: &Child) -> ProcessIdentity {
        ProcessIdentity::of(child.id()).unwrap()
    }

    #[test]
    fn tables_of_mounts_tell_file_systems_apart() {
        let own = |path: &str| file_system(std::process::id(), Path::new(path));
        assert!(own("/").is_some());
        assert_eq!(own("/proc/self/status"), own("/proc"));
        assert_ne!(own("/proc"), own("/"));
        assert_eq!(without_escapes(br"/a\040b\134\9"), br"/a b\\9");
    }

    #[test]
    fn a_mount_that_a_later_one_covers_is_not_what_is_seen() {
        let device = |table: &str, path: &str| {
            let device = device_at(table.as_bytes(), Path::new(path))?;
            Some(String::from_utf8_lossy(device).into_owned())
        };
        let plain = "\
            20 1 8:1 / / rw - ext4 /dev/a rw\n\
            21 20 8:2 / /var rw - ext4 /dev/b rw\n\
            22 21 8:3 / /var/lib rw - ext4 /dev/c rw\n";
        assert_eq!(device(plain, "/var/lib/x").as_deref(), Some("8:3"));
        assert_eq!(device(plain, "/var/library").as_deref(), Some("8:2"));
        assert_eq!(device(plain, "/etc").as_deref(), Some("8:1"));
        let on_top = format!("{plain}30 21 8:4 / /var rw - ext4 /dev/d rw\n");
        assert_eq!(device(&on_top, "/var/lib/x").as_deref(), Some("8:4"));
        // Moved to the front of the table, it is the same.
        let moved = format!("30 21 8:4 / /var rw - ext4 /dev/d rw\n{plain}");
        assert_eq!(device(&moved, "/var/lib/x").as_deref(), Some("8:4"));
        let new_root = format!("{plain}31 20 8:5 / / rw - ext4 /dev/e rw\n");
        assert_eq!(device(&new_root, "/var/lib/x").as_deref(), Some("8:3"));
        let first = "1 1 0:2 / / rw - rootfs rootfs rw\n";
        assert_eq!(device(first, "/var").as_deref(), Some("0:2"));
        // A chroot shows what is mounted below it alone.
        assert_eq!(device("22 21 0:5 / /proc rw - proc p rw\n", "/proc"), None);
        assert_eq!(device("", "/proc"), None);
    }

    #[test]
    fn who_may_not_be_signalled_is_not_waited_for() {
        let test = "engine::who_may_not_be_signalled_is_not_waited_for";
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let Some(mut other) = as_nobody(test, &root, "") else {
            return;
        };
        without_capabilities(CapabilitySet::KILL, || {
            assert_eq!(end_below(&root), [other.id()]);
        });
        assert_eq!(other.try_wait().unwrap(), None);
        assert!(end_below(&root).is_empty());
        other.wait().unwrap();
    }

    /// Root in a container reads what runs as another user as that user. The kernel hides from it
    /// where the environment is, and it waited for the rest of one that was whole.
    #[test]
    fn an_environment_of_another_user_is_whole_in_a_container_too() {
        let test = "engine::an_environment_of_another_user_is_whole_in_a_container_too";
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let Some(mut other) = as_nobody(test, &root, "") else {
            return;
        };
        let looking = CapabilitySet::SYS_PTRACE | CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
        without_capabilities(looking, || {
            let (environment, stat) = environment_and_stat(other.id()).unwrap();
            assert_eq!(environment_size(&stat), Some(environment.len() as u64));
            assert!(mark(other.id()).is_some());
        });
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// The kernel cuts names after 15 bytes, and such a process was not seen.
    #[test]
    fn a_name_that_is_cut_within_a_letter_hides_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let program = root.join("abcdefghijklmn\u{fc}");
        let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
        assert!(copied.unwrap().success());
        let mut child = Command::new(&program)
            .arg("60")
            .env(MARK, root.join("campaign/1-a1"))
            .spawn()
            .unwrap();
        wait_until_begun(&child);
        assert!(ProcessIdentity::of(child.id()).is_some());
        assert!(end_below(&root).is_empty());
        // Otherwise it sleeps for a minute and ends well.
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }

    #[test]
    fn a_mark_that_is_no_folder_is_taken_as_text() {
        let [mut ours, mut other] = ["/build-of/7-1", "/build-of/7-12"].map(|mark| {
            start("exec sleep 60", |command| {
                command.env(MARK, mark);
            })
        });
        assert!(end_marked(Path::new("/build-of/7-1")).is_empty());
        assert!(ours.try_wait().unwrap().is_some());
        assert_eq!(other.try_wait().unwrap(), None);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    /// For some microseconds it has neither environment nor arguments; so was one of thirty looks
    /// at this process.
    #[test]
    fn a_process_that_begins_a_program_has_its_mark_all_the_while() {
        let mut child = start(
            r#"again='exec /bin/sh -c "$0" "$0"'; exec /bin/sh -c "$again" "$again""#,
            |command| {
                command.env(MARK, "/x");
            },
        );
        let looks = 20_000;
        let lost = (0..looks)
            .filter(|_| mark(child.id()).as_deref() != Some(Path::new("/x")))
            .count();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(lost, 0, "of {looks}");
    }

    /// A container of another user has a folder of that name on a file system that answers nobody
    /// outside, and one of root's has one that answers nobody at all.
    #[test]
    fn a_file_system_that_refuses_or_does_not_answer_proves_nothing() {
        let test = "engine::a_file_system_that_refuses_or_does_not_answer_proves_nothing";
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let script = format!(
            "exec 3<>/dev/fuse && mount -i -t fuse -o \
             fd=3,rootmode=40000,user_id=0,group_id=0,allow_other none {}",
            root.display()
        );
        let mark = root.join("campaign/1-a1");
        // As many as the backends of a server whose disk is on a network that is down.
        let script = format!("{script} && for i in $(seq 20); do sleep 60 & done");
        let all = ["--pid", "--fork", "--kill-child", "--map-root-user"];
        for user in [&all[..], &all[..3]] {
            let started = start_in_own_mounts(user, &mark, &script);
            let Some(mut other) = started else {
                return plimsoll_testkit::skip(test, "nothing may be mounted here");
            };
            let elsewhere = tempfile::tempdir().unwrap();
            let there = format!("/proc/{}/root{}", other.id(), root.display());
            let asked = in_time(move || number(Path::new(&there)));
            assert!(asked.is_err(), "{user:?}");
            let (tell, told) = mpsc::channel();
            let folders = [root.clone(), elsewhere.path().canonicalize().unwrap()];
            thread::spawn(move || tell.send(folders.map(|folder| end_below(&folder))));
            let left = told.recv_timeout(Duration::from_secs(60));
            let is_there = other.try_wait().unwrap().is_none();
            other.kill().unwrap();
            other.wait().unwrap();
            assert!(left.expect("it hangs").iter().all(Vec::is_empty));
            assert!(is_there, "{user:?}: a stranger was killed");
        }
    }

    /// As in a container whose first process is a PostgreSQL.
    #[test]
    fn an_orphan_that_another_postgresql_took_in_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("campaign/1-a1/pgdata");
        fs::create_dir_all(&work).unwrap();
        let [session, adopter] = [("session", "sleep"), ("adopter", "sh")].map(|(folder, of)| {
            fs::create_dir(root.join(folder)).unwrap();
            let program = root.join(folder).join("postgres");
            let copied = Command::new("cp")
                .args(["-L", &format!("/bin/{of}")])
                .arg(&program)
                .status();
            assert!(copied.unwrap().success());
            program
        });
        let script = format!(
            "(cd {} && exec env -i {} 60) & echo up; wait $!; echo $?",
            work.display(),
            session.display()
        );
        let mut child = Command::new(&adopter)
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        while working_below(&root).is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        assert!(end_below(&root).is_empty());
        line.clear();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "137\n", "128 and SIGKILL");
        assert!(child.wait().unwrap().success(), "who took it in goes on");
    }

    /// Sessions of a build's second link are called after that.
    #[test]
    fn sessions_of_other_links_are_known_without_their_mark() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("campaign/1-a1/pgdata");
        fs::create_dir_all(&work).unwrap();
        for (name, environment, is_ours) in [
            ("postgres", None, true),
            ("link2-postgres", None, true),
            ("link64-postgres", None, true),
            ("link-postgres", None, false),
            ("my-postgres", None, false),
            // A server that somebody has copied there and started has its environment.
            ("postgres", Some(("LANG", "C")), false),
        ] {
            let program = root.join(name);
            // Not by ourselves: a child of another test would hold the file open for writing.
            let copied = Command::new("cp").arg("/bin/sleep").arg(&program).status();
            assert!(copied.unwrap().success());
            let mut session = Command::new(&program)
                .arg("60")
                .env_clear()
                .envs(environment)
                .current_dir(&work)
                .process_group(0)
                .spawn()
                .unwrap();
            if is_ours {
                wait_until_begun(&session);
            }
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
