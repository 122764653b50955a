//! What is made of campaigns whose truth is known: verdicts, gates, texts, tables, pages and figures.

#[path = "../../../analysis/tests/common/mod.rs"]
mod common;

mod figures;
mod gate;
mod groups;
mod outputs;
mod page;
mod post;
mod rocksdb;
mod servers;
mod verdicts;
mod waiting;
mod waits;

use plimsoll_analysis::{Options, View, analyse};
use plimsoll_store::CampaignRecord;

fn view(record: &CampaignRecord) -> View {
    analyse(std::slice::from_ref(record), &Options::default()).unwrap()
}
