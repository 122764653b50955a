//! Whether cells ran on the same machine: numbers of two machines compare the machines too.

use std::collections::BTreeMap;

use plimsoll_core::units::BYTES_PER_GIB;
use plimsoll_store::ClientHostsHeader;

/// Facts of an environment that make a machine another one.
const IDENTITY: [&str; 3] = ["cpu_model", "cpus_online", "memory_bytes"];

/// What tells a machine from others, by name; empty where it is not known.
pub(crate) type Identity = BTreeMap<&'static str, String>;

/// The machine that has these facts of an environment, with the hosts that its clients were on: a
/// network is part of what such runs measure.
pub(crate) fn identity(
    facts: &BTreeMap<String, String>,
    clients: Option<&ClientHostsHeader>,
) -> Identity {
    let known = |name: &&'static str| {
        Some((*name, facts.get(*name)?)).filter(|(_, value)| !value.starts_with("unavailable"))
    };
    let text = |(name, value): (&'static str, &String)| match (name, value.parse::<f64>()) {
        // Memory differs by a little from one start of a machine to the next.
        ("memory_bytes", Ok(bytes)) => ("memory", format!("{:.0} GiB", bytes / BYTES_PER_GIB)),
        _ => (name, value.clone()),
    };
    let clients = clients.map_or("next to the server".to_owned(), |hosts| {
        format!("on {}", hosts.names.join(", "))
    });
    let machine = IDENTITY.iter().filter_map(known).map(text);
    machine.chain([("clients", clients)]).collect()
}

/// What differs between two machines, where both are known.
pub(crate) fn difference(a: &Identity, b: &Identity) -> Option<String> {
    let differs = |(name, value): (&&str, &String)| {
        let other = b.get(*name).filter(|other| *other != value)?;
        Some(format!(
            "{} {value} against {other}",
            name.replace('_', " ")
        ))
    };
    let parts: Vec<String> = a.iter().filter_map(differs).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use plimsoll_core::units::GIB;

    use super::*;

    #[test]
    fn a_machine_is_its_processors_and_memory() {
        let identity = |facts: &BTreeMap<String, String>| identity(facts, None);
        let facts = |cpu: &str, memory: u64, kernel: &str| {
            let memory = memory.to_string();
            let facts = [
                ("cpu_model", cpu),
                ("cpus_online", "2"),
                ("memory_bytes", &memory),
                ("kernel", kernel),
            ];
            facts
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        assert_eq!(
            identity(&facts("A", 24 * GIB, "6.1")),
            identity(&facts("A", (24 * GIB) - 4096, "6.2"))
        );
        assert_ne!(
            identity(&facts("A", 24 * GIB, "6.1")),
            identity(&facts("B", 24 * GIB, "6.1"))
        );
        assert_ne!(
            identity(&facts("A", 24 * GIB, "6.1")),
            identity(&facts("A", 32 * GIB, "6.1"))
        );
        assert!(!identity(&facts("unavailable (x)", 1, "6.1")).contains_key("cpu_model"));
    }

    /// Runs with clients on other hosts were compared without a word.
    #[test]
    fn hosts_of_clients_are_a_part_of_where_a_cell_ran() {
        let facts = BTreeMap::from([("cpu_model".to_owned(), "A".to_owned())]);
        let hosts = |names: &[&str]| ClientHostsHeader {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            server_address: None,
        };
        let here = identity(&facts, None);
        let away = identity(&facts, Some(&hosts(&["cl1", "cl2"])));
        assert_eq!(
            difference(&here, &away).unwrap(),
            "clients next to the server against on cl1, cl2"
        );
        let other = identity(&facts, Some(&hosts(&["cl3"])));
        assert_eq!(
            difference(&away, &other).unwrap(),
            "clients on cl1, cl2 against on cl3"
        );
        assert_eq!(difference(&away, &away), None);
    }
}
