//! Values that a text lists itself, such as `5063 QPS - orig5610, performance_schema not compiled`:
//! what its own percentages can be held against where the campaign has nothing.

use super::claims::{Found, direction, is_rounded};
use super::tokens::{Claim, Token};

/// More words than these are a sentence and no heading.
const HEADING_WORDS: usize = 5;
/// Shorter names of features say nothing.
const LEAST_NAME: usize = 5;

/// Lines of values below one heading.
#[derive(Clone, Debug, PartialEq)]
struct List {
    /// Letters and digits in lower case; empty without a heading.
    heading: String,
    /// Lines, from 1: the heading, or the first value, to the last value.
    from: usize,
    to: usize,
    entries: Vec<Entry>,
}

/// A value with its configuration.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    /// As the text has it.
    printed: String,
    value: f64,
    /// What it is a value of: up to the first comma.
    build: String,
    /// All of it, in letters and digits.
    about: String,
    /// It is not a rate: whether less of it is better is not known.
    is_time: bool,
}

/// The lists of a text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lists(Vec<List>);

impl Lists {
    pub fn of(text: &str) -> Self {
        let mut lists: Vec<List> = Vec::new();
        let mut heading: Option<(usize, String)> = None;
        let mut is_open = false;
        for (line, content) in (1..).zip(text.lines()) {
            let Some(entry) = entry(content) else {
                if is_heading(content) {
                    heading = Some((line, squeezed(content)));
                }
                // A blank line does not end a list.
                is_open &= content.trim().is_empty();
                continue;
            };
            if !is_open {
                let (from, heading) = heading.take().unwrap_or((line, String::new()));
                lists.push(List {
                    heading,
                    from,
                    to: line,
                    entries: Vec::new(),
                });
                is_open = true;
            }
            if let Some(list) = lists.last_mut() {
                list.to = line;
                list.entries.push(entry);
            }
        }
        lists.retain(|list| list.entries.len() > 1);
        Self(lists)
    }

    /// Whether a percentage or factor of a line is the ratio of two of the listed values: of
    /// siblings, which are one build with and without what the line names, or of any value and the
    /// best one. `None` if no list is about it.
    pub fn find(&self, line: usize, text: &str, token: &Token) -> Option<Found> {
        let (value, decimals, is_percent) = match token.claim {
            Claim::Percent(value, decimals) => (value, decimals, true),
            Claim::Factor(value, decimals) => (value, decimals, false),
            _ => return None,
        };
        let list = self.of_line(line, text)?;
        let siblings = list.siblings(text);
        let best = list
            .entries
            .iter()
            .max_by(|a, b| a.value.total_cmp(&b.value));
        let against_best = list.entries.iter().filter_map(|of| Some((of, best?)));
        let is_up = direction(text);
        let is_it = |(a, b): (&Entry, &Entry)| {
            let (low, high) = (a.value.min(b.value), a.value.max(b.value));
            let loss = 100.0 * (1.0 - low / high);
            let gain = 100.0 * (high / low - 1.0);
            let both = [loss, gain];
            let known: &[f64] = match is_up {
                _ if !is_percent => &[high / low],
                Some(is_up) if !a.is_time => &both[usize::from(is_up)..][..1],
                _ => &both,
            };
            let mut known = known.iter();
            a != b && known.any(|exact| is_rounded(value, decimals, *exact))
        };
        match siblings.iter().copied().chain(against_best).any(is_it) {
            true => Some(Found::Yes),
            // Without a name nobody knows which two are meant.
            false => siblings.first().map(|(a, b)| {
                Found::No(format!(
                    "{:+.1}%, of {} and {}",
                    100.0 * (b.value / a.value - 1.0),
                    b.printed,
                    a.printed
                ))
            }),
        }
    }

    /// The list that a line is above or names: the one whose lines it is among, else the only one
    /// whose heading it has.
    fn of_line(&self, line: usize, text: &str) -> Option<&List> {
        let among = self.0.iter().find(|of| (of.from..=of.to).contains(&line));
        let text = squeezed(text);
        let mut named = self
            .0
            .iter()
            .filter(|of| !of.heading.is_empty() && text.contains(&of.heading));
        let only = named.next().filter(|_| named.next().is_none());
        among.or(only)
    }
}

