//! The same blocks, or parts of them, as an array of Slurm's jobs: one node of its own for each. Nobody needs to stay
//! logged in: a job claims its block, writes trials on the node's own disk and moves them, sealed,
//! into the campaign on the shared file system.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use plimsoll_core::schedule::{ScheduledTrial, Unit};
use plimsoll_engine::process::{child_command, output_within};
use plimsoll_store::{CampaignDir, Fleet, shell_word, write_json_atomically};
use serde::{Deserialize, Serialize};

use super::blocks::{last_attempts, left, owner, units};
use super::spool;
use super::transfer::{Incoming, Taken, pack, remove_incoming};
use super::wire::BlockOrder;
use super::work::{Giver, WorkPlaces, run_block, stop_on_signals};
use crate::builds::BuildCache;
use crate::campaign::check_disk;
use crate::confirm::StopRule;
use crate::error::LabError;
use crate::observer::{Notice, Observer};
use crate::orchestrator::{Disturbances, Setting};
use crate::passwords::Passwords;

/// In a campaign's folder: scripts, what jobs print, claims.
const FOLDER: &str = "slurm";
const BLOCK_SCRIPT: &str = "block.sh";
const REPORT_SCRIPT: &str = "report.sh";
const CLAIMS: &str = "claims";
const JOBS_FILE: &str = "jobs.json";
/// A job gets SIGTERM so many seconds before its time is over.
const WARNING_S: u32 = 120;
/// A controller of Slurm answers within this.
const SLURM_LIMIT: Duration = Duration::from_secs(120);

/// What is asked of Slurm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submission {
    /// `--partition`.
    pub partition: Option<String>,
    /// `--constraint`: the features that nodes must have, so that all are of one type.
    pub constraint: Option<String>,
    /// `--time`: how long a block may take.
    pub time: Option<String>,
    /// This program, on a path that all nodes have.
    pub program: PathBuf,
    /// The cache of builds, on a path that all nodes have.
    pub builds: PathBuf,
}

/// The scripts of a campaign's jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scripts {
    /// Of the array, a job per block.
    pub block: String,
    /// Of the job behind it.
    pub report: String,
}

/// What was submitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlurmJob {
    /// The array's number.
    pub array: String,
    /// The number of the job that writes the report when all of the array have ended.
    pub report: String,
}

/// The scripts for some units of the campaign in this folder, which need not be there yet: their
/// places in the schedule, from 1, in order. Where blocks are whole these are the blocks' numbers.
///
/// # Errors
/// When a path or an option has a character that a line of `#SBATCH` cannot hold.
pub fn scripts(
    campaign: &Path,
    spool: &str,
    wanted: &[u32],
    submission: &Submission,
) -> Result<Scripts, LabError> {
    let folder = campaign.join(FOLDER);
    let plain = |what: &str| match what
        .chars()
        .all(|c| !c.is_whitespace() && !"\"'`$\\".contains(c))
    {
        true => Ok(what.to_owned()),
        false => Err(LabError::Usage(format!(
            "\"{what}\" has a space, a quote or a $, which Slurm's scripts cannot hold: choose \
            another path or option"
        ))),
    };
    let output = plain(&folder.join("%A_%a.out").to_string_lossy())?;
    let id = campaign.file_name().unwrap_or_default().to_string_lossy();
    let mut options = vec![
        format!("--job-name={}", plain(&id)?),
        "--nodes=1".into(),
        "--open-mode=append".into(),
    ];
    let optional = [
        ("--partition", &submission.partition),
        ("--constraint", &submission.constraint),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            options.push(format!("{name}={}", plain(value)?));
        }
    }
    let report_output = plain(&folder.join("report-%j.out").to_string_lossy())?;
    let report_options = [&options[..], &[format!("--output={report_output}")]].concat();
    options.extend([
        "--exclusive".into(),
        format!("--array={}", ranges(wanted)),
        "--requeue".into(),
        format!("--signal=B:TERM@{WARNING_S}"),
        format!("--output={output}"),
    ]);
    if let Some(time) = &submission.time {
        options.push(format!("--time={}", plain(time)?));
    }
    let lines = |options: &[String]| -> String {
        options
            .iter()
            .map(|option| format!("#SBATCH {option}\n"))
            .collect()
    };
    let word = |path: &Path| shell_word(&path.to_string_lossy());
    let (program, builds) = (word(&submission.program), word(&submission.builds));
    let (campaign, spool) = (word(campaign), shell_word(spool));
    Ok(Scripts {
        block: format!(
            "#!/bin/sh\n{}exec {program} work --dir {spool}/\"$SLURMD_NODENAME\" --cache {builds} \
             --campaign {campaign} \\\n    --block \"$SLURM_ARRAY_TASK_ID\" --host \
             \"$SLURMD_NODENAME\" --job \"${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID\"\n",
            lines(&options)
        ),
        report: format!(
            "#!/bin/sh\n{}exec {program} report {campaign}\n",
            lines(&report_options)
        ),
    })
}

