//! From the keys of a generator to where values come from.

use std::ops::Range;

use toml::Spanned;

use super::document::{Constant, Generator};
use super::{ColumnValues, Parameter, Table, Value};
use crate::distribution::{
    Distribution, DistributionName, MOST_ZIPFIAN_EXPONENT, PARETO_H, ZIPFIAN_EXPONENT,
};
use crate::source::{PlanError, Source, span};
use crate::suggest;
use crate::units::format_grouped;

/// Values of a list.
const MOST_VALUES: u32 = 10_000;
/// Letters of a text.
const MOST_LETTERS: u32 = 4000;

/// Of these a column's generator has exactly one.
const KINDS_OF_COLUMNS: &str = "id, integer, pattern, letters, one_of, constant, repeat, cycle";
/// Of these a parameter's generator has exactly one.
const KINDS_OF_PARAMETERS: &str =
    "id, integer, pattern, letters, one_of, constant, next_id, sequence, same, after";
/// Keys that are for parameters alone.
pub(super) const NOT_OF_COLUMNS: [&str; 6] =
    ["next_id", "sequence", "same", "after", "plus", "count"];
/// Keys that are for columns alone.
pub(super) const NOT_OF_PARAMETERS: [&str; 2] = ["repeat", "cycle"];

impl Generator {
    /// The keys that say what it is, as far as they are there.
    fn kinds(&self) -> Vec<(&'static str, Range<usize>)> {
        let keys = [
            ("id", span(&self.id)),
            ("integer", span(&self.integer)),
            ("pattern", span(&self.pattern)),
            ("letters", span(&self.letters)),
            ("one_of", span(&self.one_of)),
            ("constant", span(&self.constant)),
            ("repeat", span(&self.repeat)),
            ("cycle", span(&self.cycle)),
            ("next_id", span(&self.next_id)),
            ("sequence", span(&self.sequence)),
            ("same", span(&self.same)),
            ("after", span(&self.after)),
        ];
        keys.into_iter()
            .filter_map(|(key, span)| Some((key, span?)))
            .collect()
    }

    /// Its only kind. Keys that belong to others are refused.
    fn kind(
        &self,
        source: &Source<'_>,
        whole: Range<usize>,
        known: &str,
    ) -> Result<(&'static str, Range<usize>), PlanError> {
        let kinds = self.kinds();
        let (kind, place) = match kinds.as_slice() {
            [only] => only.clone(),
            [] => {
                return Err(source.error(
                    Some(whole),
                    format!("it says nothing of where values come from: give it one of {known}"),
                ));
            }
            [(first, _), (second, place), ..] => {
                return Err(source.error(
                    Some(place.clone()),
                    format!("it has \"{first}\" and \"{second}\": keep one of them"),
                ));
            }
        };
        let takes = |kinds: &[&str]| kinds.contains(&kind);
        let others = [
            (
                "distribution",
                span(&self.distribution),
                takes(&["id", "integer"]),
            ),
            (
                "exponent",
                span(&self.exponent),
                self.is_distributed(DistributionName::Zipfian),
            ),
            (
                "h",
                span(&self.h),
                self.is_distributed(DistributionName::Pareto),
            ),
            ("count", span(&self.count), takes(&["id", "integer"])),
            ("plus", span(&self.plus), takes(&["after"])),
        ];
        match others
            .into_iter()
            .find_map(|(key, span, is_right)| span.filter(|_| !is_right).map(|span| (key, span)))
        {
            Some((key @ "exponent", span)) => Err(source.error(
                Some(span),
                format!("\"{key}\" belongs to distribution = \"zipfian\""),
            )),
            Some((key @ "h", span)) => Err(source.error(
                Some(span),
                format!("\"{key}\" belongs to distribution = \"pareto\""),
            )),
            Some((key, span)) => Err(source.error(
                Some(span),
                format!("\"{kind}\" has no \"{key}\": leave it out"),
            )),
            None => Ok((kind, place)),
        }
    }

