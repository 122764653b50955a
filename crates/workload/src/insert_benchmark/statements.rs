//! The statements, by era, in the forms of an engine.

use plimsoll_core::plan::{Era, Partitions};
use plimsoll_engine::{Partitioned, SqlForms};

/// The primary key.
const KEY: &str = "transactionid";

/// Rows a query asks for.
pub(super) const ROWS_PER_QUERY: u32 = 10;

/// A secondary index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Index {
    name: &'static str,
    columns: &'static str,
}

/// The range queries, by the index they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Range {
    Market,
    Register,
    Pdc,
}

pub(super) const RANGES: [Range; 3] = [Range::Market, Range::Register, Range::Pdc];

/// The text of one table's statements.
#[derive(Clone, Debug)]
pub(super) struct Statements {
    pub table: String,
    era: Era,
    forms: &'static dyn SqlForms,
    /// What follows the closing bracket of `create table`.
    suffix: String,
    partitions: Option<Partitions>,
}

impl Statements {
    pub fn new(
        table: String,
        era: Era,
        forms: &'static dyn SqlForms,
        suffix: String,
        partitions: Option<Partitions>,
    ) -> Self {
        Self {
            table,
            era,
            forms,
            suffix,
            partitions,
        }
    }

    /// Whether queries go as text; elsewhere they are prepared.
    pub fn has_text_queries(&self) -> bool {
        self.forms.has_text_queries()
    }

    /// Whether deletes do.
    pub fn has_text_deletes(&self) -> bool {
        self.forms.has_text_deletes()
    }

    /// The tables that hold rows: the table, or its partitions where they are tables.
    pub fn storage_tables(&self) -> Vec<String> {
        let partitions = self.partitioned().map_or(Vec::new(), |forms| forms.tables);
        if partitions.is_empty() {
            return vec![self.table.clone()];
        }
        partitions.into_iter().map(|(name, _)| name).collect()
    }

    fn partitioned(&self) -> Option<Partitioned> {
        let Partitions { count, rows } = self.partitions?;
        self.forms.partitions(&self.table, KEY, count, rows)
    }

    pub fn create_table(&self) -> Vec<String> {
        let (id, key) = self.forms.auto_key("bigint").as_primary_key(KEY);
        // The original writes small letters.
        let (id, key) = (id.to_lowercase(), key.to_lowercase());
        let time = self.forms.timestamp_type();
        let price = if self.era == Era::Current {
            "int"
        } else {
            "float"
        };
        let (clause, partitions) = self
            .partitioned()
            .map_or_else(Default::default, |forms| (forms.clause, forms.tables));
        let (table, suffix) = (&self.table, &self.suffix);
        let create = format!(
            "create table {table} ( {KEY} {id}, dateandtime {time}, cashregisterid int not null, \
            customerid int not null, productid int not null, price {price} not null, data \
            varchar(4000){key} ){suffix}{clause}"
        );
        let reserve = self.forms.reserve_auto_values(table, KEY, 1000);
        std::iter::once(create)
            .chain(partitions.into_iter().map(|(_, create)| create))
            .chain(reserve)
            .collect()
    }

    fn indexes(&self) -> [Index; 3] {
        let (market, register) = match self.era {
            Era::Current => (
                "productid, customerid, price",
                "cashregisterid, customerid, price",
            ),
            Era::May2023 | Era::Year2017 => {
                ("price, customerid", "cashregisterid, price, customerid")
            }
        };
        [
            Index {
                name: "marketsegment",
                columns: market,
            },
            Index {
                name: "registersegment",
                columns: register,
            },
            Index {
                name: "pdc",
                columns: "price, dateandtime, customerid",
            },
        ]
    }

    /// With the table's name in front; in 2017 only if names of indexes are the schema's.
    fn index_name(&self, name: &str) -> String {
        if self.era == Era::Year2017 && self.forms.has_index_names_per_table() {
            return name.to_owned();
        }
        format!("{}_{name}", self.table)
    }

    /// In the order they are created.
    pub fn create_indexes(&self) -> Vec<String> {
        let indexes = self
            .indexes()
            .map(|index| (self.index_name(index.name), index.columns));
        self.forms.create_indexes(&self.table, &indexes)
    }

    /// Everything before the tuples.
    pub fn insert_head(&self) -> String {
        format!(
            "insert into {} (dateandtime,cashregisterid,customerid,productid,price,data) values",
            self.table
        )
    }

    /// Takes the smallest id that may be there and, since 2024-04, the number of rows; before, the
    /// id behind the last.
    pub fn delete(&self) -> String {
        let table = &self.table;
        match self.era {
            Era::Current => self.forms.delete_first_rows(table, KEY),
            Era::May2023 | Era::Year2017 => {
                format!("delete from {table} where({KEY}>=? and {KEY}<?)")
            }
        }
    }

