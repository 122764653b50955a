//! Whether a program was compiled as it should have been: read back from the program.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::toolchain::{FLAGS, OPTIMISATION, UNKNOWN};

use crate::builds::error::BuildError;
use crate::builds::inspect::elf::switches;
use crate::builds::inspect::toolchain::speed_options;
use crate::builds::make::flags::FlagSet;

/// Has compilers write their options into a section of what they compile that is not loaded.
pub(crate) const RECORD: &str = "-frecord-gcc-switches";

/// Compares the options that are in a program with the set that was asked for, and records them if
/// the toolchain does not have them.
pub(crate) fn check(
    program: &Path,
    flags: &FlagSet,
    toolchain: &mut BTreeMap<String, String>,
) -> Result<(), BuildError> {
    let wanted = speed_options(&flags.options);
    let told = toolchain.get(OPTIMISATION).filter(|told| *told != UNKNOWN);
    if told.is_some_and(|told| has_all(told, &wanted)) {
        return Ok(());
    }
    let recorded = switches(program);
    if let Some(line) = recorded
        .iter()
        .find(|line| has_all(&speed_options(line), &wanted))
    {
        toolchain.insert(OPTIMISATION.to_owned(), speed_options(line));
        toolchain.insert(FLAGS.to_owned(), line.clone());
        return Ok(());
    }
    let there = told
        .cloned()
        .or_else(|| recorded.first().map(|line| speed_options(line)));
    Err(BuildError::Unfit(format!(
        "{} was compiled with \"{}\" and not with \"{wanted}\" of {}; the source sets its own: \
        mend the recipe",
        program.display(),
        there.as_deref().unwrap_or("options that it does not tell"),
        flags.name
    )))
}

/// Whether all wanted options are among these. Compilers write down the processor that they took
/// for `native`.
fn has_all(options: &str, wanted: &str) -> bool {
    let has = |wanted: &str| {
        options.split(' ').any(|option| {
            option == wanted
                || wanted
                    .strip_suffix("native")
                    .is_some_and(|start| start.ends_with('=') && option.starts_with(start))
        })
    };
    wanted.split_whitespace().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wanted_options_must_be_there() {
        assert!(has_all("-O2 -fno-omit-frame-pointer", "-O2"));
        assert!(has_all("-O3 -march=skylake", "-O3 -march=native"));
        assert!(!has_all("-O3", "-O2"));
        assert!(!has_all("-O2 -mtune=generic", "-O2 -march=native"));
        assert!(!has_all("", "-O2"));
    }
}
