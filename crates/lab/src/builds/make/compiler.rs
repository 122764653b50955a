//! The compiler of this machine: one for all builds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::inspect::server_file::run;

pub(crate) const CC: &str = "gcc";
pub(crate) const CXX: &str = "g++";
/// What brings both.
pub(crate) const PACKAGE: &str = "build-essential";

/// What compiles, as far as it can change what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// The first line of `gcc --version`.
    pub version: String,
    /// The processor that `-march=native` compiles for, if the flags say so.
    pub native: Option<String>,
}

impl Compiler {
    /// Asks the compiler for its version.
    pub fn find(options: &str) -> Result<Self, BuildError> {
        let text = run(Path::new(CC), &["--version"], &BTreeMap::new()).map_err(|problem| {
            BuildError::Client(format!(
                "{CC} does not run here: {problem}; install it with `apt-get install {PACKAGE}`"
            ))
        })?;
        let native = options.contains("=native").then(processor);
        Ok(Self {
            version: text.lines().next().unwrap_or_default().trim().to_owned(),
            native,
        })
    }
}

/// Model and features of the processor, one text.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |key: &str| text.lines().find(|line| line.starts_with(key));
    let lines = ["model name", "flags"].iter().filter_map(|key| line(key));
    lines.collect::<Vec<_>>().join("\n")
}
