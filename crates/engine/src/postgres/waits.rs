//! What PostgreSQL's sessions wait for.

use crate::waits::{RUNNING, WaitSampler};
use crate::{SqlError, SqlSession};

/// `pg_stat_activity` without what it is joined with, which is planned and read each time: the names
/// of databases and users. Workers of autovacuum have our database, too, and are not of the load.
fn sample(database: i64) -> String {
    format!(
        "select coalesce(wait_event_type || ': ' || wait_event, '') from pg_stat_get_activity(null) \
        where state = 'active' and usesysid is not null and pid <> pg_backend_pid() and datid = \
        {database} and query not like 'autovacuum:%'"
    )
}

/// The number of our database, asked once: a look is short.
const DATABASE: &str = "select oid::bigint from pg_database where datname = current_database()";

pub(super) struct ActivitySampler {
    session: Box<dyn SqlSession>,
    sample: String,
}

impl ActivitySampler {
    pub fn on(mut session: Box<dyn SqlSession>) -> Result<Self, SqlError> {
        let database = session.query_integer(DATABASE)?.unwrap_or_default();
        Ok(Self {
            session,
            sample: sample(database),
        })
    }
}

impl WaitSampler for ActivitySampler {
    fn source(&self) -> &'static str {
        "pg_stat_activity"
    }

    fn sample(&mut self, seen: &mut dyn FnMut(&str)) -> Result<(), SqlError> {
        self.session.for_each_row(&self.sample, &mut |row| {
            seen(match row.first() {
                Some(&event) if !event.is_empty() => event,
                _ => RUNNING,
            });
        })
    }
}
