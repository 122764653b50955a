//! The sysbench microbenchmarks as a plan describes them: which tests there are, what one event of
//! each is, and in which order they run.
//!
//! Names are those of the published tables: `point-query`, `random-points_range=100`. A test that
//! runs before the writes has `.pre` behind its base name, one that warms up has `.warm`.

pub mod published;
pub(super) mod read;
pub(super) mod steps;
mod words;

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::plan::{Step, WaitRule};

/// Which tests, in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SysbenchPreset {
    /// Since 2025-04: 38 runs, 32 reported.
    #[serde(rename = "2025")]
    Year2025,
    /// 2023-02: 42 tests.
    #[serde(rename = "2023")]
    Year2023,
}

/// Sizes and settings of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sysbench {
    /// The definition.
    pub sysbench: SysbenchPreset,
    /// Clients, each with one connection.
    pub clients: u32,
    /// Tables `sbtest1 ... sbtestN`.
    pub tables: u32,
    /// Rows per table.
    pub rows: u64,
    /// Whether statements are prepared by the server, but for those that sysbench itself sends as
    /// text.
    pub prepared: bool,
    /// The pause after the load and after the writes, while the engine drains.
    pub wait: WaitRule,
    /// Tests of the preset that the plan leaves out.
    pub left_out: Vec<String>,
    /// The steps, in order: `prepare`, then the tests.
    pub steps: Vec<Step>,
}

/// How the tables are filled. The rows are the same, and so is their order in each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadMode {
    /// In the engine's own fastest way, several tables at a time: `COPY`, or statements of many
    /// rows in large transactions.
    #[default]
    Fast,
    /// As sysbench does: `INSERT` statements of up to 512 KiB, each a transaction, one table after
    /// the other.
    Classic,
}

/// What a step of sysbench does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SysbenchWork {
    /// Creates the tables, loads and indexes them.
    Prepare {
        /// Tables of the same size.
        tables: u32,
        /// Rows per table.
        rows: u64,
        /// How they are loaded.
        load: LoadMode,
    },
    /// One of the microbenchmarks.
    Test(Test),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// What an event is.
    pub kind: TestKind,
    /// Rows of a range, ids of a list. Of some tests it is a part of the name only.
    pub range: u32,
    /// How ids are drawn.
    pub distribution: Distribution,
}

/// The section of the published table that a test is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestGroup {
    /// Point queries.
    Point,
    /// Range queries without aggregation.
    Range1,
    /// Range queries with aggregation.
    Range2,
    Write,
}

impl TestGroup {
    /// In the order of the published table.
    pub const ALL: [Self; 4] = [Self::Point, Self::Range1, Self::Range2, Self::Write];

    /// The section's heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::Point => "point queries",
            Self::Range1 => "range queries without aggregation",
            Self::Range2 => "range queries with aggregation",
            Self::Write => "writes",
        }
    }
}

/// What one event of a test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TestKind {
    /// The same 100 rows in the middle of a table, by a list of ids.
    HotPoints,
    /// One row by primary key.
    PointQuery,
    /// A list of ids, found in the primary key alone.
    PointsCoveredPk,
    /// A list of `k`, found in the secondary index alone.
    PointsCoveredSi,
    /// A list of ids with their rows.
    PointsNotcoveredPk,
    /// A list of `k` with their rows.
    PointsNotcoveredSi,
    /// Rows by a list of ids.
    RandomPoints,
    /// A range of ids, found in the primary key alone.
    RangeCoveredPk,
    /// A range of `k`, found in the secondary index alone.
    RangeCoveredSi,
    /// A range of ids with their rows.
    RangeNotcoveredPk,
    /// A range of `k` with their rows.
    RangeNotcoveredSi,
    /// A scan of the client's table that matches no row.
    Scan,
    /// A count of a range.
    ReadOnlyCount,
    /// A transaction of ten point queries and a range without duplicates.
    ReadOnlyDistinct,
    /// A transaction of ten point queries and a sorted range.
    ReadOnlyOrder,
    /// A transaction of ten point queries and a range.
    ReadOnlySimple,
    /// A transaction of ten point queries and the sum of a range.
    ReadOnlySum,
    /// A transaction of ten point queries and the four ranges.
    ReadOnly,
    /// A sorted range without duplicates, outside of transactions.
    DistinctRanges,
    /// A row deleted, if it is still there.
    Delete,
    /// A row inserted.
    Insert,
    /// A transaction of the reads of `ReadOnly` and the writes of `WriteOnly`.
    ReadWrite,
    /// The indexed column of a row updated.
    UpdateIndex,
    /// Another column of ten rows updated.
    UpdateInlist,
    /// Another column of a row updated.
    UpdateNonindex,
    /// Another column of a table's first row updated.
    UpdateOne,
    /// Another column of a row updated, some rows far more often than others.
    UpdateZipf,
    /// A transaction of an update of each kind, and a row deleted and inserted again.
    WriteOnly,
}

