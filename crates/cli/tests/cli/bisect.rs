//! `bisect`: probes are campaigns of the store, and a search goes on where it was.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use plimsoll_store::Store;
use plimsoll_testkit::cached_build;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{LIMITS, Place, UNDECIDED, processes_in, text, wait, wait_until};

const PLAN: &str = r#"
name = "tests"
workload = "sysbench-2025"
comparable = false
builds = ["sqlite"]
configs = ["r1", "r2", "r3", "r4", "r5"]
base = "sqlite.r1"
verify = "end"
wait = "100ms"
tests = ["point-query", "update-nonindex"]
seed = 5
[sizes]
clients = 1
tables = 1
rows = "5K"
duration = "1s"
warm_up = "0ms"
[config.r1]
settings = { journal_mode = "wal", synchronous = "off" }
[config.r2]
settings = { journal_mode = "wal", synchronous = "off" }
[config.r3]
settings = { journal_mode = "delete", synchronous = "full" }
[config.r4]
settings = { journal_mode = "delete", synchronous = "full" }
[config.r5]
settings = { journal_mode = "delete", synchronous = "full" }
"#;

const SEARCH: [&str; 14] = [
    "bisect",
    "--plan",
    "plan.toml",
    "--good",
    "sqlite.r1",
    "--bad",
    "sqlite.r5",
    "--step",
    "update-nonindex",
    "--slices",
    "2",
    "--time",
    "6s",
    "--json",
];

fn campaigns(place: &Place) -> usize {
    Store::new(place.path("plimsoll-runs"))
        .campaigns()
        .unwrap()
        .len()
}

#[test]
fn an_interrupted_search_goes_on_and_a_finished_one_measures_nothing_more() {
    let place = Place::new();
    fs::write(place.path("plan.toml"), format!("{PLAN}{LIMITS}")).unwrap();
    let child = place.spawn(&SEARCH);
    wait_until("a trial of the first probe runs", || {
        let trials = fs::read_dir(place.path("plimsoll-runs"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("trials"));
        trials.flat_map(fs::read_dir).flatten().count() >= 2
    });
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(processes_in(place.dir.path()).is_empty());
    assert_eq!(campaigns(&place), 1);

    let output = place.run(&[&SEARCH[..], &["--resume"]].concat());
    let stderr = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 4)), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let builds = found["builds"].as_array().unwrap();
    let names: Vec<&str> = builds
        .iter()
        .map(|build| build["build"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "sqlite.r1",
            "sqlite.r2",
            "sqlite.r3",
            "sqlite.r4",
            "sqlite.r5"
        ]
    );
    let sum: f64 = builds
        .iter()
        .filter_map(|build| build["posterior"].as_f64())
        .sum();
    assert!(
        sum >= 1.0 - 1e-9 && builds[0]["posterior"].is_null(),
        "at least one step: {found:#}"
    );
    let made = found["campaigns"].as_array().unwrap().len();
    assert_eq!(
        made,
        campaigns(&place),
        "the broken campaign was finished, not repeated"
    );
    let lines = stderr
        .lines()
        .filter(|line| line.starts_with("steps: "))
        .count();
    // A start that others disturbed says so, and nothing of steps.
    let left_out = stderr
        .matches("all ratios of this start will be left out")
        .count();
    assert!(
        lines + left_out >= 2 * (made - 1),
        "the posterior is printed after each start: {stderr}"
    );

    // Two starts each, of the good build twice, the bad one and the probe.
    let first = Store::new(place.path("plimsoll-runs"))
        .find(found["campaigns"][0].as_str())
        .unwrap()
        .load()
        .unwrap();
    let cells: Vec<&str> = first
        .header
        .plan
        .cells
        .iter()
        .map(|cell| cell.label.as_str())
        .collect();
    let probe = first
        .header
        .confirm
        .as_ref()
        .unwrap()
        .bisection
        .as_ref()
        .unwrap()
        .probe
        .unwrap();
    assert_eq!(
        cells,
        ["sqlite.r1", "sqlite.r5", names[probe], "sqlite.r1#2"]
    );
    assert_eq!(first.header.schedule.len(), 8);

    if output.status.code() == Some(0) {
        let other_time: Vec<&str> = SEARCH
            .iter()
            .map(|word| if *word == "6s" { "3s" } else { *word })
            .collect();
        let again = place.run(&[&other_time[..], &["--resume"]].concat());
        assert_eq!((again.status.code(), campaigns(&place)), (Some(0), made));
        let stands = "the search goes on as it began, with --slices 2, --time 6.0s; to change \
                     that, begin another without --resume";
        assert!(
            text(&again.stderr).contains(stands) && !stderr.contains(stands),
            "{}",
            text(&again.stderr)
        );
        let again: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!(again["first_bad"], found["first_bad"]);
        assert_eq!(again["steps"], found["steps"]);
    }
}

