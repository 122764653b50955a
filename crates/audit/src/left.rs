//! What may not be left behind: processes, data, objects of the kernel, secrets.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Audit, Facts, Finding, folders};

/// What marks a data folder, and processes that work for it.
const MARKER: &str = ".plimsoll-data";
const MARK: &str = "PLIMSOLL_TRIAL=";
/// A file system answers at once, or not at all.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// What the kernel does at the beginning of a program takes some microseconds of CPU, and on a busy
/// machine that may be late.
const BEGIN_LIMIT: Duration = Duration::from_millis(500);
const LOOK_AGAIN: Duration = Duration::from_micros(200);

/// Invariant 5: a data folder holds its marker alone, unless a campaign may go on.
pub(crate) fn audit_data(audit: &mut Audit, data: &Path, facts: &Facts) {
    let entries = fs::read_dir(data).into_iter().flatten().flatten();
    let others: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != MARKER)
        .collect();
    audit.check(5, data, others.is_empty() || facts.may_go_on, || {
        format!("there is more than its marker in it: {}", others.join(", "))
    });
}

/// Invariant 4: no process works for a data folder, running or stopped.
pub(crate) fn audit_processes(audit: &mut Audit, data: &Path) {
    let left = processes_of(data);
    audit.check(4, data, left.is_empty(), || {
        format!("processes are left: {}", left.join("; "))
    });
}

/// The processes that work for a trial of this data folder, `data/CAMPAIGN/TRIAL`, with their
/// states: by their environment, or by a working directory there, because PostgreSQL's sessions
/// write over their environment. In another root, a container's or a chroot's, the same path is
/// another folder, and this one may have another path.
pub fn processes_of(data: &Path) -> Vec<String> {
    let data = data.canonicalize().unwrap_or_else(|_| data.to_owned());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Deeper than so there may be another data folder.
        let is_of = |path: &Path, depths: [usize; 2]| {
            let mut above = depths
                .iter()
                .filter_map(|depth| path.ancestors().nth(*depth));
            above.any(|above| is_data(above, path, pid, &data))
        };
        let is_left = || {
            let environment = environment_of(&entry.path());
            let mut marks = environment
                .split(|byte| *byte == 0)
                .filter_map(|word| word.strip_prefix(MARK.as_bytes()));
            marks.any(|dir| is_of(Path::new(&*String::from_utf8_lossy(dir)), [1, 2]))
                || fs::read_link(entry.path().join("cwd")).is_ok_and(|at| is_of(&at, [2, 3]))
        };
        // A name of 15 bytes may end within a letter.
        let stat = fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        if let Some(state) = state.filter(|state| !"ZX".contains(*state) && is_left()) {
            found.push(format!("{pid} ({state})"));
        }
    }
    found
}

/// A process's environment. For a moment after it has begun a program it has none yet, and what is
/// read meanwhile may be a part of the one before. It is whole if it is as long as its `stat` says:
/// where it ends (51) less where it begins (50), once there is a place where the program's code
/// begins (26).
fn environment_of(process: &Path) -> Vec<u8> {
    let deadline = Instant::now() + BEGIN_LIMIT;
    loop {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        let stat = fs::read(process.join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        let from_third: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
        let field = |number: usize| from_third.get(number - 3)?.parse::<usize>().ok();
        let size = field(51).and_then(|end| end.checked_sub(field(50)?));
        let is_whole = field(26) > Some(0) && size == Some(environment.len());
        // The kernel's own threads have no program.
        let has_program = fs::read_link(process.join("exe")).is_ok();
        if is_whole || !has_program || Instant::now() >= deadline {
            return environment;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Whether `above`, as a process has it, is our folder `data`: by what the file system says. Where it
/// says nothing, the name decides. Of a process that sees nothing of the folder but its trial, the
/// trial does, which is `path`.
fn is_data(above: &Path, path: &Path, pid: u32, data: &Path) -> bool {
    let has_its_name = above == data;
    match (number(data), number_in(pid, above)) {
        (Ok(here), Ok(there)) if here == there => true,
        (_, Err(error)) if error.kind() == ErrorKind::PermissionDenied => has_its_name,
        (Err(_), Err(_)) => has_its_name && has_same_above(data, pid),
        _ => {
            has_its_name && matches!((number(path), number_in(pid, path)), (Ok(a), Ok(b)) if a == b)
        }
    }
}

/// Whether what is there of a folder's path is the same to a process as to this one.
fn has_same_above(folder: &Path, pid: u32) -> bool {
    let found = folder
        .ancestors()
        .find_map(|above| Some((above, number(above).ok()?)));
    found.is_some_and(|(above, here)| number_in(pid, above).is_ok_and(|there| there == here))
}

fn number(path: &Path) -> io::Result<(u64, u64)> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

/// What a path is to a process. Its file system need not answer: then an error.
fn number_in(pid: u32, path: &Path) -> io::Result<(u64, u64)> {
    let below_its_root = path.strip_prefix("/").unwrap_or(path);
    let there = Path::new(&format!("/proc/{pid}/root")).join(below_its_root);
    let (tell, told) = mpsc::channel();
    thread::Builder::new().spawn(move || tell.send(number(&there)))?;
    told.recv_timeout(ANSWER_LIMIT)
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

/// Invariant 4, of the kernel: no shared memory of PostgreSQL's that was made for this data folder.
/// Its servers name the folder in `postmaster.pid`, which goes with the data; what is seen here are
/// segments whose maker is gone, as long as the files that name them are still there.
pub(crate) fn audit_kernel(audit: &mut Audit, data: &Path) {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    for id in shared_memory_ids(data) {
        let is_left = table
            .lines()
            .skip(1)
            .any(|row| row.split_ascii_whitespace().nth(1) == Some(id.as_str()));
        audit.check(4, data, !is_left, || {
            format!("the shared memory {id} is left")
        });
    }
}

/// Ids of the shared memory that PostgreSQL servers below a folder have, by their `postmaster.pid`.
pub fn shared_memory_ids(dir: &Path) -> Vec<String> {
    let mut ids = Vec::new();
    let text = fs::read_to_string(dir.join("postmaster.pid")).unwrap_or_default();
    let id = text
        .lines()
        .nth(6)
        .and_then(|line| line.split_ascii_whitespace().nth(1));
    ids.extend(id.map(str::to_owned));
    ids.extend(
        folders(dir)
            .iter()
            .flat_map(|below| shared_memory_ids(below)),
    );
    ids
}

/// Invariant 9: a secret is in no file of the store and in no command line.
pub(crate) fn audit_secret(audit: &mut Audit, store: &Path, secret: &str) {
    audit_files(audit, store, secret.as_bytes());
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if contains(&line, secret.as_bytes()) {
            audit.findings.push(Finding {
                invariant: 9,
                place: entry.path().display().to_string(),
                problem: "the secret is in its command line".to_owned(),
            });
        }
    }
}

fn audit_files(audit: &mut Audit, dir: &Path, secret: &[u8]) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => audit_files(audit, &path, secret),
            Ok(kind) if kind.is_file() => {
                let is_there = fs::read(&path).is_ok_and(|bytes| contains(&bytes, secret));
                audit.check(9, &path, !is_there, || "the secret is in it".to_owned());
            }
            _ => {}
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && bytes.windows(part.len()).any(|window| window == part)
}
