//! What changed from second to second, thinned to what a screen can show.

use itertools::Itertools;
use plimsoll_core::plan::Operation;
use plimsoll_store::OperationSecond;

use crate::metrics::facts::counts_rows;
use crate::runs::attempts::Run;

/// One quantity over the seconds of a step, a line per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// `query rate`.
    pub title: String,
    pub unit: &'static str,
    /// How many seconds one point stands for; 1 unless the step was long.
    pub seconds_per_point: u32,
    /// The cells with data.
    pub lines: Vec<Line>,
}

/// A cell's line: per point the mean, least and greatest of its seconds. `None` where nothing was
/// measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Index into the view's cells.
    pub cell: usize,
    /// Means; for charts of maxima the greatest.
    pub points: Vec<Option<f64>>,
    /// Least and greatest, when a point stands for several seconds and the chart is not one of
    /// maxima.
    pub band: Option<Band>,
}

/// The least and the greatest of the seconds behind each point.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    pub low: Vec<Option<f64>>,
    pub high: Vec<Option<f64>>,
}

/// A chart holds no more points than this over all its lines; longer steps are thinned.
const MOST_POINTS: usize = 2000;

/// How the seconds behind one point become one number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reduce {
    Mean,
    Max,
}

/// Kinds of operations that have charts, in the order of the page.
const KINDS: [Operation; 8] = [
    Operation::Query,
    Operation::Transaction,
    Operation::Get,
    Operation::MultiGet,
    Operation::Range,
    Operation::Put,
    Operation::Insert,
    Operation::Delete,
];

/// A column of the host's series.
struct HostColumn {
    title: &'static str,
    unit: &'static str,
    column: &'static str,
    divisor: f64,
}

const fn host(title: &'static str, unit: &'static str, column: &'static str) -> HostColumn {
    HostColumn {
        title,
        unit,
        column,
        divisor: 1.0,
    }
}

const fn host_mib(title: &'static str, column: &'static str) -> HostColumn {
    HostColumn {
        divisor: KIB_PER_MIB,
        ..host(title, "MiB/s", column)
    }
}

const KIB_PER_MIB: f64 = 1024.0;
const PERCENT: &str = "% of all CPUs";

/// What of the host has charts, behind those of the operations.
const HOST: [HostColumn; 6] = [
    host("host CPU busy", PERCENT, "cpu_busy_pct"),
    host_mib("storage writes", "write_kib"),
    host_mib("storage reads", "read_kib"),
    host("context switches", "switches/s", "context_switches"),
    host("CPU stolen by other guests", PERCENT, "steal_pct"),
    host("resident memory", "MiB", "rss_mib"),
];

/// Charts of one step from one run per cell.
pub(crate) fn charts(runs: &[Option<&Run<'_>>]) -> Vec<Chart> {
    let of_operations = kinds(runs)
        .into_iter()
        .flat_map(|kind| operation_charts(kind, runs));
    let of_host = HOST.iter().filter_map(|column| host_chart(column, runs));
    of_operations.chain(of_host).collect()
}

/// Those that any run did more than once: a single operation has neither a rate nor a course.
/// Events of workload files follow the operations that every plan knows.
fn kinds<'a>(runs: &[Option<&Run<'a>>]) -> Vec<&'a str> {
    let runs = || runs.iter().flatten();
    let drawn = runs()
        .filter(|run| run.step.operation == Operation::Event)
        .flat_map(|run| run.operations)
        .map(|operation| operation.kind.as_str());
    let known: Vec<&'a str> = KINDS.into_iter().map(Operation::as_str).collect();
    let has_many = |kind: &&str| {
        let mut operations = runs().flat_map(|run| run.operations);
        operations.any(|operation| operation.kind == *kind && operation.ok > 1)
    };
    known
        .into_iter()
        .chain(drawn)
        .unique()
        .filter(has_many)
        .collect()
}

/// The rate of a kind of operation, and its longest times.
fn operation_charts(kind: &str, runs: &[Option<&Run<'_>>]) -> impl Iterator<Item = Chart> {
    let rate = chart(
        format!("{kind} rate"),
        rate_unit(kind),
        Reduce::Mean,
        runs,
        |run| Some(rates_by_second(run, kind)?.into_iter().map(Some).collect()),
    );
    let longest = |time: &str, pick: fn(&OperationSecond) -> u64| {
        chart(
            format!("longest {kind} {time} time"),
            "ms",
            Reduce::Max,
            runs,
            |run| longest_ms(run, kind, pick),
        )
    };
    let service = longest("service", |row| row.service_max_ns);
    let response = longest("response", |row| row.response_max_ns);
    [rate, service, response].into_iter().flatten()
}

fn rate_unit(kind: &str) -> &'static str {
    match KINDS.into_iter().find(|operation| *operation == *kind) {
        Some(Operation::Transaction) => "transactions/s",
        Some(Operation::Query) => "queries/s",
        Some(Operation::Get | Operation::MultiGet | Operation::Range) => "reads/s",
        Some(Operation::Put) => "writes/s",
        _ if counts_rows(kind) => "rows/s",
        _ => "events/s",
    }
}

/// Per second the longest time in ms; none where no operation ended.
fn longest_ms(
    run: &Run<'_>,
    kind: &str,
    pick: fn(&OperationSecond) -> u64,
) -> Option<Vec<Option<f64>>> {
    let maxima = per_second(run, kind, |max: &mut f64, row| {
        *max = max.max(pick(row) as f64 / 1e6)
    })?;
    let seconds = maxima.into_iter();
    Some(seconds.map(|max| (max > 0.0).then_some(max)).collect())
}

