//! A campaign on its way: what may disturb it, its progress, its results, and how to continue it.

use std::path::{Path, PathBuf};

use plimsoll_host::{Proc, Status, check_machine};
use plimsoll_lab::fleet::{Desk, Host, run_over_hosts};
use plimsoll_lab::{CampaignEnd, DataTurn, run_campaign};
use plimsoll_store::{CampaignDir, shell_word};

use crate::arguments::Places;
use crate::failure::{Failure, INCOMPLETE, INCONCLUSIVE, INTERRUPTED, VerbResult};
use crate::progress::Console;
use crate::verbs::results;

/// The checks of `machine check` that a run repeats: what goes on right now, not what the machine
/// is.
const DISTURBANCES: [&str; 3] = ["foreign_cpu", "steal", "pressure"];

/// Runs a campaign to its end, writes its page and prints its tables or verdicts.
pub fn run_to_end(
    places: &Places,
    mut campaign: CampaignDir,
    turn: Option<DataTurn>,
    is_json: bool,
) -> VerbResult {
    let program = this_program()?;
    let mut console = Console::new(&campaign)?;
    warn_of_disturbance(&campaign);
    let end = run_campaign(
        &mut campaign,
        turn,
        &places.builds()?,
        &program,
        &mut console,
    )?;
    console.finish();
    tell_end(places, &campaign, end, is_json)
}

/// The same with blocks on other machines.
pub fn run_over_hosts_to_end(
    places: &Places,
    campaign: CampaignDir,
    hosts: &[Host],
    desk: &Desk,
    is_json: bool,
) -> VerbResult {
    let mut console = Console::new(&campaign)?;
    let end = run_over_hosts(&campaign, hosts, desk, &places.builds()?, &mut console)?;
    console.finish();
    tell_end(places, &campaign, end, is_json)
}

/// Writes the page of a campaign that has ended, and prints its tables or verdicts.
fn tell_end(
    places: &Places,
    campaign: &CampaignDir,
    end: CampaignEnd,
    is_json: bool,
) -> VerbResult {
    let path = shell_word(&campaign.path.display().to_string());
    if end == CampaignEnd::Interrupted {
        tell_how_to_continue(places, &path);
        return Ok(INTERRUPTED);
    }
    let page = results::write_page(campaign)?;
    if campaign.header.confirm.is_some() {
        results::print_verdicts(campaign, is_json)?;
    } else {
        results::print_tables(campaign)?;
    }
    if !is_json {
        anstream::println!("report: {}", page.display());
        tell!("reasons, test by test: plimsoll show {path}");
    }
    let code = match end {
        CampaignEnd::Incomplete { broken } => {
            tell_what_broke(places, broken, &path);
            INCOMPLETE
        }
        CampaignEnd::Decided { block } if campaign.header.budget().is_some() => {
            tell!(
                "it ended after start {block}, within its budget; for more starts: {}",
                places.resume(&path)
            );
            0
        }
        CampaignEnd::Decided { block } => {
            tell!(
                "everything was decided at the look after {block} of {} blocks; for narrower \
                intervals, up to the next look: {}",
                campaign.header.plan.blocks,
                places.resume(&path)
            );
            0
        }
        _ => 0,
    };
    match results::undecided(campaign)? {
        Some(words) if code == 0 => {
            tell!("{words}");
            Ok(INCONCLUSIVE)
        }
        _ => Ok(code),
    }
}

/// The binary that trials run as.
pub fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))
}

/// Says how an interrupted campaign goes on. `path` is one as a shell takes it.
pub fn tell_how_to_continue(places: &Places, path: &str) {
    tell!("interrupted: what is done is kept in {path}; the trial that was running starts again");
    tell!("continue with: {}", places.resume(path));
}

/// Says where the logs of incomplete trials are, and what to do about them.
pub fn tell_what_broke(places: &Places, broken: usize, path: &str) {
    let trials = match broken {
        1 => "1 trial is".to_owned(),
        broken => format!("{broken} trials are"),
    };
    tell!("{trials} not complete; logs are in {path}/trials");
    tell!(
        "what failed by its config or plan needs a changed plan and a new run; to try the rest \
        again: {}",
        places.resume(path)
    );
}

/// What will spoil the numbers is reported before they are made.
pub fn warn_of_disturbance(campaign: &CampaignDir) {
    let checks = check_machine(
        Proc::new(),
        Path::new("/sys"),
        Path::new(&campaign.header.data_dir),
        None,
    );
    for check in checks
        .iter()
        .filter(|check| DISTURBANCES.contains(&check.name) && check.status == Status::Warn)
    {
        tell!("machine: {}: {}", check.name, check.finding);
    }
}
