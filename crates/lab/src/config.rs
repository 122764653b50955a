//! From a plan's config to settings: the file's lines, then the plan's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll_core::name::EngineName;
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

/// Reads the config of a cell. A `file` of the plan is relative to the plan's folder; without one, `LABEL.conf` next to the plan
/// comes before the shipped config of that label. With `from` of the plan it is the shipped config of that name.
pub(crate) fn resolve(cell: &Cell, plan_dir: Option<&Path>) -> Result<ResolvedConfig, LabError> {
    let config = &cell.config;
    if let Some(server) = &cell.server {
        // Its settings are its own; the plan may name the storage engine of our tables.
        return Ok(ResolvedConfig { source: format!("as the server {} is", server.label), settings: config.settings.clone() });
    }
    let engine = cell.build.engine;
    let beside = plan_dir.unwrap_or(Path::new("."));
    let (source, text) = if let Some(file) = &config.file {
        let path = beside.join(file);
        (file.clone(), read(&path, &cell.label)?)
    } else if let Some(from) = &config.from {
        let text = shipped_config(engine, from).ok_or_else(|| {
            let known = shipped_config_labels(engine);
            LabError::Usage(format!(
                "cell {}: [config.{}] from: there is no shipped config \"{from}\" for {engine}{}; shipped: {}",
                cell.label,
                config.label,
                suggest::hint(from, known.iter().copied()),
                known.join(", "),
            ))
        })?;
        (format!("shipped {from}"), text.to_owned())
    } else {
        let name = format!("{}.{}", config.label, extension(engine));
        let path: PathBuf = beside.join(&name);
        if plan_dir.is_some() && path.is_file() {
            (name, read(&path, &cell.label)?)
        } else if let Some(text) = shipped_config(engine, &config.label) {
            ("shipped".to_owned(), text.to_owned())
        } else if !config.settings.is_empty() {
            ("plan".to_owned(), String::new())
        } else {
            let known = shipped_config_labels(engine);
            return Err(LabError::Usage(format!(
                "cell {}: there is no config \"{}\" for {engine}{}; shipped: {}; or put {} beside the plan, or set [config.{}] file = ... or settings = ...",
                cell.label,
                config.label,
                suggest::hint(&config.label, known.iter().copied()),
                known.join(", "),
                path.display(),
                config.label
            )));
        }
    };
    let mut settings = parse(&source, &text)?;
    settings.extend(config.settings.iter().map(|(name, value)| (name.clone(), value.clone())));
    if settings.values().any(|value| value.contains('{')) {
        let machine = Machine::read().map_err(LabError::Io)?;
        for (name, value) in &mut settings {
            *value = fill(value, machine).map_err(|error| LabError::Usage(format!("cell {}: {source}: {name}: {error}", cell.label)))?;
        }
    }
    Ok(ResolvedConfig { source, settings })
}

/// Option files are named as the field names them.
fn extension(engine: EngineName) -> &'static str {
    match engine {
        EngineName::Mysql | EngineName::Mariadb => "cnf",
        EngineName::Sqlite | EngineName::Postgres | EngineName::Null => "conf",
    }
}

fn read(path: &Path, cell: &str) -> Result<String, LabError> {
    std::fs::read_to_string(path).map_err(|error| {
        LabError::Usage(format!(
            "cell {cell}: the config file {} cannot be read: {error}; paths are relative to the plan's folder",
            path.display()
        ))
    })
}

/// `name = value` lines; `#` begins a comment.
fn parse(source: &str, text: &str) -> Result<BTreeMap<String, String>, LabError> {
    let mut settings = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |problem: &str| LabError::Usage(format!("{source}:{}: {problem}: \"{line}\"; write NAME = VALUE", number + 1));
        let (name, value) = line.split_once('=').ok_or_else(|| wrong("no \"=\" in this line"))?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || value.is_empty() {
            return Err(wrong("a name or a value is missing"));
        }
        if settings.insert(name.to_owned(), value.to_owned()).is_some() {
            return Err(wrong("this setting is there twice"));
        }
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_lines_and_names_bad_ones() {
        let settings = parse("x.conf", "# comment\njournal_mode = wal # trailing\n\nsynchronous=full\n").unwrap();
        assert_eq!(
            settings.into_iter().collect::<Vec<_>>(),
            [("journal_mode".into(), "wal".into()), ("synchronous".into(), "full".into())]
        );
        for (text, wanted) in [
            ("a = 1\nb", "x.conf:2: no \"=\" in this line: \"b\""),
            ("a =", "x.conf:1: a name or a value is missing"),
            ("a = 1\na = 2", "x.conf:2: this setting is there twice"),
        ] {
            assert!(parse("x.conf", text).unwrap_err().to_string().contains(wanted));
        }
    }
}
