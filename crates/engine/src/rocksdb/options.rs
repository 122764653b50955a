//! A config's settings: what their names and values may be, and how they become options of a
//! library.

use std::collections::BTreeMap;

use plimsoll_core::suggest;
use plimsoll_core::units::{SizeSyntax, format_bytes};

use super::library::{Cache, Library, Options};
use super::readback::{GROUPS, TABLE, members};
use crate::{EngineError, Settings};

/// `name TAB kind of value TAB versions` lines, from the option files that RocksDB's versions
/// write.
const NAMES: &str = include_str!("option_names.tsv");

/// Our own settings: a cache object, which option strings do not know for every kind, and how reads
/// are done.
const OURS: [&str; 6] = [
    "block_cache",
    "block_cache_bytes",
    "block_cache_shard_bits",
    "block_cache_high_pri_pool_ratio",
    "block_cache_low_pri_pool_ratio",
    "verify_checksums",
];

/// What may not be set, and why.
const REFUSED: &[(&str, &str)] = &[
    ("wal_dir", "the log belongs into the trial's data directory"),
    (
        "db_log_dir",
        "the database's own log belongs into the trial's data directory",
    ),
    (
        "db_paths",
        "the data belongs into the trial's data directory",
    ),
    (
        "cf_paths",
        "the data belongs into the trial's data directory",
    ),
    ("create_if_missing", "every trial makes its database"),
    ("error_if_exists", "every trial makes its database"),
    ("comparator", "keys are compared as bytes"),
    ("table_factory", "tables are block-based"),
];

/// Settings with one of several words for a value. RocksDB would refuse others only when a database
/// is opened.
const ENUMERATIONS: [(&[&str], &[&str]); 4] = [
    (
        &[
            "blob_compression_type",
            "bottommost_compression",
            "compression",
        ],
        &[
            "kNoCompression",
            "kSnappyCompression",
            "kZlibCompression",
            "kBZip2Compression",
            "kLZ4Compression",
            "kLZ4HCCompression",
            "kXpressCompression",
            "kZSTD",
            "kZSTDNotFinalCompression",
            "kDisableCompressionOption",
        ],
    ),
    (
        &["compaction_style"],
        &[
            "kCompactionStyleLevel",
            "kCompactionStyleUniversal",
            "kCompactionStyleFIFO",
            "kCompactionStyleNone",
        ],
    ),
    (
        &["compaction_pri"],
        &[
            "kByCompensatedSize",
            "kOldestLargestSeqFirst",
            "kOldestSmallestSeqFirst",
            "kMinOverlappingRatio",
            "kRoundRobin",
        ],
    ),
    (
        &["compaction_options_universal.stop_style"],
        &[
            "kCompactionStopStyleSimilarSize",
            "kCompactionStopStyleTotalSize",
        ],
    ),
];

/// Prefix of options that the running version does not have, in the settings that are read back;
/// the value is the reason.
pub(super) const NOT_APPLIED: &str = "not applied: ";

/// 6.29.5 tells the kind of its filter, and not how many bits a key has in it.
const FILTER: &str = "block_based_table_factory.filter_policy";
const BLOOM_FILTER: &str = "rocksdb.BuiltinBloomFilter";

/// The cache that RocksDB makes where none is asked for.
const DEFAULT_CACHE_BYTES: u64 = 8 << 20;
/// RocksDB's block size where none is set.
const DEFAULT_BLOCK_BYTES: u64 = 4096;

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Real,
    Switch,
    Text,
}

struct Known {
    name: &'static str,
    kind: Kind,
    /// `all`, or those that have it.
    versions: &'static str,
}

/// The block cache's kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheKind {
    Lru,
    HyperClock,
    AutoHyperClock,
}

