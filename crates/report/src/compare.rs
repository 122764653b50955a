//! Two cells side by side: ratios per step, means per group, what moved most.

use std::fmt::Write as _;

use plimsoll_core::sysbench_tests::{PUBLISHED, group_of};
use serde_json::{Value, json};

use crate::classic::relative;
use crate::machines;
use crate::notes::ONE_CELL;
use crate::view::{Status, StepView, View};

/// How many movers are named.
const MOVERS: usize = 5;

/// What the mark at a ratio means.
const DOUBT: &str = "? machine disturbed or SLA missed, in the cell or the base";

/// One cell against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The base's label.
    pub a: String,
    /// The other's label.
    pub b: String,
    /// Steps that at least one has, in the order of reports.
    pub rows: Vec<Row>,
    /// Groups in the order of their first step: name, geometric mean of the ratios, steps.
    pub groups: Vec<(String, f64, usize)>,
    /// Why this is no verdict.
    pub caveat: &'static str,
    /// What the campaigns' reports say of their numbers.
    pub notes: Vec<String>,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub step: String,
    /// Its group.
    pub group: String,
    /// The metric: a rate, more is better.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The base's value: printed, and in full precision.
    pub a: Option<(String, f64)>,
    /// The other's.
    pub b: Option<(String, f64)>,
    /// Whether a witness saw the machine disturbed, or the writers missed their rate, on either side.
    pub is_doubtful: bool,
}

impl Row {
    /// b / a from values in full precision.
    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.a.as_ref()?.1, self.b.as_ref()?.1);
        (a > 0.0 && b > 0.0).then_some(b / a)
    }

    /// b / a as it is printed: from printed values, as the originals do.
    fn printed_ratio(&self) -> String {
        let number = |value: &Option<(String, f64)>| value.as_ref()?.0.parse::<f64>().ok();
        let mark = if self.is_doubtful { "?" } else { "" };
        number(&self.b).zip(number(&self.a)).map_or_else(|| "-".to_owned(), |(b, a)| relative::format(b, a) + mark)
    }
}

/// Compares a cell of one view with a cell of another, which may be the same view.
pub fn compare(a: (&View, usize), b: (&View, usize)) -> Comparison {
    let mut names: Vec<&str> = Vec::new();
    for step in a.0.steps.iter().chain(&b.0.steps) {
        if !names.contains(&step.name.as_str()) {
            names.push(&step.name);
        }
    }
    let rows: Vec<Row> = names.into_iter().filter_map(|name| row(name, a, b)).collect();
    let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
    for row in &rows {
        let Some(ratio) = row.ratio() else { continue };
        match groups.iter_mut().find(|(name, _)| *name == row.group) {
            Some((_, ratios)) => ratios.push(ratio),
            None => groups.push((row.group.clone(), vec![ratio])),
        }
    }
    let is_once = |(view, cell): (&View, usize)| view.steps.iter().all(|step| step.outcomes[cell].blocks_used <= 1);
    let mut notes: Vec<String> = a.0.notes.iter().chain(&b.0.notes).cloned().collect();
    if let Some(difference) = machines::difference(&a.0.cells[a.1], &b.0.cells[b.1]) {
        notes.push(format!("‡ a and b ran on different machines ({difference}): a ratio compares the machines too."));
    }
    let mut seen = std::collections::BTreeSet::new();
    // A side may be a view of one cell: here it has another beside it.
    notes.retain(|note| note != ONE_CELL && seen.insert(note.clone()));
    Comparison {
        notes,
        a: a.0.cells[a.1].label.clone(),
        b: b.0.cells[b.1].label.clone(),
        groups: groups.into_iter().map(|(name, ratios)| (name, geometric_mean(&ratios), ratios.len())).collect(),
        rows,
        caveat: if is_once(a) || is_once(b) {
            "One run stands behind a value: a difference is something to look at, not a verdict."
        } else {
            "Values are medians over blocks; no verdict is given here."
        },
    }
}

fn row(name: &str, a: (&View, usize), b: (&View, usize)) -> Option<Row> {
    let find = |view: &'_ View| -> Option<usize> { view.steps.iter().position(|step| step.name == name) };
    let (in_a, in_b) = (find(a.0).map(|i| &a.0.steps[i]), find(b.0).map(|i| &b.0.steps[i]));
    let step = in_a.or(in_b)?;
    let value = |step: Option<&StepView>, cell: usize| {
        let measure = step?.outcomes[cell].measure(step?.rate.name)?;
        let number = measure.value.value.or_else(|| measure.classic.as_ref()?.parse().ok())?;
        Some((measure.classic.clone().or_else(|| measure.text())?, number))
    };
    let is_doubtful = |step: Option<&StepView>, cell: usize| {
        step.is_some_and(|step| matches!(step.outcomes[cell].status, Status::Suspect | Status::SlaMissed))
    };
    let row = Row {
        step: name.to_owned(),
        group: group(name),
        metric: step.rate.name,
        unit: step.rate.unit,
        a: value(in_a, a.1),
        b: value(in_b, b.1),
        is_doubtful: is_doubtful(in_a, a.1) || is_doubtful(in_b, b.1),
    };
    (row.a.is_some() || row.b.is_some()).then_some(row)
}

