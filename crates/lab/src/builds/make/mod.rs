//! Builds from source: fetched as any other, or given by the user, and compiled here with one
//! compiler and one set of flags.
//!
//! ```text
//! source (package, folder, tarball, commit) --hash--+
//! compiler, flags, recipe ---------------------------+--> identity: an equal one is not made again
//!
//! source --unpack--> workshop --steps of the recipe--> stage --recognise--> the cache
//! ```
//!
//! A workshop is a private folder below the cache. It stays if a build is interrupted or fails, so
//! that the next try goes on where this one ended, and goes when the build is in the cache.

mod account;
mod compiler;
pub(crate) mod flags;
pub(crate) mod git;
pub(crate) mod needs;
pub(crate) mod recipe;
mod run;
mod source;
pub(crate) mod verify;
pub(crate) mod version;
mod workshop;

pub use source::GivenSource;
pub(crate) use source::Source;
pub(crate) use workshop::{CCACHE, Make, Shops, WORK};
