//! Bad input: one clear error that names the place and the way out, the right exit code, and
//! nothing changed.

use crate::support::{Place, SMALL_PLAN, text};

/// Runs and returns the error. Nothing may have been written.
#[track_caller]
fn refused(place: &Place, arguments: &[&str], exit_code: i32) -> String {
    let before: Vec<_> = std::fs::read_dir(place.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let output = place.run(arguments);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(exit_code), "{stderr}");
    assert!(
        output.stdout.is_empty(),
        "results on stdout beside an error: {}",
        text(&output.stdout)
    );
    let mut after: Vec<_> = std::fs::read_dir(place.dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    after.retain(|name| !before.contains(name));
    assert!(after.is_empty(), "left behind: {after:?}");
    stderr
}

#[test]
fn bad_plans_are_refused_with_their_place() {
    let cases = [
        (
            SMALL_PLAN.replace("[\"sqlite\"]", "[\"sqlit\"]"),
            "plan.toml:4:11: unknown engine \"sqlit\"",
            "did you mean \"sqlite\"?",
        ),
        (
            SMALL_PLAN
                .replace("[\"sqlite\"]", "[\"sqlite@2\"]")
                .replace("sqlite.wal_full", "sqlite@2.wal_full"),
            "there is no build sqlite@2+source",
            "the nearest are: sqlite@3.13.0",
        ),
        (
            SMALL_PLAN.replace("\"wal_off\"]", "\"wal_of\"]"),
            "there is no config \"wal_of\" for sqlite (did you mean \"wal_off\"?",
            "[config.wal_of]",
        ),
        (
            format!("{SMALL_PLAN}[config.wal_off]\nfile = \"missing.conf\"\n"),
            "missing.conf cannot be read",
            "relative to the plan's folder",
        ),
        (
            format!("{SMALL_PLAN}[config.wal_off]\nsettings = {{ sinchronous = \"off\" }}\n"),
            "sinchronous",
            "synchronous",
        ),
        (
            SMALL_PLAN.replace("duration", "clients = 0\nduration"),
            "clients must be 1 to 4,096, not 0",
            "plan.toml:",
        ),
        (
            SMALL_PLAN.replace("\"20K\"", "200"),
            "l.i1 deletes in transactions of 50 rows",
            "load at least",
        ),
        (
            SMALL_PLAN.replace("\"2K\"", "\"50M\""),
            "l.i1 would delete",
            "lower write_rows or raise rows",
        ),
        (
            SMALL_PLAN
                .replace("blocks", "block")
                .replace("wait =", "wiat ="),
            "unknown key \"wiat\"",
            "did you mean \"wait\"?",
        ),
        ("name = ".to_owned(), "plan.toml:1:", ""),
    ];
    for (plan, wanted, way_out) in cases {
        let place = Place::new();
        std::fs::write(place.path("plan.toml"), &plan).unwrap();
        let error = refused(&place, &["run", "plan.toml"], 2);
        assert!(
            error.contains(wanted) && error.contains(way_out),
            "wanted {wanted:?} and {way_out:?}\nfound {error:?}\nin {plan}"
        );
        let error = refused(&place, &["plan", "check", "plan.toml"], 2);
        assert!(error.contains(wanted), "plan check: {error}");
    }
}

#[test]
fn a_foreign_data_folder_is_refused_and_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    std::fs::write(place.path("data/thesis.tex"), "precious").unwrap();
    let error = refused(&place, &["run", "small.toml"], 2);
    assert!(
        error.contains("is not empty and is not ours") && error.contains("--data DIR"),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(place.path("data")).unwrap().count(), 1);
}

#[test]
fn a_disk_that_is_too_small_is_predicted() {
    let place = Place::new();
    std::fs::write(
        place.path("huge.toml"),
        SMALL_PLAN.replace("\"20K\"", "\"900G\""),
    )
    .unwrap();
    let error = refused(&place, &["run", "huge.toml"], 5);
    assert!(
        error.contains("the disk is too small") && error.contains("lower rows"),
        "{error}"
    );
}

#[test]
fn what_is_not_there_is_named() {
    let place = Place::new();
    for (arguments, wanted) in [
        (
            &["run", "nowhere.toml"][..],
            "there is no plan file nowhere.toml",
        ),
        (&["run", "quik"], "did you mean \"quick\"?"),
        (&["show"], "plimsoll-runs"),
        (&["show", "20200101T000000Z-x"], "20200101T000000Z-x"),
        (&["resume"], "plimsoll-runs"),
        (
            &["workload", "show", "insert-benchmak"],
            "did you mean \"insert-benchmark\"?",
        ),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["trial"], "`trial` is internal"),
    ] {
        let error = refused(&place, arguments, 2);
        assert!(error.contains(wanted), "{arguments:?}: {error}");
    }
}

