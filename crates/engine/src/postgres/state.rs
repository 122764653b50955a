//! What the server counts, and what it reports about itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use postgres::{Client, SimpleQueryRow};

use super::link::rows;
use crate::EngineError;

/// A view that counts, and how its rows become counters.
struct Counted {
    /// The name before the dot.
    view: &'static str,
    /// From this `server_version_num` on.
    since: u32,
    /// What follows `from`.
    source: &'static str,
    /// A column whose text stands between the view's name and the column's; rows with the same are
    /// summed. All rows are otherwise.
    group: Option<&'static str>,
}

const COUNTED: &[Counted] = &[
    Counted {
        view: "pg_stat_database",
        since: 0,
        source: "pg_stat_database where datname = current_database()",
        group: None,
    },
    Counted {
        view: "pg_stat_bgwriter",
        since: 0,
        source: "pg_stat_bgwriter",
        group: None,
    },
    Counted {
        view: "pg_stat_checkpointer",
        since: 170_000,
        source: "pg_stat_checkpointer",
        group: None,
    },
    Counted {
        view: "pg_stat_wal",
        since: 140_000,
        source: "pg_stat_wal",
        group: None,
    },
    Counted {
        view: "pg_stat_io",
        since: 160_000,
        source: "pg_stat_io",
        group: Some("object"),
    },
    Counted {
        view: "pg_stat_user_tables",
        since: 0,
        source: "pg_stat_user_tables",
        group: None,
    },
    Counted {
        view: "pg_statio_user_tables",
        since: 0,
        source: "pg_statio_user_tables",
        group: None,
    },
];

/// Numbers that count nothing: identities, and sizes of a unit.
const NOT_COUNTERS: &[&str] = &["datid", "relid", "numbackends", "op_bytes"];

/// Bytes of WAL since the data directory was made.
const WAL_BYTES: &str = "wal_lsn_bytes";

/// All counters, as `VIEW.COLUMN` (`pg_stat_database.xact_commit`) or `VIEW.OBJECT.COLUMN`
/// (`pg_stat_io.relation.reads`); tables are summed. Times, which PostgreSQL has in milliseconds
/// with a fraction, are whole microseconds and end in `_us`. A session reports what it did when it
/// is idle, but up to a second late: a difference may miss the last second of a step.
pub(super) fn counters(
    client: &mut Client,
    version_num: u32,
) -> Result<BTreeMap<String, i64>, postgres::Error> {
    let mut counters = BTreeMap::new();
    for counted in COUNTED
        .iter()
        .filter(|counted| counted.since <= version_num)
    {
        for row in rows(client, &format!("select * from {}", counted.source))? {
            count_row(counted, &columns(&row), &mut counters);
        }
    }
    let wal = if version_num >= 100_000 {
        "select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
    } else {
        "select pg_xlog_location_diff(pg_current_xlog_location(), '0/0')"
    };
    if let Some(bytes) = rows(client, wal)?
        .first()
        .and_then(|row| row.get(0)?.parse().ok())
    {
        counters.insert(WAL_BYTES.to_owned(), bytes);
    }
    Ok(counters)
}

fn columns(row: &SimpleQueryRow) -> Vec<(&str, Option<&str>)> {
    row.columns()
        .iter()
        .enumerate()
        .map(|(index, column)| (column.name(), row.get(index)))
        .collect()
}

fn count_row(
    counted: &Counted,
    columns: &[(&str, Option<&str>)],
    counters: &mut BTreeMap<String, i64>,
) {
    let group = counted
        .group
        .and_then(|group| columns.iter().find(|(name, _)| *name == group)?.1);
    for (name, value) in columns {
        let Some((name, number)) = value.and_then(|value| counter(name, value)) else {
            continue;
        };
        let key = match group {
            Some(group) => format!("{}.{group}.{name}", counted.view),
            None => format!("{}.{name}", counted.view),
        };
        *counters.entry(key).or_default() += number;
    }
}

/// A column as a counter; `None` for what counts nothing.
fn counter(name: &str, value: &str) -> Option<(String, i64)> {
    if NOT_COUNTERS.contains(&name) {
        None
    } else if name.ends_with("_time") {
        // A time of day is not a number.
        value
            .parse::<f64>()
            .ok()
            .map(|ms| (format!("{name}_us"), (ms * 1000.0).round() as i64))
    } else {
        value.parse().ok().map(|number| (name.to_owned(), number))
    }
}

/// Views that are written to files, and the `server_version_num` they begin with.
const SAVED: &[(&str, u32)] = &[
    ("pg_settings", 0),
    ("pg_stat_activity", 0),
    ("pg_stat_database", 0),
    ("pg_stat_bgwriter", 0),
    ("pg_stat_checkpointer", 170_000),
    ("pg_stat_wal", 140_000),
    ("pg_stat_io", 160_000),
    ("pg_stat_all_tables", 0),
    ("pg_stat_all_indexes", 0),
    ("pg_statio_all_tables", 0),
    ("pg_statio_all_indexes", 0),
    ("pg_statio_all_sequences", 0),
];

/// Views that show other people's statements, secrets of the server, or what only a superuser may
/// see: for servers of our own alone.
const OF_OWNED: &[&str] = &["pg_settings", "pg_stat_activity", BUILD];

