//! Whether cells ran on the same machine: numbers of two machines compare the machines too.

use std::collections::BTreeMap;

use plimsoll_core::units::BYTES_PER_GIB;

/// Facts of an environment that make a machine another one.
const IDENTITY: [&str; 3] = ["cpu_model", "cpus_online", "memory_bytes"];

/// What tells a machine from others, by name; empty where it is not known.
pub(crate) type Identity = BTreeMap<&'static str, String>;

/// The machine that has these facts of an environment.
pub(crate) fn identity(facts: &BTreeMap<String, String>) -> Identity {
    let known = |name: &&'static str| {
        Some((*name, facts.get(*name)?)).filter(|(_, value)| !value.starts_with("unavailable"))
    };
    let text = |(name, value): (&'static str, &String)| match (name, value.parse::<f64>()) {
        // Memory differs by a little from one start of a machine to the next.
        ("memory_bytes", Ok(bytes)) => ("memory", format!("{:.0} GiB", bytes / BYTES_PER_GIB)),
        _ => (name, value.clone()),
    };
    IDENTITY.iter().filter_map(known).map(text).collect()
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
}
