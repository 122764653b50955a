//! From a plan's config to settings: the file's lines, then the plan's own.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::engines::ConfigSyntax;
use plimsoll_core::plan::Cell;
use plimsoll_core::suggest;

use crate::error::LabError;
use crate::shipped::{shipped_config, shipped_config_labels};
use crate::template::{Machine, fill};

/// A config's settings and where they come from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ResolvedConfig {
    pub source: String,
    pub settings: BTreeMap<String, String>,
}

/// Reads the config of a cell. A `file` of the plan is relative to the plan's folder; without one,
/// `LABEL.conf` next to the plan comes before the shipped config of that label. With `from` of the
/// plan it is the shipped config of that name.
pub(crate) fn resolve(cell: &Cell, plan_dir: Option<&Path>) -> Result<ResolvedConfig, LabError> {
    let config = &cell.config;
    if let Some(server) = &cell.server {
        // Its settings are its own; the plan may name the storage engine of our tables.
        return Ok(ResolvedConfig {
            source: format!("as the server {} is", server.label),
            settings: config.settings.clone(),
        });
    }
    let (source, text) = find(cell, plan_dir)?;
    let syntax = cell.build.engine.facts().config.syntax;
    let of_file = parse(&source, &text, syntax)?;
    let mut settings = if syntax == ConfigSyntax::Groups {
        merge_groups(of_file, &config.settings).map_err(|error| {
            LabError::Usage(format!(
                "cell {}: config {} ({source}): {error}",
                cell.label, config.label
            ))
        })?
    } else {
        merge(of_file, &config.settings, syntax)
    };
    fill_templates(cell, &source, &mut settings)?;
    Ok(ResolvedConfig { source, settings })
}

/// Where the config of a cell is, and its text.
fn find(cell: &Cell, plan_dir: Option<&Path>) -> Result<(String, String), LabError> {
    let (config, engine) = (&cell.config, cell.build.engine);
    let folder = plan_dir.unwrap_or(Path::new("."));
    let shipped_and_hint = |label: &str| {
        let known = shipped_config_labels(engine);
        (
            known.join(", "),
            suggest::hint(label, known.iter().copied()),
        )
    };
    if let Some(file) = &config.file {
        return Ok((file.clone(), read(&folder.join(file), &cell.label)?));
    }
    if let Some(from) = &config.from {
        let text = shipped_config(engine, from).ok_or_else(|| {
            let (shipped, hint) = shipped_and_hint(from);
            LabError::Usage(format!(
                "cell {}: [config.{}] from: there is no shipped config \"{from}\" for \
                {engine}{hint}; shipped: {shipped}",
                cell.label, config.label,
            ))
        })?;
        return Ok((format!("shipped {from}"), text.to_owned()));
    }
    let name = format!("{}.{}", config.label, engine.facts().config.ending);
    let path = folder.join(&name);
    // A plan that ships with the program has no folder, and what lies in the current one is not
    // its.
    if plan_dir.is_some() && path.is_file() {
        Ok((name, read(&path, &cell.label)?))
    } else if let Some(text) = shipped_config(engine, &config.label) {
        Ok(("shipped".to_owned(), text.to_owned()))
    } else if !config.settings.is_empty() {
        Ok(("plan".to_owned(), String::new()))
    } else {
        let (shipped, hint) = shipped_and_hint(&config.label);
        Err(LabError::Usage(format!(
            "cell {}: there is no config \"{}\" for {engine}{hint}; shipped: {shipped}; or put {} \
            next to the plan, or set [config.{}] file = ... or settings = ...",
            cell.label,
            config.label,
            path.display(),
            config.label
        )))
    }
}

/// Puts this machine's memory and CPUs where settings ask for a share of them.
fn fill_templates(
    cell: &Cell,
    source: &str,
    settings: &mut BTreeMap<String, String>,
) -> Result<(), LabError> {
    let facts = cell.build.engine.facts();
    if let Some(unit) = facts.config.ram_unit
        && let Some((name, value)) = settings
            .iter()
            .find(|(_, value)| value.contains("{ram") && value.ends_with('}'))
    {
        return Err(LabError::Usage(format!(
            "cell {}: {source}: {name}: {} takes a number without a unit as so many blocks or \
            kilobytes; write {value}{unit}",
            cell.label, facts.title
        )));
    }
    // The machine is read only if it is asked for.
    if settings.values().any(|value| value.contains('{')) {
        let machine = Machine::read().map_err(LabError::Io)?;
        for (name, value) in settings {
            *value = fill(value, machine).map_err(|error| {
                LabError::Usage(format!("cell {}: {source}: {name}: {error}", cell.label))
            })?;
        }
    }
    Ok(())
}

/// The file's lines, and in their place the plan's own where both are about the same option,
/// whether or not either may be missing in some versions.
fn merge(
    mut settings: BTreeMap<String, String>,
    of_plan: &BTreeMap<String, String>,
    syntax: ConfigSyntax,
) -> BTreeMap<String, String> {
    for (name, value) in of_plan {
        settings.retain(|known, _| option_name(known, syntax) != option_name(name, syntax));
        settings.insert(name.clone(), value.clone());
    }
    settings
}

