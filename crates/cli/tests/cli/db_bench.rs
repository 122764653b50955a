//! db_bench as the driver: Debian's program runs the whole sequence, and nothing of it is left when
//! it is stopped.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_store::Store;
use plimsoll_store::event::{Event, StepDone};
use plimsoll_store::series::{operations_path, read_operations};
use plimsoll_testkit::cached_build;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, processes_in, text, wait, wait_until};

const BUILD: &str = "rocksdb@7.8.3+debian";

struct Driven {
    place: Place,
    cache: PathBuf,
}

impl Driven {
    /// Nothing where the build is not in the cache; then the test is skipped.
    fn new(test: &str, sizes: &str, settings: &str) -> Option<Self> {
        let build = cached_build(&format!("cli::db_bench::{test}"), BUILD)?;
        let place = Place::new();
        let plan = format!(
            "name = \"t\"\nworkload = \"rocksdb\"\ncomparable = false\nbuilds = \
            [\"{BUILD}\"]\nconfigs = [\"c\"]\n[sizes]\nclients = 2\n{sizes}\n\
             [config.c]\nfrom = \"lc_byrx_small\"\ndriver = \"db_bench\"\nsettings = \
            {{ write_buffer_size = \"1m\", target_file_size_base = \"1m\", max_bytes_for_level_base = \"2m\", block_cache_bytes = \"64m\"{settings} }}\n"
        );
        fs::write(place.path("plan.toml"), plan).unwrap();
        Some(Self {
            place,
            cache: build.cache,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(arguments);
        command.arg("--cache").arg(&self.cache);
        command
    }

    fn run(&self) -> Output {
        self.command(&["run", "plan.toml", "--seed", "3"])
            .output()
            .unwrap()
    }

    fn campaign(&self) -> plimsoll_store::CampaignRecord {
        Store::new(self.place.path("plimsoll-runs"))
            .find(None)
            .unwrap()
            .load()
            .unwrap()
    }
}

fn reading(done: &StepDone, name: HostReading) -> f64 {
    match &done.host[name] {
        Reading::Ok(value) => *value,
        Reading::Unavailable(reason) => panic!("{name:?} of {}: {reason}", done.step),
    }
}

#[test]
fn all_steps_run_and_give_what_db_bench_prints() {
    let sizes = "rows = \"30K\"\nduration = \"2s\"";
    let Some(driven) = Driven::new("all_steps_run_and_give_what_db_bench_prints", sizes, "") else {
        return;
    };
    let ran = driven.run();
    assert_eq!(ran.status.code(), Some(0), "{}", text(&ran.stderr));
    let campaign = driven.campaign();
    let trial = &campaign.trials[0];
    let done: Vec<&StepDone> = trial.steps_done().collect();
    assert_eq!(done.len(), 9);
    for done in done {
        let step = &done.step;
        let log =
            fs::read_to_string(trial.dir.join(format!("server/benchmark_{step}.log"))).unwrap();
        let ops_sec = log
            .lines()
            .rev()
            .find(|line| line.contains("micros/op"))
            .and_then(|line| line.split_whitespace().nth(4))
            .unwrap();
        assert_eq!(
            done.notes["printed.qps"],
            ops_sec.parse::<f64>().unwrap(),
            "{step}"
        );
        assert!(
            reading(done, HostReading::ProcessCpu) > 0.0
                && reading(done, HostReading::OwnUser) > 0.0,
            "{step}"
        );
        assert!(
            reading(done, HostReading::Database) > 0.0 && reading(done, HostReading::RssMax) > 0.0,
            "{step}"
        );
        // Of so short a step RocksDB prints an uptime of 0.0.
        assert!(
            done.notes.contains_key("uptime_s") && done.notes.contains_key("lsm_files"),
            "{step}: {:?}",
            done.notes
        );
        if done.primary != "put" {
            assert_eq!(done.notes["found_ratio"], 1.0, "{step}");
            let seconds = read_operations(operations_path(&trial.dir, step)).unwrap();
            assert!(
                !seconds.is_empty() && seconds.iter().all(|row| row.kind == done.primary),
                "{step}"
            );
        }
        if step.starts_with("fillseq") {
            assert_eq!(done.operations[0].ok, 30_000);
        }
        if step.starts_with("overwriteandwait") {
            assert_eq!(done.notes["wait_is_complete"], 1.0);
        }
    }
    let drains: Vec<String> = trial
        .events
        .iter()
        .filter_map(|stamped| match &stamped.event {
            Event::DrainDone(drain) => Some(drain.actions[0].action.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        drains,
        [
            "db_bench waitforcompaction",
            "db_bench flush, waitforcompaction, compact0, waitforcompaction"
        ]
    );
    let shown = driven.command(&["show"]).output().unwrap();
    let shown = text(&shown.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for part in [
        "Assertions are enabled",
        "Load and numbers by db_bench",
        "delete_obsolete_files_period_micros",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let refused = driven
        .command(&["confirm", "--step", "readrandom.t2", "--slices", "20ms"])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let reason = "db_bench drives cell rocksdb@7.8.3+debian.c, and does not stop for the turns of \
                 others; take --blocks 12";
    assert!(
        text(&refused.stderr).contains(reason),
        "{}",
        text(&refused.stderr)
    );
    let exported = driven
        .place
        .command(&["export", "--classic", "out"])
        .output()
        .unwrap();
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    let report = fs::read_to_string(driven.place.path(&format!("out/{BUILD}/report.tsv"))).unwrap();
    assert!(
        report.starts_with("# driven by plimsoll, measured by db_bench"),
        "{report}"
    );
    assert_eq!(
        report
            .lines()
            .filter(|line| line.split('\t').count() == 28)
            .count(),
        10,
        "{report}"
    );
    // What is exported is read back as the scripts' own files are; the tables over versions, which
    // follow from them, are passed over.
    let imported = driven
        .place
        .command(&["import", "out", "--json", "--store", "imported"])
        .output()
        .unwrap();
    assert_eq!(
        imported.status.code(),
        Some(0),
        "{}",
        text(&imported.stderr)
    );
    let shown = driven
        .place
        .command(&["show", "--store", "imported"])
        .output()
        .unwrap();
    let rows = text(&shown.stdout);
    assert!(
        rows.contains("readwhilewriting.t2") && rows.contains("imported"),
        "{rows}"
    );
    assert!(
        rows.contains("Exported by Plimsoll: driven by plimsoll, measured by db_bench"),
        "{rows}"
    );
}

#[test]
fn a_setting_without_a_flag_is_told_before_the_first_trial() {
    let settings = ", bottommost_compression = \"kZSTD\"";
    let sizes = "rows = \"1K\"\nduration = \"1s\"";
    let Some(driven) = Driven::new(
        "a_setting_without_a_flag_is_told_before_the_first_trial",
        sizes,
        settings,
    ) else {
        return;
    };
    let ran = driven.run();
    assert_ne!(ran.status.code(), Some(0));
    let error = text(&ran.stderr);
    assert!(
        error.contains("bottommost_compression") && error.contains("db_bench has no flag for it"),
        "{error}"
    );
}

#[test]
fn a_stop_ends_db_bench_at_once_and_leaves_nothing_running() {
    let sizes = "rows = \"10K\"\nduration = \"600s\"";
    let Some(driven) = Driven::new(
        "a_stop_ends_db_bench_at_once_and_leaves_nothing_running",
        sizes,
        "",
    ) else {
        return;
    };
    let child = driven
        .command(&["run", "plan.toml", "--seed", "3"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let runs = driven.place.path("plimsoll-runs");
    wait_until("a timed step runs", || {
        let has_campaign = fs::read_dir(&runs).is_ok_and(|mut entries| entries.next().is_some());
        has_campaign
            && driven
                .place
                .steps_done()
                .iter()
                .any(|(_, step)| step.starts_with("fillseq"))
            && !processes_in(driven.place.dir.path()).is_empty()
    });
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    wait(child);
    wait_until("db_bench is gone", || {
        processes_in(driven.place.dir.path()).is_empty()
    });
    let campaign = driven.campaign();
    let is_interrupted = |stamped: &plimsoll_store::Stamped| matches!(&stamped.event, Event::TrialFailed(failed) if failed.interrupted);
    assert!(campaign.trials[0].events.iter().any(is_interrupted));
}
