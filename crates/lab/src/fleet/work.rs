//! `plimsoll work`: runs blocks of a campaign on this host, for a desk elsewhere. It is the parent
//! of its trials; what ties them to it is what ties them to a campaign at home.
//!
//! A desk whose pipe ends was killed: the trial in flight is stopped, closed and kept. A desk that
//! is silent may be there still, behind a cut network: the trial goes on to its end and is kept. In
//! both cases nothing runs afterwards.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_host::{Proc, capture_environment, free_bytes, machine_id};
use plimsoll_store::CampaignDir;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::spool;
use super::transfer::pack;
use super::voice::Voice;
use super::wire::{
    BEAT, BlockOrder, CampaignOrder, DeskLine, Hello, HostBuild, WorkLine, WorkNotice,
};
use crate::builds::{BuildCache, file_sha256};
use crate::campaign::check_disk;
use crate::campaign_run::CampaignRun;
use crate::confirm::StopRule;
use crate::error::LabError;
use crate::input::{Input, wait_for_input};
use crate::observer::{Notice, Observer};
use crate::orchestrator::{AttemptEnd, Disturbances, Setting, run_attempt};
use crate::passwords::Passwords;
use crate::places::prepare_data_root;

/// A desk that has not said yet what its patience is has this one.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);

/// Where `work` keeps its things: a folder of the host, and below it `builds`, `data` and `spool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkPlaces {
    /// The builds of engines.
    pub builds: PathBuf,
    /// Data directories.
    pub data: PathBuf,
    /// Campaigns whose trials the desk does not have yet.
    pub spool: PathBuf,
}

impl WorkPlaces {
    /// Those of a host's folder.
    pub fn below(dir: &Path) -> Self {
        Self {
            builds: dir.join("builds"),
            data: dir.join("data"),
            spool: dir.join("spool"),
        }
    }
}

/// The body of the internal `work` verb over ssh: says who it is, then does what the desk says on
/// standard input until that ends.
///
/// # Errors
/// When the host's folders cannot be used, or what the desk says is not an order. The desk knows
/// by then.
pub fn work(places: &WorkPlaces, program: &Path, version: &str) -> Result<(), LabError> {
    let voice = Arc::new(Voice::default());
    let refuse = |error: LabError| {
        voice.say(&WorkLine::Refused {
            reason: error.to_string(),
        });
        error
    };
    voice.say(&WorkLine::Hello(
        hello(places, program, version).map_err(refuse)?,
    ));
    let beats = voice.clone();
    std::thread::spawn(move || {
        while !beats.is_mute() {
            std::thread::sleep(BEAT);
            beats.say(&WorkLine::Beat);
        }
    });
    let stop_requests = Arc::new(AtomicUsize::new(0));
    stop_on_signals(&stop_requests)?;
    let heard = listen(voice.clone(), stop_requests.clone());
    let Ok(Heard::Line(first)) = heard.recv() else {
        return Ok(());
    };
    let order = match *first {
        DeskLine::Campaign(order) => order,
        DeskLine::End => return Ok(()),
        other => {
            let what = format!("the first line is not an order: {other:?}");
            return Err(refuse(LabError::Usage(what)));
        }
    };
    let desk = ToDesk {
        voice: voice.clone(),
        heard,
    };
    run_campaign(places, program, &order, desk, stop_requests).map_err(refuse)
}

/// Who is there.
fn hello(places: &WorkPlaces, program: &Path, version: &str) -> Result<Hello, LabError> {
    for dir in [&places.builds, &places.spool] {
        std::fs::create_dir_all(dir)
            .map_err(|error| LabError::Usage(format!("{}: {error}", dir.display())))?;
    }
    prepare_data_root(&places.data)?;
    let facts = capture_environment(Proc::new(), &places.data).facts();
    let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
    let builds = BuildCache::new(&places.builds)
        .sums()
        .map_err(LabError::from)?;
    let of_build = |(name, server_sha256, links)| HostBuild {
        name,
        server_sha256,
        links,
    };
    Ok(Hello {
        version: version.to_owned(),
        program_sha256: file_sha256(program).map_err(LabError::from)?,
        unix_ns: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64),
        free_bytes: free_bytes(&places.spool).unwrap_or(0),
        machine_id: machine_id().ok(),
        cpu_model: fact("cpu_model"),
        cpus: fact("cpus_online"),
        builds: builds.into_iter().map(of_build).collect(),
        spooled: spool::spooled(&places.spool),
    })
}

