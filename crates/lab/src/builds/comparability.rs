//! Whether builds differ only in what is being compared.

use plimsoll_engine::InstalledBuild;

use super::toolchain::{COMPILER, OPTIMISATION, PACKAGER, UNKNOWN, compiler_major};

/// Sentences that say in what else the builds differ: who packaged them, compiler generation, optimisation flags. What a build does
/// not tell counts as different from what another tells; what none tells is said once. Empty when all is known and alike.
pub fn comparability(builds: &[&InstalledBuild]) -> Vec<String> {
    let facts = [(PACKAGER, "packagers"), (COMPILER, "compilers"), (OPTIMISATION, "optimisation flags")];
    facts.iter().filter_map(|(key, what)| sentence(builds, key, what)).collect()
}

fn sentence(builds: &[&InstalledBuild], key: &str, what: &str) -> Option<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for build in builds {
        let stated = build.toolchain.get(key).map_or(UNKNOWN, String::as_str);
        let value = if key == COMPILER { compiler_major(stated) } else { stated.to_owned() };
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(&build.name),
            None => groups.push((value, vec![&build.name])),
        }
    }
    match groups.as_slice() {
        [] => None,
        [_] if builds.len() < 2 => None,
        [(value, _)] => (value == UNKNOWN).then(|| format!("not known to be strictly comparable: the {what} of all are unknown")),
        _ => {
            let parts: Vec<String> = groups.iter().map(|(value, names)| format!("{value} ({})", names.join(", "))).collect();
            Some(format!("not strictly comparable: {what} differ: {}", parts.join("; ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_core::name::EngineName;
    use plimsoll_engine::DataInit;

    use super::*;

    fn build(name: &str, packager: &str, compiler: &str, optimisation: &str) -> InstalledBuild {
        let facts = [(PACKAGER, packager), (COMPILER, compiler), (OPTIMISATION, optimisation)];
        InstalledBuild {
            name: name.into(),
            engine: EngineName::Mysql,
            version: "1".into(),
            origin: String::new(),
            toolchain: facts.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            server_sha256: String::new(),
            server: "/s".into(),
            basedir: "/".into(),
            share_dir: None,
            plugin_dir: None,
            init: DataInit::Initialize,
            env: BTreeMap::new(),
            server_options: Vec::new(),
            storage_plugins: BTreeMap::new(),
        }
    }

    #[test]
    fn differences_are_told_one_by_one() {
        let a = build("a", "vendor", "gcc 4.4.7", "-O3");
        let b = build("b", "vendor", "gcc 4.4.1", "-O3");
        let c = build("c", "Debian", "gcc 12.2.0", "-O2");
        let d = build("d", "Debian", UNKNOWN, UNKNOWN);
        let e = build("e", "Debian", UNKNOWN, UNKNOWN);
        for (builds, wanted) in [
            (vec![], vec![]),
            (vec![&d], vec![]),
            (vec![&a, &b], vec![]),
            (
                vec![&a, &b, &c],
                vec![
                    "not strictly comparable: packagers differ: vendor (a, b); Debian (c)",
                    "not strictly comparable: compilers differ: gcc 4.4 (a, b); gcc 12 (c)",
                    "not strictly comparable: optimisation flags differ: -O3 (a, b); -O2 (c)",
                ],
            ),
            (
                vec![&c, &d],
                vec![
                    "not strictly comparable: compilers differ: gcc 12 (c); unknown (d)",
                    "not strictly comparable: optimisation flags differ: -O2 (c); unknown (d)",
                ],
            ),
            (
                vec![&d, &e],
                vec![
                    "not known to be strictly comparable: the compilers of all are unknown",
                    "not known to be strictly comparable: the optimisation flags of all are unknown",
                ],
            ),
        ] {
            assert_eq!(comparability(&builds), wanted);
        }
    }
}
