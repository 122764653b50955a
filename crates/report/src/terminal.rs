//! The three classic tables for a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Effects, Style};

use crate::classic::Class;
use crate::published;
use crate::view::{ClassicCell, ClassicRow, ClassicTable, Status, View};

/// Spaces between columns; the last of them holds the mark of the cell before it, so that digits stay aligned.
const GAP: usize = 2;

/// A header line, the three tables, a legend of the marks they use, reasons and notes. Escape sequences only with `is_coloured`.
pub fn to_terminal(view: &View, is_coloured: bool) -> String {
    let paint = Paint { is_coloured };
    let mut text = String::new();
    for campaign in &view.campaigns {
        let line = match campaign.state {
            "imported" => format!("{}  {}  imported, unpaired", campaign.id, campaign.plan),
            state => format!("{}  plan {}  seed {}  {state}", campaign.id, campaign.plan, campaign.seed),
        };
        text.push_str(&paint.with(Style::new().bold(), &line));
        text.push('\n');
        if !campaign.description.is_empty() {
            writeln!(text, "{}", printable(&campaign.description)).expect("writing to a string cannot fail");
        }
    }
    let summary = &view.summary;
    for table in [&summary.absolute, &summary.relative, &summary.index_seconds, &summary.insert_rate] {
        if !table.columns.is_empty() {
            text.push('\n');
            add_table(&mut text, table, paint);
        }
    }
    for table in &view.published {
        writeln!(text, "\n{}: {}", paint.with(Style::new().bold(), table.title), table.caption).expect("writing to a string cannot fail");
        text.push_str(&published::to_lines(table, |cell, padded| paint.with(style(cell.class, cell.status), padded)));
    }
    add_legend(&mut text, view);
    add_reasons(&mut text, view);
    if !view.notes.is_empty() {
        text.push('\n');
        for note in &view.notes {
            add_wrapped(&mut text, "note: ", note);
        }
    }
    text
}

#[derive(Clone, Copy)]
struct Paint {
    is_coloured: bool,
}

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.is_coloured && style != Style::new() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

fn style(class: Class, status: Status) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match (class, status) {
        (_, Status::Failed | Status::Crashed | Status::Hung) => colour(AnsiColor::Red).effects(Effects::BOLD),
        (Class::Worst, _) => colour(AnsiColor::Red),
        (Class::Best, _) => colour(AnsiColor::Green),
        (Class::Missed | Class::Target, _) => Style::new().dimmed(),
        (Class::AboveBase, _) => colour(AnsiColor::Cyan),
        (Class::BelowBase, _) => colour(AnsiColor::Yellow),
        (Class::Plain, Status::Missing) => Style::new().dimmed(),
        (Class::Plain, _) => Style::new(),
    }
}

fn row_label(row: &ClassicRow) -> String {
    format!("{}{}{}", printable(&row.label), if row.is_base { " (base)" } else { "" }, row.mark)
}

fn add_table(text: &mut String, table: &ClassicTable, paint: Paint) {
    let label_width = table.rows.iter().map(|row| row_label(row).chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| {
            let cells = table.rows.iter().map(|row| split_mark(&row.cells[i]).0.chars().count());
            cells.chain([table.columns[i].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut add = |line: String| writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail");
    add(format!("{}: {}", paint.with(Style::new().bold(), table.title), table.caption));
    let mut header = " ".repeat(label_width);
    for (column, width) in table.columns.iter().zip(&widths) {
        write!(header, "{:GAP$}{:>width$}", "", printable(column)).expect("writing to a string cannot fail");
    }
    add(paint.with(Style::new().bold(), &header));
    for row in &table.rows {
        let mut line = format!("{:<label_width$} ", row_label(row));
        for (cell, width) in row.cells.iter().zip(&widths) {
            let (text, mark) = split_mark(cell);
            // Padded before it is painted: escape sequences have no width.
            let padding = GAP - 1 + width - text.chars().count();
            write!(
                line,
                "{:padding$}{}{}",
                "",
                paint.with(style(cell.class, cell.status), &text),
                if mark.is_empty() { " " } else { mark }
            )
            .expect("writing to a string cannot fail");
        }
        add(line);
    }
}

/// What stands in the column, and the mark that stands behind it.
fn split_mark(cell: &ClassicCell) -> (String, &'static str) {
    match &cell.number {
        Some(number) => (number.clone(), cell.status.mark()),
        None => (cell.text(), ""),
    }
}

/// One line for the marks that the tables use.
fn add_legend(text: &mut String, view: &View) {
    let has = |status: Status| view.steps.iter().flat_map(|step| &step.outcomes).any(|outcome| outcome.status == status);
    let marks: Vec<&str> = [
        (has(Status::SlaMissed), "* SLA missed: such a ratio proves nothing"),
        (has(Status::Suspect), "? machine disturbed"),
        (has(Status::Failed) || has(Status::Crashed) || has(Status::Hung), "! failed, crashed or hung: see below"),
        (has(Status::Missing), "- no result"),
        (view.cells.iter().any(|cell| cell.caveat.is_some()), "† builds not strictly comparable: see the notes"),
    ]
    .into_iter()
    .filter_map(|(is_used, mark)| is_used.then_some(mark))
    .collect();
    if !marks.is_empty() {
        writeln!(text, "\n{}", marks.join("   ")).expect("writing to a string cannot fail");
    }
}

/// Why cells are not ok.
fn add_reasons(text: &mut String, view: &View) {
    if !view.reasons.is_empty() {
        text.push('\n');
    }
    for reason in &view.reasons {
        let label = &view.cells[reason.cell].label;
        add_wrapped(text, &format!("{} {}: ", printable(label), printable(&reason.steps.join(" "))), &reason.text);
    }
}

/// Wraps at 110 columns, with later lines indented by two.
fn add_wrapped(text: &mut String, lead: &str, words: &str) {
    let mut line = lead.trim_end().to_owned();
    for word in printable(words).split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > 110 {
            writeln!(text, "{line}").expect("writing to a string cannot fail");
            line = format!("  {word}");
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

/// Text from outside without control characters: an engine's message must not move the cursor.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
