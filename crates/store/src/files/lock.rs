//! One process runs a campaign, one writer appends to a file. Locks are `flock`s: the kernel frees
//! them when their holder dies, so that a stale lock does not exist.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;

use plimsoll_core::planted::{self, Bug};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::files::durable::open_file;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whoever asks [`is_held`] holds the lock for an instant; these tries outlast it.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// How often the kernel's list of locks is read for a holder that is not in it.
const READS_OF_LOCKS: usize = 10;

/// The right to run a campaign; given back when dropped, or when the process ends.
#[derive(Debug)]
pub struct CampaignLock {
    file: File,
}

/// What the lock file says about its holder, for people and for the next who wants it.
#[derive(Serialize, Deserialize)]
struct Holder {
    pid: u32,
    boot_id: String,
}

impl CampaignLock {
    /// Takes the lock file of `campaign`, or says at once who has it.
    pub(crate) fn take(campaign: &Path) -> Result<Self, StoreError> {
        let path = campaign.join("lock");
        let no_link = OFlags::NOFOLLOW.bits() as i32;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(no_link)
            .open(&path);
        let mut file = match opened {
            Err(_) if path.is_symlink() => return Err(StoreError::Link { path }),
            opened => opened.map_err(StoreError::io("open", &path))?,
        };
        if !try_lock(&file, &path)? {
            return Err(StoreError::Running {
                path: campaign.to_owned(),
                pid: stated_holder(&path),
            });
        }
        let holder = Holder {
            pid: std::process::id(),
            boot_id: boot_id(),
        };
        let text = serde_json::to_string(&holder).expect("a number and a text are JSON") + "\n";
        file.set_len(0)
            .and_then(|()| file.write_all(text.as_bytes()))
            .map_err(StoreError::io("write", &path))?;
        Ok(Self { file })
    }
}

impl Drop for CampaignLock {
    fn drop(&mut self) {
        // Only so that nobody reads an old pid in the instant after the lock is taken again.
        let _ = self.file.set_len(0);
    }
}

