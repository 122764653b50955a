//! Waiting that service times do not have: of callers that were refused or had no connection, until
//! the try that succeeded.

/// Less is not reported. No share: one caller's half minute is negligible in the
/// total of a thousand callers, yet it is by far the longest wait.
const LEAST_TOLD_S: f64 = 0.05;

/// The seconds, where they are worth a word.
pub fn worth_telling(seconds: f64) -> Option<f64> {
    (seconds >= LEAST_TOLD_S).then_some(seconds)
}

/// Seconds in words, for beside a percentile.
pub fn excludes(seconds: f64) -> String {
    format!("excludes {} of waiting", in_words(seconds))
}

pub(crate) fn in_words(seconds: f64) -> String {
    let decimals = if seconds < 10.0 { 2 } else { 0 };
    format!("{seconds:.decimals$} s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_worth_a_word_is_told() {
        assert_eq!(
            [0.0, 0.049, 0.05, 31.2].map(worth_telling),
            [None, None, Some(0.05), Some(31.2)]
        );
        assert_eq!(
            [0.05, 1.234, 31.2, 4000.0].map(in_words),
            ["0.05 s", "1.23 s", "31 s", "4000 s"]
        );
    }
}
