//! The lines that tell most: of an error of several lines, and of the end of a log.

use plimsoll_core::engines::ENGINES;

/// The first line of a message and, of the lines that follow, the one that tells most; then those
/// lines.
pub fn brief(text: &str) -> (String, Option<String>) {
    let Some((first, rest)) = text.trim().split_once('\n') else {
        return (text.trim().to_owned(), None);
    };
    let first = first.trim_end();
    let join = if first.ends_with(':') { " " } else { "; " };
    let line = telling_line(rest).map_or(String::new(), |line| format!("{join}{line}"));
    (format!("{first}{line}"), Some(rest.to_owned()))
}

/// The line of a log's end that tells most: the last one with an error, else the last one that says
/// anything.
pub(crate) fn telling_line(log: &str) -> Option<&str> {
    // What the C library and the kernel write, whichever server dies.
    const OF_ALL: [&str; 5] = [
        "Assertion",
        "assertion",
        "Out of memory",
        "out of memory",
        "No space left",
    ];
    let has = |line: &str, words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_idle = |line: &str| ENGINES.iter().any(|facts| has(line, facts.log.idle));
    let is_error =
        |line: &str| has(line, &OF_ALL) || ENGINES.iter().any(|facts| has(line, facts.log.errors));
    let mut lines = log
        .lines()
        .rev()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_idle(line));
    lines
        .clone()
        .find(|line| is_error(line))
        .or_else(|| lines.next())
}
