//! What is promised is on the disk before it is promised: a journal of all calls that write, sync
//! and name files is walked beside a model of what a power cut would take at each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plimsoll_testkit::skip;

use crate::support::{Place, text, wait};
use crate::syscalls::{PLAN, can_trace, place};

/// The calls that matter. A file is made by `openat`, and shows its path by the descriptor.
const CALLS: &str = "trace=openat,write,pwrite64,ftruncate,fsync,fdatasync,syncfs,rename,renameat,\
                     renameat2,mkdir,mkdirat,unlink,unlinkat,rmdir";

/// What a power cut would take.
#[derive(Default)]
struct Disk {
    /// Files whose content is not on the disk.
    dirty: BTreeSet<PathBuf>,
    /// Files and folders whose names are not.
    unnamed: BTreeSet<PathBuf>,
    /// All that were ever made.
    made: BTreeSet<PathBuf>,
    /// Steps that events files say are done, until these are synced.
    said: BTreeMap<PathBuf, String>,
    /// What was written of a line that is not whole: a kernel may take a part of a write.
    begun: BTreeMap<PathBuf, String>,
    /// How many promises were checked, by what they are.
    promises: BTreeMap<&'static str, u64>,
    findings: Vec<String>,
}

impl Disk {
    fn make(&mut self, path: &Path) {
        if self.made.insert(path.to_owned()) {
            self.unnamed.insert(path.to_owned());
        }
    }

