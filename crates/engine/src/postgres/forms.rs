//! PostgreSQL's SQL.

use plimsoll_core::engines::EngineName;

use super::facts;
use super::waits::ActivitySampler;
use crate::{
    AutoKey, KeyPlace, Partitioned, Settings, SqlError, SqlForms, SqlSession, WaitSampler,
};

#[derive(Clone, Copy, Debug)]
pub struct PostgresForms;

impl SqlForms for PostgresForms {
    fn engine(&self) -> EngineName {
        EngineName::Postgres
    }

    fn auto_key(&self, sql_type: &str) -> AutoKey {
        let is_big = sql_type.to_lowercase().contains("big");
        AutoKey {
            column: if is_big { "BIGSERIAL" } else { "SERIAL" }.to_owned(),
            key: KeyPlace::Column,
        }
    }

    fn reserve_auto_values(&self, table: &str, column: &str, count: u32) -> Option<String> {
        Some(format!("alter sequence {table}_{column}_seq cache {count}"))
    }

    fn continue_auto_values(&self, table: &str, column: &str, last: u64) -> Option<String> {
        Some(format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {last})"
        ))
    }

    fn timestamp_type(&self) -> &'static str {
        "timestamp without time zone"
    }

    /// Partitions are tables of their own.
    fn partitions(&self, table: &str, key: &str, count: u32, rows: u64) -> Option<Partitioned> {
        let partition = |number: u32| {
            let name = format!("{table}_p{number}");
            let low = u64::from(number) * rows;
            let high = if number + 1 == count {
                "MAXVALUE".to_owned()
            } else {
                (low + rows).to_string()
            };
            let create = format!(
                "create table {name} partition of {table} for values from ({low}) to ({high})"
            );
            (name, create)
        };
        Some(Partitioned {
            clause: format!(" partition by range( {key} )"),
            tables: (0..count).map(partition).collect(),
        })
    }

    fn prefer_indexes(&self) -> &'static [&'static str] {
        &["SET enable_seqscan = off", "SET enable_bitmapscan = off"]
    }

    fn copies_rows(&self) -> bool {
        true
    }

    fn session_facts(&self, session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
        facts::of_session(session)
    }

    fn wait_sampler(
        &self,
        session: Box<dyn SqlSession>,
    ) -> Result<Option<Box<dyn WaitSampler>>, SqlError> {
        Ok(Some(Box::new(ActivitySampler::on(session)?)))
    }

    fn has_text_deletes(&self) -> bool {
        true
    }
}
