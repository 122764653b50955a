//! Which process a number meant, and what belongs to it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use plimsoll_core::planted::{self, Bug};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde::{Deserialize, Serialize};

use super::{KILL_LIMIT, PAUSE};
use crate::EngineError;

/// Which process a number meant: numbers are used again, start times are not within one boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    pub pid: u32,
    /// When it started, in clock ticks since boot (`starttime` of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The kernel's id of this boot; empty where it tells none.
    pub boot_id: String,
    /// The group that was made for it; `None` in files of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ProcessGroup>,
}

/// A process group that was made for one program and all that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessGroup {
    /// Its number: the process id of its leader, which is the program that was started or a wrapper
    /// above it.
    pub id: u32,
    /// When the leader started, in clock ticks since boot.
    pub start_ticks: u64,
    /// The session that the group is in.
    pub session: u32,
}

impl ProcessIdentity {
    /// The identity of a process that is there, be it a zombie. A group that it leads is its own.
    pub fn of(pid: u32) -> Option<Self> {
        Stat::of(pid).map(|stat| {
            let group = ProcessGroup {
                id: pid,
                start_ticks: stat.start_ticks,
                session: stat.session,
            };
            stat.identity(
                &boot_id(),
                Some(group).filter(|group| group.id == stat.group),
            )
        })
    }

    /// Whether this very process is still there.
    pub fn is_there(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| self.is(&stat)) && boot_id() == self.boot_id
    }

    /// Kills this process, what is left of its group, and all that these have started, groups and
    /// sessions of their own included: a PostgreSQL's sessions write on when only the server is
    /// killed. Waits for their end, within reason, and returns whether none runs any more.
    ///
    /// Only what is provably meant is killed: this process by pid, start and boot; members of the
    /// group as long as its number cannot have been given to another, by number, session and a
    /// start not before the leader's; children by their parent.
    pub fn kill_group(&self) -> bool {
        end_found(KILL_LIMIT, || self.members()).is_empty()
    }

    /// The process among these that calls itself `number`, be it in a namespace of process ids of
    /// its own. Of two the one that started last: wrappers are there before what they wrap.
    pub(super) fn find(&self, number: u32) -> Option<Self> {
        self.members()
            .into_iter()
            .filter(|member| own_number(member.pid) == Some(number))
            .max_by_key(|member| member.start_ticks)
    }

    /// Whether this very process is still there and is more than a zombie, which only its parent
    /// can take away.
    pub(super) fn is_running(&self) -> bool {
        Stat::of(self.pid).is_some_and(|stat| self.is(&stat) && stat.is_running())
            && boot_id() == self.boot_id
    }

    /// Writes it down as JSON. Whoever reads the file, and whenever, finds the old text or the new
    /// one.
    pub(super) fn write(&self, path: &Path) -> Result<(), EngineError> {
        let text = serde_json::to_string(self).expect("an identity is numbers and text");
        let folder = path.parent().unwrap_or(Path::new("."));
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            file.write_all(format!("{text}\n").as_bytes())?;
            file.persist(path).map_err(|error| error.error)
        });
        written.map(drop).map_err(|error| {
            EngineError::new(format!(
                "write {}: {error}; check the folder's permissions and space",
                path.display()
            ))
        })
    }

    pub(super) fn is(&self, stat: &Stat) -> bool {
        let is_that_start =
            stat.start_ticks == self.start_ticks || planted::is(Bug::StartTimeIgnored);
        stat.pid == self.pid && is_that_start
    }

    /// False if it is another user's, whom we may not signal. It may just have ended.
    fn signal(&self, signal: Signal) -> bool {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(Pid::from_raw)
            .filter(|_| self.is_running());
        pid.is_none_or(|pid| kill_process(pid, signal) != Err(Errno::PERM))
    }

    /// All running processes that [`Self::kill_group`] means.
    fn members(&self) -> Vec<Self> {
        let boot_id = boot_id();
        if boot_id != self.boot_id {
            return Vec::new();
        }
        let rest = Stat::all();
        // No process gets a number that a group still has.
        let is_replaced = |group: &ProcessGroup| {
            rest.iter()
                .any(|stat| stat.pid == group.id && stat.start_ticks != group.start_ticks)
        };
        let group = self.group.filter(|group| !is_replaced(group));
        let in_group = |stat: &Stat| {
            group.is_some_and(|group| {
                (stat.group, stat.session) == (group.id, group.session)
                    && stat.start_ticks >= group.start_ticks
            })
        };
        let members = with_children(rest, |stat| self.is(stat) || in_group(stat));
        members
            .into_iter()
            .map(|stat| stat.identity(&boot_id, self.group))
            .collect()
    }
}

