//! Writing so that a crash leaves the old file or the new one, never half of either.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_core::buggify::{self, Point};
use plimsoll_core::planted::{self, Bug};
use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, open, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;

use crate::StoreError;

/// Writes `value` as indented JSON: a reader sees the old file or the whole new one, and after the
/// return the new one survives a power cut. Missing folders are created.
pub fn write_json_atomically<T: Serialize + ?Sized>(
    path: impl AsRef<Path>,
    value: &T,
) -> Result<(), StoreError> {
    let path = path.as_ref();
    let mut json = serde_json::to_vec_pretty(value).map_err(|error| StoreError::Unwritable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    json.push(b'\n');
    let mut file = AtomicFile::create(path)?;
    file.write_all(&json)
        .map_err(StoreError::io("write", path))?;
    file.commit()
}

/// Writes `above/folder/name`, whole or not at all, and returns its path. `folder` is made where it
/// is missing. Neither it nor the file is followed if it is a link: the file is replaced, the
/// folder refused.
pub(crate) fn write_in_folder(
    above: &Path,
    folder: &str,
    name: &str,
    bytes: &[u8],
) -> Result<PathBuf, StoreError> {
    let at = above.join(folder);
    let path = at.join(name);
    let temporary = temporary_name(&path);
    let write = || -> Result<(), Errno> {
        let above = open(above, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        match mkdirat(&above, folder, Mode::from_raw_mode(0o777)) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        let at = openat(
            &above,
            folder,
            OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&at, &temporary, flags, Mode::from_raw_mode(0o666))?);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let renamed = written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO));
        renamed
            .and_then(|()| renameat(&at, &temporary, &at, name))
            .inspect_err(|_| {
                // What cannot be removed starts with a dot and is read by nobody.
                let _ = unlinkat(&at, &temporary, AtFlags::empty());
            })?;
        fsync(&at)
    };
    match write() {
        Ok(()) => Ok(path),
        Err(Errno::LOOP | Errno::NOTDIR) if at.is_symlink() => Err(StoreError::Link { path: at }),
        Err(error) => Err(StoreError::io("write", &path)(error.into())),
    }
}

/// A file that appears under its name, complete, with [`AtomicFile::commit`]. Dropped before that,
/// it leaves nothing.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    path: PathBuf,
    temporary: PathBuf,
    writer: BufWriter<File>,
    is_committed: bool,
}

impl AtomicFile {
    /// Starts the file, next to its later place.
    pub(crate) fn create(path: &Path) -> Result<Self, StoreError> {
        create_folders(folder_of(path))?;
        let temporary = folder_of(path).join(temporary_name(path));
        let file = File::create_new(&temporary).map_err(StoreError::io("create", &temporary))?;
        Ok(Self {
            path: path.to_owned(),
            temporary,
            writer: BufWriter::new(file),
            is_committed: false,
        })
    }

    /// Makes it durable and gives it its name.
    pub(crate) fn commit(mut self) -> Result<(), StoreError> {
        let write = StoreError::io("write", &self.path);
        let sync = |file: &File| match planted::is(Bug::NamedBeforeSynced) {
            true => Ok(()),
            false => file.sync_all(),
        };
        self.writer
            .flush()
            .and_then(|()| sync(self.writer.get_ref()))
            .map_err(write)?;
        buggify::pause(Point::LateName, Duration::from_millis(1));
        fs::rename(&self.temporary, &self.path).map_err(StoreError::io("write", &self.path))?;
        self.is_committed = true;
        sync_folder(folder_of(&self.path))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if !self.is_committed {
            // What cannot be removed starts with a dot and is read by nobody.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// `.NAME.PID-N.tmp`: not used by another thread or process, and skipped by every reader.
pub(crate) fn temporary_name(path: &Path) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(
        ".{name}.{}-{}.tmp",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// The folder a path lies in; `.` for a bare name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Creates the folder and those above it, and makes their names durable.
pub(crate) fn create_folders(path: &Path) -> Result<(), StoreError> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !above.exists())
        .collect();
    fs::create_dir_all(path).map_err(StoreError::io("create", path))?;
    missing
        .into_iter()
        .try_for_each(|made| sync_folder(folder_of(made)))
}

/// Makes a folder in whose place nothing may be, least of all a link to somewhere else, and those
/// above it where they are missing. All names are durable.
pub fn create_new_folder(path: &Path) -> Result<(), StoreError> {
    let above = folder_of(path);
    create_folders(above)?;
    fs::create_dir(path).map_err(StoreError::io("create", path))?;
    sync_folder(above)
}

/// Makes a file in place of whatever has its name, which may be a link to somewhere else.
pub fn create_in_place(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// Opens a file to read. Campaign folders may come from anybody: a pipe in its place, which may
/// never say anything, and a device, which may never end, are errors.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a file; remove it")),
    }
}

/// All of a file, as [`open_file`] opens it.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Makes the names in a folder durable: a file's own sync does not.
pub fn sync_folder(path: &Path) -> Result<(), StoreError> {
    if planted::is(Bug::FolderNotSynced) {
        return Ok(());
    }
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .map_err(StoreError::io("sync", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_one_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/x.json");
        write_json_atomically(&path, &[1, 2]).unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  1,\n  2\n]\n");
        drop(file);
        let names: Vec<_> = fs::read_dir(dir.path().join("a/b"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["x.json"]);
        write_json_atomically(&path, "new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "\"new\"\n");
    }

    #[test]
    fn a_page_is_written_beside_links_and_never_through_them() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "theirs").unwrap();
        let campaign = dir.path().join("campaign");
        fs::create_dir(&campaign).unwrap();
        let write = || write_in_folder(&campaign, "report", "index.html", b"page");
        let path = write().unwrap();
        assert_eq!(
            (path.clone(), fs::read_to_string(&path).unwrap()),
            (campaign.join("report/index.html"), "page".to_owned())
        );

        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&precious, &path).unwrap();
        write().unwrap();
        assert!(!path.is_symlink() && fs::read_to_string(&path).unwrap() == "page");
        assert_eq!(
            fs::read_dir(campaign.join("report")).unwrap().count(),
            1,
            "nothing else is left"
        );

        fs::remove_dir_all(campaign.join("report")).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, campaign.join("report")).unwrap();
        let error = write().unwrap_err().to_string();
        assert!(
            error.contains("/report: it is a link") && error.contains("; remove it"),
            "{error}"
        );
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
    }

    #[test]
    fn a_file_in_the_way_of_a_folder_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "").unwrap();
        let error = write_json_atomically(dir.path().join("a/x.json"), &1)
            .unwrap_err()
            .to_string();
        assert!(error.contains("/a") && error.contains("; "), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_synced_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(sync_folder(dir.path()).is_ok());
        assert!(matches!(
            sync_folder(&dir.path().join("gone")),
            Err(StoreError::Io { action: "sync", .. })
        ));
    }
}
