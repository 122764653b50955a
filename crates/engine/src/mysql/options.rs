//! The settings of a config: checked without a server, and written as the file that the server
//! reads.

use std::path::Path;

use crate::{EngineError, Settings};

/// Our own setting: what tables are made with. The server never sees it.
const STORAGE_ENGINE: &str = "storage_engine";
const DEFAULT_STORAGE_ENGINE: &str = "innodb";

/// One character set for all versions: their defaults differ, and with them the bytes of a row and
/// the cost of a comparison.
const DEFAULT_CHARSET: &str = "latin1";

/// The binary log's name in the data directory.
const BINLOG_NAME: &str = "binlog";

/// Options that a config cannot have, and why.
const OWNED: &[(&str, &str)] = &[
    ("basedir", "the build decides it"),
    ("bind_address", "servers listen on loopback alone"),
    ("bootstrap", "it is part of making a data directory"),
    ("character_sets_dir", "the build decides it"),
    ("chroot", "a trial's files are in its own data directory"),
    ("daemonize", "the server's process is watched"),
    ("datadir", "each trial has its own"),
    ("defaults_extra_file", "all settings are in the config"),
    ("defaults_file", "all settings are in the config"),
    ("defaults_group_suffix", "all settings are in the config"),
    ("gdb", "the server's process is watched"),
    (
        "init_file",
        "the data a trial begins with is the workload's",
    ),
    ("initialize", "it is part of making a data directory"),
    (
        "initialize_insecure",
        "it is part of making a data directory",
    ),
    ("lc_messages_dir", "the build decides it"),
    ("log_bin_basename", "set log_bin = on"),
    ("log_error", "the server's log is kept with the trial"),
    ("no_defaults", "all settings are in the config"),
    ("pid_file", "the server's process is watched"),
    ("plugin_dir", "the build decides it"),
    (
        "plugin_load",
        "set storage_engine, the build knows its plugin",
    ),
    (
        "plugin_load_add",
        "set storage_engine, the build knows its plugin",
    ),
    ("port", "a free one is taken"),
    ("grant_tables", "sessions need accounts"),
    ("networking", "the transport decides it"),
    ("socket", "it is in the data directory"),
    ("standalone", "the server's process is watched"),
    ("tmpdir", "each trial has its own"),
    ("user", "it is the user who runs this"),
];

/// Settings that a data directory is made with and keeps: its page size, its shape, the case of
/// names.
const SHAPE: &[&str] = &[
    "innodb_checksum_algorithm",
    "innodb_data_file_path",
    "innodb_file_format",
    "innodb_page_size",
    "innodb_undo_tablespaces",
    "lower_case_table_names",
];

/// One option of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerOption {
    /// With `_`, without `loose_`.
    pub name: String,
    /// Nothing for an option that stands alone.
    pub value: Option<String>,
    /// Whether a version that does not know it may go without.
    pub is_loose: bool,
}

