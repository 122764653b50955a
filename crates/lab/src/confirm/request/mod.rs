//! From a screen and what of it shall be confirmed to a confirm campaign. Nothing is written before
//! everything is checked.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::{Cell, Driver, IdleCpus, Plan, Verify};
use plimsoll_core::plan::{Division, divide, in_turns};
use plimsoll_core::schedule::schedule_with_control;
use plimsoll_core::units::format_bytes;
use plimsoll_host::{AwakeCpus, Cpus};
use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};
use plimsoll_store::{BisectionProbe, CampaignDir, Confirm, Design, Placement, Store};

use crate::campaign::{check_free, create_in_store, peak_size};
use crate::confirm::memory::{server_bytes, usable_bytes};
use crate::error::LabError;
use crate::places::{DataTurn, check_data_root, prepare_data_root, take_data_root_once};
use crate::trial_process::CONTROL;

const SECOND_NS: u64 = 1_000_000_000;
const TURN_NS_READ: u64 = 20_000_000;
const TURN_NS_WRITE: u64 = 50_000_000;
/// A step in turns has so long over all starts.
pub(super) const SLICES_TIME_NS: u64 = 60 * SECOND_NS;
/// A step of a block that ends by time is no longer than this.
const BLOCKS_TIME_NS: u64 = 60 * SECOND_NS;
pub(super) const STARTS: u32 = 5;
/// With n pairs no two-sided signed-rank test gives less than 2 / 2^n; with fewer than six that is
/// above 0.05.
const FEWEST_BLOCKS: u32 = 6;
/// Enough for a campaign of a dozen questions (spec of the method: n >= log2(40 F)).
const BLOCKS: u32 = 12;
/// The equivalence margin.
const DELTA: f64 = 0.03;
const ALPHA: f64 = 0.05;

/// Blocks that a lone effect among so many questions needs to survive the correction for all of
/// them.
pub(super) fn blocks_to_decide(questions: usize) -> u32 {
    (plimsoll_stats::blocks_to_decide(questions, ALPHA) as u32).max(FEWEST_BLOCKS)
}

/// How candidates shall meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignChoice {
    /// By slices where that is possible, else by blocks.
    Auto,
    /// By slices; with turns of these lengths in nanoseconds, reads and writes.
    Slices(Option<(u64, u64)>),
    /// By so many blocks.
    Blocks(u32),
}

/// On which CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlacementChoice {
    /// Disjoint sets where there are two CPUs or more and servers of their own; nothing is pinned
    /// in blocks.
    Auto,
    /// Wherever the kernel likes.
    Unpinned,
    /// These.
    Given(Placement),
}

/// What is wanted of a confirm campaign.
#[derive(Clone, Debug)]
pub struct ConfirmChoice {
    /// The steps.
    pub steps: Vec<String>,
    /// Whether they are all there are: then those that cannot take turns are left out where the
    /// others do.
    pub is_all: bool,
    /// Labels of the cells; none means all. Without the plan's base among them, the first one is
    /// the base.
    pub cells: Vec<String>,
    /// How they meet.
    pub design: DesignChoice,
    /// Slices: the longest time of a step over all starts; blocks: the length of a step that ends
    /// by time. In nanoseconds.
    pub time_ns: Option<u64>,
    /// Slices: starts.
    pub starts: Option<u32>,
    /// On which CPUs.
    pub placement: PlacementChoice,
    /// So long each server is profiled in each step afterwards, in nanoseconds; none for no
    /// profiles.
    pub profile_ns: Option<u64>,
}

/// What a confirm campaign is made of.
pub struct ConfirmRequest<'a> {
    /// The campaign whose cells are candidates; without an id one that was never made.
    pub screen: &'a CampaignHeader,
    /// What is wanted.
    pub choice: ConfirmChoice,
    /// The search that it is a probe of.
    pub bisection: Option<BisectionProbe>,
    /// Where data directories go.
    pub data_dir: &'a Path,
    /// This program's version.
    pub plimsoll_version: &'a str,
}

