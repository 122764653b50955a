//! Numbers in a line of text, and words that stand for numbers.

/// A number, or a word that claims one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    /// As it stands in the text.
    pub text: String,
    pub claim: Claim,
    /// The class that a count is of.
    pub class: Option<Counted>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Claim {
    /// Percent, with its decimals.
    Percent(f64, usize),
    /// `1.5X`.
    Factor(f64, usize),
    /// A number of tests.
    Count(usize),
    /// All tests.
    All,
    /// It did not change.
    Stable,
    /// Any other number.
    Plain(f64, usize),
}

/// What tests are counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counted {
    Better,
    Same,
    Worse,
}

/// Words around a number, each with what it counts.
const CLASSES: [(&str, Counted); 8] = [
    ("improvement", Counted::Better),
    ("faster", Counted::Better),
    ("no change", Counted::Same),
    ("similar", Counted::Same),
    ("as fast", Counted::Same),
    ("regression", Counted::Worse),
    ("slower", Counted::Worse),
    ("less", Counted::Worse),
];

/// The numbers of a line in their order. `names` are passed over: digits in names of tests and
/// releases are not numbers.
pub(super) fn tokens(line: &str, names: &[String]) -> Vec<Token> {
    let line = without_names(line, names);
    let mut all: Vec<(usize, Token)> = numbers(&line);
    for word in ["for all tests", "for all of"] {
        all.extend(line.match_indices(word).map(|(at, _)| {
            let token = Token {
                text: "all tests".to_owned(),
                claim: Claim::All,
                class: class_before(&line, at),
            };
            (at, token)
        }));
    }
    let is_about_costs = ["context switch", "cpu", "CPU", "cs/o"]
        .iter()
        .any(|of| line.contains(of));
    for word in ["stable", "similar"] {
        let is_it = word == "stable" || is_about_costs;
        all.extend(
            line.match_indices(word)
                .filter(|_| is_it)
                .take(1)
                .map(|(at, _)| {
                    let token = Token {
                        text: word.to_owned(),
                        claim: Claim::Stable,
                        class: None,
                    };
                    (at, token)
                }),
        );
    }
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, token)| token).collect()
}

/// Names become blanks of the same length.
fn without_names(line: &str, names: &[String]) -> String {
    let mut line = line.to_owned();
    for name in names {
        let mut from = 0;
        while let Some(found) = line[from..].find(name.as_str()) {
            let at = from + found;
            let end = at + name.len();
            let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric());
            // `5.6` is a name in `from 5.6 to`, and none in `15.6%`.
            let goes_on = line[end..].starts_with('.')
                && line[end + 1..].starts_with(|c: char| c.is_ascii_digit());
            let is_percent = line[end..].trim_start().starts_with('%');
            let is_name = !is_part(line[..at].chars().next_back())
                && !is_part(line[end..].chars().next())
                && !goes_on
                && !is_percent;
            if is_name {
                line.replace_range(at..end, &" ".repeat(name.len()));
            }
            from = end;
        }
    }
    line
}

fn numbers(line: &str) -> Vec<(usize, Token)> {
    let bytes = line.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let end = number_end(bytes, at);
        let before = line[..at].chars().next_back();
        let is_part = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
        let digits = &line[at..end];
        // `5.6.51`, `2-socket` and `8G` are not numbers of results.
        let is_version = digits.matches('.').count() > 1;
        if !is_part && !is_version {
            all.extend(number(line, at, end).map(|token| (at, token)));
        }
        at = end;
    }
    all
}

fn number_end(bytes: &[u8], from: usize) -> usize {
    let mut end = from;
    while end < bytes.len() {
        let is_dot = bytes[end] == b'.' && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !bytes[end].is_ascii_digit() && !is_dot {
            break;
        }
        end += 1;
    }
    end
}

fn number(line: &str, at: usize, end: usize) -> Option<Token> {
    let digits = &line[at..end];
    let value: f64 = digits.parse().ok()?;
    let decimals = digits
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    let rest = &line[end..];
    let text = |more: &str| format!("{digits}{more}");
    let after = rest.trim_start();
    let (text, claim) = if after.starts_with('%') {
        (text("%"), Claim::Percent(value, decimals))
    } else if rest.starts_with(['X', 'x']) {
        (text("X"), Claim::Factor(value, decimals))
    } else if decimals == 0 && is_count(line, at, after) {
        (text(" tests"), Claim::Count(value as usize))
    } else {
        (text(""), Claim::Plain(value, decimals))
    };
    let class = match claim {
        Claim::Count(_) => class_after(after).or_else(|| class_before(line, at)),
        _ => None,
    };
    Some(Token { text, claim, class })
}

/// `5 tests`, `5 are slower`, `improvements for 5`.
fn is_count(line: &str, at: usize, after: &str) -> bool {
    let words = ["test", "are ", "is slower", "is faster", "is similar"];
    let is_followed = words.iter().any(|word| after.starts_with(word));
    let before = line[..at].trim_end();
    is_followed || (before.ends_with(" for") && class_before(line, at).is_some())
}

/// `are slower`: the class right behind the number.
fn class_after(after: &str) -> Option<Counted> {
    let rest = after
        .strip_prefix("are ")
        .or_else(|| after.strip_prefix("is "))?;
    let known = CLASSES.iter().find(|(word, _)| rest.starts_with(word));
    known.map(|(_, class)| *class)
}

/// `regressions for`: the class that is nearest before the number.
fn class_before(line: &str, at: usize) -> Option<Counted> {
    let before = &line[..at];
    let nearest = CLASSES
        .iter()
        .filter_map(|(word, class)| Some((before.rfind(word)?, *class)))
        .max_by_key(|(place, _)| *place);
    nearest.map(|(_, class)| class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(line: &str) -> Vec<(Claim, Option<Counted>)> {
        let names = ["random-points_range=10", "5.6.51", "5.6", "5.7", "9.5"].map(str::to_owned);
        let tokens = tokens(line, &names);
        tokens
            .into_iter()
            .map(|token| (token.claim, token.class))
            .collect()
    }

    #[test]
    fn numbers_and_words_for_numbers() {
        use Counted::{Better, Same, Worse};
        assert_eq!(
            claims(
                "from 5.6 to 5.7 there are big improvements for 5 tests, no changes for 2 tests"
            ),
            [
                (Claim::Count(5), Some(Better)),
                (Claim::Count(2), Some(Same))
            ]
        );
        assert_eq!(
            claims("for 9.5 vs 5.6: 5 are slower in 9.5, 3 are similar and 2 are faster in 9.5"),
            [
                (Claim::Count(5), Some(Worse)),
                (Claim::Count(3), Some(Same)),
                (Claim::Count(2), Some(Better))
            ]
        );
        assert_eq!(
            claims("from 5.7 to 9.5 there are big regressions for all tests"),
            [(Claim::All, Some(Worse))]
        );
        assert_eq!(
            claims("CPU per query (cpu/o) drops by 35% from 5.6 to 5.7"),
            [(Claim::Percent(35.0, 0), None)]
        );
        assert_eq!(claims("random-points_range=10 of 5.6.51 on a c24r64"), []);
        assert_eq!(
            claims("it is 15.6 % and ~1.5X"),
            [
                (Claim::Percent(15.6, 1), None),
                (Claim::Factor(1.5, 1), None)
            ]
        );
        assert_eq!(claims("throughput is stable"), [(Claim::Stable, None)]);
    }
}
