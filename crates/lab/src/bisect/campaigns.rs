//! A probe as a confirm campaign, and a search as the campaigns of a store.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_analysis::bisection::{Probe, read_probe};
use plimsoll_core::plan::Step;
use plimsoll_core::units::format_duration_ns;
use plimsoll_store::event::Event;
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{
    BisectionProbe, CampaignDir, CampaignRecord, CampaignState, Confirm, Design, Store, TrialRecord,
};

use super::candidates::Candidates;
use super::search::{Probed, Prober, Search, SearchEnd, SearchNotice, Weigh, search};
use crate::builds::BuildCache;
use crate::campaign::seed_from_clock;
use crate::confirm::{ConfirmChoice, ConfirmRequest, DesignChoice, StopRule, create_confirm};
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice, Observer};
use crate::orchestrator::run_campaign_until;
use crate::places::DataTurn;

/// Blocks of a probe where nothing is asked for.
const BLOCKS: u32 = 4;
/// The cell of a campaign that is probed, behind good and bad.
const PROBED: usize = 2;
/// A probe has at least this many blocks or starts that count.
const FEWEST_BLOCKS: usize = 2;

/// Watches a search.
pub trait Watcher: Observer {
    /// A campaign begins, or goes on; the sentences say what was chosen for it.
    fn begin(&mut self, campaign: &CampaignHeader, notes: &[String]);

    /// The search goes on. Builds are called by their names, in order.
    fn notice_search(&mut self, names: &[String], notice: SearchNotice<'_>);
}

/// What is searched, and how.
pub struct BisectRequest<'a> {
    /// The builds.
    pub candidates: Candidates,
    /// How a probe is measured; one step. A search that goes on is measured as it began.
    pub choice: ConfirmChoice,
    /// No more campaigns than this.
    pub most_probes: usize,
    /// Whether the newest search of the same builds and step goes on.
    pub is_resumed: bool,
    /// Where campaigns go.
    pub store: &'a Store,
    /// The builds on this machine.
    pub builds: &'a BuildCache,
    /// Where data directories go.
    pub data_dir: &'a Path,
    /// This program's binary.
    pub program: &'a Path,
    /// This program's version.
    pub plimsoll_version: &'a str,
}

/// Searches. With how it ended, the ids of the campaigns.
///
/// # Errors
/// When there is nothing to resume, or the good or the bad build cannot be measured.
pub fn bisect(
    mut request: BisectRequest<'_>,
    watcher: &mut dyn Watcher,
) -> Result<(SearchEnd, Vec<String>), LabError> {
    let names = request.candidates.names().to_vec();
    let (last, most_probes) = (names.len() - 1, request.most_probes);
    let mut start = Search {
        last,
        most_probes,
        ..Search::default()
    };
    let seed = request.candidates.seed().unwrap_or_else(seed_from_clock);
    let stored = if request.is_resumed {
        stored(&request, &names)?
    } else {
        Vec::new()
    };
    if let Some((begun, confirm)) = stored
        .first()
        .and_then(|campaign| Some((&campaign.header, campaign.header.confirm.as_ref()?)))
    {
        let choice = as_begun(&request.choice, begun, confirm);
        if is_other(&request.choice, &choice) {
            watcher.notice_search(&names, SearchNotice::KeepsDesign(&in_words(&choice)));
        }
        request.choice = choice;
    } else if request.choice.design == DesignChoice::Auto {
        request.choice.design = DesignChoice::Blocks(BLOCKS);
    }
    let mut campaigns = Campaigns {
        names: names.clone(),
        request,
        seed,
        search: String::new(),
        ids: Vec::new(),
        open: None,
        watcher,
    };
    for campaign in stored {
        campaigns.seed = campaign.header.seed;
        campaigns.join(&campaign.header);
        let Some((confirm, probe)) = probe_of(&campaign.header) else {
            continue;
        };
        if !is_over(&campaign) {
            campaigns.open = Some((probe.probe, campaign.path.clone()));
            continue;
        }
        match (judge(&campaign, confirm, probe)?, probe.probe) {
            (Probed::Measured(probe), _) => start.known.push(probe),
            (Probed::Skipped(_), Some(build)) => start.skipped.push(build),
            _ => {}
        }
    }
    let ended = search(start, &mut campaigns)?;
    Ok((ended, campaigns.ids))
}

