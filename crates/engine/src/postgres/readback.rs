//! Whether the server runs with what the config says, in the server's own words.

use std::path::Path;

use postgres::Client;

use super::link::rows;
use super::options::Config;
use crate::{EngineError, Settings};

/// The file that the config's parameters are written to, in the data directory.
pub(super) const FILE_NAME: &str = "plimsoll.conf";

/// Parameters that tell where a server's files are or who asks, and so differ between servers that
/// are set up alike.
const PLACES: &str = "'application_name','config_file','data_directory','external_pid_file',\
                      'hba_file','ident_file','port','unix_socket_directories'";

/// Parameters with something in them that is nobody's business but the server's owner's.
const SECRETS: &[&str] = &[
    "archive_cleanup_command",
    "archive_command",
    "krb_server_keyfile",
    "primary_conninfo",
    "recovery_end_command",
    "restore_command",
    "ssl_passphrase_command",
];

/// The source of a custom parameter: one with a dot that no module defines. The server keeps it for
/// statements, and does not list it.
const CUSTOM: &str = "custom";

/// Takes out what an external server's owner would not want in a report.
pub(super) fn hide_secrets(settings: &mut Settings) {
    settings.retain(|name, _| !SECRETS.contains(&name.as_str()));
}

/// A parameter as `pg_settings` has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    name: String,
    /// In the unit of the parameter.
    setting: String,
    /// As SHOW writes it.
    shown: String,
    source: String,
    source_file: String,
    is_pending: bool,
}

pub(super) fn read(client: &mut Client) -> Result<Vec<Found>, postgres::Error> {
    let sql = "select name, setting, current_setting(name), source, sourcefile, pending_restart \
              from pg_settings";
    let found = rows(client, sql)?;
    let text =
        |row: &postgres::SimpleQueryRow, column| row.get(column).unwrap_or_default().to_owned();
    Ok(found
        .iter()
        .map(|row| Found {
            name: text(row, 0),
            setting: text(row, 1),
            shown: text(row, 2),
            source: text(row, 3),
            source_file: text(row, 4),
            is_pending: row.get(5) == Some("t"),
        })
        .collect())
}

/// The custom ones among the config's parameters. A class that is the name of a module that this
/// server could load is not a custom one: there the parameter would mean nothing, because the
/// module is not loaded or does not know it.
pub(super) fn read_custom(
    client: &mut Client,
    config: &Config,
    found: &[Found],
) -> Result<Vec<Found>, postgres::Error> {
    let mut custom = Vec::new();
    for name in config.parameters.keys().filter(|name| {
        !found
            .iter()
            .any(|found| found.name.eq_ignore_ascii_case(name))
    }) {
        let Some((class, _)) = name.split_once('.') else {
            continue;
        };
        // Names are letters, digits and underscores.
        let sql = format!(
            "select current_setting('{name}', true), (select setting from pg_config where name = \
            'PKGLIBDIR') where not exists (select from pg_available_extensions where name = \
            '{class}')"
        );
        let values = rows(client, &sql)?;
        let Some((value, libraries)) = values
            .first()
            .and_then(|row| Some((row.get(0)?, row.get(1)?)))
        else {
            continue;
        };
        // The server is ours: its libraries are on this machine.
        if !Path::new(libraries).join(format!("{class}.so")).exists() {
            let (value, shown) = (value.to_owned(), value.to_owned());
            custom.push(Found {
                name: name.clone(),
                setting: value,
                shown,
                source: CUSTOM.to_owned(),
                ..Found::default()
            });
        }
    }
    Ok(custom)
}

impl Found {
    /// The name of a custom parameter.
    pub fn custom_name(&self) -> Option<&str> {
        (self.source == CUSTOM).then_some(&*self.name)
    }

    /// Whether it is what our file says. PostgreSQL knows where each value comes from, so units and
    /// synonyms need no comparison here; only a value from elsewhere is looked at.
    fn has_taken(&self, wanted: &str) -> bool {
        let is_ours = self.source == "configuration file"
            && self.source_file.ends_with(&format!("/{FILE_NAME}"));
        // -1 lets the server choose, and it then names itself as the source.
        let is_chosen_by_server =
            wanted == "-1" && matches!(self.source.as_str(), "default" | "override");
        let is_equal = [&self.setting, &self.shown]
            .into_iter()
            .any(|value| value.eq_ignore_ascii_case(wanted));
        !self.is_pending && (is_ours || is_chosen_by_server || is_equal)
    }
}

