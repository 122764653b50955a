//! What happens between steps: compaction that a step has left to do is done, and the tree is put
//! into the shape that the next step wants.

use std::time::Instant;

use plimsoll_core::plan::{KvStep, KvWork, Step, Work};
use plimsoll_engine::{DrainAction, DrainLimits, EngineError, KvStore};

/// What a step's end asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maintenance {
    /// No flush and no compaction is left to do.
    Wait,
    /// The same, with an empty memtable and no file in level 0.
    EmptyLevel0,
}

impl Maintenance {
    /// What comes between a step and the next: the debt of the load is worked off, and behind
    /// `overwritesome` a leveled tree gets the same shape in every run. Universal compaction has no
    /// such shape, and is left as it is, but where its data is to be copied.
    pub fn after(step: &Step, is_universal: bool, is_copied: bool) -> Option<Self> {
        let overwrites = matches!(
            step.work,
            Work::Rocksdb(KvStep {
                work: KvWork::Overwrite,
                ..
            })
        );
        let is_overwritesome = overwrites && step.makes_data();
        if !is_overwritesome {
            return Some(Self::Wait);
        }
        if !is_universal {
            return Some(Self::EmptyLevel0);
        }
        is_copied.then_some(Self::Wait)
    }

    /// Does it. A wait that reaches the limit says so in its result and ends nothing: what is left
    /// to do is the next step's.
    pub(super) fn perform(
        self,
        store: &dyn KvStore,
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        let mut actions = Vec::new();
        match self {
            Self::Wait => actions.push(wait(store, limits)?),
            Self::EmptyLevel0 => {
                actions.push(timed("flush", || store.flush().map(|()| String::new()))?);
                actions.push(wait(store, limits)?);
                actions.push(timed("empty level 0", || {
                    let files = files_of_level0(store)?;
                    let emptied = bounded(limits, || store.empty_level0(limits))?;
                    Ok(emptied.unwrap_or_else(|| {
                        format!(
                            "{files} files before, {} after",
                            files_of_level0(store).unwrap_or(0)
                        )
                    }))
                })?);
                actions.push(wait(store, limits)?);
            }
        }
        Ok(actions)
    }
}

/// Waits until no flush and no compaction is left to do.
pub(super) fn wait(
    store: &dyn KvStore,
    limits: &DrainLimits<'_>,
) -> Result<DrainAction, EngineError> {
    timed("wait for compaction", || {
        Ok(bounded(limits, || store.wait_for_compaction(limits))?.unwrap_or_default())
    })
}

fn files_of_level0(store: &dyn KvStore) -> Result<u64, EngineError> {
    Ok(store
        .levels()?
        .iter()
        .find(|level| level.level == 0)
        .map_or(0, |level| level.files))
}

/// What was still going on when the limit came; an error before it is one.
fn bounded(
    limits: &DrainLimits<'_>,
    act: impl FnOnce() -> Result<(), EngineError>,
) -> Result<Option<String>, EngineError> {
    match act() {
        Ok(()) => Ok(None),
        Err(error) if Instant::now() >= limits.limit => {
            Ok(Some(format!("not done in time: {error}")))
        }
        Err(error) => Err(error),
    }
}

fn timed(
    action: &str,
    act: impl FnOnce() -> Result<String, EngineError>,
) -> Result<DrainAction, EngineError> {
    let started = Instant::now();
    let result = act()?;
    Ok(DrainAction {
        action: action.to_owned(),
        seconds: started.elapsed().as_secs_f64(),
        result,
    })
}
