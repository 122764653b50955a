//! Blocks as jobs of a real Slurm, whose two nodes are network namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use plimsoll_testkit::{skip, write_script};
use serde_json::Value;

use crate::hosts::{blocks_on_one_host, campaign, check, events, is_complete, write_plan};
use crate::lab_hosts::{Lab, in_namespace, kill, ok};
use crate::split;
use crate::support::{Place, text, wait_until};

/// The control daemon at the desk of a lab, and a node on each of its hosts.
struct Slurm {
    lab: Lab,
    daemons: Vec<PathBuf>,
}

impl Slurm {
    fn new(test: &str) -> Option<Self> {
        let programs = ["munged", "slurmctld", "slurmd"];
        let is_missing = |program: &&&str| !Path::new("/usr/sbin").join(program).exists();
        if let Some(program) = programs.iter().find(is_missing) {
            skip(
                test,
                &format!("{program} is missing; `make deps` installs it"),
            );
            return None;
        }
        let lab = Lab::new(test, 2)?;
        let mut slurm = Self {
            lab,
            daemons: Vec::new(),
        };
        slurm.start();
        Some(slurm)
    }

    fn path(&self, name: &str) -> String {
        self.lab.place.path(name).display().to_string()
    }

    fn start(&mut self) {
        // munged refuses folders that others may write.
        fs::create_dir(self.lab.place.path("munge")).unwrap();
        fs::write(self.lab.place.path("munge/key"), [7u8; 1024]).unwrap();
        ok(&Command::new("chmod")
            .args(["400", &self.path("munge/key")])
            .output()
            .unwrap());
        let munge = [
            "/usr/sbin/munged".to_owned(),
            "--force".to_owned(),
            format!("--key-file={}", self.path("munge/key")),
            format!("--socket={}", self.path("munge/socket")),
            format!("--pid-file={}", self.path("munge/pid")),
            format!("--log-file={}", self.path("munge/log")),
            format!("--seed-file={}", self.path("munge/seed")),
        ];
        ok(&Command::new(&munge[0]).args(&munge[1..]).output().unwrap());
        self.daemons.push(self.lab.place.path("munge/pid"));
        fs::write(self.lab.place.path("slurm.conf"), self.config()).unwrap();
        for folder in ["state", "nodes", "nodes/h1", "nodes/h2"] {
            fs::create_dir(self.lab.place.path(folder)).unwrap();
        }
        let config = self.path("slurm.conf");
        let control = ["/usr/sbin/slurmctld", "-f", &config];
        ok(&in_namespace(&self.lab.desk(), &control));
        self.daemons.push(self.lab.place.path("slurmctld.pid"));
        for host in 1..=2 {
            self.start_node(host);
        }
        wait_until("both nodes are idle", || {
            let idle = self.slurm("sinfo", &["-h", "-t", "idle", "-o", "%D"]);
            text(&idle.stdout).trim() == "2"
        });
    }

    fn start_node(&mut self, host: usize) {
        let config = self.path("slurm.conf");
        let name = format!("h{host}");
        let node = ["/usr/sbin/slurmd", "-f", &config, "-N", &name];
        ok(&in_namespace(&self.lab.namespace(host), &node));
        self.daemons
            .push(self.lab.place.path(&format!("slurmd-{name}.pid")));
    }

    fn config(&self) -> String {
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let machine = machine.trim();
        let mut text = format!(
            "ClusterName=lab\nSlurmctldHost={machine}(10.99.0.1)\nSlurmUser=root\n\
             AuthInfo=socket={}\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n\
             MpiDefault=none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             ReturnToService=2\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n\
             SlurmdTimeout=10\nKillWait=5\nSlurmctldPidFile={}\n\
             SlurmdPidFile={}\nSlurmdSpoolDir={}\nStateSaveLocation={}\nSlurmctldLogFile={}\n\
             SlurmdLogFile={}\n",
            self.path("munge/socket"),
            self.path("slurmctld.pid"),
            self.path("slurmd-%n.pid"),
            self.path("nodes/%n"),
            self.path("state"),
            self.path("slurmctld.log"),
            self.path("slurmd-%n.log"),
        );
        for host in 1..=2 {
            text.push_str(&format!(
                "NodeName=h{host} NodeAddr=10.99.0.1{host} NodeHostname={machine} CPUs=2 \
                 Feature=m5\n"
            ));
        }
        text + "PartitionName=perf Nodes=h[1-2] Default=YES MaxTime=INFINITE State=UP \
                OverSubscribe=EXCLUSIVE PriorityTier=1\nPartitionName=urgent Nodes=h[1-2] \
                MaxTime=INFINITE State=UP OverSubscribe=EXCLUSIVE PriorityTier=10\n"
    }