/// Sizes in bytes of the tables, their indexes and sequences.
const RELATION_SIZES: &str = "select c.relname, c.relkind, c.reltuples, c.relpages, \
                             pg_relation_size(c.oid) as main_bytes, pg_table_size(c.oid) as \
                             table_bytes, pg_indexes_size(c.oid) as indexes_bytes, \
                             pg_total_relation_size(c.oid) as total_bytes from pg_class c join \
                             pg_namespace n on n.oid = c.relnamespace where n.nspname not in \
                             ('pg_catalog', 'information_schema', 'pg_toast') order by c.relname";

/// How the server was compiled: the same for all moments.
const BUILD: &str = "pg_config";

/// A text that goes to `dir`, by file name.
pub(super) type Files = Vec<(String, String)>;

/// Reads the views of a moment into tab-separated tables with a head line. Names are
/// `MOMENT.VIEW.tsv`; `pg_config.tsv` has no moment and is left out when `has_build` says that it
/// is there. What is not for an external server is left out unless `is_owned`.
pub(super) fn state(
    client: &mut Client,
    moment: &str,
    version_num: u32,
    has_build: bool,
    is_owned: bool,
) -> Result<Files, postgres::Error> {
    let may_save = |view: &str| is_owned || !OF_OWNED.contains(&view);
    let mut files = Files::new();
    for (view, since) in SAVED {
        if *since <= version_num && may_save(view) {
            files.push((
                format!("{moment}.{view}.tsv"),
                table(&rows(client, &format!("select * from {view}"))?),
            ));
        }
    }
    files.push((
        format!("{moment}.relation_sizes.tsv"),
        table(&rows(client, RELATION_SIZES)?),
    ));
    if !has_build && may_save(BUILD) {
        files.push((
            build_file(),
            table(&rows(client, &format!("select * from {BUILD}"))?),
        ));
    }
    Ok(files)
}

/// The file that tells how the server was compiled.
pub(super) fn build_file() -> String {
    format!("{BUILD}.tsv")
}

/// Writes the files into `dir`, which is made when it is not there.
pub(super) fn write(dir: &Path, files: &Files) -> Result<(), EngineError> {
    let unwritable = |path: &Path, error| {
        EngineError::new(format!(
            "write {}: {error}; check the folder's permissions and space",
            path.display()
        ))
    };
    fs::create_dir_all(dir).map_err(|error| unwritable(dir, error))?;
    for (name, text) in files {
        let path = dir.join(name);
        fs::write(&path, text).map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}

/// Rows as tab-separated lines under a head line. NULL is `\N`; a tab, a newline and a backslash of
/// a value are `\t`, `\n` and `\\`.
fn table(rows: &[SimpleQueryRow]) -> String {
    let lines = rows.iter().map(columns);
    let mut text = String::new();
    for (index, line) in lines.enumerate() {
        if index == 0 {
            push_line(&mut text, line.iter().map(|(name, _)| Some(*name)));
        }
        push_line(&mut text, line.iter().map(|(_, value)| *value));
    }
    text
}

fn push_line<'a>(text: &mut String, cells: impl Iterator<Item = Option<&'a str>>) {
    for (index, cell) in cells.enumerate() {
        let separator = if index == 0 { "" } else { "\t" };
        let cell = match cell {
            None => "\\N".to_owned(),
            Some(cell) => cell
                .replace('\\', "\\\\")
                .replace('\t', "\\t")
                .replace('\n', "\\n")
                .replace('\r', "\\r"),
        };
        write!(text, "{separator}{cell}").expect("writing to a String cannot fail");
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_counters() {
        for (name, value, expected) in [
            ("xact_commit", "42", Some(("xact_commit", 42))),
            (
                "wal_bytes",
                "8123456789012",
                Some(("wal_bytes", 8_123_456_789_012)),
            ),
            ("blk_read_time", "1.5", Some(("blk_read_time_us", 1500))),
            (
                "checkpoint_write_time",
                "250",
                Some(("checkpoint_write_time_us", 250_000)),
            ),
            ("stats_reset", "2026-11-21 10:00:00+00", None),
            ("backend_time", "10:00:00", None),
            ("datname", "ib", None),
            ("datid", "16384", None),
            ("op_bytes", "8192", None),
        ] {
            assert_eq!(
                counter(name, value),
                expected.map(|(name, number)| (name.to_owned(), number)),
                "{name}"
            );
        }
    }

    #[test]
    fn rows_of_a_group_are_summed() {
        let counted = Counted {
            view: "v",
            since: 0,
            source: "v",
            group: Some("object"),
        };
        let mut counters = BTreeMap::new();
        for (object, reads) in [
            ("relation", Some("2")),
            ("wal", Some("5")),
            ("relation", Some("3")),
            ("wal", None),
        ] {
            count_row(
                &counted,
                &[("object", Some(object)), ("reads", reads)],
                &mut counters,
            );
        }
        assert_eq!(
            counters,
            BTreeMap::from([
                ("v.relation.reads".to_owned(), 5),
                ("v.wal.reads".to_owned(), 5)
            ])
        );
    }

    #[test]
    fn a_line_is_a_line() {
        let mut text = String::new();
        push_line(&mut text, [Some("a\tb\nc\\"), None, Some("")].into_iter());
        assert_eq!(text, "a\\tb\\nc\\\\\t\\N\t\n");
    }
}