impl List {
    /// Pairs of one build that both name a feature which the line names, the higher first.
    fn siblings(&self, text: &str) -> Vec<(&Entry, &Entry)> {
        let text = squeezed(text);
        let is_named = |entry: &Entry, other: &Entry| {
            let features = |of: &Entry| -> Vec<String> {
                let words = of.about.split(' ').map(squeezed);
                words.filter(|word| word.len() >= LEAST_NAME).collect()
            };
            let of_other = features(other);
            let mut own = features(entry).into_iter();
            own.any(|word| {
                word != squeezed(&entry.build) && of_other.contains(&word) && text.contains(&word)
            })
        };
        let mut pairs = Vec::new();
        for (at, a) in self.entries.iter().enumerate() {
            for b in &self.entries[at + 1..] {
                if a.build == b.build && is_named(a, b) {
                    pairs.push(if a.value >= b.value { (a, b) } else { (b, a) });
                }
            }
        }
        pairs
    }
}

/// `5063 QPS - orig5610, performance_schema not compiled`.
fn entry(line: &str) -> Option<Entry> {
    let is_bullet = |c: char| c.is_whitespace() || "\u{2022}*-\u{2013}".contains(c);
    let line = line.trim_start_matches(is_bullet);
    let end = line.find(|c: char| !(c.is_ascii_digit() || ".,".contains(c)))?;
    let (printed, rest) = line.split_at(end);
    let value: f64 = printed.replace(',', "").parse().ok()?;
    let (unit, about) = [" - ", " \u{2013} ", ": "]
        .iter()
        .find_map(|between| rest.trim_start().split_once(between))?;
    let is_unit = !unit.is_empty() && unit.chars().all(|c| c.is_alphabetic() || c == '/');
    let about = about.trim();
    // The parts keep their words apart: `performance_schema=ON` is one of two.
    let words: Vec<&str> = about
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let lower = unit.to_lowercase();
    let is_time = ["s", "ms", "us", "min"].contains(&lower.as_str()) || lower.starts_with("sec");
    (is_unit && value > 0.0 && !words.is_empty()).then(|| Entry {
        printed: printed.to_owned(),
        value,
        build: about
            .split(',')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned(),
        about: words.join(" "),
        is_time,
    })
}

/// A few words that end without a stop.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    let words = line.split_whitespace().count();
    let is_bullet = line.starts_with(['\u{2022}', '*', '-']);
    (1..=HEADING_WORDS).contains(&words) && !is_bullet && !line.ends_with(['.', ',', ';'])
}

/// Letters and digits in lower case.
fn squeezed(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "A summary\n\nthe cache costs 9% with Slow disks\nand 10% with Fast disks, \
                        2.0X\n\nSlow disks\n\nThe page_cache has a cost: 5% is lost by it.\n- 200 \
                        QPS - new, page_cache=off\n- 150 QPS - old\n- 190 QPS - new, page_cache=on\
                        \n\nFast disks\n- 1,000 QPS - a\n- 900 QPS - b\n- 500 QPS - c\n";

    fn percent(value: f64) -> Token {
        Token {
            text: format!("{value}%"),
            claim: Claim::Percent(value, 0),
            class: None,
        }
    }

    #[test]
    fn a_percentage_is_held_against_the_list_it_is_about() {
        let lists = Lists::of(TEXT);
        assert_eq!(lists.0.len(), 2);
        let find = |line: usize, value: f64| {
            let text = TEXT.lines().nth(line - 1).unwrap();
            lists.find(line, text, &percent(value))
        };
        // Siblings: 190 of 200.
        assert_eq!(find(8, 5.0), Some(Found::Yes));
        let no = Found::No("-5.0%, of 190 and 200".to_owned());
        assert_eq!(find(8, 6.0), Some(no));
        // Of the best, by the heading that the line names.
        assert_eq!(find(4, 10.0), Some(Found::Yes));
        // No name says which values 11 % would be about.
        assert_eq!(find(4, 12.0), None);
        let factor = Token {
            claim: Claim::Factor(2.0, 1),
            ..percent(2.0)
        };
        let found = lists.find(4, "with fast disks", &factor);
        assert_eq!(found, Some(Found::Yes));
        // A line about neither.
        assert_eq!(lists.find(1, "A summary", &percent(5.0)), None);
    }

    #[test]
    fn words_are_no_values() {
        assert_eq!(entry("from 5.6 to 5.7 there are 5 tests"), None);
        assert_eq!(entry("- 24-core server"), None);
        assert_eq!(entry("5.6.51 - the base"), None);
    }
}