    fn slurm(&self, program: &str, arguments: &[&str]) -> Output {
        let config = format!("SLURM_CONF={}", self.path("slurm.conf"));
        let words = [&["env", &config, program], arguments].concat();
        in_namespace(&self.lab.desk(), &words)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.lab.command(arguments);
        command.env("SLURM_CONF", self.path("slurm.conf"));
        command.output().unwrap()
    }

    /// Jobs that have not ended, as `NUMBER_TASK STATE`.
    fn queue(&self) -> Vec<String> {
        let queue = self.slurm("squeue", &["-h", "-r", "-o", "%i %T"]);
        text(&queue.stdout).lines().map(str::to_owned).collect()
    }

    fn wait_for_the_end(&self) {
        wait_until("all jobs have ended", || {
            // Slurm lets a requeued job wait for two minutes.
            for job in self
                .queue()
                .iter()
                .filter_map(|line| line.strip_suffix(" PENDING"))
            {
                let job = format!("jobid={job}");
                self.slurm("scontrol", &["update", &job, "starttime=now"]);
            }
            std::thread::sleep(Duration::from_millis(300));
            self.queue().is_empty()
        });
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for pid in self.daemons.iter().rev() {
            if let Ok(pid) = fs::read_to_string(pid) {
                kill("TERM", pid.trim());
            }
        }
    }
}

/// A Slurm that is nothing but these answers.
fn with_answers(place: &Place, answers: &[(&str, &str)], arguments: &[&str]) -> Output {
    let folder = place.path("bin");
    for (program, answer) in answers {
        write_script(&folder.join(program), answer);
    }
    let path = std::env::var("PATH").unwrap();
    let mut command = place.command(arguments);
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.output().unwrap()
}

#[test]
fn claims_stay_until_slurm_has_the_jobs_that_replace_theirs() {
    let place = Place::new();
    let submit = ["submit", "small.toml", "--slurm", "--seed", "7"];
    // Slurm has job 7, and writes down what is asked of it.
    let accepts = |program: &'static str| {
        let line =
            format!("echo \"{program} $*\" >>asked; ls -A plimsoll-runs/*/slurm/claims >>asked");
        (program, line)
    };
    let (sbatch, scontrol) = (accepts("sbatch"), accepts("scontrol"));
    let sbatch = format!("{}; echo 7", sbatch.1);
    let answers = [
        ("sbatch", sbatch.as_str()),
        ("scontrol", scontrol.1.as_str()),
        ("squeue", "exit 0"),
    ];
    check(&with_answers(&place, &answers, &submit), 0);
    let campaign = place.campaign();
    let claim = campaign.join("slurm/claims/block-1");
    fs::write(&claim, "7_1").unwrap();

    let path = campaign.display().to_string();
    let again = ["submit", "--again", &path, "--slurm"];
    let refuses = [("sbatch", "echo 'the partition is down' >&2; exit 1")];
    let said = check(&with_answers(&place, &refuses, &again), 5);
    assert!(said.contains("the partition is down"), "{said}");
    assert!(
        claim.exists(),
        "the block is job 7's until another is there"
    );

    fs::remove_file(place.path("asked")).unwrap();
    check(&with_answers(&place, &answers[..1], &again), 0);
    assert!(!claim.exists());
    let asked = fs::read_to_string(place.path("asked")).unwrap();
    let asked: Vec<&str> = asked.lines().collect();
    // Held with the claim there, released without it.
    assert!(
        asked[0].starts_with("sbatch --parsable --hold "),
        "{asked:?}"
    );
    assert_eq!(asked[1..3], ["block-1", "scontrol release 7"], "{asked:?}");
    assert!(asked[3].contains("--dependency=afterany:7"), "{asked:?}");

    // A release that is refused says how the jobs begin.
    let refuses = [("scontrol", "echo 'no right' >&2; exit 1")];
    let said = check(&with_answers(&place, &refuses, &again), 5);
    assert!(
        said.contains("`scontrol release 7` lets them begin"),
        "{said}"
    );
}