/// Settings that have been checked.
#[derive(Debug)]
pub(super) struct Checked {
    /// Names with dots where they belong to a group, and their values.
    options: Settings,
    cache: CacheKind,
    cache_bytes: Option<u64>,
    shard_bits: Option<i32>,
    /// Members of the LRU cache that option strings know: `high_pri_pool_ratio`,
    /// `low_pri_pool_ratio`.
    pool_ratios: Settings,
    /// Whether reads check each block.
    pub verifies_checksums: bool,
}

fn known() -> impl Iterator<Item = Known> {
    NAMES
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut columns = line.split('\t');
            let name = columns.next()?;
            let kind = match columns.next()? {
                "number" => Kind::Number,
                "real" => Kind::Real,
                "switch" => Kind::Switch,
                _ => Kind::Text,
            };
            Some(Known {
                name,
                kind,
                versions: columns.next()?,
            })
        })
}

impl Kind {
    fn takes(self, value: &str) -> bool {
        match self {
            Self::Number => SizeSyntax::ROCKSDB
                .parse(value.strip_prefix('-').unwrap_or(value))
                .is_some(),
            Self::Real => value.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Switch => parse_switch(value).is_some(),
            Self::Text => !value.is_empty(),
        }
    }

    fn rule(self) -> &'static str {
        match self {
            Self::Number => "a whole number, with k, m, g or t after it for its 1024s",
            Self::Real => "a number",
            Self::Switch => "true or false",
            Self::Text => "a value",
        }
    }
}

fn parse_switch(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}

fn wrong(name: &str, value: &str, rule: &str) -> EngineError {
    EngineError::new(format!(
        "setting {name} cannot be \"{value}\": write {rule}"
    ))
}

/// Checks settings without a library: names that no known version has, values that cannot be, a
/// cache that does not fit into `ram_bytes`.
pub(super) fn check(settings: &Settings, ram_bytes: Option<u64>) -> Result<Checked, EngineError> {
    let mut checked = Checked {
        options: Settings::new(),
        cache: CacheKind::Lru,
        cache_bytes: None,
        shard_bits: None,
        pool_ratios: Settings::new(),
        verifies_checksums: true,
    };
    // A group `{a=1;b=2}` is checked member by member, so that an error names the member.
    for (name, value) in flatten(settings)? {
        let value = value.trim();
        let wrong = |rule: &str| wrong(&name, value, rule);
        match name.as_str() {
            // The cache and the checksums on reading are calls of their own, not options in text.
            "block_cache" => {
                checked.cache = match value {
                    "lru" => CacheKind::Lru,
                    "hyper_clock" => CacheKind::HyperClock,
                    "auto_hyper_clock" => CacheKind::AutoHyperClock,
                    _ => return Err(wrong("lru, hyper_clock or auto_hyper_clock")),
                }
            }
            "block_cache_bytes" => {
                checked.cache_bytes = Some(
                    SizeSyntax::ROCKSDB
                        .parse(value)
                        .ok_or_else(|| wrong(Kind::Number.rule()))?,
                )
            }
            "block_cache_shard_bits" => {
                let bits = value.parse().ok().filter(|bits| (-1..20).contains(bits));
                checked.shard_bits = Some(
                    bits.ok_or_else(|| wrong("a whole number from -1 (RocksDB chooses) to 19"))?,
                );
            }
            "block_cache_high_pri_pool_ratio" | "block_cache_low_pri_pool_ratio" => {
                let is_ratio = value
                    .parse()
                    .is_ok_and(|ratio: f64| (0.0..=1.0).contains(&ratio));
                let member = name.trim_start_matches("block_cache_").to_owned();
                checked.pool_ratios.insert(
                    member,
                    is_ratio
                        .then(|| value.to_owned())
                        .ok_or_else(|| wrong("a number from 0 to 1"))?,
                );
            }
            "verify_checksums" => {
                checked.verifies_checksums =
                    parse_switch(value).ok_or_else(|| wrong(Kind::Switch.rule()))?
            }
            _ => {
                // A version may lack a known name; a name that no version has is a mistake.
                let known = find(&name)?;
                if !known.kind.takes(value) {
                    return Err(wrong(known.kind.rule()));
                }
                if let Some((_, words)) = ENUMERATIONS.iter().find(|(names, words)| {
                    names.contains(&name.as_str()) && !words.contains(&value)
                }) {
                    let hint = suggest::hint(value, words.iter().copied());
                    return Err(EngineError::new(format!(
                        "setting {name} cannot be \"{value}\"{hint}: write one of {}",
                        words.join(", ")
                    )));
                }
                if name == "level0_file_num_compaction_trigger" && value.starts_with('-') {
                    return Err(wrong("a number of files, not a negative one"));
                }
                checked.options.insert(name.clone(), value.to_owned());
            }
        }
    }
    checked.check_together(ram_bytes)?;
    Ok(checked)
}

