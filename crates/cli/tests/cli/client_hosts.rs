//! Clients on other hosts: namespaces with an sshd each, the real ssh, real servers.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use plimsoll_testkit::{CachedBuild, cached_build};
use serde_json::{Value, json};

use crate::hosts::{campaign, check, events};
use crate::lab_hosts::{Lab, kill};
use crate::support::{text, wait, wait_until};

/// A lab whose desk has a build.
pub struct Away {
    pub lab: Lab,
    pub build: CachedBuild,
}

impl Away {
    pub fn new(test: &str, wanted: &str, hosts: usize) -> Option<Self> {
        let build = cached_build(test, wanted)?;
        let lab = Lab::new(test, hosts)?;
        // PostgreSQL's servers run as nobody when we are root, and must get to their data.
        fs::set_permissions(lab.place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        lab.push();
        Some(Self { lab, build })
    }

    pub fn write_plan(&self, head: &str, settings: &str) {
        let plan = format!(
            "name = \"t\"\nbuilds = [\"{}\"]\nconfigs = [\"small\"]\nverify = \"full\"\nwait = \
             \"0s\"\ncomparable = false\n{head}\n[config.small]\nsettings = {{ {settings} }}\n",
            self.build.name
        );
        fs::write(self.lab.place.path("plan.toml"), plan).unwrap();
    }

    pub fn command(&self, store: &str, more: &[&str]) -> Command {
        let base = ["run", "plan.toml", "--seed", "5", "--store", store];
        let mut command = self.lab.command(&[&base, more].concat());
        command.arg("--cache").arg(&self.build.cache);
        command
    }

    pub fn run(&self, store: &str, more: &[&str]) -> Output {
        self.command(store, more).output().unwrap()
    }

    /// The results of the steps of the only trial of a store's campaign, by step.
    pub fn steps(&self, store: &str) -> BTreeMap<String, Value> {
        let trials = events(&campaign(&self.lab, store));
        assert_eq!(trials.len(), 1);
        let done = trials.into_values().flatten();
        let done = done.filter(|event| event["event"] == "step_done");
        done.map(|event| (event["step"].as_str().unwrap().to_owned(), event))
            .collect()
    }
}

pub const POSTGRES: &str = "shared_buffers = \"64MB\", fsync = \"off\", max_connections = \"20\", \
                        log_statement = \"all\"";
pub const INSERTS: &str = "workload = \"insert-benchmark\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \
                       \"l.i2\", \"qr100\"]\n[sizes]\nclients = 3\nrows = \"6K\"\nwrite_rows = \
                       \"1K\"\nduration = \"2s\"\n";

/// What of each client follows from plan and seed alone in steps that fix the rows.
fn of_clients(step: &Value) -> Vec<Value> {
    let clients = step["clients"].as_array().unwrap().iter();
    clients
        .map(|client| {
            json!([
                client["client"],
                client["kind"],
                client["ok"],
                client["rows"]
            ])
        })
        .collect()
}

/// All files below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn clients_of_two_hosts_do_what_those_of_one_and_of_home_do() {
    let test = "cli::client_hosts::clients_of_two_hosts_do_what_those_of_one_and_of_home_do";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    away.write_plan(INSERTS, POSTGRES);
    check(&away.run("home", &[]), 0);
    check(&away.run("one", &["--clients", "h1"]), 0);
    let said = away.run("two", &["--clients", "h1,h2"]);
    check(&said, 0);
    let [home, one, two] = ["home", "one", "two"].map(|store| away.steps(store));
    for (step, at_home) in &home {
        assert!(at_home.get("client_hosts").is_none(), "{step}");
        for other in [&one[step], &two[step]] {
            // Rows and checksums: of steps whose rows are fixed.
            assert_eq!(at_home["tables"].is_array(), other["tables"].is_array());
            if step != "qr100" {
                assert_eq!(at_home["tables"], other["tables"], "{step}");
                assert_eq!(of_clients(at_home), of_clients(other), "{step}");
            }
        }
    }
    let query = |of: &BTreeMap<String, Value>| of["qr100"]["operations"][1]["pacing"].clone();
    assert_eq!(query(&home)["target_per_s"], query(&two)["target_per_s"]);
    for (step, result) in &two {
        let hosts = result["client_hosts"].as_array().unwrap();
        let clients: Vec<_> = hosts.iter().map(|host| host["clients"].clone()).collect();
        assert_eq!(clients, [json!([1, 2]), json!([3, 3])], "{step}");
        for host in hosts {
            let number = |name: &str| host[name].as_f64().unwrap();
            assert!(number("link_rtt_min_ns") > 0.0 && number("query_rtt_p50_ns") > 0.0);
            assert!(
                number("cpu_s") > 0.0 && number("start_margin_ns") > 0.0,
                "{host}"
            );
            // One machine: its namespaces have one monotonic clock.
            assert!(
                number("offset_ns").abs() <= number("link_rtt_min_ns"),
                "{host}"
            );
        }
        let cpu: f64 = hosts
            .iter()
            .map(|host| host["cpu_s"].as_f64().unwrap())
            .sum();
        // One machine: its clients are not strangers on it.
        let found = result["host"]["client_cpu_s"]["ok"].as_f64();
        assert!(found.is_some_and(|found| found >= cpu), "{result}");
        assert!(hosts.iter().all(|host| host["shares_machine"] == true));
    }
    no_secret_is_kept(&away, "two");
    let shown = away.lab.place.run(&["show", "--json", "--store", "two"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["results"][0]["client_hosts"][1]["host"], "h2");
    let shown = text(&away.lab.place.run(&["show", "--store", "two"]).stdout);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("than the servers: h1 (the servers' own machine, whose CPUs it shares, a"),
        "{shown}"
    );
    let header = campaign(&away.lab, "two").join("campaign.json");
    let header: Value = serde_json::from_slice(&fs::read(header).unwrap()).unwrap();
    assert_eq!(header["client_hosts"], json!({"names": ["h1", "h2"]}));
}

