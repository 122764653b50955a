//! Two cells side by side: ratios per step, means per group, what moved most.

use std::fmt::Write as _;

use itertools::Itertools;
use plimsoll_core::plan::published::{PUBLISHED, group_of};
use plimsoll_stats::{RESAMPLES, mann_whitney, median_ratio, seed_of};
use serde_json::{Value, json};

use crate::cells::machines;
use crate::classic::relative;
use crate::runs::status::Status;
use crate::steps::step_view::StepView;
use crate::view::View;
use crate::words::notes::ONE_CELL;

/// How many movers are named.
const MOVERS: usize = 5;

/// Runs on each side from which on they are compared as samples: with fewer no Mann-Whitney test
/// finds anything at 0.05.
const LEAST_RUNS: usize = 4;
/// Of the intervals.
const LEVEL: f64 = 0.95;

/// What the mark at a ratio means.
const DOUBT: &str = "? machine disturbed or SLA missed, in the cell or the base";

/// Columns of text: names, values, ratio, then [`SAMPLES`].
const COLUMNS: usize = 7;
/// Columns that two samples have.
const SAMPLES: [&str; 3] = ["95 % interval", "p", "runs"];

/// What is concluded about two campaigns' runs.
const UNPAIRED: &str = "Values are medians over runs. The campaigns ran one after the other: p \
                       (Mann-Whitney) and the 95 % interval of the ratio of medians (bootstrap) \
                       tell chance apart from a difference, but not the builds from what changed \
                       on the machine in between. `plimsoll confirm` runs both in turn.";

/// One cell against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The base's label.
    pub a: String,
    /// The other's label.
    pub b: String,
    /// The campaigns that they are of.
    pub campaigns: [String; 2],
    /// Steps that at least one has, in the order of reports.
    pub rows: Vec<Row>,
    /// Groups in the order of their first step: name, geometric mean of the ratios, steps.
    pub groups: Vec<(String, f64, usize)>,
    /// Why this is not a verdict.
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
    /// Whether a witness saw the machine disturbed, or the writers missed their rate, on either
    /// side.
    pub is_doubtful: bool,
    /// The runs of both sides as samples, where two campaigns have at least [`LEAST_RUNS`] each.
    pub unpaired: Option<Unpaired>,
}

/// Two samples that are not paired: b against a.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unpaired {
    /// The 95 % bootstrap interval of the ratio of medians.
    pub interval: (f64, f64),
    /// The exact two-sided p of Mann and Whitney.
    pub p: f64,
    /// Runs of a and of b.
    pub runs: (usize, usize),
}

impl Unpaired {
    fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len().min(b.len()) < LEAST_RUNS {
            return None;
        }
        let (_, interval) = median_ratio(a, b, LEVEL, RESAMPLES, seed_of(&[a, b].concat()))?;
        Some(Self {
            interval: (interval.low.exp(), interval.high.exp()),
            p: mann_whitney(a, b)?.p_two_sided,
            runs: (a.len(), b.len()),
        })
    }
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
        number(&self.b)
            .zip(number(&self.a))
            .map_or_else(|| "-".to_owned(), |(b, a)| relative::format(b, a) + mark)
    }

    /// The interval, p and the numbers of runs; nothing where there is one run.
    fn printed_samples(&self) -> [String; 3] {
        self.unpaired.map_or_else(
            Default::default,
            |Unpaired {
                 interval: (low, high),
                 p,
                 runs: (a, b),
             }| {
                let p = if p < 0.001 {
                    "<0.001".to_owned()
                } else {
                    format!("{p:.3}")
                };
                [format!("[{low:.3}, {high:.3}]"), p, format!("{a}+{b}")]
            },
        )
    }
}