/// Its power is cut: slurmd, the job and its trials are gone, and nobody says so.
#[test]
fn a_lost_node_costs_its_block_which_runs_again_on_another() {
    let name = "cli::slurm::a_lost_node_costs_its_block_which_runs_again_on_another";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    write_plan(&slurm.lab, 4, 20, "300ms");
    let spool = slurm.path("spool");
    let submit = [
        "submit",
        "spread.toml",
        "--slurm",
        "--seed",
        "7",
        "--spool",
        &spool,
    ];
    check(&slurm.run(&submit), 0);
    let over = campaign(&slurm.lab, "plimsoll-runs");
    let jobs_on = |node: &str| {
        let jobs = slurm.slurm(
            "squeue",
            &["-h", "-r", "-w", node, "-t", "running", "-o", "%i"],
        );
        text(&jobs.stdout).trim().to_owned()
    };
    wait_until("a trial runs on the second node", || {
        !jobs_on("h2").is_empty() && !slurm.lab.matching(2, is_trial).is_empty()
    });
    let job = jobs_on("h2");
    let before: Vec<String> = events(&over).into_keys().collect();
    let lost = Instant::now();
    slurm.lab.link(2, "down");
    for pid in slurm.lab.matching(2, |line| !line.starts_with("sshd")) {
        kill("KILL", &pid);
    }
    wait_until("Slurm has noticed", || jobs_on("h2").is_empty());
    println!("a lost node: noticed after {:.1?}", lost.elapsed());
    slurm.wait_for_the_end();
    println!(
        "a lost node: its block {job} and all others are done after {:.1?}",
        lost.elapsed()
    );
    let hosts = blocks_on_one_host(&over);
    let (_, block) = job.split_once('_').unwrap();
    assert_eq!(hosts[&block.parse().unwrap()], "h1", "{hosts:?}");
    let after = events(&over);
    assert!(
        before.iter().all(|folder| after.contains_key(folder)),
        "none is lost"
    );
    println!("a lost node: {} attempts at 8 trials", after.len());
}

fn is_trial(line: &str) -> bool {
    line.contains("plimsoll") && line.contains(" trial")
}

#[test]
fn an_array_of_jobs_runs_the_blocks_and_survives_a_requeue() {
    let name = "cli::slurm::an_array_of_jobs_runs_the_blocks_and_survives_a_requeue";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    write_plan(&slurm.lab, 4, 5, "300ms");
    let spool = slurm.path("spool");
    let submit = [
        "submit",
        "spread.toml",
        "--slurm",
        "--seed",
        "7",
        "--spool",
        &spool,
    ];
    let dry = slurm.run(&[&submit[..], &["--dry-run"]].concat());
    check(&dry, 0);
    assert!(text(&dry.stdout).contains("#SBATCH --array=1-4\n"));
    assert!(!slurm.lab.place.path("plimsoll-runs").exists());

    check(
        &slurm.run(&[&submit[..], &["--partition", "perf"]].concat()),
        0,
    );
    let over = campaign(&slurm.lab, "plimsoll-runs");
    let begin = Instant::now();
    wait_until("a trial is in the campaign and two jobs run", || {
        let running = slurm
            .queue()
            .iter()
            .filter(|line| line.ends_with(" RUNNING"))
            .count();
        running == 2 && events(&over).values().any(|events| is_complete(events))
            || begin.elapsed() > Duration::from_secs(60)
    });
    // While jobs are there nothing is submitted twice, and nothing runs at home.
    let path = over.display().to_string();
    let again = ["submit", "--again", &path, "--slurm"];
    let said = check(&slurm.run(&again), 2);
    assert!(said.contains("are in the queue"), "{said}");
    let said = check(&slurm.run(&["resume"]), 2);
    assert!(said.contains("submit --again"), "{said}");
    let running = slurm.queue();
    let running = running
        .iter()
        .find_map(|line| line.strip_suffix(" RUNNING"))
        .unwrap();
    ok(&slurm.slurm("scontrol", &["requeue", running]));
    slurm.wait_for_the_end();

    let hosts = blocks_on_one_host(&over);
    let used: std::collections::BTreeSet<&String> = hosts.values().collect();
    assert_eq!(used.len(), 2, "{hosts:?}");
    wait_until("the report is there", || {
        over.join("report/index.html").exists()
    });
    let claims = fs::read_dir(over.join("slurm/claims")).unwrap().count();
    assert_eq!(claims, 4);
    let done = slurm.run(&again);
    check(&done, 0);
    assert!(text(&done.stdout).contains("is complete: nothing is submitted"));
    let dry = slurm.run(&[&again[..], &["--dry-run"]].concat());
    assert!(text(&dry.stdout).contains("is complete: nothing is submitted"));

    // A block that was lost is submitted alone.
    let of_block_2 = events(&over)
        .into_iter()
        .find(|(_, events)| events[0]["block"] == 2);
    fs::remove_dir_all(over.join("trials").join(of_block_2.unwrap().0)).unwrap();
    let dry = slurm.run(&[&again[..], &["--dry-run"]].concat());
    check(&dry, 0);
    let said = text(&dry.stdout);
    assert!(
        said.contains("#SBATCH --array=2\n"),
        "what would be submitted, and no more: {said}"
    );
    check(&slurm.run(&again), 0);
    let script = fs::read_to_string(over.join("slurm/block.sh")).unwrap();
    assert!(script.contains("#SBATCH --array=2\n"), "{script}");
    slurm.wait_for_the_end();
    blocks_on_one_host(&over);
}

