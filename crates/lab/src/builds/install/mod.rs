//! From fetched archives to the files of a build.

pub(crate) mod from_recipe;
#[cfg(fuzzing)]
pub(super) mod fuzzing;
mod libraries;
mod own_loader;
mod unpack;
