//! `explain` and `history`.

use plimsoll_analysis::{AnalysisError, HistoryOptions, Stored};
use plimsoll_report::{
    Draw, companions_to_json, companions_to_text, row_costs_to_json, row_costs_to_text,
};
use plimsoll_store::{CampaignSummary, Store, shell_word};
use serde_json::json;

use crate::arguments::{Explain, History, Places};
use crate::failure::{Failure, VerbResult};
use crate::output::print;

pub fn explain(places: &Places, arguments: &Explain) -> VerbResult {
    let store = places.store();
    let campaign = store.find(arguments.campaign.as_deref())?.load()?;
    let step = campaign.header.plan.step_name(&arguments.step);
    let explanation = plimsoll_analysis::explain(
        &campaign,
        &Stored::newest(&store),
        &step,
        arguments.a.as_deref(),
        arguments.b.as_deref(),
    )
    .map_err(|error| with_another(&store, arguments, error))?;
    let profiled = plimsoll_analysis::profiles_of(&campaign, &explanation).map_err(|error| {
        Failure::usage(format!(
            "failed to read the profiles of {}: {error}",
            campaign.header.id
        ))
    })?;
    let waits = plimsoll_analysis::waits_of(&campaign, &explanation);
    let companions = plimsoll_analysis::companions_of(&campaign, &explanation);
    let text = if arguments.json {
        let mut value = explanation.to_json();
        value["row_costs"] = row_costs_to_json(&explanation.row_costs);
        value["companions"] = companions_to_json(&companions);
        value["waits"] = json!(waits.map(|waits| waits.to_json()));
        value["profile"] = json!(profiled.map(|profiled| profiled.to_json()));
        format!("{value:#}\n")
    } else {
        let companions = companions_to_text(&companions);
        let waits = waits.map_or_else(String::new, |waits| waits.to_text());
        explanation.to_text()
            + &row_costs_to_text(&explanation.row_costs)
            + &companions
            + &waits
            + &profiled.map_or_else(String::new, |profiled| profiled.to_text())
    };
    print(&text)?;
    Ok(0)
}

/// A confirm campaign has the steps that it confirmed: where the newest campaign lacks the step, the
/// newest one that has it is named.
fn with_another(store: &Store, arguments: &Explain, error: AnalysisError) -> Failure {
    let is_lacking = matches!(error, AnalysisError::UnknownStep { .. });
    let another = (is_lacking && arguments.campaign.is_none())
        .then(|| store.summaries().ok())
        .flatten()
        .and_then(|all| {
            let has_step = |summary: &CampaignSummary| {
                let plan = &summary.campaign.header.plan;
                let step = plan.step_name(&arguments.step);
                let cells = plan.cells.iter();
                cells
                    .flat_map(|cell| cell.workload.steps())
                    .any(|of| of.name == step)
            };
            all.into_iter().rfind(has_step)
        });
    match another {
        Some(summary) => Failure::usage(format!(
            "failed to {error}; campaign {id} has it: `plimsoll explain {step} --campaign {path}`",
            id = summary.campaign.header.id,
            step = arguments.step,
            path = shell_word(&summary.campaign.path.to_string_lossy()),
        )),
        None => error.into(),
    }
}

pub fn history(places: &Places, arguments: &History) -> VerbResult {
    let store = places.store();
    let campaign = store.find(arguments.which.campaign())?.load()?;
    let step = arguments
        .step
        .as_ref()
        .map(|step| campaign.header.plan.step_name(step));
    let options = HistoryOptions {
        metric: arguments.metric.clone(),
        step,
    };
    let series = plimsoll_analysis::history(&campaign, &Stored::newest(&store), &options)?;
    if arguments.json {
        let series: Vec<_> = series.iter().map(Draw::to_json).collect();
        print(&format!(
            "{:#}\n",
            json!({"format": 1, "campaign": campaign.header.id, "series": series})
        ))?;
    } else if series.is_empty() {
        let id = &campaign.header.id;
        print(&format!(
            "{id} has no series: that takes two releases of an engine under one config, or two \
            campaigns of one plan and kind on this machine\n"
        ))?;
    } else {
        print(
            &series
                .iter()
                .map(Draw::to_text)
                .collect::<Vec<_>>()
                .join("\n"),
        )?;
    }
    Ok(0)
}
