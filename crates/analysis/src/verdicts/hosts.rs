//! A ratio host by host: does it hold on every machine?

use std::collections::BTreeMap;

use plimsoll_stats::{Group, Groups, as_percent, compare_groups};

use super::finding::Call;
use crate::metrics::Direction;

/// The level at which a host is said to disagree, over all hosts of a ratio.
const LEVEL: f64 = 0.01;

/// What the blocks of one host say.
#[derive(Clone, Debug, PartialEq)]
pub struct OfHost {
    /// Its name.
    pub host: String,
    /// The geometric mean of its ratios.
    pub ratio: f64,
    /// How many there are.
    pub blocks: usize,
    /// Whether its ratio differs from that of the others by more than chance, and by more than the
    /// margin.
    pub disagrees: bool,
}

/// The hosts of a ratio, and how much wider its interval is because they disagree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ByHost {
    /// In the order of their names; none with one host.
    pub hosts: Vec<OfHost>,
    /// 1 if none disagrees.
    pub widening: f64,
}

/// From log ratios with their hosts.
pub(crate) fn by_host(ratios: &[(String, f64)], margin: f64) -> ByHost {
    let mut of_host: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (host, ratio) in ratios {
        of_host.entry(host).or_default().push(*ratio);
    }
    let names: Vec<&str> = of_host.keys().copied().collect();
    let values: Vec<Vec<f64>> = of_host.into_values().collect();
    let Some(compared) = compare_groups(&values) else {
        return ByHost {
            hosts: Vec::new(),
            widening: 1.0,
        };
    };
    let off = disagreeing(&values, margin);
    let hosts = names.iter().zip(&compared.groups).enumerate();
    let of_host = |(index, (host, group)): (usize, (&&str, &Group))| OfHost {
        host: (*host).to_owned(),
        ratio: group.mean.exp(),
        blocks: group.count,
        disagrees: off.contains(&index),
    };
    ByHost {
        widening: match off.is_empty() {
            true => 1.0,
            false => compared.widening,
        },
        hosts: hosts.map(of_host).collect(),
    }
}

/// The hosts that are not like the others. One that is far off moves the mean of the others away
/// from each of them, so the farthest is taken out before the rest is looked at. Of two that differ
/// neither is right.
fn disagreeing(values: &[Vec<f64>], margin: f64) -> Vec<usize> {
    let mut left: Vec<usize> = (0..values.len()).collect();
    let mut off = Vec::new();
    loop {
        let of_left: Vec<Vec<f64>> = left.iter().map(|index| values[*index].clone()).collect();
        let Some(Groups { groups, .. }) = compare_groups(&of_left) else {
            return off;
        };
        let distance = |group: &Group| (group.mean - group.others).abs();
        let is_off =
            |group: &&Group| group.p.is_some_and(|p| p < LEVEL) && distance(group) > margin.ln_1p();
        let found = groups.iter().enumerate().filter(|(_, group)| is_off(group));
        let farthest = found.max_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
        match farthest.map(|(place, _)| place) {
            None => return off,
            Some(_) if left.len() == 2 => {
                off.append(&mut left);
                return off;
            }
            Some(place) => off.push(left.remove(place)),
        }
    }
}

