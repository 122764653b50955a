//! The folder in which a source becomes a build, and how it goes on after an interruption.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::builds::error::BuildError;
use crate::builds::folder::{self, remove, text_of};
use crate::builds::inspect::server_file::hexadecimal;
use crate::builds::make::account::Account;
use crate::builds::make::compiler::{CC, CXX, Compiler};
use crate::builds::make::needs::{self, is_program};
use crate::builds::make::recipe::{LinkStep, MakePlan, Step, filled, staged};
use crate::builds::make::run::{Run, count_objects, log_of};
use crate::builds::make::source::Source;
use crate::builds::make::verify::RECORD;
use crate::builds::make::version;
use crate::builds::progress::{Stage, Watch};
use crate::builds::record::MadeFrom;

/// In the cache's folder: the workshops, and what ccache keeps for itself.
pub(crate) const WORK: &str = "work";
pub(crate) const CCACHE: &str = "ccache";
/// In a workshop: what it is for, and which steps are done.
const FOR: &str = "for";
const DONE: &str = "done";
/// How many seconds earlier tries took.
const TOOK: &str = "took";
/// In a workshop: the options of the steps that run once.
const SETTINGS: &str = "settings";
/// The first of what is done.
const SOURCE: &str = "source";

/// Where workshops are, and how commands run in them.
#[derive(Clone, Copy)]
pub(crate) struct Shops<'a> {
    /// The cache's folder.
    pub cache: &'a Path,
    /// This program's binary, if commands run under a guard.
    pub guard: Option<&'a Path>,
    /// How many commands run at the same time.
    pub jobs: usize,
}

/// A build that is to be made.
pub(crate) struct Make<'a> {
    pub plan: &'a MakePlan,
    pub source: &'a Source,
    /// The workshop's name.
    pub key: &'a str,
    pub shops: Shops<'a>,
    /// How many object files an earlier build of the engine had.
    pub objects: Option<u64>,
}

/// What was made.
pub(crate) struct Made {
    /// Holds what was installed; below the workshop.
    pub root: PathBuf,
    /// The files of the server's links, below the root; none if it was linked once.
    pub links: Vec<PathBuf>,
    pub from: MadeFrom,
}

