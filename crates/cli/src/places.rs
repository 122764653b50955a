//! Where things are, when the arguments do not say.

use std::path::PathBuf;

use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{default_cache_dir, default_data_dir};
use plimsoll_store::Store;

use crate::arguments::Places;
use crate::failure::Failure;

impl Places {
    pub fn store(&self) -> Store {
        Store::new(&self.store)
    }

    pub fn builds(&self) -> Result<BuildCache, Failure> {
        Ok(BuildCache::new(self.cache_dir()?))
    }

    pub fn cache_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.cache.clone().map_or_else(default_cache_dir, Ok)?)
    }

    pub fn data_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.data.clone().map_or_else(default_data_dir, Ok)?)
    }
}
