//! Whatever dies, and whenever: a moment later nothing of Plimsoll runs or is stopped, and the next
//! run has a clean data folder.
//!
//! The short form is a few chosen faults. `PLIMSOLL_FAULTS=N` (`make faults`) adds so many that a
//! seed chooses, which is printed and can be given again as `PLIMSOLL_FAULTS_SEED`.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_audit::Facts;
use plimsoll_testkit::{CachedBuild, cached_build, skip};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::drawn::{self, Harm, fail};
use crate::support::{Mount, Place, text, wait, wait_until};

const POSTGRES: &str = "postgres@18";
const MARIADB: &str = "mariadb@10.11";

/// Whoever dies; what is left of it has this long to be gone. Some tenths of a second are usual,
/// and printed.
const GONE_LIMIT: Duration = Duration::from_secs(30);

/// A campaign on another store and the same data folder, over in a moment.
const NEXT_PLAN: &str = "name = \"next\"\nworkload = \"insert-benchmark\"\nbuilds = \
                        [\"sqlite\"]\nconfigs = [\"wal_off\"]\nsteps = [\"l.i0\"]\n\
                         [sizes]\nrows = \"1K\"\n";

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Orchestrator,
    /// The process between orchestrator and trial.
    Guard,
    Trial,
    /// The server, or the program that makes its data.
    Server,
    Wrapper,
    /// All that is called plimsoll, at once.
    All,
}

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The data directory is being made.
    Init,
    /// The server does not answer yet.
    Start,
    /// Rows are being loaded.
    Load,
    /// The engine drains, or the trial waits.
    Drain,
    /// So many milliseconds after the start.
    At(u64),
}

#[derive(Clone, Copy)]
struct Fault {
    build: &'static str,
    who: Who,
    signal: Signal,
    phase: Phase,
    /// The files with the identities of servers are gone by then.
    is_forgotten: bool,
}

impl Fault {
    /// `initdb` tries settings by system(3), which ignores SIGQUIT meanwhile. The campaign then goes
    /// on as if nothing had happened, and has to end as soundly.
    fn may_be_ignored(&self) -> bool {
        self.who == Who::Server && self.signal == Signal::QUIT && self.build == POSTGRES
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            build,
            who,
            signal,
            phase,
            ..
        } = self;
        write!(
            f,
            "{build}: {who:?} gets signal {} in {phase:?}",
            signal.as_raw()
        )
    }
}

/// A process that has to do with a place: its mark, its working directory, or a path in its command
/// line.
#[derive(Clone, Debug)]
struct Process {
    pid: u32,
    state: char,
    line: Vec<String>,
}

impl Process {
    fn is_plimsoll(&self, verb: &str) -> bool {
        self.line
            .first()
            .is_some_and(|program| program.ends_with("/plimsoll"))
            && self.line.get(1).is_some_and(|first| first == verb)
    }
}

/// All of a place that run or are stopped.
fn processes_of(place: &Path) -> Vec<Process> {
    let place = place.canonicalize().unwrap();
    let name = place.to_str().unwrap();
    let words = |path: String| -> Vec<String> {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes)
            .split('\0')
            .map(str::to_owned)
            .collect()
    };
    let process = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let state = stat.rsplit_once(") ")?.1.chars().next()?;
        let line = words(format!("/proc/{pid}/cmdline"));
        let is_in =
            fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&place));
        let is_marked = words(format!("/proc/{pid}/environ"))
            .iter()
            .any(|word| word.starts_with("PLIMSOLL_TRIAL=") && word.contains(name));
        let is_of = is_in || is_marked || line.iter().any(|word| word.contains(name));
        (is_of && !"ZX".contains(state) && pid != std::process::id()).then_some(Process {
            pid,
            state,
            line,
        })
    };
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(process).collect()
}

/// Waits until nothing of a place runs, and says how long that took.
#[track_caller]
fn assert_gone(place: &Place, what: &dyn fmt::Display) {
    let killed = Instant::now();
    loop {
        let looked = Instant::now();
        let left = processes_of(place.dir.path());
        if left.is_empty() {
            return println!(
                "{what}: all gone after {:.3} s",
                killed.elapsed().as_secs_f64()
            );
        }
        if killed.elapsed() > GONE_LIMIT {
            fail(Harm::Left, &format!("{what}: left behind: {left:#?}"));
        }
        std::thread::sleep(4 * looked.elapsed());
    }
}