/// Groups taken apart: `compaction_options_universal = {size_ratio=10}` is
/// `compaction_options_universal.size_ratio = 10`.
///
/// # Errors
/// When a group is not written as one, or a member is there twice.
pub fn flatten(settings: &Settings) -> Result<Settings, EngineError> {
    let mut flat = Settings::new();
    let mut add = |name: String, value: &str| match flat.insert(name.clone(), value.to_owned()) {
        Some(other) if other != value => Err(EngineError::new(format!(
            "setting {name} is both \"{other}\" and \"{value}\": write it once"
        ))),
        _ => Ok(()),
    };
    for (name, value) in settings {
        if !GROUPS.contains(&name.as_str()) {
            add(name.clone(), value)?;
            continue;
        }
        let members = members(value);
        if members.is_empty() {
            return Err(wrong(
                name,
                value,
                &format!("{{NAME=VALUE;...}}, or a line {name}.NAME = VALUE for each"),
            ));
        }
        members
            .into_iter()
            .try_for_each(|(member, value)| add(format!("{name}.{member}"), &value))?;
    }
    Ok(flat)
}

fn versions_of(name: &str) -> &'static str {
    known()
        .find(|known| known.name == name)
        .map_or("all", |known| known.versions)
}

fn find(name: &str) -> Result<Known, EngineError> {
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(EngineError::new(format!(
            "setting {name} cannot be set: {reason}; take it out"
        )));
    }
    if name == format!("{TABLE}.block_cache") {
        return Err(EngineError::new(format!(
            "setting {name} cannot be set: write block_cache_bytes, block_cache_shard_bits and so \
            on"
        )));
    }
    known().find(|known| known.name == name).ok_or_else(|| {
        let names = known().map(|known| known.name).chain(OURS);
        let suggestion = suggest::hint(name, names);
        // `block_size` is meant in its group.
        let in_group = known().find(|known| known.name.rsplit('.').next() == Some(name));
        let suggestion = in_group.map_or(suggestion, |known| {
            format!(" (did you mean \"{}\"?)", known.name)
        });
        EngineError::new(format!(
            "unknown setting \"{name}\" for rocksdb: no version from 6.29.5 to 11.8.1 has \
            it{suggestion}; names are those of RocksDB's option files"
        ))
    })
}

impl Checked {
    fn number(&self, name: &str) -> Option<u64> {
        self.options
            .get(name)
            .and_then(|value| SizeSyntax::ROCKSDB.parse(value))
    }

