//! When a machine counts as disturbed from outside. Whoever looks, the orchestrator or the report,
//! looks with these limits.

use serde::{Deserialize, Serialize};

/// When a machine counts as disturbed: a plan's `[limits]`. Shares of the CPU time of all CPUs, so
/// that they say the same of a small machine and of a large one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Of a step, given to other guests.
    pub steal: f64,
    /// Of a step, used by others than the clients and the engine. The kernel's own threads count as
    /// others, and some of them do the engine's I/O: a limit of 1 %, say, would flag every step
    /// bound by fsync.
    pub foreign: f64,
    /// Of a turn of a step that reads, used by others or given to other guests: its round is left
    /// out of throughput. A typical turn's own scatter is 1 to 2 %.
    pub turn: f64,
    /// How far what a candidate leaves to others may be from what it suffers by them, in cores.
    pub leak: f64,
}

impl Default for Limits {
    /// On two CPUs a quarter of one in a step, and a twentieth of one in a turn.
    fn default() -> Self {
        Self {
            steal: 0.01,
            foreign: 0.125,
            turn: 0.025,
            leak: 0.05,
        }
    }
}

/// [`Limits`] on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitsHere {
    /// As [`Limits::steal`].
    pub steal: f64,
    /// [`Limits::foreign`], in cores.
    pub foreign_cores: f64,
    /// [`Limits::turn`], in cores.
    pub turn_cores: f64,
    /// As [`Limits::leak`].
    pub leak_cores: f64,
}

impl Limits {
    /// On a machine with so many CPUs; two if that is not known.
    pub fn on(&self, cpus: Option<f64>) -> LimitsHere {
        let cpus = cpus.unwrap_or(2.0);
        LimitsHere {
            steal: self.steal,
            foreign_cores: round(self.foreign * cpus),
            turn_cores: round(self.turn * cpus),
            leak_cores: self.leak,
        }
    }
}

impl LimitsHere {
    /// Whether others used too much in a step of so many seconds: more than the limit, and more
    /// than ticks may be wrong by.
    pub fn is_foreign(&self, cores: f64, seconds: f64) -> bool {
        (cores - self.foreign_cores) * seconds > STEP_TICKS_S
    }

    /// The same of what other guests took of all CPU time, as a share of `cpu_s` seconds of it.
    pub fn is_stolen(&self, share: f64, cpu_s: f64) -> bool {
        (share - self.steal) * cpu_s > STEP_TICKS_S
    }

    /// The limit of steal, in percent.
    pub fn steal_percent(&self) -> f64 {
        round(100.0 * self.steal)
    }
}

/// To millionths, so that it is printed as it was written.
fn round(value: f64) -> f64 {
    (1e6 * value).round() / 1e6
}

/// The kernel tells the whole machine's CPU in ticks of 10 ms, for each CPU and kind of its own: a
/// step's may be wrong by some of them at its beginning and at its end.
const STEP_TICKS_S: f64 = 0.05;
/// What other processes are counted in ticks for may be so many times as much.
const TIMES_IN_TICKS: f64 = 5.0;
/// One turn's may be wrong by one tick at its beginning and one at its end.
const TICKS_NS: f64 = 20e6;

/// CPU of processes in a turn which are not part of the campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignCpu {
    /// By the clock of each process.
    Exact(i64),
    /// The whole machine's less ours, in ticks.
    InTicks(i64),
}

