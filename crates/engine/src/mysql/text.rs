//! Column values as text that stays the same from run to run.

use std::fmt::Write;

use mysql::Value;

/// Appends a value: text as the server sent it, NULL as `\N`, numbers with the fewest digits that
/// read back equal.
pub(super) fn render(value: &Value, text: &mut String) {
    let written = match value {
        Value::NULL => text.write_str("\\N"),
        Value::Bytes(bytes) => text.write_str(&String::from_utf8_lossy(bytes)),
        Value::Int(number) => write!(text, "{number}"),
        Value::UInt(number) => write!(text, "{number}"),
        Value::Float(number) => write!(text, "{number:?}"),
        Value::Double(number) => write!(text, "{number:?}"),
        // The text protocol, which all callers use, sends neither dates nor times as numbers.
        other => text.write_str(other.as_sql(true).trim_matches('\'')),
    };
    written.expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_render_stably() {
        let table = [
            (Value::NULL, "\\N"),
            (Value::Bytes("2026-06-17 é".into()), "2026-06-17 é"),
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::UInt(u64::MAX), "18446744073709551615"),
            (Value::Double(0.1 + 0.2), "0.30000000000000004"),
            (Value::Date(2026, 6, 17, 1, 2, 3, 0), "2026-06-17 01:02:03"),
        ];
        for (value, expected) in table {
            let mut text = String::new();
            render(&value, &mut text);
            assert_eq!(text, expected);
        }
    }
}
