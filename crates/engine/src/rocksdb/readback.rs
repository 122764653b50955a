//! What a database really runs with, read from the files it writes: its option file, and the
//! beginning of its log.

use std::path::{Path, PathBuf};

use crate::{EngineError, Settings};

/// Its own log, in its folder.
pub(super) const LOG: &str = "LOG";

/// Before the commit, without a colon; `0` where it is not known.
const GIT_SHA: &str = "Git sha";

/// Where options of tables are found: the name that option strings use for them.
pub(super) const TABLE: &str = "block_based_table_factory";

/// Groups of options that are one value in an option file.
pub(super) const GROUPS: [&str; 3] = [
    TABLE,
    "compaction_options_universal",
    "compaction_options_fifo",
];

/// The newest option file of a database. A new one is written at each open and at each change.
pub(super) fn newest_option_file(dir: &Path) -> Result<PathBuf, EngineError> {
    let cannot = |problem: String| {
        EngineError::new(format!(
            "find the option file in {}: {problem}",
            dir.display()
        ))
    };
    let entries = std::fs::read_dir(dir).map_err(|error| cannot(error.to_string()))?;
    let numbered = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let number: u64 = name.to_str()?.strip_prefix("OPTIONS-")?.parse().ok()?;
        Some((number, entry.path()))
    });
    numbered
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| cannot("there is none; RocksDB could not write it, see its LOG".to_owned()))
}

/// The lines of an option file under the names that a config uses, and `rocksdb_version`. Of
/// several column families the default one's.
pub(super) fn parse_option_file(text: &str) -> Settings {
    let mut settings = Settings::new();
    let mut prefix = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            prefix = match line {
                "[Version]" | "[DBOptions]" | "[CFOptions \"default\"]" => Some(String::new()),
                "[TableOptions/BlockBasedTable \"default\"]" => Some(format!("{TABLE}.")),
                _ => None,
            };
            continue;
        }
        let (Some(prefix), Some((name, value))) = (&prefix, line.split_once('=')) else {
            continue;
        };
        let name = format!("{prefix}{}", name.trim());
        if GROUPS.contains(&name.as_str()) {
            settings.extend(
                members(value)
                    .into_iter()
                    .map(|(member, value)| (format!("{name}.{member}"), unescape(&value))),
            );
        } else if !line.starts_with('#') && name != "options_file_version" {
            settings.insert(name, unescape(value.trim()));
        }
    }
    settings
}

/// A text without the backslashes that option files put before `:`, `#` and `\`, and in place of
/// the ends of lines.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some(escaped) => escaped,
                None => '\\',
            },
            other => other,
        });
    }
    plain
}

