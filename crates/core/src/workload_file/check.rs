//! From the document to the workload: names resolved, values bound, every error with its place.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;

use super::document::{self, Document};
use super::generator::{column_values, parameter};
use super::sql::check_names;
use super::{Column, ColumnValues, Effect, Event, Index, Mix, Parameter, Sql, Statement, Table, Value, WorkloadFile};
use crate::name::check_plan_name;
use crate::plan::{PlanError, Source, explain_toml_error};
use crate::suggest;
use crate::units::format_grouped;

/// Ids are 64-bit integers; data of this size takes days.
const MOST_ROWS: u64 = 1_000_000_000_000;
/// A worker has a histogram for each.
const MOST_EVENTS: usize = 64;
const MOST_TIMES: u32 = 10_000;
/// Values of a statement that has texts among them.
pub const MOST_MIXED: u32 = 256;

pub(super) fn check(file: &str, text: &str) -> Result<WorkloadFile, PlanError> {
    let source = Source::new(file, text);
    let document: Document = toml::from_str(text).map_err(|error| explain_toml_error(&source, &error))?;
    check_plan_name(document.name.get_ref()).map_err(|e| source.error(Some(document.name.span()), e.to_string()))?;
    let missing = |what: &str| source.error(Some(document.name.span()), format!("the workload has no {what}"));
    if document.table.is_empty() {
        return Err(missing("table: describe one in [table.NAME]"));
    }
    if document.event.is_empty() {
        return Err(missing("event: name statements in [event.NAME]"));
    }
    let tables = source.tables(&document)?;
    let statements = source.statements(&document, &tables)?;
    let events = source.events(&document, &statements)?;
    if let Some(unused) =
        (0..statements.len()).find(|at| !events.iter().any(|event| event.calls.iter().any(|(statement, _)| statement == at)))
    {
        let name = &statements[unused].name;
        let place = document.statement.keys().find(|key| key.get_ref() == name).map(Spanned::span);
        return Err(source.error(place, format!("no event has the statement \"{name}\": name it in one, or leave it out")));
    }
    let mixes = source.mixes(&document, &events)?;
    Ok(WorkloadFile { name: document.name.get_ref().clone(), description: document.description.clone(), tables, statements, events, mixes })
}

/// What a table of the document holds, in the order of the file.
fn in_order<T>(map: &BTreeMap<Spanned<String>, T>) -> Vec<(&Spanned<String>, &T)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

