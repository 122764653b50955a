//! When the operations of a client are due.

use plimsoll_core::plan::Step;
use plimsoll_core::seed::derive;
use plimsoll_core::units::SECOND_NS;
use plimsoll_load::Arrival;

/// A client's share of a step's rate; clients are out of phase. Without a rate it sends the next
/// operation when the last is done.
pub(crate) fn arrival(seed: u64, stream: &str, step: &Step, client: u32) -> Arrival {
    let Some(rate) = step.arrival else {
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