/// Counts SIGTERM and its like as the desk's `stop`.
pub(super) fn stop_on_signals(stop_requests: &Arc<AtomicUsize>) -> Result<(), LabError> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|error| LabError::io("failed to listen for signals", error))?;
    let count = stop_requests.clone();
    std::thread::spawn(move || {
        for _ in signals.forever() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    Ok(())
}

/// What comes from the desk.
enum Heard {
    Line(Box<DeskLine>),
    /// Its pipe has ended, or nothing came for as long as its patience.
    Lost,
}

/// Reads standard input in a thread. Stops are counted at once, whatever the reader of the rest
/// does.
fn listen(voice: Arc<Voice>, stop_requests: Arc<AtomicUsize>) -> Receiver<Heard> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let mut input = Input::default();
        let mut patience = FIRST_PATIENCE;
        loop {
            while let Some(line) = input.whole_line() {
                match serde_json::from_slice(&line) {
                    Ok(DeskLine::Beat) | Err(_) => {}
                    Ok(DeskLine::Stop) => {
                        stop_requests.fetch_add(1, Ordering::SeqCst);
                    }
                    Ok(line) => {
                        if let DeskLine::Campaign(order) = &line {
                            patience = Duration::from_nanos(order.patience_ns);
                        }
                        let _ = sender.send(Heard::Line(Box::new(line)));
                    }
                }
            }
            if !wait_for_input(io::stdin().as_fd(), patience) {
                break lose(&voice, &sender);
            }
            if !input.read().is_ok_and(|bytes| bytes > 0) {
                stop_requests.fetch_add(1, Ordering::SeqCst);
                break lose(&voice, &sender);
            }
        }
    });
    heard
}

fn lose(voice: &Voice, sender: &Sender<Heard>) {
    voice.mute();
    let _ = sender.send(Heard::Lost);
}

/// Whoever takes the sealed trials of a host.
pub(super) trait Giver {
    /// Hands a sealed trial's folder on; it is removed here when it is safe there. False when it
    /// stays here, because nobody is there.
    fn give(&mut self, dir: &Path) -> Result<bool, LabError>;

    /// Whether nobody is there any more: then no trial begins.
    fn is_lost(&self) -> bool;
}

/// The desk at the other end of ssh.
struct ToDesk {
    voice: Arc<Voice>,
    heard: Receiver<Heard>,
}

impl Giver for ToDesk {
    fn give(&mut self, dir: &Path) -> Result<bool, LabError> {
        let folder = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let failed = |error| LabError::io(format!("failed to pack {}", dir.display()), error);
        loop {
            if self.is_lost() {
                return Ok(false);
            }
            let (mut file, bytes) = pack(dir).map_err(failed)?;
            let sealed = WorkLine::Sealed {
                folder: folder.clone(),
                bytes,
            };
            self.voice.say_with(&sealed, &mut file).map_err(failed)?;
            match self.heard.recv() {
                Ok(Heard::Line(line)) => match *line {
                    DeskLine::Taken { folder: taken } if taken == folder => {
                        std::fs::remove_dir_all(dir).map_err(|error| {
                            LabError::io(format!("failed to remove {}", dir.display()), error)
                        })?;
                        return Ok(true);
                    }
                    DeskLine::Again { .. } => {}
                    _ => return Ok(false),
                },
                _ => return Ok(false),
            }
        }
    }

    fn is_lost(&self) -> bool {
        self.voice.is_mute()
    }
}