/// The notes of a step that hold the statements of its test, as [`StatementMix`] tells them apart.
pub const STATEMENT_NOTES: [&str; 3] = ["statements_read", "statements_write", "statements_other"];

/// The note of a step that holds the statements of tries that were refused or failed. sysbench
/// counts them, too.
pub const VAIN_STATEMENTS_NOTE: &str = "statements_in_vain";

/// Statements of one event, as sysbench counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementMix {
    /// Statements that answer with rows.
    pub reads: u32,
    /// Statements that change a row.
    pub writes: u32,
    /// `BEGIN` and `COMMIT`.
    pub others: u32,
}

impl StatementMix {
    /// All of them.
    pub fn all(self) -> u32 {
        self.reads + self.writes + self.others
    }
}

use TestGroup::{Point, Range1, Range2, Write};
use TestKind as T;

/// A test's row in the published table: kind, base name, group, the ranges it is run with (0 stands
/// for one that has no effect), and the statements of an event.
type Row = (TestKind, &'static str, TestGroup, &'static [u32], [u32; 3]);

/// In the order of the published table. `distinct-ranges` is a part of the ramp only.
const ROWS: [Row; 28] = [
    (T::HotPoints, "hot-points", Point, &[100], [1, 0, 0]),
    (T::PointQuery, "point-query", Point, &[0], [1, 0, 0]),
    (
        T::PointsCoveredPk,
        "points-covered-pk",
        Point,
        &[100],
        [1, 0, 0],
    ),
    (
        T::PointsCoveredSi,
        "points-covered-si",
        Point,
        &[100],
        [1, 0, 0],
    ),
    (
        T::PointsNotcoveredPk,
        "points-notcovered-pk",
        Point,
        &[100],
        [1, 0, 0],
    ),
    (
        T::PointsNotcoveredSi,
        "points-notcovered-si",
        Point,
        &[100],
        [1, 0, 0],
    ),
    (
        T::RandomPoints,
        "random-points",
        Point,
        &[1000, 100, 10],
        [1, 0, 0],
    ),
    (
        T::RangeCoveredPk,
        "range-covered-pk",
        Range1,
        &[100],
        [1, 0, 0],
    ),
    (
        T::RangeCoveredSi,
        "range-covered-si",
        Range1,
        &[100],
        [1, 0, 0],
    ),
    (
        T::RangeNotcoveredPk,
        "range-notcovered-pk",
        Range1,
        &[100],
        [1, 0, 0],
    ),
    (
        T::RangeNotcoveredSi,
        "range-notcovered-si",
        Range1,
        &[100],
        [1, 0, 0],
    ),
    (T::Scan, "scan", Range1, &[0], [1, 0, 0]),
    (
        T::ReadOnlyCount,
        "read-only-count",
        Range2,
        &[1000],
        [1, 0, 0],
    ),
    (
        T::ReadOnlyDistinct,
        "read-only-distinct",
        Range2,
        &[1000],
        [11, 0, 2],
    ),
    (
        T::ReadOnlyOrder,
        "read-only-order",
        Range2,
        &[1000],
        [11, 0, 2],
    ),
    (
        T::ReadOnly,
        "read-only",
        Range2,
        &[10_000, 100, 10],
        [14, 0, 2],
    ),
    (
        T::ReadOnlySimple,
        "read-only-simple",
        Range2,
        &[1000],
        [11, 0, 2],
    ),
    (T::ReadOnlySum, "read-only-sum", Range2, &[1000], [11, 0, 2]),
    (
        T::DistinctRanges,
        "distinct-ranges",
        Range2,
        &[10],
        [1, 0, 0],
    ),
    (T::Delete, "delete", Write, &[0], [0, 1, 0]),
    (T::Insert, "insert", Write, &[0], [0, 1, 0]),
    (T::ReadWrite, "read-write", Write, &[100, 10], [14, 4, 2]),
    (T::UpdateIndex, "update-index", Write, &[0], [0, 1, 0]),
    (T::UpdateInlist, "update-inlist", Write, &[0], [0, 1, 0]),
    (T::UpdateNonindex, "update-nonindex", Write, &[0], [0, 1, 0]),
    (T::UpdateOne, "update-one", Write, &[0], [0, 1, 0]),
    (T::UpdateZipf, "update-zipf", Write, &[0], [0, 1, 0]),
    (T::WriteOnly, "write-only", Write, &[0], [0, 4, 2]),
];

