//! Sets of compiler options under the names that the field uses: `flags/` of the recipes, and the
//! user's own in the cache's `flags.toml`.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::name::check_label;
use serde::Deserialize;

use crate::builds::error::BuildError;
use crate::builds::folder::text_of;

/// The user's file in the cache's folder: `NAME = "OPTIONS"`, one a line.
pub(crate) const OWN_FILE: &str = "flags.toml";
/// With fewer links an interval knows next to nothing of what they differ by.
const FEWEST_LINKS: u32 = 4;
const MOST_LINKS: u32 = 64;
/// Without it a linker has whole files to put into another order.
const FUNCTION_SECTIONS: &str = "-ffunction-sections";
const NO_FUNCTION_SECTIONS: &str = "-fno-function-sections";

/// Compiler options under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FlagSet {
    pub name: String,
    /// As a compiler takes them, separated by blanks.
    pub options: String,
    /// How often the server is linked, each time with its functions in another order; 0 for once,
    /// in the linker's own order.
    pub links: u32,
}

/// All sets, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlagSets(BTreeMap<String, Set>);

/// A set as it is written: options alone, or with a number of links.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "expected options, or { options = \"...\", links = 4 }"
)]
enum Set {
    Options(String),
    Linked(Linked),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Linked {
    options: String,
    links: u32,
}

impl Set {
    fn options(&self) -> &str {
        match self {
            Self::Options(options) | Self::Linked(Linked { options, .. }) => options,
        }
    }

    fn links(&self) -> u32 {
        match self {
            Self::Options(_) => 0,
            Self::Linked(linked) => linked.links,
        }
    }

    /// What is wrong with the links that it asks for.
    fn wrong_links(&self) -> Option<String> {
        let Self::Linked(Linked { options, links }) = self else {
            return None;
        };
        if !(FEWEST_LINKS..=MOST_LINKS).contains(links) {
            return Some(format!(
                "has {links} links; write {FEWEST_LINKS} to {MOST_LINKS}"
            ));
        }
        // Compilers go by the last.
        let sections = [FUNCTION_SECTIONS, NO_FUNCTION_SECTIONS];
        let last = all_of(options)
            .filter(|option| sections.contains(option))
            .last();
        if last != Some(FUNCTION_SECTIONS) {
            return Some(format!("has links and lacks {FUNCTION_SECTIONS}"));
        }
        let orders_itself = all_of(options).any(|option| option.starts_with("-flto"));
        orders_itself.then(|| "has links and -flto, which orders functions itself".to_owned())
    }
}

fn all_of(options: &str) -> impl Iterator<Item = &str> {
    options.split(' ').filter(|option| !option.is_empty())
}

impl FlagSets {
    /// Reads the sets of a file. `file` names it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, BuildError> {
        let wrong = |problem: String| {
            BuildError::Usage(format!(
                "the flag sets {file} are wrong: {problem}; write lines like \
                my_o3 = \"-O3 -fno-omit-frame-pointer\""
            ))
        };
        let sets: BTreeMap<String, Set> =
            toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for (name, set) in &sets {
            let options = set.options();
            check_label(name, "flag set").map_err(|error| wrong(error.to_string()))?;
            // They pass through shells and makefiles of other people.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,:/ ".contains(c);
            if let Some(strange) = options.chars().find(|c| !is_plain(*c)) {
                return Err(wrong(format!(
                    "{name} has {strange:?}, which makefiles may take for something else"
                )));
            }
            if !options.split(' ').any(|option| option.starts_with("-O")) {
                return Err(wrong(format!(
                    "{name} names no level of optimisation (-O2)"
                )));
            }
            if let Some(problem) = set.wrong_links() {
                return Err(wrong(format!("{name} {problem}")));
            }
        }
        Ok(Self(sets))
    }

    /// These and the user's, whose names must be new.
    pub fn with_own(&self, cache: &Path) -> Result<Self, BuildError> {
        let path = cache.join(OWN_FILE);
        let Some(text) = text_of(&path)? else {
            return Ok(self.clone());
        };
        let own = Self::parse(&path.display().to_string(), &text)?;
        if let Some(taken) = own.0.keys().find(|name| self.0.contains_key(*name)) {
            return Err(BuildError::Usage(format!(
                "{} gives {taken}, which is a flag set of this program; choose another name",
                path.display()
            )));
        }
        let mut all = self.clone();
        all.0.extend(own.0);
        Ok(all)
    }

    /// The set of this name. `cache` is where a file of the user's would be.
    pub fn find(&self, name: &str, cache: &Path) -> Result<FlagSet, BuildError> {
        match self.0.get(name) {
            Some(set) => Ok(FlagSet {
                name: name.to_owned(),
                options: set.options().to_owned(),
                links: set.links(),
            }),
            None => {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let hint = plimsoll_core::suggest::hint(name, known.iter().copied());
                let own = match name.starts_with('-') {
                    true => format!("for options give them a name, as in my_set = \"{name}\", in"),
                    false => "add your own to".to_owned(),
                };
                Err(BuildError::Unknown(format!(
                    "there is no flag set \"{name}\"{hint}; there are: {}; {own} {}",
                    known.join(", "),
                    cache.join(OWN_FILE).display()
                )))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_of_your_own_is_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let shipped = FlagSets::parse("x", "o2 = \"-O2\"").unwrap();
        assert_eq!(shipped.with_own(dir.path()).unwrap(), shipped);
        std::fs::write(dir.path().join(OWN_FILE), "mine = \"-O3 -mtune=native\"").unwrap();
        let all = shipped.with_own(dir.path()).unwrap();
        let find = |name| all.find(name, dir.path());
        assert_eq!(find("mine").unwrap().options, "-O3 -mtune=native");
        let error = find("min").unwrap_err().to_string();
        assert!(
            error.starts_with(
                "there is no flag set \"min\" (did you mean \"mine\"?); there are: \
                mine, o2;"
            ),
            "{error}"
        );
        let own = dir.path().join(OWN_FILE).display().to_string();
        assert!(
            error.ends_with(&format!("add your own to {own}")),
            "{error}"
        );
        let error = find("-O1").unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("as in my_set = \"-O1\", in {own}")),
            "{error}"
        );
        std::fs::write(dir.path().join(OWN_FILE), "o2 = \"-O3\"").unwrap();
        let error = shipped.with_own(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("gives o2, which is a flag set of this"),
            "{error}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (text, wanted) in [
            ("a = 1", "expected options, or"),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = 3 }",
                "a has 3 links; write 4 to 64",
            ),
            (
                "a = { options = \"-O2\", links = 4 }",
                "a has links and lacks -ffunction-sections",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections -flto\", links = 4 }",
                "a has links and -flto",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections -fno-function-sections\", links = 4 }",
                "a has links and lacks -ffunction-sections",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections -flto=auto\", links = 4 }",
                "a has links and -flto",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = 0 }",
                "a has 0 links; write 4 to 64",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = 65 }",
                "a has 65 links; write 4 to 64",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = -1 }",
                "expected options, or",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = \"4\" }",
                "expected options, or",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\", links = 4294967300 }",
                "expected options, or",
            ),
            (
                "a = { options = \"-O2 -ffunction-sections\" }",
                "expected options, or",
            ),
            ("\"a.b\" = \"-O2\"", "\"a.b\" is not a flag set"),
            ("a = \"-O2 $(id)\"", "a has '$'"),
            ("a = \"-g\"", "a names no level of optimisation"),
        ] {
            let error = FlagSets::parse("f.toml", text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{error}");
        }
    }
}
