//! Profiles of servers, base and cell side by side: which functions moved, and a tree for a
//! differential flame graph.

mod functions;
mod tree;

use plimsoll_stats::mean;
use plimsoll_store::{CampaignRecord, Profile, ProfileAbout, read_profiles};

use crate::metrics::SERVER_CPU_US_PER_OP;
use crate::runs::cell_runs::CellRuns;
use crate::verdicts::{Change, Explanation, changes, percent};
use functions::moved;
pub use functions::{FunctionChange, Shown};
pub use tree::FlameNode;
use tree::tree;

/// Functions that are listed.
const MOST_FUNCTIONS: usize = 10;

/// The profiles of a cell and of the base in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiled {
    pub step: String,
    /// The cell's place among those shown.
    pub cell: usize,
    pub base_label: String,
    pub cell_label: String,
    /// How the base's profile was taken.
    pub base: ProfileAbout,
    /// How the cell's profile was taken.
    pub about: ProfileAbout,
    /// Whether several passes of both judge each function.
    pub is_judged: bool,
    /// The functions that moved most, most first.
    pub functions: Vec<FunctionChange>,
    /// All stacks; empty where there is a reason.
    pub tree: FlameNode,
    /// Why one of the profiles says nothing.
    pub reason: Option<String>,
    /// Why the functions are not to be trusted: the profiled pass and the measurement say different
    /// things.
    pub doubt: Option<String>,
}

/// Every profiled step of every cell that is profiled beside the base.
pub(crate) fn profiled(cells: &[CellRuns<'_>]) -> Vec<Profiled> {
    let Some((base, others)) = cells.split_first() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let Ok(profiles) = read_profiles(&base.campaign.path) else {
        return found;
    };
    for (index, cell) in (1..)
        .zip(others)
        .filter(|(_, cell)| cell.campaign.header.id == base.campaign.header.id)
    {
        for step in cell.cell.workload.steps() {
            let pair = pair(&profiles, &step.name, &base.cell.label, &cell.cell.label);
            found.extend(pair.map(|pair| Profiled {
                cell: index,
                ..pair.beside(&changes(base, cell, &step.name))
            }));
        }
    }
    found
}

/// The profiles of the two cells of an explanation; none where they were not profiled.
///
/// # Errors
/// When a profile cannot be read: a sentence for people.
pub fn profiles_of(
    campaign: &CampaignRecord,
    of: &Explanation,
) -> Result<Option<Profiled>, String> {
    let profiles = read_profiles(&campaign.path).map_err(|error| error.to_string())?;
    Ok(pair(&profiles, &of.step, &of.base, &of.cell).map(|pair| pair.beside(&of.changes)))
}

pub fn pair<'p>(profiles: &'p [Profile], step: &str, base: &str, cell: &str) -> Option<Profiled> {
    let of = |label: &str| -> Vec<&'p Profile> {
        let is_of = |profile: &&Profile| profile.about.cell == label && profile.about.step == step;
        profiles.iter().filter(is_of).collect()
    };
    let (bases, cells) = (of(base), of(cell));
    let (base, cell) = (over_passes(&bases)?, over_passes(&cells)?);
    let reason = [&base, &cell].into_iter().find_map(|profile| {
        let reason = no_profile(&profile.about)?;
        Some(format!("{}: {reason}", profile.about.cell))
    });
    let is_known = reason.is_none();
    let known = |all: &[&'p Profile]| -> Vec<&'p Profile> {
        all.iter()
            .copied()
            .filter(|profile| no_profile(&profile.about).is_none())
            .collect()
    };
    let in_both = |bases: &[&Profile], cells: &[&Profile]| {
        let is_in_cells = |base: &&&Profile| cells.iter().any(|cell| cell.pass == base.pass);
        bases.iter().filter(is_in_cells).count()
    };
    Some(Profiled {
        step: step.to_owned(),
        cell: 0,
        base_label: base.about.cell.clone(),
        cell_label: cell.about.cell.clone(),
        base: base.about.clone(),
        about: cell.about.clone(),
        is_judged: in_both(&known(&bases), &known(&cells)) > 1,
        functions: if is_known {
            moved(&known(&bases), &known(&cells), MOST_FUNCTIONS)
        } else {
            Vec::new()
        },
        tree: if is_known {
            tree(&base, &cell)
        } else {
            FlameNode::default()
        },
        reason,
        doubt: None,
    })
}

