//! The block device under the data directory.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use crate::parse::{DiskCounters, Mount, parse_diskstats, parse_mountinfo};
use crate::proc::KeptFile;
use crate::space::nearest_existing;
use crate::sys::Sys;
use crate::{Answer, Proc};

/// The filesystem a path is on.
#[derive(Clone, Debug)]
pub(crate) struct Filesystem {
    /// Its entry in the mount table.
    pub mount: Answer<Mount>,
    /// Major and minor number of its block device, and the name the kernel gives it.
    pub device: Answer<((u32, u32), String)>,
}

impl Filesystem {
    /// Of `path`, or of its nearest ancestor that exists.
    pub(crate) fn of(proc: &Proc, path: &Path) -> Self {
        let (path, metadata) = match nearest_existing(path) {
            Ok(found) => found,
            Err(error) => {
                let reason = format!("cannot look at the data directory: {error}");
                return Self {
                    mount: Err(reason.clone()),
                    device: Err(reason),
                };
            }
        };
        let mounts = proc
            .read("self/mountinfo")
            .and_then(|text| parse_mountinfo(&text));
        let mount = mounts.and_then(|mounts| {
            Mount::of(&mounts, &path).cloned().ok_or_else(|| {
                String::from("the data directory is not below any mount of this process")
            })
        });
        let number = device_number(metadata.dev());
        let device = proc
            .read("diskstats")
            .and_then(|text| parse_diskstats(&text))
            .and_then(|disks| {
                find_device(number, &mount, &|number| {
                    Some(
                        disks
                            .iter()
                            .find(|disk| disk.device == number)?
                            .name
                            .clone(),
                    )
                })
            });
        Self { mount, device }
    }
}

