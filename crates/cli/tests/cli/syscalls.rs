//! The Nth system call of the orchestrator, or of a trial, fails or is the last: a fault may cost a
//! result, never truth, and never anything that is not ours.
//!
//! strace makes the calls fail. A campaign of a second runs under it; then the auditor looks, the
//! campaign is resumed without faults, and has to be what an undisturbed one is.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plimsoll_audit::{Facts, audit_equal};
use plimsoll_core::seed::Draw;
use plimsoll_testkit::skip;

use crate::drawn::{self, Harm};
use crate::support::{Place, text, wait, wait_until};

/// Both steps load and verify; the trial runs under `./wrapper`.
pub const PLAN: &str = "name = \"tiny\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\n\
    configs = [\"wal_full\"]\nsteps = [\"l.i0\", \"l.x\"]\nverify = \"full\"\nwait = \"1ms\"\n\
    comparable = false\n[sizes]\nrows = \"500\"\nwrite_rows = \"100\"\nduration = \"1s\"\n\
    [config.wal_full]\nprefix = [\"./wrapper\"]\n";

/// So many faults in the short form.
const FEW: u64 = 14;
/// The program's loader opens its libraries first: what fails there is not ours.
const FIRST_OPENED: u64 = 12;
const MOST: u64 = 90;

/// What happens to a call.
const FAULTS: [&str; 5] = [
    "error=EIO",
    "error=ENOSPC",
    "error=EINTR",
    "signal=SIGKILL",
    "error=EROFS",
];

/// Calls that write, make, rename, remove, lock, or make durable.
const CALLS: [&str; 12] = [
    "openat",
    "write",
    "fsync",
    "fdatasync",
    "rename",
    "mkdir",
    "unlink",
    "ftruncate",
    "flock",
    "pwrite64",
    "fcntl",
    "statfs",
];

#[derive(Clone, Copy, Debug)]
struct Fault {
    of_trial: bool,
    call: &'static str,
    what: &'static str,
    nth: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            of_trial,
            call,
            what,
            nth,
        } = self;
        let who = if *of_trial { "trial" } else { "orchestrator" };
        write!(f, "{call} {nth} of the {who}: {what}")
    }
}

impl Fault {
    fn draw(draw: &mut Draw) -> Self {
        let mut pick = |count: usize| draw.below(count as u64) as usize;
        let of_trial = pick(2) == 1;
        let (call, what) = (CALLS[pick(CALLS.len())], FAULTS[pick(FAULTS.len())]);
        // There are hundreds of writes, and few of the others.
        let most = match call {
            "openat" | "write" | "pwrite64" | "fcntl" => MOST,
            _ => 12,
        };
        let first = if call == "openat" { FIRST_OPENED } else { 1 };
        Self {
            of_trial,
            call,
            what,
            nth: first + draw.below(most),
        }
    }

    /// strace with its options, up to the command. The orchestrator's trial has calls of its own,
    /// which are not counted.
    fn strace(&self) -> Vec<String> {
        let Self {
            of_trial,
            call,
            what,
            nth,
        } = self;
        [
            "strace",
            if *of_trial { "-fqqq" } else { "-qqq" },
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={call}"),
            "-e",
            &format!("inject={call}:{what}:when={nth}"),
        ]
        .map(str::to_owned)
        .to_vec()
    }
}

pub fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("plan.toml"), PLAN).unwrap();
    wrap(&place, "");
    place
}

/// The trial runs under `by`.
fn wrap(place: &Place, by: &str) {
    let wrapper = place.path("wrapper");
    fs::write(&wrapper, format!("#!/bin/sh\nexec {by} \"$@\"\n")).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
}

fn newest_campaign(place: &Place) -> Option<PathBuf> {
    let campaigns = fs::read_dir(place.path("plimsoll-runs")).ok()?.flatten();
    let mut campaigns: Vec<PathBuf> = campaigns
        .map(|entry| entry.path())
        .filter(|path| path.join("campaign.json").exists())
        .collect();
    campaigns.sort();
    campaigns.pop()
}

/// Runs the plan with a fault, and returns what the injector itself can say: its exit code and
/// words.
fn run_with(place: &Place, fault: Fault) -> (Option<i32>, String) {
    let arguments = ["run", "plan.toml", "--seed", "3", "--data", "data"];
    let mut command = if fault.of_trial {
        wrap(place, &fault.strace().join(" "));
        Command::new(env!("CARGO_BIN_EXE_plimsoll"))
    } else {
        let strace = fault.strace();
        let mut command = Command::new(&strace[0]);
        command.args(&strace[1..]);
        command.arg(env!("CARGO_BIN_EXE_plimsoll"));
        command
    };
    let child = command
        .args(arguments)
        .current_dir(place.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = wait(child);
    wrap(place, "");
    (output.status.code(), text(&output.stderr))
}

/// No finding, once all that was killed is gone.
#[track_caller]
fn assert_sound(place: &Place, facts: &Facts, fault: Fault) {
    let data = place.path("data");
    wait_until("nothing of it to run", || {
        plimsoll_audit::processes_of(&data).is_empty()
    });
    drawn::assert_sound(&place.path("plimsoll-runs"), &data, facts, &fault);
}

/// Returns how many finished steps were there after the fault.
fn inject(fault: Fault, reference: &Place) -> u64 {
    let place = place();
    let (code, said) = run_with(&place, fault);
    assert!(!said.contains("panicked"), "{fault}: {said}");
    // The program never ends with 1, and a signal has no code.
    let is_known = code.is_none_or(|code| [0, 2, 3, 5, 130, 137].contains(&code));
    assert!(is_known, "{fault}: it ended with {code:?}: {said}");
    assert!(
        code == Some(0) || code.is_none() || !said.trim().is_empty(),
        "{fault}: no words"
    );
    let may_go_on = Facts {
        may_go_on: code != Some(0),
        ..Facts::default()
    };
    assert_sound(&place, &may_go_on, fault);

    if newest_campaign(&place).is_none() {
        println!("{fault}: ended with {code:?}, no campaign");
        return 0;
    }
    let seen = drawn::finished_steps(&place.path("plimsoll-runs"));
    let resumed = place.run(&["resume"]);
    let words = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{fault}: resume: {words}");
    // What a killed process left beside its campaign starts with a dot, and goes with the next one.
    assert_sound(&place, &seen, fault);
    let [a, b] = [&place, reference].map(|place| newest_campaign(place).unwrap());
    let equal = audit_equal(&b, &a);
    if !equal.findings.is_empty() {
        drawn::fail(Harm::Silent, &format!("{fault}: {:?}", equal.findings));
    }
    println!("{fault}: ended with {code:?}");
    drawn::count_of(&seen)
}

/// Whether there is a strace that may trace.
pub fn can_trace() -> bool {
    let traced = Command::new("strace")
        .args(["-qqq", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    traced.is_ok_and(|status| status.success())
}

#[test]
fn a_call_that_fails_costs_a_result_and_never_truth() {
    let test = "cli::syscalls::a_call_that_fails_costs_a_result_and_never_truth";
    if !can_trace() {
        return skip(test, "no strace, or no right to trace");
    }
    let (count, mut draw, mut tally) = drawn::faults("syscalls", FEW);
    let reference = place();
    let output = reference.run(&["run", "plan.toml", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for _ in 0..count {
        let fault = Fault::draw(&mut draw);
        tally.count(&fault, || inject(fault, &reference));
    }
    tally.conclude();
}
