//! A step's section: figures, charts and tables.

mod counters;
mod drain;

use maud::{Markup, html};
use plimsoll_analysis::metrics::{EXCLUDED_WAIT_S, INDEX_S, MAXOP, Metric};
use plimsoll_core::plan::Operation;

use crate::html::data::chart_id;
use crate::html::figures::bars::bars;
use crate::html::figures::curves::curves;
use crate::html::numbers::{decimal, group, time_ns};
use crate::html::tables::{
    cell_name, dagger, header, header_with_ratios, measure, metric_heading, metric_ratio, scrolling,
};
use counters::counters;
use drain::drains;
use plimsoll_analysis::classic::Class;
use plimsoll_analysis::classic::response::{BUCKETS, format_share, shade};
use plimsoll_analysis::metrics::columns::{is_turned, step_columns, step_metrics};
use plimsoll_analysis::view::{
    Clock, LatencyTable, OperationCount, Outcome, ResponseTable, StepView, View,
};
use plimsoll_analysis::words::waiting::{excludes, worth_telling};

/// The id of a step's heading: letters and digits only, whatever the name holds.
pub(crate) fn anchor(step: &str) -> String {
    let name: String = step
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    format!("step-{name}")
}

/// The step's name as far as an address may hold it, so that `#qr100` and `#l.i0` lead to their
/// sections.
fn plain_anchor(step: &str) -> String {
    step.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
                c
            } else {
                '-'
            }
        })
        .collect()
}

pub(crate) fn section(view: &View, index: usize, step: &StepView) -> Markup {
    let anchor = anchor(&step.name);
    html! {
        section.step id=(plain_anchor(&step.name)) {
            h2 id=(anchor) { a.anchor href={ "#" (anchor) } { (step.name) } }
            p.caption { (step.description) "." }
            div.figures {
                div { (bars(view, step)) }
                @for table in &step.latencies {
                    @if Operation::Index != table.kind.as_str() &&
                        table.rows.iter().any(|row| !row.curve.is_empty()) {
                        (curves(view, table))
                    }
                }
            }
            (charts(view, index, step))
            (crate::html::figures::shapes::section(view, step))
            (crate::html::figures::waits::section(view, step))
            (crate::html::figures::flames::section(view, step))
            h3 { "Metrics" }
            (main_metrics(view, step))
            (own_metrics(view, step))
            (events(view, step))
            // Index creation is only among the percentiles, and goes before the few inserts of its
            // step.
            @if step.latencies.iter().any(|table| table.kind == Operation::Index) {
                (percentiles(view, step))
                (responses(view, step))
            } @else {
                (responses(view, step))
                (percentiles(view, step))
            }
            (operations(view, step))
            (drains(view, step))
            (checks(view, step))
            (counters(view, step))
        }
    }
}

/// Kinds of events of a workload file, each by itself.
fn events(view: &View, step: &StepView) -> Markup {
    let text = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "–".to_owned(), |value| decimal(value, decimals))
    };
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |us| time_ns(us * 1e3));
    let columns = [
        "event",
        "cell",
        "events",
        "retried",
        "failed",
        "events/s",
        "statements",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    let response = step.has_event_responses().then_some("response p99");
    html! {
        @if !step.events.is_empty() {
            h3 { "Events" }
            p.caption { "Each kind by itself: service times from sending an event's first \
                        statement to the end of its last. BEGIN and COMMIT are statements." }
            (scrolling(html! {
                table {
                    (header(columns.into_iter().chain(response)))
                    tbody {
                        @for row in &step.events {
                            @let numbers = row.numbers().map(|(_, _, value)| value);
                            @let [events, retried, failed, per_s, statements, rest @ ..] = numbers;
                            @let [times @ .., p99_response] = rest;
                            @let excluded = step.excluded_wait_s(row.cell, &row.kind).map(excludes);
                            tr {
                                th { (row.kind) }
                                td { (cell_name(row.cell, &view.cells[row.cell])) }
                                @for count in [events, retried, failed] { td { (text(count, 0)) } }
                                td { (text(per_s, 1)) }
                                td { (text(statements, 2)) }
                                @for us in times {
                                    td title=[&excluded] { (time(us)) }
                                }
                                @if response.is_some() {
                                    td {
                                        @if row.is_response_lower_bound() { "≥ " }
                                        (time(p99_response))
                                    }
                                }
                            }
                        }
                    }
                }
            }))
        }
    }
}

