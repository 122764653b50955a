//! Whether the tests find bugs: each bug of `plimsoll_core::planted` is let in, and its check has to
//! fail. One that a seed decides has to fail with one seed of three, and to pass with the same seed
//! without the bug; that the others pass without it is for the other tests to show.
//!
//! The tests have all bugs, as `plimsoll-testkit` brings them; a variable says which one is in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::planted::{Bug, VARIABLE};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// A bug that no seed of these shows has slipped.
const SEEDS: u64 = 3;
/// A test that hangs has found the bug, too, and is ended.
const LIMIT: Duration = Duration::from_secs(300);

/// The tests of one crate that must find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Check {
    /// The folder of the crate.
    of: &'static str,
    /// Its unit tests if empty.
    target: &'static str,
    test: &'static str,
    /// Whether a seed decides what it tries.
    draws: bool,
}

const fn unit(of: &'static str, test: &'static str) -> Check {
    within(of, "", test)
}

const fn within(of: &'static str, target: &'static str, test: &'static str) -> Check {
    Check {
        of,
        target,
        test,
        draws: false,
    }
}

const fn known_truth(test: &'static str) -> Check {
    Check {
        draws: true,
        ..within("load", "known_truth", test)
    }
}

const fn of_cli(test: &'static str) -> Check {
    within("cli", "cli", test)
}

const OF_ONE: Check = known_truth("every_number_of_a_step_is_what_its_worker_did");
const OF_SEVERAL: Check = known_truth("every_number_of_a_step_is_what_its_workers_did");
const POWER_CUT: Check = of_cli("power_cut::what_is_promised_is_on_the_disk_before");

/// What has to find a bug.
fn check(bug: Bug) -> Check {
    match bug {
        Bug::OperationCountedTwice
        | Bug::FailureCountedAsDone
        | Bug::DueInstantSkipped
        | Bug::OwedForgotten
        | Bug::WarmUpCounted => OF_ONE,
        Bug::HistogramMergedTwice => OF_SEVERAL,
        Bug::DiscardedPartCounted => unit(
            "lab",
            "trial::turns::tests::what_is_discarded_counts_nowhere",
        ),
        Bug::OthersCpuCounted => unit(
            "lab",
            "trial::turns::meter::tests::each_process_has_its_own_cpu_and_no_others",
        ),
        Bug::EventsNotSynced
        | Bug::FolderNotSynced
        | Bug::NamedBeforeSynced
        | Bug::SealedBeforeSynced => POWER_CUT,
        Bug::TornLineKept => unit(
            "store",
            "events::writer::tests::a_reopened_file_goes_on_after_its_last_whole_event",
        ),
        Bug::ChecksumIgnored => within(
            "store",
            "campaigns",
            "what_cannot_be_believed_costs_one_attempt",
        ),
        Bug::StoreNotLocked => of_cli("resume::a_campaign_has_one_runner_at_a_time"),
        Bug::DataNotLocked => of_cli("campaign::two_campaigns_do_not_disturb_each_other"),
        Bug::DataLeft => of_cli("faults::nothing_is_left_of_a_postgresql_whoever_dies"),
        Bug::StartTimeIgnored => unit(
            "engine",
            "process::identity::tests::a_number_that_was_given_to_another_process_kills_nobody",
        ),
        Bug::StoppedServerForgotten => unit(
            "engine",
            "process::leftovers::tests::what_is_stopped_is_ended_too",
        ),
        Bug::StoppedServerLeftStopped => unit(
            "host",
            "processes::servers::tests::processes_stop_go_on_and_are_never_left_stopped",
        ),
        Bug::MarkerIgnored => of_cli(
            "external::a_password_of_the_environment_stays_with_the_program_and_a_foreign_table_is_\
             untouched",
        ),
        Bug::ControlNotNeeded => within(
            "report",
            "report",
            "verdicts::without_a_control_there_is_no_verdict",
        ),
        Bug::ControlNotHeeded => within(
            "report",
            "report",
            "verdicts::a_failed_control_widens_the_errors_of_its_step",
        ),
        Bug::DegreesIgnored => unit(
            "analysis",
            "verdicts::simulated::campaigns_without_a_difference_call_none_at_any_look",
        ),
    }
}

