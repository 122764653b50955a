use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_testkit::write_script;
use zip::write::SimpleFileOptions;

use super::*;
use crate::builds::fetch::fetcher::Fetched;
use crate::builds::recipes::recipe::{Package, parse};

const RECIPES: &str = r#"
engine = "mysql"
source = "attic"
rank = 1
packager = "nobody"
package = { client = "mvn", artifact = "a:mysql:{release}" }
builds = [{ version = "5.7.1" }, { version = "5.7.2" }]

[layouts.default]
unpack = [{ include = ["top/*"], strip = 1 }]
server = "bin/mysqld"
share = "share"
init = "initialize"
server_options = ["--mysqlx=OFF"]
"#;

const MOVING: &str = r#"
engine = "mysql"
source = "suites"
rank = 1
packager = "nobody"

[[builds]]
version = "9.7"
seen = "9.7.4"
package = { client = "apt", suite = "new", packages = ["p"] }

[[builds]]
version = "9.7"
seen = "9.7.3"
package = { client = "apt", suite = "old", packages = ["p"] }

[layouts.default]
server = "bin/mysqld"
share = "share"
init = "initialize"
"#;

/// Set in a process that a test started to be killed: the cache's folder.
const CHILD: &str = "PLIMSOLL_TEST_CACHE";

#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Answers with an archive made on the spot; suites have nothing.
struct Attic {
    calls: Calls,
    /// What the server in the archive says.
    says: &'static str,
    /// Files beside the server.
    files: Vec<String>,
    pause: Duration,
}

impl Fetcher for Attic {
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        _: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        let wanted = wanted.map_or(String::new(), |wanted| format!(" {wanted}"));
        self.calls
            .0
            .lock()
            .unwrap()
            .push(format!("{}{wanted}", package.describe()));
        if let Package::Apt { suite, .. } = package {
            return Err(BuildError::Gone(format!("{suite} has it no longer")));
        }
        std::thread::sleep(self.pause);
        let archive = folder.join("x.zip");
        let mut zip = zip::ZipWriter::new(File::create(&archive).unwrap());
        let options =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        zip.start_file("top/bin/mysqld", options).unwrap();
        std::io::Write::write_all(
            &mut zip,
            format!("#!/bin/sh\necho 'mysqld  Ver {} for Linux'\n", self.says).as_bytes(),
        )
        .unwrap();
        for file in &self.files {
            zip.start_file(format!("top/{file}"), options).unwrap();
        }
        zip.finish().unwrap();
        Ok(Fetched {
            files: vec![archive],
            package_version: None,
        })
    }
}

fn attic(calls: &Calls, says: &'static str) -> Attic {
    Attic {
        calls: calls.clone(),
        says,
        files: vec!["share/english/errmsg.sys".into()],
        pause: Duration::ZERO,
    }
}

fn cache(dir: &Path, fetcher: Attic) -> BuildCache {
    let recipes = [
        parse("a.toml", RECIPES).unwrap(),
        parse("b.toml", MOVING).unwrap(),
    ]
    .concat();
    BuildCache {
        dir: dir.to_owned(),
        recipes,
        sources: Vec::new(),
        fetcher: Box::new(fetcher),
        guard: None,
        jobs: None,
    }
}

fn add(cache: &BuildCache, name: &str) -> Result<InstalledBuild, BuildError> {
    cache.add(&name.parse().unwrap(), false, &mut |_| {}, &|| false)
}

/// Names in a folder but for the locks.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.retain(|name| name != LOCKS);
    names.sort();
    names
}

/// Has nothing whose name ends in `:small`.
struct WithoutSmall(Attic);

