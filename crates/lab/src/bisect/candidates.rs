//! The ordered builds that a search is among.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::{BuildName, natural_cmp};
use plimsoll_core::plan::{Cell, Plan, divide};
use plimsoll_engine::process::{MARK, ProcessIdentity, child_command, describe_status, end_marked};
use plimsoll_store::header::{CampaignHeader, CellHeader};
use rustix::process::{Pid, Signal, kill_process_group};

use super::recipe::CommitRecipe;
use crate::builds::{BuildCache, BuildError};
use crate::campaign::{LoadedPlan, RequiredBuilds, look_up_cells, seed_from_clock};
use crate::error::LabError;
use crate::guard::guarded;
use crate::leftovers::of_processes;
use crate::trial_process::END_LIMIT;

/// A build command may take this long; then something hangs.
const BUILD_LIMIT: Duration = Duration::from_secs(4 * 3600);
const POLL: Duration = Duration::from_millis(50);
/// Output ends with the last process that holds it: at once, if none is left.
const OUTPUT_LIMIT: Duration = Duration::from_secs(2);
/// What a command has in place of the commit.
const COMMIT: &str = "{commit}";

/// The user's way from a commit to a build: a shell command with `{commit}`, whose last line of
/// output is the build's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildCommand {
    text: String,
    /// This program's binary, where the command runs under a guard.
    guard: Option<PathBuf>,
}

impl BuildCommand {
    /// A command without `{commit}` would make the same build each time.
    ///
    /// # Errors
    /// When it has none: a sentence for people.
    pub fn new(command: &str) -> Result<Self, LabError> {
        if command.contains(COMMIT) {
            return Ok(Self {
                text: command.to_owned(),
                guard: None,
            });
        }
        Err(LabError::Usage(format!(
            "the command \"{command}\" makes the same build of every commit; write {COMMIT} where \
            the commit goes"
        )))
    }

    /// The same, under a guard: when we are killed, what it has started does not build on.
    /// `program` is this program's binary.
    pub fn under_guard(self, program: PathBuf) -> Self {
        Self {
            guard: Some(program),
            ..self
        }
    }

    fn command(&self, text: &str) -> Command {
        match &self.guard {
            Some(program) => {
                let mut command = guarded(program, &["sh", "-c", text].map(OsString::from));
                command.env(MARK, mark());
                command
            }
            None => {
                let mut command = child_command("sh");
                command.arg("-c").arg(text).process_group(0);
                command
            }
        }
    }

    /// Ends the command and all it started.
    fn end(&self, child: &mut Child, reason: &str) -> String {
        // A guard ends what is below it, and then itself.
        let signal = if self.guard.is_some() {
            Signal::TERM
        } else {
            Signal::KILL
        };
        if let Some(group) = Pid::from_raw(child.id() as i32) {
            let _ = kill_process_group(group, signal);
            // Who is stopped does not act on a signal.
            let _ = kill_process_group(group, Signal::CONT);
        }
        let deadline = Instant::now() + END_LIMIT;
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                let _ = child.kill();
            }
            std::thread::sleep(POLL);
        }
        format!("{reason}{}", self.end_what_is_left())
    }

    /// A guard that was killed itself ends nothing any more, and one may have given up. Returns what
    /// is to be said of the processes that run on; nothing of none.
    fn end_what_is_left(&self) -> String {
        let left = match &self.guard {
            Some(_) => end_marked(&mark()),
            None => Vec::new(),
        };
        match left.as_slice() {
            [] => String::new(),
            pids => format!("; it runs on, and has to be ended: {}", of_processes(pids)),
        }
    }

    /// Runs it. The inner error says why the commit has no build.
    fn run(&self, commit: &str, stop_requests: &AtomicUsize) -> Result<PathBuf, String> {
        // The commit's name was checked: nothing in it means anything to a shell.
        let text = self.text.replace(COMMIT, commit);
        let mut command = self.command(&text);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("failed to start sh: {error}"))?;
        let (tell, told) = mpsc::channel();
        if let Some(mut output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = output.read_to_end(&mut bytes);
                tell.send(String::from_utf8_lossy(&bytes).into_owned())
            });
        }
        let deadline = Instant::now() + BUILD_LIMIT;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if stop_requests.load(Ordering::SeqCst) > 0 => {
                    return Err(self.end(&mut child, "interrupted"));
                }
                Ok(None) if Instant::now() > deadline => {
                    return Err(self.end(
                        &mut child,
                        &format!("`{text}` ran for {} hours", BUILD_LIMIT.as_secs() / 3600),
                    ));
                }
                Ok(None) => std::thread::sleep(POLL),
                Err(error) => {
                    return Err(
                        self.end(&mut child, &format!("failed to wait for `{text}`: {error}"))
                    );
                }
            }
        };
        let left = self.end_what_is_left();
        if !status.success() {
            let end = describe_status(status);
            return Err(format!("`{text}` failed ({end}){left}"));
        }
        if !left.is_empty() {
            return Err(format!("`{text}` has ended{left}"));
        }
        let output = told.recv_timeout(OUTPUT_LIMIT).map_err(|_| {
            format!(
                "`{text}` has ended, and its output is held by a process that it started: send the \
                 output of what runs on elsewhere"
            )
        })?;
        let folder = output
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .map(|line| PathBuf::from(line.trim()));
        folder
            .ok_or_else(|| format!("`{text}` printed no folder; its last line must be the build's"))
    }
}

