//! Numbers by name. A metric is one entry of the set of its kind of benchmark: name, unit, words
//! and formula. From a finished step to its measures: `facts` -> `formulas` -> `measure`.

pub mod catalogue;
pub mod columns;
pub(crate) mod facts;
mod formulas;
pub mod imported;
pub(crate) mod measure;
mod metric;
pub mod ratio;
pub mod rocksdb;
mod set;
pub mod sysbench;
mod together;
pub mod value;

pub use catalogue::*;
pub use measure::Measure;
pub(crate) use metric::Formula;
pub use metric::{Direction, Metric};
pub use set::MetricSet;
pub(crate) use set::rate_of;

/// Every metric that a native step can have; some names are there once per kind of benchmark.
pub fn native() -> impl Iterator<Item = &'static Metric> {
    let sets = [CATALOGUE, sysbench::OWN, rocksdb::OWN];
    sets.into_iter().flatten().copied()
}

/// The entry of a name in a set.
pub fn find_in(set: &[&'static Metric], name: &str) -> Option<&'static Metric> {
    set.iter().copied().find(|metric| metric.name == name)
}

/// The entry of a metric of native or imported results.
pub fn find(name: &str) -> Option<&'static Metric> {
    find_in(CATALOGUE, name).or_else(|| find_in(imported::METRICS, name))
}

/// The place of a metric in tables of imported results.
pub(crate) fn place(name: &str) -> usize {
    let mut all = CATALOGUE.iter().chain(imported::METRICS);
    all.position(|metric| metric.name == name)
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_in_each_set() {
        let of_imports: Vec<_> = [CATALOGUE, imported::METRICS].concat();
        for set in [CATALOGUE, sysbench::METRICS, rocksdb::METRICS, &of_imports] {
            for (i, metric) in set.iter().enumerate() {
                assert!(
                    find_in(&set[..i], metric.name).is_none(),
                    "{} twice",
                    metric.name
                );
                let words = [metric.meaning, metric.formula, metric.source];
                assert!(words.iter().all(|text| !text.is_empty()), "{}", metric.name);
            }
        }
    }

    #[test]
    fn columns_are_of_their_sets() {
        for (columns, set) in [
            (&sysbench::COLUMNS[..], sysbench::METRICS),
            (&rocksdb::COLUMNS[..], rocksdb::METRICS),
            (&CLASSIC_COLUMNS[..], CATALOGUE),
        ] {
            assert!(columns.iter().all(|column| set.contains(column)));
        }
        assert_eq!(find("qps"), Some(QPS));
        assert_eq!(place("op_rate"), CATALOGUE.len());
        assert_eq!(find("nothing"), None);
    }
}
