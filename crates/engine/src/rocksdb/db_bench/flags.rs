//! db_bench's flags from a config's settings and a step.

use std::path::Path;

use plimsoll_core::plan::{KEY_BYTES, VALUE_BYTES};
use plimsoll_core::units::SizeSyntax;

use crate::{EngineError, Settings};

/// What a run is to do, beside its config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// `readrandom`; with what comes after it, such as `waitforcompaction`.
    pub benchmarks: Vec<&'static str>,
    /// Keys of the database.
    pub keys: u64,
    /// Threads, without the one that writes beside readers.
    pub threads: u32,
    /// Whole seconds, where it ends by time.
    pub seconds: Option<u64>,
    /// Operations of each thread, where it ends by them.
    pub operations: Option<u64>,
    /// Bytes per second that a thread of its own writes.
    pub background_bytes_per_s: Option<u64>,
    /// Flags of this step: `seek_nexts`, `disable_wal`, ...
    pub flags: Vec<(&'static str, String)>,
    /// Whether the database is there.
    pub is_existing: bool,
    /// Of the random keys.
    pub seed: u64,
    /// Where operations per second are written.
    pub report: Option<std::path::PathBuf>,
}

impl Job {
    /// One key.
    pub(super) fn look() -> Self {
        Self {
            benchmarks: vec!["fillseq"],
            keys: 1,
            threads: 1,
            seconds: None,
            operations: None,
            background_bytes_per_s: None,
            flags: Vec::new(),
            is_existing: false,
            seed: 1,
            report: None,
        }
    }
}

/// What every run has, as the wrapper scripts around db_bench pass it.
const ALWAYS: [(&str, &str); 8] = [
    ("compression_max_dict_bytes", "0"),
    ("compression_ratio", "0.5"),
    ("statistics", "0"),
    ("stats_per_interval", "1"),
    ("stats_interval_seconds", "20"),
    ("histogram", "1"),
    ("wal_bytes_per_sync", "0"),
    ("sync", "0"),
];

/// Settings that are a number or switch of the same or another name.
const PLAIN: [(&str, &str); 42] = [
    ("num_levels", "num_levels"),
    (
        "level_compaction_dynamic_level_bytes",
        "level_compaction_dynamic_level_bytes",
    ),
    ("max_subcompactions", "subcompactions"),
    ("max_background_jobs", "max_background_jobs"),
    ("max_background_compactions", "max_background_compactions"),
    ("max_background_flushes", "max_background_flushes"),
    ("write_buffer_size", "write_buffer_size"),
    ("db_write_buffer_size", "db_write_buffer_size"),
    ("max_write_buffer_number", "max_write_buffer_number"),
    (
        "min_write_buffer_number_to_merge",
        "min_write_buffer_number_to_merge",
    ),
    ("target_file_size_base", "target_file_size_base"),
    ("target_file_size_multiplier", "target_file_size_multiplier"),
    ("max_bytes_for_level_base", "max_bytes_for_level_base"),
    (
        "max_bytes_for_level_multiplier",
        "max_bytes_for_level_multiplier",
    ),
    ("max_compaction_bytes", "max_compaction_bytes"),
    (
        "level0_file_num_compaction_trigger",
        "level0_file_num_compaction_trigger",
    ),
    (
        "level0_slowdown_writes_trigger",
        "level0_slowdown_writes_trigger",
    ),
    ("level0_stop_writes_trigger", "level0_stop_writes_trigger"),
    (
        "soft_pending_compaction_bytes_limit",
        "soft_pending_compaction_bytes_limit",
    ),
    (
        "hard_pending_compaction_bytes_limit",
        "hard_pending_compaction_bytes_limit",
    ),
    ("delayed_write_rate", "delayed_write_rate"),
    ("enable_pipelined_write", "enable_pipelined_write"),
    ("unordered_write", "unordered_write"),
    (
        "allow_concurrent_memtable_write",
        "allow_concurrent_memtable_write",
    ),
    ("bytes_per_sync", "bytes_per_sync"),
    (
        "writable_file_max_buffer_size",
        "writable_file_max_buffer_size",
    ),
    ("compaction_readahead_size", "compaction_readahead_size"),
    (
        "delete_obsolete_files_period_micros",
        "delete_obsolete_files_period_micros",
    ),
    ("max_open_files", "open_files"),
    ("use_direct_reads", "use_direct_reads"),
    (
        "use_direct_io_for_flush_and_compaction",
        "use_direct_io_for_flush_and_compaction",
    ),
    ("block_cache_bytes", "cache_size"),
    ("block_cache_shard_bits", "cache_numshardbits"),
    (
        "block_cache_high_pri_pool_ratio",
        "cache_high_pri_pool_ratio",
    ),
    ("block_cache_low_pri_pool_ratio", "cache_low_pri_pool_ratio"),
    ("verify_checksums", "verify_checksum"),
    ("enable_blob_files", "enable_blob_files"),
    ("min_blob_size", "min_blob_size"),
    ("blob_file_size", "blob_file_size"),
    ("blob_compression_type", "blob_compression_type"),
    (
        "enable_blob_garbage_collection",
        "enable_blob_garbage_collection",
    ),
    ("merge_operator", "merge_operator"),
];

