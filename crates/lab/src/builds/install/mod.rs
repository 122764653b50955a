//! From fetched archives to the files of a build.

pub(crate) mod from_recipe;
pub(crate) mod from_source;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod libraries;
mod own_loader;
mod unpack;

pub(crate) use unpack::open_rights;
