//! What must be true of a store and a data folder whatever happened: kills, full disks, damaged
//! files, power cuts.
//!
//! It reads the documented formats with code of its own, so that a bug in the program's readers or
//! arithmetic is not in here, too. `docs/reliability.md` lists the invariants by their numbers.

mod books;
mod left;
mod lines;

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use left::{processes_of, shared_memory_ids};

/// What is known besides the folders themselves.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Lines of `step_done` events that whoever injected faults saw appended, by the trial's
    /// name ([`name_of`]): each must be there, byte by byte.
    pub seen: BTreeMap<String, Vec<String>>,
    /// What must be in no file of the store, and in no command line.
    pub secret: Option<String>,
    /// Whether a campaign may still be running or be continued: then its data may be there.
    pub may_go_on: bool,
}

/// What was looked at, and what is not as it must be.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// How many single comparisons were made.
    pub checks: u64,
    pub findings: Vec<Finding>,
}

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Number of the invariant.
    pub invariant: u32,
    /// The file, folder or process.
    pub place: String,
    pub problem: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            invariant,
            place,
            problem,
        } = self;
        write!(f, "[{invariant}] {place}: {problem}")
    }
}

impl Audit {
    /// Counts a check, and notes a finding unless `is_so`.
    fn check(
        &mut self,
        invariant: u32,
        place: &Path,
        is_so: bool,
        problem: impl FnOnce() -> String,
    ) {
        self.checks += 1;
        if !is_so {
            self.findings.push(Finding {
                invariant,
                place: place.display().to_string(),
                problem: problem(),
            });
        }
    }
}

/// Looks at all campaigns of a store, and at a data folder and its processes.
pub fn audit(store: &Path, data: &Path, facts: &Facts) -> Audit {
    let mut audit = Audit::default();
    for campaign in campaigns(store) {
        audit_campaign(&mut audit, &campaign, facts);
    }
    left::audit_data(&mut audit, data, facts);
    left::audit_processes(&mut audit, data);
    left::audit_kernel(&mut audit, data);
    if let Some(secret) = &facts.secret {
        left::audit_secret(&mut audit, store, secret);
    }
    audit
}

/// Whether two campaigns are the same experiment with the same data: invariant 10.
pub fn audit_equal(a: &Path, b: &Path) -> Audit {
    let mut audit = Audit::default();
    let read = |dir: &Path| -> Value {
        let text = fs::read(dir.join("campaign.json")).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    };
    let (left, right) = (read(a), read(b));
    for member in ["plan_text", "seed", "schedule"] {
        audit.check(10, b, left[member] == right[member], || {
            format!("its {member} is another one than that of {}", a.display())
        });
    }
    let (left, right) = (books::checksums(a), books::checksums(b));
    audit.check(10, b, left == right, || {
        format!("its tables are others than those of {}", a.display())
    });
    audit
}

fn audit_campaign(audit: &mut Audit, campaign: &Path, facts: &Facts) {
    let file = campaign.join("campaign.json");
    let header = fs::read(&file).ok();
    let header: Option<Value> = header.and_then(|text| serde_json::from_slice(&text).ok());
    let is_whole = header.as_ref().is_some_and(Value::is_object);
    audit.check(2, &file, is_whole, || "it is not whole".to_owned());
    let trials = folders(&campaign.join("trials"));
    let done = trials
        .iter()
        .filter(|trial| audit_trial(audit, trial, facts));
    // A campaign that was killed keeps its room until it is resumed.
    let planned = header.and_then(|header| Some(header["schedule"].as_array()?.len()));
    let is_over = done.count() >= planned.unwrap_or(0);
    let is_kept = campaign.join(".reserve").exists();
    audit.check(5, campaign, !(is_over && is_kept), || {
        "it is over, and the room that was kept for last words is still taken".to_owned()
    });
}

/// `CAMPAIGN/trials/TRIAL`: campaigns of one plan have trials of one name.
pub fn name_of(trial: &Path) -> String {
    let words: Vec<_> = trial.iter().rev().take(3).collect();
    let words = words.iter().rev().map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join("/")
}

/// Whether the trial went through to its end.
fn audit_trial(audit: &mut Audit, trial: &Path, facts: &Facts) -> bool {
    let file = trial.join("events.jsonl");
    let Ok(bytes) = fs::read(&file) else {
        // A trial that was killed before it wrote anything.
        return false;
    };
    let events = lines::events(audit, &file, &bytes);
    for line in facts.seen.get(&name_of(trial)).into_iter().flatten() {
        let is_there = bytes
            .split(|byte| *byte == b'\n')
            .any(|of| of == line.as_bytes());
        audit.check(1, &file, is_there, || {
            let start: String = line.chars().take(120).collect();
            format!("a finished step that was seen is not there: {start}")
        });
    }
    for event in events.iter().filter(|event| event["event"] == "step_done") {
        books::audit_step(audit, trial, event);
    }
    events.iter().any(|event| event["event"] == "trial_done")
}

/// Folders with a `campaign.json`.
fn campaigns(store: &Path) -> Vec<PathBuf> {
    let mut found = folders(store);
    found.retain(|folder| folder.join("campaign.json").exists());
    found
}

/// Folders in a folder, without those that begin with a dot.
fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests;
