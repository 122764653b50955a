//! A campaign over hosts: a thread per host, which takes one block after the other and fetches each
//! trial when it is sealed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use plimsoll_core::schedule::Unit;
use plimsoll_store::{CampaignDir, CampaignLock};

use super::blocks::{last_attempts, left, owner, units};
use super::board::{Board, Next};
use super::hosts::Host;
use super::link::{Came, Gone, Link, STOPPED};
use super::push::push_build;
use super::reach::{Desk, check_machines};
use super::transfer::{Incoming, Taken, remove_incoming};
use super::whose::trial_of;
use super::wire::{BlockOrder, CampaignOrder, DeskLine, WorkLine, WorkNotice};
use crate::builds::BuildCache;
use crate::confirm::{PlannedLooks, StopRule};
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice, Observer};
use crate::trial_process::STOP_PATIENCE;

/// A host that is lost has this long to come back.
const RETURN_LIMIT: Duration = Duration::from_secs(600);
/// A host has taken the campaign within so many times its patience, or goes on sending trials.
const READY_PATIENCES: u32 = 10;
const BETWEEN_TRIES: Duration = Duration::from_secs(3);
/// A host that was lost more often is not asked any more.
const MOST_LOSSES: u32 = 3;
/// A trial that came damaged is asked for this often.
const MOST_SENDS: u32 = 3;
const POLL: Duration = Duration::from_millis(50);
/// So much news waits to be shown; a host that tells more waits itself.
const MOST_NEWS: usize = 256;

/// Runs what is not complete of a campaign over hosts, each block on one of them, or each part of a
/// block where the plan splits its tests. Sealed trials
/// that an earlier desk has left on them are fetched first.
///
/// # Errors
/// [`LabError::Machine`] when a host of a new campaign cannot be used, or two are one machine. One
/// of a campaign that goes on may be gone for good; then all of them must be gone.
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
    if shared.is_stopped() {
        return Ok(CampaignEnd::Interrupted);
    }
    shared.plan_units(hosts)?;
    let mut looks = PlannedLooks::new(observer);
    watch(&shared, hosts, links, &mut looks, &lock)
}

