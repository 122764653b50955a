//! What a session of PostgreSQL is like.

use crate::{Settings, SqlError, SqlSession};

/// A row per fact. What speaks the protocol is its third version in every server that there is, and
/// no server compresses it or ends a session's autocommit.
const FACTS: &str = "select f.name, f.value from pg_database d, lateral (values \
    ('character_set', lower(current_setting('client_encoding'))), \
    ('database_character_set', lower(pg_encoding_to_char(d.encoding))), \
    ('collation', d.datcollate), \
    ('character_type', d.datctype), \
    ('isolation', current_setting('transaction_isolation')), \
    ('synchronous_commit', current_setting('synchronous_commit')), \
    ('time_zone', current_setting('timezone')), \
    ('autocommit', 'on'), \
    ('protocol', 'PostgreSQL 3'), \
    ('compression', 'off'), \
    ('tls', coalesce((select case when s.ssl then s.version || ' ' || s.cipher end \
        from pg_stat_ssl s where s.pid = pg_backend_pid()), 'none'))) f(name, value) \
    where d.datname = current_database()";

/// Asks the server about this session.
pub(super) fn of_session(session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
    let mut facts = Settings::new();
    session.for_each_row(FACTS, &mut |row| {
        if let [name, value] = row {
            facts.insert((*name).to_owned(), (*value).to_owned());
        }
    })?;
    Ok(facts)
}
