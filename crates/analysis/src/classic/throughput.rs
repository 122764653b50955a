//! The table of absolute throughput.

use super::Class;

/// One cell: a rounded rate, and whether the step kept its background rate (always true where it
/// has none).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Operations per second.
    pub per_s: u64,
    /// Whether the step met its SLA.
    pub is_sla_met: bool,
}

/// Classes of one column. The worst quarter of the span between the column's smallest value and its
/// largest value that met the SLA is red, the best quarter green; a column whose smallest value
/// reaches 80 % of that largest has no red. Red goes before gray, gray before green. Cells without
/// a value are plain and move no limit.
pub fn classify(column: &[Option<Rate>]) -> Vec<Class> {
    let rates = || column.iter().flatten();
    let min = rates().map(|rate| rate.per_s).min().unwrap_or(0);
    let Some(max) = rates()
        .filter(|rate| rate.is_sla_met)
        .map(|rate| rate.per_s)
        .max()
    else {
        return column
            .iter()
            .map(|cell| {
                if cell.is_some() {
                    Class::Missed
                } else {
                    Class::Plain
                }
            })
            .collect();
    };
    // The largest value that met the SLA may be below the smallest of all: the quarter is then
    // negative and is cut towards zero, too.
    let (min, max) = (min as i128, max as i128);
    let quarter = (max - min) / 4;
    let top = max - quarter;
    let is_narrow = min * 10 >= max * 8;
    let bottom = min + quarter;
    let class = |rate: &Rate| {
        let value = i128::from(rate.per_s);
        if !is_narrow && value <= bottom {
            Class::Worst
        } else if !rate.is_sla_met {
            Class::Missed
        } else if value >= top {
            Class::Best
        } else {
            Class::Plain
        }
    };
    column
        .iter()
        .map(|cell| cell.as_ref().map_or(Class::Plain, class))
        .collect()
}
