//! Two cells side by side, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::classic::relative;
use plimsoll_analysis::post::PairWords;
use plimsoll_analysis::{Comparison, ComparisonRow, INTERVAL_LEVEL, Unpaired};
use serde_json::{Value, json};

use super::Draw;
use crate::markdown::escape;

/// What the mark at a ratio means.
const DOUBT: &str = "? machine disturbed or SLA missed, in the cell or the base";

/// Columns of text: names, values, ratio, then [`SAMPLES`].
const COLUMNS: usize = 7;
/// Columns that two samples have.
const SAMPLES: [&str; 3] = ["95 % interval", "p", "runs"];

impl Draw for Comparison {
    fn to_text(&self) -> String {
        let [a, b] = names(self);
        let mut text = format!("a: {a}\nb: {b}\n");
        text.push_str(&beyond_build(self));
        text.push_str(&table(self));
        text.push_str("\ngeometric means of b/a\n");
        for (name, mean, steps) in &self.groups {
            writeln!(text, "{mean:>6.3}  {name} ({steps})")
                .expect("writing to a string cannot fail");
        }
        if let Some(words) = &self.words {
            text.push_str(&in_words(words));
        }
        let movers: Vec<String> = self
            .movers()
            .iter()
            .map(|row| format!("{} {}", row.step, printed_ratio(row)))
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

    fn to_json(&self) -> Value {
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
            "beyond_build": self.beyond_build.iter().map(|beyond| json!({
                "kind": beyond.kind.name(),
                "name": beyond.name,
                "a": beyond.values[0],
                "b": beyond.values[1],
            })).collect::<Vec<_>>(),
            "steps": self.rows.iter().zip(classes(self)).map(|(row, class)| json!({
                "step": row.step,
                "group": row.group,
                "metric": row.metric,
                "unit": row.unit,
                "a": side(&row.a),
                "b": side(&row.b),
                "ratio": row.ratio(),
                "printed_ratio": printed_ratio(row),
                "class": class,
                "doubtful": row.is_doubtful,
                "unpaired": row.unpaired.map(|Unpaired { interval, p, runs }| json!({
                    "low": interval.0,
                    "high": interval.1,
                    "level": INTERVAL_LEVEL,
                    "p": p,
                    "runs_a": runs.0,
                    "runs_b": runs.1,
                })),
            })).collect::<Vec<_>>(),
            "groups": self.groups.iter().map(|(name, mean, steps)| json!({
                "group": name,
                "geometric_mean": mean,
                "steps": steps,
            })).collect::<Vec<_>>(),
            "words": self.words.as_ref().map(|words| json!({
                "meaning": words.meaning,
                "groups": words.groups.iter().map(|(group, text)| json!({
                    "group": group,
                    "text": text,
                })).collect::<Vec<_>>(),
            })),
            "movers": self.movers().iter().map(|row| &row.step).collect::<Vec<_>>(),
            "note": self.caveat,
            "notes": self.notes,
        })
    }
}

/// A line per group, and what its words mean.
fn in_words(words: &PairWords) -> String {
    if words.groups.is_empty() {
        return String::new();
    }
    let lines = words.groups.iter();
    let lines: Vec<String> = lines
        .map(|(group, text)| format!("  {group}: {text}\n"))
        .collect();
    format!("\nin words ({})\n{}", words.meaning, lines.concat())
}

/// The class of each row; without words none has one.
fn classes(comparison: &Comparison) -> Vec<Option<&'static str>> {
    match &comparison.words {
        Some(words) => words.classes.clone(),
        None => vec![None; comparison.rows.len()],
    }
}

/// What differs beyond the builds, a line each.
fn beyond_build(comparison: &Comparison) -> String {
    if comparison.beyond_build.is_empty() {
        return String::new();
    }
    let lines = comparison.beyond_build.iter();
    let lines: Vec<String> = lines
        .map(|beyond| format!("  {}\n", beyond.line(&["a", "b"])))
        .collect();
    format!("differs beyond the build:\n{}", lines.concat())
}