impl Source<'_> {
    /// Names go into statements without quotes.
    fn check_name(&self, name: &Spanned<String>, what: &str) -> Result<(), PlanError> {
        let text = name.get_ref();
        let is_name = text.len() <= 60
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let message =
            || format!("\"{text}\" cannot be the name of {what}: use small letters, digits and _, with a letter first, at most 60");
        if is_name { Ok(()) } else { Err(self.error(Some(name.span()), message())) }
    }

    /// Names of statements, events and mixes are those of steps, files and tables of reports.
    fn check_label(&self, name: &Spanned<String>, what: &str) -> Result<(), PlanError> {
        let text = name.get_ref();
        let is_label = (1..=60).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let message = || format!("\"{text}\" cannot be the name of {what}: use letters, digits, _ and -, at most 60");
        if is_label { Ok(()) } else { Err(self.error(Some(name.span()), message())) }
    }

    fn tables(&self, document: &Document) -> Result<Vec<Table>, PlanError> {
        let mut tables: Vec<Table> = Vec::new();
        let entries = in_order(&document.table);
        // Columns may have ids of tables that come later.
        for (name, table) in &entries {
            self.check_name(name, "a table")?;
            let rows = table.rows.get_ref().0;
            if !(1..=MOST_ROWS).contains(&rows) {
                let message = format!("{} has {rows} rows: rows must be 1 to {}", name.get_ref(), format_grouped(MOST_ROWS));
                return Err(self.error(Some(table.rows.span()), message));
            }
            tables.push(Table { name: name.get_ref().clone(), rows, columns: vec![], primary_key: vec![], indexes: vec![] });
        }
        for (at, (name, table)) in entries.iter().enumerate() {
            let columns = self.columns(name, table, &tables)?;
            let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let find = |column: &Spanned<String>| {
                if known.contains(&column.get_ref().as_str()) {
                    return Ok(column.get_ref().clone());
                }
                let hint = suggest::hint(column.get_ref(), known.iter().copied());
                let message = format!("{} has no column \"{}\"{hint}; columns: {}", name.get_ref(), column.get_ref(), known.join(", "));
                Err(self.error(Some(column.span()), message))
            };
            let primary_key = match &table.primary_key {
                Some(key) => key.iter().map(find).collect::<Result<_, _>>()?,
                None => vec![known[0].to_owned()],
            };
            let mut indexes: Vec<Index> = Vec::new();
            for index in &table.indexes {
                let names: Vec<String> = index.columns.get_ref().iter().map(find).collect::<Result<_, _>>()?;
                if names.is_empty() {
                    return Err(self.error(Some(index.columns.span()), "an index needs at least one column"));
                }
                if let Some(name) = &index.name {
                    self.check_name(name, "an index")?;
                }
                let own =
                    index.name.as_ref().map_or_else(|| format!("{}_{}", name.get_ref(), names.join("_")), |name| name.get_ref().clone());
                let place = index.name.as_ref().map_or(index.columns.span(), Spanned::span);
                let others = tables.iter().flat_map(|table| &table.indexes).chain(&indexes);
                if own.len() > 60 || others.into_iter().any(|other| other.name == own) {
                    return Err(
                        self.error(Some(place), format!("the index needs a name of its own, of at most 60 characters: \"{own}\" is none"))
                    );
                }
                indexes.push(Index { name: own, columns: names, is_unique: index.unique });
            }
            let auto = columns.iter().filter(|column| column.is_auto).map(|column| &column.name);
            if let Some(auto) = auto.into_iter().find(|auto| primary_key != [(*auto).clone()]) {
                let place = table.columns.iter().find(|column| column.name.get_ref() == auto).and_then(|column| column.auto.as_ref());
                return Err(
                    self.error(place.map(Spanned::span), format!("only the primary key can be auto, and of one column: {auto} is not it"))
                );
            }
            tables[at] = Table { columns, primary_key, indexes, ..tables[at].clone() };
        }
        Ok(tables)
    }

    fn columns(&self, name: &Spanned<String>, table: &document::Table, tables: &[Table]) -> Result<Vec<Column>, PlanError> {
        let mut columns: Vec<Column> = Vec::new();
        for column in &table.columns {
            self.check_name(&column.name, "a column")?;
            let sql_type = column.sql_type.get_ref();
            if sql_type.trim().is_empty() || sql_type.contains([';', '?']) {
                return Err(self.error(Some(column.sql_type.span()), "a column needs a type, such as \"integer\" or \"varchar(20)\""));
            }
            if columns.iter().any(|other| &other.name == column.name.get_ref()) {
                return Err(
                    self.error(Some(column.name.span()), format!("{} has two columns \"{}\"", name.get_ref(), column.name.get_ref()))
                );
            }
            let values = match &column.values {
                None => ColumnValues::Row,
                Some(generator) => column_values(self, generator, tables)?,
            };
            let is_auto = column.auto.as_ref().is_some_and(|auto| *auto.get_ref());
            if is_auto && values != ColumnValues::Row {
                return Err(self.error(
                    column.auto.as_ref().map(Spanned::span),
                    "the engine numbers the rows of an auto column: leave out \"values\"",
                ));
            }
            columns.push(Column { name: column.name.get_ref().clone(), sql_type: sql_type.clone(), is_auto, values });
        }
        if columns.is_empty() {
            return Err(self.error(Some(name.span()), format!("{} has no columns", name.get_ref())));
        }
        Ok(columns)
    }

    fn statements(&self, document: &Document, tables: &[Table]) -> Result<Vec<Statement>, PlanError> {
        let mut statements = Vec::new();
        for (name, statement) in in_order(&document.statement) {
            self.check_label(name, "a statement")?;
            let text = |sql: &Spanned<String>| {
                let explain = |message: String| self.error(Some(sql.span()), format!("statement {}: {message}", name.get_ref()));
                check_names(sql.get_ref(), tables).map_err(explain)?;
                Sql::parse(sql.get_ref()).map_err(explain)
            };
            let own = |sql: &Option<Spanned<String>>| sql.as_ref().map(text).transpose();
            let mut parameters = Vec::new();
            for (parameter_name, generator) in in_order(&statement.parameters) {
                let known = parameter(self, name.get_ref(), parameter_name.get_ref(), generator, tables)?;
                parameters.push((parameter_name.get_ref().clone(), known));
            }
            let statement_of_file = Statement {
                name: name.get_ref().clone(),
                sql: text(&statement.sql)?,
                mysql: own(&statement.mysql)?,
                postgres: own(&statement.postgres)?,
                sqlite: own(&statement.sqlite)?,
                is_prepared: statement.prepared.unwrap_or(true),
                parameters,
            };
            self.check_parameters(statement, &statement_of_file, tables)?;
            statements.push(statement_of_file);
        }
        Ok(statements)
    }

    /// Every parameter of the texts is bound, and every bound one is in them; what one takes from another comes after it.
    fn check_parameters(&self, document: &document::Statement, statement: &Statement, tables: &[Table]) -> Result<(), PlanError> {
        let written = [Some(&document.sql), document.mysql.as_ref(), document.postgres.as_ref(), document.sqlite.as_ref()];
        let known: Vec<&str> = statement.parameters.iter().map(|(name, _)| name.as_str()).collect();
        for (sql, written) in statement.texts().zip(written.into_iter().flatten()) {
            let error = |message: String| self.error(Some(written.span()), format!("statement {}: {message}", statement.name));
            for name in &sql.parameters {
                if !known.contains(&name.as_str()) {
                    let hint = suggest::hint(name, known.iter().copied());
                    return Err(error(format!(
                        "the parameter :{name} is not bound{hint}; say where its values come from: parameters.{name} = {{ ... }}"
                    )));
                }
            }
            let values = |name: &String| match statement.parameter(name) {
                Some(Parameter::Drawn { count, .. }) => *count,
                _ => 1,
            };
            let is_text = |name: &String| match statement.parameter(name) {
                Some(Parameter::Drawn { value, .. }) => !value.is_integer(),
                Some(Parameter::Same(_)) => true,
                _ => false,
            };
            let count: u32 = sql.parameters.iter().map(values).fold(0, u32::saturating_add);
            if count > MOST_MIXED && sql.parameters.iter().any(is_text) {
                return Err(error(format!("a statement with texts has at most {MOST_MIXED} values, and this one has {count}")));
            }
        }
        for (name, generator) in &document.parameters {
            if !statement.texts().any(|sql| sql.parameters.contains(name.get_ref())) {
                let message = format!("statement {} has no :{} in its text: leave the parameter out", statement.name, name.get_ref());
                return Err(self.error(Some(name.span()), message));
            }
            let Some(Parameter::After { of, plus }) = statement.parameter(name.get_ref()) else { continue };
            let place = generator.get_ref().after.as_ref().map(Spanned::span);
            let comes_before = |sql: &Sql| {
                let at = |name: &str| sql.parameters.iter().position(|other| other == name);
                at(of).is_some_and(|of| at(name.get_ref()).is_none_or(|own| of < own))
            };
            if !statement.texts().all(comes_before) {
                let hint = suggest::hint(of, known.iter().copied());
                return Err(self.error(
                    place,
                    format!("after needs a parameter that comes before :{} in the statement, and :{of} does not{hint}", name.get_ref()),
                ));
            }
            match statement.parameter(of) {
                Some(Parameter::Drawn { value: Value::Integer { .. }, table, count: 1 }) => {
                    let table = table.as_ref().and_then(|name| tables.iter().find(|table| &table.name == name));
                    if let Some(table) = table.filter(|table| plus.unsigned_abs() >= table.rows) {
                        let message = format!(
                            "the range of {} rows is larger than {}, which has {}: lower plus or raise its rows",
                            format_grouped(plus.unsigned_abs().saturating_add(1)),
                            table.name,
                            format_grouped(table.rows)
                        );
                        return Err(self.error(generator.get_ref().plus.as_ref().map(Spanned::span), message));
                    }
                }
                Some(Parameter::Sequence { .. } | Parameter::After { .. }) => {}
                _ => return Err(self.error(place, format!("after needs one drawn integer, and :{of} is none"))),
            }
        }
        Ok(())
    }

    fn events(&self, document: &Document, statements: &[Statement]) -> Result<Vec<Event>, PlanError> {
        let known: Vec<&str> = statements.iter().map(|statement| statement.name.as_str()).collect();
        let mut events = Vec::new();
        for (name, event) in in_order(&document.event) {
            self.check_label(name, "an event")?;
            let mut calls: Vec<(usize, u32)> = Vec::new();
            for call in event.statements.get_ref() {
                let wanted = call.get_ref();
                let Some(at) = known.iter().position(|known| *known == wanted.statement) else {
                    let hint = suggest::hint(&wanted.statement, known.iter().copied());
                    let message = format!("there is no statement \"{}\"{hint}; statements: {}", wanted.statement, known.join(", "));
                    return Err(self.error(Some(call.span()), message));
                };
                if !(1..=MOST_TIMES).contains(&wanted.times) {
                    return Err(self.error(Some(call.span()), format!("times must be 1 to {}", format_grouped(MOST_TIMES.into()))));
                }
                self.check_same(call.span(), &calls, at, statements)?;
                calls.push((at, wanted.times));
            }
            if calls.is_empty() {
                return Err(self.error(Some(event.statements.span()), format!("the event {} has no statements", name.get_ref())));
            }
            let is_single = matches!(calls.as_slice(), [(_, 1)]);
            events.push(Event { name: name.get_ref().clone(), is_transaction: event.transaction.unwrap_or(!is_single), calls });
        }
        if events.len() > MOST_EVENTS {
            return Err(self.error(Some(document.name.span()), format!("a workload has at most {MOST_EVENTS} events")));
        }
        Ok(events)
    }

    /// What a statement takes from earlier parameters of the event must be there, once.
    fn check_same(&self, place: Range<usize>, earlier: &[(usize, u32)], at: usize, statements: &[Statement]) -> Result<(), PlanError> {
        let statement = &statements[at];
        for sql in statement.texts() {
            for (position, name) in sql.parameters.iter().enumerate() {
                let Some(Parameter::Same(of)) = statement.parameter(name) else { continue };
                let mut before: Vec<&Parameter> = Vec::new();
                for (index, _) in earlier {
                    let texts = statements[*index].texts().filter(|sql| sql.parameters.contains(of));
                    before.extend(texts.filter_map(|_| statements[*index].parameter(of)));
                }
                before.extend(sql.parameters[..position].iter().filter(|name| *name == of).filter_map(|name| statement.parameter(name)));
                match before.last() {
                    None => {
                        let message =
                            format!("statement {}: no parameter :{of} comes before :{name}, which is to be the same", statement.name);
                        return Err(self.error(Some(place), message));
                    }
                    Some(Parameter::Drawn { count: 2.., .. }) => {
                        return Err(self
                            .error(Some(place), format!("statement {}: :{of} is a list, and :{name} cannot be the same", statement.name)));
                    }
                    Some(_) => {}
                }
            }
        }
        Ok(())
    }

    fn mixes(&self, document: &Document, events: &[Event]) -> Result<Vec<Mix>, PlanError> {
        let known: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
        let mut mixes = Vec::new();
        for (name, mix) in in_order(&document.mix) {
            self.check_label(name, "a mix")?;
            let mut of_mix = Vec::new();
            for (event, weight) in in_order(mix) {
                let Some(at) = known.iter().position(|known| *known == event.get_ref()) else {
                    let hint = suggest::hint(event.get_ref(), known.iter().copied());
                    let message = format!("there is no event \"{}\"{hint}; events: {}", event.get_ref(), known.join(", "));
                    return Err(self.error(Some(event.span()), message));
                };
                if *weight.get_ref() == 0 {
                    let message =
                        format!("{} has the weight 0 in the mix {}: leave it out, or give it more", event.get_ref(), name.get_ref());
                    return Err(self.error(Some(weight.span()), message));
                }
                of_mix.push((at, *weight.get_ref()));
            }
            if of_mix.is_empty() {
                return Err(self.error(Some(name.span()), format!("the mix {} has no events", name.get_ref())));
            }
            if known.contains(&name.get_ref().as_str()) {
                return Err(self.error(
                    Some(name.span()),
                    format!("a mix and an event are both called {}: steps could not tell them apart", name.get_ref()),
                ));
            }
            mixes.push(Mix { name: name.get_ref().clone(), events: of_mix });
        }
        Ok(mixes)
    }
}