/// Makes a confirm campaign in the store and takes its data folder. The sentences say what was
/// chosen, and why.
pub fn create_confirm(
    store: &Store,
    request: &ConfirmRequest<'_>,
) -> Result<(CampaignDir, DataTurn, Vec<String>), LabError> {
    let (screen, choice) = (request.screen, &request.choice);
    let mut notes = Vec::new();
    let Candidates {
        cells,
        headers,
        base,
    } = candidates(screen, &choice.cells)?;
    let (base_label, control_label) = (
        cells[base].label.clone(),
        cells[cells.len() - 1].label.clone(),
    );
    if cells.len() == 2 {
        notes.push("there is one cell: nothing but the A/A control is measured".to_owned());
    }
    let Measured {
        design,
        wanted,
        divisions,
    } = measured(choice, &cells, &headers, &mut notes)?;
    let steps = divisions[0].steps.iter().map(|step| step.name.clone());
    let placement = placement(choice, design, &cells, &mut notes)?;
    let is_slices = design == Design::Slices;
    let blocks = match choice.design {
        DesignChoice::Blocks(0) => {
            return Err(LabError::Usage(
                "no block is no measurement; --blocks 6 decide one question, 12 a dozen".into(),
            ));
        }
        DesignChoice::Blocks(blocks) => blocks,
        _ => BLOCKS,
    };
    // A search has as many probes as it takes.
    if !is_slices && blocks < FEWEST_BLOCKS && request.bisection.is_none() {
        notes.push(format!(
            "{blocks} blocks cannot decide anything at the level of {ALPHA}: {FEWEST_BLOCKS} are \
            the fewest that can"
        ));
    }
    let starts = choice.starts.unwrap_or(STARTS);
    let time_ns = choice.time_ns.unwrap_or(if is_slices {
        SLICES_TIME_NS
    } else {
        BLOCKS_TIME_NS
    });
    let (turn_ns_read, turn_ns_write) = match choice.design {
        DesignChoice::Slices(Some(turns)) => turns,
        _ => (TURN_NS_READ, TURN_NS_WRITE),
    };
    let confirm = Confirm {
        of: Some(screen.id.clone()).filter(|id| !id.is_empty()),
        design,
        steps: steps.filter(|step| wanted.contains(step)).collect(),
        base: base_label,
        control: control_label,
        starts: is_slices.then_some(starts),
        blocks: (!is_slices).then_some(blocks),
        turn_ns_read,
        turn_ns_write,
        time_ns,
        before: divisions
            .iter()
            .map(|division| division.before.clone())
            .collect(),
        placement,
        delta: DELTA,
        alpha: ALPHA,
        profile_ns: choice.profile_ns,
        bisection: request.bisection.clone(),
    };
    check_data_root(request.data_dir)?;
    let bytes = disk_bytes(&cells, &headers, design);
    let turn = take_data_root_once(request.data_dir, || {
        check_free(bytes, "all candidates together", request.data_dir)
    })?;
    let rounds = if is_slices { starts } else { blocks };
    let plan = Plan {
        name: format!(
            "{}-{}",
            screen.plan.name,
            if request.bisection.is_some() {
                "bisect"
            } else {
                "confirm"
            }
        ),
        comparable: false,
        cells: cells
            .into_iter()
            .zip(&divisions)
            .map(|(cell, division)| short(cell, division, choice, is_slices, time_ns))
            .collect(),
        base,
        blocks: rounds,
        // Counting rows after every step would be a visit to the caches.
        verify: if screen.plan.verify == Verify::Full {
            Verify::End
        } else {
            screen.plan.verify
        },
        report: Vec::new(),
        idle_cpus: Some(idle_cpus(screen.plan.idle_cpus, &mut notes)),
        ..screen.plan.clone()
    };
    let data_dir = prepare_data_root(request.data_dir)?;
    let header = CampaignHeader {
        format: FORMAT,
        id: String::new(),
        created: plimsoll_store::utc_now(),
        plimsoll_version: request.plimsoll_version.to_owned(),
        methodology_version: METHODOLOGY_VERSION,
        seed: screen.seed,
        plan_text: screen.plan_text.clone(),
        schedule: schedule_with_control(plan.cells.len(), rounds, screen.seed),
        cells: headers,
        plan,
        data_dir: data_dir.display().to_string(),
        confirm: Some(confirm),
    };
    let name = header.plan.name.clone();
    Ok((create_in_store(store, header, &name)?, turn, notes))
}