/// The same of the two groups.
const TABLE: &str = "block_based_table_factory";
const OF_TABLE: [(&str, &str); 7] = [
    ("block_size", "block_size"),
    (
        "cache_index_and_filter_blocks",
        "cache_index_and_filter_blocks",
    ),
    (
        "pin_l0_filter_and_index_blocks_in_cache",
        "pin_l0_filter_and_index_blocks_in_cache",
    ),
    ("partition_filters", "partition_index_and_filters"),
    ("metadata_block_size", "metadata_block_size"),
    (
        "pin_top_level_index_and_filter",
        "pin_top_level_index_and_filter",
    ),
    ("format_version", "format_version"),
];
const UNIVERSAL: &str = "compaction_options_universal";
const OF_UNIVERSAL: [(&str, &str); 6] = [
    ("size_ratio", "universal_size_ratio"),
    ("min_merge_width", "universal_min_merge_width"),
    ("max_merge_width", "universal_max_merge_width"),
    (
        "max_size_amplification_percent",
        "universal_max_size_amplification_percent",
    ),
    (
        "compression_size_percent",
        "universal_compression_size_percent",
    ),
    ("allow_trivial_move", "universal_allow_trivial_move"),
];

/// Words of option strings, and those of db_bench.
type Words = &'static [(&'static str, &'static str)];

/// Values that db_bench has other words for, by setting and flag.
const WORDS: [(&str, &str, Words); 5] = [
    (
        "compaction_style",
        "compaction_style",
        &[
            ("kCompactionStyleLevel", "0"),
            ("kCompactionStyleUniversal", "1"),
            ("kCompactionStyleFIFO", "2"),
        ],
    ),
    ("compression", "compression_type", CODECS),
    (
        "block_cache",
        "cache_type",
        &[
            ("lru", "lru_cache"),
            ("hyper_clock", "hyper_clock_cache"),
            ("auto_hyper_clock", "auto_hyper_clock_cache"),
        ],
    ),
    (
        "memtable_factory",
        "memtablerep",
        &[
            ("vector", "vector"),
            ("skip_list", "skip_list"),
            ("skiplist", "skip_list"),
            ("SkipListFactory", "skip_list"),
        ],
    ),
    (
        "prepopulate_block_cache",
        "prepopulate_block_cache",
        &[("kDisable", "0"), ("kFlushOnly", "1")],
    ),
];

const CODECS: Words = &[
    ("kNoCompression", "none"),
    ("kSnappyCompression", "snappy"),
    ("kZlibCompression", "zlib"),
    ("kBZip2Compression", "bzip2"),
    ("kLZ4Compression", "lz4"),
    ("kLZ4HCCompression", "lz4hc"),
    ("kZSTD", "zstd"),
];

