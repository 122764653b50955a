//! From the document to the workload: names resolved, values bound, every error with its place.

use std::ops::Range;

use toml::Spanned;

use super::column_type::ColumnType;
use super::document::{self, Document, Generator};
use super::generator::{column_values, parameter};
use super::{
    Column, ColumnValues, Effect, Event, Index, Mix, Parameter, Sql, Statement, Table, Value,
    WorkloadFile,
};
use crate::name::check_plan_name;
use crate::source::{PlanError, Source, span};
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
    let mut checker = Checker {
        source: Source::new(file, text),
        problems: Vec::new(),
    };
    let checked = Document::read(&checker.source, text, &mut checker.problems)
        .map(|document| checker.check(&document));
    match PlanError::of_all(checker.problems) {
        Some(problems) => Err(problems),
        None => Ok(checked
            .flatten()
            .expect("a file without problems is a workload")),
    }
}

/// Goes through the whole file and notes what is wrong. What could not be read has its name and
/// nothing else, so that one problem makes no others.
struct Checker<'a> {
    source: Source<'a>,
    problems: Vec<PlanError>,
}

/// A statement by its name; `None` in place of one that is wrong.
type NamedStatement<'d> = (&'d str, Option<Statement>);

impl Checker<'_> {
    fn note(&mut self, span: Option<Range<usize>>, message: impl Into<String>) {
        self.problems.push(self.source.error(span, message));
    }

    /// What is good; a problem is noted.
    fn keep<T>(&mut self, result: Result<T, PlanError>) -> Option<T> {
        result.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// `None` where something is wrong, which is noted then.
    fn check(&mut self, document: &Document) -> Option<WorkloadFile> {
        let place = || Some(document.name.span());
        if !document.name.get_ref().is_empty()
            && let Err(error) = check_plan_name(document.name.get_ref())
        {
            self.note(place(), error.to_string());
        }
        if document.table.is_empty() {
            self.note(
                place(),
                "the workload has no table: describe one in [table.NAME]",
            );
        }
        if document.event.is_empty() {
            self.note(
                place(),
                "the workload has no event: name statements in [event.NAME]",
            );
        }
        let tables = self.tables(document);
        let statements = self.statements(document, &tables);
        let events = self.events(document, &statements);
        self.find_unused(document);
        let mixes = self.mixes(document);
        Some(WorkloadFile {
            name: document.name.get_ref().clone(),
            description: document.description.clone(),
            tables,
            statements: statements
                .into_iter()
                .map(|(_, statement)| statement)
                .collect::<Option<_>>()?,
            events,
            mixes,
        })
    }

    /// Names go into statements without quotes.
    fn check_name(&mut self, name: &Spanned<String>, what: &str) {
        let text = name.get_ref();
        let is_name = text.len() <= 60
            && text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_name {
            let message = format!(
                "\"{text}\" cannot be the name of {what}: use small letters, digits and _, with a \
                letter first, at most 60"
            );
            self.note(Some(name.span()), message);
        }
    }

    /// Names of statements, events and mixes are those of steps, files and tables of reports.
    fn check_label(&mut self, name: &Spanned<String>, what: &str) {
        let text = name.get_ref();
        let is_label = (1..=60).contains(&text.len())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        if !is_label {
            let message = format!(
                "\"{text}\" cannot be the name of {what}: use letters, digits, _ and -, at most 60"
            );
            self.note(Some(name.span()), message);
        }
    }

    fn tables(&mut self, document: &Document) -> Vec<Table> {
        // Columns may have ids of tables that come later: names and rows come first.
        let mut tables: Vec<Table> = Vec::new();
        for (name, table) in &document.table {
            self.check_name(name, "a table");
            tables.push(Table {
                name: name.get_ref().clone(),
                rows: table
                    .as_ref()
                    .map_or(MOST_ROWS, |table| self.rows(name, table)),
                columns: vec![],
                primary_key: vec![],
                indexes: vec![],
            });
        }
        for (at, (name, table)) in document.table.iter().enumerate() {
            let Some(table) = table else { continue };
            let columns = self.columns(name, table, &tables);
            if columns.is_empty() {
                let message = format!("{} has no columns", name.get_ref());
                self.note(Some(name.span()), message);
                continue;
            }
            let primary_key = match &table.primary_key {
                Some(key) => self.find_columns(name.get_ref(), &columns, key),
                None => vec![columns[0].name.clone()],
            };
            let mut indexes: Vec<Index> = Vec::new();
            for index in &table.indexes {
                let others: Vec<&Index> = tables
                    .iter()
                    .flat_map(|table| &table.indexes)
                    .chain(&indexes)
                    .collect();
                if let Some(index) = self.index(name.get_ref(), index, &columns, &others) {
                    indexes.push(index);
                }
            }
            self.check_auto(table, &columns, &primary_key);
            tables[at] = Table {
                columns,
                primary_key,
                indexes,
                ..tables[at].clone()
            };
        }
        tables
    }

    fn rows(&mut self, name: &Spanned<String>, table: &document::Table) -> u64 {
        let rows = table.rows.get_ref().0;
        if (1..=MOST_ROWS).contains(&rows) {
            return rows;
        }
        let message = format!(
            "{} has {rows} rows: rows must be 1 to {}",
            name.get_ref(),
            format_grouped(MOST_ROWS)
        );
        self.note(Some(table.rows.span()), message);
        MOST_ROWS
    }

    /// Engines number the primary key, and no other column.
    fn check_auto(&mut self, table: &document::Table, columns: &[Column], primary_key: &[String]) {
        let mut autos = columns.iter().filter(|column| column.is_auto);
        let Some(auto) = autos.find(|auto| primary_key != [auto.name.clone()]) else {
            return;
        };
        let name = &auto.name;
        let written = table.columns.iter();
        let place = written
            .into_iter()
            .find(|column| column.name.get_ref() == name)
            .and_then(|column| span(&column.auto));
        let message =
            format!("only the primary key can be auto, and of one column: {name} is not it");
        self.note(place, message);
    }

    /// Those of these columns that the table has.
    fn find_columns(
        &mut self,
        table: &str,
        columns: &[Column],
        wanted: &[Spanned<String>],
    ) -> Vec<String> {
        let known: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let mut found = Vec::new();
        for column in wanted {
            if !known.contains(&column.get_ref().as_str()) {
                let hint = suggest::hint(column.get_ref(), known.iter().copied());
                let message = format!(
                    "{table} has no column \"{}\"{hint}; columns: {}",
                    column.get_ref(),
                    known.join(", ")
                );
                self.note(Some(column.span()), message);
            }
            found.push(column.get_ref().clone());
        }
        found
    }

    fn index(
        &mut self,
        table: &str,
        index: &document::Index,
        columns: &[Column],
        others: &[&Index],
    ) -> Option<Index> {
        let names = self.find_columns(table, columns, index.columns.get_ref());
        if names.is_empty() {
            self.note(
                Some(index.columns.span()),
                "an index needs at least one column",
            );
            return None;
        }
        if let Some(name) = &index.name {
            self.check_name(name, "an index");
        }
        let name = index.name.as_ref().map_or_else(
            || format!("{table}_{}", names.join("_")),
            |name| name.get_ref().clone(),
        );
        let place = index
            .name
            .as_ref()
            .map_or(index.columns.span(), Spanned::span);
        if name.len() > 60 || others.iter().any(|other| other.name == name) {
            self.note(
                Some(place),
                format!(
                    "the index needs a name of its own, of at most 60 characters: \"{name}\" is \
                    none"
                ),
            );
        }
        Some(Index {
            name,
            columns: names,
            is_unique: index.unique,
        })
    }

    fn columns(
        &mut self,
        table: &Spanned<String>,
        document: &document::Table,
        tables: &[Table],
    ) -> Vec<Column> {
        let mut columns: Vec<Column> = Vec::new();
        for column in &document.columns {
            let name = column.name.get_ref();
            self.check_name(&column.name, "a column");
            if columns.iter().any(|other| &other.name == name) {
                self.note(
                    Some(column.name.span()),
                    format!("{} has two columns \"{name}\"", table.get_ref()),
                );
                continue;
            }
            let sql_type = ColumnType::parse(column.sql_type.get_ref());
            if let Err(problem) = &sql_type {
                self.note(Some(column.sql_type.span()), problem);
            }
            let values = match &column.values {
                None => Some(ColumnValues::Row),
                Some(generator) => self.keep(column_values(&self.source, generator, tables)),
            };
            let is_auto = column.auto.as_ref().is_some_and(|auto| *auto.get_ref());
            if is_auto && column.values.is_some() {
                self.note(
                    span(&column.auto),
                    "the engine numbers the rows of an auto column: leave out \"values\"",
                );
            }
            if let Ok(sql_type) = sql_type {
                if is_auto && sql_type != ColumnType::Integer {
                    let message = format!(
                        "the engine numbers the rows of an auto column: {name} needs a type of \
                        integers, such as \"bigint\""
                    );
                    self.note(Some(column.sql_type.span()), message);
                } else if let (Some(generator), Some(ColumnValues::Drawn(value))) =
                    (&column.values, &values)
                    && let Some(problem) = sql_type.refuses(value)
                {
                    self.note(
                        Some(generator.span()),
                        format!("{name} is {}, and {problem}", column.sql_type.get_ref()),
                    );
                }
            }
            let values = values.unwrap_or(ColumnValues::Row);
            columns.push(Column {
                name: name.clone(),
                sql_type: column.sql_type.get_ref().clone(),
                is_auto,
                values,
            });
        }
        columns
    }

    fn statements<'d>(
        &mut self,
        document: &'d Document,
        tables: &[Table],
    ) -> Vec<NamedStatement<'d>> {
        let mut statements = Vec::new();
        for (name, statement) in &document.statement {
            self.check_label(name, "a statement");
            let checked = statement
                .as_ref()
                .and_then(|statement| self.statement(name.get_ref(), statement, tables));
            statements.push((name.get_ref().as_str(), checked));
        }
        statements
    }

    fn statement(
        &mut self,
        name: &str,
        statement: &document::Statement,
        tables: &[Table],
    ) -> Option<Statement> {
        let mut is_good = true;
        let mut parameters = Vec::new();
        let mut in_order: Vec<_> = statement.parameters.iter().collect();
        in_order.sort_by_key(|(name, _)| name.span().start);
        for (parameter_name, generator) in in_order {
            match self.keep(parameter(
                &self.source,
                name,
                parameter_name.get_ref(),
                generator,
                tables,
            )) {
                Some(known) => parameters.push((parameter_name.get_ref().clone(), known)),
                None => is_good = false,
            }
        }
        let mut text = |sql: &Spanned<String>| {
            let parsed = Sql::parse(sql.get_ref());
            let explained = parsed.map_err(|message| {
                self.source
                    .error(Some(sql.span()), format!("statement {name}: {message}"))
            });
            self.keep(explained)
        };
        let sql = text(&statement.sql);
        // All of them are read before the first that is wrong ends this.
        let own: Vec<_> = statement
            .own
            .iter()
            .map(|(engine, sql)| Some((*engine, text(sql)?)))
            .collect();
        let checked = Statement {
            name: name.to_owned(),
            sql: sql?,
            own: own.into_iter().collect::<Option<_>>()?,
            is_prepared: statement.prepared.unwrap_or(true),
            parameters,
        };
        let problems = if is_good {
            check_parameters(&self.source, statement, &checked, tables)
        } else {
            Vec::new()
        };
        is_good &= problems.is_empty();
        self.problems.extend(problems);
        is_good.then_some(checked)
    }

    fn events(&mut self, document: &Document, statements: &[NamedStatement<'_>]) -> Vec<Event> {
        let mut events = Vec::new();
        for (name, event) in &document.event {
            self.check_label(name, "an event");
            let Some(event) = event else { continue };
            let mut calls: Vec<(usize, u32)> = Vec::new();
            for call in event.statements.get_ref() {
                let wanted = call.get_ref();
                if !(1..=MOST_TIMES).contains(&wanted.times) {
                    self.note(
                        Some(call.span()),
                        format!("times must be 1 to {}", format_grouped(MOST_TIMES.into())),
                    );
                }
                let Some(at) = statements
                    .iter()
                    .position(|(known, _)| *known == wanted.statement)
                else {
                    let known: Vec<&str> = statements.iter().map(|(name, _)| *name).collect();
                    let hint = suggest::hint(&wanted.statement, known.iter().copied());
                    let message = format!(
                        "there is no statement \"{}\"{hint}; statements: {}",
                        wanted.statement,
                        known.join(", ")
                    );
                    self.note(Some(call.span()), message);
                    continue;
                };
                self.check_same(document, call.span(), &calls, at, statements);
                calls.push((at, wanted.times));
            }
            if event.statements.get_ref().is_empty() {
                self.note(
                    Some(event.statements.span()),
                    format!("the event {} has no statements", name.get_ref()),
                );
            }
            let is_single = matches!(calls.as_slice(), [(_, 1)]);
            events.push(Event {
                name: name.get_ref().clone(),
                is_transaction: event.transaction.unwrap_or(!is_single),
                calls,
            });
        }
        if events.len() > MOST_EVENTS {
            self.note(
                Some(document.name.span()),
                format!("a workload has at most {MOST_EVENTS} events"),
            );
        }
        events
    }

    /// What a statement takes from earlier parameters of the event must be there, once.
    fn check_same(
        &mut self,
        document: &Document,
        place: Range<usize>,
        earlier: &[(usize, u32)],
        at: usize,
        statements: &[NamedStatement<'_>],
    ) {
        let Some(statement) = &statements[at].1 else {
            return;
        };
        let earlier: Option<Vec<&Statement>> = earlier
            .iter()
            .map(|(index, _)| statements[*index].1.as_ref())
            .collect();
        // One that could not be read may have what is looked for.
        let Some(earlier) = earlier else { return };
        for sql in statement.texts() {
            for (position, name) in sql.parameters.iter().enumerate() {
                let Some(Parameter::Same(of)) = statement.parameter(name) else {
                    continue;
                };
                let mut before: Vec<&Parameter> = Vec::new();
                for other in &earlier {
                    let texts = other.texts().filter(|sql| sql.parameters.contains(of));
                    before.extend(texts.filter_map(|_| other.parameter(of)));
                }
                let own = sql.parameters[..position].iter().filter(|name| *name == of);
                before.extend(own.filter_map(|name| statement.parameter(name)));
                let problem = match before.last() {
                    None => {
                        format!("no parameter :{of} comes before :{name}, which is to be the same")
                    }
                    Some(Parameter::Drawn { count: 2.., .. }) => {
                        format!(":{of} is a list, and :{name} cannot be the same")
                    }
                    Some(_) => continue,
                };
                let message = format!("statement {}: {problem}", statement.name);
                // Its own parameter of that name is the one that looks for another.
                let own = (statement.name.as_str(), name.as_str());
                let names = || other_parameters(statements, own);
                let is_known = names().any(|known| known == of);
                let mut written = document.statement.iter();
                let written = written
                    .find(|(known, _)| known.get_ref() == &statement.name)
                    .and_then(|(_, statement)| statement.as_ref()?.parameters.get(name.as_str()));
                match written.and_then(|generator| span(&generator.get_ref().same)) {
                    // No event can have it: the name is wrong, and not the order of the event.
                    Some(same) if !is_known => {
                        let hint = suggest::hint(of, names());
                        self.note(Some(same), format!("{message}{hint}"));
                    }
                    _ => self.note(Some(place.clone()), message),
                }
            }
        }
    }

    /// Statements that no event has.
    fn find_unused(&mut self, document: &Document) {
        // An event that could not be read may have any.
        let Some(events) = document
            .event
            .iter()
            .map(|(_, event)| event.as_ref())
            .collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let calls = || {
            events
                .iter()
                .flat_map(|event| event.statements.get_ref())
                .map(|call| &call.get_ref().statement)
        };
        // Of two names that do not fit, one is mistyped.
        if calls().any(|called| {
            document
                .statement
                .iter()
                .all(|(name, _)| name.get_ref() != called)
        }) {
            return;
        }
        for (name, _) in &document.statement {
            if !calls().any(|called| called == name.get_ref()) {
                let message = format!(
                    "no event has the statement \"{}\": name it in one, or leave it out",
                    name.get_ref()
                );
                self.note(Some(name.span()), message);
            }
        }
    }

    fn mixes(&mut self, document: &Document) -> Vec<Mix> {
        let known: Vec<&str> = document
            .event
            .iter()
            .map(|(name, _)| name.get_ref().as_str())
            .collect();
        let mut mixes = Vec::new();
        for (name, mix) in &document.mix {
            self.check_label(name, "a mix");
            let Some(mix) = mix else { continue };
            let mut weights: Vec<_> = mix.iter().collect();
            weights.sort_by_key(|(event, _)| event.span().start);
            let mut of_mix = Vec::new();
            for (event, weight) in weights {
                if *weight.get_ref() == 0 {
                    let message = format!(
                        "{} has the weight 0 in the mix {}: leave it out, or give it more",
                        event.get_ref(),
                        name.get_ref()
                    );
                    self.note(Some(weight.span()), message);
                }
                match known.iter().position(|known| *known == event.get_ref()) {
                    Some(at) => of_mix.push((at, *weight.get_ref())),
                    None => {
                        let hint = suggest::hint(event.get_ref(), known.iter().copied());
                        let message = format!(
                            "there is no event \"{}\"{hint}; events: {}",
                            event.get_ref(),
                            known.join(", ")
                        );
                        self.note(Some(event.span()), message);
                    }
                }
            }
            if mix.is_empty() {
                self.note(
                    Some(name.span()),
                    format!("the mix {} has no events", name.get_ref()),
                );
            }
            if known.contains(&name.get_ref().as_str()) {
                let message = format!(
                    "a mix and an event are both called {}: steps could not tell them apart",
                    name.get_ref()
                );
                self.note(Some(name.span()), message);
            }
            mixes.push(Mix {
                name: name.get_ref().clone(),
                events: of_mix,
            });
        }
        mixes
    }
}

/// The parameters of all statements but this one: statement and parameter.
fn other_parameters<'s>(
    statements: &'s [NamedStatement<'_>],
    own: (&'s str, &'s str),
) -> impl Iterator<Item = &'s str> {
    let all = statements
        .iter()
        .filter_map(|(_, statement)| statement.as_ref());
    all.flat_map(|statement| {
        let names = statement.parameters.iter();
        names.map(|(known, _)| (statement.name.as_str(), known.as_str()))
    })
    .filter(move |known| *known != own)
    .map(|(_, known)| known)
}

