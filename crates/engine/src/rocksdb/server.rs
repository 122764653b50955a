//! An open database as a server: opens sessions, answers for the whole, and is closed at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::library::{Database, Library, ReadOptions};
use super::options::Checked;
use super::readback::{LOG, newest_option_file, parse_log, parse_option_file};
use super::session::RocksdbSession;
use super::wait;
use crate::{
    DrainAction, DrainLimits, EngineError, KvSession, KvStore, Level, Server, Sessions, Settings,
    StartOptions, WriteMode, directory_bytes,
};

/// The database's folder in the data directory.
const FOLDER: &str = "db";

/// Beside it: says that the database is ours.
const MARKER: &str = ".plimsoll-rocksdb";

/// What is read of a log: its beginning tells how the database was opened.
const LOG_HEAD_BYTES: usize = 1 << 20;

/// Properties that are numbers and that every version from 6.29.5 on has. All are levels but the
/// ids: the difference over a step is a change.
const NUMBERS: &[&str] = &[
    "rocksdb.num-immutable-mem-table",
    "rocksdb.mem-table-flush-pending",
    "rocksdb.compaction-pending",
    "rocksdb.background-errors",
    "rocksdb.cur-size-active-mem-table",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.num-entries-active-mem-table",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-table-readers-mem",
    "rocksdb.num-live-versions",
    "rocksdb.estimate-live-data-size",
    "rocksdb.total-sst-files-size",
    "rocksdb.live-sst-files-size",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.is-write-stopped",
    "rocksdb.block-cache-capacity",
    "rocksdb.block-cache-usage",
    "rocksdb.block-cache-pinned-usage",
    "rocksdb.num-blob-files",
    "rocksdb.live-blob-file-size",
];

pub(super) struct RocksdbServer {
    database: Arc<Database>,
    dir: PathBuf,
    log_dir: PathBuf,
    left_out: Settings,
    checked: Checked,
}

impl RocksdbServer {
    /// Opens the database of a data directory, or makes and marks it; refuses one that is not ours.
    pub(super) fn start(
        library: &'static Library,
        checked: Checked,
        start: &StartOptions,
    ) -> Result<Self, EngineError> {
        let dir = start.data_dir.join(FOLDER);
        claim(&start.data_dir, &dir)?;
        let (options, left_out) = checked.options(library)?;
        let database = Database::open(library, &dir, &options)
            .map_err(|status| status.of_store(&format!("open the database {}", dir.display())))?;
        Ok(Self {
            database: Arc::new(database),
            dir,
            log_dir: start.log_dir.clone(),
            left_out,
            checked,
        })
    }
}

/// Makes the database's folder and marks it as ours, or checks that it is.
fn claim(data_dir: &Path, dir: &Path) -> Result<(), EngineError> {
    let cannot = |error: std::io::Error| {
        EngineError::new(format!(
            "make {}: {error}; check the data directory",
            dir.display()
        ))
    };
    let marker = data_dir.join(MARKER);
    if marker.exists() {
        return fs::create_dir_all(dir).map_err(cannot);
    }
    if dir.exists() && directory_bytes(dir).map_err(cannot)? > 0 {
        return Err(EngineError::new(format!(
            "{} is a database that this program did not make: give it an empty data directory",
            dir.display()
        )));
    }
    fs::create_dir_all(dir).map_err(cannot)?;
    fs::write(
        &marker,
        "The database beside this file was made by Plimsoll.\n",
    )
    .map_err(cannot)
}

/// The newest option file of a database as settings, and what its log says of how it was opened.
pub(super) fn read_back(dir: &Path) -> Result<Settings, EngineError> {
    let cannot = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| {
            EngineError::new(format!("read {path}: {error}; check the data directory"))
        }
    };
    let file = newest_option_file(dir)?;
    let mut settings = parse_option_file(&fs::read_to_string(&file).map_err(cannot(&file))?);
    let log = dir.join(LOG);
    let log_text = fs::read(&log).map_err(cannot(&log))?;
    settings.extend(parse_log(&String::from_utf8_lossy(
        &log_text[..log_text.len().min(LOG_HEAD_BYTES)],
    )));
    Ok(settings)
}

