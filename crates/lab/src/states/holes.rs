//! Makes files sparse: a state's redo log of gigabytes is mostly zeros, and several states are kept.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

const BLOCK: u64 = 64 << 10;

/// Gives back the blocks of all files of a folder that have nothing but zeros in them. What is read
/// stays the same. A filesystem that cannot do it keeps them.
pub(super) fn make_sparse(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            make_sparse(&entry.path())?;
        } else if kind.is_file() {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .open(entry.path())?;
            match sparse_file(&file) {
                Err(error) if error.raw_os_error() == Some(Errno::OPNOTSUPP.raw_os_error()) => {
                    return Ok(());
                }
                done => done?,
            }
        }
    }
    Ok(())
}

fn sparse_file(file: &File) -> io::Result<()> {
    let length = file.metadata()?.len();
    let mut buffer = vec![0; BLOCK as usize];
    let mut offset = 0;
    while offset < length {
        // What was allocated and never written counts as a hole, and takes room.
        let data = match seek(file, SeekFrom::Data(offset)) {
            Err(Errno::NXIO) => return punch(file, offset, length),
            found => found?,
        };
        let end = match seek(file, SeekFrom::Hole(data)) {
            Err(Errno::NXIO) => length,
            found => found?,
        };
        // Whole blocks only: what is beside them is data.
        let data = data / BLOCK * BLOCK;
        punch(file, offset, data)?;
        offset = offset.max(data);
        let mut zeros = offset;
        while offset < end {
            let block = &mut buffer[..(length - offset).min(BLOCK) as usize];
            file.read_exact_at(block, offset)?;
            if block.iter().any(|byte| *byte != 0) {
                punch(file, zeros, offset)?;
                zeros = offset + block.len() as u64;
            }
            offset += block.len() as u64;
        }
        punch(file, zeros, offset)?;
    }
    Ok(())
}

fn punch(file: &File, from: u64, to: u64) -> io::Result<()> {
    if to <= from {
        return Ok(());
    }
    let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(file, how, from, to - from)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_sparse_file_reads_the_same(
            pieces in proptest::collection::vec((any::<bool>(), 1usize..200_000), 0..8)
        ) {
            let bytes: Vec<u8> = pieces
                .iter()
                .flat_map(|&(is_zero, length)| vec![u8::from(!is_zero); length])
                .collect();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("ib_logfile0");
            fs::write(&path, &bytes).unwrap();
            make_sparse(dir.path()).unwrap();
            prop_assert_eq!(fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn zeros_take_no_room() {
        // Beside the program, which is on a disk.
        let program = std::env::current_exe().unwrap();
        let dir = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        let path = dir.path().join("data/ib_logfile0");
        let file = File::create_new(&path).unwrap();
        let length = 8 << 20;
        fallocate(&file, FallocateFlags::empty(), 0, length).unwrap();
        file.write_all_at(&[7; 1000], 3 << 20).unwrap();
        file.write_all_at(&[0; 1 << 20], 5 << 20).unwrap();
        file.sync_all().unwrap();
        make_sparse(dir.path()).unwrap();
        let about = fs::metadata(&path).unwrap();
        assert_eq!(about.len(), length);
        assert!(about.blocks() * 512 <= 2 * BLOCK, "{}", about.blocks());
    }
}