    pub fn min_id(&self) -> String {
        format!("select min(transactionid) from {}", self.table)
    }

    pub fn max_id(&self) -> String {
        format!("select max(transactionid) from {}", self.table)
    }

    pub fn count(&self) -> String {
        format!("select count(*) from {}", self.table)
    }

    pub fn all_rows(&self) -> String {
        format!(
            "select transactionid, dateandtime, cashregisterid, customerid, productid, price, data \
            from {} order by transactionid",
            self.table
        )
    }

    /// A range query; `start` is a placeholder or a value.
    pub fn range(&self, range: Range, start: &str) -> String {
        let (columns, condition, order) = match (self.era, range) {
            (Era::Current, Range::Market) => (
                "productid, customerid, price",
                "productid >= ",
                "productid, customerid, price",
            ),
            (Era::Current, Range::Register) => (
                "cashregisterid,customerid,price",
                "cashregisterid > ",
                "cashregisterid, customerid, price",
            ),
            (Era::Current, Range::Pdc) => (
                "price,dateandtime,customerid",
                "price >= ",
                "price, dateandtime, customerid",
            ),
            (_, Range::Market) => ("price,customerid", "price>=", "price,customerid"),
            (_, Range::Register) => (
                "cashregisterid,price,customerid",
                "cashregisterid>",
                "cashregisterid,price,customerid",
            ),
            (_, Range::Pdc) => (
                "price,dateandtime,customerid",
                "price>=",
                "price,dateandtime,customerid",
            ),
        };
        let index = self.index_name(match range {
            Range::Market => "marketsegment",
            Range::Register => "registersegment",
            Range::Pdc => "pdc",
        });
        let table = &self.table;
        let hint = self.forms.index_hint(&index);
        format!(
            "SELECT {columns} FROM {table}{hint} WHERE ({condition}{start}) ORDER BY {order} LIMIT \
            {ROWS_PER_QUERY}"
        )
    }

    /// Ten rows by primary key.
    pub fn point(&self) -> String {
        let ids = vec!["?"; ROWS_PER_QUERY as usize].join(",");
        format!(
            "SELECT transactionid, productid, data FROM {} WHERE transactionid in ({ids})",
            self.table
        )
    }

