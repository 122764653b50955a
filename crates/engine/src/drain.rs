//! What every drain keeps to, and what it says it did.

use std::time::Instant;

/// When a drain ends.
#[derive(Clone, Copy)]
pub struct DrainLimits<'a> {
    /// When the plan's wait is over: an engine that writes faster only while settings are changed
    /// keeps them changed until then.
    pub wait_until: Instant,
    /// Nothing goes on after this, even if debt is left.
    pub limit: Instant,
    /// Whether the trial is to stop.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// Why a drain ends before its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainEnd {
    Stopped,
    LimitReached,
}

impl<'a> DrainLimits<'a> {
    pub fn new(wait_until: Instant, limit: Instant, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            wait_until,
            limit,
            is_stopped,
        }
    }

    /// Why the drain must end now, if it must.
    pub fn end(&self) -> Option<DrainEnd> {
        if (self.is_stopped)() {
            Some(DrainEnd::Stopped)
        } else if Instant::now() >= self.limit {
            Some(DrainEnd::LimitReached)
        } else {
            None
        }
    }
}

/// What was done to work off an engine's debt.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DrainAction {
    /// The statement or action.
    pub action: String,
    /// How long it took.
    pub seconds: f64,
    /// What it answered, or nothing.
    pub result: String,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stop_or_the_limit_ends_a_drain() {
        let later = Instant::now() + Duration::from_secs(60);
        let end = |limit, stopped| DrainLimits::new(later, limit, &|| stopped).end();
        assert_eq!(end(later, false), None);
        assert_eq!(end(later, true), Some(DrainEnd::Stopped));
        assert_eq!(end(Instant::now(), false), Some(DrainEnd::LimitReached));
    }
}
