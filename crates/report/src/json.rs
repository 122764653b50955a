//! JSON: what `show --json` prints, and the whole report.

use plimsoll_analysis::groups::section;
use plimsoll_analysis::metrics::{CATALOGUE, Direction, MetricSet};
use serde_json::{Map, Value, json};

use plimsoll_analysis::classic::response;
use plimsoll_analysis::metrics::Measure;
use plimsoll_analysis::verdicts::{Call, Control, Estimate, Finding, OfHost, OfStart, Role};
use plimsoll_analysis::view::{
    Books, Clock, Counter, CounterKind, Differences, EventRow, LatencyTable, Outcome,
    ResponseTable, Setting, Settings, StepResult, StepView, View,
};

use crate::answers::row_costs::row_costs_of;

type Object = Map<String, Value>;

/// The version of the JSON forms.
const FORMAT: u32 = 1;

/// What `plimsoll show --json` prints: one result per cell, step, block and attempt, every metric
/// with its unit, and a reason where there is no value. `is_used` says whether the tables are made
/// from that attempt.
pub fn show_json(view: &View) -> Value {
    let campaigns: Vec<Value> = view
        .campaigns
        .iter()
        .map(|campaign| campaign_json(view, campaign))
        .collect();
    let mut value = json!({
        "format": FORMAT,
        "campaign": campaigns[0],
        "cells": view.cells.iter().map(|cell| json!({
            "cell": cell.label,
            "build": cell.build,
            "config": cell.config,
            "shape": cell.shape,
            "origin": cell.origin,
            "version": cell.version,
            "campaign": view.campaigns[cell.campaign].id,
            "server_sha256": cell.server_sha256,
            "toolchain": cell.toolchain,
            "not_comparable": cell.caveat.as_ref().map(ToString::to_string),
            "other_machine": cell.other_machine,
            "session": cell.session,
        })).collect::<Vec<_>>(),
        "results": view.results.iter().map(|result| result_json(view, result)).collect::<Vec<_>>(),
    });
    value["notes"] = json!(view.notes);
    let Books { compared, unequal } = view.books;
    value["books"] = json!({ "compared": compared, "unequal": unequal });
    value["beyond_build"] = beyond_build_json(view);
    value["comparisons"] = comparisons_json(view);
    value["groups"] = groups_json(view);
    value["row_costs"] = row_costs_of(view);
    value["control"] = controls_json(view);
    if campaigns.len() > 1 {
        value["campaigns"] = Value::Array(campaigns);
    }
    value
}

/// The whole report as one JSON value: `show --json` and everything else the other outputs show.
pub fn to_json(view: &View) -> String {
    let mut report = show_json(view);
    report["title"] = json!(view.title);
    report["comparable"] = json!(view.is_comparable);
    report["steps"] = view
        .steps
        .iter()
        .map(|step| step_json(view, step))
        .collect();
    report["environment"] = differences_json(view, &view.environment);
    report["settings"] = settings_json(view, &view.settings);
    let has = |set: &MetricSet| view.steps.iter().any(|step| step.set == *set);
    let set = [MetricSet::Statements, MetricSet::Keys]
        .into_iter()
        .find(has);
    report["metrics"] = CATALOGUE
        .iter()
        .chain(set.map_or(&[][..], MetricSet::own))
        .map(|metric| {
            let better = match metric.direction {
                Direction::Higher => "higher",
                Direction::Lower => "lower",
                Direction::Neutral => "neither",
            };
            json!({
                "name": metric.name,
                "unit": metric.unit,
                "better": better,
                "formula": metric.formula,
                "source": metric.source,
                "meaning": metric.meaning,
            })
        })
        .collect();
    format!("{report:#}\n")
}

/// What a confirm campaign says, without the results: `comparisons` and `control` as in
/// `show --json`.
pub fn confirm_json(view: &View) -> Value {
    json!({
        "format": 1,
        "campaign": view.campaigns.first().map(|campaign| &campaign.id),
        "comparisons": comparisons_json(view),
        "groups": groups_json(view),
        "row_costs": row_costs_of(view),
        "control": controls_json(view),
    })
}

/// What differs between the cells beyond their builds.
fn beyond_build_json(view: &View) -> Value {
    let beyond = view.beyond_build.iter();
    beyond
        .map(|beyond| {
            json!({
                "kind": beyond.kind.name(),
                "name": beyond.name,
                "cells": by_cell(view, &beyond.values),
            })
        })
        .collect()
}

