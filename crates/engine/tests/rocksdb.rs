//! RocksDB's versions behind the traits: each in a process of its own, against rows that are known.

mod builds_support;
mod library_support;

use std::path::Path;
use std::time::{Duration, Instant};

use library_support::for_each_build;
use plimsoll_core::name::natural_cmp;
use plimsoll_engine::rocksdb::Rocksdb;
use plimsoll_engine::{
    Direction, DrainLimits, Engine, Found, InstalledBuild, KvStore, Server, Settings, StartOptions,
    WriteMode,
};

fn limits(limit: Instant, is_stopped: &dyn Fn() -> bool) -> DrainLimits<'_> {
    DrainLimits::new(limit, limit, is_stopped)
}

const ROWS: u64 = 20_000;
const KEY_BYTES: usize = 20;
const VALUE_BYTES: usize = 400;
const ROW_BYTES: u64 = (KEY_BYTES + VALUE_BYTES) as u64;

/// The unlogged load.
const UNLOGGED: WriteMode = WriteMode {
    has_wal: false,
    syncs: false,
};
const LOGGED: WriteMode = WriteMode {
    has_wal: true,
    syncs: false,
};

/// Small enough that the rows make several files in several levels.
fn small() -> Settings {
    settings(&[
        ("write_buffer_size", "1m"),
        ("target_file_size_base", "1m"),
        ("max_bytes_for_level_base", "2m"),
        ("compression", "kNoCompression"),
        ("level0_file_num_compaction_trigger", "4"),
        (
            "block_based_table_factory",
            "{block_size=8192;filter_policy=bloomfilter:10:false;cache_index_and_filter_blocks=true}",
        ),
        ("block_cache_bytes", "64m"),
        ("block_cache_shard_bits", "2"),
        ("block_cache_high_pri_pool_ratio", "0.5"),
    ])
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn start(build: &InstalledBuild, dir: &Path, settings: Settings) -> Box<dyn Server> {
    Rocksdb::new(build.clone())
        .start(&StartOptions::new(dir, settings))
        .unwrap()
}

fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

fn value(number: u64) -> [u8; VALUE_BYTES] {
    std::array::from_fn(|at| (number.wrapping_mul(2_654_435_761) >> (at % 24)) as u8)
}

/// Even numbers from 0, so that there are keys between them that are not there. Written in an order
/// that makes files overlap.
fn load(store: &dyn KvStore, writes: WriteMode) {
    let mut session = store.session(writes).unwrap();
    for number in (0..ROWS).map(|n| n * 7_919 % ROWS) {
        session.put(&key(number * 2), &value(number * 2)).unwrap();
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn found(keys: u64) -> Found {
    Found {
        keys,
        bytes: keys * ROW_BYTES,
    }
}

#[test]
fn rows_are_found_as_they_were_written() {
    for_each_build(
        "rows_are_found_as_they_were_written",
        "rocksdb",
        |build, dir| {
            let server = start(&build, dir, small());
            let store = server.kv().unwrap();
            load(store, LOGGED);
            let mut session = store.session(LOGGED).unwrap();
            let check = |session: &mut dyn plimsoll_engine::KvSession| {
                assert_eq!(session.get(&key(0)).unwrap(), found(1));
                assert_eq!(session.get(&key(2 * ROWS - 2)).unwrap(), found(1));
                assert_eq!(session.get(&key(1)).unwrap(), found(0));
                let keys = [key(4), key(5), key(6), key(2 * ROWS), key(0)].concat();
                assert_eq!(session.get_many(&keys, KEY_BYTES).unwrap(), found(3));
                assert_eq!(session.get_many(&[], KEY_BYTES).unwrap(), found(0));
                for (from, most, direction, keys) in [
                    (0, 10, Direction::Forward, 10),
                    (1, 10, Direction::Forward, 10),
                    (2 * ROWS - 6, 10, Direction::Forward, 3),
                    (2 * ROWS, 10, Direction::Forward, 0),
                    (2 * ROWS - 2, 10, Direction::Backward, 10),
                    // The next key after 3 is 4: then 4, 2 and 0.
                    (3, 10, Direction::Backward, 3),
                    (0, 10, Direction::Backward, 1),
                    (8, 0, Direction::Forward, 0),
                ] {
                    assert_eq!(
                        session.range(&key(from), most, direction).unwrap(),
                        found(keys),
                        "{from} {direction:?}"
                    );
                }
            };
            check(session.as_mut());
            store.flush().unwrap();
            store
                .wait_for_compaction(&limits(soon(), &|| false))
                .unwrap();
            check(session.as_mut());

            let mut expected = 0;
            let rows = store
                .for_each(&mut |found_key, found_value| {
                    assert_eq!(
                        (found_key, found_value),
                        (&key(expected)[..], &value(expected)[..])
                    );
                    expected += 2;
                })
                .unwrap();
            assert_eq!(rows, ROWS);

            // Overwritten values are the new ones, once each.
            session.put(&key(4), b"short").unwrap();
            assert_eq!(session.get(&key(4)).unwrap(), Found { keys: 1, bytes: 25 });
            assert_eq!(store.for_each(&mut |_, _| {}).unwrap(), ROWS);
            drop(session);
            server.stop(Duration::from_secs(10)).unwrap();

            // What was logged is there again; what was not may be lost, and is while nothing was
            // flushed.
            let server = start(&build, dir, small());
            let store = server.kv().unwrap();
            assert_eq!(
                store.session(LOGGED).unwrap().get(&key(4)).unwrap(),
                Found { keys: 1, bytes: 25 }
            );
            store.session(UNLOGGED).unwrap().put(&key(1), b"x").unwrap();
            server.stop(Duration::from_secs(10)).unwrap();
            let log = std::fs::read_to_string(dir.join("LOG")).unwrap();
            assert!(
                log.contains(&format!("RocksDB version: {}", build.version)),
                "{log}"
            );
        },
    );
}

#[test]
fn a_tree_comes_to_rest_and_level_0_can_be_emptied() {
    for_each_build(
        "a_tree_comes_to_rest_and_level_0_can_be_emptied",
        "rocksdb",
        |build, dir| {
            let settings = Settings::from_iter(
                small()
                    .into_iter()
                    .chain([("max_write_buffer_number".to_owned(), "4".to_owned())]),
            );
            let server = start(&build, dir, settings);
            let store = server.kv().unwrap();
            assert_eq!(store.levels().unwrap(), []);
            store.empty_level0(&limits(soon(), &|| false)).unwrap();
            load(store, UNLOGGED);
            // A stop ends the wait without an error, a limit that has passed with one that says
            // why.
            store
                .wait_for_compaction(&limits(soon(), &|| true))
                .unwrap();
            let message = store
                .wait_for_compaction(&limits(Instant::now(), &|| false))
                .unwrap_err()
                .message;
            assert!(
                message.starts_with("wait for compaction: time was over with "),
                "{message}"
            );

            store.flush().unwrap();
            store
                .wait_for_compaction(&limits(soon(), &|| false))
                .unwrap();
            for counter in [
                "rocksdb.num-running-compactions",
                "rocksdb.num-running-flushes",
                "rocksdb.compaction-pending",
            ] {
                assert_eq!(server.counters().unwrap()[counter], 0, "{counter}");
            }
            let mut session = store.session(UNLOGGED).unwrap();
            session.put(&key(0), &value(0)).unwrap();
            store.flush().unwrap();
            store
                .wait_for_compaction(&limits(soon(), &|| false))
                .unwrap();
            let levels = store.levels().unwrap();
            assert!(levels[0].level == 0 && levels[0].files > 0, "{levels:?}");

            store.empty_level0(&limits(soon(), &|| false)).unwrap();
            let levels = store.levels().unwrap();
            assert!(
                !levels.is_empty()
                    && levels
                        .iter()
                        .all(|level| level.level > 0 && level.files > 0),
                "{levels:?}"
            );
            let bytes: u64 = levels.iter().map(|level| level.bytes).sum();
            assert_eq!(bytes, server.database_bytes().unwrap());
            assert!(
                (ROWS * ROW_BYTES..ROWS * ROW_BYTES * 2).contains(&bytes),
                "{bytes}"
            );
            assert_eq!(store.for_each(&mut |_, _| {}).unwrap(), ROWS);
            assert_eq!(
                server.effective_settings().unwrap()["level0_file_num_compaction_trigger"],
                "4"
            );

            let drained = server
                .drain(&[], &DrainLimits::new(Instant::now(), soon(), &|| false))
                .unwrap();
            assert_eq!(
                (
                    drained.len(),
                    drained[0].action.as_str(),
                    drained[0].result.as_str()
                ),
                (1, "wait for compaction", "")
            );
            drop(session);
            server.stop(Duration::from_secs(10)).unwrap();
        },
    );
}

#[test]
fn what_runs_is_read_back() {
    for_each_build("what_runs_is_read_back", "rocksdb", |build, dir| {
        let mut wanted = small();
        wanted.extend(settings(&[
            ("block_cache_low_pri_pool_ratio", "0"),
            ("memtable_batch_lookup_optimization", "false"),
        ]));
        // Newer versions take the name, and have no such option.
        wanted.insert("random_access_max_buffer_size".to_owned(), "1m".to_owned());
        // A stop before the slowdown cannot be: RocksDB corrects it.
        wanted.insert("level0_stop_writes_trigger".to_owned(), "2".to_owned());
        let server = start(&build, dir, wanted);
        let store = server.kv().unwrap();
        let effective = server.effective_settings().unwrap();
        for (name, expected) in [
            ("rocksdb_version", build.version.as_str()),
            ("write_buffer_size", "1048576"),
            ("block_based_table_factory.block_size", "8192"),
            (
                "block_based_table_factory.cache_index_and_filter_blocks",
                "true",
            ),
            ("block_cache", "lru"),
            ("block_cache_bytes", "67108864"),
            ("block_cache_shard_bits", "2"),
            ("block_cache_high_pri_pool_ratio", "0.5"),
            ("verify_checksums", "true"),
            (
                "block_based_table_factory.filter_policy",
                "bloomfilter:10:false",
            ),
            ("level0_stop_writes_trigger", "20"),
        ] {
            assert_eq!(
                effective.get(name).map(String::as_str),
                Some(expected),
                "{name}"
            );
        }
        assert!(
            effective["fast_crc32"].contains("upported"),
            "{effective:?}"
        );
        // What is not there, or no longer, is reported.
        let left_out: Vec<&str> = effective
            .keys()
            .filter_map(|name| name.strip_prefix("not applied: "))
            .collect();
        let expected: &[&str] = match build.version.as_str() {
            "6.29.5" => &[
                "block_cache_low_pri_pool_ratio",
                "memtable_batch_lookup_optimization",
            ],
            "10.10.1" => &[
                "memtable_batch_lookup_optimization",
                "random_access_max_buffer_size",
            ],
            "11.8.1" => &["random_access_max_buffer_size"],
            "7.8.3" | "8.0.0" | "8.9.1" => &["memtable_batch_lookup_optimization"],
            // One that is in the cache beside those that are listed.
            _ => &left_out,
        };
        assert_eq!(left_out, expected);

        load(store, UNLOGGED);
        let text = store.stats_text().unwrap();
        assert!(
            text.contains("** Compaction Stats [default] **")
                && text.contains("Cumulative writes:"),
            "{text}"
        );
        let counters = server.counters().unwrap();
        assert_eq!(counters["rocksdb.block-cache-capacity"], 64 << 20);
        assert!(counters["rocksdb.estimate-num-keys"] > 0);
        server.save_state(dir, "qp1").unwrap();
        for (file, part) in [
            ("qp1.stats.txt", "Cumulative writes:"),
            ("qp1.levelstats.txt", "Level Files"),
            ("qp1.OPTIONS.ini", "[DBOptions]"),
        ] {
            let text = std::fs::read_to_string(dir.join(file)).unwrap();
            assert!(text.contains(part), "{file}: {text}");
        }
        assert!(
            server
                .connect()
                .is_err_and(|error| error.message.starts_with("the engine has no SQL"))
        );
        assert_eq!(server.processes(), Vec::<u32>::new());
        server.stop(Duration::from_secs(10)).unwrap();
    });
}

#[test]
fn caches_and_values_that_a_version_cannot_have_are_errors_with_their_reason() {
    for_each_build(
        "caches_and_values_that_a_version_cannot_have_are_errors_with_their_reason",
        "rocksdb",
        |build, dir| {
            let engine = Rocksdb::new(build.clone());
            let is_at_least = |version: &str| natural_cmp(&build.version, version).is_ge();
            for (number, kind) in ["hyper_clock", "auto_hyper_clock"].into_iter().enumerate() {
                let dir = dir.join(number.to_string());
                std::fs::create_dir(&dir).unwrap();
                let options = [
                    ("block_cache", kind),
                    ("block_cache_bytes", "32m"),
                    ("block_based_table_factory.block_size", "16k"),
                ];
                match engine.start(&StartOptions::new(&dir, settings(&options))) {
                    Ok(server) => {
                        let effective = server.effective_settings().unwrap();
                        assert_eq!(
                            (
                                effective["block_cache"].as_str(),
                                effective["block_cache_bytes"].as_str()
                            ),
                            (kind, "33554432")
                        );
                        assert_eq!(effective["block_based_table_factory.block_size"], "16384");
                        assert!(is_at_least("8.1"));
                        server.stop(Duration::from_secs(10)).unwrap();
                    }
                    Err(error) => {
                        assert!(
                            !is_at_least("8.9.1")
                                && error
                                    .message
                                    .contains("8.9.1 and newer have it, 8.0.0 has not"),
                            "{error}"
                        );
                    }
                }
            }
            for (name, value, part) in [
                (
                    "block_based_table_factory.index_type",
                    "kFoo",
                    "set block_based_table_factory.index_type = kFoo: ",
                ),
                (
                    "compression",
                    "kFoo",
                    "setting compression cannot be \"kFoo\": write one of kNoCompression, ",
                ),
                (
                    "writ_buffer_size",
                    "1",
                    "did you mean \"write_buffer_size\"?",
                ),
            ] {
                let error = engine
                    .start(&StartOptions::new(dir, settings(&[(name, value)])))
                    .err()
                    .unwrap();
                assert!(
                    error.message.contains(part)
                        && !error.message.contains("the versions that take this name"),
                    "{error}"
                );
            }
        },
    );
}

#[test]
fn a_database_of_somebody_else_is_left_alone() {
    for_each_build(
        "a_database_of_somebody_else_is_left_alone",
        "rocksdb",
        |build, dir| {
            std::fs::create_dir(dir.join("db")).unwrap();
            std::fs::write(dir.join("db/CURRENT"), "MANIFEST-000005\n").unwrap();
            let error = Rocksdb::new(build)
                .start(&StartOptions::new(dir, small()))
                .err()
                .unwrap();
            assert!(
                error
                    .message
                    .contains("is a database that this program did not make"),
                "{error}"
            );
            assert_eq!(std::fs::read_dir(dir.join("db")).unwrap().count(), 1);
        },
    );
}

#[test]
fn a_second_version_in_one_process_is_refused() {
    for_each_build(
        "a_second_version_in_one_process_is_refused",
        "rocksdb",
        |build, dir| {
            start(&build, &dir.join(""), small())
                .stop(Duration::from_secs(10))
                .unwrap();
            let other = builds_support::in_cache()
                .into_iter()
                .find(|other| other.engine == build.engine && other.name != build.name);
            let Some(other) = other else { return };
            let error = Rocksdb::new(other)
                .start(&StartOptions::new(dir, small()))
                .err()
                .unwrap();
            assert!(
                error
                    .message
                    .contains("two versions of RocksDB disturb each other"),
                "{error}"
            );
        },
    );
}

/// Every operation gives back what it took: memory stays where it was after the first rounds.
#[test]
fn operations_leave_no_memory_behind() {
    for_each_build(
        "operations_leave_no_memory_behind",
        "rocksdb",
        |build, dir| {
            let server = start(&build, dir, small());
            let store = server.kv().unwrap();
            load(store, UNLOGGED);
            store.flush().unwrap();
            store.empty_level0(&limits(soon(), &|| false)).unwrap();
            let mut session = store.session(UNLOGGED).unwrap();
            let keys: Vec<u8> = (0..10).flat_map(|n| key(n * 100)).collect();
            let mut round = || {
                for number in 0..20_000 {
                    session.get(&key(number)).unwrap();
                    session.get_many(&keys, KEY_BYTES).unwrap();
                }
                for number in 0..5_000 {
                    session.range(&key(number), 10, Direction::Forward).unwrap();
                    server.counters().unwrap();
                }
            };
            round();
            let before = resident_bytes();
            (0..3).for_each(|_| round());
            let grown = resident_bytes().saturating_sub(before);
            // A leak of 16 bytes per operation would be twice as much.
            assert!(grown < 4 << 20, "{grown} bytes");
            drop(session);
            server.stop(Duration::from_secs(10)).unwrap();
        },
    );
}

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
