//! `gate`: of a campaign, or of a plan that is measured first.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plimsoll_analysis::selection::{Candidate, find};
use plimsoll_analysis::{Accepted, AnalysisError, GateRequest, KnownSteps, Stored};
use plimsoll_core::plan::{Budget, Plan, results as results_of};
use plimsoll_core::units::parse_duration_ns;
use plimsoll_lab::{
    CampaignEnd, ConfirmChoice, ConfirmRequest, DesignChoice, LoadsChoice, PlacementChoice,
    UntilGated, create_confirm, keep_passwords_from_children, load_plan, run_campaign_until,
};
use plimsoll_report::Draw;
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignDir, Store, shell_word};

use crate::arguments::{Gate, Places};
use crate::failure::{Failure, INTERRUPTED, VerbResult};
use crate::output::print;
use crate::progress::Console;
use crate::verbs::results;
use crate::verbs::running::{
    tell_how_to_continue, tell_what_broke, this_program, warn_of_disturbance,
};
use crate::verbs::survey::{is_plan, plan_survey};

pub fn gate(places: &Places, arguments: &Gate) -> VerbResult {
    let store = places.store();
    let request = request(arguments)?;
    let campaign = match arguments.campaign.as_deref().filter(|name| is_plan(name)) {
        Some(plan) => match measured(places, &store, plan, arguments, &request)? {
            Some(campaign) => campaign,
            None => return Ok(INTERRUPTED),
        },
        None if arguments.budget.is_some() => {
            return Err(Failure::usage(
                "--budget is for plans, which are measured: name one, as in `plimsoll gate \
                plan.toml ...`",
            ));
        }
        None => store.find(arguments.campaign.as_deref())?,
    };
    let gate = plimsoll_analysis::gate(&campaign.load()?, &Stored::newest(&store), &request)?;
    if let Some(path) = &arguments.junit {
        let page = campaign.page();
        let junit = plimsoll_report::to_junit(&gate, page.as_deref());
        write(path, &junit, "--junit")?;
    }
    if let Some(path) = &arguments.comment {
        write(path, &plimsoll_report::to_comment(&gate), "--comment")?;
    }
    print(&match arguments.json {
        true => format!("{:#}\n", gate.to_json()),
        false => gate.to_text(),
    })?;
    Ok(gate.exit_code())
}

fn write(path: &Path, text: &str, option: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::usage(format!(
            "failed to write {}: {error}; choose another file with {option}",
            path.display()
        ))
    })
}

fn request(arguments: &Gate) -> Result<GateRequest, Failure> {
    let accepted = match &arguments.accept {
        None => Vec::new(),
        Some(file) => accepted(file)?,
    };
    Ok(GateRequest {
        base: arguments.base.clone(),
        candidates: arguments.candidate.clone(),
        max_regression: arguments.max_regression,
        thresholds: arguments.threshold.clone(),
        accepted,
        steps: arguments.step.clone(),
        exclude: arguments.exclude.clone(),
        metric: arguments.metric,
        is_strict: arguments.strict,
    })
}

fn accepted(file: &Path) -> Result<Vec<Accepted>, Failure> {
    let refused = |reason: String| Failure::usage(format!("{}: {reason}", file.display()));
    let text = fs::read_to_string(file).map_err(|error| {
        refused(format!(
            "failed to read the losses that are accepted: {error}; leave --accept out if there are \
            none, or write `STEPS SHARE REASON` on each line of it"
        ))
    })?;
    Accepted::read(&text).map_err(refused)
}

