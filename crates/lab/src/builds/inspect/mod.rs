//! What a build is, found from its files and by asking it.

pub(crate) mod basedir;
pub(crate) mod elf;
pub(crate) mod facts;
pub(crate) mod library;
pub(crate) mod server_file;
pub(crate) mod toolchain;