    fn is_distributed(&self, name: DistributionName) -> bool {
        self.distribution
            .as_ref()
            .is_some_and(|distribution| *distribution.get_ref() == name)
    }

    fn distribution(&self, source: &Source<'_>) -> Result<Distribution, PlanError> {
        let exponent = source.number(
            self.exponent.as_ref(),
            ZIPFIAN_EXPONENT,
            0.0..MOST_ZIPFIAN_EXPONENT,
            "exponent",
        )?;
        let h = source.number(self.h.as_ref(), PARETO_H, f64::MIN_POSITIVE..1.0, "h")?;
        Ok(self
            .distribution
            .as_ref()
            .map_or_else(Default::default, |name| *name.get_ref())
            .with(exponent, h))
    }
}

fn find_table<'t>(
    source: &Source<'_>,
    tables: &'t [Table],
    name: &Spanned<String>,
) -> Result<&'t Table, PlanError> {
    tables
        .iter()
        .find(|table| &table.name == name.get_ref())
        .ok_or_else(|| {
            let hint = suggest::hint(
                name.get_ref(),
                tables.iter().map(|table| table.name.as_str()),
            );
            source.error(
                Some(name.span()),
                format!("there is no table \"{}\"{hint}", name.get_ref()),
            )
        })
}

/// Texts go into statements between quotes and into lines between tabs, as they are.
fn check_text(source: &Source<'_>, place: &Range<usize>, text: &str) -> Result<(), PlanError> {
    match text
        .chars()
        .find(|c| !(' '..='~').contains(c) || matches!(c, '\'' | '\\'))
    {
        Some(c) => Err(source.error(
            Some(place.clone()),
            format!("a text may have printable ASCII but for ' and \\, not {c:?}"),
        )),
        None => Ok(()),
    }
}

/// The drawn value of a generator that has one of the kinds that columns and parameters share.
fn value(
    source: &Source<'_>,
    generator: &Generator,
    tables: &[Table],
) -> Result<Option<Value>, PlanError> {
    let value = if let Some(name) = &generator.id {
        Value::Integer {
            first: 1,
            count: find_table(source, tables, name)?.rows,
            distribution: generator.distribution(source)?,
        }
    } else if let Some(bounds) = &generator.integer {
        let [first, last] = *bounds.get_ref();
        let count = u64::try_from(i128::from(last) - i128::from(first) + 1).unwrap_or(0);
        if count == 0 || count > 1 << 53 {
            return Err(source.error(
                Some(bounds.span()),
                format!("integer = [{first}, {last}] must name the smallest and the largest"),
            ));
        }
        Value::Integer {
            first,
            count,
            distribution: generator.distribution(source)?,
        }
    } else if let Some(pattern) = &generator.pattern {
        check_text(source, &pattern.span(), pattern.get_ref())?;
        if pattern.get_ref().len() > MOST_LETTERS as usize {
            return Err(source.error(
                Some(pattern.span()),
                format!("a pattern has at most {MOST_LETTERS} characters"),
            ));
        }
        Value::Pattern(pattern.get_ref().clone())
    } else if let Some(lengths) = &generator.letters {
        let [least, most] = *lengths.get_ref();
        if least > most || most > MOST_LETTERS {
            let message = format!(
                "letters = [{least}, {most}] must name the shortest and the longest, of at most \
                {MOST_LETTERS}"
            );
            return Err(source.error(Some(lengths.span()), message));
        }
        Value::Letters { least, most }
    } else if let Some(texts) = &generator.one_of {
        if texts.get_ref().is_empty() {
            return Err(source.error(
                Some(texts.span()),
                "one_of names no text: name at least one",
            ));
        }
        texts
            .get_ref()
            .iter()
            .try_for_each(|text| check_text(source, &texts.span(), text))?;
        Value::OneOf(texts.get_ref().clone())
    } else if let Some(constant) = &generator.constant {
        match constant.get_ref() {
            Constant::Integer(value) => Value::Integer {
                first: *value,
                count: 1,
                distribution: Distribution::Uniform,
            },
            Constant::Text(text) => {
                check_text(source, &constant.span(), text)?;
                Value::OneOf(vec![text.clone()])
            }
        }
    } else {
        return Ok(None);
    };
    Ok(Some(value))
}