/// `holds on 3 of 3 hosts`, with what each says where one does not agree; empty with one host.
pub(crate) fn in_words(hosts: &[OfHost], call: &Call, direction: Direction, margin: f64) -> String {
    if hosts.len() < 2 {
        return String::new();
    }
    let holds = |host: &&OfHost| {
        let gain = direction.gain(host.ratio.ln());
        match call.word() {
            "regression" => gain < 0.0,
            "improvement" => gain > 0.0,
            "equivalent" => gain.abs() <= margin.ln_1p(),
            _ => !host.disagrees,
        }
    };
    let holding = hosts.iter().filter(holds).count();
    let verb = match call.word() {
        "regression" | "improvement" | "equivalent" => "holds on",
        _ => "alike on",
    };
    let mut words = format!("{verb} {holding} of {} hosts", hosts.len());
    let disagreeing: Vec<&str> = hosts
        .iter()
        .filter(|host| host.disagrees)
        .map(|host| host.host.as_str())
        .collect();
    if holding < hosts.len() || !disagreeing.is_empty() {
        let each: Vec<String> = hosts
            .iter()
            .map(|host| {
                let blocks = host.blocks;
                let noun = if blocks == 1 { "block" } else { "blocks" };
                let change = as_percent(host.ratio.ln());
                format!("{} {change:+.1} % in {blocks} {noun}", host.host)
            })
            .collect();
        words.push_str(&format!(": {}", each.join(", ")));
    }
    if !disagreeing.is_empty() {
        let verb = if disagreeing.len() == 1 {
            "disagrees"
        } else {
            "disagree"
        };
        words.push_str(&format!("; {} {verb}", disagreeing.join(" and ")));
    }
    words
}

#[cfg(test)]
mod tests {
    use plimsoll_stats::Verdict;

    use super::*;

    fn ratios(of: &[(&str, &[f64])]) -> Vec<(String, f64)> {
        let each = |(host, logs): &(&str, &[f64])| -> Vec<(String, f64)> {
            logs.iter().map(|log| ((*host).to_owned(), *log)).collect()
        };
        of.iter().flat_map(each).collect()
    }

    #[test]
    fn a_host_that_disagrees_is_named_and_widens() {
        let alike = by_host(
            &ratios(&[
                ("h1", &[-0.10, -0.11]),
                ("h2", &[-0.10, -0.105]),
                ("h3", &[-0.095, -0.10]),
            ]),
            0.03,
        );
        assert_eq!(alike.widening, 1.0);
        let call = Call::Verdict(Verdict::Regression);
        let words = in_words(&alike.hosts, &call, Direction::Higher, 0.03);
        assert_eq!(words, "holds on 3 of 3 hosts");

        let one_off = by_host(
            &ratios(&[
                ("h1", &[-0.10, -0.11]),
                ("h2", &[-0.10, -0.105]),
                ("h3", &[0.01, 0.012]),
            ]),
            0.03,
        );
        assert!(one_off.widening > 1.2, "{}", one_off.widening);
        let words = in_words(&one_off.hosts, &call, Direction::Higher, 0.03);
        assert!(
            words.starts_with("holds on 2 of 3 hosts: h1 -10.0 % in 2 blocks, ")
                && words.ends_with("h3 +1.1 % in 2 blocks; h3 disagrees"),
            "{words}"
        );
    }

    #[test]
    fn of_two_hosts_that_differ_neither_is_right() {
        let two = by_host(
            &ratios(&[("a", &[-0.10, -0.11, -0.105]), ("b", &[0.0, 0.004, 0.002])]),
            0.03,
        );
        assert!(two.hosts.iter().all(|host| host.disagrees));
        let call = Call::Verdict(Verdict::Inconclusive);
        let words = in_words(&two.hosts, &call, Direction::Higher, 0.03);
        assert!(words.ends_with("; a and b disagree"), "{words}");
    }

    #[test]
    fn one_host_and_little_difference_say_nothing() {
        let alone = by_host(&ratios(&[("h1", &[-0.1, 0.1])]), 0.03);
        let call = Call::Verdict(Verdict::Inconclusive);
        assert_eq!(in_words(&alone.hosts, &call, Direction::Higher, 0.03), "");
        // Far from chance, and within the margin.
        let close = by_host(
            &ratios(&[("a", &[0.0, 0.0001, 0.0]), ("b", &[0.01, 0.0101, 0.01])]),
            0.03,
        );
        assert!(!close.hosts.iter().any(|host| host.disagrees));
        let words = in_words(&close.hosts, &call, Direction::Higher, 0.03);
        assert_eq!(words, "alike on 2 of 2 hosts");
    }
}
