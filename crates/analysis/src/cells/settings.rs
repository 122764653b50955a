//! Settings that engines run with, beside what was asked for and beside each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::cells::setting_value::{is_same, is_taken};
use plimsoll_core::units::{GIB, MIB};

/// The settings engines run with, set beside what was asked for and beside each other. Values mean
/// the same when they do after units, switches and lists are read: `1G` and `1073741824`, `on` and
/// `1`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What a config asks for and an engine does not run with.
    pub not_as_asked: Vec<NotAsAsked>,
    /// What a config asks for and no engine tells about.
    pub untold: Vec<String>,
    /// PostgreSQL: names that a config made up for the workload's statements to read, which no
    /// module of the server defines.
    pub custom: Vec<String>,
    /// Settings with different values in the cells that have them; those that a config asks for
    /// first.
    pub differing: Vec<Setting>,
    /// Settings that some cells have with one value and others do not have.
    pub only_in: Vec<OnlyIn>,
    /// Settings that name places, ports, identities and versions: they differ between any two
    /// servers.
    pub places: Vec<Setting>,
    /// Name and value of what is the same in every cell.
    pub equal: Vec<(String, String)>,
    /// Which client the workers' sessions went through, per cell of the view; `None` where there
    /// was no server, or nobody said.
    pub session_clients: Vec<Option<String>>,
}

impl Settings {
    /// Name and value of every setting that one cell runs with, but those that name places.
    pub(crate) fn of_cell(&self, cell: usize) -> impl Iterator<Item = (&str, &str)> {
        let own = self.differing.iter().filter_map(move |setting| {
            Some((setting.name.as_str(), setting.values.get(cell)?.as_deref()?))
        });
        let only = self.only_in.iter();
        let only = only
            .filter(move |only| only.cells.contains(&cell))
            .flat_map(|only| &only.settings);
        let named = only.chain(&self.equal);
        own.chain(named.map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

/// A setting of a config that did not become what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAsAsked {
    pub name: String,
    /// The config's value.
    pub asked: String,
    /// The value the engine runs with, or why it has none.
    pub found: Result<String, String>,
    /// Indices of the cells in which it is so.
    pub cells: Vec<usize>,
}

/// One setting in all cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    /// Whether a config asks for it.
    pub is_asked: bool,
    /// One value per cell of the view.
    pub values: Vec<Option<String>>,
    /// Which of them do not mean the same as the base's.
    pub is_other: Vec<bool>,
    /// The same for people: round sizes with a unit, of long lists what differs.
    pub shown: Vec<Option<String>>,
}

/// Settings that only some cells have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyIn {
    /// Indices of those cells.
    pub cells: Vec<usize>,
    /// Names and values.
    pub settings: Vec<(String, String)>,
}

/// What one cell asked for and got.
pub(crate) struct CellSettings<'a> {
    /// The config's settings.
    pub asked: &'a BTreeMap<String, String>,
    /// What the engine stated after its start; `None` when it never got there.
    pub effective: Option<&'a BTreeMap<String, String>>,
}

/// How engines write down a setting that they left out, by the name's beginning: of an option that
/// some versions may lack, and of one that does not apply.
const LEFT_OUT: [&str; 2] = ["loose_", "not applied: "];

/// The second of them, also for what no config asks for by this name: a flag of db_bench.
const NOT_APPLIED: &str = "not applied: ";

/// How an engine writes down that a parameter is the config's own: beside its value, which is a
/// setting like any other.
const CUSTOM: &str = "custom parameter: ";

/// Ends of the names of places, ports and identities. Each with what comes before it in a longer
/// name.
const PLACE_ENDS: [&str; 9] = [
    "dir",
    "_file",
    "port",
    "socket",
    "hostname",
    "uuid",
    "_basename",
    "_uid",
    "_host",
];

/// Such names in full, and those of versions.
const PLACE_NAMES: [&str; 14] = [
    "innodb_version",
    "license",
    "log_bin_index",
    "log_error",
    "protocol_version",
    "relay_log",
    "relay_log_index",
    "server_id",
    "server_version",
    "server_version_num",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "version",
];