impl Make<'_> {
    /// What the build is made of.
    pub fn made_of(&self) -> Result<MadeFrom, BuildError> {
        made_from(self.plan, &self.source.hash, self.source.family())
    }

    /// The same for what comes to the same build: a plan, and a source with its hash and family.
    pub fn identity(plan: &MakePlan, hash: &str, family: &str) -> Result<String, BuildError> {
        Ok(made_from(plan, hash, family)?.identity)
    }

    /// Makes it. A workshop that was left goes on where it ended.
    pub fn run(&self, from: MadeFrom, watch: &mut Watch<'_>) -> Result<Made, BuildError> {
        let started = Instant::now();
        let shop = self.open(&from)?;
        let before = text_of(&shop.join(TOOK))?.and_then(|text| text.parse().ok());
        let made = self.make_in(&shop, from, watch);
        let seconds = started
            .elapsed()
            .as_secs()
            .saturating_add(before.unwrap_or(0));
        let Ok(mut made) = made else {
            // Of a workshop that is gone nothing is counted.
            let _ = fs::write(shop.join(TOOK), seconds.to_string());
            return made;
        };
        let _ = fs::remove_file(shop.join(TOOK));
        made.from.seconds = seconds;
        Ok(made)
    }

    fn make_in(
        &self,
        shop: &Path,
        from: MadeFrom,
        watch: &mut Watch<'_>,
    ) -> Result<Made, BuildError> {
        watch.begin(Stage::Unpacking)?;
        let (source, stage) = (shop.join("source"), shop.join("stage"));
        self.put(shop, &source, watch)?;
        let version = version::read(&source, &self.source.origin, &self.plan.how);
        let version = version.inspect_err(|_| self.drop_wrong_source(shop))?;
        self.settle(shop, &version, watch)?;
        let (objects, home) = (shop.join("objects"), shop.join("home"));
        for folder in [&stage, &objects, &home] {
            folder::make(folder)?;
        }
        let account = Account::of(&[&source, &stage, &objects, &home])?;
        watch.begin(Stage::Making)?;
        for step in &self.plan.how.steps {
            if step.once && is_done(shop, &step.name)? {
                continue;
            }
            self.step(step, shop, &version, account, watch)?;
            set_done(shop, &step.name)?;
        }
        let root = staged(&stage, &self.plan.how.prefix);
        if !root.is_dir() {
            return Err(BuildError::Unfit(format!(
                "the recipe's steps installed nothing in {}; mend the recipe",
                root.display()
            )));
        }
        let links = self.link(shop, &version, account, watch)?;
        account.take_back(&root)?;
        Ok(Made {
            root,
            links,
            from: MadeFrom {
                objects: count_objects(shop),
                ..from
            },
        })
    }

    /// Links the server as often as the flag set says, each time with its functions in another
    /// order. Returns the files, below what was installed.
    fn link(
        &self,
        shop: &Path,
        version: &str,
        account: Account,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<PathBuf>, BuildError> {
        let Some(link) = self.plan.link() else {
            return Ok(Vec::new());
        };
        let root = staged(&shop.join("stage"), &self.plan.how.prefix);
        let mut files = Vec::new();
        for number in 1..=self.plan.flags.links {
            let file = link.file(number);
            let own = [
                ("link", LinkStep::options(number)),
                ("to", root.join(&file).display().to_string()),
            ];
            let step = Step {
                name: format!("link {number} of {}", self.plan.flags.links),
                run: link.run.iter().map(|text| filled(text, &own)).collect(),
                more: Vec::new(),
                once: false,
            };
            self.step(&step, shop, version, account, watch)?;
            files.push(file);
        }
        Ok(files)
    }

    /// Nothing goes on with what is not a source of the engine. Another commit of the checkout may
    /// be one.
    fn drop_wrong_source(&self, shop: &Path) {
        if !self.source.is_incremental() {
            // What cannot be removed now is listed by `build list`.
            let _ = remove(shop);
        }
    }

    /// Puts the source into the workshop, and what was left of an interrupted try out of it.
    fn put(&self, shop: &Path, source: &Path, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let is_whole = is_done(shop, SOURCE)?;
        if is_whole && !self.source.is_incremental() {
            return Ok(());
        }
        if !is_whole {
            self.source.take_out(source)?;
        }
        self.source.put(source, watch)?;
        self.source.check_put(source, watch)?;
        set_done(shop, SOURCE)
    }

    /// Begins again where an earlier commit was configured with other options: its version needed
    /// them, and what was compiled has them.
    fn settle(&self, shop: &Path, version: &str, watch: &mut Watch<'_>) -> Result<(), BuildError> {
        let once = self.plan.how.steps.iter().filter(|step| step.once);
        let options: Vec<String> = once
            .flat_map(|step| step.arguments(version, &str::to_owned))
            .collect();
        let (path, now) = (shop.join(SETTINGS), options.join("\n"));
        if text_of(&path)?.is_some_and(|before| before != now) {
            fs::write(shop.join(DONE), "").map_err(BuildError::io("write", shop))?;
            remove(&shop.join("objects"))?;
            self.put(shop, &shop.join("source"), watch)?;
        }
        fs::write(&path, now).map_err(BuildError::io("write", &path))
    }

    /// The workshop's folder.
    pub fn folder(&self) -> PathBuf {
        self.shops.cache.join(WORK).join(self.key)
    }

    /// Removes the workshop, unless the next commit goes on in it.
    pub fn close(&self) -> Result<(), BuildError> {
        let shop = self.folder();
        let rest = if self.source.is_incremental() {
            shop.join("stage")
        } else {
            shop
        };
        remove(&rest)
    }

    /// A workshop for these tools and this source: one that was left for others is cleared.
    fn open(&self, from: &MadeFrom) -> Result<PathBuf, BuildError> {
        let shop = self.folder();
        let path = shop.join(FOR);
        if text_of(&path)?.as_ref() != Some(&from.tools) {
            remove(&shop)?;
            folder::make(&shop)?;
            fs::write(&path, &from.tools).map_err(BuildError::io("write", &path))?;
        }
        // What an earlier try installed may be of another commit.
        remove(&shop.join("stage"))?;
        Ok(shop)
    }

    fn step(
        &self,
        step: &Step,
        shop: &Path,
        version: &str,
        account: Account,
        watch: &mut Watch<'_>,
    ) -> Result<(), BuildError> {
        let how = &self.plan.how;
        let text = |path: PathBuf| path.display().to_string();
        let values = [
            ("flags", format!("{} {RECORD}", self.plan.flags.options)),
            ("cc", CC.to_owned()),
            ("cxx", CXX.to_owned()),
            ("jobs", self.shops.jobs.to_string()),
            ("prefix", text(how.prefix.clone())),
            ("stage", text(shop.join("stage"))),
            ("source", text(shop.join("source"))),
            ("objects", text(shop.join("objects"))),
            ("cache", text(self.shops.cache.to_owned())),
        ];
        let fill = |text: &str| filled(text, &values);
        let mut env: Vec<(String, String)> = how
            .env
            .iter()
            .map(|(name, value)| (name.clone(), fill(value)))
            .collect();
        env.push(("HOME".to_owned(), text(shop.join("home"))));
        env.extend(self.ccache(shop, account)?);
        let run = Run {
            name: &step.name,
            arguments: step.arguments(version, &fill),
            env,
            folder: &shop.join("source"),
            prefix: account.prefix(),
            guard: self.shops.guard,
            log: &log_of(shop),
            objects: shop,
            wanted_objects: self.objects.unwrap_or(how.objects),
        };
        run.run(watch).map_err(|error| match error {
            BuildError::Failed { step, line, log } => {
                let package = needs::package_of(&line, &how.needs);
                let set = &self.plan.flags.name;
                let way_out = match package {
                    Some(name) => format!(" (install it with `apt-get install {name}`)"),
                    None if is_unknown_option(&line) => {
                        format!(" (the compiler does not know an option of the flag set {set})")
                    }
                    None => String::new(),
                };
                let line = format!("{line}{way_out}");
                BuildError::Failed { step, line, log }
            }
            error => error,
        })
    }

    /// If ccache is installed, compilers are called through it: what an earlier build compiled with
    /// the same options is taken from its cache, which comes to the same bytes.
    fn ccache(&self, shop: &Path, account: Account) -> Result<Vec<(String, String)>, BuildError> {
        if !is_program("ccache") {
            return Ok(Vec::new());
        }
        let (names, cache) = (shop.join("compilers"), self.shops.cache.join(CCACHE));
        folder::make(&names)?;
        if !cache.exists() {
            folder::make(&cache)?;
            account.give(&cache)?;
        }
        let ccache = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join("ccache"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("ccache"));
        for name in [CC, CXX] {
            let link = names.join(name);
            if !link.is_symlink() {
                std::os::unix::fs::symlink(&ccache, &link)
                    .map_err(BuildError::io("make", &link))?;
            }
        }
        let path = std::env::var("PATH").unwrap_or_default();
        Ok(vec![
            ("PATH".to_owned(), format!("{}:{path}", names.display())),
            ("CCACHE_DIR".to_owned(), cache.display().to_string()),
            ("CCACHE_BASEDIR".to_owned(), shop.display().to_string()),
        ])
    }
}

