//! The statements, by era and dialect.

use plimsoll_core::plan::Era;
use plimsoll_engine::Dialect;

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
    dialect: Dialect,
    /// What follows the closing bracket of `create table`.
    suffix: String,
}

impl Statements {
    pub fn new(table: String, era: Era, dialect: Dialect, suffix: String) -> Self {
        Self { table, era, dialect, suffix }
    }

    /// Whether deletes and queries go as text, as the original sends them to MySQL; elsewhere they are prepared.
    pub fn sends_text(&self) -> bool {
        matches!(self.dialect, Dialect::Mysql { .. })
    }

    pub fn create_table(&self) -> Vec<String> {
        let (id, time, key) = match self.dialect {
            Dialect::Sqlite => ("integer primary key", "datetime", ""),
            Dialect::Mysql { .. } => ("bigint not null auto_increment", "datetime", ", primary key (transactionid)"),
            Dialect::Postgres { .. } => ("bigserial primary key", "timestamp without time zone", ""),
        };
        let price = if self.era == Era::Current { "int" } else { "float" };
        let (table, suffix) = (&self.table, &self.suffix);
        let mut statements = vec![format!(
            "create table {table} ( transactionid {id}, dateandtime {time}, cashregisterid int not null, customerid int not null, \
             productid int not null, price {price} not null, data varchar(4000){key} ){suffix}"
        )];
        if let Dialect::Postgres { .. } = self.dialect {
            statements.push(format!("alter sequence {table}_transactionid_seq cache 1000"));
        }
        statements
    }

    fn indexes(&self) -> [Index; 3] {
        let (market, register) = match self.era {
            Era::Current => ("productid, customerid, price", "cashregisterid, customerid, price"),
            Era::May2023 | Era::Year2017 => ("price, customerid", "cashregisterid, price, customerid"),
        };
        [
            Index { name: "marketsegment", columns: market },
            Index { name: "registersegment", columns: register },
            Index { name: "pdc", columns: "price, dateandtime, customerid" },
        ]
    }

    /// In the order they are created.
    pub fn create_indexes(&self) -> Vec<String> {
        let table = &self.table;
        let added = self.indexes().map(|index| format!("add index {table}_{} ({})", index.name, index.columns));
        match self.dialect {
            Dialect::Sqlite | Dialect::Postgres { .. } => {
                self.indexes().map(|index| format!("create index {table}_{} on {table} ({})", index.name, index.columns)).to_vec()
            }
            // One at a time, for the sake of its memory.
            Dialect::Mysql { is_rocksdb: true } => added.map(|index| format!("alter table {table} {index}")).to_vec(),
            Dialect::Mysql { is_rocksdb: false } => vec![format!("alter table {table} {}", added.join(", "))],
        }
    }

    /// Everything before the tuples.
    pub fn insert_head(&self) -> String {
        format!("insert into {} (dateandtime,cashregisterid,customerid,productid,price,data) values", self.table)
    }

