//! `confirm`.

use std::path::PathBuf;

use plimsoll_analysis::Unusual;
use plimsoll_core::plan::{Budget, Cell, results as results_of};
use plimsoll_core::units::parse_duration_ns;
use plimsoll_lab::fleet::check_hosts;
use plimsoll_lab::{
    ConfirmChoice, ConfirmRequest, DesignChoice, LoadsChoice, PlacementChoice, as_survey,
    create_confirm, create_fleet_confirm, keep_passwords_from_children, load_plan, unusual_steps,
};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignDir, Placement, Store, in_commands};

use crate::arguments::{Confirm, Places};
use crate::failure::{Failure, VerbResult};
use crate::output;
use crate::verbs::campaign::frequency;
use crate::verbs::host::{chosen, fleet_of};
use crate::verbs::running::{run_over_hosts_to_end, run_to_end};
use crate::verbs::survey::{is_plan, plan_survey};

/// Shorter turns would be nothing but their beginnings and ends.
const SHORTEST_TURN_NS: u64 = 1_000_000;
/// The others stand still meanwhile, and a step has room for few rounds of longer ones.
const LONGEST_TURN_NS: u64 = 10_000_000_000;

/// What is confirmed.
enum Survey {
    /// A campaign.
    Campaign(CampaignDir),
    /// A plan that no campaign has run.
    Plan(CampaignHeader),
}

pub fn confirm(places: &Places, arguments: &Confirm) -> VerbResult {
    let store = places.store();
    let survey = match &arguments.campaign {
        Some(plan) if is_plan(plan) => {
            let plan = load_plan(Some(plan))?;
            Survey::Plan(plan_survey(places, &plan, arguments.offline)?)
        }
        Some(campaign) => Survey::Campaign(check_survey(store.find(Some(campaign))?)?),
        None => Survey::Campaign(newest_survey(&store)?),
    };
    let mut header = match &survey {
        Survey::Campaign(campaign) => as_survey(&campaign.header),
        Survey::Plan(header) => header.clone(),
    };
    keep_passwords_from_children(&header.plan);
    if let Some(hosts) = &header.client_hosts {
        tell!(
            "the clients of the survey were on {}: here they are next to the servers, without the \
            network",
            hosts.in_words()
        );
    }
    let Some(steps) = steps(&survey, &header, arguments)? else {
        return Ok(0);
    };
    if let Some(hz) = frequency(arguments.waits.as_deref())? {
        header.plan.sample_waits(hz);
    }
    let is_all = arguments.all || matches!(survey, Survey::Plan(_)) && arguments.step.is_empty();
    let data_dir = data_dir_of(places, &header.data_dir)?;
    let request = ConfirmRequest {
        survey: &header,
        bisection: None,
        choice: choice(arguments, Budget::of(&header.plan), steps, is_all)?,
        data_dir: &data_dir,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
        client_hosts: None,
    };
    if !arguments.over.hosts.is_empty() {
        return confirm_on_hosts(places, &store, &request, arguments);
    }
    let (campaign, turn, notes) = create_confirm(&store, &request)?;
    for note in notes {
        tell!("{note}");
    }
    run_to_end(places, campaign, (Some(turn), None), arguments.json)
}

/// Where the data goes: where the survey had it, unless the user says another folder.
fn data_dir_of(places: &Places, of_survey: &str) -> Result<PathBuf, Failure> {
    match (&places.data, of_survey) {
        (None, dir) if !dir.is_empty() => Ok(PathBuf::from(dir)),
        _ => places.data_dir(),
    }
}

fn confirm_on_hosts(
    places: &Places,
    store: &Store,
    request: &ConfirmRequest<'_>,
    arguments: &Confirm,
) -> VerbResult {
    let (hosts, desk) = chosen(&arguments.over, &arguments.over.hosts)?;
    check_hosts(&desk, &hosts)?;
    let (campaign, notes) = create_fleet_confirm(store, request, fleet_of(&hosts))?;
    for note in notes {
        tell!("{note}");
    }
    run_over_hosts_to_end(
        places,
        &arguments.over,
        campaign,
        (&hosts, &desk),
        arguments.json,
    )
}

