//! Cells and steps whose operations waited for so long that a reader must know it.

use itertools::Itertools;
use plimsoll_core::suggest::first_few;

use super::waiting::in_words;
use crate::view::View;

/// A note on all cells and steps with such waiting, the longest first.
pub(crate) fn waiting_note(view: &View) -> Option<String> {
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
