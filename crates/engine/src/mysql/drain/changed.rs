//! Global settings that are changed for a while.

use std::fs;
use std::path::{Path, PathBuf};

use mysql::Opts;
use mysql::prelude::Queryable;

use super::super::files;
use super::{connect, run};
use crate::mysql::state::pairs;
use crate::{DrainAction, EngineError};

/// What the settings were, for whoever finds the folder while they are changed.
const JOURNAL: &str = "settings-journal.json";

/// Settings as they were. They are restored by [`Changed::restore`], and when this is dropped
/// before that: after an error. A server that is killed needs no restoring, as the settings are
/// gone with it.
pub(super) struct Changed {
    opts: Opts,
    journal: PathBuf,
    /// Name and value, in the order of restoring.
    saved: Vec<(&'static str, String)>,
}

impl Changed {
    /// Saves those of `names` that the server has, in memory and in a file. Nothing is changed yet.
    pub fn save(opts: &Opts, log_dir: &Path, names: &[&'static str]) -> Result<Self, EngineError> {
        let sql = "show global variables";
        let mut variables = pairs(&mut connect(opts)?, sql)
            .map_err(|error| crate::mysql::failure::engine_error(sql, &error))?;
        let saved: Vec<_> = names
            .iter()
            .filter_map(|&name| Some((name, variables.remove(name)?)))
            .collect();
        let journal = log_dir.join(JOURNAL);
        let text = serde_json::to_string_pretty(&saved).expect("names and values are text");
        files::write(&journal, &text)?;
        Ok(Self {
            opts: opts.clone(),
            journal,
            saved,
        })
    }

    /// Whether the server has this setting.
    pub fn has(&self, name: &str) -> bool {
        self.saved.iter().any(|(saved, _)| *saved == name)
    }

    /// Puts all values back. Each is tried, whatever happens to the others.
    pub fn restore(mut self) -> Result<Vec<DrainAction>, EngineError> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Vec<DrainAction>, EngineError> {
        if self.saved.is_empty() {
            return Ok(Vec::new());
        }
        // On a connection of its own: the other may be what is wrong.
        let mut connection = connect(&self.opts)?;
        let results: Vec<_> = self
            .saved
            .drain(..)
            .map(|(name, value)| run(&mut connection, &set(name, &value)))
            .collect();
        let actions = results.into_iter().collect::<Result<Vec<_>, _>>()?;
        let path = &self.journal;
        fs::remove_file(path).map_err(|error| {
            EngineError::new(format!(
                "remove {}: {error}; check the folder",
                path.display()
            ))
        })?;
        Ok(actions)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        // The error that led here is reported; this one would only hide it. The journal stays.
        let _ = self.put_back();
    }
}

/// `value` is what the server itself has shown or one of our numbers.
pub(super) fn set(name: &str, value: &str) -> String {
    format!("set global {name} = {value}")
}

pub(super) fn change(opts: &Opts, name: &str, value: &str) -> Result<DrainAction, EngineError> {
    let mut connection = connect(opts)?;
    let action = run(&mut connection, &set(name, value))?;
    let found: Option<String> = connection
        .query_first(format!("select @@global.{name}"))
        .map_err(|error| crate::mysql::failure::engine_error(name, &error))?;
    Ok(DrainAction {
        result: format!("now {}", found.unwrap_or_default()),
        ..action
    })
}
