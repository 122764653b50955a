//! Do all servers fit into memory at once?

use std::collections::BTreeMap;

use plimsoll_core::plan::Cell;
use plimsoll_core::units::{MIB, SizeSyntax};
use plimsoll_host::{Memory, Proc};

use crate::campaign::peak_table_bytes;

/// What a server takes on top of its cache.
const SERVER_BYTES: u64 = 400 * MIB;
/// The share of what is available that servers may take; the rest is for the page cache and for us.
const SHARE: f64 = 0.9;

/// Bytes that a cell's server takes: its caches, which hold no more than twice its tables, and
/// itself.
pub(super) fn server_bytes(cell: &Cell, settings: &BTreeMap<String, String>) -> u64 {
    let caches = cell.build.engine.facts().caches.iter().map(|cache| {
        // MySQL takes dashes for underscores.
        let asked = settings
            .iter()
            .find(|(key, _)| key.replace('-', "_") == cache.setting);
        asked
            .and_then(|(_, value)| parse_size(value, cache.unit_bytes))
            .unwrap_or(cache.default_bytes)
    });
    caches
        .sum::<u64>()
        .min(peak_table_bytes(cell, settings).saturating_mul(2))
        + SERVER_BYTES
}

/// A size as one of the servers writes it; a bare number is in `unit`. PostgreSQL takes any
/// fraction and rounds it, so that not every size is a whole number of bytes.
fn parse_size(text: &str, unit: u64) -> Option<u64> {
    let text = text.trim().trim_matches('\'');
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit_bytes = match &text[number.len()..] {
        "" => unit,
        name => [SizeSyntax::MYSQL, SizeSyntax::WITH_B, SizeSyntax::PLAN]
            .iter()
            .find_map(|syntax| syntax.unit_bytes(name))?,
    };
    Some((number.trim().parse::<f64>().ok()? * unit_bytes as f64) as u64)
}

/// Bytes that servers may take together; none if the kernel does not report it.
pub(super) fn usable_bytes() -> Option<u64> {
    let available = Memory::read(&Proc::new()).available.ok()?;
    Some((available as f64 * SHARE) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_counts_up_to_what_it_can_hold_whatever_the_logs_take() {
        let plan = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = \
                   [\"mysql@8.0.33\"]\nconfigs = [\"cz12a\"]\n[sizes]\nrows = \"100K\"\n";
        let plan = plimsoll_core::plan::Plan::parse("t.toml", plan).unwrap();
        let settings = |pool: &str| {
            let pairs = [
                ("innodb-buffer-pool-size", pool),
                ("innodb_log_file_size", "8G"),
                ("innodb_log_files_in_group", "4"),
            ];
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into()
        };
        let of_tables = 2 * 100_000 * 600;
        assert_eq!(
            server_bytes(&plan.cells[0], &settings("24G")),
            of_tables + SERVER_BYTES
        );
        assert_eq!(
            server_bytes(&plan.cells[0], &settings("32M")),
            32 * MIB + SERVER_BYTES
        );
    }

    #[test]
    fn sizes_are_read_as_servers_read_them() {
        for (text, unit, bytes) in [
            ("128M", 1, Some(128 * MIB)),
            ("1g", 1, Some(1 << 30)),
            ("4096", 8192, Some(32 * MIB)),
            ("6442450944B", 8192, Some(6_442_450_944)),
            ("64MB", 8192, Some(64 * MIB)),
            ("'64 MiB'", 8192, Some(64 * MIB)),
            ("1.1GB", 8192, Some(1_181_116_006)),
            ("0.0625GB", 8192, Some(64 * MIB)),
            ("134217728", 1, Some(128 * MIB)),
            ("auto", 1, None),
            ("", 1, None),
        ] {
            assert_eq!(parse_size(text, unit), bytes, "{text}");
        }
        assert!(usable_bytes().is_none_or(|bytes| bytes > MIB));
    }
}
