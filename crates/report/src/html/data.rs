//! The per-second series as the page's script reads them.

use std::fmt::Write as _;

use serde_json::json;

use super::numbers::for_chart;
use plimsoll_analysis::view::View;

/// The id of a chart's element.
pub(crate) fn chart_id(step: usize, chart: usize) -> String {
    format!("chart-{step}-{chart}")
}

/// Compact JSON without `<`, so that nothing in it can end the script element that carries it.
pub(crate) fn series_json(view: &View) -> String {
    let mut text = String::from("{\"cells\":");
    let labels: Vec<&str> = view.cells.iter().map(|cell| cell.label.as_str()).collect();
    text.push_str(&json!(labels).to_string());
    text.push_str(",\"charts\":{");
    let mut is_first = true;
    for (s, step) in view.steps.iter().enumerate() {
        for (c, chart) in step.charts.iter().enumerate() {
            let separator = if is_first { "" } else { "," };
            is_first = false;
            let head = (
                json!(chart_id(s, c)),
                json!(format!("step-{s}")),
                json!(chart.unit),
                chart.seconds_per_point,
            );
            write!(
                text,
                "{separator}{}:{{\"group\":{},\"unit\":{},\"per\":{},\"lines\":[",
                head.0, head.1, head.2, head.3
            )
            .expect("writing to a string cannot fail");
            for (l, line) in chart.lines.iter().enumerate() {
                let separator = if l == 0 { "" } else { "," };
                write!(
                    text,
                    "{separator}{{\"cell\":{},\"y\":{}",
                    line.cell,
                    array(&line.points)
                )
                .expect("writing to a string cannot fail");
                if let Some(band) = &line.band {
                    write!(
                        text,
                        ",\"low\":{},\"high\":{}",
                        array(&band.low),
                        array(&band.high)
                    )
                    .expect("writing to a string cannot fail");
                }
                text.push('}');
            }
            text.push_str("]}");
        }
    }
    text.push_str("}}");
    text.replace('<', "\\u003c")
}

fn array(values: &[Option<f64>]) -> String {
    let cells: Vec<String> = values
        .iter()
        .map(|value| value.map_or_else(|| "null".to_owned(), for_chart))
        .collect();
    format!("[{}]", cells.join(","))
}
