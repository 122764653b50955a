//! Published tables: `qps.abs.*.tsv`, `qps.rel.*.tsv`, both as they are made and as they are edited
//! for a post (`.edit`, `.markup`), and `o.met.*`.

use std::collections::BTreeMap;

use plimsoll_core::plan::published::PUBLISHED;

use crate::text::{Read, ReadError, end, lines, number, shown, text};

/// A table of rates, absolute or relative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTable {
    /// The folder that relative values are divided by; `None` for absolute tables.
    pub base: Option<String>,
    /// The columns' folders. Edited tables have them without `x.` and `.pk1`.
    pub columns: Vec<String>,
    pub rows: Vec<RateRow>,
}

/// A test of a table of rates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateRow {
    pub test: String,
    /// Edited tables leave it out where a test has one range only: then it is that one. `None` for
    /// a name that no test has.
    pub range: Option<u32>,
    /// One printed number per column.
    pub cells: Vec<String>,
    /// What the author wrote behind the test: `-> 10.5, buf_pool_make_young`.
    pub remark: Option<String>,
}

/// Whether this is a table of rates with its legend.
pub fn is_rate_table(head: &str) -> bool {
    head.starts_with("col-1 : ") || head.starts_with("Relative to: ")
}

/// Reads a table of rates.
pub fn read_rates(bytes: &[u8]) -> Read<RateTable> {
    let all = text(bytes);
    let mut table = RateTable {
        base: None,
        columns: Vec::new(),
        rows: Vec::new(),
    };
    for (n, line) in lines(&all) {
        if let Some(base) = line.strip_prefix("Relative to: ") {
            table.base = Some(base.to_owned());
        } else if let Some((_, folder)) = line
            .strip_prefix("col-")
            .and_then(|rest| rest.split_once(" : "))
        {
            table.columns.push(folder.to_owned());
        } else if !is_furniture(line) {
            table.rows.push(rate_row(line, n, &table)?);
        }
    }
    if table.columns.is_empty() || table.rows.is_empty() {
        return Err(ReadError::new(
            end(&all),
            "it has no columns or no rows: the file is truncated",
        ));
    }
    Ok(table)
}

/// Lines between rows: the columns' names, empty ones, and the titles of edited tables such as
/// `- point queries`.
fn is_furniture(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with("col-") || line.starts_with("- ")
}

/// The label is last; annotated variants have a comment behind it.
fn rate_row(line: &str, n: usize, table: &RateTable) -> Read<RateRow> {
    let columns = table.columns.len();
    let cells: Vec<&str> = line.split('\t').collect();
    let label = cells
        .get(columns)
        .ok_or_else(|| ReadError::new(n, format!("fewer than {columns} numbers and a test")))?;
    let is_edited = table.columns.iter().all(|name| !name.starts_with("x."));
    let (test, range) = match test_and_range(label) {
        Some((test, range)) => (test, Some(range)),
        None if is_edited && is_name(label) => ((*label).to_owned(), only_range(label)),
        None => {
            let reason = format!("\"{}\" is not a test with its range", shown(label));
            return Err(ReadError::new(n, reason));
        }
    };
    for cell in &cells[..columns] {
        number(cell, n)?;
    }
    let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
    let remark = cells[columns + 1..].join(" ").trim().to_owned();
    Ok(RateRow {
        test,
        range,
        cells: owned(&cells[..columns]),
        remark: Some(remark).filter(|remark| !remark.is_empty()),
    })
}

/// Whether a label can be a test's name.
fn is_name(label: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.chars().all(is_of_name)
}

/// The range that a test is published with, if it is only one.
fn only_range(test: &str) -> Option<u32> {
    let mut ranges = PUBLISHED.iter().filter(|(name, _)| *name == test);
    let (_, range) = ranges.next()?;
    ranges.next().is_none().then_some(*range)
}

/// `read-only_range=100`.
pub fn test_and_range(label: &str) -> Option<(String, u32)> {
    let (test, range) = label.rsplit_once("_range=")?;
    Some((test.to_owned(), range.parse().ok()?)).filter(|(test, _)| !test.is_empty())
}

/// A block of `o.met`: the costs of one test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostBlock {
    /// The name of the files it is made of: `sb.met.hot-points.range100.pk1.dop1`.
    pub file: String,
    /// By folder: `cpu/o cs/o r/o rKB/o wKB/o o/s` as printed.
    pub rows: BTreeMap<String, [String; 6]>,
    /// The folders in the order of the rows.
    pub order: Vec<String>,
}

/// Whether this is a summary of metrics.
pub fn is_costs(head: &str) -> bool {
    head.lines().nth(1) == Some("--- absolute")
}

