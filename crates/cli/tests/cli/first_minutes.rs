//! What a newcomer types: `run` of a plan that asks for verdicts, `init`, `doctor`, completions.

use std::fs;

use plimsoll_store::{CampaignRecord, Design, Store};

use crate::support::{Place, UNDECIDED, text};

fn newest(place: &Place) -> CampaignRecord {
    Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap()
}

/// The quick plan, as small as it can be. SQLite without fsync is several times as fast in the
/// steps that commit often.
fn quick(place: &Place) {
    let plan = "name = \"tiny\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\n\
                configs = [\"wal_full\", \"wal_off\"]\ncomparable = false\nwait = \"10ms\"\n\
                seed = 7\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\n\
                [verdicts]\nblocks = 6\n\
                [sizes]\nrows = \"5K\"\nwrite_rows = \"1K\"\nduration = \"100ms\"\n";
    fs::write(place.path("tiny.toml"), plan).unwrap();
}

#[test]
fn a_run_ends_in_verdicts_and_its_open_steps_can_be_confirmed() {
    let place = Place::new();
    quick(&place);
    let output = place.run(&["run", "tiny.toml"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code();
    assert!(matches!(code, Some(0 | UNDECIDED)), "{stderr}");
    assert!(
        stdout.contains("Throughput relative to sqlite.wal_full: ratio, 95 % interval, verdict"),
        "{stdout}"
    );
    assert!(
        stdout.contains("sqlite.wal_full#2 (A/A, 99 %)") && stdout.contains("A/A control: "),
        "{stdout}"
    );
    assert!(stdout.lines().count() < 30, "one screen: {stdout}");
    let campaign = newest(&place);
    let confirm = campaign.header.confirm.as_ref().unwrap();
    assert!(
        campaign.header.id.ends_with("-tiny"),
        "{}",
        campaign.header.id
    );
    assert_eq!(
        (confirm.of.as_ref(), confirm.design, confirm.blocks),
        (None, Design::Blocks, Some(6))
    );
    assert_eq!(confirm.steps, ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]);
    // As often as was forecast, however busy the machine is.
    assert_eq!(campaign.trials.len(), 18);
    assert!(campaign.trials.iter().all(|trial| trial.attempt == 1));

    // The same again under --resume runs nothing.
    let again = place.run(&["run", "tiny.toml", "--resume"]);
    assert_eq!(again.status.code(), code, "{}", text(&again.stderr));
    assert_eq!(newest(&place).header.id, campaign.header.id);

    // A campaign with verdicts is a survey, too.
    let more = place.run(&[
        "confirm",
        "--step",
        "qr100",
        "--cells",
        "sqlite.wal_full,sqlite.wal_off",
        "--starts",
        "1",
        "--time",
        "100ms",
    ]);
    assert_eq!(
        more.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&more.stderr)
    );
    let confirmed = newest(&place).header;
    let of = confirmed.confirm.as_ref().unwrap().of.clone();
    assert_eq!(of, Some(campaign.header.id));
    assert_eq!(confirmed.cells.len(), 3, "the control is not a candidate");
}