impl ServerOption {
    fn new(name: &str, value: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            is_loose: false,
        }
    }

    fn line(&self) -> String {
        let loose = if self.is_loose { "loose_" } else { "" };
        match &self.value {
            Some(value) => format!("{loose}{} = {}\n", self.name, quoted(value)),
            None => format!("{loose}{}\n", self.name),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerConfig {
    /// In the order of their names.
    pub options: Vec<ServerOption>,
    /// The table option `engine`.
    pub storage_engine: String,
    /// Whether the server writes a binary log. Set explicitly for all versions: their
    /// defaults differ.
    pub has_binlog: bool,
    /// Of the server and of all sessions.
    pub charset: String,
}

impl ServerConfig {
    /// Checks names and values. Whether a version knows an option only its server can tell.
    pub fn parse(settings: &Settings) -> Result<Self, EngineError> {
        let mut config = Self {
            options: Vec::new(),
            storage_engine: DEFAULT_STORAGE_ENGINE.to_owned(),
            has_binlog: false,
            charset: DEFAULT_CHARSET.to_owned(),
        };
        let mut binlog_setting = None;
        for (written, value) in settings {
            let (name, is_loose) = checked_name(written)?;
            let value = checked_value(written, value)?;
            if let Some(has_binlog) = binlog_switch(written, &name, value)? {
                if let Some(other) = binlog_setting.replace(written) {
                    return Err(EngineError::new(format!(
                        "settings {other} and {written} both decide the binary log: keep one of \
                        them"
                    )));
                }
                config.has_binlog = has_binlog;
                continue;
            }
            // Named in `create table`, not in the option file: a server would make its own tables
            // with it.
            if name == STORAGE_ENGINE {
                config.storage_engine = checked_word(written, value)?.to_owned();
                continue;
            }
            if name == "character_set_server" {
                config.charset = checked_word(written, value)?.to_owned();
            }
            let value = if value.is_empty() {
                None
            } else {
                Some(value.to_owned())
            };
            config.options.push(ServerOption {
                name,
                value,
                is_loose,
            });
        }
        config.options.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = config
            .options
            .windows(2)
            .find(|pair| pair[0].name == pair[1].name)
        {
            return Err(EngineError::new(format!(
                "setting {} is there twice (- and _ are the same): keep one of them",
                pair[0].name
            )));
        }
        Ok(config)
    }

    fn sets(&self, name: &str) -> bool {
        self.options.iter().any(|option| option.name == name)
    }

    /// Whether tables are RocksDB's.
    pub fn is_rocksdb(&self) -> bool {
        self.storage_engine.eq_ignore_ascii_case("rocksdb")
    }

    /// The file the server starts with: what must be equal for all versions unless the config says
    /// otherwise, then the config.
    pub fn cnf(&self) -> String {
        let mut text = "[mysqld]\n".to_owned();
        for option in self.fixed() {
            text += &option.line();
        }
        for option in &self.options {
            text += &option.line();
        }
        text
    }

    fn fixed(&self) -> Vec<ServerOption> {
        let mut fixed = Vec::new();
        if !self.sets("character_set_server") {
            fixed.push(ServerOption::new("character_set_server", DEFAULT_CHARSET));
            if !self.sets("collation_server") {
                fixed.push(ServerOption::new("collation_server", "latin1_swedish_ci"));
            }
        }
        if self.has_binlog {
            fixed.push(ServerOption::new("log_bin", BINLOG_NAME));
            if !self.sets("server_id") {
                // MySQL 5.7 does not start with a log and without a number.
                fixed.push(ServerOption::new("server_id", "1"));
            }
        } else {
            fixed.push(ServerOption {
                name: "skip_log_bin".to_owned(),
                value: None,
                is_loose: false,
            });
        }
        fixed
    }

    /// The file a data directory is made with: only what it keeps. Everything else would make the
    /// making slow, and plugins, which are not loaded then, would not be known.
    pub fn init_cnf(&self, tmp: &Path) -> String {
        // In the file, as it must reach the server that MariaDB's script starts.
        let mut text = format!(
            "[mysqld]\ntmpdir = {}\n",
            quoted(&tmp.display().to_string())
        );
        for option in self
            .options
            .iter()
            .filter(|option| SHAPE.contains(&option.name.as_str()))
        {
            text += &option.line();
        }
        text
    }
}

/// A name with `_` and without `loose_`, and whether it had that.
fn checked_name(written: &str) -> Result<(String, bool), EngineError> {
    let is_plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-' || c == '.';
    if !written.starts_with(|c: char| c.is_ascii_lowercase()) || !written.chars().all(is_plain) {
        return Err(EngineError::new(format!(
            "setting \"{written}\" is not an option's name: write it as in a my.cnf, with small \
            letters, digits, - and _"
        )));
    }
    let name = written.replace('-', "_");
    let (name, is_loose) = match name.strip_prefix("loose_") {
        Some(rest) => (rest.to_owned(), true),
        None => (name, false),
    };
    let bare = ["skip_", "disable_", "enable_", "maximum_"]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(&name);
    match OWNED.iter().find(|(owned, _)| *owned == bare) {
        Some((_, why)) => Err(EngineError::new(format!(
            "setting {written} cannot be in a config: {why}; take it out"
        ))),
        None => Ok((name, is_loose)),
    }
}

/// A value without the quotes around it. Files stay in the data directory, so that they go away
/// with it.
fn checked_value<'a>(written: &str, value: &'a str) -> Result<&'a str, EngineError> {
    let value = value.trim();
    let value = ['"', '\'']
        .iter()
        .find_map(|&quote| {
            value
                .strip_prefix(quote)
                .and_then(|rest| rest.strip_suffix(quote))
        })
        .unwrap_or(value);
    if value.chars().any(char::is_control) {
        return Err(EngineError::new(format!(
            "setting {written} has a line break or another control character in its value: take it \
            out"
        )));
    }
    if value.contains('"') && value.contains('\'') {
        return Err(EngineError::new(format!(
            "setting {written} has both kinds of quotes in its value: a my.cnf cannot say that"
        )));
    }
    let is_outside = value.starts_with('/')
        || value.starts_with('~')
        || value.split('/').any(|part| part == "..");
    if is_outside {
        return Err(EngineError::new(format!(
            "setting {written} = {value} leads out of the trial's data directory, where nobody \
            would clean up: write a name without a folder"
        )));
    }
    Ok(value)
}

