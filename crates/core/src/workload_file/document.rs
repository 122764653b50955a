//! The file as it is written: TOML tables and keys, nothing checked but their types and names.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use toml::Spanned;

use crate::plan::{Count, DistributionName};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub name: Spanned<String>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub table: BTreeMap<Spanned<String>, Table>,
    #[serde(default)]
    pub statement: BTreeMap<Spanned<String>, Statement>,
    #[serde(default)]
    pub event: BTreeMap<Spanned<String>, Event>,
    #[serde(default)]
    pub mix: BTreeMap<Spanned<String>, BTreeMap<Spanned<String>, Spanned<u32>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub rows: Spanned<Count>,
    pub columns: Vec<Column>,
    pub primary_key: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub indexes: Vec<Index>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Column {
    pub name: Spanned<String>,
    #[serde(rename = "type")]
    pub sql_type: Spanned<String>,
    pub auto: Option<Spanned<bool>>,
    pub values: Option<Spanned<Generator>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub name: Option<Spanned<String>>,
    pub columns: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    pub unique: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Statement {
    pub sql: Spanned<String>,
    pub mysql: Option<Spanned<String>>,
    pub postgres: Option<Spanned<String>>,
    pub sqlite: Option<Spanned<String>>,
    pub prepared: Option<bool>,
    #[serde(default)]
    pub parameters: BTreeMap<Spanned<String>, Spanned<Generator>>,
}

/// Where values come from: exactly one of the first keys, and those that belong to it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Generator {
    pub id: Option<Spanned<String>>,
    pub integer: Option<Spanned<[i64; 2]>>,
    pub pattern: Option<Spanned<String>>,
    pub letters: Option<Spanned<[u32; 2]>>,
    pub one_of: Option<Spanned<Vec<String>>>,
    pub constant: Option<Spanned<Constant>>,
    pub repeat: Option<Spanned<u64>>,
    pub cycle: Option<Spanned<u64>>,
    pub next_id: Option<Spanned<String>>,
    pub sequence: Option<Spanned<i64>>,
    pub same: Option<Spanned<String>>,
    pub after: Option<Spanned<String>>,
    pub plus: Option<Spanned<i64>>,
    pub distribution: Option<Spanned<DistributionName>>,
    pub exponent: Option<Spanned<f64>>,
    pub h: Option<Spanned<f64>>,
    pub count: Option<Spanned<u32>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Event {
    pub transaction: Option<bool>,
    pub statements: Spanned<Vec<Spanned<Call>>>,
}

/// An integer or a text.
#[derive(Debug)]
pub(super) enum Constant {
    Integer(i64),
    Text(String),
}

/// `"name"`, or `{ statement = "name", times = 10 }`.
#[derive(Debug)]
pub(super) struct Call {
    pub statement: String,
    pub times: u32,
}

struct ConstantVisitor;

impl Visitor<'_> for ConstantVisitor {
    type Value = Constant;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or a text")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Constant, E> {
        Ok(Constant::Integer(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Constant, E> {
        Ok(Constant::Text(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Constant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ConstantVisitor)
    }
}

struct CallVisitor;

impl<'de> Visitor<'de> for CallVisitor {
    type Value = Call;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a statement's name, or { statement = \"name\", times = 10 }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Call, E> {
        Ok(Call { statement: text.to_owned(), times: 1 })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Call, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Repeated {
            statement: String,
            times: u32,
        }
        let Repeated { statement, times } = Repeated::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Call { statement, times })
    }
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CallVisitor)
    }
}
