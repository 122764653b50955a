//! Which clients are whose.

use std::ops::RangeInclusive;

/// Shares out the clients 1 to `clients` over so many hosts, in order and as evenly as possible:
/// the first hosts have one more where it does not come out even. Hosts beyond the clients have
/// none and are left out. Rates follow: the schedule of a client is its own.
pub(super) fn shares(clients: u32, hosts: usize) -> Vec<RangeInclusive<u32>> {
    let hosts = u32::try_from(hosts).unwrap_or(u32::MAX).min(clients);
    let mut next = 1;
    (0..hosts)
        .map(|host| {
            let count = clients / hosts + u32::from(host < clients % hosts);
            let first = next;
            next += count;
            first..=next - 1
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_on_one_host() {
        assert_eq!(shares(5, 2), [1..=3, 4..=5]);
        assert_eq!(shares(4, 1), [1..=4]);
        assert_eq!(shares(2, 3), [1..=1, 2..=2]);
        assert_eq!(shares(0, 3), []);
        for (clients, hosts) in [(64, 3), (7, 7), (100, 16)] {
            let all: Vec<u32> = shares(clients, hosts).into_iter().flatten().collect();
            assert_eq!(all, (1..=clients).collect::<Vec<_>>());
        }
    }
}