/// True while a process holds the campaign's lock.
pub(crate) fn is_held(campaign: &Path) -> bool {
    open_file(&campaign.join("lock"))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Takes the exclusive lock of an open file; false when somebody else has it.
pub(crate) fn try_lock(file: &File, path: &Path) -> Result<bool, StoreError> {
    if planted::is(Bug::StoreNotLocked) {
        return Ok(true);
    }
    try_again(|| file.try_lock()).map_err(StoreError::io("lock", path))
}

fn try_again(mut lock: impl FnMut() -> Result<(), TryLockError>) -> io::Result<bool> {
    for attempt in 1..=TRIES {
        match lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if attempt < TRIES => thread::sleep(BETWEEN_TRIES),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    Ok(false)
}

fn stated_holder(path: &Path) -> Option<u32> {
    let holder: Holder = serde_json::from_str(&fs::read_to_string(path).ok()?).ok()?;
    (holder.boot_id == boot_id()).then_some(holder.pid)
}

fn boot_id() -> String {
    fs::read_to_string(BOOT_ID)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The process that holds an exclusive `flock` on the file, as /proc/locks tells. A long list is
/// given in parts, by position: if a lock goes between two of them, the next part begins too late
/// and misses another one. So who is not found is looked for again.
pub(crate) fn kernel_holder(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let device = format!(
        "{:02x}:{:02x}",
        rustix::fs::major(metadata.dev()),
        rustix::fs::minor(metadata.dev())
    );
    let read = || fs::read_to_string("/proc/locks").ok();
    (0..READS_OF_LOCKS)
        .find_map(|_| find_on_device(&read()?, &device, metadata.ino()))
        .or_else(|| find_holder(&read()?, &device, metadata.ino()))
}

fn find_on_device(locks: &str, device: &str, inode: u64) -> Option<u32> {
    let holders = holders(locks, inode);
    let (pid, _) = holders.iter().find(|(_, found)| *found == device)?;
    pid.parse().ok()
}

/// Some file systems (btrfs) show another device there than `stat` does; then the inode alone must
/// do, if only one lock has it.
fn find_holder(locks: &str, device: &str, inode: u64) -> Option<u32> {
    find_on_device(locks, device, inode).or_else(|| match holders(locks, inode)[..] {
        [(pid, _)] => pid.parse().ok(),
        _ => None,
    })
}

/// The process and the device of each exclusive `flock` on a file with this inode.
fn holders(locks: &str, inode: u64) -> Vec<(&str, &str)> {
    locks
        .lines()
        .filter_map(
            |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
                [_, "FLOCK", _, "WRITE", pid, place, ..] => Some((pid, place)),
                _ => None,
            },
        )
        .filter_map(|(pid, place)| {
            place
                .rsplit_once(':')
                .filter(|(_, found)| *found == inode.to_string())
                .map(|(device, _)| (pid, device))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_holder_among_the_kernels_locks() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 \
                    fe:00:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fe:00:12 0 EOF\n3: FLOCK  ADVISORY  READ 10 \
                    fe:00:13 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE -1 fe:00:14 0 EOF\n5: FLOCK  ADVISORY  WRITE 11 \
                    00:2f:12 0 EOF\n\
                     6: FLOCK  ADVISORY  WRITE 12 00:2f:15 0 EOF\n";
        for (device, inode, pid) in [
            ("fe:00", 12, Some(8)),
            ("00:2f", 12, Some(11)),
            ("fe:01", 12, None),
            ("fe:01", 15, Some(12)),
            ("fe:00", 13, None),
            ("fe:00", 14, None),
            ("fe:00", 1, None),
        ] {
            assert_eq!(find_holder(locks, device, inode), pid, "{device} {inode}");
        }
    }

    #[test]
    fn a_holder_is_found_while_other_locks_come_and_go() {
        let dir = tempfile::tempdir().unwrap();
        let create = |name: &str| File::create(dir.path().join(name)).unwrap();
        let held = create("held");
        held.lock().unwrap();
        // Some sandboxes have no list of locks.
        let holder = kernel_holder(&held);
        assert!(holder.is_none_or(|pid| pid == std::process::id()));
        // Their list is longer than what the kernel gives at once.
        let others: Vec<File> = (0..400).map(|nth| create(&nth.to_string())).collect();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    others.iter().for_each(|file| file.lock().unwrap());
                    others.iter().for_each(|file| file.unlock().unwrap());
                }
            });
            let found = (0..500).filter(|_| kernel_holder(&held) == holder).count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(found, 500);
        });
    }

    #[test]
    fn a_lock_file_of_another_boot_names_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        for (text, pid) in [
            (
                format!("{{\"pid\":12,\"boot_id\":\"{}\"}}", boot_id()),
                Some(12),
            ),
            ("{\"pid\":12,\"boot_id\":\"another\"}".to_owned(), None),
            (String::new(), None),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(stated_holder(&path), pid, "{text}");
        }
    }

    #[test]
    fn a_look_at_the_lock_does_not_keep_its_owner_out() {
        for (blocked, is_taken) in [(0, true), (1, true), (TRIES - 1, true), (TRIES, false)] {
            let mut tries = 0;
            let lock = || {
                tries += 1;
                if tries > blocked {
                    Ok(())
                } else {
                    Err(TryLockError::WouldBlock)
                }
            };
            assert_eq!(try_again(lock).unwrap(), is_taken, "{blocked}");
        }
        assert!(try_again(|| Err(TryLockError::Error(io::Error::other("no locks here")))).is_err());
    }

    #[test]
    fn a_lock_file_that_is_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let precious = dir.path().join("precious");
        fs::write(&precious, "theirs").unwrap();
        std::os::unix::fs::symlink(&precious, dir.path().join("lock")).unwrap();
        let error = CampaignLock::take(dir.path()).unwrap_err().to_string();
        assert!(error.contains("/lock: it is a link"), "{error}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "theirs");
    }

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!is_held(dir.path()));
        let lock = CampaignLock::take(dir.path()).unwrap();
        assert!(is_held(dir.path()));
        drop(lock);
        assert!(!is_held(dir.path()));
    }

    #[test]
    fn a_lock_file_names_its_holder_in_this_boot_and_nobody_after_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let lock = CampaignLock::take(dir.path()).unwrap();
        let holder: Holder = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let boot = fs::read_to_string(BOOT_ID).unwrap_or_default();
        assert_eq!(
            (holder.pid, holder.boot_id.as_str()),
            (std::process::id(), boot.trim())
        );
        drop(lock);
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
    }
}
