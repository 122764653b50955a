//! Campaigns on real servers that break: each failure is named for what it is, the other cells
//! complete, and nothing is left running.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Instant;

use plimsoll_testkit::{CachedBuild, cached_build, is_root, skip};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Mount, Place, processes_in, text, wait, wait_until};

const MYSQL: &str = "mysql@5.7";
const MYSQL_EXACT: &str = "mysql@5.7.22";
const POSTGRES: &str = "postgres@18";
const BOTH: [&str; 2] = [MYSQL, POSTGRES];

/// Small and quick.
fn settings(build: &CachedBuild) -> &'static str {
    if build.name.starts_with("postgres") {
        "shared_buffers = \"64MB\", fsync = \"off\", max_connections = \"20\""
    } else {
        "innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = \"0\", \
        performance_schema = \"0\", max_connections = \"20\""
    }
}

/// A place with a plan of configs `first` and `second`, one after the other or the other way round.
struct Servers {
    place: Place,
    build: CachedBuild,
}

impl Servers {
    /// `top` are keys of the plan, `first` is more for the settings of the first config.
    fn new(build: CachedBuild, rows: &str, top: &str, first: &str) -> Self {
        let place = Place::new();
        // PostgreSQL's servers run as nobody when we are root, and must get to their data.
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let settings = settings(&build);
        let mut plan = format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{}\"]\n{top}\n",
            build.name
        );
        write!(
            plan,
            "configs = [\"first\", \"second\"]\n[sizes]\nrows = \"{rows}\"\nwrite_rows = \
            \"1K\"\nduration = \"1s\"\n"
        )
        .unwrap();
        write!(
            plan,
            "[config.first]\nsettings = {{ {settings}{first} }}\n[config.second]\nsettings = \
            {{ {settings} }}\n"
        )
        .unwrap();
        fs::write(place.path("plan.toml"), plan).unwrap();
        Self { place, build }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.arg("--cache").arg(&self.build.cache);
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn spawn(&self) -> Child {
        self.command(&["run", "plan.toml", "--seed", "3"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The folder of the trial that runs first, once an event of this name and step is in it.
    fn first_trial_with(&self, event: &str, step: &str) -> PathBuf {
        let mut found = None;
        wait_until(&format!("{event} of {step}"), || {
            found = first_trial(&self.place).filter(|dir| {
                events(dir)
                    .iter()
                    .any(|line| line["event"] == event && line["step"] == step)
            });
            found.is_some()
        });
        found.unwrap()
    }

    fn shown(&self) -> Vec<Value> {
        let shown: Value = serde_json::from_slice(&self.run(&["show", "--json"]).stdout).unwrap();
        shown["results"].as_array().unwrap().clone()
    }

    /// Status and reason of a step of the cell whose trial ran first or second.
    fn result(&self, trial: usize, step: &str) -> (String, String) {
        let header: Value =
            serde_json::from_slice(&fs::read(self.place.campaign().join("campaign.json")).unwrap())
                .unwrap();
        let cell =
            &header["cells"][header["schedule"][trial]["cell"].as_u64().unwrap() as usize]["label"];
        let results = self.shown();
        let result = results
            .iter()
            .find(|result| &result["cell"] == cell && result["step"] == step)
            .unwrap();
        let word = |name: &str| result[name].as_str().unwrap_or_default().to_owned();
        (word("status"), word("reason"))
    }

    #[track_caller]
    fn assert_done(&self, trial: usize, step: &str) {
        let (status, reason) = self.result(trial, step);
        // A busy machine may make it suspect; that decides nothing here.
        assert!(
            ["ok", "suspect", "sla_missed"].contains(&status.as_str()),
            "{status}: {reason}"
        );
    }

    /// Neither the program nor a server runs any more, and the data is gone.
    #[track_caller]
    fn assert_all_gone(&self) {
        assert_eq!(processes_in(self.place.dir.path()), Vec::<u32>::new());
        for identity in identities(&self.place) {
            assert!(!is_running(&identity), "{identity}");
        }
        let left: Vec<_> = fs::read_dir(self.place.path("data"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, [".plimsoll-data"]);
    }
}

fn first_trial(place: &Place) -> Option<PathBuf> {
    let campaign = fs::read_dir(place.path("plimsoll-runs"))
        .ok()?
        .next()?
        .ok()?
        .path();
    let mut trials: Vec<PathBuf> = fs::read_dir(campaign.join("trials"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    trials.sort();
    trials.into_iter().next()
}

fn events(trial: &Path) -> Vec<Value> {
    let text = fs::read_to_string(trial.join("events.jsonl")).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What the trials wrote down of their servers.
fn identities(place: &Place) -> Vec<Value> {
    let trials = fs::read_dir(place.campaign().join("trials")).unwrap();
    let identity =
        |trial: fs::DirEntry| fs::read(trial.path().join("server/server-process.json")).ok();
    trials
        .filter_map(|trial| identity(trial.unwrap()))
        .map(|text| serde_json::from_slice(&text).unwrap())
        .collect()
}

fn server_pid(trial: &Path) -> u32 {
    let identity: Value =
        serde_json::from_slice(&fs::read(trial.join("server/server-process.json")).unwrap())
            .unwrap();
    identity["pid"].as_u64().unwrap() as u32
}

fn is_running(identity: &Value) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", identity["pid"])).unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    fields
        .get(19)
        .is_some_and(|ticks| ticks.parse().ok() == identity["start_ticks"].as_u64())
        && fields[0] != "Z"
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_killed_server_is_a_crash_and_the_campaign_goes_on() {
    for wanted in BOTH {
        let Some(build) = cached_build(
            "cli::servers::a_killed_server_is_a_crash_and_the_campaign_goes_on",
            wanted,
        ) else {
            continue;
        };
        let servers = Servers::new(build, "200K", "steps = [\"l.i0\"]", "");
        let child = servers.spawn();
        let trial = servers.first_trial_with("step_start", "l.i0");
        let killed = Instant::now();
        signal(server_pid(&trial), Signal::KILL);
        wait_until("the verdict", || {
            events(&trial)
                .iter()
                .any(|event| event["event"] == "server_crashed")
        });
        println!(
            "{wanted}: {:.3} s from the kill to the verdict",
            killed.elapsed().as_secs_f64()
        );
        let output = wait(child);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains("the server crashed during l.i0 (signal 9, SIGKILL"),
            "{stderr}"
        );
        let crash = events(&trial)
            .into_iter()
            .find(|event| event["event"] == "server_crashed")
            .unwrap();
        assert_eq!(crash["step"], "l.i0");
        assert!(!crash["log_tail"].as_str().unwrap().is_empty(), "{crash}");
        let (status, reason) = servers.result(0, "l.i0");
        assert!(
            status == "crashed" && reason.contains("SIGKILL"),
            "{status}: {reason}"
        );
        servers.assert_done(1, "l.i0");
        servers.assert_all_gone();
    }
}

#[test]
fn a_server_that_dies_between_steps_is_a_crash_too() {
    for wanted in BOTH {
        let Some(build) = cached_build(
            "cli::servers::a_server_that_dies_between_steps_is_a_crash_too",
            wanted,
        ) else {
            continue;
        };
        let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\nwait = \"3s\"";
        let servers = Servers::new(build, "2K", steps, "");
        let child = servers.spawn();
        let trial = servers.first_trial_with("step_done", "l.i2");
        signal(server_pid(&trial), Signal::KILL);
        let output = wait(child);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains("the server crashed (signal 9, SIGKILL"),
            "{stderr}"
        );
        let (status, reason) = servers.result(0, "qr100");
        assert!(
            status == "crashed" && reason.contains("SIGKILL"),
            "{status}: {reason}"
        );
        servers.assert_done(0, "l.i2");
        servers.assert_done(1, "qr100");
        servers.assert_all_gone();
    }
}

/// Stopped, not killed: its process is there and answers nothing. In a step, and between two.
#[test]
fn a_server_that_answers_nothing_hangs_and_the_campaign_goes_on() {
    for (rows, event, step, hung) in [
        ("200K", "step_start", "l.i0", "l.i0"),
        ("2K", "step_done", "l.i2", "qr100"),
    ] {
        let test = "cli::servers::a_server_that_answers_nothing_hangs_and_the_campaign_goes_on";
        let Some(build) = cached_build(test, MYSQL) else {
            return;
        };
        let steps = if step == "l.i0" {
            "[\"l.i0\"]"
        } else {
            "[\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]"
        };
        let servers = Servers::new(
            build,
            rows,
            &format!("steps = {steps}\nwait = \"8s\"\nwatchdog = \"4s\""),
            "",
        );
        let child = servers.spawn();
        let trial = servers.first_trial_with(event, step);
        let pid = server_pid(&trial);
        signal(pid, Signal::STOP);
        let output = wait(child);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        let (status, reason) = servers.result(0, hung);
        assert!(
            status == "hung" && reason.starts_with("hung: "),
            "{status}: {reason}"
        );
        assert!(
            !events(&trial)
                .iter()
                .any(|event| event["event"] == "server_crashed"),
            "it was killed for hanging"
        );
        servers.assert_done(1, hung);
        servers.assert_all_gone();
    }
}

#[test]
fn a_killed_orchestrators_server_is_gone_and_resume_completes() {
    for wanted in BOTH {
        let Some(build) = cached_build(
            "cli::servers::a_killed_orchestrators_server_is_gone_and_resume_completes",
            wanted,
        ) else {
            continue;
        };
        let servers = Servers::new(build, "100K", "steps = [\"l.i0\"]", "");
        let child = servers.spawn();
        let trial = servers.first_trial_with("step_start", "l.i0");
        let pid = child.id();
        signal(pid, Signal::KILL);
        wait(child);
        let server: Value =
            serde_json::from_slice(&fs::read(trial.join("server/server-process.json")).unwrap())
                .unwrap();
        wait_until("the server's end", || !is_running(&server));
        wait_until("the trial's end", || {
            processes_in(servers.place.dir.path()).is_empty()
        });
        let output = servers.run(&["resume"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        for trial in 0..2 {
            servers.assert_done(trial, "l.i0");
        }
        servers.assert_all_gone();
    }
}

/// What a cell reports if its server cannot be what its config says, and that the other cell
/// completes.
#[track_caller]
fn first_fails(servers: &Servers, wanted: &[&str]) {
    let output = servers.run(&["run", "plan.toml", "--seed", "3"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let results = servers.shown();
    for result in &results {
        let (cell, status) = (
            result["cell"].as_str().unwrap(),
            result["status"].as_str().unwrap(),
        );
        if cell.ends_with(".first") {
            assert_eq!(status, "failed", "{result}");
            let reason = result["reason"].as_str().unwrap();
            for wanted in wanted {
                assert!(
                    reason.contains(wanted) && stderr.contains(wanted),
                    "{wanted:?} is not in {reason:?} or not in {stderr:?}"
                );
            }
        } else {
            assert!(["ok", "suspect"].contains(&status), "{result}");
        }
    }
    servers.assert_all_gone();
}

#[test]
fn an_unknown_option_is_named_with_the_version() {
    let version = |build: &CachedBuild| {
        build
            .name
            .split_once('@')
            .unwrap()
            .1
            .split('+')
            .next()
            .unwrap()
            .to_owned()
    };
    let new = |build| {
        Servers::new(
            build,
            "2K",
            "steps = [\"l.i0\"]",
            ", no_such_option = \"1\"",
        )
    };
    // MySQL's own server is asked, when it starts.
    if let Some(build) = cached_build(
        "cli::servers::an_unknown_option_is_named_with_the_version",
        MYSQL,
    ) {
        let version = version(&build);
        first_fails(&new(build), &["no_such_option", &version]);
    }
    // PostgreSQL's server lists what it knows, before anything starts.
    if let Some(build) = cached_build(
        "cli::servers::an_unknown_option_is_named_with_the_version",
        POSTGRES,
    ) {
        let version = version(&build);
        let output = new(build).run(&["run", "plan.toml"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains(&format!(
                "{version} does not know the parameter no_such_option"
            )),
            "{stderr}"
        );
    }
}

#[test]
fn a_server_that_never_gets_ready_shows_its_log() {
    let test = "cli::servers::a_server_that_never_gets_ready_shows_its_log";
    for (wanted, option, log) in [
        (MYSQL, "innodb_data_file_path = \"nonsense\"", "[ERROR]"),
        (
            POSTGRES,
            "shared_preload_libraries = \"no_such_library\"",
            "could not access file \"no_such_library\"",
        ),
    ] {
        let Some(build) = cached_build(test, wanted) else {
            continue;
        };
        let servers = Servers::new(build, "2K", "steps = [\"l.i0\"]", &format!(", {option}"));
        first_fails(&servers, &[log]);
    }
}

#[test]
fn too_few_connections_are_told_before_anything_is_loaded() {
    for wanted in BOTH {
        let Some(build) = cached_build(
            "cli::servers::too_few_connections_are_told_before_anything_is_loaded",
            wanted,
        ) else {
            continue;
        };
        let servers = Servers::new(build, "2K", "steps = [\"l.i0\"]", "");
        let plan = fs::read_to_string(servers.place.path("plan.toml")).unwrap();
        let plan = plan
            .replacen("max_connections = \"20\"", "max_connections = \"5\"", 1)
            .replace("write_rows", "clients = 4\nwrite_rows");
        fs::write(servers.place.path("plan.toml"), plan).unwrap();
        first_fails(
            &servers,
            &[
                "the server takes 5 connections (max_connections), and the plan needs 6",
                "[config.first]",
            ],
        );
        let trial = first_trial(&servers.place).unwrap();
        let is_first = trial.to_string_lossy().contains(".first.");
        assert!(
            !is_first
                || events(&trial)
                    .iter()
                    .all(|event| event["event"] != "step_start"),
            "nothing was loaded"
        );
    }
}

#[test]
fn a_batch_that_the_server_does_not_take_is_told_before_anything_is_loaded() {
    let test =
        "cli::servers::a_batch_that_the_server_does_not_take_is_told_before_anything_is_loaded";
    let Some(build) = cached_build(test, MYSQL) else {
        return;
    };
    let servers = Servers::new(
        build,
        "2K",
        "steps = [\"l.i0\"]",
        ", max_allowed_packet = \"4096\"",
    );
    let wanted = [
        "the inserts of l.i0 have up to 7183 bytes (100 rows)",
        "no packet of 4096 bytes or more",
        "raise max_allowed_packet to 7185",
    ];
    first_fails(&servers, &wanted);
    let mut trials = fs::read_dir(servers.place.campaign().join("trials"))
        .unwrap()
        .map(|trial| trial.unwrap().path());
    let failed = trials
        .find(|trial| trial.to_string_lossy().contains(".first."))
        .unwrap();
    assert!(
        events(&failed)
            .iter()
            .all(|event| event["event"] != "step_start"),
        "nothing was loaded"
    );
}

#[test]
fn a_config_chooses_its_client_and_the_report_says_so() {
    for (wanted, full) in BOTH.into_iter().zip(["mysql crate", "postgres crate"]) {
        let Some(build) = cached_build(
            "cli::servers::a_config_chooses_its_client_and_the_report_says_so",
            wanted,
        ) else {
            continue;
        };
        let servers = Servers::new(build, "2K", "steps = [\"l.i0\"]\nverify = \"full\"", "");
        let plan = fs::read_to_string(servers.place.path("plan.toml")).unwrap();
        fs::write(
            servers.place.path("plan.toml"),
            format!("{plan}client = \"full\"\n"),
        )
        .unwrap();
        let output = servers.run(&["run", "plan.toml", "--seed", "3"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let header: Value = serde_json::from_slice(
            &fs::read(servers.place.campaign().join("campaign.json")).unwrap(),
        )
        .unwrap();
        let clients = header["plan"]["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["config"].get("client"));
        assert_eq!(
            clients.collect::<Vec<_>>(),
            [None, Some(&Value::from("full"))]
        );
        let output = servers.run(&["report", "--format", "json"]);
        let report: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        let labels: Vec<&str> = report["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["cell"].as_str().unwrap())
            .collect();
        let clients = &report["settings"]["differing"]["session_client"];
        assert_eq!([&clients[labels[0]], &clients[labels[1]]], ["thin", full]);
        let tables = |cell: usize| &report["steps"][0]["cells"][cell]["tables"][0];
        assert!(
            tables(0)["checksum"].is_string() && tables(0) == tables(1),
            "{} {}",
            tables(0),
            tables(1)
        );
        let words = text(&servers.run(&["show"]).stdout)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            words.contains(&format!("thin: {}; {full}: {}.", labels[0], labels[1])),
            "{words}"
        );
        servers.assert_all_gone();
    }
}

#[test]
fn a_path_that_is_too_long_for_a_socket_is_named() {
    for wanted in BOTH {
        let Some(build) = cached_build(
            "cli::servers::a_path_that_is_too_long_for_a_socket_is_named",
            wanted,
        ) else {
            continue;
        };
        let servers = Servers::new(build, "2K", "steps = [\"l.i0\"]", "");
        let long = "d".repeat(110);
        let output = servers.run(&["--data", &long, "run", "plan.toml"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains(&long) && stderr.contains("--data"),
            "{stderr}"
        );
    }
}

#[test]
fn a_folder_that_the_servers_user_may_not_enter_is_named() {
    let test = "cli::servers::a_folder_that_the_servers_user_may_not_enter_is_named";
    if !is_root() {
        return skip(test, "only root's servers run as another user");
    }
    let Some(build) = cached_build(test, POSTGRES) else {
        return;
    };
    let servers = Servers::new(build, "2K", "steps = [\"l.i0\"]", "");
    fs::create_dir(servers.place.path("closed")).unwrap();
    fs::set_permissions(
        servers.place.path("closed"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
    let output = servers.run(&["--data", "closed/data", "run", "plan.toml"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let folder = servers.place.path("closed").canonicalize().unwrap();
    assert!(
        stderr.contains(&folder.display().to_string()) && stderr.contains("--data"),
        "{stderr}"
    );
}

#[test]
fn a_version_that_nobody_has_is_refused_with_those_that_exist() {
    let place = Place::new();
    let plan = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = \
               [\"mysql@5.6.99\"]\nconfigs = [\"cz10a\"]\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    let output = place.run(&["run", "plan.toml", "--offline", "--cache", "cache"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("mysql@5.6.99") && stderr.contains("5.6.24") && stderr.contains("5.7.22"),
        "{stderr}"
    );
}

#[test]
fn a_build_that_cannot_be_fetched_leaves_its_cells_out_until_it_can() {
    let test = "cli::servers::a_build_that_cannot_be_fetched_leaves_its_cells_out_until_it_can";
    let Some(build) = cached_build(test, MYSQL) else {
        return;
    };
    let (mut servers, name) = (
        Servers::new(build, "1K", "steps = [\"l.i0\"]", ""),
        MYSQL_EXACT,
    );
    let plan = fs::read_to_string(servers.place.path("plan.toml")).unwrap();
    let plan = plan[..plan.find("[config.second]").unwrap()]
        .replace(&format!("builds = [\"{}\"]\n", servers.build.name), "")
        .replace(
            "configs = [\"first\", \"second\"]",
            &format!("cells = [\"sqlite.wal_off\", \"{name}.first\"]"),
        );
    fs::write(servers.place.path("plan.toml"), plan).unwrap();
    let cache = servers.build.cache.clone();
    servers.build.cache = servers.place.path("cache");
    let statuses = || -> Vec<(String, String)> {
        let word =
            |result: &Value, name: &str| result[name].as_str().unwrap_or_default().to_owned();
        let used = servers
            .shown()
            .into_iter()
            .filter(|result| result["is_used"] == true);
        used.map(|result| (word(&result, "status"), word(&result, "reason")))
            .collect()
    };

    for arguments in [
        &["run", "plan.toml", "--offline"][..],
        &["run", "plan.toml", "--offline", "--resume"],
    ] {
        let output = servers.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains(&format!(
                "the build could not be fetched: {name} is not here"
            )),
            "{stderr}"
        );
        let found = statuses();
        assert!(
            ["ok", "suspect"].contains(&found[0].0.as_str()),
            "{found:?}"
        );
        assert!(
            found[1].1.contains(&format!("plimsoll build add {name}")),
            "{found:?}"
        );
    }

    // As if it had been fetched.
    fs::create_dir_all(&servers.build.cache).unwrap();
    std::os::unix::fs::symlink(cache.join(name), servers.build.cache.join(name)).unwrap();
    let output = servers.run(&["run", "plan.toml", "--offline", "--resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        statuses()
            .iter()
            .all(|(status, _)| ["ok", "suspect"].contains(&status.as_str())),
        "{:?}",
        statuses()
    );
    let header: Value =
        serde_json::from_slice(&fs::read(servers.place.campaign().join("campaign.json")).unwrap())
            .unwrap();
    assert_eq!(header["cells"][1]["build"]["name"], name);
    servers.assert_all_gone();
}

#[test]
fn a_disk_that_fills_up_stops_the_step_before_it_is_full() {
    let test = "cli::servers::a_disk_that_fills_up_stops_the_step_before_it_is_full";
    let Some(build) = cached_build(test, MYSQL) else {
        return;
    };
    let servers = Servers::new(build, "300K", "steps = [\"l.i0\"]", "");
    let Some(mount) = Mount::new(servers.place.path("disk"), 1500) else {
        return skip(test, "only root may mount a small file system");
    };
    let data = mount.0.join("data").display().to_string();
    let child = servers
        .command(&["--data", &data, "run", "plan.toml", "--seed", "3"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let trial = servers.first_trial_with("step_start", "l.i0");
    // At once: bytes that are written one after the other may come too late.
    let ballast = fs::File::create(mount.0.join("ballast")).unwrap();
    fallocate(&ballast, FallocateFlags::empty(), 0, 800 << 20).unwrap();
    wait_until("the end of the step", || {
        events(&trial)
            .iter()
            .any(|event| event["event"] == "trial_failed")
    });
    fs::remove_file(mount.0.join("ballast")).unwrap();
    let output = wait(child.unwrap());
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let (status, reason) = servers.result(0, "l.i0");
    assert_eq!(status, "failed", "{reason}");
    assert!(
        reason.contains("is nearly full") && reason.contains(&data) && reason.contains("are free"),
        "{reason}"
    );
    servers.assert_done(1, "l.i0");
}
