//! A folder of campaigns.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use plimsoll_core::name::natural_cmp;

use crate::StoreError;
use crate::campaign::folder::{CampaignDir, HEADER_FILE, TRIALS_FOLDER};
use crate::campaign::header::CampaignHeader;
use crate::campaign::imported::{IMPORTED_FILE, Imported};
use crate::files::durable::{create_folders, sync_folder, temporary_name, write_json_atomically};

/// How ids begin.
const STAMP: &str = "%Y%m%dT%H%M%SZ";

/// Ids that an error lists.
const LISTED_IDS: usize = 5;

/// The folder that `--store` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    dir: PathBuf,
}

/// A campaign without its trials: [`CampaignDir::load`] reads those.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignSummary {
    /// Its folder and header.
    pub campaign: CampaignDir,
    /// Whether another tool measured it.
    pub is_imported: bool,
}

impl Store {
    /// The store in `dir`, which need not exist before the first campaign.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folders of all campaigns, oldest first by their id. None when the store does not exist.
    pub fn campaigns(&self) -> Result<Vec<PathBuf>, StoreError> {
        Ok(self
            .ids()?
            .into_iter()
            .map(|id| self.dir.join(id))
            .collect())
    }

    /// What `campaign.json` says of each campaign, oldest first by their id. No event is read.
    /// Campaigns whose header cannot be read are left out.
    pub fn summaries(&self) -> Result<Vec<CampaignSummary>, StoreError> {
        let open = |path: PathBuf| {
            let is_imported = path.join(IMPORTED_FILE).is_file();
            let campaign = CampaignDir::open(path).ok()?;
            Some(CampaignSummary {
                campaign,
                is_imported,
            })
        };
        Ok(self.campaigns()?.into_iter().filter_map(open).collect())
    }

    /// The campaign of that id, unique beginning of an id, or path; the newest for `None`.
    pub fn find(&self, campaign: Option<&str>) -> Result<CampaignDir, StoreError> {
        let ids = self.ids()?;
        let newest = |ids: &[String]| ids.iter().rev().take(LISTED_IDS).cloned().collect();
        let not_found = || StoreError::NoCampaign {
            store: self.dir.clone(),
            wanted: campaign.map(str::to_owned),
            newest: newest(&ids),
        };
        let Some(wanted) = campaign else {
            let newest = ids
                .iter()
                .max_by_key(|id| (self.made_at(id), ids.iter().position(|other| other == *id)));
            return CampaignDir::open(self.dir.join(newest.ok_or_else(not_found)?));
        };
        if wanted.is_empty() {
            return Err(not_found());
        }
        if ids.iter().any(|id| id == wanted) {
            return CampaignDir::open(self.dir.join(wanted));
        }
        if is_campaign(Path::new(wanted)) {
            return CampaignDir::open(wanted);
        }
        let fitting: Vec<String> = ids
            .iter()
            .filter(|id| id.starts_with(wanted))
            .cloned()
            .collect();
        match &fitting[..] {
            [] => Err(not_found()),
            [id] => CampaignDir::open(self.dir.join(id)),
            several => Err(StoreError::Ambiguous {
                store: self.dir.clone(),
                wanted: wanted.to_owned(),
                ids: newest(several),
            }),
        }
    }

    /// Makes the folder of a campaign with its `campaign.json`: all of it appears at once, or
    /// nothing does. An id that is taken is refused.
    pub fn create(&self, header: &CampaignHeader) -> Result<CampaignDir, StoreError> {
        self.create_with(header, |_| Ok(()))
    }

    /// Makes the folder of an imported campaign, as [`Store::create`] does, with its
    /// `imported.json`.
    pub fn create_imported(
        &self,
        header: &CampaignHeader,
        imported: &Imported,
    ) -> Result<CampaignDir, StoreError> {
        self.create_with(header, |folder| {
            write_json_atomically(folder.join(IMPORTED_FILE), imported)
        })
    }

    /// The same in place of the campaign with that id, where there is one that was imported, too.
    pub fn replace_imported(
        &self,
        header: &CampaignHeader,
        imported: &Imported,
    ) -> Result<CampaignDir, StoreError> {
        let path = self.dir.join(&header.id);
        if !is_campaign(&path) || CampaignDir::open(&path)?.imported()?.is_none() {
            return self.create_imported(header, imported);
        }
        write_json_atomically(path.join(IMPORTED_FILE), imported)?;
        write_json_atomically(path.join(HEADER_FILE), header)?;
        Ok(CampaignDir {
            path,
            header: header.clone(),
        })
    }