/// Until the second node has done a trial of the campaign and is within a step of another. A process
/// alone may be that of the trial that is done, or of one that has not begun.
fn wait_for_second_node(slurm: &Slurm, over: &Path) {
    let spool = slurm.lab.place.path("spool/h2/spool");
    let spooled = spool.join(over.file_name().unwrap());
    let has_step = |events: &Vec<Value>| events.iter().any(|of| of["event"] == "step_start");
    let is_in_step = |events: &Vec<Value>| has_step(events) && !is_complete(events);
    wait_until(
        "a trial of the second node is done, and another runs",
        || {
            let is_done = |events: &Vec<Value>| is_complete(events) && events[0]["host"] == "h2";
            events(over).values().any(is_done)
                && events(&spooled).values().any(is_in_step)
                && !slurm.lab.matching(2, is_trial).is_empty()
        },
    );
}

/// A job of a partition that goes first takes the node away. Slurm puts ours back into the queue.
#[test]
fn a_job_that_another_preempts_goes_on_by_itself() {
    let name = "cli::slurm::a_job_that_another_preempts_goes_on_by_itself";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    write_plan(&slurm.lab, 2, 20, "4s");
    let spool = slurm.path("spool");
    let seed = ["--seed", "7", "--spool", &spool, "--partition", "perf"];
    let submit = [&["submit", "spread.toml", "--slurm"], &seed[..]].concat();
    check(&slurm.run(&submit), 0);
    let over = campaign(&slurm.lab, "plimsoll-runs");
    let trials_of_h2 = || slurm.lab.matching(2, is_trial);
    wait_for_second_node(&slurm, &over);
    let before = events(&over);
    let preempted = Instant::now();
    let urgent = [
        "-p",
        "urgent",
        "-w",
        "h2",
        "--exclusive",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 3",
    ];
    ok(&slurm.slurm("sbatch", &urgent));
    wait_until("no trial runs on the node", || trials_of_h2().is_empty());
    println!("preempted: nothing runs after {:.1?}", preempted.elapsed());
    slurm.wait_for_the_end();
    println!("preempted: all done after {:.1?}", preempted.elapsed());
    assert_eq!(blocks_on_one_host(&over).len(), 2);
    let after = events(&over);
    for (folder, events) in before.iter().filter(|(_, events)| is_complete(events)) {
        assert_eq!(Some(events), after.get(folder), "{folder}");
    }
    let was_stopped = |events: &&Vec<Value>| events.iter().any(|of| of["interrupted"] == true);
    assert_eq!(after.values().filter(was_stopped).count(), 1);
}

