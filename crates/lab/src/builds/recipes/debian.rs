//! What recipes need to know about Debian: `builds/debian.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DebianFacts {
    /// Patterns of packages that serve installation scripts and people, not the server.
    pub skip: Vec<String>,
    /// The suite that missing libraries come from.
    pub library_suite: String,
    /// Libraries by the name that programs ask for.
    pub libraries: BTreeMap<String, Library>,
}

/// Where a library is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Library {
    /// The Debian package.
    pub package: String,
    /// Its file, when that has another name.
    pub file: Option<String>,
}
