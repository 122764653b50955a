//! The settings of a config, which SQLite calls pragmas: what they may be, setting them, and
//! reading back whether they took.

use plimsoll_core::suggest;

use super::library::{Connection, Failure, Value};
use super::{failure, query};
use crate::{EngineError, Settings, SqlError, SqlSession};

/// A pragma that a config may set.
struct Pragma {
    name: &'static str,
    values: Values,
    kept_in: Kept,
}

/// Where a pragma's value lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// In the file: set before its first page is written.
    File,
    /// In the connection: set on each.
    Connection,
}

/// What a pragma may be set to.
enum Values {
    Integers {
        min: i64,
        max: i64,
    },
    /// A word or its number; SQLite answers with the number.
    Numbered(&'static [(&'static str, i64)]),
    /// A word; SQLite answers with it.
    Words(&'static [&'static str]),
}

const SWITCH: Values = Values::Numbered(&[("off", 0), ("on", 1)]);

const PAGE_SIZES: Values = Values::Numbered(&[
    ("512", 512),
    ("1024", 1024),
    ("2048", 2048),
    ("4096", 4096),
    ("8192", 8192),
    ("16384", 16384),
    ("32768", 32768),
    ("65536", 65536),
]);

/// `journal_mode = off` is not among these: without a journal a transaction that meets a lock
/// cannot be taken back and tried again.
const JOURNAL_MODES: Values = Values::Words(&["delete", "truncate", "persist", "memory", "wal"]);

/// Every pragma a config may set. Unlisted are those that the sessions decide themselves
/// (`busy_timeout`), those that more than one connection cannot live with
/// (`locking_mode = exclusive`), and those that change no performance.
const PRAGMAS: &[Pragma] = &[
    Pragma {
        name: "page_size",
        values: PAGE_SIZES,
        kept_in: Kept::File,
    },
    Pragma {
        name: "auto_vacuum",
        values: Values::Numbered(&[("none", 0), ("full", 1), ("incremental", 2)]),
        kept_in: Kept::File,
    },
    Pragma {
        name: "journal_mode",
        values: JOURNAL_MODES,
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "synchronous",
        values: Values::Numbered(&[("off", 0), ("normal", 1), ("full", 2), ("extra", 3)]),
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "analysis_limit",
        values: Values::Integers {
            min: 0,
            max: 1 << 30,
        },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "automatic_index",
        values: SWITCH,
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "cache_size",
        values: Values::Integers {
            min: -(1 << 31),
            max: (1 << 31) - 1,
        },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "cell_size_check",
        values: SWITCH,
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "foreign_keys",
        values: SWITCH,
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "journal_size_limit",
        values: Values::Integers {
            min: -1,
            max: i64::MAX,
        },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "max_page_count",
        values: Values::Integers {
            min: 1,
            max: 4_294_967_294,
        },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "mmap_size",
        values: Values::Integers {
            min: 0,
            max: i64::MAX,
        },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "secure_delete",
        values: Values::Numbered(&[("off", 0), ("on", 1), ("fast", 2)]),
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "temp_store",
        values: Values::Numbered(&[("default", 0), ("file", 1), ("memory", 2)]),
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "threads",
        values: Values::Integers { min: 0, max: 8 },
        kept_in: Kept::Connection,
    },
    Pragma {
        name: "wal_autocheckpoint",
        values: Values::Integers {
            min: 0,
            max: (1 << 31) - 1,
        },
        kept_in: Kept::Connection,
    },
];

