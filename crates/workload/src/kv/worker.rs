//! One thread's operations.

use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_core::plan::{KvWork, MULTIGET_KEYS, RANGE_KEYS};
use plimsoll_engine::{Direction, Found, KvSession, SqlError, WriteMode};
use plimsoll_load::{Failure, Next, Outcome, Worker};

use super::keys::{KEY_LENGTH, Numbers, write_key};
use super::values::{VALUE_LENGTH, Values};
use crate::session::SharedServer;
use crate::session::{refusal, write_outcome};

/// What the workers of a step have found and moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KvTotals {
    /// Keys that must be there by what they asked for.
    pub expected_keys: u64,
    /// Those that were.
    pub found_keys: u64,
    /// Bytes of keys and values, read or written.
    pub bytes: u64,
}

/// The sum over the workers of a step's primary operation.
#[derive(Debug, Default)]
pub(crate) struct SharedKvTotals(Mutex<KvTotals>);

impl SharedKvTotals {
    fn add(&self, moved: KvTotals) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.expected_keys += moved.expected_keys;
        sum.found_keys += moved.found_keys;
        sum.bytes += moved.bytes;
    }

    /// The sum so far.
    pub fn get(&self) -> KvTotals {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker of a step.
pub(super) struct KvWorker {
    server: SharedServer,
    session: Option<Box<dyn KvSession>>,
    work: KvWork,
    /// Its kind of operation among the step's.
    kind: usize,
    numbers: Numbers,
    /// Keys in the store, all below this number.
    keys: u64,
    values: Option<Values>,
    /// The operation's keys, one behind the other.
    key: Vec<u8>,
    /// Keys that the operation must find.
    expected: u64,
    moved: KvTotals,
    /// Where it tells what it moved; a background writer does not.
    sum: Option<Arc<SharedKvTotals>>,
}

impl KvWorker {
    pub fn new(
        server: SharedServer,
        work: KvWork,
        kind: usize,
        (numbers, keys): (Numbers, u64),
        values: Option<Values>,
        sum: Option<Arc<SharedKvTotals>>,
    ) -> Self {
        let key = vec![0; KEY_LENGTH * work.operation().keys() as usize];
        Self {
            server,
            session: None,
            work,
            kind,
            numbers,
            keys,
            values,
            key,
            expected: 0,
            moved: KvTotals::default(),
            sum,
        }
    }

    #[inline]
    fn judge(&mut self, result: Result<Found, SqlError>) -> Outcome {
        match result {
            Ok(found) => {
                self.moved.expected_keys += self.expected;
                self.moved.found_keys += found.keys;
                self.moved.bytes += found.bytes;
                if found.keys == self.expected {
                    Outcome::Done { rows: found.keys }
                } else {
                    self.missing(found.keys)
                }
            }
            Err(error) => refusal(error),
        }
    }

    #[cold]
    fn missing(&self, found: u64) -> Outcome {
        let number = u64::from_be_bytes(self.key[..8].try_into().unwrap_or_default());
        let message = format!(
            "a {} at key {number} found {found} of {} keys that were loaded; a store that loses \
            keys measures nothing",
            self.work.operation(),
            self.expected
        );
        Outcome::Failed(Failure {
            class: "missing",
            message,
        })
    }
}

impl Worker for KvWorker {
    fn open(&mut self) -> Result<(), String> {
        let store = self.server.kv().map_err(|error| error.to_string())?;
        let writes = WriteMode {
            has_wal: self.work != KvWork::Fill,
            syncs: false,
        };
        self.session = Some(store.session(writes).map_err(|error| error.to_string())?);
        Ok(())
    }

    #[inline]
    fn prepare(&mut self) -> Result<Next, String> {
        let mut first = 0;
        for (index, key) in self.key.chunks_exact_mut(KEY_LENGTH).enumerate() {
            let number = self.numbers.next();
            write_key(number, key);
            if index == 0 {
                first = number;
            }
        }
        self.expected = match self.work {
            KvWork::Fill | KvWork::Overwrite => 0,
            KvWork::Get => 1,
            KvWork::MultiGet => u64::from(MULTIGET_KEYS),
            KvWork::Range { is_backward: false } => (self.keys - first).min(RANGE_KEYS.into()),
            KvWork::Range { is_backward: true } => (first + 1).min(RANGE_KEYS.into()),
        };
        if let Some(values) = &mut self.values {
            values.advance();
        }
        Ok(Next::Operation(self.kind))
    }

    fn begin_measuring(&mut self) {
        self.moved = KvTotals::default();
    }

    #[inline]
    fn execute(&mut self) -> Outcome {
        let session = self
            .session
            .as_mut()
            .expect("the loop opens a worker first");
        let result = match (self.work, &self.values) {
            (KvWork::Fill | KvWork::Overwrite, Some(values)) => {
                let outcome = write_outcome(
                    session.put(&self.key, values.get()).map(|()| 1),
                    "a put",
                    None,
                );
                if let Outcome::Done { .. } = outcome {
                    self.moved.bytes += (KEY_LENGTH + VALUE_LENGTH) as u64;
                }
                return outcome;
            }
            (KvWork::Fill | KvWork::Overwrite, None) => unreachable!("whoever writes has values"),
            (KvWork::Get, _) => session.get(&self.key),
            (KvWork::MultiGet, _) => session.get_many(&self.key, KEY_LENGTH),
            (KvWork::Range { is_backward }, _) => {
                let direction = if is_backward {
                    Direction::Backward
                } else {
                    Direction::Forward
                };
                session.range(&self.key, RANGE_KEYS, direction)
            }
        };
        self.judge(result)
    }

    fn close(&mut self) {
        if let Some(sum) = self.sum.take() {
            sum.add(self.moved);
        }
    }
}
