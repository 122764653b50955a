//! Results of anything as CSV: `build,config,step,metric,value` with a header.

use plimsoll_analysis::metrics::find;

use crate::text::{Read, ReadError, end, lines, number, shown, text};

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub struct TableRow {
    pub build: String,
    /// The config; empty without that column.
    pub config: String,
    /// The step or test.
    pub step: String,
    /// A metric of the catalogue or of imported results.
    pub metric: String,
    /// The value in the metric's unit, as written.
    pub value: String,
}

/// The values of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// In order.
    pub rows: Vec<TableRow>,
}

/// Columns that must be there.
const NEEDED: [&str; 4] = ["build", "step", "metric", "value"];

/// No metric has more in its unit: what is beyond it is a slip, and no page could print it.
const LARGEST: f64 = 1e18;

/// Whether the first line that is not a comment names the columns of such a table.
pub fn is_table(head: &str) -> bool {
    let header = head
        .lines()
        .find(|line| !line.starts_with('#') && !line.trim().is_empty())
        .unwrap_or_default();
    let columns = cells(header);
    NEEDED
        .iter()
        .all(|name| columns.iter().any(|column| column == name))
}

/// Cells between commas; quotes as in RFC 4180, without line breaks inside.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut().expect("there is a cell");
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
        .into_iter()
        .map(|cell| cell.trim().to_owned())
        .collect()
}

/// Reads a table. A metric that nobody defines is an error: a number without a unit and a direction
/// says nothing.
pub fn read(bytes: &[u8]) -> Read<Table> {
    let all = text(bytes);
    let mut rows =
        lines(&all).filter(|(_, line)| !line.starts_with('#') && !line.trim().is_empty());
    let (n, header) = rows
        .next()
        .ok_or_else(|| ReadError::new(1, "it has no header"))?;
    let header = cells(header);
    let place = |name: &str| header.iter().position(|column| column == name);
    let need = |name: &str| {
        place(name).ok_or_else(|| ReadError::new(n, format!("its header has no {name}")))
    };
    let (build, step, metric, value) = (
        need("build")?,
        need("step")?,
        need("metric")?,
        need("value")?,
    );
    let config = place("config");
    let mut table = Table { rows: Vec::new() };
    for (n, row) in rows {
        let cells = cells(row);
        if cells.len() != header.len() {
            return Err(ReadError::new(
                n,
                format!("{} cells where {} belong", cells.len(), header.len()),
            ));
        }
        if cells[build].is_empty() || cells[step].is_empty() {
            return Err(ReadError::new(n, "a build or step is empty"));
        }
        if find(&cells[metric]).is_none() {
            return Err(ReadError::new(
                n,
                format!(
                    "no metric is called \"{}\": the manual lists them",
                    shown(&cells[metric])
                ),
            ));
        }
        if number(&cells[value], n)?.abs() > LARGEST {
            return Err(ReadError::new(
                n,
                format!("\"{}\" is more than anybody measures", shown(&cells[value])),
            ));
        }
        table.rows.push(TableRow {
            build: cells[build].clone(),
            config: config.map(|i| cells[i].clone()).unwrap_or_default(),
            step: cells[step].clone(),
            metric: cells[metric].clone(),
            value: cells[value].clone(),
        });
    }
    if table.rows.is_empty() {
        return Err(ReadError::new(end(&all), "it has no rows"));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_by_the_names_of_columns() {
        let text = "# made by \
                   hand\nstep,metric,value,build,config\nread,qps,100.5,a,z\n\"wri\"\"te, \
                   all\",ips,3,b,\n";
        assert!(is_table(text));
        let table = read(text.as_bytes()).unwrap();
        assert_eq!(
            (table.rows[0].value.as_str(), table.rows[0].config.as_str()),
            ("100.5", "z")
        );
        assert_eq!(
            (table.rows[1].step.as_str(), table.rows[1].build.as_str()),
            ("wri\"te, all", "b")
        );
        for (from, to, error) in [
            (
                "qps",
                "speed",
                "line 3: no metric is called \"speed\": the manual lists them",
            ),
            ("100.5", "fast", "line 3: \"fast\" is not a number"),
            (
                "100.5",
                "1e308",
                "line 3: \"1e308\" is more than anybody measures",
            ),
            (",z", "", "line 3: 4 cells where 5 belong"),
            ("100.5,a", "100.5,", "line 3: a build or step is empty"),
        ] {
            assert_eq!(
                read(text.replacen(from, to, 1).as_bytes())
                    .unwrap_err()
                    .to_string(),
                error
            );
        }
        assert!(!is_table("a,b,c\n"));
    }
}
