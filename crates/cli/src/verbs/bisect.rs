//! `bisect`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use plimsoll_core::name::BuildName;
use plimsoll_core::units::parse_duration_ns;
use plimsoll_lab::bisect::{
    BisectRequest, BuildCommand, Candidates, Commit, CommitMaker, CommitRecipe, SearchEnd,
    SearchNotice, SearchOutcome, Step, Watcher, Weight, bisect as search,
};
use plimsoll_lab::builds::{BuildCache, is_built_in};
use plimsoll_lab::{
    ConfirmChoice, DesignChoice, LoadedPlan, LoadsChoice, Notice, Observer, PlacementChoice,
    as_survey, keep_passwords_from_children, load_plan,
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
/// Another step is mentioned if it is at least as likely.
const NAMED_REST: f64 = 0.05;
/// The level of the intervals of steps.
const LEVEL: f64 = 0.95;

pub fn bisect(places: &Places, arguments: &Bisect) -> VerbResult {
    let store = places.store();
    let builds = places.builds()?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))?;
    let candidates = candidates(&store, &builds, &program, arguments)?;
    let names = candidates.names().to_vec();
    let subjects = candidates.subjects().clone();
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
        subjects: &subjects,
        step: &step,
        ended: &ended,
        campaigns,
    };
    output::print(&if arguments.json {
        format!("{:#}\n", result.to_json())
    } else {
        result.to_text()
    })?;
    Ok(if ended.outcome == SearchOutcome::Found {
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
    let has_names =
        !arguments.builds.is_empty() || arguments.command.is_some() || arguments.recipe.is_some();
    let (loaded, header) = match &arguments.plan {
        Some(plan) => (load_plan(Some(plan))?, None),
        None => {
            let campaign = match &arguments.campaign {
                Some(campaign) => store.find(Some(campaign))?,
                None => newest_survey(store)?,
            };
            let header = as_survey(&campaign.header);
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
        let maker = CommitMaker::Command(command);
        return Ok(Candidates::of_commits(&loaded, &commits, maker, good, bad)?);
    }
    if let (Some(recipe), Some(repository)) = (&arguments.recipe, &arguments.source) {
        let recipe = CommitRecipe {
            engine: recipe.engine,
            repository: repository.clone(),
            flags: arguments.flags.clone(),
        };
        let commits = recipe.commits(good, bad)?;
        let maker = CommitMaker::Recipe(recipe);
        let (first, last) = (&commits[0], &commits[commits.len() - 1]);
        return Ok(Candidates::of_commits(
            &loaded,
            &commits,
            maker,
            &first.name,
            &last.name,
        )?);
    }
    let names: Vec<BuildName> = if has_names {
        arguments.builds.clone()
    } else {
        let cells = loaded.plan.cells.iter();
        cells
            .filter(|cell| !is_built_in(&cell.build))
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

/// One commit a line, with its subject behind it if `git log --oneline` wrote the file.
fn read_commits(file: &Path) -> Result<Vec<Commit>, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!(
            "the commits {} cannot be read: {error}",
            file.display()
        ))
    })?;
    Ok(text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(Commit::from_line)
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
        loads: LoadsChoice::Shared,
        age_ns: None,
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
            SearchNotice::Probes { build, about, most } => {
                let what = build.map_or("the good and the bad build alone".to_owned(), |build| {
                    format!("probe: {}", names[build])
                });
                format!("{what} (about {} to go, at most {most})", about.min(most))
            }
            SearchNotice::Weighed(weight) => posterior_line(names, weight),
            SearchNotice::Settled(block) => format!(
                "after {block} of its blocks or starts it is clear whether the probe differs from \
                its neighbours: it ends"
            ),
            SearchNotice::Again(reason) => format!("{reason}; the probe is repeated"),
            SearchNotice::LeftOut(count, reason) => {
                format!("{count} of its blocks or starts do not count: {reason}")
            }
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

/// The builds that may have a step, in a line, the likeliest first.
fn posterior_line(names: &[String], weight: &Weight) -> String {
    let posterior = weight.bisection.posterior();
    let mut likely: Vec<(usize, f64)> = (1..).zip(posterior).filter(|(_, p)| *p >= NAMED).collect();
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
    format!(
        "steps: {} (bad / good {ratio:.3}, standard error {error:.1} %{doubt}{})",
        likely.join(", "),
        control_in_words(weight)
    )
}

/// What the A/A control did to all errors; empty where it holds.
fn control_in_words(weight: &Weight) -> String {
    match weight.does_control_hold() {
        true => String::new(),
        false => format!(
            "; the A/A control differs from its base: errors x {:.1}",
            weight.scale
        ),
    }
}

struct Found<'a> {
    names: &'a [String],
    /// What is known of commits, by name.
    subjects: &'a BTreeMap<String, String>,
    step: &'a str,
    ended: &'a SearchEnd,
    campaigns: Vec<String>,
}

impl Found<'_> {
    fn weight(&self) -> Option<&Weight> {
        self.ended.weight.as_ref()
    }

    fn skipped(&self) -> Vec<&str> {
        self.ended
            .skipped
            .iter()
            .map(|build| self.names[*build].as_str())
            .collect()
    }

    /// The ratio of the new level to the old one, and its interval.
    fn size(&self, step: &Step) -> (f64, (f64, f64)) {
        let degrees = self.weight().map_or(1.0, |weight| weight.degrees);
        let interval = step.interval(degrees, LEVEL);
        (
            step.size.log_ratio.exp(),
            (interval.low.exp(), interval.high.exp()),
        )
    }

    /// `sqlite.r4: -28.8 % [-30.9, -26.6] against sqlite.r3 (97.9 %)`, and below it the subjects of
    /// the commits that it names.
    fn step_line(&self, step: &Step) -> String {
        let names = self.names;
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        let (ratio, (low, high)) = self.size(step);
        let (old, new) = (&names[step.before], &names[step.last]);
        let among = &names[step.before + 1..=step.last];
        let (place, named) = match among.len() {
            1 => (new.clone(), among),
            _ if step.is_located => {
                let place = among.join(", ");
                (
                    format!("one of {place} (those between could not be probed)"),
                    among,
                )
            }
            builds => (
                format!("one of the {builds} builds after {old}, up to {new}"),
                &[][..],
            ),
        };
        let mut line = format!(
            "{place}: {:+.1} % [{:+.1}, {:+.1}] against {old} ({:.1} %)",
            percent(ratio),
            percent(low),
            percent(high),
            100.0 * step.probability
        );
        let subjects = named
            .iter()
            .filter_map(|name| self.subjects.get_key_value(name));
        for (name, subject) in subjects {
            line.push_str(&format!("\n  {name} {subject}"));
        }
        line
    }

    fn headline(&self) -> String {
        let count = match self.ended.steps.len() {
            1 => "1 step".to_owned(),
            count => format!("{count} steps"),
        };
        let what = match &self.ended.outcome {
            SearchOutcome::Found => count,
            SearchOutcome::FoundAmong => format!("{count}, as far as builds can be probed"),
            SearchOutcome::FoundPartly(reason) => format!("{count}, known in part: {reason}"),
            SearchOutcome::Gradual(reason) => format!("gradual: no single step: {reason}"),
            SearchOutcome::Inconclusive(reason) => format!("inconclusive: {reason}"),
            SearchOutcome::Interrupted => return "interrupted".to_owned(),
        };
        format!("{}: {what}", self.step)
    }

    fn to_text(&self) -> String {
        let names = self.names;
        let mut lines = vec![self.headline()];
        let steps = self.ended.steps.iter();
        lines.extend(steps.map(|step| self.step_line(step)));
        if let Some(weight) = self.weight() {
            let another = weight.bisection.rest(&self.ended.steps);
            if weight.is_distinct() && another >= NAMED_REST {
                lines.push(format!("another step: {:.0} %", 100.0 * another.min(1.0)));
            }
            lines.push(format!(
                "{} runs at {:.3} of {} (standard error {:.1} %, {} blocks or starts{})",
                names[names.len() - 1],
                weight.bad.log_ratio.exp(),
                names[0],
                100.0 * weight.bad.error,
                weight.blocks,
                control_in_words(weight)
            ));
            let probed = weight.probes.iter().map(|(build, evidence)| {
                format!(
                    "{}: {:.3} of {} (standard error {:.1} %)",
                    names[*build],
                    evidence.log_ratio.exp(),
                    names[0],
                    100.0 * evidence.error
                )
            });
            lines.extend(probed);
        }
        if !self.ended.skipped.is_empty() {
            lines.push(format!("skipped: {}", self.skipped().join(", ")));
        }
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        let ended = self.ended;
        let (state, reason) = match &ended.outcome {
            SearchOutcome::Found => ("found", None),
            SearchOutcome::FoundAmong => ("found_among", None),
            SearchOutcome::FoundPartly(reason) => ("found_partly", Some(reason)),
            SearchOutcome::Gradual(reason) => ("gradual", Some(reason)),
            SearchOutcome::Inconclusive(reason) => ("inconclusive", Some(reason)),
            SearchOutcome::Interrupted => ("interrupted", None),
        };
        let weight = self.weight();
        let distinct = weight.filter(|weight| weight.is_distinct());
        let posterior = weight.map(|weight| weight.bisection.posterior());
        let builds = self.names.iter().enumerate().map(|(i, name)| {
            let of_build = posterior.as_ref().filter(|_| i > 0).map(|all| all[i - 1]);
            let is_skipped = ended.skipped.contains(&i);
            json!({
                "build": name,
                "subject": self.subjects.get(name),
                "posterior": of_build,
                "skipped": is_skipped,
            })
        });
        let probes = weight.iter().flat_map(|weight| &weight.probes);
        let probes = probes.map(|(build, evidence)| {
            json!({
                "build": self.names[*build],
                "ratio": evidence.log_ratio.exp(),
                "log_error": evidence.error,
            })
        });
        let first = self.first_bad();
        let names_of = |step: &Step| &self.names[step.before + 1..=step.last];
        json!({
            "format": 1,
            "step": self.step,
            "good": self.names[0],
            "bad": self.names[self.names.len() - 1],
            "state": state,
            "steps": ended.steps.iter().map(|step| self.step_json(step)).collect::<Vec<_>>(),
            "another_step": distinct.map(|weight| weight.bisection.rest(&ended.steps)),
            "gradual": distinct.map(|weight| weight.bisection.gradual()),
            "first_bad": first
                .filter(|step| step.last == step.before + 1)
                .map(|step| &self.names[step.last]),
            "among": first.map(names_of),
            "probability": first.map(|step| step.probability),
            "reason": reason,
            "ratio": weight.map(|weight| weight.bad.log_ratio.exp()),
            "log_error": weight.map(|weight| weight.bad.error),
            "control_holds": weight.map(Weight::does_control_hold),
            "builds": builds.collect::<Vec<_>>(),
            "probes": probes.collect::<Vec<_>>(),
            "campaigns": self.campaigns,
        })
    }

    /// The first step in the direction in which the bad build differs.
    fn first_bad(&self) -> Option<&Step> {
        let loss = self.weight()?.bad.log_ratio;
        let mut steps = self.ended.steps.iter();
        steps.find(|step| step.size.log_ratio * loss > 0.0)
    }

    fn step_json(&self, step: &Step) -> Value {
        let (ratio, (low, high)) = self.size(step);
        json!({
            "before": self.names[step.before],
            "builds": &self.names[step.before + 1..=step.last],
            "is_located": step.is_located,
            "ratio": ratio,
            "interval": {"low": low, "high": high, "level": LEVEL},
            "probability": step.probability,
        })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_lab::bisect::Evidence;

    use super::*;

    /// Commits v1, v10 and v11, of which v1 is the good one.
    #[test]
    fn the_commits_of_a_step_have_their_subjects() {
        let names = ["v1", "v10", "v11"].map(str::to_owned);
        let subjects = [("v1", "Begin"), ("v10", "Sort twice"), ("v11", "Sort once")];
        let subjects = subjects.map(|(name, subject)| (name.to_owned(), subject.to_owned()));
        let subjects = BTreeMap::from(subjects);
        let ended = SearchEnd {
            outcome: SearchOutcome::Found,
            steps: Vec::new(),
            weight: None,
            skipped: Vec::new(),
        };
        let found = Found {
            names: &names,
            subjects: &subjects,
            step: "x",
            ended: &ended,
            campaigns: Vec::new(),
        };
        let below = |last, is_located| {
            let line = found.step_line(&Step {
                before: 0,
                last,
                probability: 0.99,
                size: Evidence {
                    log_ratio: -0.1,
                    error: 0.01,
                },
                is_located,
            });
            let below: Vec<String> = line.lines().skip(1).map(str::to_owned).collect();
            below
        };
        assert_eq!(below(1, true), ["  v10 Sort twice"]);
        assert_eq!(below(2, true), ["  v10 Sort twice", "  v11 Sort once"]);
        // It is not known which.
        assert_eq!(below(2, false), [""; 0]);
    }
}
