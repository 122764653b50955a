//! What of a screen is unusual enough to be confirmed. One run per cell proves nothing: the word is never "regression".

use crate::view::{Status, View};

/// The spread between starts that is assumed while this machine has not been measured: results of MySQL differ by about 3 % between runs that
/// differ by a restart only (Percona 2014).
const PRIOR_SPREAD: f64 = 0.03;
/// Differences of so many spreads are unusual.
const SPREADS: f64 = 3.0;

/// A step of one cell that differs from the base's.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusual {
    /// The step.
    pub step: String,
    /// The cell's label.
    pub cell: String,
    /// Its rate, relative to the base's.
    pub ratio: f64,
}

/// What a screen says about what to confirm.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Screened {
    /// Unusual results, in the order of steps and cells.
    pub unusual: Vec<Unusual>,
    /// Steps that cannot be judged, with the reason: the base has no value to divide by.
    pub without_base: Vec<(String, String)>,
}

/// Looks for results that differ from the base's by more than starts alone explain.
pub fn screen(view: &View) -> Screened {
    let mut screened = Screened::default();
    // A view has its base first.
    let base = 0;
    for step in &view.steps {
        let of_base = &step.outcomes[base];
        let Some(base_rate) = of_base.number(step.rate.name).filter(|rate| *rate > 0.0 && of_base.status != Status::SlaMissed) else {
            let reason = of_base.reason.clone().unwrap_or_else(|| "it has no rate".to_owned());
            screened.without_base.push((step.name.clone(), reason));
            continue;
        };
        for (cell, outcome) in step.outcomes.iter().enumerate().filter(|(cell, _)| *cell != base) {
            let ratio = outcome.number(step.rate.name).map(|rate| rate / base_rate);
            if let Some(ratio) = ratio.filter(|ratio| is_unusual(*ratio)) {
                screened.unusual.push(Unusual { step: step.name.clone(), cell: view.cells[cell].label.clone(), ratio });
            }
        }
    }
    screened
}

/// Whether a ratio of two single runs is further from 1 than starts alone explain.
fn is_unusual(ratio: f64) -> bool {
    (ratio - 1.0).abs() > SPREADS * PRIOR_SPREAD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spreads_are_usual() {
        for (ratio, expected) in [(1.0, false), (0.92, false), (1.08, false), (0.90, true), (1.10, true), (2.0, true)] {
            assert_eq!(is_unusual(ratio), expected, "{ratio}");
        }
    }
}
