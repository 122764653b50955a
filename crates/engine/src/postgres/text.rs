//! Rows in the text form of `copy ... to stdout`: a line each, columns separated by tabs, and a
//! backslash before what would be mistaken.

/// NULL, and what it is shown as.
const NULL: &str = "\\N";

/// What is wrong with a row that cannot be shown.
pub(super) const NOT_TEXT: &str =
    "a row is not UTF-8; give the plan a database whose encoding is UTF8";

/// Puts the columns of a row, without its end of line, into `columns`.
pub(super) fn split(line: &str, columns: &mut Vec<String>) {
    let fields = line.split('\t');
    columns.resize_with(fields.clone().count(), String::new);
    for (field, column) in fields.zip(columns) {
        column.clear();
        if field == NULL || !field.contains('\\') {
            column.push_str(field);
        } else {
            unescape(field, column);
        }
    }
}

fn unescape(field: &str, column: &mut String) {
    let mut characters = field.chars();
    while let Some(character) = characters.next() {
        let meant = if character == '\\' {
            characters.next().map_or('\\', escaped)
        } else {
            character
        };
        column.push(meant);
    }
}

/// What a letter behind a backslash means; any other character means itself.
fn escaped(letter: char) -> char {
    match letter {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_they_were() {
        for (line, expected) in [
            (
                "1\t2026-06-17 01:23:08\taaaa",
                &["1", "2026-06-17 01:23:08", "aaaa"][..],
            ),
            ("\\N\t\t\\\\N\t\\\\\\N", &["\\N", "", "\\N", "\\N"]),
            (
                "a\\tb\\nc\\\\d\\re\\bf\\fg\\vh",
                &["a\tb\nc\\d\re\u{8}f\u{c}g\u{b}h"],
            ),
            ("\\\\n\té\\\\", &["\\n", "é\\"]),
            ("", &[""]),
        ] {
            let mut columns = vec!["of the row before".to_owned(); 4];
            split(line, &mut columns);
            assert_eq!(columns, expected, "{line}");
        }
    }
}
