//! Random texts.

use plimsoll_core::seed::Draw;
use plimsoll_core::workload_file::Value;

/// Digits of a run that are drawn as one number: 10^18 is below 2^63.
const MOST_DIGITS: usize = 18;
/// Letters of a run that are drawn as one number: 26^13 is below 2^63.
const MOST_LETTERS: usize = 13;

/// How a text is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// Runs of random and fixed characters.
    Pattern(Vec<Run>),
    /// So many small letters.
    Letters { least: u32, most: u32 },
    /// One of these.
    OneOf(Vec<String>),
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// A number of so many digits, below a bound.
    Digits(usize, u64),
    /// A number of so many letters, below a bound.
    Letters(usize, u64),
    /// As it is.
    Fixed(String),
}

impl Text {
    /// `#` is a digit, `@` a letter, everything else itself.
    pub fn pattern(pattern: &str) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for c in pattern.chars() {
            match (c, runs.last_mut()) {
                ('#', Some(Run::Digits(length, bound))) if *length < MOST_DIGITS => {
                    (*length, *bound) = (*length + 1, *bound * 10)
                }
                ('#', _) => runs.push(Run::Digits(1, 10)),
                ('@', Some(Run::Letters(length, bound))) if *length < MOST_LETTERS => {
                    (*length, *bound) = (*length + 1, *bound * 26)
                }
                ('@', _) => runs.push(Run::Letters(1, 26)),
                (other, Some(Run::Fixed(text))) => text.push(other),
                (other, _) => runs.push(Run::Fixed(other.to_string())),
            }
        }
        Self::Pattern(runs)
    }

    /// The text of a workload file's value; `None` for an integer.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Integer { .. } => None,
            Value::Pattern(pattern) => Some(Self::pattern(pattern)),
            Value::Letters { least, most } => Some(Self::Letters {
                least: *least,
                most: *most,
            }),
            Value::OneOf(texts) => Some(Self::OneOf(texts.clone())),
        }
    }

    /// Maximum number of characters.
    pub fn longest(&self) -> usize {
        match self {
            Self::Pattern(runs) => runs.iter().map(Run::length).sum(),
            Self::Letters { most, .. } => *most as usize,
            Self::OneOf(texts) => texts.iter().map(String::len).max().unwrap_or(0),
        }
    }

    /// Draws of [`Draw`] that a text takes, where each takes as many.
    pub fn draws(&self) -> Option<u64> {
        match self {
            Self::Pattern(runs) => Some(
                runs.iter()
                    .filter(|run| !matches!(run, Run::Fixed(_)))
                    .count() as u64,
            ),
            Self::Letters { least, most } => {
                (least == most).then(|| u64::from(*most).div_ceil(MOST_LETTERS as u64) + 1)
            }
            Self::OneOf(_) => Some(1),
        }
    }

    /// Appends a text.
    #[inline]
    pub fn push(&self, text: &mut String, draw: &mut Draw) {
        match self {
            Self::Pattern(runs) => {
                for run in runs {
                    match run {
                        Run::Digits(length, bound) => {
                            push_number::<10, b'0', MOST_DIGITS>(text, draw.below(*bound), *length)
                        }
                        Run::Letters(length, bound) => {
                            push_number::<26, b'a', MOST_LETTERS>(text, draw.below(*bound), *length)
                        }
                        Run::Fixed(fixed) => text.push_str(fixed),
                    }
                }
            }
            Self::Letters { least, most } => {
                let mut left =
                    (u64::from(*least) + draw.below(u64::from(most - least) + 1)) as usize;
                while left > 0 {
                    let length = left.min(MOST_LETTERS);
                    push_number::<26, b'a', MOST_LETTERS>(
                        text,
                        draw.below(26u64.pow(length as u32)),
                        length,
                    );
                    left -= length;
                }
            }
            Self::OneOf(texts) => text.push_str(&texts[draw.below(texts.len() as u64) as usize]),
        }
    }
}

impl Run {
    fn length(&self) -> usize {
        match self {
            Self::Digits(length, _) | Self::Letters(length, _) => *length,
            Self::Fixed(text) => text.len(),
        }
    }
}

/// Appends a number in this base with leading zeros, the zero being this character.
fn push_number<const BASE: u64, const ZERO: u8, const MOST: usize>(
    text: &mut String,
    mut number: u64,
    length: usize,
) {
    let mut digits = [ZERO; MOST];
    for digit in digits[..length].iter_mut().rev() {
        *digit += (number % BASE) as u8;
        number /= BASE;
    }
    text.push_str(std::str::from_utf8(&digits[..length]).expect("digits and letters are text"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_digits_letters_and_themselves() {
        let text = Text::pattern("###########-@@@@@@@@@@@@@@@@:####################");
        assert_eq!(
            (text.longest(), text.draws()),
            (11 + 1 + 16 + 1 + 20, Some(5))
        );
        let mut draw = Draw::new(3, &["text"]);
        let (mut digits, mut letters) = ([0u32; 10], [0u32; 26]);
        for _ in 0..2000 {
            let mut found = String::new();
            text.push(&mut found, &mut draw);
            let (first, rest) = found.split_once('-').unwrap();
            let (middle, last) = rest.split_once(':').unwrap();
            assert_eq!((first.len(), middle.len(), last.len()), (11, 16, 20));
            first
                .bytes()
                .chain(last.bytes())
                .for_each(|byte| digits[usize::from(byte - b'0')] += 1);
            middle
                .bytes()
                .for_each(|byte| letters[usize::from(byte - b'a')] += 1);
        }
        // 62,000 digits and 32,000 letters: one standard deviation is 75 and 34.
        assert!(
            digits.iter().all(|count| count.abs_diff(6200) < 350),
            "{digits:?}"
        );
        assert!(
            letters.iter().all(|count| count.abs_diff(1231) < 160),
            "{letters:?}"
        );
    }

    #[test]
    fn lengths_and_choices_are_equally_likely() {
        let mut draw = Draw::new(3, &["text"]);
        let mut lengths = [0u32; 31];
        for _ in 0..3000 {
            let mut found = String::new();
            Text::Letters { least: 1, most: 30 }.push(&mut found, &mut draw);
            assert!(found.bytes().all(|byte| byte.is_ascii_lowercase()));
            lengths[found.len()] += 1;
        }
        assert_eq!(lengths[0], 0);
        assert!(
            lengths[1..].iter().all(|count| count.abs_diff(100) < 45),
            "{lengths:?}"
        );
        let choice = Text::OneOf(vec!["a".into(), "bb".into()]);
        let mut found = String::new();
        (0..1000).for_each(|_| choice.push(&mut found, &mut draw));
        assert!(
            found.matches("bb").count().abs_diff(500) < 70,
            "{}",
            found.len()
        );
        assert_eq!(choice.longest(), 2);
    }
}