    /// A write of this text, with strace's escapes.
    fn write(&mut self, path: &Path, text: &str) {
        if let Some(step) = self.said.remove(path) {
            let path = path.display();
            self.findings
                .push(format!("{path}: {step} is done, and was not synced"));
        }
        self.dirty.insert(path.to_owned());
        if path.extension().is_none_or(|kind| kind != "jsonl") {
            return;
        }
        let line = self.begun.remove(path).unwrap_or_default() + text;
        if !line.ends_with(r"\n") {
            self.begun.insert(path.to_owned(), line);
            return;
        }
        let done = line.split_once(r#"\"event\":\"step_done\",\"step\":\""#);
        if let Some((step, _)) = done.and_then(|(_, rest)| rest.split_once('\\')) {
            self.said.insert(path.to_owned(), step.to_owned());
        }
    }

    fn sync(&mut self, path: &Path) {
        self.dirty.remove(path);
        self.unnamed.retain(|name| name.parent() != Some(path));
        if let Some(step) = self.said.remove(path) {
            let trial = path.parent().unwrap();
            let log = trial.join(format!("{step}.hlog"));
            let series = trial.join("series").join(format!("{step}.operations.tsv"));
            for file in [&log, &series] {
                self.promise("a finished step", file);
            }
            self.promise("a finished step", path);
        }
    }

    fn sync_all(&mut self) {
        self.dirty.clear();
        self.unnamed.clear();
    }

    fn rename(&mut self, from: &Path, to: &Path) {
        let is_in_store = to.iter().any(|part| part == STORE);
        let moved = |set: &mut BTreeSet<PathBuf>| {
            let below: Vec<PathBuf> = set
                .iter()
                .filter(|at| at.starts_with(from))
                .cloned()
                .collect();
            for path in below {
                set.remove(&path);
                let rest = path.strip_prefix(from).unwrap();
                set.insert(to.components().chain(rest.components()).collect());
            }
        };
        if is_in_store {
            *self.promises.entry("a whole file").or_default() += 1;
            let halves = self.dirty.iter().filter(|at| at.starts_with(from));
            self.findings.extend(halves.map(|at| {
                let (at, to) = (at.display(), to.display());
                format!("{at} becomes {to} before its content is on the disk")
            }));
        }
        if to.ends_with("seal.json") {
            let trial = to.parent().unwrap();
            *self.promises.entry("a sealed folder").or_default() += 1;
            let halves = self.dirty.iter().chain(&self.unnamed);
            let halves = halves.filter(|at| at.starts_with(trial) && !at.starts_with(from));
            self.findings.extend(halves.map(|at| {
                let (at, to) = (at.display(), to.display());
                format!("{at} is not on the disk, and {to} says what is in it")
            }));
        }
        for set in [&mut self.dirty, &mut self.unnamed, &mut self.made] {
            moved(set);
        }
        self.unnamed.insert(to.to_owned());
    }

    fn remove(&mut self, path: &Path) {
        for set in [&mut self.dirty, &mut self.unnamed, &mut self.made] {
            set.remove(path);
        }
    }

    /// A file is promised: its content, its name and those of all folders above it are on the disk.
    fn promise(&mut self, what: &'static str, file: &Path) {
        *self.promises.entry(what).or_default() += 1;
        let of_content = self.dirty.get(file).into_iter();
        let of_names = file.ancestors().filter_map(|at| self.unnamed.get(at));
        self.findings.extend(of_content.chain(of_names).map(|at| {
            let (at, file) = (at.display(), file.display());
            format!("{at} is not on the disk, and {file} was promised with {what}")
        }));
    }
}

/// The folder of the store.
const STORE: &str = "plimsoll-runs";

/// Whole lines of `strace -f`: those of a call that another one came between are put together, at
/// the place of the end.
fn calls(journal: &str) -> Vec<String> {
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in journal.lines() {
        let (pid, line) = line.split_once(' ').unwrap_or(("", line));
        let line = line.trim_start();
        if let Some(start) = line.strip_suffix("<unfinished ...>") {
            begun.insert(pid, start);
        } else if let Some((_, rest)) = line
            .strip_prefix("<... ")
            .and_then(|rest| rest.split_once("resumed>"))
        {
            calls.push(begun.remove(pid).unwrap_or_default().to_owned() + rest);
        } else {
            calls.push(line.to_owned());
        }
    }
    calls
}

/// The path of a descriptor, as `5</a/b>`.
fn of_descriptor(text: &str) -> Option<PathBuf> {
    let (_, rest) = text.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    Some(PathBuf::from(path.trim_end_matches(" (deleted)")))
}

/// What a call writes, with strace's escapes.
fn in_quotes(arguments: &str) -> &str {
    let (_, rest) = arguments.split_once('"').unwrap_or_default();
    rest.rsplit_once('"').map_or(rest, |(text, _)| text)
}

/// The paths in quotes among the arguments, each from the folder of the descriptor before it, or
/// from `cwd`.
fn of_names(arguments: &str, cwd: &Path) -> Vec<PathBuf> {
    let parts: Vec<&str> = arguments.split('"').collect();
    parts
        .chunks(2)
        .filter_map(|part| match part {
            [before, name] => Some(
                of_descriptor(before)
                    .unwrap_or_else(|| cwd.to_owned())
                    .join(name),
            ),
            _ => None,
        })
        .collect()
}

fn walk(journal: &str, cwd: &Path) -> Disk {
    let mut disk = Disk::default();
    for call in calls(journal) {
        let Some((name, rest)) = call.split_once('(') else {
            continue;
        };
        // Results of short calls are in a column of their own.
        let Some((arguments, result)) = rest.rsplit_once(" = ") else {
            continue;
        };
        if result.starts_with('-') {
            continue;
        }
        let first = of_descriptor(arguments.split(',').next().unwrap_or_default());
        match (name, first, &of_names(arguments, cwd)[..]) {
            ("openat", _, _) if arguments.contains("O_CREAT") => {
                if let Some(path) = of_descriptor(result) {
                    disk.make(&path);
                }
            }
            ("write" | "pwrite64" | "ftruncate", Some(path), _) => {
                disk.write(&path, in_quotes(arguments));
            }
            ("fsync" | "fdatasync", Some(path), _) => disk.sync(&path),
            ("syncfs", ..) => disk.sync_all(),
            ("rename" | "renameat" | "renameat2", _, [from, to]) => disk.rename(from, to),
            ("mkdir" | "mkdirat", _, [path]) => disk.make(path),
            ("unlink" | "unlinkat" | "rmdir", _, [path]) => disk.remove(path),
            _ => {}
        }
    }
    disk
}

#[test]
fn what_is_promised_is_on_the_disk_before() {
    if !can_trace() {
        return skip(
            "cli::power_cut::what_is_promised_is_on_the_disk_before",
            "no strace, or no right to trace",
        );
    }
    let place: Place = place();
    let journal = place.path("journal");
    let child = Command::new("strace")
        .args(["-fqqq", "-y", "-s", "100000", "-e", CALLS, "-o"])
        .arg(&journal)
        .arg(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["run", "plan.toml", "--seed", "3", "--data", "data"])
        .current_dir(place.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let cwd = place.dir.path().canonicalize().unwrap();
    let mut disk = walk(&fs::read_to_string(&journal).unwrap(), &cwd);
    let campaign = place.campaign().canonicalize().unwrap();
    for file in ["campaign.json", "trials"] {
        disk.promise("a campaign that is over", &campaign.join(file));
    }
    let findings = &disk.findings;
    assert!(findings.is_empty(), "{findings:#?}");
    let steps = PLAN.matches("\"l.").count() as u64;
    let count = |what: &str| disk.promises.get(what).copied().unwrap_or(0);
    println!("promises that were checked: {:?}", disk.promises);
    assert_eq!(count("a finished step"), 3 * steps);
    assert_eq!(count("a sealed folder"), 1);
    assert!(count("a whole file") >= 3, "{:?}", disk.promises);
}

/// The model itself: what is not synced is found, and what is, is not.
#[test]
fn the_model_of_a_power_cut_finds_what_would_be_lost() {
    let done = r#"{\"event\":\"step_done\",\"step\":\"l.i0\",\"x\""#;
    let good = format!(
        "1 mkdir(\"plimsoll-runs\", 0777) = 0\n\
         1 fsync(3</p>) = 0\n\
         1 openat(AT_FDCWD</p>, \"plimsoll-runs/.x.tmp\", O_WRONLY|O_CREAT|O_EXCL, 0666) = \
         3</p/plimsoll-runs/.x.tmp>\n\
         1 write(3</p/plimsoll-runs/.x.tmp>, \"a\", 1 <unfinished ...>\n\
         2 write(1</dev/null>, \"a\", 1) = 1\n\
         1 <... write resumed>) = 1\n\
         1 fsync(3</p/plimsoll-runs/.x.tmp>) = 0\n\
         1 rename(\"plimsoll-runs/.x.tmp\", \"plimsoll-runs/x\") = 0\n\
         1 fsync(3</p/plimsoll-runs>) = 0\n\
         1 openat(AT_FDCWD</p>, \"plimsoll-runs/e.jsonl\", O_WRONLY|O_CREAT, 0666) = \
         4</p/plimsoll-runs/e.jsonl>\n\
         1 fsync(3</p/plimsoll-runs>) = 0\n\
         1 write(4</p/plimsoll-runs/e.jsonl>, \"{done}\", 50) = 50\n\
         1 write(4</p/plimsoll-runs/e.jsonl>, \"the rest\\n\", 9) = 9\n\
         1 fdatasync(4</p/plimsoll-runs/e.jsonl>) = 0\n\
         1 write(4</p/plimsoll-runs/e.jsonl>, \"b\", 1) = 1\n"
    );
    let findings = |journal: &str| walk(journal, Path::new("/p")).findings;
    assert_eq!(findings(&good), Vec::<String>::new());
    for (taken, found) in [
        (
            "1 fsync(3</p/plimsoll-runs/.x.tmp>) = 0\n",
            "before its content",
        ),
        (
            "1 fsync(3</p>) = 0\n",
            "/p/plimsoll-runs is not on the disk",
        ),
        (
            "1 fdatasync(4</p/plimsoll-runs/e.jsonl>) = 0\n",
            "was not synced",
        ),
    ] {
        let findings = findings(&good.replace(taken, ""));
        assert!(
            findings.len() == 1 || findings.iter().any(|finding| finding.contains(found)),
            "{taken}: {findings:?}"
        );
        assert!(findings.iter().any(|finding| finding.contains(found)));
    }
}