    /// The five scans of 2017. No row matches.
    pub fn scans(&self) -> [String; 5] {
        let table = &self.table;
        let primary =
            format!("select transactionid,data,customerid from {table} where customerid < 0");
        let secondary = |columns: &str, bound: &str| {
            format!(
                "select {columns} from {table} where {bound} >= 0 and customerid < 0 order by \
                {columns}"
            )
        };
        [
            primary.clone(),
            secondary("price,customerid", "price"),
            secondary("cashregisterid,price,customerid", "cashregisterid"),
            format!(
                "select price,dateandtime,customerid from {table} where price >= 0 and customerid \
                < 0 order by price,dateandtime,customerid"
            ),
            primary,
        ]
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::mysql::MysqlForms;
    use plimsoll_engine::postgres::PostgresForms;
    use plimsoll_engine::sqlite::SqliteForms;

    use super::*;

    #[test]
    fn statements_are_those_of_the_definition() {
        let statements = Statements::new(
            "pi2".into(),
            Era::Current,
            &SqliteForms,
            String::new(),
            None,
        );
        assert_eq!(
            statements.create_indexes(),
            [
                "create index pi2_marketsegment on pi2 (productid, customerid, price)",
                "create index pi2_registersegment on pi2 (cashregisterid, customerid, price)",
                "create index pi2_pdc on pi2 (price, dateandtime, customerid)",
            ]
        );
        assert_eq!(
            statements.range(Range::Market, "?"),
            "SELECT productid, customerid, price FROM pi2 INDEXED BY pi2_marketsegment WHERE \
            (productid >= ?) ORDER BY productid, customerid, price LIMIT 10"
        );
        assert_eq!(
            statements.range(Range::Register, "?"),
            "SELECT cashregisterid,customerid,price FROM pi2 INDEXED BY pi2_registersegment WHERE \
            (cashregisterid > ?) ORDER BY cashregisterid, customerid, price LIMIT 10"
        );
        assert_eq!(
            statements.range(Range::Pdc, "?"),
            "SELECT price,dateandtime,customerid FROM pi2 INDEXED BY pi2_pdc WHERE (price >= ?) \
            ORDER BY price, dateandtime, customerid LIMIT 10"
        );
        assert_eq!(
            statements.point(),
            "SELECT transactionid, productid, data FROM pi2 WHERE transactionid in \
            (?,?,?,?,?,?,?,?,?,?)"
        );
        let old = Statements::new(
            "pi1".into(),
            Era::May2023,
            &SqliteForms,
            String::new(),
            None,
        );
        assert_eq!(
            old.range(Range::Market, "12.50"),
            "SELECT price,customerid FROM pi1 INDEXED BY pi1_marketsegment WHERE (price>=12.50) \
            ORDER BY price,customerid LIMIT 10"
        );
        assert_eq!(
            old.delete(),
            "delete from pi1 where(transactionid>=? and transactionid<?)"
        );
        let mysql = Statements::new(
            "pi1".into(),
            Era::Current,
            &MysqlForms::INNODB,
            " engine=innodb".into(),
            None,
        );
        assert_eq!(
            mysql.create_table(),
            [
                "create table pi1 ( transactionid bigint not null auto_increment, dateandtime \
                datetime, cashregisterid int not null, customerid int not null, productid int not \
                null, price int not null, data varchar(4000), primary key (transactionid) ) \
                engine=innodb"
            ]
        );
        assert_eq!(
            mysql.create_indexes(),
            [
                "alter table pi1 add index pi1_marketsegment (productid, customerid, price), add \
                index pi1_registersegment (cashregisterid, customerid, price), add index pi1_pdc \
                (price, dateandtime, customerid)"
            ]
        );
        assert_eq!(
            mysql.delete(),
            "delete from pi1 where transactionid >= ? order by transactionid asc limit ?"
        );
        assert!(
            mysql
                .range(Range::Pdc, "7")
                .contains("FROM pi1 FORCE INDEX (pi1_pdc) WHERE (price >= 7)")
        );
        let rocksdb = Statements::new(
            "pi1".into(),
            Era::Current,
            &MysqlForms::ROCKSDB,
            " engine=rocksdb".into(),
            None,
        );
        assert_eq!(rocksdb.create_indexes().len(), 3);
        let postgres = Statements::new(
            "pi1".into(),
            Era::Current,
            &PostgresForms,
            String::new(),
            None,
        );
        assert_eq!(
            postgres.create_table()[1],
            "alter sequence pi1_transactionid_seq cache 1000"
        );
        assert!(
            postgres
                .range(Range::Pdc, "?")
                .contains("FROM pi1 WHERE (price >= ?)")
        );
        assert!(
            postgres
                .delete()
                .starts_with("delete from pi1 where transactionid in (select")
        );
        assert!(old.create_table()[0].contains("price float not null"));
        let year_2017 = Statements::new(
            "pi1".into(),
            Era::Year2017,
            &MysqlForms::INNODB,
            " engine=innodb".into(),
            None,
        );
        assert!(
            year_2017
                .range(Range::Register, "7")
                .contains(" FORCE INDEX (registersegment) WHERE (cashregisterid>7) ")
        );
        assert!(year_2017.create_indexes()[0].contains("add index pdc ("));
    }

    #[test]
    fn partitions_are_ranges_of_ids() {
        let partitioned = |forms: &'static dyn SqlForms, suffix: &str, count| {
            let partitions = Some(Partitions { count, rows: 1000 });
            Statements::new(
                "pi3".into(),
                Era::Current,
                forms,
                suffix.to_owned(),
                partitions,
            )
        };
        let mysql = partitioned(&MysqlForms::INNODB, " engine=innodb", 3);
        let created = mysql.create_table();
        assert_eq!(created.len(), 1);
        assert!(
            created[0].ends_with(
                ") engine=innodb partition by range( transactionid ) ( partition p0 values less \
                than (1000), partition p1 values less than (2000), partition p2 values less than \
                (MAXVALUE) )"
            ),
            "{}",
            created[0]
        );
        assert_eq!(mysql.storage_tables(), ["pi3"]);
        let postgres = partitioned(&PostgresForms, "", 3);
        let created = postgres.create_table();
        assert!(
            created[0].ends_with("data varchar(4000) ) partition by range( transactionid )"),
            "{}",
            created[0]
        );
        assert_eq!(
            created[1..],
            [
                "create table pi3_p0 partition of pi3 for values from (0) to (1000)",
                "create table pi3_p1 partition of pi3 for values from (1000) to (2000)",
                "create table pi3_p2 partition of pi3 for values from (2000) to (MAXVALUE)",
                "alter sequence pi3_transactionid_seq cache 1000",
            ]
        );
        assert_eq!(postgres.storage_tables(), ["pi3_p0", "pi3_p1", "pi3_p2"]);
        let one = partitioned(&MysqlForms::INNODB, " engine=innodb", 1);
        assert!(one.create_table()[0].ends_with("( partition p0 values less than (MAXVALUE) )"));
    }
}