fn comparisons_json(view: &View) -> Value {
    view.findings
        .all
        .iter()
        .map(|finding| comparison_json(view, finding))
        .collect()
}

fn groups_json(view: &View) -> Value {
    let groups = view.groups.iter();
    groups
        .map(|group| {
            json!({
                "group": section(group),
                "cell": view.cells[group.cell].label,
                "base": view.cells[group.base].label,
                "role": group.role.name(),
                "design": group.basis.name(),
                "verdict": group.verdict.name(),
                "estimate": group.estimate.map(|estimate| estimate_json(&estimate)),
                "p_adjusted": group.p_adjusted,
                "regressed": group.regressed,
                "improved": group.improved,
                "tests": group.tests,
                "tests_left_out": group.left_out,
                "starts": group
                    .by_start
                    .iter()
                    .map(|(start, ratio)| json!({"start": start, "ratio": ratio}))
                    .collect::<Vec<_>>(),
            })
        })
        .collect()
}

fn controls_json(view: &View) -> Value {
    view.findings.control.iter().map(control_json).collect()
}

fn comparison_json(view: &View, finding: &Finding) -> Value {
    let verdict = match finding.call {
        Call::Screen(..) => Value::Null,
        call => json!(call.word()),
    };
    let mut value = json!({
        "cell": view.cells[finding.cell].label,
        "base": view.cells[finding.base].label,
        "step": finding.step,
        "metric": finding.metric.name,
        "is_throughput": finding.role == Role::Throughput,
        "role": finding.role.name(),
        "design": finding.basis.name(),
        "verdict": verdict,
        "reason": (!finding.reason.is_empty()).then_some(&finding.reason),
        "estimate": finding.estimate.map(|estimate| estimate_json(&estimate)),
        "p_adjusted": finding.p_adjusted,
        "left_out": finding.left_out,
        "seconds": finding.seconds,
        "starts": finding.by_start.iter().map(of_start_json).collect::<Vec<_>>(),
        "modes": finding.modes.map(|modes| json!({
            "ratios": [modes.ratios.0, modes.ratios.1],
            "starts": [modes.starts.0, modes.starts.1],
        })),
        "placements": (!finding.placements.is_empty()).then_some(&finding.placements),
        "turns": (!finding.turns.is_empty()).then_some(&finding.turns),
        "why": (!finding.why.is_empty()).then_some(&finding.why),
    });
    if let Some(layout) = finding.layout {
        value["layout_half_width"] = json!(layout);
    }
    if !finding.by_host.is_empty() {
        value["hosts"] = finding.by_host.iter().map(of_host_json).collect();
    }
    if let Call::Screen(screen, spread) = finding.call {
        value["screen"] = json!({
            "word": finding.call.word(),
            "z": screen.z,
            "low": (-screen.reach).exp(),
            "high": screen.reach.exp(),
            "level": screen.level,
            "spread": spread.sd,
            "spread_starts": spread.starts,
        });
    }
    value
}

fn of_host_json(of: &OfHost) -> Value {
    json!({
        "host": of.host,
        "ratio": of.ratio,
        "blocks": of.blocks,
        "disagrees": of.disagrees,
    })
}

fn estimate_json(estimate: &Estimate) -> Value {
    json!({
        "ratio": estimate.ratio,
        "low": estimate.interval.map(|(low, _)| low),
        "high": estimate.interval.map(|(_, high)| high),
        "level": estimate.level,
        "starts": estimate.starts,
        "pairs": estimate.pairs,
        "p": estimate.p,
        "standard_error": estimate.error.map(|(error, _)| error),
        "degrees_of_freedom": estimate.error.map(|(_, degrees)| degrees),
        "errors_times": estimate.scale,
        "typical": estimate.typical,
    })
}

fn of_start_json(start: &OfStart) -> Value {
    let mut value = json!({
        "start": start.start,
        "load": start.load,
        "placement": start.placement,
        "ratio": start.ratio,
        "standard_error": start.within.map(|within| within.variance.sqrt()),
        "typical": start.typical,
        "rounds": start.rounds,
        "disturbed_rounds": start.disturbed,
    });
    if let Some(link) = start.link {
        value["link"] = json!(link);
    }
    value
}

fn control_json(control: &Control) -> Value {
    json!({
        "step": control.step,
        "cell": control.cell,
        "base": control.base,
        "metric": control.metric.name,
        "sound": control.is_sound,
        "left_out": control.left_out,
        "seconds": control.seconds,
        "estimate": control.estimate.map(|estimate| estimate_json(&estimate)),
    })
}

