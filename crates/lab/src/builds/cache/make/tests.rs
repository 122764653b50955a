//! A project of two files in C that calls itself PostgreSQL, compiled by the real compiler.

use std::cell::Cell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use plimsoll_core::toolchain::{COMPILER, OPTIMISATION, PACKAGER, caveat};

use super::*;
use crate::builds::cache::{BuildState, source_recipes};
use crate::builds::fetch::fetcher::{Fetched, Fetcher};
use crate::builds::recipes::recipe::{Package, parse};

const RECIPE: &str = r#"
engine = "postgres"
source = "source"
rank = 9
packager = "Plimsoll"

[[builds]]
version = "17"
seen = "17.1"
package = { client = "apt-source", suite = "new", name = "pg" }

[[builds]]
version = "18"
seen = "18.2"
package = { client = "apt-source", suite = "newer", name = "pg" }

[layouts.default]
server = "bin/postgres"
init = { initdb = { program = "bin/initdb" } }

[make]
flags = "o2"
prefix = "/opt/pg"
features = "assertions off"
objects = 2
minutes = 1
version = [{ files = ["version.h"], after = "V \"" }]
needs = [
  { program = "gcc", package = "build-essential" },
  { header = "zlib-of-nobody.h", package = "libnobody-dev" },
]

[[make.steps]]
name = "configure"
once = true
run = ["sh", "-c", "echo x >> {objects}/configured"]

[[make.steps]]
name = "compile"
run = ["make", "CC={cc}", "CFLAGS={flags}", "OBJECTS={objects}"]

[[make.steps]]
name = "install"
run = ["make", "install", "DESTDIR={stage}{prefix}"]
"#;

