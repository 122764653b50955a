//! Room in the store for a last word: that a trial failed because the disk is full has to be
//! written, too.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::durable::create_in_place;

/// In the campaign's folder.
const RESERVE_FILE: &str = ".reserve";
const BYTES: usize = 1 << 20;

/// A file of a megabyte in a campaign's folder, while it runs. Removed when dropped.
#[derive(Debug)]
pub struct Reserve(PathBuf);

impl Reserve {
    /// Takes the room, as far as there is any.
    pub fn take(campaign: &Path) -> Self {
        let path = campaign.join(RESERVE_FILE);
        // Without it a full disk costs the reason, and nothing else.
        let _ = write_new(&path);
        Self(path)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Gives the room of the campaign back that the folder of a trial belongs to. False if it was given
/// back before.
pub fn give_up_reserve(trial: &Path) -> bool {
    let campaign = trial.ancestors().nth(2);
    campaign.is_some_and(|campaign| fs::remove_file(campaign.join(RESERVE_FILE)).is_ok())
}

fn write_new(path: &Path) -> io::Result<()> {
    let mut file = create_in_place(path)?;
    // Not zeros, which a filesystem may keep without room.
    file.write_all(&[1; BYTES])?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_is_there_until_it_is_needed_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(RESERVE_FILE);
        let trial = dir.path().join("trials/1-x-a1");
        for is_needed in [false, true] {
            fs::write(&file, "of one that was killed").unwrap();
            let reserve = Reserve::take(dir.path());
            assert_eq!(fs::metadata(&file).unwrap().len(), 1_048_576);
            if is_needed {
                assert!(give_up_reserve(&trial));
                assert!(!give_up_reserve(&trial));
            }
            drop(reserve);
            assert!(!file.exists());
        }
    }
}