/// A new campaign on the same data folder takes away what is left there, and no finished step.
#[track_caller]
fn assert_next_run_is_clean(place: &Place, facts: &Facts, what: &dyn fmt::Display) {
    fs::write(place.path("next.toml"), NEXT_PLAN).unwrap();
    let output = place.run(&["--store", "next", "run", "next.toml"]);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{what}: {}",
        text(&output.stderr)
    );
    let left: Vec<_> = fs::read_dir(place.path("data"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    if left != [".plimsoll-data"] {
        fail(Harm::Left, &format!("{what}: {left:?}"));
    }
    assert_gone(place, what);
    let data = place.path("data");
    drawn::assert_sound(&place.path("plimsoll-runs"), &data, facts, what);
    drawn::assert_sound(&place.path("next"), &data, &Facts::default(), what);
}

fn settings(build: &str) -> &'static str {
    match build.starts_with("postgres") {
        true => "shared_buffers = \"64MB\", fsync = \"off\"",
        false => "innodb_buffer_pool_size = \"64M\", innodb_flush_log_at_trx_commit = \"0\"",
    }
}

/// A place that PostgreSQL's servers can get at.
fn open_place() -> Place {
    let place = Place::new();
    fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    place
}

/// The folder of the only trial so far of the newest campaign.
fn trial_dir(place: &Place) -> Option<PathBuf> {
    let campaign = fs::read_dir(place.path("plimsoll-runs"))
        .ok()?
        .next()?
        .ok()?
        .path();
    Some(
        fs::read_dir(campaign.join("trials"))
            .ok()?
            .next()?
            .ok()?
            .path(),
    )
}

fn has_event(dir: &Path, event: &str, step: &str) -> bool {
    let text = fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
    let mut events = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.any(|found| found["event"] == event && (step.is_empty() || found["step"] == step))
}

fn is_in(phase: Phase, place: &Place, started: Instant) -> bool {
    if let Phase::At(ms) = phase {
        return started.elapsed() >= Duration::from_millis(ms);
    }
    let Some(dir) = trial_dir(place) else {
        return false;
    };
    let has = |name: &str| fs::metadata(dir.join("server").join(name)).is_ok();
    let is_ready = has_event(&dir, "server_ready", "");
    match phase {
        Phase::Init => has("server-process.json") && has("init.log") && !has("server.log"),
        Phase::Start => has("server.log") && !is_ready,
        Phase::Load => has_event(&dir, "step_start", "l.i0"),
        Phase::Drain => has_event(&dir, "step_done", "l.i2"),
        Phase::At(_) => false,
    }
}

/// Whether a campaign's process is the program by now. Before, it is what sees that signals are not
/// ignored, and until that has done so it may ignore them itself, as behind a shell's `&`.
fn has_begun(orchestrator: &Child) -> bool {
    fs::read_link(format!("/proc/{}/exe", orchestrator.id()))
        .is_ok_and(|program| program.ends_with("plimsoll"))
}

/// Whom the fault is about, now; none when it is over already.
fn targets(who: Who, place: &Place, orchestrator: &Child) -> Vec<u32> {
    let all = processes_of(place.dir.path());
    let pids = |is: &dyn Fn(&Process) -> bool| -> Vec<u32> {
        all.iter()
            .filter(|process| is(process))
            .map(|process| process.pid)
            .collect()
    };
    match who {
        Who::Orchestrator => vec![orchestrator.id()],
        Who::Guard => pids(&|process| process.is_plimsoll("guard")),
        Who::Trial => pids(&|process| process.is_plimsoll("trial")),
        Who::All => {
            let mut all =
                pids(&|process| process.is_plimsoll("trial") || process.is_plimsoll("guard"));
            all.push(orchestrator.id());
            all
        }
        Who::Wrapper => pids(&|process| process.line.iter().any(|word| word == "wrapper")),
        Who::Server => {
            let text = trial_dir(place)
                .and_then(|dir| fs::read_to_string(dir.join("server/server-process.json")).ok());
            let identity: Option<Value> = text.and_then(|text| serde_json::from_str(&text).ok());
            let pid = identity.and_then(|identity| Some(identity["pid"].as_u64()? as u32));
            pid.into_iter()
                .filter(|pid| all.iter().any(|process| process.pid == *pid))
                .collect()
        }
    }
}

