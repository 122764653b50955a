//! A build from one cache to another, as a tar stream.

use std::fs;
use std::io::{Read, Write};

use super::{BuildCache, PrivateFolder, check_unchanged};
use crate::builds::error::BuildError;
use crate::builds::manifest;
use crate::builds::recipes::resolve::OWN;
use crate::builds::record;

/// A build's name, the sum of its server, and those of its links.
pub(crate) type Sums = (String, String, Vec<String>);

impl BuildCache {
    /// The builds that are here, by name, each with the sums of its server and of its links.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(crate) fn sums(&self) -> Result<Vec<Sums>, BuildError> {
        let readable = self.records()?.into_iter();
        let sum = |(name, record): (String, Result<record::Record, BuildError>)| {
            let build = record.ok()?.build;
            let links = build.links.into_iter().map(|link| link.sha256).collect();
            Some((name, build.server_sha256, links))
        };
        Ok(readable.filter_map(sum).collect())
    }

    /// Writes all files of the build with this exact name.
    ///
    /// # Errors
    /// When it is not here, or is a folder of the user's own, which is not copied, or cannot be
    /// read.
    pub(crate) fn send(&self, name: &str, to: impl Write) -> Result<(), BuildError> {
        let folder = self.dir.join(name);
        let record = record::read(&folder)?.ok_or_else(|| BuildError::NotHere {
            name: name.to_owned(),
        })?;
        if record.provenance.source == OWN {
            return Err(BuildError::Usage(format!(
                "{name} is a folder of your own, {}: add it on the host, too, with `plimsoll build \
                add --basedir`",
                record.build.basedir.display()
            )));
        }
        let mut tar = tar::Builder::new(to);
        tar.follow_symlinks(false);
        tar.append_dir_all(".", &folder)
            .and_then(|()| tar.into_inner()?.flush())
            .map_err(BuildError::io("send", &folder))
    }

    /// Takes a build that [`BuildCache::send`] has written. It appears when all of its files are as
    /// they were.
    ///
    /// # Errors
    /// When it is another build, damaged, or does not fit on the disk.
    pub(crate) fn receive(&self, name: &str, from: impl Read) -> Result<(), BuildError> {
        let partial = format!("{name}.partial-{}", std::process::id());
        let partial = PrivateFolder(self.dir.join(partial));
        fs::create_dir_all(&partial.0).map_err(BuildError::io("make", &partial.0))?;
        let mut tar = tar::Archive::new(from);
        tar.set_preserve_permissions(true);
        tar.unpack(&partial.0)
            .map_err(BuildError::io("unpack into", &partial.0))?;
        let unfit = |what: String| BuildError::Unfit(format!("{name} came damaged: {what}"));
        let record = record::read(&partial.0)?;
        let record = record.ok_or_else(|| unfit("it has no build.json".into()))?;
        if record.build.name != name {
            return Err(unfit(format!("it is {}", record.build.name)));
        }
        check_unchanged(&record)?;
        if let Some(wanted) = &record.provenance.files_sha256
            && let Some(changed) = manifest::changed(&partial.0, wanted)?
        {
            return Err(unfit(changed));
        }
        self.keep(&partial.0, &record).map(drop)
    }
}
