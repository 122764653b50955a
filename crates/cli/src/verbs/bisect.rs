//! `bisect`.

use std::path::Path;
use std::sync::atomic::AtomicUsize;

use plimsoll_core::name::BuildName;
use plimsoll_core::units::parse_duration_ns;
use plimsoll_lab::bisect::{
    BisectRequest, BuildCommand, Candidates, SearchEnd, SearchNotice, SearchOutcome, Watcher,
    Weight, bisect as search,
};
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{
    ConfirmChoice, DesignChoice, LoadedPlan, Notice, Observer, PlacementChoice,
    keep_passwords_from_children, load_plan,
};
use plimsoll_store::Store;
use plimsoll_store::header::CampaignHeader;
use serde_json::{Value, json};

use crate::arguments::{Bisect, Places};
use crate::failure::{Failure, INCONCLUSIVE, INTERRUPTED, VerbResult};
use crate::output;
use crate::progress::Console;
use crate::verbs::build::fetch;
use crate::verbs::confirm::newest_survey;

/// Probes for each time that the builds can be halved.
const PROBES_PER_HALVING: usize = 4;
/// Builds less likely than this are not named in a line.
const NAMED: f64 = 0.01;

pub fn bisect(places: &Places, arguments: &Bisect) -> VerbResult {
    let store = places.store();
    let builds = places.builds()?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))?;
    let candidates = candidates(&store, &builds, &program, arguments)?;
    let names = candidates.names().to_vec();
    let step = candidates.step_name(&arguments.step)?;
    let data_dir = places.data_dir()?;
    let halvings = (names.len() - 1)
        .next_power_of_two()
        .trailing_zeros()
        .max(1) as usize;
    let request = BisectRequest {
        candidates,
        choice: choice(arguments, &step)?,
        most_probes: arguments
            .probes
            .map_or(PROBES_PER_HALVING * halvings, |probes| probes as usize),
        is_resumed: arguments.resume,
        store: &store,
        builds: &builds,
        data_dir: &data_dir,
        program: &program,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
    };
    let mut watcher = Progress(Console::listening()?);
    let (ended, campaigns) = search(request, &mut watcher)?;
    watcher.0.finish();
    if ended.outcome == SearchOutcome::Interrupted {
        tell!("interrupted: what is measured is kept; the same command with --resume continues");
        return Ok(INTERRUPTED);
    }
    let result = Found {
        names: &names,
        step: &step,
        ended: &ended,
        campaigns,
    };
    output::print(&if arguments.json {
        format!("{:#}\n", result.to_json())
    } else {
        result.to_text()
    })?;
    Ok(if matches!(ended.outcome, SearchOutcome::Found(_)) {
        0
    } else {
        INCONCLUSIVE
    })
}

fn candidates(
    store: &Store,
    builds: &BuildCache,
    program: &Path,
    arguments: &Bisect,
) -> Result<Candidates, Failure> {
    let (good, bad) = (arguments.good.as_str(), arguments.bad.as_str());
    let has_names = !arguments.builds.is_empty() || arguments.command.is_some();
    let (loaded, header) = match &arguments.plan {
        Some(plan) => (load_plan(Some(plan))?, None),
        None => {
            let header = match &arguments.campaign {
                Some(campaign) => store.find(Some(campaign))?,
                None => newest_survey(store)?,
            }
            .header;
            (plan_of(&header), Some(header))
        }
    };
    keep_passwords_from_children(&loaded.plan);
    if let Some(header) = header.filter(|_| !has_names) {
        return Ok(Candidates::of_campaign(&header, good, bad)?);
    }
    if let (Some(command), Some(file)) = (&arguments.command, &arguments.commits) {
        let commits = read_commits(file)?;
        let command = BuildCommand::new(command)?.under_guard(program.to_owned());
        return Ok(Candidates::of_commits(
            &loaded, &commits, command, good, bad,
        )?);
    }
    let names: Vec<BuildName> = if has_names {
        arguments.builds.clone()
    } else {
        let cells = loaded.plan.cells.iter();
        cells
            .filter(|cell| !cell.build.engine.is_built_in())
            .map(|cell| cell.build.clone())
            .collect()
    };
    if let Some((name, failure)) = fetch(builds, &names, arguments.offline)?.first() {
        return Err(Failure::usage(format!(
            "the build {name} cannot be had: {failure}; leave it out"
        )));
    }
    Ok(match has_names {
        true => Candidates::of_builds(&loaded, builds, &names, good, bad)?,
        false => Candidates::of_cells(&loaded, builds, good, bad)?,
    })
}

