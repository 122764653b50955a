//! A sealed trial folder on its way: a tar stream of its regular files, and back into a folder that
//! appears at once, after its seal is checked.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Take, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use plimsoll_host::free_bytes;
use plimsoll_store::{CampaignDir, TRIALS_FOLDER, check_seal, create_new_folder, sync_folder};
use rustix::fs::syncfs;

use super::whose::check_whose;

/// No trial's folder is larger: a campaign of many tests has some MiB in each.
pub(super) const MOST_BYTES: u64 = 4 << 30;
/// Nor has it more files.
const MOST_FILES: usize = 100_000;
/// No path in it is longer, in bytes.
const LONGEST_PATH: u64 = 4096;
/// A trial is taken only if so much of the disk stays free.
const LEAST_FREE: u64 = 256 << 20;
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
    /// Who has sent it.
    from: String,
}

/// What became of a trial folder that has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is in the campaign, on the disk.
    New,
    /// It was there already, the same.
    Known,
    /// It is not one to take, however often it comes: why.
    Other(String),
}

impl Incoming {
    /// Unpacks a stream of so many bytes. `from` is who sends it.
    ///
    /// # Errors
    /// When the stream is not a tar of plain files, or the disk has no room for it. All of the
    /// stream is read even so.
    pub fn unpack(
        campaign: &Path,
        folder: &str,
        from: &str,
        stream: &mut Take<impl Read>,
    ) -> io::Result<Self> {
        let unpacked = Self::unpack_to(campaign, folder, from, stream);
        io::copy(stream, &mut io::sink())?;
        unpacked
    }

