//! The drawn values of one event, and its statements ready to be performed. Nothing is allocated
//! once the largest event was drawn.

use std::ops::Range;

use plimsoll_core::seed::Draw;
use plimsoll_engine::{Argument, Prepared};

use super::program::{Program, Source};

/// A statement on one session.
pub(super) struct Handle {
    /// `None` where it goes as text.
    pub prepared: Option<Prepared>,
}

/// A statement that is ready to be performed.
pub(super) struct Call {
    pub statement: usize,
    pub variant: usize,
    pub prepared: Option<Prepared>,
    /// Of the arguments.
    pub arguments: Range<usize>,
    /// Of the spans: those of its texts.
    pub spans: Range<usize>,
    /// Of the texts: the whole statement, where it goes as text.
    pub sql: Range<usize>,
}

/// An event's values.
#[derive(Default)]
pub(super) struct Values {
    pub event: usize,
    pub calls: Vec<Call>,
    /// Texts are empty here; their spans are in `spans`, in their order.
    pub arguments: Vec<Argument<'static>>,
    pub spans: Vec<(usize, usize)>,
    pub texts: String,
    number: itoa::Buffer,
}

/// What a client draws with.
pub(super) struct Draws {
    pub draw: Draw,
    /// The only variant of this client.
    pub own_variant: Option<usize>,
    /// By sequence: the next number.
    pub sequences: Vec<i64>,
    /// How far a sequence goes on.
    pub stride: i64,
}

impl Values {
    /// Draws an event, its variants and its values.
    pub fn draw(&mut self, program: &Program, handles: &[Vec<Handle>], draws: &mut Draws) {
        self.event = program.draw_event(&mut draws.draw);
        self.draw_again(program, handles, draws);
    }

    /// Draws the same event with new variants and values.
    pub fn draw_again(&mut self, program: &Program, handles: &[Vec<Handle>], draws: &mut Draws) {
        self.calls.clear();
        self.arguments.clear();
        self.spans.clear();
        self.texts.clear();
        let mut variant = 0;
        for part in &program.events[self.event].parts {
            if part.draws_variant {
                variant = match draws.own_variant {
                    Some(own) => own,
                    None => draws.draw.below(program.variants as u64) as usize,
                };
            }
            for _ in 0..part.times {
                let (arguments, spans) = (self.arguments.len(), self.spans.len());
                for source in &*part.sources {
                    self.push(program, *source, draws);
                }
                let prepared = handles[part.statement][variant].prepared;
                let mut call = Call {
                    statement: part.statement,
                    variant,
                    prepared,
                    arguments: arguments..self.arguments.len(),
                    spans: spans..self.spans.len(),
                    sql: 0..0,
                };
                if prepared.is_none() {
                    self.write_out(program, &mut call);
                }
                self.calls.push(call);
            }
        }
    }

    #[inline]
    fn push(&mut self, program: &Program, source: Source, draws: &mut Draws) {
        match source {
            Source::Integers { ids, count, add } => {
                let ids = &program.ids[ids];
                for _ in 0..count {
                    self.arguments
                        .push(Argument::Integer(ids.draw(&mut draws.draw) + add));
                }
            }
            Source::Constant(value) => self.arguments.push(Argument::Integer(value)),
            Source::Text(text) => {
                let start = self.texts.len();
                program.texts[text].push(&mut self.texts, &mut draws.draw);
                self.spans.push((start, self.texts.len()));
                self.arguments.push(Argument::Text(""));
            }
            Source::Integer(place, add) => {
                let value = match self.arguments[place.of(self.arguments.len())] {
                    Argument::Integer(value) => value,
                    Argument::Text(_) => 0,
                };
                self.arguments.push(Argument::Integer(value + add));
            }
            Source::SameText(place) => {
                let span = self.spans[place.of(self.spans.len())];
                self.spans.push(span);
                self.arguments.push(Argument::Text(""));
            }
            Source::Sequence(sequence) => {
                self.arguments
                    .push(Argument::Integer(draws.sequences[sequence]));
                draws.sequences[sequence] += draws.stride;
            }
        }
    }

    /// Writes a statement with its values behind the texts.
    fn write_out(&mut self, program: &Program, call: &mut Call) {
        let start = self.texts.len();
        let pieces = &program.statements[call.statement].pieces[call.variant];
        let mut spans = call.spans.clone();
        for (piece, argument) in pieces.iter().zip(call.arguments.clone()) {
            self.texts.push_str(piece);
            match self.arguments[argument] {
                Argument::Integer(value) => self.texts.push_str(self.number.format(value)),
                Argument::Text(_) => {
                    let (from, to) = spans.next().map_or((0, 0), |span| self.spans[span]);
                    self.texts.push('\'');
                    self.texts.extend_from_within(from..to);
                    self.texts.push('\'');
                }
            }
        }
        self.texts
            .push_str(pieces.last().map_or("", String::as_str));
        call.sql = start..self.texts.len();
    }
}
