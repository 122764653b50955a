//! "Did you mean": the nearest known name to a mistyped one.

/// The candidate nearest to `typed`, the first of several, when it is near enough to be a likely typing mistake.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(typed, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + typed.len().max(candidate.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean "x"?)` or nothing, to end an error sentence with.
pub fn hint<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, candidates).map(|name| format!(" (did you mean \"{name}\"?)")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_typing_mistakes_only() {
        let known = ["builds", "configs", "base"];
        assert_eq!(nearest("bulids", known), Some("builds"));
        assert_eq!(nearest("config", known), Some("configs"));
        assert_eq!(nearest("frobnicate", known), None);
        assert_eq!(nearest("b-3", ["b-2", "b-1"]), Some("b-2"));
    }
}