/// The server logs every statement, and yet the one with the password is nowhere.
fn no_secret_is_kept(away: &Away, store: &str) {
    let mut has_statements = false;
    for file in files(&campaign(&away.lab, store)) {
        let content = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        has_statements |= content.contains("grant postgres to") || content.contains("statement: ");
        let lower = content.to_lowercase();
        for secret in ["role plimsoll_clients login", "scram-sha-256$"] {
            assert!(!lower.contains(secret), "{} has a secret", file.display());
        }
    }
    assert!(has_statements, "the log has no statements to look at");
}

const MARIADB: &str = "innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = \"0\"";

#[test]
fn tests_on_mariadb_run_from_two_hosts() {
    mysql_family(
        "cli::client_hosts::tests_on_mariadb_run_from_two_hosts",
        "mariadb@10.11",
    );
}

#[test]
fn tests_on_mysql_run_from_two_hosts() {
    mysql_family(
        "cli::client_hosts::tests_on_mysql_run_from_two_hosts",
        "mysql@9.7",
    );
}

fn mysql_family(test: &str, build: &str) {
    let Some(away) = Away::new(test, build, 2) else {
        return;
    };
    let head = "workload = \"sysbench-2025\"\ntests = [\"point-query\", \"insert\", \
                \"update-index\", \"delete\"]\n[sizes]\ntables = 2\nclients = 4\nrows = \
                1000\nduration = \"1s\"\nwarm_up = \"300ms\"\n";
    away.write_plan(head, MARIADB);
    check(&away.run("two", &["--clients", "h1,h2"]), 0);
    let steps = away.steps("two");
    assert!(
        steps["prepare"].get("client_hosts").is_none(),
        "it has shared parts"
    );
    for (step, result) in steps.iter().filter(|(step, _)| *step != "prepare") {
        assert_eq!(
            result["client_hosts"].as_array().unwrap().len(),
            2,
            "{step}"
        );
        let clients = result["clients"].as_array().unwrap();
        assert_eq!(clients.len(), 4, "{step}");
        assert!(
            clients.iter().all(|client| client["ok"].as_u64() > Some(0)),
            "{step}"
        );
        // The growth of tables is what all hosts counted together: rows are verified.
        assert!(!result["tables"].as_array().unwrap().is_empty(), "{step}");
    }
}