/// The campaigns of the newest search of the same builds and step, oldest first.
fn stored(request: &BisectRequest<'_>, names: &[String]) -> Result<Vec<CampaignRecord>, LabError> {
    let mut all: Vec<CampaignDir> = Vec::new();
    for path in request.store.campaigns()? {
        // One that cannot be read is passed over: it says nothing of itself.
        let Ok(campaign) = CampaignDir::open(path) else {
            continue;
        };
        let is_same = probe_of(&campaign.header).is_some_and(|(confirm, probe)| {
            probe.candidates == names && confirm.steps == request.choice.steps
        });
        all.extend(is_same.then_some(campaign));
    }
    let search_of = |campaign: &CampaignDir| {
        let search = probe_of(&campaign.header)
            .map(|(_, probe)| probe.search.clone())
            .unwrap_or_default();
        if search.is_empty() {
            campaign.header.id.clone()
        } else {
            search
        }
    };
    let Some(newest) = all.last().map(search_of) else {
        return Err(LabError::Usage(format!(
            "there is no search of {} to {} in {} to continue; run it without --resume",
            names[0],
            names[names.len() - 1],
            request.choice.steps.join(", ")
        )));
    };
    all.retain(|campaign| search_of(campaign) == newest);
    all.iter().map(|campaign| Ok(campaign.load()?)).collect()
}

/// What is asked for, measured as the search began.
fn as_begun(asked: &ConfirmChoice, begun: &CampaignHeader, confirm: &Confirm) -> ConfirmChoice {
    let (design, time_ns) = match confirm.design {
        Design::Slices => (
            DesignChoice::Slices(Some((confirm.turn_ns_read, confirm.turn_ns_write))),
            Some(confirm.time_ns),
        ),
        Design::Blocks => {
            let steps = begun
                .plan
                .cells
                .first()
                .map(|cell| cell.workload.steps())
                .unwrap_or_default();
            let step = steps.iter().find(|step| confirm.steps.contains(&step.name));
            (
                DesignChoice::Blocks(confirm.blocks.unwrap_or(BLOCKS)),
                step.and_then(Step::duration_ns),
            )
        }
    };
    ConfirmChoice {
        design,
        time_ns,
        starts: confirm.starts,
        ..asked.clone()
    }
}

/// Whether something else is asked for than what stands.
fn is_other(asked: &ConfirmChoice, stands: &ConfirmChoice) -> bool {
    let is_other_design = match asked.design {
        DesignChoice::Auto => false,
        DesignChoice::Slices(_) => asked.starts != stands.starts,
        DesignChoice::Blocks(_) => asked.design != stands.design,
    };
    is_other_design
        || asked
            .time_ns
            .is_some_and(|time_ns| Some(time_ns) != stands.time_ns)
}

fn in_words(choice: &ConfirmChoice) -> String {
    let time = choice
        .time_ns
        .map(|time_ns| format!(", --time {}", format_duration_ns(time_ns)))
        .unwrap_or_default();
    match (choice.design, choice.starts) {
        (DesignChoice::Blocks(blocks), _) => format!("--blocks {blocks}{time}"),
        (_, starts) => format!("--slices {}{time}", starts.unwrap_or_default()),
    }
}

fn probe_of(header: &CampaignHeader) -> Option<(&Confirm, &BisectionProbe)> {
    let confirm = header.confirm.as_ref()?;
    Some((confirm, confirm.bisection.as_ref()?))
}

/// Whether every trial has come to an end of its own, or what there is was enough.
fn is_over(campaign: &CampaignRecord) -> bool {
    if campaign.state == CampaignState::Decided {
        return true;
    }
    let has_ended = |trial: &TrialRecord| {
        trial.events.iter().any(|stamped| match &stamped.event {
            Event::TrialDone(_) | Event::ServerCrashed(_) => true,
            Event::TrialFailed(failed) => !failed.interrupted,
            _ => false,
        })
    };
    let numbers = campaign
        .header
        .schedule
        .iter()
        .map(|scheduled| scheduled.number);
    numbers.into_iter().all(|number| {
        campaign
            .trials
            .iter()
            .any(|trial| trial.number == number && has_ended(trial))
    })
}

