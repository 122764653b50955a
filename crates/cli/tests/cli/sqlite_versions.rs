//! SQLite's versions: made of their one file, loaded one per process, measured next to each other
//! and to the one in this program.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use plimsoll_store::Store;
use plimsoll_store::event::Event;
use plimsoll_testkit::cached_build;
use serde_json::Value;

use crate::support::{LIMITS, Place, text};

/// Hardly optimised, so that a version is made in seconds.
const QUICK: &str = "quick = \"-O0\"\n\
    quick_links = { options = \"-O0 -ffunction-sections\", links = 4 }\n";

/// Sources that `make servers` fetched, as files of C.
fn sources(test: &str) -> Option<[(&'static str, PathBuf); 2]> {
    let find = |version: &'static str, folder: &str| {
        let name = format!("sqlite@{version}+source-o2nofp");
        let build = cached_build(&format!("cli::sqlite_versions::{test}"), &name)?;
        let file = build.cache.join("sources").join(folder).join("sqlite3.c");
        if !file.is_file() {
            let reason = format!("{} is gone; make {name} again", file.display());
            plimsoll_testkit::skip(&format!("cli::sqlite_versions::{test}"), &reason);
            return None;
        }
        Some((version, file))
    };
    Some([
        find("3.13.0", "cargo-libsqlite3-sys-0.6.0")?,
        find("3.39.2", "cargo-libsqlite3-sys-0.25.1")?,
    ])
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    fs::create_dir_all(place.path("cache")).unwrap();
    fs::write(place.path("cache/flags.toml"), QUICK).unwrap();
    let mut command = place.command(arguments);
    command.args(["--cache", "cache"]);
    command
}

