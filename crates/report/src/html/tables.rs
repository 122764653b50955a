//! Pieces that every table of the page uses.

use maud::{Markup, Render, html};
use plimsoll_analysis::metrics::{CPUPQ, Direction, Metric};

use super::numbers::{decimal, group};
use plimsoll_analysis::classic::Class;
use plimsoll_analysis::metrics::Measure;
use plimsoll_analysis::metrics::ratio::{divide, divide_measures};
use plimsoll_analysis::view::{CellInfo, ClassicCell, Status, View};

/// A table that scrolls sideways on its own when the window is narrow.
pub(crate) fn scrolling(table: Markup) -> Markup {
    html! { div.scroll tabindex="0" { (table) } }
}

/// A header row of these columns.
pub(crate) fn header<T: Render>(columns: impl IntoIterator<Item = T>) -> Markup {
    html! { thead { tr { @for column in columns { th { (column) } } } } }
}

/// A header row of these columns and one per cell, which `name` names.
pub(crate) fn header_of_cells(
    first: &[&str],
    view: &View,
    name: impl Fn(usize, &CellInfo) -> Markup,
) -> Markup {
    let first = first.iter().map(|column| html! { (column) });
    let cells = view.cells.iter().enumerate();
    header(first.chain(cells.map(|(i, cell)| name(i, cell))))
}

/// The same with a second column behind each cell that has ratios.
pub(crate) fn header_with_ratios(
    first: &[&str],
    view: &View,
    has_ratios: impl Fn(usize, &CellInfo) -> bool,
) -> Markup {
    html! {
        thead {
            tr {
                @for column in first { th { (column) } }
                @for (i, cell) in view.cells.iter().enumerate() {
                    th colspan=(if has_ratios(i, cell) { 2 } else { 1 }) {
                        (cell_name(i, cell)) (dagger(cell))
                    }
                }
            }
        }
    }
}

/// A cell's name with the colour that figures give it.
pub(crate) fn cell_name(index: usize, cell: &CellInfo) -> Markup {
    html! {
        span class={ "key k" (index % 8) } {}
        (cell.label)
        @if index == cell.base { " " span.base { "base" } }
    }
}

/// Behind the name of a cell whose build and the base's are not strictly comparable, with the
/// reason on hover.
pub(crate) fn dagger(cell: &CellInfo) -> Markup {
    html! {
        @if let Some(caveat) = &cell.caveat { abbr.dagger title=(caveat.to_string()) { "†" } }
        @if let Some(difference) = &cell.other_machine {
            abbr.dagger title={ "another machine: " (difference) } { "‡" }
        }
    }
}

/// A column's heading with all the catalogue knows about the metric.
pub(crate) fn metric_heading(metric: &Metric) -> Markup {
    html! { abbr title=(about(metric)) { (metric.name) } }
}

/// Meaning, unit, direction, formula and source of a metric.
fn about(metric: &Metric) -> String {
    let better = match metric.direction {
        Direction::Higher => "; higher is better",
        Direction::Lower => "; lower is better",
        Direction::Neutral => "",
    };
    // Other columns beside it count only the processes that took part.
    let scope = if metric == CPUPQ {
        "; whole host: includes everything else that ran"
    } else {
        ""
    };
    format!(
        "{}{scope}\nUnit: {}{better}\nFormula: {}\nSource: {}",
        metric.meaning, metric.unit, metric.formula, metric.source
    )
}

/// A measured number, its full precision on hover; where there is none, the reason on hover.
pub(crate) fn measure(measure: Option<&Measure>) -> Markup {
    let Some(measure) = measure else {
        return html! { span.none title="no result" { "–" } };
    };
    match (measure.value.value, &measure.value.unavailable) {
        (Some(value), _) => {
            let is_lower_bound = measure.value.is_lower_bound;
            let least = if is_lower_bound { "at least " } else { "" };
            let classic = measure.classic.as_ref();
            let classic = classic.map_or(String::new(), |classic| format!("; classic {classic}"));
            html! {
                span title={ (least) (value) " " (measure.metric.unit) (classic) } {
                    @if is_lower_bound { "≥ " } (decimal(value, measure.metric.decimals))
                }
            }
        }
        (None, reason) => {
            html! { span.none title=(reason.as_deref().unwrap_or("unavailable")) { "–" } }
        }
    }
}

/// A ratio to the base, or why there is none on hover.
pub(crate) fn ratio(value: Option<f64>, base: Option<f64>) -> Markup {
    ratio_text(divide(value, base))
}

/// The same of metrics.
pub(crate) fn metric_ratio(value: Option<&Measure>, base: Option<&Measure>) -> Markup {
    ratio_text(divide_measures(value, base))
}

fn ratio_text(ratio: Result<String, &'static str>) -> Markup {
    match ratio {
        Ok(ratio) => html! { (group(&ratio)) },
        Err(reason) => html! { span.none title=(reason) { "–" } },
    }
}

/// A cell of a classic table. What a colour says is also said by a sign or a word.
pub(crate) fn classic_cell(cell: &ClassicCell) -> Markup {
    let class = match cell.class {
        Class::Plain => "",
        Class::Worst => "worst",
        Class::Best => "best",
        Class::Missed => "missed",
        Class::AboveBase => "above",
        Class::BelowBase => "below",
        Class::Target => "target",
    };
    let sign = match cell.class {
        Class::Worst | Class::BelowBase => "▼",
        Class::Best | Class::AboveBase => "▲",
        _ => "",
    };
    html! {
        td class={ (class) " " (cell.status.name()) } title=[cell.reason.as_deref()] {
            @match &cell.number {
                Some(number) => {
                    @if !sign.is_empty() { span.sign { (sign) } }
                    (group(number))
                    @if let Some(word) = status_word(cell.status) { " " span.mark { (word) } }
                }
                None => { span.none { (cell.status.in_place().replace('-', "–")) } }
            }
        }
    }
}

/// What marks a number that is not simply ok.
pub(crate) fn status_word(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok | Status::Missing => None,
        Status::SlaMissed => Some("SLA"),
        Status::Suspect => Some("?"),
        Status::Failed => Some("failed"),
        Status::Crashed => Some("crashed"),
        Status::Hung => Some("hung"),
        Status::Damaged => Some("damaged"),
    }
}