/// Measures the base and the candidates of a plan until the gate has its answer or the budget is
/// spent; none when it was interrupted.
fn measured(
    places: &Places,
    store: &Store,
    plan: &str,
    arguments: &Gate,
    request: &GateRequest,
) -> Result<Option<CampaignDir>, Failure> {
    let given = arguments.budget.as_deref().map(budget_ns).transpose()?;
    let survey = survey(places, plan, arguments)?;
    let budget_ns = given.unwrap_or(Budget::of(&survey.plan).time_ns);
    let data_dir = places.data_dir()?;
    let asked = ConfirmRequest {
        survey: &survey,
        bisection: None,
        choice: choice(&survey.plan, request, budget_ns)?,
        data_dir: &data_dir,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
        client_hosts: None,
    };
    let (mut campaign, turn, notes) = create_confirm(store, &asked)?;
    for note in notes {
        tell!("{note}");
    }
    let mut console = Console::new(&campaign)?;
    warn_of_disturbance(&campaign);
    let (stored, budget) = (Stored::newest(store), Duration::from_nanos(budget_ns));
    let mut until = UntilGated::new(&mut console, request, &stored, budget);
    let builds = places.builds()?;
    let program = this_program()?;
    let end = run_campaign_until(&mut campaign, Some(turn), &builds, &program, &mut until)?;
    console.finish();
    let path = shell_word(&campaign.path.display().to_string());
    match end {
        CampaignEnd::Interrupted => {
            tell_how_to_continue(&path, &places.resume(&path));
            tell!("and then: plimsoll gate {path} with the same options");
            return Ok(None);
        }
        CampaignEnd::Incomplete { broken } => {
            tell_what_broke(broken, &path, Some(&places.resume(&path)));
        }
        CampaignEnd::Decided {
            broken, has_time, ..
        } => {
            let resume = has_time.then(|| places.resume(&path));
            tell_what_broke(broken, &path, resume.as_deref());
        }
        CampaignEnd::Complete => {}
    }
    let page = results::write_page(&campaign)?;
    tell!("report: {}", page.display());
    Ok(Some(campaign))
}

fn budget_ns(text: &str) -> Result<u64, Failure> {
    match parse_duration_ns(text) {
        Ok(0) => Err(Failure::usage(format!(
            "--budget {text}: nothing can be measured in no time"
        ))),
        Ok(ns) => Ok(ns),
        Err(error) => Err(Failure::usage(format!("--budget {text}: {error}"))),
    }
}

/// The plan as a survey that was never made, of the base and the candidates.
fn survey(places: &Places, plan: &str, arguments: &Gate) -> Result<CampaignHeader, Failure> {
    let mut plan = load_plan(Some(plan))?;
    keep_passwords_from_children(&plan.plan);
    keep_asked(&mut plan.plan, arguments)?;
    plan_survey(places, &plan, arguments.offline)
}

/// Leaves the base and the candidates in a plan, the base first.
fn keep_asked(plan: &mut Plan, arguments: &Gate) -> Result<(), Failure> {
    let known: Vec<Candidate> = plan
        .cells
        .iter()
        .map(|cell| Candidate {
            label: cell.label.clone(),
            build: cell.build.to_string(),
        })
        .collect();
    let base = match &arguments.base {
        None => plan.base,
        Some(name) => one(name, "--base", find(name, &known)?, &known)?,
    };
    let mut chosen = vec![base];
    for name in &arguments.candidate {
        let mut cells = find(name, &known)?;
        cells.retain(|cell| *cell != base);
        let cell = one(name, "--candidate", cells, &known)?;
        if !chosen.contains(&cell) {
            chosen.push(cell);
        }
    }
    plan.cells = chosen
        .iter()
        .map(|cell| plan.cells[*cell].clone())
        .collect();
    plan.base = 0;
    Ok(())
}

fn one(name: &str, option: &str, cells: Vec<usize>, known: &[Candidate]) -> Result<usize, Failure> {
    match cells[..] {
        [cell] => Ok(cell),
        [] => Err(Failure::usage(format!(
            "{option} {name} is nothing but the base; name another cell, or another --base"
        ))),
        _ => {
            let labels: Vec<&str> = cells
                .iter()
                .map(|cell| known[*cell].label.as_str())
                .collect();
            Err(Failure::usage(format!(
                "{option} {name} stands for several cells; name one of {}",
                labels.join(", ")
            )))
        }
    }
}

/// A step that is known within this part of the threshold is decided, unless it lies next to it.
const WIDTH: f64 = 0.5;

/// The steps that are gated, by slices if that can be.
fn choice(plan: &Plan, request: &GateRequest, budget_ns: u64) -> Result<ConfirmChoice, Failure> {
    let results = results_of(&plan.cells[0].workload);
    let steps = request.steps_of(&KnownSteps {
        names: &results,
        full_name: &|text| plan.step_name(text),
        is_writing: &|step| plan.is_writing(step),
    })?;
    if steps.is_empty() {
        return Err(AnalysisError::NoStepLeft.into());
    }
    let width = WIDTH * request.max_regression;
    Ok(ConfirmChoice {
        steps: steps.into_iter().map(|of| of.step).collect(),
        is_all: request.steps.is_empty(),
        cells: Vec::new(),
        design: DesignChoice::Auto,
        time_ns: None,
        starts: None,
        loads: LoadsChoice::Own(None),
        budget: Some(Budget {
            time_ns: budget_ns,
            reads: width,
            writes: width,
        }),
        age_ns: None,
        placement: PlacementChoice::Auto,
        profile_ns: None,
    })
}
