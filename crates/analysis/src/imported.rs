//! The view of imported campaigns: what another tool measured, in the order it was published in.

use std::collections::BTreeMap;

use itertools::Itertools;
use plimsoll_core::plan::Operation;
use plimsoll_core::record::SLA_SHARE;
use plimsoll_core::witness::Limits;
use plimsoll_store::CampaignRecord;
use plimsoll_store::imported::{Family, Imported, ImportedCell, ImportedResult, ImportedStep};

use crate::cells::campaigns::{self, CampaignInfo};
use crate::cells::cell_info::CellInfo;
use crate::cells::selection::{Candidate, choose};
use crate::classic::response::classify_max;
use crate::classic::{Class, relative, throughput};
use crate::metrics::value::Value;
use crate::metrics::{self, Measure, Metric, find, place};
use crate::runs::results::StepResult;
use crate::runs::status::Status;
use crate::steps::charts::{Chart, Line};
use crate::steps::classic_table::ClassicCell;
use crate::steps::counters::{Counter, CounterKind};
use crate::steps::latency::{ResponseRow, ResponseTable};
use crate::steps::outcome::Outcome;
use crate::steps::published::{PublishedRow, PublishedTable, Section};
use crate::steps::step_view::{INDEXED_ROW, INSERTED_ROW, StepView};
use crate::steps::summary::{Summary, summarise};
use crate::view::View;
use crate::words::reasons::reasons;
use crate::{AnalysisError, Options};

/// Seconds that hardware counters were read for.
const WINDOW_S: f64 = 10.0;

/// A cell with the campaign it is of.
struct Cell<'a> {
    campaign: usize,
    imported: &'a Imported,
    index: usize,
}

impl<'a> Cell<'a> {
    fn info(&self) -> &'a ImportedCell {
        &self.imported.cells[self.index]
    }

    fn result(&self, step: &str) -> Option<&'a ImportedResult> {
        let step = self
            .imported
            .steps
            .iter()
            .position(|known| known.name == step)?;
        self.imported.result(self.index, step)
    }
}

/// Computes everything that a report shows of imported campaigns. All records must be imported.
pub(crate) fn imported_view(
    records: &[CampaignRecord],
    options: &Options,
) -> Result<View, AnalysisError> {
    let imported: Vec<&Imported> = records
        .iter()
        .filter_map(|record| record.imported.as_ref())
        .collect();
    let all: Vec<Cell<'_>> = imported
        .iter()
        .enumerate()
        .flat_map(|(campaign, imported)| {
            (0..imported.cells.len()).map(move |index| Cell {
                campaign,
                imported,
                index,
            })
        })
        .collect();
    let candidates: Vec<Candidate> = all
        .iter()
        .map(|cell| candidate(cell, &all, records))
        .collect();
    let base = imported.first().map_or(0, |imported| imported.base);
    let chosen = choose(&candidates, options.base.as_deref(), &options.builds, base)?;
    let cells: Vec<&Cell<'_>> = chosen.iter().map(|index| &all[*index]).collect();
    let infos: Vec<CellInfo> = chosen
        .iter()
        .map(|index| cell_info(&all[*index], &candidates[*index].label))
        .collect();
    let known_steps = steps(&imported);
    let steps: Vec<StepView> = known_steps
        .iter()
        .map(|step| step_view(step, &cells))
        .collect();
    let families: Vec<Family> = imported.iter().map(|imported| imported.family).collect();
    let is_insert_benchmark = families
        .iter()
        .all(|family| *family == Family::InsertBenchmark);
    let (summary, published) = if is_insert_benchmark {
        let steps: Vec<&StepView> = steps.iter().collect();
        (summarise(&infos, &steps), Vec::new())
    } else {
        let published = published(&cells, &infos, &known_steps);
        (Summary::none(), published)
    };
    let mut view = View {
        campaigns: records.iter().map(campaign_info).collect(),
        results: results(&cells, &known_steps),
        summary,
        published,
        reasons: reasons(&infos, &steps, &Limits::default().on(None), false),
        steps,
        cells: infos,
        ..View::bare(title(&imported))
    };
    view.notes = notes(&view, &imported);
    Ok(view)
}

