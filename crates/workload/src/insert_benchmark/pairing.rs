//! One inserter, one deleter, the same number of statements.
//!
//! The original makes both kinds of statements in one process and hands them out through two queues
//! of eight, so that its inserter and deleter are never more than about ten statements apart. Here
//! the two meet in counters; whoever is too far ahead waits.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Statements that inserter and deleter may be apart.
pub(super) const MOST_APART: u64 = 10;
/// A worker that waits looks at its commands this often.
const PATIENCE: Duration = Duration::from_millis(10);

/// The two counters of one client, and the smallest id the deleter has not yet asked to delete.
#[derive(Debug)]
pub(super) struct Pairing {
    /// Statements that will be inserted; `None` when a step ends by time and nobody knows yet.
    planned: Option<u64>,
    inserts: AtomicU64,
    deletes: AtomicU64,
    inserter_has_ended: AtomicBool,
    oldest_id: AtomicI64,
    waiting: AtomicU32,
    lock: Mutex<()>,
    changed: Condvar,
}

/// What the deleter may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Go,
    Wait,
    Finished,
}

impl Pairing {
    pub fn new(planned: Option<u64>) -> Self {
        Self {
            planned,
            inserts: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            inserter_has_ended: AtomicBool::new(false),
            oldest_id: AtomicI64::new(0),
            waiting: AtomicU32::new(0),
            lock: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// The lower bound of ids that queries may ask for: 0 until the first delete.
    pub fn oldest_id(&self) -> i64 {
        self.oldest_id.load(Ordering::Relaxed)
    }

    pub fn publish_oldest_id(&self, id: i64) {
        self.oldest_id.store(id, Ordering::Relaxed);
    }

    /// The inserter is about to send a statement.
    pub fn begin_insert(&self) {
        self.inserts.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    /// The deleter is done with a statement.
    pub fn end_delete(&self) {
        self.deletes.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    pub fn end_inserter(&self) {
        self.inserter_has_ended.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.changed.notify_all();
        }
    }

    fn inserter_turn(&self) -> Turn {
        let ahead = self
            .inserts
            .load(Ordering::SeqCst)
            .saturating_sub(self.deletes.load(Ordering::SeqCst));
        if ahead >= MOST_APART {
            Turn::Wait
        } else {
            Turn::Go
        }
    }

    fn deleter_turn(&self) -> Turn {
        let deletes = self.deletes.load(Ordering::SeqCst);
        let has_ended = self.inserter_has_ended.load(Ordering::SeqCst);
        let inserts = self.inserts.load(Ordering::SeqCst);
        match self.planned {
            Some(planned) if deletes >= planned => Turn::Finished,
            // An inserter that stopped early must not be overtaken by more deletes.
            _ if has_ended && deletes >= inserts => Turn::Finished,
            Some(_) if !has_ended && deletes < inserts + MOST_APART => Turn::Go,
            _ if deletes < inserts => Turn::Go,
            _ => Turn::Wait,
        }
    }

    fn wait(&self, turn: impl Fn(&Self) -> Turn) -> Turn {
        let now = turn(self);
        if now != Turn::Wait {
            return now;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let still_waits = |(): &mut ()| turn(self) == Turn::Wait;
        let guard = self
            .changed
            .wait_timeout_while(guard, PATIENCE, still_waits)
            .unwrap_or_else(PoisonError::into_inner)
            .0;
        drop(guard);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        turn(self)
    }

    /// Waits a little until the inserter may go on.
    pub fn await_inserter(&self) -> Turn {
        self.wait(Self::inserter_turn)
    }

    /// Waits a little until the deleter may go on.
    pub fn await_deleter(&self) -> Turn {
        self.wait(Self::deleter_turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_gets_ten_ahead_and_both_end_equal() {
        let pairing = Pairing::new(Some(1000));
        let apart = AtomicU64::new(0);
        let note = || {
            let (inserts, deletes) = (
                pairing.inserts.load(Ordering::SeqCst),
                pairing.deletes.load(Ordering::SeqCst),
            );
            apart.fetch_max(inserts.abs_diff(deletes), Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..1000 {
                    while pairing.await_inserter() == Turn::Wait {}
                    pairing.begin_insert();
                    note();
                    if i % 100 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                pairing.end_inserter();
            });
            scope.spawn(|| {
                loop {
                    match pairing.await_deleter() {
                        Turn::Go => pairing.end_delete(),
                        Turn::Wait => {}
                        Turn::Finished => break,
                    }
                    note();
                }
            });
        });
        assert_eq!(
            (pairing.inserts.into_inner(), pairing.deletes.into_inner()),
            (1000, 1000)
        );
        assert!(apart.into_inner() <= MOST_APART);
    }

    #[test]
    fn without_a_plan_the_deleter_follows_and_ends_with_the_inserter() {
        let pairing = Pairing::new(None);
        assert_eq!(pairing.deleter_turn(), Turn::Wait);
        pairing.begin_insert();
        assert_eq!(pairing.deleter_turn(), Turn::Go);
        pairing.end_delete();
        assert_eq!(pairing.deleter_turn(), Turn::Wait);
        pairing.end_inserter();
        assert_eq!(pairing.deleter_turn(), Turn::Finished);
    }
}
