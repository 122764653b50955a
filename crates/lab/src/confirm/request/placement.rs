//! Which CPUs a confirm campaign works on, and whether idle ones sleep.

use plimsoll_core::plan::{Cell, IdleCpus};
use plimsoll_host::{AwakeCpus, Cpus};
use plimsoll_store::{Design, Placement};

use super::{ConfirmChoice, PlacementChoice};
use crate::error::LabError;

/// Where clients and servers are, in the order in which blocks or starts take them; empty when
/// nothing is pinned.
pub(super) fn placement(
    choice: &ConfirmChoice,
    design: Design,
    cells: &[Cell],
    notes: &mut Vec<String>,
) -> Result<Vec<Placement>, LabError> {
    let allowed = Cpus::allowed()
        .map_err(|error| LabError::io("failed to read which CPUs may be used", error))?;
    match &choice.placement {
        PlacementChoice::Unpinned => Ok(Vec::new()),
        PlacementChoice::Auto if design == Design::Blocks => Ok(Vec::new()),
        PlacementChoice::Auto if cells.iter().all(|cell| cell.build.engine.is_embedded()) => {
            notes.push("nothing is pinned: the engine is in the workers' process".to_owned());
            Ok(Vec::new())
        }
        PlacementChoice::Auto if allowed.count() < 2 => {
            notes.push("nothing is pinned: there is one CPU".to_owned());
            Ok(Vec::new())
        }
        PlacementChoice::Auto => {
            let clients = cells
                .iter()
                .flat_map(|cell| cell.workload.steps())
                .map(|step| step.clients)
                .max()
                .unwrap_or(1) as usize;
            // More CPUs than clients would be idle, and servers get at least half of all.
            let (client, server) = allowed.split(clients.clamp(1, allowed.count() / 2));
            let placement = Placement {
                client_cpus: client.to_string(),
                server_cpus: server.to_string(),
            };
            notes.push(format!("{placement} (--placement)"));
            Ok(vec![placement])
        }
        PlacementChoice::Given(placements) => placements
            .iter()
            .map(|placement| given(placement, &allowed, notes))
            .collect(),
    }
}

fn given(
    placement: &Placement,
    allowed: &Cpus,
    notes: &mut Vec<String>,
) -> Result<Placement, LabError> {
    let read = |text: &str| {
        let cpus = Cpus::parse(text).filter(|cpus| cpus.are_among(allowed));
        cpus.ok_or_else(|| {
            LabError::Usage(format!(
                "--placement: {text} is not a set of CPUs that may be used; those are {allowed}"
            ))
        })
    };
    let (client, server) = (read(&placement.client_cpus)?, read(&placement.server_cpus)?);
    let shared = client.meet(&server);
    let placement = Placement {
        client_cpus: client.to_string(),
        server_cpus: server.to_string(),
    };
    if shared {
        notes.push(format!(
            "{placement}: they share a CPU, and ratios of pinned pairs differ from these"
        ));
    }
    Ok(placement)
}

/// Verdicts are about what servers do, and waking a CPU is what the machine does.
pub(super) fn idle_cpus(requested: Option<IdleCpus>, notes: &mut Vec<String>) -> IdleCpus {
    let idle_cpus = requested.unwrap_or(IdleCpus::Awake);
    if idle_cpus == IdleCpus::Awake {
        notes.push(match AwakeCpus::keep() {
            Ok(_) => "idle CPUs are kept awake".to_owned(),
            Err(reason) => format!(
                "idle CPUs may sleep ({reason}): waking one takes time that varies, above all in a \
                virtual machine; run as root for narrower intervals"
            ),
        });
    }
    idle_cpus
}
