//! What must be alike before two builds' numbers are compared strictly: who packaged them, compiler
//! generation, optimisation flags.
//!
//! A build records its toolchain as named texts, under the names that are constants here.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Who put the build together.
pub const PACKAGER: &str = "packager";
/// Compiler and its full version.
pub const COMPILER: &str = "compiler";
/// Options that change the speed of what is compiled, separated by blanks.
pub const OPTIMISATION: &str = "optimisation";
/// All options, where the build tells them.
pub const FLAGS: &str = "flags";
/// Whether assertions are compiled in: `on`, `off`. Known of libraries alone.
pub const ASSERTIONS: &str = "assertions";
/// Whether CRC32C is computed by an instruction, `hardware`, or not, `software`. Known of RocksDB
/// alone.
pub const CRC32: &str = "crc32";
/// Said where a build does not tell.
pub const UNKNOWN: &str = "unknown";

/// The part of a compiler's version that counts as its generation: before gcc 5 the second number
/// did.
pub fn compiler_major(compiler: &str) -> String {
    let Some((name, version)) = compiler.split_once(' ') else {
        return compiler.to_owned();
    };
    let mut numbers = version.split('.');
    let major = numbers.next().unwrap_or_default();
    match (name, major, numbers.next()) {
        ("gcc", "2" | "3" | "4", Some(minor)) => format!("{name} {major}.{minor}"),
        _ => format!("{name} {major}"),
    }
}

/// Why two builds are not strictly comparable. It prints as
/// `not strictly comparable (gcc 4.4 -O2 vs gcc 12 -O2)`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caveat {
    /// What differs, or is not known: `packagers`, `compilers`, `optimisation flags`.
    pub parts: Vec<&'static str>,
    /// Whether a difference is known; else what the builds do not tell may be alike.
    pub is_known: bool,
    sides: [String; 2],
}

impl Display for Caveat {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.sides;
        match self.is_known {
            true => write!(f, "not strictly comparable ({a} vs {b})"),
            false if a == b => write!(f, "not known to be strictly comparable (both: {a})"),
            false => write!(f, "not known to be strictly comparable ({a} vs {b})"),
        }
    }
}

/// Compares two toolchains. `None` when all parts are known and alike. What one build does not tell
/// counts as different from what the other tells.
pub fn caveat(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Option<Caveat> {
    let (a, b) = (Side::of(a), Side::of(b));
    let parts = [
        ("packagers", a.packager, b.packager),
        ("compilers", &a.compiler, &b.compiler),
        ("optimisation flags", a.flags, b.flags),
    ];
    let is_alike = |x: &str, y: &str| x == y && x != UNKNOWN;
    let mut differing: Vec<&'static str> = parts
        .iter()
        .filter(|(_, x, y)| !is_alike(x, y))
        .map(|(what, ..)| *what)
        .collect();
    let mut is_known = parts.iter().any(|(_, x, y)| x != y);
    let has_packager = differing.contains(&"packagers");
    let mut sides = [a.text(&b, has_packager), b.text(&a, has_packager)];
    // Told by few engines: where neither build has the fact it is not part of the comparison.
    for (what, key, [x, y]) in [
        ("assertions", ASSERTIONS, [a.assertions, b.assertions]),
        ("CRC32C", CRC32, [a.crc32, b.crc32]),
    ] {
        let [x, y] = match (x, y) {
            (None, None) => continue,
            (x, y) => [x.unwrap_or(UNKNOWN), y.unwrap_or(UNKNOWN)],
        };
        if !is_alike(x, y) {
            differing.push(what);
            is_known |= x != y;
            sides = [
                format!("{}, {key} {x}", sides[0]),
                format!("{}, {key} {y}", sides[1]),
            ];
        }
    }
    (!differing.is_empty()).then_some(Caveat {
        is_known,
        sides,
        parts: differing,
    })
}

struct Side<'a> {
    packager: &'a str,
    compiler: String,
    flags: &'a str,
    assertions: Option<&'a str>,
    crc32: Option<&'a str>,
}

impl<'a> Side<'a> {
    fn of(toolchain: &'a BTreeMap<String, String>) -> Self {
        let told = |key: &str| toolchain.get(key).map(String::as_str);
        let part = |key: &str| told(key).unwrap_or(UNKNOWN);
        Self {
            packager: part(PACKAGER),
            compiler: compiler_major(part(COMPILER)),
            flags: part(OPTIMISATION),
            assertions: told(ASSERTIONS),
            crc32: told(CRC32),
        }
    }

