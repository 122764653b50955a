//! A PostgreSQL that the plan gives by its address, and that is not ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{ExternalServer, TlsMode};
use postgres::Client;

use super::drain;
use super::forms::PostgresForms;
use super::link::{CONNECT_LIMIT, ConnectError, Link, rows};
use super::server::ASK_LIMIT;
use super::{failure, readback, session, state, wire};
use crate::external::{
    self, Claim, DatabaseLock, Entrance, External, ExternalEngine, MARKER, PROGRAM,
};
use crate::{
    DrainAction, DrainLimits, Engine, EngineError, Password, Server, SessionClient, Sessions,
    Settings, SqlForms, SqlServer, SqlSession, tls,
};

/// The number of our lock in the database: our name.
const LOCK: i64 = i64::from_be_bytes(*b"plimsoll");

/// For the connection that holds the lock: nothing is sent on it for a whole trial, and a table
/// that a forgotten session holds is not waited for long.
const LONG_IDLE: &str = "select set_config('lock_timeout', '30s', false), (select set_config(name, \
                        '0', false) from pg_settings where name = 'idle_session_timeout')";

/// All that is in the database and not of the system or an extension: tables, views, sequences that
/// no table owns, and functions. Those of other schemas than ours with their schema.
const FIND_ALL: &str = "select case when n.nspname = current_schema() then c.relname else \
                       n.nspname || '.' || c.relname end from pg_class c join pg_namespace n on \
                       n.oid = c.relnamespace where c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') \
                       and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not \
                       exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass \
                       and d.objid = c.oid and (d.deptype = 'e' or (c.relkind = 'S' and d.deptype \
                       in ('a', 'i')))) union all select 'function ' || n.nspname || '.' || \
                       p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace \
                       where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and not \
                       exists (select 1 from pg_depend d where d.classid = 'pg_proc'::regclass and \
                       d.objid = p.oid and d.deptype = 'e')";

impl Entrance for Link {
    /// There are none.
    fn check_settings(settings: &Settings) -> Result<(), EngineError> {
        settings
            .keys()
            .next()
            .map_or(Ok(()), |name| Err(external::setting_refused(name)))
    }

    fn enter(
        &self,
        external: &External,
        client: SessionClient,
    ) -> Result<(Box<dyn Server>, String), EngineError> {
        let (server, version) = ExternalPostgres::enter(external, self, client)?;
        Ok((Box::new(server), version))
    }
}

/// The engine of an external PostgreSQL. Reads the certificate's file.
pub(super) fn engine(external: External) -> Result<Box<dyn Engine>, EngineError> {
    let link = Link::external(&external.server, external.password.as_ref())?;
    Ok(Box::new(ExternalEngine::new(external, link)))
}

/// Somebody's server, with a database that is ours for a while.
struct ExternalPostgres {
    server: ExternalServer,
    link: Link,
    version_num: u32,
    campaign: String,
    /// Of the workers' sessions.
    client: SessionClient,
    claim: Claim<Client>,
}

impl ExternalPostgres {
    fn enter(
        external: &External,
        link: &Link,
        wanted: SessionClient,
    ) -> Result<(Self, String), EngineError> {
        let server = external.server.clone();
        let mut client = link
            .try_connect(Instant::now() + CONNECT_LIMIT)
            .map_err(|error| refusal(&error, &server, external.password.as_ref()))?;
        let versions = answers(
            &mut client,
            "select current_setting('server_version_num'), current_setting('server_version')",
        )?;
        let (version_num, version) = versions
            .first()
            .and_then(|row| Some((row.first()?.parse().ok()?, row.get(1)?.clone())))
            .ok_or_else(|| {
                EngineError::new(format!(
                    "the server {} states no version_num; it must be PostgreSQL itself",
                    server.label
                ))
            })?;
        let entered = Self {
            link: link.clone(),
            version_num,
            campaign: external.campaign.clone(),
            client: wanted,
            claim: Claim::take(client, &server.database)?,
            server,
        };
        entered.claim_tables(&[MARKER.to_owned()])?;
        Ok((entered, version))
    }