/// Every parameter of the texts is bound, and every bound one is in them; what one takes from
/// another comes after it.
fn check_parameters(
    source: &Source<'_>,
    document: &document::Statement,
    statement: &Statement,
    tables: &[Table],
) -> Vec<PlanError> {
    let mut problems = unbound_parameters(source, document, statement);
    // Of an unbound and an unused one, one is mistyped.
    let has_unbound = !problems.is_empty();
    for (name, generator) in &document.parameters {
        let is_used = |sql: &Sql| sql.parameters.contains(name.get_ref());
        if statement.texts().any(is_used) {
            let problem = check_after(statement, name.get_ref(), generator.get_ref(), tables);
            problems.extend(problem.map(|(place, message)| source.error(place, message)));
        } else if !has_unbound {
            let message = format!(
                "statement {} has no :{} in its text: leave the parameter out",
                statement.name,
                name.get_ref()
            );
            problems.push(source.error(Some(name.span()), message));
        }
    }
    problems
}

/// Parameters of the texts that nothing is said about, and texts with more values than an engine
/// takes.
fn unbound_parameters(
    source: &Source<'_>,
    document: &document::Statement,
    statement: &Statement,
) -> Vec<PlanError> {
    let mut problems = Vec::new();
    let written = std::iter::once(&document.sql).chain(document.own.values());
    let known = statement.parameter_names();
    for (sql, written) in statement.texts().zip(written) {
        let mut note = |message: String| {
            problems.push(source.error(
                Some(written.span()),
                format!("statement {}: {message}", statement.name),
            ));
        };
        for name in &sql.parameters {
            if !known.contains(&name.as_str()) {
                let hint = suggest::hint(name, known.iter().copied());
                note(format!(
                    "the parameter :{name} is not bound{hint}; say where its values come from: \
                    parameters.{name} = {{ ... }}"
                ));
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
        let counts = sql.parameters.iter().map(values);
        let count: u32 = counts.fold(0, u32::saturating_add);
        if count > MOST_MIXED && sql.parameters.iter().any(is_text) {
            note(format!(
                "a statement with texts has at most {MOST_MIXED} values, and this one has {count}"
            ));
        }
    }
    problems
}

/// What is wrong with a parameter that is so much more than another one.
fn check_after(
    statement: &Statement,
    name: &str,
    generator: &Generator,
    tables: &[Table],
) -> Option<(Option<Range<usize>>, String)> {
    let Some(Parameter::After { of, plus }) = statement.parameter(name) else {
        return None;
    };
    let place = span(&generator.after);
    let comes_before = |sql: &Sql| {
        let at = |name: &str| sql.parameters.iter().position(|other| other == name);
        at(of).is_some_and(|of| at(name).is_none_or(|own| of < own))
    };
    if !statement.texts().all(comes_before) {
        let hint = suggest::hint(of, statement.parameter_names());
        let message = format!(
            "after needs a parameter that comes before :{name} in the statement, and :{of} does \
            not{hint}"
        );
        return Some((place, message));
    }
    let table = match statement.parameter(of) {
        Some(Parameter::Drawn {
            value: Value::Integer { .. },
            table,
            count: 1,
        }) => table.as_ref()?,
        Some(Parameter::Sequence { .. } | Parameter::After { .. }) => return None,
        _ => {
            let message = format!("after needs one drawn integer, and :{of} is not one");
            return Some((place, message));
        }
    };
    let table = tables.iter().find(|known| &known.name == table)?;
    if plus.unsigned_abs() < table.rows {
        return None;
    }
    let message = format!(
        "the range of {} rows is larger than {}, which has {}: lower plus or raise its rows",
        format_grouped(plus.unsigned_abs().saturating_add(1)),
        table.name,
        format_grouped(table.rows)
    );
    Some((span(&generator.plus), message))
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
        assert_eq!(
            file.statements
                .iter()
                .map(|statement| statement.name.as_str())
                .collect::<Vec<_>>(),
            ["read", "scan", "rename"]
        );
        assert_eq!(
            file.events[1],
            Event {
                name: "change".into(),
                is_transaction: true,
                calls: vec![(0, 2), (1, 1), (2, 1)]
            }
        );
        assert_eq!(
            (file.events[0].statements(), file.events[1].statements()),
            (1, 6)
        );
        assert_eq!(file.mixes[0].events, [(0, 3), (1, 1)]);
        assert_eq!(file.tables[0].primary_key, ["id"]);
        assert_eq!(file.tables[0].indexes[0].name, "customer_region");
        assert_eq!(file.rows(), 1000);
    }

    #[test]
    fn bad_files_say_where_and_what_to_do() {
        let cases = [
            (
                "rows = \"1K\"",
                "rows = 0",
                "t.toml:4:8: customer has 0 rows: rows must be 1 to",
            ),
            (
                "{ same = \"id\" }",
                "{ same = \"nothing\" }",
                "t.toml:24:29: statement rename: no parameter :nothing comes before :again",
            ),
            (
                "parameters.id = ",
                "parameters.ix = ",
                "t.toml:13:7: statement read: the parameter :id is not bound (did you mean \"ix\"?)",
            ),
            (
                "{ id = \"customer\" }",
                "{ id = \"custommer\" }",
                "t.toml:18:26: there is no table \"custommer\" (did you mean \"customer\"?)",
            ),
            (
                "columns = [\"region\"]",
                "columns = [\"regoin\"]",
                "t.toml:10:25: customer has no column \"regoin\" (did you mean \"region\"?)",
            ),
            (
                "\"zipfian\" }",
                "\"zipfain\" }",
                "t.toml:8:85: unknown value \"zipfain\" (did you mean \"zipfian\"?)",
            ),
            (
                "\"zipfian\" }",
                "\"zipfian\", exponent = 11 }",
                "exponent must be at least 0 and below 10, not 11",
            ),
            (
                "h = 0.1",
                "exponent = 0.1",
                "t.toml:14:72: \"exponent\" belongs to distribution = \"zipfian\"",
            ),
            (
                "plus = 99",
                "plus = 1000",
                "t.toml:19:42: the range of 1,001 rows is larger than customer, which has 1,000",
            ),
            (
                "{ pattern =",
                "{ patern =",
                "t.toml:23:21: unknown key \"patern\" (did you mean \"pattern\"?)",
            ),
            (
                "{ pattern = \"@@-##\" }",
                "{ pattern = \"it's\" }",
                "t.toml:23:31: a text may have printable ASCII but for ' and \\, not '\\''",
            ),
            (
                "{ pattern = \"@@-##\" }",
                "{ plus = 3 }",
                "t.toml:23:19: it says nothing of where values come from: give it one of id, \
                integer",
            ),
            (
                "look = 3",
                "look = 0",
                "t.toml:33:8: look has the weight 0 in the mix all",
            ),
            (
                "look = 3",
                "lok = 3",
                "t.toml:33:1: there is no event \"lok\" (did you mean \"look\"?); events: look, \
                change",
            ),
            (
                "\"scan\", \"rename\"]",
                "\"rename\"]",
                "t.toml:16:12: no event has the statement \"scan\"",
            ),
            (
                "\"scan\", \"rename\"]",
                "\"scam\", \"rename\"]",
                "there is no statement \"scam\" (did you mean \"scan\"?)",
            ),
            (
                "[mix.all]",
                "[mix.look]",
                "a mix and an event are both called look",
            ),
            (
                "after = \"from\"",
                "after = \"form\"",
                "t.toml:19:27: after needs a parameter that comes before :to in the statement, and \
                :form does not (did you mean \"from\"?)",
            ),
            (
                "id = \"customer\" }",
                "id = \"customer\", count = 2000 }",
                "a list of 2,000 ids of customer, which has 1,000 rows",
            ),
            (
                "parameters.again =",
                "paramters.again =",
                "t.toml:24:1: unknown key \"paramters\" (did you mean \"parameters\"?)",
            ),
            (
                "[event.look]",
                "[evnt.look]",
                "unknown key \"evnt\" (did you mean \"event\"?)",
            ),
            (
                "same = \"id\"",
                "same = \"idd\"",
                "t.toml:24:29: statement rename: no parameter :idd comes before :again, which is \
                to be the same (did you mean \"id\"?)",
            ),
            (
                ":again\"\nparameters.name = { pattern = \"@@-##\" }\nparameters.again = \
                { same = \"id\" }",
                ":id\"\nparameters.name = { pattern = \"@@-##\" }\nparameters.id = \
                { same = \"idd\" }",
                "t.toml:24:26: statement rename: no parameter :idd comes before :id, which is to \
                be the same (did you mean \"id\"?)",
            ),
            (
                "{ statement = \"read\", times = 2 }, ",
                "",
                "t.toml:30:23: statement rename: no parameter :id comes before :again",
            ),
            (
                "{ same = \"id\" }",
                "{ repeat = 3 }",
                "t.toml:24:31: \"repeat\" is for columns: a parameter has one of id, integer, \
                pattern",
            ),
            (
                "{ same = \"id\" }",
                "{ sme = \"id\" }",
                "t.toml:24:22: unknown key \"sme\" (did you mean \"same\"?); known here: id, \
                integer, pattern, letters, one_of, constant, next_id, sequence, same, after, plus, \
                distribution, exponent, h, count\n",
            ),
            (
                "{ letters = [3, 20] }",
                "{ leters = [3, 20] }",
                "(did you mean \"letters\"?); known here: id, integer, pattern, letters, one_of, \
                constant, repeat, cycle, distribution, exponent, h\n",
            ),
            (
                "plus = 99",
                "plus = \"9\"",
                "t.toml:19:42: expected a whole number, not the text \"9\"",
            ),
            (
                "look = 3",
                "look = 2.5",
                "t.toml:33:8: expected a whole number of at least 0, not 2.5",
            ),
            (
                "look = 3",
                "look = -3",
                "t.toml:33:8: expected a whole number of at least 0, not -3",
            ),
            (
                "statements = [\"read\"]",
                "statements = \"read\"",
                "t.toml:27:14: expected a list in [ ], not the text \"read\"",
            ),
            (
                "letters = [3, 20]",
                "letters = [3]",
                "t.toml:7:63: expected a list of 2 numbers",
            ),
            (
                "\"integer\" },\n",
                "\"intger\" },\n",
                "t.toml:6:25: \"intger\" is not a column type (did you mean \"integer\"?)",
            ),
            (
                "type = \"integer\" }",
                "type = \"varchar(9)\", auto = true }",
                "t.toml:6:25: the engine numbers the rows of an auto column: id needs a type of \
                integers",
            ),
            (
                "type = \"integer\" }",
                "type = \"integr\", auto = true }",
                "t.toml:6:25: \"integr\" is not a column type",
            ),
            (
                "{ integer = [1, 50], distribution = \"zipfian\" }",
                "{ constant = \"north\" }",
                "t.toml:8:49: region is integer, and \"north\" is not a whole number",
            ),
            (
                "{ integer = [1, 50], distribution = \"zipfian\" }",
                "{ letters = [1, 2] }",
                "region is integer, and letters are not a number",
            ),
        ];
        for (from, to, wanted) in cases {
            assert!(FILE.contains(from), "{from}");
            let found = WorkloadFile::parse("t.toml", &FILE.replacen(from, to, 1))
                .unwrap_err()
                .to_string();
            assert!(
                found.contains(wanted),
                "{to}: wanted {wanted:?}\nfound  {found:?}"
            );
            assert_eq!(
                found.matches("t.toml:").count(),
                1,
                "{to}: one problem makes no others: {found}"
            );
        }
    }

    #[test]
    fn all_problems_are_shown_in_the_order_of_the_file() {
        let text = FILE
            .replace("rows = \"1K\"", "rows = 0")
            .replace("letters = [3, 20]", "constant = \"it's\"")
            .replace("SET name = :name", "SET name = :nmae")
            .replace(
                "{ id = \"customer\", distribution",
                "{ id = \"costumer\", distribution",
            )
            .replace("plus = 99", "plus = \"x\"")
            .replace("look = 3", "lok = 3");
        let error = WorkloadFile::parse("t.toml", &text).unwrap_err();
        let lines: Vec<usize> = std::iter::once(&error)
            .chain(&error.others)
            .map(|problem| problem.place.unwrap().0)
            .collect();
        assert_eq!(lines, [4, 7, 14, 19, 22, 33], "{error}");
        assert_eq!(error.to_string().matches("t.toml:").count(), 6);
        let names = (0..30).map(|i| format!("bad{i} = 1\n")).collect::<String>();
        let error = WorkloadFile::parse("t.toml", &format!("{names}{FILE}"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            (error.matches("t.toml:").count(), error.lines().last()),
            (20, Some("and 10 more"))
        );
    }
}
