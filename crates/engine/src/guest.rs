//! Sessions from client hosts: an account that a trial makes for them on its server, and the other
//! end of it, which connects and does nothing else.

use std::collections::BTreeMap;
use std::net::{IpAddr, TcpListener};
use std::time::Duration;

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{ExternalServer, PasswordSource, ServerPlace, SessionClient, TlsMode};
use serde::{Deserialize, Serialize};

use crate::{
    DrainAction, DrainLimits, EngineError, Password, Server, Sessions, Settings, SqlServer, driver,
};

/// The account of client hosts. It is not the superuser.
pub(crate) const GUEST: &str = "plimsoll_clients";

/// Who connects to a server from other machines.
#[derive(Clone, Debug)]
pub struct Guests {
    /// The addresses of this machine that they connect to: the server listens there and nowhere
    /// else.
    pub listen: Vec<IpAddr>,
    /// Where they come from: nobody else is let in by the network.
    pub from: Vec<IpAddr>,
    /// Of the account that is made for them. Letters and digits only: it is a part of statements.
    pub password: Password,
}

/// What a client host connects with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GuestOrder {
    /// What the server is.
    pub engine: EngineName,
    /// Where it listens.
    pub address: IpAddr,
    /// On which port.
    pub port: u16,
    /// Of the account.
    pub password: Password,
    /// The cell's, which say how sessions begin.
    pub settings: Settings,
    /// Which client the sessions go through.
    pub client: SessionClient,
}

impl GuestOrder {
    /// The way to the workload's database.
    pub(crate) fn server(&self, database: &str) -> ExternalServer {
        ExternalServer {
            label: "of the trial".to_owned(),
            engine: self.engine,
            place: ServerPlace::Tcp {
                host: self.address.to_string(),
                port: self.port,
            },
            user: GUEST.to_owned(),
            database: database.to_owned(),
            password: PasswordSource::None,
            tls: TlsMode::Off,
            tls_ca: None,
        }
    }
}

/// A server of a trial on another machine, as far as workers need it.
///
/// # Errors
/// When the engine has no servers, or its settings cannot be read.
pub fn guest_server(order: &GuestOrder) -> Result<Box<dyn Server>, EngineError> {
    let Some(connect) = driver(order.engine).guest else {
        return Err(EngineError::new(format!(
            "{} takes no connections from client hosts; run the plan without them",
            order.engine
        )));
    };
    Ok(Box::new(GuestServer(connect(order)?)))
}

/// A port that is free at all of these addresses.
pub(crate) fn free_port(at: &[IpAddr]) -> Result<u16, EngineError> {
    let failed = |address: &IpAddr, error: std::io::Error| {
        EngineError::new(format!(
            "listen on {address} for the client hosts: {error}; name an address of this machine \
            with --server-address"
        ))
    };
    let Some((first, others)) = at.split_first() else {
        return Err(EngineError::new("listen for client hosts: there are none"));
    };
    let bound = TcpListener::bind((*first, 0)).map_err(|error| failed(first, error))?;
    let port = bound
        .local_addr()
        .map_err(|error| failed(first, error))?
        .port();
    for address in others {
        TcpListener::bind((*address, port)).map_err(|error| failed(address, error))?;
    }
    Ok(port)
}

/// Only connects: the trial does the rest, on the server's own machine.
struct GuestServer(Box<dyn SqlServer>);

fn not_here<T>() -> Result<T, EngineError> {
    Err(EngineError::new(
        "ask a server from a client host, which only connects; this is a bug",
    ))
}

impl Server for GuestServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(&*self.0)
    }

    fn effective_settings(&self) -> Result<Settings, EngineError> {
        not_here()
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        not_here()
    }

    fn drain(
        &self,
        _tables: &[String],
        _limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        not_here()
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        not_here()
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn stop(self: Box<Self>, _timeout: Duration) -> Result<(), EngineError> {
        Ok(())
    }
}