    fn create_with(
        &self,
        header: &CampaignHeader,
        fill: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<CampaignDir, StoreError> {
        let id = header.id.as_str();
        if id.is_empty() || id.starts_with('.') || id.contains(['/', '\0']) {
            return Err(StoreError::BadId {
                id: id.to_owned(),
                store: self.dir.clone(),
            });
        }
        let path = self.dir.join(id);
        create_folders(&self.dir)?;
        let temporary = self.dir.join(temporary_name(&path));
        let created = fs::create_dir(&temporary)
            .map_err(StoreError::io("create", &temporary))
            .and_then(|()| {
                fs::create_dir(temporary.join(TRIALS_FOLDER))
                    .map_err(StoreError::io("create", &temporary))
            })
            .and_then(|()| fill(&temporary))
            .and_then(|()| write_json_atomically(temporary.join(HEADER_FILE), header))
            .and_then(|()| rename_to_new(&temporary, &path))
            .and_then(|()| sync_folder(&self.dir));
        if let Err(error) = created {
            // What cannot be removed starts with a dot and is not a campaign.
            let _ = fs::remove_dir_all(&temporary);
            return Err(error);
        }
        Ok(CampaignDir {
            path,
            header: header.clone(),
        })
    }

    /// An id that is free now: `<UTC stamp>-<name>`, with `-2`, `-3`, ... behind it where that is
    /// taken. It comes behind all ids that are there: if the clock was set back, the stamp is a
    /// second later than the latest.
    pub fn new_id(&self, name: &str) -> String {
        let stamp = self.new_stamp(Timestamp::now());
        self.free_id(format!("{stamp}-{name}"))
    }

    fn new_stamp(&self, now: Timestamp) -> String {
        const SECOND: SignedDuration = SignedDuration::from_secs(1);
        let text = |at: Timestamp| at.strftime(STAMP).to_string();
        let ids = self.ids().unwrap_or_default();
        let latest = ids.iter().filter_map(|id| stamp_of(id)).max();
        match latest.filter(|latest| *latest > text(now).as_str()) {
            None => text(now),
            Some(latest) => {
                let at = DateTime::strptime(STAMP, latest)
                    .and_then(|at| at.to_zoned(TimeZone::UTC))
                    .and_then(|at| at.timestamp().checked_add(SECOND));
                text(at.unwrap_or(now))
            }
        }
    }

    fn free_id(&self, id: String) -> String {
        let is_free = |id: &String| !self.dir.join(id).exists();
        if is_free(&id) {
            return id;
        }
        (2u64..)
            .map(|n| format!("{id}-{n}"))
            .find(is_free)
            .expect("a folder holds fewer than 2^64 campaigns")
    }

    /// The stamp that an id begins with. Ids of imported campaigns have none: there `campaign.json`
    /// tells. An unreadable one is the oldest.
    fn made_at(&self, id: &str) -> String {
        match stamp_of(id) {
            Some(stamp) => stamp.to_owned(),
            None => CampaignDir::open(self.dir.join(id))
                .map(|dir| dir.header.created.replace(['-', ':'], ""))
                .unwrap_or_default(),
        }
    }

    fn ids(&self) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(StoreError::io("read", &self.dir))?,
        };
        let mut ids = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::io("read", &self.dir))?;
            // A name with a dot in front is an unfinished folder, or what a killed process left
            // of one.
            match entry.file_name().into_string() {
                Ok(name) if !name.starts_with('.') && is_campaign(&entry.path()) => ids.push(name),
                _ => {}
            }
        }
        ids.sort_by(|a, b| natural_cmp(a, b));
        Ok(ids)
    }
}

/// The time now, RFC 3339 in UTC to the second, as [`CampaignHeader::created`] has it.
pub fn utc_now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The stamp that an id begins with.
fn stamp_of(id: &str) -> Option<&str> {
    let shape = |c: char| if c.is_ascii_digit() { '0' } else { c };
    let (stamp, _) = id.split_once('-')?;
    stamp
        .chars()
        .map(shape)
        .eq("00000000T000000Z".chars())
        .then_some(stamp)
}

fn is_campaign(path: &Path) -> bool {
    path.join(HEADER_FILE).is_file()
}

/// A campaign's folder is never empty, so that of two processes that rename at once the second
/// fails.
fn rename_to_new(from: &Path, to: &Path) -> Result<(), StoreError> {
    let exists = || StoreError::Exists {
        path: to.to_owned(),
    };
    if to.symlink_metadata().is_ok() {
        return Err(exists());
    }
    fs::rename(from, to).map_err(|error| match error.kind() {
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            exists()
        }
        _ => StoreError::io("create", to)(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_the_time_and_never_collide() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let id = store.new_id("quick");
        let (stamp, name) = id.split_once('-').unwrap();
        assert_eq!(
            (stamp.len(), &stamp[8..9], &stamp[15..], name),
            (16, "T", "Z", "quick")
        );
        for expected in ["x", "x-2", "x-3"] {
            let id = store.free_id("x".to_owned());
            assert_eq!(id, expected);
            fs::create_dir(dir.path().join(id)).unwrap();
        }
    }

    #[test]
    fn ids_go_on_when_the_clock_is_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path());
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        assert_eq!(store.new_stamp(now), "20260301T120000Z");
        for (there, stamp) in [
            ("20260301T115959Z-a", "20260301T120000Z"),
            ("imported-b", "20260301T120000Z"),
            ("20260301T235959Z-c", "20260302T000000Z"),
        ] {
            let folder = dir.path().join(there);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(HEADER_FILE), "{}").unwrap();
            assert_eq!(store.new_stamp(now), stamp, "{there}");
        }
    }

    #[test]
    fn the_time_is_rfc_3339_in_utc() {
        let before = Timestamp::now().as_second();
        let now: Timestamp = utc_now().parse().unwrap();
        assert!((before..=Timestamp::now().as_second()).contains(&now.as_second()));
    }
}