    /// Compiler, level of optimisation, flags that the other has not, and where they differ the
    /// packager.
    fn text(&self, other: &Self, has_packager: bool) -> String {
        let has = |flag: &str| other.flags.split_whitespace().any(|known| known == flag);
        let is_told =
            |flag: &&str| flag.starts_with("-O") || (other.flags != UNKNOWN && !has(flag));
        let flags: Vec<&str> = self.flags.split_whitespace().filter(is_told).collect();
        let told = |part: &str, unknown: &str| {
            if part == UNKNOWN {
                unknown.to_owned()
            } else {
                part.to_owned()
            }
        };
        let mut text = told(&self.compiler, "unknown compiler");
        if self.flags == UNKNOWN {
            text += ", unknown flags";
        } else if !flags.is_empty() {
            text = format!(
                "{text}{}{}",
                if self.compiler == UNKNOWN { ", " } else { " " },
                flags.join(" ")
            );
        }
        if has_packager {
            text = format!("{text}, {}", told(self.packager, "unknown packager"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(packager: &str, compiler: &str, optimisation: &str) -> BTreeMap<String, String> {
        let facts = [
            (PACKAGER, packager),
            (COMPILER, compiler),
            (OPTIMISATION, optimisation),
        ];
        facts
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect()
    }

    #[test]
    fn generations_of_compilers() {
        for (compiler, major) in [
            ("gcc 4.4.7", "gcc 4.4"),
            ("gcc 12.2.0", "gcc 12"),
            ("clang 4.0.1", "clang 4"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(compiler_major(compiler), major);
        }
    }

    #[test]
    fn assertions_and_checksums_count_where_they_are_told() {
        let library = |assertions: &str, crc32: &str| {
            let mut facts = toolchain("RocksDB", "gcc 7.3.1", "-O2");
            facts.extend(
                [(ASSERTIONS, assertions), (CRC32, crc32)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned())),
            );
            facts
        };
        let text = |a: &BTreeMap<String, String>, b: &BTreeMap<String, String>| {
            caveat(a, b).map(|caveat| caveat.to_string())
        };
        let (plain, checking) = (library("off", "software"), library("on", "software"));
        assert_eq!(text(&plain, &plain), None);
        assert_eq!(
            text(&plain, &checking).as_deref(),
            Some("not strictly comparable (gcc 7 -O2, assertions off vs gcc 7 -O2, assertions on)")
        );
        assert_eq!(
            text(&checking, &library("on", "hardware")).as_deref(),
            Some(
                "not strictly comparable (gcc 7 -O2, crc32 software vs gcc 7 -O2, crc32 hardware)"
            )
        );
        assert_eq!(
            text(
                &library("unknown", "software"),
                &library("unknown", "software")
            )
            .as_deref(),
            Some("not known to be strictly comparable (both: gcc 7 -O2, assertions unknown)")
        );
    }

    #[test]
    fn differences_are_told_in_one_line() {
        let old = toolchain("vendor", "gcc 4.4.7", "-O2 -fno-omit-frame-pointer");
        let same = toolchain("vendor", "gcc 4.4.1", "-O2 -fno-omit-frame-pointer");
        let new = toolchain("vendor", "gcc 12.2.0", "-O2 -fno-omit-frame-pointer");
        let tuned = toolchain("vendor", "gcc 12.1.0", "-O2 -flto -march=native");
        let debian = toolchain("Debian", "gcc 12.2.0", "-O2 -fno-omit-frame-pointer");
        let silent = toolchain("Debian", UNKNOWN, UNKNOWN);
        let half = toolchain("Debian", UNKNOWN, "-O3");
        for (a, b, parts, text) in [
            (
                &old,
                &new,
                &["compilers"][..],
                "not strictly comparable (gcc 4.4 -O2 vs gcc 12 -O2)",
            ),
            (
                &new,
                &tuned,
                &["optimisation flags"],
                "not strictly comparable (gcc 12 -O2 -fno-omit-frame-pointer vs gcc 12 -O2 -flto \
                -march=native)",
            ),
            (
                &new,
                &debian,
                &["packagers"],
                "not strictly comparable (gcc 12 -O2, vendor vs gcc 12 -O2, Debian)",
            ),
            (
                &debian,
                &silent,
                &["compilers", "optimisation flags"],
                "not strictly comparable (gcc 12 -O2 vs unknown compiler, unknown flags)",
            ),
            (
                &silent,
                &silent,
                &["compilers", "optimisation flags"],
                "not known to be strictly comparable (both: unknown compiler, unknown flags)",
            ),
            (
                &half,
                &half,
                &["compilers"],
                "not known to be strictly comparable (both: unknown compiler, -O3)",
            ),
            (
                &BTreeMap::new(),
                &new,
                &["packagers", "compilers", "optimisation flags"],
                "not strictly comparable (unknown compiler, unknown flags, unknown packager vs gcc \
                12 -O2, vendor)",
            ),
        ] {
            let caveat = caveat(a, b).unwrap();
            assert_eq!(
                (caveat.parts.as_slice(), caveat.to_string().as_str()),
                (parts, text)
            );
        }
        assert_eq!(caveat(&old, &same), None);
        assert_eq!(caveat(&new, &new), None);
    }
}