fn group(step: &str) -> String {
    let test = step.split_once("_range=").map_or(step, |(test, _)| test);
    let (base, variant) = test.split_once('.').unwrap_or((test, ""));
    let is_known = PUBLISHED.iter().any(|(known, _)| *known == base);
    let text = match () {
        () if is_known && !variant.is_empty() => "warm-ups and tests before the writes",
        () if is_known => group_of(test).title(),
        () if step == "prepare" || step.starts_with("l.") => "load steps",
        () if step.starts_with('q') => "query steps",
        () => "all steps",
    };
    text.to_owned()
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

impl Comparison {
    /// The steps that are farthest from 1, the farthest first.
    pub fn movers(&self) -> Vec<&Row> {
        let mut rows: Vec<(&Row, f64)> = self.rows.iter().filter_map(|row| Some((row, row.ratio()?.ln().abs()))).collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows.into_iter().take(MOVERS).filter(|(_, distance)| *distance > 0.005).map(|(row, _)| row).collect()
    }

    /// Aligned text.
    pub fn to_text(&self) -> String {
        let mut text = format!("a: {}\nb: {}\n", self.a, self.b);
        let printed = |value: &Option<(String, f64)>| value.as_ref().map_or_else(|| "-".to_owned(), |(text, _)| text.clone());
        // Where there are marks, room for one is left behind each ratio.
        let room = if self.rows.iter().any(|row| row.is_doubtful) { " " } else { "" };
        let ratio = |row: &Row| row.printed_ratio() + if row.is_doubtful { "" } else { room };
        let lines: Vec<[String; 4]> =
            self.rows.iter().map(|row| [row.step.clone(), printed(&row.a), printed(&row.b), ratio(row)]).collect();
        let heading = ["".to_owned(), "a".to_owned(), "b".to_owned(), format!("b/a{room}")];
        let width = |i: usize| lines.iter().chain([&heading]).map(|line| line[i].chars().count()).max().unwrap_or(0);
        let widths: [usize; 4] = std::array::from_fn(width);
        let mut add = |line: &[String; 4]| {
            let cells: Vec<String> = line.iter().zip(widths).skip(1).map(|(cell, width)| format!("{cell:>width$}")).collect();
            writeln!(text, "{:<width$}  {}", line[0], cells.join("  "), width = widths[0]).expect("writing to a string cannot fail");
        };
        let mut group = "";
        for (row, line) in self.rows.iter().zip(&lines) {
            if row.group != group {
                group = &row.group;
                add(&[String::new(), String::new(), String::new(), String::new()]);
                add(&[format!("- {group}"), heading[1].clone(), heading[2].clone(), heading[3].clone()]);
            }
            add(line);
        }
        let mut text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        text.push_str("\ngeometric means of b/a\n");
        for (name, mean, steps) in &self.groups {
            writeln!(text, "{mean:>6.3}  {name} ({steps})").expect("writing to a string cannot fail");
        }
        let movers: Vec<String> = self.movers().iter().map(|row| format!("{} {}", row.step, row.printed_ratio())).collect();
        if !movers.is_empty() {
            writeln!(text, "\nlargest movers: {}", movers.join(", ")).expect("writing to a string cannot fail");
        }
        if self.rows.iter().any(|row| row.is_doubtful) {
            writeln!(text, "\n{DOUBT}").expect("writing to a string cannot fail");
        }
        writeln!(text, "\nnote: {}", self.caveat).expect("writing to a string cannot fail");
        for note in &self.notes {
            writeln!(text, "note: {note}").expect("writing to a string cannot fail");
        }
        text
    }

    /// A line per step: names, then values and ratio in full precision.
    pub fn to_csv(&self) -> String {
        let quote =
            |cell: &str| if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() };
        let number = |value: &Option<(String, f64)>| value.as_ref().map(|(_, number)| number.to_string()).unwrap_or_default();
        let mut text = "a,b,group,step,metric,unit,value_a,value_b,ratio\n".to_owned();
        for row in &self.rows {
            let ratio = row.ratio().map(|ratio| ratio.to_string()).unwrap_or_default();
            let cells =
                [&self.a, &self.b, &row.group, &row.step, row.metric, row.unit, &number(&row.a), &number(&row.b), &ratio].map(quote);
            writeln!(text, "{}", cells.join(",")).expect("writing to a string cannot fail");
        }
        text
    }

    /// Markdown tables.
    pub fn to_markdown(&self) -> String {
        let escape = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        let mut text = format!("a: {}  \nb: {}\n\n| | a | b | b/a |\n| :-- | --: | --: | --: |\n", escape(&self.a), escape(&self.b));
        let printed = |value: &Option<(String, f64)>| value.as_ref().map_or_else(|| "-".to_owned(), |(text, _)| text.clone());
        for row in &self.rows {
            writeln!(text, "| {} | {} | {} | {} |", escape(&row.step), printed(&row.a), printed(&row.b), row.printed_ratio())
                .expect("writing to a string cannot fail");
        }
        text.push_str("\n| geometric mean of b/a | steps | |\n| :-- | --: | --: |\n");
        for (name, mean, steps) in &self.groups {
            writeln!(text, "| {name} | {steps} | {mean:.3} |").expect("writing to a string cannot fail");
        }
        if self.rows.iter().any(|row| row.is_doubtful) {
            writeln!(text, "\n{DOUBT}").expect("writing to a string cannot fail");
        }
        writeln!(text, "\n{}", self.caveat).expect("writing to a string cannot fail");
        for note in &self.notes {
            writeln!(text, "\n{}", escape(note)).expect("writing to a string cannot fail");
        }
        text
    }

    /// One JSON value.
    pub fn to_json(&self) -> Value {
        let side = |value: &Option<(String, f64)>| value.as_ref().map(|(text, number)| json!({"value": number, "printed": text}));
        json!({
            "a": self.a,
            "b": self.b,
            "steps": self.rows.iter().map(|row| json!({
                "step": row.step, "group": row.group, "metric": row.metric, "unit": row.unit, "a": side(&row.a), "b": side(&row.b),
                "ratio": row.ratio(), "printed_ratio": row.printed_ratio(), "doubtful": row.is_doubtful,
            })).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(|(name, mean, steps)| json!({"group": name, "geometric_mean": mean, "steps": steps})).collect::<Vec<_>>(),
            "movers": self.movers().iter().map(|row| &row.step).collect::<Vec<_>>(),
            "note": self.caveat,
            "notes": self.notes,
        })
    }
}