struct Candidates {
    /// The control is the last.
    cells: Vec<Cell>,
    headers: Vec<CellHeader>,
    base: usize,
}

fn candidates(screen: &CampaignHeader, wanted: &[String]) -> Result<Candidates, LabError> {
    let labels: Vec<&str> = screen
        .plan
        .cells
        .iter()
        .map(|cell| cell.label.as_str())
        .collect();
    let find = |wanted: &String| {
        let exact = labels.iter().position(|label| label == wanted);
        let of_build = || {
            screen
                .plan
                .cells
                .iter()
                .position(|cell| cell.build.to_string() == *wanted)
        };
        exact.or_else(of_build).ok_or_else(|| {
            let hint = plimsoll_core::suggest::hint(wanted, labels.iter().copied());
            LabError::Usage(format!(
                "campaign {} has no cell {wanted}{hint}; its cells are {}",
                screen.id,
                labels.join(", ")
            ))
        })
    };
    let chosen: Vec<usize> = if wanted.is_empty() {
        (0..labels.len()).collect()
    } else {
        wanted.iter().map(find).collect::<Result<_, _>>()?
    };
    let base = chosen
        .iter()
        .position(|&cell| cell == screen.plan.base)
        .unwrap_or(0);
    let mut cells: Vec<Cell> = chosen
        .iter()
        .map(|&cell| screen.plan.cells[cell].clone())
        .collect();
    let mut headers: Vec<CellHeader> = chosen
        .iter()
        .map(|&cell| screen.cells[cell].clone())
        .collect();
    if let Some(cell) = cells.iter().find(|cell| cell.server.is_some()) {
        return Err(LabError::Usage(format!(
            "cell {} is on a server that is not ours: it can neither be started beside a second \
            instance nor have its data copied; confirm cells with builds of ours with --cells",
            cell.label
        )));
    }
    if let Some((header, reason)) = headers
        .iter()
        .find_map(|header| Some((header, header.missing_build.as_ref()?)))
    {
        return Err(LabError::Usage(format!(
            "the build of cell {} could not be fetched ({reason}); fetch it, or leave the cell out \
            with --cells",
            header.label
        )));
    }
    if cells.is_empty() {
        return Err(LabError::Usage(format!(
            "campaign {} has no cells to confirm",
            screen.id
        )));
    }
    let (mut control, mut header) = (cells[base].clone(), headers[base].clone());
    control.label.push_str(CONTROL);
    header.label.clone_from(&control.label);
    cells.push(control);
    headers.push(header);
    Ok(Candidates {
        cells,
        headers,
        base,
    })
}

/// All cells must begin with the same state and run the same steps.
fn divisions(cells: &[Cell], steps: &[String]) -> Result<Vec<Division>, LabError> {
    let divisions: Vec<Division> = cells
        .iter()
        .map(|cell| {
            divide(&cell.workload, steps)
                .map_err(|error| LabError::Usage(format!("cell {}: {error}", cell.label)))
        })
        .collect::<Result<_, _>>()?;
    let names = |division: &Division| -> Vec<Vec<String>> {
        [&division.before, &division.steps]
            .map(|steps| steps.iter().map(|step| step.name.clone()).collect())
            .to_vec()
    };
    let differs = |(cell, division): (&Cell, &Division)| {
        names(division) != names(&divisions[0]) || cell.workload != cells[0].workload
    };
    match cells.iter().zip(&divisions).position(differs) {
        None => Ok(divisions),
        Some(other) => Err(LabError::Usage(format!(
            "cells {} and {} do not have the same data states: they come to {} by other steps or \
            sizes; confirm cells of one shape with --cells",
            cells[0].label,
            cells[other].label,
            steps.join(", ")
        ))),
    }
}