/// The same where a group is its members. An empty value of the plan takes the
/// file's line out, of a group all members.
fn merge_groups(
    of_file: BTreeMap<String, String>,
    of_plan: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let flatten = |settings: &BTreeMap<String, String>| {
        plimsoll_engine::rocksdb::flatten(settings).map_err(|error| error.to_string())
    };
    let mut settings = flatten(&of_file)?;
    let (taken_out, set): (BTreeMap<_, _>, BTreeMap<_, _>) = of_plan
        .iter()
        .map(|(name, value)| (name.clone(), value.clone()))
        .partition(|(_, value)| value.trim().is_empty());
    for name in taken_out.keys() {
        let is_other = |known: &str| {
            known
                .strip_prefix(name.as_str())
                .is_none_or(|rest| !rest.is_empty() && !rest.starts_with('.'))
        };
        let hint = suggest::hint(name, settings.keys().map(String::as_str));
        let before = settings.len();
        settings.retain(|known, _| is_other(known));
        if settings.len() == before {
            return Err(format!(
                "{name} = \"\" takes a setting out, and there is none of this name{hint}"
            ));
        }
    }
    Ok(merge(settings, &flatten(&set)?, ConfigSyntax::Groups))
}

/// By which two lines are about the same option.
fn option_name(name: &str, syntax: ConfigSyntax) -> String {
    if syntax != ConfigSyntax::OptionFile {
        return name.to_ascii_lowercase();
    }
    let name = name.to_ascii_lowercase().replace('-', "_");
    name.strip_prefix("loose_")
        .map_or(name.clone(), str::to_owned)
}

fn read(path: &Path, cell: &str) -> Result<String, LabError> {
    std::fs::read_to_string(path).map_err(|error| {
        LabError::Usage(format!(
            "cell {cell}: the config file {} cannot be read: {error}; paths are relative to the \
            plan's folder",
            path.display()
        ))
    })
}

/// Sections of an option file that MySQL's and MariaDB's servers read.
const SERVER_SECTIONS: [&str; 4] = ["mysqld", "server", "mariadb", "mariadbd"];

/// `name = value` lines; `#` begins a comment outside quotes. As in the servers' own option files a
/// MySQL option may stand alone, `;` begins a comment too, and the sections of client programs are
/// not the server's.
fn parse(
    source: &str,
    text: &str,
    syntax: ConfigSyntax,
) -> Result<BTreeMap<String, String>, LabError> {
    let is_option_file = syntax == ConfigSyntax::OptionFile;
    let mut settings = BTreeMap::new();
    let mut is_server_section = true;
    for (number, line) in text.lines().enumerate() {
        let line = without_comment(line).trim();
        let wrong = |problem: &str| {
            LabError::Usage(format!(
                "{source}:{}: {problem}: \"{line}\"; write NAME = VALUE",
                number + 1
            ))
        };
        if line.is_empty() || (is_option_file && line.starts_with(';')) {
            continue;
        }
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .filter(|_| is_option_file)
        {
            let is_versioned = section
                .strip_prefix("mysqld-")
                .or(section.strip_prefix("mariadb-"))
                .is_some();
            if is_versioned {
                return Err(wrong(
                    "sections of one version are not known here: write loose_NAME for what only \
                    some versions have",
                ));
            }
            is_server_section = SERVER_SECTIONS.contains(&section);
            continue;
        }
        if !is_server_section {
            continue;
        }
        if is_option_file && line.starts_with('!') {
            return Err(wrong("other files are not included: put their lines here"));
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) if !value.trim().is_empty() => (name.trim(), value.trim()),
            None if is_option_file => (line, ""),
            None => return Err(wrong("no \"=\" in this line")),
            Some(_) => return Err(wrong("a name or a value is missing")),
        };
        if name.is_empty() {
            return Err(wrong("a name or a value is missing"));
        }
        if settings.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(wrong("this setting is there twice"));
        }
    }
    Ok(settings)
}

