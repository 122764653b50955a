//! Where the clients were, when that was not beside the server.

use std::collections::BTreeMap;

use plimsoll_core::record::ClientHostRecord;
use plimsoll_core::units::format_duration_ns;

use crate::view::View;

/// A note that names the hosts, with what is known of their networks and clocks.
pub(crate) fn client_hosts(view: &View) -> Option<String> {
    let used = view.results.iter().filter(|result| result.is_used);
    note(used.flat_map(|result| &result.client_hosts))
}

fn note<'a>(records: impl Iterator<Item = &'a ClientHostRecord>) -> Option<String> {
    let mut hosts: BTreeMap<&str, Vec<&ClientHostRecord>> = BTreeMap::new();
    for record in records {
        hosts.entry(&record.host).or_default().push(record);
    }
    let is_shared = hosts.values().flatten().any(|of| of.shares_machine);
    let hosts: Vec<String> = hosts.iter().map(|(host, of)| of_host(host, of)).collect();
    let where_to = match is_shared {
        true => "client hosts, and not only on other machines than the servers",
        false => "other machines than the servers",
    };
    (!hosts.is_empty()).then(|| {
        format!(
            "Clients ran on {where_to}: {}. Latencies have the network in them; the servers' CPU \
            has no client in it.",
            hosts.join("; ")
        )
    })
}

fn of_host(host: &str, of: &[&ClientHostRecord]) -> String {
    let most = |value: fn(&ClientHostRecord) -> u64| of.iter().map(|of| value(of)).max();
    let least = |value: fn(&ClientHostRecord) -> u64| of.iter().map(|of| value(of)).min();
    let time = |ns: Option<u64>| format_duration_ns(ns.unwrap_or(0));
    let drift = of.iter().filter_map(|of| of.drift_ppm);
    let drift = drift.max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let drift = drift.map_or(String::new(), |ppm| format!(", drift up to {ppm:+.0} ppm"));
    let place = match of.iter().any(|of| of.shares_machine) {
        true => "the servers' own machine, whose CPUs it shares, ",
        false => "",
    };
    format!(
        "{host} ({place}a query's round trip {} to {} in the median, clock known to {}{drift})",
        time(least(|of| of.query_rtt_p50_ns)),
        time(most(|of| of.query_rtt_p50_ns)),
        time(most(|of| of.link_rtt_min_ns / 2)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_with_network_and_clock() {
        assert_eq!(note([].iter()), None);
        let record = |host: &str, rtt, drift_ppm| ClientHostRecord {
            host: host.to_owned(),
            query_rtt_p50_ns: rtt,
            link_rtt_min_ns: 300_000,
            drift_ppm,
            ..ClientHostRecord::default()
        };
        let records = [
            record("cl2", 2_000_000, None),
            record("cl1", 1_000_000, Some(-12.4)),
            record("cl1", 3_000_000, Some(3.0)),
        ];
        let text = note(records.iter()).unwrap();
        assert!(
            text.contains("cl1 (a query's round trip 1.0ms to 3.0ms in the median")
                && text.contains("drift up to -12 ppm)")
                && text.contains("; cl2 (a query's round trip 2.0ms to 2.0ms"),
            "{text}"
        );
        assert!(text.starts_with("Clients ran on other machines than the servers: cl1 ("));
    }

    /// It was said to be another machine, whatever it was.
    #[test]
    fn a_host_that_is_the_servers_machine_is_said_to_be() {
        let record = ClientHostRecord {
            host: "here".to_owned(),
            shares_machine: true,
            ..ClientHostRecord::default()
        };
        let text = note([&record].into_iter()).unwrap();
        assert!(
            text.starts_with("Clients ran on client hosts, and not only on other machines")
                && text.contains("here (the servers' own machine, whose CPUs it shares, a query's"),
            "{text}"
        );
    }
}