fn candidate(cell: &Cell<'_>, all: &[Cell<'_>], records: &[CampaignRecord]) -> Candidate {
    let label = &cell.info().label;
    let is_shared = all
        .iter()
        .any(|other| other.campaign != cell.campaign && other.info().label == *label);
    let label = if is_shared {
        format!("{label} in {}", records[cell.campaign].header.id)
    } else {
        label.clone()
    };
    Candidate {
        label,
        build: cell.info().build.clone(),
    }
}

fn title(imported: &[&Imported]) -> String {
    let of = |imported: &&Imported| format!("{}: {}", imported.family.title(), imported.source);
    imported.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn campaign_info(record: &CampaignRecord) -> CampaignInfo {
    CampaignInfo {
        state: "imported",
        progress: "imported".to_owned(),
        blocks: 1,
        hosts: Vec::new(),
        verify: "not known",
        ..campaigns::campaign_info(record)
    }
}

fn cell_info(cell: &Cell<'_>, label: &str) -> CellInfo {
    let info = cell.info();
    CellInfo {
        label: label.to_owned(),
        campaign: cell.campaign,
        build: info.build.clone(),
        version: info.version.clone(),
        origin: format!("imported from {}", cell.imported.source),
        config: info.config.clone(),
        config_source: "imported".to_owned(),
        config_settings: BTreeMap::new(),
        shape: "imported".to_owned(),
        workload: info.shape.clone(),
        is_embedded: Some(false),
        build_options: Vec::new(),
        server_sha256: None,
        toolchain: BTreeMap::new(),
        caveat: None,
        session: BTreeMap::new(),
        machine: BTreeMap::new(),
        other_machine: None,
        base: 0,
    }
}

/// The steps of all campaigns, the first campaign's order first.
fn steps<'a>(imported: &[&'a Imported]) -> Vec<&'a ImportedStep> {
    let mut steps: Vec<&ImportedStep> = Vec::new();
    for step in imported.iter().flat_map(|imported| &imported.steps) {
        if steps.iter().all(|known| known.name != step.name) {
            steps.push(step);
        }
    }
    steps
}

fn measures(result: &ImportedResult) -> Vec<Measure> {
    let mut measures: Vec<Measure> = result
        .values
        .iter()
        .filter_map(|(name, value)| {
            let of = Value {
                value: value.value,
                unavailable: value.unavailable.clone(),
                is_lower_bound: false,
            };
            Some(Measure {
                metric: find(name)?,
                value: of,
                classic: value.classic.clone(),
            })
        })
        .collect();
    measures.sort_by_key(|measure| place(measure.metric.name));
    measures
}

fn rate_of(step: &ImportedStep) -> &'static Metric {
    find(&step.rate).unwrap_or(metrics::QPS)
}

const OPERATION: &str = "operation";

