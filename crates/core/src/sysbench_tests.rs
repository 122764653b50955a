//! The sysbench microbenchmarks as published results name, group and order them.
//!
//! A test is a name and a range: `read-only` with ranges 10, 100 and 10000 is three tests.

use std::cmp::Ordering;

/// The sections of published tables, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Point queries.
    Point,
    /// Range queries without aggregation.
    Range,
    /// Range queries with aggregation.
    RangeAggregate,
    /// Writes.
    Write,
}

impl Group {
    /// All of them, in the published order.
    pub const ALL: [Self; 4] = [Self::Point, Self::Range, Self::RangeAggregate, Self::Write];

    /// The section's title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Point => "point queries",
            Self::Range => "range queries without aggregation",
            Self::RangeAggregate => "range queries with aggregation",
            Self::Write => "writes",
        }
    }

    /// The group of a test by its name, also of tests that are not in [`PUBLISHED`]: `point` goes before the words of writes.
    pub fn of(test: &str) -> Self {
        let has = |words: &[&str]| words.iter().any(|word| test.contains(word));
        match () {
            () if has(&["point"]) => Self::Point,
            () if has(&["delete", "insert", "update", "write"]) => Self::Write,
            () if has(&["read-only"]) => Self::RangeAggregate,
            () => Self::Range,
        }
    }
}

/// The tests of published tables with their ranges, in the published order: `(name, range)`.
pub const PUBLISHED: [(&str, u32); 32] = [
    ("hot-points", 100),
    ("point-query", 100),
    ("points-covered-pk", 100),
    ("points-covered-si", 100),
    ("points-notcovered-pk", 100),
    ("points-notcovered-si", 100),
    ("random-points", 1000),
    ("random-points", 100),
    ("random-points", 10),
    ("range-covered-pk", 100),
    ("range-covered-si", 100),
    ("range-notcovered-pk", 100),
    ("range-notcovered-si", 100),
    ("scan", 100),
    ("read-only-count", 1000),
    ("read-only-distinct", 1000),
    ("read-only-order", 1000),
    ("read-only", 10_000),
    ("read-only", 100),
    ("read-only", 10),
    ("read-only-simple", 1000),
    ("read-only-sum", 1000),
    ("delete", 100),
    ("insert", 100),
    ("read-write", 100),
    ("read-write", 10),
    ("update-index", 100),
    ("update-inlist", 100),
    ("update-nonindex", 100),
    ("update-one", 100),
    ("update-zipf", 100),
    ("write-only", 10_000),
];

/// All tests with their ranges in the order they run in.
pub const RUN_ORDER: [(&str, u32); 38] = [
    ("point-query.warm", 100),
    ("scan.warmpre", 100),
    ("point-query.pre", 100),
    ("range-notcovered-si.pre", 100),
    ("update-inlist", 100),
    ("update-index", 100),
    ("update-nonindex", 100),
    ("update-one", 100),
    ("update-zipf", 100),
    ("write-only", 10_000),
    ("read-write", 10),
    ("read-write", 100),
    ("scan.warm", 100),
    ("scan", 100),
    ("read-only", 10),
    ("read-only", 100),
    ("read-only", 10_000),
    ("read-only-simple", 1000),
    ("read-only-sum", 1000),
    ("read-only-order", 1000),
    ("read-only-distinct", 1000),
    ("read-only-count", 1000),
    ("point-query", 100),
    ("random-points", 10),
    ("random-points", 100),
    ("random-points", 1000),
    ("hot-points", 100),
    ("points-covered-pk", 100),
    ("points-notcovered-pk", 100),
    ("range-covered-pk", 100),
    ("range-notcovered-pk", 100),
    ("points-covered-si.warm", 100),
    ("points-covered-si", 100),
    ("points-notcovered-si", 100),
    ("range-covered-si", 100),
    ("range-notcovered-si", 100),
    ("delete", 100),
    ("insert", 100),
];

/// Names whose tests are those of `name`: whether published sections keep the range in a test's label.
pub fn has_several_ranges(name: &str) -> bool {
    PUBLISHED.iter().filter(|(test, _)| *test == name).count() > 1
}

/// The order of rows in tables of rates: point queries, all ranges, writes; inside by the letters and digits of the file's name, as an
/// English locale sorts file names. It holds for tests that [`PUBLISHED`] does not know, too.
pub fn table_order(a: (&str, u32), b: (&str, u32)) -> Ordering {
    let key = |(name, range): (&str, u32)| {
        let section = match Group::of(name) {
            Group::Point => 0,
            Group::Range | Group::RangeAggregate => 1,
            Group::Write => 2,
        };
        let letters: String = format!("{name}range{range}pk").chars().filter(char::is_ascii_alphanumeric).collect();
        (section, letters, name.to_owned(), range)
    };
    key(a).cmp(&key(b))
}

/// The order in which tests run; unknown ones come after those in [`RUN_ORDER`], by [`table_order`].
pub fn run_order(a: (&str, u32), b: (&str, u32)) -> Ordering {
    let place = |test: (&str, u32)| RUN_ORDER.iter().position(|known| *known == test).unwrap_or(RUN_ORDER.len());
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
        // Published sections put scans first among the ranges without aggregation; tables of rates put them last.
        let mut published = PUBLISHED.to_vec();
        let scan = published.remove(13);
        published.insert(21, scan);
        assert_eq!(tests, published);
        let mut with_warm = [("scan.warm", 100), ("scan", 100), ("read-only-sum", 1000)];
        with_warm.sort_by(|a, b| table_order(*a, *b));
        assert_eq!(with_warm, [("read-only-sum", 1000), ("scan", 100), ("scan.warm", 100)]);
    }

    #[test]
    fn groups_have_the_published_sizes() {
        let count = |group| PUBLISHED.iter().filter(|(name, _)| Group::of(name) == group).count();
        assert_eq!(Group::ALL.map(count), [9, 5, 8, 10]);
        assert!(PUBLISHED.iter().all(|test| RUN_ORDER.contains(test)));
        assert_eq!(PUBLISHED.iter().filter(|(name, _)| has_several_ranges(name)).count(), 8);
    }

    #[test]
    fn unknown_tests_run_last() {
        let mut tests = [("zoo", 1), ("insert", 100), ("alpha", 1), ("hot-points", 100)];
        tests.sort_by(|a, b| run_order(*a, *b));
        assert_eq!(tests, [("hot-points", 100), ("insert", 100), ("alpha", 1), ("zoo", 1)]);
    }
}
