//! What the server really runs with, compared with what the config asked for.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::units::SizeSyntax;

use super::options::{ServerOption, switch};

/// Servers round sizes to blocks, pages and chunks of their own; below this a difference is such a
/// rounding.
const BLOCK_BYTES: f64 = (1 << 20) as f64;

/// Options whose variable has another name in some versions.
const RENAMED: &[(&str, &str)] = &[
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
];

/// Options that a server knows and that have no variable.
const WITHOUT_VARIABLE: &[&str] = &[
    "allow_suspicious_udfs",
    "character_set_client_handshake",
    "external_locking",
    "feedback",
    "innodb",
    "rocksdb",
    "log_isam",
    "log_raw",
    "log_short_format",
    "memlock",
    "old_style_user_limits",
    "partition",
    "safe_user_create",
    "show_replica_auth_info",
    "slave_info_file",
    "symbolic_links",
    "sysdate_is_now",
    "temp_pool",
    "verbose",
];

/// A variable that a server adjusts by itself, and that is not an error then.
struct Adjusted {
    name: &'static str,
    /// Whether `found` may come of `wanted`.
    may_be: fn(wanted: f64, found: f64) -> bool,
}

const ADJUSTED: &[Adjusted] = &[
    // Rounded up to whole chunks for each instance.
    Adjusted {
        name: "innodb_buffer_pool_size",
        may_be: |wanted, found| (wanted..=2.0 * wanted).contains(&found),
    },
    // 1 for a pool below 1 GiB.
    Adjusted {
        name: "innodb_buffer_pool_instances",
        may_be: |_, found| found == 1.0,
    },
    // Not more than pool instances.
    Adjusted {
        name: "innodb_page_cleaners",
        may_be: |wanted, found| (1.0..=wanted).contains(&found),
    },
    // Raised to what connections and tables need, or to what the system allows anyway.
    Adjusted {
        name: "open_files_limit",
        may_be: |wanted, found| found >= wanted,
    },
    // Lowered to what the limit of open files leaves.
    Adjusted {
        name: "table_open_cache",
        may_be: |wanted, found| (1.0..=wanted).contains(&found),
    },
    Adjusted {
        name: "table_definition_cache",
        may_be: |wanted, found| (1.0..=wanted).contains(&found),
    },
    Adjusted {
        name: "innodb_open_files",
        may_be: |wanted, found| (1.0..=wanted).contains(&found),
    },
];

/// How an option of the config stands in the running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// As the config wants it.
    Taken,
    Differs {
        /// What the server says.
        found: String,
    },
    /// The server has no such variable.
    Unknown,
}

/// Looks an option up among the server's global variables, whose names are in small letters.
pub(super) fn standing(option: &ServerOption, variables: &BTreeMap<String, String>) -> Standing {
    let Some((name, is_negated, found)) = variable(&option.name, variables) else {
        let bare = ["skip_", "disable_", "enable_"]
            .iter()
            .find_map(|prefix| option.name.strip_prefix(prefix))
            .unwrap_or(&option.name);
        return if WITHOUT_VARIABLE.contains(&bare) {
            Standing::Taken
        } else {
            Standing::Unknown
        };
    };
    let wanted = option.value.as_deref().unwrap_or("on");
    let wanted = match (is_negated, switch(wanted)) {
        (true, Some(on)) => {
            if on {
                "off"
            } else {
                "on"
            }
        }
        _ => wanted,
    };
    if is_same(wanted, found) || is_adjusted(name, wanted, found) {
        Standing::Taken
    } else {
        Standing::Differs {
            found: found.to_owned(),
        }
    }
}

/// The variable an option sets, whether the option's name negates it, and its value.
fn variable<'a>(
    option: &'a str,
    variables: &'a BTreeMap<String, String>,
) -> Option<(&'a str, bool, &'a str)> {
    let get = |name: &'a str, is_negated| {
        variables
            .get(name)
            .map(|value| (name, is_negated, value.as_str()))
    };
    get(option, false)
        .or_else(|| get(RENAMED.iter().find(|(new, _)| *new == option)?.1, false))
        .or_else(|| {
            get(
                option
                    .strip_prefix("skip_")
                    .or_else(|| option.strip_prefix("disable_"))?,
                true,
            )
        })
        .or_else(|| get(option.strip_prefix("enable_")?, false))
}

/// Whether two ways to write a value mean the same.
fn is_same(wanted: &str, found: &str) -> bool {
    let (wanted, found) = (wanted.trim(), found.trim());
    if wanted.eq_ignore_ascii_case(found) || path(wanted) == path(found) {
        return true;
    }
    if let (Some(wanted), Some(found)) = (switch(wanted), switch(found)) {
        return wanted == found;
    }
    if let (Some(wanted), Some(found)) = (number(wanted), number(found)) {
        return wanted == found || (wanted >= BLOCK_BYTES && (wanted - found).abs() < BLOCK_BYTES);
    }
    let (wanted, found) = (words(wanted), words(found));
    // A list of switches has all of them in what the server says, and only some in what a config
    // says.
    wanted == found
        || (!wanted.is_empty()
            && wanted.iter().all(|word| word.contains('='))
            && wanted.is_subset(&found))
}

