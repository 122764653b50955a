//! A campaign over hosts: a thread per host, which takes one block after the other and fetches each
//! trial when it is sealed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use plimsoll_store::{CampaignDir, CampaignLock};

use super::blocks::{blocks, last_attempts, left, owner};
use super::board::{Board, Next};
use super::hosts::Host;
use super::link::{Came, Link};
use super::push::{program_on, push_build};
use super::transfer::{Incoming, Taken, remove_incoming};
use super::wire::{BlockOrder, CampaignOrder, DeskLine, Hello, WorkLine, WorkNotice};
use crate::builds::{BuildCache, file_sha256};
use crate::confirm::{PlannedLooks, StopRule};
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice, Observer};
use crate::trial_process::STOP_PATIENCE;

/// Wall clocks that are further apart disagree about when a trial ran.
const MOST_SKEW: Duration = Duration::from_secs(1);
/// A host that is lost has this long to come back.
const RETURN_LIMIT: Duration = Duration::from_secs(600);
const BETWEEN_TRIES: Duration = Duration::from_secs(3);
/// A host that was lost more often is not asked any more.
const MOST_LOSSES: u32 = 3;
/// A trial that came damaged is asked for this often.
const MOST_SENDS: u32 = 3;
const POLL: Duration = Duration::from_millis(50);

/// This end of all connections.
#[derive(Clone, Debug)]
pub struct Desk {
    /// This program.
    pub program: PathBuf,
    /// Its SHA-256.
    pub sha256: String,
    /// Its version.
    pub version: String,
    /// A host that says nothing for this long is lost.
    pub patience: Duration,
    /// Whether hosts may have other wall clocks.
    pub allows_skew: bool,
}

impl Desk {
    /// # Errors
    /// When the program's file cannot be read.
    pub fn new(program: &Path, version: &str, patience: Duration) -> Result<Self, LabError> {
        Ok(Self {
            program: program.to_owned(),
            sha256: file_sha256(program)?,
            version: version.to_owned(),
            patience,
            allows_skew: false,
        })
    }

    /// Connects to a host and looks at who answers.
    fn connect(&self, host: &Host, campaign: Option<PathBuf>) -> Result<Link, String> {
        let program = program_on(host, &self.sha256);
        let link = Link::open(host, &program.to_string_lossy(), self.patience, campaign)?;
        let hello = &link.hello;
        if (&hello.version, &hello.program_sha256) != (&self.version, &self.sha256) {
            return Err(format!(
                "it has plimsoll {} ({:.12}) and the desk {} ({:.12}): `plimsoll host push {}` \
                copies the desk's",
                hello.version, hello.program_sha256, self.version, self.sha256, host.name
            ));
        }
        let skew = skew(hello, link.greeted_after);
        if skew.unsigned_abs() > MOST_SKEW.as_nanos() && !self.allows_skew {
            return Err(format!(
                "its clock is {:+.1} s from the desk's: set both by NTP, or pass --allow-skew",
                skew as f64 / 1e9
            ));
        }
        Ok(link)
    }
}

/// How far the host's wall clock is ahead, in nanoseconds: known to the time that the greeting took.
fn skew(hello: &Hello, greeted_after: Duration) -> i128 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i128);
    // The greeting was written between the asking and now: what lies between does not count as skew.
    let ahead = i128::from(hello.unix_ns) - now;
    match ahead < 0 {
        true => (ahead + greeted_after.as_nanos() as i128).min(0),
        false => ahead,
    }
}

/// What was found out about a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// What the host says of itself.
    pub hello: Hello,
    /// From the asking to its greeting.
    pub greeted_after: Duration,
    /// How far its wall clock is ahead, known to `greeted_after`.
    pub skew_s: f64,
}

/// Connects to a host once.
///
/// # Errors
/// [`LabError::Machine`] when it cannot be used, with the reason.
pub fn check_host(desk: &Desk, host: &Host) -> Result<Reach, LabError> {
    let link = desk
        .connect(host, None)
        .map_err(|reason| LabError::Machine(format!("{}: {reason}", host.name)))?;
    let reach = Reach {
        hello: link.hello.clone(),
        greeted_after: link.greeted_after,
        skew_s: skew(&link.hello, link.greeted_after) as f64 / 1e9,
    };
    link.end();
    Ok(reach)
}