fn step_view(step: &ImportedStep, cells: &[&Cell<'_>]) -> StepView {
    let found: Vec<Option<&ImportedResult>> =
        cells.iter().map(|cell| cell.result(&step.name)).collect();
    let operation = match &step.operation {
        rows if *rows == Operation::Insert => INSERTED_ROW,
        rows if *rows == Operation::Index => INDEXED_ROW,
        // Other tools do not say what it is.
        other if other == OPERATION => OPERATION,
        _ => Operation::Query.as_str(),
    };
    StepView {
        description: step.description.clone(),
        outcomes: found.iter().map(|result| outcome(*result)).collect(),
        responses: responses(&found),
        charts: charts(&found),
        counters: counters(&found, &step.rate),
        ..StepView::bare(&step.name, rate_of(step), operation)
    }
}

/// Hardware counters of a window, and per operation. Shares and ratios among them are not counts.
fn counters(found: &[Option<&ImportedResult>], rate: &str) -> Vec<Counter> {
    let is_count =
        |name: &&String| !name.ends_with("-pct") && !matches!(name.as_str(), "ipc" | "GHz");
    let names = found
        .iter()
        .flatten()
        .flat_map(|result| result.counters.keys())
        .filter(is_count)
        .unique();
    let of = |name: &str| {
        let value = |result: &Option<&ImportedResult>| result.as_ref()?.counters.get(name).copied();
        let per_operation = |result: &Option<&ImportedResult>| {
            let per_s = result
                .as_ref()
                .filter(|_| rate != metrics::imported::REL_RATE.name)?
                .values
                .get(rate)?
                .value
                .filter(|rate| *rate > 0.0)?;
            Some(value(result)? / WINDOW_S / per_s)
        };
        Counter {
            name: name.to_owned(),
            kind: CounterKind::Front,
            unit: "",
            meaning: "hardware counter of the server in a window of 10 s",
            values: found
                .iter()
                .map(|result| value(result).map(|value| value.round() as i64))
                .collect(),
            per_operation: found.iter().map(per_operation).collect(),
        }
    };
    names.map(|name| of(name)).collect()
}

fn outcome(result: Option<&ImportedResult>) -> Outcome {
    let (status, reason) = match result {
        None => (Status::Missing, Some("there is no result of it".to_owned())),
        Some(ImportedResult {
            failed: Some(reason),
            ..
        }) => (Status::Failed, Some(reason.clone())),
        Some(result) => sla(result),
    };
    let fact = |name: &str| result.and_then(|result| result.facts.get(name)?.parse().ok());
    Outcome {
        blocks_used: u32::from(status.is_finished()),
        blocks_planned: u32::from(result.is_some()),
        target_per_s: fact("target_per_s"),
        measures: result.map(measures).unwrap_or_default(),
        elapsed_s: fact("elapsed_s"),
        ..Outcome::bare(status, reason)
    }
}

/// The background writers of a step have to reach 95 % of their rate, if the files have it.
fn sla(result: &ImportedResult) -> (Status, Option<String>) {
    let target = result
        .facts
        .get("target_per_s")
        .and_then(|target| target.parse::<f64>().ok());
    let share = result
        .values
        .get(metrics::IPS.name)
        .and_then(|ips| ips.value)
        .zip(target)
        .map(|(ips, target)| ips / target);
    match share.filter(|share| *share < SLA_SHARE) {
        Some(share) => (
            Status::SlaMissed,
            Some(format!(
                "the background writers reached {:.1} % of their rate, less than 95 %",
                share * 100.0
            )),
        ),
        None => (Status::Ok, None),
    }
}

fn results(cells: &[&Cell<'_>], steps: &[&ImportedStep]) -> Vec<StepResult> {
    let of = |index: usize, step: &ImportedStep| {
        let result = cells[index].result(&step.name);
        let Outcome {
            status,
            reason,
            measures,
            ..
        } = outcome(result);
        StepResult {
            cell: index,
            step: step.name.clone(),
            block: 1,
            part: None,
            trial: 0,
            attempt: u32::from(result.is_some()),
            host: None,
            is_used: true,
            status,
            reason,
            events: Vec::new(),
            operations: Vec::new(),
            measures,
            client_hosts: Vec::new(),
        }
    };
    (0..cells.len())
        .flat_map(|index| steps.iter().map(move |step| (index, *step)))
        .map(|(index, step)| of(index, step))
        .collect()
}

fn responses(found: &[Option<&ImportedResult>]) -> Vec<ResponseTable> {
    let kinds = found
        .iter()
        .flatten()
        .flat_map(|result| &result.responses)
        .map(|response| response.kind.as_str())
        .unique();
    let table = |kind: &str| {
        let of_kind = |result: &&ImportedResult| {
            result
                .responses
                .iter()
                .find(|response| response.kind == kind)
                .cloned()
        };
        let rows: Vec<_> = found
            .iter()
            .enumerate()
            .filter_map(|(cell, result)| Some((cell, of_kind(result.as_ref()?)?)))
            .collect();
        let classes = classify_max(
            &rows
                .iter()
                .map(|(_, response)| Some(response.max_s))
                .collect::<Vec<_>>(),
        );
        let rows = rows
            .into_iter()
            .zip(classes)
            .map(|((cell, response), max_class)| ResponseRow {
                cell,
                total: response.counts.iter().sum(),
                counts: response.counts,
                max_s: response.max_s,
                max_class,
            });
        ResponseTable {
            kind: kind.to_owned(),
            rows: rows.collect(),
        }
    };
    kinds.into_iter().map(table).collect()
}

fn charts(found: &[Option<&ImportedResult>]) -> Vec<Chart> {
    /// Units come from our readers; one that the page does not know is not drawn with a unit.
    const UNITS: [&str; 6] = ["queries/s", "rows/s", "ops/s", "us", "ms", "errors/s"];
    let mut charts: Vec<Chart> = Vec::new();
    for (cell, series) in found.iter().enumerate().flat_map(|(cell, result)| {
        result
            .iter()
            .flat_map(move |r| r.series.iter().map(move |s| (cell, s)))
    }) {
        let line = Line {
            cell,
            points: series.points.clone(),
            band: None,
        };
        match charts.iter_mut().find(|chart| {
            chart.title == series.title && chart.seconds_per_point == series.seconds_per_point
        }) {
            Some(chart) => chart.lines.push(line),
            None => charts.push(Chart {
                title: series.title.clone(),
                unit: UNITS
                    .into_iter()
                    .find(|unit| *unit == series.unit)
                    .unwrap_or(""),
                seconds_per_point: series.seconds_per_point,
                lines: vec![line],
            }),
        }
    }
    charts
}

/// Absolute and relative rates with a row per test and a column per cell, in the sections they are
/// published in.
fn published(
    cells: &[&Cell<'_>],
    infos: &[CellInfo],
    steps: &[&ImportedStep],
) -> Vec<PublishedTable> {
    let has_sections = steps.iter().any(|step| !step.group.is_empty());
    let mut sections: Vec<(&str, Vec<&ImportedStep>)> = Vec::new();
    for step in steps
        .iter()
        .filter(|step| !has_sections || !step.group.is_empty())
    {
        match sections.iter_mut().find(|(title, _)| *title == step.group) {
            Some((_, of)) => of.push(step),
            None => sections.push((&step.group, vec![step])),
        }
    }
    let table = |title,
                 caption,
                 row: &dyn Fn(&ImportedStep) -> Vec<ClassicCell>,
                 columns: std::ops::Range<usize>| PublishedTable {
        title,
        caption,
        base: (columns.start > 0).then(|| infos[0].label.clone()),
        columns: infos[columns]
            .iter()
            .map(|info| info.label.clone())
            .collect(),
        sections: sections
            .iter()
            .map(|(title, steps)| Section {
                title: (*title).to_owned(),
                rows: steps
                    .iter()
                    .map(|step| PublishedRow {
                        label: step.name.clone(),
                        cells: row(step),
                    })
                    .collect(),
            })
            .collect(),
    };
    let mut tables = Vec::new();
    // Of ratios alone there is nothing absolute.
    if steps
        .iter()
        .any(|step| step.rate != metrics::imported::REL_RATE.name)
    {
        tables.push(table(
            "Throughput",
            "as published (classic): queries/s or operations/s; scans in thousands of rows/s",
            &|step| absolute(step, cells),
            0..infos.len(),
        ));
    }
    if infos.len() > 1 {
        let caption = "printed value / printed value of the base: above 1 is faster";
        tables.push(table(
            "Throughput relative to the base",
            caption,
            &|step| relatives(step, cells),
            1..infos.len(),
        ));
    }
    tables
}

/// What the originals print, else the clean number as they would print it.
fn printed(step: &ImportedStep, cell: &Cell<'_>) -> Option<String> {
    let value = cell.result(&step.name)?.values.get(&step.rate)?;
    value
        .classic
        .clone()
        .or_else(|| Some(format!("{:.*}", rate_of(step).decimals, value.value?)))
}

fn classic_cell(
    step: &ImportedStep,
    cell: &Cell<'_>,
    number: Option<String>,
    class: Class,
) -> ClassicCell {
    let Outcome { status, reason, .. } = outcome(cell.result(&step.name));
    ClassicCell {
        number,
        class,
        status,
        reason,
    }
}

fn absolute(step: &ImportedStep, cells: &[&Cell<'_>]) -> Vec<ClassicCell> {
    let texts: Vec<Option<String>> = cells.iter().map(|cell| printed(step, cell)).collect();
    let rate = |text: &Option<String>| {
        let per_s = text.as_ref()?.parse::<f64>().ok()?.round() as u64;
        Some(throughput::Rate {
            per_s,
            is_sla_met: true,
        })
    };
    let classes = throughput::classify(&texts.iter().map(rate).collect::<Vec<_>>());
    cells
        .iter()
        .zip(texts)
        .zip(classes)
        .map(|((cell, text), class)| classic_cell(step, cell, text, class))
        .collect()
}

fn relatives(step: &ImportedStep, cells: &[&Cell<'_>]) -> Vec<ClassicCell> {
    let number = |cell: &Cell<'_>| printed(step, cell)?.parse::<f64>().ok();
    let base = number(cells[0]);
    let of = |cell: &&Cell<'_>| {
        let ratio = number(cell).zip(base);
        let text = ratio.map(|(value, base)| relative::format(value, base));
        let class = ratio
            .filter(|(_, base)| *base > 0.0)
            .map_or(Class::Plain, |(value, base)| {
                relative::classify(value, base)
            });
        classic_cell(step, cell, text, class)
    };
    cells[1..].iter().map(of).collect()
}

fn notes(view: &View, imported: &[&Imported]) -> Vec<String> {
    let mut notes = vec![
        "Imported: another tool measured these results, one run per cell and not in turn. A \
        difference here is something to look at, not a verdict: one run cannot tell a regression \
        from noise."
            .to_owned(),
    ];
    if view.published.is_empty() {
        notes.push(
            "Tables and metrics show clean values; what the originals print is in exports, and in \
            JSON and CSV as `classic`."
                .to_owned(),
        );
    } else {
        notes.push(
            "Tables show classic values, as the originals print them; the metrics of steps are \
            clean."
                .to_owned(),
        );
    }
    notes.extend(distances(view));
    for imported in imported {
        notes.extend(imported.notes.iter().cloned());
        if imported.passwords_stripped > 0 {
            notes.push(format!(
                "{} passwords on recorded command lines were taken out.",
                imported.passwords_stripped
            ));
        }
        match imported.left_out.len() {
            0 => {}
            1 => notes.push(format!(
                "One file of {} could not be read: {}: {}.",
                imported.source, imported.left_out[0].path, imported.left_out[0].reason
            )),
            files => notes.push(format!(
                "{files} files of {} could not be read, the first of them {}: {}.",
                imported.source, imported.left_out[0].path, imported.left_out[0].reason
            )),
        }
    }
    let eras = eras(imported);
    if eras.len() > 1 {
        notes.push(format!(
            "Several generations of output are mixed: {}.",
            eras.join("; ")
        ));
    }
    notes
}

fn eras(imported: &[&Imported]) -> Vec<String> {
    let mut eras: Vec<String> = Vec::new();
    for result in imported.iter().flat_map(|imported| &imported.results) {
        // How scans are reported is a matter of single tests.
        let era = result.era.split(", ").next().unwrap_or_default();
        if !era.is_empty() && !eras.iter().any(|known| known == era) {
            eras.push(era.to_owned());
        }
    }
    eras
}

/// How far classic values are from clean ones, where it is more than their rounding.
fn distances(view: &View) -> Option<String> {
    let mut spans: BTreeMap<usize, (&str, f64, f64)> = BTreeMap::new();
    for measure in view.results.iter().flat_map(|result| &result.measures) {
        let (Some(clean), Some(classic)) = (
            measure.value.value,
            measure
                .classic
                .as_deref()
                .and_then(|text| text.parse::<f64>().ok()),
        ) else {
            continue;
        };
        let digits = measure
            .classic
            .as_deref()
            .and_then(|text| text.split_once('.'))
            .map_or(0, |(_, digits)| digits.len());
        let rounding = 0.5000001 * 10f64.powi(-(digits as i32));
        if clean == 0.0 || (classic - clean).abs() <= rounding {
            continue;
        }
        let percent = 100.0 * (classic / clean - 1.0);
        if percent.abs() < 0.05 {
            continue;
        }
        let span = spans.entry(place(measure.metric.name)).or_insert((
            measure.metric.name,
            percent,
            percent,
        ));
        *span = (span.0, span.1.min(percent), span.2.max(percent));
    }
    let spans: Vec<String> = spans
        .values()
        .map(
            |(name, low, high)| match (format!("{low:+.1}"), format!("{high:+.1}")) {
                (low, high) if low == high => format!("{name} {low} %"),
                (low, high) => format!("{name} {low} to {high} %"),
            },
        )
        .collect();
    (!spans.is_empty()).then(|| {
        format!(
            "Classic values differ from clean ones by more than their rounding: {}.",
            spans.join(", ")
        )
    })
}
