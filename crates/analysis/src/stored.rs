//! The campaigns of a store that others are compared with. Each is loaded when it is asked for.

use std::cell::OnceCell;

use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignDir, CampaignRecord, Store};

/// How many of the newest campaigns are looked at.
const NEWEST: usize = 20;

/// Campaigns of this store. They show how far starts of this machine lie apart, and what was
/// measured before.
#[derive(Debug, Default)]
pub struct Stored<'a> {
    loaded: &'a [CampaignRecord],
    folders: Vec<Folder>,
}

#[derive(Debug)]
struct Folder {
    campaign: CampaignDir,
    /// `None` for one that cannot be read.
    record: OnceCell<Option<CampaignRecord>>,
}

impl<'a> Stored<'a> {
    /// The newest native campaigns of a store, newest first. One that cannot be read is passed
    /// over, and the next older one takes its place: it is not what was asked for.
    pub fn newest(store: &Store) -> Self {
        let summaries = store.summaries().unwrap_or_default();
        let native = summaries
            .into_iter()
            .rev()
            .filter(|summary| !summary.is_imported);
        Self {
            loaded: &[],
            folders: native
                .map(|summary| Folder {
                    campaign: summary.campaign,
                    record: OnceCell::new(),
                })
                .collect(),
        }
    }

    /// The campaigns of the store that this one is in.
    pub fn beside(campaign: &CampaignDir) -> Self {
        let store = campaign.path.parent().map(Store::new);
        store.as_ref().map(Self::newest).unwrap_or_default()
    }

    /// These, which are loaded already.
    pub fn of(loaded: &'a [CampaignRecord]) -> Self {
        Self {
            loaded,
            folders: Vec::new(),
        }
    }

    /// Those whose header is wanted. The others are not read.
    pub(crate) fn load(
        &self,
        is_wanted: impl Fn(&CampaignHeader) -> bool + Copy,
    ) -> impl Iterator<Item = &CampaignRecord> {
        let loaded = self.loaded.iter();
        let loaded = loaded.filter(move |record| is_wanted(&record.header));
        let mut places = NEWEST;
        let read = self.folders.iter().filter_map(move |folder| {
            if places == 0 {
                return None;
            }
            let is_wanted = is_wanted(&folder.campaign.header);
            let record = is_wanted.then(|| folder.record()).flatten();
            let is_unreadable = is_wanted && record.is_none();
            places -= usize::from(!is_unreadable);
            record
        });
        loaded.chain(read)
    }
}

impl Folder {
    /// Reads it the first time.
    fn record(&self) -> Option<&CampaignRecord> {
        let record = self.record.get_or_init(|| self.campaign.load().ok());
        record.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use plimsoll_core::plan::Plan;
    use plimsoll_store::header::{CellHeader, FORMAT};

    use super::*;

    const PLAN: &str = "name = \"t\"\nworkload = \"insert-benchmark\"\ncells = [\"sqlite.wal\"]\n";

    fn header(id: String) -> CampaignHeader {
        CampaignHeader {
            format: FORMAT,
            id,
            created: "2026-11-21T08:00:00Z".to_owned(),
            plimsoll_version: "0.1.0".to_owned(),
            methodology_version: 1,
            seed: 1,
            plan_text: PLAN.to_owned(),
            plan: Plan::parse("t.toml", PLAN).unwrap(),
            cells: vec![CellHeader {
                label: "sqlite.wal".to_owned(),
                version: "3".to_owned(),
                origin: "inside".to_owned(),
                build: None,
                missing_build: None,
                config_source: "shipped".to_owned(),
                settings: BTreeMap::new(),
            }],
            schedule: Vec::new(),
            data_dir: "/var/tmp/plimsoll".into(),
            confirm: None,
            fleet: None,
            client_hosts: None,
        }
    }

    #[test]
    fn what_cannot_be_read_takes_no_place_of_the_newest() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let ids = 1..=NEWEST + 3;
        let campaigns: Vec<_> = ids
            .map(|id| store.create(&header(id.to_string())).unwrap())
            .collect();
        let ids = |stored: &Stored<'_>, is_wanted: fn(&CampaignHeader) -> bool| {
            let records = stored.load(is_wanted);
            records
                .map(|record| record.header.id.parse::<usize>().unwrap())
                .collect::<Vec<_>>()
        };
        let newest_first = |from: usize, to: usize| (to..=from).rev().collect::<Vec<_>>();
        let (all, newest) = (|_: &CampaignHeader| true, NEWEST + 3);
        assert_eq!(
            ids(&Stored::newest(&store), all),
            newest_first(newest, newest - NEWEST + 1)
        );

        let broken = &campaigns[newest - 1];
        std::fs::write(broken.path.join("imported.json"), "{").unwrap();
        broken.load().unwrap_err();
        let stored = Stored::newest(&store);
        assert_eq!(ids(&stored, all), newest_first(newest - 1, newest - NEWEST));
        assert_eq!(
            ids(&stored, |header| header.id.ends_with('3')),
            [13, 3],
            "23 is broken, and 3 is the next older one"
        );
    }
}