/// Kills every process that `is_meant`, and all that these have started, but for us and whoever has
/// started us. Waits for their end, within reason, and returns the numbers of those that run on.
pub(super) fn end_all(is_meant: impl Fn(&Stat) -> bool) -> Vec<u32> {
    let boot_id = boot_id();
    end_found(KILL_LIMIT, || {
        let meant = find_all(&is_meant);
        meant
            .into_iter()
            .map(|stat| stat.identity(&boot_id, None))
            .collect()
    })
}

/// Every process that `is_meant`, and all that these have started, but for us and whoever has
/// started us.
pub(super) fn find_all(is_meant: impl Fn(&Stat) -> bool) -> Vec<Stat> {
    let all = Stat::all();
    let parent = |pid: &u32| {
        all.iter()
            .find(|stat| stat.pid == *pid)
            .map(|stat| stat.parent)
    };
    // No longer than all processes: one may be another's parent only because its number was
    // reassigned while we read.
    let own: Vec<u32> = std::iter::successors(Some(std::process::id()), parent)
        .take(all.len())
        .collect();
    with_children(all, |stat| !own.contains(&stat.pid) && is_meant(stat))
}

/// Kills the children of this process and all that they have started, until the kernel knows of no
/// child any more, which for a process that takes in orphans is the end of all. Returns whether
/// that was so within reason: nobody waits for one that we may not signal. Nobody else in this
/// process may wait for a child.
pub fn end_children() -> bool {
    let deadline = Instant::now() + KILL_LIMIT;
    loop {
        let (mut killed, mut refused) = (0, 0);
        for child in Stat::all()
            .iter()
            .filter(|stat| stat.parent == std::process::id() && stat.is_running())
        {
            if let Some(pid) = i32::try_from(child.pid).ok().and_then(Pid::from_raw) {
                // Until it is waited for, no other process gets its number.
                match kill_process(pid, Signal::KILL) {
                    Err(Errno::PERM) => refused += 1,
                    _ => killed += 1,
                }
            }
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => return true,
            }
        }
        if Instant::now() >= deadline || killed == 0 && refused > 0 {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Stops what is found until nothing new is, then kills it all. Returns the numbers of those that
/// run on: nobody waits for one that we may not signal. Searches until `limit`, then waits as long.
fn end_found(limit: Duration, find: impl Fn() -> Vec<ProcessIdentity>) -> Vec<u32> {
    let deadline = Instant::now() + limit;
    let mut all: Vec<ProcessIdentity> = Vec::new();
    loop {
        let mut new = find();
        new.retain(|found| !all.contains(found));
        if new.is_empty() {
            break;
        }
        // Who is stopped starts no other, and children of one who is killed could not be told from
        // strangers.
        for found in &new {
            found.signal(Signal::STOP);
        }
        all.append(&mut new);
        if Instant::now() >= deadline {
            break;
        }
    }
    let (killed, refused): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|found| found.signal(Signal::KILL));
    let deadline = Instant::now() + limit;
    while killed.iter().any(ProcessIdentity::is_running) && Instant::now() < deadline {
        std::thread::sleep(PAUSE);
    }
    let both = killed.iter().chain(&refused);
    both.filter(|found| found.is_running())
        .map(|found| found.pid)
        .collect()
}

/// Of all processes those that run and are meant, or have been started by one that is.
fn with_children(mut rest: Vec<Stat>, is_meant: impl Fn(&Stat) -> bool) -> Vec<Stat> {
    let mut members: Vec<Stat> = Vec::new();
    let mut new: Vec<Stat> = rest.extract_if(.., |stat| is_meant(stat)).collect();
    while !new.is_empty() {
        let is_child = |stat: &Stat| {
            new.iter()
                .any(|parent| stat.parent == parent.pid && stat.start_ticks >= parent.start_ticks)
        };
        let children = rest.extract_if(.., |stat| is_child(stat)).collect();
        members.append(&mut std::mem::replace(&mut new, children));
    }
    members.retain(Stat::is_running);
    members
}

/// Whether a process waits for something. Not of one that is not there, or whose state is not known.
pub fn is_asleep(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| stat.state == 'S')
}

