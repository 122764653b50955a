//! The file as it is written: TOML tables and keys, nothing checked but their types and names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, Visitor};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::generator::{NOT_OF_COLUMNS, NOT_OF_PARAMETERS};
use crate::distribution::DistributionName;
use crate::engines::statement_keys;
use crate::source::{PlanError, Source, explain_toml_error, unknown_key};
use crate::written::Count;

/// What the file holds. What could not be read is `None`, so that its name is known to the rest.
#[derive(Debug)]
pub(super) struct Document {
    pub name: Spanned<String>,
    pub description: String,
    pub table: Named<Table>,
    pub statement: Named<Statement>,
    pub event: Named<Event>,
    pub mix: Named<BTreeMap<Spanned<String>, Spanned<u32>>>,
}

/// Entries in the order of the file.
pub(super) type Named<T> = Vec<(Spanned<String>, Option<T>)>;

impl Document {
    /// Reads each entry by itself, so that one that is wrong hides no other. Without a document the
    /// rest of the file cannot be judged.
    pub(super) fn read(
        source: &Source<'_>,
        text: &str,
        problems: &mut Vec<PlanError>,
    ) -> Option<Self> {
        const KEYS: [&str; 6] = ["name", "description", "table", "statement", "event", "mix"];
        let root = match DeTable::parse(text) {
            Ok(root) => root,
            Err(error) => {
                problems.push(explain_toml_error(source, &error, &[]));
                return None;
            }
        };
        let place = root.span();
        let mut has_unknown = false;
        let mut entries: BTreeMap<String, (Spanned<String>, Spanned<DeValue<'_>>)> =
            BTreeMap::new();
        for (key, value) in root.into_inner() {
            let key = Spanned::new(key.span(), key.into_inner().into_owned());
            if KEYS.contains(&key.get_ref().as_str()) {
                entries.insert(key.get_ref().clone(), (key, value));
            } else {
                has_unknown = true;
                problems.push(source.error(Some(key.span()), unknown_key(key.get_ref(), &KEYS)));
            }
        }
        let mut reader = Reader { source, problems };
        let name = match entries.remove("name") {
            Some((_, value)) => reader.read(value, &[]),
            None => {
                reader
                    .problems
                    .push(source.error(Some(place), "the key \"name\" is missing"));
                None
            }
        };
        let description = entries
            .remove("description")
            .and_then(|(_, value)| reader.read(value, &[]));
        let mut take = |key: &str| entries.remove(key).map(|(_, value)| value);
        let document = Self {
            name: name.unwrap_or_else(|| Spanned::new(0..0, String::new())),
            description: description.unwrap_or_default(),
            table: reader.entries(take("table"), &NOT_OF_COLUMNS),
            statement: reader.entries(take("statement"), &NOT_OF_PARAMETERS),
            event: reader.entries(take("event"), &[]),
            mix: reader.entries(take("mix"), &[]),
        };
        // What an unknown key holds would be missed elsewhere.
        (!has_unknown).then_some(document)
    }
}

struct Reader<'a, 's> {
    source: &'a Source<'s>,
    problems: &'a mut Vec<PlanError>,
}

impl Reader<'_, '_> {
    /// `hidden` are keys that an error shall not offer.
    fn read<T: DeserializeOwned>(
        &mut self,
        value: Spanned<DeValue<'_>>,
        hidden: &[&str],
    ) -> Option<T> {
        T::deserialize(ValueDeserializer::from(value))
            .map_err(|error| {
                self.problems
                    .push(explain_toml_error(self.source, &error, hidden))
            })
            .ok()
    }

    fn entries<T: DeserializeOwned>(
        &mut self,
        value: Option<Spanned<DeValue<'_>>>,
        hidden: &[&str],
    ) -> Named<T> {
        let Some(value) = value else {
            return Vec::new();
        };
        let span = value.span();
        let DeValue::Table(table) = value.into_inner() else {
            self.problems.push(self.source.error(
                Some(span),
                "expected a table, [KIND.NAME], for each by its name",
            ));
            return Vec::new();
        };
        let read = |(key, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'_>>)| {
            (
                Spanned::new(key.span(), key.into_inner().into_owned()),
                self.read(value, hidden),
            )
        };
        let mut entries: Named<T> = table.into_iter().map(read).collect();
        entries.sort_by_key(|(name, _)| name.span().start);
        entries
    }
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

/// Beside its own keys it has one for each engine that may have a text of its own.
#[derive(Debug)]
pub(super) struct Statement {
    pub sql: Spanned<String>,
    pub own: BTreeMap<&'static str, Spanned<String>>,
    pub prepared: Option<bool>,
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
        Ok(Call {
            statement: text.to_owned(),
            times: 1,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Call, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Repeated {
            statement: String,
            times: u32,
        }
        let Repeated { statement, times } =
            Repeated::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Call { statement, times })
    }
}

impl<'de> Deserialize<'de> for Call {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CallVisitor)
    }
}

struct StatementVisitor;

impl<'de> Visitor<'de> for StatementVisitor {
    type Value = Statement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a statement, a table with the key sql")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Statement, A::Error> {
        let (mut sql, mut prepared) = (None, None);
        let (mut own, mut parameters) = (BTreeMap::new(), BTreeMap::new());
        while let Some(StatementKey(key)) = map.next_key()? {
            match key {
                "sql" => sql = Some(map.next_value()?),
                "prepared" => prepared = Some(map.next_value()?),
                "parameters" => parameters = map.next_value()?,
                engine => {
                    own.insert(engine, map.next_value()?);
                }
            }
        }
        Ok(Statement {
            sql: sql.ok_or_else(|| de::Error::missing_field("sql"))?,
            own,
            prepared,
            parameters,
        })
    }
}

static STATEMENT_KEYS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let common = ["sql", "prepared", "parameters"];
    common.into_iter().chain(statement_keys()).collect()
});

/// One of [`STATEMENT_KEYS`]. A key refuses itself where it is read: the error has its place.
struct StatementKey(&'static str);

struct StatementKeyVisitor;

impl Visitor<'_> for StatementKeyVisitor {
    type Value = StatementKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key of a statement")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<StatementKey, E> {
        let mut keys = STATEMENT_KEYS.iter();
        keys.find(|known| **known == text)
            .map(|key| StatementKey(key))
            .ok_or_else(|| E::unknown_field(text, &STATEMENT_KEYS))
    }
}

impl<'de> Deserialize<'de> for StatementKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(StatementKeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Statement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StatementVisitor)
    }
}