/// A line per step below the heading of its group.
fn table(comparison: &Comparison) -> String {
    let mut text = String::new();
    let printed = |value: &Option<(String, f64)>| {
        value
            .as_ref()
            .map_or_else(|| "-".to_owned(), |(text, _)| text.clone())
    };
    // If there are marks, room for one is left behind each ratio.
    let room = if comparison.rows.iter().any(|row| row.is_doubtful) {
        " "
    } else {
        ""
    };
    let ratio = |row: &ComparisonRow| printed_ratio(row) + if row.is_doubtful { "" } else { room };
    let line = |row: &ComparisonRow| {
        let [interval, p, runs] = printed_samples(row);
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
    let lines: Vec<[String; COLUMNS]> = comparison.rows.iter().map(line).collect();
    let mut heading = ["", "a", "b", "b/a", "", "", ""].map(str::to_owned);
    heading[3].push_str(room);
    if has_samples(comparison) {
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
    for (row, line) in comparison.rows.iter().zip(&lines) {
        if row.group != group {
            group = &row.group;
            add(&Default::default());
            heading[0] = format!("- {group}");
            add(&heading);
        }
        add(line);
    }
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// A line per step: names, then values and ratio in full precision.
pub fn comparison_to_csv(comparison: &Comparison) -> String {
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
        "a,b,group,step,metric,unit,value_a,value_b,ratio,low,high,p,runs_a,runs_b,doubtful,\
        campaign_a,campaign_b,class\n"
            .to_owned();
    for (row, class) in comparison.rows.iter().zip(classes(comparison)) {
        let ratio = row
            .ratio()
            .map(|ratio| ratio.to_string())
            .unwrap_or_default();
        let cells = [
            &comparison.a,
            &comparison.b,
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
        let campaigns = comparison
            .campaigns
            .each_ref()
            .map(|campaign| quote(campaign))
            .join(",");
        writeln!(
            text,
            "{},{samples},{},{campaigns},{}",
            cells.join(","),
            row.is_doubtful,
            class.unwrap_or_default()
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// Markdown tables.
pub fn comparison_to_markdown(comparison: &Comparison) -> String {
    let (headings, rule) = if has_samples(comparison) {
        (format!(" {} |", SAMPLES.join(" | ")), " --: | --: | --: |")
    } else {
        <_>::default()
    };
    let (headings, rule) = match comparison.words {
        Some(_) => (format!("{headings} |"), format!("{rule} :-- |")),
        None => (headings, rule.to_owned()),
    };
    let [a, b] = names(comparison).map(|name| escape(&name));
    let beyond = comparison.beyond_build.iter();
    let beyond: Vec<String> = beyond
        .map(|beyond| format!("- {}\n", escape(&beyond.line(&["a", "b"]))))
        .collect();
    let beyond = match beyond.concat() {
        none if none.is_empty() => none,
        lines => format!("\nDiffers beyond the build:\n\n{lines}"),
    };
    let mut text = format!(
        "a: {a}  \nb: {b}\n{beyond}\n| | a | b | b/a |{headings}\n| :-- | --: | --: | --: |{rule}\n"
    );
    let printed = |value: &Option<(String, f64)>| {
        value
            .as_ref()
            .map_or_else(|| "-".to_owned(), |(text, _)| text.clone())
    };
    for (row, class) in comparison.rows.iter().zip(classes(comparison)) {
        let samples = match comparison.words {
            _ if has_samples(comparison) => format!(" {} |", printed_samples(row).join(" | ")),
            Some(_) => format!(" {} |", class.unwrap_or_default()),
            None => String::new(),
        };
        writeln!(
            text,
            "| {} | {} | {} | {} |{samples}",
            escape(&row.step),
            printed(&row.a),
            printed(&row.b),
            printed_ratio(row)
        )
        .expect("writing to a string cannot fail");
    }
    text.push_str("\n| geometric mean of b/a | steps | |\n| :-- | --: | --: |\n");
    for (name, mean, steps) in &comparison.groups {
        writeln!(text, "| {} | {steps} | {mean:.3} |", escape(name))
            .expect("writing to a string cannot fail");
    }
    if let Some(words) = &comparison.words {
        writeln!(text, "\nIn words ({}):\n", words.meaning)
            .expect("writing to a string cannot fail");
        for (group, said) in &words.groups {
            writeln!(text, "- {}: {}", escape(group), escape(said))
                .expect("writing to a string cannot fail");
        }
    }
    if comparison.rows.iter().any(|row| row.is_doubtful) {
        writeln!(text, "\n{DOUBT}").expect("writing to a string cannot fail");
    }
    writeln!(text, "\n{}", comparison.caveat).expect("writing to a string cannot fail");
    // Notes have commands in backticks.
    let escape = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    for note in &comparison.notes {
        writeln!(text, "\n{}", escape(note)).expect("writing to a string cannot fail");
    }
    text
}

/// The names of both, with their campaigns where these are two.
fn names(comparison: &Comparison) -> [String; 2] {
    let [of_a, of_b] = &comparison.campaigns;
    if of_a == of_b {
        [comparison.a.clone(), comparison.b.clone()]
    } else {
        [
            format!("{} of {of_a}", comparison.a),
            format!("{} of {of_b}", comparison.b),
        ]
    }
}

fn has_samples(comparison: &Comparison) -> bool {
    comparison.rows.iter().any(|row| row.unpaired.is_some())
}

/// b / a as it is printed: from printed values, as the originals do.
fn printed_ratio(row: &ComparisonRow) -> String {
    let number = |value: &Option<(String, f64)>| value.as_ref()?.0.parse::<f64>().ok();
    let mark = if row.is_doubtful { "?" } else { "" };
    number(&row.b)
        .zip(number(&row.a))
        .map_or_else(|| "-".to_owned(), |(b, a)| relative::format(b, a) + mark)
}

/// The interval, p and the numbers of runs; nothing where there is one run.
fn printed_samples(row: &ComparisonRow) -> [String; 3] {
    row.unpaired.map_or_else(
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

#[cfg(test)]
mod tests {
    use plimsoll_analysis::questions::compare::*;
    use plimsoll_analysis::{BeyondBuild, FactKind};

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
        let beyond = BeyondBuild {
            kind: FactKind::Session,
            name: "isolation".to_owned(),
            values: ["repeatable read", "read committed"]
                .map(|level| Some(level.to_owned()))
                .to_vec(),
        };
        let comparison = Comparison {
            a,
            b,
            campaigns,
            beyond_build: vec![beyond],
            rows,
            groups: Vec::new(),
            words: None,
            caveat: "",
            notes: Vec::new(),
        };
        let text = comparison.to_text();
        assert!(
            text.starts_with(
                "a: a of 1\nb: b of 2\ndiffers beyond the build:\n  session isolation: repeatable \
                read (a); read committed (b)\n"
            ) && text.contains("largest movers: q 0.90\n"),
            "{text}"
        );
        assert!(
            text.contains("b/a   95 % interval      p  runs\nq  ")
                && text.contains("]  0.016   4+5\n"),
            "{text}"
        );
        assert!(
            comparison_to_markdown(&comparison)
                .contains(" | 0.016 | 4+5 |\n| r | 1 | 1 | 1.00 |  |  |  |\n"),
            "{}",
            comparison_to_markdown(&comparison)
        );
        let value = comparison.to_json();
        assert_eq!(value["steps"][0]["unpaired"]["runs_b"], 5);
        assert_eq!(value["beyond_build"][0]["b"], "read committed");
    }

    #[test]
    fn ratios_groups_and_movers() {
        let rows = vec![
            row("scan_range=100", "100", "50"),
            row("insert_range=100", "100", "200"),
            row("delete_range=100", "100", "50"),
            row("qr100", "1", "x"),
            row("[_a_](b)", "1", "x"),
        ];
        assert_eq!(
            rows.iter().map(printed_ratio).collect::<Vec<_>>(),
            ["0.50", "2.00", "0.50?", "-", "-"]
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
            beyond_build: Vec::new(),
            rows,
            groups,
            words: Some(PairWords {
                meaning: "limits".to_owned(),
                classes: vec![Some("big regression"), None, None, None, None],
                groups: vec![("writes".to_owned(), "throughput is stable".to_owned())],
            }),
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
            comparison_to_csv(&comparison)
                .contains("a,b|,writes,insert_range=100,qps,queries/s,100,200,2,,,,,,false,c,c,\n")
        );
        assert!(comparison_to_markdown(&comparison).contains("| qr100 | 1 | - | - |  |"));
        assert_eq!(comparison.to_json()["steps"][3]["ratio"], Value::Null);
        // The words of a post, in each format.
        assert!(
            text.contains("\nin words (limits)\n  writes: throughput is stable\n"),
            "{text}"
        );
        let markdown = comparison_to_markdown(&comparison);
        assert!(
            markdown.contains("| scan_range=100 | 100 | 50 | 0.50 | big regression |"),
            "{markdown}"
        );
        // Names of tests are nobody's markup.
        assert!(
            markdown.contains("| \\[\\_a\\_\\](b) | 1 | - | - |  |"),
            "{markdown}"
        );
        assert!(comparison_to_csv(&comparison).contains(",c,c,big regression\n"));
        assert_eq!(
            comparison.to_json()["words"]["groups"][0]["text"],
            "throughput is stable"
        );
    }
}