fn succeed(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

fn make(place: &Place, source: &str, label: &str) -> Output {
    make_with(place, source, label, "quick")
}

fn make_with(place: &Place, source: &str, label: &str, flags: &str) -> Output {
    let arguments = ["build", "make", "sqlite", "--source", source];
    let more = ["--flags", flags, "--label", label];
    command(place, &[&arguments[..], &more].concat())
        .output()
        .unwrap()
}

#[test]
fn versions_are_made_of_their_file_and_run_beside_the_bundled_one() {
    let Some(sources) = sources("versions_are_made_of_their_file_and_run_beside_the_bundled_one")
    else {
        return;
    };
    let place = Place::new();
    let labels = ["old", "newer"];
    for ((version, file), label) in sources.iter().zip(labels) {
        // The first as a file, the second as a folder that holds it.
        fs::create_dir_all(place.path("amalgamation")).unwrap();
        fs::copy(file, place.path("amalgamation/sqlite3.c")).unwrap();
        let given = match label {
            "old" => file.to_str().unwrap(),
            _ => "amalgamation",
        };
        let made = make(&place, given, label);
        succeed(&made);
        let line = text(&made.stdout);
        assert!(
            line.starts_with(&format!("sqlite+{label}  {version}  ")),
            "{line}"
        );
        let shown = command(
            &place,
            &["build", "show", &format!("sqlite+{label}"), "--json"],
        )
        .output()
        .unwrap();
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let toolchain = &shown["build"]["toolchain"];
        // The compiler adds the processor that it was set up for.
        let optimisation = toolchain["optimisation"].as_str().unwrap();
        assert_eq!(
            optimisation.split(' ').next(),
            Some("-O0"),
            "{optimisation}"
        );
        let options = toolchain["compile_options"].as_str().unwrap();
        assert!(
            options.contains("THREADSAFE=1") && options.contains("ENABLE_STAT4"),
            "{options}"
        );
        assert!(toolchain["source_id"].as_str().unwrap().starts_with("20"));
    }

    let plan = crate::support::SMALL_PLAN
        .replace(
            "builds = [\"sqlite\"]",
            "builds = [\"sqlite\", \"sqlite+old\", \"sqlite+newer\"]",
        )
        .replace("\"wal_full\", ", "")
        .replace("sqlite.wal_full", "sqlite+old.wal_off");
    fs::write(place.path("plan.toml"), plan).unwrap();
    let ran = command(&place, &["run", "plan.toml", "--seed", "3"])
        .output()
        .unwrap();
    succeed(&ran);
    let campaign = Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap();
    for (cell, version) in [
        ("sqlite.wal_off", rusqlite::version()),
        ("sqlite+old.wal_off", "3.13.0"),
        ("sqlite+newer.wal_off", "3.39.2"),
    ] {
        let trial = campaign
            .trials
            .iter()
            .find(|trial| {
                trial.events.iter().any(|stamped| {
                    matches!(&stamped.event, Event::TrialStart(start) if start.cell == cell)
                })
            })
            .unwrap_or_else(|| panic!("no trial of {cell}"));
        let ready = trial
            .events
            .iter()
            .find_map(|stamped| match &stamped.event {
                Event::ServerReady(ready) => Some(ready),
                _ => None,
            });
        let ready = ready.unwrap();
        assert_eq!(ready.version, version, "{cell}");
        let has = |text: &str| ready.build_options.iter().any(|option| option == text);
        assert!(has("THREADSAFE=1"), "{cell}: {:?}", ready.build_options);
    }
}

/// Four libraries of one object file; each start runs the next one, and all candidates the same.
#[test]
fn each_start_runs_another_link_of_a_build() {
    let Some(sources) = sources("each_start_runs_another_link_of_a_build") else {
        return;
    };
    let place = Place::new();
    let (_, file) = &sources[1];
    succeed(&make_with(
        &place,
        file.to_str().unwrap(),
        "many",
        "quick_links",
    ));
    let show = |more: &[&str]| {
        let arguments = [&["build", "show", "sqlite+many"], more].concat();
        command(&place, &arguments).output().unwrap().stdout
    };
    let shown: Value = serde_json::from_slice(&show(&["--json"])).unwrap();
    let links = shown["build"]["links"].as_array().unwrap();
    let mut sums: Vec<&str> = links
        .iter()
        .map(|of| of["sha256"].as_str().unwrap())
        .collect();
    assert_eq!(shown["build"]["server_sha256"], sums[0]);
    assert_eq!(shown["build"]["server"], links[0]["server"]);
    sums.sort_unstable();
    sums.dedup();
    assert_eq!(sums.len(), 4, "{shown:#}");
    let lines = text(&show(&[]));
    assert_eq!(lines.matches("\nlink ").count(), 4, "{lines}");
    // The same functions, in another order.
    let functions = |number: usize| {
        let server = links[number]["server"].as_str().unwrap();
        let names = Command::new("nm").args(["-n", server]).output().unwrap();
        let names = text(&names.stdout);
        let of_line = |line: &str| {
            let name = line.split(" t sqlite3").nth(1)?;
            Some(name.to_owned())
        };
        names.lines().filter_map(of_line).collect::<Vec<String>>()
    };
    let (mut first, mut second) = (functions(0), functions(1));
    assert!(first.len() > 500 && first != second, "{}", first.len());
    first.sort_unstable();
    second.sort_unstable();
    assert_eq!(first, second);

    let plan = crate::support::SMALL_PLAN
        .replace("builds = [\"sqlite\"]", "builds = [\"sqlite+many\"]")
        .replace("sqlite.wal_full", "sqlite+many.wal_full");
    fs::write(place.path("plan.toml"), plan + LIMITS).unwrap();
    let confirm = ["confirm", "plan.toml", "--step", "qr100", "--time", "2s"];
    let more = ["--starts", "5", "--slices", "20ms", "--placement", "none"];
    let ran = command(&place, &[&confirm[..], &more].concat())
        .output()
        .unwrap();
    let stderr = text(&ran.stderr);
    assert!(matches!(ran.status.code(), Some(0 | 4)), "{stderr}");
    let campaign = Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap();
    let header = &campaign.header;
    assert_eq!(header.confirm.as_ref().unwrap().loads, Some(4));
    let build = header.cells[0].build.as_ref().unwrap();
    assert_eq!(build.links.len(), 4);
    for trial in &campaign.trials {
        let start = trial
            .events
            .iter()
            .find_map(|stamped| match &stamped.event {
                Event::TrialStart(start) => Some(start),
                _ => None,
            });
        let start = start.unwrap();
        let expected = (start.block - 1) % 4 + 1;
        assert_eq!((start.load, start.link), (Some(expected), Some(expected)));
    }
    let shown = command(&place, &["show", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let lines = text(&command(&place, &["show"]).output().unwrap().stdout);
    assert!(
        lines.contains("; 4 links of each build that has several"),
        "{lines}"
    );
    let starts = shown["comparisons"][0]["starts"].as_array().unwrap();
    let links: Vec<u64> = starts
        .iter()
        .map(|of| of["link"].as_u64().unwrap())
        .collect();
    assert_eq!(links, [1, 2, 3, 4, 1], "{starts:#?}");

    // Recipes that do not know how say so before anything is fetched.
    let refused = command(
        &place,
        &["build", "make", "mysql@9.7", "--flags", "quick_links"],
    )
    .output()
    .unwrap();
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("mysql cannot be linked several times"),
        "{stderr}"
    );
}

#[test]
fn what_is_not_a_usable_sqlite_is_refused_with_a_way_out() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    fs::write(place.path("empty/README"), "nothing\n").unwrap();
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("other/sqlite3.c"), "int x;\n").unwrap();
    // A version, and nothing behind it: it compiles, and lacks every function.
    fs::create_dir(place.path("hollow")).unwrap();
    fs::write(
        place.path("hollow/sqlite3.c"),
        "#define SQLITE_VERSION        \"3.1.0\"\nint x;\n",
    )
    .unwrap();
    fs::create_dir(place.path("broken")).unwrap();
    fs::write(
        place.path("broken/sqlite3.c"),
        "#define SQLITE_VERSION        \"3.1.0\"\nint x\n",
    )
    .unwrap();
    for (source, exit_code, wanted) in [
        ("empty", 2, "sqlite3.c is not there"),
        ("other", 2, "sqlite3.c has no #define SQLITE_VERSION"),
        ("hollow", 3, "lacks the C function sqlite3_libversion"),
        ("broken", 3, "compile failed: sqlite3.c:"),
    ] {
        let output = make(&place, source, "mine");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "{source}: {stderr}");
        assert!(stderr.contains(wanted), "{source}: {stderr}");
    }

    fs::write(place.path("libsqlite3.so"), "not a library").unwrap();
    for (arguments, exit_code, wanted) in [
        (
            &["build", "add", "--basedir", "libsqlite3.so", "--label", "x"][..],
            3,
            "try `ldd ",
        ),
        (
            &["build", "add", "--basedir", ".", "--label", "bundled"],
            2,
            "the label \"bundled\" is the name of a source of sqlite",
        ),
        (
            &["build", "add", "sqlite@2"],
            2,
            "there is no build sqlite@2+source-o2nofp; the nearest are: sqlite@3.13.0+source",
        ),
        (
            &["build", "make", "sqlite@3.14"],
            2,
            "the nearest are: sqlite@3.15.2+source",
        ),
        (&["build", "add", "sqlite@3"], 2, "is part of this program"),
    ] {
        let output = command(&place, arguments).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(exit_code),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
    }
}
