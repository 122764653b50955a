//! Turns, whatever the step and whatever the server does: no step waits for ever, nobody innocent
//! is hung, and what a step left is not paid for by the next.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Family, in_turns, results};
use plimsoll_core::readings::HostReading;
use plimsoll_host::{Activity, InFlight, MachineClocks, Proc, tree_pids};
use plimsoll_store::event::Event;
use plimsoll_store::{CampaignRecord, Store};
use plimsoll_testkit::{CachedBuild, cached_build, write_script};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{LIMITS, Place, UNDECIDED, text, wait, wait_until};

fn newest(place: &Place) -> CampaignRecord {
    Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap()
}

/// Confirms by slices, and gives the campaign, of which every trial has every step.
fn confirmed(place: &Place, arguments: &[&str]) -> CampaignRecord {
    let output = place.run(&[&["confirm"], arguments].concat());
    assert!(
        matches!(output.status.code(), Some(0 | UNDECIDED)),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    let campaign = newest(place);
    let steps = &campaign.header.confirm.as_ref().unwrap().steps;
    let workload = &campaign.header.plan.cells[0].workload;
    let is_writing = |name: &str| {
        let mut of_plan = workload.steps().iter();
        of_plan.any(|step| step.name == name && step.is_writing())
    };
    for trial in &campaign.trials {
        assert!(trial.is_complete(), "{}", text(&output.stderr));
        if workload.family() == Family::Sysbench {
            // Whatever the plan's order: what is read is as it was loaded.
            let writes = trial.steps_done().map(|done| is_writing(&done.step));
            assert!(writes.is_sorted(), "reads come first");
        }
        for step in steps {
            let turns = trial.turns(step).unwrap();
            assert!(
                turns
                    .iter()
                    .any(|turn| turn.operations > 0 && turn.active_ns > 0),
                "{step}: {turns:?}"
            );
            let done = trial.steps_done().find(|done| done.step == *step).unwrap();
            let of_turns: u64 = turns.iter().map(|turn| turn.operations).sum();
            let of_workers: u64 = done
                .clients
                .iter()
                .filter_map(|client| client.turns)
                .map(|turns| turns.operations)
                .sum();
            // The worker of a step with several kinds of events stands with each of them.
            let kinds = if done.primary == "event" {
                done.operations.len() as u64
            } else {
                1
            };
            assert_eq!(
                of_workers,
                of_turns * kinds,
                "{step}: each worker's operations are kept"
            );
        }
    }
    campaign
}

/// Screens a plan on an embedded engine, and confirms by slices all of its steps that can take
/// turns. `cut` is the first one behind a step that makes data: those before and behind it are not
/// confirmed together.
fn all_take_turns(plan: &str, cut: Option<&str>, arguments: &[&str]) {
    let place = Place::new();
    fs::copy(
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plans/workloads/shop.toml"),
        place.path("shop.toml"),
    )
    .unwrap();
    let sizes =
        "comparable = false\nwait = \"100ms\"\n[sizes]\nclients = 2\nduration = \"200ms\"\n";
    fs::write(
        place.path("plan.toml"),
        format!("name = \"t\"\n{}", plan.replace("SIZES", sizes)),
    )
    .unwrap();
    let run = place.run(&[&["run", "plan.toml", "--seed", "3"], arguments].concat());
    assert_eq!(run.status.code(), Some(0), "{plan}: {}", text(&run.stderr));
    let screen = newest(&place).header;
    let workload = &screen.plan.cells[0].workload;
    let wanted = in_turns(workload, &results(workload));
    assert!(!wanted.is_empty());
    let at = cut.map_or(0, |cut| wanted.iter().position(|step| step == cut).unwrap());
    for together in [&wanted[..at], &wanted[at..]]
        .into_iter()
        .filter(|together| !together.is_empty())
    {
        let names = together.join(",");
        let slices = [
            screen.id.as_str(),
            "--step",
            names.as_str(),
            "--slices",
            "4ms",
            "--time",
            "200ms",
            "--starts",
            "1",
        ];
        let campaign = confirmed(&place, &[&slices[..], arguments].concat());
        assert_eq!(campaign.header.confirm.unwrap().steps, together);
    }
}

/// One of each form: points, ranges, scans, transactions that read, single writes, transactions
/// that write.
#[test]
fn steps_of_sysbench_take_turns() {
    let tests = "\"update-one\", \"hot-points\", \"range-covered-si\", \"scan\", \"read-only_range=10\", \
                \"update-inlist\", \"insert\", \"delete\", \"write-only\"";
    let plan = "workload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\nconfigs = [\"wal_off\"]\n";
    all_take_turns(
        &format!("{plan}tests = [{tests}]\nSIZEStables = 1\nrows = \"20K\"\nwarm_up = \"0ms\"\n"),
        None,
        &[],
    );
}

#[test]
fn steps_of_the_insert_benchmark_take_turns() {
    let plan = "workload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs = \
               [\"wal_off\"]\nSIZESrows = \"5K\"\nwrite_rows = \"1K\"\n";
    all_take_turns(plan, None, &[]);
}

/// `confirm` of a step with several kinds of events waited for ever, because its workers were on no
/// board.
#[test]
fn mixed_events_of_a_workload_file_take_turns() {
    let steps = "steps = [\"day\", \"look\", \"day-at-rate\", \"buy\"]\nmax_failed = \"1%\"\n";
    let plan =
        "workload = { file = \"shop.toml\" }\nbuilds = [\"sqlite\"]\nconfigs = [\"wal_off\"]\n";
    all_take_turns(
        &format!(
            "{plan}{steps}SIZES[step.day-at-rate]\nmix = \"day\"\nrate = 500\n[step.buy]\nclients \
            = 1\n"
        ),
        None,
        &[],
    );
}

#[test]
fn steps_of_rocksdb_take_turns() {
    let Some(build) = cached_build("cli::slices::steps_of_rocksdb_take_turns", "rocksdb@8.9.1")
    else {
        return;
    };
    let plan = "workload = \"rocksdb\"\nbuilds = [\"rocksdb@8.9\"]\nconfigs = \
               [\"lc_byrx_small\"]\nSIZESrows = \"20K\"\n";
    all_take_turns(
        plan,
        Some("revrangewhilewriting.t2"),
        &["--cache", build.cache.to_str().unwrap()],
    );
}

/// A place where root's servers may enter.
fn open_place() -> Place {
    open(Place::new())
}

/// For servers, which may run as another user.
fn open(place: Place) -> Place {
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

const POSTGRES: &str = "{ shared_buffers = \"32MB\", fsync = \"off\" }";

/// Each of three servers stands still for more than a second between its turns, and none of them
/// hangs.
#[test]
fn a_server_that_waits_for_its_turn_is_not_hung() {
    let test = "cli::slices::a_server_that_waits_for_its_turn_is_not_hung";
    let (Some(new), Some(_)) = (
        cached_build(test, "postgres@18.6"),
        cached_build(test, "postgres@9.6.24"),
    ) else {
        return;
    };
    let place = open_place();
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
        [\"postgres@9.6.24\", \"postgres@18.6\"]\nconfigs = [\"small\"]\n\
         seed = 3\nwait = \"100ms\"\nwatchdog = \"1s\"\ntests = [\"point-query\"]\n[sizes]\nclients = \
        1\ntables = 1\nrows = \"2K\"\nduration = \"1s\"\n\
         warm_up = \"0ms\"\n[config.small]\nsettings = {POSTGRES}\n"
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let cache = new.cache.to_str().unwrap();
    let campaign = confirmed(
        &place,
        &[
            "plan.toml",
            "--slices",
            "800ms",
            "--time",
            "5s",
            "--starts",
            "1",
            "--cache",
            cache,
        ],
    );
    assert_eq!(campaign.trials.len(), 3, "three servers");
}

/// A server that goes on working after a step that writes does so before anybody's next turn: none
/// of it is paid for by the step after.
#[test]
fn what_a_writing_step_left_is_done_before_the_next_first_turn() {
    let test = "cli::slices::what_a_writing_step_left_is_done_before_the_next_first_turn";
    let Some(build) = cached_build(test, "postgres@18.6") else {
        return;
    };
    let place = open_place();
    // A process of the server that works once a step has written. A stop in the middle of its work
    // would be followed by SIGCONT.
    let script = place.path("with-debt.sh");
    let root = place.dir.path().display();
    let debt = format!(
        "(trap 'test -n \"$works\" && echo stopped >> {root}/stopped' CONT\n\
         until grep -qs '\"event\":\"step_done\",\"step\":\"update-nonindex\"' \
        {root}/plimsoll-runs/*/trials/*/events.jsonl; do sleep 0.05; done\n\
         works=yes; i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; works=; echo done >> \
        {root}/done\n) </dev/null >/dev/null 2>&1 &\nexec \"$@\""
    );
    write_script(&script, &debt);
    for file in ["stopped", "done"] {
        fs::write(place.path(file), "").unwrap();
        fs::set_permissions(place.path(file), fs::Permissions::from_mode(0o666)).unwrap();
    }
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
        [\"{}\"]\nconfigs = [\"debt\"]\nseed = 3\nwait = \"100ms\"\n\
         tests = [\"update-nonindex\", \"update-one\"]\n[sizes]\nclients = 1\ntables = 1\nrows = \
        \"2K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n\
         [config.debt]\nsettings = {POSTGRES}\nprefix = [\"{}\"]\n",
        build.name,
        script.display()
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let cache = build.cache.to_str().unwrap();
    let campaign = confirmed(
        &place,
        &[
            "plan.toml",
            "--slices",
            "20ms",
            "--time",
            "2s",
            "--starts",
            "1",
            "--cache",
            cache,
        ],
    );
    for trial in &campaign.trials {
        let held = trial
            .events
            .iter()
            .find_map(|stamped| match &stamped.event {
                Event::ServerReady(ready) => Some(ready.held.as_deref()),
                _ => None,
            });
        assert_eq!(held, Some(Some("autovacuum")));
    }
    let shown = place.run(&["show"]);
    assert!(
        text(&shown.stdout).contains("autovacuum is held meanwhile"),
        "{}",
        text(&shown.stdout)
    );
    assert_eq!(
        fs::read_to_string(place.path("done"))
            .unwrap()
            .lines()
            .count(),
        2,
        "both servers worked off what they had"
    );
    assert_eq!(
        fs::read_to_string(place.path("stopped")).unwrap(),
        "",
        "a server was stopped while it worked off what a step had left"
    );
}

/// What the reads of switches, I/O, the machine's CPU and its device take, each the mean of many.
fn print_costs(server: u32, data: &Path) {
    let proc = Proc::new();
    let pids = tree_pids(&proc, &[server]).unwrap();
    let (mut machine, mut in_flight) = (MachineClocks::of(&proc), InFlight::under(&proc, data));
    let mean_us = |act: &mut dyn FnMut()| {
        const TIMES: u32 = 100;
        let begin = Instant::now();
        (0..TIMES).for_each(|_| act());
        begin.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES)
    };
    println!(
        "{} threads: a step's switches and I/O {:.0} us twice; a turn's CPU and steal of the \
         machine {:.0} us twice, its requests in flight {:.1} us once",
        proc_threads(server),
        mean_us(&mut || {
            std::hint::black_box(Activity::of_processes(&proc, &pids));
        }),
        mean_us(&mut || {
            std::hint::black_box(machine.read());
        }),
        mean_us(&mut || {
            let _ = std::hint::black_box(in_flight.read());
        }),
    );
}

fn proc_threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// By slices, and by blocks, where the server is not stopped.
#[test]
fn steps_have_the_switches_and_the_io_of_their_server() {
    const CLIENTS: usize = 50;
    let test = "cli::slices::steps_have_the_switches_and_the_io_of_their_server";
    let Some(build) = cached_build(test, "mysql@9.7") else {
        return;
    };
    let place = open(Place::on_disk());
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = [\"{}\"]\n\
         configs = [\"small\"]\nwait = \"100ms\"\ntests = [\"point-query\", \
         \"update-nonindex\"]\n[sizes]\nclients = {CLIENTS}\ntables = 1\nrows = \
         \"2K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n[config.small]\nsettings = {{ \
         innodb_buffer_pool_size = \"64M\", innodb_flush_method = \"fsync\" }}\n",
        build.name
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let cache = build.cache.to_str().unwrap();
    let run = place.run(&["run", "plan.toml", "--seed", "3", "--cache", cache]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    check_activity(&newest(&place), &place.dir.path().join("plimsoll-runs"));
    let child = place.spawn(&[
        "confirm", "--all", "--slices", "20ms", "--time", "3s", "--starts", "1", "--cache", cache,
    ]);
    let mut server = None;
    wait_until("a server has its connections", || {
        let pids = tree_pids(&Proc::new(), &[child.id()]).unwrap_or_default();
        server = pids.into_iter().find(|pid| {
            // Its name is its loader's.
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&command).contains("bin/mysqld") && proc_threads(*pid) >= CLIENTS
        });
        server.is_some()
    });
    print_costs(server.unwrap(), place.dir.path());
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let campaign = newest(&place);
    check_activity(&campaign, place.dir.path());
    for trial in &campaign.trials {
        for step in &campaign.header.confirm.as_ref().unwrap().steps {
            for turn in trial.turns(step).unwrap() {
                assert!(turn.all_operations >= Some(turn.operations), "{turn:?}");
                assert!(turn.stolen_ns.is_some(), "{turn:?}");
                let has_device = InFlight::under(&Proc::new(), place.dir.path())
                    .read()
                    .is_ok();
                assert_eq!(turn.inflight.is_some(), has_device, "{turn:?}");
            }
        }
    }
}

/// Each measured step has the counters of its server, and the metrics that follow from them.
fn check_activity(campaign: &CampaignRecord, data: &Path) {
    let has_device = InFlight::under(&Proc::new(), data).read().is_ok();
    let mut measured = 0;
    for done in campaign.trials.iter().flat_map(|trial| trial.steps_done()) {
        if !["point-query", "update-nonindex"].contains(&done.step.as_str()) {
            continue;
        }
        measured += 1;
        let value = |reading: HostReading| {
            let answer = done.host.answer(reading);
            answer.unwrap_or_else(|reason| panic!("{}: {}: {reason}", done.step, reading.name()))
        };
        println!(
            "{} {:?}",
            done.step,
            HostReading::OF_SERVER_PROCESSES.map(value)
        );
        assert!(value(HostReading::ServerVoluntarySwitches) > 0.0);
        if done.step == "update-nonindex" {
            assert!(value(HostReading::ServerWriteCalls) > 0.0);
            // A tmpfs is memory, and nothing of it reaches storage.
            assert_eq!(value(HostReading::ServerWriteBytes) > 0.0, has_device);
        }
    }
    assert!(measured >= 2, "{measured}");
}

#[test]
fn turns_have_a_longest_length() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    let output = place.run(&["confirm", "--step", "qr100", "--slices", "11s"]);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains(
            "--slices 11s: a turn is 10s at most; what takes longer is measured by --blocks 12"
        ),
        "{stderr}"
    );
}

/// A plan with one step on PostgreSQL, under way; its trial, and the pid of that.
fn started(place: &Place, build: &CachedBuild, watchdog: &str) -> (Child, PathBuf, u32) {
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
        [\"{}\"]\nconfigs = [\"small\"]\nwait = \"100ms\"\nwatchdog = \"{watchdog}\"\n\
         tests = [\"point-query\"]\n[sizes]\nclients = 1\ntables = 1\nrows = \"2K\"\nduration = \
        \"8s\"\nwarm_up = \"0ms\"\n\
         [config.small]\nsettings = {POSTGRES}\n",
        build.name
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let child = place.spawn(&[
        "run",
        "plan.toml",
        "--seed",
        "3",
        "--cache",
        build.cache.to_str().unwrap(),
    ]);
    let mut found = None;
    wait_until("the step has begun", || {
        let has_campaign = fs::read_dir(place.path("plimsoll-runs"))
            .is_ok_and(|mut campaigns| campaigns.next().is_some());
        let file = has_campaign
            .then(|| place.event_files().first().cloned())
            .flatten();
        let events = file
            .as_ref()
            .and_then(|path| fs::read_to_string(path).ok())
            .unwrap_or_default();
        let start = events
            .lines()
            .next()
            .and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        found = start
            .and_then(|start| Some((file?.parent()?.to_owned(), start["pid"].as_u64()? as u32)));
        events.contains("\"event\":\"step_start\",\"step\":\"point-query\"")
    });
    let (dir, pid) = found.unwrap();
    (child, dir, pid)
}

/// Signals a process and all that it has started.
fn signal_tree(root: u32, signal: Signal) {
    for pid in tree_pids(&Proc::new(), &[root])
        .unwrap()
        .into_iter()
        .filter_map(|pid| Pid::from_raw(pid as i32))
    {
        // One that has just ended has nothing to hear.
        let _ = kill_process(pid, signal);
    }
}

/// The step's own patience and the watchdog's end at the same time: who killed the server was told
/// as its crash.
#[test]
fn a_server_that_hangs_in_a_step_has_not_crashed() {
    let Some(build) = cached_build(
        "cli::slices::a_server_that_hangs_in_a_step_has_not_crashed",
        "postgres@18.6",
    ) else {
        return;
    };
    let place = open_place();
    let (child, dir, _) = started(&place, &build, "1s");
    // The workers are connected and at work by then, or soon.
    std::thread::sleep(Duration::from_secs(3));
    let identity: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.join("server/server-process.json")).unwrap()).unwrap();
    signal_tree(identity["pid"].as_u64().unwrap() as u32, Signal::STOP);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let events = fs::read_to_string(dir.join("events.jsonl")).unwrap();
    assert!(
        events.contains("\"reason\":\"hung: ") && !events.contains("server_crashed"),
        "{events}"
    );
}

/// A paused container or a migrating virtual machine stands still as a whole: nobody could have
/// answered.
#[test]
fn a_freeze_of_the_machine_is_no_hang() {
    let Some(build) = cached_build(
        "cli::slices::a_freeze_of_the_machine_is_no_hang",
        "postgres@18.6",
    ) else {
        return;
    };
    let place = open_place();
    let (child, _, trial) = started(&place, &build, "2s");
    signal_tree(trial, Signal::STOP);
    std::thread::sleep(Duration::from_secs(5));
    signal_tree(trial, Signal::CONT);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// The starts of a campaign in which a step was measured.
fn starts_with(campaign: &CampaignRecord, step: &str) -> Vec<usize> {
    let base = &campaign.header.confirm.as_ref().unwrap().base;
    let schedule = &campaign.header.schedule;
    let is_base = |number: u32| {
        let cell = schedule.iter().find(|of| of.number == number).unwrap().cell;
        campaign.header.plan.cells[cell].label == *base
    };
    let of_base = campaign
        .trials
        .iter()
        .filter(|trial| is_base(trial.number) && trial.is_complete());
    (1..)
        .zip(of_base)
        .filter(|(_, trial)| trial.steps_done().any(|done| done.step == step))
        .map(|(start, _)| start)
        .collect()
}

#[test]
fn steps_that_are_known_leave_a_campaign_with_a_budget() {
    let place = Place::new();
    let plan = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\nconfigs = \
                [\"wal_off\", \"wal_normal\"]\ntests = [\"point-query\", \
                \"update-nonindex\"]\ncomparable = false\nwait = \"100ms\"\n[sizes]\nclients = \
                1\ntables = 1\nrows = \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n";
    fs::write(place.path("plan.toml"), format!("{plan}{LIMITS}")).unwrap();
    let run = place.run(&["run", "plan.toml", "--seed", "3"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    // Whatever reads is soon known, and what writes never is.
    let output = place.run(&[
        "confirm", "--all", "--budget", "30s", "--reads", "99%", "--writes", "0.0001%",
    ]);
    let stderr = text(&output.stderr);
    let campaign = newest(&place);
    let [reads, writes] = ["point-query", "update-nonindex"].map(|step| {
        let starts = starts_with(&campaign, step);
        assert!(!starts.is_empty(), "{step}: {stderr}");
        starts
    });
    // `after start 4: 1 of 2 steps are done; ...`. While others have the machine that may be late, or
    // never.
    let known = stderr.lines().find_map(|line| {
        let (start, rest) = line.strip_prefix("after start ")?.split_once(": ")?;
        rest.starts_with("1 of 2 steps are done")
            .then(|| start.parse::<usize>().unwrap())
    });
    match known {
        Some(known) => {
            assert!(reads.len() >= 4, "{reads:?}: {stderr}");
            assert_eq!(reads.last(), Some(&known), "{reads:?}: {stderr}");
            let is_over = stderr.contains("has no room for another start");
            assert!(writes.len() > reads.len() || is_over, "{stderr}");
        }
        None => {
            assert!(stderr.contains("after start 2: 0 of 2 steps"), "{stderr}");
            assert!(reads.len() < 8, "eight starts and not known: {stderr}");
        }
    }
    let shown = place.run(&["show", "--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let starts = |step: &str| {
        let all = shown["comparisons"].as_array().unwrap();
        let is_it = |of: &&serde_json::Value| of["step"] == step && of["is_throughput"] == true;
        let of_step = all.iter().find(is_it).unwrap();
        let counted = of_step["starts"].as_array().unwrap().len();
        counted + of_step["left_out"].as_u64().unwrap() as usize
    };
    assert_eq!(starts("point-query"), reads.len());
    assert_eq!(starts("update-nonindex"), writes.len());
}

#[test]
fn a_budget_that_has_no_room_says_so() {
    let place = Place::new();
    let plan = fs::read_to_string(place.path("small.toml")).unwrap();
    fs::write(place.path("small.toml"), plan + LIMITS).unwrap();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    let output = place.run(&[
        "confirm", "--step", "qr100", "--budget", "1ms", "--reads", "0.001%",
    ]);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("the budget of 1.0ms has no room for another start of about"),
        "{stderr}"
    );
    assert_eq!(starts_with(&newest(&place), "qr100"), [1], "{stderr}");
    let both = place.run(&[
        "confirm", "--step", "qr100", "--budget", "1m", "--time", "1s",
    ]);
    assert_eq!(both.status.code(), Some(2));
    assert!(text(&both.stderr).contains("cannot be used with"));
}

/// What background writers had inserted in a start was in the data of the next: with one load that was
/// taken for a copy that nobody had written to, and the rows were not those of the plan.
#[test]
fn rows_that_background_writers_insert_are_not_in_the_next_start() {
    let place = Place::new();
    let plan = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs = \
                [\"wal_off\"]\ncomparable = false\nwait = \"100ms\"\n[sizes]\nclients = 1\nduration \
                = \"200ms\"\nrows = \"5K\"\nwrite_rows = \"1K\"\ndeletes = false\n";
    fs::write(place.path("plan.toml"), format!("{plan}{LIMITS}")).unwrap();
    let run = place.run(&["run", "plan.toml", "--seed", "3"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let arguments = [
        "--step", "qr100", "--loads", "1", "--time", "3s", "--starts", "3",
    ];
    let campaign = confirmed(&place, &arguments);
    assert_eq!(starts_with(&campaign, "qr100"), [1, 2, 3]);
}

/// Behind the last update a start waited as long as the plan waits before reads, though by slices
/// nothing reads behind it.
#[test]
fn a_start_does_not_wait_between_its_writes() {
    let place = Place::new();
    let plan = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\nconfigs = \
                [\"wal_off\"]\ntests = [\"update-index\", \"point-query\", \"delete\"]\n\
                comparable = false\nwait = \"2s\"\n[sizes]\nclients = 1\ntables = 1\nrows = \"5K\"\n\
                duration = \"1s\"\nwarm_up = \"0ms\"\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    let campaign = confirmed(&place, &["plan.toml", "--starts", "1", "--time", "200ms"]);
    for trial in &campaign.trials {
        let drains: Vec<(&str, f64)> = trial
            .events
            .iter()
            .filter_map(|of| match &of.event {
                Event::DrainDone(done) => Some((done.step.as_str(), done.waited_s)),
                _ => None,
            })
            .collect();
        assert!(
            matches!(drains[..], [("update-index", waited_s)] if waited_s < 1.0),
            "{drains:?}"
        );
        let told = &trial.start().unwrap().steps;
        assert_eq!(told, &["point-query", "update-index", "delete"]);
    }
}
