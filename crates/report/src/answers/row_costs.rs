//! What statements and rows cost, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::groups::{CostPart, RowCost};
use plimsoll_analysis::verdicts::{Role, headline};
use plimsoll_analysis::view::View;
use serde_json::{Value, json};

const NAME_WIDTH: usize = 26;
const PART_WIDTH: usize = 44;
/// A line that misses a size by more than this share is not to be trusted, and text says so.
const MISFIT: f64 = 0.05;

/// What a cost is of: the time of a statement, or CPU.
pub(crate) fn number(cost: &RowCost) -> String {
    match cost.role {
        Role::Throughput => "time (clients / rate)".to_owned(),
        _ => headline(cost.metric.name).replace("/op", ""),
    }
}

/// `71.2 -> 78.3, +7.1 [+6.0, +8.2]`, as many decimals as the interval can tell.
pub(crate) fn part(of: &CostPart) -> String {
    let resolved = match of.interval {
        Some((low, high)) if high > low => (high - low) / 2.0,
        _ => of.base_us.abs().max(of.cell_us().abs()) / 100.0,
    };
    let decimals = match resolved > 0.0 {
        true => (1.0 - resolved.log10().floor()).clamp(0.0, 6.0) as usize,
        false => 1,
    };
    let interval = of.interval.map_or_else(String::new, |(low, high)| {
        format!(" [{low:+.decimals$}, {high:+.decimals$}]")
    });
    format!(
        "{:.decimals$} -> {:.decimals$}, {:+.decimals$}{interval}",
        of.base_us,
        of.cell_us(),
        of.difference_us
    )
}

/// `cost is not a straight line over rows: it misses a size by 12 %`.
pub(crate) fn doubt(cost: &RowCost) -> Option<String> {
    (cost.misfit > MISFIT).then(|| {
        format!(
            "cost is not a straight line over rows: a size is {:.0} % off",
            100.0 * cost.misfit
        )
    })
}

/// `read-only: 3.1, 26 and 2501 rows`.
pub(crate) fn sizes(cost: &RowCost) -> String {
    let rows = cost.sizes.iter().map(|size| match size.rows {
        few if few < 10.0 && few.fract() > 0.0 => format!("{few:.1}"),
        many => format!("{many:.0}"),
    });
    format!(
        "{} with {} rows",
        cost.test,
        rows.collect::<Vec<_>>().join(", ")
    )
}

/// A table of one test and cell; empty without costs.
pub fn row_costs_to_text(costs: &[RowCost]) -> String {
    let Some(first) = costs.first() else {
        return String::new();
    };
    let mut text = format!(
        "\nmicroseconds per statement = a + b x rows, fitted over {} ({} starts)\n\
         {:<NAME_WIDTH$} {:<PART_WIDTH$} b, per row\n",
        sizes(first),
        first.starts,
        "",
        "a, per statement"
    );
    for cost in costs {
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:<PART_WIDTH$} {}",
            number(cost),
            part(&cost.per_statement),
            part(&cost.per_row)
        );
        if let Some(doubt) = doubt(cost) {
            let _ = writeln!(text, "{:<NAME_WIDTH$} {doubt}", "");
        }
    }
    text
}

/// A member per test, cell and number. Labels are those of the view that the costs are from.
pub(crate) fn row_costs_of(view: &View) -> Value {
    let costs = view.row_costs.iter();
    costs
        .map(|cost| {
            let mut value = row_cost_to_json(cost);
            value["cell"] = json!(view.cells[cost.cell].label);
            value["base"] = json!(view.cells[cost.base].label);
            value
        })
        .collect()
}

/// A member per number, of one test and cell.
pub fn row_costs_to_json(costs: &[RowCost]) -> Value {
    costs.iter().map(row_cost_to_json).collect()
}

fn row_cost_to_json(cost: &RowCost) -> Value {
    let of = |part: &CostPart| {
        json!({
            "base_us": part.base_us,
            "cell_us": part.cell_us(),
            "difference_us": part.difference_us,
            "low": part.interval.map(|(low, _)| low),
            "high": part.interval.map(|(_, high)| high),
        })
    };
    json!({
        "test": cost.test,
        "role": cost.role.name(),
        "metric": cost.metric.name,
        "per_statement": of(&cost.per_statement),
        "per_row": of(&cost.per_row),
        "starts": cost.starts,
        "errors_times": cost.scale,
        "misfit": cost.misfit,
        "sizes": cost.sizes.iter().map(|size| json!({
            "step": size.step,
            "rows_per_statement": size.rows,
            "base_us": size.base_us,
            "cell_us": size.cell_us,
        })).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_those_that_the_interval_tells() {
        let of = |base_us, difference_us, interval| {
            part(&CostPart {
                base_us,
                difference_us,
                interval,
            })
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
