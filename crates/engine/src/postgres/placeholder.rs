//! Workloads write `?` where an integer comes; PostgreSQL wants `$1`, `$2`, ...

/// The statement with numbered placeholders. A question mark between quotes is text.
pub(super) fn numbered(sql: &str) -> String {
    let mut text = String::with_capacity(sql.len() + 16);
    let mut count = 0;
    let mut quote = None;
    for character in sql.chars() {
        match (character, quote) {
            ('?', None) => {
                count += 1;
                text.push('$');
                text.push_str(&count.to_string());
                continue;
            }
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if open == character => quote = None,
            _ => {}
        }
        text.push(character);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_marks_are_numbered_outside_of_quotes() {
        for (sql, expected) in [
            ("select 1", "select 1"),
            (
                "select a from t where a >= ? limit ?",
                "select a from t where a >= $1 limit $2",
            ),
            (
                "in (?,?,?,?,?,?,?,?,?,?)",
                "in ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)",
            ),
            (
                "select 'what?', 'it''s ?', \"odd?\", ?",
                "select 'what?', 'it''s ?', \"odd?\", $1",
            ),
        ] {
            assert_eq!(numbered(sql), expected);
        }
    }
}
