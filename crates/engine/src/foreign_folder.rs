//! Folders that belong to the user of a server, written to and read by root. Whoever is that user may
//! put a link or a pipe where a file was: neither is followed, at no place below the folder.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, open, openat, unlinkat};
use rustix::io::Errno;

use crate::process::UserIds;

/// An open folder: what is done in it is done there, whatever its path leads to by now.
pub(crate) struct ForeignFolder(OwnedFd);

const FOLDER: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

impl ForeignFolder {
    /// Opens a folder whose own place is not the other user's to change.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(open(path, FOLDER, Mode::empty())?))
    }

    /// A folder in it.
    pub fn folder(&self, name: &str) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, FOLDER, Mode::empty())?))
    }

    /// The text of a file in it.
    pub fn read(&self, name: &str) -> io::Result<String> {
        io::read_to_string(self.file(name)?)
    }

    /// The first `limit` bytes of a file in it.
    pub fn read_start(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file(name)?.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!("{name} is not a file")));
        }
        Ok(file)
    }

    /// Writes a new file under a name, and removes what has it now. The file belongs to this user, or
    /// to us, and nobody else reads it.
    pub fn replace(&self, name: &str, text: &str, owner: Option<UserIds>) -> io::Result<()> {
        match unlinkat(&self.0, name, AtFlags::empty()) {
            Err(Errno::NOENT) => {}
            removed => removed?,
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(openat(&self.0, name, flags, mode)?);
        file.write_all(text.as_bytes())?;
        match owner {
            Some(UserIds { uid, gid }) => fchown(&file, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

/// Gives a file or folder itself to a user, and sets its mode. A link in its place is refused.
pub(crate) fn give(path: &Path, owner: Option<UserIds>, mode: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if let Some(UserIds { uid, gid }) = owner {
        fchown(&file, Some(uid), Some(gid))?;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn no_link_is_followed_and_no_pipe_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("shadow");
        fs::write(&precious, "secret").unwrap();
        let folder = dir.path().join("theirs");
        fs::create_dir_all(folder.join("pgdata")).unwrap();
        symlink(&precious, folder.join("plimsoll.conf")).unwrap();
        let theirs = ForeignFolder::open(&folder).unwrap();
        assert!(theirs.read("plimsoll.conf").is_err());
        theirs.replace("plimsoll.conf", "port = 1", None).unwrap();
        assert_eq!(theirs.read("plimsoll.conf").unwrap(), "port = 1");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "secret");

        assert!(theirs.folder("pgdata").is_ok());
        fs::remove_dir(folder.join("pgdata")).unwrap();
        symlink(dir.path(), folder.join("pgdata")).unwrap();
        assert!(theirs.folder("pgdata").is_err());
        assert!(give(&folder.join("pgdata"), None, 0o777).is_err());
        assert!(ForeignFolder::open(&folder.join("pgdata")).is_err());

        let pipe = Command::new("mkfifo").arg(folder.join("pipe")).status();
        assert!(pipe.unwrap().success());
        assert!(theirs.read("pipe").is_err());
    }

    #[test]
    fn what_is_given_has_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        give(dir.path(), None, 0o711).unwrap();
        let mode = fs::metadata(dir.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o711);
    }
}
