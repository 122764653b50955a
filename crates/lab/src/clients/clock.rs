//! How far the monotonic clocks of two hosts are apart.
//!
//! A ping is stamped here when it is sent and when its answer comes, and there in between. The
//! shortest round trip bounds the offset best: it lies within half of it (Cristian, "Probabilistic
//! clock synchronization", 1989).

/// A question and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ping {
    /// By the clock here.
    pub asked_ns: u64,
    /// By the clock there.
    pub there_ns: u64,
    /// By the clock here.
    pub answered_ns: u64,
}

/// What pings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offset {
    /// The clock there less the clock here.
    pub offset_ns: i64,
    /// The shortest round trip; the offset is known to half of it.
    pub rtt_min_ns: u64,
    /// The median round trip.
    pub rtt_p50_ns: u64,
    /// The longest round trip.
    pub rtt_max_ns: u64,
    /// When the shortest was asked, by the clock here.
    pub at_ns: u64,
}

/// Two hosts whose offset is known to half of this start at one instant, as far as a step can tell.
const MOST_RTT_NS: u64 = 10_000_000;
/// What a clock may be found to have changed by in no time, beyond what round trips explain.
const MOST_CHANGE_NS: u64 = 10_000_000;
/// And by what share of the time between: NTP bends a clock by half of it at most.
const MOST_CHANGE_PPM: u64 = 1_000;
/// Below this drift is not told from the error of two offsets.
const LEAST_SPAN_NS: u64 = 10_000_000_000;

impl Ping {
    fn rtt_ns(&self) -> u64 {
        self.answered_ns.saturating_sub(self.asked_ns)
    }
}

impl Offset {
    /// `None` without pings.
    pub fn of(pings: &[Ping]) -> Option<Self> {
        let shortest = pings.iter().min_by_key(|ping| ping.rtt_ns())?;
        let mut rtts: Vec<u64> = pings.iter().map(Ping::rtt_ns).collect();
        rtts.sort_unstable();
        let middle = shortest.asked_ns + shortest.rtt_ns() / 2;
        Some(Self {
            offset_ns: (i128::from(shortest.there_ns) - i128::from(middle)) as i64,
            rtt_min_ns: rtts[0],
            rtt_p50_ns: rtts[rtts.len() / 2],
            rtt_max_ns: rtts[rtts.len() - 1],
            at_ns: shortest.asked_ns,
        })
    }

    /// The instant of the clock there that is this one here.
    pub fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.offset_ns)
    }

    /// Why a host that is so far away cannot start with the others; `None` where it can.
    pub fn why_too_far(&self) -> Option<String> {
        (self.rtt_min_ns > MOST_RTT_NS).then(|| {
            format!(
                "the shortest of its answers took {:.1} ms, and {:.0} ms are the most with which \
                hosts start together: give it a better network",
                self.rtt_min_ns as f64 / 1e6,
                MOST_RTT_NS as f64 / 1e6
            )
        })
    }

    /// By how many nanoseconds the clock there has jumped since an earlier offset; `None` where it
    /// went on as clocks do. A machine that is paused or moved has a clock that does not.
    pub fn jump_since(&self, earlier: &Self) -> Option<i64> {
        let span_ns = self.at_ns.saturating_sub(earlier.at_ns);
        let known_to_ns = (self.rtt_min_ns + earlier.rtt_min_ns) / 2;
        let usual_ns = MOST_CHANGE_NS + known_to_ns + span_ns / 1_000_000 * MOST_CHANGE_PPM;
        let change_ns = self.offset_ns.saturating_sub(earlier.offset_ns);
        (change_ns.unsigned_abs() > usual_ns).then_some(change_ns)
    }

    /// How much the clock there has gained since an earlier offset, in millionths; `None` when too
    /// little time has passed to tell.
    pub fn drift_ppm_since(&self, earlier: &Self) -> Option<f64> {
        let span_ns = self.at_ns.saturating_sub(earlier.at_ns);
        (span_ns >= LEAST_SPAN_NS)
            .then(|| (self.offset_ns - earlier.offset_ns) as f64 * 1e6 / span_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_round_trip_decides() {
        let ping = |asked_ns, there_ns, answered_ns| Ping {
            asked_ns,
            there_ns,
            answered_ns,
        };
        // The clock there is 1,000 ahead; the second answer was held up on its way back.
        let pings = [
            ping(100, 1_150, 200),
            ping(300, 1_350, 2_300),
            ping(400, 1_460, 500),
        ];
        let offset = Offset::of(&pings).unwrap();
        assert_eq!(
            (offset.offset_ns, offset.rtt_min_ns, offset.rtt_p50_ns),
            (1_000, 100, 100)
        );
        assert_eq!(offset.rtt_max_ns, 2_000);
        assert_eq!(offset.there(5_000), 6_000);
        assert_eq!(Offset::of(&[]), None);
        // A host that was started later is behind.
        let behind = Offset::of(&[ping(5_000, 50, 5_100)]).unwrap();
        assert_eq!((behind.offset_ns, behind.there(6_000)), (-5_000, 1_000));
    }

    /// A step was counted whatever the clock of a host did meanwhile.
    #[test]
    fn a_clock_that_jumps_is_told_from_one_that_drifts() {
        let at = |offset_ns, at_ns| Offset {
            offset_ns,
            at_ns,
            rtt_min_ns: 2_000_000,
            ..Offset::default()
        };
        let begin = at(-5_000_000_000, 0);
        let hour_ns = 3_600_000_000_000;
        // 500 millionths over half an hour, and what two round trips leave open in no time.
        assert_eq!(
            at(-4_100_000_000, 1_800_000_000_000).jump_since(&begin),
            None
        );
        assert_eq!(at(-4_988_000_001, 0).jump_since(&begin), None);
        let ahead = at(-5_000_000_000 + hour_ns, 2_000_000_000);
        assert_eq!(ahead.jump_since(&begin), Some(hour_ns));
        // It stood still for a second of a step of ten.
        let behind = at(-6_000_000_000, 10_000_000_000);
        assert_eq!(behind.jump_since(&begin), Some(-1_000_000_000));
    }

    #[test]
    fn drift_is_told_for_long_steps_alone() {
        let at = |offset_ns, at_ns| Offset {
            offset_ns,
            at_ns,
            ..Offset::default()
        };
        let begin = at(500, 0);
        assert_eq!(
            at(500 + 400_000, 20_000_000_000).drift_ppm_since(&begin),
            Some(20.0)
        );
        assert_eq!(at(900, 9_000_000_000).drift_ppm_since(&begin), None);
    }
}
