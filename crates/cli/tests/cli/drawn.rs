//! What all rows of faults share: how many a run draws, what must be true after each, and what they
//! have cost together.

use std::any::Any;
use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_audit::{Facts, audit, name_of};
use plimsoll_core::seed::Draw;
use tempfile::TempDir;

/// How many faults of a row are to be drawn, and from what: `few` and the same in every run, so that
/// what they find is a bug and not luck, or as many as `PLIMSOLL_FAULTS` says. Prints what repeats
/// them.
pub fn faults(row: &'static str, few: u64) -> (u64, Draw, Tally) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let count = number("PLIMSOLL_FAULTS").unwrap_or(few);
    let seed = number("PLIMSOLL_FAULTS_SEED").unwrap_or(match count == few {
        true => 1,
        false => u64::from(std::process::id()),
    });
    println!("PLIMSOLL_FAULTS={count} PLIMSOLL_FAULTS_SEED={seed}");
    (count, Draw::new(seed, &[row]), Tally::new(row, seed))
}

/// The finished steps that are in a store's files now, to be looked for later.
pub fn finished_steps(store: &Path) -> Facts {
    let folders = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let mut facts = Facts::default();
    for campaign in folders(store) {
        for trial in folders(&campaign.path().join("trials")) {
            let file = fs::read_to_string(trial.path().join("events.jsonl")).unwrap_or_default();
            let whole = file
                .split_inclusive('\n')
                .filter_map(|line| line.strip_suffix('\n'));
            let done = whole.filter(|line| line.contains("\"event\":\"step_done\""));
            let lines = facts.seen.entry(name_of(&trial.path())).or_default();
            lines.extend(done.map(str::to_owned));
        }
    }
    facts
}

/// How many there are.
pub fn count_of(facts: &Facts) -> u64 {
    facts.seen.values().map(|lines| lines.len() as u64).sum()
}

/// What no fault may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// So many finished steps that the injector has seen are not there any more.
    StepsLost(u64),
    /// A process, an object of the kernel or data is left.
    Left,
    /// Somebody else's process, file or table is not as it was.
    Stranger,
    /// A result that is not so, and nothing says it.
    Silent,
}

/// Ends a fault's test, and says why.
#[track_caller]
pub fn fail(harm: Harm, why: &str) -> ! {
    eprintln!("{}: {harm:?}: {why}", Location::caller());
    resume_unwind(Box::new(harm))
}

/// Whatever happened, the store says nothing that is not so, and nothing is left.
#[track_caller]
pub fn assert_sound(store: &Path, data: &Path, facts: &Facts, what: &dyn fmt::Display) {
    let audit = audit(store, data, facts);
    let of = |invariant: u32| {
        let found = audit.findings.iter();
        found
            .filter(|finding| finding.invariant == invariant)
            .count() as u64
    };
    let harm = match audit.findings.first().map(|finding| finding.invariant) {
        None => return,
        Some(_) if of(1) > 0 => Harm::StepsLost(of(1)),
        Some(4 | 5) => Harm::Left,
        Some(_) => Harm::Silent,
    };
    let findings: Vec<String> = audit.findings.iter().map(ToString::to_string).collect();
    fail(harm, &format!("{what}: {findings:#?}"));
}

/// What the faults of a row have cost.
pub struct Tally {
    row: &'static str,
    seed: u64,
    faults: u64,
    /// Finished steps that the injector saw before its faults.
    steps_seen: u64,
    steps_lost: u64,
    left: u64,
    strangers: u64,
    silent: u64,
    /// Faults after which something else was wrong: an exit code, words, time.
    others: u64,
}

impl Tally {
    fn new(row: &'static str, seed: u64) -> Self {
        Self {
            row,
            seed,
            faults: 0,
            steps_seen: 0,
            steps_lost: 0,
            left: 0,
            strangers: 0,
            silent: 0,
            others: 0,
        }
    }

    /// Injects a fault beside somebody whom it must not touch. The next one comes all the same.
    /// `inject` returns how many finished steps were there before.
    pub fn count(&mut self, fault: &dyn fmt::Display, inject: impl FnOnce() -> u64) {
        let number = self.faults + 1;
        self.faults = number;
        let injected = catch_unwind(AssertUnwindSafe(|| {
            let stranger = Stranger::new();
            let seen = inject();
            stranger.assert_untouched(fault);
            seen
        }));
        match injected {
            Ok(seen) => self.steps_seen += seen,
            Err(cause) => {
                self.add(&*cause);
                println!("fault {number} of the row has cost what it may not: {fault}");
            }
        }
    }