/// Flags with their values; a setting without one is an error.
pub(super) fn flags(
    settings: &Settings,
    job: &Job,
    dir: &Path,
) -> Result<Vec<(String, String)>, EngineError> {
    let mut flags: Vec<(String, String)> = Vec::new();
    let mut set =
        |name: &str, value: String| match flags.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = value,
            None => flags.push((name.to_owned(), value)),
        };
    let dir = dir.display().to_string();
    set("benchmarks", job.benchmarks.join(","));
    set("db", dir.clone());
    set("wal_dir", dir);
    set("num", job.keys.to_string());
    set("key_size", KEY_BYTES.to_string());
    set("value_size", VALUE_BYTES.to_string());
    set("threads", job.threads.to_string());
    set("use_existing_db", u8::from(job.is_existing).to_string());
    set("seed", job.seed.to_string());
    set(
        "benchmark_write_rate_limit",
        job.background_bytes_per_s.unwrap_or(0).to_string(),
    );
    ALWAYS
        .iter()
        .for_each(|(name, value)| set(name, (*value).to_owned()));
    for (name, value) in settings {
        for (flag, value) in of_setting(name, value.trim())? {
            set(&flag, value);
        }
    }
    if let Some(seconds) = job.seconds {
        set("duration", seconds.to_string());
    }
    if let Some(operations) = job.operations {
        set("writes", operations.to_string());
    }
    if let Some(report) = &job.report {
        set("report_file", report.display().to_string());
        set("report_interval_seconds", "1".to_owned());
    }
    job.flags
        .iter()
        .for_each(|(name, value)| set(name, value.clone()));
    Ok(flags)
}

/// The setting that a flag comes from.
pub(super) fn setting_of<'a>(settings: &'a Settings, flag: &str) -> Option<&'a String> {
    let gives = |(name, value): &(&String, &String)| {
        of_setting(name, value.trim())
            .is_ok_and(|flags| flags.iter().any(|(known, _)| known == flag))
    };
    settings.iter().find(gives).map(|(name, _)| name)
}

/// The level at which compression begins, if all levels below it have one codec.
fn first_compressed_level(codecs: &str) -> Option<usize> {
    let levels: Vec<&str> = codecs.split(':').collect();
    let first = levels
        .iter()
        .take_while(|codec| **codec == "kNoCompression")
        .count();
    let is_one = levels[first..].windows(2).all(|pair| pair[0] == pair[1]);
    is_one.then_some(first)
}

