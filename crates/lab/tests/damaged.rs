//! Campaigns whose files are damaged: `resume` runs again what it says, or refuses.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use plimsoll_analysis::{Options, analyse, brief_lines, verdict_lines};
use plimsoll_core::plan::Budget;
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{Notice, Observer, run_campaign};
use plimsoll_store::CampaignDir;

#[derive(Default)]
struct Heard(Vec<String>, AtomicUsize);

impl Observer for Heard {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Remark(text) | Notice::Warning(text) => self.0.push(text.to_owned()),
            Notice::TrialBroken { cell, reason } => {
                self.0.push(format!("{}: {reason}", cell.label))
            }
            _ => {}
        }
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.1
    }
}

/// `resume` of a campaign with a budget says "trial N runs again, because attempt 1 is damaged", and
/// does not run it: what is there is enough. docs/reliability.md: "`resume` runs the trial again".
#[test]
fn what_is_said_to_run_again_runs_again() {
    let mut made = common::confirm::slices(8, 60, &|_, _, _| {});
    let data = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let header = &mut made.folder.header;
    header.data_dir = data.path().join("data").display().to_string();
    header.confirm.as_mut().unwrap().budget = Some(Budget {
        time_ns: 3_600_000_000_000,
        reads: 0.3,
        writes: 0.3,
    });
    let scheduled = header
        .schedule
        .iter()
        .find(|of| of.block == 2)
        .unwrap()
        .clone();
    let label = header.plan.cells[scheduled.cell].label.clone();
    let events = made
        .folder
        .trial_dir(scheduled.number, &label, 1)
        .join("events.jsonl");
    fs::write(&events, "x\n").unwrap();
    let builds = BuildCache::new(cache.path());
    let mut heard = Heard::default();
    let end = run_campaign(
        &mut made.folder,
        None,
        &builds,
        Path::new("/bin/false"),
        &mut heard,
    );
    let attempts: Vec<u32> = made
        .folder
        .trials()
        .unwrap()
        .iter()
        .filter(|trial| trial.number == scheduled.number)
        .map(|trial| trial.attempt)
        .collect();
    let is_said = heard.0.iter().any(|text| text.contains("runs again"));
    let decided = fs::read_to_string(made.folder.path.join("decided.json"));
    assert!(
        !is_said || attempts.len() > 1,
        "{:#?}\n{end:?}, attempts {attempts:?} of trial {}, decided.json {decided:?}",
        heard.0,
        scheduled.number
    );
}

/// A campaign of nobody's plan is imported, or damaged.
#[test]
fn a_native_header_without_cells_is_refused_or_shown() {
    let made = common::sample(12);
    let path = made.folder.path.join("campaign.json");
    let mut header: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    header["plan"]["cells"] = serde_json::json!([]);
    header["cells"] = serde_json::json!([]);
    header["schedule"] = serde_json::json!([]);
    fs::write(&path, serde_json::to_vec(&header).unwrap()).unwrap();
    let Ok(campaign) = CampaignDir::open(&made.folder.path) else {
        return;
    };
    let record = campaign.load().unwrap();
    if let Ok(view) = analyse(&[record], &Options::default()) {
        brief_lines(&view);
        verdict_lines(&view);
    }
}

#[test]
fn a_header_with_no_starts_is_refused_or_run() {
    let mut made = common::confirm::slices(2, 8, &|_, _, _| {});
    let data = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let path = made.folder.path.join("campaign.json");
    let header = &mut made.folder.header;
    header.data_dir = data.path().join("data").display().to_string();
    let confirm = header.confirm.as_mut().unwrap();
    confirm.starts = Some(0);
    confirm.budget = Some(Budget {
        time_ns: 3_600_000_000_000,
        reads: 0.3,
        writes: 0.3,
    });
    fs::write(&path, serde_json::to_vec(&header).unwrap()).unwrap();
    let Ok(mut campaign) = CampaignDir::open(&made.folder.path) else {
        return;
    };
    let builds = BuildCache::new(cache.path());
    let _ = run_campaign(
        &mut campaign,
        None,
        &builds,
        Path::new("/bin/false"),
        &mut Heard::default(),
    );
}
