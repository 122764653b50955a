//! What of data directories is in the page cache: all of each, or nothing of any.
//!
//! Copies are made one after another. Without this the last has its files in the page cache, and the
//! first has lost them where memory is short. A server that writes parts of pages of its log, as
//! MySQL 5.6 does, then reads each page before it writes: with 2 GiB of log and five servers the
//! first one had half of the throughput of its twin.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{Advice, fadvise};

/// The kernel reads no more than this ahead at once.
const CHUNK: u64 = 128 << 10;

/// What of the data is in the page cache when servers start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageCache {
    /// All of it.
    Warm,
    /// Nothing: it does not fit beside the servers.
    Cold,
}

/// Brings all files of these folders into the page cache, or out of it. They have to be on the disk.
pub(crate) fn even_out(dirs: &[&Path], to: PageCache) -> io::Result<()> {
    dirs.iter().try_for_each(|dir| of_tree(dir, to))
}

fn of_tree(dir: &Path, to: PageCache) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            of_tree(&entry.path(), to)?;
        } else if kind.is_file() {
            of_file(&File::open(entry.path())?, to)?;
        }
    }
    Ok(())
}

fn of_file(file: &File, to: PageCache) -> io::Result<()> {
    let length = file.metadata()?.len();
    if to == PageCache::Cold {
        return Ok(fadvise(file, 0, None, Advice::DontNeed)?);
    }
    let chunks = || (0..length).step_by(CHUNK as usize);
    for offset in chunks() {
        fadvise(file, offset, NonZeroU64::new(CHUNK), Advice::WillNeed)?;
    }
    // A byte of each is there when all of it is.
    let mut byte = [0];
    for offset in chunks() {
        let last = (offset + CHUNK).min(length) - 1;
        file.read_exact_at(&mut byte, last)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that reading a file takes from the disk.
    fn from_disk(path: &Path) -> u64 {
        let read = || -> u64 {
            let io = fs::read_to_string("/proc/thread-self/io").unwrap();
            let line = io
                .lines()
                .find_map(|line| line.strip_prefix("read_bytes: "));
            line.unwrap().parse().unwrap()
        };
        let before = read();
        fs::read(path).unwrap();
        read() - before
    }

    #[test]
    fn files_come_and_go() {
        const LENGTH: u64 = 10 << 20;
        // Beside the program, which is on a disk.
        let program = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        let file = dir.path().join("data/ibdata1");
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::write(&file, vec![7; LENGTH as usize]).unwrap();
        File::open(&file).unwrap().sync_all().unwrap();
        even_out(&[dir.path()], PageCache::Cold).unwrap();
        assert!(from_disk(&file) > LENGTH / 2);
        even_out(&[dir.path()], PageCache::Cold).unwrap();
        even_out(&[dir.path()], PageCache::Warm).unwrap();
        assert!(from_disk(&file) < LENGTH / 2);
    }
}
