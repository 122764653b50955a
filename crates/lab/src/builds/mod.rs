//! Builds of engines: where they come from, how they are unpacked, and what is known of them.
//!
//! [`BuildCache`] is the way in. A recipe (data, in `builds/`) names a package and its ordinary
//! client; fetching, unpacking and recognising happen in a private folder, which becomes the build
//! by one rename. Nothing is installed into the system.

mod cache;
mod error;
mod fetch;
mod folder;
mod inspect;
mod install;
mod lock;
pub(crate) mod make;
mod manifest;
mod progress;
mod recipes;
mod record;

pub use cache::{
    BuildCache, BuildCheck, BuildState, BuildToMake, CheckState, Cleaned, Leftover, ListedBuild,
    MadeBuild, MakeRequest,
};
pub use error::BuildError;
pub use inspect::library::is_untested;
pub(crate) use inspect::server_file::sha256 as file_sha256;
#[cfg(fuzzing)]
pub use install::fuzzing::unpack_all;
pub use make::GivenSource;
pub use plimsoll_engine::{DataInit, InstalledBuild, is_built_in, probe as probe_library};
pub use progress::{FetchProgress, MakeProgress, Stage};
pub use recipes::recipe::{Package, Recipe};
pub use recipes::resolve::ResolvedBuild;
pub use recipes::shipped::recipes;
