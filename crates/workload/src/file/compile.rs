//! From the events of a workload file to what clients perform.

use std::collections::BTreeMap;

use plimsoll_core::distribution::Distribution;
use plimsoll_core::workload_file::{Effect, Event, Parameter, Statement, Value, WorkloadFile};
use plimsoll_engine::{self as engine, SqlForms};

use crate::client::{self, EventStatement, Growth, Place, Program, Sequence, Source};
use crate::values::{Ids, Text};

/// The program of a step that draws these events by their weights. `next` holds where sequences go
/// on, by name.
pub(super) fn compile(
    file: &WorkloadFile,
    events: &[(String, u32)],
    forms: &'static dyn SqlForms,
    next: &BTreeMap<String, i64>,
) -> (Program, Vec<String>) {
    let mut compiler = Compiler {
        file,
        forms,
        ids: Vec::new(),
        texts: Vec::new(),
        sequences: Vec::new(),
    };
    let chosen: Vec<&Event> = events
        .iter()
        .filter_map(|(name, _)| file.events.iter().find(|event| &event.name == name))
        .collect();
    // Only what these events send is prepared.
    let mut used: Vec<usize> = chosen
        .iter()
        .flat_map(|event| event.calls.iter().map(|(statement, _)| *statement))
        .collect();
    used.sort_unstable();
    used.dedup();
    // A statement may take from others what depends on the event: its sources are the event's.
    let compiled = chosen
        .iter()
        .map(|event| compiler.event(event, &used))
        .collect();
    let weights = events.iter().scan(0, |sum, (_, weight)| {
        *sum += u64::from(*weight);
        Some(*sum)
    });
    let names: Vec<String> = compiler
        .sequences
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    let sequences = compiler.sequences.iter().map(|(name, start)| Sequence {
        start: next.get(name).copied().unwrap_or(*start),
    });
    let program = Program {
        forms,
        variants: 1,
        statements: used
            .iter()
            .map(|statement| compiler.statement(&file.statements[*statement]))
            .collect(),
        sequences: sequences.collect(),
        events: compiled,
        weights: weights.collect(),
        ids: compiler.ids,
        texts: compiler.texts,
    };
    (program, names)
}

struct Compiler<'a> {
    file: &'a WorkloadFile,
    forms: &'static dyn SqlForms,
    ids: Vec<Ids>,
    texts: Vec<Text>,
    sequences: Vec<(String, i64)>,
}

/// A value of the event that later ones may take.
#[derive(Clone, Copy)]
struct EarlierValue<'a> {
    name: &'a str,
    is_text: bool,
    /// Among all values, or among the texts.
    place: usize,
}

/// The values that come before a place, of an event or of one time of a statement.
#[derive(Default)]
struct EarlierValues<'a> {
    known: Vec<EarlierValue<'a>>,
    values: usize,
    texts: usize,
}

impl<'a> EarlierValues<'a> {
    fn find(&self, name: &str) -> Option<EarlierValue<'a>> {
        let mut latest = self.known.iter().rev();
        latest.find(|known| known.name == name).copied()
    }

    /// How far back from here a value is.
    fn back(&self, known: EarlierValue<'_>) -> Place {
        let here = if known.is_text {
            self.texts
        } else {
            self.values
        };
        Place::Back(here - known.place)
    }

    /// Lists are not taken again.
    fn push(&mut self, name: &'a str, is_text: bool, count: u32) {
        if count == 1 {
            self.known.push(EarlierValue {
                name,
                is_text,
                place: if is_text { self.texts } else { self.values },
            });
        }
        self.values += count as usize;
        self.texts += if is_text { count as usize } else { 0 };
    }

    /// Adds a statement that is sent so many times; later ones take what the last time has had.
    fn append(&mut self, own: EarlierValues<'a>, times: usize) {
        for known in own.known {
            let (before, of_one) = if known.is_text {
                (self.texts, own.texts)
            } else {
                (self.values, own.values)
            };
            self.known.push(EarlierValue {
                place: before + (times - 1) * of_one + known.place,
                ..known
            });
        }
        self.values += own.values * times;
        self.texts += own.texts * times;
    }
}

/// What takes an earlier value again.
fn taken(is_text: bool, place: Place) -> Source {
    if is_text {
        Source::SameText(place)
    } else {
        Source::Integer(place, 0)
    }
}