    fn add(&mut self, cause: &(dyn Any + Send)) {
        match cause.downcast_ref() {
            Some(Harm::StepsLost(steps)) => self.steps_lost += steps,
            Some(Harm::Left) => self.left += 1,
            Some(Harm::Stranger) => self.strangers += 1,
            Some(Harm::Silent) => self.silent += 1,
            None => self.others += 1,
        }
    }

    /// Prints the row's line. Fails if a fault has cost what none may.
    #[track_caller]
    pub fn conclude(self) {
        let harm = self.steps_lost + self.left + self.strangers + self.silent + self.others;
        println!("{self}");
        assert_eq!(harm, 0, "{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            row,
            seed,
            faults,
            steps_seen,
            steps_lost,
            left,
            strangers,
            silent,
            others,
        } = self;
        write!(
            f,
            "{row}: {faults} faults, seed {seed}: {steps_lost} of {steps_seen} finished steps \
             lost, {left} left something, {strangers} touched strangers, {silent} silent results, \
             {others} other findings"
        )
    }
}

/// Somebody whose process, files and shared memory look much like ours.
struct Stranger {
    process: Child,
    dir: TempDir,
    segment: PathBuf,
}

impl Stranger {
    const CONTENT: &str = "theirs";

    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let trial = dir.path().join("data/20260101T000000Z-t/1-a1");
        fs::create_dir_all(&trial).unwrap();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let segment = format!("/dev/shm/PostgreSQL.{}{number:04}", std::process::id());
        let segment = PathBuf::from(segment);
        for file in [&trial.join("precious"), &segment] {
            fs::write(file, Self::CONTENT).unwrap();
        }
        let process = Command::new("sleep")
            .arg0("postgres")
            .arg("3600")
            .env("PLIMSOLL_TRIAL", &trial)
            .current_dir(&trial)
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            dir,
            segment,
        }
    }

    #[track_caller]
    fn assert_untouched(&self, what: &dyn fmt::Display) {
        let precious = self
            .dir
            .path()
            .join("data/20260101T000000Z-t/1-a1/precious");
        for file in [&precious, &self.segment] {
            if !fs::read_to_string(file).is_ok_and(|content| content == Self::CONTENT) {
                fail(Harm::Stranger, &format!("{what}: {}", file.display()));
            }
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.process.id()));
        let state = stat
            .ok()
            .and_then(|stat| stat.rsplit_once(") ")?.1.chars().next());
        if state.is_none_or(|state| "TtZX".contains(state)) {
            fail(
                Harm::Stranger,
                &format!("{what}: their process was signalled"),
            );
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.segment);
    }
}

/// One fault of each kind of harm is counted as that, and none hides another.
#[test]
fn what_a_fault_costs_is_counted_and_fails_the_row() {
    let mut tally = Tally::new("x", 1);
    let fault = "a fault";
    tally.count(&fault, || 3);
    for harm in [Harm::StepsLost(2), Harm::Left, Harm::Stranger, Harm::Silent] {
        tally.count(&fault, || fail(harm, "on purpose"));
    }
    tally.count(&fault, || panic!("on purpose"));
    let line = "x: 6 faults, seed 1: 2 of 3 finished steps lost, 1 left something, 1 touched \
                strangers, 1 silent results, 1 other findings";
    assert_eq!(tally.to_string(), line);
    assert!(catch_unwind(AssertUnwindSafe(|| tally.conclude())).is_err());
    let mut fine = Tally::new("x", 1);
    fine.count(&fault, || 1);
    fine.conclude();
}

/// The decoy is one: whoever signals it or changes its files is found.
#[test]
fn a_stranger_who_was_touched_is_found() {
    let touches: [fn(&Stranger); 3] = [
        |stranger| fs::remove_file(&stranger.segment).unwrap(),
        |stranger| {
            fs::write(
                stranger
                    .dir
                    .path()
                    .join("data/20260101T000000Z-t/1-a1/precious"),
                "",
            )
            .unwrap()
        },
        |stranger| {
            let pid = rustix::process::Pid::from_raw(stranger.process.id() as i32).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        },
    ];
    for touch in touches {
        let mut tally = Tally::new("x", 1);
        let stranger = Stranger::new();
        stranger.assert_untouched(&"nothing");
        touch(&stranger);
        let found = catch_unwind(AssertUnwindSafe(|| {
            crate::support::wait_until("the process to end", || {
                catch_unwind(AssertUnwindSafe(|| stranger.assert_untouched(&"a touch"))).is_err()
            });
            stranger.assert_untouched(&"a touch");
        }));
        tally.add(&*found.unwrap_err());
        assert_eq!(tally.strangers, 1);
    }
}
