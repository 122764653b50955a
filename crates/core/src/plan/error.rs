//! Plan errors name the file, the line and the way out.

use std::fmt;
use std::ops::Range;

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
    pub(super) fn at(
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