#[test]
fn a_file_changed_after_its_trial_is_pointed_out() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    let clean = place.run(&["report", "--format", "tsv"]);
    assert!(clean.stderr.is_empty(), "{}", text(&clean.stderr));
    let log = place.event_files()[0].parent().unwrap().join("l.i0.hlog");
    std::fs::write(&log, "#[StartTime: 0]\n").unwrap();
    let warned = place.run(&["report", "--format", "tsv"]);
    assert_eq!(warned.status.code(), Some(0));
    assert!(
        text(&warned.stderr).contains("l.i0.hlog was changed after its trial ended"),
        "{}",
        text(&warned.stderr)
    );
    // It was in that line alone, which nobody sees who has the page.
    let note = "Files are not as they were sealed, and numbers may not be what was measured: ";
    for verb in [&["show"][..], &["report", "--format", "md"]] {
        let shown = text(&place.run(verb).stdout);
        let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(note) && words.contains("l.i0.hlog was changed"),
            "{verb:?}: {shown}"
        );
    }
    assert_eq!(place.run(&["report"]).status.code(), Some(0));
    let page = std::fs::read_to_string(place.campaign().join("report/index.html")).unwrap();
    assert!(page.contains(note), "the page has it, too");
}

#[test]
fn an_edited_events_file_costs_its_trial_and_resume_runs_it_again() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    let file = place.event_files().remove(0);
    let original = std::fs::read_to_string(&file).unwrap();
    let edited = original.replacen("\"step\":\"l.x\"", "\"step\":\"l.y\"", 1);
    assert_ne!(original, edited);
    std::fs::write(&file, edited).unwrap();
    let shown = place.run(&["show"]);
    let tables = text(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    assert!(
        tables.contains("damaged") && tables.contains("events.jsonl, line "),
        "{tables}"
    );
    let page = place.run(&["report", "--format", "md"]);
    assert!(
        text(&page.stdout).contains("are damaged"),
        "{}",
        text(&page.stdout)
    );
    let resumed = place.run(&["resume"]);
    let words = text(&resumed.stderr);
    assert_eq!(resumed.status.code(), Some(0), "{words}");
    assert!(
        words.contains("runs again, because attempt 1 is damaged: events.jsonl"),
        "{words}"
    );
    let again = text(&place.run(&["resume"]).stderr);
    assert!(
        again.contains("complete: nothing is left to run"),
        "{again}"
    );
    let again = text(&place.run(&["show"]).stdout);
    assert!(!again.contains("! damaged"), "{again}");
    // A torn last line is what a power cut leaves: it is forgiven.
    let file = place.event_files().pop().unwrap();
    let original = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, &original[..original.len() - 10]).unwrap();
    assert_eq!(place.run(&["show"]).status.code(), Some(0));
}

#[test]
fn a_command_prefix_is_checked_before_anything_runs_and_recorded_when_it_fails() {
    let place = Place::new();
    let plan = |prefix: &str| format!("{SMALL_PLAN}[config.wal_off]\nprefix = [{prefix}]\n");
    std::fs::write(place.path("plan.toml"), plan("\"numactll\"")).unwrap();
    let error = refused(&place, &["run", "plan.toml"], 2);
    assert!(
        error.contains("[config.wal_off] prefix: there is no program numactll in PATH"),
        "{error}"
    );

    std::fs::write(
        place.path("plan.toml"),
        plan("\"sh\", \"-c\", \"echo no such node >&2; exit 3\""),
    )
    .unwrap();
    let output = place.run(&["run", "plan.toml"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let shown = text(&place.run(&["show"]).stdout);
    assert!(
        shown.contains("the trial did not start (exit status 3): no such node"),
        "{shown}"
    );
}

#[test]
fn a_campaign_stays_in_its_data_folder() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    std::fs::create_dir(place.path("other")).unwrap();
    let output = place.run(&["--data", "other", "resume"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

/// `init` named line 14 of a plan that it had not written.
#[test]
fn init_points_into_no_plan_that_is_not_there() {
    let place = Place::new();
    let builds = ["init", "--builds", "sqlite,mysql@8.0.33"];
    let output =
        place.run(&[&builds[..], &["--tests", "point-querry", "--out", "x.toml"]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no plan was written: "), "{said}");
    assert!(
        !said.contains("x.toml") && !place.path("x.toml").exists(),
        "{said}"
    );
}