fn campaign_json(view: &View, campaign: &plimsoll_analysis::view::CampaignInfo) -> Value {
    json!({
        "id": campaign.id,
        "plan": campaign.plan,
        "seed": campaign.seed,
        "methodology_version": campaign.methodology_version,
        "state": campaign.state,
        "base": view.cells[0].label,
        "comparable": view.is_comparable,
        "created": campaign.created,
        "plimsoll_version": campaign.plimsoll_version,
    })
}

fn result_json(view: &View, result: &StepResult) -> Value {
    let events = result.events.iter();
    let events: Object = events
        .map(|event| (event.kind.clone(), event_json(event)))
        .collect();
    let mut value = json!({
        "cell": view.cells[result.cell].label,
        "step": result.step,
        "block": result.block,
        "trial": result.trial,
        "attempt": result.attempt,
        "is_used": result.is_used,
        "status": result.status.name(),
        "reason": result.reason,
        "attempts": result.sum(|operation| operation.attempts),
        "ok": result.sum(|operation| operation.ok),
        "retried": result.sum(|operation| operation.retried),
        "failed": result.sum(|operation| operation.failed),
        "operations": result.operations.iter().map(|operation| (operation.kind.clone(), json!({
            "attempts": operation.attempts,
            "ok": operation.ok,
            "retried": operation.retried,
            "failed": operation.failed,
            "unsent": operation.unsent,
            "rows": operation.rows,
            "errors": operation.errors,
            "statements": operation.statements,
            "excluded_wait_s": operation.wait_s,
        }))).collect::<Object>(),
        "events": events,
        "metrics": metrics_json(&result.measures),
    });
    if let Some(part) = result.part {
        value["part"] = json!(part);
    }
    if let Some(host) = &result.host {
        value["host"] = json!(host);
    }
    if !result.client_hosts.is_empty() {
        value["client_hosts"] = json!(result.client_hosts);
    }
    value
}

/// What one kind of event came to; a number that is not there is null.
fn event_json(event: &EventRow) -> Value {
    let mut numbers: Map<String, Value> = event
        .numbers()
        .into_iter()
        .map(|(name, _, value)| (name.to_owned(), json!(value)))
        .collect();
    numbers.insert(
        "p99_response_is_lower_bound".to_owned(),
        json!(event.is_response_lower_bound()),
    );
    Value::Object(numbers)
}

/// `low` and `high` stay null: one run has no interval. `classic` is that of imported results: a
/// native run has one set of values.
fn metrics_json(measures: &[Measure]) -> Map<String, Value> {
    let metric = |measure: &Measure| {
        json!({
            "value": measure.value.value,
            "is_lower_bound": measure.value.is_lower_bound,
            "unit": measure.metric.unit,
            "low": null,
            "high": null,
            "classic": measure.classic,
            "unavailable": measure.value.unavailable,
        })
    };
    measures
        .iter()
        .map(|measure| (measure.metric.name.to_owned(), metric(measure)))
        .collect()
}

fn step_json(view: &View, step: &StepView) -> Value {
    let counters = || step.counters.iter();
    let of_level = |counter: &&Counter| counter.kind == CounterKind::Level;
    let growth = |counter: &Counter| (counter.name.clone(), json!(counter.values));
    let cost = |counter: &Counter| (counter.name.clone(), json!(counter.per_operation));
    let outcomes = step.outcomes.iter().zip(&view.cells);
    let responses = step.responses.iter();
    let latencies = step.latencies.iter();
    json!({
        "step": step.name,
        "description": step.description,
        "cells": outcomes
            .map(|(outcome, cell)| outcome_json(&cell.label, outcome))
            .collect::<Vec<_>>(),
        "response_times": responses
            .map(|table| response_json(view, table))
            .collect::<Vec<_>>(),
        "percentiles": latencies
            .map(|table| latency_json(view, step, table))
            .collect::<Vec<_>>(),
        "operation": step.operation,
        "counters": counters().map(growth).collect::<Object>(),
        "counters_per_operation": counters()
            .filter(|counter| !of_level(counter))
            .map(cost)
            .collect::<Object>(),
        "levels": counters()
            .filter(of_level)
            .map(|counter| &counter.name)
            .collect::<Vec<_>>(),
    })
}

