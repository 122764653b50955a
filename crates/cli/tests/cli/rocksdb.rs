//! RocksDB's benchmark on real libraries: the sequence, a process for each step, what is left of
//! trials that break, turns.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_store::event::Event;
use plimsoll_store::series::{levels_path, read_levels};
use plimsoll_store::{CampaignRecord, Store, TrialRecord};
use plimsoll_testkit::cached_build;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, UNDECIDED, processes_in, text, wait, wait_until};

const OLD: &str = "rocksdb@8.0.0";
const NEW: &str = "rocksdb@8.9.1";
const KEYS: u64 = 20_000;
const TWO: &str = "clients = 2";
const STEPS: [&str; 9] = [
    "fillseq.wal_disabled.v400",
    "readrandom.t2",
    "fwdrange.t2",
    "multireadrandom.t2",
    "overwritesome.t2.s0",
    "revrangewhilewriting.t2",
    "fwdrangewhilewriting.t2",
    "readwhilewriting.t2",
    "overwriteandwait.t2.s0",
];

/// A place with a plan of this top and these sizes, and the cache with the libraries.
struct Rocks {
    place: Place,
    cache: PathBuf,
}

impl Rocks {
    /// Nothing where a library is not in the cache; then the test is skipped.
    fn new(test: &str, builds: &[&str], style: &str, top: &str, sizes: &str) -> Option<Self> {
        let cached: Vec<_> = builds
            .iter()
            .map(|build| cached_build(&format!("cli::rocksdb::{test}"), build))
            .collect::<Option<_>>()?;
        let place = Place::new();
        let names: Vec<String> = builds.iter().map(|build| format!("\"{build}\"")).collect();
        // Small files, so that so few keys make several levels.
        let plan = format!(
            "name = \"t\"\nworkload = \"rocksdb\"\ncomparable = false\nbuilds = [{}]\nconfigs = \
            [\"c\"]\nverify = \"full\"\n{top}\n\
             [config.c]\nfrom = \"{style}_byrx_small\"\nsettings = \
            {{ write_buffer_size = \"1048576\", target_file_size_base = \"1048576\", max_bytes_for_level_base = \"2097152\", block_cache_bytes = \"67108864\" }}\n\
             [sizes]\nrows = {KEYS}\nduration = \"1s\"\n{sizes}\n",
            names.join(", ")
        );
        fs::write(place.path("plan.toml"), plan).unwrap();
        Some(Self {
            place,
            cache: cached[0].cache.clone(),
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.arg("--cache").arg(&self.cache);
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

    fn newest(&self) -> CampaignRecord {
        Store::new(self.place.path("plimsoll-runs"))
            .find(None)
            .unwrap()
            .load()
            .unwrap()
    }

    /// The steps that were done in the first attempts, each with the trial's folder.
    fn wait_for_step(&self, step: &str) {
        wait_until(&format!("{step} is done"), || {
            let has_campaign = fs::read_dir(self.place.path("plimsoll-runs"))
                .is_ok_and(|mut entries| entries.next().is_some());
            has_campaign && self.place.steps_done().iter().any(|(_, done)| done == step)
        });
    }
}

fn ready_events(trial: &TrialRecord) -> usize {
    trial
        .events
        .iter()
        .filter(|stamped| matches!(stamped.event, Event::ServerReady(_)))
        .count()
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

fn succeed(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn both_styles_run_the_sequence_and_find_every_key() {
    for style in ["lc", "uc"] {
        let Some(rocks) = Rocks::new(
            "both_styles_run_the_sequence_and_find_every_key",
            &[NEW],
            style,
            "",
            TWO,
        ) else {
            return;
        };
        succeed(&rocks.run(&["run", "plan.toml", "--seed", "3"]));
        let campaign = rocks.newest();
        let trial = &campaign.trials[0];
        let done: Vec<_> = trial.steps_done().collect();
        assert_eq!(
            done.iter()
                .map(|done| done.step.as_str())
                .collect::<Vec<_>>(),
            STEPS
        );
        assert_eq!(
            ready_events(trial),
            STEPS.len(),
            "each step opens the store again"
        );
        for done in &done {
            let step = &done.step;
            assert_eq!(done.tables[0].found_rows, KEYS, "{step}");
            assert_eq!(done.notes["has_own_process"], 1.0, "{step}");
            assert!(
                done.notes.contains_key("uptime_s"),
                "{step}: {:?}",
                done.notes
            );
            let operation = |kind: &str| {
                done.operations
                    .iter()
                    .find(|operation| operation.kind == kind)
                    .unwrap()
            };
            let primary = operation(done.primary.as_str());
            assert!(primary.ok > 0 && primary.failed == 0, "{step}");
            match done.primary.as_str() {
                "get" => assert_eq!(primary.rows, primary.ok, "{step}"),
                "multiget" => assert_eq!(primary.rows, primary.ok * 10, "{step}"),
                "range" => assert!(
                    primary.rows > primary.ok * 9 && primary.rows <= primary.ok * 10,
                    "{step}"
                ),
                _ => {}
            }
            if done.primary != "put" {
                assert_eq!(done.notes["found_ratio"], 1.0, "{step}");
            }
            if step.contains("whilewriting") {
                let pacing = operation("put").pacing.as_ref().unwrap();
                assert!(
                    (pacing.target_per_s - 4993.2).abs() < 2.0,
                    "{step}: {pacing:?}"
                );
                // A machine that others use may not keep it; none does more.
                assert!(
                    (0.5..1.01).contains(&(pacing.achieved_per_s / pacing.target_per_s)),
                    "{step}: {pacing:?}"
                );
            }
            assert!(levels_path(&trial.dir, step).is_file(), "{step}");
        }
        let ok = |index: usize| done[index].operations[0].ok;
        assert_eq!((ok(0), ok(4)), (KEYS, KEYS / 10));
        assert!(done[8].notes["wait_seconds"] >= 0.0 && done[8].notes["wait_is_complete"] == 1.0);
        // The load was written without the log and into levels; what the first reads found in the
        // cache, nobody had put there.
        let cached = done[1].engine_counters["rocksdb.block-cache-usage"];
        assert!(
            cached > 1 << 20,
            "a process of its own begins with an empty cache: {cached}"
        );
        let drain = |event: &Event| match event {
            Event::DrainDone(drain) => Some((drain.step.clone(), drain.actions.len())),
            _ => None,
        };
        let drains: Vec<_> = trial
            .events
            .iter()
            .filter_map(|stamped| drain(&stamped.event))
            .collect();
        let actions = if style == "lc" { 4 } else { 0 };
        assert_eq!(
            drains,
            [(STEPS[0].to_owned(), 1), (STEPS[4].to_owned(), actions)]
        );
        if style == "lc" {
            let first = read_levels(levels_path(&trial.dir, STEPS[5])).unwrap();
            assert!(
                first
                    .iter()
                    .all(|sample| sample.second > 0 || sample.level > 0),
                "level 0 was emptied before: {first:?}"
            );
        }
        let shown = rocks.run(&["show"]);
        succeed(&shown);
        let apart = "begin with different data: overwritesome.t2.s0 does a fixed number of things \
                    and cannot be cut into turns, and lies between them; for slices confirm them \
                    one by one, --step readrandom.t2,fwdrange.t2,multireadrandom.t2 and then \
                    --step revrangewhilewriting.t2,";
        let refused = rocks.run(&["confirm", "--all", "--slices"]);
        assert!(
            refused.status.code() == Some(2) && text(&refused.stderr).contains(apart),
            "{}",
            text(&refused.stderr)
        );
        let explained = text(&rocks.run(&["plan", "explain", "plan.toml"]).stdout);
        assert!(
            explained.contains("confirm --all: not by slices: ") && explained.contains(apart),
            "{explained}"
        );
    }
}

#[test]
fn one_process_keeps_its_caches_and_the_same_seed_the_same_data() {
    let test = "one_process_keeps_its_caches_and_the_same_seed_the_same_data";
    let sums: Vec<String> = ["step", "trial"]
        .into_iter()
        .filter_map(|process| {
            let steps = "steps = [\"fillseq\", \"readrandom\", \"fwdrange\", \"overwritesome\"]";
            let rocks = Rocks::new(
                test,
                &[OLD],
                "lc",
                steps, // Of two threads that put one key the last is chance.
                &format!("clients = 1\nprocess = \"{process}\""),
            )?;
            succeed(&rocks.run(&["run", "plan.toml", "--seed", "3"]));
            let campaign = rocks.newest();
            let trial = &campaign.trials[0];
            assert_eq!(
                ready_events(trial),
                if process == "step" { 4 } else { 2 },
                "the load is opened otherwise than the others"
            );
            let done: Vec<_> = trial.steps_done().collect();
            let grown = done[2].engine_counters["rocksdb.block-cache-usage"];
            assert_eq!(
                grown > 1 << 20,
                process == "step",
                "{process}: the cache grew by {grown} bytes in the second step that reads"
            );
            done[3].tables[0].checksum.clone()
        })
        .collect();
    assert!(
        sums.is_empty() || (sums.len() == 2 && sums[0] == sums[1]),
        "{sums:?}"
    );
}

#[test]
fn what_breaks_between_and_in_steps_is_resumed() {
    let Some(rocks) = Rocks::new(
        "what_breaks_between_and_in_steps_is_resumed",
        &[OLD],
        "lc",
        "",
        TWO,
    ) else {
        return;
    };
    // Killed in the middle: the trial's process dies with it, in whichever image it is.
    let child = rocks.spawn();
    rocks.wait_for_step(STEPS[1]);
    signal(child.id(), Signal::KILL);
    assert_eq!(wait(child).status.signal(), Some(9));
    wait_until("the trial's process is gone", || {
        processes_in(rocks.place.dir.path()).is_empty()
    });
    assert!(rocks.place.steps_done().len() < STEPS.len());
    // Ctrl-C in the second attempt.
    let child = rocks
        .command(&["resume"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the second attempt is under way", || {
        rocks
            .place
            .steps_done()
            .iter()
            .any(|(folder, step)| folder.ends_with("-a2") && step == STEPS[2])
    });
    signal(child.id(), Signal::INT);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(processes_in(rocks.place.dir.path()).is_empty());
    succeed(&rocks.run(&["resume"]));
    let campaign = rocks.newest();
    let complete: Vec<u32> = campaign
        .trials
        .iter()
        .filter(|trial| trial.is_complete())
        .map(|trial| trial.attempt)
        .collect();
    assert_eq!(complete, [3]);
    let left: Vec<_> = fs::read_dir(rocks.place.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, [".plimsoll-data"]);
}

#[test]
fn versions_take_turns() {
    let steps = "steps = [\"fillseq\", \"readrandom\"]";
    let Some(rocks) = Rocks::new("versions_take_turns", &[OLD, NEW], "lc", steps, TWO) else {
        return;
    };
    succeed(&rocks.run(&["run", "plan.toml", "--seed", "3"]));
    let output = rocks.run(&[
        "confirm",
        "--step",
        "readrandom",
        "--slices",
        "20ms",
        "--starts",
        "3",
        "--time",
        "3s",
    ]);
    assert!(
        matches!(output.status.code(), Some(0 | 3 | UNDECIDED)),
        "{}",
        text(&output.stderr)
    );
    assert!(
        text(&output.stderr).contains("nothing is pinned: the engine is in the workers' process"),
        "{}",
        text(&output.stderr)
    );
    let explained = rocks.run(&["explain", "readrandom"]);
    assert!(
        text(&explained.stdout).starts_with("readrandom.t2: "),
        "{}",
        text(&explained.stderr)
    );
    let campaign = rocks.newest();
    let confirm = campaign.header.confirm.as_ref().unwrap();
    assert_eq!(
        (confirm.steps.as_slice(), &confirm.placement),
        (&["readrandom.t2".to_owned()][..], &None)
    );
    assert_eq!(
        campaign.trials.len(),
        9,
        "two versions and the control, three starts"
    );
    for trial in &campaign.trials {
        assert!(trial.is_complete(), "{:?}", trial.events.last());
        let turns = trial.turns("readrandom.t2").unwrap();
        assert!(turns.iter().any(|turn| turn.operations > 0));
        assert!(
            turns.iter().any(|turn| turn.other_servers_cpu_ns.is_some()),
            "what the others' threads use is seen"
        );
    }
}

#[test]
fn an_open_loop_has_response_times() {
    let top = "steps = [\"fillseq\", \"overwritesome\", \
              \"revrangewhilewriting\"]\n[step.revrangewhilewriting]\nrate = 2000";
    let Some(rocks) = Rocks::new("an_open_loop_has_response_times", &[NEW], "lc", top, TWO) else {
        return;
    };
    succeed(&rocks.run(&["run", "plan.toml", "--seed", "3"]));
    let campaign = rocks.newest();
    let done = campaign.trials[0].steps_done().last().unwrap();
    let range = done
        .operations
        .iter()
        .find(|operation| operation.kind == "range")
        .unwrap();
    assert!(
        range.response.is_some() && range.lag.is_some() && range.ok > 0 && range.ok <= 2000,
        "{}",
        range.ok
    );
    assert_eq!(range.pacing.as_ref().unwrap().target_per_s, 2000.0);
}

#[test]
fn plans_that_cannot_be_are_refused_before_anything_runs() {
    let place = Place::new();
    let plan = |workload: &str, build: &str, config: &str| {
        format!(
            "name = \"t\"\nworkload = \"{workload}\"\nbuilds = [\"{build}\"]\nconfigs = \
            [\"{config}\"]\n"
        )
    };
    for (text_of_plan, wanted) in [
        (
            plan("insert-benchmark", NEW, "lc_byrx_small"),
            "plan.toml:3:11: cell rocksdb@8.9.1.lc_byrx_small: rocksdb has no SQL",
        ),
        (
            plan("rocksdb", "sqlite", "wal_off"),
            "plan.toml:3:11: cell sqlite.wal_off: the workload rocksdb is keys and values",
        ),
        (
            plan("rocksdb", NEW, "lc_byrx_smal"),
            "there is no config \"lc_byrx_smal\" for rocksdb (did you mean \"lc_byrx_small\"?)",
        ),
        (
            plan("rocksdb", NEW, "lc_byrx_small") + "[sizes]\nrows = 0\n",
            "plan.toml:6:8: rows must be 1 to",
        ),
    ] {
        fs::write(place.path("plan.toml"), text_of_plan).unwrap();
        let output = place.run(&["plan", "check", "plan.toml"]);
        let stderr = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && stderr.contains(wanted),
            "wanted {wanted}\nfound {stderr}"
        );
    }
    assert!(!place.path("plimsoll-runs").exists());
}