impl Fetcher for WithoutSmall {
    fn fetch(
        &self,
        package: &Package,
        wanted: Option<&str>,
        folder: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Fetched, BuildError> {
        if package.describe().ends_with(":small") {
            self.0.calls.0.lock().unwrap().push(package.describe());
            return Err(BuildError::Gone("no such package".into()));
        }
        self.0.fetch(package, wanted, folder, watch)
    }
}

#[test]
fn where_a_package_is_not_the_other_one_is_taken() {
    let text = RECIPES.replace(
        "a:mysql:{release}\" }",
        "a:mysql:{release}:jar:small\" }\notherwise = \
        { client = \"mvn\", artifact = \"a:mysql:{release}\" }",
    );
    let dir = tempfile::tempdir().unwrap();
    let calls = Calls::default();
    let fetcher = Box::new(WithoutSmall(attic(&calls, "5.7.2")));
    let cache = BuildCache {
        dir: dir.path().to_owned(),
        recipes: parse("a.toml", &text).unwrap(),
        fetcher,
        sources: Vec::new(),
        guard: None,
        jobs: None,
    };
    assert_eq!(
        add(&cache, "mysql@5.7").unwrap().origin,
        "mvn a:mysql:5.7.2"
    );
    assert_eq!(
        calls.seen(),
        ["mvn a:mysql:5.7.2:jar:small", "mvn a:mysql:5.7.2"]
    );
}

#[test]
fn a_build_is_fetched_once() {
    let dir = tempfile::tempdir().unwrap();
    let calls = Calls::default();
    let cache = cache(dir.path(), attic(&calls, "5.7.2"));
    let name: BuildName = "mysql@5.7".parse().unwrap();
    assert_eq!(cache.get(&name).unwrap(), None);
    assert!(
        matches!(cache.add(&name, true, &mut |_| {}, &|| false), Err(BuildError::NotHere { name }) if name == "mysql@5.7.2")
    );

    let mut stages = Vec::new();
    let build = cache
        .add(
            &name,
            false,
            &mut |progress| stages.push(progress.stage),
            &|| false,
        )
        .unwrap();
    stages.dedup();
    assert_eq!(stages, [Stage::Fetching, Stage::Unpacking, Stage::Checking]);
    let root = dir.path().join("mysql@5.7.2");
    assert_eq!(
        (
            build.name.as_str(),
            build.version.as_str(),
            build.origin.as_str()
        ),
        ("mysql@5.7.2", "5.7.2", "mvn a:mysql:5.7.2")
    );
    assert_eq!(
        (&build.server, &build.basedir, build.share_dir.as_ref()),
        (&root.join("bin/mysqld"), &root, Some(&root.join("share")))
    );
    assert_eq!(build.server_sha256, sha256(&build.server).unwrap());
    assert_eq!(
        build.server.metadata().unwrap().permissions().mode() & 0o777,
        0o755
    );
    assert_eq!(names(dir.path()), ["mysql@5.7.2"]);

    for again in ["mysql@5.7", "mysql@5.7.2", "mysql+attic"] {
        assert_eq!(
            cache
                .add(&again.parse().unwrap(), true, &mut |_| {}, &|| false)
                .unwrap(),
            build
        );
    }
    assert_eq!(calls.seen(), ["mvn a:mysql:5.7.2"]);
}

#[test]
fn what_is_not_what_the_recipe_says_leaves_nothing() {
    for (says, files, wanted) in [
        (
            "5.7.9",
            vec!["share/x".to_owned()],
            "should be mysql 5.7.2, and its server says 5.7.9",
        ),
        ("5.7.2", vec![], "the package lacks share"),
        ("", vec!["share/x".to_owned()], "states no version"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(
            dir.path(),
            Attic {
                files,
                ..attic(&Calls::default(), says)
            },
        );
        let error = add(&cache, "mysql@5.7.2").unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert_eq!(names(dir.path()), Vec::<String>::new());
        assert_eq!(cache.get(&"mysql@5.7.2".parse().unwrap()).unwrap(), None);
    }
}

#[test]
fn stopping_at_any_stage_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path(), attic(&Calls::default(), "5.7.2"));
    for stage in [Stage::Fetching, Stage::Unpacking, Stage::Checking] {
        let reached = std::cell::Cell::new(false);
        let stopped = cache.add(
            &"mysql@5.7".parse().unwrap(),
            false,
            &mut |now| reached.set(now.stage == stage),
            &|| reached.get(),
        );
        assert!(
            matches!(stopped, Err(BuildError::Cancelled { .. })),
            "{stage:?}: {stopped:?}"
        );
        assert_eq!(names(dir.path()), Vec::<String>::new(), "{stage:?}");
    }
    add(&cache, "mysql@5.7").unwrap();
}

#[test]
fn two_that_want_the_same_build_fetch_it_once() {
    let dir = tempfile::tempdir().unwrap();
    let calls = Calls::default();
    let slow = || {
        cache(
            dir.path(),
            Attic {
                pause: Duration::from_millis(200),
                ..attic(&calls, "5.7.2")
            },
        )
    };
    let builds: Vec<InstalledBuild> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| add(&slow(), "mysql@5.7").unwrap()))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert!(builds.iter().all(|build| *build == builds[0]));
    assert_eq!(calls.seen().len(), 1);
}

