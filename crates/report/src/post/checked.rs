//! A human's text held against a campaign, in lines.

use plimsoll_analysis::post::check::{Checked, Standing};
use serde_json::{Value, json};

/// A line per number that is not found as it stands, a line per reason for those that the campaign
/// does not hold, then the counts.
pub fn checked_to_text(checked: &[Checked]) -> String {
    let lines = checked
        .iter()
        .filter(|of| matches!(of.standing, Standing::OtherRounding | Standing::NotFound))
        .map(|of| {
            format!(
                "line {}: {}: {}: {} has {}\n",
                of.line,
                of.number,
                of.standing.words(),
                of.holder,
                of.instead
            )
        });
    let count = |standing: Standing| checked.iter().filter(|of| of.standing == standing).count();
    let counts = format!(
        "{} number{}: {} found, {} with other rounding, {} not found, {} about what the campaign \
         does not hold\n",
        checked.len(),
        if checked.len() == 1 { "" } else { "s" },
        count(Standing::Found),
        count(Standing::OtherRounding),
        count(Standing::NotFound),
        count(Standing::Unknown)
    );
    lines.chain(unknown(checked)).chain([counts]).collect()
}

/// `line 3: 24, 64: nobody can tell: ...`: the numbers of a line with one reason together.
fn unknown(checked: &[Checked]) -> Vec<String> {
    let mut lines: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for of in checked.iter().filter(|of| of.standing == Standing::Unknown) {
        match lines.last_mut() {
            Some((line, why, numbers)) if (*line, *why) == (of.line, of.why.as_str()) => {
                numbers.push(&of.number);
            }
            _ => lines.push((of.line, &of.why, vec![&of.number])),
        }
    }
    let text = |(line, why, numbers): &(usize, &str, Vec<&str>)| {
        format!(
            "line {line}: {}: nobody can tell: {why}\n",
            numbers.join(", ")
        )
    };
    lines.iter().map(text).collect()
}

/// All numbers of the text.
pub fn checked_to_json(checked: &[Checked]) -> Value {
    let number = |of: &Checked| {
        json!({
            "line": of.line,
            "number": of.number,
            "standing": of.standing.words(),
            "instead": of.instead,
            "why": of.why,
            "holder": of.holder,
        })
    };
    json!({"format": 1, "numbers": checked.iter().map(number).collect::<Vec<_>>()})
}
