//! A file that people write, and what is wrong with it: every error names the file, the line and
//! the way out.

use std::fmt;
use std::ops::Range;

use toml::Spanned;

use crate::suggest;

/// A file and its text, for errors with their place.
pub(crate) struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn error(
        &self,
        span: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> PlanError {
        PlanError::at(self.file, self.text, span, message)
    }

    /// The number of the line that begins so, from 1.
    pub(crate) fn line_of(&self, span: Range<usize>) -> usize {
        self.text[..span.start.min(self.text.len())]
            .matches('\n')
            .count()
            + 1
    }

    /// An error whose line is shown without the dsn: that may hold a password.
    pub(crate) fn secret_error(
        &self,
        span: Range<usize>,
        dsn: &Spanned<String>,
        message: String,
    ) -> PlanError {
        let mut error = self.error(Some(span), message);
        let written = &self.text[dsn.span()];
        error.line = if written.contains('\n') {
            String::new()
        } else {
            error.line.replace(written, "\"...\"")
        };
        error
    }
}

/// Where a key is written, if it is.
pub(crate) fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

/// What is wrong with a plan, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// The plan's file name.
    pub file: String,
    /// Line and column, from 1, where there is a place to point at.
    pub place: Option<(usize, usize)>,
    /// The offending line.
    pub line: String,
    /// The problem and what to do about it.
    pub message: String,
    /// What else is wrong with the file, in its order.
    pub others: Vec<PlanError>,
}

/// Problems that are shown at once.
const MOST_SHOWN: usize = 20;

impl PlanError {
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: Option<Range<usize>>,
        message: impl Into<String>,
    ) -> Self {
        let place = span.map(|span| {
            let before = &text[..span.start.min(text.len())];
            let line = before.matches('\n').count() + 1;
            (
                line,
                before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1,
            )
        });
        let line = place
            .and_then(|(line, _)| text.lines().nth(line - 1))
            .unwrap_or_default()
            .to_owned();
        Self {
            file: file.to_owned(),
            place,
            line,
            message: message.into(),
            others: Vec::new(),
        }
    }

    /// Problems of one file as one error, in the order of the file and each once; `None` without
    /// any.
    pub(crate) fn of_all(mut problems: Vec<Self>) -> Option<Self> {
        problems.sort_by(|a, b| (a.place, &a.message).cmp(&(b.place, &b.message)));
        problems.dedup();
        let mut problems = problems.into_iter();
        let first = problems.next()?;
        Some(Self {
            others: problems.collect(),
            ..first
        })
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((line, column)) => {
                write!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
                if !self.line.trim().is_empty() {
                    write!(f, "\n  {line} | {}", self.line.trim_end())?;
                }
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        for other in self.others.iter().take(MOST_SHOWN - 1) {
            write!(f, "\n{other}")?;
        }
        match self.others.len().saturating_sub(MOST_SHOWN - 1) {
            0 => Ok(()),
            hidden => write!(f, "\nand {hidden} more"),
        }
    }
}

impl std::error::Error for PlanError {}

/// Serde's message in words of the file, plus the nearest known key where a key is unknown.
/// `hidden` keys are not offered.
pub(crate) fn explain_toml_error(
    source: &Source<'_>,
    error: &toml::de::Error,
    hidden: &[&str],
) -> PlanError {
    let message = error.message();
    if message.starts_with("unknown field `password`") {
        // Its line is not shown.
        let mut error = source.error(
            error.span(),
            "a password in a plan would be kept with its results: name a password_file or a \
            password_env",
        );
        error.line.clear();
        return error;
    }
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let message = match quoted.as_slice() {
        [unknown, known @ ..] if message.starts_with("unknown field") => {
            let known: Vec<&str> = known
                .iter()
                .copied()
                .filter(|key| !hidden.contains(key))
                .collect();
            unknown_key(unknown, &known)
        }
        [unknown, known @ ..] if message.starts_with("unknown variant") => {
            format!(
                "unknown value \"{unknown}\"{}; known here: {}",
                suggest::hint(unknown, known.iter().copied()),
                known.join(", ")
            )
        }
        [missing] if message.starts_with("missing field") => {
            format!("the key \"{missing}\" is missing")
        }
        _ => explain_type_error(message).unwrap_or_else(|| message.to_owned()),
    };
    source.error(error.span(), message)
}

pub(crate) fn unknown_key(unknown: &str, known: &[&str]) -> String {
    format!(
        "unknown key \"{unknown}\"{}; known here: {}",
        suggest::hint(unknown, known.iter().copied()),
        known.join(", ")
    )
}

/// What serde says of a value of a wrong type, without the types of this program.
fn explain_type_error(message: &str) -> Option<String> {
    let kinds = ["invalid type: ", "invalid value: ", "invalid length "];
    let (found, wanted) = kinds
        .iter()
        .find_map(|kind| message.strip_prefix(kind))?
        .split_once(", expected ")?;
    let wanted = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a string" | "a borrowed string" | "string" => "a text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in [ ]",
        "a map" => "keys and values, as in { key = 1 }",
        wanted if wanted.starts_with("struct ") => "keys and values, as in { key = 1 }",
        wanted
            if wanted.starts_with("an array of length ")
                || wanted.starts_with("an array of size ") =>
        {
            return Some(format!(
                "expected a list of {} numbers",
                wanted.rsplit(' ').next()?
            ));
        }
        wanted => wanted,
    };
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    let found = match kind {
        "string" => format!("the text {value}"),
        "integer" | "boolean" => value.trim_matches('`').to_owned(),
        "floating" => value
            .trim_start_matches("point ")
            .trim_matches('`')
            .to_owned(),
        "sequence" => "a list".to_owned(),
        "map" => "a table of keys".to_owned(),
        _ => return Some(format!("expected {wanted}")),
    };
    Some(format!("expected {wanted}, not {found}"))
}