/// Two names of one setting: the newer, and the one that older versions know.
const RENAMED: [(&str, &str); 2] = [
    ("transaction_isolation", "tx_isolation"),
    ("transaction_read_only", "tx_read_only"),
];

/// Under this name a server's effective settings say which client the workers' sessions go through:
/// a matter of the plan.
const SESSION_CLIENT: &str = "session_client";

/// A longer list shows only what differs.
const LONG_LIST: usize = 48;

pub(crate) fn compare(cells: &[CellSettings<'_>]) -> Settings {
    let session_clients = cells
        .iter()
        .map(|cell| cell.effective?.get(SESSION_CLIENT).cloned())
        .collect();
    let mut settings = Settings {
        not_as_asked: not_as_asked(cells),
        untold: untold(cells),
        custom: custom(cells),
        session_clients,
        ..Default::default()
    };
    let asked: BTreeSet<String> = cells
        .iter()
        .flat_map(|cell| cell.asked.keys())
        .map(|name| plain_name(name))
        .collect();
    let names: BTreeSet<&String> = cells
        .iter()
        .filter_map(|cell| cell.effective)
        .flat_map(BTreeMap::keys)
        .collect();
    let mut only_in: BTreeMap<Vec<usize>, Vec<(String, String)>> = BTreeMap::new();
    let is_remark = |name: &str| {
        LEFT_OUT
            .iter()
            .chain([&CUSTOM])
            .any(|mark| name.starts_with(mark))
    };
    for name in names.into_iter().filter(|name| !is_remark(name)) {
        let values: Vec<Option<String>> = cells
            .iter()
            .map(|cell| cell.effective?.get(name).cloned())
            .collect();
        let present: Vec<&String> = values.iter().flatten().collect();
        let is_one_value = present.iter().all(|value| is_same(value, present[0]));
        let setting = || Setting {
            name: name.clone(),
            is_asked: asked.contains(name) || name == SESSION_CLIENT,
            is_other: others(&values),
            shown: shown(&values),
            values: values.clone(),
        };
        if is_place(name) || present.iter().all(|value| is_path(value)) {
            settings.places.push(setting());
        } else if !is_one_value {
            settings.differing.push(setting());
        } else if present.len() < cells.iter().filter(|cell| cell.effective.is_some()).count() {
            let having = (0..cells.len())
                .filter(|cell| values[*cell].is_some())
                .collect();
            only_in
                .entry(having)
                .or_default()
                .push((name.clone(), present[0].clone()));
        } else {
            settings.equal.push((name.clone(), present[0].clone()));
        }
    }
    settings.differing.sort_by_key(|setting| !setting.is_asked);
    settings.only_in = only_in
        .into_iter()
        .map(|(cells, settings)| OnlyIn { cells, settings })
        .collect();
    settings
}

/// The variable that an option of a config sets: in small letters, with underscores, without the
/// mark of options that may be unknown and without the versions it is for (`io_method@18`).
pub(crate) fn plain_name(option: &str) -> String {
    let name = option.to_ascii_lowercase().replace('-', "_");
    let name = name.strip_prefix("loose_").unwrap_or(&name);
    name.split('@').next().unwrap_or_default().to_owned()
}

/// The value that an engine states for an option, and whether the option's name negates it.
fn stated<'a>(name: &str, effective: &'a BTreeMap<String, String>) -> Option<(&'a String, bool)> {
    let renamed = || {
        RENAMED.iter().find_map(|(new, old)| {
            if *new == name {
                effective.get(*old)
            } else {
                None
            }
        })
    };
    let stripped = |prefix: &str| effective.get(name.strip_prefix(prefix)?);
    let direct = effective
        .get(name)
        .or_else(renamed)
        .or_else(|| stripped("enable_"))
        .map(|value| (value, false));
    direct.or_else(|| {
        stripped("skip_")
            .or_else(|| stripped("disable_"))
            .map(|value| (value, true))
    })
}

fn left_out<'a>(option: &str, effective: &'a BTreeMap<String, String>) -> Option<&'a String> {
    let name = plain_name(option);
    LEFT_OUT.iter().find_map(|mark| {
        effective
            .get(&format!("{mark}{name}"))
            .or_else(|| effective.get(&format!("{mark}{option}")))
    })
}

