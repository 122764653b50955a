//! Bytes to lines and numbers, with places in errors.

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

/// Why a file cannot be read: fits after the file's name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {reason}")]
pub struct ReadError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl ReadError {
    /// An error at a line, from 1.
    pub fn new(line: usize, reason: impl fmt::Display) -> Self {
        Self {
            line,
            reason: reason.to_string(),
        }
    }
}

/// What a reader answers.
pub type Read<T> = Result<T, ReadError>;

/// The bytes as text; what is not UTF-8 becomes a replacement character.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Lines with their numbers from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> + Clone {
    (1..).zip(text.lines())
}

/// The last line's number, at least 1: where something is missing.
pub(crate) fn end(text: &str) -> usize {
    text.lines().count().max(1)
}

/// A finite number.
pub(crate) fn number(text: &str, line: usize) -> Read<f64> {
    let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite());
    parsed.ok_or_else(|| ReadError::new(line, format!("\"{}\" is not a number", shown(text))))
}

pub(crate) fn count(text: &str, line: usize) -> Read<u64> {
    text.parse()
        .map_err(|_| ReadError::new(line, format!("\"{}\" is not a count", shown(text))))
}

/// The beginning of a text without control characters, for messages.
pub(crate) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(60).collect();
    let clean = beginning.replace(char::is_control, " ");
    if text.chars().count() > 60 {
        format!("{clean}...")
    } else {
        clean
    }
}