/// Why a profile says nothing; none if it says something.
fn no_profile(about: &ProfileAbout) -> Option<String> {
    let no_cpu = || {
        let reason = "the server's CPU per operation is not known";
        about
            .server_cpu_us_per_op
            .is_none()
            .then(|| reason.to_owned())
    };
    about.unavailable.clone().or_else(no_cpu)
}

/// All passes as one profile: the sum of their samples, the mean of their CPU per operation. One
/// that says nothing is left out if another says something; none without any.
fn over_passes(passes: &[&Profile]) -> Option<Profile> {
    let known: Vec<&&Profile> = passes
        .iter()
        .filter(|profile| no_profile(&profile.about).is_none())
        .collect();
    let Some(first) = known.first() else {
        return passes.first().map(|profile| (*profile).clone());
    };
    let mut sum = (**first).clone();
    for profile in &known[1..] {
        sum.about.samples += profile.about.samples;
        sum.about.nameless_samples += profile.about.nameless_samples;
        for (stack, samples) in &profile.stacks {
            *sum.stacks.entry(stack.clone()).or_default() += samples;
        }
    }
    let cpu: Vec<f64> = known
        .iter()
        .filter_map(|profile| profile.about.server_cpu_us_per_op)
        .collect();
    sum.about.server_cpu_us_per_op = Some(mean(&cpu));
    Some(sum)
}

/// Microseconds per operation that one sample of a profile stands for.
fn us_per_sample(profile: &Profile) -> f64 {
    profile.about.server_cpu_us_per_op.unwrap_or(0.0) / profile.about.samples.max(1) as f64
}

/// The share of samples whose own function has no name, in percent.
pub fn nameless_percent(about: &ProfileAbout) -> f64 {
    100.0 * about.nameless_samples as f64 / about.samples.max(1) as f64
}

/// More samples without a name than this, in percent, and a note says so.
const NAMELESS_TOLD: f64 = 1.0;

/// The changes of the server's CPU per operation, measured and in the profiled pass, agree within
/// this factor.
const CLOSE: f64 = 1.15;
/// They also agree where one is no more than so many times the other, in logarithms.
const AGREES: f64 = 2.0;

/// Whether two changes, as ratios, tell the same story.
fn agree(a: f64, b: f64) -> bool {
    let (a, b) = (a.ln(), b.ln());
    (a - b).abs() <= CLOSE.ln()
        || a * b > 0.0 && a.abs().max(b.abs()) <= AGREES * a.abs().min(b.abs())
}

impl Profiled {
    /// Sets the pass beside what was measured.
    pub fn beside(self, measured: &[Change]) -> Self {
        let measured = measured
            .iter()
            .find(|change| change.name == SERVER_CPU_US_PER_OP.name && !change.is_counter)
            .map(|change| change.ratio);
        let passed = self.tree.cell_us / self.tree.base_us;
        let apart = measured.filter(|measured| self.reason.is_none() && !agree(passed, *measured));
        let doubt = apart.map(|measured| {
            format!(
                "The profiled pass and the measurement disagree: server CPU/op {} in the pass, {} \
                measured. A pass is a start of each server, not in turns: trust no function \
                before `plimsoll confirm --perf 20s` on a quieter machine shows it again.",
                percent(passed),
                percent(measured)
            )
        });
        Self { doubt, ..self }
    }

    /// How far the profiles can be trusted: their events, samples, and how many have no name.
    pub fn trust(&self) -> String {
        let of = |about: &ProfileAbout| {
            let nameless = nameless_percent(about);
            let names = if nameless >= NAMELESS_TOLD {
                format!(
                    ", symbols missing for {nameless:.0} % of them: install the build's debug \
                    symbols, or build with them"
                )
            } else {
                String::new()
            };
            format!(
                "{}: {} samples of {}{names}",
                about.cell, about.samples, about.event
            )
        };
        format!("{}. {}.", of(&self.base), of(&self.about))
    }
}
