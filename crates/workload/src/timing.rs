//! When the operations of a client are due.

use plimsoll_core::plan::{Step, TestRate};
use plimsoll_core::seed::derive;
use plimsoll_load::Arrival;

const SECOND_NS: u64 = 1_000_000_000;

/// A client's share of a step's rate; clients are out of phase. Without a rate it sends the next
/// operation when the last is done.
pub(crate) fn arrival(
    rate: Option<TestRate>,
    seed: u64,
    stream: &str,
    step: &Step,
    client: u32,
) -> Arrival {
    let Some(rate) = rate else {
        return Arrival::Closed;
    };
    let (operations, clients) = (rate.per_s, u64::from(step.clients));
    let period_ns = clients * SECOND_NS;
    if rate.is_poisson {
        let seed = derive(seed, &[stream, &step.name, &client.to_string()]);
        return Arrival::Poisson {
            operations,
            period_ns,
            seed,
        };
    }
    Arrival::Even {
        operations,
        period_ns,
        phase_ns: u64::from(client - 1) * SECOND_NS / operations,
    }
}