/// Eight builds of SQLite: from the third on they write another journal, from the sixth on pages of
/// 64 KiB. Each takes more than half of the throughput, and none waits for the storage, so that no
/// other load of the machine moves a step. What is beyond is small: how often it is called, the
/// simulated searches count.
#[test]
fn both_of_two_regressions_are_found() {
    let place = Place::new();
    let config = |build: u32| {
        let settings = match build {
            1..=2 => "journal_mode = \"wal\"",
            3..=5 => "journal_mode = \"truncate\"",
            _ => "journal_mode = \"truncate\", page_size = 65536",
        };
        format!("[config.r{build}]\nsettings = {{ {settings}, synchronous = \"off\" }}\n")
    };
    let names: Vec<String> = (1..=8).map(|build| format!("\"r{build}\"")).collect();
    let five = r#"configs = ["r1", "r2", "r3", "r4", "r5"]"#;
    let head = PLAN.split("[config.r1]").next().unwrap();
    let plan = head.replace(five, &format!("configs = [{}]", names.join(", ")))
        + LIMITS
        + &(1..=8).map(config).collect::<String>();
    fs::write(place.path("plan.toml"), plan).unwrap();
    let search: Vec<&str> = SEARCH
        .iter()
        .map(|word| match *word {
            "sqlite.r5" => "sqlite.r8",
            "6s" => "4s",
            word => word,
        })
        .chain(["--probes", "24"])
        .collect();
    let output = place.run(&search);
    let stderr = text(&output.stderr);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let steps = found["steps"].as_array().unwrap();
    let planted = [("sqlite.r2", "sqlite.r3"), ("sqlite.r5", "sqlite.r6")];
    let large: Vec<(&str, &str)> = steps
        .iter()
        .filter(|step| step["probability"].as_f64() >= Some(0.95))
        .filter(|step| !(0.7..1.4).contains(&step["ratio"].as_f64().unwrap()))
        .map(|step| {
            let builds = (step["before"].as_str(), step["builds"][0].as_str());
            (builds.0.unwrap(), builds.1.unwrap())
        })
        .collect();
    if output.status.code() == Some(UNDECIDED) {
        assert!(large.iter().all(|at| planted.contains(at)), "{found:#}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(large, planted, "{found:#}");
    for step in steps {
        assert_eq!(step["builds"].as_array().unwrap().len(), 1, "{found:#}");
        let interval = &step["interval"];
        let (low, high) = (interval["low"].as_f64(), interval["high"].as_f64());
        let ratio = step["ratio"].as_f64();
        assert!(low < ratio && ratio < high, "{found:#}");
    }
    assert!(
        stderr.contains("probe: sqlite.r4 (about 3 to go, at most 24)"),
        "{stderr}"
    );
    // Without --json the same in words; nothing is measured for it.
    let made = campaigns(&place);
    let again: Vec<&str> = search
        .iter()
        .copied()
        .filter(|word| *word != "--json")
        .collect();
    let output = place.run(&[&again[..], &["--resume"]].concat());
    let said = text(&output.stdout);
    assert_eq!((output.status.code(), campaigns(&place)), (Some(0), made));
    let title = format!("update-nonindex: {} steps\n", steps.len());
    assert!(said.starts_with(&title), "{said}");
    for (before, build) in planted {
        let line = said
            .lines()
            .find(|line| line.starts_with(&format!("{build}: -")));
        assert!(
            line.is_some_and(|line| line.contains(&format!("against {before} ("))),
            "{said}"
        );
    }
}

#[test]
fn what_cannot_be_searched_is_said() {
    let place = Place::new();
    fs::write(place.path("plan.toml"), PLAN).unwrap();
    fs::write(place.path("commits.txt"), "a\nb; rm\nc\n").unwrap();
    let search = |good: &'static str, bad: &'static str, step: &'static str| {
        vec![
            "bisect",
            "--plan",
            "plan.toml",
            "--good",
            good,
            "--bad",
            bad,
            "--step",
            step,
        ]
    };
    let with = |more: &[&'static str]| [&search("a", "c", "point-query")[..], more].concat();
    for (arguments, expected) in [
        (
            search("sqlite.r4", "sqlite.r2", "point-query"),
            "sqlite.r4 does not come before sqlite.r2",
        ),
        (
            search("sqlite.r1", "sqlite.r6", "point-query"),
            "--bad sqlite.r6 is not one of the builds",
        ),
        (
            search("sqlite.r1", "sqlite.r5", "point-qery"),
            "there is no step point-qery (did you mean \"point-query\"?)",
        ),
        (
            [
                &search("sqlite.r1", "sqlite.r5", "point-query")[..],
                &["--resume"],
            ]
            .concat(),
            "there is no search of sqlite.r1 to sqlite.r5",
        ),
        (
            with(&["--commits", "commits.txt", "--command", "make {commit}"]),
            "the commit \"b;\" is not a hash or tag",
        ),
        (
            with(&["--commits", "commits.txt", "--command", "make"]),
            "write {commit} where the commit goes",
        ),
        (
            with(&["--commits", "no.txt", "--command", "make {commit}"]),
            "the commits no.txt cannot be read",
        ),
        (
            with(&["--recipe", "postgres", "--source", "."]),
            "has no revision a; look with `git log`",
        ),
        (
            vec!["bisect", "--good", "a", "--bad", "b", "--step", "x"],
            "there is no campaign",
        ),
    ] {
        let output = place.run(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        assert!(
            !stderr.contains("probe: ") && !stderr.contains("build alone"),
            "it is reported before the search begins: {stderr}"
        );
    }
    assert_eq!(campaigns(&place), 0, "no campaign was made");
}

/// The same release under four labels, the later ones with every statement logged, and how it is
/// planned: so slow that no noise hides it.
#[test]
fn the_release_that_began_to_log_is_found() {
    let Some(build) = cached_build(
        "cli::bisect::the_release_that_began_to_log_is_found",
        "postgres@18",
    ) else {
        return;
    };
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let quiet = "shared_buffers = \"64MB\", fsync = \"off\"";
    let config = |label: u32| {
        let logging = if label >= 3 {
            ", log_statement = \"all\", debug_print_parse = \"on\", debug_print_rewritten = \
            \"on\", debug_print_plan = \"on\", log_parser_stats = \"on\", log_planner_stats = \
            \"on\", log_executor_stats = \"on\""
        } else {
            ""
        };
        format!("[config.r{label}]\nsettings = {{ {quiet}{logging} }}\n")
    };
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = [\"{}\"]\n\
         configs = [\"r1\", \"r2\", \"r3\", \"r4\"]\nwait = \"100ms\"\nseed = \
        3\ntests = [\"point-query\"]\n\
         [sizes]\nclients = 1\ntables = 1\nrows = \"5K\"\nduration = \"1s\"\nwarm_up = \
        \"0ms\"\nprepared = false\n{LIMITS}{}",
        build.name,
        (1..=4).map(config).collect::<String>()
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let (good, bad) = (format!("{}.r1", build.name), format!("{}.r4", build.name));
    let cache = build.cache.to_str().unwrap();
    let search = [
        "bisect",
        "--plan",
        "plan.toml",
        "--good",
        &good,
        "--bad",
        &bad,
        "--step",
        "point-query",
        "--slices",
        "1",
        "--time",
        "3s",
        "--json",
        "--cache",
        cache,
    ];
    // What other tests do to its turns may once be more than its probes can decide.
    let mut output = place.run(&search);
    if output.status.code() == Some(UNDECIDED) {
        output = place.run(&search);
    }
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        found["first_bad"],
        format!("{}.r3", build.name),
        "{stderr}\n{found:#}"
    );
    assert!(
        found["probability"].as_f64().unwrap() >= 0.95 && found["ratio"].as_f64().unwrap() < 1.0,
        "{found:#}"
    );
    assert_eq!(processes_in(place.dir.path()), Vec::<u32>::new());
}