/// A binary of tests, and the folder that it runs in.
struct Binary {
    file: PathBuf,
    crate_dir: PathBuf,
}

/// By the folder of the crate and the target.
struct Binaries(BTreeMap<(String, String), Binary>);

impl Binaries {
    fn of(&self, check: Check) -> &Binary {
        &self.0[&(check.of.to_owned(), check.target.to_owned())]
    }
}

/// Takes out what cargo tells this test about its own package. Build scripts, that of ring for one,
/// look at such variables, and run again if they are not those of the build before; then whatever
/// depends on them is compiled again.
fn without_our_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name);
        }
    }
}

/// All tests of the workspace: the binaries of `make test`, so nothing is compiled for this alone.
fn compile() -> Binaries {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["test", "--workspace", "--locked", "--no-run", "--tests"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit());
    without_our_package(&mut command);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "the tests do not compile");
    let mut binaries = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let (Some(file), Some(manifest)) = (
            message["executable"].as_str(),
            message["manifest_path"].as_str(),
        ) else {
            continue;
        };
        if message["profile"]["test"] != true {
            continue;
        }
        let crate_dir = Path::new(manifest).parent().unwrap().to_owned();
        let of = crate_dir.file_name().unwrap().to_str().unwrap().to_owned();
        let target = match message["target"]["kind"][0].as_str() {
            Some("lib") => String::new(),
            Some("test") => message["target"]["name"].as_str().unwrap().to_owned(),
            _ => continue,
        };
        let file = PathBuf::from(file);
        binaries.insert((of, target), Binary { file, crate_dir });
    }
    Binaries(binaries)
}

#[derive(Debug, PartialEq)]
enum End {
    Passed,
    Failed,
    /// With what it said.
    Skipped(String),
}

/// Runs one test, with a bug or without one, in a folder of its own; what it leaves is ended.
fn run(check: Check, binary: &Binary, bug: Option<Bug>, seed: u64) -> (End, String) {
    // Short: there are sockets below it. Open: root's servers run as somebody else.
    let dir = tempfile::Builder::new().prefix("pb").tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let skips = dir.path().join("skips");
    let log = dir.path().join("log");
    let append = || {
        let mut options = fs::OpenOptions::new();
        options.create(true).append(true).open(&log).unwrap()
    };
    let mut command = Command::new(&binary.file);
    command
        .args([check.test, "--exact", "--nocapture"])
        .current_dir(&binary.crate_dir)
        .env("TMPDIR", dir.path())
        .env("PLIMSOLL_SKIPS", &skips)
        .env("PLIMSOLL_FAULTS_SEED", seed.to_string())
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .env("PROPTEST_MAX_SHRINK_ITERS", "0")
        .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
        .env_remove(VARIABLE)
        .envs(bug.map(|bug| (VARIABLE, bug.name())))
        .stdin(Stdio::null())
        .stdout(append())
        .stderr(append());
    let is_good = wait(command.spawn().unwrap());
    end_below(dir.path());
    let said = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    let skipped = fs::read_to_string(&skips).unwrap_or_default();
    let end = match (is_good, skipped.is_empty()) {
        (false, _) => End::Failed,
        (true, false) => End::Skipped(skipped.trim().to_owned()),
        (true, true) => {
            assert!(said.contains("running 1 test"), "{check:?} is not there");
            End::Passed
        }
    };
    (end, said)
}