fn device_number(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// The number in `stat` is the device's own for ext4, xfs and their like. btrfs and some others
/// show an anonymous number; there the mount table names the device file. A btrfs on several
/// devices is measured by the one it was mounted from.
fn find_device(
    number: (u32, u32),
    mount: &Answer<Mount>,
    name_of: &dyn Fn((u32, u32)) -> Option<String>,
) -> Answer<((u32, u32), String)> {
    if let Some(name) = name_of(number) {
        return Ok((number, name));
    }
    let mount = mount.as_ref().map_err(String::clone)?;
    let source = mount
        .source
        .metadata()
        .ok()
        .filter(|metadata| metadata.file_type().is_block_device());
    let candidates = [
        Some(mount.device),
        source.map(|metadata| device_number(metadata.rdev())),
    ];
    let found = candidates
        .into_iter()
        .flatten()
        .find_map(|number| Some((number, name_of(number)?)));
    found.ok_or_else(|| match number.0 {
        0 => format!(
            "the data directory is on {}, which has no block device of its own",
            mount.filesystem
        ),
        _ => format!(
            "device {}:{} under the data directory ({}) is not in /proc/diskstats",
            number.0, number.1, mount.filesystem
        ),
    })
}

/// Reads the counters of one device again and again.
#[derive(Debug)]
pub(crate) struct Disk {
    device: Answer<(u32, u32)>,
    diskstats: KeptFile,
}

impl Disk {
    /// The device under `path`.
    pub(crate) fn under(proc: &Proc, path: &Path) -> Self {
        Self {
            device: Filesystem::of(proc, path).device.map(|(number, _)| number),
            diskstats: proc.keep("diskstats"),
        }
    }

    /// Its counters now.
    pub(crate) fn read(&mut self) -> Answer<DiskCounters> {
        let device = self.device.clone()?;
        let disks = parse_diskstats(&self.diskstats.read()?)?;
        let disk = disks.into_iter().find(|disk| disk.device == device);
        Ok(disk
            .ok_or("the data directory's device has left /proc/diskstats")?
            .counters)
    }
}

/// Reads again and again how many requests the device under a folder is at work on.
#[derive(Debug)]
pub struct InFlight(Answer<KeptFile>);

impl InFlight {
    /// Of the whole device: of a partition that is its disk.
    pub fn under(proc_: &Proc, path: &Path) -> Self {
        Self::at(proc_, Sys(Path::new("/sys")), path)
    }

    fn at(proc_: &Proc, sys: Sys<'_>, path: &Path) -> Self {
        let device = Filesystem::of(proc_, path).device;
        Self(device.map(|(number, _)| KeptFile::of_sys(&sys.disk(number).join("inflight"))))
    }

    /// Reads and writes together.
    ///
    /// # Errors
    /// The reason there is no number: the folder is on no block device, such as overlay or tmpfs,
    /// or the kernel does not show it.
    pub fn read(&mut self) -> Result<u64, String> {
        let text = self.0.as_mut().map_err(|reason| reason.clone())?.read()?;
        parse_inflight(&text)
    }
}

/// The two numbers of `/sys/block/*/inflight`, reads and writes.
fn parse_inflight(text: &str) -> Answer<u64> {
    let numbers: Vec<u64> = text
        .split_ascii_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [reads, writes] => Ok(reads.saturating_add(writes)),
        _ => Err("/sys/block/*/inflight is not two numbers".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_are_reads_and_writes() {
        assert_eq!(parse_inflight("       2       11\n"), Ok(13));
        for bad in ["", "3\n", "1 2 3\n", "1 x\n"] {
            assert!(parse_inflight(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn requests_in_flight_are_those_of_the_whole_disk() {
        let (dir, sys) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (major, minor) = device_number(dir.path().metadata().unwrap().dev());
        let line = format!("{major} {minor} disk 1 0 2 0 3 0 4 0\n");
        std::fs::write(dir.path().join("diskstats"), line).unwrap();
        let proc = Proc::at(dir.path());
        let read = || InFlight::at(&proc, Sys(sys.path()), dir.path()).read();
        let disk = sys.path().join("devices/disk");
        let part = disk.join("part");
        std::fs::create_dir_all(&part).unwrap();
        std::fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        let link = sys.path().join(format!("dev/block/{major}:{minor}"));
        std::os::unix::fs::symlink(&part, link).unwrap();
        let reason = read().unwrap_err();
        assert!(
            reason.starts_with("cannot read /sys/.../inflight: "),
            "{reason}"
        );
        std::fs::write(part.join("inflight"), "1 2\n").unwrap();
        std::fs::write(disk.join("inflight"), "10 20\n").unwrap();
        assert_eq!(read(), Ok(3), "a disk");
        std::fs::write(part.join("partition"), "1\n").unwrap();
        let mut kept = InFlight::at(&proc, Sys(sys.path()), dir.path());
        assert_eq!(kept.read(), Ok(30), "a partition");
        std::fs::write(disk.join("inflight"), "0 1\n").unwrap();
        assert_eq!(kept.read(), Ok(1), "afresh");
        std::fs::write(dir.path().join("diskstats"), "").unwrap();
        assert!(read().is_err(), "no device");
    }

    fn mount(filesystem: &str, source: &str, device: (u32, u32)) -> Answer<Mount> {
        Ok(Mount {
            device,
            mount_point: "/".into(),
            filesystem: filesystem.into(),
            source: source.into(),
            options: String::new(),
        })
    }

    #[test]
    fn the_device_is_found_or_the_filesystem_named() {
        let names = |number: (u32, u32)| match number {
            (8, 1) => Some(String::from("sda1")),
            (259, 3) => Some(String::from("nvme0n1p3")),
            _ => None,
        };
        for (number, mount, expected) in [
            ((8, 1), mount("ext4", "/dev/sda1", (8, 1)), Ok("sda1")),
            ((8, 1), Err(String::from("no mount table")), Ok("sda1")),
            ((0, 40), mount("btrfs", "none", (259, 3)), Ok("nvme0n1p3")),
            (
                (0, 50),
                mount("overlay", "overlay", (0, 50)),
                Err("on overlay, which has no block device"),
            ),
            (
                (0, 51),
                mount("tmpfs", "tmpfs", (0, 51)),
                Err("on tmpfs, which has no block device"),
            ),
            (
                (0, 52),
                mount("nfs4", "box:/export", (0, 52)),
                Err("on nfs4, which has no block device"),
            ),
            // A device file that is none.
            (
                (0, 53),
                mount("fuse", "/dev/null", (0, 53)),
                Err("on fuse, which has no block device"),
            ),
            (
                (9, 9),
                mount("xfs", "/dev/no-such", (9, 9)),
                Err("device 9:9 under the data directory (xfs) is not in /proc/diskstats"),
            ),
            (
                (0, 54),
                Err(String::from("no mount table")),
                Err("no mount table"),
            ),
        ] {
            match (find_device(number, &mount, &names), expected) {
                (Ok((_, name)), Ok(expected)) => assert_eq!(name, expected),
                (Err(reason), Err(expected)) => assert!(reason.contains(expected), "{reason}"),
                (found, expected) => panic!("{number:?}: {found:?} instead of {expected:?}"),
            }
        }
    }

    #[test]
    fn a_device_that_leaves_is_unavailable() {
        let dir = tempfile::tempdir().unwrap();
        let (major, minor) = device_number(dir.path().metadata().unwrap().dev());
        let file = dir.path().join("diskstats");
        std::fs::write(&file, format!("{major} {minor} disk 1 0 2 0 3 0 4 0\n")).unwrap();
        let mut disk = Disk::under(&Proc::at(dir.path()), dir.path());
        assert_eq!(
            disk.read().unwrap(),
            DiskCounters {
                reads: 1,
                read_bytes: 1024,
                writes: 3,
                write_bytes: 2048
            }
        );
        std::fs::write(&file, "").unwrap();
        assert!(disk.read().unwrap_err().contains("has left"));
    }
}
