//! What an analysis and its page take of a plan as large as those that are published.
//!
//! `PLIMSOLL_MEMORY_S=1800` makes it ten cells of ten steps of half an hour with twenty clients, and
//! prints what `docs/reliability.md` has.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;

use common::{Campaign, Speed, plan_text, step};
use peak_alloc::PeakAlloc;
use plimsoll_analysis::{Options, analyse};
use plimsoll_report::to_html;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

const MOST_BYTES: usize = 200 << 20;
const CLIENTS: usize = 20;

/// SQLite has four configs, and cells of several shapes are cells as well.
fn campaign(cells: usize, duration_s: u64) -> Campaign {
    let configs = ["wal_full", "wal_off", "wal_normal", "delete_full"];
    let text = plan_text(&configs, duration_s, "");
    let text = text.replace("clients = 2\n", &format!("clients = {CLIENTS}\n"));
    let repeat = |plan: &mut plimsoll_core::plan::Plan| {
        let of_plan = plan.cells.clone();
        let repeated = of_plan.iter().cycle().take(cells).cloned();
        plan.cells = repeated.collect();
        for (number, cell) in (1..).zip(&mut plan.cells) {
            cell.label = format!("{}.n{number}", cell.label);
        }
    };
    let campaign = Campaign::with_plan("20261121T080000Z-large", &text, None, repeat);
    for trial in 1..=cells as u32 {
        let mut attempt = campaign.attempt(trial, 1, &[("journal_mode", "wal")]);
        for plan in campaign.steps() {
            let speed = Speed {
                queries: 1.0 + f64::from(trial) / 100.0,
                ..Speed::default()
            };
            attempt.step(step(plan, speed));
        }
        attempt.complete();
    }
    campaign
}

#[test]
fn a_plan_of_a_published_size_is_drawn_in_bounded_memory() {
    let asked = std::env::var("PLIMSOLL_MEMORY_S").ok();
    let asked = asked.map(|asked| asked.parse::<u64>().expect("a number of seconds"));
    let (cells, duration_s) = asked.map_or((4, 120), |asked| (10, asked));
    let campaign = campaign(cells, duration_s);
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let page = {
        let view = analyse(&[campaign.load()], &Options::default()).unwrap();
        assert_eq!(view.cells.len(), cells);
        to_html(&view)
    };
    let taken = MEMORY.peak_usage().saturating_sub(before);
    println!(
        "{cells} cells, {} steps, {CLIENTS} clients, {duration_s} s: {:.1} MB for a page of {:.1} MB",
        campaign.steps().len(),
        taken as f64 / 1e6,
        page.len() as f64 / 1e6,
    );
    // The small form has to leave as much room as the large one will need.
    let share = if asked.is_some() { 1 } else { 2 };
    assert!(taken < MOST_BYTES / share, "{taken} bytes");
}
