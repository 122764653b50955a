//! `build make`: a project of a few lines of C that is built as PostgreSQL is, by the shipped
//! recipe and the real compiler.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_testkit::write_script;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, text, wait, wait_until};

const CONFIGURE: &str = "PACKAGE_VERSION='17.9'
for word; do
case $word in --prefix=*) echo \"PREFIX = ${word#*=}\";; CFLAGS=*) echo \"$word\";; esac
done > config.mk";

const MAKEFILE: &str = "include config.mk
all: postgres
postgres: main.o slow.o
\t$(CC) $(CFLAGS) -o postgres main.o slow.o
%.o: %.c
\t$(CC) $(CFLAGS) -c $<
slow.o: slow.c
\tif [ -e BEFORE ]; then echo $$$$ > PID.new; mv PID.new PID; exec sleep 300; fi
\t$(CC) $(CFLAGS) -c $<
install: all
\tmkdir -p $(DESTDIR)$(PREFIX)/bin
\tcp postgres initdb $(DESTDIR)$(PREFIX)/bin/
";
const CONTRIB: &str = "all install:\n\ttrue\n";

/// A source in `pg`, and stand-ins for the tools that it has no use for.
fn project(place: &Place) {
    // Under root nobody compiles, and what is compiled writes its pid there.
    fs::set_permissions(place.dir.path(), Permissions::from_mode(0o777)).unwrap();
    let source = place.path("pg");
    let contrib = source.join("contrib/pg_stat_statements");
    fs::create_dir_all(&contrib).unwrap();
    let (pid, before) = (place.path("pid"), place.path("before"));
    let makefile = MAKEFILE
        .replace("BEFORE", before.to_str().unwrap())
        .replace("PID", pid.to_str().unwrap());
    for (name, text) in [
        ("Makefile", makefile.as_str()),
        (
            "main.c",
            "#include <stdio.h>\nint slow(void);\nint main(void) \
            { printf(\"postgres (PostgreSQL) 17.9\\n\"); return slow(); }\n",
        ),
        ("slow.c", "int slow(void) { return 0; }\n"),
        ("contrib/pg_stat_statements/Makefile", CONTRIB),
    ] {
        fs::write(source.join(name), text).unwrap();
    }
    write_script(&source.join("configure"), CONFIGURE);
    write_script(&source.join("initdb"), "true");
    for tool in ["bison", "flex", "perl", "bzip2"] {
        write_script(&place.path("tools").join(tool), "exit 1");
    }
}

fn command(place: &Place, arguments: &[&str]) -> Command {
    let path = format!(
        "{}:{}",
        place.path("tools").display(),
        std::env::var("PATH").unwrap()
    );
    let mut command = place.command(arguments);
    command.args(["--cache", "cache"]).env("PATH", path);
    command
}

fn make(place: &Place, more: &[&str]) -> Output {
    let arguments = [&["build", "make", "postgres", "--source", "pg"], more].concat();
    command(place, &arguments).output().unwrap()
}

/// A build that has come to the file that never ends.
fn stuck(place: &Place) -> (Child, String) {
    fs::write(place.path("before"), "").unwrap();
    let _ = fs::remove_file(place.path("pid"));
    // One command at a time: the first file is compiled by then.
    let arguments = ["build", "make", "postgres", "--source", "pg", "--jobs", "1"];
    let child = command(place, &arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the compiler runs", || place.path("pid").exists());
    let pid = fs::read_to_string(place.path("pid")).unwrap();
    (child, pid.trim().to_owned())
}

#[test]
fn a_source_is_compiled_once_and_told_whole() {
    let place = Place::new();
    project(&place);
    let made = make(&place, &["--label", "mine", "--jobs", "1"]);
    let stderr = text(&made.stderr);
    assert_eq!(made.status.code(), Some(0), "{stderr}");
    assert!(
        text(&made.stdout).starts_with("postgres+mine  17.9  "),
        "{stderr}"
    );
    assert!(
        stderr.contains("compile") && stderr.contains("made in 0 min"),
        "{stderr}"
    );
    let again = make(&place, &["--label", "mine"]);
    assert_eq!(again.status.code(), Some(0));
    assert!(
        text(&again.stderr).contains("it was made before"),
        "{}",
        text(&again.stderr)
    );

    let shown = command(&place, &["build", "show", "postgres+mine", "--json"])
        .output()
        .unwrap();
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let toolchain = &shown["build"]["toolchain"];
    let options = toolchain["optimisation"].as_str().unwrap();
    assert!(
        options.contains("-O2") && options.contains("-fno-omit-frame-pointer"),
        "{shown:#}"
    );
    assert_eq!(toolchain["packager"], "Plimsoll");
    assert!(
        toolchain["features"]
            .as_str()
            .unwrap()
            .starts_with("assertions off")
    );
    let checked = command(&place, &["build", "check"]).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", text(&checked.stdout));

    // Another set of flags is another build, named after the folder.
    assert_eq!(make(&place, &["--flags", "o3"]).status.code(), Some(0));
    let listed = command(&place, &["build", "list"]).output().unwrap();
    let listed = text(&listed.stdout);
    assert!(
        listed
            .lines()
            .any(|line| line.starts_with("postgres+pg-o3 ")),
        "{listed}"
    );
}

#[test]
fn mistakes_are_told_before_anything_is_compiled() {
    let place = Place::new();
    project(&place);
    for (arguments, wanted) in [
        (
            &["postgres", "--source", "nowhere"][..],
            "there is no source nowhere",
        ),
        (
            &["postgres", "--source", "pg@v1"],
            "pg is not a git checkout",
        ),
        (
            &["postgres@17", "--source", "pg"],
            "write postgres in place of postgres@17",
        ),
        (
            &["postgres", "--source", "pg", "--flags", "o9"],
            "there is no flag set \"o9\"",
        ),
        (&["postgres+debian"], "leave out +debian"),
        (&["null"], "there is no recipe to compile null"),
    ] {
        let output = command(&place, &[&["build", "make"], arguments].concat())
            .output()
            .unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{stderr}");
    }
    fs::write(place.path("pg/slow.c"), "int slow(void) { return 0 }\n").unwrap();
    let failed = make(&place, &[]);
    let stderr = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("compile failed: slow.c:1:") && stderr.contains("build.log"),
        "{stderr}"
    );
}