/// Runs what the desk wants of a campaign.
fn run_campaign(
    places: &WorkPlaces,
    program: &Path,
    order: &CampaignOrder,
    mut desk: ToDesk,
    stop_requests: Arc<AtomicUsize>,
) -> Result<(), LabError> {
    let campaign = spool::open(&places.spool, order.header.clone(), &places.data)?;
    let lock = campaign.lock()?;
    let header = &campaign.header;
    check_disk(&header.plan, &header.cells, &places.data)?;
    spool::check_room(&campaign.path).map_err(LabError::Machine)?;
    let passwords = Passwords::of_plan(&header.plan)?;
    let builds = BuildCache::new(&places.builds);
    let setting = Setting {
        campaign: &campaign,
        passwords: &passwords,
        builds: &builds,
        program,
        host: Some(&order.host),
        clients: None,
    };
    let mut observer = ToldToDesk {
        voice: desk.voice.clone(),
        campaign: &campaign,
        stop_requests,
    };
    setting.run(None, &mut observer, |run| {
        for trial in spool::sealed_trials(&campaign)? {
            desk.give(&trial)?;
        }
        desk.voice.say(&WorkLine::Ready);
        let mut disturbances = Disturbances::of(&campaign, &[]);
        while let Ok(Heard::Line(line)) = desk.heard.recv() {
            let block = match *line {
                DeskLine::Block(block) => block,
                DeskLine::End => break,
                _ => continue,
            };
            let unit = block.unit;
            run_block(run, &block, &mut disturbances, &mut desk)?;
            desk.voice.say(&WorkLine::BlockDone {
                unit,
                is_stopped: run.is_stopped(),
            });
        }
        Ok(())
    })?;
    drop(lock);
    spool::remove_if_empty(&campaign);
    Ok(())
}

/// Runs a block's trials, one after the other, each given away before the next begins: what travels
/// while a trial runs would disturb it.
pub(super) fn run_block(
    run: &mut CampaignRun<'_, '_>,
    block: &BlockOrder,
    disturbances: &mut Disturbances,
    giver: &mut dyn Giver,
) -> Result<(), LabError> {
    let campaign = run.runner.campaign;
    let scheduled = |number: u32| {
        let mut schedule = campaign.header.schedule.iter();
        schedule.find(|trial| trial.number == number)
    };
    let mut queue: std::collections::VecDeque<_> = block.trials.iter().copied().collect();
    while let Some((number, attempt)) = queue.pop_front() {
        let Some(trial) = scheduled(number).filter(|trial| trial.unit() == block.unit) else {
            let what = format!("{} has no trial {number}", block.unit);
            return Err(LabError::Usage(what));
        };
        if giver.is_lost() || run.is_stopped() || disturbances.repeats.are_hopeless(trial) {
            break;
        }
        spool::check_room(&campaign.path).map_err(LabError::Machine)?;
        let ended = run_attempt(run, trial, attempt, disturbances)?;
        if let Some(dir) = &ended.dir {
            giver.give(dir)?;
        }
        if ended.end == (AttemptEnd::Complete { is_again: true }) {
            queue.push_back((number, attempt + 1));
        }
    }
    Ok(())
}

/// Passes notices on.
struct ToldToDesk<'a> {
    voice: Arc<Voice>,
    campaign: &'a CampaignDir,
    stop_requests: Arc<AtomicUsize>,
}

impl ToldToDesk<'_> {
    fn cell(&self, label: &str) -> usize {
        let mut cells = self.campaign.header.plan.cells.iter();
        cells.position(|cell| cell.label == label).unwrap_or(0)
    }
}

impl Observer for ToldToDesk<'_> {
    fn notice(&mut self, notice: Notice<'_>) {
        let notice = match notice {
            Notice::TrialStart { trial, attempt, .. } => WorkNotice::TrialStart {
                number: trial.number,
                attempt,
            },
            Notice::Trial(message) => WorkNotice::Trial(message.clone()),
            Notice::TrialBroken { cell, reason } => WorkNotice::TrialBroken {
                cell: self.cell(&cell.label),
                reason: reason.to_owned(),
            },
            Notice::StateStart { cell, load } => WorkNotice::StateStart {
                cell: self.cell(&cell.label),
                load,
            },
            Notice::Remark(text) => WorkNotice::Remark(text.to_owned()),
            Notice::Warning(text) => WorkNotice::Warning(text.to_owned()),
            // A host runs no slices and takes no profiles.
            _ => return,
        };
        self.voice.say(&WorkLine::Notice(notice));
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.stop_requests
    }
}

impl StopRule for ToldToDesk<'_> {
    fn is_enough(&mut self, _campaign: &CampaignDir, _block: u32) -> bool {
        // The desk sees all hosts.
        false
    }
}
