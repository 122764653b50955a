//! The sysbench microbenchmarks as published results name, group and order them.
//!
//! A test is a name and a range: `read-only` with ranges 10, 100 and 10000 is three tests.

use std::cmp::Ordering;
use std::sync::LazyLock;

use crate::plan::{SysbenchPreset, TestGroup, TestName, published_position};

/// The group of a test by its name, also of tests that are not in [`PUBLISHED`]: `point` goes
/// before the words of writes.
pub fn group_of(test: &str) -> TestGroup {
    let has = |words: &[&str]| words.iter().any(|word| test.contains(word));
    if has(&["point"]) {
        TestGroup::Point
    } else if has(&["delete", "insert", "update", "write"]) {
        TestGroup::Write
    } else if has(&["read-only"]) {
        TestGroup::Range2
    } else {
        TestGroup::Range1
    }
}

/// The tests of published tables with their ranges, in the published order: `(name, range)`.
pub static PUBLISHED: LazyLock<Vec<(&str, u32)>> = LazyLock::new(|| {
    let mut tests: Vec<_> = runs()
        .filter(|(_, name)| SysbenchPreset::Year2025.reports(name.variant))
        .collect();
    tests.sort_by_key(|(_, name)| published_position(*name));
    tests.into_iter().map(classic).collect()
});

/// All tests with their ranges in the order they run in.
pub static RUN_ORDER: LazyLock<Vec<(&str, u32)>> = LazyLock::new(|| runs().map(classic).collect());

/// The runs of 2025 with what their names mean.
fn runs() -> impl Iterator<Item = (&'static str, TestName<'static>)> {
    let names = SysbenchPreset::Year2025.order().iter();
    names.map(|name| {
        (
            *name,
            TestName::parse(name).expect("a preset knows its tests"),
        )
    })
}

fn classic<'a>((text, name): (&'a str, TestName<'a>)) -> (&'a str, u32) {
    (
        text.split_once("_range=").map_or(text, |(test, _)| test),
        name.classic_range(),
    )
}

/// Names whose tests are those of `name`: whether published sections keep the range in a test's
/// label.
pub fn has_several_ranges(name: &str) -> bool {
    PUBLISHED.iter().filter(|(test, _)| *test == name).count() > 1
}

/// The order of rows in tables of rates: point queries, all ranges, writes; inside by the letters
/// and digits of the file's name, as an English locale sorts file names. It holds for tests that
/// [`PUBLISHED`] does not know, too.
pub fn table_order(a: (&str, u32), b: (&str, u32)) -> Ordering {
    let key = |(name, range): (&str, u32)| {
        let section = match group_of(name) {
            TestGroup::Point => 0,
            TestGroup::Range1 | TestGroup::Range2 => 1,
            TestGroup::Write => 2,
        };
        let letters: String = format!("{name}range{range}pk")
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        (section, letters, name.to_owned(), range)
    };
    key(a).cmp(&key(b))
}

/// The order in which tests run; unknown ones come after those in [`RUN_ORDER`], by
/// [`table_order`].
pub fn run_order(a: (&str, u32), b: (&str, u32)) -> Ordering {
    let place = |test: (&str, u32)| {
        RUN_ORDER
            .iter()
            .position(|known| *known == test)
            .unwrap_or(RUN_ORDER.len())
    };
    place(a).cmp(&place(b)).then_with(|| table_order(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_order_is_the_published_one() {
        let mut tests = PUBLISHED.to_vec();
        tests.sort();
        tests.sort_by(|a, b| table_order(*a, *b));
        // Published sections put scans first among the ranges without aggregation; tables of rates
        // put them last.
        let mut published = PUBLISHED.to_vec();
        let scan = published.remove(13);
        published.insert(21, scan);
        assert_eq!(tests, published);
        let mut with_warm = [("scan.warm", 100), ("scan", 100), ("read-only-sum", 1000)];
        with_warm.sort_by(|a, b| table_order(*a, *b));
        assert_eq!(
            with_warm,
            [("read-only-sum", 1000), ("scan", 100), ("scan.warm", 100)]
        );
    }

    #[test]
    fn groups_have_the_published_sizes() {
        let count = |group| {
            PUBLISHED
                .iter()
                .filter(|(name, _)| group_of(name) == group)
                .count()
        };
        assert_eq!(TestGroup::ALL.map(count), [9, 5, 8, 10]);
        assert!(PUBLISHED.iter().all(|test| RUN_ORDER.contains(test)));
        assert_eq!(
            PUBLISHED
                .iter()
                .filter(|(name, _)| has_several_ranges(name))
                .count(),
            8
        );
    }

    #[test]
    fn unknown_tests_run_last() {
        let mut tests = [
            ("zoo", 1),
            ("insert", 100),
            ("alpha", 1),
            ("hot-points", 100),
        ];
        tests.sort_by(|a, b| run_order(*a, *b));
        assert_eq!(
            tests,
            [
                ("hot-points", 100),
                ("insert", 100),
                ("alpha", 1),
                ("zoo", 1)
            ]
        );
    }
}