/// The plan of a campaign, as if it were loaded from a file.
fn plan_of(header: &CampaignHeader) -> LoadedPlan {
    LoadedPlan {
        plan: header.plan.clone(),
        file: format!("plan of {}", header.id),
        text: header.plan_text.clone(),
        dir: None,
    }
}

/// One commit a line.
fn read_commits(file: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!(
            "the commits {} cannot be read: {error}",
            file.display()
        ))
    })?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

fn choice(arguments: &Bisect, step: &str) -> Result<ConfirmChoice, Failure> {
    let time_ns = match &arguments.time {
        None => None,
        Some(text) => match parse_duration_ns(text) {
            Ok(ns) if ns > 0 => Some(ns),
            Ok(_) => {
                return Err(Failure::usage(format!(
                    "--time {text}: nothing can be measured in no time"
                )));
            }
            Err(error) => return Err(Failure::usage(format!("--time {text}: {error}"))),
        },
    };
    Ok(ConfirmChoice {
        steps: vec![step.to_owned()],
        is_all: false,
        cells: Vec::new(),
        design: match arguments.blocks {
            _ if arguments.slices.is_some() => DesignChoice::Slices(None),
            Some(blocks) => DesignChoice::Blocks(blocks),
            None => DesignChoice::Auto,
        },
        time_ns,
        starts: arguments.slices,
        budget: None,
        placement: PlacementChoice::Auto,
        profile_ns: None,
    })
}

/// The console, with what a search has to say between trials.
struct Progress(Console);

impl Observer for Progress {
    fn notice(&mut self, notice: Notice<'_>) {
        self.0.notice(notice);
    }

    fn stop_requests(&self) -> &AtomicUsize {
        self.0.stop_requests()
    }
}

impl Watcher for Progress {
    fn begin(&mut self, campaign: &CampaignHeader, notes: &[String]) {
        self.0.begin(campaign);
        notes.iter().for_each(|note| self.0.line(note));
    }

    fn notice_search(&mut self, names: &[String], notice: SearchNotice<'_>) {
        self.0.line(&match notice {
            SearchNotice::Probes(Some(build)) => format!("probe: {}", names[build]),
            SearchNotice::Probes(None) => "the good and the bad build alone".to_owned(),
            SearchNotice::Weighed(weight) => posterior_line(names, weight),
            SearchNotice::Settled(block) => format!(
                "after {block} of its blocks or starts the probe is like the good or the bad \
                build: it ends"
            ),
            SearchNotice::Skipped(build, reason) => {
                format!("{} is skipped: {reason}", names[build])
            }
            SearchNotice::KeepsDesign(what) => format!(
                "the search goes on as it began, with {what}; to change that, begin another \
                without --resume"
            ),
        });
    }
}

/// The first bad build's posterior in a line, the likeliest first.
fn posterior_line(names: &[String], weight: &Weight) -> String {
    let mut likely: Vec<(usize, f64)> = (1..)
        .zip(weight.bisection.posterior().iter().copied())
        .filter(|(_, p)| *p >= NAMED)
        .collect();
    likely.sort_by(|a, b| b.1.total_cmp(&a.1));
    let likely: Vec<String> = likely
        .iter()
        .map(|(build, p)| format!("{} {:.1} %", names[*build], 100.0 * p))
        .collect();
    let (ratio, error) = (weight.bad.log_ratio.exp(), 100.0 * weight.bad.error);
    let doubt = if weight.is_distinct() {
        ""
    } else {
        ", not yet beyond doubt"
    };
    let control = if weight.does_control_hold() {
        ""
    } else {
        "; the A/A control differs from its base: the machine is disturbed"
    };
    format!(
        "first bad build: {} (bad / good {ratio:.3}, ±{error:.1} %{doubt}{control})",
        likely.join(", ")
    )
}

struct Found<'a> {
    names: &'a [String],
    step: &'a str,
    ended: &'a SearchEnd,
    campaigns: Vec<String>,
}