fn outcome_json(label: &str, outcome: &Outcome) -> Value {
    json!({
        "cell": label,
        "status": outcome.status.name(),
        "reason": outcome.reason,
        "blocks_used": outcome.blocks_used,
        "blocks_planned": outcome.blocks_planned,
        "elapsed_s": outcome.elapsed_s,
        "target_rows_per_s": outcome.target_per_s,
        "metrics": metrics_json(&outcome.measures),
        "crash": outcome.crash.as_ref().map(|crash| json!({
            "status": crash.status,
            "log_tail": crash.log_tail,
        })),
        "drain": outcome.drain.as_ref().map(|drain| json!({
            "drained_s": drain.drained_s,
            "waited_s": drain.waited_s,
            "actions": drain.actions.iter().map(|(action, seconds, result)| json!({
                "action": action,
                "seconds": seconds,
                "result": result,
            })).collect::<Vec<_>>(),
        })),
        "tables": outcome.checks.iter().map(|check| json!({
            "table": check.table,
            "expected_rows": check.expected_rows,
            "found_rows": check.found_rows,
            "checksum": check.checksum,
        })).collect::<Vec<_>>(),
        "notes": outcome.notes,
    })
}

fn response_json(view: &View, table: &ResponseTable) -> Value {
    let buckets = |counts: &[u64; 10]| {
        response::BUCKETS
            .iter()
            .zip(counts)
            .map(|(name, count)| ((*name).to_owned(), json!(count)))
            .collect::<Object>()
    };
    json!({
        "operation": table.kind,
        "cells": table.rows.iter().map(|row| json!({
            "cell": view.cells[row.cell].label,
            "operations": row.total,
            "buckets": buckets(&row.counts),
            "max_s": row.max_s,
        })).collect::<Vec<_>>(),
    })
}

fn latency_json(view: &View, step: &StepView, table: &LatencyTable) -> Value {
    json!({
        "operation": table.kind,
        "open_loop": table.is_open_loop,
        "rows": table.rows.iter().map(|row| {
            let q = row.quantiles;
            let excluded_wait_s = step.excluded_wait_s(row.cell, &table.kind);
            json!({
                "cell": view.cells[row.cell].label,
                "clock": row.clock.name(),
                "operations": q.count,
                "mean_ns": q.mean_ns,
                "p50_ns": q.p50_ns,
                "p90_ns": q.p90_ns,
                "p99_ns": q.p99_ns,
                "p999_ns": q.p999_ns,
                "p9999_ns": q.p9999_ns,
                "max_ns": q.max_ns,
                "excluded_wait_s": excluded_wait_s.filter(|_| row.clock == Clock::Service),
                "lower_bounds": q.lower_bounds(),
            })
        }).collect::<Vec<_>>(),
    })
}

/// By setting and cell. `differing` and `equal` leave out what only some cells have and what names
/// places.
fn settings_json(view: &View, settings: &Settings) -> Value {
    let labels = |cells: &[usize]| {
        cells
            .iter()
            .map(|cell| view.cells[*cell].label.as_str())
            .collect::<Vec<_>>()
    };
    let all = |settings: &[Setting]| {
        settings
            .iter()
            .map(|setting| (setting.name.clone(), by_cell(view, &setting.values)))
            .collect::<Object>()
    };
    json!({
        "not_as_asked": settings.not_as_asked.iter().map(|setting| json!({
            "setting": setting.name,
            "asked": setting.asked,
            "found": setting.found.as_ref().ok(),
            "reason": setting.found.as_ref().err(),
            "cells": labels(&setting.cells),
        })).collect::<Vec<_>>(),
        "untold": settings.untold,
        "custom": settings.custom,
        "differing": all(&settings.differing),
        "only_in": settings.only_in.iter().map(|only| json!({
            "cells": labels(&only.cells),
            "settings": pairs(&only.settings),
        })).collect::<Vec<_>>(),
        "places": all(&settings.places),
        "equal": pairs(&settings.equal),
    })
}

fn differences_json(view: &View, differences: &Differences) -> Value {
    let differing = differences.differing.iter();
    json!({
        "differing": differing
            .map(|(name, values)| (name.clone(), by_cell(view, values)))
            .collect::<Object>(),
        "equal": pairs(&differences.equal),
    })
}

/// By the labels of the cells.
fn by_cell(view: &View, values: &[Option<String>]) -> Value {
    let values = view.cells.iter().zip(values);
    values
        .map(|(cell, value)| (cell.label.clone(), json!(value)))
        .collect::<Object>()
        .into()
}

fn pairs(pairs: &[(String, String)]) -> Object {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect()
}
