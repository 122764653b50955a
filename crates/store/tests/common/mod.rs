//! What several tests need: a campaign's header, events, and this test again as another process.

#![allow(
    dead_code,
    reason = "every test file compiles this module and uses a part of it"
)]

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use plimsoll_core::plan::Plan;
use plimsoll_core::schedule::schedule;
use plimsoll_store::event::{Event, TrialDone, TrialStart};
use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};

pub const SEED: u64 = 42;
pub const METHODOLOGY_VERSION: u32 = 1;

const PLAN: &str = r#"
name = "tiny"
workload = "insert-benchmark"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]

[sizes]
rows = 1000
write_rows = 1000
duration = "2s"
"#;

/// A campaign of two cells, one block.
pub fn header(id: &str) -> CampaignHeader {
    let plan = Plan::parse("tiny.toml", PLAN).unwrap();
    let cells = plan.cells.iter().map(|cell| CellHeader {
        label: cell.label.clone(),
        version: "3.50.4".into(),
        origin: "bundled".into(),
        build: None,
        missing_build: None,
        config_source: "shipped".into(),
        settings: [("synchronous".to_owned(), "full".to_owned())].into(),
    });
    CampaignHeader {
        format: FORMAT,
        id: id.to_owned(),
        created: "2026-11-21T08:00:00Z".into(),
        plimsoll_version: "0.1.0".into(),
        methodology_version: METHODOLOGY_VERSION,
        seed: SEED,
        plan_text: PLAN.into(),
        cells: cells.collect(),
        schedule: schedule(plan.cells.len(), plan.blocks, SEED),
        plan,
        data_dir: "/var/tmp/plimsoll".into(),
        confirm: None,
        fleet: None,
        client_hosts: None,
    }
}

/// The first event of a trial of [`header`]'s campaign.
pub fn trial_start(trial: u32, attempt: u32) -> Event {
    let header = header("any");
    let scheduled = &header.schedule[trial as usize - 1];
    Event::TrialStart(TrialStart {
        trial,
        attempt,
        cell: header.cells[scheduled.cell].label.clone(),
        block: scheduled.block,
        part: scheduled.part,
        campaign: None,
        seed: SEED,
        methodology_version: METHODOLOGY_VERSION,
        pid: std::process::id(),
        pid_start_ticks: 1,
        load: None,
        boot_id: "boot".into(),
        host: None,
        link: None,
        steps: Vec::new(),
        machine_id: None,
    })
}

/// The last event of a trial.
pub fn trial_done() -> Event {
    Event::TrialDone(TrialDone {
        seconds: 1.5,
        stop_problem: None,
    })
}

const ROLE: &str = "PLIMSOLL_STORE_TEST_FOLDER";

/// The folder to work in, in a process that [`as_child`] started.
pub fn child_folder() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// Runs `test` of this test binary again, in a process of its own, through the command `through` if
/// it is not empty. That process finds `folder` with [`child_folder`] and speaks on its standard
/// error: standard output is the test harness's.
pub fn as_child(through: &[&str], test: &str, folder: impl AsRef<OsStr>) -> Command {
    let me = std::env::current_exe().unwrap();
    let mut command = match through {
        [] => Command::new(me),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(me);
            command
        }
    };
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, folder);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}
