//! What a server keeps in the kernel: a segment of System V that says who is attached, and segments
//! below `/dev/shm`. A server removes them itself when it ends or starts again. One that was killed
//! does neither, and its data is removed: then they would stay until the next boot, and there is room
//! for some thousand.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::foreign_folder::ForeignFolder;
use crate::process::{child_command, output_within};

const PID_FILE: &str = "postmaster.pid";
/// Beside the data directory: the names that its server has mapped.
const SEGMENTS_FILE: &str = "segments";
/// With 10,000 connections it has two megabytes.
const LARGEST_CONTROL: u64 = 8 << 20;
const REMOVE_LIMIT: Duration = Duration::from_secs(10);
const SHM: &str = "/dev/shm/";
const PREFIX: &str = "PostgreSQL.";
/// How deep below a trial's folder data directories are.
const DEPTH: u32 = 3;

/// The id of the shared memory that all processes of a server are attached to: the second number in
/// line 7 of `postmaster.pid`.
pub fn shared_memory_id(pid_file: &str) -> Option<u64> {
    number_of_line_7(pid_file, 1)
}

/// Its key: the first number there.
fn shared_memory_key(pid_file: &str) -> Option<i32> {
    key(word_of_line_7(pid_file, 0)?)
}

fn number_of_line_7(pid_file: &str, at: usize) -> Option<u64> {
    word_of_line_7(pid_file, at)?.parse().ok()
}

fn word_of_line_7(pid_file: &str, at: usize) -> Option<&str> {
    let line = pid_file.lines().nth(6)?;
    line.split_ascii_whitespace().nth(at)
}

/// A key is an `int`. The kernel's table has it with its sign; PostgreSQL writes a negative one as
/// an unsigned number of 64 bits.
fn key(text: &str) -> Option<i32> {
    let signed = || text.parse::<i64>().ok();
    let unsigned = || text.parse::<u64>().ok().map(u64::cast_signed);
    signed().or_else(unsigned).map(|key| key as i32)
}

/// How many processes are attached to a shared memory; `None` when it is gone or the kernel does
/// not say.
pub fn attached(id: u64) -> Option<u64> {
    attached_in(&fs::read_to_string("/proc/sysvipc/shm").ok()?, id)
}

/// `shmid` is the second column of `/proc/sysvipc/shm`, and `nattch` the seventh.
fn attached_in(table: &str, id: u64) -> Option<u64> {
    row_of(table, id)?.get(6)?.parse().ok()
}

fn row_of(table: &str, id: u64) -> Option<Vec<&str>> {
    let mut rows = table
        .lines()
        .skip(1)
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.find(|row| row.get(1).is_some_and(|found| found.parse() == Ok(id)))
}

/// Writes down the segments that a server has mapped, so that they can be removed if it cannot do it
/// itself.
pub fn note_segments(data_dir: &Path, pid: u32) {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let folder = data_dir.parent().map(ForeignFolder::open);
    let (names, folder) = (segments_in(&maps), folder.and_then(Result::ok));
    // Without the file they stay behind if the server is killed, and nothing else.
    if let Some(folder) = folder.filter(|_| !names.is_empty()) {
        let _ = folder.replace(SEGMENTS_FILE, &names.join("\n"), None);
    }
}

/// Names below `/dev/shm` of PostgreSQL's segments in `/proc/PID/maps`.
fn segments_in(maps: &str) -> Vec<String> {
    let names = maps.lines().filter_map(|line| line.rsplit_once(SHM));
    let mut names: Vec<String> = names
        .map(|(_, name)| name.trim().to_owned())
        .filter(|name| is_segment(name))
        .collect();
    names.dedup();
    names
}

