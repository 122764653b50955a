//! Campaign and trial folders: the truth on disk, from which everything else is derived.
//!
//! A [`Store`] is a folder of campaigns. A [`CampaignDir`] holds `campaign.json`, written once and
//! atomically, `lock`, held by the process that runs it, and `trials/`. A trial's folder is written
//! by one process: an [`EventWriter`] appends what happened to `events.jsonl`, [`series`] keeps one
//! row a second, and [`seal()`] closes the folder with the checksum of every file. What another
//! tool measured is a campaign too, with an [`imported`] file in place of trials. What is read back
//! is what was written, or an error that names the place; only the last line of `events.jsonl`,
//! when it lacks its newline, is forgiven: that is what a power cut leaves.

mod campaign;
mod command;
mod error;
mod events;
mod files;
pub mod layout;
mod profile;
pub mod series;
mod store;
mod trial;

pub use campaign::clients::ClientHostsHeader;
pub use campaign::confirm::{BisectionProbe, Confirm, Design, Placement};
pub use campaign::fleet::Fleet;
pub use campaign::folder::{CampaignDir, CampaignRecord, CampaignState, TRIALS_FOLDER};
pub use campaign::{header, imported};
pub use command::{DEFAULT_STORE, continuing, in_commands, shell_word};
pub use error::StoreError;
pub use events::event;
pub use events::log::{EventLog, Stamped, read_events};
pub use events::writer::EventWriter;
pub use files::durable::{create_in_place, create_new_folder, sync_folder, write_json_atomically};
pub use files::lock::CampaignLock;
pub use files::reserve::{Reserve, give_up_reserve};
pub use files::seal::{Change, Mismatch, check_seal, seal};
pub use profile::{PROFILES_FOLDER, Profile, ProfileAbout, profile_folder, read_profiles};
pub use series::{HostSeries, OperationSecond, Turn};
pub use store::{CampaignSummary, Store, utc_now};
pub use trial::{TrialPlace, TrialRecord, complete_attempt};
