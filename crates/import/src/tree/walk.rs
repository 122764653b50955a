//! Finding files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use plimsoll_store::imported::LeftOut;
use rustix::fs::{OFlags, fstatfs};

/// The largest file that is read. No result is as large; what is may be a core dump or a data file.
pub(crate) const SIZE_LIMIT: u64 = 64 << 20;

/// File systems whose files say what the kernel likes, and may never end: procfs, sysfs, tracefs,
/// debugfs, cgroup 1 and 2, securityfs, bpf, selinuxfs, configfs, efivarfs.
const OF_THE_KERNEL: [u64; 11] = [
    0x9fa0,
    0x6265_6572,
    0x7472_6163,
    0x6462_6720,
    0x0027_e0eb,
    0x6367_7270,
    0x7363_6673,
    0xcafe_4a11,
    0xf97c_ff8c,
    0x6265_6570,
    0xde5e_81e4,
];

/// All of a file. A link may lead anywhere: what is not a file on a disk, or grew beyond the limit,
/// is an error, and nothing is waited for.
pub(crate) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let refused = |why: &str| Err(io::Error::other(why.to_owned()));
    if !file.metadata()?.is_file() {
        return refused("it is not a file");
    }
    if OF_THE_KERNEL.contains(&(fstatfs(&file)?.f_type as u64)) {
        return refused("it is the kernel's, not a file on a disk");
    }
    let mut bytes = Vec::new();
    (&mut file).take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return refused("it is larger than a result can be");
    }
    Ok(bytes)
}

/// What every Plimsoll campaign has.
const CAMPAIGN: &str = "campaign.json";

/// Regular files below a path in the order of their names, and what cannot be one.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub files: Vec<PathBuf>,
    pub left_out: Vec<LeftOut>,
}

/// Walks a folder, or takes a single file. Links are followed, but no folder is entered twice.
/// `path` must be absolute.
pub(crate) fn walk(path: &Path) -> Walk {
    let mut walk = Walk::default();
    let above = fs::canonicalize(path)
        .map(|real| real.ancestors().skip(1).map(Path::to_owned).collect())
        .unwrap_or_default();
    visit(path, path, &above, &mut BTreeSet::new(), &mut walk);
    walk.files.sort();
    walk
}

/// `above` are the folders that hold the root.
fn visit(
    root: &Path,
    path: &Path,
    above: &BTreeSet<PathBuf>,
    seen: &mut BTreeSet<PathBuf>,
    walk: &mut Walk,
) {
    let leave_out = |walk: &mut Walk, reason: String| {
        let below = path
            .strip_prefix(root)
            .ok()
            .filter(|below| !below.as_os_str().is_empty());
        let path = below.unwrap_or(path).to_string_lossy().into_owned();
        walk.left_out.push(LeftOut { path, reason });
    };
    // Follows links; a link to nothing has no metadata.
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return leave_out(walk, format!("it cannot be read: {error}")),
    };
    if metadata.is_file() {
        match metadata.len() {
            size if size > SIZE_LIMIT => leave_out(
                walk,
                format!("it has {size} bytes, more than a result can have ({SIZE_LIMIT})"),
            ),
            _ => walk.files.push(path.to_owned()),
        }
        return;
    }
    if !metadata.is_dir() {
        return leave_out(walk, "it is neither a file nor a folder".to_owned());
    }
    if path.join(CAMPAIGN).is_file() {
        return leave_out(
            walk,
            "it is a campaign of Plimsoll's own, which `plimsoll show` reads".to_owned(),
        );
    }
    match fs::canonicalize(path) {
        Ok(real) if above.contains(&real) => {
            return leave_out(
                walk,
                "the link leads back to a folder above all that is read".to_owned(),
            );
        }
        Ok(real) if !seen.insert(real.clone()) => {
            let is_loop = path
                .ancestors()
                .skip(1)
                .any(|above| above.canonicalize().is_ok_and(|above| above == real));
            return leave_out(
                walk,
                if is_loop {
                    "the link leads back to a folder above it"
                } else {
                    "the folder was read under another name"
                }
                .to_owned(),
            );
        }
        Ok(_) => {}
        Err(error) => return leave_out(walk, format!("it cannot be read: {error}")),
    }
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => return leave_out(walk, format!("it cannot be read: {error}")),
    };
    let mut children: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    children.sort();
    for child in children {
        visit(root, &child, above, seen, walk);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn loops_giants_and_broken_links_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "x").unwrap();
        symlink(root.join("a"), root.join("a/b/up")).unwrap();
        symlink(root.join("nothing"), root.join("broken")).unwrap();
        symlink(root.parent().unwrap(), root.join("surroundings")).unwrap();
        fs::create_dir_all(root.join("own/trials")).unwrap();
        fs::write(root.join("own/campaign.json"), "{}").unwrap();
        // A sparse file takes no room.
        File::create(root.join("giant"))
            .unwrap()
            .set_len(2 << 30)
            .unwrap();
        let walk = walk(root);
        assert_eq!(walk.files, [root.join("a/b/file")]);
        let left_out: Vec<(&str, &str)> = walk
            .left_out
            .iter()
            .map(|out| (out.path.as_str(), out.reason.as_str()))
            .collect();
        assert_eq!(left_out.len(), 5);
        assert_eq!(
            left_out[0],
            ("a/b/up", "the link leads back to a folder above it")
        );
        assert!(
            left_out[1].0 == "broken" && left_out[1].1.starts_with("it cannot be read"),
            "{left_out:?}"
        );
        assert_eq!(
            left_out[3],
            (
                "own",
                "it is a campaign of Plimsoll's own, which `plimsoll show` reads"
            )
        );
        assert_eq!(
            left_out[4],
            (
                "surroundings",
                "the link leads back to a folder above all that is read"
            )
        );
        assert_eq!(
            left_out[2],
            (
                "giant",
                "it has 2147483648 bytes, more than a result can have (67108864)"
            )
        );
    }

    #[test]
    fn what_is_not_on_a_disk_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("kernel");
        symlink("/proc/kmsg", &link).unwrap();
        assert_eq!(
            walk(dir.path()).files,
            [link.as_path()],
            "it calls itself a file"
        );
        // Who may not open it is refused before.
        read_file(&link).unwrap_err();
        let version = dir.path().join("version");
        symlink("/proc/version", &version).unwrap();
        let refused = read_file(&version).unwrap_err().to_string();
        assert_eq!(refused, "it is the kernel's, not a file on a disk");
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();
        assert_eq!(read_file(&file).unwrap(), b"x");
        File::create(&file)
            .unwrap()
            .set_len(SIZE_LIMIT + 1)
            .unwrap();
        let refused = read_file(&file).unwrap_err().to_string();
        assert_eq!(refused, "it is larger than a result can be");
    }
}