fn responses(view: &View, step: &StepView) -> Markup {
    html! {
        @if !step.responses.is_empty() {
            h3 { "Response time in the classic buckets" }
            p.caption { "Percent of the operations with a service time up to the bucket's bound; \
                        max in seconds." }
            @for table in &step.responses { (response_table(view, table)) }
        }
    }
}

fn percentiles(view: &View, step: &StepView) -> Markup {
    html! {
        @if !step.latencies.is_empty() {
            h3 { "Percentiles" }
            p.caption {
                "Service: from sending to done. Response: from the planned instant to done. Lag: \
                from the planned instant to sending. A closed loop has service "
                "times only."
            }
            @for table in &step.latencies { (percentile_table(view, step, table)) }
        }
    }
}

fn charts(view: &View, index: usize, step: &StepView) -> Markup {
    let thinned = step
        .charts
        .iter()
        .map(|chart| chart.seconds_per_point)
        .max()
        .filter(|seconds| *seconds > 1);
    html! {
        @if !step.charts.is_empty() {
            h3 { "Second by second" }
            p.caption {
                "All clients together. Drag to zoom, double-click to zoom out."
                @if let Some(seconds) = thinned {
                    " Thinned: a point stands for up to " (seconds) " seconds; lines are means \
                                                                    with a band from least to \
                                                                    greatest, longest times are \
                                                                    maxima."
                }
            }
            p.keys {
                @for (i, cell) in view.cells.iter().enumerate() { span { (cell_name(i, cell)) } }
            }
            div.charts {
                @for (i, chart) in step.charts.iter().enumerate() {
                    div.chart {
                        div.charthead {
                            strong { (chart.title) } " " span { (chart.unit) } span.readout {}
                        }
                        div.plot id=(chart_id(index, i)) { noscript { "This chart needs \
                            JavaScript; the series are in the campaign's folder." } }
                    }
                }
            }
        }
    }
}

