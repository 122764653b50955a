//! When a machine counts as disturbed from outside. Whoever looks, the orchestrator or the report,
//! looks with these limits.

/// More of all CPU time given to other guests than this share.
pub const STEAL_LIMIT: f64 = 0.01;

/// More CPU than this, in cores, used by others than the clients and the engine. The kernel's own
/// threads count as others, and some of them do the engine's I/O: a limit of 0.02 cores, say, would
/// flag every step bound by fsync.
pub const FOREIGN_CORES_LIMIT: f64 = 0.25;

/// A turn counts as disturbed if other guests or other processes took more than this share of it: a
/// typical turn's own scatter is 1 to 2 %.
const TURN_SHARE: f64 = 0.05;
/// The same for other processes that are counted in ticks.
const SHARE_IN_TICKS: f64 = 0.25;
/// The kernel tells the whole machine's CPU in ticks of 10 ms: one turn's may be wrong by one tick
/// at its beginning and one at its end.
const TICKS_NS: f64 = 20e6;

/// CPU of processes in a turn which are not part of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignCpu {
    /// By the clock of each process.
    Exact(i64),
    /// The whole machine's less ours, in ticks.
    InTicks(i64),
}

/// Whether a turn of this length was disturbed: by other processes, or by what other guests took.
/// Stolen time comes in ticks, too, but nothing is subtracted from it, so no tick of it is ours.
pub fn is_turn_disturbed(
    length_ns: u64,
    foreign: Option<ForeignCpu>,
    stolen_ns: Option<u64>,
) -> bool {
    let share_ns = |share: f64| share * length_ns as f64;
    let is_foreign = foreign.is_some_and(|foreign| match foreign {
        ForeignCpu::Exact(ns) => ns as f64 > share_ns(TURN_SHARE),
        ForeignCpu::InTicks(ns) => ns as f64 > share_ns(SHARE_IN_TICKS) + TICKS_NS,
    });
    is_foreign || stolen_ns.is_some_and(|ns| ns as f64 > share_ns(TURN_SHARE))
}

/// A candidate is favoured or held back where its leakage one way is above that the other way by
/// more than this, in cores.
const LEAK_CORES_LIMIT: f64 = 0.05;

/// What engines do while it is not their turn: compacting, purging, flushing; servers are stopped
/// and do next to nothing. It is worked off beside another candidate, which pays for it and not
/// who left it. If a candidate leaves as much as it suffers, no ratio is shifted; where it does
/// not, all of its ratios are, and the A/A control, two of one kind, cannot see that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Leakage {
    suffered_ns: u64,
    left_ns: u64,
    active_ns: u64,
}

impl Leakage {
    /// Adds a turn: its length, CPU of other candidates' servers in it, and CPU of its own server
    /// since its turn before. Where the second is not known the turn does not count; without the
    /// third it counts as if nothing was left.
    pub fn add(&mut self, active_ns: u64, suffered_ns: Option<u64>, left_ns: Option<u64>) {
        let Some(suffered_ns) = suffered_ns else {
            return;
        };
        self.suffered_ns += suffered_ns;
        self.left_ns += left_ns.unwrap_or(0);
        self.active_ns += active_ns;
    }

    /// What is left less what is suffered, in cores during its turns; none without a turn.
    pub fn net_cores(&self) -> Option<f64> {
        (self.active_ns > 0).then(|| self.left_cores() - self.suffered_cores())
    }

    /// Whether it shifts ratios by more than may be.
    pub fn is_high(&self) -> bool {
        self.net_cores()
            .is_some_and(|cores| cores.abs() > LEAK_CORES_LIMIT)
    }

    fn left_cores(&self) -> f64 {
        self.left_ns as f64 / self.active_ns as f64
    }

    fn suffered_cores(&self) -> f64 {
        self.suffered_ns as f64 / self.active_ns as f64
    }
}

impl std::fmt::Display for Leakage {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (suffered, left) = (self.suffered_cores(), self.left_cores());
        write!(
            to,
            "other servers used {suffered:.2} cores in its turns, and its own {left:.2} in theirs: \
            more than {LEAK_CORES_LIMIT} apart"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_missed_a_turn_is_no_disturbance() {
        let ms = 1_000_000;
        let is = |foreign: i64, stolen: u64| {
            let foreign = ForeignCpu::InTicks(foreign * ms as i64);
            is_turn_disturbed(20 * ms, Some(foreign), Some(stolen * ms))
        };
        assert!(!is(0, 0) && !is(-15, 0) && !is(20, 0), "two ticks");
        assert!(is(30, 0) && is(0, 10), "another process, another guest");
        assert!(!is_turn_disturbed(1000 * ms, None, Some(10 * ms)));
        assert!(!is_turn_disturbed(20 * ms, None, None));
    }

    #[test]
    fn a_millisecond_that_is_known_is_one() {
        let is = |ns: i64| is_turn_disturbed(20_000_000, Some(ForeignCpu::Exact(ns)), None);
        assert!(!is(900_000) && is(1_100_000));
    }

    #[test]
    fn only_leakage_that_is_one_sided_is_high() {
        let of = |turns: &[(Option<u64>, Option<u64>)]| {
            let mut leakage = Leakage::default();
            turns
                .iter()
                .for_each(|&(suffered, left)| leakage.add(1_000, suffered, left));
            leakage
        };
        assert!(!Leakage::default().is_high(), "no turns");
        assert!(
            !of(&[(Some(150), Some(110)), (Some(100), Some(130))]).is_high(),
            "as much one way as the other"
        );
        assert!(of(&[(Some(10), Some(70))]).is_high() && of(&[(Some(70), Some(10))]).is_high());
        assert!(
            of(&[(Some(70), None)]).is_high() && !of(&[(Some(40), None)]).is_high(),
            "what was left is not known"
        );
        assert!(
            !of(&[(None, Some(900))]).is_high(),
            "what was suffered is not known"
        );
        let text = of(&[(Some(70), Some(200))]).to_string();
        assert_eq!(
            text,
            "other servers used 0.07 cores in its turns, and its own 0.20 in theirs: more than \
            0.05 apart"
        );
    }
}