/// What a job leaves that is cancelled: its sealed trials, the one in flight as interrupted, and a
/// campaign that says how it goes on.
#[test]
fn a_cancelled_job_leaves_its_trials_and_is_submitted_again() {
    let name = "cli::slurm::a_cancelled_job_leaves_its_trials_and_is_submitted_again";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    write_plan(&slurm.lab, 2, 20, "4s");
    let spool = slurm.path("spool");
    let seed = ["--seed", "7", "--spool", &spool];
    let submit = [&["submit", "spread.toml", "--slurm"], &seed[..]].concat();
    check(&slurm.run(&submit), 0);
    let over = campaign(&slurm.lab, "plimsoll-runs");
    let trials_of_h2 = || slurm.lab.matching(2, is_trial);
    wait_for_second_node(&slurm, &over);
    let running = ["-h", "-r", "-w", "h2", "-t", "running", "-o", "%i"];
    let job = text(&slurm.slurm("squeue", &running).stdout)
        .trim()
        .to_owned();
    let before = events(&over);
    let cancelled = Instant::now();
    ok(&slurm.slurm("scancel", &[&job]));
    wait_until("nothing runs on the node", || trials_of_h2().is_empty());
    println!("scancel: nothing runs after {:.1?}", cancelled.elapsed());
    slurm.wait_for_the_end();
    println!(
        "scancel: all jobs have ended after {:.1?}",
        cancelled.elapsed()
    );
    let after = events(&over);
    for (folder, events) in &before {
        assert_eq!(
            Some(events),
            after.get(folder),
            "{folder} changed or is lost"
        );
    }
    let was_stopped = |events: &&Vec<Value>| events.iter().any(|of| of["interrupted"] == true);
    assert_eq!(
        after.values().filter(was_stopped).count(),
        1,
        "the one in flight"
    );

    // What was made of it says how it goes on.
    wait_until("the report is there", || {
        over.join("report/index.html").exists()
    });
    let path = over.display().to_string();
    let shown = slurm.lab.place.run(&["show", &path]);
    let words = text(&shown.stdout);
    let command = format!("plimsoll submit --again {path} --slurm");
    assert!(
        words.contains(&format!("continue with: {command}")),
        "{words}"
    );
    assert!(!words.contains("plimsoll resume"), "{words}");
    let again = ["submit", "--again", &path, "--slurm"];
    check(&slurm.run(&again), 0);
    let (_, block) = job.split_once('_').unwrap();
    let script = fs::read_to_string(over.join("slurm/block.sh")).unwrap();
    assert!(
        script.contains(&format!("#SBATCH --array={block}\n")),
        "{script}"
    );
    slurm.wait_for_the_end();
    blocks_on_one_host(&over);
    let after = events(&over);
    assert!(before.keys().all(|folder| after.contains_key(folder)));
}

/// One block, whose step is long and leaves the machine to the other tests.
const IDLE: &str = r#"
name = "spread"
workload = "sysbench-2025"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_off"
wait = "0s"
comparable = false
tests = ["point-query"]
[sizes]
clients = 1
tables = 1
rows = 1000
duration = "200s"
warm_up = "0ms"
rate = 20
"#;

/// A limit that a block does not fit into. Slurm warns two minutes before it.
#[test]
fn a_job_whose_time_is_over_ends_its_step_before() {
    let name = "cli::slurm::a_job_whose_time_is_over_ends_its_step_before";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    fs::write(slurm.lab.place.path("spread.toml"), IDLE).unwrap();
    let spool = slurm.path("spool");
    let more = ["--seed", "7", "--spool", &spool, "--time", "3"];
    let submit = [&["submit", "spread.toml", "--slurm"], &more[..]].concat();
    let begun = Instant::now();
    check(&slurm.run(&submit), 0);
    let over = campaign(&slurm.lab, "plimsoll-runs");
    slurm.wait_for_the_end();
    println!(
        "a limit of 3 minutes: the job ended after {:.1?}",
        begun.elapsed()
    );
    assert!(
        begun.elapsed() < Duration::from_secs(180),
        "not killed at the limit"
    );
    let after = events(&over);
    assert_eq!(
        after.len(),
        1,
        "no trial begins behind the warning: {after:?}"
    );
    let last = after.values().next().unwrap().last().unwrap();
    assert_eq!(
        (&last["event"], &last["interrupted"]),
        (&"trial_failed".into(), &true.into())
    );
    wait_until("the report is there", || {
        over.join("report/index.html").exists()
    });
}

#[test]
fn each_part_of_a_block_is_a_job() {
    let name = "cli::slurm::each_part_of_a_block_is_a_job";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    split::write_plan(&slurm.lab.place, "", "300ms");
    let spool = slurm.path("spool");
    let more = ["--seed", "7", "--spool", &spool];
    let submit = [&["submit", "divided.toml", "--slurm"], &more[..]].concat();
    check(&slurm.run(&submit), 0);
    let over = campaign(&slurm.lab, "plimsoll-runs");
    slurm.wait_for_the_end();
    let hosts = split::hosts_of_parts(&over);
    assert_eq!(hosts.len(), 3, "{hosts:?}");
    let claims = fs::read_dir(over.join("slurm/claims")).unwrap().count();
    assert_eq!(claims, 3);

    // A part that was lost is submitted alone.
    let of_part_2 = events(&over)
        .into_iter()
        .find(|(_, events)| events[0]["part"] == 2);
    fs::remove_dir_all(over.join("trials").join(of_part_2.unwrap().0)).unwrap();
    let path = over.display().to_string();
    check(&slurm.run(&["submit", "--again", &path, "--slurm"]), 0);
    let script = fs::read_to_string(over.join("slurm/block.sh")).unwrap();
    assert!(script.contains("#SBATCH --array=2\n"), "{script}");
    slurm.wait_for_the_end();
    split::hosts_of_parts(&over);
}