const MAKEFILE: &str = "postgres: main.o other.o
\t$(CC) $(CFLAGS) -o postgres main.o other.o
%.o: %.c version.h
\techo $< >> $(OBJECTS)/compiled
\t$(CC) $(CFLAGS) -c $<
install: postgres
\tmkdir -p $(DESTDIR)/bin
\tcp postgres initdb $(DESTDIR)/bin/
";
const MAIN: &str = "#include <stdio.h>
#include \"version.h\"
int other(void);
int main(void) { printf(\"postgres (PostgreSQL) %s\\n\", V); return other(); }
";

/// Several functions, so that links can have them in several orders.
const OTHER: &str = "int other(void) { return 0; }
int a(int x) { return x * 3; }
int b(int x) { return x * 5 + 1; }
int c(int x) { return x ^ 77; }
int d(int x) { return x % 13; }
int e(int x) { return x / 7; }
int f(int x) { return x << 3; }
";

/// Writes the project's files.
fn write_project(folder: &Path, version: &str) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in [
        ("Makefile", MAKEFILE),
        ("main.c", MAIN),
        ("other.c", OTHER),
        ("version.h", &format!("#define V \"{version}\"\n")),
        ("initdb", "#!/bin/sh\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// Answers with a tarball of the project, in the version that is asked for.
struct Tarballs(Arc<Mutex<u32>>);

impl Fetcher for Tarballs {
    fn fetch(
        &self,
        _: &Package,
        wanted: Option<&str>,
        folder: &Path,
        _: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        *self.0.lock().unwrap() += 1;
        let version = if wanted.unwrap().starts_with("17") {
            "17.1"
        } else {
            "18.2"
        };
        let project = folder.join("pg-source");
        write_project(&project, version);
        let file = folder.join("pg.orig.tar");
        let mut tar = Command::new("tar");
        tar.args(["--create", "--file"])
            .arg(&file)
            .arg("-C")
            .arg(folder)
            .arg("pg-source");
        assert!(tar.status().unwrap().success());
        Ok(Fetched {
            files: vec![file],
            package_version: Some(format!("{version}-1")),
        })
    }
}

struct Place {
    dir: tempfile::TempDir,
    fetches: Arc<Mutex<u32>>,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            fetches: Arc::default(),
        }
    }

    /// A cache of the recipe, changed by `change`.
    fn cache_of(&self, change: impl Fn(&str) -> String) -> BuildCache {
        let mut cache = BuildCache::new(self.dir.path().join("cache"));
        cache.sources = parse("pg.toml", &change(RECIPE)).unwrap();
        cache.fetcher = Box::new(Tarballs(self.fetches.clone()));
        cache
    }

    fn cache(&self) -> BuildCache {
        let missing = "  { header = \"zlib-of-nobody.h\", package = \"libnobody-dev\" },\n";
        self.cache_of(|text| text.replace(missing, ""))
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    /// Under root nobody compiles, and what is compiled writes there.
    fn open_to_all(&self) {
        fs::set_permissions(self.dir.path(), Permissions::from_mode(0o777)).unwrap();
    }

    /// The only workshop that was left.
    fn shop(&self) -> PathBuf {
        let mut shops = fs::read_dir(self.dir.path().join("cache/work")).unwrap();
        let shop = shops.next().unwrap().unwrap().path();
        assert!(shops.next().is_none());
        shop
    }

    fn lines(&self, file: &str) -> usize {
        let text = fs::read_to_string(self.shop().join("objects").join(file)).unwrap();
        text.lines().count()
    }
}

fn request(version: &str, flags: &str) -> MakeRequest {
    MakeRequest {
        engine: EngineName::Postgres,
        version: Some(version.to_owned()),
        flags: Some(flags.to_owned()),
        source: None,
        label: None,
    }
}

fn given(source: &str) -> MakeRequest {
    MakeRequest {
        engine: EngineName::Postgres,
        version: None,
        flags: None,
        source: Some(GivenSource::parse(source).unwrap()),
        label: Some("mine".to_owned()),
    }
}

fn make(cache: &BuildCache, request: &MakeRequest) -> Result<MadeBuild, BuildError> {
    cache.make(request, &mut |_| {}, &|| false)
}

#[test]
fn equally_compiled_versions_are_comparable_and_others_are_not() {
    let place = Place::new();
    let cache = place.cache();
    let made = make(&cache, &request("17", "o2")).unwrap();
    assert!(made.is_new);
    let old = made.build;
    assert_eq!(
        (old.name.as_str(), old.version.as_str()),
        ("postgres@17.1+source-o2", "17.1")
    );
    assert_eq!(old.toolchain[PACKAGER], "Plimsoll");
    assert!(old.toolchain[COMPILER].starts_with("gcc "));
    assert!(
        old.toolchain[OPTIMISATION].contains("-O2"),
        "{:?}",
        old.toolchain
    );
    assert!(old.toolchain["source_hash"].starts_with("sha256:"));
    assert!(
        !place
            .dir
            .path()
            .join("cache/work/postgres@17+source-o2")
            .exists()
    );

    let again = make(&cache, &request("17.1", "o2")).unwrap();
    assert!(!again.is_new && again.build == old);

    let new = make(&cache, &request("18", "o2")).unwrap().build;
    assert_eq!(caveat(&old.toolchain, &new.toolchain), None);
    let other = make(&cache, &request("18", "o3")).unwrap().build;
    let text = caveat(&new.toolchain, &other.toolchain)
        .unwrap()
        .to_string();
    assert!(text.contains("-O2 vs") && text.contains("-O3"), "{text}");
    assert_eq!(
        *place.fetches.lock().unwrap(),
        2,
        "one source serves all flag sets"
    );

    // Plans name them as any other build; `source` alone means the recipe's flags.
    for (name, there) in [
        ("postgres@17+source", "postgres@17.1+source-o2"),
        ("postgres+source-o3", "postgres@18.2+source-o3"),
    ] {
        let name = name.parse().unwrap();
        assert_eq!(cache.get_whole(&name).unwrap().unwrap().name, there);
    }
    let listed = cache.list().unwrap();
    let names = listed
        .iter()
        .filter(|build| build.state == BuildState::Here);
    let names: Vec<&str> = names.map(|build| build.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "postgres@17.1+source-o2",
            "postgres@18.2+source-o2",
            "postgres@18.2+source-o3"
        ]
    );
    assert!(
        !listed
            .iter()
            .any(|build| build.name == "postgres@17+source")
    );
}

#[test]
fn a_plan_that_names_a_source_has_it_made() {
    let place = Place::new();
    let cache = place.cache();
    let add = |name: &str| cache.add(&name.parse().unwrap(), false, &mut |_| {}, &|| false);
    assert_eq!(
        add("postgres@17+source").unwrap().name,
        "postgres@17.1+source-o2"
    );
    for (name, wanted) in [
        ("postgres@17+source-o9", "there is no flag set \"o9\""),
        (
            "postgres@16+source",
            "there is no build postgres@16+source-o2",
        ),
        ("mysql@8.0+source", "there is no recipe to compile mysql"),
        ("mysql@8.0+source", "`plimsoll build add --basedir DIR"),
    ] {
        let error = add(name).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn what_the_machine_lacks_is_named_before_anything_is_compiled() {
    let place = Place::new();
    let cache = place.cache_of(str::to_owned);
    let error = make(&cache, &request("17", "o2")).unwrap_err().to_string();
    assert_eq!(
        error,
        "this machine lacks <zlib-of-nobody.h>; install what brings it with `apt-get install \
        libnobody-dev`"
    );
}

#[test]
fn a_failed_build_tells_the_line_and_goes_on_when_it_is_mended() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    fs::write(project.join("other.c"), "int other(void) { return 0 }\n").unwrap();
    let source = project.display().to_string();
    let error = make(&cache, &given(&source)).unwrap_err();
    let BuildError::Failed { step, line, log } = &error else {
        panic!("{error}");
    };
    assert_eq!(step, "compile");
    assert!(
        line.starts_with("other.c:1:") && line.contains("error: expected"),
        "{line}"
    );
    assert!(log.is_file() && error.to_string().contains(&log.display().to_string()));
    assert!(
        cache.get(&"postgres+mine".parse().unwrap()).is_err(),
        "nothing looks like a build"
    );

    write_project(&project, "17.9");
    let made = make(&cache, &given(&source)).unwrap();
    assert_eq!(
        (made.build.name.as_str(), made.build.version.as_str()),
        ("postgres+mine", "17.9")
    );
    assert!(!make(&cache, &given(&source)).unwrap().is_new);
    fs::write(
        project.join("other.c"),
        "int one = 1; int other(void) { return 0; }\n",
    )
    .unwrap();
    let changed = make(&cache, &given(&source)).unwrap();
    assert!(
        changed.is_new
            && changed.build.toolchain["source_hash"] != made.build.toolchain["source_hash"]
    );
    let error = cache
        .add_basedir(&project, "source-o2")
        .unwrap_err()
        .to_string();
    assert!(error.contains("is the name of a source"), "{error}");
}

#[test]
fn an_interrupted_build_leaves_no_process_and_goes_on_where_it_ended() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    // The second file waits for as long as a file is not there.
    place.open_to_all();
    let go = place.dir.path().join("go");
    let wait = format!(
        "other.o: other.c\n\techo $$$$ > {dir}/pid.new; mv {dir}/pid.new {dir}/pid; while [ ! -e \
        {dir}/go ]; do sleep 0.05; done\n\t$(CC) $(CFLAGS) -c $<\n",
        dir = place.dir.path().display()
    );
    fs::write(project.join("Makefile"), format!("{MAKEFILE}{wait}")).unwrap();
    let pid_file = place.dir.path().join("pid");
    let source = project.display().to_string();
    let told = Cell::new(0);
    let error = cache
        .make(&given(&source), &mut |_| told.set(told.get() + 1), &|| {
            pid_file.exists()
        })
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "making postgres+mine was interrupted; the same command goes on where it ended"
    );
    assert!(told.get() > 0);
    let pid = fs::read_to_string(&pid_file).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    let is_running = || fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_running() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(!is_running());
    assert_eq!((place.lines("configured"), place.lines("compiled")), (1, 1));

    fs::write(&go, "").unwrap();
    let shop = place.shop();
    // As if the first try had been a long one.
    let took = shop.join("took");
    let of_first: u64 = fs::read_to_string(&took).unwrap().parse().unwrap();
    assert!(of_first < 60);
    fs::write(&took, "3600").unwrap();
    let counts = Cell::new((0, 0));
    let seen = |counts: &Cell<(usize, usize)>| {
        let lines = |file: &str| {
            let text = fs::read_to_string(shop.join("objects").join(file));
            text.map_or(0, |text| text.lines().count())
        };
        let (configured, compiled) = counts.get();
        counts.set((
            configured.max(lines("configured")),
            compiled.max(lines("compiled")),
        ));
    };
    let made = cache
        .make(&given(&source), &mut |_| seen(&counts), &|| false)
        .unwrap();
    assert!(made.is_new);
    assert!(made.took >= Duration::from_secs(3600), "both tries count");
    assert_eq!(
        counts.get(),
        (1, 1),
        "neither configured nor compiled a second time"
    );
}

#[test]
fn a_source_that_sets_flags_of_its_own_is_refused() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    let own = MAKEFILE.replace("$(CFLAGS)", "$(CFLAGS) -O1");
    fs::write(project.join("Makefile"), own).unwrap();
    let error = make(&cache, &given(&project.display().to_string()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("was compiled with \"-O1") && error.contains("\"-O2\" of o2"),
        "{error}"
    );
}

/// The project in a checkout, with its files committed and tagged `one`.
fn checkout(project: &Path) -> impl Fn(&[&str]) {
    write_project(project, "17.9");
    let folder = project.to_owned();
    let git = move |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C")
            .arg(&folder)
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"]);
        assert!(git.args(arguments).status().unwrap().success());
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    git(&["tag", "one"]);
    git
}

#[test]
fn a_source_that_does_not_optimise_one_file_is_refused() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    let own = format!("{MAKEFILE}other.o: override CFLAGS += -O0\n");
    fs::write(project.join("Makefile"), own).unwrap();
    let error = make(&cache, &given(&project.display().to_string()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a part of") && error.contains("-O0"),
        "{error}"
    );
}

#[test]
fn the_next_commit_compiles_what_it_changes() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    let git = checkout(&project);
    fs::write(
        project.join("other.c"),
        "int two = 2;\nint other(void) { return 0; }\n",
    )
    .unwrap();
    git(&["commit", "--quiet", "-a", "-m", "two"]);
    // Only what is committed counts.
    fs::write(project.join("main.c"), "no C").unwrap();
    let of = |revision: &str| MakeRequest {
        label: None,
        ..given(&format!("{}@{revision}", project.display()))
    };
    let one = make(&cache, &of("one")).unwrap().build;
    assert_eq!(one.name, "postgres+one-o2");
    assert!(one.origin.contains("/project at "), "{}", one.origin);
    assert_eq!(place.lines("compiled"), 2);
    let two = make(&cache, &of("HEAD")).unwrap().build;
    assert_eq!(two.name, "postgres+HEAD-o2");
    assert_ne!(two.server_sha256, one.server_sha256);
    assert_eq!((place.lines("compiled"), place.lines("configured")), (3, 1));
    let error = make(&cache, &of("three")).unwrap_err().to_string();
    assert!(error.contains("has no revision three"), "{error}");
}

