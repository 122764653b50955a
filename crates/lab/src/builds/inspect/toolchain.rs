//! Who compiled a server, with what, and how: what must be alike before two builds' numbers are
//! compared strictly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_core::name::natural_cmp;
use plimsoll_core::toolchain::{COMPILER, FLAGS, OPTIMISATION, PACKAGER, UNKNOWN};

use crate::builds::inspect::elf::{Marks, marks};

/// Beginnings of compiler options that move numbers.
const SPEED_OPTIONS: [&str; 13] = [
    "-O",
    "-march=",
    "-mtune=",
    "-mcpu=",
    "-flto",
    "-fprofile-use",
    "-fomit-frame-pointer",
    "-fno-omit-frame-pointer",
    "-momit-leaf-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-ffast-math",
    "-fsanitize",
    "-fcf-protection",
];

/// Reads the facts from a server program and, for MySQL, from the build information beside it.
pub(crate) fn toolchain(server: &Path, basedir: &Path, packager: &str) -> BTreeMap<String, String> {
    let marks = marks(server);
    let flags = compiled_in_flags(&marks).or_else(|| info_bin_flags(basedir));
    let optimisation = flags
        .as_deref()
        .map(speed_options)
        .filter(|options| !options.is_empty());
    let known = |value: Option<String>| value.unwrap_or_else(|| UNKNOWN.to_owned());
    let mut facts = BTreeMap::from([
        (PACKAGER.to_owned(), packager.to_owned()),
        (COMPILER.to_owned(), known(compiler(&marks))),
        (OPTIMISATION.to_owned(), known(optimisation)),
    ]);
    facts.extend(flags.map(|flags| (FLAGS.to_owned(), flags)));
    facts
}

/// The compiler a program names: PostgreSQL in its version text, others in the section that
/// compilers write. Start-up code may come from an older compiler than the program: the newest is
/// the program's.
fn compiler(marks: &Marks) -> Option<String> {
    let stated = marks
        .texts
        .iter()
        .filter_map(|text| text.split_once("compiled by ").map(|(_, rest)| rest));
    if let Some(text) = stated.into_iter().next() {
        let end = text.rfind(", ").unwrap_or(text.len());
        return parse_compiler(&text[..end]);
    }
    let found: Vec<String> = marks
        .compilers
        .iter()
        .filter_map(|text| parse_compiler(text))
        .collect();
    let clang = found
        .iter()
        .filter(|compiler| compiler.starts_with("clang"));
    clang
        .max_by(|a, b| natural_cmp(a, b))
        .or_else(|| found.iter().max_by(|a, b| natural_cmp(a, b)))
        .cloned()
}

/// `gcc 12.2.0` of `GCC: (Debian 12.2.0-14) 12.2.0`, `gcc (Debian 12.2.0-14) 12.2.0`,
/// `clang version 15.0.7 (...)`.
fn parse_compiler(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let name = if lower.contains("clang") {
        "clang"
    } else if ["gcc", "g++"].iter().any(|name| lower.contains(name)) {
        "gcc"
    } else {
        return None;
    };
    // Versions in brackets are the packager's.
    let mut depth = 0;
    let outside: String = text
        .chars()
        .filter(|c| {
            depth += i32::from(*c == '(');
            let is_outside = depth == 0;
            depth -= i32::from(*c == ')');
            is_outside
        })
        .collect();
    let version = outside
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))?;
    let version: String = version
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    Some(format!("{name} {version}"))
}

/// PostgreSQL keeps the text that `pg_config --cflags` prints in every program.
fn compiled_in_flags(marks: &Marks) -> Option<String> {
    marks
        .texts
        .iter()
        .find(|text| text.starts_with('-') && !text.contains("compiled by "))
        .cloned()
}

/// MySQL's packages carry the options of its `sql` folder.
fn info_bin_flags(basedir: &Path) -> Option<String> {
    let text = ["docs/INFO_BIN", "INFO_BIN"]
        .iter()
        .find_map(|name| fs::read_to_string(basedir.join(name)).ok())?;
    parse_info_bin(&text)
}

/// `CXX_FLAGS = ...` up to 5.7; from 8.0 on `CMAKE_CXX_FLAGS: ...` and, after it on the command
/// line, `CMAKE_CXX_FLAGS_<build type>: ...`.
fn parse_info_bin(text: &str) -> Option<String> {
    let value = |key: &str, separator: &str| {
        text.lines()
            .find_map(|line| {
                line.trim_start()
                    .strip_prefix(key)?
                    .trim_start()
                    .strip_prefix(separator)
            })
            .map(str::trim)
    };
    let language = |name: &str| {
        if let Some(flags) = value(name, "=") {
            return Some(flags.to_owned());
        }
        let build_type = value("CMAKE_BUILD_TYPE", ": ")?.to_ascii_uppercase();
        let of_type = value(&format!("CMAKE_{name}_{build_type}"), ": ")?;
        Some(format!(
            "{} {of_type}",
            value(&format!("CMAKE_{name}"), ": ").unwrap_or_default()
        ))
    };
    let flags = language("CXX_FLAGS").or_else(|| language("C_FLAGS"))?;
    // Folders of the packager's machine say nothing.
    let is_told = |flag: &&str| {
        !["-I", "-B", "-fdebug-prefix-map="]
            .iter()
            .any(|beginning| flag.starts_with(beginning))
    };
    Some(
        flags
            .split_whitespace()
            .filter(is_told)
            .collect::<Vec<_>>()
            .join(" "),
    )
}

