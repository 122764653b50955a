//! The compiler of this machine: one for all builds.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::builds::error::BuildError;
use crate::builds::inspect::server_file::run;
use crate::builds::make::recipe::{LINKER, LINKER_PACKAGE};

pub(crate) const CC: &str = "gcc";
pub(crate) const CXX: &str = "g++";
/// What brings both.
pub(crate) const PACKAGE: &str = "build-essential";

/// What compiles, as far as it can change what comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler {
    /// The first line of `gcc --version`.
    pub version: String,
    /// The first line of `ld --version`: assembler and linker come from one package.
    pub binutils: String,
    /// The C library and its version: `glibc 2.36`. Its headers are compiled into what uses them.
    pub libc: String,
    /// The processor that `-march=native` compiles for, if the flags say so.
    pub native: Option<String>,
}

impl Compiler {
    /// Asks the compiler for its version.
    pub fn find(options: &str) -> Result<Self, BuildError> {
        Ok(Self {
            version: first_line(CC, PACKAGE, &["--version"])?,
            binutils: first_line("ld", PACKAGE, &["--version"])?,
            libc: first_line("getconf", PACKAGE, &["GNU_LIBC_VERSION"])?,
            native: options.contains("=native").then(processor),
        })
    }

    /// Adds the linker of builds with several links to what is known of binutils.
    pub fn add_linker(&mut self) -> Result<(), BuildError> {
        let linker = first_line(LINKER, LINKER_PACKAGE, &["--version"])?;
        self.binutils = format!("{}, {linker}", self.binutils);
        Ok(())
    }
}

/// The first line that a program of the toolchain prints.
fn first_line(program: &str, package: &str, arguments: &[&str]) -> Result<String, BuildError> {
    let text = run(Path::new(program), arguments, &BTreeMap::new()).map_err(|problem| {
        BuildError::Client(format!(
            "{program} does not run here: {problem}; install it with `apt-get install {package}`"
        ))
    })?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Model and features of the processor, one text.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |key: &str| text.lines().find(|line| line.starts_with(key));
    let lines = ["model name", "flags"].iter().filter_map(|key| line(key));
    lines.collect::<Vec<_>>().join("\n")
}