/// Compares what was found with the config.
pub(super) fn check(config: &Config, found: &[Found], version: &str) -> Result<(), EngineError> {
    let find = |name: &str| {
        found
            .iter()
            .find(|found| found.name.eq_ignore_ascii_case(name))
    };
    for (name, wanted) in &config.parameters {
        match find(name) {
            Some(found) if found.has_taken(wanted) => {}
            Some(found) => {
                let pending = if found.is_pending {
                    ", and wants another restart"
                } else {
                    ""
                };
                return Err(EngineError::new(format!(
                    "postgres {version} did not take {name} = {wanted}: it runs with {} from \
                    {}{pending}; remove what overrides the config, or set what this version can do",
                    found.shown,
                    if found.source_file.is_empty() {
                        &found.source
                    } else {
                        &found.source_file
                    }
                )));
            }
            // A parameter of a module that is not loaded is stored by the server, and means
            // nothing.
            None => {
                return Err(EngineError::new(format!(
                    "postgres {version} has no parameter {name} although it did not refuse it; \
                    load the extension that it belongs to (shared_preload_libraries), or remove it"
                )));
            }
        }
    }
    let wanted = if config.has_data_checksums {
        "on"
    } else {
        "off"
    };
    match find("data_checksums") {
        Some(found) if found.shown != wanted => Err(EngineError::new(format!(
            "the data directory has data_checksums = {} and the config wants {wanted}: they are \
            chosen when it is made; give it an empty data directory",
            found.shown
        ))),
        _ => Ok(()),
    }
}

/// What a server runs with, as SHOW writes it, without what differs from server to server. What the
/// config has for other versions is there as `not applied: NAME`, with the reason, and of `custom`
/// parameters both their value and `custom parameter: NAME`.
pub(super) fn effective(
    client: &mut Client,
    not_applied: &Settings,
    custom: &[String],
) -> Result<Settings, postgres::Error> {
    let sql =
        format!("select name, current_setting(name) from pg_settings where name not in ({PLACES})");
    let mut settings: Settings = rows(client, &sql)?
        .iter()
        .filter_map(|row| {
            Some((
                row.get(0)?.to_owned(),
                row.get(1).unwrap_or_default().to_owned(),
            ))
        })
        .collect();
    settings.extend(
        not_applied
            .iter()
            .map(|(name, reason)| (format!("not applied: {name}"), reason.clone())),
    );
    for name in custom {
        let value = rows(client, &format!("select current_setting('{name}', true)"))?;
        let value = value
            .first()
            .and_then(|row| row.get(0))
            .unwrap_or_default()
            .to_owned();
        settings.insert(name.clone(), value);
        settings.insert(
            format!("custom parameter: {name}"),
            "no module of this server defines it".to_owned(),
        );
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::options::Major;

    fn found(
        setting: &str,
        shown: &str,
        source: &str,
        source_file: &str,
        is_pending: bool,
    ) -> Found {
        let [setting, shown, source, source_file] =
            [setting, shown, source, source_file].map(str::to_owned);
        Found {
            name: "wal_buffers".into(),
            setting,
            shown,
            source,
            source_file,
            is_pending,
        }
    }

    #[test]
    fn a_value_takes_when_it_comes_from_our_file_or_is_equal() {
        let ours = "/d/pgdata/plimsoll.conf";
        let file = "configuration file";
        for (wanted, found, expected) in [
            ("16MB", found("2048", "16MB", file, ours, false), true),
            ("16384kB", found("2048", "16MB", file, ours, false), true),
            ("16384kB", found("2048", "16MB", file, ours, true), false),
            (
                "16MB",
                found("512", "4MB", file, "/d/pgdata/postgresql.auto.conf", false),
                false,
            ),
            (
                "16MB",
                found("2048", "16MB", "command line", "", false),
                true,
            ),
            (
                "2048",
                found("2048", "16MB", "command line", "", false),
                true,
            ),
            (
                "8MB",
                found("2048", "16MB", "command line", "", false),
                false,
            ),
            ("-1", found("2048", "16MB", "override", "", false), true),
            (
                "-1",
                found("2048", "16MB", "command line", "", false),
                false,
            ),
        ] {
            assert_eq!(found.has_taken(wanted), expected, "{wanted} {found:?}");
        }
    }

    #[test]
    fn the_error_names_wanted_and_found() {
        let settings = Settings::from([("wal_buffers".to_owned(), "8MB".to_owned())]);
        let config = Config::new(&settings, Major::of_version("16.4").unwrap()).unwrap();
        let other = found("2048", "16MB", "command line", "", false);
        let message = check(&config, &[other], "16.4").unwrap_err().message;
        assert!(
            message.starts_with(
                "postgres 16.4 did not take wal_buffers = 8MB: it runs with 16MB from command line;"
            ),
            "{message}"
        );
        assert!(
            check(&config, &[], "16.4")
                .unwrap_err()
                .message
                .contains("has no parameter wal_buffers")
        );

        let config = Config::new(&Settings::new(), Major::of_version("16.4").unwrap()).unwrap();
        let checksums = Found {
            name: "data_checksums".into(),
            shown: "off".into(),
            ..Found::default()
        };
        assert!(
            check(&config, &[checksums], "16.4")
                .unwrap_err()
                .message
                .contains("data_checksums = off and the config wants on")
        );
    }
}