/// `1-3,5` of 1, 2, 3 and 5.
fn ranges(sorted: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let text = |(first, last): (u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.into_iter().map(text).collect::<Vec<_>>().join(",")
}

/// Submits every block of a campaign that is not complete and whose job is not there any more, and
/// the job that writes the report. `None` if no block is left.
///
/// # Errors
/// When the campaign is not Slurm's, a job of it is still in the queue, or Slurm refuses.
pub fn submit(
    campaign: &CampaignDir,
    submission: &Submission,
) -> Result<Option<SlurmJob>, LabError> {
    let Some(Fleet::Slurm { spool }) = &campaign.header.fleet else {
        return Err(LabError::Usage(format!(
            "campaign {} is not one of Slurm: `plimsoll resume` continues it",
            campaign.header.id
        )));
    };
    let folder = campaign.path.join(FOLDER);
    let failed = |error| LabError::io(format!("failed to write {}", folder.display()), error);
    fs::create_dir_all(folder.join(CLAIMS)).map_err(failed)?;
    check_nothing_is_queued(&folder)?;
    let wanted = open_jobs(campaign)?;
    if wanted.is_empty() {
        return Ok(None);
    }
    let path = campaign.path.canonicalize().map_err(failed)?;
    let scripts = scripts(&path, spool, &wanted, submission)?;
    let (block, report) = (folder.join(BLOCK_SCRIPT), folder.join(REPORT_SCRIPT));
    fs::write(&block, scripts.block).map_err(failed)?;
    fs::write(&report, scripts.report).map_err(failed)?;
    // Held: no job of it begins before the claims of those before it are gone.
    let array = sbatch(&["--hold", block.as_os_str().to_string_lossy().as_ref()])?;
    let mut job = SlurmJob {
        array,
        report: String::new(),
    };
    // Now: whatever is refused below, the array is in the queue.
    write_json_atomically(folder.join(JOBS_FILE), &job)?;
    remove_incoming(&campaign.path);
    for block in &wanted {
        match fs::remove_file(claim_file(&folder, *block)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
    }
    release(&job.array)?;
    let dependency = format!("--dependency=afterany:{}", job.array);
    job.report = sbatch(&[&dependency, report.as_os_str().to_string_lossy().as_ref()])?;
    write_json_atomically(folder.join(JOBS_FILE), &job)?;
    Ok(Some(job))
}

/// The blocks of a campaign that are not complete, or parts of blocks: their places in the schedule,
/// from 1, as [`scripts`] takes them.
///
/// # Errors
/// When the campaign's trials cannot be read.
pub fn open_jobs(campaign: &CampaignDir) -> Result<Vec<u32>, LabError> {
    let done = campaign.trials()?;
    let schedule = &campaign.header.schedule;
    let is_whole = |unit: Unit| {
        owner(schedule, unit, &done)
            .is_some_and(|owner| left(schedule, unit, owner, &done).is_empty())
    };
    let numbered = (1..).zip(units(schedule));
    let open = numbered.filter(|(_, unit)| !is_whole(*unit));
    Ok(open.map(|(number, _)| number).collect())
}

/// Refuses a campaign whose jobs have not ended: a block must not run twice.
fn check_nothing_is_queued(folder: &Path) -> Result<(), LabError> {
    let Ok(text) = fs::read_to_string(folder.join(JOBS_FILE)) else {
        return Ok(());
    };
    let Ok(job) = serde_json::from_str::<SlurmJob>(&text) else {
        return Ok(());
    };
    let queued = queued(slurm("squeue", &["-h", "-j", &job.array]))?;
    match queued.trim().is_empty() {
        true => Ok(()),
        false => Err(LabError::Usage(format!(
            "jobs of this campaign are in the queue: wait for them (squeue -j {0}) or cancel them \
            (scancel {0})",
            job.array
        ))),
    }
}

/// What `squeue` lists. Slurm forgets jobs: a number that it does not know is none that runs. A
/// controller that does not answer says nothing about jobs.
fn queued(answer: Result<String, LabError>) -> Result<String, LabError> {
    match answer {
        Err(error) if error.to_string().contains("Invalid job id") => Ok(String::new()),
        answer => answer,
    }
}

fn sbatch(arguments: &[&str]) -> Result<String, LabError> {
    let arguments: Vec<&str> = ["--parsable"].iter().chain(arguments).copied().collect();
    let number = slurm("sbatch", &arguments)?;
    // On several clusters their name is behind it.
    Ok(number
        .trim()
        .split(';')
        .next()
        .unwrap_or_default()
        .to_owned())
}

/// Lets the jobs of a held array begin.
fn release(array: &str) -> Result<(), LabError> {
    match slurm("scontrol", &["release", array]) {
        Ok(_) => Ok(()),
        Err(error) => Err(LabError::Machine(format!(
            "{error}; the blocks are in the queue and held: `scontrol release {array}` lets them \
            begin, `scancel {array}` gives them up"
        ))),
    }
}

fn slurm(program: &str, arguments: &[&str]) -> Result<String, LabError> {
    let mut command = child_command(program);
    command.args(arguments);
    let output = output_within(&mut command, SLURM_LIMIT).map_err(|error| {
        LabError::Machine(format!(
            "failed to run {program}: {error}; submit from a machine with Slurm's clients"
        ))
    })?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(LabError::Machine(format!(
            "{program} refused: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

fn claim_file(folder: &Path, number: u32) -> PathBuf {
    folder.join(CLAIMS).join(format!("block-{number}"))
}

/// The unit that is so many-th in a schedule, from 1: what a job's number in its array means.
fn unit_at(schedule: &[ScheduledTrial], number: u32) -> Result<Unit, LabError> {
    let place = (number as usize).checked_sub(1);
    let unit = place.and_then(|place| units(schedule).get(place).copied());
    unit.ok_or_else(|| LabError::Usage(format!("the campaign has no job {number}")))
}

/// Takes a block, or a part of one, for a job, for good: the unit that is so many-th in the schedule.
/// The same job has it again after a requeue.
fn claim(folder: &Path, number: u32, job: &str) -> Result<(), LabError> {
    let path = claim_file(folder, number);
    let failed = |error| LabError::io(format!("failed to write {}", path.display()), error);
    // Whole at once: a job that is killed meanwhile leaves no claim of nobody.
    let own = folder.join(CLAIMS).join(format!(".block-{number}-{job}"));
    let linked = File::create(&own)
        .and_then(|mut file| {
            file.write_all(job.as_bytes())
                .and_then(|()| file.sync_all())
        })
        .and_then(|()| fs::hard_link(&own, &path));
    let _ = fs::remove_file(&own);
    match linked {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let holder = fs::read_to_string(&path).map_err(failed)?;
            match holder == job {
                true => Ok(()),
                false => Err(LabError::Usage(format!(
                    "number {number} of the campaign's jobs is claimed by job {holder}, and this is \
                    {job}"
                ))),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// The campaign on the shared file system.
struct ToStore<'a> {
    campaign: &'a CampaignDir,
    host: &'a str,
}

impl Giver for ToStore<'_> {
    fn give(&mut self, dir: &Path) -> Result<bool, LabError> {
        let failed = |error: &dyn std::fmt::Display| {
            LabError::io(format!("failed to move {}", dir.display()), error)
        };
        let folder = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (file, bytes) = pack(dir).map_err(|error| failed(&error))?;
        let mut stream = file.take(bytes);
        let incoming = Incoming::unpack(&self.campaign.path, &folder, self.host, &mut stream)
            .map_err(|error| failed(&error))?;
        match incoming
            .take(self.campaign)
            .map_err(|error| failed(&error))?
        {
            Taken::Other(reason) => Err(failed(&reason)),
            Taken::New | Taken::Known => {
                fs::remove_dir_all(dir).map_err(|error| failed(&error))?;
                Ok(true)
            }
        }
    }

    fn is_lost(&self) -> bool {
        false
    }
}

/// Prints a line for what happens: the job's output is a file.
struct Printed(Arc<AtomicUsize>);

impl Observer for Printed {
    fn notice(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::TrialStart {
                trial,
                attempt,
                cell,
                ..
            } => eprintln!("{} (trial {}, attempt {attempt})", cell.label, trial.number),
            Notice::TrialBroken { cell, reason } => {
                eprintln!("{}: not complete: {reason}", cell.label);
            }
            Notice::Remark(text) | Notice::Warning(text) => eprintln!("{text}"),
            _ => {}
        }
    }

    fn stop_requests(&self) -> &AtomicUsize {
        &self.0
    }
}

impl StopRule for Printed {
    fn is_enough(&mut self, _campaign: &CampaignDir, _block: u32) -> bool {
        false
    }
}

/// The body of the internal `work` verb in a job: runs what is left of a block on this node. False
/// if it was told to stop before the block's end.
///
/// # Errors
/// When another job has the block, the campaign was made by another version, or the node cannot run
/// it.
pub fn work_in_job(
    places: &WorkPlaces,
    program: &Path,
    version: &str,
    campaign: &Path,
    (block, host, job): (u32, &str, &str),
) -> Result<bool, LabError> {
    let shared = CampaignDir::open(campaign)?;
    if shared.header.plimsoll_version != version {
        return Err(LabError::Usage(format!(
            "the campaign was made by plimsoll {}, and this is {version}",
            shared.header.plimsoll_version
        )));
    }
    let unit = unit_at(&shared.header.schedule, block)?;
    claim(&campaign.join(FOLDER), block, job)?;
    let local = spool::open(&places.spool, shared.header.clone(), &places.data)?;
    let lock = local.lock()?;
    check_disk(&local.header.plan, &local.header.cells, &places.data)?;
    spool::check_room(&local.path).map_err(LabError::Machine)?;
    let stop_requests = Arc::new(AtomicUsize::new(0));
    stop_on_signals(&stop_requests)?;
    let passwords = Passwords::of_plan(&local.header.plan)?;
    let setting = Setting {
        campaign: &local,
        passwords: &passwords,
        builds: &BuildCache::new(&places.builds),
        program,
        host: Some(host),
        clients: None,
    };
    let mut store = ToStore {
        campaign: &shared,
        host,
    };
    let is_stopped = setting.run(None, &mut Printed(stop_requests), |run| {
        for trial in spool::sealed_trials(&local)? {
            store.give(&trial)?;
        }
        let done = shared.trials()?;
        let attempts = last_attempts(&done);
        let next = |number: u32| (number, attempts.get(&number).copied().unwrap_or(0) + 1);
        let trials = left(&shared.header.schedule, unit, host, &done);
        let order = BlockOrder {
            unit,
            trials: trials.into_iter().map(next).collect(),
        };
        let mut disturbances = Disturbances::of(&local, &[]);
        run_block(run, &order, &mut disturbances, &mut store)?;
        Ok(run.is_stopped())
    })?;
    drop(lock);
    spool::remove_if_empty(&local);
    Ok(!is_stopped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_controller_that_does_not_answer_is_not_an_empty_queue() {
        let answer = |text: &str| queued(Err(LabError::Machine(text.into())));
        let forgotten = "squeue refused: slurm_load_jobs error: Invalid job id specified";
        assert_eq!(answer(forgotten).unwrap(), "");
        let error = answer("squeue refused: Unable to contact slurm controller").unwrap_err();
        assert!(error.to_string().contains("contact"), "{error}");
    }

    #[test]
    fn scripts_say_what_slurm_is_to_do() {
        let submission = Submission {
            partition: Some("perf".into()),
            constraint: Some("m5".into()),
            time: Some("04:00:00".into()),
            program: "/opt/plimsoll".into(),
            builds: "/shared/it's/builds".into(),
        };
        let campaign = Path::new("/shared/runs/20260101T000000Z-t");
        let Scripts { block, report } =
            scripts(campaign, "/scratch/p", &[1, 2, 3, 5], &submission).unwrap();
        for line in [
            "#!/bin/sh\n",
            "#SBATCH --array=1-3,5\n",
            "#SBATCH --exclusive\n",
            "#SBATCH --requeue\n",
            "#SBATCH --partition=perf\n",
            "#SBATCH --constraint=m5\n",
            "#SBATCH --time=04:00:00\n",
            "#SBATCH --output=/shared/runs/20260101T000000Z-t/slurm/%A_%a.out\n",
            "exec /opt/plimsoll work --dir /scratch/p/\"$SLURMD_NODENAME\" --cache \
             '/shared/it'\\''s/builds' ",
        ] {
            assert!(block.contains(line), "{line}\n{block}");
        }
        assert!(
            !report.contains("--exclusive") && !report.contains("--array"),
            "{report}"
        );
        assert!(report.ends_with("exec /opt/plimsoll report /shared/runs/20260101T000000Z-t\n"));
        let error = scripts(Path::new("/my runs/x"), "/s", &[1], &submission).unwrap_err();
        assert!(error.to_string().contains("choose another path"), "{error}");
    }

    #[test]
    fn numbers_are_ranges() {
        for (numbers, text) in [
            (&[1][..], "1"),
            (&[1, 2], "1-2"),
            (&[2, 4, 5, 6, 9], "2,4-6,9"),
        ] {
            assert_eq!(ranges(numbers), text);
        }
    }

    #[test]
    fn a_block_is_one_jobs_which_has_it_again_after_a_requeue() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(CLAIMS)).unwrap();
        claim(dir.path(), 3, "7_3").unwrap();
        claim(dir.path(), 3, "7_3").unwrap();
        claim(dir.path(), 4, "8_4").unwrap();
        let error = claim(dir.path(), 3, "9_3").unwrap_err().to_string();
        assert!(
            error.contains("number 3 of the campaign's jobs is claimed by job 7_3"),
            "{error}"
        );
    }

    /// It was made empty and written to afterwards: a job that ended in between had claimed the
    /// block for nobody, itself after its requeue included.
    #[test]
    fn a_claim_that_could_not_be_written_is_none() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(CLAIMS).join(".block-5-7_5")).unwrap();
        claim(dir.path(), 5, "7_5").unwrap_err();
        assert!(!claim_file(dir.path(), 5).exists());
        claim(dir.path(), 5, "8_5").unwrap();
    }
}
