//! Archives of published results, which lie beside the repository where they are at hand.

use std::path::{Path, PathBuf};

use crate::skip;

/// The folder of an archive in `shared/data`. Where that folder does not exist the test says that
/// it is skipped; a continuous integration (`CI=true`) has to have it.
pub fn archive(test: &str, name: &str) -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    if data.is_dir() {
        return Some(data.join(name));
    }
    assert!(
        std::env::var_os("CI").is_none_or(|ci| ci != "true"),
        "the archives of published results must be at hand in CI"
    );
    skip(
        test,
        "the archives of published results are not beside the repository",
    );
    None
}