/// What of a `/proc/PID/stat` line matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub pid: u32,
    state: char,
    pub parent: u32,
    group: u32,
    session: u32,
    start_ticks: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::read(pid).filter(|_| proc_is_ours())
    }

    fn read(pid: u32) -> Option<Self> {
        // The kernel cuts a name after 15 bytes, be it within a letter.
        let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&line))
    }

    /// Of all processes that are there, zombies included.
    pub(super) fn all() -> Vec<Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter(|_| proc_is_ours())
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter_map(Self::read)
            .collect()
    }

    /// Fields 1, 3 to 6 and 22. The name in field 2 may hold blanks and brackets.
    fn parse(line: &str) -> Option<Self> {
        let (pid, rest) = line.split_once(' ')?;
        let fields: Vec<&str> = rest.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        Some(Self {
            pid: pid.parse().ok()?,
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            group: fields.get(2)?.parse().ok()?,
            session: fields.get(3)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
        })
    }

    pub(super) fn is_running(&self) -> bool {
        let is_forgotten = planted::is(Bug::StoppedServerForgotten) && self.state == 'T';
        !matches!(self.state, 'Z' | 'X') && !is_forgotten
    }

    fn identity(&self, boot_id: &str, group: Option<ProcessGroup>) -> ProcessIdentity {
        ProcessIdentity {
            pid: self.pid,
            start_ticks: self.start_ticks,
            boot_id: boot_id.to_owned(),
            group,
        }
    }
}

/// Whether the numbers in `/proc` are those of this process's namespace. In another one a number
/// means another process, who would be signalled.
fn proc_is_ours() -> bool {
    static IS_OURS: LazyLock<bool> = LazyLock::new(|| {
        let own = std::process::id().to_string();
        fs::read_link("/proc/self").is_ok_and(|shown| shown.as_os_str() == own.as_str())
    });
    *IS_OURS
}