pub fn newest_survey(store: &Store) -> Result<CampaignDir, Failure> {
    for path in store.campaigns()?.into_iter().rev() {
        let campaign = store.find(path.to_str())?;
        if why_not(&campaign)?.is_none() {
            return Ok(campaign);
        }
    }
    Err(Failure::usage(
        "there is no campaign to confirm: `plimsoll run PLAN` makes one, and `plimsoll confirm \
        PLAN` needs none",
    ))
}

fn check_survey(campaign: CampaignDir) -> Result<CampaignDir, Failure> {
    match why_not(&campaign)? {
        Some(reason) => Err(Failure::usage(format!(
            "campaign {} {reason}",
            campaign.header.id
        ))),
        None => Ok(campaign),
    }
}

/// Why it cannot be confirmed.
fn why_not(campaign: &CampaignDir) -> Result<Option<String>, Failure> {
    if campaign.imported()?.is_some() {
        return Ok(Some(
            "is imported: its builds and data are not here; run a plan with its cells first".into(),
        ));
    }
    let Some(confirm) = &campaign.header.confirm else {
        return Ok(None);
    };
    if confirm.bisection.is_some() {
        return Ok(Some(
            "is a probe of a search: run or confirm a plan with its cells".into(),
        ));
    }
    Ok(confirm.of.as_ref().map(|of| {
        format!(
            "is a confirm campaign itself: name {of}, or resume it with `plimsoll resume {}`",
            in_commands(&campaign.path)
        )
    }))
}

/// The steps to confirm; none when nothing is unusual, which is reported.
fn steps(
    survey: &Survey,
    header: &CampaignHeader,
    arguments: &Confirm,
) -> Result<Option<Vec<String>>, Failure> {
    if !arguments.step.is_empty() {
        return Ok(Some(arguments.step.clone()));
    }
    let campaign = match survey {
        Survey::Campaign(campaign) if !arguments.all => campaign,
        _ => return Ok(header.plan.cells.first().map(all_steps)),
    };
    let Unusual { steps, lines } = unusual_steps(campaign, &arguments.cells)?;
    for line in lines {
        tell!("{line}");
    }
    if steps.is_empty() {
        if arguments.json {
            output::print(
                "{\"format\": 1, \"campaign\": null, \"comparisons\": [], \"control\": []}\n",
            )?;
        }
        return Ok(None);
    }
    Ok(Some(steps))
}

/// All that are results; those that make the data are named.
fn all_steps(cell: &Cell) -> Vec<String> {
    let loads: Vec<&str> = cell
        .workload
        .steps()
        .iter()
        .filter(|step| step.makes_data())
        .map(|step| step.name.as_str())
        .collect();
    if !loads.is_empty() {
        tell!(
            "left out, for the data of the others: {}; --step NAME confirms one of them",
            loads.join(", ")
        );
    }
    results_of(&cell.workload)
}

