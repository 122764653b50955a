//! What client hosts, their clocks and their networks do wrong, one fault at a time.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client_hosts::{Away, INSERTS, POSTGRES};
use crate::hosts::{campaign, check, events};
use crate::lab_hosts::kill;
use crate::support::{Place, wait_until};

/// A load of a thousand rows per client alone.
fn one_load() -> String {
    INSERTS
        .replace(
            "\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"",
            "\"l.i0\"",
        )
        .replace("\"6K\"", "\"1K\"")
}

/// All events of the last attempt of a store's only trial.
fn all_events(away: &Away, store: &str) -> Vec<Value> {
    events(&campaign(&away.lab, store))
        .into_values()
        .next_back()
        .unwrap()
}

/// Why the trial, or its step, failed.
fn reason(away: &Away, store: &str) -> String {
    let all = all_events(away, store);
    let failed = all.iter().find(|event| {
        let name = event["event"].as_str().unwrap();
        ["step_failed", "trial_failed"].contains(&name)
    });
    let reason = failed.unwrap_or_else(|| panic!("nothing failed: {all:?}"))["reason"].clone();
    reason.as_str().unwrap().to_owned()
}

#[test]
fn what_a_client_host_says_and_hears_wrongly_fails_its_step_and_is_named() {
    let test = "cli::client_host_faults::what_a_client_host_says_and_hears_wrongly_fails_its_step";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    away.write_plan(&one_load(), POSTGRES);
    let late = r#"select(undef, undef, undef, 0.4) if /"start"/"#;
    // Fifty pings after the login, fifty before the step, and those after it.
    let jumps = r#"if (/"pong"/ && ++$n > 100) { s/(?<="clock_ns":)(\d+)/$1 + 2000000000/e }"#;
    let dies = r#"exit if /"ready"/"#;
    let long = r#"print "x" x (65 << 20) if /"begun"/"#;
    let old = r#"s/"version":"[^"]*"/"version":"0.0.1"/"#;
    let far = "select(undef, undef, undef, 0.0105)";
    // A name, what it hears, what it says, the reason, and whether a server was started.
    let faults = [
        ("late", late, "1", "lost client host h2", true),
        ("late", late, "1", "it heard of the start", true),
        (
            "jump",
            "1",
            jumps,
            "client host h2 has a clock that jumped by +",
            true,
        ),
        (
            "dies",
            "1",
            dies,
            "client host h2: it has said nothing for 3 s",
            true,
        ),
        (
            "long",
            "1",
            long,
            "it said a line of more than 64 MiB",
            true,
        ),
        (
            "old",
            "1",
            old,
            "client host h2 has plimsoll 0.0.1: `plimsoll host push h2`",
            false,
        ),
        (
            "far",
            far,
            far,
            "client host h2: the shortest of its answers took 2",
            false,
        ),
    ];
    let mut before = "";
    for (store, heard, said, words, is_started) in faults {
        if store != before {
            away.lab.filter_client(2, heard, said);
            let begin = Instant::now();
            let output = away.run(store, &["--clients", "h1,h2"]);
            println!("{store}: over after {:.1?}", begin.elapsed());
            let told = check(&output, 3);
            assert!(told.contains("h2"), "{told}");
            away.lab.unfilter(2);
            away.lab.wait_for_silence();
        }
        before = store;
        let reason = reason(&away, store);
        assert!(reason.contains(words), "{store}: {reason}");
        let all = all_events(&away, store);
        let has = |name: &str| all.iter().any(|event| event["event"] == name);
        assert!(!has("step_done"), "{store} has a result");
        assert_eq!(has("server_ready"), is_started, "{store}");
    }
}

/// Greetings before it, an answer twice, one of the step before: none of it counts.
#[test]
fn noise_slow_links_and_clocks_of_their_own_change_no_count() {
    let test = "cli::client_host_faults::noise_slow_links_and_clocks_of_their_own_change_no_count";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    away.write_plan(INSERTS, POSTGRES);
    away.lab.stop_sshd(2);
    let hour = [
        "-m",
        "-T",
        "--monotonic",
        "3600",
        "--boottime",
        "3600",
        "--fork",
    ];
    away.lab.start_sshd_in(2, &hour);
    away.lab.filter_client(
        2,
        "select(undef, undef, undef, 0.002)",
        r#"select(undef, undef, undef, 0.002); print "{motd\n" if $. < 9;
           $_ .= $_ if /"(ready|begun|counted|left)"/"#,
    );
    check(&away.run("slow", &["--clients", "h1,h2"]), 0);
    let done = away.steps("slow");
    assert_eq!(done.len(), 5);
    for (step, result) in &done {
        let host = &result["client_hosts"][1];
        let number = |name: &str| host[name].as_f64().unwrap();
        assert!(number("link_rtt_min_ns") > 4e6, "{host}");
        assert!(
            (number("offset_ns") - 3.6e12).abs() < number("link_rtt_min_ns"),
            "{host}"
        );
        let margin = number("start_margin_ns");
        // It is longer than 150 ms if one of the answers was late on a busy machine.
        assert!((1e6..60e9).contains(&margin), "{host}");
        let clients = result["clients"].as_array().unwrap();
        let ok = |client: &Value| client["ok"].as_u64().unwrap();
        assert!(clients.iter().all(|client| ok(client) > 0), "{step}");
        let times = clients
            .iter()
            .map(|client| client["to_ns"].as_u64().unwrap());
        assert!(times.max() < Some(60_000_000_000), "{step}");
    }
    let rows = |of: &Value| of["tables"].as_array().unwrap().len();
    assert_eq!(rows(&done["l.i0"]), 3, "verified");
}

