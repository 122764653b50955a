//! `completions` and the manual's pages, from the argument table.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::{Failure, VerbResult};
use crate::output::print;

const PROGRAM: &str = "plimsoll";

pub fn completions(shell: Shell) -> VerbResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), PROGRAM, &mut script);
    let script = String::from_utf8(script).map_err(|error| Failure::bug(error.to_string()))?;
    print(&script)?;
    Ok(0)
}

/// A page for the program and one for each verb.
pub fn manual(folder: &Path) -> VerbResult {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("failed to write to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    Ok(0)
}