/// What is measured, and how candidates meet.
struct Measured {
    design: Design,
    wanted: Vec<String>,
    divisions: Vec<Division>,
}

fn measured(
    choice: &ConfirmChoice,
    cells: &[Cell],
    headers: &[CellHeader],
    notes: &mut Vec<String>,
) -> Result<Measured, LabError> {
    let workload = &cells[0].workload;
    let wanted: Vec<String> = choice
        .steps
        .iter()
        .map(|step| workload.step_name(step))
        .collect();
    let by_blocks = |wanted: Vec<String>| -> Result<Measured, LabError> {
        Ok(Measured {
            design: Design::Blocks,
            divisions: divisions(cells, &wanted)?,
            wanted,
        })
    };
    if let DesignChoice::Blocks(_) = choice.design {
        return by_blocks(wanted);
    }
    if choice.starts == Some(0) {
        return Err(LabError::Usage(format!(
            "no start is no measurement; --starts {STARTS} is what there is without it"
        )));
    }
    let turning = if choice.is_all {
        in_turns(workload, &wanted)
    } else {
        Vec::new()
    };
    let in_slices = if turning.is_empty() {
        wanted.clone()
    } else {
        turning
    };
    let divisions = divisions(cells, &in_slices)?;
    let candidates: Vec<Candidate<'_>> = cells
        .iter()
        .zip(headers)
        .map(|(cell, header)| (cell, &header.settings))
        .collect();
    match slices_bytes(&candidates, &divisions[0], &in_slices) {
        Ok(bytes) => {
            notes.push(format!(
                "by slices: the servers of all {} candidates fit into memory ({})",
                cells.len(),
                format_bytes(bytes)
            ));
            notes.extend(
                wanted
                    .iter()
                    .filter(|step| !in_slices.contains(step))
                    .map(|step| {
                        format!(
                            "left out: {step} does a fixed number of things: --step {step} \
                            --blocks {BLOCKS} confirms it"
                        )
                    }),
            );
            Ok(Measured {
                design: Design::Slices,
                wanted: in_slices,
                divisions,
            })
        }
        Err(reason) if matches!(choice.design, DesignChoice::Slices(_)) => {
            Err(LabError::Usage(format!("{reason}; take --blocks {BLOCKS}")))
        }
        Err(reason) if choice.starts.is_some() => Err(LabError::Usage(format!(
            "--starts is for slices, which cannot be: {reason}; take --blocks {BLOCKS}"
        ))),
        Err(reason) => {
            notes.push(format!("by blocks: {reason}"));
            by_blocks(wanted)
        }
    }
}

/// A cell and the settings of its config.
pub(super) type Candidate<'a> = (&'a Cell, &'a BTreeMap<String, String>);