struct Campaigns<'a, 'w> {
    names: Vec<String>,
    request: BisectRequest<'a>,
    seed: u64,
    /// The id of the first campaign.
    search: String,
    ids: Vec<String>,
    /// A campaign that was interrupted, and what it probes.
    open: Option<(Option<usize>, PathBuf)>,
    watcher: &'w mut dyn Watcher,
}

impl Campaigns<'_, '_> {
    fn join(&mut self, header: &CampaignHeader) {
        if self.search.is_empty() {
            self.search.clone_from(&header.id);
        }
        self.ids.push(header.id.clone());
    }

    /// Makes the campaign of a probe. The inner error is what becomes of a probe without one.
    fn create(
        &mut self,
        build: Option<usize>,
    ) -> Result<Result<(CampaignDir, DataTurn), Probed>, LabError> {
        let mut cells = Vec::new();
        for index in [Some(0), Some(self.names.len() - 1), build]
            .into_iter()
            .flatten()
        {
            let cell = self.request.candidates.cell(
                index,
                self.request.builds,
                self.watcher.stop_requests(),
            )?;
            match cell {
                Ok(cell) => cells.push(cell),
                Err(_) if self.is_stopped() => return Ok(Err(Probed::Interrupted)),
                Err(reason) if Some(index) == build => return Ok(Err(Probed::Skipped(reason))),
                Err(reason) => {
                    return Err(LabError::Usage(format!(
                        "{} cannot be measured: {reason}",
                        self.names[index]
                    )));
                }
            }
        }
        let bisection = BisectionProbe {
            search: self.search.clone(),
            candidates: self.names.clone(),
            probe: build,
        };
        let request = ConfirmRequest {
            survey: &self.request.candidates.header(cells, self.seed),
            choice: self.request.choice.clone(),
            bisection: Some(bisection),
            data_dir: self.request.data_dir,
            plimsoll_version: self.request.plimsoll_version,
            client_hosts: None,
        };
        let (campaign, turn, notes) = create_confirm(self.request.store, &request)?;
        self.watcher.begin(&campaign.header, &notes);
        self.join(&campaign.header);
        Ok(Ok((campaign, turn)))
    }

    fn is_stopped(&self) -> bool {
        self.watcher.stop_requests().load(Ordering::SeqCst) > 0
    }
}

impl Prober for Campaigns<'_, '_> {
    fn notice(&mut self, notice: SearchNotice<'_>) {
        self.watcher.notice_search(&self.names, notice);
    }

    fn probe(&mut self, build: Option<usize>, weigh: &Weigh<'_>) -> Result<Probed, LabError> {
        let open = self.open.take_if(|(of, _)| *of == build);
        let (mut campaign, turn) = match open {
            Some((_, path)) => {
                let campaign = CampaignDir::open(path)?;
                self.watcher.begin(&campaign.header, &[]);
                (campaign, None)
            }
            None => match self.create(build)? {
                Ok((campaign, turn)) => (campaign, Some(turn)),
                Err(probed) => return Ok(probed),
            },
        };
        let mut blocks = ByBlock {
            watcher: self.watcher,
            names: &self.names,
            build,
            weigh,
        };
        let end = run_campaign_until(
            &mut campaign,
            turn,
            self.request.builds,
            self.request.program,
            &mut blocks,
        )?;
        if end == CampaignEnd::Interrupted {
            return Ok(Probed::Interrupted);
        }
        let record = campaign.load()?;
        let Some((confirm, probe)) = probe_of(&record.header) else {
            return Ok(Probed::Measured(Probe::default()));
        };
        let probed = judge(&record, confirm, probe)?;
        if let Probed::Measured(probe) = &probed {
            if let Some((count, reason)) = &probe.left_out {
                self.notice(SearchNotice::LeftOut(*count, reason));
            }
            // What was enough has been reported.
            if !matches!(end, CampaignEnd::Decided { .. })
                && let Some(weight) = weigh(probe)
            {
                self.notice(SearchNotice::Weighed(&weight));
            }
        }
        Ok(probed)
    }
}

