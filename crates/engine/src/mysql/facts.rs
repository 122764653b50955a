//! What a session of MySQL or MariaDB is like.

use std::collections::BTreeMap;

use crate::{Settings, SqlError, SqlSession};

/// Older servers have the second name of the isolation level.
const VARIABLES: &str = "show session variables where variable_name in ('autocommit', \
    'character_set_client', 'character_set_connection', 'character_set_database', \
    'character_set_results', 'collation_connection', 'collation_database', 'protocol_version', \
    'sql_mode', 'time_zone', 'transaction_isolation', 'tx_isolation')";

const STATUS: &str = "show session status where variable_name in ('Compression', 'Ssl_cipher', \
    'Ssl_version')";

/// Asks the server about this session.
pub(super) fn of_session(session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
    let mut told = Told::new();
    for sql in [VARIABLES, STATUS] {
        session.for_each_row(sql, &mut |row| {
            if let [name, value, ..] = row {
                told.insert(name.to_ascii_lowercase(), (*value).to_owned());
            }
        })?;
    }
    Ok(facts(&told))
}

/// Variables and status of a session, names in small letters.
type Told = BTreeMap<String, String>;

/// The facts under the names that all engines use; what the server does not tell is left out.
fn facts(told: &Told) -> Settings {
    let value = |name: &str| told.get(name).map(String::as_str);
    let small = |name: &str| value(name).map(str::to_ascii_lowercase);
    let isolation = small("transaction_isolation").or_else(|| small("tx_isolation"));
    let facts = [
        ("character_set", character_set(told)),
        ("collation", small("collation_connection")),
        ("database_character_set", small("character_set_database")),
        ("database_collation", small("collation_database")),
        ("isolation", isolation.map(|level| level.replace('-', " "))),
        ("autocommit", small("autocommit")),
        ("sql_mode", value("sql_mode").map(mode)),
        ("time_zone", value("time_zone").map(str::to_owned)),
        ("protocol", value("protocol_version").map(protocol)),
        (
            "tls",
            value("ssl_cipher").map(|cipher| tls(cipher, value("ssl_version"))),
        ),
        ("compression", small("compression")),
    ];
    facts
        .into_iter()
        .filter_map(|(name, fact)| Some((name.to_owned(), fact?)))
        .collect()
}

/// One name if client, connection and results have the same; otherwise all three.
fn character_set(told: &Told) -> Option<String> {
    let of = |what: &str| told.get(&format!("character_set_{what}"));
    let (client, connection, results) = (of("client")?, of("connection")?, of("results")?);
    Some(if client == connection && client == results {
        client.clone()
    } else {
        format!("client {client}, connection {connection}, results {results}")
    })
}

/// Servers list the modes in the order of their own versions.
fn mode(text: &str) -> String {
    let mut modes: Vec<&str> = text.split(',').filter(|mode| !mode.is_empty()).collect();
    modes.sort_unstable();
    if modes.is_empty() {
        return "none".to_owned();
    }
    modes.join(", ")
}

fn protocol(version: &str) -> String {
    format!("MySQL {version}")
}

fn tls(cipher: &str, version: Option<&str>) -> String {
    match version {
        _ if cipher.is_empty() => "none".to_owned(),
        Some(version) => format!("{version} {cipher}"),
        None => cipher.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pairs: &[(&str, &str)]) -> Told {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn facts_have_the_same_words_in_every_version() {
        let sets = [
            ("character_set_client", "utf8mb4"),
            ("character_set_connection", "utf8mb4"),
            ("character_set_results", "utf8mb4"),
        ];
        let old = [("tx_isolation", "REPEATABLE-READ"), ("ssl_cipher", "")];
        let new = [
            ("transaction_isolation", "READ-COMMITTED"),
            ("sql_mode", "STRICT_TRANS_TABLES,ANSI_QUOTES"),
            ("ssl_cipher", "TLS_AES_256_GCM_SHA384"),
            ("ssl_version", "TLSv1.3"),
        ];
        let (old, new) = (
            facts(&told(&[&sets[..], &old[..]].concat())),
            facts(&told(
                &[&sets[..2], &[("character_set_results", "latin1")], &new[..]].concat(),
            )),
        );
        let text = |facts: &Settings| {
            let facts = facts.iter();
            facts
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(";")
        };
        assert_eq!(
            text(&old),
            "character_set=utf8mb4;isolation=repeatable read;tls=none"
        );
        assert_eq!(
            text(&new),
            "character_set=client utf8mb4, connection utf8mb4, results latin1;\
            isolation=read committed;sql_mode=ANSI_QUOTES, STRICT_TRANS_TABLES;\
            tls=TLSv1.3 TLS_AES_256_GCM_SHA384"
        );
    }
}