    /// Takes the smallest id that may be there and, since 2024-04, the number of rows; before, the id behind the last.
    pub fn delete(&self) -> String {
        let table = &self.table;
        match (self.era, self.dialect) {
            (Era::Current, Dialect::Mysql { .. }) => {
                format!("delete from {table} where transactionid >= ? order by transactionid asc limit ?")
            }
            (Era::Current, Dialect::Sqlite | Dialect::Postgres { .. }) => format!(
                "delete from {table} where transactionid in \
                 (select transactionid from {table} where transactionid >= ? order by transactionid asc limit ?)"
            ),
            (Era::May2023 | Era::Year2017, _) => {
                format!("delete from {table} where (transactionid >= ? and transactionid < ?)")
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
            "select transactionid, dateandtime, cashregisterid, customerid, productid, price, data from {} order by transactionid",
            self.table
        )
    }

    /// A range query; `start` is a placeholder or a value.
    pub fn range(&self, range: Range, start: &str) -> String {
        let (columns, condition, order) = match (self.era, range) {
            (Era::Current, Range::Market) => ("productid, customerid, price", "productid >=", "productid, customerid, price"),
            (Era::Current, Range::Register) => ("cashregisterid,customerid,price", "cashregisterid >", "cashregisterid, customerid, price"),
            (_, Range::Market) => ("price,customerid", "price >=", "price,customerid"),
            (_, Range::Register) => ("cashregisterid,price,customerid", "cashregisterid >", "cashregisterid,price,customerid"),
            (_, Range::Pdc) => ("price,dateandtime,customerid", "price >=", "price, dateandtime, customerid"),
        };
        let index = match range {
            Range::Market => "marketsegment",
            Range::Register => "registersegment",
            Range::Pdc => "pdc",
        };
        let table = &self.table;
        let hint = match self.dialect {
            Dialect::Sqlite => format!(" INDEXED BY {table}_{index}"),
            Dialect::Mysql { .. } => format!(" FORCE INDEX ({table}_{index})"),
            Dialect::Postgres { .. } => String::new(),
        };
        format!("SELECT {columns} FROM {table}{hint} WHERE ({condition} {start}) ORDER BY {order} LIMIT {ROWS_PER_QUERY}")
    }

    /// Ten rows by primary key.
    pub fn point(&self) -> String {
        let ids = vec!["?"; ROWS_PER_QUERY as usize].join(",");
        format!("SELECT transactionid, productid, data FROM {} WHERE transactionid in ({ids})", self.table)
    }

    /// The five scans of 2017. No row matches.
    pub fn scans(&self) -> [String; 5] {
        let table = &self.table;
        let primary = format!("select transactionid,data,customerid from {table} where customerid < 0");
        let secondary =
            |columns: &str, bound: &str| format!("select {columns} from {table} where {bound} >= 0 and customerid < 0 order by {columns}");
        [
            primary.clone(),
            secondary("price,customerid", "price"),
            secondary("cashregisterid,price,customerid", "cashregisterid"),
            format!(
                "select price,dateandtime,customerid from {table} where price >= 0 and customerid < 0 order by price,dateandtime,customerid"
            ),
            primary,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_the_definition() {
        let statements = Statements::new("pi2".into(), Era::Current, Dialect::Sqlite, String::new());
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
            "SELECT productid, customerid, price FROM pi2 INDEXED BY pi2_marketsegment WHERE (productid >= ?) \
             ORDER BY productid, customerid, price LIMIT 10"
        );
        assert_eq!(
            statements.range(Range::Register, "?"),
            "SELECT cashregisterid,customerid,price FROM pi2 INDEXED BY pi2_registersegment WHERE (cashregisterid > ?) \
             ORDER BY cashregisterid, customerid, price LIMIT 10"
        );
        assert_eq!(
            statements.range(Range::Pdc, "?"),
            "SELECT price,dateandtime,customerid FROM pi2 INDEXED BY pi2_pdc WHERE (price >= ?) \
             ORDER BY price, dateandtime, customerid LIMIT 10"
        );
        assert_eq!(statements.point(), "SELECT transactionid, productid, data FROM pi2 WHERE transactionid in (?,?,?,?,?,?,?,?,?,?)");
        let old = Statements::new("pi1".into(), Era::May2023, Dialect::Sqlite, String::new());
        assert_eq!(
            old.range(Range::Market, "12.50"),
            "SELECT price,customerid FROM pi1 INDEXED BY pi1_marketsegment WHERE (price >= 12.50) ORDER BY price,customerid LIMIT 10"
        );
        assert_eq!(old.delete(), "delete from pi1 where (transactionid >= ? and transactionid < ?)");
        let mysql = Statements::new("pi1".into(), Era::Current, Dialect::Mysql { is_rocksdb: false }, " engine=innodb".into());
        assert_eq!(
            mysql.create_table(),
            ["create table pi1 ( transactionid bigint not null auto_increment, dateandtime datetime, cashregisterid int not null, \
              customerid int not null, productid int not null, price int not null, data varchar(4000), primary key (transactionid) ) \
              engine=innodb"]
        );
        assert_eq!(
            mysql.create_indexes(),
            ["alter table pi1 add index pi1_marketsegment (productid, customerid, price), \
              add index pi1_registersegment (cashregisterid, customerid, price), add index pi1_pdc (price, dateandtime, customerid)"]
        );
        assert_eq!(mysql.delete(), "delete from pi1 where transactionid >= ? order by transactionid asc limit ?");
        assert!(mysql.range(Range::Pdc, "7").contains("FROM pi1 FORCE INDEX (pi1_pdc) WHERE (price >= 7)"));
        let rocksdb = Statements::new("pi1".into(), Era::Current, Dialect::Mysql { is_rocksdb: true }, " engine=rocksdb".into());
        assert_eq!(rocksdb.create_indexes().len(), 3);
        let postgres = Statements::new("pi1".into(), Era::Current, Dialect::Postgres { version_num: 160_004 }, String::new());
        assert_eq!(postgres.create_table()[1], "alter sequence pi1_transactionid_seq cache 1000");
        assert!(postgres.range(Range::Pdc, "?").contains("FROM pi1 WHERE (price >= ?)"));
        assert!(postgres.delete().starts_with("delete from pi1 where transactionid in (select"));
        assert!(old.create_table()[0].contains("price float not null"));
    }
}