fn is_adjusted(name: &str, wanted: &str, found: &str) -> bool {
    let (Some(wanted), Some(found)) = (number(wanted), number(found)) else {
        return false;
    };
    ADJUSTED
        .iter()
        .any(|adjusted| adjusted.name == name && (adjusted.may_be)(wanted, found))
}

fn path(text: &str) -> &str {
    let text = text.strip_prefix("./").unwrap_or(text);
    text.strip_suffix('/').unwrap_or(text)
}

/// A number with one of the suffixes that options take.
fn number(text: &str) -> Option<f64> {
    let plain = || text.parse().ok().filter(|number: &f64| number.is_finite());
    let bytes = SizeSyntax::MYSQL.parse(text).map(|bytes| bytes as f64);
    bytes.or_else(plain)
}

fn words(list: &str) -> BTreeSet<String> {
    list.split(',')
        .map(|word| word.trim().to_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: Option<&str>) -> ServerOption {
        ServerOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            is_loose: false,
        }
    }

    fn of(name: &str, value: Option<&str>, variable: (&str, &str)) -> Standing {
        standing(
            &option(name, value),
            &BTreeMap::from([(variable.0.to_owned(), variable.1.to_owned())]),
        )
    }

    #[test]
    fn values_that_mean_the_same_are_the_same() {
        let table = [
            ("1", "ON", true),
            ("off", "0", true),
            ("on", "OFF", false),
            ("4G", "4294967296", true),
            ("4g", "4294967295", true),
            ("64k", "65536", true),
            ("64k", "65535", false),
            ("1073741824", "1073740800", true),
            ("1G", "1075838976", false),
            ("90", "90.000000", true),
            ("0.05", "0.050000", true),
            ("90", "75.000000", false),
            ("O_DIRECT_NO_FSYNC", "O_DIRECT_NO_FSYNC", true),
            ("o_direct", "O_DIRECT", true),
            ("O_DIRECT", "fsync", false),
            ("./ib_tmp/", "ib_tmp", true),
            (
                "STRICT_TRANS_TABLES,NO_ZERO_DATE",
                "NO_ZERO_DATE,STRICT_TRANS_TABLES",
                true,
            ),
            (
                "STRICT_TRANS_TABLES",
                "NO_ZERO_DATE,STRICT_TRANS_TABLES",
                false,
            ),
            (
                "mrr=off",
                "index_merge=on,mrr=off,batched_key_access=off",
                true,
            ),
            ("mrr=on", "index_merge=on,mrr=off", false),
            ("", "", true),
            ("x", "", false),
        ];
        for (wanted, found, same) in table {
            assert_eq!(is_same(wanted, found), same, "{wanted} and {found}");
        }
    }

    #[test]
    fn names_lead_to_their_variable() {
        use Standing::{Taken, Unknown};
        let table = [
            (
                of(
                    "transaction_isolation",
                    Some("READ-COMMITTED"),
                    ("tx_isolation", "READ-COMMITTED"),
                ),
                Taken,
            ),
            (
                of("skip_name_resolve", None, ("skip_name_resolve", "ON")),
                Taken,
            ),
            (
                of(
                    "skip_innodb_doublewrite",
                    None,
                    ("innodb_doublewrite", "OFF"),
                ),
                Taken,
            ),
            (
                of(
                    "skip_innodb_doublewrite",
                    None,
                    ("innodb_doublewrite", "ON"),
                ),
                Standing::Differs { found: "ON".into() },
            ),
            (of("disable_x", Some("0"), ("x", "ON")), Taken),
            (of("enable_x", None, ("x", "ON")), Taken),
            (
                of(
                    "innodb_log_file_size",
                    Some("1G"),
                    ("innodb_redo_log_capacity", "1"),
                ),
                Unknown,
            ),
            (of("skip_symbolic_links", None, ("x", "1")), Taken),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_servers_adjust_is_no_difference_within_reason() {
        let table = [
            ("innodb_buffer_pool_size", "100M", "134217728", true),
            ("innodb_buffer_pool_size", "1G", "134217728", false),
            ("innodb_buffer_pool_instances", "4", "1", true),
            ("innodb_buffer_pool_instances", "4", "8", false),
            ("innodb_page_cleaners", "4", "1", true),
            ("max_connections", "500", "214", false),
            ("open_files_limit", "1000", "5000", true),
            ("table_open_cache", "4000", "400", true),
        ];
        for (name, wanted, found, is_fine) in table {
            assert_eq!(
                of(name, Some(wanted), (name, found)) == Standing::Taken,
                is_fine,
                "{name}: {wanted} and {found}"
            );
        }
    }
}