/// Operations of a kind in each second, or the rows of one that counts rows.
pub(crate) fn rates_by_second(run: &Run<'_>, kind: &str) -> Option<Vec<f64>> {
    let elapsed_s = run.done.map_or(0.0, |done| done.elapsed_ns as f64 / 1e9);
    let mut rates = per_second(run, kind, |rate: &mut f64, row| {
        *rate += (if counts_rows(kind) { row.rows } else { row.ok }) as f64;
    })?;
    // A second cut short by the step's end would look like a stall.
    rates.truncate((elapsed_s as usize).max(1));
    if elapsed_s > 0.0 && elapsed_s < 1.0 {
        rates[0] /= elapsed_s;
    }
    Some(rates)
}

/// Folds the rows of a kind, over all clients, into one number a second. `None` when the step has
/// no such operation.
fn per_second(
    run: &Run<'_>,
    kind: &str,
    mut fold: impl FnMut(&mut f64, &OperationSecond),
) -> Option<Vec<f64>> {
    let rows = || run.series.iter().flatten().filter(|row| row.kind == kind);
    let seconds = rows().map(|row| row.second as usize + 1).max()?;
    let mut values = vec![0.0; seconds];
    for row in rows() {
        fold(&mut values[row.second as usize], row);
    }
    Some(values)
}

/// A column of the host's series; a chart of nothing but zeros says less than no chart.
fn host_chart(of: &HostColumn, runs: &[Option<&Run<'_>>]) -> Option<Chart> {
    let chart = chart(of.title.to_owned(), of.unit, Reduce::Mean, runs, |run| {
        let host = run.host.as_ref().ok()?;
        let values: Vec<Option<f64>> = host
            .column(of.column)?
            .map(|value| value.map(|value| value / of.divisor))
            .collect();
        let seconds: Vec<Option<f64>> = host.column("second")?.collect();
        // The row of second s tells what happened up to s; a late look leaves seconds out.
        let length = seconds.iter().flatten().fold(0.0_f64, |a, b| a.max(*b)) as usize;
        let mut by_second = vec![None; length];
        for (second, value) in seconds.into_iter().zip(values) {
            if let Some(place) =
                second.and_then(|second| by_second.get_mut((second as usize).checked_sub(1)?))
            {
                *place = value;
            }
        }
        Some(by_second)
    })?;
    let is_flat = chart
        .lines
        .iter()
        .flat_map(|line| &line.points)
        .flatten()
        .all(|value| *value == 0.0);
    (!is_flat).then_some(chart)
}

fn chart(
    title: String,
    unit: &'static str,
    reduce: Reduce,
    runs: &[Option<&Run<'_>>],
    values: impl Fn(&Run<'_>) -> Option<Vec<Option<f64>>>,
) -> Option<Chart> {
    let lines: Vec<(usize, Vec<Option<f64>>)> = runs
        .iter()
        .enumerate()
        .filter_map(|(cell, run)| Some((cell, values((*run)?)?)))
        .filter(|(_, values)| values.iter().any(Option::is_some))
        .collect();
    let longest = lines.iter().map(|(_, values)| values.len()).max()?;
    let seconds_per_point = (longest * lines.len()).div_ceil(MOST_POINTS).max(1);
    let lines = lines
        .into_iter()
        .map(|(cell, values)| thin(cell, &values, seconds_per_point, reduce))
        .collect();
    Some(Chart {
        title,
        unit,
        seconds_per_point: seconds_per_point as u32,
        lines,
    })
}

fn thin(cell: usize, values: &[Option<f64>], seconds_per_point: usize, reduce: Reduce) -> Line {
    let over = |fold: fn(f64, f64) -> f64| -> Vec<Option<f64>> {
        values
            .chunks(seconds_per_point)
            .map(|seconds| seconds.iter().flatten().copied().reduce(fold))
            .collect()
    };
    if reduce == Reduce::Max {
        return Line {
            cell,
            points: over(f64::max),
            band: None,
        };
    }
    let mean = |seconds: &[Option<f64>]| {
        let count = seconds.iter().flatten().count();
        (count > 0).then(|| seconds.iter().flatten().sum::<f64>() / count as f64)
    };
    let points = values.chunks(seconds_per_point).map(mean).collect();
    Line {
        cell,
        points,
        band: (seconds_per_point > 1).then(|| Band {
            low: over(f64::min),
            high: over(f64::max),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_mean_and_extremes() {
        let values = [Some(1.0), Some(3.0), None, Some(8.0), None, None, Some(5.0)];
        let line = thin(0, &values, 2, Reduce::Mean);
        assert_eq!(line.points, [Some(2.0), Some(8.0), None, Some(5.0)]);
        assert_eq!(
            line.band,
            Some(Band {
                low: vec![Some(1.0), Some(8.0), None, Some(5.0)],
                high: vec![Some(3.0), Some(8.0), None, Some(5.0)]
            })
        );
        assert_eq!(
            thin(0, &values, 2, Reduce::Max).points,
            [Some(3.0), Some(8.0), None, Some(5.0)]
        );
        assert_eq!(thin(0, &values, 1, Reduce::Mean).band, None);
    }
}
