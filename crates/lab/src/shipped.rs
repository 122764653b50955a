//! Plans and configs that travel inside the binary, so that it works in any folder.

use plimsoll_core::name::EngineName;

/// Name and text of every shipped plan. The first is the default.
pub const SHIPPED_PLANS: [(&str, &str); 19] = [
    ("quick", include_str!("../../../plans/quick.toml")),
    (
        "insert-benchmark",
        include_str!("../../../plans/insert-benchmark.toml"),
    ),
    (
        "client-ceiling",
        include_str!("../../../plans/client-ceiling.toml"),
    ),
    (
        "innodb-5.6-to-9.7",
        include_str!("../../../plans/innodb-5.6-to-9.7.toml"),
    ),
    (
        "postgres-9.6-to-18",
        include_str!("../../../plans/postgres-9.6-to-18.toml"),
    ),
    (
        "mariadb-10.1-to-11.8",
        include_str!("../../../plans/mariadb-10.1-to-11.8.toml"),
    ),
    (
        "myrocks-vs-innodb",
        include_str!("../../../plans/myrocks-vs-innodb.toml"),
    ),
    (
        "perf-schema-cost",
        include_str!("../../../plans/perf-schema-cost.toml"),
    ),
    (
        "create-index",
        include_str!("../../../plans/create-index.toml"),
    ),
    (
        "one-table-16-clients",
        include_str!("../../../plans/one-table-16-clients.toml"),
    ),
    (
        "checksum-cost",
        include_str!("../../../plans/checksum-cost.toml"),
    ),
    (
        "sysbench-quick",
        include_str!("../../../plans/sysbench-quick.toml"),
    ),
    (
        "sysbench-mysql-5.6-to-9.7",
        include_str!("../../../plans/sysbench-mysql-5.6-to-9.7.toml"),
    ),
    ("ramp", include_str!("../../../plans/ramp.toml")),
    ("pk-fetch", include_str!("../../../plans/pk-fetch.toml")),
    ("shop", include_str!("../../../plans/shop.toml")),
    ("limit", include_str!("../../../plans/limit.toml")),
    (
        "rocksdb-quick",
        include_str!("../../../plans/rocksdb-quick.toml"),
    ),
    ("rocksdb-8x", include_str!("../../../plans/rocksdb-8x.toml")),
];

/// Path, as shipped plans name it, and text of every shipped workload file.
pub const SHIPPED_WORKLOADS: [(&str, &str); 2] = [
    (
        "workloads/shop.toml",
        include_str!("../../../plans/workloads/shop.toml"),
    ),
    (
        "workloads/limit.toml",
        include_str!("../../../plans/workloads/limit.toml"),
    ),
];

