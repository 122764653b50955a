//! Names of engines, builds, configs and cells, and the order of versions.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::engines::EngineName;
use crate::suggest;

/// A name that does not follow the grammar, or names nothing we know.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum NameError {
    /// The engine is not one of [`EngineName::ALL`].
    #[error("unknown engine \"{engine}\": this version knows {known}{hint}")]
    UnknownEngine {
        /// What was typed.
        engine: String,
        /// The engines there are.
        known: String,
        /// A suggestion, or nothing.
        hint: String,
    },
    /// A part of the name is empty or has a character that is not allowed.
    #[error("\"{text}\" is not a {what}: {rule}")]
    Malformed {
        /// What was typed.
        text: String,
        /// What it should have been.
        what: &'static str,
        /// The rule it breaks.
        rule: &'static str,
    },
}

/// `ENGINE[@VERSION][+SOURCE]`: which binaries a cell runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BuildName {
    pub engine: EngineName,
    /// A version or a prefix of one, e.g. `8.0`.
    pub version: Option<String>,
    /// Where the build comes from, when it is not the engine's default source.
    pub source: Option<String>,
}

impl FromStr for BuildName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let (rest, source) = match text.split_once('+') {
            Some((rest, source)) => (rest, Some(source)),
            None => (text, None),
        };
        let (engine, version) = match rest.split_once('@') {
            Some((engine, version)) => (engine, Some(version)),
            None => (rest, None),
        };
        for part in [version, source].into_iter().flatten() {
            if part.is_empty()
                || !part
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-~".contains(c))
            {
                let rule = "write ENGINE[@VERSION][+SOURCE], with letters, digits, '.', '_', '-' \
                           and '~' in version and source";
                return Err(NameError::Malformed {
                    text: text.to_owned(),
                    what: "build name",
                    rule,
                });
            }
        }
        let engine = EngineName::ALL
            .into_iter()
            .find(|known| known.as_str() == engine)
            .ok_or_else(|| {
                let known: Vec<&str> = EngineName::for_people().map(EngineName::as_str).collect();
                NameError::UnknownEngine {
                    engine: engine.to_owned(),
                    known: known.join(", "),
                    hint: suggest::hint(engine, known.iter().copied()),
                }
            })?;
        Ok(Self {
            engine,
            version: version.map(str::to_owned),
            source: source.map(str::to_owned),
        })
    }
}

impl fmt::Display for BuildName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine.as_str())?;
        if let Some(version) = &self.version {
            write!(f, "@{version}")?;
        }
        if let Some(source) = &self.source {
            write!(f, "+{source}")?;
        }
        Ok(())
    }
}

impl TryFrom<String> for BuildName {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<BuildName> for String {
    fn from(name: BuildName) -> Self {
        name.to_string()
    }
}

/// The source of builds that are compiled here, with the recipe's usual flags; with a set of flags
/// it is followed by `-` and the set's name.
pub const MADE_FROM_SOURCE: &str = "source";

/// Checks a config or shape label: letters, digits, `_` and `-`. No dot, so that `build.config` can
/// be taken apart.
pub fn check_label(text: &str, what: &'static str) -> Result<(), NameError> {
    if !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    {
        return Ok(());
    }
    Err(NameError::Malformed {
        text: text.to_owned(),
        what,
        rule: "use letters, digits, '_' and '-'",
    })
}

/// A plan's name, which campaigns carry too: versions may be in it.
pub fn check_plan_name(text: &str) -> Result<(), NameError> {
    if text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    {
        return Ok(());
    }
    let rule = "begin with a letter or digit; use letters, digits, '.', '_' and '-'";
    Err(NameError::Malformed {
        text: text.to_owned(),
        what: "plan name",
        rule,
    })
}

/// Orders versions as people do: digits by value, the rest as text (`9.6` < `10`, `8.0.9` <
/// `8.0.33`).
pub fn natural_cmp(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        match (a.is_empty(), b.is_empty()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
        let (da, db) = (digits(a), digits(b));
        let order = if da > 0 && db > 0 {
            let (x, y) = (
                a[..da].trim_start_matches('0'),
                b[..db].trim_start_matches('0'),
            );
            x.len().cmp(&y.len()).then_with(|| x.cmp(y))
        } else {
            a.chars().next().cmp(&b.chars().next())
        };
        if order != Ordering::Equal {
            return order;
        }
        let step = |s: &str, d: usize| {
            if d > 0 {
                d
            } else {
                s.chars().next().map_or(0, char::len_utf8)
            }
        };
        (a, b) = (&a[step(a, da)..], &b[step(b, db)..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_names_round_trip() {
        for text in ["sqlite", "null", "sqlite@3.50", "sqlite@3.50.4+debian"] {
            assert_eq!(text.parse::<BuildName>().unwrap().to_string(), text);
        }
        let error = "sqlit".parse::<BuildName>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown engine \"sqlit\": this version knows sqlite, mysql, mariadb, postgres, rocksdb \
            (did you mean \"sqlite\"?)",
            "the engine that does nothing is for tests"
        );
        assert!("sqlite@".parse::<BuildName>().is_err());
        assert!("sqlite@3/4".parse::<BuildName>().is_err());
    }

    #[test]
    fn versions_order_naturally() {
        let mut versions = ["10", "9.6", "8.0.33", "8.0.9", "5.7", "9.6.1", "19~rc1"];
        versions.sort_by(|a, b| natural_cmp(a, b));
        assert_eq!(
            versions,
            ["5.7", "8.0.9", "8.0.33", "9.6", "9.6.1", "10", "19~rc1"]
        );
    }
}
