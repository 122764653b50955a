//! "Did you mean": the nearest known name to a mistyped one.

/// The candidate nearest to `typed`, the first of several, when it is near enough to be a likely
/// typing mistake.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(typed, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + typed.len().max(candidate.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// ` (did you mean "x"?)` or nothing, to end an error sentence with. If nothing is near, names
/// that begin so are meant, or nearly so.
pub fn hint<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = candidates.into_iter().collect();
    let longer: Vec<&str> = all
        .iter()
        .copied()
        .filter(|name| typed.len() >= LEAST_PREFIX && name.starts_with(typed))
        .collect();
    match (longer.as_slice(), nearest(typed, all.iter().copied())) {
        ([_, _, ..], _) => format!(" (did you mean one of {}?)", first_few(&longer)),
        ([only], None) => format!(" (did you mean \"{only}\"?)"),
        (_, Some(name)) => format!(" (did you mean \"{name}\"?)"),
        ([], None) => match nearly_beginning(typed, &all)[..] {
            [] => String::new(),
            [only] => format!(" (did you mean \"{only}\"?)"),
            ref several => format!(" (did you mean one of {}?)", first_few(several)),
        },
    }
}

/// The names whose beginning is one typing mistake away.
fn nearly_beginning<'a>(typed: &str, names: &[&'a str]) -> Vec<&'a str> {
    let letters = typed.chars().count();
    let is_near = |name: &str| {
        let beginning = |length: usize| name.chars().take(length).collect::<String>();
        letters > LEAST_PREFIX
            && (letters - 1..=letters + 1)
                .any(|length| strsim::damerau_levenshtein(typed, &beginning(length)) <= 1)
    };
    names.iter().copied().filter(|name| is_near(name)).collect()
}

/// So many characters are the beginning of a name and not of half of them.
const LEAST_PREFIX: usize = 3;
/// Names that a sentence lists.
const MOST_LISTED: usize = 6;

/// `a, b, c`; of many the first ones and how many more there are.
pub fn first_few(names: &[&str]) -> String {
    match names.split_at_checked(MOST_LISTED) {
        Some((first, rest)) if rest.len() > 1 => {
            format!("{} and {} more", first.join(", "), rest.len())
        }
        _ => names.join(", "),
    }
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

    #[test]
    fn the_beginning_of_names_lists_them() {
        let known = [
            "read-write_range=10",
            "read-write_range=100",
            "read-only-sum",
            "scan",
        ];
        for (typed, wanted) in [
            (
                "read-write",
                " (did you mean one of read-write_range=10, read-write_range=100?)",
            ),
            (
                "read",
                " (did you mean one of read-write_range=10, read-write_range=100, read-only-sum?)",
            ),
            ("read-only", " (did you mean \"read-only-sum\"?)"),
            ("sacn", " (did you mean \"scan\"?)"),
            ("s", ""),
            ("point", ""),
            // A name that is much longer was not suggested.
            (
                "raed-write",
                " (did you mean one of read-write_range=10, read-write_range=100?)",
            ),
            ("red-only", " (did you mean \"read-only-sum\"?)"),
        ] {
            assert_eq!(hint(typed, known), wanted, "{typed}");
        }
        assert_eq!(
            first_few(&["a", "b", "c", "d", "e", "f", "g"]),
            "a, b, c, d, e, f, g"
        );
        assert_eq!(
            first_few(&["a", "b", "c", "d", "e", "f", "g", "h"]),
            "a, b, c, d, e, f and 2 more"
        );
    }
}