/// The field's own columns and CPU per operation, a row per cell, and below them the ratios to the
/// base.
fn main_metrics(view: &View, step: &StepView) -> Markup {
    let columns = step_columns(step);
    if is_turned(&columns) {
        return metric_rows(view, step, &columns);
    }
    let headings = columns.iter().map(|metric| metric_heading(metric));
    let headings = std::iter::once(html! {}).chain(headings);
    let has_ratios = |i: usize| {
        let base = view.cells[i].base;
        base != i
            && [base, i]
                .iter()
                .all(|cell| !step.outcomes[*cell].measures.is_empty())
    };
    html! {
        (scrolling(html! {
            table {
                (header(headings))
                tbody {
                    @for (i, (cell, outcome)) in view.cells.iter().zip(&step.outcomes).enumerate() {
                        tr {
                            th { (cell_name(i, cell)) }
                            @for metric in &columns {
                                td title=[excluded(outcome, metric)] {
                                    (measure(outcome.measure(metric)))
                                }
                            }
                        }
                    }
                }
                @if (0..view.cells.len()).any(has_ratios) {
                    tbody.ratios {
                        @for (i, (cell, outcome)) in
                            view.cells.iter().zip(&step.outcomes).enumerate() {
                            @if has_ratios(i) {
                                tr {
                                    th {
                                        span class={ "key k" (i % 8) } {}
                                        (cell.label) " / base" (dagger(cell))
                                    }
                                    @let base = &step.outcomes[cell.base];
                                    @for metric in &columns {
                                        td { (ratio(outcome, base, metric)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// What a service time does not have, for on hover.
fn excluded(outcome: &Outcome, metric: &Metric) -> Option<String> {
    let is_service = metric.name.ends_with("_service_us") || metric.name == MAXOP.name;
    outcome
        .number(EXCLUDED_WAIT_S)
        .filter(|_| is_service)
        .and_then(worth_telling)
        .map(excludes)
}

fn ratio(outcome: &Outcome, base: &Outcome, metric: &Metric) -> Markup {
    metric_ratio(outcome.measure(metric), base.measure(metric))
}

fn has_ratio(outcome: &Outcome, base: &Outcome, metric: &Metric) -> bool {
    let base = base.number(metric);
    outcome.number(metric).is_some() && base.is_some_and(|base| base != 0.0)
}

/// A row per metric, with the ratio to the base beside each cell's value.
fn metric_rows(view: &View, step: &StepView, metrics: &[&Metric]) -> Markup {
    html! {
        (scrolling(html! {
            table {
                (header_with_ratios(&["metric", "unit"], view, |i, cell| i != cell.base))
                tbody {
                    @for metric in metrics {
                        tr {
                            th { (metric_heading(metric)) }
                            td.unit { (metric.unit) }
                            @for (i, (cell, outcome)) in
                                view.cells.iter().zip(&step.outcomes).enumerate() {
                                td title=[excluded(outcome, metric)] {
                                    (measure(outcome.measure(metric)))
                                }
                                @if i != cell.base {
                                    @let base = &step.outcomes[cell.base];
                                    td.ratio {
                                        @if has_ratio(outcome, base, metric) { "×" }
                                        (ratio(outcome, base, metric))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// The catalogue's other metrics, a row each, with the ratio to the base beside each cell's value.
fn own_metrics(view: &View, step: &StepView) -> Markup {
    let shown = step_columns(step);
    // Only one step creates indexes: the others need not say that they do not.
    let own = step_metrics(step)
        .iter()
        .filter(|metric| !shown.contains(metric) && **metric != INDEX_S);
    let has_value = |metric: &Metric| {
        step.outcomes
            .iter()
            .any(|outcome| outcome.number(metric).is_some())
    };
    let (with, without): (Vec<&Metric>, Vec<&Metric>) = own.partition(|metric| has_value(metric));
    let reason = |metric: &Metric| {
        step.outcomes
            .iter()
            .find_map(|outcome| outcome.measure(metric)?.value.unavailable.as_deref())
    };
    let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
    for metric in without {
        let reason = reason(metric).unwrap_or("no cell finished the step");
        match missing.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(metric.name),
            None => missing.push((reason, vec![metric.name])),
        }
    }
    html! {
        details {
            summary { "More metrics: latency, background rate, witnesses" }
            (metric_rows(view, step, &with))
            @for (reason, names) in missing {
                p.caption { "Unavailable, " (reason) ": " (names.join(", ")) "." }
            }
        }
    }
}

fn response_table(view: &View, table: &ResponseTable) -> Markup {
    let kind = std::iter::once(table.kind.as_str());
    let columns = kind.chain(BUCKETS).chain(["max", "operations"]);
    html! {
        (scrolling(html! {
            table.buckets {
                (header(columns))
                tbody {
                    @for row in &table.rows {
                        tr {
                            th { (cell_name(row.cell, &view.cells[row.cell])) }
                            @for count in row.counts {
                                @let text = format_share(count, row.total);
                                @let shade = format!("share s{}", shade(row.percent(count)));
                                td class=[(count > 0).then_some(shade)]
                                    title={ (group(&count.to_string())) " operations" } {
                                    (text)
                                }
                            }
                            @let (class, sign) = match row.max_class {
                                Class::Worst => ("worst", "▼"),
                                Class::Best => ("best", "▲"),
                                _ => ("", ""),
                            };
                            td class=(class) {
                                @if !sign.is_empty() { span.sign { (sign) } }
                                (group(&format!("{:.3}", row.max_s)))
                            }
                            td { (group(&row.total.to_string())) }
                        }
                    }
                }
            }
        }))
    }
}

fn percentile_table(view: &View, step: &StepView, table: &LatencyTable) -> Markup {
    let columns = [
        &table.kind,
        "time",
        "mean",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "operations",
    ];
    html! {
        (scrolling(html! {
            table {
                (header(columns))
                tbody {
                    @for row in &table.rows {
                        @let q = row.quantiles;
                        tr {
                            th { (cell_name(row.cell, &view.cells[row.cell])) }
                            @let excluded = step.excluded_wait_s(row.cell, &table.kind);
                            @let excluded = excluded.filter(|_| row.clock == Clock::Service);
                            td.unit {
                                (row.clock.name())
                                @if let Some(seconds) = excluded { ", " (excludes(seconds)) }
                            }
                            @if q.count < 2 && q.lower_bounds().is_empty() {
                                td.single colspan="8" { "1 operation: " (time_ns(q.max_ns as f64)) }
                            } @else {
                                @for (_, ns, is_lower_bound) in q.values() {
                                    td title={ (group(&format!("{ns:.0}"))) " ns" } {
                                        @if is_lower_bound { "≥ " } (time_ns(ns))
                                    }
                                }
                                td { (group(&q.count.to_string())) }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// Tries, errors and what the workload noted.
fn operations(view: &View, step: &StepView) -> Markup {
    let count = |count: u64| group(&count.to_string());
    let has_unsent = step
        .outcomes
        .iter()
        .flat_map(|outcome| &outcome.operations)
        .any(|operation| operation.unsent > 0);
    let first = ["cell", "operation", "tries", "done", "retried", "failed"];
    let first = first.into_iter().map(|column| html! { (column) });
    let unsent =
        has_unsent.then(|| html! { abbr title="due before the end, and never sent" { "unsent" } });
    let last = ["rows", "errors"].map(|column| html! { (column) });
    let errors = |operation: &OperationCount| {
        let errors = operation.errors.iter();
        let errors = errors.map(|(class, errors)| format!("{class} {}", count(*errors)));
        errors.collect::<Vec<_>>().join(", ")
    };
    html! {
        @if step.outcomes.iter().any(|outcome| !outcome.operations.is_empty()) {
            details {
                summary { "Operations: tries, retries, failures, notes" }
                (scrolling(html! {
                    table.text {
                        (header(first.chain(unsent).chain(last)))
                        tbody {
                            @for (i, (cell, outcome)) in
                                view.cells.iter().zip(&step.outcomes).enumerate() {
                                @for operation in &outcome.operations {
                                    tr {
                                        th { (cell_name(i, cell)) }
                                        td { (operation.kind) }
                                        td.number { (count(operation.attempts)) }
                                        td.number { (count(operation.ok)) }
                                        td.number { (count(operation.retried)) }
                                        td.number { (count(operation.failed)) }
                                        @if has_unsent { td.number { (count(operation.unsent)) } }
                                        td.number { (count(operation.rows)) }
                                        td { (errors(operation)) }
                                    }
                                }
                            }
                        }
                    }
                }))
                @for (i, (cell, outcome)) in view.cells.iter().zip(&step.outcomes).enumerate() {
                    @if outcome.elapsed_s.is_some() || !outcome.notes.is_empty() {
                        p.caption {
                            (cell_name(i, cell))
                            @if let Some(seconds) = outcome.elapsed_s {
                                ": " (decimal(seconds, 1)) " s"
                            }
                            @for (name, value) in &outcome.notes {
                                ", " (name.replace('_', " ")) " " (decimal(*value, 3))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn checks(view: &View, step: &StepView) -> Markup {
    let checks = || step.outcomes.iter().flat_map(|outcome| &outcome.checks);
    let total = checks().count();
    let wrong = checks()
        .filter(|check| check.expected_rows != check.found_rows)
        .count();
    html! {
        @if total > 0 {
            details open[wrong > 0] {
                summary {
                    "Row counts: "
                    @if wrong == 0 {
                        (total) " tables hold what they should"
                    } @else {
                        strong { (wrong) " of " (total) " tables do not hold what they should" }
                    }
                }
                (scrolling(html! {
                    table.text {
                        (header(["cell", "table", "rows expected", "rows found", "checksum"]))
                        tbody {
                            @for (i, (cell, outcome)) in
                                view.cells.iter().zip(&step.outcomes).enumerate() {
                                @for check in &outcome.checks {
                                    tr {
                                        th { (cell_name(i, cell)) }
                                        td { (check.table) }
                                        td.number { (group(&check.expected_rows.to_string())) }
                                        @let is_wrong = check.expected_rows != check.found_rows;
                                        td class={ "number" @if is_wrong { " worst" } } {
                                            (group(&check.found_rows.to_string()))
                                        }
                                        td {
                                            code {
                                                (check.checksum.as_deref().unwrap_or("not taken"))
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}