/// Reads the absolute rows of a summary of metrics; relative ones follow from them.
pub fn read_costs(bytes: &[u8]) -> Read<Vec<CostBlock>> {
    let all = text(bytes);
    let mut blocks: Vec<CostBlock> = Vec::new();
    let mut is_absolute = false;
    let mut previous = "";
    for (n, line) in lines(&all) {
        match line {
            "--- absolute" => {
                blocks.push(CostBlock {
                    file: previous.to_owned(),
                    rows: BTreeMap::new(),
                    order: Vec::new(),
                });
                is_absolute = true;
            }
            "--- relative to first result" => is_absolute = false,
            _ if is_absolute && !line.is_empty() && !line.starts_with("cpu/o") => {
                let block = blocks.last_mut().expect("a block was just begun");
                let (folder, cells) = cost_row(line, n)?;
                block.order.push(folder.clone());
                block.rows.insert(folder, cells);
            }
            _ => {}
        }
        previous = line;
    }
    if blocks.iter().all(|block| block.rows.is_empty()) {
        return Err(ReadError::new(
            end(&all),
            "it has no absolute rows: the file is truncated",
        ));
    }
    Ok(blocks)
}

fn cost_row(line: &str, n: usize) -> Read<(String, [String; 6])> {
    let cells: Vec<&str> = line.split('\t').filter(|cell| !cell.is_empty()).collect();
    let Some((folder, numbers)) = cells.split_last().filter(|(_, numbers)| numbers.len() == 6)
    else {
        return Err(ReadError::new(n, "a row has six numbers and a folder"));
    };
    for cell in numbers {
        number(cell, n)?;
    }
    Ok((
        (*folder).to_owned(),
        std::array::from_fn(|i| numbers[i].to_owned()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_and_without_a_base() {
        let absolute = "col-1 : x.my1_rel.z.pk1\ncol-2 : \
                       x.my2_rel.z.pk1\n\ncol-1\tcol-2\n100\t90\tscan_range=100\t-> a comment\n";
        let table = read_rates(absolute.as_bytes()).unwrap();
        assert_eq!((table.base, table.columns.len()), (None, 2));
        assert_eq!(
            table.rows,
            [RateRow {
                test: "scan".to_owned(),
                range: Some(100),
                cells: vec!["100".to_owned(), "90".to_owned()],
                remark: Some("-> a comment".to_owned()),
            }]
        );
        let relative = "Relative to: x.my1_rel.z.pk1\ncol-1 : \
                       x.my2_rel.z.pk1\n\ncol-1\n0.90\tscan_range=100\n";
        assert_eq!(
            read_rates(relative.as_bytes()).unwrap().base.as_deref(),
            Some("x.my1_rel.z.pk1")
        );
        for (from, to, error) in [
            (
                "\t90\tscan",
                "\tscan",
                "line 5: \"-> a comment\" is not a test with its range",
            ),
            ("100\t90", "100\tx", "line 5: \"x\" is not a number"),
            (
                "scan_range=100",
                "scan",
                "line 5: \"scan\" is not a test with its range",
            ),
        ] {
            assert_eq!(
                read_rates(absolute.replace(from, to).as_bytes())
                    .unwrap_err()
                    .to_string(),
                error
            );
        }
    }

    #[test]
    fn tables_that_were_edited_for_a_post() {
        let edited = "Relative to: my1_rel.z\ncol-1 : my2_rel.z\n\n- point queries\ncol-1\n1.47\t\
                      hot-points\n0.45\trandom-points_range=100\n\n- writes\ncol-1\n\
                      1.50\tdelete\n1.12\tread-only-simplex\n";
        let table = read_rates(edited.as_bytes()).unwrap();
        assert_eq!(table.base.as_deref(), Some("my1_rel.z"));
        let rows: Vec<_> = table
            .rows
            .iter()
            .map(|row| (row.test.as_str(), row.range, row.cells[0].as_str()))
            .collect();
        // A test that does not exist has no range; it stays as it is written.
        assert_eq!(
            rows,
            [
                ("hot-points", Some(100), "1.47"),
                ("random-points", Some(100), "0.45"),
                ("delete", Some(100), "1.50"),
                ("read-only-simplex", None, "1.12"),
            ]
        );
        // Of a test with several ranges one has to be named.
        let several = edited.replace("hot-points", "random-points");
        assert_eq!(read_rates(several.as_bytes()).unwrap().rows[0].range, None);
        let strange = edited.replace("hot-points", "two words");
        assert_eq!(
            read_rates(strange.as_bytes()).unwrap_err().to_string(),
            "line 6: \"two words\" is not a test with its range"
        );
    }

    #[test]
    fn blocks_of_costs() {
        let costs = "sb.met.scan.range100.pk1.dop1\n--- \
                    absolute\ncpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms\n0.1\t2\t0\t0\t0.5\t100\tx.a.z.pk1\n\
                     0.2\t2\t0\t0\t0.5\t90\tx.b.z.pk1\n--- relative to first \
                    result\n2.00\t\t1.00\t1\t1\t1.00\t0.90\tx.b.z.pk1\n\n";
        let blocks = read_costs(costs.as_bytes()).unwrap();
        assert_eq!(
            (blocks.len(), blocks[0].file.as_str()),
            (1, "sb.met.scan.range100.pk1.dop1")
        );
        assert_eq!(blocks[0].order, ["x.a.z.pk1", "x.b.z.pk1"]);
        assert_eq!(
            blocks[0].rows["x.b.z.pk1"],
            ["0.2", "2", "0", "0", "0.5", "90"]
        );
        assert_eq!(
            read_costs(b"x\n--- absolute\n1\t2\n")
                .unwrap_err()
                .to_string(),
            "line 3: a row has six numbers and a folder"
        );
    }
}
