//! Steps that were not at their level from the first second on.

use plimsoll_core::suggest::first_few;
use plimsoll_stats::{effective_sample_size, mean, variance, warm_up};

use crate::runs::cell_runs::CellRuns;
use crate::steps::charts::rates_by_second;

/// A share by which a rate must differ to be reported.
const LEAST: f64 = 0.02;
/// And so many standard errors of what it is compared with.
const ERRORS: f64 = 3.0;

/// A note on a cell's steps of a given length that began slower or faster than they went on, or
/// never settled; none where there are none.
pub(crate) fn unsettled_steps(label: &str, cell: &CellRuns<'_>) -> Option<String> {
    let runs = cell
        .runs
        .iter()
        .filter(|run| run.is_used && run.step.can_take_turns());
    let told: Vec<String> = runs
        .filter_map(|run| {
            Some(format!(
                "{}, {}",
                run.step.name,
                course(&rates_by_second(run, run.done?.primary.as_str())?)?
            ))
        })
        .collect();
    let told: Vec<&str> = told.iter().map(String::as_str).collect();
    (!told.is_empty()).then(|| {
        format!(
            "{label}: rates that changed while they were measured: {}.",
            first_few(&told)
        )
    })
}

/// How the rate went, where it did not keep one level.
fn course(rates: &[f64]) -> Option<String> {
    let seconds = rates.len();
    let Some(cut) = warm_up(rates) else {
        let (first, second) = rates.split_at(seconds / 2);
        let ratio = mean(second) / mean(first);
        return (seconds >= 50 && is_told(first, second))
            .then(|| format!("{ratio:.2} of the first half's in the second of {seconds} s"));
    };
    let (first, rest) = rates.split_at(cut);
    // What matters is what the beginning does to the result.
    let without = mean(rest) / mean(rates) - 1.0;
    (cut > 0 && without.abs() >= LEAST && is_told(first, rest)).then(|| {
        let ratio = mean(first) / mean(rest);
        format!(
            "{ratio:.2} of the rest's in the first {cut} of {seconds} s (without them the step's \
            {:+.1} %)",
            100.0 * without
        )
    })
}

/// Whether two parts of a run differ by more than the second's seconds scatter.
fn is_told(first: &[f64], second: &[f64]) -> bool {
    let independent = effective_sample_size(second).unwrap_or(second.len() as f64);
    let difference = (mean(first) - mean(second)).abs();
    difference >= LEAST * mean(second)
        && difference > ERRORS * (variance(second) / independent).sqrt()
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Stream;

    use super::*;

    fn course_of(seconds: usize, rate: impl Fn(usize) -> f64) -> Option<String> {
        let mut stream = Stream::new(7);
        course(
            &(0..seconds)
                .map(|second| rate(second) + 20.0 * stream.normal())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn a_slow_beginning_is_told_with_what_it_costs() {
        let told = course_of(120, |second| if second < 30 { 600.0 } else { 1000.0 }).unwrap();
        // The rule may cut a little more than the slow seconds.
        assert!(
            told.contains(" of the rest's in the first ")
                && told.contains(" of 120 s (without them the step's +11."),
            "{told}"
        );
    }

    #[test]
    fn what_never_settles_is_told() {
        assert_eq!(
            course_of(120, |second| 500.0 + 5.0 * second as f64).unwrap(),
            "1.47 of the first half's in the second of 120 s"
        );
    }

    #[test]
    fn a_level_rate_and_a_short_step_say_nothing() {
        assert_eq!(course_of(600, |_| 1000.0), None);
        assert_eq!(course_of(40, |second| 500.0 + 5.0 * second as f64), None);
        assert_eq!(
            course_of(600, |second| if second < 5 { 600.0 } else { 1000.0 }),
            None,
            "it moves the result by 0.3 %"
        );
        assert_eq!(course(&[0.0; 100]), None);
        assert_eq!(course(&[]), None);
    }
}
