//! What a build says of itself when it is asked.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::engines::{EngineName, Lives};

use crate::builds::error::BuildError;
use crate::builds::inspect::library;
use crate::builds::inspect::server_file::ask_version;

/// The answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedFacts {
    /// The version it states.
    pub version: String,
    /// What it adds to the toolchain that its file tells.
    pub toolchain: BTreeMap<String, String>,
}

impl StatedFacts {
    /// Asks a server for its version; a library is loaded and tried, in a process of its own.
    pub fn ask(
        engine: EngineName,
        server: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, BuildError> {
        if engine.facts().lives == Lives::Library {
            return library::ask(engine, server, env);
        }
        Ok(Self {
            version: ask_version(engine, server, env)?,
            toolchain: BTreeMap::new(),
        })
    }
}