    fn check_together(&self, ram_bytes: Option<u64>) -> Result<(), EngineError> {
        if let (Some(cache), Some(ram)) = (self.cache_bytes, ram_bytes)
            && cache > ram
        {
            return Err(EngineError::new(format!(
                "block_cache_bytes is {} and this machine has {} of memory: the cache would be \
                swapped or the process killed; make it smaller, in a plan with [config.NAME], from \
                = \"...\" and settings = {{ block_cache_bytes = \"8g\" }}",
                format_bytes(cache),
                format_bytes(ram)
            )));
        }
        // From here on each value is fine by itself and wrong next to another.
        let universal =
            |member: &str| self.number(&format!("compaction_options_universal.{member}"));
        if let (Some(least), Some(most)) =
            (universal("min_merge_width"), universal("max_merge_width"))
            && least > most
        {
            return Err(EngineError::new(format!(
                "compaction_options_universal.min_merge_width is {least} and max_merge_width \
                {most}: the first cannot be larger"
            )));
        }
        let is_universal = self
            .options
            .get("compaction_style")
            .is_some_and(|style| style == "kCompactionStyleUniversal");
        if let Some(levels) = self
            .number("num_levels")
            .filter(|levels| *levels < if is_universal { 1 } else { 2 })
        {
            return Err(EngineError::new(format!(
                "num_levels cannot be {levels}: leveled compaction needs 2, universal 1"
            )));
        }
        let is_vector = self
            .options
            .get("memtable_factory")
            .is_some_and(|factory| factory.contains("vector"));
        let is_concurrent = self
            .options
            .get("allow_concurrent_memtable_write")
            .and_then(|value| parse_switch(value))
            .unwrap_or(true);
        if is_vector && is_concurrent {
            return Err(EngineError::new(
                "memtable_factory = vector takes one writer at a time: write \
                allow_concurrent_memtable_write = false as well",
            ));
        }
        let has_clock = self.cache != CacheKind::Lru;
        if let Some(member) = self.pool_ratios.keys().next().filter(|_| has_clock) {
            return Err(EngineError::new(format!(
                "block_cache_{member} is for block_cache = lru: a hyper clock cache has no pools; \
                leave it out, or take it out of a config that a plan names in \"from\" with \
                settings = {{ block_cache_{member} = \"\" }}"
            )));
        }
        Ok(())
    }

    /// The settings as options of a library. Beside them what this version does not have and was
    /// left out.
    pub(super) fn options(
        &self,
        library: &'static Library,
    ) -> Result<(Options, Settings), EngineError> {
        let mut options = Options::new(library);
        let mut left_out = Settings::new();
        if self.cache != CacheKind::Lru {
            let bytes = usize::try_from(self.cache_bytes.unwrap_or(DEFAULT_CACHE_BYTES))
                .unwrap_or(usize::MAX);
            let block_bytes = self
                .number(&format!("{TABLE}.block_size"))
                .unwrap_or(DEFAULT_BLOCK_BYTES);
            // As db_bench estimates: a block. Without an estimate the cache finds out by itself.
            let entry_bytes = if self.cache == CacheKind::HyperClock {
                usize::try_from(block_bytes).unwrap_or(0)
            } else {
                0
            };
            options.set_block_cache(&Cache::hyper_clock(
                library,
                bytes,
                entry_bytes,
                self.shard_bits,
            )?);
        } else if let Some(bytes) = self
            .cache_bytes
            .or((self.shard_bits.is_some() || !self.pool_ratios.is_empty())
                .then_some(DEFAULT_CACHE_BYTES))
        {
            self.set_lru_cache(&mut options, bytes, &mut left_out)?;
        }
        for (name, value) in &self.options {
            let text = match name.split_once('.') {
                Some((group, member)) => format!("{group}={{{member}={value}}}"),
                None if value.contains(';') && !value.starts_with('{') => {
                    format!("{name}={{{value}}}")
                }
                None => format!("{name}={value}"),
            };
            // One by one, so that an error is about one option.
            if let Err(status) = options.apply(&text) {
                let versions = versions_of(name);
                // What this version lacks is left out and reported; anything else is an error.
                if versions == "all" || !is_unknown(&status.0) {
                    let those = if versions == "all" {
                        String::new()
                    } else {
                        format!("; the versions that take this name are: {versions}")
                    };
                    return Err(EngineError::new(format!(
                        "set {name} = {value}: {}{those}; see RocksDB's documentation of this \
                        version",
                        status.0
                    )));
                }
                left_out.insert(
                    format!("{NOT_APPLIED}{name}"),
                    format!("this RocksDB does not know it; versions that do: {versions}"),
                );
            }
        }
        Ok((options, left_out))
    }