impl Found<'_> {
    fn weight(&self) -> Option<&Weight> {
        self.ended.weight.as_ref()
    }

    fn probability(&self, first: usize, last: usize) -> f64 {
        self.weight().map_or(0.0, |weight| {
            weight.bisection.posterior()[first - 1..last].iter().sum()
        })
    }

    fn skipped(&self) -> Vec<&str> {
        self.ended
            .skipped
            .iter()
            .map(|build| self.names[*build].as_str())
            .collect()
    }

    fn to_text(&self) -> String {
        let Self { names, step, .. } = self;
        let percent = |first, last| 100.0 * self.probability(first, last);
        let mut lines = vec![match &self.ended.outcome {
            SearchOutcome::Found(build) => format!(
                "{step}: the first bad build is {} ({:.1} %); {} is still good",
                names[*build],
                percent(*build, *build),
                names[build - 1]
            ),
            SearchOutcome::FoundAmong(first, last) => format!(
                "{step}: the first bad build is one of {} ({:.1} %): those between could not be \
                probed",
                names[*first..=*last].join(", "),
                percent(*first, *last)
            ),
            SearchOutcome::Inconclusive(reason) => format!("{step}: inconclusive: {reason}"),
            SearchOutcome::Interrupted => "interrupted".to_owned(),
        }];
        if let Some(weight) = self.weight() {
            lines.push(format!(
                "{} runs at {:.3} of {} (standard error {:.1} %, {} blocks)",
                names[names.len() - 1],
                weight.bad.log_ratio.exp(),
                names[0],
                100.0 * weight.bad.error,
                weight.blocks
            ));
            let probed = weight.probes.iter().map(|(build, evidence)| {
                format!(
                    "{}: {:.3} of {} (±{:.1} %)",
                    names[*build],
                    evidence.log_ratio.exp(),
                    names[0],
                    100.0 * evidence.error
                )
            });
            lines.extend(probed);
            if !weight.does_control_hold() {
                lines.push(
                    "The A/A control differs from its base: repeat this on a quieter machine."
                        .to_owned(),
                );
            }
        }
        if !self.ended.skipped.is_empty() {
            lines.push(format!("skipped: {}", self.skipped().join(", ")));
        }
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        let (first, last, reason) = match &self.ended.outcome {
            SearchOutcome::Found(build) => (Some(*build), Some(*build), None),
            SearchOutcome::FoundAmong(first, last) => (Some(*first), Some(*last), None),
            SearchOutcome::Inconclusive(reason) => (None, None, Some(reason.clone())),
            SearchOutcome::Interrupted => (None, None, None),
        };
        let posterior = |build: usize| {
            self.weight()
                .filter(|_| build > 0)
                .map(|weight| weight.bisection.posterior()[build - 1])
        };
        let builds: Vec<Value> = self
            .names
            .iter()
            .enumerate()
            .map(|(i, name)| {
                let is_skipped = self.ended.skipped.contains(&i);
                json!({"build": name, "posterior": posterior(i), "skipped": is_skipped})
            })
            .collect();
        let probes: Vec<Value> = self
            .weight()
            .iter()
            .flat_map(|weight| &weight.probes)
            .map(|(build, evidence)| {
                json!({
                    "build": self.names[*build],
                    "ratio": evidence.log_ratio.exp(),
                    "log_error": evidence.error,
                })
            })
            .collect();
        json!({
            "format": 1,
            "step": self.step,
            "good": self.names[0],
            "bad": self.names[self.names.len() - 1],
            "state": match &self.ended.outcome {
                SearchOutcome::Found(_) => "found",
                SearchOutcome::FoundAmong(..) => "found_among",
                SearchOutcome::Inconclusive(_) => "inconclusive",
                SearchOutcome::Interrupted => "interrupted",
            },
            "first_bad": first.filter(|_| first == last).map(|build| &self.names[build]),
            "among": first.zip(last).map(|(first, last)| &self.names[first..=last]),
            "probability": first.zip(last).map(|(first, last)| self.probability(first, last)),
            "reason": reason,
            "ratio": self.weight().map(|weight| weight.bad.log_ratio.exp()),
            "log_error": self.weight().map(|weight| weight.bad.error),
            "control_holds": self.weight().map(Weight::does_control_hold),
            "builds": builds,
            "probes": probes,
            "campaigns": self.campaigns,
        })
    }
}