fn not_as_asked(cells: &[CellSettings<'_>]) -> Vec<NotAsAsked> {
    let mut found: Vec<NotAsAsked> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        let Some(effective) = cell.effective else {
            continue;
        };
        for (option, asked) in cell.asked {
            let name = plain_name(option);
            let what = match (left_out(option, effective), stated(&name, effective)) {
                (Some(reason), _) => Err(reason.clone()),
                (None, Some((value, is_negated))) if !is_taken(&name, asked, value, is_negated) => {
                    Ok(value.clone())
                }
                _ => continue,
            };
            note(
                &mut found,
                NotAsAsked {
                    name,
                    asked: asked.clone(),
                    found: what,
                    cells: vec![index],
                },
            );
        }
        let is_asked = |name: &str| {
            cell.asked
                .keys()
                .any(|option| option == name || plain_name(option) == name)
        };
        for (name, reason) in effective
            .iter()
            .filter_map(|(name, reason)| Some((name.strip_prefix(NOT_APPLIED)?, reason)))
        {
            if !is_asked(name) {
                note(
                    &mut found,
                    NotAsAsked {
                        name: name.to_owned(),
                        asked: String::new(),
                        found: Err(reason.clone()),
                        cells: vec![index],
                    },
                );
            }
        }
    }
    // Another value first: what a version does not know is what the config expects.
    found.sort_by(|a, b| (a.found.is_err(), &a.name).cmp(&(b.found.is_err(), &b.name)));
    found
}

/// One entry for all cells in which it is so.
fn note(found: &mut Vec<NotAsAsked>, of: NotAsAsked) {
    match found
        .iter_mut()
        .find(|known| known.name == of.name && known.asked == of.asked && known.found == of.found)
    {
        Some(known) => known.cells.extend(of.cells),
        None => found.push(of),
    }
}