    /// Adds what the files of a database do not tell: the filter's bits where a version tells its
    /// kind alone, and that an option had no effect, because RocksDB goes on taking names of
    /// options that it has no longer.
    pub(super) fn complete(&self, effective: &mut Settings) {
        if let (Some(asked), Some(told)) = (self.options.get(FILTER), effective.get_mut(FILTER))
            && asked.starts_with("bloomfilter:")
            && told == BLOOM_FILTER
        {
            told.clone_from(asked);
        }
        let untold: Vec<&String> = self
            .options
            .keys()
            .filter(|name| !effective.contains_key(*name))
            .collect();
        for name in untold {
            let reason = format!(
                "this RocksDB takes the name without effect; versions that have the option: {}",
                versions_of(name)
            );
            effective.insert(format!("{NOT_APPLIED}{name}"), reason);
        }
    }

    fn set_lru_cache(
        &self,
        options: &mut Options,
        bytes: u64,
        left_out: &mut Settings,
    ) -> Result<(), EngineError> {
        let mut parts = BTreeMap::from([("capacity", bytes.to_string())]);
        parts.extend(
            self.shard_bits
                .map(|bits| ("num_shard_bits", bits.to_string())),
        );
        parts.extend(
            self.pool_ratios
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone())),
        );
        loop {
            let members: Vec<String> = parts
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let text = format!("{TABLE}={{block_cache={{{}}}}}", members.join(";"));
            let Err(status) = options.apply(&text) else {
                return Ok(());
            };
            // 6.29.5 has no such pool.
            match parts
                .remove("low_pri_pool_ratio")
                .filter(|_| is_unknown(&status.0))
            {
                Some(_) => left_out.insert(
                    format!("{NOT_APPLIED}block_cache_low_pri_pool_ratio"),
                    "this RocksDB's cache has no such pool".to_owned(),
                ),
                None => {
                    return Err(EngineError::new(format!(
                        "make the block cache: {}; check the settings block_cache_*",
                        status.0
                    )));
                }
            };
        }
    }
}