/// Bytes of memory that the servers of all candidates take at once, or why they cannot have turns.
pub(super) fn slices_bytes(
    candidates: &[Candidate<'_>],
    division: &Division,
    wanted: &[String],
) -> Result<u64, String> {
    if let Some((cell, _)) = candidates
        .iter()
        .find(|(cell, _)| cell.config.driver == Driver::DbBench)
    {
        return Err(format!(
            "db_bench drives cell {}, and does not stop for the turns of others",
            cell.label
        ));
    }
    if let Some(reason) = division.why_no_turns(wanted) {
        return Err(reason);
    }
    let needed: u64 = candidates
        .iter()
        .map(|(cell, settings)| server_bytes(cell, settings))
        .sum();
    match usable_bytes() {
        Some(usable) if needed > usable => Err(format!(
            "the servers of {} candidates take about {} together, and {} are available",
            candidates.len(),
            format_bytes(needed),
            format_bytes(usable)
        )),
        _ => Ok(needed),
    }
}

fn placement(
    choice: &ConfirmChoice,
    design: Design,
    cells: &[Cell],
    notes: &mut Vec<String>,
) -> Result<Option<Placement>, LabError> {
    let allowed = Cpus::allowed()
        .map_err(|error| LabError::io("failed to read which CPUs may be used", error))?;
    match &choice.placement {
        PlacementChoice::Unpinned => Ok(None),
        PlacementChoice::Auto if design == Design::Blocks => Ok(None),
        PlacementChoice::Auto if cells.iter().all(|cell| cell.build.engine.is_embedded()) => {
            notes.push("nothing is pinned: the engine is in the workers' process".to_owned());
            Ok(None)
        }
        PlacementChoice::Auto if allowed.count() < 2 => {
            notes.push("nothing is pinned: there is one CPU".to_owned());
            Ok(None)
        }
        PlacementChoice::Auto => {
            let clients = cells
                .iter()
                .flat_map(|cell| cell.workload.steps())
                .map(|step| step.clients)
                .max()
                .unwrap_or(1) as usize;
            let (client, server) = allowed.split(clients.clamp(1, allowed.count() / 2));
            notes.push(format!(
                "clients on CPU {client}, servers on CPU {server} (--placement)"
            ));
            Ok(Some(Placement {
                client_cpus: client.to_string(),
                server_cpus: server.to_string(),
            }))
        }
        PlacementChoice::Given(placement) => {
            let read = |text: &str| {
                let cpus = Cpus::parse(text).filter(|cpus| cpus.are_among(&allowed));
                cpus.ok_or_else(|| {
                    LabError::Usage(format!(
                        "--placement: {text} is no set of CPUs that may be used; those are \
                        {allowed}"
                    ))
                })
            };
            let (client, server) = (read(&placement.client_cpus)?, read(&placement.server_cpus)?);
            if client.meet(&server) {
                notes.push(format!(
                    "clients on CPU {client} and servers on CPU {server} share a CPU: ratios of \
                    pinned pairs differ from these"
                ));
            }
            Ok(Some(Placement {
                client_cpus: client.to_string(),
                server_cpus: server.to_string(),
            }))
        }
    }
}

/// Verdicts are about what servers do, and waking a CPU is what the machine does.
fn idle_cpus(wanted: Option<IdleCpus>, notes: &mut Vec<String>) -> IdleCpus {
    let idle_cpus = wanted.unwrap_or(IdleCpus::Awake);
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

/// What data takes: by slices all states and all copies at once, by blocks all states and the
/// largest copy.
fn disk_bytes(cells: &[Cell], headers: &[CellHeader], design: Design) -> u64 {
    let sizes: Vec<u64> = cells
        .iter()
        .zip(headers)
        .map(|(cell, header)| peak_size(cell, &header.settings).1)
        .collect();
    // The control has the base's state.
    let states: u64 = sizes[..sizes.len() - 1].iter().sum();
    let copies = match design {
        Design::Slices => sizes.iter().sum(),
        Design::Blocks => sizes.iter().copied().max().unwrap_or(0),
    };
    states + copies
}

/// The cell with the steps of its trials.
fn short(
    mut cell: Cell,
    division: &Division,
    choice: &ConfirmChoice,
    is_slices: bool,
    time_ns: u64,
) -> Cell {
    let mut steps = division.steps.clone();
    for step in steps.iter_mut().filter(|_| !is_slices) {
        if let Some(planned_ns) = step.duration_ns() {
            step.set_duration(
                if choice.time_ns.is_some() {
                    time_ns
                } else {
                    planned_ns.min(time_ns)
                },
                None,
            );
        }
    }
    cell.workload = cell.workload.with_steps(steps);
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_questions_need_more_blocks() {
        for (questions, blocks) in [(0, 6), (1, 6), (10, 9), (32, 11), (100, 12), (300, 14)] {
            assert_eq!(blocks_to_decide(questions), blocks, "{questions}");
        }
    }
}