/// Whether it passed. One that hangs has not.
fn wait(mut child: Child) -> bool {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            return child.wait().unwrap().success();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Processes that a bug has left, running or stopped: those with this folder in their environment,
/// which is where our tests have all of theirs.
fn end_below(dir: &Path) {
    let mark = format!("TMPDIR={}", dir.display());
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_left = environment
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes());
        let pid = entry.file_name().to_str().and_then(|pid| pid.parse().ok());
        if let Some(pid) = pid.filter(|_| is_left).and_then(Pid::from_raw) {
            // It may have ended by itself a moment ago.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// What `act` makes of each item, in their order. As many as tests run side by side are at work,
/// because most of these wait.
fn side_by_side<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::env::var("RUST_TEST_THREADS");
    let threads = threads.ok().and_then(|threads| threads.parse().ok());
    let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().unwrap().get());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::SeqCst);
            match items.get(index) {
                Some(item) => done.push((index, act(item))),
                None => return done,
            }
        }
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended = threads.into_iter();
        ended.flat_map(|thread| thread.join().unwrap()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A bug with its check, and the first seed that shows it.
struct Hunt {
    bug: Bug,
    check: Check,
    caught: Option<u64>,
}

/// Says how it ended, as soon as it has.
fn hunt(bug: Bug, binaries: &Binaries) -> Hunt {
    let check = check(bug);
    let seeds = if check.draws { SEEDS } else { 1 };
    let begun = Instant::now();
    let binary = binaries.of(check);
    let caught = (1..=seeds).find(|seed| run(check, binary, Some(bug), *seed).0 == End::Failed);
    let hunt = Hunt { bug, check, caught };
    let verb = if caught.is_some() {
        "caught"
    } else {
        "not caught"
    };
    println!(
        "{}: {verb} by {hunt}, {:.1} s",
        bug.name(),
        begun.elapsed().as_secs_f64()
    );
    hunt
}

impl Hunt {
    /// The check and the seed that it has to pass with if the bug is not in; none where `cargo test`
    /// runs the very same.
    fn without(&self) -> Option<(Check, u64)> {
        let is_run_anyway = !self.check.draws && self.caught.is_some();
        (!is_run_anyway).then(|| (self.check, self.caught.unwrap_or(1)))
    }

    /// What speaks against it, if the check ends so without the bug. One that skips itself says
    /// nothing.
    fn conclude(&self, without: Option<&End>) -> Result<(), String> {
        let bug = self.bug.name();
        match (without, self.caught) {
            (Some(End::Skipped(reason)), _) => println!("{bug}: NOT TRIED: {reason}"),
            (_, None) => return Err(format!("{bug}: {self}")),
            (Some(End::Failed), _) => return Err(format!("{bug}: {self} fails without it")),
            (Some(End::Passed) | None, Some(_)) => {}
        }
        Ok(())
    }
}

impl fmt::Display for Hunt {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} {}, ", self.check.of, self.check.test)?;
        match (self.check.draws, self.caught) {
            (false, _) => write!(f, "no seed"),
            (true, Some(seed)) => write!(f, "seed {seed} of {SEEDS}"),
            (true, None) => write!(f, "{SEEDS} seeds"),
        }
    }
}

/// `make planted`.
#[test]
#[ignore = "takes minutes: every check fails once"]
fn every_planted_bug_is_caught() {
    let begun = Instant::now();
    let binaries = compile();
    println!("compiled in {:.0} s", begun.elapsed().as_secs_f64());
    let hunts = side_by_side(Bug::ALL, |bug| hunt(*bug, &binaries));
    let without: BTreeSet<(Check, u64)> = hunts.iter().filter_map(Hunt::without).collect();
    let without: Vec<(Check, u64)> = without.into_iter().collect();
    let ends = side_by_side(&without, |(check, seed)| {
        let (end, said) = run(*check, binaries.of(*check), None, *seed);
        if end == End::Failed {
            println!("{said}");
        }
        end
    });
    let ends: BTreeMap<_, _> = without.into_iter().zip(ends).collect();
    let concluded = hunts
        .iter()
        .map(|hunt| hunt.conclude(hunt.without().and_then(|of| ends.get(&of))));
    let slipped: Vec<String> = concluded.filter_map(Result::err).collect();
    println!("{:.0} s in all", begun.elapsed().as_secs_f64());
    assert!(slipped.is_empty(), "slipped: {slipped:#?}");
}

/// A bug that nobody has let in sleeps.
#[test]
fn bugs_sleep_until_one_is_let_in() {
    assert!(Bug::ALL.iter().all(|bug| !plimsoll_core::planted::is(*bug)));
}

/// The features that a build of the program has, as `cargo tree` lists them.
fn features(edges: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "-p", "plimsoll"])
        .args(["--edges", edges, "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Tests bring the feature; what is built to be used does not have it.
#[test]
fn the_program_has_no_bugs_but_in_tests() {
    let feature = "plimsoll-core feature \"planted-bugs\"";
    assert!(features("normal,build,dev,features").contains(feature));
    let shipped = features("normal,build,features");
    assert!(shipped.contains("plimsoll-core v") && !shipped.contains(feature));
}
