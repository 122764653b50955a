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
    /// over: it is not what was asked for.
    pub fn newest(store: &Store) -> Self {
        let summaries = store.summaries().unwrap_or_default();
        let native = summaries
            .into_iter()
            .rev()
            .filter(|summary| !summary.is_imported)
            .take(NEWEST);
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
        is_wanted: impl Fn(&CampaignHeader) -> bool,
    ) -> impl Iterator<Item = &CampaignRecord> {
        let folders = self.folders.iter();
        self.loaded
            .iter()
            .map(|record| (&record.header, Ok(record)))
            .chain(folders.map(|folder| (&folder.campaign.header, Err(folder))))
            .filter(move |(header, _)| is_wanted(header))
            .filter_map(|(_, found)| match found {
                Ok(record) => Some(record),
                Err(folder) => folder
                    .record
                    .get_or_init(|| folder.campaign.load().ok())
                    .as_ref(),
            })
    }
}