fn send(pids: &[u32], signal: Signal) {
    for pid in pids {
        // It may have ended by itself a moment ago.
        let _ = kill_process(Pid::from_raw(*pid as i32).unwrap(), signal);
    }
}

/// A place whose processes end with a fault that was not injected as it should: the next one comes.
struct Cleared<'a>(&'a Place);

impl Drop for Cleared<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let left = processes_of(self.0.dir.path());
            let pids: Vec<u32> = left.iter().map(|process| process.pid).collect();
            send(&pids, Signal::KILL);
        }
    }
}

/// One campaign of one trial, one fault, and what must hold after it. Returns how many finished steps
/// were there before.
fn inject(fault: Fault, build: &CachedBuild) -> u64 {
    let place = open_place();
    let _cleared = Cleared(&place);
    let rows = if fault.phase == Phase::Drain {
        "2K"
    } else {
        "2M"
    };
    let prefix = match fault.who {
        Who::Wrapper => "prefix = [\"/bin/sh\", \"-c\", '\"$@\"; exit $?', \"wrapper\"]\n",
        _ => "",
    };
    let plan = format!(
        "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{}\"]\nconfigs = \
        [\"first\"]\nwait = \"20s\"\n\
         steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]\n[sizes]\nrows = \
        \"{rows}\"\nwrite_rows = \"1K\"\nduration = \"1s\"\n\
         [config.first]\nsettings = {{ {} }}\n{prefix}",
        build.name,
        settings(&build.name)
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    let mut command = place.command(&["run", "plan.toml", "--seed", "3"]);
    let started = Instant::now();
    let mut child = command
        .arg("--cache")
        .arg(&build.cache)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut found = Vec::new();
    wait_until(&format!("{fault}: the moment"), || {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "{fault}: the campaign goes on"
        );
        if has_begun(&child) && is_in(fault.phase, &place, started) {
            found = targets(fault.who, &place, &child);
        }
        !found.is_empty()
            || fault.phase != Phase::At(0) && started.elapsed() > Duration::from_secs(60)
    });
    assert!(!found.is_empty(), "{fault}: nobody to be killed");
    if fault.is_forgotten {
        let _ = fs::remove_file(
            trial_dir(&place)
                .unwrap()
                .join("server/server-process.json"),
        );
    }
    let kernel = KernelObjects::of(&place);
    let facts = drawn::finished_steps(&place.path("plimsoll-runs"));
    send(&found, fault.signal);
    let status = wait(child).status;
    assert!(
        !status.success() || fault.may_be_ignored(),
        "{fault}: {status:?}"
    );
    // If nobody is left who could see to it, the next run does.
    if fault.who != Who::All {
        assert_gone(&place, &fault);
    }
    assert_next_run_is_clean(&place, &facts, &fault);
    kernel.assert_gone(&fault);
    drawn::count_of(&facts)
}

/// What the servers of a place have in the kernel: ids of shared memory, and files below /dev/shm.
struct KernelObjects {
    ids: Vec<String>,
    segments: Vec<PathBuf>,
}

impl KernelObjects {
    fn of(place: &Place) -> Self {
        let data = place.path("data");
        let mut found = Self {
            ids: plimsoll_audit::shared_memory_ids(&data),
            segments: Vec::new(),
        };
        found.add(&data);
        found
    }

