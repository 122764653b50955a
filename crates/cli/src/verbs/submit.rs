//! `submit`: a campaign as jobs of Slurm.

use std::path::Path;

use plimsoll_lab::blocks_of_run;
use plimsoll_lab::fleet::{Submission, open_jobs, scripts, submit as submit_blocks};
use plimsoll_store::{CampaignDir, Fleet, shell_word};

use crate::arguments::{Places, Submit};
use crate::failure::{Failure, VerbResult};
use crate::verbs::campaign::{NewCampaign, create_over_hosts};
use crate::verbs::running::this_program;

pub fn submit(places: &Places, arguments: &Submit) -> VerbResult {
    let submission = submission(places, arguments)?;
    if !Path::new(&arguments.spool).is_absolute() {
        return Err(Failure::usage(format!(
            "--spool {} must be an absolute path on the nodes",
            arguments.spool
        )));
    }
    let campaign = match &arguments.again {
        Some(campaign) => places.store().find(Some(campaign))?,
        None => {
            let plan = plimsoll_lab::load_plan(arguments.plan.as_deref())?;
            if arguments.dry_run {
                let id = places.store().new_id(&plan.plan.name);
                let blocks = match arguments.screen {
                    true => plan.plan.all_blocks(),
                    false => blocks_of_run(&plan.plan),
                };
                let folder = absolute(&places.store)?.join(id);
                let jobs: Vec<u32> = (1..=blocks.units()).collect();
                return print(&folder, &arguments.spool, &jobs, &submission);
            }
            let fleet = Fleet::Slurm {
                spool: arguments.spool.clone(),
            };
            create_over_hosts(
                places,
                &NewCampaign {
                    plan: &plan,
                    seed: arguments.seed,
                    is_screen: arguments.screen,
                    is_offline: arguments.offline,
                },
                fleet,
            )?
        }
    };
    if arguments.dry_run {
        return print_again(&campaign, &submission);
    }
    let Some(job) = submit_blocks(&campaign, &submission)? else {
        return complete(&campaign);
    };
    let path = shell_word(&campaign.path.display().to_string());
    anstream::println!("campaign {}", campaign.header.id);
    anstream::println!(
        "blocks: job {0} (squeue -j {0}); report: job {1}",
        job.array,
        job.report
    );
    tell!("how far it is: plimsoll show {path}");
    tell!("what did not end: plimsoll submit --again {path} --slurm");
    Ok(0)
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn submission(places: &Places, arguments: &Submit) -> Result<Submission, Failure> {
    Ok(Submission {
        partition: arguments.partition.clone(),
        constraint: arguments.constraint.clone(),
        time: arguments.time.clone(),
        program: this_program()?,
        builds: absolute(&places.cache_dir()?)?,
    })
}

fn print_again(campaign: &CampaignDir, submission: &Submission) -> VerbResult {
    let Some(Fleet::Slurm { spool }) = &campaign.header.fleet else {
        return Err(Failure::usage(format!(
            "campaign {} is not one of Slurm",
            campaign.header.id
        )));
    };
    let jobs = open_jobs(campaign)?;
    if jobs.is_empty() {
        return complete(campaign);
    }
    print(&absolute(&campaign.path)?, spool, &jobs, submission)
}

fn complete(campaign: &CampaignDir) -> VerbResult {
    anstream::println!(
        "campaign {} is complete: nothing is submitted",
        campaign.header.id
    );
    Ok(0)
}

/// A job per block, or per part of one.
fn print(campaign: &Path, spool: &str, jobs: &[u32], submission: &Submission) -> VerbResult {
    let scripts = scripts(campaign, spool, jobs, submission)?;
    anstream::print!(
        "# block.sh\n{}\n# report.sh\n{}",
        scripts.block,
        scripts.report
    );
    Ok(0)
}