fn made_from(plan: &MakePlan, hash: &str, family: &str) -> Result<MadeFrom, BuildError> {
    let how = &plan.how;
    let mut compiler = Compiler::find(&plan.flags.options)?;
    if plan.link().is_some() {
        compiler.add_linker()?;
    }
    let mut tools = format!(
        "{:?}\n{:?}\n{}\n{}\n{}\n{}\n{}\n{}",
        how.steps,
        how.env,
        how.prefix.display(),
        plan.flags.options,
        compiler.version,
        compiler.binutils,
        compiler.libc,
        compiler.native.as_deref().unwrap_or_default(),
    );
    if let Some(link) = plan.link() {
        let options = LinkStep::options(1);
        let program = link.program.display();
        tools += &format!(
            "\n{:?}\n{options}\n{}\n{program}",
            link.run, plan.flags.links
        );
    }
    let sum = |text: &str| hexadecimal(Sha256::new_with_prefix(text));
    Ok(MadeFrom {
        identity: sum(&format!("{tools}\n{hash}")),
        tools: sum(&format!("{tools}\n{family}")),
        source: hash.to_owned(),
        compiler: compiler.version,
        binutils: compiler.binutils,
        libc: compiler.libc,
        flag_set: plan.flags.name.clone(),
        flags: plan.flags.options.clone(),
        features: how.features.clone(),
        objects: 0,
        seconds: 0,
    })
}

/// Whether a step was done in a workshop.
fn is_done(shop: &Path, step: &str) -> Result<bool, BuildError> {
    let done = text_of(&shop.join(DONE))?.unwrap_or_default();
    Ok(done.lines().any(|line| line == step))
}

fn set_done(shop: &Path, step: &str) -> Result<(), BuildError> {
    if is_done(shop, step)? {
        return Ok(());
    }
    let path = shop.join(DONE);
    let text = text_of(&path)?.unwrap_or_default();
    fs::write(&path, format!("{text}{step}\n")).map_err(BuildError::io("write", &path))
}

/// What gcc and clang say of an option that they do not have.
fn is_unknown_option(line: &str) -> bool {
    ["unrecognized command-line option", "unknown argument: "]
        .iter()
        .any(|words| line.contains(words))
}