fn is_segment(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Removes from the kernel what servers left there whose data directories are below this folder, if
/// nobody is attached to it. To be called before the data is removed, when no server of it runs.
pub fn release_shared_memory(below: &Path) {
    release(below, DEPTH);
}

fn release(dir: &Path, depth: u32) {
    release_of(dir);
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    // Of a link the type is that of the link.
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    for entry in entries.flatten().filter(is_folder) {
        if depth > 0 {
            release(&entry.path(), depth - 1);
        }
    }
}

/// What the server of a data directory left.
fn release_of(data_dir: &Path) {
    let read = |dir: Option<&Path>, name: &str| {
        let folder = ForeignFolder::open(dir?).ok()?;
        folder.read(name).ok()
    };
    let (Ok(about), Some(text)) = (
        fs::symlink_metadata(data_dir),
        read(Some(data_dir), PID_FILE),
    ) else {
        return;
    };
    let segment = shared_memory_key(&text).zip(shared_memory_id(&text));
    if let Some((_, id)) = segment.filter(|(key, id)| is_abandoned(*id, *key, about.uid())) {
        let mut command = child_command("ipcrm");
        let _ = output_within(command.args(["-m", &id.to_string()]), REMOVE_LIMIT);
    }
    let noted = read(data_dir.parent(), SEGMENTS_FILE).unwrap_or_default();
    let is_free = |name: &str| {
        let about_it = fs::symlink_metadata(Path::new(SHM).join(name));
        about_it.is_ok_and(|of| of.uid() == about.uid()) && !is_mapped(name)
    };
    let noted: BTreeSet<&str> = noted.lines().filter(|name| is_segment(name)).collect();
    // What somebody still has mapped may be about to map what it lists.
    for name in noted.into_iter().filter(|name| is_free(name)) {
        let listed = listed_in(name);
        for name in listed.iter().filter(|name| is_free(name)) {
            let _ = fs::remove_file(Path::new(SHM).join(name));
        }
        let _ = fs::remove_file(Path::new(SHM).join(name));
    }
}

/// The segments that a server's control segment lists. Its sessions and launchers map them when they
/// need them, at any time, and the main process does not. Where their numbers are depends on the
/// version, so that each word counts which is the number of a segment.
fn listed_in(control: &str) -> BTreeSet<String> {
    let all = fs::read_dir(SHM).into_iter().flatten().flatten();
    let numbers: HashSet<u32> = all
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix(PREFIX)?
                .parse()
                .ok()
        })
        .collect();
    let bytes = ForeignFolder::open(Path::new(SHM))
        .and_then(|folder| folder.read_start(control, LARGEST_CONTROL))
        .unwrap_or_default();
    let (words, _) = bytes.as_chunks();
    let words = words.iter().copied().map(u32::from_ne_bytes);
    words
        .filter(|word| numbers.contains(word))
        .map(|number| format!("{PREFIX}{number}"))
        .collect()
}

/// Whether a segment of System V is the owner's, as small as PostgreSQL's, and nobody is attached.
/// The key tells whether it is still the one that was written down: numbers begin again with a boot.
fn is_abandoned(id: u64, key: i32, owner: u32) -> bool {
    let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    is_abandoned_in(&table, id, key, owner)
}

/// Columns: `key` is the first, `size` the fourth, `nattch` the seventh, `uid` the eighth.
fn is_abandoned_in(table: &str, id: u64, wanted: i32, owner: u32) -> bool {
    const LARGEST: u64 = 64;
    let number = |row: &[&str], at: usize| row.get(at)?.parse::<u64>().ok();
    row_of(table, id).is_some_and(|row| {
        row.first().and_then(|text| key(text)) == Some(wanted)
            && number(&row, 3).is_some_and(|size| size <= LARGEST)
            && number(&row, 6) == Some(0)
            && number(&row, 7) == Some(u64::from(owner))
    })
}

