//! Markdown that can be pasted into an issue.

use std::fmt::Write as _;

use crate::classic::Class;
use crate::classic::metrics_line::{self, relative_cells};
use crate::view::{ClassicTable, Outcome, Status, StepView, View};

/// The three classic tables, the metrics of every step absolute and relative to the base, and the notes.
pub fn to_markdown(view: &View) -> String {
    let mut text = format!("# {}\n\n", escape(&view.title));
    for campaign in &view.campaigns {
        line(
            &mut text,
            &format!("Campaign `{}`, plan {}, seed {}, {}.", campaign.id, escape(&campaign.plan), campaign.seed, campaign.state),
        );
        if !campaign.description.is_empty() {
            line(&mut text, &format!("\n{}.", escape(campaign.description.trim_end_matches('.'))));
        }
    }
    text.push('\n');
    for note in &view.notes {
        line(&mut text, &format!("> {}  ", escape(note)));
    }
    let summary = &view.summary;
    for table in [&summary.absolute, &summary.relative, &summary.insert_rate] {
        if !table.columns.is_empty() {
            add_classic(&mut text, table);
        }
    }
    add_legend(&mut text, view);
    for step in &view.steps {
        add_step(&mut text, view, step);
    }
    text
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

fn row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    text.push('|');
    for cell in cells {
        write!(text, " {cell} |").expect("writing to a string cannot fail");
    }
    text.push('\n');
}

/// A header and the line under it: the first column to the left, numbers to the right.
fn header<'a>(text: &mut String, columns: impl Iterator<Item = &'a str> + Clone) {
    row(text, std::iter::once(String::new()).chain(columns.clone().map(escape)));
    row(text, std::iter::once(":--".to_owned()).chain(columns.map(|_| "--:".to_owned())));
}

fn add_classic(text: &mut String, table: &ClassicTable) {
    line(text, &format!("\n## {}\n\n{}\n", table.title, escape(table.caption)));
    header(text, table.columns.iter().map(String::as_str));
    for of in &table.rows {
        let label = if of.is_base { format!("**{}** (base)", escape(&of.label)) } else { escape(&of.label) };
        let cells = of.cells.iter().map(|cell| {
            let number = escape(&cell.text());
            // Colours do not survive in Markdown: what stands out is bold.
            if matches!(cell.class, Class::Worst | Class::Best | Class::AboveBase | Class::BelowBase) {
                format!("**{number}**")
            } else {
                number
            }
        });
        row(text, std::iter::once(label).chain(cells));
    }
}

fn add_legend(text: &mut String, view: &View) {
    line(text, "\nBold: in the best or worst quarter of its column; more than 5 % from the base; a rate that missed its target.");
    for status in [Status::SlaMissed, Status::Suspect, Status::Failed, Status::Crashed, Status::Missing] {
        if view.steps.iter().flat_map(|step| &step.outcomes).any(|outcome| outcome.status == status) {
            let mark = if status.mark().is_empty() { status.in_place() } else { status.mark() };
            line(text, &format!("`{mark}` {}.  ", escape(status.meaning())));
        }
    }
}

fn add_step(text: &mut String, view: &View, step: &StepView) {
    line(text, &format!("\n## {}\n\n{}\n", escape(&step.name), escape(&step.description)));
    let lines: Vec<Option<[String; 20]>> = step.outcomes.iter().map(classic_line).collect();
    if lines.iter().any(Option::is_some) {
        header(text, metrics_line::columns().iter().map(|metric| metric.name));
        for (cell, of) in view.cells.iter().zip(&lines) {
            if let Some(cells) = of {
                row(text, std::iter::once(escape(&cell.label)).chain(cells.iter().cloned()));
            }
        }
        for (cell, of) in view.cells.iter().zip(&lines).skip(1) {
            if let (Some(cells), Some(base)) = (of, &lines[0]) {
                row(text, std::iter::once(format!("{} / base", escape(&cell.label))).chain(relative_cells(cells, base)));
            }
        }
    }
    for (cell, outcome) in view.cells.iter().zip(&step.outcomes) {
        if let Some(reason) = outcome.reason.as_deref().filter(|_| outcome.status != Status::Ok) {
            line(text, &format!("\n{} {}: {}", escape(&cell.label), outcome.status.name(), escape(reason)));
        }
    }
}

/// The classic columns of an outcome; nothing without numbers.
fn classic_line(outcome: &Outcome) -> Option<[String; 20]> {
    let values = metrics_line::columns().map(|metric| outcome.number(metric.name));
    (!outcome.measures.is_empty()).then(|| metrics_line::cells(&values))
}

/// Text from outside that no renderer takes for a cell's end, markup or HTML.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '`' | '[' | ']' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
