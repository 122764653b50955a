//! Reading secondary indexes whole, whatever the optimizer would rather read.

use std::fmt::Display;

use plimsoll_engine::SqlForms;

/// Statements that read these indexes, each given by its table, its name and its first column, of
/// any type that an index can order.
pub(crate) fn index_scans<N: Display>(
    indexes: impl IntoIterator<Item = [N; 3]>,
    forms: &dyn SqlForms,
) -> Vec<String> {
    let scan = |[table, index, column]: [N; 3]| {
        let hint = forms.index_hint(&index.to_string());
        // A bound makes it a scan of a range: MySQL 8.0 counts rows without one on the primary key,
        // whatever the hint.
        format!(
            "SELECT COUNT(*) FROM {table}{hint} WHERE {column} >= (SELECT MIN({column}) FROM \
            {table})"
        )
    };
    forms
        .prefer_indexes()
        .iter()
        .map(|&setting| setting.to_owned())
        .chain(indexes.into_iter().map(scan))
        .collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::mysql::MysqlForms;
    use plimsoll_engine::postgres::PostgresForms;
    use plimsoll_engine::sqlite::SqliteForms;

    use super::*;

    #[test]
    fn every_index_is_named_where_it_can_be() {
        let indexes = [["customer", "by_region", "region"], ["line", "line_n", "n"]];
        let mysql = index_scans(indexes, &MysqlForms::INNODB);
        assert_eq!(
            mysql,
            [
                "SELECT COUNT(*) FROM customer FORCE INDEX (by_region) WHERE region >= (SELECT \
                MIN(region) FROM customer)",
                "SELECT COUNT(*) FROM line FORCE INDEX (line_n) WHERE n >= (SELECT MIN(n) FROM \
                line)",
            ]
        );
        assert!(index_scans(indexes, &SqliteForms)[0].contains(" INDEXED BY by_region "));
        let postgres = index_scans(indexes, &PostgresForms);
        assert_eq!(postgres.len(), 4);
        assert_eq!(postgres[0], "SET enable_seqscan = off");
    }
}
