//! A campaign's folder as a list of files: `NAME` NUL `CONTENT` NUL, over and over, written over one
//! that is right. It is analysed and drawn.
#![no_main]

use std::path::{Component, Path};

use libfuzzer_sys::fuzz_target;
use plimsoll_analysis::{Options, analyse};
use plimsoll_store::CampaignDir;

/// Names of files that the input may write.
fn is_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    !name.is_empty() && name.len() < 100 && parts.all(|part| matches!(part, Component::Normal(_)))
}

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let mut parts = bytes.split(|byte| *byte == 0);
    while let (Some(name), Some(content)) = (parts.next(), parts.next()) {
        let name = String::from_utf8_lossy(name);
        if is_inside(&name) {
            let file = dir.path().join(&*name);
            let _ = std::fs::create_dir_all(file.parent().expect("it is below"));
            let _ = std::fs::write(file, content);
        }
    }
    let Ok(record) = CampaignDir::open(dir.path()).and_then(|campaign| campaign.load()) else {
        return;
    };
    if let Ok(view) = analyse(&[record], &Options::default()) {
        let page = plimsoll_report::to_html(&view);
        assert!(!page.contains("<script>alert"), "text from outside is escaped");
    }
});