/// Whether a library refused a name, by its words in one version or another.
fn is_unknown(status: &str) -> bool {
    [
        "Could not find option",
        "Unrecognized option",
        "Extra option not recognized",
        "Can't parse option",
    ]
    .iter()
    .any(|words| status.contains(words))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (
                &[("writ_buffer_size", "1")],
                "unknown setting \"writ_buffer_size\" for rocksdb: no version from 6.29.5 to \
                11.8.1 has it (did you mean \"write_buffer_size\"?)",
            ),
            (
                &[("block_size", "8192")],
                "(did you mean \"block_based_table_factory.block_size\"?)",
            ),
            (
                &[("write_buffer_size", "16MB")],
                "setting write_buffer_size cannot be \"16MB\": write a whole number, with k, m, g \
                or t",
            ),
            (
                &[("write_buffer_size", "99999999t")],
                "setting write_buffer_size cannot be",
            ),
            (&[("use_direct_reads", "maybe")], "write true or false"),
            (
                &[("wal_dir", "/tmp/x")],
                "setting wal_dir cannot be set: the log belongs into the trial's data directory",
            ),
            (
                &[("block_based_table_factory", "{block_cache={capacity=1}}")],
                "write block_cache_bytes",
            ),
            (
                &[("block_based_table_factory", "8192")],
                "write {NAME=VALUE;...}",
            ),
            (
                &[
                    ("block_based_table_factory", "{block_size=1}"),
                    ("block_based_table_factory.block_size", "2"),
                ],
                "is both \"1\" and \"2\"",
            ),
            (
                &[("block_cache", "clock")],
                "write lru, hyper_clock or auto_hyper_clock",
            ),
            (
                &[
                    ("block_cache", "hyper_clock"),
                    ("block_cache_high_pri_pool_ratio", "0.5"),
                ],
                "settings = { block_cache_high_pri_pool_ratio = \"\" }",
            ),
            (
                &[("block_cache_shard_bits", "20")],
                "from -1 (RocksDB chooses) to 19",
            ),
            (
                &[("block_cache_high_pri_pool_ratio", "1.5")],
                "a number from 0 to 1",
            ),
            (
                &[("block_cache_bytes", "5g")],
                "block_cache_bytes is 5.0 GiB and this machine has 4.0 GiB of memory",
            ),
            (
                &[("block_cache_bytes", "5g")],
                "settings = { block_cache_bytes = \"8g\" }",
            ),
            (
                &[("compression", "kZSDT")],
                "setting compression cannot be \"kZSDT\" (did you mean \"kZSTD\"?): write one of \
                kNoCompression, ",
            ),
            (
                &[("bottommost_compression", "zstd")],
                "setting bottommost_compression cannot be \"zstd\"",
            ),
            (
                &[("compaction_style", "universal")],
                "write one of kCompactionStyleLevel, kCompactionStyleUniversal",
            ),
            (
                &[("compaction_pri", "kMinOverlapingRatio")],
                "(did you mean \"kMinOverlappingRatio\"?)",
            ),
            (
                &[("level0_file_num_compaction_trigger", "-1")],
                "cannot be \"-1\": write a number of files, not a negative one",
            ),
            (
                &[(
                    "compaction_options_universal",
                    "{min_merge_width=9;max_merge_width=2}",
                )],
                "min_merge_width is 9 and max_merge_width 2",
            ),
            (&[("num_levels", "1")], "leveled compaction needs 2"),
            (
                &[("memtable_factory", "vector")],
                "allow_concurrent_memtable_write = false",
            ),
            (&[("verify_checksums", "2")], "write true or false"),
        ];
        for (pairs, expected) in cases {
            let message = check(&settings(pairs), Some(4 << 30)).unwrap_err().message;
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn what_can_be_is_taken() {
        for pairs in [
            &[
                ("write_buffer_size", "16m"),
                ("max_open_files", "-1"),
                ("max_bytes_for_level_multiplier", "8"),
            ][..],
            &[
                ("compaction_style", "kCompactionStyleUniversal"),
                ("num_levels", "1"),
            ],
            &[
                ("memtable_factory", "vector"),
                ("allow_concurrent_memtable_write", "false"),
            ],
            &[
                ("block_cache", "auto_hyper_clock"),
                ("block_cache_bytes", "4g"),
                ("block_cache_shard_bits", "-1"),
            ],
            &[(
                "block_based_table_factory",
                "{block_size=8192;filter_policy=bloomfilter:10:false}",
            )],
            &[
                ("compression", "kNoCompression"),
                ("bottommost_compression", "kDisableCompressionOption"),
                ("compaction_pri", "kRoundRobin"),
            ],
            &[
                ("level0_file_num_compaction_trigger", "4"),
                ("level0_stop_writes_trigger", "30"),
            ],
            // One version only.
            &[
                ("memtable_batch_lookup_optimization", "true"),
                ("block_cache_low_pri_pool_ratio", "0"),
            ],
        ] {
            check(&settings(pairs), Some(4 << 30)).unwrap();
        }
    }

    #[test]
    fn every_name_is_listed_once_with_its_versions() {
        let names: Vec<&str> = known().map(|known| known.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        assert_eq!(
            names.len(),
            NAMES.lines().filter(|line| !line.starts_with('#')).count()
        );
        assert!(known().all(|known| !known.versions.is_empty()));
        assert!(names.len() > 200 && OURS.iter().all(|ours| !names.contains(ours)));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_check_panic(
            name in "\\PC{0,20}|block_based_table_factory",
            value in "\\PC{0,30}|\\{[a-z=;{}]{0,20}\\}",
        ) {
            let _ = check(&Settings::from([(name, value)]), Some(1));
        }
    }
}
