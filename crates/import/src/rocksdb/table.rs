//! `fmt.*.abs*` and `sum.abs*`: a column per version and a row per test, with names. Which of them
//! hold rates and which hold ratios their numbers tell, not their names.

use crate::text::{Read, ReadError, end, lines, number, text};

/// A table of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The columns' versions; of one version there may be several columns.
    pub versions: Vec<String>,
    /// A test and one printed number per column.
    pub rows: Vec<(String, Vec<String>)>,
    /// Whether numbers are ratios to the first column.
    pub is_relative: bool,
}

/// Whether a file begins with the names of such columns.
pub fn is_table(head: &str) -> bool {
    head.lines().next().and_then(versions).is_some()
}

/// `10.2.1<TAB>10.3.4<TAB>test` or `test,10.2.1,10.3.4,`.
fn versions(line: &str) -> Option<Vec<String>> {
    let cells = match line.strip_prefix("test,") {
        Some(rest) => rest.trim_end_matches(',').split(',').collect::<Vec<_>>(),
        None => line.strip_suffix("\ttest")?.split('\t').collect(),
    };
    let is_version = |cell: &&str| {
        let mut parts = cell.split('.');
        let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        is_number(parts.next()) && is_number(parts.next())
    };
    cells
        .iter()
        .all(is_version)
        .then(|| cells.into_iter().map(str::to_owned).collect())
}

/// Reads a table.
pub fn read(bytes: &[u8]) -> Read<Table> {
    let all = text(bytes);
    let mut rows = Vec::new();
    let mut columns: Vec<String> = Vec::new();
    for (n, line) in lines(&all).filter(|(_, line)| !line.trim().is_empty()) {
        if let Some(header) = versions(line) {
            if !columns.is_empty() && columns != header {
                return Err(ReadError::new(n, "its columns are other ones than before"));
            }
            columns = header;
            continue;
        }
        let row = match line.rsplit_once('\t') {
            Some((numbers, test)) => (test, numbers.split('\t').collect::<Vec<_>>()),
            None => {
                let (test, numbers) = line.split_once(',').unwrap_or((line, ""));
                (test, numbers.trim_end_matches(',').split(',').collect())
            }
        };
        let (test, numbers) = row;
        if numbers.len() != columns.len() {
            let (found, wanted) = (numbers.len(), columns.len());
            let reason = format!("{found} numbers for {wanted} versions");
            return Err(ReadError::new(n, reason));
        }
        for cell in &numbers {
            number(cell, n)?;
        }
        rows.push((
            test.to_owned(),
            numbers.into_iter().map(str::to_owned).collect::<Vec<_>>(),
        ));
    }
    if rows.is_empty() {
        return Err(ReadError::new(
            end(&all),
            "it has no rows: the file is truncated",
        ));
    }
    let has_decimals = |cell: &String| cell.split_once('.').is_none_or(|(_, d)| d.len() == 2);
    let is_relative = rows
        .iter()
        .all(|(_, row)| row[0] == "1.00" && row.iter().all(has_decimals));
    Ok(Table {
        versions: columns,
        rows,
        is_relative,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_and_both_kinds() {
        let tsv = "9.8.4\t10.2.1\t10.2.1\ttest\n1.00\t1.07\t0.99\tfillseq.wal_disabled.v400\n";
        let table = read(tsv.as_bytes()).unwrap();
        assert!(is_table(tsv) && table.is_relative);
        assert_eq!(table.versions, ["9.8.4", "10.2.1", "10.2.1"]);
        assert_eq!(table.rows[0].0, "fillseq.wal_disabled.v400");
        assert_eq!(table.rows[0].1, ["1.00", "1.07", "0.99"]);
        let csv = "test,9.8.4,10.2.1,\nreadwhilewriting.t1,135709,134039\n";
        let table = read(csv.as_bytes()).unwrap();
        assert!(is_table(csv) && !table.is_relative);
        assert_eq!(
            (table.versions.len(), table.rows[0].1[1].as_str()),
            (2, "134039")
        );
    }

    #[test]
    fn what_is_not_such_a_table() {
        for head in [
            "build,config,step\n",
            "test,a,b\n",
            "ops_sec\tmb_sec\ttest\n",
            "test\n",
            "",
        ] {
            assert!(!is_table(head), "{head}");
        }
        for (text, error) in [
            (
                "9.8.4\t10.2.1\ttest\n1.00\ta\n",
                "line 2: 1 numbers for 2 versions",
            ),
            ("9.8.4\ttest\nx\ta\n", "line 2: \"x\" is not a number"),
            (
                "9.8.4\ttest\n",
                "line 1: it has no rows: the file is truncated",
            ),
            (
                "9.8.4\ttest\n1\ta\n9.8.5\ttest\n",
                "line 3: its columns are other ones than before",
            ),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), error);
        }
    }
}
