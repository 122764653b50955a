//! Copies of data directories: by reference where the filesystem can, byte by byte elsewhere.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, symlink};
use std::path::Path;

/// Copies a folder to a place that is not there yet, with owners and permissions, and has it all on
/// the disk: else the kernel would write it while something is measured. Sockets and pipes are left
/// out: they are of processes.
pub(super) fn copy_to_disk(from: &Path, to: &Path) -> io::Result<()> {
    copy_tree(from, to)?;
    Ok(rustix::fs::syncfs(File::open(to)?)?)
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::metadata(from)?;
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, source, target) = (entry.file_type()?, entry.path(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if !kind.is_socket() && !kind.is_fifo() {
            copy_file(&source, &target)?;
        }
    }
    fs::set_permissions(to, about.permissions())?;
    give(to, &about)
}

pub(super) fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let about = fs::metadata(from)?;
    let (source, target) = (File::open(from)?, File::create_new(to)?);
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        fs::copy(from, to)?;
    }
    fs::set_permissions(to, about.permissions())?;
    give(to, &about)?;
    let (wanted, found) = (about.len(), fs::metadata(to)?.len());
    if wanted != found {
        let reason = format!(
            "the copy of {} has {found} bytes and should have {wanted}",
            from.display()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    }
    Ok(())
}

/// A copy belongs to whom the original belongs to. Only root can make it so where that is somebody
/// else.
pub(super) fn give(path: &Path, about: &fs::Metadata) -> io::Result<()> {
    let now = fs::metadata(path)?;
    if (now.uid(), now.gid()) == (about.uid(), about.gid()) {
        return Ok(());
    }
    chown(path, Some(about.uid()), Some(about.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_copy_has_everything_but_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        fs::create_dir_all(from.join("data/empty")).unwrap();
        fs::write(from.join("data/ibdata1"), vec![7u8; 100_000]).unwrap();
        fs::write(from.join("my.cnf"), "x").unwrap();
        fs::set_permissions(from.join("my.cnf"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(from.join("data"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("data/ibdata1", from.join("link")).unwrap();
        let _socket = UnixListener::bind(from.join("socket")).unwrap();
        copy_to_disk(&from, &to).unwrap();
        assert_eq!(
            fs::read(to.join("data/ibdata1")).unwrap(),
            vec![7u8; 100_000]
        );
        assert!(to.join("data/empty").is_dir() && !to.join("socket").exists());
        assert_eq!(
            fs::read_link(to.join("link")).unwrap(),
            Path::new("data/ibdata1")
        );
        let mode = |path: &str| fs::metadata(to.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("my.cnf"), mode("data")), (0o600, 0o700));
        assert!(
            copy_to_disk(&from, &to).is_err(),
            "what is there is not written over"
        );
    }
}
