//! What statements and rows cost, in words.

use super::rows::{CostPart, RowCost};
use crate::verdicts::{Role, headline};

/// A line that misses a size by more than this share is not to be trusted, and text says so.
const MISFIT: f64 = 0.05;

impl RowCost {
    /// What it is the cost of: the time of a statement, or CPU.
    pub fn of_what(&self) -> String {
        match self.role {
            Role::Throughput => "time (clients / rate)".to_owned(),
            _ => headline(self.metric.name).replace("/op", ""),
        }
    }

    /// `read-only with 3.1, 26 and 2501 rows`.
    pub fn sizes_in_words(&self) -> String {
        let rows = self.sizes.iter().map(|size| match size.rows {
            few if few < 10.0 && few.fract() > 0.0 => format!("{few:.1}"),
            many => format!("{many:.0}"),
        });
        format!(
            "{} with {} rows",
            self.test,
            rows.collect::<Vec<_>>().join(", ")
        )
    }

    /// `cost is not a straight line over rows: a size is 12 % off`; `None` if it is one.
    pub fn doubt(&self) -> Option<String> {
        (self.misfit > MISFIT).then(|| {
            format!(
                "cost is not a straight line over rows: a size is {:.0} % off",
                100.0 * self.misfit
            )
        })
    }
}

impl CostPart {
    /// `71.2 -> 78.3, +7.1 [+6.0, +8.2]`.
    pub fn in_words(&self) -> String {
        let [base, cell, difference] = self.texts();
        format!("{base} -> {cell}, {difference}")
    }

    /// Base, cell and difference with its interval, in microseconds, with as many decimals as the
    /// interval can tell.
    pub fn texts(&self) -> [String; 3] {
        let resolved = match self.interval {
            Some((low, high)) if high > low => (high - low) / 2.0,
            _ => self.base_us.abs().max(self.cell_us().abs()) / 100.0,
        };
        let decimals = match resolved > 0.0 {
            true => (1.0 - resolved.log10().floor()).clamp(0.0, 6.0) as usize,
            false => 1,
        };
        let interval = self.interval.map_or_else(String::new, |(low, high)| {
            format!(" [{low:+.decimals$}, {high:+.decimals$}]")
        });
        [
            format!("{:.decimals$}", self.base_us),
            format!("{:.decimals$}", self.cell_us()),
            format!("{:+.decimals$}{interval}", self.difference_us),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_that_the_interval_tells() {
        let of = |base_us, difference_us, interval| {
            CostPart {
                base_us,
                difference_us,
                interval,
            }
            .in_words()
        };
        assert_eq!(
            of(71.234, 7.123, Some((6.02, 8.21))),
            "71.2 -> 78.4, +7.1 [+6.0, +8.2]"
        );
        assert_eq!(
            of(0.2101, 0.02101, Some((0.0181, 0.0239))),
            "0.2101 -> 0.2311, +0.0210 [+0.0181, +0.0239]"
        );
        assert_eq!(
            of(5000.0, -300.0, Some((-420.0, -180.0))),
            "5000 -> 4700, -300 [-420, -180]"
        );
        assert_eq!(of(71.234, 7.123, None), "71.23 -> 78.36, +7.12");
        assert_eq!(of(0.0, 0.0, None), "0.0 -> 0.0, +0.0");
        assert_eq!(
            of(2.0, 0.5, Some((0.5, 0.5))),
            "2.000 -> 2.500, +0.500 [+0.500, +0.500]"
        );
    }
}