/// Compares a cell of one view with a cell of another, which may be the same view.
pub fn compare(a: (&View, usize), b: (&View, usize)) -> Comparison {
    let names =
        a.0.steps
            .iter()
            .chain(&b.0.steps)
            .map(|step| step.name.as_str())
            .unique();
    let rows: Vec<Row> = names.filter_map(|name| row(name, a, b)).collect();
    let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
    for row in &rows {
        let Some(ratio) = row.ratio() else { continue };
        match groups.iter_mut().find(|(name, _)| *name == row.group) {
            Some((_, ratios)) => ratios.push(ratio),
            None => groups.push((row.group.clone(), vec![ratio])),
        }
    }
    let is_once = |(view, cell): (&View, usize)| {
        view.steps
            .iter()
            .all(|step| step.outcomes[cell].blocks_used <= 1)
    };
    let mut notes: Vec<String> = a.0.notes.iter().chain(&b.0.notes).cloned().collect();
    if let Some(difference) = machines::difference(&a.0.cells[a.1], &b.0.cells[b.1]) {
        notes.push(format!(
            "‡ a and b ran on different machines ({difference}): a ratio compares the machines too."
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    // A side may be a view of one cell: here it has another beside it.
    notes.retain(|note| note != ONE_CELL && seen.insert(note.clone()));
    Comparison {
        notes,
        a: a.0.cells[a.1].label.clone(),
        b: b.0.cells[b.1].label.clone(),
        campaigns: [a, b].map(|side| campaign(side).to_owned()),
        groups: groups
            .into_iter()
            .map(|(name, ratios)| (name, geometric_mean(&ratios), ratios.len()))
            .collect(),
        caveat: match () {
            () if is_once(a) || is_once(b) => {
                "Each value is from one run: a difference is something to look at, not a \
                verdict."
            }
            () if campaign(a) == campaign(b) => {
                "Values are medians over blocks; `plimsoll show` judges them by pairs."
            }
            () if rows.iter().any(|row| row.unpaired.is_some()) => UNPAIRED,
            () => {
                "Values are medians over few blocks: a difference is something to look at, not a \
                verdict."
            }
        },
        rows,
    }
}

fn campaign((view, cell): (&View, usize)) -> &str {
    &view.campaigns[view.cells[cell].campaign].id
}

fn row(name: &str, a: (&View, usize), b: (&View, usize)) -> Option<Row> {
    let find =
        |view: &'_ View| -> Option<usize> { view.steps.iter().position(|step| step.name == name) };
    let (in_a, in_b) = (
        find(a.0).map(|i| &a.0.steps[i]),
        find(b.0).map(|i| &b.0.steps[i]),
    );
    let step = in_a.or(in_b)?;
    let value = |step: Option<&StepView>, cell: usize| {
        let measure = step?.outcomes[cell].measure(step?.rate.name)?;
        let number = measure
            .value
            .value
            .or_else(|| measure.classic.as_ref()?.parse().ok())?;
        Some((measure.classic.clone().or_else(|| measure.text())?, number))
    };
    let is_doubtful = |step: Option<&StepView>, cell: usize| {
        step.is_some_and(|step| {
            matches!(
                step.outcomes[cell].status,
                Status::Suspect | Status::SlaMissed
            )
        })
    };
    let row = Row {
        step: name.to_owned(),
        group: group(name),
        metric: step.rate.name,
        unit: step.rate.unit,
        a: value(in_a, a.1),
        b: value(in_b, b.1),
        is_doubtful: is_doubtful(in_a, a.1) || is_doubtful(in_b, b.1),
        unpaired: match (in_a, in_b) {
            (Some(of_a), Some(of_b)) if campaign(a) != campaign(b) => Unpaired::of(
                &of_a.outcomes[a.1].rate_of_blocks,
                &of_b.outcomes[b.1].rate_of_blocks,
            ),
            _ => None,
        },
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
        let mut rows: Vec<(&Row, f64)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.ratio()?.ln().abs())))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        // What may well be chance has not moved.
        rows.retain(|(row, _)| {
            row.unpaired
                .is_none_or(|unpaired| unpaired.p <= 1.0 - LEVEL)
        });
        rows.into_iter()
            .take(MOVERS)
            .filter(|(_, distance)| *distance > 0.005)
            .map(|(row, _)| row)
            .collect()
    }

    /// The names of both, with their campaigns where these are two.
    fn names(&self) -> [String; 2] {
        let [of_a, of_b] = &self.campaigns;
        if of_a == of_b {
            [self.a.clone(), self.b.clone()]
        } else {
            [
                format!("{} of {of_a}", self.a),
                format!("{} of {of_b}", self.b),
            ]
        }
    }

    fn has_samples(&self) -> bool {
        self.rows.iter().any(|row| row.unpaired.is_some())
    }

    /// Aligned text.
    pub fn to_text(&self) -> String {
        let [a, b] = self.names();
        let mut text = format!("a: {a}\nb: {b}\n");
        let printed = |value: &Option<(String, f64)>| {
            value
                .as_ref()
                .map_or_else(|| "-".to_owned(), |(text, _)| text.clone())
        };
        // If there are marks, room for one is left behind each ratio.
        let room = if self.rows.iter().any(|row| row.is_doubtful) {
            " "
        } else {
            ""
        };
        let ratio = |row: &Row| row.printed_ratio() + if row.is_doubtful { "" } else { room };
        let line = |row: &Row| {
            let [interval, p, runs] = row.printed_samples();
            [
                row.step.clone(),
                printed(&row.a),
                printed(&row.b),
                ratio(row),
                interval,
                p,
                runs,
            ]
        };
        let lines: Vec<[String; COLUMNS]> = self.rows.iter().map(line).collect();
        let mut heading = ["", "a", "b", "b/a", "", "", ""].map(str::to_owned);
        heading[3].push_str(room);
        if self.has_samples() {
            heading[4..].clone_from_slice(&SAMPLES.map(str::to_owned));
        }
        let width = |i: usize| {
            lines
                .iter()
                .chain([&heading])
                .map(|line| line[i].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let mut add = |line: &[String; COLUMNS]| {
            let cells: Vec<String> = line
                .iter()
                .zip(widths)
                .skip(1)
                .map(|(cell, width)| format!("{cell:>width$}"))
                .collect();
            writeln!(
                text,
                "{:<width$}  {}",
                line[0],
                cells.join("  "),
                width = widths[0]
            )
            .expect("writing to a string cannot fail");
        };
        let mut group = "";
        for (row, line) in self.rows.iter().zip(&lines) {
            if row.group != group {
                group = &row.group;
                add(&Default::default());
                heading[0] = format!("- {group}");
                add(&heading);
            }
            add(line);
        }
        let mut text: String = text
            .lines()
            .map(|line| format!("{}\n", line.trim_end()))
            .collect();
        text.push_str("\ngeometric means of b/a\n");
        for (name, mean, steps) in &self.groups {
            writeln!(text, "{mean:>6.3}  {name} ({steps})")
                .expect("writing to a string cannot fail");
        }
        let movers: Vec<String> = self
            .movers()
            .iter()
            .map(|row| format!("{} {}", row.step, row.printed_ratio()))
            .collect();
        if !movers.is_empty() {
            writeln!(text, "\nlargest movers: {}", movers.join(", "))
                .expect("writing to a string cannot fail");
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
        let quote = |cell: &str| {
            if cell.contains([',', '"', '\n']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell.to_owned()
            }
        };
        let number = |value: &Option<(String, f64)>| {
            value
                .as_ref()
                .map(|(_, number)| number.to_string())
                .unwrap_or_default()
        };
        let mut text =
            "a,b,group,step,metric,unit,value_a,value_b,ratio,low,high,p,runs_a,runs_b,doubtful,campaign_a,campaign_b\n".to_owned();
        for row in &self.rows {
            let ratio = row
                .ratio()
                .map(|ratio| ratio.to_string())
                .unwrap_or_default();
            let cells = [
                &self.a,
                &self.b,
                &row.group,
                &row.step,
                row.metric,
                row.unit,
                &number(&row.a),
                &number(&row.b),
                &ratio,
            ]
            .map(quote);
            let samples = row.unpaired.map_or(
                ",,,,".to_owned(),
                |Unpaired {
                     interval: (low, high),
                     p,
                     runs: (a, b),
                 }| format!("{low},{high},{p},{a},{b}"),
            );
            let campaigns = self
                .campaigns
                .each_ref()
                .map(|campaign| quote(campaign))
                .join(",");
            writeln!(
                text,
                "{},{samples},{},{campaigns}",
                cells.join(","),
                row.is_doubtful
            )
            .expect("writing to a string cannot fail");
        }
        text
    }

    /// Markdown tables.
    pub fn to_markdown(&self) -> String {
        let escape = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
        let (names, rule) = if self.has_samples() {
            (format!(" {} |", SAMPLES.join(" | ")), " --: | --: | --: |")
        } else {
            <_>::default()
        };
        let [a, b] = self.names().map(|name| escape(&name));
        let mut text = format!(
            "a: {a}  \nb: {b}\n\n| | a | b | b/a |{names}\n| :-- | --: | --: | --: |{rule}\n"
        );
        let printed = |value: &Option<(String, f64)>| {
            value
                .as_ref()
                .map_or_else(|| "-".to_owned(), |(text, _)| text.clone())
        };
        for row in &self.rows {
            let samples = if self.has_samples() {
                format!(" {} |", row.printed_samples().join(" | "))
            } else {
                String::new()
            };
            writeln!(
                text,
                "| {} | {} | {} | {} |{samples}",
                escape(&row.step),
                printed(&row.a),
                printed(&row.b),
                row.printed_ratio()
            )
            .expect("writing to a string cannot fail");
        }
        text.push_str("\n| geometric mean of b/a | steps | |\n| :-- | --: | --: |\n");
        for (name, mean, steps) in &self.groups {
            writeln!(text, "| {name} | {steps} | {mean:.3} |")
                .expect("writing to a string cannot fail");
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
        let side = |value: &Option<(String, f64)>| {
            value
                .as_ref()
                .map(|(text, number)| json!({"value": number, "printed": text}))
        };
        json!({
            "a": self.a,
            "b": self.b,
            "campaign_a": self.campaigns[0],
            "campaign_b": self.campaigns[1],
            "steps": self.rows.iter().map(|row| json!({
                "step": row.step, "group": row.group, "metric": row.metric, "unit": row.unit, "a": side(&row.a), "b": side(&row.b),
                "ratio": row.ratio(), "printed_ratio": row.printed_ratio(), "doubtful": row.is_doubtful,
                "unpaired": row.unpaired.map(|Unpaired { interval: (low, high), p, runs: (a, b) }| json!({
                    "low": low, "high": high, "level": LEVEL, "p": p, "runs_a": a, "runs_b": b,
                })),
            })).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(|(name, mean, steps)| json!({"group": name, "geometric_mean": mean, "steps": steps})).collect::<Vec<_>>(),
            "movers": self.movers().iter().map(|row| &row.step).collect::<Vec<_>>(),
            "note": self.caveat,
            "notes": self.notes,
        })
    }
}

/// Which cells of two views belong together: the only ones, those with the same label, else those
/// with the same config and shape. Empty when neither rule pairs any.
pub fn pairs(a: &View, b: &View) -> Vec<(usize, usize)> {
    if let ([_], [_]) = (&a.cells[..], &b.cells[..]) {
        return vec![(0, 0)];
    }
    let by = |is_pair: fn(
        &crate::cells::cell_info::CellInfo,
        &crate::cells::cell_info::CellInfo,
    ) -> bool|
     -> Vec<(usize, usize)> {
        let of = |i: usize| {
            let mut found = b
                .cells
                .iter()
                .enumerate()
                .filter(|(_, cell)| is_pair(&a.cells[i], cell))
                .map(|(j, _)| j);
            let first = found.next()?;
            found.next().is_none().then_some((i, first))
        };
        (0..a.cells.len()).filter_map(of).collect()
    };
    let same_label = by(|a, b| a.label == b.label);
    let is_one_build = |view: &View| {
        view.cells
            .iter()
            .all(|cell| cell.build == view.cells[0].build)
    };
    match () {
        () if !same_label.is_empty() => same_label,
        () if is_one_build(a) && is_one_build(b) => {
            by(|a, b| (&a.config, &a.shape) == (&b.config, &b.shape))
        }
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
            unpaired: None,
        }
    }

    #[test]
    fn samples_that_are_not_paired_have_an_interval_and_a_p() {
        let (a, b) = ([100.0, 101.0, 99.0, 100.5], [90.0, 91.0, 89.0, 90.5, 90.2]);
        assert_eq!(Unpaired::of(&a[..3], &b), None);
        let found = Unpaired::of(&a, &b).unwrap();
        assert!(
            (found.p - 2.0 / 126.0).abs() < 1e-9 && found.runs == (4, 5),
            "{found:?}"
        );
        assert!(
            found.interval.0 < 0.9 && found.interval.1 > 0.9 && found.interval.1 < 1.0,
            "{found:?}"
        );
        let row = Row {
            unpaired: Some(found),
            ..row("q", "100", "90")
        };
        let rows = vec![row, self::row("r", "1", "1")];
        let campaigns = ["1".to_owned(), "2".to_owned()];
        let (a, b) = ("a".to_owned(), "b".to_owned());
        let comparison = Comparison {
            a,
            b,
            campaigns,
            rows,
            groups: Vec::new(),
            caveat: "",
            notes: Vec::new(),
        };
        let text = comparison.to_text();
        assert!(
            text.starts_with("a: a of 1\nb: b of 2\n") && text.contains("largest movers: q 0.90\n"),
            "{text}"
        );
        assert!(
            text.contains("b/a   95 % interval      p  runs\nq  ")
                && text.contains("]  0.016   4+5\n"),
            "{text}"
        );
        assert!(
            comparison
                .to_markdown()
                .contains(" | 0.016 | 4+5 |\n| r | 1 | 1 | 1.00 |  |  |  |\n"),
            "{}",
            comparison.to_markdown()
        );
        assert_eq!(comparison.to_json()["steps"][0]["unpaired"]["runs_b"], 5);
    }

    #[test]
    fn ratios_groups_and_movers() {
        let rows = vec![
            row("scan_range=100", "100", "50"),
            row("insert_range=100", "100", "200"),
            row("delete_range=100", "100", "50"),
            row("qr100", "1", "x"),
        ];
        assert_eq!(
            rows.iter().map(Row::printed_ratio).collect::<Vec<_>>(),
            ["0.50", "2.00", "0.50?", "-"]
        );
        let groups = vec![("writes".to_owned(), geometric_mean(&[2.0, 0.5]), 2)];
        let (a, b, campaigns) = (
            "a".to_owned(),
            "b|".to_owned(),
            ["c".to_owned(), "c".to_owned()],
        );
        let comparison = Comparison {
            a,
            b,
            campaigns,
            rows,
            groups,
            caveat: "",
            notes: vec!["shortened".to_owned()],
        };
        assert!((comparison.groups[0].1 - 1.0).abs() < 1e-12);
        assert_eq!(comparison.movers().len(), 3);
        let text = comparison.to_text();
        assert!(
            text.contains("scan_range=100    100   50  0.50\n\n- writes            a    b   b/a\n"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "? machine disturbed or SLA missed, in the cell or the base\n\nnote: \nnote: \
                shortened\n"
            ),
            "{text}"
        );
        assert!(
            comparison
                .to_csv()
                .contains("a,b|,writes,insert_range=100,qps,queries/s,100,200,2,,,,,,false,c,c\n")
        );
        assert!(comparison.to_markdown().contains("| qr100 | 1 | - | - |"));
        assert_eq!(comparison.to_json()["steps"][3]["ratio"], Value::Null);
    }
}
