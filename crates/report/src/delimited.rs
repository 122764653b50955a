//! CSV and TSV in long form: a line per cell, step, block, attempt and metric.

use plimsoll_analysis::metrics::Measure;
use plimsoll_analysis::metrics::P99_RESPONSE_US;
use plimsoll_analysis::view::{EventRow, StepResult, View};

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
    write(view, csv::WriterBuilder::new().delimiter(b','), |cell| {
        cell.to_owned()
    })
}

/// The same separated by tabs. Tabs and line breaks inside a cell become spaces.
pub fn to_tsv(view: &View) -> String {
    let builder = &mut csv::WriterBuilder::new();
    let builder = builder.delimiter(b'\t').quote_style(csv::QuoteStyle::Never);
    write(view, builder, |cell| cell.replace(['\t', '\n', '\r'], " "))
}

fn write(view: &View, builder: &csv::WriterBuilder, clean: fn(&str) -> String) -> String {
    let has_classic = view
        .results
        .iter()
        .flat_map(|result| &result.measures)
        .any(|measure| measure.classic.is_some());
    let columns = if has_classic { 12 } else { 11 };
    let mut writer = builder.from_writer(Vec::new());
    let mut add = |cells: [&str; 12]| {
        let cells = cells.iter().take(columns).map(|cell| clean(cell));
        writer
            .write_record(cells)
            .expect("memory can be written to");
    };
    add(COLUMNS);
    for result in &view.results {
        let cell = &view.cells[result.cell];
        let caveat = cell.caveat.as_ref().map(ToString::to_string);
        let caveat = caveat.unwrap_or_default();
        let (block, attempt) = (result.block.to_string(), result.attempt.to_string());
        for number in numbers(result) {
            add([
                &cell.label,
                &result.step,
                &block,
                &attempt,
                result.status.name(),
                &number.metric,
                &number.value,
                number.unit,
                number.unavailable,
                &caveat,
                if number.is_lower_bound { "true" } else { "" },
                number.classic,
            ]);
        }
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("cells are text")
}

/// What a line says of one number.
#[derive(Default)]
struct Number<'a> {
    /// Behind it in braces the kind of event, as in labels of time series.
    metric: String,
    value: String,
    unit: &'a str,
    unavailable: &'a str,
    is_lower_bound: bool,
    classic: &'a str,
}

/// All numbers of a result; a single one without a metric where there are none.
fn numbers(result: &StepResult) -> Vec<Number<'_>> {
    let mut numbers: Vec<Number<'_>> = result.measures.iter().map(of_measure).collect();
    for event in &result.events {
        numbers.extend(of_event(event));
        let operations = &mut result.operations.iter();
        let waited = operations
            .find(|operation| operation.kind == event.kind)
            .map_or(0.0, |operation| operation.wait_s);
        numbers.push(Number {
            metric: format!("excluded_wait_s{{{}}}", event.kind),
            value: waited.to_string(),
            unit: "s",
            ..Number::default()
        });
    }
    if result.measures.is_empty() {
        numbers.push(Number {
            unavailable: result.reason.as_deref().unwrap_or_default(),
            ..Number::default()
        });
    }
    numbers
}

fn of_measure(measure: &Measure) -> Number<'_> {
    let value = measure.value.value.map(|value| value.to_string());
    Number {
        metric: measure.metric.name.to_owned(),
        value: value.unwrap_or_default(),
        unit: measure.metric.unit,
        unavailable: measure.value.unavailable.as_deref().unwrap_or_default(),
        is_lower_bound: measure.value.is_lower_bound,
        classic: measure.classic.as_deref().unwrap_or_default(),
    }
}

fn of_event(event: &EventRow) -> impl Iterator<Item = Number<'_>> {
    event.numbers().into_iter().map(|(name, unit, value)| {
        let unavailable = match (value.is_some(), event.ok > 0) {
            (true, _) => "",
            (false, true) => "closed loop: no response time",
            (false, false) => "no event was done",
        };
        Number {
            metric: format!("{name}{{{}}}", event.kind),
            value: value.map(|value| value.to_string()).unwrap_or_default(),
            unit,
            unavailable,
            is_lower_bound: name == P99_RESPONSE_US.name && event.is_response_lower_bound(),
            classic: "",
        }
    })
}