/// Connects to all hosts once.
///
/// # Errors
/// [`LabError::Machine`] with a line for each host that cannot be used.
pub fn check_hosts(desk: &Desk, hosts: &[Host]) -> Result<(), LabError> {
    let reasons: Vec<String> = std::thread::scope(|scope| {
        let check = |host| scope.spawn(move || check_host(desk, host).err());
        let threads: Vec<_> = hosts.iter().map(check).collect();
        let reason =
            |thread: ScopedJoinHandle<'_, Option<LabError>>| Some(thread.join().ok()??.to_string());
        threads.into_iter().filter_map(reason).collect()
    });
    match reasons.is_empty() {
        true => Ok(()),
        false => Err(LabError::Machine(reasons.join("\n"))),
    }
}

/// Runs what is not complete of a campaign over hosts, a block on one of them each. Sealed trials
/// that an earlier desk has left on them are fetched first.
///
/// # Errors
/// [`LabError::Machine`] when a host of a new campaign cannot be used. One of a campaign that goes
/// on may be gone for good; then all of them must be gone.
pub fn run_over_hosts(
    campaign: &CampaignDir,
    hosts: &[Host],
    desk: &Desk,
    builds: &BuildCache,
    observer: &mut dyn Observer,
) -> Result<CampaignEnd, LabError> {
    let lock = campaign.lock()?;
    campaign.reopen(&lock)?;
    remove_incoming(&campaign.path);
    let is_new = campaign.trials()?.is_empty();
    let shared = Shared {
        campaign,
        desk,
        builds,
        board: Mutex::default(),
        changed: Condvar::new(),
        attempts: Mutex::default(),
        stop_requests: AtomicUsize::new(0),
    };
    let links = first_links(&shared, hosts, is_new, observer)?;
    shared.plan_blocks(hosts)?;
    let mut looks = PlannedLooks::new(observer);
    watch(&shared, hosts, links, &mut looks, &lock)
}

/// Connects to all hosts at once, and gives each the campaign.
fn first_links(
    shared: &Shared<'_>,
    hosts: &[Host],
    is_new: bool,
    observer: &mut dyn Observer,
) -> Result<Vec<Option<Link>>, LabError> {
    let (sender, told) = channel();
    let links: Vec<Result<Link, String>> = std::thread::scope(|scope| {
        let of_host = |host| {
            let sender = sender.clone();
            scope.spawn(move || shared.connect(host, &sender))
        };
        let threads: Vec<_> = hosts.iter().map(of_host).collect();
        drop(sender);
        for news in told {
            shared.tell(&news, observer);
        }
        let join = |thread: ScopedJoinHandle<'_, Result<Link, String>>| {
            thread
                .join()
                .unwrap_or_else(|_| Err("its thread died".into()))
        };
        threads.into_iter().map(join).collect()
    });
    let mut usable = Vec::new();
    let mut reasons = Vec::new();
    for (host, link) in hosts.iter().zip(links) {
        usable.push(match link {
            Ok(link) => Some(link),
            Err(reason) => {
                reasons.push(format!("{}: {reason}", host.name));
                None
            }
        });
    }
    if !reasons.is_empty() && (is_new || usable.iter().all(Option::is_none)) {
        return Err(LabError::Machine(reasons.join("\n")));
    }
    for reason in reasons {
        observer.notice(Notice::Warning(&format!("goes on without {reason}")));
    }
    Ok(usable)
}

