//! Plans and configs that travel inside the binary, so that it works in any folder.

use plimsoll_core::name::EngineName;

/// Name and text of every shipped plan. The first is the default.
pub const SHIPPED_PLANS: [(&str, &str); 3] = [
    ("quick", include_str!("../../../plans/quick.toml")),
    ("insert-benchmark", include_str!("../../../plans/insert-benchmark.toml")),
    ("client-ceiling", include_str!("../../../plans/client-ceiling.toml")),
];

const SHIPPED_CONFIGS: [(EngineName, &str, &str); 19] = [
    (EngineName::Sqlite, "delete_full", include_str!("../../../configs/sqlite/delete_full.conf")),
    (EngineName::Sqlite, "wal_full", include_str!("../../../configs/sqlite/wal_full.conf")),
    (EngineName::Sqlite, "wal_normal", include_str!("../../../configs/sqlite/wal_normal.conf")),
    (EngineName::Sqlite, "wal_off", include_str!("../../../configs/sqlite/wal_off.conf")),
    (EngineName::Mysql, "cz12a", include_str!("../../../configs/mysql/cz12a.cnf")),
    (EngineName::Mysql, "cz12a55", include_str!("../../../configs/mysql/cz12a55.cnf")),
    (EngineName::Mysql, "cz12adur", include_str!("../../../configs/mysql/cz12adur.cnf")),
    (EngineName::Mysql, "cz12aio", include_str!("../../../configs/mysql/cz12aio.cnf")),
    (EngineName::Mysql, "cz12aps0", include_str!("../../../configs/mysql/cz12aps0.cnf")),
    (EngineName::Mariadb, "cz12a", include_str!("../../../configs/mariadb/cz12a.cnf")),
    (EngineName::Mariadb, "cz12adur", include_str!("../../../configs/mariadb/cz12adur.cnf")),
    (EngineName::Mariadb, "cz12aio", include_str!("../../../configs/mariadb/cz12aio.cnf")),
    (EngineName::Mariadb, "cz12aps0", include_str!("../../../configs/mariadb/cz12aps0.cnf")),
    (EngineName::Mariadb, "cza1", include_str!("../../../configs/mariadb/cza1.cnf")),
    (EngineName::Postgres, "cx10b", include_str!("../../../configs/postgres/cx10b.conf")),
    (EngineName::Postgres, "cx10bdur", include_str!("../../../configs/postgres/cx10bdur.conf")),
    (EngineName::Postgres, "cx10bio", include_str!("../../../configs/postgres/cx10bio.conf")),
    (EngineName::Postgres, "cx10blog", include_str!("../../../configs/postgres/cx10blog.conf")),
    (EngineName::Null, "none", include_str!("../../../configs/null/none.conf")),
];

/// The text of a shipped plan.
pub fn shipped_plan(name: &str) -> Option<&'static str> {
    SHIPPED_PLANS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The text of a shipped config.
pub(crate) fn shipped_config(engine: EngineName, label: &str) -> Option<&'static str> {
    SHIPPED_CONFIGS.iter().find(|(known, name, _)| *known == engine && *name == label).map(|(_, _, text)| *text)
}

/// The labels of an engine's shipped configs.
pub(crate) fn shipped_config_labels(engine: EngineName) -> Vec<&'static str> {
    SHIPPED_CONFIGS.iter().filter(|(known, _, _)| *known == engine).map(|(_, label, _)| *label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::plan::Plan;

    #[test]
    fn every_shipped_plan_is_valid_and_finds_its_configs() {
        for (name, text) in SHIPPED_PLANS {
            let plan = Plan::parse(name, text).unwrap();
            assert_eq!(plan.name, name);
            for cell in &plan.cells {
                assert!(shipped_config(cell.build.engine, &cell.config.label).is_some(), "{}", cell.label);
            }
        }
    }
}
