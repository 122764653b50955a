//! The settings of a config: which of them a version gets, and the lines of the file that the
//! server reads.

use std::fmt::Write;

use crate::{EngineError, Settings};

/// The config's key that is not a parameter of the server but decides how the data directory is
/// made.
const DATA_CHECKSUMS: &str = "data_checksums";

/// Parameters that follow from where and how we run the server.
const OWNED: &[&str] = &[
    "config_file",
    "data_directory",
    "external_pid_file",
    "hba_file",
    "ident_file",
    "include",
    "include_dir",
    "include_if_exists",
    "listen_addresses",
    "log_destination",
    "log_directory",
    "log_filename",
    "logging_collector",
    "port",
    "restart_after_crash",
    "ssl",
    "unix_socket_directories",
    "unix_socket_group",
    "unix_socket_permissions",
];

/// A major version: 96 for 9.6, and ten times the number from 10 on, so that they order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Major(u32);

impl Major {
    /// The major version that a text such as `9.6.24`, `16.4`, `18.6 (Debian 18.6-1)` or `19~rc1`
    /// begins with.
    pub fn of_version(version: &str) -> Option<Self> {
        let mut parts = version.split(|character: char| !character.is_ascii_digit());
        let first: u32 = parts.next()?.parse().ok()?;
        if first >= 10 {
            return Some(Self(first * 10));
        }
        let second: u32 = parts.next()?.parse().ok()?;
        (second < 10).then_some(Self(first * 10 + second))
    }

    /// A major version alone: `9.6`, `16`.
    fn parse(text: &str) -> Option<Self> {
        let major = Self::of_version(text)?;
        (major.to_string() == text).then_some(major)
    }
}

impl std::fmt::Display for Major {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 >= 100 {
            write!(f, "{}", self.0 / 10)
        } else {
            write!(f, "{}.{}", self.0 / 10, self.0 % 10)
        }
    }
}

/// The major versions a setting is for; both ends belong to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Versions {
    first: Option<Major>,
    last: Option<Major>,
}

impl Versions {
    /// `18` is 18 and newer, `-12` is 12 and older, `13-15` is these three.
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = match text.split_once('-') {
            None => (Some(Major::parse(text)?), None),
            Some(("", last)) => (None, Some(Major::parse(last)?)),
            Some((first, last)) => (Some(Major::parse(first)?), Some(Major::parse(last)?)),
        };
        let is_empty = first.zip(last).is_some_and(|(first, last)| first > last);
        (!is_empty).then_some(Self { first, last })
    }

    /// Why `major` is not among them.
    fn excludes(self, major: Major) -> Option<String> {
        match (self.first, self.last) {
            (Some(first), _) if major < first => Some(format!("needs >= {first}")),
            (_, Some(last)) if major > last => Some(format!("needs <= {last}")),
            _ => None,
        }
    }
}

/// What a config means to one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Config {
    /// Parameters and their values, by name.
    pub parameters: Settings,
    /// Whether a new data directory gets checksums.
    pub has_data_checksums: bool,
    /// Settings that are not for this version, and why.
    pub not_applied: Settings,
}

impl Config {
    /// Sorts a config's settings by what `major` gets. A name may end in `@` and the versions it is
    /// for.
    pub fn new(settings: &Settings, major: Major) -> Result<Self, EngineError> {
        let mut config = Self {
            parameters: Settings::new(),
            has_data_checksums: true,
            not_applied: Settings::new(),
        };
        let mut has_checksums_line = false;
        for (key, value) in settings {
            let (name, versions) = parse_key(key)?;
            let value = unquoted(key, value)?;
            if OWNED.contains(&name.as_str()) {
                return Err(EngineError::new(format!(
                    "setting {key} is not the config's: it follows from where and how the server \
                    is started; remove the line"
                )));
            }
            if let Some(reason) = versions.excludes(major) {
                config.not_applied.insert(
                    key.clone(),
                    format!("{reason}, this is {major} (value {value})"),
                );
                continue;
            }
            let is_twice = if name == DATA_CHECKSUMS {
                config.has_data_checksums = match value.as_str() {
                    "on" => true,
                    "off" => false,
                    _ => {
                        return Err(EngineError::new(format!(
                            "setting {key} cannot be \"{value}\": write on or off"
                        )));
                    }
                };
                std::mem::replace(&mut has_checksums_line, true)
            } else {
                config
                    .parameters
                    .insert(name.clone(), in_server_units(value))
                    .is_some()
            };
            if is_twice {
                return Err(EngineError::new(format!(
                    "setting {name} is there twice for postgres {major}, once as {key}; give the \
                    lines versions that do not overlap ({name}@-15, {name}@16)"
                )));
            }
        }
        Ok(config)
    }