#[test]
fn shipped_recipes_of_sources_can_be_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let cache = BuildCache::new(dir.path());
    for recipe in source_recipes() {
        let name = format!("{}@{}+source", recipe.engine, recipe.version);
        let resolved = cache.resolve(&name.parse().unwrap()).unwrap();
        // Suites move, packages of registries do not.
        assert_eq!(resolved.is_exact, !recipe.is_series(), "{name}");
        assert!(!resolved.is_here, "{name}");
        assert!(resolved.source.starts_with("source-"), "{name}");
    }
}

#[test]
fn what_was_compiled_in_the_source_does_not_get_into_a_build() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O0", "-c", "other.c"]).current_dir(&project);
    assert!(gcc.status().unwrap().success());
    let tarball = place.dir.path().join("pg.tar");
    let mut tar = Command::new("tar");
    tar.arg("-cf")
        .arg(&tarball)
        .arg("-C")
        .arg(place.dir.path())
        .arg("project");
    assert!(tar.status().unwrap().success());
    for source in [&project, &tarball] {
        let error = make(&cache, &given(&source.display().to_string())).unwrap_err();
        assert!(
            matches!(&error, BuildError::Usage(text) if text.contains("is compiled already")),
            "{error}"
        );
    }
    fs::remove_file(project.join("other.o")).unwrap();
    assert!(
        make(&cache, &given(&project.display().to_string()))
            .unwrap()
            .is_new
    );
}

