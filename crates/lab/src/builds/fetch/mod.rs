//! Packages from their registries, each through its ordinary client.

pub(crate) mod apt;
mod cargo;
pub(crate) mod child;
pub(crate) mod clients;
mod debian_sources;
pub(crate) mod fetcher;
pub(crate) mod maven;
mod npm;