impl Effect {
    /// The table, if the number of its rows changes.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Reads | Self::Changes => None,
            Self::Inserts(table) | Self::Deletes(table) | Self::Uncountable(table) => Some(table),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"name = "t"

[table.customer]
rows = "1K"
columns = [
  { name = "id", type = "integer" },
  { name = "name", type = "varchar(20)", values = { letters = [3, 20] } },
  { name = "region", type = "integer", values = { integer = [1, 50], distribution = "zipfian" } },
]
indexes = [{ columns = ["region"] }]

[statement.read]
sql = "SELECT name FROM customer WHERE id = :id"
parameters.id = { id = "customer", distribution = "pareto", h = 0.1 }

[statement.scan]
sql = "SELECT name FROM customer WHERE id BETWEEN :from AND :to"
parameters.from = { id = "customer" }
parameters.to = { after = "from", plus = 99 }

[statement.rename]
sql = "UPDATE customer SET name = :name WHERE id = :again"
parameters.name = { pattern = "@@-##" }
parameters.again = { same = "id" }

[event.look]
statements = ["read"]

[event.change]
statements = [{ statement = "read", times = 2 }, "scan", "rename"]

[mix.all]
look = 3
change = 1
"#;

    #[test]
    fn a_file_is_read_in_its_order() {
        let file = WorkloadFile::parse("t.toml", FILE).unwrap();
        assert_eq!(file.statements.iter().map(|statement| statement.name.as_str()).collect::<Vec<_>>(), ["read", "scan", "rename"]);
        assert_eq!(file.events[1], Event { name: "change".into(), is_transaction: true, calls: vec![(0, 2), (1, 1), (2, 1)] });
        assert_eq!((file.events[0].statements(), file.events[1].statements()), (1, 6));
        assert_eq!(file.mixes[0].events, [(0, 3), (1, 1)]);
        assert_eq!(file.tables[0].primary_key, ["id"]);
        assert_eq!(file.tables[0].indexes[0].name, "customer_region");
        assert_eq!(file.rows(), 1000);
    }