/// Ids of the list of `update-inlist`: the script's own default, whatever the label says.
pub const INLIST_IDS: u32 = 10;
/// Point queries of a read-only transaction.
pub const POINT_SELECTS: u32 = 10;

impl TestKind {
    fn row(self) -> &'static Row {
        ROWS.iter()
            .find(|row| row.0 == self)
            .expect("every kind has its row")
    }

    /// The name without variant and range.
    pub fn base_name(self) -> &'static str {
        self.row().1
    }

    /// Its section of the published table.
    pub fn group(self) -> TestGroup {
        self.row().2
    }

    /// Statements of an event when each does what it should. A delete that finds no row counts as
    /// another statement.
    pub fn statements(self) -> StatementMix {
        let [reads, writes, others] = self.row().4;
        StatementMix {
            reads,
            writes,
            others,
        }
    }

    /// Whether an event is a transaction of several statements.
    pub fn is_transaction(self) -> bool {
        self.statements().others > 0
    }

    /// Whether events write.
    pub fn is_write(self) -> bool {
        self.group() == Write
    }

    /// Whether the range has an effect, so that it must fit into the table.
    pub fn has_range(self) -> bool {
        self.row().3 != [0]
    }

    /// Rows that an event reads or writes, for a range of this size; `None` where the range has no
    /// effect. Other tests than transactions and lists have one row more than their range says, as
    /// their statements do.
    pub fn rows(self, range: u32) -> Option<u64> {
        let range = u64::from(range);
        let statements = self.statements();
        let points = u64::from(POINT_SELECTS);
        let ranges = u64::from(statements.reads).saturating_sub(points);
        match self {
            _ if !self.has_range() => None,
            _ if self.is_transaction() => {
                Some(points + ranges * range + u64::from(statements.writes))
            }
            Self::RangeCoveredPk
            | Self::RangeCoveredSi
            | Self::RangeNotcoveredPk
            | Self::RangeNotcoveredSi => Some(range + 1),
            _ => Some(range),
        }
    }

    fn has_name_of_range(self, range: u32) -> bool {
        self.has_range() && self.row().3 != [range]
    }
}

/// A test by its name: kind, variant (`pre`, `warm`, `warmpre` or empty) and range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestName<'a> {
    /// What an event is.
    pub kind: TestKind,
    /// What follows the base name's dot.
    pub variant: &'a str,
    /// Rows of a range, ids of a list.
    pub range: u32,
}

/// Whether a test of this name only warms up for those behind it.
pub(in crate::plan) fn warms_up(test: &str) -> bool {
    TestName::parse(test).is_some_and(|name| name.variant.starts_with("warm"))
}