/// Starts the threads and shows what they tell, until the last one has ended.
fn watch(
    shared: &Shared<'_>,
    hosts: &[Host],
    links: Vec<Option<Link>>,
    observer: &mut dyn StopRule,
    lock: &CampaignLock,
) -> Result<CampaignEnd, LabError> {
    let campaign = shared.campaign;
    let is_confirming = campaign.header.confirm.is_some();
    let blocks = campaign.header.plan.blocks;
    let (mut decided, mut looked_at) = (None, 0);
    let (sender, told) = channel();
    std::thread::scope(|scope| {
        for (host, link) in hosts.iter().zip(links) {
            let sender = sender.clone();
            scope.spawn(move || shared.serve(host, link, &sender));
        }
        drop(sender);
        loop {
            let news = told.recv_timeout(POLL);
            let requests = observer.stop_requests().load(Ordering::SeqCst);
            shared.stop_requests.store(requests, Ordering::SeqCst);
            if requests > 0 {
                shared.close();
            }
            match news {
                Ok(News {
                    what: What::BlockDone,
                    ..
                }) if is_confirming => {
                    // Looks are planned at certain blocks, which may end in any order.
                    let whole = shared.board().done_up_to(blocks);
                    let mut looks = looked_at + 1..=whole;
                    looked_at = looked_at.max(whole);
                    if decided.is_none() {
                        decided = looks.find(|block| observer.is_enough(campaign, *block));
                    }
                    if decided.is_some() {
                        shared.close();
                    }
                }
                Ok(news) => shared.tell(&news, observer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
    if shared.stop_requests.load(Ordering::SeqCst) > 0 {
        return Ok(CampaignEnd::Interrupted);
    }
    if let Some(block) = decided {
        campaign.end_decided(lock, block)?;
        return Ok(CampaignEnd::Decided { block });
    }
    let done = campaign.trials()?;
    let schedule = &campaign.header.schedule;
    let is_complete = |number| {
        done.iter()
            .any(|of| of.number == number && of.is_complete())
    };
    let broken = schedule
        .iter()
        .filter(|trial| !is_complete(trial.number))
        .count();
    Ok(CampaignEnd::of_broken(broken))
}

/// What the threads have in common.
struct Shared<'a> {
    campaign: &'a CampaignDir,
    desk: &'a Desk,
    builds: &'a BuildCache,
    board: Mutex<Board>,
    /// A block ended, or came back.
    changed: Condvar,
    /// The highest attempt at each trial that anybody was asked for, or has made.
    attempts: Mutex<BTreeMap<u32, u32>>,
    stop_requests: AtomicUsize,
}

/// What a host's thread tells.
struct News {
    host: String,
    what: What,
}

enum What {
    Notice(WorkNotice),
    BlockDone,
}

impl Shared<'_> {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<u32, u32>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        self.board().close();
        self.changed.notify_all();
    }

    /// Puts the blocks that are not complete on the board. A block that a host has begun goes on
    /// there, if it is among these.
    fn plan_blocks(&self, hosts: &[Host]) -> Result<(), LabError> {
        let done = self.campaign.trials()?;
        *self.attempts() = last_attempts(&done);
        let schedule = &self.campaign.header.schedule;
        let (mut open, mut begun) = (Vec::new(), BTreeMap::new());
        for block in blocks(schedule) {
            let owner = owner(schedule, block, &done);
            if owner.is_some_and(|owner| left(schedule, block, owner, &done).is_empty()) {
                continue;
            }
            open.push(block);
            let owner = owner.filter(|owner| hosts.iter().any(|host| host.name == *owner));
            begun.extend(owner.map(|owner| (block, owner.to_owned())));
        }
        *self.board() = Board::new(open, begun);
        Ok(())
    }

    /// What a host is to run of a block, with attempts that nobody else has.
    fn order(&self, block: u32, host: &str) -> Result<BlockOrder, LabError> {
        let done = self.campaign.trials()?;
        let mut attempts = self.attempts();
        let mut next = |number: u32| {
            let last = attempts.entry(number).or_default();
            *last = last.saturating_add(1);
            (number, *last)
        };
        let trials = left(&self.campaign.header.schedule, block, host, &done);
        let trials = trials.into_iter().map(&mut next).collect();
        Ok(BlockOrder { block, trials })
    }

    /// A host with its builds and the campaign, and what lay in its spool is here.
    fn connect(&self, host: &Host, sender: &Sender<News>) -> Result<Link, String> {
        let campaign = Some(self.campaign.path.clone());
        let mut link = self.desk.connect(host, campaign)?;
        for cell in &self.campaign.header.cells {
            let Some(build) = &cell.build else { continue };
            let is_there = |there: &super::wire::HostBuild| {
                (&there.name, &there.server_sha256) == (&build.name, &build.server_sha256)
            };
            if !link.hello.builds.iter().any(is_there) {
                let text = format!("copying the build {}", build.name);
                notice(sender, host, WorkNotice::Remark(text));
                push_build(self.desk, host, self.builds, &build.name)?;
                link.hello.builds.push(super::wire::HostBuild {
                    name: build.name.clone(),
                    server_sha256: build.server_sha256.clone(),
                });
            }
        }
        link.say(&DeskLine::Campaign(Box::new(CampaignOrder {
            header: self.campaign.header.clone(),
            host: host.name.clone(),
            patience_ns: self.desk.patience.as_nanos() as u64,
        })));
        let mut sends = BTreeMap::new();
        loop {
            match link.next()? {
                Came::Line(line) => match *line {
                    WorkLine::Ready => return Ok(link),
                    WorkLine::Refused { reason } => return Err(reason),
                    WorkLine::Notice(what) => notice(sender, host, what),
                    _ => {}
                },
                Came::Trial { folder, incoming } => {
                    self.take(host, &link, (&folder, incoming), &mut sends, sender);
                }
                Came::Nothing => {}
            }
        }
    }

    /// A host runs a disturbed trial again by itself: that attempt is nobody else's.
    fn note_attempt(&self, folder: &str) {
        let count = |text: &str| text.parse::<u32>().ok();
        let number = folder.split_once('-').and_then(|(number, _)| count(number));
        let attempt = folder
            .rsplit_once("-a")
            .and_then(|(_, attempt)| count(attempt));
        if let (Some(number), Some(attempt)) = (number, attempt) {
            let mut attempts = self.attempts();
            let last = attempts.entry(number).or_default();
            *last = attempt.max(*last);
        }
    }

    /// Puts a trial that has come into the campaign, and tells the host what became of it.
    fn take(
        &self,
        host: &Host,
        link: &Link,
        (folder, incoming): (&str, Result<Incoming, String>),
        sends: &mut BTreeMap<String, u32>,
        sender: &Sender<News>,
    ) {
        let warn = |text: String| notice(sender, host, WorkNotice::Warning(text));
        let folder = folder.to_owned();
        self.note_attempt(&folder);
        let answer = match incoming.and_then(|incoming| incoming.take(self.campaign)) {
            Ok(Taken::New | Taken::Known) => DeskLine::Taken { folder },
            Ok(Taken::Other) => {
                warn(format!(
                    "{folder} is in the campaign already, and another one: it stays on the host"
                ));
                DeskLine::Kept { folder }
            }
            Err(reason) => {
                let sent = sends.entry(folder.clone()).or_default();
                *sent += 1;
                if *sent < MOST_SENDS {
                    DeskLine::Again { folder }
                } else {
                    warn(format!(
                        "a trial came damaged {sent} times and stays there: {reason}"
                    ));
                    DeskLine::Kept { folder }
                }
            }
        };
        link.say(&answer);
    }

    /// A host's thread: blocks until there are none, over connections that may break.
    fn serve(&self, host: &Host, first: Option<Link>, sender: &Sender<News>) {
        let warn = |text: String| notice(sender, host, WorkNotice::Warning(text));
        let mut link = first;
        let mut losses = 0;
        while losses <= MOST_LOSSES {
            let Some(mut connected) = link.take().or_else(|| self.wait_for(host, sender)) else {
                break;
            };
            let Some(block) = self.next_block(&host.name) else {
                connected.end();
                break;
            };
            match self.run_block(host, &mut connected, block, sender) {
                Ok(()) => {
                    self.board().done(&host.name);
                    let _ = sender.send(News {
                        host: host.name.clone(),
                        what: What::BlockDone,
                    });
                    link = Some(connected);
                }
                Err(reason) => {
                    self.board().lost(&host.name);
                    losses += 1;
                    warn(format!(
                        "lost with block {block}, which begins again: {reason}"
                    ));
                }
            }
            self.changed.notify_all();
        }
        self.board().lost(&host.name);
        self.changed.notify_all();
    }

    /// Tries to connect to a host that was lost, while there is something to do.
    fn wait_for(&self, host: &Host, sender: &Sender<News>) -> Option<Link> {
        let deadline = Instant::now() + RETURN_LIMIT;
        loop {
            if self.board().is_over() || self.board().is_closed() {
                return None;
            }
            match self.connect(host, sender) {
                Ok(link) => {
                    notice(sender, host, WorkNotice::Remark("is back".into()));
                    return Some(link);
                }
                Err(reason) if Instant::now() >= deadline => {
                    let text = format!("is given up: {reason}");
                    notice(sender, host, WorkNotice::Warning(text));
                    return None;
                }
                Err(_) => {
                    let board = self.board();
                    let _ = self.changed.wait_timeout(board, BETWEEN_TRIES);
                }
            }
        }
    }

    /// Waits until there is a block for this host, or none for anybody.
    fn next_block(&self, host: &str) -> Option<u32> {
        let mut board = self.board();
        loop {
            match board.next(host) {
                Next::Block(block) => return Some(block),
                Next::Over => return None,
                Next::Wait => {
                    let waited = self.changed.wait_timeout(board, POLL);
                    board = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Has a host run a block, and takes its trials as they come.
    fn run_block(
        &self,
        host: &Host,
        link: &mut Link,
        block: u32,
        sender: &Sender<News>,
    ) -> Result<(), String> {
        let order = self
            .order(block, &host.name)
            .map_err(|error| error.to_string())?;
        link.say(&DeskLine::Block(order));
        let mut sends = BTreeMap::new();
        let (mut handled, mut asked_at) = (0, None::<Instant>);
        loop {
            match link.next()? {
                Came::Line(line) => match *line {
                    WorkLine::BlockDone { block: done, .. } if done == block => return Ok(()),
                    WorkLine::Refused { reason } => return Err(reason),
                    WorkLine::Notice(what) => notice(sender, host, what),
                    _ => {}
                },
                Came::Trial { folder, incoming } => {
                    self.take(host, link, (&folder, incoming), &mut sends, sender);
                }
                Came::Nothing => {}
            }
            let requests = self.stop_requests.load(Ordering::SeqCst);
            if requests > handled {
                link.say(&DeskLine::Stop);
                asked_at.get_or_insert_with(Instant::now);
                handled = requests;
            }
            if asked_at.is_some_and(|asked| asked.elapsed() > 2 * STOP_PATIENCE) {
                return Err("it does not stop".into());
            }
        }
    }

    /// Shows what a host told.
    fn tell(&self, News { host, what }: &News, observer: &mut dyn Observer) {
        let header = &self.campaign.header;
        let What::Notice(told) = what else { return };
        let cell = |cell: &usize| header.plan.cells.get(*cell);
        let mut show = |notice: Notice<'_>| {
            observer.notice(Notice::OnHost {
                host,
                notice: &notice,
            });
        };
        match told {
            WorkNotice::TrialStart { number, attempt } => {
                let trial = header.schedule.iter().find(|trial| trial.number == *number);
                if let Some((trial, cell)) =
                    trial.and_then(|trial| Some((trial, cell(&trial.cell)?)))
                {
                    show(Notice::TrialStart {
                        trial,
                        attempt: *attempt,
                        trials: header.schedule.len(),
                        cell,
                    });
                }
            }
            WorkNotice::Trial(message) => show(Notice::Trial(message)),
            WorkNotice::TrialBroken { cell: of, reason } => {
                if let Some(cell) = cell(of) {
                    show(Notice::TrialBroken { cell, reason });
                }
            }
            WorkNotice::StateStart { cell: of, load } => {
                if let Some(cell) = cell(of) {
                    show(Notice::StateStart { cell, load: *load });
                }
            }
            WorkNotice::Remark(text) => show(Notice::Remark(text)),
            WorkNotice::Warning(text) => show(Notice::Warning(text)),
        }
    }
}

fn notice(sender: &Sender<News>, host: &Host, what: WorkNotice) {
    let _ = sender.send(News {
        host: host.name.clone(),
        what: What::Notice(what),
    });
}
