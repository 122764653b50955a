//! The SQL of MySQL and MariaDB.

use plimsoll_core::engines::EngineName;

use super::facts;
use super::waits::ThreadSampler;
use crate::{
    AutoKey, KeyPlace, Partitioned, Settings, SqlError, SqlForms, SqlSession, WaitSampler,
};

/// On InnoDB, or on RocksDB.
#[derive(Clone, Copy, Debug)]
pub struct MysqlForms {
    is_rocksdb: bool,
}

impl MysqlForms {
    /// For tables that are not RocksDB's.
    pub const INNODB: Self = Self { is_rocksdb: false };
    /// For tables that are.
    pub const ROCKSDB: Self = Self { is_rocksdb: true };

    pub(super) fn of_tables(is_rocksdb: bool) -> &'static dyn SqlForms {
        if is_rocksdb {
            &Self::ROCKSDB
        } else {
            &Self::INNODB
        }
    }
}

impl SqlForms for MysqlForms {
    fn engine(&self) -> EngineName {
        EngineName::Mysql
    }

    fn auto_key(&self, sql_type: &str) -> AutoKey {
        AutoKey {
            column: format!("{sql_type} NOT NULL AUTO_INCREMENT"),
            key: KeyPlace::Clause,
        }
    }

    fn auto_value(&self) -> Option<&'static str> {
        Some("0")
    }

    fn timestamp_type(&self) -> &'static str {
        "datetime"
    }

    fn partitions(&self, _table: &str, key: &str, count: u32, rows: u64) -> Option<Partitioned> {
        let bounded = (1..count).map(|number| {
            format!(
                "partition p{} values less than ({})",
                number - 1,
                u64::from(number) * rows
            )
        });
        let last = format!("partition p{} values less than (MAXVALUE)", count - 1);
        let ranges: Vec<String> = bounded.chain([last]).collect();
        Some(Partitioned {
            clause: format!(" partition by range( {key} ) ( {} )", ranges.join(", ")),
            tables: Vec::new(),
        })
    }

    /// InnoDB makes all of them in one statement; RocksDB one at a time, because of its memory.
    fn create_indexes(&self, table: &str, indexes: &[(String, &str)]) -> Vec<String> {
        let added = indexes
            .iter()
            .map(|(name, columns)| format!("add index {name} ({columns})"));
        if self.is_rocksdb {
            return added
                .map(|index| format!("alter table {table} {index}"))
                .collect();
        }
        let added: Vec<String> = added.collect();
        vec![format!("alter table {table} {}", added.join(", "))]
    }

    fn has_index_names_per_table(&self) -> bool {
        true
    }

    fn delete_first_rows(&self, table: &str, key: &str) -> String {
        format!("delete from {table} where {key} >= ? order by {key} asc limit ?")
    }

    fn index_hint(&self, index: &str) -> String {
        format!(" FORCE INDEX ({index})")
    }

    fn prepares_begin(&self) -> bool {
        false
    }

    fn session_facts(&self, session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
        facts::of_session(session)
    }

    fn wait_sampler(
        &self,
        session: Box<dyn SqlSession>,
    ) -> Result<Option<Box<dyn WaitSampler>>, SqlError> {
        Ok(Some(Box::new(ThreadSampler::on(session)?)))
    }

    fn has_text_queries(&self) -> bool {
        true
    }

    fn has_text_deletes(&self) -> bool {
        true
    }
}
