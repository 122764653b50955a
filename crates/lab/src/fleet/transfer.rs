//! A sealed trial folder on its way: a tar stream of its regular files, and back into a folder that
//! appears at once, after its seal is checked.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use plimsoll_store::{CampaignDir, TRIALS_FOLDER, check_seal, create_new_folder, sync_folder};
use rustix::fs::syncfs;

/// Folders that are not whole yet begin so; readers of campaigns pass over names with a dot.
const INCOMING: &str = ".incoming-";

/// A tar stream of a folder's regular files, in a file without a name beside it, with its length.
/// It is read from its beginning.
///
/// # Errors
/// When the folder cannot be read or the disk is full.
pub(super) fn pack(dir: &Path) -> io::Result<(File, u64)> {
    let mut builder = tar::Builder::new(tempfile::tempfile_in(dir.parent().unwrap_or(dir))?);
    builder.mode(tar::HeaderMode::Deterministic);
    for path in files_below(dir, Path::new(""))? {
        builder.append_path_with_name(dir.join(&path), &path)?;
    }
    let mut file = builder.into_inner()?;
    let bytes = file.stream_position()?;
    file.seek(SeekFrom::Start(0))?;
    Ok((file, bytes))
}

/// Relative paths of regular files, in order.
fn files_below(dir: &Path, below: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries: Vec<_> = fs::read_dir(dir.join(below))?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut files = Vec::new();
    for entry in entries {
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files.extend(files_below(dir, &path)?);
        } else if kind.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// A trial folder that has come and is not in the campaign yet. Dropped, it is removed.
pub(super) struct Incoming {
    dir: PathBuf,
    folder: String,
}

/// What became of a trial folder that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is in the campaign, on the disk.
    New,
    /// It was there already, the same.
    Known,
    /// Another one is there.
    Other,
}

impl Incoming {
    /// Unpacks a stream to its end. `from` is who sends it.
    ///
    /// # Errors
    /// When the stream is not a tar of plain files, or the disk does not take it. All of the stream is
    /// read even so.
    pub fn unpack(
        campaign: &Path,
        folder: &str,
        from: &str,
        stream: &mut impl Read,
    ) -> io::Result<Self> {
        let unpacked = Self::unpack_to(campaign, folder, from, stream);
        io::copy(stream, &mut io::sink())?;
        unpacked
    }

