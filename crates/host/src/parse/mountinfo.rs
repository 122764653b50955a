//! `/proc/self/mountinfo`: which filesystem a path is on.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::Answer;

/// One mounted filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number; major 0 is an anonymous device (btrfs, overlay, tmpfs, network).
    pub device: (u32, u32),
    pub mount_point: PathBuf,
    /// `ext4`, `xfs`, ...
    pub filesystem: String,
    /// What was mounted: a device file, or a word of the filesystem's own.
    pub source: PathBuf,
    /// Options of the mount, then of the filesystem, separated by commas.
    pub options: String,
}

impl Mount {
    /// The mount a path belongs to: the longest mount point above it, the later of two on the same
    /// point.
    pub fn of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
        mounts
            .iter()
            .filter(|mount| path.starts_with(&mount.mount_point))
            .max_by_key(|mount| mount.mount_point.components().count())
    }
}

/// Reads all mounts.
pub fn parse_mountinfo(text: &str) -> Answer<Vec<Mount>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            parse_line(line).ok_or_else(|| {
                String::from("a line of /proc/self/mountinfo is not as the kernel writes it")
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Option<Mount> {
    // Optional fields lie between the mount options and a lone hyphen.
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let (major, minor) = mount.next()?.split_once(':')?;
    let mount_point = unescape(mount.nth(1)?);
    let options = mount.next()?;
    let mut filesystem = filesystem.split(' ');
    let name = filesystem.next()?.to_owned();
    let source = unescape(filesystem.next()?);
    let super_options = filesystem.next().unwrap_or_default();
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        mount_point,
        filesystem: name,
        source,
        options: format!("{options},{super_options}"),
    })
}

/// Blank, tab, newline and backslash are written as a backslash and three octal digits.
fn unescape(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes.get(i + 1..i + 4).and_then(|digits| {
            digits.iter().try_fold(0u32, |value, digit| {
                matches!(digit, b'0'..=b'7').then(|| value * 8 + u32::from(digit - b'0'))
            })
        });
        match octal.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) if bytes[i] == b'\\' => {
                plain.push(byte);
                i += 4;
            }
            _ => {
                plain.push(bytes[i]);
                i += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
        27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard\n\
        40 27 0:30 /@data /data rw,noatime - btrfs /dev/nvme0n1p2 rw,ssd\n\
        41 40 0:31 / /data/my\\040db rw - tmpfs tmpfs rw,size=4k\n\
        42 40 8:1 / /data/my\\040db rw - xfs /dev/sda1 rw\n";

    #[test]
    fn finds_the_mount_of_a_path() {
        let mounts = parse_mountinfo(TEXT).unwrap();
        for (path, device, filesystem) in [
            ("/home/x", (254, 0), "ext4"),
            ("/data", (0, 30), "btrfs"),
            ("/database", (254, 0), "ext4"),
            ("/data/my db/ib", (8, 1), "xfs"),
        ] {
            let mount = Mount::of(&mounts, Path::new(path)).unwrap();
            assert_eq!(
                (mount.device, mount.filesystem.as_str()),
                (device, filesystem),
                "{path}"
            );
        }
        assert_eq!(mounts[1].options, "rw,relatime,rw,discard");
        assert_eq!(mounts[2].source, Path::new("/dev/nvme0n1p2"));
        assert_eq!(Mount::of(&mounts[..1], Path::new("/x")), None);
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for text in [
            "27 1 254:0 / / rw ext4 /dev/vda rw",
            "27 1 254 / / rw - ext4 /dev/vda rw",
            "27 1 x:0 / / rw - ext4 a rw",
            "- a b",
        ] {
            assert!(parse_mountinfo(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn unescapes_only_whole_octal_escapes() {
        for (text, plain) in [
            ("a\\040b", "a b"),
            ("a\\134", "a\\"),
            ("a\\04", "a\\04"),
            ("a\\999", "a\\999"),
            ("\\777", "\\777"),
            ("123", "123"),
        ] {
            assert_eq!(unescape(text), Path::new(plain), "{text}");
        }
    }
}
