//! Versions in the codes of builds: `my9500_rel_o2nofp` is MySQL 9.5.0.

use std::cmp::Ordering;

use plimsoll_core::name::natural_cmp;

/// What a code tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// `MySQL`.
    pub product: &'static str,
    /// Major, minor and patch numbers, as many as the code has.
    pub numbers: Vec<u32>,
    /// What is between the digits and the first `_`: `v2` of a second run.
    pub suffix: String,
}

/// The letters of products, in the order that mixed results are listed in.
const PRODUCTS: [(&str, &str); 7] = [
    ("my", "MySQL"),
    ("ma", "MariaDB"),
    ("pg", "PostgreSQL"),
    ("pgo", "OrioleDB"),
    ("fbmy", "MyRocks"),
    ("rx", "MyRocks"),
    ("mo", "MongoDB"),
];

impl Version {
    /// Reads the code at the beginning of a build's name. `None` for names that follow no known
    /// scheme.
    pub fn of(build: &str) -> Option<Self> {
        let code = build.split('_').next().unwrap_or_default();
        let (letters, product) = PRODUCTS
            .into_iter()
            .filter(|(letters, _)| code.starts_with(letters))
            .max_by_key(|(letters, _)| letters.len())?;
        let rest = &code[letters.len()..];
        let digits = &rest[..rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())];
        let suffix = rest[digits.len()..].to_owned();
        let is_prerelease = suffix.starts_with("beta")
            || suffix.starts_with("rc")
            || suffix
                .strip_prefix('b')
                .is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
        let numbers = match product {
            "PostgreSQL" | "OrioleDB" => postgres(digits, is_prerelease)?,
            "MariaDB" => pairs(digits)?,
            _ => mysql(digits)?,
        };
        Some(Self {
            product,
            numbers,
            suffix,
        })
    }

    /// `MySQL 9.5.0`, with the suffix in parentheses.
    pub fn text(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
        let suffix = if self.suffix.is_empty() {
            String::new()
        } else {
            format!(" ({})", self.suffix)
        };
        format!("{} {}{suffix}", self.product, numbers.join("."))
    }

    fn cmp(&self, other: &Self) -> Ordering {
        let product = |version: &Self| {
            PRODUCTS
                .iter()
                .position(|(_, name)| *name == version.product)
        };
        // A release comes after its betas, and a second run of a release after the first.
        let rank = |version: &Self| match version.suffix.as_str() {
            "" => 1,
            suffix if suffix.starts_with('b') || suffix.starts_with("rc") => 0,
            _ => 2,
        };
        (product(self), &self.numbers, rank(self))
            .cmp(&(product(other), &other.numbers, rank(other)))
            .then_with(|| natural_cmp(&self.suffix, &other.suffix))
    }
}

/// `5651` is 5.6.51, `8043` is 8.0.43, `80` is 8.0.
fn mysql(digits: &str) -> Option<Vec<u32>> {
    if digits.len() < 2 || digits.len() > 5 {
        return None;
    }
    // Longer codes have more digits of the patch, but 10 and more may come as a major version.
    let major = if digits.len() == 5 && digits.starts_with('1') {
        2
    } else {
        1
    };
    let (first, rest) = digits.split_at(major);
    let (minor, patch) = rest.split_at(1);
    let mut numbers = vec![first.parse().ok()?, minor.parse().ok()?];
    if !patch.is_empty() {
        numbers.push(patch.parse().ok()?);
    }
    Some(numbers)
}

/// `120101` is 12.1.1: two digits each.
fn pairs(digits: &str) -> Option<Vec<u32>> {
    if digits.is_empty() || !digits.len().is_multiple_of(2) {
        return None;
    }
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).ok()?.parse().ok())
        .collect()
}

/// `181` is 18.1, `1023` is 10.23, `9624` is 9.6.24, `19` of a beta is 19.
fn postgres(digits: &str, is_prerelease: bool) -> Option<Vec<u32>> {
    let parse = |parts: &[&str]| {
        parts
            .iter()
            .map(|part| part.parse().ok())
            .collect::<Option<Vec<u32>>>()
    };
    match (digits.as_bytes(), digits.len()) {
        ([b'9', b'0'..=b'6', _, ..], 3 | 4) => parse(&[&digits[..1], &digits[1..2], &digits[2..]]),
        ([b'9', _], 2) => parse(&[&digits[..1], &digits[1..]]),
        (_, 2) if is_prerelease => parse(&[digits]),
        (_, 2) => parse(&[digits]),
        (_, 3 | 4) => parse(&[&digits[..2], &digits[2..]]),
        _ => None,
    }
}

/// Orders builds: by product, by version, then by their names. Names without a version come last.
pub fn compare_builds(a: &str, b: &str) -> Ordering {
    match (Version::of(a), Version::of(b)) {
        (Some(of_a), Some(of_b)) => of_a.cmp(&of_b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
    .then_with(|| natural_cmp(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_builds() {
        for (build, text) in [
            ("my9500_rel_o2nofp", "MySQL 9.5.0"),
            ("my5651_rel", "MySQL 5.6.51"),
            ("my8043", "MySQL 8.0.43"),
            ("my8406v2_rel", "MySQL 8.4.6 (v2)"),
            ("ma120101_rel", "MariaDB 12.1.1"),
            ("ma100244_rel", "MariaDB 10.2.44"),
            ("pg181_o2nofp", "PostgreSQL 18.1"),
            ("pg1023_o2nofp", "PostgreSQL 10.23"),
            ("pg9624", "PostgreSQL 9.6.24"),
            ("pg18beta2", "PostgreSQL 18 (beta2)"),
            ("pg19b1_o2nofp", "PostgreSQL 19 (b1)"),
            ("fbmy8028_rel", "MyRocks 8.0.28"),
            ("rx56", "MyRocks 5.6"),
        ] {
            assert_eq!(
                Version::of(build).map(|version| version.text()).as_deref(),
                Some(text),
                "{build}"
            );
        }
        for build in [
            "",
            "x",
            "my",
            "my1",
            "pg",
            "8.0.fb.gcc",
            "ma123",
            "pg123456",
            "sqlite_wal",
        ] {
            assert_eq!(Version::of(build), None, "{build}");
        }
    }

    #[test]
    fn builds_in_the_order_of_versions() {
        let mut builds = [
            "my9500_rel",
            "zoo",
            "pg181",
            "my8406v2_rel",
            "pg18beta2",
            "my10100_rel",
            "my8406_rel",
            "pg9624",
            "ma120101",
            "my5651_rel",
            "ma101103",
        ];
        builds.sort_by(|a, b| compare_builds(a, b));
        let ordered = [
            "my5651_rel",
            "my8406_rel",
            "my8406v2_rel",
            "my9500_rel",
            "my10100_rel",
            "ma101103",
            "ma120101",
            "pg9624",
            "pg18beta2",
            "pg181",
            "zoo",
        ];
        assert_eq!(builds, ordered);
    }
}