const SHIPPED_CONFIGS: [(EngineName, &str, &str); 31] = [
    (
        EngineName::Sqlite,
        "delete_full",
        include_str!("../../../configs/sqlite/delete_full.conf"),
    ),
    (
        EngineName::Sqlite,
        "wal_full",
        include_str!("../../../configs/sqlite/wal_full.conf"),
    ),
    (
        EngineName::Sqlite,
        "wal_normal",
        include_str!("../../../configs/sqlite/wal_normal.conf"),
    ),
    (
        EngineName::Sqlite,
        "wal_off",
        include_str!("../../../configs/sqlite/wal_off.conf"),
    ),
    (
        EngineName::Mysql,
        "cz12a",
        include_str!("../../../configs/mysql/cz12a.cnf"),
    ),
    (
        EngineName::Mysql,
        "cz12a55",
        include_str!("../../../configs/mysql/cz12a55.cnf"),
    ),
    (
        EngineName::Mysql,
        "cz12adur",
        include_str!("../../../configs/mysql/cz12adur.cnf"),
    ),
    (
        EngineName::Mysql,
        "cz12aio",
        include_str!("../../../configs/mysql/cz12aio.cnf"),
    ),
    (
        EngineName::Mysql,
        "cz12aps0",
        include_str!("../../../configs/mysql/cz12aps0.cnf"),
    ),
    (
        EngineName::Mariadb,
        "cz12a",
        include_str!("../../../configs/mariadb/cz12a.cnf"),
    ),
    (
        EngineName::Mariadb,
        "cz12adur",
        include_str!("../../../configs/mariadb/cz12adur.cnf"),
    ),
    (
        EngineName::Mariadb,
        "cz12aio",
        include_str!("../../../configs/mariadb/cz12aio.cnf"),
    ),
    (
        EngineName::Mariadb,
        "cz12aps0",
        include_str!("../../../configs/mariadb/cz12aps0.cnf"),
    ),
    (
        EngineName::Mariadb,
        "cza1",
        include_str!("../../../configs/mariadb/cza1.cnf"),
    ),
    (
        EngineName::Postgres,
        "cx10b",
        include_str!("../../../configs/postgres/cx10b.conf"),
    ),
    (
        EngineName::Postgres,
        "cx10bdur",
        include_str!("../../../configs/postgres/cx10bdur.conf"),
    ),
    (
        EngineName::Postgres,
        "cx10bio",
        include_str!("../../../configs/postgres/cx10bio.conf"),
    ),
    (
        EngineName::Postgres,
        "cx10blog",
        include_str!("../../../configs/postgres/cx10blog.conf"),
    ),
    (
        EngineName::Rocksdb,
        "lc_byrx_small",
        include_str!("../../../configs/rocksdb/lc_byrx_small.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_byrx_small",
        include_str!("../../../configs/rocksdb/uc_byrx_small.options"),
    ),
    (
        EngineName::Rocksdb,
        "lc_byrx_c4r16",
        include_str!("../../../configs/rocksdb/lc_byrx_c4r16.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_byrx_c4r16",
        include_str!("../../../configs/rocksdb/uc_byrx_c4r16.options"),
    ),
    (
        EngineName::Rocksdb,
        "lc_byrx_c40r256bc180",
        include_str!("../../../configs/rocksdb/lc_byrx_c40r256bc180.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_byrx_c40r256bc180",
        include_str!("../../../configs/rocksdb/uc_byrx_c40r256bc180.options"),
    ),
    (
        EngineName::Rocksdb,
        "lc_byos_c40bc1g",
        include_str!("../../../configs/rocksdb/lc_byos_c40bc1g.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_byos_c40bc1g",
        include_str!("../../../configs/rocksdb/uc_byos_c40bc1g.options"),
    ),
    (
        EngineName::Rocksdb,
        "lc_iobuf_c40r256bc180",
        include_str!("../../../configs/rocksdb/lc_iobuf_c40r256bc180.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_iobuf_c40r256bc180",
        include_str!("../../../configs/rocksdb/uc_iobuf_c40r256bc180.options"),
    ),
    (
        EngineName::Rocksdb,
        "lc_iodir_c40r256bc180",
        include_str!("../../../configs/rocksdb/lc_iodir_c40r256bc180.options"),
    ),
    (
        EngineName::Rocksdb,
        "uc_iodir_c40r256bc180",
        include_str!("../../../configs/rocksdb/uc_iodir_c40r256bc180.options"),
    ),
    (
        EngineName::Null,
        "none",
        include_str!("../../../configs/null/none.conf"),
    ),
];

/// The text of a shipped plan.
pub fn shipped_plan(name: &str) -> Option<&'static str> {
    SHIPPED_PLANS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// The text of a shipped workload file.
pub fn shipped_workload(path: &str) -> Option<&'static str> {
    SHIPPED_WORKLOADS
        .iter()
        .find(|(known, _)| *known == path)
        .map(|(_, text)| *text)
}

/// The text of a shipped config.
pub(crate) fn shipped_config(engine: EngineName, label: &str) -> Option<&'static str> {
    SHIPPED_CONFIGS
        .iter()
        .find(|(known, name, _)| *known == engine && *name == label)
        .map(|(_, _, text)| *text)
}

/// The labels of an engine's shipped configs.
pub(crate) fn shipped_config_labels(engine: EngineName) -> Vec<&'static str> {
    SHIPPED_CONFIGS
        .iter()
        .filter(|(known, _, _)| *known == engine)
        .map(|(_, label, _)| *label)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use plimsoll_core::plan::Plan;

    /// Names of files in a folder of the project, without their endings.
    fn stems(folder: &str) -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(folder);
        let entries =
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let paths = entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("workloads"));
        paths
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn every_file_in_the_folders_is_shipped() {
        let plans: BTreeSet<String> = SHIPPED_PLANS
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect();
        assert_eq!(stems("plans").into_iter().collect::<BTreeSet<_>>(), plans);
        let workloads: Vec<String> = SHIPPED_WORKLOADS
            .iter()
            .map(|(path, _)| path.replace("workloads/", "").replace(".toml", ""))
            .collect();
        assert_eq!(stems("plans/workloads"), workloads);
        let mut configs = BTreeSet::new();
        for engine in stems("configs") {
            configs.extend(
                stems(&format!("configs/{engine}"))
                    .into_iter()
                    .map(|label| format!("{engine}/{label}")),
            );
        }
        let shipped: BTreeSet<String> = SHIPPED_CONFIGS
            .iter()
            .map(|(engine, label, _)| format!("{engine}/{label}"))
            .collect();
        assert_eq!(configs, shipped);
    }

    #[test]
    fn every_shipped_plan_is_valid_and_finds_its_configs() {
        for (name, text) in SHIPPED_PLANS {
            let plan = Plan::parse_with(name, text, &|file| {
                Ok(shipped_workload(file).unwrap().to_owned())
            })
            .unwrap();
            assert_eq!(plan.name, name);
            for cell in &plan.cells {
                let config = cell.config.from.as_ref().unwrap_or(&cell.config.label);
                assert!(
                    shipped_config(cell.build.engine, config).is_some(),
                    "{}",
                    cell.label
                );
            }
        }
    }
}
