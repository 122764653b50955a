//! A human's text held against a campaign, in lines.

use plimsoll_analysis::post::check::{Checked, Standing};
use serde_json::{Value, json};

/// A line per number that is not found as it stands, then the counts.
pub fn checked_to_text(checked: &[Checked]) -> String {
    let lines = checked
        .iter()
        .filter(|of| matches!(of.standing, Standing::OtherRounding | Standing::NotFound))
        .map(|of| {
            format!(
                "line {}: {}: {}: the campaign has {}\n",
                of.line,
                of.number,
                of.standing.words(),
                of.instead
            )
        });
    let count = |standing: Standing| checked.iter().filter(|of| of.standing == standing).count();
    let counts = format!(
        "{} numbers: {} found, {} with other rounding, {} not found, {} about what the campaign \
         does not hold\n",
        checked.len(),
        count(Standing::Found),
        count(Standing::OtherRounding),
        count(Standing::NotFound),
        count(Standing::Unknown)
    );
    lines.chain([counts]).collect()
}

/// All numbers of the text.
pub fn checked_to_json(checked: &[Checked]) -> Value {
    let number = |of: &Checked| {
        json!({
            "line": of.line,
            "number": of.number,
            "standing": of.standing.words(),
            "instead": of.instead,
        })
    };
    json!({"format": 1, "numbers": checked.iter().map(number).collect::<Vec<_>>()})
}
