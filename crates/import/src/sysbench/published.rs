//! Published tables: `qps.abs.*.tsv`, `qps.rel.*.tsv` and `o.met.*`.

use std::collections::BTreeMap;

use crate::text::{Read, ReadError, end, lines, number, shown, text};

/// A table of rates, absolute or relative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateTable {
    /// The folder that relative values are divided by; `None` for absolute tables.
    pub base: Option<String>,
    /// The columns' folders.
    pub columns: Vec<String>,
    /// Test, range and one printed number per column.
    pub rows: Vec<(String, u32, Vec<String>)>,
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
        } else if !line.trim().is_empty() && !line.starts_with("col-") {
            table.rows.push(rate_row(line, n, table.columns.len())?);
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

/// The label is last; annotated variants have a comment behind it.
fn rate_row(line: &str, n: usize, columns: usize) -> Read<(String, u32, Vec<String>)> {
    let cells: Vec<&str> = line.split('\t').collect();
    let label = cells
        .get(columns)
        .ok_or_else(|| ReadError::new(n, format!("fewer than {columns} numbers and a test")))?;
    let (test, range) = test_and_range(label).ok_or_else(|| {
        ReadError::new(
            n,
            format!("\"{}\" is not a test with its range", shown(label)),
        )
    })?;
    for cell in &cells[..columns] {
        number(cell, n)?;
    }
    Ok((
        test,
        range,
        cells[..columns]
            .iter()
            .map(|cell| (*cell).to_owned())
            .collect(),
    ))
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
            [(
                "scan".to_owned(),
                100,
                vec!["100".to_owned(), "90".to_owned()]
            )]
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
