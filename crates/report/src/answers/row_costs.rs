//! What statements and rows cost, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::groups::{CostPart, RowCost};
use plimsoll_analysis::view::View;
use serde_json::{Value, json};

const NAME_WIDTH: usize = 26;
const PART_WIDTH: usize = 44;

/// A table of one test and cell; empty without costs.
pub fn row_costs_to_text(costs: &[RowCost]) -> String {
    let Some(first) = costs.first() else {
        return String::new();
    };
    let mut text = format!(
        "\nmicroseconds per statement = a + b x rows, fitted over {}\n\
         {:<NAME_WIDTH$} {:<PART_WIDTH$} b, per row\n",
        basis(first),
        "",
        "a, per statement"
    );
    for cost in costs {
        let _ = writeln!(
            text,
            "{:<NAME_WIDTH$} {:<PART_WIDTH$} {}",
            cost.of_what(),
            cost.per_statement.in_words(),
            cost.per_row.in_words()
        );
        // A size whose CPU has no verdict is left out of CPU alone.
        if basis(cost) != basis(first) {
            let _ = writeln!(text, "{:<NAME_WIDTH$} over {}", "", basis(cost));
        }
        if let Some(doubt) = cost.doubt() {
            let _ = writeln!(text, "{:<NAME_WIDTH$} {doubt}", "");
        }
    }
    text
}

/// What a cost was fitted over: `read-only with 3.1, 26, 2501 rows (6 starts)`.
fn basis(cost: &RowCost) -> String {
    format!("{} ({} starts)", cost.sizes_in_words(), cost.starts)
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
