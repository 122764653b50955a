//! What fetching a package means, whichever client does it.

use std::path::{Path, PathBuf};

use crate::builds::error::BuildError;
use crate::builds::progress::Watch;
use crate::builds::recipes::recipe::Package;

/// What a fetch leaves.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    /// Archives, or Debian packages.
    pub files: Vec<PathBuf>,
    /// The version of the main Debian package.
    pub package_version: Option<String>,
}

/// Fetches packages. Tests have their own.
pub(crate) trait Fetcher: Send + Sync {
    /// Downloads into `folder`, which is empty. `wanted` is the exact version or the series that a
    /// moving suite must still have.
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError>;
}
