//! Builds of engines: where they come from, how they are unpacked, and what is known of them.
//!
//! [`BuildCache`] is the way in. A recipe (data, in `builds/`) names a package and its ordinary
//! client; fetching, unpacking and recognising happen in a private folder, which becomes the build
//! by one rename. Nothing is installed into the system.

mod apt;
mod basedir;
mod cache;
mod child;
mod client;
mod debian_sources;
mod elf;
mod error;
mod facts;
mod install;
mod libraries;
mod library;
mod lock;
mod own_loader;
mod progress;
mod recipe;
mod record;
mod resolve;
mod server_file;
mod shipped;
mod toolchain;
mod unpack;

pub use cache::{BuildCache, BuildCheck, BuildState, CheckState, ListedBuild};
pub use error::BuildError;
pub use library::is_untested;
pub use plimsoll_engine::rocksdb::probe as probe_rocksdb;
pub use plimsoll_engine::{DataInit, InstalledBuild};
pub use progress::{FetchProgress, Stage};
pub use recipe::{Package, Recipe};
pub use resolve::ResolvedBuild;
pub use shipped::recipes;
