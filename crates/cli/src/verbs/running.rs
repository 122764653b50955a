//! A campaign on its way: what may disturb it, its progress, its results, and how to continue it.

use std::path::{Path, PathBuf};

use plimsoll_host::{Proc, Status, check_machine};
use plimsoll_lab::clients::ClientHosts;
use plimsoll_lab::fleet::{Desk, Host, run_over_hosts};
use plimsoll_lab::{CampaignEnd, DataTurn, run_campaign, run_campaign_with_clients};
use plimsoll_store::{CampaignDir, shell_word};

use crate::arguments::{OverHosts, Places};
use crate::failure::{Failure, INCOMPLETE, INCONCLUSIVE, INTERRUPTED, VerbResult};
use crate::output::print;
use crate::progress::Console;
use crate::verbs::results;

/// The checks of `machine check` that a run repeats: what goes on right now, not what the machine
/// is.
const DISTURBANCES: [&str; 3] = ["foreign_cpu", "steal", "pressure"];

/// Runs a campaign to its end, with the clients of its steps on other hosts if there are some,
/// writes its page and prints its tables or verdicts.
pub fn run_to_end(
    places: &Places,
    mut campaign: CampaignDir,
    (turn, clients): (Option<DataTurn>, Option<&ClientHosts>),
    is_json: bool,
) -> VerbResult {
    let program = this_program()?;
    let mut console = Console::new(&campaign)?;
    warn_of_disturbance(&campaign);
    let builds = places.builds()?;
    let end = match clients {
        None => run_campaign(&mut campaign, turn, &builds, &program, &mut console)?,
        Some(clients) => run_campaign_with_clients(
            &mut campaign,
            turn,
            &builds,
            &program,
            clients,
            &mut console,
        )?,
    };
    console.finish();
    tell_end(places, &OverHosts::default(), &campaign, end, is_json)
}

/// The same with blocks on other machines. `over` is what the user said of them.
pub fn run_over_hosts_to_end(
    places: &Places,
    over: &OverHosts,
    campaign: CampaignDir,
    (hosts, desk): (&[Host], &Desk),
    is_json: bool,
) -> VerbResult {
    let mut console = Console::new(&campaign)?;
    let end = run_over_hosts(&campaign, hosts, desk, &places.builds()?, &mut console)?;
    console.finish();
    tell_end(places, over, &campaign, end, is_json)
}

/// Writes the page of a campaign that has ended, and prints its tables or verdicts.
fn tell_end(
    places: &Places,
    over: &OverHosts,
    campaign: &CampaignDir,
    end: CampaignEnd,
    is_json: bool,
) -> VerbResult {
    let path = shell_word(&campaign.path.display().to_string());
    let fleet = campaign.header.fleet.as_ref();
    let resume = places.resume(&path) + &over.resume_options(fleet);
    let options = places.options() + &over.options(fleet);
    if end == CampaignEnd::Interrupted {
        tell_how_to_continue(&path, &resume);
        return Ok(INTERRUPTED);
    }
    let page = results::write_page(campaign)?;
    if campaign.header.confirm.is_some() {
        results::print_verdicts(campaign, is_json)?;
    } else {
        results::print_tables(campaign, &options)?;
    }
    if !is_json {
        print(&format!("report: {}\n", page.display()))?;
        tell!("reasons, test by test: plimsoll show {path}");
    }
    let (broken, has_time) = match end {
        CampaignEnd::Incomplete { broken } => (broken, true),
        CampaignEnd::Decided {
            block,
            broken,
            has_time,
        } if campaign.header.budget().is_some() => {
            match has_time {
                true => tell!("it ended after start {block}, within its budget"),
                false => {
                    tell!("it ended after start {block}: no time is left in its budget for another")
                }
            }
            (broken, has_time)
        }
        CampaignEnd::Decided { block, broken, .. } => {
            tell!(
                "everything was decided at the look after {block} of {} blocks; for narrower \
                intervals, up to the next look: {resume}",
                campaign.header.plan.blocks
            );
            (broken, true)
        }
        CampaignEnd::Complete | CampaignEnd::Interrupted => (0, true),
    };
    tell_what_broke(broken, &path, Some(resume.as_str()).filter(|_| has_time));
    let code = if broken > 0 { INCOMPLETE } else { 0 };
    match results::undecided(campaign, &options)? {
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

/// Says how an interrupted campaign goes on: by `resume`. `path` is one as a shell takes it.
pub fn tell_how_to_continue(path: &str, resume: &str) {
    tell!("interrupted: what is done is kept in {path}; the trial that was running starts again");
    tell!("continue with: {resume}");
}

/// Says where the logs of incomplete trials are, and what to do about them; nothing if there are none.
///
/// `resume` is how to try them again, if there is time for it.
pub fn tell_what_broke(broken: usize, path: &str, resume: Option<&str>) {
    let trials = match broken {
        0 => return,
        1 => "1 trial is".to_owned(),
        broken => format!("{broken} trials are"),
    };
    tell!("{trials} not complete; logs are in {path}/trials");
    let again = match resume {
        Some(resume) => format!("to try the rest again: {resume}"),
        None => {
            "there is no time left to try the rest; give a new campaign a longer budget".to_owned()
        }
    };
    tell!("what failed by its config or plan needs a changed plan and a new run; {again}");
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
