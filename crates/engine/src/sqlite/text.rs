//! Column values as text that stays the same from run to run.

use std::fmt::Write;

use super::library::Value;

/// Replaces the content of `text`: integers in decimal, reals with the fewest digits that read back
/// equal, text as it is, NULL as `\N`, blobs in hex.
pub(super) fn render(value: Value<'_>, text: &mut String) {
    text.clear();
    let written = match value {
        Value::Null => text.write_str("\\N"),
        Value::Integer(number) => write!(text, "{number}"),
        Value::Real(number) => write!(text, "{number:?}"),
        Value::Text(bytes) => text.write_str(&String::from_utf8_lossy(bytes)),
        Value::Blob(bytes) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
    };
    written.expect("writing to a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_render_stably() {
        let table = [
            (Value::Null, "\\N"),
            (Value::Integer(i64::MIN), "-9223372036854775808"),
            (Value::Real(0.1 + 0.2), "0.30000000000000004"),
            (Value::Real(250.0), "250.0"),
            (Value::Real(1e300), "1e300"),
            (Value::Text("2026-06-17 é".as_bytes()), "2026-06-17 é"),
            (Value::Blob(&[0, 0xab, 0xff]), "00abff"),
        ];
        let mut text = "left over".to_owned();
        for (value, expected) in table {
            render(value, &mut text);
            assert_eq!(text, expected);
        }
    }
}