#[test]
fn a_source_that_changes_while_it_is_copied_is_no_build_of_what_it_was() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    let source = project.display().to_string();
    let change = |progress: &FetchProgress| {
        if progress.stage == Stage::Unpacking {
            fs::write(
                project.join("other.c"),
                "int other(void) { return 0; } int late;\n",
            )
            .unwrap();
        }
    };
    let mut change = change;
    let error = cache
        .make(&given(&source), &mut change, &|| false)
        .unwrap_err()
        .to_string();
    assert!(error.contains("changed while it was copied"), "{error}");
    assert!(make(&cache, &given(&source)).unwrap().is_new);
}

#[test]
fn a_commit_whose_version_needs_other_options_is_configured_and_compiled_again() {
    let place = Place::new();
    let missing = "  { header = \"zlib-of-nobody.h\", package = \"libnobody-dev\" },\n";
    let cache = place.cache_of(|text| {
        let run = "echo x >> {objects}/configured\"]";
        let new =
            "echo $0 >> {objects}/configured\"]\nmore = [{ since = \"18\", run = [\"new\"] }]";
        assert!(text.contains(run));
        text.replace(missing, "").replace(run, new)
    });
    let project = place.project();
    let git = checkout(&project);
    fs::write(project.join("version.h"), "#define V \"18.1\"\n").unwrap();
    git(&["commit", "--quiet", "-a", "-m", "two"]);
    let of = |revision: &str| MakeRequest {
        label: None,
        ..given(&format!("{}@{revision}", project.display()))
    };
    let configured = || fs::read_to_string(place.shop().join("objects/configured")).unwrap();
    make(&cache, &of("one")).unwrap();
    assert_eq!(configured(), "sh\n");
    make(&cache, &of("HEAD")).unwrap();
    assert_eq!(configured(), "new\n");
    assert_eq!(place.lines("compiled"), 2);
    // And back: what was done once for these options was undone since.
    let again = MakeRequest {
        label: Some("back".to_owned()),
        ..of("one")
    };
    make(&cache, &again).unwrap();
    assert_eq!(configured(), "sh\n");
}