#[test]
fn a_screen_runs_each_cell_once() {
    let place = Place::new();
    quick(&place);
    let output = place.run(&["run", "tiny.toml", "--screen"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let campaign = newest(&place);
    assert_eq!((campaign.header.confirm, campaign.trials.len()), (None, 2));
}

#[test]
fn a_plan_is_confirmed_without_a_campaign_before() {
    let place = Place::new();
    quick(&place);
    let output = place.run(&[
        "confirm",
        "tiny.toml",
        "--step",
        "qr100",
        "--starts",
        "1",
        "--time",
        "100ms",
    ]);
    assert_eq!(
        output.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(newest(&place).header.confirm.unwrap().of, None);
}

/// `run` of a plan of seconds, and `confirm` of its campaign: it had 45 minutes.
#[test]
fn a_campaign_by_slices_is_confirmed_within_the_budget_of_its_plan() {
    let place = Place::new();
    let plan = "name = \"by-slices\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\n\
                configs = [\"wal_normal\", \"wal_off\"]\ncomparable = false\nwait = \"10ms\"\n\
                tests = [\"point-query\"]\n[verdicts]\nbudget = \"6s\"\nreads = \"99%\"\n\
                [sizes]\ntables = 1\nrows = \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n";
    fs::write(place.path("s.toml"), plan).unwrap();
    place.run(&["run", "s.toml"]);
    let of_plan = newest(&place).header.confirm.unwrap();
    let output = place.run(&["confirm", "--all"]);
    let confirm = newest(&place).header.confirm.unwrap();
    assert!(confirm.of.is_some(), "{}", text(&output.stderr));
    assert_eq!(confirm.budget, of_plan.budget);
    // The forecast has the same.
    let json = place.run(&["plan", "explain", "s.toml", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["confirm"]["slices"]["seconds"], 6.0);
}

#[test]
fn a_plan_by_slices_is_within_its_budget_and_says_what_it_will_take() {
    let place = Place::new();
    let plan = "name = \"by-slices\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\n\
                configs = [\"wal_normal\", \"wal_off\"]\ncomparable = false\nwait = \"10ms\"\n\
                tests = [\"point-query\", \"update-index\"]\n[verdicts]\nbudget = \"8s\"\n\
                reads = \"5%\"\nwrites = \"9%\"\n\
                [sizes]\ntables = 1\nrows = \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n";
    fs::write(place.path("s.toml"), plan).unwrap();
    let explained = text(&place.run(&["plan", "explain", "s.toml"]).stdout);
    assert!(
        explained.contains(
            "verdicts by slices within 8.0s, 4.0s for each of 2 steps with its share of loads and \
            restarts; a step that reads ends early if it is known within +-5.0 %, one that writes \
            within +-9.0 %"
        ),
        "{explained}"
    );
    let output = place.run(&["run", "s.toml"]);
    assert!(
        matches!(output.status.code(), Some(0 | UNDECIDED)),
        "{}",
        text(&output.stderr)
    );
    let confirm = newest(&place).header.confirm.unwrap();
    assert_eq!(confirm.design, Design::Slices);
    assert_eq!(confirm.budget.unwrap().writes, 0.09);
}

#[test]
fn init_writes_a_plan_that_is_there_to_be_run_and_no_file_is_lost() {
    let place = Place::new();
    let init = ["init", "--builds", "sqlite", "--out", "mine.toml"];
    let output = place.run(&init);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        stdout.starts_with("wrote mine.toml") && stdout.ends_with("Next: plimsoll run mine.toml\n"),
        "{stdout}"
    );
    assert!(stdout.contains("verdicts by slices within 10m"), "{stdout}");
    let written = fs::read_to_string(place.path("mine.toml")).unwrap();
    let again = place.run(&init);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("mine.toml is there already"));
    assert_eq!(
        fs::read_to_string(place.path("mine.toml")).unwrap(),
        written
    );
    // Nobody is there to be asked.
    let asked = place.run(&["init", "--out", "other.toml"]);
    assert_eq!(asked.status.code(), Some(2));
    assert!(
        text(&asked.stderr).contains("say what to compare: --builds"),
        "{}",
        text(&asked.stderr)
    );
    for (arguments, expected) in [
        (&["--builds", "mysql@1.0"][..], "mysql@1.0"),
        (&["--server", "nonsense"], "write a name and the dsn"),
        (
            &["--builds", "sqlite", "--server", "a=mysql://b@h/d"],
            "servers alone",
        ),
        (&["--basedir", "/nowhere/at/all"], "/nowhere/at/all"),
        (&["--builds", "sqlite", "--workload", "sysbnch"], "sysbnch"),
        (
            &["--builds", "sqlite", "--tests", "point-qery"],
            "point-qery",
        ),
        (
            &["--builds", "sqlite,sqlite"],
            "sqlite is named twice: the base runs a second time without that",
        ),
        (
            &[
                "--builds",
                "sqlite",
                "--workload",
                "app.toml",
                "--rows",
                "5",
            ],
            "--rows is not for a workload file: app.toml says them in its tables",
        ),
    ] {
        let all = [&["init", "--out", "other.toml"][..], arguments].concat();
        let refused = place.run(&all);
        assert_ne!(refused.status.code(), Some(0), "{arguments:?}");
        assert!(
            text(&refused.stderr).contains(expected),
            "{arguments:?}: {}",
            text(&refused.stderr)
        );
        assert!(!place.path("other.toml").exists());
    }
}

#[test]
fn the_doctor_has_a_remedy_for_each_warning() {
    let place = Place::new();
    let output = place.run(&["doctor", "--json"]);
    assert!(
        matches!(output.status.code(), Some(0 | 5)),
        "{}",
        text(&output.stderr)
    );
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = findings.as_array().unwrap();
    assert!(findings.len() > 15);
    for finding in findings {
        let is_bad = ["warn", "fail"].contains(&finding["status"].as_str().unwrap());
        assert_eq!(finding["remedy"].is_object(), is_bad, "{finding}");
    }
    let words = text(&place.run(&["doctor"]).stdout);
    assert!(words.contains("Fine ("), "{words}");
    // It named the same command below each of three checks, and spoke of turns.
    let mut commands: Vec<&str> = words
        .lines()
        .filter(|line| line.starts_with("      $ "))
        .collect();
    let all = commands.len();
    commands.sort_unstable();
    commands.dedup();
    assert!(commands.len() == all && !words.contains("turn"), "{words}");
}

/// `init` scrolled its summary away, said nothing of a server that it did not contact, and listed
/// all versions as the nearest ones.
#[test]
fn init_ends_in_a_few_lines() {
    let place = Place::new();
    let init = |arguments: &[&str]| {
        let output =
            place.run(&[&["init", "--force", "--out", "my plan.toml"][..], arguments].concat());
        (text(&output.stdout), text(&output.stderr))
    };
    let (stdout, stderr) = init(&["--builds", "sqlite"]);
    let (_, summary) = stdout
        .split_once("\n\n")
        .unwrap_or_else(|| panic!("{stderr}"));
    assert!(
        summary.lines().count() <= 6
            && summary.contains("verdicts by slices within 10m")
            && summary.contains(
                "sqlite runs twice, alike as yet: write what differs under \
                [config.other.settings] at the end of my plan.toml, or name a second build"
            )
            && summary.ends_with(
                "Step by step: plimsoll plan explain 'my plan.toml'\nNext: plimsoll run 'my plan.toml'\n"
            ),
        "{stdout}"
    );
    let (stdout, _) = init(&["--builds", "sqlite", "--workload", "insert-benchmark"]);
    assert!(
        stdout.contains("blocks find differences from ") && stdout.lines().count() <= 8,
        "{stdout}"
    );
    let (stdout, _) = init(&["--server", "prod=postgres://b@nowhere.invalid/db"]);
    assert!(stdout.contains("no server was contacted: "), "{stdout}");
    let (_, stderr) = init(&["--builds", "mysql@8.0.99"]);
    assert!(
        stderr.ends_with(
            "the nearest are: mysql@9.7, mysql@8.0.33, mysql@8.0.15 and 7 more, see `plimsoll \
            build list`\n"
        ),
        "{stderr}"
    );
}

/// What a newcomer mistypes or does not know yet had no hint.
#[test]
fn the_first_mistakes_have_a_way_out() {
    let place = Place::new();
    let cases: [(&[&str], &str); 8] = [
        (
            &["run", "nosuch.toml"],
            "`plimsoll init` writes one for what you have",
        ),
        (
            &[
                "gate",
                "nosuch.toml",
                "--candidate",
                "a",
                "--max-regression",
                "3%",
            ],
            "there is no plan file nosuch.toml; `plimsoll init` writes one",
        ),
        (
            &["confirm", "nosuch.toml"],
            "there is no plan file nosuch.toml; `plimsoll init` writes one",
        ),
        (
            &[
                "gate",
                "--candidate",
                "a",
                "--max-regression",
                "3%",
                "--accept",
                "nosuch",
            ],
            "leave --accept out if there are none",
        ),
        (&["quick"], "quick is a plan: plimsoll run quick\n"),
        (
            &["small.toml"],
            "small.toml is a plan: plimsoll run small.toml\n",
        ),
        (
            &["init", "--builds", "msql@8"],
            "this version knows sqlite, mysql, mariadb, postgres, rocksdb (did you mean \"mysql\"?)",
        ),
        (
            &["init", "--builds", "sqlite", "--workload", "sysbnch"],
            "unknown workload \"sysbnch\" (did you mean one of sysbench-2025, sysbench-2023?)",
        ),
    ];
    for (arguments, expected) in cases {
        let output = place.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let help = text(&place.run(&["--help"]).stdout);
    assert!(
        help.starts_with("Start here:\n  plimsoll run ") && help.contains("\n  plimsoll init "),
        "{help}"
    );
}

/// The program took no notice of it.
#[test]
fn builds_are_in_the_cache_that_the_variable_names() {
    let place = Place::new();
    let of = |cache: &str, arguments: &[&str]| {
        let mut command = place.command(arguments);
        let output = command.env("PLIMSOLL_CACHE", cache).output().unwrap();
        (
            output.status.code(),
            text(&output.stdout) + &text(&output.stderr),
        )
    };
    let build = place.path("cache/builds/postgres+mine");
    fs::create_dir_all(&build).unwrap();
    fs::write(build.join("build.json"), "{}").unwrap();
    let cache = place.path("cache");
    let (_, found) = of(cache.to_str().unwrap(), &["build", "check"]);
    assert!(found.contains("postgres+mine"), "{found}");
    let empty = place.path("empty");
    let (_, found) = of(
        cache.to_str().unwrap(),
        &["--cache", empty.to_str().unwrap(), "build", "check"],
    );
    assert!(
        !found.contains("postgres+mine"),
        "--cache comes first: {found}"
    );
    let (code, error) = of("some/where", &["build", "check"]);
    assert_eq!(code, Some(2));
    assert!(
        error.contains("PLIMSOLL_CACHE is some/where: it must be an absolute path"),
        "{error}"
    );
}

#[test]
fn completions_and_the_manual_know_every_verb() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&place.run(&["completions", shell]).stdout);
        assert!(
            script.contains("bisect") && script.contains("max-regression"),
            "{shell}"
        );
    }
    let output = place.run(&["manual", "man"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let page = fs::read_to_string(place.path("man/plimsoll-gate.1")).unwrap();
    assert!(page.contains("max\\-regression"), "{page}");
    assert!(!place.path("man/plimsoll-trial.1").exists());
}