    /// Drops our tables and the marker, within `limit`.
    fn leave(&self, limit: Duration) -> Result<(), EngineError> {
        let link = self.link.clone();
        self.claim
            .leave(&self.server, limit, move || link.connect())
    }
}

impl DatabaseLock for Client {
    fn lock(&mut self, database: &str) -> Result<(), EngineError> {
        run(self, LONG_IDLE)?;
        let got = names(self, &format!("select pg_try_advisory_lock({LOCK})"))?;
        if got.first().is_some_and(|got| got == "t") {
            Ok(())
        } else {
            Err(external::in_use(database))
        }
    }

    fn is_alive(&mut self) -> bool {
        self.simple_query("").is_ok()
    }

    fn contents(&mut self) -> Result<Vec<String>, EngineError> {
        names(self, FIND_ALL)
    }

    fn marked(&mut self, database: &str) -> Result<Vec<String>, EngineError> {
        let sql = format!(
            "select table_name from {MARKER} where made_by = '{PROGRAM}' and campaign <> ''"
        );
        names(self, &sql).map_err(|error| external::unreadable_marker(database, &error.message))
    }

    fn make_marker(&mut self) -> Result<(), EngineError> {
        let sql = format!(
            "create table if not exists {MARKER} (table_name text primary key, campaign text not \
            null, made_by text not null)"
        );
        run(self, &sql)
    }

    /// In one statement, for partitions go with their table.
    fn drop_tables(&mut self, tables: &[String]) -> Result<(), EngineError> {
        if tables.is_empty() {
            return Ok(());
        }
        let quoted: Vec<String> = tables
            .iter()
            .map(|table| format!("\"{}\"", table.replace('"', "\"\"")))
            .collect();
        run(self, &format!("drop table {}", quoted.join(", ")))
    }

    /// A server process ends some time after its connection, and its locks with it: the next
    /// campaign may be faster.
    fn unlock(&mut self) -> Result<(), EngineError> {
        run(self, &format!("select pg_advisory_unlock({LOCK})"))
    }
}

fn run(client: &mut Client, sql: &str) -> Result<(), EngineError> {
    client
        .batch_execute(sql)
        .map_err(|error| failure::engine_error(sql, &error))
}

fn answers(client: &mut Client, sql: &str) -> Result<Vec<Vec<String>>, EngineError> {
    let found = rows(client, sql).map_err(|error| failure::engine_error(sql, &error))?;
    Ok(found
        .iter()
        .map(|row| {
            (0..row.len())
                .map(|column| row.get(column).unwrap_or_default().to_owned())
                .collect()
        })
        .collect())
}

fn names(client: &mut Client, sql: &str) -> Result<Vec<String>, EngineError> {
    Ok(answers(client, sql)?
        .into_iter()
        .filter_map(|row| row.into_iter().next())
        .collect())
}

/// Why there is no connection, and what to do.
fn refusal(
    error: &ConnectError,
    server: &ExternalServer,
    password: Option<&Password>,
) -> EngineError {
    let (place, label) = (&server.place, &server.label);
    let reason = match error {
        ConnectError::Late => format!(
            "{place} did not answer within {CONNECT_LIMIT:?}; check the address in the dsn, and \
            the network"
        ),
        ConnectError::Refused(error) => match (error.as_db_error(), tls::explain(error, server)) {
            (Some(said), _) => match said.code().code() {
                code if wire::wants_tls(code, said.message()) => {
                    format!(
                        "{}; {}",
                        external::access_denied(server, said.message(), password.is_some()),
                        wire::TLS_ADVICE
                    )
                }
                "28P01" | "28000" => {
                    external::access_denied(server, said.message(), password.is_some())
                }
                "3D000" => format!(
                    "{place} has no database {}; make an empty one for this",
                    server.database
                ),
                "42501" => format!(
                    "{place} does not let {} into {}; grant connect and create on it",
                    server.user, server.database
                ),
                code => format!("{place} says: {}, SQLSTATE {code}", said.message()),
            },
            (None, Some(reason)) => reason,
            (None, None) => {
                // The client library has no codes for what it finds itself.
                let words = failure::words(error);
                if password.is_none() && words.contains("password") {
                    external::access_denied(server, "it asks for a password", false)
                } else if server.tls == TlsMode::VerifyFull
                    && words.contains("does not support TLS")
                {
                    format!(
                        "{place} offers no TLS; switch it on there (ssl = on), or set tls = \
                        \"off\" in [server.{label}] where the network is safe"
                    )
                } else {
                    format!(
                        "nobody answers at {place} ({words}); check that the server runs and that \
                        the dsn of [server.{label}] is its address"
                    )
                }
            }
        },
    };
    EngineError::new(format!("connect to the server {label}: {reason}"))
}