/// What the processes of a build have in place of a trial's data directory, in whatever root: one
/// build runs at a time. A process in another container may have this one's number.
fn mark() -> PathBuf {
    let pid = std::process::id();
    let started = ProcessIdentity::of(pid).map_or(0, |own| own.start_ticks);
    PathBuf::from(format!("/build-of/{pid}-{started}"))
}

/// What turns a commit into a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitMaker {
    Command(BuildCommand),
    Recipe(CommitRecipe),
}

impl CommitMaker {
    /// The name of a commit's build, which is made now if it is not here. The inner error says why
    /// the commit has none.
    fn build(
        &self,
        commit: &str,
        engine: EngineName,
        builds: &BuildCache,
        stop_requests: &AtomicUsize,
    ) -> Result<Result<BuildName, String>, LabError> {
        let command = match self {
            Self::Recipe(recipe) => return recipe.make(commit, builds, stop_requests),
            Self::Command(command) => command,
        };
        let name: BuildName = format!("{engine}+{commit}")
            .parse()
            .map_err(|error| LabError::Usage(format!("{error}")))?;
        // A search that goes on has some builds already.
        match builds.get(&name) {
            Ok(Some(_)) => return Ok(Ok(name)),
            Ok(None) | Err(BuildError::Unknown(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = match command.run(commit, stop_requests) {
            Ok(folder) => folder,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(match builds.add_basedir(&folder, commit) {
            Ok(build) if build.engine == engine => Ok(name),
            Ok(build) => Err(format!(
                "{} is a build of {}, and the plan's is {engine}",
                folder.display(),
                build.engine
            )),
            Err(error) => Err(error.to_string()),
        })
    }
}

enum Source {
    /// All builds are known.
    Cells(Vec<(Cell, CellHeader)>),
    /// A build is made when it is probed.
    Commits {
        plan: Box<LoadedPlan>,
        maker: CommitMaker,
        engine: EngineName,
        made: BTreeMap<usize, (Cell, CellHeader)>,
    },
}

/// A commit, as a line of `git log --oneline` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// A hash or tag.
    pub name: String,
    /// Its first line, without control characters; empty if it is not known.
    pub subject: String,
}

impl Commit {
    /// `NAME` or `NAME SUBJECT`.
    pub fn from_line(line: &str) -> Self {
        let line = line.trim();
        let (name, subject) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let is_shown = |c: &char| !c.is_control();
        Self {
            name: name.to_owned(),
            subject: subject.trim().chars().filter(is_shown).collect(),
        }
    }
}

/// Builds from the good one, the first, to the bad one, the last.
pub struct Candidates {
    names: Vec<String>,
    /// The first lines of commits, by their names: those that are known.
    subjects: BTreeMap<String, String>,
    source: Source,
    /// The plan behind them, for everything but cells.
    plan: Plan,
    plan_text: String,
    seed: Option<u64>,
    of: String,
}

impl Candidates {
    /// The cells of a campaign: those of the good one's config and shape by version, where the bad
    /// one is among them; else all, in the plan's order.
    ///
    /// # Errors
    /// When there is no such cell, or good does not come before bad.
    pub fn of_campaign(header: &CampaignHeader, good: &str, bad: &str) -> Result<Self, LabError> {
        let mut cells: Vec<(Cell, CellHeader)> = header
            .plan
            .cells
            .iter()
            .cloned()
            .zip(header.cells.iter().cloned())
            .collect();
        let key = |wanted: &str| {
            let found = cells
                .iter()
                .find(|(cell, _)| cell.label == wanted || cell.build.to_string() == wanted);
            found.map(|(cell, _)| (cell.config.label.clone(), cell.shape.clone()))
        };
        if let (Some(of_good), true) = (key(good), key(good) == key(bad)) {
            cells.retain(|(cell, _)| (&cell.config.label, &cell.shape) == (&of_good.0, &of_good.1));
            // Labels of your own builds have no order but that of the plan.
            if cells.iter().all(|(cell, _)| cell.build.version.is_some()) {
                cells.sort_by(|(_, a), (_, b)| natural_cmp(&a.version, &b.version));
            }
        }
        let names: Vec<String> = cells.iter().map(|(cell, _)| cell.label.clone()).collect();
        let builds: Vec<String> = cells
            .iter()
            .map(|(cell, _)| cell.build.to_string())
            .collect();
        let (first, last) = ends(&names, &builds, good, bad)?;
        Ok(Self {
            names: names[first..=last].to_vec(),
            subjects: BTreeMap::new(),
            source: Source::Cells(cells.drain(first..=last).collect()),
            plan: header.plan.clone(),
            plan_text: header.plan_text.clone(),
            seed: Some(header.seed),
            of: header.id.clone(),
        })
    }

    /// The cells of a plan, as [`Candidates::of_campaign`] takes those of a campaign. Their builds
    /// must be in the cache.
    ///
    /// # Errors
    /// When a build is not here, a config does not suit it, there is no such cell, or good does not
    /// come before bad.
    pub fn of_cells(
        plan: &LoadedPlan,
        builds: &BuildCache,
        good: &str,
        bad: &str,
    ) -> Result<Self, LabError> {
        let headers = look_up_cells(plan, builds, RequiredBuilds::Builds(&BTreeMap::new()))?;
        let cells = plan.plan.cells.iter().cloned().zip(headers).collect();
        let all = Self::of_plan(plan, Vec::new(), Source::Cells(Vec::new()));
        let header = all.header(cells, all.seed.unwrap_or_else(seed_from_clock));
        Self::of_campaign(&header, good, bad)
    }

    /// Builds under the config and with the workload of the plan's first cell of their engine; by
    /// version where all have one, else as given. They must be in the cache.
    ///
    /// # Errors
    /// When the plan has no cell of their engine, a build is not here, its config does not suit it,
    /// or good does not come before bad.
    pub fn of_builds(
        plan: &LoadedPlan,
        builds: &BuildCache,
        names: &[BuildName],
        good: &str,
        bad: &str,
    ) -> Result<Self, LabError> {
        let mut sorted = names.to_vec();
        if sorted.iter().all(|name| name.version.is_some()) {
            sorted.sort_by(|a, b| natural_cmp(&a.to_string(), &b.to_string()));
        }
        let labels: Vec<String> = sorted.iter().map(BuildName::to_string).collect();
        let (first, last) = ends(&labels, &labels, good, bad)?;
        let mut loaded = plan.clone();
        loaded.plan.cells = sorted[first..=last]
            .iter()
            .map(|name| with_build(plan, name))
            .collect::<Result<_, _>>()?;
        let headers = look_up_cells(&loaded, builds, RequiredBuilds::Builds(&BTreeMap::new()))?;
        let cells = loaded.plan.cells.into_iter().zip(headers).collect();
        Ok(Self::of_plan(
            plan,
            labels[first..=last].to_vec(),
            Source::Cells(cells),
        ))
    }

    /// Commits, oldest first, each of which is turned into a build when it is probed.
    ///
    /// # Errors
    /// When a commit's name could mean something to a shell, or good does not come before bad.
    pub fn of_commits(
        plan: &LoadedPlan,
        commits: &[Commit],
        maker: CommitMaker,
        good: &str,
        bad: &str,
    ) -> Result<Self, LabError> {
        let is_plain = |commit: &str| {
            commit
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-~".contains(c))
                && !commit.starts_with('-')
        };
        let names: Vec<String> = commits.iter().map(|commit| commit.name.clone()).collect();
        if let Some(strange) = names.iter().find(|commit| !is_plain(commit)) {
            return Err(LabError::Usage(format!(
                "the commit \"{strange}\" is not a hash or tag; write letters, digits, '.', '_', \
                '-' and '~'"
            )));
        }
        let (first, last) = ends(&names, &names, good, bad)?;
        let engine = plan.plan.cells[plan.plan.base].build.engine;
        let source = Source::Commits {
            plan: Box::new(plan.clone()),
            maker,
            engine,
            made: BTreeMap::new(),
        };
        let with_subject = commits[first..=last]
            .iter()
            .filter(|commit| !commit.subject.is_empty());
        Ok(Self {
            subjects: with_subject
                .map(|commit| (commit.name.clone(), commit.subject.clone()))
                .collect(),
            ..Self::of_plan(plan, names[first..=last].to_vec(), source)
        })
    }

    fn of_plan(plan: &LoadedPlan, names: Vec<String>, source: Source) -> Self {
        Self {
            names,
            subjects: BTreeMap::new(),
            source,
            plan: plan.plan.clone(),
            plan_text: plan.text.clone(),
            seed: plan.plan.seed,
            of: String::new(),
        }
    }

    /// What they are called, in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The first lines of commits, by their names: those that are known.
    pub fn subjects(&self) -> &BTreeMap<String, String> {
        &self.subjects
    }

    /// The full name of the step that is called so.
    ///
    /// # Errors
    /// When the workload has no such step.
    pub fn step_name(&self, text: &str) -> Result<String, LabError> {
        let cell = match &self.source {
            Source::Cells(cells) => cells.first().map(|(cell, _)| cell),
            Source::Commits { .. } => None,
        };
        let workload = &cell.unwrap_or(&self.plan.cells[self.plan.base]).workload;
        let name = workload.step_name(text);
        divide(workload, std::slice::from_ref(&name))
            .map(|_| name)
            .map_err(LabError::Usage)
    }

    pub(super) fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// A campaign that was never made: these cells, the first of them the base.
    pub(super) fn header(&self, cells: Vec<(Cell, CellHeader)>, seed: u64) -> CampaignHeader {
        let (cells, headers): (Vec<Cell>, Vec<CellHeader>) = cells.into_iter().unzip();
        CampaignHeader {
            format: plimsoll_store::header::FORMAT,
            id: self.of.clone(),
            created: plimsoll_store::utc_now(),
            plimsoll_version: String::new(),
            methodology_version: plimsoll_core::METHODOLOGY_VERSION,
            seed,
            plan_text: self.plan_text.clone(),
            plan: Plan {
                cells,
                base: 0,
                ..self.plan.clone()
            },
            cells: headers,
            schedule: Vec::new(),
            data_dir: String::new(),
            confirm: None,
            fleet: None,
            client_hosts: None,
        }
    }

    /// The cell of a candidate, its build made now where it must be. The inner error says why it
    /// cannot be had.
    pub(super) fn cell(
        &mut self,
        index: usize,
        builds: &BuildCache,
        stop_requests: &AtomicUsize,
    ) -> Result<Result<(Cell, CellHeader), String>, LabError> {
        let (plan, maker, engine, made) = match &mut self.source {
            Source::Cells(cells) => return Ok(Ok(cells[index].clone())),
            Source::Commits {
                plan,
                maker,
                engine,
                made,
            } => (plan, maker, *engine, made),
        };
        if let Some(cell) = made.get(&index) {
            return Ok(Ok(cell.clone()));
        }
        let name = match maker.build(&self.names[index], engine, builds, stop_requests)? {
            Ok(name) => name,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut loaded = (**plan).clone();
        loaded.plan.cells = vec![with_build(plan, &name)?];
        let mut headers =
            match look_up_cells(&loaded, builds, RequiredBuilds::Builds(&BTreeMap::new())) {
                Ok(headers) => headers,
                Err(error) => return Ok(Err(error.to_string())),
            };
        let cell = (loaded.plan.cells.remove(0), headers.remove(0));
        made.insert(index, cell.clone());
        Ok(Ok(cell))
    }
}

/// The plan's first cell of the build's engine, with that build.
fn with_build(plan: &LoadedPlan, name: &BuildName) -> Result<Cell, LabError> {
    let cells = &plan.plan.cells;
    let template = cells
        .iter()
        .find(|cell| cell.build.engine == name.engine && cell.server.is_none())
        .ok_or_else(|| {
            LabError::Usage(format!(
                "the plan {} has no cell of {} to take config and workload from; name another",
                plan.plan.name, name.engine
            ))
        })?;
    let has_shapes = cells.iter().any(|cell| cell.shape != template.shape);
    let shape = if has_shapes {
        format!(".{}", template.shape)
    } else {
        String::new()
    };
    Ok(Cell {
        label: format!("{name}.{}{shape}", template.config.label),
        build: name.clone(),
        ..template.clone()
    })
}

/// Where good and bad are; both are found by name, or by a second name.
fn ends(
    names: &[String],
    others: &[String],
    good: &str,
    bad: &str,
) -> Result<(usize, usize), LabError> {
    let find = |what: &str, wanted: &str| {
        let found = names
            .iter()
            .position(|name| name == wanted)
            .or_else(|| others.iter().position(|name| name == wanted));
        found.ok_or_else(|| {
            let hint = plimsoll_core::suggest::hint(wanted, names.iter().map(String::as_str));
            LabError::Usage(format!(
                "{what} {wanted} is not one of the builds or cells{hint}; they are {}",
                names.join(", ")
            ))
        })
    };
    match (find("--good", good)?, find("--bad", bad)?) {
        (first, last) if first < last => Ok((first, last)),
        (first, last) => Err(LabError::Usage(format!(
            "{} does not come before {}: the order is {}; the good build must be the older one",
            names[first],
            names[last],
            names.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_print_a_folder_or_the_commit_has_no_build() {
        let never = AtomicUsize::new(0);
        let run = |command: &str| BuildCommand::new(command).unwrap().run("abc1", &never);
        assert_eq!(
            run("echo building; echo /opt/{commit}"),
            Ok(PathBuf::from("/opt/abc1"))
        );
        assert!(
            run("false {commit}")
                .unwrap_err()
                .contains("`false abc1` failed (exit status 1)")
        );
        assert!(
            run("true {commit}")
                .unwrap_err()
                .contains("printed no folder")
        );
        assert_eq!(
            BuildCommand::new("sleep 60 # {commit}")
                .unwrap()
                .run("x", &AtomicUsize::new(1)),
            Err("interrupted".to_owned())
        );
        assert!(
            BuildCommand::new("make")
                .unwrap_err()
                .to_string()
                .contains("write {commit}")
        );
    }

    #[test]
    fn output_that_somebody_holds_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let held = dir.path().join("pid");
        let text = format!(
            "sleep 60 & echo $! > {}; echo /opt/{COMMIT}",
            held.display()
        );
        let began = Instant::now();
        let ended = BuildCommand::new(&text)
            .unwrap()
            .run("abc1", &AtomicUsize::new(0));
        let waited = began.elapsed();
        let pid = std::fs::read_to_string(held).unwrap();
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
        rustix::process::kill_process(pid.unwrap(), Signal::KILL).unwrap();
        assert!(ended.unwrap_err().contains("its output is held"));
        assert!(waited < Duration::from_secs(60), "{waited:?}");
    }

    #[test]
    fn good_comes_before_bad() {
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(ends(&names, &names, "a", "c").unwrap(), (0, 2));
        assert!(
            ends(&names, &names, "c", "a")
                .unwrap_err()
                .to_string()
                .contains("does not come before")
        );
        assert!(ends(&names, &names, "b", "b").is_err());
        assert!(
            ends(&names, &names, "a", "x")
                .unwrap_err()
                .to_string()
                .contains("--bad x is not one of the builds")
        );
    }

    #[test]
    fn a_commit_without_a_build_is_told_apart_from_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let text = "name = \"x\"\nworkload = \"sysbench-2025\"\nbuilds = \
                   [\"postgres@18\"]\nconfigs = [\"c\"]\n[config.c]\nsettings = \
                   { fsync = \"off\" }\n\
                    [sizes]\nrows = \"50K\"\ntables = 1\nclients = 1\nduration = \"1s\"\n";
        let plan = LoadedPlan {
            plan: Plan::parse("x.toml", text).unwrap(),
            file: "x.toml".into(),
            text: text.to_owned(),
            dir: None,
        };
        let commits = ["old", "broken  Sort\u{1b}[2J twice", "new"].map(Commit::from_line);
        let command = BuildCommand::new(&format!(
            "test {{commit}} != broken && echo {}/{{commit}}",
            dir.path().display()
        ))
        .unwrap();
        let mut candidates =
            Candidates::of_commits(&plan, &commits, CommitMaker::Command(command), "old", "new")
                .unwrap();
        assert_eq!(candidates.names(), ["old", "broken", "new"]);
        let subjects = BTreeMap::from([("broken".to_owned(), "Sort[2J twice".to_owned())]);
        assert_eq!(candidates.subjects(), &subjects);
        let builds = BuildCache::new(dir.path().join("cache"));
        let mut cell = |index: usize| {
            candidates
                .cell(index, &builds, &AtomicUsize::new(0))
                .unwrap()
        };
        assert!(cell(1).unwrap_err().contains("failed (exit status 1)"));
        let reason = cell(0).unwrap_err();
        assert!(
            reason.contains(dir.path().join("old").to_str().unwrap()),
            "no build in the folder: {reason}"
        );
    }

    #[test]
    fn releases_of_one_config_are_in_the_order_of_their_versions() {
        let text = "name = \"x\"\nworkload = \"sysbench-2025\"\nbuilds = [\"mysql@9.7.4\", \
                   \"mysql@5.6.24\", \"mysql@8.0.33\"]\nconfigs = [\"a\", \"b\"]\n\
                    [config.a]\nsettings = {}\n[config.b]\nsettings = {}\n[sizes]\nrows = \
                   \"50K\"\ntables = 1\nclients = 1\nduration = \"1s\"\n";
        let plan = Plan::parse("x.toml", text).unwrap();
        let headers = plan.cells.iter().map(|cell| CellHeader {
            label: cell.label.clone(),
            version: cell.build.version.clone().unwrap(),
            origin: String::new(),
            build: None,
            missing_build: None,
            config_source: String::new(),
            settings: BTreeMap::new(),
        });
        let cells = plan.cells.iter().cloned().zip(headers).collect();
        let loaded = LoadedPlan {
            plan,
            file: "x.toml".into(),
            text: text.to_owned(),
            dir: None,
        };
        let header =
            Candidates::of_plan(&loaded, Vec::new(), Source::Cells(Vec::new())).header(cells, 1);
        let found = Candidates::of_campaign(&header, "mysql@5.6.24.b", "mysql@9.7.4.b").unwrap();
        assert_eq!(
            found.names(),
            ["mysql@5.6.24.b", "mysql@8.0.33.b", "mysql@9.7.4.b"]
        );
        let found = Candidates::of_campaign(&header, "mysql@9.7.4.a", "mysql@8.0.33.b").unwrap();
        assert_eq!(
            found.names().len(),
            6,
            "over configs the plan's order counts"
        );
    }
}
