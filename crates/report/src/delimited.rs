//! CSV and TSV in long form: a line per cell, step, block, attempt and metric.

use plimsoll_analysis::view::View;

const COLUMNS: [&str; 12] = [
    "cell",
    "step",
    "block",
    "attempt",
    "status",
    "metric",
    "value",
    "unit",
    "unavailable",
    "not_comparable",
    "is_lower_bound",
    "classic",
];

/// Comma separated, quoted by RFC 4180, lines ended by a newline. Values in full precision. A step
/// without numbers has one line without a metric and its reason in the column `unavailable`.
/// `not_comparable` says why a cell and the base are not strictly comparable; `is_lower_bound` is
/// `true` or empty; `classic` is an imported value as the originals print it; without imported
/// values there is no such column.
pub fn to_csv(view: &View) -> String {
    write(view, ',', |cell| {
        if cell.contains(['"', ',', '\n', '\r']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell.to_owned()
        }
    })
}

/// The same separated by tabs. Tabs and line breaks inside a cell become spaces.
pub fn to_tsv(view: &View) -> String {
    write(view, '\t', |cell| cell.replace(['\t', '\n', '\r'], " "))
}

fn write(view: &View, separator: char, escape: fn(&str) -> String) -> String {
    let mut text = String::new();
    let has_classic = view
        .results
        .iter()
        .flat_map(|result| &result.measures)
        .any(|measure| measure.classic.is_some());
    let mut add = |cells: &[&str; 12]| {
        let columns = if has_classic { 12 } else { 11 };
        for (i, cell) in cells.iter().take(columns).enumerate() {
            if i > 0 {
                text.push(separator);
            }
            text.push_str(&escape(cell));
        }
        text.push('\n');
    };
    let word = |is_lower_bound: bool| if is_lower_bound { "true" } else { "" };
    add(&COLUMNS);
    for result in &view.results {
        let cell = view.cells[result.cell].label.as_str();
        let caveat = view.cells[result.cell]
            .caveat
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
        let (block, attempt) = (result.block.to_string(), result.attempt.to_string());
        let status = result.status.name();
        for measure in &result.measures {
            let value = measure
                .value
                .value
                .map(|value| value.to_string())
                .unwrap_or_default();
            let unavailable = measure.value.unavailable.as_deref().unwrap_or_default();
            add(&[
                cell,
                &result.step,
                &block,
                &attempt,
                status,
                measure.metric.name,
                &value,
                measure.metric.unit,
                unavailable,
                &caveat,
                word(measure.value.is_lower_bound),
                measure.classic.as_deref().unwrap_or_default(),
            ]);
        }
        for event in &result.events {
            for (name, unit, value) in event.numbers() {
                // The kind behind the name, as in labels of time series.
                let metric = format!("{name}{{{}}}", event.kind);
                let value = value.map(|value| value.to_string()).unwrap_or_default();
                let is_bound = name == "p99_response_us" && event.is_response_lower_bound();
                let unavailable = match (value.is_empty(), event.ok > 0) {
                    (false, _) => "",
                    (true, true) => "closed loop: no response time",
                    (true, false) => "no event was done",
                };
                add(&[
                    cell,
                    &result.step,
                    &block,
                    &attempt,
                    status,
                    &metric,
                    &value,
                    unit,
                    unavailable,
                    &caveat,
                    word(is_bound),
                    "",
                ]);
            }
            let waited = result
                .operations
                .iter()
                .find(|operation| operation.kind == event.kind)
                .map_or(0.0, |operation| operation.wait_s);
            let metric = format!("excluded_wait_s{{{}}}", event.kind);
            add(&[
                cell,
                &result.step,
                &block,
                &attempt,
                status,
                &metric,
                &waited.to_string(),
                "s",
                "",
                &caveat,
                "",
                "",
            ]);
        }
        if result.measures.is_empty() {
            add(&[
                cell,
                &result.step,
                &block,
                &attempt,
                status,
                "",
                "",
                "",
                result.reason.as_deref().unwrap_or_default(),
                &caveat,
                "",
                "",
            ]);
        }
    }
    text
}
