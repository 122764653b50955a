//! Waiting that service times do not have: of callers that were refused or had no connection, until
//! the try that succeeded.

use itertools::Itertools;
use plimsoll_core::suggest::first_few;

use crate::view::View;

/// Less is not reported. No share: a caller that waits for half a minute is nothing in the time of
/// a thousand, and yet the longest by far.
const LEAST_TOLD_S: f64 = 0.05;

/// The seconds, where they are worth a word.
pub fn worth_telling(seconds: f64) -> Option<f64> {
    (seconds >= LEAST_TOLD_S).then_some(seconds)
}

/// Seconds in words, for beside a percentile.
pub fn excludes(seconds: f64) -> String {
    format!("excludes {} of waiting", in_words(seconds))
}

fn in_words(seconds: f64) -> String {
    let decimals = if seconds < 10.0 { 2 } else { 0 };
    format!("{seconds:.decimals$} s")
}

/// A note on all cells and steps with such waiting, the longest first.
pub(crate) fn note(view: &View) -> Option<String> {
    let all = view.steps.iter().flat_map(|step| {
        step.outcomes
            .iter()
            .enumerate()
            .flat_map(move |(cell, outcome)| {
                outcome.operations.iter().filter_map(move |of| {
                    Some((
                        step.excluded_wait_s(cell, &of.kind)?,
                        cell,
                        &*step.name,
                        &*of.kind,
                    ))
                })
            })
    });
    let told: Vec<String> = all
        .sorted_by(|one, other| other.0.total_cmp(&one.0))
        .map(|(seconds, cell, step, kind)| {
            format!(
                "{} {step} {kind} {}",
                view.cells[cell].label,
                in_words(seconds)
            )
        })
        .collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    (!told.is_empty()).then(|| {
        format!(
            "Service times, their percentiles and maxima, exclude the waiting of callers that met \
            a lock, a deadlock or a lost connection, all clients together: {}. Response times \
            include it.",
            first_few(&told)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_worth_a_word_is_told() {
        assert_eq!(
            [0.0, 0.049, 0.05, 31.2].map(worth_telling),
            [None, None, Some(0.05), Some(31.2)]
        );
        assert_eq!(
            [0.05, 1.234, 31.2, 4000.0].map(in_words),
            ["0.05 s", "1.23 s", "31 s", "4000 s"]
        );
    }
}