/// Whether a turn of this length was disturbed: by other processes, or by what other guests took,
/// `cores` at most. Stolen time comes in ticks, too, but nothing is subtracted from it, so no tick
/// of it is ours.
pub fn is_turn_disturbed(
    cores: f64,
    length_ns: u64,
    foreign: Option<ForeignCpu>,
    stolen_ns: Option<u64>,
) -> bool {
    let limit_ns = cores * length_ns as f64;
    let is_foreign = foreign.is_some_and(|foreign| match foreign {
        ForeignCpu::Exact(ns) => ns as f64 > limit_ns,
        ForeignCpu::InTicks(ns) => ns as f64 > TIMES_IN_TICKS * limit_ns + TICKS_NS,
    });
    is_foreign || stolen_ns.is_some_and(|ns| ns as f64 > limit_ns)
}

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
    /// while the others had theirs. Where the second is not known the turn does not count; without the
    /// third it counts as if nothing was left, but for a first turn, behind which nobody has had one.
    pub fn add(
        &mut self,
        round: u32,
        active_ns: u64,
        suffered_ns: Option<u64>,
        left_ns: Option<u64>,
    ) {
        let Some(suffered_ns) = suffered_ns.filter(|_| round > 1 || left_ns.is_some()) else {
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

    /// What it is, if a candidate is favoured or held back by more than `limit`, in cores.
    pub fn above(&self, limit: f64) -> Option<String> {
        let is_high = self.net_cores().is_some_and(|cores| cores.abs() > limit);
        is_high.then(|| {
            let (suffered, left) = (self.suffered_cores(), self.left_cores());
            format!(
                "other servers used {suffered:.2} cores in its turns, and its own {left:.2} in \
                theirs: more than {limit} apart"
            )
        })
    }

    fn left_cores(&self) -> f64 {
        self.left_ns as f64 / self.active_ns as f64
    }

    fn suffered_cores(&self) -> f64 {
        self.suffered_ns as f64 / self.active_ns as f64
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
            is_turn_disturbed(0.05, 20 * ms, Some(foreign), Some(stolen * ms))
        };
        assert!(!is(0, 0) && !is(-15, 0) && !is(20, 0), "two ticks");
        assert!(is(30, 0) && is(0, 10), "another process, another guest");
        assert!(!is_turn_disturbed(0.05, 1000 * ms, None, Some(10 * ms)));
        assert!(!is_turn_disturbed(0.05, 20 * ms, None, None));
    }

    #[test]
    fn a_millisecond_that_is_known_is_one() {
        let is = |cpus: f64, ns: i64| {
            let cores = Limits::default().on(Some(cpus)).turn_cores;
            is_turn_disturbed(cores, 20_000_000, Some(ForeignCpu::Exact(ns)), None)
        };
        assert!(!is(2.0, 900_000) && is(2.0, 1_100_000));
        assert!(
            !is(64.0, 1_100_000) && is(64.0, 33_000_000),
            "more CPUs, more room"
        );
    }

    /// An embedded engine that compacts all the time suffered in its first turn what nobody had yet
    /// left to it: with eight turns it was 0.1 cores apart, and left out.
    #[test]
    fn a_first_turn_is_not_held_against_an_engine() {
        let mut leakage = Leakage::default();
        leakage.add(1, 1_000, Some(1_000), None);
        (2..=8).for_each(|round| leakage.add(round, 1_000, Some(1_000), Some(1_000)));
        assert_eq!(leakage.above(0.05), None);
    }

    #[test]
    fn only_leakage_that_is_one_sided_is_high() {
        let of = |turns: &[(Option<u64>, Option<u64>)]| {
            let mut leakage = Leakage::default();
            turns
                .iter()
                .zip(2..)
                .for_each(|(&(suffered, left), round)| leakage.add(round, 1_000, suffered, left));
            leakage
        };
        let is_high = |leakage: Leakage| leakage.above(0.05).is_some();
        assert!(!is_high(Leakage::default()), "no turns");
        assert!(
            !is_high(of(&[(Some(150), Some(110)), (Some(100), Some(130))])),
            "as much one way as the other"
        );
        assert!(is_high(of(&[(Some(10), Some(70))])) && is_high(of(&[(Some(70), Some(10))])));
        assert!(
            is_high(of(&[(Some(70), None)])) && !is_high(of(&[(Some(40), None)])),
            "what was left is not known"
        );
        assert!(
            !is_high(of(&[(None, Some(900))])),
            "what was suffered is not known"
        );
        let text = of(&[(Some(70), Some(200))]).above(0.05);
        assert_eq!(
            text.unwrap(),
            "other servers used 0.07 cores in its turns, and its own 0.20 in theirs: more than \
            0.05 apart"
        );
    }
}
