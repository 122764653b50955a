//! What a statement's text says by itself: its parameters, and what it does.
//!
//! This is not a grammar of SQL. The engine is asked to prepare each statement before the tables
//! are filled, and refuses what names a table or column that is not there.

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
    /// Whether it writes, or may: it changes or locks rows, or calls a function that is not known to
    /// read alone.
    pub may_write: bool,
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

/// Words before a parenthesis that write nothing: keywords, and functions that engines have
/// themselves. A function with another name may be one that somebody wrote.
const READING: &[&str] = &[
    "abs",
    "all",
    "and",
    "any",
    "as",
    "avg",
    "between",
    "by",
    "case",
    "cast",
    "char",
    "char_length",
    "coalesce",
    "concat",
    "count",
    "date",
    "decimal",
    "distinct",
    "else",
    "except",
    "exists",
    "extract",
    "filter",
    "from",
    "greatest",
    "group_concat",
    "having",
    "in",
    "index",
    "intersect",
    "join",
    "lateral",
    "least",
    "length",
    "like",
    "limit",
    "lower",
    "materialized",
    "max",
    "min",
    "mod",
    "not",
    "nullif",
    "numeric",
    "offset",
    "on",
    "or",
    "over",
    "round",
    "row_number",
    "select",
    "string_agg",
    "substr",
    "substring",
    "sum",
    "then",
    "trim",
    "union",
    "upper",
    "using",
    "values",
    "varchar",
    "when",
    "where",
];

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
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

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
            may_write: effect != Effect::Reads || is_obscure(sql) || may_write(&words),
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

/// Whether a statement has comments, escapes, other quotes or an open string: its tokens are not what
/// they seem.
fn is_obscure(sql: &str) -> bool {
    let is_open = |quote: &char| sql.matches(*quote).count() % 2 == 1;
    ["--", "#", "/*", "\\", "$"]
        .iter()
        .any(|part| sql.contains(part))
        || ['\'', '"', '`'].iter().any(is_open)
}

/// Whether a statement that answers with rows may write, too: `FOR UPDATE` and `LOCK IN SHARE MODE`
/// lock rows, which some engines log; `INTO` makes a table; a function may do anything.
fn may_write(tokens: &[Token<'_>]) -> bool {
    let locks = ["for", "into", "lock"];
    let is_call = |at: usize| {
        let before = |places: usize| tokens.get(at.checked_sub(places)?).copied();
        tokens[at] == Token::Symbol('(')
            && match before(1) {
                // In somebody's schema a name of an engine's function is another function. `AS t (a)`
                // and `WITH t (a)` name a table and its columns.
                Some(word @ Token::Word(_)) => match before(2) {
                    Some(Token::Symbol('.')) => true,
                    Some(name) if name.is_any(&["as", "with", "recursive"]) => false,
                    _ => !word.is_any(READING),
                },
                // A quoted name.
                Some(Token::Other) => true,
                Some(Token::Parameter(_) | Token::Symbol(_)) | None => false,
            }
    };
    tokens.iter().any(|token| token.is_any(&locks)) || (0..tokens.len()).any(is_call)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (text, may_write) in [
            ("SELECT a FROM t WHERE (a + 1) * 2 = :a", false),
            ("select count(*), SUM(a) from t where a in (:list)", false),
            ("WITH x AS (SELECT 1) SELECT * FROM x", false),
            ("VALUES (1), (2)", false),
            ("SELECT 'nextval(' FROM t", false),
            ("SELECT a FROM t FOR UPDATE", true),
            ("SELECT a FROM t WHERE a = :a LOCK IN SHARE MODE", true),
            ("SELECT a INTO u FROM t", true),
            ("SELECT nextval('s')", true),
            ("SELECT \"mine\"(a) FROM t", true),
            ("SELECT add_points(a) FROM t", true),
            ("SELECT mine.count(a) FROM t", true),
            ("SELECT add_points /* a */ (a) FROM t", true),
            ("SELECT t.a FROM t WHERE t.a IN (1, 2)", false),
            ("WITH x (n) AS (SELECT 1) SELECT n FROM x", false),
            ("WITH RECURSIVE x (n) AS (SELECT 1) SELECT n FROM x", false),
            ("WITH x AS MATERIALIZED (SELECT 1) SELECT * FROM x", false),
            ("SELECT a FROM (VALUES (1)) AS t(a)", false),
            ("SELECT a FROM t FORCE INDEX (i) WHERE a = :a", false),
            (
                "SELECT a FROM t WHERE a = :a -- don't wait\n FOR UPDATE",
                true,
            ),
            (
                "SELECT a FROM t WHERE a = :a # don't wait\n FOR UPDATE",
                true,
            ),
            ("SELECT a FROM t WHERE b = 'it\\'s' FOR UPDATE", true),
            ("SELECT nextval -- the next, or\n('s')", true),
            ("SELECT $$it's$$, add_points(a), $$it's$$ FROM t", true),
            ("UPDATE t SET a = 1", true),
            ("insert into t (a) values (1) returning a", true),
            (
                "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
                true,
            ),
        ] {
            let found = Sql::parse(text).map(|sql| sql.may_write);
            assert_eq!(found.unwrap_or(true), may_write, "{text}");
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
}