impl Compiler<'_> {
    fn statement(&self, statement: &Statement) -> client::Statement {
        let sql = statement.text_on(self.forms.engine());
        let mut pieces = vec![sql.pieces[0].clone()];
        let mut parameters = Vec::new();
        for (name, piece) in sql.parameters.iter().zip(&sql.pieces[1..]) {
            let (count, is_text) = self.shape(statement, name);
            pieces.extend((1..count).map(|_| ", ".to_owned()));
            pieces.push(piece.clone());
            let parameter = if is_text {
                engine::Parameter::Text
            } else {
                engine::Parameter::Integer
            };
            parameters.extend((0..count).map(|_| parameter));
        }
        let sign = match sql.effect {
            Effect::Inserts(_) => 1,
            Effect::Deletes(_) => -1,
            _ => 0,
        };
        let table = sql.effect.table().and_then(|name| {
            self.file
                .tables
                .iter()
                .position(|table| table.name.eq_ignore_ascii_case(name))
        });
        client::Statement {
            pieces: vec![pieces],
            parameters,
            is_prepared: statement.is_prepared,
            is_read: sql.effect == Effect::Reads,
            returns_rows: sql.returns_rows,
            growth: table.filter(|_| sign != 0).map(|table| Growth {
                sign,
                table: Some(table),
            }),
        }
    }

    /// How many values a parameter has, and whether they are texts.
    fn shape(&self, statement: &Statement, name: &str) -> (u32, bool) {
        match statement.parameter(name) {
            Some(Parameter::Drawn { value, count, .. }) => (*count, !value.is_integer()),
            Some(Parameter::Same(of)) => (1, self.is_text_of(statement, of)),
            _ => (1, false),
        }
    }

    /// Whether the parameter that another one is the same as is a text: in all statements that have
    /// it, it is.
    fn is_text_of(&self, statement: &Statement, of: &str) -> bool {
        let everywhere = std::iter::once(statement).chain(&self.file.statements);
        everywhere
            .filter_map(|statement| match statement.parameter(of)? {
                Parameter::Drawn { value, .. } => Some(!value.is_integer()),
                Parameter::Same(_) => None,
                _ => Some(false),
            })
            .next()
            .unwrap_or(false)
    }

    fn event(&mut self, event: &Event, used: &[usize]) -> client::Event {
        let (file, engine) = (self.file, self.forms.engine());
        let mut earlier = EarlierValues::default();
        let mut parts = Vec::new();
        for (at, times) in &event.calls {
            let statement = &file.statements[*at];
            let mut sources = Vec::new();
            // Of the statement's first time, from its own beginning.
            let mut own = EarlierValues::default();
            for name in &statement.text_on(engine).parameters {
                let (count, source) = self.source(statement, name, &own, &earlier);
                let is_text = matches!(source, Source::Text(_) | Source::SameText(_));
                own.push(name, is_text, count);
                // A list of texts has a source for each, one of integers has its count in it.
                sources.extend((0..if is_text { count } else { 1 }).map(|_| source));
            }
            earlier.append(own, *times as usize);
            parts.push(EventStatement {
                statement: used.iter().position(|used| used == at).unwrap_or(0),
                sources: sources.into(),
                times: *times,
                draws_variant: false,
            });
        }
        let effects = || {
            let calls = event.calls.iter();
            calls.map(|(at, _)| &file.statements[*at].text_on(engine).effect)
        };
        client::Event {
            is_transaction: event.is_transaction,
            is_writing: effects().any(|effect| *effect != Effect::Reads),
            retries_duplicates: event.is_transaction
                && effects().any(|effect| matches!(effect, Effect::Deletes(_))),
            parts,
        }
    }

    /// How many values a parameter has, and where they come from.
    fn source(
        &mut self,
        statement: &Statement,
        name: &str,
        own: &EarlierValues<'_>,
        earlier: &EarlierValues<'_>,
    ) -> (u32, Source) {
        let place_of_own =
            |name: &str| own.find(name).map(|known| (known.is_text, own.back(known)));
        let again = place_of_own(name).map(|(is_text, place)| taken(is_text, place));
        match (statement.parameter(name), again) {
            // The same name in one statement is the same value, but for lists.
            (
                Some(
                    Parameter::Drawn { count: 1, .. }
                    | Parameter::Sequence { .. }
                    | Parameter::After { .. }
                    | Parameter::Same(_),
                ),
                Some(again),
            ) => (1, again),
            (Some(Parameter::Drawn { value, count, .. }), _) => (*count, self.drawn(value, *count)),
            (Some(Parameter::Sequence { name, start }), _) => (1, self.sequence(name, *start)),
            (Some(Parameter::Same(of)), _) => {
                let of_event = || {
                    earlier
                        .find(of)
                        .map(|known| (known.is_text, Place::At(known.place)))
                };
                let place = place_of_own(of).or_else(of_event);
                let same = place.map(|(is_text, place)| taken(is_text, place));
                (1, same.unwrap_or(Source::Constant(0)))
            }
            (Some(Parameter::After { of, plus }), _) => match place_of_own(of) {
                Some((_, place)) => (1, Source::Integer(place, *plus)),
                None => (1, Source::Constant(*plus)),
            },
            (None, _) => (0, Source::Constant(0)),
        }
    }

    fn drawn(&mut self, value: &Value, count: u32) -> Source {
        match (value, Text::of(value)) {
            (
                Value::Integer {
                    first, count: 1, ..
                },
                _,
            ) if count == 1 => Source::Constant(*first),
            (
                Value::Integer {
                    first,
                    count: integers,
                    distribution,
                },
                _,
            ) => {
                let ids = self.ids(*distribution, *integers);
                Source::Integers {
                    ids,
                    count,
                    add: first - 1,
                }
            }
            (_, Some(text)) => Source::Text(place_of(&mut self.texts, text)),
            (_, None) => Source::Constant(0),
        }
    }

    fn ids(&mut self, distribution: Distribution, count: u64) -> usize {
        self.ids.push(Ids::new(distribution, count));
        self.ids.len() - 1
    }

    fn sequence(&mut self, name: &str, start: i64) -> Source {
        Source::Sequence(place_of(&mut self.sequences, (name.to_owned(), start)))
    }
}

/// Where a list holds something, which is put there if it is not yet.
fn place_of<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    list.iter()
        .position(|known| *known == wanted)
        .unwrap_or_else(|| {
            list.push(wanted);
            list.len() - 1
        })
}
