//! Blocks as jobs of a real Slurm, whose two nodes are network namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use plimsoll_testkit::skip;

use crate::hosts::{blocks_on_one_host, campaign, check, events, is_complete, write_plan};
use crate::lab_hosts::{Lab, in_namespace, kill, ok};
use crate::support::{text, wait_until};

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
             ReturnToService=2\nSlurmdTimeout=10\nKillWait=5\nSlurmctldPidFile={}\n\
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
                OverSubscribe=EXCLUSIVE\n"
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

#[test]
fn an_array_of_jobs_runs_the_blocks_and_survives_a_requeue() {
    let name = "cli::slurm::an_array_of_jobs_runs_the_blocks_and_survives_a_requeue";
    let Some(slurm) = Slurm::new(name) else {
        return;
    };
    write_plan(&slurm.lab, 4, 5, 1);
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

    // A block that was lost is submitted alone.
    let of_block_2 = events(&over)
        .into_iter()
        .find(|(_, events)| events[0]["block"] == 2);
    fs::remove_dir_all(over.join("trials").join(of_block_2.unwrap().0)).unwrap();
    check(&slurm.run(&again), 0);
    let script = fs::read_to_string(over.join("slurm/block.sh")).unwrap();
    assert!(script.contains("#SBATCH --array=2\n"), "{script}");
    slurm.wait_for_the_end();
    blocks_on_one_host(&over);
}
