//! What builds and fetches leave in a cache beside builds: workshops of those that failed or were
//! interrupted, sources, and what ccache keeps.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_core::name::natural_cmp;
use plimsoll_engine::directory_bytes;

use super::{BuildCache, LOCKS};
use crate::builds::error::BuildError;
use crate::builds::folder::remove;
use crate::builds::install::from_source::{SOURCES, is_whole_source};
use crate::builds::lock::Lock;
use crate::builds::make::{CCACHE, WORK};

/// A folder of the cache that is not a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// `work/postgres+mine-o2`, `sources/...`, `ccache`: below the cache's folder.
    pub name: String,
    pub folder: PathBuf,
    /// On the disk.
    pub bytes: u64,
    /// The lock that whoever works in it holds, if there is one.
    lock: Option<PathBuf>,
}

/// What became of a folder that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cleaned {
    pub leftover: Leftover,
    /// False if somebody works in it.
    pub is_removed: bool,
}

impl BuildCache {
    /// Workshops that builds were not finished in, and that wait for the next commit of a checkout.
    ///
    /// # Errors
    /// When the cache cannot be read.
    pub fn workshops(&self) -> Result<Vec<Leftover>, BuildError> {
        self.leftovers(WORK, &|name| format!("{name}.lock"), &|_| true)
    }

    /// Removes workshops, and sources whose fetch was not finished; with `is_all` all sources and
    /// what ccache keeps, too. What somebody works in stays. Builds are not touched.
    ///
    /// # Errors
    /// When the cache cannot be read, or a folder cannot be removed.
    pub fn clean(&self, is_all: bool) -> Result<Vec<Cleaned>, BuildError> {
        let source_lock = |name: &str| {
            let name = name.strip_suffix(".new").unwrap_or(name);
            format!("source-{name}.lock")
        };
        let is_meant = |folder: &Path| is_all || !is_whole_source(folder);
        let mut leftovers = self.workshops()?;
        leftovers.extend(self.leftovers(SOURCES, &source_lock, &is_meant)?);
        let cleaned = leftovers.into_iter().map(clean_one);
        let mut cleaned = cleaned.collect::<Result<Vec<_>, _>>()?;
        let ccache = self.dir.join(CCACHE);
        if is_all && ccache.is_dir() {
            // Compilers of any workshop write there.
            let is_removed = cleaned.iter().all(|cleaned| cleaned.is_removed);
            let leftover = leftover(CCACHE.to_owned(), ccache, None);
            if is_removed {
                remove(&leftover.folder)?;
            }
            cleaned.push(Cleaned {
                leftover,
                is_removed,
            });
        }
        Ok(cleaned)
    }

    /// The folders below one of the cache's.
    fn leftovers(
        &self,
        of: &str,
        lock: &dyn Fn(&str) -> String,
        is_meant: &dyn Fn(&Path) -> bool,
    ) -> Result<Vec<Leftover>, BuildError> {
        let dir = self.dir.join(of);
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(BuildError::io("read", &dir))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let folder = entry.map_err(BuildError::io("read", &dir))?.path();
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if folder.is_dir() && is_meant(&folder) {
                let lock = self.dir.join(LOCKS).join(lock(&name));
                let name = format!("{of}/{name}");
                found.push(leftover(name, folder.clone(), Some(lock)));
            }
        }
        found.sort_by(|a, b| natural_cmp(&a.name, &b.name));
        Ok(found)
    }
}

fn leftover(name: String, folder: PathBuf, lock: Option<PathBuf>) -> Leftover {
    Leftover {
        // Whoever works in it makes and removes files meanwhile.
        bytes: directory_bytes(&folder).unwrap_or(0),
        name,
        folder,
        lock,
    }
}

fn clean_one(leftover: Leftover) -> Result<Cleaned, BuildError> {
    let lock = leftover.lock.as_deref().map(Lock::try_take).transpose()?;
    // The inner one is held until the folder is gone.
    let is_busy = matches!(lock, Some(None));
    if !is_busy {
        remove(&leftover.folder)?;
    }
    Ok(Cleaned {
        leftover,
        is_removed: !is_busy,
    })
}