#[test]
fn ctrl_c_ends_the_compiler_and_the_same_command_goes_on() {
    let place = Place::new();
    project(&place);
    let (child, pid) = stuck(&place);
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("goes on where it ended"));
    assert!(!Path::new("/proc").join(&pid).exists(), "it compiles on");

    fs::remove_file(place.path("before")).unwrap();
    let object = place
        .path("cache/work")
        .join("postgres+pg-o2nofp/source/main.o");
    let before = fs::metadata(&object).unwrap().modified().unwrap();
    let watched = std::thread::scope(|scope| {
        let made = scope.spawn(|| make(&place, &[]));
        let mut last = before;
        while !made.is_finished() {
            if let Ok(modified) = fs::metadata(&object).and_then(|file| file.modified()) {
                last = modified;
            }
        }
        let made = made.join().unwrap();
        assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
        last
    });
    assert_eq!(watched, before, "what was compiled is not compiled again");
    assert!(!place.path("cache/work/postgres+pg-o2nofp").exists());
}

#[test]
fn nothing_compiles_on_when_the_program_is_killed() {
    let place = Place::new();
    project(&place);
    let (mut child, pid) = stuck(&place);
    // The child is `env`, which became the program.
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the compiler is gone", || {
        !Path::new("/proc").join(&pid).exists()
    });
}

#[test]
fn a_repository_that_the_environment_names_is_left_alone() {
    let place = Place::new();
    project(&place);
    let git = |folder: &str, arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(place.path(folder));
        git.args(["-c", "user.name=x", "-c", "user.email=x@example.org"]);
        let output = git.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).to_string()
    };
    fs::create_dir(place.path("other")).unwrap();
    for (folder, file) in [("pg", "main.c"), ("other", "theirs")] {
        fs::write(place.path("other/theirs"), "theirs").unwrap();
        git(folder, &["init", "--quiet"]);
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", file]);
    }
    let before = git("other", &["symbolic-ref", "HEAD"]);
    // As in a hook of `other`.
    let made = command(
        &place,
        &["build", "make", "postgres", "--source", "pg@HEAD"],
    )
    .env("GIT_DIR", place.path("other/.git"))
    .env("GIT_INDEX_FILE", place.path("other/.git/index"))
    .output()
    .unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    assert_eq!(git("other", &["symbolic-ref", "HEAD"]), before);
    assert_eq!(git("other", &["status", "--porcelain"]), "");
}

#[test]
fn nothing_of_the_environment_gets_into_a_build() {
    let place = Place::new();
    project(&place);
    // As PostgreSQL's makefiles do with COPT; and gcc by itself with CPATH.
    let makefile = fs::read_to_string(place.path("pg/Makefile")).unwrap();
    let makefile = makefile.replace("$(CFLAGS) -c", "$(CFLAGS) $(COPT) -c");
    fs::write(place.path("pg/Makefile"), makefile).unwrap();
    let seen = place.path("seen");
    let configure = format!("env > {}\n{CONFIGURE}", seen.display());
    write_script(&place.path("pg/configure"), &configure);
    fs::create_dir(place.path("headers")).unwrap();
    fs::write(place.path("headers/stdio.h"), "#error foreign\n").unwrap();
    let made = command(&place, &["build", "make", "postgres", "--source", "pg"])
        .env("COPT", "-DNOT_ASKED_FOR")
        .env("CPATH", place.path("headers"))
        .env("MY_TOKEN", "hunter2")
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    let seen = fs::read_to_string(seen).unwrap();
    assert!(
        !seen.contains("hunter2") && !seen.contains("NOT_ASKED"),
        "{seen}"
    );
}
