//! The three classic tables for a terminal.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Effects, Style};
use plimsoll_core::suggest::first_few;

use crate::published;
use plimsoll_analysis::classic::Class;
use plimsoll_analysis::metrics::value::at_least;
use plimsoll_analysis::verdicts::verdict_lines;
use plimsoll_analysis::view::{
    CampaignInfo, ClassicCell, ClassicRow, ClassicTable, EventRow, PublishedTable, Ramp, Status,
    StepView, TestSubject, TestTable, View,
};
use plimsoll_analysis::words::waiting;

/// Spaces between columns; the last of them holds the mark of the cell before it, so that digits
/// stay aligned.
const GAP: usize = 2;

/// A header line, the three tables, a legend of the marks they use, reasons and notes. Escape
/// sequences only with `is_coloured`.
pub fn to_terminal(view: &View, is_coloured: bool) -> String {
    let paint = Paint { is_coloured };
    let mut text = String::new();
    for campaign in &view.campaigns {
        add_campaign(&mut text, campaign, paint);
    }
    if !view.beyond_build.is_empty() {
        text.push_str("differs beyond the build:\n");
    }
    for beyond in &view.beyond_build {
        add_wrapped(&mut text, "- ", &beyond.line(&labels(view)));
    }
    add_verdicts(&mut text, view, paint);
    let summary = &view.summary;
    for table in summary
        .tests
        .iter()
        .filter(|table| table.subject != TestSubject::Cost)
    {
        text.push('\n');
        add_test_table(&mut text, view, table, paint);
    }
    for ramp in &summary.ramps {
        text.push('\n');
        add_ramp(&mut text, view, ramp, paint);
    }
    for step in view.steps.iter().filter(|step| !step.events.is_empty()) {
        text.push('\n');
        add_events(&mut text, view, step, paint);
    }
    for table in [
        &summary.absolute,
        &summary.relative,
        &summary.index_seconds,
        &summary.insert_rate,
    ] {
        if !table.columns.is_empty() {
            text.push('\n');
            add_table(&mut text, table, paint);
        }
    }
    for table in &view.published {
        add_published(&mut text, table, paint);
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

fn labels(view: &View) -> Vec<&str> {
    let cells = view.cells.iter();
    cells.map(|cell| cell.label.as_str()).collect()
}

fn add_campaign(text: &mut String, campaign: &CampaignInfo, paint: Paint) {
    let (id, plan) = (&campaign.id, &campaign.plan);
    let line = match campaign.state {
        "imported" => format!("{id}  {plan}  imported, unpaired"),
        _ => format!(
            "{id}  plan {plan}  seed {}  {}",
            campaign.seed, campaign.progress
        ),
    };
    text.push_str(&paint.with(Style::new().bold(), &line));
    text.push('\n');
    if campaign.state == "broken" {
        writeln!(text, "continue with: {}", campaign.continuing)
            .expect("writing to a string cannot fail");
    }
    if !campaign.description.is_empty() {
        text.push_str(&printable(&campaign.description));
        text.push('\n');
    }
}

fn add_verdicts(text: &mut String, view: &View, paint: Paint) {
    let verdicts = verdict_lines(view);
    if verdicts.is_empty() {
        return;
    }
    text.push('\n');
    for (i, line) in verdicts.lines().enumerate() {
        let line = printable(line);
        text.push_str(&if i == 0 {
            paint.with(Style::new().bold(), &line)
        } else {
            line
        });
        text.push('\n');
    }
}

fn add_published(text: &mut String, table: &PublishedTable, paint: Paint) {
    let title = paint.with(Style::new().bold(), table.title);
    writeln!(text, "\n{title}: {}", table.caption).expect("writing to a string cannot fail");
    text.push_str(&published::to_lines(table, |cell, padded| {
        paint.with(style(cell.class, cell.status), padded)
    }));
}

fn cell_label(view: &View, cell: usize) -> String {
    let mark = if cell == 0 {
        " (base)"
    } else {
        view.cells[cell].mark()
    };
    format!("{}{mark}", printable(&view.cells[cell].label))
}

/// A row per test, a column per cell. The names of cells are listed above, where they are too
/// long for columns.
fn add_test_table(text: &mut String, view: &View, table: &TestTable, paint: Paint) {
    let rows = || table.sections.iter().flat_map(|section| &section.rows);
    let label_width = rows()
        .map(|row| row.step.chars().count())
        .max()
        .unwrap_or(0);
    let numbers: Vec<usize> = (0..view.cells.len())
        .map(|i| {
            rows()
                .map(|row| split_mark(&row.cells[i]).0.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let labels: Vec<String> = (0..view.cells.len())
        .map(|cell| cell_label(view, cell))
        .collect();
    let is_wide = label_width
        + labels
            .iter()
            .map(|label| label.chars().count() + GAP)
            .sum::<usize>()
        > 140;
    let columns: Vec<String> = if is_wide {
        (1..=labels.len()).map(|i| format!("col-{i}")).collect()
    } else {
        labels.clone()
    };
    let widths: Vec<usize> = numbers
        .iter()
        .zip(&columns)
        .map(|(width, column)| (*width).max(column.chars().count()))
        .collect();
    add_heading(text, table.title, &table.caption, paint);
    let mut add = |line: String| {
        writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail")
    };
    if is_wide {
        columns
            .iter()
            .zip(&labels)
            .for_each(|(column, label)| add(format!("{column}: {label}")));
    }
    let header: String = columns
        .iter()
        .zip(&widths)
        .map(|(column, width)| format!("{:GAP$}{column:>width$}", ""))
        .collect();
    for section in &table.sections {
        add(paint.with(Style::new().bold(), &format!("- {}", section.title)));
        add(paint.with(Style::new().bold(), &format!("{:label_width$}{header}", "")));
        for row in &section.rows {
            let mut line = format!("{:<label_width$} ", printable(&row.step));
            for (cell, width) in row.cells.iter().zip(&widths) {
                push_cell(&mut line, cell, *width, paint);
            }
            add(line);
        }
    }
}

/// A ramp: a row per number of clients, and for each cell rate, transactions and service times.
fn add_ramp(text: &mut String, view: &View, ramp: &Ramp, paint: Paint) {
    let mut add = |line: String| {
        writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail")
    };
    let title = format!("Ramp of {}", printable(&ramp.test));
    add(format!(
        "{}: {} over clients; service times in microseconds",
        paint.with(Style::new().bold(), &title),
        ramp.rate.unit
    ));
    let number =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"));
    for (i, cell) in ramp.cells.iter().enumerate() {
        let user = |place: Option<usize>| {
            place.map_or_else(|| "-".to_owned(), |place| ramp.users[place].to_string())
        };
        add(format!(
            "{}: peak at {} clients, knee at {}",
            cell_label(view, i),
            user(cell.peak),
            user(cell.knee)
        ));
        let events = ramp.events_heading();
        let response = ramp.is_open_loop().then_some("resp p99");
        let columns = ["users", ramp.rate.name, events, "mean", "p95", "p99", "max"];
        let heading: String = columns
            .into_iter()
            .chain(response)
            .map(|column| format!("{column:>10}"))
            .collect();
        add(paint.with(Style::new().bold(), &heading));
        for (users, level) in ramp.users.iter().zip(&cell.levels) {
            // The mark follows the rate, in the gap before the next column.
            let (rate, mark) = (number(level.rate), level.status.mark());
            let mut line = format!("{users:>10}{rate:>10}{mark:<1}{:>9}", number(level.tps));
            let times = level
                .service_us
                .into_iter()
                .chain(response.map(|_| level.p99_response_us));
            let times: Vec<String> = times.map(number).collect();
            let last = times.len() - 1;
            let at_least =
                |at: usize| at_least(response.is_some() && at == last && level.is_lower_bound);
            line.extend(
                times
                    .iter()
                    .enumerate()
                    .map(|(at, time)| format!("{:>10}", format!("{}{time}", at_least(at)))),
            );
            line.extend(
                level
                    .excluded_wait_s
                    .map(|seconds| format!("  {}", waiting::excludes(seconds))),
            );
            add(line);
        }
    }
}

/// The kinds of events of a step: a row per kind and cell.
fn add_events(text: &mut String, view: &View, step: &StepView, paint: Paint) {
    let mut add = |line: String| {
        writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail")
    };
    let title = format!("Events of {}", printable(&step.name));
    add(format!(
        "{}: each kind by itself; service times in microseconds",
        paint.with(Style::new().bold(), &title)
    ));
    let label = |row: &EventRow| format!("{} {}", printable(&row.kind), cell_label(view, row.cell));
    let width = step
        .events
        .iter()
        .map(|row| label(row).chars().count())
        .max()
        .unwrap_or(0);
    let has_retries = step.events.iter().any(|row| row.retried > 0);
    let response = step.has_event_responses().then_some("resp p99");
    let columns = [
        "events", "failed", "per s", "stmts", "mean", "p50", "p99", "p99.9", "max",
    ];
    let mut columns: Vec<&str> = columns.into_iter().chain(response).collect();
    if has_retries {
        columns.insert(1, "retried");
    }
    let heading: String = columns
        .iter()
        .map(|column| format!("{column:>10}"))
        .collect();
    add(paint.with(Style::new().bold(), &format!("{:width$}{heading}", "")));
    for row in &step.events {
        let [
            events,
            retried,
            failed,
            per_s,
            statements,
            times @ ..,
            p99_response,
        ] = row.numbers().map(|(_, _, value)| value);
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        let retried = has_retries.then(|| number(retried, 0));
        let first = std::iter::once(number(events, 0)).chain(retried);
        let rates = [number(failed, 0), number(per_s, 1), number(statements, 1)];
        let response = response.map(|_| {
            format!(
                "{}{}",
                at_least(row.is_response_lower_bound()),
                number(p99_response, 0)
            )
        });
        let times = times
            .into_iter()
            .map(|time| number(time, 0))
            .chain(response);
        let cells: String = first
            .chain(rates)
            .chain(times)
            .map(|cell| format!("{cell:>10}"))
            .collect();
        let excluded = step
            .excluded_wait_s(row.cell, &row.kind)
            .map(|seconds| format!("  {}", waiting::excludes(seconds)));
        add(format!(
            "{:<width$}{cells}{}",
            label(row),
            excluded.unwrap_or_default()
        ));
    }
}

#[derive(Clone, Copy)]
struct Paint {
    is_coloured: bool,
}

impl Paint {
    fn with(self, style: Style, text: &str) -> String {
        if self.is_coloured && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

fn style(class: Class, status: Status) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match (class, status) {
        (_, Status::Failed | Status::Crashed | Status::Hung | Status::Damaged) => {
            colour(AnsiColor::Red).effects(Effects::BOLD)
        }
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
    format!(
        "{}{}{}",
        printable(&row.label),
        if row.is_base { " (base)" } else { "" },
        row.mark
    )
}

fn add_table(text: &mut String, table: &ClassicTable, paint: Paint) {
    let label_width = table
        .rows
        .iter()
        .map(|row| row_label(row).chars().count())
        .max()
        .unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|i| {
            let cells = table
                .rows
                .iter()
                .map(|row| split_mark(&row.cells[i]).0.chars().count());
            cells
                .chain([table.columns[i].chars().count()])
                .max()
                .unwrap_or(0)
        })
        .collect();
    add_heading(text, table.title, table.caption, paint);
    let mut add = |line: String| {
        writeln!(text, "{}", line.trim_end()).expect("writing to a string cannot fail")
    };
    let mut header = " ".repeat(label_width);
    for (column, width) in table.columns.iter().zip(&widths) {
        write!(header, "{:GAP$}{:>width$}", "", printable(column))
            .expect("writing to a string cannot fail");
    }
    add(paint.with(Style::new().bold(), &header));
    for row in &table.rows {
        let mut line = format!("{:<label_width$} ", row_label(row));
        for (cell, width) in row.cells.iter().zip(&widths) {
            push_cell(&mut line, cell, *width, paint);
        }
        add(line);
    }
}

fn push_cell(line: &mut String, cell: &ClassicCell, width: usize, paint: Paint) {
    let (text, mark) = split_mark(cell);
    // Padded before it is painted: escape sequences have no width.
    let padding = GAP - 1 + width - text.chars().count();
    let text = paint.with(style(cell.class, cell.status), &text);
    write!(
        line,
        "{:padding$}{text}{}",
        "",
        if mark.is_empty() { " " } else { mark }
    )
    .expect("writing to a string cannot fail");
}

/// What is in the column, and the mark after it.
fn split_mark(cell: &ClassicCell) -> (String, &'static str) {
    match &cell.number {
        Some(number) => (number.clone(), cell.status.mark()),
        None => (cell.text(), ""),
    }
}

/// One line for the marks that the tables use.
fn add_legend(text: &mut String, view: &View) {
    let has = |status: Status| {
        view.steps
            .iter()
            .flat_map(|step| &step.outcomes)
            .any(|outcome| outcome.status == status)
    };
    let marks: Vec<&str> = [
        (
            has(Status::SlaMissed),
            "* SLA missed: such a ratio proves nothing",
        ),
        (has(Status::Suspect), "? machine disturbed"),
        (
            has(Status::Failed) || has(Status::Crashed) || has(Status::Hung),
            "! failed, crashed or hung: see below",
        ),
        (has(Status::Damaged), "! damaged files: see below"),
        (has(Status::Missing), "- no result"),
        (
            view.cells.iter().any(|cell| cell.caveat.is_some()),
            "† builds not strictly comparable: see the notes",
        ),
        (
            view.cells.iter().any(|cell| cell.other_machine.is_some()),
            "‡ another machine than the base's: see the notes",
        ),
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
        let steps: Vec<&str> = reason.steps.iter().map(String::as_str).collect();
        add_wrapped(
            text,
            "",
            &format!("{label} {}: {}", first_few(&steps), reason.text),
        );
    }
}

/// Wraps at 110 columns, with later lines indented by two.
fn add_wrapped(text: &mut String, lead: &str, words: &str) {
    let lines = wrap(&format!("{lead}{}", printable(words)));
    lines
        .iter()
        .for_each(|line| writeln!(text, "{line}").expect("writing to a string cannot fail"));
}

/// A table's title, and what its numbers are.
fn add_heading(text: &mut String, title: &str, caption: &str, paint: Paint) {
    let lines = wrap(&format!("{title}: {caption}"));
    for (i, line) in lines.iter().enumerate() {
        let line = match line.strip_prefix(title).filter(|_| i == 0) {
            Some(rest) => format!("{}{rest}", paint.with(Style::new().bold(), title)),
            None => line.clone(),
        };
        writeln!(text, "{line}").expect("writing to a string cannot fail");
    }
}

/// Lines of at most 110 columns where words allow that; later ones are indented by two.
fn wrap(words: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 110 => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Text from outside without control characters: an engine's message must not move the cursor.
fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}