/// Variants of a test that make it the same test at another time.
const VARIANTS: [&str; 4] = ["", "pre", "warm", "warmpre"];

impl<'a> TestName<'a> {
    /// Reads `random-points.pre_range=10`.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, range) = match text.split_once("_range=") {
            Some((name, range)) => (
                name,
                Some(range.parse::<u32>().ok().filter(|&range| range > 0)?),
            ),
            None => (text, None),
        };
        let (base, variant) = name.split_once('.').unwrap_or((name, ""));
        let row = ROWS.iter().find(|row| row.1 == base)?;
        let range = match (range, row.3) {
            (Some(range), _) if row.0.has_range() => range,
            (Some(_), _) => return None,
            (None, [only]) => *only,
            (None, _) => return None,
        };
        VARIANTS.contains(&variant).then_some(Self {
            kind: row.0,
            variant,
            range,
        })
    }

    /// The range in the test's classic name: the original runner gives one to tests on which it has
    /// no effect, too.
    pub fn classic_range(self) -> u32 {
        match self.kind {
            TestKind::WriteOnly => 10_000,
            kind if !kind.has_range() => 100,
            _ => self.range,
        }
    }

    /// The name without the range.
    pub fn without_range(self) -> String {
        let dot = if self.variant.is_empty() { "" } else { "." };
        format!("{}{dot}{}", self.kind.base_name(), self.variant)
    }

    /// The name as tables have it: the range only where several are run.
    pub fn text(self) -> String {
        let name = self.without_range();
        if self.kind.has_name_of_range(self.range) {
            format!("{name}_range={}", self.range)
        } else {
            name
        }
    }
}

/// The 38 runs of 2025, in their order.
const ORDER_2025: [&str; 38] = [
    "point-query.warm",
    "scan.warmpre",
    "point-query.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write_range=10",
    "read-write_range=100",
    "scan.warm",
    "scan",
    "read-only_range=10",
    "read-only_range=100",
    "read-only_range=10000",
    "read-only-simple",
    "read-only-sum",
    "read-only-order",
    "read-only-distinct",
    "read-only-count",
    "point-query",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "range-covered-pk",
    "range-notcovered-pk",
    "points-covered-si.warm",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-si",
    "range-notcovered-si",
    "delete",
    "insert",
];

/// The 42 tests of 2023, in their order.
const ORDER_2023: [&str; 42] = [
    "point-query.pre",
    "random-points.pre_range=10",
    "random-points.pre_range=100",
    "random-points.pre_range=1000",
    "read-only.pre_range=10",
    "read-only.pre_range=100",
    "read-only.pre_range=10000",
    "points-covered-pk.pre",
    "points-covered-si.pre",
    "points-notcovered-pk.pre",
    "points-notcovered-si.pre",
    "range-covered-pk.pre",
    "range-covered-si.pre",
    "range-notcovered-pk.pre",
    "range-notcovered-si.pre",
    "update-inlist",
    "update-index",
    "update-nonindex",
    "update-one",
    "update-zipf",
    "write-only",
    "read-write_range=10",
    "read-write_range=100",
    "read-only_range=10",
    "read-only_range=100",
    "read-only_range=10000",
    "point-query",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "hot-points",
    "points-covered-pk",
    "points-notcovered-pk",
    "range-covered-pk",
    "range-notcovered-pk",
    "points-covered-si",
    "points-notcovered-si",
    "range-covered-si",
    "range-notcovered-si",
    "scan",
    "delete",
    "insert",
];