/// The members of `{a=1;b={c=2;d=3};}`, outer braces or not.
pub(super) fn members(value: &str) -> Vec<(String, String)> {
    let value = value.trim();
    let inner = value
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(value);
    let mut found = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    let mut take = |part: &str| {
        if let Some((name, value)) = part.split_once('=') {
            found.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    };
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ';' if depth == 0 => {
                take(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    take(&inner[start..]);
    found
}

/// What only the log tells: `fast_crc32` (whether checksums have an instruction), the block cache
/// and its size, and the commit.
pub(super) fn parse_log(text: &str) -> Settings {
    let mut settings = Settings::new();
    let mut is_cache = false;
    for line in text.lines() {
        // `2026/11/22-08:40:45.809894 140630296910720 Fast CRC32 supported: Not supported on x86`;
        // details follow without a time.
        let body = if line.starts_with(' ') {
            line.trim()
        } else {
            line.splitn(3, ' ').nth(2).unwrap_or_default().trim()
        };
        let Some((name, value)) = body
            .split_once(':')
            .or_else(|| Some((GIT_SHA, body.strip_prefix(GIT_SHA)?)))
        else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let key = match name {
            "Fast CRC32 supported" => "fast_crc32",
            GIT_SHA if value != "0" => "git_sha",
            "block_cache_name" => "block_cache",
            "capacity" if is_cache => "block_cache_bytes",
            "num_shard_bits" if is_cache => "block_cache_shard_bits",
            "high_pri_pool_ratio" if is_cache => "block_cache_high_pri_pool_ratio",
            "low_pri_pool_ratio" if is_cache => "block_cache_low_pri_pool_ratio",
            _ => "",
        };
        // What belongs to the cache is set in further.
        is_cache = name == "block_cache_options" || (is_cache && line.starts_with("    "));
        if !key.is_empty() && !value.is_empty() {
            // The first: a database that was changed later says all of it again.
            settings
                .entry(key.to_owned())
                .or_insert_with(|| in_words_of_a_config(key, value));
        }
    }
    settings
}

/// A value as a config would have it.
fn in_words_of_a_config(key: &str, value: &str) -> String {
    match (key, value) {
        ("block_cache", "LRUCache") => "lru".to_owned(),
        ("block_cache", "HyperClockCache" | "FixedHyperClockCache") => "hyper_clock".to_owned(),
        ("block_cache", "AutoHyperClockCache") => "auto_hyper_clock".to_owned(),
        // Numbers without the zeros behind.
        _ if key.ends_with("_ratio") => value
            .parse::<f64>()
            .map_or_else(|_| value.to_owned(), |ratio| ratio.to_string()),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTION_FILE: &str = r#"# This is a RocksDB option file.
[Version]
  rocksdb_version=8.9.1
  options_file_version=1.1

[DBOptions]
  max_background_jobs=2
[CFOptions "default"]
  write_buffer_size=16777216
  compaction_options_universal={size_ratio=7;stop_style=kTotal;min_merge_width=2;}
  memtable_factory={id=VectorRepFactory;count=0;}
[TableOptions/BlockBasedTable "default"]
  block_size=8192
[CFOptions "other"]
  write_buffer_size=1
[TableOptions/BlockBasedTable "other"]
  block_size=1
"#;

    #[test]
    fn an_option_file_is_flattened() {
        let settings = parse_option_file(OPTION_FILE);
        let expected = [
            ("block_based_table_factory.block_size", "8192"),
            ("compaction_options_universal.min_merge_width", "2"),
            ("compaction_options_universal.size_ratio", "7"),
            ("compaction_options_universal.stop_style", "kTotal"),
            ("max_background_jobs", "2"),
            ("memtable_factory", "{id=VectorRepFactory;count=0;}"),
            ("rocksdb_version", "8.9.1"),
            ("write_buffer_size", "16777216"),
        ];
        let found: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_an_option_file_escapes_is_read_as_it_was_set() {
        let file = "[DBOptions]\n  daily_offpeak_time_utc=01\\:00-02\\:00\n  \
                   db_host_id=a\\#b\\\\c\\nd\\\n\
            [TableOptions/BlockBasedTable \"default\"]\n  filter_policy=bloomfilter:10:false\n\
            [CFOptions \"default\"]\n  \
                   compaction_options_fifo={file_temperature_age_thresholds=a\\:b;}\n";
        let settings = parse_option_file(file);
        for (name, value) in [
            ("daily_offpeak_time_utc", "01:00-02:00"),
            ("db_host_id", "a#b\\c\nd\\"),
            (
                "block_based_table_factory.filter_policy",
                "bloomfilter:10:false",
            ),
            (
                "compaction_options_fifo.file_temperature_age_thresholds",
                "a:b",
            ),
        ] {
            assert_eq!(settings[name], value);
        }
    }

    #[test]
    fn members_may_hold_members() {
        for (text, expected) in [
            (
                "{a=1;b={c=2;d=3};e=x;}",
                vec![("a", "1"), ("b", "{c=2;d=3}"), ("e", "x")],
            ),
            ("a = 1 ; b = 2", vec![("a", "1"), ("b", "2")]),
            ("{}", vec![]),
            ("", vec![]),
        ] {
            let found = members(text);
            let found: Vec<(&str, &str)> = found
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn the_log_tells_checksums_and_cache() {
        let log = "2026/11/22-08:40:46.3 140 RocksDB version: 8.0.0\n\
            2026/11/22-08:40:46.3 140 Git sha 0\n\
            2026/11/22-08:40:46.3 140 Fast CRC32 supported: Not supported on x86\n\
            2026/11/22-08:40:46.3 140               Options.comparator: leveldb\n\
            2026/11/22-08:40:46.3 140            table_factory options:   \
                  flush_block_policy_factory: F (0x1)\n  block_cache_name: LRUCache\n  \
                  block_cache_options:\n    capacity : 1000000\n    num_shard_bits : 6\n    \
                  strict_capacity_limit : 0\n    high_pri_pool_ratio: 0.500\n    \
                  low_pri_pool_ratio: 0.000\n  block_size: 8192\n  capacity : 7\n";
        let settings = parse_log(log);
        let expected = [
            ("block_cache", "lru"),
            ("block_cache_bytes", "1000000"),
            ("block_cache_high_pri_pool_ratio", "0.5"),
            ("block_cache_low_pri_pool_ratio", "0"),
            ("block_cache_shard_bits", "6"),
            ("fast_crc32", "Not supported on x86"),
        ];
        let found: Vec<(&str, &str)> = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(parse_log("nothing\n\n: : :\n"), Settings::new());
        assert_eq!(
            parse_log("2026/11/22-08:41:12.2 139 Git sha 7f106a5f\n")["git_sha"],
            "7f106a5f"
        );
    }

    #[test]
    fn the_highest_number_is_the_newest() {
        let dir = tempfile::tempdir().unwrap();
        assert!(newest_option_file(dir.path()).is_err());
        for name in [
            "OPTIONS-000009",
            "OPTIONS-000123",
            "OPTIONS-000200.dbtmp",
            "LOG",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(
            newest_option_file(dir.path()).unwrap(),
            dir.path().join("OPTIONS-000123")
        );
    }
}