/// What a warm-up took was counted as if the step had: a host was found to have measured itself.
#[test]
fn cpu_of_a_warm_up_is_not_the_steps() {
    let test = "cli::client_host_faults::cpu_of_a_warm_up_is_not_the_steps";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    let head = "workload = \"sysbench-2025\"\ntests = [\"point-query\"]\n[sizes]\ntables = \
                1\nclients = 4\nrows = 1000\nduration = \"1s\"\nwarm_up = \"5s\"\n";
    away.write_plan(head, POSTGRES);
    check(&away.run("warm", &["--clients", "h1,h2"]), 0);
    let done = away.steps("warm");
    let result = &done["point-query"];
    let hosts = result["client_hosts"].as_array().unwrap();
    let cpu_s: f64 = hosts
        .iter()
        .map(|host| host["cpu_s"].as_f64().unwrap())
        .sum();
    let cpus = hosts[0]["cpus"].as_f64().unwrap();
    let elapsed_s = result["elapsed_ns"].as_f64().unwrap() / 1e9;
    assert!(cpu_s > 0.05, "{cpu_s}");
    // What cannot be, however busy the machine was.
    assert!(
        cpu_s < elapsed_s * cpus,
        "{cpu_s} s of {cpus} CPUs in {elapsed_s} s"
    );
}

#[test]
fn a_killed_desk_leaves_nothing_behind_and_is_resumed() {
    let test = "cli::client_host_faults::a_killed_desk_leaves_nothing_behind_and_is_resumed";
    let Some(away) = Away::new(test, "postgres@18", 2) else {
        return;
    };
    let plan = INSERTS.replace("\"2s\"", "\"5s\"");
    away.write_plan(&plan, POSTGRES);
    let mut desk = away
        .command("killed", &["--clients", "h1,h2"])
        .spawn()
        .unwrap();
    wait_until("the step has begun", || {
        fs::read_dir(away.lab.place.path("killed")).is_ok_and(|mut it| it.next().is_some())
            && events(&campaign(&away.lab, "killed"))
                .values()
                .flatten()
                .any(|event| event["event"] == "step_start" && event["step"] == "qr100")
    });
    std::thread::sleep(Duration::from_secs(1));
    let is_server = |line: &str| line.contains("postgres") && line.contains("pgdata");
    assert!(!away.lab.at_desk(is_server).is_empty(), "there is a server");
    let begin = Instant::now();
    kill("KILL", &desk.id().to_string());
    desk.wait().unwrap();
    away.lab.wait_for_silence();
    println!("a killed desk: workers ended after {:.1?}", begin.elapsed());
    assert!(begin.elapsed() < Duration::from_secs(10));
    wait_until("the server has ended", || {
        away.lab.at_desk(is_server).is_empty()
    });
    let resume = |more: &[&str]| {
        let base = ["run", "plan.toml", "--resume", "--store", "killed"];
        let mut command = away.lab.command(&[&base, more].concat());
        command.arg("--cache").arg(&away.build.cache);
        command.output().unwrap()
    };
    // It was resumed with those of before, and nobody knew.
    let said = check(&resume(&["--clients", "h1"]), 2);
    assert!(
        said.contains("has its clients on h1, h2: resume it without --clients"),
        "{said}"
    );
    check(&resume(&[]), 0);
    let all = events(&campaign(&away.lab, "killed"));
    let done = all.values().flatten();
    let done: Vec<_> = done
        .filter(|event| event["event"] == "step_done" && event["step"] == "qr100")
        .collect();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0]["client_hosts"][1]["host"], "h2");
}

/// A campaign says where its clients were, and whatever is compared with it or made of it says so,
/// too.
#[test]
fn clients_elsewhere_are_told_where_runs_are_compared_or_gone_on_with() {
    let place = Place::new();
    let plan = "name = \"t\"\nbuilds = [\"sqlite\"]\nconfigs = [\"wal_off\"]\nworkload = \
                \"insert-benchmark\"\nsteps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \
                \"qr100\"]\nwait = \"0s\"\ncomparable = false\n[sizes]\nclients = 1\nrows = \
                1000\nwrite_rows = 1000\nduration = \"1s\"\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    check(&place.run(&["run", "plan.toml"]), 0);
    check(&place.run(&["run", "plan.toml"]), 0);
    let store = fs::read_dir(place.path("plimsoll-runs")).unwrap();
    let mut campaigns: Vec<_> = store.map(|entry| entry.unwrap().path()).collect();
    campaigns.sort();
    let header = campaigns[1].join("campaign.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&header).unwrap()).unwrap();
    text["client_hosts"] = json!({"names": ["cl1", "cl2"]});
    fs::write(&header, serde_json::to_vec(&text).unwrap()).unwrap();
    let id = |at: usize| {
        campaigns[at]
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let said = place.run(&["compare", &id(0), &id(1)]);
    let said = String::from_utf8(said.stdout).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = "ran on different machines (clients next to the server against on cl1, cl2)";
    assert!(said.contains(words), "{said}");
    let words = "has its clients on cl1, cl2: resume it without --clients";
    let other = ["run", "plan.toml", "--resume", "--clients", "cl3"];
    let said = check(&place.run(&other), 2);
    assert!(said.contains(words), "{said}");
    let said = place.run(&["confirm", &id(1), "--blocks", "1", "--all", "--time", "1s"]);
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("the clients of the survey were on cl1, cl2: here they are"),
        "{said}"
    );
}