/// What loaded rows have in a column.
pub(super) fn column_values(
    source: &Source<'_>,
    generator: &Spanned<Generator>,
    tables: &[Table],
) -> Result<ColumnValues, PlanError> {
    let keys = generator.get_ref();
    let (kind, place) = keys.kind(source, generator.span(), KINDS_OF_COLUMNS)?;
    if let Some(count) = &keys.count {
        return Err(source.error(
            Some(count.span()),
            "a column has one value, and \"count\" is for lists: leave it out",
        ));
    }
    let number = |value: &Option<Spanned<u64>>| value.as_ref().map(|value| *value.get_ref());
    if let Some(drawn) = value(source, keys, tables)? {
        return Ok(ColumnValues::Drawn(drawn));
    }
    match (number(&keys.repeat), number(&keys.cycle)) {
        (Some(times @ 1..), _) => Ok(ColumnValues::Repeat(times)),
        (_, Some(numbers @ 1..)) => Ok(ColumnValues::Cycle(numbers)),
        (Some(_), _) | (_, Some(_)) => Err(source.error(
            Some(place),
            format!(
                "{kind} must be at \
            least 1"
            ),
        )),
        _ => Err(source.error(
            Some(place),
            format!(
                "\"{kind}\" is for parameters: a column has one of {KINDS_OF_COLUMNS}, or no \
                values, which are the rows' numbers"
            ),
        )),
    }
}

/// Where the values of a parameter come from. `statement` is its statement.
pub(super) fn parameter(
    source: &Source<'_>,
    statement: &str,
    name: &str,
    generator: &Spanned<Generator>,
    tables: &[Table],
) -> Result<Parameter, PlanError> {
    let keys = generator.get_ref();
    let (kind, place) = keys.kind(source, generator.span(), KINDS_OF_PARAMETERS)?;
    if let Some(value) = value(source, keys, tables)? {
        let count = source.ranged(keys.count.as_ref(), 1, MOST_VALUES, "count")?;
        let table = keys.id.as_ref().map(|id| id.get_ref().clone());
        if let (Some(table), Some(span), Value::Integer { count: rows, .. }) =
            (&table, span(&keys.count), &value)
            && u64::from(count) > *rows
        {
            let message = format!(
                "a list of {} ids of {table}, which has {} rows: lower count or raise its rows",
                format_grouped(count.into()),
                format_grouped(*rows)
            );
            return Err(source.error(Some(span), message));
        }
        return Ok(Parameter::Drawn {
            value,
            table,
            count,
        });
    }
    if let Some(table) = &keys.next_id {
        let table = find_table(source, tables, table)?;
        return Ok(Parameter::Sequence {
            name: table.name.clone(),
            start: table.rows as i64 + 1,
        });
    }
    if let Some(start) = &keys.sequence {
        return Ok(Parameter::Sequence {
            name: format!("{statement}.{name}"),
            start: *start.get_ref(),
        });
    }
    if let Some(of) = &keys.same {
        return Ok(Parameter::Same(of.get_ref().clone()));
    }
    match (&keys.after, &keys.plus) {
        (Some(of), Some(plus)) => Ok(Parameter::After {
            of: of.get_ref().clone(),
            plus: *plus.get_ref(),
        }),
        (Some(of), None) => Err(source.error(
            Some(of.span()),
            "after needs a \"plus\", the number that is added",
        )),
        _ => Err(source.error(
            Some(place),
            format!("\"{kind}\" is for columns: a parameter has one of {KINDS_OF_PARAMETERS}"),
        )),
    }
}