impl SqlServer for ExternalPostgres {
    fn forms(&self) -> &'static dyn SqlForms {
        &PostgresForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        session::open(&self.link, self.client)
    }

    fn claim_tables(&self, tables: &[String]) -> Result<(), EngineError> {
        let (tables, campaign) = (tables.to_vec(), self.campaign.clone());
        let sql = format!(
            "insert into {MARKER} (table_name, campaign, made_by) values ($1, $2, '{PROGRAM}') on \
            conflict (table_name) do update set campaign = $2"
        );
        self.link.ask("mark our tables", ASK_LIMIT, move |client| {
            tables
                .iter()
                .try_for_each(|table| client.execute(&sql, &[table, &campaign]).map(drop))
        })
    }
}

impl Server for ExternalPostgres {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    /// All parameters but secrets, `session_tls`: the protocol and cipher of our connections, or
    /// `off`, and `session_client`: what the workers' sessions speak through.
    fn effective_settings(&self) -> Result<Settings, EngineError> {
        let mut settings = self.link.ask("read pg_settings", ASK_LIMIT, |client| {
            let mut settings = readback::effective(client, &Settings::new(), &[])?;
            let session = rows(
                client,
                "select version, cipher from pg_stat_ssl where pid = pg_backend_pid()",
            )?;
            let text = |column| {
                session
                    .first()
                    .and_then(|row| row.get(column))
                    .unwrap_or_default()
            };
            settings.insert(
                external::SESSION_TLS.to_owned(),
                external::session_tls(text(0), text(1)),
            );
            Ok(settings)
        })?;
        settings.insert(
            external::SESSION_CLIENT.to_owned(),
            session::client_name(&self.link, self.client).to_owned(),
        );
        readback::hide_secrets(&mut settings);
        Ok(settings)
    }

    /// Of the whole server or the whole database, whoever uses it.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        let version_num = self.version_num;
        self.link
            .ask("read the statistics views", ASK_LIMIT, move |client| {
                state::counters(client, version_num)
            })
    }

    fn save_state(&self, dir: &Path, moment: &str) -> Result<(), EngineError> {
        let (moment, version_num) = (moment.to_owned(), self.version_num);
        let question =
            move |client: &mut Client| state::state(client, &moment, version_num, false, false);
        state::write(
            dir,
            &self
                .link
                .ask("read the statistics views", ASK_LIMIT, question)?,
        )
    }

    /// Our tables are vacuumed and analysed; a checkpoint is the whole server's, and left to it.
    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        drain::watch(&self.link, self.version_num, tables, limits)
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        let sql = "select pg_database_size(current_database())";
        let bytes = self.link.ask(sql, ASK_LIMIT, |client| {
            Ok(rows(client, sql)?
                .first()
                .and_then(|row| row.get(0)?.parse().ok()))
        })?;
        bytes.ok_or_else(|| {
            EngineError::new("read the database's size: it is not a number; see the server's log")
        })
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The server goes on; our tables and the marker are dropped.
    fn stop(self: Box<Self>, timeout: Duration) -> Result<(), EngineError> {
        self.leave(timeout)
    }
}

impl Drop for ExternalPostgres {
    fn drop(&mut self) {
        // After an error that is reported. What cannot be dropped now the next campaign on this
        // database drops.
        let _ = self.leave(external::LEAVE_LIMIT);
    }
}