/// The options that change speed, sorted, each once. Of several that exclude each other (levels,
/// processors, an option and its opposite) the last counts, as for compilers.
pub(crate) fn speed_options(flags: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for option in flags
        .split_whitespace()
        .filter(|option| SPEED_OPTIONS.iter().any(|known| option.starts_with(known)))
    {
        kept.retain(|known| choice(known) != choice(option));
        kept.push(option);
    }
    kept.sort_unstable();
    kept.join(" ")
}

/// What an option decides: the same for those of which the last counts.
fn choice(option: &str) -> String {
    let of_values = ["-O", "-march=", "-mtune=", "-mcpu=", "-flto"];
    match of_values.iter().find(|start| option.starts_with(*start)) {
        Some(start) => (*start).to_owned(),
        None => option.replacen("no-omit", "omit", 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_recognised() {
        for (text, wanted) in [
            ("GCC: (Debian 12.2.0-14) 12.2.0", Some("gcc 12.2.0")),
            (
                "GCC: (GNU) 4.8.5 20150623 (Red Hat 4.8.5-44)",
                Some("gcc 4.8.5"),
            ),
            ("gcc (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", Some("gcc 7.5.0")),
            (
                "x86_64-linux-gnu-gcc (Debian 15.2.0-9) 15.2.0",
                Some("gcc 15.2.0"),
            ),
            ("Ubuntu clang version 15.0.7", Some("clang 15.0.7")),
            (
                "clang version 17.0.6 (https://example.org/llvm 6009708b)",
                Some("clang 17.0.6"),
            ),
            ("Linker: LLD 15.0.7", None),
            ("", None),
        ] {
            assert_eq!(parse_compiler(text).as_deref(), wanted, "{text}");
        }
    }

    #[test]
    fn the_programs_compiler_is_not_that_of_its_start_up_code() {
        let comment = |texts: &[&str]| Marks {
            compilers: texts.iter().map(|text| text.to_string()).collect(),
            texts: Vec::new(),
        };
        assert_eq!(
            compiler(&comment(&[
                "GCC: (GNU) 4.8.5",
                "GCC: (GNU) 12.2.1 20221121"
            ]))
            .as_deref(),
            Some("gcc 12.2.1")
        );
        assert_eq!(
            compiler(&comment(&["GCC: (GNU) 13.1.0", "clang version 9.0.1"])).as_deref(),
            Some("clang 9.0.1")
        );
        assert_eq!(compiler(&comment(&[])), None);
        let stated = "PostgreSQL 15.20 (Debian 15.20-0+deb12u1) on x86_64-pc-linux-gnu, compiled \
                     by gcc (Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit";
        let marks = Marks {
            compilers: Vec::new(),
            texts: vec![stated.to_owned()],
        };
        assert_eq!(compiler(&marks).as_deref(), Some("gcc 12.2.0"));
        assert_eq!(compiled_in_flags(&marks), None);
    }

    #[test]
    fn only_options_that_change_speed_are_kept() {
        assert_eq!(
            speed_options("-Wall -O3 -g -fno-strict-aliasing -march=native -Wextra -O2 -flto=auto"),
            "-O2 -flto=auto -march=native"
        );
        assert_eq!(speed_options("-Wall -g"), "");
        // As MySQL states them of a flag set behind its own options.
        for (flags, wanted) in [
            (
                "-fno-omit-frame-pointer -fomit-frame-pointer -O2",
                "-O2 -fomit-frame-pointer",
            ),
            (
                "-fno-omit-frame-pointer -fomit-frame-pointer -O2 -fno-omit-frame-pointer \
                -mno-omit-leaf-frame-pointer",
                "-O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
            ),
            ("-march=x86-64 -O3 -march=native", "-O3 -march=native"),
        ] {
            assert_eq!(speed_options(flags), wanted);
        }
    }

    #[test]
    fn build_information_of_mysql_is_read() {
        let old = "===== Compiler flags used (from the 'sql/' subdirectory): =====\n# \
                  flags\nC_FLAGS =  -Wall -O2 -g\n\n\
            CXX_FLAGS =   -O3 -I/pb2/include  -DNDEBUG\n";
        let new = "CMAKE_BUILD_TYPE:STRING=RelWithDebInfo\nCMAKE_BUILD_TYPE: \
                  RelWithDebInfo\nCompiler: GNU 12.1.1\nCMAKE_C_FLAGS: -O1\n\
            CMAKE_CXX_FLAGS: -std=c++17 -B/opt/bin  -O3 -g\nCMAKE_CXX_FLAGS_RELWITHDEBINFO: -O2 \
                  -fdebug-prefix-map=/a/=./ -g1\n";
        for (text, flags) in [
            (old, Some("-O3 -DNDEBUG")),
            (new, Some("-std=c++17 -O3 -g -O2 -g1")),
            ("nothing", None),
        ] {
            assert_eq!(parse_info_bin(text).as_deref(), flags);
        }
    }
}