/// Whether a process has mapped this segment.
fn is_mapped(name: &str) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut maps = processes.filter_map(|entry| fs::read_to_string(entry.path().join("maps")).ok());
    maps.any(|maps| segments_in(&maps).iter().any(|found| found == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_memory_is_found_in_both_files() {
        let pid_file = "17999\n/d/pgdata\n1795257600\n5432\n/d\n\n  4325393        17\nready   \n";
        assert_eq!(shared_memory_id(pid_file), Some(17));
        assert_eq!(shared_memory_id("17999\n/d/pgdata\n"), None);
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   \
                    gid  cuid  cgid\n\
                     \x20  4325392         16   600                    56 17990 17990      0 65534 \
                    65534 65534 65534\n\
                     \x20  4325393         17   600                    56 17999 18005      6 65534 \
                    65534 65534 65534\n";
        assert_eq!(attached_in(table, 17), Some(6));
        assert_eq!(attached_in(table, 16), Some(0));
        assert_eq!(attached_in(table, 18), None);
    }

    #[test]
    fn only_what_nobody_uses_and_the_owner_has_is_removed() {
        let row = |size: u64, attached: u32, owner: u32| {
            format!("key shmid\n 4325392 16 600 {size} 17990 17990 {attached} {owner} 0 0 0\n")
        };
        let is_abandoned = |row: &str, id, key| is_abandoned_in(row, id, key, 65534);
        assert!(is_abandoned(&row(56, 0, 65534), 16, 4325392));
        for other in [row(56, 1, 65534), row(56, 0, 1000), row(4096, 0, 65534)] {
            assert!(!is_abandoned(&other, 16, 4325392), "{other}");
        }
        assert!(!is_abandoned(&row(56, 0, 65534), 17, 4325392));
        // The number was given to somebody else, after a boot.
        assert!(!is_abandoned(&row(56, 0, 65534), 16, 1));
    }

    /// The file of a control segment belongs to the server, which may be hostile: each of its two
    /// million words was looked at, and all that all processes have mapped for each.
    #[test]
    fn segments_that_are_listed_go_with_a_list_that_nobody_has_mapped() {
        let shm = |name: &str| Path::new(SHM).join(name);
        let mine = std::process::id();
        let [control, listed] = [1_u32, 2].map(|nth| format!("{PREFIX}{}", mine * 10 + nth));
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("pgdata");
        fs::create_dir(&data).unwrap();
        fs::write(data.join(PID_FILE), "").unwrap();
        fs::write(dir.path().join(SEGMENTS_FILE), &control).unwrap();
        fs::write(shm(&listed), "").unwrap();
        fs::write(shm(&control), (mine * 10 + 2).to_ne_bytes().repeat(1 << 21)).unwrap();
        let mut holder = child_command("perl")
            .args([
                "-e",
                "open F, '<:mmap', shift; read F, $x, 1; $| = 1; print 1; sleep 60",
            ])
            .arg(shm(&control))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut begun = [0];
        std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut begun).unwrap();
        let was_mapped = is_mapped(&control);
        release_shared_memory(dir.path());
        let stayed = shm(&listed).exists() && shm(&control).exists();
        holder.kill().unwrap();
        holder.wait().unwrap();
        release_shared_memory(dir.path());
        let is_left = shm(&listed).exists() || shm(&control).exists();
        let _ = (
            fs::remove_file(shm(&listed)),
            fs::remove_file(shm(&control)),
        );
        assert!(was_mapped && stayed, "{was_mapped} {stayed}");
        assert!(!is_left);
    }

    #[test]
    fn segments_are_known_by_their_names() {
        let maps = "7f00-7f01 rw-s 00000000 00:19 12   /dev/shm/PostgreSQL.2711872394\n\
                    7f02-7f03 rw-s 00000000 00:19 12   /dev/shm/PostgreSQL.2711872394\n\
                    7f04-7f05 rw-s 00000000 00:19 13   /dev/shm/PostgreSQL.1/../x\n\
                    7f06-7f07 rw-s 00000000 00:19 14   /dev/shm/other\n\
                    7f08-7f09 r-xp 00000000 00:19 15   /usr/lib/libc.so\n";
        assert_eq!(segments_in(maps), ["PostgreSQL.2711872394"]);
    }

    /// PostgreSQL takes the inode of the data directory as the key, an `int`, and writes it as an
    /// `unsigned long`; the kernel's table has it with its sign. Of every second inode of a large
    /// filesystem bit 31 is set.
    #[test]
    fn a_segment_whose_key_is_negative_is_released_too() {
        let key = 0x8123_4567_u32 as i32;
        // What `sprintf("%9lu %9lu", (unsigned long) memKey, (unsigned long) shmid)` writes.
        let as_written = |id: u64| {
            let key = i64::from(key) as u64;
            format!("17999\n/d/pgdata\n1795257600\n5432\n/d\n\n{key:9} {id:9}\nready\n")
        };
        let made = child_command("perl")
            .args([
                "-e",
                &format!("print shmget({key}, 56, 0600|01000) // die $!"),
            ])
            .output()
            .unwrap();
        let id: u64 = String::from_utf8(made.stdout).unwrap().parse().unwrap();
        let table = || fs::read_to_string("/proc/sysvipc/shm").unwrap();
        let before = row_of(&table(), id).unwrap().join(" ");
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("pgdata");
        fs::create_dir(&data).unwrap();
        fs::write(data.join(PID_FILE), as_written(id)).unwrap();
        release_shared_memory(dir.path());
        let is_left = row_of(&table(), id).is_some();
        let _ = child_command("ipcrm")
            .args(["-m", &id.to_string()])
            .output();
        assert!(!is_left, "still there: {before}\n{}", as_written(id));
    }
}