/// Which cells of two views belong together: the only ones, those with the same label, else those with the same config and shape. Empty when
/// neither rule pairs any.
pub fn pairs(a: &View, b: &View) -> Vec<(usize, usize)> {
    if let ([_], [_]) = (&a.cells[..], &b.cells[..]) {
        return vec![(0, 0)];
    }
    let by = |is_pair: fn(&crate::view::CellInfo, &crate::view::CellInfo) -> bool| -> Vec<(usize, usize)> {
        let of = |i: usize| {
            let mut found = b.cells.iter().enumerate().filter(|(_, cell)| is_pair(&a.cells[i], cell)).map(|(j, _)| j);
            let first = found.next()?;
            found.next().is_none().then_some((i, first))
        };
        (0..a.cells.len()).filter_map(of).collect()
    };
    let same_label = by(|a, b| a.label == b.label);
    let is_one_build = |view: &View| view.cells.iter().all(|cell| cell.build == view.cells[0].build);
    match () {
        () if !same_label.is_empty() => same_label,
        () if is_one_build(a) && is_one_build(b) => by(|a, b| (&a.config, &a.shape) == (&b.config, &b.shape)),
        () => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: &str, a: &str, b: &str) -> Row {
        let of = |text: &str| text.parse().ok().map(|number| (text.to_owned(), number));
        Row {
            step: step.to_owned(),
            group: group(step),
            metric: "qps",
            unit: "queries/s",
            a: of(a),
            b: of(b),
            is_doubtful: step == "delete_range=100",
        }
    }

    #[test]
    fn ratios_groups_and_movers() {
        let rows = vec![
            row("scan_range=100", "100", "50"),
            row("insert_range=100", "100", "200"),
            row("delete_range=100", "100", "50"),
            row("qr100", "1", "x"),
        ];
        assert_eq!(rows.iter().map(Row::printed_ratio).collect::<Vec<_>>(), ["0.50", "2.00", "0.50?", "-"]);
        let groups = vec![("writes".to_owned(), geometric_mean(&[2.0, 0.5]), 2)];
        let comparison =
            Comparison { a: "a".to_owned(), b: "b|".to_owned(), rows, groups, caveat: "", notes: vec!["shortened".to_owned()] };
        assert!((comparison.groups[0].1 - 1.0).abs() < 1e-12);
        assert_eq!(comparison.movers().len(), 3);
        let text = comparison.to_text();
        assert!(text.contains("scan_range=100    100   50  0.50\n\n- writes            a    b   b/a\n"), "{text}");
        assert!(text.ends_with("? machine disturbed or SLA missed, in the cell or the base\n\nnote: \nnote: shortened\n"), "{text}");
        assert!(comparison.to_csv().contains("a,b|,writes,insert_range=100,qps,queries/s,100,200,2\n"));
        assert!(comparison.to_markdown().contains("| qr100 | 1 | - | - |"));
        assert_eq!(comparison.to_json()["steps"][3]["ratio"], Value::Null);
    }
}
