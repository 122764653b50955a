//! Archives of published results and posts, which are not part of the repository.

use std::fs;
use std::path::{Path, PathBuf};

use crate::skip;

/// Names the folder that holds them: archives in `data`, posts in `seeds`.
const VARIABLE: &str = "PLIMSOLL_ARCHIVES";

/// The folder of an archive. If nobody has named a folder and there is none beside the repository,
/// the test says that it is skipped. A folder that is named must hold the archive.
pub fn archive(test: &str, name: &str) -> Option<PathBuf> {
    Some(folder(test, "data")?.join(name))
}

/// The text of a published post, by the start of its file's name; skipped as [`archive`].
pub fn published_post(test: &str, number: &str) -> Option<String> {
    let posts = folder(test, "seeds")?;
    let mut files = fs::read_dir(&posts).unwrap().flatten();
    let post = files.find(|file| file.file_name().to_string_lossy().starts_with(number));
    let post = post.unwrap_or_else(|| panic!("{} has no post {number}", posts.display()));
    Some(fs::read_to_string(post.path()).unwrap())
}

fn folder(test: &str, name: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(VARIABLE) {
        let folder = Path::new(&named).join(name);
        assert!(
            folder.is_dir(),
            "{VARIABLE}: {} is no folder",
            folder.display()
        );
        return Some(folder);
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    if beside.join(name).is_dir() {
        return Some(beside.join(name));
    }
    skip(
        test,
        "the archives of published results are not here; PLIMSOLL_ARCHIVES may name them",
    );
    None
}
