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
    let recorded = switches(program);
    let told = toolchain.get(OPTIMISATION).filter(|told| *told != UNKNOWN);
    if told.is_some_and(|told| has_all(told, &wanted)) {
        return check_parts(program, &recorded, flags);
    }
    if let Some(line) = recorded
        .iter()
        .find(|line| has_all(&speed_options(line), &wanted))
    {
        toolchain.insert(OPTIMISATION.to_owned(), speed_options(line));
        toolchain.insert(FLAGS.to_owned(), line.clone());
        return check_parts(program, &recorded, flags);
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

/// Refuses a program that has a part which is hardly optimised.
fn check_parts(program: &Path, recorded: &[String], flags: &FlagSet) -> Result<(), BuildError> {
    let slow = recorded.iter().find(|line| is_slower(line, &flags.options));
    slow.map_or(Ok(()), |line| {
        Err(BuildError::Unfit(format!(
            "a part of {} was compiled with \"{line}\", which optimises less than \"{}\" of {}; \
            the source sets its own: mend the source or the recipe",
            program.display(),
            flags.options,
            flags.name
        )))
    })
}

/// Whether a file of C or C++ was compiled with hardly any optimisation where much was wanted. What
/// is between (`-O3` for one file, `-O2` for all) is the authors' choice.
fn is_slower(recorded: &str, wanted: &str) -> bool {
    let level = |options: &str| {
        let levels = options.split_whitespace();
        levels
            .filter_map(|option| option.strip_prefix("-O"))
            .next_back()
            .map(str::to_owned)
    };
    let is_fast = |level: Option<String>| {
        level.is_some_and(|level| ["2", "3", "fast"].contains(&level.as_str()))
    };
    recorded.starts_with("GNU C") && is_fast(level(wanted)) && !is_fast(level(recorded))
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
    fn one_slow_file_is_found() {
        for (recorded, is_slow) in [
            ("GNU C17 12.2.0 -O2 -mtune=generic", false),
            ("GNU C++17 12.2.0 -O3 -O2", false),
            ("GNU C17 12.2.0 -O2 -O0", true),
            ("GNU C17 12.2.0 -mtune=generic", true),
            ("GNU GIMPLE 12.2.0 -mtune=generic", false),
        ] {
            assert_eq!(is_slower(recorded, "-O2"), is_slow, "{recorded}");
            assert!(!is_slower(recorded, "-O0"));
        }
    }

    #[test]
    fn all_wanted_options_must_be_there() {
        assert!(has_all("-O2 -fno-omit-frame-pointer", "-O2"));
        assert!(has_all("-O3 -march=skylake", "-O3 -march=native"));
        assert!(!has_all("-O3", "-O2"));
        assert!(!has_all("-O2 -mtune=generic", "-O2 -march=native"));
        assert!(!has_all("", "-O2"));
    }
}