    /// The lines of a configuration file.
    pub fn file_text(&self) -> String {
        file_text(
            self.parameters
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
    }
}

/// Configuration file lines, every value quoted.
pub(super) fn file_text<'a>(parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut text = String::new();
    for (name, value) in parameters {
        let value = value.replace('\\', "\\\\").replace('\'', "''");
        writeln!(text, "{name} = '{value}'").expect("writing to a String cannot fail");
    }
    text
}

/// The name in small letters, as PostgreSQL does not tell them apart, and the versions behind `@`.
fn parse_key(key: &str) -> Result<(String, Versions), EngineError> {
    let (name, versions) = match key.split_once('@') {
        None => (key, Some(Versions::default())),
        Some((name, versions)) => (name, Versions::parse(versions)),
    };
    let versions = versions.ok_or_else(|| {
        EngineError::new(format!(
            "setting \"{key}\": what follows @ must be versions: @18 for 18 and newer, @-12 for 12 \
            and older, @9.6-15 for these and between"
        ))
    })?;
    // A dot separates an extension's name from its parameter's.
    let is_word = |word: &str| {
        let mut characters = word.chars();
        characters
            .next()
            .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    if name.split('.').count() <= 2 && name.split('.').all(is_word) {
        Ok((name.to_ascii_lowercase(), versions))
    } else {
        Err(EngineError::new(format!(
            "setting \"{key}\" has a name that no postgres parameter can have; write letters, \
            digits and underscores"
        )))
    }
}

/// The value without the quotes that a line of a `postgresql.conf` may have around it.
fn unquoted(key: &str, value: &str) -> Result<String, EngineError> {
    if value.chars().any(char::is_control) {
        return Err(EngineError::new(format!(
            "setting {key} has a control character in its value; write it on one line"
        )));
    }
    let value = value.trim();
    let inner = value
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    Ok(inner.map_or_else(|| value.to_owned(), |inner| inner.replace("''", "'")))
}

/// An amount of memory in a unit that every version reads: plans write `MiB` where the server
/// writes `MB` for the same, and before 11 it did not know bytes. Anything else stays as it is.
fn in_server_units(value: String) -> String {
    let digits = value.len()
        - value
            .trim_start_matches(|character: char| character.is_ascii_digit())
            .len();
    let (number, unit) = value.split_at(digits);
    let unit = match unit.trim_start() {
        "KiB" => "kB",
        "MiB" => "MB",
        "GiB" => "GB",
        "TiB" => "TB",
        "B" => {
            return number
                .parse()
                .ok()
                .filter(|bytes: &u64| *bytes >= 1024)
                .map_or(value.clone(), |bytes| format!("{}kB", bytes / 1024));
        }
        _ => return value,
    };
    format!("{number}{unit}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn major(text: &str) -> Major {
        Major::parse(text).unwrap()
    }

    fn config(pairs: &[(&str, &str)], version: &str) -> Result<Config, String> {
        let settings = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Config::new(&settings, major(version)).map_err(|error| error.message)
    }

    #[test]
    fn versions_have_a_major() {
        for (text, expected) in [
            ("9.6.24", Some("9.6")),
            ("9.6", Some("9.6")),
            ("10.23", Some("10")),
            ("16.4", Some("16")),
            ("18.6 (Debian 18.6-1)", Some("18")),
            ("19~rc1", Some("19")),
            ("19beta2", Some("19")),
            ("9", None),
            ("devel", None),
            ("", None),
        ] {
            assert_eq!(
                Major::of_version(text)
                    .map(|major| major.to_string())
                    .as_deref(),
                expected,
                "{text}"
            );
        }
        assert!(major("9.6") < major("10") && major("10") < major("18"));
        assert_eq!(Major::parse("16.4"), None);
    }

    #[test]
    fn each_version_gets_what_is_for_it() {
        let lines = [
            ("io_method@18", "sync"),
            ("jit@11", "off"),
            ("old@-10", "1"),
            ("mid@9.6-12", "2"),
            ("Shared_Buffers", "'64MB'"),
        ];
        let names = |config: &Config| config.parameters.keys().cloned().collect::<Vec<_>>();
        let new = config(&lines, "18").unwrap();
        assert_eq!(names(&new), ["io_method", "jit", "shared_buffers"]);
        assert_eq!(new.parameters["shared_buffers"], "64MB");
        assert_eq!(
            new.not_applied["old@-10"],
            "needs <= 10, this is 18 (value 1)"
        );
        let old = config(&lines, "9.6").unwrap();
        assert_eq!(names(&old), ["mid", "old", "shared_buffers"]);
        assert_eq!(
            old.not_applied["io_method@18"],
            "needs >= 18, this is 9.6 (value sync)"
        );
        assert_eq!(old.not_applied.len(), 2);
    }

    #[test]
    fn memory_has_units_that_every_version_reads() {
        for (value, expected) in [
            ("64MiB", "64MB"),
            ("1 GiB", "1GB"),
            ("8KiB", "8kB"),
            ("6442450944B", "6291456kB"),
            ("1000B", "1000B"),
            ("64MB", "64MB"),
            ("16384", "16384"),
            ("B", "B"),
            ("MiB of text", "MiB of text"),
            ("1.5GB", "1.5GB"),
            ("pg_stat_statements", "pg_stat_statements"),
        ] {
            assert_eq!(in_server_units(value.to_owned()), expected);
        }
    }

    #[test]
    fn checksums_are_on_unless_switched_off() {
        assert!(config(&[], "16").unwrap().has_data_checksums);
        assert!(
            !config(&[("data_checksums", "off")], "16")
                .unwrap()
                .has_data_checksums
        );
        assert!(
            config(&[("data_checksums@17", "off")], "16")
                .unwrap()
                .has_data_checksums
        );
        assert!(
            config(&[("data_checksums", "off")], "16")
                .unwrap()
                .parameters
                .is_empty()
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (key, value, wanted) in [
            ("port", "5433", "setting port is not the config's"),
            ("Unix_Socket_Directories", "/x", "is not the config's"),
            ("include", "x.conf", "is not the config's"),
            ("a b", "1", "has a name that no postgres parameter can have"),
            ("", "1", "has a name"),
            ("a.b.c", "1", "has a name"),
            ("a = 1\nport", "1", "has a name"),
            ("jit@", "off", "what follows @ must be versions"),
            ("jit@11-9.6", "off", "what follows @ must be versions"),
            ("jit@16.4", "off", "what follows @ must be versions"),
            ("jit", "off\nport = 1", "control character"),
            (
                "data_checksums",
                "yes",
                "cannot be \"yes\": write on or off",
            ),
        ] {
            let message = config(&[(key, value)], "16").unwrap_err();
            assert!(message.contains(wanted), "{key}: {message}");
        }
        let message = config(&[("jit@-16", "off"), ("jit@15", "on")], "16").unwrap_err();
        assert!(
            message.contains("setting jit is there twice for postgres 16"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn a_value_stays_one_value_on_one_line(value in "[ -~]{0,20}") {
            let text = file_text([("name", value.as_str())]);
            prop_assert_eq!(text.lines().count(), 1);
            let inner = text.strip_prefix("name = '").unwrap().strip_suffix("'\n").unwrap();
            // The server's rule: two quotes are one, a backslash takes the next character as it is.
            let mut characters = inner.chars();
            let mut read = String::new();
            while let Some(character) = characters.next() {
                read.push(match character {
                    '\'' => { prop_assert_eq!(characters.next(), Some('\'')); '\'' }
                    '\\' => characters.next().unwrap(),
                    other => other,
                });
            }
            prop_assert_eq!(read, value);
        }
    }
}
