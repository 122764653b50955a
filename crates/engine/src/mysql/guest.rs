//! Client hosts at a server of a trial: where it listens for them, their accounts, and their end.

use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::forms::MysqlForms;
use super::options::ServerConfig;
use super::server::DATABASE;
use super::start::launch;
use super::{external, failure, session};
use crate::guest::{GUEST, GuestOrder, Guests};
use crate::{EngineError, SessionClient, SqlForms, SqlServer, SqlSession};

/// Keeps the session's statements out of the general, the slow and the binary log.
const QUIET: [&str; 3] = [
    "set sql_log_off = 1",
    "set session long_query_time = 31536000",
    "set sql_log_bin = 0",
];
/// The session's statements are logged as the server's settings say.
const LOUD: [&str; 3] = [
    "set sql_log_bin = 1",
    "set session long_query_time = default",
    "set sql_log_off = 0",
];

/// How the server listens for them and for nobody else on the network. It looks up no names: that
/// may take seconds per connection.
pub(super) fn listen(guests: &Guests, port: u16) -> Result<Vec<String>, EngineError> {
    let [address] = guests.listen[..] else {
        return Err(EngineError::new(
            "listen for the client hosts: they reach this machine at several addresses, and \
            servers of the family listen on one; name one with --server-address",
        ));
    };
    Ok(vec![
        format!("--bind-address={address}"),
        format!("--port={port}"),
        "--skip-name-resolve".to_owned(),
    ])
}

/// Makes an account for each address, in place of one that is there. Each may do what it likes in
/// the workload's database, and nothing elsewhere. The statements are in no log: not every server of
/// the family leaves passwords out of its own.
pub(super) fn make_accounts(connection: &mut Conn, guests: &Guests) -> Result<(), EngineError> {
    let mut run = |sql: &str, doing: &str| {
        connection
            .query_drop(sql)
            .map_err(|error| failure::engine_error(doing, &error))
    };
    for quiet in QUIET {
        run(quiet, quiet)?;
    }
    for address in &guests.from {
        let account = format!("'{GUEST}'@'{address}'");
        // One that a copied data directory has; 5.5 and 5.6 have no `if exists` for it.
        let _ = run(&format!("drop user {account}"), "drop an account");
        let password = guests.password.reveal();
        run(
            &format!("create user {account} identified by '{password}'"),
            &format!("create user {account}"),
        )?;
        let grant = format!("grant all on {DATABASE}.* to {account}");
        run(&grant, &grant)?;
    }
    for loud in LOUD {
        run(loud, loud)?;
    }
    Ok(())
}

/// A server on another machine, as a client host reaches it.
struct MysqlGuest {
    opts: Opts,
    config: ServerConfig,
    client: SessionClient,
}

/// The way to it.
pub(super) fn server(order: &GuestOrder) -> Result<Box<dyn SqlServer>, EngineError> {
    let config = ServerConfig::parse(&order.settings)?;
    let opts = external::opts(&order.server(DATABASE), Some(&order.password))
        .init(launch::session_init(&config.charset))
        .into();
    Ok(Box::new(MysqlGuest {
        opts,
        config,
        client: order.client,
    }))
}

impl SqlServer for MysqlGuest {
    fn forms(&self) -> &'static dyn SqlForms {
        MysqlForms::of_tables(self.config.is_rocksdb())
    }

    fn table_suffix(&self) -> String {
        format!(" engine={}", self.config.storage_engine)
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        session::open(self.opts.clone(), self.client)
    }
}
