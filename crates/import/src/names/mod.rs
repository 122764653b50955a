//! What names of files and folders tell.

pub mod folder;
pub mod test_file;
pub mod version;
