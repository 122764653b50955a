//! What a statement's text says by itself: its parameters, what it does, and which tables and
//! columns it names.
//!
//! This is not a grammar of SQL. It finds names where they can be nothing else and leaves the rest
//! to the engine, which is asked for each statement before the tables are filled.

use super::Table;
use crate::suggest;

/// A statement's text, cut at its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sql {
    /// What is between the parameters: one more than there are of these.
    pub pieces: Vec<String>,
    /// The names of the parameters, in the order of the text.
    pub parameters: Vec<String>,
    /// What it does.
    pub effect: Effect,
    /// Whether it answers with rows.
    pub returns_rows: bool,
}

/// What a statement does to the number of rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Reads,
    /// It changes rows, and leaves as many as there were.
    Changes,
    /// The table has as many more rows as it affects.
    Inserts(String),
    /// The table has as many fewer.
    Deletes(String),
    /// What it affects does not say how many rows there are then.
    Uncountable(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A word that is not a string: a keyword or a name.
    Word(&'a str),
    Parameter(&'a str),
    /// A number, a string, a quoted name.
    Other,
    Symbol(char),
}

impl<'a> Token<'a> {
    fn is(self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn is_any(self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    fn name(self) -> Option<&'a str> {
        match self {
            Self::Word(word)
                if !KEYWORDS
                    .iter()
                    .any(|keyword| keyword.eq_ignore_ascii_case(word)) =>
            {
                Some(word)
            }
            _ => None,
        }
    }
}

/// Words that stand where a column could and are none.
const KEYWORDS: [&str; 47] = [
    "select",
    "distinct",
    "all",
    "from",
    "where",
    "and",
    "or",
    "not",
    "null",
    "true",
    "false",
    "set",
    "on",
    "by",
    "group",
    "order",
    "having",
    "limit",
    "offset",
    "as",
    "in",
    "between",
    "like",
    "is",
    "case",
    "when",
    "then",
    "else",
    "end",
    "inner",
    "left",
    "right",
    "outer",
    "cross",
    "join",
    "using",
    "for",
    "update",
    "returning",
    "values",
    "asc",
    "desc",
    "current_date",
    "current_time",
    "current_timestamp",
    "only",
    "lateral",
];

fn tokens(sql: &str) -> Vec<(usize, usize, Token<'_>)> {
    let bytes = sql.as_bytes();
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    let end_of = |from: usize, is_in: &dyn Fn(u8) -> bool| {
        bytes[from..]
            .iter()
            .position(|byte| !is_in(*byte))
            .map_or(bytes.len(), |at| from + at)
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        let (end, token) = match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'\'' | b'"' | b'`' => {
                let end = bytes[at + 1..]
                    .iter()
                    .position(|other| *other == byte)
                    .map_or(bytes.len(), |length| at + length + 2);
                (end, Token::Other)
            }
            b':' if next == b':' => (at + 2, Token::Symbol(':')),
            b':' if next.is_ascii_alphabetic() || next == b'_' => {
                let end = end_of(at + 1, &is_word);
                (end, Token::Parameter(&sql[at + 1..end]))
            }
            b'0'..=b'9' => (
                end_of(at, &|byte| is_word(byte) || byte == b'.'),
                Token::Other,
            ),
            _ if is_word(byte) => {
                let end = end_of(at, &is_word);
                (end, Token::Word(&sql[at..end]))
            }
            _ => (at + 1, Token::Symbol(char::from(byte))),
        };
        found.push((at, end, token));
        at = end;
    }
    found
}

impl Sql {
    /// Cuts a statement at its parameters.
    pub(super) fn parse(sql: &str) -> Result<Self, String> {
        if sql.contains('?') {
            return Err("it has a \"?\": write parameters by name, as in \"id = :id\"".to_owned());
        }
        if sql.contains(';') {
            return Err("it has a \";\": write one statement, without an end".to_owned());
        }
        let tokens = tokens(sql);
        let mut pieces = Vec::new();
        let mut parameters = Vec::new();
        let mut from = 0;
        for (start, end, token) in &tokens {
            if let Token::Parameter(name) = token {
                pieces.push(sql[from..*start].to_owned());
                parameters.push((*name).to_owned());
                from = *end;
            }
        }
        pieces.push(sql[from..].to_owned());
        let words: Vec<Token<'_>> = tokens.into_iter().map(|(_, _, token)| token).collect();
        let effect = effect(&words)?;
        let returns_rows =
            effect == Effect::Reads || words.iter().any(|token| token.is("returning"));
        Ok(Self {
            pieces,
            parameters,
            effect,
            returns_rows,
        })
    }
}

fn effect(tokens: &[Token<'_>]) -> Result<Effect, String> {
    let after = |keyword: &str| {
        tokens
            .iter()
            .position(|token| token.is(keyword))
            .and_then(|at| tokens.get(at + 1)?.name())
    };
    let has = |keywords: [&str; 2]| {
        tokens
            .windows(2)
            .any(|pair| pair[0].is(keywords[0]) && pair[1].is(keywords[1]))
    };
    let of = |table: Option<&str>| {
        table
            .map(str::to_owned)
            .ok_or_else(|| "it names no table".to_owned())
    };
    match tokens.first() {
        Some(first) if first.is_any(&["select", "values"]) => Ok(Effect::Reads),
        Some(first)
            if first.is("with")
                && !tokens
                    .iter()
                    .any(|token| token.is_any(&["insert", "delete"])) =>
        {
            let is_update = tokens
                .windows(2)
                .any(|pair| pair[1].is("update") && !pair[0].is("for"));
            Ok(if is_update {
                Effect::Changes
            } else {
                Effect::Reads
            })
        }
        Some(first) if first.is("update") => Ok(Effect::Changes),
        Some(first) if first.is("insert") => {
            let table = of(after("into"))?;
            let is_uncountable =
                has(["do", "update"]) || has(["duplicate", "key"]) || has(["or", "replace"]);
            Ok(if is_uncountable {
                Effect::Uncountable(table)
            } else {
                Effect::Inserts(table)
            })
        }
        Some(first) if first.is("delete") => Ok(Effect::Deletes(of(after("from"))?)),
        Some(first) if first.is("replace") => Ok(Effect::Uncountable(of(after("into"))?)),
        Some(first) if first.is_any(&["begin", "start", "commit", "rollback"]) => Err(
            "transactions are made of statements by an event with transaction = true".to_owned(),
        ),
        _ => Err(
            "it begins with none of SELECT, WITH, VALUES, INSERT, UPDATE, DELETE, REPLACE"
                .to_owned(),
        ),
    }
}

/// The first name in the statement that is none of these tables or of their columns.
pub(super) fn check_names(sql: &str, tables: &[Table]) -> Result<(), String> {
    let tokens: Vec<Token<'_>> = tokens(sql).into_iter().map(|(_, _, token)| token).collect();
    let at = |i: usize| tokens.get(i).copied().unwrap_or(Token::Symbol(' '));
    let before = |i: usize| i.checked_sub(1).map_or(Token::Symbol(' '), at);
    // Names that the statement itself makes.
    let made: Vec<&str> = (0..tokens.len())
        .filter_map(|i| {
            if at(i).is("as") && at(i + 1) == Token::Symbol('(') {
                before(i).name()
            } else {
                None
            }
        })
        .collect();
    let aliases: Vec<&str> = (0..tokens.len())
        .filter_map(|i| {
            if before(i).is("as") {
                at(i).name()
            } else {
                None
            }
        })
        .collect();
    let mut sources: Vec<(&str, &Table)> = Vec::new();
    let mut has_other_sources = !made.is_empty();
    let mut is_query = vec![true];
    for i in 0..tokens.len() {
        match at(i) {
            Token::Symbol('(') => is_query.push(false),
            Token::Symbol(')') => {
                is_query.pop();
            }
            word if word.is("select") => {
                if let Some(last) = is_query.last_mut() {
                    *last = true;
                }
            }
            _ => {}
        }
        let is_update = at(i).is("update") && !before(i).is_any(&["for", "do", "key", "on"]);
        let names_table = is_update
            || at(i).is_any(&["join", "into"])
            || (at(i).is("from") && is_query.last() == Some(&true));
        if !names_table {
            continue;
        }
        let mut place = i + 1;
        loop {
            place += usize::from(at(place).is("only"));
            // A function or a query of its own has columns that nobody here knows.
            let is_function =
                !is_update && !at(i).is("into") && at(place + 1) == Token::Symbol('(');
            let Some(name) = at(place).name().filter(|_| !is_function) else {
                has_other_sources = true;
                break;
            };
            match tables
                .iter()
                .find(|table| table.name.eq_ignore_ascii_case(name))
            {
                Some(table) => {
                    place += 1;
                    place += usize::from(at(place).is("as"));
                    sources.push((name, table));
                    if let Some(alias) = at(place).name() {
                        sources.push((alias, table));
                        place += 1;
                    }
                }
                None if made.contains(&name) => place += 1,
                None => {
                    let known: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
                    let hint = suggest::hint(name, known.iter().copied());
                    return Err(format!(
                        "there is no table \"{name}\"{hint}; tables: {}",
                        known.join(", ")
                    ));
                }
            }
            if at(i).is("from") && at(place) == Token::Symbol(',') {
                place += 1;
            } else {
                break;
            }
        }
    }
    if has_other_sources || sources.is_empty() {
        return Ok(());
    }
    let check = |qualifier: Option<&str>, name: &str| {
        let own: Vec<&Table> = sources
            .iter()
            .filter(|(known, _)| {
                qualifier.is_none_or(|qualifier| known.eq_ignore_ascii_case(qualifier))
            })
            .map(|(_, table)| *table)
            .collect();
        let columns: Vec<&str> = own
            .iter()
            .flat_map(|table| &table.columns)
            .map(|column| column.name.as_str())
            .collect();
        let is_alias = qualifier.is_none() && aliases.contains(&name);
        // `excluded.c`, an alias of something else, or a table that is wrong itself.
        if own.is_empty()
            || own.iter().any(|table| table.columns.is_empty())
            || is_alias
            || columns
                .iter()
                .any(|column| column.eq_ignore_ascii_case(name))
        {
            return Ok(());
        }
        let tables: Vec<&str> = own.iter().map(|table| table.name.as_str()).collect();
        let hint = suggest::hint(name, columns.iter().copied());
        Err(format!(
            "{} has no column \"{name}\"{hint}; columns: {}",
            tables[0],
            columns.join(", ")
        ))
    };
    let mut in_columns = false;
    for i in 0..tokens.len() {
        // The list of columns of an insert.
        in_columns = match at(i) {
            Token::Symbol('(') => before(i).name().is_some() && i >= 2 && at(i - 2).is("into"),
            Token::Symbol(')') => false,
            _ => in_columns,
        };
        let Some(name) = at(i).name() else { continue };
        let is_qualified = before(i) == Token::Symbol('.');
        let next = at(i + 1);
        if next == Token::Symbol('.') || next == Token::Symbol('(') {
            continue;
        }
        let is_compared = matches!(next, Token::Symbol('=' | '<' | '>' | '!'))
            || next.is_any(&["in", "between", "like"])
            || (next.is("not") && at(i + 2).is_any(&["in", "between", "like"]));
        let is_listed = (before(i).is_any(&["select", "distinct", "by"])
            || before(i) == Token::Symbol(','))
            && (next.is("from")
                || next == Token::Symbol(',') && before(i).is_any(&["select", "distinct"])
                || before(i).is("by"));
        let is_parameter_of_session = before(i) == Token::Symbol('@');
        if (in_columns || is_qualified || is_compared || is_listed) && !is_parameter_of_session {
            let qualifier = if is_qualified {
                i.checked_sub(2).and_then(|at| tokens[at].name())
            } else {
                None
            };
            if !is_qualified || qualifier.is_some() {
                check(qualifier, name)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload_file::{Column, ColumnValues};

    #[test]
    fn statements_are_cut_at_their_parameters() {
        let sql = Sql::parse(
            "SELECT a::text, ':no' FROM t WHERE id = :id AND b IN (:list) AND c = :d::date",
        )
        .unwrap();
        assert_eq!(sql.parameters, ["id", "list", "d"]);
        assert_eq!(
            sql.pieces,
            [
                "SELECT a::text, ':no' FROM t WHERE id = ",
                " AND b IN (",
                ") AND c = ",
                "::date"
            ]
        );
        assert!(sql.returns_rows);
        for (text, effect, returns_rows) in [
            (
                "insert into t (a) values (:a)",
                Effect::Inserts("t".into()),
                false,
            ),
            (
                "INSERT IGNORE INTO t VALUES (:a)",
                Effect::Inserts("t".into()),
                false,
            ),
            (
                "insert into t (a) values (:a) returning id",
                Effect::Inserts("t".into()),
                true,
            ),
            (
                "insert into t (a) values (1) on conflict (a) do update set b = 1",
                Effect::Uncountable("t".into()),
                false,
            ),
            (
                "insert into t (a) values (1) on duplicate key update b = 1",
                Effect::Uncountable("t".into()),
                false,
            ),
            (
                "replace into t (a) values (1)",
                Effect::Uncountable("t".into()),
                false,
            ),
            (
                "DELETE FROM t WHERE id = :id",
                Effect::Deletes("t".into()),
                false,
            ),
            (
                "UPDATE t SET a = a + 1 WHERE id = :id",
                Effect::Changes,
                false,
            ),
            ("SELECT a FROM t FOR UPDATE", Effect::Reads, true),
            (
                "WITH x AS (SELECT 1) SELECT * FROM x FOR UPDATE",
                Effect::Reads,
                true,
            ),
        ] {
            let sql = Sql::parse(text).unwrap();
            assert_eq!(
                (sql.effect, sql.returns_rows),
                (effect, returns_rows),
                "{text}"
            );
        }
        for (text, wanted) in [
            ("SELECT ?", "by name"),
            ("SELECT 1; SELECT 2", "one statement"),
            ("COMMIT", "transaction = true"),
            ("drop table t", "none of SELECT"),
        ] {
            assert!(Sql::parse(text).unwrap_err().contains(wanted), "{text}");
        }
    }

    fn tables() -> Vec<Table> {
        let column = |name: &str| Column {
            name: name.into(),
            sql_type: "integer".into(),
            is_auto: false,
            values: ColumnValues::Row,
        };
        let table = |name: &str, columns: &[&str]| Table {
            name: name.into(),
            rows: 1,
            columns: columns.iter().map(|name| column(name)).collect(),
            primary_key: vec![],
            indexes: vec![],
        };
        vec![
            table("customer", &["id", "name", "region"]),
            table("purchase", &["id", "customer_id", "amount"]),
        ]
    }

    #[test]
    fn names_are_those_of_the_tables() {
        for text in [
            "SELECT name, region FROM customer WHERE id = :id",
            "SELECT c.name, SUM(p.amount) AS total FROM customer c JOIN purchase AS p ON \
            p.customer_id = c.id WHERE c.region IN (:r) GROUP BY c.name ORDER BY total",
            "SELECT EXTRACT(year FROM now()), name FROM customer",
            "SELECT * FROM (SELECT id AS x FROM customer) d WHERE x = 1",
            "WITH r AS (SELECT region AS q FROM customer) SELECT q FROM r WHERE q = 1",
            "INSERT INTO purchase (id, customer_id, amount) VALUES (:id, :c, :a) ON CONFLICT (id) \
            DO UPDATE SET amount = excluded.amount",
            "UPDATE customer SET region = region + 1 WHERE id BETWEEN :a AND :b",
            "SELECT name FROM customer, purchase WHERE customer_id = customer.id FOR UPDATE",
            "SELECT COUNT(*) FROM customer WHERE name IS NOT NULL LIMIT 10",
            "INSERT INTO customer (id, name) SELECT g, 'x' FROM generate_series(1, :n) AS g",
            "SELECT name FROM customer FORCE INDEX (customer_region) WHERE region = 1 UNION SELECT \
            name FROM customer",
            "SELECT CASE WHEN region = 1 THEN 2 ELSE 3 END FROM customer ORDER BY name DESC",
        ] {
            assert_eq!(check_names(text, &tables()), Ok(()), "{text}");
        }
        for (text, wanted) in [
            (
                "SELECT name FROM custmer",
                "there is no table \"custmer\" (did you mean \"customer\"?); tables: customer, \
                purchase",
            ),
            (
                "SELECT nme FROM customer",
                "customer has no column \"nme\" (did you mean \"name\"?); columns: id, name, region",
            ),
            (
                "SELECT name FROM customer WHERE idd = :id",
                "no column \"idd\"",
            ),
            (
                "SELECT name FROM customer WHERE reion IN (:id)",
                "no column \"reion\" (did you mean \"region\"?)",
            ),
            (
                "SELECT name FROM customer ORDER BY reion",
                "no column \"reion\"",
            ),
            (
                "SELECT c.amount FROM customer c, purchase p",
                "customer has no column \"amount\"",
            ),
            (
                "INSERT INTO purchase (id, customer) VALUES (:a, :b)",
                "purchase has no column \"customer\"",
            ),
            (
                "UPDATE purchase SET amout = :a WHERE id = :b",
                "no column \"amout\" (did you mean \"amount\"?)",
            ),
            (
                "DELETE FROM purchases WHERE id = :a",
                "no table \"purchases\" (did you mean \"purchase\"?)",
            ),
            (
                "SELECT name FROM customer JOIN purchas ON 1 = 1",
                "no table \"purchas\"",
            ),
        ] {
            let found = check_names(text, &tables()).unwrap_err();
            assert!(found.contains(wanted), "{text}: {found}");
        }
    }
}