fn untold(cells: &[CellSettings<'_>]) -> Vec<String> {
    let of_cell = |cell: &CellSettings<'_>| -> Vec<String> {
        let Some(effective) = cell.effective else {
            return Vec::new();
        };
        let is_untold = |option: &&String| {
            stated(&plain_name(option), effective).is_none()
                && left_out(option, effective).is_none()
        };
        cell.asked
            .keys()
            .filter(is_untold)
            .map(|option| plain_name(option))
            .collect()
    };
    cells
        .iter()
        .flat_map(of_cell)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Names of the configs' own parameters.
fn custom(cells: &[CellSettings<'_>]) -> Vec<String> {
    let names = cells
        .iter()
        .filter_map(|cell| cell.effective)
        .flat_map(BTreeMap::keys);
    names
        .filter_map(|name| name.strip_prefix(CUSTOM))
        .map(str::to_owned)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

fn is_place(name: &str) -> bool {
    PLACE_NAMES.contains(&name)
        || name.starts_with("version_")
        || PLACE_ENDS.iter().any(|end| {
            name.ends_with(end)
                && (end.starts_with('_') || name.len() == end.len() || before(name, end) == '_')
        })
}

/// The character before the end of a longer name.
fn before(name: &str, end: &str) -> char {
    name[..name.len() - end.len()].chars().last().unwrap_or(' ')
}

/// A path, also with the folder of data or build replaced by its name.
fn is_path(value: &str) -> bool {
    let is_below = |folder: &str| {
        value
            .strip_prefix(folder)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    value.starts_with('/') || value.starts_with("./") || is_below("DATA") || is_below("BUILD")
}

/// Which values are not the base's; of a base without the setting, which are not the first.
fn others(values: &[Option<String>]) -> Vec<bool> {
    let first = values.iter().flatten().next();
    values
        .iter()
        .map(|value| matches!((value, first), (Some(value), Some(first)) if !is_same(value, first)))
        .collect()
}

fn shown(values: &[Option<String>]) -> Vec<Option<String>> {
    let is_long = values
        .iter()
        .flatten()
        .any(|value| value.len() > LONG_LIST && value.contains(','));
    if !is_long {
        return values
            .iter()
            .map(|value| value.as_deref().map(round_size))
            .collect();
    }
    fn items(value: &str) -> impl Iterator<Item = &str> {
        value.split(',').map(str::trim)
    }
    let in_all = |item: &&str| {
        values
            .iter()
            .flatten()
            .all(|value| items(value).any(|other| other.eq_ignore_ascii_case(item)))
    };
    let own = |value: &String| {
        let own: Vec<&str> = items(value).filter(|item| !in_all(item)).collect();
        if own.len() == items(value).count() {
            own.join(", ")
        } else {
            format!("… {}", own.join(", ")).trim_end().to_owned()
        }
    };
    values.iter().map(|value| value.as_ref().map(own)).collect()
}

/// `1 GiB` of a number of bytes that is a whole number of MiB; whether such a number is one of
/// bytes is a guess, so the number stands with it in full wherever there is room.
fn round_size(value: &str) -> String {
    match value.parse::<u64>() {
        Ok(number) if number >= MIB && number % GIB == 0 => {
            format!("{} GiB", number / GIB)
        }
        Ok(number) if number >= MIB && number % MIB == 0 => format!("{} MiB", number / MIB),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_was_asked_for_and_not_taken_comes_first_and_once() {
        let asked = map(&[
            ("innodb_buffer_pool_size", "1G"),
            ("loose_innodb_log_file_size", "1G"),
            ("sync-binlog", "0"),
            ("skip_name_resolve", "1"),
            ("symbolic_links", "0"),
            ("transaction_isolation", "READ-COMMITTED"),
            ("io_method@18", "sync"),
            ("jit@11", "off"),
        ]);
        let common = [
            ("sync_binlog", "0"),
            ("skip_name_resolve", "ON"),
            ("tx_isolation", "READ-COMMITTED"),
            ("jit", "OFF"),
            ("not applied: io_method@18", "needs >= 18"),
        ];
        let old = map(&[
            &common[..],
            &[
                ("innodb_buffer_pool_size", "536870912"),
                ("innodb_log_file_size", "1073741824"),
            ],
        ]
        .concat());
        let new = map(&[
            &common[..],
            &[
                ("innodb_buffer_pool_size", "1073741824"),
                ("loose_innodb_log_file_size", "not known to MySQL 9.7.4"),
            ],
        ]
        .concat());
        let never = CellSettings {
            asked: &asked,
            effective: None,
        };
        let cell = |effective| CellSettings {
            asked: &asked,
            effective: Some(effective),
        };
        let settings = compare(&[cell(&old), cell(&new), never, cell(&old)]);
        let expected = [
            (
                "innodb_buffer_pool_size",
                Ok("536870912".to_owned()),
                vec![0, 3],
            ),
            (
                "innodb_log_file_size",
                Err("not known to MySQL 9.7.4".to_owned()),
                vec![1],
            ),
            ("io_method", Err("needs >= 18".to_owned()), vec![0, 1, 3]),
        ];
        let found: Vec<_> = settings
            .not_as_asked
            .into_iter()
            .map(|it| (it.name, it.found, it.cells))
            .collect();
        assert_eq!(
            found,
            expected.map(|(name, found, cells)| (name.to_owned(), found, cells))
        );
        assert_eq!(settings.untold, ["symbolic_links"]);
    }

    #[test]
    fn every_setting_is_told_in_one_place() {
        let asked = map(&[("b_asked", "2")]);
        let a = map(&[
            ("a_default", "1"),
            ("b_asked", "2"),
            ("same", "1G"),
            ("datadir", "DATA/data/"),
            ("report_port", "1"),
            ("support", "1"),
            ("version", "5.7"),
            ("tls_version", "TLSv1"),
            ("general_log_file", "vm.log"),
            ("where", "/tmp/x"),
            ("old_only", "5"),
            ("not applied: gone", "9"),
        ]);
        let b = map(&[
            ("a_default", "3"),
            ("b_asked", "4"),
            ("same", "1073741824"),
            ("datadir", "DATA/data2/"),
            ("report_port", "2"),
            ("support", "2"),
            ("version", "8.0"),
            ("tls_version", "TLSv1"),
            ("general_log_file", "other.log"),
            ("where", "/tmp/y"),
            ("new_only", "6"),
        ]);
        let cell = |effective| CellSettings {
            asked: &asked,
            effective: Some(effective),
        };
        let settings = compare(&[cell(&a), cell(&b)]);
        let names = |settings: &[Setting]| {
            settings
                .iter()
                .map(|setting| setting.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&settings.differing),
            ["b_asked", "a_default", "support"]
        );
        assert_eq!(
            names(&settings.places),
            [
                "datadir",
                "general_log_file",
                "report_port",
                "version",
                "where"
            ]
        );
        assert_eq!(
            settings
                .equal
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>(),
            ["same", "tls_version"]
        );
        let only: Vec<_> = settings
            .only_in
            .iter()
            .map(|only| (only.cells.clone(), only.settings[0].0.as_str()))
            .collect();
        assert_eq!(only, [(vec![0], "old_only"), (vec![1], "new_only")]);
    }

    #[test]
    fn custom_parameters_are_named_once_and_compared_as_others() {
        let (one, other) = (
            map(&[("bench.share", "3"), ("bench.seed", "7")]),
            map(&[("bench.share", "5")]),
        );
        let told = |share| {
            map(&[
                ("bench.share", share),
                (
                    "custom parameter: bench.share",
                    "no module of this server defines it",
                ),
            ])
        };
        let (three, five) = (told("3"), told("5"));
        let cell = |asked, effective| CellSettings {
            asked,
            effective: Some(effective),
        };
        let settings = compare(&[cell(&one, &three), cell(&other, &five)]);
        assert_eq!(settings.custom, ["bench.share"]);
        assert_eq!(
            settings
                .differing
                .iter()
                .map(|setting| setting.name.as_str())
                .collect::<Vec<_>>(),
            ["bench.share"]
        );
        assert!(
            settings.not_as_asked.is_empty()
                && settings.only_in.is_empty()
                && settings.equal.is_empty(),
            "{settings:?}"
        );
        assert_eq!(settings.untold, ["bench.seed"]);
    }

    #[test]
    fn each_cell_tells_which_client_it_used() {
        let asked = map(&[]);
        let (thin, full) = (
            map(&[("autocommit", "ON"), ("session_client", "thin")]),
            map(&[("session_client", "mysql crate")]),
        );
        let old = map(&[("autocommit", "OFF")]);
        let cell = |effective| CellSettings {
            asked: &asked,
            effective,
        };
        let settings = compare(&[
            cell(Some(&thin)),
            cell(Some(&old)),
            cell(None),
            cell(Some(&full)),
        ]);
        let clients = [Some("thin"), None, None, Some("mysql crate")];
        assert_eq!(
            settings.session_clients,
            clients.map(|client| client.map(str::to_owned))
        );
        let differing: Vec<_> = settings
            .differing
            .iter()
            .map(|setting| (&*setting.name, setting.is_asked))
            .collect();
        assert_eq!(differing, [("session_client", true), ("autocommit", false)]);
        assert_eq!(settings.differing[0].is_other, [false, false, false, true]);
    }

    #[test]
    fn long_lists_show_what_differs_and_sizes_their_unit() {
        let long = "index_merge=on,index_merge_union=on,engine_condition_pushdown=on";
        let values = [
            Some(format!("{long},mrr=on")),
            None,
            Some(format!("mrr=off,{long},derived_merge=on")),
            Some(long.to_owned()),
        ];
        let expected = [
            Some("… mrr=on"),
            None,
            Some("… mrr=off, derived_merge=on"),
            Some("…"),
        ];
        assert_eq!(shown(&values), expected.map(|text| text.map(str::to_owned)));
        let sizes =
            ["2147483648", "134217728", "8388609", "5000", "ON"].map(|text| Some(text.to_owned()));
        assert_eq!(
            shown(&sizes),
            ["2 GiB", "128 MiB", "8388609", "5000", "ON"].map(|text| Some(text.to_owned()))
        );
    }
}