#[test]
fn every_suite_of_a_series_is_asked_before_a_patch_level_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let calls = Calls::default();
    let cache = cache(dir.path(), attic(&calls, "9.7.3"));
    let error = add(&cache, "mysql@9.7.3").unwrap_err();
    assert!(matches!(error, BuildError::Gone(_)), "{error:?}");
    let wanted = "mysql@9.7.3 is gone; the nearest are: mysql@9.7, mysql@5.7.2, mysql@5.7.1\n  old \
                 has it no longer\n  new has it no longer";
    assert_eq!(error.to_string(), wanted);
    assert_eq!(
        calls.seen(),
        ["apt p of Debian old 9.7.3", "apt p of Debian new 9.7.3"]
    );
    // The series itself: the suite with the newest comes first, and what is gone is not offered.
    let error = add(&cache, "mysql@9.7").unwrap_err().to_string();
    assert_eq!(
        error,
        "mysql@9.7 is gone; the nearest are: mysql@5.7.2, mysql@5.7.1\n  new has it no longer\n  \
        old has it no longer"
    );
    assert_eq!(
        calls.seen()[2..],
        ["apt p of Debian new 9.7", "apt p of Debian old 9.7"]
    );
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn a_killed_fetch_leaves_nothing_that_is_used_and_the_next_one_works() {
    const NAME: &str =
        "builds::cache::tests::a_killed_fetch_leaves_nothing_that_is_used_and_the_next_one_works";
    // Many files, so that there is a middle of unpacking to be killed in.
    let files = || (0..50).map(|n| format!("share/{n}")).collect();
    if let Some(dir) = std::env::var_os(CHILD) {
        let cache = cache(
            Path::new(&dir),
            Attic {
                files: files(),
                ..attic(&Calls::default(), "5.7.2")
            },
        );
        let mut told = 0;
        let mut hang = |progress: &FetchProgress| {
            told += u32::from(progress.stage == Stage::Unpacking);
            if told == 20 {
                eprintln!("half unpacked");
                std::thread::sleep(Duration::from_secs(60));
            }
        };
        let _ = cache.add(&"mysql@5.7".parse().unwrap(), false, &mut hang, &|| false);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(CHILD, dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|line| line == "half unpacked");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said.is_some(), "the fetch never got half-way");
    let partials = names(dir.path());
    assert!(
        partials.len() == 1 && partials[0].starts_with("mysql@5.7.2.partial-"),
        "{partials:?}"
    );
    assert!(
        fs::read_dir(dir.path().join(&partials[0]).join("build/share"))
            .unwrap()
            .count()
            > 0
    );

    let calls = Calls::default();
    let cache = cache(
        dir.path(),
        Attic {
            files: files(),
            ..attic(&calls, "5.7.2")
        },
    );
    assert_eq!(cache.get(&"mysql@5.7".parse().unwrap()).unwrap(), None);
    assert!(
        cache
            .list()
            .unwrap()
            .iter()
            .all(|build| build.state == BuildState::Available)
    );
    let build = add(&cache, "mysql@5.7").unwrap();
    assert_eq!(names(dir.path()), ["mysql@5.7.2"]);
    assert_eq!(fs::read_dir(build.share_dir.unwrap()).unwrap().count(), 50);
    assert_eq!(calls.seen().len(), 1);
}

#[test]
fn a_check_tells_what_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path(), attic(&Calls::default(), "5.7.2"));
    let name: BuildName = "mysql@5.7".parse().unwrap();
    let check = || {
        let checks = cache.check(Some(&name)).unwrap();
        assert_eq!(checks.len(), 1);
        (checks[0].state, checks[0].finding.clone())
    };
    assert_eq!(check().0, CheckState::Missing);
    let build = add(&cache, "mysql@5.7").unwrap();
    assert_eq!(check(), (CheckState::Ok, "5.7.2".into()));
    assert_eq!(
        cache.check(None).unwrap(),
        cache.check(Some(&name)).unwrap()
    );

    let server = fs::read_to_string(&build.server).unwrap();
    fs::write(&build.server, format!("{server}# one line more\n")).unwrap();
    let (state, finding) = check();
    assert!(
        state == CheckState::Changed && finding.contains("recorded is"),
        "{finding}"
    );
    // It is not used, be it asked for by a run or to be added again.
    for error in [
        cache.get(&name).unwrap_err(),
        add(&cache, "mysql@5.7").unwrap_err(),
    ] {
        let wanted = "is another program than when it was added; fetch it again with `plimsoll \
                     build remove mysql@5.7.2`";
        assert!(error.to_string().contains(wanted), "{error}");
    }

    fs::write(&build.server, &server).unwrap();
    assert_eq!(check().0, CheckState::Ok);
    assert_eq!(cache.get(&name).unwrap().unwrap(), build);
    fs::remove_file(&build.server).unwrap();
    assert_eq!(check().0, CheckState::Missing);
    assert!(
        cache
            .get(&name)
            .unwrap_err()
            .to_string()
            .contains("is not there any more; fetch it again")
    );

    fs::write(dir.path().join("mysql@5.7.2").join(record::FILE), "{").unwrap();
    let checks = cache.check(None).unwrap();
    assert!(
        checks[0].state == CheckState::Changed && checks[0].finding.contains("is damaged"),
        "{checks:?}"
    );
    assert_eq!(cache.list().unwrap()[0].state, BuildState::Damaged);
    // A damaged build can be removed, and fetched again.
    assert_eq!(
        cache.remove(&"mysql@5.7.2".parse().unwrap()).unwrap(),
        "mysql@5.7.2"
    );
    add(&cache, "mysql@5.7").unwrap();
    assert_eq!(check().0, CheckState::Ok);
}