    fn add(&mut self, dir: &Path) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                self.add(&path);
            } else if name == "segments" {
                let names = fs::read_to_string(&path).unwrap_or_default();
                self.segments
                    .extend(names.lines().map(|name| Path::new("/dev/shm").join(name)));
            }
        }
    }

    #[track_caller]
    fn assert_gone(&self, what: &dyn fmt::Display) {
        let table = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
        let ids = table
            .lines()
            .filter_map(|row| row.split_whitespace().nth(1));
        let left: Vec<&str> = ids
            .filter(|id| self.ids.iter().any(|of| of == id))
            .collect();
        let segments: Vec<_> = self.segments.iter().filter(|path| path.exists()).collect();
        if !left.is_empty() || !segments.is_empty() {
            fail(
                Harm::Left,
                &format!("{what}: left in the kernel: {left:?} {segments:?}"),
            );
        }
    }
}

fn inject_all(test: &str, faults: &[(&'static str, Who, Signal, Phase)]) {
    for &(wanted, who, signal, phase) in faults {
        let Some(build) = cached_build(test, wanted) else {
            continue;
        };
        inject(
            Fault {
                build: wanted,
                who,
                signal,
                phase,
                is_forgotten: false,
            },
            &build,
        );
    }
}

#[test]
fn nothing_is_left_of_a_postgresql_whoever_dies() {
    inject_all(
        "cli::faults::nothing_is_left_of_a_postgresql_whoever_dies",
        &[
            (POSTGRES, Who::Orchestrator, Signal::KILL, Phase::Init),
            (POSTGRES, Who::Orchestrator, Signal::HUP, Phase::Load),
            (POSTGRES, Who::Trial, Signal::KILL, Phase::Load),
            (POSTGRES, Who::Guard, Signal::KILL, Phase::Load),
            (POSTGRES, Who::Wrapper, Signal::KILL, Phase::Load),
            (POSTGRES, Who::All, Signal::KILL, Phase::Load),
        ],
    );
}

#[test]
fn nothing_is_left_of_a_mariadb_whoever_dies() {
    inject_all(
        "cli::faults::nothing_is_left_of_a_mariadb_whoever_dies",
        &[
            (MARIADB, Who::Orchestrator, Signal::QUIT, Phase::Start),
            (MARIADB, Who::Trial, Signal::HUP, Phase::Init),
            (MARIADB, Who::Orchestrator, Signal::KILL, Phase::Drain),
            (MARIADB, Who::Server, Signal::QUIT, Phase::Load),
            (MARIADB, Who::Guard, Signal::KILL, Phase::Start),
            (MARIADB, Who::Wrapper, Signal::HUP, Phase::Load),
        ],
    );
}

/// As a kill between the start of a server and the writing of its identity leaves it, or a full
/// disk.
#[test]
fn a_server_is_ended_without_its_identity_file() {
    let test = "cli::faults::a_server_is_ended_without_its_identity_file";
    for who in [Who::Trial, Who::Orchestrator] {
        let Some(build) = cached_build(test, POSTGRES) else {
            return;
        };
        inject(
            Fault {
                build: POSTGRES,
                who,
                signal: Signal::KILL,
                phase: Phase::Load,
                is_forgotten: true,
            },
            &build,
        );
    }
}

/// As in a container that may not signal another user, who PostgreSQL's server is: only that user
/// ends it. Its data was removed below it, and with its guard killed the trial had no end.
#[test]
fn data_below_a_server_that_may_not_be_ended_stays_and_its_trial_has_an_end() {
    let test =
        "cli::faults::data_below_a_server_that_may_not_be_ended_stays_and_its_trial_has_an_end";
    let Some(build) = cached_build(test, POSTGRES) else {
        return;
    };
    if !rustix::process::geteuid().is_root() {
        return skip(test, "only root's servers run as another user");
    }
    for who in [Who::Trial, Who::Guard] {
        let place = open_place();
        let _cleared = Cleared(&place);
        let plan = format!(
            "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"{}\"]\nconfigs = [\"a\", \
            \"b\"]\nsteps = [\"l.i0\", \"l.x\", \"l.i1\"]\n[sizes]\nrows = \"100K\"\n\
             [config.a]\nsettings = {{ {settings} }}\n[config.b]\nsettings = {{ {settings} }}\n",
            build.name,
            settings = settings(POSTGRES)
        );
        fs::write(place.path("plan.toml"), plan).unwrap();
        let run = place.command(&["run", "plan.toml", "--cache", build.cache.to_str().unwrap()]);
        let mut command = Command::new("setpriv");
        command
            .arg("--bounding-set=-kill")
            .arg(run.get_program())
            .args(run.get_args())
            .current_dir(run.get_current_dir().unwrap())
            .envs(
                run.get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let started = Instant::now();
        wait_until("rows are being loaded", || {
            is_in(Phase::Load, &place, started)
        });
        let servers = targets(Who::Server, &place, &child);
        send(&targets(who, &place, &child), Signal::KILL);
        let output = wait(child);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(5), "{who:?}: {message}");
        assert!(message.contains("not ours to end"), "{who:?}: {message}");
        let left = processes_of(place.dir.path());
        assert!(
            left.iter().any(|process| servers == [process.pid]),
            "{who:?}: {servers:?} of {left:?}"
        );
        let data = fs::read_dir(place.path("data")).unwrap().flatten();
        let is_there = |campaign: PathBuf| {
            let trials = fs::read_dir(campaign).into_iter().flatten().flatten();
            trials
                .into_iter()
                .any(|trial| trial.path().join("pgdata/base").is_dir())
        };
        assert!(
            data.into_iter().any(|entry| is_there(entry.path())),
            "{who:?}"
        );
        let dir = trial_dir(&place).unwrap();
        let ends = ["server_crashed", "step_failed", "trial_failed"];
        assert!(
            ends.iter().any(|end| has_event(&dir, end, "")),
            "{who:?}: no end"
        );
        let is_sealed = dir.join("seal.json").exists();
        assert!(!is_sealed, "{who:?}: the server writes its log there");
        send(&servers, Signal::KILL);
        let facts = drawn::finished_steps(&place.path("plimsoll-runs"));
        assert_next_run_is_clean(&place, &facts, &format!("{who:?} of a server that runs on"));
    }
}

/// A place with a plan of both servers.
fn planned(postgres: &CachedBuild, mariadb: &CachedBuild) -> Place {
    let place = open_place();
    let plan = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\ncomparable = false\ncells = [\"{}.p\", \
        \"{}.m\"]\nseed = 3\nwait = \"100ms\"\n\
         tests = [\"point-query\"]\n[sizes]\nclients = 2\ntables = 1\nrows = \"5K\"\nduration = \
        \"1s\"\nwarm_up = \"0ms\"\n\
         [config.p]\nsettings = {{ {} }}\n[config.m]\nsettings = {{ {} }}\n",
        postgres.name,
        mariadb.name,
        settings(POSTGRES),
        settings(MARIADB)
    );
    fs::write(place.path("plan.toml"), plan).unwrap();
    place
}

/// Runs a command until processes of its place are as wanted, and ends somebody by SIGKILL.
fn kill_when(
    place: &Place,
    mut command: Command,
    what: &str,
    who: Who,
    is_time: impl Fn(&[Process]) -> bool,
) {
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until(what, || {
        assert_eq!(child.try_wait().unwrap(), None, "{what}: it goes on");
        is_time(&processes_of(place.dir.path()))
    });
    let facts = drawn::finished_steps(&place.path("plimsoll-runs"));
    send(&targets(who, place, &child), Signal::KILL);
    wait(child);
    let fault = format!("{what}: {who:?} gets signal 9");
    if who != Who::All {
        assert_gone(place, &fault);
    }
    assert_next_run_is_clean(place, &facts, &fault);
}

/// By slices all servers but one are stopped. PostgreSQL's have some eight processes each.
#[test]
fn servers_that_are_stopped_between_their_turns_are_gone_too() {
    let test = "cli::faults::servers_that_are_stopped_between_their_turns_are_gone_too";
    let (Some(postgres), Some(mariadb)) =
        (cached_build(test, POSTGRES), cached_build(test, MARIADB))
    else {
        return;
    };
    let place = planned(&postgres, &mariadb);
    for who in [Who::Orchestrator, Who::All] {
        let mut command = place.command(&[
            "confirm",
            "plan.toml",
            "--step",
            "point-query",
            "--slices",
            "200ms",
            "--time",
            "60s",
            "--starts",
            "1",
        ]);
        command.arg("--cache").arg(&postgres.cache);
        let are_stopped =
            |all: &[Process]| all.iter().filter(|process| process.state == 'T').count() > 6;
        kill_when(&place, command, "servers are stopped", who, are_stopped);
    }
    if Command::new("perf")
        .arg("version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_err()
    {
        return skip(
            "cli::faults::perf_is_gone_with_its_orchestrator",
            "there is no program perf",
        );
    }
    let mut command = place.command(&[
        "confirm",
        "plan.toml",
        "--step",
        "point-query",
        "--blocks",
        "1",
        "--time",
        "200ms",
        "--perf",
        "60s",
    ]);
    command.arg("--cache").arg(&postgres.cache);
    let is_profiled = |all: &[Process]| {
        all.iter()
            .any(|process| process.line.iter().any(|word| word.ends_with(".perf.data")))
    };
    kill_when(
        &place,
        command,
        "perf looks",
        Who::Orchestrator,
        is_profiled,
    );
}

#[test]
fn nothing_is_left_of_a_db_bench() {
    let Some(build) = cached_build(
        "cli::faults::nothing_is_left_of_a_db_bench",
        "rocksdb@7.8.3+debian",
    ) else {
        return;
    };
    let place = open_place();
    let plan = "name = \"t\"\nworkload = \"rocksdb\"\ncomparable = false\nbuilds = \
               [\"rocksdb@7.8.3+debian\"]\nconfigs = [\"c\"]\n[sizes]\nclients = 2\n\
                rows = \"20M\"\nduration = \"60s\"\n[config.c]\nfrom = \"lc_byrx_small\"\ndriver = \
               \"db_bench\"\n\
                settings = { write_buffer_size = \"1m\", block_cache_bytes = \"64m\" }\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    for who in [Who::Orchestrator, Who::Trial, Who::Guard] {
        let mut command = place.command(&[
            "run",
            "plan.toml",
            "--seed",
            "3",
            "--store",
            &format!("{who:?}"),
        ]);
        command.arg("--cache").arg(&build.cache);
        let loads = |all: &[Process]| {
            all.iter().any(|process| {
                process
                    .line
                    .iter()
                    .any(|word| word.starts_with("--benchmarks=fillseq"))
            })
        };
        kill_when(&place, command, "db_bench loads", who, loads);
    }
}

/// A build goes on for hours, where nobody wants it any more.
#[test]
fn a_build_command_ends_with_its_search() {
    let place = Place::new();
    let plan = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"postgres@18\"]\nconfigs = \
               [\"c\"]\ntests = [\"point-query\"]\n[config.c]\nsettings = { fsync = \"off\" }\n\
                [sizes]\nrows = \"5K\"\ntables = 1\nclients = 1\nduration = \"1s\"\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    fs::write(place.path("commits"), "a\nb\nc\n").unwrap();
    let search = [
        "bisect",
        "--plan",
        "plan.toml",
        "--good",
        "a",
        "--bad",
        "c",
        "--step",
        "point-query",
        "--commits",
        "commits",
    ];
    let (is_stopped, is_awake) = (true, false);
    for (who, signal, guard) in [
        (Who::Orchestrator, Signal::KILL, is_awake),
        (Who::Orchestrator, Signal::HUP, is_awake),
        // It does not act on a signal, and the search waited for it without end.
        (Who::Orchestrator, Signal::HUP, is_stopped),
        (Who::Guard, Signal::KILL, is_awake),
    ] {
        let mut command = place.command(&search);
        command
            .args(["--command", "sleep 300 & echo > begun; wait # {commit}"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        wait_until("the build begins", || {
            assert_eq!(child.try_wait().unwrap(), None, "the search goes on");
            place.path("begun").exists()
        });
        assert!(
            processes_of(place.dir.path()).len() >= 4,
            "search, guard, shell, sleep"
        );
        if guard == is_stopped {
            send(&targets(Who::Guard, &place, &child), Signal::STOP);
        }
        send(&targets(who, &place, &child), signal);
        wait(child);
        assert_gone(
            &place,
            &format!("{who:?} of a search gets signal {}", signal.as_raw()),
        );
        fs::remove_file(place.path("begun")).unwrap();
    }
}

/// Faults that a seed chooses.
#[test]
fn nothing_is_left_after_faults_at_random() {
    // Most faults of the short form are above.
    let (count, mut draw, mut tally) = drawn::faults("faults", 2);
    let mut pick = |count: usize| draw.below(count as u64) as usize;
    for _ in 0..count {
        let wanted = [POSTGRES, MARIADB][pick(2)];
        let who = [
            Who::Orchestrator,
            Who::Guard,
            Who::Trial,
            Who::Server,
            Who::Wrapper,
            Who::All,
        ][pick(6)];
        let signal = [Signal::KILL, Signal::KILL, Signal::HUP, Signal::QUIT][pick(4)];
        let phase = [
            Phase::Init,
            Phase::Start,
            Phase::Load,
            Phase::Drain,
            Phase::At(pick(8000) as u64 + 1),
        ][pick(5)];
        // Wrappers are there when the server is, and one that goes on is not a fault.
        let is_possible = match who {
            Who::Wrapper => !matches!(phase, Phase::Init),
            Who::Guard | Who::Server => signal != Signal::HUP,
            _ => true,
        };
        let Some(build) = cached_build(
            "cli::faults::nothing_is_left_after_faults_at_random",
            wanted,
        )
        .filter(|_| is_possible) else {
            continue;
        };
        let fault = Fault {
            build: wanted,
            who,
            signal,
            phase,
            is_forgotten: false,
        };
        println!("{fault}");
        tally.count(&fault, || inject(fault, &build));
    }
    tally.conclude();
}

/// Runs a small campaign as somebody's child; what is not over in time is killed, stopped or not,
/// and fails.
#[track_caller]
fn run_as_child_of(place: &Place, starter: &[&str]) -> String {
    fs::write(place.path("next.toml"), NEXT_PLAN).unwrap();
    let mut command = Command::new(starter[0]);
    command.args(&starter[1..]).args([
        env!("CARGO_BIN_EXE_plimsoll"),
        "run",
        "next.toml",
        "--data",
        "data",
    ]);
    let child = command
        .current_dir(place.dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let mut is_late = false;
    while !is_late
        && fs::read_to_string(format!("/proc/{}/stat", child.id()))
            .is_ok_and(|stat| !stat.contains(") Z "))
    {
        is_late = started.elapsed() > Duration::from_secs(60);
        std::thread::sleep(Duration::from_millis(20));
    }
    if is_late {
        let all = processes_of(place.dir.path());
        send(
            &all.iter().map(|process| process.pid).collect::<Vec<_>>(),
            Signal::KILL,
        );
        send(&[child.id()], Signal::KILL);
    }
    let output = wait(child);
    assert!(
        !is_late,
        "{starter:?}: still running after a minute: {}",
        text(&output.stderr)
    );
    assert_eq!(
        output.status.code(),
        Some(0),
        "{starter:?}: {}",
        text(&output.stderr)
    );
    text(&output.stderr)
}

/// Masks and ignored signals are inherited: a supervisor that waits for its children by `signalfd`
/// has SIGCHLD blocked.
#[test]
fn signals_that_our_parent_has_blocked_or_ignored_hang_nothing() {
    for starter in [
        "--block-signal=CHLD",
        "--block-signal",
        "--ignore-signal=CHLD",
    ] {
        run_as_child_of(&Place::new(), &["env", starter]);
    }
}

/// The environment of a trial may be copied, to try something by hand: we stop neither ourselves
/// nor the shell that we were started by.
#[test]
fn whoever_has_started_us_is_not_ended_for_a_mark() {
    let place = Place::new();
    fs::create_dir(place.path("data")).unwrap();
    let mark = format!(
        "PLIMSOLL_TRIAL={}/20261123T051426Z-t/1-a1",
        place.path("data").canonicalize().unwrap().display()
    );
    run_as_child_of(&place, &["env", &mark, "sh", "-c", "\"$@\"; exit $?", "sh"]);
}

/// A trial runs until its guard is stopped, and two requests to stop still end it.
#[test]
fn a_guard_that_is_stopped_ends_with_the_second_request() {
    let place = Place::new();
    fs::write(place.path("next.toml"), NEXT_PLAN.replace("1K", "20M")).unwrap();
    let mut child = place
        .command(&["run", "next.toml"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut guards = Vec::new();
    wait_until("a trial", || {
        guards = targets(Who::Guard, &place, &child);
        !targets(Who::Trial, &place, &child).is_empty()
    });
    send(&guards, Signal::STOP);
    send(&[child.id()], Signal::QUIT);
    let asked = Instant::now();
    while child.try_wait().unwrap().is_none() && asked.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let is_over = child.try_wait().unwrap().is_some();
    send(&guards, Signal::KILL);
    wait(child);
    assert!(is_over, "it waits for a guard that is stopped");
    assert_gone(&place, &"a guard that was stopped");
}

/// Where the data folder was moved to a larger disk, and a link is in its place: the mark has the
/// folder's own path all the same.
#[test]
fn the_mark_of_a_resumed_campaign_has_no_link_in_it() {
    let place = Place::new();
    fs::write(place.path("next.toml"), NEXT_PLAN.replace("1K", "20M")).unwrap();
    let is_up = |child: &Child| !targets(Who::Trial, &place, child).is_empty();
    let start = |arguments: &[&str]| {
        // As `Place::command`, but for the data folder, which `resume` knows.
        let mut child = Command::new("env")
            .args([
                "--default-signal=HUP,INT,QUIT",
                env!("CARGO_BIN_EXE_plimsoll"),
            ])
            .current_dir(place.dir.path())
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("a trial", || {
            assert_eq!(child.try_wait().unwrap(), None, "the campaign goes on");
            is_up(&child)
        });
        child
    };
    let child = start(&["run", "next.toml", "--data", "data"]);
    send(&[child.id()], Signal::QUIT);
    wait(child);
    fs::rename(place.path("data"), place.path("disk")).unwrap();
    std::os::unix::fs::symlink(place.path("disk"), place.path("data")).unwrap();
    let child = start(&["resume"]);
    let trial = targets(Who::Trial, &place, &child)[0];
    let environ = fs::read(format!("/proc/{trial}/environ")).unwrap();
    send(&[child.id()], Signal::QUIT);
    wait(child);
    let environ = text(&environ);
    let mark = environ
        .split('\0')
        .find_map(|variable| variable.strip_prefix("PLIMSOLL_TRIAL="))
        .unwrap();
    assert!(
        Path::new(mark).starts_with(place.path("disk").canonicalize().unwrap()),
        "{mark}"
    );
}

#[test]
fn a_full_store_costs_trials_and_leaves_no_data() {
    let test = "cli::faults::a_full_store_costs_trials_and_leaves_no_data";
    let place = Place::new();
    let Some(_mount) = Mount::new(place.path("plimsoll-runs"), 8) else {
        return skip(test, "only root may mount a small file system");
    };
    let child = place.spawn(&["run", "small.toml", "--seed", "7"]);
    let has_begun = || {
        let trials = place.path("plimsoll-runs").read_dir().unwrap().flatten();
        let mut trials = trials.flat_map(|campaign| campaign.path().join("trials").read_dir());
        trials
            .any(|mut trials| trials.any(|trial| trial.unwrap().path().join("l.i0.hlog").exists()))
    };
    wait_until("the first step", has_begun);
    let ballast = place.campaign().join("ballast");
    fs::write(&ballast, vec![1; 16 << 20]).unwrap_err();
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let left: Vec<_> = place.path("data").read_dir().unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "the marker alone: {left:?}");
    let shown = text(&place.run(&["show"]).stdout);
    assert!(
        shown.contains("nearly full")
            || shown.contains("is full")
            || shown.contains("No space left"),
        "{shown}\n{stderr}"
    );
    assert_eq!(
        stderr.matches(": not complete: ").count(),
        2,
        "both cells ran: {stderr}"
    );

    fs::remove_file(&ballast).unwrap();
    let resumed = place.run(&["resume"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", text(&resumed.stderr));
    let (store, data) = (place.path("plimsoll-runs"), place.path("data"));
    drawn::assert_sound(&store, &data, &Facts::default(), &"a full store");
}
