//! What the type of a column says by its name, on any of the engines.

use super::Value;
use crate::suggest;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    /// Numbers that need not be whole.
    Number,
    /// Everything else: texts, bytes, dates and what has a text form.
    Other,
}

const INTEGERS: [&str; 15] = [
    "integer",
    "int",
    "bigint",
    "smallint",
    "tinyint",
    "mediumint",
    "int2",
    "int4",
    "int8",
    "serial",
    "bigserial",
    "smallserial",
    "serial2",
    "serial4",
    "serial8",
];
const NUMBERS: [&str; 10] = [
    "decimal", "numeric", "dec", "fixed", "real", "float", "double", "float4", "float8", "number",
];
const OTHERS: [&str; 63] = [
    "char",
    "character",
    "varchar",
    "nchar",
    "nvarchar",
    "bpchar",
    "text",
    "tinytext",
    "mediumtext",
    "longtext",
    "clob",
    "national",
    "native",
    "binary",
    "varbinary",
    "blob",
    "tinyblob",
    "mediumblob",
    "longblob",
    "bytea",
    "long",
    "date",
    "time",
    "timetz",
    "datetime",
    "timestamp",
    "timestamptz",
    "year",
    "interval",
    "bool",
    "boolean",
    "bit",
    "varbit",
    "json",
    "jsonb",
    "xml",
    "uuid",
    "inet",
    "inet4",
    "inet6",
    "cidr",
    "macaddr",
    "macaddr8",
    "money",
    "enum",
    "set",
    "vector",
    "geometry",
    "geography",
    "point",
    "line",
    "lseg",
    "box",
    "path",
    "polygon",
    "circle",
    "linestring",
    "tsvector",
    "tsquery",
    "citext",
    "hstore",
    "ltree",
    "oid",
];

impl ColumnType {
    /// The type by its first word. SQLite takes any word for a type, so a mistyped one would go
    /// unnoticed there.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() || text.contains([';', '?']) {
            return Err("a column needs a type, such as \"integer\" or \"varchar(20)\"".to_owned());
        }
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word: String = text
            .trim()
            .chars()
            .take_while(|c| is_letter(*c))
            .collect::<String>()
            .to_lowercase();
        let has = |known: &[&str]| known.contains(&word.as_str());
        // `integer[]` and the like have a text form.
        let is_array = text.contains('[');
        if has(&INTEGERS) && !is_array {
            Ok(Self::Integer)
        } else if has(&NUMBERS) && !is_array {
            Ok(Self::Number)
        } else if has(&INTEGERS) || has(&NUMBERS) || has(&OTHERS) {
            Ok(Self::Other)
        } else {
            let known = INTEGERS.iter().chain(&NUMBERS).chain(&OTHERS).copied();
            let hint = suggest::hint(&word, known);
            Err(format!(
                "\"{}\" is not a column type{hint}: write one such as \"integer\", \"bigint\" or \
                \"varchar(20)\"",
                text.trim()
            ))
        }
    }

    /// Why a column of this type cannot have such values.
    pub(super) fn refuses(self, value: &Value) -> Option<String> {
        let is_refused = |text: &str| match self {
            Self::Integer => text.parse::<i64>().is_err(),
            Self::Number => text.parse::<f64>().is_err(),
            Self::Other => false,
        };
        let what = if self == Self::Integer {
            "whole number"
        } else {
            "number"
        };
        match value {
            Value::Integer { .. } => None,
            Value::OneOf(texts) => texts
                .iter()
                .find(|text| is_refused(text))
                .map(|text| format!("\"{text}\" is not a {what}")),
            // Digits stand for themselves and for `#`.
            Value::Pattern(pattern) => is_refused(&pattern.replace('#', "0"))
                .then(|| format!("the pattern \"{pattern}\" is not a {what}")),
            Value::Letters { .. } => {
                (self != Self::Other).then(|| "letters are not a number".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_first_word() {
        for (text, wanted) in [
            ("INTEGER", Some(ColumnType::Integer)),
            ("bigint unsigned", Some(ColumnType::Integer)),
            ("int(11)", Some(ColumnType::Integer)),
            ("integer[]", Some(ColumnType::Other)),
            ("double precision", Some(ColumnType::Number)),
            ("decimal(10,2)", Some(ColumnType::Number)),
            ("varchar(20)", Some(ColumnType::Other)),
            ("character varying(5)", Some(ColumnType::Other)),
            ("timestamp with time zone", Some(ColumnType::Other)),
            ("vachar(20)", None),
            ("frobnicate", None),
            ("", None),
            ("int; drop table t", None),
        ] {
            assert_eq!(ColumnType::parse(text).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn numbers_take_no_other_texts() {
        let one_of = |text: &str| Value::OneOf(vec!["7".to_owned(), text.to_owned()]);
        let pattern = |text: &str| Value::Pattern(text.to_owned());
        for (sql_type, value, is_refused) in [
            (ColumnType::Integer, one_of("8"), false),
            (ColumnType::Integer, one_of("8.5"), true),
            (ColumnType::Number, one_of("8.5"), false),
            (ColumnType::Number, one_of("x"), true),
            (ColumnType::Other, one_of("x"), false),
            (ColumnType::Integer, pattern("1##"), false),
            (ColumnType::Integer, pattern("1#@"), true),
            (ColumnType::Number, pattern("#.##"), false),
            (
                ColumnType::Number,
                Value::Letters { least: 1, most: 2 },
                true,
            ),
            (
                ColumnType::Other,
                Value::Letters { least: 1, most: 2 },
                false,
            ),
        ] {
            assert_eq!(
                sql_type.refuses(&value).is_some(),
                is_refused,
                "{sql_type:?} {value:?}"
            );
        }
    }
}
