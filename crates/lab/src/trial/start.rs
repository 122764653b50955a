//! A server comes up on the trial's data, with the settings of the steps that share its start.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use plimsoll_core::plan::Step;
use plimsoll_engine::{
    Engine, EngineError, External, Settings, StartOptions, engine, external_engine,
};
use plimsoll_host::{Cpus, pin_thread};
use plimsoll_store::event::{Event, ServerReady};
use plimsoll_store::layout::SERVER_FOLDER;
use plimsoll_workload::SharedServer;
use plimsoll_workload::kv::step_settings;

use super::Trial;
use super::early_end::EarlyEnd;
use super::session;
use crate::clients::Party;

/// Connections on top of the workers': one asks whether the server lives, one asks for its
/// counters.
const OWN_CONNECTIONS: u32 = 2;
/// On an external server one more holds the lock on our tables.
const LOCK_CONNECTIONS: u32 = 1;
/// Connections that PostgreSQL keeps for others than the ordinary users that external servers are
/// used as.
const RESERVED_CONNECTIONS: [&str; 2] = ["superuser_reserved_connections", "reserved_connections"];

/// A server that is up.
pub(super) struct StartedServer {
    pub server: SharedServer,
    /// As read back.
    pub settings: Settings,
    /// It is in this process.
    pub is_embedded: bool,
}

impl Trial<'_> {
    /// The engine of the cell's build, or of the plan's external server.
    pub(super) fn engine(&self) -> Result<Box<dyn Engine>, EngineError> {
        let order = self.order;
        match &order.cell.server {
            None => {
                let build = order.build.as_ref();
                let build = build.map(|build| build.at_link(order.link()));
                engine(&order.cell.build, build.as_ref())
            }
            Some(server) => external_engine(External {
                server: server.clone(),
                password: order.password.clone(),
                campaign: order.campaign.clone(),
                settings: order.settings.clone(),
            }),
        }
    }

    /// Starts the engine for a step and those that share its start, and reads back what it runs
    /// with.
    pub(super) fn start(
        &mut self,
        engine: &dyn Engine,
        step: &Step,
        log_dir: &Path,
    ) -> Result<StartedServer, EarlyEnd> {
        let started = Instant::now();
        let config = &self.order.cell.config;
        // An embedded engine's process, this one, already runs under them.
        let (prefix, env) = if engine.is_embedded() {
            (Vec::new(), BTreeMap::new())
        } else {
            (config.prefix.clone(), config.env.clone())
        };
        let options = StartOptions {
            log_dir: log_dir.to_owned(),
            prefix,
            env,
            transport: config.transport,
            client: config.client,
            guests: self.party.as_ref().map(Party::guests),
            ..StartOptions::new(
                &self.order.data_dir,
                step_settings(step, &self.order.settings),
            )
        };
        // What a thread begins runs where the thread may: the server on its CPUs, the workers on
        // theirs. An embedded engine is its worker.
        let placement = self.order.placement.as_ref();
        if let Some(placement) = placement {
            pin(if engine.is_embedded() {
                &placement.client_cpus
            } else {
                &placement.server_cpus
            })?;
        }
        let server: SharedServer = Arc::new(engine.start(&options)?);
        if let Some(placement) = placement {
            pin(&placement.client_cpus)?;
        }
        let _answers = self.limit_of_answers();
        let settings = server.effective_settings()?;
        // The clock goes on while a server is stopped for the turns of others.
        let held = if self.order.has_turns {
            server.hold_maintenance()?.map(str::to_owned)
        } else {
            None
        };
        let build = engine.build();
        self.events.append(&Event::ServerReady(ServerReady {
            version: build.version,
            build_options: build.options,
            embedded: engine.is_embedded(),
            effective_settings: settings.clone(),
            session: session::facts(&server, &self.order.cell.workload)?,
            held,
            seconds: started.elapsed().as_secs_f64(),
        }))?;
        Ok(StartedServer {
            server,
            settings,
            is_embedded: engine.is_embedded(),
        })
    }

    /// A server with too few connections would refuse a step after hours of loading.
    pub(super) fn check_connections(
        &self,
        settings: &BTreeMap<String, String>,
    ) -> Result<(), EarlyEnd> {
        let number = |name: &str| {
            settings
                .get(name)
                .and_then(|value| value.parse::<u32>().ok())
        };
        let clients = self.order.cell.workload.connections();
        let reserved = || -> u32 { RESERVED_CONNECTIONS.into_iter().filter_map(number).sum() };
        let (own, reserved, place) = match &self.order.cell.server {
            None => (
                OWN_CONNECTIONS + self.party.as_ref().map_or(0, Party::count),
                // Client hosts are not superusers.
                self.party.as_ref().map_or(0, |_| reserved()),
                format!("in [config.{}]", self.order.cell.config.label),
            ),
            Some(_) => (
                OWN_CONNECTIONS + LOCK_CONNECTIONS,
                reserved(),
                "of the server".to_owned(),
            ),
        };
        let own = own + u32::from(self.order.cell.config.waits_hz.is_some());
        let needed = clients + own + reserved;
        match number("max_connections") {
            Some(limit) if limit < needed => {
                let reserved = if reserved > 0 {
                    format!(", and {reserved} are reserved")
                } else {
                    String::new()
                };
                Err(EarlyEnd::Failed(format!(
                    "the server takes {limit} connections (max_connections), and the plan needs \
                    {needed}: {clients} for its workers and {own} to watch the server{reserved}; \
                    raise max_connections {place} or lower clients"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The folder of what the server leaves behind, made when it is not there.
    pub(super) fn make_server_dir(&self) -> Result<PathBuf, EarlyEnd> {
        let dir = self.order.dir.join(SERVER_FOLDER);
        fs::create_dir_all(&dir).map_err(|error| {
            EarlyEnd::Failed(format!("failed to make {}: {error}", dir.display()))
        })?;
        Ok(dir)
    }
}

fn pin(cpus: &str) -> Result<(), EarlyEnd> {
    let cpus = Cpus::parse(cpus).ok_or_else(|| {
        EarlyEnd::Failed(format!(
            "{cpus} is not a set of CPUs; write one like 0 or 1-3"
        ))
    })?;
    pin_thread(&cpus).map_err(|error| {
        EarlyEnd::Failed(format!(
            "the CPUs {cpus} cannot be used: {error}; choose others with --placement"
        ))
    })
}

pub(super) fn create_data_dir(dir: &Path) -> Result<(), EarlyEnd> {
    fs::create_dir_all(dir).map_err(|error| {
        EarlyEnd::Failed(format!(
            "failed to make the data directory {}: {error}",
            dir.display()
        ))
    })?;
    let mut entries = fs::read_dir(dir)
        .map_err(|error| EarlyEnd::Failed(format!("failed to read {}: {error}", dir.display())))?;
    if entries.next().is_some() {
        return Err(EarlyEnd::Failed(format!(
            "the data directory {} is not empty",
            dir.display()
        )));
    }
    Ok(())
}