#[test]
fn a_host_that_is_lost_fails_the_step_and_nothing_is_averaged() {
    let test = "cli::client_hosts::a_host_that_is_lost_fails_the_step_and_nothing_is_averaged";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    // Far longer than anything here takes, and it leaves the CPU to the other tests.
    let head = "workload = \"sysbench-2025\"\ntests = [\"point-query\"]\n[sizes]\ntables = \
                1\nclients = 3\nrows = 1000\nduration = \"300s\"\nwarm_up = \"0ms\"\nrate = \
                100\n";
    away.write_plan(head, POSTGRES);
    let signal = |away: &Away, signal: &str| {
        for pid in away.lab.processes(2, "client") {
            kill(signal, &pid);
        }
    };
    type Break<'a> = (&'a str, &'a dyn Fn(&Away), &'a dyn Fn(&Away), u64, &'a str);
    let breaks: [Break<'_>; 4] = [
        (
            "killed",
            &|away| signal(away, "KILL"),
            &|_| {},
            3,
            "lost client host h2",
        ),
        (
            "stopped",
            &|away| signal(away, "STOP"),
            &|away| signal(away, "CONT"),
            6,
            "it has said nothing for 3 s",
        ),
        (
            "cut",
            &|away| away.lab.link(2, "down"),
            &|away| away.lab.link(2, "up"),
            6,
            "it has said nothing for 3 s",
        ),
        (
            "ssh",
            &|away| away.lab.clients(2).iter().for_each(|pid| kill("KILL", pid)),
            &|_| {},
            3,
            "lost client host h2",
        ),
    ];
    for (store, breaks, mends, seconds, words) in breaks {
        let mut command = away.command(store, &["--clients", "h1,h2"]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let in_step = || {
            let seen =
                fs::read_dir(away.lab.place.path(store)).is_ok_and(|mut it| it.next().is_some());
            seen && events(&campaign(&away.lab, store))
                .values()
                .flatten()
                .any(|event| event["event"] == "step_start" && event["step"] == "point-query")
        };
        wait_until("the step has begun", in_step);
        // The server logs what it executes.
        let is_asked = || {
            let mut logs = files(&campaign(&away.lab, store)).into_iter();
            let log = logs.find(|path| path.ends_with("server.log"));
            log.and_then(|log| fs::read(log).ok()).is_some_and(|log| {
                String::from_utf8_lossy(&log).contains(": SELECT c FROM sbtest1")
            })
        };
        wait_until("clients have begun", is_asked);
        std::thread::sleep(Duration::from_secs(2));
        let begin = Instant::now();
        breaks(&away);
        let failed = || {
            let events = events(&campaign(&away.lab, store));
            events
                .values()
                .flatten()
                .any(|event| event["event"] == "step_failed")
        };
        wait_until("the step has failed", failed);
        let noticed = begin.elapsed();
        eprintln!("{store}: noticed after {:.1} s", noticed.as_secs_f64());
        assert!(
            noticed < Duration::from_secs(seconds),
            "{store}: {noticed:?}"
        );
        mends(&away);
        let output = wait(child);
        let said = check(&output, 3);
        let all = events(&campaign(&away.lab, store));
        let failed = all
            .values()
            .flatten()
            .find(|event| event["event"] == "step_failed");
        let reason = failed.unwrap()["reason"].as_str().unwrap();
        assert!(reason.contains(words), "{store}: {reason}");
        assert!(said.contains("h2"), "{said}");
        let is_of_step = |event: &Value| event["step"] == "point-query";
        let has_result = |event: &Value| event["event"] == "step_done" && is_of_step(event);
        assert!(
            !all.values().flatten().any(has_result),
            "{store} has a result"
        );
        away.lab.wait_for_silence();
    }
}

#[test]
fn what_cannot_have_clients_elsewhere_is_refused_before_anything_is_made() {
    let test = "cli::client_hosts::what_cannot_have_clients_elsewhere_is_refused";
    let Some(lab) = Lab::new(test, 1) else {
        return;
    };
    let refused = |arguments: &[&str], words: &str| {
        let said = check(&lab.run(arguments), 2);
        assert!(said.contains(words), "{said}");
        assert!(!lab.place.path("plimsoll-runs").exists());
    };
    refused(
        &["run", "small.toml", "--clients", "h1"],
        "its engine is in its client's process",
    );
    refused(
        &["run", "small.toml", "--clients", "h7"],
        "its engine is in its client's process",
    );
    refused(
        &["run", "small.toml", "--clients", "h1", "--hosts", "h1"],
        "cannot be used with",
    );
    refused(
        &["run", "small.toml", "--server-address", "10.0.0.1"],
        "--clients",
    );
    refused(&["client"], "`client` is internal");
}

/// They were refused, whatever their design.
#[test]
fn verdicts_by_blocks_have_their_clients_elsewhere_and_those_by_slices_do_not() {
    let test = "cli::client_hosts::verdicts_by_blocks_have_their_clients_elsewhere";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    let head = "workload = \"sysbench-2025\"\ntests = [\"point-query\"]\n[sizes]\ntables = \
                1\nclients = 2\nrows = 1000\nduration = \"200ms\"\nwarm_up = \"0ms\"\n[verdicts]\n";
    away.write_plan(&format!("{head}budget = \"10m\"\n"), POSTGRES);
    let said = check(&away.run("slices", &["--clients", "h1,h2"]), 2);
    assert!(
        said.contains("with `[verdicts] blocks = 12`") && said.contains("--screen"),
        "{said}"
    );
    away.write_plan(&format!("{head}blocks = 6\n"), POSTGRES);
    check(&away.run("blocks", &["--clients", "h1,h2"]), 0);
    let over = campaign(&away.lab, "blocks");
    let header: Value =
        serde_json::from_slice(&fs::read(over.join("campaign.json")).unwrap()).unwrap();
    assert_eq!(header["client_hosts"], json!({"names": ["h1", "h2"]}));
    assert_eq!(header["confirm"]["design"], "blocks");
    let trials = events(&over);
    let done = trials.values().flatten();
    let done: Vec<_> = done
        .filter(|event| event["event"] == "step_done" && event["step"] == "point-query")
        .collect();
    assert_eq!(done.len(), 12, "base and control in six blocks");
    for step in done {
        let hosts = step["client_hosts"].as_array().unwrap();
        let names: Vec<_> = hosts.iter().map(|host| &host["host"]).collect();
        assert_eq!(names, ["h1", "h2"]);
    }
    no_secret_is_kept(&away, "blocks");
}