#[test]
fn a_changed_header_is_compiled_into_what_includes_it() {
    let postgres = source_recipes()
        .iter()
        .filter(|recipe| recipe.engine == EngineName::Postgres);
    let steps = postgres.filter_map(|recipe| recipe.make.as_ref());
    let configure: Vec<Vec<String>> = steps
        .map(|make| make.steps[0].arguments("18", &str::to_owned))
        .collect();
    assert!(!configure.is_empty());
    // Without it, an object stays when a header of it changes.
    for arguments in configure {
        assert!(
            arguments.contains(&"--enable-depend".to_owned()),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_kill_while_git_writes_does_not_spoil_the_workshop() {
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    let git = checkout(&project);
    let of = |revision: &str| MakeRequest {
        label: None,
        ..given(&format!("{}@{revision}", project.display()))
    };
    make(&cache, &of("one")).unwrap();
    git(&["commit", "--quiet", "--allow-empty", "-m", "two"]);
    // As git leaves them when it is killed.
    let shop = place.shop();
    let of_git =
        |name: &str| [".git", "../git"].map(|dir| shop.join("source").join(dir).join(name));
    let write = |name: &str| {
        let files = of_git(name).into_iter();
        let there: Vec<_> = files
            .filter(|file| file.parent().unwrap().is_dir())
            .collect();
        assert_eq!(there.len(), 1);
        fs::write(&there[0], "").unwrap();
    };
    write("index.lock");
    write("HEAD.lock");
    make(&cache, &of("HEAD")).unwrap();
    // The same while it clones: no source was whole yet.
    write("HEAD");
    fs::write(shop.join("done"), "").unwrap();
    git(&["tag", "three"]);
    make(&cache, &of("three")).unwrap();
}

#[test]
fn what_roots_build_runs_cannot_have_root_write_elsewhere() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = Place::new();
    let (cache, project) = (place.cache(), place.project());
    write_project(&project, "17.9");
    place.open_to_all();
    let victim = place.dir.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let links = "\t-for file in ../done ../build.log ../for; do ln -sfn VICTIM $$file; done\n";
    let links = links.replace("VICTIM", victim.to_str().unwrap());
    let hostile = MAKEFILE.replace(
        "install: postgres\n",
        &format!("install: postgres\n{links}"),
    );
    let hostile = hostile.replace("\techo $<", &format!("{links}\techo $<"));
    fs::write(project.join("Makefile"), hostile).unwrap();
    make(&cache, &given(&project.display().to_string())).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn commits_of_two_checkouts_under_one_label_do_not_meet() {
    let place = Place::new();
    let other = Place::new();
    let (first, second) = (place.project(), other.project());
    for project in [&first, &second] {
        let _git = checkout(project);
    }
    let (one, two) = (place.cache(), place.cache());
    let of = |project: &Path| given(&format!("{}@one", project.display()));
    // The second begins when the first compiles, and must wait for it.
    let waited = Cell::new(false);
    let stop = Cell::new(false);
    let nested = |progress: &FetchProgress| {
        if progress.stage == Stage::Making && !waited.get() {
            waited.set(true);
            let error = two.make(
                &of(&second),
                &mut |progress| stop.set(progress.stage == Stage::Waiting),
                &|| stop.get(),
            );
            assert!(
                matches!(error, Err(BuildError::Cancelled { .. })),
                "{error:?}"
            );
        }
    };
    let mut nested = nested;
    one.make(&of(&first), &mut nested, &|| false).unwrap();
    assert!(waited.get());
}

#[test]
fn commits_that_a_shallow_checkout_got_later_are_found() {
    let place = Place::new();
    let (cache, origin) = (place.cache(), place.dir.path().join("origin"));
    let git = checkout(&origin);
    let mut clone = Command::new("git");
    clone
        .args(["clone", "--quiet", "--depth", "1"])
        .arg(format!("file://{}", origin.display()))
        .arg(place.project());
    assert!(clone.status().unwrap().success());
    let of = |revision: &str| given(&format!("{}@{revision}", place.project().display()));
    make(&cache, &of("HEAD")).unwrap();
    fs::write(
        origin.join("other.c"),
        "int two = 2;\nint other(void) { return 0; }\n",
    )
    .unwrap();
    git(&["commit", "--quiet", "-a", "-m", "two"]);
    let mut pull = Command::new("git");
    pull.arg("-C")
        .arg(place.project())
        .args(["pull", "--quiet", "--ff-only"]);
    assert!(pull.status().unwrap().success());
    assert!(make(&cache, &of("HEAD")).unwrap().is_new);
}

#[test]
fn what_somebody_works_in_is_not_cleaned() {
    let place = Place::new();
    let (cache, other, project) = (place.cache(), place.cache(), place.project());
    write_project(&project, "17.9");
    let mut during = Vec::new();
    let mut clean = |progress: &FetchProgress| {
        if progress.stage == Stage::Making && during.is_empty() {
            during = other.clean(true).unwrap();
        }
    };
    let source = project.display().to_string();
    let made = cache.make(&given(&source), &mut clean, &|| false).unwrap();
    let shop = during
        .iter()
        .find(|c| c.leftover.name == "work/postgres+mine");
    assert!(shop.is_some_and(|shop| !shop.is_removed), "{during:?}");

    // What is whole left nothing, and cleaning leaves what is whole.
    make(&cache, &request("17", "o2")).unwrap();
    assert_eq!(cache.clean(false).unwrap(), []);
    let all = cache.clean(true).unwrap();
    assert!(
        all.iter()
            .any(|c| c.leftover.name.starts_with("sources/") && c.is_removed),
        "{all:?}"
    );
    for name in [made.build.name.as_str(), "postgres@17.1+source-o2"] {
        assert!(cache.get_whole(&name.parse().unwrap()).unwrap().is_some());
    }
}

/// A machine whose archive has nothing any more.
struct Offline;

impl Fetcher for Offline {
    fn fetch(
        &self,
        _: &Package,
        _: Option<&str>,
        _: &Path,
        _: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        Err(BuildError::Gone("nothing is there".to_owned()))
    }
}

#[test]
fn a_version_that_is_gone_does_not_cost_the_source_that_is_kept() {
    let place = Place::new();
    let mut cache = place.cache();
    make(&cache, &request("17", "o2")).unwrap();
    cache.fetcher = Box::new(Offline);
    let error = make(&cache, &request("17.5", "o2")).unwrap_err();
    assert!(error.to_string().contains("nothing is there"), "{error}");
    assert!(make(&cache, &request("17", "o3")).unwrap().is_new);
}

/// Was "postgres@17+source-o2 is gone; the nearest are: postgres@17+source".
#[test]
fn a_source_that_is_gone_is_not_offered_in_its_place() {
    let place = Place::new();
    let mut cache = place.cache();
    cache.fetcher = Box::new(Offline);
    let error = make(&cache, &request("17", "o2")).unwrap_err().to_string();
    assert!(
        error.starts_with("postgres@17+source-o2 is gone"),
        "{error}"
    );
    assert!(!error.contains("postgres@17+source\n"), "{error}");
    assert!(!error.contains("postgres@17+source,"), "{error}");
    assert!(
        error.contains("`plimsoll build make postgres --source PATH`"),
        "{error}"
    );
}

/// The project with a step that links it once more, and a flag set with as many links.
fn linked(place: &Place, program: &str, links: u32) -> BuildCache {
    let link = format!(
        "\n[make.link]\nprogram = \"{program}\"\n\
        run = [\"sh\", \"-c\", \"gcc $1 -o \\\"$2\\\" main.o other.o\", \"sh\", \"{{link}}\", \"{{to}}\"]\n"
    );
    let missing = "  { header = \"zlib-of-nobody.h\", package = \"libnobody-dev\" },\n";
    let cache = place.cache_of(|text| text.replace(missing, "") + &link);
    fs::create_dir_all(&cache.dir).unwrap();
    let options = "-O2 -ffunction-sections";
    fs::write(
        cache.dir.join("flags.toml"),
        format!("many = {{ options = \"{options}\", links = {links} }}\n"),
    )
    .unwrap();
    cache
}

#[test]
fn a_link_that_is_gone_or_changed_is_made_again() {
    let place = Place::new();
    place.open_to_all();
    let cache = linked(&place, "bin/postgres", 4);
    let made = make(&cache, &request("17", "many")).unwrap().build;
    assert_eq!(made.links.len(), 4);
    let again = make(&cache, &request("17", "many")).unwrap();
    assert!(!again.is_new);
    let name: BuildName = made.name.parse().unwrap();
    for break_it in [
        (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        |path| fs::write(path, "other").unwrap(),
    ] {
        break_it(&made.links[2].server);
        assert!(cache.get_whole(&name).is_err());
        let again = make(&cache, &request("17", "many")).unwrap();
        assert!(again.is_new, "a broken link counts as there");
        assert!(cache.get_whole(&name).unwrap().is_some());
    }
}

/// Link 1 of four is the same file as link 1 of five.
#[test]
fn a_host_tells_builds_that_differ_in_links() {
    let place = Place::new();
    place.open_to_all();
    let four = linked(&place, "bin/postgres", 4);
    let of_four = make(&four, &request("17", "many")).unwrap().build;
    let sums = four.sums().unwrap();
    let five = linked(&place, "bin/postgres", 5);
    let made = make(&five, &request("17", "many")).unwrap();
    assert!(made.is_new, "the identity has the number of links");
    assert_eq!(made.build.links.len(), 5);
    assert_eq!(made.build.server_sha256, of_four.server_sha256);
    assert_ne!(five.sums().unwrap(), sums, "a host would keep the old one");
}

#[test]
fn links_are_of_the_server() {
    let place = Place::new();
    place.open_to_all();
    let cache = linked(&place, "bin/initdb", 4);
    let made = make(&cache, &request("17", "many"));
    assert!(made.is_err(), "{:#?}", made.map(|made| made.build));
}