    #[test]
    fn bad_files_say_where_and_what_to_do() {
        let cases = [
            ("rows = \"1K\"", "rows = 0", "t.toml:4:8: customer has 0 rows: rows must be 1 to"),
            ("{ same = \"id\" }", "{ same = \"nothing\" }", "t.toml:30:58: statement rename: no parameter :nothing comes before :again"),
            ("parameters.id = ", "parameters.ix = ", "t.toml:13:7: statement read: the parameter :id is not bound (did you mean \"ix\"?)"),
            (
                "{ id = \"customer\" }",
                "{ id = \"custommer\" }",
                "t.toml:18:26: there is no table \"custommer\" (did you mean \"customer\"?)",
            ),
            (
                "FROM customer WHERE id B",
                "FROM costumer WHERE id B",
                "t.toml:17:7: statement scan: there is no table \"costumer\" (did you mean",
            ),
            ("SET name", "SET nmae", "statement rename: customer has no column \"nmae\" (did you mean \"name\"?)"),
            (
                "columns = [\"region\"]",
                "columns = [\"regoin\"]",
                "t.toml:10:25: customer has no column \"regoin\" (did you mean \"region\"?)",
            ),
            ("\"zipfian\" }", "\"zipfain\" }", "t.toml:8:85: unknown value \"zipfain\" (did you mean \"zipfian\"?)"),
            ("\"zipfian\" }", "\"zipfian\", exponent = 11 }", "exponent must be at least 0 and below 10, not 11"),
            ("h = 0.1", "exponent = 0.1", "t.toml:14:72: \"exponent\" belongs to distribution = \"zipfian\""),
            ("plus = 99", "plus = 1000", "t.toml:19:42: the range of 1,001 rows is larger than customer, which has 1,000"),
            ("{ pattern =", "{ patern =", "t.toml:23:21: unknown key \"patern\" (did you mean \"pattern\"?)"),
            (
                "{ pattern = \"@@-##\" }",
                "{ pattern = \"it's\" }",
                "t.toml:23:31: a text may have printable ASCII but for ' and \\, not '\\''",
            ),
            (
                "{ pattern = \"@@-##\" }",
                "{ plus = 3 }",
                "t.toml:23:19: it says nothing of where values come from: give it one of id, integer",
            ),
            ("look = 3", "look = 0", "t.toml:33:8: look has the weight 0 in the mix all"),
            ("look = 3", "lok = 3", "t.toml:33:1: there is no event \"lok\" (did you mean \"look\"?); events: look, change"),
            ("\"scan\", \"rename\"]", "\"rename\"]", "t.toml:16:12: no event has the statement \"scan\""),
            ("\"scan\", \"rename\"]", "\"scam\", \"rename\"]", "there is no statement \"scam\" (did you mean \"scan\"?)"),
            ("[mix.all]", "[mix.look]", "a mix and an event are both called look"),
            (
                "after = \"from\"",
                "after = \"form\"",
                "t.toml:19:27: after needs a parameter that comes before :to in the statement, and :form does not (did you mean \"from\"?)",
            ),
            ("id = \"customer\" }", "id = \"customer\", count = 2000 }", "a list of 2,000 ids of customer, which has 1,000 rows"),
            ("[event.look]", "[evnt.look]", "unknown key \"evnt\" (did you mean \"event\"?)"),
        ];
        for (from, to, wanted) in cases {
            assert!(FILE.contains(from), "{from}");
            let found = WorkloadFile::parse("t.toml", &FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(found.contains(wanted), "{to}: wanted {wanted:?}\nfound  {found:?}");
        }
    }
}