/// Connects to all hosts at once, and gives each the campaign. What it finds counts for nothing if
/// the user has stopped it meanwhile.
fn first_links(
    shared: &Shared<'_>,
    hosts: &[Host],
    is_new: bool,
    observer: &mut dyn Observer,
) -> Result<Vec<Option<Link>>, LabError> {
    let (sender, told) = sync_channel(MOST_NEWS);
    let links: Vec<Result<Link, String>> = std::thread::scope(|scope| {
        let of_host = |host| {
            let sender = sender.clone();
            scope.spawn(move || shared.connect(host, &sender))
        };
        let threads: Vec<_> = hosts.iter().map(of_host).collect();
        drop(sender);
        loop {
            shared.hear(observer);
            match told.recv_timeout(POLL) {
                Ok(news) => shared.tell(&news, observer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
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
    if shared.is_stopped() {
        return Ok(usable);
    }
    if !reasons.is_empty() && (is_new || usable.iter().all(Option::is_none)) {
        return Err(LabError::Machine(reasons.join("\n")));
    }
    let ids = hosts.iter().zip(&usable).filter_map(|(host, link)| {
        let id = link.as_ref()?.hello.machine_id.as_deref()?;
        Some((host.name.as_str(), id))
    });
    check_machines(ids)?;
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
    let (sender, told) = sync_channel(MOST_NEWS);
    std::thread::scope(|scope| {
        for (host, link) in hosts.iter().zip(links) {
            let sender = sender.clone();
            scope.spawn(move || shared.serve(host, link, &sender));
        }
        drop(sender);
        loop {
            let news = told.recv_timeout(POLL);
            shared.hear(observer);
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
    if shared.is_stopped() {
        return Ok(CampaignEnd::Interrupted);
    }
    let done = campaign.trials()?;
    let schedule = &campaign.header.schedule;
    let is_complete = |number| {
        done.iter()
            .any(|of| of.number == number && of.is_complete())
    };
    let last = decided.unwrap_or(u32::MAX);
    let begun = schedule.iter().filter(|trial| trial.block <= last);
    let broken = begun.filter(|trial| !is_complete(trial.number)).count();
    match decided {
        Some(block) => {
            campaign.end_decided(lock, block)?;
            Ok(CampaignEnd::Decided {
                block,
                broken,
                has_time: true,
            })
        }
        None => Ok(CampaignEnd::of_broken(broken)),
    }
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

    /// Passes on how often the user has asked to stop.
    fn hear(&self, observer: &dyn Observer) {
        let requests = observer.stop_requests().load(Ordering::SeqCst);
        self.stop_requests.store(requests, Ordering::SeqCst);
        if requests > 0 {
            self.close();
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop_requests.load(Ordering::SeqCst) > 0
    }

    fn close(&self) {
        self.board().close();
        self.changed.notify_all();
    }

    /// Puts the units that are not complete on the board. A unit that a host has begun goes on
    /// there, if it is among these.
    fn plan_units(&self, hosts: &[Host]) -> Result<(), LabError> {
        let done = self.campaign.trials()?;
        *self.attempts() = last_attempts(&done);
        let schedule = &self.campaign.header.schedule;
        let (mut open, mut begun) = (Vec::new(), BTreeMap::new());
        for unit in units(schedule) {
            let owner = owner(schedule, unit, &done);
            if owner.is_some_and(|owner| left(schedule, unit, owner, &done).is_empty()) {
                continue;
            }
            open.push(unit);
            let owner = owner.filter(|owner| hosts.iter().any(|host| host.name == *owner));
            begun.extend(owner.map(|owner| (unit, owner.to_owned())));
        }
        *self.board() = Board::new(open, begun);
        Ok(())
    }

    /// What a host is to run of a unit, with attempts that nobody else has.
    fn order(&self, unit: Unit, host: &str) -> Result<BlockOrder, LabError> {
        let done = self.campaign.trials()?;
        let mut attempts = self.attempts();
        let mut next = |number: u32| {
            let last = attempts.entry(number).or_default();
            *last = last.saturating_add(1);
            (number, *last)
        };
        let trials = left(&self.campaign.header.schedule, unit, host, &done);
        let trials = trials.into_iter().map(&mut next).collect();
        Ok(BlockOrder { unit, trials })
    }

    /// A host with its builds and the campaign, and what lay in its spool is here.
    fn connect(&self, host: &Host, sender: &SyncSender<News>) -> Result<Link, String> {
        let campaign = Some(self.campaign.path.clone());
        let is_stopped = || self.is_stopped();
        let mut link = self.desk.connect(host, campaign, &is_stopped)?;
        for cell in &self.campaign.header.cells {
            let Some(build) = &cell.build else { continue };
            let is_there = |there: &super::wire::HostBuild| {
                (&there.name, &there.server_sha256, &there.links)
                    == (&build.name, &build.server_sha256, &build.links)
            };
            if !link.hello.builds.iter().any(is_there) {
                let text = format!("copying the build {}", build.name);
                notice(sender, host, WorkNotice::Remark(text));
                push_build(self.desk, host, self.builds, &build.name, &is_stopped)?;
                link.hello.builds.push(super::wire::HostBuild {
                    name: build.name.clone(),
                    server_sha256: build.server_sha256.clone(),
                    links: build.links.clone(),
                });
            }
        }
        link.say(&DeskLine::Campaign(Box::new(CampaignOrder {
            header: self.campaign.header.clone(),
            host: host.name.clone(),
            patience_ns: self.desk.patience.as_nanos() as u64,
        })));
        self.wait_until_ready(host, &mut link, sender)?;
        Ok(link)
    }

    /// Waits until a host has taken the campaign, and takes the trials that lay in its spool.
    fn wait_until_ready(
        &self,
        host: &Host,
        link: &mut Link,
        sender: &SyncSender<News>,
    ) -> Result<(), String> {
        let limit = READY_PATIENCES * self.desk.patience;
        let mut deadline = Instant::now() + limit;
        let mut sends = BTreeMap::new();
        while Instant::now() < deadline {
            if self.is_stopped() {
                return Err(STOPPED.to_owned());
            }
            match link.next().map_err(Gone::reason)? {
                Came::Line(line) => match *line {
                    WorkLine::Ready => return Ok(()),
                    WorkLine::Notice(what) => notice(sender, host, what),
                    _ => {}
                },
                Came::Trial { folder, incoming } => {
                    if self.take(host, link, (&folder, incoming), &mut sends, sender) {
                        deadline = Instant::now() + limit;
                    }
                }
                Came::Nonsense(_) | Came::Nothing => {}
            }
            if link.is_receiving() {
                deadline = Instant::now() + limit;
            }
        }
        Err(format!(
            "it has not taken the campaign within {} s, ten times its patience: look at what runs \
            there, or write a longer patience in hosts.toml",
            limit.as_secs()
        ))
    }

    /// A host runs a disturbed trial again by itself: that attempt is nobody else's.
    fn note_attempt(&self, folder: &str) {
        if let Some((trial, attempt)) = trial_of(self.campaign, folder) {
            let mut attempts = self.attempts();
            let last = attempts.entry(trial.number).or_default();
            *last = attempt.max(*last);
        }
    }

    /// Puts a trial that has come into the campaign, and tells the host what became of it. True if
    /// it is new.
    fn take(
        &self,
        host: &Host,
        link: &Link,
        (folder, incoming): (&str, Result<Incoming, String>),
        sends: &mut BTreeMap<String, u32>,
        sender: &SyncSender<News>,
    ) -> bool {
        let warn = |text: String| notice(sender, host, WorkNotice::Warning(text));
        let folder = folder.to_owned();
        self.note_attempt(&folder);
        let taken = incoming.and_then(|incoming| incoming.take(self.campaign));
        let is_new = taken == Ok(Taken::New);
        let answer = match taken {
            Ok(Taken::New | Taken::Known) => DeskLine::Taken { folder },
            Ok(Taken::Other(reason)) => {
                warn(format!("{folder} is not taken and stays there: {reason}"));
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
        is_new
    }

    /// A host's thread: one unit after the other, over connections that may break.
    fn serve(&self, host: &Host, first: Option<Link>, sender: &SyncSender<News>) {
        let warn = |text: String| notice(sender, host, WorkNotice::Warning(text));
        let mut link = first;
        let mut losses = 0;
        while losses <= MOST_LOSSES {
            let Some(mut connected) = link.take().or_else(|| self.wait_for(host, sender)) else {
                break;
            };
            let Some(unit) = self.next_unit(&host.name) else {
                connected.end();
                break;
            };
            match self.run_unit(host, &mut connected, unit, sender) {
                Ok(()) => {
                    self.board().done(&host.name);
                    let _ = sender.send(News {
                        host: host.name.clone(),
                        what: What::BlockDone,
                    });
                    link = Some(connected);
                }
                Err(Gone::Lost(reason)) => {
                    self.board().lost(&host.name);
                    losses += 1;
                    warn(format!("lost with {unit}, which begins again: {reason}"));
                }
                // It would say the same of the next block.
                Err(Gone::Refused(reason)) => {
                    warn(format!(
                        "is given up with {unit}, which another host may run: {reason}"
                    ));
                    break;
                }
            }
            self.changed.notify_all();
        }
        self.board().lost(&host.name);
        self.changed.notify_all();
    }

    /// Tries to connect to a host that was lost, while there is something to do.
    fn wait_for(&self, host: &Host, sender: &SyncSender<News>) -> Option<Link> {
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

    /// Waits until there is a unit for this host, or none for anybody.
    fn next_unit(&self, host: &str) -> Option<Unit> {
        let mut board = self.board();
        loop {
            match board.next(host) {
                Next::Unit(unit) => return Some(unit),
                Next::Over => return None,
                Next::Wait => {
                    let waited = self.changed.wait_timeout(board, POLL);
                    board = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Has a host run a unit, and takes its trials as they come.
    fn run_unit(
        &self,
        host: &Host,
        link: &mut Link,
        unit: Unit,
        sender: &SyncSender<News>,
    ) -> Result<(), Gone> {
        let order = self
            .order(unit, &host.name)
            .map_err(|error| Gone::Refused(error.to_string()))?;
        link.say(&DeskLine::Block(order));
        let mut sends = BTreeMap::new();
        let (mut handled, mut asked_at) = (0, None::<Instant>);
        loop {
            match link.next()? {
                Came::Line(line) => match *line {
                    WorkLine::BlockDone { unit: done, .. } if done == unit => return Ok(()),
                    WorkLine::Notice(what) => notice(sender, host, what),
                    _ => {}
                },
                Came::Trial { folder, incoming } => {
                    self.take(host, link, (&folder, incoming), &mut sends, sender);
                }
                Came::Nonsense(_) | Came::Nothing => {}
            }
            let requests = self.stop_requests.load(Ordering::SeqCst);
            if requests > handled {
                link.say(&DeskLine::Stop);
                asked_at.get_or_insert_with(Instant::now);
                handled = requests;
            }
            if asked_at.is_some_and(|asked| asked.elapsed() > 2 * STOP_PATIENCE) {
                return Err(Gone::Lost("it does not stop".into()));
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

fn notice(sender: &SyncSender<News>, host: &Host, what: WorkNotice) {
    let _ = sender.send(News {
        host: host.name.clone(),
        what: What::Notice(what),
    });
}

#[cfg(test)]
mod tests {
    use super::super::link::tests::{greeting, host, scripted};
    use super::super::whose::tests::campaign;
    use super::*;

    /// The notices of a host's thread while it does `act`, as text.
    fn told(act: impl FnOnce(&Shared<'_>, &SyncSender<News>)) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let campaign = campaign(place.path());
        let builds = BuildCache::new(place.path().join("builds"));
        let desk = Desk {
            program: "/nowhere".into(),
            sha256: "0".repeat(64),
            version: "0".into(),
            patience: Duration::from_secs(1),
            allows_skew: false,
        };
        let shared = Shared {
            campaign: &campaign,
            desk: &desk,
            builds: &builds,
            board: Mutex::default(),
            changed: Condvar::new(),
            attempts: Mutex::default(),
            stop_requests: AtomicUsize::new(0),
        };
        shared.plan_units(&[host()]).unwrap();
        let (sender, told) = sync_channel(MOST_NEWS);
        act(&shared, &sender);
        drop(sender);
        let text = |news: News| match news.what {
            What::Notice(WorkNotice::Warning(text) | WorkNotice::Remark(text)) => Some(text),
            _ => None,
        };
        told.iter().filter_map(text).collect()
    }

    #[test]
    fn a_host_that_is_never_ready_is_given_up_and_hears_ctrl_c() {
        let script = greeting() + r#"while sleep 0.2; do echo '"beat"'; done"#;
        let begun = Instant::now();
        told(|shared, sender| {
            let mut link = scripted(&script, None).unwrap();
            let reason = shared.wait_until_ready(&host(), &mut link, sender);
            let reason = reason.unwrap_err();
            assert!(
                reason.starts_with("it has not taken the campaign within 10 s"),
                "{reason}"
            );
            // The user has stopped it.
            shared.stop_requests.store(1, Ordering::SeqCst);
            let asked = Instant::now();
            let reason = shared.wait_until_ready(&host(), &mut link, sender);
            assert_eq!(reason.unwrap_err(), STOPPED);
            assert!(
                asked.elapsed() < Duration::from_secs(5),
                "{:?}",
                asked.elapsed()
            );
        });
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{:?}",
            begun.elapsed()
        );
    }

    #[test]
    fn a_host_that_refuses_in_a_block_is_given_up_and_not_asked_again() {
        let refused = r#"echo '{"refused":{"reason":"its disk is full"}}'; "#;
        let script = greeting() + "read campaign; " + refused + "cat >/dev/null";
        let said = told(|shared, sender| {
            let link = scripted(&script, None).unwrap();
            // It answers the first line, whatever that is.
            shared.serve(&host(), Some(link), sender);
            let whole = Unit {
                block: 1,
                part: None,
            };
            assert_eq!(shared.board().next("h2"), Next::Unit(whole));
        });
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("is given up with block 1") && said[0].ends_with("disk is full"),
            "{said:?}"
        );
    }
}