    fn unpack_to(
        campaign: &Path,
        folder: &str,
        from: &str,
        stream: &mut Take<impl Read>,
    ) -> io::Result<Self> {
        check_room(campaign, stream.limit())?;
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
            from: from.to_owned(),
        };
        if incoming.dir.exists() {
            fs::remove_dir_all(&incoming.dir)?;
        }
        create_new_folder(&incoming.dir).map_err(io::Error::other)?;
        incoming.write(stream)?;
        Ok(incoming)
    }

    /// Writes the files of a tar stream.
    fn write(&self, stream: impl Read) -> io::Result<()> {
        let mut archive = tar::Archive::new(stream);
        let mut long_name = None;
        // Raw: else a name may be as long as the stream, in memory.
        for (files, entry) in archive.entries()?.raw(true).enumerate() {
            let mut entry = entry?;
            if files >= MOST_FILES {
                let what = format!("it has more than {MOST_FILES} files");
                return Err(io::Error::other(what));
            }
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() && entry.size() <= LONGEST_PATH {
                let mut name = Vec::new();
                entry.read_to_end(&mut name)?;
                name.retain(|byte| *byte != 0);
                long_name = Some(PathBuf::from(OsString::from_vec(name)));
                continue;
            }
            let path = match long_name.take() {
                Some(path) => path,
                None => entry.path()?.into_owned(),
            };
            if kind != tar::EntryType::Regular || !is_relative(&path) {
                let place = path.display();
                return Err(io::Error::other(format!(
                    "{place} is no plain file below it"
                )));
            }
            let target = self.dir.join(&path);
            if let Some(above) = target.parent() {
                fs::create_dir_all(above)?;
            }
            let mut file = File::create_new(&target)?;
            io::copy(&mut entry, &mut file)?;
            file.flush()?;
        }
        Ok(())
    }

    /// Checks its seal and whose it is, and puts it into the campaign, durably.
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
        if let Err(reason) = check_whose(campaign, &self.folder, &self.dir, &self.from) {
            return Ok(Taken::Other(reason));
        }
        let trials = campaign.path.join(TRIALS_FOLDER);
        let target = trials.join(&self.folder);
        if target.exists() {
            let seal = |dir: &Path| fs::read(dir.join("seal.json")).ok();
            return Ok(match seal(&target) == seal(&self.dir) {
                true => Taken::Known,
                false => Taken::Other("another one is in the campaign already".to_owned()),
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

/// Whether a trial of so many bytes leaves the campaign's disk with some room.
fn check_room(campaign: &Path, bytes: u64) -> io::Result<()> {
    let free = free_bytes(campaign).unwrap_or(u64::MAX);
    match bytes.saturating_add(LEAST_FREE) > free {
        true => Err(io::Error::other(format!(
            "{} has {} MiB free, and the trial has {}: free space here, then `plimsoll resume`",
            campaign.display(),
            free >> 20,
            bytes >> 20
        ))),
        false => Ok(()),
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
    use plimsoll_store::event::{Event, TrialStart};
    use plimsoll_store::seal;

    use super::super::whose::tests::{campaign, start_of, written};
    use super::*;

    fn sealed(dir: &Path) -> PathBuf {
        let trial = dir.join("spool/1-a.b.c-a1");
        fs::create_dir_all(trial.join("series")).unwrap();
        fs::write(trial.join("events.jsonl"), "{}\n").unwrap();
        fs::write(trial.join("series/x.tsv"), vec![b'x'; 100_000]).unwrap();
        fs::write(trial.join("series").join("y".repeat(150)), "long").unwrap();
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
        let mut stream = stream.take(stream.len() as u64);
        Incoming::unpack(campaign, folder, "h1", &mut stream)
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
    fn a_sealed_trial_of_another_campaign_block_or_host_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let campaign = campaign(place.path());
        let (folder, start) = start_of(&campaign, "h1");
        let made = |number: u32, start: TrialStart| {
            let trial = place.path().join(number.to_string());
            written(&trial, &[Event::TrialStart(start)]);
            seal(&trial).unwrap();
            stream_of(&trial)
        };
        let send = |stream: &[u8]| {
            let incoming = unpack(&campaign.path, &folder, stream).unwrap();
            incoming.take(&campaign).unwrap()
        };
        let mut others = vec![start.clone(); 3];
        others[0].seed += 1;
        others[1].block += 1;
        others[2].host = Some("h2".into());
        for (number, other) in (0..).zip(others) {
            let taken = send(&made(number, other));
            assert!(matches!(taken, Taken::Other(_)), "{number}: {taken:?}");
        }
        assert_eq!(
            fs::read_dir(campaign.path.join(TRIALS_FOLDER))
                .unwrap()
                .count(),
            0
        );
        let own = made(3, start);
        assert_eq!(send(&own), Taken::New);
        assert_eq!(send(&own), Taken::Known);
    }

    #[test]
    fn a_trial_that_would_fill_the_disk_is_read_and_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let campaign = dir.path().join("campaign");
        fs::create_dir(&campaign).unwrap();
        let free = free_bytes(&campaign).unwrap();
        let error = check_room(&campaign, free).unwrap_err().to_string();
        assert!(error.contains("MiB free, and the trial has"), "{error}");
        check_room(&campaign, 1 << 10).unwrap();
        // More files than any trial has, in a stream of some MiB.
        let mut builder = tar::Builder::new(Vec::new());
        for number in 0..=MOST_FILES {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            header.set_path(format!("{number}")).unwrap();
            header.set_cksum();
            builder.append(&header, io::empty()).unwrap();
        }
        let stream = builder.into_inner().unwrap();
        let error = unpack(&campaign, "1-a-a1", &stream).err().unwrap();
        assert!(
            error.to_string().contains("more than 100000 files"),
            "{error}"
        );
        let trials = campaign.join(TRIALS_FOLDER);
        assert_eq!(fs::read_dir(trials).unwrap().count(), 0);
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
        let long_name = |bytes: u64| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::GNULongName);
            header.set_size(bytes);
            header.set_cksum();
            let mut builder = tar::Builder::new(Vec::new());
            builder
                .append(&header, io::repeat(b'x').take(bytes))
                .unwrap();
            builder.into_inner().unwrap()
        };
        for stream in [
            of(tar::EntryType::Regular, "../x"),
            of(tar::EntryType::Regular, "/tmp/x"),
            of(tar::EntryType::Symlink, "x"),
            b"not a tar stream".repeat(64),
            // A name as long as memory allows.
            long_name(LONGEST_PATH + 1),
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