/// Which start of a kernel this is: the same in all containers and namespaces of a machine, another
/// on every other machine and after every start. Empty where it cannot be read.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The number by which a process knows itself: the last of `NSpid`, which kernels before 4.1 do not
/// have.
fn own_number(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    match status.lines().find_map(|line| line.strip_prefix("NSpid:")) {
        Some(numbers) => numbers.split_ascii_whitespace().next_back()?.parse().ok(),
        None => Some(pid),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A script in a group of its own, and the process ids that it says in its first line.
    fn group(script: &str) -> (Child, Vec<u32>) {
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        (
            child,
            line.split_whitespace()
                .map(|pid| pid.parse().unwrap())
                .collect(),
        )
    }

    #[test]
    fn a_stat_line_is_read_after_any_name() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        let expected = Stat {
            pid: 7,
            state: 'S',
            parent: 1,
            group: 2,
            session: 3,
            start_ticks: 4242,
        };
        assert_eq!(Stat::parse(&format!("7 (a b) c) {rest}")), Some(expected));
        assert_eq!(Stat::parse("7 (sh) S 1"), None);
        assert!(ProcessIdentity::of(std::process::id()).unwrap().is_there());
        assert_eq!(own_number(std::process::id()), Some(std::process::id()));
    }

    #[test]
    fn sessions_of_their_own_end_with_what_started_them() {
        // As a PostgreSQL's sessions do it.
        let (mut child, pids) = group("setsid sh -c 'sleep 60 & wait' & echo $!; wait");
        let deadline = Instant::now() + KILL_LIMIT;
        let identity = ProcessIdentity::of(child.id()).unwrap();
        let mut started = Vec::new();
        while started.len() < 3 || Stat::of(pids[0]).unwrap().session != pids[0] {
            assert!(Instant::now() < deadline, "{started:?}");
            started = identity.members();
        }
        assert!(identity.kill_group());
        assert!(
            !started.iter().any(ProcessIdentity::is_running),
            "{started:?}"
        );
        child.wait().unwrap();
    }

    #[test]
    fn a_group_ends_when_its_leader_has_ended_before() {
        let (mut child, pids) = group("sleep 60 & echo $!");
        let leader = ProcessIdentity::of(child.id()).unwrap();
        assert!(leader.group.is_some());
        child.wait().unwrap();
        let member = ProcessIdentity::of(pids[0]).unwrap();
        assert!(!leader.is_there() && member.is_running());

        // Somebody's who has the number by chance, and of an older file, which knows of no group.
        let later = ProcessGroup {
            start_ticks: member.start_ticks + 1,
            ..leader.group.unwrap()
        };
        // Within a namespace the session of one outside is 0, so no fixed number is another's.
        let elsewhere = ProcessGroup {
            session: leader.group.unwrap().session + 1,
            ..leader.group.unwrap()
        };
        for group in [Some(later), Some(elsewhere), None] {
            assert!(
                ProcessIdentity {
                    group,
                    ..leader.clone()
                }
                .kill_group()
            );
            assert!(member.is_running(), "{group:?}");
        }
        assert!(leader.kill_group());
        assert!(!member.is_running());
    }

    #[test]
    fn a_number_that_was_given_to_another_process_kills_nobody() {
        let (mut child, pids) = group("sleep 60 & echo $!; wait");
        let now = ProcessIdentity::of(child.id()).unwrap();
        let before = now.start_ticks - 1;
        let old = ProcessIdentity {
            start_ticks: before,
            group: now.group.map(|group| ProcessGroup {
                start_ticks: before,
                ..group
            }),
            ..now.clone()
        };
        assert!(old.kill_group());
        let other_boot = ProcessIdentity {
            boot_id: "another".to_owned(),
            ..now.clone()
        };
        assert!(other_boot.kill_group());
        assert!(now.is_running() && ProcessIdentity::of(pids[0]).unwrap().is_running());
        assert!(now.kill_group());
        child.wait().unwrap();
    }

    #[test]
    fn an_identity_file_is_whole_at_every_moment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("identity");
        let identity = ProcessIdentity::of(std::process::id()).unwrap();
        identity.write(&path).unwrap();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..2000).for_each(|_| identity.write(&path).unwrap());
                is_done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
                let text = fs::read_to_string(&path).unwrap();
                assert_eq!(
                    serde_json::from_str::<ProcessIdentity>(&text).ok(),
                    Some(identity.clone()),
                    "{text:?}"
                );
            }
        });
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing but the file is left"
        );
    }

    /// Its numbers are of other processes: one of them was killed.
    #[test]
    fn proc_of_another_namespace_tells_of_nobody() {
        let test = "process::identity::tests::proc_of_another_namespace_tells_of_nobody";
        if std::env::var_os("PLIMSOLL_TEST_NAMESPACE").is_some() {
            assert!(fs::exists(format!("/proc/{}", std::process::id())).unwrap());
            assert_eq!(ProcessIdentity::of(std::process::id()), None);
            assert!(Stat::all().is_empty());
            return;
        }
        let inner = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test])
            .env("PLIMSOLL_TEST_NAMESPACE", "1")
            .output();
        match inner {
            Ok(output) if output.status.code() != Some(1) => {
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(
                    output.status.success() && said.contains("1 passed"),
                    "{said}"
                );
            }
            _ => plimsoll_testkit::skip(test, "no namespace may be made here"),
        }
    }

    /// On a machine that is slow they were found when the time was over, and left as they were.
    #[test]
    fn what_is_found_late_is_killed_too() {
        let (mut child, _) = group("echo; exec sleep 60");
        let found = ProcessIdentity::of(child.id()).unwrap();
        let limit = Duration::from_secs(5);
        let left = end_found(limit, || {
            std::thread::sleep(limit + Duration::from_millis(100));
            vec![found.clone()]
        });
        assert_eq!(left, Vec::<u32>::new());
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn files_of_older_versions_are_read() {
        let identity: ProcessIdentity =
            serde_json::from_str(r#"{"pid":7,"start_ticks":42,"boot_id":"b"}"#).unwrap();
        assert_eq!(
            identity,
            ProcessIdentity {
                pid: 7,
                start_ticks: 42,
                boot_id: "b".into(),
                group: None
            }
        );
        let group = Some(ProcessGroup {
            id: 6,
            start_ticks: 41,
            session: 1,
        });
        let written = serde_json::to_string(&ProcessIdentity {
            group,
            ..identity.clone()
        })
        .unwrap();
        assert_eq!(
            serde_json::from_str::<ProcessIdentity>(&written)
                .unwrap()
                .group,
            group
        );
    }
}