    fn unpack_to(
        campaign: &Path,
        folder: &str,
        from: &str,
        stream: &mut impl Read,
    ) -> io::Result<Self> {
        if !is_plain(Path::new(folder)) || folder.starts_with('.') {
            return Err(io::Error::other(format!(
                "\"{folder}\" is not a trial's folder"
            )));
        }
        let incoming = Self {
            dir: campaign
                .join(TRIALS_FOLDER)
                .join(format!("{INCOMING}{from}-{folder}")),
            folder: folder.to_owned(),
        };
        if incoming.dir.exists() {
            fs::remove_dir_all(&incoming.dir)?;
        }
        create_new_folder(&incoming.dir).map_err(io::Error::other)?;
        let mut archive = tar::Archive::new(stream);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = entry.path()?.into_owned();
            if entry.header().entry_type() != tar::EntryType::Regular || !is_relative(&path) {
                let place = path.display();
                return Err(io::Error::other(format!(
                    "{place} is no plain file below it"
                )));
            }
            let target = incoming.dir.join(&path);
            if let Some(above) = target.parent() {
                fs::create_dir_all(above)?;
            }
            let mut file = File::create_new(&target)?;
            io::copy(&mut entry, &mut file)?;
            file.flush()?;
        }
        Ok(incoming)
    }

    /// Checks its seal and puts it into the campaign, durably.
    ///
    /// # Errors
    /// Says what is damaged; then it may be sent again.
    pub fn take(self, campaign: &CampaignDir) -> Result<Taken, String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.folder);
        match check_seal(&self.dir).map_err(|error| failed(&error))? {
            None => return Err(failed(&"it has no seal")),
            Some(changes) => {
                if let Some(change) = changes.first() {
                    let path = &change.path;
                    return Err(failed(&format!("{path} is not as it was sealed")));
                }
            }
        }
        let trials = campaign.path.join(TRIALS_FOLDER);
        let target = trials.join(&self.folder);
        if target.exists() {
            let seal = |dir: &Path| fs::read(dir.join("seal.json")).ok();
            return Ok(match seal(&target) == seal(&self.dir) {
                true => Taken::Known,
                false => Taken::Other,
            });
        }
        File::open(&self.dir)
            .and_then(|dir| Ok(syncfs(dir)?))
            .and_then(|()| fs::rename(&self.dir, &target))
            .map_err(|error| failed(&error))?;
        sync_folder(&trials).map_err(|error| failed(&error))?;
        Ok(Taken::New)
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what a killed desk has left of folders on their way. The campaign's lock is held.
pub(super) fn remove_incoming(campaign: &Path) {
    let entries = fs::read_dir(campaign.join(TRIALS_FOLDER));
    for entry in entries.into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(INCOMING) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// One name, that leads nowhere else.
fn is_plain(path: &Path) -> bool {
    path.components().count() == 1 && is_relative(path)
}

fn is_relative(path: &Path) -> bool {
    let mut components = path.components();
    path.components().next().is_some()
        && components.all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use plimsoll_store::seal;

    use super::*;

    fn sealed(dir: &Path) -> PathBuf {
        let trial = dir.join("spool/1-a.b.c-a1");
        fs::create_dir_all(trial.join("series")).unwrap();
        fs::write(trial.join("events.jsonl"), "{}\n").unwrap();
        fs::write(trial.join("series/x.tsv"), vec![b'x'; 100_000]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", trial.join("link")).unwrap();
        seal(&trial).unwrap();
        trial
    }

    fn stream_of(trial: &Path) -> Vec<u8> {
        let (mut file, bytes) = pack(trial).unwrap();
        let mut stream = Vec::new();
        file.read_to_end(&mut stream).unwrap();
        assert_eq!(stream.len() as u64, bytes);
        stream
    }

    /// Only its path counts here.
    fn unpack(campaign: &Path, folder: &str, stream: &[u8]) -> io::Result<Incoming> {
        Incoming::unpack(campaign, folder, "h1", &mut &stream[..])
    }

    #[test]
    fn a_folder_arrives_with_its_files_and_its_seal() {
        let dir = tempfile::tempdir().unwrap();
        let campaign = dir.path().join("campaign");
        let stream = stream_of(&sealed(dir.path()));
        let incoming = unpack(&campaign, "1-a.b.c-a1", &stream).unwrap();
        assert_eq!(check_seal(&incoming.dir).unwrap(), Some(vec![]));
        assert!(!incoming.dir.join("link").exists());
        let place = incoming.dir.clone();
        drop(incoming);
        assert!(!place.exists(), "what is not taken is removed");
        fs::create_dir(&place).unwrap();
        remove_incoming(&campaign);
        assert!(!place.exists());
    }

    #[test]
    fn what_leads_out_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let campaign = dir.path().join("campaign");
        let of = |kind, name: &str| {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_mode(0o644);
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
            builder.into_inner().unwrap()
        };
        for stream in [
            of(tar::EntryType::Regular, "../x"),
            of(tar::EntryType::Regular, "/tmp/x"),
            of(tar::EntryType::Symlink, "x"),
            b"not a tar stream".repeat(64),
        ] {
            assert!(unpack(&campaign, "1-a-a1", &stream).is_err());
        }
        for folder in ["", "..", "a/b", ".x", "/"] {
            assert!(unpack(&campaign, folder, &[]).is_err(), "{folder}");
        }
        assert_eq!(
            fs::read_dir(campaign.join(TRIALS_FOLDER)).unwrap().count(),
            0
        );
    }
}