impl SysbenchPreset {
    /// The names of its tests, in the order they run.
    pub fn order(self) -> &'static [&'static str] {
        match self {
            Self::Year2025 => &ORDER_2025,
            Self::Year2023 => &ORDER_2023,
        }
    }

    /// Whether a test of this variant is one of the published results.
    pub fn reports(self, variant: &str) -> bool {
        variant.is_empty() || (self == Self::Year2023 && variant == "pre")
    }

    /// Where a test runs among the others. One that the preset has not runs beside its next of kin.
    pub fn position(self, name: TestName<'_>) -> usize {
        let order = self.order();
        let exact = order.iter().position(|known| *known == name.text());
        let kin = |kind: TestKind| {
            order.iter().rposition(|known| {
                TestName::parse(known)
                    .is_some_and(|known| known.kind == kind && known.variant == name.variant)
            })
        };
        let other = if name.kind == TestKind::DistinctRanges {
            TestKind::ReadOnlyDistinct
        } else {
            name.kind
        };
        exact
            .or_else(|| kin(other))
            .or_else(|| kin(TestKind::ReadOnly))
            .unwrap_or(0)
    }
}

/// Row, variant and range of a test: what the published table is sorted by.
pub type PublishedPosition = (usize, usize, Reverse<u32>);

/// Where a test stands in the published table: variants behind the test itself, larger ranges
/// first.
pub fn published_position(name: TestName<'_>) -> PublishedPosition {
    let row = ROWS
        .iter()
        .position(|row| row.0 == name.kind)
        .unwrap_or(ROWS.len());
    let variant = VARIANTS
        .iter()
        .position(|known| *known == name.variant)
        .unwrap_or(0);
    (row, variant, Reverse(name.range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn reported(preset: SysbenchPreset) -> Vec<TestName<'static>> {
        let names = preset
            .order()
            .iter()
            .map(|name| TestName::parse(name).unwrap());
        names.filter(|name| preset.reports(name.variant)).collect()
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for preset in [SysbenchPreset::Year2025, SysbenchPreset::Year2023] {
            for name in preset.order() {
                assert_eq!(TestName::parse(name).unwrap().text(), *name);
            }
            assert_eq!(
                preset.order().iter().collect::<BTreeSet<_>>().len(),
                preset.order().len()
            );
        }
        assert_eq!(
            TestName::parse("random-points_range=50").unwrap().text(),
            "random-points_range=50"
        );
        assert_eq!(
            TestName::parse("hot-points_range=100").unwrap().text(),
            "hot-points"
        );
        for wrong in [
            "random-points",
            "point-query_range=5",
            "points",
            "point-query.post",
            "read-only_range=0",
            "read-only_range=x",
        ] {
            assert_eq!(TestName::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn there_are_32_in_four_groups_and_42() {
        let tests = reported(SysbenchPreset::Year2025);
        let groups = TestGroup::ALL.map(|group| {
            tests
                .iter()
                .filter(|test| test.kind.group() == group)
                .count()
        });
        assert_eq!(groups, [9, 5, 8, 10]);
        assert_eq!(reported(SysbenchPreset::Year2023).len(), 42);
    }

    #[test]
    fn rows_have_the_published_order() {
        let mut tests = reported(SysbenchPreset::Year2025);
        tests.sort_by_key(|test| published_position(*test));
        let names: Vec<String> = tests.into_iter().map(TestName::text).collect();
        let expected = "hot-points point-query points-covered-pk points-covered-si \
                       points-notcovered-pk points-notcovered-si random-points_range=1000 \
                       random-points_range=100 random-points_range=10 range-covered-pk \
                       range-covered-si range-notcovered-pk range-notcovered-si scan \
                       read-only-count read-only-distinct read-only-order read-only_range=10000 \
                       read-only_range=100 read-only_range=10 read-only-simple read-only-sum \
                       delete insert read-write_range=100 read-write_range=10 update-index \
                       update-inlist update-nonindex update-one update-zipf write-only";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn tests_outside_of_the_order_run_beside_their_kin() {
        let position =
            |name: &str| SysbenchPreset::Year2025.position(TestName::parse(name).unwrap());
        assert_eq!(position("distinct-ranges"), position("read-only-distinct"));
        assert_eq!(
            position("random-points_range=50"),
            position("random-points_range=1000")
        );
        assert!(position("random-points.pre_range=10") < position("insert"));
        assert!(position("delete") < position("insert"));
    }
}