impl Server for RocksdbServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Kv(self)
    }

    /// From the database's own option file and log: options by the names of option strings,
    /// `rocksdb_version`, `fast_crc32`, the block cache; `verify_checksums` as reads have it, and
    /// `not applied: NAME` with the reason for each option that this version does not have.
    fn effective_settings(&self) -> Result<Settings, EngineError> {
        let mut settings = read_back(&self.dir)?;
        settings.insert(
            "verify_checksums".to_owned(),
            self.checked.verifies_checksums.to_string(),
        );
        self.checked.complete(&mut settings);
        settings.extend(self.left_out.clone());
        Ok(settings)
    }

    /// The properties that are numbers, by RocksDB's names. All are levels, so the difference over
    /// a step is their growth.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        let read = |name: &&str| {
            let number = self.database.number(name)?;
            Some((
                (*name).to_owned(),
                i64::try_from(number).unwrap_or(i64::MAX),
            ))
        };
        Ok(NUMBERS.iter().filter_map(read).collect())
    }

    /// Writes `MOMENT.stats.txt`, `MOMENT.levelstats.txt` and `MOMENT.OPTIONS.ini`.
    fn save_state(&self, dir: &Path, moment: &str) -> Result<(), EngineError> {
        let cannot = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| EngineError::new(format!("write {path}: {error}"))
        };
        for (property, ending) in [
            ("rocksdb.stats", "stats.txt"),
            ("rocksdb.levelstats", "levelstats.txt"),
        ] {
            let path = dir.join(format!("{moment}.{ending}"));
            fs::write(&path, self.text(property)?).map_err(cannot(&path))?;
        }
        let path = dir.join(format!("{moment}.OPTIONS.ini"));
        fs::copy(newest_option_file(&self.dir)?, &path)
            .map(drop)
            .map_err(cannot(&path))
    }

    /// Waits until no flush and no compaction is running or due. Memtables are left alone.
    fn drain(
        &self,
        _tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        let start = Instant::now();
        let result = match wait::until_at_rest(&self.database, limits)? {
            wait::Ended::AtRest => String::new(),
            wait::Ended::Stopped => "left: the trial is to stop".to_owned(),
            wait::Ended::Late(work) => format!("left: time was over with {work}"),
        };
        Ok(vec![DrainAction {
            action: "wait for compaction".to_owned(),
            seconds: start.elapsed().as_secs_f64(),
            result,
        }])
    }

    /// Table files and blob files that are part of the current version.
    fn database_bytes(&self) -> Result<u64, EngineError> {
        let number = |name| self.database.number(name);
        let tables = number("rocksdb.live-sst-files-size").ok_or_else(|| {
            EngineError::new(
                "ask for rocksdb.live-sst-files-size: this RocksDB does not tell; take a newer \
                build",
            )
        })?;
        Ok(tables + number("rocksdb.live-blob-file-size").unwrap_or(0))
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Closes the database as it is, memtables and all, and keeps its logs. RocksDB ends its
    /// compactions first, and nothing can hurry that, so the timeout has no effect.
    fn stop(self: Box<Self>, _timeout: Duration) -> Result<(), EngineError> {
        let Self {
            database,
            dir,
            log_dir,
            ..
        } = *self;
        let database = Arc::into_inner(database).ok_or_else(|| {
            EngineError::new(format!(
                "close {}: a session is still open; end the workers first",
                dir.display()
            ))
        })?;
        drop(database);
        keep_logs(&dir, &log_dir).map_err(|error| {
            EngineError::new(format!("copy the logs of {}: {error}", dir.display()))
        })
    }
}

/// `LOG` and, of earlier opens, `LOG.old.*`.
fn keep_logs(dir: &Path, log_dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name
            .to_str()
            .is_some_and(|name| name == LOG || name.starts_with("LOG.old."))
        {
            fs::copy(entry.path(), log_dir.join(name))?;
        }
    }
    Ok(())
}

impl RocksdbServer {
    fn text(&self, property: &str) -> Result<String, EngineError> {
        self.database.property(property).ok_or_else(|| {
            EngineError::new(format!("ask for {property}: this RocksDB does not tell"))
        })
    }
}

impl KvStore for RocksdbServer {
    fn session(&self, writes: WriteMode) -> Result<Box<dyn KvSession>, EngineError> {
        Ok(Box::new(RocksdbSession::new(
            self.database.clone(),
            writes,
            self.checked.verifies_checksums,
        )))
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.database
            .flush()
            .map_err(|status| status.of_store("flush the memtable"))
    }

    fn wait_for_compaction(&self, limits: &DrainLimits<'_>) -> Result<(), EngineError> {
        wait::until_at_rest(&self.database, limits)?.in_time()
    }

    fn empty_level0(&self, limits: &DrainLimits<'_>) -> Result<(), EngineError> {
        wait::until_level0_is_empty(&self.database, &self.dir, limits)?.in_time()
    }

    fn levels(&self) -> Result<Vec<Level>, EngineError> {
        let mut levels: BTreeMap<u32, Level> = BTreeMap::new();
        for (level, bytes) in self.database.table_files() {
            let entry = levels.entry(level).or_insert(Level {
                level,
                files: 0,
                bytes: 0,
            });
            entry.files += 1;
            entry.bytes += bytes;
        }
        Ok(levels.into_values().collect())
    }

    fn stats_text(&self) -> Result<String, EngineError> {
        self.text("rocksdb.stats")
    }

    /// Reads past the block cache: what a check reads is not what the next step should find there.
    fn for_each(&self, row: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64, EngineError> {
        let reads = ReadOptions::new(
            self.database.library(),
            self.checked.verifies_checksums,
            false,
        );
        let mut cursor = self.database.iterator(&reads);
        let mut rows = 0;
        cursor.seek_to_first();
        while let Some((key, value)) = cursor.row() {
            row(key, value);
            rows += 1;
            cursor.next();
        }
        cursor
            .status()
            .map_err(|status| status.of_store("read all keys"))?;
        Ok(rows)
    }
}
