//! The version of a server of this family, and what differs by it.

use std::fmt;

/// Which line a server belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    Mysql,
    Mariadb,
}

/// Flavor, major, minor, patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub flavor: Flavor,
    pub numbers: (u32, u32, u32),
}

impl Version {
    /// Reads the leading numbers of a version text: `8.0.33`, `10.11.19-MariaDB-0+deb12u1`,
    /// `5.6.35-202312210105.static`, `9.7`. MariaDB puts its name into the text of every version.
    pub fn parse(text: &str, is_mariadb: bool) -> Option<Self> {
        let text = text.trim();
        let numbers = &text[..text
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(text.len())];
        let mut parts = numbers.split('.').map(str::parse::<u32>);
        let major = parts.next()?.ok()?;
        let minor = parts.next()?.ok()?;
        let patch = match parts.next() {
            Some(patch) => patch.ok()?,
            None => 0,
        };
        let flavor = if is_mariadb || text.contains("MariaDB") {
            Flavor::Mariadb
        } else {
            Flavor::Mysql
        };
        Some(Self {
            flavor,
            numbers: (major, minor, patch),
        })
    }

    /// The statement that drops all binary logs: MySQL 8.4 took the old one away.
    pub fn reset_binlogs(self) -> &'static str {
        match self.flavor {
            Flavor::Mysql if self.numbers >= (8, 4, 0) => "reset binary logs and gtids",
            _ => "reset master",
        }
    }

    /// Whether the redo log's files must have the configured size already when the server starts:
    /// up to MySQL 5.6.7 another size is an error, later servers make new files.
    pub fn has_fixed_redo_size(self) -> bool {
        self.flavor == Flavor::Mysql && self.numbers < (5, 6, 8)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.numbers;
        let name = match self.flavor {
            Flavor::Mysql => "MySQL",
            Flavor::Mariadb => "MariaDB",
        };
        write!(f, "{name} {major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_all_lines_are_read() {
        let table = [
            ("5.5.9", false, "MySQL 5.5.9", "reset master", true),
            ("5.6.24-log", false, "MySQL 5.6.24", "reset master", false),
            (
                "5.6.35-202312210105.static",
                false,
                "MySQL 5.6.35",
                "reset master",
                false,
            ),
            ("8.0.33", false, "MySQL 8.0.33", "reset master", false),
            (
                "8.4.0",
                false,
                "MySQL 8.4.0",
                "reset binary logs and gtids",
                false,
            ),
            (
                "9.7.4-2",
                false,
                "MySQL 9.7.4",
                "reset binary logs and gtids",
                false,
            ),
            (
                "9.7",
                false,
                "MySQL 9.7.0",
                "reset binary logs and gtids",
                false,
            ),
            (
                "10.11.19-MariaDB-0+deb12u1",
                false,
                "MariaDB 10.11.19",
                "reset master",
                false,
            ),
            ("11.8.6", true, "MariaDB 11.8.6", "reset master", false),
        ];
        for (text, is_mariadb, shown, reset, has_fixed_redo_size) in table {
            let version = Version::parse(text, is_mariadb).unwrap();
            assert_eq!(version.to_string(), shown);
            assert_eq!(
                (version.reset_binlogs(), version.has_fixed_redo_size()),
                (reset, has_fixed_redo_size),
                "{text}"
            );
        }
        for text in ["", "eight", "8", "8.", "8.x"] {
            assert_eq!(Version::parse(text, false), None, "{text}");
        }
    }
}
