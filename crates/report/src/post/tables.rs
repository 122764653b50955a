//! A post's tables as published tables are laid out: the base and the columns first, a block per
//! group with its columns again, the test last. Markdown has the test first.

use std::fmt::Write as _;

use plimsoll_analysis::post::{Table, TableGroup, TableRow};

use crate::markdown::{escape, header_with_texts, row};

/// A heading that a reader of the file finds, and the groups below it.
pub(super) fn to_markdown(table: &Table) -> String {
    let mut text = format!("# {}\n\n{}\n", escape(&table.title), escape(&table.caption));
    text.push_str(&legend(table));
    for group in &table.groups {
        add_group(&mut text, table, group);
    }
    text
}

/// Which column is which build.
fn legend(table: &Table) -> String {
    let columns = table.columns.iter().filter(|(name, label)| name != label);
    let columns: Vec<String> = columns
        .map(|(name, label)| format!("{name}: {label}"))
        .collect();
    match columns.is_empty() {
        true => String::new(),
        false => format!("\n{}.\n", escape(&columns.join("; "))),
    }
}

/// One block in Markdown.
pub(super) fn add_group(text: &mut String, table: &Table, group: &TableGroup) {
    let has_notes = group.rows.iter().any(|row| !row.note.is_empty());
    writeln!(text, "\n{}\n", heading(group)).expect("writing to a string cannot fail");
    let names = table.columns.iter().map(|(name, _)| name.as_str());
    let note = has_notes.then_some("note");
    header_with_texts(text, names.chain(note), &["note"]);
    for of in &group.rows {
        let cells = cells(of).map(|cell| escape(&cell));
        let note = has_notes.then(|| escape(&of.note));
        let label = std::iter::once(escape(&of.label));
        row(text, label.chain(cells).chain(note));
    }
}

fn heading(group: &TableGroup) -> String {
    match group.title.as_str() {
        "" => String::new(),
        title => format!("**{}**", escape(title)),
    }
}

fn cells(row: &TableRow) -> impl Iterator<Item = String> {
    row.cells
        .iter()
        .map(|cell| format!("{}{}", cell.text, cell.mark))
}

/// `Relative to`, `col-1 : ...`, then blocks. A delimiter inside a cell is quoted in CSV and a blank
/// in TSV.
pub(super) fn to_delimited(table: &Table, delimiter: u8) -> String {
    let mut text = String::new();
    if let Some(base) = &table.base {
        writeln!(text, "Relative to: {base}").expect("writing to a string cannot fail");
    }
    for (place, (name, label)) in table.columns.iter().enumerate() {
        let column = match name == label {
            true => label.clone(),
            false => format!("{name} {label}"),
        };
        writeln!(text, "col-{} : {column}", place + 1).expect("writing to a string cannot fail");
    }
    for group in &table.groups {
        text.push('\n');
        if !group.title.is_empty() {
            writeln!(text, "- {}", group.title).expect("writing to a string cannot fail");
        }
        text.push_str(&block(table, group, delimiter));
    }
    text
}

fn block(table: &Table, group: &TableGroup, delimiter: u8) -> String {
    let mut builder = csv::WriterBuilder::new();
    builder.delimiter(delimiter).flexible(true);
    if delimiter == b'\t' {
        builder.quote_style(csv::QuoteStyle::Never);
    }
    let clean = |cell: &str| match delimiter {
        b'\t' => cell.replace(['\t', '\n', '\r'], " "),
        _ => cell.to_owned(),
    };
    let mut writer = builder.from_writer(Vec::new());
    let columns = (1..=table.columns.len()).map(|column| format!("col-{column}"));
    let header: Vec<String> = columns.collect();
    writer
        .write_record(&header)
        .expect("memory can be written to");
    for of in &group.rows {
        let note = (!of.note.is_empty()).then(|| clean(&of.note));
        let label = std::iter::once(clean(&of.label));
        let cells = cells(of).map(|cell| clean(&cell));
        let record: Vec<String> = cells.chain(label).chain(note).collect();
        writer
            .write_record(&record)
            .expect("memory can be written to");
    }
    let bytes = writer.into_inner().expect("memory can be written to");
    String::from_utf8(bytes).expect("cells are text")
}
