//! What sessions waited for, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::{WaitChange, Waited};
use serde_json::{Value, json};

use super::Draw;

/// Events that text shows.
const SHOWN: usize = 10;
/// Names longer than this are cut in text.
const NAME_WIDTH: usize = 40;

impl Draw for Waited {
    fn to_text(&self) -> String {
        if let Some(reason) = &self.reason {
            return format!("\nNo waits: {reason}\n");
        }
        let mut text = format!(
            "\n{:<NAME_WIDTH$} {:>9} {:>9} {:>9}  95 % interval\n",
            "seconds of sessions per 1,000 operations", "base", "cell", "change"
        );
        for change in self.events.iter().take(SHOWN) {
            let name: String = change.event.chars().take(NAME_WIDTH).collect();
            let _ = writeln!(
                text,
                "{name:<NAME_WIDTH$} {:>9.4} {:>9.4} {:>+9.4}  {}",
                change.base_s,
                change.cell_s,
                change.difference_s,
                interval(change)
            );
        }
        if self.events.len() > SHOWN {
            let _ = writeln!(
                text,
                "and {} more: `--json` has them",
                self.events.len() - SHOWN
            );
        }
        let _ = writeln!(text, "{}", trust(self));
        text
    }

    fn to_json(&self) -> Value {
        json!({
            "unavailable": self.reason,
            "source_base": self.sources[0],
            "source_cell": self.sources[1],
            "starts": self.starts,
            "looks_base": self.looks[0],
            "looks_cell": self.looks[1],
            "events": self.events.iter().map(|change| json!({
                "event": change.event,
                "base_s_per_1000": change.base_s,
                "cell_s_per_1000": change.cell_s,
                "difference_s_per_1000": change.difference_s,
                "low": change.interval.map(|(low, _)| low),
                "high": change.interval.map(|(_, high)| high),
            })).collect::<Vec<_>>(),
        })
    }
}

/// `[-0.0123, +0.0045]`; a dash without one.
pub(crate) fn interval(change: &WaitChange) -> String {
    change.interval.map_or_else(
        || "-".to_owned(),
        |(low, high)| format!("[{low:+.4}, {high:+.4}]"),
    )
}

/// What the numbers rest on.
pub(crate) fn trust(waited: &Waited) -> String {
    let [base, cell] = &waited.sources;
    let sources = if base == cell {
        base.clone()
    } else {
        format!("{base} (base), {cell} (cell)")
    };
    let starts = match waited.starts {
        1 => "one start, so no interval".to_owned(),
        starts => format!("{starts} starts"),
    };
    let [base, cell] = waited.looks;
    format!(
        "From {sources}: {base} looks at the base and {cell} at the cell, {starts}. A session that \
        waits for nothing counts as running."
    )
}