fn of_setting(name: &str, value: &str) -> Result<Vec<(String, String)>, EngineError> {
    let one = |flag: &str, value: &str| Ok(vec![(flag.to_owned(), value.to_owned())]);
    let refused = |why: &str| {
        EngineError::new(format!(
            "setting {name} = {value}: {why}; leave it out, or leave out driver = \"db_bench\""
        ))
    };
    // A group gives each of its members a flag.
    for group in [TABLE, UNIVERSAL] {
        if name == group {
            let mut flags = Vec::new();
            for (member, value) in super::super::readback::members(value) {
                flags.extend(of_setting(&format!("{group}.{member}"), &value)?);
            }
            return Ok(flags);
        }
    }
    let find = |names: &[(&str, &'static str)], name: &str| {
        names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, flag)| *flag)
    };
    let of_group = |group: &str, names: &[(&str, &'static str)]| {
        find(names, name.strip_prefix(group)?.strip_prefix('.')?)
    };
    if let Some(flag) = find(&PLAIN, name)
        .or_else(|| of_group(TABLE, &OF_TABLE))
        .or_else(|| of_group(UNIVERSAL, &OF_UNIVERSAL))
    {
        // `16m` is for configs alone.
        return one(
            flag,
            &SizeSyntax::ROCKSDB
                .parse(value)
                .map_or_else(|| value.to_owned(), |bytes| bytes.to_string()),
        );
    }
    let plain = name
        .strip_prefix(TABLE)
        .and_then(|rest| rest.strip_prefix('.'))
        .unwrap_or(name);
    if let Some((_, flag, words)) = WORDS.iter().find(|(known, _, _)| *known == plain) {
        let word = words
            .iter()
            .find(|(known, _)| *known == value)
            .map(|(_, word)| *word);
        return one(
            flag,
            word.ok_or_else(|| refused("db_bench has no word for this value"))?,
        );
    }
    match plain {
        // Our configs have a codec per level; db_bench has one codec and the level it begins at.
        "compression_per_level" => {
            let first = first_compressed_level(value).ok_or_else(|| {
                refused("db_bench knows levels without a codec and below them one codec")
            })?;
            one("min_level_to_compress", &first.to_string())
        }
        "filter_policy" => match value
            .strip_prefix("bloomfilter:")
            .map(|rest| rest.trim_end_matches(":false"))
        {
            Some(bits) if bits.parse::<f64>().is_ok() => one("bloom_bits", bits),
            _ if matches!(value, "nullptr" | "null") => one("bloom_bits", "-1"),
            _ => Err(refused("db_bench knows bloomfilter:BITS:false")),
        },
        // What follows from other flags of db_bench.
        "cache_index_and_filter_blocks_with_high_priority" | "index_type" => Ok(Vec::new()),
        _ => Err(refused("db_bench has no flag for it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        flags(&settings, &Job::look(), Path::new("/d")).map_err(|error| error.to_string())
    }

    #[test]
    fn settings_become_flags() {
        for (name, value, flag, expected) in [
            ("write_buffer_size", "16m", "write_buffer_size", "16777216"),
            ("max_subcompactions", "4", "subcompactions", "4"),
            ("max_open_files", "-1", "open_files", "-1"),
            (
                "compaction_style",
                "kCompactionStyleUniversal",
                "compaction_style",
                "1",
            ),
            ("compression", "kLZ4Compression", "compression_type", "lz4"),
            (
                "compression_per_level",
                "kNoCompression:kNoCompression:kNoCompression:kZSTD:kZSTD",
                "min_level_to_compress",
                "3",
            ),
            (
                "block_cache",
                "auto_hyper_clock",
                "cache_type",
                "auto_hyper_clock_cache",
            ),
            ("block_cache_bytes", "1g", "cache_size", "1073741824"),
            (
                "block_based_table_factory.block_size",
                "8192",
                "block_size",
                "8192",
            ),
            (
                "block_based_table_factory",
                "{block_size=4096;filter_policy=bloomfilter:10:false}",
                "bloom_bits",
                "10",
            ),
            (
                "compaction_options_universal.size_ratio",
                "1",
                "universal_size_ratio",
                "1",
            ),
            (
                "compaction_options_universal",
                "{allow_trivial_move=true;compression_size_percent=-1}",
                "universal_compression_size_percent",
                "-1",
            ),
            ("memtable_factory", "vector", "memtablerep", "vector"),
        ] {
            let flags = of(&[(name, value)]).unwrap();
            assert!(
                flags.contains(&(flag.to_owned(), expected.to_owned())),
                "{name} = {value}: {flags:?}"
            );
        }
        let flags = of(&[(
            "compaction_options_universal",
            "{size_ratio=1;min_merge_width=2}",
        )])
        .unwrap();
        assert_eq!(
            flags
                .iter()
                .filter(|(name, _)| name.starts_with("universal_"))
                .count(),
            2
        );
    }

    #[test]
    fn a_setting_without_a_flag_is_an_error_that_names_it() {
        for (name, value, why) in [
            ("bottommost_compression", "kZSTD", "no flag"),
            ("compression", "kXpressCompression", "no word"),
            (
                "compression_per_level",
                "kLZ4Compression:kZSTD",
                "one codec",
            ),
            (
                "block_based_table_factory.filter_policy",
                "ribbonfilter:10",
                "bloomfilter",
            ),
        ] {
            let error = of(&[(name, value)]).unwrap_err();
            assert!(
                error.contains(name) && error.contains(why) && error.contains("leave it out"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_steps_own_flags_come_last_and_stand_alone() {
        let job = Job {
            benchmarks: vec!["readwhilewriting", "stats"],
            seconds: Some(60),
            background_bytes_per_s: Some(2 << 20),
            flags: vec![
                ("sync", "1".to_owned()),
                ("merge_operator", "put".to_owned()),
            ],
            is_existing: true,
            report: Some("/r.csv".into()),
            ..Job::look()
        };
        let flags = flags(&Settings::new(), &job, Path::new("/d")).unwrap();
        for (flag, value) in [
            ("benchmarks", "readwhilewriting,stats"),
            ("db", "/d"),
            ("wal_dir", "/d"),
            ("use_existing_db", "1"),
            ("benchmark_write_rate_limit", "2097152"),
            ("duration", "60"),
            ("report_file", "/r.csv"),
            ("sync", "1"),
            ("key_size", "20"),
            ("value_size", "400"),
        ] {
            assert_eq!(
                flags
                    .iter()
                    .filter(|(name, _)| name == flag)
                    .map(|(_, value)| value.as_str())
                    .collect::<Vec<_>>(),
                [value],
                "{flag}"
            );
        }
    }
}
