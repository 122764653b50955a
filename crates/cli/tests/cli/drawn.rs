//! What all rows of faults share: how many a run draws, and what must be true after each.

use std::fmt;
use std::path::Path;

use plimsoll_audit::{Facts, audit};
use plimsoll_core::seed::Draw;

/// How many faults of a row are to be drawn, and from what: `few` and the same in every run, so that
/// what they find is a bug and not luck, or as many as `PLIMSOLL_FAULTS` says. Prints what repeats
/// them.
pub fn faults(row: &str, few: u64) -> (u64, Draw) {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let count = number("PLIMSOLL_FAULTS").unwrap_or(few);
    let seed = number("PLIMSOLL_FAULTS_SEED").unwrap_or(match count == few {
        true => 1,
        false => u64::from(std::process::id()),
    });
    println!("PLIMSOLL_FAULTS={count} PLIMSOLL_FAULTS_SEED={seed}");
    (count, Draw::new(seed, &[row]))
}

/// Whatever happened, the store says nothing that is not so, and nothing is left.
#[track_caller]
pub fn assert_sound(store: &Path, data: &Path, facts: &Facts, what: &dyn fmt::Display) {
    let audit = audit(store, data, facts);
    let findings: Vec<String> = audit.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{what}: {findings:#?}");
}