impl Values {
    /// The one way a value is written: the word where there are words, else the number. `None` when
    /// it is not allowed. What comes out is a word of the table or a number, so a setting cannot
    /// carry SQL.
    fn canonical(&self, text: &str) -> Option<String> {
        let text = text.trim();
        match self {
            Self::Integers { min, max } => text
                .parse()
                .ok()
                .filter(|number| (min..=max).contains(&number))
                .map(|number: i64| number.to_string()),
            Self::Numbered(words) => {
                let number = text.parse::<i64>().ok();
                let is_meant = |(word, code): &&(&str, i64)| {
                    word.eq_ignore_ascii_case(text) || number == Some(*code)
                };
                words
                    .iter()
                    .find(is_meant)
                    .map(|(word, _)| (*word).to_owned())
            }
            Self::Words(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(|word| (*word).to_owned()),
        }
    }

    /// What is allowed, for an error.
    fn rule(&self) -> String {
        match self {
            Self::Integers { min, max } => format!("a whole number from {min} to {max}"),
            Self::Numbered(words) => format!(
                "one of {}",
                words
                    .iter()
                    .map(|(word, _)| *word)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            Self::Words(words) => format!("one of {}", words.join(", ")),
        }
    }
}

impl Pragma {
    /// The canonical form of a setting's value.
    fn wanted(&self, value: &str) -> Result<String, EngineError> {
        self.values.canonical(value).ok_or_else(|| {
            EngineError::new(format!(
                "setting {} cannot be \"{value}\": write {}",
                self.name,
                self.values.rule()
            ))
        })
    }

    /// Some pragmas answer with the new value, some with nothing; what counts is read back
    /// afterwards.
    fn set(&self, connection: &Connection, canonical: &str) -> Result<(), Failure> {
        query::run(connection, &format!("PRAGMA {} = {canonical}", self.name))
    }

    /// What SQLite says it runs with, in canonical form; `None` if this version does not know the
    /// pragma, which it does not count as an error.
    fn found(&self, connection: &Connection) -> Result<Option<String>, Failure> {
        query::first(connection, &format!("PRAGMA {}", self.name), |row| {
            let text = match row.value(0) {
                Value::Integer(number) => number.to_string(),
                Value::Text(bytes) => return Ok(String::from_utf8_lossy(bytes).into_owned()),
                value => query::number_of(value)?.to_string(),
            };
            Ok(self.values.canonical(&text).unwrap_or(text))
        })
    }
}

fn find(name: &str) -> Result<&'static Pragma, EngineError> {
    PRAGMAS
        .iter()
        .find(|pragma| pragma.name == name)
        .ok_or_else(|| {
            let known = PRAGMAS.iter().map(|pragma| pragma.name);
            let all = known.clone().collect::<Vec<_>>().join(", ");
            EngineError::new(format!(
                "unknown setting \"{name}\" for sqlite: the pragmas that can be set are {all}{}",
                suggest::hint(name, known)
            ))
        })
}

/// Checks names and values of a config without a database.
pub(super) fn check(settings: &Settings) -> Result<(), EngineError> {
    settings
        .iter()
        .try_for_each(|(name, value)| find(name)?.wanted(value).map(drop))
}

/// Sets the settings that are kept in `kept_in`, then reads each back: one that did not take is an
/// error.
pub(super) fn apply(
    connection: &Connection,
    settings: &Settings,
    kept_in: Kept,
) -> Result<(), EngineError> {
    for pragma in PRAGMAS.iter().filter(|pragma| pragma.kept_in == kept_in) {
        let Some(value) = settings.get(pragma.name) else {
            continue;
        };
        let wanted = pragma.wanted(value)?;
        pragma.set(connection, &wanted).map_err(|error| {
            failure::engine_error(&format!("PRAGMA {} = {wanted}", pragma.name), &error)
        })?;
        let Some(found) = read(connection, pragma)? else {
            return Err(EngineError::new(format!(
                "this version of sqlite does not know the pragma {}; leave it out of the config, \
                or take a newer version",
                pragma.name
            )));
        };
        if found != wanted {
            return Err(EngineError::new(format!(
                "sqlite did not take {} = {wanted}: it runs with {found}; set what this library \
                and this data directory can do",
                pragma.name
            )));
        }
    }
    Ok(())
}

/// Every pragma of the table that this version knows, as it reports it.
pub(super) fn read_all(connection: &Connection) -> Result<Settings, EngineError> {
    let mut settings = Settings::new();
    for pragma in PRAGMAS {
        let value = read(connection, pragma)?;
        settings.extend(value.map(|value| (pragma.name.to_owned(), value)));
    }
    Ok(settings)
}

/// What a session is like: pragmas, their values in the library's words, and what no connection can
/// change: transactions are serializable, because there is one writer at a time.
pub(super) fn session_facts(session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
    let mut facts: Settings = [
        ("isolation", "serializable"),
        ("autocommit", "on"),
        ("collation", "binary"),
        ("protocol", "in process"),
        ("tls", "none"),
        ("compression", "off"),
    ]
    .map(|(name, fact)| (name.to_owned(), fact.to_owned()))
    .into();
    for (fact, pragma) in [
        ("character_set", "encoding"),
        ("journal_mode", "journal_mode"),
        ("synchronous", "synchronous"),
    ] {
        session.for_each_row(&format!("PRAGMA {pragma}"), &mut |row| {
            let value = row.first().copied().unwrap_or_default();
            let known = find(pragma).ok();
            let word = known.and_then(|known| known.values.canonical(value));
            let word = word.unwrap_or_else(|| value.to_lowercase());
            facts.insert(fact.to_owned(), word);
        })?;
    }
    Ok(facts)
}

fn read(connection: &Connection, pragma: &Pragma) -> Result<Option<String>, EngineError> {
    pragma
        .found(connection)
        .map_err(|error| failure::engine_error(&format!("PRAGMA {}", pragma.name), &error))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;
    use crate::sqlite::library::Library;

    fn open(path: &Path) -> Connection {
        Connection::open(Library::bundled(), path, true).unwrap()
    }

    fn one(name: &str, value: &str) -> Settings {
        Settings::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn values_have_one_form_or_are_refused() {
        let table = [
            ("synchronous", "2", Some("full")),
            ("synchronous", "FULL", Some("full")),
            ("synchronous", "4", None),
            ("synchronous", "full; drop table pi1", None),
            ("journal_mode", "WAL", Some("wal")),
            ("journal_mode", "1", None),
            ("journal_mode", "off", None),
            ("cache_size", " -65536 ", Some("-65536")),
            ("cache_size", "64MiB", None),
            ("cache_size", "", None),
            ("page_size", "4096", Some("4096")),
            ("page_size", "5000", None),
            ("threads", "9", None),
        ];
        for (name, value, canonical) in table {
            assert_eq!(
                find(name).unwrap().values.canonical(value).as_deref(),
                canonical,
                "{name} = {value}"
            );
        }
        assert_eq!(
            check(&one("synchronous", "maybe")).unwrap_err().message,
            "setting synchronous cannot be \"maybe\": write one of off, normal, full, extra"
        );
        assert!(
            check(&one("threads", "9"))
                .unwrap_err()
                .message
                .ends_with("write a whole number from 0 to 8")
        );
    }

    #[test]
    fn an_unknown_name_lists_the_known_and_suggests() {
        let message = check(&one("jurnal_mode", "wal")).unwrap_err().message;
        assert!(
            message.starts_with(
                "unknown setting \"jurnal_mode\" for sqlite: the pragmas that can be set are \
                page_size, "
            ),
            "{message}"
        );
        assert!(
            message.ends_with("(did you mean \"journal_mode\"?)"),
            "{message}"
        );
    }

    #[test]
    fn every_pragma_is_known_to_the_library_and_takes_its_own_default() {
        let dir = tempfile::tempdir().unwrap();
        let connection = open(&dir.path().join("t.db"));
        let defaults = read_all(&connection).unwrap();
        assert_eq!(defaults.len(), PRAGMAS.len());
        apply(&connection, &defaults, Kept::File).unwrap();
        apply(&connection, &defaults, Kept::Connection).unwrap();
        assert_eq!(defaults["synchronous"], "full");
        assert_eq!(defaults["journal_mode"], "delete");
    }

    #[test]
    fn a_value_that_does_not_take_is_an_error() {
        // A database in memory has no WAL, and a file's page size is fixed with its first page.
        let memory = open(Path::new(":memory:"));
        let message = apply(&memory, &one("journal_mode", "wal"), Kept::Connection)
            .unwrap_err()
            .message;
        assert!(
            message.starts_with("sqlite did not take journal_mode = wal: it runs with memory;"),
            "{message}"
        );

        let dir = tempfile::tempdir().unwrap();
        let connection = open(&dir.path().join("t.db"));
        query::run(&connection, "create table t (a)").unwrap();
        let message = apply(&connection, &one("page_size", "8192"), Kept::File)
            .unwrap_err()
            .message;
        assert!(
            message.contains("did not take page_size = 8192: it runs with 4096"),
            "{message}"
        );
    }

    proptest! {
        #[test]
        fn no_value_carries_sql(index in 0..PRAGMAS.len(), text in "\\PC*|[-0-9a-z ;'\"()]{0,12}") {
            if let Some(canonical) = PRAGMAS[index].values.canonical(&text) {
                let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                prop_assert!(canonical.chars().all(is_plain), "{canonical}");
                let again = PRAGMAS[index].values.canonical(&canonical);
                prop_assert_eq!(again, Some(canonical.clone()));
            }
        }
    }
}