fn choice(
    arguments: &Confirm,
    of_plan: Budget,
    steps: Vec<String>,
    is_all: bool,
) -> Result<ConfirmChoice, Failure> {
    let duration = |what: &str, text: &str| {
        let parsed = parse_duration_ns(text)
            .map_err(|error| Failure::usage(format!("{what} {text}: {error}")))?;
        if parsed == 0 {
            Err(Failure::usage(format!(
                "{what} {text}: nothing can be measured in no time"
            )))
        } else {
            Ok(parsed)
        }
    };
    let design = match (&arguments.blocks, &arguments.slices) {
        (Some(blocks), _) => DesignChoice::Blocks(*blocks),
        (None, None) => DesignChoice::Auto,
        (None, Some(lengths)) => {
            let (read, write) = lengths.split_once(',').unwrap_or((lengths, lengths));
            let turn = |text: &str| match duration("--slices", text)? {
                ns if ns < SHORTEST_TURN_NS => Err(Failure::usage(format!(
                    "--slices {text}: a turn is 1ms at least"
                ))),
                ns if ns > LONGEST_TURN_NS => Err(Failure::usage(format!(
                    "--slices {text}: a turn is 10s at most; what takes longer is measured by \
                    --blocks 12"
                ))),
                ns => Ok(ns),
            };
            DesignChoice::Slices(Some((turn(read)?, turn(write)?)))
        }
    };
    let given: Vec<&str> = arguments.placement.iter().map(String::as_str).collect();
    let placement = match given.as_slice() {
        [] => PlacementChoice::Auto,
        ["none"] => PlacementChoice::Unpinned,
        given => PlacementChoice::Given(
            given
                .iter()
                .map(|text| placement(text))
                .collect::<Result<_, _>>()?,
        ),
    };
    Ok(ConfirmChoice {
        steps,
        is_all,
        cells: arguments.cells.clone(),
        design,
        time_ns: arguments
            .time
            .as_deref()
            .map(|text| duration("--time", text))
            .transpose()?,
        starts: arguments.starts,
        budget: Some(Budget {
            time_ns: match &arguments.budget {
                Some(budget) => duration("--budget", budget)?,
                None => of_plan.time_ns,
            },
            reads: arguments.reads.unwrap_or(of_plan.reads),
            writes: arguments.writes.unwrap_or(of_plan.writes),
        }),
        loads: LoadsChoice::Own(arguments.loads),
        age_ns: arguments
            .age
            .as_deref()
            .map(|text| duration("--age", text))
            .transpose()?,
        placement,
        profile_ns: arguments
            .perf
            .as_deref()
            .map(|text| duration("--perf", text))
            .transpose()?,
    })
}

/// `0/1-3`.
fn placement(text: &str) -> Result<Placement, Failure> {
    let (client, server) = text.split_once('/').ok_or_else(|| {
        Failure::usage(format!(
            "--placement {text}: write the CPUs of clients and servers as in 0/1-3, or none alone"
        ))
    })?;
    Ok(Placement {
        client_cpus: client.to_owned(),
        server_cpus: server.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::Parser;
    use plimsoll_core::plan::Plan;

    use super::*;
    use crate::arguments::{Arguments, Verb};

    /// A plan of three minutes was confirmed for 45, while `plan explain` promised three.
    #[test]
    fn the_budget_is_the_plans_unless_another_is_given() {
        let plan = |more: &str| {
            let text = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\n\
                        configs = [\"wal_full\", \"wal_off\"]\n";
            Plan::parse("t.toml", &format!("{text}{more}")).unwrap()
        };
        let budget = |more: &str, given: &[&str]| {
            let line = [&["plimsoll", "confirm"], given].concat();
            let Verb::Confirm(arguments) = Arguments::parse_from(line).verb else {
                panic!("confirm is a verb");
            };
            let of_plan = Budget::of(&plan(more));
            let choice = choice(&arguments, of_plan, Vec::new(), true);
            let budget = choice.ok().unwrap().budget.unwrap();
            (budget.time_ns / 60_000_000_000, budget.reads, budget.writes)
        };
        let three = "[verdicts]\nbudget = \"3m\"\nwrites = \"9%\"\n";
        assert_eq!(budget(three, &[]), (3, 0.01, 0.09));
        assert_eq!(budget(three, &["--budget", "5m"]), (5, 0.01, 0.09));
        assert_eq!(budget(three, &["--reads", "2%"]), (3, 0.02, 0.09));
        assert_eq!(budget("[verdicts]\nblocks = 8\n", &[]), (45, 0.01, 0.04));
        assert_eq!(budget("", &["--writes", "8%"]), (45, 0.01, 0.08));
    }

    /// `run --data D`, and then `confirm`: it loaded its data into the default folder.
    #[test]
    fn data_goes_where_the_survey_had_it() {
        let places = |data: Option<&str>| Places {
            store: "runs".into(),
            data: data.map(PathBuf::from),
            cache: None,
        };
        let dir = |data, of_survey| data_dir_of(&places(data), of_survey).ok().unwrap();
        assert_eq!(dir(None, "/big/data"), Path::new("/big/data"));
        assert_eq!(dir(Some("/mine"), "/big/data"), Path::new("/mine"));
        // One that ran over hosts had none here.
        assert_ne!(dir(None, ""), Path::new(""));
    }
}
