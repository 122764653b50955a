//! What a server reports about itself: numbers for counters, texts for people.

use std::collections::BTreeMap;
use std::path::Path;

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use super::files;
use super::text;
use crate::EngineError;

/// The rows of a statement with a name and a value, names in small letters.
pub(super) fn pairs(connection: &mut Conn, sql: &str) -> mysql::Result<BTreeMap<String, String>> {
    let rows: Vec<Row> = connection.query(sql)?;
    let mut pairs = BTreeMap::new();
    for row in rows {
        let values = row.unwrap();
        if let [name, value, ..] = values.as_slice() {
            let (mut name_text, mut value_text) = (String::new(), String::new());
            text::render(name, &mut name_text);
            text::render(value, &mut value_text);
            pairs.insert(name_text.to_ascii_lowercase(), value_text);
        }
    }
    Ok(pairs)
}

/// Variables with something in them that is nobody's business but the server's owner's.
const SECRET_VARIABLES: &[&str] = &[
    "init_connect",
    "init_file",
    "report_host",
    "report_password",
    "report_user",
    "wsrep_provider_options",
    "wsrep_sst_auth",
];

/// Takes out what an external server's owner would not want in a report.
pub(super) fn hide_secrets(variables: &mut BTreeMap<String, String>) {
    variables.retain(|name, _| !SECRET_VARIABLES.contains(&name.as_str()));
}

/// The third column of `show engine ... status`, of all rows.
pub(super) fn status_text(connection: &mut Conn, sql: &str) -> mysql::Result<String> {
    let rows: Vec<Row> = connection.query(sql)?;
    let mut all = String::new();
    for row in rows {
        if let Some(value) = row.unwrap().get(2) {
            text::render(value, &mut all);
            all.push('\n');
        }
    }
    Ok(all)
}

/// A whole number; counters beyond 63 bits stay at the largest.
pub(super) fn whole_number(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .or_else(|| text.parse::<u64>().ok().map(|_| i64::MAX))
}

/// Compaction time, its CPU time and the number of compactions since the start, over all column
/// families, from the tables that begin with `** Compaction Stats [NAME] **`: their columns by
/// name, their row `Sum`.
pub(super) fn compaction_counters(status: &str) -> BTreeMap<String, i64> {
    const COLUMNS: [(&str, &str, f64); 3] = [
        ("CompMergeCPU(sec)", "rocksdb_compaction_cpu_us", 1e6),
        ("Comp(sec)", "rocksdb_compaction_us", 1e6),
        ("Comp(cnt)", "rocksdb_compactions", 1.0),
    ];
    let mut counters = BTreeMap::new();
    let mut header: Vec<&str> = Vec::new();
    for line in status.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            // The table of priorities that follows has a header too, and no sum.
            Some(&"Level" | &"Priority") => header = words,
            Some(&"Sum") => {
                // A size is two words in the rows ("1.20 GB") and one in the header.
                let values: Vec<&str> = words
                    .into_iter()
                    .filter(|word| !matches!(*word, "B" | "KB" | "MB" | "GB" | "TB"))
                    .collect();
                for (column, name, factor) in COLUMNS {
                    let position = header.iter().position(|title| *title == column);
                    let value: Option<f64> =
                        position.and_then(|position| values.get(position)?.parse().ok());
                    if let Some(value) = value {
                        *counters.entry(name.to_owned()).or_insert(0) +=
                            (value * factor).round() as i64;
                    }
                }
            }
            _ => {}
        }
    }
    counters
}

/// Bytes of RocksDB's files without its write-ahead logs and its log of events.
pub(super) fn rocksdb_bytes(dir: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.ends_with(".log") && !name.starts_with("LOG") {
            // A file may vanish between the listing and the look at it.
            bytes += entry.metadata().map_or(0, |file| file.len());
        }
    }
    Ok(bytes)
}

const GLOBAL_VARIABLES: &str = "global-variables.tsv";

/// Answers that show other people's statements, or all variables: for servers of our own alone.
const OF_OWNED: &[&str] = &[GLOBAL_VARIABLES, "innodb-status.txt", "rocksdb-status.txt"];

/// What is asked: the file's name, the statement, and whether the answer is one long text.
const QUESTIONS: &[(&str, &str, bool)] = &[
    ("global-status.tsv", "show global status", false),
    (GLOBAL_VARIABLES, "show global variables", false),
    ("table-status.tsv", "show table status", false),
    ("innodb-status.txt", "show engine innodb status", true),
    ("rocksdb-status.txt", "show engine rocksdb status", true),
    (
        "innodb-metrics.tsv",
        "select * from information_schema.innodb_metrics",
        false,
    ),
    (
        "buffer-pool.tsv",
        "select * from information_schema.innodb_buffer_pool_stats",
        false,
    ),
    (
        "rocksdb-dbstats.tsv",
        "select * from information_schema.rocksdb_dbstats",
        false,
    ),
    (
        "rocksdb-cfstats.tsv",
        "select * from information_schema.rocksdb_cfstats",
        false,
    ),
];