/// Passes on what happens in a campaign, and weighs its blocks whenever one is done.
struct ByBlock<'a> {
    watcher: &'a mut dyn Watcher,
    names: &'a [String],
    /// What is probed.
    build: Option<usize>,
    weigh: &'a Weigh<'a>,
}

impl Observer for ByBlock<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        self.watcher.notice(notice);
    }

    fn stop_requests(&self) -> &AtomicUsize {
        self.watcher.stop_requests()
    }
}

impl StopRule for ByBlock<'_> {
    fn is_enough(&mut self, campaign: &CampaignDir, block: u32) -> bool {
        // What cannot be read now is read at the end, where it is an error.
        let probe = campaign.load().ok().and_then(|record| {
            let (confirm, probe) = probe_of(&record.header)?;
            Some(read_probe(&record, confirm, probe))
        });
        let probe = probe.unwrap_or_default();
        let Some(weight) = (self.weigh)(&probe) else {
            return false;
        };
        self.watcher
            .notice_search(self.names, SearchNotice::Weighed(&weight));
        let is_enough = probe.whole() >= FEWEST_BLOCKS && weight.is_settled(self.build);
        if is_enough {
            self.watcher
                .notice_search(self.names, SearchNotice::Settled(block));
        }
        is_enough
    }
}

/// What a campaign that has run says of its probe.
fn judge(
    campaign: &CampaignRecord,
    confirm: &Confirm,
    probe: &BisectionProbe,
) -> Result<Probed, LabError> {
    let cells = &campaign.header.plan.cells;
    let complete = |cell: usize| {
        let trials = trials_of(campaign, cell);
        trials.filter(|trial| trial.is_complete()).count()
    };
    if let Some(broken) = [0, 1].into_iter().find(|cell| complete(*cell) == 0) {
        return Err(LabError::Usage(format!(
            "{} cannot be measured, and without it there is no search: {}; logs are in {}",
            cells[broken].label,
            why_broken(campaign, broken),
            campaign.path.join("trials").display()
        )));
    }
    if probe.probe.is_some() && complete(PROBED) * 2 <= complete(0) {
        return Ok(Probed::Skipped(why_broken(campaign, PROBED)));
    }
    let read = read_probe(campaign, confirm, probe);
    let what = match confirm.design {
        Design::Blocks => "block",
        Design::Slices => "start",
    };
    let has_control = confirm.design == Design::Blocks || !read.control.is_empty();
    if read.whole() > 0 && has_control {
        return Ok(Probed::Measured(read));
    }
    let way_out = match confirm.design {
        Design::Blocks => "use a quieter machine or --slices",
        Design::Slices => "use a quieter machine, allow more with --time, or use --blocks",
    };
    let reason = read.left_out.map_or_else(
        || "good, bad and probe did not run together".to_owned(),
        |(count, reason)| format!("{count} left out, the last because of {reason}"),
    );
    Ok(Probed::Disturbed(format!(
        "no {what} of the probe counts ({reason}); {way_out}"
    )))
}

fn trials_of(campaign: &CampaignRecord, cell: usize) -> impl Iterator<Item = &TrialRecord> {
    let is_of_cell = move |trial: &&TrialRecord| {
        campaign
            .header
            .schedule
            .iter()
            .any(|s| s.number == trial.number && s.cell == cell)
    };
    campaign.trials.iter().filter(is_of_cell)
}

/// What the last trial of a cell said that broke, or was set aside.
fn why_broken(campaign: &CampaignRecord, cell: usize) -> String {
    let reasons = trials_of(campaign, cell)
        .flat_map(|trial| &trial.events)
        .filter_map(|stamped| match &stamped.event {
            Event::TrialFailed(failed) => Some(failed.reason.clone()),
            Event::ServerCrashed(crash) => Some(format!("the server crashed ({})", crash.status)),
            Event::Suspect(suspect) => Some(suspect.reason.clone()),
            _ => None,
        });
    reasons
        .last()
        .unwrap_or_else(|| "it did nothing".to_owned())
}
