//! Where things are, when the arguments do not say.

use std::path::PathBuf;

use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{default_cache_dir, default_data_dir};
use plimsoll_store::{Store, shell_word};

use crate::arguments::Places;
use crate::failure::Failure;

impl Places {
    pub fn store(&self) -> Store {
        Store::new(&self.store)
    }

    pub fn builds(&self) -> Result<BuildCache, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))?;
        Ok(BuildCache::new(self.cache_dir()?).under_guard(program))
    }

    pub fn cache_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.cache.clone().map_or_else(default_cache_dir, Ok)?)
    }

    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.data.clone().map_or_else(default_data_dir, Ok)?)
    }

    /// The command that goes on with the campaign at `path`, a word of a shell: builds are looked for
    /// where they were.
    pub fn resume(&self, path: &str) -> String {
        let cache = self.cache.as_deref().map(|dir| dir.to_string_lossy());
        let cache = cache.map_or_else(String::new, |dir| format!(" --cache {}", shell_word(&dir)));
        format!("plimsoll resume {path}{cache}")
    }
}