/// Asks everything and writes one file for each answer, `MOMENT.NAME`. What a version or storage
/// engine cannot answer is left out; when nothing can be asked at all, that is an error.
pub(super) fn save(
    connection: &mut Conn,
    dir: &Path,
    moment: &str,
    is_rocksdb: bool,
    is_owned: bool,
) -> Result<(), EngineError> {
    std::fs::create_dir_all(dir)
        .map_err(|error| EngineError::new(format!("make the folder {}: {error}", dir.display())))?;
    for (name, sql, is_text) in QUESTIONS {
        if (name.starts_with("rocksdb") && !is_rocksdb) || (OF_OWNED.contains(name) && !is_owned) {
            continue;
        }
        let answer = if *is_text {
            status_text(connection, sql)
        } else {
            table(connection, sql)
        };
        keep(answer, sql, &dir.join(format!("{moment}.{name}")))?;
    }
    let sql = "show tables";
    let tables: Vec<String> = connection
        .query(sql)
        .map_err(|error| super::failure::engine_error(sql, &error))?;
    let mut definitions = String::new();
    for name in tables {
        let sql = format!("show create table `{}`", name.replace('`', "``"));
        let found: Option<(String, String)> = connection
            .query_first(&sql)
            .map_err(|error| super::failure::engine_error(&sql, &error))?;
        if let Some((_, definition)) = found {
            definitions += &definition;
            definitions += ";\n";
        }
    }
    files::write(
        &dir.join(format!("{moment}.create-table.sql")),
        &definitions,
    )
}

/// Writes an answer; a statement that the server refuses has none.
fn keep(answer: mysql::Result<String>, sql: &str, path: &Path) -> Result<(), EngineError> {
    match answer {
        Ok(text) => files::write(path, &text),
        Err(mysql::Error::MySqlError(_)) => Ok(()),
        Err(error) => Err(super::failure::engine_error(sql, &error)),
    }
}

/// A result as lines of tab separated values under a line of names.
fn table(connection: &mut Conn, sql: &str) -> mysql::Result<String> {
    let mut result = connection.query_iter(sql)?;
    let names: Vec<String> = result
        .columns()
        .as_ref()
        .iter()
        .map(|column| column.name_str().into_owned())
        .collect();
    let mut all = names.join("\t");
    all.push('\n');
    let Some(rows) = result.iter() else {
        return Ok(all);
    };
    for row in rows {
        for (index, value) in row?.unwrap().iter().enumerate() {
            if index > 0 {
                all.push('\t');
            }
            let start = all.len();
            text::render(value, &mut all);
            if all[start..].contains(['\t', '\n']) {
                let escaped = all[start..].replace('\t', "\\t").replace('\n', "\\n");
                all.replace_range(start.., &escaped);
            }
        }
        all.push('\n');
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_are_counters() {
        let table = [
            ("12", Some(12)),
            ("-1", Some(-1)),
            ("18446744073709551615", Some(i64::MAX)),
            ("0.5", None),
            ("ON", None),
            ("", None),
        ];
        for (text, number) in table {
            assert_eq!(whole_number(text), number, "{text}");
        }
    }

    #[test]
    fn compaction_statistics_are_summed_over_column_families() {
        let status = "\
** Compaction Stats [__system__] **
Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp \
                     Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop
  L0      1/0    1.33 KB   0.2      0.0     0.0      0.0       0.0      0.0       0.0   1.0      \
                     0.0      1.0      0.00              0.00         1    0.001       0      0
 Sum      1/0    1.33 KB   0.0      0.0     0.0      0.0       0.0      0.0       0.0   1.0      \
                     0.0      1.0      0.25              0.12         1    0.001       0      0
 Int      0/0    0.00 KB   0.0      0.0     0.0      0.0       0.0      0.0       0.0   0.0      \
                     0.0      0.0      9.00              9.00         9    0.000       0      0

** Compaction Stats [__system__] **
Priority    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp \
                     Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop
User      0/0    0.00 KB   0.0      0.0     0.0      0.0       0.0      0.0       0.0   0.0      \
                     0.0      1.0      0.25              0.12         1    0.001       0      0

** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Comp(sec) CompMergeCPU(sec) Comp(cnt)
 Sum      3/0    0.00 B    0.0      0.0        2.00              1.50        40
";
        let counters = compaction_counters(status);
        let expected = [
            ("rocksdb_compaction_cpu_us", 1_620_000),
            ("rocksdb_compaction_us", 2_250_000),
            ("rocksdb_compactions", 41),
        ];
        assert_eq!(
            counters,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        assert!(compaction_counters("no statistics").is_empty());
    }
}
