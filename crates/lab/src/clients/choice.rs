//! Which hosts the clients are on, and which campaigns can have clients elsewhere.

use std::net::IpAddr;
use std::path::PathBuf;

use plimsoll_core::plan::{Plan, Verdicts};
use plimsoll_store::ClientHostsHeader;
use serde::{Deserialize, Serialize};

use crate::confirm::no_turns_elsewhere;
use crate::error::LabError;
use crate::fleet::{Desk, Host, program_on};

/// The machines that run the clients of a campaign's steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientHosts {
    /// With the path of this program there.
    pub(super) hosts: Vec<(Host, PathBuf)>,
    /// The address at which they reach this machine; none for the one that ssh comes from.
    pub(super) server_address: Option<IpAddr>,
    /// A host that says nothing for this long is lost.
    pub(super) patience_ns: u64,
}

impl ClientHosts {
    /// These hosts, which have this desk's program.
    pub fn new(desk: &Desk, hosts: Vec<Host>, server_address: Option<IpAddr>) -> Self {
        let with_program = |host: Host| {
            let program = program_on(&host, &desk.sha256);
            (host, program)
        };
        Self {
            hosts: hosts.into_iter().map(with_program).collect(),
            server_address,
            patience_ns: desk.patience.as_nanos() as u64,
        }
    }

    /// What a campaign says of them.
    pub fn header(&self) -> ClientHostsHeader {
        ClientHostsHeader {
            names: self
                .hosts
                .iter()
                .map(|(host, _)| host.name.clone())
                .collect(),
            server_address: self.server_address.map(|address| address.to_string()),
        }
    }
}

/// Refuses a plan whose clients cannot be on other machines, with how it comes to verdicts.
///
/// # Errors
/// Which cell cannot, why, and what to do.
pub fn check_plan(plan: &Plan, verdicts: Option<Verdicts>) -> Result<(), LabError> {
    if let Some(Verdicts::Budget(_)) = verdicts {
        return Err(no_turns_elsewhere());
    }
    for cell in &plan.cells {
        let engine = cell.build.engine;
        let reason = if cell.server.is_some() {
            "its server is not ours, and no account is made on it: run the plan on the client host \
            itself"
        } else if engine.facts().dsn.is_none() {
            "its engine is in its client's process: run it without --clients"
        } else {
            continue;
        };
        return Err(LabError::Usage(format!("cell {}: {reason}", cell.label)));
    }
    Ok(())
}