#[test]
fn a_damaged_record_is_replaced_by_adding_again() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(dir.path(), attic(&Calls::default(), "5.7.2"));
    add(&cache, "mysql@5.7").unwrap();
    fs::write(dir.path().join("mysql@5.7.2").join(record::FILE), "{").unwrap();
    add(&cache, "mysql@5.7").unwrap();
    assert_eq!(cache.check(None).unwrap()[0].state, CheckState::Ok);
}

#[test]
fn the_list_has_what_is_offered_and_what_is_here() {
    let dir = tempfile::tempdir().unwrap();
    let cache = cache(&dir.path().join("new"), attic(&Calls::default(), "5.7.2"));
    let list = || -> Vec<(String, BuildState)> {
        cache
            .list()
            .unwrap()
            .into_iter()
            .map(|build| (build.name, build.state))
            .collect()
    };
    let available = |name: &str| (name.to_owned(), BuildState::Available);
    assert_eq!(
        list(),
        [
            available("mysql@5.7.1"),
            available("mysql@5.7.2"),
            available("mysql@9.7")
        ]
    );
    add(&cache, "mysql@5.7").unwrap();
    assert_eq!(
        list(),
        [
            available("mysql@5.7.1"),
            ("mysql@5.7.2".to_owned(), BuildState::Here),
            available("mysql@9.7")
        ]
    );
    assert!(cache.list().unwrap()[1].bytes.unwrap() > 0);
    cache.remove(&"mysql@5.7".parse().unwrap()).unwrap();
    assert_eq!(
        list()
            .iter()
            .filter(|(_, state)| *state == BuildState::Here)
            .count(),
        0
    );
    assert!(
        cache
            .remove(&"mysql@5.7".parse().unwrap())
            .unwrap_err()
            .to_string()
            .contains("is not here")
    );
}

/// A folder with a MySQL that says so.
fn own_build(dir: &Path) -> PathBuf {
    let basedir = dir.join("my");
    for folder in ["bin", "share/english"] {
        fs::create_dir_all(basedir.join(folder)).unwrap();
    }
    fs::write(basedir.join("share/english/errmsg.sys"), "").unwrap();
    write_script(
        &basedir.join("bin/mysqld"),
        "echo 'x  Ver 8.0.35 for Linux'",
    );
    basedir
}

#[test]
fn a_build_of_ones_own_is_known_by_its_label() {
    let dir = tempfile::tempdir().unwrap();
    let basedir = own_build(dir.path());
    let cache = cache(&dir.path().join("cache"), attic(&Calls::default(), ""));
    let build = cache.add_basedir(&basedir, "rel_native").unwrap();
    let name: BuildName = "mysql+rel_native".parse().unwrap();
    assert_eq!(cache.get(&name).unwrap(), Some(build.clone()));
    assert_eq!(
        cache.add(&name, true, &mut |_| {}, &|| false).unwrap(),
        build
    );
    assert_eq!(cache.check(Some(&name)).unwrap()[0].state, CheckState::Ok);
    // The same folder again is checked again; another one is refused.
    cache.add_basedir(&basedir, "rel_native").unwrap();
    let other = own_build(&dir.path().join("other"));
    assert!(
        cache
            .add_basedir(&other, "rel_native")
            .unwrap_err()
            .to_string()
            .contains("choose another label")
    );
    for (label, wanted) in [
        ("attic", "is the name of a source"),
        ("a.b", "is not a label"),
        ("", "is not a label"),
    ] {
        assert!(
            cache
                .add_basedir(&basedir, label)
                .unwrap_err()
                .to_string()
                .contains(wanted),
            "{label}"
        );
    }

    let server = basedir.join("bin/mysqld");
    fs::write(&server, "#!/bin/sh\necho 'x  Ver 8.0.36 for Linux'\n").unwrap();
    assert!(
        cache
            .get(&name)
            .unwrap_err()
            .to_string()
            .contains("is another program than when it was added")
    );
    assert_eq!(
        cache.check(Some(&name)).unwrap()[0].state,
        CheckState::Changed
    );
    assert_eq!(
        cache.add_basedir(&basedir, "rel_native").unwrap().version,
        "8.0.36"
    );

    // Removing forgets; the user's folder stays.
    assert_eq!(cache.remove(&name).unwrap(), "mysql+rel_native");
    assert!(matches!(cache.get(&name), Err(BuildError::Unknown(_))));
    assert!(server.is_file());
}
