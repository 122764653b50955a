//! Waiting that a freeze of the machine does not use up.

use std::time::{Duration, Instant};

/// One look uses up no more than this share of the limit, and no more than [`LONGEST_LOOK`].
const LOOKS: u32 = 4;
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// How long something has been waited for, counted in looks.
///
/// A stopped process, a paused container or a migrating virtual machine sees its clock jump.
/// Whoever is waited for was frozen too and could not answer, so a jump counts as one look and not
/// as silence. A wait looks at least ten times a second.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    limit: Duration,
    spent: Duration,
    looked: Instant,
}

impl Patience {
    /// Patience for this long from now on.
    pub fn new(limit: Duration) -> Self {
        Self {
            limit,
            spent: Duration::ZERO,
            looked: Instant::now(),
        }
    }

    /// Looks at the time; true when the patience is used up.
    pub fn is_over(&mut self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&mut self, now: Instant) -> bool {
        let longest = (self.limit / LOOKS).min(LONGEST_LOOK);
        self.spent += now.saturating_duration_since(self.looked).min(longest);
        self.looked = now;
        self.spent > self.limit
    }

    /// Begins again after a sign of life.
    pub fn renew(&mut self) {
        *self = Self::new(self.limit);
    }

    /// What of it is spent.
    pub fn spent(&self) -> Duration {
        self.spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_is_no_silence_and_silence_is() {
        let begin = Instant::now();
        let mut patience = Patience {
            limit: Duration::from_secs(60),
            spent: Duration::ZERO,
            looked: begin,
        };
        let mut now = begin;
        let mut look = |patience: &mut Patience, step: Duration| {
            now += step;
            patience.is_over_at(now)
        };
        for _ in 0..3 {
            assert!(
                !look(&mut patience, Duration::from_secs(3600)),
                "frozen for an hour"
            );
        }
        assert_eq!(patience.spent(), Duration::from_secs(3));
        let looks = (0..1000)
            .take_while(|_| !look(&mut patience, Duration::from_millis(100)))
            .count();
        assert_eq!(looks, 570, "57 s of looks were left");
        patience.renew();
        assert_eq!(patience.spent(), Duration::ZERO);
        let mut short = Patience {
            limit: Duration::from_millis(400),
            spent: Duration::ZERO,
            looked: begin,
        };
        assert!(
            !short.is_over_at(begin + Duration::from_secs(9))
                && short.spent() == Duration::from_millis(100),
            "of a short one, too"
        );
    }
}
