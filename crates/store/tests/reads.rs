//! What is asked of a store decides how many files are read. The kernel counts who opens them.

mod common;

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use common::{header, trial_done, trial_start};
use plimsoll_store::{CampaignDir, EventWriter, Store};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

/// Counts how often `events.jsonl` is opened in these folders.
struct Opened(OwnedFd);

impl Opened {
    fn in_trials<'a>(folders: impl IntoIterator<Item = &'a Path>) -> Self {
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        for folder in folders {
            add_watch(&watch, folder, WatchFlags::OPEN).unwrap();
        }
        Self(watch)
    }

    /// Since it was asked last.
    fn count(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.0, &mut buffer);
        let mut count = 0;
        while let Ok(event) = events.next() {
            let is_events = |name: &std::ffi::CStr| name == c"events.jsonl";
            count += usize::from(event.file_name().is_some_and(is_events));
        }
        count
    }
}

fn add_trial(campaign: &CampaignDir, trial: u32, is_complete: bool) -> std::path::PathBuf {
    let dir = campaign.trial_dir(trial, "cell", 1);
    let mut writer = EventWriter::create(dir.join("events.jsonl")).unwrap();
    writer.append(&trial_start(trial, 1)).unwrap();
    if is_complete {
        writer.append(&trial_done()).unwrap();
    }
    writer.sync().unwrap();
    dir
}

#[test]
fn a_list_of_campaigns_reads_no_events() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let trials: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|id| add_trial(&store.create(&header(id)).unwrap(), 1, true))
        .collect();
    std::fs::create_dir_all(folder.path().join("unreadable")).unwrap();
    std::fs::write(folder.path().join("unreadable/campaign.json"), "{").unwrap();
    let opened = Opened::in_trials(trials.iter().map(AsRef::as_ref));

    let summaries = store.summaries().unwrap();
    let ids: Vec<&str> = summaries
        .iter()
        .map(|summary| summary.campaign.header.id.as_str())
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert!(summaries.iter().all(|summary| !summary.is_imported));
    assert_eq!(opened.count(), 0);

    summaries[1].campaign.load().unwrap();
    assert_eq!(opened.count(), 1, "a campaign that is asked for is read");
}

#[test]
fn a_campaign_that_goes_on_is_read_from_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path()).create(&header("a")).unwrap();
    let first = add_trial(&campaign, 1, true);
    let before = campaign.load().unwrap();
    let second = add_trial(&campaign, 2, false);
    let opened = Opened::in_trials([first.as_path(), second.as_path()]);

    let after = campaign.load_after(before).unwrap();
    assert_eq!(opened.count(), 1, "the complete trial is known");
    let whole = campaign.load().unwrap();
    assert_eq!(
        (after.trials, after.state),
        (whole.trials, whole.state),
        "as if all was read"
    );
    assert_eq!(opened.count(), 2);

    let broken = campaign.load().unwrap();
    opened.count();
    campaign.load_after(broken).unwrap();
    assert_eq!(opened.count(), 1, "one that is not complete is read again");
}
