//! The way in: a path becomes campaigns.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::{Plan, Verify};
use plimsoll_core::witness::Limits;
use plimsoll_store::header::{CampaignHeader, FORMAT};
use plimsoll_store::imported::{Family, Imported, LeftOut};
use plimsoll_store::{CampaignDir, Store, StoreError, utc_now};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::rocksdb::EXPORTED;
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;
use crate::text::ReadError;
use crate::tree::contents::{self, Contents};
use crate::tree::unit::{Unit, units};
use crate::tree::walk::{self, walk};

/// Raised whenever a reader or a formula changes what is kept: campaigns of an older one are then
/// made again from their files.
const READERS: u32 = 3;

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The build, cell or folder that relative tables divide by, instead of the oldest version.
    pub base: Option<String>,
    /// The device that holds the databases, as iostat names it or a part of its name.
    pub device: Option<String>,
}

/// Why nothing was imported. Fits after "failed to ".
#[derive(Debug, Error)]
pub enum ImportError {
    /// The path does not lead anywhere.
    #[error("import {}: {source}; check the path", path.display())]
    Path {
        path: PathBuf,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The base's name fits nothing, or several cells.
    #[error("choose the base: \"{name}\" {what}; cells: {known}")]
    Base {
        /// What was asked for.
        name: String,
        /// What is wrong with it.
        what: &'static str,
        /// The cells there are.
        known: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came of a path.
#[derive(Debug, Default)]
pub struct Summary {
    /// The campaigns.
    pub units: Vec<ImportedUnit>,
    /// What could not be read, with paths below the one that was given.
    pub left_out: Vec<LeftOut>,
}

/// A campaign that was made, or was there already.
#[derive(Debug)]
pub struct ImportedUnit {
    /// Its folder and id.
    pub campaign: CampaignDir,
    /// What it holds.
    pub imported: Imported,
    /// Whether it was there already, with the same files.
    pub is_known: bool,
}

/// A file of a unit.
pub(super) struct File {
    /// Below the unit's folder.
    pub path: String,
    folder: PathBuf,
    /// What its name tells, when it follows the sysbench scripts' scheme.
    pub test: Option<TestFile>,
    pub contents: Result<Contents, ReadError>,
}

impl File {
    /// The last part of its path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The name without what is behind its last dot.
    pub fn stem(&self) -> String {
        self.name()
            .rsplit_once('.')
            .map_or(self.name(), |(stem, _)| stem)
            .to_owned()
    }

    /// The folders above it, inner first, those above the unit included.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.folder
            .ancestors()
            .filter_map(|folder| folder.file_name()?.to_str())
    }

    /// The cell that its folder names; a folder that follows no scheme stands for itself.
    pub fn cell_name(&self) -> CellName {
        let folder = self.folders().next().unwrap_or_default();
        CellName::of_sysbench(folder)
            .or_else(|| CellName::of_insert_benchmark(folder))
            .unwrap_or_else(|| CellName::verbatim(folder))
    }
}

/// Imports a file or a tree. Files that cannot be read are listed and hinder nothing.
pub fn import(store: &Store, path: &Path, options: &Options) -> Result<Summary, ImportError> {
    let root = fs::canonicalize(path).map_err(|source| ImportError::Path {
        path: path.to_owned(),
        source,
    })?;
    let found = walk(&root);
    let mut summary = Summary {
        units: Vec::new(),
        left_out: found.left_out,
    };
    for unit in units(found.files, &root) {
        import_unit(store, &unit, &root, options, &mut summary)?;
    }
    summary.left_out.sort();
    Ok(summary)
}

impl Summary {
    /// Lists what a unit left out by paths below the one that was given.
    fn leave_out(&mut self, unit: &Unit, root: &Path, left_out: &[LeftOut]) {
        self.left_out.extend(left_out.iter().map(|out| {
            let path = unit.dir.join(&out.path);
            let below = path.strip_prefix(root).unwrap_or(&path);
            LeftOut {
                path: below.to_string_lossy().into_owned(),
                reason: out.reason.clone(),
            }
        }));
    }

    fn add(&mut self, unit: &Unit, root: &Path, made: ImportedUnit) {
        self.leave_out(unit, root, &made.imported.left_out);
        self.units.push(made);
    }
}

fn import_unit(
    store: &Store,
    unit: &Unit,
    root: &Path,
    options: &Options,
    summary: &mut Summary,
) -> Result<(), ImportError> {
    let hashes = parallel(&unit.files, |file| Some(hash(&walk::read_file(file).ok()?)));
    let fingerprint = fingerprint(unit, &hashes);
    let made_with = format!(
        "readers {READERS}\nset {}\nbase {}\ndevice {}\n",
        unit.set,
        options.base.as_deref().unwrap_or("-"),
        options.device.as_deref().unwrap_or("-")
    );
    let known = known_campaigns(store, &fingerprint, &made_with)?;
    if !known.is_empty() {
        for (campaign, imported) in known {
            let known = ImportedUnit {
                campaign,
                imported,
                is_known: true,
            };
            summary.add(unit, root, known);
        }
        return Ok(());
    }
    let files = read_files(unit);
    let unread = unread(&files);
    let passed_over = count_passed_over(&files);
    let made = super::assemble(&files, options);
    if made.is_empty() {
        summary.leave_out(unit, root, &unread);
        return Ok(());
    }
    let several = made.len() > 1;
    for (index, mut imported) in made.into_iter().enumerate() {
        imported.source = source(unit);
        imported.fingerprint.clone_from(&fingerprint);
        imported.made_with.clone_from(&made_with);
        imported.base = base(&imported, options)?;
        // What no family could read is listed once.
        if index == 0 {
            imported.left_out.extend(unread.iter().cloned());
            imported.files_passed_over = passed_over;
            imported.files_read = files.len() as u64 - passed_over - unread.len() as u64;
        }
        imported.left_out.sort();
        let id = id(&fingerprint, several.then_some(imported.family));
        let campaign = store.replace_imported(&header(&id, unit, &imported), &imported)?;
        let new = ImportedUnit {
            campaign,
            imported,
            is_known: false,
        };
        summary.add(unit, root, new);
    }
    Ok(())
}

/// Reads all files. A table without names of columns needs one next to it that has them.
fn read_files(unit: &Unit) -> Vec<File> {
    let mut files: Vec<File> = parallel(&unit.files, |file| read_file(unit, file));
    let has_names = files.iter().any(|file| {
        matches!(
            file.contents,
            Ok(Contents::SysbenchRates(_)
                | Contents::RocksdbRows(_)
                | Contents::RocksdbTable(_)
                | Contents::PerfJoin(_))
        )
    });
    for file in files
        .iter_mut()
        .filter(|file| !has_names && file.contents == Ok(Contents::Derived))
    {
        file.contents = Err(ReadError::new(
            1,
            "its columns have no names, and no table next to it has them",
        ));
    }
    files
}

fn unread(files: &[File]) -> Vec<LeftOut> {
    let left_out = |file: &File| {
        Some(LeftOut {
            path: file.path.clone(),
            reason: file.contents.as_ref().err()?.to_string(),
        })
    };
    files.iter().filter_map(left_out).collect()
}

fn count_passed_over(files: &[File]) -> u64 {
    let is_passed_over = |file: &&File| {
        matches!(
            file.contents,
            Ok(Contents::PassedOver(_) | Contents::Derived)
        )
    };
    files.iter().filter(is_passed_over).count() as u64
}

/// The campaigns of this very tree, when these readers made them with the same options.
fn known_campaigns(
    store: &Store,
    fingerprint: &str,
    made_with: &str,
) -> Result<Vec<(CampaignDir, Imported)>, ImportError> {
    let start = id(fingerprint, None);
    let mut known = Vec::new();
    for path in store.campaigns()? {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if !name
            .strip_prefix(&start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        {
            continue;
        }
        let campaign = CampaignDir::open(path)?;
        match campaign.imported()? {
            Some(imported)
                if imported.fingerprint == fingerprint && imported.made_with == made_with =>
            {
                known.push((campaign, imported))
            }
            _ => return Ok(Vec::new()),
        }
    }
    Ok(known)
}

fn id(fingerprint: &str, family: Option<Family>) -> String {
    let family = match family {
        None => "",
        Some(Family::Sysbench) => "-sysbench",
        Some(Family::InsertBenchmark) => "-insert-benchmark",
        Some(Family::Rocksdb) => "-rocksdb",
        Some(Family::Other) => "-other",
    };
    format!("imported-{}{family}", &fingerprint[..12])
}

/// The last two folders and the set: `nov25.sb.mysql/dop1`, `nov23.u.db_bench.8x/u5 byrx.8x`.
fn source(unit: &Unit) -> String {
    let mut parts: Vec<&str> = unit
        .dir
        .components()
        .rev()
        .filter_map(|part| part.as_os_str().to_str())
        .filter(|part| *part != "/")
        .take(2)
        .collect();
    parts.reverse();
    let set = if unit.set.is_empty() {
        String::new()
    } else {
        format!(" {}", unit.set)
    };
    format!("{}{set}", parts.join("/"))
}

fn header(id: &str, unit: &Unit, imported: &Imported) -> CampaignHeader {
    let name: String = source(unit)
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    let is_own = imported.notes.iter().any(|note| note.starts_with(EXPORTED));
    let whose = if is_own {
        "exported by Plimsoll"
    } else {
        "of another tool"
    };
    let description = format!(
        "{} results {whose}, imported: {}",
        imported.family.title(),
        source(unit)
    );
    CampaignHeader {
        format: FORMAT,
        id: id.to_owned(),
        created: utc_now(),
        plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
        methodology_version: METHODOLOGY_VERSION,
        seed: 0,
        plan_text: String::new(),
        plan: Plan {
            name,
            description,
            comparable: true,
            cells: Vec::new(),
            base: 0,
            blocks: 1,
            verify: Verify::Counters,
            seed: None,
            watchdog_ns: 0,
            idle_cpus: None,
            limits: Limits::default(),
            report: Vec::new(),
            verdicts: None,
            split: None,
        },
        cells: Vec::new(),
        schedule: Vec::new(),
        data_dir: String::new(),
        confirm: None,
        fleet: None,
        client_hosts: None,
    }
}

/// The oldest version, what a table of ratios alone divides by, or the cell that was asked for by label, build, text of its build before the
/// first `_`, or folder.
fn base(imported: &Imported, options: &Options) -> Result<usize, ImportError> {
    let Some(name) = &options.base else {
        return Ok(imported.base);
    };
    let name = name
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name);
    let find = |rule: &dyn Fn(&plimsoll_store::imported::ImportedCell) -> bool| -> Vec<usize> {
        imported
            .cells
            .iter()
            .enumerate()
            .filter(|(_, cell)| rule(cell))
            .map(|(i, _)| i)
            .collect()
    };
    let rules: [&dyn Fn(&plimsoll_store::imported::ImportedCell) -> bool; 3] = [
        &|cell| cell.label == name || cell.original == name,
        &|cell| cell.build == name,
        &|cell| {
            cell.build
                .split_once('_')
                .is_some_and(|(stem, _)| stem == name)
        },
    ];
    let found = rules
        .into_iter()
        .map(find)
        .find(|found| !found.is_empty())
        .unwrap_or_default();
    let error = |what| {
        let labels: Vec<&str> = imported
            .cells
            .iter()
            .map(|cell| cell.label.as_str())
            .collect();
        ImportError::Base {
            name: name.to_owned(),
            what,
            known: labels.join(", "),
        }
    };
    match found[..] {
        [one] => Ok(one),
        [] => Err(error("is none of the results")),
        _ => Err(error("stands for several")),
    }
}

fn read_file(unit: &Unit, file: &Path) -> File {
    let path = file
        .strip_prefix(&unit.dir)
        .unwrap_or(file)
        .to_string_lossy()
        .into_owned();
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let contents = match walk::read_file(file) {
        Ok(bytes) => contents::read(&name, &bytes),
        Err(error) => Err(ReadError::new(1, format!("it cannot be read: {error}"))),
    };
    File {
        path,
        folder: file.parent().unwrap_or(file).to_owned(),
        test: TestFile::of(&name),
        contents,
    }
}

fn hash(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Over the files' paths below the unit's folder and their contents.
fn fingerprint(unit: &Unit, hashes: &[Option<[u8; 32]>]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(unit.set.as_bytes());
    for (file, hash) in unit.files.iter().zip(hashes) {
        hasher.update(
            file.strip_prefix(&unit.dir)
                .unwrap_or(file)
                .to_string_lossy()
                .as_bytes(),
        );
        hasher.update([0]);
        hasher.update(hash.unwrap_or_default());
    }
    let bytes: [u8; 32] = hasher.finalize().into();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The answers for all items in their order, by as many threads as there are CPUs.
fn parallel<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(items.len().max(1));
    let mut answers: Vec<(usize, R)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let Some((index, item)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
            {
                done.push((index, of(item)));
            }
            done
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("readers do not panic"))
            .collect()
    });
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
