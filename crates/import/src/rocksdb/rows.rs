//! `report.tsv`, `summary.tsv` and `sum.*`: rows of 28 columns.

use std::collections::BTreeMap;

use plimsoll_core::rocksdb_report::{DRIVEN, MIXED, NATIVE};

use crate::text::{Read, ReadError, end, lines, number, text};

/// One row: a step of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Cells by column name, as printed.
    pub cells: BTreeMap<String, String>,
    /// True for a step that failed: it has only its test, date, version and hashes.
    pub is_failed: bool,
}

impl Row {
    /// A cell that is not empty.
    pub fn cell(&self, name: &str) -> Option<&str> {
        self.cells
            .get(name)
            .map(String::as_str)
            .filter(|cell| !cell.is_empty())
    }
}

/// The rows of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Paths of the versions' reports, in the order of the rows of each block. None in a version's
    /// own report.
    pub paths: Vec<String>,
    /// Blocks of rows: in summaries one per test, in a version's report one with all tests.
    pub blocks: Vec<Vec<Row>>,
    /// Of what Plimsoll exported, who made the load.
    pub made_by: Option<&'static str>,
}

/// Whether a file holds such rows.
pub fn is_rows(head: &str) -> bool {
    head.lines().any(is_header)
}

fn is_header(line: &str) -> bool {
    line.starts_with("ops_sec\tmb_sec\t")
}

/// Reads the rows. Lines of statistics that some summaries have between blocks are passed over.
pub fn read(bytes: &[u8]) -> Read<Rows> {
    let all = text(bytes);
    let mut header: Vec<&str> = Vec::new();
    let mut rows = Rows {
        paths: Vec::new(),
        blocks: Vec::new(),
        made_by: None,
    };
    for (n, line) in lines(&all) {
        if is_header(line) {
            header = line.split('\t').collect();
            rows.blocks.push(Vec::new());
        } else if let Some(comment) = line.strip_prefix('#') {
            rows.made_by = rows.made_by.or([NATIVE, DRIVEN, MIXED]
                .into_iter()
                .find(|made_by| *made_by == comment.trim()));
        } else if line.trim().is_empty() || line.contains("mean=") {
            continue;
        } else if header.is_empty() {
            rows.paths.push(line.trim().to_owned());
        } else {
            let cells: Vec<&str> = line.split('\t').collect();
            if cells.len() == 1 && cells[0].trim().parse::<f64>().is_ok() {
                // The ratio of two runs of a test.
                continue;
            }
            let row = row(&header, &cells, n)?;
            rows.blocks
                .last_mut()
                .expect("a header begins a block")
                .push(row);
        }
    }
    rows.blocks.retain(|block| !block.is_empty());
    if rows.blocks.is_empty() {
        return Err(ReadError::new(
            end(&all),
            "it has no rows: the file is truncated",
        ));
    }
    Ok(rows)
}

fn row(header: &[&str], cells: &[&str], n: usize) -> Read<Row> {
    let is_failed = cells[0] == "failed";
    if !is_failed {
        number(cells[0], n)?;
    }
    // A failed row has 23 tabs before its test, as a complete one.
    if cells.len() < header.len().min(24) {
        return Err(ReadError::new(
            n,
            format!("{} fields where {} belong", cells.len(), header.len()),
        ));
    }
    let cells: BTreeMap<String, String> = header
        .iter()
        .zip(cells)
        .map(|(name, cell)| ((*name).to_owned(), cell.trim().to_owned()))
        .collect();
    if cells.get("test").is_none_or(String::is_empty) {
        return Err(ReadError::new(n, "the row has no test"));
    }
    Ok(Row { cells, is_failed })
}

/// Whether the columns of compaction seconds and blob bytes are shifted by one: from RocksDB 10.3
/// on the scripts read the wrong words.
pub fn is_shifted(version: &str) -> bool {
    let mut numbers = version
        .split('.')
        .map_while(|part| part.parse::<u32>().ok());
    let (major, minor) = (numbers.next(), numbers.next());
    major.zip(minor).is_some_and(|version| version >= (10, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "ops_sec\tmb_sec\tlsm_sz\tblob_sz\tc_wgb\tw_amp\tc_mbps\tc_wsecs\tc_csecs\tb_rgb\tb_wgb\tusec_op\tp50\tp99\tp99.9\tp99.99\tpmax\tuptime\tstall%\tNstall\tu_cpu\ts_cpu\trss\ttest\tdate\tversion\tjob_id\tgithash";
    const ROW: &str = "1000\t409.3\t40GB\t0GB\t39.9\t2.0\t417.8\t122\t121\t0\t0\t1.0\t0.5\t2\t4\t14\t5324\t98\t0.0\t\t0.2\t0.0\tNA\tfillseq\t2023-11-1T14:18:57\t8.0.0\t\tfdf403f591";

    #[test]
    fn blocks_with_paths_and_lines_between() {
        let failed = format!(
            "failed{}fillseq\t2023-11-1T14:18:57\t8.1.0\t\tabc",
            "\t".repeat(23)
        );
        let text = format!(
            "# \
            legend\nbm/8.0/report.tsv\nbm/8.1/report.tsv\n\n{HEADER}\n{ROW}\n{failed}\nmean=3\tstddev=1\n0.981\n\n{HEADER}\n{ROW}\n"
        );
        let rows = read(text.as_bytes()).unwrap();
        assert_eq!(
            (rows.paths.len(), rows.blocks.len(), rows.blocks[0].len()),
            (2, 2, 2)
        );
        assert_eq!(
            (
                rows.blocks[0][0].cell("lsm_sz"),
                rows.blocks[0][0].cell("Nstall")
            ),
            (Some("40GB"), None)
        );
        assert!(rows.blocks[0][1].is_failed && rows.blocks[0][1].cell("version") == Some("8.1.0"));
        for (text, error) in [
            (
                format!("{HEADER}\n"),
                "line 1: it has no rows: the file is truncated",
            ),
            (format!("{HEADER}\nx\t1\n"), "line 2: \"x\" is not a number"),
            (
                format!("{HEADER}\n1000\t409.3\n"),
                "line 2: 2 fields where 28 belong",
            ),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn shifts() {
        for (version, shifted) in [
            ("8.0.0", false),
            ("10.2.1", false),
            ("10.3.4", true),
            ("11.0.4", true),
            ("10", false),
            ("", false),
        ] {
            assert_eq!(is_shifted(version), shifted, "{version}");
        }
    }
}
