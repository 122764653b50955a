//! What an operation costs the client, in what does not depend on how busy the machine is:
//! instructions, allocations, context switches.
//!
//! The optimised program is that of `make test`: a debug build costs ten times as much. A limit
//! that is passed means that the per-operation path has become dearer; where that is meant, measure
//! again (`make bench-peers`) and raise it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_core::buggify;
use plimsoll_core::planted::{self, Bug};
use plimsoll_testkit::{cached_build, skip};

/// User instructions of a prepared point select by primary key, with the loop, its two stamps and
/// its histogram, as measured with the callgrind of Debian 12 and rustc 1.95. The servers differ in
/// how many packets their answers have.
const MEASURED: [(&str, u64); 3] = [
    ("mysql@9.7", 793),
    ("mariadb@10.11", 793),
    ("postgres@18", 715),
];
/// What compilers and libraries may add.
const SLACK: f64 = 1.10;
/// Sleeping once per query is what a synchronous client must do.
const SWITCHES: f64 = 1.0;

/// What the loop does once a second, however many queries there were: its histograms are handed
/// over.
const HAND_OVER: &str = "Recorder::roll";

const FEW: u64 = 1000;
const MANY: u64 = 5000;

/// What callgrind has counted inside the load loop.
struct Counted {
    instructions: u64,
    allocations: u64,
}

#[test]
fn instructions_and_allocations_per_query_stay_within_their_limits() {
    let test = "client_cost::instructions_and_allocations_per_query_stay_within_their_limits";
    let Some(program) = program(test) else { return };
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip(test, "valgrind is not installed; `make deps` installs it");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut is_over = Vec::new();
    for (build, measured) in MEASURED {
        if cached_build(test, build).is_none() {
            continue;
        }
        let [few, many] = [FEW, MANY].map(|operations| {
            count(
                &program,
                build,
                operations,
                &folder.path().join("callgrind.out"),
            )
        });
        let per_query = |many: u64, few: u64| (many as f64 - few as f64) / (MANY - FEW) as f64;
        let instructions = per_query(many.instructions, few.instructions);
        let allocations = per_query(many.allocations, few.allocations);
        println!(
            "{build}: {instructions:.0} instructions and {allocations:.4} allocations per query"
        );
        // The hand-over may allocate; a query does not.
        if instructions > measured as f64 * SLACK
            || instructions < measured as f64 / 2.0
            || allocations > 0.05
        {
            is_over.push(format!(
                "{build}: {instructions:.0} instructions (measured {measured}), {allocations:.4} \
                allocations"
            ));
        }
    }
    assert!(is_over.is_empty(), "{is_over:#?}");
}

#[test]
fn a_query_sends_its_thread_to_sleep_once() {
    let test = "client_cost::a_query_sends_its_thread_to_sleep_once";
    let Some(program) = program(test) else { return };
    for (build, _) in MEASURED {
        if cached_build(test, build).is_none() {
            continue;
        }
        let run: serde_json::Value = serde_json::from_str(&printed(
            Command::new(&program).args(["select", build, "4", "20000"]),
        ))
        .unwrap();
        let switches = run["voluntary_switches_per_op"].as_f64().unwrap();
        println!("{build}: {switches:.3} voluntary context switches per query");
        assert_eq!(run["operations"], 20_000);
        assert!(switches <= SWITCHES * SLACK, "{build}: {run}");
    }
}

/// Not even with the feature, which it has from testkit: the variable that would let a bug in is not
/// in it, nor a bug's name. What is compiled for tests shows that they would be found.
#[test]
fn what_is_optimised_has_no_planted_bugs() {
    let test = "client_cost::what_is_optimised_has_no_planted_bugs";
    let Some(program) = program(test) else { return };
    let bug = Bug::StoppedServerLeftStopped.name();
    let texts = [planted::VARIABLE, bug, buggify::VARIABLE];
    let for_tests = Path::new(env!("CARGO_BIN_EXE_plimsoll-client-cost"));
    assert!(texts.iter().all(|text| holds(for_tests, text)));
    for text in texts {
        assert!(!holds(&program, text), "{text}");
    }
}

fn holds(file: &Path, text: &str) -> bool {
    let content = std::fs::read(file).unwrap();
    content
        .windows(text.len())
        .any(|part| part == text.as_bytes())
}

/// The optimised program, which `make test` makes first.
fn program(test: &str) -> Option<PathBuf> {
    let program = std::env::var_os("PLIMSOLL_CLIENT_COST").map(PathBuf::from);
    if program.is_none() {
        skip(
            test,
            "PLIMSOLL_CLIENT_COST names no program; `make test` makes it, with optimisation",
        );
    }
    program
}

fn count(program: &Path, build: &str, operations: u64, file: &Path) -> Counted {
    let mut valgrind = Command::new("valgrind");
    valgrind.args([
        "--tool=callgrind",
        "--toggle-collect=*plimsoll_load*drive*drive*",
    ]);
    valgrind
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program);
    let run: serde_json::Value = serde_json::from_str(&printed(valgrind.args([
        "bare",
        build,
        "1",
        &operations.to_string(),
    ])))
    .unwrap();
    assert_eq!(run["operations"], operations);
    read(&std::fs::read_to_string(file).unwrap())
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Total instructions without those of the hand-over, and calls of the allocator. A function's name
/// is written once, with the number that stands for it afterwards; below a call is its cost, with
/// all that it calls in turn.
fn read(text: &str) -> Counted {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let (mut total, mut hand_over, mut allocations) = (0, 0, 0);
    let mut callee = "";
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(totals) = line.strip_prefix("totals: ") {
            total = totals.trim().parse().unwrap();
        } else if let Some(function) = line.strip_prefix("fn=").or(line.strip_prefix("cfn=")) {
            let (number, name) = function.split_once(' ').unwrap_or((function, ""));
            callee = if name.is_empty() {
                names.get(number).copied().unwrap_or("")
            } else {
                name
            };
            names.insert(number, callee);
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let cost: u64 = lines
                .next()
                .unwrap()
                .split(' ')
                .next_back()
                .unwrap()
                .parse()
                .unwrap();
            if callee.ends_with(HAND_OVER) {
                hand_over += cost;
            } else if [
                "malloc",
                "calloc",
                "realloc",
                "posix_memalign",
                "aligned_alloc",
            ]
            .contains(&callee)
            {
                allocations += calls.split(' ').next().unwrap().parse::<u64>().unwrap();
            }
        }
    }
    Counted {
        instructions: total - hand_over,
        allocations,
    }
}

#[test]
fn costs_are_found_by_name_and_number() {
    let work = "fn=(1) work\n1 5\ncfn=(2) malloc\ncalls=3 0\n1 9\ncfn=(4) \
               plimsoll_load::recorder::Recorder::roll\ncalls=1 0\n+2 20\n";
    let other = "fn=(3) other\ncfn=(2)\ncalls=4 0\n1 9\ncfn=(1)\ncalls=8 0\n1 9\ntotals: 77\n";
    let counted = read(&[work, other].concat());
    assert_eq!((counted.instructions, counted.allocations), (57, 7));
}