/// The line up to a `#` that is not between quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (index, character) in line.char_indices() {
        match (quote, character) {
            (None, '#') => return &line[..index],
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_and_names_bad_ones() {
        let settings = parse(
            "x.conf",
            "# comment\njournal_mode = wal # trailing\n\nsynchronous=full\n",
            ConfigSyntax::Lines,
        )
        .unwrap();
        assert_eq!(
            settings.into_iter().collect::<Vec<_>>(),
            [
                ("journal_mode".into(), "wal".into()),
                ("synchronous".into(), "full".into())
            ]
        );
        for (text, wanted) in [
            ("a = 1\nb", "x.conf:2: no \"=\" in this line: \"b\""),
            ("a =", "x.conf:1: a name or a value is missing"),
            ("a = 1\na = 2", "x.conf:2: this setting is there twice"),
        ] {
            assert!(
                parse("x.conf", text, ConfigSyntax::Lines)
                    .unwrap_err()
                    .to_string()
                    .contains(wanted)
            );
        }
    }

    #[test]
    fn one_option_has_one_line() {
        let name = |name| option_name(name, ConfigSyntax::OptionFile);
        assert_eq!(
            name("loose_innodb-log-file-size"),
            name("innodb_log_file_size")
        );
        assert_ne!(
            option_name("loose_x", ConfigSyntax::Lines),
            option_name("x", ConfigSyntax::Lines)
        );
        let cell = |builds: &str, settings: &str| {
            let text = format!(
                "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{builds}\"]\nconfigs = \
                [\"c\"]\n[config.c]\n{settings}\n"
            );
            plimsoll_core::plan::Plan::parse("t.toml", &text)
                .unwrap()
                .cells
                .remove(0)
        };
        let changed = cell(
            "mysql@5.7.22",
            "from = \"cz12a\"\nsettings = { innodb_redo_log_capacity = \"64M\" }",
        );
        let settings = resolve(&changed, None).unwrap().settings;
        let found: Vec<_> = settings
            .iter()
            .filter(|(name, _)| name.contains("redo_log_capacity"))
            .collect();
        assert_eq!(
            found,
            [(&"innodb_redo_log_capacity".to_owned(), &"64M".to_owned())]
        );
        let bare = cell(
            "postgres@18.6",
            "settings = { shared_buffers = \"{ram*0.01}\" }",
        );
        assert!(
            resolve(&bare, None)
                .unwrap_err()
                .to_string()
                .contains("write {ram*0.01}B")
        );
    }

    #[test]
    fn a_plan_changes_members_of_rocksdbs_groups_and_takes_settings_out() {
        let resolved = |settings: &str| {
            let text = format!(
                "name = \"t\"\nworkload = \"rocksdb\"\nbuilds = [\"rocksdb@8.9.1\"]\nconfigs = \
                [\"c\"]\n[config.c]\nfrom = \"uc_byrx_small\"\n\
                 settings = {{ {settings} }}\n"
            );
            let plan = plimsoll_core::plan::Plan::parse("t.toml", &text).unwrap();
            resolve(&plan.cells[0], None)
                .map(|resolved| resolved.settings)
                .map_err(|error| error.to_string())
        };
        let universal = "compaction_options_universal";
        let shipped = resolved("use_direct_reads = true").unwrap();
        assert_eq!(
            (
                shipped["use_direct_reads"].as_str(),
                shipped[&format!("{universal}.size_ratio")].as_str()
            ),
            ("true", "1")
        );
        for changed in [
            format!("{universal} = \"{{size_ratio=5}}\""),
            format!("\"{universal}.size_ratio\" = 5"),
        ] {
            let settings = resolved(&changed).unwrap();
            assert_eq!(settings[&format!("{universal}.size_ratio")], "5");
            assert_eq!(
                settings[&format!("{universal}.min_merge_width")],
                "2",
                "the other members stay"
            );
            assert!(!settings.contains_key(universal));
        }
        let without = resolved("block_cache_high_pri_pool_ratio = \"\"").unwrap();
        assert_eq!(without.len() + 2, shipped.len());
        assert!(!without.contains_key("block_cache_high_pri_pool_ratio"));
        let without = resolved(&format!("{universal} = \"\"")).unwrap();
        assert!(
            without.keys().all(|name| !name.starts_with(universal))
                && without.contains_key("compression")
        );
        for (settings, wanted) in [
            (
                "compresion = \"\"",
                "cell rocksdb@8.9.1.c: config c (shipped uc_byrx_small): compresion = \"\" takes a \
                setting out",
            ),
            ("compresion = \"\"", "(did you mean \"compression\"?)"),
            (
                "compaction_options_universal = \"5\"",
                "write {NAME=VALUE;...}",
            ),
        ] {
            let error = resolved(settings).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn an_option_file_is_read_as_its_server_reads_it() {
        let text = "[client]\nsocket = /tmp/x\n[mysqld]\n; \
                   comment\nskip-name-resolve\ninit_connect = 'set @a = \"#\"' # \
                   why\n[mysqldump]\nquick\n";
        let settings = parse("my.cnf", text, ConfigSyntax::OptionFile).unwrap();
        assert_eq!(
            settings.into_iter().collect::<Vec<_>>(),
            [
                ("init_connect".into(), "'set @a = \"#\"'".into()),
                ("skip-name-resolve".into(), String::new())
            ]
        );
        for (text, wanted) in [
            (
                "[mysqld-8.0]\na = 1",
                "my.cnf:1: sections of one version are not known here",
            ),
            (
                "!includedir /etc/mysql",
                "my.cnf:1: other files are not included",
            ),
        ] {
            assert!(
                parse("my.cnf", text, ConfigSyntax::OptionFile)
                    .unwrap_err()
                    .to_string()
                    .contains(wanted)
            );
        }
    }
}