fn checked_word<'a>(written: &str, value: &'a str) -> Result<&'a str, EngineError> {
    let is_word = !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word {
        Ok(value)
    } else {
        Err(EngineError::new(format!(
            "setting {written} cannot be \"{value}\": write one word"
        )))
    }
}

/// Whether an option turns the binary log on or off; `None` for all other options. As text in a
/// my.cnf, `log_bin = OFF` would make a log of that name.
fn binlog_switch(written: &str, name: &str, value: &str) -> Result<Option<bool>, EngineError> {
    let is_on = match name {
        "log_bin" | "enable_log_bin" => true,
        "skip_log_bin" | "disable_log_bin" => false,
        _ => return Ok(None),
    };
    let has_yes = match switch(value) {
        Some(on) => on,
        None if value.is_empty() => true,
        None => {
            return Err(EngineError::new(format!(
                "setting {written} cannot be \"{value}\": write on or off, its files have a name \
                already"
            )));
        }
    };
    Ok(Some(is_on == has_yes))
}

/// The truth of a switch; `None` for what is none.
pub(super) fn switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "on" | "true" | "yes" => Some(true),
        "0" | "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// A value as a my.cnf takes it: `#` begins a comment there, and blanks at the ends are lost.
fn quoted(value: &str) -> String {
    match (
        value.contains(['#', '"', '\'', ' ', '\t']),
        value.contains('"'),
    ) {
        (false, _) => value.to_owned(),
        (true, false) => format!("\"{value}\""),
        (true, true) => format!("'{value}'"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<ServerConfig, String> {
        let settings = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        ServerConfig::parse(&settings).map_err(|error| error.message)
    }

    #[test]
    fn without_settings_charset_and_binlog_are_said_all_the_same() {
        let config = parse(&[]).unwrap();
        assert_eq!(
            config.cnf(),
            "[mysqld]\ncharacter_set_server = latin1\ncollation_server = \
            latin1_swedish_ci\nskip_log_bin\n"
        );
        assert_eq!(config.init_cnf(Path::new("/t")), "[mysqld]\ntmpdir = /t\n");
        assert_eq!(
            (
                config.storage_engine.as_str(),
                config.is_rocksdb(),
                config.has_binlog
            ),
            ("innodb", false, false)
        );
    }

    #[test]
    fn a_config_becomes_the_servers_file() {
        let config = parse(&[
            ("innodb-buffer-pool-size", "4G"),
            ("loose_innodb_page_size", "16k"),
            ("log-bin", "ON"),
            ("storage_engine", "RocksDB"),
            ("skip-name-resolve", ""),
            (
                "rocksdb_default_cf_options",
                "\"write_buffer_size=32m;block_based_table_factory={format_version=3}\"",
            ),
            ("init_connect", "set @a = '#'"),
        ])
        .unwrap();
        assert_eq!(
            config.cnf(),
            "[mysqld]\ncharacter_set_server = latin1\ncollation_server = \
            latin1_swedish_ci\nlog_bin = binlog\nserver_id = 1\n\
             init_connect = \"set @a = '#'\"\ninnodb_buffer_pool_size = 4G\nloose_innodb_page_size \
            = 16k\n\
             rocksdb_default_cf_options = \
            write_buffer_size=32m;block_based_table_factory={format_version=3}\nskip_name_resolve\n"
        );
        assert_eq!(
            config.init_cnf(Path::new("/a b")),
            "[mysqld]\ntmpdir = \"/a b\"\nloose_innodb_page_size = 16k\n"
        );
        assert!(config.is_rocksdb());
        let other = parse(&[
            ("character_set_server", "utf8mb4"),
            ("log_bin", "1"),
            ("server_id", "7"),
        ])
        .unwrap();
        assert_eq!(
            other.cnf(),
            "[mysqld]\nlog_bin = binlog\ncharacter_set_server = utf8mb4\nserver_id = 7\n"
        );
        assert_eq!(other.charset, "utf8mb4");
    }

    #[test]
    fn the_binlog_is_on_or_off_however_it_is_written() {
        let table = [
            (("log_bin", ""), true),
            (("log-bin", "1"), true),
            (("log_bin", "OFF"), false),
            (("skip-log-bin", ""), false),
            (("disable_log_bin", "0"), true),
            (("loose_log_bin", "0"), false),
        ];
        for (pair, has_binlog) in table {
            assert_eq!(parse(&[pair]).unwrap().has_binlog, has_binlog, "{pair:?}");
        }
        assert!(
            parse(&[("log_bin", "mysql-bin")])
                .unwrap_err()
                .contains("write on or off")
        );
        assert!(
            parse(&[("log_bin", "1"), ("skip_log_bin", "")])
                .unwrap_err()
                .contains("both decide the binary log")
        );
    }

    #[test]
    fn what_is_ours_or_dangerous_is_refused_by_name() {
        for name in [
            "datadir",
            "socket",
            "port",
            "user",
            "pid-file",
            "log_error",
            "plugin-load",
            "loose-plugin_load_add",
            "skip-networking",
        ] {
            let message = parse(&[(name, "x")]).unwrap_err();
            assert!(
                message.starts_with(&format!("setting {name} cannot be in a config: ")),
                "{message}"
            );
        }
        assert!(
            parse(&[("skip-grant-tables", "")])
                .unwrap_err()
                .contains("sessions need accounts")
        );
        let table = [
            ("Innodb_Page_Size", "16k", "is not an option's name"),
            ("innodb page size", "16k", "is not an option's name"),
            ("_x", "1", "is not an option's name"),
            (
                "slow_query_log_file",
                "/var/log/slow.log",
                "leads out of the trial's data directory",
            ),
            (
                "innodb_tmpdir",
                "a/../../b",
                "leads out of the trial's data directory",
            ),
            ("sql_mode", "a\nskip_grant_tables", "a line break"),
            ("init_connect", "'\"", "both kinds of quotes"),
            ("storage_engine", "innodb; drop", "write one word"),
        ];
        for (name, value, part) in table {
            let message = parse(&[(name, value)]).unwrap_err();
            assert!(
                message.contains(part) && message.contains(name),
                "{message}"
            );
        }
        assert!(
            parse(&[("a-b", "1"), ("a_b", "2")])
                .unwrap_err()
                .contains("setting a_b is there twice")
        );
    }

    proptest! {
        /// No name and no value puts a second line or a comment into the file.
        #[test]
        fn a_setting_is_one_line(name in "[a-z][a-z0-9_-]{0,20}", value in "\\PC{0,20}") {
            let settings = Settings::from([(name, value)]);
            if let Ok(config) = ServerConfig::parse(&settings) {
                let plain = ServerConfig::parse(&Settings::new()).unwrap();
                prop_assert!(config.cnf().lines().count() <= plain.cnf().lines().count() + 1);
                for line in config.cnf().lines().skip(1) {
                    prop_assert!(line.starts_with(|c: char| c.is_ascii_lowercase()), "{line}");
                }
            }
        }
    }
}
