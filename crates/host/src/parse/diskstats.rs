//! `/proc/diskstats`: requests and bytes of each block device.

use crate::Answer;

/// What a device did since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Read requests completed.
    pub reads: u64,
    pub read_bytes: u64,
    /// Write requests completed.
    pub writes: u64,
    pub write_bytes: u64,
}

impl DiskCounters {
    /// What was added since `before`.
    pub fn since(&self, before: &Self) -> Answer<Self> {
        let added = |count: fn(&Self) -> u64| {
            count(self)
                .checked_sub(count(before))
                .ok_or_else(|| String::from("a counter of /proc/diskstats ran backwards"))
        };
        Ok(Self {
            reads: added(|disk| disk.reads)?,
            read_bytes: added(|disk| disk.read_bytes)?,
            writes: added(|disk| disk.writes)?,
            write_bytes: added(|disk| disk.write_bytes)?,
        })
    }
}

/// One device or partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskLine {
    /// Major and minor number.
    pub device: (u32, u32),
    pub name: String,
    pub counters: DiskCounters,
}

/// The unit of the sector columns, whatever the device's own sector size is.
const SECTOR_BYTES: u64 = 512;

/// Reads all devices.
pub fn parse_diskstats(text: &str) -> Answer<Vec<DiskLine>> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            parse_line(line).ok_or_else(|| {
                String::from("a line of /proc/diskstats is not as the kernel writes it")
            })
        })
        .collect()
}

fn parse_line(line: &str) -> Option<DiskLine> {
    let mut words = line.split_ascii_whitespace();
    let device = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = words.next()?.to_owned();
    let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    // reads, merged, sectors, milliseconds; then the same of writes.
    let [reads, _, read_sectors, _, writes, _, write_sectors, ..] = numbers[..] else {
        return None;
    };
    let counters = DiskCounters {
        reads,
        read_bytes: read_sectors.checked_mul(SECTOR_BYTES)?,
        writes,
        write_bytes: write_sectors.checked_mul(SECTOR_BYTES)?,
    };
    Some(DiskLine {
        device,
        name,
        counters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_devices_and_partitions() {
        let text = "   8       0 sda 10 1 20 5 30 2 40 6 0 7 8 1 2 3 4 5 6\n   8       1 sda1 1 0 \
                   2 0 3 0 4 0 0 0 0\n";
        let disks = parse_diskstats(text).unwrap();
        assert_eq!(disks.len(), 2);
        assert_eq!((disks[0].device, disks[0].name.as_str()), ((8, 0), "sda"));
        assert_eq!(
            disks[0].counters,
            DiskCounters {
                reads: 10,
                read_bytes: 20 * 512,
                writes: 30,
                write_bytes: 40 * 512
            }
        );
        assert_eq!(
            disks[1].counters,
            DiskCounters {
                reads: 1,
                read_bytes: 1024,
                writes: 3,
                write_bytes: 2048
            }
        );
    }

    #[test]
    fn differences_are_of_one_device_that_counts_up() {
        let before = DiskCounters {
            reads: 1,
            read_bytes: 512,
            writes: 2,
            write_bytes: 1024,
        };
        let after = DiskCounters {
            reads: 4,
            read_bytes: 512,
            writes: 9,
            write_bytes: 4096,
        };
        assert_eq!(
            after.since(&before).unwrap(),
            DiskCounters {
                reads: 3,
                read_bytes: 0,
                writes: 7,
                write_bytes: 3072
            }
        );
        assert!(before.since(&after).unwrap_err().contains("ran backwards"));
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        assert_eq!(parse_diskstats("").unwrap(), []);
        for text in [
            "8 0 sda 1 2 3\n",
            "8 x sda 1 2 3 4 5 6 7\n",
            "8 0 sda 1 2 18446744073709551615 4 5 6 7\n",
        ] {
            assert!(parse_diskstats(text).is_err(), "{text:?}");
        }
    }
}
